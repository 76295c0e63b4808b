//! `entail run` and `entail eval`: terms on the machine, with the world around it.

use super::{choose, say_problem, worth_saying};
use crate::approve::Terminal;
use crate::args::{EvalArgs, LogArg, RunArgs, WorldArgs};
use crate::interrupt;
use crate::setup::{self, refuse, refuse_config};
use crate::ui::{Exit, Ui};
use crate::watch::Watch;
use analysis::cost::{CostBound, Interval};
use core_ir::{Code, Data, Num};
use diagnostics::{Diagnostic, Sources, visible};
use entries::input::InputError;
use machine::{Reified, RequestId, StopReason};
use policy::Policy;
use runtime::trace::{Head, TraceStream};
use runtime::{Asked, CancellationToken, ConfigError, Event, Limits, Models, RunReport};
use serde_json::{Value, json};
use session::bound::Pricing;
use session::events::{Detail, event_json};
use session::load::{self, Kind, Loaded, Runnable, read_data, reason};
use session::preflight::Refusal;
use session::report::{as_diagnostic, as_json, refused_calls, unpriced};
use session::view::{Ran, WITHHELD, WITHHELD_MESSAGE, withheld};
use session::{Follows, JournalOptions, RunEvent, RunSpec, Session};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs `entail run`.
pub fn run(ui: &Ui, args: &RunArgs) -> Exit {
    let mut sources = Sources::new();
    let session = match setup::session(ui, &args.world) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    let loaded = match session.load(&mut sources, &args.file) {
        Ok(loaded) => loaded,
        Err(problem) => return say_problem(ui, &sources, problem),
    };
    let Loaded { runnables: all, found, policy, declared, .. } = loaded;
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let runnable = match choose(ui, &args.file, &all, args.pipeline.as_deref()) {
        Ok(r) => r,
        Err(exit) => return exit,
    };
    let journal = &args.journal;
    if journal.replay.is_none() {
        let pricing = Pricing::of(&session.settings, session.options.model.as_deref());
        let models = pricing.models(&runnable.code);
        if let Err(exit) = super::lock::compare(ui, &session.settings, &models, &declared, args.locked) {
            return exit;
        }
    }
    if journal.replay.is_none()
        && !args.has_engine()
        && let Err(exit) = before_run(ui, &sources, &session, Kind::of(&args.file), runnable, policy.as_ref())
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
    #[cfg(feature = "engine")]
    if args.has_engine() {
        return on_engine(ui, &session, args, &runnable.name, input.as_ref());
    }
    let options = match journal.options(ui) {
        Ok(options) => options,
        Err(exit) => return exit,
    };
    let name = format!("{} {}", args.file, runnable.name);
    let head = Head { program: args.file.clone(), entry: runnable.name.clone(), input: input.clone() };
    let running = Running {
        session: &session,
        args: &args.world,
        code: &runnable.code,
        policy: policy.as_ref(),
        input,
        request: None,
        plan: None,
        journal: Some((options, name)),
        models: None,
        follows: None,
        limits: None,
        sources: Some(&sources),
    };
    let (report, has_input) = match traced(ui, running, &sources, &head) {
        Ok(report) => report,
        Err(exit) => return exit,
    };
    let bound = session.bound(&runnable.code, has_input);
    let notation = if Kind::of(&args.file) == Kind::Plan { said } else { pretty };
    show_result(ui, &sources, &report, &bound, (&runnable.code, policy.as_ref()), notation);
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
                "the run is kept: `entail run {file}{same} --journal {dir} --resume {}` resumes it",
                report.run
            ));
        }
    }
    conclude(ui, &report, &bound)
}

/// Begins a run on an engine. Its world is the worker's.
#[cfg(feature = "engine")]
fn on_engine(ui: &Ui, session: &Session, args: &RunArgs, entry: &str, input: Option<&Data>) -> Exit {
    let journal = &args.journal;
    if journal.journal.is_some()
        || journal.record.is_some()
        || journal.replay.is_some()
        || journal.resume.is_some()
    {
        return ui.usage("an engine keeps the run, so it has no journal or recording", None);
    }
    let redactor = match session.any_models() {
        Ok(models) => models.redactor().for_records(),
        Err(e) => return refuse_config(ui, &e),
    };
    if input.is_some_and(|input| redactor.finds(&input.to_json())) {
        return ui.usage("the input holds a secret of the environment, which no engine may keep", None);
    }
    super::engine::run(ui, &args.engine, &args.file, entry, input)
}

