//! LangGraph and LangChain, in Python: what `StateGraph`, prebuilt agents and chains build.
//!
//! | part | what it reads |
//! |---|---|
//! | [`plan`] | the nodes, edges and channels of a `StateGraph` |
//! | [`value`] | what functions compute of the state |
//! | [`model`] | models, prompts, tools and questions |
//! | [`shared`] | values that are used several times |
//! | [`node`] | what a node does: calls and an update |
//! | [`pregel`] | graphs, in steps |
//! | [`agent`] | prebuilt agents, graphs within graphs |
//! | [`team`] | supervisors and swarms |
//! | [`manifest`] | `langgraph.json` |
//!
//! The state is a record in the variable `$s`. Its key with the reducer `add_messages` is the conversation:
//! what is added to it is sent, and a model that is asked with it receives in the conversation itself, so
//! that tool calls and their results keep their form.
//!
//! Source: langgraph 1.2.22 (`graph/state.py`, `pregel/`), langgraph-prebuilt 1.1.2, langchain 1.4.7,
//! langchain-core 1.7.2.

mod agent;
mod calls;
mod deep_agents;
mod gradual_types;
mod let_bindings;
mod lists;
mod manifest;
mod model;
mod node;
mod parts;
mod plan;
mod pregel;
mod prompt;
mod shared_lowering;
mod steps;
mod structured;
mod team;
mod uncounted_calls;
mod update;
mod value;

pub(crate) use calls::is_quiet;
pub use manifest::Manifest;
pub(crate) use shared_lowering::{Functions, Of};
pub(crate) use value::truthy;

use crate::defaults;
use crate::py::{self, field};
use core_ir::{Data, Name, Prim, Role, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::emit::{codes, undecided};
use frontend_kit::kit::{Kit, Units};
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use plan::{Plan, Reducer};
use pregel::Stops;
use prompt::Part;
use python::{Arg, FunctionId, Limits, ObjectId, PyKind, Trace, Value, World};
use std::collections::{HashMap, HashSet};
use value::{STATE, Scope};

/// The front end.
pub struct LangGraph;

/// Packages of the framework are called like it, those of its partners too: `langchain_openai`,
/// `langgraph_supervisor`.
const FAMILY: &[&str] = &["langgraph", "langchain", "deepagents"];
const GRAPHS: &[&str] = &[
    "StateGraph",
    "MessageGraph",
    "create_react_agent",
    "create_agent",
    "create_supervisor",
    "create_swarm",
    "create_deep_agent",
];
const CHAINS: &[&str] = &[
    "AgentExecutor",
    "initialize_agent",
    "StrOutputParser",
    "ChatPromptTemplate",
    "LLMChain",
    "PromptTemplate",
];

/// Kind of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyKind {
    /// The text of a reply.
    Text,
    /// The reply of a model that is offered tools: a tag.
    Calls,
    /// Data.
    Data,
}

/// An agent or a graph within something else.
#[derive(Clone, Copy, Debug)]
enum Inner {
    Agent(ObjectId),
    Graph(ObjectId),
    Team(ObjectId),
}

/// A function that was followed.
#[derive(Debug)]
struct Traced {
    trace: Trace,
    /// Object that represents the first parameter, the state.
    state: ObjectId,
    /// Object that represents the second parameter.
    second: Option<ObjectId>,
}

/// Identity of a traced function: its instance, if it is a method, and the function.
type Key = (Option<ObjectId>, FunctionId);

struct GraphReader<'r, 'w> {
    world: &'r World<'w>,
    traces: &'r HashMap<Key, Traced>,
    plans: HashMap<ObjectId, Plan>,
}

impl Frontend for LangGraph {
    fn name(&self) -> &'static str {
        "langgraph"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["invoke"]
    }

    fn detect(&self, file: &File) -> u8 {
        match file.python.as_ref().filter(|m| m.imports_family(FAMILY)) {
            Some(m) if m.makes(|name| py::ends_with(name, GRAPHS)) => 85,
            Some(m) if m.makes(|name| py::ends_with(name, CHAINS)) => 70,
            _ => 0,
        }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        compile(self.name(), project, main, None)
    }
}

/// Calls by which the program or a person may end a run.
const ENDS_RUNS: &[&str] = &["interrupt", "input", "exit", "_exit", "quit", "SystemExit"];

