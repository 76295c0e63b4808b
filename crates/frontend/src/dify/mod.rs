//! Dify exports: workflows, chatflows, and chat, completion and agent apps.
//!
//! | source | term |
//! |---|---|
//! | `llm` | an oracle: system prompts are its prompt, the rest is what it is asked |
//! | `agent` | a loop around a model that is offered its tools |
//! | `tool`, `code`, `http-request`, `knowledge-retrieval`, `document-extractor`, `list-operator` | a tool |
//! | `if-else`, `question-classifier` | a decision between the edges that leave it; the class is there by id and by name |
//! | `template-transform`, `answer`, `end`, `variable-aggregator` | texts and records of what was given |
//! | `parameter-extractor`, `llm` with structured output | an oracle whose reply is a record; a parameter that was not found is empty |
//! | `iteration`, `loop` | `fix` around the nodes inside |
//! | `assigner`, `conversation.*` | keys of a store around the whole |
//! | `{{#node.field#}}` | a part of what the node gave; `sys.query` is what the app is asked |
//!
//! Source: langgenius/dify, `api/core/workflow/nodes`; the export's version 0.1 to 0.4.

use crate::defaults;
use crate::doc::{Entry, Node};
use crate::emit::{LoopBound, Part, Template, Unused, clip, codes, report_keys, undecided, value_span};
use crate::graph::{Edge, Env, Graph, GraphNode, Steps, lower};
use crate::kit::{Agent, Hand, Kit, Units, first, first_text, mark, setting};
use crate::outline::{NodeRole, Retried};
use crate::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use crate::shape::{by_name, model_of, why};
use core_ir::{
    Bound, Branch, Data, IfSugar, KeyDecl, LabelSpec, ModelParams, Name, Num, Prim, StoreDecl, Term, TermId,
    Type,
};
use diagnostics::{Diagnostic, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// The front end.
pub struct Dify;

const APP_UNUSED: &[Unused] =
    &[("version", why::SHOWN), ("kind", why::SHOWN), ("dependencies", why::RUNTIME)];

impl Frontend for Dify {
    fn name(&self) -> &'static str {
        "dify"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            mark::is(r, "kind", "app") && mark::has(r, "app")
                || mark::has(r, "app") && r.at(&["workflow", "graph"]).is_some()
                || mark::has(r, "app") && r.at(&["model_config", "model"]).is_some()
        };
        if mark::any(file, sure) { 95 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Dify asks the workspace's default model"),
            ends_loops: Some("Dify ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the model is to do: `prompt_template`",
                model: "name one: `model.name`",
                bound: "state it: `max_iteration`, or `loop_count` of a loop",
                ..Words::default()
            },
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let known = ["app", "workflow", "model_config"];
            report_keys(root, &known, APP_UNUSED, "a Dify export", &mut units.compiled.diagnostics);
            let name = root.at(&["app", "name"]).and_then(|n| n.text()).unwrap_or("app");
            if let Some(graph) = root.at(&["workflow", "graph"]) {
                let at = root.at(&["workflow"]).map_or(root.head(), |w| w.head());
                units.add(name, UnitKind::Crew, at, |kit| {
                    let nodes = Flow::nodes(graph);
                    let mut flow = Flow { nodes: &nodes, graph, inside: None, index: HashMap::new() };
                    let term = flow.lower(kit, at);
                    remembering(kit, root, term, at)
                });
            } else if let Some(config) = root.get("model_config") {
                units.add(name, UnitKind::Agent, config.head(), |kit| app(kit, config, name));
            }
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "the app has neither a workflow nor a model",
        )
    }
}

/// `{{#a.b#}}` as the hole `a.b`, `{{name}}` as the hole `name`.
fn holes(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find("{{") {
        let open = at + open;
        let Some(len) = text[open..].find("}}") else { break };
        let inner = text[open + 2..open + len].trim();
        let inner = inner.strip_prefix('#').and_then(|i| i.strip_suffix('#')).unwrap_or(inner).trim();
        at = open + 2;
        let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        if inner.is_empty() || inner.len() > 200 || !inner.chars().all(name) {
            continue;
        }
        if open > start {
            parts.push(Part::Text(&text[start..open]));
        }
        parts.push(Part::Hole(inner));
        at = open + len + 2;
        start = at;
    }
    if start < text.len() || parts.is_empty() {
        parts.push(Part::Text(&text[start..]));
    }
    parts
}

/// A chat, completion or agent app.
fn app(kit: &mut Kit<'_>, config: Node<'_>, name: &str) -> TermId {
    let head = config.head();
    if let Err(term) = kit.open(name, config.span(), head, crate::kit::size(config.span())) {
        return term;
    }
    let prompt = match first_text(config, &["pre_prompt"]) {
        Some((text, entry)) => kit.filled(text, value_span(&entry), holes),
        None => kit.text("", head),
    };
    let (params, model_at) = model(kit, config);
    let mode = config.get("agent_mode");
    let mut hands = Vec::new();
    for tool in mode.and_then(|m| m.get("tools")).into_iter().flat_map(|t| t.items()) {
        if tool.get("enabled").and_then(|e| e.as_bool()) != Some(false)
            && let Some((tool_name, _)) = first_text(tool, &["tool_name", "provider_name"])
        {
            hands.push(Hand::tool(tool_name, tool.head()));
        }
    }
    for set in config.at(&["dataset_configs", "datasets", "datasets"]).into_iter().flat_map(|d| d.items()) {
        if let Some(id) = set.at(&["dataset", "id"]).and_then(|i| i.text()) {
            hands.push(Hand::tool(format!("dataset_{id}"), set.head()));
        }
    }
    let bound = defaults::bound(&defaults::DIFY_ITERATIONS, kit.versions);
    let bound = bound.or_written(mode.and_then(|m| m.entry("max_iteration")), kit.out);
    let term = kit.agent(Agent { name, head, prompt, params, model_at, hands, hands_at: None, bound });
    kit.close();
    term
}

/// `model: {name, provider, completion_params}`.
fn model(kit: &mut Kit<'_>, data: Node<'_>) -> (ModelParams, Option<Span>) {
    let Some(entry) = data.entry("model") else { return Default::default() };
    let mut params = ModelParams::default();
    let named = first_text(entry.value, &["name", "model"]);
    params.model = named.map(|(t, _)| Name::from(t.trim()));
    for e in entry.value.get("completion_params").into_iter().flat_map(|c| c.entries()) {
        setting(&e, &mut params, kit.out);
    }
    (params, Some(named.map_or(entry.key.span(), |(_, e)| value_span(&e))))
}

