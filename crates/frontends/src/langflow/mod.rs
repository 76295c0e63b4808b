//! Langflow: exported flows, whose components take fields from one another.
//!
//! | component | term |
//! |---|---|
//! | `ChatInput` | the input |
//! | `Prompt` | a text, `{name}` being the field of that name |
//! | a model (`input_value`, `system_message`, `model_name`) | `llm p θ` applied to its input |
//! | `Agent` | a loop of `max_iterations` with its tools |
//! | a component whose output is a tool, a model or an embedding | a part of what it is connected to |
//! | `ConditionalRouter` | a decision: equality and containment as tests, other operators unknown |
//! | `ChatOutput` | the result |
//! | any other component | a tool of its name, given what is connected to it |
//!
//! Source: langflow-ai/langflow 1.5, `src/backend/base/langflow/components`; what the collection shows.

use crate::defaults;
use core_ir::{Data, IfSugar, ModelParams, Name, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Part, Template, parts, undecided, value_span};
use frontend_kit::flow::by_tool;
use frontend_kit::graph::{Edge, Env, Graph, GraphNode, Steps, lower};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use std::collections::HashMap;
use std::sync::Arc;

/// The front end.
pub struct Langflow;

impl Frontend for Langflow {
    fn name(&self) -> &'static str {
        "langflow"
    }

    fn detect(&self, file: &File) -> u8 {
        let node = |n: Node<'_>| n.at(&["data", "node", "template"]).is_some();
        if mark::any(file, |r| mark::list(r, &["data", "nodes"], node)) { 94 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the model's component decides on the model, by its own default"),
            ends_loops: Some("Langflow ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the model is to do: `system_message` of the model, or `system_prompt` of the agent",
                bound: "state it: `max_iterations` of the agent",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(data) = root.get("data") else { continue };
            let flow = Flow::of(data);
            if !flow.nodes.is_empty() {
                let name = root.get("name").and_then(|n| n.text()).unwrap_or("flow");
                units.add(name, UnitKind::Crew, root.head(), |kit| flow.lower(kit, root.head()));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the flow has no components that run")
    }
}

/// Output types of components that are parts of others and not texts.
const PARTS: &[&str] = &["Tool", "LanguageModel", "Embeddings", "Memory", "Toolkit"];

/// A connection: from where, which of its outputs, and to which field of what.
struct Wire<'d> {
    from: usize,
    output: &'d str,
    to: usize,
    field: &'d str,
    /// True if it connects a part and not a text.
    part: bool,
}

struct Flow<'d> {
    nodes: Vec<Node<'d>>,
    wires: Vec<Wire<'d>>,
}

fn kind<'d>(n: Node<'d>) -> &'d str {
    n.at(&["data", "type"]).and_then(|t| t.text()).unwrap_or("")
}

/// Returns the display name.
fn label<'d>(n: Node<'d>) -> &'d str {
    n.at(&["data", "node", "display_name"])
        .and_then(|t| t.text())
        .filter(|t| !t.is_empty())
        .unwrap_or(kind(n))
}

fn head(n: Node<'_>) -> Span {
    n.at(&["data", "node"]).unwrap_or(n).head()
}

/// Returns true if the component calls a model.
fn is_model(n: Node<'_>) -> bool {
    let has = |keys: &[&str]| keys.iter().any(|k| field(n, k).is_some());
    has(&["system_message"]) && has(&["input_value"]) && has(&["model_name", "model", "model_id", "provider"])
}

/// A field of a component.
fn field<'d>(n: Node<'d>, name: &str) -> Option<Node<'d>> {
    n.at(&["data", "node", "template", name]).filter(|f| f.is_mapping())
}

