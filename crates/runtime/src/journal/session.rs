//! A run with a journal.

use super::{
    About, Journal, JournalError, cause, changed_line, hash, new_id, now_millis, parse, program_of, signed,
    whole, wire,
};
use crate::Redactor;
use crate::provider::Tokens;
use core_ir::exchange::{data_from_json, data_json};
use core_ir::{Data, Num};
use machine::{Call, RequestId, Response};
use rusqlite::{Connection, params};
use serde_json::Value as Json;
use std::collections::HashSet;
use std::fs::File;
use std::time::Duration;

/// What becomes of a tool call that was under way when a run was interrupted, if the tool changes the world and does not
/// recognise a repetition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unfinished {
    /// The run stops and says so.
    #[default]
    Ask,
    /// It is called again.
    Retry,
    /// The program is told that it failed.
    Fail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Answers are written.
    Write,
    /// Answers are read; what was not answered is an error.
    Replay,
}

/// A run that is written to a journal, goes on from one, or is replayed.
#[derive(Debug)]
pub struct Session {
    db: Connection,
    path: String,
    /// Keeps others from going on with the same run.
    _lock: Option<File>,
    id: String,
    mode: Mode,
    /// Requests that differ from the journal's are asked anew.
    allow_changed: bool,
    unfinished: Unfinished,
    input: Option<Data>,
    settings: Json,
    /// The number of the last answer.
    step: u64,
    /// Strands that have left the course of the journal.
    changed: HashSet<u64>,
}

/// What a journal knows of a request.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing: ask.
    Nothing,
    /// The answer.
    Answered(Box<Recorded>),
    /// It was begun and not answered.
    Begun,
    /// It can't go on, for this reason.
    Wrong(String),
}

/// An answer of a journal.
#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) response: Response,
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    pub(crate) usd: Option<Num>,
    pub(crate) elapsed: Duration,
}

/// What an answer took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) model: String,
    pub(crate) tokens: Tokens,
    pub(crate) usd: Option<Num>,
    pub(crate) elapsed: Duration,
}

impl Journal {
    /// A new run. `redactor` tells what must not be written.
    ///
    /// # Errors
    /// The journal can't be written, or the input holds a secret.
    pub fn begin(self, about: &About, redactor: &Redactor) -> Result<Session, JournalError> {
        let id = new_id();
        let input = about.input.as_ref().map_or(String::new(), |d| data_json(d).to_string());
        if redactor.text(&input) != input {
            return Err(JournalError::new(
                "the input holds a secret of the environment, which no journal may keep",
            ));
        }
        let program = redactor.text(&about.program).into_owned();
        let written = self.db.execute(
            "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, 'running', NULL)",
            params![
                id,
                now_millis(),
                redactor.text(&about.name),
                program,
                hash(&program),
                input,
                about.settings.to_string()
            ],
        );
        written.map_err(|e| self.failed(&e))?;
        self.session(id, Mode::Write)
    }

    /// A new recording of a run, which replaces earlier ones of the same name.
    ///
    /// # Errors
    /// As [`Journal::begin`].
    pub fn record(self, about: &About, redactor: &Redactor) -> Result<Session, JournalError> {
        let name = redactor.text(&about.name).into_owned();
        self.db.execute("DELETE FROM runs WHERE name = ?1", [name]).map_err(|e| self.failed(&e))?;
        self.begin(about, redactor)
    }

    /// Goes on with a run that was interrupted, or ended by a limit. What was answered is not asked again; that nobody was there to
    /// approve a call is no answer, unless the run has got others since.
    ///
    /// The input and the settings are those of the journal, see [`Session::input`].
    ///
    /// # Errors
    /// There is no such run, another process goes on with it, or the program has changed. With `allow_changed` a changed program is run as
    /// far as it asks the same; from where it differs it asks anew.
    pub fn resume(
        self,
        run: &str,
        about: &About,
        redactor: &Redactor,
        allow_changed: bool,
        unfinished: Unfinished,
    ) -> Result<Session, JournalError> {
        let id = self.run(run)?.id;
        let now = redactor.text(&about.program).into_owned();
        let stored = program_of(&self.db, &id).map_err(|e| self.failed(&e))?;
        let then = stored.map(|s| s.0).unwrap_or_default();
        if then != now && !allow_changed {
            return Err(JournalError::new(format!(
                "the program has changed since run `{id}` began: {}",
                changed_line(&then, &now)
            ))
            .with_help("go on with the program as it was, or use `--allow-changed` to replay it as far as it asks the same"));
        }
        let again =
            self.db.execute("UPDATE runs SET status = 'running', outcome = NULL WHERE id = ?1", [&id]);
        again.map_err(|e| self.failed(&e))?;
        let mut session = self.session(id, Mode::Write)?;
        (session.allow_changed, session.unfinished) = (allow_changed, unfinished);
        session.forget_nobody()?;
        Ok(session)
    }

