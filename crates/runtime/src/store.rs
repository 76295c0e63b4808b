//! Stores kept in this process.

use core_ir::{Data, Name, StoreDecl};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Stores by name; stores of one name are one store. A clone is the same stores, so what one run remembers another
/// can recall as long as they share it.
///
/// A key's initial value is an entry like others: it is there from the first time its store is used, counts
/// towards the capacity and expires. An entry that does not fit expels the one written longest ago.
#[derive(Clone, Debug, Default)]
pub struct Stores {
    stores: Arc<Mutex<HashMap<Name, Store>>>,
}

#[derive(Debug, Default)]
struct Store {
    /// Each with when it was written and its number, which tells the order.
    entries: HashMap<Name, (Data, Instant, u64)>,
    initialised: HashMap<Name, ()>,
    written: u64,
}

impl Store {
    fn write(&mut self, decl: &StoreDecl, key: &Name, value: Data) {
        let number = self.written;
        self.written += 1;
        self.entries.insert(key.clone(), (value, Instant::now(), number));
        let capacity = decl.capacity.map_or(usize::MAX, |c| usize::try_from(c).unwrap_or(usize::MAX));
        while self.entries.len() > capacity {
            let Some(oldest) = self.entries.iter().min_by_key(|(_, e)| e.2).map(|(k, _)| k.clone()) else {
                break;
            };
            self.entries.remove(&oldest);
        }
    }

    /// Drops what has expired, and lets initial values in that are new.
    fn prepare(&mut self, decl: &StoreDecl) {
        if let Some(ttl) = decl.ttl {
            let ttl = Duration::from_secs(ttl);
            self.entries.retain(|_, e| e.1.elapsed() < ttl);
        }
        for key in &decl.keys {
            if let Some(initial) = &key.initial
                && self.initialised.insert(key.name.clone(), ()).is_none()
                && !self.entries.contains_key(&key.name)
            {
                self.write(decl, &key.name, initial.clone());
            }
        }
    }
}

impl Stores {
    /// Empty stores.
    pub fn new() -> Stores {
        Stores::default()
    }

    /// Whether the store lives and dies with this process.
    pub(crate) fn is_in_process(decl: &StoreDecl) -> bool {
        decl.backend.as_deref().is_none_or(|b| matches!(b, "memory" | "in_memory" | "local" | "dict"))
    }

    fn with<T>(
        &self,
        decl: &StoreDecl,
        key: u32,
        act: impl FnOnce(&mut Store, &Name) -> T,
    ) -> Result<T, String> {
        if let Some(backend) = decl.backend.as_deref().filter(|_| !Stores::is_in_process(decl)) {
            return Err(format!(
                "no handler for store `{}`: the backend `{backend}` is not supported (help: leave `backend` out to keep it in memory)",
                decl.name
            ));
        }
        let Some(key) = decl.keys.get(key as usize) else {
            return Err(format!("store `{}` has no such key", decl.name));
        };
        // A panic while the lock was held can't leave a store half changed in a way that matters.
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(decl.name.clone()).or_default();
        store.prepare(decl);
        Ok(act(store, &key.name))
    }

    /// What a key holds, if anything.
    ///
    /// # Errors
    /// The declaration asks for a backend that there is not.
    pub fn recall(&self, decl: &StoreDecl, key: u32) -> Result<Option<Data>, String> {
        self.with(decl, key, |store, key| store.entries.get(key).map(|e| e.0.clone()))
    }

    /// Writes a key.
    ///
    /// # Errors
    /// The declaration asks for a backend that there is not.
    pub fn remember(&self, decl: &StoreDecl, key: u32, value: Data) -> Result<(), String> {
        self.with(decl, key, |store, key| store.write(decl, key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{KeyDecl, LabelSpec, Num, Type};
    use diagnostics::{FileId, Span};

    fn decl(keys: &[(&str, Option<i64>)], capacity: Option<u64>, ttl: Option<u64>) -> StoreDecl {
        let key = |(name, initial): &(&str, Option<i64>)| KeyDecl {
            name: (*name).into(),
            ty: Type::Num,
            label: LabelSpec::BOTTOM,
            initial: initial.map(|n| Data::Num(Num::from(n))),
        };
        StoreDecl {
            name: "s".into(),
            keys: keys.iter().map(key).collect(),
            capacity,
            ttl,
            backend: None,
            span: Span { file: FileId(0), start: 0, end: 0 },
        }
    }

    fn num(n: i64) -> Data {
        Data::Num(Num::from(n))
    }

    #[tokio::test(start_paused = true)]
    async fn entries_expire() {
        let d = decl(&[("a", Some(1)), ("b", None)], None, Some(60));
        let s = Stores::new();
        assert_eq!(s.recall(&d, 0), Ok(Some(num(1))));
        tokio::time::advance(Duration::from_secs(40)).await;
        s.remember(&d, 1, num(2)).unwrap();
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(s.recall(&d, 0), Ok(None));
        assert_eq!(s.clone().recall(&d, 1), Ok(Some(num(2))));
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(s.recall(&d, 1), Ok(None));
    }

    #[tokio::test]
    async fn a_full_store_expels_what_was_written_longest_ago() {
        let d = decl(&[("a", Some(1)), ("b", None), ("c", None)], Some(2), None);
        let s = Stores::new();
        s.remember(&d, 1, num(2)).unwrap();
        s.remember(&d, 0, num(3)).unwrap();
        s.remember(&d, 2, num(4)).unwrap();
        assert_eq!(
            [s.recall(&d, 0), s.recall(&d, 1), s.recall(&d, 2)],
            [Ok(Some(num(3))), Ok(None), Ok(Some(num(4)))]
        );
    }

    #[tokio::test]
    async fn a_backend_that_there_is_not_is_an_error() {
        let mut d = decl(&[("a", None)], None, None);
        d.backend = Some("redis".into());
        assert!(Stores::new().recall(&d, 0).unwrap_err().contains("`redis` is not supported"));
        assert!(Stores::new().recall(&decl(&[], None, None), 7).is_err());
    }
}
