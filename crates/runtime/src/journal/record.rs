//! Answered requests as text, for an engine that keeps them.
//!
//! Entry points: [`write`] and [`read`]. A record is what an entry of a journal is: the request, the link of
//! the conversation, the response and what it took.
//!
//! Invariant: the size of a record does not depend on the length of the conversation.

use super::conversation::Conversations;
use super::session::{BY, RETRIES, Recorded, Spent, WORDS};
use super::{Retries, parse, signed, wire};
use crate::Redactor;
use crate::provider::Tokens;
use core_ir::Num;
use machine::{Call, Response};
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A response as it is kept, with what belongs to it. Of an answer with a secret in it, it is kept only that
/// there was one: without the secret the answer would differ, and a run that goes on from that difference
/// would reveal the removed part. `None` of an answer that is not kept.
pub(super) fn kept_response(response: &Response, spent: &Spent, redactor: &Redactor) -> Option<Json> {
    let mut response = wire::response(response)?;
    if let Some(words) = &spent.words {
        response[WORDS] = Json::clone(words);
    }
    if let Some(by) = &spent.by {
        response[BY] = json!({"name": by.name, "via": by.via.as_str()});
    }
    if let Some(retries) = &spent.retries {
        response[RETRIES] = retries.to_json();
    }
    Some(if redactor.finds(&response) { wire::withheld() } else { response })
}

/// The request as it is kept, and the link of its conversation.
fn request(call: &Call, conversations: &mut Conversations, redactor: &Redactor) -> (Json, Json) {
    let mut request = wire::request(call);
    redactor.json(&mut request);
    let link = match call {
        Call::Model { messages, .. } => runs::hex(&conversations.link(messages, redactor)).into(),
        _ => Json::Null,
    };
    (request, link)
}

/// The record of an answer, which was there at `at` in milliseconds since 1970; `None` of one that is not
/// kept.
pub(crate) fn write(
    call: &Call,
    response: &Response,
    spent: &Spent,
    at: i64,
    conversations: &mut Conversations,
    redactor: &Redactor,
) -> Option<String> {
    let response = kept_response(response, spent, redactor)?;
    let (request, conversation) = request(call, conversations, redactor);
    let record = json!({
        "request": request, "conversation": conversation, "response": response,
        "model": redactor.text(&spent.model), "tokens": [spent.tokens.input, spent.tokens.output],
        "usd": spent.usd.as_ref().map(Num::to_string),
        "micros": u64::try_from(spent.elapsed.as_micros()).unwrap_or(u64::MAX), "at": at,
    });
    Some(record.to_string())
}

/// Reads a record, for the request that is made now, and when the answer was there.
///
/// # Errors
/// It is not the record of this request, or holds no answer that could be used.
pub(crate) fn read(
    call: &Call,
    record: &str,
    conversations: &mut Conversations,
    redactor: &Redactor,
) -> Result<(Recorded, i64), String> {
    let mut record = parse(record).map_err(|_| "a record of the engine can't be read".to_string())?;
    let (request, conversation) = request(call, conversations, redactor);
    let other = wire::difference(&record["request"], &request)
        .or_else(|| wire::difference(&record["conversation"], &conversation));
    if let Some(why) = other {
        return Err(format!("the request differs from the recorded one: {why}"));
    }
    let response = wire::read_response(call, &record["response"])
        .map_err(|why| format!("the response in the engine's journal can't be read: {why}"))?;
    let number = |json: &Json| json.as_u64().unwrap_or(0);
    let by = wire::decider(&record["response"]);
    let recorded = Recorded {
        response,
        words: record["response"].get_mut(WORDS).map(Json::take),
        by,
        retries: Retries::from_json(&record["response"][RETRIES]),
        model: record["model"].as_str().unwrap_or_default().to_string(),
        tokens: Tokens::new(number(&record["tokens"][0]), number(&record["tokens"][1])),
        usd: record["usd"].as_str().and_then(|t| t.parse().ok()),
        elapsed: Duration::from_micros(number(&record["micros"])),
        step: 0,
        written: record["at"].as_i64(),
    };
    let at = recorded.written.unwrap_or(signed(0));
    Ok((recorded, at))
}
