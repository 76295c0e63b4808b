//! `entail plan`: a model writes a plan from a request, and the plan is checked, shown and run.
//!
//! Invariant: the planner sees the request, the tools' signatures and findings before the run. It never sees
//! what a run gave.

use super::run::{Running, conclude, said, show_refusal, show_result, traced, world};
use super::say_problem;
use crate::args::{PlanArgs, WorldArgs};
use crate::setup;
use crate::ui::{Exit, Ui};
use analysis::flow::{self, Sink, Verdict};
use core_ir::{Builder, Code, Data, Globals, ModelParams, Term, ToolDecl};
use diagnostics::{Diagnostic, FileId, Level, Sources, Span, has_errors};
use plan::planner;
use runtime::trace::Head;
use serde_json::json;
use session::load::{self, Kind, Loaded, Options, Problem, Runnable, replace_file};
use session::preflight::Refusal;
use session::{Session, policy};
use std::sync::Arc;

/// Name of a plan that a model wrote.
const WRITTEN: &str = "request.plan.py";

/// Runs the command.
pub fn plan(ui: &Ui, args: &PlanArgs) -> Exit {
    carry_out(ui, args).unwrap_or_else(|exit| exit)
}

fn carry_out(ui: &Ui, args: &PlanArgs) -> Result<Exit, Exit> {
    let model = args.quarantine.clone().or_else(|| args.world.model.clone());
    let world = WorldArgs { model, ..args.world.clone() };
    let session = setup::session(ui, &world)?;
    let options = session.settings.loading(world.policy.as_deref());
    let mut sources = Sources::new();
    let tools = load::plan_tools(&mut sources, &args.tools, &options)
        .map_err(|problem| say_problem(ui, &sources, problem))?;
    let made = make(ui, args, (&session, &options), &tools)?;
    if let Some(file) = &args.save {
        replace_file(file, &made.text)
            .map_err(|e| ui.usage(&format!("cannot write `{}`: {e}", file.display()), None))?;
    }
    if args.show || args.dry_run {
        show(ui, &made);
    }
    if let Some(refusal) = &made.refusal {
        return Ok(show_refusal(ui, &made.sources, refusal));
    }
    if args.dry_run {
        return Ok(Exit::Done);
    }
    let name = path_of(args);
    let head = Head { program: name.clone(), entry: "plan".into(), input: None };
    let (code, policy) = (&made.runnable.code, made.policy.as_ref());
    let running = Running {
        session: &session,
        args: &world,
        code,
        policy,
        input: None,
        journal: Some((args.journal.options(), name)),
        models: None,
    };
    let (report, _) = traced(ui, running, &made.sources, &head)?;
    let bound = session.bound(code, false);
    show_result(ui, &made.sources, &report, &bound, (code, policy), said);
    Ok(conclude(ui, &report, &bound))
}

/// The path of the plan, for messages.
fn path_of(args: &PlanArgs) -> String {
    args.plan.as_ref().map_or_else(|| WRITTEN.into(), |file| file.display().to_string())
}

/// A plan that compiles, with why it can't run, if it can't.
struct Made {
    text: String,
    file: FileId,
    sources: Sources,
    runnable: Runnable,
    policy: Option<::policy::Policy>,
    routes: core_ir::ModelRoutes,
    refusal: Option<Refusal>,
}

/// Reads the plan, or has it written, again and again as long as its findings say that it can't run.
fn make(
    ui: &Ui,
    args: &PlanArgs,
    (session, options): (&Session, &Options),
    tools: &[Arc<ToolDecl>],
) -> Result<Made, Exit> {
    let request = args.request.as_deref().unwrap_or("");
    let mut left = if args.plan.is_some() { 0 } else { args.replan };
    let mut text = match &args.plan {
        Some(file) => {
            let mut sources = Sources::new();
            let read = load::read_text(&mut sources, &file.display().to_string());
            read.map_err(|problem| say_problem(ui, &sources, problem))?.1.to_string()
        }
        None => ask(ui, args, &planner::prompt(request, tools))?,
    };
    loop {
        let mut sources = Sources::new();
        let path = path_of(args);
        let file = sources.add(&*path, text.as_str());
        let spec = load::PlanSpec { file, path: &path, tools: &args.tools, max_rounds: args.max_rounds };
        let found = match load::plan_with(&mut sources, &spec, text.as_str().into(), options) {
            Ok(loaded) => {
                let Loaded { mut runnables, policy, routes, .. } = loaded;
                let Some(runnable) = runnables.pop() else {
                    return Err(ui.usage("the plan has nothing that can be run", None));
                };
                let refusal = session.preflight(Kind::Plan, &runnable, policy.as_ref()).err();
                match refusal {
                    Some(refusal) if refusal.calls_refused && left > 0 => refusal.findings,
                    refusal => return Ok(Made { text, file, sources, runnable, policy, routes, refusal }),
                }
            }
            Err(Problem::Wrong(found)) if left > 0 && all_in(&found, file) => found,
            Err(problem) => {
                if args.show {
                    ui.result(text.trim_end());
                }
                return Err(say_problem(ui, &sources, problem));
            }
        };
        left -= 1;
        let found = feedback(&sources, &found, file);
        ui.note(&format!("the plan was refused before it ran, and is written again: {}", first(&found)));
        text = ask(ui, args, &planner::retry(request, tools, &text, &found))?;
    }
}

