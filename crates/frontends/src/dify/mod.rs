//! Dify exports: workflows, chatflows, and chat, completion and agent apps.
//!
//! | source | term |
//! |---|---|
//! | `llm` | an oracle: system prompts are its prompt, the rest is what it is asked |
//! | `agent` | a loop around a model that is offered its tools |
//! | `tool`, `code`, `http-request`, `knowledge-retrieval`, `document-extractor`, `list-operator`, `datasource`, `human-input` | a tool |
//! | `if-else`, `question-classifier` | a decision between the edges that leave it; the class is there by id and by name |
//! | `template-transform`, `answer`, `end`, `variable-aggregator` | texts and records of what was given |
//! | `parameter-extractor`, `llm` with structured output | an oracle whose reply is a record; a parameter that was not found is empty |
//! | `iteration`, `loop`, `assigner` | `fix` around the nodes inside, stores (`repeat`) |
//! | `retry_config`, `error_strategy` | `try` (`failure`) |
//! | `{{#node.field#}}` | a part of what the node gave; `sys.query` is what the app is asked; what no node gives is unknown (`outputs`) |
//!
//! Source: langgenius/dify, `api/core/workflow/nodes`; the export's version 0.1 to 0.6.

mod conditions;
mod failure;
mod nodes;
mod outputs;
mod repeat;

use nodes::{chosen, classes_of};

use crate::defaults;
use core_ir::{Data, IfSugar, KeyDecl, LabelSpec, ModelParams, Name, Prim, StoreDecl, Term, TermId, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Part, Template, Unused, codes, report_keys, value_span};
use frontend_kit::graph::{Edge, Env, Graph, GraphNode, Steps, lower};
use frontend_kit::kit::{Action, Agent, Kit, Units, first, first_text, mark, setting};
use frontend_kit::outline::NodeRole;
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::why;
use frontend_kit::turn::Carried;
use std::collections::{HashMap, HashSet};

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
            // Each model has a schema of its settings.
            filters_settings: true,
            ends_loops: Some("Dify ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the model is to do: `prompt_template`",
                model: "name one: `model.name`",
                bound: "state it: `max_iteration`, or `loop_count` of a loop",
                ..Words::default()
            },
            ..Facts::default()
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
                    let mut flow = Flow {
                        nodes: &nodes,
                        graph,
                        kept: declared(root).filter_map(|v| v.get("name")?.text()).collect(),
                        inside: None,
                        index: HashMap::new(),
                        handed: HashSet::new(),
                    };
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

/// An agent that is asked by ReAct takes one action at a time; with function calling all calls of a reply are
/// carried out.
fn carried(strategy: Option<Node<'_>>) -> Carried {
    let name = strategy.and_then(|s| s.text()).unwrap_or("").to_ascii_lowercase();
    if name == "react" || name == "cot" { Carried::First } else { Carried::All }
}

/// A chat, completion or agent app.
fn app(kit: &mut Kit<'_>, config: Node<'_>, name: &str) -> TermId {
    let head = config.head();
    if let Err(term) = kit.open(name, config.span(), head, frontend_kit::kit::size(config.span())) {
        return term;
    }
    let prompt = match first_text(config, &["pre_prompt"]) {
        Some((text, entry)) => kit.filled(text, value_span(&entry), holes),
        None => kit.text("", head),
    };
    let (params, model_at) = model(kit, config);
    let mode = config.get("agent_mode");
    let mut actions = Vec::new();
    for tool in mode.and_then(|m| m.get("tools")).into_iter().flat_map(|t| t.items()) {
        if tool.get("enabled").and_then(|e| e.as_bool()) != Some(false)
            && let Some((tool_name, _)) = first_text(tool, &["tool_name", "provider_name"])
        {
            actions.push(Action::tool(tool_name, tool.head()));
        }
    }
    for set in config.at(&["dataset_configs", "datasets", "datasets"]).into_iter().flat_map(|d| d.items()) {
        if let Some(id) = set.at(&["dataset", "id"]).and_then(|i| i.text()) {
            actions.push(Action::tool(format!("dataset_{id}"), set.head()));
        }
    }
    let bound = defaults::bound(&defaults::DIFY_ITERATIONS, kit.versions);
    let bound = bound.or_written(mode.and_then(|m| m.entry("max_iteration")), kit.out);
    let agent = Agent { name, head, prompt, params, model_at, actions, actions_at: None, bound };
    let term = kit.agent_with_request(agent, carried(mode.and_then(|m| m.get("strategy"))), None);
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

/// The conversation's variables, as they are declared.
fn declared<'d>(root: Node<'d>) -> impl Iterator<Item = Node<'d>> {
    root.at(&["workflow", "conversation_variables"]).into_iter().flat_map(|v| v.items())
}

