//! Models: one trait and those who answer: models behind HTTP, the embedded one, a script, a recording, and
//! chains of them.

pub(crate) mod embedded;
mod fallback;
pub(crate) mod kinds;
#[cfg(feature = "local")]
mod local;
mod rate;
mod reasoning_replay;
mod recorded;
mod remote;
mod retry;
mod scripted;

pub(crate) use fallback::Fallback;
#[cfg(feature = "local")]
pub use local::Local;
#[cfg(feature = "local")]
pub(crate) use local::config_error as local_error;
pub use rate::RateLimit;
pub(crate) use reasoning_replay::VerbatimReplies;
pub use reasoning_replay::VerbatimReply;
pub use recorded::Recorded;
pub use remote::{AwsCredentials, Protocol, Remote, RemoteOptions, Structured};
pub use retry::Backoff;
pub use runs::{FaultKind, Finish, ModelError, Tokens};
pub use scripted::Scripted;
pub(crate) use scripted::script_in;

use crate::event::Progress;
use core_ir::{ModelParams, Num, ToolDecl, Type};
use machine::{Messages, Reply};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future, so that the traits here can be objects.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A question to a model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The conversation, oldest first.
    pub messages: Messages,
    /// Parameters of the call; `None` if the reply is received as code.
    pub params: Option<Arc<ModelParams>>,
    /// The tools offered.
    pub tools: Vec<Arc<ToolDecl>>,
    /// The most tokens of the reply that the budget allows, if it is limited.
    pub max_output: Option<u64>,
    /// Number of earlier replies to this question that did not decode.
    pub attempt: u32,
    /// Position in the run: the `place` of [traces](crate::trace), followed by the number of the request
    /// there. It is the same in every run with the same answers, whatever their order.
    pub place: Arc<[u32]>,
    /// Answers in the conversation, in the words of the protocol that they were given in ([`Answer::words`]),
    /// in their order. Whose words they are not tells the calls in its own.
    pub said: Arc<[VerbatimReply]>,
}

impl ModelCall {
    /// The type of the answer; `None` if it is text or code.
    pub fn result(&self) -> Option<&Type> {
        self.params.as_ref()?.result.as_ref()
    }

    /// Purpose of the call: the name of the task, if it has one.
    pub fn purpose(&self) -> Option<&str> {
        self.params.as_ref()?.purpose.as_deref()
    }

    /// The text of the last message.
    pub fn last_text(&self) -> &str {
        self.messages.last().map_or("", |m| &m.content)
    }

    /// The most tokens of the reply: what the source says, or less if the budget says so.
    pub fn output_limit(&self) -> Option<u64> {
        let asked = self.params.as_ref().and_then(|p| p.max_tokens);
        match (asked, self.max_output) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// An upper bound of the tokens of what is sent: no tokenizer makes more tokens than there are bytes, and
    /// every message, tool and schema costs a few more for what separates them.
    pub fn input_bound(&self) -> u64 {
        const FRAME: usize = 32;
        let said = self.messages.size();
        let mut bytes = 4 * FRAME + said.bytes + FRAME * (said.messages + said.calls);
        let schema = |t: &Type| crate::Schema::of(t).map_or(0, |s| s.json.to_string().len() + FRAME);
        bytes += self.said.iter().map(|s| s.bytes).sum::<usize>();
        bytes += self.result().map_or(0, schema);
        for t in &self.tools {
            bytes += t.name.len() + t.description.as_ref().map_or(0, |d| d.len()) + FRAME;
            bytes += t.params.iter().map(|p| p.name.len() + schema(&p.ty) + FRAME).sum::<usize>();
        }
        bytes as u64
    }
}

/// Reply of a model with the tokens used. A failure may have used tokens, too.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The reply. The text of an answer with a type is JSON without any wrapping.
    pub result: Result<Reply, ModelError>,
    /// Tokens used.
    pub tokens: Tokens,
    /// Reason why the reply ended.
    pub finish: Finish,
    /// Model that answered and the price, if known, where it is not the provider itself.
    pub by: Option<(String, Option<Num>)>,
    /// The answer in the words of its protocol, if calls of tools are in it and it has to be repeated so: it
    /// is in [`ModelCall::said`] of later questions.
    pub words: Option<Arc<serde_json::Value>>,
}