/// The options of a run without which its program would be another one, or would be answered by others.
/// Limits are not among them: one of them may be why it ended.
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
    let session = match setup::session(ui, &args.world) {
        Ok(session) => session,
        Err(exit) => return exit,
    };
    let options = session.settings.loading(args.world.policy.as_deref());
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
        return super::dist::dist(ui, args, &session, policy.as_ref(), runnable);
    }
    let bound = session.bound(&runnable.code, false);
    let head = Head { program: args.term.clone(), entry: runnable.name.clone(), input: None };
    let running = Running {
        session: &session,
        args: &args.world,
        code: &runnable.code,
        policy: policy.as_ref(),
        input: None,
        request: None,
        plan: None,
        journal: None,
        models: None,
        follows: None,
        limits: None,
        sources: None,
    };
    let report = match traced(ui, running, &sources, &head) {
        Ok((report, _)) => report,
        Err(exit) => return exit,
    };
    show_result(ui, &sources, &report, &bound, (&runnable.code, policy.as_ref()), Reified::to_string);
    conclude(ui, &report, &bound)
}

/// Runs a term and writes the trace that the options ask for.
pub(super) fn traced(
    ui: &Ui,
    running: Running<'_>,
    sources: &Sources,
    head: &Head,
) -> Result<(Ran, bool), Exit> {
    let mut trace = TraceFile::create(ui, running.args)?;
    trace.run(ui, running, sources, head)
}

/// The trace of one run, or of several one after the other. It is written while they go on: what was answered
/// is in the file, whatever ends the process.
pub(super) struct TraceFile {
    file: Option<(PathBuf, Lines<std::fs::File>)>,
}

impl TraceFile {
    /// The file that the options ask for, if they do. It is made before the first request: a run whose trace
    /// is lost may be expensive.
    pub(super) fn create(ui: &Ui, args: &WorldArgs) -> Result<TraceFile, Exit> {
        let Some(path) = &args.trace else { return Ok(TraceFile { file: None }) };
        let file = std::fs::File::create(path).map_err(|e| unwritten(ui, path, &e))?;
        Ok(TraceFile { file: Some((path.clone(), Lines { to: file, waiting: Vec::new() })) })
    }

    /// Runs a term, and adds its lines.
    pub(super) fn run(
        &mut self,
        ui: &Ui,
        running: Running<'_>,
        sources: &Sources,
        head: &Head,
    ) -> Result<(Ran, bool), Exit> {
        let Some((path, lines)) = &mut self.file else { return world(ui, running, &mut |_| {}) };
        let mut stream: Option<TraceStream> = None;
        // The run is worth more than its trace: it goes on without.
        let mut written = Ok(());
        let mut note = |event: RunEvent<'_>| {
            let stream = stream.get_or_insert_with(|| {
                let (stream, line) = TraceStream::begin(head, event.records);
                lines.add(&line);
                stream
            });
            let certain = stream.note(event.kept, sources, event.records);
            certain.iter().for_each(|line| lines.add(line));
            // What was paid for is in the file before anything else happens.
            if matches!(event.kept, Event::Answered { .. }) && written.is_ok() {
                written = lines.flush();
            }
        };
        let (report, has_input) = world(ui, running, &mut note)?;
        let stream = stream.unwrap_or_else(|| {
            let (stream, line) = TraceStream::begin(head, &report.records);
            lines.add(&line);
            stream
        });
        stream.end(sources, &report).iter().for_each(|line| lines.add(line));
        written.and_then(|()| lines.flush()).map_err(|e| unwritten(ui, path, &e))?;
        Ok((report, has_input))
    }

    /// Adds a line.
    #[cfg(feature = "plans")]
    pub(super) fn add(&mut self, ui: &Ui, line: &Value) -> Result<(), Exit> {
        let Some((path, lines)) = &mut self.file else { return Ok(()) };
        lines.add(line);
        lines.flush().map_err(|e| unwritten(ui, path, &e))
    }
}