fn facts() -> Facts {
    Facts {
        default_model: None,
        ends_loops: Some("the framework ends a run when nothing is due, or at its recursion limit"),
        words: Words {
            prompt: "say what the model is to do: a system message, or `prompt=`",
            model: "name one: `model=`",
            bound: "state it: `{\"recursion_limit\": n}` in the config of the run, or `.with_config(…)`",
            ..Words::default()
        },
        code: CodeFacts { fixed_edges: true, run_limit: Some("recursion_limit"), ..CodeFacts::default() },
        ..Facts::default()
    }
}

/// Compiles what a module builds; of several things only the one with a name, if one is given.
fn compile(framework: &'static str, project: &Project, main: usize, wanted: Option<&str>) -> Compiled {
    let mut units = Units::new(framework, facts(), project);
    let Some(file) = project.files.get(main) else { return units.compiled };
    let limits = Limits { steps: 600_000, ..Limits::default() };
    units.compiled.facts.code.ends_runs = py::calls_one(file, ENDS_RUNS);
    py::evaluated(project, file, limits, Some(&Names), |world, found| {
        units.compiled.diagnostics.extend(found);
        made(units, file, wanted, world)
    })
}

fn made(mut units: Units, file: &File, wanted: Option<&str>, mut world: World<'_>) -> Compiled {
    let traces = followed(&mut world);
    let mut reader = GraphReader { world: &world, traces: &traces, plans: HashMap::new() };
    let graphs: Vec<ObjectId> =
        world.objects().filter(|(_, o)| reader.is_graph(o)).map(|(id, _)| id).collect();
    for id in &graphs {
        let plan = reader.plan(*id);
        reader.plans.insert(*id, plan);
    }
    let module = world.sources().of_file(file.id);
    let named: Vec<(String, Value)> = module
        .map_or(Vec::new(), |m| world.globals(m))
        .into_iter()
        .map(|(n, v)| (n.to_string(), v.clone()))
        .collect();
    let tops = reader.tops(&mut units, file, &graphs, &named, wanted);
    let asks = crate::model_requests::ModelRequests::new(&world);
    for top in tops {
        let (kind, span) = match top.what {
            What::Graph(id) => (UnitKind::Crew, reader.world.object(id).span),
            What::Team(id) => (UnitKind::Crew, reader.world.object(id).span),
            What::Agent(id) => (UnitKind::Agent, reader.world.object(id).span),
            What::Chain(ref value) => (UnitKind::Agent, value.span),
        };
        if let What::Graph(id) = top.what
            && let Some(plan) = reader.plans.get(&id)
        {
            units.compiled.diagnostics.extend(plan.diagnostics.iter().cloned());
        }
        units.add(&top.name, kind, span, |kit| {
            if kit.open(&top.name, span, span, 0).is_err() {
                return kit.unknown("more than is compiled", span);
            }
            let term = match &top.what {
                What::Graph(id) => reader.unit(kit, *id),
                What::Agent(id) => reader.agent_unit(kit, *id),
                What::Team(id) => reader.team_unit(kit, *id),
                What::Chain(value) => reader.chain_unit(kit, value),
            };
            kit.close();
            gradual_types::open(&mut kit.b);
            let term = match reader.retries() {
                Some(Ok((n, at))) => kit.repeated(term, n, "it is tried again when something fails", at),
                _ => term,
            };
            let runs = reader.run_again(&top.what);
            crate::py::counted(kit, term, runs, || reader.beside(&asks, &top.what))
        });
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    let what = wanted.map_or_else(
        || "no graph, agent or chain is built here".to_string(),
        |name| format!("no graph is built under the name `{name}`"),
    );
    units.done(Some(start), &what)
}

/// A unit: something that is run by itself.
struct Top {
    name: String,
    what: What,
}

enum What {
    Graph(ObjectId),
    Agent(ObjectId),
    Team(ObjectId),
    Chain(Value),
}

/// The framework's effect on names and attributes.
#[derive(Debug)]
struct Names;

impl python::Framework for Names {
    fn name(&self) -> &'static str {
        "langgraph"
    }

    // A reply has one call at a time here.
    fn holds_one(&self, name: &str) -> bool {
        name == "tool_calls"
    }

    fn owns(&self, module: &str, _: &str) -> bool {
        let head = module.split('.').next().unwrap_or(module);
        matches!(head, "langgraph" | "langchain" | "langchain_core")
    }
}

/// Follows all functions that are nodes, routers, reducers or prompts.
fn followed(world: &mut World<'_>) -> HashMap<Key, Traced> {
    let (first, known) = (world.object_count(), world.changes());
    let traces = followed_once(world);
    if world.changes() == known {
        return traces;
    }
    // What one changes the others may have taken for known.
    world.discard_objects_since(first);
    followed_once(world)
}

