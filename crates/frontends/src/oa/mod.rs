//! Open Agent Spec of Prime Vector (`open_agent_spec: "1.5.0"`), called OA; Oracle's format of that name is
//! [`crate::agentspec`].
//!
//! | source | term |
//! |---|---|
//! | a task | a function of its `input`: `llm system θ user`, whose result has the type of `output` |
//! | `response_format: text` | its result is a text |
//! | `prompts` of the task, below `prompts.TASK`, or `prompts` | the first that has `system`, and the first that has `user` |
//! | `{{ name }}`, `{{ input.name }}`, `{name}` in `user` | the input, or what a task gave that it depends on; `system` is sent as it is |
//! | `tools` | a conversation in which the tools are called, ten rounds at most |
//! | `sandbox.tools` | a call of a tool that it does not allow is an error |
//! | `depends_on: [a, b]` | `let a = … in let b = … in …`: each has the outputs of those before it, and not what it depends on itself |
//! | `spec`, `task` | the task of the other file; one that is not at hand, such as `oa://…`, is unknown |
//! | `multi_step` with `steps` | the tasks one after the other; the output has the fields of the first that gives them |
//! | `behavioural_contract.response_contract.output_format.required_fields` | fields that an output must have |
//! | `timeout` | `within[n]` |
//!
//! Several calls in one reply are carried out one after the other, each with its result after it.
//!
//! Known differences: a reply that is not JSON is an error, as one that does not fit is, where the runner
//! hands it on as text; what is no text stands as JSON in a prompt, not as Python writes it; a tool that
//! fails ends the task, the runner tells the model; `history` is not told. Bounds of values (`minLength`,
//! `enum`, …) are not checked. A value of `input_map` that is the name of an input means the input.
//!
//! Source: prime-vector/open-agent-spec, `spec/open-agent-spec-1.6.md`, `docs/REFERENCE.md`;
//! `oas_cli/runner.py`: 10 rounds, temperature 0.7 and 1000 tokens if the file says nothing.

mod prompt;
mod tools;

use crate::defaults;
use core_ir::{Data, IfSugar, ModelParams, Name, Num, Prim, Role, Term, TermId, Type};
use diagnostics::{Diagnostic, Span, clip};
use frontend_kit::conversation::{Speaker, conversation};
use frontend_kit::doc::{Entry, Node};
use frontend_kit::emit::{self, codes, report_keys, value_span};
use frontend_kit::kit::{Kit, Units, ask, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{of_schema, why};
use std::collections::BTreeMap;

/// The front end.
pub struct OpenAgent;

const UNUSED: &[emit::Unused] = &[
    ("interface", why::RUNTIME),
    ("logging", why::RUNTIME),
    ("agent", why::SHOWN),
    ("memory", why::NOT_YET),
    ("info", why::SHOWN),
];

const TASK_UNUSED: &[emit::Unused] =
    &[("description", why::SHOWN), ("tool", "it is generated code that calls it"), ("metadata", why::SHOWN)];

const MODEL_UNUSED: &[emit::Unused] =
    &[("type", "there is one"), ("endpoint", why::RUNTIME), ("module", why::CODE)];

/// Keywords of a schema that say more of a value than its type.
const BOUNDS: &[&str] = &[
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "format",
    "const",
];

impl Frontend for OpenAgent {
    fn name(&self) -> &'static str {
        "oa"
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |r| mark::has(r, "open_agent_spec")) { 95 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        let mut fields: Vec<&'static str> = UNUSED.iter().chain(TASK_UNUSED).map(|(k, _)| *k).collect();
        fields.extend([
            "open_agent_spec",
            "intelligence",
            "tasks",
            "prompts",
            "behavioural_contract",
            "tools",
            "sandbox",
        ]);
        fields.extend([
            "input",
            "output",
            "response_format",
            "depends_on",
            "spec",
            "task",
            "steps",
            "timeout",
        ]);
        fields
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("the loop ends at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the task is: `prompts` with `system` and `user`",
                model: "name it: `model` of `intelligence`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let spec = Spec { file, root };
            spec.report(&mut units.compiled.diagnostics);
            for entry in root.get("tasks").into_iter().flat_map(|t| t.entries()) {
                let has = |key| entry.value.get(key).is_some_and(|v| v.items().len() > 0);
                let kind = if has("depends_on") || has("steps") { UnitKind::Crew } else { UnitKind::Agent };
                let Some(name) = entry.key.text() else { continue };
                let task = Task { spec, name, node: entry.value, at: entry.key.span() };
                units.add(name, kind, entry.key.span(), |kit| {
                    OaLowering { kit, project, open: Vec::new() }.whole(task)
                });
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "`tasks` is missing")
    }
}

/// A file of tasks.
#[derive(Clone, Copy)]
struct Spec<'d> {
    file: &'d File,
    root: Node<'d>,
}

