//! Agents: what carries out tasks, and asks or hands off to others.
//!
//! | source | term |
//! |---|---|
//! | nothing to call | `llm p θ` |
//! | `talk: conversation` | `fresh (send[system] p; send x; case (fix[n] (λagain. λstep. case recv[θ] of {…})) 'stopped of {…})` |
//! | `talk: text`, `talk: actions` | `fix[n] (λagain. λx. …)`, see [`frontend_kit::turn`]; a result joins the text |
//! | a helper, an agent to hand off to | the function that its agent or pipeline is, from a text to a text |

use super::expr::literal_text;
use super::taint::Taint;
use super::{Callable, REPAIR, SurfaceLowering};
use crate::decls::{
    ActionKind, AgentDecl, Budget, EXAMPLE_INPUT, EXAMPLE_OUTPUT, Memory, Offer, Param, Signature,
    remember_tool,
};
use crate::functions::Operation;
use crate::scopes::declared_name;
use crate::types::certain;
use core_ir::{
    Bound, BoundOrigin, Branch, Catches, Data, EffectClass, IfSugar, KeyDecl, LabelSpec, ModelParams, Name,
    Num, Prim, Recv, Role, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::Span;
use frontend_kit::turn::{Call, Carried, Names, Outcome, TurnRequest};
use std::sync::Arc;
use syntax::agent::ast::{self, BodyKind, Expr, ExprKind, Item, Template, TemplatePart};

/// A call that an agent's model may choose.
struct Choice<'p> {
    called: String,
    id: ToolId,
    kind: Invoked<'p>,
}

/// Implementation of a call.
enum Invoked<'p> {
    /// Calls the tool; whether its result is the answer, and what it adds to the label.
    Tool { finish: bool, adds: Taint },
    /// Asks the function of a text that this variable is.
    Ask(Name, Taint),
    /// Lets it go on instead.
    HandOff(Name),
    /// Sets a key of the agent's memory.
    Key(&'p Param),
}

/// `{usd: …, calls: …}`, for whoever counts.
pub(super) fn limits(budget: &Budget) -> Data {
    let usd = budget.usd.clone().map(|n| (Name::from("usd"), Data::Num(n)));
    let calls = budget
        .calls
        .map(|n| (Name::from("calls"), Data::Num(Num::from(i64::try_from(n).unwrap_or(i64::MAX)))));
    Data::record(usd.into_iter().chain(calls))
}

/// The parameter that a template is, if it is nothing but a text.
fn only_text<'t>(template: &'t Template, s: &Signature) -> Option<&'t str> {
    let [TemplatePart::Hole(Expr { kind: ExprKind::Var(name), .. })] = &template.parts[..] else {
        return None;
    };
    let text = s.params.iter().any(|p| p.name.text == *name && p.ty == Type::Str);
    text.then_some(name)
}