/// The conversation's variables as a store around the whole.
fn remembering(kit: &mut Kit<'_>, root: Node<'_>, term: TermId, at: Span) -> TermId {
    let mut keys: Vec<KeyDecl> = Vec::new();
    for v in declared(root) {
        let Some(name) = v.get("name").and_then(|n| n.text()) else { continue };
        if keys.iter().all(|k| &*k.name != name) {
            let initial = v.get("value").and_then(|v| frontend_kit::emit::data(v, &mut 400));
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
    /// The variables of the conversation.
    kept: HashSet<&'d str>,
    /// The iteration or loop around.
    inside: Option<&'d str>,
    /// Numbers of the nodes at this level.
    index: HashMap<&'d str, usize>,
    /// Nodes of the level around whose values are handed in as `$outer`.
    handed: HashSet<&'d str>,
}

const INNER: &[&str] = &["iteration_id", "loop_id"];

/// The iteration or loop that a node stands in.
fn around<'d>(node: Node<'d>) -> Option<&'d str> {
    let data = node.get("data")?;
    let named = INNER.iter().find_map(|k| data.get(k)?.text());
    named.or_else(|| node.get("parentId")?.text())
}

/// The key of a loop's variable.
fn loop_key(id: &str, label: &str) -> Name {
    format!("{id}.{label}").into()
}

impl<'n, 'd> Flow<'n, 'd> {
    /// All nodes with their `data`, notes left out.
    fn nodes(graph: Node<'d>) -> Vec<(&'d str, Node<'d>)> {
        let items = graph.get("nodes").into_iter().flat_map(|n| n.items());
        let known = items.filter_map(|n| Some((n.get("id")?.text()?, n)));
        known.filter(|(_, n)| n.get("type").and_then(|t| t.text()) != Some("custom-note")).collect()
    }

    fn lower(&mut self, kit: &mut Kit<'_>, at: Span) -> TermId {
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
        let triggers = ["trigger-webhook", "trigger-schedule", "trigger-plugin", "datasource"];
        let start = started("start")
            .or_else(|| triggers.iter().find_map(|kind| started(kind)))
            .or_else(|| started("iteration-start"))
            .or_else(|| started("loop-start"))
            .or_else(free)
            .unwrap_or(0);
        let graph = Graph { nodes: graph_nodes, edges, start, at };
        let mut steps = DifyLowering { flow: self, here: &here };
        lower(kit, &graph, &mut steps)
    }
}

struct DifyLowering<'f, 'n, 'd> {
    flow: &'f Flow<'n, 'd>,
    here: &'f [(&'d str, Node<'d>)],
}

impl<'d> DifyLowering<'_, '_, 'd> {
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
            [id, label, rest @ ..] if self.is_loop_around(id) && *label != "index" => {
                let held = kit.b.add(Term::Recall(loop_key(id, label), None), at);
                rest.iter().fold(held, |v, f| kit.b.add(Term::Field(v, (*f).into()), at))
            }
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
                if let Some(value) = self.instead(kit, path, &missing, at) {
                    return value;
                }
                match self.flow.index.get(id) {
                    Some(node) => env.read(kit, *node, rest, missing, at),
                    // A node of the graph around: what it gave is handed in by name.
                    None if self.flow.handed.contains(id) => {
                        let outer = kit.b.var("$outer", at);
                        let of = kit.b.add(Term::Field(outer, outer_name(id)), at);
                        rest.iter().fold(of, |v, f| kit.b.add(Term::Field(v, (*f).into()), at))
                    }
                    None => {
                        let why =
                            "the output of a node that did not run before this one, or is inside another";
                        kit.undecided(codes::NOT_COMPILED, why.into(), at)
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
                            let of = selector.items().filter_map(|n| n.text());
                            let path: Vec<&str> = of.chain(path[1..].iter().copied()).collect();
                            self.select(kit, &path, env, Data::str(""), at)
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

    /// Lowers the parameters of a tool or a data source: templates, selectors, or plain values.
    fn parameters(
        &self,
        kit: &mut Kit<'_>,
        given: Option<Node<'d>>,
        env: &Env,
        at: Span,
    ) -> Vec<(Name, TermId)> {
        let mut fields = Vec::new();
        for e in given.into_iter().flat_map(|p| p.entries()) {
            let value = e.value.get("value").unwrap_or(e.value);
            let term = match value.text() {
                Some(text) => self.text(kit, text, env, None, at),
                None if value.is_sequence() => self.selected(kit, Some(value), env, Data::Null, at),
                None => kit.b.lit(frontend_kit::emit::data(value, &mut 400).unwrap_or(Data::Null), at),
            };
            fields.push((e.name().into(), term));
        }
        fields
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
                let constant = v.get("value_type").and_then(|t| t.text()) == Some("constant");
                let value = match v.get("value").filter(|_| constant && v.get("value_selector").is_none()) {
                    Some(value) => {
                        kit.b.lit(frontend_kit::emit::data(value, &mut 400).unwrap_or(Data::Null), at)
                    }
                    None => self.selected(kit, v.get("value_selector"), env, Data::Null, at),
                };
                fields.push((name.into(), value));
            }
        }
        fields
    }

