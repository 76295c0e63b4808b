//! L025: an output that what follows does not take.

use crate::{Check, Context, Rule};
use analysis::types::{self, codes};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L025",
    name: "unaccepted-output",
    level: Level::Warn,
    meaning: "in `e1 >> e2` the type of what e1 gives is none that e2 takes: the run fails where they meet",
    docs: include_str!("../../../../docs/rules/L025-unaccepted-output.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    // Without anything typed there is nothing to disagree about.
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
            out.push(d.help(
                "make the first give what the second takes, or put a step between them that converts it",
            ));
        }
    }
}
