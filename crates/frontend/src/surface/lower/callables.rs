//! Pipelines, agents and tools as functions and declarations of a term.

use super::expr::literal_text;
use super::taint::Taint;
use super::taint::result_label;
use super::{Callable, Lower, REPAIR};
use crate::surface::decls::{AgentDecl, Budget, Kind, Memory, Param, Signature};
use core_ir::{
    Bound, Branch, Catches, Data, EffectClass, IfSugar, KeyDecl, LabelSpec, ModelParams, Name, Num, Prim,
    Recv, Role, StoreDecl, StoreId, Term, TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::Span;
use std::sync::Arc;
use syntax::agent::ast::{self, BodyKind, ExprKind, Item, Template, TemplatePart};

/// What a model's tool call is about.
pub(super) enum Invoked<'p> {
    Tool(ToolId),
    /// A key of the agent's memory.
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

/// A template with its holes as they are written, `{name}`, and braces doubled.
pub(super) fn holes_as_text(t: &Template) -> Data {
    let mut out = String::new();
    for p in &t.parts {
        match p {
            TemplatePart::Text(s) => out.push_str(&s.value.replace('{', "{{").replace('}', "}}")),
            TemplatePart::Hole(e) => {
                if let ExprKind::Var(x) = &e.kind {
                    out.push('{');
                    out.push_str(x);
                    out.push('}');
                }
            }
        }
    }
    Data::str(out)
}

/// How the runtime carries out a body: `{exec: [word, …]}`, `{builtin: name}`, `{http: {method, url}}` or
/// `{mcp: {server, tool}}`. Words and URLs contain holes `{parameter}`; braces that are text are doubled.
pub(super) fn handler(body: &BodyKind) -> Option<Data> {
    let one = |name: &str, value: Data| Some(Data::record([(Name::from(name), value)]));
    match body {
        BodyKind::Exec(words) => one("exec", Data::list(words.iter().map(holes_as_text))),
        BodyKind::Builtin(name) => one("builtin", Data::str(name.value.as_str())),
        BodyKind::Http(method, url) => one(
            "http",
            Data::record([
                ("method".into(), Data::str(method.text.as_str())),
                ("url".into(), holes_as_text(url)),
            ]),
        ),
        BodyKind::Mcp(server, tool) => one(
            "mcp",
            Data::record([
                ("server".into(), Data::str(server.value.as_str())),
                ("tool".into(), Data::str(tool.value.as_str())),
            ]),
        ),
        BodyKind::Empty | BodyKind::Prompt(_) | BodyKind::Error => None,
    }
}

impl Lower<'_> {
    /// The variable of the function of a pipeline that may call itself so often, as far as that is known.
    pub(super) fn pipeline_function(&mut self, s: &Signature, given: Taint, calls: Option<u64>) -> Name {
        let key = Callable { name: s.name.text.clone(), agent: None, given, pc: self.pc, calls };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        // What it calls is defined first; the checker has ruled out circles of several.
        if let Some(Item::Pipeline(p)) = self.c.program.items.get(s.item) {
            let term = stacker::maybe_grow(128 << 10, 1 << 20, || self.pipeline(p, given, calls));
            self.definitions.push((name.clone(), term));
        }
        name
    }

    /// The function of a pipeline; of one that calls itself, the fixpoint that calls itself so often at most.
    pub(super) fn pipeline(&mut self, p: &ast::Pipeline, given: Taint, calls: Option<u64>) -> TermId {
        let name = &p.name.text;
        let Some(descent) = self.c.facts.descents.get(name) else { return self.pipeline_once(p, given) };
        // One function for all calls: with whatever one of them may be given, under whatever may decide it.
        let added = self.c.decls.callables.get(name).map_or(Taint::NONE, |s| self.added(s, None));
        let given = given.join(added);
        let pc = self.pc;
        self.pc = pc.join(given);
        let again = self.b.fresh(name);
        self.again.insert(name.clone(), again.clone());
        let body = self.pipeline_once(p, given);
        self.again.remove(name);
        self.pc = pc;
        let body = self.b.abs(again, None, body, p.name.span);
        let (bound, origin) = match calls {
            Some(n) => (Bound::Finite(n), None),
            None => {
                let origin =
                    format!("`{name}` counts `{}` down, which is known only when it runs", descent.param);
                (Bound::Infinite, Some(Name::from(origin)))
            }
        };
        self.b.add(Term::Fix { bound, origin, body }, p.name.span)
    }

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

    /// What an import brings.
    pub(super) fn unit(&self, s: &Signature) -> Option<&crate::Unit> {
        let Item::Import(import) = self.c.program.items.get(s.item)? else { return None };
        self.c.files.unit(import.span)
    }

    /// The variable of the function that an import became: the unit, given what it takes, and what it gives checked.
    pub(super) fn import_function(&mut self, s: &Signature) -> Name {
        let key = Callable {
            name: s.name.text.clone(),
            agent: None,
            given: Taint::NONE,
            pc: Taint::NONE,
            calls: None,
        };
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let name = self.b.fresh(&s.name.text);
        self.functions.insert(key, name.clone());
        let Some(unit) = self.unit(s) else { return name };
        let (code, at) = (unit.code.clone(), s.name.span);
        let is_text = crate::surface::imports::inputs(unit).is_none();
        // Outermost, where nothing of the program is bound.
        let function = self.b.graft(&code);
        let grafted = self.b.fresh(&format!("{}_unit", s.name.text));
        self.definitions.push((grafted.clone(), function));
        let args = self.b.fresh("args");
        let mut input = self.b.var(args.clone(), at);
        if let (true, Some(only)) = (is_text, s.params.first()) {
            input = self.b.add(Term::Field(input, only.name.text.as_str().into()), at);
        }
        let function = self.b.var(grafted, at);
        let called = self.b.app(function, input, at);
        let called = if matches!(s.result, Type::Record(_) | Type::List(_) | Type::Num | Type::Bool) {
            self.decoded(called, at)
        } else {
            called
        };
        let what = format!("the result of `{}`", s.name.text);
        let checked = self.b.add(Term::Check(what.into(), s.result.clone(), called), at);
        let function = self.b.abs(args, None, checked, at);
        self.definitions.push((name.clone(), function));
        name
    }

    /// What a text says as JSON; anything else as it is.
    pub(super) fn decoded(&mut self, value: TermId, at: Span) -> TermId {
        let got = self.b.fresh("got");
        let (tested, read, other) =
            (self.b.var(got.clone(), at), self.b.var(got.clone(), at), self.b.var(got.clone(), at));
        let test = self.b.add(Term::Prim(Prim::IsStr, vec![tested]), at);
        let read = self.b.add(Term::Prim(Prim::FromJson, vec![read]), at);
        let chosen = self.b.add(Term::If(test, read, other, IfSugar::Plain), at);
        self.b.let_in(vec![(got, value)], chosen, at)
    }

    /// `λargs. …`: the prompt is put together, and the agent's model asked for a value of the result type.
    pub(super) fn agent_task(
        &mut self,
        s: &Signature,
        t: &ast::Callable,
        agent: &str,
        decl: &AgentDecl,
    ) -> TermId {
        let at = t.name.span;
        let args = self.b.fresh("args");
        let mut bindings = Vec::new();
        for p in &s.params {
            let of = self.b.var(args.clone(), p.name.span);
            let value = self.access(of, &p.name.text, matches!(p.ty, Type::Option(_)), p.name.span);
            bindings.push((self.bind(&p.name.text, Taint::NONE), value));
        }
        let prompt = match &t.body.kind {
            BodyKind::Prompt(template) => self.template(template),
            _ => self.plain_prompt(s, at),
        };
        let system = match self.c.program.items.get(decl.item) {
            Some(Item::Agent(a)) => a.fields.iter().find_map(|f| match &f.value {
                ast::AgentValue::Prompt(t) => Some((literal_text(t), t.span)),
                _ => None,
            }),
            _ => None,
        };
        let (system, system_span) = system.unwrap_or_else(|| (String::new(), decl.span));
        let tools: Vec<(String, ToolId)> = decl
            .tools
            .iter()
            .filter_map(|name| Some((name.clone(), self.tool(self.c.decls.tools.get(name)?)?)))
            .collect();
        let remembered: Vec<(&Param, ToolId)> =
            decl.memory.iter().flat_map(|m| &m.keys).map(|k| (k, self.remember_tool(k))).collect();
        let mut extra = vec![("agent".into(), Data::str(agent))];
        extra.extend(decl.budget.as_ref().map(|b| ("budget".into(), limits(b))));
        if !decl.fallback.is_empty() {
            let names = decl.fallback.iter().map(|n| Data::str(n.as_str()));
            extra.push(("fallback".into(), Data::list(names)));
        }
        let params = ModelParams {
            model: decl.model.as_deref().map(Name::from),
            temperature: decl.temperature.clone(),
            max_tokens: None,
            result: Some(s.result.clone()),
            repair: REPAIR,
            tools: tools.iter().map(|(_, id)| *id).chain(remembered.iter().map(|(_, id)| *id)).collect(),
            purpose: Some(s.name.text.as_str().into()),
            extra,
        };
        let system = match &decl.memory {
            Some(memory) => self.with_memory(&system, memory, system_span),
            None => self.b.lit(&*system, system_span),
        };
        let body = if params.tools.is_empty() {
            let model = self.b.add(Term::Llm(system, Arc::new(params)), at);
            self.b.app(model, prompt, at)
        } else {
            self.react(system, prompt, params, &tools, &remembered, agent, decl, at)
        };
        let body = match &decl.memory {
            Some(memory) => {
                let store = self.store(agent, memory);
                self.b.add(Term::Mem(store, body), at)
            }
            None => body,
        };
        let body = self.b.let_in(bindings, body, at);
        self.b.abs(args, None, body, at)
    }

    /// The ReAct loop: each unfolding asks the model once, and either gives its answer or carries out the
    /// tool call that it asks for and shows it the result. A tool that fails is shown as the error it gave.
    #[allow(clippy::too_many_arguments, reason = "one for each part of an agent")]
    pub(super) fn react(
        &mut self,
        system: TermId,
        prompt: TermId,
        params: ModelParams,
        tools: &[(String, ToolId)],
        remembered: &[(&Param, ToolId)],
        agent: &str,
        decl: &AgentDecl,
        at: Span,
    ) -> TermId {
        let (again, step) = (self.b.fresh("again"), self.b.fresh("step"));
        let mut branches = Vec::new();
        let calls = tools.iter().map(|(name, id)| (name.clone(), Invoked::Tool(*id)));
        let keys = remembered
            .iter()
            .map(|(k, _)| (crate::surface::decls::remember_tool(&k.name.text), Invoked::Key(k)));
        for (name, what) in calls.chain(keys) {
            let (call, seen, message) = (self.b.fresh("call"), self.b.fresh("seen"), self.b.fresh("message"));
            let arguments = self.b.var(call.clone(), at);
            // The call's program counter is the conversation's label already; what it does adds to that.
            let (invoke, adds) = match what {
                Invoked::Tool(id) => {
                    let tool = self.b.add(Term::Tool(id), at);
                    let adds = self.c.decls.tools.get(&name).map_or(Taint::NONE, |s| self.c.returns(s));
                    (self.b.app(tool, arguments, at), adds)
                }
                Invoked::Key(key) => {
                    let optional = matches!(key.ty, Type::Option(_));
                    let value = self.access(arguments, "value", optional, at);
                    let key_name = Name::from(key.name.text.as_str());
                    let kept = self.b.add(Term::Remember(key_name, None, value), at);
                    let done = self.b.lit("remembered", at);
                    let body = self.b.let_in(vec![("_".into(), kept)], done, at);
                    (body, self.memory_taint(decl, key))
                }
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
            branches.push(Branch { tag: name.as_str().into(), binder: Some(call), body });
        }
        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let value = self.b.add(Term::Tag("final".into(), Some(value)), at);
        branches.push(Branch { tag: "final".into(), binder: Some(answer), body: value });
        let reply = self.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
        let body = self.b.add(Term::Case { scrutinee: reply, branches, default: None }, at);
        let body = self.b.abs(step, None, body, at);
        let body = self.b.abs(again, None, body, at);
        let origin = (!decl.max_steps_given)
            .then(|| Name::from(format!("the default of {} steps", crate::surface::DEFAULT_MAX_STEPS)));
        let fix = self.b.add(Term::Fix { bound: Bound::Finite(decl.max_steps), origin, body }, at);
        let stopped = self.b.add(Term::Tag("stopped".into(), None), at);
        let run = self.b.app(fix, stopped, at);

        let answer = self.b.fresh("answer");
        let value = self.b.var(answer.clone(), at);
        let message = format!("agent `{agent}` used its {} steps without an answer", decl.max_steps);
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
        self.b.add(Term::Fresh(all), at)
    }

    /// The store of an agent's memory; all its tasks have the same.
    pub(super) fn store(&mut self, agent: &str, memory: &Memory) -> StoreId {
        if let Some(id) = self.stores.get(agent) {
            return *id;
        }
        let decl = self.c.decls.agents.get(agent);
        let keys = memory.keys.iter().map(|k| {
            let taint = decl.map_or(Taint::NONE, |d| self.memory_taint(d, k));
            KeyDecl {
                name: k.name.text.as_str().into(),
                ty: k.ty.clone(),
                label: LabelSpec::Axes { untrusted: taint.untrusted, secret: taint.secret },
                initial: None,
            }
        });
        let keys = keys.collect();
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

    /// How a model is offered to set a key. What it says is kept by the term itself, so nobody else hears of it.
    pub(super) fn remember_tool(&mut self, key: &Param) -> ToolId {
        self.b.tool(ToolDecl {
            params: vec![ToolParam { name: "value".into(), ty: key.ty.clone(), bound: LabelSpec::TOP }],
            result: Type::Str,
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            description: Some(format!("Replaces what you remember as `{}`.", key.name.text).into()),
            ..ToolDecl::unknown(crate::surface::decls::remember_tool(&key.name.text).into(), key.name.span)
        })
    }

    /// A system prompt with what the agent remembers.
    pub(super) fn with_memory(&mut self, system: &str, memory: &Memory, at: Span) -> TermId {
        let before = if system.is_empty() { "" } else { "\n\n" };
        let mut parts = vec![self.b.lit(&*format!("{system}{before}What you remember:"), at)];
        for key in &memory.keys {
            let held = self.b.fresh("held");
            parts.push(self.b.lit(&*format!("\n{}: ", key.name.text), at));
            let recall = self.b.add(Term::Recall(key.name.text.as_str().into(), None), at);
            let seen = self.b.var(held.clone(), at);
            let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
            let nothing = self.b.lit("nothing yet", at);
            let value = self.b.var(held.clone(), at);
            let shown = self.b.add(Term::Prim(Prim::ToStr, vec![value]), at);
            let choice = self.b.add(Term::If(absent, nothing, shown, IfSugar::Plain), at);
            parts.push(self.b.let_in(vec![(held, recall)], choice, at));
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }

    /// The prompt of an agent task that has none: its name and its arguments.
    pub(super) fn plain_prompt(&mut self, s: &Signature, at: Span) -> TermId {
        let mut parts = vec![self.b.lit(&*format!("Carry out the task `{}`.", s.name.text), at)];
        for p in &s.params {
            parts.push(self.b.lit(&*format!("\n\n{}:\n", p.name.text), at));
            parts.push(self.variable(&p.name.text, at));
        }
        self.b.add(Term::Prim(Prim::Format, parts), at)
    }

    /// The declaration of a tool, or of a task that no agent carries out.
    pub(super) fn tool(&mut self, s: &Signature) -> Option<ToolId> {
        let key = (s.kind == Kind::Tool, s.name.text.clone());
        if let Some(id) = self.tools.get(&key) {
            return Some(*id);
        }
        let (Item::Tool(c) | Item::Task(c)) = self.c.program.items.get(s.item)? else { return None };
        let class = s.flow.class.unwrap_or_default();
        let said = s.flow.requires_trusted || s.flow.requires_public;
        // A tool that may change the world takes only trusted and public data unless it says otherwise. A
        // task is the program's own code and takes everything.
        let careful = class == EffectClass::Write && (s.kind == Kind::Tool || s.flow.class.is_some());
        let control = match (said, careful) {
            (true, _) => {
                LabelSpec::Axes { untrusted: !s.flow.requires_trusted, secret: !s.flow.requires_public }
            }
            (false, true) => LabelSpec::BOTTOM,
            (false, false) => LabelSpec::TOP,
        };
        let params = s
            .params
            .iter()
            .map(|p| {
                let own = p.flow.requires_trusted || p.flow.requires_public;
                let bound =
                    LabelSpec::Axes { untrusted: !p.flow.requires_trusted, secret: !p.flow.requires_public };
                ToolParam {
                    name: p.name.text.as_str().into(),
                    ty: p.ty.clone(),
                    bound: if own { bound } else { control.clone() },
                }
            })
            .collect();
        let id = self.b.tool(ToolDecl {
            name: self.c.decls.handler_name(s).into(),
            params,
            result: s.result.clone(),
            effect: class,
            control,
            label: result_label(&s.flow),
            description: self.comment_above(c.span),
            handler: handler(&c.body.kind),
            approve: false,
            policy: None,
            span: c.span,
        });
        self.tools.insert(key, id);
        Some(id)
    }

    /// The comment on the lines directly above a declaration, which tells models what a tool is for.
    pub(super) fn comment_above(&self, declaration: Span) -> Option<Name> {
        let comments = &self.c.files.get(declaration.file)?.comments;
        let last = comments.partition_point(|c| c.span.end <= declaration.start);
        let mut lines = Vec::new();
        let mut below = declaration.start;
        for comment in comments[..last].iter().rev() {
            let between = self.c.files.text(Span { start: comment.span.end, end: below, ..declaration })?;
            if !comment.own_line || !between.trim().is_empty() || between.matches('\n').count() != 1 {
                break;
            }
            let text = self.c.files.text(comment.span)?;
            lines.push(text.trim_start_matches(['-', '/']).trim());
            below = comment.span.start;
        }
        lines.reverse();
        let text = lines.join(" ").trim().to_string();
        (!text.is_empty()).then(|| text.into())
    }
}
