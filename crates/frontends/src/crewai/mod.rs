//! CrewAI: `agents.yaml`, `tasks.yaml`, and files that hold both; crews and flows that Python builds.
//!
//! | part | what it reads |
//! |---|---|
//! | `source` | agents and tasks, in a configuration, in code, or in code that names a configuration |
//! | `code` | what Python makes |
//! | `crew` | agents, tasks and crews as terms |
//! | `guardrail` | what looks at results, and has tasks asked again |
//! | `planning` | the planner that begins a crew |
//! | `flow` | flows |
//!
//! | source | term |
//! |---|---|
//! | an agent | `llm p θ` with role, goal and backstory as its prompt |
//! | with tools | a conversation: `fresh (send[system] p; send x; case (fix[max_iter] …) of {…})` |
//! | `allow_delegation` | two tools that ask a coworker by name |
//! | a task | `λx. agent "…"`: description, expected output, and what came before as context |
//! | `guardrail` | a judge, and the task asked again with the reason |
//! | `planning` | a planner that is asked first |
//! | tasks | `task1 >> task2 >> …`; with `context` of some earlier tasks only, `let task1 = … in …` |
//! | `process: hierarchical` | a manager that asks the agents for each task |
//! | `{topic}` in any text | `inputs.topic`, where the whole is a function of `inputs: {topic: Str}` |
//!
//! CrewAI ends an agent's loop at the first reply without a tool call, though nothing in the files
//! says so ([`Facts::ends_loops`]), and picks a model if none is named ([`Facts::default_model`]).
//! A task without `context` is told the results of all tasks before it, so the stages of a composition
//! hand on what was said so far.
//!
//! Invariant: a crew is the same term whether its configuration is compiled by itself or with the code that
//! loads it, as far as the code adds nothing.
//!
//! Source: seed 000 Listing 2, §7.6; CrewAI 1.15.17 (commit f4731f50): `translations/en.json` for the
//! texts, `crew.py` (`_get_context`, `_prepare_tools`), `tools/agent_tools` and `utilities/formatter.py`.

mod code;
mod crew;
mod flow;
mod guardrail;
mod planning;
mod source;

pub use code::{Supplied, supplied};

use crate::langgraph::Functions;
use crew::Crew;
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{Unused, clip, codes, report_keys, undecided, value_span};
use frontend_kit::kit::Units;
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::versions::parts;
use python::{Limits, Sources, World};
use source::{CrewItem, CrewReader, Setting};
use std::collections::HashSet;

/// The front end.
pub struct CrewAi;

