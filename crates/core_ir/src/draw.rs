//! Terms as pictures: who is asked in which order, with loops, bounds and tools.
//!
//! Entry point: [`draw`], which gives a [`Picture`]; [`Picture::mermaid`] and [`Picture::dot`] write it.
//!
//! A call of a model is a box with its name, its model and the tools it is offered; a call of a tool is rounded; a decision is a
//! diamond; a loop is a hexagon with its bound, and what calls it again leads back to it. An agent whose loop only
//! calls tools is one box. What evaluates without asking anybody is not drawn.
//!
//! Invariant: at most [`MOST`] nodes; what is beyond is one node that says so.

use crate::{Abs, AbsSugar, Bound, Code, Name, Term, TermId};

/// Nodes of a picture at most.
pub const MOST: usize = 1_000;

/// What a node looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Where it begins and ends.
    End,
    /// A model is asked.
    Model,
    /// A tool is called.
    Tool,
    /// A decision.
    Choice,
    /// A loop.
    Loop,
    /// What is not known.
    Unknown,
}

/// Nodes and edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    /// The nodes: look and lines of text.
    pub nodes: Vec<(Look, Vec<String>)>,
    /// The edges: from, to, label.
    pub edges: Vec<(usize, usize, String)>,
}

/// Where the next node hangs: nodes with the label of the edge from each.
type Exits = Vec<(usize, String)>;

struct Draw<'c> {
    code: &'c Code,
    /// Whether drawing a term would show anything.
    visible: Vec<bool>,
    picture: Picture,
    /// Self references with the node of their loop, outer ones first.
    loops: Vec<(Name, usize)>,
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
            Term::App(f, _) => matches!(code.term(*f), Term::Var(..)),
            _ => false,
        };
        let below =
            || term.children().into_iter().any(|c| visible.get(c.0 as usize).copied().unwrap_or(false));
        visible[id.0 as usize] = own || below();
    }
    let mut draw = Draw { code, visible, picture: Picture::default(), loops: Vec::new() };
    let begin = draw.node(Look::End, vec!["input".into()], Vec::new());
    let exits = draw.call(code.root(), begin);
    if !exits.is_empty() {
        draw.node(Look::End, vec!["result".into()], exits);
    }
    draw.picture
}

