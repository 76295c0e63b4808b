//! L003: a loop that never runs.

use crate::repair::wish;
use crate::{Check, Context, Rule};
use core_ir::{Bound, Term};
use diagnostics::{Applicability, Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L003",
    name: "vacuous-loop",
    level: Level::Error,
    meaning: "`fix[0] e v` is `v`: the input comes back unchanged and no model is called",
    docs: page!("../../../../docs/rules/L003-vacuous-loop.md"),
    check: Check::Term(check),
};

/// The bound that a repair proposes.
const STEPS: &str = "10";

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Fix { bound: Bound::Finite(0), .. } = term {
            let at = code.span(id);
            let mut d = rule.finding("the loop has a bound of 0 and never runs", at);
            // A group chat's loop may exist to pass its conversation on.
            if context.compiled.facts.chats {
                d.level = Level::Warn;
            }
            let fix = wish(at, STEPS, Applicability::Unsafe);
            out.push(d.help("set the bound to at least 1").fix(fix));
        }
    }
}