fn followed_once(world: &mut World<'_>) -> HashMap<Key, Traced> {
    const ROUNDS: usize = 3;
    let mut traces: HashMap<Key, Traced> = HashMap::new();
    let mut seen = 0;
    for _ in 0..ROUNDS {
        let mut values: Vec<Value> = Vec::new();
        let objects: Vec<ObjectId> = world.objects().skip(seen).map(|(id, _)| id).collect();
        seen += objects.len();
        for id in objects {
            let object = world.object(id);
            let mut add = |value: &Value| values.push(value.clone());
            match object.short() {
                "add_node" | "add_conditional_edges" | "set_conditional_entry_point" => {
                    object.args.iter().for_each(|a| add(&a.value));
                }
                "add_sequence" => {
                    for arg in &object.args {
                        for item in world.items(&arg.value).unwrap_or(&[]) {
                            add(item);
                            world.items(item).unwrap_or(&[]).iter().for_each(&mut add);
                        }
                    }
                }
                "create_react_agent" | "create_agent" => {
                    for name in ["prompt", "state_modifier", "messages_modifier"] {
                        if let Some(given) = field(object, None, name) {
                            add(given.value);
                        }
                    }
                }
                short if short.ends_with("Annotated[]") || object.callee.ends_with("Annotated[]") => {
                    object.args.iter().skip(1).for_each(|a| add(&a.value));
                }
                _ => {}
            }
        }
        if values.is_empty() {
            break;
        }
        for value in values {
            follow(world, &value, &mut traces);
        }
    }
    traces
}

/// The function that a value runs, and what it is given beside the state.
fn callable(world: &World<'_>, value: &Value) -> Option<(Value, Key, Vec<Arg>)> {
    match &value.kind {
        PyKind::Function(f) => Some((value.clone(), (None, *f), Vec::new())),
        PyKind::Bound(this, f) => Some((value.clone(), (Some(*this), *f), Vec::new())),
        PyKind::Object(id) => {
            let object = world.object(*id);
            if let Some(class) = object.class
                && let Some((method, _)) = world.class_lookup(class, "__call__")
                && let PyKind::Function(f) = method.kind
            {
                return Some((Value::new(PyKind::Bound(*id, f), value.span), (Some(*id), f), Vec::new()));
            }
            let wraps =
                matches!(object.short(), "partial" | "RunnableLambda" | "RunnableCallable" | "traceable");
            let first = object.args.first().filter(|_| wraps && object.base.is_none())?;
            let (function, (_, f), mut more) = callable(world, &first.value)?;
            more.extend(object.args.iter().skip(1).filter(|a| a.name.is_some()).cloned());
            Some((function, (Some(*id), f), more))
        }
        _ => None,
    }
}

/// Makes the values that the framework passes to a node beside the state: the configuration of a run with
/// default settings, and the context as its class makes it.
fn handed_in(
    world: &mut World<'_>,
    position: usize,
    name: &str,
    annotation: Option<&Value>,
    span: Span,
) -> Option<Value> {
    if position == 0 {
        return None;
    }
    let within = |v: &Value, wanted: &str| -> Option<Vec<Value>> {
        let (_, object) = world.object_of(v)?;
        let of = object.callee.trim_end_matches("[]");
        of.ends_with(wanted).then(|| object.args.iter().map(|a| a.value.clone()).collect())
    };
    if let Some(of) = annotation.and_then(|a| within(a, "Runtime")) {
        let class = of.into_iter().find(|v| matches!(v.kind, PyKind::Class(_)))?;
        let context = world.call(&class, Vec::new());
        let runtime = world.new_call("langgraph.Config", Vec::new(), span);
        if let PyKind::Object(id) = runtime.kind {
            world.set(id, "context", context);
        }
        return Some(runtime);
    }
    let config = match annotation {
        Some(annotation) => {
            let parts =
                within(annotation, "Optional").or_else(|| within(annotation, "|")).unwrap_or_default();
            let is = |v: &Value| world.name_of(v).is_some_and(|n| n.ends_with("RunnableConfig"));
            is(annotation) || parts.iter().any(is)
        }
        None => name == "config",
    };
    config.then(|| {
        let nothing = world.new_dict(Vec::new(), span);
        let about = world.new_dict(Vec::new(), span);
        world.new_dict(vec![("configurable", nothing), ("metadata", about)], span)
    })
}

