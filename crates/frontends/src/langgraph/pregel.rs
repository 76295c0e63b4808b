//! Graphs as terms, in steps as the framework runs them: all nodes that are due run at the same time on the
//! same state, then their updates are merged, then it is decided which nodes are due next.
//!
//! | graph | term |
//! |---|---|
//! | nodes in a row | `let $s = … in let $s = … in …` |
//! | several nodes in one step | `par`, then their updates are merged in the order of their names |
//! | a decision | `case` (or `if`) up to where its ways meet |
//! | `Send` to a node | `each` of what is sent |
//! | one cycle, always of the same length | `fix[k]`, a round a turn, and what the limit leaves of a last round |
//! | any other cycle | `fix[limit]`, a step a turn, over a state that says which nodes are due |
//!
//! A *configuration* is a set of nodes that are due, with the joins that are waited for. There are finitely
//! many; they are the nodes of the graph that is compiled. Their number may grow with the power of the number
//! of nodes where branches of different lengths run beside each other; such graphs are not compiled
//! ([`max_configs`]).
//!
//! Source: langgraph 1.2.22, `pregel/_loop.py`, `pregel/_algo.py`: a run fails when it has made
//! `recursion_limit` steps, whatever is due then.

use super::GraphReader;
use super::node::Graph;
use super::plan::{END, Router, Target};
use core_ir::TermId;
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, clip, codes};
use frontend_kit::kit::Kit;
use frontend_kit::outline::{DeadBranch, GraphOutline, NodeOutline, NodeRole};
use python::{PyKind, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum number of configurations of a graph with this number of nodes: proportional to it, so that the
/// time is, too. A row of nodes has one for each.
fn max_configs(nodes: usize) -> usize {
    300 + 8 * nodes
}

/// Task that is scheduled for the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Task {
    Node(usize),
    /// A node, for each thing that is sent to it.
    Each(usize),
}

