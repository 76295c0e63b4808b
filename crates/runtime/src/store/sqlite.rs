//! Stores in an SQLite file, which outlive the process and may be shared by several.
//!
//! Invariant: every operation is one transaction, so agents in several processes see each other's writes
//! whole and in one order.

use super::{KeyOp, Operation, label_of};
use crate::write_lock::WriteLock;
use core_ir::exchange::data_json;
use core_ir::{Data, Name};
use machine::store::{EntryLimits, initial, kept};
use rusqlite::{Connection, TransactionBehavior, params};
use std::path::Path;
use std::time::Duration;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS entail_entries (
        owner TEXT NOT NULL,            -- the caller and the program, each after its length and a colon; '' for the local user
        store TEXT NOT NULL,
        label TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,            -- JSON of the exchange format
        expires INTEGER,                -- milliseconds since 1970
        capacity INTEGER,               -- how many entries of the account there may be, up to this one
        number INTEGER NOT NULL,        -- the order of writes in the account
        PRIMARY KEY (owner, store, label, key)
    ) STRICT;
";

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    db: Connection,
    turn: WriteLock,
}

impl File {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<File, String> {
        let made = || {
            let mut db = Connection::open(path)?;
            db.busy_timeout(Duration::from_secs(10))?;
            // The file is there now, which its turn needs.
            let turn = WriteLock::of(path);
            let writing = turn.take();
            db.pragma_update(None, "journal_mode", "WAL")?;
            let t = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            t.execute_batch(TABLES)?;
            t.commit()?;
            drop(writing);
            Ok(File { db, turn })
        };
        made().map_err(|e: rusqlite::Error| {
            format!("cannot use the memory `{}`: {}", path.display(), shown(&e))
        })
    }

    /// Carries out an operation.
    pub(super) fn carry_out(&mut self, operation: Operation) -> Result<Option<Data>, String> {
        let _writing = self.turn.take();
        carry_out(&mut self.db, operation)
    }
}

fn shown(e: &rusqlite::Error) -> String {
    diagnostics::clip_to(&e.to_string(), 200)
}

/// An entry without its value.
struct Entry {
    key: Name,
    limits: EntryLimits,
    number: i64,
}

fn carry_out(db: &mut Connection, operation: Operation) -> Result<Option<Data>, String> {
    let Operation { owner, decl, key, now, .. } = operation;
    let failed = |e: rusqlite::Error| format!("store `{}`: {}", decl.name, shown(&e));
    let label = label_of(key);
    let t = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let entries = || -> rusqlite::Result<Vec<Entry>> {
        let mut rows = t.prepare_cached(
            "SELECT key, expires, capacity, number FROM entail_entries
             WHERE owner = ?1 AND store = ?2 AND label = ?3 ORDER BY number DESC",
        )?;
        let entries = rows.query_map(params![owner, &*decl.name, label], |r| {
            let capacity: Option<i64> = r.get(2)?;
            let capacity = capacity.map(|c| u64::try_from(c).unwrap_or(0));
            let limits = EntryLimits { expires: r.get(1)?, capacity };
            Ok(Entry { key: r.get::<_, String>(0)?.into(), limits, number: r.get(3)? })
        })?;
        entries.collect()
    };
    let entries = entries().map_err(failed)?;
    let last = entries.first().map_or(0, |e| e.number);
    let remain = kept(&entries, |e| e.limits, now);
    let result = match &operation.act {
        KeyOp::Recall if remain.iter().any(|e| e.key == key.name) => {
            let held = t.query_row(
                "SELECT value FROM entail_entries WHERE owner = ?1 AND store = ?2 AND label = ?3 AND key = ?4",
                params![owner, &*decl.name, label, &*key.name],
                |r| r.get::<_, String>(0),
            );
            Some(operation.of_text(&held.map_err(failed)?)?)
        }
        KeyOp::Recall => {
            let written: Vec<Name> = remain.iter().map(|e| e.key.clone()).collect();
            initial(decl, key, &written, now).cloned()
        }
        KeyOp::Remember(value) => {
            let written =
                Entry { key: key.name.clone(), limits: EntryLimits::of(decl, now), number: last + 1 };
            let all = std::iter::once(&written).chain(remain.into_iter().filter(|e| e.key != key.name));
            let remain = kept(all, |e| e.limits, now);
            let write = || -> rusqlite::Result<()> {
                t.execute(
                    "INSERT OR REPLACE INTO entail_entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                    params![
                        owner,
                        &*decl.name,
                        label,
                        &*key.name,
                        data_json(value).to_string(),
                        written.limits.expires,
                        written.limits.capacity.map(|c| i64::try_from(c).unwrap_or(i64::MAX)),
                        written.number,
                    ],
                )?;
                for entry in std::iter::once(&written).chain(&entries) {
                    if remain.iter().all(|e| e.key != entry.key) {
                        t.execute(
                            "DELETE FROM entail_entries WHERE owner = ?1 AND store = ?2 AND label = ?3 AND key = ?4",
                            params![owner, &*decl.name, label, &*entry.key],
                        )?;
                    }
                }
                Ok(())
            };
            write().map_err(failed)?;
            None
        }
    };
    t.commit().map_err(failed)?;
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn agents_of_one_process_wait_for_their_turn_at_a_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.db");
        std::fs::write(&path, "").unwrap();
        let turn = WriteLock::of(&path);
        let writing = turn.take();
        let (says, hears) = mpsc::channel();
        let other = std::thread::spawn(move || says.send(File::open(&path).map(|_| ())));
        assert!(hears.recv_timeout(Duration::from_millis(200)).is_err(), "somebody else has the turn");
        drop(writing);
        assert_eq!(hears.recv().unwrap(), Ok(()));
        other.join().unwrap().unwrap();
    }
}