fn follow(world: &mut World<'_>, value: &Value, traces: &mut HashMap<Key, Traced>) {
    let Some((function, key, more)) = callable(world, value) else { return };
    if traces.contains_key(&key) || world.exceeded().is_some() {
        return;
    }
    let params: Vec<_> = world
        .function(key.1)
        .own_params()
        .iter()
        .filter(|p| matches!(p.kind, python::ParamKind::Plain | python::ParamKind::Keyword))
        .map(|p| (p.name.clone(), p.default.is_some(), p.span, p.annotation.clone()))
        .collect();
    let mut args: Vec<Arg> = Vec::new();
    let mut made: Vec<ObjectId> = Vec::new();
    for (i, (name, has_default, span, annotation)) in params.iter().enumerate() {
        if more.iter().any(|a| a.name.as_ref() == Some(name)) || (i > 0 && *has_default) {
            continue;
        }
        let callee = if made.is_empty() { value::STATE_CALLEE } else { "langgraph.Config" };
        if let Some(value) = handed_in(world, i, name, annotation.as_ref(), *span) {
            args.push(Arg { name: Some(name.clone()), value, span: *span });
            continue;
        }
        let value = world.new_call(callee, Vec::new(), *span);
        if let PyKind::Object(id) = value.kind {
            made.push(id);
        }
        args.push(Arg { name: Some(name.clone()), value, span: *span });
    }
    let Some(state) = made.first().copied().or_else(|| {
        match world.new_call(value::STATE_CALLEE, Vec::new(), value.span).kind {
            PyKind::Object(id) => Some(id),
            _ => None,
        }
    }) else {
        return;
    };
    args.extend(more);
    let trace = world.trace(&function, args);
    traces.insert(key, Traced { trace, state, second: made.get(1).copied() });
}

impl GraphReader<'_, '_> {
    /// A function that was followed.
    fn traced(&self, value: &Value) -> Option<&Traced> {
        let (_, key, _) = callable(self.world, value)?;
        self.traces.get(&key)
    }

    /// Returns true if a router is the prebuilt `tools_condition`.
    fn is_tools_condition(&self, value: &Value) -> bool {
        matches!(&value.kind, PyKind::External(name) if name.ends_with("tools_condition"))
    }

    /// Returns the literals in the return annotation of a function.
    fn literals(&self, value: &Value) -> Option<Vec<(String, Span)>> {
        let (function, _, _) = callable(self.world, value)?;
        let function = py::function_of(&function)?;
        let returns = self.world.function(function).returns.as_ref()?;
        let mut out = Vec::new();
        let mut todo = vec![returns];
        while let Some(value) = todo.pop() {
            let Some((_, object)) = self.world.object_of(value) else { continue };
            if object.callee.ends_with("Literal[]") {
                out.extend(
                    object.args.iter().filter_map(|a| Some((self.node_name(&a.value)?, a.value.span))),
                );
            } else {
                todo.extend(object.args.iter().map(|a| &a.value));
            }
        }
        (!out.is_empty()).then_some(out)
    }

    /// Returns true if a label is among the string constants of a function.
    fn names_label(&self, value: &Value, label: &str) -> bool {
        let function = callable(self.world, value).and_then(|(f, ..)| py::function_of(&f));
        let Some(function) = function.map(|f| self.world.function(f)) else { return false };
        let source = self.world.sources().get(function.module);
        let range = function.span.start as usize..function.span.end as usize;
        let text = source.and_then(|s| s.text.get(range)).unwrap_or("");
        ['"', '\''].iter().any(|q| text.contains(&format!("{q}{label}{q}")))
    }

