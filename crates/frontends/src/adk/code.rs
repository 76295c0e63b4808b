//! Google ADK agents that Python makes.
//!
//! | source | term |
//! |---|---|
//! | `LlmAgent(…)`, `Agent(…)` | `llm p θ`, or a loop if it has tools or sub-agents |
//! | a function, `FunctionTool(f)` | a tool of its name |
//! | `AgentTool(agent)` | a helper that is asked and answers |
//! | `sub_agents` of an `LlmAgent`, all of them models | one conversation, in which each may hand off to those below, above and beside it |
//! | other `sub_agents` of an `LlmAgent` | handoffs |
//! | `SequentialAgent`, `ParallelAgent`, `LoopAgent` | functions of the session's state: `{x: what was said last, key: …}` |
//! | `output_key="k"`, `{k}` in instructions | the field `k` of the state |
//! | `exit_loop`, a function that sets `actions.escalate` | ends the loop around the agent |
//! | `RunConfig(max_llm_calls=n)` | the bound of agents with tools; 500 if nothing says it |
//!
//! Entry point: [`lower`].
//!
//! Invariant: an agent of a class of the project with a `run` of its own is unknown: it is code.
//!
//! Source: google/adk-python, `agents/llm_agent.py`, `agents/loop_agent.py`, `agents/parallel_agent.py`,
//! `agents/run_config.py`.

use super::HOSTED;
use crate::defaults;
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Given, field};
use crate::scan::dotted;
use core_ir::{Catches, Data, IfSugar, ModelParams, Name, Prim, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::Ends;
use frontend_kit::conversation::{CallEffect, Choice, Speaker, conversation};
use frontend_kit::emit::{LoopBound, Part, Template, Unused, clip, codes, parts, undecided};
use frontend_kit::kit::{Action, ActionKind, Agent, Kit, Units};
use frontend_kit::project::{Compiled, File, Project, UnitKind};
use frontend_kit::shape::why;
use python::{FunctionId, Object, ObjectId, Piece, PyKind, Value, World};
use ruff_python_ast::{Expr, Stmt};
use std::collections::{BTreeSet, HashMap, HashSet};

const AGENT_KEYS: &[&str] = &[
    "name",
    "model",
    "instruction",
    "tools",
    "sub_agents",
    "generate_content_config",
    "output_key",
    "output_schema",
    "max_iterations",
    "disallow_transfer_to_parent",
    "disallow_transfer_to_peers",
];
const UNUSED: &[Unused] = &[
    ("description", why::SHOWN),
    ("before_agent_callback", why::CODE),
    ("after_agent_callback", why::CODE),
    ("before_model_callback", why::CODE),
    ("after_model_callback", why::CODE),
    ("before_tool_callback", why::CODE),
    ("after_tool_callback", why::CODE),
    ("on_model_error_callback", why::CODE),
    ("on_tool_error_callback", why::CODE),
    ("global_instruction", why::NOT_YET),
    ("static_instruction", why::NOT_YET),
    ("input_schema", why::NOT_YET),
    ("include_contents", why::NOT_YET),
    ("planner", why::NOT_YET),
    ("code_executor", why::NOT_YET),
    ("examples", why::NOT_YET),
];
/// The state of a session, and its field that holds what was said last.
const STATE: &str = "$state";
const LAST: &str = "x";
/// Fields for the results of parallel branches, and of one iteration of a loop.
const SIDES: &str = "$sides";
const TURN: &str = "$turn";
/// Agents that hand off to each other.
const MAX_SOCIETY: usize = 60;

/// Returns true for a tool that Gemini carries out while it replies.
fn is_hosted(world: &World<'_>, tool: &Value) -> bool {
    let object = world.object_of(tool).filter(|(_, o)| o.class.is_none());
    let short = object.map(|(_, o)| o.short().to_string()).or_else(|| py::outside(tool));
    short.is_some_and(|name| HOSTED.contains(&&*name))
}

pub(super) fn detect(file: &File) -> u8 {
    let module = file.python.as_ref().filter(|m| m.imports_module("google.adk"));
    if module.is_some_and(|m| m.makes(|name| name.ends_with("Agent"))) { 85 } else { 0 }
}

/// Returns true for the statement `tool_context.actions.escalate = True`.
fn escalates(statement: &Stmt) -> bool {
    let Stmt::Assign(assign) = statement else { return false };
    let is_escalate = |target: &Expr| {
        dotted(target).is_some_and(|name| name == "actions.escalate" || name.ends_with(".actions.escalate"))
    };
    matches!(&*assign.value, Expr::BooleanLiteral(b) if b.value) && assign.targets.iter().any(is_escalate)
}

/// The kinds of agents.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentKind {
    Llm,
    Sequence,
    Parallel,
    Loop,
    /// Of a class of the project that says itself what it does.
    Code,
}

