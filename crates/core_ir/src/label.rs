//! Labels: the join-semilattices of integrity × secrecy.
//!
//! Source: `docs/calculus.md` §1.

use crate::{Data, Name};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// An element of the run's [`Lattice`]. Meaningful only together with it.
///
/// For the bit lattices the number is the set itself; for sources × readers it is an index into the
/// lattice's table. Zero is always ⊥.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Label(u32);

impl Label {
    /// ⊥: trusted and public.
    pub const BOTTOM: Label = Label(0);
}

/// Which of the shipped lattices a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum LatticeKind {
    /// Subsets of `["U", "S"]`: untrusted, secret.
    #[default]
    TwoAxis,
    /// Subsets of `["U", "S", "E"]`: the same with the endorsed bit, which counts as integrity.
    Endorsed,
    /// `{sources: […] or "*", readers: […] or "*"}`.
    SourcesReaders,
}

/// A label as a program text or signature states it, before a lattice is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelSpec {
    /// The flow words of tool signatures: `untrusted` and `secret`. In the sources × readers lattice
    /// untrusted is every source and secret is no reader.
    Axes {
        /// Whether the data may come from anyone.
        untrusted: bool,
        /// Whether the data is for nobody outside.
        secret: bool,
    },
    /// A label value of the run's lattice, such as `["U"]`.
    Exact(Data),
}

impl LabelSpec {
    /// ⊥: trusted and public.
    pub const BOTTOM: LabelSpec = LabelSpec::Axes { untrusted: false, secret: false };
    /// ⊤: from anyone and for nobody; as a bound, "no restriction".
    pub const TOP: LabelSpec = LabelSpec::Axes { untrusted: true, secret: true };
}

const UNTRUSTED: u32 = 1;
const SECRET: u32 = 2;
const ENDORSED: u32 = 4;

/// A set of names, or all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Names {
    All,
    Some(BTreeSet<Name>),
}

impl Names {
    fn union(&self, other: &Names) -> Names {
        match (self, other) {
            (Names::Some(a), Names::Some(b)) => Names::Some(a.union(b).cloned().collect()),
            _ => Names::All,
        }
    }

    fn intersection(&self, other: &Names) -> Names {
        match (self, other) {
            (Names::All, x) | (x, Names::All) => x.clone(),
            (Names::Some(a), Names::Some(b)) => Names::Some(a.intersection(b).cloned().collect()),
        }
    }

    fn includes(&self, other: &Names) -> bool {
        match (self, other) {
            (Names::All, _) => true,
            (Names::Some(_), Names::All) => false,
            (Names::Some(a), Names::Some(b)) => b.is_subset(a),
        }
    }

    fn from_data(data: &Data) -> Option<Names> {
        match data {
            Data::Str(s) if &**s == "*" => Some(Names::All),
            Data::List(items) => {
                items.iter().map(|i| i.as_str().map(Name::from)).collect::<Option<_>>().map(Names::Some)
            }
            _ => None,
        }
    }

    fn to_data(&self) -> Data {
        match self {
            Names::All => Data::str("*"),
            Names::Some(set) => Data::list(set.iter().map(|n| Data::str(&**n))),
        }
    }
}

/// Sources ∪, readers ∩: more sources and fewer readers is higher.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Provenance {
    sources: Names,
    readers: Names,
}

/// A [`Provenance`] as bits, one for each name, so that labels are compared in nanoseconds. A set of all
/// names has all bits.
#[derive(Clone, Copy, Debug)]
struct Bits {
    sources: u64,
    readers: u64,
    all_sources: bool,
    all_readers: bool,
}

/// More names than this are compared as sets.
const MOST_BITS: u32 = 64;

