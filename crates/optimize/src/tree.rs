//! Terms in a form that can be rewritten: every binder has a name of its own, so nothing is captured, and the
//! stages of `>>` and the sides of `|` stand side by side.
//!
//! Invariant: nodes are never changed; a rewrite makes new ones. Every binder occurs once below a root.

use core_ir::{Abs, AbsSugar, Branch, Builder, Code, Data, LetSugar, Name, Prim, Recv, Slot, Term, TermId};
use diagnostics::Span;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// A term, or sugar that is kept.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// A `let` has one definition here.
    Term(Term),
    /// `s1 >> … >> sn`.
    Compose(Vec<TermId>),
    /// `l | r`.
    Both(TermId, TermId),
}

/// A direct subterm, with the name that is bound for it.
pub(crate) type Child = (TermId, Option<Name>);

/// Returns true if a name of [`Tree::free`] belongs to the prelude.
pub(crate) fn is_global(name: &Name) -> bool {
    name.starts_with(GLOBAL)
}

/// Marks what a binder's own name is made of, and globals in sets of free variables.
const OWN: char = '\u{1}';
const GLOBAL: char = '\u{2}';

pub(crate) struct Tree<'c> {
    pub(crate) code: &'c Code,
    nodes: Vec<Node>,
    spans: Vec<Span>,
    free: Vec<Option<Rc<BTreeSet<Name>>>>,
    next: u32,
    /// True if labels of functions may be lowered somewhere. Such functions run under a lower program counter
    /// than the one under which they were created.
    pub(crate) reclassifies: bool,
    /// True if the code samples, so that the number of preceding `par`s is part of its requests.
    pub(crate) samples: bool,
    /// True if the code inspects the message of an error, so that the wording is part of its behavior.
    pub(crate) reads_messages: bool,
}

fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, f)
}

impl<'c> Tree<'c> {
    pub(crate) fn new(code: &'c Code) -> (Tree<'c>, TermId) {
        let reclassifies =
            code.reaches(|t| matches!(t, Term::Endorse(..) | Term::Declassify(..) | Term::Recv(Recv::Code)));
        let samples = code.reaches(|t| matches!(t, Term::Choose(..) | Term::Recv(Recv::Code)));
        let mut tree = Tree {
            code,
            nodes: Vec::new(),
            spans: Vec::new(),
            free: Vec::new(),
            next: 0,
            reclassifies,
            samples,
            reads_messages: false,
        };
        let root = tree.read(code.root(), &mut Vec::new());
        tree.reads_messages = code.reaches(|t| matches!(t, Term::Recv(Recv::Code))) || tree.uses_a_message();
        (tree, root)
    }

    /// Returns true if a handler uses the message bound to it. (Those of the prelude do not.)
    fn uses_a_message(&mut self) -> bool {
        (0..self.nodes.len()).any(|i| match &self.nodes[i] {
            Node::Term(Term::Try { name, handler, .. }) => {
                let (name, handler) = (name.clone(), *handler);
                self.mentions(handler, &name)
            }
            _ => false,
        })
    }

    pub(crate) fn add(&mut self, node: Node, span: Span) -> TermId {
        self.nodes.push(node);
        self.spans.push(span);
        self.free.push(None);
        TermId(self.nodes.len() as u32 - 1)
    }