/// The conversation's variables as a store around the whole.
fn remembering(kit: &mut Kit<'_>, root: Node<'_>, term: TermId, at: Span) -> TermId {
    let mut keys: Vec<KeyDecl> = Vec::new();
    let variables = root.at(&["workflow", "conversation_variables"]);
    for v in variables.into_iter().flat_map(|v| v.items()) {
        let Some(name) = v.get("name").and_then(|n| n.text()) else { continue };
        if keys.iter().all(|k| &*k.name != name) {
            let initial = v.get("value").and_then(|v| crate::emit::data(v, &mut 400));
            let label = LabelSpec::Axes { untrusted: true, secret: false };
            keys.push(KeyDecl { name: name.into(), ty: Type::Dyn, label, initial });
        }
    }
    if keys.is_empty() {
        return term;
    }
    let name = Name::from("conversation");
    let store = kit.b.store(StoreDecl { name, keys, capacity: None, ttl: None, backend: None, span: at });
    kit.b.add(Term::Mem(store, term), at)
}

/// A graph: the whole, or what is inside of an iteration or a loop.
struct Flow<'n, 'd> {
    nodes: &'n [(&'d str, Node<'d>)],
    graph: Node<'d>,
    /// The iteration or loop around.
    inside: Option<&'d str>,
    /// Numbers of the nodes at this level.
    index: HashMap<&'d str, usize>,
}

const INNER: &[&str] = &["iteration_id", "loop_id"];

impl<'n, 'd> Flow<'n, 'd> {
    /// All nodes with their `data`, notes left out.
    fn nodes(graph: Node<'d>) -> Vec<(&'d str, Node<'d>)> {
        let items = graph.get("nodes").into_iter().flat_map(|n| n.items());
        let known = items.filter_map(|n| Some((n.get("id")?.text()?, n)));
        known.filter(|(_, n)| n.get("type").and_then(|t| t.text()) != Some("custom-note")).collect()
    }

    fn lower(&mut self, kit: &mut Kit<'_>, at: Span) -> TermId {
        let around = |n: Node<'d>| {
            let data = n.get("data")?;
            let named = INNER.iter().find_map(|k| data.get(k)?.text());
            named.or_else(|| n.get("parentId")?.text())
        };
        let here: Vec<(&'d str, Node<'d>)> =
            self.nodes.iter().copied().filter(|(_, n)| around(*n) == self.inside).collect();
        self.index = here.iter().enumerate().map(|(i, (id, _))| (*id, i)).collect();
        let mut edges: Vec<Edge> = Vec::new();
        for e in self.graph.get("edges").into_iter().flat_map(|e| e.items()) {
            let end = |key: &str| e.get(key).and_then(|s| s.text()).and_then(|s| self.index.get(s).copied());
            let (Some(from), Some(to)) = (end("source"), end("target")) else { continue };
            let handle = e.get("sourceHandle").and_then(|h| h.text()).unwrap_or("source");
            let when = (handle != "source" && handle != "target").then(|| handle.to_string());
            edges.push(Edge { from, to, when, at: Some(e.head()) });
        }
        let graph_nodes: Vec<GraphNode> = here
            .iter()
            .map(|(_, n)| {
                let title = n.at(&["data", "title"]).and_then(|t| t.text()).filter(|t| !t.is_empty());
                let kind = n.at(&["data", "type"]).and_then(|t| t.text()).unwrap_or("node");
                let slug = title.filter(|t| t.is_ascii()).unwrap_or(kind);
                GraphNode { name: slug.to_string(), at: n.get("data").unwrap_or(*n).head() }
            })
            .collect();
        let kind_of = |n: Node<'d>| n.at(&["data", "type"]).and_then(|t| t.text()).unwrap_or("");
        let started = |kind: &str| here.iter().position(|(_, n)| kind_of(*n) == kind);
        let free = || (0..here.len()).find(|n| edges.iter().all(|e| e.to != *n));
        let start = started("start")
            .or_else(|| started("iteration-start"))
            .or_else(|| started("loop-start"))
            .or_else(free)
            .unwrap_or(0);
        let graph = Graph { nodes: graph_nodes, edges, start, at };
        let mut steps = Run { flow: self, here: &here };
        lower(kit, &graph, &mut steps)
    }
}

struct Run<'f, 'n, 'd> {
    flow: &'f Flow<'n, 'd>,
    here: &'f [(&'d str, Node<'d>)],
}

