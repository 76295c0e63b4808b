//! The end of a run: outcome, resources used, origins of labels.

use crate::why::at_the_end;
use crate::{Partial, Redactor, Why};
use core_ir::{Data, Num};
use machine::{Failure, Machine, Message, Reified, Reply};
use std::time::Duration;

/// Report of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Names the run; in a journal, if it has one.
    pub run: String,
    /// The value, or the error that nothing caught.
    pub result: Result<Reified, Failure>,
    /// The join of all labels in the value, or the label of the error, as a label value.
    pub label: Data,
    /// Work completed before a budget was exhausted, if that ended the run.
    pub partial: Option<Partial>,
    /// Resources used.
    pub usage: Usage,
    /// Duration of the run.
    pub elapsed: Duration,
    /// Steps of the machine.
    pub fuel: u64,
    /// The conversation of the run itself at its end.
    pub conversation: Vec<Message>,
    /// Origins of labels.
    pub why: Why,
    /// Branches that the run took, if it noted them ([`machine::Config::note_branches`]).
    pub branches: Vec<machine::TakenBranch>,
    /// Takes secrets out of what is recorded of the run, see [`Redactor::for_records`].
    pub records: Redactor,
}

impl RunReport {
    /// The report of a run that has ended so. What the machine does not know is added by the driver: the name
    /// of the run, what was used, and how long it took.
    pub fn of(
        machine: &mut Machine,
        redactor: &Redactor,
        result: Result<machine::Value, Failure>,
    ) -> RunReport {
        let label = match &result {
            Ok(value) => machine.deep_label(value),
            Err(failure) => failure.label,
        };
        let why = at_the_end(machine, redactor, &result);
        let result = match result {
            Ok(value) => Ok(machine.reify(&value)),
            Err(mut failure) => {
                failure.message = redactor.owned(failure.message);
                Err(failure)
            }
        };
        let (_, messages) = machine.conversation();
        RunReport {
            run: String::new(),
            result,
            label: machine.lattice().data_of(label),
            partial: None,
            usage: Usage::default(),
            elapsed: Duration::ZERO,
            fuel: machine.fuel_used(),
            conversation: messages.iter().cloned().collect(),
            why,
            branches: machine.taken_branches().collect(),
            records: redactor.for_records(),
        }
    }
}

/// Resources that a run has used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Calls of models, failed ones included; repetitions of one call count once.
    pub model_calls: u64,
    /// Calls of tools, failed ones included.
    pub tool_calls: u64,
    /// Questions for approval, whatever the answer.
    pub questions: u64,
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// US dollars; `None` as soon as a call's price is not known.
    pub usd: Option<Num>,
    /// The models whose price was needed and is not known, each once.
    pub unpriced: Vec<String>,
}

impl Usage {
    /// Adds what a call cost, or that it is not known what a call of this model costs.
    pub fn charge(&mut self, model: &str, cost: Option<&Num>) {
        self.usd =
            self.usd.as_ref().zip(cost).map(|(sum, cost)| sum.add(cost).unwrap_or_else(|_| sum.clone()));
        if cost.is_none() && !self.unpriced.iter().any(|m| m == model) {
            self.unpriced.push(model.to_string());
        }
    }
}

impl Default for Usage {
    fn default() -> Usage {
        Usage {
            model_calls: 0,
            tool_calls: 0,
            questions: 0,
            input_tokens: 0,
            output_tokens: 0,
            usd: Some(Num::ZERO),
            unpriced: Vec::new(),
        }
    }
}

/// Tokens of a call as its provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt.
    pub input: u64,
    /// Of the reply.
    pub output: u64,
    /// Tokens of the prompt that the provider's cache had.
    pub cached: u64,
    /// Tokens of the prompt that were written to the provider's cache.
    pub cache_write: u64,
}

impl Tokens {
    /// Tokens of a prompt and of a reply, without a cache.
    pub fn new(input: u64, output: u64) -> Tokens {
        Tokens { input, output, ..Tokens::default() }
    }

    /// The sum; saturates.
    pub fn and(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }

    /// A guess for a provider that does not say: four bytes a token.
    pub fn guess(input_bytes: usize, output_bytes: usize) -> Tokens {
        Tokens::new(input_bytes.div_ceil(4) as u64, output_bytes.div_ceil(4) as u64)
    }
}

/// Reason why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Finish {
    /// It was said.
    Stop,
    /// Tools are to be called.
    ToolCalls,
    /// The limit of its length was reached.
    Length,
    /// The provider withheld it.
    Filtered,
    /// The model declined.
    Refused,
    /// The provider did not say.
    #[default]
    Other,
}

impl Finish {
    /// The name that OpenTelemetry's conventions give it; `None` if it is not known.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Finish::Stop => Some("stop"),
            Finish::ToolCalls => Some("tool_call"),
            Finish::Length => Some("length"),
            Finish::Filtered | Finish::Refused => Some("content_filter"),
            Finish::Other => None,
        }
    }

    /// Derives the reason why a reply ended from the reply.
    pub fn of(reply: &Reply) -> Finish {
        match reply {
            Reply::Text(_) => Finish::Stop,
            Reply::ToolCall { .. } | Reply::ToolCalls(_) => Finish::ToolCalls,
        }
    }
}

/// Party that answered a question, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decider {
    /// The name: of an approver's key, of the local user, of a caller of the server.
    pub name: String,
    /// Proof of the approver's identity.
    pub via: Via,
}

impl Decider {
    /// Somebody of this name.
    pub fn new(name: impl Into<String>, via: Via) -> Decider {
        Decider { name: name.into(), via }
    }
}

/// Proof of the identity of whoever answered a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// The answer is signed with a key that the run knows.
    Key,
    /// It was typed at the terminal of the run.
    Terminal,
    /// The server knows its caller.
    Caller,
    /// The embedding program says so.
    Program,
}

impl Via {
    const ALL: [Via; 4] = [Via::Key, Via::Terminal, Via::Caller, Via::Program];

    /// The word for it in journals and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Via::Key => "key",
            Via::Terminal => "terminal",
            Via::Caller => "caller",
            Via::Program => "program",
        }
    }

    /// The value of a word of [`Via::as_str`].
    pub fn named(word: &str) -> Option<Via> {
        Via::ALL.into_iter().find(|v| v.as_str() == word)
    }
}
