//! Plan of a `StateGraph`: nodes, edges, routers, and the channels of its state.

use super::GraphReader;
use crate::py::{self, Given, field};
use core_ir::{Bound, Data};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{LoopBound, clip, codes, undecided};
use python::{Object, ObjectId, PyKind, Value};
use std::collections::HashMap;

/// The names that the framework gives to where a graph begins and ends.
pub(super) const START: &str = "__start__";
pub(super) const END: &str = "__end__";

/// Reducer that merges updates of a key.
#[derive(Clone, Debug)]
pub(super) enum Reducer {
    /// The new value takes the place of the old one.
    Last,
    /// Messages are added to a conversation.
    Messages,
    /// `operator.add`.
    Add,
    /// A function of the project.
    Function(Value),
    /// Unknown, with the reason.
    Unknown(String),
}

/// A key of the state.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub name: String,
    pub at: Span,
    pub reducer: Reducer,
    /// Initial value.
    pub initial: Data,
    /// True if its annotation says that it is a text.
    pub text: bool,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub name: String,
    pub at: Span,
    pub value: Value,
    /// Nodes that it says it may go to.
    pub ends: Vec<String>,
}

/// Target of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    Node(usize),
    End,
}

/// A decision after a node; of no node, at the beginning.
#[derive(Clone, Debug)]
pub(super) struct Router {
    pub from: Option<usize>,
    pub path: Value,
    /// Map from results of the function to nodes.
    pub map: Option<Vec<(String, String, Span)>>,
    /// The known part of a map that is not known as a whole.
    pub partial: Option<Vec<(String, String, Span)>>,
    pub at: Span,
}

/// A graph.
#[derive(Debug)]
pub(super) struct Plan {
    pub at: Span,
    pub channels: Vec<Channel>,
    /// True if the state has only the declared keys.
    pub declared: bool,
    pub nodes: Vec<Node>,
    /// Their numbers by name.
    numbers: HashMap<String, usize>,
    /// From no node: from the beginning.
    pub edges: Vec<(Option<usize>, Target, Span)>,
    /// Nodes that all have to be done.
    pub joins: Vec<(Vec<usize>, Target)>,
    pub routers: Vec<Router>,
    pub diagnostics: Vec<Diagnostic>,
    /// The keys that it gives, if it says so.
    pub output: Option<Vec<String>>,
    /// True if it has nodes of which nothing is known, their names included.
    unnamed: bool,
    /// True if whether the call that is read now is done is not known.
    maybe: bool,
}

impl Plan {
    pub fn index(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    pub fn target(&self, name: &str) -> Option<Target> {
        if name == END { Some(Target::End) } else { self.index(name).map(Target::Node) }
    }

    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.iter().find(|c| c.name == name)
    }

    /// The key that holds the conversation.
    pub fn messages(&self) -> Option<&str> {
        self.channels.iter().find(|c| matches!(c.reducer, Reducer::Messages)).map(|c| c.name.as_str())
    }
}

const GRAPH_USED: &[&str] = &["state_schema", "input_schema", "output_schema", "input", "output"];
const GRAPH_UNUSED: &[frontend_kit::emit::Unused] = &[
    ("config_schema", "what runs are configured with is not compiled"),
    ("context_schema", "what runs are configured with is not compiled"),
    ("name", frontend_kit::shape::why::SHOWN),
];
const NODE_USED: &[&str] = &["node", "action", "destinations"];
const NODE_UNUSED: &[frontend_kit::emit::Unused] = &[
    ("metadata", frontend_kit::shape::why::SHOWN),
    ("retry", frontend_kit::shape::why::NOT_YET),
    ("retry_policy", frontend_kit::shape::why::NOT_YET),
    ("cache_policy", frontend_kit::shape::why::RUNTIME),
    ("timeout", frontend_kit::shape::why::NOT_YET),
    ("error_handler", frontend_kit::shape::why::NOT_YET),
    ("defer", frontend_kit::shape::why::NOT_YET),
    ("input_schema", "the node gets the whole state"),
    ("input", "the node gets the whole state"),
];

/// Methods that run a graph or an agent.
const RUNS: &[&str] = &["invoke", "ainvoke", "stream", "astream", "astream_events", "batch"];

impl GraphReader<'_, '_> {
    /// Returns true for an object that builds a graph.
    pub fn is_graph(&self, object: &Object) -> bool {
        object.base.is_none()
            && matches!(object.short(), "StateGraph" | "MessageGraph" | "Graph")
            && (object.package() == "langgraph" || object.class.is_some())
    }

