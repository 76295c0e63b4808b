//! `entail test`: the `test` blocks of programs, each on a machine of its own.
//!
//! Models answer from a script: that of `--script`, or the replies beside the program (`NAME.replies.json`
//! for `NAME.agent`), or, with `--record`, for real, and then their replies are written there.
//!
//! Invariant: without `--record` no model is called, so a test costs nothing and gives the same result every
//! time.
//! Invariant: without `--live` no tool is called that does more than compute: mocks answer instead.

mod coverage;
mod mocks;
mod rate;
mod snapshots;

use coverage::Coverage;

use super::run::show_refusal;
use super::say_problem;
use crate::args::{Format, TestArgs};
use crate::interrupt;
use crate::ui::{Exit, Ui};
use diagnostics::{Diagnostic, Sources, render};
use machine::{Config, ErrorCode, Machine, StopReason};
use policy::Policy;
use runtime::trace::Recorder;
use runtime::{Asked, CancellationToken, Event, Handlers, Limits, Models, RunReport, Scripted, Stores};
use serde_json::{Map, Value, json};
use session::load::{self, Kind, Options, Problem, Runnable, Test, files_under, read_data, reason};
use session::preflight::Gate;
use session::report::as_diagnostic;
use session::settings::Settings;
use session::{handlers, machine_config};
use snapshots::{Differing, Snapshots};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A file with tests.
struct Suite {
    path: PathBuf,
    sources: Sources,
    tests: Vec<Test>,
    policy: Option<Policy>,
    replies: Replies,
    snapshots: Snapshots,
    /// Titles of all tests of the file, also of those that are filtered out.
    titles: BTreeSet<String>,
}

/// Source of the models' replies in the tests of a file.
#[derive(Clone)]
enum Replies {
    /// Nothing is written down.
    None,
    /// A script shared by all tests.
    Same(String),
    /// A script for each test.
    Each(Map<String, Value>),
}

/// A run of a test.
struct TestRun {
    report: RunReport,
    script: Value,
    /// Mocks that went wrong.
    faults: Vec<Diagnostic>,
    /// Expectations that do not hold.
    broken: Vec<Diagnostic>,
    /// True if a refusal ended an attack.
    is_held: bool,
    /// Replies of models without the attack, if there is one.
    without: Option<Value>,
    /// Snapshots that differ from those that are recorded.
    differing: Vec<Differing>,
}

impl TestRun {
    fn passed(&self) -> bool {
        (self.report.result.is_ok() || self.is_held)
            && self.faults.is_empty()
            && self.broken.is_empty()
            && self.differing.is_empty()
    }

    /// Returns the diagnostics of a failed run.
    fn found(&self, suite: &Suite, test: &Test) -> Vec<Diagnostic> {
        let failure = self.report.result.as_ref().err().filter(|_| !self.is_held);
        let ended = failure.map(|f| {
            let d = as_diagnostic(f, &self.report, &test.code, suite.policy.as_ref());
            if f.code == ErrorCode::Model && matches!(suite.replies, Replies::None) {
                let beside = beside(&suite.path);
                return d
                    .help(format!("there is no `{}`; `entail test --record` writes it", beside.display()));
            }
            d
        });
        let differing = self.differing.iter().map(|d| d.report.clone());
        let others = self.faults.iter().chain(&self.broken).cloned();
        ended.into_iter().chain(others).chain(differing).collect()
    }
}

/// The runs of a test, by sample: one if it has none.
struct TestResult(Vec<TestRun>);

/// Number of samples of a test that passed.
struct Rate {
    passed: u32,
    runs: u32,
    /// Confidence interval of 95 %.
    interval: (f64, f64),
}

impl Rate {
    /// `18 of 20 samples passed: 90.0 % (95 % confidence: 69.9 to 97.2 %)`
    fn text(&self) -> String {
        let (low, high) = self.interval;
        format!(
            "{} of {} samples passed: {:.1} % (95 % confidence: {:.1} to {:.1} %)",
            self.passed,
            self.runs,
            self.value() * 100.0,
            low * 100.0,
            high * 100.0
        )
    }

    fn value(&self) -> f64 {
        f64::from(self.passed) / f64::from(self.runs.max(1))
    }
}

