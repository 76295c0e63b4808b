//! Abstract labels: what a label is at least, and where everything that may be in it comes from.

use core_ir::{Label, Lattice, Name};
use diagnostics::Span;
use std::collections::HashMap;
use std::rc::Rc;

/// Cause of a taint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The result of a tool.
    Tool(Name),
    /// The value stored under a key.
    Key(Name),
    /// A label written in the program.
    Written,
    /// A label that the program computes.
    Computed,
    /// The new label of an `endorse` or `declassify`.
    Reclassified,
    /// Code that a model writes, and whatever comes out of it.
    Generated,
    /// The bound of a parameter or key, which labels its refusal.
    Bound(Name),
    /// The bound of a tool's control, which labels refusals of arguments that data chose.
    Control(Name),
    /// The label of a `try`.
    Try,
    /// The input, of whose label nothing is assumed here.
    Input,
    /// More places than are told apart.
    Many,
}

/// A place that a taint comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Where.
    pub span: Span,
    /// What.
    pub cause: Cause,
}

impl Origin {
    /// Returns true if the origin contributes data, and not only the label of an event.
    pub(super) fn is_data(&self) -> bool {
        !matches!(
            self.cause,
            Cause::Input | Cause::Bound(_) | Cause::Control(_) | Cause::Try | Cause::Reclassified
        )
    }

    /// In words: `the result of the tool `web``.
    pub fn describe(&self) -> String {
        match &self.cause {
            Cause::Tool(name) => format!("the result of the tool `{name}`"),
            Cause::Key(name) => format!("what the store holds as `{name}`"),
            Cause::Written => "a label that is written here".into(),
            Cause::Computed => "a label that is computed here".into(),
            Cause::Reclassified => "what is reclassified here".into(),
            Cause::Generated => "code that a model writes here".into(),
            Cause::Bound(name) => format!("the bound of `{name}`, which labels its refusal"),
            Cause::Control(name) => {
                format!("the control bound of `{name}`, which labels the refusal of an argument")
            }
            Cause::Try => "errors are caught here, at the labels of all parts of what is called".into(),
            Cause::Input => "the input".into(),
            Cause::Many => "several places".into(),
        }
    }
}

/// A set of origins, each with the label it brings; an index into [`Taints`]. The default is the empty set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(super) struct Taint(u32);

impl Taint {
    pub(super) const NONE: Taint = Taint(0);
}

/// An unknown label `l` with `lo ⊑ l ⊑ ⨆ hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Range {
    pub lo: Label,
    pub hi: Taint,
    /// A conversation whose label `l` flows to, now and as long as it is open: what is received from a
    /// conversation may decide what is sent to it. Zero if none is known.
    pub under: u32,
}

impl Range {
    pub(super) const BOTTOM: Range = Range { lo: Label::BOTTOM, hi: Taint::NONE, under: 0 };

    /// Of no known relation to a conversation.
    pub(super) fn new(lo: Label, hi: Taint) -> Range {
        Range { lo, hi, under: 0 }
    }

    /// Returns the bound that holds of both ranges, of their join or of either.
    fn under_both(self, other: Range) -> u32 {
        if self.hi == Taint::NONE {
            other.under
        } else if other.hi == Taint::NONE || self.under == other.under {
            self.under
        } else {
            0
        }
    }
}

type Elements = Rc<[(u32, Label)]>;

/// More origins than this in one set are not told apart.
const MAX_ORIGINS: usize = 64;

/// The tables behind [`Taint`].
pub(super) struct Taints {
    pub lattice: Lattice,
    pub top: Label,
    origins: Vec<Origin>,
    origin_index: HashMap<Origin, u32>,
    sets: Vec<Elements>,
    /// The join of the labels of each set, without and with those of [`Cause::Input`].
    labels: Vec<(Label, Label)>,
    index: HashMap<Elements, u32>,
    joins: HashMap<(Taint, Taint), Taint>,
}