impl Task {
    pub(super) fn node(self) -> usize {
        match self {
            Task::Node(n) | Task::Each(n) => n,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Config {
    pub(super) active: BTreeSet<Task>,
    /// Of joins that are waited for, who is done.
    pub(super) arrived: BTreeSet<(usize, usize)>,
}

/// Source of a routing decision.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decider {
    /// A function after a node, by its number.
    Router(usize),
    /// A node's own `Command`.
    Goto(usize),
}

/// Nodes at which a run stops until somebody resumes it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stops {
    /// Names of the nodes, as far as they are known.
    pub(super) nodes: Vec<String>,
    /// True if there are any.
    pub(super) any: bool,
}

/// Successor of a configuration.
#[derive(Clone, Debug)]
pub(super) enum Next {
    /// Nothing, or another configuration.
    To(Option<usize>),
    Decide {
        what: Decider,
        options: Vec<(String, Next)>,
        /// If what it is decided for is none of the options.
        default: Option<Box<Next>>,
        /// If something is sent.
        sent: Option<Box<Next>>,
    },
}

/// The ways out of a decision.
pub(super) struct Ways {
    decider: Decider,
    options: Vec<(String, Vec<Target>)>,
    default: Option<Vec<Target>>,
    sent: Option<usize>,
    /// True if the targets are complete.
    known: bool,
    /// Labels that lead to no node.
    lost: Vec<String>,
}

pub(super) struct Machine<'m, 'r, 'w, 'p> {
    pub(super) reader: &'m GraphReader<'r, 'w>,
    pub(super) graph: &'m Graph<'p>,
    pub(super) configs: Vec<(Config, Option<Next>)>,
    pub(super) index: HashMap<Config, usize>,
    pub(super) full: bool,
}

/// The labels that a decision for several nodes joins. A label that is known as a whole may hold the sign.
fn joined(label: &str, known: impl Fn(&str) -> bool) -> Vec<&str> {
    if known(label) { vec![label] } else { label.split('+').collect() }
}

/// The labels of a mapping that the function before it never gives, each with its place and whether another
/// label leads where it does.
fn never_taken<'r>(
    router: &'r Router,
    ways: &Ways,
) -> impl Iterator<Item = (String, &'r str, Span, bool)> + use<'r> {
    let all = router.map.as_deref().unwrap_or(&[]);
    let known = |label: &str| all.iter().any(|(l, ..)| l == label);
    let options = ways.options.iter().flat_map(|(label, _)| joined(label, known));
    let given: HashSet<String> = options.map(str::to_string).chain(ways.lost.iter().cloned()).collect();
    let live = given.clone();
    let other = move |to: &str| all.iter().any(|(label, target, _)| target == to && live.contains(label));
    all.iter().filter(move |(label, ..)| !given.contains(label)).map(move |(label, to, at)| {
        // `END` is written where it is imported from: the place is that of the decision then.
        let within = at.file == router.at.file && at.start >= router.at.start;
        (label.clone(), to.as_str(), if within { *at } else { router.at }, other(to))
    })
}

impl GraphReader<'_, '_> {
    /// From the state in `$s`, the last state. A run stops at some of the nodes.
    pub(super) fn steps(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        mut limit: LoopBound,
        stops: &Stops,
    ) -> TermId {
        let at = graph.plan.at;
        let mut machine =
            Machine { reader: self, graph, configs: Vec::new(), index: HashMap::new(), full: false };
        let (ways, mut outline) = machine.outline(kit);
        outline.stops = stops.any;
        limit.facts.stopped = outline.stops_in_each_cycle(&stops.nodes);
        kit.outline.graph(outline);
        machine.explore(&ways);
        if machine.full {
            return kit.undecided(
                codes::TOO_MUCH,
                format!(
                    "a graph of {} nodes with more than {} sets of nodes that may be due",
                    graph.plan.nodes.len(),
                    max_configs(graph.plan.nodes.len())
                ),
                at,
            );
        }
        machine.lower(kit, limit)
    }
}

impl Machine<'_, '_, '_, '_> {
    pub(super) fn config(&mut self, config: Config) -> usize {
        if let Some(i) = self.index.get(&config) {
            return *i;
        }
        if self.configs.len() >= max_configs(self.graph.plan.nodes.len()) {
            self.full = true;
            return 0;
        }
        self.configs.push((config.clone(), None));
        self.index.insert(config, self.configs.len() - 1);
        self.configs.len() - 1
    }

    pub(super) fn explore(&mut self, ways: &HashMap<Option<usize>, Vec<Ways>>) {
        let plan = self.graph.plan;
        let mut edges: HashMap<Option<usize>, Vec<Task>> = HashMap::new();
        for (from, to, _) in &plan.edges {
            if let Target::Node(to) = to {
                edges.entry(*from).or_default().push(Task::Node(*to));
            }
        }
        // The joins that a node is waited for by.
        let mut joins: HashMap<usize, BTreeSet<usize>> = HashMap::new();
        for (j, (from, _)) in plan.joins.iter().enumerate() {
            for node in from {
                joins.entry(*node).or_default().insert(j);
            }
        }
        let mut at = self.config(Config::default());
        while at < self.configs.len() && !self.full {
            let config = self.configs[at].0.clone();
            let mut targets: BTreeSet<Task> = BTreeSet::new();
            let mut arrived = config.arrived.clone();
            let done: Vec<Option<usize>> = match at {
                0 => vec![None],
                _ => config.active.iter().map(|t| Some(t.node())).collect(),
            };
            for node in &done {
                targets.extend(edges.get(node).into_iter().flatten());
            }
            let waited: BTreeSet<usize> =
                done.iter().flatten().filter_map(|n| joins.get(n)).flatten().copied().collect();
            for j in waited {
                let (from, to) = &plan.joins[j];
                arrived.extend(from.iter().filter(|n| done.contains(&Some(**n))).map(|n| (j, *n)));
                if from.iter().all(|n| arrived.contains(&(j, *n))) {
                    arrived.retain(|(k, _)| *k != j);
                    if let Target::Node(to) = to {
                        targets.insert(Task::Node(*to));
                    }
                }
            }
            let mut deciders: Vec<&Ways> = Vec::new();
            for node in &done {
                deciders.extend(ways.get(node).into_iter().flatten());
            }
            let next = self.tree(&deciders, &targets, &arrived, 0);
            self.configs[at].1 = Some(next);
            at += 1;
        }
    }

    pub(super) fn tree(
        &mut self,
        deciders: &[&Ways],
        targets: &BTreeSet<Task>,
        arrived: &BTreeSet<(usize, usize)>,
        depth: usize,
    ) -> Next {
        const MAX_DEPTH: usize = 8;
        let Some((ways, rest)) = deciders.split_first() else {
            return match targets.is_empty() {
                true => Next::To(None),
                false => {
                    Next::To(Some(self.config(Config { active: targets.clone(), arrived: arrived.clone() })))
                }
            };
        };
        if depth > MAX_DEPTH || self.full {
            self.full = true;
            return Next::To(None);
        }
        let with = |more: &[Target]| -> BTreeSet<Task> {
            let more = more.iter().filter_map(|t| match t {
                Target::Node(n) => Some(Task::Node(*n)),
                Target::End => None,
            });
            targets.iter().copied().chain(more).collect()
        };
        let options = ways
            .options
            .iter()
            .map(|(label, to)| (label.clone(), self.tree(rest, &with(to), arrived, depth + 1)));
        let options = options.collect();
        let default =
            ways.default.as_ref().map(|to| Box::new(self.tree(rest, &with(to), arrived, depth + 1)));
        let sent = ways.sent.map(|node| {
            let targets = targets.iter().copied().chain([Task::Each(node)]).collect();
            Box::new(self.tree(rest, &targets, arrived, depth + 1))
        });
        Next::Decide { what: ways.decider, options, default, sent }
    }

    // ---- decisions ----

    /// The ways out of every decision, by the node that it is after; the graph as it is written.
    pub(super) fn outline(&self, kit: &mut Kit<'_>) -> (HashMap<Option<usize>, Vec<Ways>>, GraphOutline) {
        let plan = self.graph.plan;
        let (start, end) = (plan.nodes.len(), plan.nodes.len() + 1);
        let mut out: HashMap<Option<usize>, Vec<Ways>> = HashMap::new();
        let mut edges: Vec<(usize, usize, Option<String>)> = Vec::new();
        let number = |to: Target| match to {
            Target::Node(n) => n,
            Target::End => end,
        };
        for (from, to, _) in &plan.edges {
            edges.push((from.unwrap_or(start), number(*to), None));
        }
        for (from, to) in &plan.joins {
            edges.extend(from.iter().map(|f| (*f, number(*to), None)));
        }
        let mut outcomes: HashMap<usize, Vec<(String, Span)>> = HashMap::new();
        let mut dead = Vec::new();
        let mut open: HashSet<usize> = HashSet::new();
        for (i, router) in plan.routers.iter().enumerate() {
            let ways = self.ways_of_router(kit, i, router, &mut outcomes);
            let from = router.from.unwrap_or(start);
            for (label, to) in &ways.options {
                edges.extend(to.iter().map(|t| (from, number(*t), Some(label.clone()))));
            }
            edges.extend(ways.default.iter().flatten().map(|t| (from, number(*t), Some(END.to_string()))));
            edges.extend(ways.sent.map(|n| (from, n, None)));
            if ways.known && ways.sent.is_none() {
                // A mapping also lists the nodes that are sent to.
                dead.extend(never_taken(router, &ways).map(|(label, to, at, other)| {
                    let harmless = other || self.reader.names_label(&router.path, &label);
                    DeadBranch { from, to: plan.index(to), label, at, harmless }
                }));
            }
            // What is sent may be nothing.
            let says = router.map.is_some() || self.reader.literals(&router.path).is_some();
            if ways.sent.is_some() || !ways.known && (!says || self.sends()) {
                open.insert(from);
            }
            out.entry(router.from).or_default().push(ways);
        }
        for (i, node) in plan.nodes.iter().enumerate() {
            if let Some(ways) = self.ways_of_node(i) {
                for (label, to) in &ways.options {
                    edges.extend(to.iter().map(|t| (i, number(*t), Some(label.clone()))));
                }
                edges.extend(ways.sent.map(|n| (i, n, None)));
                // Without a `Command` it goes on by its edges, or ends.
                out.entry(Some(i)).or_default().push(ways);
            }
            let _ = node;
        }
        let mut nodes: Vec<NodeOutline> = plan
            .nodes
            .iter()
            .enumerate()
            .map(|(i, n)| NodeOutline {
                name: n.name.clone(),
                at: n.at,
                outcomes: outcomes.remove(&i),
                role: self.role(&n.value),
            })
            .collect();
        nodes.push(NodeOutline {
            name: "START".into(),
            at: plan.at,
            outcomes: outcomes.remove(&start),
            role: NodeRole::Plain,
        });
        // An end that only unreached nodes lead to is no end.
        let mut following: HashMap<usize, Vec<usize>> = HashMap::new();
        edges.iter().for_each(|(from, to, _)| following.entry(*from).or_default().push(*to));
        let mut reached = HashSet::from([start]);
        let mut todo = vec![start];
        while let Some(node) = todo.pop() {
            for to in following.get(&node).into_iter().flatten() {
                if reached.insert(*to) {
                    todo.push(*to);
                }
            }
        }
        if !reached.contains(&end) {
            edges.retain(|(_, to, _)| *to != end);
        }
        if edges.iter().any(|(_, to, _)| *to == end) {
            nodes.push(NodeOutline {
                name: "END".into(),
                at: plan.at,
                outcomes: None,
                role: NodeRole::Plain,
            });
        }
        let lost = (0..plan.nodes.len()).any(|n| !reached.contains(&n));
        // Of a graph of which every node is reached, only its edges matter: they are followed whatever a node
        // gives.
        let decided = open.is_disjoint(&reached) && !self.is_unsure();
        let open = !decided || lost && self.is_open(&reached);
        (out, GraphOutline { at: plan.at, nodes, edges, placed: Vec::new(), start, open, stops: false, dead })
    }

    /// Returns true if the module uses `Send`.
    fn sends(&self) -> bool {
        self.refers("Send")
    }

    /// Returns true if the module or one that it imports has an identifier.
    fn refers(&self, name: &str) -> bool {
        self.reader.world.evaluated().any(|module| module.refers(name))
    }

    /// Returns true if some part of the graph's construction is unknown.
    fn is_unsure(&self) -> bool {
        let unsure = |d: &diagnostics::Diagnostic| {
            d.level == diagnostics::Level::Unknown || d.code == codes::UNDEFINED
        };
        self.graph.plan.diagnostics.iter().any(unsure)
    }

    /// Returns true if a run may continue where no edge leads: a reached node may return a `Command`, or a
    /// subgraph may return one for its parent.
    fn is_open(&self, reached: &HashSet<usize>) -> bool {
        let plan = self.graph.plan;
        if self.refers("as_node") || self.refers("PARENT") {
            return true;
        }
        // Who starts a run may say where it begins: `invoke(Command(goto="a"))`.
        let world = self.reader.world;
        let named = world.objects().filter(|(_, o)| matches!(o.short(), "Command" | "Send")).any(|(_, o)| {
            let to = o.arg("goto").or_else(|| o.args.first().filter(|_| o.short() == "Send"));
            let to = to.and_then(|a| self.reader.labels(&a.value)).unwrap_or_default();
            to.iter().filter_map(|n| plan.index(n)).any(|n| !reached.contains(&n))
        });
        named || (0..plan.nodes.len()).any(|n| reached.contains(&n) && self.may_command(n))
    }

    /// Returns true if a node may return a `Command` with an unknown target.
    fn may_command(&self, index: usize) -> bool {
        let node = &self.graph.plan.nodes[index];
        if self.reader.inner_graph(&node.value).is_some() || self.reader.chain(&node.value).is_some() {
            return false;
        }
        if self.reader.tool_node(&node.value, self.graph).is_some() {
            return self.refers("Command");
        }
        let Some(traced) = self.reader.traced(&node.value) else { return true };
        let mut todo = vec![traced.trace.value.clone()];
        let mut left = 400;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return true;
            }
            if let Some(command) = self.reader.command(&value) {
                let Some(to) = command.arg("goto") else { continue };
                let mut ways = Ways {
                    decider: Decider::Goto(index),
                    options: Vec::new(),
                    default: None,
                    sent: None,
                    known: true,
                    lost: Vec::new(),
                };
                let known = self.reader.labels(&to.value).is_some()
                    || self.leaves(&to.value, &mut Vec::new(), &mut ways)
                    || !node.ends.is_empty() && !self.sends();
                if !known {
                    return true;
                }
                continue;
            }
            match (&value.kind, self.reader.either_of(&value)) {
                (PyKind::Dict(_) | PyKind::None, _) => {}
                (PyKind::Either(id), _) => todo.extend(self.reader.world.list(*id).items.iter().cloned()),
                (_, Some((_, a, b))) => todo.extend([a, b]),
                _ if !node.ends.is_empty() && !self.sends() => {}
                _ => return true,
            }
        }
        false
    }

    pub(super) fn role(&self, value: &Value) -> NodeRole {
        let asks = self.reader.traced(value).is_some_and(|t| {
            t.trace.objects.iter().any(|o| self.reader.world.object(*o).callee.ends_with("types.interrupt"))
        });
        if asks { NodeRole::Approves } else { NodeRole::Plain }
    }

    pub(super) fn ways_of_router(
        &self,
        kit: &mut Kit<'_>,
        index: usize,
        router: &Router,
        outcomes: &mut HashMap<usize, Vec<(String, Span)>>,
    ) -> Ways {
        let plan = self.graph.plan;
        let mut ways = Ways {
            decider: Decider::Router(index),
            options: Vec::new(),
            default: None,
            sent: None,
            known: true,
            lost: Vec::new(),
        };
        let mut labels: Vec<(String, Span)> = Vec::new();
        let mut all_known = true;
        let prebuilt = self.reader.is_tools_condition(&router.path);
        if prebuilt {
            labels.extend([("tools".to_string(), router.at), (END.to_string(), router.at)]);
        } else if let Some(traced) = self.reader.traced(&router.path) {
            all_known = self.leaves(&traced.trace.value, &mut labels, &mut ways);
        } else {
            all_known = false;
        }
        let said = !all_known || labels.is_empty() && ways.sent.is_none();
        if said {
            // What the source says that it may give.
            let more = match (&router.map, self.reader.literals(&router.path)) {
                (Some(map), _) => map.iter().map(|(l, _, at)| (l.clone(), *at)).collect(),
                (None, Some(literals)) => literals,
                (None, None) => {
                    let mut all: Vec<(String, Span)> =
                        plan.nodes.iter().map(|n| (n.name.clone(), n.at)).collect();
                    all.push((END.into(), router.at));
                    all
                }
            };
            for (label, at) in more {
                if labels.iter().all(|(l, _)| *l != label) {
                    labels.push((label, at));
                }
            }
        }
        let from = router.from.unwrap_or(plan.nodes.len());
        let mut listed: Vec<(String, Span)> = Vec::new();
        let mut is_known = true;
        for (label, at) in labels {
            let mut targets = Vec::new();
            let known = |label: &str| match &router.map {
                Some(map) => map.iter().any(|(l, ..)| l == label),
                None => plan.target(label).is_some(),
            };
            for part in joined(&label, known) {
                let of = |map: &[(String, String, Span)]| {
                    map.iter().find(|(l, ..)| l == part).map(|(_, n, _)| n.clone())
                };
                let name = match &router.map {
                    Some(map) => of(map),
                    None => router.partial.as_deref().and_then(of).or_else(|| Some(part.to_string())),
                };
                match name.as_deref().and_then(|n| plan.target(n)) {
                    Some(target) => targets.push(target),
                    // The rest of the mapping may have it.
                    None if router.partial.is_some() => {
                        is_known = false;
                        ways.lost.push(part.to_string());
                    }
                    // A method that another one has run before may have added it.
                    None if router.map.is_some() && name.is_none() && self.is_added(part) => {
                        is_known = false;
                        ways.lost.push(part.to_string());
                    }
                    None => {
                        let message = format!("this returns `{}`, which is not a node", clip(part));
                        let message = if router.map.is_some() && name.is_none() {
                            format!("this decides for `{}`, which the mapping does not have", clip(part))
                        } else {
                            message
                        };
                        kit.out.push(diagnostics::Diagnostic::warn(codes::UNDEFINED, message, at));
                        ways.lost.push(part.to_string());
                    }
                }
            }
            listed.push((label.clone(), at));
            if !targets.is_empty() && ways.options.iter().all(|(l, _)| *l != label) {
                ways.options.push((label, targets));
            }
        }
        ways.known = !said && is_known;
        if !said {
            outcomes.entry(from).or_default().extend(listed);
        }
        ways
    }

    /// Returns true if the module of the graph adds a label to a mapping somewhere.
    fn is_added(&self, label: &str) -> bool {
        let sources = self.reader.world.sources();
        let module = sources.of_file(self.graph.plan.at.file).and_then(|m| sources.get(m));
        module.is_some_and(|m| m.sets_item(label))
    }

    /// The labels at the ends of a function. False if one is not known.
    pub(super) fn leaves(&self, value: &Value, labels: &mut Vec<(String, Span)>, ways: &mut Ways) -> bool {
        const MAX_LEAVES: usize = 400;
        let mut known = true;
        let mut todo = vec![value.clone()];
        let mut left = MAX_LEAVES;
        while let Some(value) = todo.pop() {
            left -= 1;
            if left == 0 {
                return false;
            }
            if let Some(names) = self.reader.labels(&value) {
                if names.is_empty() {
                    continue;
                }
                let label = names.join("+");
                if labels.iter().all(|(l, _)| *l != label) {
                    labels.push((label, value.span));
                }
                continue;
            }
            if let Some((node, _)) = self.reader.sent(&value) {
                match self.graph.plan.index(&node) {
                    Some(node) => ways.sent = Some(node),
                    None => known = false,
                }
                continue;
            }
            match &value.kind {
                PyKind::Bool(b) => labels.push((b.to_string(), value.span)),
                PyKind::Object(id) if &*self.reader.world.object(*id).callee == "if" => {
                    todo.extend(
                        self.reader.world.object(*id).args.iter().skip(1).rev().map(|a| a.value.clone()),
                    );
                }
                PyKind::Either(id) => {
                    todo.extend(self.reader.world.list(*id).items.iter().rev().cloned());
                }
                _ => known = false,
            }
        }
        known
    }

    /// The ways that a node's `Command`s lead.
    pub(super) fn ways_of_node(&self, index: usize) -> Option<Ways> {
        let plan = self.graph.plan;
        let node = &plan.nodes[index];
        let mut ways = Ways {
            decider: Decider::Goto(index),
            options: Vec::new(),
            default: Some(Vec::new()),
            sent: None,
            known: true,
            lost: Vec::new(),
        };
        let mut named: Vec<String> = Vec::new();
        let mut computed = false;
        let mut found = false;
        if let Some(traced) = self.reader.traced(&node.value) {
            let mut todo = vec![traced.trace.value.clone()];
            let mut left = 400;
            while let Some(value) = todo.pop() {
                left -= 1;
                if left == 0 {
                    break;
                }
                let Some((_, object)) = self.reader.world.object_of(&value) else {
                    match value.kind {
                        PyKind::Either(id) => todo.extend(self.reader.world.list(id).items.iter().cloned()),
                        PyKind::Dict(_) | PyKind::None => {}
                        // It may be a command as well.
                        _ => computed |= !node.ends.is_empty(),
                    }
                    continue;
                };
                if &*object.callee == "if" {
                    todo.extend(object.args.iter().skip(1).rev().map(|a| a.value.clone()));
                } else if object.short() == "Command"
                    && let Some(to) = object.arg("goto")
                {
                    found = true;
                    match (self.reader.labels(&to.value), self.reader.sent(&to.value)) {
                        (Some(names), _) => named.push(names.join("+")),
                        (None, Some((node, _))) => ways.sent = plan.index(&node),
                        (None, None) => {
                            computed = true;
                            // `goto = "a" if … else "b"`.
                            let mut labels = Vec::new();
                            let mut inner = Ways {
                                decider: Decider::Goto(index),
                                options: Vec::new(),
                                default: None,
                                sent: None,
                                known: true,
                                lost: Vec::new(),
                            };
                            if self.leaves(&to.value, &mut labels, &mut inner) {
                                computed = false;
                                named.extend(labels.into_iter().map(|(l, _)| l));
                            }
                        }
                    }
                }
            }
        }
        if !found && !computed {
            return None;
        }
        if computed {
            if node.ends.is_empty() {
                named.extend(plan.nodes.iter().map(|n| n.name.clone()));
                named.push(END.into());
            } else {
                named.extend(node.ends.iter().cloned());
            }
        }
        for label in named {
            let parts = joined(&label, |label| plan.target(label).is_some());
            let targets: Vec<Target> = parts.into_iter().filter_map(|n| plan.target(n)).collect();
            if !targets.is_empty() && ways.options.iter().all(|(l, _)| *l != label) {
                ways.options.push((label, targets));
            }
        }
        Some(ways)
    }
}
