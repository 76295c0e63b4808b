//! Sources × readers: `{sources: […] or "*", readers: […] or "*"}`, from where data may come and who may see
//! them. Labels are interned; sets of up to 64 different names are compared as bits.

use super::{Algebra, Axis, Component, Definition, Principals, Stated};
use crate::{Data, Name};
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// The lattice of sources and readers.
pub(super) const SOURCES_READERS: Definition = Definition {
    name: "sources-readers",
    example: "{ sources = [\"web\"], readers = [\"alice\"] }",
    words: &[],
    algebra: |principals| Algebra::Sets(Box::new(Sets::new(principals.clone()))),
};

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

impl Provenance {
    fn to_data(&self) -> Data {
        Data::record([
            (Name::from("sources"), self.sources.to_data()),
            (Name::from("readers"), self.readers.to_data()),
        ])
    }
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
pub(super) const MAX_BITS: u32 = 64;

/// For pairs of labels, which are small numbers.
#[derive(Clone, Default)]
pub(super) struct PairHasher(u64);

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

/// Cached joins of pairs of labels, keyed by [`pair`].
pub(super) type Joins = HashMap<u64, u32, BuildHasherDefault<PairHasher>>;

/// A pair of labels, whichever comes first.
pub(super) fn pair(a: u32, b: u32) -> u64 {
    u64::from(a.min(b)) << 32 | u64::from(a.max(b))
}

/// The labels met so far; a label is an index, that of ⊥ is 0.
#[derive(Clone, Debug)]
pub(super) struct Sets {
    principals: Principals,
    table: Vec<Provenance>,
    index: HashMap<Provenance, u32>,
    joins: Joins,
    /// The names met so far, and each label of the table as bits; empty once there are too many names.
    names: HashMap<Name, u32>,
    bits: Vec<Bits>,
}

impl Sets {
    fn new(principals: Principals) -> Sets {
        let mut sets = Sets {
            principals,
            table: Vec::new(),
            index: HashMap::new(),
            joins: HashMap::default(),
            names: HashMap::new(),
            bits: Vec::new(),
        };
        sets.intern(Provenance { sources: Names::Some(BTreeSet::new()), readers: Names::All });
        sets
    }

    fn intern(&mut self, p: Provenance) -> u32 {
        if let Some(i) = self.index.get(&p) {
            return *i;
        }
        let i = self.table.len() as u32;
        match self.bits_of(&p) {
            Some(bits) if self.bits.len() == self.table.len() => self.bits.push(bits),
            _ => self.bits.clear(),
        }
        self.table.push(p.clone());
        self.index.insert(p, i);
        i
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
                    if bit >= MAX_BITS {
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

    // INVARIANT: a label of this lattice was made by `intern`, so its index is in the table. A foreign label
    // reads as ⊤, the safe side.
    fn provenance(&self, l: u32) -> Provenance {
        self.table
            .get(l as usize)
            .cloned()
            .unwrap_or(Provenance { sources: Names::All, readers: Names::Some(BTreeSet::new()) })
    }

    pub(super) fn top(&mut self) -> u32 {
        self.intern(Provenance { sources: Names::All, readers: Names::Some(BTreeSet::new()) })
    }

    pub(super) fn join(&mut self, a: u32, b: u32) -> u32 {
        if let Some(c) = self.joins.get(&pair(a, b)) {
            return *c;
        }
        let (p, q) = (self.provenance(a), self.provenance(b));
        let joined =
            Provenance { sources: p.sources.union(&q.sources), readers: p.readers.intersection(&q.readers) };
        let c = self.intern(joined);
        self.joins.insert(pair(a, b), c);
        c
    }

    pub(super) fn flows(&self, a: u32, b: u32) -> bool {
        if let (Some(p), Some(q)) = (self.bits.get(a as usize), self.bits.get(b as usize)) {
            // All names are more than all that have a bit.
            return p.sources & !q.sources == 0
                && q.readers & !p.readers == 0
                && (q.all_sources || !p.all_sources)
                && (p.all_readers || !q.all_readers);
        }
        let (p, q) = (self.provenance(a), self.provenance(b));
        q.sources.includes(&p.sources) && p.readers.includes(&q.readers)
    }

    pub(super) fn reclassify(&mut self, integrity: u32, secrecy: u32) -> u32 {
        let (i, s) = (self.provenance(integrity), self.provenance(secrecy));
        self.intern(Provenance { sources: i.sources, readers: s.readers })
    }

    pub(super) fn read(&mut self, data: &Data) -> Option<u32> {
        let Data::Record(fields) = data else { return None };
        if fields.iter().any(|(n, _)| !matches!(&**n, "sources" | "readers")) {
            return None;
        }
        let sources = data.field("sources").map_or(Some(Names::Some(BTreeSet::new())), Names::from_data)?;
        let readers = data.field("readers").map_or(Some(Names::All), Names::from_data)?;
        let known = |names: &Names, known: &Option<BTreeSet<Name>>| match (names, known) {
            (Names::Some(names), Some(known)) => names.is_subset(known),
            _ => true,
        };
        if !known(&sources, &self.principals.sources) || !known(&readers, &self.principals.readers) {
            return None;
        }
        Some(self.intern(Provenance { sources, readers }))
    }

    pub(super) fn write(&self, label: u32) -> Data {
        self.provenance(label).to_data()
    }

    /// Returns the label that a sender states: an unknown source may be anyone, and an unknown reader reads
    /// nothing.
    pub(super) fn in_terms(&self, said: &Stated) -> Data {
        let known =
            |name: &Name, known: &Option<BTreeSet<Name>>| known.as_ref().is_none_or(|k| k.contains(name));
        let sources = match &said.sources {
            Some(names) if names.iter().all(|n| known(n, &self.principals.sources)) => {
                Names::Some(names.iter().cloned().collect())
            }
            _ => Names::All,
        };
        let readers = match &said.readers {
            None => Names::All,
            Some(names) => {
                let known = names.iter().filter(|n| known(n, &self.principals.readers));
                Names::Some(known.cloned().collect())
            }
        };
        Provenance { sources, readers }.to_data()
    }

    /// Each source by itself, and that not everybody may read.
    pub(super) fn components(&self, label: u32) -> Vec<Component> {
        let p = self.provenance(label);
        let source =
            |name: &str, words: String| Component { axis: Axis::Integrity, name: name.into(), words };
        let mut out = match &p.sources {
            Names::All => vec![source("*", "comes from anyone".into())],
            Names::Some(set) => set.iter().map(|n| source(n, format!("comes from `{n}`"))).collect(),
        };
        if let Names::Some(set) = &p.readers {
            let readers: Vec<String> = set.iter().map(|n| format!("`{n}`")).collect();
            let words = match &readers[..] {
                [] => "has no reader".to_string(),
                _ => format!("is for {} alone", readers.join(", ")),
            };
            out.push(Component { axis: Axis::Secrecy, name: "readers".into(), words });
        }
        out
    }
}