impl<'d> Flow<'d> {
    fn of(data: Node<'d>) -> Flow<'d> {
        let all = data.get("nodes").into_iter().flat_map(|n| n.items());
        // What is written on the canvas for its readers runs nothing.
        let runs = |n: &Node<'d>| kind(*n) != "note" && n.at(&["data", "node", "template"]).is_some();
        let nodes: Vec<Node<'d>> = all.filter(runs).collect();
        let mut index: HashMap<&str, usize> = HashMap::new();
        for (i, n) in nodes.iter().enumerate() {
            if let Some(id) = n.get("id").and_then(|i| i.text()) {
                index.entry(id).or_insert(i);
            }
        }
        let mut wires = Vec::new();
        for e in data.get("edges").into_iter().flat_map(|e| e.items()) {
            let end = |key: &str| e.get(key).and_then(|i| i.text()).and_then(|i| index.get(i)).copied();
            let (Some(from), Some(to)) = (end("source"), end("target")) else { continue };
            let output = e.at(&["data", "sourceHandle", "name"]).and_then(|n| n.text()).unwrap_or("");
            let field = e.at(&["data", "targetHandle", "fieldName"]).and_then(|n| n.text()).unwrap_or("");
            let types = e.at(&["data", "sourceHandle", "output_types"]);
            let part = types.is_some_and(|t| t.items().any(|t| t.text().is_some_and(|t| PARTS.contains(&t))));
            wires.push(Wire { from, output, to, field, part });
        }
        Flow { nodes, wires }
    }

    /// Components that are only parts of others.
    fn is_part(&self, i: usize) -> bool {
        let mut out = self.wires.iter().filter(|w| w.from == i).peekable();
        out.peek().is_some() && out.all(|w| w.part)
    }

    fn lower(&self, kit: &mut Kit<'_>, at: Span) -> TermId {
        if !kit.budget.take(self.nodes.iter().map(|n| size(head(*n))).sum(), at, kit.out) {
            return kit.unknown("a flow beyond the limit", at);
        }
        let runs: Vec<usize> = (0..self.nodes.len()).filter(|i| !self.is_part(*i)).collect();
        let number: HashMap<usize, usize> = runs.iter().enumerate().map(|(n, i)| (*i, n)).collect();
        let mut nodes: Vec<GraphNode> = runs
            .iter()
            .map(|i| GraphNode { name: label(self.nodes[*i]).to_string(), at: head(self.nodes[*i]) })
            .collect();
        let mut edges: Vec<Edge> = Vec::new();
        for w in self.wires.iter().filter(|w| !w.part) {
            let (Some(from), Some(to)) = (number.get(&w.from), number.get(&w.to)) else { continue };
            let decides = kind(self.nodes[w.from]) == "ConditionalRouter";
            let when = decides.then(|| w.output.to_string());
            edges.push(Edge { from: *from, to: *to, when, at: None });
        }
        let mut edges = needed(edges, runs.len());
        // What nothing leads to begins; several begin at once.
        let mut firsts: Vec<usize> =
            (0..runs.len()).filter(|n| edges.iter().all(|e: &Edge| e.to != *n)).collect();
        let start = match firsts[..] {
            [one] => one,
            _ => {
                nodes.push(GraphNode { name: "begin".into(), at });
                let begin = nodes.len() - 1;
                if firsts.is_empty() {
                    firsts.push(0);
                }
                let to = firsts.iter().filter(|f| **f < begin);
                edges.extend(to.map(|to| Edge { from: begin, to: *to, when: None, at: None }));
                begin
            }
        };
        let graph = Graph { nodes, edges, start, at };
        let mut steps = LangflowLowering { flow: self, runs, number, at };
        lower(kit, &graph, &mut steps)
    }
}

/// Edges without those that a longer way says as well: a component reads what it is connected to, whatever
/// comes between.
fn needed(edges: Vec<Edge>, nodes: usize) -> Vec<Edge> {
    const MAX_EDGES: usize = 400;
    if edges.len() > MAX_EDGES {
        return edges;
    }
    let always: Vec<(usize, usize)> =
        edges.iter().filter(|e| e.when.is_none()).map(|e| (e.from, e.to)).collect();
    let longer = |from: usize, to: usize| {
        let mut seen = vec![false; nodes];
        let mut todo: Vec<usize> =
            always.iter().filter(|(f, t)| *f == from && *t != to).map(|(_, t)| *t).collect();
        while let Some(n) = todo.pop() {
            if n == to {
                return true;
            }
            if !std::mem::replace(&mut seen[n], true) {
                todo.extend(always.iter().filter(|(f, _)| *f == n).map(|(_, t)| *t));
            }
        }
        false
    };
    // In a cycle every way is a longer one.
    let acyclic = (0..nodes).all(|n| !always.iter().any(|(f, t)| *f == n && (*t == n || longer(*t, n))));
    edges.into_iter().filter(|e| e.when.is_some() || !acyclic || !longer(e.from, e.to)).collect()
}

struct LangflowLowering<'f, 'd> {
    flow: &'f Flow<'d>,
    /// The components that run, by their number in the graph.
    runs: Vec<usize>,
    number: HashMap<usize, usize>,
    at: Span,
}

impl<'d> LangflowLowering<'_, 'd> {
    /// Lowers the source connected to a field, else its own value. Of several sources, the one whose branch
    /// was taken.
    fn value(&self, kit: &mut Kit<'_>, i: usize, name: &str, env: &Env) -> Option<TermId> {
        let node = self.flow.nodes[i];
        let at = head(node);
        let wires = self.flow.wires.iter().filter(|w| w.to == i && w.field == name && !w.part);
        let sources: Vec<(usize, &Wire<'d>)> =
            wires.filter_map(|w| Some((*self.number.get(&w.from)?, w))).collect();
        if let [(from, w)] = sources[..] {
            return Some(self.read(kit, from, w, Data::str(""), env, at));
        }
        if sources.is_empty() {
            let (text, entry) = first_text(field(node, name)?, &["value"])?;
            return Some(kit.text(text, value_span(&entry)));
        }
        // The first that was let through.
        let mut value = kit.text("", at);
        for (n, (from, w)) in sources.into_iter().enumerate().rev() {
            let name = Name::from(format!("$in{}", n + 1));
            let one = self.read(kit, from, w, Data::Null, env, at);
            let (v, again) = (kit.b.var(name.clone(), at), kit.b.var(name.clone(), at));
            let missing = kit.b.add(Term::Prim(Prim::IsNull, vec![v]), at);
            let chosen = kit.b.add(Term::If(missing, value, again, IfSugar::Plain), at);
            value = kit.b.let_in(vec![(name, one)], chosen, at);
        }
        Some(value)
    }

    /// Lowers the value of a component's output. A conditional component has a value on one output only.
    fn read(
        &self,
        kit: &mut Kit<'_>,
        from: usize,
        w: &Wire<'_>,
        missing: Data,
        env: &Env,
        at: Span,
    ) -> TermId {
        if kind(self.flow.nodes[w.from]) == "ConditionalRouter" {
            return env.read(kit, from, &[w.output], missing, at);
        }
        env.read(kit, from, &[], missing, at)
    }

    fn prompt(&self, kit: &mut Kit<'_>, i: usize, env: &Env) -> TermId {
        let node = self.flow.nodes[i];
        let written = field(node, "template").and_then(|f| first_text(f, &["value"]));
        let Some((text, entry)) = written else { return kit.text("", head(node)) };
        let at = value_span(&entry);
        let mut out = Template::new(at);
        for part in parts(text) {
            match part {
                Part::Text(t) => {
                    out.text(t);
                }
                Part::Hole(name) => match self.value(kit, i, name, env) {
                    Some(value) => {
                        out.term(value);
                    }
                    None if field(node, name).is_some() => {}
                    None => {
                        out.text(&format!("{{{name}}}"));
                    }
                },
            }
        }
        out.build(&mut kit.b)
    }

    fn params(&self, kit: &mut Kit<'_>, i: usize) -> (ModelParams, Option<Span>) {
        let mut params =
            ModelParams { purpose: Some(label(self.flow.nodes[i]).into()), ..ModelParams::default() };
        // The model may be another component.
        let model = self.flow.wires.iter().find(|w| {
            w.to == i && w.part && matches!(w.field, "llm" | "model" | "agent_llm" | "language_model")
        });
        let of = self.flow.nodes[model.map_or(i, |w| w.from)];
        let mut at = None;
        for key in ["model_name", "model", "model_id", "azure_deployment"] {
            if let Some((text, entry)) = field(of, key).and_then(|f| first_text(f, &["value"])) {
                params.model = Some(text.into());
                at = Some(value_span(&entry));
                break;
            }
        }
        for key in ["temperature", "max_tokens", "seed", "top_p"] {
            let written = field(of, key).and_then(|f| f.entry("value"));
            if let Some(value) = written.filter(|e| e.value.as_num().is_some()) {
                let mut found = ModelParams::default();
                setting(&value, &mut found, kit.out);
                let number = value.value.as_num();
                match key {
                    "temperature" => params.temperature = number,
                    // Zero means that nothing is set.
                    "max_tokens" => params.max_tokens = value.value.as_u64().filter(|n| *n > 0),
                    _ => params.extra.extend(number.map(|n| (Name::from(key), Data::Num(n)))),
                }
            }
        }
        (params, at)
    }

    fn model(&self, kit: &mut Kit<'_>, i: usize, env: &Env) -> TermId {
        let at = head(self.flow.nodes[i]);
        let (params, model_at) = self.params(kit, i);
        let prompt = self.value(kit, i, "system_message", env).unwrap_or_else(|| kit.text("", at));
        let asked = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
        let input = self.value(kit, i, "input_value", env).unwrap_or_else(|| kit.text("", at));
        kit.b.app(asked, input, at)
    }

    /// `{true_result: …, false_result: …}`, of which one is null.
    fn decision(&self, kit: &mut Kit<'_>, i: usize, env: &Env) -> TermId {
        let node = self.flow.nodes[i];
        let at = head(node);
        let operator = field(node, "operator").and_then(|f| first_text(f, &["value"])).map_or("", |(t, _)| t);
        let operands = (self.value(kit, i, "input_text", env), self.value(kit, i, "match_text", env));
        let test = match (operands, operator) {
            ((Some(a), Some(b)), "equals") => kit.b.add(Term::Prim(Prim::Eq, vec![a, b]), at),
            ((Some(a), Some(b)), "not equals") => kit.b.add(Term::Prim(Prim::Ne, vec![a, b]), at),
            ((Some(a), Some(b)), "contains") => kit.b.add(Term::Prim(Prim::Contains, vec![a, b]), at),
            _ => {
                let why = format!("whether `{}` holds", diagnostics::clip(operator));
                kit.out.push(undecided(frontend_kit::emit::codes::NOT_COMPILED, why.clone(), at));
                kit.unknown(&why, at)
            }
        };
        let said = |kit: &mut Kit<'_>, own: &str| {
            let text = [own, "message", "input_text"].iter().find_map(|k| self.value(kit, i, k, env));
            text.unwrap_or_else(|| kit.text("", at))
        };
        let branch = |kit: &mut Kit<'_>, yes: bool| {
            let (text, nothing) = match yes {
                true => (said(kit, "true_case_message"), kit.b.lit(Data::Null, at)),
                false => (said(kit, "false_case_message"), kit.b.lit(Data::Null, at)),
            };
            let on = kit.b.var("$on", at);
            let (a, b) = if yes { (text, nothing) } else { (nothing, text) };
            kit.b.add(Term::If(on, a, b, IfSugar::Plain), at)
        };
        let fields = vec![
            (Name::from("true_result"), branch(kit, true)),
            (Name::from("false_result"), branch(kit, false)),
        ];
        let record = kit.b.add(Term::Record(fields), at);
        kit.b.let_in(vec![("$on".into(), test)], record, at)
    }

    fn agent(&self, kit: &mut Kit<'_>, i: usize, env: &Env) -> TermId {
        let node = self.flow.nodes[i];
        let at = head(node);
        let prompt = ["system_prompt", "agent_instructions", "system_message"];
        let prompt = prompt.iter().find_map(|k| self.value(kit, i, k, env));
        let prompt = prompt.unwrap_or_else(|| kit.text("", at));
        let (params, model_at) = self.params(kit, i);
        let mut actions = Vec::new();
        for w in self.flow.wires.iter().filter(|w| w.to == i && w.part && w.field == "tools") {
            let tool = self.flow.nodes[w.from];
            // Several servers are called alike until somebody names them.
            let base = label(tool);
            let before = self.flow.wires.iter().take_while(|o| !std::ptr::eq(*o, w));
            let alike = before.filter(|o| o.to == i && o.part && o.field == "tools");
            let alike = alike.filter(|o| label(self.flow.nodes[o.from]) == base).count();
            let name = if alike == 0 { base.to_string() } else { format!("{base} {}", alike + 1) };
            actions.push(Action::tool(name, head(tool)));
        }
        let bound = defaults::bound(&defaults::LANGFLOW_ITERATIONS, kit.versions);
        let bound = bound.or_written(field(node, "max_iterations").and_then(|f| f.entry("value")), kit.out);
        let (name, actions_at) = (label(node), None);
        let agent = kit.agent(Agent { name, head: at, prompt, params, model_at, actions, actions_at, bound });
        let input = self.value(kit, i, "input_value", env).unwrap_or_else(|| kit.b.var("x", at));
        kit.b.app(agent, input, at)
    }
}

