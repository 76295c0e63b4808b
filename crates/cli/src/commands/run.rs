//! `entail run` and `entail eval`: terms on the machine, with the world around it.

use super::{choose, load_or_say, say_problem, worth_saying};
use crate::approve::Terminal;
use crate::args::{ApprovalsArg, EvalArgs, JournalArgs, LogArg, RunArgs, UnfinishedArg, WorldArgs};
use crate::interrupt;
use crate::load::{self, Kind, Loaded, Runnable, read_data, reason};
use crate::policy;
use crate::preflight::{self, Gate};
use crate::progress::{Detail, event_json};
use crate::settings::{LimitsEntry, Settings};
use crate::ui::{Exit, Ui};
use crate::view::{Ran, View, WITHHELD, WITHHELD_MESSAGE, withheld};
use crate::watch::Watch;
use analysis::cost::{CostBound, Interval};
use core_ir::{Code, Data, LabelSpec, Misfit, Num, Type};
use diagnostics::{Diagnostic, Sources};
use frontend::policy::Policy;
use machine::{CodeParser, Config, ErrorCode, Failure, Machine, Reified, StopReason};
use runtime::trace::{Head, Recorder};
use runtime::{
    About, ApprovalDesk, Approver, Asked, CancellationToken, Event, Handlers, Journal, JournalError, Limits,
    ModelSettings, Models, Pins, Redactor, RunReport, Session, Telemetry, TelemetryOptions, Tools,
    Unfinished,
};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Runs `entail run`.
pub fn run(ui: &Ui, args: &RunArgs) -> Exit {
    let mut sources = Sources::new();
    let loaded = match load_or_say(ui, &mut sources, &args.file, args.world.policy.as_deref()) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let Loaded { runnables: all, found, policy, .. } = loaded;
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let runnable = match choose(ui, &args.file, &all, args.pipeline.as_deref()) {
        Ok(r) => r,
        Err(exit) => return exit,
    };
    let journal = &args.journal;
    if journal.replay.is_none()
        && let Err(exit) =
            before_run(ui, &sources, &args.world, Kind::of(&args.file), runnable, policy.as_ref())
    {
        return exit;
    }
    let input = if journal.replay.is_some() || journal.resume.is_some() {
        if args.input.is_some() || args.input_option.is_some() {
            return ui.usage(
                "a run that is replayed or resumed has its input already",
                Some("leave the input out"),
            );
        }
        None
    } else {
        let given = InputArgs {
            command: format!("run {}", args.file),
            given: args.input.as_ref(),
            option: args.input_option.as_ref(),
        };
        match input(ui, given, runnable) {
            Ok(input) => input,
            Err(exit) => return exit,
        }
    };
    let name = format!("{} {}", args.file, runnable.name);
    let journal = Some((journal, name));
    let head = Head { program: args.file.clone(), entry: runnable.name.clone(), input: input.clone() };
    let traced = traced(ui, &args.world, policy.as_ref(), &sources, runnable, input, journal, head);
    let (report, has_input) = match traced {
        Ok(report) => report,
        Err(exit) => return exit,
    };
    let bound = match bound_of(ui, &args.world, &runnable.code, has_input) {
        Ok(bound) => bound,
        Err(exit) => return exit,
    };
    show_result(ui, &sources, &report, &bound, (&runnable.code, policy.as_ref()), pretty);
    if !ui.is_json() {
        if let Some(shown) = report.shown() {
            ui.note(&summary(&shown, &bound));
        }
        if let Some(dir) = &args.journal.journal
            && args.journal.resume.is_none()
            && report.result.as_ref().is_err_and(|f| f.code.is_final())
        {
            let (file, same) = (quoted(&args.file), same_program(ui, args));
            let dir = quoted(&dir.display().to_string());
            ui.note(&format!(
                "the run is kept: `entail run {file}{same} --journal {dir} --resume {}` goes on with it",
                report.run
            ));
        }
    }
    conclude(ui, &report, &bound)
}

