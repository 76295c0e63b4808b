//! Journals: what a run was answered, kept before the program sees it.
//!
//! Entry points: [`Journal`], a file that holds runs, and [`Session`], a run that is written to a journal,
//! resumed from one, or replayed. Recordings have the same format.
//!
//! A journal is a database: an SQLite file in WAL mode, or one on a Postgres server. A killed process leaves
//! all responses written so far, and a torn page of the log is detected and ignored. Any other damage is
//! refused: see [`Journal::undamaged`]. A response is written before the machine receives it, and a call of a
//! tool that writes is recorded before it starts. So a run can be resumed after a crash: answered requests
//! are answered from the journal, and only requests that were in flight are repeated.
//!
//! Invariant: what is written has been through the run's [`crate::Redactor`], and the machine gets what was
//! written, so that a run and its replay see the same.
//! Invariant: samples are not kept; they depend on the seed alone, which is.

mod approvals;
mod budgets;
mod changes;
mod conversation;
mod db;
mod elicited;
mod engine_question;
mod kept;
mod live;
mod outcomes;
mod page;
mod place;
mod playback;
mod programs;
pub(crate) mod record;
mod retries;
mod session;
mod wire;
mod writer;

pub use approvals::{Answers, ApprovalDesk, Authority, Decision, Forged, Forgery, KeptQuestion, Waiting};
pub use budgets::{DayUse, SharedDay};
pub use changes::Change;
pub use engine_question::EngineQuestion;
pub use kept::{Damage, KeptEntry, KeptMessages, KeptRun, REDACTED};
pub use live::LiveBoard;
pub use page::{RunCursor, RunFilter};
pub use place::{JournalPlace, journal_file};
pub use playback::{AnswerRecord, Played};
pub use retries::Retries;

pub(crate) use conversation::{ConversationLinks, Conversations, Link, link};
pub(crate) use elicited::{shown_call, token_of};
pub(crate) use session::{Known, Recorded, Spent};
pub use session::{Session, Unfinished};
pub(crate) use wire::read_response;
pub(crate) use writer::Written;

use crate::keys::Approvers;
use crate::provider::Tokens;
use crate::rng;
use core_ir::{Code, Data};
use db::{Database, DbError, Statement};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Field of the settings of a run: the run for the same request that it follows.
pub const AFTER_RUN: &str = "after";

/// Field of the settings of a run: the text of its policy, null for none. A resumed run has the policy that
/// it is resumed with. Of a policy with a secret in it no text is kept, and this is an object.
pub const POLICY_TEXT: &str = "policy";

/// Field of the settings of a run that was resumed with another policy than it began with.
pub const POLICY_CHANGED: &str = "policyChanged";

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

    /// A database can't be used.
    fn of(db: &dyn Database, e: &DbError) -> JournalError {
        let message = format!("cannot use the journal `{}`: {}", db.shown(), e.cause);
        JournalError { message, help: e.is_damaged.then(|| db.restore().into()) }
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
    /// The program as JSON with all that views of the run need, see [`Journal::kept_program`]. `None` keeps
    /// none.
    pub kept: Option<Arc<str>>,
}

impl RunIdentity {
    /// A program, without the places of its terms: moving a comment does not change it.
    pub fn new(name: impl Into<String>, code: &Code, input: Option<Data>, settings: Json) -> RunIdentity {
        RunIdentity { name: name.into(), program: core_ir::print_code(code), input, settings, kept: None }
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

    /// The status of a word; `None` if there is none.
    pub fn of(word: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|s| s.as_str() == word)
    }

    /// The status of a word. One that is not known is a failure: the run is not continued.
    fn named(word: &str) -> RunStatus {
        RunStatus::of(word).unwrap_or(RunStatus::Failed)
    }
}

/// A run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInfo {
    /// Names it within the journal.
    pub id: String,
    /// Start of the run, in milliseconds since 1970.
    pub created: i64,
    /// End of the run, in milliseconds since 1970; `None` before it, and of a run of before.
    pub ended: Option<i64>,
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

/// The columns of a [`RunInfo`].
const RUN_COLUMNS: &str = "runs.id, runs.created, name, parent, runs.status, outcome, ended,
    (SELECT count(*) FROM entries e WHERE e.run = runs.id AND e.response IS NOT NULL)";

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
    /// When the answer was written, in milliseconds since 1970; of a pending request, when that began. `None`
    /// of an entry of before.
    pub written: Option<i64>,
}

/// A file that holds runs.
#[derive(Debug)]
pub struct Journal {
    db: Box<dyn Database>,
    /// Approvers whose signed answers count.
    approvers: Approvers,
}

impl Journal {
    /// Opens a journal, or makes one.
    ///
    /// # Errors
    /// The file or the server can't be written, is no journal, or was made by a newer version.
    pub fn open(place: impl Into<JournalPlace>) -> Result<Journal, JournalError> {
        place.into().open()
    }

