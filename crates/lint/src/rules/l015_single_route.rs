//! L015: a choice with one outcome.

use crate::{Check, Context, Rule};
use core_ir::Term;
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L015",
    name: "single-route",
    level: Level::Info,
    meaning: "`case e of {l ⇒ a}` is `a` or an error, whatever `e` is: the model decides nothing",
    docs: page!("../../../../docs/rules/L015-single-route.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        let Term::Case { scrutinee, branches, default } = term else { continue };
        // The dispatch of an agent on its tools is no router.
        let routed = match code.term(*scrutinee) {
            Term::Classify(..) => true,
            Term::Prim(_, _) => default.is_some(),
            _ => false,
        };
        if routed && branches.len() + usize::from(default.is_some()) == 1 {
            let d = rule.finding("this router has a single route", code.span(id));
            out.push(d.help("remove the router, or add its other routes"));
        }
    }
}
