//! The work of a rule: counted in steps of fuel, and bounded.
//!
//! Entry point: [`Meter`]. What goes through a value is given one and counts each part there.
//!
//! Source: `docs/calculus.md` §7.

use crate::value::NotData;
use core_ir::Data;

/// The bytes of text that one step copies or looks at.
const BYTES: usize = 16;

/// The parts and bytes that were looked at so far.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: usize,
    parts: usize,
    bytes: usize,
}

impl Meter {
    /// A meter that admits this many parts. A text may have as many bytes.
    pub(crate) fn new(limit: usize) -> Meter {
        Meter { limit, parts: 0, bytes: 0 }
    }

    /// The most parts that are looked at, and the most bytes of a text.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Counts parts that are looked at next, up to the limit: a value that shares its parts can be
    /// exponentially larger than it takes space.
    #[inline]
    pub(crate) fn parts(&mut self, count: usize) -> Result<(), NotData> {
        let parts = self.parts.saturating_add(count);
        if parts > self.limit {
            return Err(NotData::TooLarge);
        }
        self.parts = parts;
        Ok(())
    }

    /// Counts bytes of text.
    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) {
        self.bytes = self.bytes.saturating_add(count);
    }

    /// Counts the parts and texts of data that is copied or looked at as a whole.
    pub(crate) fn data(&mut self, data: &Data) {
        let mut rest = vec![data];
        while let Some(data) = rest.pop() {
            let below = rest.len();
            match data {
                Data::Null | Data::Bool(_) | Data::Num(_) => {}
                Data::Str(text) => self.bytes(text.len()),
                Data::List(items) => rest.extend(items.iter()),
                Data::Record(fields) => rest.extend(fields.iter().map(|(_, d)| d)),
                Data::Pair(both) => rest.extend([&both.0, &both.1]),
                Data::Tag(_, payload) => rest.push(payload),
            }
            self.parts = self.parts.saturating_add(rest.len() - below);
        }
    }

    /// The steps that this was, beyond the one of the term.
    #[inline]
    pub(crate) fn steps(&self) -> u64 {
        self.parts as u64 + (self.bytes / BYTES) as u64
    }
}
