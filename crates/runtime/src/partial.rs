//! Work completed by a run that exhausted its budget: the limit and the finished calls.
//!
//! Entry point: [`Partial`], in [`crate::RunReport`].
//!
//! Invariant: it takes bounded memory, however long the run was: of the calls that ended the last 200 are
//! kept.
//! Invariant: it is made of events, so it holds no secret of the environment.

use crate::event::{Answered, Asked, Event};
use crate::inline_map::InlineMap;
use core_ir::{Data, Name};
use machine::Reply;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;

/// The most calls that are told.
pub const KEPT: usize = 200;

/// Limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Calls of models.
    ModelCalls,
    /// Calls of tools.
    ToolCalls,
    /// Tokens.
    Tokens,
    /// Money.
    Usd,
    /// Time.
    Time,
    /// Steps of the machine.
    Fuel,
}

impl Resource {
    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::ModelCalls => "modelCalls",
            Resource::ToolCalls => "toolCalls",
            Resource::Tokens => "tokens",
            Resource::Usd => "usd",
            Resource::Time => "time",
            Resource::Fuel => "fuel",
        }
    }
}

/// The outcome of a run that a budget ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Partial {
    /// Exhausted resource.
    pub budget: Resource,
    /// The agent whose own budget it was; `None` if it was that of the run.
    pub agent: Option<Name>,
    /// The calls of models and tools that had been answered, in the order of their answers: the last 200.
    pub finished: Vec<Finished>,
    /// Number of calls answered before those.
    pub earlier: u64,
    /// Number of calls in flight that were canceled.
    pub under_way: usize,
}

/// A call that had been answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// Kind of the call.
    pub what: Kind,
    /// Purpose of the model call, if the program states it, else the model's name; for a tool call, the
    /// tool's name.
    pub name: Name,
    /// The answer, or why there was none.
    pub result: Result<Data, String>,
}

/// Recipient of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A model.
    Model,
    /// A tool.
    Tool,
}

impl Partial {
    /// Converts to the JSON that the command line prints.
    pub fn to_json(&self) -> Json {
        let finished = self.finished.iter().map(|f| {
            let (key, result) = match &f.result {
                Ok(data) => ("result", data.to_json()),
                Err(why) => ("failed", why.as_str().into()),
            };
            let what = match f.what {
                Kind::Model => "model",
                Kind::Tool => "tool",
            };
            json!({ what: &*f.name, key: result })
        });
        json!({
            "budget": self.budget.as_str(),
            "agent": self.agent.as_deref(),
            "finished": finished.collect::<Vec<_>>(),
            "earlier": self.earlier,
            "underWay": self.under_way,
        })
    }
}

/// Collects what a [`Partial`] tells.
///
/// Replies and results are kept as they came, which shares them with the run; how they are told is made when
/// they are.
#[derive(Debug, Default)]
pub(crate) struct ProgressLog {
    asked: InlineMap<(Kind, Name)>,
    /// Boxed: an agent that waits for its first answer has none.
    answered: Option<Box<FinishedCalls>>,
}

#[derive(Debug, Default)]
struct FinishedCalls {
    finished: VecDeque<(Kind, Name, Answered)>,
    earlier: u64,
}

impl ProgressLog {
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Asked { id, what, .. } => {
                let asked = match what {
                    Asked::Model { model, purpose, .. } => {
                        (Kind::Model, purpose.clone().unwrap_or_else(|| model.as_str().into()))
                    }
                    Asked::Tool { name, .. } => (Kind::Tool, name.clone()),
                    _ => return,
                };
                self.asked.insert(*id, asked);
            }
            Event::Answered { id, what: answer, .. } => {
                let Some((what, name)) = self.asked.remove(*id) else { return };
                // The call that there was nothing left for.
                if let Answered::Stopped(_) = answer {
                    return;
                }
                let past = self.answered.get_or_insert_default();
                if past.finished.len() == KEPT {
                    past.finished.pop_front();
                    past.earlier += 1;
                }
                if past.finished.len() == past.finished.capacity() {
                    // A few at a time: many agents may wait, each with what it was answered before.
                    past.finished.reserve_exact(4);
                }
                past.finished.push_back((what, name, answer.clone()));
            }
            _ => {}
        }
    }

    pub(crate) fn partial(self, (budget, agent): (Resource, Option<Name>)) -> Partial {
        let past = self.answered.map_or_else(FinishedCalls::default, |past| *past);
        Partial {
            budget,
            agent,
            finished: past.finished.into_iter().map(finished).collect(),
            earlier: past.earlier,
            under_way: self.asked.len(),
        }
    }
}

fn finished((what, name, answer): (Kind, Name, Answered)) -> Finished {
    let result = match answer {
        Answered::Reply(reply) => Ok(of_reply(&reply)),
        Answered::Data(data) => Ok(data),
        Answered::Failed(why) => Err(why),
        Answered::Late => Err("too late".to_string()),
        _ => Ok(Data::Null),
    };
    Finished { what, name, result }
}

fn of_reply(reply: &Reply) -> Data {
    let call = |name: &Name, args: &Data| {
        Data::record([("tool".into(), Data::str(&**name)), ("arguments".into(), args.clone())])
    };
    match reply {
        Reply::Text(text) => Data::str(text.as_str()),
        Reply::ToolCall { name, args } => call(name, args),
        Reply::ToolCalls(calls) => Data::list(calls.iter().map(|(name, args)| call(name, args))),
    }
}
