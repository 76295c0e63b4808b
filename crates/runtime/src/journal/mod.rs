//! Journals: what a run was answered, kept before the program sees it.
//!
//! Entry points: [`Journal`], a file that holds runs, and [`Session`], a run that is written to one, goes on from one, or is replayed from one.
//! Recordings are the same format.
//!
//! A journal is an SQLite database in WAL mode: a process that is killed leaves it as it was after the last response that was written, and
//! a torn page is noticed and left out. A response is written before the machine gets it, and the call of a tool that writes is noted before it
//! begins. So after a crash a run can go on: everything that was answered is answered again from the journal, and nothing is
//! asked twice, except what was under way.
//!
//! Invariant: what is written has been through the run's [`crate::Redactor`], and the machine gets what was written, so that a run
//! and its replay see the same.
//! Invariant: samples are not kept; they depend on the seed alone, which is.

mod approvals;
mod session;
mod wire;

pub use approvals::{ApprovalDesk, Decision, Waiting};

pub(crate) use session::{Known, Recorded, Spent};
pub use session::{Session, Unfinished};
pub(crate) use wire::{messages_json, read_response};

use crate::rng::SplitMix;
use core_ir::{Code, Data};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the tables.
const VERSION: i64 = 1;

/// "ENTL": marks the file as ours.
const APPLICATION: i64 = 0x454e_544c;

const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,       -- milliseconds since 1970
        name TEXT NOT NULL,
        program TEXT NOT NULL,          -- as text, without places
        program_hash TEXT NOT NULL,
        input TEXT NOT NULL,            -- JSON of the exchange format, or ''
        settings TEXT NOT NULL,         -- JSON
        parent TEXT,                    -- of a fork
        status TEXT NOT NULL,           -- running, done, failed
        outcome TEXT                    -- JSON of the result, or the error
    ) STRICT;
    CREATE TABLE entries (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        step INTEGER NOT NULL,          -- in the order of the answers, from 1
        strand INTEGER NOT NULL,
        number INTEGER NOT NULL,
        request TEXT NOT NULL,          -- JSON
        response TEXT,                  -- JSON; null while it is under way
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        usd TEXT,
        micros INTEGER NOT NULL,
        PRIMARY KEY (run, strand, number)
    ) STRICT;
    CREATE INDEX entries_step ON entries (run, step);
";

/// Why a journal can't be used, or a run can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalError {
    /// The problem.
    pub message: String,
    /// The remedy, if there is one.
    pub help: Option<String>,
}

impl JournalError {
    fn new(message: impl Into<String>) -> JournalError {
        JournalError { message: message.into(), help: None }
    }

    fn with_help(mut self, help: impl Into<String>) -> JournalError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JournalError {}

/// What identifies a run.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// For people: the file and what of it is run; a test's name.
    pub name: String,
    /// The program as text.
    pub program: String,
    /// The input.
    pub input: Option<Data>,
    /// What else decides the course of the run: the seed, the fuel. An object.
    pub settings: Json,
}

impl About {
    /// A program, without the places of its terms: moving a comment does not change it.
    pub fn new(name: impl Into<String>, code: &Code, input: Option<Data>, settings: Json) -> About {
        About { name: name.into(), program: core_ir::print_code(code), input, settings }
    }
}

/// A run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Names it within the journal.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub created: i64,
    /// What was run.
    pub name: String,
    /// The run that it was forked from.
    pub parent: Option<String>,
    /// `running` (or interrupted), `done` or `failed`.
    pub status: String,
    /// JSON of the result, or of the error.
    pub outcome: Option<Json>,
    /// How many requests were answered.
    pub steps: u64,
}

/// A request of a run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInfo {
    /// In the order of the answers, from 1; those under way come last.
    pub step: u64,
    /// What was asked.
    pub request: Json,
    /// What was answered; `None` while it is under way.
    pub response: Option<Json>,
    /// The model, if one was asked.
    pub model: String,
    /// Tokens of the prompt and the reply.
    pub tokens: (u64, u64),
    /// How long it took.
    pub elapsed: Duration,
}

/// A file that holds runs.
#[derive(Debug)]
pub struct Journal {
    db: Connection,
    path: PathBuf,
}

