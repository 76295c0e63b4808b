//! Building a run: machine, handlers, journal, view and telemetry out of settings, options and a program.
//!
//! Entry points: [`Session::new`], then [`Session::prepare`] and [`PreparedRun::run`]. A driver with many
//! runs takes the parts: [`Session::models`], [`Session::handlers`], [`machine_config`].

use crate::bound::{Pricing, of_run};
use crate::error::Error;
use crate::kept;
use crate::limits::approval_lifetime;
use crate::live::LiveReplies;
use crate::load::{self, Kind, Runnable};
use crate::preflight::{Gate, Refusal};
use crate::settings::Settings;
use crate::view::{Ran, View};
use ::policy::Policy;
use analysis::cost::CostBound;
use core_ir::{Code, Data, LabelSpec};
use diagnostics::Sources;
use entries::machine_config;
use machine::{Config, Machine};
use runtime::{
    AFTER_RUN, ApprovalDesk, Approver, CancellationToken, ConfigError, EngineRun, Event, Handlers, History,
    Journal, JournalError, JournalPlace, Limits, ModelSettings, Models, POLICY_TEXT, Pins, Redactor,
    RunIdentity, RunReport, Telemetry, TelemetryOptions, Tools, Unfinished,
};
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Options of a driver that runs programs. What is absent comes from the settings.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The model of calls that name none.
    pub model: Option<String>,
    /// A file of scripted replies, instead of any model, and of results of tools.
    pub script: Option<PathBuf>,
    /// The policy file.
    pub policy: Option<PathBuf>,
    /// Seed of random choices.
    pub seed: Option<u64>,
    /// The most evaluation steps.
    pub fuel: Option<u64>,
    /// True if each label is kept with its origin.
    pub explain_flow: bool,
    /// True if functions of a Python project run as its tools.
    pub python_tools: bool,
    /// True if a program runs although one of its calls is refused every time.
    pub run_refused: bool,
    /// Endpoint of OpenTelemetry for traces and metrics, instead of that of the environment.
    pub otlp: Option<String>,
}

/// Settings and options from which runs are built.
#[derive(Debug)]
pub struct Session {
    /// `entail.toml`, `.env` and the environment.
    pub settings: Settings,
    /// Options of the driver.
    pub options: RunOptions,
}

/// A program and its input, with what a driver adds to the settings for this run.
#[derive(Debug)]
pub struct RunSpec<'a> {
    /// The term.
    pub code: &'a Arc<Code>,
    /// The policy that is applied to the term.
    pub policy: Option<&'a Policy>,
    /// The input. A run that is resumed or replayed has its own.
    pub input: Option<Data>,
    /// Text of the request that a plan fulfills, for `among = "request"`. A run that is resumed or replayed
    /// has its own.
    pub request: Option<Arc<str>>,
    /// Text of the plan, if it was written for the request. The journal keeps it.
    pub plan: Option<Arc<str>>,
    /// Name of the run in journals and telemetry.
    pub name: String,
    /// Journal that records or supplies the answers.
    pub journal: Option<JournalOptions>,
    /// The models; see [`Session::models`].
    pub models: Models,
    /// Limits of the run.
    pub limits: Limits,
    /// Approver who is asked at once about calls that need approval.
    pub approver: Option<Approver>,
    /// True if replies are reported as they grow.
    pub stream: bool,
    /// Earlier runs for the same request, whose answers this run reuses.
    pub follows: Option<Follows>,
    /// Files of the program, for views of the run in its journal ([`crate::kept`]). `None` keeps no program.
    pub sources: Option<&'a Sources>,
}

/// Earlier runs for the same request: plans that ended with an error.
#[derive(Clone, Debug)]
pub struct Follows {
    /// Their answers. The run adds its own.
    pub history: Arc<Mutex<History>>,
    /// The last of them; `None` if there was none yet.
    pub after: Option<String>,
}

/// Use of a journal by one run.
#[derive(Clone, Debug)]
pub struct JournalOptions {
    /// Recording, resumption or replay.
    pub mode: JournalMode,
    /// Handling of calls that need an approval and have no approver.
    pub approvals: Approvals,
}

