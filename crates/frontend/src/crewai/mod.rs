//! CrewAI: `agents.yaml`, `tasks.yaml`, and files that hold both; crews and flows that Python builds (`code.rs`).
//!
//! | source | term |
//! |---|---|
//! | an agent | `llm p θ` with role, goal and backstory as its prompt |
//! | an agent with `tools` or `max_iter` | `fix[max_iter] (λself. λx. let t = llm p θ x in case t of {…})` |
//! | a task | `λx. agent "…"`: description, expected output, and what came before as context |
//! | tasks | `task1 >> task2 >> …`; with `context` of some earlier tasks only, `let task1 = … in …` |
//! | `{topic}` in any text | `inputs.topic`, where the whole is a function of `inputs: {topic: Str}` |
//!
//! CrewAI ends an agent's loop at the first reply without a tool call, though nothing in the files
//! says so ([`Facts::ends_loops`]), and picks a model if none is named ([`Facts::default_model`]).
//! A task without `context` is told the results of all tasks before it, so the stages of a composition
//! hand on what was said so far.
//!
//! Not reproduced: the words that CrewAI puts around a request (`Current Task: …`) and around tools.
//!
//! Source: seed 000 Listing 2, §7.6; CrewAI 1.15.17 (commit f4731f50): `translations/en.json` for the
//! texts, `crew.py` (`_get_context`) and `utilities/formatter.py` for contexts.

mod code;

pub use code::{Supplied, supplied};

use crate::defaults;
use crate::doc::{Entry, Node};
use crate::emit::{
    self, Part, Template, Unused, clip, codes, near, parts, report_keys, undecided, value_span, wrong_kind,
};
use crate::kit::Budget;
use crate::lambda_yaml::not_built;
use crate::outline::Outline;
use crate::project::{AgentPlace, Compiled, Facts, File, Frontend, Project, Unit, UnitKind, Words};
use crate::versions::Versions;
use core_ir::{Branch, Builder, Data, Globals, Name, Term, TermId, ToolDecl, ToolId, Type};
use diagnostics::{Diagnostic, Span};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The front end.
pub struct CrewAi;

/// What a reference to an earlier result counts as, in bytes of text.
const SIZE_OF_A_NAME: usize = 16;

impl Frontend for CrewAi {
    fn name(&self) -> &'static str {
        "crewai"
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
        let facts = Facts {
            default_model: Some("CrewAI asks the model that the environment names, or its own default"),
            ends_loops: Some("CrewAI ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say who the agent is: `role`, `goal` and `backstory`",
                model: "name one: `llm: provider/model`",
                bound: "state it: `max_iter`",
                stated: Some(&["max_iter"]),
                round: "count the rounds in the state of the flow, and let a router end it",
                ..Words::default()
            },
        };
        let mut compiled =
            Compiled { framework: self.name(), units: Vec::new(), facts, diagnostics: Vec::new() };
        let Some(file) = project.files.get(main) else { return compiled };
        if file.python.is_some() {
            return code::lower(project, file, compiled.facts);
        }
        let own = Parts::of(file);
        own.report(&mut compiled.diagnostics);
        // Tasks find their agents in this file, or in the files beside it.
        let mut agents: HashMap<&str, Definition<'_>> = HashMap::new();
        let beside =
            project.files.iter().enumerate().filter(|(i, f)| *i != main && f.folder() == file.folder());
        let others: Vec<Parts<'_>> = beside.map(|(_, f)| Parts::of(f)).collect();
        for definition in own.agents.iter().chain(others.iter().flat_map(|p| &p.agents)) {
            agents.entry(definition.name).or_insert(*definition);
        }
        let mut budget = Budget::new();
        let mut used = HashSet::new();
        if !own.tasks.is_empty() {
            let mut lower = Lower::new(&agents, &project.versions, &mut compiled.diagnostics, &mut budget);
            let term = lower.crew(&own.tasks);
            used = std::mem::take(&mut lower.used);
            let span = own.tasks[0].span;
            let unit = lower.finish(term, "crew", UnitKind::Crew, span);
            compiled.units.extend(unit);
        }
        for definition in own.agents.iter().filter(|d| !used.contains(d.name)) {
            if budget.exceeded() {
                break;
            }
            let mut lower = Lower::new(&agents, &project.versions, &mut compiled.diagnostics, &mut budget);
            let term = lower.agent_alone(definition);
            let unit = lower.finish(term, definition.name, UnitKind::Agent, definition.node.head());
            compiled.units.extend(unit);
        }
        compiled
    }
}

