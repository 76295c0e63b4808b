//! The state of stores: accounts of entries, one for each label.
//!
//! Entry point: [`StoreState`]. Handlers that keep entries elsewhere use [`kept`] and [`initial`], so that
//! all stores behave alike.
//!
//! Invariant: what an account holds at a time is a function of its entries and the time alone, see [`kept`].
//! Nothing is counted, aged or evicted across labels. Invariant: reading changes nothing.
//!
//! Source: `docs/calculus.md` §10, stores; `proofs/Spec/Interp.v`.

use core_ir::{Data, KeyDecl, LabelSpec, Name, StoreDecl};

/// The limits that an entry is written with. They stay with the entry: another declaration does not change
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryLimits {
    /// When the entry expires, in milliseconds since 1970.
    pub expires: Option<i64>,
    /// Maximum number of entries up to and including this one, counted from the last written.
    pub capacity: Option<u64>,
}

impl EntryLimits {
    /// Returns the limits of an entry that is written at this time.
    pub fn of(decl: &StoreDecl, now: i64) -> EntryLimits {
        let lifetime = |s: u64| i64::try_from(s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let expires = decl.ttl.map(|s| now.saturating_add(lifetime(s)));
        EntryLimits { expires, capacity: decl.capacity }
    }

    fn admits(self, before: usize, now: i64) -> bool {
        self.expires.is_none_or(|end| now < end) && self.capacity.is_none_or(|c| (before as u64) < c)
    }
}

/// The entries of an account that remain at this time, the last written first, as they are given: none that
/// has expired, and none beyond its capacity.
pub fn kept<E>(entries: impl IntoIterator<Item = E>, limits: impl Fn(&E) -> EntryLimits, now: i64) -> Vec<E> {
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
/// Initial values are entries that follow all others, in the order of the table. `written` are the keys of
/// the entries that remain. No operation needs to make these entries: within a run an account only grows
/// until it is full, so they are at its end until they are written or evicted for good.
pub fn initial<'d>(decl: &'d StoreDecl, key: &KeyDecl, written: &[Name], now: i64) -> Option<&'d Data> {
    let absent = |k: &&KeyDecl| k.initial.is_some() && k.label == key.label && !written.contains(&k.name);
    let at = decl.keys.iter().filter(absent).position(|k| k.name == key.name)?;
    let value = decl.keys.iter().find(|k| k.name == key.name)?.initial.as_ref()?;
    EntryLimits::of(decl, now).admits(written.len() + at, now).then_some(value)
}

/// The accounts of one store. A copy goes its own way.
///
/// # Examples
/// ```
/// use core_ir::{Data, KeyDecl, LabelSpec, StoreDecl, Type};
/// use diagnostics::{FileId, Span};
/// use machine::store::StoreState;
/// let key = |name: &str, initial| {
///     KeyDecl { name: name.into(), ty: Type::Num, label: LabelSpec::BOTTOM, initial }
/// };
/// let seven = Data::Num(7.into());
/// let decl = StoreDecl {
///     name: "s".into(),
///     keys: vec![key("a", Some(seven.clone())), key("b", None)],
///     capacity: Some(1),
///     ttl: None,
///     backend: None,
///     span: Span { file: FileId(0), start: 0, end: 0 },
/// };
/// let mut state = StoreState::default();
/// assert_eq!(state.recall(&decl, &decl.keys[0], 0), Some(seven.clone()));
/// state.remember(&decl, &decl.keys[1], seven, 0);
/// assert_eq!(state.recall(&decl, &decl.keys[0], 0), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoreState {
    accounts: Vec<(LabelSpec, Vec<Entry>)>,
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    key: Name,
    value: Data,
    limits: EntryLimits,
}

impl StoreState {
    /// Returns what a key of the declaration holds at this time, in milliseconds since 1970.
    pub fn recall(&self, decl: &StoreDecl, key: &KeyDecl, now: i64) -> Option<Data> {
        let account = self.accounts.iter().find(|(label, _)| *label == key.label);
        let remain = kept(account.map_or(&[][..], |(_, entries)| entries), |e| e.limits, now);
        if let Some(entry) = remain.iter().find(|e| e.key == key.name) {
            return Some(entry.value.clone());
        }
        // Most keys have no initial value.
        key.initial.as_ref()?;
        let written: Vec<Name> = remain.iter().map(|e| e.key.clone()).collect();
        initial(decl, key, &written, now).cloned()
    }

    /// Writes a key of the declaration at this time, in milliseconds since 1970.
    pub fn remember(&mut self, decl: &StoreDecl, key: &KeyDecl, value: Data, now: i64) {
        let at = match self.accounts.iter().position(|(label, _)| *label == key.label) {
            Some(at) => at,
            None => {
                self.accounts.push((key.label.clone(), Vec::new()));
                self.accounts.len() - 1
            }
        };
        let account = &mut self.accounts[at].1;
        let others = kept(account.drain(..), |e| e.limits, now).into_iter();
        let entry = Entry { key: key.name.clone(), value, limits: EntryLimits::of(decl, now) };
        let all = std::iter::once(entry).chain(others.filter(|e| e.key != key.name));
        *account = kept(all, |e| e.limits, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{LabelSpec, Type};
    use diagnostics::{FileId, Span};

    /// Initial values take room in the account of their own label alone.
    #[test]
    fn initial_values_of_other_labels_take_no_room() {
        let secret = LabelSpec::Axes { untrusted: false, secret: true };
        let key = |name: &str, label: &LabelSpec| KeyDecl {
            name: name.into(),
            ty: Type::Num,
            label: label.clone(),
            initial: Some(Data::Num(7.into())),
        };
        let decl = StoreDecl {
            name: "s".into(),
            keys: vec![key("a", &secret), key("b", &LabelSpec::BOTTOM), key("c", &LabelSpec::BOTTOM)],
            capacity: Some(1),
            ttl: None,
            backend: None,
            span: Span { file: FileId(0), start: 0, end: 0 },
        };
        let state = StoreState::default();
        let found = [0, 1, 2].map(|i| state.recall(&decl, &decl.keys[i], 0).is_some());
        assert_eq!(found, [true, true, false]);
    }
}