impl Steps for LangflowLowering<'_, '_> {
    fn step(&mut self, kit: &mut Kit<'_>, n: usize, env: &Env) -> TermId {
        let Some(i) = self.runs.get(n).copied() else { return kit.b.var("x", self.at) };
        let node = self.flow.nodes[i];
        let at = head(node);
        if is_model(node) || kind(node) == "Agent" {
            if let Err(unknown) = kit.open(label(node), node.span(), at, 0) {
                return unknown;
            }
            let term = if kind(node) == "Agent" { self.agent(kit, i, env) } else { self.model(kit, i, env) };
            kit.close();
            return term;
        }
        match kind(node) {
            "ChatInput" if self.flow.wires.iter().all(|w| w.to != i) => kit.b.var("x", at),
            "ChatInput"
            | "ChatOutput"
            | "TextInput"
            | "TextOutput"
            | "TextInputComponent"
            | "TextOutputComponent" => {
                self.value(kit, i, "input_value", env).unwrap_or_else(|| kit.text("", at))
            }
            "Prompt" | "Prompt Template" => self.prompt(kit, i, env),
            "ConditionalRouter" => self.decision(kit, i, env),
            _ => {
                let mut input = Template::new(at);
                let mut fields: Vec<&str> = Vec::new();
                for w in self.flow.wires.iter().filter(|w| w.to == i && !w.part) {
                    if !fields.contains(&w.field) {
                        fields.push(w.field);
                    }
                }
                if let [one] = fields[..] {
                    let value = self.value(kit, i, one, env).unwrap_or_else(|| kit.text("", at));
                    return by_tool(kit, label(node), value, at);
                }
                for (n, name) in fields.into_iter().enumerate() {
                    if n > 0 {
                        input.text("\n");
                    }
                    let value = self.value(kit, i, name, env).unwrap_or_else(|| kit.text("", at));
                    input.term(value);
                }
                let input = input.build(&mut kit.b);
                by_tool(kit, label(node), input, at)
            }
        }
    }