/// Lines of JSON that are written together: one `write` for all, so that a file ends with a whole line.
struct Lines<W> {
    to: W,
    waiting: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn add(&mut self, line: &Value) {
        // INVARIANT: writing to a vector does not fail.
        let _ = writeln!(self.waiting, "{line}");
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // Nothing is written if nothing waits.
        let written = self.to.write_all(&self.waiting);
        self.waiting.clear();
        written
    }
}

fn unwritten(ui: &Ui, path: &Path, e: &std::io::Error) -> Exit {
    ui.usage(&format!("cannot write the trace `{}`: {}", path.display(), reason(e)), None)
}

/// Writes what a run gave: as JSON, or the value in the command's own notation, or the error.
pub(super) fn show_result(
    ui: &Ui,
    sources: &Sources,
    ran: &Ran,
    bound: &CostBound,
    program: (&Code, Option<&Policy>),
    notation: fn(&Reified) -> String,
) {
    show_outcome(ui, sources, ran, bound, program, notation, &|_| {});
}

/// Writes what a run gave; as JSON with what `more` adds.
pub(super) fn show_outcome(
    ui: &Ui,
    sources: &Sources,
    ran: &Ran,
    bound: &CostBound,
    (code, policy): (&Code, Option<&Policy>),
    notation: fn(&Reified) -> String,
    more: &dyn Fn(&mut Value),
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
        let mut outcome = as_json(sources, report, bound);
        more(&mut outcome);
        return ui.result(&outcome.to_string());
    }
    match &report.result {
        Ok(value) => {
            ui.result(&notation(value));
            if !ui.args.quiet {
                ui.problems(sources, &refused_calls(report, code, policy));
            }
        }
        Err(failure) => ui.problems(sources, &[as_diagnostic(failure, report, code, policy)]),
    }
    if let Some(partial) = report.partial.as_ref().filter(|p| !p.finished.is_empty() || p.earlier > 0) {
        ui.note(&so_far(partial));
    }
}

/// Summarizes in a line what a run did before it exceeded its budget.
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
        Err(f) if f.stopped == Some(StopReason::Interrupted) => Exit::Canceled,
        Err(_) => Exit::Failed,
    }
}

/// Refuses a program that can't run as it is set up, before it asks for anything.
pub(super) fn before_run(
    ui: &Ui,
    sources: &Sources,
    session: &Session,
    kind: Kind,
    runnable: &Runnable,
    policy: Option<&Policy>,
) -> Result<(), Exit> {
    session.preflight(kind, runnable, policy).map_err(|refusal| show_refusal(ui, sources, &refusal))
}

/// Shows why a program can't run.
pub(super) fn show_refusal(ui: &Ui, sources: &Sources, refusal: &Refusal) -> Exit {
    ui.problems(sources, &refusal.findings);
    if refusal.calls_refused {
        ui.note("nothing was run; `--run-refused` runs the program up to such a call");
    }
    Exit::Failed
}

/// A program that a command runs, with its options.
pub(super) struct Running<'a> {
    /// Settings and options.
    pub session: &'a Session,
    /// Options of the command line.
    pub args: &'a WorldArgs,
    /// The term.
    pub code: &'a Arc<Code>,
    /// The policy that is applied to it.
    pub policy: Option<&'a Policy>,
    /// The input.
    pub input: Option<Data>,
    /// The request that a plan fulfills.
    pub request: Option<Arc<str>>,
    /// The text of the plan, if it was written for the request.
    pub plan: Option<Arc<str>>,
    /// The journal, and the name of the run in it.
    pub journal: Option<(JournalOptions, String)>,
    /// Models that are there already.
    pub models: Option<&'a Models>,
    /// Earlier runs for the same request.
    pub follows: Option<Follows>,
    /// Rest of the limits after other work for the request, if there was any.
    pub limits: Option<Limits>,
    /// Files of the program, which a journal keeps.
    pub sources: Option<&'a Sources>,
}