/// Use of a journal by a run.
#[derive(Clone, Debug)]
pub enum JournalMode {
    /// Keeps nothing.
    Off,
    /// Keeps every answer in this file; an earlier recording of the same run is replaced.
    Record(PathBuf),
    /// Takes every answer from a recording and makes no request.
    Replay {
        /// The recording, or a journal.
        place: JournalPlace,
        /// The run; the latest one of the name if absent.
        run: Option<String>,
    },
    /// Begins a run in this journal.
    Begin(JournalPlace),
    /// Resumes a run of a journal.
    Resume {
        /// The journal.
        place: JournalPlace,
        /// The beginning of the run's identifier.
        run: String,
        /// True if the program may have changed, as far as it asks the same.
        allow_changed: bool,
        /// Treatment of calls that were in flight and may have changed the world.
        unfinished: Unfinished,
    },
    /// An engine keeps the answers.
    Engine(EngineStart),
}

/// A run whose answers an engine keeps, as it was begun there.
#[derive(Clone, Debug)]
pub struct EngineStart {
    /// The engine, and what the run needs beside it.
    pub run: EngineRun,
    /// Seed of random choices.
    pub seed: u64,
    /// The most evaluation steps.
    pub fuel: Option<u64>,
}

impl JournalMode {
    /// Returns whether all answers come from a recording.
    pub fn is_replay(&self) -> bool {
        matches!(self, JournalMode::Replay { .. })
    }

    /// Returns whether what happens is written.
    fn writes(&self) -> bool {
        !matches!(self, JournalMode::Off | JournalMode::Replay { .. } | JournalMode::Engine(_))
    }

    /// The journal in which questions wait for an answer; `None` if they can't.
    fn waiting_room(&self) -> Option<&JournalPlace> {
        match self {
            JournalMode::Begin(place) | JournalMode::Resume { place, .. } => Some(place),
            JournalMode::Off
            | JournalMode::Record(_)
            | JournalMode::Replay { .. }
            | JournalMode::Engine(_) => None,
        }
    }
}

/// Handling of calls that need an approval and have no approver. Without a journal they are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    /// The run waits for an answer in its journal.
    #[default]
    Wait,
    /// The run ends, and is resumed after the answer.
    Leave,
    /// They are refused.
    Refuse,
}

/// An event of a run, in two views.
#[derive(Clone, Copy, Debug)]
pub struct RunEvent<'a> {
    /// Everything, for records: secrets of the settings are replaced.
    pub kept: &'a Event,
    /// The event as far as the policy lets the local user see it; `None` if it is withheld.
    pub shown: Option<&'a Event>,
    /// Takes secrets out of what is recorded.
    pub records: &'a Redactor,
}

/// A run that is ready to start.
pub struct PreparedRun {
    machine: Machine,
    handlers: Handlers,
    limits: Limits,
    view: View,
    telemetry: Option<Telemetry>,
    run: String,
    /// Replies that arrive, for pages that show the run.
    live: Option<LiveReplies>,
    /// True if the run has an input.
    pub has_input: bool,
    /// True if questions wait in the journal for an answer from elsewhere.
    pub waits_in_journal: bool,
}

/// A run that has ended, with the telemetry that is to be sent.
pub struct EndedRun {
    /// The outcome, with the local user's view of it.
    pub ran: Ran,
    /// Traces and metrics to send, if there is an endpoint.
    pub telemetry: Option<Telemetry>,
}

impl Session {
    /// A session of these settings and options.
    pub fn new(settings: Settings, options: RunOptions) -> Session {
        Session { settings, options }
    }

    /// Loads what can be run in a file, with the policy of the options or of the settings.
    ///
    /// # Errors
    /// The file or the policy can't be read, or is wrong.
    pub fn load(
        &self,
        sources: &mut diagnostics::Sources,
        path: &str,
    ) -> Result<load::Loaded, load::Problem> {
        load::load(sources, path, &self.settings.loading(self.options.policy.as_deref()))
    }