impl<'d> Run<'_, '_, 'd> {
    fn data(&self, node: usize) -> Node<'d> {
        let n = self.here[node].1;
        n.get("data").unwrap_or(n)
    }

    /// The value that a path names, such as `[node, text]` or `[sys, query]`.
    fn select(&self, kit: &mut Kit<'_>, path: &[&str], env: &Env, missing: Data, at: Span) -> TermId {
        match path {
            ["sys", "query"] | [_, "sys.query"] => kit.b.var("x", at),
            [_, system] if system.starts_with("sys.") => kit.input(system, at),
            ["conversation", key] => kit.b.add(Term::Recall((*key).into(), None), at),
            [head @ ("sys" | "env"), rest @ ..] => kit.input(&format!("{head}.{}", rest.join(".")), at),
            [id, rest @ ..] => {
                if self.flow.inside == Some(*id) {
                    // Inside of an iteration: the item and its number, given as `x`.
                    let x = kit.b.var("x", at);
                    return match rest {
                        ["index"] => kit.b.add(Term::Field(x, "index".into()), at),
                        ["item"] => kit.b.add(Term::Field(x, "item".into()), at),
                        _ => {
                            let state = kit.b.add(Term::Field(x, "item".into()), at);
                            rest.iter().fold(state, |v, f| kit.b.add(Term::Field(v, (*f).into()), at))
                        }
                    };
                }
                match self.flow.index.get(id) {
                    Some(node) => env.read(kit, *node, rest, missing, at),
                    // A node of the graph around: what it gave is handed in by name.
                    None if self.flow.inside.is_some() => {
                        let outer = kit.b.var("$outer", at);
                        let of = kit.b.add(Term::Field(outer, outer_name(id)), at);
                        rest.iter().fold(of, |v, f| kit.b.add(Term::Field(v, (*f).into()), at))
                    }
                    None => {
                        kit.outline.missing(&path.join("."), at);
                        kit.b.lit(missing, at)
                    }
                }
            }
            [] => kit.b.lit(missing, at),
        }
    }

    /// A list of names as a value.
    fn selected(
        &self,
        kit: &mut Kit<'_>,
        node: Option<Node<'d>>,
        env: &Env,
        missing: Data,
        at: Span,
    ) -> TermId {
        let path: Vec<&str> = node.into_iter().flat_map(|n| n.items()).filter_map(|n| n.text()).collect();
        self.select(kit, &path, env, missing, at)
    }

    /// A text with `{{#node.field#}}` in it; other names are looked up in `names`.
    fn text(&self, kit: &mut Kit<'_>, text: &str, env: &Env, names: Option<Node<'d>>, at: Span) -> TermId {
        let mut template = Template::new(at);
        for part in holes(text) {
            match part {
                Part::Text(t) => {
                    template.text(t);
                }
                Part::Hole(name) => {
                    let path: Vec<&str> = name.split('.').collect();
                    let variables = names.into_iter().flat_map(|n| n.items());
                    let named = variables
                        .filter(|v| v.get("variable").and_then(|n| n.text()) == Some(path[0]))
                        .find_map(|v| v.get("value_selector"));
                    let value = match named {
                        Some(selector) => {
                            let of = self.selected(kit, Some(selector), env, Data::str(""), at);
                            path[1..].iter().fold(of, |v, f| kit.b.add(Term::Field(v, (*f).into()), at))
                        }
                        None if path.len() == 1 && path[0] == "context" => {
                            kit.unknown("the context of this node", at)
                        }
                        None if path.len() == 1 => kit.input(name, at),
                        None => self.select(kit, &path, env, Data::str(""), at),
                    };
                    template.term(value);
                }
            }
        }
        template.build(&mut kit.b)
    }

    /// An operation that a tool carries out, on the node's variables.
    fn tool(&self, kit: &mut Kit<'_>, name: &str, fields: Vec<(Name, TermId)>, at: Span) -> TermId {
        let id = kit.tool(name, at, false, None, None);
        let tool = kit.b.add(Term::Tool(id), at);
        let input = kit.b.add(Term::Record(fields), at);
        let input = kit.b.add(Term::Record(vec![("input".into(), input)]), at);
        kit.b.app(tool, input, at)
    }

    fn variables(
        &self,
        kit: &mut Kit<'_>,
        list: Option<Node<'d>>,
        env: &Env,
        at: Span,
    ) -> Vec<(Name, TermId)> {
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for v in list.into_iter().flat_map(|l| l.items()) {
            let Some(name) = v.get("variable").and_then(|n| n.text()) else { continue };
            if fields.iter().all(|(n, _)| &**n != name) {
                let value = self.selected(kit, v.get("value_selector"), env, Data::Null, at);
                fields.push((name.into(), value));
            }
        }
        fields
    }

    fn oracle(
        &mut self,
        kit: &mut Kit<'_>,
        data: Node<'d>,
        env: &Env,
        result: Option<Type>,
        at: Span,
    ) -> TermId {
        let names = data.get("variables");
        let mut system = Template::new(at);
        let mut asked = Template::new(at);
        let (mut has_system, mut has_asked) = (false, false);
        let template = data.entry("prompt_template");
        let list: Vec<Node<'d>> = template
            .map(|e| if e.value.is_sequence() { e.value.items().collect() } else { vec![e.value] })
            .unwrap_or_default();
        for message in list {
            let Some((text, entry)) = first_text(message, &["text", "jinja2_text"]) else { continue };
            let place = value_span(&entry);
            let text = self.text(kit, text, env, names, place);
            match message.get("role").and_then(|r| r.text()) {
                Some("system") => {
                    if std::mem::replace(&mut has_system, true) {
                        system.text("\n");
                    }
                    system.term(text);
                }
                role => {
                    if std::mem::replace(&mut has_asked, true) {
                        asked.text("\n");
                    }
                    if role == Some("assistant") {
                        asked.text("[assistant] ");
                    }
                    asked.term(text);
                }
            }
        }
        // With a memory, what the user says is the last message.
        let query = data.at(&["memory", "query_prompt_template"]).and_then(|q| q.text());
        if let Some(query) = query.filter(|q| !q.is_empty()).or(data.get("memory").map(|_| "{{#sys.query#}}"))
        {
            if has_asked {
                asked.text("\n");
            }
            let query = self.text(kit, query, env, None, at);
            asked.term(query);
            has_asked = true;
        }
        // A single prompt is what is asked, and the instructions as well.
        let (prompt, input) = match (has_system, has_asked) {
            (true, true) => (system.build(&mut kit.b), asked.build(&mut kit.b)),
            (true, false) => (system.build(&mut kit.b), kit.text("", at)),
            (false, _) => (asked.build(&mut kit.b), kit.text("", at)),
        };
        let (mut params, model_at) = model(kit, data);
        params.result = result;
        params.purpose = data.get("title").and_then(|t| t.text()).map(Name::from);
        let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
        kit.b.app(oracle, input, at)
    }

    /// The test of one condition.
    fn condition(&self, kit: &mut Kit<'_>, c: Node<'d>, env: &Env, at: Span) -> TermId {
        let operator = c.get("comparison_operator").and_then(|o| o.text()).unwrap_or("");
        let value = self.selected(kit, c.get("variable_selector"), env, Data::Null, at);
        let written = c.get("value").and_then(|v| v.text()).unwrap_or("");
        let is_number = c.get("varType").and_then(|t| t.text()) == Some("number");
        let other = |kit: &mut Kit<'_>| {
            let parts = holes(written);
            match written.trim().parse::<Num>() {
                Ok(n) if is_number => kit.b.lit(n, at),
                _ if matches!(parts[..], [Part::Text(_)]) => kit.text(written, at),
                _ => self.text(kit, written, env, None, at),
            }
        };
        let text = |kit: &mut Kit<'_>, v| kit.b.add(Term::Prim(Prim::ToStr, vec![v]), at);
        let not = |kit: &mut Kit<'_>, t| kit.b.add(Term::Prim(Prim::Not, vec![t]), at);
        let two = |kit: &mut Kit<'_>, prim: Prim, a, b| kit.b.add(Term::Prim(prim, vec![a, b]), at);
        let number = |kit: &mut Kit<'_>, v| {
            let s = kit.b.add(Term::Prim(Prim::ToStr, vec![v]), at);
            kit.b.add(Term::Prim(Prim::ToNum, vec![s]), at)
        };
        let compare = |kit: &mut Kit<'_>, prim| {
            let (v, o) = (number(kit, value), other(kit));
            let o = number(kit, o);
            two(kit, prim, v, o)
        };
        match operator {
            "contains" | "not contains" => {
                let (v, o) = (text(kit, value), other(kit));
                let t = two(kit, Prim::Contains, v, o);
                if operator == "contains" { t } else { not(kit, t) }
            }
            "is" | "is not" | "=" | "≠" => {
                let (v, o) = (text(kit, value), other(kit));
                let o = text(kit, o);
                two(kit, if matches!(operator, "is" | "=") { Prim::Eq } else { Prim::Ne }, v, o)
            }
            ">" => compare(kit, Prim::Gt),
            "<" => compare(kit, Prim::Lt),
            "≥" | ">=" => compare(kit, Prim::Ge),
            "≤" | "<=" => compare(kit, Prim::Le),
            "empty" | "not empty" => {
                let (v, nothing) = (text(kit, value), kit.text("", at));
                two(kit, if operator == "empty" { Prim::Eq } else { Prim::Ne }, v, nothing)
            }
            "null" | "not exists" => kit.b.add(Term::Prim(Prim::IsNull, vec![value]), at),
            "not null" | "exists" => {
                let t = kit.b.add(Term::Prim(Prim::IsNull, vec![value]), at);
                not(kit, t)
            }
            "start with" | "end with" => {
                let (v, o) = (text(kit, value), other(kit));
                two(kit, Prim::Contains, v, o)
            }
            _ => kit.unknown(&format!("the condition {operator}"), at),
        }
    }

    fn conditions(&self, kit: &mut Kit<'_>, case: Node<'d>, list: &str, env: &Env, at: Span) -> TermId {
        let any = case.get("logical_operator").and_then(|o| o.text()) == Some("or");
        let mut all: Option<TermId> = None;
        for c in case.get(list).into_iter().flat_map(|c| c.items()) {
            let test = self.condition(kit, c, env, c.head());
            all = Some(match all {
                None => test,
                Some(before) => {
                    let known = kit.b.lit(Data::Bool(any), at);
                    let (yes, no) = if any { (known, test) } else { (test, known) };
                    let sugar = if any { IfSugar::Or } else { IfSugar::And };
                    kit.b.add(Term::If(before, yes, no, sugar), at)
                }
            });
        }
        all.unwrap_or_else(|| kit.b.lit(Data::Bool(!any), at))
    }

    fn agent(&mut self, kit: &mut Kit<'_>, data: Node<'d>, env: &Env, at: Span) -> TermId {
        let value = |key: &str| -> Option<Entry<'d>> { data.at(&["agent_parameters", key])?.entry("value") };
        let instruction = value("instruction").and_then(|e| Some((e.value.text()?, value_span(&e))));
        let prompt = match instruction {
            Some((text, place)) => self.text(kit, text, env, None, place),
            None => {
                // A strategy of a plug-in may have its own instructions.
                kit.unknown("the instructions of the agent's strategy", at)
            }
        };
        let (params, model_at) = model_of(kit, value("model"), &by_name);
        let mut hands = Vec::new();
        for tool in value("tools").into_iter().flat_map(|e| e.value.items()) {
            if tool.get("enabled").and_then(|e| e.as_bool()) != Some(false)
                && let Some((name, _)) =
                    first_text(tool, &["tool_name", "provider_show_name", "provider_name"])
            {
                hands.push(Hand::tool(name, tool.head()));
            }
        }
        let bound = defaults::bound(&defaults::DIFY_ITERATIONS, kit.versions);
        let bound = bound.or_written(value("maximum_iterations").or(value("max_iterations")), kit.out);
        let name = data.get("title").and_then(|t| t.text()).unwrap_or("agent");
        let agent = Agent { name, head: at, prompt, params, model_at, hands, hands_at: None, bound };
        let term = kit.agent(agent);
        let query = match value("query").and_then(|e| e.value.text()) {
            Some(query) => self.text(kit, query, env, None, at),
            None => kit.b.var("x", at),
        };
        kit.b.app(term, query, at)
    }

    /// What the nodes inside of an iteration or a loop read of the graph around, as a record.
    fn outer(&self, kit: &mut Kit<'_>, env: &Env, at: Span) -> TermId {
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for node in &env.order {
            let value = env.read(kit, *node, &[], Data::Null, at);
            fields.push((outer_name(self.here[*node].0), value));
        }
        kit.b.add(Term::Record(fields), at)
    }

    /// The nodes inside as a function of `{item, index}`.
    fn inner(&self, kit: &mut Kit<'_>, node: usize, at: Span) -> TermId {
        let inside = Some(self.here[node].0);
        let mut flow = Flow { nodes: self.flow.nodes, graph: self.flow.graph, inside, index: HashMap::new() };
        let term = flow.lower(kit, at);
        // The parameter is a record here, not a text.
        match kit.b.term(term).clone() {
            Term::Abs(abs) => kit.b.abs("x", None, abs.body, at),
            _ => term,
        }
    }

    /// `fix (λself. λs. …)` over the items of a list.
    fn iteration(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env, at: Span) -> TermId {
        if kit.is_open(at) {
            return kit.unknown("an iteration within itself", at);
        }
        let name = self.data(node).get("title").and_then(|t| t.text()).unwrap_or("iteration").to_string();
        if let Err(term) = kit.open(&name, at, at, 0) {
            return term;
        }
        let data = self.data(node);
        let list = self.selected(kit, data.get("iterator_selector"), env, Data::list(Vec::new()), at);
        let outer = self.outer(kit, env, at);
        let body = self.inner(kit, node, at);
        let field = |kit: &mut Kit<'_>, name: &str| {
            let s = kit.b.var("$s", at);
            kit.b.add(Term::Field(s, name.into()), at)
        };
        let (items, index) = (field(kit, "items"), field(kit, "index"));
        let item = kit.b.add(Term::Index(items, index), at);
        let index = field(kit, "index");
        let given = kit.b.add(Term::Record(vec![("item".into(), item), ("index".into(), index)]), at);
        let one = kit.b.app(body, given, at);
        let out = field(kit, "out");
        let out = kit.b.add(Term::Prim(Prim::Append, vec![out, one]), at);
        let (index, step) = (field(kit, "index"), kit.b.lit(Num::from(1), at));
        let next = kit.b.add(Term::Prim(Prim::Add, vec![index, step]), at);
        let items = field(kit, "items");
        let state = vec![("items".into(), items), ("index".into(), next), ("out".into(), out)];
        let state = kit.b.add(Term::Record(state), at);
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, state, at);
        let (index, items, done) = (field(kit, "index"), field(kit, "items"), kit.b.var("$s", at));
        let length = kit.b.add(Term::Prim(Prim::Length, vec![items]), at);
        let test = kit.b.add(Term::Prim(Prim::Lt, vec![index, length]), at);
        let turn = kit.b.add(Term::If(test, again, done, IfSugar::Plain), at);
        let bound = LoopBound::unknown("the iteration runs as often as its list has items");
        let first = {
            let (zero, none) = (kit.b.lit(Num::ZERO, at), kit.b.add(Term::List(Vec::new()), at));
            kit.b.add(
                Term::Record(vec![("items".into(), list), ("index".into(), zero), ("out".into(), none)]),
                at,
            )
        };
        let run = self.fix(kit, turn, bound, first, at);
        let output = kit.b.add(Term::Field(run, "out".into()), at);
        let record = kit.b.add(Term::Record(vec![("output".into(), output)]), at);
        kit.close();
        kit.b.let_in(vec![("$outer".into(), outer)], record, at)
    }

    fn fix(&self, kit: &mut Kit<'_>, turn: TermId, bound: LoopBound, first: TermId, at: Span) -> TermId {
        let step = kit.b.abs("$s", None, turn, at);
        let body = kit.b.abs("self", None, step, at);
        let place = bound.span.unwrap_or(at);
        let fix = kit.b.add(Term::Fix { bound: bound.bound, origin: bound.origin, body }, place);
        kit.b.app(fix, first, at)
    }

    /// `fix[loop_count] (λself. λs. …)` until the break conditions hold.
    fn repetition(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env, at: Span) -> TermId {
        let data = self.data(node);
        let name = data.get("title").and_then(|t| t.text()).unwrap_or("loop").to_string();
        if let Err(term) = kit.open(&name, at, at, 0) {
            return term;
        }
        let outer = self.outer(kit, env, at);
        let body = self.inner(kit, node, at);
        let s = kit.b.var("$s", at);
        let given = kit.b.add(Term::Record(vec![("item".into(), s)]), at);
        let one = kit.b.app(body, given, at);
        // The nodes inside change the conversation's variables, on which the break conditions look.
        let test = self.conditions(kit, data, "break_conditions", env, at);
        let broken = data.get("break_conditions").is_some_and(|b| b.items().len() > 0);
        let (done, again_state) = (kit.b.var("$s", at), kit.b.var("$s", at));
        let this = kit.b.var("self", at);
        let again = kit.b.app(this, again_state, at);
        let tail = if broken { kit.b.add(Term::If(test, done, again, IfSugar::Plain), at) } else { again };
        let turn = kit.b.let_in(vec![("$said".into(), one)], tail, at);
        let entry = data.entry("loop_count");
        let bound = defaults::bound(&defaults::DIFY_LOOPS, kit.versions).or_written(entry, kit.out);
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for v in data.get("loop_variables").into_iter().flat_map(|v| v.items()) {
            let Some(label) = v.get("label").and_then(|l| l.text()) else { continue };
            let constant = v.get("value_type").and_then(|t| t.text()) == Some("constant");
            let value = v.get("value");
            let term = if constant {
                let data = value.and_then(|v| crate::emit::data(v, &mut 400)).unwrap_or(Data::Null);
                kit.b.lit(data, at)
            } else {
                self.selected(kit, value, env, Data::Null, at)
            };
            if fields.iter().all(|(n, _)| &**n != label) {
                fields.push((label.into(), term));
            }
        }
        let first = kit.b.add(Term::Record(fields), at);
        let run = self.fix(kit, turn, bound, first, at);
        kit.close();
        kit.b.let_in(vec![("$outer".into(), outer)], run, at)
    }

    fn assign(&mut self, kit: &mut Kit<'_>, data: Node<'d>, env: &Env, at: Span) -> TermId {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let old = data.get("assigned_variable_selector").map(|s| (s, data));
        let items = data.get("items").into_iter().flat_map(|i| i.items());
        let new = items.filter_map(|i| Some((i.get("variable_selector")?, i)));
        for (selector, item) in old.into_iter().chain(new) {
            let path: Vec<&str> = selector.items().filter_map(|s| s.text()).collect();
            let ["conversation", key] = path[..] else {
                let why = "only the conversation's variables can be assigned in the term";
                kit.out.push(undecided(codes::NOT_COMPILED, why, item.head()));
                continue;
            };
            let mode =
                ["operation", "write_mode"].iter().find_map(|k| item.get(k)?.text()).unwrap_or("over-write");
            let source = item.get("input_variable_selector").or_else(|| item.get("value"));
            let value = match source {
                _ if mode == "clear" => kit.b.lit(Data::Null, at),
                Some(s) if s.is_sequence() => self.selected(kit, Some(s), env, Data::Null, at),
                Some(s) => kit.b.lit(crate::emit::data(s, &mut 400).unwrap_or(Data::Null), at),
                None => kit.b.lit(Data::Null, at),
            };
            let before = |kit: &mut Kit<'_>| kit.b.add(Term::Recall(key.into(), None), at);
            let prim = match mode {
                "append" => Some(Prim::Append),
                "+=" | "extend" => Some(Prim::Add),
                "-=" => Some(Prim::Sub),
                "*=" => Some(Prim::Mul),
                "/=" => Some(Prim::Div),
                _ => None,
            };
            let value = match prim {
                Some(prim) => {
                    let before = before(kit);
                    kit.b.add(Term::Prim(prim, vec![before, value]), at)
                }
                None => value,
            };
            bindings.push(("_".into(), kit.b.add(Term::Remember(key.into(), None, value), at)));
        }
        let unit = kit.b.add(Term::Record(Vec::new()), at);
        if bindings.is_empty() { unit } else { kit.b.let_in(bindings, unit, at) }
    }

    fn record(&self, kit: &mut Kit<'_>, name: &str, value: TermId, at: Span) -> TermId {
        kit.b.add(Term::Record(vec![(name.into(), value)]), at)
    }
}

