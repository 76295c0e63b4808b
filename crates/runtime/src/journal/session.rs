//! A run with a journal.

use super::conversation::{self, Conversations};
use super::db::{Database, DbError, NewRun, RunLock, Statement};
use super::elicited::{self, Elicited};
use super::writer::{Row, Write, Writer, Written};
use super::{
    Journal, JournalError, Retries, RunIdentity, RunStatus, Stored, changed_line, hash, new_id, now_millis,
    parse, programs, whole, wire,
};
use crate::Redactor;
use crate::provider::Tokens;
use core_ir::exchange::{data_from_json, data_json};
use core_ir::{Data, Num};
use machine::{Call, RequestId, Response};
use runs::Decider;
use serde_json::{Value as Json, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Treatment of a tool call that was in flight when a run was interrupted, if the tool changes the world and
/// does not recognize a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfinished {
    /// The run stops and says so.
    #[default]
    Ask,
    /// It is called again.
    Retry,
    /// The program is told that it failed.
    Fail,
}

/// The field of a response in which a model's words are, beside what they say.
pub(super) const WORDS: &str = "words";

/// The field of a response in which stands who approved a call, or refused it.
pub(super) const BY: &str = "by";

/// The field of a response in which the attempts are that failed before it.
pub(super) const RETRIES: &str = "retries";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Answers are written.
    Write,
    /// Answers are read; what was not answered is an error.
    Replay,
    /// Answers are read; the run may not have ended.
    Look,
}

/// Run that is written to a journal, resumed from one, or replayed.
#[derive(Debug)]
pub struct Session {
    /// Connection for reading earlier answers. A run without earlier requests needs none.
    db: Option<Box<dyn Database>>,
    path: String,
    /// Held while the run goes on; `None` in a replay.
    lock: Option<RunLock>,
    /// Writer of new records; `None` in a replay.
    pub(super) writer: Option<Writer>,
    id: String,
    /// Start of the run, in milliseconds since 1970.
    created: i64,
    mode: Mode,
    /// Step up to which requests that differ from the journal's are made again, because another program may
    /// have made the recorded ones.
    changed_to: i64,
    unfinished: Unfinished,
    input: Option<Data>,
    settings: Json,
    /// Number of journal entries that were not requested again.
    left: u64,
    conversations: Conversations,
    /// Strands that have left the course of the journal.
    changed: HashSet<u64>,
    /// Requests that were in flight when the run was interrupted.
    interrupted: HashSet<RequestId>,
    /// Answers of people for these requests.
    pub(super) elicited: Elicited,
}

/// State of a request in a journal.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing: ask.
    Nothing,
    /// The answer.
    Answered(Box<Recorded>),
    /// It was begun and not answered.
    Begun,
    /// The run can't be resumed, for this reason.
    Wrong(String),
}

/// An answer of a journal.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) response: Response,
    /// Verbatim reply of a model, see [`crate::Answer::words`].
    pub(crate) words: Option<Json>,
    /// Party that approved a call, or refused it.
    pub(crate) by: Option<Decider>,
    /// Attempts that failed before it.
    pub(crate) retries: Option<Retries>,
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    pub(crate) usd: Option<Num>,
    pub(crate) elapsed: Duration,
    /// Number in the order of the answers.
    pub(crate) step: u64,
    /// When it was written, in milliseconds since 1970.
    pub(crate) written: Option<i64>,
}

impl Recorded {
    /// Returns false for a request whose time limit had passed before anything was done for it. It took no
    /// time, and counts for nothing.
    pub(crate) fn was_begun(&self) -> bool {
        !matches!(self.response, Response::Late(_)) || !self.elapsed.is_zero()
    }
}

/// Resources that an answer took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    pub(crate) usd: Option<Num>,
    pub(crate) elapsed: Duration,
    pub(crate) words: Option<Arc<Json>>,
    pub(crate) by: Option<Decider>,
    pub(crate) retries: Option<Retries>,
}