    fn reads(&self, n: usize) -> Vec<usize> {
        let Some(i) = self.runs.get(n) else { return Vec::new() };
        let wires = self.flow.wires.iter().filter(|w| w.to == *i && !w.part);
        let mut out: Vec<usize> = wires.filter_map(|w| self.number.get(&w.from)).copied().collect();
        out.dedup();
        out
    }

    fn choose(&mut self, kit: &mut Kit<'_>, n: usize, env: &Env) -> TermId {
        let at = self.runs.get(n).map_or(self.at, |i| head(self.flow.nodes[*i]));
        let yes = env.read(kit, n, &["true_result"], Data::Null, at);
        let test = kit.b.add(Term::Prim(Prim::IsNull, vec![yes]), at);
        let (yes, no) = (kit.text("true_result", at), kit.text("false_result", at));
        kit.b.add(Term::If(test, no, yes, IfSugar::Plain), at)
    }

    fn outputs(&self) -> Vec<usize> {
        let ends = |i: usize| {
            kind(self.flow.nodes[i]).ends_with("Output") || kind(self.flow.nodes[i]) == "TextOutputComponent"
        };
        let named: Vec<usize> = (0..self.runs.len()).filter(|n| ends(self.runs[*n])).collect();
        if !named.is_empty() {
            return named;
        }
        let leads = |i: usize| self.flow.wires.iter().any(|w| w.from == i && !w.part);
        (0..self.runs.len()).filter(|n| !leads(self.runs[*n])).collect()
    }

    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId {
        let last: Vec<usize> = self.outputs().into_iter().filter(|n| env.has(*n)).collect();
        if let [one] = last[..] {
            return env.read(kit, one, &[], Data::str(""), self.at);
        }
        let mut out = Template::new(self.at);
        let mut some = false;
        for n in last {
            if some {
                out.text("\n");
            }
            some = true;
            let value = env.read(kit, n, &[], Data::str(""), self.at);
            out.term(value);
        }
        out.build(&mut kit.b)
    }

    fn bound(&mut self, _: &mut Kit<'_>) -> LoopBound {
        LoopBound::unknown("the flow goes back to a component that has run")
    }
}
