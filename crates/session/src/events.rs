//! Events of a run as JSON: for structured logs, and for those who follow a run over HTTP.
//!
//! Invariant: what models and tools were told and said is in it only on request ([`Detail::Content`]).

use core_ir::{Data, Name};
use machine::{Reply, RequestId};
use runtime::{Answered, Asked, Event, Importance};
use serde_json::{Map, Value, json};

/// Amount of detail in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Events without content.
    Outline,
    /// Everything.
    Content,
}

/// The name of a request within its run.
pub fn request(id: RequestId) -> String {
    format!("{:x}.{}", id.strand, id.number)
}

/// An event as an object with `event` and `request`; `None` for one that tells nothing at this detail.
pub fn event_json(event: &Event, detail: Detail) -> Option<Value> {
    let content = detail == Detail::Content;
    let mut o = Map::new();
    let mut put = |name: &str, value: Value| drop(o.insert(name.into(), value));
    match event {
        Event::Asked { id, what, channel, answer, recorded, .. } => {
            put("event", "asked".into());
            put("request", request(*id).into());
            if *recorded {
                put("recorded", true.into());
            }
            if content {
                put("label", channel.to_json());
                // Whoever may not see the answer is not told its label.
                if *answer != Data::Null {
                    put("answerLabel", answer.to_json());
                }
            }
            match what {
                Asked::Model { model, purpose, agent, messages, attempt, .. } => {
                    put("kind", "model".into());
                    put("model", model.clone().into());
                    for (name, value) in [("purpose", purpose), ("agent", agent)] {
                        if let Some(value) = value {
                            put(name, value.to_string().into());
                        }
                    }
                    put("messages", messages.len().into());
                    if *attempt > 0 {
                        put("repair", (*attempt).into());
                    }
                    if let Some(last) = messages.last().filter(|_| content) {
                        put("content", last.content.to_string().into());
                    }
                }
                Asked::Tool { name, args, .. } | Asked::Approve { name, args, .. } => {
                    let kind = if matches!(what, Asked::Tool { .. }) { "tool" } else { "approve" };
                    put("kind", kind.into());
                    put("tool", name.to_string().into());
                    if content {
                        put("args", fields(args));
                    }
                    if let Asked::Tool { choices, .. } = what
                        && content
                        && !choices.is_empty()
                    {
                        put("choices", choices.iter().map(runtime::trace::choice_json).collect());
                    }
                }
                Asked::Recall { store, key } => {
                    put("kind", "recall".into());
                    put("key", format!("{store}.{key}").into());
                }
                Asked::Remember { store, key, value } => {
                    put("kind", "remember".into());
                    put("key", format!("{store}.{key}").into());
                    if content {
                        put("value", value.to_json());
                    }
                }
                Asked::Sample { .. } => put("kind", "sample".into()),
            }
        }
        Event::Retry { id, number, wait, cause } => {
            put("event", "retry".into());
            put("request", request(*id).into());
            put("number", (*number).into());
            put("seconds", json!(wait.as_secs_f64()));
            put("cause", cause.clone().into());
        }
        Event::Growing { .. } => return None,
        Event::Text { .. } if !content => return None,
        Event::Text { id, text } => {
            put("event", "text".into());
            put("request", request(*id).into());
            put("text", text.clone().into());
        }
        Event::Answered { id, what, tokens, usd, finish, elapsed, stated, importance } => {
            put("event", "answered".into());
            put("request", request(*id).into());
            let (status, said) = match what {
                Answered::Reply(Reply::Text(text)) => ("ok", Some(Value::from(text.clone()))),
                Answered::Reply(Reply::ToolCall { name, args }) => ("ok", Some(json!([call(name, args)]))),
                Answered::Reply(Reply::ToolCalls(calls)) => {
                    ("ok", Some(calls.iter().map(|(n, a)| call(n, a)).collect()))
                }
                Answered::Data(data) => ("ok", Some(data.to_json())),
                Answered::Edited { args, .. } => ("ok", Some(json!({ "edit": fields(args) }))),
                Answered::Nothing | Answered::Approved(_) | Answered::Sample(_) => ("ok", None),
                Answered::Failed(_) => ("failed", None),
                Answered::Stopped(_) => ("stopped", None),
                Answered::Late => ("late", None),
                Answered::Withheld => ("withheld", None),
            };
            put("status", status.into());
            if let Answered::Failed(why) | Answered::Stopped(why) = what {
                put("error", why.clone().into());
            }
            if tokens.input + tokens.output > 0 {
                put("inputTokens", tokens.input.into());
                put("outputTokens", tokens.output.into());
            }
            if let Some(usd) = usd {
                put("usd", usd.to_json());
            }
            if let Some(finish) = finish.as_str() {
                put("finish", finish.into());
            }
            if *what != Answered::Withheld {
                put("ms", u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).into());
            }
            if importance.is_minor() {
                put("importance", Importance::MINOR.into());
            }
            if let Some(stated) = stated.as_ref().filter(|_| content) {
                put("stated", stated.to_json());
            }
            if let Some(said) = said.filter(|_| content) {
                put("content", said);
            }
        }
    }
    Some(Value::Object(o))
}

fn call(name: &Name, args: &Data) -> Value {
    json!({"tool": &**name, "args": args.to_json()})
}

fn fields(fields: &[(Name, Data)]) -> Value {
    Value::Object(fields.iter().map(|(n, d)| (n.to_string(), d.to_json())).collect())
}
