//! Labels: the join-semilattices of integrity × secrecy.
//!
//! Entry point: [`Lattice`]. A lattice of labels is a file in `label/` and a line in the register,
//! `lattices!`.
//!
//! Invariant: ⊥ is [`Label::BOTTOM`] in every lattice.
//! Invariant: what a label joins, compares, reads and writes does not depend on whether origins are kept
//! ([`Lattice::keep_origins`]).
//!
//! Source: `docs/calculus.md` §1.

mod bits;
mod levels;
mod origin;
mod sets;

pub use origin::{Chain, Hop, Step, What};

use crate::{Data, Name, Places};
use bits::BitLattice;
use origin::Origins;
use sets::Sets;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// An element of the run's [`Lattice`]. Meaningful only together with it.
///
/// For lattices whose labels are sets of bits the number is the set itself; otherwise it is an index into the
/// lattice's table. Zero is always ⊥.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Label(#[cfg(not(entail_unlabeled))] u32);

// `entail_unlabeled` is for `scripts/bench-labels` alone: a label that takes no space and restricts nothing,
// to measure what labels cost.
#[cfg(not(entail_unlabeled))]
impl Label {
    #[inline]
    const fn of(number: u32) -> Label {
        Label(number)
    }

    #[inline]
    const fn number(self) -> u32 {
        self.0
    }
}

#[cfg(entail_unlabeled)]
impl Label {
    const fn of(_: u32) -> Label {
        Label()
    }

    const fn number(self) -> u32 {
        0
    }
}

impl Label {
    /// ⊥: trusted and public.
    pub const BOTTOM: Label = Label::of(0);
}

/// Description of a lattice, supplied by the file that implements it.
struct Definition {
    /// Name of the lattice in policies.
    name: &'static str,
    /// Example of a label of the lattice, for messages.
    example: &'static str,
    /// Words that a label may list, for lattices whose labels are lists of words.
    words: &'static [&'static str],
    algebra: fn(&Principals) -> Algebra,
}

/// The register of lattices: what each is called in code, and what its file says.
macro_rules! lattices {
    ($($(#[$doc:meta])* $kind:ident = $definition:path,)*) => {
        /// Which of the shipped lattices a run uses.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
        pub enum LatticeKind {
            $($(#[$doc])* $kind,)*
        }

        impl LatticeKind {
            /// All of them, with the names that policies call them by.
            pub const ALL: [(&str, LatticeKind); [$(LatticeKind::$kind),*].len()] =
                [$(($definition.name, LatticeKind::$kind)),*];

            fn definition(self) -> Definition {
                match self {
                    $(LatticeKind::$kind => $definition,)*
                }
            }
        }
    };
}

lattices! {
    /// Subsets of `["U", "S"]`: untrusted, secret.
    #[default]
    TwoAxis = bits::TWO_AXIS,
    /// Subsets of `["U", "S", "E"]`: the same with the endorsed bit, which counts as integrity.
    Endorsed = bits::ENDORSED,
    /// `{sources: […] or "*", readers: […] or "*"}`.
    SourcesReaders = sets::SOURCES_READERS,
    /// `["U"]` and one of `["internal"]`, `["confidential"]`, `["secret"]`, each above the one before.
    Levels = levels::LEVELS,
}

impl LatticeKind {
    /// The lattice of that name.
    pub fn named(name: &str) -> Option<LatticeKind> {
        LatticeKind::ALL.iter().find(|(n, _)| *n == name).map(|(_, kind)| *kind)
    }

    /// The name that policies call it by.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Example of a label of the lattice, for messages.
    pub fn example(self) -> &'static str {
        self.definition().example
    }

    /// The words that labels of it are lists of; none if they are something else.
    pub fn words(self) -> &'static [&'static str] {
        self.definition().words
    }
}

/// Names that labels of sources and readers may have, without a list any name; and what values say of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Principals {
    /// Permitted readers.
    pub readers: Option<BTreeSet<Name>>,
    /// Permitted sources.
    pub sources: Option<BTreeSet<Name>>,
    /// The values that name principals, such as their addresses.
    pub values: BTreeMap<Name, Principal>,
    /// The labels of places.
    pub places: Places,
}

/// A principal that values name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Its name in labels.
    pub name: Name,
    /// True if what comes from it is trusted.
    pub trusted: bool,
}

