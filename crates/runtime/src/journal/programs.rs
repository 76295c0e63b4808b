//! Programs as JSON, for views of runs without the files of the program.
//!
//! Entry point: [`Journal::kept_program`]. A program is kept once for all of its runs.
//!
//! Invariant: the name of a kept program is the digest of its text, and the settings of a run, which have a
//! digest of their own, have that name.
//! Invariant: a program with a secret in it is not kept: without the secret its places would be wrong.

use super::db::{Database, DbError, Statement};
use super::{Journal, JournalError, hash, parse};
use crate::Redactor;
use serde_json::Value as Json;

/// Field of the settings of a run: the name of its program.
pub(super) const KEPT: &str = "kept";

/// Deletes the programs that no run has.
pub(super) fn forget(db: &dyn Database) -> Statement {
    let kept = db.field(KEPT);
    Statement::new(format!(
        "DELETE FROM programs WHERE NOT EXISTS (SELECT 1 FROM runs WHERE {kept} = programs.digest)"
    ))
}

/// Puts the name of a program into the settings of a run. Returns the statement that keeps the program, if it
/// is not kept yet.
pub(super) fn keep(
    db: &dyn Database,
    settings: &mut Json,
    program: Option<&str>,
    redactor: &Redactor,
) -> Result<Option<Statement>, DbError> {
    let Json::Object(settings) = settings else { return Ok(None) };
    settings.remove(KEPT);
    let Some(program) = program.filter(|text| redactor.text(text) == **text) else { return Ok(None) };
    let digest = hash(program);
    let known = Statement::new("SELECT digest FROM programs WHERE digest = ?1").with(&digest);
    let is_known = db.first(&known, |r| r.get::<String>(0))?.is_some();
    let keep =
        Statement::new("INSERT INTO programs (digest, body) VALUES (?1, ?2) ON CONFLICT (digest) DO NOTHING");
    let keep = (!is_known).then(|| keep.with(&digest).with(program));
    settings.insert(KEPT.into(), digest.into());
    Ok(keep)
}

impl Journal {
    /// The program of a run as it was given with [`super::RunIdentity::kept`]; `None` if none was kept.
    ///
    /// # Errors
    /// There is no such run, or the program is not what was written.
    pub fn kept_program(&self, run: &str) -> Result<Option<Json>, JournalError> {
        let settings = self.settings(run)?;
        let Some(digest) = settings[KEPT].as_str() else { return Ok(None) };
        let query = Statement::new("SELECT body FROM programs WHERE digest = ?1").with(digest);
        let found = self.db.first(&query, |r| r.get::<String>(0)).map_err(|e| self.failed(&e))?;
        let intact = found.filter(|body| hash(body) == digest).and_then(|body| parse(&body).ok());
        intact.map(Some).ok_or_else(|| self.failed(&DbError::damaged()))
    }
}
