//! Loading of pipelines, and the log, for `entail serve` and `entail mcp`.

use super::run::{before_run, models};
use super::{say_problem, worth_saying};
use crate::args::WorldArgs;
use crate::setup::refuse;
use crate::ui::{Exit, Ui};
use runtime::{Limits, Models};
#[cfg(feature = "serve")]
use serve::{Log, LogFormat};
use serve::{Programs, Service, ServiceOptions};
use session::Session;
use session::load::Kind;

/// A service of the pipelines of these files.
///
/// # Errors
/// A file, a model or an option can't be used, which the user has been told.
pub(super) fn service<'a>(
    ui: &Ui,
    world: &WorldArgs,
    session: &Session,
    files: &[String],
    options: impl FnOnce(Models, Limits) -> ServiceOptions<'a>,
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
    let limits = world.limits(&session.settings).map_err(|e| refuse(ui, e))?;
    let models = models(ui, world, session, &programs.codes())?;
    Service::new(session, programs, options(models, limits)).map_err(refused)
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