impl Journal {
    /// A new run. `redactor` tells what must not be written.
    ///
    /// # Errors
    /// The journal can't be written, or the input or a setting holds a secret. A policy may hold one: of it
    /// no text is kept.
    pub fn begin(self, about: &RunIdentity, redactor: &Redactor) -> Result<Session, JournalError> {
        let input = about.input.as_ref().map_or(String::new(), |d| data_json(d).to_string());
        let mut settings = about.settings.clone();
        if let Some(policy) = policy_of(&settings, redactor) {
            settings[super::POLICY_TEXT] = policy;
        }
        // For a guessable secret, whoever supplies the input could learn from this that it is one.
        let with_secret = match redactor.text(&input) == input {
            false => Some("the input"),
            true => redactor.finds(&settings).then_some("a setting of the run"),
        };
        if let Some(what) = with_secret {
            return Err(JournalError::new(format!(
                "{what} holds a secret of the environment, which no journal may keep"
            )));
        }
        let program = redactor.text(&about.program).into_owned();
        let keep = programs::keep(&*self.db, &mut settings, about.kept.as_deref(), redactor);
        let keep = keep.map_err(|e| self.failed(&e))?;
        let settings = settings.to_string();
        let run = NewRun {
            id: new_id(),
            created: now_millis(),
            name: redactor.text(&about.name).into_owned(),
            digest: super::digest(&program, &input, &settings),
            program,
            input,
            settings,
        };
        let id = run.id.clone();
        if let Some(keep) = keep {
            self.db.write(None, &[keep]).map_err(|e| self.failed(&e))?;
        }
        let lock = self.db.begin(run)?;
        self.session(id, Mode::Write, Some(lock))
    }

    /// A new recording of a run, which replaces earlier ones of the same name.
    ///
    /// # Errors
    /// The errors of [`Journal::begin`].
    pub fn record(self, about: &RunIdentity, redactor: &Redactor) -> Result<Session, JournalError> {
        let name = redactor.text(&about.name).into_owned();
        let delete = Statement::new("DELETE FROM runs WHERE name = ?1").with(name);
        self.db.write(None, &[delete]).map_err(|e| self.failed(&e))?;
        self.begin(about, redactor)
    }

    /// Resumes a run that was interrupted or ended by a limit. Recorded answers are not requested again. A
    /// refusal for lack of an approver does not count as an answer unless the run has received others since.
    ///
    /// The input and the settings are those of the journal, see [`Session::input`].
    ///
    /// # Errors
    /// The run does not exist, the file is damaged, another process executes the run, or the program has
    /// changed. With `allow_changed`, the answers of a changed program are used until its first different
    /// request; later requests are made again. The run then belongs to that program, see
    /// [`Journal::changes`].
    pub fn resume(
        self,
        run: &str,
        about: &RunIdentity,
        redactor: &Redactor,
        allow_changed: bool,
        unfinished: Unfinished,
    ) -> Result<Session, JournalError> {
        let id = self.run(run)?.id;
        self.undamaged(&id)?;
        let now = redactor.text(&about.program).into_owned();
        // Whoever has the lock is the only one to change the program.
        let lock = self.db.lock(&id)?;
        let then = self.stored(&id)?;
        if then.program != now && !allow_changed {
            return Err(JournalError::new(format!(
                "the program has changed since run `{id}` began: {}",
                changed_line(&then.program, &now)
            ))
            .with_help("resume the original program, or use `--allow-changed` to replay the requests that are unchanged"));
        }
        let (kept, policy) = (about.kept.as_deref(), policy_of(&about.settings, redactor));
        self.go_on(&id, then, (&now, kept, policy), redactor, &lock).map_err(|e| self.failed(&e))?;
        self.forget_nobody(&id, &lock)?;
        let elicited = elicited::of(&*self.db, &id).map_err(|e| self.failed(&e))?;
        let mut session = self.session(id, Mode::Write, Some(lock))?;
        session.elicited = elicited;
        session.unfinished = unfinished;
        if allow_changed {
            session.changed_to = i64::MAX;
        }
        Ok(session)
    }