/// Notes that a request or tool is repeated when it fails.
fn retried(kit: &mut Kit<'_>, data: Node<'_>, kind: &str, title: &str) {
    let Some(entry) = data.entry("retry_config") else { return };
    if entry.value.get("retry_enabled").and_then(|e| e.as_bool()) != Some(true) {
        return;
    }
    let writes = match kind {
        "http-request" => {
            match data.get("method").and_then(|m| m.text()).map(str::to_ascii_lowercase).as_deref() {
                // A request of these kinds may be repeated by the rules of HTTP; one with a key is told apart by the service.
                Some("post" | "patch") if !mentions_idempotency(data) => None,
                _ => return,
            }
        }
        _ => return,
    };
    let times = entry.value.get("max_retries").and_then(|n| n.as_u64());
    kit.outline.retried(Retried { name: title.to_string(), at: entry.key.span(), times, writes });
}

/// Whether a node sends a key by which a service recognises a repeated request.
fn mentions_idempotency(node: Node<'_>) -> bool {
    let texts = node.descendants().filter_map(|n| n.as_str());
    texts.into_iter().any(|t| t.to_ascii_lowercase().contains("idempoten"))
}

/// The classes of a question classifier: id and name.
fn classes_of<'d>(data: Node<'d>) -> impl Iterator<Item = (&'d str, &'d str)> {
    let classes = data.get("classes").into_iter().flat_map(|c| c.items());
    classes.filter_map(|c| Some((c.get("id")?.text()?, c.get("name").and_then(|n| n.text()).unwrap_or(""))))
}