/// A value of a principal, by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Name of the principal.
    pub name: Name,
    /// Kind of the value, such as `email`, if the table says so.
    pub key: Option<Name>,
    /// The value.
    pub value: Name,
}

impl Principals {
    /// The sources that data names: a text, or a list of texts. Data that names nobody may come from anyone.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Principal, Principals, Stated};
    /// let mut principals = Principals::default();
    /// principals.values.insert("a@example.org".into(), Principal { name: "alice".into(), trusted: false });
    /// let by = |who: &str| principals.source(&Data::str(who)).sources;
    /// assert_eq!(by("a@example.org"), Some(vec!["alice".into()]));
    /// // Nobody else is known, and no name is a value.
    /// assert_eq!((by("eve@example.org"), by("alice")), (None, None));
    /// ```
    pub fn source(&self, data: &Data) -> Stated {
        let name = |text: &str| {
            let principal = self.named(text, self.sources.as_ref())?;
            Some((!principal.trusted).then_some(principal.name))
        };
        let sources = texts(data).filter(|texts| !texts.is_empty()).and_then(|texts| {
            let names: Option<Vec<Option<Name>>> = texts.iter().map(|t| name(t)).collect();
            Some(names?.into_iter().flatten().collect())
        });
        Stated { sources, readers: None }
    }

    /// The readers that data names: a text, or a list of texts. Data that names nobody adds no reader.
    pub fn readers(&self, data: &Data) -> Vec<Name> {
        let texts = texts(data).unwrap_or_default();
        texts.iter().filter_map(|t| self.named(t, self.readers.as_ref())).map(|p| p.name).collect()
    }

    /// The readers that data names, if each of its texts names one: a text, or a list of texts; `null` names
    /// none. `None` if a text names nobody, or the data is something else.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Data, Principal, Principals};
    /// let mut principals = Principals::default();
    /// principals.values.insert("a@example.org".into(), Principal { name: "alice".into(), trusted: false });
    /// assert_eq!(principals.all_readers(&Data::str("a@example.org")), Some(vec!["alice".into()]));
    /// assert_eq!(principals.all_readers(&Data::str("eve@example.org")), None);
    /// assert_eq!(principals.all_readers(&Data::Null), Some(Vec::new()));
    /// ```
    pub fn all_readers(&self, data: &Data) -> Option<Vec<Name>> {
        if matches!(data, Data::Null) {
            return Some(Vec::new());
        }
        texts(data)?.iter().map(|t| Some(self.named(t, self.readers.as_ref())?.name)).collect()
    }

    /// The label of the places that data names: a text, or a list of texts. At no place, data may come from
    /// anyone, and is as secret as what is at any place. `None` if data names no place at all.
    pub fn place(&self, lattice: &mut Lattice, data: &Data) -> Option<Label> {
        let texts = texts(data).filter(|texts| !texts.is_empty())?;
        let mut label = Label::BOTTOM;
        for text in texts {
            let at = match self.places.label(text) {
                Some(spec) => lattice.resolve_or_top(spec),
                None => self.nowhere(lattice),
            };
            label = lattice.join(label, at);
        }
        Some(label)
    }

    /// The label of data that is at no place.
    pub fn nowhere(&self, lattice: &mut Lattice) -> Label {
        let mut label = Label::BOTTOM;
        for spec in self.places.labels() {
            let at = lattice.resolve_or_top(spec);
            label = lattice.join(label, at);
        }
        let top = lattice.top();
        lattice.reclassify(top, label)
    }

    /// The principal that a text names. A name is a value itself only if no value is declared for it.
    fn named(&self, text: &str, listed: Option<&BTreeSet<Name>>) -> Option<Principal> {
        if let Some(principal) = self.values.get(text) {
            return Some(principal.clone());
        }
        let has_values = || self.values.values().any(|p| &*p.name == text);
        let known = match listed {
            Some(names) => names.contains(text) && !has_values(),
            None => self.values.is_empty(),
        };
        known.then(|| Principal { name: text.into(), trusted: false })
    }
}