    /// Records that a run is resumed, and with which program and policy.
    fn go_on(
        &self,
        run: &str,
        then: Stored,
        (now, kept, policy): (&str, Option<&str>, Option<Json>),
        redactor: &Redactor,
        lock: &RunLock,
    ) -> Result<(), DbError> {
        let mut statements = Vec::new();
        let mut settings = parse(&then.settings).map_err(|_| DbError::damaged())?;
        let another = with_policy(&mut settings, policy);
        if then.program != now || another {
            if then.program != now {
                statements.extend(programs::keep(&*self.db, &mut settings, kept, redactor)?);
                statements.push(super::changes::note(&*self.db, run, then.program)?);
            }
            let settings = settings.to_string();
            let digest = super::digest(now, &then.input, &settings);
            let change =
                Statement::new("UPDATE runs SET program = ?2, digest = ?3, settings = ?4 WHERE id = ?1");
            statements.push(change.with(run).with(now).with(digest).with(settings));
        }
        let again =
            Statement::new("UPDATE runs SET status = 'running', outcome = NULL, ended = NULL WHERE id = ?1");
        statements.push(again.with(run));
        self.db.write(Some(lock), &statements).map(|_| ())
    }

    /// Replays a run: offline, and strictly. What it asks must be what was recorded.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub fn replay(self, run: &str) -> Result<Session, JournalError> {
        let id = self.run(run)?.id;
        self.undamaged(&id)?;
        self.session(id, Mode::Replay, None)
    }

    /// Opens a run to look at it, whether it has ended or not.
    ///
    /// # Errors
    /// There is no such run, or the file is damaged.
    pub(super) fn look(self, run: &str) -> Result<Session, JournalError> {
        let id = self.run(run)?.id;
        // A run of 100,000 requests is as many queries.
        self.db.hold().map_err(|e| self.failed(&e))?;
        self.session(id, Mode::Look, None)
    }

    fn session(self, id: String, mode: Mode, lock: Option<RunLock>) -> Result<Session, JournalError> {
        let Stored { input, settings, created, .. } = self.stored(&id)?;
        let damaged = |what: &str| JournalError::new(format!("the {what} of run `{id}` can't be read"));
        let input = match input.as_str() {
            "" => None,
            text => {
                let json = parse(text).map_err(|_| damaged("input"))?;
                Some(data_from_json(&json).map_err(|_| damaged("input"))?)
            }
        };
        let settings = serde_json::from_str(&settings).map_err(|_| damaged("settings"))?;
        let count = |what: &str| {
            let query = Statement::new(format!("SELECT {what} FROM entries WHERE run = ?1")).with(&id);
            let found = self.db.first(&query, |r| r.get::<i64>(0)).map_err(|e| self.failed(&e))?;
            Ok::<_, JournalError>(whole(found.unwrap_or(0)))
        };
        let left = count("count(*)")?;
        let step = count("coalesce(max(CASE WHEN response IS NOT NULL THEN step END), 0)")?;
        let changed_to = match lock {
            Some(_) => super::changes::last_step(&*self.db, &id).map_err(|e| self.failed(&e))?,
            None => 0,
        };
        let path = self.db.shown();
        let (db, writer) = match lock.clone() {
            None => (Some(self.db), None),
            Some(lock) => {
                // Each has a connection of its own, so that reading does not wait until something is on the
                // disk.
                let (reading, writing) = match left {
                    0 => (None, self.db),
                    _ => {
                        let writing = self.db.another()?;
                        (Some(self.db), writing)
                    }
                };
                (reading, Some(Writer::new(writing, id.clone(), step, lock)))
            }
        };
        Ok(Session {
            db,
            path,
            lock,
            writer,
            id,
            created,
            mode,
            changed_to,
            unfinished: Unfinished::Ask,
            input,
            settings,
            left,
            conversations: Conversations::default(),
            changed: HashSet::new(),
            interrupted: HashSet::new(),
            elicited: Elicited::default(),
        })
    }

    /// Removes the last answers if they are refusals for lack of an approver. Earlier ones stay, because the
    /// program has proceeded from them.
    fn forget_nobody(&self, run: &str, lock: &RunLock) -> Result<(), JournalError> {
        let nobody = wire::response(&Response::Unattended);
        // A request in flight (without a response) was made after the one from which it counts.
        let forget = Statement::new(
            "DELETE FROM entries WHERE run = ?1 AND response = ?2 AND step >
                (SELECT coalesce(max(step), 0) FROM entries WHERE run = ?1 AND response IS DISTINCT FROM ?2)",
        );
        let forget = forget.with(run).with(nobody.map(|r| r.to_string()));
        self.db.write(Some(lock), &[forget]).map(|_| ()).map_err(|e| self.failed(&e))
    }

    /// Returns true if a live process executes the run: one that was killed does not.
    pub fn is_at_work(&self, id: &str) -> bool {
        self.db.is_locked(id)
    }
}