/// What goes with the class that a reply names; Dify takes the first for a reply that names none.
fn chosen(kit: &mut Kit<'_>, classes: &[(&str, &str)], reply: TermId, at: Span) -> TermId {
    let mut branches: Vec<Branch> = Vec::new();
    for (id, gives) in classes {
        if branches.iter().all(|b| &*b.tag != *id) {
            let body = kit.text(gives, at);
            branches.push(Branch { tag: (*id).into(), binder: None, body });
        }
    }
    let first = kit.text(classes.first().map_or("", |c| c.1), at);
    let scrutinee = kit.b.add(Term::Prim(Prim::Trim, vec![reply]), at);
    kit.b.add(Term::Case { scrutinee, branches, default: Some(first) }, at)
}

/// The type of an extracted parameter, and what stands for one that was not found.
fn parameter(kind: &str) -> (Type, Data) {
    let list = |item| (Type::list(item), Data::list(Vec::new()));
    match kind {
        "number" => (Type::Num, Data::Num(Num::ZERO)),
        "bool" | "boolean" => (Type::Bool, Data::Bool(false)),
        "array[string]" => list(Type::Str),
        "array[number]" => list(Type::Num),
        kind if kind.starts_with("array") => list(Type::Dyn),
        _ => (Type::Str, Data::str("")),
    }
}