/// For pairs of labels, which are small numbers.
#[derive(Clone, Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
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
    /// Only for sources × readers: the labels met so far; index 0 is ⊥.
    table: Vec<Provenance>,
    index: HashMap<Provenance, u32>,
    joins: HashMap<u64, u32, BuildHasherDefault<PairHasher>>,
    /// The names met so far, and each label of the table as bits; empty once there are too many names.
    names: HashMap<Name, u32>,
    bits: Vec<Bits>,
}

impl Lattice {
    /// A lattice of the given kind.
    pub fn new(kind: LatticeKind) -> Lattice {
        let mut lattice = Lattice {
            kind,
            table: Vec::new(),
            index: HashMap::new(),
            joins: HashMap::default(),
            names: HashMap::new(),
            bits: Vec::new(),
        };
        if kind == LatticeKind::SourcesReaders {
            lattice.intern(Provenance { sources: Names::Some(BTreeSet::new()), readers: Names::All });
        }
        lattice
    }

    /// Which lattice this is.
    pub fn kind(&self) -> LatticeKind {
        self.kind
    }

    fn intern(&mut self, p: Provenance) -> Label {
        if let Some(i) = self.index.get(&p) {
            return Label(*i);
        }
        let i = self.table.len() as u32;
        match self.bits_of(&p) {
            Some(bits) if self.bits.len() == self.table.len() => self.bits.push(bits),
            _ => self.bits.clear(),
        }
        self.table.push(p.clone());
        self.index.insert(p, i);
        Label(i)
    }

    /// The bits of a label; `None` if there are too many names.
    fn bits_of(&mut self, p: &Provenance) -> Option<Bits> {
        let mut set = |names: &Names| match names {
            Names::All => Some((u64::MAX, true)),
            Names::Some(all) => {
                let mut bits = 0u64;
                for name in all {
                    let next = self.names.len() as u32;
                    let bit = *self.names.entry(name.clone()).or_insert(next);
                    if bit >= MOST_BITS {
                        return None;
                    }
                    bits |= 1 << bit;
                }
                Some((bits, false))
            }
        };
        let ((sources, all_sources), (readers, all_readers)) = (set(&p.sources)?, set(&p.readers)?);
        Some(Bits { sources, readers, all_sources, all_readers })
    }

    // INVARIANT: a label of the sources × readers lattice was made by `intern` of this lattice, so its
    // index is in the table. A foreign label reads as ⊤, the safe side.
    fn provenance(&self, l: Label) -> Provenance {
        self.table
            .get(l.0 as usize)
            .cloned()
            .unwrap_or(Provenance { sources: Names::All, readers: Names::Some(BTreeSet::new()) })
    }

    /// ⊤: from anyone, for nobody.
    pub fn top(&mut self) -> Label {
        match self.kind {
            LatticeKind::TwoAxis => Label(UNTRUSTED | SECRET),
            LatticeKind::Endorsed => Label(UNTRUSTED | SECRET | ENDORSED),
            LatticeKind::SourcesReaders => {
                self.intern(Provenance { sources: Names::All, readers: Names::Some(BTreeSet::new()) })
            }
        }
    }

    /// `a ⊔ b`.
    #[inline]
    pub fn join(&mut self, a: Label, b: Label) -> Label {
        if a == b || b == Label::BOTTOM {
            return a;
        }
        if a == Label::BOTTOM {
            return b;
        }
        match self.kind {
            LatticeKind::TwoAxis | LatticeKind::Endorsed => Label(a.0 | b.0),
            LatticeKind::SourcesReaders => self.join_interned(a, b),
        }
    }

    fn join_interned(&mut self, a: Label, b: Label) -> Label {
        let key = u64::from(a.0.min(b.0)) << 32 | u64::from(a.0.max(b.0));
        if let Some(c) = self.joins.get(&key) {
            return Label(*c);
        }
        let (p, q) = (self.provenance(a), self.provenance(b));
        let joined =
            Provenance { sources: p.sources.union(&q.sources), readers: p.readers.intersection(&q.readers) };
        let c = self.intern(joined);
        self.joins.insert(key, c.0);
        c
    }