impl Session {
    /// The run's identifier in the journal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Start of the run, in milliseconds since 1970. Stores use it as their time, also after a resumption.
    pub(crate) fn created(&self) -> i64 {
        self.created
    }

    /// The input of the run.
    pub fn input(&self) -> Option<&Data> {
        self.input.as_ref()
    }

    /// The settings that the run was begun with.
    pub fn settings(&self) -> &Json {
        &self.settings
    }

    /// Returns true if the session replays a run and may not make requests.
    pub(crate) fn is_replay(&self) -> bool {
        self.mode == Mode::Replay
    }

    pub(crate) fn unfinished(&self) -> Unfinished {
        self.unfinished
    }

    /// The idempotency key of a call of a tool: the same whenever the call is repeated, see
    /// [`machine::Request::call_id`].
    pub(crate) fn key(run: &str, tool: &str, call: u64) -> String {
        hash(&format!("{run}/{call:x}/{tool}"))[..32].to_string()
    }

    fn broken(&self, e: &DbError) -> String {
        format!("the journal `{}` can't be used: {}", self.path, e.cause)
    }

    /// Looks a request up.
    pub(crate) fn known(&mut self, id: RequestId, call: &Call, redactor: &Redactor) -> Known {
        if matches!(call, Call::Sample { .. }) || self.changed.contains(&id.strand) {
            return Known::Nothing;
        }
        let Some(db) = self.db.take().filter(|_| self.left > 0 || self.mode != Mode::Write) else {
            // All that was asked before has been asked again.
            return Known::Nothing;
        };
        let known = self.look_up(&*db, id, call, redactor);
        self.db = Some(db);
        known.unwrap_or_else(|e| Known::Wrong(self.broken(&e)))
    }

    fn look_up(
        &mut self,
        db: &dyn Database,
        id: RequestId,
        call: &Call,
        redactor: &Redactor,
    ) -> Result<Known, DbError> {
        let mut now = wire::request(call);
        redactor.json(&mut now);
        let Some(row) = self.row(db, id)? else {
            return Ok(match self.mode {
                Mode::Replay => {
                    Known::Wrong(format!("the recording has no answer to this: {}", shown(call, &now)))
                }
                Mode::Write | Mode::Look => Known::Nothing,
            });
        };
        self.left = self.left.saturating_sub(1);
        let mut then = parse(&row.request).unwrap_or_default();
        let conversation = match call {
            Call::Model { messages, .. } => Some(self.conversations.link(messages, redactor)),
            _ => None,
        };
        if then != now || row.conversation != conversation {
            if let Call::Model { messages, .. } = call {
                let mut messages = wire::messages_json(messages);
                redactor.json(&mut messages);
                wire::put_messages(&mut now, messages);
            }
            if let Some(end) = &row.conversation {
                wire::put_messages(&mut then, conversation::read(db, &self.id, end)?);
            }
            if row.step > self.changed_to {
                let why = wire::difference(&then, &now).unwrap_or_else(|| "it has other fields".into());
                return Ok(Known::Wrong(format!("the request differs from the recorded one: {why}")));
            }
            self.changed.insert(id.strand);
            let delete =
                Statement::new("DELETE FROM entries WHERE run = ?1 AND strand = ?2 AND number >= ?3");
            let delete = delete.with(&*self.id).with(id.strand.cast_signed()).with(id.number);
            let gone = db.write(self.lock.as_ref(), &[delete])?;
            self.left = self.left.saturating_sub(gone.saturating_sub(1));
            return Ok(Known::Nothing);
        }
        let Some(response) = row.response else {
            return Ok(match self.mode {
                Mode::Write => {
                    self.interrupted.insert(id);
                    Known::Begun
                }
                Mode::Look => Known::Begun,
                Mode::Replay => {
                    Known::Wrong(format!("the recording ends while this is under way: {}", shown(call, &now)))
                }
            });
        };
        let mut json = parse(&response).unwrap_or_default();
        Ok(match wire::read_response(call, &json) {
            Ok(response) => Known::Answered(Box::new(Recorded {
                response,
                words: json.get_mut(WORDS).map(Json::take),
                by: wire::decider(&json),
                retries: Retries::from_json(&json[RETRIES]),
                model: row.model,
                tokens: Tokens::new(whole(row.tokens.0), whole(row.tokens.1)),
                usd: row.usd.and_then(|t| t.parse().ok()),
                elapsed: Duration::from_micros(whole(row.micros)),
                step: whole(row.step),
                written: row.written,
            })),
            Err(why) => Known::Wrong(format!("the response in the journal can't be read: {why}")),
        })
    }