impl TestResult {
    /// The rate, if the test has samples.
    fn rate(&self, test: &Test) -> Option<Rate> {
        test.samples.as_ref()?;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let passed = count(self.0.iter().filter(|r| r.passed()).count());
        let runs = count(self.0.len());
        Some(Rate { passed, runs, interval: rate::wilson(passed, runs) })
    }

    fn passed(&self, test: &Test) -> bool {
        match (self.rate(test), &test.samples) {
            // A mock that went wrong is a fault of the test, which no rate makes up for.
            (Some(rate), Some(samples)) => {
                rate.passed >= samples.must_pass && self.0.iter().all(|r| r.faults.is_empty())
            }
            _ => self.0.iter().all(TestRun::passed),
        }
    }

    /// Returns the diagnostics of a failed test; of samples, those of the first one that failed.
    fn found(&self, suite: &Suite, test: &Test) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let faulty = self.0.iter().position(|r| !r.faults.is_empty());
        let failed = faulty.or_else(|| self.0.iter().position(|r| !r.passed()));
        if let (Some(rate), Some(samples)) = (self.rate(test), &test.samples) {
            if self.passed(test) {
                return found;
            }
            if rate.passed < samples.must_pass {
                let message = format!("{}, not at least {}", rate.text(), samples.required);
                let d = Diagnostic::error("rate", message, test.span);
                found.push(match failed {
                    Some(sample) => d.help(format!("sample {sample} is the first that failed")),
                    None => d,
                });
            }
        }
        found.extend(failed.and_then(|i| self.0.get(i)).into_iter().flat_map(|r| r.found(suite, test)));
        found
    }

    fn elapsed(&self) -> Duration {
        self.0.iter().map(|r| r.report.elapsed).sum()
    }
}

/// The name of a test in reports, with the number of its row: `routes [row 3]`.
fn title(test: &Test) -> String {
    match test.row {
        Some(row) => format!("{} [row {row}]", test.name),
        None => test.name.clone(),
    }
}

/// The name of a run in the file of replies: `routes [row 3, sample 0]`.
fn label(test: &Test, sample: u32) -> String {
    match (test.row, &test.samples) {
        (_, None) => title(test),
        (None, Some(_)) => format!("{} [sample {sample}]", test.name),
        (Some(row), Some(_)) => format!("{} [row {row}, sample {sample}]", test.name),
    }
}

/// The name of a run whose attacks are left out.
fn without_attack(label: &str) -> String {
    format!("{label} without attack")
}

/// The numbers of a test's runs.
fn samples(test: &Test) -> std::ops::Range<u32> {
    0..test.samples.as_ref().map_or(1, |s| s.count)
}

