//! `entail plan`: a model writes a plan from a request, and the plan is checked, shown and run.
//!
//! Invariant: the planner sees the request, the tools' signatures and findings before the run. Of a run it
//! sees nothing but what `session::replanning` lets it know.

use super::run::{Running, TraceFile, conclude, said, show_outcome, show_refusal, show_result, world};
use super::say_problem;
use crate::args::{PlanArgs, WorldArgs};
use crate::setup;
use crate::ui::{Exit, Ui};
use analysis::flow;
use core_ir::{Data, ModelRoutes};
use diagnostics::{Sources, has_errors};
use runtime::trace::Head;
use runtime::{Limits, Models, Stores, Tools};
use serde_json::{Value, json};
use session::limits::spend;
use session::load::{self, Problem, replace_file};
use session::planning::{self, Draft, PlanOptions, Planning, Step, Toolset, WRITTEN};
use session::preflight::Gate;
use session::replanning::{KeptPlan, Replanning, kept_plans};
use session::report::shown_bits;
use session::{JournalMode, Session, Settings, machine_config};
use std::collections::VecDeque;
use std::sync::Arc;

/// Runs the command.
pub fn plan(ui: &Ui, args: &PlanArgs) -> Exit {
    carry_out(ui, args).unwrap_or_else(|exit| exit)
}

fn carry_out(ui: &Ui, args: &PlanArgs) -> Result<Exit, Exit> {
    let model = args.quarantine.clone().or_else(|| args.world.model.clone());
    let world = WorldArgs { model, ..args.world.clone() };
    let session = setup::session(ui, &world)?;
    // One script plays all models: its replies go to the planner first, and then to `ask` of the plan.
    let scripted = match &world.script {
        Some(_) => Some(session.any_models().map_err(|e| setup::refuse_config(ui, &e))?),
        None => None,
    };
    let mut kept = kept(ui, args)?;
    let request: Option<Arc<str>> = match kept.front() {
        Some(first) => Some(first.request.as_str().into()),
        None => args.request.as_deref().map(Into::into),
    };
    let all = world.limits(&session.settings).map_err(|e| setup::refuse(ui, e))?;
    let mut exchange = Exchange::new(ui, args, &session, request.clone(), (scripted.clone(), all))?;
    let mut draft = match kept.front() {
        Some(first) => exchange.draft(&first.plan),
        None => exchange.first()?,
    };
    // What was told before the run was interrupted was within the number of that time.
    let errors = args.replan_errors.max(u32::try_from(kept.len().saturating_sub(1)).unwrap_or(u32::MAX));
    let mut replanning = Replanning::new(errors, &machine_config(None, exchange.planning.policy()));
    let mut trace = None;
    let mut journal = args.journal.options(ui)?;
    loop {
        let repeated = kept.pop_front().filter(|_| !kept.is_empty());
        if let Some(file) = &args.save {
            replace_file(file, &draft.text).map_err(|e| ui.cannot_write(file.display(), &e))?;
        }
        if args.show || args.dry_run {
            show(ui, args, &draft);
        }
        let outline = draft.outline();
        let Draft { outcome, sources, text: draft_text, .. } = draft;
        let compiled = outcome.map_err(|problem| say_problem(ui, &sources, problem))?;
        if let Some(refusal) = &compiled.refusal {
            return Ok(show_refusal(ui, &sources, refusal));
        }
        if args.dry_run {
            return Ok(Exit::Done);
        }
        let (Some(runnable), Some(outline)) = (compiled.runnable(), outline) else {
            return Err(ui.usage("the plan has nothing that can be run", None));
        };
        let mut options = journal.clone();
        if let (Some(repeated), JournalMode::Resume { place, .. }) = (&repeated, &journal.mode) {
            options.mode = JournalMode::Replay { place: place.clone(), run: Some(repeated.run.clone()) };
        }
        let name = path_of(args);
        let head = Head { program: name.clone(), entry: "plan".into(), input: None };
        let (code, policy) = (&runnable.code, compiled.loaded.policy.as_ref());
        let running = Running {
            session: &session,
            args: &world,
            code,
            policy,
            input: None,
            request: request.clone(),
            plan: args.plan.is_none().then(|| draft_text.into()),
            journal: Some((options, name)),
            models: scripted.as_ref(),
            follows: replanning.follows(),
            limits: Some(exchange.left.clone()),
            sources: Some(&sources),
        };
        let trace = match &mut trace {
            Some(trace) => trace,
            None => trace.insert(TraceFile::create(ui, &world)?),
        };
        let (mut ran, _) = trace.run(ui, running, &sources, &head)?;
        spend(&mut exchange.left, &ran.report.usage, ran.report.elapsed);
        if let Some(told) = replanning.after(&outline, &ran.report) {
            trace.add(ui, &told.trace_line())?;
            if let Some(next) = kept.front().filter(|_| repeated.is_some()) {
                exchange.planning.after_error(told.ended.clone());
                draft = exchange.draft(&next.plan);
                continue;
            }
            if let JournalMode::Resume { place, .. } = &journal.mode {
                journal.mode = JournalMode::Begin(place.clone());
            }
            if !ui.is_json() {
                let bound = session.bound(code, false);
                show_result(ui, &sources, &ran, &bound, (code, policy), said);
            }
            ui.note(&told.describe());
            let prompt = exchange.planning.after_error(told.ended.clone());
            draft = exchange.write(prompt)?;
            continue;
        }
        let bound = session.bound(code, false);
        let exit = conclude(ui, &ran, &bound);
        ran.report.usage = replanning.usage().clone();
        let more = |outcome: &mut Value| replanning.add_to(outcome);
        show_outcome(ui, &sources, &ran, &bound, (code, policy), said, &more);
        if !replanning.told().is_empty() {
            let (times, bits) = (replanning.told().len(), shown_bits(replanning.bits()));
            let errors = if times == 1 { "error" } else { "errors" };
            ui.note(&format!("the planner was told of {times} {errors}: {bits} in all"));
        }
        return Ok(exit);
    }
}