/// A task of a file.
#[derive(Clone, Copy)]
struct Task<'d> {
    spec: Spec<'d>,
    name: &'d str,
    node: Node<'d>,
    at: Span,
}

impl<'d> Spec<'d> {
    fn task(self, name: &str) -> Option<Task<'d>> {
        let entry = self.root.get("tasks")?.entry(name)?;
        Some(Task { spec: self, name: entry.key.text()?, node: entry.value, at: entry.key.span() })
    }

    /// Reports the keys that are not read.
    fn report(self, out: &mut Vec<Diagnostic>) {
        const KEYS: &[&str] = &[
            "open_agent_spec",
            "intelligence",
            "tasks",
            "prompts",
            "tools",
            "sandbox",
            "behavioural_contract",
        ];
        let unused: Vec<emit::Unused> = UNUSED.iter().filter(|(k, _)| *k != "agent").copied().collect();
        let used: Vec<&'static str> = KEYS.iter().copied().chain(["agent"]).collect();
        report_keys(self.root, &used, &unused, "an Open Agent Spec file", out);
        if let Some(model) = self.root.get("intelligence") {
            report_keys(model, &["type", "engine", "model", "config"], MODEL_UNUSED, "`intelligence`", out);
        }
        let nodes: Vec<Node<'d>> =
            self.root.get("tasks").into_iter().flat_map(|t| t.entries()).map(|e| e.value).collect();
        for node in std::iter::once(self.root).chain(nodes.iter().copied()) {
            contract(node, out);
            sandbox(node, out);
        }
        for node in nodes {
            let used = [
                "input",
                "output",
                "prompts",
                "response_format",
                "depends_on",
                "tools",
                "sandbox",
                "timeout",
                "behavioural_contract",
                "spec",
                "task",
                "multi_step",
                "steps",
            ];
            report_keys(node, &used, TASK_UNUSED, "a task", out);
            if let Some(history) = node.at(&["input", "properties"]).and_then(|p| p.entry("history")) {
                let message = "`history` is left out: what was said before is not told to the model";
                out.push(Diagnostic::info(codes::UNUSED_KEY, message, history.key.span()));
            }
            bounds(node.get("output"), 0, out);
        }
    }

    /// Reads the parameters of its model.
    fn model(self, out: &mut Vec<Diagnostic>) -> (ModelParams, Option<Span>) {
        let mut params = ModelParams::default();
        let intelligence = self.root.get("intelligence");
        let named = intelligence.and_then(|i| i.entry("model"));
        params.model = named.and_then(|e| e.value.text()).filter(|t| !t.trim().is_empty()).map(Name::from);
        for e in intelligence.and_then(|i| i.get("config")).into_iter().flat_map(|c| c.entries()) {
            if matches!(e.name(), "pricing" | "api_key_env" | "timeout") {
                let message = format!("`{}` is left out: {}", e.name(), why::RUNTIME);
                out.push(Diagnostic::info(codes::UNUSED_KEY, message, e.key.span()));
            } else {
                setting(&e, &mut params, out);
            }
        }
        params.temperature = params.temperature.or_else(|| "7/10".parse().ok());
        params.max_tokens = params.max_tokens.or(Some(1000));
        if let Some(engine) = intelligence.and_then(|i| i.get("engine")?.text()) {
            params.extra.push(("provider".into(), Data::str(engine)));
        }
        (params, named.map(|e| value_span(&e)))
    }
}

