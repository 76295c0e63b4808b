//! The declarations of a program: what can be named, with signatures.

use super::check::duplicate;
use super::codes;
use super::files::Files;
use super::generics;
use super::scopes::declared_name;
use super::types::Types;
use core_ir::{Data, Num, Type};
use diagnostics::{Applicability, Diagnostic, Fix, Span, nearest};
use std::collections::{HashMap, HashSet};
use syntax::agent::ast::{self, AgentValue, BodyKind, FlowKind, Item};

/// Default of `max_steps` of an agent.
pub const DEFAULT_MAX_STEPS: u64 = 12;

/// Kind of a callable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallableKind {
    Tool,
    Task,
    AgentTask,
    Pipeline,
    /// A `fn`.
    Function,
    /// A unit of an imported configuration.
    Import,
}

impl CallableKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CallableKind::Tool => "tool",
            CallableKind::Task => "task",
            CallableKind::AgentTask => "agent task",
            CallableKind::Pipeline => "pipeline",
            CallableKind::Function => "fn",
            CallableKind::Import => "import",
        }
    }
}

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Param {
    pub(super) name: ast::Name,
    pub(super) ty: Type,
    pub(super) flow: Flow,
    /// The value where a call leaves it out.
    pub(super) default: Option<ast::Expr>,
}

impl Param {
    /// Its type in the input of a pipeline, where one with a default may be left out.
    pub(super) fn input(&self) -> Type {
        match self.default {
            Some(_) => Type::option(self.ty.clone()),
            None => self.ty.clone(),
        }
    }
}

/// Meaning of a declaration's flow words.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// `pure`, `reads` or `writes`, if one is given.
    pub(super) class: Option<core_ir::EffectClass>,
    pub(super) untrusted: bool,
    pub(super) secret: bool,
    pub(super) requires_trusted: bool,
    pub(super) requires_public: bool,
    /// Place of its `requires`.
    pub(super) requires: Option<Span>,
    /// The policies that are named.
    pub(super) policies: Vec<ast::Name>,
}

/// A signature.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) kind: CallableKind,
    /// The types that a call of a `fn` decides.
    pub(super) generics: HashSet<String>,
    pub(super) name: ast::Name,
    pub(super) params: Vec<Param>,
    pub(super) result: Type,
    pub(super) flow: Flow,
    /// External name of a tool, if it differs.
    pub(super) called: Option<String>,
    /// Index of its item in the program.
    pub(super) item: usize,
}

/// The field of an example that is the input of its task; a task without parameters has none.
pub(super) const EXAMPLE_INPUT: &str = "input";

/// The field of an example that is the answer.
pub(super) const EXAMPLE_OUTPUT: &str = "output";

impl Signature {
    /// The type of the examples of a task.
    pub(super) fn examples(&self) -> Type {
        let input = Type::record(self.params.iter().map(|p| (p.name.text.as_str().into(), p.ty.clone())));
        let input = (!self.params.is_empty()).then_some((EXAMPLE_INPUT.into(), input));
        let output = (EXAMPLE_OUTPUT.into(), self.result.clone());
        Type::list(Type::record(input.into_iter().chain([output])))
    }
}

/// An agent.
#[derive(Clone, Debug)]
pub(super) struct AgentDecl {
    pub(super) span: Span,
    pub(super) model: Option<String>,
    /// The models that are asked if that one can't be.
    pub(super) fallback: Vec<String>,
    /// Names of declared tools.
    pub(super) tools: Vec<String>,
    /// Calls offered to its model, in the order of the text.
    pub(super) offers: Vec<Offer>,
    /// Steps at most; `None` is without limit.
    pub(super) max_steps: Option<u64>,
    /// True if the program states the bound.
    pub(super) max_steps_given: bool,
    /// True if each step is a new request with one text that contains everything said so far.
    pub(super) as_text: bool,
    /// And of the calls of a reply only the first is carried out.
    pub(super) one_action: bool,
    pub(super) temperature: Option<Num>,
    pub(super) max_tokens: Option<u64>,
    /// Further settings for the model's server.
    pub(super) settings: Vec<(core_ir::Name, Data)>,
    pub(super) memory: Option<Memory>,
    pub(super) budget: Option<Budget>,
    pub(super) item: usize,
}

/// A call that an agent's model may choose.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// The tool, agent, task or pipeline.
    pub(super) name: ast::Name,
    /// Name shown to the model.
    pub(super) called: String,
    pub(super) kind: ActionKind,
}

/// Effect of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionKind {
    /// A tool, whose result the model is shown.
    Call,
    /// A tool, whose result is the answer.
    Finish,
    /// Somebody is asked, and the answer shown.
    Ask,
    /// Somebody else goes on.
    HandOff,
}

/// Values that an agent keeps from one task to the next.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub(super) store: Option<String>,
    pub(super) keys: Vec<Param>,
    pub(super) size: Option<u64>,
    pub(super) ttl: Option<u64>,
    pub(super) span: Span,
}