    /// Returns the units that a file builds: agents, graphs, teams and chains that are not part of another.
    fn tops(
        &self,
        units: &mut Units,
        file: &File,
        graphs: &[ObjectId],
        named: &[(String, Value)],
        wanted: Option<&str>,
    ) -> Vec<Top> {
        let mut parts: HashSet<ObjectId> = HashSet::new();
        let part_of = |value: &Value, parts: &mut HashSet<ObjectId>| match self.inner_graph(value) {
            Some(Inner::Agent(id) | Inner::Graph(id) | Inner::Team(id)) => {
                parts.insert(id);
            }
            None => {}
        };
        for id in graphs {
            for node in self.plans.get(id).map_or(&[][..], |p| &p.nodes) {
                part_of(&node.value, &mut parts);
            }
        }
        for traced in self.traces.values() {
            for id in &traced.trace.objects {
                if let Some((base, _)) = self.asking(self.world.object(*id)) {
                    part_of(&Value::new(PyKind::Object(base), self.world.object(*id).span), &mut parts);
                }
            }
        }
        // The executor's agent is a part of it.
        for (_, object) in self.world.objects() {
            if object.short() == "AgentExecutor"
                && let Some((id, _)) =
                    field(object, Some(0), "agent").and_then(|g| self.world.object_of(g.value))
            {
                parts.insert(id);
            }
        }
        let graph_of = |v: &Value| match self.inner_graph(v) {
            Some(Inner::Agent(id) | Inner::Graph(id) | Inner::Team(id)) => Some(id),
            None => match v.kind {
                PyKind::Object(id) => Some(id),
                _ => None,
            },
        };
        let name_of = |id: ObjectId| -> Option<String> {
            named.iter().find(|(_, v)| graph_of(v) == Some(id)).map(|(n, _)| n.clone())
        };
        let mut out: Vec<Top> = Vec::new();
        let mut places: HashSet<Span> = HashSet::new();
        let here = |id: ObjectId| self.world.object(id).span.file == file.id;
        // A function of another module may make what only this one keeps.
        let module = self.world.sources().of_file(file.id);
        let others = (0..self.world.sources().len()).filter(|m| Some(*m) != module);
        let kept_by_others: HashSet<ObjectId> =
            others.flat_map(|m| self.world.globals(m)).filter_map(|(_, v)| graph_of(v)).collect();
        let made_for_it = |id: ObjectId| {
            self.world.object(id).within.is_some() && name_of(id).is_some() && !kept_by_others.contains(&id)
        };
        for (id, _) in self.world.objects().filter(|(_, o)| self.is_team(o)) {
            parts.extend(self.members(id).into_iter().map(|(m, _)| m));
        }
        let mut all: Vec<(ObjectId, bool)> = graphs.iter().map(|id| (*id, true)).collect();
        all.extend(
            self.world
                .objects()
                .filter(|(_, o)| self.is_agent(o) || self.is_team(o))
                .map(|(id, _)| (id, false)),
        );
        // What is certainly built counts before what an unused function would build.
        all.sort_by_key(|(id, _)| (self.world.object(*id).explored, *id));
        let tools = |id: ObjectId| field(self.world.object(id), Some(1), "tools").map(|g| g.value);
        // If one is wanted, it is told by its name.
        let agents = all.iter().filter(|(_, is_graph)| !is_graph && wanted.is_none()).map(|(id, _)| *id);
        let kept = py::distinct(units, (self.world, file), agents, tools);
        for (id, is_graph) in all {
            let object = self.world.object(id);
            if let Some(wanted) = wanted {
                let value = named.iter().find(|(n, _)| n == wanted).map(|(_, v)| v);
                let within =
                    |f: Option<FunctionId>| f.is_some_and(|f| *self.world.function(f).name == *wanted);
                let is = match value.map(|v| (self.inner_graph(v), &v.kind)) {
                    Some((Some(Inner::Agent(i) | Inner::Graph(i) | Inner::Team(i)), _)) => i == id,
                    Some((None, PyKind::Object(i))) => *i == id,
                    // A function that makes the graph.
                    Some((None, PyKind::Function(f))) => within(Some(*f)) && object.within == Some(*f),
                    _ => false,
                };
                if !is {
                    continue;
                }
            } else if parts.contains(&id) || !(here(id) || made_for_it(id)) {
                continue;
            }
            // Another call of such a function makes another agent.
            let again = match is_graph || wanted.is_some() {
                true => !places.insert(object.span),
                false => !kept.contains(&id),
            };
            if again && here(id) {
                continue;
            }
            let empty = is_graph && self.plans.get(&id).is_none_or(|p| p.nodes.is_empty());
            if empty {
                continue;
            }
            let name = wanted
                .map(str::to_string)
                .or_else(|| name_of(id))
                .or_else(|| self.agent_name(id))
                .unwrap_or_else(|| match object.within {
                    Some(f) => self.world.function(f).name.to_string(),
                    None => if is_graph { "graph" } else { "agent" }.into(),
                });
            out.push(Top {
                name,
                what: match is_graph {
                    true => What::Graph(id),
                    false if self.is_team(self.world.object(id)) => What::Team(id),
                    false => What::Agent(id),
                },
            });
        }
        if out.is_empty() || wanted.is_some() {
            self.chains(file, named, wanted, &mut out);
        }
        out.sort_by_key(|t| match &t.what {
            What::Graph(id) | What::Agent(id) | What::Team(id) => self.world.object(*id).span,
            What::Chain(value) => value.span,
        });
        out
    }

