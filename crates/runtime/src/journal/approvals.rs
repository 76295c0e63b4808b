//! Questions that wait for a person, in the file of the journal, so that they can be answered by another process and after this one has ended.
//!
//! Entry points: [`ApprovalDesk`] for a run that asks, [`Journal::waiting`] and [`Journal::decide`] for whoever answers.
//!
//! Invariant: a question is named by everything that it is about: the run, the request in it, the tool, its arguments and their labels. An answer is
//! to that name, so it approves no other call, and a question is answered once.
//! Invariant: a question that has expired can't be approved, nor can an approval be used that has.

use super::{Journal, JournalError, hash, now_millis, parse, signed};
use crate::Approval;
use core_ir::exchange::data_json;
use machine::RequestId;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Value as Json, json};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const TABLE: &str = "
    CREATE TABLE IF NOT EXISTS approvals (
        run TEXT NOT NULL,
        strand INTEGER NOT NULL,
        number INTEGER NOT NULL,
        token TEXT NOT NULL,            -- what is asked, as a hash
        tool TEXT NOT NULL,
        args TEXT NOT NULL,             -- JSON: names, values, labels
        asked INTEGER NOT NULL,         -- milliseconds since 1970
        expires INTEGER NOT NULL,
        verdict TEXT,                   -- approved, denied; null while it waits
        reason TEXT,
        decided INTEGER,
        decided_by TEXT,
        used INTEGER,                   -- when the run took the answer
        PRIMARY KEY (run, strand, number)
    ) STRICT";

pub(super) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(TABLE)
}

pub(super) fn forget(db: &Connection, run: &str) -> rusqlite::Result<()> {
    db.execute("DELETE FROM approvals WHERE run = ?1", [run]).map(|_| ())
}

/// A question that waits, or has waited, for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Names the question; a beginning of it that no other question has is enough.
    pub token: String,
    /// The run that asks.
    pub run: String,
    /// The tool that it wants to call.
    pub tool: String,
    /// With which arguments: a list of objects with `name`, `value` and `label`.
    pub args: Json,
    /// When it asked, in milliseconds since 1970.
    pub asked: i64,
    /// Until when it can be answered.
    pub expires: i64,
    /// `approved` or `denied`; `None` while it waits.
    pub verdict: Option<String>,
}

/// What a person says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call may be made.
    Approve,
    /// It may not, and perhaps why.
    Deny(Option<String>),
}

/// The columns that [`question`] takes.
const QUESTION: &str = "token, run, tool, args, asked, expires, verdict";

fn question(r: &rusqlite::Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting {
        token: r.get(0)?,
        run: r.get(1)?,
        tool: r.get(2)?,
        args: parse(&r.get::<_, String>(3)?).unwrap_or_default(),
        asked: r.get(4)?,
        expires: r.get(5)?,
        verdict: r.get(6)?,
    })
}

impl Journal {
    /// The questions of a run, or of all runs, that wait for an answer, the oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn waiting(&self, run: Option<&str>) -> Result<Vec<Waiting>, JournalError> {
        let read = || {
            let sql = format!(
                "SELECT {QUESTION} FROM approvals
                 WHERE verdict IS NULL AND expires > ?1 AND (?2 IS NULL OR run = ?2) ORDER BY asked, token"
            );
            let mut statement = self.db.prepare(&sql)?;
            let rows = statement.query_map(params![now_millis(), run], question)?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|e| self.failed(&e))
    }

    /// A question by its whole name, whether it waits or not.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn question(&self, token: &str) -> Result<Option<Waiting>, JournalError> {
        let sql = format!("SELECT {QUESTION} FROM approvals WHERE token = ?1");
        self.db.query_row(&sql, [token], question).optional().map_err(|e| self.failed(&e))
    }

    /// Answers a question, once. `by` says who, for the journal.
    ///
    /// # Errors
    /// There is no such question, or it has expired, or it was answered before.
    pub fn decide(&mut self, token: &str, decision: &Decision, by: &str) -> Result<(), JournalError> {
        let (verdict, reason) = match decision {
            Decision::Approve => ("approved", None),
            Decision::Deny(reason) => ("denied", reason.as_deref()),
        };
        let turn = self.turn.take();
        let changed = self.db.execute(
            "UPDATE approvals SET verdict = ?2, reason = ?3, decided = ?4, decided_by = ?5
             WHERE token = ?1 AND verdict IS NULL AND expires > ?4",
            params![token, verdict, reason, now_millis(), by],
        );
        drop(turn);
        if changed.map_err(|e| self.failed(&e))? == 1 {
            return Ok(());
        }
        let found = self.db.query_row("SELECT verdict FROM approvals WHERE token = ?1", [token], |r| {
            r.get::<_, Option<String>>(0)
        });
        let why = match found.optional().map_err(|e| self.failed(&e))? {
            None => "there is no such question; the run may ask something else by now".to_string(),
            Some(None) => "the question has expired; resume the run, and it is asked anew".to_string(),
            Some(Some(verdict)) => format!("the question has been answered already: {verdict}"),
        };
        Err(JournalError::new(why))
    }
}

