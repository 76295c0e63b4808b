//! `--policy FILE`, or `policy` in `entail.toml`: what a policy file says, put into programs and runs.

use crate::load::{Problem, read_text};
use core_ir::Code;
use diagnostics::Sources;
use policy::{Policy, PolicyUse};
use std::path::Path;
use std::sync::Arc;

pub use entries::policy::{check_named, options};

/// Reads the file, if one is named.
pub fn read(sources: &mut Sources, path: Option<&Path>) -> Result<Option<Policy>, Problem> {
    let Some(path) = path else { return Ok(None) };
    let (file, text) = match read_text(sources, &path.display().to_string()) {
        Err(Problem::Wrong(found)) => return Err(Problem::Policy(found)),
        read => read?,
    };
    Policy::parse(file, &text).map(Some).map_err(Problem::Policy)
}

/// Puts the policy into the terms of a program, which names policies at these places.
pub fn apply<'a>(
    policy: &Policy,
    uses: &[PolicyUse],
    all: impl Iterator<Item = &'a mut Arc<Code>>,
) -> Result<(), Problem> {
    entries::policy::apply(policy, uses, all).map_err(Problem::Policy)
}
