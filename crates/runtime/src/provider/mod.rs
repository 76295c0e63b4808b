//! Models: one trait, three providers.

mod fault;
#[cfg(feature = "local")]
mod local;
mod openai;
mod retry;
mod scripted;

pub use fault::ModelError;
#[cfg(feature = "local")]
pub use local::Local;
#[cfg(feature = "local")]
pub(crate) use local::config_error as local_error;
pub use openai::{OpenAi, OpenAiOptions, Structured};
pub use retry::Backoff;
pub use scripted::Scripted;

use crate::event::Progress;
use core_ir::{ModelParams, Num, ToolDecl, Type};
use machine::{Message, Reply};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future, so that the traits here can be objects.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// A question to a model.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The conversation, oldest first.
    pub messages: Arc<Vec<Message>>,
    /// How the model is asked; `None` if the reply is received as code.
    pub params: Option<Arc<ModelParams>>,
    /// The tools offered.
    pub tools: Vec<Arc<ToolDecl>>,
    /// The most tokens of the reply that the budget allows, if it is limited.
    pub max_output: Option<u64>,
    /// How many replies to this question did not decode before.
    pub attempt: u32,
}

impl ModelCall {
    /// The type of the answer; `None` if it is text or code.
    pub fn result(&self) -> Option<&Type> {
        self.params.as_ref()?.result.as_ref()
    }

    /// What the call is for: the task's name, if it has one.
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

    /// An upper bound of the tokens of what is sent: no tokeniser makes more tokens than there are bytes, and
    /// every message, tool and schema costs a few more for what separates them.
    pub fn input_bound(&self) -> u64 {
        const FRAME: usize = 32;
        let mut bytes = 4 * FRAME;
        for m in self.messages.iter() {
            bytes += m.content.len() + FRAME;
            if let Some(call) = &m.call {
                bytes += call.0.len() + FRAME;
            }
        }
        let schema = |t: &Type| crate::Schema::of(t).map_or(0, |s| s.json.to_string().len() + FRAME);
        bytes += self.result().map_or(0, schema);
        for t in &self.tools {
            bytes += t.name.len() + t.description.as_ref().map_or(0, |d| d.len()) + FRAME;
            bytes += t.params.iter().map(|p| p.name.len() + schema(&p.ty) + FRAME).sum::<usize>();
        }
        bytes as u64
    }
}

/// Tokens of a call as its provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt.
    pub input: u64,
    /// Of the reply.
    pub output: u64,
}

impl Tokens {
    /// A guess for a provider that does not say: four bytes a token.
    pub(crate) fn guess(input_bytes: usize, output_bytes: usize) -> Tokens {
        Tokens { input: input_bytes.div_ceil(4) as u64, output: output_bytes.div_ceil(4) as u64 }
    }
}

/// What a model said, and what that used. A failure may have used something too.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The reply. The text of an answer with a type is JSON without any wrapping.
    pub result: Result<Reply, ModelError>,
    /// What was used.
    pub tokens: Tokens,
}

impl Answer {
    /// A failure that used nothing.
    pub(crate) fn failed(error: ModelError) -> Answer {
        Answer { result: Err(error), tokens: Tokens::default() }
    }
}

/// What tokens cost, in US dollars for a million.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// Of the prompt.
    pub input: Num,
    /// Of the reply.
    pub output: Num,
}

impl Price {
    /// For models that cost nothing.
    pub const FREE: Price = Price { input: Num::ZERO, output: Num::ZERO };

    /// What these tokens cost, in US dollars, exactly.
    pub fn of(&self, tokens: Tokens) -> Num {
        let part = |n: u64, price: &Num| count(n).mul(price).unwrap_or(Num::ZERO);
        // Counts and prices are far below the limits of numbers, so nothing here fails.
        let sum = part(tokens.input, &self.input).add(&part(tokens.output, &self.output));
        sum.and_then(|s| s.div(&Num::from(1_000_000))).unwrap_or(Num::ZERO)
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
    /// It takes time. Dropping the future gives up for real: sockets are closed, computations end.
    Later(BoxFuture<T>),
}

/// A model that can be asked.
pub trait Provider: Send + Sync {
    /// The name for people: `gpt-4o`, `local`, `scripted`.
    fn name(&self) -> &str;

    /// What it costs; `None` if that is not known.
    fn price(&self) -> Option<Price>;

    /// Asks. What depends on the order of calls is decided before this returns, so that runs are deterministic.
    fn ask(self: Arc<Self>, call: ModelCall, progress: Progress) -> Work<Answer>;
}
