//! L018: a run that may cost more than is wanted.

use crate::{Check, Context, Rule};
use core_ir::{ModelParams, Recv, Term};
use diagnostics::{Diagnostic, Level};

pub(super) static RULE: Rule = Rule {
    code: "L018",
    name: "costly-run",
    level: Level::Warn,
    meaning: "the cost bound of the term (loops multiplied, branches by their maximum) is above the threshold for a run",
    docs: page!("../../../../docs/rules/L018-costly-run.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    let Some(allowed) = context.config.most_model_calls else { return };
    // L017 reports bounds that come from a framework's default: usually such a default bounds the run, not
    // each loop.
    if context.loops().iter().any(|l| l.origin.is_some()) {
        return;
    }
    let bound = context.cost();
    let Some(most) = bound.model_calls.most.filter(|n| *n > allowed) else { return };
    let message = format!(
        "a run of `{}` may call models {most} times; the threshold is {allowed}",
        diagnostics::clip(&context.unit.name)
    );
    let mut d = rule.finding(message, context.unit.span).about(context.unit.name.as_str());
    // A reply that is not valid is asked for again, as in a loop of which L017 says no more than that.
    let repairs = |params: &ModelParams| u64::from(params.repair) >= allowed;
    let asked_again = context.code().iter().any(|(_, term)| match term {
        Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => repairs(params),
        _ => false,
    });
    if asked_again {
        d.level = Level::Info;
        d.help.push("all but one are made only if the reply before is not valid".to_string());
    }
    for line in bound.path.iter().take(5) {
        d = d.remark(line.span, line.text.clone());
    }
    out.push(d.help("lower the bounds of its loops, or raise `most-model-calls` in `[lint]` of entail.toml"));
}