    /// The models that options and settings name.
    pub fn model_settings(&self) -> ModelSettings {
        ModelSettings {
            script: self.options.script.clone(),
            ..self.settings.model_settings(self.options.model.as_deref())
        }
    }

    /// Models that no program has been checked against.
    ///
    /// # Errors
    /// The settings of a model can't be used.
    pub fn any_models(&self) -> Result<Models, ConfigError> {
        Models::new(self.model_settings(), self.settings.environment.clone())
    }

    /// Models that can answer all calls of these programs.
    ///
    /// # Errors
    /// A model is missing or can't be used. [`ConfigError::local_model_missing`] tells whether fetching the
    /// embedded model is enough.
    pub fn models(&self, codes: &[&Code]) -> Result<Models, ConfigError> {
        let models = self.any_models()?;
        for code in codes {
            models.check(code)?;
        }
        Ok(models)
    }

    /// These tools with the results of the script, if there is one.
    fn scripted(&self, tools: &Tools) -> Option<Result<Tools, ConfigError>> {
        Some(tools.clone().with_script(self.options.script.as_deref()?))
    }

    /// The tools, as settings and options say.
    pub fn tools(&self) -> Tools {
        let tools = self.settings.tools();
        let tools = if self.options.python_tools { tools.allowing_python() } else { tools };
        self.scripted(&tools).and_then(Result::ok).unwrap_or(tools)
    }

    /// Handlers of requests: these models, and the tools and stores of the settings.
    pub fn handlers(&self, models: Models) -> Handlers {
        let mut handlers = Handlers::new(models);
        handlers.tools = self.tools();
        handlers.stores = self.settings.fresh_stores();
        handlers.seed = self.options.seed.unwrap_or(0);
        handlers
    }

    /// Checks that a program can run as it is set up, before its first request. A replay needs no check,
    /// because it makes no requests.
    ///
    /// # Errors
    /// Everything that keeps it from running.
    pub fn preflight(&self, kind: Kind, runnable: &Runnable, policy: Option<&Policy>) -> Result<(), Refusal> {
        // A script that can't be used says so when the models are made, before anything is asked. It is no
        // reason to look for the handlers of tools that it may have results of.
        if self.scripted(&self.settings.tools()).is_some_and(|tools| tools.is_err()) {
            return Ok(());
        }
        let gate = Gate {
            tools: &self.tools(),
            stores: &self.settings.fresh_stores(),
            routes: &self.model_settings().routes(&self.settings.environment),
            refusals: self.options.run_refused,
        };
        gate.check(kind, runnable, policy)
    }

    /// The cost bound of a run, with the models and prices of the settings.
    pub fn bound(&self, code: &Arc<Code>, has_input: bool) -> CostBound {
        Pricing::of(&self.settings, self.options.model.as_deref()).bound(code, has_input)
    }

    /// Creates the destination of traces and metrics, if options or the variables of OpenTelemetry set one.
    ///
    /// # Errors
    /// The endpoint can't be used.
    pub fn telemetry(&self, name: String) -> Result<Option<Telemetry>, ConfigError> {
        let Settings { environment, telemetry, .. } = &self.settings;
        let endpoint = self.options.otlp.as_deref();
        let options = TelemetryOptions::from_environment(environment, telemetry, endpoint, name)?;
        options.map(Telemetry::new).transpose()
    }

