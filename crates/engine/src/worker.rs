//! A worker: the programs that the engine has runs of done here.
//!
//! Entry points: [`Worker::add`] and [`Worker::serve`].
//!
//! Invariant: a run ends on the program and the policy that it began with. With others it waits.
//! Invariant: the seed, the limit of time and the time in which questions can be answered are those of the
//! first attempt.

use crate::attempt::{Attempt, Over, question_key};
use crate::endpoint;
use crate::error::Error;
use crate::identity::IdentityKeys;
use crate::manifest::{ANSWER, RUN, Workflow};
use crate::questions;
use analysis::cost::CostBound;
use bytes::Bytes;
use diagnostics::Sources;
use entries::input::InputError;
use hyper::body::Incoming;
use machine::StopReason;
use policy::Policy;
use restate_sdk_shared_core::CoreVM;
use runtime::{Approvers, CancellationToken, EngineRun, Limits, Models, Unfinished};
use serde_json::{Value as Json, json};
use session::load::{Loaded, Runnable};
use session::report::as_json;
use session::view::withheld;
use session::{Approvals, EndedRun, EngineStart, JournalMode, JournalOptions, RunSpec, Session};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::mpsc::UnboundedSender;

/// Time after which the engine tries again a run that waits for other settings or another program.
const HELD: Duration = Duration::from_secs(30);

/// Code of the failure of a run whose program failed.
const FAILED: u16 = 500;

/// Code of the failure of a run that was canceled.
const CANCELED: u16 = 409;

/// Options of a worker.
pub struct WorkerOptions {
    /// Models of all programs.
    pub models: Models,
    /// Limits of a run.
    pub limits: Limits,
    /// Approvers whose signed answers count.
    pub approvers: Approvers,
    /// Time in which a question can be answered.
    pub lifetime: Duration,
    /// Treatment of calls that an earlier attempt has begun and that may have changed the world.
    pub unfinished: Unfinished,
    /// Keys of the engines that may call the worker.
    pub identity: IdentityKeys,
    /// Called with a line for each run that ends or waits for somebody.
    pub log: Box<dyn Fn(&str) + Send + Sync>,
}

/// An entry point of a program, which is a workflow of the engine.
struct Program {
    runnable: Runnable,
    policy: Option<Policy>,
    bound: CostBound,
    file: String,
    digest: String,
}

/// Work of an invocation.
#[derive(Clone)]
pub(crate) enum Work {
    /// A run of a workflow.
    Run(String),
    /// It passes the answer to a question on.
    Answer,
}

/// The programs that runs are done of, and how.
pub struct Worker {
    session: Session,
    sources: Sources,
    programs: BTreeMap<String, Program>,
    options: WorkerOptions,
}

/// Name of the workflow for an entry point of a file.
pub fn service_name(file: &str, entry: &str) -> String {
    let stem = Path::new(file).file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let word = |text: &str| text.chars().map(plain).collect::<String>();
    format!("entail.{}.{}", word(&stem), word(entry))
}

impl Worker {
    /// A worker without programs. The sources are those of the programs that will be added.
    pub fn new(session: Session, sources: Sources, options: WorkerOptions) -> Worker {
        Worker { session, sources, programs: BTreeMap::new(), options }
    }

    /// Adds the entry points of a file.
    ///
    /// # Errors
    /// Another one has the same name.
    pub fn add(&mut self, file: &str, loaded: Loaded) -> Result<(), Error> {
        for runnable in loaded.runnables {
            let name = service_name(file, &runnable.name);
            let policy = loaded.policy.clone();
            let text = core_ir::print_code(&runnable.code);
            let mut hash = Sha256::new();
            hash.update(text.len().to_le_bytes());
            hash.update(&text);
            hash.update(policy.as_ref().map(Policy::text).unwrap_or_default());
            let digest = runtime::hex(&hash.finalize());
            let bound = self.session.bound(&runnable.code, runnable.input.is_some());
            let program = Program { runnable, policy, bound, file: file.to_string(), digest };
            if let Some(other) = self.programs.insert(name.clone(), program) {
                let message =
                    format!("two programs are the workflow `{name}`: `{}` and `{file}`", other.file);
                return Err(Error::new(message).with_help("rename one, or start a worker for each"));
            }
        }
        Ok(())
    }