    /// The name of a node that a value represents.
    pub fn node_name(&self, value: &Value) -> Option<String> {
        match &self.world.resolve_env(value).kind {
            PyKind::Str(s) => Some(s.to_string()),
            PyKind::External(name) if name.ends_with(".START") => Some(START.into()),
            PyKind::External(name) if name.ends_with(".END") => Some(END.into()),
            PyKind::Object(_) => self.enum_text(value).map(str::to_string),
            _ => None,
        }
    }

    /// The text of a member of an enumeration.
    pub fn enum_text<'v>(&'v self, value: &'v Value) -> Option<&'v str> {
        let (_, object) = self.world.object_of(value)?;
        let class = object.class?;
        self.world
            .derives(class, |n| n.ends_with("Enum"))
            .then(|| object.attr("value"))?
            .and_then(|v| v.as_str())
    }

    /// Reads what a graph is built of.
    pub fn plan(&self, id: ObjectId) -> Plan {
        let object = self.world.object(id);
        let mut plan = Plan {
            at: object.span,
            channels: Vec::new(),
            declared: true,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            edges: Vec::new(),
            joins: Vec::new(),
            routers: Vec::new(),
            diagnostics: Vec::new(),
            output: None,
            unnamed: false,
            maybe: false,
        };
        py::report(object, GRAPH_USED, GRAPH_UNUSED, "a graph", &mut plan.diagnostics);
        self.channels(object, &mut plan);
        let calls: Vec<(&str, &Object)> = self
            .world
            .method_chain(id)
            .into_iter()
            .filter(|(_, o)| o.callee.matches(".compile").count() == 0)
            .map(|(m, o)| (&*m.name, o))
            .collect();
        // Nodes first: edges may be written before them.
        for (name, call) in &calls {
            match *name {
                "add_node" => self.add_node(call, &mut plan),
                "add_sequence" => {
                    for item in py::field(call, Some(0), "nodes")
                        .and_then(|g| self.world.items(g.value))
                        .unwrap_or(&[])
                    {
                        match self.world.items(item) {
                            Some([name, value]) => {
                                let name = self.node_name(name);
                                self.push_node(name, value, call.span, &mut plan);
                            }
                            _ => self.push_node(None, item, call.span, &mut plan),
                        }
                    }
                }
                _ => {}
            }
        }
        for (name, call) in &calls {
            if call.maybe
                && !call.explored
                && matches!(*name, "add_edge" | "add_conditional_edges" | "add_node")
            {
                let message = format!("whether this `{name}` is done is not known; it counts as done");
                plan.diagnostics.push(undecided(codes::NOT_COMPILED, message, call.span));
            }
            plan.maybe = call.maybe;
            self.wire(name, call, &mut plan);
        }
        self.private_channels(&mut plan);
        if !plan.declared {
            self.guess_channels(&mut plan);
        }
        plan
    }

    fn wire(&self, name: &str, call: &Object, plan: &mut Plan) {
        let given = |i, n| field(call, Some(i), n);
        match name {
            "add_edge" => {
                let (Some(from), Some(to)) = (given(0, "start_key"), given(1, "end_key")) else { return };
                if let Some(items) = self.world.items(from.value) {
                    let all: Vec<Option<usize>> =
                        items.iter().map(|v| plan.index(&self.node_name(v)?)).collect();
                    let known: Vec<usize> = all.iter().filter_map(|n| *n).collect();
                    match self.end_of(to.value, to.at, plan) {
                        Some(to) if known.len() == all.len() => plan.joins.push((known, to)),
                        _ => self.undefined(from.value, from.at, plan),
                    }
                    return;
                }
                let Some(from) = self.begin_of(from.value, from.at, plan) else { return };
                if let Some(to) = self.end_of(to.value, to.at, plan) {
                    plan.edges.push((from, to, call.span));
                }
            }
            "set_entry_point" => {
                if let Some(to) = given(0, "key").and_then(|g| self.end_of(g.value, g.at, plan)) {
                    plan.edges.push((None, to, call.span));
                }
            }
            "set_finish_point" => {
                if let Some(from) = given(0, "key").and_then(|g| self.begin_of(g.value, g.at, plan)) {
                    plan.edges.push((from, Target::End, call.span));
                }
            }
            "add_conditional_edges" => {
                let (Some(from), Some(path)) = (given(0, "source"), given(1, "path")) else { return };
                let Some(from) = self.begin_of(from.value, from.at, plan) else { return };
                plan.routers.push(self.router(from, path, given(2, "path_map")));
                if let Some(then) = given(3, "then") {
                    let message = "`then` is not compiled: the framework removed this argument";
                    plan.diagnostics.push(undecided(codes::NOT_COMPILED, message, then.at));
                }
            }
            "set_conditional_entry_point" => {
                let Some(path) = given(0, "path") else { return };
                plan.routers.push(self.router(None, path, given(1, "path_map")));
            }
            "add_sequence" => {
                let items = given(0, "nodes").and_then(|g| self.world.items(g.value)).unwrap_or(&[]);
                let names: Vec<Option<usize>> = items
                    .iter()
                    .map(|item| {
                        let name = match self.world.items(item) {
                            Some([name, _]) => self.node_name(name),
                            _ => self.name_of_node(item),
                        };
                        plan.index(&name?)
                    })
                    .collect();
                for pair in names.windows(2) {
                    if let [Some(a), Some(b)] = pair {
                        plan.edges.push((Some(*a), Target::Node(*b), call.span));
                    }
                }
            }
            _ => {}
        }
    }

