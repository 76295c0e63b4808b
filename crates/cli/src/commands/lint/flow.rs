//! `lint --policy`: what the policy refuses of a configuration, found before a run.

use crate::args::LintArgs;
use crate::load::{Loaded, Options, Problem, load};
use crate::policy;
use check::flow;
use diagnostics::{Diagnostic, Level, Sources};

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
    let Loaded { runnables, policy, .. } = match load(sources, path, options) {
        Ok(loaded) => loaded,
        Err(Problem::Policy(found)) => return Err(found),
        // What is wrong with the file is said by the rules.
        Err(_) => return Ok(Vec::new()),
    };
    let named = |codes: &[String], d: &Diagnostic| codes.iter().any(|c| d.code.starts_with(c.as_str()));
    let mut all: Vec<Diagnostic> = Vec::new();
    for r in &runnables {
        let options = policy::options(policy.as_ref(), None, r.input.is_some());
        for d in flow::findings(&flow::analyse(&r.code, &options)) {
            let wanted = (args.select.is_empty() || named(&args.select, &d)) && !named(&args.ignore, &d);
            // Entry points share their agents.
            if wanted && d.level > Level::Info && !all.contains(&d) {
                all.push(d);
            }
        }
    }
    Ok(all)
}
