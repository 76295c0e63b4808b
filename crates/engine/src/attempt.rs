//! One attempt at a run: the protocol of the engine, as the runtime's [`Engine`].
//!
//! Entry point: [`Attempt::open`].
//!
//! Invariant: a completion is taken only when the run polls, and one at a time, in the order of the engine's
//! journal. So every attempt issues its commands in one order.
//! Invariant: nothing is begun before all completions that the engine has are taken. So no attempt begins
//! what an earlier one was answered.

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use machine::RequestId;
use restate_sdk_shared_core::{
    AwaitResponse, CoreVM, Error as VmError, NonEmptyValue, NotificationHandle, PayloadOptions, RetryPolicy,
    RunExitResult, TerminalFailure, UnresolvedFuture, VM, VMResult, Value,
};
use runtime::{Engine, EngineEvent, EngineStep, StepKind};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Sleep, sleep};
use tokio_util::sync::CancellationToken;

/// Bytes of a record that the engine takes by default, with room for what is around it.
const MAX_RECORD: usize = 31 << 20;

/// Time for which an attempt waits for a person or a timer before it ends. The engine begins another one when
/// that has come.
const IDLE: Duration = Duration::from_secs(5);

/// The attempt is over: the engine has gone, suspends it, or has refused a command.
#[derive(Debug)]
pub(crate) struct Over;

/// Meaning of a completion that is waited for.
#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// A step, or the text of a question.
    Step(RequestId),
    /// That a step begins.
    Intent(RequestId),
    /// The answer to a question.
    Answer(RequestId),
    /// The end of the time in which a question can be answered.
    Expiry(RequestId),
    /// A limit of time.
    Timer(i64),
}

/// State of the beginning of a [`StepKind::Once`] step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Intent {
    /// It need not be.
    None,
    /// It is not yet.
    Pending,
    /// It is, by this attempt.
    Kept,
    /// It is, by an earlier one.
    Earlier,
}

/// A step that is not answered.
#[derive(Debug)]
struct OpenStep {
    kind: StepKind,
    handle: NotificationHandle,
    intent: Intent,
    /// The engine has said that it is to be executed.
    is_due: bool,
    /// It is under way in this process.
    is_working: bool,
    /// Text of a question that is durable, and its token.
    question: Option<(String, String)>,
}

