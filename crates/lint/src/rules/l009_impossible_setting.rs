//! L009: a model setting that no model takes.

use crate::{Check, Context, Rule};
use core_ir::{Num, Recv, Term};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L009",
    name: "impossible-setting",
    level: Level::Warn,
    meaning: "θ of `llm p θ` is outside of what models are defined for: the call is refused, or the value is clamped silently",
    docs: page!("../../../../docs/rules/L009-impossible-setting.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        let (Term::Llm(_, params) | Term::Recv(Recv::Data(params))) = term else { continue };
        if params.waiting {
            continue;
        }
        if let Some(t) = &params.temperature
            && (*t < Num::from(0) || *t > Num::from(2))
        {
            let d = rule
                .finding(format!("a temperature of {t} is outside of 0 to 2"), code.span(id))
                .about("temperature");
            out.push(d.help("0 is the most repeatable; most models accept at most 1 or 2"));
        }
        if params.max_tokens == Some(0) {
            let d = rule.finding("a reply of at most 0 tokens is empty", code.span(id)).about("max_tokens");
            out.push(d.help("raise the limit, or remove it"));
        }
    }
}
