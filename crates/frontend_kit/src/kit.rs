//! The building blocks of front ends: agents with tools and helpers, loops, teams.
//!
//! Entry point: [`Kit`], which holds the terms of one unit while they are made.
//!
//! | source | term |
//! |---|---|
//! | instructions and a model | `llm p θ` |
//! | with tools, helpers or handoffs | `fix[n] (λself. λx. let r = fresh (send[system] p; send x; calls) in case r.next of {…})`, see [`crate::turn`] |
//! | a tool | `t a ⇒ let o = tool[t] a in more {reply: recv[θ, waiting], said: "{t.said}\n[t] {o}"}` |
//! | a helper: an agent that is asked and answers | `h a ⇒ let o = helper a.input in more {reply: recv[θ, waiting], said: "{t.said}\n[h] {o}"}` |
//! | a handoff: an agent that takes over | ``h ⇒ let o = more {…} in {next: `h, said: o.said}``, and then `helper r.said` |
//! | one action at a time ([`Carried::First`]) | `fix[n] (λself. λx. let t = llm p θ x in case t of {…})` |
//! | a reply without a tool call | ``final a ⇒ {next: `final, said: a}`` |
//!
//! Invariant: bounded. Parts and text are counted with each use of them, so no alias or reference makes
//! a small file a large term.

use crate::calls;
use crate::doc::{Entry, Node};
use crate::emit::{self, LoopBound, Part, Template, clip, codes, undecided};
use crate::outline::{Blank, LoopFacts, Outline, ToolRole};
use crate::project::{AgentPlace, Project, Unit, UnitKind};
use crate::turn::{Call, Carried, Names, Outcome, TurnRequest, Turned};
use crate::versions::Versions;
use core_ir::{
    Branch, Builder, Catches, Data, EffectClass, Globals, LabelSpec, ModelParams, Name, Num, Recv, Role,
    Term, TermId, ToolDecl, ToolId, ToolParam, Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// Parts (agents, tasks, nodes) compiled for one file, counting each use.
const MAX_PARTS: usize = 4_000;
/// Maximal number of expressions in a file and in one value.
const MAX_VALUES: usize = 20_000;
const MAX_VALUE_PARTS: usize = 6_000;
/// Maximal nesting depth of expressions. Terms are a few times as deep.
const MAX_VALUE_DEPTH: usize = 150;
/// Bytes of text compiled for one file, counting each use.
const MAX_TEXT_BYTES: usize = 32 << 20;
/// Maximal nesting depth of agents.
const MAX_DEPTH: usize = 24;

/// Remaining budget for compiling a file.
pub struct Budget {
    parts: usize,
    text: usize,
    exceeded: bool,
    /// Remaining expressions of the file and of the current value.
    values: usize,
    of_value: usize,
    /// Nesting depth within a value.
    depth: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new()
    }
}

impl Budget {
    /// Makes the budget for one file.
    pub fn new() -> Budget {
        let (values, of_value) = (MAX_VALUES, MAX_VALUE_PARTS);
        Budget { parts: MAX_PARTS, text: MAX_TEXT_BYTES, exceeded: false, values, of_value, depth: 0 }
    }

    /// Returns true if something was left out already.
    pub fn exceeded(&self) -> bool {
        self.exceeded
    }

    /// Starts an expression if the budget allows it. A value is compiled at each use, so a value that grows
    /// beyond the limit becomes unknown, and the rest of the file is still compiled.
    pub fn begin_value(&mut self) -> bool {
        if self.depth == 0 {
            self.of_value = MAX_VALUE_PARTS;
        }
        if self.values == 0 || self.of_value == 0 || self.depth >= MAX_VALUE_DEPTH {
            return false;
        }
        self.values -= 1;
        self.of_value -= 1;
        self.depth += 1;
        true
    }

    /// Ends an expression.
    pub fn end_value(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Returns the number of expressions compiled so far.
    pub fn spent(&self) -> usize {
        MAX_VALUES - self.values
    }

    /// Starts a value beside the current one, with its own depth and size.
    pub fn apart(&mut self) -> (usize, usize) {
        (std::mem::take(&mut self.depth), self.of_value)
    }

    /// Returns to the enclosing value, see [`Budget::apart`].
    pub fn together(&mut self, (depth, of_value): (usize, usize)) {
        (self.depth, self.of_value) = (depth, of_value);
    }

    /// Takes one part with a text of this size from the budget. Returns false, with a finding, if nothing is
    /// left.
    pub fn take(&mut self, text: usize, at: Span, out: &mut Vec<Diagnostic>) -> bool {
        let left = self.parts > 0;
        self.parts = self.parts.saturating_sub(1);
        if !left {
            self.report(at, out);
        }
        left && self.take_text(text, at, out)
    }

    /// Takes a text of this size from the budget. Returns false, with a finding, if nothing is left.
    pub fn take_text(&mut self, text: usize, at: Span, out: &mut Vec<Diagnostic>) -> bool {
        let left = self.text >= text;
        if left {
            self.text -= text;
        } else {
            self.report(at, out);
        }
        left
    }

    /// Reports that something is left out, once.
    fn report(&mut self, at: Span, out: &mut Vec<Diagnostic>) {
        if !std::mem::replace(&mut self.exceeded, true) {
            let message = format!(
                "more than {MAX_PARTS} agents and tasks, or more than {MAX_TEXT_BYTES} bytes of prompts"
            );
            out.push(Diagnostic::error(codes::TOO_MUCH, message, at));
        }
    }
}

/// Effect of choosing an action.
pub enum ActionKind {
    /// Calls the tool and continues with its result.
    Call,
    /// Hands off to another agent, whose answer is the answer.
    Ask(TermId),
    /// Another agent takes over; its answer is the answer.
    HandOff(TermId),
    /// Ends the group chat or the loop around the agent.
    End,
    /// Calls the tool, whose result is the answer.
    Finish,
}

/// An action that an agent may choose.
pub struct Action {
    /// Name that the model calls.
    pub name: String,
    /// Place where it is listed.
    pub at: Span,
    /// Effect of a call.
    pub kind: ActionKind,
    /// Description that the model is shown.
    pub description: Option<String>,
    /// Handler of the tool, for the runtime.
    pub handler: Option<Data>,
    /// Its declaration, where its parameters are known.
    pub decl: Option<Box<ToolDecl>>,
}

impl Action {
    /// Makes the action for a tool of this name.
    pub fn tool(name: impl Into<String>, at: Span) -> Action {
        Action { name: name.into(), at, kind: ActionKind::Call, description: None, handler: None, decl: None }
    }

