//! Maestro: agents and workflows in YAML, `apiVersion: maestro/…`.
//!
//! | source | term |
//! |---|---|
//! | `kind: Agent` | a loop around a model, by `framework`; a tool or an unknown where it asks no model |
//! | `kind: Workflow` | a graph of its `steps`; each takes the text of the step that ran before it |
//! | `from` | the texts of the steps named, in place of that text |
//! | `condition` | a decision by its expressions |
//! | `parallel`, `loop` | `par` of the agents; `fix[∞]` up to `until` |
//! | `exception` | `try`, whose handler asks the agent |
//!
//! Source: AI4quantum/maestro 0.8, `src/maestro/workflow.py`, `step.py`, `agents/`.

use crate::defaults;
use core_ir::{Catches, Data, IfSugar, ModelParams, Num, Prim, Term, TermId, Type};
use diagnostics::{Diagnostic, Span, clip};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Template, codes, near, report_keys, value_span};
use frontend_kit::flow::by_tool;
use frontend_kit::graph::{Edge, Env, Graph, GraphNode, Steps, lower};
use frontend_kit::kit::{Kit, Units, mark, plain, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

/// The front end.
pub struct Maestro;

const SHAPE: Shape = Shape {
    what: "a Maestro agent",
    name: &[],
    prompt: &["instructions"],
    model: &["model"],
    tools: &["tools"],
    end: None,
    bound: &[],
    also: &["framework", "mode", "input", "output", "model_parameters", "code"],
    unused: &[
        ("description", why::SHOWN),
        ("url", why::RUNTIME),
        ("request_template", why::RUNTIME),
        ("response_template", why::RUNTIME),
    ],
    split: plain,
    default: |_| LoopBound::unknown("the library of the agent"),
};

impl Frontend for Maestro {
    fn name(&self) -> &'static str {
        "maestro"
    }

    fn detect(&self, file: &File) -> u8 {
        let kind = |r: Node<'_>| mark::is(r, "kind", "Agent") || mark::is(r, "kind", "Workflow");
        if mark::any(file, |r| mark::starts(r, "apiVersion", "maestro/") && kind(r)) { 97 } else { 0 }
    }

    fn names_files(&self) -> bool {
        true
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Maestro asks the model that the settings of the agent's framework name"),
            ends_loops: Some("the agent's framework ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `spec.instructions`",
                model: "name one: `spec.model`",
                exit: "write an `until` that the text of the agent can meet, or lead a `do` out of the cycle",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let name = name_of(root);
            match kind_of(root) {
                "Agent" => units.add(name, UnitKind::Agent, root.head(), |kit| agent(kit, root)),
                "Workflow" => {
                    units.add(name, UnitKind::Crew, root.head(), |kit| workflow(kit, project, root));
                }
                _ => {}
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no document is an agent or a workflow")
    }
}

fn name_of(root: Node<'_>) -> &str {
    root.at(&["metadata", "name"]).and_then(|n| n.text()).unwrap_or("")
}

fn kind_of(root: Node<'_>) -> &str {
    root.get("kind").and_then(|k| k.text()).unwrap_or("")
}

/// The agent of a name, wherever in the project it is defined.
fn named(kit: &mut Kit<'_>, project: &Project, name: &str, at: Span) -> TermId {
    let roots = project.files.iter().flat_map(|f| f.documents.iter().map(|d| d.root()));
    match roots.into_iter().find(|r| kind_of(*r) == "Agent" && name_of(*r) == name) {
        Some(root) => agent(kit, root),
        None => kit.unknown(&format!("the agent {}, which another file defines", clip(name)), at),
    }
}

// ----- agents -----

fn agent(kit: &mut Kit<'_>, root: Node<'_>) -> TermId {
    let (name, head) = (name_of(root), root.head());
    if let Err(term) = kit.open(name, root.span(), head, size(root.span())) {
        return term;
    }
    let spec = root.get("spec").unwrap_or(root);
    let term = agent_of(kit, root, spec, name);
    kit.close();
    term
}

fn agent_of(kit: &mut Kit<'_>, root: Node<'_>, spec: Node<'_>, name: &str) -> TermId {
    let head = root.head();
    let entry = spec.entry("framework");
    let at = entry.map_or(head, |e| value_span(&e));
    let framework = entry.and_then(|e| e.value.text()).unwrap_or("beeai");
    let bound = match framework {
        "beeai" => LoopBound::by_default(20, "the limit that Maestro sets for BeeAI, 20 iterations"),
        "openai" => defaults::bound(&defaults::OPENAI_AGENTS_TURNS, kit.versions),
        "dspy" => LoopBound::unknown("the limit of DSPy's ReAct, which depends on its version"),
        "remote" => return on_text(kit, at, |kit, x| by_tool(kit, name, x, at)),
        "custom" => return custom(kit, root, spec, name, at),
        "code" => return kit.undecided(codes::NOT_COMPILED, "an agent that is Python code".into(), at),
        "crewai" => {
            return kit.undecided(codes::NOT_COMPILED, "a crew, which is a class of Python".into(), at);
        }
        "mock" => return on_text(kit, at, |kit, _| kit.unknown("the answer of a mock agent", at)),
        other => {
            let known = ["beeai", "openai", "dspy", "crewai", "remote", "custom", "code", "mock"];
            let message = format!("unknown framework `{}` of Maestro", clip(other));
            let mut d = Diagnostic::error(codes::UNKNOWN_TYPE, message, at);
            if let Some(near) = near(other, known, kit.out) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            kit.out.push(d);
            return kit.unknown("an agent of an unknown framework", at);
        }
    };
    let prompt = instructions(kit, spec, head);
    let mut params = ModelParams::default();
    for e in spec.get("model_parameters").into_iter().flat_map(|p| p.entries()) {
        setting(&e, &mut params, kit.out);
    }
    let given = Given { called: Some(name), prompt: Some(prompt), params, model_at: None };
    shape::agent_bounded(kit, spec, &SHAPE, given, Vec::new(), &by_name, bound)
}

/// The instructions with the formats of input and output after them.
fn instructions(kit: &mut Kit<'_>, spec: Node<'_>, head: Span) -> TermId {
    let Some(entry) = spec.entry("instructions").filter(|e| !e.value.is_null()) else {
        return kit.text("", head);
    };
    let at = value_span(&entry);
    let Some(text) = entry.value.text() else {
        return kit.unknown("instructions that are no text", at);
    };
    if text.starts_with("http://") || text.starts_with("https://") {
        return kit.unknown("the instructions at an address", at);
    }
    let mut all = text.to_string();
    for (key, before) in
        [("input", " Input is expected in format: "), ("output", " Output must be in format: ")]
    {
        if let Some(format) = spec.get(key).and_then(|f| f.text()) {
            all = format!("{all}{before}{format}");
        }
    }
    kit.text(&all, at)
}

/// Agents that come with Maestro and run code of its own.
fn custom(kit: &mut Kit<'_>, root: Node<'_>, spec: Node<'_>, name: &str, at: Span) -> TermId {
    match root.at(&["metadata", "labels", "custom_agent"]).and_then(|c| c.text()) {
        Some("prompt_agent") => {
            let text = instructions(kit, spec, at);
            on_text(kit, at, |_, _| text)
        }
        Some("slack_agent" | "query_agent") => on_text(kit, at, |kit, x| by_tool(kit, name, x, at)),
        other => {
            let why = format!("the custom agent `{}`", clip(other.unwrap_or("")));
            kit.undecided(codes::NOT_COMPILED, why, at)
        }
    }
}

/// `λx. …`
fn on_text(kit: &mut Kit<'_>, at: Span, body: impl FnOnce(&mut Kit<'_>, TermId) -> TermId) -> TermId {
    let x = kit.b.var("x", at);
    let body = body(kit, x);
    kit.b.abs("x", Some(Type::Str), body, at)
}

// ----- workflows -----

fn workflow(kit: &mut Kit<'_>, project: &Project, root: Node<'_>) -> TermId {
    let (name, head) = (name_of(root), root.head());
    if let Err(term) = kit.open(name, root.span(), head, size(root.span())) {
        return term;
    }
    let Some(template) = root.at(&["spec", "template"]) else {
        kit.close();
        return kit.unknown("a workflow without `spec.template`", head);
    };
    let used = ["metadata", "agents", "prompt", "steps", "exception", "workflows", "event"];
    let unused = [("start", "Maestro begins with the first step")];
    report_keys(template, &used, &unused, "the template of a Maestro workflow", kit.out);
    let mut term = graph(kit, project, template, head);
    if let Some(event) = template.entry("event") {
        let at = event.key.span();
        let why = "an `event` runs an agent or steps again at the times of `cron`";
        kit.out.push(Diagnostic::info(codes::NOT_COMPILED, format!("{why}, which is not compiled"), at));
        term = kit.uncounted(term, why, at);
    }
    if let Some(handler) = template.get("exception").and_then(|e| e.entry("agent")) {
        term = guarded(kit, project, term, handler.value, value_span(&handler));
    }
    term = prompted(kit, term, template);
    kit.close();
    term
}

/// The prompt of the workflow is the input where none is given.
fn prompted(kit: &mut Kit<'_>, term: TermId, template: Node<'_>) -> TermId {
    let Some(entry) = template.entry("prompt") else { return term };
    let at = value_span(&entry);
    let Some(text) = entry.value.text().filter(|t| !t.is_empty()) else { return term };
    on_text(kit, at, |kit, x| {
        let (nothing, prompt, given) = (kit.text("", at), kit.text(text, at), kit.b.var("x", at));
        let is_empty = kit.b.add(Term::Prim(Prim::Eq, vec![x, nothing]), at);
        let input = kit.b.add(Term::If(is_empty, prompt, given, IfSugar::Plain), at);
        kit.b.app(term, input, at)
    })
}

/// `try`: the agent of `exception` is asked with the error, and the run has no result.
fn guarded(kit: &mut Kit<'_>, project: &Project, term: TermId, agent: Node<'_>, at: Span) -> TermId {
    let handler = named(kit, project, agent.text().unwrap_or(""), at);
    on_text(kit, at, |kit, x| {
        let body = kit.b.app(term, x, at);
        let (error, nothing) = (kit.b.var("m", at), kit.text("", at));
        let asked = kit.b.app(handler, error, at);
        let handler = kit.b.let_in(vec![("_".into(), asked)], nothing, at);
        let label = kit.b.lit(Data::list(["U", "S"].map(Data::str).to_vec()), at);
        kit.b.add(Term::Try { label, body, catches: Catches::All, name: "m".into(), handler }, at)
    })
}

/// A step and where its condition leads.
struct Step<'d> {
    node: Node<'d>,
    name: &'d str,
    /// Expression, label and place of each case; the last one is taken if none holds.
    cases: Vec<Case<'d>>,
}