/// The options of a run without which its program would be another one, or would be answered by others. Limits are not among them: one of them may be why
/// it ended.
fn same_program(ui: &Ui, args: &RunArgs) -> String {
    let path = |p: &Option<std::path::PathBuf>| p.as_ref().map(|p| p.display().to_string());
    let world = &args.world;
    let given = [
        ("config", path(&ui.args.config)),
        ("pipeline", args.pipeline.clone()),
        ("policy", path(&world.policy)),
        ("model", world.model.clone()),
        ("script", path(&world.script)),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", quoted(&value?))));
    given.chain(world.python_tools.then(|| " --python-tools".to_string())).collect()
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:@+,=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Runs `entail eval`.
pub fn eval(ui: &Ui, args: &EvalArgs) -> Exit {
    let mut sources = Sources::new();
    let is_file = args.term == "-"
        || ((args.term.ends_with(".lam") || (args.dist && args.term.ends_with(".agent")))
            && Path::new(&args.term).exists());
    let options = match super::options(ui, args.world.policy.as_deref()) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let loaded = if args.term == "-" {
        let read = load::read_text(&mut sources, "-");
        read.and_then(|(id, text)| load::lam(&mut sources, id, &text, &options))
    } else if is_file {
        load::load(&mut sources, &args.term, &options)
    } else {
        let id = sources.add("<term>", &*args.term);
        load::lam(&mut sources, id, &args.term, &options)
    };
    let Loaded { runnables: all, found, policy, .. } = match loaded {
        Ok(loaded) => loaded,
        Err(problem) => return say_problem(ui, &sources, problem),
    };
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let runnable = match choose(ui, &args.term, &all, None) {
        Ok(r) => r,
        Err(exit) => return exit,
    };
    if args.dist {
        return super::dist::dist(ui, args, policy.as_ref(), runnable);
    }
    let bound = match bound_of(ui, &args.world, &runnable.code, false) {
        Ok(bound) => bound,
        Err(exit) => return exit,
    };
    let head = Head { program: args.term.clone(), entry: runnable.name.clone(), input: None };
    let report = match traced(ui, &args.world, policy.as_ref(), &sources, runnable, None, None, head) {
        Ok((report, _)) => report,
        Err(exit) => return exit,
    };
    show_result(ui, &sources, &report, &bound, (&runnable.code, policy.as_ref()), Reified::to_string);
    conclude(ui, &report, &bound)
}

/// Runs a term and writes the trace that the options ask for.
#[allow(clippy::too_many_arguments, reason = "those of `world`, and what a trace says")]
fn traced(
    ui: &Ui,
    args: &WorldArgs,
    policy: Option<&Policy>,
    sources: &Sources,
    runnable: &Runnable,
    input: Option<Data>,
    journal: Option<(&JournalArgs, String)>,
    head: Head,
) -> Result<(Ran, bool), Exit> {
    let code = &runnable.code;
    let Some(path) = &args.trace else { return world(ui, args, policy, code, input, journal, &mut |_| {}) };
    let refused = |e: std::io::Error| {
        ui.usage(&format!("cannot write the trace `{}`: {}", path.display(), reason(&e)), None)
    };
    // Before anything is asked: a run whose trace is lost may be dear.
    let mut file = std::fs::File::create(path).map_err(refused)?;
    let mut recorder = Recorder::new();
    let (report, has_input) =
        world(ui, args, policy, code, input, journal, &mut |event| recorder.note(event))?;
    for line in recorder.lines(&head, sources, &report) {
        writeln!(file, "{line}").map_err(refused)?;
    }
    Ok((report, has_input))
}

/// Writes what a run gave: as JSON, or the value in the command's own notation, or the error.
pub(super) fn show_result(
    ui: &Ui,
    sources: &Sources,
    ran: &Ran,
    bound: &CostBound,
    (code, policy): (&Code, Option<&Policy>),
    notation: fn(&Reified) -> String,
) {
    let Some(report) = ran.shown() else {
        if ui.is_json() {
            return ui.result(&withheld(&ran.run).to_string());
        }
        let d = Diagnostic::error(WITHHELD, WITHHELD_MESSAGE, code.span(code.root()));
        return ui.problems(
            sources,
            &[d.help("`clearance` under `[output]` of the policy says what may be shown")],
        );
    };
    let report = &*report;
    if ui.is_json() {
        return ui.result(&as_json(sources, report, bound).to_string());
    }
    match &report.result {
        Ok(value) => {
            ui.result(&notation(value));
            if !ui.args.quiet {
                ui.problems(sources, &went_on(report, code, policy));
            }
        }
        Err(failure) => ui.problems(sources, &[as_diagnostic(failure, report, code, policy)]),
    }
    if let Some(partial) = report.partial.as_ref().filter(|p| !p.finished.is_empty() || p.earlier > 0) {
        ui.note(&so_far(partial));
    }
}

/// What a run that ran out of its budget had done, in a line.
fn so_far(partial: &runtime::Partial) -> String {
    let count = partial.finished.len() as u64 + partial.earlier;
    let last = partial.finished.last().map_or(String::new(), |f| {
        let shown = match &f.result {
            Ok(data) => data.to_json().to_string(),
            Err(why) => format!("failed: {why}"),
        };
        format!("; the last, `{}`: {}", f.name, diagnostics::clip(&shown))
    });
    let plural = if count == 1 { "" } else { "s" };
    format!("answered before: {count} call{plural}{last} (all of them: --format json)")
}

/// The exit status; and the check that the run kept what was said before it.
pub(super) fn conclude(ui: &Ui, report: &Ran, bound: &CostBound) -> Exit {
    let usage = &report.usage;
    // Money is bounded in billionths of a dollar, rounded up.
    let billionths = usage.usd.as_ref().and_then(|usd| usd.mul(&Num::from(1_000_000_000)).ok());
    let billionths = billionths.and_then(|n| n.floor().to_usize()).unwrap_or(0) as u64;
    let priced = bound.unpriced.is_empty();
    let exceeded = [
        ("model calls", usage.model_calls, bound.model_calls.most),
        ("tool calls", usage.tool_calls, bound.tool_calls.most),
        ("input tokens", usage.input_tokens, bound.input_tokens.most),
        ("output tokens", usage.output_tokens, bound.output_tokens.most),
        ("billionths of a US dollar", billionths, bound.money.most.filter(|_| priced)),
    ]
    .into_iter()
    .find_map(|(what, used, most)| most.filter(|most| used > *most).map(|most| (what, used, most)));
    if let Some((what, used, most)) = exceeded {
        ui.say(&format!(
            "internal error: the run used {used} {what}, more than its bound of {most}; please report this program"
        ));
        return Exit::Failed;
    }
    if report.shown().is_none() {
        // The status tells nothing that is withheld.
        return Exit::Failed;
    }
    match &report.result {
        Ok(_) => Exit::Done,
        Err(f) if f.stopped == Some(StopReason::Interrupted) => Exit::Cancelled,
        Err(_) => Exit::Failed,
    }
}

/// Returns the cost bound of a run, with the models and prices of the settings.
pub(super) fn bound_of(
    ui: &Ui,
    args: &WorldArgs,
    code: &Arc<Code>,
    has_input: bool,
) -> Result<CostBound, Exit> {
    Ok(super::cost::bound_of(&Settings::read(ui)?, args.model.as_deref(), code, has_input))
}

/// Reads generated code with the prelude in scope.
struct Generated {
    /// Whether the policy lets it reclassify.
    endorse: bool,
}

impl CodeParser for Generated {
    fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        let options = syntax::lam::Options { endorse: self.endorse, ..syntax::lam::Options::GENERATED };
        frontend::calculus::parse_generated_with(text, options)
    }
}

/// Those who answer requests, as the settings say, with these models.
pub(crate) fn handlers(models: Models, settings: &Settings, seed: u64) -> Handlers {
    let mut handlers = Handlers::new(models);
    handlers.tools = tools(settings);
    handlers.seed = seed;
    handlers
}

/// The tools, as the settings say.
pub(crate) fn tools(settings: &Settings) -> Tools {
    let mut tools =
        Tools::new(&settings.environment).with_servers(settings.mcp.clone(), &settings.environment);
    if settings.pins != Pins::default() {
        tools = tools.with_pins(settings.pins.clone());
    }
    tools = tools.with_python(settings.python.clone());
    for (name, handler) in &settings.handlers {
        tools = tools.with_handler(name.clone(), handler.clone());
    }
    tools
}

/// Refuses a program that can't run as it is set up, before it asks for anything. A replay asks nobody.
pub(super) fn before_run(
    ui: &Ui,
    sources: &Sources,
    args: &WorldArgs,
    kind: Kind,
    runnable: &Runnable,
    policy: Option<&Policy>,
) -> Result<(), Exit> {
    let settings = Settings::read(ui)?;
    let tools = tools(&settings);
    let tools = if args.python_tools { tools.allowing_python() } else { tools };
    let gate = Gate {
        tools: &tools,
        stores: &settings.fresh_stores(),
        routes: &model_settings(args, &settings).routes(&settings.environment),
        refusals: args.run_refused,
    };
    preflight::before_run(ui, sources, &gate, kind, runnable, policy)
}

/// How the machine reads generated code, and how long it goes on.
pub(super) fn config(fuel: Option<u64>, policy: Option<&Policy>) -> Config {
    let endorse = policy.is_some_and(|p| p.generated_endorse);
    let mut config = Config { parser: Some(Arc::new(Generated { endorse })), ..Config::default() };
    if let Some(fuel) = fuel {
        config.fuel = fuel;
    }
    config
}

/// Runs a term with the models, tools and limits that the options and settings say, and perhaps a journal for a run of this
/// name. Also says whether it had an input.
pub(super) fn world(
    ui: &Ui,
    args: &WorldArgs,
    policy: Option<&Policy>,
    code: &Arc<Code>,
    input: Option<Data>,
    journal: Option<(&JournalArgs, String)>,
    watch: &mut (dyn FnMut(&Event) + Send),
) -> Result<(Ran, bool), Exit> {
    world_with(ui, args, policy, code, input, journal, None, watch)
}

/// [`world`] with these models, if there are some already.
#[allow(clippy::too_many_arguments, reason = "those of `world`")]
pub(super) fn world_with(
    ui: &Ui,
    args: &WorldArgs,
    policy: Option<&Policy>,
    code: &Arc<Code>,
    input: Option<Data>,
    journal: Option<(&JournalArgs, String)>,
    models: Option<&Models>,
    watch: &mut (dyn FnMut(&Event) + Send),
) -> Result<(Ran, bool), Exit> {
    let settings = Settings::read(ui)?;
    let limits = limits(ui, args, &settings.limits)?;
    let model_settings = model_settings(args, &settings);
    let replays = journal.as_ref().is_some_and(|(j, _)| j.replay.is_some());
    let models = if let Some(models) = models {
        models.clone()
    } else if replays {
        // Nothing is asked, so nothing needs to be there.
        Models::new(model_settings, settings.environment.clone())
            .map_err(|e| ui.usage(&e.message, e.help.as_deref()))?
    } else {
        self::models(ui, args, &model_settings, &settings.environment, &[code])?
    };
    let mut input = input;
    let name = journal.as_ref().map_or("term", |(_, name)| name).to_string();
    let (mut seed, mut fuel) = (args.seed.unwrap_or(0), args.fuel);
    let mut desk = None;
    let session = match journal {
        None => None,
        Some((journal, name)) => {
            let about = About::new(name, code, input.clone(), json!({"seed": seed, "fuel": fuel}));
            desk = approval_desk(journal, &settings);
            session(journal, &about, models.redactor())
                .map_err(|e| ui.usage(&e.message, e.help.as_deref()))?
        }
    };
    if let Some(session) = &session {
        input = session.input().cloned();
        seed = session.settings()["seed"].as_u64().unwrap_or(seed);
        fuel = session.settings()["fuel"].as_u64().or(fuel);
    }
    let mut handlers = handlers(models, &settings, seed);
    if args.python_tools {
        handlers.tools = handlers.tools.allowing_python();
    }
    handlers.stores = settings.fresh_stores();
    let terminal = Terminal::open();
    handlers.approver = terminal.as_ref().map(Terminal::approver);
    handlers.desk = desk;
    let waits = session.as_ref().filter(|_| handlers.desk.is_some() && terminal.is_none());
    let waits = waits.map(|s| s.id().to_string());
    handlers.journal = session.map(|s| Arc::new(Mutex::new(s)));
    let mut config = config_of(fuel, policy);
    // Who is asked to approve something is shown where it comes from.
    config.explain_flow = args.explain_flow || (terminal.is_some() && code.tools.iter().any(|t| t.approve));
    let has_input = input.is_some();
    handlers.stream = args.watch;
    let telemetry = telemetry(ui, args, &settings, name)?;
    let run = match &handlers.journal {
        Some(session) => session.lock().unwrap_or_else(PoisonError::into_inner).id().to_string(),
        None => handlers.run.get_or_insert_with(runtime::new_run_id).clone(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
    // What the policy lets out bounds the local user, too.
    let output = policy.map_or(LabelSpec::TOP, |p| p.output.clone());
    let mut shown = View::new(&config, &[&output]);
    if !shown.is_unbounded() {
        handlers.approver = handlers.approver.take().map(|approver| bounded(approver, &config, &output));
    }
    let machine = Machine::new(code.clone(), input, config);
    let report = runtime.block_on(async {
        let cancel = CancellationToken::new();
        interrupt::cancels(cancel.clone());
        let mut view = Watch::new(ui, args.watch, &limits);
        let mut telemetry = telemetry.map(|t| t.live(&run));
        let log = args.log == Some(LogArg::Json);
        // What is shown and kept here is the operator's.
        let records = handlers.models.redactor().for_records();
        let mut events = |event: Event| {
            let event = records.event(&event);
            watch(&event);
            if let Some(telemetry) = &mut telemetry {
                telemetry.note(&event);
            }
            let Some(event) = shown.event(&event) else { return };
            if log && let Some(json) = event_json(&event, Detail::Outline) {
                ui.say(&stamped(json));
            }
            if let (Some(run), Event::Asked { what: Asked::Approve { name, .. }, .. }) = (&waits, &*event) {
                ui.note(&format!("a call of `{name}` wants approval: `entail approve {run}`"));
            }
            let asking = terminal.as_ref().is_some_and(Terminal::is_asking);
            match &mut view {
                Some(view) => view.show(&event, asking),
                None if log => {}
                None => show(ui, &event, asking),
            }
        };
        let report = runtime::run(machine, &handlers, &limits, &cancel, &mut events).await;
        if let Some(view) = view {
            view.end();
        }
        if let Some(telemetry) = telemetry {
            // What the run gave counts more than what is told about it, and nobody has to wait for a collector that does not answer.
            let interrupted = CancellationToken::new();
            interrupt::cancels(interrupted.clone());
            let sent = tokio::select! {
                sent = telemetry.send(&report) => sent,
                () = interrupted.cancelled() => Err("what was to be sent to the collector was given up".to_string()),
            };
            if let Err(why) = sent {
                ui.say(&format!("warning: {why}"));
            }
        }
        report
    });
    // A blocking task (the local model, between two looks at its cancellation) must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    if ui.is_live() {
        ui.status("");
    }
    Ok((Ran { report, view: shown }, has_input))
}

/// Asks only about calls whose arguments may all be shown to whoever is asked.
fn bounded(approver: Approver, config: &Config, output: &LabelSpec) -> Approver {
    let view = Arc::new(Mutex::new(View::new(config, &[output])));
    approver.filtered(move |call| {
        // A view that another thread left in the middle of a label is as good as before.
        let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
        match call.args.iter().all(|arg| view.admits(&arg.label)) {
            true => Ok(()),
            false => Err("what it is called with may not be shown to whoever would be asked".into()),
        }
    })
}

/// A line of a structured log.
fn stamped(mut json: Value) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    json["time"] = json!(now.as_secs_f64());
    json.to_string()
}

/// Where traces and metrics go, if options or the environment say: the variables are those of OpenTelemetry.
pub(super) fn telemetry(
    ui: &Ui,
    args: &WorldArgs,
    settings: &Settings,
    name: String,
) -> Result<Option<Telemetry>, Exit> {
    let env = &settings.environment;
    let Some(options) = TelemetryOptions::from_environment(env, args.otlp.as_deref(), name) else {
        return Ok(None);
    };
    Telemetry::new(options).map(Some).map_err(|e| ui.usage(&e.message, e.help.as_deref()))
}

/// The models that options and settings name.
fn model_settings(args: &WorldArgs, settings: &Settings) -> ModelSettings {
    ModelSettings { script: args.script.clone(), ..settings.model_settings(args.model.as_deref()) }
}

/// The configuration of the machine for a program under a policy.
pub(crate) fn config_of(fuel: Option<u64>, policy: Option<&Policy>) -> Config {
    let mut config = config(fuel, policy);
    if let Some(policy) = policy {
        policy::configure(policy, &mut config);
    }
    config
}

/// The models of several programs, all of which can be asked, and what a run may use.
pub(super) fn models_of(
    ui: &Ui,
    args: &WorldArgs,
    settings: &Settings,
    codes: &[&Code],
) -> Result<(Models, Limits), Exit> {
    let limits = limits(ui, args, &settings.limits)?;
    Ok((models(ui, args, &model_settings(args, settings), &settings.environment, codes)?, limits))
}

/// The models of a session before any program is known, so that scripted replies go on from program to program.
pub(super) fn models_of_session(ui: &Ui, args: &WorldArgs, settings: &Settings) -> Result<Models, Exit> {
    Models::new(model_settings(args, settings), settings.environment.clone())
        .map_err(|e| ui.usage(&e.message, e.help.as_deref()))
}

/// Sees to it that the models of a session can answer a program, if need be by fetching the local one.
pub(super) fn can_answer(ui: &Ui, args: &WorldArgs, models: &Models, code: &Code) -> Result<(), Exit> {
    match models.check(code) {
        Ok(()) => Ok(()),
        Err(e) if e.local_model_missing && (args.pull || asked_to_pull(ui)) => {
            super::model::fetch(ui)?;
            models.check(code).map_err(|e| ui.usage(&e.message, e.help.as_deref()))
        }
        Err(e) => Err(ui.usage(&e.message, e.help.as_deref())),
    }
}

/// For how long a question whether a tool may be called can be answered.
pub(super) fn approval_lifetime(seconds: Option<f64>) -> Duration {
    /// A week.
    const USUAL: f64 = 7.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds.unwrap_or(USUAL)).unwrap_or(Duration::MAX)
}