    /// Chains that are asked, or stand under a name.
    fn chains(&self, file: &File, named: &[(String, Value)], wanted: Option<&str>, out: &mut Vec<Top>) {
        if wanted.is_some() && !out.is_empty() {
            return;
        }
        let is_chain = |value: &Value| self.chain(value).is_some_and(|c| c.prompt.is_some());
        let mut seen: HashSet<ObjectId> = HashSet::new();
        for (name, value) in named {
            if let PyKind::Object(id) = value.kind
                && value.span.file == file.id
                && wanted.is_none_or(|w| w == name)
                && is_chain(value)
                && seen.insert(id)
            {
                out.push(Top { name: name.clone(), what: What::Chain(value.clone()) });
            }
        }
        if wanted.is_some() {
            return;
        }
        let mut places: HashSet<Span> = HashSet::new();
        for (_, object) in self.world.objects() {
            if object.span.file != file.id {
                continue;
            }
            let Some((base, _)) = self.asking(object) else { continue };
            let value = Value::new(PyKind::Object(base), self.world.object(base).span);
            if seen.insert(base) && is_chain(&value) && places.insert(value.span) {
                let name = object
                    .within
                    .map_or_else(|| "chain".to_string(), |f| self.world.function(f).name.to_string());
                out.push(Top { name, what: What::Chain(value) });
            }
        }
    }

    /// A chain as a function of its inputs.
    fn chain_unit(&self, kit: &mut Kit<'_>, value: &Value) -> TermId {
        let at = value.span;
        let Some(chain) = self.chain(value) else { return kit.unknown("a chain", at) };
        let params = self.params(kit, &chain.model, "chain");
        let scope = Scope { inputs: true, ..Scope::default() };
        let mut parts = Vec::new();
        if let Some(prompt) = &chain.prompt {
            let vars = match chain.given.is_empty() {
                true => prompt::Vars::Inputs,
                false => prompt::Vars::Values(Vec::new()),
            };
            for (name, value) in &chain.given {
                let passed = self
                    .world
                    .object_of(value)
                    .is_some_and(|(_, o)| matches!(o.short(), "RunnablePassthrough" | "itemgetter"));
                if !passed {
                    let message =
                        format!("the source of `{name}` is not compiled; it is an input of the unit");
                    kit.out.push(undecided(codes::NOT_COMPILED, message, value.span));
                }
            }
            self.prompt_parts(&scope, prompt, &vars, &mut parts, 0);
        }
        let mut term = self.ask_alone(kit, &scope, &parts, params, at);
        if chain.json && chain.model.schema.is_none() {
            term = kit.b.add(Term::Prim(Prim::FromJson, vec![term]), at);
        }
        kit.b.abs("x", Some(Type::Str), term, at)
    }

