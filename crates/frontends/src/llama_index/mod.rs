//! LlamaIndex, in Python: agents and workflows of agents.
//!
//! | source | term |
//! |---|---|
//! | `FunctionAgent(tools, llm, system_prompt)`, `ReActAgent(…)`, `CodeActAgent(…)` | a conversation with tools |
//! | `AgentWorkflow(agents=[…], root_agent="a")` | agents that hand off to each other in one conversation |
//! | `AgentWorkflow.from_tools_or_functions(…)`, `ReActAgent.from_tools(…)`, `….from_tools(…).as_agent()` | one agent |
//! | functions, `FunctionTool.from_defaults(fn=…)` | tools with the function's parameters |
//! | `QueryEngineTool(…)`, `XToolSpec().to_tool_list()` | tools that are named |
//! | a tool in whose body another agent is run | that agent is asked, then the tool is called |
//! | `max_iterations=n` | the bound; 20 if it does not say, and 10 for agents that `from_tools` makes |
//!
//! Entry point: [`LlamaIndex`].
//!
//! Source: run-llama/llama_index 0.14: `core/agent/workflow/`, `core/agent/react/base.py` (0.11),
//! `core/tools/`.

use crate::agent_host::{self, AgentHost, Note, Offer};
use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{ModelParams, Name, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Unused};
use frontend_kit::kit::{Kit, Units, plain};
use frontend_kit::outline::ToolRole;
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, Words};
use frontend_kit::shape::why;
use python::{FunctionId, Object, ObjectId, Value, World};
use std::collections::HashMap;

/// The front end.
pub struct LlamaIndex;

const AGENT_KEYS: &[&str] = &[
    "name",
    "description",
    "system_prompt",
    "tools",
    "tools_or_functions",
    "llm",
    "can_handoff_to",
    "code_execute_fn",
    "output_cls",
    "max_iterations",
];
const AGENT_UNUSED: &[Unused] = &[
    ("verbose", why::SHOWN),
    ("tool_retriever", "which tools an agent has is decided when it runs"),
    ("memory", "what earlier runs said is not compiled yet"),
    ("chat_history", "what earlier runs said is not compiled yet"),
    ("timeout", why::RUNTIME),
    ("initial_state", why::RUNTIME),
    ("state_prompt", why::RUNTIME),
    ("streaming", why::RUNTIME),
    ("callback_manager", why::CODE),
    ("formatter", why::CODE),
    ("react_chat_formatter", why::CODE),
    ("output_parser", why::CODE),
    ("structured_output_fn", why::CODE),
    ("allow_parallel_tool_calls", why::RUNTIME),
    ("early_stopping_method", why::RUNTIME),
];
/// Classes of agents.
const AGENTS: &[&str] = &[
    "FunctionAgent",
    "ReActAgent",
    "CodeActAgent",
    "OpenAIAgent",
    "FunctionCallingAgent",
    "FunctionCallingAgentWorker",
    "ReActAgentWorker",
];
/// Methods that make an agent of tools.
const MAKERS: &[&str] = &["from_tools", "from_tools_or_functions"];
/// Methods that run an agent.
const RUNS: &[&str] = &["run", "chat", "achat", "stream_chat", "astream_chat", "query", "aquery"];