/// Budget of an agent in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// US dollars.
    pub usd: Option<Num>,
    /// Calls of models.
    pub calls: Option<u64>,
}

/// A value with a name, for all of the program.
#[derive(Clone, Debug)]
pub(super) struct ConstDecl {
    pub(super) name: ast::Name,
    /// Its declared type.
    pub(super) ty: Option<Type>,
    pub(super) value: ast::Expr,
}

/// All declarations of a program.
#[derive(Debug, Default)]
pub(super) struct Decls {
    pub(super) types: Types,
    /// The types of the rows of tests, by the place of the clause. `Any` where none is declared.
    pub(super) rows: HashMap<Span, Type>,
    pub(super) agents: HashMap<String, AgentDecl>,
    pub(super) tools: HashMap<String, Signature>,
    /// Tasks, pipelines, functions and workflows: one name space.
    pub(super) callables: HashMap<String, Signature>,
    pub(super) constants: HashMap<String, ConstDecl>,
}

/// A signature as it is written.
struct Heading<'a> {
    kind: CallableKind,
    generics: &'a [ast::Name],
    name: &'a ast::Name,
    params: &'a [ast::Field],
    result: &'a ast::TypeExpr,
    flow: Flow,
}

impl<'a> Heading<'a> {
    /// One without words about what flows.
    fn plain(
        kind: CallableKind,
        name: &'a ast::Name,
        params: &'a [ast::Field],
        result: &'a ast::TypeExpr,
    ) -> Heading<'a> {
        Heading { kind, generics: &[], name, params, result, flow: Flow::default() }
    }
}

impl Decls {
    /// Returns the callable of a name. A tool is found only if no task or pipeline has the name.
    pub(super) fn callable(&self, name: &str) -> Option<&Signature> {
        self.callables.get(name).or_else(|| self.tools.get(name))
    }

    /// Returns the `fn` of a name.
    pub(super) fn function(&self, name: &str) -> Option<&Signature> {
        self.callables.get(name).filter(|s| s.kind == CallableKind::Function)
    }

    /// Collects the declarations; reports what is wrong with them by themselves.
    pub(super) fn collect(program: &ast::Program, files: &Files, out: &mut Vec<Diagnostic>) -> Decls {
        let mut decls = Decls { types: Types::collect(program, files, out), ..Decls::default() };
        for (index, item) in program.items.iter().enumerate() {
            match item {
                Item::Tool(c) | Item::Task(c) => {
                    let kind = match (item, c.by_agent) {
                        (Item::Tool(_), _) => CallableKind::Tool,
                        (_, Some(_)) => CallableKind::AgentTask,
                        (_, None) => CallableKind::Task,
                    };
                    check_body(c, kind, out);
                    if kind == CallableKind::AgentTask {
                        idle_words(kind, &c.name.text, &c.flow, false, out);
                    }
                    let flow = flow(&c.flow, out);
                    let heading = Heading {
                        kind,
                        generics: &[],
                        name: &c.name,
                        params: &c.params,
                        result: &c.result,
                        flow,
                    };
                    decls.add(heading, index, out);
                    if let Some(called) = &c.called {
                        decls.call_it(&c.name, called, out);
                    }
                }
                Item::Pipeline(p) => {
                    decls.add(
                        Heading::plain(CallableKind::Pipeline, &p.name, &p.params, &p.result),
                        index,
                        out,
                    );
                }
                Item::Function(p) => {
                    for word in p.params.iter().flat_map(|q| &q.flow) {
                        out.push(
                            Diagnostic::error(
                                codes::NO_EFFECT,
                                "a `fn` has no flow words: its result has the labels of its arguments",
                                word.span,
                            )
                            .help("say it of a tool, or of the input of a pipeline"),
                        );
                    }
                    let heading = Heading::plain(CallableKind::Function, &p.name, &p.params, &p.result);
                    decls.add(Heading { generics: &p.generics, ..heading }, index, out);
                }
                Item::Workflow(w) => {
                    decls.add(
                        Heading::plain(CallableKind::Pipeline, &w.name, &w.params, &w.result),
                        index,
                        out,
                    );
                }
                Item::Import(i) => {
                    decls.add(
                        Heading::plain(CallableKind::Import, &i.name, &i.params, &i.result),
                        index,
                        out,
                    );
                }
                Item::Const(c) => match decls.constants.get(&c.name.text) {
                    Some(first) => out.push(duplicate("constant", &c.name, first.name.span)),
                    None => {
                        let ty = c.ty.as_ref().map(|t| decls.types.ty(t, out));
                        let decl = ConstDecl { name: c.name.clone(), ty, value: c.value.clone() };
                        decls.constants.insert(c.name.text.clone(), decl);
                    }
                },
                Item::Use(_)
                | Item::Alias(_)
                | Item::Enum(_)
                | Item::Sum(_)
                | Item::Agent(_)
                | Item::Policy(_) => {}
                Item::Test(t) => {
                    let Some(rows) = &t.rows else { continue };
                    let ty = rows.ty.as_ref().map_or(Type::Dyn, |ty| decls.types.ty(ty, out));
                    decls.rows.insert(rows.span, ty);
                }
            }
        }
        for (index, item) in program.items.iter().enumerate() {
            if let Item::Agent(a) = item {
                decls.add_agent(a, index, out);
            }
        }
        for item in &program.items {
            if let Item::Agent(a) = item {
                decls.others(a, out);
            }
        }
        decls.one_handler_each(out);
        decls
    }