/// Where questions wait for an answer: in the journal, if the run has one and may wait.
fn approval_desk(args: &JournalArgs, settings: &Settings) -> Option<ApprovalDesk> {
    if args.approvals == ApprovalsArg::Refuse || (args.journal.is_none() && args.resume.is_none()) {
        return None;
    }
    let file = runtime::journal_file(args.journal.as_deref().unwrap_or(Path::new(".entail")));
    let desk = ApprovalDesk::new(file, approval_lifetime(settings.limits.approval))
        .with_approvers(settings.approvers.clone());
    Some(if args.approvals == ApprovalsArg::Leave { desk.leaving() } else { desk })
}

/// The run in the journal or recording that the options name, if they name one.
fn session(args: &JournalArgs, about: &About, redactor: &Redactor) -> Result<Option<Session>, JournalError> {
    let dir = args.journal.as_deref().unwrap_or(Path::new(".entail"));
    let session = if let Some(file) = &args.record {
        Journal::open(file)?.record(about, redactor)?
    } else if let Some(file) = &args.replay {
        let journal = Journal::existing(file)?;
        let run = match &args.resume {
            Some(id) => journal.run(id)?,
            // A recording may have been made from another directory.
            None => journal.latest(Some(&about.name)).or_else(|_| journal.latest(None))?,
        };
        journal.replay(&run.id)?
    } else if let Some(run) = &args.resume {
        let unfinished = match args.unfinished {
            UnfinishedArg::Ask => Unfinished::Ask,
            UnfinishedArg::Retry => Unfinished::Retry,
            UnfinishedArg::Fail => Unfinished::Fail,
        };
        let journal = Journal::existing(&runtime::journal_file(dir))?;
        journal.resume(run, about, redactor, args.allow_changed, unfinished)?
    } else if args.journal.is_some() {
        Journal::open(&super::journal_in(dir)?)?.begin(about, redactor)?
    } else {
        return Ok(None);
    };
    Ok(Some(session))
}

