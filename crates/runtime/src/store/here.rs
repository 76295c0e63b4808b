//! A store in this process.

use super::{Act, Operation, label_of};
use core_ir::{Data, KeyDecl, Name};
use std::collections::HashMap;

#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    entries: HashMap<Name, Entry>,
    /// The labels of all keys that ever had an entry; those have had their initial values.
    labels: HashMap<Name, String>,
    written: u64,
}

/// Equality of what can be told from outside: what is held since when, and in which order it goes.
impl PartialEq for Store {
    fn eq(&self, other: &Store) -> bool {
        fn held(store: &Store) -> Vec<(u64, &Name, &Data, i64)> {
            let mut held: Vec<_> = store.entries.iter().map(|(n, e)| (e.number, n, &e.value, e.at)).collect();
            held.sort_by_key(|entry| entry.0);
            held
        }
        let (a, b) = (held(self), held(other));
        let same = a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| (x.1, x.2, x.3) == (y.1, y.2, y.3));
        same && self.labels == other.labels
    }
}

#[derive(Clone, Debug)]
struct Entry {
    value: Data,
    /// Milliseconds since 1970.
    at: i64,
    /// Tells the order of writes.
    number: u64,
}

impl Store {
    pub(super) fn carry_out(&mut self, operation: Operation) -> Result<Option<Data>, String> {
        let key = operation.key;
        if self.labels.get(&key.name).is_some_and(|label| *label != label_of(key)) {
            return Err(operation.another_label());
        }
        self.prepare(&operation);
        match &operation.act {
            Act::Remember(value) => {
                self.write(&operation, key, value.clone());
                Ok(None)
            }
            Act::Recall => {
                let held = self.entries.get(&key.name).map(|e| e.value.clone());
                held.map(|data| operation.of_type(data)).transpose()
            }
        }
    }

    fn write(&mut self, operation: &Operation, key: &KeyDecl, value: Data) {
        let entry = Entry { value, at: operation.now, number: self.written };
        self.written += 1;
        let label = label_of(key);
        self.labels.entry(key.name.clone()).or_insert_with(|| label.clone());
        self.entries.insert(key.name.clone(), entry);
        let Some(capacity) = operation.decl.capacity else { return };
        let alike = self.entries.iter().filter(|(name, _)| self.labels.get(*name) == Some(&label));
        let mut alike: Vec<(u64, Name)> = alike.map(|(name, e)| (e.number, name.clone())).collect();
        alike.sort();
        let over = alike.len().saturating_sub(usize::try_from(capacity).unwrap_or(usize::MAX));
        for (_, oldest) in alike.drain(..over) {
            self.entries.remove(&oldest);
        }
    }

    /// Drops what has expired, and lets initial values in that are new.
    fn prepare(&mut self, operation: &Operation) {
        if let Some(expired) = operation.expired() {
            self.entries.retain(|_, e| e.at > expired);
        }
        for key in &operation.decl.keys {
            if let Some(initial) = &key.initial
                && !self.labels.contains_key(&key.name)
            {
                self.write(operation, key, initial.clone());
            }
        }
    }
}