/// One way on from a step.
struct Case<'d> {
    test: Option<&'d str>,
    to: &'d str,
    label: String,
    at: Span,
}

struct Lower<'p, 'd> {
    project: &'p Project,
    steps: &'d [Step<'d>],
    /// The steps that may run right before each.
    before: Vec<Vec<usize>>,
    cyclic: bool,
    at: Span,
}

fn graph(kit: &mut Kit<'_>, project: &Project, template: Node<'_>, at: Span) -> TermId {
    let nodes: Vec<Node<'_>> = template.get("steps").into_iter().flat_map(|s| s.items()).collect();
    let steps: Vec<Step<'_>> = nodes.iter().map(|n| step(kit, *n)).collect();
    if steps.is_empty() {
        return kit.unknown("a workflow without steps", at);
    }
    let mut edges: Vec<Edge> = Vec::new();
    for (from, step) in steps.iter().enumerate() {
        if step.cases.is_empty() && from + 1 < steps.len() {
            edges.push(Edge { from, to: from + 1, when: None, at: None });
        }
        for case in &step.cases {
            match steps.iter().position(|s| s.name == case.to) {
                Some(to) => {
                    edges.push(Edge { from, to, when: Some(case.label.clone()), at: Some(case.at) });
                }
                None => {
                    let d = undefined(case, &steps, kit.out);
                    kit.out.push(d);
                }
            }
        }
    }
    let mut before = vec![Vec::new(); steps.len()];
    for e in &edges {
        if !before[e.to].contains(&e.from) {
            before[e.to].push(e.from);
        }
    }
    let cyclic = edges.iter().any(|e| e.to <= e.from);
    let graph = Graph {
        nodes: steps.iter().map(|s| GraphNode { name: s.name.to_string(), at: s.node.head() }).collect(),
        edges,
        start: 0,
        at,
    };
    lower(kit, &graph, &mut Lower { project, steps: &steps, before, cyclic, at })
}