fn first(found: &[(u32, String)]) -> String {
    found.first().map_or_else(String::new, |(line, what)| format!("line {line}: {}", diagnostics::clip(what)))
}

/// True if all errors are about the plan: those in a declaration are nothing that a planner can mend.
fn all_in(found: &[Diagnostic], file: FileId) -> bool {
    found.iter().filter(|d| d.level == Level::Error).all(|d| d.span.is_some_and(|s| s.file == file))
}

/// Findings for the planner: facts of the plan's text, the declarations and the policy.
fn feedback(sources: &Sources, found: &[Diagnostic], file: FileId) -> Vec<(u32, String)> {
    let errors = found.iter().filter(|d| d.level == Level::Error);
    let in_plan = errors.filter_map(|d| Some((d, d.span.filter(|s| s.file == file)?)));
    in_plan
        .map(|(d, span)| {
            let help = if d.help.is_empty() { String::new() } else { format!(" ({})", d.help.join("; ")) };
            (line_of(sources, span), format!("{}{help}", d.message))
        })
        .collect()
}

fn line_of(sources: &Sources, span: Span) -> u32 {
    sources.get(span.file).map_or(0, |s| s.line_column(span.start).line)
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
    let mut sources = Sources::new();
    let at = Span { file: sources.add("<request>", ""), start: 0, end: 0 };
    let mut b = Builder::new();
    let system = b.lit("", at);
    let params = ModelParams { purpose: Some("plan".into()), ..ModelParams::default() };
    let model = b.add(Term::Llm(system, Arc::new(params)), at);
    let prompt = b.lit(Data::str(prompt), at);
    let root = b.app(model, prompt, at);
    let code: Arc<Code> = match b.finish(root, &Globals::none()) {
        Ok(code) => code.into(),
        Err(e) => return Err(ui.usage(&format!("the planner can't be asked: {e:?}"), None)),
    };
    let running = Running {
        session: &session,
        args: &options,
        code: &code,
        policy: None,
        input: None,
        journal: None,
        models: None,
    };
    let (ran, _) = world(ui, running, &mut |_| {})?;
    if let Ok(value) = &ran.result
        && let Some(Data::Str(reply)) = value.data()
    {
        return Ok(planner::code_of(&reply).to_string());
    }
    show_result(ui, &sources, &ran, &session.bound(&code, false), (&code, None), said);
    Err(Exit::Failed)
}

/// The plan with what is known of its calls, as comments under their lines.
fn show(ui: &Ui, made: &Made) {
    let options = policy::options(made.policy.as_ref(), made.routes.clone(), false);
    let report = flow::analyse(&made.runnable.code, &options);
    let found = flow::findings(&report);
    if ui.is_json() {
        let flow = flow::to_json(&report, &made.sources);
        let refused = has_errors(&found);
        return ui.result(&json!({"plan": made.text, "flow": flow, "refused": refused}).to_string());
    }
    let mut remarks: Vec<(u32, String)> = Vec::new();
    let mut add = |span: Span, text: String| {
        let remark = (line_of(&made.sources, span), text);
        if span.file == made.file && !remarks.contains(&remark) {
            remarks.push(remark);
        }
    };
    for d in &found {
        if let Some(span) = d.span {
            add(span, d.message.clone());
        }
    }
    for site in report.sites.iter().filter(|s| s.verdict != Verdict::Never) {
        if let (Sink::Tool(name), Some(who)) = (&site.sink, site.asks) {
            add(site.span, format!("`{name}`: {who} decides"));
        }
    }
    for (i, line) in made.text.lines().enumerate() {
        ui.result(line);
        let indent = &line[..line.len() - line.trim_start().len()];
        for (_, text) in remarks.iter().filter(|(n, _)| *n as usize == i + 1) {
            ui.result(&format!("{indent}# ^ {}", diagnostics::clip_to(text, 400)));
        }
    }
}
