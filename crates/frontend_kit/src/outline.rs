//! Structure of a unit that its term doesn't show.
//!
//! A graph becomes a term in which only what is reached is left, and a placeholder without a value becomes an
//! empty text: the term means what the framework does. What the author most likely meant is seen here.
//!
//! Invariant: no judgment. A front end lists what is written; whether that is a defect is a rule's business.

use core_ir::{NewIds, TermId, ToolId};
use diagnostics::Span;
use std::collections::{HashMap, HashSet};

/// Observations of a front end about a unit besides its term.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its graphs, inner ones included, each once.
    pub graphs: Vec<GraphOutline>,
    /// Placeholders that nothing gives a value: what they name, and where.
    pub missing: Vec<(String, Span)>,
    /// Inputs that the source declares and nothing reads.
    pub unread: Vec<(String, Span)>,
    /// Operations that are repeated when they fail.
    pub retried: Vec<Retried>,
    /// Guards whose number of retries is the framework's default.
    pub unstated_retries: HashSet<TermId>,
    /// Unused definitions.
    pub leftover: Vec<Leftover>,
    /// Agents that hand off to one that handed off to them: who, to whom, and where that is written.
    pub handoff_cycles: Vec<(String, String, Span)>,
    /// Keys of a state that are read, each with a place, though nothing gives them a value.
    pub unwritten: Vec<(String, Span)>,
    /// Keys of a state that several nodes set in one step, with the places of two of them.
    pub clashes: Vec<(String, Span, Span)>,
    /// Instructions that are written and empty, by their text, and by their conversation where no message is
    /// made of them.
    pub blank: HashMap<TermId, Blank>,
    /// Facts about loops, by their fixpoints; a loop without any is left out.
    pub loops: HashMap<TermId, LoopFacts>,
    /// Roles of tools that the program does not carry out.
    pub roles: HashMap<ToolId, ToolRole>,
    /// Requests whose model the source names in a way that is not known.
    pub unknown_models: HashSet<TermId>,
    /// People who take part in group chats, and whether what they say may end one.
    pub people: Vec<(Span, bool)>,
    /// True if the source scripts the replies: it replaces a model.
    pub scripted: bool,
}

/// Instructions that are written and empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blank {
    /// Place of the instructions.
    pub at: Span,
    /// True if nobody can give others there: they are no default.
    pub certain: bool,
}

/// Party that carries out the calls of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolRole {
    /// The program, or a service that it calls.
    #[default]
    Program,
    /// A person, who is asked.
    Person,
    /// The provider of the model, so that a call and its result are parts of one reply.
    Provider,
}

/// Facts about a loop that its term does not state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopFacts {
    /// Help text that bounds it, if it is bounded elsewhere than the format's other loops.
    pub bounded: Option<&'static str>,
    /// True if its time is limited.
    pub timed: bool,
    /// End of its turns, if otherwise than its term says.
    pub ends: Option<Ends>,
    /// True if a run stops in each of its rounds, so that whoever runs it decides about another.
    pub stopped: bool,
    /// True if no setting of the program bounds it.
    pub unsettable: bool,
}

/// A graph of nodes and edges as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphOutline {
    /// Place of the graph.
    pub at: Span,
    /// Its nodes.
    pub nodes: Vec<NodeOutline>,
    /// From, to (numbers of nodes), and the outcome for which the edge is taken.
    pub edges: Vec<(usize, usize, Option<String>)>,
    /// Place of each edge, if it has one of its own.
    pub placed: Vec<Option<Span>>,
    /// The node to begin with.
    pub start: usize,
    /// True if a run may continue along edges that aren't listed.
    pub open: bool,
    /// True if a run stops at one of its nodes until somebody resumes it.
    pub stops: bool,
    /// Branches whose label what decides cannot give, in code.
    pub dead: Vec<DeadBranch>,
}