/// The models, after fetching the local one if that is all that is missing and wanted.
fn models(
    ui: &Ui,
    args: &WorldArgs,
    settings: &ModelSettings,
    environment: &runtime::Environment,
    codes: &[&Code],
) -> Result<Models, Exit> {
    let make = || {
        let models = Models::new(settings.clone(), environment.clone())?;
        for code in codes {
            models.check(code)?;
        }
        Ok::<_, runtime::ConfigError>(models)
    };
    match make() {
        Ok(models) => Ok(models),
        Err(e) if e.local_model_missing && (args.pull || asked_to_pull(ui)) => {
            super::model::fetch(ui)?;
            make().map_err(|e| ui.usage(&e.message, e.help.as_deref()))
        }
        Err(e) => Err(ui.usage(&e.message, e.help.as_deref())),
    }
}

/// Asks at the terminal whether the local model should be fetched.
fn asked_to_pull(ui: &Ui) -> bool {
    use std::io::IsTerminal;
    if !ui.is_live() || !std::io::stdin().is_terminal() {
        return false;
    }
    ui.status("The local model is not installed. Fetch it now (93 MB, once)? [Y/n] ");
    let mut answer = String::new();
    // No answer is not a yes.
    std::io::stdin().read_line(&mut answer).is_ok_and(|n| n > 0)
        && matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes")
}