/// Reports what of a contract is not compiled.
fn contract(node: Node<'_>, out: &mut Vec<Diagnostic>) {
    let unused: &[emit::Unused] = &[
        ("version", why::SHOWN),
        ("description", why::SHOWN),
        ("role", why::SHOWN),
        ("compliance_tags", why::SHOWN),
        ("policy", why::NOT_YET),
        ("pii", why::NOT_YET),
        ("allowed_tools", "it is looked at after the run"),
        ("behavioural_flags", why::NOT_YET),
        ("behavioral_flags", why::NOT_YET),
        ("teardown_policy", why::NOT_YET),
        ("memory", why::NOT_YET),
        ("health", why::RUNTIME),
        ("escalation", why::NOT_YET),
        ("max_response_time_ms", why::RUNTIME),
        ("on_failure", why::NOT_YET),
    ];
    let Some(own) = node.get("behavioural_contract") else { return };
    report_keys(own, &["response_contract"], unused, "a behavioral contract", out);
    let Some(response) = own.get("response_contract") else { return };
    report_keys(response, &["output_format"], unused, "a response contract", out);
    if let Some(format) = response.get("output_format") {
        report_keys(format, &["required_fields"], unused, "an output format", out);
    }
}

/// Reports what of a sandbox is not compiled.
fn sandbox(node: Node<'_>, out: &mut Vec<Diagnostic>) {
    let Some(own) = node.get("sandbox") else { return };
    report_keys(own, &["tools"], &[("http", why::NOT_YET), ("file", why::NOT_YET)], "a sandbox", out);
}

/// Reports bounds of values, which are not checked.
fn bounds(schema: Option<Node<'_>>, depth: u32, out: &mut Vec<Diagnostic>) {
    const MAX_DEPTH: u32 = 16;
    let Some(schema) = schema.filter(|_| depth < MAX_DEPTH) else { return };
    for entry in schema.entries().filter(|e| BOUNDS.contains(&e.name())) {
        let message = format!("`{}` is left out: of an output the type is checked", entry.name());
        out.push(Diagnostic::info(codes::UNUSED_KEY, message, entry.key.span()));
    }
    bounds(schema.get("items"), depth + 1, out);
    for entry in schema.get("properties").into_iter().flat_map(|p| p.entries()) {
        bounds(Some(entry.value), depth + 1, out);
    }
}

/// Source of a value.
#[derive(Clone)]
enum Source {
    /// The unit's own input of this name; whether it may be missing.
    Input(Name, bool),
    /// A field of what a task gave.
    Output(Name, Name),
    /// The same, if it is there, or else what was known before.
    Perhaps(Name, Name, Option<Box<Source>>),
    Text(String),
    Other(Data),
    /// It cannot be decided.
    Unclear(String),
}

/// Values by name.
type Known = BTreeMap<String, Source>;

struct OaLowering<'k, 'o, 'd> {
    kit: &'k mut Kit<'o>,
    project: &'d Project,
    /// Tasks that were done and may have given anything.
    open: Vec<Name>,
}

/// Place of a task's definition: in this file, or in the file that it refers to.
enum Place<'d> {
    Here(Task<'d>),
    Nowhere(String),
}

