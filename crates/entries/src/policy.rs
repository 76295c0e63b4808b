//! Policies, put into programs, analyses and runs.

use agentlang::Module;
use analysis::flow;
use core_ir::{Code, ModelRoutes, Name};
use diagnostics::{Diagnostic, FileId, has_errors};
use policy::{Policy, PolicyUse};
use std::sync::Arc;

/// Has a program lowered for the policy; gives what is wrong with the policies that it names.
pub fn check_named(policy: Option<&Policy>, module: &mut Module) -> Vec<Diagnostic> {
    let uses = module.policies();
    match policy {
        Some(policy) => {
            module.assume(policy);
            policy.check_named(&uses)
        }
        None => uses.iter().map(|u| u.unknown(None)).collect(),
    }
}

/// Returns the policy of a program: what its blocks say, and the policy file, which has the last word.
///
/// # Errors
/// The errors of the two.
pub fn of_program(
    file: Option<(FileId, &str)>,
    program: FileId,
    module: &Module,
) -> Result<Option<Policy>, Vec<Diagnostic>> {
    match (module.policy_block()?, file) {
        (None, None) => Ok(None),
        (None, Some((file, text))) => Policy::parse(file, text).map(Some),
        (Some(block), None) => Policy::of_block(program, &block).map(Some),
        (Some(block), Some((file, text))) => Policy::parse_with(file, text, &block).map(Some),
    }
}

/// Puts the policy into the terms of a program, which names policies at these places.
///
/// # Errors
/// The findings about a policy that can't be applied.
pub fn apply<'a>(
    policy: &Policy,
    uses: &[PolicyUse],
    all: impl Iterator<Item = &'a mut Arc<Code>>,
) -> Result<(), Vec<Diagnostic>> {
    let mut found = Vec::new();
    for code in all {
        let code = Arc::make_mut(code);
        let mut said = policy.apply_to(code, uses);
        // Entry points of one file share their tools.
        said.retain(|d| !found.contains(d));
        found.append(&mut said);
    }
    if has_errors(&found) { Err(found) } else { Ok(()) }
}

/// Returns the options of the analysis: those from the policy, and the models that may answer.
pub fn options(policy: Option<&Policy>, routes: ModelRoutes, applied: bool) -> flow::Options {
    match policy {
        None => flow::Options { routes, applied, ..flow::Options::default() },
        Some(p) => flow::Options {
            passes_unknown: false,
            lattice: p.lattice,
            principals: p.principals.clone(),
            known: p.tool_names().filter(|t| p.knows(t)).map(Name::from).collect(),
            clearance: Some(p.clearance.clone()),
            clearances: p.clearances.clone(),
            routes,
            applied,
            answer: p.answer.clone(),
        },
    }
}

/// Puts what the policy says about the run into the machine's configuration.
pub fn configure(policy: &Policy, config: &mut machine::Config) {
    config.lattice = policy.lattice;
    config.principals = policy.principals.clone();
    config.generated_endorse = policy.generated_endorse;
    config.clearance = policy.clearance.clone();
    config.clearances = policy.clearances.clone();
    config.answer = policy.answer.clone();
}