impl Draw<'_> {
    /// Adds a node behind the exits; gives its own exit.
    fn node(&mut self, look: Look, lines: Vec<String>, from: Exits) -> Exits {
        let full = self.picture.nodes.len() >= MOST;
        if full && self.picture.nodes.last().is_none_or(|(_, l)| l.first().is_none_or(|t| t != "…")) {
            self.picture.nodes.push((Look::Unknown, vec!["…".into()]));
        } else if !full {
            self.picture.nodes.push((look, lines));
        }
        let node = self.picture.nodes.len() - 1;
        self.link(from, node);
        vec![(node, String::new())]
    }

    fn link(&mut self, from: Exits, to: usize) {
        for (node, label) in from {
            let edge = (node, to, label);
            if self.picture.edges.len() < 4 * MOST && !self.picture.edges.contains(&edge) {
                self.picture.edges.push(edge);
            }
        }
    }

    fn shows(&self, id: TermId) -> bool {
        self.visible.get(id.0 as usize).copied().unwrap_or(false)
    }

    /// What evaluating a term asks.
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
            Term::Abs(_) | Term::Llm(..) | Term::Tool(_) | Term::Fix { .. } => from,
            Term::App(f, x) => {
                let from = self.eval(*x, from);
                self.call(*f, from)
            }
            Term::Let { bindings, body, .. } => {
                let mut from = from;
                for (_, e) in bindings {
                    from = self.eval(*e, from);
                }
                self.eval(*body, from)
            }
            Term::If(test, yes, no, _) => {
                let from = self.eval(*test, from);
                if !self.shows(*yes) && !self.shows(*no) {
                    return from;
                }
                let choice = self.node(Look::Choice, vec!["?".into()], from);
                let arm =
                    |label: &str| choice.iter().map(|(n, _)| (*n, label.to_string())).collect::<Exits>();
                let mut exits = self.eval(*yes, arm("yes"));
                exits.extend(self.eval(*no, arm("no")));
                exits
            }
            Term::Case { scrutinee, branches, default } => {
                let from = self.eval(*scrutinee, from);
                let bodies = branches.iter().map(|b| (b.tag.to_string(), b.body));
                let bodies: Vec<(String, TermId)> =
                    bodies.chain(default.map(|d| ("otherwise".to_string(), d))).collect();
                if bodies.iter().all(|(_, b)| !self.shows(*b)) {
                    return from;
                }
                let choice = self.node(Look::Choice, vec!["which".into()], from);
                let mut exits = Vec::new();
                for (tag, body) in bodies {
                    let arm = choice.iter().map(|(n, _)| (*n, tag.clone())).collect();
                    exits.extend(self.eval(body, arm));
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
            Term::Try { body, handler, .. } => {
                let mut exits = self.eval(*body, from.clone());
                if self.shows(*handler) {
                    let caught = from.into_iter().map(|(n, _)| (n, "error".to_string())).collect();
                    exits.extend(self.eval(*handler, caught));
                }
                exits
            }
            Term::Unknown(why) => self.node(Look::Unknown, vec![why.to_string()], from),
            Term::Recv(_) => self.node(Look::Model, vec!["a model".into()], from),
            Term::Fail(e) => {
                let from = self.eval(*e, from);
                self.node(Look::End, vec!["fails".into()], from);
                Vec::new()
            }
            other => other.children().into_iter().fold(from, |from, child| self.eval(child, from)),
        }
    }

    /// What calling a function asks.
    fn call(&mut self, id: TermId, from: Exits) -> Exits {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.call_inner(id, from))
    }

    fn call_inner(&mut self, id: TermId, from: Exits) -> Exits {
        let code = self.code;
        match code.term(id) {
            Term::Var(name, _) => match self.loops.iter().rev().find(|(n, _)| n == name) {
                Some((_, head)) => {
                    let head = *head;
                    self.link(from, head);
                    Vec::new()
                }
                None => from,
            },
            Term::Abs(abs) if abs.sugar == AbsSugar::Compose => {
                let stages = code.stages(id).unwrap_or_default();
                stages.into_iter().fold(from, |from, stage| self.call(stage, from))
            }
            Term::Abs(abs) => match code.term(abs.body) {
                // The function of the inputs, or of several arguments.
                Term::Abs(_) | Term::Fix { .. } | Term::Llm(..) | Term::Mem(..) => self.call(abs.body, from),
                _ => self.eval(abs.body, from),
            },
            Term::Llm(..) => {
                let lines = self.model(id);
                self.node(Look::Model, lines, from)
            }
            Term::Tool(tool) => {
                let name = code.tool(*tool).name.to_string();
                self.node(Look::Tool, vec![name], from)
            }
            Term::Fix { bound, body, .. } => self.fixpoint(*bound, *body, from),
            Term::Guard { term, .. } => self.call(*term, from),
            Term::Mem(_, e) | Term::Check(_, _, e) => self.call(*e, from),
            Term::If(..) | Term::Case { .. } | Term::App(..) | Term::Let { .. } => self.eval(id, from),
            Term::Unknown(why) => self.node(Look::Unknown, vec![why.to_string()], from),
            _ => from,
        }
    }

    /// The lines of a model: its purpose, its name, its tools.
    fn model(&self, id: TermId) -> Vec<String> {
        let Term::Llm(_, params) = self.code.term(id) else { return Vec::new() };
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

    fn fixpoint(&mut self, bound: Bound, body: TermId, from: Exits) -> Exits {
        let code = self.code;
        let turns = match bound {
            Bound::Finite(n) => format!("at most {n} times"),
            Bound::Infinite => "no bound".to_string(),
        };
        let Term::Abs(Abs { param, body: inner, .. }) = code.term(body) else {
            return self.node(Look::Loop, vec![turns], from);
        };
        if let Some(mut lines) = self.agent(*inner) {
            lines.push(turns);
            return self.node(Look::Model, lines, from);
        }
        let head = self.node(Look::Loop, vec![turns], from);
        let Some((node, _)) = head.first().cloned() else { return head };
        self.loops.push((param.clone(), node));
        let exits = self.call(*inner, head);
        self.loops.pop();
        exits
    }

    /// The lines of an agent whose loop only calls tools.
    fn agent(&self, step: TermId) -> Option<Vec<String>> {
        let code = self.code;
        let Term::Abs(Abs { body, .. }) = code.term(step) else { return None };
        let Term::Let { bindings, body, .. } = code.term(*body) else { return None };
        let [(_, think)] = &bindings[..] else { return None };
        let Term::App(oracle, _) = code.term(*think) else { return None };
        let Term::Case { branches, default: None, .. } = code.term(*body) else { return None };
        let plain = |body: TermId| match code.term(body) {
            Term::Let { bindings, .. } => match &bindings[..] {
                [(_, call)] => {
                    matches!(code.term(*call), Term::App(f, _) if matches!(code.term(*f), Term::Tool(_)))
                }
                _ => false,
            },
            Term::Var(..) => true,
            Term::Prim(..) => true,
            _ => false,
        };
        let simple = branches.iter().all(|b| plain(b.body)) && matches!(code.term(*oracle), Term::Llm(..));
        simple.then(|| self.model(*oracle))
    }
}

impl Picture {
    /// As a Mermaid flowchart.
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
        for (i, (look, lines)) in self.nodes.iter().enumerate() {
            let label = lines.iter().map(|l| text(l)).collect::<Vec<_>>().join("<br/>");
            let (open, close) = match look {
                Look::End => ("([\"", "\"])"),
                Look::Model => ("[\"", "\"]"),
                Look::Tool => ("(\"", "\")"),
                Look::Choice => ("{\"", "\"}"),
                Look::Loop => ("{{\"", "\"}}"),
                Look::Unknown => ("[/\"", "\"/]"),
            };
            out.push_str(&format!("  n{i}{open}{label}{close}\n"));
        }
        for (from, to, label) in &self.edges {
            let label = if label.is_empty() { String::new() } else { format!("|\"{}\"|", text(label)) };
            out.push_str(&format!("  n{from} -->{label} n{to}\n"));
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
        for (i, (look, lines)) in self.nodes.iter().enumerate() {
            let label = lines.iter().map(|l| text(l)).collect::<Vec<_>>().join("\\n");
            let shape = match look {
                Look::End => "oval",
                Look::Model => "box",
                Look::Tool => "box, style=rounded",
                Look::Choice => "diamond",
                Look::Loop => "hexagon",
                Look::Unknown => "box, style=dashed",
            };
            out.push_str(&format!("  n{i} [label=\"{label}\", shape={shape}];\n"));
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