    /// Makes the action for a tool of an MCP server.
    pub fn mcp(name: impl Into<String>, server: &str, at: Span) -> Action {
        let handler = Some(Data::record([(Name::from("mcp"), Data::str(server))]));
        Action { handler, ..Action::tool(name, at) }
    }

    /// Makes the action that asks another agent.
    pub fn ask(name: impl Into<String>, agent: TermId, at: Span) -> Action {
        Action { kind: ActionKind::Ask(agent), ..Action::tool(name, at) }
    }

    /// Makes the action that hands off to another agent.
    pub fn handoff(name: impl Into<String>, agent: TermId, at: Span) -> Action {
        Action { kind: ActionKind::HandOff(agent), ..Action::tool(name, at) }
    }
}

/// Settings of an agent for its term.
pub struct Agent<'a> {
    /// Name.
    pub name: &'a str,
    /// Place at which a missing setting would be added.
    pub head: Span,
    /// The system message.
    pub prompt: TermId,
    /// Model and its parameters.
    pub params: ModelParams,
    /// The place that names the model.
    pub model_at: Option<Span>,
    /// Tools and helpers that it may call.
    pub actions: Vec<Action>,
    /// The place that lists the tools.
    pub actions_at: Option<Span>,
    /// Bound of the loop. An agent without tools has no loop unless `looped`.
    pub bound: LoopBound,
}

/// Reads the placeholders of a text.
pub type Splitter = fn(&str) -> Vec<Part<'_>>;

/// The terms of one unit while they are made.
pub struct Kit<'o> {
    /// Builder of the term.
    pub b: Builder,
    /// Diagnostics.
    pub out: &'o mut Vec<Diagnostic>,
    /// Nodes that may still be built.
    pub budget: &'o mut Budget,
    /// The versions of the project's packages.
    pub versions: &'o Versions,
    /// Structure of the unit.
    pub outline: Outline,
    /// Places that name models which are not known.
    unknown_models: HashSet<Span>,
    agents: Vec<AgentPlace>,
    inputs: BTreeSet<String>,
    /// The types of those that are no texts.
    input_types: BTreeMap<String, Type>,
    tools: HashMap<String, ToolId>,
    /// The definitions around the current place.
    open: Vec<Span>,
    /// The first part that the term leaves out and that may ask a model.
    left_out: Option<(String, Span)>,
}

impl<'o> Kit<'o> {
    /// A kit without tools, agents or an outline.
    pub fn new(out: &'o mut Vec<Diagnostic>, budget: &'o mut Budget, versions: &'o Versions) -> Self {
        Kit {
            b: Builder::new(),
            out,
            budget,
            versions,
            outline: Outline::default(),
            unknown_models: HashSet::new(),
            agents: Vec::new(),
            inputs: BTreeSet::new(),
            input_types: BTreeMap::new(),
            tools: HashMap::new(),
            open: Vec::new(),
            left_out: None,
        }
    }

    /// Makes an unknown term with its reason.
    pub fn unknown(&mut self, why: &str, at: Span) -> TermId {
        self.b.add(Term::Unknown(Name::from(clip(why).to_string())), at)
    }

    /// Says that the term leaves out a part, which may ask a model. So the calls of the unit have no bound.
    pub fn left_out(&mut self, why: String, at: Span) {
        self.left_out.get_or_insert((why.clone(), at));
        self.out.push(undecided(codes::NOT_COMPILED, why, at));
    }

    /// An unknown term with a diagnostic that says so.
    pub fn undecided(&mut self, code: &'static str, why: String, at: Span) -> TermId {
        let term = self.unknown(&why, at);
        self.out.push(undecided(code, why, at));
        term
    }

    /// Reports that the model which the source names at a place is not known. A request there that has no
    /// model is not one without a model.
    pub fn unknown_model(&mut self, why: String, at: Span) {
        self.out.push(undecided(codes::NOT_COMPILED, why, at));
        self.unknown_models.insert(at);
    }