/// Runs a program with the models, tools and limits that options and settings say. Also returns whether it
/// had an input.
pub(super) fn world(
    ui: &Ui,
    running: Running<'_>,
    watch: &mut (dyn FnMut(RunEvent<'_>) + Send),
) -> Result<(Ran, bool), Exit> {
    let Running {
        session,
        args,
        code,
        policy,
        input,
        request,
        plan,
        journal,
        models,
        follows,
        limits,
        sources,
    } = running;
    let limits = match limits {
        Some(limits) => limits,
        None => args.limits(&session.settings).map_err(|e| refuse(ui, e))?,
    };
    let models = match models {
        Some(models) => models.clone(),
        // No request is made, so nothing needs to exist.
        None if journal.as_ref().is_some_and(|(j, _)| j.mode.is_replay()) => {
            session.any_models().map_err(|e| refuse_config(ui, &e))?
        }
        None => self::models(ui, args, session, &[code])?,
    };
    let (journal, name) = match journal {
        Some((options, name)) => (Some(options), name),
        None => (None, "term".to_string()),
    };
    let terminal = Terminal::open();
    let approver = terminal.as_ref().map(Terminal::approver);
    // Somebody may read along.
    let stream = args.watch || ui.is_live();
    let spec = RunSpec {
        code,
        policy,
        input,
        request,
        plan,
        name,
        journal,
        models,
        limits,
        approver,
        stream,
        follows,
        sources,
    };
    let run = session.prepare(spec).map_err(|e| refuse(ui, e))?;
    let has_input = run.has_input;
    let waits = run.waits_in_journal.then(|| run.id().to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
    let ran = runtime.block_on(async {
        let cancel = CancellationToken::new();
        interrupt::cancels(cancel.clone());
        let mut view = Watch::new(ui, args.watch, run.limits());
        let log = args.log == Some(LogArg::Json);
        let mut arriving = Arriving::default();
        let mut events = |event: RunEvent<'_>| {
            // Output and records here are the operator's.
            watch(event);
            let Some(event) = event.shown else { return };
            if log && let Some(json) = event_json(event, Detail::Outline) {
                ui.say(&stamped(json));
            }
            if let (Some(run), Event::Asked { what: Asked::Approve { name, .. }, recorded: false, .. }) =
                (&waits, event)
            {
                ui.note(&format!("a call of `{name}` needs approval: `entail approve {run}`"));
            }
            let asking = terminal.as_ref().is_some_and(Terminal::is_asking);
            match &mut view {
                Some(view) => view.show(event, asking),
                None if log => {}
                None => show(ui, event, asking, &mut arriving),
            }
        };
        let ended = run.run(&cancel, &mut events).await;
        if let Some(view) = view {
            view.end();
        }
        if let Some(telemetry) = ended.telemetry {
            // The result counts more than its telemetry, and must not wait for a collector that does not
            // answer.
            let interrupted = CancellationToken::new();
            interrupt::cancels(interrupted.clone());
            let sent = tokio::select! {
                sent = telemetry.send(&ended.ran.report) => sent,
                () = interrupted.cancelled() => Err("the remaining spans for the collector were dropped".to_string()),
            };
            if let Err(why) = sent {
                ui.say(&format!("warning: {why}"));
            }
        }
        ended.ran
    });
    // A blocking task (the local model, between two looks at its cancellation) must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    if ui.is_live() {
        ui.status("");
    }
    Ok((ran, has_input))
}

/// A line of a structured log.
fn stamped(mut json: Value) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    json["time"] = json!(now.as_secs_f64());
    json.to_string()
}

/// Sees to it that models can answer a program, if need be by fetching the local one.
pub(super) fn can_answer(ui: &Ui, args: &WorldArgs, models: &Models, code: &Code) -> Result<(), Exit> {
    with_local_model(ui, args, || models.check(code))
}

/// The models of programs, after fetching the local one if that is all that is missing and wanted.
pub(super) fn models(ui: &Ui, args: &WorldArgs, session: &Session, codes: &[&Code]) -> Result<Models, Exit> {
    with_local_model(ui, args, || session.models(codes))
}

