//! The library: programs, what is said about them, who answers them.

mod fit;
mod found;
mod program;
mod typed;
mod world;

pub use found::{Error, Finding, Place};
pub use program::{Pipeline, Program};
pub use typed::Typed;
pub use world::{World, scripted};

use crate::progress::Detail;
use runtime::Event;
use serde_json::Value;
use std::path::Path;

/// An event of a run as JSON, as `entail run --log json` writes it; with `content` also what models and tools are told and say. `None` for one
/// that tells nothing then.
pub fn event_json(event: &Event, content: bool) -> Option<Value> {
    crate::progress::event_json(event, if content { Detail::Content } else { Detail::Outline })
}

/// Lints files and directories as `entail lint` does, with the settings of the nearest `entail.toml`: what is wrong, and what could not
/// be decided.
///
/// # Errors
/// A path can't be read, or the settings can't be used.
pub fn lint(paths: &[impl AsRef<Path>]) -> Result<Vec<Finding>, Error> {
    let paths: Vec<String> = paths.iter().map(|p| p.as_ref().display().to_string()).collect();
    let words: Vec<&str> = ["lint", "--"].into_iter().chain(paths.iter().map(String::as_str)).collect();
    let (_, lines) = crate::command(&words);
    match lines.iter().find_map(|l| l.get("error")) {
        Some(error) => Err(Error::of_json(error)),
        None => Ok(lines.iter().map(Finding::of_json).collect()),
    }
}

/// An amount of money, for [`Limits`](runtime::Limits): US dollars as a decimal.
///
/// # Errors
/// It is none.
pub fn money(text: &str) -> Result<core_ir::Num, Error> {
    crate::commands::run::money("usd", text).map_err(Error::usage)
}
