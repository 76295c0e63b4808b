//! L011: a key of a store that is read and never written.

use crate::{Check, Context, Rule};
use core_ir::{Data, Term};
use diagnostics::{Diagnostic, Level};
use std::collections::HashSet;

pub(super) static RULE: Rule = Rule {
    code: "L011",
    name: "never-written",
    level: Level::Warn,
    meaning: "`recall k` finds what the store began with: nothing, for no `remember k` is in the program",
    docs: page!("../../../../docs/rules/L011-never-written.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    of_graphs(rule, context, out);
    let code = context.code();
    let written: HashSet<_> = code
        .iter()
        .filter_map(|(_, t)| match t {
            Term::Remember(_, place, _) => *place,
            _ => None,
        })
        .collect();
    let mut reported = HashSet::new();
    for (id, term) in code.iter() {
        let Term::Recall(name, Some(place)) = term else { continue };
        let key = code.store(place.0).keys.get(place.1 as usize);
        let begins_empty = key.is_some_and(|k| k.initial.as_ref().is_none_or(is_nothing));
        if begins_empty && !written.contains(place) && reported.insert(*place) {
            let message = format!("`{}` is read here and never written", diagnostics::clip(name));
            out.push(
                rule.finding(message, code.span(id))
                    .about(&**name)
                    .help("write it in an earlier step, or give it an initial value"),
            );
        }
    }
}

/// Keys of the state of a graph.
fn of_graphs(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (key, at) in &context.unit.outline.unwritten {
        let message = format!("`{}` is read here and never written", diagnostics::clip(key));
        out.push(
            rule.finding(message, *at)
                .about(key.as_str())
                .help("write it in an earlier step, or give it an initial value"),
        );
    }
}

fn is_nothing(data: &Data) -> bool {
    match data {
        Data::Null => true,
        Data::Str(s) => s.is_empty(),
        Data::List(items) => items.is_empty(),
        Data::Record(fields) => fields.is_empty(),
        _ => false,
    }
}
