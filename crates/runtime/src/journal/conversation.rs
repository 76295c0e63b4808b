//! Conversations in a journal, each message once.
//!
//! A model call contains the whole conversation, and most calls repeat the previous one with a few more
//! messages. So a message is stored with a link to its predecessor, and a call names its last message. A
//! conversation takes space linear in its length, not quadratic.
//!
//! Entry point: [`Conversations`] for those who write, [`read`] for those who read.
//!
//! Invariant: the link to a message is a hash of the message and of its predecessor's link. So a common
//! prefix is stored once, and a modified message is detected.

use super::db::{Database, DbError, Statement};
use super::{check, parse, wire};
use crate::Redactor;
use core_ir::{Data, Name, Role};
use machine::Message;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;

/// Names the end of a conversation, and with it the whole.
pub(crate) type Link = [u8; 16];

/// The empty conversation.
pub(super) const NONE: Link = [0; 16];

/// Strands whose conversations are remembered; more than most programs have at once.
const STRANDS: usize = 256;

/// Known conversations of a run, so that their prefixes are not hashed again.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    strands: HashMap<u64, Vec<LinkedMessage>>,
}

/// A message with its link. It is kept alive, so no other one has its address.
#[derive(Debug)]
struct LinkedMessage {
    role: Role,
    content: Arc<str>,
    call: Option<Arc<(Name, Data)>>,
    link: Link,
}

impl LinkedMessage {
    fn is(&self, m: &Message) -> bool {
        self.role == m.role
            && Arc::ptr_eq(&self.content, &m.content)
            && match (&self.call, &m.call) {
                (None, None) => true,
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }
}

impl Conversations {
    /// The link of a conversation.
    pub(super) fn link(&mut self, strand: u64, messages: &[Message], redactor: &Redactor) -> Link {
        let linked = self.walk(strand, messages, redactor, |_, _, _| Ok::<_, std::convert::Infallible>(()));
        match linked {
            Ok(link) => link,
            Err(never) => match never {},
        }
    }

    /// Adds the statements that write what is new of a conversation. If they are not carried out,
    /// [`Conversations::forget`] must be called.
    pub(super) fn store(
        &mut self,
        into: &mut Vec<Statement>,
        run: &str,
        strand: u64,
        messages: &[Message],
        redactor: &Redactor,
    ) -> Link {
        let linked = self.walk(strand, messages, redactor, |link, before, body| {
            let insert = Statement::new(
                "INSERT INTO messages (run, link, before, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            );
            into.push(insert.with(run).with(*link).with(*before).with(body));
            Ok::<_, std::convert::Infallible>(())
        });
        match linked {
            Ok(link) => link,
            Err(never) => match never {},
        }
    }

    /// Nothing is known to be in the file.
    pub(super) fn forget(&mut self) {
        self.strands.clear();
    }

    fn walk<E>(
        &mut self,
        strand: u64,
        messages: &[Message],
        redactor: &Redactor,
        mut new: impl FnMut(&Link, &Link, &str) -> Result<(), E>,
    ) -> Result<Link, E> {
        if self.strands.len() >= STRANDS && !self.strands.contains_key(&strand) {
            self.strands.clear();
        }
        let known = self.strands.entry(strand).or_default();
        let same = known.iter().zip(messages).take_while(|(k, m)| k.is(m)).count();
        known.truncate(same);
        for m in &messages[same..] {
            let before = known.last().map_or(NONE, |k| k.link);
            let body = body(m, redactor);
            let link = next(&before, &body);
            new(&link, &before, &body)?;
            known.push(LinkedMessage {
                role: m.role,
                content: m.content.clone(),
                call: m.call.clone(),
                link,
            });
        }
        Ok(known.last().map_or(NONE, |k| k.link))
    }
}

/// Returns the link of a conversation without caching.
pub(crate) fn link(messages: &[Message]) -> Link {
    Conversations::default().link(0, messages, &Redactor::default())
}

/// Returns the links before each message of a conversation without caching.
pub(crate) fn links(messages: &[Message]) -> Vec<Link> {
    let mut known = Conversations::default();
    let mut before = NONE;
    let mut out = Vec::with_capacity(messages.len());
    let walked = known.walk(0, messages, &Redactor::default(), |link, _, _| {
        out.push(std::mem::replace(&mut before, *link));
        Ok::<_, std::convert::Infallible>(())
    });
    match walked {
        Ok(_) => out,
        Err(never) => match never {},
    }
}

/// The messages of a conversation.
///
/// # Errors
/// One is not in the file, or is not what was written.
pub(super) fn read(db: &dyn Database, run: &str, end: &Link) -> Result<Json, DbError> {
    let (mut at, mut out) = (*end, Vec::new());
    while at != NONE {
        let query = Statement::new("SELECT before, body FROM messages WHERE run = ?1 AND link = ?2");
        let found = db.first(&query.with(run).with(at), |r| Ok((r.get::<Link>(0)?, r.get::<String>(1)?)))?;
        let (before, body) = found.ok_or_else(DbError::damaged)?;
        if next(&before, &body) != at {
            return Err(DbError::damaged());
        }
        out.push(parse(&body).map_err(|_| DbError::damaged())?);
        at = before;
    }
    out.reverse();
    Ok(Json::Array(out))
}

/// All messages of a run: their links, and the link before each; `None` for one that is not what was written.
pub(super) fn all_links(db: &dyn Database, run: &str) -> Result<HashMap<Link, Option<Link>>, DbError> {
    let query = Statement::new("SELECT link, before, body FROM messages WHERE run = ?1").with(run);
    let rows = db.all(&query, |r| {
        let (link, before): (Link, Link) = (r.get(0)?, r.get(1)?);
        let is_it = next(&before, &r.get::<String>(2)?) == link;
        Ok((link, is_it.then_some(before)))
    })?;
    Ok(rows.into_iter().collect())
}

fn body(m: &Message, redactor: &Redactor) -> String {
    let mut json = wire::message_json(m);
    redactor.json(&mut json);
    json.to_string()
}

/// The link of a message with this body behind another one.
pub(super) fn next(before: &Link, body: &str) -> Link {
    check(&[Some(&before[..]), Some(body.as_bytes())])
}