impl Answer {
    /// An answer with what it used.
    pub fn new(result: Result<Reply, ModelError>, tokens: Tokens) -> Answer {
        let finish = result.as_ref().map_or(Finish::Other, Finish::of);
        Answer { result, tokens, finish, by: None, words: None }
    }

    /// A failure that used nothing.
    pub fn failed(error: ModelError) -> Answer {
        Answer::new(Err(error), Tokens::default())
    }
}

/// Price of tokens, in US dollars per million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// Of the prompt.
    pub input: Num,
    /// Of the reply.
    pub output: Num,
    /// Of the part of the prompt that the provider's cache had; without one, that of the prompt.
    pub cached: Option<Num>,
    /// Of the part of the prompt that was written to the cache; without one, that of the prompt.
    pub cache_write: Option<Num>,
}

impl Price {
    /// For models that cost nothing.
    pub const FREE: Price = Price::new(Num::ZERO, Num::ZERO);

    /// A price without special ones for what a cache had.
    pub const fn new(input: Num, output: Num) -> Price {
        Price { input, output, cached: None, cache_write: None }
    }

    /// Returns the price of tokens in US dollars, exactly.
    pub fn of(&self, tokens: Tokens) -> Num {
        let part = |n: u64, price: &Num| count(n).mul(price).unwrap_or(Num::ZERO);
        // Providers count both as parts of the prompt; whoever counts more does not get money back.
        let cached = tokens.cached.min(tokens.input);
        let written = tokens.cache_write.min(tokens.input - cached);
        let parts = [
            part(tokens.input - cached - written, &self.input),
            part(cached, self.cached.as_ref().unwrap_or(&self.input)),
            part(written, self.cache_write.as_ref().unwrap_or(&self.input)),
            part(tokens.output, &self.output),
        ];
        // Counts and prices are far below the limits of numbers, so nothing here fails.
        let sum = parts.iter().fold(Num::ZERO, |sum, part| sum.add(part).unwrap_or(sum));
        sum.div(&Num::from(1_000_000)).unwrap_or(Num::ZERO)
    }

    /// Returns the most that tokens can cost, whatever a cache has of them.
    pub(crate) fn most(&self, input: u64, output: u64) -> Num {
        let special = [&self.cached, &self.cache_write].into_iter().flatten();
        let dearest = special.fold(&self.input, |most, price| most.max(price));
        Price::new(dearest.clone(), self.output.clone()).of(Tokens::new(input, output))
    }
}

/// A count as a number; saturates.
pub(crate) fn count(n: u64) -> Num {
    Num::from(i64::try_from(n).unwrap_or(i64::MAX))
}

/// An answer, or the promise of one.
pub enum Work<T> {
    /// It is known already.
    Now(T),
    /// The answer takes time. Dropping the future cancels it: sockets are closed, computations end.
    Later(BoxFuture<T>),
}

/// A model that can be asked.
pub trait Provider: Send + Sync {
    /// The name for people: `gpt-4o`, `local`, `scripted`. Policies know a provider that answers every call
    /// ([`Models::only`](crate::Models::only)) by it.
    fn name(&self) -> &str;

    /// Returns whether it replaces the models that a program names, as a script does, and passes on nothing
    /// that it is shown. Clearances are then those of the models that it replaces.
    fn stands_in(&self) -> bool {
        false
    }

    /// Price of the model; `None` if it is unknown.
    fn price(&self) -> Option<Price>;

    /// Returns the maximum number of charges for a call: a chain may call each of its models.
    fn most_attempts(&self) -> u64 {
        1
    }

    /// Returns true if the future may block its thread, which none should. Where a time limit applies, such a
    /// future runs on a task of its own, so that a runtime of several threads can enforce the limit.
    fn may_block(&self) -> bool {
        true
    }

    /// Asks. What depends on the order of calls is decided before this returns, so that runs are
    /// deterministic. Neither this nor the future should keep its thread to itself (there is
    /// [`tokio::task::spawn_blocking`] for that): for this the run and its time limits wait, for the future
    /// others may.
    fn ask(self: Arc<Self>, call: ModelCall, progress: Progress) -> Work<Answer>;
}
