//! L024: a placeholder that stays empty.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L024",
    name: "missing-value",
    level: Level::Warn,
    meaning: "a part of the text is a variable that nothing binds: the model sees a prompt with a gap, or the run fails",
    docs: page!("../../../../docs/rules/L024-missing-value.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (name, at) in &context.unit.outline.missing {
        let message = format!("the placeholder `{}` has no value", diagnostics::clip(name));
        out.push(
            rule.finding(message, *at)
                .about(name.as_str())
                .help("declare it as an input, or reference its source"),
        );
    }
}