/// The type of the structured output of a model, if it has one.
fn structure(data: Node<'_>) -> Option<Type> {
    data.get("structured_output_enabled").and_then(|e| e.as_bool()).filter(|on| *on)?;
    Some(data.at(&["structured_output", "schema"]).map_or(Type::Dyn, |s| of_schema(s, 0)))
}

/// The type of what a JSON Schema describes, as far as there is one.
fn of_schema(schema: Node<'_>, depth: u32) -> Type {
    // Deeper ones are checked where their parts are used.
    if depth > 16 {
        return Type::Dyn;
    }
    match schema.get("type").and_then(|t| t.text()) {
        Some("string") => Type::Str,
        Some("number" | "integer") => Type::Num,
        Some("boolean") => Type::Bool,
        Some("array") => Type::list(schema.get("items").map_or(Type::Dyn, |i| of_schema(i, depth + 1))),
        Some("object") => {
            let required: Vec<&str> =
                schema.get("required").into_iter().flat_map(|r| r.items()).filter_map(|r| r.text()).collect();
            let mut fields: Vec<(Name, Type)> = Vec::new();
            for p in schema.get("properties").into_iter().flat_map(|p| p.entries()) {
                let ty = of_schema(p.value, depth + 1);
                let ty = if required.contains(&p.name()) { ty } else { Type::option(ty) };
                if fields.iter().all(|(n, _)| &**n != p.name()) {
                    fields.push((p.name().into(), ty));
                }
            }
            if fields.is_empty() { Type::Dyn } else { Type::record(fields) }
        }
        _ => Type::Dyn,
    }
}

/// How the value of a node is called inside of an iteration.
fn outer_name(id: &str) -> Name {
    format!("n{id}").into()
}

const NODE_UNUSED: &[Unused] = &[
    ("desc", why::SHOWN),
    ("selected", why::SHOWN),
    ("vision", why::NOT_YET),
    ("retry_config", why::NOT_YET),
    ("error_strategy", why::NOT_YET),
    ("default_value", why::NOT_YET),
    ("error_handle_mode", why::NOT_YET),
    ("is_parallel", "items are compiled one after the other"),
    ("parallel_nums", "items are compiled one after the other"),
];

