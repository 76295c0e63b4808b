//! `lint --policy`: what the policy refuses of a configuration, found before a run.

use crate::args::LintArgs;
use crate::load::{Kind, Loaded, Options, Problem, load};
use crate::policy;
use crate::preflight::Preflight;
use analysis::flow;
use diagnostics::{Diagnostic, Level, Sources};

/// Returns the errors that keep the entry points of a program from running, as `entail check` reports them.
pub(super) fn unready(
    sources: &mut Sources,
    path: &str,
    options: &Options,
    args: &LintArgs,
    preflight: &Preflight,
) -> Vec<Diagnostic> {
    let loaded = match load(sources, path, options) {
        Ok(loaded) => loaded,
        // What names no policy file is refused with the code of the language.
        Err(Problem::Wrong(found) | Problem::Policy(found)) => return wanted(found, args),
        Err(Problem::Unreadable(..)) => return Vec::new(),
    };
    let mut all: Vec<Diagnostic> = Vec::new();
    for r in &loaded.runnables {
        for d in preflight.entry(Kind::of(path), r, loaded.policy.as_ref()).errors() {
            if !all.contains(&d) {
                all.push(d);
            }
        }
    }
    wanted(all, args)
}

/// Keeps the diagnostics that the command line selects.
fn wanted(mut found: Vec<Diagnostic>, args: &LintArgs) -> Vec<Diagnostic> {
    let named = |codes: &[String], d: &Diagnostic| codes.iter().any(|c| d.code.starts_with(c.as_str()));
    found.retain(|d| (args.select.is_empty() || named(&args.select, d)) && !named(&args.ignore, d));
    found
}

/// The flow findings of every entry point of a file under the policy; none of a file that is no program.
///
/// # Errors
/// What is wrong with the policy itself.
pub(super) fn findings(
    sources: &mut Sources,
    path: &str,
    options: &Options,
    args: &LintArgs,
) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let Loaded { runnables, policy, routes, .. } = match load(sources, path, options) {
        Ok(loaded) => loaded,
        Err(Problem::Policy(found)) => return Err(found),
        // What is wrong with the file is said by the rules.
        Err(_) => return Ok(Vec::new()),
    };
    let mut all: Vec<Diagnostic> = Vec::new();
    for r in &runnables {
        let options = policy::options(policy.as_ref(), routes.clone(), r.input.is_some());
        for d in wanted(flow::findings(&flow::analyse(&r.code, &options)), args) {
            // Entry points share their agents.
            if d.level > Level::Info && !all.contains(&d) {
                all.push(d);
            }
        }
    }
    Ok(all)
}
