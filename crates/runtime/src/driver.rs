//! The loop around the machine.

mod entered;

use crate::approve::{Approval, ApprovalArg, Approver, Edit, Verdict as Decided};
use crate::budget::{Budget, Reserve, Verdict, cost, most_cost};
use crate::deadline::Clocks;
use crate::elicit::Respondent;
use crate::engine::EngineRun;
use crate::event::{HandlerNote, HandlerNotes, Progress};
use crate::history::{History, RequestLabels};
use crate::immediate::Immediate;
use crate::in_flight::{Completion, InFlight, OpenModel, OpenRequest, Portable, RequestKind};
use crate::inline_map::InlineMap;
use crate::journal::{self, ApprovalDesk, Known, Recorded, RunStatus, Session, Spent, Unfinished, Written};
use crate::partial::ProgressLog;
use crate::provider::{self, Answer, ModelCall, Provider, Work};
use crate::settings::Routed;
use crate::tools::{CallContext, ToolAnswer, ToolError};
use crate::{Limits, Models, Stores, Tools};
use core_ir::{Candidate, Data, EffectClass, Label, LabelSpec, Name, ToolDecl, Type, py};
use entered::EnteredRequests;
use machine::{
    Call, CallCount, ErrorCode, Failure, Machine, Messages, NOBODY, Output, Reified, Request, RequestId,
    Response, Stop, StopReason,
};
use runs::{
    Answered, Decider, Event, Explainer, Finish, Importance, ModelError, RedactedStream, Redactor, Resource,
    RunReport, Tokens, sample,
};
use serde_json::json;
use std::collections::{HashMap, HashSet, VecDeque};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// Message of the event for a request that no model may see. The error says more.
const NOT_CLEARED: &str = "no model that could answer may see the conversation";

/// Handlers of the machine's requests.
#[derive(Clone, Debug)]
pub struct Handlers {
    /// The models.
    pub models: Models,
    /// The tools.
    pub tools: Tools,
    /// The stores.
    pub stores: Stores,
    /// Approver of calls of tools with `approve`; without one such calls are refused.
    pub approver: Option<Approver>,
    /// Desk where such a call waits for an absent approver. The first answer, here or there, decides.
    pub desk: Option<ApprovalDesk>,
    /// True to stream replies as [`Event::Text`].
    pub stream: bool,
    /// Seed of samples: the same seed gives the same samples, whatever the timing.
    pub seed: u64,
    /// Names the run where no journal does; without either it gets a new name.
    pub run: Option<String>,
    /// Journal that records or supplies the answers. A session is for one run.
    pub journal: Option<Arc<Mutex<Session>>>,
    /// Engine that keeps the answers instead of a journal.
    pub engine: Option<EngineRun>,
    /// True if the run in the journal goes on after the program: [`end_run`] writes its end. The programs of
    /// such a run have different strands ([`machine::Config::strand`]).
    pub continues: bool,
    /// Answers of earlier runs for the same request, which this run reuses; it adds its own.
    pub history: Option<Arc<Mutex<History>>>,
}

impl Handlers {
    /// Creates handlers with these models, tools as declared, empty stores, no approver and seed 0.
    pub fn new(models: Models) -> Handlers {
        let tools = Tools::new(models.environment());
        Handlers {
            models,
            tools,
            stores: Stores::new(),
            approver: None,
            desk: None,
            stream: false,
            seed: 0,
            run: None,
            journal: None,
            engine: None,
            continues: false,
            history: None,
        }
    }
}

/// Writes the end of a run that consisted of several programs ([`Handlers::continues`]) to its journal.
pub async fn end_run(handlers: &Handlers, status: RunStatus, outcome: serde_json::Value) {
    let written = handlers.journal.as_ref().and_then(|session| lock(session).ended(status, outcome));
    if let Some(written) = written {
        // As of a run of one program, see `drive`.
        let _ = written.wait().await;
    }
}

/// The status and the outcome of a run in a journal.
pub fn run_end(result: &Result<Reified, Failure>, redactor: &Redactor) -> (RunStatus, serde_json::Value) {
    match result {
        Ok(value) => {
            let mut json = value.data().map_or_else(|| value.to_string().into(), |d| d.to_json());
            redactor.json(&mut json);
            (RunStatus::Done, json)
        }
        Err(f) => {
            let status = if f.code.is_final() { RunStatus::Stopped } else { RunStatus::Failed };
            (status, json!({"error": f.code.as_str(), "message": f.message}))
        }
    }
}

/// Runs a machine to its end.
///
/// Requests are handled as soon as they are made, those of `par` concurrently. A request that exceeds a time
/// limit of the program (`within`) is dropped and not retried. `cancel` and the run's time limit end the run
/// with the uncatchable error `cancelled`, an exhausted budget with `budget`; requests in flight are then
/// dropped. The result does not depend on the order of the answers.
///
/// `events` is called for everything that happens, in this task.
///
/// Needs a tokio runtime with IO and time. Dropping the future ends everything as well.
pub fn run<'a>(
    mut machine: Machine,
    handlers: &'a Handlers,
    limits: &'a Limits,
    cancel: &'a CancellationToken,
    events: &'a mut (dyn FnMut(Event) + Send + 'a),
) -> impl Future<Output = RunReport> + Send + 'a {
    let entered = handlers.engine.clone().map(EnteredRequests::new);
    let run = match (&handlers.journal, &entered) {
        (Some(session), _) => lock(session).id().into(),
        (None, Some(entered)) => entered.id(),
        (None, None) => handlers.run.clone().unwrap_or_else(journal::new_id).into(),
    };
    // A resumed run keeps the time of its start.
    let began = handlers.journal.as_ref().map(|session| lock(session).created());
    let began = began.or(entered.as_ref().map(|entered| entered.created()));
    let stores = handlers.stores.begin(machine.stores(), began).unwrap_or_else(|message| {
        machine.cancel(Stop { reason: StopReason::Configuration, message });
        handlers.stores.clone()
    });
    if let Some(mut history) = history(handlers) {
        history.begin();
    }
    // Boxed here, and not within the future: that would have room for the machine twice, where it is given
    // and where it is used.
    let mut driver = Box::new(Driver {
        machine,
        handlers,
        limits,
        run,
        stores,
        begun: Instant::now(),
        tools: None,
        budget: Budget::of(limits),
        queue: None,
        under_way: InFlight::default(),
        keeping: handlers.journal.is_some().then(Box::default),
        entered,
        said: None,
        clocks: Clocks::default(),
        timer: None,
        notes: Arc::default(),
        events,
        progressed: ProgressLog::default(),
        minor: None,
        retries: None,
        ended: false,
    });
    // The future of a run has room for its largest part as long as it waits, and there may be very many that
    // wait: what is kept over a wait stands in the driver, and the end is a future of its own.
    // Which models may answer is known here, see `Driver::begin`.
    driver.machine.leave_clearance_to_driver();
    async move {
        driver.begun = Instant::now();
        let mut canceled = pin!(cancel.cancelled());
        let end = loop {
            // Nothing of it is left when something is waited for, so there is no room for it, either.
            let works = match driver.work() {
                NextStep::Ended(result) => break Box::pin(driver.end_of_run(result)),
                NextStep::Works => true,
                NextStep::Waits => false,
            };
            if works {
                // Signals, timers and tasks get their turn.
                tokio::task::yield_now().await;
            }
            poll_fn(|cx| driver.look(canceled.as_mut(), works, cx)).await;
        };
        end.await
    }
}

