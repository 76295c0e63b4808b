//! The library: programs, what is said about them, who answers them.

mod fit;
mod found;
mod plan;
mod program;
mod typed;
mod world;

pub use found::{Error, Finding, Place};
pub use plan::{Plan, PlanSetup, PlanStep, PlanTool, Planning};
pub use program::{Pipeline, Program};
pub use typed::Typed;
pub use world::{World, scripted};

use runtime::Event;
use serde_json::Value;
use session::events::Detail;
use session::lint::{LintOptions, LintSources, ProjectLint};
use session::{Settings, SettingsError};
use std::path::{Path, PathBuf};

/// An event of a run as JSON, as `entail run --log json` writes it; with `content` also what models and tools
/// are told and say. `None` for one that tells nothing then.
pub fn event_json(event: &Event, content: bool) -> Option<Value> {
    session::events::event_json(event, if content { Detail::Content } else { Detail::Outline })
}

/// Lints files and directories as `entail lint` does, with the settings of the nearest `entail.toml`: what is
/// wrong, and what could not be decided.
///
/// # Errors
/// A path can't be read, or the settings can't be used.
pub fn lint(paths: &[impl AsRef<Path>]) -> Result<Vec<Finding>, Error> {
    let usage = |e: SettingsError| Error::usage(e.message).with_help(e.help);
    let paths: Vec<PathBuf> = paths.iter().map(|p| p.as_ref().to_path_buf()).collect();
    let settings = Settings::nearest().map_err(usage)?;
    let sources = LintSources { surroundings: true, cache: true };
    let project = ProjectLint::new(&settings, LintOptions::default(), None, sources).map_err(usage)?;
    let linted = project.run(&paths).map_err(usage)?;
    Ok(linted.iter().flat_map(|(sources, found)| found.iter().map(|d| Finding::of(sources, d))).collect())
}

/// An amount of money, for [`Limits`](runtime::Limits): US dollars as a decimal.
///
/// # Errors
/// The text is not an amount of money.
pub fn money(text: &str) -> Result<core_ir::Num, Error> {
    session::limits::money("usd", text).map_err(Error::usage)
}