pub(super) fn lower(mut units: Units, project: &Project, file: &File) -> Compiled {
    py::evaluated(project, file, python::Limits::default(), None, |world, found| {
        units.compiled.diagnostics.extend(found);
        let calls = calls(&world, &units);
        let at = places(&world);
        let all: Vec<ObjectId> = world
            .objects()
            .filter(|(id, _)| py::made_here(&world, *id, file) && is(&world, *id).is_some())
            .map(|(id, _)| id)
            .collect();
        let tools = world.objects().filter(|(_, o)| o.short() == "AgentTool");
        let asked = tools.filter_map(|(_, o)| agent_asked(&world, o)).collect();
        let whole = AdkReader { world: &world, places: &at, asked: &asked, keys: BTreeSet::new(), calls };
        let mut members: HashSet<ObjectId> = HashSet::new();
        for (id, _) in world.objects().filter(|(id, _)| is(&world, *id).is_some()) {
            members.extend(whole.others(id).into_iter().filter(|o| *o != id));
        }
        let tools = |id: ObjectId| field(world.object(id), None, "tools").map(|g| g.value);
        let kept = py::distinct(&mut units, (&world, file), all.iter().copied(), tools);
        let asks = ModelRequests::new(&world);
        for id in all.into_iter().filter(|id| !members.contains(id)) {
            let span = world.object(id).span;
            // An instance that nothing but the definition of its class makes is none.
            let only_defined = world.object(id).class.is_some_and(|c| world.class(c).span == span);
            if only_defined || !kept.contains(&id) {
                continue;
            }
            let reached = whole.reached(id);
            let keys = reached.iter().filter_map(|id| whole.key(*id)).collect();
            let reader = AdkReader { keys, calls: whole.calls.clone(), ..whole };
            let kind = if reached.len() > 1 { UnitKind::Crew } else { UnitKind::Agent };
            let runs = runs(&world, &reached);
            units.add(&reader.name(id), kind, span, |kit| {
                let term = reader.unit(kit, id);
                py::counted(kit, term, py::repeats(&world, &runs), || beside(&world, &asks, &reached))
            });
        }
        let start = Span { file: file.id, start: 0, end: 0 };
        units.done(Some(start), "no agent is made here")
    })
}

/// Reason for model calls beside the turns of some agents: functions that they are given.
fn beside<'i>(
    world: &World<'_>,
    asks: &ModelRequests<'_, '_>,
    agents: impl IntoIterator<Item = &'i ObjectId>,
) -> Option<Uncounted> {
    let mut ids: Vec<ObjectId> = agents.into_iter().copied().collect();
    ids.sort();
    ids.iter().find_map(|id| {
        let object = world.object(*id);
        let class = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
        let args = object.args.iter().map(|a| &a.value).chain(object.attrs.iter().map(|(_, v)| v));
        asks.beside(args.chain(&class), &|id| is(world, id).is_some())
    })
}

/// The calls that run one of some agents.
fn runs<'i>(world: &World<'_>, agents: impl IntoIterator<Item = &'i ObjectId>) -> Vec<ObjectId> {
    let agents: HashSet<ObjectId> = agents.into_iter().copied().collect();
    // A runner is made for an agent; its methods run it.
    let is_run = |o: &python::Object| {
        let runner = o.base.map(|b| world.object(b)).filter(|b| b.short().ends_with("Runner"));
        let of = runner.and_then(|r| field(r, Some(0), "agent")).and_then(|g| world.object_of(g.value));
        o.short().starts_with("run") && of.is_some_and(|(id, _)| agents.contains(&id))
    };
    world.objects().filter(|(_, o)| is_run(o)).map(|(id, _)| id).collect()
}

/// Returns the kind of agent that an object is. `None` for any other object.
fn is(world: &World<'_>, id: ObjectId) -> Option<AgentKind> {
    let object = world.object(id);
    let of = |name: &str| match name.rsplit('.').next()? {
        "LlmAgent" | "Agent" => Some(AgentKind::Llm),
        "SequentialAgent" => Some(AgentKind::Sequence),
        "ParallelAgent" => Some(AgentKind::Parallel),
        "LoopAgent" => Some(AgentKind::Loop),
        _ => None,
    };
    let Some(class) = object.class else {
        let ours = object.base.is_none() && object.callee.starts_with("google.adk.");
        return of(&object.callee).filter(|_| ours);
    };
    let derives = |name: &'static str| {
        world.derives(class, move |n| n.starts_with("google.adk.") && n.rsplit('.').next() == Some(name))
    };
    let names = ["LlmAgent", "Agent", "SequentialAgent", "ParallelAgent", "LoopAgent"];
    let base = names.into_iter().find(|n| derives(n)).and_then(of);
    let own = world.class_lookup(class, "_run_async_impl").is_some();
    match base {
        Some(kind) if !own => Some(kind),
        Some(_) => Some(AgentKind::Code),
        None => derives("BaseAgent").then_some(AgentKind::Code),
    }
}