    /// Builds a run: opens its journal, and sets up handlers, view and telemetry.
    ///
    /// # Errors
    /// The journal or the endpoint of the telemetry can't be used.
    pub fn prepare(&self, spec: RunSpec<'_>) -> Result<PreparedRun, Error> {
        let RunSpec { code, policy, name, journal, models, limits, approver, stream, follows, plan, .. } =
            spec;
        let (mut input, mut request) = (spec.input, spec.request);
        let (mut seed, mut fuel) = (self.options.seed.unwrap_or(0), self.options.fuel);
        let (mut desk, mut kept) = (None, None);
        if let Some(options) = &journal {
            let mut settings = json!({"seed": seed, "fuel": fuel, POLICY_TEXT: policy.map(Policy::text)});
            if let Some(request) = &request {
                settings["request"] = json!(&**request);
            }
            if let Some(after) = follows.as_ref().and_then(|f| f.after.as_ref()) {
                settings[AFTER_RUN] = json!(after);
            }
            if let Some(plan) = &plan {
                settings[PLAN_TEXT] = json!(&**plan);
            }
            let mut about = RunIdentity::new(name.clone(), code, input.clone(), settings);
            about.kept = spec
                .sources
                .filter(|_| options.mode.writes())
                .and_then(|sources| kept::program(code, policy, sources));
            desk = self.approval_desk(options);
            kept = open(&options.mode, &about, models.redactor())?;
        }
        if let Some(kept) = &kept {
            input = kept.input().cloned();
            seed = kept.settings()["seed"].as_u64().unwrap_or(seed);
            fuel = kept.settings()["fuel"].as_u64().or(fuel);
            request = kept.settings()["request"].as_str().map(Arc::from).or(request);
            if let Some(after) = kept.settings()[AFTER_RUN].as_str().filter(|_| follows.is_none()) {
                return Err(Error::Journal(follows_another(kept.id(), after)));
            }
        }
        let mut handlers = self.handlers(models);
        if let Some(JournalOptions { mode: JournalMode::Engine(start), .. }) = &journal {
            (seed, fuel) = (start.seed, start.fuel);
            handlers.engine = Some(start.run.clone());
        }
        handlers.seed = seed;
        handlers.stream = stream;
        let has_approver = approver.is_some();
        handlers.approver = approver;
        let waits_in_journal = kept.is_some() && desk.is_some() && !has_approver;
        handlers.desk = desk;
        handlers.journal = kept.map(|s| Arc::new(Mutex::new(s)));
        let mut config = machine_config(fuel, policy);
        config.request = request;
        if let Some(Follows { history, .. }) = follows {
            history.lock().unwrap_or_else(PoisonError::into_inner).carry_into(&mut config);
            handlers.history = Some(history);
        }
        // The approver of a call sees the origins of its arguments.
        config.explain_flow =
            self.options.explain_flow || (has_approver && code.tools.iter().any(|t| t.may_ask()));
        let has_input = input.is_some();
        let telemetry = self.telemetry(name).map_err(Error::Telemetry)?;
        let run = match &handlers.journal {
            Some(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).id().to_string(),
            None => handlers.run.get_or_insert_with(runtime::new_run_id).clone(),
        };
        // A page may show the run.
        let live = journal.as_ref().and_then(|j| LiveReplies::of(j.mode.waiting_room()?, &run));
        handlers.stream |= live.is_some();
        // The policy's output clearance bounds the local user, too.
        let output = policy.map_or(LabelSpec::TOP, |p| p.output.clone());
        let view = View::new(&config, &[&output]);
        if !view.is_unbounded() {
            handlers.approver = handlers.approver.take().map(|approver| bounded(approver, &config, &output));
        }
        // The bound is worth its analysis only where it is shown.
        let telemetry = telemetry.map(|t| t.limited(&limits).bounded(&of_run(&self.bound(code, has_input))));
        let machine = Machine::new(code.clone(), input, config);
        Ok(PreparedRun { machine, handlers, limits, view, telemetry, run, live, has_input, waits_in_journal })
    }

    /// Returns the desk where questions wait: in the journal, if the run has one and may wait.
    fn approval_desk(&self, options: &JournalOptions) -> Option<ApprovalDesk> {
        let place = options.mode.waiting_room().filter(|_| options.approvals != Approvals::Refuse)?;
        let lifetime = approval_lifetime(self.settings.limits.approval);
        let desk = ApprovalDesk::new(place, lifetime).with_approvers(self.settings.approvers.clone());
        Some(if options.approvals == Approvals::Leave { desk.leaving() } else { desk })
    }
}

impl PreparedRun {
    /// Identifier of the run.
    pub fn id(&self) -> &str {
        &self.run
    }

