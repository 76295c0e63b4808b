//! L004: a loop and what ends it.
//!
//! One predicate, the ways through the body that return without calling `self`
//! ([`Exits`](crate::paths::Exits)), and four levels. Source: seed 000 §5.4.

use crate::paths::Loop;
use crate::repair::wish;
use crate::rules::l021_unbounded_group::{by_people, is_endless_group, is_group_chat, speakers};
use crate::{Check, Context, Rule};
use core_ir::Bound;
use diagnostics::{Applicability, Diagnostic, Level};

pub(super) static NO_BASE_CASE: Rule = Rule {
    code: "L004a",
    name: "no-base-case",
    level: Level::Error,
    meaning: "no path through the body of `fix` returns without calling `self`, and the source states no bound",
    docs: page!("../../../../docs/rules/L004a-no-base-case.md"),
    check: Check::Term(|rule, context, out| {
        for l in context.loops().iter().filter(|l| l.is_endless() && !is_endless_group(context.code(), l)) {
            let message = "this loop never ends: every path through it calls it again";
            let mut d = finding(rule, context, l, message);
            by_people(context, &mut d);
            out.push(speakers(context, d));
        }
    }),
};

pub(super) static FORCED_TRUNCATION: Rule = Rule {
    code: "L004b",
    name: "forced-truncation",
    level: Level::Warn,
    meaning: "no path through the body of `fix[n]` returns without calling `self`, so only the bound n ends it",
    docs: page!("../../../../docs/rules/L004b-forced-truncation.md"),
    check: Check::Term(|rule, context, out| {
        for l in context.loops().iter().filter(|l| endless(l) && l.is_stated()) {
            let steps = match l.bound {
                Bound::Finite(n) => format!(", after {n} steps"),
                Bound::Infinite => String::new(),
            };
            let message =
                format!("this loop ends only at its bound{steps}: every path through it calls it again");
            let mut d = finding(rule, context, l, &message).about(steps);
            // A stated number of turns is intended (§5.4, multi-turn limits).
            if is_group_chat(context, l) {
                d.level = Level::Info;
            }
            if let (Some((_, tool)), Some(at)) = (context.compiled.facts.words.ender, d.span) {
                d.fix = Some(wish(at, tool, Applicability::Unsafe));
            }
            out.push(d);
        }
    }),
};

pub(super) static FRAMEWORK_ENDS_LOOP: Rule = Rule {
    code: "L004c",
    name: "framework-ends-loop",
    level: Level::Info,
    meaning: "every path through the body of `fix` that returns without calling `self` is one that the framework adds",
    docs: page!("../../../../docs/rules/L004c-framework-ends-loop.md"),
    check: Check::Term(|rule, context, out| {
        let Some(how) = context.compiled.facts.ends_loops else { return };
        let by_framework =
            |l: &&Loop| runs(l) && l.exits.is_some_and(|e| e.only_by_final_reply() && !e.only_by_text());
        for l in context.loops().iter().filter(by_framework) {
            out.push(place(rule, context, l, "the source does not state what ends this loop").help(how));
        }
    }),
};

pub(super) static TEXT_ENDS_LOOP: Rule = Rule {
    code: "L004d",
    name: "text-ends-loop",
    level: Level::Info,
    meaning: "every path through the body of `fix` that returns without calling `self` depends on a test of the model's text",
    docs: page!("../../../../docs/rules/L004d-text-ends-loop.md"),
    check: Check::Term(|rule, context, out| {
        for l in context.loops().iter().filter(|l| runs(l) && l.exits.is_some_and(|e| e.only_by_text())) {
            out.push(place(rule, context, l, "this loop ends only by the wording of a reply").help(
                "a model may forget the words, or use them too early: a tool that ends the loop is safer",
            ));
        }
    }),
};

/// Returns true if the loop runs at all; one that does not is another rule's.
fn runs(l: &Loop) -> bool {
    l.bound != Bound::Finite(0)
}

fn endless(l: &Loop) -> bool {
    runs(l) && l.exits.is_some_and(|e| e.is_empty())
}

fn finding(rule: &Rule, context: &Context<'_>, l: &Loop, message: &str) -> Diagnostic {
    place(rule, context, l, message).help(remedy(context))
}

/// Returns the help for a loop without an end. A way out that no decision takes is named first.
fn remedy(context: &Context<'_>) -> String {
    let graphs = &context.unit.outline.graphs;
    // A branch of a decision that has an outcome for which nothing is drawn.
    let mislabeled = graphs.iter().find_map(|g| {
        let frontend_kit::DeadBranch { from: node, label, .. } = g.dead.first()?;
        let drawn = |outcome: &str| {
            g.edges.iter().any(|(from, _, when)| from == node && when.as_deref() == Some(outcome))
        };
        let outcomes = g.nodes.get(*node)?.outcomes.as_ref()?;
        let (missing, _) = outcomes.iter().find(|(outcome, _)| !drawn(outcome))?;
        Some((label, missing))
    });
    match mislabeled {
        Some((label, missing)) => {
            format!(
                "the branch for `{label}` is never taken: label it `{missing}`, the outcome of the decision"
            )
        }
        None if !graphs.is_empty() => {
            "add a conditional edge out of the cycle, and no unconditional edge beside it".into()
        }
        None => context.compiled.facts.words.exit.into(),
    }
}

/// Creates a finding at the loop's decision, where an exit would have to be added.
fn place(rule: &Rule, context: &Context<'_>, l: &Loop, message: &str) -> Diagnostic {
    let code = context.code();
    let fix = code.span(l.fix);
    let at = l.dispatch.map_or(fix, |d| code.span(d));
    let d = rule.finding(message, at);
    if at == fix { d } else { d.remark(fix, "the loop") }
}