    /// Opens a journal that exists.
    ///
    /// # Errors
    /// The errors of [`Journal::open`], or the journal does not exist.
    pub fn existing(place: impl Into<JournalPlace>) -> Result<Journal, JournalError> {
        place.into().existing()
    }

    fn of(db: impl Database + 'static) -> Journal {
        Journal { db: Box::new(db), approvers: Approvers::default() }
    }

    fn failed(&self, e: &DbError) -> JournalError {
        JournalError::of(&*self.db, e)
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
        let of = self.db.field("caller");
        let other = if others { format!("OR {of} IS NULL ") } else { String::new() };
        let filter = format!("WHERE {of} = ?1 {other}ORDER BY created DESC, id DESC LIMIT {most}");
        self.select_runs(&filter, caller)
    }

    /// The run that follows a run for the same request, if there is one ([`AFTER_RUN`]).
    ///
    /// # Errors
    /// The file is damaged.
    pub fn follower(&self, run: &str) -> Result<Option<RunInfo>, JournalError> {
        let filter = format!("WHERE {} = ?1 ORDER BY created", self.db.field(AFTER_RUN));
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

    /// The runs that were interrupted, the oldest first. Of a journal in a file they are all of
    /// [`Journal::unfinished`]: whether a process is at one is known when it is resumed.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn orphaned(&self) -> Result<Vec<RunInfo>, JournalError> {
        let free = self.db.is_free();
        self.select_runs(&format!("WHERE status = 'running' AND {free} ORDER BY created, id"), "")
    }

    /// Interval at which a server looks for runs that servers of other hosts have left; `None` for a journal
    /// that no other host has.
    pub fn takeover_interval(&self) -> Option<Duration> {
        self.db.takeover()
    }

    /// The settings that a run was begun with, see [`RunIdentity::settings`].
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn settings(&self, run: &str) -> Result<Json, JournalError> {
        parse(&self.stored(run)?.settings).map_err(|_| self.failed(&DbError::damaged()))
    }