impl Taints {
    pub(super) fn new(mut lattice: Lattice) -> Taints {
        let top = lattice.top();
        let mut taints = Taints {
            lattice,
            top,
            origins: Vec::new(),
            origin_index: HashMap::new(),
            sets: Vec::new(),
            labels: Vec::new(),
            index: HashMap::new(),
            joins: HashMap::new(),
        };
        taints.set(Vec::new());
        taints
    }

    fn origin(&mut self, origin: Origin) -> u32 {
        if let Some(i) = self.origin_index.get(&origin) {
            return *i;
        }
        let i = self.origins.len() as u32;
        self.origins.push(origin.clone());
        self.origin_index.insert(origin, i);
        i
    }

    /// Sorted by origin, one label each, none ⊥.
    fn set(&mut self, mut elements: Vec<(u32, Label)>) -> Taint {
        let many = elements.iter().find(|e| self.origins[e.0 as usize].cause == Cause::Many).map(|e| e.0);
        if many.is_some() || elements.len() > MAX_ORIGINS {
            elements = self.taken_together(elements, many);
        }
        let elements: Elements = elements.into();
        if let Some(i) = self.index.get(&elements) {
            return Taint(*i);
        }
        let (mut known, mut all) = (Label::BOTTOM, Label::BOTTOM);
        for (origin, label) in elements.iter() {
            all = self.lattice.join(all, *label);
            if self.origins[*origin as usize].cause != Cause::Input {
                known = self.lattice.join(known, *label);
            }
        }
        let i = self.sets.len() as u32;
        self.sets.push(elements.clone());
        self.labels.push((known, all));
        self.index.insert(elements, i);
        Taint(i)
    }

    /// A set whose origins are not told apart, but for the variable of the input. Later additions are
    /// not told apart either: sets only grow from round to round, so the rounds end.
    fn taken_together(&mut self, elements: Vec<(u32, Label)>, many: Option<u32>) -> Vec<(u32, Label)> {
        let is_input = |e: &(u32, Label)| self.origins[e.0 as usize].cause == Cause::Input;
        let (mut kept, all): (Vec<_>, Vec<_>) = elements.into_iter().partition(is_input);
        let label = all.iter().fold(Label::BOTTOM, |l, e| self.lattice.join(l, e.1));
        let Some((first, _)) = all.first() else { return kept };
        // The first is kept for its place.
        let span = self.origins[*first as usize].span;
        let one = many.unwrap_or_else(|| self.origin(Origin { span, cause: Cause::Many }));
        kept.push((one, label));
        kept.sort_unstable();
        kept
    }

    /// One origin with what it brings.
    pub(super) fn one(&mut self, span: Span, cause: Cause, label: Label) -> Taint {
        if label == Label::BOTTOM {
            return Taint::NONE;
        }
        let origin = self.origin(Origin { span, cause });
        self.set(vec![(origin, label)])
    }

    pub(super) fn union(&mut self, a: Taint, b: Taint) -> Taint {
        if a == b || b == Taint::NONE {
            return a;
        }
        if a == Taint::NONE {
            return b;
        }
        let key = (a.min(b), a.max(b));
        if let Some(c) = self.joins.get(&key) {
            return *c;
        }
        let mut all: Vec<(u32, Label)> = self.sets[a.0 as usize].to_vec();
        for (origin, label) in self.sets[b.0 as usize].clone().iter() {
            match all.binary_search_by_key(origin, |e| e.0) {
                Ok(i) => all[i].1 = self.lattice.join(all[i].1, *label),
                Err(i) => all.insert(i, (*origin, *label)),
            }
        }
        let c = self.set(all);
        self.joins.insert(key, c);
        c
    }

    /// Returns the join of the set's labels if the input is public and trusted.
    pub(super) fn label(&self, t: Taint) -> Label {
        self.labels[t.0 as usize].0
    }

    /// Returns the join of the set's labels, whatever the input's label is.
    pub(super) fn label_with_input(&self, t: Taint) -> Label {
        self.labels[t.0 as usize].1
    }

    /// The origins with what each brings.
    pub(super) fn origins(&self, t: Taint) -> impl Iterator<Item = (&Origin, Label)> {
        self.sets[t.0 as usize].iter().map(|(o, l)| (&self.origins[*o as usize], *l))
    }

