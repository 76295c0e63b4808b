//! A run as its journal keeps it, for those who check it.
//!
//! Entry point: [`Journal::kept`]. Reading is lenient: what is not as it was written is told with its step,
//! and does not keep the rest from being read.
//!
//! Invariant: nothing is compared with the environment: requests and answers are in the journal without
//! secrets, and a replay of them has none.

use super::approvals::KeptQuestion;
use super::conversation::{self, Link};
use super::db::{Database, DbError, Statement};
use super::writer::Row;
use super::{Change, Journal, JournalError, RunInfo, parse, whole, wire};
use core_ir::Data;
use core_ir::exchange::data_from_json;
use machine::{Call, RequestId, Response};
use runs::Decider;
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Field of an object in place of a value which a receipt does not show.
pub const REDACTED: &str = "$redacted";

/// A run in a journal.
#[derive(Clone, Debug)]
pub struct KeptRun {
    /// Its identity and its end.
    pub info: RunInfo,
    /// The program as `.lam`.
    pub program: String,
    /// The input.
    pub input: Option<Data>,
    /// The settings that it was begun with ([`super::RunIdentity::settings`]).
    pub settings: Json,
    /// Changes of the program since the run began.
    pub changes: Vec<Change>,
    /// The requests.
    pub entries: BTreeMap<RequestId, KeptEntry>,
    /// The messages of their conversations.
    pub messages: KeptMessages,
    /// Questions to people, by the request.
    pub questions: HashMap<RequestId, KeptQuestion>,
    /// Parts that are not as they were written.
    pub damage: Vec<Damage>,
}

/// A part that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The step, if it is one.
    pub step: Option<u64>,
    /// A description of it, for people.
    pub what: String,
}

/// A request of a run in a journal.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptEntry {
    /// Number in the order of the answers, from 1.
    pub step: u64,
    /// The request as JSON, without the conversation.
    pub request: Json,
    /// The last message of the conversation, for a request to a model ([`KeptMessages`]).
    pub conversation: Option<[u8; 16]>,
    /// The answer as JSON; `None` while it is in flight.
    pub response: Option<Json>,
    /// The model that answered; empty for other requests.
    pub model: String,
}

impl KeptEntry {
    /// The difference if a program makes this request now.
    pub fn difference(&self, messages: &KeptMessages, call: &Call) -> Option<String> {
        let mut now = wire::request(call);
        let link = match call {
            Call::Model { messages, .. } => Some(conversation::link(messages)),
            _ => None,
        };
        let mut then = self.request.clone();
        for part in ["args", "value"] {
            if then.get(part).is_some_and(|part| part.get(REDACTED).is_some()) {
                then[part] = now.get(part).cloned().unwrap_or_default();
            }
        }
        if then == now && self.conversation == link {
            return None;
        }
        if let Call::Model { messages, .. } = call {
            wire::put_messages(&mut now, wire::messages_json(messages));
        }
        if let Some(Ok(conversation)) = self.conversation.map(|end| messages.conversation(&end)) {
            wire::put_messages(&mut then, conversation);
        }
        Some(wire::difference(&then, &now).unwrap_or_else(|| "it has other fields".into()))
    }

    /// The answer to the request; `None` while it is in flight, `Some(Err(_))` if it is none to this request.
    pub fn answer(&self, call: &Call) -> Option<Result<Response, String>> {
        Some(wire::read_response(call, self.response.as_ref()?))
    }

    /// Returns true if the answer held a secret, and only that is kept.
    pub fn is_withheld(&self) -> bool {
        self.response.as_ref() == Some(&wire::withheld())
    }

    /// Returns true if a receipt does not show the answer.
    pub fn is_redacted(&self) -> bool {
        self.response.as_ref().is_some_and(|response| response.get(REDACTED).is_some())
    }

    /// Party that approved the call, or refused it.
    pub fn decider(&self) -> Option<Decider> {
        wire::decider(self.response.as_ref()?)
    }
}

/// The messages of a run. Each is named by a hash of it and of the one before, its link.
#[derive(Clone, Debug, Default)]
pub struct KeptMessages(HashMap<Link, (Link, String)>);

impl KeptMessages {
    fn of(db: &dyn Database, run: &str) -> Result<KeptMessages, DbError> {
        let query = Statement::new("SELECT link, before, body FROM messages WHERE run = ?1").with(run);
        let rows = db.all(&query, |r| Ok((r.get::<Link>(0)?, (r.get(1)?, r.get(2)?))))?;
        Ok(KeptMessages(rows.into_iter().collect()))
    }

    /// Adds a message behind the one of a link; returns its own link.
    pub fn add(&mut self, before: Option<[u8; 16]>, body: String) -> [u8; 16] {
        let before = before.unwrap_or(conversation::NONE);
        let link = conversation::next(&before, &body);
        self.0.insert(link, (before, body));
        link
    }

