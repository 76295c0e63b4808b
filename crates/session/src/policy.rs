//! `--policy FILE`, or `policy` in `entail.toml`: what a policy file says, put into programs and runs.

use crate::load::{Problem, read_text};
use agentlang::Module;
use core_ir::Code;
use diagnostics::{Diagnostic, FileId, Sources};
use policy::{Policy, PolicyUse};
use std::path::Path;
use std::sync::Arc;

pub use entries::policy::{check_named, options};

/// Reads the file, if one is named.
pub fn read(sources: &mut Sources, path: Option<&Path>) -> Result<Option<Policy>, Problem> {
    let Some((file, text)) = read_file(sources, path)? else { return Ok(None) };
    Policy::parse(file, &text).map(Some).map_err(Problem::Policy)
}

/// Reads the text of the file, if one is named.
pub fn read_file(sources: &mut Sources, path: Option<&Path>) -> Result<Option<(FileId, Arc<str>)>, Problem> {
    let Some(path) = path else { return Ok(None) };
    match read_text(sources, &path.display().to_string()) {
        Err(Problem::Wrong(found)) => Err(Problem::Policy(found)),
        read => read.map(Some),
    }
}

/// Reads the policy of a program: what its blocks say, and the file, if one is named.
pub fn of_program(
    sources: &mut Sources,
    path: Option<&Path>,
    program: FileId,
    module: &Module,
) -> Result<Option<Policy>, Problem> {
    let file = read_file(sources, path)?;
    let text = file.as_ref().map(|(file, text)| (*file, &**text));
    let read = entries::policy::of_program(text, program, module);
    read.map_err(|found| problem(found, file.map(|(file, _)| file)))
}

/// The problem that findings about a policy are: one of the policy file, or one of the program that says it.
fn problem(found: Vec<Diagnostic>, file: Option<FileId>) -> Problem {
    match found.iter().any(|d| d.span.map(|at| at.file) != file) {
        true => Problem::Wrong(found),
        false => Problem::Policy(found),
    }
}

/// Puts the policy into the terms of a program, which names policies at these places.
pub fn apply<'a>(
    policy: &Policy,
    uses: &[PolicyUse],
    all: impl Iterator<Item = &'a mut Arc<Code>>,
) -> Result<(), Problem> {
    entries::policy::apply(policy, uses, all).map_err(|found| match policy.has_block() {
        true => problem(found, Some(policy.file)),
        false => Problem::Policy(found),
    })
}
