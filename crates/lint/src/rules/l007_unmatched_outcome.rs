//! L007: outcomes of a decision against the branches after it.

use crate::repair::wish;
use crate::{Check, Context, Rule};
use core_ir::Term;
use diagnostics::{Applicability, Diagnostic, Level, Span};
use frontend_kit::DeadBranch;

pub(super) static RULE: Rule = Rule {
    code: "L007",
    name: "unmatched-outcome",
    level: Level::Warn,
    meaning: "the labels that `e` can have and the branches of `case e` differ: a label without a branch ends the run there, a branch without a label is dead",
    docs: page!("../../../../docs/rules/L007-unmatched-outcome.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for graph in &context.unit.outline.graphs {
        let reached = graph.reached(graph.start);
        for (i, node) in graph.nodes.iter().enumerate().filter(|(i, _)| reached[*i]) {
            let Some(outcomes) = &node.outcomes else { continue };
            let places = graph.placed.iter().copied().chain(std::iter::repeat(None));
            let edges: Vec<(usize, &Option<String>, Option<Span>)> = graph
                .edges
                .iter()
                .zip(places)
                .filter(|((from, ..), _)| *from == i)
                .map(|((_, to, when), at)| (*to, when, at))
                .collect();
            let otherwise = edges.iter().any(|(_, when, _)| when.is_none());
            for (label, at) in outcomes.iter().filter(|_| !otherwise && !edges.is_empty()) {
                if !edges.iter().any(|(_, when, _)| when.as_ref() == Some(label)) {
                    let message = format!(
                        "no edge leaves `{}` for the outcome `{}`: a run that takes it ends there",
                        diagnostics::clip(&node.name),
                        diagnostics::clip(label)
                    );
                    let mut d = rule.finding(message, *at).about(label.as_str());
                    d = d.help("add an edge for it, for example to the end");
                    d.fix = Some(wish(*at, "", Applicability::DisplayOnly));
                    // An `if` without an else often means just that.
                    if label == "false" {
                        d.level = Level::Info;
                    }
                    // A function that decides at several nodes need not give each of its outcomes at each.
                    out.push(match context.compiled.facts.code.fixed_edges {
                        true => context.unless_code(
                            d,
                            "whether the function gives it at this node depends on the state",
                        ),
                        false => d,
                    });
                }
            }
            for (to, when, at) in edges {
                if let Some(when) = when
                    && !outcomes.iter().any(|(label, _)| label == when)
                    && let Some(target) = graph.nodes.get(to)
                {
                    let message = format!(
                        "the edge from `{}` to `{}` is for `{}`, which is none of its outcomes: it is never taken",
                        diagnostics::clip(&node.name),
                        diagnostics::clip(&target.name),
                        diagnostics::clip(when)
                    );
                    let d =
                        rule.finding(message, at.unwrap_or(node.at)).about(format!("{} {when}", target.name));
                    let mut d = d.help("remove the edge, or add the outcome");
                    // Removing an edge that is never taken changes nothing.
                    d.fix = at.map(|at| wish(at, "", Applicability::Safe));
                    out.push(if at.is_some() { d.remark(node.at, "the decision") } else { d });
                }
            }
        }
    }
    for graph in &context.unit.outline.graphs {
        let reached = graph.reached(graph.start);
        for DeadBranch { from, label, at, harmless, .. } in graph.dead.iter().filter(|b| reached[b.from]) {
            let message = format!(
                "the router after `{}` never returns `{}`: this branch is never taken",
                diagnostics::clip(&graph.nodes[*from].name),
                diagnostics::clip(label)
            );
            let mut d = rule.finding(message, *at).about(label.as_str());
            d = d.help("remove it, or return the label");
            // Another label leads there, so that it is one name too many, or a constant switches it off:
            // nothing is lost.
            if *harmless {
                d.level = Level::Info;
            }
            out.push(d);
        }
    }
    let code = context.code();
    for (id, term) in code.iter() {
        if let Term::Case { scrutinee, branches, default: None } = term
            && let Term::Classify(labels, _) = code.term(*scrutinee)
        {
            for branch in branches.iter().filter(|b| !labels.contains(&b.tag)) {
                let message = format!(
                    "the branch `{}` is dead: it is none of the labels",
                    diagnostics::clip(&branch.tag)
                );
                out.push(
                    rule.finding(message, code.span(branch.body))
                        .about(&*branch.tag)
                        .help("remove it, or add the label"),
                );
            }
            for label in
                labels.iter().filter(|l| !branches.is_empty() && !branches.iter().any(|b| b.tag == **l))
            {
                let message = format!("no branch takes the label `{}`", diagnostics::clip(label));
                out.push(
                    rule.finding(message, code.span(id))
                        .about(&**label)
                        .help("add a branch for it, or a default"),
                );
            }
        }
    }
}
