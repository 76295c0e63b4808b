//! Approval of tool calls by a person.
//!
//! Entry point: [`Approver`], which [`crate::Handlers`] have where somebody is there to be asked.
//!
//! Invariant: nothing here approves anything by itself; without an approver each call that wants approval is refused.

use crate::BoxFuture;
use core_ir::{Chain, Data, Name};
use std::fmt;
use std::sync::Arc;

/// Why a call is not approved if the handlers of a run have no [`Approver`]. A journal keeps this, and a run that is resumed asks again
/// if it had not gone on from there.
pub const NOBODY: &str = "nobody is there to approve it";

/// A call of a tool that wants approval. Secrets of the environment are removed from what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The tool.
    pub tool: Name,
    /// The arguments in the order of the parameters.
    pub args: Vec<ApprovalArg>,
}

/// An argument of a call that wants approval.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalArg {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub value: Data,
    /// Where it came from and who may see it: the join of all labels in it, as a label value.
    pub label: Data,
    /// Where each component of the label comes from; empty unless the run explains flow.
    pub chains: Vec<Chain>,
}

/// Whoever is asked before a tool with `approve` is called. The answer holds for this one call and endorses its arguments
/// (`docs/calculus.md`, approval), so it must be a person's, never a model's.
///
/// A question may be dropped before it is answered: when the run is cancelled, or too late for a time limit of the program.
/// Several may be open at once.
///
/// # Examples
/// ```
/// use runtime::{Approval, Approver};
/// let careful = Approver::new(|call: Approval| {
///     Box::pin(async move { Err(format!("not `{}`, not today", call.tool)) })
/// });
/// ```
#[derive(Clone)]
pub struct Approver(Arc<Ask>);

type Ask = dyn Fn(Approval) -> BoxFuture<Result<(), String>> + Send + Sync;

impl Approver {
    /// Asks by this function. An error is a refusal, and says why.
    pub fn new(ask: impl Fn(Approval) -> BoxFuture<Result<(), String>> + Send + Sync + 'static) -> Approver {
        Approver(Arc::new(ask))
    }

    pub(crate) fn ask(&self, call: Approval) -> BoxFuture<Result<(), String>> {
        (self.0)(call)
    }
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
}