/// A branch of a decision that is never taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadBranch {
    /// The node with the decision.
    pub from: usize,
    /// The node that the branch leads to, if it is one of the graph.
    pub to: Option<usize>,
    /// Its label.
    pub label: String,
    /// Its place.
    pub at: Span,
    /// True if nothing is lost by it: another branch leads there, or a constant switches it off.
    pub harmless: bool,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOutline {
    /// Display name.
    pub name: String,
    /// Place of the node.
    pub at: Span,
    /// The outcomes it can have, each with its place, if the source lists them.
    pub outcomes: Option<Vec<(String, Span)>>,
    /// Role for policies.
    pub role: NodeRole,
}

/// Role of a node for policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum NodeRole {
    /// Nothing that is known.
    #[default]
    Plain,
    /// Asks a person and goes on by the answer.
    Approves,
    /// Certainly changes the world: sends, pays, deletes.
    Writes,
}

/// End of an agent's loop, where the term doesn't show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The provider of the model carries out all tools while it replies: there is one turn.
    AtOnce,
    /// Of the tools only some are known, and none of these takes a turn.
    ByUnknownTools,
    /// Code of the project decides after each call whether there is another turn.
    ByCode,
    /// Executors of a graph, which are code, decide whether it runs another step.
    ByExecutors,
}

/// An operation that is repeated when it fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retried {
    /// Display name.
    pub name: String,
    /// Place of the repetition.
    pub at: Span,
    /// Maximal number of times, if it is written.
    pub times: Option<u64>,
    /// True if it certainly writes. `None` if that depends on the service that it calls.
    pub writes: Option<bool>,
    /// True if it writes nothing but a message to people, who see one that comes twice.
    pub message: bool,
}

/// Kind of a [`Leftover`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverKind {
    /// An agent.
    Agent,
    /// A node of a graph.
    Node,
    /// A tool.
    Tool,
}

/// Way in which a definition is unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftoverState {
    /// Nothing leads there, though it is a part of what runs otherwise.
    Unreached,
    /// It has no edge at all, as everything else in its unit: the unit comes apart.
    Apart,
    /// It has no edge at all, in a unit whose other parts have some: its author set it aside.
    SetAside,
    /// A caller may still run it by its name.
    ByName,
}

/// A definition that nothing uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Kind of definition.
    pub kind: LeftoverKind,
    /// Its name.
    pub name: String,
    /// Place of the definition.
    pub at: Span,
    /// The way in which it is unused.
    pub state: LeftoverState,
}

impl Outline {
    /// Returns the facts about a loop, given by its fixpoint.
    pub fn of_loop(&self, fix: TermId) -> LoopFacts {
        self.loops.get(&fix).copied().unwrap_or_default()
    }

    /// Renumbers the terms that facts are about; those that are left out of the code have none.
    #[must_use]
    pub fn renumbered(self, ids: &NewIds) -> Outline {
        fn moved<T>(facts: HashMap<TermId, T>, ids: &NewIds) -> HashMap<TermId, T> {
            facts.into_iter().filter_map(|(id, fact)| Some((ids.of(id)?, fact))).collect()
        }
        let Outline { loops, blank, unstated_retries, .. } = self;
        let unstated_retries = unstated_retries.into_iter().filter_map(|id| ids.of(id)).collect();
        Outline { loops: moved(loops, ids), blank: moved(blank, ids), unstated_retries, ..self }
    }

    /// Adds a graph, once however often it is compiled. Graphs of one place that differ are several graphs.
    pub fn graph(&mut self, graph: GraphOutline) {
        if !self.graphs.contains(&graph) {
            self.graphs.push(graph);
        }
    }

    /// Adds a placeholder without a value, once per place.
    pub fn missing(&mut self, name: &str, at: Span) {
        let new = (name.to_string(), at);
        if self.missing.len() < MAX_ENTRIES && !self.missing.contains(&new) {
            self.missing.push(new);
        }
    }

