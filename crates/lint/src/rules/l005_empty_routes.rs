//! L005: a dispatch without branches.

use crate::{Check, Context, Rule};
use core_ir::Term;
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L005",
    name: "empty-routes",
    level: Level::Error,
    meaning: "`case e of {}` has no branch to take, whatever `e` is: the run fails after the model was called",
    docs: page!("../../../../docs/rules/L005-empty-routes.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Case { branches, default: None, .. } = term
            && branches.is_empty()
        {
            let d = rule.finding("this router has no routes", code.span(id));
            out.push(d.help("add the routes, and a default route for other replies"));
        }
    }
}