    /// Reports tools and tasks of different files that have one handler.
    fn one_handler_each(&self, out: &mut Vec<Diagnostic>) {
        let is_called = |s: &&Signature| matches!(s.kind, CallableKind::Tool | CallableKind::Task);
        let mut all: Vec<&Signature> =
            self.tools.values().chain(self.callables.values()).filter(is_called).collect();
        all.sort_by_key(|s| (declared_name(&s.name.text).len() < s.name.text.len(), s.name.span));
        let mut known: HashMap<String, &Signature> = HashMap::new();
        for s in all {
            let name = self.handler_name(s);
            match known.get(&name) {
                // Outside names that are the same in one file are reported where they are declared.
                Some(first) if first.name.span.file != s.name.span.file => {
                    let kind = first.kind.as_str();
                    let message = format!(
                        "another {kind} is called `{}` outside of the program",
                        diagnostics::clip(&name)
                    );
                    let d = Diagnostic::error(codes::BAD_SETTING, message, s.name.span)
                        .remark(first.name.span, "this one");
                    out.push(d.help(match s.kind {
                        CallableKind::Tool => format!(
                            "their handlers would be ambiguous; give one another name after its result type: \
                             `as \"other_{name}\"`"
                        ),
                        _ => "their handlers would be ambiguous; give one of them another name".to_string(),
                    }));
                }
                Some(_) => {}
                None => drop(known.insert(name, s)),
            }
        }
    }

    /// Gives a tool its name outside of the program.
    fn call_it(&mut self, name: &ast::Name, called: &ast::StrLit, out: &mut Vec<Diagnostic>) {
        let outside = |s: &Signature| s.called.clone().unwrap_or_else(|| s.name.text.clone());
        let others = self.tools.values().filter(|s| s.name.span != name.span);
        if let Some(twin) = others.into_iter().find(|s| outside(s) == called.value) {
            let message = format!(
                "another tool is called `{}` outside of the program",
                diagnostics::clip(&called.value)
            );
            out.push(
                Diagnostic::error(codes::BAD_SETTING, message, called.span)
                    .remark(twin.name.span, "this one")
                    .help("their handlers would be ambiguous; choose another name"),
            );
        }
        if called.value.is_empty() || called.value == "final" {
            out.push(
                Diagnostic::error(codes::BAD_SETTING, "a tool can't be called that", called.span)
                    .help("`final` is how a model marks its answer; choose another name"),
            );
        }
        if let Some(signature) = self.tools.get_mut(&name.text).filter(|s| s.name.span == name.span) {
            signature.called = Some(called.value.clone());
        }
    }

