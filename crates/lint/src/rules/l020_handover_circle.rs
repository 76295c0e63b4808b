//! L020: agents that hand over to each other in a circle.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L020",
    name: "handover-circle",
    level: Level::Warn,
    meaning: "`a` hands over to `b` and `b` to `a`: a recursion without a `fix[n]` around it, so no bound holds for it",
    docs: include_str!("../../../../docs/rules/L020-handover-circle.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (from, to, at) in &context.unit.outline.circles {
        let (from, to) = (diagnostics::clip(from), diagnostics::clip(to));
        let message = format!(
            "`{from}` may hand over to `{to}`, which may have handed over to it: nothing bounds how often"
        );
        out.push(
            rule.finding(message, *at)
                .help("let one of them answer and return instead, or bound the run as a whole"),
        );
    }
}