/// Where the questions of a run lie until somebody answers.
#[derive(Clone)]
pub struct ApprovalDesk {
    path: PathBuf,
    lifetime: Duration,
    stays: bool,
    journal: Arc<Mutex<Option<Journal>>>,
}

/// A question on the desk.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    token: String,
    /// When it can't be answered any more, in milliseconds since 1970.
    expires: i64,
}

impl ApprovalDesk {
    /// How often a run looks whether something was written.
    const LOOK: Duration = Duration::from_millis(250);

    /// The desk of a journal. Questions can be answered for `lifetime`.
    pub fn new(journal: impl Into<PathBuf>, lifetime: Duration) -> ApprovalDesk {
        ApprovalDesk { path: journal.into(), lifetime, stays: true, journal: Arc::default() }
    }

    /// The run does not stay to wait: it ends, and is resumed when its question has been answered.
    #[must_use]
    pub fn leaving(self) -> ApprovalDesk {
        ApprovalDesk { stays: false, ..self }
    }

    pub(crate) fn stays(&self) -> bool {
        self.stays
    }

    fn with<T>(&self, f: impl FnOnce(&Journal) -> rusqlite::Result<T>) -> Result<T, String> {
        let mut slot = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = match &mut *slot {
            Some(journal) => journal,
            None => slot.insert(Journal::existing(&self.path).map_err(|e| e.message)?),
        };
        f(journal)
            .map_err(|e| format!("the journal `{}` can't be used: {}", self.path.display(), super::cause(&e)))
    }