/// The texts of which data consists: one, or a list of them.
fn texts(data: &Data) -> Option<Vec<&str>> {
    match data {
        Data::Str(text) => Some(vec![text]),
        Data::List(items) => items.iter().map(Data::as_str).collect(),
        _ => None,
    }
}

/// Label that the sender attaches to data: its sources and its permitted readers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Sources; empty if the data are trusted, `None` if anyone.
    pub sources: Option<Vec<Name>>,
    /// Permitted readers; `None` if everybody.
    pub readers: Option<Vec<Name>>,
}

/// A label as a program text or signature states it, before a lattice is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelSpec {
    /// The flow words of tool signatures: `untrusted` and `secret`. In the sources × readers lattice
    /// untrusted is every source and secret is no reader.
    Axes {
        /// True if the data may come from any source.
        untrusted: bool,
        /// True if no reader outside may see the data.
        secret: bool,
    },
    /// A label value of the run's lattice, such as `["U"]`.
    Exact(Data),
}

impl LabelSpec {
    /// ⊥: trusted and public.
    pub const BOTTOM: LabelSpec = LabelSpec::Axes { untrusted: false, secret: false };
    /// ⊤: from anyone and without readers; as a bound, "no restriction".
    pub const TOP: LabelSpec = LabelSpec::Axes { untrusted: true, secret: true };
}

/// One of the two things that a label is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Axis {
    Integrity,
    Secrecy,
}

/// A part of a label that has an origin of its own: a bit, a source, or who may read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Component {
    axis: Axis,
    /// Name in labels.
    name: String,
    /// The label in words.
    words: String,
}

/// Implementation of the joins and comparisons of a lattice.
#[derive(Clone, Debug)]
enum Algebra {
    /// Sets of bits, joined by union.
    Bits(&'static dyn BitLattice),
    /// Sources and readers.
    Sets(Box<Sets>),
}

impl Algebra {
    fn join(&mut self, a: u32, b: u32) -> u32 {
        match self {
            Algebra::Bits(_) => a | b,
            Algebra::Sets(sets) => sets.join(a, b),
        }
    }

    #[inline]
    fn flows(&self, a: u32, b: u32) -> bool {
        match self {
            Algebra::Bits(_) => a & !b == 0,
            Algebra::Sets(sets) => sets.flows(a, b),
        }
    }

    fn top(&mut self) -> u32 {
        match self {
            Algebra::Bits(lattice) => lattice.top(),
            Algebra::Sets(sets) => sets.top(),
        }
    }

    fn reclassify(&mut self, integrity: u32, secrecy: u32) -> u32 {
        match self {
            Algebra::Bits(lattice) => (integrity & lattice.integrity()) | (secrecy & !lattice.integrity()),
            Algebra::Sets(sets) => sets.reclassify(integrity, secrecy),
        }
    }

    fn read(&mut self, data: &Data) -> Option<u32> {
        match self {
            Algebra::Bits(lattice) => lattice.read(data),
            Algebra::Sets(sets) => sets.read(data),
        }
    }

    fn write(&self, label: u32) -> Data {
        match self {
            Algebra::Bits(lattice) => lattice.write(label),
            Algebra::Sets(sets) => sets.write(label),
        }
    }

