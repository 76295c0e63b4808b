//! The pipelines and runs of a server, however it is reached.
//!
//! Entry points: [`Service::start`] starts a run; [`Service::resume`] (in `stored_runs`) resumes one of the
//! journal.
//!
//! Invariant: the end of the server does not end a background run with a journal: the run is left as after a
//! crash, and the next server resumes it.
//! Invariant: a run belongs to the caller that began it. Nobody else is told that it exists, and its events
//! and its outcome leave through that caller's view.
//! Invariant: at most `most` runs are active; runs that only wait for an approval are not counted.

mod event_sender;
mod keys;
mod ledger;
mod log;
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "they are read over HTTP"))]
mod metrics;
mod planned;
mod stored_runs;

use crate::error::Error;
use analysis::cost::CostBound;
use core_ir::exchange::{data_from_json, data_json};
use core_ir::{Code, Data, LabelSpec, Lattice, StoreConflict, StoreTable, Type};
use diagnostics::Sources;
use event_sender::EventSender;
pub(crate) use keys::Key;
#[cfg(feature = "http")]
pub(crate) use keys::KeyedStart;
use keys::Keys;
use ledger::{Grant, Ledger, beginning_of_day, day_of};
pub use log::{Log, LogFormat};
use machine::{Config, ErrorCode, Machine, RequestId};
#[cfg(feature = "http")]
pub(crate) use metrics::MEDIA_TYPE;
use metrics::Metrics;
use planned::{Means, Planner, Ran};
use runtime::{
    Answers, ApprovalDesk, Approvers, Asked, Authority, CancellationToken, DayUse, Decider, Decision, Event,
    Handlers, Journal, JournalError, JournalPlace, Limits, Models, POLICY_TEXT, RunIdentity, Schema, Session,
    SharedDay, StoreScope, Stores, Telemetry, Tools, Usage, Via, Waiting,
};
use serde_json::{Value, json};
use session::callers::{Caller, Callers};
use session::events::{Detail, event_json};
use session::limits::approval_lifetime;
use session::live::LiveReplies;
use session::load::{Loaded, Runnable};
use session::machine_config;
use session::partials::Partials;
use session::report::{self, waiting_json};
use session::view::{View, WITHHELD, withheld};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::Instant;

/// Runs that have ended are remembered up to this number.
const REMEMBERED: usize = 1000;

/// Events of a run that wait for a client: what a slow one has not taken by then is left out.
const EVENTS: usize = 1024;

/// A pipeline that is served.
pub(crate) struct Pipeline {
    pub(crate) name: String,
    file: String,
    pub(crate) input: Option<Type>,
    pub(crate) bound: CostBound,
    code: Arc<Code>,
    config: Arc<Config>,
    /// Highest label that the policy lets out of its runs.
    output: LabelSpec,
    /// The text of the policy, which journals keep.
    policy: Option<Arc<str>>,
    /// Of a pipeline whose program a planner writes from the input.
    planner: Option<Arc<Planner>>,
    /// The program, for views of its runs.
    kept: Option<Arc<str>>,
}

impl Pipeline {
    /// Returns the view of a run of the pipeline that a caller may be shown.
    fn view(&self, caller: &Caller) -> View {
        View::new(&self.config, &[&caller.clearance, &self.output])
    }

    /// Name of its runs in a journal.
    fn in_journal(&self) -> String {
        format!("{} {}", self.file, self.name)
    }

    /// A run of it in a journal.
    fn identity(&self, input: Option<Data>, settings: Value) -> RunIdentity {
        let mut about = RunIdentity::new(self.in_journal(), &self.code, input, settings);
        about.kept = self.kept.clone();
        if let Some(planner) = &self.planner {
            about.program = format!("{}\n{}", about.program, planner.declarations());
        }
        about
    }
}

impl Pipeline {
    /// The exact label of its lattice for one in words. What is no label of it counts as the highest.
    fn label_of(&self, spec: &LabelSpec) -> LabelSpec {
        let mut lattice = Lattice::with_principals(self.config.lattice, &self.config.principals);
        let label = lattice.resolve_or_top(spec);
        LabelSpec::Exact(lattice.data_of(label))
    }
}

/// A label as it is kept in a journal.
fn label_json(label: &LabelSpec) -> Value {
    match label {
        LabelSpec::Exact(data) => data_json(data),
        LabelSpec::Axes { .. } => Value::Null,
    }
}

/// The label of an input that a journal keeps; the highest, if it keeps none.
fn label_from(json: &Value) -> LabelSpec {
    data_from_json(json).ok().filter(|d| *d != Data::Null).map_or(LabelSpec::TOP, LabelSpec::Exact)
}

/// Finds a caller with a label outside of a pipeline's lattice; returns the caller, the key of its entry and
/// the file of the pipeline.
fn misfit(callers: &Callers, pipeline: &Pipeline) -> Option<(String, &'static str, String)> {
    let mut lattice = Lattice::with_principals(pipeline.config.lattice, &pipeline.config.principals);
    callers.all().find_map(|caller| {
        let keys = [("input", &caller.input), ("clearance", &caller.clearance)];
        let wrong = keys.into_iter().find(|(_, label)| lattice.resolve(label).is_none());
        wrong.map(|(key, _)| (caller.name.clone(), key, pipeline.file.clone()))
    })
}