    /// A literal text.
    pub fn text(&mut self, text: &str, at: Span) -> TermId {
        self.b.lit(Data::str(text), at)
    }

    /// `λx. x`.
    pub fn identity(&mut self, at: Span) -> TermId {
        let x = self.b.var("x", at);
        self.b.abs("x", Some(Type::Str), x, at)
    }

    /// A function applied to the variable `x`.
    pub fn on_x(&mut self, function: TermId, at: Span) -> TermId {
        let x = self.b.var("x", at);
        self.b.app(function, x, at)
    }

    /// Opens an agent, which must then be closed. Otherwise returns the term that replaces it: it is
    /// recursive, nested too deep, or beyond the budget.
    pub fn open(&mut self, name: &str, definition: Span, head: Span, text: usize) -> Result<(), TermId> {
        if self.open.contains(&definition) {
            return Err(self.unknown("an agent within itself", head));
        }
        if self.open.len() >= MAX_DEPTH || !self.budget.take(text, head, self.out) {
            return Err(self.unknown("an agent beyond the limit", head));
        }
        self.open.push(definition);
        if !self.agents.iter().any(|a| a.span == definition) {
            self.agents.push(AgentPlace { name: name.to_string(), span: definition });
        }
        Ok(())
    }

    /// Closes what [`Kit::open`] opened.
    pub fn close(&mut self) {
        self.open.pop();
    }

    /// Notes a definition that is no agent around the current place; it must be closed.
    pub fn enter(&mut self, definition: Span) {
        self.open.push(definition);
    }

    /// Returns true if the current place is inside a definition.
    pub fn is_open(&self, definition: Span) -> bool {
        self.open.contains(&definition)
    }

    /// Returns true if an agent was compiled in this unit already.
    pub fn seen(&self, definition: Span) -> bool {
        self.agents.iter().any(|a| a.span == definition)
    }

    /// The value of a placeholder: a field of the unit's inputs.
    pub fn input(&mut self, name: &str, at: Span) -> TermId {
        let inputs = self.b.var(emit::INPUTS, at);
        self.inputs.insert(name.to_string());
        self.b.add(Term::Field(inputs, name.into()), at)
    }