/// The plans of a run that is resumed, and of those that it follows; none if its plan is in a file, or if
/// nothing is resumed.
fn kept(ui: &Ui, args: &PlanArgs) -> Result<VecDeque<KeptPlan>, Exit> {
    let JournalMode::Resume { place, run, .. } = args.journal.options(ui)?.mode else {
        return Ok(VecDeque::new());
    };
    if args.request.is_some() {
        let help = "leave the request out";
        return Err(ui.usage("a run that is resumed has its request already", Some(help)));
    }
    if args.plan.is_some() {
        return Ok(VecDeque::new());
    }
    kept_plans(&place, &run).map(Into::into).map_err(|e| setup::refuse(ui, e))
}

/// The path of the plan, for messages.
fn path_of(args: &PlanArgs) -> String {
    args.plan.as_ref().map_or_else(|| WRITTEN.into(), |file| file.display().to_string())
}

/// The exchange with the planner.
struct Exchange<'a> {
    ui: &'a Ui,
    args: &'a PlanArgs,
    planning: Planning,
    tools: Tools,
    stores: Stores,
    routes: ModelRoutes,
    refusals: bool,
    /// Script that plays the planner, if no model does.
    scripted: Option<Models>,
    /// Rest of the limits after all that was done for the request.
    left: Limits,
}

impl<'a> Exchange<'a> {
    fn new(
        ui: &'a Ui,
        args: &'a PlanArgs,
        session: &Session,
        request: Option<Arc<str>>,
        (scripted, left): (Option<Models>, Limits),
    ) -> Result<Exchange<'a>, Exit> {
        let mut sources = Sources::new();
        let loading = session.settings.loading(args.world.policy.as_deref());
        let tools = toolset(ui, &mut sources, &args.tools, &session.settings, (&loading, args.unpinned))?;
        let request = request.unwrap_or_default();
        let options = PlanOptions {
            path: path_of(args),
            max_rounds: args.max_rounds,
            replan: args.replan,
            replan_errors: args.replan_errors,
            quarantine: None,
        };
        Ok(Exchange {
            ui,
            args,
            planning: Planning::new(sources, tools, request, options),
            tools: session.tools(),
            stores: session.settings.fresh_stores(),
            routes: session.model_settings().routes(&session.settings.environment),
            refusals: session.options.run_refused,
            scripted,
            left,
        })
    }

    /// Reads the plan, or has it written.
    fn first(&mut self) -> Result<Draft, Exit> {
        let Some(file) = &self.args.plan else { return self.write(self.planning.prompt()) };
        let mut sources = Sources::new();
        let read = load::read_text(&mut sources, &file.display().to_string());
        let (_, text) = read.map_err(|problem| say_problem(self.ui, &sources, problem))?;
        Ok(self.draft(&text))
    }

    /// Checks a plan that is there already.
    fn draft(&self, text: &str) -> Draft {
        let Exchange { planning, tools, stores, routes, refusals, .. } = self;
        planning.draft(text, &Gate { tools, stores, routes, refusals: *refusals })
    }

    /// Has a plan written, again and again as long as its findings say that it can't run.
    fn write(&mut self, mut prompt: String) -> Result<Draft, Exit> {
        let Exchange { ui, args, planning, tools, stores, routes, refusals, scripted, left } = self;
        let gate = Gate { tools, stores, routes, refusals: *refusals };
        loop {
            match planning.reply(&ask(ui, args, scripted.as_ref(), &prompt, left)?, &gate) {
                Step::Done(draft) => return Ok(*draft),
                Step::Again { prompt: next, findings } => {
                    let first = first(&findings);
                    ui.note(&format!("the plan was refused before it ran, and is written again: {first}"));
                    prompt = next;
                }
            }
        }
    }
}