/// Tries something that may need the local model, again after fetching that if it is all that is missing and
/// wanted.
fn with_local_model<T>(
    ui: &Ui,
    args: &WorldArgs,
    make: impl Fn() -> Result<T, ConfigError>,
) -> Result<T, Exit> {
    match make() {
        Ok(made) => Ok(made),
        Err(e) if e.local_model_missing && (args.pull || asked_to_pull(ui)) => {
            super::model::fetch(ui)?;
            make().map_err(|e| refuse_config(ui, &e))
        }
        Err(e) => Err(refuse_config(ui, &e)),
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

/// Arguments of the command line that describe the input.
pub(super) struct InputArgs<'a> {
    /// Command line without the input.
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
    entries::input::read(runnable, text.as_deref()).map_err(|e| match e {
        InputError::Missing(message, example) => {
            let help = format!("give it at the end: entail {} '{example}'", args.command);
            ui.usage(&message, Some(&help))
        }
        InputError::Wrong(message, help) => ui.usage(&message, Some(&help)),
    })
}

/// The end of the reply that arrives, for the progress line.
#[derive(Default)]
struct Arriving {
    id: Option<RequestId>,
    end: String,
    drawn: Option<Instant>,
}

impl Arriving {
    /// Most bytes that are kept: more than a line shows.
    const MAX_BYTES: usize = 1 << 10;

    /// Shortest time between two lines.
    const PAUSE: Duration = Duration::from_millis(60);

    /// Adds a piece. Returns the line to show, unless one has just been shown.
    fn line(&mut self, id: RequestId, text: &str, columns: usize) -> Option<String> {
        if self.id != Some(id) {
            (self.id, self.end) = (Some(id), String::new());
        }
        self.end.push_str(text);
        if self.end.len() > 2 * Self::MAX_BYTES {
            let from =
                self.end.char_indices().map(|(at, _)| at).find(|at| self.end.len() - at <= Self::MAX_BYTES);
            self.end = self.end.split_off(from.unwrap_or_default());
        }
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < Self::PAUSE) {
            return None;
        }
        self.drawn = Some(Instant::now());
        let shown: String = self.end.split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = visible(&shown, shown.chars().count());
        let skip = shown.chars().count().saturating_sub(columns.saturating_sub(2));
        Some(format!("… {}", shown.chars().skip(skip).collect::<String>()))
    }
}

/// Shows a progress line on a terminal, unless a question is open there (`asking`); with `--verbose`, a line
/// for each request.
fn show(ui: &Ui, event: &Event, asking: bool, arriving: &mut Arriving) {
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
        Event::Text { id, text } if ui.is_live() && !ui.args.verbose && !asking => {
            if let Some(line) = arriving.line(*id, text, ui.columns()) {
                ui.status(&line);
            }
            return;
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

/// The answer of a plan: text as it is.
pub(super) fn said(value: &Reified) -> String {
    match value.data() {
        Some(core_ir::Data::Str(text)) => text.to_string(),
        _ => pretty(value),
    }
}

pub(super) fn pretty(value: &Reified) -> String {
    match value.data() {
        // INVARIANT: a JSON value serializes.
        Some(data) => serde_json::to_string_pretty(&data.to_json()).unwrap_or_default(),
        None => value.to_string(),
    }
}

/// Returns the usage of the run beside its bound.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A line was once written piece by piece, 69 for each.
    #[test]
    fn lines_are_written_together() {
        struct Writes(Vec<Vec<u8>>);
        impl Write for Writes {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.push(bytes.to_vec());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut lines = Lines { to: Writes(Vec::new()), waiting: Vec::new() };
        for n in 0..5 {
            lines.add(&json!({"n": n, "messages": [{"role": "user", "content": "a \"text\""}]}));
            lines.add(&json!({"n": n, "event": "response"}));
            lines.flush().unwrap();
        }
        // Where nothing waits, nothing is written.
        lines.flush().unwrap();
        assert_eq!(lines.to.0.len(), 5);
        let last = String::from_utf8(lines.to.0.pop().unwrap()).unwrap();
        assert!(last.ends_with('\n') && last.lines().count() == 2, "{last}");
    }
}
