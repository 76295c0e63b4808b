//! L030: a name or argument that the framework's version deprecates.

use crate::framework_use::{Misuse, quoted};
use crate::{Check, Rule};
use diagnostics::{Diagnostic, Level};
use framework_api::FaultKind;

pub(super) static RULE: Rule = Rule {
    code: "L030",
    name: "deprecated-name",
    level: Level::Info,
    meaning: "the package says that a later version drops the name: the program then raises",
    docs: page!("../../../../docs/rules/L030-deprecated-name.md"),
    check: Check::Use(check),
};

fn check(rule: &Rule, misuse: &Misuse) -> Option<Diagnostic> {
    let Misuse::Fault(used) = misuse else { return None };
    let FaultKind::Deprecated { name, message } = &used.fault.kind else { return None };
    let d = used.finding(rule, format!("{} is deprecated in {}", quoted(name), used.versions()), false);
    Some(d.help(format!("the package says: {message}")))
}