    /// Checks that the agents that one asks or hands off to exist, and that they take and return a text.
    fn others(&self, a: &ast::Agent, out: &mut Vec<Diagnostic>) {
        let Some(decl) = self.agents.get(&a.name.text).filter(|d| d.span == a.name.span) else { return };
        for (i, offer) in decl.offers.iter().enumerate() {
            if let Some(first) = decl.offers[..i].iter().find(|o| o.called == offer.called) {
                let name = ast::Name { text: offer.called.clone(), span: offer.name.span };
                out.push(duplicate("tool", &name, first.name.span));
            }
            if offer.called == "final" {
                out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        "no tool or agent can have the name `final`",
                        offer.name.span,
                    )
                    .help("`final` is how a model marks its answer; say what it is called: `as \"…\"`"),
                );
            }
            if !matches!(offer.kind, ActionKind::Ask | ActionKind::HandOff)
                || self.agents.contains_key(&offer.name.text)
            {
                continue;
            }
            let name = &offer.name.text;
            let Some(s) = self.callables.get(name) else {
                let message = format!("there is no agent or pipeline `{name}`");
                let d = Diagnostic::error(codes::UNKNOWN_AGENT, message, offer.name.span);
                let known = self.agents.keys().chain(self.callables.keys()).map(String::as_str);
                out.push(match nearest(name, known) {
                    Some(near) => super::check::suggest(d, near),
                    None => d.help(format!("declare it: `agent {name} {{ tools: [] }}`")),
                });
                continue;
            };
            let fits = matches!(s.kind, CallableKind::Pipeline | CallableKind::Import)
                && matches!(&s.params[..], [only] if Type::Str.is_subtype(&only.ty))
                && s.result.is_subtype(&Type::Str);
            if !fits {
                let message = format!("`{name}` can't be asked: {}", super::check::usage(s));
                out.push(
                    Diagnostic::error(codes::BAD_SETTING, message, offer.name.span)
                        .remark(s.name.span, "declared here")
                        .help("ask an agent, or a pipeline from one String to a String"),
                );
            }
        }
    }

    /// The name by which the handler of a tool or task is found: its own; but a task that shares its name
    /// with a tool is `task_NAME`, with as many underscores as it takes to be nobody else's.
    pub(super) fn handler_name(&self, s: &Signature) -> String {
        let mut name = declared_name(&s.name.text).to_string();
        if let Some(called) = &s.called {
            return called.clone();
        }
        if s.kind == CallableKind::Tool || !self.tools.contains_key(&s.name.text) {
            return name;
        }
        name.insert_str(0, "task_");
        while self.tools.contains_key(&name) || self.callables.contains_key(&name) {
            name.push('_');
        }
        name
    }

    fn add(&mut self, heading: Heading<'_>, item: usize, out: &mut Vec<Diagnostic>) {
        let Heading { kind, generics: given, name, params, result, flow } = heading;
        let mut generics = HashSet::new();
        for (i, g) in given.iter().enumerate() {
            if let Some(first) = given[..i].iter().find(|h| h.text == g.text) {
                out.push(duplicate("type", g, first.span));
            } else if self.types.is_taken(&g.text) {
                out.push(
                    Diagnostic::error(
                        codes::BAD_GENERIC,
                        format!("`{}` is a type already, so no call can decide it", g.text),
                        g.span,
                    )
                    .help("choose another name, for example `T`"),
                );
            } else {
                generics.insert(g.text.clone());
            }
        }
        let mut resolved: Vec<Param> = Vec::new();
        for p in params {
            if let Some(first) = resolved.iter().find(|q| q.name.text == p.name.text) {
                out.push(duplicate("parameter", &p.name, first.name.span));
                continue;
            }
            let flow = self::flow(&p.flow, out);
            if let Some(word) = p.flow.first().filter(|_| flow.class.is_some()) {
                out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        "what a tool does is not said at a parameter",
                        word.span,
                    )
                    .help("write `pure`, `reads` or `writes` after the result type"),
                );
            }
            let contradiction =
                match (flow.requires_trusted && flow.untrusted, flow.requires_public && flow.secret) {
                    (true, _) => Some("an input that is untrusted can't be required to be trusted"),
                    (_, true) => Some("an input that is secret can't be required to be public"),
                    _ => None,
                };
            if !matches!(kind, CallableKind::Pipeline | CallableKind::Function) && contradiction.is_none() {
                idle_words(kind, &name.text, &p.flow, true, out);
            }
            if let (Some(message), Some(at)) = (contradiction, flow.requires) {
                out.push(
                    Diagnostic::error(codes::BAD_SETTING, message, at)
                        .help("remove one of the two words: no call could satisfy both"),
                );
            }
            if let (Some(policy), CallableKind::Pipeline) = (flow.policies.first(), kind) {
                out.push(
                    Diagnostic::error(codes::BAD_SETTING, "a policy is about a tool or a task", policy.span)
                        .help("put it on the tool that the value goes to"),
                );
            }
            let ty = self.types.ty_in(&p.ty, &generics, out);
            let default = match &p.default {
                Some(e) => may_default(kind, &ty, e, out).then(|| e.clone()),
                None => None,
            };
            resolved.push(Param { name: p.name.clone(), ty, flow, default });
        }
        let result = self.types.ty_in(result, &generics, out);
        let mut mentioned = Vec::new();
        resolved.iter().for_each(|p| generics::collect(&p.ty, &generics, &mut mentioned));
        for g in given.iter().filter(|g| generics.contains(&g.text)) {
            if !mentioned.iter().any(|n| **n == *g.text) {
                out.push(
                    Diagnostic::error(
                        codes::BAD_GENERIC,
                        format!("no parameter says what `{}` is", g.text),
                        g.span,
                    )
                    .help(format!("the arguments of a call decide it: `(xs: List[{}])`", g.text)),
                );
            }
        }
        let table = if kind == CallableKind::Tool { &mut self.tools } else { &mut self.callables };
        if let Some(first) = table.get(&name.text) {
            let what = match kind {
                CallableKind::Tool => "tool",
                CallableKind::Function => "fn",
                _ => "task or pipeline",
            };
            out.push(duplicate(what, name, first.name.span));
            return;
        }
        let signature = Signature {
            kind,
            generics,
            name: name.clone(),
            params: resolved,
            result,
            flow,
            called: None,
            item,
        };
        table.insert(name.text.clone(), signature);
    }

    fn add_agent(&mut self, a: &ast::Agent, item: usize, out: &mut Vec<Diagnostic>) {
        if let Some(first) = self.agents.get(&a.name.text) {
            out.push(duplicate("agent", &a.name, first.span));
            return;
        }
        let mut decl = AgentDecl {
            span: a.name.span,
            model: None,
            fallback: Vec::new(),
            tools: Vec::new(),
            offers: Vec::new(),
            max_steps: Some(DEFAULT_MAX_STEPS),
            max_steps_given: false,
            as_text: false,
            one_action: false,
            temperature: None,
            max_tokens: None,
            settings: Vec::new(),
            memory: None,
            budget: None,
            item,
        };
        let mut has_tools = false;
        for (i, field) in a.fields.iter().enumerate() {
            if let Some(first) = a.fields[..i].iter().find(|f| f.name.text == field.name.text) {
                out.push(duplicate("field", &field.name, first.name.span));
                continue;
            }
            has_tools |= field.name.text == "tools";
            match &field.value {
                AgentValue::Model(names) => {
                    let mut names = names.iter().map(|m| m.value.clone());
                    (decl.model, decl.fallback) = (names.next(), names.collect());
                }
                AgentValue::Tools(names, _) => self.agent_tools(names, &mut decl, out),
                AgentValue::MaxSteps(n) => match n.text.parse::<u64>() {
                    Ok(0) => out.push(
                        Diagnostic::error(codes::BAD_SETTING, "an agent needs at least one step", n.span)
                            .help("one step is one call of the model"),
                    ),
                    Ok(steps) => (decl.max_steps, decl.max_steps_given) = (Some(steps), true),
                    // Not a whole number; the parser said so.
                    Err(_) => {}
                },
                AgentValue::Unlimited(_) => (decl.max_steps, decl.max_steps_given) = (None, true),
                AgentValue::Temperature(n) => decl.temperature = n.text.parse().ok(),
                AgentValue::MaxTokens(n) => match n.text.parse::<u64>() {
                    Ok(0) => out.push(
                        Diagnostic::error(codes::BAD_SETTING, "a reply needs at least one token", n.span)
                            .help("write the most tokens that a reply may have"),
                    ),
                    // What is no whole number was reported by the parser.
                    n => decl.max_tokens = n.ok(),
                },
                AgentValue::Settings(settings, _) => decl.settings = self::settings(settings, out),
                AgentValue::Talk(how) => match &*how.text {
                    how @ ("text" | "actions" | "conversation") => {
                        decl.as_text = how != "conversation";
                        decl.one_action = how == "actions";
                    }
                    other => out.push(
                        Diagnostic::error(
                            codes::BAD_SETTING,
                            format!("`{}` is not a value of `talk`", diagnostics::clip(other)),
                            how.span,
                        )
                        .help("write `conversation`, `text` for one text that grows, or `actions` for one that takes one action at a time"),
                    ),
                },
                AgentValue::Helpers(others, _) => decl.offers.extend(offered(others, ActionKind::Ask)),
                AgentValue::Handoffs(others, _) => decl.offers.extend(offered(others, ActionKind::HandOff)),
                AgentValue::FinalTools(..) => {}
                AgentValue::Prompt(t) => {
                    for part in &t.parts {
                        if let ast::TemplatePart::Hole(e) = part {
                            out.push(
                                Diagnostic::error(
                                    codes::HOLE_IN_PROMPT,
                                    "an agent's prompt has no parameters to put into a hole",
                                    e.span,
                                )
                                .help("write `{{` and `}}` for braces that are text; values belong into the prompt of a task"),
                            );
                        }
                    }
                }
                AgentValue::Memory(m) => decl.memory = Some(self.memory(m, out)),
                AgentValue::Budget(limits, span) => decl.budget = Some(budget(limits, *span, out)),
                AgentValue::Error => {}
            }
        }
        for field in &a.fields {
            let AgentValue::FinalTools(names, _) = &field.value else { continue };
            for name in names {
                match decl.offers.iter_mut().find(|o| o.kind == ActionKind::Call && o.name.text == name.text)
                {
                    Some(offer) => offer.kind = ActionKind::Finish,
                    None => out.push(
                        Diagnostic::error(
                            codes::UNKNOWN_TOOL,
                            format!("`{}` is none of the agent's `tools`", name.text),
                            name.span,
                        )
                        .help("name those of its tools whose result is the answer"),
                    ),
                }
            }
        }
        if !has_tools {
            out.push(
                Diagnostic::error(
                    codes::NO_TOOLS_FIELD,
                    format!("agent `{}` does not say which tools it has", a.name.text),
                    a.name.span,
                )
                .help("add `tools: []` if it needs none")
                .fix({
                    let at = a.fields.first().map_or(a.span.end.saturating_sub(1), |f| f.name.span.start);
                    let comma = if a.fields.is_empty() { " " } else { ", " };
                    Fix {
                        span: Span { start: at, end: at, ..a.span },
                        replacement: format!("tools: []{comma}"),
                        applicability: Applicability::Unsafe,
                    }
                }),
            );
        }
        for key in decl.memory.iter().flat_map(|m| &m.keys) {
            let tool = remember_tool(&key.name.text);
            if decl.tools.contains(&tool) {
                out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        format!("the agent has a tool `{tool}`, which is how it would set this key"),
                        key.name.span,
                    )
                    .help("choose another name for the key or the tool"),
                );
            }
        }
        self.agents.insert(a.name.text.clone(), decl);
    }

    fn memory(&self, m: &ast::Memory, out: &mut Vec<Diagnostic>) -> Memory {
        let mut bad = |span: Span, what: &str, help: &str| {
            out.push(Diagnostic::error(codes::BAD_SETTING, what, span).help(help));
        };
        if m.keys.is_empty() {
            bad(m.span, "a memory without keys", "say what it holds: `keys: { notes: List[String] }`");
        }
        let mut positive = |n: &ast::Number, what: &str| match n.text.parse::<u64>() {
            Ok(0) => {
                bad(n.span, &format!("{what} of 0 keeps nothing"), "write a number of at least 1");
                None
            }
            Ok(n) => Some(n),
            Err(_) => {
                bad(n.span, &format!("{what} is a whole number"), "write for example `7200`");
                None
            }
        };
        let size = m.size.as_ref().and_then(|n| positive(n, "a size"));
        let ttl = m.ttl.as_ref().and_then(|n| positive(n, "a time to live, in seconds,"));
        let mut keys: Vec<Param> = Vec::new();
        for k in &m.keys {
            if let Some(first) = keys.iter().find(|q| q.name.text == k.name.text) {
                out.push(duplicate("key", &k.name, first.name.span));
                continue;
            }
            let flow = flow(&k.flow, out);
            let allowed = |w: &&ast::FlowWord| matches!(w.kind, FlowKind::Untrusted | FlowKind::Secret);
            if let Some(word) = k.flow.iter().find(|w| !allowed(w)) {
                out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        "a key holds data; it does and requires nothing",
                        word.span,
                    )
                    .help("only `untrusted` and `secret` are allowed here"),
                );
            }
            keys.push(Param { name: k.name.clone(), ty: self.types.ty(&k.ty, out), flow, default: None });
        }
        Memory { store: m.store.as_ref().map(|s| s.value.clone()), keys, size, ttl, span: m.span }
    }

    fn agent_tools(&self, names: &[ast::Name], decl: &mut AgentDecl, out: &mut Vec<Diagnostic>) {
        for (i, name) in names.iter().enumerate() {
            if let Some(first) = names[..i].iter().find(|n| n.text == name.text) {
                out.push(duplicate("tool", name, first.span));
            } else if declared_name(&name.text) == "final" {
                out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        "an agent can't be offered a tool called `final`",
                        name.span,
                    )
                    .help("`final` is how a model marks its answer; choose another name for the tool"),
                );
            } else if let Some(s) = self.tools.get(&name.text) {
                decl.tools.push(name.text.clone());
                let called = self.handler_name(s);
                decl.offers.push(Offer { name: name.clone(), called, kind: ActionKind::Call });
            } else {
                let mut d = Diagnostic::error(
                    codes::UNKNOWN_TOOL,
                    format!("there is no tool `{}`", name.text),
                    name.span,
                );
                d = match nearest(&name.text, self.tools.keys().map(String::as_str)) {
                    Some(near) => super::check::suggest(d, near),
                    None if self.callables.contains_key(&name.text) => d
                        .remark(self.callables[&name.text].name.span, "this is a task or a pipeline")
                        .help("agents use tools declared with `tool`"),
                    None => d.help(format!("declare it: `tool {}(…) -> Type {{}}`", name.text)),
                };
                out.push(d);
            }
        }
    }
}