impl Frontend for CrewAi {
    fn name(&self) -> &'static str {
        "crewai"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["kickoff"]
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        if file.python.is_some() {
            return code::detect(file);
        }
        let parts = Parts::of(file);
        // These are PraisonAI's, which borrows the words: its agents have instructions and their tasks
        // inside, and its files a topic.
        let borrowed = |n: Node<'_>| {
            ["roles", "steps", "workflow", "topic"].iter().any(|k| n.get(k).is_some())
                || n.get("framework").and_then(|f| f.as_str()).is_some_and(|f| f != "crewai")
                || parts
                    .agents
                    .iter()
                    .take(50)
                    .any(|a| a.node.get("tasks").is_some() || a.node.get("instructions").is_some())
        };
        if file.documents.iter().take(8).any(|d| borrowed(d.root())) {
            return 0;
        }
        parts.likeness
    }

    fn fields(&self) -> Vec<&'static str> {
        [AGENT_KEYS, TASK_KEYS].concat()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        // Before 1.0 LiteLLM asks all models, and leaves out what one refuses.
        let is_old = match project.versions.exact("crewai") {
            Some(version) => parts(version) < parts("1"),
            None => project.versions.below("crewai").is_some_and(|v| parts(v) <= parts("1.0")),
        };
        let facts = Facts {
            filters_settings: is_old,
            default_model: Some("CrewAI asks the model that the environment names, or its own default"),
            ends_loops: Some("CrewAI ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say who the agent is: `role`, `goal` and `backstory`",
                model: "name one: `llm: provider/model`",
                bound: "state it: `max_iter`",
                stated: Some(&["max_iter"]),
                retries: "state it: `guardrail_max_retries`",
                round: "count the rounds in the state of the flow, and let a router end it",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        if file.python.is_some() {
            return code::lower(project, file, units.compiled.facts);
        }
        let own = Parts::of(file);
        own.report(&mut units.compiled.diagnostics);
        // Tasks find their agents in this file, or in the files beside it.
        let beside =
            project.files.iter().enumerate().filter(|(i, f)| *i != main && f.folder() == file.folder());
        let others: Vec<Parts<'_>> = beside.map(|(_, f)| Parts::of(f)).collect();
        let mut agents: Vec<CrewItem<'_>> = Vec::new();
        let mut known = HashSet::new();
        for definition in own.agents.iter().chain(others.iter().flat_map(|p| &p.agents)) {
            if known.insert(definition.name) {
                agents.push(CrewItem::Entry(*definition));
            }
        }
        // Nothing of it is Python.
        let nothing = Sources::new();
        let world = World::new(&nothing, Limits::default());
        let functions = Functions::default();
        let reader = CrewReader { world: &world, project, functions: &functions };
        let mut used: HashSet<Span> = HashSet::new();
        if let Some(first) = own.tasks.first() {
            let crew = own.crew(&reader, agents, first.node.head());
            units.add("crew", UnitKind::Crew, first.span, |kit| {
                let term = reader.crew(kit, &crew);
                kit.begun(term, first.span)
            });
            let crew = units.compiled.units.last();
            used.extend(crew.into_iter().flat_map(|u| &u.agents).map(|a| a.span));
        }
        for definition in own.agents.iter().filter(|d| !used.contains(&d.span)) {
            let head = definition.node.head();
            units.add(definition.name, UnitKind::Agent, head, |kit| {
                reader.alone(kit, CrewItem::Entry(*definition))
            });
        }
        units.done(None, "")
    }
}

/// An agent or a task under its name.
#[derive(Clone, Copy)]
struct Definition<'d> {
    name: &'d str,
    node: Node<'d>,
    /// Key and value.
    span: Span,
    /// True for an item of a list, which CrewAI doesn't read by itself.
    listed: bool,
}

/// Definitions in a file.
struct Parts<'d> {
    agents: Vec<Definition<'d>>,
    tasks: Vec<Definition<'d>>,
    /// The mappings around them, which may say more about the crew.
    crews: Vec<Node<'d>>,
    likeness: u8,
}

