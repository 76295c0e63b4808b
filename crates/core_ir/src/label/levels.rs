//! Levels of secrecy, each above the one before, and whether data are untrusted: `["confidential"]`,
//! `["U", "secret"]`.
//!
//! Public is the empty list, and what is not named. A level is the set of the bits of all levels up to it, so
//! that the higher of two levels is their union.

use super::bits::{BitLattice, UNTRUSTED};
use super::{Algebra, Definition};
use crate::Data;

/// The lattice of levels.
pub(super) const LEVELS: Definition = Definition {
    name: "levels",
    example: "[\"U\"], [\"internal\"], [\"confidential\"] or [\"secret\"], or \"U\" with a level",
    words: &["U", "internal", "confidential", "secret"],
    algebra: |_| Algebra::Bits(&Levels),
};

#[derive(Debug)]
struct Levels;

/// All bits of each level, the highest first.
const ABOVE_PUBLIC: [(u32, &str, &str); 3] = [
    (0b1110, "secret", "is secret"),
    (0b0110, "confidential", "is confidential"),
    (0b0010, "internal", "is internal"),
];

impl BitLattice for Levels {
    fn integrity(&self) -> u32 {
        UNTRUSTED
    }

    fn top(&self) -> u32 {
        0b1111
    }

    fn read(&self, data: &Data) -> Option<u32> {
        let Data::List(items) = data else { return None };
        let bits = |item: &Data| match item.as_str()? {
            "U" => Some(UNTRUSTED),
            "public" => Some(0),
            name => ABOVE_PUBLIC.iter().find(|l| l.1 == name).map(|l| l.0),
        };
        items.iter().try_fold(0, |all, item| Some(all | bits(item)?))
    }

    fn write(&self, bits: u32) -> Data {
        Data::list(self.parts(bits).into_iter().map(|l| Data::str(l.1)))
    }

    fn parts(&self, bits: u32) -> Vec<(u32, &'static str, &'static str)> {
        let untrusted = (bits & UNTRUSTED != 0).then_some((UNTRUSTED, "U", "is untrusted"));
        let level = ABOVE_PUBLIC.iter().find(|l| bits & l.0 == l.0).copied();
        untrusted.into_iter().chain(level).collect()
    }
}
