//! L001: an oracle without instructions.

use crate::lint::{Check, Context, Rule};
use core_ir::{Data, Term};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L001",
    name: "empty-prompt",
    level: Level::Error,
    meaning: "`llm \"\" θ` maps an input to whatever the model says to it: the program does not say what it does",
    docs: include_str!("../../../../../docs/rules/L001-empty-prompt.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (_, term) in code.iter() {
        if let Term::Llm(prompt, _) = term
            && let Term::Lit(Data::Str(text)) = code.term(*prompt)
            && text.trim().is_empty()
        {
            let help = context.compiled.facts.words.prompt;
            out.push(rule.finding("the prompt is empty", code.span(*prompt)).help(help));
        }
    }
}
