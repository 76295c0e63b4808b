//! The code of a program as an actor: text of outsiders that it fetches by itself, what it asks models with
//! that text, and what it does with their answers.
//!
//! Entry points: [`Steps::read`] takes in a module, [`Steps::handed`] says what reaches what. The modules of
//! a project make one graph. Its nodes are names, attributes of `self`, results of functions and of calls,
//! and what the steps of a graph or a flow share. The reader of Python tells which function a call enters
//! and what a call of something outside the project does; the statements tell which value goes where.
//!
//! | in the program | in the graph |
//! |---|---|
//! | an assignment, an argument, a result | a value that goes on; a call returns to where it was made |
//! | `state["mail"]`, `event.mail`, `{"mail": …}` | a part with a key: other parts do not hold it |
//! | steps of a graph, of a flow, of a workflow | what one returns is given to all, by its keys |
//! | a file that the program names | one value: who reads it gets what was written |
//! | a call of a model | its answer is a choice of whoever wrote a part of the prompt |
//! | a test of an answer, a conditional edge | the answer decides what runs after it |
//!
//! Invariant: a path has each step in the text. Where a value is not followed, there is no path.
//! Invariant: bounded. The graph has at most [`MAX_NODES`] nodes, and a search visits at most
//! [`MAX_VISITS`] states; [`Steps::handed`] tells that something was left out.

mod reach;
mod read;
mod settle;

use crate::body::Decided;
use crate::fact::Fact;
use diagnostics::{FileId, Span};
use python::{ObjectId, PyKind, Value, World};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Nodes of the graph of a project.
const MAX_NODES: usize = 400_000;
/// Edges of that graph.
const MAX_EDGES: usize = 2_000_000;
/// States that the searches of a project visit.
const MAX_VISITS: usize = 6_000_000;
/// States that one search visits.
const MAX_VISITS_EACH: usize = 300_000;
/// Calls by which text comes in.
const MAX_ORIGINS: usize = 1_024;
/// Calls of models from whose answers a search begins.
const MAX_RUNS: usize = 1_024;
/// Objects that are looked at from a call on.
const MAX_OBJECTS: usize = 400;

/// Text of outsiders that reaches the input or the instructions of an agent.
#[derive(Clone, Debug)]
pub struct Fed {
    /// Places of the objects that are run, or are made with the text: agents, teams, tasks and runners.
    pub agents: HashSet<Span>,
    /// True if they are made with it, as a task is with its description.
    pub made: bool,
    /// Name of the function by which the text comes in.
    pub name: String,
    /// The call.
    pub span: Span,
    /// Fact about the call.
    pub fact: Fact,
}

/// A call of the program that is given the answer of an agent.
#[derive(Clone, Debug)]
pub struct Acted {
    /// Places of the objects that are run.
    pub agents: HashSet<Span>,
    /// Name of the function that is called.
    pub name: String,
    /// The call.
    pub span: Span,
    /// Fact about the call.
    pub fact: Fact,
}

/// The answer of an agent that reaches the input or the instructions of another one.
#[derive(Clone, Debug)]
pub struct Passed {
    /// Places of the objects that answer.
    pub from: HashSet<Span>,
    /// Places of the objects that get the answer.
    pub to: HashSet<Span>,
    /// True if these are made with it.
    pub made: bool,
}

/// A path that the program goes by itself: it fetches text, asks models, and acts.
#[derive(Clone, Debug)]
pub struct OwnPath {
    /// Name of the call by which the text comes in.
    pub source: String,
    /// That call.
    pub source_at: Span,
    /// Fact about it.
    pub source_fact: Fact,
    /// Calls of models on the way, in order.
    pub models: Vec<Span>,
    /// Name of the call that acts.
    pub sink: String,
    /// That call.
    pub sink_at: Span,
    /// Fact about it.
    pub sink_fact: Fact,
    /// The test of an answer that decides the call, if the answer is not among the arguments.
    pub test: Option<Span>,
}

/// The text that a project hands to agents, and its calls with their answers.
#[derive(Clone, Debug, Default)]
pub struct Handed {
    /// Text of outsiders that reaches agents.
    pub fed: Vec<Fed>,
    /// Calls that are given answers of agents.
    pub acted: Vec<Acted>,
    /// Answers that are given to other agents.
    pub passed: Vec<Passed>,
    /// Paths through models that the program asks by itself.
    pub own: Vec<OwnPath>,
}

/// A call by which text of outsiders comes in, or that acts.
#[derive(Clone, Debug)]
struct Origin {
    name: String,
    span: Span,
    fact: Fact,
}

