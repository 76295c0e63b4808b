//! L026: a tool that no agent can reach.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};
use frontend_kit::LeftoverKind;

pub(super) static RULE: Rule = Rule {
    code: "L026",
    name: "unused-tool",
    level: Level::Info,
    meaning: "the tool is declared, and neither in θ of an `llm p θ` nor applied anywhere in the term",
    docs: page!("../../../../docs/rules/L026-unused-tool.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for left in context.unit.outline.leftover.iter().filter(|l| l.kind == LeftoverKind::Tool) {
        let message = format!("`{}` is defined and nothing uses it", diagnostics::clip(&left.name));
        out.push(
            rule.finding(message, left.at)
                .about(left.name.as_str())
                .help("give it to an agent, or remove it"),
        );
    }
}
