//! Diagrams of terms: calls in their order, with loops, bounds and tools.
//!
//! Entry point: [`draw`], which gives a [`Picture`]; [`Picture::mermaid`] and [`Picture::dot`] write it. An
//! analysis may mark the nodes in between ([`Node::mark`]).
//!
//! A call of a model is a box with its name, its model and the tools it is offered; a call of a tool is
//! rounded; a decision is a diamond; a loop is a hexagon with its bound, and what calls it again leads back
//! to it. An agent whose loop only calls tools is one box. A loop of which each turn does one of several
//! steps and says which comes next is drawn as the graph that it is: from step to step. What evaluates
//! without asking anybody is not drawn.
//!
//! Invariant: at most [`MAX_NODES`] nodes; what is beyond is one node that says so.

use crate::{Abs, AbsSugar, Branch, Code, Data, ModelParams, Name, Recv, Slot, Term, TermId};

/// Nodes of a picture at most.
pub const MAX_NODES: usize = 1_000;

/// Shape of a node: the kind of step that it represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeShape {
    /// Start or end of the graph.
    End,
    /// A model call.
    Model,
    /// A tool is called.
    Tool,
    /// A decision.
    Choice,
    /// A loop.
    Loop,
    /// A step that could not be read.
    Unknown,
}

/// Verdict of an analysis on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Nothing.
    #[default]
    None,
    /// It may be refused when it runs.
    Open,
    /// It is refused whenever it runs.
    Refused,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Shape of the node.
    pub look: NodeShape,
    /// Its lines of text.
    pub lines: Vec<String>,
    /// The terms that it represents: the function and its application, or all parts of an agent's loop.
    pub terms: Vec<TermId>,
    /// Verdict of an analysis; [`draw`] leaves it at [`Mark::None`].
    pub mark: Mark,
}

/// Nodes and edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges: from, to, label.
    pub edges: Vec<(usize, usize, String)>,
}

/// Open ends to which the next node is connected: nodes, each with the label of the edge.
type Exits = Vec<(usize, String)>;

/// Binding of a name in scope, as far as drawing needs it.
#[derive(Clone)]
enum Bound {
    /// A value that draws no node.
    Data,
    /// The loop that begins at this node.
    Loop(usize),
    /// The loop of these steps.
    Steps(usize),
    /// A function, with how many names are in scope where it is written.
    Function(TermId, usize),
}

struct Draw<'c> {
    code: &'c Code,
    /// For each term, true if drawing it would add a node.
    visible: Vec<bool>,
    picture: Picture,
    /// The names in scope, outer ones first.
    scope: Vec<(Name, Bound)>,
    /// The application that is being drawn.
    application: Option<TermId>,
    /// The loops of steps that are being drawn.
    graphs: Vec<Steps>,
}

/// A loop of which each turn does one of several steps. A step is often said to be next before it is drawn:
/// until all are, edges into a step are kept here, and edges out of it begin at a number that is no node's.
struct Steps {
    /// Node of the loop's head.
    head: usize,
    /// The steps.
    tags: Vec<Name>,
    /// The field of the state that says which is next; nothing if the state is a tag itself.
    field: Option<Name>,
    /// Number of the first step; those of the others follow.
    first: usize,
    /// Exits that lead to each step.
    jumps: Vec<Exits>,
}

/// Numbers from here on are no nodes'.
const NO_NODE: usize = usize::MAX / 2;

impl Steps {
    /// The step that comes next if the loop is given this.
    fn next(&self, code: &Code, state: TermId) -> Option<usize> {
        let tag: &str = match (code.term(state), &self.field) {
            (Term::Tag(tag, _), None) => tag,
            (Term::With(_, field, value), Some(at)) if field == at => match code.term(*value) {
                Term::Lit(Data::Str(tag)) => tag,
                _ => return None,
            },
            _ => return None,
        };
        self.tags.iter().position(|t| **t == *tag)
    }

