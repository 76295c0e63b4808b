//! Events of a run as plain data, for progress output and traces.
//!
//! Invariant: events hold no unguessable secret; all their texts have passed the run's [`crate::Redactor`].
//! Whoever started the run may see its events, so that guessable secrets stay. Records remove them with
//! [`crate::Redactor::event`].

use crate::approve::Decider;
use crate::provider::{Finish, Tokens};
use core_ir::{Data, Name, Num};
use diagnostics::Span;
use machine::{Choice, Message, Reply, RequestId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Event of a run. Requests of one strand appear in the program's order; those of different branches of a
/// `par` interleave as they happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// The machine asked for something, and work on it began.
    Asked {
        /// Which request; the other events about it have the same.
        id: RequestId,
        /// The term that asks.
        span: Span,
        /// Channel label, as a label value: the clearance needed to see the request and its content.
        channel: Data,
        /// Label of the answer, of errors in place of one, and of all events about it, as a label value. The
        /// answer may state more: see [`Event::Answered`].
        answer: Data,
        /// Position in the order of a run whose branches run one after another.
        place: Arc<[u32]>,
        /// The request.
        what: Asked,
        /// Labeled dependencies of the request and their origins; empty unless the run explains flow.
        why: Vec<crate::Explained>,
        /// True if the answer stood in the journal or recording, so that nobody is asked.
        recorded: bool,
    },
    /// An attempt failed and is repeated after a wait.
    Retry {
        /// Which request.
        id: RequestId,
        /// Which repetition this is, from 1.
        number: u32,
        /// Delay before the retry.
        wait: Duration,
        /// The reason.
        cause: String,
    },
    /// A reply is growing.
    Growing {
        /// Which request.
        id: RequestId,
        /// Tokens of the reply so far.
        output_tokens: u64,
    },
    /// Further text of a reply. Sent only if the handlers of the run ask for it
    /// ([`crate::Handlers::stream`]). A repetition starts over.
    Text {
        /// Which request.
        id: RequestId,
        /// Text added to the reply.
        text: String,
    },
    /// The answer is there and goes to the machine.
    Answered {
        /// Which request.
        id: RequestId,
        /// The answer.
        what: Answered,
        /// Tokens used, for a model call.
        tokens: Tokens,
        /// Price in US dollars, if known.
        usd: Option<Num>,
        /// Reason why the reply ended, for a model call.
        finish: Finish,
        /// Duration of the request.
        elapsed: Duration,
        /// Label stated in the answer, as a label value; it is joined with that of the request.
        stated: Option<Data>,
    },
}

/// Request of a run.
#[derive(Clone, Debug)]
pub enum Asked {
    /// A model.
    Model {
        /// Which.
        model: String,
        /// Purpose of the call.
        purpose: Option<Name>,
        /// The agent that asks, where the program has agents.
        agent: Option<Name>,
        /// The conversation.
        messages: Arc<Vec<Message>>,
        /// The tools offered.
        tools: Vec<Name>,
        /// Number of earlier replies to this question that did not decode.
        attempt: u32,
    },
    /// A tool.
    Tool {
        /// Which.
        name: Name,
        /// The arguments.
        args: Vec<(Name, Data)>,
        /// Arguments that were admitted because they are in a set (`among`).
        choices: Vec<Choice>,
    },
    /// Request to approve a call of a tool.
    Approve {
        /// Which.
        name: Name,
        /// The arguments.
        args: Vec<(Name, Data)>,
        /// The label of each argument, as a label value: what an approval endorses.
        labels: Vec<Data>,
    },
    /// The value of a key.
    Recall {
        /// The store.
        store: Name,
        /// The key.
        key: Name,
    },
    /// To keep a value.
    Remember {
        /// The store.
        store: Name,
        /// The key.
        key: Name,
        /// The value.
        value: Data,
    },
    /// A sample.
    Sample {
        /// The probability of `true`.
        probability: Num,
    },
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// By a model.
    Reply(Reply),
    /// By a tool, or the value of a key.
    Data(Data),
    /// The key holds nothing, or the value was kept.
    Nothing,
    /// The call may be made. Who says so is not known of a run that an earlier version kept.
    Approved(Option<Decider>),
    /// A sample.
    Sample(bool),
    /// It failed; the program may catch that.
    Failed(String),
    /// It was refused and the run ends: a budget is exhausted.
    Stopped(String),
    /// The request was canceled because a time limit of the program passed.
    Late,
    /// Answer that the receiver of the event may not be shown. Only views of runs emit it, never the runs.
    Withheld,
}

/// Message from a handler that is still working.
#[derive(Debug)]
pub(crate) enum HandlerNote {
    Retry { number: u32, wait: Duration, cause: String },
    Growing { output_tokens: u64 },
    Text(String),
}

/// Messages from handlers that are not yet delivered. A channel would reserve room for thirty in every
/// waiting agent.
#[derive(Debug, Default)]
pub(crate) struct HandlerNotes(Mutex<NoteQueue>);

