//! Pictures of terms: what the flow analysis says of their nodes, and how they become an SVG image.
//!
//! Entry points: [`mark`], [`svg`].

#[cfg_attr(not(feature = "svg"), path = "picture/svg_absent.rs")]
mod svg;

use analysis::flow::{Cause, FlowReport, Sink, Site, Verdict};
use core_ir::Code;
use core_ir::draw::{Mark, Node, NodeShape, Picture};
pub use svg::svg;

/// Sources named on a node at most.
const SOURCES: usize = 2;

/// Marks the nodes whose calls are refused, or may be, with where the data comes from that breaks the bound.
pub fn mark(picture: &mut Picture, code: &Code, report: &FlowReport) {
    for node in &mut picture.nodes {
        let sites: Vec<&Site> = report.sites.iter().filter(|site| represents(node, code, site)).collect();
        let worst = sites.iter().filter_map(|s| match s.verdict {
            Verdict::Always => None,
            Verdict::Depends => Some(Mark::Open),
            Verdict::Never => Some(Mark::Refused),
        });
        node.mark = worst.max().unwrap_or_default();
        let mut said = Vec::new();
        for source in sites.iter().flat_map(|s| &s.checks).flat_map(|c| &c.sources) {
            let what = match (source.untrusted, source.secret) {
                (true, true) => "untrusted, secret",
                (true, false) => "untrusted",
                (false, true) => "secret",
                (false, false) => continue,
            };
            let data = !matches!(
                source.origin.cause,
                Cause::Try | Cause::Bound(_) | Cause::Reclassified | Cause::Input
            );
            let line = format!("{what}: {}", source.origin.describe());
            if data && source.breaks && !said.contains(&line) {
                said.push(line);
            }
        }
        let more = said.len().saturating_sub(SOURCES);
        said.truncate(SOURCES);
        node.lines.extend(said);
        if more > 0 {
            node.lines.push(format!("and {more} more"));
        }
    }
}

/// Returns true if a node of the picture is (also) this place.
fn represents(node: &Node, code: &Code, site: &Site) -> bool {
    let kind = match site.sink {
        Sink::Tool(_) => matches!(node.look, NodeShape::Tool | NodeShape::Model),
        Sink::Model(_) => node.look == NodeShape::Model,
        _ => false,
    };
    // A tool's node names its tool first; an agent's node represents the calls of all its tools.
    let name = match (&site.sink, node.look) {
        (Sink::Tool(name), NodeShape::Tool) => node.lines.first().is_some_and(|l| **l == **name),
        _ => true,
    };
    kind && name && node.terms.iter().any(|t| code.span(*t) == site.span)
}