fn undefined(case: &Case<'_>, steps: &[Step<'_>], reported: &[Diagnostic]) -> Diagnostic {
    let d = Diagnostic::error(codes::UNDEFINED, format!("unknown step `{}`", clip(case.to)), case.at);
    let names: Vec<&str> = steps.iter().map(|s| s.name).collect();
    match near(case.to, names, reported) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help("name a step of this workflow"),
    }
}

fn step<'d>(kit: &mut Kit<'_>, node: Node<'d>) -> Step<'d> {
    let used = ["name", "agent", "workflow", "from", "input", "loop", "condition", "parallel"];
    let unused = [("context", "Maestro reads `from` alone"), ("description", why::SHOWN)];
    report_keys(node, &used, &unused, "a step of Maestro", kit.out);
    let name = node.get("name").and_then(|n| n.text()).unwrap_or("");
    let items: Vec<Node<'d>> = node.get("condition").into_iter().flat_map(|c| c.items()).collect();
    let mut cases: Vec<Case<'d>> = Vec::new();
    let mut add = |test: Option<&'d str>, to: Node<'d>, label: &str| {
        if let Some(name) = to.text() {
            cases.push(Case { test, to: name, label: label.to_string(), at: to.span() });
        }
    };
    if let Some(test) = items.first().and_then(|c| c.get("if")) {
        if let Some(to) = items[0].get("then") {
            add(test.text(), to, "then");
        }
        if let Some(to) = items[0].get("else") {
            add(None, to, "else");
        }
    } else {
        let mut last = None;
        for (i, item) in items.iter().enumerate() {
            if let (Some(test), Some(to)) = (item.get("case"), item.get("do")) {
                add(test.text(), to, &format!("case {}", i + 1));
            }
            last = item.get("do").or(last);
            if let Some(e) = item.entry("default") {
                let message = "`default` is left out: where no case holds, Maestro takes the last `do`";
                kit.out.push(Diagnostic::warn(codes::UNUSED_KEY, message, e.key.span()).help("write `do`"));
            }
        }
        if let Some(to) = last {
            add(None, to, "otherwise");
        }
    }
    Step { node, name, cases }
}

