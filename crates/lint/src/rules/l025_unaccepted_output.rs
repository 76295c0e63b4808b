//! L025: an output that what follows does not take.

use crate::{Check, Context, Rule};
use analysis::types::{self, codes};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L025",
    name: "unaccepted-output",
    level: Level::Warn,
    meaning: "in `e1 >> e2` the output type of `e1` and the input type of `e2` have no value in common: the run fails between them",
    docs: page!("../../../../docs/rules/L025-unaccepted-output.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    // Without a typed result there is nothing to disagree about.
    let code = context.code();
    let typed = code.iter().any(|(_, t)| match t {
        core_ir::Term::Llm(_, params) => params.result.is_some(),
        core_ir::Term::Pair(..) | core_ir::Term::Par(..) => true,
        _ => false,
    });
    if !typed {
        return;
    }
    let typing = types::check(code, None);
    for found in typing.diagnostics.iter().filter(|d| d.code == codes::MISMATCH) {
        if let Some(span) = found.span {
            let mut d = rule.finding(found.message.clone(), span);
            d.label.clone_from(&found.label);
            d.remarks.clone_from(&found.remarks);
            let d = d.help("change the output of the first part, or add a step that converts it");
            out.push(context.unless_code(d, "its nodes are code, which may convert their input"));
        }
    }
}