/// An agent or a task under its name.
#[derive(Clone, Copy)]
struct Definition<'d> {
    name: &'d str,
    node: Node<'d>,
    /// Key and value.
    span: Span,
}

/// What a file defines.
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
            report_keys(*crew, &["agents", "tasks", "process"], CREW_UNUSED, "a crew", out);
            if let Some(e) = crew.entry("process")
                && e.value.text().is_some_and(|p| p != "sequential")
            {
                out.push(undecided(
                    codes::UNUSED_KEY,
                    format!(
                        "the process `{}` is compiled as `sequential`",
                        clip(e.value.text().unwrap_or(""))
                    ),
                    value_span(&e),
                ));
            }
        }
    }
}

/// The entries of a mapping, or the items of a list under their `name`.
fn definitions<'d>(node: Node<'d>) -> Vec<Definition<'d>> {
    let entries = node.entries().map(|e| Definition {
        name: e.key.text().unwrap_or(""),
        node: e.value,
        span: e.span(),
    });
    let items = node.items().map(|n| {
        let name = ["name", "id", "role"].iter().find_map(|k| n.get(k)?.text()).unwrap_or("");
        Definition { name, node: n, span: n.span() }
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

const AGENT_KEYS: &[&str] = &["name", "role", "goal", "backstory", "llm", "tools", "max_iter"];
const AGENT_UNUSED: &[Unused] = &[
    ("verbose", RUNTIME),
    ("cache", RUNTIME),
    ("memory", NOT_YET),
    ("max_rpm", RUNTIME),
    ("max_execution_time", RUNTIME),
    ("max_retry_limit", RUNTIME),
    ("allow_delegation", NOT_YET),
    ("allow_code_execution", NOT_YET),
    ("code_execution_mode", NOT_YET),
    ("respect_context_window", RUNTIME),
    ("function_calling_llm", NOT_YET),
    ("step_callback", PYTHON_HOOK),
    ("callbacks", PYTHON_HOOK),
    ("system_template", NOT_YET),
    ("prompt_template", NOT_YET),
    ("response_template", NOT_YET),
    ("use_system_prompt", NOT_YET),
    ("multimodal", NOT_YET),
    ("reasoning", NOT_YET),
    ("max_reasoning_attempts", NOT_YET),
    ("inject_date", NOT_YET),
    ("date_format", NOT_YET),
    ("knowledge_sources", NOT_YET),
    ("knowledge", NOT_YET),
    ("embedder", NOT_YET),
    ("guardrail", NOT_YET),
    ("mcps", NOT_YET),
    ("apps", NOT_YET),
    ("config", NOT_YET),
    ("from_repository", NOT_YET),
    ("planning", NOT_YET),
    ("planning_config", NOT_YET),
    ("security_config", RUNTIME),
    ("settings", NOT_YET),
    ("skills", NOT_YET),
    ("tool_failure_policy", NOT_YET),
    ("type", PYTHON_HOOK),
    ("knowledge_config", NOT_YET),
    ("max_tokens", NOT_YET),
];

const TASK_KEYS: &[&str] = &["name", "description", "expected_output", "agent", "context"];
const TASK_UNUSED: &[Unused] = &[
    ("async_execution", "tasks are compiled in their order"),
    ("output_file", RUNTIME),
    ("create_directory", RUNTIME),
    ("output_json", PYTHON_HOOK),
    ("output_pydantic", PYTHON_HOOK),
    ("response_model", PYTHON_HOOK),
    ("human_input", NOT_YET),
    ("tools", NOT_YET),
    ("guardrail", NOT_YET),
    ("guardrails", NOT_YET),
    ("guardrail_max_retries", NOT_YET),
    ("max_retries", NOT_YET),
    ("callback", PYTHON_HOOK),
    ("converter_cls", PYTHON_HOOK),
    ("condition", PYTHON_HOOK),
    ("markdown", RUNTIME),
    ("config", NOT_YET),
    ("allow_crewai_trigger_context", NOT_YET),
    ("id", RUNTIME),
    ("input_files", NOT_YET),
    ("security_config", RUNTIME),
    ("tool_failure_policy", NOT_YET),
    ("type", PYTHON_HOOK),
];

const CREW_UNUSED: &[Unused] = &[
    ("name", "it changes nothing about what the crew does"),
    ("description", "it changes nothing about what the crew does"),
    ("verbose", RUNTIME),
    ("memory", NOT_YET),
    ("cache", RUNTIME),
    ("max_rpm", RUNTIME),
    ("planning", NOT_YET),
    ("planning_llm", NOT_YET),
    ("manager_llm", NOT_YET),
    ("manager_agent", NOT_YET),
    ("function_calling_llm", NOT_YET),
    ("embedder", NOT_YET),
    ("output_log_file", RUNTIME),
    ("share_crew", RUNTIME),
    ("knowledge_sources", NOT_YET),
    ("inputs", NOT_YET),
    ("chat_llm", NOT_YET),
    ("before_kickoff_callbacks", PYTHON_HOOK),
    ("after_kickoff_callbacks", PYTHON_HOOK),
    ("step_callback", PYTHON_HOOK),
    ("task_callback", PYTHON_HOOK),
    ("knowledge", NOT_YET),
    ("prompt_file", NOT_YET),
    ("security_config", RUNTIME),
    ("skills", NOT_YET),
    ("stream", RUNTIME),
    ("tool_failure_policy", NOT_YET),
    ("tracing", RUNTIME),
    ("framework", "it says what this is already"),
];

struct Lower<'a, 'd> {
    b: Builder,
    known: &'a HashMap<&'d str, Definition<'d>>,
    versions: &'a Versions,
    out: &'a mut Vec<Diagnostic>,
    budget: &'a mut Budget,
    /// Placeholders that were met.
    inputs: BTreeSet<String>,
    agents: Vec<AgentPlace>,
    used: HashSet<&'d str>,
    tools: HashMap<&'d str, ToolId>,
}

/// What stands between the results of several tasks.
const DIVIDER: &str = "\n\n----------\n\n";

impl<'a, 'd> Lower<'a, 'd> {
    fn new(
        known: &'a HashMap<&'d str, Definition<'d>>,
        versions: &'a Versions,
        out: &'a mut Vec<Diagnostic>,
        budget: &'a mut Budget,
    ) -> Self {
        Lower {
            b: Builder::new(),
            known,
            versions,
            out,
            budget,
            inputs: BTreeSet::new(),
            agents: Vec::new(),
            used: HashSet::new(),
            tools: HashMap::new(),
        }
    }

    fn finish(self, term: TermId, name: &str, kind: UnitKind, span: Span) -> Option<Unit> {
        let Lower { b, out, agents, .. } = self;
        match b.finish(term, &Globals::none()) {
            Ok(code) => {
                let outline = Outline::default();
                Some(Unit { name: name.to_string(), kind, code: Arc::new(code), span, agents, outline })
            }
            Err(errors) => {
                out.extend(errors.into_iter().take(1).map(|e| not_built(&e, span)));
                None
            }
        }
    }

    /// Adds a user's text with its placeholders.
    fn fill(&mut self, template: &mut Template, text: &str, at: Span) {
        for part in parts(text) {
            match part {
                Part::Text(t) => {
                    template.text(t);
                }
                Part::Hole(name) => {
                    let inputs = self.b.var(emit::INPUTS, at);
                    let value = self.b.add(Term::Field(inputs, name.into()), at);
                    template.term(value);
                    self.inputs.insert(name.to_string());
                }
            }
        }
    }

    fn agent_alone(&mut self, definition: &Definition<'d>) -> TermId {
        let term = self.agent(definition);
        emit::with_inputs(&mut self.b, &self.inputs, term, definition.node.head())
    }

    /// `Str → Str`.
    fn agent(&mut self, definition: &Definition<'d>) -> TermId {
        let Definition { name, node, span } = *definition;
        let head = node.head();
        let size =
            ["role", "goal", "backstory"].iter().filter_map(|k| node.get(k)?.text()).map(str::len).sum();
        if !self.budget.take(size, head, self.out) {
            return self.b.add(Term::Unknown("an agent beyond the limit".into()), head);
        }
        if self.used.insert(name) {
            self.agents.push(AgentPlace { name: name.to_string(), span });
            report_keys(node, AGENT_KEYS, AGENT_UNUSED, "an agent", self.out);
        }
        let prompt = self.prompt(node);
        let mut ignored = Vec::new();
        let (mut params, model_at) =
            emit::model(node.entry("llm"), &["model", "model_name", "name"], &mut ignored);
        self.out.append(&mut ignored);
        params.purpose = Some(name.into());
        let model_at = model_at.unwrap_or(head);
        let tools = node.entry("tools");
        let names = tools.map_or(Vec::new(), |e| emit::names(&e, self.out));
        let max_iter = node.entry("max_iter");
        if names.is_empty() && max_iter.is_none_or(|e| e.value.is_null()) {
            return self.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
        }
        let bound = defaults::bound(&defaults::CREWAI_ITER, self.versions).or_written(max_iter, self.out);
        let tools_at = tools.map_or(head, |e| value_span(&e));
        let fix_at = bound.span.unwrap_or(tools.map_or(head, |e| e.key.span()));
        let mut branches: Vec<Branch> = Vec::new();
        let mut seen: HashSet<&str> = HashSet::new();
        for (tool, item) in names {
            let at = item.span();
            if branches.len() >= emit::MOST_TOOLS {
                self.out.push(emit::too_many_tools(at));
                break;
            }
            if tool == "final" || !seen.insert(tool) {
                self.out.push(Diagnostic::warn(
                    codes::DUPLICATE,
                    format!("there is a tool `{}` already, this one is left out", clip(tool)),
                    at,
                ));
                continue;
            }
            let id = match self.tools.get(tool) {
                Some(id) => *id,
                None => {
                    let id = self.b.tool(ToolDecl::unknown(tool.into(), at));
                    self.tools.insert(tool, id);
                    id
                }
            };
            params.tools.push(id);
            let f = self.b.add(Term::Tool(id), at);
            let a = self.b.var("a", at);
            let call = self.b.app(f, a, at);
            let (x, o) = (self.b.var("x", at), self.b.var("o", at));
            let mut state = Template::new(at);
            state.term(x).text(&format!("\n[{tool}] ")).term(o);
            let state = state.build(&mut self.b);
            let this = self.b.var("self", at);
            let again = self.b.app(this, state, at);
            let body = self.b.let_in(vec![("o".into(), call)], again, at);
            branches.push(Branch { tag: tool.into(), binder: Some("a".into()), body });
        }
        let offered = !params.tools.is_empty();
        let oracle = self.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
        let x = self.b.var("x", model_at);
        let think = self.b.app(oracle, x, model_at);
        let body = if offered {
            let answer = self.b.var("a", tools_at);
            branches.push(Branch { tag: "final".into(), binder: Some("a".into()), body: answer });
            let t = self.b.var("t", tools_at);
            let case = self.b.add(Term::Case { scrutinee: t, branches, default: None }, tools_at);
            self.b.let_in(vec![("t".into(), think)], case, head)
        } else {
            // The reply of a model without tools is text: the answer.
            think
        };
        let step = self.b.abs("x", Some(Type::Str), body, head);
        let body = self.b.abs("self", None, step, head);
        self.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body }, fix_at)
    }

    /// The system message, as CrewAI puts it together. Its place is the role.
    fn prompt(&mut self, node: Node<'d>) -> TermId {
        let at = node.entry("role").map_or(node.head(), |e| value_span(&e));
        let mut template = Template::new(at);
        let read = |key: &str, out: &mut Vec<Diagnostic>| emit::text(node, key, out).unwrap_or("");
        let role = read("role", self.out);
        let goal = read("goal", self.out);
        let backstory = read("backstory", self.out);
        if [role, goal, backstory].iter().all(|t| t.trim().is_empty()) {
            return template.build(&mut self.b);
        }
        template.text("You are ");
        self.fill(&mut template, role, at);
        template.text(". ");
        self.fill(&mut template, backstory, at);
        template.text("\nYour personal goal is: ");
        self.fill(&mut template, goal, at);
        template.build(&mut self.b)
    }

    /// The tasks one after the other.
    fn crew(&mut self, tasks: &[Definition<'d>]) -> TermId {
        let at = tasks[0].node.head();
        let position: HashMap<&str, usize> = tasks.iter().enumerate().map(|(i, t)| (t.name, i)).collect();
        let contexts: Vec<Option<Vec<usize>>> =
            tasks.iter().enumerate().map(|(i, t)| self.context(i, t, &position)).collect();
        let everything_before = contexts.iter().enumerate().all(|(i, c)| match c {
            None => true,
            Some(list) => list.len() == i && list.iter().enumerate().all(|(n, earlier)| n == *earlier),
        });
        let term =
            if everything_before { self.stages(tasks, at) } else { self.bindings(tasks, &contexts, at) };
        if self.inputs.is_empty() {
            return term;
        }
        let nothing = self.b.lit(Data::str(""), at);
        let run = self.b.app(term, nothing, at);
        emit::with_inputs(&mut self.b, &self.inputs, run, at)
    }

    /// Tasks each of which is told the results of all before it: what a stage is given is what it is told.
    fn stages(&mut self, tasks: &[Definition<'d>], at: Span) -> TermId {
        let last = tasks.len() - 1;
        let mut stages = Vec::with_capacity(tasks.len());
        for (i, task) in tasks.iter().enumerate() {
            let head = task.node.head();
            let context = if i == 0 { Vec::new() } else { vec![self.b.var("x", head)] };
            let mut body = self.task(task, context);
            if 0 < i && i < last {
                let mut said = Template::new(head);
                said.term(self.b.var("x", head)).text(DIVIDER).term(body);
                body = said.build(&mut self.b);
            }
            stages.push(self.b.abs("x", Some(Type::Str), body, head));
        }
        match stages[..] {
            [one] => one,
            _ => self.b.compose(stages, at),
        }
    }

    /// Tasks some of which are told only some of the results before them.
    fn bindings(&mut self, tasks: &[Definition<'d>], contexts: &[Option<Vec<usize>>], at: Span) -> TermId {
        let variable = |i: usize| Name::from(format!("$task{}", i + 1));
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        for (i, task) in tasks.iter().enumerate() {
            let mut told: Vec<usize> = contexts[i].clone().unwrap_or_else(|| (0..i).collect());
            // Every task told of every other is a quadratic term.
            if !self.budget.take_text(told.len() * SIZE_OF_A_NAME, task.node.head(), self.out) {
                told.clear();
            }
            let context = told.into_iter().map(|n| self.b.var(variable(n), task.node.head())).collect();
            let body = self.task(task, context);
            bindings.push((variable(i), body));
        }
        let last = self.b.var(variable(tasks.len() - 1), at);
        let body = self.b.let_in(bindings, last, at);
        self.b.abs("x", Some(Type::Str), body, at)
    }

    /// The earlier tasks whose results a task is given; `None` if it does not say.
    fn context(
        &mut self,
        index: usize,
        task: &Definition<'d>,
        position: &HashMap<&str, usize>,
    ) -> Option<Vec<usize>> {
        let entry = task.node.entry("context").filter(|e| !e.value.is_null())?;
        if !entry.value.is_sequence() {
            self.out.push(wrong_kind(&entry, "a list of tasks"));
            return None;
        }
        let mut earlier = Vec::new();
        for (name, item) in emit::names(&entry, self.out) {
            match position.get(name) {
                Some(i) if *i < index => earlier.push(*i),
                Some(_) => self.out.push(
                    Diagnostic::error(
                        codes::UNDEFINED,
                        format!(
                            "task `{}` has no result yet when `{}` needs it",
                            clip(name),
                            clip(task.name)
                        ),
                        item.span(),
                    )
                    .help("put the task before the one that uses its result"),
                ),
                None => {
                    let d = undecided(
                        codes::UNDEFINED,
                        format!("no task is called `{}` here", clip(name)),
                        item.span(),
                    );
                    self.out.push(match near(name, position.keys().copied(), self.out) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    });
                }
            }
        }
        Some(earlier)
    }

    /// The agent of a task applied to what it is told.
    fn task(&mut self, task: &Definition<'d>, context: Vec<TermId>) -> TermId {
        let node = task.node;
        let head = node.head();
        let size =
            ["description", "expected_output"].iter().filter_map(|k| node.get(k)?.text()).map(str::len).sum();
        if !self.budget.take(size, head, self.out) {
            return self.b.add(Term::Unknown("a task beyond the limit".into()), head);
        }
        report_keys(node, TASK_KEYS, TASK_UNUSED, "a task", self.out);
        let at = node.entry("description").map_or(head, |e| value_span(&e));
        let mut template = Template::new(at);
        let description = emit::text(node, "description", self.out).unwrap_or("");
        self.fill(&mut template, description, at);
        template.text("\n\nThis is the expected criteria for your final answer: ");
        let expected = emit::text(node, "expected_output", self.out).unwrap_or("");
        self.fill(&mut template, expected, at);
        template.text("\nyou MUST return the actual complete content as the final answer, not a summary.");
        for (i, earlier) in context.into_iter().enumerate() {
            template.text(if i == 0 { "\n\nThis is the context you're working with:\n" } else { DIVIDER });
            template.term(earlier);
        }
        let request = template.build(&mut self.b);
        let agent = self.agent_of(task);
        self.b.app(agent, request, head)
    }

    fn agent_of(&mut self, task: &Definition<'d>) -> TermId {
        let head = task.node.head();
        let entry: Option<Entry<'d>> = task.node.entry("agent").filter(|e| !e.value.is_null());
        let Some(entry) = entry else {
            let why = format!("the agent of task {}", task.name);
            return self.b.add(Term::Unknown(why.into()), head);
        };
        let Some(name) = entry.value.text() else {
            self.out.push(wrong_kind(&entry, "the name of an agent"));
            return self.b.add(Term::Unknown("an agent".into()), head);
        };
        if let Some(definition) = self.known.get(name).copied() {
            return self.agent(&definition);
        }
        // Without any agent in sight they are all elsewhere; otherwise one missing is odd, though a
        // Python method of that name may make it.
        if !self.known.is_empty() {
            let d = undecided(
                codes::UNDEFINED,
                format!("agent `{}` is not among the agents of these files", clip(name)),
                entry.value.span(),
            );
            self.out.push(match near(name, self.known.keys().copied(), self.out) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("it may be made in Python, which is not read here"),
            });
        }
        self.b.add(Term::Unknown(name.into()), entry.value.span())
    }
}
