//! Stores: in this process, or in files that outlive it. They behave alike.

mod sqlite;

use core_ir::{Data, Name, StoreDecl};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Stores by name; stores of one name are one store. A clone is the same stores, so what one run remembers another
/// can recall as long as they share it.
///
/// A key's initial value is an entry like others: it is there from the first time its store is used, counts
/// towards the capacity and expires. An entry that does not fit expels the one written longest ago.
#[derive(Clone, Debug)]
pub struct Stores {
    stores: Arc<Mutex<HashMap<Name, Store>>>,
    /// Those that are kept in files.
    files: Arc<HashMap<Name, PathBuf>>,
    open: Arc<Mutex<HashMap<PathBuf, rusqlite::Connection>>>,
    /// A moment on both clocks: that of the world, which other processes share, and ours, which never jumps.
    epoch: (Duration, Instant),
}

impl Default for Stores {
    fn default() -> Stores {
        let world = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Stores {
            stores: Arc::default(),
            files: Arc::default(),
            open: Arc::default(),
            epoch: (world, Instant::now()),
        }
    }
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

    /// With these stores in SQLite files (`[stores.NAME]` of `entail.toml`).
    #[must_use]
    pub fn with_files(mut self, files: impl IntoIterator<Item = (Name, PathBuf)>) -> Stores {
        self.files = Arc::new(files.into_iter().collect());
        self
    }

    /// Whether the store lives and dies with this process.
    pub(crate) fn is_in_process(&self, decl: &StoreDecl) -> bool {
        !self.files.contains_key(&decl.name)
    }

