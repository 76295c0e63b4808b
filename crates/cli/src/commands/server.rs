//! Loading of pipelines, and the log, for `entail serve` and `entail mcp`.

use super::run::{before_run, models};
use super::{say_problem, worth_saying};
use crate::args::WorldArgs;
use crate::setup::refuse;
use crate::ui::{Exit, Ui};
use diagnostics::Sources;
use runtime::{Limits, Models};
#[cfg(feature = "serve")]
use serve::{Log, LogFormat};
use serve::{Programs, Service, ServiceOptions};
use session::Session;
use session::load::Kind;
use session::planning::{PlanOptions, Planning};
use session::settings::PlanEntry;

/// A service of the pipelines of these files.
///
/// # Errors
/// A file, a model or an option can't be used, which the user has been told.
pub(super) fn service(
    ui: &Ui,
    world: &WorldArgs,
    session: &Session,
    files: &[String],
    options: impl FnOnce(Models, Limits) -> ServiceOptions,
) -> Result<Service, Exit> {
    let refused = |e: serve::Error| ui.usage(&e.to_string(), e.help());
    let mut programs = Programs::default();
    for file in files {
        let loaded = session.load(programs.sources(), file);
        let mut loaded = loaded.map_err(|problem| say_problem(ui, programs.sources(), problem))?;
        ui.problems(programs.sources(), &worth_saying(ui, std::mem::take(&mut loaded.found)));
        for runnable in &loaded.runnables {
            let policy = loaded.policy.as_ref();
            before_run(ui, programs.sources(), session, Kind::of(file), runnable, policy)?;
        }
        programs.add(session, file, loaded).map_err(refused)?;
    }
    if let Some(entry) = &session.settings.plan {
        let planning = planning(ui, session, entry)?;
        programs.add_plan(session, planning, entry.planner.as_deref()).map_err(refused)?;
    }
    let limits = world.limits(&session.settings).map_err(|e| refuse(ui, e))?;
    let models = models(ui, world, session, &programs.codes())?;
    Service::new(session, programs, options(models, limits)).map_err(refused)
}

/// The exchange with the planner of `[plan]`.
fn planning(ui: &Ui, session: &Session, entry: &PlanEntry) -> Result<Planning, Exit> {
    let settings = &session.settings;
    let at = |source: &String| match source.starts_with("mcp:") {
        true => source.clone(),
        false => settings.dir.join(source).display().to_string(),
    };
    let named: Vec<String> = entry.tools.iter().map(at).collect();
    let usual = PlanOptions::default();
    let options = PlanOptions {
        replan: entry.replan.unwrap_or(usual.replan),
        replan_errors: entry.replan_errors.unwrap_or(usual.replan_errors),
        max_rounds: entry.max_rounds.unwrap_or(usual.max_rounds),
        quarantine: entry.quarantine.as_deref().map(Into::into),
        ..usual
    };
    let mut sources = Sources::new();
    let loading = settings.loading(session.options.policy.as_deref());
    let tools = super::plan::toolset(ui, &mut sources, &named, settings, (&loading, entry.unpinned))?;
    Ok(Planning::new(sources, tools, "".into(), options))
}

/// The log that `--log` and `--quiet` ask for, on standard error.
#[cfg(feature = "serve")]
pub(super) fn log(ui: &Ui, json: bool) -> Log {
    let format = match json {
        true => LogFormat::Json,
        false if ui.args.quiet => LogFormat::Silent,
        false => LogFormat::People,
    };
    let ui = Ui::new(ui.args.clone());
    Log::new(format, move |line| ui.say(line))
}
