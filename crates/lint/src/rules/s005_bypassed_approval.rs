//! S005: an approval that can be walked around.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};
use frontend_kit::NodeRole;

pub(super) static RULE: Rule = Rule {
    code: "S005",
    name: "bypassed-approval",
    level: Level::Warn,
    meaning: "the approval does not dominate the write: a path from the first node to the write does not go through it",
    docs: page!("../../../../docs/rules/S005-bypassed-approval.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for graph in &context.unit.outline.graphs {
        let with = |role| (0..graph.nodes.len()).filter(move |n| graph.nodes[*n].role == role);
        for approval in with(NodeRole::Approves) {
            let after = graph.reached(approval);
            let around = graph.reached_around(graph.start, Some(approval));
            for write in with(NodeRole::Writes).filter(|w| after[*w] && around[*w]) {
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
