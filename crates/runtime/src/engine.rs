//! The seam between a run and an engine: a service that keeps the answers of a run, decides their order and
//! begins the run again on another worker if this one is lost.
//!
//! Entry point: [`Engine`], which the crate of an engine implements. The loop around the machine is the same
//! with and without one. It enters each request as a step, begins what the engine says, gives it the
//! record of the answer, and lets the machine go on when the engine gives that record back.
//!
//! Invariant: steps are entered only while the machine moves, and the engine tells of one thing at a time,
//! while the machine waits. So the order of the steps is a function of what the engine has told.
//! Invariant: time limits count the time of the run ([`EngineEvent`] has it), not that of the process, so a
//! run that begins again exceeds the same limits at the same requests.
//! Invariant: a record has been through the run's [`crate::Redactor`], as an entry of a journal has.

use crate::journal::Unfinished;
use crate::keys::Approvers;
use machine::RequestId;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

/// An attempt at a run whose answers an engine keeps.
///
/// After a failure of its own, an engine is silent: the attempt is over, and whoever drives it drops it.
pub trait Engine: fmt::Debug + Send {
    /// Name of the run.
    fn run(&self) -> &str;

    /// Part of the idempotency keys of the run. No other run has it, of whatever program.
    fn scope(&self) -> &str;

    /// Start of the run, in milliseconds since 1970; the same in every attempt.
    fn created(&self) -> i64;

    /// Enters a step. Every attempt enters the same steps in the same order, as far as it gets.
    fn enter(&mut self, id: RequestId, step: EngineStep);

    /// Gives the engine the record of a step that was begun.
    fn keep(&mut self, id: RequestId, record: String);

    /// The step is not waited for any more.
    fn forget(&mut self, id: RequestId);

    /// The next event. `due` is the time, in milliseconds since 1970, at which the run wants to be told that
    /// it has come.
    fn poll(&mut self, due: Option<i64>, cx: &mut Context<'_>) -> Poll<EngineEvent>;
}

/// A request, as an engine sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineStep {
    /// The request and its place in the program, for people. It is the same in every attempt.
    pub name: String,
    /// Treatment of the step.
    pub kind: StepKind,
}

/// Treatment of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// It may be begun again by a later attempt.
    Repeatable,
    /// A call that may have been made must not be made again. That it begins is durable before it begins.
    Once,
    /// A person is asked. The record is the question, as JSON with `token` and `expires`; what follows is
    /// [`EngineEvent::Decided`].
    Question,
}

/// Event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// A step is to be begun.
    Begin {
        /// The step.
        id: RequestId,
        /// True of a [`StepKind::Once`] step that an earlier attempt has begun.
        again: bool,
    },
    /// The record of a step is durable.
    Answered {
        /// The step.
        id: RequestId,
        /// Its record.
        record: String,
    },
    /// A question was answered, or nobody answered it in time.
    Decided {
        /// The step.
        id: RequestId,
        /// The record of the step.
        question: String,
        /// The answer, as [`crate::EngineQuestion::sign`] writes it. It proves nothing before it is checked.
        answer: Option<String>,
    },
    /// This time has come, in milliseconds since 1970.
    Reached(i64),
    /// The run is canceled.
    Canceled,
    /// The answers can't be kept, for this reason.
    Failed(String),
}

/// An engine for one run, and what the run needs beside it.
#[derive(Clone, Debug)]
pub struct EngineRun {
    /// The attempt.
    pub engine: Arc<Mutex<dyn Engine>>,
    /// Approvers whose signed answers count.
    pub approvers: Approvers,
    /// Time in which a question can be answered.
    pub lifetime: Duration,
    /// Treatment of calls that an earlier attempt has begun and that may have changed the world.
    pub unfinished: Unfinished,
}