/// A label in the terms of `_meta.ifc` (docs/policies.md): where the data may come from, and who may read
/// them.
pub(crate) fn ifc(label: &Value) -> Value {
    let all = |list: &Value| list.as_array().is_some_and(|l| l.is_empty());
    match label {
        Value::Array(words) => {
            // These words are about integrity in every lattice that has words.
            let (integrity, secrecy): (Vec<_>, Vec<_>) = words.iter().partition(|w| *w == "U" || *w == "E");
            let integrity = if integrity.is_empty() { "trusted" } else { "untrusted" };
            let readers = if secrecy.is_empty() { json!(["public"]) } else { json!([]) };
            json!({"integrity": integrity, "confidentiality": readers})
        }
        Value::Object(names) => {
            let (sources, readers) = (&names["sources"], &names["readers"]);
            let integrity = match sources {
                none if all(none) => json!("trusted"),
                Value::Array(_) => sources.clone(),
                _ => json!("untrusted"),
            };
            let readers = if readers.is_array() { readers.clone() } else { json!(["public"]) };
            json!({"integrity": integrity, "confidentiality": readers})
        }
        _ => json!({"integrity": "untrusted", "confidentiality": []}),
    }
}

/// Returns the status of a run with this outcome.
fn status_of(outcome: &Value) -> &'static str {
    match RunError::of(outcome) {
        Some(RunError::Interrupted) => INTERRUPTED,
        Some(RunError::Withheld) => WITHHELD,
        Some(_) => "failed",
        None => "done",
    }
}

/// Code of the error of a run that the next server resumes.
const INTERRUPTED: &str = "interrupted";

/// Error in the outcome of a run, as far as answers differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    /// The server shuts down; the next one resumes the run.
    Interrupted,
    /// The caller may not see the outcome.
    Withheld,
    /// The run was canceled.
    Cancelled,
    /// The budget is used up.
    Budget,
    /// A model failed.
    Model,
    /// A tool failed.
    Tool,
    /// Any other error of the program.
    Other,
}

impl RunError {
    /// Returns the error of an outcome or of the last event of a run; `None` if it succeeded.
    pub(crate) fn of(outcome: &Value) -> Option<RunError> {
        let code = outcome["error"]["code"].as_str()?;
        let known = [
            (INTERRUPTED, RunError::Interrupted),
            (WITHHELD, RunError::Withheld),
            (ErrorCode::Cancelled.as_str(), RunError::Cancelled),
            (ErrorCode::Budget.as_str(), RunError::Budget),
            (ErrorCode::Model.as_str(), RunError::Model),
            (ErrorCode::Tool.as_str(), RunError::Tool),
            (ErrorCode::ToolTimeout.as_str(), RunError::Tool),
        ];
        Some(known.iter().find(|(c, _)| *c == code).map_or(RunError::Other, |(_, error)| *error))
    }
}

/// The JSON Schema of an input.
pub(crate) fn input_schema(input: Option<&Type>) -> Value {
    input.and_then(Schema::of).map_or_else(|| json!({}), |s| s.json)
}

/// Reason why a run did not start, or is unknown.
#[derive(Debug)]
pub(crate) enum Refused {
    Unknown(String),
    Input(String),
    /// It is not in a state in which this could be done.
    Conflict(String),
    /// The maximum number of runs are active.
    Full(usize),
    /// The caller has used what it may.
    Limited(String),
    Closing,
    Journal(String),
}

impl Refused {
    /// The reason, with what the caller can do.
    pub(crate) fn message(&self) -> Cow<'_, str> {
        match self {
            Refused::Unknown(why)
            | Refused::Input(why)
            | Refused::Conflict(why)
            | Refused::Limited(why)
            | Refused::Journal(why) => why.into(),
            Refused::Full(1) => {
                "the server runs one pipeline at a time, and one is active: try again later".into()
            }
            Refused::Full(most) => {
                format!("{most} runs are active, the limit of this server: try again later").into()
            }
            Refused::Closing => "the server is shutting down".into(),
        }
    }
}

/// Options for starting a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct StartOptions<'a> {
    /// The client sees replies as they grow.
    pub(crate) streams: bool,
    /// Nobody waits for it: its client comes back for it.
    pub(crate) background: bool,
    /// Conversation identifier that the client gave.
    pub(crate) context: Option<&'a str>,
    /// The span of the client's, as the header of that name.
    pub(crate) traceparent: Option<&'a str>,
    /// Under which the client may ask for it again.
    pub(crate) key: Option<Key<'a>>,
}

/// A run that has begun.
pub(crate) struct Started {
    pub(crate) run: String,
    /// Events; the outcome is the last one. `skipped` counts the events that were left out because the client
    /// did not read in time.
    pub(crate) events: Receiver<Value>,
    pub(crate) cancel: CancellationToken,
}

struct Run {
    pipeline: String,
    /// The caller that it belongs to.
    caller: String,
    cancel: CancellationToken,
    /// Channel for clients that subscribe later.
    watched: broadcast::Sender<Value>,
    /// Conversation identifier that the client gave.
    context: Option<String>,
    /// True if the next server resumes it.
    suspends: bool,
    /// Time of the last change of status, in seconds since 1970.
    changed: i64,
    /// Outcome that its caller is shown; `None` while it runs.
    outcome: Option<Value>,
    /// Number of its waiting questions that its caller may be shown.
    asks: usize,
}