/// Runs the command.
pub fn test(ui: &Ui, args: &TestArgs) -> Exit {
    let timeout = match session::limits::seconds("--timeout", args.timeout) {
        Ok(timeout) => timeout,
        Err(why) => return ui.usage(&why, None),
    };
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let mut broken = 0;
    let mut coverage = Coverage::default();
    let options = settings.loading(args.policy.as_deref());
    let (mut suites, filtered) = match suites(ui, args, &options, &mut broken, &mut coverage) {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let limits = Limits { timeout: Some(timeout), ..Limits::default() };
    let (mut ran, interrupted) = match run_all(ui, args, &settings, &suites, &limits) {
        Ok(ran) => ran,
        Err(exit) => return exit,
    };
    if args.record
        && let Err(exit) = record(ui, &suites, &ran)
    {
        return exit;
    }
    if let Err(exit) = compare(ui, args, &mut suites, &mut ran) {
        return exit;
    }
    each(&suites, &ran, |suite, test, result| {
        for run in &result.0 {
            let taken: BTreeSet<_> =
                run.report.branches.iter().filter_map(|b| test.branches.get(b)).collect();
            coverage.count(&suite.sources, taken.into_iter().copied());
        }
    });
    if let Some(path) = &args.lcov
        && let Err(e) = load::replace_file(path, coverage.lcov())
    {
        return ui.usage(&format!("cannot write `{}`: {}", path.display(), reason(&e)), None);
    }
    let mut failed = 0;
    each(&suites, &ran, |_, test, ran| failed += usize::from(!ran.passed(test)));
    match ui.args.format {
        Format::Junit => ui.result(&junit(&suites, &ran)),
        Format::Json => {
            each(&suites, &ran, |suite, test, ran| ui.result(&as_json(suite, test, ran).to_string()));
            if args.coverage {
                coverage.json().iter().for_each(|file| ui.result(&file.to_string()));
            }
        }
        _ => {
            each(&suites, &ran, |suite, test, ran| show(ui, suite, test, ran));
            if args.coverage {
                ui.result(&coverage.text());
            }
        }
    }
    if ui.args.format == Format::Text {
        let mut parts = vec![format!("{} passed", ran.len() - failed), format!("{failed} failed")];
        if filtered > 0 {
            parts.push(format!("{filtered} filtered out"));
        }
        if broken > 0 {
            parts.push(format!("{broken} file{} with errors", if broken == 1 { "" } else { "s" }));
        }
        ui.note(&parts.join(", "));
    }
    let percent = coverage.all().percent();
    let too_few = args.fail_under.filter(|least| percent < *least);
    if let Some(least) = too_few {
        ui.note(&format!("the tests took {percent:.1} % of the branches, not {least} %"));
    }
    match () {
        () if interrupted => Exit::Canceled,
        () if failed > 0 || broken > 0 || too_few.is_some() => Exit::Failed,
        () => Exit::Done,
    }
}

/// Reads the files; says what is wrong with those that cannot be run, and how many tests are filtered out.
fn suites(
    ui: &Ui,
    args: &TestArgs,
    options: &Options,
    broken: &mut usize,
    coverage: &mut Coverage,
) -> Result<(Vec<Suite>, usize), Exit> {
    let mut files = Vec::new();
    for path in &args.paths {
        let shown = path.display().to_string();
        if shown == "-" {
            if args.record {
                return Err(ui.usage("`--record` needs a file: the replies are written beside it", None));
            }
            files.push(path.clone());
        } else if path.is_dir() {
            files.extend(files_under(path, |p| Kind::of(p) == Kind::Agent));
        } else if !path.exists() {
            return Err(ui.usage(&format!("cannot read `{shown}`: no such file"), None));
        } else if Kind::of(&shown) != Kind::Agent {
            return Err(ui.usage(&format!("`{shown}` is not an `.agent` program"), None));
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    files.dedup();
    let (mut out, mut seen, mut filtered) = (Vec::new(), 0, 0);
    for path in files {
        let mut sources = Sources::new();
        let load::Tests { mut tests, policy, branches } =
            match load::tests(&mut sources, &path.display().to_string(), options) {
                Ok(loaded) => loaded,
                Err(problem @ Problem::Policy(_)) => return Err(say_problem(ui, &sources, problem)),
                Err(problem) => {
                    say_problem(ui, &sources, problem);
                    *broken += 1;
                    continue;
                }
            };
        coverage.declare(&sources, &branches);
        let all = tests.len();
        seen += all;
        let titles: BTreeSet<String> = tests.iter().map(title).collect();
        let names = tests
            .iter()
            .flat_map(|t| samples(t).map(|sample| label(t, sample)).chain([title(t), t.name.clone()]));
        let names: BTreeSet<String> = names.flat_map(|n| [without_attack(&n), n]).collect();
        if let Some(part) = &args.filter {
            tests.retain(|t| title(t).contains(part.as_str()));
        }
        filtered += all - tests.len();
        if tests.is_empty() {
            continue;
        }
        let replies = replies(ui, args, &path, &names)?;
        let snapshots = Snapshots::beside(&path).map_err(|why| ui.usage(&why, None))?;
        out.push(Suite { path, sources, tests, policy, replies, snapshots, titles });
    }
    if seen == 0 && *broken == 0 {
        let help = "a test is written `test \"name\" { … assert …; }`";
        return Err(ui.usage("no tests found", Some(help)));
    }
    Ok((out, filtered))
}

/// Returns the path of the replies for a program.
fn beside(path: &Path) -> PathBuf {
    path.with_extension("replies.json")
}

fn replies(ui: &Ui, args: &TestArgs, program: &Path, names: &BTreeSet<String>) -> Result<Replies, Exit> {
    let path = args.script.clone().unwrap_or_else(|| beside(program));
    if args.record || (args.script.is_none() && !path.exists()) {
        return Ok(Replies::None);
    }
    let shown = path.display();
    let wrong = |why: &str| {
        let help =
            "a JSON array is the script of every test; an object has a script for each test by its name";
        ui.usage(&format!("`{shown}`: {why}"), Some(help))
    };
    let bytes = read_data(&shown.to_string()).map_err(|e| wrong(&reason(&e)))?;
    let json: Value = serde_json::from_slice(&bytes).map_err(|e| wrong(&format!("not JSON: {e}")))?;
    let parse = |script: &Value| {
        Scripted::parse(&script.to_string())
            .map_err(|e| ui.usage(&format!("`{shown}`: {}", e.message), e.help.as_deref()))
    };
    match json {
        Value::Array(_) => {
            parse(&json)?;
            Ok(Replies::Same(json.to_string()))
        }
        Value::Object(each) => {
            for (name, script) in &each {
                if !names.contains(name) {
                    let near = diagnostics::nearest(name, names.iter().map(String::as_str));
                    let help = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                    ui.note(&format!(
                        "warning: `{shown}` has replies for `{name}`, which is not a test{help}"
                    ));
                }
                parse(script)?;
            }
            Ok(Replies::Each(each))
        }
        _ => Err(wrong("neither an array nor an object")),
    }
}

/// The models of a test.
fn models(
    ui: &Ui,
    args: &TestArgs,
    settings: &Settings,
    suite: &Suite,
    test: &Test,
    sample: u32,
    is_without: bool,
) -> Result<Models, Exit> {
    let failed = |e: runtime::ConfigError| ui.usage(&e.message, e.help.as_deref());
    if args.record {
        let chosen = settings.model_settings(args.model.as_deref());
        let models = Models::new(chosen, settings.environment.clone()).map_err(failed)?;
        models.check(&test.code).map_err(failed)?;
        return Ok(models);
    }
    let script = match &suite.replies {
        Replies::None => "[]".to_string(),
        Replies::Same(script) => script.clone(),
        Replies::Each(each) => {
            let names = [label(test, sample), title(test), test.name.clone()];
            let without = names.iter().filter(|_| is_without).find_map(|n| each.get(&without_attack(n)));
            let script = without.or_else(|| names.iter().find_map(|n| each.get(n)));
            script.map_or_else(|| "[]".into(), Value::to_string)
        }
    };
    Ok(Models::only(Arc::new(Scripted::parse(&script).map_err(failed)?)))
}

/// Handlers and configuration for one run of a test.
struct Prepared {
    handlers: Handlers,
    config: Arc<Config>,
    faults: mocks::Faults,
}

impl Prepared {
    /// Runs the test, and returns with the report what models replied and the calls of tools.
    async fn run(
        &self,
        test: &Test,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> (RunReport, Value, mocks::Calls) {
        let machine = Machine::new(test.code.clone(), Some(test.input.clone()), self.config.clone());
        let mut recorder = Recorder::new();
        let mut calls = mocks::Calls::new();
        let mut events = |event: Event| {
            recorder.note(&event);
            if let Event::Asked { what: Asked::Tool { name, args, .. }, .. } = event {
                calls.push((name, args));
            }
        };
        let report = runtime::run(machine, &self.handlers, limits, cancel, &mut events).await;
        let mut script = recorder.script();
        report.records.json(&mut script);
        (report, script, calls)
    }
}

/// Which test of which file.
type TestIndex = (usize, usize);

fn run_all(
    ui: &Ui,
    args: &TestArgs,
    settings: &Settings,
    suites: &[Suite],
    limits: &Limits,
) -> Result<(BTreeMap<TestIndex, TestResult>, bool), Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
    let jobs =
        args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let mut waiting = Vec::new();
    for (i, suite) in suites.iter().enumerate() {
        for (j, test) in suite.tests.iter().enumerate() {
            for sample in samples(test) {
                let prepare = |injection: Option<&mocks::Injection>, is_without: bool| {
                    let models = models(ui, args, settings, suite, test, sample, is_without)?;
                    let seed = args.seed.wrapping_add(u64::from(sample));
                    let mut handlers = handlers(models, settings, seed);
                    handlers.stores = Stores::only_here();
                    let config = machine_config(None, suite.policy.as_ref());
                    // The value of a test is no output of the program, so no bound holds for it.
                    let answer = core_ir::AnswerSink::default();
                    let config = Config { note_branches: args.counts_branches(), answer, ..config };
                    let config = Arc::new(config);
                    let faults = mocks::Faults::default();
                    mocks::install(&mut handlers, test, &config, args.live, &faults, injection);
                    Ok::<_, Exit>(Prepared { handlers, config, faults })
                };
                let injection = (!test.plan.attacks.is_empty()).then(|| mocks::Injection::new(test));
                let without = match &injection {
                    Some(_) => Some(prepare(None, true)?),
                    None => None,
                };
                let prepared = prepare(injection.as_ref(), false)?;
                if args.live && sample == 0 {
                    live(ui, settings, suite, test, &prepared.handlers)?;
                }
                waiting.push(((i, j, sample), test.clone(), prepared, injection.zip(without)));
            }
        }
    }
    let (ran, canceled) = runtime.block_on(async {
        let cancel = CancellationToken::new();
        interrupt::cancels(cancel.clone());
        let free = Arc::new(Semaphore::new(jobs));
        let mut tasks = JoinSet::new();
        for (at, test, prepared, attack) in waiting {
            let (free, cancel, limits) = (free.clone(), cancel.clone(), limits.clone());
            tasks.spawn(async move {
                // Nobody closes the semaphore; without a permit the test would still be right, only early.
                let _permit = free.acquire_owned().await.ok();
                if cancel.is_cancelled() {
                    return None;
                }
                let mut without = None;
                if let Some((_, prepared)) = &attack {
                    let first = prepared.run(&test, &limits, &cancel).await;
                    // A comparison with a run that fails says nothing.
                    if first.0.result.is_err() {
                        let (report, script, _) = first;
                        let faults = mocks::faulty(&prepared.faults);
                        let (broken, is_held, without) = (Vec::new(), false, Some(script));
                        let (script, differing) = (Value::Array(Vec::new()), Vec::new());
                        let run = TestRun { report, script, faults, broken, is_held, without, differing };
                        return Some((at, run));
                    }
                    without = Some(first);
                }
                let (report, script, calls) = prepared.run(&test, &limits, &cancel).await;
                let faults = mocks::faulty(&prepared.faults);
                let mut broken = mocks::judge(&test, &report, &calls);
                let mut is_held = false;
                if let (Some((injection, _)), Some((_, _, others))) = (&attack, &without) {
                    broken.extend(mocks::attacked(&test, injection, &calls, others));
                    is_held = report.result.is_err() && report.why.refused.is_some();
                }
                let without = without.map(|(_, script, _)| script);
                let differing = Vec::new();
                Some((at, TestRun { report, script, faults, broken, is_held, without, differing }))
            });
        }
        let mut ran = BTreeMap::new();
        while let Some(done) = tasks.join_next().await {
            if let Ok(Some((at, result))) = done {
                ran.insert(at, result);
            }
            if ui.is_live() {
                ui.status(&format!("{} tests have run …", ran.len()));
            }
        }
        (ran, cancel.is_cancelled())
    });
    runtime.shutdown_timeout(Duration::from_millis(200));
    if ui.is_live() {
        ui.status("");
    }
    let all: usize = suites.iter().flat_map(|s| &s.tests).map(|t| samples(t).len()).sum();
    if !canceled && ran.len() < all {
        ui.say("internal error: a test ended without a result; please report this program");
        return Err(Exit::Failed);
    }
    // Those that the interruption ended have not failed.
    let ran = if canceled {
        ran.into_iter()
            .filter(
                |(_, r)| !matches!(&r.report.result, Err(f) if f.stopped == Some(StopReason::Interrupted)),
            )
            .collect()
    } else {
        ran
    };
    let mut results: BTreeMap<TestIndex, TestResult> = BTreeMap::new();
    for ((i, j, _), run) in ran {
        results.entry((i, j)).or_insert_with(|| TestResult(Vec::new())).0.push(run);
    }
    // A rate of some of the samples says nothing.
    let is_whole = |(i, j): &TestIndex, result: &TestResult| {
        let test = suites.get(*i).and_then(|s| s.tests.get(*j));
        test.is_some_and(|t| result.0.len() == samples(t).len())
    };
    results.retain(|at, result| is_whole(at, result));
    Ok((results, canceled))
}

/// Refuses a test whose tools can't really be called, before any request is made.
fn live(ui: &Ui, settings: &Settings, suite: &Suite, test: &Test, handlers: &Handlers) -> Result<(), Exit> {
    let stores = settings.fresh_stores();
    // A test may be about a refusal.
    let routes = settings.model_settings(None).routes(&settings.environment);
    let gate = Gate { tools: &handlers.tools, stores: &stores, routes: &routes, refusals: true };
    let runnable = Runnable {
        name: test.name.clone(),
        code: test.code.clone(),
        input: None,
        is_default: true,
        hints: Vec::new(),
    };
    gate.check(Kind::Agent, &runnable, suite.policy.as_ref())
        .map_err(|refusal| show_refusal(ui, &suite.sources, &refusal))
}

/// Writes what models replied beside each program; replies of tests that were not run stay.
fn record(ui: &Ui, suites: &[Suite], ran: &BTreeMap<TestIndex, TestResult>) -> Result<(), Exit> {
    for (i, suite) in suites.iter().enumerate() {
        let path = beside(&suite.path);
        let old = std::fs::read_to_string(&path).ok().and_then(|t| serde_json::from_str(&t).ok());
        let mut all = match old {
            Some(Value::Object(old)) => old,
            _ => Map::new(),
        };
        let before = all.clone();
        for (j, test) in suite.tests.iter().enumerate() {
            let Some(result) = ran.get(&(i, j)) else { continue };
            for (sample, run) in samples(test).zip(&result.0) {
                let label = label(test, sample);
                match &run.script {
                    Value::Array(script) if script.is_empty() => drop(all.remove(&label)),
                    script => drop(all.insert(label.clone(), script.clone())),
                }
                if let Some(script) = &run.without {
                    all.insert(without_attack(&label), script.clone());
                }
            }
        }
        if all == before {
            continue;
        }
        // INVARIANT: a JSON value serializes.
        let text = serde_json::to_string_pretty(&Value::Object(all)).unwrap_or_default() + "\n";
        load::replace_file(&path, &text)
            .map_err(|e| ui.usage(&format!("cannot write `{}`: {}", path.display(), reason(&e)), None))?;
        ui.note(&format!("recorded {}", path.display()));
    }
    Ok(())
}

/// Compares the snapshots with those that are recorded, or, with `--accept`, records those of tests that
/// pass.
fn compare(
    ui: &Ui,
    args: &TestArgs,
    suites: &mut [Suite],
    ran: &mut BTreeMap<TestIndex, TestResult>,
) -> Result<(), Exit> {
    for (i, suite) in suites.iter_mut().enumerate() {
        let of_suite = ran.range_mut((i, 0)..(i + 1, 0));
        let all = of_suite.filter_map(|((_, j), result)| Some((suite.tests.get(*j)?, result)));
        if !args.accept {
            for name in suite.snapshots.unknown(&suite.titles) {
                let path = suite.snapshots.path().display();
                ui.note(&format!("warning: `{path}` has snapshots of `{name}`, which is not a test"));
            }
            for (test, result) in all {
                for run in &mut result.0 {
                    run.differing = suite.snapshots.compare(test, run);
                }
            }
            continue;
        }
        let before = suite.snapshots.text();
        for (test, result) in all {
            if let (true, Some(first)) = (result.passed(test), result.0.iter().find(|r| r.passed())) {
                suite.snapshots.take(test, first);
            }
        }
        suite.snapshots.keep_only(&suite.titles);
        let path = suite.snapshots.path();
        if suite.snapshots.text() == before || (suite.snapshots.is_empty() && !path.exists()) {
            continue;
        }
        load::replace_file(path, suite.snapshots.text())
            .map_err(|e| ui.usage(&format!("cannot write `{}`: {}", path.display(), reason(&e)), None))?;
        ui.note(&format!("recorded {}", path.display()));
    }
    Ok(())
}

fn each(
    suites: &[Suite],
    ran: &BTreeMap<TestIndex, TestResult>,
    mut f: impl FnMut(&Suite, &Test, &TestResult),
) {
    for ((i, j), result) in ran {
        if let Some((suite, test)) = suites.get(*i).and_then(|s| Some((s, s.tests.get(*j)?))) {
            f(suite, test, result);
        }
    }
}

fn show(ui: &Ui, suite: &Suite, test: &Test, ran: &TestResult) {
    let title = format!("{}: {}", suite.path.display(), title(test));
    if ran.passed(test) {
        let rate = ran.rate(test).map_or(String::new(), |rate| format!(": {}", rate.text()));
        return ui.result(&format!("{}   {title}{rate}", ui.styled("32", "ok")));
    }
    ui.result(&format!("{} {title}", ui.styled("31", "FAIL")));
    for d in ran.found(suite, test) {
        ui.result(&format!("{}\n", render::text(&suite.sources, &d, ui.colors())));
    }
    let failed = ran.0.iter().find(|r| !r.passed());
    for d in failed.into_iter().flat_map(|r| &r.differing) {
        ui.result(&ui.diff(&suite.snapshots.path().display().to_string(), &d.before, &d.after));
    }
}

fn as_json(suite: &Suite, test: &Test, ran: &TestResult) -> Value {
    let place = |span: diagnostics::Span| {
        suite.sources.get(span.file).map(|s| (s.path.clone(), s.line_column(span.start)))
    };
    let (_, at) = place(test.span).unzip();
    let mut line = json!({
        "path": suite.path.display().to_string(), "line": at.map(|a| a.line), "test": test.name,
        "status": if ran.passed(test) { "passed" } else { "failed" },
        "usage": {
            "modelCalls": ran.0.iter().map(|r| r.report.usage.model_calls).sum::<u64>(),
            "toolCalls": ran.0.iter().map(|r| r.report.usage.tool_calls).sum::<u64>(),
        },
        "ms": ran.elapsed().as_millis() as u64,
    });
    if let (Some(row), Some(o)) = (test.row, line.as_object_mut()) {
        o.insert("row".into(), row.into());
    }
    if let (Some(rate), Some(samples), Some(o)) = (ran.rate(test), &test.samples, line.as_object_mut()) {
        let (low, high) = rate.interval;
        let about = json!({
            "runs": rate.runs, "passed": rate.passed, "mustPass": samples.must_pass, "rate": rate.value(),
            "required": samples.required.parse::<f64>().ok(), "confidence": 0.95, "interval": [low, high],
        });
        o.insert("samples".into(), about);
    }
    let error = |d: &Diagnostic| {
        let (path, at) = d.span.and_then(place).unzip();
        json!({
            "code": d.code, "message": d.message, "path": path,
            "line": at.map(|a| a.line), "column": at.map(|a| a.column),
        })
    };
    let found = ran.found(suite, test);
    if let (Some((first, more)), Some(o)) = (found.split_first(), line.as_object_mut()) {
        o.insert("error".into(), error(first));
        if !more.is_empty() {
            o.insert("more".into(), more.iter().map(error).collect());
        }
    }
    line
}

/// The format that continuous integration reads.
fn junit(suites: &[Suite], ran: &BTreeMap<TestIndex, TestResult>) -> String {
    let mut by_suite: BTreeMap<usize, Vec<(&Test, &TestResult)>> = BTreeMap::new();
    for ((i, j), result) in ran {
        if let Some(test) = suites.get(*i).and_then(|s| s.tests.get(*j)) {
            by_suite.entry(*i).or_default().push((test, result));
        }
    }
    let failures = |tests: &[(&Test, &TestResult)]| tests.iter().filter(|(t, r)| !r.passed(t)).count();
    let seconds = |d: Duration| format!("{:.3}", d.as_secs_f64());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let failed: usize = by_suite.values().map(|t| failures(t)).sum();
    out.push_str(&format!("<testsuites name=\"entail\" tests=\"{}\" failures=\"{failed}\">\n", ran.len()));
    for (i, tests) in by_suite {
        let Some(suite) = suites.get(i) else { continue };
        let name = escape(&suite.path.display().to_string());
        let time = seconds(tests.iter().map(|(_, r)| r.elapsed()).sum());
        out.push_str(&format!(
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{time}\">\n",
            tests.len(),
            failures(&tests)
        ));
        for (test, ran) in tests {
            let time = seconds(ran.elapsed());
            let head = format!(
                "    <testcase name=\"{}\" classname=\"{name}\" time=\"{time}\"",
                escape(&title(test))
            );
            let found = ran.found(suite, test);
            let Some(first) = found.first() else {
                out.push_str(&format!("{head}/>\n"));
                continue;
            };
            let text: Vec<String> = found.iter().map(|d| render::text(&suite.sources, d, false)).collect();
            out.push_str(&format!(
                "{head}>\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n",
                escape(&first.message),
                first.code,
                escape(&text.join("\n"))
            ));
        }
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>"
}

/// Text inside XML; characters that XML cannot hold become the replacement character.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}
