//! Writes records on a thread of its own while a run proceeds.
//!
//! Entry point: [`Writer`]. What is handed to it is written in that order. What has come in while it was
//! writing is written together, with one synchronization of the disk: a hundred answers at once take hardly
//! longer than one.
//!
//! Invariant: the caller learns when a record is on disk, or why it is not.
//! Invariant: after a failure nothing of what was written together with it is in the file.

use super::conversation::Conversations;
use super::db::{self, Database, DbError, RunLock, Statement};
use super::session::Spent;
use super::{RunStatus, check, elicited, now_millis, signed, wire};
use crate::Redactor;
use core_ir::Num;
use machine::{Call, RequestId};
use serde_json::Value as Json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Something to be written.
#[derive(Debug)]
pub(super) enum Write {
    /// A request with its answer, or without one while it is in flight.
    Entry { id: RequestId, call: Call, response: Option<Json>, spent: Box<Spent>, redactor: Redactor },
    /// A request that was recorded as in flight, and whose tool was not called.
    NotCalled { id: RequestId },
    /// Answer of a person to a question of an MCP server.
    Elicited { id: RequestId, token: String, answer: Json },
    /// End of the run.
    Ended { status: RunStatus, outcome: Json },
}

/// Tells when something is on the disk.
#[derive(Debug)]
pub(crate) struct Written(oneshot::Receiver<Result<(), String>>);

impl Written {
    /// Waits until it is.
    pub(crate) async fn wait(self) -> Result<(), String> {
        // The thread goes only together with the whole tokio runtime.
        self.0.await.unwrap_or_else(|_| Err("the journal is not written any more".into()))
    }
}

/// Writes the entries of one run.
#[derive(Debug)]
pub(super) struct Writer(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    target: Mutex<Target>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<(Write, oneshot::Sender<Result<(), String>>)>,
    /// True while the thread is working. It checks the queue again before it ends.
    busy: bool,
}

#[derive(Debug)]
struct Target {
    db: Box<dyn Database>,
    run: String,
    /// The number of the last answer.
    step: u64,
    /// Conversations that are already stored.
    conversations: Conversations,
    /// Held as long as anything may still be written.
    lock: RunLock,
}

impl Writer {
    /// A writer for a run that has `step` answers.
    pub(super) fn new(db: Box<dyn Database>, run: String, step: u64, lock: RunLock) -> Writer {
        let target = Target { db, run, step, conversations: Conversations::default(), lock };
        Writer(Arc::new(Shared { queue: Mutex::default(), target: Mutex::new(target) }))
    }

    /// Hands something over. Needs a tokio runtime around it.
    pub(super) fn write(&self, what: Write) -> Written {
        let (done, written) = oneshot::channel();
        let mut queue = hold(&self.0.queue);
        queue.waiting.push((what, done));
        if !std::mem::replace(&mut queue.busy, true) {
            let shared = self.0.clone();
            tokio::task::spawn_blocking(move || shared.work());
        }
        Written(written)
    }
}

impl Shared {
    fn work(self: Arc<Shared>) {
        let mut batch = std::mem::take(&mut hold(&self.queue).waiting);
        loop {
            let (writes, told): (Vec<Write>, Vec<_>) = batch.into_iter().unzip();
            let result = hold(&self.target).write(&writes);
            let next = {
                let mut queue = hold(&self.queue);
                queue.busy = !queue.waiting.is_empty();
                std::mem::take(&mut queue.waiting)
            };
            let tell = || {
                for done in told {
                    // Whoever does not wait any more does not mind.
                    let _ = done.send(result.clone());
                }
            };
            if next.is_empty() {
                // Who is told that the last is written, and ends the session, closes the file.
                drop(self);
                return tell();
            }
            tell();
            batch = next;
        }
    }
}

impl Target {
    fn write(&mut self, writes: &[Write]) -> Result<(), String> {
        let step = self.step;
        let statements = self.statements(writes);
        let result = self.db.append(&self.lock, &statements);
        if result.is_err() {
            self.step = step;
            self.conversations.forget();
        }
        result.map_err(|e| format!("the journal `{}` can't be written: {}", self.db.shown(), e.cause))
    }