    /// A graph as a function of its input.
    fn unit(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let Some(plan) = self.plans.get(&id) else {
            return kit.unknown("a graph", self.world.object(id).span);
        };
        let at = plan.at;
        let graph = self.graph(plan, 0);
        let runs = self.runs_of(id);
        self.left_out(kit, &runs);
        let limit = self.limit(&runs, defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions));
        let mut said: Vec<(Name, TermId)> = Vec::new();
        if graph.has_conversation {
            said.extend(self.hoisted(kit, &graph, at));
        }
        let first = self.begin(kit, plan, &graph, &runs, &mut said);
        said.push((STATE.into(), first));
        let last = self.steps(kit, &graph, limit, &self.stops(&runs));
        said.push((STATE.into(), last));
        let result = self.result(kit, plan, at);
        let body = kit.b.let_in(said, result, at);
        let body = if graph.has_conversation { kit.b.add(Term::Fresh(body), at) } else { body };
        kit.b.abs("x", Some(Type::Str), body, at)
    }

    /// The nodes at which `compile(…)` says that a run stops.
    fn stops(&self, runs: &[(String, &python::Object)]) -> Stops {
        let compiled = runs.iter().filter(|(name, _)| name == "compile");
        let given = compiled
            .flat_map(|(_, o)| ["interrupt_before", "interrupt_after"].into_iter().filter_map(|k| o.arg(k)));
        let mut stops = Stops::default();
        for arg in given {
            match self.world.items(&arg.value) {
                Some(items) => {
                    stops.any |= !items.is_empty();
                    stops.nodes.extend(items.iter().filter_map(|v| self.node_name(v)));
                }
                None => stops.any |= !arg.value.is_none(),
            }
        }
        stops
    }

    /// Says what of `compile(…)` is left out.
    fn left_out(&self, kit: &mut Kit<'_>, runs: &[(String, &python::Object)]) {
        for (name, call) in runs {
            if name == "compile" {
                const UNUSED: &[frontend_kit::emit::Unused] = &[
                    ("checkpointer", "state kept between runs is not compiled"),
                    ("store", "state kept between runs is not compiled"),
                    ("cache", frontend_kit::shape::why::RUNTIME),
                    ("interrupt_before", "the run is not interrupted there, and no person is asked"),
                    ("interrupt_after", "the run is not interrupted there, and no person is asked"),
                    ("debug", frontend_kit::shape::why::RUNTIME),
                ];
                py::report(call, &["name"], UNUSED, "`compile`", kit.out);
            }
        }
    }

    /// The state at the beginning.
    fn begin(
        &self,
        kit: &mut Kit<'_>,
        plan: &Plan,
        graph: &node::Graph<'_>,
        runs: &[(String, &python::Object)],
        said: &mut Vec<(Name, TermId)>,
    ) -> TermId {
        let at = plan.at;
        let scope = Scope { inputs: true, ..Scope::default() };
        let names = ["invoke", "ainvoke", "stream", "astream", "astream_events"];
        let given = runs
            .iter()
            .filter(|(n, o)| names.contains(&n.as_str()) && o.callee.contains(".compile"))
            .find_map(|(_, o)| {
                let arg = o.args.iter().find(|a| a.name.is_none()).or_else(|| o.arg("input"))?;
                self.world.entries(&arg.value).filter(|e| !e.is_empty())
            });
        let given: Vec<(String, Value)> = given.map_or(Vec::new(), |e| {
            e.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))).collect()
        });
        let messages = plan.messages();
        // Texts, and what is not known here, are what the run is given.
        let is_input = |name: &str, value: &Value| {
            Some(name) != messages
                && (py::data(self.world, value).is_none()
                    || matches!(self.world.resolve_env(value).kind, PyKind::Str(_)))
        };
        let mut inputs: Vec<String> =
            given.iter().filter(|(k, v)| is_input(k, v)).map(|(k, _)| k.clone()).collect();
        if given.is_empty() && messages.is_none() {
            inputs = self.unwritten(plan);
        }
        if !given.is_empty() && plan.declared && !self.written_from_outside(plan, runs) {
            self.never_written(kit, plan, &given);
        }
        let one = inputs.len() == 1
            && messages.is_none_or(|m| given.iter().all(|(k, _)| k != m) && !given.is_empty());
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for channel in &plan.channels {
            let value = given.iter().find(|(k, _)| *k == channel.name).map(|(_, v)| v);
            let term = if Some(channel.name.as_str()) == messages {
                match (one, value) {
                    (true, None) => kit.b.lit(Data::list(Vec::new()), at),
                    _ => self.first_messages(kit, &scope, value, graph, said, at),
                }
            } else if inputs.contains(&channel.name) {
                match one {
                    true => kit.b.var("x", channel.at),
                    false => kit.input(&channel.name, channel.at),
                }
            } else {
                let data =
                    value.and_then(|v| py::data(self.world, v)).unwrap_or_else(|| channel.initial.clone());
                kit.b.lit(data, value.map_or(channel.at, |v| v.span))
            };
            fields.push((channel.name.as_str().into(), term));
        }
        self.first_fields(kit, graph, &mut fields, at);
        self.first_state(kit, fields, at)
    }

    /// The conversation at the beginning: what is written, with the input as what the user says last.
    fn first_messages(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        value: Option<&Value>,
        graph: &node::Graph<'_>,
        said: &mut Vec<(Name, TermId)>,
        at: Span,
    ) -> TermId {
        let mut parts = value.map_or(Vec::new(), |v| self.parts(scope, v));
        let user = |p: &Part| matches!(p, Part::Say(Role::User, _) | Part::Other(_));
        if let Some(i) = parts.iter().rposition(user) {
            parts.remove(i);
            parts.truncate(i);
        }
        let mut items = Vec::new();
        for part in &parts {
            let Part::Say(role, text) = part else { continue };
            let (text, again) = (self.said(kit, scope, text), self.said(kit, scope, text));
            items.push(self.message_term(kit, *role, text, at));
            if graph.has_conversation {
                said.push(("_".into(), kit.b.add(Term::Send(*role, again), at)));
            }
        }
        let x = kit.b.var("x", at);
        items.push(self.message_term(kit, Role::User, x, at));
        if graph.has_conversation {
            let x = kit.b.var("x", at);
            said.push(("_".into(), kit.b.add(Term::Send(Role::User, x), at)));
        }
        kit.b.add(Term::List(items), at)
    }

    /// Keys that no node writes: they must be given.
    fn unwritten(&self, plan: &Plan) -> Vec<String> {
        let mut written: Vec<(String, Span)> = Vec::new();
        let mut read: HashSet<String> = HashSet::new();
        for node in &plan.nodes {
            if let Some(traced) = self.traced(&node.value) {
                self.keys_written(&traced.trace.value, &mut written);
                read.extend(self.keys_read(traced).into_iter().map(|(k, _)| k));
            }
        }
        let free = |c: &&plan::Channel| {
            matches!(c.reducer, Reducer::Last)
                && c.initial == Data::Null
                && written.iter().all(|(k, _)| *k != c.name)
        };
        let inputs: Vec<String> = plan
            .channels
            .iter()
            .filter(free)
            .filter(|c| read.contains(&c.name))
            .map(|c| c.name.clone())
            .collect();
        if !inputs.is_empty() {
            return inputs;
        }
        let first = plan.channels.iter().find(|c| c.text || read.contains(&c.name)).or(plan.channels.first());
        first.map(|c| c.name.clone()).into_iter().collect()
    }

    /// Returns true if keys may be set outside of updates: by `Send` to a node, or by a caller that changes
    /// the state of an interrupted run.
    fn written_from_outside(&self, plan: &Plan, runs: &[(String, &python::Object)]) -> bool {
        let changed = runs.iter().any(|(name, _)| matches!(name.as_str(), "update_state" | "aupdate_state"));
        let deciding = plan.routers.iter().map(|r| &r.path).chain(plan.nodes.iter().map(|n| &n.value));
        changed
            || deciding.filter_map(|v| self.traced(v)).any(|t| {
                t.trace.objects.iter().any(|o| {
                    let object = self.world.object(*o);
                    object.short() == "Send" && object.package() == "langgraph"
                })
            })
    }

    /// Notes keys that are read, and that neither the run nor a node gives a value; not where a node is not
    /// wholly known.
    fn never_written(&self, kit: &mut Kit<'_>, plan: &Plan, given: &[(String, Value)]) {
        let mut written: Vec<(String, Span)> = Vec::new();
        let mut read: Vec<(String, Span)> = Vec::new();
        for node in &plan.nodes {
            let Some(traced) = self.traced(&node.value) else { return };
            let value = &traced.trace.value;
            let known =
                matches!(value.kind, PyKind::Dict(_) | PyKind::None) || self.either_of(value).is_some();
            if !known || self.traced_updates_unknown(value) {
                return;
            }
            self.keys_written(value, &mut written);
            read.extend(self.keys_read(traced));
        }
        for (key, at) in read {
            let free = plan
                .channel(&key)
                .is_some_and(|c| matches!(c.reducer, Reducer::Last) && c.initial == Data::Null);
            if free && written.iter().all(|(k, _)| *k != key) && given.iter().all(|(k, _)| *k != key) {
                kit.outline.unwritten(&key, at);
            }
        }
    }

    /// Returns true if an update may set keys that the trace doesn't show.
    fn traced_updates_unknown(&self, value: &Value) -> bool {
        let mut todo = vec![value.clone()];
        while let Some(value) = todo.pop() {
            match (&value.kind, self.either_of(&value)) {
                (PyKind::None, _) => {}
                (PyKind::Dict(id), _) => {
                    let dict = self.world.dict(*id);
                    if dict.open.is_some() || dict.entries.iter().any(|(k, _)| k.as_str().is_none()) {
                        return true;
                    }
                }
                (_, Some((_, a, b))) => todo.extend([a, b]),
                _ => return true,
            }
        }
        false
    }

    /// Lowers the result of a run: the text of the last message, or the state.
    fn result(&self, kit: &mut Kit<'_>, plan: &Plan, at: Span) -> TermId {
        let messages =
            plan.messages().filter(|m| plan.output.as_ref().is_none_or(|o| o.iter().any(|k| k == m)));
        if let Some(key) = messages {
            let list = self.read(kit, &STATE.into(), key, at);
            let last = self.nth_last(kit, list, 1, at);
            return kit.b.add(Term::Field(last, "content".into()), at);
        }
        let keys: Vec<String> = match &plan.output {
            Some(keys) => keys.clone(),
            None => plan.channels.iter().map(|c| c.name.clone()).collect(),
        };
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        for key in keys {
            let value = self.read(kit, &STATE.into(), &key, at);
            fields.push((key.as_str().into(), value));
        }
        kit.b.add(Term::Record(fields), at)
    }
}
