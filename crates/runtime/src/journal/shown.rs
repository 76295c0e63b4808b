//! Records of a server about its runs: the caller's view of the end, and the caller's key under which a run
//! was begun.
//!
//! Entry points: [`Journal::keep_shown`], [`Journal::shown`] and [`Journal::run_of_key`].
//!
//! Invariant: it is the caller's view of the outcome, which the outcome itself, without its label, does not
//! tell.

use super::{Journal, JournalError, parse};
use crate::Redactor;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value as Json;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS shown (
        run TEXT PRIMARY KEY,
        outcome TEXT NOT NULL           -- JSON
    ) STRICT;
    CREATE INDEX IF NOT EXISTS runs_key ON runs
        (json_extract(settings, '$.caller'), json_extract(settings, '$.idempotencyKey'))
        WHERE json_extract(settings, '$.idempotencyKey') IS NOT NULL";

pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(TABLE)
}

pub(super) fn forget(db: &Connection, run: &str) -> rusqlite::Result<()> {
    db.execute("DELETE FROM shown WHERE run = ?1", [run]).map(|_| ())
}

impl Journal {
    /// The run that a caller began under an idempotency key, and the digest of that request.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn run_of_key(&self, caller: &str, key: &str) -> Result<Option<(String, String)>, JournalError> {
        let found = self.db.query_row(
            "SELECT id, json_extract(settings, '$.requestDigest') FROM runs
             WHERE json_extract(settings, '$.idempotencyKey') IS NOT NULL
               AND json_extract(settings, '$.caller') = ?1 AND json_extract(settings, '$.idempotencyKey') = ?2",
            [caller, key],
            |r| Ok((r.get(0)?, r.get::<_, Option<String>>(1)?.unwrap_or_default())),
        );
        found.optional().map_err(|e| self.failed(&e))
    }

    /// Keeps what the caller of a run is told of its end.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn keep_shown(&self, run: &str, outcome: &Json, redactor: &Redactor) -> Result<(), JournalError> {
        let mut outcome = outcome.clone();
        redactor.json(&mut outcome);
        let _turn = self.turn.take();
        let written = self.db.execute(
            "INSERT OR REPLACE INTO shown (run, outcome) VALUES (?1, ?2)",
            params![run, outcome.to_string()],
        );
        written.map(|_| ()).map_err(|e| self.failed(&e))
    }

    /// Returns what the caller of a run was told of its end, if that was kept.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn shown(&self, run: &str) -> Result<Option<Json>, JournalError> {
        let found =
            self.db.query_row("SELECT outcome FROM shown WHERE run = ?1", [run], |r| r.get::<_, String>(0));
        let found = found.optional().map_err(|e| self.failed(&e))?;
        Ok(found.and_then(|text| parse(&text).ok()))
    }
}
