//! smolagents, in Python: what `CodeAgent(…)` and `ToolCallingAgent(…)` build.
//!
//! | source | term |
//! |---|---|
//! | `ToolCallingAgent(tools, model, instructions=…)` | a conversation with tools |
//! | `CodeAgent(…)` | the same, with a tool that runs the code of a reply: see below |
//! | `@tool`, instances of `Tool`, `add_base_tools=True` | tools |
//! | `managed_agents=[other]` | an agent that is asked and answers |
//! | `MCPClient(…)`, `ToolCollection.from_mcp(…)` | one tool that represents those of the server |
//! | `max_steps=n` | the bound; 20 if it does not say |
//!
//! The replies of a `CodeAgent` are code, which calls the tools. The term has them as calls, and running code
//! as one call more: `python_interpreter`, or `sandboxed_code` where an executor is named that is not the
//! process itself. A listed `PythonInterpreterTool` without arguments is that call; beside another tool of
//! the name it is `code_of_reply`.
//!
//! Entry point: [`Smolagents`].
//!
//! Source: huggingface/smolagents 1.22: `agents.py`, `tools.py`, `default_tools.py`, `mcp_client.py`.

use crate::agent_host::{self, AgentHost, Note, Offer};
use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{ModelParams, Name, TermId, ToolDecl};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, Unused};
use frontend_kit::kit::{Kit, Units, plain};
use frontend_kit::outline::ToolRole;
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, Words};
use frontend_kit::shape::why;
use python::{FunctionId, ObjectId, PyKind, Value, World};
use std::collections::{HashMap, HashSet};

/// The front end.
pub struct Smolagents;

const AGENT_KEYS: &[&str] = &[
    "tools",
    "model",
    "instructions",
    "managed_agents",
    "max_steps",
    "add_base_tools",
    "name",
    "description",
    "executor_type",
    "planning_interval",
    "additional_authorized_imports",
];
const AGENT_UNUSED: &[Unused] = &[
    ("prompt_templates", "templates around the request are not reproduced"),
    ("verbosity_level", why::SHOWN),
    ("step_callbacks", why::CODE),
    ("final_answer_checks", "they are code, which may refuse the answer"),
    ("provide_run_summary", why::RUNTIME),
    ("return_full_result", why::RUNTIME),
    ("stream_outputs", why::RUNTIME),
    ("logger", why::RUNTIME),
    ("executor_kwargs", why::RUNTIME),
    ("executor", why::RUNTIME),
    ("max_print_outputs_length", why::RUNTIME),
    ("use_structured_outputs_internally", why::RUNTIME),
    ("code_block_tags", why::RUNTIME),
    ("max_tool_threads", why::RUNTIME),
    ("grammar", why::RUNTIME),
];
/// Classes of agents.
const AGENTS: &[&str] = &["CodeAgent", "ToolCallingAgent", "MultiStepAgent"];
/// Tools that come with smolagents, with the names that models see.
const OWN: &[(&str, &str)] = &[
    ("DuckDuckGoSearchTool", "web_search"),
    ("GoogleSearchTool", "web_search"),
    ("ApiWebSearchTool", "web_search"),
    ("WebSearchTool", "web_search"),
    ("VisitWebpageTool", "visit_webpage"),
    ("WikipediaSearchTool", "wikipedia_search"),
    ("PythonInterpreterTool", "python_interpreter"),
    ("FinalAnswerTool", "final_answer"),
    ("UserInputTool", "user_input"),
    ("SpeechToTextTool", "transcriber"),
];
/// Tools of `add_base_tools=True`: their classes, with the names that models see.
const BASE: &[(&str, &str)] =
    &[("DuckDuckGoSearchTool", "web_search"), ("VisitWebpageTool", "visit_webpage")];
/// The call by which an agent's code runs.
const CODE: &str = "python_interpreter";
const SANDBOXED: &str = "sandboxed_code";
/// The same where a tool has that name.
const OWN_CODE: &str = "code_of_reply";