/// What the run may use: as the command line says, or else `[limits]` of the settings.
fn limits(ui: &Ui, args: &WorldArgs, file: &LimitsEntry) -> Result<Limits, Exit> {
    let usage = |why: String| ui.usage(&why, None);
    let mut limits = limits_of(file).map_err(usage)?;
    if let Some(text) = &args.max_usd {
        limits.max_usd = Some(money("--max-usd", text).map_err(usage)?);
    }
    if let Some(seconds) = args.timeout {
        limits.timeout = Some(positive("--timeout", seconds).map_err(usage)?);
    }
    limits.max_model_calls = args.max_calls.or(limits.max_model_calls);
    limits.max_tool_calls = args.max_tool_calls.or(limits.max_tool_calls);
    limits.max_tokens = args.max_tokens.or(limits.max_tokens);
    Ok(limits)
}

/// `[limits]` of the settings.
pub(crate) fn limits_of(file: &LimitsEntry) -> Result<Limits, String> {
    Ok(Limits {
        max_model_calls: file.calls,
        max_tool_calls: file.tool_calls,
        max_tokens: file.tokens,
        // The shortest decimal that denotes the float is what was written.
        max_usd: file.usd.map(|x| money("usd", &x.to_string())).transpose()?,
        timeout: file.timeout.map(|s| positive("timeout", s)).transpose()?,
        ..Limits::default()
    })
}