    fn act(&self, decl: &StoreDecl, key: u32, act: sqlite::Act) -> Result<Option<Data>, String> {
        let Some(key) = decl.keys.get(key as usize) else {
            return Err(format!("store `{}` has no such key", decl.name));
        };
        if let Some(path) = self.files.get(&decl.name) {
            // A panic while the lock was held rolls the transaction back.
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let db = match open.entry(path.clone()) {
                std::collections::hash_map::Entry::Occupied(e) => e.into_mut(),
                std::collections::hash_map::Entry::Vacant(e) => e.insert(sqlite::open(path)?),
            };
            let now = self.epoch.0 + self.epoch.1.elapsed();
            return sqlite::carry_out(db, decl, key, act, i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        }
        let here = |b: &&str| !matches!(*b, "memory" | "in_memory" | "local" | "dict");
        if let Some(backend) = decl.backend.as_deref().filter(here) {
            return Err(format!(
                "no handler for store `{0}`: the backend `{backend}` is not configured (help: add `[stores.{0}]` with \
                 `sqlite = \"memory.db\"` to `entail.toml`, or leave `backend` out to keep it in memory)",
                decl.name
            ));
        }
        // A panic while the lock was held can't leave a store half changed in a way that matters.
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = stores.entry(decl.name.clone()).or_default();
        store.prepare(decl);
        Ok(match act {
            sqlite::Act::Recall => store.entries.get(&key.name).map(|e| e.0.clone()),
            sqlite::Act::Remember(value) => {
                store.write(decl, &key.name, value);
                None
            }
        })
    }

    /// What a key holds, if anything.
    ///
    /// # Errors
    /// The declaration asks for a backend that is not configured, or the file can't be used, or holds what is not of the key's type and label.
    pub fn recall(&self, decl: &StoreDecl, key: u32) -> Result<Option<Data>, String> {
        self.act(decl, key, sqlite::Act::Recall)
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Stores::recall`].
    pub fn remember(&self, decl: &StoreDecl, key: u32, value: Data) -> Result<(), String> {
        self.act(decl, key, sqlite::Act::Remember(value)).map(|_| ())
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

    /// Empty stores of each backend, and what has to live as long as they do.
    fn backends() -> Vec<(Stores, Option<tempfile::TempDir>)> {
        let dir = tempfile::tempdir().unwrap();
        let file = Stores::new().with_files([("s".into(), dir.path().join("m.db"))]);
        vec![(Stores::new(), None), (file, Some(dir))]
    }

    #[tokio::test(start_paused = true)]
    async fn entries_expire() {
        for (s, _dir) in backends() {
            let d = decl(&[("a", Some(1)), ("b", None)], None, Some(60));
            assert_eq!(s.recall(&d, 0), Ok(Some(num(1))));
            tokio::time::advance(Duration::from_secs(40)).await;
            s.remember(&d, 1, num(2)).unwrap();
            tokio::time::advance(Duration::from_secs(40)).await;
            assert_eq!(s.recall(&d, 0), Ok(None));
            assert_eq!(s.clone().recall(&d, 1), Ok(Some(num(2))));
            tokio::time::advance(Duration::from_secs(20)).await;
            assert_eq!(s.recall(&d, 1), Ok(None));
            // An initial value comes once.
            assert_eq!(s.recall(&d, 0), Ok(None));
        }
    }

    #[tokio::test]
    async fn a_full_store_expels_what_was_written_longest_ago() {
        for (s, _dir) in backends() {
            let d = decl(&[("a", Some(1)), ("b", None), ("c", None)], Some(2), None);
            s.remember(&d, 1, num(2)).unwrap();
            s.remember(&d, 0, num(3)).unwrap();
            s.remember(&d, 2, num(4)).unwrap();
            assert_eq!(
                [s.recall(&d, 0), s.recall(&d, 1), s.recall(&d, 2)],
                [Ok(Some(num(3))), Ok(None), Ok(Some(num(4)))]
            );
        }
    }

    #[tokio::test]
    async fn agents_on_one_store_see_whole_writes() {
        for (s, _dir) in backends() {
            let d = decl(&[("a", None), ("b", None)], None, None);
            let agents = (0..8).map(|agent| {
                let (s, d) = (s.clone(), d.clone());
                std::thread::spawn(move || {
                    for i in 0..20 {
                        let both = Data::Num(Num::from(agent * 1000 + i));
                        s.remember(&d, (agent % 2) as u32, both).unwrap();
                        let held = s.recall(&d, (agent % 2) as u32).unwrap().unwrap();
                        let Data::Num(n) = held else { panic!("a number") };
                        assert_eq!(n.to_i64().unwrap() / 1000 % 2, agent % 2);
                    }
                })
            });
            agents.collect::<Vec<_>>().into_iter().for_each(|a| a.join().unwrap());
        }
    }

    #[tokio::test]
    async fn a_file_outlives_its_process_and_keeps_types_and_labels() {
        let dir = tempfile::tempdir().unwrap();
        let fresh = || Stores::new().with_files([("s".into(), dir.path().join("m.db"))]);
        let d = decl(&[("a", None)], None, None);
        let third = Data::Num(Num::from(1).div(&Num::from(3)).unwrap());
        fresh().remember(&d, 0, third.clone()).unwrap();
        assert_eq!(fresh().recall(&d, 0), Ok(Some(third)));
        // Two at once, as two processes would.
        let (one, other) = (fresh(), fresh());
        one.remember(&d, 0, num(1)).unwrap();
        other.remember(&d, 0, num(2)).unwrap();
        assert_eq!(one.recall(&d, 0), Ok(Some(num(2))));
        let mut wrong = d.clone();
        wrong.keys[0].ty = Type::Str;
        assert!(one.recall(&wrong, 0).unwrap_err().contains("not of its type Str"));
        let mut wrong = d;
        wrong.keys[0].label = LabelSpec::TOP;
        assert!(one.recall(&wrong, 0).unwrap_err().contains("another label"));
        let none = Stores::new().with_files([("s".into(), dir.path().join("no/such/m.db"))]);
        assert!(none.recall(&wrong, 0).unwrap_err().contains("cannot use the memory"));
    }

    #[tokio::test]
    async fn a_backend_that_there_is_not_is_an_error() {
        let mut d = decl(&[("a", None)], None, None);
        d.backend = Some("redis".into());
        assert!(Stores::new().recall(&d, 0).unwrap_err().contains("`redis` is not configured"));
        assert!(Stores::new().recall(&decl(&[], None, None), 7).is_err());
    }
}