impl Journal {
    /// Opens a journal, or makes one.
    ///
    /// # Errors
    /// The file can't be written, is no journal, or was made by a newer version.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        Journal::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a journal that exists.
    ///
    /// # Errors
    /// As [`Journal::open`], or there is none.
    pub fn existing(path: &Path) -> Result<Journal, JournalError> {
        if !path.is_file() {
            return Err(JournalError::new(format!("there is no journal `{}`", path.display())));
        }
        Journal::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Journal, JournalError> {
        let shown = path.display();
        let failed = |e: rusqlite::Error| {
            JournalError::new(format!("cannot use the journal `{shown}`: {}", cause(&e)))
        };
        let mut db =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
        db.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        let number = |db: &Connection, name: &str| db.pragma_query_value(None, name, |r| r.get::<_, i64>(0));
        // A response must be on the disk before the program acts on it.
        db.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        db.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let (application, version) =
            (number(&db, "application_id").map_err(failed)?, number(&db, "user_version").map_err(failed)?);
        if version == VERSION && application == APPLICATION {
            approvals::prepare(&db).map_err(failed)?;
            return Ok(Journal { db, path: path.to_path_buf() });
        }
        if application == APPLICATION {
            return Err(JournalError::new(format!(
                "the journal `{shown}` has version {version}, not {VERSION}"
            ))
            .with_help("use the version of `entail` that made it"));
        }
        let tables: i64 =
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(failed)?;
        if tables > 0 || application != 0 {
            return Err(JournalError::new(format!("`{shown}` is a database, but no journal")));
        }
        db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        let made = (|| {
            let t = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            // Another process may have been faster.
            if number(&t, "user_version")? == 0 {
                t.execute_batch(TABLES)?;
                approvals::prepare(&t)?;
                t.pragma_update(None, "application_id", APPLICATION)?;
                t.pragma_update(None, "user_version", VERSION)?;
            }
            t.commit()
        })();
        made.map_err(failed)?;
        Ok(Journal { db, path: path.to_path_buf() })
    }

    fn failed(&self, e: &rusqlite::Error) -> JournalError {
        JournalError::new(format!("cannot use the journal `{}`: {}", self.path.display(), cause(e)))
    }

    /// The runs, the newest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn runs(&self) -> Result<Vec<RunInfo>, JournalError> {
        self.select_runs("ORDER BY created DESC, id DESC", "")
    }

    /// A run by its identifier, or by a beginning of it that only one has.
    ///
    /// # Errors
    /// There is none, or several.
    pub fn run(&self, id: &str) -> Result<RunInfo, JournalError> {
        let mut found = self.select_runs("WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id", id)?;
        let exact = found.iter().position(|r| r.id == id);
        let shown = diagnostics::clip_to(id, 60);
        match (exact, found.len()) {
            (Some(i), _) => Ok(found.swap_remove(i)),
            (None, 1) if !id.is_empty() => Ok(found.swap_remove(0)),
            (None, 0) => {
                Err(JournalError::new(format!("there is no run `{shown}` in `{}`", self.path.display()))
                    .with_help("`entail runs list` shows which there are"))
            }
            _ => Err(JournalError::new(format!("several runs begin with `{shown}`"))),
        }
    }

    /// The newest run of a name; of any name if there is none given.
    ///
    /// # Errors
    /// There is none.
    pub fn latest(&self, name: Option<&str>) -> Result<RunInfo, JournalError> {
        let filter = "WHERE ?1 = '' OR name = ?1 ORDER BY created DESC, rowid DESC LIMIT 1";
        let found = self.select_runs(filter, name.unwrap_or_default())?;
        found.into_iter().next().ok_or_else(|| {
            let of = name.map_or(String::new(), |n| format!(" of `{}`", diagnostics::clip_to(n, 80)));
            JournalError::new(format!("there is no run{of} in `{}`", self.path.display()))
        })
    }