/// Reports a default of a parameter that can have none. Returns whether it can.
fn may_default(kind: CallableKind, ty: &Type, value: &ast::Expr, out: &mut Vec<Diagnostic>) -> bool {
    let d = |message: &str| Diagnostic::error(codes::BAD_SETTING, message, value.span);
    let d = match (kind, ty) {
        // What may be left out outside of the program is null in it.
        (CallableKind::Tool, Type::Option(_)) if matches!(value.kind, ast::ExprKind::Null) => return true,
        (CallableKind::Tool | CallableKind::Import, _) => {
            d(&format!("a parameter of a {} has no default", kind.as_str()))
                .help("whoever calls it gives all arguments, but those of a tool with `Option[Type] = null`")
        }
        (_, Type::Option(_) | Type::Null) => d("a parameter that may be null has no default")
            .help("give it the type of the value: with a default it may be left out"),
        _ => return true,
    };
    out.push(d);
    false
}

fn offered(others: &[ast::Offered], kind: ActionKind) -> impl Iterator<Item = Offer> + '_ {
    others.iter().map(move |o| Offer {
        name: o.name.clone(),
        called: o
            .called
            .as_ref()
            .map_or_else(|| declared_name(&o.name.text).to_string(), |c| c.value.clone()),
        kind,
    })
}

