//! L008: parts that no run reaches.

use crate::repair::wish;
use crate::{Check, Context, Rule};
use diagnostics::{Applicability, Diagnostic, Level};
use frontend_kit::{LeftoverKind, LeftoverState};
use std::collections::HashSet;

pub(super) static RULE: Rule = Rule {
    code: "L008",
    name: "unreachable-part",
    level: Level::Warn,
    meaning: "no path of edges leads from the first node to this one, so the term does not contain it",
    docs: page!("../../../../docs/rules/L008-unreachable-part.md"),
    check: Check::Term(check),
};

/// Parts of one unit that are reported one by one.
const MAX_APART: usize = 5;

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for graph in &context.unit.outline.graphs {
        // L007 reports the branches that are never taken.
        let reached = graph.reached(graph.start);
        let told: HashSet<usize> =
            graph.dead.iter().filter(|b| reached[b.from] && !b.harmless).filter_map(|b| b.to).collect();
        let first = graph.first_unreached().into_iter().filter(|n| !told.contains(n));
        for node in first.map(|n| &graph.nodes[n]) {
            let message = format!("no run reaches `{}`", diagnostics::clip(&node.name));
            let d = rule.finding(message, node.at).about(node.name.as_str());
            let fix = wish(node.at, "", Applicability::DisplayOnly);
            let mut d = d.help("connect it, or remove it").fix(fix);
            if graph.open {
                d.level = Level::Unknown;
                d.help.push("a `Command` or `Send` may lead there".to_string());
            }
            out.push(elsewhere(context, d));
        }
    }
    let leftover = || context.unit.outline.leftover.iter().filter(|l| l.kind != LeftoverKind::Tool);
    // Where a workflow comes apart, the cause is one.
    let lost: Vec<_> = leftover().filter(|l| l.state != LeftoverState::ByName).collect();
    let apart = lost.len() > MAX_APART || lost.len() > 1 && lost[0].state == LeftoverState::Apart;
    if apart {
        let names: Vec<String> =
            lost.iter().take(3).map(|l| format!("`{}`", diagnostics::clip(&l.name))).collect();
        let message = format!("no run reaches {} parts, such as {}", lost.len(), names.join(", "));
        let mut d = rule.finding(message, lost[0].at).about(lost[0].name.as_str());
        if lost.iter().all(|l| l.state == LeftoverState::SetAside) {
            d.level = Level::Info;
        }
        out.push(elsewhere(context, d.help("connect them, or remove them")));
    }
    for left in leftover().filter(|l| l.state == LeftoverState::ByName || !apart) {
        let name = diagnostics::clip(&left.name);
        let mut d = match left.state {
            LeftoverState::ByName => {
                let message = format!("nothing hands off to `{name}`: it runs only if it is started by name");
                rule.finding(message, left.at)
            }
            _ => {
                let fix = wish(left.at, "", Applicability::DisplayOnly);
                rule.finding(format!("no run reaches `{name}`"), left.at).fix(fix)
            }
        };
        d.about.clone_from(&left.name);
        if matches!(left.state, LeftoverState::ByName | LeftoverState::SetAside) {
            d.level = Level::Info;
        }
        out.push(elsewhere(context, d.help("connect it, or remove it")));
    }
}

/// Leaves a part open to which code that is not seen may lead.
fn elsewhere(context: &Context<'_>, d: Diagnostic) -> Diagnostic {
    match context.compiled.facts.code.edges_elsewhere {
        true => context.unless_code(d, "edges may be added elsewhere in the code"),
        false => d,
    }
}
