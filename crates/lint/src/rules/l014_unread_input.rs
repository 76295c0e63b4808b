//! L014: an input that nothing reads.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L014",
    name: "unread-input",
    level: Level::Info,
    meaning: "the parameter does not occur in the body: the result is the same whatever is given for it",
    docs: page!("../../../../docs/rules/L014-unread-input.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (name, at) in &context.unit.outline.unread {
        let message = format!("the input `{}` is declared and never used", diagnostics::clip(name));
        out.push(rule.finding(message, *at).about(name.as_str()).help("use it in a prompt, or remove it"));
    }
}
