//! Decisions about single calls: a turn of the machine that waits for something of the world.

use core_ir::{Code, Data, Label, LabelSpec, Name};
use diagnostics::toml_key;
use machine::{Config, Machine, Part, Refusal, RequestId, Response};
use std::sync::Arc;

/// Decision about a call.
#[derive(Debug)]
pub enum Decision {
    /// It may be made. Its result goes to [`crate::Session::finish`].
    Allowed(Allowed),
    /// A person must be asked first. The answer goes to [`crate::Session::answer`].
    Asks(Question),
    /// A set that arguments may be chosen from must be read first. The result of the call goes to
    /// [`crate::Session::read`].
    Reads(SetRead),
    /// It is not made.
    Refused(Refused),
}

/// A turn that waits for a response.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) machine: Box<Waiting>,
    pub(crate) start: Start,
}

/// The beginning of a turn.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) code: Arc<Code>,
    pub(crate) input: Data,
    pub(crate) config: Arc<Config>,
    pub(crate) tool: Name,
    /// True if its arguments name handles.
    pub(crate) has_handles: bool,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("input", &self.input).finish_non_exhaustive()
    }
}

/// The machine and the request that it waits for.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) machine: Machine,
    pub(crate) id: RequestId,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Turn {
    /// Gives the response.
    pub(crate) fn handle(mut self, response: Response) -> (Machine, Start) {
        self.machine.machine.handle(self.machine.id, response);
        (self.machine.machine, self.start)
    }
}

/// A call that may be made.
#[derive(Clone, Debug)]
pub struct Allowed {
    pub(crate) turn: Turn,
}

impl Allowed {
    /// The tool.
    pub fn tool(&self) -> &Name {
        &self.turn.start.tool
    }
}

/// A call that a person must be asked about.
#[derive(Debug)]
pub struct Question {
    pub(crate) turn: Turn,
    pub(crate) args: Vec<(Name, Data, String)>,
    pub(crate) is_decided: bool,
}

impl Question {
    /// The tool.
    pub fn tool(&self) -> &Name {
        &self.turn.start.tool
    }

    /// The arguments, each with its label as it is written.
    pub fn args(&self) -> &[(Name, Data, String)] {
        &self.args
    }

    /// Returns true if untrusted data decided that the call is made: the conversation had it before.
    pub fn is_decided(&self) -> bool {
        self.is_decided
    }
}

/// A set that must be read before a call is decided.
#[derive(Debug)]
pub struct SetRead {
    pub(crate) turn: Turn,
    pub(crate) set: Name,
}

impl SetRead {
    /// The tool whose call waits.
    pub fn tool(&self) -> &Name {
        &self.turn.start.tool
    }

    /// The tool that is called without arguments.
    pub fn set(&self) -> &Name {
        &self.set
    }
}

/// Decision about a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The client may have it.
    Delivered,
    /// The client may not have it.
    Withheld(Refused),
}

/// A call that is not made, or a result that is not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The tool.
    pub tool: Name,
    /// The reason.
    pub message: String,
    /// The change that would allow it.
    pub remedy: String,
    /// The part of the call that broke a bound, with its label and the bound, as far as one did.
    pub broke: Option<(String, String, String)>,
    /// The label of the conversation when it was refused.
    pub label: String,
    /// Tools whose results raised that label, the first first.
    pub raised_by: Vec<Name>,
}

impl std::fmt::Display for Refused {
    /// The text for the model: the reason, where the label comes from, and the remedy.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)?;
        if !self.raised_by.is_empty() {
            let by: Vec<String> = self.raised_by.iter().map(|n| format!("`{n}`")).collect();
            write!(f, "; the conversation is labeled {} since calls of {}", self.label, by.join(", "))?;
        }
        if !self.remedy.is_empty() {
            write!(f, ". {}", self.remedy)?;
        }
        Ok(())
    }
}

/// Describes the part that broke a bound.
pub(crate) fn broke(machine: &Machine, refusal: &Refusal) -> (String, String, String) {
    let show = |label: Label| machine.lattice().show(label);
    (refusal.part.describe(), show(refusal.label), show(refusal.bound))
}

/// The change that would allow a refused call.
/// `named` is the table that the policy has for the tool. A second table for it would replace the first.
pub(crate) fn remedy(
    tool: &Name,
    refusal: Option<&Refusal>,
    (integrity, secrecy): (bool, bool),
    named: Option<&str>,
) -> String {
    let table = format!("`[tools.{}]`", toml_key(named.unwrap_or(tool)));
    let Some(refusal) = refusal else {
        return format!("Whoever keeps the policy decides that under {table}");
    };
    let word = match (integrity, secrecy) {
        (true, true) => "any",
        (false, true) => "secret",
        _ => "untrusted",
    };
    let ask = match integrity && !secrecy {
        true => format!(", or have a person asked for each call: `approve = true` under {table}"),
        false => String::new(),
    };
    let fresh = "Make the call in a new session, before that is read";
    match &refusal.part {
        Part::Argument(arg) => format!(
            "{fresh}; in the policy, allow it for this argument: `bounds = {{ {arg} = \"{word}\" }}` under {table}{ask}"
        ),
        Part::Control if named.is_some() => format!(
            "{fresh}; in the policy, let such data decide whether it is called: `control = \"{word}\"` under {table}{ask}"
        ),
        Part::Control => format!(
            "{fresh}; in the policy, say what the tool does: `effect = \"read\"` under {table} if it only \
             looks things up{ask}"
        ),
        Part::Conversation => "The model of this session may not see it: use one that may, or raise \
             `clearance` under `[models.\"*\"]`"
            .into(),
        Part::Form(_) => "Leave links, addresses and numbers out of the text".into(),
        Part::Pattern(arg) => format!("All of `{arg}` must match the pattern that {table} has for it"),
        Part::Readers(_) => "Send it to those who may read it".into(),
        Part::Value | Part::Verdict | Part::Answer => {
            format!("Whoever keeps the policy decides that under {table}")
        }
    }
}

/// An answer that a set was read as.
#[derive(Clone, Debug)]
pub(crate) struct SetAnswer {
    pub(crate) result: Result<Data, String>,
    pub(crate) label: LabelSpec,
}