    /// Puts a question on the desk. The same question of the same run that lies there already, and has not expired, is that one: it may have been
    /// answered while the run was away.
    pub(crate) fn put(&self, run: &str, id: RequestId, approval: &Approval) -> Result<Question, String> {
        let args: Vec<Json> = approval
            .args
            .iter()
            .map(|a| json!({"name": &*a.name, "value": data_json(&a.value), "label": data_json(&a.label)}))
            .collect();
        let args = Json::Array(args).to_string();
        let about = json!([run, format!("{:x}", id.strand), id.number, &*approval.tool, args]);
        let token = hash(&about.to_string())[..20].to_string();
        let now = now_millis();
        let expires =
            now.saturating_add(signed(u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX)));
        let expires = self.with(|Journal { db, turn, .. }| {
            let _turn = turn.take();
            // What has expired, and what the request asked when the program was another, is forgotten.
            db.execute(
                "DELETE FROM approvals WHERE run = ?1 AND strand = ?2 AND number = ?3
                 AND (token <> ?4 OR expires <= ?5 OR used IS NOT NULL)",
                params![run, id.strand.cast_signed(), id.number, token, now],
            )?;
            db.execute(
                "INSERT OR IGNORE INTO approvals (run, strand, number, token, tool, args, asked, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![run, id.strand.cast_signed(), id.number, token, &*approval.tool, args, now, expires],
            )?;
            // That of the question which lay there, if it did.
            db.query_row("SELECT expires FROM approvals WHERE token = ?1", [&token], |r| r.get(0))
        })?;
        Ok(Question { token, expires })
    }

    /// The answer, if there is one that can be used; taking it is using it.
    pub(crate) fn take(&self, question: &Question) -> Option<Result<(), String>> {
        let now = now_millis();
        let looked = self.with(|Journal { db, turn, .. }| {
            let found = db.query_row(
                "SELECT verdict, reason, expires FROM approvals WHERE token = ?1 AND used IS NULL",
                [&question.token],
                |r| Ok((r.get::<_, Option<String>>(0)?, r.get::<_, Option<String>>(1)?, r.get::<_, i64>(2)?)),
            );
            let found = found.optional()?;
            if matches!(&found, Some((Some(_), ..))) {
                let _turn = turn.take();
                db.execute("UPDATE approvals SET used = ?2 WHERE token = ?1", params![question.token, now])?;
            }
            Ok(found)
        });
        match looked {
            Err(why) => Some(Err(why)),
            Ok(None) => Some(Err("the question was withdrawn".into())),
            Ok(Some((_, _, expires))) if expires <= now => Some(Err("nobody approved it in time".into())),
            Ok(Some((None, ..))) => None,
            Ok(Some((Some(verdict), reason, _))) => Some(match (&*verdict, reason) {
                ("approved", _) => Ok(()),
                (_, Some(reason)) => Err(format!("it was refused: {reason}")),
                (_, None) => Err("it was refused".into()),
            }),
        }
    }

    /// Notes an answer that was given elsewhere.
    pub(crate) fn note(&self, question: &Question, verdict: &Result<(), String>, by: &str) {
        let (verdict, reason) = match verdict {
            Ok(()) => ("approved", None),
            Err(why) => ("denied", Some(why.as_str())),
        };
        // The answer itself is in the journal; that it does not show here as well is no reason to stop.
        let _ = self.with(|Journal { db, turn, .. }| {
            let _turn = turn.take();
            db.execute(
                "UPDATE approvals SET verdict = ?2, reason = ?3, decided = ?4, decided_by = ?5, used = ?4
                 WHERE token = ?1 AND used IS NULL",
                params![question.token, verdict, reason, now_millis(), by],
            )
        });
    }

    /// Waits for the answer. The table is asked again only when somebody else has written to the database, so very many questions can wait.
    pub(crate) async fn wait(&self, question: &Question) -> Result<(), String> {
        loop {
            // Before looking, so that nothing is written unseen in between.
            let then = self.version()?;
            if let Some(answer) = self.take(question) {
                return answer;
            }
            while self.version()? == then && now_millis() < question.expires {
                tokio::time::sleep(Self::LOOK).await;
            }
        }
    }

    /// Changes whenever an answer of somebody else can be seen. Lengths and times of the files do not say that: a writer puts an answer into
    /// the log first and lets it be seen afterwards, and in between there may be all the time that a disk takes.
    fn version(&self) -> Result<i64, String> {
        self.with(|journal| journal.db.prepare_cached("PRAGMA data_version")?.query_row([], |r| r.get(0)))
    }
}

impl fmt::Debug for ApprovalDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApprovalDesk")
            .field("path", &self.path)
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::path::Path;

    /// Length and time of the database and its log.
    fn files(journal: &Path) -> [(File, u64, std::time::SystemTime); 2] {
        [journal.to_path_buf(), journal.with_extension("db-wal")].map(|path| {
            let file = File::options().write(true).open(path).unwrap();
            let about = file.metadata().unwrap();
            (file, about.len(), about.modified().unwrap())
        })
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_seen_that_the_files_do_not_show() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.db");
        let mut answers = Journal::open(&path).unwrap();
        let desk = ApprovalDesk::new(&path, Duration::from_secs(3600));
        let approval = Approval { tool: "pay".into(), args: Vec::new() };
        let question = desk.put("r", RequestId { strand: 0, number: 1 }, &approval).unwrap();
        // What is written next goes to the beginning of the log, which keeps its length.
        answers.db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        let token = question.token.clone();
        let mut waits = tokio::spawn(async move { desk.wait(&question).await });
        assert!(tokio::time::timeout(ApprovalDesk::LOOK * 2, &mut waits).await.is_err());
        let before = files(&path);
        answers.decide(&token, &Decision::Approve, "a test").unwrap();
        for ((file, length, time), (_, now, _)) in before.iter().zip(files(&path)) {
            assert_eq!(*length, now);
            file.set_modified(*time).unwrap();
        }
        let answer = tokio::time::timeout(Duration::from_secs(60), waits).await;
        assert_eq!(answer.unwrap().unwrap(), Ok(()));
    }
}
