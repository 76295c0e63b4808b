//! Graphs of nodes and edges as terms.
//!
//! Entry point: [`lower`].
//!
//! | graph | term |
//! |---|---|
//! | nodes in a row | `let $a = … in let $b = … in …` |
//! | a node that decides | `case` (or `if`) up to where its branches meet; what later nodes read is handed on |
//! | edges that lead to several nodes at once | `par`, up to where they meet |
//! | edges that cross between branches | flags: `let $b = if $on then … else null` |
//! | cycles | `fix[n] (λself. λs. case s.at of {a ⇒ … self (s.at := "b"), …})`, a node a turn |
//!
//! Invariant: a node is lowered a bounded number of times, whatever the shape of the graph.

use crate::emit::{LoopBound, codes, undecided};
use crate::kit::Kit;
use crate::outline::{GraphOutline, NodeOutline, NodeRole};
use core_ir::{Branch, Data, IfSugar, Name, Num, Prim, Term, TermId, Type};
use diagnostics::Span;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A node.
pub struct GraphNode {
    /// Display name.
    pub name: String,
    /// Place of the node.
    pub at: Span,
}

/// An edge. With a label, it is taken if the node decides for the label.
pub struct Edge {
    /// Number of the node it leaves.
    pub from: usize,
    /// Number of the node it leads to.
    pub to: usize,
    /// Outcome for which it is taken; `None` for always.
    pub when: Option<String>,
    /// Place of the edge, if it has one of its own.
    pub at: Option<Span>,
}

/// A graph.
pub struct Graph {
    /// Nodes.
    pub nodes: Vec<GraphNode>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// Number of the start node.
    pub start: usize,
    /// Place of the graph.
    pub at: Span,
}