/// A place that may hold text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A name of a function, or of a module: the place of the function's name, or the beginning of the file.
    Local(Span, String),
    /// A name of a function that functions in it use.
    Closed(Span, String),
    /// A parameter whose parts a function changes.
    Changed(Span, String),
    /// An attribute of instances of the classes of a file.
    Attribute(FileId, String),
    /// The result of a function.
    Result(Span),
    /// The tests that decide whether a function is called.
    Ran(Span),
    /// The value of an expression.
    Expr(Span),
    /// The value of a test.
    Test(Span),
    /// The value that a method of a collection is given.
    Taken(Span),
    /// A file that the program names: the folder of the module, and the file's name.
    File(Arc<str>, String),
    /// The state that the steps of a graph share, by the call that makes the graph, or the steps of a class,
    /// by its name.
    Shared(Span),
}

/// Way by which a value goes from one node to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// All of it, with its parts.
    Copy,
    /// A value that is made of it: its parts can't be told apart any more.
    Whole,
    /// The part of a key.
    Load(u32),
    /// As the part of a key.
    Store(u32),
    /// The answer of a model that is given it.
    Asks(u32),
    /// A test of it.
    Compared,
    /// A value, or a call, because of a test.
    Because,
}

/// Way of an edge between functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Within a function.
    Here,
    /// Into a function, by a call.
    Enter(u32),
    /// Back to a call.
    Return(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Edge {
    to: u32,
    how: How,
    way: Way,
}

/// A function that a call may enter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Callee {
    /// Place of its name.
    at: Span,
    /// Its parameters.
    params: Vec<String>,
    /// Number of parameters that a caller does not give: 1 for a method.
    skip: usize,
    /// The parameter that takes more arguments by position, `*args`.
    rest: Option<String>,
    /// The one that takes more by keyword, `**kwargs`.
    keywords: Option<String>,
}

/// A graph or another object that is given functions.
#[derive(Clone, Debug)]
struct Given {
    /// The functions.
    functions: Vec<Callee>,
    /// Classes whose instances are given, by the places of their names.
    classes: Vec<Span>,
    /// The call that makes the graph; `None` if the functions are only called.
    graph: Option<Span>,
    /// True if the result of the function only selects the next step.
    selects: bool,
}

/// A call in the text.
#[derive(Clone, Debug)]
struct Site {
    span: Span,
    /// The function that it stands in.
    scope: Span,
    /// The last part of what is called.
    method: String,
    /// The names that lead to it: `client.messages.create`.
    chain: String,
    is_method: bool,
    /// True if it is a method of `self`.
    is_own: bool,
    /// The folder of the module.
    folder: Arc<str>,
    on: Vec<u32>,
    by_position: Vec<Vec<u32>>,
    by_keyword: Vec<(Option<String>, Vec<u32>)>,
    result: u32,
    /// Tests that decide that it runs.
    tests: Vec<u32>,
    /// The functions that it enters, as the text says.
    callees: Vec<Callee>,
    /// The functions that it gives to a framework.
    given: Option<Given>,
}

/// A class of the project that a call makes an instance of.
#[derive(Clone, Debug)]
struct MadeClass {
    file: FileId,
    /// True if it only holds what it is made with.
    is_data: bool,
    init: Option<Callee>,
    fields: Vec<String>,
}

/// A call as the evaluation knows it.
#[derive(Clone, Debug, Default)]
struct CallFacts {
    /// Number of objects that were looked at.
    objects: usize,
    origin: Option<Origin>,
    act: Option<(Origin, Decided)>,
    /// True if it asks a model.
    runs: bool,
    /// Places of the objects that it runs.
    agents: HashSet<Span>,
    /// The call at the beginning of its chain.
    graph: Option<Span>,
    class: Option<MadeClass>,
    /// The file of the program that it opens, reads or writes.
    file: Option<String>,
    /// True if it is known what it does.
    is_known: bool,
    /// True if it makes an object of something outside the project.
    makes: bool,
}

/// A call that acts, with what it is given.
#[derive(Clone, Debug)]
struct Act {
    origin: Origin,
    decided: Decided,
    args: Vec<u32>,
    /// The first argument, or the object that it is a method of.
    target: Vec<u32>,
    tests: Vec<u32>,
}

/// A call that asks a model.
#[derive(Clone, Debug)]
struct Run {
    span: Span,
    agents: HashSet<Span>,
    result: u32,
}

/// An object that is made with arguments: an agent, a task.
#[derive(Clone, Debug)]
struct Made {
    span: Span,
    args: Vec<u32>,
}

/// Edges of a graph of LangGraph between its nodes.
#[derive(Clone, Debug, Default)]
struct Routes {
    /// Functions by the graph and the name of the node.
    nodes: HashMap<(Span, String), Vec<Span>>,
    /// Nodes that are reached whatever is decided.
    plain: HashSet<(Span, String)>,
    /// Functions that select the next node, with the names of the nodes.
    routers: Vec<(Span, Span, Vec<String>)>,
    /// Texts that functions return.
    returned: HashMap<Span, Vec<String>>,
}