    fn components(&self, label: u32) -> Vec<Component> {
        match self {
            Algebra::Bits(lattice) => {
                let parts = lattice.parts(label).into_iter();
                let axis = |bit| if bit & lattice.integrity() != 0 { Axis::Integrity } else { Axis::Secrecy };
                parts
                    .map(|(bit, name, words)| Component {
                        axis: axis(bit),
                        name: name.into(),
                        words: words.into(),
                    })
                    .collect()
            }
            Algebra::Sets(sets) => sets.components(label),
        }
    }
}

/// The lattice of a run: joins, compares, reads and writes labels.
///
/// # Examples
/// ```
/// use core_ir::{Data, Label, Lattice, LatticeKind};
/// let mut l = Lattice::new(LatticeKind::TwoAxis);
/// let u = l.label_of(&Data::list([Data::str("U")])).unwrap();
/// let s = l.label_of(&Data::list([Data::str("S")])).unwrap();
/// let us = l.join(u, s);
/// assert!(l.flows(u, us) && !l.flows(us, u));
/// assert_eq!(l.show(us), r#"["U","S"]"#);
/// ```
#[derive(Clone, Debug)]
pub struct Lattice {
    kind: LatticeKind,
    /// True if labels are bit sets joined by union, so that a join needs no table.
    plain: bool,
    algebra: Algebra,
    /// Origins of labels, if they are kept. Labels are then indices into this table.
    origins: Option<Box<Origins>>,
}

impl Lattice {
    /// A lattice of the given kind, whose labels may name anybody.
    pub fn new(kind: LatticeKind) -> Lattice {
        Lattice::with_principals(kind, &Principals::default())
    }

    /// Creates a lattice of the given kind. It has no labels that name other principals.
    pub fn with_principals(kind: LatticeKind, principals: &Principals) -> Lattice {
        let algebra = (kind.definition().algebra)(principals);
        Lattice { kind, plain: matches!(algebra, Algebra::Bits(_)), algebra, origins: None }
    }

    /// Which lattice this is.
    pub fn kind(&self) -> LatticeKind {
        self.kind
    }

    /// The label without where it came from, as a number of the algebra.
    #[inline]
    fn base(&self, label: Label) -> u32 {
        match &self.origins {
            None => label.number(),
            Some(origins) => origins.base(label.number()),
        }
    }

    /// A label of the algebra, of which no origin is known.
    fn unmarked(&mut self, base: u32) -> Label {
        match &mut self.origins {
            None => Label::of(base),
            Some(origins) => Label::of(origins.unmarked(base)),
        }
    }

    /// ⊤: from anyone, without readers.
    pub fn top(&mut self) -> Label {
        let top = self.algebra.top();
        self.unmarked(top)
    }

    /// `a ⊔ b`.
    #[inline]
    pub fn join(&mut self, a: Label, b: Label) -> Label {
        if cfg!(entail_unlabeled) || a == b || b == Label::BOTTOM {
            return a;
        }
        if a == Label::BOTTOM {
            return b;
        }
        if self.plain { Label::of(a.number() | b.number()) } else { self.join_interned(a, b) }
    }

    fn join_interned(&mut self, a: Label, b: Label) -> Label {
        Label::of(match &mut self.origins {
            None => self.algebra.join(a.number(), b.number()),
            Some(origins) => origins.join(&mut self.algebra, a.number(), b.number()),
        })
    }

    /// `a ⊑ b`: data labeled `a` may flow to where `b` is allowed.
    #[inline]
    pub fn flows(&self, a: Label, b: Label) -> bool {
        if cfg!(entail_unlabeled) || a == b || a == Label::BOTTOM {
            return true;
        }
        if self.plain {
            a.number() & !b.number() == 0
        } else {
            self.algebra.flows(self.base(a), self.base(b))
        }
    }

    /// Returns true if two labels are equal, ignoring their origins.
    #[inline]
    pub fn same(&self, a: Label, b: Label) -> bool {
        a == b || (self.origins.is_some() && self.base(a) == self.base(b))
    }

    /// `⟨a←, b→⟩`: the integrity of `a` with the secrecy of `b`.
    pub fn reclassify(&mut self, integrity: Label, secrecy: Label) -> Label {
        let (a, b) = (self.base(integrity), self.base(secrecy));
        let base = self.algebra.reclassify(a, b);
        Label::of(match &mut self.origins {
            None => base,
            Some(origins) => origins.reclassify(base, integrity.number(), secrecy.number()),
        })
    }

    /// Returns true if the integrity of a label is not that of ⊥: the text or the decision is not trusted.
    pub fn is_untrusted(&mut self, label: Label) -> bool {
        let integrity = self.reclassify(label, Label::BOTTOM);
        !self.same(integrity, Label::BOTTOM)
    }