/// Settings, which are constants.
fn settings(settings: &[(ast::Name, ast::Expr)], out: &mut Vec<Diagnostic>) -> Vec<(core_ir::Name, Data)> {
    let mut all: Vec<(core_ir::Name, Data)> = Vec::new();
    for (i, (name, e)) in settings.iter().enumerate() {
        if let Some((first, _)) = settings[..i].iter().find(|(m, _)| m.text == name.text) {
            out.push(duplicate("setting", name, first.span));
            continue;
        }
        // What the language has a field or a place for is not said twice.
        if matches!(&*name.text, "model" | "temperature" | "max_tokens" | "agent" | "budget" | "fallback") {
            out.push(
                Diagnostic::error(codes::BAD_SETTING, format!("`{}` is not a setting", name.text), name.span)
                    .help("settings are what the language has no field for; `model`, `temperature`, `max_tokens` and `budget` are fields"),
            );
            continue;
        }
        match constant(e) {
            Ok(data) => all.push((name.text.as_str().into(), data)),
            Err(at) => out.push(
                Diagnostic::error(codes::BAD_SETTING, "a setting is a constant", at)
                    .help("write a text, a number, `true`, `false`, `null`, or a list or record of such"),
            ),
        }
    }
    all
}

/// The value of an expression that needs no run; otherwise the place that does.
pub(super) fn constant(e: &ast::Expr) -> Result<Data, Span> {
    use ast::{ExprKind, UnaryOp};
    // As deep as the parser lets expressions nest.
    Ok(match &e.kind {
        ExprKind::Str(s) => Data::str(&**s),
        ExprKind::Number(n) => Data::Num(n.parse().map_err(|_| e.span)?),
        ExprKind::Bool(b) => Data::Bool(*b),
        ExprKind::Null => Data::Null,
        ExprKind::Paren(inner) => constant(inner)?,
        ExprKind::Unary(UnaryOp::Neg, inner) => match constant(inner)? {
            Data::Num(n) => Data::Num(n.neg()),
            _ => return Err(e.span),
        },
        ExprKind::List(items) => Data::list(items.iter().map(constant).collect::<Result<Vec<_>, _>>()?),
        ExprKind::Record(fields) | ExprKind::Map(fields) => {
            let fields = fields.iter().map(|(n, e)| Ok((core_ir::Name::from(n.text.as_str()), constant(e)?)));
            Data::record(fields.collect::<Result<Vec<_>, Span>>()?)
        }
        // What could not be read was reported.
        ExprKind::Error => Data::Null,
        _ => return Err(e.span),
    })
}