/// The steps of the programs of a project, as a graph.
#[derive(Debug, Default)]
pub struct Steps {
    /// Modules that are looked at.
    files: HashSet<FileId>,
    nodes: HashMap<Key, u32>,
    /// For each node, true if it is of no call of a function in particular.
    shared: Vec<bool>,
    /// For each test, its place.
    tests: HashMap<u32, Span>,
    edges: Vec<Vec<Edge>>,
    edge_count: usize,
    keys: HashMap<String, u32>,
    calls: HashMap<Span, u32>,
    sites: Vec<Site>,
    facts: HashMap<Span, CallFacts>,
    /// Functions that calls enter, as the evaluation says.
    entered: HashMap<Span, Vec<Callee>>,
    /// Methods of the project by their names.
    methods: HashMap<String, Vec<Callee>>,
    origins: Vec<(Origin, u32)>,
    acts: Vec<Act>,
    runs: Vec<Run>,
    made: Vec<Made>,
    routes: Routes,
    /// Calls that make graphs of the project's functions.
    graphs: HashSet<Span>,
    cut: bool,
}

impl Steps {
    /// The steps of these modules, none of which is read yet.
    pub fn of(files: impl IntoIterator<Item = FileId>) -> Steps {
        Steps { files: files.into_iter().collect(), ..Steps::default() }
    }

    fn node(&mut self, key: Key) -> u32 {
        if let Some(known) = self.nodes.get(&key) {
            return *known;
        }
        if self.nodes.len() >= MAX_NODES {
            // A node that nothing reaches.
            self.cut = true;
            return self.nodes.get(&Key::Shared(NOWHERE)).copied().unwrap_or_else(|| self.fresh(NO_KEY));
        }
        self.fresh(key)
    }

    fn fresh(&mut self, key: Key) -> u32 {
        let is_module = |at: &Span| at.end == 0;
        let shared = match &key {
            Key::Local(at, _) => is_module(at),
            Key::Closed(..) | Key::Attribute(..) | Key::File(..) | Key::Shared(_) | Key::Ran(_) => true,
            _ => false,
        };
        // INVARIANT: there are at most `MAX_NODES` + 1 nodes.
        let index = self.edges.len() as u32;
        if let Key::Test(span) = key {
            self.tests.insert(index, span);
        }
        self.nodes.insert(key, index);
        self.edges.push(Vec::new());
        self.shared.push(shared);
        index
    }

    fn key(&mut self, name: &str) -> u32 {
        if let Some(known) = self.keys.get(name) {
            return *known;
        }
        let index = self.keys.len() as u32 + 1;
        self.keys.insert(name.to_string(), index);
        index
    }

    fn call_number(&mut self, span: Span) -> u32 {
        let next = self.calls.len() as u32 + 1;
        *self.calls.entry(span).or_insert(next)
    }

    fn edge(&mut self, from: u32, to: u32, how: How, way: Way) {
        if self.edge_count >= MAX_EDGES {
            self.cut = true;
            return;
        }
        let edge = Edge { to, how, way };
        let known = &mut self.edges[from as usize];
        // A node with many edges has hardly the same one twice.
        if (from != to || how != How::Copy) && !(known.len() < 64 && known.contains(&edge)) {
            known.push(edge);
            self.edge_count += 1;
        }
    }

    fn flow(&mut self, from: &[u32], to: u32, how: How) {
        for from in from {
            self.edge(*from, to, how, Way::Here);
        }
    }
}

/// A place that is in no file.
const NOWHERE: Span = Span { file: FileId(u32::MAX), start: 0, end: 0 };
const NO_KEY: Key = Key::Shared(NOWHERE);

/// Places of the objects that a call is made on, or is given.
pub(crate) fn reached(world: &World<'_>, id: ObjectId) -> HashSet<Span> {
    let mut seen: HashSet<ObjectId> = HashSet::from([id]);
    let mut out = HashSet::new();
    let mut todo: Vec<Value> = vec![Value::new(PyKind::Object(id), world.object(id).span)];
    for _ in 0..MAX_OBJECTS {
        let Some(value) = todo.pop() else { break };
        match &value.kind {
            PyKind::Object(o) | PyKind::Member(o, _) | PyKind::Bound(o, _) => {
                let object = world.object(*o);
                out.insert(object.span);
                if *o != id && !seen.insert(*o) {
                    continue;
                }
                todo.extend(object.args.iter().map(|a| a.value.clone()));
                todo.extend(object.attrs.iter().map(|(_, v)| v.clone()));
                todo.extend(object.base.map(|b| Value::new(PyKind::Object(b), object.span)));
                // A builder has its parts by calls: `graph.add_node("a", agent)`.
                todo.extend(
                    object.calls.iter().flat_map(|c| &world.object(c.result).args).map(|a| a.value.clone()),
                );
            }
            PyKind::List(list) | PyKind::Either(list) => todo.extend(world.list(*list).items.iter().cloned()),
            PyKind::Dict(dict) => todo.extend(world.dict(*dict).entries.iter().map(|(_, v)| v.clone())),
            _ => {}
        }
    }
    out
}
