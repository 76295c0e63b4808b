//! Records of a server about its runs: the caller's view of the end, and the caller's key under which a run
//! was begun.
//!
//! Entry points: [`Journal::keep_shown`], [`Journal::shown`], [`Journal::run_of_key`] and
//! [`Journal::usage_since`].
//!
//! Invariant: it is the caller's view of the outcome, which the outcome itself, without its label, does not
//! tell.

use super::{Journal, JournalError, parse};
use crate::{Redactor, Usage};
use core_ir::Num;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value as Json;
use std::collections::BTreeMap;

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

    /// Usage of models by each caller's runs that began at this time or later, in milliseconds since 1970:
    /// what was answered. Runs that no server began are left out.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn usage_since(&self, began: i64) -> Result<BTreeMap<String, Usage>, JournalError> {
        let read = || {
            let mut statement = self.db.prepare(
                "SELECT json_extract(runs.settings, '$.caller'), input_tokens, output_tokens, usd
                 FROM entries JOIN runs ON runs.id = entries.run
                 WHERE runs.created >= ?1 AND response IS NOT NULL AND conversation IS NOT NULL
                   AND json_extract(runs.settings, '$.caller') IS NOT NULL",
            )?;
            let rows = statement.query_map([began], |r| {
                Ok((
                    r.get::<_, String>(0)?,
                    r.get::<_, i64>(1)?,
                    r.get::<_, i64>(2)?,
                    r.get::<_, Option<String>>(3)?,
                ))
            })?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let mut all: BTreeMap<String, Usage> = BTreeMap::new();
        for (caller, input, output, usd) in read().map_err(|e| self.failed(&e))? {
            let used =
                all.entry(caller).or_insert_with(|| Usage { usd: Some(Num::ZERO), ..Usage::default() });
            used.model_calls = used.model_calls.saturating_add(1);
            used.input_tokens = used.input_tokens.saturating_add(super::whole(input));
            used.output_tokens = used.output_tokens.saturating_add(super::whole(output));
            if let Some(usd) = usd.and_then(|text| text.parse::<Num>().ok()) {
                used.usd = used.usd.take().and_then(|sum| sum.add(&usd).ok());
            }
        }
        Ok(all)
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