    pub(crate) fn identity(&self) -> &IdentityKeys {
        &self.options.identity
    }

    /// Names of the workflows.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.programs.keys().map(String::as_str)
    }

    pub(crate) fn workflows(&self) -> impl Iterator<Item = Workflow<'_>> {
        self.programs.iter().map(|(name, p)| Workflow { name, input: p.runnable.input.as_ref() })
    }

    pub(crate) fn handler(&self, service: &str, handler: &str) -> Option<Work> {
        self.programs.get(service)?;
        match handler {
            RUN => Some(Work::Run(service.to_string())),
            ANSWER => Some(Work::Answer),
            _ => None,
        }
    }

    /// Serves until it is told to stop.
    pub async fn serve(self: Arc<Worker>, listener: TcpListener, stop: CancellationToken) {
        endpoint::serve(self, listener, stop).await;
    }

    /// Does one attempt.
    pub(crate) async fn work(
        self: Arc<Worker>,
        work: Work,
        vm: CoreVM,
        input: Incoming,
        output: UnboundedSender<Bytes>,
    ) {
        let Ok((attempt, input)) = Attempt::open(vm, input, output).await else { return };
        // However it is over, the engine knows.
        let _ = match work {
            Work::Run(name) => self.run(&name, attempt, &input).await,
            Work::Answer => self.answer(attempt, &input).await,
        };
    }

    async fn run(&self, name: &str, mut attempt: Attempt, input: &[u8]) -> Result<(), Over> {
        let Some(program) = self.programs.get(name) else { return Ok(()) };
        let start = Start::of(self, program);
        let start = attempt.durable("begin", || start.to_json().to_string()).await?;
        let Some(start) = Start::from_json(&start) else {
            attempt.hold("the start of the run can't be read".into(), HELD);
            return Ok(());
        };
        if start.digest != program.digest {
            let message = format!(
                "the program or its policy has changed since the run began (help: start a worker with those of `{}` that it began with, or cancel it)",
                program.file
            );
            attempt.hold(message, HELD);
            return Ok(());
        }
        let text = (!input.is_empty()).then(|| String::from_utf8_lossy(input));
        let input = match entries::input::read(&program.runnable, text.as_deref()) {
            Ok(input) => input,
            Err(InputError::Missing(message, _) | InputError::Wrong(message, _)) => {
                attempt.end(Err((400, format!("error[input]: {message}"))));
                return Ok(());
            }
        };
        attempt.begin(start.scope, start.created);
        let (key, over) = (attempt.key.clone(), attempt.over());
        let attempt = Arc::new(Mutex::new(attempt));
        let run = EngineRun {
            engine: attempt.clone(),
            approvers: self.options.approvers.clone(),
            lifetime: start.lifetime,
            unfinished: self.options.unfinished,
        };
        let mode = JournalMode::Engine(EngineStart { run, seed: start.seed, fuel: start.fuel });
        let prepared = self.session.prepare(RunSpec {
            code: &program.runnable.code,
            policy: program.policy.as_ref(),
            input,
            request: None,
            plan: None,
            name: format!("{} {}", program.file, program.runnable.name),
            journal: Some(JournalOptions { mode, approvals: Approvals::Wait }),
            models: self.options.models.clone(),
            limits: Limits { timeout: start.timeout, ..self.options.limits.clone() },
            approver: None,
            stream: false,
            follows: None,
            sources: None,
        });
        let lock = || attempt.lock().unwrap_or_else(PoisonError::into_inner);
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(e) => {
                lock().hold(e.to_string(), HELD);
                return Ok(());
            }
        };
        let (cancel, mut events) = (CancellationToken::new(), |_: session::RunEvent<'_>| {});
        let ended = tokio::select! {
            ended = prepared.run(&cancel, &mut events) => ended,
            () = over.cancelled() => return Err(Over),
        };
        self.end(program, &key, &mut lock(), &ended);
        if let Some(telemetry) = ended.telemetry
            && let Err(why) = telemetry.send(&ended.ran.report).await
        {
            (self.options.log)(&format!("warning: {why}"));
        }
        Ok(())
    }

    /// Writes how a run ended.
    fn end(&self, program: &Program, key: &str, attempt: &mut Attempt, ended: &EndedRun) {
        let shown = ended.ran.shown();
        let mut outcome = match &shown {
            Some(report) => as_json(&self.sources, report, &program.bound),
            None => withheld(key),
        };
        self.options.models.redactor().for_records().json(&mut outcome);
        let log = |what: &str| (self.options.log)(&format!("{}  {key}  {what}", program.file));
        let Some(error) = outcome.get("error") else {
            log("done");
            return attempt.end(Ok(outcome.to_string()));
        };
        let text = |name: &str| error[name].as_str().unwrap_or_default();
        let message = format!("error[{}]: {}", text("code"), text("message"));
        let stopped = ended.report().result.as_ref().err().and_then(|f| f.stopped);
        if is_curable(stopped) {
            log(&format!("waits: {message}"));
            return attempt.hold(message, HELD);
        }
        log(&message);
        attempt.set_state(OUTCOME.into(), outcome.to_string());
        let canceled = stopped == Some(StopReason::Interrupted);
        attempt.end(Err((if canceled { CANCELED } else { FAILED }, message)));
    }

    /// Passes the answer to a question on to its run, if an approver has signed it.
    async fn answer(&self, mut attempt: Attempt, input: &[u8]) -> Result<(), Over> {
        let answer = String::from_utf8_lossy(input).into_owned();
        let json: Json = serde_json::from_str(&answer).unwrap_or_default();
        let token = json["token"].as_str().unwrap_or_default().to_string();
        let question = attempt.state(question_key(&token)).await?;
        let result = match question.as_deref().and_then(questions::read) {
            None => Err((404, "unknown question; the run may have moved on".to_string())),
            Some(question) => match question.check(&answer, &self.options.approvers) {
                Err(why) => Err((403, format!("the answer counts for nothing: {}", why.as_str()))),
                Ok(()) => match attempt.answer(token, answer).await? {
                    true => Ok("{}".to_string()),
                    false => Err((CANCELED, "the question has been answered already".to_string())),
                },
            },
        };
        attempt.end(result);
        Ok(())
    }
}

