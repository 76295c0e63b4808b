//! The commands, one file each.

pub mod approve;
#[cfg(feature = "frameworks")]
pub mod audit;
#[cfg(all(feature = "frameworks", feature = "mcp"))]
mod audit_servers;
pub mod check;
pub mod compile;
mod compile_stats;
#[cfg(feature = "frameworks")]
pub mod convert;
pub mod cost;
pub mod dist;
#[cfg(feature = "engine")]
pub mod engine;
mod equiv;
pub mod explain;
pub mod fmt;
pub mod fragments;
#[cfg(feature = "mcp")]
pub mod guard;
#[cfg(feature = "mcp")]
mod guard_hook;
#[cfg(feature = "mcp")]
mod guard_install;
#[cfg(feature = "mcp")]
mod guard_watch;
pub mod lambda;
#[cfg(feature = "frameworks")]
pub mod lint;
pub mod lock;
#[cfg(feature = "lsp")]
pub mod lsp;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod model;
mod offers;
#[cfg(feature = "plans")]
pub mod plan;
pub mod policy;
mod policy_check;
pub mod prices;
pub mod repl;
pub mod run;
pub mod runs;
#[cfg(feature = "serve")]
pub mod serve;
#[cfg(any(feature = "serve", feature = "mcp"))]
mod server;
pub mod test;
pub mod tools;
pub mod trace;
#[cfg(feature = "serve")]
pub mod ui;
pub mod verify;
mod why;

use crate::ui::{Exit, Ui};
use diagnostics::{Diagnostic, Sources};
use serde_json::json;
use session::load::{Loaded, Options, Problem, Runnable, load};
use std::path::Path;

/// `entail version`.
pub fn version(ui: &Ui) -> Exit {
    let version = env!("CARGO_PKG_VERSION");
    // Set by the build script.
    let commit = option_env!("ENTAIL_COMMIT").unwrap_or("unknown");
    let features: Vec<&str> = [
        ("engine", cfg!(feature = "engine")),
        ("frameworks", cfg!(feature = "frameworks")),
        ("local", cfg!(feature = "local")),
        ("lsp", cfg!(feature = "lsp")),
        ("mcp", cfg!(feature = "mcp")),
        ("plans", cfg!(feature = "plans")),
        ("postgres", cfg!(feature = "postgres")),
        ("redis", cfg!(feature = "redis")),
        ("serve", cfg!(feature = "serve")),
        ("svg", cfg!(feature = "svg")),
        ("wasm", cfg!(feature = "wasm")),
    ]
    .into_iter()
    .filter_map(|(name, on)| on.then_some(name))
    .collect();
    if ui.is_json() {
        ui.result(&json!({"version": version, "commit": commit, "features": features}).to_string());
    } else {
        ui.result(&format!("entail {version} (commit {commit}; features: {})", features.join(", ")));
    }
    Exit::Done
}

/// Returns the options for loading programs: the settings, with the policy file of the command line if it
/// names one.
fn options(ui: &Ui, policy: Option<&Path>) -> Result<Options, Exit> {
    Ok(crate::setup::settings(ui)?.loading(policy))
}

/// Loads a file, or says why that is impossible.
fn load_or_say(ui: &Ui, sources: &mut Sources, path: &str, policy: Option<&Path>) -> Result<Loaded, Exit> {
    load(sources, path, &options(ui, policy)?).map_err(|problem| say_problem(ui, sources, problem))
}

/// Says why a file cannot be worked with.
fn say_problem(ui: &Ui, sources: &Sources, problem: Problem) -> Exit {
    match problem {
        Problem::Unreadable(message, help) => ui.usage(&message, help.as_deref()),
        Problem::Wrong(found) => {
            ui.problems(sources, &worth_saying(ui, found));
            Exit::Failed
        }
        Problem::Policy(found) => {
            ui.problems(sources, &found);
            Exit::Usage
        }
    }
}

/// Says that servers were not asked to the end.
fn canceled(ui: &Ui) -> Exit {
    let message = "canceled before the server said what it offers";
    match ui.is_json() {
        true => ui.result(&json!({"error": {"code": "cancelled", "message": message}}).to_string()),
        false => ui.say(&format!("error[cancelled]: {message}")),
    }
    Exit::Canceled
}

/// Findings of level info are shown with `--verbose` only.
fn worth_saying(ui: &Ui, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    if !ui.args.verbose {
        found.retain(|d| d.level > diagnostics::Level::Info);
    }
    found
}

/// The runnable of a name, or the default one.
fn choose<'a>(ui: &Ui, path: &str, all: &'a [Runnable], name: Option<&str>) -> Result<&'a Runnable, Exit> {
    let names: Vec<&str> = all.iter().map(|r| &*r.name).collect();
    let listed = || Some(format!("there is: {}", names.join(", ")));
    match name {
        Some(name) => all.iter().find(|r| r.name == name).ok_or_else(|| {
            let near = diagnostics::nearest(name, names.iter().copied());
            let help = near.map(|n| format!("did you mean `{n}`?")).or_else(listed);
            ui.usage(&format!("`{path}` has nothing called `{name}` that can be run"), help.as_deref())
        }),
        None if all.is_empty() => Err(ui.usage(&format!("`{path}` has nothing that can be run"), None)),
        None => all.iter().find(|r| r.is_default).ok_or_else(|| {
            let help = format!("choose one with `--pipeline`: {}", names.join(", "));
            ui.usage(&format!("`{path}` has several things that can be run"), Some(&help))
        }),
    }
}

/// `1 call`, `2 calls`.
fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