    fn statements(&mut self, writes: &[Write]) -> Vec<Statement> {
        let mut statements = Vec::with_capacity(writes.len());
        for write in writes {
            match write {
                Write::Entry { id, call, response, spent, redactor } => {
                    let mut request = wire::request(call);
                    redactor.json(&mut request);
                    let conversation = match call {
                        Call::Model { messages, .. } => {
                            let into = &mut statements;
                            Some(self.conversations.store(into, &self.run, messages, redactor))
                        }
                        _ => None,
                    };
                    // A request in flight has no number yet.
                    let step = self.step + 1;
                    if response.is_some() {
                        self.step = step;
                    }
                    let mut row = Row {
                        step: signed(step),
                        strand: id.strand.cast_signed(),
                        number: i64::from(id.number),
                        request: request.to_string(),
                        conversation,
                        response: response.as_ref().map(Json::to_string),
                        model: redactor.text(&spent.model).into_owned(),
                        tokens: (signed(spent.tokens.input), signed(spent.tokens.output)),
                        usd: spent.usd.as_ref().map(Num::to_string),
                        micros: signed(u64::try_from(spent.elapsed.as_micros()).unwrap_or(u64::MAX)),
                        written: Some(now_millis()),
                        check: Vec::new(),
                    };
                    row.seal();
                    statements.push(row.insert(&self.run));
                }
                Write::NotCalled { id } => {
                    let delete = "DELETE FROM entries
                         WHERE run = ?1 AND strand = ?2 AND number = ?3 AND response IS NULL";
                    let delete = Statement::new(delete).with(&*self.run);
                    statements.push(delete.with(id.strand.cast_signed()).with(id.number));
                }
                Write::Elicited { id, token, answer } => {
                    statements.push(elicited::insert(&self.run, *id, token, answer));
                }
                Write::Ended { status, outcome } => {
                    let end = "UPDATE runs SET status = ?2, outcome = ?3, ended = ?4 WHERE id = ?1";
                    let end = Statement::new(end).with(&*self.run).with(status.as_str());
                    statements.push(end.with(outcome.to_string()).with(now_millis()));
                }
            }
        }
        statements
    }
}

/// A line of the table `entries`.
pub(super) struct Row {
    pub(super) step: i64,
    pub(super) strand: i64,
    pub(super) number: i64,
    pub(super) request: String,
    /// Link of the conversation's last message, for a model call.
    pub(super) conversation: Option<super::conversation::Link>,
    pub(super) response: Option<String>,
    pub(super) model: String,
    pub(super) tokens: (i64, i64),
    pub(super) usd: Option<String>,
    pub(super) micros: i64,
    /// When it was written, in milliseconds since 1970; `None` of an entry of before.
    pub(super) written: Option<i64>,
    check: Vec<u8>,
}

impl Row {
    /// Its columns in the order in which [`Row::read`] takes them.
    pub(super) const COLUMNS: &str = "step, strand, number, request, conversation, response, model, \
         input_tokens, output_tokens, usd, micros, checksum, written";

    /// Reads a line of [`Row::COLUMNS`]. What is not what was written is an error.
    pub(super) fn read(r: &db::Row<'_>) -> Result<Row, DbError> {
        let row = Row::read_as_it_is(r)?;
        if row.is_intact() { Ok(row) } else { Err(DbError::damaged()) }
    }

    /// Reads a line of [`Row::COLUMNS`], whether or not it is what was written.
    pub(super) fn read_as_it_is(r: &db::Row<'_>) -> Result<Row, DbError> {
        Ok(Row {
            step: r.get(0)?,
            strand: r.get(1)?,
            number: r.get(2)?,
            request: r.get(3)?,
            conversation: r.get(4)?,
            response: r.get(5)?,
            model: r.get(6)?,
            tokens: (r.get(7)?, r.get(8)?),
            usd: r.get(9)?,
            micros: r.get(10)?,
            check: r.get(11)?,
            written: r.get(12)?,
        })
    }

    /// Returns true if it is what was written.
    pub(super) fn is_intact(&self) -> bool {
        self.check == self.checksum()
    }

    /// Computes the checksum anew.
    pub(super) fn seal(&mut self) {
        self.check = self.checksum().to_vec();
    }

    /// The statement that writes it, in place of what the journal had of the request.
    pub(super) fn insert(self, run: &str) -> Statement {
        Statement::new(
            "INSERT INTO entries (run, step, strand, number, request, conversation, response, model,
                 input_tokens, output_tokens, usd, micros, checksum, written)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
             ON CONFLICT (run, strand, number) DO UPDATE SET step = excluded.step, request = excluded.request,
                 conversation = excluded.conversation, response = excluded.response, model = excluded.model,
                 input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
                 usd = excluded.usd, micros = excluded.micros, checksum = excluded.checksum,
                 written = excluded.written",
        )
        .with(run)
        .with(self.step)
        .with(self.strand)
        .with(self.number)
        .with(self.request)
        .with(self.conversation)
        .with(self.response)
        .with(self.model)
        .with(self.tokens.0)
        .with(self.tokens.1)
        .with(self.usd)
        .with(self.micros)
        .with(self.check)
        .with(self.written)
    }

    /// Of all but the run, so that a fork may copy it.
    fn checksum(&self) -> [u8; 16] {
        let numbers = [self.step, self.strand, self.number, self.tokens.0, self.tokens.1, self.micros];
        let mut parts: Vec<Option<&[u8]>> = vec![
            Some(self.request.as_bytes()),
            self.conversation.as_ref().map(|c| &c[..]),
            self.response.as_deref().map(str::as_bytes),
            Some(self.model.as_bytes()),
            self.usd.as_deref().map(str::as_bytes),
        ];
        let numbers = numbers.map(i64::to_le_bytes);
        parts.extend(numbers.iter().map(|n| Some(&n[..])));
        // Entries of before have no time.
        let written = self.written.map(i64::to_le_bytes);
        parts.extend(written.as_ref().map(|n| Some(&n[..])));
        check(&parts)
    }
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves the queue as it was or empty, and the database rolls back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
