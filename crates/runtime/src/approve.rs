//! Approval of tool calls by a person.
//!
//! Entry point: [`Approver`], part of [`crate::Handlers`] where calls can be approved.
//!
//! Invariant: nothing here approves anything by itself; without an approver each call that wants approval is
//! refused.

use crate::BoxFuture;
use crate::elicit::{Elicitation, ElicitationAnswer};
use core_ir::{Chain, Data, LabelSpec, Name, Type};
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
    /// The type of its parameter, which another argument must have, too.
    pub ty: Type,
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
    /// Answers questions of MCP servers.
    answer: Option<Arc<Answering>>,
}

type Ask = dyn Fn(Approval) -> BoxFuture<Result<Option<Edit>, String>> + Send + Sync;

type Answering = dyn Fn(Elicitation) -> BoxFuture<ElicitationAnswer> + Send + Sync;

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
        let by = Decider::new("the embedding program", Via::Program);
        Approver { ask: Arc::new(ask), by, answer: None }
    }

    /// Answers questions of MCP servers as well, by this function. Without it they are declined.
    #[must_use]
    pub fn answering(
        self,
        answer: impl Fn(Elicitation) -> BoxFuture<ElicitationAnswer> + Send + Sync + 'static,
    ) -> Approver {
        Approver { answer: Some(Arc::new(answer)), ..self }
    }

    /// Returns true if it answers questions of MCP servers.
    pub(crate) fn is_answering(&self) -> bool {
        self.answer.is_some()
    }

    /// Asks a question of an MCP server.
    pub(crate) fn elicit(&self, question: Elicitation) -> BoxFuture<ElicitationAnswer> {
        match &self.answer {
            Some(answer) => answer(question),
            None => Box::pin(async { ElicitationAnswer::Decline(NOBODY_ANSWERS.into()) }),
        }
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

    /// Asks only where `admits` lets all labels pass that a question depends on. Other calls are refused, and
    /// other questions of servers declined, for the reason it gives.
    #[must_use]
    pub fn filtered(
        self,
        admits: impl Fn(&[&Data]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Approver {
        let Approver { ask, by, answer } = self;
        let admits = Arc::new(admits);
        let admits_call = admits.clone();
        let ask: Arc<Ask> = Arc::new(move |call| {
            let labels: Vec<&Data> = call.args.iter().map(|arg| &arg.label).chain([&call.channel]).collect();
            match admits_call(&labels) {
                Ok(()) => ask(call),
                Err(why) => Box::pin(async move { Err(why) }),
            }
        });
        let answer = answer.map(|answer| -> Arc<Answering> {
            Arc::new(move |question| match admits(&question.labels.iter().collect::<Vec<_>>()) {
                Ok(()) => answer(question),
                Err(why) => Box::pin(async move { ElicitationAnswer::Decline(why) }),
            })
        });
        Approver { ask, by, answer }
    }
}

/// Reason why a question of a server has no answer.
pub(crate) const NOBODY_ANSWERS: &str =
    "nobody could answer (help: `entail run` at a terminal asks, and so does `Approver::answering`)";

impl fmt::Debug for Approver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approver")
    }
}