    /// `a ⊑ b`: data labelled `a` may flow to where `b` is allowed.
    #[inline]
    pub fn flows(&self, a: Label, b: Label) -> bool {
        if a == b || a == Label::BOTTOM {
            return true;
        }
        match self.kind {
            LatticeKind::TwoAxis | LatticeKind::Endorsed => a.0 & !b.0 == 0,
            LatticeKind::SourcesReaders => {
                if let (Some(p), Some(q)) = (self.bits.get(a.0 as usize), self.bits.get(b.0 as usize)) {
                    // All names are more than all that have a bit.
                    return p.sources & !q.sources == 0
                        && q.readers & !p.readers == 0
                        && (q.all_sources || !p.all_sources)
                        && (p.all_readers || !q.all_readers);
                }
                let (p, q) = (self.provenance(a), self.provenance(b));
                q.sources.includes(&p.sources) && p.readers.includes(&q.readers)
            }
        }
    }

    /// `⟨a←, b→⟩`: the integrity of `a` with the secrecy of `b`.
    pub fn reclassify(&mut self, integrity: Label, secrecy: Label) -> Label {
        match self.kind {
            LatticeKind::TwoAxis | LatticeKind::Endorsed => {
                Label((integrity.0 & (UNTRUSTED | ENDORSED)) | (secrecy.0 & SECRET))
            }
            LatticeKind::SourcesReaders => {
                let (i, s) = (self.provenance(integrity), self.provenance(secrecy));
                self.intern(Provenance { sources: i.sources, readers: s.readers })
            }
        }
    }

    /// `toLabel`: the label that a value of the program denotes, if it denotes one.
    pub fn label_of(&mut self, data: &Data) -> Option<Label> {
        let letters: &[(&str, u32)] = match self.kind {
            LatticeKind::TwoAxis => &[("U", UNTRUSTED), ("S", SECRET)],
            LatticeKind::Endorsed => &[("U", UNTRUSTED), ("S", SECRET), ("E", ENDORSED)],
            LatticeKind::SourcesReaders => {
                let Data::Record(fields) = data else { return None };
                if fields.iter().any(|(n, _)| !matches!(&**n, "sources" | "readers")) {
                    return None;
                }
                let sources =
                    data.field("sources").map_or(Some(Names::Some(BTreeSet::new())), Names::from_data)?;
                let readers = data.field("readers").map_or(Some(Names::All), Names::from_data)?;
                return Some(self.intern(Provenance { sources, readers }));
            }
        };
        let Data::List(items) = data else { return None };
        let mut bits = 0;
        for item in items.iter() {
            let text = item.as_str()?;
            bits |= letters.iter().find(|(l, _)| *l == text)?.1;
        }
        Some(Label(bits))
    }

    /// `fromLabel`: the value that denotes a label.
    pub fn data_of(&self, label: Label) -> Data {
        match self.kind {
            LatticeKind::TwoAxis | LatticeKind::Endorsed => Data::list(
                [("U", UNTRUSTED), ("S", SECRET), ("E", ENDORSED)]
                    .into_iter()
                    .filter(|(_, bit)| label.0 & bit != 0)
                    .map(|(l, _)| Data::str(l)),
            ),
            LatticeKind::SourcesReaders => {
                let p = self.provenance(label);
                Data::record([
                    (Name::from("sources"), p.sources.to_data()),
                    (Name::from("readers"), p.readers.to_data()),
                ])
            }
        }
    }

