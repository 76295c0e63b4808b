//! `--policy FILE`: what a policy file says, put into programs and runs.

use crate::load::{Runnable, read_text};
use crate::ui::{Exit, Ui};
use check::flow;
use core_ir::Name;
use diagnostics::{Sources, has_errors};
use frontend::policy::Policy;
use std::path::Path;
use std::sync::Arc;

/// Reads the file, if one is named, and says what is wrong with it.
pub fn read(ui: &Ui, sources: &mut Sources, path: Option<&Path>) -> Result<Option<Policy>, Exit> {
    let Some(path) = path else { return Ok(None) };
    let shown = path.display().to_string();
    let (file, text) = match read_text(sources, &shown) {
        Ok(read) => read,
        Err(crate::load::Problem::Unreadable(message, help)) => {
            return Err(ui.usage(&message, help.as_deref()));
        }
        Err(crate::load::Problem::Wrong(found)) => {
            ui.problems(sources, &found);
            return Err(Exit::Usage);
        }
    };
    Policy::parse(file, &text).map(Some).map_err(|found| {
        ui.problems(sources, &found);
        Exit::Usage
    })
}

/// Puts the policy into programs.
pub fn apply(ui: &Ui, sources: &Sources, policy: &Policy, all: &mut [Runnable]) -> Result<(), Exit> {
    let mut found = Vec::new();
    for r in all {
        for d in policy.apply(Arc::make_mut(&mut r.code)) {
            // Entry points of one file share their tools.
            if !found.contains(&d) {
                found.push(d);
            }
        }
    }
    ui.problems(sources, &found);
    if has_errors(&found) { Err(Exit::Usage) } else { Ok(()) }
}

/// What the analysis needs to know of it.
pub fn options(policy: Option<&Policy>, model: Option<&str>, applied: bool) -> flow::Options {
    match policy {
        None => flow::Options { applied, ..flow::Options::default() },
        Some(p) => flow::Options {
            lattice: p.lattice,
            clearance: Some(p.clearance_of(model).clone()),
            clearances: p.clearances.clone(),
            applied,
        },
    }
}

/// Puts what the policy says about the run into the machine's configuration.
pub fn configure(policy: &Policy, model: Option<&str>, config: &mut machine::Config) {
    config.lattice = policy.lattice;
    config.generated_endorse = policy.generated_endorse;
    config.clearance = policy.clearance_of(model).clone();
    config.clearances = policy.clearances.iter().map(|(n, l)| (Name::clone(n), l.clone())).collect();
}