    fn select_runs(&self, filter: &str, value: &str) -> Result<Vec<RunInfo>, JournalError> {
        let sql = format!(
            "SELECT id, created, name, parent, status, outcome,
                (SELECT count(*) FROM entries e WHERE e.run = runs.id AND e.response IS NOT NULL)
             FROM runs {filter}"
        );
        let read = || {
            let mut statement = self.db.prepare(&sql)?;
            let given: &[&dyn rusqlite::ToSql] = if sql.contains("?1") { &[&value] } else { &[] };
            let rows = statement.query_map(given, |r| {
                Ok(RunInfo {
                    id: r.get(0)?,
                    created: r.get(1)?,
                    name: r.get(2)?,
                    parent: r.get(3)?,
                    status: r.get(4)?,
                    outcome: r.get::<_, Option<String>>(5)?.and_then(|t| parse(&t).ok()),
                    steps: whole(r.get(6)?),
                })
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|e| self.failed(&e))
    }

    /// What a run asked and was answered.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn steps(&self, run: &str) -> Result<Vec<StepInfo>, JournalError> {
        let read = || {
            let mut statement = self.db.prepare(
                "SELECT step, request, response, model, input_tokens, output_tokens, micros
                 FROM entries WHERE run = ?1 ORDER BY response IS NULL, step",
            )?;
            let rows = statement.query_map([run], |r| {
                let json = |text: String| parse(&text).unwrap_or(Json::String(text));
                Ok(StepInfo {
                    step: whole(r.get(0)?),
                    request: json(r.get(1)?),
                    response: r.get::<_, Option<String>>(2)?.map(json),
                    model: r.get(3)?,
                    tokens: (whole(r.get(4)?), whole(r.get(5)?)),
                    elapsed: Duration::from_micros(whole(r.get(6)?)),
                })
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|e| self.failed(&e))
    }

    /// A new run that is like another one up to a step, whose response is replaced; what came after is asked anew when it is resumed.
    /// Gives its identifier.
    ///
    /// The response is that of [`StepInfo::response`]: `{"reply": text}`, `{"call": tool, "args": data}`, `{"data": data}` or `{"error": text}`.
    ///
    /// # Errors
    /// There is no such run or step, or the response is none.
    pub fn fork(&mut self, run: &str, step: u64, response: &Json) -> Result<String, JournalError> {
        let run = self.run(run)?.id;
        let steps = self.steps(&run)?;
        let Some(at) = steps.iter().find(|s| s.step == step && s.response.is_some()) else {
            return Err(JournalError::new(format!("run `{run}` has no step {step}; it has {}", steps.len())));
        };
        let kind = at.request.get("kind").and_then(Json::as_str).unwrap_or_default();
        let has = |name: &str| response.get(name).is_some();
        let fits = match kind {
            "model" => response.get("reply").is_some_and(Json::is_string) || has("call"),
            "tool" => has("data"),
            "recall" => response.is_object(),
            _ => false,
        };
        if !fits && !has("error") {
            let help = match kind {
                "model" => {
                    "write {\"reply\": \"text\"}, {\"call\": \"tool\", \"args\": {…}} or {\"error\": \"why\"}"
                }
                _ => "write {\"data\": …} or {\"error\": \"why\"}",
            };
            return Err(JournalError::new(format!("the response is none to a request of kind `{kind}`"))
                .with_help(help));
        }
        let id = new_id();
        let copy = || {
            let t = self.db.unchecked_transaction()?;
            t.execute(
                "INSERT INTO runs SELECT ?1, ?2, name, program, program_hash, input, settings, id, 'running', NULL
                 FROM runs WHERE id = ?3",
                params![id, now_millis(), run],
            )?;
            t.execute(
                "INSERT INTO entries SELECT ?1, step, strand, number, request,
                    CASE step WHEN ?3 THEN ?4 ELSE response END, model, input_tokens, output_tokens, usd, micros
                 FROM entries WHERE run = ?2 AND step <= ?3 AND response IS NOT NULL",
                params![id, run, signed(step), response.to_string()],
            )?;
            t.commit()
        };
        copy().map_err(|e| self.failed(&e))?;
        Ok(id)
    }

    /// Forgets a run.
    ///
    /// # Errors
    /// There is no such run.
    pub fn delete(&mut self, run: &str) -> Result<(), JournalError> {
        let id = self.run(run)?.id;
        approvals::forget(&self.db, &id).map_err(|e| self.failed(&e))?;
        self.db.execute("DELETE FROM runs WHERE id = ?1", [&id]).map(|_| ()).map_err(|e| self.failed(&e))
    }
}

/// The journal in a directory.
pub fn journal_file(dir: &Path) -> PathBuf {
    dir.join("journal.db")
}

/// A name for a run that no other has: the time, and chance.
pub(crate) fn new_id() -> String {
    let mut rng = SplitMix::arbitrary();
    format!("{:011x}{:08x}", now_millis(), rng.next() >> 32)
}

fn now_millis() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

fn whole(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// JSON of any depth that we wrote.
pub(crate) fn parse(text: &str) -> serde_json::Result<Json> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader)
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// The first line that differs between two programs.
fn changed_line(then: &str, now: &str) -> String {
    let mut lines = then.lines().zip(now.lines()).enumerate();
    match lines.find(|(_, (a, b))| a != b) {
        Some((n, (a, b))) => {
            let clip = |t: &str| diagnostics::clip_to(t.trim(), 100);
            format!("line {} of its core term was `{}` and is `{}`", n + 1, clip(a), clip(b))
        }
        None => format!("its core term had {} lines and has {}", then.lines().count(), now.lines().count()),
    }
}

fn cause(e: &rusqlite::Error) -> String {
    let text = match e {
        rusqlite::Error::SqliteFailure(failure, message) => match failure.code {
            rusqlite::ErrorCode::DiskFull => "the disk is full".into(),
            rusqlite::ErrorCode::NotADatabase => "it is no journal".into(),
            rusqlite::ErrorCode::DatabaseCorrupt => "it is damaged".into(),
            rusqlite::ErrorCode::CannotOpen => "it can't be opened".into(),
            rusqlite::ErrorCode::ReadOnly => "it can't be written".into(),
            rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked => {
                "another process is using it".into()
            }
            _ => message.clone().unwrap_or_else(|| failure.to_string()),
        },
        other => other.to_string(),
    };
    diagnostics::clip_to(&text, 200)
}

fn program_of(db: &Connection, run: &str) -> Result<Option<(String, String, String)>, rusqlite::Error> {
    let sql = "SELECT program, input, settings FROM runs WHERE id = ?1";
    db.query_row(sql, [run], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?))).optional()
}