    fn router(&self, from: Option<usize>, path: Given<'_>, map: Option<Given<'_>>) -> Router {
        let open = match map.map(|g| &self.world.resolve_env(g.value).kind) {
            Some(PyKind::Dict(id)) => self.world.dict(*id).open.is_some(),
            _ => false,
        };
        let entries = map.and_then(|g| self.path_map(g.value));
        let (map, partial) = if open { (None, entries) } else { (entries, None) };
        Router { from, path: path.value.clone(), map, partial, at: path.at }
    }

    fn path_map(&self, value: &Value) -> Option<Vec<(String, String, Span)>> {
        if let Some(entries) = self.world.entries(value) {
            let key = |k: &Value| match &self.world.resolve_env(k).kind {
                PyKind::Bool(b) => Some(b.to_string()),
                PyKind::Int(n) => Some(n.to_string()),
                PyKind::None => Some("null".to_string()),
                _ => self.node_name(k),
            };
            return entries.iter().map(|(k, v)| Some((key(k)?, self.node_name(v)?, k.span))).collect();
        }
        let items = self.world.items(value)?;
        items.iter().map(|v| self.node_name(v).map(|n| (n.clone(), n, v.span))).collect()
    }

    fn begin_of(&self, value: &Value, at: Span, plan: &mut Plan) -> Option<Option<usize>> {
        let name = self.node_name(value);
        match name.as_deref() {
            Some(START) => Some(None),
            Some(name) if plan.index(name).is_some() => Some(plan.index(name)),
            _ => {
                self.undefined(value, at, plan);
                None
            }
        }
    }

    fn end_of(&self, value: &Value, at: Span, plan: &mut Plan) -> Option<Target> {
        let target = self.node_name(value).and_then(|n| plan.target(&n));
        if target.is_none() {
            self.undefined(value, at, plan);
        }
        target
    }

    fn undefined(&self, value: &Value, at: Span, plan: &mut Plan) {
        let d = match self.node_name(value) {
            Some(name) => {
                let message = format!("unknown node `{}`", clip(&name));
                match plan.maybe || plan.unnamed {
                    true => undecided(codes::UNDEFINED, message, at),
                    false => Diagnostic::warn(codes::UNDEFINED, message, at),
                }
            }
            None => {
                let message =
                    format!("which node this is is not known: {}", self.world.unknown_reason(value));
                undecided(codes::NOT_COMPILED, message, at)
            }
        };
        plan.diagnostics.push(d);
    }

    fn add_node(&self, call: &Object, plan: &mut Plan) {
        py::report(call, NODE_USED, NODE_UNUSED, "a node", &mut plan.diagnostics);
        let first = field(call, Some(0), "node");
        let second = field(call, Some(1), "action");
        let before = plan.nodes.len();
        match (first, second) {
            (Some(name), Some(action)) => match self.node_name(name.value) {
                Some(name) => self.push_node(Some(name), action.value, call.span, plan),
                // What runs came first: its own name counts.
                None if self.name_of_node(name.value).is_some() => {
                    self.push_node(None, name.value, call.span, plan)
                }
                None => {
                    plan.unnamed = true;
                    self.undefined(name.value, name.at, plan);
                }
            },
            (Some(action), None) => self.push_node(None, action.value, call.span, plan),
            _ => {}
        }
        if let (Some(node), Some(given)) = (plan.nodes.get_mut(before), field(call, None, "destinations")) {
            let items = match self.world.entries(given.value) {
                Some(entries) => entries.iter().map(|(k, _)| k).collect::<Vec<_>>(),
                None => self.world.items(given.value).unwrap_or(&[]).iter().collect(),
            };
            node.ends.extend(items.into_iter().filter_map(|v| self.node_name(v)));
        }
    }

