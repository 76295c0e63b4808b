//! The programs that a run had before the one that it has now.
//!
//! A run may be resumed with a changed program. From then on it is a run of that program: a later resumption
//! compares with the new program, and recorded answers are used as long as requests are unchanged.
//!
//! Invariant: a program is replaced together with the note of what it was, so the two never disagree.

use super::db::{Database, DbError, Statement};
use super::{Journal, JournalError, changed_line, check, now_millis, signed, whole};

/// Resumption of a run with a changed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Number of answers that the run had at the change.
    pub step: u64,
    /// The first line that differs.
    pub what: String,
}

/// A line of the table.
pub(super) struct StoredRow {
    number: i64,
    changed: i64,
    step: i64,
    program: String,
}

impl StoredRow {
    fn checksum(&self) -> [u8; 16] {
        let numbers = [self.number, self.changed, self.step].map(i64::to_le_bytes);
        let mut parts = vec![Some(self.program.as_bytes())];
        parts.extend(numbers.iter().map(|n| Some(&n[..])));
        check(&parts)
    }

    fn insert(&self, run: &str) -> Statement {
        Statement::new(
            "INSERT INTO changes (run, number, changed, step, program, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )
        .with(run)
        .with(self.number)
        .with(self.changed)
        .with(self.step)
        .with(&*self.program)
        .with(self.checksum())
    }
}

/// The programs that a run had, the oldest first.
pub(super) fn of(db: &dyn Database, run: &str) -> Result<Vec<StoredRow>, DbError> {
    let sql = "SELECT number, changed, step, program, checksum FROM changes WHERE run = ?1 ORDER BY number";
    db.all(&Statement::new(sql).with(run), |r| {
        let before = StoredRow { number: r.get(0)?, changed: r.get(1)?, step: r.get(2)?, program: r.get(3)? };
        if r.get::<[u8; 16]>(4)? == before.checksum() { Ok(before) } else { Err(DbError::damaged()) }
    })
}

/// The note that a run has had this program until now.
pub(super) fn note(db: &dyn Database, run: &str, program: String) -> Result<Statement, DbError> {
    let number = of(db, run)?.last().map_or(1, |b| b.number + 1);
    // Requests in flight count as well: that program made them.
    let last = Statement::new("SELECT coalesce(max(step), 0) FROM entries WHERE run = ?1").with(run);
    let step = db.first(&last, |r| r.get(0))?.unwrap_or(0);
    Ok(StoredRow { number, changed: now_millis(), step, program }.insert(run))
}

/// The last step of a run that an earlier program of it may have asked for; 0 if it has always had the same.
pub(super) fn last_step(db: &dyn Database, run: &str) -> Result<i64, DbError> {
    Ok(of(db, run)?.last().map_or(0, |b| b.step))
}

/// A fork of a run at a step had the same programs.
pub(super) fn copy(
    db: &dyn Database,
    run: &str,
    fork: &str,
    step: u64,
) -> Result<impl Iterator<Item = Statement>, DbError> {
    let befores = of(db, run)?.into_iter();
    Ok(befores.map(move |b| StoredRow { step: b.step.min(signed(step)), ..b }.insert(fork)))
}

impl Journal {
    /// Returns the changes of a run's program since the run began, oldest first.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn changes(&self, run: &str) -> Result<Vec<Change>, JournalError> {
        let befores = of(&*self.db, run).map_err(|e| self.failed(&e))?;
        if befores.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.stored(run)?.program;
        let after = befores.iter().skip(1).map(|b| &*b.program).chain([&*now]);
        let change = |(b, after): (&StoredRow, &str)| Change {
            at: b.changed,
            step: whole(b.step),
            what: changed_line(&b.program, after),
        };
        Ok(befores.iter().zip(after).map(change).collect())
    }
}