impl Lower<'_, '_> {
    /// Returns the text of the latest of some steps that has run. The first step may be given the input.
    fn latest(&self, kit: &mut Kit<'_>, steps: &[usize], env: &Env, first: bool, at: Span) -> TermId {
        let Some((last, earlier)) = steps.split_last() else { return kit.b.var("x", at) };
        let Some(value) = env.value(kit, *last, at) else {
            return self.latest(kit, earlier, env, first, at);
        };
        let said = env.read(kit, *last, &[], Data::str(""), at);
        if !first && !earlier.iter().any(|s| env.has(*s)) {
            return said;
        }
        let test = kit.b.add(Term::Prim(Prim::IsNull, vec![value]), at);
        let other = self.latest(kit, earlier, env, first, at);
        kit.b.add(Term::If(test, other, said, IfSugar::Plain), at)
    }

    /// Returns the text that a step is given: that of the step before it, or what `from` names.
    fn input(&self, kit: &mut Kit<'_>, step: usize, env: &Env) -> TermId {
        let node = self.steps[step].node;
        let Some(from) = node.entry("from") else {
            let mut before = self.before[step].clone();
            before.sort_unstable();
            if self.cyclic && before.len() > 1 {
                return kit.unknown("the text of the step that ran last", node.head());
            }
            return self.latest(kit, &before, env, step == 0, node.head());
        };
        let at = value_span(&from);
        let names: Vec<&str> = match from.value.text() {
            Some(one) => vec![one],
            None => from.value.items().filter_map(|n| n.text()).collect(),
        };
        let mut text = Template::new(at);
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                text.text("\n\n");
            }
            match self.source(name) {
                _ if *name == "prompt" => {
                    text.term(kit.b.var("x", at));
                }
                Some(source) if env.has(source) => {
                    text.term(env.read(kit, source, &[], Data::str(""), at));
                }
                _ => {
                    text.text(name);
                }
            }
        }
        text.build(&mut kit.b)
    }

    /// The step of a name, or else the first that asks an agent of that name.
    fn source(&self, name: &str) -> Option<usize> {
        let asks = |s: &Step<'_>| s.node.get("agent").and_then(|a| a.text()) == Some(name);
        self.steps.iter().position(|s| s.name == name).or_else(|| self.steps.iter().position(asks))
    }

    /// The agents that get the text at the same time. Maestro writes their answers as a list of Python.
    fn parallel(&self, kit: &mut Kit<'_>, agents: Node<'_>, text: TermId) -> TermId {
        let at = agents.span();
        let mut sides = Vec::new();
        for item in agents.items() {
            let side = named(kit, self.project, item.text().unwrap_or(""), item.span());
            let (given, test) = (kit.b.var("$text", at), has_bracket(kit, at));
            let part = kit.unknown("an item of the list in the text", at);
            let given = kit.b.add(Term::If(test, part, given, IfSugar::Plain), at);
            sides.push(kit.b.app(side, given, at));
        }
        let count = sides.len();
        let all = kit.b.add(Term::Par(None, sides), at);
        let mut answer = Template::new(at);
        answer.text("[");
        for i in 0..count {
            answer.text(if i > 0 { "', '" } else { "'" });
            let (all, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
            answer.term(kit.b.add(Term::Index(all, index), at));
        }
        answer.text(if count > 0 { "']" } else { "]" });
        let answer = answer.build(&mut kit.b);
        kit.b.let_in(vec![("$text".into(), text), ("$all".into(), all)], answer, at)
    }

    /// An agent on its own answers until an expression holds. It gets each item of a list in turn instead.
    fn repeated(&self, kit: &mut Kit<'_>, spec: Node<'_>, text: TermId) -> TermId {
        let at = spec.span();
        let agent = spec.entry("agent");
        let agent_at = agent.map_or(at, |e| value_span(&e));
        let agent = named(kit, self.project, agent.and_then(|e| e.value.text()).unwrap_or(""), agent_at);
        let until = spec.entry("until");
        let until_at = until.map_or(at, |e| value_span(&e));
        let once = kit.on_x(agent, at);
        let test = expression(kit, until.and_then(|e| e.value.text()).unwrap_or(""), "y", until_at);
        let (this, y, answer) = (kit.b.var("self", at), kit.b.var("y", at), kit.b.var("y", at));
        let again = kit.b.app(this, y, at);
        let next = kit.b.add(Term::If(test, answer, again, IfSugar::Plain), until_at);
        let body = kit.b.let_in(vec![("y".into(), once)], next, at);
        let bound = LoopBound::none("Maestro bounds no `loop`");
        let repeated = kit.fixpoint(body, bound, at, until_at);
        let given = kit.b.var("$text", at);
        let plain = kit.b.app(repeated, given, at);
        let (test, list) =
            (has_bracket(kit, at), kit.unknown("the agent on each item of the list in the text", at));
        let body = kit.b.add(Term::If(test, list, plain, IfSugar::Plain), at);
        kit.b.let_in(vec![("$text".into(), text)], body, at)
    }

    /// A person's answer to a question, put into a template.
    fn person(&self, kit: &mut Kit<'_>, spec: Node<'_>, text: TermId) -> TermId {
        let at = spec.span();
        let of = |key: &str| spec.get(key).and_then(|t| t.text()).unwrap_or("");
        let question = filled(kit, of("prompt"), at);
        let response = by_tool(kit, "input", question, at);
        let answer = filled(kit, of("template"), at);
        let bindings = vec![("$text".into(), text), ("$response".into(), response)];
        kit.b.let_in(bindings, answer, at)
    }
}