    /// The name that a node has if none is given.
    fn name_of_node(&self, value: &Value) -> Option<String> {
        match &value.kind {
            PyKind::Function(f) | PyKind::Bound(_, f) => Some(self.world.function(*f).name.to_string()),
            PyKind::Object(id) => {
                let object = self.world.object(*id);
                let named = field(object, None, "name").and_then(|g| self.world.str(g.value));
                named
                    .map(str::to_string)
                    .or_else(|| self.agent_name(*id))
                    .or_else(|| Some(object.short().to_string()))
            }
            PyKind::External(name) => name.rsplit('.').next().map(str::to_string),
            _ => None,
        }
    }

    fn push_node(&self, name: Option<String>, value: &Value, at: Span, plan: &mut Plan) {
        let Some(name) = name.or_else(|| self.name_of_node(value)) else {
            let message =
                format!("a node without a name that is known: {}", self.world.unknown_reason(value));
            plan.diagnostics.push(undecided(codes::NOT_COMPILED, message, at));
            plan.unnamed = true;
            return;
        };
        if plan.index(&name).is_some() {
            return;
        }
        plan.numbers.insert(name.clone(), plan.nodes.len());
        plan.nodes.push(Node { name, at, value: value.clone(), ends: self.command_ends(value) });
    }

    /// The nodes that `-> Command[Literal["a", "b"]]` names.
    fn command_ends(&self, value: &Value) -> Vec<String> {
        let Some(function) = py::function_of(value) else { return Vec::new() };
        let Some(returns) = &self.world.function(function).returns else { return Vec::new() };
        let mut out = Vec::new();
        let mut todo = vec![returns];
        while let Some(value) = todo.pop() {
            if let Some((_, object)) = self.world.object_of(value) {
                if object.callee.ends_with("Command[]")
                    || object.callee.trim_end_matches("[]").ends_with("Union")
                    || &*object.callee == "|"
                {
                    todo.extend(object.args.iter().map(|a| &a.value));
                } else if object.callee.ends_with("Literal[]") {
                    out.extend(object.args.iter().filter_map(|a| self.node_name(&a.value)));
                }
            }
        }
        out
    }

    fn channels(&self, object: &Object, plan: &mut Plan) {
        let schema = field(object, Some(0), "state_schema");
        let mut found = Vec::new();
        plan.declared = match (object.short(), schema) {
            ("MessageGraph", _) => {
                found.push(Channel {
                    name: "messages".into(),
                    at: object.span,
                    reducer: Reducer::Messages,
                    initial: Data::list(Vec::new()),
                    text: false,
                });
                true
            }
            (_, Some(given)) => self.keys_of(given.value, &mut found),
            (_, None) => false,
        };
        for (i, name) in [(2, "input_schema"), (3, "output_schema")] {
            let old = name.trim_end_matches("_schema");
            let Some(given) = field(object, Some(i), name).or_else(|| field(object, None, old)) else {
                continue;
            };
            let mut keys = Vec::new();
            if self.keys_of(given.value, &mut keys) && i == 3 {
                plan.output = Some(keys.iter().map(|c| c.name.clone()).collect());
            }
            for key in keys {
                if !found.iter().any(|c| c.name == key.name) {
                    found.push(key);
                }
            }
        }
        plan.channels = found;
    }

