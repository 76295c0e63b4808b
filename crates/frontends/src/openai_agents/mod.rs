//! The OpenAI Agents SDK, in Python: what `Agent(…)` and `Runner.run(…)` build.
//!
//! | source | term |
//! |---|---|
//! | `Agent(name, instructions, model)` | `llm p θ` |
//! | with `tools` or `handoffs` | a conversation: `fresh (send[system] p; send x; fix[max_turns] …)` |
//! | `@function_tool` | a tool with the function's parameters, types and documentation |
//! | `other.as_tool(…)` | an agent that is asked and answers, in a conversation and with turns of its own |
//! | `handoffs=[other]` | `transfer_to_other`: the other goes on in the same conversation |
//! | `output_type` | the type that the reply is decoded to |
//! | `Runner.run(agent, max_turns=n)` | the bound; 10 if it does not say |
//! | several runs in a function, which depend on each other | the function, see [`whole`] |
//!
//! A turn is one reply of a model, whoever speaks. When the turns are used up, the run fails, as in the SDK.
//!
//! Source: openai/openai-agents-python 0.24.0: `agent.py`, `run.py`, `run_config.py`, `handoffs/__init__.py`,
//! `util/_transforms.py`.

use crate::defaults;
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Given, Runs, field};
use core_ir::{Bound, LabelSpec, ModelParams, Name, TermId, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use frontend_kit::conversation::{
    CallEffect, Choice, Opening, Over, Speaker, conversation_from, max_replies,
};
use frontend_kit::emit::{LoopBound, Unused, clip, codes, undecided};
use frontend_kit::kit::{Kit, Units, plain};
use frontend_kit::outline::{Ends, ToolRole};
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::why;
use python::{Arg, FunctionId, Object, ObjectId, PyKind, Value, World};
use std::collections::{HashMap, HashSet};

/// The front end.
pub struct OpenAiAgents;

mod block;
mod function;
mod loops;
mod value;

const AGENT_KEYS: &[&str] = &[
    "name",
    "instructions",
    "model",
    "model_settings",
    "tools",
    "handoffs",
    "output_type",
    "handoff_description",
    "tool_use_behavior",
    "mcp_servers",
];
const AGENT_UNUSED: &[Unused] = &[
    ("prompt", "the prompt is kept by the provider"),
    ("input_guardrails", "they are code, which may end the run before the agent answers"),
    ("output_guardrails", "they are code, which may end the run after the agent answered"),
    ("hooks", why::CODE),
    ("mcp_config", why::RUNTIME),
    ("reset_tool_choice", why::RUNTIME),
];
const RUN_KEYS: &[&str] = &["starting_agent", "input", "max_turns"];
const RUN_UNUSED: &[Unused] = &[
    ("context", "the context passed to tools is code"),
    ("hooks", why::CODE),
    ("run_config", why::NOT_YET),
    ("session", "what earlier runs said is not compiled yet"),
    ("previous_response_id", why::RUNTIME),
    ("auto_previous_response_id", why::RUNTIME),
    ("conversation_id", why::RUNTIME),
    ("error_handlers", why::CODE),
];
/// Calls that start a run.
const RUNS: &[&str] = &["run", "run_sync", "run_streamed"];
/// Tools of the provider, with the names that models see.
const HOSTED: &[(&str, &str)] = &[
    ("WebSearchTool", "web_search"),
    ("FileSearchTool", "file_search"),
    ("CodeInterpreterTool", "code_interpreter"),
    ("ImageGenerationTool", "image_generation"),
    ("ComputerTool", "computer_use_preview"),
    ("LocalShellTool", "local_shell"),
    ("ShellTool", "shell"),
    ("ApplyPatchTool", "apply_patch"),
];

/// Hosted tools that run while the model replies; the others are left to the SDK, which takes a
/// turn for each.
const BY_PROVIDER: &[&str] =
    &["WebSearchTool", "FileSearchTool", "CodeInterpreterTool", "ImageGenerationTool"];

impl Frontend for OpenAiAgents {
    fn name(&self) -> &'static str {
        "openai_agents"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["Runner.run", "Runner.run_streamed", "Runner.run_sync"]
    }

    fn detect(&self, file: &File) -> u8 {
        // A project of another framework may have a folder of this name.
        const OTHERS: &[&str] = &[
            "autogen_agentchat",
            "crewai",
            "google",
            "langgraph",
            "llama_index",
            "pydantic_ai",
            "smolagents",
        ];
        let makes = || py::makes(file, |name| name.ends_with("Agent") || name == "Runner");
        if py::imports(file, &["agents"]) && makes() && !py::imports(file, OTHERS) { 80 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some(
                "the SDK asks the model that `OPENAI_DEFAULT_MODEL` names, or its own default",
            ),
            ends_loops: Some("the SDK ends a run at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instructions=`",
                model: "name one: `model=`",
                bound: if project
                    .versions
                    .of(defaults::OPENAI_AGENTS_TURNS.package)
                    .is_some_and(|v| frontend_kit::versions::parts(v) < vec![0, 3])
                {
                    "state it: `max_turns=` of `Runner.run`"
                } else {
                    "state it: `max_turns=` of `Runner.run`, and of `as_tool` where the agent is a tool"
                },
                ..Words::default()
            },
            code: CodeFacts { run_limit: Some("max_turns"), ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        py::evaluated(project, file, python::Limits::default(), Some(&Sdk), |world, found| {
            units.compiled.diagnostics.extend(found);
            made(units, file, world)
        })
    }
}

fn made(mut units: Units, file: &File, mut world: World<'_>) -> Compiled {
    let said = said_by_functions(&mut world);
    let reader = SdkReader { world: &world, said };
    let mut used: HashSet<ObjectId> = HashSet::new();
    let whole = function::FunctionLowering::new(&reader);
    let functions = whole.found(file);
    let asks = ModelRequests::new(&world);
    // What is run: an agent with its bound, and the runs of it.
    let mut begun: Vec<(ObjectId, LoopBound, Vec<ObjectId>)> = Vec::new();
    let mut done: HashMap<(ObjectId, Option<String>), usize> = HashMap::new();
    let mut other: Option<Uncounted> = None;
    for (run_id, run) in py::made_by(&world, |o| py::made_in(o, file) && is_run(o)) {
        py::report(run, RUN_KEYS, RUN_UNUSED, "a run", &mut units.compiled.diagnostics);
        let Some(start) = field(run, Some(0), "starting_agent") else { continue };
        let Some(id) = reader.agent_of(start.value) else {
            let message = format!("the agent that is run: {}", world.unknown_reason(start.value));
            units.compiled.diagnostics.push(undecided(codes::NOT_COMPILED, message.clone(), start.at));
            // It may be any of the agents.
            other.get_or_insert((message, start.at));
            continue;
        };
        let turns = field(run, None, "max_turns");
        used.insert(id);
        // A part of a function that is compiled whole.
        if functions.iter().any(|f| f.sites.contains(&run.span)) {
            continue;
        }
        let place = *done.entry((id, turns.map(|t| format!("{:?}", t.value.kind)))).or_insert(begun.len());
        if let Some((_, _, runs)) = begun.get_mut(place) {
            runs.push(run_id);
            continue;
        }
        let default = defaults::bound(&defaults::OPENAI_AGENTS_TURNS, &units.versions);
        let bound = py::bound(&world, turns, default);
        begun.push((id, bound, vec![run_id]));
    }
    for (id, bound, runs) in begun {
        add(&mut units, &reader, &asks, (id, bound), &runs, &other);
    }
    for function in &functions {
        units.add(&function.name, UnitKind::Crew, function.at, |kit| {
            let term = whole.unit(kit, function);
            let runs: Vec<ObjectId> = function.sites.iter().flat_map(|at| whole.runs_of(*at)).collect();
            let called = world.function(function.function);
            let calls = match (called.repeated, called.called) {
                (true, _) => {
                    Runs::Unknown("it is called again an unknown number of times".into(), function.at)
                }
                (false, n) => Runs::AtMost(n, function.at),
            };
            py::counted(kit, term, Some(calls), || reader.beside(&asks, &runs))
        });
    }
    let all: Vec<ObjectId> = world
        .objects()
        .filter(|(id, _)| reader.is_agent(*id) && py::made_here(&world, *id, file))
        .map(|(id, _)| id)
        .collect();
    // Agents that others hand off to, or ask, are parts of these.
    let mut parts: HashSet<ObjectId> = HashSet::new();
    for id in &all {
        parts.extend(reader.others(*id).into_iter().filter(|o| o != id));
        parts.extend(world.object(*id).base);
    }
    for id in used.clone() {
        used.extend(reader.reached(id));
    }
    for id in all.iter().filter(|id| !used.contains(id) && !parts.contains(id)) {
        let default = defaults::bound(&defaults::OPENAI_AGENTS_TURNS, &units.versions);
        add(&mut units, &reader, &asks, (*id, default), &[], &other);
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    units.done(Some(start), "no agent is made here")
}

fn add(
    units: &mut Units,
    reader: &SdkReader<'_, '_>,
    asks: &ModelRequests<'_, '_>,
    (id, bound): (ObjectId, LoopBound),
    runs: &[ObjectId],
    other: &Option<Uncounted>,
) {
    let object = reader.world.object(id);
    let name = reader.name(id);
    let kind = if reader.reached(id).len() > 1 { UnitKind::Crew } else { UnitKind::Agent };
    let span = object.span;
    units.add(&name, kind, span, |kit| {
        let term = reader.run(kit, id, bound, 0);
        let beside = || match runs {
            [] => reader.asked_beside(asks, [id]),
            runs => reader.beside(asks, runs),
        };
        py::counted(kit, term, py::repeats(reader.world, runs), || other.clone().or_else(beside))
    });
}

fn is_run(object: &Object) -> bool {
    RUNS.contains(&object.short()) && object.callee.contains("Runner") && object.package() == "agents"
}

/// The name that models see: as the SDK makes it of any name.
fn function_style(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

/// The most agents of one conversation.
const MAX_AGENTS: usize = 200;

/// The names of the SDK that matter here; a project may have a folder `agents` of its own.
#[derive(Debug)]
struct Sdk;

const NAMES: &[&str] = &[
    "",
    "Agent",
    "Runner",
    "function_tool",
    "FunctionTool",
    "handoff",
    "Handoff",
    "ModelSettings",
    "RunConfig",
    "RunContextWrapper",
    "ToolContext",
    "StopAtTools",
    "AgentOutputSchema",
    "InputGuardrail",
    "OutputGuardrail",
    "GuardrailFunctionOutput",
    "input_guardrail",
    "output_guardrail",
    "OpenAIChatCompletionsModel",
    "OpenAIResponsesModel",
    "SQLiteSession",
    "trace",
    "HostedMCPTool",
    "TResponseInputItem",
    "MaxTurnsExceeded",
];

impl python::Framework for Sdk {
    fn name(&self) -> &'static str {
        "openai_agents"
    }

    fn owns(&self, module: &str, name: &str) -> bool {
        let known = NAMES.contains(&name) || HOSTED.iter().any(|(tool, _)| *tool == name);
        module == "agents" && known
            || ["agents.mcp", "agents.extensions"].iter().any(|m| module.starts_with(m))
    }
}

/// Results of functions that make instructions, by agent and function.
type Instructions = HashMap<(ObjectId, FunctionId), Value>;

/// Evaluates the functions that make instructions, with an unknown context.
fn said_by_functions(world: &mut World<'_>) -> Instructions {
    let functions: Vec<(ObjectId, Value, FunctionId)> = world
        .objects()
        .filter_map(|(id, o)| {
            let given = field(o, None, "instructions")?;
            Some((id, given.value.clone(), py::function_of(given.value)?))
        })
        .collect();
    let mut said = HashMap::new();
    for (id, function, f) in functions {
        let span = function.span;
        let context = world.new_call("agents.RunContextWrapper", Vec::new(), span);
        let args = [context, Value::new(PyKind::Object(id), span)];
        let args = args.map(|value| Arg { name: None, value, span }).to_vec();
        said.insert((id, f), world.call(&function, args));
    }
    said
}

struct SdkReader<'r, 'w> {
    world: &'r World<'w>,
    said: Instructions,
}

impl SdkReader<'_, '_> {
    fn is_agent(&self, id: ObjectId) -> bool {
        let object = self.world.object(id);
        let from_class = object
            .class
            .is_some_and(|c| self.world.derives(c, |n| n.starts_with("agents.") && n.ends_with("Agent")));
        let known = matches!(&*object.callee, "agents.Agent" | "agents.agent.Agent" | "agents.Agent.clone");
        // A clone of a clone.
        known || from_class || (object.short() == "clone" && object.base.is_some_and(|b| self.is_agent(b)))
    }

    fn agent_of(&self, value: &Value) -> Option<ObjectId> {
        let settled = self.world.resolve_env(value);
        match settled.kind {
            PyKind::Object(id) => self.is_agent(id).then_some(id),
            // Of several agents, none represents the others.
            _ => None,
        }
    }

    /// An argument of an agent; of a clone, what it was cloned from says the rest.
    fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'_>> {
        let mut id = id;
        for _ in 0..16 {
            let object = self.world.object(id);
            let is_clone = object.short() == "clone";
            if let Some(found) = field(object, position.filter(|_| !is_clone), name) {
                return Some(found);
            }
            id = object.base.filter(|_| is_clone)?;
        }
        None
    }

    fn name(&self, id: ObjectId) -> String {
        self.get(id, Some(0), "name")
            .and_then(|g| py::label(self.world, g.value))
            .unwrap_or_else(|| "agent".into())
    }

    /// Returns the place of an agent's definition. Agents that one function makes are told apart by the place
    /// of their names.
    fn place(&self, id: ObjectId) -> Span {
        let span = self.world.object(id).span;
        let alone = self.world.objects().filter(|(i, o)| o.span == span && self.is_agent(*i)).count() < 2;
        let name = self.get(id, Some(0), "name").filter(|_| !alone);
        name.map_or(span, |g| g.value.span)
    }

    fn items(&self, id: ObjectId, name: &str) -> Vec<Value> {
        let written = self.get(id, None, name);
        let mut items = written.map_or(Vec::new(), |g| match name {
            "tools" | "mcp_servers" => py::tool_list(self.world, g.value),
            _ => self.world.items(g.value).unwrap_or(&[]).to_vec(),
        });
        // `agent.handoffs.append(other)` where none were given.
        for call in &self.world.object(id).calls {
            let Some(method) = call.name.strip_prefix(name).and_then(|n| n.strip_prefix('.')) else {
                continue;
            };
            let given = self.world.object(call.result).args.first();
            match (method, given.map(|a| &a.value)) {
                ("append", Some(value)) => items.push(value.clone()),
                ("extend", Some(value)) => {
                    items.extend(self.world.items(value).unwrap_or(&[]).iter().cloned())
                }
                _ => {}
            }
        }
        items
    }

    /// The agent that a handoff leads to.
    fn target(&self, value: &Value) -> Option<ObjectId> {
        if let Some(id) = self.agent_of(value) {
            return Some(id);
        }
        let (_, object) = self.world.object_of(value)?;
        (object.short() == "handoff")
            .then(|| field(object, Some(0), "agent"))
            .flatten()
            .and_then(|g| self.agent_of(g.value))
    }

    fn is_as_tool(&self, value: &Value) -> Option<ObjectId> {
        let (_, object) = self.world.object_of(value)?;
        (object.short() == "as_tool").then_some(object.base?).filter(|b| self.is_agent(*b))
    }

    /// The agents that one hands off to or asks.
    fn others(&self, id: ObjectId) -> Vec<ObjectId> {
        let over = self.items(id, "handoffs");
        let tools = self.items(id, "tools");
        over.iter()
            .filter_map(|v| self.target(v))
            .chain(tools.iter().filter_map(|v| self.is_as_tool(v)))
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

    /// Reason for model calls of runs beside their agents' own turns: functions that they, or their agents,
    /// are given.
    fn beside(&self, asks: &ModelRequests<'_, '_>, runs: &[ObjectId]) -> Option<Uncounted> {
        let given = runs.iter().flat_map(|run| {
            let args = self.world.object(*run).args.iter().enumerate();
            // The input is data.
            args.filter(|(i, a)| a.name.as_deref() != Some("input") && (*i, a.name.is_none()) != (1, true))
        });
        let found = asks.beside(given.map(|(_, a)| &a.value), &|id| self.is_agent(id));
        let agents = runs.iter().filter_map(|run| {
            field(self.world.object(*run), Some(0), "starting_agent").and_then(|g| self.agent_of(g.value))
        });
        found.or_else(|| self.asked_beside(asks, agents))
    }

    /// The same of agents, and of those that they hand off to or ask.
    fn asked_beside(
        &self,
        asks: &ModelRequests<'_, '_>,
        agents: impl IntoIterator<Item = ObjectId>,
    ) -> Option<Uncounted> {
        let mut reached: HashSet<ObjectId> = HashSet::new();
        agents.into_iter().for_each(|id| reached.extend(self.reached(id)));
        let mut all: Vec<ObjectId> = reached.into_iter().collect();
        // What an agent is a clone of says the rest.
        let mut at = 0;
        while let Some(base) = all.get(at).map(|id| self.world.object(*id).base) {
            at += 1;
            all.extend(base.filter(|b| !all.contains(b)));
        }
        all.sort();
        all.iter().find_map(|id| {
            let object = self.world.object(*id);
            let class = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
            let added = object.calls.iter().flat_map(|call| &self.world.object(call.result).args);
            let args = object.args.iter().chain(added).map(|a| &a.value);
            let given = args.chain(object.attrs.iter().map(|(_, v)| v)).chain(&class);
            asks.beside(given, &|id| self.is_agent(id))
        })
    }

    /// A run that begins with an agent: of a text.
    fn run(&self, kit: &mut Kit<'_>, start: ObjectId, bound: LoopBound, depth: usize) -> TermId {
        self.run_from(kit, start, bound, depth, Opening::Text)
    }

    /// The same of a list of messages.
    fn run_on_messages(&self, kit: &mut Kit<'_>, start: ObjectId, bound: LoopBound) -> TermId {
        self.run_from(kit, start, bound, 0, Opening::Messages)
    }

    fn run_from(
        &self,
        kit: &mut Kit<'_>,
        start: ObjectId,
        bound: LoopBound,
        depth: usize,
        begins: Opening,
    ) -> TermId {
        let head = self.world.object(start).span;
        // Who may speak: in the order in which they are handed off to.
        let mut order = vec![start];
        let mut index: HashMap<ObjectId, usize> = HashMap::from([(start, 0)]);
        let mut at = 0;
        let mut switches: HashMap<ObjectId, usize> = HashMap::from([(start, 1)]);
        while at < order.len() {
            for over in self.items(order[at], "handoffs").iter().filter_map(|v| self.target(v)) {
                *switches.entry(over).or_default() += 1;
                if !index.contains_key(&over) && order.len() < MAX_AGENTS {
                    index.insert(over, order.len());
                    order.push(over);
                }
            }
            at += 1;
        }
        let mut opened = 0;
        let mut speakers = Vec::new();
        for id in &order {
            let object = self.world.object(*id);
            let text = self.get(*id, Some(2), "instructions").map_or(0, |g| py::length(self.world, g.value));
            let copies = switches.get(id).copied().unwrap_or(1);
            match kit.open(&self.name(*id), self.place(*id), object.span, text.saturating_mul(copies)) {
                Ok(()) => opened += 1,
                Err(unknown) if *id == start => {
                    (0..opened).for_each(|_| kit.close());
                    return unknown;
                }
                Err(_) => {}
            }
            let speaker = self.speaker(kit, *id, copies, &index, depth);
            speakers.push(speaker);
        }
        (0..opened).for_each(|_| kit.close());
        let over = match bound.bound {
            Bound::Finite(n) => format!("max turns ({n}) exceeded"),
            Bound::Infinite => "max turns exceeded".to_string(),
        };
        let turns = bound.clone();
        let bound = self.within(&order, &speakers, bound);
        // An empty reply is no answer of a type: the SDK takes another turn.
        if bound.bound != turns.bound {
            for speaker in speakers.iter_mut().filter(|s| s.params.result.is_some()) {
                speaker.params.repair = match turns.bound {
                    Bound::Finite(n) => u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX),
                    Bound::Infinite => u32::MAX,
                };
            }
        }
        let endless = turns.bound == Bound::Infinite && speakers.iter().any(|s| s.params.result.is_some());
        let term = conversation_from(kit, begins, speakers, bound, Over::Fails(&over), head);
        match endless {
            true => {
                kit.uncounted(term, "an empty reply takes another turn, and `max_turns` is not set", head)
            }
            false => term,
        }
    }

    /// The bound of a conversation that has fewer turns anyway: nobody in it calls a tool that the SDK
    /// carries out, and nobody speaks twice. Tools that the provider carries out take no turn.
    fn within(&self, order: &[ObjectId], speakers: &[Speaker], mut bound: LoopBound) -> LoopBound {
        let open = |id: &ObjectId| ["tools", "handoffs"].iter().any(|k| self.unlisted(*id, k).is_some());
        if bound.origin.is_none() || order.iter().any(open) {
            return bound;
        }
        if let Some(most) = max_replies(speakers, |_| false) {
            let bound = match bound.bound {
                Bound::Finite(n) => Bound::Finite(n.min(most)),
                Bound::Infinite => Bound::Finite(most),
            };
            return LoopBound::written(bound, None);
        }
        if order.iter().any(|id| self.ends_by_code(*id)) {
            bound.facts.ends = Some(Ends::ByCode);
            return bound;
        }
        if max_replies(speakers, |choice| choice.role == ToolRole::Provider).is_some() {
            bound.facts.ends = Some(Ends::AtOnce);
        }
        bound
    }

    /// Returns true if a function decides after each call whether its result is the final answer.
    fn ends_by_code(&self, id: ObjectId) -> bool {
        let given = self.get(id, None, "tool_use_behavior");
        given.is_some_and(|g| py::function_of(g.value).is_some())
    }

    /// Returns true for a tool that the provider executes, so that its call and its result are parts of one
    /// reply.
    fn is_hosted(&self, tool: &Value) -> bool {
        let Some((_, object)) = self.world.object_of(tool) else { return false };
        match object.short() {
            "HostedMCPTool" => {
                let config = field(object, Some(0), "tool_config").and_then(|g| self.world.entries(g.value));
                let asks =
                    config.and_then(|c| c.iter().find(|(k, _)| k.as_str() == Some("require_approval")));
                asks.is_some_and(|(_, v)| self.world.str(v) == Some("never"))
            }
            short => BY_PROVIDER.contains(&short),
        }
    }

    /// The place of a list of tools or handoffs of which some are not known.
    fn unlisted(&self, id: ObjectId, key: &str) -> Option<(Span, Given<'_>)> {
        let given = self.get(id, None, key)?;
        let at = match self.world.resolve_env(given.value).kind {
            PyKind::List(list) => self.world.list(list).open,
            PyKind::None => None,
            _ => Some(given.at),
        }?;
        Some((at, given))
    }

    fn speaker(
        &self,
        kit: &mut Kit<'_>,
        id: ObjectId,
        copies: usize,
        index: &HashMap<ObjectId, usize>,
        depth: usize,
    ) -> Speaker {
        let object = self.world.object(id);
        let head = object.span;
        py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let mut params = ModelParams { purpose: Some(Name::from(self.name(id))), ..ModelParams::default() };
        let model_at = py::model(self.world, self.get(id, None, "model"), &mut params, kit).unwrap_or(head);
        self.settings(kit, id, &mut params);
        if let Some(given) = self.get(id, None, "output_type") {
            params.result = self.output(given.value);
        }
        let prompts = (0..copies.max(1)).map(|_| self.prompt(kit, id)).collect();
        let mut choices = self.tools(kit, id, depth);
        self.stops(kit, id, &mut choices);
        for over in self.items(id, "handoffs") {
            choices.extend(self.handoff(kit, &over, index));
        }
        for (key, what) in [("tools", "tools"), ("handoffs", "handoffs")] {
            if let Some((at, given)) = self.unlisted(id, key) {
                let message =
                    format!("some of the {what} are not known: {}", self.world.unknown_reason(given.value));
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            }
        }
        Speaker { name: self.name(id), head, prompts, params, model_at, choices, choices_at: None }
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let Some(given) = self.get(id, None, "instructions") else {
            return kit.text("", self.world.object(id).span);
        };
        match given.value.kind {
            PyKind::None => kit.text("", given.at),
            PyKind::Function(f) | PyKind::Bound(_, f) => {
                // A clone has the function of what it is a clone of.
                const MAX_CLONES: usize = 16;
                let chain = std::iter::successors(Some(id), |id| self.world.object(*id).base);
                let said = chain.take(MAX_CLONES).find_map(|id| self.said.get(&(id, f)));
                if let Some(text) = said.filter(|v| self.world.text_of(v).is_some()) {
                    return py::text(kit, self.world, text, plain);
                }
                let why = format!("the output of `{}`", self.world.function(f).name);
                kit.undecided(codes::NOT_COMPILED, why, given.at)
            }
            _ => py::text(kit, self.world, given.value, plain),
        }
    }

    fn settings(&self, kit: &mut Kit<'_>, id: ObjectId, params: &mut ModelParams) {
        let Some(given) = self.get(id, None, "model_settings") else { return };
        if let Some((_, object)) = self.world.object_of(given.value) {
            for arg in &object.args {
                if let Some(name) = &arg.name {
                    py::setting(self.world, name, Given { value: &arg.value, at: arg.span }, params, kit.out);
                }
            }
        } else if let Some(entries) = self.world.entries(given.value) {
            for (key, value) in entries {
                if let Some(name) = key.as_str() {
                    py::setting(self.world, name, Given { value, at: value.span }, params, kit.out);
                }
            }
        }
    }

    fn output(&self, value: &Value) -> Option<Type> {
        if let Some((_, object)) = self.world.object_of(value)
            && object.short() == "AgentOutputSchema"
        {
            return field(object, Some(0), "output_type").and_then(|g| self.output(g.value));
        }
        match py::type_of(self.world, value) {
            Type::Str | Type::Null => None,
            ty => Some(ty),
        }
    }

    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> Vec<Choice> {
        let mut out = Vec::new();
        for value in self.items(id, "tools") {
            let at = value.span;
            if value.maybe && !py::is_rest(&value) {
                let message = "the agent may not have this tool; it is assumed to have it";
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            }
            if let Some(agent) = self.is_as_tool(&value) {
                out.push(self.asked(kit, &value, agent, depth));
                continue;
            }
            match self.tool(&value) {
                Some(decl) => {
                    let role = if self.is_hosted(&value) { ToolRole::Provider } else { ToolRole::Program };
                    out.push(Choice { role, ..Choice::new(decl, CallEffect::Call) });
                }
                None => {
                    py::unknown_tool(kit, self.world, &value);
                    let name = py::outside(&value).unwrap_or_else(|| format!("unknown_{}", out.len() + 1));
                    out.push(Choice::new(ToolDecl::unknown(name.into(), at), CallEffect::Call));
                }
            }
        }
        for value in self.items(id, "mcp_servers") {
            let server = self.world.object_of(&value).and_then(|(_, o)| field(o, None, "name"));
            let server = server.and_then(|g| py::label(self.world, g.value)).unwrap_or_else(|| "mcp".into());
            let mut decl = ToolDecl::unknown(function_style(&server).into(), value.span);
            let handler = core_ir::Data::record([(Name::from("mcp"), core_ir::Data::str(server.as_str()))]);
            decl.handler = Some(handler);
            let message = format!(
                "the tools of the server `{}` are known when it runs; one tool represents all",
                clip(&server)
            );
            kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
            out.push(Choice::new(decl, CallEffect::Call));
        }
        out
    }

    /// The declaration of a tool.
    fn tool(&self, value: &Value) -> Option<ToolDecl> {
        let at = value.span;
        let hidden = |world: &World<'_>, annotation: &Value| {
            world.name_of(annotation).is_some_and(|n| {
                let n = n.trim_end_matches("[]");
                n.ends_with("RunContextWrapper") || n.ends_with("ToolContext")
            })
        };
        if let Some(function) = py::function_of(value) {
            let named = |key| py::decorator_arg(self.world, function, &["function_tool"], None, key);
            let name = named("name_override").and_then(|v| self.world.str(v)).map(str::to_string);
            let own = self.world.function(function).name.to_string();
            let at = self.world.function(function).name_span;
            let mut decl = py::signature(self.world, function, &name.unwrap_or(own), at, hidden);
            if let Some(text) = named("description_override").and_then(|v| self.world.str(v)) {
                decl.description = Some(text.into());
            }
            if matches!(named("needs_approval").map(|v| &v.kind), Some(PyKind::Bool(true))) {
                decl.approve = core_ir::Approve::Always;
            }
            return Some(decl);
        }
        let (_, object) = self.world.object_of(value)?;
        let named = |key| field(object, None, key).and_then(|g| self.world.str(g.value));
        match object.short() {
            "function_tool" => {
                let function = field(object, Some(0), "func").and_then(|g| py::function_of(g.value))?;
                let own = self.world.function(function).name.to_string();
                let name = named("name_override").map_or(own, str::to_string);
                Some(py::signature(self.world, function, &name, at, hidden))
            }
            "FunctionTool" => {
                let mut decl = ToolDecl::unknown(named("name")?.into(), at);
                decl.description = named("description").map(Name::from);
                Some(decl)
            }
            "HostedMCPTool" => Some(ToolDecl::unknown("hosted_mcp".into(), at)),
            short => {
                let (_, name) = HOSTED.iter().find(|(class, _)| *class == short)?;
                Some(ToolDecl::unknown((*name).into(), at))
            }
        }
    }

    /// An agent as a tool.
    fn asked(&self, kit: &mut Kit<'_>, value: &Value, agent: ObjectId, depth: usize) -> Choice {
        const MAX_DEPTH: usize = 12;
        let at = value.span;
        let call = self.world.object_of(value).map(|(_, o)| o);
        let named = |i, key| call.and_then(|o| field(o, Some(i), key)).and_then(|g| self.world.str(g.value));
        let name = named(0, "tool_name").map_or_else(|| function_style(&self.name(agent)), str::to_string);
        let mut decl = ToolDecl::unknown(name.into(), at);
        decl.description = named(1, "tool_description").map(Name::from);
        decl.params =
            vec![ToolParam { name: "input".into(), ty: Type::Str, bound: LabelSpec::TOP, default: None }];
        decl.result = Type::Str;
        decl.effect = core_ir::EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        let default = defaults::bound(&defaults::OPENAI_AGENTS_TURNS, kit.versions);
        let bound = py::bound(self.world, call.and_then(|o| field(o, None, "max_turns")), default);
        let term = match depth < MAX_DEPTH {
            true => self.run(kit, agent, bound, depth + 1),
            false => kit.unknown("an agent beyond the limit", at),
        };
        Choice::new(decl, CallEffect::Ask(term))
    }

    /// Tools whose result ends the run.
    fn stops(&self, kit: &mut Kit<'_>, id: ObjectId, choices: &mut [Choice]) {
        let Some(given) = self.get(id, None, "tool_use_behavior") else { return };
        let names: Option<Vec<String>> = match &self.world.resolve_env(given.value).kind {
            PyKind::Str(s) if &**s == "run_llm_again" => return,
            PyKind::Str(s) if &**s == "stop_on_first_tool" => None,
            PyKind::Dict(_) | PyKind::Object(_) => {
                let list = match self.world.entries(given.value) {
                    Some(entries) => {
                        entries.iter().find(|(k, _)| k.as_str() == Some("stop_at_tool_names")).map(|(_, v)| v)
                    }
                    None => self
                        .world
                        .object_of(given.value)
                        .and_then(|(_, o)| field(o, None, "stop_at_tool_names"))
                        .map(|g| g.value),
                };
                let items = list.and_then(|v| self.world.items(v)).unwrap_or(&[]);
                Some(items.iter().filter_map(|v| self.world.str(v)).map(str::to_string).collect())
            }
            _ => {
                let message = "which tools end the run is decided by code";
                kit.out.push(undecided(codes::NOT_COMPILED, message, given.at));
                return;
            }
        };
        for choice in choices {
            let stops = names.as_ref().is_none_or(|n| n.iter().any(|n| *n == *choice.decl.name));
            if stops && matches!(choice.kind, CallEffect::Call) {
                choice.kind = CallEffect::Finish;
            }
        }
    }

    fn handoff(&self, kit: &mut Kit<'_>, value: &Value, index: &HashMap<ObjectId, usize>) -> Option<Choice> {
        let at = value.span;
        let Some(target) = self.target(value) else {
            let message =
                format!("an agent that may take over is not known: {}", self.world.unknown_reason(value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            return None;
        };
        let to = *index.get(&target)?;
        let call = self.world.object_of(value).map(|(_, o)| o).filter(|o| o.short() == "handoff");
        let named = |key| call.and_then(|o| field(o, None, key)).and_then(|g| self.world.str(g.value));
        let name = self.name(target);
        let tool = named("tool_name_override")
            .map_or_else(|| function_style(&format!("transfer_to_{name}")), str::to_string);
        let mut decl = ToolDecl::unknown(tool.into(), at);
        let about =
            self.get(target, None, "handoff_description").and_then(|g| self.world.str(g.value)).unwrap_or("");
        let default = format!("Handoff to the {name} agent to handle the request. {about}");
        decl.description = Some(named("tool_description_override").unwrap_or(&default).into());
        decl.params =
            match call.and_then(|o| field(o, None, "input_type")).map(|g| py::type_of(self.world, g.value)) {
                Some(Type::Record(fields)) => fields
                    .iter()
                    .map(|(n, t)| ToolParam {
                        name: n.clone(),
                        ty: t.clone(),
                        bound: LabelSpec::TOP,
                        default: None,
                    })
                    .collect(),
                _ => Vec::new(),
            };
        decl.effect = core_ir::EffectClass::Pure;
        decl.control = LabelSpec::TOP;
        decl.label = LabelSpec::BOTTOM;
        for hook in ["on_handoff", "input_filter", "is_enabled"] {
            if let Some(given) = call.and_then(|o| field(o, None, hook)) {
                let message = format!("`{hook}` is left out: {}", why::CODE);
                kit.out.push(diagnostics::Diagnostic::info(codes::UNUSED_KEY, message, given.at));
            }
        }
        let said = format!("{{\"assistant\": \"{name}\"}}");
        Some(Choice::new(decl, CallEffect::Switch(to, said)))
    }
}