    /// Adds a key that is read and never written, once.
    pub fn unwritten(&mut self, key: &str, at: Span) {
        if self.unwritten.len() < MAX_ENTRIES && !self.unwritten.iter().any(|(k, _)| k == key) {
            self.unwritten.push((key.to_string(), at));
        }
    }

    /// Adds a key that is set twice in one step, once per pair of places.
    pub fn clash(&mut self, key: &str, first: Span, second: Span) {
        let new = (key.to_string(), first, second);
        if self.clashes.len() < MAX_ENTRIES && !self.clashes.contains(&new) {
            self.clashes.push(new);
        }
    }

    /// Adds an operation that is repeated, once.
    pub fn retried(&mut self, retried: Retried) {
        if self.retried.len() < MAX_ENTRIES && !self.retried.contains(&retried) {
            self.retried.push(retried);
        }
    }

    /// Adds a person who takes part in a group chat, once.
    pub fn person(&mut self, at: Span, may_end: bool) {
        if self.people.len() < MAX_ENTRIES && !self.people.contains(&(at, may_end)) {
            self.people.push((at, may_end));
        }
    }

    /// Adds something that is defined and used by nothing.
    pub fn leftover(&mut self, kind: LeftoverKind, name: &str, at: Span, state: LeftoverState) {
        if self.leftover.len() < MAX_ENTRIES {
            self.leftover.push(Leftover { kind, name: name.to_string(), at, state });
        }
    }
}

/// Entries of one list at most: a hostile file shall not be answered by as large a report.
const MAX_ENTRIES: usize = 200;

impl GraphOutline {
    /// Returns whether a run that stops at some of the nodes stops in each of its cycles: whoever runs it
    /// decides then whether there is another round.
    pub fn stops_in_each_cycle(&self, at: &[String]) -> bool {
        let stops: Vec<bool> = self.nodes.iter().map(|n| at.contains(&n.name)).collect();
        let goes_on = |n: usize| stops.get(n) == Some(&false);
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); stops.len()];
        let mut led = vec![0usize; stops.len()];
        for (a, b, _) in self.edges.iter().filter(|(a, b, _)| goes_on(*a) && goes_on(*b)) {
            next[*a].push(*b);
            led[*b] += 1;
        }
        // A node that no edge leads to is on no cycle; neither is then a node that only such nodes lead to.
        let mut free: Vec<usize> = (0..led.len()).filter(|n| led[*n] == 0).collect();
        let mut done = 0;
        while let Some(node) = free.pop() {
            done += 1;
            for to in &next[node] {
                led[*to] -= 1;
                if led[*to] == 0 {
                    free.push(*to);
                }
            }
        }
        done == stops.len() && stops.contains(&true)
    }

    /// Returns for each node whether it is reachable from a node, itself included.
    pub fn reached(&self, from: usize) -> Vec<bool> {
        self.reached_around(from, None)
    }

    /// Returns for each node whether it is reachable from a node on a path that avoids another.
    pub fn reached_around(&self, from: usize, without: Option<usize>) -> Vec<bool> {
        self.reached_from(vec![from], without)
    }

    /// Returns for each node whether it leads to a node, itself included.
    pub fn leading_to(&self, to: usize) -> Vec<bool> {
        walk(&self.next(|(a, b)| (b, a)), vec![to], None)
    }

    /// Returns for each node whether it is reachable from one of some nodes on a path that avoids another.
    pub fn reached_from(&self, from: Vec<usize>, without: Option<usize>) -> Vec<bool> {
        walk(&self.next(|edge| edge), from, without)
    }

    /// Returns the unreached nodes to which no other unreached node leads, and one of each cycle of unreached
    /// nodes to which only the cycle leads. All others come after one of these.
    pub fn first_unreached(&self) -> Vec<usize> {
        let next = self.next(|edge| edge);
        let mut seen = walk(&next, vec![self.start], None);
        let mut covered = seen.clone();
        // The nodes in the order in which a search leaves them: the last is a first one.
        let mut left: Vec<usize> = Vec::new();
        for from in 0..seen.len() {
            let mut path = vec![(from, 0)];
            while let Some((node, edge)) = path.pop() {
                if edge == 0 && std::mem::replace(&mut seen[node], true) {
                    continue;
                }
                match next[node].get(edge) {
                    Some(to) => path.extend([(node, edge + 1), (*to, 0)]),
                    None => left.push(node),
                }
            }
        }
        let mut first = Vec::new();
        for node in left.into_iter().rev() {
            if !covered[node] {
                first.push(node);
                walk_on(&next, vec![node], None, &mut covered);
            }
        }
        first.sort_unstable();
        first
    }

    /// The nodes that follow each node along the edges, each of which is taken in the given direction.
    fn next(&self, direction: fn((usize, usize)) -> (usize, usize)) -> Vec<Vec<usize>> {
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (a, b, _) in &self.edges {
            let (a, b) = direction((*a, *b));
            if let (Some(list), true) = (next.get_mut(a), b < self.nodes.len()) {
                list.push(b);
            }
        }
        next
    }
}

