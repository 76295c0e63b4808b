//! L006: a composition of nothing.

use crate::lint::{Check, Context, Rule};
use core_ir::{Slot, Term};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L006",
    name: "empty-composition",
    level: Level::Error,
    meaning: "a chain of no stages is `λx. x`, and `par []` is `[]`: whatever goes in, no model is asked and no tool called",
    docs: include_str!("../../../../../docs/rules/L006-empty-composition.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        let empty = match term {
            // The sugar tells it from a function that somebody wrote: no front end makes a λ of a variable otherwise.
            Term::Abs(abs) => matches!(code.term(abs.body), Term::Var(_, Slot::Local(0))),
            Term::Par(_, sides) => sides.is_empty(),
            _ => false,
        };
        if empty {
            let d = rule.finding("nothing is composed here: no agent runs", code.span(id));
            out.push(d.help("list the agents it is made of, or leave it out"));
        }
    }
}