impl Steps for Run<'_, '_, '_> {
    fn step(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let data = self.data(node);
        let at = data.head();
        let kind = data.get("type").and_then(|t| t.text()).unwrap_or("");
        if !kit.budget.take(crate::kit::size(data.span()), at, kit.out) {
            return kit.unknown("a node beyond the limit", at);
        }
        for (key, why) in NODE_UNUSED.iter().filter(|(k, _)| !matches!(*k, "desc" | "selected")) {
            if let Some(e) = data.entry(key)
                && (e.value.as_bool() == Some(true) || e.value.is_mapping() && *key != "vision")
            {
                let d =
                    Diagnostic::info(codes::UNUSED_KEY, format!("`{key}` is left out: {why}"), e.key.span());
                kit.out.push(d);
            }
        }
        let title = data.get("title").and_then(|t| t.text()).unwrap_or(kind);
        retried(kit, data, kind, title);
        match kind {
            "start" => {
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for v in data.get("variables").into_iter().flat_map(|v| v.items()) {
                    if let Some(name) = v.get("variable").and_then(|n| n.text())
                        && fields.iter().all(|(n, _)| &**n != name)
                    {
                        match v.get("type").and_then(|t| t.text()) {
                            Some("file") => kit.typed_input(name, Type::Dyn),
                            Some("file-list") => kit.typed_input(name, Type::list(Type::Dyn)),
                            _ => {}
                        }
                        let value = kit.input(name, v.head());
                        fields.push((name.into(), value));
                    }
                }
                kit.b.add(Term::Record(fields), at)
            }
            "iteration-start" | "loop-start" | "if-else" | "loop-end" => {
                kit.b.add(Term::Record(Vec::new()), at)
            }
            "llm" => match structure(data) {
                Some(ty) => {
                    let value = self.oracle(kit, data, env, Some(ty), at);
                    let said = |kit: &mut Kit<'_>| kit.b.var("$said", at);
                    let (text, structured) = (said(kit), said(kit));
                    let text = kit.b.add(Term::Prim(Prim::ToJson, vec![text]), at);
                    let fields = vec![("text".into(), text), ("structured_output".into(), structured)];
                    let record = kit.b.add(Term::Record(fields), at);
                    kit.b.let_in(vec![("$said".into(), value)], record, at)
                }
                None => {
                    let text = self.oracle(kit, data, env, None, at);
                    self.record(kit, "text", text, at)
                }
            },
            "agent" => {
                let text = self.agent(kit, data, env, at);
                self.record(kit, "text", text, at)
            }
            "question-classifier" => {
                let (mut params, model_at) = model(kit, data);
                params.purpose = Some(title.into());
                let classes = data.get("classes").into_iter().flat_map(|c| c.items());
                let mut text = String::from("Classify the question. Reply with the id of one class.\n");
                for c in classes {
                    let part = |k: &str| c.get(k).and_then(|v| v.text()).unwrap_or("");
                    text.push_str(&format!("{}: {}\n", part("id"), part("name")));
                }
                if let Some((more, _)) = first_text(data, &["instruction", "instructions"]) {
                    text.push_str(more);
                }
                let prompt = self.text(kit, &text, env, None, at);
                let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
                let query = self.selected(kit, data.get("query_variable_selector"), env, Data::str(""), at);
                let reply = kit.b.app(oracle, query, at);
                let said = |kit: &mut Kit<'_>| kit.b.var("$said", at);
                let names: Vec<(&str, &str)> = classes_of(data).collect();
                let (class, id, of) = (said(kit), said(kit), said(kit));
                let name = chosen(kit, &names, of, at);
                let fields =
                    vec![("class".into(), class), ("class_id".into(), id), ("class_name".into(), name)];
                let record = kit.b.add(Term::Record(fields), at);
                kit.b.let_in(vec![("$said".into(), reply)], record, at)
            }
            "parameter-extractor" => {
                let mut fields: Vec<(Name, Type, Data)> = Vec::new();
                for p in data.get("parameters").into_iter().flat_map(|p| p.items()) {
                    let Some(name) = p.get("name").and_then(|n| n.text()) else { continue };
                    let (ty, missing) = parameter(p.get("type").and_then(|t| t.text()).unwrap_or(""));
                    if fields.iter().all(|(n, ..)| &**n != name) {
                        fields.push((name.into(), ty, missing));
                    }
                }
                let (mut params, model_at) = model(kit, data);
                params.purpose = Some(title.into());
                let asked_for = fields.iter().map(|(n, ty, _)| (n.clone(), Type::option(ty.clone())));
                params.result = Some(Type::record(asked_for.collect::<Vec<_>>()));
                params.repair = 1;
                let text = first_text(data, &["instruction"]).map_or("Extract the parameters.", |(t, _)| t);
                let prompt = self.text(kit, text, env, None, at);
                let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
                let query = self.selected(kit, data.get("query"), env, Data::str(""), at);
                let query = kit.b.add(Term::Prim(Prim::ToStr, vec![query]), at);
                let said = kit.b.app(oracle, query, at);
                // What was not found is empty.
                let mut found: Vec<(Name, TermId)> = Vec::new();
                for (name, _, missing) in fields {
                    let all = kit.b.var("$said", at);
                    let part = kit.b.add(Term::Field(all, name.clone()), at);
                    let (seen, value) = (kit.b.var("$part", at), kit.b.var("$part", at));
                    let test = kit.b.add(Term::Prim(Prim::IsNull, vec![seen]), at);
                    let missing = kit.b.lit(missing, at);
                    let value = kit.b.add(Term::If(test, missing, value, IfSugar::Plain), at);
                    let value = kit.b.let_in(vec![("$part".into(), part)], value, at);
                    found.push((name, value));
                }
                for (name, value) in [("__is_success", Data::Num(Num::ONE)), ("__reason", Data::str(""))] {
                    found.push((name.into(), kit.b.lit(value, at)));
                }
                let record = kit.b.add(Term::Record(found), at);
                kit.b.let_in(vec![("$said".into(), said)], record, at)
            }
            "code" => {
                let fields = self.variables(kit, data.get("variables"), env, at);
                self.tool(kit, &format!("code: {title}"), fields, at)
            }
            "tool" => {
                let name = data.get("tool_name").and_then(|n| n.text()).unwrap_or(title);
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for e in data.get("tool_parameters").into_iter().flat_map(|p| p.entries()) {
                    let value = e.value.get("value").unwrap_or(e.value);
                    let term = match value.text() {
                        Some(text) => self.text(kit, text, env, None, at),
                        None if value.is_sequence() => self.selected(kit, Some(value), env, Data::Null, at),
                        None => kit.b.lit(crate::emit::data(value, &mut 400).unwrap_or(Data::Null), at),
                    };
                    fields.push((e.name().into(), term));
                }
                self.tool(kit, name, fields, at)
            }
            "http-request" => {
                let mut fields: Vec<(Name, TermId)> = Vec::new();
                for key in ["method", "url", "params"] {
                    if let Some((text, e)) = first_text(data, &[key]) {
                        let term = self.text(kit, text, env, None, value_span(&e));
                        fields.push((key.into(), term));
                    }
                }
                let body = data
                    .get("body")
                    .and_then(|b| b.get("data"))
                    .and_then(|d| d.text().or_else(|| d.items().next()?.get("value")?.text()));
                if let Some(body) = body {
                    let term = self.text(kit, body, env, None, at);
                    fields.push(("body".into(), term));
                }
                self.tool(kit, "http_request", fields, at)
            }
            "knowledge-retrieval" => {
                let query = self.selected(kit, data.get("query_variable_selector"), env, Data::str(""), at);
                self.tool(kit, "knowledge_retrieval", vec![("query".into(), query)], at)
            }
            "document-extractor" | "list-operator" => {
                let selector = data.get("variable_selector").or_else(|| data.get("variable"));
                let input = self.selected(kit, selector, env, Data::Null, at);
                self.tool(kit, &kind.replace('-', "_"), vec![("variable".into(), input)], at)
            }
            "template-transform" => {
                let text = first_text(data, &["template"]);
                let (text, place) = text.map_or(("", at), |(t, e)| (t, value_span(&e)));
                let output = if text.contains("{%") {
                    // Jinja with statements: rendered by a tool, from the same variables.
                    let fields = self.variables(kit, data.get("variables"), env, at);
                    let rendered = self.tool(kit, &format!("template: {title}"), fields, place);
                    kit.b.add(Term::Prim(Prim::ToStr, vec![rendered]), place)
                } else {
                    self.text(kit, text, env, data.get("variables"), place)
                };
                self.record(kit, "output", output, at)
            }
            "answer" => {
                let (text, place) =
                    first_text(data, &["answer"]).map_or(("", at), |(t, e)| (t, value_span(&e)));
                let answer = self.text(kit, text, env, None, place);
                self.record(kit, "answer", answer, at)
            }
            "end" => {
                let fields = self.variables(kit, data.get("outputs"), env, at);
                kit.b.add(Term::Record(fields), at)
            }
            "variable-aggregator" | "variable-assigner" => {
                // The first of the variables that has a value.
                let mut value = kit.b.lit(Data::Null, at);
                let list: Vec<Node<'_>> = data.get("variables").into_iter().flat_map(|v| v.items()).collect();
                for selector in list.into_iter().rev() {
                    let test = self.selected(kit, Some(selector), env, Data::Null, at);
                    let test = kit.b.add(Term::Prim(Prim::IsNull, vec![test]), at);
                    let this = self.selected(kit, Some(selector), env, Data::Null, at);
                    value = kit.b.add(Term::If(test, value, this, IfSugar::Plain), at);
                }
                self.record(kit, "output", value, at)
            }
            "assigner" => self.assign(kit, data, env, at),
            "iteration" => self.iteration(kit, node, env, at),
            "loop" => self.repetition(kit, node, env, at),
            other => kit.undecided(codes::NOT_COMPILED, format!("a node of type `{}`", clip(other)), at),
        }
    }

    fn reads(&self, node: usize) -> Vec<usize> {
        let mut read = Vec::new();
        let mut put = |id: &str| {
            if let Some(n) = self.flow.index.get(id)
                && !read.contains(n)
            {
                read.push(*n);
            }
        };
        let kind = self.data(node).get("type").and_then(|t| t.text()).unwrap_or("");
        // What is inside of an iteration may read anything that ran before.
        if matches!(kind, "iteration" | "loop") {
            return (0..self.here.len()).filter(|n| *n != node).collect();
        }
        for n in self.data(node).descendants() {
            if let Some(first) = n.items().next().and_then(|f| f.text()) {
                put(first);
            }
            for part in n.as_str().map_or(Vec::new(), holes) {
                if let Part::Hole(name) = part {
                    put(name.split('.').next().unwrap_or(""));
                }
            }
        }
        read
    }

    fn choose(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let data = self.data(node);
        let at = data.head();
        match data.get("type").and_then(|t| t.text()) {
            Some("question-classifier") => {
                let ids: Vec<(&str, &str)> = classes_of(data).map(|(id, _)| (id, id)).collect();
                let reply = env.read(kit, node, &["class"], Data::str(""), at);
                chosen(kit, &ids, reply, at)
            }
            Some("if-else") => {
                let mut cases: Vec<(&str, Node<'_>)> = Vec::new();
                for c in data.get("cases").into_iter().flat_map(|c| c.items()) {
                    let id = first(c, &["case_id", "id"]).and_then(|e| e.value.text()).unwrap_or("true");
                    cases.push((id, c));
                }
                if cases.is_empty() {
                    cases.push(("true", data));
                }
                let mut otherwise = kit.text("false", at);
                for (id, case) in cases.into_iter().rev() {
                    let test = self.conditions(kit, case, "conditions", env, at);
                    let label = kit.text(id, at);
                    otherwise = kit.b.add(Term::If(test, label, otherwise, IfSugar::Plain), at);
                }
                otherwise
            }
            _ => {
                // The edge of a failure, which the term has as an error.
                kit.text("success-branch", at)
            }
        }
    }

    fn outcomes(&self, node: usize) -> Option<Vec<(String, Span)>> {
        let data = self.data(node);
        let listed = |key: &str, id: &str| -> Option<Vec<(String, Span)>> {
            let items = data.get(key)?.items();
            Some(items.filter_map(|c| Some((c.get(id)?.text()?.to_string(), c.head()))).collect())
        };
        match data.get("type").and_then(|t| t.text())? {
            "question-classifier" => listed("classes", "id"),
            "if-else" => {
                let mut all = match listed("cases", "case_id") {
                    Some(cases) => cases,
                    None => vec![("true".to_string(), data.head())],
                };
                all.push(("false".into(), data.head()));
                Some(all)
            }
            _ => None,
        }
    }

    fn role(&self, node: usize) -> NodeRole {
        match self.data(node).get("type").and_then(|t| t.text()) {
            Some("human-input") => NodeRole::Approves,
            _ => NodeRole::Plain,
        }
    }

    fn outputs(&self) -> Vec<usize> {
        let ends: Vec<usize> = (0..self.here.len())
            .filter(|n| matches!(self.data(*n).get("type").and_then(|t| t.text()), Some("answer" | "end")))
            .collect();
        match self.flow.inside {
            None => ends,
            // An iteration collects what its `output_selector` names.
            Some(id) => {
                let around = self.flow.nodes.iter().find(|(n, _)| *n == id);
                let selector = around.and_then(|(_, n)| n.at(&["data", "output_selector"]));
                let of = selector.and_then(|s| s.items().next()?.text());
                of.and_then(|o| self.flow.index.get(o).copied()).into_iter().collect()
            }
        }
    }

    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId {
        let at = self.flow.graph.head();
        if let Some(id) = self.flow.inside {
            let around = self.flow.nodes.iter().find(|(n, _)| *n == id);
            let selector = around.and_then(|(_, n)| n.at(&["data", "output_selector"]));
            return self.selected(kit, selector, env, Data::Null, at);
        }
        let outputs = self.outputs();
        let mut text = Template::new(at);
        let ran: Vec<usize> = env.order.iter().copied().filter(|n| outputs.contains(n)).collect();
        for (i, node) in ran.iter().enumerate() {
            if i > 0 {
                text.text("\n");
            }
            let is_answer = self.data(*node).get("type").and_then(|t| t.text()) == Some("answer");
            let path: &[&str] = if is_answer { &["answer"] } else { &[] };
            let value = env.read(kit, *node, path, Data::str(""), at);
            text.term(value);
        }
        text.build(&mut kit.b)
    }

    fn bound(&mut self, _: &mut Kit<'_>) -> LoopBound {
        LoopBound {
            bound: Bound::Finite(500),
            origin: Some("the most steps of a Dify workflow, 500".into()),
            span: None,
        }
    }
}