pub(crate) fn money(what: &str, text: &str) -> Result<Num, String> {
    let amount = text.parse::<Num>().ok().filter(|n| *n >= Num::ZERO);
    amount.ok_or_else(|| format!("`{what} {text}`: not an amount of money"))
}

fn positive(what: &str, seconds: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|d| *d > Duration::ZERO);
    time.ok_or_else(|| format!("`{what} {seconds}`: not a positive number of seconds"))
}

/// What the command line says about an input.
pub(super) struct InputArgs<'a> {
    /// How the command begins, without the input.
    pub command: String,
    /// The input itself.
    pub given: Option<&'a String>,
    /// `--input`.
    pub option: Option<&'a String>,
}

/// The input of a runnable from the command line.
pub(super) fn input(ui: &Ui, args: InputArgs<'_>, runnable: &Runnable) -> Result<Option<Data>, Exit> {
    let text = match args.given.or(args.option) {
        None => None,
        Some(text) if text == "-" && args.command.ends_with(" -") => {
            return Err(
                ui.usage("standard input is the program already", Some("name a file for one of them"))
            );
        }
        Some(text) => Some(
            match text.strip_prefix('@').filter(|_| args.given.is_none()).or((text == "-").then_some("-")) {
                None => text.clone(),
                Some(path) => {
                    let unreadable = |why: String| ui.usage(&format!("cannot read `{path}`: {why}"), None);
                    let bytes = read_data(path).map_err(|e| unreadable(reason(&e)))?;
                    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".into()))?
                }
            },
        ),
    };
    let Some(ty) = &runnable.input else {
        return Ok(text.map(|t| as_data(&t, &Type::Dyn).unwrap_or_else(|_| Data::str(t))));
    };
    let fields: &[(core_ir::Name, Type)] = if let Type::Record(fields) = ty { fields } else { &[] };
    let Some(text) = text else {
        if matches!(ty, Type::Record(_)) && fields.iter().all(|(_, t)| matches!(t, Type::Option(_))) {
            return Ok(Some(Data::record([])));
        }
        let help = format!("give it at the end: entail {} '{}'", args.command, example(ty));
        return Err(ui.usage(&format!("`{}` needs an input of type {ty}", runnable.name), Some(&help)));
    };
    if *ty == Type::Str {
        return Ok(Some(Data::str(text)));
    }
    match (as_data(&text, ty), fields) {
        (Ok(data), _) => Ok(Some(data)),
        // One text is all that is asked for: no need to write JSON.
        (Err(_), [(name, Type::Str)]) if !text.trim_start().starts_with('{') => {
            Ok(Some(Data::record([(name.clone(), Data::str(text))])))
        }
        (Err(why), _) => {
            let takes = || format!("`{}` takes {ty}, for example '{}'", runnable.name, example(ty));
            let help = why.help.unwrap_or_else(takes);
            Err(ui.usage(&format!("the input is wrong: {}", why.message), Some(&help)))
        }
    }
}

