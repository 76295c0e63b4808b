//! L002: an oracle without a model.

use crate::{Check, Context, Rule};
use core_ir::{Recv, Term};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L002",
    name: "no-model",
    level: Level::Error,
    meaning: "`llm p θ` is a value only for a model θ: without one there is no model to call",
    docs: page!("../../../../docs/rules/L002-no-model.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Llm(_, params) | Term::Recv(Recv::Data(params)) = term
            && params.model.is_none()
            && !params.waiting
        {
            // A model that is named and not known is not missing: the front end reports it.
            if context.unit.outline.unknown_models.contains(&id) {
                continue;
            }
            let mut d = rule.finding("no model is named", code.span(id));
            match context.compiled.facts.default_model {
                Some(default) => {
                    d.level = Level::Info;
                    d = d.help(default);
                }
                None => d = d.help(context.compiled.facts.words.model),
            }
            out.push(context.unless_code(d, "code elsewhere may name it"));
        }
    }
}
