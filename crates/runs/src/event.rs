//! Events of a run as plain data, for progress output and traces.
//!
//! Invariant: events hold no unguessable secret; all their texts have passed the run's [`crate::Redactor`].
//! Whoever started the run may see its events, so that guessable secrets stay. Records remove them with
//! [`crate::Redactor::event`].

use crate::why::Explainer;
use crate::{Decider, Finish, Importance, Redactor, Tokens};
use core_ir::{Data, Label, Lattice, Name, Num, StoreDecl, Type};
use diagnostics::Span;
use machine::{Call, Choice, Message, Messages, Reply, Request, RequestId};
use std::sync::Arc;
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
        /// Importance of the request, as long as it does not fail.
        importance: Importance,
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
    /// (`runtime::Handlers::stream`). A repetition starts over.
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
        /// Importance of the request with this answer.
        importance: Importance,
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
        messages: Messages,
        /// The tools offered.
        tools: Vec<Name>,
        /// Number of earlier replies to this question that did not decode.
        attempt: u32,
        /// Type of the answer; `None` if it is text or code.
        result: Option<Type>,
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
    /// The call may be made with other arguments, by the names of their parameters.
    Edited {
        /// Party that says so.
        by: Option<Decider>,
        /// The arguments that are other ones.
        args: Vec<(Name, Data)>,
    },
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

impl Event {
    /// The importance of a request, or of one with its answer; `Normal` for other events.
    pub fn importance(&self) -> Importance {
        match self {
            Event::Asked { importance, .. } | Event::Answered { importance, .. } => *importance,
            Event::Retry { .. } | Event::Growing { .. } | Event::Text { .. } => Importance::Normal,
        }
    }

    /// The event of a request that the machine makes. `model` is asked, if it is a question to one.
    pub fn asked(
        id: RequestId,
        request: &Request,
        lattice: &Lattice,
        redactor: &Redactor,
        model: &str,
        recorded: bool,
    ) -> Event {
        let r = redactor;
        let what = match &request.call {
            Call::Model { messages, params, tools, attempt } => Asked::Model {
                model: model.to_string(),
                purpose: params.as_ref().and_then(|p| p.purpose.clone()),
                agent: params.as_ref().and_then(|p| match p.extra.iter().find(|(n, _)| &**n == "agent") {
                    Some((_, Data::Str(agent))) => Some(Name::from(&**agent)),
                    _ => None,
                }),
                messages: r.messages(messages),
                tools: tools.iter().map(|t| t.name.clone()).collect(),
                attempt: *attempt,
                result: params.as_ref().and_then(|p| p.result.clone()),
            },
            Call::Tool { tool, args } => Asked::Tool {
                name: tool.name.clone(),
                args: args.iter().map(|(n, d)| (n.clone(), r.data(d))).collect(),
                choices: request.choices.to_vec(),
            },
            Call::Approve { tool, args, labels, .. } => Asked::Approve {
                name: tool.name.clone(),
                args: args.iter().map(|(n, d)| (n.clone(), r.data(d))).collect(),
                labels: labels.iter().map(|l| lattice.data_of(*l)).collect(),
            },
            Call::Recall { store, key } => {
                Asked::Recall { store: store.name.clone(), key: key_name(store, *key) }
            }
            Call::Remember { store, key, value } => Asked::Remember {
                store: store.name.clone(),
                key: key_name(store, *key),
                value: r.data(value),
            },
            Call::Sample { probability, .. } => Asked::Sample { probability: probability.clone() },
        };
        let importance = Importance::of_request(&what, is_labeled([request.channel, request.answer]));
        let channel = lattice.data_of(request.channel);
        let answer = lattice.data_of(request.answer);
        let why = Explainer { lattice, redactor }.given(&request.given);
        Event::Asked {
            id,
            span: request.span,
            channel,
            answer,
            place: request.place.path(),
            what,
            why,
            recorded,
            importance,
        }
    }
}

/// Returns true if one of the labels of a request, of its channel and of its answer, says anything.
pub fn is_labeled(labels: [Label; 2]) -> bool {
    labels.iter().any(|label| *label != Label::BOTTOM)
}

/// Name of a key of a store.
pub fn key_name(store: &StoreDecl, key: u32) -> Name {
    store.keys.get(key as usize).map_or_else(|| "?".into(), |k| k.name.clone())
}

impl crate::Redactor {
    /// Returns the conversation without secrets, or the same one if there are no secrets. Of a conversation
    /// that goes on, only what is new is searched.
    pub fn messages(&self, messages: &Messages) -> Messages {
        let Some(mut known) = self.conversations() else { return messages.clone() };
        known.of(messages, Messages::default(), |clean, own| {
            clean.with(own.iter().map(|m| {
                let call = m.call.as_ref().map(|c| Arc::new((c.0.clone(), self.data(&c.1))));
                Message { role: m.role, content: self.shared(&m.content), call }
            }))
        })
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
                Answered::Edited { args, .. } => {
                    for (_, value) in args {
                        *value = self.data(value);
                    }
                }
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

    /// Returns the reply without secrets.
    pub fn reply(&self, r: &Reply) -> Reply {
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