    /// The label that a signature states; `None` if an exact label is none of this lattice.
    pub fn resolve(&mut self, spec: &LabelSpec) -> Option<Label> {
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

    /// The label as it is written in programs.
    pub fn show(&self, label: Label) -> String {
        self.text(label).into_owned()
    }

    /// [`Lattice::show`], without making a text where there is one.
    pub fn text(&self, label: Label) -> Cow<'static, str> {
        const SETS: [&str; 8] = [
            "[]",
            r#"["U"]"#,
            r#"["S"]"#,
            r#"["U","S"]"#,
            r#"["E"]"#,
            r#"["U","E"]"#,
            r#"["S","E"]"#,
            r#"["U","S","E"]"#,
        ];
        match (self.kind, SETS.get(label.0 as usize)) {
            (LatticeKind::TwoAxis | LatticeKind::Endorsed, Some(text)) => Cow::Borrowed(text),
            _ => Cow::Owned(self.data_of(label).to_json().to_string()),
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
        match kind {
            LatticeKind::TwoAxis => names(&["U", "S"]).boxed(),
            LatticeKind::Endorsed => names(&["U", "S", "E"]).boxed(),
            LatticeKind::SourcesReaders => (
                prop_oneof![names(&["web", "mail", "user"]), Just(Data::str("*"))],
                prop_oneof![names(&["alice", "bob"]), Just(Data::str("*"))],
            )
                .prop_map(|(s, r)| Data::record([("sources".into(), s), ("readers".into(), r)]))
                .boxed(),
        }
    }

    fn any_three() -> impl Strategy<Value = (LatticeKind, Data, Data, Data)> {
        prop_oneof![
            Just(LatticeKind::TwoAxis),
            Just(LatticeKind::Endorsed),
            Just(LatticeKind::SourcesReaders)
        ]
        .prop_flat_map(|k| (Just(k), any_label(k), any_label(k), any_label(k)))
    }

    proptest! {
        #[test]
        fn every_lattice_is_a_join_semilattice_that_factors((kind, a, b, c) in any_three()) {
            let mut l = Lattice::new(kind);
            let (a, b, c) =
                (l.label_of(&a).unwrap(), l.label_of(&b).unwrap(), l.label_of(&c).unwrap());
            let ab = l.join(a, b);
            prop_assert_eq!(ab, l.join(b, a));
            prop_assert_eq!(l.join(a, a), a);
            prop_assert_eq!(l.join(a, Label::BOTTOM), a);
            let bc = l.join(b, c);
            prop_assert_eq!(l.join(ab, c), l.join(a, bc));
            prop_assert_eq!(l.flows(a, b), ab == b);
            prop_assert!(l.flows(Label::BOTTOM, a));
            let top = l.top();
            prop_assert!(l.flows(a, top));
            prop_assert_eq!(l.reclassify(a, a), a);
            let mixed = l.reclassify(a, b);
            prop_assert_eq!(l.reclassify(mixed, c), l.reclassify(a, c));
            prop_assert_eq!(l.reclassify(c, mixed), l.reclassify(c, b));
        }

        #[test]
        fn a_label_written_and_read_is_the_same((kind, a, _b, _c) in any_three()) {
            let mut l = Lattice::new(kind);
            let a = l.label_of(&a).unwrap();
            let data = l.data_of(a);
            prop_assert_eq!(l.label_of(&data), Some(a));
            prop_assert_eq!(l.show(a), data.to_json().to_string());
        }
    }

    #[test]
    fn more_names_than_bits_are_compared_as_sets() {
        let mut l = Lattice::new(LatticeKind::SourcesReaders);
        let label = |l: &mut Lattice, names: &[String]| {
            let sources = Data::list(names.iter().map(|n| Data::str(&**n)));
            l.label_of(&Data::record([("sources".into(), sources)])).unwrap()
        };
        let names: Vec<String> = (0..MOST_BITS as usize + 6).map(|i| format!("s{i}")).collect();
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
    fn what_is_no_label_is_refused() {
        let mut two = Lattice::new(LatticeKind::TwoAxis);
        assert_eq!(two.label_of(&Data::list([Data::str("E")])), None);
        assert_eq!(two.label_of(&Data::str("U")), None);
        assert_eq!(two.resolve(&LabelSpec::TOP), Some(two.top()));
    }
}