    /// The part of a set that the input brings.
    pub(super) fn inputs(&mut self, t: Taint) -> Taint {
        let is_input = |e: &&(u32, Label)| self.origins[e.0 as usize].cause == Cause::Input;
        let elements = self.sets[t.0 as usize].iter().filter(is_input).copied().collect();
        self.set(elements)
    }

    /// Every label of the set by a function that distributes over joins.
    fn map(&mut self, t: Taint, mut f: impl FnMut(&mut Lattice, Label) -> Label) -> Taint {
        let mut out = Vec::new();
        for (origin, label) in self.sets[t.0 as usize].clone().iter() {
            let label = f(&mut self.lattice, *label);
            if label != Label::BOTTOM {
                out.push((*origin, label));
            }
        }
        self.set(out)
    }

    /// Restricts a set that is known to flow to a bound.
    pub(super) fn within(&mut self, t: Taint, bound: Label) -> Taint {
        if self.lattice.flows(self.label_with_input(t), bound) {
            return t;
        }
        self.map(t, |l, label| {
            // Axis by axis, because a label may break the bound in one only.
            let integrity = |l: &mut Lattice, x| l.reclassify(x, Label::BOTTOM);
            let secrecy = |l: &mut Lattice, x| l.reclassify(Label::BOTTOM, x);
            let (i, i_bound) = (integrity(l, label), integrity(l, bound));
            let (s, s_bound) = (secrecy(l, label), secrecy(l, bound));
            let i = if l.flows(i, i_bound) { i } else { i_bound };
            let s = if l.flows(s, s_bound) { s } else { s_bound };
            l.join(i, s)
        })
    }

    /// The elements of `a` whose origin with that label is not covered by `b`.
    pub(super) fn without(&mut self, a: Taint, b: Taint) -> Taint {
        let covered = self.sets[b.0 as usize].clone();
        let mut out = Vec::new();
        for (origin, label) in self.sets[a.0 as usize].clone().iter() {
            let known = covered.binary_search_by_key(origin, |e| e.0).map(|i| covered[i].1);
            if !known.is_ok_and(|k| self.lattice.flows(*label, k)) {
                out.push((*origin, *label));
            }
        }
        self.set(out)
    }

    pub(super) fn join(&mut self, a: Range, b: Range) -> Range {
        Range { lo: self.lattice.join(a.lo, b.lo), hi: self.union(a.hi, b.hi), under: a.under_both(b) }
    }

    /// One of the two.
    pub(super) fn either(&mut self, a: Range, b: Range) -> Range {
        Range { lo: self.meet(a.lo, b.lo), hi: self.union(a.hi, b.hi), under: a.under_both(b) }
    }

    /// One of two labels of conversations, each of which is marked as its own.
    pub(super) fn either_conversation(&mut self, a: Range, b: Range) -> Range {
        Range { under: if a.under == b.under { a.under } else { 0 }, ..self.either(a, b) }
    }

    /// A lower bound of both.
    pub(super) fn meet(&self, a: Label, b: Label) -> Label {
        if self.lattice.flows(a, b) {
            a
        } else if self.lattice.flows(b, a) {
            b
        } else {
            Label::BOTTOM
        }
    }

    /// `⟨a←, b→⟩`.
    pub(super) fn reclassify(&mut self, integrity: Range, secrecy: Range) -> Range {
        let i = self.map(integrity.hi, |l, x| l.reclassify(x, Label::BOTTOM));
        let s = self.map(secrecy.hi, |l, x| l.reclassify(Label::BOTTOM, x));
        let hi = self.union(i, s);
        Range::new(self.lattice.reclassify(integrity.lo, secrecy.lo), hi)
    }

    /// Returns true if every label of the range flows to the bound, given a public and trusted input.
    pub(super) fn surely_flows(&self, r: Range, bound: Label) -> bool {
        self.lattice.flows(self.label(r.hi), bound)
    }

    /// Returns true if no label of the range flows to the bound.
    pub(super) fn never_flows(&self, r: Range, bound: Label) -> bool {
        !self.lattice.flows(r.lo, bound)
    }
}