    /// Replays a run: offline, and strictly. What it asks must be what was recorded.
    ///
    /// # Errors
    /// There is no such run.
    pub fn replay(self, run: &str) -> Result<Session, JournalError> {
        let id = self.run(run)?.id;
        self.session(id, Mode::Replay)
    }

    fn session(self, id: String, mode: Mode) -> Result<Session, JournalError> {
        let lock = match mode {
            Mode::Write => Some(self.lock(&id)?),
            Mode::Replay => None,
        };
        let (_, input, settings) =
            program_of(&self.db, &id).map_err(|e| self.failed(&e))?.unwrap_or_default();
        let damaged = |what: &str| JournalError::new(format!("the {what} of run `{id}` can't be read"));
        let input = match input.as_str() {
            "" => None,
            text => {
                let json = parse(text).map_err(|_| damaged("input"))?;
                Some(data_from_json(&json).map_err(|_| damaged("input"))?)
            }
        };
        let settings = serde_json::from_str(&settings).map_err(|_| damaged("settings"))?;
        let step = "SELECT coalesce(max(step), 0) FROM entries WHERE run = ?1 AND response IS NOT NULL";
        let step: i64 = self.db.query_row(step, [&id], |r| r.get(0)).map_err(|e| self.failed(&e))?;
        Ok(Session {
            db: self.db,
            path: self.path.display().to_string(),
            _lock: lock,
            id,
            mode,
            allow_changed: false,
            unfinished: Unfinished::Ask,
            input,
            settings,
            step: whole(step),
            changed: HashSet::new(),
        })
    }

