//! The pipelines and runs of a server, however it is reached.
//!
//! Entry points: [`Service::start`] begins a run; [`Service::resume`] (in `kept`) goes on with one of the journal.
//!
//! Invariant: a run that was begun in the background and is in a journal is not ended by the end of the server: it is left as a crash would leave it, and
//! the next server goes on with it.
//! Invariant: at most `most` runs are at work; those that do nothing but wait for somebody to approve a call are not counted.

mod kept;
mod log;
mod telling;

use super::{load_or_say, run, worth_saying};
use crate::args::WorldArgs;
use crate::load::{Kind, Loaded, Runnable};
use crate::progress::{Detail, event_json};
use crate::settings::Settings;
use crate::ui::{Exit, Ui};
use check::cost::CostBound;
use core_ir::{Code, Data, StoreConflict, StoreTable, Type};
use diagnostics::Sources;
pub(super) use log::Log;
use machine::{Config, Machine, RequestId};
use runtime::{
    About, Answers, ApprovalDesk, Approvers, Asked, Authority, CancellationToken, Decider, Decision, Event,
    Handlers, Journal, JournalError, Limits, Schema, Session, Stores, Telemetry,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use telling::Telling;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::Instant;

/// Runs that have ended are remembered up to this number.
const REMEMBERED: usize = 1000;

/// Events of a run that wait for a client: what a slow one has not taken by then is left out.
const EVENTS: usize = 1024;

/// A pipeline that is served.
pub(super) struct Pipeline {
    pub(super) name: String,
    file: String,
    pub(super) input: Option<Type>,
    pub(super) bound: CostBound,
    code: Arc<Code>,
    config: Arc<Config>,
}

impl Pipeline {
    /// What its runs are called in a journal.
    fn in_journal(&self) -> String {
        format!("{} {}", self.file, self.name)
    }
}

/// The JSON Schema of an input.
pub(super) fn input_schema(input: Option<&Type>) -> Value {
    input.and_then(Schema::of).map_or_else(|| json!({}), |s| s.json)
}

/// Why a run did not begin, or is not known.
#[derive(Debug)]
pub(super) enum Refused {
    Unknown(String),
    Input(String),
    /// It is not in a state in which this could be done.
    Conflict(String),
    /// As many are at work as may be.
    Full(usize),
    Closing,
    Journal(String),
}

impl Refused {
    /// In words.
    pub(super) fn message(self) -> String {
        match self {
            Refused::Unknown(why) | Refused::Input(why) | Refused::Conflict(why) | Refused::Journal(why) => {
                why
            }
            Refused::Full(1) => {
                "another run is under way, and this server takes one at a time; try again later".into()
            }
            Refused::Full(most) => {
                format!("{most} runs are under way, and this server takes no more at a time; try again later")
            }
            Refused::Closing => "the server is shutting down".into(),
        }
    }
}

/// How a run is begun.
#[derive(Clone, Copy, Default)]
pub(super) struct How<'a> {
    /// The client sees replies as they grow.
    pub(super) streams: bool,
    /// Nobody waits for it: its client comes back for it.
    pub(super) background: bool,
    /// What the client calls the conversation that it belongs to.
    pub(super) context: Option<&'a str>,
    /// The span of the client's, as the header of that name.
    pub(super) traceparent: Option<&'a str>,
}

/// A run that has begun.
pub(super) struct Started {
    pub(super) run: String,
    /// What happens; the last tells the outcome, and then there are no more. Where some were left out because nobody took
    /// them in time, `skipped` says how many.
    pub(super) events: Receiver<Value>,
    pub(super) cancel: CancellationToken,
}

struct Run {
    pipeline: String,
    cancel: CancellationToken,
    /// For those who come to watch it later.
    watched: broadcast::Sender<Value>,
    /// What a client called the conversation that it belongs to.
    context: Option<String>,
    /// Whether the next server goes on with it.
    suspends: bool,
    /// When it began, came to wait, went on or ended: seconds since 1970.
    changed: i64,
    /// What the command line would print; `None` while it runs.
    outcome: Option<Value>,
}