    /// The first of some variables that has a value.
    fn first_of(&self, kit: &mut Kit<'_>, list: Option<Node<'d>>, env: &Env, at: Span) -> TermId {
        let mut value = kit.b.lit(Data::Null, at);
        let list: Vec<Node<'_>> = list.into_iter().flat_map(|v| v.items()).collect();
        for selector in list.into_iter().rev() {
            let path: Vec<&str> = selector.items().filter_map(|n| n.text()).collect();
            // Dify passes over what is not there.
            if self.lacks(&path) {
                self.absent(kit, &path, selector.head());
                continue;
            }
            let test = self.selected(kit, Some(selector), env, Data::Null, at);
            let test = kit.b.add(Term::Prim(Prim::IsNull, vec![test]), at);
            let this = self.selected(kit, Some(selector), env, Data::Null, at);
            value = kit.b.add(Term::If(test, value, this, IfSugar::Plain), at);
        }
        value
    }

    fn record(&self, kit: &mut Kit<'_>, name: &str, value: TermId, at: Span) -> TermId {
        kit.b.add(Term::Record(vec![(name.into(), value)]), at)
    }
}

/// Returns the variable of an outer node's value within an iteration.
fn outer_name(id: &str) -> Name {
    format!("n{id}").into()
}

const NODE_UNUSED: &[Unused] = &[
    ("vision", "pictures that the model is shown are not compiled yet"),
    ("is_parallel", "items are compiled one after the other"),
];

impl Steps for DifyLowering<'_, '_, '_> {
    fn step(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let data = self.data(node);
        let at = data.head();
        let kind = data.get("type").and_then(|t| t.text()).unwrap_or("");
        if !kit.budget.take(frontend_kit::kit::size(data.span()), at, kit.out) {
            return kit.unknown("a node beyond the limit", at);
        }
        for (key, why) in NODE_UNUSED {
            if let Some(e) = data.entry(key)
                && (e.value.as_bool() == Some(true)
                    || e.value.get("enabled").and_then(|on| on.as_bool()) == Some(true))
            {
                let d =
                    Diagnostic::info(codes::UNUSED_KEY, format!("`{key}` is left out: {why}"), e.key.span());
                kit.out.push(d);
            }
        }
        let title = data.get("title").and_then(|t| t.text()).unwrap_or(kind);
        failure::retried(kit, data, kind, title);
        let value = self.does(kit, node, kind, title, env);
        failure::handled(kit, data, kind, value, at)
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
            Some("human-input") => {
                let action = env.read(kit, node, &["__action_id"], Data::str(""), at);
                kit.b.add(Term::Prim(Prim::ToStr, vec![action]), at)
            }
            _ if failure::branches(data) => {
                let failed = env.read(kit, node, &[failure::FAILED], Data::Bool(false), at);
                let (no, yes) = (kit.text(failure::FAIL_BRANCH, at), kit.text(failure::SUCCESS_BRANCH, at));
                kit.b.add(Term::If(failed, no, yes, IfSugar::Plain), at)
            }
            // Without the strategy, an edge of a failure is never taken: the failure ends the run.
            _ => kit.text(failure::SUCCESS_BRANCH, at),
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
            _ if failure::branches(data) => {
                let both = [failure::SUCCESS_BRANCH, failure::FAIL_BRANCH];
                Some(both.map(|b| (b.to_string(), data.head())).to_vec())
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
                let around = self.flow.nodes.iter().find(|(n, _)| *n == id).map(|(_, n)| *n);
                if let Some(of) = around.filter(|_| self.is_loop_around(id)) {
                    // What the break conditions look at, and the nodes that end the loop.
                    let conditions = of.at(&["data", "break_conditions"]).into_iter().flat_map(|b| b.items());
                    let read = conditions.filter_map(|c| c.get("variable_selector")?.items().next()?.text());
                    let read = read.filter_map(|id| self.flow.index.get(id).copied());
                    let ends = (0..self.here.len())
                        .filter(|n| self.data(*n).get("type").and_then(|t| t.text()) == Some("loop-end"));
                    return read.chain(ends).collect();
                }
                let selector = around.and_then(|n| n.at(&["data", "output_selector"]));
                let of = selector.and_then(|s| s.items().next()?.text());
                of.and_then(|o| self.flow.index.get(o).copied()).into_iter().collect()
            }
        }
    }

    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId {
        let at = self.flow.graph.head();
        if let Some(id) = self.flow.inside {
            let around = self.flow.nodes.iter().find(|(n, _)| *n == id).map(|(_, n)| *n);
            if let Some(of) = around.filter(|_| self.is_loop_around(id)) {
                return self.was_last(kit, of, env, at);
            }
            let selector = around.and_then(|n| n.at(&["data", "output_selector"]));
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
        LoopBound::by_default(500, "the most steps of a Dify workflow, 500")
    }
}
