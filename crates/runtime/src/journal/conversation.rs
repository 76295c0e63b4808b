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
use machine::{Derived, Message, Messages};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;

/// Names the end of a conversation, and with it the whole.
pub(crate) type Link = [u8; 16];

/// The empty conversation.
pub(super) const NONE: Link = [0; 16];

/// Known conversations of a run, so that their prefixes are not hashed again.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    links: Derived<Link>,
}

impl Conversations {
    /// The link of a conversation.
    pub(super) fn link(&mut self, messages: &Messages, redactor: &Redactor) -> Link {
        self.walk(messages, redactor, |_, _, _| {})
    }

    /// Adds the statements that write what is new of a conversation. If they are not carried out,
    /// [`Conversations::forget`] must be called.
    pub(super) fn store(
        &mut self,
        into: &mut Vec<Statement>,
        run: &str,
        messages: &Messages,
        redactor: &Redactor,
    ) -> Link {
        self.walk(messages, redactor, |link, before, body| {
            let insert = Statement::new(
                "INSERT INTO messages (run, link, before, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            );
            into.push(insert.with(run).with(*link).with(*before).with(body));
        })
    }

    /// Nothing is known to be in the file.
    pub(super) fn forget(&mut self) {
        self.links.forget();
    }

    fn walk(
        &mut self,
        messages: &Messages,
        redactor: &Redactor,
        mut new: impl FnMut(&Link, &Link, &str),
    ) -> Link {
        self.links.of(messages, NONE, |before, own| {
            own.iter().fold(before, |before, m| {
                let body = body(m, redactor);
                let link = next(&before, &body);
                new(&link, &before, &body);
                link
            })
        })
    }
}

/// Returns the link of a conversation without caching.
pub(crate) fn link(messages: &Messages) -> Link {
    Conversations::default().link(messages, &Redactor::default())
}

/// Links of all messages of conversations, so that none is hashed again.
#[derive(Debug, Default)]
pub(crate) struct ConversationLinks {
    chains: Derived<Option<Arc<LinkChain>>>,
}

/// The links of some messages, and of those before.
#[derive(Debug)]
struct LinkChain {
    before: Option<Arc<LinkChain>>,
    own: Box<[Link]>,
}

impl LinkChain {
    fn end(chain: Option<&LinkChain>) -> Link {
        chain.and_then(|chain| chain.own.last()).copied().unwrap_or(NONE)
    }
}

impl Drop for LinkChain {
    /// One after the other: a conversation may have one for each of its turns.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(mut chain) = next.and_then(Arc::into_inner) {
            next = chain.before.take();
        }
    }
}

impl ConversationLinks {
    /// The link of a conversation.
    pub(crate) fn end(&mut self, messages: &Messages) -> Link {
        LinkChain::end(self.chain(messages).as_deref())
    }

    /// The link before each message.
    pub(crate) fn before_each(&mut self, messages: &Messages) -> Vec<Link> {
        let last = self.chain(messages);
        let mut chains: Vec<&LinkChain> =
            std::iter::successors(last.as_deref(), |chain| chain.before.as_deref()).collect();
        chains.reverse();
        let after_each = chains.into_iter().flat_map(|chain| chain.own.iter().copied());
        std::iter::once(NONE).chain(after_each).take(messages.len()).collect()
    }

    fn chain(&mut self, messages: &Messages) -> Option<Arc<LinkChain>> {
        self.chains.of(messages, None, |before, own| {
            let mut last = LinkChain::end(before.as_deref());
            let links = own.iter().map(|m| {
                last = next(&last, &body(m, &Redactor::default()));
                last
            });
            let own = links.collect();
            Some(Arc::new(LinkChain { before, own }))
        })
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