    /// The names of the unit's inputs so far.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(String::as_str)
    }

    /// An input that is no text.
    pub fn typed_input(&mut self, name: &str, ty: Type) {
        self.input_types.insert(name.to_string(), ty);
    }

    /// Adds a user's text with its placeholders, which are the unit's inputs.
    pub fn fill(&mut self, template: &mut Template, text: &str, at: Span, split: Splitter) {
        for part in split(text) {
            match part {
                Part::Text(t) => {
                    template.text(t);
                }
                Part::Hole(name) => {
                    let value = self.input(name, at);
                    template.term(value);
                }
            }
        }
    }

    /// A text with placeholders as a term.
    pub fn filled(&mut self, text: &str, at: Span, split: Splitter) -> TermId {
        let mut template = Template::new(at);
        self.fill(&mut template, text, at, split);
        template.build(&mut self.b)
    }

    /// A function of text that takes the unit's inputs instead, if it uses any: it begins with an empty text.
    pub fn begun(&mut self, term: TermId, at: Span) -> TermId {
        if self.inputs.is_empty() {
            return term;
        }
        let nothing = self.text("", at);
        self.b.app(term, nothing, at)
    }

    /// See [`emit::with_inputs`].
    pub fn with_inputs(&mut self, term: TermId, at: Span) -> TermId {
        emit::with_typed_inputs(&mut self.b, &self.inputs, &self.input_types, term, at)
    }

    /// `Str → Str`: one oracle, or a loop around one that is offered tools.
    pub fn agent(&mut self, agent: Agent<'_>) -> TermId {
        self.agent_with_request(agent, Carried::All, None)
    }

    /// The same, where it is said which calls of a reply are carried out, and what the oracle of a loop is
    /// asked instead of `x`: a term about it.
    pub fn agent_with_request(
        &mut self,
        agent: Agent<'_>,
        carried: Carried,
        request: Option<TermId>,
    ) -> TermId {
        let Agent { name, head, prompt, mut params, model_at, actions, actions_at, bound } = agent;
        let model_at = model_at.unwrap_or(head);
        if params.purpose.is_none() && !name.is_empty() {
            params.purpose = Some(name.into());
        }
        let actions_at = actions_at.or_else(|| actions.first().map(|h| h.at)).unwrap_or(head);
        let mut calls: Vec<Call> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        for action in actions {
            if calls.len() >= emit::MAX_TOOLS {
                self.out.push(emit::too_many_tools(action.at));
                break;
            }
            if calls::reserved(&action.name) || !seen.insert(action.name.clone()) {
                let message = match &*action.name {
                    "" => "a tool without a name is left out".to_string(),
                    name if calls::reserved(name) => {
                        format!(
                            "a tool cannot be called `{name}`, which is what a reply without a call is; this one is left out"
                        )
                    }
                    name => format!("there is a tool `{}` already, this one is left out", clip(name)),
                };
                self.out.push(Diagnostic::warn(codes::DUPLICATE, message, action.at));
                continue;
            }
            calls.push(self.called(action, &mut params));
        }
        if calls.is_empty() {
            let oracle = self.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
            let Some(request) = request else { return oracle };
            let asked = self.b.app(oracle, request, model_at);
            return self.b.abs("x", Some(Type::Str), asked, head);
        }
        let fix_at = bound.span.unwrap_or(actions_at);
        if self.b.span(prompt) != head {
            self.written(prompt, false);
        }
        let asked =
            TurnRequest { prompt, params, request, calls, carried, head, model_at, calls_at: actions_at };
        let Turned { body, conversation } = asked.turn(&mut self.b, &Names::plain());
        if let Some(conversation) = conversation {
            self.instructed(conversation, prompt);
        }
        self.fixpoint(body, bound, head, fix_at)
    }

    /// `fix[n] (λself. λx: Str. body)`.
    pub fn fixpoint(&mut self, body: TermId, bound: LoopBound, at: Span, fix_at: Span) -> TermId {
        let step = self.b.abs("x", Some(Type::Str), body, at);
        let body = self.b.abs("self", None, step, at);
        self.fix(bound, body, fix_at)
    }

    /// `fix[n] body`, and what is known of the loop beside its term.
    pub fn fix(&mut self, bound: LoopBound, body: TermId, at: Span) -> TermId {
        let LoopBound { bound, origin, facts, .. } = bound;
        let fix = self.b.add(Term::Fix { bound, origin, body }, at);
        if facts != LoopFacts::default() {
            self.outline.loops.insert(fix, facts);
        }
        fix
    }

    /// Notes that instructions are written where they stand; if they are empty, that is a defect of its own.
    /// It is `certain` if nobody can give others there.
    pub fn written(&mut self, prompt: TermId, certain: bool) {
        if self.is_blank(prompt) {
            let at = self.b.span(prompt);
            self.outline.blank.entry(prompt).or_insert(Blank { at, certain });
        }
    }

    /// Notes the instructions of a conversation. No message is made of empty ones.
    pub fn instructed(&mut self, conversation: TermId, prompt: TermId) {
        if let Some(blank) = self.outline.blank.get(&prompt).copied() {
            self.outline.blank.insert(conversation, blank);
        }
    }

    fn is_blank(&self, prompt: TermId) -> bool {
        matches!(self.b.term(prompt), Term::Lit(Data::Str(own)) if own.trim().is_empty())
    }

    /// A function of which more calls are made than its term says: nobody knows how many.
    pub fn uncounted(&mut self, function: TermId, why: &str, at: Span) -> TermId {
        let body = self.on_x(function, at);
        self.fixpoint(body, LoopBound::uncounted(why), at, at)
    }

    /// A function that is run up to `n` times where its term has one run, for the reason given.
    pub fn repeated(&mut self, function: TermId, n: u64, why: &str, at: Span) -> TermId {
        if n == 1 {
            return function;
        }
        let body = self.on_x(function, at);
        self.fixpoint(body, LoopBound::repeated(n, why), at, at)
    }

    /// A hand as a call, which the model is offered.
    fn called(&mut self, action: Action, params: &mut ModelParams) -> Call {
        let Action { name, at, kind, description, handler, decl } = action;
        let helper = !matches!(kind, ActionKind::Call | ActionKind::Finish);
        let finish = matches!(kind, ActionKind::Finish);
        let id = match decl {
            Some(decl) => self.declared(*decl),
            None => self.tool(&name, at, helper, description, handler),
        };
        params.tools.push(id);
        let comes = match kind {
            ActionKind::Call | ActionKind::Finish => {
                let (f, a) = (self.b.add(Term::Tool(id), at), self.b.var("a", at));
                let result = self.b.app(f, a, at);
                if finish { Outcome::Answers(result) } else { Outcome::Joins(result) }
            }
            ActionKind::Ask(agent) => {
                let a = self.b.var("a", at);
                let input = self.b.add(Term::Field(a, "input".into()), at);
                Outcome::Joins(self.b.app(agent, input, at))
            }
            ActionKind::End => Outcome::Fails,
            ActionKind::HandOff(agent) => Outcome::Over(agent),
        };
        Call { name: name.as_str().into(), at, comes }
    }

    /// The declaration of a tool, made once; a helper takes a text and does nothing to the world by itself.
    pub fn tool(
        &mut self,
        name: &str,
        at: Span,
        helper: bool,
        description: Option<String>,
        handler: Option<Data>,
    ) -> ToolId {
        let key = format!("{name}\0{}\0{:?}", u8::from(helper), handler);
        if let Some(id) = self.tools.get(&key) {
            return *id;
        }
        let mut decl = ToolDecl::unknown(name.into(), at);
        if helper {
            decl.params =
                vec![ToolParam { name: "input".into(), ty: Type::Str, bound: LabelSpec::TOP, default: None }];
            decl.result = Type::Str;
            decl.effect = EffectClass::Pure;
            decl.control = LabelSpec::TOP;
            decl.label = LabelSpec::BOTTOM;
        }
        decl.description = description.map(|d| d.as_str().into());
        decl.handler = handler;
        let id = self.b.tool(decl);
        self.tools.insert(key, id);
        id
    }

    /// A declaration of a tool, made once.
    pub fn declared(&mut self, decl: ToolDecl) -> ToolId {
        self.declared_as(decl, ToolRole::Program)
    }

    /// A declaration of a tool that is carried out so, made once.
    pub fn declared_as(&mut self, decl: ToolDecl, role: ToolRole) -> ToolId {
        let key =
            format!("{}\0{:?}\0{:?}\0{:?}\0{role:?}", decl.name, decl.params, decl.result, decl.handler);
        if let Some(id) = self.tools.get(&key) {
            return *id;
        }
        let id = self.b.tool(decl);
        self.tools.insert(key, id);
        if role != ToolRole::Program {
            self.outline.roles.insert(id, role);
        }
        id
    }

    /// Finishes the unit: a term that was made with this kit, with its inputs around it.
    pub fn finish(mut self, term: TermId, name: &str, kind: UnitKind, span: Span) -> Option<Unit> {
        let term = self.with_inputs(term, span);
        self.finish_bare(term, name, kind, span)
    }

    /// Finishes a unit whose inputs are around it already.
    pub fn finish_bare(self, term: TermId, name: &str, kind: UnitKind, span: Span) -> Option<Unit> {
        let Kit { b, out, agents, outline, unknown_models, .. } = self;
        match b.finish_with_ids(term, &Globals::none()) {
            Ok((code, ids)) => {
                let mut outline = outline.renumbered(&ids);
                let is_unknown = |(id, term): (TermId, &Term)| match term {
                    Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => {
                        (params.model.is_none() && unknown_models.contains(&code.span(id))).then_some(id)
                    }
                    _ => None,
                };
                outline.unknown_models = code.iter().filter_map(is_unknown).collect();
                Some(Unit { name: name.to_string(), kind, code: Arc::new(code), span, agents, outline })
            }
            Err(errors) => {
                out.extend(errors.into_iter().take(1).map(|e| emit::not_built(&e, span)));
                None
            }
        }
    }
}

