//! Work completed by a run that exhausted its budget: the limit and the finished calls.
//!
//! Entry point: [`Partial`], in [`crate::RunReport`].

use core_ir::{Data, Name};
use serde_json::{Value as Json, json};

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