impl<'d> OaLowering<'_, '_, 'd> {
    /// The task that carries a task out.
    fn place(&self, mut task: Task<'d>) -> Place<'d> {
        const MAX_LINKS: usize = 16;
        for _ in 0..MAX_LINKS {
            let Some(path) = task.node.get("spec").and_then(|s| s.text()) else { return Place::Here(task) };
            let path = path.trim();
            let name = task.node.get("task").and_then(|t| t.text()).unwrap_or(task.name);
            let remote = ["oa://", "http://", "https://"].iter().any(|s| path.starts_with(s));
            let found = (!remote).then(|| self.project.beside(task.spec.file, path)).flatten();
            let Some((file, root)) = found.and_then(|f| Some((f, f.documents.first()?.root()))) else {
                return Place::Nowhere(format!("the task `{}` of {}", clip(name), clip(path)));
            };
            match (Spec { file, root }).task(name) {
                Some(next) => task = next,
                None => {
                    return Place::Nowhere(format!(
                        "the task `{}`, which {} does not have",
                        clip(name),
                        clip(path)
                    ));
                }
            }
        }
        Place::Nowhere("a task of a file that leads back to itself".into())
    }

    /// A unit is a function, also of a task that takes nothing.
    fn whole(&mut self, task: Task<'d>) -> TermId {
        let term = self.unit(task);
        match self.kit.b.term(term) {
            Term::Unknown(_) => term,
            _ if self.kit.inputs().next().is_some() => term,
            _ => self.kit.b.abs("x", Some(Type::Str), term, task.at),
        }
    }

    fn unit(&mut self, task: Task<'d>) -> TermId {
        if let Some(at) = self.cycle(task) {
            let message = format!("`{}` depends on itself", clip(task.name));
            self.kit.out.push(
                Diagnostic::error(codes::TOO_MUCH, message, at).help("leave one of them out of `depends_on`"),
            );
            return self.kit.unknown("a task that depends on itself", task.at);
        }
        if task.node.get("multi_step").and_then(|m| m.as_bool()) == Some(true) {
            return self.steps(task);
        }
        let mut before = Vec::new();
        for item in task.node.get("depends_on").into_iter().flat_map(|d| d.items()) {
            let name = item.text().unwrap_or("");
            match task.spec.task(name) {
                Some(found) => before.push(found),
                None => {
                    let message = format!("unknown task `{}`", clip(name));
                    let known: Vec<&str> = task
                        .spec
                        .root
                        .get("tasks")
                        .into_iter()
                        .flat_map(|t| t.entries())
                        .filter_map(|e| e.key.text())
                        .collect();
                    let d = Diagnostic::error(codes::UNDEFINED, message, item.span());
                    self.kit.out.push(match emit::near(name, known, &*self.kit.out) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    });
                }
            }
        }
        let mut known = Known::new();
        let chain: Vec<Task<'d>> = before.iter().copied().chain([task]).collect();
        self.inputs(&chain, &mut known);
        let mut bindings = Vec::new();
        for (i, dep) in before.into_iter().enumerate() {
            let var = Name::from(format!("${}", slug(dep.name, i)));
            let value = self.run(dep, &mut known);
            bindings.push((var.clone(), value));
            self.gives(dep, &var, &mut known);
        }
        let last = self.run(task, &mut known);
        self.kit.b.let_in(bindings, last, task.at)
    }

    /// The place of the first dependency that leads back to the task.
    fn cycle(&self, task: Task<'d>) -> Option<Span> {
        let deps = |t: Task<'d>| t.node.get("depends_on").into_iter().flat_map(|d| d.items());
        let mut seen: Vec<&str> = Vec::new();
        let mut open: Vec<(Task<'d>, Span)> = Vec::new();
        let mut next = |t: Task<'d>, from: Option<Span>, open: &mut Vec<(Task<'d>, Span)>| {
            for item in deps(t) {
                let at = from.unwrap_or(item.span());
                let Some(dep) = item.text().and_then(|name| task.spec.task(name)) else { continue };
                if dep.name == task.name {
                    return Some(at);
                }
                if !seen.contains(&dep.name) {
                    seen.push(dep.name);
                    open.push((dep, at));
                }
            }
            None
        };
        if let Some(at) = next(task, None, &mut open) {
            return Some(at);
        }
        while let Some((dep, at)) = open.pop() {
            if let Some(at) = next(dep, Some(at), &mut open) {
                return Some(at);
            }
        }
        None
    }