impl<'d> Parts<'d> {
    fn of(file: &'d File) -> Parts<'d> {
        let mut parts = Parts { agents: Vec::new(), tasks: Vec::new(), crews: Vec::new(), likeness: 0 };
        for document in file.documents.iter().take(8) {
            parts.add(document.root());
        }
        parts
    }

    fn add(&mut self, root: Node<'d>) {
        let (agents, tasks) = (root.get("agents"), root.get("tasks"));
        let inner_agents = agents.map_or(Vec::new(), definitions);
        let inner_tasks = tasks.map_or(Vec::new(), definitions);
        if inner_agents.iter().any(|d| is_agent(d.node)) || inner_tasks.iter().any(|d| is_task(d.node)) {
            let full = inner_agents.iter().any(|d| has_all_of_an_agent(d.node))
                || inner_tasks.iter().any(|d| is_task(d.node));
            let sure = if full { 92 } else { 55 };
            self.likeness = self.likeness.max(sure);
            self.agents.extend(inner_agents.into_iter().filter(|d| d.node.is_mapping()));
            self.tasks.extend(inner_tasks.into_iter().filter(|d| d.node.is_mapping()));
            self.crews.push(root);
            return;
        }
        let all = definitions(root);
        let agents: Vec<_> = all.iter().filter(|d| is_agent(d.node)).copied().collect();
        let tasks: Vec<_> = all.iter().filter(|d| is_task(d.node)).copied().collect();
        // In a file of agents or tasks hardly anything else stands at the top.
        let found = agents.len() + tasks.len();
        if found > 0 && found * 2 > all.iter().filter(|d| d.node.is_mapping()).count() {
            let sure = match agents.iter().any(|d| has_all_of_an_agent(d.node)) || !tasks.is_empty() {
                true => 95,
                false => 60,
            };
            self.likeness = self.likeness.max(sure);
            self.agents.extend(agents);
            self.tasks.extend(tasks);
        }
    }

    /// Reports what the mapping around agents and tasks says beyond them.
    fn report(&self, out: &mut Vec<Diagnostic>) {
        for crew in &self.crews {
            report_keys(*crew, CREW_KEYS, CREW_UNUSED, "a crew", out);
            if let Some(e) = crew.entry("process")
                && e.value.text().is_some_and(|p| !matches!(p, "sequential" | "hierarchical"))
            {
                let process = clip(e.value.text().unwrap_or(""));
                let message = format!("the process `{process}` is compiled as `sequential`");
                out.push(undecided(codes::UNUSED_KEY, message, value_span(&e)));
            }
        }
    }

    /// The tasks with those who carry them out.
    fn crew(&self, reader: &CrewReader<'d, '_>, agents: Vec<CrewItem<'d>>, at: Span) -> Crew<'d> {
        let says = |key: &str| self.crews.iter().find_map(|c| c.entry(key).filter(|e| !e.value.is_null()));
        let names = reader.names(&agents);
        let manager = says("manager_agent").and_then(|e| names.get(e.value.text()?).copied());
        Crew {
            at,
            // Who manages is none of those that are asked.
            agents: agents.into_iter().filter(|a| manager.is_none_or(|m| m != *a)).collect(),
            tasks: self.tasks.iter().map(|t| CrewItem::Entry(*t)).collect(),
            managed: says("process").is_some_and(|e| e.value.text() == Some("hierarchical")),
            manager,
            manager_llm: says("manager_llm").map(Setting::Yaml),
            planning: says("planning").map(Setting::Yaml).filter(|w| reader.is_on(w)),
            planning_llm: says("planning_llm").map(Setting::Yaml),
            memory: SHARED.iter().find_map(|k| says(k).map(Setting::Yaml).filter(|w| reader.is_on(w))),
            names,
        }
    }
}

/// The entries of a mapping, or the items of a list under their `name`.
fn definitions<'d>(node: Node<'d>) -> Vec<Definition<'d>> {
    let entries = node.entries().map(|e| Definition {
        name: e.key.text().unwrap_or(""),
        node: e.value,
        span: e.span(),
        listed: false,
    });
    let items = node.items().map(|n| {
        let name = ["name", "id", "role"].iter().find_map(|k| n.get(k)?.text()).unwrap_or("");
        Definition { name, node: n, span: n.span(), listed: true }
    });
    entries.chain(items).collect()
}

fn has_text(node: Node<'_>, key: &str) -> bool {
    node.get(key).is_some_and(|n| n.text().is_some() || n.is_null())
}

fn is_agent(node: Node<'_>) -> bool {
    has_text(node, "role") && (has_text(node, "goal") || has_text(node, "backstory"))
}

fn has_all_of_an_agent(node: Node<'_>) -> bool {
    has_text(node, "role") && has_text(node, "goal") && has_text(node, "backstory")
}

fn is_task(node: Node<'_>) -> bool {
    has_text(node, "description") && has_text(node, "expected_output")
}

const PYTHON_HOOK: &str = "it names Python code";
const RUNTIME: &str = "it concerns how the framework runs, not what the agent does";
const NOT_YET: &str = "it is not compiled yet";
const UNCOUNTED: &str = "it is not compiled, so how many calls there are is not known";
const AT_KICKOFF: &str = "it counts where an agent is started by itself";

const AGENT_KEYS: &[&str] =
    &["name", "role", "goal", "backstory", "llm", "tools", "max_iter", "config", "allow_delegation"];
