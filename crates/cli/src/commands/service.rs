//! The pipelines and runs of a server, however it is reached.

use super::{load_or_say, run, worth_saying};
use crate::args::WorldArgs;
use crate::load::{Loaded, Runnable};
use crate::progress::{Detail, event_json};
use crate::settings::Settings;
use crate::ui::{Exit, Ui};
use check::cost::{self, CostBound};
use core_ir::{Code, Data, Type};
use diagnostics::Sources;
use machine::{Config, Machine};
use runtime::{About, ApprovalDesk, Asked, CancellationToken, Event, Handlers, Journal, Limits, Schema};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, Sender, channel};
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
    config: Config,
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
    Full,
    Closing,
    Journal(String),
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
    most: usize,
    closing: AtomicBool,
    base: OnceLock<String>,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    known: HashMap<String, Run>,
    ended: VecDeque<String>,
    running: usize,
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
    ) -> Result<Service, Exit> {
        let mut sources = Sources::new();
        let mut pipelines: BTreeMap<String, Arc<Pipeline>> = BTreeMap::new();
        for file in files {
            let loaded = load_or_say(ui, &mut sources, file, world.policy.as_deref())?;
            let Loaded { runnables, found, policy } = loaded;
            ui.problems(&sources, &worth_saying(ui, found));
            let config = run::config_of(world.fuel, policy.as_ref(), world.model.as_deref());
            for Runnable { name, code, input, .. } in runnables {
                let bound = cost::bound(&code, input.is_some());
                let (file, config) = (file.clone(), config.clone());
                let pipeline = Pipeline { name: name.clone(), file, input, bound, code, config };
                if pipelines.insert(name.clone(), Arc::new(pipeline)).is_some() {
                    let help = "serve them by two servers";
                    return Err(ui.usage(&format!("two pipelines are called `{name}`"), Some(help)));
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
        let journal = match journal {
            None => None,
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(|e| {
                    ui.usage(&format!("cannot make the directory `{}`: {e}", dir.display()), None)
                })?;
                let file = runtime::journal_file(dir);
                Journal::open(&file).map_err(|e| ui.usage(&e.message, e.help.as_deref()))?;
                Some(file)
            }
        };
        Ok(Service {
            pipelines,
            handlers,
            limits,
            sources: Arc::new(sources),
            journal,
            lifetime: run::approval_lifetime(settings.limits.approval),
            most: most.max(1),
            closing: AtomicBool::new(false),
            base: OnceLock::new(),
            runs: Mutex::default(),
        })
    }

    pub(super) fn listens_at(&self, base: &str) {
        let _ = self.base.set(base.trim_end_matches('/').to_string());
    }

    pub(super) fn base(&self) -> &str {
        self.base.get().map_or("", String::as_str)
    }

    pub(super) fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.pipelines.values().map(|p| &**p)
    }

    pub(super) fn journal(&self) -> Option<&Path> {
        self.journal.as_deref()
    }

    pub(super) fn running(&self) -> usize {
        self.lock().running
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // A panic while it was held leaves runs that are there or not there, never half.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The input of a pipeline from JSON.
    pub(super) fn read_input(&self, pipeline: &Pipeline, json: &Value) -> Result<Data, Refused> {
        let ty = pipeline.input.clone().unwrap_or(Type::Dyn);
        let wrong = |why: String| Refused::Input(format!("`{}` takes {ty}: {why}", pipeline.name));
        let data = ty.read(json).map_err(|e| wrong(e.to_string()))?;
        ty.check(&data).map_err(|(path, cause)| wrong(format!("{path}: {cause}")))?;
        Ok(data)
    }

    /// Begins a run.
    pub(super) fn start(
        self: &Arc<Self>,
        name: &str,
        input: &Value,
        streams: bool,
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
        self.begin()?;
        let begun = self.session(&pipeline, input.clone());
        let handlers = match begun {
            Ok(handlers) => Handlers { stream: streams, ..handlers },
            Err(refused) => {
                self.lock().running -= 1;
                return Err(refused);
            }
        };
        let run = handlers.run.clone().unwrap_or_default();
        let cancel = CancellationToken::new();
        let watched = broadcast::Sender::new(EVENTS);
        let entry = Run {
            pipeline: pipeline.name.clone(),
            cancel: cancel.clone(),
            watched: watched.clone(),
            context: None,
            outcome: None,
        };
        self.lock().known.insert(run.clone(), entry);
        let (send, events) = channel(EVENTS);
        let (service, id, stop) = (self.clone(), run.clone(), cancel.clone());
        tokio::spawn(async move {
            // Whatever happens to the task, the run is over then.
            let mut ending = Ending { service: &service, run: &id, outcome: None };
            let mut telling = Telling { to: send, watched, skipped: 0 };
            telling.tell(json!({"event": "run", "run": id, "pipeline": pipeline.name}));
            let machine = Machine::new(pipeline.code.clone(), input, pipeline.config.clone());
            let mut note = |event: Event| {
                if let Some(json) =
                    event_json(&event, if streams { Detail::Content } else { Detail::Outline })
                {
                    let waits = matches!(event, Event::Asked { what: Asked::Approve { .. }, .. });
                    telling.tell(json);
                    if waits && service.journal.is_some() {
                        telling.tell(json!({"event": "waiting", "run": id}));
                    }
                }
            };
            let report = runtime::run(machine, &handlers, &service.limits, &stop, &mut note).await;
            let mut outcome = run::as_json(&service.sources, &report, &pipeline.bound);
            ending.outcome = Some(outcome.clone());
            drop(ending);
            outcome["event"] = if outcome.get("error").is_some() { "error" } else { "result" }.into();
            telling.end(outcome).await;
        });
        Ok(Started { run, events, cancel })
    }

    /// Takes one of the places that runs have.
    fn begin(&self) -> Result<(), Refused> {
        if self.closing.load(Ordering::SeqCst) {
            return Err(Refused::Closing);
        }
        let mut runs = self.lock();
        if runs.running >= self.most {
            return Err(Refused::Full);
        }
        runs.running += 1;
        Ok(())
    }

    /// Those who answer the requests of one run, with its name.
    fn session(&self, pipeline: &Pipeline, input: Option<Data>) -> Result<Handlers, Refused> {
        let mut handlers = self.handlers.clone();
        let Some(path) = &self.journal else {
            handlers.run = Some(runtime::new_run_id());
            return Ok(handlers);
        };
        let name = format!("{} {}", pipeline.file, pipeline.name);
        let settings = json!({"seed": handlers.seed, "fuel": null});
        let about = About::new(name, &pipeline.code, input, settings);
        let journal = Journal::existing(path).map_err(|e| Refused::Journal(e.message))?;
        let session =
            journal.begin(&about, handlers.models.redactor()).map_err(|e| Refused::Journal(e.message))?;
        handlers.run = Some(session.id().to_string());
        handlers.desk = Some(ApprovalDesk::new(path, self.lifetime));
        handlers.journal = Some(Arc::new(Mutex::new(session)));
        Ok(handlers)
    }

    fn ended(&self, run: &str, outcome: Value) {
        let mut runs = self.lock();
        runs.running -= 1;
        if let Some(entry) = runs.known.get_mut(run) {
            entry.outcome = Some(outcome);
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
        let (pipeline, outcome) = {
            let runs = self.lock();
            let Some(entry) = runs.known.get(run) else { return Err(no_run(run)) };
            (entry.pipeline.clone(), entry.outcome.clone())
        };
        let status = match &outcome {
            None => "running",
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

    /// Notes what a client calls the conversation of a run.
    pub(super) fn put_in_context(&self, run: &str, context: &str) {
        if let Some(entry) = self.lock().known.get_mut(run) {
            entry.context = Some(context.to_string());
        }
    }

    /// What a client called the conversation of a run.
    pub(super) fn context(&self, run: &str) -> Option<String> {
        self.lock().known.get(run)?.context.clone()
    }

    /// The runs that are known, the newest first.
    pub(super) fn runs(&self) -> Vec<String> {
        let mut runs: Vec<String> = self.lock().known.keys().cloned().collect();
        // Their names begin with the time.
        runs.sort_unstable_by(|a, b| b.cmp(a));
        runs
    }

    /// What a run waits for somebody to approve.
    pub(super) fn waiting(&self, run: &str) -> Result<Vec<Value>, Refused> {
        let Some(path) = &self.journal else { return Ok(Vec::new()) };
        let waiting = Journal::existing(path).and_then(|j| j.waiting(Some(run)));
        let waiting = waiting.map_err(|e| Refused::Journal(e.message))?;
        Ok(waiting.iter().map(super::approve::waiting_json).collect())
    }

    /// Gives a run up.
    pub(super) fn cancel(&self, run: &str) -> Result<(), Refused> {
        match self.lock().known.get(run) {
            None => Err(no_run(run)),
            Some(entry) => {
                entry.cancel.cancel();
                Ok(())
            }
        }
    }

    /// Takes no more runs, gives those under way some time, and then cancels them.
    pub(super) async fn close(&self, grace: Duration) {
        self.closing.store(true, Ordering::SeqCst);
        let until = Instant::now() + grace;
        while self.running() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for run in self.lock().known.values() {
            run.cancel.cancel();
        }
        while self.running() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn no_run(run: &str) -> Refused {
    Refused::Unknown(format!("there is no run `{}` here", diagnostics::clip_to(run, 80)))
}

/// Tells a client what happens, without ever waiting for it: no client slows a run down or makes the server keep what it does not read.
struct Telling {
    to: Sender<Value>,
    /// Others, who miss what they do not take in time.
    watched: broadcast::Sender<Value>,
    /// How many events were left out since the last that was told.
    skipped: u64,
}

impl Telling {
    fn tell(&mut self, event: Value) {
        if self.watched.receiver_count() > 0 {
            let _ = self.watched.send(event.clone());
        }
        // Two places: what was left out is said first. Nobody may listen any more: fine.
        if self.skipped > 0 {
            if self.to.capacity() < 2 {
                self.skipped += 1;
                return;
            }
            let _ = self.to.try_send(skipped(std::mem::take(&mut self.skipped)));
        }
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(_)) = self.to.try_send(event) {
            self.skipped += 1;
        }
    }

    /// The last event is told in any case; the run is over, so there is time for it.
    async fn end(self, event: Value) {
        let _ = self.watched.send(event.clone());
        if self.skipped > 0 {
            let _ = self.to.send(skipped(self.skipped)).await;
        }
        let _ = self.to.send(event).await;
    }
}

fn skipped(events: u64) -> Value {
    json!({"event": "skipped", "events": events})
}

/// Notes the end of a run, also that of one whose task was dropped or panicked.
struct Ending<'a> {
    service: &'a Service,
    run: &'a str,
    outcome: Option<Value>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let lost = || json!({"run": self.run, "error": {"code": "cancelled", "message": "the run was lost"}});
        self.service.ended(self.run, self.outcome.take().unwrap_or_else(lost));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_told_what_it_missed_and_how_it_ended() {
        let (to, mut events) = channel(4);
        let mut telling = Telling { to, watched: broadcast::Sender::new(1), skipped: 0 };
        for n in 0..100 {
            telling.tell(json!({"event": "text", "n": n}));
        }
        assert_eq!(events.len(), 4);
        // It reads a little, and is told from then on.
        for n in 0..3 {
            assert_eq!(events.recv().await.unwrap()["n"], n);
        }
        telling.tell(json!({"event": "text", "n": 100}));
        telling.tell(json!({"event": "text", "n": 101}));
        telling.tell(json!({"event": "text", "n": 102}));
        let end = tokio::spawn(telling.end(json!({"event": "result"})));
        let mut rest = Vec::new();
        while let Some(event) = events.recv().await {
            rest.push(event);
        }
        end.await.unwrap();
        let want = json!([
            {"event": "text", "n": 3}, {"event": "skipped", "events": 96}, {"event": "text", "n": 100},
            {"event": "text", "n": 101}, {"event": "skipped", "events": 1}, {"event": "result"},
        ]);
        assert_eq!(Value::from(rest), want);
    }

    #[tokio::test]
    async fn who_has_left_is_not_waited_for() {
        let (to, events) = channel(1);
        drop(events);
        let mut telling = Telling { to, watched: broadcast::Sender::new(1), skipped: 0 };
        for _ in 0..10 {
            telling.tell(json!({"event": "text"}));
        }
        telling.end(json!({"event": "result"})).await;
    }
}
