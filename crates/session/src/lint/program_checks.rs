//! Checks of what can be run in a file: its handlers, models and stores, and its flows under a policy.

use super::LintOptions;
use crate::load::{Kind, Loaded, Options, Problem, load};
use crate::policy;
use crate::preflight::Preflight;
use analysis::flow;
use diagnostics::{Diagnostic, Level, Sources};

/// Returns the errors that keep the entry points of a program from running, as `entail check` reports them.
pub(super) fn unready(
    sources: &mut Sources,
    path: &str,
    loading: &Options,
    options: LintOptions<'_>,
    preflight: &Preflight,
) -> Vec<Diagnostic> {
    let loaded = match load(sources, path, loading) {
        Ok(loaded) => loaded,
        // A name that no policy file defines is refused with the language's code.
        Err(Problem::Wrong(found) | Problem::Policy(found)) => return wanted(found, options),
        Err(Problem::Unreadable(..)) => return Vec::new(),
    };
    let mut all = preflight.declarations(&loaded.declared);
    for r in &loaded.runnables {
        for d in preflight.entry(Kind::of(path), r, loaded.policy.as_ref()).errors() {
            if !all.contains(&d) {
                all.push(d);
            }
        }
    }
    wanted(all, options)
}

/// Keeps the diagnostics that the command line selects.
fn wanted(mut found: Vec<Diagnostic>, options: LintOptions<'_>) -> Vec<Diagnostic> {
    let named = |codes: &[String], d: &Diagnostic| codes.iter().any(|c| d.code.starts_with(c.as_str()));
    found.retain(|d| (options.select.is_empty() || named(options.select, d)) && !named(options.ignore, d));
    found
}

/// The flow findings of every entry point of a file under the policy; none of a file that is no program.
///
/// # Errors
/// What is wrong with the policy itself.
pub(super) fn findings(
    sources: &mut Sources,
    path: &str,
    loading: &Options,
    options: LintOptions<'_>,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let Loaded { runnables, policy, routes, .. } = match load(sources, path, loading) {
        Ok(loaded) => loaded,
        Err(Problem::Policy(found)) => return Err(found),
        // The rules report errors in the file.
        Err(_) => return Ok(Vec::new()),
    };
    let mut all: Vec<Diagnostic> = Vec::new();
    for r in &runnables {
        let analysis = policy::options(policy.as_ref(), routes.clone(), r.input.is_some());
        for d in wanted(flow::findings(&flow::analyze(&r.code, &analysis)), options) {
            // Entry points share their agents.
            if d.level > Level::Info && !all.contains(&d) {
                all.push(d);
            }
        }
    }
    Ok(all)
}
