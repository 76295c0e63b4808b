//! PraisonAI's YAML: `roles` with their tasks, and workflows of `agents` and `steps`.
//!
//! | source | term |
//! |---|---|
//! | `roles.*.tasks` | the tasks one after the other, each its role's agent on its description |
//! | `steps` with `agent` and `action` | one after the other |
//! | `parallel` | at the same time, answers one below the other |
//! | `route` | the branch that the state names |
//! | `repeat` | `fix[max_iterations]`, 5 where it is missing, ended when a reply holds the text of `until` |
//! | `loop` | unknown: over which values is decided when it runs |
//!
//! Source: MervinPraison/PraisonAI, `praisonai/agents_generator.py`,
//! `praisonaiagents/workflows/yaml_parser.py`; `max_iter` 20.

use crate::defaults;
use core_ir::{Branch, Prim, Term, TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{
    LoopBound, Template, Unused, clip, codes, near, report_keys, undecided, value_span,
};
use frontend_kit::kit::{Kit, Units, first, first_text, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};
use std::collections::HashMap;

/// The front end.
pub struct PraisonAi;

const SHAPE: Shape = Shape {
    what: "a PraisonAI agent",
    name: &["name", "role"],
    prompt: &["instructions"],
    model: &["llm", "model"],
    tools: &["tools", "toolsets"],
    end: None,
    bound: &["max_iter"],
    also: &["role", "goal", "backstory", "tasks", "instructions"],
    unused: &[
        ("verbose", why::RUNTIME),
        ("cache", why::RUNTIME),
        ("memory", why::NOT_YET),
        ("knowledge", why::NOT_YET),
        ("allow_delegation", why::NOT_YET),
        ("function_calling_llm", why::NOT_YET),
        ("max_rpm", why::RUNTIME),
        ("max_execution_time", why::RUNTIME),
        ("system_template", why::NOT_YET),
        ("prompt_template", why::NOT_YET),
        ("response_template", why::NOT_YET),
        ("step_callback", why::CODE),
        ("min_reflect", why::NOT_YET),
        ("max_reflect", why::NOT_YET),
        ("self_reflect", why::NOT_YET),
        ("planning", why::NOT_YET),
        ("reasoning", why::NOT_YET),
        ("context", why::NOT_YET),
        ("output_file", why::RUNTIME),
        ("tool_search", why::NOT_YET),
        ("message_steering", why::RUNTIME),
        ("cli_backend", why::RUNTIME),
        ("streaming", why::RUNTIME),
    ],
    split: frontend_kit::emit::parts,
    default: |v| defaults::bound(&defaults::PRAISON_ITER, v),
};

const TOP: &[&str] = &[
    "framework",
    "topic",
    "roles",
    "agents",
    "steps",
    "workflow",
    "variables",
    "process",
    "input",
    "llm",
    "config",
];
const TOP_UNUSED: &[Unused] = &[
    ("name", why::SHOWN),
    ("description", why::SHOWN),
    ("dependencies", "tasks are compiled in their order"),
    ("deploy", why::RUNTIME),
    ("verbose", why::RUNTIME),
    ("memory", why::NOT_YET),
    ("planning", why::NOT_YET),
    ("models", why::RUNTIME),
    ("custom_models", why::RUNTIME),
    ("context", why::NOT_YET),
    ("callbacks", why::CODE),
    ("hooks", why::CODE),
];

impl Frontend for PraisonAi {
    fn name(&self) -> &'static str {
        "praisonai"
    }

    fn detect(&self, file: &File) -> u8 {
        let worded = |n: Node<'_>| {
            let agent =
                |a: Node<'_>| mark::has(a, "role") && (mark::has(a, "goal") || mark::has(a, "instructions"));
            n.entries().take(20).any(|e| agent(e.value)) || n.items().take(20).any(agent)
        };
        let sure = |r: Node<'_>| {
            r.get("roles").is_some_and(worded)
                || r.get("agents").is_some_and(worded)
                    && (mark::has(r, "topic")
                        || mark::has(r, "framework")
                        || mark::has(r, "steps")
                        || r.at(&["workflow", "steps"]).is_some()
                        || r.get("agents")
                            .is_some_and(|a| a.entries().take(20).any(|e| e.value.get("tasks").is_some())))
                || mark::is(r, "framework", "praisonai")
        };
        // Without a mark of the file, an agent that has both CrewAI's words and instructions.
        let both = |r: Node<'_>| {
            let agent = |a: Node<'_>| mark::has(a, "role") && mark::has(a, "instructions");
            r.get("agents").is_some_and(|a| a.entries().take(20).any(|e| agent(e.value)))
        };
        match () {
            () if mark::any(file, sure) => 91,
            () if mark::any(file, both) => 81,
            () => 0,
        }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        // Which of the frameworks runs the agents decides what reads the keys.
        let main_file = project.files.get(main);
        let roots = main_file.into_iter().flat_map(|f| f.documents.iter()).map(|d| d.root());
        let by_crew = roots.filter_map(|r| r.get("framework")?.text()).any(|f| f == "crewai");
        let facts = Facts {
            default_model: Some("PraisonAI asks the model that the environment names, or its own default"),
            ends_loops: Some("PraisonAI ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say who the agent is: `role`, `goal` and `backstory`, or `instructions`",
                model: "name one: `llm`",
                bound: if by_crew {
                    "state it: `max_iter`"
                } else {
                    "the newest versions read no `max_iter` from YAML: make the agent in Python, with `execution={\"max_iter\": n}`"
                },
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            report_keys(root, TOP, TOP_UNUSED, "a PraisonAI file", &mut units.compiled.diagnostics);
            let default = root.at(&["config", "llm"]).or_else(|| root.get("llm"));
            let Some(list) = root.get("roles").or_else(|| root.get("agents")) else { continue };
            let items = list.items().map(|n| (SHAPE.name_of(n).unwrap_or(""), n));
            let all: Vec<(&str, Node<'_>)> =
                list.entries().map(|e| (e.key.text().unwrap_or(""), e.value)).chain(items).collect();
            let known: HashMap<&str, Node<'_>> = all.iter().copied().collect();
            let steps = root.get("steps").or_else(|| root.at(&["workflow", "steps"]));
            let tasks = all.iter().any(|(_, n)| n.get("tasks").is_some());
            let mut reached: Vec<bool> = all.iter().map(|_| false).collect();
            let name = root.get("name").and_then(|n| n.text()).unwrap_or("crew");
            if steps.is_some() || tasks {
                units.add(name, UnitKind::Crew, root.head(), |kit| {
                    let mut lower = PraisonLowering { kit, known: &known, root, default };
                    let term = match steps {
                        Some(steps) => lower.steps(steps),
                        None => lower.tasks(&all),
                    };
                    reached = all.iter().map(|(_, n)| lower.kit.seen(n.span())).collect();
                    term
                });
            }
            for ((name, node), _) in all.iter().zip(reached).filter(|(_, r)| !r) {
                units.add(name, UnitKind::Agent, node.head(), |kit| {
                    PraisonLowering { kit, known: &known, root, default }.agent(name, *node)
                });
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

struct PraisonLowering<'k, 'o, 'd> {
    kit: &'k mut Kit<'o>,
    known: &'k HashMap<&'d str, Node<'d>>,
    root: Node<'d>,
    /// The model of agents that name none.
    default: Option<Node<'d>>,
}

impl<'d> PraisonLowering<'_, '_, 'd> {
    fn agent(&mut self, name: &str, node: Node<'d>) -> TermId {
        let head = node.head();
        if let Err(term) = self.kit.open(name, node.span(), head, size(node.span())) {
            return term;
        }
        let prompt;
        if let Some((text, entry)) = first_text(node, &["instructions"]) {
            prompt = Some(self.filled(text, value_span(&entry)));
        } else {
            let at = node.entry("role").map_or(head, |e| value_span(&e));
            let word = |key: &str| node.get(key).and_then(|t| t.text()).unwrap_or("");
            let (role, goal, story) = (word("role"), word("goal"), word("backstory"));
            let text = if [role, goal, story].iter().all(|t| t.trim().is_empty()) {
                String::new()
            } else {
                format!("{story}\nYour Role: {role}\nYour Goal: {goal}")
            };
            prompt = Some(self.filled(&text, at));
        }
        let mut given = Given { called: Some(name), prompt, ..Given::default() };
        given.params.model = self.default.and_then(|m| m.text()).map(core_ir::Name::from);
        let unwritten = match self.root.get("framework").and_then(|f| f.text()) {
            // The framework that runs the agents is another one.
            Some("crewai") => defaults::bound(&defaults::PRAISON_CREW_ITER, self.kit.versions),
            Some(other) if other != "praisonai" => LoopBound::unknown(&format!(
                "`{}` runs the agents, with its own limits",
                diagnostics::clip(other)
            )),
            _ => (SHAPE.default)(self.kit.versions),
        };
        let bound = unwritten.or_written(first(node, SHAPE.bound), self.kit.out);
        let term = shape::agent_bounded(self.kit, node, &SHAPE, given, Vec::new(), &by_name, bound);
        self.kit.close();
        term
    }

    /// A text with `{topic}` and the file's own variables in it.
    fn filled(&mut self, text: &str, at: diagnostics::Span) -> TermId {
        let mut template = Template::new(at);
        for part in frontend_kit::kit::double(text).into_iter().flat_map(|p| match p {
            frontend_kit::emit::Part::Text(t) => frontend_kit::emit::parts(t),
            hole => vec![hole],
        }) {
            match part {
                frontend_kit::emit::Part::Text(t) => {
                    template.text(t);
                }
                frontend_kit::emit::Part::Hole(name) => {
                    let variable = self.root.at(&["variables", name]).or_else(|| self.root.get(name));
                    match variable.and_then(|v| v.text()) {
                        Some(value) => {
                            template.text(value);
                        }
                        None if matches!(name, "previous_output" | "input") => {
                            let x = self.kit.b.var("x", at);
                            template.term(x);
                        }
                        None => {
                            let value = self.kit.input(name, at);
                            template.term(value);
                        }
                    }
                }
            }
        }
        template.build(&mut self.kit.b)
    }

    /// The agent of a name; unknown, with a word about it, if there is none.
    fn named(&mut self, name: &str, at: diagnostics::Span) -> TermId {
        if let Some(node) = self.known.get(name) {
            return self.agent(name, *node);
        }
        let d = undecided(codes::UNDEFINED, format!("no agent is called `{}` here", clip(name)), at);
        let d = match near(name, self.known.keys().copied(), self.kit.out) {
            Some(near) => d.help(format!("did you mean `{near}`?")),
            None => d,
        };
        self.kit.out.push(d);
        self.kit.unknown(&format!("the agent {name}"), at)
    }

    /// `λx. agent "description … x"`.
    fn stage(&mut self, agent: TermId, asked: TermId, told: bool, at: diagnostics::Span) -> TermId {
        let mut text = Template::new(at);
        text.term(asked);
        if told {
            let x = self.kit.b.var("x", at);
            text.text("\n\nContext:\n").term(x);
        }
        let text = text.build(&mut self.kit.b);
        let run = self.kit.b.app(agent, text, at);
        self.kit.b.abs("x", Some(Type::Str), run, at)
    }

    fn tasks(&mut self, all: &[(&str, Node<'d>)]) -> TermId {
        let mut stages = Vec::new();
        for (name, node) in all {
            for task in node.get("tasks").into_iter().flat_map(|t| t.entries()) {
                let at = task.key.span();
                report_keys(
                    task.value,
                    &["description", "expected_output"],
                    &[
                        ("context", "a task gets the results of all earlier tasks"),
                        ("output_file", why::RUNTIME),
                        ("async_execution", "tasks are compiled in their order"),
                        ("config", why::NOT_YET),
                        ("create_directory", why::RUNTIME),
                        ("callback", why::CODE),
                        ("human_input", why::NOT_YET),
                        ("output_json", why::CODE),
                        ("output_pydantic", why::CODE),
                        ("tools", why::NOT_YET),
                    ],
                    "a PraisonAI task",
                    self.kit.out,
                );
                let agent = self.agent(name, *node);
                let word = |key: &str| task.value.get(key).and_then(|t| t.text()).unwrap_or("");
                let text = format!("{}\nExpected Output: {}", word("description"), word("expected_output"));
                let asked = self.filled(&text, at);
                let told = !stages.is_empty();
                let stage = self.stage(agent, asked, told, at);
                stages.push(stage);
            }
        }
        let head = self.root.head();
        self.kit.sequence(stages, head)
    }

    fn steps(&mut self, steps: Node<'d>) -> TermId {
        let parts: Vec<TermId> = steps.items().map(|s| self.step(s)).collect();
        let at = steps.head();
        self.kit.sequence(parts, at)
    }

    fn step(&mut self, step: Node<'d>) -> TermId {
        let at = step.head();
        if let Some(name) = step.text() {
            return self.named(name, at);
        }
        if let Some(sides) = step.get("parallel") {
            let sides = sides.items().map(|s| self.step(s)).collect();
            return self.kit.together(sides, None, at);
        }
        if let Some(route) = step.entry("route") {
            return self.route(route.value, route.key.span());
        }
        report_keys(
            step,
            &["name", "agent", "action", "repeat", "loop", "expected_output", "description"],
            &[
                ("output_file", why::RUNTIME),
                ("dependencies", "steps are compiled in their order"),
                ("tools", why::NOT_YET),
            ],
            "a step",
            self.kit.out,
        );
        let agent = match step.entry("agent").and_then(|e| Some((e.value.text()?, e.value.span()))) {
            Some((name, span)) => self.named(name, span),
            None => self.kit.unknown("the agent of this step", at),
        };
        let entry = step.entry("action").or_else(|| step.entry("description"));
        let action = match entry.and_then(|e| Some((e.value.text()?, value_span(&e)))) {
            Some((text, place)) => {
                let told = !text.contains("previous_output") && !text.contains("{{input}}");
                let asked = self.filled(text, place);
                self.stage(agent, asked, told, at)
            }
            None => agent,
        };
        if let Some(repeat) = step.entry("repeat") {
            return self.repeat(repeat.value, action, repeat.key.span());
        }
        if let Some(over) = step.entry("loop") {
            let why = "over which values this step loops is decided when it runs";
            return self.kit.undecided(codes::NOT_COMPILED, why.into(), over.key.span());
        }
        action
    }

    /// `λx. case x of {…}`: the branch whose name the state holds.
    fn route(&mut self, node: Node<'d>, at: diagnostics::Span) -> TermId {
        let mut branches = Vec::new();
        let mut default = None;
        for e in node.entries() {
            let parts: Vec<TermId> = match e.value.is_sequence() {
                true => e.value.items().map(|s| self.step(s)).collect(),
                false => vec![self.step(e.value)],
            };
            let place = e.key.span();
            let body = self.kit.sequence(parts, place);
            let body = self.kit.on_x(body, place);
            match e.name() {
                "default" => default = Some(body),
                name => branches.push(Branch { tag: name.into(), binder: None, body }),
            }
        }
        let x = self.kit.b.var("x", at);
        let x = self.kit.b.add(Term::Prim(Prim::Lower, vec![x]), at);
        let scrutinee = self.kit.b.add(Term::Prim(Prim::Trim, vec![x]), at);
        let case = self.kit.b.add(Term::Case { scrutinee, branches, default }, at);
        self.kit.b.abs("x", Some(Type::Str), case, at)
    }

    fn repeat(&mut self, node: Node<'d>, body: TermId, at: diagnostics::Span) -> TermId {
        let entry = node.entry("max_iterations");
        let bound =
            defaults::bound(&defaults::PRAISON_REPEAT, self.kit.versions).or_written(entry, self.kit.out);
        let fix_at = bound.span.unwrap_or(at);
        let y = self.kit.on_x(body, at);
        let next = self.kit.b.var("y", at);
        let this = self.kit.b.var("self", at);
        let again = self.kit.b.app(this, next, at);
        let until = node.entry("until").and_then(|e| Some((e.value.text()?, value_span(&e))));
        let tail = match until {
            Some((text, place)) => {
                let (y, answer) = (self.kit.b.var("y", place), self.kit.b.var("y", place));
                let y = self.kit.b.add(Term::Prim(Prim::Lower, vec![y]), place);
                let needle = self.kit.text(&text.to_lowercase(), place);
                let test = self.kit.b.add(Term::Prim(Prim::Contains, vec![y, needle]), place);
                self.kit.b.add(Term::If(test, answer, again, core_ir::IfSugar::Plain), place)
            }
            None => again,
        };
        let body = self.kit.b.let_in(vec![("y".into(), y)], tail, at);
        self.kit.fixpoint(body, bound, at, fix_at)
    }
}