/// A text with `{prompt}` and `{response}`.
fn filled(kit: &mut Kit<'_>, text: &str, at: Span) -> TermId {
    let mut template = Template::new(at);
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, hole) = rest.split_at(open);
        template.text(before);
        let known = [("{prompt}", "$text"), ("{response}", "$response")];
        match known.iter().find(|(mark, _)| hole.starts_with(mark)) {
            Some((mark, name)) => {
                template.term(kit.b.var(*name, at));
                rest = &hole[mark.len()..];
            }
            None => {
                template.text("{");
                rest = &hole[1..];
            }
        }
    }
    template.text(rest);
    template.build(&mut kit.b)
}

fn has_bracket(kit: &mut Kit<'_>, at: Span) -> TermId {
    let (text, bracket) = (kit.b.var("$text", at), kit.text("[", at));
    kit.b.add(Term::Prim(Prim::Contains, vec![text, bracket]), at)
}

impl Steps for Lower<'_, '_> {
    fn step(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let step = &self.steps[node];
        let mut text = self.input(kit, node, env);
        if let Some(agent) = step.node.entry("agent") {
            let at = value_span(&agent);
            let agent = named(kit, self.project, agent.value.text().unwrap_or(""), at);
            text = kit.b.app(agent, text, at);
        } else if let Some(workflow) = step.node.entry("workflow") {
            let name = workflow.value.text().unwrap_or("workflow").to_string();
            text = by_tool(kit, &name, text, value_span(&workflow));
        }
        if let Some(spec) = step.node.get("input") {
            text = self.person(kit, spec, text);
        }
        if let Some(agents) = step.node.get("parallel") {
            text = self.parallel(kit, agents, text);
        }
        if let Some(spec) = step.node.get("loop") {
            text = self.repeated(kit, spec, text);
        }
        text
    }