impl SurfaceLowering<'_> {
    /// The variable of the function of an agent task carried out by an agent.
    pub(super) fn agent_function(&mut self, s: &Signature, agent: &str) -> Name {
        // It calls nothing at a label that would have to be known.
        let key = Callable {
            name: s.name.text.clone(),
            agent: Some(agent.to_string()),
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&format!("{}_by_{agent}", s.name.text));
        self.functions.insert(key, name.clone());
        if let (Some(Item::Task(t)), Some(decl)) =
            (self.c.program.items.get(s.item), self.c.decls.agents.get(agent))
        {
            let names = std::mem::take(&mut self.scope.names);
            let mark = self.scope.journal.len();
            let term = self.agent_task(s, t, agent, decl);
            self.scope.undo(mark);
            self.scope.names = names;
            self.definitions.push((name.clone(), term));
        }
        name
    }

    /// The variable of the function from a text to a text that an agent, or else a pipeline, is for those who
    /// ask it.
    fn asked(&mut self, name: &str) -> Name {
        // No task has an empty name.
        let key = Callable {
            name: String::new(),
            agent: Some(name.to_string()),
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(known) = self.functions.get(&key) {
            return known.clone();
        }
        let variable = self.b.fresh(name);
        self.functions.insert(key, variable.clone());
        let term = match self.c.decls.agents.get(name) {
            Some(decl) => {
                let system = self.instructions(decl, None, None);
                // Its own requests say who asks.
                let params = self.params(name, decl, Type::Str, name);
                stacker::maybe_grow(128 << 10, 1 << 20, || self.as_function(system, params, name, decl))
            }
            None => self.pipeline_of_text(name),
        };
        self.definitions.push((variable.clone(), term));
        variable
    }

    /// `λx. p {only: x}`.
    fn pipeline_of_text(&mut self, name: &str) -> TermId {
        let c = self.c;
        let Some(s) = c.decls.callables.get(name) else {
            // The checker has asked for one.
            return self.b.add(Term::Unknown(name.into()), c.program.span);
        };
        let at = s.name.span;
        // What a model asks may come from anywhere that it has heard of.
        let all = Taint { untrusted: true, secret: true };
        let pc = std::mem::replace(&mut self.pc, all);
        let function = match s.kind {
            crate::decls::CallableKind::Import => self.import_function(s),
            _ => self.pipeline_function(s, all, None),
        };
        self.pc = pc;
        let x = self.b.fresh("x");
        let mut given = self.b.var(x.clone(), at);
        if let Some(only) = s.params.first().filter(|p| !certain(&Type::Str, &p.input())) {
            let what = format!("the argument `{}` of `{name}`", only.name.text);
            given = self.b.add(Term::Check(what.into(), only.input(), given), at);
        }
        let fields = s.params.iter().take(1).map(|p| (Name::from(p.name.text.as_str()), given)).collect();
        let args = self.b.add(Term::Record(fields), at);
        let function = self.b.var(function, at);
        let mut call = self.b.app(function, args, at);
        // One that calls itself gives its argument back when its bound is reached.
        if c.facts.descents.contains_key(name) {
            call = self.b.add(Term::Check(super::expr::result_of(name), Type::Str, call), at);
        }
        self.b.abs(x, Some(Type::Str), call, at)
    }

    /// An agent as a function from a text to a text.
    fn as_function(&mut self, system: TermId, params: ModelParams, agent: &str, decl: &AgentDecl) -> TermId {
        let at = decl.span;
        if !decl.as_text || self.asks_nobody(decl) || decl.memory.is_some() {
            let x = self.b.fresh("x");
            let prompt = self.b.var(x.clone(), at);
            if self.asks_nobody(decl) && decl.memory.is_none() {
                return self.b.add(Term::Llm(system, Arc::new(params)), at);
            }
            let body = self.carried_out(system, prompt, params, agent, decl, at);
            return self.b.abs(x, Some(Type::Str), body, at);
        }
        self.text_loop(system, params, agent, decl, at)
    }

    /// Returns true if the agent's model has no calls.
    fn asks_nobody(&self, decl: &AgentDecl) -> bool {
        decl.offers.is_empty() && decl.memory.as_ref().is_none_or(|m| m.keys.is_empty())
    }

    /// The settings of an agent's questions.
    fn params(&mut self, agent: &str, decl: &AgentDecl, result: Type, purpose: &str) -> ModelParams {
        let mut extra = vec![(Name::from("agent"), Data::str(agent))];
        extra.extend(decl.budget.as_ref().map(|b| ("budget".into(), limits(b))));
        if !decl.fallback.is_empty() {
            let names = decl.fallback.iter().map(|n| Data::str(n.as_str()));
            extra.push(("fallback".into(), Data::list(names)));
        }
        extra.extend(decl.settings.iter().cloned());
        ModelParams {
            model: decl.model.as_deref().map(Name::from),
            temperature: decl.temperature.clone(),
            max_tokens: decl.max_tokens,
            result: Some(result),
            repair: REPAIR,
            tools: Vec::new(),
            waiting: false,
            purpose: Some(purpose.into()),
            extra,
        }
    }

    /// The instructions: the agent's own, those of the task with its examples, and what the agent remembers.
    fn instructions(
        &mut self,
        decl: &AgentDecl,
        own: Option<(&Template, &Signature)>,
        examples: Option<TermId>,
    ) -> TermId {
        let prompt = match self.c.program.items.get(decl.item) {
            Some(Item::Agent(a)) => a.fields.iter().find_map(|f| match &f.value {
                ast::AgentValue::Prompt(t) => Some((literal_text(t), t.span)),
                _ => None,
            }),
            _ => None,
        };
        let (mut text, at) = prompt.unwrap_or_else(|| (String::new(), decl.span));
        let mut parts: Vec<TermId> = Vec::new();
        if let Some((own, s)) = own {
            let own_term = match only_text(own, s) {
                Some(name) => self.variable(name, own.span),
                None => self.template(own),
            };
            if text.is_empty() && decl.memory.is_none() && examples.is_none() {
                return own_term;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
                parts.push(self.b.lit(&*text, at));
            }
            match self.b.term(own_term) {
                Term::Prim(Prim::Format, operands) => parts.extend(operands.clone()),
                _ => parts.push(own_term),
            }
            text.clear();
        }
        if let Some(examples) = examples {
            let is_first = text.is_empty() && parts.is_empty();
            text.push_str(if is_first { "" } else { "\n\n" });
            parts.extend((!text.is_empty()).then(|| self.b.lit(&*text, at)));
            parts.push(examples);
            text.clear();
        }
        let Some(memory) = &decl.memory else {
            return match parts.is_empty() {
                true => self.b.lit(&*text, at),
                false => self.b.add(Term::Prim(Prim::Format, parts), at),
            };
        };
        let before = if text.is_empty() && parts.is_empty() { "" } else { "\n\n" };
        parts.push(self.b.lit(&*format!("{text}{before}What you remember:"), at));
        for key in &memory.keys {
            let held = self.b.fresh("held");
            parts.push(self.b.lit(&*format!("\n{}: ", key.name.text), at));
            let recall = self.b.add(Term::Recall(key.name.text.as_str().into(), None), at);
            let seen = self.b.var(held.clone(), at);
            let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
            let nothing = self.b.lit("nothing yet", at);
            let value = self.b.var(held.clone(), at);
            let shown = match self.c.facts.divides && crate::check::holds_numbers(&key.ty) {
                true => self.operation(Operation::Named("agent.shown"), vec![value], at),
                false => self.b.add(Term::Prim(Prim::ToStr, vec![value]), at),
            };
            let choice = self.b.add(Term::If(absent, nothing, shown, IfSugar::Plain), at);
            parts.push(self.b.let_in(vec![(held, recall)], choice, at));
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }

    /// `λargs. …`: the prompt is put together, and the agent's model asked for a value of the result type.
    fn agent_task(&mut self, s: &Signature, t: &ast::Callable, agent: &str, decl: &AgentDecl) -> TermId {
        let at = t.name.span;
        let examples = t.body.examples.as_ref().map(|e| self.examples(s, t, e));
        let args = self.b.fresh("args");
        let bindings = self.bound_params(s, &args);
        let prompt = match &t.body.kind {
            BodyKind::Prompt(template) => match only_text(template, s).filter(|_| decl.as_text) {
                Some(name) => self.variable(name, template.span),
                None => self.template(template),
            },
            _ => self.plain_prompt(s, at),
        };
        let own = t.body.system.as_ref().map(|own| (own, s));
        let system = self.instructions(decl, own, examples);
        let params = self.params(agent, decl, s.result.clone(), declared_name(&s.name.text));
        let body = self.carried_out(system, prompt, params, agent, decl, at);
        let body = self.b.let_in(bindings, body, at);
        self.b.abs(args, None, body, at)
    }

    /// Binds the parameters of a task to the fields of what it is given.
    fn bound_params(&mut self, s: &Signature, given: &Name) -> Vec<(Name, TermId)> {
        let of = |lower: &mut Self, p: &Param| {
            let given = lower.b.var(given.clone(), p.name.span);
            let value = lower.access(given, &p.name.text, matches!(p.ty, Type::Option(_)), p.name.span);
            (lower.bind(&p.name.text, Taint::NONE), value)
        };
        s.params.iter().map(|p| of(self, p)).collect()
    }

    /// The examples of a task as a text: what the model would be asked for each input, and the output in the
    /// form in which it has to answer.
    fn examples(&mut self, s: &Signature, t: &ast::Callable, e: &Expr) -> TermId {
        let at = e.span;
        let list = self.without_variables(e, &format!("the examples of `{}`", s.name.text));
        let mark = self.scope.journal.len();
        let example = self.b.fresh("example");
        let part = |lower: &mut Self, name: &str| {
            let example = lower.b.var(example.clone(), at);
            lower.b.add(Term::Field(example, name.into()), at)
        };
        let mut bindings = Vec::new();
        if !s.params.is_empty() {
            let input = self.b.fresh("input");
            bindings.push((input.clone(), part(self, EXAMPLE_INPUT)));
            bindings.extend(self.bound_params(s, &input));
        }
        let asked = match &t.body.kind {
            BodyKind::Prompt(template) => self.template(template),
            _ => self.plain_prompt(s, at),
        };
        let mut output = part(self, EXAMPLE_OUTPUT);
        // A reply is JSON, but for a text.
        if *s.result.unrefined() != Type::Str {
            output = self.b.add(Term::Prim(Prim::ToJson, vec![output]), at);
        }
        let (before, between) = (self.b.lit("Example input:\n", at), self.b.lit("\n\nExample output:\n", at));
        let shown = self.b.add(Term::Prim(Prim::Format, vec![before, asked, between, output]), at);
        let shown = self.b.let_in(bindings, shown, at);
        self.scope.undo(mark);
        let each = self.b.abs(example, None, shown, at);
        let all = self.b.add(Term::Each(Some(1), each, list), at);
        let between = self.b.lit("\n\n", at);
        self.b.add(Term::Prim(Prim::Join, vec![all, between]), at)
    }

    /// Lowers an agent applied to a prompt.
    fn carried_out(
        &mut self,
        system: TermId,
        prompt: TermId,
        params: ModelParams,
        agent: &str,
        decl: &AgentDecl,
        at: Span,
    ) -> TermId {
        let body = if self.asks_nobody(decl) {
            let model = self.b.add(Term::Llm(system, Arc::new(params)), at);
            self.b.app(model, prompt, at)
        } else if decl.as_text {
            let function = self.text_loop(system, params, agent, decl, at);
            self.b.app(function, prompt, at)
        } else {
            self.react(system, prompt, params, agent, decl, at)
        };
        match &decl.memory {
            Some(memory) => {
                let store = self.store(agent, memory);
                self.b.add(Term::Mem(store, body), at)
            }
            None => body,
        }
    }

    /// Returns the calls of the agent's model: its offers in the order of the text, then the keys of its
    /// memory.
    fn choices<'d>(&mut self, decl: &'d AgentDecl) -> Vec<Choice<'d>> {
        let c = self.c;
        let mut out = Vec::new();
        for offer in &decl.offers {
            let called = offer.called.clone();
            let choice = match offer.kind {
                ActionKind::Call | ActionKind::Finish => {
                    let Some(s) = c.decls.tools.get(&offer.name.text) else { continue };
                    let Some(id) = self.tool(s) else { continue };
                    let kind = Invoked::Tool { finish: offer.kind == ActionKind::Finish, adds: c.returns(s) };
                    Choice { called, id, kind }
                }
                ActionKind::Ask | ActionKind::HandOff => {
                    let id = self.helper_tool(offer);
                    let function = self.asked(&offer.name.text);
                    let kind = match offer.kind {
                        ActionKind::HandOff => Invoked::HandOff(function),
                        _ => Invoked::Ask(function, self.asked_adds(&offer.name.text)),
                    };
                    Choice { called, id, kind }
                }
            };
            out.push(choice);
        }
        for key in decl.memory.iter().flat_map(|m| &m.keys) {
            let called = remember_tool(&key.name.text);
            out.push(Choice { called, id: self.remember_tool(key), kind: Invoked::Key(key) });
        }
        out
    }

    /// Declares the tool by which a model asks another agent: it takes a text.
    fn helper_tool(&mut self, offer: &Offer) -> ToolId {
        let c = self.c;
        let declared = match c.decls.agents.get(&offer.name.text) {
            Some(agent) => c.program.items.get(agent.item),
            None => c.decls.callables.get(&offer.name.text).and_then(|s| c.program.items.get(s.item)),
        };
        let at = match declared {
            Some(Item::Agent(a)) => Some(a.span),
            Some(Item::Pipeline(p)) => Some(p.span),
            Some(Item::Import(i)) => Some(i.span),
            _ => None,
        };
        let description = at.and_then(|at| self.c.files.comment_above(at));
        let decl = ToolDecl {
            params: vec![ToolParam {
                name: "input".into(),
                ty: Type::Str,
                bound: LabelSpec::TOP,
                default: None,
            }],
            result: Type::Str,
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            description,
            ..ToolDecl::unknown(offer.called.as_str().into(), offer.name.span)
        };
        // Those that models cannot tell apart are one.
        let same = |t: &ToolDecl| {
            t.name == decl.name
                && t.description == decl.description
                && t.params == decl.params
                && t.result == decl.result
        };
        match self.b.tools().iter().position(|t| same(t)) {
            Some(i) => ToolId(i as u32),
            None => self.b.tool(decl),
        }
    }

    /// The loop on one text: each unfolding asks anew, and either gives the answer or lets what was called
    /// join the text. When its bound is reached the text is what it gives.
    fn text_loop(
        &mut self,
        system: TermId,
        mut params: ModelParams,
        agent: &str,
        decl: &AgentDecl,
        at: Span,
    ) -> TermId {
        let names = Names::fresh(&mut self.b);
        let choices = self.choices(decl);
        params.tools = choices.iter().map(|c| c.id).collect();
        let mut calls = Vec::new();
        for Choice { called, id, kind } in choices {
            let given = self.b.var(names.a.clone(), at);
            let comes = match kind {
                Invoked::Tool { finish, .. } => {
                    let tool = self.b.add(Term::Tool(id), at);
                    let result = self.b.app(tool, given, at);
                    if finish { Outcome::Answers(result) } else { Outcome::Joins(result) }
                }
                Invoked::Ask(function, _) => {
                    let function = self.b.var(function, at);
                    let input = self.b.add(Term::Field(given, "input".into()), at);
                    Outcome::Joins(self.b.app(function, input, at))
                }
                Invoked::HandOff(function) => Outcome::Over(self.b.var(function, at)),
                Invoked::Key(key) => Outcome::Joins(self.remembered(key, given, at)),
            };
            calls.push(Call { name: called.as_str().into(), at, comes });
        }
        let carried = if decl.one_action { Carried::First } else { Carried::All };
        let asked = TurnRequest {
            prompt: system,
            params,
            request: None,
            calls,
            carried,
            head: at,
            model_at: at,
            calls_at: at,
        };
        let body = asked.turn(&mut self.b, &names).body;
        let body = self.b.abs(names.x, Some(Type::Str), body, at);
        let body = self.b.abs(names.this, None, body, at);
        self.steps(agent, decl, body, at)
    }

    /// `fix[max_steps]`.
    fn steps(&mut self, agent: &str, decl: &AgentDecl, body: TermId, at: Span) -> TermId {
        let bound = decl.max_steps.map_or(Bound::Infinite, Bound::Finite);
        let origin = match decl.max_steps {
            Some(n) if !decl.max_steps_given => {
                Some(BoundOrigin::Default(format!("the default of {n} steps").into()))
            }
            Some(_) => None,
            None => {
                Some(BoundOrigin::Unlimited(format!("`{agent}` says that its steps are unlimited").into()))
            }
        };
        self.b.add(Term::Fix { bound, origin, body }, at)
    }

    /// Sets a key, and says so.
    fn remembered(&mut self, key: &Param, given: TermId, at: Span) -> TermId {
        let value = self.access(given, "value", matches!(key.ty, Type::Option(_)), at);
        let kept = self.b.add(Term::Remember(key.name.text.as_str().into(), None, value), at);
        let done = self.b.lit("remembered", at);
        self.b.let_in(vec![("_".into(), kept)], done, at)
    }

    /// The ReAct loop: each unfolding asks the model once, and either gives its answer or carries out the
    /// tool call that it asks for and shows it the result. A tool that fails is shown as the error it gave.
    fn react(
        &mut self,
        system: TermId,
        prompt: TermId,
        mut params: ModelParams,
        agent: &str,
        decl: &AgentDecl,
        at: Span,
    ) -> TermId {
        let (again, step) = (self.b.fresh("again"), self.b.fresh("step"));
        let choices = self.choices(decl);
        params.tools = choices.iter().map(|c| c.id).collect();
        let text = matches!(params.result, Some(Type::Str));
        let hands_over = choices.iter().any(|c| matches!(c.kind, Invoked::HandOff(_)));
        let asked = self.b.fresh("asked");
        let (prompt, task) = match hands_over {
            true => (self.b.var(asked.clone(), at), Some((asked.clone(), prompt))),
            false => (prompt, None),
        };
        let mut branches = Vec::new();
        for Choice { called, id, kind } in choices {
            let (call, seen, message) = (self.b.fresh("call"), self.b.fresh("seen"), self.b.fresh("message"));
            let arguments = self.b.var(call.clone(), at);
            // The call's program counter is the conversation's label already; what it does adds to that.
            let (invoke, adds) = match kind {
                Invoked::Tool { finish, adds } => {
                    let tool = self.b.add(Term::Tool(id), at);
                    let invoke = self.b.app(tool, arguments, at);
                    if finish {
                        let result =
                            if text { self.b.add(Term::Prim(Prim::ToStr, vec![invoke]), at) } else { invoke };
                        let body = self.b.add(Term::Tag("final".into(), Some(result)), at);
                        branches.push(Branch { tag: called.as_str().into(), binder: Some(call), body });
                        continue;
                    }
                    (invoke, adds)
                }
                Invoked::Ask(function, adds) => {
                    let function = self.b.var(function, at);
                    let input = self.b.add(Term::Field(arguments, "input".into()), at);
                    (self.b.app(function, input, at), adds)
                }
                Invoked::HandOff(function) => {
                    let (function, task) = (self.b.var(function, at), self.b.var(asked.clone(), at));
                    let result = self.b.app(function, task, at);
                    let body = self.b.add(Term::Tag("final".into(), Some(result)), at);
                    branches.push(Branch { tag: called.as_str().into(), binder: None, body });
                    continue;
                }
                Invoked::Key(key) => (self.remembered(key, arguments, at), self.memory_taint(decl, key)),
            };
            let text = self.b.var(message.clone(), at);
            let error = self.b.add(Term::Record(vec![("error".into(), text)]), at);
            let l = self.label(adds, at);
            let observed = self.b.add(
                Term::Try {
                    label: l,
                    body: invoke,
                    catches: Catches::NotTimeout,
                    name: message,
                    handler: error,
                },
                at,
            );
            let shown = self.b.var(seen.clone(), at);
            let observe = self.b.add(Term::Send(Role::Tool, shown), at);
            let again = self.b.var(again.clone(), at);
            let next = self.b.var(step.clone(), at);
            let next = self.b.app(again, next, at);
            let body = self.b.let_in(vec![(seen, observed), ("_".into(), observe)], next, at);
            branches.push(Branch { tag: called.as_str().into(), binder: Some(call), body });
        }
        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let value = self.b.add(Term::Tag("final".into(), Some(value)), at);
        branches.push(Branch { tag: "final".into(), binder: Some(answer), body: value });
        let reply = self.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
        let body = self.b.add(Term::Case { scrutinee: reply, branches, default: None }, at);
        let body = self.b.abs(step, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let fix = self.steps(agent, decl, body, at);
        let stopped = self.b.add(Term::Tag("stopped".into(), None), at);
        let run = self.b.app(fix, stopped, at);

        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let steps = decl.max_steps.map_or_else(|| "unlimited".to_string(), |n| n.to_string());
        let message = format!("agent `{agent}` used its {steps} steps without an answer");
        let message = self.b.lit(&*message, at);
        let fail = self.b.add(Term::Fail(message), at);
        let branches = vec![
            Branch { tag: "final".into(), binder: Some(answer), body: value },
            Branch { tag: "stopped".into(), binder: None, body: fail },
        ];
        let result = self.b.add(Term::Case { scrutinee: run, branches, default: None }, at);
        let first = self.b.add(Term::Send(Role::System, system), at);
        let second = self.b.add(Term::Send(Role::User, prompt), at);
        let all = self.b.let_in(vec![("_".into(), first), ("_".into(), second)], result, at);
        let all = self.b.add(Term::Fresh(all), at);
        self.b.let_in(task.into_iter().collect(), all, at)
    }

    /// The store of an agent's memory; all its tasks have the same.
    pub(super) fn store(&mut self, agent: &str, memory: &Memory) -> StoreId {
        if let Some(id) = self.stores.get(agent) {
            return *id;
        }
        let decl = self.c.decls.agents.get(agent);
        let mut keys = Vec::with_capacity(memory.keys.len());
        for k in &memory.keys {
            let taint = decl.map_or(Taint::NONE, |d| self.memory_taint(d, k));
            keys.push(KeyDecl {
                name: k.name.text.as_str().into(),
                ty: k.ty.clone(),
                label: LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret },
                initial: None,
            });
        }
        let id = self.b.store(StoreDecl {
            name: agent.into(),
            keys,
            capacity: memory.size,
            ttl: memory.ttl,
            backend: memory.store.as_deref().map(Name::from),
            span: memory.span,
        });
        self.stores.insert(agent.to_string(), id);
        id
    }

    /// Declares the tool by which a model sets a key. The term itself keeps the value, so no handler receives
    /// it.
    pub(super) fn remember_tool(&mut self, key: &Param) -> ToolId {
        self.b.tool(ToolDecl {
            params: vec![ToolParam {
                name: "value".into(),
                ty: key.ty.clone(),
                bound: LabelSpec::TOP,
                default: None,
            }],
            result: Type::Str,
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            description: Some(format!("Replaces what you remember as `{}`.", key.name.text).into()),
            ..ToolDecl::unknown(crate::decls::remember_tool(&key.name.text).into(), key.name.span)
        })
    }

    /// The prompt of an agent task that has none: its name and its arguments.
    pub(super) fn plain_prompt(&mut self, s: &Signature, at: Span) -> TermId {
        let mut parts =
            vec![self.b.lit(&*format!("Carry out the task `{}`.", declared_name(&s.name.text)), at)];
        for p in &s.params {
            parts.push(self.b.lit(&*format!("\n\n{}:\n", p.name.text), at));
            let mut value = self.variable(&p.name.text, at);
            if self.c.facts.divides && crate::check::holds_numbers(&p.ty) {
                value = self.operation(Operation::Named("agent.shown"), vec![value], at);
            }
            parts.push(value);
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }
}