    /// Returns the step that a number represents.
    fn step_of(&self, node: usize) -> Option<usize> {
        node.checked_sub(self.first).filter(|i| *i < self.tags.len())
    }

    /// Returns the nodes that lead to a step, through steps without calls.
    fn leading_to(&self, step: usize) -> Exits {
        let mut found = Exits::new();
        let mut seen = vec![false; self.tags.len()];
        let mut open: Vec<(usize, String)> = vec![(step, String::new())];
        while let Some((step, after)) = open.pop() {
            if std::mem::replace(&mut seen[step], true) {
                continue;
            }
            for (node, label) in &self.jumps[step] {
                let label = if after.is_empty() { label.clone() } else { after.clone() };
                match self.step_of(*node) {
                    Some(before) => open.push((before, label)),
                    None => found.push((*node, label)),
                }
            }
        }
        found
    }
}

/// Draws a term.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Data, Globals, ModelParams, Term, draw};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let prompt = b.lit(Data::str("Say hello."), at);
/// let llm = b.add(Term::Llm(prompt, std::sync::Arc::new(ModelParams::default())), at);
/// let code = b.finish(llm, &Globals::none()).unwrap();
/// assert!(draw::draw(&code).mermaid().contains("a model"));
/// ```
pub fn draw(code: &Code) -> Picture {
    let mut visible = vec![false; code.len()];
    for (id, term) in code.iter() {
        let own = match term {
            Term::Llm(..)
            | Term::Tool(_)
            | Term::Unknown(_)
            | Term::Recv(_)
            | Term::Fix { .. }
            | Term::Fail(_) => true,
            Term::App(f, _) => {
                matches!(code.term(*f), Term::Var(_, slot) if !matches!(slot, Slot::Global(_)))
            }
            _ => false,
        };
        let below =
            || term.children().into_iter().any(|c| visible.get(c.0 as usize).copied().unwrap_or(false));
        visible[id.0 as usize] = own || below();
    }
    let mut draw = Draw {
        code,
        visible,
        picture: Picture::default(),
        scope: Vec::new(),
        application: None,
        graphs: Vec::new(),
    };
    let begin = draw.node(NodeShape::End, vec!["input".into()], Vec::new());
    let exits = draw.result(code.root(), begin);
    if !exits.is_empty() {
        draw.node(NodeShape::End, vec!["result".into()], exits);
    }
    draw.picture
}