    /// Adds the private state that nodes and routers declare (`def node(state: Private)`), as `add_node` and
    /// `add_conditional_edges` of LangGraph do.
    fn private_channels(&self, plan: &mut Plan) {
        if !plan.declared {
            return;
        }
        // A run does not give them.
        let given: Vec<String> = plan.channels.iter().map(|c| c.name.clone()).collect();
        let nodes = plan.nodes.iter().map(|node| &node.value);
        for value in nodes.chain(plan.routers.iter().map(|router| &router.path)) {
            // An instance is called by its class.
            let called = || {
                let class = self.world.object_of(value)?.1.class?;
                py::function_of(&self.world.class_lookup(class, "__call__")?.0)
            };
            let function = py::function_of(value).or_else(called).map(|f| self.world.function(f));
            let Some(function) = function else { continue };
            let own = usize::from(function.class.is_some());
            let annotation = function.params.get(own).and_then(|p| p.annotation.as_ref());
            let Some(annotation) = annotation.filter(|a| matches!(a.kind, PyKind::Class(_))) else {
                continue;
            };
            let mut keys = Vec::new();
            self.keys_of(annotation, &mut keys);
            for key in keys {
                if plan.channels.iter().all(|c| c.name != key.name) {
                    plan.channels.push(key);
                }
            }
        }
        if plan.channels.len() > given.len() {
            plan.output.get_or_insert(given);
        }
    }

    /// The keys of a class that describes a state. False if not all are known.
    pub fn keys_of(&self, schema: &Value, out: &mut Vec<Channel>) -> bool {
        let messages = |at: Span| Channel {
            name: "messages".into(),
            at,
            reducer: Reducer::Messages,
            initial: Data::list(Vec::new()),
            text: false,
        };
        match &schema.kind {
            PyKind::External(name) if name.ends_with("MessagesState") || name.ends_with("AgentState") => {
                out.push(messages(schema.span));
                true
            }
            PyKind::Class(class) => {
                if self.world.derives(*class, |n| {
                    n.ends_with("MessagesState")
                        || n.ends_with("AgentState")
                        || n.ends_with("AgentStatePydantic")
                }) {
                    out.push(messages(self.world.class(*class).span));
                }
                for f in self.world.fields(*class) {
                    let channel = self.channel_of(&f);
                    out.retain(|c| c.name != channel.name);
                    out.push(channel);
                }
                !out.is_empty()
            }
            PyKind::Object(id) => {
                // `TypedDict("State", {"a": str})`.
                let object = self.world.object(*id);
                let Some(given) = field(object, Some(1), "fields").filter(|_| object.short() == "TypedDict")
                else {
                    return false;
                };
                for (key, annotation) in self.world.entries(given.value).unwrap_or(&[]) {
                    if let Some(name) = key.as_str() {
                        let field = python::Field {
                            name: name.into(),
                            annotation: annotation.clone(),
                            default: None,
                            span: key.span,
                        };
                        out.push(self.channel_of(&field));
                    }
                }
                !out.is_empty()
            }
            _ => false,
        }
    }

    fn channel_of(&self, f: &python::Field) -> Channel {
        let mut annotation = &f.annotation;
        let mut reducer = Reducer::Last;
        // `NotRequired[Annotated[…]]`.
        for _ in 0..6 {
            let Some((_, object)) = self.world.object_of(annotation) else { break };
            let short = object.callee.trim_end_matches("[]").rsplit('.').next().unwrap_or("");
            match (short, object.args.first()) {
                ("Annotated", Some(first)) => {
                    if let Some(second) = object.args.get(1) {
                        reducer = self.reducer(&second.value);
                    }
                    annotation = &first.value;
                }
                ("NotRequired" | "Required", Some(first)) => annotation = &first.value,
                _ => break,
            }
        }
        let ty = py::type_of(self.world, annotation);
        let empty = match (&ty, self.world.name_of(annotation).as_deref()) {
            (core_ir::Type::Str, _) => Data::str(""),
            (core_ir::Type::Num, _) => Data::Num(core_ir::Num::from(0i64)),
            (core_ir::Type::Bool, _) => Data::Bool(false),
            (_, Some(name)) if name.trim_end_matches("[]").ends_with("ict") => Data::record([]),
            _ => Data::list(Vec::new()),
        };
        let initial = match (&f.default, &reducer) {
            (Some(default), _) => py::data(self.world, default),
            (None, Reducer::Last) => Some(Data::Null),
            _ => None,
        };
        let initial = initial.unwrap_or(if matches!(reducer, Reducer::Last) { Data::Null } else { empty });
        let text = matches!(ty, core_ir::Type::Str);
        Channel { name: f.name.to_string(), at: f.span, reducer, initial, text }
    }

