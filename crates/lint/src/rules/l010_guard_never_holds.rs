//! L010: a condition that nothing satisfies.

use crate::{Check, Context, Rule};
use analysis::pred::{Answer, possible};
use core_ir::{Code, Term, TermId, Type};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L010",
    name: "guard-never-holds",
    level: Level::Warn,
    meaning: "no value satisfies P, so `guard e P retry n` fails after n + 1 attempts whatever `e` returns",
    docs: page!("../../../../docs/rules/L010-guard-never-holds.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Guard { term, pred, retry } = term
            && possible(pred, &result(code, *term)) == Answer::No
        {
            let tries = match retry {
                0 => "every run fails here".to_string(),
                n => format!("every run fails here, after {} attempts", u64::from(*n) + 1),
            };
            let d = rule.finding(format!("no value satisfies this guard: {tries}"), code.span(id));
            out.push(d.help("relax one of its conditions"));
        }
    }
}

/// The type of what a guard looks at, as far as it is plain.
fn result(code: &Code, id: TermId) -> Type {
    match code.term(id) {
        Term::Llm(_, params) if params.tools.is_empty() => params.result.clone().unwrap_or(Type::Str),
        _ => Type::Dyn,
    }
}
