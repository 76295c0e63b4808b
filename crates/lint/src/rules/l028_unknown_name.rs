//! L028: a module or name that the framework's version does not have.

use crate::framework_use::{Misuse, quoted};
use crate::{Check, Rule};
use diagnostics::{Diagnostic, Level, Span};
use framework_api::FaultKind;

pub(super) static RULE: Rule = Rule {
    code: "L028",
    name: "unknown-name",
    level: Level::Error,
    meaning: "the name resolves to nothing in the version of the package: the program raises before it asks a model",
    docs: page!("../../../../docs/rules/L028-unknown-name.md"),
    check: Check::Use(check),
};

fn check(rule: &Rule, misuse: &Misuse) -> Option<Diagnostic> {
    let used = match misuse {
        Misuse::Fault(used) => used,
        Misuse::Hidden { package, span } => return Some(hidden(rule, package, *span)),
    };
    let versions = used.versions();
    let message = match &used.fault.kind {
        FaultKind::NoModule => format!("module {} does not exist in {versions}", quoted(&used.name)),
        FaultKind::NoName { within, name, class } => {
            let kind = if *class { "attribute" } else { "name" };
            format!("{} has no {kind} {} in {versions}", quoted(within), quoted(name))
        }
        _ => return None,
    };
    let d = used.finding(rule, message, true);
    Some(if d.help.is_empty() {
        d.help("use a name that the version has, or pin another version")
    } else {
        d
    })
}

/// The finding about a module that has the name of a package which it imports. Where it is neither run as a
/// program nor beside one, Python does find the package.
fn hidden(rule: &Rule, package: &str, span: Span) -> Diagnostic {
    let message = format!("the import may find this file instead of the package {}", quoted(package));
    let mut d = rule.finding(message, span);
    d.level = Level::Warn;
    let help =
        format!("rename `{package}.py`: Python looks in the folder of the program before the packages");
    d.help(help)
}
