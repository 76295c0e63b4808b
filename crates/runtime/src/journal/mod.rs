//! Journals: what a run was answered, kept before the program sees it.
//!
//! Entry points: [`Journal`], a file that holds runs, and [`Session`], a run that is written to a journal,
//! resumed from one, or replayed. Recordings have the same format.
//!
//! A journal is an SQLite database in WAL mode. A killed process leaves all responses written so far, and a
//! torn page of the log is detected and ignored. Any other damage is refused: see [`Journal::undamaged`]. A
//! response is written before the machine receives it, and a call of a tool that writes is recorded before it
//! starts. So a run can be resumed after a crash: answered requests are answered from the journal, and only
//! requests that were in flight are repeated.
//!
//! Invariant: what is written has been through the run's [`crate::Redactor`], and the machine gets what was
//! written, so that a run and its replay see the same.
//! Invariant: samples are not kept; they depend on the seed alone, which is.

mod approvals;
mod changes;
mod conversation;
mod outcomes;
mod session;
mod wire;
mod writer;

pub use approvals::{Answers, ApprovalDesk, Authority, Decision, Forged, Forgery, Waiting};
pub use changes::Change;

pub(crate) use conversation::{Link, link, links};
pub(crate) use session::{Known, Recorded, Spent};
pub use session::{Session, Unfinished};
pub(crate) use wire::read_response;
pub(crate) use writer::Written;

use crate::keys::Approvers;
use crate::provider::Tokens;
use crate::rng::SplitMix;
use crate::write_lock::WriteLock;
use core_ir::{Code, Data};
use rusqlite::{Connection, OpenFlags, params};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of the tables.
const VERSION: i64 = 2;

/// "ENTL": marks the file as ours.
const APPLICATION: i64 = 0x454e_544c;

const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,       -- milliseconds since 1970
        name TEXT NOT NULL,
        program TEXT NOT NULL,          -- as text, without places
        digest TEXT NOT NULL,           -- of program, input and settings
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
        request TEXT NOT NULL,          -- JSON, without the conversation
        conversation BLOB,              -- link of its last message, if a model is asked
        response TEXT,                  -- JSON; null while it is under way
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        usd TEXT,
        micros INTEGER NOT NULL,
        checksum BLOB NOT NULL,         -- of all but the run
        PRIMARY KEY (run, strand, number)
    ) STRICT;
    CREATE TABLE messages (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        link BLOB NOT NULL,             -- a hash of the next two
        before BLOB NOT NULL,           -- link of the message before, or zeros
        body TEXT NOT NULL,             -- JSON
        PRIMARY KEY (run, link)
    ) STRICT;
    CREATE INDEX entries_step ON entries (run, step);
";

/// Field of the settings of a run: the run for the same request that it follows.
pub const AFTER_RUN: &str = "after";

/// Reason why a journal can't be used, or a run can't be resumed.
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

/// Identity of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunIdentity {
    /// For people: the file and what of it is run; a test's name.
    pub name: String,
    /// The program as text.
    pub program: String,
    /// The input.
    pub input: Option<Data>,
    /// Other inputs that determine the course of the run: the seed and the fuel, as an object.
    pub settings: Json,
}

impl RunIdentity {
    /// A program, without the places of its terms: moving a comment does not change it.
    pub fn new(name: impl Into<String>, code: &Code, input: Option<Data>, settings: Json) -> RunIdentity {
        RunIdentity { name: name.into(), program: core_ir::print_code(code), input, settings }
    }
}

/// Status of a run in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// Under way, or interrupted.
    Running,
    /// Ended with a result.
    Done,
    /// Ended with an error of the program.
    Failed,
    /// Cut off by a limit or from outside: it can be resumed.
    Stopped,
}

impl RunStatus {
    const ALL: [RunStatus; 4] = [RunStatus::Running, RunStatus::Done, RunStatus::Failed, RunStatus::Stopped];

