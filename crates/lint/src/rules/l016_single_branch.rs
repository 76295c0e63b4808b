//! L016: one thing at once.

use crate::{Check, Context, Rule};
use core_ir::Term;
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L016",
    name: "single-branch",
    level: Level::Info,
    meaning: "`par [e]` is `[e]`: nothing runs beside it",
    docs: page!("../../../../docs/rules/L016-single-branch.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Par(_, branches) = term
            && branches.len() == 1
        {
            let d = rule.finding("this parallel agent has a single branch", code.span(id));
            out.push(d.help("use the branch itself, or add the other branches"));
        }
    }
}