    /// The lock of a run: held as long as the process lives.
    fn lock(&self, id: &str) -> Result<File, JournalError> {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{id}.lock"));
        let failed = |e: std::io::Error| JournalError::new(format!("cannot lock run `{id}`: {e}"));
        // Whoever held the lock before may have removed the file between our opening and locking it.
        for _ in 0..8 {
            let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if same_file(&file, &path) => return Ok(file),
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => break,
                Err(std::fs::TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
        Err(JournalError::new(format!("another process goes on with run `{id}`")))
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &std::ffi::OsStr) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = |m: std::io::Result<std::fs::Metadata>| m.ok().map(|m| (m.dev(), m.ino()));
    inode(file.metadata()).is_some() && inode(file.metadata()) == inode(std::fs::metadata(path))
}

/// Where open files can't be removed there is nothing to compare.
#[cfg(not(unix))]
fn same_file(_: &File, _: &std::ffi::OsStr) -> bool {
    true
}

impl Session {
    /// The run's identifier in the journal.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The input of the run.
    pub fn input(&self) -> Option<&Data> {
        self.input.as_ref()
    }

    /// The settings that the run was begun with.
    pub fn settings(&self) -> &Json {
        &self.settings
    }

    /// Forgets the last answers if they say that nobody was there to approve a call. Earlier ones stay: the program has gone on from them.
    fn forget_nobody(&mut self) -> Result<(), JournalError> {
        let nobody = wire::response(&Response::Approve(Err(crate::NOBODY.into())));
        // What is under way (without a response) has been asked after what it counts from.
        let forgotten = self.db.execute(
            "DELETE FROM entries WHERE run = ?1 AND response = ?2 AND step >
                (SELECT coalesce(max(step), 0) FROM entries WHERE run = ?1 AND response IS NOT ?2)",
            params![self.id, nobody.map(|r| r.to_string())],
        );
        let forgotten = forgotten.map_err(|e| JournalError::new(self.broken(&e)))?;
        self.step = self.step.saturating_sub(forgotten as u64);
        Ok(())
    }

    /// Whether nothing may be asked.
    pub(crate) fn is_replay(&self) -> bool {
        self.mode == Mode::Replay
    }

    pub(crate) fn unfinished(&self) -> Unfinished {
        self.unfinished
    }

    /// What repeats a call without repeating its effect: the same for a request of a run whenever it is asked.
    pub(crate) fn key(run: &str, id: RequestId) -> String {
        hash(&format!("{run}/{:x}/{}", id.strand, id.number))[..32].to_string()
    }

    fn broken(&self, e: &rusqlite::Error) -> String {
        format!("the journal `{}` can't be written: {}", self.path, cause(e))
    }

    /// What is known of a request.
    pub(crate) fn known(&mut self, id: RequestId, call: &Call, redactor: &Redactor) -> Known {
        if matches!(call, Call::Sample { .. }) || self.changed.contains(&id.strand) {
            return Known::Nothing;
        }
        let mut now = wire::request(call);
        redactor.json(&mut now);
        match self.look_up(id) {
            Err(e) => Known::Wrong(self.broken(&e)),
            Ok(None) if self.mode == Mode::Replay => {
                Known::Wrong(format!("the recording has no answer to this: {}", shown(&now)))
            }
            Ok(None) => Known::Nothing,
            Ok(Some((request, response, spent))) => {
                let then = parse(&request).unwrap_or_default();
                if let Some(why) = wire::difference(&then, &now) {
                    if !self.allow_changed {
                        return Known::Wrong(format!("this is not what was asked before: {why}"));
                    }
                    self.changed.insert(id.strand);
                    let gone = self.db.execute(
                        "DELETE FROM entries WHERE run = ?1 AND strand = ?2 AND number >= ?3",
                        params![self.id, id.strand.cast_signed(), id.number],
                    );
                    return match gone {
                        Ok(_) => Known::Nothing,
                        Err(e) => Known::Wrong(self.broken(&e)),
                    };
                }
                let Some(response) = response else {
                    return match self.mode {
                        Mode::Write => Known::Begun,
                        Mode::Replay => Known::Wrong(format!(
                            "the recording ends while this is under way: {}",
                            shown(&now)
                        )),
                    };
                };
                let json = parse(&response).unwrap_or_default();
                match wire::read_response(call, &json) {
                    Ok(response) => Known::Answered(Box::new(Recorded {
                        response,
                        model: spent.model,
                        tokens: spent.tokens,
                        usd: spent.usd,
                        elapsed: spent.elapsed,
                    })),
                    Err(why) => Known::Wrong(format!("the response in the journal can't be read: {why}")),
                }
            }
        }
    }

    #[allow(clippy::type_complexity)] // Taken apart where it is called, once.
    fn look_up(&self, id: RequestId) -> Result<Option<(String, Option<String>, Spent)>, rusqlite::Error> {
        let mut statement = self.db.prepare_cached(
            "SELECT request, response, model, input_tokens, output_tokens, usd, micros
             FROM entries WHERE run = ?1 AND strand = ?2 AND number = ?3",
        )?;
        let mut rows = statement.query(params![self.id, id.strand.cast_signed(), id.number])?;
        let Some(r) = rows.next()? else { return Ok(None) };
        let spent = Spent {
            model: r.get(2)?,
            tokens: Tokens { input: whole(r.get(3)?), output: whole(r.get(4)?) },
            usd: r.get::<_, Option<String>>(5)?.and_then(|t| t.parse().ok()),
            elapsed: Duration::from_micros(whole(r.get(6)?)),
        };
        Ok(Some((r.get(0)?, r.get(1)?, spent)))
    }

    /// Notes that a request is under way.
    pub(crate) fn begun(&mut self, id: RequestId, call: &Call, redactor: &Redactor) -> Result<(), String> {
        self.write(id, call, None, &Spent::default(), redactor)
    }

    /// Writes an answer, which must not go to the machine before this has returned.
    pub(crate) fn answered(
        &mut self,
        id: RequestId,
        call: &Call,
        response: &Response,
        spent: &Spent,
        redactor: &Redactor,
    ) -> Result<(), String> {
        match wire::response(response) {
            Some(json) => self.write(id, call, Some(json), spent, redactor),
            None => Ok(()),
        }
    }

    fn write(
        &mut self,
        id: RequestId,
        call: &Call,
        response: Option<Json>,
        spent: &Spent,
        redactor: &Redactor,
    ) -> Result<(), String> {
        let mut request = wire::request(call);
        redactor.json(&mut request);
        // What is under way has no number of its own yet.
        let step = self.step + 1;
        if response.is_some() {
            self.step = step;
        }
        let wrote = (|| {
            let mut statement = self.db.prepare_cached(
                "INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?;
            statement.execute(params![
                self.id,
                signed(step),
                id.strand.cast_signed(),
                id.number,
                request.to_string(),
                response.map(|r| r.to_string()),
                redactor.text(&spent.model),
                signed(spent.tokens.input),
                signed(spent.tokens.output),
                spent.usd.as_ref().map(Num::to_string),
                signed(u64::try_from(spent.elapsed.as_micros()).unwrap_or(u64::MAX)),
            ])
        })();
        wrote.map(|_| ()).map_err(|e| self.broken(&e))
    }

    /// Notes how the run ended. A run that was cut off by a limit or from outside can go on later.
    pub(crate) fn ended(&mut self, status: &str, outcome: &Json) -> Result<(), String> {
        if self.mode == Mode::Replay {
            return Ok(());
        }
        let sql = "UPDATE runs SET status = ?2, outcome = ?3 WHERE id = ?1";
        let wrote = self.db.execute(sql, params![self.id, status, outcome.to_string()]);
        wrote.map(|_| ()).map_err(|e| self.broken(&e))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // While it is locked: see `same_file`.
        if self._lock.is_some() {
            let _ = std::fs::remove_file(format!("{}.{}.lock", self.path, self.id));
        }
    }
}

fn shown(request: &Json) -> String {
    let text = match request.get("kind").and_then(Json::as_str) {
        Some("model") => {
            let last = request.get("messages").and_then(Json::as_array).and_then(|m| m.last());
            let said = last.and_then(|m| m.get("content")).and_then(Json::as_str).unwrap_or_default();
            return format!("a model is asked `{}`", diagnostics::clip_to(said, 200));
        }
        _ => request.to_string(),
    };
    format!("`{}`", diagnostics::clip_to(&text, 200))
}