/// Key of the outcome of a failed run in the state of its workflow.
pub(crate) const OUTCOME: &str = "outcome";

/// Returns whether a run goes on if somebody changes the settings or the program, or sees to something.
fn is_curable(stopped: Option<StopReason>) -> bool {
    matches!(
        stopped,
        Some(StopReason::Budget | StopReason::Unfinished | StopReason::Journal | StopReason::Configuration)
    )
}

/// The start of a run, the same in every attempt.
struct Start {
    digest: String,
    seed: u64,
    fuel: Option<u64>,
    timeout: Option<Duration>,
    lifetime: Duration,
    created: i64,
    scope: String,
}

impl Start {
    fn of(worker: &Worker, program: &Program) -> Start {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = &worker.session.options;
        Start {
            digest: program.digest.clone(),
            seed: run.seed.unwrap_or(0),
            fuel: run.fuel,
            timeout: worker.options.limits.timeout,
            lifetime: worker.options.lifetime,
            created: i64::try_from(now.as_millis()).unwrap_or(i64::MAX),
            scope: runtime::new_run_id(),
        }
    }

    fn to_json(&self) -> Json {
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        json!({
            "program": self.digest, "seed": self.seed, "fuel": self.fuel, "timeout": self.timeout.map(millis),
            "approval": millis(self.lifetime), "created": self.created, "scope": self.scope,
        })
    }

    fn from_json(text: &str) -> Option<Start> {
        let json: Json = serde_json::from_str(text).ok()?;
        let text = |name: &str| json.get(name)?.as_str().map(String::from);
        let millis = |name: &str| json.get(name)?.as_u64().map(Duration::from_millis);
        Some(Start {
            digest: text("program")?,
            seed: json.get("seed")?.as_u64()?,
            fuel: json.get("fuel")?.as_u64(),
            timeout: millis("timeout"),
            lifetime: millis("approval")?,
            created: json.get("created")?.as_i64()?,
            scope: text("scope")?,
        })
    }
}