/// The pipelines and runs of a server. Every way to reach it shares one.
pub struct Service {
    pipelines: BTreeMap<String, Arc<Pipeline>>,
    handlers: Handlers,
    limits: Limits,
    sources: Arc<Sources>,
    journal: Option<JournalPlace>,
    lifetime: Duration,
    /// Approvers whose signed answers count.
    approvers: Approvers,
    /// Answers of callers to questions of runs that are here, or come back.
    answers: Answers,
    most: usize,
    closing: AtomicBool,
    /// Stops the runs that the next server resumes.
    suspend: CancellationToken,
    /// Destination of traces and metrics.
    telemetry: Option<Telemetry>,
    /// Runs that have ended and of which traces and metrics are on their way.
    sending: AtomicUsize,
    log: Log,
    metrics: Arc<Metrics>,
    base: OnceLock<String>,
    callers: Callers,
    /// The tools of each caller's runs, with the servers that those share.
    own: HashMap<String, Tools>,
    keys: Mutex<Keys>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    known: HashMap<String, Run>,
    ended: VecDeque<String>,
    /// At work.
    running: usize,
    /// Number of runs that only wait for an approval.
    waiting: usize,
    /// Usage of each caller, by name.
    ledgers: HashMap<String, Ledger>,
}

/// Looks for two declarations of a store that all programs share. Other stores are each program's own.
fn one_declaration_for_each_store(
    pipelines: &BTreeMap<String, Arc<Pipeline>>,
    stores: &Stores,
) -> Result<(), String> {
    let mut table = StoreTable::default();
    let mut files = HashMap::new();
    for Pipeline { file, code, .. } in pipelines.values().map(|p| &**p) {
        for store in code.stores.iter().filter(|s| stores.is_shared(&s.name)) {
            table.declare(store).map_err(|conflict| {
                let first = files.get(&store.name).unwrap_or(&file);
                format!("{conflict}: that of `{first}` and that of `{file}` (help: {})", StoreConflict::HELP)
            })?;
            files.entry(store.name.clone()).or_insert(file);
        }
    }
    Ok(())
}

/// A run's share of the active runs.
struct RunSlot {
    service: Arc<Service>,
    /// The run that has it.
    run: String,
    waits: bool,
    caller: Arc<Caller>,
    /// Part of its caller's daily budget that the run may use.
    grant: Grant,
    /// True if the grant is in the journal, for all servers.
    is_shared: bool,
    /// Usage of the run, once it has ended.
    used: Option<Usage>,
}

impl RunSlot {
    /// Records that the run only waits for an approval, or no longer does.
    fn waits(&mut self, waits: bool) {
        if waits != self.waits {
            self.waits = waits;
            let mut runs = self.service.lock();
            let (from, to) = if waits { (-1, 1) } else { (1, -1) };
            runs.running = runs.running.saturating_add_signed(from);
            runs.waiting = runs.waiting.saturating_add_signed(to);
            if let Some(entry) = runs.known.get_mut(&self.run) {
                entry.changed = now();
            }
        }
    }
}

impl RunSlot {
    /// Sets the number of waiting questions that the caller of the run may be shown.
    fn asks(&self, questions: usize) {
        if let Some(entry) = self.service.lock().known.get_mut(&self.run)
            && entry.asks != questions
        {
            entry.asks = questions;
        }
    }
}

impl Runs {
    /// A run, if it belongs to this caller.
    fn of(&self, caller: &Caller, run: &str) -> Option<&Run> {
        self.known.get(run).filter(|entry| entry.caller == caller.name)
    }
}

impl Drop for RunSlot {
    fn drop(&mut self) {
        let mut runs = self.service.lock();
        let of = if self.waits { &mut runs.waiting } else { &mut runs.running };
        *of = of.saturating_sub(1);
        if let Some(ledger) = runs.ledgers.get_mut(&self.caller.name) {
            ledger.end(&self.grant, self.used.as_ref());
        }
        drop(runs);
        if !self.is_shared {
            return;
        }
        let (service, caller) = (self.service.clone(), self.caller.clone());
        let (grant, used) = (self.grant.clone(), self.used.take());
        let settle = move || {
            // Without this the whole grant counts.
            if let Err(why) = service.settle(&caller, &grant, used.as_ref()) {
                service.log.warning(&format!(
                    "the budget of `{}` was not updated: {}",
                    caller.name,
                    why.message()
                ));
            }
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(settle)),
            Err(_) => settle(),
        }
    }
}

/// Programs whose pipelines are served.
#[derive(Default)]
pub struct Programs {
    sources: Sources,
    pipelines: BTreeMap<String, Arc<Pipeline>>,
}

impl Programs {
    /// The texts of the programs.
    pub fn sources(&mut self) -> &mut Sources {
        &mut self.sources
    }