/// Returns for each node whether it is reachable from some nodes.
fn walk(next: &[Vec<usize>], from: Vec<usize>, without: Option<usize>) -> Vec<bool> {
    let mut seen = vec![false; next.len()];
    walk_on(next, from, without, &mut seen);
    seen
}

/// Goes on from some nodes to all that are not seen yet.
fn walk_on(next: &[Vec<usize>], from: Vec<usize>, without: Option<usize>, seen: &mut [bool]) {
    let mut left = from;
    while let Some(node) = left.pop() {
        if Some(node) == without || node >= seen.len() || std::mem::replace(&mut seen[node], true) {
            continue;
        }
        left.extend(&next[node]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::FileId;

    #[test]
    fn graphs_of_one_place_that_differ_are_both_kept() {
        let at = Span { file: FileId(0), start: 0, end: 1 };
        let node = |name: &str| NodeOutline { name: name.into(), at, outcomes: None, role: NodeRole::Plain };
        let graph = |edges: &[(usize, usize)]| GraphOutline {
            at,
            nodes: vec![node("a"), node("b")],
            edges: edges.iter().map(|(from, to)| (*from, *to, None)).collect(),
            placed: Vec::new(),
            start: 0,
            open: false,
            stops: false,
            dead: Vec::new(),
        };
        let mut outline = Outline::default();
        outline.graph(graph(&[(0, 1)]));
        outline.graph(graph(&[(0, 1)]));
        outline.graph(graph(&[(0, 1), (1, 0)]));
        assert_eq!(outline.graphs.len(), 2);
        assert!(!outline.graphs[1].stops_in_each_cycle(&[]));
        assert!(outline.graphs[1].stops_in_each_cycle(&["b".to_string()]));
    }

    #[test]
    fn unreached_nodes_begin_at_the_first_of_each_part() {
        let at = Span { file: FileId(0), start: 0, end: 1 };
        let node = || NodeOutline { name: "n".into(), at, outcomes: None, role: NodeRole::Plain };
        // 0 → 1 is reached. 2 comes after the cycle of 3 and 4; 5 leads to 6; 7 leads to itself and to 1.
        let edges = [(0, 1), (3, 4), (4, 3), (4, 2), (5, 6), (7, 7), (7, 1)];
        let graph = GraphOutline {
            at,
            nodes: (0..8).map(|_| node()).collect(),
            edges: edges.map(|(from, to)| (from, to, None)).to_vec(),
            placed: Vec::new(),
            start: 0,
            open: false,
            stops: false,
            dead: Vec::new(),
        };
        assert_eq!(graph.first_unreached(), [3, 5, 7]);
        assert_eq!(graph.leading_to(2), [false, false, true, true, true, false, false, false]);
    }
}