    /// The input of a run; `None` for a program without one.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn input(&self, run: &str) -> Result<Option<Data>, JournalError> {
        match self.stored(run)?.input.as_str() {
            "" => Ok(None),
            text => {
                let damaged = || self.failed(&DbError::damaged());
                let json = parse(text).map_err(|_| damaged())?;
                core_ir::exchange::data_from_json(&json).map(Some).map_err(|_| damaged())
            }
        }
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
            (None, 0) => Err(JournalError::new(format!("run `{shown}` not found in `{}`", self.db.shown()))
                .with_help("`entail runs list` shows which there are")),
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
            JournalError::new(format!("no run{of} found in `{}`", self.db.shown()))
        })
    }

    fn select_runs(&self, filter: &str, value: &str) -> Result<Vec<RunInfo>, JournalError> {
        let sql = format!("SELECT {RUN_COLUMNS} FROM runs {filter}");
        let query = Statement::new(sql);
        let query = if query.takes_values() { query.with(value) } else { query };
        self.selected(&query)
    }

    /// The runs that a query of [`RUN_COLUMNS`] gives.
    fn selected(&self, query: &Statement) -> Result<Vec<RunInfo>, JournalError> {
        let read = self.db.all(query, |r| {
            Ok(RunInfo {
                id: r.get(0)?,
                created: r.get(1)?,
                name: r.get(2)?,
                parent: r.get(3)?,
                status: RunStatus::named(&r.get::<String>(4)?),
                outcome: r.get::<Option<String>>(5)?.and_then(|t| parse(&t).ok()),
                ended: r.get(6)?,
                steps: whole(r.get(7)?),
            })
        });
        read.map_err(|e| self.failed(&e))
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
            let json = |text: String| parse(&text).map_err(|_| DbError::damaged());
            let mut request = json(row.request)?;
            if let Some(end) = &row.conversation {
                wire::put_messages(&mut request, conversation::read(&*self.db, run, end)?);
            }
            f(StepInfo {
                step: whole(row.step),
                request,
                response: row.response.map(json).transpose()?,
                model: row.model,
                tokens: (whole(row.tokens.0), whole(row.tokens.1)),
                elapsed: Duration::from_micros(whole(row.micros)),
                written: row.written,
            });
            Ok(())
        });
        read.map_err(|e| self.failed(&e))
    }

    /// Visits the entries of a run in the order of the answers; pending ones come last.
    fn each_row(
        &self,
        run: &str,
        mut f: impl FnMut(writer::Row) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let sql = format!(
            "SELECT {} FROM entries WHERE run = ?1 ORDER BY response IS NULL, step",
            writer::Row::COLUMNS
        );
        self.db.each(&Statement::new(sql).with(run), &mut |row| f(writer::Row::read(row)?))
    }

    /// Returns the answers of models: the link of the conversation, the response and its tokens.
    pub(crate) fn model_answers(&self, run: &str) -> Result<Vec<(Link, Json, Tokens)>, JournalError> {
        self.undamaged(run)?;
        let mut out = Vec::new();
        let read = self.each_row(run, |row| {
            if let (Some(end), Some(response)) = (row.conversation, row.response) {
                let tokens = Tokens::new(whole(row.tokens.0), whole(row.tokens.1));
                out.push((end, parse(&response).map_err(|_| DbError::damaged())?, tokens));
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
                "SELECT {} FROM entries {index} WHERE run = ?1 ORDER BY strand, number",
                writer::Row::COLUMNS
            );
            self.db.all(&Statement::new(sql).with(run), |r| {
                writer::Row::read(r).map(|row| (row.strand, row.number))
            })
        };
        let same = || {
            let (first, others) = self.db.indexes().split_first().unwrap_or((&"", &[]));
            let rows = by(first)?;
            others.iter().try_fold(true, |same, index| Ok(same && by(index)? == rows))
        };
        match same() {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failed(&DbError::damaged())),
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
        let read = || -> Result<Option<Checked>, DbError> {
            if !self.db.is_intact()? {
                return Ok(None);
            }
            let runs =
                self.db.all(&Statement::new("SELECT id FROM runs ORDER BY id"), |r| r.get::<String>(0))?;
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
            Ok(None) => Err(self.failed(&DbError::damaged())),
            Err(e) => Err(self.failed(&e)),
        }
    }

    /// Returns true if all records of a run are intact; adds the records checked to `counts`.
    fn is_as_written(&self, run: &str, counts: &mut Checked) -> Result<bool, DbError> {
        let mut whole =
            self.stored(run).is_ok() && self.changes(run).is_ok() && self.kept_program(run).is_ok();
        whole &= elicited::of(&*self.db, run).is_ok();
        let messages = conversation::all_links(&*self.db, run)?;
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
            Err(e) if e.is_damaged => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns the program and settings with which a run was started.
    fn stored(&self, run: &str) -> Result<Stored, JournalError> {
        let sql = "SELECT program, input, settings, digest, created FROM runs WHERE id = ?1";
        let found = self.db.first(&Statement::new(sql).with(run), |r| {
            let stored =
                Stored { program: r.get(0)?, input: r.get(1)?, settings: r.get(2)?, created: r.get(4)? };
            let whole = r.get::<String>(3)? == digest(&stored.program, &stored.input, &stored.settings);
            if whole { Ok(stored) } else { Err(DbError::damaged()) }
        });
        let found = found.map_err(|e| self.failed(&e))?;
        found.ok_or_else(|| JournalError::new(format!("run `{run}` not found in `{}`", self.db.shown())))
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
        self.copied(&run, &id, step, response)
            .and_then(|copy| self.db.write(None, &copy))
            .map_err(|e| self.failed(&e))?;
        Ok(id)
    }

    /// The statements that make a fork.
    fn copied(&self, run: &str, fork: &str, step: u64, response: &Json) -> Result<Vec<Statement>, DbError> {
        let mut copy = vec![self.db.copy_of_run(run, fork, now_millis())];
        copy.extend(changes::copy(&*self.db, run, fork, step)?);
        self.each_row(run, |mut row| {
            if row.response.is_none() || whole(row.step) > step {
                return Ok(());
            }
            if whole(row.step) == step {
                row.response = Some(response.to_string());
                row.seal();
            }
            copy.push(row.insert(fork));
            Ok(())
        })?;
        copy.push(
            Statement::new(
                "WITH RECURSIVE used (link) AS (
                    SELECT conversation FROM entries WHERE run = ?1 AND conversation IS NOT NULL
                    UNION SELECT m.before FROM messages m JOIN used ON m.run = ?2 AND m.link = used.link
                 )
                 INSERT INTO messages SELECT ?1, m.link, m.before, m.body
                 FROM messages m JOIN used ON m.run = ?2 AND m.link = used.link",
            )
            .with(fork)
            .with(run),
        );
        Ok(copy)
    }

    /// Forgets a run.
    ///
    /// # Errors
    /// There is no such run.
    pub fn delete(&mut self, run: &str) -> Result<(), JournalError> {
        let id = self.run(run)?.id;
        let mut gone = approvals::forget(&id).to_vec();
        gone.push(outcomes::forget(&id));
        gone.push(Statement::new("DELETE FROM runs WHERE id = ?1").with(&id));
        gone.push(programs::forget(&*self.db));
        self.db.write(None, &gone).map(|_| ()).map_err(|e| self.failed(&e))
    }
}

/// A name for a run that no other has: the time, and chance.
pub(crate) fn new_id() -> String {
    let mut rng = rng::arbitrary();
    format!("{:011x}{:08x}", now_millis(), rng.next_u64() >> 32)
}

pub(crate) fn now_millis() -> i64 {
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
    runs::hex(&Sha256::digest(text.as_bytes()))
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
    runs::hex(&check(&parts))
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