impl Frontend for LlamaIndex {
    fn name(&self) -> &'static str {
        "llama_index"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["FunctionAgent.run", "ReActAgent.run", "AgentWorkflow.run"]
    }

    fn detect(&self, file: &File) -> u8 {
        let is = |name: &str| {
            name.starts_with("llama_index.")
                && name.split('.').any(|part| AGENTS.contains(&part) || part == "AgentWorkflow")
        };
        if py::imports(file, &["llama_index"]) && py::makes(file, is) { 76 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            ends_loops: Some("LlamaIndex ends a run at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `system_prompt=`",
                model: "name one: `llm=`",
                bound: "state it: `max_iterations=` of `run`",
                ..Words::default()
            },
            code: CodeFacts { run_limit: Some("max_iterations"), ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        py::evaluated(project, file, python::Limits::default(), None, |mut world, found| {
            units.compiled.diagnostics.extend(found);
            let objects: Vec<ObjectId> = world.objects().map(|(id, _)| id).collect();
            let mut functions: Vec<FunctionId> =
                objects.into_iter().flat_map(|id| functions_given(&world, id)).collect();
            functions.sort();
            functions.dedup();
            let is_run = |name: &str| RUNS.contains(&name);
            let delegates = agent_host::delegates(&mut world, functions, is_run, is_agent);
            let teams = teams(&world);
            agent_host::units(units, file, &Host { world: &world, delegates, teams })
        })
    }
}

/// The functions that are tools of an agent, or of which an object makes a tool.
fn functions_given(world: &World<'_>, id: ObjectId) -> Vec<FunctionId> {
    let object = world.object(id);
    if object.package() != "llama_index" && object.class.is_none() {
        return Vec::new();
    }
    let lists = object.args.iter().filter_map(|a| world.items(&a.value)).flatten();
    lists.chain(object.args.iter().map(|a| &a.value)).filter_map(py::function_of).collect()
}

fn is_workflow(object: &Object) -> bool {
    object.base.is_none() && object.package() == "llama_index" && object.short() == "AgentWorkflow"
}

fn is_agent(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    let is = |n: &str| {
        n.starts_with("llama_index.") && n.rsplit('.').next().is_some_and(|last| AGENTS.contains(&last))
    };
    match object.class {
        Some(class) => world.derives(class, is),
        None if object.package() != "llama_index" => false,
        // `ReActAgent.from_tools(…)`, and `FunctionCallingAgentWorker.from_tools(…).as_agent()`.
        None if MAKERS.contains(&object.short()) => object.callee.contains("Agent"),
        None => is_workflow(object) || object.base.is_none() && is(&object.callee),
    }
}

/// The agents of each workflow, the first to answer at the front.
fn teams(world: &World<'_>) -> HashMap<ObjectId, Vec<ObjectId>> {
    let mut out = HashMap::new();
    for (id, object) in world.objects().filter(|(_, o)| is_workflow(o)) {
        let given = field(object, Some(0), "agents").and_then(|g| world.items(g.value));
        let agents = given.unwrap_or(&[]).iter().filter_map(|v| world.object_of(v)).map(|(id, _)| id);
        let mut agents: Vec<ObjectId> = agents.filter(|a| is_agent(world, *a)).collect();
        let root = field(object, None, "root_agent").and_then(|g| match world.object_of(g.value) {
            Some((agent, _)) => Some(agent),
            None => {
                let name = world.str(g.value)?;
                agents.iter().copied().find(|a| named(world, *a).as_deref() == Some(name))
            }
        });
        if let Some(at) = root.and_then(|r| agents.iter().position(|a| *a == r)) {
            agents.swap(0, at);
        }
        out.insert(id, agents);
    }
    out
}

fn named(world: &World<'_>, id: ObjectId) -> Option<String> {
    field(world.object(id), None, "name").and_then(|g| py::label(world, g.value))
}

struct Host<'r, 'w> {
    world: &'r World<'w>,
    delegates: HashMap<FunctionId, Vec<ObjectId>>,
    teams: HashMap<ObjectId, Vec<ObjectId>>,
}

impl Host<'_, '_> {
    fn get(&self, id: ObjectId, name: &str) -> Option<Given<'_>> {
        field(self.world.object(id), None, name).filter(|g| !g.value.is_none())
    }

    /// The tools of an agent: by position where a method makes it.
    fn tools(&self, id: ObjectId) -> Option<Given<'_>> {
        let by_method = MAKERS.contains(&self.world.object(id).short());
        let first = by_method.then_some(0);
        let given =
            field(self.world.object(id), first, "tools").or_else(|| self.get(id, "tools_or_functions"));
        given.filter(|g| !g.value.is_none())
    }

    fn function(
        &self,
        function: FunctionId,
        name: Option<&str>,
        description: Option<&str>,
        at: Option<Span>,
    ) -> Offer {
        let f = self.world.function(function);
        let hidden = |world: &World<'_>, annotation: &Value| {
            world.name_of(annotation).is_some_and(|n| n.ends_with(".Context"))
        };
        let name = name.unwrap_or(&f.name).to_string();
        let mut decl = py::signature(self.world, function, &name, at.unwrap_or(f.name_span), hidden);
        if let Some(description) = description {
            decl.description = Some(description.into());
        }
        match self.delegates.get(&function) {
            Some(agents) => Offer::Delegates(decl, agents.clone()),
            None => Offer::Tool(decl, ToolRole::Program),
        }
    }

    fn tool(&self, value: &Value, nth: usize, notes: &mut Vec<Note>) -> Offer {
        if let Some(function) = py::function_of(value) {
            return self.function(function, None, None, None);
        }
        let Some((id, object)) = self.world.object_of(value) else {
            let decl = agent_host::unknown_tool(self.world, value, nth, notes);
            return Offer::Tool(decl, ToolRole::Program);
        };
        if is_agent(self.world, id) {
            return Offer::Agent(agent_host::asked(&self.name(id), "input", None, value.span), id);
        }
        let metadata = field(object, None, "metadata").or_else(|| field(object, Some(1), "metadata"));
        let metadata = metadata.and_then(|g| self.world.object_of(g.value)).map(|(_, o)| o);
        let text = |key| {
            let own = field(object, None, key).or_else(|| metadata.and_then(|m| field(m, None, key)));
            own.and_then(|g| self.world.str(g.value))
        };
        let function = ["fn", "async_fn"].iter().find_map(|key| field(object, None, key));
        let function = function.or_else(|| field(object, Some(0), "fn"));
        if let Some(function) = function.and_then(|g| py::function_of(g.value)) {
            return self.function(function, text("name"), text("description"), None);
        }
        // An agent that is asked as if it were an index.
        let engine = field(object, Some(0), "query_engine").and_then(|g| self.world.object_of(g.value));
        if let Some((agent, _)) = engine.filter(|(e, _)| is_agent(self.world, *e)) {
            let name = text("name").map_or_else(|| self.name(agent), str::to_string);
            return Offer::Agent(agent_host::asked(&name, "input", text("description"), value.span), agent);
        }
        let name = match (text("name"), object.base) {
            (Some(name), _) => name.to_string(),
            // `GmailToolSpec().to_tool_list()`.
            (None, Some(base)) if object.short().starts_with("to_tool_list") => {
                let base = self.world.object(base);
                if base.short().contains("Mcp") {
                    let decl = agent_host::server("mcp", base.short(), value.span, notes);
                    return Offer::Tool(decl, ToolRole::Program);
                }
                let message = format!("one tool represents all of `{}`", base.short());
                notes.push(Note { message, at: value.span, uncounted: false });
                base.short().to_string()
            }
            (None, _) => object.short().to_string(),
        };
        let mut decl = ToolDecl::unknown(name.as_str().into(), value.span);
        decl.description = text("description").map(Name::from);
        Offer::Tool(decl, ToolRole::Program)
    }

    /// The agents that one may hand off to: of its workflow those that it names, or all others.
    fn targets(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut out: Vec<ObjectId> = Vec::new();
        let to = self.get(id, "can_handoff_to").and_then(|g| self.world.items(g.value));
        let mut teams: Vec<&Vec<ObjectId>> = self.teams.values().filter(|t| t.contains(&id)).collect();
        teams.sort();
        for team in teams {
            for other in team.iter().filter(|o| **o != id) {
                let name = named(self.world, *other);
                let may = to.is_none_or(|to| to.iter().any(|v| self.world.str(v) == name.as_deref()));
                if may && !out.contains(other) {
                    out.push(*other);
                }
            }
        }
        out
    }
}