/// The tools that `--tools` or `[plan]` names. Servers are asked what they offer.
///
/// # Errors
/// A file, a server or the policy can't be used, which the user has been told.
pub(super) fn toolset(
    ui: &Ui,
    sources: &mut Sources,
    named: &[String],
    settings: &Settings,
    (loading, unpinned): (&load::Options, bool),
) -> Result<Toolset, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| ui.usage(&format!("cannot start the runtime: {e}"), None))?;
    let read = |sources: &mut Sources| {
        let mut tools = Toolset::read(sources, loading)?;
        for source in named {
            runtime.block_on(tools.declare(sources, source, settings, unpinned))?;
        }
        Ok::<_, Problem>(tools)
    };
    let tools = read(sources);
    tools.map_err(|problem| say_problem(ui, sources, problem))
}

fn first(found: &[(u32, String)]) -> String {
    found.first().map_or_else(String::new, |(line, what)| format!("line {line}: {}", diagnostics::clip(what)))
}

/// Asks the planner, in a run of its own without tools and policy, within the limits that are left.
fn ask(
    ui: &Ui,
    args: &PlanArgs,
    scripted: Option<&Models>,
    prompt: &str,
    left: &mut Limits,
) -> Result<String, Exit> {
    let options = WorldArgs {
        model: args.planner.clone().or_else(|| args.world.model.clone()),
        pull: args.world.pull,
        ..WorldArgs::default()
    };
    let session = setup::session(ui, &options)?;
    let code = planning::question(prompt, None);
    let running = Running {
        session: &session,
        args: &options,
        code: &code,
        policy: None,
        input: None,
        request: None,
        plan: None,
        journal: None,
        models: scripted,
        follows: None,
        limits: Some(left.clone()),
        sources: None,
    };
    let (ran, _) = world(ui, running, &mut |_| {})?;
    spend(left, &ran.report.usage, ran.report.elapsed);
    if let Ok(value) = &ran.result
        && let Some(Data::Str(reply)) = value.data()
    {
        return Ok(reply.to_string());
    }
    let bound = session.bound(&code, false);
    show_result(ui, &Sources::new(), &ran, &bound, (&code, None), said);
    // Whoever stops the planner has stopped the command.
    Err(match conclude(ui, &ran, &bound) {
        Exit::Done => Exit::Failed,
        exit => exit,
    })
}

/// The plan with what is known of its calls, as comments under their lines.
fn show(ui: &Ui, args: &PlanArgs, draft: &Draft) {
    let Some(report) = draft.flow() else {
        // Its errors follow.
        return match (ui.is_json(), args.show) {
            (true, true) => ui.result(&json!({"plan": draft.text}).to_string()),
            (false, true) => ui.result(draft.text.trim_end()),
            (_, false) => {}
        };
    };
    if ui.is_json() {
        let refused = has_errors(&flow::findings(&report));
        let flow = flow::to_json(&report, &draft.sources);
        return ui.result(&json!({"plan": draft.text, "flow": flow, "refused": refused}).to_string());
    }
    let remarks = draft.remarks(&report);
    for (i, line) in draft.text.lines().enumerate() {
        ui.result(line);
        let indent = &line[..line.len() - line.trim_start().len()];
        for (_, text) in remarks.iter().filter(|(n, _)| *n as usize == i + 1) {
            ui.result(&format!("{indent}# ^ {}", diagnostics::clip_to(text, 400)));
        }
    }
    ui.findings(&draft.sources, &draft.warnings(&report));
}