    /// The inputs of tasks that run one after the other: what the one gives the next ones need not be given.
    fn inputs(&mut self, chain: &[Task<'d>], known: &mut Known) {
        let mut wanted: BTreeMap<String, (Type, bool)> = BTreeMap::new();
        let mut given: Vec<&str> = Vec::new();
        for task in chain {
            let Place::Here(task) = self.place(*task) else { continue };
            let schema = task.node.get("input");
            let required = required(schema);
            for p in schema.and_then(|s| s.get("properties")).into_iter().flat_map(|p| p.entries()) {
                if given.contains(&p.name()) || p.name() == "history" {
                    continue;
                }
                let optional = !required.contains(&p.name());
                let ty = of_schema(p.value, 0);
                let known = wanted.entry(p.name().to_string()).or_insert((ty, optional));
                known.1 &= optional;
            }
            if !is_text(task) {
                let of = task.node.get("output");
                let named = self::required(of);
                let sure = needed(task);
                given.extend(properties(of).filter(|p| named.contains(p) || sure.contains(p)));
            }
        }
        let Some(at) = chain.last().map(|t| t.at) else { return };
        for (name, (ty, optional)) in wanted {
            self.input(&name, if optional { Type::option(ty) } else { ty }, optional, known, at);
        }
    }

    /// An input of the unit: it is one whether a prompt holds it or not.
    fn input(&mut self, name: &str, ty: Type, optional: bool, known: &mut Known, at: Span) {
        self.kit.input(name, at);
        if ty != Type::Str {
            self.kit.typed_input(name, ty);
        }
        known.entry(name.to_string()).or_insert_with(|| Source::Input(name.into(), optional));
    }

    /// Records the output of a task under its name.
    fn gives(&mut self, task: Task<'d>, var: &Name, known: &mut Known) {
        let Place::Here(task) = self.place(task) else {
            self.open.push(var.clone());
            return;
        };
        if is_text(task) {
            return;
        }
        let of = task.node.get("output");
        let mut sure = required(of);
        sure.extend(needed(task));
        if properties(of).next().is_none() {
            self.open.push(var.clone());
        }
        for name in properties(of) {
            let field = Name::from(name);
            let source = match sure.contains(&name) {
                true => Source::Output(var.clone(), field),
                false => Source::Perhaps(var.clone(), field, known.get(name).cloned().map(Box::new)),
            };
            known.insert(name.to_string(), source);
        }
    }

    /// A task by itself: what it depends on was done before.
    fn run(&mut self, task: Task<'d>, known: &mut Known) -> TermId {
        let at = task.at;
        let task = match self.place(task) {
            Place::Here(task) => task,
            Place::Nowhere(why) => {
                return self.kit.undecided(codes::NOT_COMPILED, format!("{why} is not known"), at);
            }
        };
        if let Err(term) = self.kit.open(task.name, task.node.span(), at, size(task.node.span())) {
            return term;
        }
        let term = self.asked(task, known);
        self.kit.close();
        match task.node.get("timeout").and_then(|t| t.as_u64()).filter(|n| *n > 0) {
            Some(n) => {
                self.kit.b.add(Term::Within(Num::from(i64::try_from(n).unwrap_or(i64::MAX)), term), at)
            }
            None => term,
        }
    }

    fn asked(&mut self, task: Task<'d>, known: &mut Known) -> TermId {
        let at = task.at;
        let intelligence = task.spec.root.get("intelligence");
        let engine = intelligence.and_then(|i| i.get("engine")?.text()).unwrap_or("");
        if engine == "codex" {
            return self.kit.undecided(codes::NOT_COMPILED, "Codex does the task by itself".into(), at);
        }
        if engine == "custom" && intelligence.is_some_and(|i| mark::has(i, "module")) {
            return self.kit.undecided(codes::NOT_COMPILED, "Python code calls the model".into(), at);
        }
        let system = prompt::find(task, "system");
        let system = match system {
            Some((text, place)) => self.kit.text(text, place),
            None => self.kit.text("", at),
        };
        let user = self.user(task, known);
        let (mut params, model_at) = task.spec.model(self.kit.out);
        let model_at = model_at.unwrap_or(at);
        params.purpose = Some(task.name.into());
        params.result = Some(if is_text(task) { Type::Str } else { output(task) });
        let choices = tools::choices(self.kit, task);
        if choices.is_empty() {
            return ask(self.kit, vec![(Role::System, system, at), (Role::User, user, at)], params, model_at);
        }
        let choices_at = task.node.entry("tools").map(|e| e.key.span());
        let bound = defaults::bound(&defaults::OA_ROUNDS, self.kit.versions);
        let over = format!("the task `{}` called tools ten times without an answer", clip(task.name));
        let speaker = Speaker {
            name: task.name.to_string(),
            head: at,
            prompts: vec![system],
            params,
            model_at,
            choices,
            choices_at,
        };
        let function = conversation(self.kit, vec![speaker], bound, &over, at);
        self.kit.b.app(function, user, at)
    }

    /// Tasks that are done one after the other; each is given what its `input_map` says.
    fn steps(&mut self, task: Task<'d>) -> TermId {
        let mut own = Known::new();
        self.inputs(&[task], &mut own);
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut done: Vec<(Task<'d>, Name)> = Vec::new();
        for (i, step) in task.node.get("steps").into_iter().flat_map(|s| s.items()).enumerate() {
            let name = step.get("task").and_then(|t| t.text()).unwrap_or("");
            let Some(found) = task.spec.task(name).filter(|t| t.name != task.name) else {
                let message = format!("unknown task `{}` in a step", clip(name));
                self.kit.out.push(
                    Diagnostic::error(codes::UNDEFINED, message, step.head()).help("name one of `tasks`"),
                );
                continue;
            };
            let mut known = Known::new();
            for e in step.get("input_map").into_iter().flat_map(|m| m.entries()) {
                let source = self.mapped(&e, &own, &done);
                known.insert(e.name().to_string(), source);
            }
            let var = Name::from(format!("${}", slug(name, i)));
            let value = self.run(found, &mut known);
            bindings.push((var.clone(), value));
            done.push((found, var));
        }
        let at = task.at;
        let mut fields = Vec::new();
        for name in properties(task.node.get("output")) {
            let mut known = Known::new();
            for (step, var) in done.iter().rev() {
                self.gives(*step, var, &mut known);
            }
            let value = match known.get(name).cloned() {
                Some(source) => self.value(&source, None, at),
                None => self.kit.unknown(&format!("`{}`, which no step outputs", clip(name)), at),
            };
            fields.push((Name::from(name), value));
        }
        let all = self.kit.b.add(Term::Record(fields), at);
        self.kit.b.let_in(bindings, all, at)
    }

    /// Resolves an entry of an `input_map`.
    fn mapped(&mut self, entry: &Entry<'d>, own: &Known, done: &[(Task<'d>, Name)]) -> Source {
        const MAX_DATA_PARTS: usize = 1_000;
        let Some(text) = entry.value.as_str() else {
            return Source::Other(emit::data(entry.value, &mut MAX_DATA_PARTS.clone()).unwrap_or(Data::Null));
        };
        let inner = text.trim().strip_prefix("{{").and_then(|t| t.strip_suffix("}}")).map(str::trim);
        let name = inner.unwrap_or(text);
        if let Some(source) = own.get(name.strip_prefix("input.").unwrap_or(name)) {
            return source.clone();
        }
        let Some(inner) = inner else { return Source::Text(text.to_string()) };
        let mut parts = inner.split('.');
        if let (Some("steps"), Some(n), Some(field)) = (parts.next(), parts.next(), parts.next())
            && let Some((_, var)) = n.parse().ok().and_then(|n: usize| done.get(n))
        {
            return Source::Output(var.clone(), field.into());
        }
        let message = format!("unknown variable `{}`; it is replaced by an empty text", clip(inner));
        self.kit.out.push(Diagnostic::warn(codes::UNDEFINED, message, value_span(entry)));
        Source::Text(String::new())
    }