/// The tool by which an agent sets a key of its memory.
pub(super) fn remember_tool(key: &str) -> String {
    format!("remember_{key}")
}

fn budget(limits: &[(ast::Name, ast::Number)], span: Span, out: &mut Vec<Diagnostic>) -> Budget {
    let mut budget = Budget::default();
    for (i, (name, n)) in limits.iter().enumerate() {
        if let Some((first, _)) = limits[..i].iter().find(|(m, _)| m.text == name.text) {
            out.push(duplicate("limit", name, first.span));
            continue;
        }
        match &*name.text {
            "usd" => budget.usd = n.text.parse().ok(),
            "calls" => match n.text.parse::<u64>() {
                Ok(calls) if calls > 0 => budget.calls = Some(calls),
                _ => out.push(
                    Diagnostic::error(
                        codes::BAD_SETTING,
                        "a number of calls is a whole number above 0",
                        n.span,
                    )
                    .help("write for example `calls: 20`"),
                ),
            },
            other => out.push(
                Diagnostic::error(
                    codes::UNKNOWN_SETTING,
                    format!("a budget has no limit `{other}`"),
                    name.span,
                )
                .help("its limits are `usd` and `calls`"),
            ),
        }
    }
    if limits.is_empty() {
        out.push(
            Diagnostic::error(codes::BAD_SETTING, "a budget without limits", span)
                .help("write `usd` or `calls` and a number, or leave the budget out"),
        );
    }
    budget
}

/// Reports flow words that do nothing where they stand: at a parameter of a tool or task, or at a task by an
/// agent.
fn idle_words(
    kind: CallableKind,
    name: &str,
    words: &[ast::FlowWord],
    at_param: bool,
    out: &mut Vec<Diagnostic>,
) {
    for word in words {
        let labels = matches!(word.kind, FlowKind::Untrusted | FlowKind::Secret);
        let refuses =
            matches!(word.kind, FlowKind::RequiresTrusted | FlowKind::RequiresPublic | FlowKind::Policy(_));
        let help = match (kind, at_param) {
            (CallableKind::AgentTask, _) => {
                "say it of the tools of the agent, or of the inputs of a pipeline"
            }
            (_, true) if labels => {
                "`requires trusted` and `requires public` say what may come here; a label is said after the result type"
            }
            _ => continue,
        };
        let message = match kind {
            CallableKind::AgentTask => format!("this has no effect: an agent carries out `{name}`"),
            _ => format!("this has no effect at a parameter: `{name}` has the label of its argument"),
        };
        // Whoever relies on a refusal that never comes is misled.
        let level = if refuses { diagnostics::Level::Error } else { diagnostics::Level::Warn };
        out.push(Diagnostic::new(level, codes::NO_EFFECT, message, word.span).help(help));
    }
}