    fn reads(&self, node: usize) -> Vec<usize> {
        let Some(from) = self.steps[node].node.get("from") else { return self.before[node].clone() };
        let names = from.text().into_iter().chain(from.items().filter_map(|n| n.text()));
        names.filter_map(|name| self.source(name)).collect()
    }

    fn choose(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let step = &self.steps[node];
        let (mut tests, mut otherwise) = (Vec::new(), None);
        for case in &step.cases {
            match case.test {
                Some(test) => tests.push((test, case)),
                None => otherwise = Some(case),
            }
        }
        let mut chosen = match otherwise {
            Some(case) => kit.text(&case.label, case.at),
            None => kit.unknown("where the workflow goes on", step.node.head()),
        };
        for (test, case) in tests.into_iter().rev() {
            let test = expression(kit, test, "$said", case.at);
            let label = kit.text(&case.label, case.at);
            chosen = kit.b.add(Term::If(test, label, chosen, IfSugar::Plain), case.at);
        }
        let said = env.read(kit, node, &[], Data::str(""), step.node.head());
        kit.b.let_in(vec![("$said".into(), said)], chosen, step.node.head())
    }

    fn outputs(&self) -> Vec<usize> {
        self.steps.len().checked_sub(1).into_iter().collect()
    }

    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId {
        match self.steps.len().checked_sub(1) {
            Some(last) => env.read(kit, last, &[], Data::str(""), self.at),
            None => kit.text("", self.at),
        }
    }