/// Does what waits, on a thread for that.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(_) => Err("the handler crashed".to_string()),
    }
}

/// An answer on its way into the journal, and then whether it is there.
type StoredAnswer = (RequestId, Response, Result<(), String>);

/// Pending work for a journal.
#[derive(Default)]
struct PendingRecords {
    /// Calls without an answer.
    calls: InlineMap<Box<Call>>,
    /// Answers that the machine gets when they are in the journal.
    writes: JoinSet<StoredAnswer>,
}

struct Driver<'a> {
    machine: Machine,
    handlers: &'a Handlers,
    limits: &'a Limits,
    run: Box<str>,
    /// Stores of the run, at its time.
    stores: Stores,
    begun: Instant,
    /// Tools of the run, created at its first tool call.
    tools: Option<Box<Tools>>,
    budget: Budget<'a>,
    /// Not begun yet, in the order in which they were asked.
    #[allow(clippy::box_collection, reason = "a run that waits is to be small, and mostly there are none")]
    queue: Option<Box<VecDeque<(RequestId, Request)>>>,
    under_way: InFlight,
    /// Only if there is a journal.
    keeping: Option<Box<PendingRecords>>,
    /// Only if there is an engine.
    entered: Option<Box<EnteredRequests>>,
    /// Only if a model has said something that must be repeated as it was.
    said: Option<Box<provider::VerbatimReplies>>,
    clocks: Clocks,
    /// For the next limit of time, if there is one.
    timer: Option<Pin<Box<Sleep>>>,
    notes: Arc<HandlerNotes>,
    events: &'a mut (dyn FnMut(Event) + Send),
    progressed: ProgressLog,
    /// Requests under way that are minor, unless they fail; only if there is one.
    #[allow(clippy::box_collection, reason = "a run that waits is to be small")]
    minor: Option<Box<HashSet<RequestId>>>,
    /// Attempts of requests under way that failed; only if there was one.
    #[allow(clippy::box_collection, reason = "a run that waits is to be small")]
    retries: Option<Box<HashMap<RequestId, journal::Retries>>>,
    /// True if the run was canceled from outside.
    ended: bool,
}

/// Next action after the machine has run as far as it can.
enum NextStep {
    Ended(Result<machine::Value, Box<Failure>>),
    /// It has more to do.
    Works,
    Waits,
}

/// Result of trying to start a queued request.
enum StartResult {
    Begun,
    NotYet,
}

impl<'a> Driver<'a> {
    /// Lets the machine do what it can, and takes up what it asks for.
    fn work(&mut self) -> NextStep {
        loop {
            match self.poll() {
                Output::Done(result) => return NextStep::Ended(result.map_err(Box::new)),
                Output::Request(id, request) if self.has_engine() => self.enter(id, request),
                Output::Request(id, request) => {
                    let known = self.answered_before(id, &request) || self.answered_earlier(id, &request);
                    if !known && !self.is_too_much(id, &request) {
                        self.take_up(id, request);
                    }
                }
                Output::Working => return NextStep::Works,
                Output::Waiting => return NextStep::Waits,
            }
        }
    }

    /// Sees to the next thing that has happened; or to all that have, without waiting for one.
    fn look(
        &mut self,
        mut canceled: Pin<&mut WaitForCancellationFuture<'_>>,
        all: bool,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if !all {
            // What an engine tells moves the machine, so it is heard when that waits.
            let looked = self.look_once(canceled, cx);
            return if looked.is_pending() { self.poll_engine(cx) } else { looked };
        }
        while !self.ended && self.look_once(canceled.as_mut(), cx).is_ready() {}
        Poll::Ready(())
    }

    fn look_once(
        &mut self,
        canceled: Pin<&mut WaitForCancellationFuture<'_>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        if canceled.poll(cx).is_ready() {
            self.end_from_outside(StopReason::Interrupted, "the run was canceled".into());
            return Poll::Ready(());
        }
        let time_is_up = self.time_is_up(cx);
        if time_is_up && self.deadline().is_some_and(|d| Instant::now() >= d) {
            self.too_long();
            return Poll::Ready(());
        }
        if let Poll::Ready((id, note)) = self.notes.poll(cx) {
            self.tell(id, note);
            return Poll::Ready(());
        }
        if let Some(keeping) = &mut self.keeping
            && let Poll::Ready(Some(kept)) = keeping.writes.poll_join_next(cx)
        {
            self.kept(kept);
            return Poll::Ready(());
        }
        if let Poll::Ready(done) = self.under_way.poll_done(cx) {
            // Handlers may have told something since.
            self.pass_on();
            self.settle(done);
            return Poll::Ready(());
        }
        if time_is_up && self.give_up_late() {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Returns the time at which the run must end. A limit beyond the clock's range is ignored.
    fn deadline(&self) -> Option<Instant> {
        self.limits.timeout.and_then(|limit| self.begun.checked_add(limit))
    }

    /// Returns true if a time limit applies to a request.
    fn is_timed(&self, request: &Request) -> bool {
        self.limits.timeout.is_some() || !request.deadlines.is_empty()
    }

    /// Ends the run, which has used up its time.
    fn too_long(&mut self) {
        let seconds = self.limits.timeout.unwrap_or_default().as_secs_f64();
        let message = format!("the run took longer than the limit of {seconds} s");
        self.end_from_outside(StopReason::TimeLimit, message);
    }

    /// The time that counts for limits.
    fn now(&self) -> Instant {
        self.entered.as_ref().map_or_else(Instant::now, |entered| entered.now(self.begun))
    }

    /// Returns true if a time limit has passed. Otherwise registers a wake-up for the next limit.
    fn time_is_up(&mut self, cx: &mut Context<'_>) -> bool {
        // An engine has its own timers.
        if self.has_engine() {
            return false;
        }
        let Some(next) = self.deadline().into_iter().chain(self.clocks.next()).min() else {
            self.timer = None;
            return false;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(next)));
        if timer.deadline() != next {
            timer.as_mut().reset(next);
        }
        timer.as_mut().poll(cx).is_ready()
    }

