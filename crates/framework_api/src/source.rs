//! Where the table of a package comes from: the binary, or whoever supplies it.

use crate::table::{SOURCES, Table};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The place of a table. A table is read when it is first needed.
#[derive(Debug)]
pub(crate) struct Source {
    pub package: &'static str,
    /// The names at the top of its modules.
    pub roots: &'static [&'static str],
    /// Its compressed text, if the binary has it.
    embedded: Option<&'static [u8]>,
    /// The table; `None` if it can't be read.
    table: OnceLock<Option<Table>>,
    /// True if it was needed and not there.
    lacking: AtomicBool,
}

impl Source {
    pub(crate) const fn new(
        package: &'static str,
        roots: &'static [&'static str],
        embedded: Option<&'static [u8]>,
    ) -> Source {
        Source { package, roots, embedded, table: OnceLock::new(), lacking: AtomicBool::new(false) }
    }

    /// Returns true if the table tells of a module, by the first part of its name.
    pub(crate) fn tells_of(&self, module: &str) -> bool {
        self.root_of(module).is_some()
    }

    /// The name at the top of a module that the table tells of.
    pub(crate) fn root_of(&self, module: &str) -> Option<&'static str> {
        let is_within = |rest: &str| rest.is_empty() || rest.starts_with('.');
        self.roots.iter().find(|root| module.strip_prefix(**root).is_some_and(is_within)).copied()
    }

    /// The table; `None` if it is not there or can't be read.
    pub(crate) fn table(&self) -> Option<&Table> {
        match self.embedded {
            Some(compressed) => self.table.get_or_init(|| Table::read(compressed)).as_ref(),
            None => {
                let table = self.table.get();
                self.lacking.fetch_or(table.is_none(), Ordering::Relaxed);
                table?.as_ref()
            }
        }
    }

    fn supply(&self, compressed: &[u8]) -> Result<(), SupplyError> {
        if self.embedded.is_some() {
            return Err(SupplyError::Embedded);
        }
        let table = Table::read(compressed).filter(|table| table.package == self.package);
        let table = table.ok_or(SupplyError::Unreadable)?;
        // A second one is no better than the first.
        let _ = self.table.set(Some(table));
        self.lacking.store(false, Ordering::Relaxed);
        Ok(())
    }
}

/// Reason why a table is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyError {
    /// No table is expected for the package.
    UnknownPackage,
    /// The binary has the table.
    Embedded,
    /// The bytes are no table of the package.
    Unreadable,
}

/// Supplies the table of a package to a binary that doesn't embed it: the file in `tables/`, compressed as
/// raw deflate.
///
/// # Errors
/// [`SupplyError`] if the table is not wanted or can't be read.
pub fn supply(package: &str, compressed: &[u8]) -> Result<(), SupplyError> {
    let source = SOURCES.iter().find(|source| source.package == package);
    source.ok_or(SupplyError::UnknownPackage)?.supply(compressed)
}

/// The packages whose tables were needed and are not there. Uses of these packages were not judged. Empty
/// where the tables are embedded.
pub fn lacking() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().filter(|source| source.lacking.load(Ordering::Relaxed)).map(|source| source.package)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"entail framework table 1\npackage bees\nrelease 1.0 20260101\nmodule bees\n=\n : Hive\n";

    fn compressed(text: &[u8]) -> Vec<u8> {
        miniz_oxide::deflate::compress_to_vec(text, 6)
    }

    #[test]
    fn a_table_that_is_not_there_is_said_to_be_lacking_once_it_is_needed() {
        static SOURCE: Source = Source::new("bees", &["bees"], None);
        let lacks = || SOURCE.lacking.load(Ordering::Relaxed);
        assert!(SOURCE.tells_of("bees.hive") && !SOURCE.tells_of("beestings"));
        assert!(!lacks());
        assert!(SOURCE.table().is_none());
        assert!(lacks());
        for damaged in [&b"\xff"[..], &compressed(b"no table"), &compressed(&TEXT[..30])] {
            assert_eq!(SOURCE.supply(damaged), Err(SupplyError::Unreadable));
        }
        let other = String::from_utf8_lossy(TEXT).replace("package bees", "package wasps");
        assert_eq!(SOURCE.supply(&compressed(other.as_bytes())), Err(SupplyError::Unreadable));
        assert!(lacks());
        assert_eq!(SOURCE.supply(&compressed(TEXT)), Ok(()));
        assert!(!lacks());
        assert!(SOURCE.table().is_some_and(|table| table.module("bees").is_some()));
    }

    #[test]
    fn embedded_tables_are_not_replaced_and_never_lacking() {
        assert!(crate::Api::new(|_| None).import("langgraph.graph", Some("StateGraph")).is_none());
        assert_eq!(lacking().count(), 0);
        assert_eq!(supply("langgraph", &compressed(TEXT)), Err(SupplyError::Embedded));
        assert_eq!(supply("bees", &compressed(TEXT)), Err(SupplyError::UnknownPackage));
    }
}