    fn reducer(&self, value: &Value) -> Reducer {
        match &value.kind {
            PyKind::External(name) if name.ends_with("add_messages") => Reducer::Messages,
            PyKind::External(name)
                if name.starts_with("operator.") && matches!(&name[9..], "add" | "concat" | "iadd") =>
            {
                Reducer::Add
            }
            PyKind::Function(_) => Reducer::Function(value.clone()),
            PyKind::Str(_) => Reducer::Last,
            // What is said of a field beside its type, such as `Field(description=…)` or `OmitFromInput`.
            PyKind::Object(id) if matches!(self.world.object(*id).short(), "Field" | "PrivateStateAttr") => {
                Reducer::Last
            }
            _ => Reducer::Unknown(self.world.unknown_reason(value).to_string()),
        }
    }

    /// Of a state that is not declared where it can be seen: the keys that nodes read and write.
    fn guess_channels(&self, plan: &mut Plan) {
        const MAX_CHANNELS: usize = 100;
        let mut names: Vec<(String, Span)> = Vec::new();
        for node in &plan.nodes {
            if let Some(traced) = self.traced(&node.value) {
                names.extend(self.keys_read(traced));
                self.keys_written(&traced.trace.value, &mut names);
            }
        }
        for (name, at) in names {
            if plan.channel(&name).is_none() && plan.channels.len() < MAX_CHANNELS {
                let messages = name == "messages";
                let reducer = if messages { Reducer::Messages } else { Reducer::Last };
                let initial = if messages { Data::list(Vec::new()) } else { Data::Null };
                plan.channels.push(Channel { name, at, reducer, initial, text: false });
            }
        }
        let message =
            "the state's keys and reducers are not known; they are taken from what nodes read and write";
        plan.diagnostics.push(undecided(codes::NOT_COMPILED, message, plan.at));
    }

    /// The limit of a graph's steps: what a run says, or the framework's default.
    ///
    /// What a node runs has the limit of the run around it: `ensure_config` of LangChain hands it on.
    pub fn limit(&self, calls: &[(String, &Object)], default: LoopBound) -> LoopBound {
        let is_run = |name: &str| RUNS.contains(&name);
        let stated = |(name, call): &(String, &Object)| self.stated_limit(name, call);
        let configured = calls.iter().filter(|(name, _)| !is_run(name)).find_map(stated);
        let mut all: Vec<Option<(Value, Span)>> =
            calls.iter().filter(|(name, _)| is_run(name)).map(|c| stated(c).or(configured.clone())).collect();
        if all.is_empty() {
            all.push(configured);
        }
        // The largest limit of all runs.
        if all.iter().any(Option::is_some) {
            let bound = |limit: Option<(Value, Span)>| {
                let given = limit.as_ref().map(|(value, at)| py::Given { value, at: *at });
                py::bound(self.world, given, default.clone())
            };
            let size = |b: &LoopBound| match b.bound {
                Bound::Finite(n) => n,
                Bound::Infinite => u64::MAX,
            };
            let most = all.into_iter().map(bound).reduce(|a, b| if size(&b) > size(&a) { b } else { a });
            return most.unwrap_or(default);
        }
        let runs = || calls.iter().filter(|(name, _)| RUNS.contains(&name.as_str()));
        let file = runs().next().map(|(_, run)| run.span.file);
        let around = |(_, o): (ObjectId, &Object)| {
            Some(o.span.file) == file
                && RUNS.contains(&o.short())
                && runs().all(|(_, run)| run.within.is_some() && run.within != o.within)
                && self.stated_limit(o.short(), o).is_some()
        };
        if self.world.objects().any(around) {
            return LoopBound::unknown(
                "a run of this module sets `recursion_limit`, which holds for what its nodes run",
            );
        }
        default
    }

    /// The limit that a run states, with its place.
    fn stated_limit(&self, name: &str, call: &Object) -> Option<(Value, Span)> {
        let position = match name {
            "with_config" => 0,
            name if RUNS.contains(&name) => 1,
            _ => return None,
        };
        let limit = |value: &Value| -> Option<(Value, Span)> {
            let entries = self.world.entries(value)?;
            let (key, value) = entries.iter().find(|(k, _)| k.as_str() == Some("recursion_limit"))?;
            Some((value.clone(), key.span.to(value.span)))
        };
        let config =
            field(call, Some(position), "config").and_then(|g| match self.world.object_of(g.value) {
                Some((_, o)) => field(o, None, "recursion_limit").map(|g| (g.value.clone(), g.at)),
                None => limit(g.value),
            });
        config.or_else(|| call.arg("recursion_limit").map(|a| (a.value.clone(), a.span)))
    }
}