/// Everything that requests share.
pub(super) struct Service {
    pipelines: BTreeMap<String, Arc<Pipeline>>,
    handlers: Handlers,
    limits: Limits,
    sources: Arc<Sources>,
    journal: Option<PathBuf>,
    lifetime: Duration,
    /// Those whose signed answers count.
    approvers: Approvers,
    /// Answers of callers to questions of runs that are here, or come back.
    answers: Answers,
    most: usize,
    closing: AtomicBool,
    /// Ends what the next server goes on with.
    suspend: CancellationToken,
    /// Where traces and metrics go.
    telemetry: Option<Telemetry>,
    /// Runs that have ended and of which traces and metrics are on their way.
    sending: AtomicUsize,
    log: Log,
    base: OnceLock<(String, bool)>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    known: HashMap<String, Run>,
    ended: VecDeque<String>,
    /// At work.
    running: usize,
    /// Waiting for somebody to approve a call, and nothing else.
    waiting: usize,
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

/// The place of a run among those that are under way.
struct Place {
    service: Arc<Service>,
    /// The run that has it.
    run: String,
    waits: bool,
}

impl Place {
    /// Whether the run does nothing but wait for an approval.
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

impl Drop for Place {
    fn drop(&mut self) {
        let mut runs = self.service.lock();
        let of = if self.waits { &mut runs.waiting } else { &mut runs.running };
        *of = of.saturating_sub(1);
    }
}

impl Service {
    /// Loads the pipelines of these files and looks up everything that they need.
    pub(super) fn new(
        ui: &Ui,
        files: &[String],
        world: &WorldArgs,
        journal: Option<&Path>,
        most: usize,
        settings: &Settings,
        log: Log,
    ) -> Result<Service, Exit> {
        let mut sources = Sources::new();
        let mut pipelines: BTreeMap<String, Arc<Pipeline>> = BTreeMap::new();
        for file in files {
            let loaded = load_or_say(ui, &mut sources, file, world.policy.as_deref())?;
            let Loaded { runnables, found, policy, .. } = loaded;
            ui.problems(&sources, &worth_saying(ui, found));
            for runnable in &runnables {
                run::before_run(ui, &sources, world, Kind::of(file), runnable, policy.as_ref())?;
            }
            let config = Arc::new(run::config_of(world.fuel, policy.as_ref()));
            for Runnable { name, code, input, .. } in runnables {
                let bound = super::cost::bound_of(settings, world.model.as_deref(), &code, input.is_some());
                let (file, config) = (file.clone(), config.clone());
                let pipeline = Pipeline { name: name.clone(), file, input, bound, code, config };
                let now = pipeline.file.clone();
                if let Some(other) = pipelines.insert(name.clone(), Arc::new(pipeline)) {
                    let message = format!(
                        "two pipelines are called `{name}`: that of `{}` and that of `{now}`",
                        other.file
                    );
                    return Err(ui.usage(&message, Some("rename one, or serve them by two servers")));
                }
            }
        }
        let codes: Vec<&Code> = pipelines.values().map(|p| &*p.code).collect();
        let (models, limits) = run::models_of(ui, world, settings, &codes)?;
        let mut handlers = run::handlers(models, settings, world.seed.unwrap_or(0));
        if world.python_tools {
            handlers.tools = handlers.tools.allowing_python();
        }
        handlers.stores = settings.fresh_stores();
        one_declaration_for_each_store(&pipelines, &handlers.stores).map_err(|e| ui.usage(&e, None))?;
        let journal = match journal {
            None => None,
            Some(dir) => {
                let file = super::journal_in(dir).and_then(|file| Journal::open(&file).map(|_| file));
                let file = file.map_err(|e| ui.usage(&e.message, e.help.as_deref()))?;
                Some(file)
            }
        };
        let telemetry = run::telemetry(ui, world, settings, "entail".into())?;
        Ok(Service {
            pipelines,
            telemetry,
            suspend: CancellationToken::new(),
            sending: AtomicUsize::new(0),
            log,
            handlers,
            limits,
            sources: Arc::new(sources),
            journal,
            lifetime: run::approval_lifetime(settings.limits.approval),
            approvers: settings.approvers.clone(),
            answers: Answers::default(),
            most: most.max(1),
            closing: AtomicBool::new(false),
            base: OnceLock::new(),
            runs: Mutex::default(),
        })
    }