/// A model asked by itself, in a conversation of its own, with the messages that are said.
pub fn ask(kit: &mut Kit<'_>, said: Vec<(Role, TermId, Span)>, params: ModelParams, at: Span) -> TermId {
    let (system, user) = match said[..] {
        [(Role::System, system, _), (Role::User, user, _)] => (system, user),
        [(Role::User, user, _)] => (kit.text("", at), user),
        _ => {
            let said = sent(kit, said);
            let recv = kit.b.add(Term::Recv(Recv::Data(Arc::new(params))), at);
            let body = kit.b.let_in(said, recv, at);
            return kit.b.add(Term::Fresh(body), at);
        }
    };
    let model = kit.b.add(Term::Llm(system, Arc::new(params)), at);
    kit.b.app(model, user, at)
}

/// Messages as definitions that send them.
pub fn sent(kit: &mut Kit<'_>, said: Vec<(Role, TermId, Span)>) -> Vec<(Name, TermId)> {
    said.into_iter().map(|(role, term, at)| ("_".into(), kit.b.add(Term::Send(role, term), at))).collect()
}

/// A text without placeholders.
pub fn plain(text: &str) -> Vec<Part<'_>> {
    vec![Part::Text(text)]
}

/// Splits a text at `{{ name }}`; a name may have dots. Anything else in braces is text.
pub fn double(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find("{{") {
        let open = at + open;
        let Some(len) = text[open + 2..].find("}}") else { break };
        let inner = text[open + 2..open + 2 + len].trim();
        at = open + 2;
        let name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if inner.is_empty() || inner.len() > 120 || !inner.chars().all(name) {
            continue;
        }
        if open > start {
            parts.push(Part::Text(&text[start..open]));
        }
        parts.push(Part::Hole(inner));
        at = open + 2 + len + 2;
        start = at;
    }
    if start < text.len() || parts.is_empty() {
        parts.push(Part::Text(&text[start..]));
    }
    parts
}

/// Sampling parameters that may stand beside other keys in a mapping.
pub const SETTINGS: &[&str] = &[
    "temperature",
    "max_tokens",
    "maxTokens",
    "max_output_tokens",
    "top_p",
    "topP",
    "top_k",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "response_format",
    "reasoning_effort",
    "parallel_tool_calls",
    "tool_choice",
];

/// Reads [`SETTINGS`] from a mapping.
pub fn settings(node: Node<'_>, params: &mut ModelParams, out: &mut Vec<Diagnostic>) {
    for key in SETTINGS {
        if let Some(entry) = node.entry(key) {
            setting(&entry, params, out);
        }
    }
}

/// Reads one sampling parameter.
pub fn setting(entry: &Entry<'_>, params: &mut ModelParams, out: &mut Vec<Diagnostic>) {
    let value = entry.value;
    let waits = value.is_null() || value.as_str().is_some_and(|t| emit::is_placeholder(t) || t.is_empty());
    if waits {
        return;
    }
    // Environment substitution and resource files make strings of numbers.
    let number = || value.as_num().or_else(|| value.as_str()?.trim().parse::<Num>().ok());
    match entry.name() {
        "temperature" => match number() {
            Some(n) => params.temperature = Some(n),
            None => out.push(emit::wrong_kind(entry, "a number")),
        },
        "maxTokens" | "max_tokens" | "max_output_tokens" | "max_completion_tokens" => {
            match value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()) {
                Some(n) => params.max_tokens = Some(n),
                None => out.push(emit::wrong_kind(entry, "a whole number")),
            }
        }
        key => {
            if let Some(data) = emit::data(value, &mut 400) {
                params.extra.push((Name::from(key), data));
            }
        }
    }
}