    fn outcomes(&self, node: usize) -> Option<Vec<(String, Span)>> {
        let cases = &self.steps[node].cases;
        (!cases.is_empty()).then(|| cases.iter().map(|c| (c.label.clone(), c.at)).collect())
    }

    fn bound(&mut self, _: &mut Kit<'_>) -> LoopBound {
        LoopBound::none("Maestro bounds no cycle of steps")
    }
}

/// An expression of Python about `input`, in the forms `input.find("x") != -1`, `"x" in input` and
/// `input == "x"` and their opposites; any other is unknown.
fn expression(kit: &mut Kit<'_>, text: &str, variable: &'static str, at: Span) -> TermId {
    let mut rest = text.trim();
    while let Some(inner) = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')')) {
        rest = inner.trim();
    }
    let Some((prim, word, holds)) = comparison(rest) else {
        return kit.unknown(&format!("whether `{}` holds", clip(text)), at);
    };
    let (value, word) = (kit.b.var(variable, at), kit.text(word, at));
    let test = kit.b.add(Term::Prim(prim, vec![value, word]), at);
    if holds { test } else { kit.b.add(Term::Prim(Prim::Not, vec![test]), at) }
}

/// The comparison that an expression is, its text, and the truth value for which the expression holds.
fn comparison(text: &str) -> Option<(Prim, &str, bool)> {
    if let Some(found) = text.strip_prefix("input.find(") {
        let (word, after) = quoted(found)?;
        let holds =
            match after.trim_start().strip_prefix(')')?.split_whitespace().collect::<String>().as_str() {
                "!=-1" | ">-1" | ">=0" => true,
                "==-1" | "<0" => false,
                _ => return None,
            };
        return Some((Prim::Contains, word, holds));
    }
    if let Some(other) = text.strip_prefix("input") {
        let (holds, other) = match other.trim_start() {
            o if o.starts_with("==") => (true, &o[2..]),
            o if o.starts_with("!=") => (false, &o[2..]),
            _ => return None,
        };
        let (word, after) = quoted(other.trim_start())?;
        return after.trim().is_empty().then_some((Prim::Eq, word, holds));
    }
    let (word, after) = quoted(text)?;
    match after.split_whitespace().collect::<Vec<_>>()[..] {
        ["in", "input"] => Some((Prim::Contains, word, true)),
        ["not", "in", "input"] => Some((Prim::Contains, word, false)),
        _ => None,
    }
}

/// A string without escapes at the beginning of a text, and what follows it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (word, after) = text[1..].split_once(quote)?;
    (!word.contains('\\')).then_some((word, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_are_read() {
        for (text, read) in [
            ("input.find(\"happy\") != -1", Some((Prim::Contains, "happy", true))),
            ("input.find('no') == -1", Some((Prim::Contains, "no", false))),
            ("'yes' in input", Some((Prim::Contains, "yes", true))),
            ("\"yes\" not in input", Some((Prim::Contains, "yes", false))),
            ("input == 'a b'", Some((Prim::Eq, "a b", true))),
            ("input != \"\"", Some((Prim::Eq, "", false))),
            ("input.some_condition == True", None),
            ("len(input) > 3", None),
            ("input.find('a') != -1 and True", None),
            ("'\\'' in input", None),
            ("input == 'a' or True", None),
            ("", None),
            ("'", None),
        ] {
            assert_eq!(comparison(text), read, "{text}");
        }
    }
}
