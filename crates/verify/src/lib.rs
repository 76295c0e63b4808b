//! Checks a recorded run: on the machine, and on the interpreter that is extracted from the proofs.
//!
//! Entry points: [`replay`] runs a program on the answers of a [`Recording`]; [`Case::of`] writes a replay as
//! the interpreter reads it; [`compare`] compares what the interpreter answers.
//!
//! Invariant: pure. Who opens the record and starts the interpreter is not known here.
//! Invariant: what the interpreter does not cover is named ([`Uncovered`]), and never counts as checked.
//!
//! Source: `docs/verify.md`; the interpreter is `proofs/Extract/driver.ml`.

mod case;
mod compare;
mod replay;

pub use case::{Case, Uncovered};
pub use compare::{Compared, compare};
pub use replay::{End, Found, Recording, Replay, Step, replay};

/// The finding of a check: a record that is not that of a run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Number of the step in the order of the answers; `None` if it is the program or the end of the run.
    pub step: Option<u64>,
    /// The kind of what is wrong.
    pub kind: FindingKind,
    /// For people.
    pub message: String,
}

/// Kinds of [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    /// A row, a message or the program is not what was written.
    Damaged,
    /// The program can't be read, or is not that of the record.
    Program,
    /// The program makes another request.
    Request,
    /// The program makes a request that the record has not.
    Missing,
    /// The record has a request that the program does not make.
    Extra,
    /// An answer stands before another one without which it could not have been asked for.
    Order,
    /// The answer is none to the request.
    Answer,
    /// An approval is not signed by its approver, or is for another call.
    Approval,
    /// A model answered that may not see the conversation.
    Clearance,
    /// The result, or the error, is another one.
    Result,
    /// A label is another one.
    Label,
}

impl FindingKind {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::Damaged => "damaged",
            FindingKind::Program => "program",
            FindingKind::Request => "request",
            FindingKind::Missing => "missing",
            FindingKind::Extra => "extra",
            FindingKind::Order => "order",
            FindingKind::Answer => "answer",
            FindingKind::Approval => "approval",
            FindingKind::Clearance => "clearance",
            FindingKind::Result => "result",
            FindingKind::Label => "label",
        }
    }
}