    /// `toLabel`: the label that a value of the program denotes, if it denotes one.
    pub fn label_of(&mut self, data: &Data) -> Option<Label> {
        let base = self.algebra.read(data)?;
        Some(self.unmarked(base))
    }

    /// `fromLabel`: the value that denotes a label.
    pub fn data_of(&self, label: Label) -> Data {
        self.algebra.write(self.base(label))
    }

    /// Returns the label that a signature states; `None` if an exact label is not in this lattice.
    #[inline]
    pub fn resolve(&mut self, spec: &LabelSpec) -> Option<Label> {
        match spec {
            LabelSpec::Axes { untrusted: false, secret: false } => Some(Label::BOTTOM),
            _ => self.resolve_any(spec),
        }
    }

    /// Returns the label that somebody states of data; ⊤ if it is not in this lattice, because it may be as
    /// high.
    #[inline]
    pub fn resolve_or_top(&mut self, spec: &LabelSpec) -> Label {
        match self.resolve(spec) {
            Some(label) => label,
            None => self.top(),
        }
    }

    fn resolve_any(&mut self, spec: &LabelSpec) -> Option<Label> {
        match spec {
            LabelSpec::Exact(data) => self.label_of(data),
            LabelSpec::Axes { untrusted, secret } => {
                let top = self.top();
                let integrity = if *untrusted { top } else { Label::BOTTOM };
                let secrecy = if *secret { top } else { Label::BOTTOM };
                Some(self.reclassify(integrity, secrecy))
            }
        }
    }

    /// Translates a label stated by a sender, who may know more principals than this lattice, into the
    /// lattice. The result is never lower than the stated label.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{LabelSpec, Lattice, LatticeKind, Stated};
    /// let said = Stated { sources: Some(vec![]), readers: Some(vec!["alice".into()]) };
    /// let two = Lattice::new(LatticeKind::TwoAxis);
    /// assert_eq!(two.in_terms(&said), LabelSpec::Axes { untrusted: false, secret: true });
    /// let mut names = Lattice::new(LatticeKind::SourcesReaders);
    /// let spec = names.in_terms(&said);
    /// let label = names.resolve(&spec).unwrap();
    /// assert_eq!(names.show(label), r#"{"sources":[],"readers":["alice"]}"#);
    /// ```
    pub fn in_terms(&self, said: &Stated) -> LabelSpec {
        match &self.algebra {
            Algebra::Bits(_) => LabelSpec::Axes {
                untrusted: said.sources.as_ref().is_none_or(|s| !s.is_empty()),
                secret: said.readers.is_some(),
            },
            Algebra::Sets(sets) => LabelSpec::Exact(sets.in_terms(said)),
        }
    }

    /// The label as it is written in programs.
    pub fn show(&self, label: Label) -> String {
        self.text(label).into_owned()
    }

    /// [`Lattice::show`], without making a text where there is one.
    pub fn text(&self, label: Label) -> Cow<'static, str> {
        let base = self.base(label);
        let text = match &self.algebra {
            Algebra::Bits(lattice) => lattice.text(base),
            Algebra::Sets(_) => None,
        };
        text.map_or_else(|| Cow::Owned(self.algebra.write(base).to_json().to_string()), Cow::Borrowed)
    }

    /// From here on labels keep where they come from: see [`Lattice::mark`] and [`Lattice::why`]. To be
    /// called before any label but ⊥ has been made.
    pub fn keep_origins(&mut self) {
        if !cfg!(entail_unlabeled) {
            self.plain = false;
            self.origins = Some(Box::default());
        }
    }

    /// Returns true if labels record their origins.
    #[inline]
    pub fn keeps_origins(&self) -> bool {
        self.origins.is_some()
    }

    /// Returns the label with a new step as its only origin: a step that depended on everything labeled
    /// `before` and itself added the label `own`. Without origins, returns the label unchanged and does not
    /// call `step`.
    #[inline]
    pub fn mark(&mut self, label: Label, before: Label, own: Label, step: impl FnOnce() -> Step) -> Label {
        match &mut self.origins {
            None => label,
            Some(origins) => {
                let [label, before, own] = [label, before, own].map(Label::number);
                Label::of(origins.mark(&mut self.algebra, label, before, own, step()))
            }
        }
    }

