//! Accounts: the entries of one store under one label, the last written first.
//!
//! Invariant: what an account holds at a time is a function of its entries and the time alone, see [`kept`]. Nothing is counted, aged or
//! evicted across labels (`docs/calculus.md` §10, stores).

use core_ir::{KeyDecl, Name, StoreDecl};

/// The limits that an entry is written with. They stay with the entry: another declaration does not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// When the entry expires, in milliseconds since 1970.
    pub(super) expires: Option<i64>,
    /// How many entries there may be up to and including this one, counted from the last written.
    pub(super) capacity: Option<u64>,
}

impl Limits {
    /// Those of an entry that is written at this time.
    pub(super) fn of(decl: &StoreDecl, now: i64) -> Limits {
        let lifetime = |s: u64| i64::try_from(s.saturating_mul(1000)).unwrap_or(i64::MAX);
        Limits { expires: decl.ttl.map(|s| now.saturating_add(lifetime(s))), capacity: decl.capacity }
    }

    fn admits(self, before: usize, now: i64) -> bool {
        self.expires.is_none_or(|end| now < end) && self.capacity.is_none_or(|c| (before as u64) < c)
    }
}

/// The entries of an account that remain at this time, in the same order: none that has expired, and none beyond its capacity.
pub(super) fn kept<E>(
    entries: impl IntoIterator<Item = E>,
    limits: impl Fn(&E) -> Limits,
    now: i64,
) -> Vec<E> {
    let mut kept = Vec::new();
    for entry in entries {
        if limits(&entry).admits(kept.len(), now) {
            kept.push(entry);
        }
    }
    kept
}

/// The initial value of a key, if the account holds it and not a value that was written.
///
/// Initial values are entries that follow all others, in the order of the table. `written` are the keys of the entries that remain.
/// No operation needs to make these entries: within a run an account only grows until it is full, so they are at its end until they are
/// written or evicted for good.
pub(super) fn initial<'d>(
    decl: &'d StoreDecl,
    key: &KeyDecl,
    written: &[Name],
    now: i64,
) -> Option<&'d core_ir::Data> {
    let absent = |k: &&KeyDecl| k.initial.is_some() && k.label == key.label && !written.contains(&k.name);
    let at = decl.keys.iter().filter(absent).position(|k| k.name == key.name)?;
    let value = decl.keys.iter().find(|k| k.name == key.name)?.initial.as_ref()?;
    Limits::of(decl, now).admits(written.len() + at, now).then_some(value)
}