impl Draw<'_> {
    /// Adds a node behind the exits; gives its own exit.
    fn node(&mut self, look: NodeShape, lines: Vec<String>, from: Exits) -> Exits {
        let full = self.full();
        let plain = |look, lines| Node { look, lines, terms: Vec::new(), mark: Mark::None };
        if full && self.picture.nodes.last().is_none_or(|n| n.lines.first().is_none_or(|t| t != "…")) {
            self.picture.nodes.push(plain(NodeShape::Unknown, vec!["…".into()]));
        } else if !full {
            self.picture.nodes.push(plain(look, lines));
        }
        let node = self.picture.nodes.len() - 1;
        self.link(from, node);
        vec![(node, String::new())]
    }

    fn full(&self) -> bool {
        self.picture.nodes.len() >= MAX_NODES
    }

    /// Adds a node of a call.
    fn asking(&mut self, look: NodeShape, lines: Vec<String>, asked: TermId, from: Exits) -> Exits {
        let exits = self.node(look, lines, from);
        let terms = [Some(asked), self.application].into_iter().flatten();
        if let Some(node) = exits.first().and_then(|(n, _)| self.picture.nodes.get_mut(*n)) {
            node.terms.extend(terms);
        }
        exits
    }

    fn link(&mut self, from: Exits, to: usize) {
        for (node, label) in from {
            let edge = (node, to, label);
            if self.picture.edges.len() < 4 * MAX_NODES && !self.picture.edges.contains(&edge) {
                self.picture.edges.push(edge);
            }
        }
    }

    fn shows(&self, id: TermId) -> bool {
        // A full picture is finished quickly: a function may be called from very many places.
        !self.full() && self.visible.get(id.0 as usize).copied().unwrap_or(false)
    }

    fn is_function(&self, id: TermId) -> bool {
        matches!(
            self.code.term(id),
            Term::Abs(_)
                | Term::Fix { .. }
                | Term::Llm(..)
                | Term::Tool(_)
                | Term::Guard { .. }
                | Term::Mem(..)
        )
    }

    /// Does something with more names in scope.
    fn with<R>(&mut self, names: Vec<(Name, Bound)>, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.scope.len();
        self.scope.extend(names);
        let done = f(self);
        self.scope.truncate(before);
        done
    }

    /// Draws the requests made by the value of a whole term. Functions that were bound on the way are called
    /// at the end.
    fn result(&mut self, id: TermId, from: Exits) -> Exits {
        match self.code.term(id) {
            Term::Let { bindings, body, .. } => {
                let mut from = from;
                let before = self.scope.len();
                for (name, e) in bindings {
                    from = self.binding(name, *e, from);
                }
                let exits = self.result(*body, from);
                self.scope.truncate(before);
                exits
            }
            Term::Check(_, _, e) => self.result(*e, from),
            _ if self.is_function(id) => self.call(id, from),
            _ => self.eval(id, from),
        }
    }

    /// Draws what is bound, and brings the name into scope.
    fn binding(&mut self, name: &Name, e: TermId, from: Exits) -> Exits {
        let function = self.is_function(e) && self.shows(e);
        let from = if function { from } else { self.eval(e, from) };
        let bound = if function { Bound::Function(e, self.scope.len()) } else { Bound::Data };
        self.scope.push((name.clone(), bound));
        from
    }

    /// Draws the requests made while a term is evaluated.
    fn eval(&mut self, id: TermId, from: Exits) -> Exits {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.eval_inner(id, from))
    }

    fn eval_inner(&mut self, id: TermId, from: Exits) -> Exits {
        if !self.shows(id) {
            return from;
        }
        let code = self.code;
        match code.term(id) {
            // A function by itself asks nothing.
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) | Term::Fix { .. } | Term::Guard { .. } => from,
            Term::App(f, x) => {
                let from = self.eval(*x, from);
                let outer = self.application.replace(id);
                let mut exits = self.call(*f, from);
                // A function of the prelude or of a parameter may call what it is given.
                if matches!(code.term(*f), Term::Var(..) | Term::App(..)) && self.is_function(*x) {
                    exits = self.call(*x, exits);
                }
                self.application = outer;
                exits
            }
            Term::Each(_, f, xs) => {
                let from = self.eval(*xs, from);
                if !self.shows(*f) {
                    return from;
                }
                let head = self.node(NodeShape::Loop, vec!["each item".into()], from);
                self.call(*f, head)
            }
            Term::Let { bindings, body, .. } => {
                let mut from = from;
                let before = self.scope.len();
                for (name, e) in bindings {
                    from = self.binding(name, *e, from);
                }
                let exits = self.eval(*body, from);
                self.scope.truncate(before);
                exits
            }
            Term::If(test, yes, no, _) => {
                let from = self.eval(*test, from);
                if !self.shows(*yes) && !self.shows(*no) {
                    return from;
                }
                let choice = self.node(NodeShape::Choice, vec!["?".into()], from);
                let arm =
                    |label: &str| choice.iter().map(|(n, _)| (*n, label.to_string())).collect::<Exits>();
                let mut exits = self.eval(*yes, arm("yes"));
                exits.extend(self.eval(*no, arm("no")));
                exits
            }
            Term::Case { scrutinee, branches, default } => {
                let from = self.eval(*scrutinee, from);
                let mut arms: Vec<(String, Option<Name>, TermId)> =
                    branches.iter().map(|b| (b.tag.to_string(), b.binder.clone(), b.body)).collect();
                arms.extend(default.map(|d| ("otherwise".to_string(), None, d)));
                if arms.iter().all(|(_, _, body)| !self.shows(*body)) {
                    return from;
                }
                let choice = self.node(NodeShape::Choice, vec!["which".into()], from);
                let mut exits = Vec::new();
                for (tag, binder, body) in arms {
                    let arm = choice.iter().map(|(n, _)| (*n, tag.clone())).collect();
                    let names = binder.into_iter().map(|b| (b, Bound::Data)).collect();
                    exits.extend(self.with(names, |draw| draw.eval(body, arm)));
                }
                exits
            }
            Term::Par(_, sides) => {
                let mut exits = Vec::new();
                for side in sides {
                    exits.extend(self.eval(*side, from.clone()));
                }
                exits
            }
            Term::Choose(_, a, b) => {
                let mut exits = self.eval(*a, from.clone());
                exits.extend(self.eval(*b, from));
                exits
            }
            Term::Try { body, name, handler, label, .. } => {
                let from = self.eval(*label, from);
                let mut exits = self.eval(*body, from.clone());
                if self.shows(*handler) {
                    let caught = from.into_iter().map(|(n, _)| (n, "error".to_string())).collect();
                    let names = vec![(name.clone(), Bound::Data)];
                    exits.extend(self.with(names, |draw| draw.eval(*handler, caught)));
                }
                exits
            }
            Term::Unknown(why) => self.node(NodeShape::Unknown, vec![why.to_string()], from),
            Term::Recv(recv) => {
                let lines = match recv {
                    Recv::Data(params) => self.model(params),
                    Recv::Code => vec!["a model writes code".into()],
                };
                self.asking(NodeShape::Model, lines, id, from)
            }
            Term::Fail(e) => {
                let from = self.eval(*e, from);
                self.node(NodeShape::End, vec!["fails".into()], from);
                Vec::new()
            }
            other => other.children().into_iter().fold(from, |from, child| self.eval(child, from)),
        }
    }

    /// Draws the requests made by a call of a function.
    fn call(&mut self, id: TermId, from: Exits) -> Exits {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.call_inner(id, from))
    }

    fn call_inner(&mut self, id: TermId, from: Exits) -> Exits {
        let code = self.code;
        match code.term(id) {
            Term::Var(name, _) => {
                let bound = self.scope.iter().rev().find(|(n, _)| n == name).map(|(_, b)| b.clone());
                match bound {
                    Some(Bound::Loop(head)) => {
                        self.link(from, head);
                        Vec::new()
                    }
                    Some(Bound::Steps(graph)) => {
                        let next = self.given(id).and_then(|state| self.graphs[graph].next(code, state));
                        match next {
                            Some(step) => self.graphs[graph].jumps[step].extend(from),
                            None => self.link(from, self.graphs[graph].head),
                        }
                        Vec::new()
                    }
                    Some(Bound::Function(function, depth)) if self.shows(function) => {
                        // The function sees the names of where it is written.
                        let inner = self.scope.split_off(depth);
                        let exits = self.call(function, from);
                        self.scope.truncate(depth);
                        self.scope.extend(inner);
                        exits
                    }
                    _ => from,
                }
            }
            Term::Abs(abs) if abs.sugar == AbsSugar::Compose => {
                let stages = code.stages(id).unwrap_or_default();
                stages.into_iter().fold(from, |from, stage| self.call(stage, from))
            }
            Term::Abs(abs) => {
                let names = vec![(abs.param.clone(), Bound::Data)];
                // The function of the inputs, or of several arguments.
                self.with(names, |draw| draw.result(abs.body, from))
            }
            Term::Llm(_, params) => {
                let lines = self.model(params);
                self.asking(NodeShape::Model, lines, id, from)
            }
            Term::Tool(tool) => {
                let name = code.tool(*tool).name.to_string();
                self.asking(NodeShape::Tool, vec![name], id, from)
            }
            Term::Fix { bound, body, .. } => self.fixpoint(*bound, *body, from),
            Term::Guard { term, .. } => self.call(*term, from),
            Term::Mem(_, e) | Term::Check(_, _, e) => self.call(*e, from),
            Term::If(..) | Term::Case { .. } | Term::App(..) | Term::Let { .. } => self.result(id, from),
            Term::Unknown(why) => self.node(NodeShape::Unknown, vec![why.to_string()], from),
            _ => from,
        }
    }

    /// The lines of a model: its purpose, its name, its tools.
    fn model(&self, params: &ModelParams) -> Vec<String> {
        let mut lines = vec![params.purpose.as_ref().map_or("a model".to_string(), |p| p.to_string())];
        lines.extend(params.model.as_ref().map(|m| m.to_string()));
        let tools: Vec<&str> = params.tools.iter().map(|t| &*self.code.tool(*t).name).collect();
        if !tools.is_empty() {
            const SHOWN: usize = 8;
            let more =
                if tools.len() > SHOWN { format!(", … {} in all", tools.len()) } else { String::new() };
            let shown: Vec<&str> = tools.into_iter().take(SHOWN).collect();
            lines.push(format!("tools: {}{more}", shown.join(", ")));
        }
        lines
    }

    fn fixpoint(&mut self, bound: crate::Bound, body: TermId, from: Exits) -> Exits {
        let code = self.code;
        let turns = match bound {
            crate::Bound::Finite(n) => format!("at most {n} times"),
            crate::Bound::Infinite => "no bound".to_string(),
        };
        let Term::Abs(Abs { param, body: inner, .. }) = code.term(body) else {
            return self.node(NodeShape::Loop, vec![turns], from);
        };
        if let Some((mut lines, terms)) = self.agent(param, *inner) {
            lines.push(turns);
            let exits = self.node(NodeShape::Model, lines, from);
            if let Some(node) = exits.first().and_then(|(n, _)| self.picture.nodes.get_mut(*n)) {
                node.terms = terms;
            }
            return exits;
        }
        if let Some(exits) = self.graph(param, *inner, &turns, &from) {
            return exits;
        }
        let head = self.node(NodeShape::Loop, vec![turns], from);
        let Some((node, _)) = head.first().cloned() else { return head };
        self.with(vec![(param.clone(), Bound::Loop(node))], |draw| draw.call(*inner, head))
    }

    /// Returns the argument that the application being drawn passes to `function`, if it applies that one.
    fn given(&self, function: TermId) -> Option<TermId> {
        match self.application.map(|id| self.code.term(id)) {
            Some(Term::App(f, x)) if *f == function => Some(*x),
            _ => None,
        }
    }

    /// A loop of steps, if it is one and says somewhere which step comes next.
    fn graph(&mut self, again: &Name, step: TermId, turns: &str, from: &Exits) -> Option<Exits> {
        let code = self.code;
        let Term::Abs(Abs { param: state, body, .. }) = code.term(step) else { return None };
        let Term::Case { scrutinee, branches, .. } = code.term(*body) else { return None };
        let is_state = |id: TermId| matches!(code.term(id), Term::Var(name, _) if name == state);
        let field = match code.term(*scrutinee) {
            _ if is_state(*scrutinee) => None,
            Term::Field(e, name) if is_state(*e) => Some(name.clone()),
            _ => return None,
        };
        let first = NO_NODE + self.graphs.iter().map(|g| g.tags.len()).sum::<usize>();
        let tags: Vec<Name> = branches.iter().map(|b| b.tag.clone()).collect();
        let jumps = vec![Exits::new(); tags.len()];
        let mut steps = Steps { head: 0, tags, field, first, jumps };
        // The next step must be stated wherever the loop iterates.
        let (mut said, mut mentioned) = (0, 0);
        for id in below(code, *body) {
            match code.term(id) {
                Term::Var(name, _) if name == again => mentioned += 1,
                Term::App(f, x) if matches!(code.term(*f), Term::Var(name, _) if name == again) => {
                    said += usize::from(steps.next(code, *x).is_some());
                }
                _ => {}
            }
        }
        if said == 0 || said < mentioned {
            return None;
        }
        let begins = match self.application.map(|id| code.term(id)) {
            // A composition is given something else than its stages are.
            Some(Term::App(f, x)) if matches!(code.term(*f), Term::Fix { .. } | Term::Var(..)) => {
                steps.next(code, *x)?
            }
            _ => return None,
        };
        let head = self.node(NodeShape::Loop, vec![turns.to_string()], from.clone());
        let Some((node, _)) = head.first().cloned() else { return Some(head) };
        steps.head = node;
        steps.jumps[begins].extend(head);
        let (graph, drawn) = (self.graphs.len(), self.picture.edges.len());
        self.graphs.push(steps);
        let names = vec![(again.clone(), Bound::Steps(graph)), (state.clone(), Bound::Data)];
        let exits = self.with(names, |draw| {
            let mut exits = Exits::new();
            for (i, Branch { binder, body, .. }) in branches.iter().enumerate() {
                let from = vec![(first + i, String::new())];
                let names = binder.iter().map(|b| (b.clone(), Bound::Data)).collect();
                exits.extend(draw.with(names, |draw| draw.eval(*body, from)));
            }
            exits
        });
        // INVARIANT: it was pushed above, and inner ones are taken off where they are pushed.
        let steps = self.graphs.pop()?;
        let resolved = |edges: Exits| -> Exits {
            let to = |(node, label): (usize, String)| match steps.step_of(node) {
                Some(step) if label.is_empty() => steps.leading_to(step),
                Some(step) => steps.leading_to(step).into_iter().map(|(n, _)| (n, label.clone())).collect(),
                None => vec![(node, label)],
            };
            edges.into_iter().flat_map(to).collect()
        };
        for (from, to, label) in self.picture.edges.split_off(drawn) {
            match steps.step_of(from) {
                Some(_) => self.link(resolved(vec![(from, label)]), to),
                None => self.picture.edges.push((from, to, label)),
            }
        }
        // A step of an inner loop may continue with the outer one.
        for jumps in self.graphs.iter_mut().flat_map(|g| &mut g.jumps) {
            *jumps = resolved(std::mem::take(jumps));
        }
        Some(resolved(exits))
    }

    /// Returns the lines of an agent whose loop calls one model and its tools, and the terms of the loop.
    fn agent(&self, again: &Name, step: TermId) -> Option<(Vec<String>, Vec<TermId>)> {
        let code = self.code;
        let terms = below(code, step);
        let mut oracle: Option<&ModelParams> = None;
        // The calls of a reply are part of the turn.
        let calls: Vec<TermId> = terms.iter().copied().filter(|id| code.receives_calls(*id)).collect();
        let more = |name: &Name| {
            calls.iter().any(|id| match code.term(*id) {
                Term::Fix { body, .. } => matches!(code.term(*body), Term::Abs(abs) if abs.param == *name),
                _ => false,
            })
        };
        for id in &terms {
            match code.term(*id) {
                Term::Fix { .. } if calls.contains(id) => {}
                Term::Recv(Recv::Data(params)) if params.waiting => {}
                // A second question is not one agent's loop.
                Term::Llm(..) | Term::Recv(Recv::Data(_)) if oracle.is_some() => return None,
                Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => oracle = Some(params),
                Term::Fix { .. } | Term::Unknown(_) | Term::Each(..) | Term::Recv(Recv::Code) => return None,
                Term::App(f, _) => match code.term(*f) {
                    Term::Var(name, slot)
                        if name == again || more(name) || matches!(slot, Slot::Global(_)) => {}
                    Term::Fix { .. } if calls.contains(f) => {}
                    Term::Llm(..) | Term::Tool(_) | Term::Abs(_) => {}
                    _ => return None,
                },
                _ => {}
            }
        }
        let oracle = oracle?;
        let known = |id: &TermId| !matches!(code.term(*id), Term::Tool(t) if !oracle.tools.contains(t));
        terms.iter().all(known).then(|| (self.model(oracle), terms))
    }
}