/// An attempt at a run.
pub(crate) struct Attempt {
    vm: CoreVM,
    input: Option<Incoming>,
    output: UnboundedSender<Bytes>,
    over: CancellationToken,
    /// The caller's name for the run.
    pub(crate) key: String,
    scope: String,
    created: i64,
    steps: HashMap<RequestId, OpenStep>,
    /// In the order in which they were made.
    awaited: BTreeMap<NotificationHandle, Awaited>,
    ready: VecDeque<EngineEvent>,
    canceled: bool,
    /// Runs while the attempt only waits for the engine.
    idle: Option<Pin<Box<Sleep>>>,
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Attempt {
    /// Opens an attempt: reads what the engine has of the run. Returns the input of the invocation with it.
    ///
    /// # Errors
    /// The engine has gone.
    pub(crate) async fn open(
        vm: CoreVM,
        input: Incoming,
        output: UnboundedSender<Bytes>,
    ) -> Result<(Attempt, Bytes), Over> {
        let mut attempt = Attempt {
            vm,
            input: Some(input),
            output,
            over: CancellationToken::new(),
            key: String::new(),
            scope: String::new(),
            created: 0,
            steps: HashMap::new(),
            awaited: BTreeMap::new(),
            ready: VecDeque::new(),
            canceled: false,
            idle: None,
        };
        poll_fn(|cx| {
            loop {
                match attempt.vm.is_ready_to_execute() {
                    Ok(true) => return Poll::Ready(Ok(())),
                    Ok(false) if !attempt.over.is_cancelled() => {}
                    Ok(false) | Err(_) => return Poll::Ready(Err(Over)),
                }
                if attempt.read(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await?;
        let input = attempt.vm.sys_input();
        let input = attempt.check(input)?;
        attempt.key = input.key;
        Ok((attempt, input.input))
    }

    /// Canceled when the attempt is over.
    pub(crate) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    /// A durable value: of the first attempt, for all of them.
    ///
    /// # Errors
    /// The attempt is over.
    pub(crate) async fn durable(
        &mut self,
        name: &str,
        make: impl FnOnce() -> String,
    ) -> Result<String, Over> {
        let run = self.vm.sys_run(name.to_string());
        let handle = self.check(run)?.handle;
        let mut make = Some(make);
        let execute = |attempt: &mut Attempt| {
            let value = make.take().map(|make| make()).unwrap_or_default();
            attempt.propose(handle, value);
        };
        match self.completion(handle, execute).await? {
            Value::Success(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            _ => Err(Over),
        }
    }

    /// Says what the start of the run is, as the engine keeps it.
    pub(crate) fn begin(&mut self, scope: String, created: i64) {
        (self.scope, self.created) = (scope, created);
    }

    /// A value of the state of the workflow.
    ///
    /// # Errors
    /// The attempt is over.
    pub(crate) async fn state(&mut self, key: String) -> Result<Option<String>, Over> {
        let handle = self.vm.sys_state_get(key, None, PayloadOptions::default());
        let handle = self.check(handle)?;
        match self.completion(handle, |_| {}).await? {
            Value::Success(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            _ => Ok(None),
        }
    }

    /// Sets a value of the state of the workflow. It may differ in a later attempt.
    pub(crate) fn set_state(&mut self, key: String, value: String) {
        let set = self.vm.sys_state_set(key, value.into(), None, PayloadOptions::unstable_serialization());
        let _ = self.check(set);
    }

    /// Completes the promise of the workflow by which a question is answered; returns false if it was
    /// answered before.
    ///
    /// # Errors
    /// The attempt is over.
    pub(crate) async fn answer(&mut self, token: String, answer: String) -> Result<bool, Over> {
        let value = NonEmptyValue::Success(answer.into());
        let handle = self.vm.sys_complete_promise(token, value, PayloadOptions::default());
        let handle = self.check(handle)?;
        Ok(!matches!(self.completion(handle, |_| {}).await?, Value::Failure(_)))
    }

    /// Waits for one completion.
    async fn completion(
        &mut self,
        handle: NotificationHandle,
        mut execute: impl FnMut(&mut Attempt),
    ) -> Result<Value, Over> {
        poll_fn(|cx| {
            loop {
                let awaited = self.vm.do_await(UnresolvedFuture::Single(handle));
                match self.check(awaited) {
                    Err(over) => return Poll::Ready(Err(over)),
                    Ok(AwaitResponse::AnyCompleted) => {
                        let taken = self.vm.take_notification(handle);
                        let taken = self.check(taken).and_then(|value| value.ok_or(Over));
                        return Poll::Ready(taken);
                    }
                    Ok(AwaitResponse::ExecuteRun(_)) => execute(self),
                    Ok(AwaitResponse::CancelSignalReceived) => self.canceled = true,
                    Ok(_) => {
                        if self.read(cx).is_pending() {
                            return Poll::Pending;
                        }
                        if self.over.is_cancelled() {
                            return Poll::Ready(Err(Over));
                        }
                    }
                }
            }
        })
        .await
    }

    /// Ends the invocation with a value, or with the code and message of a failure.
    pub(crate) fn end(&mut self, result: Result<String, (u16, String)>) {
        let value = match result {
            Ok(value) => NonEmptyValue::Success(value.into()),
            Err((code, message)) => {
                NonEmptyValue::Failure(TerminalFailure { code, message, metadata: Vec::new() })
            }
        };
        // The value is made anew in each attempt, with the time that this one took.
        let options = PayloadOptions::unstable_serialization();
        let written = self.vm.sys_write_output(value, options).and_then(|()| self.vm.sys_end());
        let _ = self.check(written);
    }

    /// Gives the attempt back to the engine, which tries again after a while.
    pub(crate) fn hold(&mut self, message: String, delay: Duration) {
        let pauses = self.vm.get_response_head().version >= restate_sdk_shared_core::Version::V7;
        let error = VmError::internal(message).with_next_retry_delay_override(delay);
        self.vm.notify_error(error.with_should_pause(pauses), None);
        self.flush();
        self.over.cancel();
    }

    /// Reads from the engine what is there. Pending if there is nothing, or nothing more to come.
    fn read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(input) = &mut self.input else { return Poll::Pending };
        match Pin::new(input).poll_frame(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Some(Ok(frame))) => {
                if let Ok(data) = frame.into_data() {
                    self.vm.notify_input(data);
                }
            }
            Poll::Ready(None) => {
                self.input = None;
                self.vm.notify_input_closed();
            }
            Poll::Ready(Some(Err(_))) => {
                self.input = None;
                self.over.cancel();
            }
        }
        Poll::Ready(())
    }

    /// Sends what is to be sent; if a command failed, the attempt is over.
    fn check<T>(&mut self, result: VMResult<T>) -> Result<T, Over> {
        self.flush();
        result.map_err(|_| {
            self.over.cancel();
            Over
        })
    }

    fn flush(&mut self) {
        let bytes = self.vm.take_output();
        // Nobody reads it if the engine has gone, which the input tells.
        if !bytes.is_empty() {
            let _ = self.output.send(bytes);
        }
    }

    fn propose(&mut self, handle: NotificationHandle, record: String) {
        let result = RunExitResult::Success(record.into());
        let proposed = self.vm.propose_run_completion(handle, result, RetryPolicy::default());
        let _ = self.check(proposed);
    }

    fn wait_for(
        &mut self,
        handle: VMResult<NotificationHandle>,
        what: Awaited,
    ) -> Option<NotificationHandle> {
        let handle = self.check(handle).ok()?;
        self.awaited.insert(handle, what);
        Some(handle)
    }

    /// Sees to it that the engine tells of a time.
    fn arm(&mut self, due: i64) {
        if self.awaited.values().any(|a| matches!(a, Awaited::Timer(at) if *at <= due)) {
            return;
        }
        let handle = self.vm.sys_sleep("limit of time".into(), since_1970(due), None);
        self.wait_for(handle, Awaited::Timer(due));
    }

    /// A run of the protocol is to be executed.
    fn execute(&mut self, handle: NotificationHandle) -> Option<EngineEvent> {
        match self.awaited.get(&handle)? {
            Awaited::Intent(id) => {
                if let Some(step) = self.steps.get_mut(id) {
                    step.intent = Intent::Pending;
                }
                self.propose(handle, String::new());
                None
            }
            Awaited::Step(id) => {
                let id = *id;
                let step = self.steps.get_mut(&id)?;
                step.is_due = true;
                begin(id, step)
            }
            _ => None,
        }
    }

    /// A completion has come.
    fn completed(&mut self, what: Awaited, value: Value) -> Option<EngineEvent> {
        match what {
            Awaited::Timer(at) => Some(EngineEvent::Reached(at)),
            Awaited::Intent(id) => {
                let step = self.steps.get_mut(&id)?;
                if step.intent == Intent::Pending {
                    step.intent = Intent::Kept;
                }
                step.is_due.then(|| begin(id, step)).flatten()
            }
            Awaited::Step(id) => {
                let Value::Success(bytes) = value else {
                    return Some(EngineEvent::Failed("a step has no record".into()));
                };
                let record = String::from_utf8_lossy(&bytes).into_owned();
                if self.steps.get(&id)?.kind == StepKind::Question {
                    return self.ask(id, record);
                }
                self.steps.remove(&id);
                Some(EngineEvent::Answered { id, record })
            }
            Awaited::Answer(id) => match value {
                Value::Success(bytes) => self.decided(id, Some(String::from_utf8_lossy(&bytes).into_owned())),
                _ => self.decided(id, None),
            },
            Awaited::Expiry(id) => self.decided(id, None),
        }
    }

    /// A question is durable: shows it to approvers, and waits for the answer.
    fn ask(&mut self, id: RequestId, question: String) -> Option<EngineEvent> {
        let json: Json = serde_json::from_str(&question).unwrap_or_default();
        let (Some(token), Some(expires)) = (json["token"].as_str(), json["expires"].as_i64()) else {
            return Some(EngineEvent::Failed("a question has no token".into()));
        };
        self.steps.get_mut(&id)?.question = Some((question.clone(), token.to_string()));
        self.set_state(question_key(token), question);
        let promise = self.vm.sys_get_promise(token.to_string());
        self.wait_for(promise, Awaited::Answer(id));
        let expiry = self.vm.sys_sleep("expiry of a question".into(), since_1970(expires), None);
        self.wait_for(expiry, Awaited::Expiry(id));
        None
    }

    fn decided(&mut self, id: RequestId, answer: Option<String>) -> Option<EngineEvent> {
        let (question, token) = self.steps.remove(&id)?.question?;
        self.put_away(id, &token);
        Some(EngineEvent::Decided { id, question, answer })
    }

    /// Nobody is asked the question of a step any more.
    fn put_away(&mut self, id: RequestId, token: &str) {
        self.awaited.retain(|_, a| !matches!(a, Awaited::Answer(of) | Awaited::Expiry(of) if *of == id));
        let cleared = self.vm.sys_state_clear(question_key(token), None);
        let _ = self.check(cleared);
    }

    /// Returns whether nothing has been under way here for a while. Registers a wake-up for that time.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        if self.input.is_none() || self.steps.values().any(|step| step.is_working) {
            self.idle = None;
            return false;
        }
        self.idle.get_or_insert_with(|| Box::pin(sleep(IDLE))).as_mut().poll(cx).is_ready()
    }

    /// The next event, as far as the engine has told.
    fn next(&mut self, cx: &mut Context<'_>) -> Poll<EngineEvent> {
        loop {
            if self.over.is_cancelled() {
                return Poll::Pending;
            }
            if std::mem::take(&mut self.canceled) {
                return Poll::Ready(EngineEvent::Canceled);
            }
            let all = self.awaited.keys().map(|handle| UnresolvedFuture::Single(*handle)).collect();
            let awaited = self.vm.do_await(UnresolvedFuture::FirstCompleted(all));
            let event = match self.check(awaited) {
                Err(Over) => return Poll::Pending,
                Ok(AwaitResponse::AnyCompleted) => {
                    let found = self.awaited.keys().find(|handle| self.vm.is_completed(**handle)).copied();
                    let Some((handle, what)) = found.and_then(|h| Some((h, self.awaited.remove(&h)?))) else {
                        // INVARIANT: the protocol says so only if one of them is.
                        self.over.cancel();
                        return Poll::Pending;
                    };
                    let taken = self.vm.take_notification(handle);
                    let Ok(Some(value)) = self.check(taken) else { return Poll::Pending };
                    self.completed(what, value)
                }
                Ok(AwaitResponse::ExecuteRun(handle)) => self.execute(handle),
                Ok(AwaitResponse::CancelSignalReceived) => Some(EngineEvent::Canceled),
                Ok(_) => match self.read(cx) {
                    Poll::Pending if self.is_idle(cx) => {
                        self.input = None;
                        self.vm.notify_input_closed();
                        None
                    }
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(()) => None,
                },
            };
            if let Some(event) = event {
                self.idle = None;
                if let EngineEvent::Begin { id, .. } = event
                    && let Some(step) = self.steps.get_mut(&id)
                {
                    step.is_working = true;
                }
                return Poll::Ready(event);
            }
        }
    }
}

/// The event that begins a step, once that it begins is durable.
fn begin(id: RequestId, step: &OpenStep) -> Option<EngineEvent> {
    match step.intent {
        Intent::Pending => None,
        Intent::None | Intent::Kept => Some(EngineEvent::Begin { id, again: false }),
        Intent::Earlier => Some(EngineEvent::Begin { id, again: true }),
    }
}

/// Key of a question in the state of its workflow.
pub(crate) fn question_key(token: &str) -> String {
    format!("{}{token}", crate::questions::PREFIX)
}

fn since_1970(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

impl Engine for Attempt {
    fn run(&self) -> &str {
        &self.key
    }

    fn scope(&self) -> &str {
        &self.scope
    }

    fn created(&self) -> i64 {
        self.created
    }

    fn enter(&mut self, id: RequestId, step: EngineStep) {
        let mut intent = Intent::None;
        if step.kind == StepKind::Once {
            let begins = self.vm.sys_run(format!("begin {}", step.name));
            let Ok(begins) = self.check(begins) else { return };
            intent = if begins.replayed { Intent::Earlier } else { Intent::Pending };
            self.awaited.insert(begins.handle, Awaited::Intent(id));
        }
        let run = self.vm.sys_run(step.name).map(|run| run.handle);
        let Some(handle) = self.wait_for(run, Awaited::Step(id)) else { return };
        self.steps.insert(
            id,
            OpenStep { kind: step.kind, handle, intent, is_due: false, is_working: false, question: None },
        );
    }

    fn keep(&mut self, id: RequestId, record: String) {
        let Some(step) = self.steps.get_mut(&id) else { return };
        step.is_working = false;
        let handle = step.handle;
        if record.len() > MAX_RECORD {
            let size = record.len() >> 20;
            let message = format!(
                "an answer of {size} MiB is more than the engine takes in a step (help: have the tool write a file, and return where it is)"
            );
            return self.ready.push_back(EngineEvent::Failed(message));
        }
        self.propose(handle, record);
    }

    fn forget(&mut self, id: RequestId) {
        self.awaited.retain(|_, a| !matches!(a, Awaited::Step(of) | Awaited::Intent(of) if *of == id));
        if let Some(OpenStep { question: Some((_, token)), .. }) = self.steps.remove(&id) {
            self.put_away(id, &token);
        }
    }

    fn poll(&mut self, due: Option<i64>, cx: &mut Context<'_>) -> Poll<EngineEvent> {
        if let Some(event) = self.ready.pop_front() {
            return Poll::Ready(event);
        }
        if let Some(due) = due {
            self.arm(due);
        }
        self.next(cx)
    }
}