    fn row(&self, db: &dyn Database, id: RequestId) -> Result<Option<Row>, DbError> {
        let sql =
            format!("SELECT {} FROM entries WHERE run = ?1 AND strand = ?2 AND number = ?3", Row::COLUMNS);
        let query = Statement::new(sql).with(&*self.id).with(id.strand.cast_signed()).with(id.number);
        db.first(&query, Row::read)
    }

    /// Returns whether the request after this one in its strand was answered. For an approval, this means
    /// that the approved call was made.
    pub(crate) fn has_gone_on(&self, id: RequestId) -> bool {
        let Some(db) = &self.db else { return false };
        let next = RequestId { number: id.number.saturating_add(1), ..id };
        self.row(&**db, next).is_ok_and(|row| row.is_some_and(|row| row.response.is_some()))
    }

    /// Records that a request is in flight. The request must not start before the record is on disk.
    pub(crate) fn begun(&self, id: RequestId, call: &Call, redactor: &Redactor) -> Option<Written> {
        let (call, redactor) = (call.clone(), redactor.clone());
        let entry = Write::Entry { id, call, response: None, spent: Box::default(), redactor };
        self.writer.as_ref().map(|w| w.write(entry))
    }

    /// Records that a tool recorded as in flight was not called. For a call that may have been made before an
    /// interruption, the earlier record stays.
    pub(crate) fn not_called(&self, id: RequestId) -> Option<Written> {
        let is_new = !self.interrupted.contains(&id);
        self.writer.as_ref().filter(|_| is_new).map(|w| w.write(Write::NotCalled { id }))
    }

    /// Writes an answer, which must not go to the machine before it is on the disk; `None` if this one is not
    /// kept. Of an answer with a secret in it, it is written only that there was one.
    pub(crate) fn answered(
        &self,
        id: RequestId,
        call: Call,
        response: &Response,
        spent: Spent,
        redactor: &Redactor,
    ) -> Option<Written> {
        let response = Some(super::record::kept_response(response, &spent, redactor)?);
        let entry = Write::Entry { id, call, response, spent: Box::new(spent), redactor: redactor.clone() };
        self.writer.as_ref().map(|w| w.write(entry))
    }

    /// Records the end of the run. A run that a limit or a cancellation stopped can be resumed later.
    pub(crate) fn ended(&self, status: RunStatus, outcome: Json) -> Option<Written> {
        let ended = Write::Ended { status, outcome };
        self.writer.as_ref().map(|w| w.write(ended))
    }
}

/// The text of a policy as a journal keeps it: one with a secret is withheld.
fn policy_of(settings: &Json, redactor: &Redactor) -> Option<Json> {
    let policy = settings.get(super::POLICY_TEXT)?;
    Some(if redactor.finds(policy) { wire::withheld() } else { policy.clone() })
}

/// Puts the policy with which a run goes on into its settings; returns true if it is another one. A run of an
/// earlier version has none.
fn with_policy(settings: &mut Json, policy: Option<Json>) -> bool {
    let (Some(then), Some(now)) = (settings.get(super::POLICY_TEXT), policy) else { return false };
    if *then == now {
        return false;
    }
    settings[super::POLICY_TEXT] = now;
    settings[super::POLICY_CHANGED] = json!(true);
    true
}

fn shown(call: &Call, request: &Json) -> String {
    match call {
        Call::Model { messages, .. } => {
            let said = messages.last().map_or("", |m| &*m.content);
            format!("a model is asked `{}`", diagnostics::clip_to(said, 200))
        }
        _ => format!("`{}`", diagnostics::clip_to(&request.to_string(), 200)),
    }
}