/// Returns the bound on model calls in a run.
fn calls(world: &World<'_>, units: &Units) -> LoopBound {
    let default = defaults::bound(&defaults::ADK_CALLS, &units.versions);
    let configs: Vec<Given<'_>> = world
        .objects()
        .filter(|(_, o)| o.short() == "RunConfig" && o.package() == "google")
        .filter_map(|(_, o)| field(o, None, "max_llm_calls"))
        .collect();
    match configs[..] {
        [] => default,
        [one] => match world.resolve_env(one.value).kind {
            PyKind::Int(n) if n <= 0 => {
                let none = LoopBound::none("`max_llm_calls` of 0 or less means no limit");
                LoopBound { span: Some(one.at), ..none }
            }
            _ => py::bound(world, Some(one), default),
        },
        _ => LoopBound::unknown("there are several values of `max_llm_calls`"),
    }
}

/// Returns the place of each agent's definition. Agents that one expression makes get distinct places within
/// it.
fn places(world: &World<'_>) -> HashMap<ObjectId, Span> {
    let mut made: HashMap<Span, u32> = HashMap::new();
    let mut out = HashMap::new();
    for (id, object) in world.objects().filter(|(id, _)| is(world, *id).is_some()) {
        let (span, count) = (object.span, made.entry(object.span).or_default());
        out.insert(id, Span { start: (span.start + *count).min(span.end), ..span });
        *count += 1;
    }
    out
}

/// An action as a call of a conversation.
fn chosen(action: Action) -> Choice {
    let Action { name, at, kind, description, handler, decl } = action;
    let asks = matches!(kind, ActionKind::Ask(_) | ActionKind::HandOff(_));
    let mut decl = match decl {
        Some(decl) => *decl,
        None if asks => crate::agent_host::asked(&name, "input", None, at),
        None => core_ir::ToolDecl::unknown(name.as_str().into(), at),
    };
    decl.description = description.as_deref().map(Name::from).or(decl.description);
    decl.handler = handler.or(decl.handler);
    let kind = match kind {
        ActionKind::Call => CallEffect::Call,
        ActionKind::Ask(term) | ActionKind::HandOff(term) => CallEffect::Ask(term),
        ActionKind::End | ActionKind::Finish => CallEffect::Finish,
    };
    Choice::new(decl, kind)
}

fn agent_of(world: &World<'_>, value: &Value) -> Option<ObjectId> {
    match world.resolve_env(value).kind {
        PyKind::Object(id) => is(world, id).map(|_| id),
        _ => None,
    }
}

/// The agent that `AgentTool(agent)` asks.
fn agent_asked(world: &World<'_>, object: &Object) -> Option<ObjectId> {
    let given = (object.short() == "AgentTool").then(|| field(object, Some(0), "agent")).flatten();
    agent_of(world, given?.value)
}

struct AdkReader<'r, 'w> {
    world: &'r World<'w>,
    places: &'r HashMap<ObjectId, Span>,
    /// Agents that others ask as a tool.
    asked: &'r HashSet<ObjectId>,
    /// State keys that agents of the unit set.
    keys: BTreeSet<String>,
    calls: LoopBound,
}