    /// Adds the pipelines of a file.
    ///
    /// # Errors
    /// Another file has a pipeline of the same name.
    pub fn add(&mut self, session: &session::Session, file: &str, loaded: Loaded) -> Result<(), Error> {
        let Loaded { runnables, policy, .. } = loaded;
        let config = Arc::new(machine_config(session.options.fuel, policy.as_ref()));
        for Runnable { name, code, input, .. } in runnables {
            let bound = session.bound(&code, input.is_some());
            let (file, config) = (file.to_string(), config.clone());
            let output = policy.as_ref().map_or(LabelSpec::TOP, |p| p.output.clone());
            let planner = None;
            let kept = session::kept::program(&code, policy.as_ref(), &self.sources);
            let policy = policy.as_ref().map(|p| p.text().into());
            let pipeline = Pipeline {
                name: name.clone(),
                file: file.clone(),
                input,
                bound,
                code,
                config,
                output,
                policy,
                planner,
                kept,
            };
            self.insert(pipeline)?;
        }
        Ok(())
    }

    fn insert(&mut self, pipeline: Pipeline) -> Result<(), Error> {
        let (name, file) = (pipeline.name.clone(), pipeline.file.clone());
        match self.pipelines.insert(name.clone(), Arc::new(pipeline)) {
            Some(other) => Err(Error::SameName { name, files: [other.file.clone(), file] }),
            None => Ok(()),
        }
    }

    /// The terms of the pipelines, and the questions of planners.
    pub fn codes(&self) -> Vec<&Code> {
        let planners = self.pipelines.values().filter_map(|p| p.planner.as_ref());
        self.pipelines.values().map(|p| &*p.code).chain(planners.map(|p| p.quarantine())).collect()
    }

    /// Returns true if there is no program to serve.
    pub fn is_empty(&self) -> bool {
        self.pipelines.is_empty()
    }
}

/// Options of a [`Service`].
pub struct ServiceOptions {
    /// Models that can answer all pipelines.
    pub models: Models,
    /// Limits of each run.
    pub limits: Limits,
    /// The journal.
    pub journal: Option<JournalPlace>,
    /// Most runs that are at work at once; at least one.
    pub max_runs: usize,
    /// Callers that may reach the server.
    pub callers: Callers,
    /// The log.
    pub log: Log,
}

impl Service {
    /// Sets up everything that the pipelines need.
    ///
    /// # Errors
    /// A label of a caller, a store, the journal or the endpoint of the telemetry can't be used.
    pub fn new(
        session: &session::Session,
        programs: Programs,
        options: ServiceOptions,
    ) -> Result<Service, Error> {
        let Programs { sources, pipelines } = programs;
        let ServiceOptions { models, limits, journal, max_runs, callers, log } = options;
        if let Some((caller, key, file)) = pipelines.values().find_map(|p| misfit(&callers, p)) {
            return Err(Error::Label { caller, key, file });
        }
        let handlers = session.handlers(models);
        one_declaration_for_each_store(&pipelines, &handlers.stores).map_err(Error::Store)?;
        // Callers share neither the stores of their runs nor the servers that those use.
        let of_caller =
            |caller: &Arc<Caller>| (caller.name.clone(), handlers.tools.clone().sharing_servers());
        let own = callers.all().map(of_caller).collect();
        if let Some(place) = &journal {
            Journal::open(place)?;
        }
        let telemetry = session.telemetry("entail".into()).map_err(session::Error::Telemetry)?;
        let ledgers = match &journal {
            Some(place) if callers.have_daily_limits() => {
                let used = Journal::existing(place)?.usage_since(1000 * beginning_of_day(now()))?;
                used.into_iter().map(|(caller, used)| (caller, Ledger::of(&used, now()))).collect()
            }
            _ => HashMap::new(),
        };
        Ok(Service {
            pipelines,
            telemetry,
            suspend: CancellationToken::new(),
            sending: AtomicUsize::new(0),
            log,
            metrics: Arc::default(),
            handlers,
            limits,
            sources: Arc::new(sources),
            journal,
            lifetime: approval_lifetime(session.settings.limits.approval),
            approvers: session.settings.approvers.clone(),
            answers: Answers::default(),
            most: max_runs.max(1),
            closing: AtomicBool::new(false),
            base: OnceLock::new(),
            callers,
            own,
            keys: Mutex::default(),
            runs: Mutex::new(Runs { ledgers, ..Runs::default() }),
        })
    }

    /// Returns true if there is no program to serve.
    pub fn is_empty(&self) -> bool {
        self.pipelines.is_empty()
    }

    /// Logs the addresses that the server listens at.
    pub(crate) fn listens_at(&self, base: &str) {
        let _ = self.base.set(base.trim_end_matches('/').to_string());
    }

    pub(crate) fn base(&self) -> &str {
        self.base.get().map_or("", String::as_str)
    }

    /// Returns the callers that may reach it.
    pub(crate) fn callers(&self) -> &Callers {
        &self.callers
    }