    /// Ends the run; nothing continues after it.
    async fn end_of_run(mut self: Box<Self>, result: Result<machine::Value, Box<Failure>>) -> RunReport {
        // A request that is canceled now may still be charged, like one that is late.
        for OpenModel { reserve, provider, spent, .. } in self.under_way.models() {
            self.budget.settle(
                reserve,
                provider.name(),
                *spent,
                most_cost(provider.price().as_ref(), *spent),
            );
        }
        self.under_way.shutdown().await;
        let ended_by_itself =
            !matches!(&result, Err(f) if f.stopped.is_some_and(|s| s.code() == ErrorCode::Cancelled));
        if let Some(tools) = &self.tools {
            tools.close(ended_by_itself).await;
        }
        self.pass_on();
        let (report, written) = self.report(result.map_err(|f| *f));
        if let Some(written) = written {
            // A run whose last line can't be written has ended all the same; resuming it replays it to its
            // end.
            let _ = written.wait().await;
        }
        report
    }

    /// The tools of the run.
    fn tools(&mut self) -> &Tools {
        let Handlers { tools, models, .. } = self.handlers;
        // However they were made, they do not get the keys of these models.
        self.tools.get_or_insert_with(|| Box::new(tools.clone().for_run(models.key_variables())))
    }

    /// Returns the redactor of secrets.
    fn redactor(&self) -> &'a Redactor {
        self.handlers.models.redactor()
    }

    /// Lets the machine work; what can be answered at once is.
    fn poll(&mut self) -> Output {
        // Answers go into the journal first, and earlier answers are looked for.
        let kept = self.handlers.journal.is_some() || self.has_engine();
        if kept || self.handlers.history.is_some() {
            return self.machine.poll();
        }
        let room = self.under_way.len() < self.limits.in_flight.max(1);
        self.machine.poll_with(&mut Immediate {
            handlers: self.handlers,
            stores: &self.stores,
            budget: &mut self.budget,
            progressed: &mut self.progressed,
            events: &mut *self.events,
            free: room && self.queue.as_ref().is_none_or(|q| q.is_empty()),
        })
    }

    /// Begins to work on a request, unless it is too late for that.
    fn take_up(&mut self, id: RequestId, request: Request) {
        self.keep(id, &request);
        let now = Instant::now();
        match self.clocks.asked(id, &request, self.machine.lattice(), now) {
            Some(which) => {
                self.asked(id, &request, "");
                self.answered(id, Answered::Late, now);
                self.respond_with(id, Response::Late(which), Spent::default());
            }
            None => self.queue_up(id, request),
        }
    }

    /// Keeps a request for the journal.
    fn keep(&mut self, id: RequestId, request: &Request) {
        if let Some(keeping) = &mut self.keeping {
            keeping.calls.insert(id, Box::new(request.call.clone()));
        }
    }

    /// Answers a request from the journal, if it has the answer, or ends a run that can't be resumed.
    fn answered_before(&mut self, id: RequestId, request: &Request) -> bool {
        let Some(session) = &self.handlers.journal else { return false };
        let mut session = lock(session);
        let known = session.known(id, &request.call, &self.redactor().for_records());
        let (resumed, unfinished) = (!session.is_replay(), session.unfinished());
        let asks = matches!(request.call, Call::Approve { .. });
        let gone_on = session.is_replay() || asks && session.has_gone_on(id);
        drop(session);
        match known {
            Known::Nothing => false,
            Known::Answered(recorded) if self.is_unproved(id, request, &recorded.response, gone_on) => false,
            Known::Answered(recorded) => {
                self.replay(id, request, *recorded, resumed);
                true
            }
            Known::Wrong(why) => {
                self.asked(id, request, "");
                self.end(id, StopReason::Journal, why);
                true
            }
            Known::Begun => {
                let Call::Tool { tool, .. } = &request.call else { return false };
                if tool.effect != EffectClass::Write || self.handlers.tools.is_idempotent(tool) {
                    return false;
                }
                self.is_given_up(id, request, tool, unfinished)
            }
        }
    }

    /// Sees to a call that was under way when the run was interrupted; returns false if it is made again.
    fn is_given_up(
        &mut self,
        id: RequestId,
        request: &Request,
        tool: &ToolDecl,
        unfinished: Unfinished,
    ) -> bool {
        let what = format!(
            "the run was interrupted while the tool `{}` was at work; whether it has done what it was called for is not known",
            tool.name
        );
        match unfinished {
            Unfinished::Retry => return false,
            Unfinished::Fail => {
                self.asked(id, request, "");
                self.keep(id, request);
                self.tool_answered(id, Err(ToolError::Failed(what)).into(), Instant::now());
            }
            Unfinished::Ask => {
                self.asked(id, request, "");
                let help = "check its effects, then resume with `--unfinished retry` to call it again or with `--unfinished fail` to fail the call; a \
                     handler with `idempotent = true` is called again with the same idempotency key";
                self.end(id, StopReason::Unfinished, format!("{what} (help: {help})"));
            }
        }
        true
    }

    /// The answer of an earlier run for the same request, if it is reused.
    fn reused(&self, id: RequestId, request: &Request) -> Option<Response> {
        let mut history = history(self.handlers)?;
        let (labels, question) = (self.labels(request), self.question(request));
        let asked = (&request.call, request.span);
        history.reuse(asked, &labels, question.as_deref(), self.machine.is_for_set(id))
    }

    /// Answers a request as an earlier run for the same request was answered, if that answer is reused.
    fn answered_earlier(&mut self, id: RequestId, request: &Request) -> bool {
        let Some(response) = self.reused(id, request) else { return false };
        let begun = Instant::now();
        self.keep(id, request);
        self.emit_asked(id, request, "", true);
        let stated = self.stated_in(&response);
        self.answered_as(id, answered_with(&response, None), begun, stated);
        self.machine.made_earlier(request);
        self.respond(id, response, begun);
        true
    }

    /// Ends the run at a call for which there is no room in `at_most`, unless an earlier run made it.
    fn is_too_much(&mut self, id: RequestId, request: &Request) -> bool {
        let is_too_much = request.counts == CallCount::Repeated;
        if is_too_much {
            self.machine.no_further(id);
        }
        is_too_much
    }

    fn labels(&self, request: &Request) -> RequestLabels {
        let data = |label| self.machine.lattice().data_of(label);
        RequestLabels {
            channel: data(request.channel),
            answer: data(request.answer),
            inputs: data(request.inputs),
        }
    }

    /// The labels of the arguments that a person is asked about.
    fn question(&self, request: &Request) -> Option<Vec<Data>> {
        let Call::Approve { labels, .. } = &request.call else { return None };
        Some(labels.iter().map(|l| self.machine.lattice().data_of(*l)).collect())
    }

    /// Returns the description of a call that its approver sees.
    fn approval(
        &self,
        tool: &ToolDecl,
        args: &[(Name, Data)],
        (labels, control): (&[Label], Label),
        channel: Label,
    ) -> Approval {
        // Questions may wait in the journal.
        let redactor = self.redactor().for_records();
        let explainer = Explainer { lattice: self.machine.lattice(), redactor: &redactor };
        let arg = |((name, value), label): (&(Name, Data), _)| ApprovalArg {
            name: name.clone(),
            ty: tool.params.iter().find(|p| p.name == *name).map_or(Type::Dyn, |p| p.ty.clone()),
            value: redactor.data(&py::shown(value)),
            label: explainer.lattice.data_of(label),
            chains: explainer.chains(label),
        };
        let args = args.iter().zip(labels.iter().copied()).map(arg).collect();
        let mut lattice = explainer.lattice.clone();
        let is_decided = lattice.is_untrusted(control);
        let channel = lattice.data_of(channel);
        Approval { tool: tool.name.clone(), args, is_decided, channel }
    }

    /// Returns true if an approval in the journal is unproved: the call was not made, and no approver has
    /// signed the answer. Anyone who can write the journal can write such an answer, so the question is asked
    /// again.
    fn is_unproved(&self, id: RequestId, request: &Request, response: &Response, gone_on: bool) -> bool {
        let Call::Approve { tool, args, labels, control } = &request.call else { return false };
        let approved = match response {
            Response::Approve(Ok(())) => None,
            Response::Edited { args, label } => Some(Edit { args: args.clone(), label: label.clone() }),
            _ => return false,
        };
        let signed = |desk: &ApprovalDesk| {
            desk.signed(&self.run, id, &self.approval(tool, args, (labels, *control), request.channel))
        };
        !gone_on && self.handlers.desk.as_ref().and_then(signed) != Some(approved)
    }

    /// Answers as the journal says.
    fn replay(&mut self, id: RequestId, request: &Request, recorded: Recorded, resumed: bool) {
        let was_begun = recorded.was_begun();
        let Recorded { response, words, by, model, tokens, usd, elapsed, .. } = recorded;
        if let (Call::Model { messages, .. }, Response::Model(Ok(reply)), Some(words)) =
            (&request.call, &response, words)
        {
            self.said.get_or_insert_default().keep(messages, reply, words.into());
        }
        // An answer that was reused then is reused again: it is not one of this run.
        let reused = self.reused(id, request).is_some();
        let counts = was_begun && !reused;
        match reused {
            true => {
                self.machine.made_earlier(request);
                self.emit_asked(id, request, &model, true);
            }
            false => self.tell_asked(id, request, &model, true),
        }
        let what = answered_with(&response, by);
        let stated = self.stated_in(&response);
        match &request.call {
            Call::Model { params, .. } if counts => {
                self.budget.replayed_model(params.as_deref(), &model, tokens, usd.as_ref());
            }
            Call::Tool { .. } if counts => self.budget.replayed_tool(),
            // Data that the previous process kept in memory are lost.
            Call::Remember { store, key, value } if resumed && self.stores.is_in_process(store) => {
                if matches!(response, Response::Remember(Ok(()))) {
                    let _ = self.stores.remember(store, *key, value.clone());
                }
            }
            _ => {}
        }
        let finish = match &what {
            Answered::Reply(reply) => Finish::of(reply),
            _ => Finish::Other,
        };
        let importance = self.importance(id, &what);
        self.emit(Event::Answered { id, what, tokens, usd, finish, elapsed, stated, importance });
        self.note_answer(id, &response);
        self.machine.handle(id, response);
    }

    /// Notes an answer for runs that follow.
    fn note_answer(&self, id: RequestId, response: &Response) {
        if let Some(mut history) = history(self.handlers) {
            history.answered(id, response);
        }
    }

    /// Ends the run at a request.
    fn end(&mut self, id: RequestId, reason: StopReason, message: String) {
        let message = self.redactor().owned(message);
        self.answered(id, Answered::Stopped(message.clone()), Instant::now());
        self.machine.handle(id, Response::Stop(Stop { reason, message }));
    }

    /// Gives up what is late by now; whether there was anything.
    fn give_up_late(&mut self) -> bool {
        let now = self.now();
        let mut any = false;
        while let Some((id, which)) = self.clocks.late(now) {
            any = true;
            let (mut sent, mut cost) = (true, Spent::default());
            match self.under_way.give_up(id) {
                Some(OpenRequest { begun, what: RequestKind::Model(model), text, .. }) => {
                    let OpenModel { reserve, provider, spent, .. } = model;
                    let most = most_cost(provider.price().as_ref(), spent);
                    let usd = self.budget.settle(&reserve, provider.name(), spent, most);
                    let (what, elapsed) = (Answered::Late, begun.elapsed());
                    (cost.model, cost.tokens) = (provider.name().to_string(), spent);
                    (cost.usd, cost.elapsed) = (usd.clone(), elapsed);
                    self.end_of_text(id, text);
                    let finish = Finish::Other;
                    let (stated, importance) = (None, Importance::Normal);
                    self.emit(Event::Answered {
                        id,
                        what,
                        tokens: spent,
                        usd,
                        finish,
                        elapsed,
                        stated,
                        importance,
                    });
                }
                Some(open) => {
                    cost.elapsed = open.begun.elapsed();
                    self.answered(id, Answered::Late, open.begun);
                }
                None => {
                    sent = false;
                    if let Some(queue) = &mut self.queue
                        && let Some(at) = queue.iter().position(|(queued, _)| *queued == id)
                        && let Some((_, request)) = queue.remove(at)
                    {
                        self.asked(id, &request, "");
                        self.answered(id, Answered::Late, Instant::now());
                        sent = true;
                    }
                }
            }
            match self.has_engine() {
                true => self.late(id, which, sent),
                false => self.respond_with(id, Response::Late(which), cost),
            }
        }
        if any {
            self.begin_all();
        }
        any
    }

    /// Gives the machine a response.
    fn respond(&mut self, id: RequestId, response: Response, begun: Instant) {
        self.respond_with(id, response, Spent { elapsed: begun.elapsed(), ..Spent::default() });
    }

    /// Gives the machine a response, once it is in the journal.
    fn respond_with(&mut self, id: RequestId, response: Response, spent: Spent) {
        let retries = self.retries.as_mut().and_then(|retries| retries.remove(&id));
        let spent = Spent { retries, ..spent };
        if self.has_engine() {
            if let Some(response) = self.hand_over(id, response, &spent) {
                self.clocks.answered(id, self.now());
                self.machine.handle(id, response);
            }
            return;
        }
        self.clocks.answered(id, Instant::now());
        self.note_answer(id, &response);
        let redactor = &self.redactor().for_records();
        if let Some(session) = &self.handlers.journal
            && let Some(keeping) = &mut self.keeping
            && let Some(call) = keeping.calls.remove(id)
        {
            let written = lock(session).answered(id, *call, &response, spent, redactor);
            if let Some(written) = written {
                keeping.writes.spawn(async move { (id, response, written.wait().await) });
                return;
            }
        }
        self.machine.handle(id, response);
    }

    /// An answer is in the journal, or can't be written.
    fn kept(&mut self, kept: Result<StoredAnswer, JoinError>) {
        match kept {
            Ok((id, response, Ok(()))) => self.machine.handle(id, response),
            Ok((_, _, Err(message))) => {
                self.machine.cancel(Stop { reason: StopReason::Journal, message });
            }
            // It only waits, so it does not panic and is never aborted.
            Err(e) => self.machine.cancel(Stop { reason: StopReason::Journal, message: e.to_string() }),
        }
    }

    /// Ends the run, whatever it does.
    fn end_from_outside(&mut self, reason: StopReason, message: String) {
        self.ended = true;
        self.machine.cancel(Stop { reason, message });
    }

    /// Begins every queued request that may begin, the earlier first. A model call that has to wait for the
    /// budget keeps later ones waiting, so that who gets what is left does not depend on sizes.
    fn begin_all(&mut self) {
        let mut models_wait = false;
        for _ in 0..self.queue.as_ref().map_or(0, |q| q.len()) {
            let Some((id, request)) = self.queue.as_mut().and_then(|q| q.pop_front()) else { break };
            let is_model = matches!(request.call, Call::Model { .. });
            let begun = if is_model && models_wait { StartResult::NotYet } else { self.begin(id, &request) };
            if let StartResult::NotYet = begun {
                models_wait |= is_model;
                // All are polled, so the remaining ones keep their order.
                self.queue.get_or_insert_default().push_back((id, request));
            }
        }
    }

    fn begin(&mut self, id: RequestId, request: &Request) -> StartResult {
        let begun = Instant::now();
        let free = self.under_way.len() < self.limits.in_flight.max(1);
        match &request.call {
            Call::Model { messages, params, tools, attempt } => {
                let named = params.as_ref().and_then(|p| p.model.as_deref());
                let may_see = |model: &Candidate| self.machine.may_see(model, request.channel);
                let provider = match self.handlers.models.resolve_for(params.as_deref(), may_see) {
                    Ok(Routed::To(provider)) => provider,
                    Ok(Routed::Uncleared(models)) => {
                        self.asked(id, request, named.unwrap_or_default());
                        self.answered(id, Answered::Failed(NOT_CLEARED.into()), begun);
                        self.respond(id, Response::Uncleared(models), begun);
                        return StartResult::Begun;
                    }
                    Err(e) => {
                        self.asked(id, request, named.unwrap_or_default());
                        self.end(id, StopReason::Configuration, e.one_line());
                        return StartResult::Begun;
                    }
                };
                if !free {
                    return StartResult::NotYet;
                }
                let price = provider.price();
                let mut asked = ModelCall {
                    messages: messages.clone(),
                    params: params.clone(),
                    tools: tools.clone(),
                    max_output: None,
                    attempt: *attempt,
                    place: request.place.path(),
                    said: self.said.as_ref().map_or_else(Arc::default, |said| said.of(messages)),
                };
                let (reserve, most) = match self.budget.model_call(
                    &asked,
                    provider.name(),
                    price.as_ref(),
                    provider.most_attempts(),
                ) {
                    Verdict::Go(reserve, most) => (reserve, most),
                    Verdict::Wait => return StartResult::NotYet,
                    Verdict::Stop(message) => {
                        self.asked(id, request, provider.name());
                        self.stop(id, message, begun);
                        return StartResult::Begun;
                    }
                };
                asked.max_output = most;
                let input = asked.input_bound().div_ceil(4);
                self.asked(id, request, provider.name());
                let progress = Progress::to(id, self.notes.clone(), self.handlers.stream);
                match provider.clone().ask(asked, progress) {
                    Work::Now(answer) => {
                        self.model_answered(id, answer, &reserve, &*provider, messages, begun);
                    }
                    Work::Later(answer) => {
                        let spent = Tokens::new(input, 0);
                        let asked = messages.clone();
                        // See below, of tools.
                        let alone = self.is_timed(request) && provider.may_block();
                        let what = RequestKind::Model(OpenModel { reserve, provider, asked, spent });
                        let work = Portable::Model(answer);
                        if alone {
                            self.under_way.spawn(id, begun, what, work);
                        } else {
                            self.under_way.begin(id, begun, what, work);
                        }
                    }
                }
            }
            Call::Tool { tool, args } => {
                if !free {
                    return StartResult::NotYet;
                }
                self.asked(id, request, "");
                let prepared = match self.tools().prepare(tool) {
                    Ok(prepared) => prepared,
                    Err(e) => {
                        self.end(id, StopReason::Configuration, e.one_line());
                        return StartResult::Begun;
                    }
                };
                if let Err(message) = self.budget.tool_call() {
                    self.stop(id, message, begun);
                    return StartResult::Begun;
                }
                let key = request.call_id.map(|call| self.key(&tool.name, call));
                let context = CallContext { key, person: self.respondent(id, request, tool) };
                if context.key.is_some()
                    && let Some(session) = &self.handlers.journal
                    && let Some(noted) =
                        lock(session).begun(id, &request.call, &self.redactor().for_records())
                {
                    let (tools, tool, args) = (self.tools().clone(), tool.clone(), args.clone());
                    self.under_way.spawn(id, begun, RequestKind::Tool, async move {
                        if let Err(why) = noted.wait().await {
                            return Completion::NotNoted(why);
                        }
                        Completion::Tool(Box::new(match tools.call(prepared, &tool, args, context) {
                            Work::Now(result) => result,
                            Work::Later(result) => result.await,
                        }))
                    });
                    return StartResult::Begun;
                }
                match self.tools().call(prepared, tool, args.clone(), context) {
                    Work::Now(result) => self.tool_answered(id, result, begun),
                    Work::Later(result) => {
                        let work = Portable::Tool(result);
                        if self.is_timed(request) && self.handlers.tools.is_custom(tool) {
                            // It may keep its thread to itself, and a limit of time must hold then, too.
                            self.under_way.spawn(id, begun, RequestKind::Tool, work);
                        } else {
                            self.under_way.begin(id, begun, RequestKind::Tool, work);
                        }
                    }
                }
            }
            Call::Approve { tool, args, labels, control } => {
                let (approver, desk) = (self.handlers.approver.clone(), self.handlers.desk.clone());
                let is_attended = approver.is_some() || desk.is_some();
                if is_attended && !free {
                    return StartResult::NotYet;
                }
                let approval = self.approval(tool, args, (labels, *control), request.channel);
                // Who waits for this event must find the question kept.
                let kept = desk.as_ref().map(|desk| {
                    let question = desk.put(&self.run, id, &approval)?;
                    Ok::<_, String>((desk.take(&question), question))
                });
                let recorded = matches!(&kept, Some(Ok((Some(_), _))));
                self.tell_asked(id, request, "", recorded);
                let (approver, desk, kept) = match (approver, desk, kept) {
                    (approver, Some(desk), Some(kept)) => (approver, desk, kept),
                    (Some(approver), ..) => {
                        let verdict = approver.ask(approval);
                        let asked = async { Completion::Approval(verdict.await) };
                        self.under_way.spawn(id, begun, RequestKind::Approval, asked);
                        return StartResult::Begun;
                    }
                    (None, ..) => {
                        self.unattended(id, begun);
                        return StartResult::Begun;
                    }
                };
                let (verdict, question) = match kept {
                    Ok(kept) => kept,
                    Err(why) => {
                        self.end(id, StopReason::Journal, why);
                        return StartResult::Begun;
                    }
                };
                if let Some(verdict) = verdict {
                    self.approved(id, verdict, begun);
                } else if let Some(approver) = approver {
                    let here = approver.ask(approval);
                    self.under_way.spawn(id, begun, RequestKind::Approval, async move {
                        Completion::Approval(tokio::select! {
                            verdict = desk.wait(&question) => verdict,
                            verdict = here => {
                                desk.note(&question);
                                verdict
                            }
                        })
                    });
                } else if desk.stays() {
                    self.under_way.spawn(id, begun, RequestKind::Approval, async move {
                        Completion::Approval(desk.wait(&question).await)
                    });
                } else {
                    let message = format!(
                        "the run waits for approval of a call of `{}` (help: `entail approve {}`, then resume it)",
                        tool.name, self.run
                    );
                    self.end(id, StopReason::Approval, message);
                }
            }
            Call::Recall { store, key } if self.stores.is_in_process(store) => {
                self.asked(id, request, "");
                let result = self.stores.recall(store, *key);
                self.recalled(id, result, begun);
            }
            Call::Remember { store, key, value } if self.stores.is_in_process(store) => {
                self.asked(id, request, "");
                let result = self.stores.remember(store, *key, value.clone());
                self.remembered(id, result, begun);
            }
            // Others wait for a file or a server, and must not keep everybody waiting.
            Call::Recall { .. } | Call::Remember { .. } if !free => return StartResult::NotYet,
            Call::Recall { store, key } => {
                self.asked(id, request, "");
                let (stores, store, key) = (self.stores.clone(), store.clone(), *key);
                let work = aside(move || stores.recall(&store, key));
                self.under_way
                    .spawn(id, begun, RequestKind::Recall, async { Completion::Recall(work.await) });
            }
            Call::Remember { store, key, value } => {
                self.asked(id, request, "");
                let (stores, store, key) = (self.stores.clone(), store.clone(), *key);
                let value = value.clone();
                let work = aside(move || stores.remember(&store, key, value));
                self.under_way
                    .spawn(id, begun, RequestKind::Remember, async { Completion::Remember(work.await) });
            }
            Call::Sample { probability, draw } => {
                self.asked(id, request, "");
                let sample = sample(self.handlers.seed, *draw, probability);
                self.answered(id, Answered::Sample(sample), begun);
                self.respond(id, Response::Sample(sample), begun);
            }
        }
        StartResult::Begun
    }

    /// The idempotency key of a call.
    fn key(&self, tool: &str, call: u64) -> String {
        match &self.entered {
            Some(entered) => Session::key(&entered.scope(), tool, call),
            None => Session::key(&self.run, tool, call),
        }
    }

    /// Removes a request that was completed, or a canceled one that has ended.
    fn settle(&mut self, done: Option<(RequestId, Option<Completion>)>) {
        let Some((id, done)) = done else { return self.begin_all() };
        let Some(open) = self.under_way.remove(id) else { return self.begin_all() };
        let OpenRequest { begun, what, text, .. } = open;
        // A handler of the embedding program panicked; ours do not.
        let crashed = "the handler crashed";
        match (what, done) {
            (RequestKind::Model(OpenModel { reserve, provider, asked, .. }), done) => {
                let answer = match done {
                    Some(Completion::Model(answer)) => *answer,
                    _ => Answer::failed(ModelError::new(crashed)),
                };
                self.end_of_text(id, text);
                self.model_answered(id, answer, &reserve, &*provider, &asked, begun);
            }
            (RequestKind::Tool, Some(Completion::NotNoted(why))) => self.end(id, StopReason::Journal, why),
            (RequestKind::Tool, Some(Completion::Tool(result))) => self.tool_answered(id, *result, begun),
            (RequestKind::Tool, _) => {
                self.tool_answered(id, Err(ToolError::Failed(crashed.to_string())).into(), begun);
            }
            (RequestKind::Approval, Some(Completion::Approval(verdict))) => self.approved(id, verdict, begun),
            (RequestKind::Approval, _) => self.approved(id, Decided::refused(crashed), begun),
            (RequestKind::Recall, Some(Completion::Recall(result))) => self.recalled(id, result, begun),
            (RequestKind::Recall, _) => self.recalled(id, Err(crashed.to_string()), begun),
            (RequestKind::Remember, Some(Completion::Remember(result))) => self.remembered(id, result, begun),
            (RequestKind::Remember, _) => self.remembered(id, Err(crashed.to_string()), begun),
        }
        self.begin_all();
    }

    fn model_answered(
        &mut self,
        id: RequestId,
        answer: Answer,
        reserve: &Reserve,
        provider: &dyn Provider,
        asked: &Messages,
        begun: Instant,
    ) {
        let Answer { result, tokens, finish, by, words } = answer;
        let (model, usd) = match by {
            Some((name, usd)) => (name, usd),
            // A reply without a token count is not free.
            None if result.is_ok() => {
                (provider.name().to_string(), provider.price().map(|price| price.of(tokens)))
            }
            None => (provider.name().to_string(), cost(provider.price().as_ref(), tokens)),
        };
        let usd = self.budget.settle(reserve, &model, tokens, usd);
        let permanent = result.as_ref().is_err_and(|e| e.kind.is_permanent());
        let result = match result {
            Ok(reply) => Ok(self.redactor().reply(&reply)),
            Err(e) => Err(self.redactor().owned(e.to_string())),
        };
        let what = match &result {
            Ok(reply) => Answered::Reply(reply.clone()),
            Err(e) => Answered::Failed(e.clone()),
        };
        let words = words.map(|mut words| {
            self.redactor().json(Arc::make_mut(&mut words));
            words
        });
        if let (Ok(reply), Some(words)) = (&result, &words) {
            self.said.get_or_insert_default().keep(asked, reply, words.clone());
        }
        let elapsed = begun.elapsed();
        self.emit(Event::Answered {
            id,
            what,
            tokens,
            usd: usd.clone(),
            finish,
            elapsed,
            stated: None,
            importance: Importance::Normal,
        });
        let response = match result {
            Err(why) if permanent => Response::Permanent(why),
            result => Response::Model(result),
        };
        self.respond_with(id, response, Spent { model, tokens, usd, elapsed, words, ..Spent::default() });
    }

    fn tool_answered(&mut self, id: RequestId, answer: ToolAnswer, begun: Instant) {
        let ToolAnswer { result, label, person } = answer;
        let is_late = matches!(result, Err(ToolError::Late(_)));
        let result = match result {
            Ok(data) => Ok(self.redactor().data(&data)),
            Err(ToolError::Failed(why) | ToolError::Late(why)) => Err(self.redactor().owned(why)),
            Err(ToolError::Configuration(e)) => {
                if let Some(session) = &self.handlers.journal {
                    // The end of the run is written after it, and waited for.
                    let _ = lock(session).not_called(id);
                }
                return self.end(id, StopReason::Configuration, e.one_line());
            }
        };
        let what = match &result {
            Ok(data) => Answered::Data(data.clone()),
            Err(e) => Answered::Failed(e.clone()),
        };
        let label = label.map(|said| self.machine.lattice().in_terms(&said));
        // The result may tell what a person has answered to the server.
        let label = match (label, person) {
            (Some(said), Some(person)) => Some(self.joined(&said, &person)),
            (label, person) => label.or(person),
        };
        let (response, stated) = match (label, result) {
            // Nothing has answered that could state a label.
            (_, Err(why)) if is_late => (Response::ToolTimeout(why), None),
            (Some(said), result) => {
                let stated = self.stated(&said);
                (Response::LabeledTool(result, said), Some(stated))
            }
            (None, result) => (Response::Tool(result), None),
        };
        self.answered_as(id, what, begun, stated);
        self.respond(id, response, begun);
    }

    fn recalled(&mut self, id: RequestId, result: Result<Option<Data>, String>, begun: Instant) {
        let what = match &result {
            Ok(Some(data)) => Answered::Data(self.redactor().data(data)),
            Ok(None) => Answered::Nothing,
            Err(e) => Answered::Failed(e.clone()),
        };
        self.answered(id, what, begun);
        self.respond(id, Response::Recall(result), begun);
    }

    fn remembered(&mut self, id: RequestId, result: Result<(), String>, begun: Instant) {
        let what = result.clone().map_or_else(Answered::Failed, |()| Answered::Nothing);
        self.answered(id, what, begun);
        self.respond(id, Response::Remember(result), begun);
    }

    fn approved(&mut self, id: RequestId, Decided { result, by }: Decided, begun: Instant) {
        let response = self.decided(id, result, by.clone(), begun);
        let spent = Spent { elapsed: begun.elapsed(), by, ..Spent::default() };
        self.respond_with(id, response, spent);
    }

    /// Tells of a decision, and makes the response of it.
    fn decided(
        &mut self,
        id: RequestId,
        result: Result<Option<Edit>, String>,
        by: Option<Decider>,
        begun: Instant,
    ) -> Response {
        let response = match result {
            Err(why) => Response::Approve(Err(self.redactor().owned(why))),
            Ok(None) => Response::Approve(Ok(())),
            Ok(Some(Edit { args, label })) => Response::Edited { args, label },
        };
        let stated = self.stated_in(&response);
        self.answered_as(id, answered_with(&response, by), begun, stated);
        response
    }

    /// Refuses a call because there is no approver. A journal records the refusal, and a resumed run asks
    /// again if it had not proceeded beyond it.
    fn unattended(&mut self, id: RequestId, begun: Instant) {
        self.answered(id, Answered::Failed(NOBODY.into()), begun);
        self.respond(id, Response::Unattended, begun);
    }

    fn stop(&mut self, id: RequestId, message: String, begun: Instant) {
        self.answered(id, Answered::Stopped(message.clone()), begun);
        self.respond(id, Response::Stop(Stop { reason: StopReason::Budget, message }), begun);
    }

    fn answered(&mut self, id: RequestId, what: Answered, begun: Instant) {
        self.answered_as(id, what, begun, None);
    }

    /// Tells of an answer for which a label is stated.
    fn answered_as(&mut self, id: RequestId, what: Answered, begun: Instant, stated: Option<Data>) {
        let (tokens, finish) = (Tokens::default(), Finish::Other);
        let (elapsed, importance) = (begun.elapsed(), self.importance(id, &what));
        self.emit(Event::Answered { id, what, tokens, usd: None, finish, elapsed, stated, importance });
    }

    /// Importance of a request with its answer.
    fn importance(&mut self, id: RequestId, what: &Answered) -> Importance {
        match self.minor.as_mut().is_some_and(|minor| minor.remove(&id)) {
            true => Importance::Minor.answered(what),
            false => Importance::Normal,
        }
    }

    /// The label that an answer states, if it does.
    fn stated_in(&self, response: &Response) -> Option<Data> {
        match response {
            Response::LabeledTool(_, said) | Response::Edited { label: said, .. } => Some(self.stated(said)),
            _ => None,
        }
    }

    /// The label of data that depend on data of two labels.
    fn joined(&self, a: &LabelSpec, b: &LabelSpec) -> LabelSpec {
        let mut lattice = self.machine.lattice().clone();
        let (a, b) = (lattice.resolve_or_top(a), lattice.resolve_or_top(b));
        let joined = lattice.join(a, b);
        LabelSpec::Exact(lattice.data_of(joined))
    }

    /// The person who answers questions of a tool's server while it is called, if there is one.
    fn respondent(&self, id: RequestId, request: &Request, tool: &ToolDecl) -> Option<Arc<Respondent>> {
        let approver = self.handlers.approver.as_ref().filter(|a| a.is_answering())?;
        if !self.handlers.tools.is_of_server(tool) {
            return None;
        }
        // The server knows the arguments, and answers with what it knows.
        let RequestLabels { channel, answer, inputs } = self.labels(request);
        Some(Arc::new(Respondent {
            approver: approver.clone(),
            id,
            call: journal::shown_call(&request.call),
            tool: tool.name.clone(),
            labels: vec![channel, answer, inputs],
            journal: self.handlers.journal.as_ref().map_or_else(Weak::new, Arc::downgrade),
            redactor: self.redactor().for_records(),
            asked: Mutex::default(),
        }))
    }

    /// A label that an answer states, as the machine reads it.
    fn stated(&self, said: &LabelSpec) -> Data {
        stated(&self.machine, said)
    }

    fn asked(&mut self, id: RequestId, request: &Request, model: &str) {
        self.tell_asked(id, request, model, false);
    }

    /// `recorded`: the answer stands in the journal.
    fn tell_asked(&mut self, id: RequestId, request: &Request, model: &str, recorded: bool) {
        if matches!(request.call, Call::Approve { .. }) {
            self.budget.question();
        }
        if let Some(mut history) = history(self.handlers) {
            let (labels, question) = (self.labels(request), self.question(request));
            let asked = (&request.call, request.span);
            history.asked(id, asked, &labels, question, self.machine.is_for_set(id));
        }
        self.emit_asked(id, request, model, recorded);
    }

    fn emit_asked(&mut self, id: RequestId, request: &Request, model: &str, recorded: bool) {
        let event = Event::asked(id, request, self.machine.lattice(), self.redactor(), model, recorded);
        if event.importance().is_minor() {
            self.minor.get_or_insert_default().insert(id);
        }
        self.emit(event);
    }

    fn tell(&mut self, id: RequestId, note: HandlerNote) {
        let event = match note {
            HandlerNote::Retry { number, wait, cause } => {
                let cause = self.redactor().owned(cause);
                if let Some(open) = self.under_way.get_mut(id) {
                    open.text = None;
                    // Of an answer with a secret a record keeps nothing, so there is none beside it.
                    let kept = self.redactor().for_records().owned(cause.clone());
                    self.retries.get_or_insert_default().entry(id).or_default().add(wait, &kept);
                }
                Event::Retry { id, number, wait, cause }
            }
            HandlerNote::Growing { output_tokens } => {
                if let Some(OpenRequest { what: RequestKind::Model(model), .. }) = self.under_way.get_mut(id)
                {
                    model.spent.output = model.spent.output.max(output_tokens);
                }
                Event::Growing { id, output_tokens }
            }
            HandlerNote::Text(piece) => {
                let redactor = self.redactor();
                // Events after the answer are dropped.
                let Some(open) = self.under_way.get_mut(id) else { return };
                let text = open.text.get_or_insert_default().push(redactor, &piece);
                if text.is_empty() {
                    return;
                }
                Event::Text { id, text }
            }
        };
        self.emit(event);
    }

    /// Tells what was held back of a reply, because it could have been the beginning of a secret.
    fn end_of_text(&mut self, id: RequestId, text: Option<Box<RedactedStream>>) {
        if let Some(text) = text.map(|t| t.end(self.redactor())).filter(|t| !t.is_empty()) {
            self.emit(Event::Text { id, text });
        }
    }

    /// Tells what has been noted so far.
    fn pass_on(&mut self) {
        while let Some((id, note)) = self.notes.take() {
            self.tell(id, note);
        }
    }

    fn emit(&mut self, event: Event) {
        self.progressed.note(&event);
        (self.events)(event);
    }

    /// Returns the report of the run, and the future that completes once the run's end is in the journal.
    fn report(mut self, result: Result<machine::Value, Failure>) -> (RunReport, Option<Written>) {
        let used_up = match &result {
            Err(f) if f.code == ErrorCode::Budget => self.budget.used_up(),
            Err(f) if f.code == ErrorCode::Fuel => Some((Resource::Fuel, None)),
            Err(f) if f.stopped == Some(StopReason::TimeLimit) => Some((Resource::Time, None)),
            _ => None,
        };
        let partial = used_up.map(|budget| std::mem::take(&mut self.progressed).partial(budget));
        let redactor = self.handlers.models.redactor();
        let report = RunReport {
            run: self.run.into(),
            partial,
            usage: self.budget.usage,
            elapsed: self.begun.elapsed(),
            ..RunReport::of(&mut self.machine, redactor, result)
        };
        let journal = self.handlers.journal.as_ref().filter(|_| !self.handlers.continues);
        let written = journal.and_then(|session| {
            let (status, outcome) = run_end(&report.result, redactor);
            lock(session).ended(status, outcome)
        });
        if let Some(mut history) = history(self.handlers) {
            history.end(self.machine.counted_calls(), self.machine.fuel_used());
        }
        (report, written)
    }
}

