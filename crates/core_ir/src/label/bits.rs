//! Lattices whose labels are sets of bits. Every finite distributive lattice can be written so.

use super::{Algebra, Definition};
use crate::Data;
use std::fmt;

/// A lattice whose labels are sets of bits, joined by union and compared as sets; the empty set is ⊥.
pub(super) trait BitLattice: fmt::Debug + Sync {
    /// The bits that are integrity; all others are secrecy.
    fn integrity(&self) -> u32;

    /// All bits.
    fn top(&self) -> u32;

    /// The bits that a label value denotes, if it is one.
    fn read(&self, data: &Data) -> Option<u32>;

    /// The value that denotes these bits.
    fn write(&self, bits: u32) -> Data;

    /// Returns the label as text, where it is a constant.
    fn text(&self, _bits: u32) -> Option<&'static str> {
        None
    }

    /// Returns the components of a label that have their own origins: the bit, its spelling in labels and its
    /// meaning in words.
    fn parts(&self, bits: u32) -> Vec<(u32, &'static str, &'static str)>;
}

pub(super) const UNTRUSTED: u32 = 1;
const SECRET: u32 = 2;
const ENDORSED_BIT: u32 = 4;

/// Subsets of a few letters.
#[derive(Debug)]
pub(super) struct Letters {
    /// Bit, letter, words.
    letters: &'static [(u32, &'static str, &'static str)],
}

/// `["U", "S"]`.
pub(super) const TWO_AXIS: Definition = Definition {
    name: "two-axis",
    example: "[\"U\", \"S\"] or fewer of them",
    words: &["U", "S"],
    algebra: |_| Algebra::Bits(&U_S),
};

/// `["U", "S", "E"]`.
pub(super) const ENDORSED: Definition = Definition {
    name: "endorsed",
    example: "[\"U\", \"S\", \"E\"] or fewer of them",
    words: &["U", "S", "E"],
    algebra: |_| Algebra::Bits(&U_S_E),
};

static U_S: Letters = Letters { letters: &[(UNTRUSTED, "U", "is untrusted"), (SECRET, "S", "is secret")] };

static U_S_E: Letters = Letters {
    letters: &[
        (UNTRUSTED, "U", "is untrusted"),
        (SECRET, "S", "is secret"),
        (ENDORSED_BIT, "E", "was endorsed"),
    ],
};

/// The labels of both as they are written, by their bits.
const TEXTS: [&str; 8] = [
    "[]",
    r#"["U"]"#,
    r#"["S"]"#,
    r#"["U","S"]"#,
    r#"["E"]"#,
    r#"["U","E"]"#,
    r#"["S","E"]"#,
    r#"["U","S","E"]"#,
];

impl BitLattice for Letters {
    fn integrity(&self) -> u32 {
        UNTRUSTED | ENDORSED_BIT
    }

    fn top(&self) -> u32 {
        self.letters.iter().fold(0, |bits, l| bits | l.0)
    }

    fn read(&self, data: &Data) -> Option<u32> {
        let Data::List(items) = data else { return None };
        let bit = |item: &Data| {
            let text = item.as_str()?;
            self.letters.iter().find(|l| l.1 == text).map(|l| l.0)
        };
        items.iter().try_fold(0, |bits, item| Some(bits | bit(item)?))
    }

    fn write(&self, bits: u32) -> Data {
        Data::list(self.parts(bits).into_iter().map(|l| Data::str(l.1)))
    }

    fn text(&self, bits: u32) -> Option<&'static str> {
        TEXTS.get(bits as usize).copied()
    }

    fn parts(&self, bits: u32) -> Vec<(u32, &'static str, &'static str)> {
        self.letters.iter().copied().filter(|l| bits & l.0 != 0).collect()
    }
}
