//! L012: parallel branches that write one key.

use crate::{Check, Context, Rule, below};
use core_ir::Term;
use diagnostics::{Diagnostic, Level, Span};
use std::collections::HashMap;

pub(super) static RULE: Rule = Rule {
    code: "L012",
    name: "parallel-writes",
    level: Level::Warn,
    meaning: "two branches of `par` contain `remember k`: which value k has afterwards depends on which of them is later",
    docs: page!("../../../../docs/rules/L012-parallel-writes.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for (key, first, second) in &context.unit.outline.clashes {
        let message =
            format!("parallel nodes write the state key `{}` in the same step", diagnostics::clip(key));
        let d = rule.finding(message, *second).about(key.as_str()).remark(*first, "the other one");
        out.push(d.help("annotate the key with a reducer that merges the values"));
    }
    let code = context.code();
    for (_, term) in code.iter() {
        let Term::Par(_, sides) = term else { continue };
        let mut first: HashMap<_, (usize, Span)> = HashMap::new();
        for (i, side) in sides.iter().enumerate() {
            for id in below(code, *side) {
                let Term::Remember(name, Some(place), _) = code.term(id) else { continue };
                let (branch, earlier) = *first.entry(*place).or_insert((i, code.span(id)));
                if branch != i {
                    let message =
                        format!("another parallel branch also writes `{}`", diagnostics::clip(name));
                    let d = rule.finding(message, code.span(id)).about(&**name);
                    out.push(
                        d.remark(earlier, "the other one")
                            .help("give each branch its own key, and join them afterwards"),
                    );
                }
            }
        }
    }
}
