//! Graphs as terms, in steps as the framework runs them: all nodes that are due run at the same time on the same state, then their
//! updates are merged, then it is decided which nodes are due next.
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
//! A *configuration* is a set of nodes that are due, with the joins that are waited for. There are finitely many; they are the nodes of
//! the graph that is compiled. More than [`MOST`] are not.
//!
//! Source: langgraph 1.2.22, `pregel/_loop.py`, `pregel/_algo.py`: a run fails when it has made `recursion_limit` steps, whatever is due then.

use super::Reader;
use super::node::{GOTO, Graph, Mode, SENT};
use super::plan::{END, Reducer, Router, Target};
use super::value::STATE;
use crate::emit::{LoopBound, clip, codes, undecided};
use crate::kit::Kit;
use crate::outline::{GraphOutline, NodeOutline, NodeRole};
use core_ir::{Bound, Branch, Data, IfSugar, Name, Num, Prim, Role, Term, TermId};
use diagnostics::Span;
use python::{Kind, Value};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Configurations of one graph at most.
const MOST: usize = 300;
/// The field that says whether a loop goes on.
const ON: &str = "$on";
/// The field that says which nodes are due.
const AT: &str = "$at";

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    Node(usize),
    /// A node, for each thing that is sent to it.
    Each(usize),
}