    /// Returns the origin of each component of the label, as far as it was kept.
    pub fn why(&self, label: Label) -> Vec<Chain> {
        match &self.origins {
            None => Vec::new(),
            Some(origins) => origins.why(&self.algebra, label.number()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_label(kind: LatticeKind) -> BoxedStrategy<Data> {
        let names = |pool: &'static [&'static str]| {
            proptest::sample::subsequence(pool, 0..=pool.len())
                .prop_map(|s| Data::list(s.into_iter().map(Data::str)))
        };
        match kind.words() {
            words @ [_, ..] => names(words).boxed(),
            [] => (
                prop_oneof![names(&["web", "mail", "user"]), Just(Data::str("*"))],
                prop_oneof![names(&["alice", "bob"]), Just(Data::str("*"))],
            )
                .prop_map(|(s, r)| Data::record([("sources".into(), s), ("readers".into(), r)]))
                .boxed(),
        }
    }

    fn any_three() -> impl Strategy<Value = (LatticeKind, Data, Data, Data)> {
        proptest::sample::select(LatticeKind::ALL.to_vec())
            .prop_flat_map(|(_, k)| (Just(k), any_label(k), any_label(k), any_label(k)))
    }

    /// A step of a request with this number, at this byte.
    fn step(n: u32) -> Step {
        let span = diagnostics::Span { file: diagnostics::FileId(0), start: n, end: n + 1 };
        let what = What::Tool(Name::from(format!("t{n}")));
        Step { what, span, request: Some((0, n)), place: Some([n, u32::MAX].into()) }
    }

    fn named(lattice: &mut Lattice, data: &Data, marked: bool, n: u32) -> Label {
        let label = lattice.label_of(data).unwrap();
        if marked { lattice.mark(label, Label::BOTTOM, label, || step(n)) } else { label }
    }

    proptest! {
        #[test]
        fn every_lattice_is_a_join_semilattice_that_factors((kind, a, b, c) in any_three(), origins: bool, marks: [bool; 3]) {
            let mut l = Lattice::new(kind);
            if origins {
                l.keep_origins();
            }
            let (a, b, c) =
                (named(&mut l, &a, marks[0], 1), named(&mut l, &b, marks[1], 2), named(&mut l, &c, marks[2], 3));
            let ab = l.join(a, b);
            prop_assert_eq!(ab, l.join(b, a));
            prop_assert_eq!(l.join(a, a), a);
            prop_assert_eq!(l.join(a, Label::BOTTOM), a);
            let bc = l.join(b, c);
            prop_assert_eq!(l.join(ab, c), l.join(a, bc));
            prop_assert_eq!(l.flows(a, b), l.same(ab, b));
            prop_assert!(l.flows(Label::BOTTOM, a));
            let top = l.top();
            prop_assert!(l.flows(a, top));
            prop_assert_eq!(l.reclassify(a, a), a);
            let mixed = l.reclassify(a, b);
            prop_assert_eq!(l.reclassify(mixed, c), l.reclassify(a, c));
            prop_assert_eq!(l.reclassify(c, mixed), l.reclassify(c, b));
        }

        #[test]
        fn a_label_written_and_read_is_the_same((kind, a, _b, _c) in any_three(), origins: bool) {
            let mut l = Lattice::new(kind);
            if origins {
                l.keep_origins();
            }
            let a = l.label_of(&a).unwrap();
            let data = l.data_of(a);
            prop_assert_eq!(l.label_of(&data), Some(a));
            prop_assert_eq!(l.show(a), data.to_json().to_string());
            prop_assert_eq!(l.same(a, Label::BOTTOM), a == Label::BOTTOM);
        }

        #[test]
        fn origins_change_no_label((kind, a, b, c) in any_three(), marks: [bool; 3]) {
            let (mut plain, mut kept) = (Lattice::new(kind), Lattice::new(kind));
            kept.keep_origins();
            let mut shown = Vec::new();
            for l in [&mut plain, &mut kept] {
                let [a, b, c] = [(&a, 0), (&b, 1), (&c, 2)].map(|(d, i)| named(l, d, marks[i], i as u32));
                let ab = l.join(a, b);
                let all = l.reclassify(ab, c);
                let marked = l.mark(all, ab, c, || step(9));
                shown.push([ab, all, marked].map(|x| l.show(x)).to_vec());
                shown.push(vec![format!("{}{}{}", l.flows(a, b), l.flows(marked, all), l.flows(all, marked))]);
            }
            prop_assert_eq!(&shown[0..2], &shown[2..4]);
        }

        /// Each component of a joined label names the steps of all that brought it, and no others.
        #[test]
        fn a_component_comes_from_those_that_have_it((kind, a, b, c) in any_three()) {
            let mut l = Lattice::new(kind);
            l.keep_origins();
            let all = [&a, &b, &c];
            let labels: Vec<Label> = (0..3).map(|i| named(&mut l, all[i], true, i as u32)).collect();
            let joined = labels.iter().fold(Label::BOTTOM, |x, y| l.join(x, *y));
            for chain in l.why(joined) {
                let mut tools: Vec<String> = Vec::new();
                for way in &chain.ways {
                    prop_assert_eq!(way.len(), 1);
                    tools.extend(way[0].what.name().map(String::from));
                }
                let has = |i: &usize| l.why(labels[*i]).iter().any(|c| c.component == chain.component);
                let expected: Vec<String> = (0..3).filter(has).map(|i| format!("t{i}")).collect();
                prop_assert_eq!(tools, expected);
            }
        }
    }

    #[test]
    fn every_lattice_has_a_name() {
        for (name, kind) in LatticeKind::ALL {
            assert_eq!((LatticeKind::named(name), kind.name()), (Some(kind), name));
            assert!(!kind.example().is_empty());
            // Each of the words says something of its own.
            let mut met: Vec<Label> = Vec::new();
            let mut l = Lattice::new(kind);
            for word in kind.words() {
                let label = l.label_of(&Data::list([Data::str(*word)])).unwrap();
                assert!(label != Label::BOTTOM && !met.contains(&label), "{name}: {word}");
                met.push(label);
            }
            let mut l = Lattice::new(kind);
            // The words of signatures mean something in each of them.
            let [u, s] = [(true, false), (false, true)]
                .map(|(untrusted, secret)| l.resolve(&LabelSpec::Axes { untrusted, secret }).unwrap());
            assert!(u != Label::BOTTOM && s != Label::BOTTOM && !l.flows(u, s) && !l.flows(s, u), "{name}");
        }
        assert_eq!(LatticeKind::named("three-axis"), None);
    }

    #[test]
    fn a_level_is_above_the_one_before() {
        let mut l = Lattice::new(LatticeKind::Levels);
        let label = |l: &mut Lattice, names: &[&str]| {
            l.label_of(&Data::list(names.iter().map(|n| Data::str(*n)))).unwrap()
        };
        let levels = ["public", "internal", "confidential", "secret"].map(|name| label(&mut l, &[name]));
        assert_eq!(levels[0], Label::BOTTOM);
        for (i, a) in levels.iter().enumerate() {
            for (j, b) in levels.iter().enumerate() {
                assert_eq!(l.flows(*a, *b), i <= j);
                assert_eq!(l.join(*a, *b), levels[i.max(j)]);
            }
        }
        let mixed = label(&mut l, &["internal", "U"]);
        assert_eq!(l.show(mixed), r#"["U","internal"]"#);
        assert_eq!(l.label_of(&Data::list([Data::str("S")])), None);
    }

    #[test]
    fn a_chain_leads_through_the_steps_between() {
        let mut l = Lattice::new(LatticeKind::TwoAxis);
        l.keep_origins();
        let u = l.label_of(&Data::list([Data::str("U")])).unwrap();
        let page = l.mark(u, Label::BOTTOM, u, || step(1));
        let reply = l.mark(page, page, Label::BOTTOM, || step(2));
        // An endorsed value has no origin; origins of later reads are kept again.
        let endorsed = l.reclassify(Label::BOTTOM, reply);
        assert_eq!((endorsed, l.why(endorsed)), (Label::BOTTOM, Vec::new()));
        let chains = l.why(reply);
        assert_eq!(chains.len(), 1);
        let way: Vec<u32> = chains[0].ways[0].iter().map(|hop| hop.span.start).collect();
        assert_eq!((way, chains[0].ways.len(), chains[0].more), (vec![2, 1], 1, false));
        // A set has a bound, and says when something is left out: the earliest stay.
        let many = (0..100).rev().fold(u, |all, n| {
            let one = l.mark(u, Label::BOTTOM, u, || step(n));
            l.join(all, one)
        });
        let chain = &l.why(many)[0];
        assert!(chain.more);
        assert_eq!(chain.ways[0][0].span.start, 0);
    }

    #[test]
    fn more_names_than_bits_are_compared_as_sets() {
        let mut l = Lattice::new(LatticeKind::SourcesReaders);
        let label = |l: &mut Lattice, names: &[String]| {
            let sources = Data::list(names.iter().map(|n| Data::str(&**n)));
            l.label_of(&Data::record([("sources".into(), sources)])).unwrap()
        };
        let names: Vec<String> = (0..sets::MAX_BITS as usize + 6).map(|i| format!("s{i}")).collect();
        let singles: Vec<Label> = names.chunks(1).map(|n| label(&mut l, n)).collect();
        let most = label(&mut l, &names[..names.len() - 1]);
        let all = label(&mut l, &names);
        let (last, first) = (singles[singles.len() - 1], singles[0]);
        assert!(l.flows(most, all) && !l.flows(all, most));
        assert!(l.flows(first, most) && !l.flows(last, most) && l.flows(last, all));
        assert_eq!(l.join(most, last), all);
        let any = l.label_of(&Data::record([("sources".into(), Data::str("*"))])).unwrap();
        assert!(l.flows(all, any) && !l.flows(any, all));
    }

    #[test]
    fn labels_name_principals_only() {
        let some = |names: &[&str]| Some(names.iter().map(|n| Name::from(*n)).collect::<BTreeSet<_>>());
        let principals =
            Principals { readers: some(&["alice", "bob"]), sources: some(&["web"]), ..Principals::default() };
        let mut l = Lattice::with_principals(LatticeKind::SourcesReaders, &principals);
        let names = |names: &[&str]| Data::list(names.iter().map(|n| Data::str(*n)));
        let label = |s: &[&str], r: &[&str]| {
            Data::record([("sources".into(), names(s)), ("readers".into(), names(r))])
        };
        assert!(l.label_of(&label(&["web"], &["alice"])).is_some());
        assert_eq!(l.label_of(&label(&["web"], &["mallory"])), None);
        assert_eq!(l.label_of(&label(&["mail"], &["alice"])), None);
        // A sender's statement is never lowered for lack of a known principal.
        let mut said = |sources: Option<&[&str]>, readers: Option<&[&str]>| {
            let list = |names: &[&str]| names.iter().map(|n| Name::from(*n)).collect();
            let spec = l.in_terms(&Stated { sources: sources.map(list), readers: readers.map(list) });
            let label = l.resolve(&spec).unwrap();
            l.show(label)
        };
        assert_eq!(said(Some(&[]), None), r#"{"sources":[],"readers":"*"}"#);
        assert_eq!(said(None, Some(&["bob"])), r#"{"sources":"*","readers":["bob"]}"#);
        assert_eq!(
            said(Some(&["web"]), Some(&["bob", "mallory"])),
            r#"{"sources":["web"],"readers":["bob"]}"#
        );
        assert_eq!(said(Some(&["web", "mail"]), Some(&["mallory"])), r#"{"sources":"*","readers":[]}"#);
    }

    #[test]
    fn invalid_labels_are_rejected() {
        let mut two = Lattice::new(LatticeKind::TwoAxis);
        assert_eq!(two.label_of(&Data::list([Data::str("E")])), None);
        assert_eq!(two.label_of(&Data::str("U")), None);
        assert_eq!(two.resolve(&LabelSpec::TOP), Some(two.top()));
    }
}
