//! Graphs whose nodes map the texts of their predecessors to a text.

use crate::emit::{LoopBound, Template};
use crate::graph::{Edge, Env, Graph, GraphNode, Steps, lower};
use crate::kit::Kit;
use crate::outline::NodeRole;
use core_ir::{Data, Name, Prim, Term, TermId};
use diagnostics::Span;
use std::collections::HashMap;

/// Makes the value of a node from its input.
type RunNode<'d> = Box<dyn FnMut(&mut Kit<'_>, TermId) -> TermId + 'd>;

/// A node.
pub struct FlowNode<'d> {
    /// Identifier that edges use.
    pub id: String,
    /// Display name.
    pub name: String,
    /// Place of the node.
    pub at: Span,
    /// Term of the node, given the term of its input.
    pub run: RunNode<'d>,
    /// Decision about the next edge, from the value of the node.
    pub choose: Option<RunNode<'d>>,
    /// Possible outcomes with their places, if the source lists them.
    pub outcomes: Option<Vec<(String, Span)>>,
    /// Role for policies.
    pub role: NodeRole,
}

/// A graph of such nodes.
pub struct Flow<'d> {
    /// Nodes.
    pub nodes: Vec<FlowNode<'d>>,
    /// Source, target, and the label of the decision.
    pub edges: Vec<(String, String, Option<String>)>,
    /// Start nodes. If empty, the nodes without incoming edges.
    pub start: Vec<String>,
    /// True if only one of several start nodes starts: each is a trigger.
    pub triggers: bool,
    /// Bound of the cycles.
    pub bound: LoopBound,
    /// Place of the graph.
    pub at: Span,
}

struct FlowLowering<'f, 'd> {
    nodes: &'f mut Vec<FlowNode<'d>>,
    before: Vec<Vec<usize>>,
    last: Vec<usize>,
    bound: Option<LoopBound>,
    at: Span,
}

impl Flow<'_> {
    /// Lowers the graph to a function of type `Str → Str`.
    pub fn lower(mut self, kit: &mut Kit<'_>) -> TermId {
        let index: HashMap<String, usize> =
            self.nodes.iter().enumerate().rev().map(|(i, n)| (n.id.clone(), i)).collect();
        let mut edges: Vec<Edge> = Vec::new();
        for (from, to, when) in &self.edges {
            if let (Some(from), Some(to)) = (index.get(from), index.get(to)) {
                edges.push(Edge { from: *from, to: *to, when: when.clone(), at: None });
            }
        }
        if self.nodes.is_empty() {
            return kit.unknown("a graph without nodes", self.at);
        }
        let mut firsts: Vec<usize> = self.start.iter().filter_map(|s| index.get(s).copied()).collect();
        if firsts.is_empty() {
            firsts =
                (0..self.nodes.len()).filter(|n| edges.iter().all(|e| e.to != *n || e.from == *n)).collect();
        }
        // Several nodes to begin with begin at the same time.
        let start = match &firsts[..] {
            [one] => *one,
            [] => 0,
            several => {
                let at = self.at;
                self.nodes.push(FlowNode::pass("", "begin", at).undecided("what begins the run".into()));
                let begin = self.nodes.len() - 1;
                let when = |to: usize| self.triggers.then(|| self.nodes[to].name.clone());
                edges.extend(several.iter().map(|to| Edge {
                    from: begin,
                    to: *to,
                    when: when(*to),
                    at: None,
                }));
                begin
            }
        };
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for e in &edges {
            if !before[e.to].contains(&e.from) {
                before[e.to].push(e.from);
            }
        }
        let last = (0..self.nodes.len()).filter(|n| edges.iter().all(|e| e.from != *n)).collect();
        let nodes = self.nodes.iter().map(|n| GraphNode { name: n.name.clone(), at: n.at }).collect();
        let graph = Graph { nodes, edges, start, at: self.at };
        let mut steps =
            FlowLowering { nodes: &mut self.nodes, before, last, bound: Some(self.bound), at: self.at };
        lower(kit, &graph, &mut steps)
    }
}

/// Joins texts by lines. Missing ones are empty.
fn joined(kit: &mut Kit<'_>, env: &Env, nodes: &[usize], at: Span) -> TermId {
    if let [one] = nodes {
        return env.read(kit, *one, &[], Data::str(""), at);
    }
    let mut text = Template::new(at);
    for (i, node) in nodes.iter().enumerate() {
        if i > 0 {
            text.text("\n");
        }
        let value = env.read(kit, *node, &[], Data::str(""), at);
        text.term(value);
    }
    text.build(&mut kit.b)
}