fn as_data(text: &str, ty: &Type) -> Result<Data, Misfit> {
    let json: Value =
        serde_json::from_str(text).map_err(|e| Misfit { message: format!("not JSON: {e}"), help: None })?;
    ty.read_input(&json)
}

/// JSON of a type, to show what is meant.
fn example(ty: &Type) -> Value {
    match ty {
        Type::Str | Type::Dyn => json!("…"),
        Type::Num => json!(1),
        Type::Bool => json!(true),
        Type::List(t) => json!([example(t)]),
        Type::Option(t) => example(t),
        Type::Record(fields) => {
            Value::Object(fields.iter().map(|(n, t)| (n.to_string(), example(t))).collect())
        }
        Type::Enum(e) => e.variants.first().map_or(Value::Null, |v| json!(&**v)),
        Type::Refined(r) => example(&r.0),
        Type::Null | Type::Variant(_) | Type::Pair(_) | Type::Fun(_) => Value::Null,
    }
}

/// A progress line on a terminal, unless somebody is `asking` there; with `--verbose` a line for each request.
fn show(ui: &Ui, event: &Event, asking: bool) {
    let line = match event {
        Event::Asked { what, .. } => match what {
            Asked::Model { model, purpose, attempt, .. } => {
                let purpose = purpose.as_ref().map_or(String::new(), |p| format!(" for `{p}`"));
                let again = if *attempt > 0 { format!(", repair {attempt}") } else { String::new() };
                format!("asking {model}{purpose}{again} …")
            }
            Asked::Tool { name, .. } => format!("calling the tool {name} …"),
            _ => return,
        },
        Event::Retry { number, wait, cause, .. } => {
            format!("waiting {:.1} s before repetition {number}: {cause}", wait.as_secs_f64())
        }
        Event::Growing { output_tokens, .. } if ui.is_live() && !ui.args.verbose && !asking => {
            return ui.status(&format!("reading the reply … {output_tokens} tokens"));
        }
        Event::Growing { .. } | Event::Text { .. } => return,
        Event::Answered { elapsed, .. } => {
            if ui.args.verbose {
                ui.say(&format!("  answered after {} ms", elapsed.as_millis()));
            }
            return;
        }
    };
    if ui.args.verbose {
        ui.say(&line);
    } else if ui.is_live() && !asking {
        ui.status(&line);
    }
}

pub(super) fn pretty(value: &Reified) -> String {
    match value.data() {
        // INVARIANT: a JSON value serialises.
        Some(data) => serde_json::to_string_pretty(&data.to_json()).unwrap_or_default(),
        None => value.to_string(),
    }
}

/// What would make a refused flow lawful. For a tool of which nothing is known that is to say what it does; bounds come later.
fn with_ways(
    mut d: Diagnostic,
    refused: &runtime::Refused,
    code: &Code,
    policy: Option<&Policy>,
) -> Diagnostic {
    let unknown = |t: &&Arc<core_ir::ToolDecl>| {
        refused.name.as_deref() == Some(&*t.name)
            && t.is_unspecified()
            && !policy.is_some_and(|p| p.knows(&t.name))
    };
    let tool = code.tools.iter().find(unknown);
    if let Some(tool) = tool {
        d = d.help(analysis::flow::of_unknown(&tool.name));
    }
    let most = if tool.is_some() { 1 } else { usize::MAX };
    super::why::lawful(refused).into_iter().take(most).fold(d, Diagnostic::help)
}

/// Calls that were refused while the program went on: whoever runs it wants to know, for its result may look as if they had been made.
fn went_on(report: &RunReport, code: &Code, policy: Option<&Policy>) -> Vec<Diagnostic> {
    let said = |call: &runtime::RefusedCall| {
        let tool = call.refused.name.as_deref().unwrap_or("?");
        let times = if call.times == 1 { "once".into() } else { format!("{} times", call.times) };
        let label = call.refused.value.label.to_json();
        let how = match (call.refused.integrity, call.refused.secrecy) {
            (true, false) => "untrusted",
            (false, true) => "secret",
            _ => "untrusted and secret",
        };
        let why = match &call.refused.part {
            machine::Part::Control => format!("what decided it is {how}: {label}"),
            part => format!("the argument `{}` is {how}: {label}", part.name()),
        };
        let message = format!("`{tool}` was not called: it was refused {times}, and the program went on");
        let d = Diagnostic::warn("flow", message, call.span).label(why);
        with_ways(d, &call.refused, code, policy)
    };
    report.why.calls.iter().map(said).collect()
}

