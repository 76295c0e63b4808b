//! S005: an approval that can be walked around.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};
use frontend_kit::{GraphOutline, NodeRole};
use std::collections::HashSet;

pub(super) static RULE: Rule = Rule {
    code: "S005",
    name: "bypassed-approval",
    level: Level::Warn,
    meaning: "the write does not wait for the approval: a node leads to the approval and, by the same outcome, to a path to the write that does not contain it",
    docs: page!("../../../../docs/rules/S005-bypassed-approval.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for graph in &context.unit.outline.graphs {
        let with = |role| (0..graph.nodes.len()).filter(move |n| graph.nodes[*n].role == role);
        for approval in with(NodeRole::Approves) {
            let after = graph.reached(approval);
            let bypassed = bypassed(graph, approval);
            for write in with(NodeRole::Writes).filter(|w| after[*w] && bypassed[*w]) {
                let (asks, writes) = (&graph.nodes[approval], &graph.nodes[write]);
                let message = format!(
                    "`{}` can be reached without the approval in `{}`",
                    diagnostics::clip(&writes.name),
                    diagnostics::clip(&asks.name)
                );
                let d = rule
                    .finding(message, writes.at)
                    .about(asks.name.as_str())
                    .remark(asks.at, "the approval");
                out.push(d.help("lead every path to it through the approval"));
            }
        }
    }
}

/// Returns for each node whether it runs without waiting for an approval: a node leads to it, and by the same
/// outcome to the approval. Where the two have outcomes of their own, the workflow decides what is approved.
/// A node that leads to the approval is what is approved.
fn bypassed(graph: &GraphOutline, approval: usize) -> Vec<bool> {
    let waits: Vec<bool> = graph.leading_to(approval);
    let around = graph.reached_around(graph.start, Some(approval));
    let edges =
        || graph.edges.iter().filter(|(from, to, _)| around.get(*from) == Some(&true) && *to < waits.len());
    let forks: HashSet<(usize, &Option<String>)> =
        edges().filter(|(_, to, _)| waits[*to]).map(|(from, _, when)| (*from, when)).collect();
    let past: Vec<usize> = edges()
        .filter(|(from, to, when)| !waits[*to] && forks.contains(&(*from, when)))
        .map(|(_, to, _)| *to)
        .collect();
    graph.reached_from(past, Some(approval))
}
