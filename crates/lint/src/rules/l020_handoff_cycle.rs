//! L020: agents that hand off to each other in a cycle.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L020",
    name: "handoff-cycle",
    level: Level::Warn,
    meaning: "`a` hands off to `b` and `b` to `a`: a recursion without an enclosing `fix[n]`, so no bound holds for it",
    docs: page!("../../../../docs/rules/L020-handoff-cycle.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (from, to, at) in &context.unit.outline.handoff_cycles {
        let (from, to) = (diagnostics::clip(from), diagnostics::clip(to));
        let message = format!("`{from}` and `{to}` may hand off to each other without a bound");
        out.push(
            rule.finding(message, *at)
                .about(format!("{from} {to}"))
                .help("let one of them return an answer instead, or bound the whole run"),
        );
    }
}