/// The history of the request that a run is for, if it has one.
fn history(handlers: &Handlers) -> Option<MutexGuard<'_, History>> {
    // It is only ever added to, so a panic while the lock was held leaves nothing half-done that matters.
    handlers.history.as_ref().map(|h| h.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A label that an answer states, as a label value. One that the lattice does not have is the highest.
pub(crate) fn stated(machine: &Machine, said: &LabelSpec) -> Data {
    let mut lattice = machine.lattice().clone();
    let label = lattice.resolve_or_top(said);
    lattice.data_of(label)
}

/// The event for a recorded response; `by` decided, if it is one to a question.
pub(crate) fn answered_with(response: &Response, by: Option<Decider>) -> Answered {
    match response {
        Response::Model(Ok(reply)) => Answered::Reply(reply.clone()),
        Response::Tool(Ok(data)) | Response::LabeledTool(Ok(data), _) | Response::Recall(Ok(Some(data))) => {
            Answered::Data(data.clone())
        }
        Response::Permanent(e)
        | Response::Model(Err(e))
        | Response::Tool(Err(e))
        | Response::ToolTimeout(e)
        | Response::LabeledTool(Err(e), _)
        | Response::Approve(Err(e))
        | Response::Recall(Err(e))
        | Response::Remember(Err(e)) => Answered::Failed(e.clone()),
        Response::Uncleared(_) => Answered::Failed(NOT_CLEARED.into()),
        Response::Unattended => Answered::Failed(NOBODY.into()),
        Response::Late(_) => Answered::Late,
        Response::Approve(Ok(())) => Answered::Approved(by),
        Response::Edited { args, .. } => Answered::Edited { by, args: args.clone() },
        _ => Answered::Nothing,
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    // A panic while the lock was held can leave only the database in mid-change, and that is transactional.
    session.lock().unwrap_or_else(PoisonError::into_inner)
}