    /// The word in journals and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Done => "done",
            RunStatus::Failed => "failed",
            RunStatus::Stopped => "stopped",
        }
    }

    /// The status of a word. One that is not known is a failure: the run is not continued.
    fn named(word: &str) -> RunStatus {
        RunStatus::ALL.into_iter().find(|s| s.as_str() == word).unwrap_or(RunStatus::Failed)
    }
}

/// A run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Names it within the journal.
    pub id: String,
    /// Start of the run, in milliseconds since 1970.
    pub created: i64,
    /// Name of the program.
    pub name: String,
    /// The run that it was forked from.
    pub parent: Option<String>,
    /// Its status. Nobody ends a run that is interrupted, so that one is running, too.
    pub status: RunStatus,
    /// JSON of the result, or of the error.
    pub outcome: Option<Json>,
    /// Number of answered requests.
    pub steps: u64,
}

/// Result of [`Journal::check`]: the numbers of records checked, and the damaged ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Runs.
    pub runs: usize,
    /// Requests with their answers.
    pub entries: usize,
    /// Messages of conversations.
    pub messages: usize,
    /// The runs of which something is not what was written; they can't be relied on, all others can.
    pub damaged: Vec<String>,
    /// Rows by which a call was to be approved, and which no approver wrote. No run has taken them for an
    /// answer.
    pub forged: Vec<Forged>,
}

/// A request of a run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct StepInfo {
    /// Number in the order of the answers, from 1; pending requests come last.
    pub step: u64,
    /// The request.
    pub request: Json,
    /// The answer; `None` while it is pending.
    pub response: Option<Json>,
    /// The model, if one was asked.
    pub model: String,
    /// Tokens of the prompt and the reply.
    pub tokens: (u64, u64),
    /// Duration of the request.
    pub elapsed: Duration,
}

/// A file that holds runs.
#[derive(Debug)]
pub struct Journal {
    db: Connection,
    path: PathBuf,
    turn: WriteLock,
    /// Approvers whose signed answers count.
    approvers: Approvers,
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
    /// The errors of [`Journal::open`], or the journal does not exist.
    pub fn existing(path: &Path) -> Result<Journal, JournalError> {
        if !path.is_file() {
            return Err(JournalError {
                message: format!("journal `{}` not found", path.display()),
                help: Some(
                    "`entail run FILE --journal DIR` keeps runs, `--record FILE` makes a recording; name that place, or the run's directory with `--journal DIR`"
                        .into(),
                ),
            });
        }
        Journal::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Journal, JournalError> {
        let shown = path.display();
        let failed = |e: rusqlite::Error| {
            let help = match e.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => Some(ELSEWHERE.into()),
                Some(rusqlite::ErrorCode::DatabaseCorrupt) => Some(RESTORE.into()),
                _ => None,
            };
            JournalError { message: format!("cannot use the journal `{shown}`: {}", cause(&e)), help }
        };
        if path.is_dir() {
            return Err(JournalError::new(format!("`{shown}` is a directory, and no journal"))
                .with_help("name a file in it"));
        }
        let mut db =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
        let turn = WriteLock::of(path);
        db.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        let number = |db: &Connection, name: &str| db.pragma_query_value(None, name, |r| r.get::<_, i64>(0));
        // A response must be on the disk before the program acts on it.
        db.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        db.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let (application, version) =
            (number(&db, "application_id").map_err(failed)?, number(&db, "user_version").map_err(failed)?);
        if version == VERSION && application == APPLICATION {
            whole_pages(&db, path)?;
            approvals::prepare(&db)
                .and_then(|()| changes::prepare(&db))
                .and_then(|()| outcomes::prepare(&db))
                .map_err(failed)?;
            return Ok(Journal { db, path: path.to_path_buf(), turn, approvers: Approvers::default() });
        }
        if application == APPLICATION {
            return Err(JournalError::new(format!(
                "the journal `{shown}` has version {version}, not {VERSION}"
            ))
            .with_help("use the version of `entail` that made it, or another file"));
        }
        let tables: i64 =
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(failed)?;
        if tables > 0 || application != 0 {
            return Err(
                JournalError::new(format!("`{shown}` is a database, but no journal")).with_help(ELSEWHERE)
            );
        }
        let writing = turn.take();
        db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        let made = (|| {
            let t = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            // Another process may have been faster.
            if number(&t, "user_version")? == 0 {
                t.execute_batch(TABLES)?;
                approvals::prepare(&t)?;
                changes::prepare(&t)?;
                outcomes::prepare(&t)?;
                t.pragma_update(None, "application_id", APPLICATION)?;
                t.pragma_update(None, "user_version", VERSION)?;
            }
            t.commit()
        })();
        made.map_err(failed)?;
        drop(writing);
        Ok(Journal { db, path: path.to_path_buf(), turn, approvers: Approvers::default() })
    }

