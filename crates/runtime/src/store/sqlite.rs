//! Stores in an SQLite file, which outlive the process and may be shared by several.
//!
//! Invariant: every operation is one transaction, so agents in several processes see each other's writes whole and in one order.

use super::{Act, Operation, label_of};
use crate::turn::Turn;
use core_ir::exchange::data_json;
use core_ir::{Data, KeyDecl};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::path::Path;
use std::time::Duration;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS entail_memory (
        store TEXT NOT NULL,
        key TEXT NOT NULL,
        label TEXT NOT NULL,
        value TEXT,                     -- JSON of the exchange format; null when there was a value and is none
        written INTEGER NOT NULL,       -- milliseconds since 1970
        number INTEGER NOT NULL,        -- the order of writes
        PRIMARY KEY (store, key)
    ) STRICT;
";

/// An open file.
#[derive(Debug)]
pub(super) struct File {
    db: Connection,
    turn: Turn,
}

impl File {
    /// Opens the file, or makes it.
    pub(super) fn open(path: &Path) -> Result<File, String> {
        let made = || {
            let mut db = Connection::open(path)?;
            db.busy_timeout(Duration::from_secs(10))?;
            // The file is there now, which its turn needs.
            let turn = Turn::of(path);
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

fn carry_out(db: &mut Connection, operation: Operation) -> Result<Option<Data>, String> {
    let Operation { decl, key, .. } = operation;
    let failed = |e: rusqlite::Error| format!("store `{}`: {}", decl.name, shown(&e));
    let t = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    prepare(&t, &operation).map_err(failed)?;
    let held = t
        .query_row(
            "SELECT label, value FROM entail_memory WHERE store = ?1 AND key = ?2",
            params![&*decl.name, &*key.name],
            |r| Ok((r.get::<_, String>(0)?, r.get::<_, Option<String>>(1)?)),
        )
        .optional()
        .map_err(failed)?;
    if held.as_ref().is_some_and(|(label, _)| *label != label_of(key)) {
        return Err(operation.another_label());
    }
    let result = match &operation.act {
        Act::Remember(value) => {
            write(&t, &operation, key, value).map_err(failed)?;
            None
        }
        Act::Recall => held.and_then(|(_, value)| value).map(|text| operation.of_text(&text)).transpose()?,
    };
    t.commit().map_err(failed)?;
    Ok(result)
}

/// Drops what has expired, and lets initial values in that are new. A dropped entry leaves its row, so that an initial value does not come again.
fn prepare(t: &Transaction, operation: &Operation) -> Result<(), rusqlite::Error> {
    let decl = operation.decl;
    if let Some(expired) = operation.expired() {
        t.execute(
            "UPDATE entail_memory SET value = NULL WHERE store = ?1 AND written <= ?2",
            params![&*decl.name, expired],
        )?;
    }
    for key in &decl.keys {
        let Some(initial) = &key.initial else { continue };
        let known = "SELECT 1 FROM entail_memory WHERE store = ?1 AND key = ?2";
        let known = t.query_row(known, params![&*decl.name, &*key.name], |_| Ok(())).optional()?;
        if known.is_none() {
            write(t, operation, key, initial)?;
        }
    }
    Ok(())
}

fn write(t: &Transaction, operation: &Operation, key: &KeyDecl, value: &Data) -> Result<(), rusqlite::Error> {
    let decl = operation.decl;
    t.execute(
        "INSERT OR REPLACE INTO entail_memory VALUES (?1, ?2, ?3, ?4, ?5,
            (SELECT coalesce(max(number), 0) + 1 FROM entail_memory WHERE store = ?1))",
        params![&*decl.name, &*key.name, label_of(key), data_json(value).to_string(), operation.now],
    )?;
    if let Some(capacity) = decl.capacity {
        t.execute(
            "UPDATE entail_memory SET value = NULL WHERE store = ?1 AND label = ?3 AND value IS NOT NULL AND key NOT IN (
                SELECT key FROM entail_memory WHERE store = ?1 AND label = ?3 AND value IS NOT NULL
                ORDER BY number DESC LIMIT ?2)",
            params![&*decl.name, i64::try_from(capacity).unwrap_or(i64::MAX), label_of(key)],
        )?;
    }
    Ok(())
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
        let turn = Turn::of(&path);
        let writing = turn.take();
        let (says, hears) = mpsc::channel();
        let other = std::thread::spawn(move || says.send(File::open(&path).map(|_| ())));
        assert!(hears.recv_timeout(Duration::from_millis(200)).is_err(), "somebody else has the turn");
        drop(writing);
        assert_eq!(hears.recv().unwrap(), Ok(()));
        other.join().unwrap().unwrap();
    }
}