/// Returns the first of some keys that has a value in a mapping.
pub fn first<'d>(node: Node<'d>, keys: &[&str]) -> Option<Entry<'d>> {
    keys.iter().find_map(|k| node.entry(k).filter(|e| !e.value.is_null()))
}

/// Returns the text of the first of some keys that holds one.
pub fn first_text<'d>(node: Node<'d>, keys: &[&str]) -> Option<(&'d str, Entry<'d>)> {
    keys.iter().find_map(|k| {
        let entry = node.entry(k)?;
        entry.value.text().filter(|t| !t.trim().is_empty()).map(|t| (t, entry))
    })
}

/// Reads a list of tools: texts, or mappings with a name. Anything else is reported.
pub fn tools_of(entry: Option<Entry<'_>>, out: &mut Vec<Diagnostic>) -> Vec<Action> {
    let Some(entry) = entry else { return Vec::new() };
    let node = entry.value;
    let mut actions = Vec::new();
    if let Some(text) = node.text() {
        if !text.trim().is_empty() {
            actions.push(Action::tool(text.trim(), node.span()));
        }
        return actions;
    }
    // `tools: {search: {…}}` names them by key.
    for e in node.entries() {
        if !e.value.is_null() && e.value.as_bool() != Some(false) {
            actions.push(Action::tool(e.name(), e.key.span()));
        }
    }
    for item in node.items() {
        if item.is_null() || item.text().is_some_and(|t| t.trim().is_empty()) {
            continue;
        }
        match tool_name(item) {
            Some(name) => {
                let mut action = Action::tool(name, item.head());
                action.description = item.get("description").and_then(|d| d.as_str()).map(str::to_string);
                actions.push(action);
            }
            None => {
                let message = format!("`{}` has something without a name in it", clip(entry.name()));
                let d = Diagnostic::warn(codes::WRONG_KIND, message, item.head());
                out.push(d.help("give each entry a name"));
            }
        }
    }
    actions
}

/// Returns the name of a tool, under any of the usual keys.
fn tool_name<'d>(item: Node<'d>) -> Option<&'d str> {
    if let Some(text) = item.text() {
        return Some(text.trim());
    }
    const PATHS: &[&[&str]] = &[
        &["name"],
        &["tool_name"],
        &["function", "name"],
        &["config", "name"],
        &["id"],
        &["ref"],
        &["function"],
        &["tool"],
        &["provider"],
        &["type"],
        &["url"],
        &["class"],
    ];
    if let Some(name) = PATHS.iter().find_map(|p| item.at(p)?.text()).filter(|n| !n.trim().is_empty()) {
        return Some(name.trim());
    }
    // `- search: {…}` names it by its only key.
    let mut entries = item.entries();
    let first = entries.next()?;
    (entries.next().is_none()).then(|| first.key.text()).flatten()
}

/// Speaker selection of a team.
pub enum Turns {
    /// Round robin.
    RoundRobin,
    /// A model selects the next speaker: a function from the conversation so far to a reply that names a
    /// member.
    Chosen(TermId),
}

/// Several agents that converse until something ends the group chat.
pub struct Team {
    /// Members by name.
    pub members: Vec<(String, TermId)>,
    /// Order in which members speak.
    pub turns: Turns,
    /// Texts that end the group chat, with their places.
    pub stops: Vec<(String, Span)>,
    /// Place of a condition that isn't compiled and may end the group chat after a message.
    pub decided: Option<Span>,
    /// True if members may end the group chat by a tool ([`ActionKind::End`]).
    pub ends: bool,
    /// Rounds: of all members in turn, or of the chosen one.
    pub bound: LoopBound,
    /// Place of the team.
    pub at: Span,
}