    /// The link before a message, if there is one, and the message as JSON text; `None` for an unknown link.
    pub fn message(&self, link: &[u8; 16]) -> Option<(Option<[u8; 16]>, &str)> {
        let (before, body) = self.0.get(link)?;
        Some(((*before != conversation::NONE).then_some(*before), body))
    }

    /// The conversation that ends with a message, as JSON.
    ///
    /// # Errors
    /// The defect, as a text.
    pub fn conversation(&self, end: &[u8; 16]) -> Result<Json, &'static str> {
        let mut out = Vec::new();
        for message in self.back(*end) {
            let (_, body) = message?;
            out.push(parse(body).map_err(|_| "a message of its conversation can't be read")?);
        }
        out.reverse();
        Ok(Json::Array(out))
    }

    /// Looks at the messages of a conversation that were not looked at yet.
    fn is_intact(&self, end: &Link, seen: &mut HashSet<Link>) -> Result<(), &'static str> {
        for message in self.back(*end) {
            let (link, _) = message?;
            if !seen.insert(link) {
                break;
            }
        }
        Ok(())
    }

    /// The messages from one back to the first with their links, up to one that is not what was written.
    fn back(&self, end: Link) -> impl Iterator<Item = Result<(Link, &str), &'static str>> {
        let mut at = end;
        std::iter::from_fn(move || {
            if at == conversation::NONE {
                return None;
            }
            let link = std::mem::replace(&mut at, conversation::NONE);
            let Some((before, body)) = self.0.get(&link) else {
                return Some(Err("a message of its conversation is missing"));
            };
            // A link is a hash of what it is the link of, so none leads back to itself.
            if conversation::next(before, body) != link {
                return Some(Err("a message of its conversation is not what was written"));
            }
            at = *before;
            Some(Ok((link, body.as_str())))
        })
    }
}

/// A row of the table of runs.
struct RunRow {
    program: String,
    input: String,
    settings: String,
    digest: String,
}

impl Journal {
    /// Reads a run with everything that is needed to check it. What is not as it was written is in
    /// [`KeptRun::damage`].
    ///
    /// # Errors
    /// There is no such run, or its rows can't be read at all.
    pub fn kept(&self, run: &str) -> Result<KeptRun, JournalError> {
        let info = self.run(run)?;
        let failed = |e| self.failed(&e);
        let sql = "SELECT program, input, settings, digest FROM runs WHERE id = ?1";
        let row = self.db.first(&Statement::new(sql).with(&*info.id), |r| {
            Ok(RunRow { program: r.get(0)?, input: r.get(1)?, settings: r.get(2)?, digest: r.get(3)? })
        });
        let row = row.map_err(failed)?.ok_or_else(|| failed(DbError::damaged()))?;
        let mut damage = Vec::new();
        let mut note = |step, what: &str| damage.push(Damage { step, what: what.to_string() });
        if row.digest != super::digest(&row.program, &row.input, &row.settings) {
            note(None, "the program, the input or the settings are not what was written");
        }
        let json = |text: &str| parse(text).map_err(|_| failed(DbError::damaged()));
        let input = match row.input.as_str() {
            "" => None,
            text => Some(data_from_json(&json(text)?).map_err(|_| failed(DbError::damaged()))?),
        };
        let changes = self.changes(&info.id).unwrap_or_else(|_| {
            note(None, "the programs that the run had before are not what was written");
            Vec::new()
        });
        let messages = KeptMessages::of(&*self.db, &info.id).map_err(failed)?;
        let mut seen = HashSet::new();
        let (mut entries, mut steps) = (BTreeMap::new(), HashSet::new());
        for row in self.rows_as_they_are(&info.id).map_err(failed)? {
            let step = whole(row.step);
            let number = u32::try_from(row.number).unwrap_or(u32::MAX);
            let id = RequestId { strand: row.strand.cast_unsigned(), number };
            let at = row.response.is_some().then_some(step);
            if !row.is_intact() {
                note(at, "the row is not what was written");
            }
            let request = parse(&row.request);
            let response = row.response.as_deref().map(parse).transpose();
            let (Ok(request), Ok(response)) = (request, response) else {
                note(at, "the row can't be read");
                continue;
            };
            if let Some(Err(what)) = row.conversation.map(|end| messages.is_intact(&end, &mut seen)) {
                note(at, what);
            }
            if response.is_some() && !steps.insert(step) {
                note(at, "two answers have this number");
            }
            let (conversation, model) = (row.conversation, row.model);
            entries.insert(id, KeptEntry { step, request, conversation, response, model });
        }
        let questions = self.kept_questions(&info.id).map_err(failed)?;
        let (program, settings) = (row.program, json(&row.settings)?);
        Ok(KeptRun { info, program, input, settings, changes, entries, messages, questions, damage })
    }

    /// The entries of a run, whether or not they are what was written.
    fn rows_as_they_are(&self, run: &str) -> Result<Vec<Row>, DbError> {
        let sql =
            format!("SELECT {} FROM entries WHERE run = ?1 ORDER BY response IS NULL, step", Row::COLUMNS);
        self.db.all(&Statement::new(sql).with(run), Row::read_as_it_is)
    }
}
