//! Typed replies while they arrive, from the events of a run.
//!
//! Entry point: [`Partials`], given the events that its reader is shown ([`crate::view::View::event`]).
//!
//! Invariant: it adds nothing to what it is given: without the text of a reply it tells nothing of it. So who
//! may not see a reply does not see a part of it.
//! Invariant: partial values are observations. No run reads them, and no journal keeps them.
//! Invariant: all that is told of a reply is some thirty times as long as it at most, however small its
//! pieces are.

use crate::events::request;
use machine::RequestId;
use machine::partial::{PartialReply, PartialValue};
use runtime::{Asked, Event};
use serde_json::{Value, json};
use std::collections::HashMap;

/// Fewest bytes that a reply grows by between two values.
const MIN_STEP: usize = 32;

/// The share of a reply that it grows by between two values.
const SHARE: usize = 16;

/// Replies that arrive.
#[derive(Debug, Default)]
pub struct Partials(HashMap<RequestId, Arriving>);

#[derive(Debug)]
struct Arriving {
    /// As it was before the reply began, for a repetition.
    fresh: PartialReply,
    reply: PartialReply,
    /// Bytes so far, and those of the last value.
    bytes: usize,
    told: usize,
    /// The value that was told last.
    last: Option<PartialValue>,
}

impl Partials {
    /// Takes note of an event. Returns the value that a reply has by now, if it has grown enough.
    pub fn note(&mut self, event: &Event) -> Option<(RequestId, PartialValue)> {
        match event {
            Event::Asked {
                id,
                what: Asked::Model { result: Some(result), tools, .. },
                recorded: false,
                ..
            } => {
                // The text of an agent with tools may say what it does before it calls one.
                let fresh = PartialReply::of(result).filter(|_| tools.is_empty())?;
                let reply = fresh.clone();
                self.0.insert(*id, Arriving { fresh, reply, bytes: 0, told: 0, last: None });
                None
            }
            Event::Text { id, text } => {
                let arriving = self.0.get_mut(id)?;
                arriving.bytes = arriving.bytes.saturating_add(text.len());
                arriving.reply.push(text);
                let step = MIN_STEP.max(arriving.told / SHARE);
                if arriving.last.is_some() && arriving.bytes < arriving.told.saturating_add(step) {
                    return None;
                }
                let now = arriving.reply.value().filter(|now| arriving.last.as_ref() != Some(now))?;
                (arriving.told, arriving.last) = (arriving.bytes, Some(now.clone()));
                Some((*id, now))
            }
            Event::Retry { id, .. } => {
                let arriving = self.0.get_mut(id)?;
                let fresh = arriving.fresh.clone();
                *arriving = Arriving { reply: fresh.clone(), fresh, bytes: 0, told: 0, last: None };
                None
            }
            Event::Answered { id, .. } => {
                self.0.remove(id);
                None
            }
            Event::Asked { .. } | Event::Growing { .. } => None,
        }
    }

    /// The same as an object with `event`.
    pub fn json(&mut self, event: &Event) -> Option<Value> {
        let (id, partial) = self.note(event)?;
        let open = partial.open_json();
        Some(json!({"event": "partial", "request": request(id), "value": partial.value, "open": open}))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use core_ir::{Data, Type};
    use diagnostics::{FileId, Span};

    /// The type of the replies.
    fn records() -> Type {
        Type::list(Type::record([("name".into(), Type::Str), ("n".into(), Type::Num)]))
    }

    /// A question to a model, with the label of its answer, and its type.
    pub(crate) fn asked(id: RequestId, answer: Data, result: Option<Type>) -> Event {
        Event::Asked {
            id,
            span: Span { file: FileId(0), start: 0, end: 0 },
            channel: Data::list([]),
            answer,
            place: [0].into(),
            what: Asked::Model {
                model: "m".into(),
                purpose: None,
                agent: None,
                messages: machine::Messages::default(),
                tools: Vec::new(),
                attempt: 0,
                result,
            },
            why: Vec::new(),
            recorded: false,
            importance: runtime::Importance::Normal,
        }
    }

    #[test]
    fn a_reply_of_any_length_is_told_in_few_values() {
        let id = RequestId { strand: 0, number: 0 };
        for items in [3usize, 100, 10_000] {
            let item = |n: usize| json!({"name": format!("item number {n}"), "n": n});
            let whole: Value = (0..items).map(item).collect();
            let text = whole.to_string();
            let mut partials = Partials::default();
            partials.json(&asked(id, Data::list([]), Some(records())));
            let (mut told, mut last) = (0, Value::Null);
            for piece in text.as_bytes().chunks(3) {
                let text = String::from_utf8(piece.to_vec()).unwrap();
                if let Some(json) = partials.json(&Event::Text { id, text }) {
                    told += json.to_string().len();
                    last = json;
                }
            }
            assert!(told < 30 * text.len().max(1000), "{items}: {told} of {}", text.len());
            assert!(last["value"].as_array().unwrap().len() * 10 >= items * 9, "{items}");
        }
    }

    #[test]
    fn a_repetition_begins_anew_and_an_answer_ends_it() {
        let id = RequestId { strand: 7, number: 2 };
        let mut partials = Partials::default();
        partials.json(&asked(id, Data::list([]), Some(records())));
        let mut says = |text: &str| partials.json(&Event::Text { id, text: text.into() });
        let open = says("[{\"name\": \"tea").unwrap();
        assert_eq!(
            open,
            json!({"event": "partial", "request": "7.2", "value": [{"name": "tea"}], "open": [0, "name"]})
        );
        assert_eq!(says(" is"), None);
        let wait = std::time::Duration::ZERO;
        partials.json(&Event::Retry { id, number: 1, wait, cause: "broken".into() });
        let again = partials.json(&Event::Text { id, text: "[{\"name\": \"a".into() }).unwrap();
        assert_eq!(again["value"], json!([{"name": "a"}]));
        assert_eq!(
            partials.json(&Event::Text { id: RequestId { number: 3, ..id }, text: "[1".into() }),
            None
        );
    }
}