impl Steps for FlowLowering<'_, '_> {
    fn step(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let at = self.nodes[node].at;
        let ran: Vec<usize> = self.before[node].iter().copied().filter(|n| env.has(*n)).collect();
        let input = if ran.is_empty() { kit.b.var("x", at) } else { joined(kit, env, &ran, at) };
        (self.nodes[node].run)(kit, input)
    }

    fn reads(&self, node: usize) -> Vec<usize> {
        self.before[node].clone()
    }

    fn choose(&mut self, kit: &mut Kit<'_>, node: usize, env: &Env) -> TermId {
        let at = self.nodes[node].at;
        let value = env.read(kit, node, &[], Data::str(""), at);
        match &mut self.nodes[node].choose {
            Some(choose) => choose(kit, value),
            None => kit.unknown("the branch taken", at),
        }
    }

    fn outputs(&self) -> Vec<usize> {
        self.last.clone()
    }

    fn result(&mut self, kit: &mut Kit<'_>, env: &Env) -> TermId {
        let mut ran: Vec<usize> = self.last.iter().copied().filter(|n| env.has(*n)).collect();
        if ran.is_empty() {
            // A branch that ends early gives what its last node gave.
            ran.extend(env.order.last());
        }
        if ran.is_empty() { kit.text("", self.at) } else { joined(kit, env, &ran, self.at) }
    }

    fn outcomes(&self, node: usize) -> Option<Vec<(String, Span)>> {
        self.nodes[node].outcomes.clone()
    }

    fn role(&self, node: usize) -> NodeRole {
        self.nodes[node].role
    }

    fn bound(&mut self, _: &mut Kit<'_>) -> LoopBound {
        self.bound.take().unwrap_or_else(|| LoopBound::unknown("the graph is run more than once"))
    }
}

/// Lowers the call of a tool on a text.
pub fn by_tool(kit: &mut Kit<'_>, name: &str, input: TermId, at: Span) -> TermId {
    let id = kit.tool(name, at, false, None, None);
    let tool = kit.b.add(Term::Tool(id), at);
    let result = kit.b.app(tool, input, at);
    kit.b.add(Term::Prim(Prim::ToStr, vec![result]), at)
}

/// Lowers a classification: a model names one of some labels.
pub fn classified(kit: &mut Kit<'_>, labels: &[String], value: TermId, at: Span) -> TermId {
    let tags: Vec<Name> = labels.iter().map(|l| Name::from(l.as_str())).collect();
    kit.b.add(Term::Classify(tags, value), at)
}

impl<'d> FlowNode<'d> {
    /// Makes a node that runs a term.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        at: Span,
        run: impl FnMut(&mut Kit<'_>, TermId) -> TermId + 'd,
    ) -> FlowNode<'d> {
        FlowNode {
            id: id.into(),
            name: name.into(),
            at,
            run: Box::new(run),
            choose: None,
            outcomes: None,
            role: NodeRole::Plain,
        }
    }

    /// Makes a node that returns its input.
    pub fn pass(id: impl Into<String>, name: impl Into<String>, at: Span) -> FlowNode<'d> {
        FlowNode::new(id, name, at, |_, x| x)
    }

    /// Makes a node for an external operation.
    pub fn tool(id: impl Into<String>, name: impl Into<String>, at: Span) -> FlowNode<'d> {
        let name = name.into();
        let tool = name.clone();
        FlowNode::new(id, name, at, move |kit, x| by_tool(kit, &tool, x, at))
    }

    /// Makes a node that isn't compiled.
    pub fn unknown(id: impl Into<String>, name: impl Into<String>, why: String, at: Span) -> FlowNode<'d> {
        FlowNode::new(id, name, at, move |kit, _| {
            kit.undecided(crate::emit::codes::NOT_COMPILED, why.clone(), at)
        })
    }

    /// Adds a decision after the node.
    #[must_use]
    pub fn deciding(mut self, choose: impl FnMut(&mut Kit<'_>, TermId) -> TermId + 'd) -> FlowNode<'d> {
        self.choose = Some(Box::new(choose));
        self
    }

    /// Adds an unknown decision: its condition is an expression of the framework.
    #[must_use]
    pub fn undecided(self, why: String) -> FlowNode<'d> {
        let at = self.at;
        self.deciding(move |kit, _| kit.unknown(&why, at))
    }
}
