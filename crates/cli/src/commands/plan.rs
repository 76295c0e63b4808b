//! `entail plan`: a model writes a plan from a request, and the plan is checked, shown and run.
//!
//! Invariant: the planner sees the request, the tools' signatures and findings before the run. It never sees
//! what a run gave.

use super::run::{Running, conclude, said, show_refusal, show_result, traced, world};
use super::say_problem;
use crate::args::{PlanArgs, WorldArgs};
use crate::setup;
use crate::ui::{Exit, Ui};
use analysis::flow;
use core_ir::Data;
use diagnostics::{Sources, has_errors};
use runtime::trace::Head;
use serde_json::json;
use session::load::{self, Problem, replace_file};
use session::planning::{self, Draft, PlanOptions, Planning, Step, Toolset, WRITTEN};
use session::preflight::Gate;
use session::{Session, Settings};

/// Runs the command.
pub fn plan(ui: &Ui, args: &PlanArgs) -> Exit {
    carry_out(ui, args).unwrap_or_else(|exit| exit)
}

fn carry_out(ui: &Ui, args: &PlanArgs) -> Result<Exit, Exit> {
    let model = args.quarantine.clone().or_else(|| args.world.model.clone());
    let world = WorldArgs { model, ..args.world.clone() };
    let session = setup::session(ui, &world)?;
    let draft = make(ui, args, &session)?;
    if let Some(file) = &args.save {
        replace_file(file, &draft.text)
            .map_err(|e| ui.usage(&format!("cannot write `{}`: {e}", file.display()), None))?;
    }
    if args.show || args.dry_run {
        show(ui, args, &draft);
    }
    let Draft { outcome, sources, .. } = draft;
    let compiled = outcome.map_err(|problem| say_problem(ui, &sources, problem))?;
    if let Some(refusal) = &compiled.refusal {
        return Ok(show_refusal(ui, &sources, refusal));
    }
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let Some(runnable) = compiled.runnable() else {
        return Err(ui.usage("the plan has nothing that can be run", None));
    };
    let name = path_of(args);
    let head = Head { program: name.clone(), entry: "plan".into(), input: None };
    let (code, policy) = (&runnable.code, compiled.loaded.policy.as_ref());
    let running = Running {
        session: &session,
        args: &world,
        code,
        policy,
        input: None,
        request: args.request.as_deref().map(Into::into),
        journal: Some((args.journal.options(), name)),
        models: None,
    };
    let (report, _) = traced(ui, running, &sources, &head)?;
    let bound = session.bound(code, false);
    show_result(ui, &sources, &report, &bound, (code, policy), said);
    Ok(conclude(ui, &report, &bound))
}

/// The path of the plan, for messages.
fn path_of(args: &PlanArgs) -> String {
    args.plan.as_ref().map_or_else(|| WRITTEN.into(), |file| file.display().to_string())
}

/// Reads the plan, or has it written, again and again as long as its findings say that it can't run.
fn make(ui: &Ui, args: &PlanArgs, session: &Session) -> Result<Draft, Exit> {
    let mut sources = Sources::new();
    let loading = session.settings.loading(args.world.policy.as_deref());
    let tools = toolset(ui, &mut sources, &args.tools, &session.settings, (&loading, args.unpinned))?;
    let request = args.request.as_deref().unwrap_or("").into();
    let options = PlanOptions {
        path: path_of(args),
        max_rounds: args.max_rounds,
        replan: args.replan,
        quarantine: None,
    };
    let mut planning = Planning::new(sources, tools, request, options);
    let (tools, stores) = (session.tools(), session.settings.fresh_stores());
    let routes = session.model_settings().routes(&session.settings.environment);
    let gate =
        Gate { tools: &tools, stores: &stores, routes: &routes, refusals: session.options.run_refused };
    if let Some(file) = &args.plan {
        let mut sources = Sources::new();
        let read = load::read_text(&mut sources, &file.display().to_string());
        let (_, text) = read.map_err(|problem| say_problem(ui, &sources, problem))?;
        return Ok(planning.draft(&text, &gate));
    }
    let mut prompt = planning.prompt();
    loop {
        match planning.reply(&ask(ui, args, &prompt)?, &gate) {
            Step::Done(draft) => return Ok(*draft),
            Step::Again { prompt: next, findings } => {
                let first = first(&findings);
                ui.note(&format!("the plan was refused before it ran, and is written again: {first}"));
                prompt = next;
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

/// Asks the planner, in a run of its own without tools and policy.
fn ask(ui: &Ui, args: &PlanArgs, prompt: &str) -> Result<String, Exit> {
    let options = WorldArgs {
        model: args.planner.clone(),
        pull: args.world.pull,
        timeout: args.world.timeout,
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
        journal: None,
        models: None,
    };
    let (ran, _) = world(ui, running, &mut |_| {})?;
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
}