/// Lowering of the nodes of a graph.
pub trait Steps {
    /// Lowers the value of a node.
    fn step(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId;

    /// Returns the nodes whose values a node may read.
    fn reads(&self, node: usize) -> Vec<usize>;

    /// Lowers the decision of a node with labeled edges: a text or tag that names the label.
    fn choose(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId;

    /// Returns the nodes whose values the result uses.
    fn outputs(&self) -> Vec<usize>;

    /// Lowers the result of the graph.
    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId;

    /// Returns the possible outcomes of a deciding node with their places, if the source lists them.
    fn outcomes(&self, _node: usize) -> Option<Vec<(String, Span)>> {
        None
    }

    /// Returns the role of a node for policies.
    fn role(&self, _node: usize) -> NodeRole {
        NodeRole::Plain
    }

    /// Returns the bound on node runs if the graph has a cycle.
    fn bound(&mut self, kit: &mut Kit<'_>) -> LoopBound;
}

/// Nodes that have run at the place of a term.
#[derive(Clone, Default)]
pub struct Env {
    ran: HashMap<usize, Name>,
    /// These nodes in the order of their runs.
    pub order: Vec<usize>,
    /// Flags of nodes that may have run.
    flags: HashMap<usize, Name>,
    /// Nodes whose value is null if they did not run.
    maybe: HashSet<usize>,
}

impl Env {
    /// Returns the value of a node, if it has run.
    pub fn value(&self, kit: &mut Kit<'_>, node: usize, at: Span) -> Option<TermId> {
        let name = self.ran.get(&node)?.clone();
        Some(kit.b.var(name, at))
    }

    /// Returns a part of a node's value, or `missing` if the node hasn't run.
    pub fn read(&self, kit: &mut Kit<'_>, node: usize, path: &[&str], missing: Data, at: Span) -> TermId {
        let Some(mut value) = self.value(kit, node, at) else { return kit.b.lit(missing, at) };
        for part in path {
            value = kit.b.add(Term::Field(value, (*part).into()), at);
        }
        if !self.flags.contains_key(&node) && !self.maybe.contains(&node) {
            return value;
        }
        let test = self.value(kit, node, at).unwrap_or(value);
        let test = kit.b.add(Term::Prim(Prim::IsNull, vec![test]), at);
        let missing = kit.b.lit(missing, at);
        kit.b.add(Term::If(test, missing, value, IfSugar::Plain), at)
    }

    /// Returns true if a node has run or may have run.
    pub fn has(&self, node: usize) -> bool {
        self.ran.contains_key(&node)
    }

    /// Returns the variable that tells whether a node has run, if that is known only at run time.
    pub fn flag(&self, kit: &mut Kit<'_>, node: usize, at: Span) -> Option<TermId> {
        let name = self.flags.get(&node)?.clone();
        Some(kit.b.var(name, at))
    }

    /// Binds the value of a node that may be null.
    fn bind_maybe(&mut self, node: usize, name: Name) {
        self.maybe.insert(node);
        self.bind(node, name);
    }

    fn bind(&mut self, node: usize, name: Name) {
        if self.ran.insert(node, name).is_none() {
            self.order.push(node);
        }
    }
}

/// Maximal number of nodes of a graph.
const MAX_NODES: usize = 1_500;

/// Lowers a graph to `λx. …`, from text to text.
pub fn lower(kit: &mut Kit<'_>, graph: &Graph, steps: &mut dyn Steps) -> TermId {
    let at = graph.at;
    if graph.nodes.is_empty() || graph.start >= graph.nodes.len() {
        return kit.unknown("a graph without a node to begin with", at);
    }
    if graph.nodes.len() > MAX_NODES {
        let why = format!("a graph of more than {MAX_NODES} nodes");
        return kit.undecided(codes::TOO_MUCH, why, at);
    }
    let nodes = graph.nodes.iter().enumerate().map(|(i, n)| NodeOutline {
        name: n.name.clone(),
        at: n.at,
        outcomes: steps.outcomes(i),
        role: steps.role(i),
    });
    let edges = graph.edges.iter().map(|e| (e.from, e.to, e.when.clone()));
    kit.outline.graph(GraphOutline {
        at,
        nodes: nodes.collect(),
        edges: edges.collect(),
        placed: graph.edges.iter().map(|e| e.at).collect(),
        start: graph.start,
        open: false,
        stops: false,
        dead: Vec::new(),
    });
    let shape = GraphShape::of(graph, steps);
    let body = match &shape.order {
        None => machine(kit, graph, &shape, steps),
        Some(order) => {
            let mut lower =
                Structured { graph, shape: &shape, steps: &mut *steps, left: 3 * graph.nodes.len() + 20 };
            match lower.tail(kit, Some(graph.start), Env::default()) {
                Some(term) => term,
                None => flat(kit, graph, &shape, order, steps),
            }
        }
    };
    kit.b.abs("x", Some(Type::Str), body, at)
}

/// Variables of the nodes, and the structure of the graph.
struct GraphShape {
    names: Vec<Name>,
    /// Edges that leave each node: target and label.
    out: Vec<Vec<(usize, Option<String>)>>,
    /// Reachable nodes in topological order. `None` if there is a cycle.
    order: Option<Vec<usize>>,
    /// Post-dominator of each node: a node, or the end.
    join: Vec<usize>,
    /// Nodes that each node reads.
    reads: Vec<Vec<usize>>,
    outputs: Vec<usize>,
}

impl GraphShape {
    fn of(graph: &Graph, steps: &dyn Steps) -> GraphShape {
        let n = graph.nodes.len();
        let mut taken: HashSet<String> = HashSet::new();
        let names =
            graph.nodes.iter().enumerate().map(|(i, node)| variable(i, &node.name, &mut taken)).collect();
        let mut out: Vec<Vec<(usize, Option<String>)>> = vec![Vec::new(); n];
        for e in graph.edges.iter().filter(|e| e.from < n && e.to < n) {
            let edge = (e.to, e.when.clone());
            if !out[e.from].contains(&edge) {
                out[e.from].push(edge);
            }
        }
        let order = topological(&out, graph.start);
        // An outcome without an edge is a way to the end.
        let ends = |node: usize| {
            let edges = &out[node];
            let taken =
                |label: &str| edges.iter().any(|(_, when)| when.as_deref().is_none_or(|w| w == label));
            let open = steps.outcomes(node).is_some_and(|all| all.iter().any(|(label, _)| !taken(label)));
            (open && edges.iter().any(|(_, when)| when.is_some())).then_some(n)
        };
        let next = |node: usize| out[node].iter().map(|(to, _)| *to).chain(ends(node)).collect::<Vec<_>>();
        let join = order.as_ref().map_or(Vec::new(), |order| joins(n, order, next));
        let reads = (0..n).map(|node| steps.reads(node)).collect();
        GraphShape { names, out, order, join, reads, outputs: steps.outputs() }
    }

    fn decides(&self, node: usize) -> bool {
        self.out[node].iter().any(|(_, when)| when.is_some())
    }

    /// Returns the nodes reachable from one, itself included, without passing another.
    fn region(&self, from: usize, stop: usize) -> BTreeSet<usize> {
        let mut seen = BTreeSet::new();
        let mut todo = vec![from];
        while let Some(node) = todo.pop() {
            if node != stop && seen.insert(node) {
                todo.extend(self.out[node].iter().map(|(to, _)| *to));
            }
        }
        seen
    }
}

/// Returns a unique variable: `$` and the letters of the name.
fn variable(index: usize, name: &str, taken: &mut HashSet<String>) -> Name {
    let mut slug: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(24)
        .collect();
    if !slug.chars().any(|c| c.is_ascii_alphabetic()) {
        slug = format!("node{}", index + 1);
    }
    let slug = slug.trim_matches('_').to_string();
    let unique = if taken.insert(slug.clone()) { slug } else { format!("{slug}_{}", index + 1) };
    taken.insert(unique.clone());
    format!("${unique}").into()
}

/// Sorts nodes topologically, depth first without recursion. `None` if there is a cycle.
fn topological(out: &[Vec<(usize, Option<String>)>], start: usize) -> Option<Vec<usize>> {
    // 0 new, 1 open, 2 done.
    let mut state = vec![0u8; out.len()];
    let mut order = Vec::new();
    let mut stack = vec![(start, 0)];
    state[start] = 1;
    while let Some((node, next)) = stack.pop() {
        match out[node].get(next) {
            Some((to, _)) => {
                stack.push((node, next + 1));
                match state[*to] {
                    0 => {
                        state[*to] = 1;
                        stack.push((*to, 0));
                    }
                    1 => return None,
                    _ => {}
                }
            }
            None => {
                state[node] = 2;
                order.push(node);
            }
        }
    }
    order.reverse();
    Some(order)
}

/// Returns the immediate post-dominator of each of `count` nodes, `count` being the end. `order` is
/// topological; `next` returns successors.
pub fn joins<I: IntoIterator<Item = usize>>(
    count: usize,
    order: &[usize],
    next: impl Fn(usize) -> I,
) -> Vec<usize> {
    let end = count;
    let mut join = vec![end; count];
    let mut depth = vec![0usize; count + 1];
    for &node in order.iter().rev() {
        let mut meet: Option<usize> = None;
        for to in next(node) {
            meet = Some(match meet {
                None => to,
                Some(mut a) => {
                    let mut b = to;
                    while a != b {
                        // Deeper nodes are further from the end.
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
    join
}

/// Lowering of graphs with properly nested branches.
struct Structured<'g, 's> {
    graph: &'g Graph,
    shape: &'g GraphShape,
    steps: &'s mut dyn Steps,
    /// Remaining number of nodes. A node that several branches share is lowered in each.
    left: usize,
}

type Bindings = Vec<(Name, TermId)>;

impl Structured<'_, '_> {
    /// Lowers the rest of the graph from a node. `None` if branches don't nest.
    fn tail(&mut self, kit: &mut Kit<'_>, from: Option<usize>, env: Env) -> Option<TermId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.tail_inner(kit, from, env))
    }

    fn tail_inner(&mut self, kit: &mut Kit<'_>, from: Option<usize>, mut env: Env) -> Option<TermId> {
        let end = self.graph.nodes.len();
        let mut bindings = Vec::new();
        let mut at = from;
        while let Some(node) = at {
            let place = self.graph.nodes[node].at;
            self.one(kit, node, &mut env, &mut bindings)?;
            let (join, out) = (self.shape.join[node], &self.shape.out[node]);
            if join == end && self.shape.decides(node) {
                let term = self.decide(kit, node, &env, |this, kit, to, env| this.tail(kit, to, env))?;
                return Some(bound(kit, bindings, term, place));
            }
            if join == end && out.len() > 1 {
                self.disjoint(node, end)?;
                let targets: Vec<usize> = out.iter().map(|(to, _)| *to).collect();
                let mut sides = Vec::new();
                for to in targets {
                    sides.push(self.tail(kit, Some(to), env.clone())?);
                }
                let count = sides.len();
                let all = kit.b.add(Term::Par(None, sides), place);
                bindings.push(("$all".into(), all));
                let mut text = crate::emit::Template::new(place);
                for i in 0..count {
                    if i > 0 {
                        text.text("\n\n");
                    }
                    let item = side(kit, i, place);
                    text.term(item);
                }
                let text = text.build(&mut kit.b);
                return Some(bound(kit, bindings, text, place));
            }
            at = self.onward(kit, node, &mut env, &mut bindings)?;
        }
        let result = self.steps.result(kit, &env);
        Some(bound(kit, bindings, result, self.graph.at))
    }

    /// Lowers the nodes from one up to another, which is excluded.
    fn block(
        &mut self,
        kit: &mut Kit<'_>,
        from: Option<usize>,
        stop: usize,
        env: &mut Env,
        out: &mut Bindings,
    ) -> Option<()> {
        let mut at = from.filter(|n| *n != stop);
        while let Some(node) = at {
            self.one(kit, node, env, out)?;
            at = self.onward(kit, node, env, out)?.filter(|n| *n != stop);
        }
        Some(())
    }

    /// Runs a node.
    fn one(&mut self, kit: &mut Kit<'_>, node: usize, env: &mut Env, out: &mut Bindings) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        let value = self.steps.step(kit, node, env);
        let name = self.shape.names[node].clone();
        out.push((name.clone(), value));
        env.bind(node, name);
        Some(())
    }

    /// Continues from a node to the next one on every branch, if there is one before the end.
    fn onward(
        &mut self,
        kit: &mut Kit<'_>,
        node: usize,
        env: &mut Env,
        out: &mut Bindings,
    ) -> Option<Option<usize>> {
        let end = self.graph.nodes.len();
        let (join, edges) = (self.shape.join[node], &self.shape.out[node]);
        let place = self.graph.nodes[node].at;
        let next = Some(join).filter(|j| *j != end);
        if let [(to, None)] = edges[..] {
            return Some(Some(to));
        }
        if edges.is_empty() {
            return Some(None);
        }
        let region: BTreeSet<usize> = edges.iter().flat_map(|(to, _)| self.shape.region(*to, join)).collect();
        let exports = self.exports(&region);
        let record = |kit: &mut Kit<'_>, env: &Env| {
            let fields = exports.iter().map(|e| {
                let name = self.shape.names[*e].clone();
                let value = env.value(kit, *e, place).unwrap_or_else(|| kit.b.lit(Data::Null, place));
                (name, value)
            });
            let fields = fields.collect();
            kit.b.add(Term::Record(fields), place)
        };
        if self.shape.decides(node) {
            let exported = exports.clone();
            let names = &self.shape.names;
            let term = self.decide(kit, node, env, |this, kit, to, mut env| {
                let mut inner = Vec::new();
                this.block(kit, to, join, &mut env, &mut inner)?;
                let fields = exported.iter().map(|e| {
                    let value = env.value(kit, *e, place).unwrap_or_else(|| kit.b.lit(Data::Null, place));
                    (names[*e].clone(), value)
                });
                let fields = fields.collect();
                let value = kit.b.add(Term::Record(fields), place);
                Some(bound(kit, inner, value, place))
            })?;
            let met = kit.b.fresh("met");
            out.push((met.clone(), term));
            for e in &exports {
                let name = self.shape.names[*e].clone();
                let r = kit.b.var(met.clone(), place);
                let value = kit.b.add(Term::Field(r, name.clone()), place);
                out.push((name.clone(), value));
                env.bind_maybe(*e, name);
            }
            return Some(next);
        }
        self.disjoint(node, join)?;
        let targets: Vec<usize> = edges.iter().map(|(to, _)| *to).collect();
        let mut sides = Vec::new();
        for to in &targets {
            let (mut env, mut inner) = (env.clone(), Vec::new());
            self.block(kit, Some(*to), join, &mut env, &mut inner)?;
            let value = record(kit, &env);
            sides.push(bound(kit, inner, value, place));
        }
        let all = kit.b.add(Term::Par(None, sides), place);
        let met = kit.b.fresh("all");
        out.push((met.clone(), all));
        for (i, to) in targets.iter().enumerate() {
            let region = self.shape.region(*to, join);
            for e in exports.iter().filter(|e| region.contains(e)) {
                let name = self.shape.names[*e].clone();
                let (r, index) = (kit.b.var(met.clone(), place), kit.b.lit(Num::from(i as i64), place));
                let of = kit.b.add(Term::Index(r, index), place);
                let value = kit.b.add(Term::Field(of, name.clone()), place);
                out.push((name.clone(), value));
                env.bind(*e, name);
            }
        }
        Some(next)
    }

    /// Returns the nodes of a region that nodes outside of it read.
    fn exports(&self, region: &BTreeSet<usize>) -> Vec<usize> {
        let mut read: BTreeSet<usize> = self.shape.outputs.iter().copied().collect();
        for node in (0..self.graph.nodes.len()).filter(|n| !region.contains(n)) {
            read.extend(&self.shape.reads[node]);
        }
        region.iter().copied().filter(|n| read.contains(n)).collect()
    }

    /// Returns `Some` if the branches of a node are disjoint up to their join.
    fn disjoint(&self, node: usize, join: usize) -> Option<()> {
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        for (to, _) in &self.shape.out[node] {
            for inner in self.shape.region(*to, join) {
                if !seen.insert(inner) {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Lowers the branches of a deciding node.
    fn decide(
        &mut self,
        kit: &mut Kit<'_>,
        node: usize,
        env: &Env,
        mut branch: impl FnMut(&mut Self, &mut Kit<'_>, Option<usize>, Env) -> Option<TermId>,
    ) -> Option<TermId> {
        let place = self.graph.nodes[node].at;
        let choice = self.steps.choose(kit, node, env);
        let mut targets: Vec<(&str, usize)> = Vec::new();
        let mut other = None;
        for (to, when) in &self.shape.out[node] {
            match when {
                Some(label) if targets.iter().any(|(l, _)| l == label) => return None,
                Some(label) => targets.push((label, *to)),
                None if other.is_some() => return None,
                None => other = Some(*to),
            }
        }
        // `if c then "a" else "b"` decides between two edges.
        if let Term::If(test, yes, no, IfSugar::Plain) = *kit.b.term(choice)
            && let (Term::Lit(Data::Str(yes)), Term::Lit(Data::Str(no))) = (kit.b.term(yes), kit.b.term(no))
        {
            let find = |label: &str| targets.iter().find(|(l, _)| *l == label).map(|(_, t)| *t).or(other);
            let (yes, no) = (find(yes), find(no));
            let yes = branch(self, kit, yes, env.clone())?;
            let no = branch(self, kit, no, env.clone())?;
            return Some(kit.b.add(Term::If(test, yes, no, IfSugar::Plain), place));
        }
        let classified = match kit.b.term(choice) {
            Term::Classify(tags, _) => tags.iter().all(|t| targets.iter().any(|(l, _)| *l == &**t)),
            _ => false,
        };
        let mut branches = Vec::new();
        for (label, to) in targets {
            let body = branch(self, kit, Some(to), env.clone())?;
            branches.push(Branch { tag: label.into(), binder: None, body });
        }
        let default =
            if classified && other.is_none() { None } else { Some(branch(self, kit, other, env.clone())?) };
        Some(kit.b.add(Term::Case { scrutinee: choice, branches, default }, place))
    }
}

fn side(kit: &mut Kit<'_>, i: usize, at: Span) -> TermId {
    let (r, index) = (kit.b.var("$all", at), kit.b.lit(Num::from(i as i64), at));
    kit.b.add(Term::Index(r, index), at)
}

fn bound(kit: &mut Kit<'_>, bindings: Bindings, body: TermId, at: Span) -> TermId {
    if bindings.is_empty() { body } else { kit.b.let_in(bindings, body, at) }
}

/// Lowers every node in order, each under the condition that it is reached.
fn flat(
    kit: &mut Kit<'_>,
    graph: &Graph,
    shape: &GraphShape,
    order: &[usize],
    steps: &mut dyn Steps,
) -> TermId {
    let mut env = Env::default();
    let mut out: Bindings = Vec::new();
    let mut choices: HashMap<usize, Name> = HashMap::new();
    let always = |kit: &mut Kit<'_>, at| kit.b.lit(Data::Bool(true), at);
    for &node in order {
        let at = graph.nodes[node].at;
        // The node runs if it is the first one, or if one of the edges to it is taken.
        let mut on: Option<TermId> = (node == graph.start).then(|| always(kit, at));
        let mut certain = on.is_some();
        for from in order.iter().copied().take_while(|n| *n != node) {
            for (_, when) in shape.out[from].iter().filter(|(to, _)| *to == node) {
                let reached = env.flag(kit, from, at);
                certain |= reached.is_none() && when.is_none();
                let reached = reached.unwrap_or_else(|| always(kit, at));
                let taken = match (when, choices.get(&from)) {
                    (Some(label), Some(choice)) => {
                        let (c, label) = (kit.b.var(choice.clone(), at), kit.text(label, at));
                        let same = kit.b.add(Term::Prim(Prim::Eq, vec![c, label]), at);
                        let no = kit.b.lit(Data::Bool(false), at);
                        kit.b.add(Term::If(reached, same, no, IfSugar::And), at)
                    }
                    _ => reached,
                };
                on = Some(match on {
                    None => taken,
                    Some(before) => {
                        let yes = kit.b.lit(Data::Bool(true), at);
                        kit.b.add(Term::If(before, yes, taken, IfSugar::Or), at)
                    }
                });
            }
        }
        let name = shape.names[node].clone();
        let value = steps.step(kit, node, &env);
        let flag: Name = format!("$on_{}", name.trim_start_matches('$')).into();
        if certain {
            out.push((name.clone(), value));
        } else {
            let on = on.unwrap_or_else(|| kit.b.lit(Data::Bool(false), at));
            out.push((flag.clone(), on));
            let (on, nothing) = (kit.b.var(flag.clone(), at), kit.b.lit(Data::Null, at));
            let value = kit.b.add(Term::If(on, value, nothing, IfSugar::Plain), at);
            out.push((name.clone(), value));
            env.flags.insert(node, flag.clone());
        }
        env.bind(node, name.clone());
        if shape.decides(node) {
            let choice = steps.choose(kit, node, &env);
            let choice = match certain {
                true => choice,
                false => {
                    let (on, nothing) = (kit.b.var(flag, at), kit.text("", at));
                    kit.b.add(Term::If(on, choice, nothing, IfSugar::Plain), at)
                }
            };
            let chosen: Name = format!("$to_{}", name.trim_start_matches('$')).into();
            out.push((chosen.clone(), choice));
            choices.insert(node, chosen);
        }
    }
    let result = steps.result(kit, &env);
    bound(kit, out, result, graph.at)
}

/// Lowers a graph with cycles to a loop with one node in each iteration. The state holds the next node and
/// the values so far.
fn machine(kit: &mut Kit<'_>, graph: &Graph, shape: &GraphShape, steps: &mut dyn Steps) -> TermId {
    let at = graph.at;
    let reached: Vec<usize> = shape.region(graph.start, graph.nodes.len()).into_iter().collect();
    let mut kept: BTreeSet<usize> = shape.outputs.iter().copied().filter(|n| reached.contains(n)).collect();
    for node in &reached {
        kept.extend(shape.reads[*node].iter().copied().filter(|n| reached.contains(n)));
    }
    let label = |node: usize| -> Name { shape.names[node].trim_start_matches('$').into() };
    let whole = steps.bound(kit);
    let mut branches = Vec::new();
    for &node in &reached {
        let place = graph.nodes[node].at;
        let mut env = Env::default();
        let mut bindings: Bindings = Vec::new();
        let reads: BTreeSet<usize> = shape.reads[node].iter().copied().filter(|n| kept.contains(n)).collect();
        for read in reads {
            let s = kit.b.var("$s", place);
            let name = shape.names[read].clone();
            let value = kit.b.add(Term::Field(s, label(read)), place);
            bindings.push((name.clone(), value));
            env.bind_maybe(read, name);
        }
        let value = steps.step(kit, node, &env);
        let name = shape.names[node].clone();
        bindings.push((name.clone(), value));
        env.bind(node, name.clone());
        if kept.contains(&node) {
            let (s, value) = (kit.b.var("$s", place), kit.b.var(name, place));
            let with = kit.b.add(Term::With(s, label(node), value), place);
            bindings.push(("$s".into(), with));
        }
        let to = |kit: &mut Kit<'_>, target: Option<usize>| {
            let s = kit.b.var("$s", place);
            let Some(target) = target else { return s };
            let next = kit.text(&label(target), place);
            let state = kit.b.add(Term::With(s, "at".into(), next), place);
            let this = kit.b.var("self", place);
            kit.b.app(this, state, place)
        };
        let out = &shape.out[node];
        let unlabeled: Vec<usize> = out.iter().filter(|(_, w)| w.is_none()).map(|(t, _)| *t).collect();
        if unlabeled.len() > 1 {
            let why = format!(
                "`{}` leads to several nodes at once within a cycle; only the first is compiled",
                diagnostics::clip(&graph.nodes[node].name)
            );
            kit.out.push(undecided(codes::NOT_COMPILED, why, place));
        }
        let other = unlabeled.first().copied();
        let tail = if shape.decides(node) {
            let scrutinee = steps.choose(kit, node, &env);
            let mut seen: HashSet<&str> = HashSet::new();
            let mut cases = Vec::new();
            for (target, when) in out {
                if let Some(when) = when.as_deref().filter(|w| seen.insert(w)) {
                    let body = to(kit, Some(*target));
                    cases.push(Branch { tag: when.into(), binder: None, body });
                }
            }
            let default = to(kit, other);
            kit.b.add(Term::Case { scrutinee, branches: cases, default: Some(default) }, place)
        } else {
            to(kit, other)
        };
        let body = bound(kit, bindings, tail, place);
        branches.push(Branch { tag: label(node), binder: None, body });
    }
    let s = kit.b.var("$s", at);
    let scrutinee = kit.b.add(Term::Field(s, "at".into()), at);
    let done = kit.b.var("$s", at);
    let case = kit.b.add(Term::Case { scrutinee, branches, default: Some(done) }, at);
    let step = kit.b.abs("$s", None, case, at);
    let body = kit.b.abs("self", None, step, at);
    let fix_at = whole.span.unwrap_or(at);
    let fix = kit.fix(whole, body, fix_at);
    let mut fields = vec![(Name::from("at"), kit.text(&label(graph.start), at))];
    for node in &kept {
        fields.push((label(*node), kit.b.lit(Data::Null, at)));
    }
    let first = kit.b.add(Term::Record(fields), at);
    let run = kit.b.app(fix, first, at);
    let mut bindings: Bindings = vec![("$s".into(), run)];
    let mut env = Env::default();
    for node in kept {
        let s = kit.b.var("$s", at);
        let value = kit.b.add(Term::Field(s, label(node)), at);
        bindings.push((shape.names[node].clone(), value));
        env.bind_maybe(node, shape.names[node].clone());
    }
    let result = steps.result(kit, &env);
    bound(kit, bindings, result, at)
}