#[derive(Debug, Default)]
struct NoteQueue {
    notes: VecDeque<(RequestId, HandlerNote)>,
    /// Waker of the task that waits for the next note.
    waits: Option<Waker>,
}

impl HandlerNotes {
    fn put(&self, id: RequestId, note: HandlerNote) {
        let mut told = self.lock();
        told.notes.push_back((id, note));
        let waits = told.waits.take();
        drop(told);
        if let Some(waits) = waits {
            waits.wake();
        }
    }

    /// The oldest, if there is one.
    pub(crate) fn take(&self) -> Option<(RequestId, HandlerNote)> {
        self.lock().notes.pop_front()
    }

    /// The oldest, as soon as there is one. One task may wait.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<(RequestId, HandlerNote)> {
        let mut told = self.lock();
        if let Some(note) = told.notes.pop_front() {
            return Poll::Ready(note);
        }
        match &mut told.waits {
            Some(waits) => waits.clone_from(cx.waker()),
            None => told.waits = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, NoteQueue> {
        // A panic while it was held leaves a note that is there or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Channel on which a handler reports its progress. It may have no receiver.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    to: Option<(RequestId, Arc<HandlerNotes>)>,
    wants_text: bool,
}

impl Progress {
    /// Leads nowhere.
    pub fn none() -> Progress {
        Progress::default()
    }

    pub(crate) fn to(id: RequestId, notes: Arc<HandlerNotes>, wants_text: bool) -> Progress {
        Progress { to: Some((id, notes)), wants_text }
    }

    /// Returns true if a listener wants the text of the reply while it streams.
    pub fn wants_text(&self) -> bool {
        self.wants_text
    }

    fn tell(&self, note: HandlerNote) {
        if let Some((id, notes)) = &self.to {
            // Nothing receives it after the run.
            notes.put(*id, note);
        }
    }

    /// An attempt failed; repetition `number` (from 1) follows after `wait`.
    pub fn retry(&self, number: u32, wait: Duration, cause: impl Into<String>) {
        self.tell(HandlerNote::Retry { number, wait, cause: cause.into() });
    }

    /// Reports further text of the reply.
    pub fn text(&self, text: impl Into<String>) {
        let text = text.into();
        if self.wants_text && !text.is_empty() {
            self.tell(HandlerNote::Text(text));
        }
    }

    /// Reports the number of tokens that the reply has by now.
    pub fn growing(&self, output_tokens: u64) {
        self.tell(HandlerNote::Growing { output_tokens });
    }
}

impl crate::Redactor {
    /// Returns the conversation without secrets, or the same one if there are no secrets.
    pub(crate) fn messages(&self, messages: &Arc<Vec<Message>>) -> Arc<Vec<Message>> {
        if self.is_idle() {
            return messages.clone();
        }
        let clean = |m: &Message| {
            let call = m.call.as_ref().map(|c| Arc::new((c.0.clone(), self.data(&c.1))));
            Message { role: m.role, content: self.shared(&m.content), call }
        };
        Arc::new(messages.iter().map(clean).collect())
    }

    /// Returns the event without secrets. Unguessable secrets are already removed from events; for records,
    /// guessable ones are removed as well: see [`for_records`](crate::Redactor::for_records).
    pub fn event(&self, event: &Event) -> Event {
        if self.is_idle() {
            return event.clone();
        }
        let mut event = event.clone();
        match &mut event {
            Event::Asked { what, .. } => match what {
                Asked::Model { messages, .. } => *messages = self.messages(messages),
                Asked::Tool { args, .. } | Asked::Approve { args, .. } => {
                    for (_, value) in args {
                        *value = self.data(value);
                    }
                }
                Asked::Remember { value, .. } => *value = self.data(value),
                Asked::Recall { .. } | Asked::Sample { .. } => {}
            },
            Event::Retry { cause: text, .. } | Event::Text { text, .. } => {
                *text = self.owned(std::mem::take(text));
            }
            Event::Answered { what, .. } => match what {
                Answered::Reply(reply) => *reply = self.reply(reply),
                Answered::Data(data) => *data = self.data(data),
                Answered::Failed(text) | Answered::Stopped(text) => *text = self.owned(std::mem::take(text)),
                Answered::Nothing
                | Answered::Sample(_)
                | Answered::Approved(_)
                | Answered::Late
                | Answered::Withheld => {}
            },
            Event::Growing { .. } => {}
        }
        event
    }

    pub(crate) fn reply(&self, r: &Reply) -> Reply {
        match r {
            Reply::Text(t) => Reply::Text(self.text(t).into_owned()),
            Reply::ToolCall { name, args } => {
                Reply::ToolCall { name: (&*self.text(name)).into(), args: self.data(args) }
            }
            Reply::ToolCalls(calls) => {
                let clean = |(n, args): &(Name, Data)| ((&*self.text(n)).into(), self.data(args));
                Reply::ToolCalls(calls.iter().map(clean).collect())
            }
        }
    }
}