impl Frontend for Smolagents {
    fn name(&self) -> &'static str {
        "smolagents"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["CodeAgent.run", "ToolCallingAgent.run"]
    }

    fn detect(&self, file: &File) -> u8 {
        let makes = || py::makes(file, |name| name.starts_with("smolagents.") && py::ends_with(name, AGENTS));
        if py::imports(file, &["smolagents"]) && makes() { 77 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            ends_loops: Some("smolagents ends a run at the first reply that gives the final answer"),
            words: Words {
                prompt: "say what the agent is to do: `instructions=`",
                model: "name one: `model=`",
                bound: "state it: `max_steps=`",
                stated: Some(&["max_steps"]),
                ..Words::default()
            },
            code: CodeFacts { run_limit: Some("max_steps"), ..CodeFacts::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        py::evaluated(project, file, python::Limits::default(), None, |mut world, found| {
            units.compiled.diagnostics.extend(found);
            let decorated: HashSet<FunctionId> =
                world.functions().filter(|(_, f)| !f.decorators.is_empty()).map(|(id, _)| id).collect();
            let mut decorated: Vec<FunctionId> = decorated.into_iter().collect();
            decorated.sort();
            let delegates = agent_host::delegates(&mut world, decorated, |name| name == "run", is_agent);
            agent_host::units(units, file, &Host { world: &world, delegates })
        })
    }
}

fn is_agent(world: &World<'_>, id: ObjectId) -> bool {
    let object = world.object(id);
    let ours = |n: &str| {
        n.starts_with("smolagents.") && n.rsplit('.').next().is_some_and(|last| AGENTS.contains(&last))
    };
    match object.class {
        Some(class) => world.derives(class, ours),
        None => object.base.is_none() && ours(&object.callee),
    }
}

struct Host<'r, 'w> {
    world: &'r World<'w>,
    delegates: HashMap<FunctionId, Vec<ObjectId>>,
}

impl Host<'_, '_> {
    fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'_>> {
        field(self.world.object(id), position, name).filter(|g| !g.value.is_none())
    }

    fn function(&self, function: FunctionId) -> Offer {
        let f = self.world.function(function);
        let decl = py::signature(self.world, function, &f.name, f.name_span, |_, _| false);
        match self.delegates.get(&function) {
            Some(agents) => Offer::Delegates(decl, agents.clone()),
            None => Offer::Tool(decl, ToolRole::Program),
        }
    }

    fn tool(&self, value: &Value, nth: usize, notes: &mut Vec<Note>) -> Offer {
        if let Some(function) = py::function_of(value) {
            return self.function(function);
        }
        let Some((id, object)) = self.world.object_of(value) else {
            let decl = agent_host::unknown_tool(self.world, value, nth, notes);
            return Offer::Tool(decl, ToolRole::Program);
        };
        if is_agent(self.world, id) {
            return self.agent(id, value.span);
        }
        // `tool(self.search)`.
        if let ("smolagents", "tool", [only]) = (object.package(), object.short(), &object.args[..])
            && let Some(function) = py::function_of(&only.value)
        {
            return self.function(function);
        }
        if is_server(object.short(), &object.callee) {
            let decl = agent_host::server("mcp", object.short(), value.span, notes);
            return Offer::Tool(decl, ToolRole::Program);
        }
        let own = object.attr("name").and_then(|v| v.as_str()).map(str::to_string);
        let named = own.or_else(|| match object.class {
            // A class of the project says the name that models see.
            Some(class) => {
                self.world.class_lookup(class, "name").and_then(|(v, _)| v.as_str().map(str::to_string))
            }
            None => OWN.iter().find(|(class, _)| *class == object.short()).map(|(_, n)| (*n).to_string()),
        });
        let short = || match object.class {
            Some(class) => self.world.class(class).name.to_string(),
            None => object.short().to_string(),
        };
        let name = named.unwrap_or_else(short);
        let mut decl = ToolDecl::unknown(name.as_str().into(), value.span);
        let description = object.class.and_then(|c| self.world.class_lookup(c, "description"));
        decl.description = description.and_then(|(v, _)| v.as_str().map(Name::from));
        Offer::Tool(decl, ToolRole::Program)
    }

    /// An agent that another one asks.
    fn agent(&self, id: ObjectId, at: Span) -> Offer {
        let description = self.get(id, None, "description").and_then(|g| self.world.str(g.value));
        Offer::Agent(agent_host::asked(&self.name(id), "task", description, at), id)
    }
}

/// Returns true for what gives the tools of a server.
fn is_server(short: &str, callee: &str) -> bool {
    short == "MCPClient"
        || short == "from_mcp"
        || callee.contains("MCPClient.")
        || callee.contains(".from_mcp")
}

