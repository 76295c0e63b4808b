//! L006: a composition of nothing.

use crate::{Check, Context, Rule};
use core_ir::{AbsSugar, Slot, Term};
use diagnostics::{Diagnostic, Level};
use std::collections::HashSet;

pub(super) static RULE: Rule = Rule {
    code: "L006",
    name: "empty-composition",
    level: Level::Error,
    meaning: "a chain of no stages is `λx. x`, and `par []` is `[]`: no model and no tool is called",
    docs: page!("../../../../docs/rules/L006-empty-composition.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    let written = context.compiled.facts.written_term;
    // A map that returns each item unchanged composes nothing, and was not meant to.
    let of_items: HashSet<_> = code
        .iter()
        .filter_map(|(_, t)| match t {
            Term::Each(_, function, _) => Some(*function),
            _ => None,
        })
        .collect();
    for (id, term) in code.iter() {
        let empty = match term {
            Term::Abs(_) if of_items.contains(&id) => false,
            // In a handwritten term it is the identity, which ends a loop and is neutral in a chain. Front
            // ends create a λ that returns its variable only for empty lists.
            Term::Abs(abs) if written && abs.sugar != AbsSugar::Compose => false,
            Term::Abs(abs) => matches!(code.term(abs.body), Term::Var(_, Slot::Local(0))),
            Term::Par(_, sides) => sides.is_empty(),
            _ => false,
        };
        if empty {
            let d = rule.finding("this chain or parallel agent has no parts: no agent runs", code.span(id));
            out.push(d.help("list its agents, or remove it"));
        }
    }
}