impl Task {
    fn node(self) -> usize {
        match self {
            Task::Node(n) | Task::Each(n) => n,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Config {
    active: BTreeSet<Task>,
    /// Of joins that are waited for, who is done.
    arrived: BTreeSet<(usize, usize)>,
}

/// What decides.
#[derive(Clone, Copy, Debug)]
enum Decider {
    /// A function after a node, by its number.
    Router(usize),
    /// A node's own `Command`.
    Goto(usize),
}

/// What follows a configuration.
#[derive(Clone, Debug)]
enum Next {
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
struct Ways {
    decider: Decider,
    options: Vec<(String, Vec<Target>)>,
    default: Option<Vec<Target>>,
    sent: Option<usize>,
}

struct Machine<'m, 'r, 'w, 'p> {
    reader: &'m Reader<'r, 'w>,
    graph: &'m Graph<'p>,
    configs: Vec<(Config, Option<Next>)>,
    index: HashMap<Config, usize>,
    full: bool,
}

impl Reader<'_, '_> {
    /// From the state in `$s`, the last state.
    pub(super) fn steps(&self, kit: &mut Kit<'_>, graph: &Graph<'_>, limit: LoopBound) -> TermId {
        let at = graph.plan.at;
        let mut machine =
            Machine { reader: self, graph, configs: Vec::new(), index: HashMap::new(), full: false };
        let ways = machine.outline(kit);
        machine.explore(&ways);
        if machine.full {
            return kit.undecided(
                codes::TOO_MUCH,
                format!("a graph with more than {MOST} sets of nodes that may be due"),
                at,
            );
        }
        machine.lower(kit, limit)
    }
}

impl Machine<'_, '_, '_, '_> {
    fn config(&mut self, config: Config) -> usize {
        if let Some(i) = self.index.get(&config) {
            return *i;
        }
        if self.configs.len() >= MOST {
            self.full = true;
            return 0;
        }
        self.configs.push((config.clone(), None));
        self.index.insert(config, self.configs.len() - 1);
        self.configs.len() - 1
    }

    fn explore(&mut self, ways: &HashMap<Option<usize>, Vec<Ways>>) {
        let mut at = self.config(Config::default());
        while at < self.configs.len() && !self.full {
            let config = self.configs[at].0.clone();
            let mut targets: BTreeSet<Task> = BTreeSet::new();
            let mut arrived = config.arrived.clone();
            let plan = self.graph.plan;
            let done: Vec<Option<usize>> = match at {
                0 => vec![None],
                _ => config.active.iter().map(|t| Some(t.node())).collect(),
            };
            for (from, to, _) in &plan.edges {
                if let (true, Target::Node(to)) = (done.contains(from), to) {
                    targets.insert(Task::Node(*to));
                }
            }
            for (j, (from, to)) in plan.joins.iter().enumerate() {
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

    fn tree(
        &mut self,
        deciders: &[&Ways],
        targets: &BTreeSet<Task>,
        arrived: &BTreeSet<(usize, usize)>,
        depth: usize,
    ) -> Next {
        const DEEPEST: usize = 8;
        let Some((ways, rest)) = deciders.split_first() else {
            return match targets.is_empty() {
                true => Next::To(None),
                false => {
                    Next::To(Some(self.config(Config { active: targets.clone(), arrived: arrived.clone() })))
                }
            };
        };
        if depth > DEEPEST || self.full {
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
    fn outline(&self, kit: &mut Kit<'_>) -> HashMap<Option<usize>, Vec<Ways>> {
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
        for (i, router) in plan.routers.iter().enumerate() {
            let ways = self.ways_of_router(kit, i, router, &mut outcomes);
            let from = router.from.unwrap_or(start);
            for (label, to) in &ways.options {
                edges.extend(to.iter().map(|t| (from, number(*t), Some(label.clone()))));
            }
            edges.extend(ways.default.iter().flatten().map(|t| (from, number(*t), Some(END.to_string()))));
            edges.extend(ways.sent.map(|n| (from, n, None)));
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
        if edges.iter().any(|(_, to, _)| *to == end) {
            nodes.push(NodeOutline {
                name: "END".into(),
                at: plan.at,
                outcomes: None,
                role: NodeRole::Plain,
            });
        }
        kit.outline.graph(GraphOutline { at: plan.at, nodes, edges, placed: Vec::new(), start });
        out
    }

    fn role(&self, value: &Value) -> NodeRole {
        let asks = self.reader.traced(value).is_some_and(|t| {
            t.trace.objects.iter().any(|o| self.reader.world.object(*o).callee.ends_with("types.interrupt"))
        });
        if asks { NodeRole::Approves } else { NodeRole::Plain }
    }

    fn ways_of_router(
        &self,
        kit: &mut Kit<'_>,
        index: usize,
        router: &Router,
        outcomes: &mut HashMap<usize, Vec<(String, Span)>>,
    ) -> Ways {
        let plan = self.graph.plan;
        let mut ways =
            Ways { decider: Decider::Router(index), options: Vec::new(), default: None, sent: None };
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
        for (label, at) in labels {
            let mut targets = Vec::new();
            for part in label.split('+') {
                let name = match &router.map {
                    Some(map) => map.iter().find(|(l, ..)| l == part).map(|(_, n, _)| n.clone()),
                    None => Some(part.to_string()),
                };
                match name.as_deref().and_then(|n| plan.target(n)) {
                    Some(target) => targets.push(target),
                    None => {
                        let message = format!("this decides for `{}`, which is no node", clip(part));
                        let message = if router.map.is_some() && name.is_none() {
                            format!("this decides for `{}`, which the mapping does not have", clip(part))
                        } else {
                            message
                        };
                        kit.out.push(diagnostics::Diagnostic::warn(codes::UNDEFINED, message, at));
                    }
                }
            }
            listed.push((label.clone(), at));
            if !targets.is_empty() && ways.options.iter().all(|(l, _)| *l != label) {
                ways.options.push((label, targets));
            }
        }
        if !said {
            outcomes.entry(from).or_default().extend(listed);
        }
        ways
    }

    /// The labels at the ends of a function. False if one is not known.
    fn leaves(&self, value: &Value, labels: &mut Vec<(String, Span)>, ways: &mut Ways) -> bool {
        const MOST: usize = 400;
        let mut known = true;
        let mut todo = vec![value.clone()];
        let mut left = MOST;
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
                Kind::Bool(b) => labels.push((b.to_string(), value.span)),
                Kind::Object(id) if &*self.reader.world.object(*id).callee == "if" => {
                    todo.extend(
                        self.reader.world.object(*id).args.iter().skip(1).rev().map(|a| a.value.clone()),
                    );
                }
                Kind::Either(id) => {
                    todo.extend(self.reader.world.list(*id).items.iter().rev().cloned());
                }
                _ => known = false,
            }
        }
        known
    }

    /// The ways that a node's `Command`s lead.
    fn ways_of_node(&self, index: usize) -> Option<Ways> {
        let plan = self.graph.plan;
        let node = &plan.nodes[index];
        let mut ways = Ways {
            decider: Decider::Goto(index),
            options: Vec::new(),
            default: Some(Vec::new()),
            sent: None,
        };
        let mut named: Vec<String> = Vec::new();
        let mut computed = false;
        let mut found = false;
        if let Some(traced) = self
            .reader
            .traced(&node.value)
            .filter(|_| self.reader.tool_node(&node.value, self.graph).is_none())
        {
            let mut todo = vec![traced.trace.value.clone()];
            let mut left = 400;
            while let Some(value) = todo.pop() {
                left -= 1;
                if left == 0 {
                    break;
                }
                let Some((_, object)) = self.reader.world.object_of(&value) else {
                    if let Kind::Either(id) = value.kind {
                        todo.extend(self.reader.world.list(id).items.iter().cloned());
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
        if !found {
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
            let targets: Vec<Target> = label.split('+').filter_map(|n| plan.target(n)).collect();
            if !targets.is_empty() && ways.options.iter().all(|(l, _)| *l != label) {
                ways.options.push((label, targets));
            }
        }
        Some(ways)
    }

    // ---- lowering ----

    fn place(&self, config: usize) -> Span {
        let first = self.configs[config].0.active.iter().next();
        first.map_or(self.graph.plan.at, |t| self.graph.plan.nodes[t.node()].at)
    }

    fn successors(&self, config: usize) -> Vec<Option<usize>> {
        let mut out = Vec::new();
        let mut todo: Vec<&Next> = self.configs[config].1.iter().collect();
        while let Some(next) = todo.pop() {
            match next {
                Next::To(to) => out.push(*to),
                Next::Decide { options, default, sent, .. } => {
                    todo.extend(options.iter().map(|(_, n)| n));
                    todo.extend(default.iter().chain(sent).map(|n| &**n));
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    fn lower(&mut self, kit: &mut Kit<'_>, limit: LoopBound) -> TermId {
        let n = self.configs.len();
        let out: Vec<Vec<Option<usize>>> = (0..n).map(|c| self.successors(c)).collect();
        let back = back_edges(&out);
        let headers: HashSet<usize> = back.iter().map(|(_, to)| *to).collect();
        let forward: Vec<Vec<usize>> = (0..n)
            .map(|c| out[c].iter().flatten().copied().filter(|to| !back.contains(&(c, *to))).collect())
            .collect();
        let (near, far) = distances(&forward, 0);
        let most = match limit.bound {
            Bound::Finite(n) => Some(n),
            Bound::Infinite => None,
        };
        let longest = far.iter().flatten().max().copied().unwrap_or(0) as u64;
        let mut lower = Lower {
            join: joins(&out, &back, &forward),
            machine: self,
            back: back.clone(),
            left: 4 * n + 40,
            header: None,
        };
        if headers.is_empty() && most.is_none_or(|n| longest < n) {
            if let Some(term) = lower.tail(kit, 0, None) {
                return term;
            }
        } else if let (1, Some(h)) = (headers.len(), headers.iter().next().copied()) {
            // How far it is to the cycle, and how long it is, if that is always the same.
            // If it is not, the least counts where the limit is only the framework's default: then there is no last round.
            let loose = limit.origin.is_some() || most.is_none();
            let prefix = near[h].filter(|p| far[h] == Some(*p) || loose);
            let (from_h, to_h) = distances(&forward, h);
            let lengths: Option<Vec<usize>> = back
                .iter()
                .map(|(from, _)| from_h[*from].filter(|d| to_h[*from] == Some(*d) || loose))
                .collect();
            let same = |l: &[usize]| l.windows(2).all(|w| w[0] == w[1]);
            let exact = lengths.as_ref().is_some_and(|l| same(l))
                && near[h] == far[h]
                && back.iter().all(|(f, _)| from_h[*f] == to_h[*f]);
            let length = lengths.filter(|l| same(l) || loose).and_then(|l| l.iter().min().copied());
            let around = reached_without(&forward, 0, h);
            let inside = back.iter().all(|(from, _)| !around[*from]);
            if let (Some(prefix), Some(length), true) = (prefix, length, inside) {
                let steps =
                    Steps { before: prefix.saturating_sub(1) as u64, round: length as u64 + 1, exact };
                lower.header = Some((h, limit, steps));
                if let Some(term) = lower.tail(kit, 0, None) {
                    return term;
                }
                let Some((_, limit, _)) = lower.header.take() else {
                    return kit.unknown("a graph", self.graph.plan.at);
                };
                return self.by_steps(kit, limit);
            }
        }
        self.by_steps(kit, limit)
    }

    /// What a configuration does to the state.
    fn run(&self, kit: &mut Kit<'_>, config: usize) -> Vec<(Name, TermId)> {
        let tasks: Vec<Task> = {
            // Updates are merged in the order of the nodes' names.
            let mut tasks: Vec<Task> = self.configs[config].0.active.iter().copied().collect();
            tasks.sort_by_key(|t| (matches!(t, Task::Each(_)), self.graph.plan.nodes[t.node()].name.clone()));
            tasks
        };
        let at = self.place(config);
        if let [Task::Node(node)] = tasks[..] {
            let state = self.reader.node(kit, self.graph, node, STATE, Mode::Alone);
            return vec![(STATE.into(), state)];
        }
        let mut sides = Vec::new();
        for task in &tasks {
            let place = self.graph.plan.nodes[task.node()].at;
            sides.push(match task {
                Task::Node(node) => self.reader.node(kit, self.graph, *node, STATE, Mode::Beside),
                Task::Each(node) => {
                    let item: Name = "$item".into();
                    let body = self.reader.node(kit, self.graph, *node, "$item", Mode::Beside);
                    let each = kit.b.abs(item, None, body, place);
                    let sent = self.reader.read(kit, &STATE.into(), SENT, place);
                    kit.b.add(Term::Each(None, each, sent), place)
                }
            });
        }
        let par = match sides.len() {
            1 => kit.b.add(Term::List(sides), at),
            _ => kit.b.add(Term::Par(None, sides), at),
        };
        let mut out: Vec<(Name, TermId)> = vec![("$all".into(), par)];
        for (i, task) in tasks.iter().enumerate() {
            self.merge(kit, i, *task, &mut out);
        }
        out
    }

    /// Merges the update of one of several nodes.
    fn merge(&self, kit: &mut Kit<'_>, i: usize, task: Task, out: &mut Vec<(Name, TermId)>) {
        let plan = self.graph.plan;
        let node = &plan.nodes[task.node()];
        let at = node.at;
        let update = |kit: &mut Kit<'_>| {
            let (all, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
            kit.b.add(Term::Index(all, index), at)
        };
        let Writes { keys, certain } = self.writes(node);
        for key in &keys {
            let Some(channel) = plan.channel(key) else { continue };
            let name: Name = key.as_str().into();
            if let Task::Each(_) = task {
                let term = self.merge_each(kit, i, key, &channel.reducer, at);
                out.push((STATE.into(), term));
                continue;
            }
            let u = update(kit);
            let new = kit.b.add(Term::Field(u, name.clone()), at);
            let old = self.reader.read(kit, &STATE.into(), key, at);
            let merged = self.reader.reduced(kit, &channel.reducer, old, new, at);
            let value = match certain {
                true => merged,
                false => {
                    let (u, text) = (update(kit), kit.text(key, at));
                    let has = kit.b.add(Term::Prim(Prim::Has, vec![u, text]), at);
                    let old = self.reader.read(kit, &STATE.into(), key, at);
                    kit.b.add(Term::If(has, merged, old, IfSugar::Plain), at)
                }
            };
            let s = kit.b.var(STATE, at);
            let s = kit.b.add(Term::With(s, name.clone(), value), at);
            out.push((STATE.into(), s));
            if matches!(channel.reducer, Reducer::Messages) && self.graph.talks {
                // What was said beside is said in the conversation now.
                let said = if certain { self.said_by(node) } else { None };
                match said {
                    Some(count) => {
                        for j in 0..count {
                            let u = update(kit);
                            let list = kit.b.add(Term::Field(u, name.clone()), at);
                            let j = kit.b.lit(Num::from(j as i64), at);
                            let message = kit.b.add(Term::Index(list, j), at);
                            let content = kit.b.add(Term::Field(message, "content".into()), at);
                            out.push(("_".into(), kit.b.add(Term::Send(Role::Assistant, content), at)));
                        }
                    }
                    None => {
                        let message = format!(
                            "what `{}` adds to the conversation beside other nodes is not shown to models that are asked later",
                            clip(&node.name)
                        );
                        kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                    }
                }
            }
        }
        if self.ways_of_node(task.node()).is_some() {
            let u = update(kit);
            let (u2, text) = (update(kit), kit.text(GOTO, at));
            let has = kit.b.add(Term::Prim(Prim::Has, vec![u2, text]), at);
            let to = kit.b.add(Term::Field(u, GOTO.into()), at);
            let nothing = kit.text("", at);
            let to = kit.b.add(Term::If(has, to, nothing, IfSugar::Plain), at);
            let s = kit.b.var(STATE, at);
            let field = format!("{GOTO}{}", task.node());
            out.push((STATE.into(), kit.b.add(Term::With(s, field.as_str().into(), to), at)));
        }
    }

    /// The updates of a node that ran once for each thing that was sent, merged.
    fn merge_each(&self, kit: &mut Kit<'_>, i: usize, key: &str, reducer: &Reducer, at: Span) -> TermId {
        let (all, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
        let updates = kit.b.add(Term::Index(all, index), at);
        let old = self.reader.read(kit, &STATE.into(), key, at);
        // One update after the other.
        let var = |kit: &mut Kit<'_>, n: &Name| kit.b.var(n.clone(), at);
        let value = match reducer {
            Reducer::Messages | Reducer::Add => {
                let p: Name = kit.b.fresh("p");
                let field = |kit: &mut Kit<'_>, name: &str| {
                    let p = kit.b.var(p.clone(), at);
                    kit.b.add(Term::Field(p, name.into()), at)
                };
                let r = field(kit, "rest");
                let length = kit.b.add(Term::Prim(Prim::Length, vec![r]), at);
                let zero = kit.b.lit(Num::from(0i64), at);
                let empty = kit.b.add(Term::Prim(Prim::Eq, vec![length, zero]), at);
                let r = field(kit, "rest");
                let zero = kit.b.lit(Num::from(0i64), at);
                let first = kit.b.add(Term::Index(r, zero), at);
                let new = kit.b.add(Term::Field(first, key.into()), at);
                let a = field(kit, "acc");
                let sum = kit.b.add(Term::Prim(Prim::Add, vec![a, new]), at);
                let (r, one, r2) = (field(kit, "rest"), kit.b.lit(Num::from(1i64), at), field(kit, "rest"));
                let length = kit.b.add(Term::Prim(Prim::Length, vec![r2]), at);
                let tail = kit.b.add(Term::Prim(Prim::Slice, vec![r, one, length]), at);
                let next = kit.b.add(Term::Record(vec![("acc".into(), sum), ("rest".into(), tail)]), at);
                let this = kit.b.var("self", at);
                let again = kit.b.app(this, next, at);
                let done = var(kit, &p);
                let body = kit.b.add(Term::If(empty, done, again, IfSugar::Plain), at);
                let step = kit.b.abs(p.clone(), None, body, at);
                let body = kit.b.abs("self", None, step, at);
                let most = Bound::Finite(MOST_SENT);
                let fix = kit.b.add(Term::Fix { bound: most, origin: None, body }, at);
                let first = kit.b.add(Term::Record(vec![("acc".into(), old), ("rest".into(), updates)]), at);
                let folded = kit.b.app(fix, first, at);
                kit.b.add(Term::Field(folded, "acc".into()), at)
            }
            _ => {
                let message =
                    format!("`{}` is set by several runs of a node at once, without a reducer", clip(key));
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                let last = self.reader.nth_last(kit, updates, 1, at);
                let _ = old;
                kit.b.add(Term::Field(last, key.into()), at)
            }
        };
        let s = kit.b.var(STATE, at);
        kit.b.add(Term::With(s, key.into(), value), at)
    }

    /// The keys that a node writes, and whether it writes them on every way.
    fn writes(&self, node: &super::plan::Node) -> Writes {
        let messages = self.graph.plan.messages().map(str::to_string);
        if self.reader.tool_node(&node.value, self.graph).is_some() {
            return Writes { keys: messages.into_iter().collect(), certain: true };
        }
        if self.reader.inner_graph(&node.value).is_some() {
            return Writes {
                keys: self.graph.plan.channels.iter().map(|c| c.name.clone()).collect(),
                certain: false,
            };
        }
        let Some(traced) = self.reader.traced(&node.value) else {
            return Writes {
                keys: self.graph.plan.channels.iter().map(|c| c.name.clone()).collect(),
                certain: false,
            };
        };
        let mut written = Vec::new();
        let value = &traced.trace.value;
        self.reader.keys_written(value, &mut written);
        let mut keys: Vec<String> = written.into_iter().map(|(k, _)| k).collect();
        keys.sort();
        keys.dedup();
        Writes { keys, certain: matches!(value.kind, Kind::Dict(_)) }
    }

    /// How many messages a node adds, if that is always the same.
    fn said_by(&self, node: &super::plan::Node) -> Option<usize> {
        let traced = self.reader.traced(&node.value)?;
        let key = self.graph.plan.messages()?;
        let entries = self.reader.world.entries(&traced.trace.value)?;
        let value = &entries.iter().find(|(k, _)| k.as_str() == Some(key))?.1;
        match self.reader.world.items(value) {
            Some(items) => Some(items.len()),
            None => Some(1),
        }
    }

    /// Which way is taken: a text, a tag, or a list of what is sent.
    fn choice(&self, kit: &mut Kit<'_>, what: Decider, config: Option<usize>) -> TermId {
        let plan = self.graph.plan;
        match what {
            Decider::Router(i) => {
                let router = &plan.routers[i];
                let at = router.at;
                if self.reader.is_tools_condition(&router.path) {
                    let (tools, end) = (kit.text("tools", at), kit.text(END, at));
                    if !self.graph.replies {
                        return end;
                    }
                    let reply = self.reader.read(kit, &STATE.into(), super::value::REPLY, at);
                    let branches = vec![Branch { tag: "final".into(), binder: None, body: end }];
                    return kit.b.add(Term::Case { scrutinee: reply, branches, default: Some(tools) }, at);
                }
                match self.reader.decision(kit, self.graph, &router.path, "route", at) {
                    Some(term) => term,
                    None => {
                        let why = format!("which way is taken: {}", self.reader.world.why(&router.path));
                        kit.undecided(codes::NOT_COMPILED, why, at)
                    }
                }
            }
            Decider::Goto(node) => {
                let at = plan.nodes[node].at;
                let alone =
                    config.is_some_and(|c| self.configs[c].0.active.iter().eq([Task::Node(node)].iter()));
                let field = if alone { GOTO.to_string() } else { format!("{GOTO}{node}") };
                self.reader.read(kit, &STATE.into(), &field, at)
            }
        }
    }

    /// A step a turn.
    fn by_steps(&self, kit: &mut Kit<'_>, limit: LoopBound) -> TermId {
        let at = self.graph.plan.at;
        let fix_at = limit.span.unwrap_or(at);
        let names = self.names();
        let mut branches = Vec::new();
        for c in 1..self.configs.len() {
            let place = self.place(c);
            let bindings = self.run(kit, c);
            let mut to = |kit: &mut Kit<'_>, next: Option<usize>| {
                let s = kit.b.var(STATE, place);
                let label = next.map_or(END, |n| names[n].as_str());
                let label = kit.text(label, place);
                let s = kit.b.add(Term::With(s, AT.into(), label), place);
                if next.is_none() {
                    return Some(s);
                }
                let this = kit.b.var("self", place);
                Some(kit.b.app(this, s, place))
            };
            let Some(next) = self.configs[c].1.clone() else { continue };
            let tail =
                self.decide(kit, &next, c, &mut to).unwrap_or_else(|| kit.unknown("where it goes on", place));
            let body = kit.b.let_in(bindings, tail, place);
            branches.push(Branch { tag: names[c].as_str().into(), binder: None, body });
        }
        let scrutinee = self.reader.read(kit, &STATE.into(), AT, at);
        let done = kit.b.var(STATE, at);
        let case = kit.b.add(Term::Case { scrutinee, branches, default: Some(done) }, at);
        let step = kit.b.abs(STATE, None, case, at);
        let body = kit.b.abs("self", None, step, at);
        let message = over(&limit.bound);
        let bound = match limit.bound {
            Bound::Finite(n) => Bound::Finite(n.saturating_sub(1)),
            Bound::Infinite => Bound::Infinite,
        };
        let fix = kit.b.add(Term::Fix { bound, origin: limit.origin, body }, fix_at);
        // Where it begins.
        let Some(next) = self.configs.first().and_then(|c| c.1.clone()) else {
            return kit.unknown("a graph without a beginning", at);
        };
        let mut to = |kit: &mut Kit<'_>, next: Option<usize>| {
            let s = kit.b.var(STATE, at);
            let label = kit.text(next.map_or(END, |n| names[n].as_str()), at);
            Some(kit.b.add(Term::With(s, AT.into(), label), at))
        };
        let first = self.decide(kit, &next, 0, &mut to).unwrap_or_else(|| kit.unknown("where it begins", at));
        let ran = kit.b.app(fix, first, at);
        let end = self.reader.read(kit, &STATE.into(), AT, at);
        let label = kit.text(END, at);
        let test = kit.b.add(Term::Prim(Prim::Eq, vec![end, label]), at);
        let s = kit.b.var(STATE, at);
        let failed = kit.text(&message, fix_at);
        let failed = kit.b.add(Term::Fail(failed), fix_at);
        let body = kit.b.add(Term::If(test, s, failed, IfSugar::Plain), at);
        kit.b.let_in(vec![(STATE.into(), ran)], body, at)
    }

    /// Names of configurations: of the nodes that are due.
    fn names(&self) -> Vec<String> {
        let mut taken: HashSet<String> = HashSet::from([END.to_string()]);
        let mut out = Vec::new();
        for (i, (config, _)) in self.configs.iter().enumerate() {
            let names: Vec<&str> =
                config.active.iter().map(|t| self.graph.plan.nodes[t.node()].name.as_str()).collect();
            let mut name = names.join("+");
            if name.is_empty() || name.len() > 80 || !taken.insert(name.clone()) {
                name = format!("{name}_{i}");
                taken.insert(name.clone());
            }
            out.push(name);
        }
        out
    }

    /// A decision with what follows each way.
    fn decide(
        &self,
        kit: &mut Kit<'_>,
        next: &Next,
        config: usize,
        to: &mut dyn FnMut(&mut Kit<'_>, Option<usize>) -> Option<TermId>,
    ) -> Option<TermId> {
        let (what, options, default, sent) = match next {
            Next::To(target) => return to(kit, *target),
            Next::Decide { what, options, default, sent } => (*what, options, default, sent),
        };
        let at = match what {
            Decider::Router(i) => self.graph.plan.routers[i].at,
            Decider::Goto(n) => self.graph.plan.nodes[n].at,
        };
        let mut choice = self.choice(kit, what, Some(config).filter(|c| *c != 0));
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        if let (Some(sent), Decider::Router(_)) = (sent, what) {
            // A list is what is sent.
            bindings.push(("$go".into(), choice));
            let go = kit.b.var("$go", at);
            let test = kit.b.add(Term::Prim(Prim::IsArray, vec![go]), at);
            let (s, go) = (kit.b.var(STATE, at), kit.b.var("$go", at));
            let with = kit.b.add(Term::With(s, SENT.into(), go), at);
            let body = self.decide(kit, sent, config, to)?;
            let mapped = kit.b.let_in(vec![(STATE.into(), with)], body, at);
            if options.is_empty() && default.is_none() {
                return Some(kit.b.let_in(bindings, mapped, at));
            }
            choice = kit.b.var("$go", at);
            let rest = self.case(kit, choice, options, default.as_deref(), config, to, at)?;
            let term = kit.b.add(Term::If(test, mapped, rest, IfSugar::Plain), at);
            return Some(kit.b.let_in(bindings, term, at));
        }
        if let (Some(sent), Decider::Goto(_), true) = (sent, what, options.is_empty()) {
            return self.decide(kit, sent, config, to);
        }
        self.case(kit, choice, options, default.as_deref(), config, to, at)
    }

    #[allow(clippy::too_many_arguments)]
    fn case(
        &self,
        kit: &mut Kit<'_>,
        choice: TermId,
        options: &[(String, Next)],
        default: Option<&Next>,
        config: usize,
        to: &mut dyn FnMut(&mut Kit<'_>, Option<usize>) -> Option<TermId>,
        at: Span,
    ) -> Option<TermId> {
        // A text that is written: no decision.
        if let Term::Lit(Data::Str(label)) = kit.b.term(choice) {
            let label = label.to_string();
            if let Some((_, next)) = options.iter().find(|(l, _)| *l == label) {
                return self.decide(kit, next, config, to);
            }
        }
        // Of labels that stand once each, what follows them stands in their place.
        if let Some(labels) = labels_of(kit, choice) {
            let find = |label: &String| options.iter().find(|(l, _)| l == label).map(|(_, n)| n).or(default);
            let once = labels.iter().enumerate().all(|(i, l)| !labels[..i].contains(l));
            let ways: Option<Vec<&Next>> = labels.iter().map(find).collect();
            if let (true, Some(ways)) = (once, ways) {
                let mut ways = ways.into_iter();
                let mut follow = |kit: &mut Kit<'_>| match ways.next() {
                    Some(next) => self.decide(kit, next, config, to),
                    None => None,
                };
                return followed(kit, choice, &mut follow);
            }
        }
        let mut branches = Vec::new();
        for (label, next) in options {
            let body = self.decide(kit, next, config, to)?;
            branches.push(Branch { tag: label.as_str().into(), binder: None, body });
        }
        let default = match default {
            Some(next) => Some(self.decide(kit, next, config, to)?),
            None => None,
        };
        if branches.is_empty() {
            return default.or_else(|| to(kit, None));
        }
        // Whatever else is decided for is no node.
        let known =
            labels_of(kit, choice).is_some_and(|all| all.iter().all(|l| options.iter().any(|(o, _)| o == l)));
        let default = default.or_else(|| {
            let message = (!known).then(|| kit.text("this decides for what is no node", at))?;
            Some(kit.b.add(Term::Fail(message), at))
        });
        // Truth values are tags of their names here.
        let choice = kit.b.add(Term::Prim(Prim::ToStr, vec![choice]), at);
        let choice = match kit.b.term(choice) {
            Term::Prim(_, of) if self.is_label(kit, of[0]) => of[0],
            _ => choice,
        };
        Some(kit.b.add(Term::Case { scrutinee: choice, branches, default }, at))
    }

    /// Whether a term gives a text or a tag for certain.
    fn is_label(&self, kit: &Kit<'_>, term: TermId) -> bool {
        let mut todo = vec![term];
        while let Some(term) = todo.pop() {
            match kit.b.term(term) {
                Term::Lit(Data::Str(_)) | Term::Unknown(_) | Term::Field(..) => {}
                Term::If(_, a, b, _) => todo.extend([*a, *b]),
                Term::Let { body, .. } => todo.push(*body),
                Term::Case { branches, default, .. } => {
                    todo.extend(branches.iter().map(|b| b.body));
                    todo.extend(default);
                }
                _ => return false,
            }
        }
        true
    }
}

/// The labels at the ends of a choice, in order; `None` if one is computed.
fn labels_of(kit: &Kit<'_>, choice: TermId) -> Option<Vec<String>> {
    const MOST: usize = 64;
    let mut out = Vec::new();
    let mut todo = vec![choice];
    while let Some(term) = todo.pop() {
        match kit.b.term(term) {
            Term::Lit(Data::Str(label)) => out.push(label.to_string()),
            Term::If(_, a, b, IfSugar::Plain) => todo.extend([*b, *a]),
            Term::Let { body, .. } => todo.push(*body),
            Term::Case { branches, default, .. } => {
                todo.extend(default);
                todo.extend(branches.iter().rev().map(|b| b.body));
            }
            _ => return None,
        }
        if out.len() + todo.len() > MOST {
            return None;
        }
    }
    Some(out)
}

/// A choice with what follows in place of its labels, which are asked for in order.
fn followed(
    kit: &mut Kit<'_>,
    choice: TermId,
    follow: &mut dyn FnMut(&mut Kit<'_>) -> Option<TermId>,
) -> Option<TermId> {
    let at = kit.b.span(choice);
    match kit.b.term(choice).clone() {
        Term::If(test, a, b, sugar) => {
            let (a, b) = (followed(kit, a, follow)?, followed(kit, b, follow)?);
            Some(kit.b.add(Term::If(test, a, b, sugar), at))
        }
        Term::Let { bindings, body, .. } => {
            let body = followed(kit, body, follow)?;
            Some(kit.b.let_in(bindings, body, at))
        }
        Term::Case { scrutinee, branches, default } => {
            let mut out = Vec::new();
            for branch in branches {
                out.push(Branch { body: followed(kit, branch.body, follow)?, ..branch });
            }
            let default = match default {
                Some(default) => Some(followed(kit, default, follow)?),
                None => None,
            };
            Some(kit.b.add(Term::Case { scrutinee, branches: out, default }, at))
        }
        _ => follow(kit),
    }
}

/// Updates that are folded at most.
const MOST_SENT: u64 = 10_000;

struct Writes {
    keys: Vec<String>,
    certain: bool,
}

/// How many steps come before a loop, and how many a round has.
#[derive(Clone, Copy)]
struct Steps {
    before: u64,
    round: u64,
    /// Whether it is always just so many.
    exact: bool,
}

/// What a run fails with when its steps are used up.
fn over(bound: &Bound) -> String {
    match bound {
        Bound::Finite(n) => format!("Recursion limit of {n} reached without hitting a stop condition"),
        Bound::Infinite => "Recursion limit reached without hitting a stop condition".into(),
    }
}

/// Terms for configurations that are nested as they follow each other.
struct Lower<'l, 'm, 'r, 'w, 'p> {
    machine: &'l Machine<'m, 'r, 'w, 'p>,
    /// Where all ways from a configuration meet; none if they meet at the end only.
    join: Vec<Option<usize>>,
    back: HashSet<(usize, usize)>,
    /// Configurations that may still be lowered: what several ways share is lowered for each.
    left: usize,
    /// The one where the cycle begins, the limit, and the steps. Taken when the loop is made.
    header: Option<(usize, LoopBound, Steps)>,
}

impl Lower<'_, '_, '_, '_, '_> {
    /// From a configuration, whose nodes are run, to another, which is not, or to the end.
    fn tail(&mut self, kit: &mut Kit<'_>, from: usize, stop: Option<usize>) -> Option<TermId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.tail_inner(kit, from, stop, false))
    }

    fn inside(&mut self, kit: &mut Kit<'_>, from: usize, stop: Option<usize>) -> Option<TermId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.tail_inner(kit, from, stop, true))
    }

    fn tail_inner(
        &mut self,
        kit: &mut Kit<'_>,
        from: usize,
        stop: Option<usize>,
        inside: bool,
    ) -> Option<TermId> {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut at = from;
        loop {
            let place = self.machine.place(at);
            if !inside && self.header.as_ref().is_some_and(|(h, ..)| *h == at) {
                let term = self.cycle(kit, at)?;
                return Some(kit.b.let_in(bindings, term, place));
            }
            self.left = self.left.checked_sub(1)?;
            if at != 0 {
                bindings.extend(self.machine.run(kit, at));
            }
            let next = self.machine.configs[at].1.clone()?;
            match (&next, self.join[at]) {
                (Next::To(to), _) => {
                    if let Some(to) = to.filter(|t| Some(*t) != stop && !self.back.contains(&(at, *t))) {
                        at = to;
                        continue;
                    }
                    let term = self.leave(kit, at, *to, stop, inside, place);
                    return Some(kit.b.let_in(bindings, term, place));
                }
                (Next::Decide { .. }, Some(join)) if Some(join) != stop => {
                    let machine = self.machine;
                    let this = &mut *self;
                    let mut to = |kit: &mut Kit<'_>, target: Option<usize>| {
                        this.way(kit, at, target, Some(join), inside, place)
                    };
                    let term = machine.decide(kit, &next, at, &mut to)?;
                    bindings.push((STATE.into(), term));
                    at = join;
                }
                (Next::Decide { .. }, _) => {
                    let machine = self.machine;
                    let this = &mut *self;
                    let mut to = |kit: &mut Kit<'_>, target: Option<usize>| {
                        this.way(kit, at, target, stop, inside, place)
                    };
                    let term = machine.decide(kit, &next, at, &mut to)?;
                    return Some(kit.b.let_in(bindings, term, place));
                }
            }
        }
    }

    fn way(
        &mut self,
        kit: &mut Kit<'_>,
        from: usize,
        to: Option<usize>,
        stop: Option<usize>,
        inside: bool,
        at: Span,
    ) -> Option<TermId> {
        match to {
            Some(to) if Some(to) != stop && !self.back.contains(&(from, to)) => {
                if inside {
                    self.inside(kit, to, stop)
                } else {
                    self.tail(kit, to, stop)
                }
            }
            _ => Some(self.leave(kit, from, to, stop, inside, at)),
        }
    }

    /// The state where a way ends: at a join, at the end, or where the loop begins again.
    fn leave(
        &self,
        kit: &mut Kit<'_>,
        from: usize,
        to: Option<usize>,
        stop: Option<usize>,
        inside: bool,
        at: Span,
    ) -> TermId {
        let s = kit.b.var(STATE, at);
        match to {
            Some(to) if self.back.contains(&(from, to)) => {
                let this = kit.b.var("self", at);
                kit.b.app(this, s, at)
            }
            None if inside && (stop.is_none() || to.is_none()) => {
                let off = kit.b.lit(Data::Bool(false), at);
                kit.b.add(Term::With(s, ON.into(), off), at)
            }
            _ => s,
        }
    }

    /// The loop that begins at a configuration, and what the limit leaves of a last round.
    fn cycle(&mut self, kit: &mut Kit<'_>, header: usize) -> Option<TermId> {
        let at = self.machine.place(header);
        let body = self.inside(kit, header, None)?;
        let (h, limit, steps) = self.header.take()?;
        let fix_at = limit.span.unwrap_or(at);
        let step = kit.b.abs(STATE, None, body, at);
        let body = kit.b.abs("self", None, step, at);
        let message = over(&limit.bound);
        let (bound, rest) = match limit.bound {
            Bound::Infinite => (Bound::Infinite, 0),
            Bound::Finite(n) => {
                let left = n.saturating_sub(steps.before);
                let turns = left.saturating_sub(1) / steps.round.max(1);
                (Bound::Finite(turns), if steps.exact { left - turns * steps.round.max(1) } else { 0 })
            }
        };
        let fix = kit.b.add(Term::Fix { bound, origin: limit.origin.clone(), body }, fix_at);
        let on = kit.b.lit(Data::Bool(true), at);
        let s = kit.b.var(STATE, at);
        let first = kit.b.add(Term::With(s, ON.into(), on), at);
        let ran = if bound == Bound::Finite(0) { first } else { kit.b.app(fix, first, at) };
        let last = self.peel(kit, header, rest, &message, fix_at)?;
        self.header = Some((h, limit, steps));
        let test = self.machine.reader.read(kit, &STATE.into(), ON, at);
        let s = kit.b.var(STATE, at);
        let body = kit.b.add(Term::If(test, last, s, IfSugar::Plain), at);
        Some(kit.b.let_in(vec![(STATE.into(), ran)], body, at))
    }

    /// So many more steps, of which the last ends in failure.
    fn peel(
        &mut self,
        kit: &mut Kit<'_>,
        config: usize,
        steps: u64,
        message: &str,
        fix_at: Span,
    ) -> Option<TermId> {
        let fail = |kit: &mut Kit<'_>| {
            let message = kit.text(message, fix_at);
            kit.b.add(Term::Fail(message), fix_at)
        };
        if steps == 0 {
            return Some(fail(kit));
        }
        self.left = self.left.checked_sub(1)?;
        let place = self.machine.place(config);
        let bindings = self.machine.run(kit, config);
        let body = if steps == 1 {
            fail(kit)
        } else {
            let next = self.machine.configs[config].1.clone()?;
            let machine = self.machine;
            let this = &mut *self;
            let mut to = |kit: &mut Kit<'_>, target: Option<usize>| match target {
                None => Some(kit.b.var(STATE, place)),
                Some(target) => this.peel(kit, target, steps - 1, message, fix_at),
            };
            machine.decide(kit, &next, config, &mut to)?
        };
        Some(kit.b.let_in(bindings, body, place))
    }
}

/// Edges to a configuration from which the way to them leads, in depth-first order.
fn back_edges(out: &[Vec<Option<usize>>]) -> HashSet<(usize, usize)> {
    let mut state = vec![0u8; out.len()];
    let mut back = HashSet::new();
    if out.is_empty() {
        return back;
    }
    let mut stack = vec![(0usize, 0usize)];
    state[0] = 1;
    while let Some((node, next)) = stack.pop() {
        match out[node].get(next) {
            Some(to) => {
                stack.push((node, next + 1));
                let Some(to) = *to else { continue };
                match state[to] {
                    0 => {
                        state[to] = 1;
                        stack.push((to, 0));
                    }
                    1 => {
                        back.insert((node, to));
                    }
                    _ => {}
                }
            }
            None => state[node] = 2,
        }
    }
    back
}

/// The least and the most edges from one to each, without cycles.
fn distances(forward: &[Vec<usize>], from: usize) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let mut near = vec![None; forward.len()];
    let mut far = vec![None; forward.len()];
    if from >= forward.len() {
        return (near, far);
    }
    (near[from], far[from]) = (Some(0), Some(0));
    for node in topological(forward) {
        let (Some(n), Some(f)) = (near[node], far[node]) else { continue };
        for to in &forward[node] {
            near[*to] = Some(near[*to].map_or(n + 1, |d: usize| d.min(n + 1)));
            far[*to] = Some(far[*to].map_or(f + 1, |d: usize| d.max(f + 1)));
        }
    }
    (near, far)
}

/// Each before those that it leads to.
fn topological(forward: &[Vec<usize>]) -> Vec<usize> {
    let mut before = vec![0usize; forward.len()];
    forward.iter().flatten().for_each(|to| before[*to] += 1);
    let mut ready: Vec<usize> = (0..forward.len()).filter(|n| before[*n] == 0).collect();
    let mut out = Vec::new();
    while let Some(node) = ready.pop() {
        out.push(node);
        for to in &forward[node] {
            before[*to] -= 1;
            if before[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    out
}

fn reached_without(forward: &[Vec<usize>], from: usize, without: usize) -> Vec<bool> {
    let mut seen = vec![false; forward.len()];
    let mut todo = vec![from];
    while let Some(node) = todo.pop() {
        if node != without && !std::mem::replace(&mut seen[node], true) {
            todo.extend(&forward[node]);
        }
    }
    seen
}

/// For each configuration where all ways from it meet; none if that is the end, or where a loop begins again.
fn joins(
    out: &[Vec<Option<usize>>],
    back: &HashSet<(usize, usize)>,
    forward: &[Vec<usize>],
) -> Vec<Option<usize>> {
    let end = out.len();
    let mut join = vec![end; out.len()];
    let mut depth = vec![0usize; out.len() + 1];
    for &node in topological(forward).iter().rev() {
        let mut meet: Option<usize> = None;
        for to in &out[node] {
            let to = to.filter(|t| !back.contains(&(node, *t))).unwrap_or(end);
            meet = Some(match meet {
                None => to,
                Some(mut a) => {
                    let mut b = to;
                    while a != b {
                        if depth[a] >= depth[b] {
                            a = if a == end { end } else { join[a] };
                        } else {
                            b = if b == end { end } else { join[b] };
                        }
                    }
                    a
                }
            });
        }
        join[node] = meet.unwrap_or(end);
        depth[node] = depth[join[node]] + 1;
    }
    join.into_iter().map(|j| Some(j).filter(|j| *j != end)).collect()
}
