//! Records of a server about its runs: the caller's view of the end, and the caller's key under which a run
//! was begun.
//!
//! Entry points: [`Journal::keep_shown`], [`Journal::shown`], [`Journal::run_of_key`] and
//! [`Journal::usage_since`].
//!
//! Invariant: it is the caller's view of the outcome, which the outcome itself, without its label, does not
//! tell.

use super::db::Statement;
use super::{Journal, JournalError, parse};
use crate::{Redactor, Usage};
use core_ir::Num;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Deletes what is kept of a run.
pub(super) fn forget(run: &str) -> Statement {
    Statement::new("DELETE FROM shown WHERE run = ?1").with(run)
}

impl Journal {
    /// The run that a caller began under an idempotency key, and the digest of that request.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn run_of_key(&self, caller: &str, key: &str) -> Result<Option<(String, String)>, JournalError> {
        let [owner, name, digest] = ["caller", "idempotencyKey", "requestDigest"].map(|f| self.db.field(f));
        let sql = format!(
            "SELECT id, {digest} FROM runs WHERE {name} IS NOT NULL AND {owner} = ?1 AND {name} = ?2"
        );
        let query = Statement::new(sql).with(caller).with(key);
        let found =
            self.db.first(&query, |r| Ok((r.get(0)?, r.get::<Option<String>>(1)?.unwrap_or_default())));
        found.map_err(|e| self.failed(&e))
    }

    /// Usage of models by each caller's runs that began at this time or later, in milliseconds since 1970:
    /// what was answered. Runs that no server began are left out.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn usage_since(&self, began: i64) -> Result<BTreeMap<String, Usage>, JournalError> {
        let of = self.db.field("caller");
        let sql = format!(
            "SELECT {of}, input_tokens, output_tokens, usd
             FROM entries JOIN runs ON runs.id = entries.run
             WHERE runs.created >= ?1 AND response IS NOT NULL AND conversation IS NOT NULL AND {of} IS NOT NULL"
        );
        let read = self.db.all(&Statement::new(sql).with(began), |r| {
            Ok((r.get::<String>(0)?, r.get::<i64>(1)?, r.get::<i64>(2)?, r.get::<Option<String>>(3)?))
        });
        let mut all: BTreeMap<String, Usage> = BTreeMap::new();
        for (caller, input, output, usd) in read.map_err(|e| self.failed(&e))? {
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
        let keep = Statement::new(
            "INSERT INTO shown (run, outcome) VALUES (?1, ?2)
             ON CONFLICT (run) DO UPDATE SET outcome = excluded.outcome",
        );
        let keep = keep.with(run).with(outcome.to_string());
        self.db.write(None, &[keep]).map(|_| ()).map_err(|e| self.failed(&e))
    }

    /// Returns what the caller of a run was told of its end, if that was kept.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn shown(&self, run: &str) -> Result<Option<Json>, JournalError> {
        let query = Statement::new("SELECT outcome FROM shown WHERE run = ?1").with(run);
        let found = self.db.first(&query, |r| r.get::<String>(0)).map_err(|e| self.failed(&e))?;
        Ok(found.and_then(|text| parse(&text).ok()))
    }
}
