//! Collects the work that a run has completed, for the case that a budget ends it.
//!
//! Invariant: it takes bounded memory, however long the run was: of the calls that ended the last 200 are
//! kept.
//! Invariant: it is made of events, so it holds no secret of the environment.

use crate::inline_map::InlineMap;
use core_ir::{Data, Name};
use machine::Reply;
use runs::{Answered, Asked, CallKind as Kind, Event, Finished, Partial, Resource};
use std::collections::VecDeque;

/// The most calls that are told.
pub const KEPT: usize = 200;

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