impl<'w> AgentHost<'w> for Host<'_, 'w> {
    fn world(&self) -> &World<'w> {
        self.world
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        is_agent(self.world, id)
    }

    fn name(&self, id: ObjectId) -> String {
        self.get(id, None, "name")
            .and_then(|g| py::label(self.world, g.value))
            .unwrap_or_else(|| "agent".into())
    }

    fn offers(&self, id: ObjectId, notes: &mut Vec<Note>) -> Vec<Offer> {
        let object = self.world.object(id);
        let mut out = Vec::new();
        let mut given: Vec<&str> = Vec::new();
        if let Some(tools) = self.get(id, Some(0), "tools") {
            for value in agent_host::tool_list(self.world, tools.value, notes) {
                // `collection.tools` is no list here.
                let of = match value.kind {
                    PyKind::Member(of, _) => Value::new(PyKind::Object(of), value.span),
                    _ => value,
                };
                let made = self.world.object_of(&of).filter(|(_, o)| o.class.is_none());
                given.extend(made.map(|(_, o)| o.short()));
                let offer = self.tool(&of, out.len(), notes);
                out.push(offer);
            }
        }
        let base = self.get(id, None, "add_base_tools");
        let base = base.filter(|g| matches!(g.value.kind, PyKind::Bool(true))).map(|g| g.at);
        let runs_code = match object.class {
            Some(class) => self.world.derives(class, |n| n.ends_with("CodeAgent")),
            None => object.short() == "CodeAgent",
        };
        if let Some(given) = self.get(id, None, "planning_interval") {
            let message = "requests for plans are left out".to_string();
            notes.push(Note { message, at: given.at, uncounted: true });
        }
        if let Some(at) = base {
            // A tool that the program gives as well is replaced by one of the same class.
            for (_, name) in BASE.iter().filter(|(class, _)| !given.iter().any(|g| g == class)) {
                out.push(Offer::Tool(ToolDecl::unknown((*name).into(), at), ToolRole::Program));
            }
            if !runs_code {
                out.push(Offer::Tool(ToolDecl::unknown(CODE.into(), at), ToolRole::Program));
            }
        }
        if let Some(given) = self.get(id, None, "managed_agents") {
            match agent_host::listed(self.world, given.value, "managed agents", notes) {
                Ok(items) => {
                    for value in items {
                        // `ManagedAgent(agent=…, name=…)` of the first versions.
                        let around = self.world.object_of(value).filter(|(_, o)| o.short() == "ManagedAgent");
                        let inner = around.and_then(|(_, o)| field(o, Some(0), "agent")).map(|g| g.value);
                        let agent = self.world.object_of(inner.unwrap_or(value)).map(|(id, _)| id);
                        match agent.filter(|id| is_agent(self.world, *id)) {
                            Some(agent) => out.push(self.agent(agent, value.span)),
                            None => {
                                let message = format!(
                                    "an agent that is not known: {}",
                                    self.world.unknown_reason(value)
                                );
                                notes.push(Note { message, at: value.span, uncounted: true });
                            }
                        }
                    }
                }
                Err(value) => {
                    let message = format!("the managed agents: {}", self.world.unknown_reason(value));
                    notes.push(Note { message, at: value.span, uncounted: true });
                }
            }
        }
        if runs_code {
            // A place of its own tells the code that a sandbox runs from that which the process runs.
            let executor = self.get(id, None, "executor_type");
            let (name, at) = match executor {
                Some(given) if self.world.str(given.value) != Some("local") => (SANDBOXED, given.at),
                _ => (CODE, object.span),
            };
            // The code of the agent does what a `PythonInterpreterTool` of the usual imports does.
            let usual = |decl: &ToolDecl| {
                let made = self.world.objects().find(|(_, o)| o.span == decl.span && o.class.is_none());
                *decl.name == *CODE && made.is_some_and(|(_, o)| o.args.is_empty() && o.open.is_none())
            };
            if name == CODE {
                out.retain(|offer| !matches!(offer, Offer::Tool(decl, _) if usual(decl)));
            }
            // Another tool of this name is one more that the code may call.
            let taken = |offer: &Offer| matches!(offer, Offer::Tool(decl, _) if *decl.name == *name);
            let name = if out.iter().any(taken) { OWN_CODE } else { name };
            let mut decl = ToolDecl::unknown(name.into(), at);
            decl.description = Some("Runs the code of the reply.".into());
            out.push(Offer::Tool(decl, ToolRole::Program));
        }
        out
    }

    fn length(&self, id: ObjectId) -> usize {
        self.get(id, None, "instructions").map_or(0, |g| py::length(self.world, g.value))
    }

    fn prompt(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        match self.get(id, None, "instructions") {
            Some(given) => py::text(kit, self.world, given.value, plain),
            // The instructions of the framework are not reproduced.
            None => {
                kit.unknown("the instructions that smolagents gives its agents", self.world.object(id).span)
            }
        }
    }

    fn params(&self, kit: &mut Kit<'_>, id: ObjectId) -> (ModelParams, Option<Span>) {
        py::report(self.world.object(id), AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let mut params = ModelParams { purpose: Some(Name::from(self.name(id))), ..ModelParams::default() };
        let at = py::model(self.world, self.get(id, Some(1), "model"), &mut params, kit);
        (params, at)
    }

    fn tools_at(&self, id: ObjectId) -> Option<Span> {
        self.get(id, Some(0), "tools").map(|g| g.at)
    }

    fn bound(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound {
        let default = defaults::bound(&defaults::SMOLAGENTS_STEPS, kit.versions);
        py::bound(self.world, self.get(id, None, "max_steps"), default)
    }

    fn over(&self) -> (&'static str, bool) {
        ("Give your final answer.", true)
    }

    fn is_run(&self, method: &str) -> bool {
        matches!(method, "run" | "__call__")
    }
}
