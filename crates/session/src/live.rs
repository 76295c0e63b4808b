//! Replies that arrive, beside the journal of their run, for a page that shows the run.
//!
//! Entry points: [`LiveReplies`], given the events of a run, and [`LiveReplies::read`].
//!
//! Invariant: it is an observation of a run and no part of it, on a [`LiveBoard`], which no run reads.
//! Invariant: what is shown is the end of each reply that arrives, a few times in a second at most.

use crate::events::request;
use crate::partials::Partials;
use core_ir::Data;
use machine::RequestId;
use machine::partial::PartialValue;
use runtime::{Asked, Event, JournalPlace, LiveBoard};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Most bytes of a reply that are kept: its end.
const MAX_BYTES: usize = 16 << 10;

/// Most replies that are kept.
const MAX_REPLIES: usize = 16;

/// Most bytes of a typed value that is shown.
const MAX_VALUE: usize = 64 << 10;

/// Most characters of the reason of a repetition.
const MAX_CAUSE: usize = 300;

/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_millis(200);

/// The replies of a run that arrive.
#[derive(Debug)]
pub struct LiveReplies {
    /// `None` once it is closed.
    board: Option<LiveBoard>,
    replies: BTreeMap<RequestId, Arriving>,
    partials: Partials,
    written: Option<Instant>,
}

#[derive(Debug)]
struct Arriving {
    model: String,
    purpose: Option<String>,
    label: Data,
    text: String,
    /// Number of bytes before `text`.
    before: usize,
    value: Option<PartialValue>,
    /// The repetition that this is, from 1, with the reason.
    retry: Option<(u32, String)>,
}

impl LiveReplies {
    /// The replies of a run of a journal that this process holds; `None` for a recording.
    pub fn of(place: &JournalPlace, run: &str) -> Option<LiveReplies> {
        let board = Some(LiveBoard::of(place, run)?);
        Some(LiveReplies { board, replies: BTreeMap::new(), partials: Partials::default(), written: None })
    }

    /// Takes note of an event, from which secrets have been removed.
    pub fn note(&mut self, event: &Event) {
        let partial = self.partials.note(event);
        match event {
            Event::Asked {
                id, what: Asked::Model { model, purpose, .. }, answer, recorded: false, ..
            } => {
                if self.replies.len() < MAX_REPLIES {
                    let (model, purpose) = (model.clone(), purpose.as_ref().map(ToString::to_string));
                    let (label, text) = (answer.clone(), String::new());
                    let (before, value, retry) = (0, None, None);
                    self.replies.insert(*id, Arriving { model, purpose, label, text, before, value, retry });
                }
            }
            Event::Text { id, text } => {
                let Some(reply) = self.replies.get_mut(id) else { return };
                reply.text.push_str(text);
                if reply.text.len() > 2 * MAX_BYTES {
                    let surplus = reply.text.len() - MAX_BYTES;
                    let from = reply.text.char_indices().map(|(at, _)| at).find(|at| *at >= surplus);
                    let kept = reply.text.split_off(from.unwrap_or_default());
                    reply.before += reply.text.len();
                    reply.text = kept;
                }
                if let Some((_, value)) = partial {
                    reply.value = Some(value);
                }
                if self.written.is_none_or(|written| written.elapsed() >= PAUSE) {
                    self.write();
                }
            }
            Event::Retry { id, number, cause, .. } => {
                let Some(reply) = self.replies.get_mut(id) else { return };
                (reply.text, reply.before, reply.value) = (String::new(), 0, None);
                reply.retry = Some((*number, diagnostics::clip_to(cause, MAX_CAUSE)));
                self.write();
            }
            Event::Answered { id, .. } => {
                if self.replies.remove(id).is_some() && self.written.is_some() {
                    self.write();
                }
            }
            Event::Asked { .. } | Event::Growing { .. } => {}
        }
    }

