//! Lists of runs, page by page.
//!
//! Entry point: [`Journal::page`].

use super::db::Statement;
use super::{Journal, JournalError, RUN_COLUMNS, RunInfo, RunStatus};

/// Position in a list of runs: the run that the page before ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCursor {
    /// Start of that run, in milliseconds since 1970.
    pub created: i64,
    /// Its identifier.
    pub id: String,
}

/// Conditions on the runs of a list.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// The statuses; any if empty.
    pub statuses: Vec<RunStatus>,
    /// Part of the name.
    pub name: Option<String>,
    /// Code of the error that the run ended with, such as `flow`.
    pub error: Option<String>,
    /// The runs after this one.
    pub after: Option<RunCursor>,
}

impl Journal {
    /// The newest runs that meet the conditions, at most `most`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn page(&self, filter: &RunFilter, most: u32) -> Result<Vec<RunInfo>, JournalError> {
        let error = self.db.error_code();
        let statuses: Vec<String> = filter.statuses.iter().map(|s| format!("'{}'", s.as_str())).collect();
        let of_status = match &statuses[..] {
            [] => String::new(),
            some => format!("AND status IN ({})", some.join(", ")),
        };
        // The rows of a page are found by the index, and only they are read.
        let sql = format!(
            "SELECT {RUN_COLUMNS} FROM runs JOIN (
                SELECT id, created FROM runs
                WHERE (?1 IS NULL OR created < ?1 OR (created = ?1 AND id < ?2))
                    AND (?3 IS NULL OR name LIKE ?3 ESCAPE '\\')
                    AND (?4 IS NULL OR {error} = ?4) {of_status}
                ORDER BY created DESC, id DESC LIMIT {most}
             ) AS page ON page.id = runs.id
             ORDER BY page.created DESC, page.id DESC"
        );
        let after = filter.after.as_ref();
        let query = Statement::new(sql)
            .with(after.map(|a| a.created))
            .with(after.map(|a| &*a.id))
            .with(filter.name.as_deref().map(containing))
            .with(filter.error.as_deref());
        self.selected(&query)
    }

    /// The number of runs of each status.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn counts(&self) -> Result<Vec<(RunStatus, u64)>, JournalError> {
        let query = Statement::new("SELECT status, count(*) FROM runs GROUP BY status ORDER BY status");
        let read =
            self.db.all(&query, |r| Ok((RunStatus::named(&r.get::<String>(0)?), super::whole(r.get(1)?))));
        read.map_err(|e| self.failed(&e))
    }

    /// A text that differs whenever a list of runs may have changed.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn state(&self) -> Result<String, JournalError> {
        let query = Statement::new("SELECT coalesce(max(created), 0) FROM runs");
        let newest = self.db.first(&query, |r| r.get::<i64>(0)).map_err(|e| self.failed(&e))?;
        let counts = self.counts()?.into_iter().map(|(status, n)| format!("-{}-{n}", status.as_str()));
        Ok(format!("{:x}{}", newest.unwrap_or(0), counts.collect::<String>()))
    }

    /// A text that differs whenever something of a run may have changed: its answers and requests, its
    /// status, what it asks people.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn revision(&self, run: &str) -> Result<String, JournalError> {
        let query = Statement::new(
            "SELECT status, coalesce(ended, 0),
                (SELECT count(*) FROM entries WHERE run = ?1),
                (SELECT count(*) FROM entries WHERE run = ?1 AND response IS NULL),
                (SELECT coalesce(max(step), 0) FROM entries WHERE run = ?1),
                (SELECT count(*) FROM approvals WHERE run = ?1 AND used IS NULL),
                (SELECT count(*) FROM approvals JOIN answers ON answers.token = approvals.token WHERE run = ?1)
             FROM runs WHERE id = ?1",
        );
        let read = self.db.first(&query.with(run), |r| {
            let numbers = [r.get::<i64>(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?, r.get(6)?];
            let numbers = numbers.map(|n| format!("{n:x}"));
            Ok(format!("{}-{}", r.get::<String>(0)?, numbers.join("-")))
        });
        let found = read.map_err(|e| self.failed(&e))?;
        found.ok_or_else(|| JournalError::new(format!("run `{run}` not found in `{}`", self.db.shown())))
    }
}

/// The pattern of texts that contain this one.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for c in text.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
