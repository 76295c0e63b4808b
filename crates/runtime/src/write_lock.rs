//! Turns of this process's threads to write to a file.
//!
//! Entry point: [`WriteLock`]. SQLite admits one writer at a time; another one retries at intervals and fails
//! after ten seconds. The order is random, so that some of hundreds of runs that share a journal or store
//! would fail needlessly. The writers of one process therefore wait for each other here, without a limit.
//! SQLite arbitrates between processes, which are few.
//!
//! Invariant: a holder of one file's lock never waits for another lock.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// The turns of the files in use.
static TURNS: LazyLock<Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// The turn to write to a file: the same for all in this process who write to it.
#[derive(Clone, Debug)]
pub(crate) struct WriteLock(Arc<Mutex<()>>);

impl WriteLock {
    /// Returns the lock of an existing file.
    pub(crate) fn of(path: &Path) -> WriteLock {
        // A file that can't be found is not written to, so any name will do.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&path).and_then(Weak::upgrade) {
            return WriteLock(turn);
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(path, Arc::downgrade(&turn));
        WriteLock(turn)
    }

    /// Waits for the turn, which lasts as long as what is given.
    pub(crate) fn take(&self) -> MutexGuard<'_, ()> {
        // SQLite rolls back changes that a panic left unfinished.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_turn_as_long_as_somebody_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("a"), dir.path().join("b"));
        for path in [&file, &other] {
            std::fs::write(path, "").unwrap();
        }
        let turn = WriteLock::of(&file);
        let same = WriteLock::of(&dir.path().join(".").join("a"));
        assert!(Arc::ptr_eq(&turn.0, &same.0) && !Arc::ptr_eq(&turn.0, &WriteLock::of(&other).0));
        let held = turn.take();
        assert!(same.0.try_lock().is_err());
        drop(held);
        assert!(same.0.try_lock().is_ok());
    }
}