    /// Where it listens, and whether it wants a token.
    pub(super) fn listens_at(&self, base: &str, token: bool) {
        let _ = self.base.set((base.trim_end_matches('/').to_string(), token));
    }

    pub(super) fn base(&self) -> &str {
        self.base.get().map_or("", |(base, _)| base)
    }

    pub(super) fn wants_token(&self) -> bool {
        self.base.get().is_some_and(|(_, token)| *token)
    }

    pub(super) fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.pipelines.values().map(|p| &**p)
    }

    pub(super) fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    /// How many runs are at work, and how many wait for an approval.
    pub(super) fn under_way(&self) -> (usize, usize) {
        let runs = self.lock();
        (runs.running, runs.waiting)
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // A panic while it was held leaves runs that are there or not there, never half.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of a pipeline from JSON.
    pub(super) fn read_input(&self, pipeline: &Pipeline, json: &Value) -> Result<Data, Refused> {
        let ty = pipeline.input.clone().unwrap_or(Type::Dyn);
        ty.read_input(json).map_err(|why| Refused::Input(format!("`{}` takes {ty}: {why}", pipeline.name)))
    }

    /// Begins a run.
    pub(super) fn start(
        self: &Arc<Self>,
        name: &str,
        input: &Value,
        how: How<'_>,
    ) -> Result<Started, Refused> {
        let Some(pipeline) = self.pipelines.get(name).cloned() else {
            return Err(Refused::Unknown(format!(
                "there is no pipeline `{}`",
                diagnostics::clip_to(name, 80)
            )));
        };
        let input = match (&pipeline.input, input) {
            (None, Value::Null) => None,
            _ => Some(self.read_input(&pipeline, input)?),
        };
        let place = self.place()?;
        let handlers = self.session(&pipeline, input.clone(), how)?;
        Ok(self.go(pipeline, input, handlers, how, place))
    }

    /// A run goes its way in a task of its own.
    fn go(
        self: &Arc<Self>,
        pipeline: Arc<Pipeline>,
        input: Option<Data>,
        handlers: Handlers,
        how: How<'_>,
        mut place: Place,
    ) -> Started {
        let handlers = Handlers { stream: how.streams, ..handlers };
        let run = handlers.run.clone().unwrap_or_default();
        place.run.clone_from(&run);
        let cancel = CancellationToken::new();
        let watched = broadcast::Sender::new(EVENTS);
        // What no journal keeps can't be gone on with.
        let suspends = how.background && self.journal.is_some();
        let entry = Run {
            pipeline: pipeline.name.clone(),
            cancel: cancel.clone(),
            watched: watched.clone(),
            context: how.context.map(str::to_string),
            suspends,
            changed: now(),
            outcome: None,
        };
        {
            let mut runs = self.lock();
            runs.ended.retain(|r| *r != run);
            runs.known.insert(run.clone(), entry);
        }
        let (send, events) = channel(EVENTS);
        let (service, id, stop) = (self.clone(), run.clone(), cancel.clone());
        let detail = if how.streams { Detail::Content } else { Detail::Outline };
        let mut telemetry =
            self.telemetry.as_ref().map(|t| t.another(pipeline.in_journal(), how.traceparent));
        tokio::spawn(async move {
            // Whatever happens to the task, the run is over then.
            let mut ending = Ending { service: &service, run: &id, outcome: None, place };
            let mut telling = Telling { to: send, watched, skipped: 0 };
            telling.tell(json!({"event": "run", "run": id, "pipeline": pipeline.name}));
            service.log.begun(&id, &pipeline.name);
            let machine = Machine::new(pipeline.code.clone(), input, pipeline.config.clone());
            // What is under way, and whether it is a question to somebody.
            let mut open: HashMap<RequestId, bool> = HashMap::new();
            let place = &mut ending.place;
            let records = handlers.models.redactor().for_records();
            let mut note = |event: Event| {
                let kept = records.event(&event);
                if let Some(telemetry) = &mut telemetry {
                    telemetry.note(&kept);
                }
                service.log.event(&id, &pipeline.name, &kept);
                let waits = matches!(event, Event::Asked { what: Asked::Approve { .. }, .. });
                match &event {
                    Event::Asked { id, .. } => drop(open.insert(*id, waits)),
                    Event::Answered { id, .. } => drop(open.remove(id)),
                    _ => {}
                }
                place.waits(service.journal.is_some() && !open.is_empty() && open.values().all(|asks| *asks));
                if let Some(json) = event_json(&event, detail) {
                    telling.tell(json);
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
            let report = tokio::select! {
                biased;
                report = runtime::run(machine, &handlers, &service.limits, &stop, &mut note) => Some(report),
                () = suspended => None,
            };
            let mut outcome = match &report {
                Some(report) => run::as_json(&service.sources, report, &pipeline.bound),
                None => json!({"run": id, "error": {
                    "code": "interrupted", "message": "the server is shutting down, and goes on with the run when it is there again",
                }}),
            };
            let mut kept = outcome.clone();
            records.json(&mut kept);
            service.log.ended(&id, &pipeline.name, &kept);
            service.sending.fetch_add(1, Ordering::SeqCst);
            ending.outcome = Some(outcome.clone());
            drop(ending);
            outcome["event"] = if outcome.get("error").is_some() { "error" } else { "result" }.into();
            telling.end(outcome).await;
            if let Some((telemetry, report)) = telemetry.zip(report)
                && let Err(why) = telemetry.send(&report).await
            {
                service.log.warning(&why);
            }
            service.sending.fetch_sub(1, Ordering::SeqCst);
        });
        Started { run, events, cancel }
    }

    /// Takes one of the places that runs have.
    fn place(self: &Arc<Self>) -> Result<Place, Refused> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(Refused::Closing);
        }
        let mut runs = self.lock();
        if runs.running >= self.most {
            return Err(Refused::Full(self.most));
        }
        runs.running += 1;
        Ok(Place { service: self.clone(), run: String::new(), waits: false })
    }

    /// Those who answer the requests of one run, with its name.
    fn session(&self, pipeline: &Pipeline, input: Option<Data>, how: How<'_>) -> Result<Handlers, Refused> {
        let Some(path) = &self.journal else {
            let mut handlers = self.handlers.clone();
            handlers.run = Some(runtime::new_run_id());
            return Ok(handlers);
        };
        let settings = json!({
            "seed": self.handlers.seed, "fuel": null, "background": how.background, "context": how.context,
        });
        let about = About::new(pipeline.in_journal(), &pipeline.code, input, settings);
        let journal = Journal::existing(path).map_err(|e| Refused::Journal(e.message))?;
        let session = journal
            .begin(&about, self.handlers.models.redactor())
            .map_err(|e| Refused::Journal(e.message))?;
        Ok(self.kept_in(session, path))
    }

    /// Those who answer the requests of a run that is kept.
    fn kept_in(&self, session: Session, path: &Path) -> Handlers {
        let mut handlers = self.handlers.clone();
        handlers.run = Some(session.id().to_string());
        handlers.seed = session.settings()["seed"].as_u64().unwrap_or(handlers.seed);
        let desk = ApprovalDesk::new(path, self.lifetime);
        let desk = desk.with_approvers(self.approvers.clone()).with_answers(self.answers.clone());
        handlers.desk = Some(desk);
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

    /// What the command line would print of a run that has ended.
    pub(super) fn outcome(&self, run: &str) -> Option<Value> {
        self.lock().known.get(run)?.outcome.clone()
    }

    /// How a run stands.
    pub(super) fn status(&self, run: &str) -> Result<Value, Refused> {
        let known = {
            let runs = self.lock();
            runs.known.get(run).map(|entry| (entry.pipeline.clone(), entry.outcome.clone()))
        };
        let Some((pipeline, outcome)) = known else { return self.kept_status(run) };
        let status = match &outcome {
            None => "running",
            Some(o) if o["error"]["code"] == "interrupted" => "interrupted",
            Some(o) if o.get("error").is_some() => "failed",
            Some(_) => "done",
        };
        let mut object = json!({"run": run, "pipeline": pipeline, "status": status});
        match outcome {
            Some(outcome) => object["outcome"] = outcome,
            None => {
                let waiting = self.waiting(run)?;
                if !waiting.is_empty() {
                    object["status"] = "waiting".into();
                    object["waiting"] = waiting.into();
                }
            }
        }
        Ok(object)
    }

    /// What happens in a run from now on; `None` if it is not known.
    pub(super) fn watch(&self, run: &str) -> Option<broadcast::Receiver<Value>> {
        Some(self.lock().known.get(run)?.watched.subscribe())
    }

    /// What a client called the conversation of a run.
    pub(super) fn context(&self, run: &str) -> Option<String> {
        if let Some(entry) = self.lock().known.get(run) {
            return entry.context.clone();
        }
        self.kept_context(run)
    }

    /// The runs that are known with the second since 1970 in which they last came to something else, the newest first.
    pub(super) fn runs(&self) -> Vec<(i64, String)> {
        let mut runs: Vec<(i64, String)> =
            self.lock().known.iter().map(|(run, entry)| (entry.changed, run.clone())).collect();
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs
    }

    /// When a run last came to something else.
    pub(super) fn changed(&self, run: &str) -> Option<i64> {
        if let Some(entry) = self.lock().known.get(run) {
            return Some(entry.changed);
        }
        self.kept_since(run)
    }

    /// What a run waits for somebody to approve.
    pub(super) fn waiting(&self, run: &str) -> Result<Vec<Value>, Refused> {
        let Some(path) = &self.journal else { return Ok(Vec::new()) };
        let waiting = self.journal_at(path).and_then(|j| j.waiting(Some(run)));
        let waiting = waiting.map_err(|e| Refused::Journal(e.message))?;
        Ok(waiting.iter().map(super::approve::waiting_json).collect())
    }

    /// The journal, with the approvers whose answers in it count.
    pub(super) fn journal_at(&self, path: &Path) -> Result<Journal, JournalError> {
        Ok(Journal::existing(path)?.with_approvers(self.approvers.clone()))
    }

    /// Answers a question of a run that is under way here, or that this server goes on with. The answer is in memory alone: after a restart it is
    /// asked again.
    pub(super) fn decide(
        &self,
        mut journal: Journal,
        request: &str,
        decision: &Decision,
        by: Decider,
    ) -> Result<(), JournalError> {
        let authority = Authority::Process { answers: &self.answers, by };
        journal.decide(request, decision, &authority)
    }

    /// Gives a run up.
    pub(super) fn cancel(&self, run: &str) -> Result<(), Refused> {
        if let Some(entry) = self.lock().known.get(run) {
            entry.cancel.cancel();
            return Ok(());
        }
        self.kept_status(run)?;
        Err(Refused::Conflict("the run is not under way".into()))
    }

    /// Takes no more runs, and gives those at work some time. What the next server can go on with is left then as it is, and the rest is cancelled.
    pub(super) async fn close(&self, grace: Duration) {
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
        // What was done is told, unless nobody is there to be told.
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
    Refused::Unknown(format!("there is no run `{}` here", diagnostics::clip_to(run, 80)))
}

/// Notes the end of a run, also that of one whose task was dropped or panicked.
struct Ending<'a> {
    service: &'a Service,
    run: &'a str,
    outcome: Option<Value>,
    place: Place,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let lost = || json!({"run": self.run, "error": {"code": "cancelled", "message": "the run was lost"}});
        self.service.ended(self.run, self.outcome.take().unwrap_or_else(lost));
    }
}