impl Kit<'_> {
    /// Lowers `e1 >> … >> en`. Without stages, the identity.
    pub fn sequence(&mut self, mut stages: Vec<TermId>, at: Span) -> TermId {
        match stages.len() {
            0 => self.identity(at),
            1 => stages.remove(0),
            _ => self.b.compose(stages, at),
        }
    }

    /// Lowers a parallel call of all functions on the same input, with their answers joined by lines.
    pub fn together(&mut self, sides: Vec<TermId>, most: Option<u32>, at: Span) -> TermId {
        if sides.len() < 2 {
            return self.sequence(sides, at);
        }
        let count = sides.len();
        let applied: Vec<TermId> = sides
            .into_iter()
            .map(|side| {
                let at = self.b.span(side);
                self.on_x(side, at)
            })
            .collect();
        let par = self.b.add(Term::Par(most, applied), at);
        let mut text = Template::new(at);
        for i in 0..count {
            if i > 0 {
                text.text("\n\n");
            }
            let (r, index) = (self.b.var("$all", at), self.b.lit(Num::from(i as i64), at));
            text.term(self.b.add(Term::Index(r, index), at));
        }
        let text = text.build(&mut self.b);
        let body = self.b.let_in(vec![("$all".into(), par)], text, at);
        self.b.abs("x", Some(Type::Str), body, at)
    }

    /// Lowers the iteration of a body on its own result. An error that the body raises by `escalate` ends it.
    pub fn repeat(&mut self, body: TermId, bound: LoopBound, escalates: bool, at: Span) -> TermId {
        let fix_at = bound.span.unwrap_or(at);
        let once = self.on_x(body, at);
        let this = self.b.var("self", at);
        if !escalates {
            let again = self.b.app(this, once, at);
            return self.fixpoint(again, bound, at, fix_at);
        }
        let field = |kit: &mut Self, name: &str| {
            let r = kit.b.var("$turn", at);
            kit.b.add(Term::Field(r, name.into()), at)
        };
        let turn = self.tried(once, at);
        let (on, text, answer) = (field(self, "on"), field(self, "text"), field(self, "text"));
        let again = self.b.app(this, text, at);
        let body = self.b.add(Term::If(on, again, answer, core_ir::IfSugar::Plain), at);
        let body = self.b.let_in(vec![("$turn".into(), turn)], body, at);
        self.fixpoint(body, bound, at, fix_at)
    }

    /// Binds a member's message to `y`. If the member may end the group chat, `$on` tells whether it did.
    fn answer(&mut self, said: TermId, ends: bool, at: Span, out: &mut Vec<(Name, TermId)>) {
        if !ends {
            out.push(("y".into(), said));
            return;
        }
        let turn = self.tried(said, at);
        let field = |kit: &mut Self, name: &str| {
            let r = kit.b.var("$turn", at);
            kit.b.add(Term::Field(r, name.into()), at)
        };
        let (on, text) = (field(self, "on"), field(self, "text"));
        out.extend([("$turn".into(), turn), ("$on".into(), on), ("y".into(), text)]);
    }

    /// Lowers `try e` to a record: whether it continues, and the text of the result or of the error. An error
    /// that every retry repeats ends the run and not only the turn.
    fn tried(&mut self, once: TermId, at: Span) -> TermId {
        let record = |kit: &mut Self, on: bool, text: TermId| {
            let on = kit.b.lit(Data::Bool(on), at);
            kit.b.add(Term::Record(vec![("on".into(), on), ("text".into(), text)]), at)
        };
        let body = record(self, true, once);
        let said = self.b.var("m", at);
        let handler = record(self, false, said);
        let label = self.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
        self.b.add(Term::Try { label, body, catches: Catches::Transient, name: "m".into(), handler }, at)
    }

    /// Lowers `next` under the condition that the group chat isn't over. Otherwise the result is the last
    /// message, `x`.
    fn unless_over(
        &mut self,
        next: TermId,
        stops: &[(String, Span)],
        decided: Option<Span>,
        ends: bool,
        at: Span,
    ) -> TermId {
        let mut tail = next;
        if let Some(place) = decided {
            let (test, x) = (self.unknown("whether the chat continues", place), self.b.var("x", place));
            tail = self.b.add(Term::If(test, x, tail, core_ir::IfSugar::Plain), place);
        }
        if let Some(test) = self.says_stop("y", stops) {
            let x = self.b.var("x", at);
            tail = self.b.add(Term::If(test, x, tail, core_ir::IfSugar::Plain), at);
        }
        if ends {
            let (on, x) = (self.b.var("$on", at), self.b.var("x", at));
            tail = self.b.add(Term::If(on, tail, x, core_ir::IfSugar::Plain), at);
        }
        tail
    }

    /// Tests whether a text contains a word that ends the group chat. `None` if there are no such words.
    fn says_stop(&mut self, variable: &str, stops: &[(String, Span)]) -> Option<TermId> {
        let mut test: Option<TermId> = None;
        for (stop, at) in stops {
            let (text, needle) = (self.b.var(variable, *at), self.text(stop, *at));
            let this = self.b.add(Term::Prim(core_ir::Prim::Contains, vec![text, needle]), *at);
            test = Some(match test {
                None => this,
                Some(before) => {
                    let yes = self.b.lit(Data::Bool(true), *at);
                    self.b.add(Term::If(before, yes, this, core_ir::IfSugar::Or), *at)
                }
            });
        }
        test
    }

    /// Lowers a team to a function from the task to the whole conversation.
    pub fn team(&mut self, team: Team) -> TermId {
        let Team { members, turns, stops, decided, ends, bound, at } = team;
        let fix_at = bound.span.unwrap_or(at);
        if members.is_empty() {
            return self.unknown("a team without members", at);
        }
        let said = |kit: &mut Self, name: Option<&str>| {
            let mut text = Template::new(at);
            text.term(kit.b.var("x", at));
            match name {
                Some(name) => text.text(&format!("\n[{name}] ")),
                None => {
                    text.text("\n[").term(kit.b.var("$who", at));
                    text.text("] ")
                }
            };
            text.term(kit.b.var("y", at));
            text.build(&mut kit.b)
        };
        match turns {
            Turns::Chosen(oracle) => {
                let names: Vec<Name> = members.iter().map(|(n, _)| Name::from(n.as_str())).collect();
                let reply = self.on_x(oracle, at);
                let who = self.b.add(Term::Classify(names, reply), at);
                let branches = members
                    .into_iter()
                    .map(|(name, term)| {
                        let at = self.b.span(term);
                        let body = self.on_x(term, at);
                        Branch { tag: name.as_str().into(), binder: None, body }
                    })
                    .collect();
                let scrutinee = self.b.var("$who", at);
                let case = self.b.add(Term::Case { scrutinee, branches, default: None }, at);
                let now = said(self, None);
                let this = self.b.var("self", at);
                let x = self.b.var("x", at);
                let again = self.b.app(this, x, at);
                let tail = self.unless_over(again, &stops, decided, ends, at);
                let mut bindings = vec![(Name::from("$who"), who)];
                self.answer(case, ends, at, &mut bindings);
                bindings.push((Name::from("x"), now));
                let body = self.b.let_in(bindings, tail, at);
                self.fixpoint(body, bound, at, fix_at)
            }
            Turns::RoundRobin => {
                // From the last member backwards: what comes after is the tail.
                let this = self.b.var("self", at);
                let x = self.b.var("x", at);
                let mut tail = self.b.app(this, x, at);
                for (name, term) in members.into_iter().rev() {
                    let at = self.b.span(term);
                    tail = self.unless_over(tail, &stops, decided, ends, at);
                    let y = self.on_x(term, at);
                    let now = said(self, Some(&name));
                    let mut bindings = Vec::new();
                    self.answer(y, ends, at, &mut bindings);
                    bindings.push((Name::from("x"), now));
                    tail = self.b.let_in(bindings, tail, at);
                }
                self.fixpoint(tail, bound, at, fix_at)
            }
        }
    }
}