    fn failed(&self, e: &rusqlite::Error) -> JournalError {
        let what = format!("cannot use the journal `{}`: {}", self.path.display(), cause(e));
        let is_damaged = e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt);
        JournalError { message: what, help: is_damaged.then(|| RESTORE.into()) }
    }

    /// The runs, the newest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn runs(&self) -> Result<Vec<RunInfo>, JournalError> {
        self.select_runs("ORDER BY created DESC, id DESC", "")
    }

    /// Returns the newest runs, at most `most`.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn newest(&self, most: u32) -> Result<Vec<RunInfo>, JournalError> {
        self.select_runs(&format!("ORDER BY created DESC, id DESC LIMIT {most}"), "")
    }

    /// The newest runs of a caller of a server, and, if that is wanted, of those that no server began.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn newest_of(&self, caller: &str, others: bool, most: u32) -> Result<Vec<RunInfo>, JournalError> {
        let other = if others { "OR json_extract(settings, '$.caller') IS NULL " } else { "" };
        let filter = format!(
            "WHERE json_extract(settings, '$.caller') = ?1 {other}ORDER BY created DESC, id DESC LIMIT {most}"
        );
        self.select_runs(&filter, caller)
    }

    /// The run that follows a run for the same request, if there is one ([`AFTER_RUN`]).
    ///
    /// # Errors
    /// The file is damaged.
    pub fn follower(&self, run: &str) -> Result<Option<RunInfo>, JournalError> {
        let filter = format!("WHERE json_extract(settings, '$.{AFTER_RUN}') = ?1 ORDER BY created");
        let found = self.select_runs(&filter, run)?;
        Ok(found.into_iter().next())
    }

    /// The runs that were interrupted, or that another process is at, the oldest first.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn unfinished(&self) -> Result<Vec<RunInfo>, JournalError> {
        self.select_runs("WHERE status = 'running' ORDER BY created, id", "")
    }

    /// The settings that a run was begun with, see [`RunIdentity::settings`].
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn settings(&self, run: &str) -> Result<Json, JournalError> {
        parse(&self.stored(run)?.settings).map_err(|_| self.failed(&damaged()))
    }

    /// A run by its identifier, or by a beginning of it that only one has.
    ///
    /// # Errors
    /// No run matches, or several do.
    pub fn run(&self, id: &str) -> Result<RunInfo, JournalError> {
        let mut found = self.select_runs("WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id", id)?;
        let exact = found.iter().position(|r| r.id == id);
        let shown = diagnostics::clip_to(id, 60);
        match (exact, found.len()) {
            (Some(i), _) => Ok(found.swap_remove(i)),
            (None, 1) if !id.is_empty() => Ok(found.swap_remove(0)),
            (None, 0) => {
                Err(JournalError::new(format!("run `{shown}` not found in `{}`", self.path.display()))
                    .with_help("`entail runs list` shows which there are"))
            }
            _ => Err(JournalError::new(format!("several runs begin with `{shown}`"))),
        }
    }

    /// Returns the newest run of a name, or of any name if none is given.
    ///
    /// # Errors
    /// There is no such run.
    pub fn latest(&self, name: Option<&str>) -> Result<RunInfo, JournalError> {
        let filter = "WHERE ?1 = '' OR name = ?1 ORDER BY created DESC, rowid DESC LIMIT 1";
        let found = self.select_runs(filter, name.unwrap_or_default())?;
        found.into_iter().next().ok_or_else(|| {
            let of = name.map_or(String::new(), |n| format!(" of `{}`", diagnostics::clip_to(n, 80)));
            JournalError::new(format!("no run{of} found in `{}`", self.path.display()))
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
                    status: RunStatus::named(&r.get::<_, String>(4)?),
                    outcome: r.get::<_, Option<String>>(5)?.and_then(|t| parse(&t).ok()),
                    steps: whole(r.get(6)?),
                })
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        read().map_err(|e| self.failed(&e))
    }

    /// Returns the requests of a run and their answers.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn steps(&self, run: &str) -> Result<Vec<StepInfo>, JournalError> {
        let mut out = Vec::new();
        self.each_step(run, &mut |step| out.push(step))?;
        Ok(out)
    }

    /// Visits the steps of [`Journal::steps`] one by one. Each has its whole conversation, so all of them
    /// together may be much larger than the journal.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn each_step(&self, run: &str, f: &mut dyn FnMut(StepInfo)) -> Result<(), JournalError> {
        let read = self.each_row(run, |row| {
            let json = |text: String| parse(&text).map_err(|_| damaged());
            let mut request = json(row.request)?;
            if let Some(end) = &row.conversation {
                wire::put_messages(&mut request, conversation::read(&self.db, run, end)?);
            }
            f(StepInfo {
                step: whole(row.step),
                request,
                response: row.response.map(json).transpose()?,
                model: row.model,
                tokens: (whole(row.tokens.0), whole(row.tokens.1)),
                elapsed: Duration::from_micros(whole(row.micros)),
            });
            Ok(())
        });
        read.map_err(|e| self.failed(&e))
    }

    /// Visits the entries of a run in the order of the answers; pending ones come last.
    fn each_row(
        &self,
        run: &str,
        mut f: impl FnMut(writer::Row) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT {} FROM entries WHERE run = ?1 ORDER BY response IS NULL, step",
            writer::Row::COLUMNS
        );
        let mut statement = self.db.prepare(&sql)?;
        for row in statement.query_map([run], writer::Row::read)? {
            f(row?)?;
        }
        Ok(())
    }

    /// Returns the answers of models: the link of the conversation, the response and its tokens.
    pub(crate) fn model_answers(&self, run: &str) -> Result<Vec<(Link, Json, Tokens)>, JournalError> {
        self.undamaged(run)?;
        let mut out = Vec::new();
        let read = self.each_row(run, |row| {
            if let (Some(end), Some(response)) = (row.conversation, row.response) {
                let tokens = Tokens { input: whole(row.tokens.0), output: whole(row.tokens.1) };
                out.push((end, parse(&response).map_err(|_| damaged())?, tokens));
            }
            Ok(())
        });
        read.map_err(|e| self.failed(&e))?;
        Ok(out)
    }

    /// Checks all answers of a run by both indexes that lead to them. A query reads only the pages that it
    /// needs, and a run must not resume from part of its answers because a damaged index hides the rest. No
    /// page belongs to both indexes. The cost depends on the run, not on the file.
    pub(crate) fn undamaged(&self, run: &str) -> Result<(), JournalError> {
        let by = |index: &str| {
            let sql = format!(
                "SELECT {} FROM entries INDEXED BY {index} WHERE run = ?1 ORDER BY strand, number",
                writer::Row::COLUMNS
            );
            let mut statement = self.db.prepare(&sql)?;
            let rows =
                statement.query_map([run], |r| writer::Row::read(r).map(|row| (row.strand, row.number)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        let same = || Ok(by("sqlite_autoindex_entries_1")? == by("entries_step")?);
        match same() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed(&damaged())),
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// Looks at the whole file: its structure, and whether every program, request, answer and message is what
    /// was written.
    ///
    /// # Errors
    /// The structure of the file is damaged, so that nothing in it can be relied on. That a run is not what
    /// was written is in the result.
    pub fn check(&self) -> Result<Checked, JournalError> {
        let read = || -> rusqlite::Result<Option<Checked>> {
            let found: String = self.db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0))?;
            if found != "ok" {
                return Ok(None);
            }
            let mut statement = self.db.prepare("SELECT id FROM runs ORDER BY id")?;
            let runs =
                statement.query_map([], |r| r.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            let mut checked = Checked::default();
            for run in runs {
                if !self.is_as_written(&run, &mut checked)? {
                    checked.damaged.push(run);
                }
                checked.runs += 1;
            }
            checked.forged = self.forged()?;
            Ok(Some(checked))
        };
        match read() {
            Ok(Some(checked)) => Ok(checked),
            Ok(None) => Err(self.failed(&damaged())),
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// Returns true if all records of a run are intact; adds the records checked to `counts`.
    fn is_as_written(&self, run: &str, counts: &mut Checked) -> rusqlite::Result<bool> {
        let mut whole = self.stored(run).is_ok() && self.changes(run).is_ok();
        let messages = conversation::all_links(&self.db, run)?;
        counts.messages += messages.len();
        let known = |link: &Link| *link == conversation::NONE || messages.contains_key(link);
        whole &= messages.values().all(|before| before.as_ref().is_some_and(known));
        let entries = self.each_row(run, |row| {
            counts.entries += 1;
            whole &= row.conversation.as_ref().is_none_or(known);
            Ok(())
        });
        match entries {
            Ok(()) => Ok(whole),
            Err(e) if e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns the program and settings with which a run was started.
    fn stored(&self, run: &str) -> Result<Stored, JournalError> {
        let sql = "SELECT program, input, settings, digest, created FROM runs WHERE id = ?1";
        let found = self.db.query_row(sql, [run], |r| {
            let stored =
                Stored { program: r.get(0)?, input: r.get(1)?, settings: r.get(2)?, created: r.get(4)? };
            let whole = r.get::<_, String>(3)? == digest(&stored.program, &stored.input, &stored.settings);
            if whole { Ok(stored) } else { Err(damaged()) }
        });
        found.map_err(|e| self.failed(&e))
    }

    /// Creates a copy of a run up to a step, whose response is replaced. Later requests are made again when
    /// the copy is resumed. Returns its identifier.
    ///
    /// The response is that of [`StepInfo::response`]: `{"reply": text}`, `{"call": tool, "args": data}`,
    /// `{"data": data}` or `{"error": text}`.
    ///
    /// # Errors
    /// The run or step does not exist, or the response is invalid.
    pub fn fork(&mut self, run: &str, step: u64, response: &Json) -> Result<String, JournalError> {
        let run = self.run(run)?.id;
        let (mut at, mut steps) = (None, 0);
        let read = self.each_row(&run, |row| {
            steps += u64::from(row.response.is_some());
            if row.response.is_some() && whole(row.step) == step {
                at = Some(row.request);
            }
            Ok(())
        });
        read.map_err(|e| self.failed(&e))?;
        let Some(at) = at else {
            return Err(JournalError::new(format!("run `{run}` has no step {step}; it has {steps}")));
        };
        let at = parse(&at).unwrap_or_default();
        let kind = at.get("kind").and_then(Json::as_str).unwrap_or_default();
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
            let _turn = self.turn.take();
            let t = self.db.unchecked_transaction()?;
            t.execute(
                "INSERT INTO runs SELECT ?1, ?2, name, program, digest, input, settings, id, 'running', NULL
                 FROM runs WHERE id = ?3",
                params![id, now_millis(), run],
            )?;
            changes::copy(&t, &run, &id, step)?;
            self.each_row(&run, |mut row| {
                if row.response.is_none() || whole(row.step) > step {
                    return Ok(());
                }
                if whole(row.step) == step {
                    row.response = Some(response.to_string());
                    row.seal();
                }
                row.insert(&t, &id)
            })?;
            t.execute(
                "WITH RECURSIVE used (link) AS (
                    SELECT conversation FROM entries WHERE run = ?1 AND conversation IS NOT NULL
                    UNION SELECT m.before FROM messages m JOIN used ON m.run = ?2 AND m.link = used.link
                 )
                 INSERT INTO messages SELECT ?1, m.link, m.before, m.body
                 FROM messages m JOIN used ON m.run = ?2 AND m.link = used.link",
                params![id, run],
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
        let _turn = self.turn.take();
        approvals::forget(&self.db, &id).map_err(|e| self.failed(&e))?;
        outcomes::forget(&self.db, &id).map_err(|e| self.failed(&e))?;
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
            rusqlite::ErrorCode::NotADatabase => "it is not a journal".into(),
            rusqlite::ErrorCode::DatabaseCorrupt => "it is damaged".into(),
            rusqlite::ErrorCode::CannotOpen => "it can't be opened".into(),
            rusqlite::ErrorCode::SystemIoFailure => {
                let may_be_full = [
                    rusqlite::ffi::SQLITE_IOERR_WRITE,
                    rusqlite::ffi::SQLITE_IOERR_FSYNC,
                    rusqlite::ffi::SQLITE_IOERR_TRUNCATE,
                    rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
                ];
                match may_be_full.contains(&failure.extended_code) {
                    true => "writing to the disk failed; it may be full".into(),
                    false => format!("it can't be read or written: {failure}"),
                }
            }
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

/// Program and settings of a run, as stored in the file.
struct Stored {
    program: String,
    input: String,
    settings: String,
    /// Milliseconds since 1970.
    created: i64,
}

fn digest(program: &str, input: &str, settings: &str) -> String {
    let parts = [program, input, settings].map(|t| Some(t.as_bytes()));
    check(&parts).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

/// A hash of these, by which it is noticed that they are not what was written.
fn check(parts: &[Option<&[u8]>]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for part in parts {
        match part {
            None => hash.update([0]),
            Some(bytes) => {
                hash.update([1]);
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
        }
    }
    let digest = hash.finalize();
    std::array::from_fn(|i| digest[i])
}

/// Returns the error that SQLite reports for a damaged file.
fn damaged() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)
}

/// Refuses a file that ends within a page, which SQLite would read as if zeros followed. While there is a
/// log, the missing part may be in it.
fn whole_pages(db: &Connection, path: &Path) -> Result<(), JournalError> {
    let page: u64 = whole(db.pragma_query_value(None, "page_size", |r| r.get(0)).unwrap_or(4096)).max(1);
    let torn = || std::fs::metadata(path).is_ok_and(|m| m.len() % page != 0);
    if !torn() {
        return Ok(());
    }
    // Moves what is in the log to its place: busy, pages in the log, pages moved.
    let moved = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |r| {
        Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?))
    });
    let at_work = matches!(moved, Ok((busy, log, done)) if busy != 0 || done < log);
    if torn() && !at_work {
        let what = format!("cannot use the journal `{}`: {}", path.display(), cause(&damaged()));
        return Err(JournalError::new(what).with_help(RESTORE));
    }
    Ok(())
}

const ELSEWHERE: &str = "it stays as it is; name another place";

const RESTORE: &str = "restore it from a copy, or start a new run with another file";