impl<'w> AgentHost<'w> for Host<'_, 'w> {
    fn world(&self) -> &World<'w> {
        self.world
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        is_agent(self.world, id)
    }

    fn name(&self, id: ObjectId) -> String {
        named(self.world, id).unwrap_or_else(|| "agent".into())
    }

    fn start(&self, id: ObjectId) -> ObjectId {
        self.teams.get(&id).and_then(|t| t.first().copied()).unwrap_or(id)
    }

    fn offers(&self, id: ObjectId, notes: &mut Vec<Note>) -> Vec<Offer> {
        let mut out = Vec::new();
        if let Some(given) = self.tools(id) {
            for value in agent_host::tool_list(self.world, given.value, notes) {
                let offer = self.tool(&value, out.len(), notes);
                out.push(offer);
            }
        }
        // Code of replies is run by a function that the program gives.
        if let Some(function) = self.get(id, "code_execute_fn").and_then(|g| py::function_of(g.value)) {
            out.push(self.function(function, None, None, None));
        } else if let Some(given) = self.get(id, "code_execute_fn") {
            out.push(Offer::Tool(ToolDecl::unknown("code_execute_fn".into(), given.at), ToolRole::Program));
        }
        for other in self.targets(id) {
            let name = self.name(other);
            let about = self.get(other, "description").and_then(|g| self.world.str(g.value)).unwrap_or("");
            let at = self.world.object(id).span;
            let tool = format!("handoff_to_{}", name.replace(' ', "_"));
            out.push(Offer::HandOff(
                agent_host::handoff(&tool, &format!("Hands off to {name}. {about}"), at),
                other,
            ));
        }
        out
    }

    fn length(&self, id: ObjectId) -> usize {
        self.get(id, "system_prompt").map_or(0, |g| py::length(self.world, g.value))
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        match self.get(id, "system_prompt") {
            Some(given) => py::text(kit, self.world, given.value, plain),
            None => kit.text("", self.world.object(id).span),
        }
    }

    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>) {
        py::report(self.world.object(id), AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let mut params = ModelParams { purpose: Some(Name::from(self.name(id))), ..ModelParams::default() };
        let at = py::model(self.world, self.get(id, "llm"), &mut params, kit);
        let typed = self.get(id, "output_cls").map(|g| py::type_of(self.world, g.value));
        params.result = typed.filter(|ty| !matches!(ty, Type::Str | Type::Null | Type::Dyn));
        (params, at)
    }

    fn tools_at(&self, id: ObjectId) -> Option<Span> {
        self.tools(id).map(|g| g.at)
    }

    fn bound(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound {
        let older = self.world.object(id).short() == "from_tools";
        let default = match older {
            true => &defaults::LLAMA_INDEX_TOOLS,
            false => &defaults::LLAMA_INDEX_ITERATIONS,
        };
        let default = defaults::bound(default, kit.versions);
        if let Some(given) = self.get(id, "max_iterations") {
            return py::bound(self.world, Some(given), default);
        }
        let runs = self.world.objects().filter(|(_, o)| o.base == Some(id) && self.is_run(o.short()));
        let limits: Vec<Option<Given<'_>>> =
            runs.map(|(_, run)| field(run, None, "max_iterations")).collect();
        match &limits[..] {
            [one] => py::bound(self.world, *one, default),
            all if all.iter().all(Option::is_none) => default,
            _ => LoopBound::unknown("its runs have several limits"),
        }
    }

    fn over(&self) -> (&'static str, bool) {
        ("max iterations exceeded", false)
    }

    fn is_run(&self, method: &str) -> bool {
        RUNS.contains(&method)
    }
}