    /// A value that is known; `missing` represents one that is not there.
    fn value(&mut self, source: &Source, missing: Option<&str>, at: Span) -> TermId {
        let b = &mut self.kit.b;
        match source {
            Source::Text(text) => self.kit.text(text, at),
            Source::Unclear(why) => self.kit.unknown(why, at),
            Source::Other(data) => b.lit(data.clone(), at),
            Source::Input(name, optional) => {
                let value = self.kit.input(name, at);
                match missing.filter(|_| *optional) {
                    Some(text) => {
                        let otherwise = self.kit.text(text, at);
                        let again = self.kit.input(name, at);
                        self.unless_null(value, again, otherwise, at)
                    }
                    None => value,
                }
            }
            Source::Output(of, field) => {
                let of = b.var(of.clone(), at);
                b.add(Term::Field(of, field.clone()), at)
            }
            Source::Perhaps(of, field, before) => {
                let mut field = || {
                    let of = self.kit.b.var(of.clone(), at);
                    self.kit.b.add(Term::Field(of, field.clone()), at)
                };
                let (test, value) = (field(), field());
                let otherwise = match (before, missing) {
                    (Some(before), _) => self.value(before, missing, at),
                    (None, Some(text)) => self.kit.text(text, at),
                    (None, None) => return value,
                };
                self.unless_null(test, value, otherwise, at)
            }
        }
    }