    fn write(&mut self) {
        self.written = Some(Instant::now());
        let begun = |reply: &Arriving| !reply.text.is_empty() || reply.retry.is_some();
        let arriving = self.replies.iter().filter(|(_, reply)| begun(reply));
        let shown: Vec<Value> = arriving.map(|(id, reply)| reply.to_json(*id)).collect();
        let Some(board) = &self.board else { return };
        match shown.is_empty() {
            true => board.clear(),
            false => board.show(json!({ "replies": shown }).to_string()),
        }
    }

    /// The replies of a run that arrive, as JSON with `replies`: each with `request`, `model`, `purpose`,
    /// `label`, `text`, the number of bytes `before` it, the typed `value` with the way that is `open`, and
    /// the `retry` that it is: its `number` and `cause`. Nothing if none does.
    pub fn read(place: &JournalPlace, run: &str) -> Value {
        let read = LiveBoard::read(place, run).and_then(|text| serde_json::from_str::<Value>(&text).ok());
        read.filter(|read| read["replies"].is_array()).unwrap_or_else(|| json!({"replies": []}))
    }
}

impl Drop for LiveReplies {
    fn drop(&mut self) {
        if let Some(board) = self.board.take().filter(|_| self.written.is_some()) {
            board.close();
        }
    }
}

impl Arriving {
    fn to_json(&self, id: RequestId) -> Value {
        let value = self.value.as_ref().filter(|value| value.value.to_string().len() <= MAX_VALUE);
        json!({
            "request": request(id), "model": self.model, "purpose": self.purpose, "label": self.label.to_json(),
            "text": self.text, "before": self.before, "value": value.map(|v| &v.value),
            "open": value.map(PartialValue::open_json),
            "retry": self.retry.as_ref().map(|(number, cause)| json!({"number": number, "cause": cause})),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partials::tests::asked;
    use machine::Reply;
    use runtime::{Answered, Finish, Tokens};

    const ID: RequestId = RequestId { strand: 0, number: 1 };

    #[test]
    fn the_end_of_a_reply_is_there_until_it_is_answered() {
        let dir = tempfile::tempdir().unwrap();
        let place = JournalPlace::Directory(dir.path().to_path_buf());
        let mut live = LiveReplies::of(&place, "r1").unwrap();
        live.note(&asked(ID, Data::list([Data::str("U")]), None));
        live.note(&Event::Text { id: ID, text: "The bees".into() });
        let read = LiveReplies::read(&place, "r1");
        assert_eq!(
            (&read["replies"][0]["text"], &read["replies"][0]["label"]),
            (&json!("The bees"), &json!(["U"]))
        );
        // A repetition begins over, and says why.
        let wait = Duration::ZERO;
        live.note(&Event::Retry { id: ID, number: 1, wait, cause: "overloaded".into() });
        let read = LiveReplies::read(&place, "r1");
        let shown = (&read["replies"][0]["text"], &read["replies"][0]["retry"]);
        assert_eq!(shown, (&json!(""), &json!({"number": 1, "cause": "overloaded"})));
        live.note(&Event::Text { id: ID, text: "The bees".into() });
        // An endless reply takes no more room.
        for _ in 0..1000 {
            live.note(&Event::Text { id: ID, text: "é".repeat(100) });
        }
        live.write();
        let read = LiveReplies::read(&place, "r1");
        let text = read["replies"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 2 * MAX_BYTES && text.ends_with("éé"));
        assert_eq!(read["replies"][0]["before"].as_u64().unwrap() as usize + text.len(), 8 + 200_000);
        for other in ["../r1", "", "r2"] {
            assert_eq!(LiveReplies::read(&place, other), json!({"replies": []}), "{other}");
        }
        live.note(&Event::Answered {
            id: ID,
            what: Answered::Reply(Reply::Text("x".into())),
            tokens: Tokens::default(),
            usd: None,
            finish: Finish::Other,
            elapsed: Duration::ZERO,
            stated: None,
            importance: runtime::Importance::Normal,
        });
        assert_eq!(LiveReplies::read(&place, "r1"), json!({"replies": []}));
        assert_eq!(std::fs::read_dir(dir.path().join("live")).unwrap().count(), 0);
    }
}