impl<'r> AdkReader<'r, '_> {
    fn get(&self, id: ObjectId, name: &str) -> Option<Given<'r>> {
        let object: &'r Object = self.world.object(id);
        if let Some(given) = field(object, None, name).filter(|g| !g.value.is_none()) {
            return Some(given);
        }
        // A class of the project may say it for its instances.
        let class = self.world.class(object.class?);
        class.attr(name).filter(|v| !v.is_none()).map(|value| Given { value, at: value.span })
    }

    fn name(&self, id: ObjectId) -> String {
        let said = |id| self.get(id, "name").and_then(|g| py::label(self.world, g.value));
        said(id).unwrap_or_else(|| {
            // Names that are not known are not one name.
            let agents = self.places.keys().filter(|other| **other < id && said(**other).is_none());
            match agents.count() {
                0 => "agent".into(),
                n => format!("agent_{}", n + 1),
            }
        })
    }

    /// Returns the place of its definition.
    fn place(&self, id: ObjectId) -> Span {
        self.places.get(&id).copied().unwrap_or(self.world.object(id).span)
    }

    fn key(&self, id: ObjectId) -> Option<String> {
        self.get(id, "output_key").and_then(|g| self.world.str(g.value)).map(str::to_string)
    }

    fn items(&self, id: ObjectId, name: &str) -> Vec<Value> {
        let given = self.get(id, name);
        given.map_or(Vec::new(), |g| match name {
            "tools" => py::tool_list(self.world, g.value),
            _ => self.world.items(g.value).unwrap_or(&[]).to_vec(),
        })
    }

    fn agent_of(&self, value: &Value) -> Option<ObjectId> {
        agent_of(self.world, value)
    }

    /// The agent that `AgentTool(agent)` asks.
    fn asked(&self, value: &Value) -> Option<ObjectId> {
        let (_, object) = self.world.object_of(value)?;
        agent_asked(self.world, object)
    }

    /// The agents that are parts of one.
    fn others(&self, id: ObjectId) -> Vec<ObjectId> {
        let tools = self.items(id, "tools");
        let subs = self.items(id, "sub_agents");
        subs.iter()
            .filter_map(|v| self.agent_of(v))
            .chain(tools.iter().filter_map(|v| self.asked(v)))
            .collect()
    }

    fn reached(&self, id: ObjectId) -> HashSet<ObjectId> {
        let mut seen = HashSet::new();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if seen.insert(id) {
                todo.extend(self.others(id));
            }
        }
        seen
    }

    /// An agent as a function of what the user says.
    fn unit(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        if self.keys.is_empty() && is(self.world, id) == Some(AgentKind::Llm) {
            return self.answers(kit, id);
        }
        let at = self.world.object(id).span;
        let first = kit.b.var("x", at);
        let mut fields: Vec<(Name, TermId)> = vec![(LAST.into(), first)];
        for key in self.keys.iter().filter(|k| *k != LAST) {
            // What nobody has written yet is empty.
            fields.push((key.as_str().into(), kit.text("", at)));
        }
        let begin = kit.b.add(Term::Record(fields), at);
        let function = self.stage(kit, id);
        let state = kit.b.var(STATE, at);
        let last = kit.b.app(function, state, at);
        let last = kit.b.add(Term::Field(last, LAST.into()), at);
        let body = kit.b.let_in(vec![(STATE.into(), begin)], last, at);
        kit.b.abs("x", Some(Type::Str), body, at)
    }

    /// An agent as a function of a text, where the state is in scope: what it leaves there is not seen by
    /// others.
    fn apart(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        if is(self.world, id) == Some(AgentKind::Llm) {
            return self.answers(kit, id);
        }
        let at = self.world.object(id).span;
        let function = self.stage(kit, id);
        let x = kit.b.var("x", at);
        let state = match self.keys.is_empty() {
            true => kit.b.add(Term::Record(vec![(LAST.into(), x)]), at),
            false => {
                let state = kit.b.var(STATE, at);
                kit.b.add(Term::With(state, LAST.into(), x), at)
            }
        };
        let last = kit.b.app(function, state, at);
        let last = kit.b.add(Term::Field(last, LAST.into()), at);
        kit.b.abs("x", Some(Type::Str), last, at)
    }

    /// An agent as a function of the state.
    fn stage(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let object = self.world.object(id);
        let (at, name) = (object.span, self.name(id));
        let kind = is(self.world, id).unwrap_or(AgentKind::Code);
        if let AgentKind::Llm | AgentKind::Code = kind {
            let function = self.answers(kit, id);
            let (state, x) = (kit.b.var(STATE, at), LAST.into());
            let x = kit.b.add(Term::Field(state, x), at);
            let said = kit.b.app(function, x, at);
            let (state, answer) = (kit.b.var(STATE, at), kit.b.var("$a", at));
            let mut left = kit.b.add(Term::With(state, LAST.into(), answer), at);
            if let Some(key) = self.key(id).filter(|k| k != LAST) {
                let answer = kit.b.var("$a", at);
                left = kit.b.add(Term::With(left, key.as_str().into(), answer), at);
            }
            let body = kit.b.let_in(vec![("$a".into(), said)], left, at);
            return kit.b.abs(STATE, None, body, at);
        }
        if let Err(unknown) = kit.open(&name, self.place(id), at, 0) {
            return unknown;
        }
        py::report(object, AGENT_KEYS, UNUSED, "an ADK workflow agent", kit.out);
        self.all_listed(kit, id, "sub_agents");
        let subs = self.items(id, "sub_agents");
        let mut stages: Vec<(TermId, Vec<String>)> = Vec::new();
        let is_empty = |g: Given<'_>| match self.world.resolve_env(g.value).kind {
            PyKind::List(list) => self.world.list(list).open.is_none(),
            _ => false,
        };
        if let Some(given) = self.get(id, "sub_agents").filter(|g| subs.is_empty() && !is_empty(*g)) {
            let why = "which agents these are".to_string();
            stages.push((kit.undecided(codes::NOT_COMPILED, why, given.at), Vec::new()));
        }
        for sub in &subs {
            let (stage, keys) = match self.agent_of(sub) {
                Some(agent) => {
                    let keys = self.reached(agent).into_iter().filter_map(|a| self.key(a));
                    (self.stage(kit, agent), keys.collect())
                }
                None => {
                    let why = format!("an agent that is not known: {}", self.world.unknown_reason(sub));
                    (kit.undecided(codes::NOT_COMPILED, why, sub.span), Vec::new())
                }
            };
            stages.push((stage, keys));
        }
        let term = match kind {
            AgentKind::Parallel => self.together(kit, stages, at),
            AgentKind::Loop => {
                let body = self.in_a_row(kit, stages, at);
                let none = LoopBound::none(
                    "an ADK LoopAgent without `max_iterations` runs until one of its agents escalates",
                );
                let bound = py::bound(self.world, self.get(id, "max_iterations"), none);
                self.repeated(kit, body, bound, at)
            }
            _ => self.in_a_row(kit, stages, at),
        };
        kit.close();
        term
    }

    fn in_a_row(&self, kit: &mut Kit<'_>, stages: Vec<(TermId, Vec<String>)>, at: Span) -> TermId {
        let mut said: Vec<(Name, TermId)> = Vec::new();
        for (stage, _) in stages {
            let state = kit.b.var(STATE, at);
            said.push((STATE.into(), kit.b.app(stage, state, at)));
        }
        let last = kit.b.var(STATE, at);
        let body = kit.b.let_in(said, last, at);
        kit.b.abs(STATE, None, body, at)
    }

    /// All on the same state; what each says one below the other, and what each leaves.
    fn together(&self, kit: &mut Kit<'_>, stages: Vec<(TermId, Vec<String>)>, at: Span) -> TermId {
        if stages.len() < 2 {
            return self.in_a_row(kit, stages, at);
        }
        let mut sides = Vec::new();
        for (stage, _) in &stages {
            let state = kit.b.var(STATE, at);
            sides.push(kit.b.app(*stage, state, at));
        }
        let side = |kit: &mut Kit<'_>, i: usize, name: &str| {
            let (all, i) = (kit.b.var(SIDES, at), kit.b.lit(core_ir::Num::from(i as i64), at));
            let one = kit.b.add(Term::Index(all, i), at);
            kit.b.add(Term::Field(one, name.into()), at)
        };
        let mut text = Template::new(at);
        for i in 0..stages.len() {
            if i > 0 {
                text.text("\n\n");
            }
            let said = side(kit, i, LAST);
            text.term(said);
        }
        let text = text.build(&mut kit.b);
        let state = kit.b.var(STATE, at);
        let mut left = kit.b.add(Term::With(state, LAST.into(), text), at);
        for (i, (_, keys)) in stages.iter().enumerate() {
            for key in keys.iter().filter(|k| *k != LAST).collect::<BTreeSet<_>>() {
                let value = side(kit, i, key);
                left = kit.b.add(Term::With(left, key.as_str().into(), value), at);
            }
        }
        let all = kit.b.add(Term::Par(None, sides), at);
        let body = kit.b.let_in(vec![(SIDES.into(), all)], left, at);
        kit.b.abs(STATE, None, body, at)
    }

    /// Again and again, until an agent in it escalates, which is an error there. An error that comes again
    /// however often the request is repeated is no escalation: it ends the run.
    fn repeated(&self, kit: &mut Kit<'_>, body: TermId, bound: LoopBound, at: Span) -> TermId {
        let fix_at = bound.span.unwrap_or(at);
        let turn = |kit: &mut Kit<'_>, on: bool, state: TermId| {
            let on = kit.b.lit(Data::Bool(on), at);
            kit.b.add(Term::Record(vec![("on".into(), on), ("state".into(), state)]), at)
        };
        let of = |kit: &mut Kit<'_>, name: &str| {
            let turn = kit.b.var(TURN, at);
            kit.b.add(Term::Field(turn, name.into()), at)
        };
        let state = kit.b.var(STATE, at);
        let once = kit.b.app(body, state, at);
        let once = turn(kit, true, once);
        let state = kit.b.var(STATE, at);
        let handler = turn(kit, false, state);
        let label = kit.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
        let catches = Catches::Transient;
        let tried = Term::Try { label, body: once, catches, name: "m".into(), handler };
        let tried = kit.b.add(tried, at);
        let (on, next, last) = (of(kit, "on"), of(kit, "state"), of(kit, "state"));
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, next, at);
        let step = kit.b.add(Term::If(on, again, last, IfSugar::Plain), at);
        let step = kit.b.let_in(vec![(TURN.into(), tried)], step, at);
        let step = kit.b.abs(STATE, None, step, at);
        let body = kit.b.abs("self", None, step, at);
        kit.fix(bound, body, fix_at)
    }

    /// An agent that a model is, as a function of text.
    fn answers(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let object = self.world.object(id);
        let (at, name) = (object.span, self.name(id));
        let text = self.get(id, "instruction").map_or(0, |g| py::length(self.world, g.value));
        if let Err(unknown) = kit.open(&name, self.place(id), at, text) {
            return unknown;
        }
        let term = match is(self.world, id) {
            Some(AgentKind::Llm) => match self.society(id) {
                Some(society) => self.conversation(kit, &society),
                None => self.model(kit, id, &name),
            },
            _ => {
                let why = format!("what the agent `{}` does: it is code", clip(&name));
                kit.undecided(codes::NOT_COMPILED, why, at)
            }
        };
        kit.close();
        term
    }

    /// The agents that hand off to each other: an agent with the agents below it, if all are models. Each is
    /// with the number of the agent that it is below.
    fn society(&self, root: ObjectId) -> Option<Vec<(ObjectId, Option<usize>)>> {
        let mut all: Vec<(ObjectId, Option<usize>)> = vec![(root, None)];
        let mut at = 0;
        while let Some((id, _)) = all.get(at).copied() {
            let open = match self.get(id, "sub_agents").map(|g| &g.value.kind) {
                None => false,
                Some(PyKind::List(list)) => self.world.list(*list).open.is_some(),
                Some(_) => true,
            };
            if open {
                return None;
            }
            for sub in self.items(id, "sub_agents") {
                let sub = self.agent_of(&sub).filter(|s| is(self.world, *s) == Some(AgentKind::Llm))?;
                // An agent has one parent.
                if all.len() >= MAX_SOCIETY || all.iter().any(|(known, _)| *known == sub) {
                    return None;
                }
                all.push((sub, Some(at)));
            }
            at += 1;
        }
        (all.len() > 1).then_some(all)
    }

    /// Agents that hand off to each other in one conversation: to those below, to the one above, and to those
    /// beside, unless that is switched off.
    fn conversation(&self, kit: &mut Kit<'_>, society: &[(ObjectId, Option<usize>)]) -> TermId {
        let off = |id: ObjectId, key: &str| {
            self.get(id, key).is_some_and(|g| matches!(g.value.kind, PyKind::Bool(true)))
        };
        let may = |from: usize, to: usize| {
            let ((id, above), (_, other_above)) = (society[from], society[to]);
            other_above == Some(from)
                || above == Some(to) && !off(id, "disallow_transfer_to_parent")
                || from != to
                    && above.is_some()
                    && above == other_above
                    && !off(id, "disallow_transfer_to_peers")
        };
        let head = self.world.object(society[0].0).span;
        let mut speakers = Vec::new();
        for (n, (id, _)) in society.iter().enumerate() {
            let (id, span) = (*id, self.world.object(*id).span);
            let name = self.name(id);
            if n > 0 {
                let text = self.get(id, "instruction").map_or(0, |g| py::length(self.world, g.value));
                if let Err(unknown) = kit.open(&name, self.place(id), span, text) {
                    return unknown;
                }
            }
            let (mut params, model_at) = self.params(kit, id);
            params.purpose = Some(Name::from(name.as_str()));
            let copies = (0..society.len()).filter(|from| may(*from, n)).count();
            let prompts = (0..copies + usize::from(n == 0)).map(|_| self.prompt(kit, id)).collect();
            let mut choices: Vec<Choice> = self.tools(kit, id).into_iter().map(chosen).collect();
            for (to, (other, _)) in society.iter().enumerate().filter(|(to, _)| may(n, *to)) {
                let about =
                    self.get(*other, "description").and_then(|g| self.world.str(g.value)).unwrap_or("");
                let decl =
                    crate::agent_host::handoff(&self.name(*other), about, self.world.object(*other).span);
                let said = format!("Transferred to {}.", self.name(*other));
                choices.push(Choice::new(decl, CallEffect::Switch(to, said)));
            }
            if n > 0 {
                kit.close();
            }
            let choices_at = self.get(id, "tools").map(|g| g.at);
            let model_at = model_at.unwrap_or(span);
            speakers.push(Speaker { name, head: span, prompts, params, model_at, choices, choices_at });
        }
        let over = match self.calls.bound {
            core_ir::Bound::Finite(n) => format!("max llm calls ({n}) exceeded"),
            core_ir::Bound::Infinite => "max llm calls exceeded".to_string(),
        };
        let mut bound = self.calls.clone();
        bound.facts.unsettable = self.asked.contains(&society[0].0);
        conversation(kit, speakers, bound, &over, head)
    }

    /// The model of an agent with its settings, and the place that names it.
    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>) {
        let object = self.world.object(id);
        py::report(object, AGENT_KEYS, UNUSED, "an ADK agent", kit.out);
        let mut params = ModelParams::default();
        let model = self.get(id, "model").and_then(|g| self.world.object_of(g.value)?.1.class);
        let is_model = |name: &str| name.starts_with("google.adk.") && name.ends_with(".BaseLlm");
        kit.outline.scripted |=
            model.is_some_and(|c| py::replies_itself(self.world, c, "generate_content_async", is_model));
        let model_at = py::model(self.world, self.get(id, "model"), &mut params, kit);
        if let Some(given) = self.get(id, "generate_content_config")
            && let Some((_, config)) = self.world.object_of(given.value)
        {
            for arg in &config.args {
                if let Some(name) = &arg.name {
                    py::setting(
                        self.world,
                        name,
                        Given { value: &arg.value, at: arg.span },
                        &mut params,
                        kit.out,
                    );
                }
            }
        }
        (params, model_at)
    }

    fn model(&self, kit: &mut Kit<'_>, id: ObjectId, name: &str) -> TermId {
        let head = self.world.object(id).span;
        let (mut params, model_at) = self.params(kit, id);
        let prompt = self.prompt(kit, id);
        let mut actions = self.tools(kit, id);
        self.all_listed(kit, id, "sub_agents");
        for sub in self.items(id, "sub_agents") {
            match self.agent_of(&sub) {
                Some(agent) => {
                    let term = self.apart(kit, agent);
                    actions.push(Action::handoff(self.name(agent), term, sub.span));
                }
                None => {
                    let message = format!("an agent that is not known: {}", self.world.unknown_reason(&sub));
                    kit.out.push(undecided(codes::NOT_COMPILED, message, sub.span));
                }
            }
        }
        let schema = self.get(id, "output_schema").map(|g| py::type_of(self.world, g.value));
        let typed = schema.filter(|ty| actions.is_empty() && !matches!(ty, Type::Str | Type::Null));
        params.result = typed.clone();
        let actions_at = self.get(id, "tools").map(|g| g.at);
        let bound = self.within(id, self.calls.clone());
        let agent = kit.agent(Agent { name, head, prompt, params, model_at, actions, actions_at, bound });
        match typed {
            None => agent,
            // What others are told of it is its text.
            Some(_) => {
                let said = kit.on_x(agent, head);
                let said = kit.b.add(Term::Prim(Prim::ToStr, vec![said]), head);
                kit.b.abs("x", Some(Type::Str), said, head)
            }
        }
    }

    /// The bound of an agent, with how its loop ends if no tool that it certainly has takes a turn.
    fn within(&self, id: ObjectId, mut bound: LoopBound) -> LoopBound {
        let tools = self.items(id, "tools");
        // Each item is added under a condition that the run decides.
        let all_maybe = match self.get(id, "tools").map(|g| &self.world.resolve_env(g.value).kind) {
            Some(PyKind::List(list)) => self.world.list(*list).items.iter().all(|item| item.maybe),
            _ => false,
        };
        let is_unknown = |tool: &Value| matches!(tool.kind, PyKind::Unknown(_));
        let takes_turn = |tool: &Value| !is_unknown(tool) && !is_hosted(self.world, tool);
        let none = bound.origin.is_none() || self.get(id, "sub_agents").is_some();
        // `AgentTool` runs its agent without settings.
        bound.facts.unsettable = self.asked.contains(&id);
        bound.facts.ends = match tools.iter().any(takes_turn) {
            _ if none => None,
            true if !all_maybe => None,
            false if !tools.iter().any(is_unknown) => Some(Ends::AtOnce),
            _ => Some(Ends::ByUnknownTools),
        };
        bound
    }

    /// The instruction, in which `{key}` is what an agent left under the key, or an input.
    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let Some(Given { value, at }) = self.get(id, "instruction") else {
            return kit.text("", self.world.object(id).span);
        };
        if let Some(f) = py::function_of(value) {
            let why = format!("the output of `{}`", self.world.function(f).name);
            return kit.undecided(codes::NOT_COMPILED, why, at);
        }
        let Some(pieces) = self.world.text_of(value) else {
            let why = self.world.unknown_reason(value).to_string();
            return kit.undecided(codes::NOT_COMPILED, why, at);
        };
        let at = value.span;
        let mut template = Template::new(at);
        for piece in pieces {
            let text = match piece {
                Piece::Text(text) => text,
                Piece::Hole(hole, written) => {
                    let hole = match py::ambient(kit, self.world, &hole) {
                        Some(asked) => asked,
                        None => kit.unknown(&written, at),
                    };
                    template.term(hole);
                    continue;
                }
            };
            // `{key?}` may be missing.
            let mut text = text.to_string();
            for key in &self.keys {
                text = text.replace(&format!("{{{key}?}}"), &format!("{{{key}}}"));
            }
            for part in parts(&text) {
                match part {
                    Part::Text(t) => {
                        template.text(t);
                    }
                    Part::Hole(name) if self.keys.contains(name) => {
                        let state = kit.b.var(STATE, at);
                        template.term(kit.b.add(Term::Field(state, name.into()), at));
                    }
                    Part::Hole(name) => {
                        let value = kit.input(name, at);
                        template.term(value);
                    }
                }
            }
        }
        let text = template.build(&mut kit.b);
        py::written(kit, value, text)
    }

    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId) -> Vec<Action> {
        self.all_listed(kit, id, "tools");
        let mut actions: Vec<Action> = Vec::new();
        for value in self.items(id, "tools") {
            let at = value.span;
            if let Some(agent) = self.asked(&value) {
                let term = self.apart(kit, agent);
                actions.push(Action::ask(self.name(agent), term, at));
                continue;
            }
            // An agent that is asked, and is not known.
            if let Some((_, object)) = self.world.object_of(&value).filter(|(_, o)| o.short() == "AgentTool")
            {
                let given = field(object, Some(0), "agent").map_or(&value, |g| g.value);
                let name = py::outside(given).unwrap_or_else(|| format!("agent_{}", actions.len() + 1));
                let why = format!("an agent used as a tool: {}", self.world.unknown_reason(given));
                let unknown = kit.undecided(codes::NOT_COMPILED, why, at);
                actions.push(Action::ask(name, unknown, at));
                continue;
            }
            let function = py::function_of(&value).or_else(|| {
                let (_, object) = self.world.object_of(&value)?;
                py::wrapped(object)
            });
            if let Some(function) = function {
                let action = self.function(function, at);
                // The loop ends when the agent has answered. It may call the function again before.
                if matches!(action.kind, ActionKind::End) {
                    let why = format!("calls of `{}`, after which its agent goes on", clip(&action.name));
                    kit.left_out(why, at);
                }
                actions.push(action);
                continue;
            }
            let object = self.world.object_of(&value).map(|(_, o)| o);
            let short = object.map(|o| o.short().to_string()).or_else(|| py::outside(&value));
            match short {
                Some(name) if name.to_ascii_lowercase().contains("mcp") => {
                    let message =
                        "the tools of an MCP server are known when it runs; one tool represents all";
                    kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                    let servers = actions.iter().filter(|h| h.name.starts_with("mcp")).count();
                    let own = if servers == 0 { "mcp".to_string() } else { format!("mcp_{}", servers + 1) };
                    actions.push(Action::mcp(own, &name, at));
                }
                // `exit_loop` ends the loop agent around this one.
                Some(name) if name == "exit_loop" => {
                    actions.push(Action { kind: ActionKind::End, ..Action::tool(name, at) })
                }
                Some(name) => actions.push(Action::tool(name, at)),
                None => {
                    py::unknown_tool(kit, self.world, &value);
                    actions.push(Action::tool(format!("unknown_{}", actions.len() + 1), at));
                }
            }
        }
        actions
    }

    /// A function as a tool.
    fn function(&self, function: FunctionId, at: Span) -> Action {
        let f = self.world.function(function);
        let hidden = |world: &World<'_>, annotation: &Value| {
            world.name_of(annotation).is_some_and(|n| n.ends_with("Context"))
        };
        let mut decl = py::signature(self.world, function, &f.name, at, hidden);
        decl.params.retain(|p| &*p.name != "tool_context");
        // What stands in a class or in another function is found by its name.
        let at = if decl.handler.is_none() { f.name_span } else { at };
        decl.span = at;
        // One that always escalates ends the loop around the agent; one that does under a test may.
        let always = f.body().iter().any(escalates);
        let does = if always { ActionKind::End } else { ActionKind::Call };
        // Ending a loop has no parameters.
        let decl = (!always).then(|| Box::new(decl));
        Action { kind: does, decl, ..Action::tool(f.name.to_string(), at) }
    }

    /// Says if some of a list are not known.
    fn all_listed(&self, kit: &mut Kit<'_>, id: ObjectId, key: &str) {
        let Some(given) = self.get(id, key) else { return };
        let open = match self.world.resolve_env(given.value).kind {
            PyKind::List(list) => self.world.list(list).open.map(|_| given.at),
            _ => Some(given.at),
        };
        if let Some(at) = open {
            let message = format!(
                "some of the {} are not known: {}",
                key.replace('_', "-"),
                self.world.unknown_reason(given.value)
            );
            kit.left_out(message, at);
        }
    }
}
