//! L013: a router that some replies get stuck in.

use crate::{Check, Context, Rule};
use core_ir::Term;
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L013",
    name: "no-default-route",
    level: Level::Warn,
    meaning: "`classify[…]` of a model's text fails for every other text, and `case` has no `_` branch to take it",
    docs: page!("../../../../docs/rules/L013-no-default-route.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let code = context.code();
    for (id, term) in code.iter() {
        // A dispatch without any branch is L005.
        if let Term::Case { scrutinee, branches, default: None } = term
            && !branches.is_empty()
            && let Term::Classify(labels, of) = code.term(*scrutinee)
            && !matches!(code.term(*of), Term::Lit(_))
        {
            let all: Vec<&str> = labels.iter().map(|l| &**l).collect();
            let message =
                format!("a reply other than {} fails the run: there is no default route", list(&all));
            out.push(rule.finding(message, code.span(id)).about(all.join(" ")).help("add a `default` route, or where the format has none, one that the prompt names for other replies"));
        }
    }
}

fn list(names: &[&str]) -> String {
    const MAX_NAMES: usize = 6;
    let mut out: Vec<String> =
        names.iter().take(MAX_NAMES).map(|n| format!("`{}`", diagnostics::clip(n))).collect();
    if names.len() > MAX_NAMES {
        out.push("…".into());
    }
    out.join(", ")
}