    /// Limits of the run.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Runs it to its end, which `cancel` brings early. Each event is reported as it happens.
    pub async fn run(
        self,
        cancel: &CancellationToken,
        events: &mut (dyn FnMut(RunEvent<'_>) + Send),
    ) -> EndedRun {
        let PreparedRun { machine, handlers, limits, mut view, telemetry, run, mut live, .. } = self;
        let mut telemetry = telemetry.map(|t| t.live(&run));
        let records = handlers.models.redactor().for_records();
        let mut each = |event: Event| {
            let kept = records.event(&event);
            if let Some(telemetry) = &mut telemetry {
                telemetry.note(&kept);
            }
            if let Some(live) = &mut live {
                live.note(&kept);
            }
            let shown = view.event(&kept);
            events(RunEvent { kept: &kept, shown: shown.as_deref(), records: &records });
        };
        let report = runtime::run(machine, &handlers, &limits, cancel, &mut each).await;
        EndedRun { ran: Ran { report, view }, telemetry }
    }
}

impl EndedRun {
    /// The report of the run, with everything in it.
    pub fn report(&self) -> &RunReport {
        &self.ran.report
    }
}

/// Handlers of requests: these models, and the tools of the settings. Stores are in the process.
pub fn handlers(models: Models, settings: &Settings, seed: u64) -> Handlers {
    let mut handlers = Handlers::new(models);
    handlers.tools = settings.tools();
    handlers.seed = seed;
    handlers
}

impl Settings {
    /// The tools, as the settings say.
    pub fn tools(&self) -> Tools {
        let mut tools = Tools::new(&self.environment).with_servers(self.mcp.clone(), &self.environment);
        if self.pins != Pins::default() {
            tools = tools.with_pins(self.pins.clone());
        }
        tools = tools.with_python(self.python.clone());
        for (name, handler) in &self.handlers {
            tools = tools.with_handler(name.clone(), handler.clone());
        }
        tools
    }
}

/// Field of the settings of a run in a journal: the text of the plan.
pub(crate) const PLAN_TEXT: &str = "plan";

/// The answers of the run before, the counts of its calls and what it left of the limits are not in the
/// record of the run that follows it.
fn follows_another(run: &str, after: &str) -> JournalError {
    JournalError {
        message: format!(
            "run `{run}` follows run `{after}`, which ended with an error, and needs what that was answered"
        ),
        help: Some(format!("resume it with `entail plan --resume {run}`, and without `--plan`")),
    }
}

/// Opens what a journal has of a run; `None` if nothing is kept.
fn open(
    mode: &JournalMode,
    about: &RunIdentity,
    redactor: &Redactor,
) -> Result<Option<runtime::Session>, JournalError> {
    Ok(Some(match mode {
        JournalMode::Off | JournalMode::Engine(_) => return Ok(None),
        JournalMode::Record(file) => Journal::open(file)?.record(about, redactor)?,
        JournalMode::Replay { place, run } => {
            let journal = Journal::existing(place)?;
            let run = match run {
                Some(id) => journal.run(id)?,
                // A recording may have been made from another directory.
                None => journal.latest(Some(&about.name)).or_else(|_| journal.latest(None))?,
            };
            journal.replay(&run.id)?
        }
        JournalMode::Resume { place, run, allow_changed, unfinished } => {
            let journal = Journal::existing(place)?;
            journal.resume(run, about, redactor, *allow_changed, *unfinished)?
        }
        JournalMode::Begin(place) => Journal::open(place)?.begin(about, redactor)?,
    }))
}

/// Restricts an approver to calls, and questions of servers, that it is cleared to see with all their data.
fn bounded(approver: Approver, config: &Config, output: &LabelSpec) -> Approver {
    let view = Arc::new(Mutex::new(View::new(config, &[output])));
    approver.filtered(move |labels| {
        // A view that another thread left in the middle of a label is as good as before.
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        match labels.iter().all(|label| view.admits(label)) {
            true => Ok(()),
            false => Err("no approver is cleared to see its arguments".into()),
        }
    })
}
