//! The world of a run: what answers the requests of a program.

use core_ir::{Data, LabelSpec, ModelParams, Name, Num, Role};
use std::sync::Arc;

/// A message of a conversation: who says it, and what.
pub type Message = (Role, String);

/// Request of a program.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A model, with the conversation so far.
    Model {
        /// The conversation.
        messages: Vec<Message>,
        /// Parameters of the call; `None` if the reply is read as code.
        params: Option<Arc<ModelParams>>,
        /// The names of the tools that are offered to it.
        tools: Vec<Name>,
    },
    /// A tool, with an argument for each parameter that has one, in the order of the parameters.
    Tool {
        /// Which.
        name: Name,
        /// The arguments.
        args: Vec<(Name, Data)>,
    },
    /// Request to approve a call of a tool.
    Approve {
        /// Which.
        name: Name,
        /// The arguments.
        args: Vec<(Name, Data)>,
    },
    /// Value stored under a key.
    Recall {
        /// The store.
        store: Name,
        /// The key.
        key: Name,
    },
    /// To keep a value under a key.
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

/// Answer of the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A model says this.
    Text(String),
    /// A model calls a tool that was offered.
    ToolCall(Name, Data),
    /// A model calls several tools.
    ToolCalls(Vec<(Name, Data)>),
    /// A tool returns this.
    Data(Data),
    /// A tool returns this and labels it.
    Labeled(Data, LabelSpec),
    /// Somebody approves, or gives a reason not to.
    Approved(Result<(), String>),
    /// Somebody approves the call with other arguments, whose label is that of whoever writes them.
    Edited(Vec<(Name, Data)>, LabelSpec),
    /// A store holds this.
    Found(Option<Data>),
    /// A store has kept the value.
    Kept,
    /// A sample.
    Drawn(bool),
    /// It did not work.
    Failed(String),
    /// A tool did not answer within a limit of its own.
    ToolTimeout(String),
    /// A model does not work, however often it is asked.
    Permanent(String),
    /// The time limit of this number has passed, the innermost being 0.
    Late(u32),
}

/// Environment that answers requests. The answer may depend on what was asked before.
pub trait World {
    /// Answers one call.
    fn answer(&mut self, call: &Call) -> Answer;

    /// Answers one call that has time limits, in seconds, innermost first. Mostly it is in time.
    fn answer_within(&mut self, call: &Call, _limits: &[Num]) -> Answer {
        self.answer(call)
    }
}

impl<F: FnMut(&Call) -> Answer> World for F {
    fn answer(&mut self, call: &Call) -> Answer {
        self(call)
    }
}

/// A number that depends on the text alone (FNV-1a): the same on every machine and in every version.
pub fn hash(seed: u64, text: &str) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for b in text.bytes() {
        h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The low bits of FNV are weak; mix once more.
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^ (h >> 33)
}