    pub(crate) fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.pipelines.values().map(|p| &**p)
    }

    pub(crate) fn journal(&self) -> Option<&JournalPlace> {
        self.journal.as_ref()
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The numbers of the server, in the format of [`MEDIA_TYPE`].
    #[cfg(feature = "http")]
    pub(crate) fn metrics(&self) -> String {
        let (running, waiting) = self.under_way();
        // A journal that can't be read right now is no reason to tell nothing.
        let questions = self.journal.as_ref().and_then(|place| self.journal_at(place).ok());
        let questions = questions.and_then(|journal| journal.waiting(None).ok()).map(|all| all.len());
        let sending = self.sending.load(Ordering::SeqCst);
        let telemetry = self.telemetry.as_ref().map(Telemetry::delivered);
        self.metrics.text(metrics::Gauges {
            running,
            waiting,
            most: self.most,
            questions,
            sending,
            telemetry,
        })
    }

    /// A request over HTTP was answered.
    #[cfg(feature = "http")]
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16) {
        self.metrics.answered(method, route, status);
    }

    /// Returns the number of active runs, and the number of runs that wait for an approval.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        let runs = self.lock();
        (runs.running, runs.waiting)
    }

    /// Returns the number of runs of a caller that have begun and not ended.
    pub(crate) fn open_of(&self, caller: &Caller) -> usize {
        self.lock().ledgers.get(&caller.name).map_or(0, Ledger::open)
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // A panic while it was held leaves runs that are there or not there, never half.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of a pipeline from JSON.
    pub(crate) fn read_input(&self, pipeline: &Pipeline, json: &Value) -> Result<Data, Refused> {
        let ty = pipeline.input.clone().unwrap_or(Type::Dyn);
        ty.read_input(json).map_err(|why| Refused::Input(format!("`{}` takes {ty}: {why}", pipeline.name)))
    }

    /// Begins a run.
    pub(crate) fn start(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        name: &str,
        input: &Value,
        how: StartOptions<'_>,
    ) -> Result<Started, Refused> {
        let Some(pipeline) = self.pipelines.get(name).cloned() else {
            return Err(Refused::Unknown(format!("unknown pipeline `{}`", diagnostics::clip_to(name, 80))));
        };
        let input = match (&pipeline.input, input) {
            (None, Value::Null) => None,
            _ => Some(self.read_input(&pipeline, input)?),
        };
        let label = pipeline.label_of(&caller.input);
        if pipeline.planner.is_some() {
            planned::trusted(caller, &pipeline)?;
        }
        let place = self.place(caller)?;
        let handlers = self.session(caller, &pipeline, input.clone(), &label, how)?;
        Ok(self.go(pipeline, input.map(|data| (data, label)), handlers, how, place))
    }

    /// A run goes its way in a task of its own.
    fn go(
        self: &Arc<Self>,
        pipeline: Arc<Pipeline>,
        input: Option<(Data, LabelSpec)>,
        handlers: Handlers,
        how: StartOptions<'_>,
        mut place: RunSlot,
    ) -> Started {
        let run = handlers.run.clone().unwrap_or_default();
        // A page may show the run, whether its client reads along or not.
        let mut live = self.journal.as_ref().and_then(|place| LiveReplies::of(place, &run));
        let handlers = Handlers { stream: how.streams || live.is_some(), ..handlers };
        place.run.clone_from(&run);
        let cancel = CancellationToken::new();
        let watched = broadcast::Sender::new(EVENTS);
        // Data that no journal keeps can't be resumed.
        let suspends = how.background && self.journal.is_some();
        let caller = place.caller.clone();
        let limits = place.grant.within(caller.limits_of_run(&self.limits));
        let entry = Run {
            pipeline: pipeline.name.clone(),
            caller: caller.name.clone(),
            cancel: cancel.clone(),
            watched: watched.clone(),
            context: how.context.map(str::to_string),
            suspends,
            changed: now(),
            outcome: None,
            asks: 0,
        };
        {
            let mut runs = self.lock();
            runs.ended.retain(|r| *r != run);
            runs.known.insert(run.clone(), entry);
        }
        let (send, events) = channel(EVENTS);
        let (service, id, stop) = (self.clone(), run.clone(), cancel.clone());
        let detail = if how.streams { Detail::Content } else { Detail::Outline };
        let mut telemetry = self.telemetry.as_ref().map(|t| {
            let t = t.another(pipeline.in_journal(), how.traceparent).live(&run);
            t.limited(&limits).bounded(&session::bound::of_run(&pipeline.bound))
        });
        tokio::spawn(async move {
            // Whatever happens to the task, the run is over then.
            let mut ending = EndGuard { service: &service, run: &id, outcome: None, place };
            let mut telling = EventSender { to: send, watched, skipped: 0 };
            telling.tell(json!({"event": "run", "run": id, "pipeline": pipeline.name}));
            service.log.begun(&id, &pipeline.name);
            let mut metrics = service.metrics.run(&pipeline.name);
            let (input, label) = input.map_or((None, LabelSpec::BOTTOM), |(data, label)| (Some(data), label));
            // The caller and the operator see different views.
            let (mut view, mut operator) =
                (pipeline.view(&caller), View::new(&pipeline.config, &[&pipeline.output]));
            // Questions that the caller may be shown.
            let mut questions: HashSet<RequestId> = HashSet::new();
            // The request in flight, and whether it is an approval question.
            let mut open: HashMap<RequestId, bool> = HashMap::new();
            let place = &mut ending.place;
            let records = handlers.models.redactor().for_records();
            let mut partials = Partials::default();
            let mut note = |event: Event| {
                let kept = records.event(&event);
                if let Some(telemetry) = &mut telemetry {
                    telemetry.note(&kept);
                }
                if let Some(live) = &mut live {
                    live.note(&kept);
                }
                if let Some(kept) = operator.event(&kept) {
                    service.log.event(&id, &pipeline.name, &kept);
                    metrics.note(&kept);
                }
                let shown = view.event(&event);
                let waits = matches!(event, Event::Asked { what: Asked::Approve { .. }, .. });
                match &event {
                    Event::Asked { id, .. } => {
                        open.insert(*id, waits);
                        if waits && shown.is_some() {
                            questions.insert(*id);
                        }
                    }
                    Event::Answered { id, .. } => {
                        open.remove(id);
                        questions.remove(id);
                    }
                    _ => {}
                }
                place.waits(service.journal.is_some() && !open.is_empty() && open.values().all(|asks| *asks));
                place.asks(questions.len());
                let Some(shown) = shown else { return };
                // Of what the caller is shown, and nothing else.
                let partial = partials.json(&shown).filter(|_| detail == Detail::Content);
                if let Some(json) = event_json(&shown, detail) {
                    telling.tell(json);
                    partial.into_iter().for_each(|partial| telling.tell(partial));
                    if waits && service.journal.is_some() {
                        telling.tell(json!({"event": "waiting", "run": id}));
                    }
                }
            };
            let suspended = async {
                match suspends {
                    true => service.suspend.cancelled().await,
                    false => std::future::pending().await,
                }
            };
            let work = async {
                let config = Config { input: label, ..(*pipeline.config).clone() };
                if let (Some(planner), Some(Data::Str(request))) = (&pipeline.planner, &input) {
                    let means =
                        Means { config: &config, handlers: &handlers, limits: &limits, cancel: &stop };
                    return planner.fulfill(request, means, &mut note).await;
                }
                let machine = Machine::new(pipeline.code.clone(), input, config);
                Ran::of(runtime::run(machine, &handlers, &limits, &stop, &mut note).await)
            };
            let ran = tokio::select! {
                biased;
                ran = work => Some(ran),
                () = suspended => None,
            };
            ending.place.used = ran.as_ref().and_then(Ran::used);
            let told = |view: &View| match &ran {
                Some(Ran { report: Ok(report), sources, .. }) => match view.outcome(report) {
                    Some(report) => {
                        let sources = sources.as_ref().unwrap_or(&service.sources);
                        let mut outcome = report::as_json(sources, &report, &pipeline.bound);
                        ran.iter().for_each(|ran| ran.add_told(&mut outcome));
                        outcome
                    }
                    None => withheld(&id),
                },
                Some(Ran { report: Err(why), .. }) => {
                    json!({"run": id, "error": {"code": why.code, "message": why.message}})
                }
                None => json!({"run": id, "error": {
                    "code": INTERRUPTED, "message": "the server is shutting down and resumes the run after its restart",
                }}),
            };
            let mut outcome = told(&view);
            let mut kept = told(&operator);
            records.json(&mut kept);
            service.log.ended(&id, &pipeline.name, &kept);
            metrics.ended(status_of(&kept), &kept);
            if ran.is_some() {
                service.keep_outcome(&id, &outcome).await;
            }
            service.sending.fetch_add(1, Ordering::SeqCst);
            ending.outcome = Some(outcome.clone());
            drop(ending);
            outcome["event"] = if outcome.get("error").is_some() { "error" } else { "result" }.into();
            telling.end(outcome).await;
            if let Some((telemetry, report)) = telemetry.zip(ran.and_then(|r| r.report.ok()))
                && let Err(why) = telemetry.send(&report).await
            {
                service.log.warning(&why);
            }
            service.sending.fetch_sub(1, Ordering::SeqCst);
        });
        Started { run, events, cancel }
    }

    /// Takes one of the places that runs have, and of what the caller may use.
    fn place(self: &Arc<Self>, caller: &Arc<Caller>) -> Result<RunSlot, Refused> {
        loop {
            let seconds = now();
            let shared = self.shared_day(caller, day_of(seconds))?;
            let (mut slot, granted) = self.place_here(caller, seconds, shared.as_ref())?;
            let Some((journal, before)) = shared else { return Ok(slot) };
            let failed = |e: JournalError| Refused::Journal(e.message);
            let day = slot.grant.day();
            if journal.change_shared_day(&caller.name, day, &before, &granted).map_err(failed)? {
                slot.is_shared = true;
                return Ok(slot);
            }
            // Another server was faster, so there is less to grant.
        }
    }

    /// Takes a place of this server. Gives the use of the caller's day with it.
    fn place_here(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        seconds: i64,
        shared: Option<&(Journal, SharedDay)>,
    ) -> Result<(RunSlot, DayUse), Refused> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(Refused::Closing);
        }
        let mut runs = self.lock();
        if runs.running >= self.most {
            return Err(Refused::Full(self.most));
        }
        let ledger = runs.ledgers.entry(caller.name.clone()).or_default();
        if let Some(used) = shared.and_then(|(_, day)| day.used.as_ref()) {
            ledger.go_on(day_of(seconds), used);
        }
        let per_run = caller.limits_of_run(&self.limits);
        let grant = ledger.begin(caller, &per_run, Instant::now(), seconds).map_err(Refused::Limited)?;
        let granted = ledger.day();
        runs.running += 1;
        let slot = RunSlot {
            service: self.clone(),
            run: String::new(),
            waits: false,
            caller: caller.clone(),
            grant,
            is_shared: false,
            used: None,
        };
        Ok((slot, granted))
    }

    /// The use of a caller's day, if it has daily limits and servers of other hosts have the journal.
    fn shared_day(&self, caller: &Caller, day: i64) -> Result<Option<(Journal, SharedDay)>, Refused> {
        let Some(place) = self.journal.as_ref().filter(|_| caller.has_daily_limits()) else {
            return Ok(None);
        };
        let failed = |e: JournalError| Refused::Journal(e.message);
        let journal = Journal::existing(place).map_err(failed)?;
        let shared = journal.shared_day(&caller.name, day).map_err(failed)?;
        Ok(shared.map(|shared| (journal, shared)))
    }

    /// Gives the part of a grant back that a run has not used, to all servers.
    fn settle(&self, caller: &Caller, grant: &Grant, used: Option<&Usage>) -> Result<(), Refused> {
        let day = grant.day();
        while let Some((journal, before)) = self.shared_day(caller, day)? {
            let Some(use_before) = &before.used else { return Ok(()) };
            let mut ledger = Ledger::default();
            ledger.go_on(day, use_before);
            ledger.end(grant, used);
            let changed = journal.change_shared_day(&caller.name, day, &before, &ledger.day());
            if changed.map_err(|e| Refused::Journal(e.message))? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the handlers of a run, with the run's name.
    fn session(
        &self,
        caller: &Caller,
        pipeline: &Pipeline,
        input: Option<Data>,
        label: &LabelSpec,
        how: StartOptions<'_>,
    ) -> Result<Handlers, Refused> {
        let Some(path) = &self.journal else {
            let mut handlers = self.handlers_of(caller, pipeline);
            handlers.run = Some(runtime::new_run_id());
            return Ok(handlers);
        };
        let settings = json!({
            "seed": self.handlers.seed, "fuel": pipeline.config.fuel, "background": how.background,
            "context": how.context, "caller": caller.name, "inputLabel": label_json(label),
            POLICY_TEXT: pipeline.policy.as_deref(), "planned": pipeline.planner.is_some(),
            "idempotencyKey": how.key.map(|k| k.name), "requestDigest": how.key.map(|k| k.digest),
        });
        let about = pipeline.identity(input, settings);
        let journal = Journal::existing(path).map_err(|e| Refused::Journal(e.message))?;
        let session = journal
            .begin(&about, self.handlers.models.redactor())
            .map_err(|e| Refused::Journal(e.message))?;
        Ok(self.kept_in(caller, pipeline, session))
    }

    /// Returns the handlers for the runs of a caller, which has stores and servers of its own.
    fn handlers_of(&self, caller: &Caller, pipeline: &Pipeline) -> Handlers {
        let mut handlers = self.handlers.clone();
        let scope = StoreScope { caller: caller.name.clone(), program: pipeline.file.clone() };
        handlers.stores = handlers.stores.scoped(scope);
        if let Some(tools) = self.own.get(&caller.name) {
            handlers.tools = tools.clone();
        }
        handlers
    }

    /// Returns the handlers for a run that is kept.
    fn kept_in(&self, caller: &Caller, pipeline: &Pipeline, session: Session) -> Handlers {
        let mut handlers = self.handlers_of(caller, pipeline);
        handlers.run = Some(session.id().to_string());
        handlers.seed = session.settings()["seed"].as_u64().unwrap_or(handlers.seed);
        handlers.desk = self.journal.as_ref().map(|place| {
            let desk = ApprovalDesk::new(place, self.lifetime);
            desk.with_approvers(self.approvers.clone()).with_answers(self.answers.clone())
        });
        handlers.journal = Some(Arc::new(Mutex::new(session)));
        handlers
    }

    fn ended(&self, run: &str, outcome: Value) {
        let mut runs = self.lock();
        if let Some(entry) = runs.known.get_mut(run) {
            (entry.outcome, entry.changed) = (Some(outcome), now());
        }
        runs.ended.push_back(run.to_string());
        while runs.ended.len() > REMEMBERED {
            if let Some(old) = runs.ended.pop_front() {
                runs.known.remove(&old);
            }
        }
    }

    /// Returns the outcome of a run that its caller is shown.
    pub(crate) fn outcome(&self, caller: &Caller, run: &str) -> Option<Value> {
        self.lock().of(caller, run)?.outcome.clone()
    }

    /// Returns the status of a run.
    pub(crate) fn status(&self, caller: &Caller, run: &str) -> Result<Value, Refused> {
        let known = {
            let runs = self.lock();
            if runs.known.get(run).is_some_and(|entry| entry.caller != caller.name) {
                return Err(no_run(run));
            }
            runs.known.get(run).map(|e| (e.pipeline.clone(), e.outcome.clone(), e.asks))
        };
        let Some((pipeline, outcome, asks)) = known else { return self.kept_status(caller, run) };
        let status = outcome.as_ref().map_or("running", status_of);
        let mut object = json!({"run": run, "pipeline": pipeline, "status": status});
        match outcome {
            Some(outcome) => object["outcome"] = outcome,
            None => {
                let waiting = if asks > 0 { self.waiting(caller, Some(run))? } else { Vec::new() };
                if !waiting.is_empty() {
                    object["status"] = "waiting".into();
                    object["waiting"] = waiting.into();
                }
            }
        }
        Ok(object)
    }

    /// Subscribes to the events of a run; `None` if it is not known.
    pub(crate) fn watch(&self, caller: &Caller, run: &str) -> Option<broadcast::Receiver<Value>> {
        Some(self.lock().of(caller, run)?.watched.subscribe())
    }

    /// Conversation identifier that the client gave a run.
    pub(crate) fn context(&self, caller: &Caller, run: &str) -> Option<String> {
        if let Some(entry) = self.lock().of(caller, run) {
            return entry.context.clone();
        }
        self.kept_context(caller, run)
    }

    /// The runs of a caller that are known with the second since 1970 in which they last came to something
    /// else, the newest first.
    pub(crate) fn runs(&self, caller: &Caller) -> Vec<(i64, String)> {
        let runs = self.lock();
        let own = runs.known.iter().filter(|(_, entry)| entry.caller == caller.name);
        let mut runs: Vec<(i64, String)> = own.map(|(run, entry)| (entry.changed, run.clone())).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs
    }

    /// Returns the time at which a run's status last changed.
    pub(crate) fn changed(&self, caller: &Caller, run: &str) -> Option<i64> {
        if let Some(entry) = self.lock().of(caller, run) {
            return Some(entry.changed);
        }
        self.kept_since(caller, run)
    }

    /// The questions of a run, or of all runs, that a caller may be shown.
    pub(crate) fn waiting(&self, caller: &Caller, run: Option<&str>) -> Result<Vec<Value>, Refused> {
        let Some(path) = &self.journal else { return Ok(Vec::new()) };
        let failed = |e: runtime::JournalError| Refused::Journal(e.message);
        let journal = self.journal_at(path).map_err(failed)?;
        let mut waiting = journal.waiting(run).map_err(failed)?;
        waiting.retain(|question| self.may_see(caller, &journal, question));
        Ok(waiting.iter().map(waiting_json).collect())
    }

    /// Returns true if a question may be shown to a caller: the caller may see every argument, and that the
    /// call is to be made.
    pub(crate) fn may_see(&self, caller: &Caller, journal: &Journal, question: &Waiting) -> bool {
        let name = journal.run(&question.run).map(|info| info.name).unwrap_or_default();
        let Some(pipeline) = self.pipelines.values().find(|p| p.in_journal() == name) else {
            // Of which lattice its labels are is not known.
            return caller.clearance == LabelSpec::TOP;
        };
        let mut view = pipeline.view(caller);
        let Some(args) = question.args.as_array() else { return view.is_unbounded() };
        // An earlier question says nothing about the reason for the call.
        let labels = args.iter().map(|arg| &arg["label"]).chain([&question.channel]).filter(|l| !l.is_null());
        labels.into_iter().all(|label| data_from_json(label).is_ok_and(|label| view.admits(&label)))
    }

    /// The journal, with the approvers whose answers in it count.
    pub(crate) fn journal_at(&self, place: &JournalPlace) -> Result<Journal, JournalError> {
        Ok(Journal::existing(place)?.with_approvers(self.approvers.clone()))
    }

    /// Answers a question of a run that is active here, or that this server resumes. The answer is only in
    /// memory: after a restart the question is asked again.
    pub(crate) fn decide(
        &self,
        mut journal: Journal,
        request: &str,
        decision: &Decision,
        caller: &Caller,
    ) -> Result<(), JournalError> {
        let by = Decider::new(caller.name.clone(), Via::Caller);
        let authority = Authority::Process { answers: &self.answers, by, label: caller.input.clone() };
        journal.decide(request, decision, &authority)
    }

    /// Gives a run up.
    pub(crate) fn cancel(&self, caller: &Caller, run: &str) -> Result<(), Refused> {
        if let Some(entry) = self.lock().of(caller, run) {
            entry.cancel.cancel();
            return Ok(());
        }
        self.kept_status(caller, run)?;
        Err(Refused::Conflict("the run is not under way".into()))
    }

    /// Accepts no more runs and gives active ones some time. Then runs that the next server can resume are
    /// left as they are, and the others are canceled.
    pub(crate) async fn close(&self, grace: Duration) {
        self.closing.store(true, Ordering::SeqCst);
        let until = Instant::now() + grace;
        while self.under_way().0 > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.suspend.cancel();
        for run in self.lock().known.values().filter(|r| !r.suspends) {
            run.cancel.cancel();
        }
        while self.under_way() != (0, 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for tools in self.own.values() {
            tools.close_servers().await;
        }
        // Completed work is reported, unless no client is left.
        let until = Instant::now() + Duration::from_secs(5);
        while self.sending.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

fn no_run(run: &str) -> Refused {
    Refused::Unknown(format!("run `{}` not found", diagnostics::clip_to(run, 80)))
}

/// Notes the end of a run, also that of one whose task was dropped or panicked.
struct EndGuard<'a> {
    service: &'a Service,
    run: &'a str,
    outcome: Option<Value>,
    place: RunSlot,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        let lost = || json!({"run": self.run, "error": {"code": ErrorCode::Cancelled.as_str(), "message": "the run was lost"}});
        self.service.ended(self.run, self.outcome.take().unwrap_or_else(lost));
    }
}