    fn unless_null(&mut self, test: TermId, value: TermId, otherwise: TermId, at: Span) -> TermId {
        let absent = self.kit.b.add(Term::Prim(Prim::IsNull, vec![test]), at);
        self.kit.b.add(Term::If(absent, otherwise, value, IfSugar::Plain), at)
    }
}

/// A name of a variable.
fn slug(name: &str, index: usize) -> String {
    let plain: String = name
        .chars()
        .take(32)
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    format!("{plain}_{}", index + 1)
}

fn is_text(task: Task<'_>) -> bool {
    task.node.get("response_format").and_then(|f| f.text()) == Some("text")
}

fn properties<'d>(schema: Option<Node<'d>>) -> impl Iterator<Item = &'d str> {
    schema
        .and_then(|s| s.get("properties"))
        .into_iter()
        .flat_map(|p| p.entries())
        .filter_map(|e| e.key.text())
}

fn required<'d>(schema: Option<Node<'d>>) -> Vec<&'d str> {
    schema
        .and_then(|s| s.get("required"))
        .into_iter()
        .flat_map(|r| r.items())
        .filter_map(|r| r.text())
        .collect()
}

/// The fields that contracts ask for, of the file and of the task.
fn needed<'d>(task: Task<'d>) -> Vec<&'d str> {
    const PATH: &[&str] = &["behavioural_contract", "response_contract", "output_format", "required_fields"];
    let lists = [task.spec.root, task.node].into_iter().filter_map(|node| node.at(PATH));
    lists.flat_map(|list| list.items()).filter_map(|f| f.text()).collect()
}

/// The type of what a task gives.
fn output(task: Task<'_>) -> Type {
    let ty = task.node.get("output").map_or(Type::Dyn, |o| of_schema(o, 0));
    let Type::Record(fields) = &ty else { return ty };
    let mut fields = fields.to_vec();
    for name in needed(task) {
        match fields.iter_mut().find(|(n, _)| **n == *name) {
            Some((_, ty)) => {
                if let Type::Option(inner) = ty {
                    *ty = Type::clone(inner);
                }
            }
            None => fields.push((name.into(), Type::Dyn)),
        }
    }
    Type::record(fields)
}
