//! Requests of a run whose answers an engine keeps ([`crate::Engine`]).
//!
//! Each request is entered as a step when the machine makes it. It is begun when the engine says so, and its
//! response goes to the machine when the engine gives its record back. A record of an earlier attempt is
//! replayed as one of a journal is.
//!
//! Invariant: the machine is given a response, and told that a limit of time has passed, only while it waits
//! and in the order of the engine.

use super::{Driver, StartResult};
use crate::approve::Verdict;
use crate::deadline::Clocks;
use crate::engine::{Engine, EngineEvent, EngineRun, EngineStep, StepKind};
use crate::journal::{Conversations, EngineQuestion, Spent, now_millis, parse, record};
use core_ir::EffectClass;
use machine::{Call, Request, RequestId, Response, Stop, StopReason};
use runs::Answered;
use std::collections::HashMap;
use std::sync::{MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;

/// Requests that were entered and whose response the machine does not have yet.
pub(super) struct EnteredRequests {
    run: EngineRun,
    open: HashMap<RequestId, EnteredRequest>,
    conversations: Conversations,
    /// Time of the run: that of the last thing that the engine has told, in milliseconds since 1970.
    now: i64,
    created: i64,
}

struct EnteredRequest {
    request: Request,
    /// True if its event was sent.
    told: bool,
    /// The response that this attempt was given, and when; the engine does not have it yet.
    answered: Option<(Response, i64)>,
}

impl EnteredRequests {
    pub(super) fn new(run: EngineRun) -> Box<EnteredRequests> {
        let created = lock(&run).created();
        let (open, conversations) = (HashMap::new(), Conversations::default());
        Box::new(EnteredRequests { run, open, conversations, now: created, created })
    }

    /// Name of the run.
    pub(super) fn id(&self) -> Box<str> {
        lock(&self.run).run().into()
    }

    /// Start of the run, in milliseconds since 1970.
    pub(super) fn created(&self) -> i64 {
        self.created
    }

    /// Part of the idempotency keys of the run.
    pub(super) fn scope(&self) -> String {
        lock(&self.run).scope().to_string()
    }

    /// The time of the run on the clock of an attempt that began at `begun`.
    pub(super) fn now(&self, begun: Instant) -> Instant {
        let passed = u64::try_from(self.now.saturating_sub(self.created)).unwrap_or(0);
        begun.checked_add(Duration::from_millis(passed)).unwrap_or(begun)
    }

    /// The time of the run at an instant, rounded up: when it is reached, so is the instant.
    fn millis(&self, at: Instant, begun: Instant) -> i64 {
        let passed = at.saturating_duration_since(begun).as_nanos().div_ceil(1_000_000);
        self.created.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }

    fn advance(&mut self, to: i64) {
        self.now = self.now.max(to);
    }
}

fn lock(run: &EngineRun) -> MutexGuard<'_, dyn Engine + 'static> {
    // A panic while the lock was held ends the attempt; another one begins from what is durable.
    run.engine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A step, for people: the request, and its place.
fn name_of(id: RequestId, call: &Call) -> String {
    let what = match call {
        Call::Model { params, .. } => params
            .as_ref()
            .and_then(|p| p.purpose.as_deref())
            .map_or("model".into(), |p| format!("model {p}")),
        Call::Tool { tool, .. } => format!("tool {}", tool.name),
        Call::Approve { tool, .. } => format!("approve {}", tool.name),
        Call::Recall { store, .. } => format!("recall {}", store.name),
        Call::Remember { store, .. } => format!("remember {}", store.name),
        Call::Sample { .. } => "sample".into(),
    };
    format!("{what} {:x}.{}", id.strand, id.number)
}

impl Driver<'_> {
    /// Returns whether an engine keeps the answers.
    pub(super) fn has_engine(&self) -> bool {
        self.entered.is_some()
    }

    /// Enters a request that the machine has made.
    pub(super) fn enter(&mut self, id: RequestId, request: Request) {
        let now = self.now();
        if let Some(which) = self.clocks.asked(id, &request, self.machine.lattice(), now) {
            self.asked(id, &request, "");
            self.answered(id, Answered::Late, Instant::now());
            return self.machine.handle(id, Response::Late(which));
        }
        let kind = match &request.call {
            // It depends on the seed alone.
            Call::Sample { .. } => {
                self.begin(id, &request);
                return;
            }
            Call::Approve { .. } => StepKind::Question,
            Call::Tool { tool, .. }
                if tool.effect == EffectClass::Write && !self.handlers.tools.is_idempotent(tool) =>
            {
                StepKind::Once
            }
            _ => StepKind::Repeatable,
        };
        let name = self.redactor().for_records().text(&name_of(id, &request.call)).into_owned();
        let Some(entered) = &mut self.entered else { return };
        lock(&entered.run).enter(id, EngineStep { name, kind });
        entered.open.insert(id, EnteredRequest { request, told: false, answered: None });
    }

    /// Hands a response over to the engine; gives it back if the engine does not keep it.
    pub(super) fn hand_over(&mut self, id: RequestId, response: Response, spent: &Spent) -> Option<Response> {
        let redactor = self.redactor().for_records();
        let Some(entered) = &mut self.entered else { return Some(response) };
        let Some(open) = entered.open.get_mut(&id) else { return Some(response) };
        let (at, call) = (now_millis(), &open.request.call);
        let record = record::write(call, &response, spent, at, &mut entered.conversations, &redactor);
        let Some(record) = record else { return Some(response) };
        lock(&entered.run).keep(id, record);
        open.answered = Some((response, at));
        None
    }

    /// Sees to the next thing that the engine tells. The machine waits.
    pub(super) fn poll_engine(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (deadline, begun) = (self.deadline(), self.begun);
        let Some(entered) = &self.entered else { return Poll::Pending };
        let due = deadline.into_iter().chain(Clocks::next(&self.clocks)).min();
        let due = due.map(|at| entered.millis(at, begun));
        let polled = lock(&entered.run).poll(due, cx);
        polled.map(|event| match event {
            EngineEvent::Begin { id, again } => self.begin_entered(id, again),
            EngineEvent::Answered { id, record } => self.engine_answered(id, &record),
            EngineEvent::Decided { id, question, answer } => {
                self.engine_decided(id, &question, answer.as_deref());
            }
            EngineEvent::Reached(at) => {
                self.reach(at);
                match self.deadline().is_some_and(|d| self.now() >= d) {
                    true => self.too_long(),
                    false => drop(self.give_up_late()),
                }
            }
            EngineEvent::Canceled => {
                self.end_from_outside(StopReason::Interrupted, "the run was canceled".into());
            }
            EngineEvent::Failed(message) => {
                self.machine.cancel(Stop { reason: StopReason::Journal, message });
            }
        })
    }

    fn reach(&mut self, at: i64) {
        if let Some(entered) = &mut self.entered {
            entered.advance(at);
        }
    }

    fn take_entered(&mut self, id: RequestId) -> Option<EnteredRequest> {
        self.entered.as_mut()?.open.remove(&id)
    }

    /// Begins with a request, or asks a person.
    fn begin_entered(&mut self, id: RequestId, again: bool) {
        let Some(entered) = &mut self.entered else { return };
        let Some(open) = entered.open.get_mut(&id) else { return };
        open.told = true;
        let request = open.request.clone();
        match &request.call {
            Call::Approve { tool, args, labels, control } => {
                let approval = self.approval(tool, args, (labels, *control), request.channel);
                self.asked(id, &request, "");
                let Some(entered) = &self.entered else { return };
                let mut engine = lock(&entered.run);
                let question = EngineQuestion::new(engine.run(), id, &approval, None, entered.run.lifetime);
                engine.keep(id, question.to_json().to_string());
            }
            Call::Tool { tool, .. } if again => {
                let unfinished = entered.run.unfinished;
                if !self.is_given_up(id, &request, tool, unfinished) {
                    self.queue_up(id, request);
                }
            }
            _ => self.queue_up(id, request),
        }
    }

    /// Begins with a request as soon as it is its turn.
    pub(super) fn queue_up(&mut self, id: RequestId, request: Request) {
        // Mostly nothing is before it.
        let queued = self.queue.as_ref().is_some_and(|q| !q.is_empty());
        if queued || matches!(self.begin(id, &request), StartResult::NotYet) {
            self.queue.get_or_insert_default().push_back((id, request));
            self.begin_all();
        }
    }

    /// The record of a request is durable.
    fn engine_answered(&mut self, id: RequestId, text: &str) {
        let Some(open) = self.take_entered(id) else { return };
        if let Some((response, at)) = open.answered {
            self.reach(at);
            self.clocks.answered(id, self.now());
            return self.machine.handle(id, response);
        }
        let redactor = self.redactor().for_records();
        let Some(entered) = &mut self.entered else { return };
        match record::read(&open.request.call, text, &mut entered.conversations, &redactor) {
            Ok((recorded, at)) => {
                self.reach(at);
                self.clocks.answered(id, self.now());
                self.replay(id, &open.request, recorded, true);
            }
            Err(why) => {
                self.asked(id, &open.request, "");
                self.end(id, StopReason::Journal, why);
            }
        }
    }

    /// A question was answered, or was not in time.
    fn engine_decided(&mut self, id: RequestId, question: &str, answer: Option<&str>) {
        let Some(open) = self.take_entered(id) else { return };
        let Call::Approve { tool, args, labels, control } = &open.request.call else { return };
        if !open.told {
            self.tell_asked(id, &open.request, "", true);
        }
        let approval = self.approval(tool, args, (labels, *control), open.request.channel);
        let Some(EnteredRequests { run, .. }) = self.entered.as_deref() else { return };
        let kept = parse(question).ok().and_then(|json| EngineQuestion::from_json(&json));
        let same = kept.filter(|kept| {
            let asked = Some(kept.asked());
            kept.is(&EngineQuestion::new(lock(run).run(), id, &approval, asked, run.lifetime))
        });
        let Some(same) = same else {
            return self.end(id, StopReason::Journal, "the question differs from the recorded one".into());
        };
        let (verdict, at) = match answer {
            None => (Verdict::refused("it was not approved in time"), same.expires()),
            // Workers check answers before they pass them on, so this one was put there by somebody else.
            Some(answer) => same
                .verdict(answer, &run.approvers)
                .unwrap_or_else(|_| (Verdict::refused("no approver has signed the answer"), same.asked())),
        };
        self.reach(at);
        self.clocks.answered(id, self.now());
        let Verdict { result, by } = verdict;
        let response = self.decided(id, result, by, Instant::now());
        self.machine.handle(id, response);
    }

    /// A limit of time has passed for a request. Its event was sent unless it was never begun.
    pub(super) fn late(&mut self, id: RequestId, which: u32, sent: bool) {
        let Some(open) = self.take_entered(id) else { return };
        if let Some(entered) = &self.entered {
            lock(&entered.run).forget(id);
        }
        if !sent && open.answered.is_none() {
            self.asked(id, &open.request, "");
            self.answered(id, Answered::Late, Instant::now());
        }
        self.clocks.answered(id, self.now());
        self.machine.handle(id, Response::Late(which));
    }
}
