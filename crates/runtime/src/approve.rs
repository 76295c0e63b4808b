//! Approval of tool calls by a person.
//!
//! Entry point: [`Approver`], part of [`crate::Handlers`] where calls can be approved.
//!
//! Invariant: nothing here approves anything by itself; without an approver each call that wants approval is
//! refused.

use crate::BoxFuture;
use core_ir::{Chain, Data, LabelSpec, Name};
use runs::{Decider, Via};
use std::fmt;
use std::sync::Arc;

/// An answer to a question, and whose it is. Nobody's, if the question was never asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Approval, perhaps with other arguments, or the reason of a refusal.
    pub(crate) result: Result<Option<Edit>, String>,
    pub(crate) by: Option<Decider>,
}

impl Verdict {
    /// Returns a refusal that is not an approver's decision.
    pub(crate) fn refused(why: impl Into<String>) -> Verdict {
        Verdict { result: Err(why.into()), by: None }
    }
}

/// Arguments that whoever approves a call writes in place of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The arguments that are other ones, by the names of their parameters.
    pub args: Vec<(Name, Data)>,
    /// Label of what the approver writes.
    pub label: LabelSpec,
}

impl Edit {
    /// An edit by somebody whose words are trusted and public.
    pub fn trusted(args: Vec<(Name, Data)>) -> Edit {
        Edit { args, label: LabelSpec::BOTTOM }
    }
}

/// A call of a tool that wants approval. Secrets of the environment are removed from what it shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    /// The tool.
    pub tool: Name,
    /// The arguments in the order of the parameters.
    pub args: Vec<ApprovalArg>,
    /// True if untrusted data decided that the call is made. The labels of all arguments have that, too, also
    /// of those that the program itself wrote.
    pub is_decided: bool,
    /// Label of the decision to make the call, as a label value. Approvers below it must not learn of the
    /// question.
    pub channel: Data,
}

/// An argument of a call that wants approval.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalArg {
    /// Its name.
    pub name: Name,
    /// The argument.
    pub value: Data,
    /// Label of the value as a label value: the join of all labels in it.
    pub label: Data,
    /// Origins of the label's components; empty unless the run explains flow.
    pub chains: Vec<Chain>,
}

impl ApprovalArg {
    /// Where the components of its label come from, in words, one way each.
    pub fn reasons(&self) -> Vec<String> {
        let of_way = |words: &str, way: &[core_ir::Hop]| {
            let steps: Vec<String> = way.iter().map(|hop| hop.what.describe()).collect();
            format!("{words}: {}", steps.join(" <- "))
        };
        self.chains.iter().flat_map(|c| c.ways.iter().map(|way| of_way(&c.words, way))).collect()
    }
}

/// Approver of calls of tools with `approve`. The answer holds for this one call and endorses its arguments
/// (`docs/calculus.md`, approval), so it must be a person's, never a model's.
///
/// A question may be dropped before it is answered: when the run is canceled, or too late for a time limit
/// of the program. Several may be open at once.
///
/// # Examples
/// ```
/// use runtime::{Approval, Approver};
/// let careful = Approver::new(|call: Approval| {
///     Box::pin(async move { Err(format!("not `{}`, not today", call.tool)) })
/// });
/// ```
#[derive(Clone)]
pub struct Approver {
    ask: Arc<Ask>,
    by: Decider,
}

type Ask = dyn Fn(Approval) -> BoxFuture<Result<Option<Edit>, String>> + Send + Sync;

impl Approver {
    /// Asks by this function. An error is a refusal, and says why.
    pub fn new(ask: impl Fn(Approval) -> BoxFuture<Result<(), String>> + Send + Sync + 'static) -> Approver {
        Approver::editing(move |call| {
            let answer = ask(call);
            Box::pin(async move { answer.await.map(|()| None) })
        })
    }

    /// Asks by a function that may give other arguments. The call is checked again with them.
    pub fn editing(
        ask: impl Fn(Approval) -> BoxFuture<Result<Option<Edit>, String>> + Send + Sync + 'static,
    ) -> Approver {
        Approver { ask: Arc::new(ask), by: Decider::new("the embedding program", Via::Program) }
    }

    /// Sets the identity of the approver.
    #[must_use]
    pub fn answered_by(self, by: Decider) -> Approver {
        Approver { by, ..self }
    }

    pub(crate) fn ask(&self, call: Approval) -> BoxFuture<Verdict> {
        let (answer, by) = ((self.ask)(call), self.by.clone());
        Box::pin(async move { Verdict { result: answer.await, by: Some(by) } })
    }

    /// Asks only about calls that `admits` lets pass; others are refused for the reason it gives.
    #[must_use]
    pub fn filtered(
        self,
        admits: impl Fn(&Approval) -> Result<(), String> + Send + Sync + 'static,
    ) -> Approver {
        let Approver { ask, by } = self;
        let ask: Arc<Ask> = Arc::new(move |call| match admits(&call) {
            Ok(()) => ask(call),
            Err(why) => Box::pin(async move { Err(why) }),
        });
        Approver { ask, by }
    }
}

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
}