pub(crate) fn as_diagnostic(
    failure: &Failure,
    report: &RunReport,
    code: &Code,
    policy: Option<&Policy>,
) -> Diagnostic {
    let mut d = Diagnostic::error(failure.code.as_str(), failure.message.clone(), failure.span);
    for (span, note) in &failure.notes {
        d = d.remark(*span, note.clone());
    }
    if let Some(refused) = &report.why.refused {
        d = super::why::remarks(d, refused);
    }
    if let Some(refused) = &report.why.refused {
        d = with_ways(d, refused, code, policy);
    }
    if failure.code == ErrorCode::Policy {
        d = d.help(
            "the function `policy` at the tool, or `allow` in the policy file, decides this: it is given the value and the label of each argument, and may give a text that says why not instead of `false`",
        );
    }
    if failure.code == ErrorCode::Tool && failure.message.ends_with(runtime::NOBODY) {
        d = d.help(
            "run it with standard input and standard error at a terminal, where you are asked, or with `--journal`, and answer with `entail approve`; see `approve` in docs/policies.md",
        );
    }
    let label = report.label.to_json().to_string();
    if label != "[]" {
        d = d.help(format!("the error itself is labelled {label}: only a `try` at that label may catch it"));
    }
    d
}

/// What the run used, beside what it could have used.
fn summary(report: &RunReport, bound: &CostBound) -> String {
    let usage = &report.usage;
    let calls = |n: u64, what: &str, bound: Interval| {
        let most = bound.most.map_or("no bound was known".into(), |m| format!("bound: {m}"));
        format!("{n} {what} call{} ({most})", if n == 1 { "" } else { "s" })
    };
    let mut parts = vec![calls(usage.model_calls, "model", bound.model_calls)];
    if usage.tool_calls > 0 || bound.tool_calls.most != Some(0) {
        parts.push(calls(usage.tool_calls, "tool", bound.tool_calls));
    }
    parts.push(format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens));
    match &usage.usd {
        Some(usd) => parts.push(format!("${}", usd.to_json())),
        None => parts.push(unpriced(usage)),
    }
    parts.push(format!("{} ms", report.elapsed.as_millis()));
    let label = report.label.to_json().to_string();
    if label != "[]" {
        parts.push(format!("label {label}"));
    }
    parts.join(" · ")
}

/// `price unknown`, and of which models.
pub(crate) fn unpriced(usage: &runtime::Usage) -> String {
    match &usage.unpriced[..] {
        [] => "price unknown".into(),
        models => format!("price unknown: `{}`", models.join("`, `")),
    }
}

/// The object of the command-line contract.
pub(crate) fn as_json(sources: &Sources, report: &RunReport, bound: &CostBound) -> Value {
    let mut object = Map::new();
    match &report.result {
        Ok(value) => {
            // A function has no JSON; it is shown as text.
            let result = value.data().map_or_else(|| Value::from(value.to_string()), |d| d.to_json());
            object.insert("result".into(), result);
            object.insert("label".into(), report.label.to_json());
        }
        Err(f) => {
            let mut error =
                json!({"code": f.code.as_str(), "message": f.message, "label": report.label.to_json()});
            if let Some(reason) = f.stopped {
                error["reason"] = reason.as_str().into();
            }
            if let (Some(o), Some(source)) = (error.as_object_mut(), sources.get(f.span.file)) {
                o.insert("path".into(), source.path.clone().into());
                let at = source.line_column(f.span.start);
                o.insert("line".into(), at.line.into());
                o.insert("column".into(), at.column.into());
            }
            if let (Some(o), Some(refused)) = (error.as_object_mut(), &report.why.refused) {
                o.insert("refused".into(), refused.to_json(sources, &|_| None));
            }
            object.insert("error".into(), error);
            if let Some(partial) = &report.partial {
                object.insert("partial".into(), partial.to_json());
            }
        }
    }
    if !report.why.calls.is_empty() {
        let refused = |call: &runtime::RefusedCall| {
            let mut object = call.refused.to_json(sources, &|_| None);
            object["times"] = call.times.into();
            object
        };
        object.insert("refusedCalls".into(), report.why.calls.iter().map(refused).collect());
    }
    let usage = &report.usage;
    object.insert("run".into(), report.run.clone().into());
    object.insert(
        "usage".into(),
        json!({
            "modelCalls": usage.model_calls, "toolCalls": usage.tool_calls,
            "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
            "usd": usage.usd.as_ref().map(Num::to_json), "unpriced": usage.unpriced,
        }),
    );
    object.insert(
        "bound".into(),
        json!({"modelCalls": bound.model_calls.most, "toolCalls": bound.tool_calls.most, "usd": super::cost::usd(bound)}),
    );
    object.insert("ms".into(), (report.elapsed.as_millis() as u64).into());
    Value::Object(object)
}
