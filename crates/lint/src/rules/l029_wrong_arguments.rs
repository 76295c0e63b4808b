//! L029: arguments that the framework's version does not take.

use crate::framework_use::{Misuse, quoted};
use crate::{Check, Rule};
use diagnostics::{Diagnostic, Level};
use framework_api::FaultKind;

pub(super) static RULE: Rule = Rule {
    code: "L029",
    name: "wrong-arguments",
    level: Level::Warn,
    meaning: "the call does not fit the signature in the version of the package: it raises, or an argument has no effect",
    docs: page!("../../../../docs/rules/L029-wrong-arguments.md"),
    check: Check::Use(check),
};

fn check(rule: &Rule, misuse: &Misuse) -> Option<Diagnostic> {
    let Misuse::Fault(used) = misuse else { return None };
    let (versions, raises) = (used.versions(), used.fault.raises);
    let message = match &used.fault.kind {
        FaultKind::UnknownArgument { name, .. } if raises => {
            format!("{} takes no argument {} in {versions}", quoted(&used.name), quoted(name))
        }
        FaultKind::UnknownArgument { name, .. } => {
            format!("{} ignores the argument {} in {versions}", quoted(&used.name), quoted(name))
        }
        FaultKind::MissingArguments { names, .. } => {
            let names: Vec<String> = names.iter().map(|n| quoted(n)).collect();
            format!("{} requires {} in {versions}", quoted(&used.name), names.join(", "))
        }
        FaultKind::TooManyArguments { takes, .. } => {
            format!("{} takes at most {takes} positional arguments in {versions}", quoted(&used.name))
        }
        _ => return None,
    };
    let d = used.finding(rule, message, raises);
    Some(if d.help.is_empty() { d.help("call it as its signature in this version says") } else { d })
}