/// A term with all its parts.
fn below(code: &Code, id: TermId) -> Vec<TermId> {
    let mut found = vec![id];
    let mut next = 0;
    while let Some(id) = found.get(next) {
        let children = code.term(*id).children();
        found.extend(children);
        next += 1;
    }
    found
}

impl Picture {
    /// Returns the picture as a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        let mut out = String::from("flowchart TD\n");
        let text = |t: &str| -> String {
            let clipped: String = t.chars().take(120).collect();
            let mut safe = String::new();
            for c in clipped.chars() {
                match c {
                    '"' => safe.push_str("#quot;"),
                    '<' => safe.push_str("#lt;"),
                    '>' => safe.push_str("#gt;"),
                    '\n' | '\r' => safe.push(' '),
                    c => safe.push(c),
                }
            }
            safe
        };
        for (i, node) in self.nodes.iter().enumerate() {
            let label = node.lines.iter().map(|l| text(l)).collect::<Vec<_>>().join("<br/>");
            let (open, close) = match node.look {
                NodeShape::End => ("([\"", "\"])"),
                NodeShape::Model => ("[\"", "\"]"),
                NodeShape::Tool => ("(\"", "\")"),
                NodeShape::Choice => ("{\"", "\"}"),
                NodeShape::Loop => ("{{\"", "\"}}"),
                NodeShape::Unknown => ("[/\"", "\"/]"),
            };
            let class = match node.mark {
                Mark::None => "",
                Mark::Open => ":::open",
                Mark::Refused => ":::refused",
            };
            out.push_str(&format!("  n{i}{open}{label}{close}{class}\n"));
        }
        for (from, to, label) in &self.edges {
            let label = if label.is_empty() { String::new() } else { format!("|\"{}\"|", text(label)) };
            out.push_str(&format!("  n{from} -->{label} n{to}\n"));
        }
        for (mark, class, stroke) in [(Mark::Open, "open", "#b8860b"), (Mark::Refused, "refused", "#b00020")]
        {
            if self.nodes.iter().any(|n| n.mark == mark) {
                out.push_str(&format!("  classDef {class} stroke:{stroke},stroke-width:3px\n"));
            }
        }
        out
    }

    /// In Graphviz' language.
    pub fn dot(&self) -> String {
        let mut out = String::from("digraph entail {\n  rankdir=TB;\n  node [fontname=\"sans-serif\"];\n");
        let text = |t: &str| -> String {
            let clipped: String = t.chars().take(120).map(|c| if c.is_control() { ' ' } else { c }).collect();
            clipped.replace('\\', "\\\\").replace('"', "\\\"")
        };
        for (i, node) in self.nodes.iter().enumerate() {
            let label = node.lines.iter().map(|l| text(l)).collect::<Vec<_>>().join("\\n");
            let shape = match node.look {
                NodeShape::End => "oval",
                NodeShape::Model => "box",
                NodeShape::Tool => "box, style=rounded",
                NodeShape::Choice => "diamond",
                NodeShape::Loop => "hexagon",
                NodeShape::Unknown => "box, style=dashed",
            };
            let mark = match node.mark {
                Mark::None => "",
                Mark::Open => ", color=\"#b8860b\", penwidth=2",
                Mark::Refused => ", color=\"#b00020\", penwidth=2",
            };
            out.push_str(&format!("  n{i} [label=\"{label}\", shape={shape}{mark}];\n"));
        }
        for (from, to, label) in &self.edges {
            let label =
                if label.is_empty() { String::new() } else { format!(" [label=\"{}\"]", text(label)) };
            out.push_str(&format!("  n{from} -> n{to}{label};\n"));
        }
        out.push_str("}\n");
        out
    }
}