const AGENT_UNUSED: &[Unused] = &[
    ("verbose", RUNTIME),
    ("cache", RUNTIME),
    ("memory", UNCOUNTED),
    ("max_rpm", RUNTIME),
    ("max_execution_time", RUNTIME),
    ("max_retry_limit", RUNTIME),
    ("allow_code_execution", UNCOUNTED),
    ("code_execution_mode", NOT_YET),
    ("respect_context_window", RUNTIME),
    ("function_calling_llm", NOT_YET),
    ("step_callback", PYTHON_HOOK),
    ("callbacks", PYTHON_HOOK),
    ("system_template", NOT_YET),
    ("prompt_template", NOT_YET),
    ("response_template", NOT_YET),
    ("use_system_prompt", NOT_YET),
    ("multimodal", UNCOUNTED),
    ("reasoning", UNCOUNTED),
    ("max_reasoning_attempts", NOT_YET),
    ("inject_date", NOT_YET),
    ("date_format", NOT_YET),
    ("knowledge_sources", UNCOUNTED),
    ("knowledge", UNCOUNTED),
    ("embedder", NOT_YET),
    ("guardrail", AT_KICKOFF),
    ("mcps", UNCOUNTED),
    ("apps", UNCOUNTED),
    ("from_repository", UNCOUNTED),
    ("planning", UNCOUNTED),
    ("planning_config", UNCOUNTED),
    ("security_config", RUNTIME),
    ("settings", NOT_YET),
    ("skills", NOT_YET),
    ("tool_failure_policy", NOT_YET),
    ("type", PYTHON_HOOK),
    ("knowledge_config", NOT_YET),
    ("max_tokens", NOT_YET),
];

const TASK_KEYS: &[&str] = &[
    "name",
    "description",
    "expected_output",
    "agent",
    "context",
    "config",
    "tools",
    "markdown",
    "output_pydantic",
    "output_json",
    "guardrail",
    "guardrails",
    "guardrail_max_retries",
    "max_retries",
];
const TASK_UNUSED: &[Unused] = &[
    ("async_execution", "it runs in its place"),
    ("output_file", RUNTIME),
    ("create_directory", RUNTIME),
    ("response_model", PYTHON_HOOK),
    ("human_input", UNCOUNTED),
    ("callback", PYTHON_HOOK),
    ("converter_cls", PYTHON_HOOK),
    ("condition", PYTHON_HOOK),
    ("allow_crewai_trigger_context", NOT_YET),
    ("id", RUNTIME),
    ("input_files", NOT_YET),
    ("security_config", RUNTIME),
    ("tool_failure_policy", NOT_YET),
    ("type", PYTHON_HOOK),
];

const CREW_KEYS: &[&str] =
    &["agents", "tasks", "process", "manager_llm", "manager_agent", "planning", "planning_llm"];
/// Settings of a crew that its agents share.
const SHARED: [&str; 3] = ["memory", "knowledge", "knowledge_sources"];
const CREW_UNUSED: &[Unused] = &[
    ("name", "it changes nothing about what the crew does"),
    ("description", "it changes nothing about what the crew does"),
    ("verbose", RUNTIME),
    ("memory", UNCOUNTED),
    ("cache", RUNTIME),
    ("max_rpm", RUNTIME),
    ("function_calling_llm", NOT_YET),
    ("embedder", NOT_YET),
    ("output_log_file", RUNTIME),
    ("share_crew", RUNTIME),
    ("knowledge_sources", UNCOUNTED),
    ("inputs", NOT_YET),
    ("chat_llm", NOT_YET),
    ("before_kickoff_callbacks", PYTHON_HOOK),
    ("after_kickoff_callbacks", PYTHON_HOOK),
    ("step_callback", PYTHON_HOOK),
    ("task_callback", PYTHON_HOOK),
    ("knowledge", UNCOUNTED),
    ("prompt_file", NOT_YET),
    ("security_config", RUNTIME),
    ("skills", NOT_YET),
    ("stream", RUNTIME),
    ("tool_failure_policy", NOT_YET),
    ("tracing", RUNTIME),
    ("framework", "it states the kind, which is known"),
];