/// Units of a file under construction.
pub struct Units {
    /// Units and diagnostics so far.
    pub compiled: crate::project::Compiled,
    /// Remaining budget.
    pub budget: Budget,
    /// Versions of packages.
    pub versions: Versions,
}

/// A function that makes the term of a unit.
type Make<'a> = Box<dyn FnOnce(&mut Kit<'_>) -> TermId + 'a>;

impl Units {
    /// Starts the units of a framework.
    pub fn new(framework: &'static str, facts: crate::project::Facts, project: &Project) -> Units {
        let compiled =
            crate::project::Compiled { framework, units: Vec::new(), facts, diagnostics: Vec::new() };
        Units { compiled, budget: Budget::new(), versions: project.versions.clone() }
    }

    /// Adds the unit that a function makes.
    pub fn add(&mut self, name: &str, kind: UnitKind, span: Span, make: impl FnOnce(&mut Kit<'_>) -> TermId) {
        self.add_made(name, kind, span, Box::new(make));
    }

    /// The same, in the program once: each function has a type of its own.
    fn add_made(&mut self, name: &str, kind: UnitKind, span: Span, make: Make<'_>) {
        if self.budget.exceeded() {
            return;
        }
        let mut kit = Kit::new(&mut self.compiled.diagnostics, &mut self.budget, &self.versions);
        let mut term = make(&mut kit);
        if let Some((why, at)) = kit.left_out.take() {
            term = kit.uncounted(term, &why, at);
        }
        let unit = kit.finish(term, name, kind, span);
        self.compiled.units.extend(unit);
    }

    /// Returns the compiled file. A file that yields nothing, though nothing was wrong, gets a finding.
    pub fn done(mut self, at: Option<Span>, what: &str) -> crate::project::Compiled {
        if let (true, Some(at)) = (self.compiled.units.is_empty(), at) {
            let message = format!("nothing here runs: {what}");
            self.compiled.diagnostics.push(Diagnostic::info(codes::NOTHING, message, at));
        }
        // An agent that is used in several units is reported once.
        let mut seen = HashSet::new();
        self.compiled.diagnostics.retain(|d| seen.insert(d.clone()));
        self.compiled
    }
}

/// Tests of a document's root, by which front ends recognize their files.
pub mod mark {
    use crate::doc::Node;
    use crate::project::File;

    /// Returns true if the root of one of the first documents passes a test; of a list, its first item.
    pub fn any(file: &File, test: impl Fn(Node<'_>) -> bool) -> bool {
        file.documents.iter().take(8).any(|d| {
            let root = d.root();
            if root.is_sequence() { root.items().next().is_some_and(&test) } else { test(root) }
        })
    }

    /// Returns whether a mapping has a key.
    pub fn has(node: Node<'_>, key: &str) -> bool {
        node.get(key).is_some()
    }

    /// Returns the text under a key.
    pub fn text<'d>(node: Node<'d>, key: &str) -> Option<&'d str> {
        node.get(key)?.as_str()
    }

    /// Returns whether the text under a key is a value.
    pub fn is(node: Node<'_>, key: &str, value: &str) -> bool {
        text(node, key) == Some(value)
    }

    /// Returns whether the text under a key begins with a prefix.
    pub fn starts(node: Node<'_>, key: &str, prefix: &str) -> bool {
        text(node, key).is_some_and(|t| t.starts_with(prefix))
    }

    /// Returns true if one of the first items of a list passes a test.
    pub fn list(node: Node<'_>, path: &[&str], test: impl Fn(Node<'_>) -> bool) -> bool {
        node.at(path).is_some_and(|n| n.items().take(20).any(test))
    }
}

/// Returns the length of a span in bytes.
pub fn size(span: Span) -> usize {
    span.end.saturating_sub(span.start) as usize
}