/// Reads flow words.
fn flow(words: &[ast::FlowWord], out: &mut Vec<Diagnostic>) -> Flow {
    let mut flow = Flow::default();
    for word in words {
        if matches!(word.kind, FlowKind::RequiresTrusted | FlowKind::RequiresPublic) {
            flow.requires.get_or_insert(word.span);
        }
        let class = matches!(word.kind, FlowKind::Pure | FlowKind::Reads | FlowKind::Writes);
        if class && flow.class.is_some() {
            out.push(
                Diagnostic::error(codes::BAD_SETTING, "the effect of a tool is stated twice", word.span)
                    .help("keep one of `pure`, `reads` and `writes`"),
            );
        }
        match &word.kind {
            FlowKind::Pure => flow.class = Some(core_ir::EffectClass::Pure),
            FlowKind::Reads => flow.class = Some(core_ir::EffectClass::Read),
            FlowKind::Writes => flow.class = Some(core_ir::EffectClass::Write),
            FlowKind::Untrusted => flow.untrusted = true,
            FlowKind::Secret => flow.secret = true,
            FlowKind::RequiresTrusted => flow.requires_trusted = true,
            FlowKind::RequiresPublic => flow.requires_public = true,
            FlowKind::Policy(name) => {
                if let Some(first) = flow.policies.iter().find(|p| p.text == name.text) {
                    out.push(duplicate("policy", name, first.span));
                } else {
                    flow.policies.push(name.clone());
                }
            }
        }
    }
    flow
}

/// Checks that the body fits the kind of the declaration, and that its holes name parameters.
fn check_body(c: &ast::Callable, kind: CallableKind, out: &mut Vec<Diagnostic>) {
    let span = c.body.span;
    let system = c.body.system.as_ref().map(|t| ("system", t.span));
    let examples = c.body.examples.as_ref().map(|e| ("examples", e.span));
    for (word, at) in system.into_iter().chain(examples).filter(|_| kind != CallableKind::AgentTask) {
        let why = format!("no agent runs `{}`, so `{word}` has no effect", c.name.text);
        out.push(
            Diagnostic::error(codes::BODY_MISMATCH, why, at)
                .help(format!("declare it as `task … by agent`, or remove `{word}`")),
        );
    }
    let wrong = |message: &str, help: &str| {
        Diagnostic::error(codes::BODY_MISMATCH, format!("`{}` {message}", c.name.text), span).help(help)
    };
    match (&c.body.kind, kind) {
        (BodyKind::Prompt(_), CallableKind::Task) => {
            out.push(wrong("has a prompt, but no agent runs it", "add `by agent` after the result type"));
        }
        (BodyKind::Prompt(_), CallableKind::Tool) => {
            out.push(wrong("is a tool and can't have a prompt", "declare it as `task … by agent`"));
        }
        (
            BodyKind::Exec(_)
            | BodyKind::Builtin(_)
            | BodyKind::Http(..)
            | BodyKind::Mcp(..)
            | BodyKind::Python(..),
            CallableKind::AgentTask,
        ) => {
            let mut d = wrong(
                "is run by an agent and can't have this body",
                "remove `by agent`, or give it a `prompt`",
            );
            if let Some(by) = c.by_agent {
                d = d.remark(by, "by an agent");
            }
            out.push(d);
        }
        _ => {}
    }
    let templates: Vec<&ast::Template> = match &c.body.kind {
        BodyKind::Exec(words) => words.iter().collect(),
        BodyKind::Http(_, url) => vec![url],
        _ => Vec::new(),
    };
    for template in templates {
        for part in &template.parts {
            let ast::TemplatePart::Hole(e) = part else { continue };
            let known =
                matches!(&e.kind, ast::ExprKind::Var(x) if c.params.iter().any(|p| p.name.text == *x));
            if !known && !matches!(e.kind, ast::ExprKind::Error) {
                let names: Vec<&str> = c.params.iter().map(|p| p.name.text.as_str()).collect();
                let d = Diagnostic::error(
                    codes::HOLE_IN_PROMPT,
                    "a hole here must be the name of a parameter",
                    e.span,
                );
                let near = match &e.kind {
                    ast::ExprKind::Var(name) => nearest(name, names.iter().copied()),
                    _ => None,
                };
                out.push(match near {
                    Some(near) => super::check::suggest(d, near),
                    None if names.is_empty() => d.help(format!("`{}` has no parameters", c.name.text)),
                    None => d.help(format!("the parameters are `{}`", names.join("`, `"))),
                });
            }
        }
    }
}
