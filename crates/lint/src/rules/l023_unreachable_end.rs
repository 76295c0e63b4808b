//! L023: a graph that never reaches its end.

use crate::{Check, Context, Rule};
use diagnostics::{Diagnostic, Level};
use frontend_kit::GraphOutline;

pub(super) static RULE: Rule = Rule {
    code: "L023",
    name: "unreachable-end",
    level: Level::Error,
    meaning: "each node that is reached has a successor: the `fix` that the cycle becomes has no branch that returns",
    docs: page!("../../../../docs/rules/L023-unreachable-end.md"),
    check: Check::Term(check),
};

fn check(rule: &Rule, context: &Context<'_>, out: &mut Vec<Diagnostic>) {
    for graph in context.unit.outline.graphs.iter().filter(|g| never_ends(g)) {
        let Some(start) = graph.nodes.get(graph.start) else { continue };
        let mut d = rule.finding("this graph never reaches its end: every path stays in a cycle", start.at);
        if graph.open {
            d.level = Level::Unknown;
        }
        if context.compiled.facts.nothing_ends_run {
            d.level = Level::Unknown;
            d.help.push("a node that puts out no items ends the run".to_string());
        }
        let d = d.help("add a conditional edge to the end from one of the nodes in the cycle");
        let code = &context.compiled.facts.code;
        out.push(match code.fixed_edges {
            false => context.unless_code(d, "its nodes are code, which may end the run"),
            true if code.ends_runs || graph.stops => {
                context.unless_code(d, "a person, or the program, may end the run")
            }
            // Edges that no node can leave are certain, but for an error that a node raises.
            true => context.at_most_in_code(d, Level::Warn),
        });
    }
}

/// Returns true if every node that is reached is followed by another.
pub(super) fn never_ends(graph: &GraphOutline) -> bool {
    let reached = graph.reached(graph.start);
    let ends = |node: usize| {
        let mut edges = graph.edges.iter().filter(|(from, ..)| *from == node).peekable();
        if edges.peek().is_none() {
            return true;
        }
        // A decision ends the run where it has an outcome that no edge is for, and may do so where its
        // outcomes are not listed.
        let edges: Vec<_> = edges.collect();
        let always = edges.iter().any(|(.., when)| when.is_none());
        !always
            && graph.nodes[node].outcomes.as_ref().is_none_or(|all| {
                all.iter().any(|(label, _)| !edges.iter().any(|(.., when)| when.as_ref() == Some(label)))
            })
    };
    let mut nodes = (0..graph.nodes.len()).filter(|n| reached[*n]).peekable();
    nodes.peek().is_some() && !nodes.any(ends)
}