    pub(crate) fn node(&self, id: TermId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The term of a node that is no kept sugar.
    pub(crate) fn term(&self, id: TermId) -> Option<&Term> {
        match self.node(id) {
            Node::Term(t) => Some(t),
            _ => None,
        }
    }

    pub(crate) fn span(&self, id: TermId) -> Span {
        self.spans[id.0 as usize]
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A name that nothing else has.
    pub(crate) fn fresh(&mut self, base: &str) -> Name {
        self.next += 1;
        let base = base.split(OWN).next().unwrap_or("");
        Name::from(format!("{base}{OWN}{}", self.next))
    }

    pub(crate) fn var(&mut self, name: Name, span: Span) -> TermId {
        self.add(Node::Term(Term::Var(name, Slot::Local(0))), span)
    }

    pub(crate) fn let_in(&mut self, name: Name, value: TermId, body: TermId, span: Span) -> TermId {
        let term = Term::Let { bindings: vec![(name, value)], body, sugar: LetSugar::Plain };
        self.add(Node::Term(term), span)
    }

    fn read(&mut self, id: TermId, scope: &mut Vec<(Name, Name)>) -> TermId {
        deep(|| self.read_inner(id, scope))
    }

    fn read_inner(&mut self, id: TermId, scope: &mut Vec<(Name, Name)>) -> TermId {
        let (code, span) = (self.code, self.code.span(id));
        if let Some(stages) = code.stages(id) {
            let stages = stages.into_iter().map(|s| self.read(s, scope)).collect();
            return self.add(Node::Compose(stages), span);
        }
        if let Some((l, r)) = code.par_pair(id) {
            let (l, r) = (self.read(l, scope), self.read(r, scope));
            return self.add(Node::Both(l, r), span);
        }
        let term = match code.term(id) {
            Term::Var(name, Slot::Global(i)) => Term::Var(name.clone(), Slot::Global(*i)),
            Term::Var(name, _) => {
                let own = scope.iter().rev().find(|(n, _)| n == name).map_or(name, |(_, own)| own);
                Term::Var(own.clone(), Slot::Local(0))
            }
            Term::Let { bindings, body, sugar } => {
                let before = scope.len();
                let mut read = Vec::with_capacity(bindings.len());
                for (name, e) in bindings {
                    let e = self.read(*e, scope);
                    let own = self.fresh(name);
                    scope.push((name.clone(), own.clone()));
                    read.push((own, e));
                }
                let mut at = self.read(*body, scope);
                scope.truncate(before);
                for (name, e) in read.into_iter().rev() {
                    let term = Term::Let { bindings: vec![(name, e)], body: at, sugar: *sugar };
                    at = self.add(Node::Term(term), span);
                }
                return at;
            }
            Term::Abs(abs) => {
                let (own, body) = self.under(Some(&abs.param), abs.body, scope);
                let param = own.unwrap_or_else(|| abs.param.clone());
                Term::Abs(Abs { param, body, captures: Box::new([]), sugar: AbsSugar::Plain, ..abs.clone() })
            }
            Term::Case { scrutinee, branches, default } => Term::Case {
                scrutinee: self.read(*scrutinee, scope),
                branches: branches
                    .iter()
                    .map(|b| {
                        let (binder, body) = self.under(b.binder.as_ref(), b.body, scope);
                        Branch { tag: b.tag.clone(), binder, body }
                    })
                    .collect(),
                default: default.map(|d| self.read(d, scope)),
            },
            Term::Try { label, body, catches, name, handler } => {
                let (label, body) = (self.read(*label, scope), self.read(*body, scope));
                let (own, handler) = self.under(Some(name), *handler, scope);
                Term::Try {
                    label,
                    body,
                    catches: *catches,
                    name: own.unwrap_or_else(|| name.clone()),
                    handler,
                }
            }
            other => other.clone().map_children(&mut |c| self.read(c, scope)),
        };
        self.add(Node::Term(term), span)
    }

    /// A subterm in the scope of a binder, with the binder's own name.
    fn under(
        &mut self,
        name: Option<&Name>,
        body: TermId,
        scope: &mut Vec<(Name, Name)>,
    ) -> (Option<Name>, TermId) {
        let own = name.map(|n| self.fresh(n));
        scope.extend(name.cloned().zip(own.clone()));
        let body = self.read(body, scope);
        if name.is_some() {
            scope.pop();
        }
        (own, body)
    }

    /// The direct subterms, each with the name that is bound for it.
    pub(crate) fn kids(&self, id: TermId) -> Vec<Child> {
        let term = match self.node(id) {
            Node::Compose(stages) => return stages.iter().map(|s| (*s, None)).collect(),
            Node::Both(l, r) => return vec![(*l, None), (*r, None)],
            Node::Term(term) => term,
        };
        let mut kids: Vec<Child> = term.children().into_iter().map(|c| (c, None)).collect();
        match term {
            Term::Abs(abs) => kids[0].1 = Some(abs.param.clone()),
            Term::Let { bindings, .. } => kids[1].1 = Some(bindings[0].0.clone()),
            Term::Try { name, .. } => kids[2].1 = Some(name.clone()),
            Term::Case { branches, .. } => {
                for (kid, b) in kids[1..].iter_mut().zip(branches) {
                    kid.1.clone_from(&b.binder);
                }
            }
            _ => {}
        }
        kids
    }

    /// Replaces the subterms of a node, in the order of [`Tree::kids`].
    pub(crate) fn with_kids(&mut self, id: TermId, kids: &[TermId]) -> TermId {
        let mut next = kids.iter().copied();
        let node = match self.node(id).clone() {
            Node::Compose(_) => Node::Compose(kids.to_vec()),
            Node::Both(l, r) => Node::Both(next.next().unwrap_or(l), next.next().unwrap_or(r)),
            Node::Term(term) => Node::Term(term.map_children(&mut |c| next.next().unwrap_or(c))),
        };
        self.add(node, self.span(id))
    }

    /// The variables that are free in a term; globals are marked.
    pub(crate) fn free(&mut self, id: TermId) -> Rc<BTreeSet<Name>> {
        if let Some(known) = &self.free[id.0 as usize] {
            return known.clone();
        }
        let set = deep(|| match self.term(id) {
            Some(Term::Var(name, Slot::Global(_))) => {
                Rc::new(BTreeSet::from([Name::from(format!("{GLOBAL}{name}"))]))
            }
            Some(Term::Var(name, _)) => Rc::new(BTreeSet::from([name.clone()])),
            _ => {
                let kids = self.kids(id);
                let mut all: Option<Rc<BTreeSet<Name>>> = None;
                for (kid, binder) in kids {
                    let mut own = self.free(kid);
                    if let Some(name) = binder.filter(|n| own.contains(n)) {
                        Rc::make_mut(&mut own).remove(&name);
                    }
                    all = Some(match all {
                        None => own,
                        Some(a) if own.is_subset(&a) => a,
                        Some(mut a) => {
                            Rc::make_mut(&mut a).extend(own.iter().cloned());
                            a
                        }
                    });
                }
                all.unwrap_or_default()
            }
        });
        self.free[id.0 as usize] = Some(set.clone());
        set
    }

    pub(crate) fn mentions(&mut self, id: TermId, name: &Name) -> bool {
        self.free(id).contains(name)
    }

    /// Returns true if the term's free variables all belong to the prelude.
    pub(crate) fn is_closed(&mut self, id: TermId) -> bool {
        self.free(id).iter().all(is_global)
    }

    /// Returns true if the parts of the term are the body of a function, which captures their free variables.
    pub(crate) fn is_closure(&self, id: TermId) -> bool {
        matches!(self.node(id), Node::Compose(_) | Node::Both(..) | Node::Term(Term::Abs(_)))
    }

    /// Returns the number of uses of a variable, and whether one is inside a function or a part that runs
    /// separately.
    pub(crate) fn uses(&mut self, id: TermId, name: &Name) -> (usize, bool) {
        if !self.mentions(id, name) {
            return (0, false);
        }
        if matches!(self.term(id), Some(Term::Var(..))) {
            return (1, false);
        }
        let captured = self.is_closure(id);
        let kids = self.kids(id);
        let (mut n, mut inside) = (0, captured);
        for (kid, _) in kids {
            let (m, i) = deep(|| self.uses(kid, name));
            n += m;
            inside |= i;
        }
        (n, inside)
    }

    /// `id[name := new]`; where `new` is no variable or scalar there must be one use.
    pub(crate) fn replace(&mut self, id: TermId, name: &Name, new: TermId) -> TermId {
        if !self.mentions(id, name) {
            return id;
        }
        if let Some(Term::Var(..)) = self.term(id) {
            return new;
        }
        let kids = self.kids(id);
        let kids: Vec<TermId> = kids.into_iter().map(|(k, _)| deep(|| self.replace(k, name, new))).collect();
        self.with_kids(id, &kids)
    }

    /// Evaluating it does nothing, cannot fail, and gives a value.
    pub(crate) fn is_pure(&self, id: TermId) -> bool {
        let all = |ids: &[TermId]| ids.iter().all(|e| self.is_pure(*e));
        let Node::Term(term) = self.node(id) else { return true };
        deep(|| match term {
            Term::Var(..) | Term::Lit(_) | Term::Abs(_) | Term::Tool(_) | Term::Tag(_, None) => true,
            Term::Record(fields) | Term::Args(_, fields) => fields.iter().all(|(_, e)| self.is_pure(*e)),
            Term::List(es) => all(es),
            Term::Pair(a, b) => all(&[*a, *b]),
            Term::Tag(_, Some(e)) | Term::Fix { body: e, .. } => self.is_pure(*e),
            Term::Prim(p, es) => {
                let total = [
                    Prim::IsFn,
                    Prim::IsArray,
                    Prim::IsRecord,
                    Prim::IsStr,
                    Prim::IsNum,
                    Prim::IsBool,
                    Prim::IsNull,
                ];
                total.contains(p) && all(es)
            }
            Term::Llm(p, _) => matches!(self.term(*p), Some(Term::Lit(Data::Str(_)))),
            Term::Let { bindings, body, sugar: LetSugar::Plain } => {
                bindings.iter().all(|(_, e)| self.is_pure(*e)) && self.is_pure(*body)
            }
            _ => false,
        })
    }

    /// A function whose value is labeled with the program counter, wherever it is evaluated.
    pub(crate) fn is_function(&self, id: TermId) -> bool {
        match self.node(id) {
            Node::Compose(_) | Node::Both(..) => true,
            Node::Term(Term::Abs(_) | Term::Tool(_) | Term::Var(_, Slot::Global(_)) | Term::Llm(..)) => {
                self.is_pure(id)
            }
            Node::Term(Term::Fix { body, .. }) => self.is_function(*body),
            Node::Term(_) => false,
        }
    }

    /// A function as [`Tree::is_function`] that does with its argument the same as with its argument read at
    /// the label of the function. A tool does not: the bounds of its parameters are compared with the label
    /// that the argument came with.
    pub(crate) fn reads_its_argument(&mut self, id: TermId) -> bool {
        match self.node(id).clone() {
            Node::Compose(_) | Node::Both(..) => true,
            // A function inside that captured it may be made to run under a lower program counter.
            Node::Term(Term::Abs(abs)) => !self.reclassifies || !self.uses(abs.body, &abs.param).1,
            Node::Term(Term::Var(_, Slot::Global(_))) => !self.reclassifies,
            Node::Term(Term::Llm(..)) => self.is_pure(id),
            Node::Term(Term::Fix { body, .. }) => match self.term(body) {
                Some(Term::Abs(step)) => {
                    let step = step.body;
                    self.reads_its_argument(step)
                }
                _ => false,
            },
            Node::Term(_) => false,
        }
    }

    /// Returns true if evaluating the term provably leaves the conversation alone: it calls only models and
    /// tools, no functions.
    pub(crate) fn is_silent(&self, id: TermId) -> bool {
        match self.node(id) {
            Node::Compose(_) | Node::Both(..) | Node::Term(Term::Abs(_)) => true,
            Node::Term(Term::Send(..) | Term::Recv(_) | Term::Clear | Term::Each(..)) => false,
            Node::Term(Term::App(f, x)) => {
                matches!(self.term(*f), Some(Term::Tool(_) | Term::Llm(..)))
                    && self.is_silent(*f)
                    && self.is_silent(*x)
            }
            Node::Term(term) => term.children().into_iter().all(|c| deep(|| self.is_silent(c))),
        }
    }

    /// Returns true if the term uses keys of a store.
    pub(crate) fn uses_store(&self, id: TermId, store: core_ir::StoreId) -> bool {
        if let Some(Term::Recall(_, at) | Term::Remember(_, at, _)) = self.term(id)
            && at.is_none_or(|(s, _)| s == store)
        {
            return true;
        }
        self.kids(id).into_iter().any(|(k, _)| deep(|| self.uses_store(k, store)))
    }

    /// Equal but for the names of variables.
    pub(crate) fn same(&self, a: TermId, other: &Tree<'_>, b: TermId) -> bool {
        self.same_in(a, other, b, &mut HashMap::new())
    }

    fn same_in(&self, a: TermId, other: &Tree<'_>, b: TermId, names: &mut HashMap<Name, Name>) -> bool {
        let equal = match (self.node(a), other.node(b)) {
            (Node::Compose(x), Node::Compose(y)) => x.len() == y.len(),
            (Node::Both(..), Node::Both(..)) => true,
            (Node::Term(Term::Var(x, Slot::Global(_))), Node::Term(Term::Var(y, Slot::Global(_)))) => x == y,
            (Node::Term(Term::Var(_, Slot::Global(_))), _)
            | (_, Node::Term(Term::Var(_, Slot::Global(_)))) => false,
            (Node::Term(Term::Var(x, _)), Node::Term(Term::Var(y, _))) => names.get(x).unwrap_or(x) == y,
            (Node::Term(x), Node::Term(y)) => {
                let worded = self.reads_messages || other.reads_messages;
                shape(x, worded) == shape(y, worded) && self.refers(x) == other.refers(y)
            }
            _ => false,
        };
        if !equal {
            return false;
        }
        self.kids(a).into_iter().zip(other.kids(b)).all(|((x, n), (y, m))| {
            let (Some(n), Some(m)) = (&n, &m) else {
                return n == m && deep(|| self.same_in(x, other, y, names));
            };
            names.insert(n.clone(), m.clone());
            deep(|| self.same_in(x, other, y, names))
        })
    }

    /// The declarations that a term names by number.
    fn refers(&self, term: &Term) -> (Vec<core_ir::ToolDecl>, Vec<core_ir::StoreDecl>) {
        let nowhere = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
        let tools = match term {
            Term::Tool(t) | Term::Args(t, _) => vec![*t],
            Term::Llm(_, p) => p.tools.clone(),
            Term::Recv(Recv::Data(p)) => p.tools.clone(),
            _ => Vec::new(),
        };
        let stores = match term {
            Term::Mem(s, _) | Term::Recall(_, Some((s, _))) | Term::Remember(_, Some((s, _)), _) => vec![*s],
            _ => Vec::new(),
        };
        let tools = tools
            .into_iter()
            .map(|t| core_ir::ToolDecl { span: nowhere, ..(**self.code.tool(t)).clone() })
            .collect();
        let stores = stores
            .into_iter()
            .map(|s| core_ir::StoreDecl { span: nowhere, ..(**self.code.store(s)).clone() })
            .collect();
        (tools, stores)
    }

    /// The term as code again, with the names of the source where they capture nothing.
    pub(crate) fn finish(&mut self, root: TermId) -> Option<Code> {
        let mut b = Builder::new();
        for tool in &self.code.tools {
            b.tool((**tool).clone());
        }
        for store in &self.code.stores {
            b.store((**store).clone());
        }
        let id = self.write(&mut b, root, &mut HashMap::new());
        let code = b.finish(id, self.code.globals()).ok()?;
        // A key must still be that of the same store.
        let keys = |code: &Code| -> HashSet<(Name, core_ir::StoreId)> {
            code.iter()
                .filter_map(|(_, t)| match t {
                    Term::Recall(n, Some((s, _))) | Term::Remember(n, Some((s, _)), _) => {
                        Some((n.clone(), *s))
                    }
                    _ => None,
                })
                .collect()
        };
        keys(&code).is_subset(&keys(self.code)).then_some(code)
    }

    fn write(&mut self, b: &mut Builder, id: TermId, names: &mut HashMap<Name, Name>) -> TermId {
        deep(|| self.write_inner(b, id, names))
    }

    fn write_inner(&mut self, b: &mut Builder, id: TermId, names: &mut HashMap<Name, Name>) -> TermId {
        let span = self.span(id);
        let term = match self.node(id).clone() {
            Node::Compose(stages) => {
                let stages = stages.into_iter().map(|s| self.write(b, s, names)).collect();
                return b.compose(stages, span);
            }
            Node::Both(l, r) => {
                let (l, r) = (self.write(b, l, names), self.write(b, r, names));
                return b.par_pair(l, r, span);
            }
            Node::Term(Term::Var(name, Slot::Global(_))) => return b.var(name, span),
            Node::Term(Term::Var(name, _)) => {
                let shown = names.get(&name).unwrap_or(&name).clone();
                return b.var(shown, span);
            }
            Node::Term(Term::Let { sugar: LetSugar::Plain, .. }) => {
                // A chain of definitions becomes one `let`.
                let mut bindings = Vec::new();
                let mut at = id;
                while let Some(Term::Let { bindings: one, body, sugar: LetSugar::Plain }) =
                    self.term(at).cloned()
                {
                    let (name, e) = one[0].clone();
                    let e = self.write(b, e, names);
                    let shown = self.choose(&name, body, names);
                    names.insert(name, shown.clone());
                    bindings.push((shown, e));
                    at = body;
                }
                let body = self.write(b, at, names);
                return b.let_in(bindings, body, span);
            }
            Node::Term(term) => term,
        };
        let kids = self.kids(id);
        let mut written = Vec::with_capacity(kids.len());
        let mut chosen = Vec::new();
        for (kid, binder) in kids {
            if let Some(name) = binder {
                let shown = self.choose(&name, kid, names);
                names.insert(name.clone(), shown.clone());
                chosen.push((name, shown));
            }
            written.push(self.write(b, kid, names));
        }
        let shown = |name: &Name| {
            chosen.iter().find(|(n, _)| n == name).map_or_else(|| name.clone(), |(_, s)| s.clone())
        };
        let mut next = written.into_iter();
        let mut term = term.map_children(&mut |c| next.next().unwrap_or(c));
        match &mut term {
            Term::Abs(abs) => abs.param = shown(&abs.param),
            Term::Let { bindings, .. } => bindings.iter_mut().for_each(|(n, _)| *n = shown(n)),
            Term::Try { name, .. } => *name = shown(name),
            Term::Case { branches, .. } => {
                for b in branches {
                    b.binder = b.binder.as_ref().map(shown);
                }
            }
            _ => {}
        }
        b.add(term, span)
    }

    /// A name for a binder that captures nothing in its scope.
    fn choose(&mut self, own: &Name, scope: TermId, names: &HashMap<Name, Name>) -> Name {
        let base = own.split(OWN).next().unwrap_or("x").to_string();
        let free = self.free(scope);
        let taken = |candidate: &str| {
            free.iter().filter(|n| *n != own).any(|n| match n.strip_prefix(GLOBAL) {
                Some(global) => global == candidate,
                None => &**names.get(n).unwrap_or(n) == candidate,
            })
        };
        let used = free.contains(own);
        if !(taken(&base) || used && base == "_") {
            return Name::from(base);
        }
        let stem = base.trim_start_matches('$').trim_start_matches('_');
        let stem = if stem.is_empty() { "x" } else { stem };
        let mut n = 1;
        loop {
            let candidate = format!("${stem}{n}");
            if !taken(&candidate) {
                return Name::from(candidate);
            }
            n += 1;
        }
    }
}

/// Returns a term without its subterms, bound names and referenced declarations. With `worded`, the wording
/// of messages is kept.
fn shape(term: &Term, worded: bool) -> Term {
    let nothing = |n: &mut Name| *n = Name::from("");
    let mut t = term.clone().map_children(&mut |_| TermId(0));
    match &mut t {
        Term::Abs(abs) => {
            nothing(&mut abs.param);
            abs.ty = None;
        }
        Term::Let { bindings, .. } => bindings.iter_mut().for_each(|(n, _)| nothing(n)),
        Term::Try { name, .. } => nothing(name),
        Term::Check(name, ..) if !worded => nothing(name),
        Term::Case { branches, .. } => {
            for b in branches {
                b.binder.iter_mut().for_each(nothing);
            }
        }
        Term::Fix { origin, .. } => *origin = None,
        Term::Tool(t) | Term::Args(t, _) => *t = core_ir::ToolId(0),
        Term::Mem(s, _) => *s = core_ir::StoreId(0),
        Term::Recall(_, at) | Term::Remember(_, at, _) => *at = None,
        Term::Llm(_, p) => std::sync::Arc::make_mut(p).tools.clear(),
        Term::Recv(Recv::Data(p)) => std::sync::Arc::make_mut(p).tools.clear(),
        _ => {}
    }
    t
}
