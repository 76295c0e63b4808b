//! Pictures of terms: what the flow analysis says of their nodes, and how they become an SVG image.
//!
//! Entry points: [`of`] draws an entry point, [`svg`] makes an image of it.

#[cfg_attr(not(feature = "svg"), path = "svg_absent.rs")]
mod svg;

use crate::{Runnable, policy};
use ::policy::Policy;
use analysis::flow::{self, Cause, FlowReport, Sink, Site, Source, Verdict};
use core_ir::draw::{Mark, Node, NodeShape, Picture};
use core_ir::{Code, ModelRoutes};
use std::sync::Arc;
pub use svg::svg;

/// Sources named on a node at most.
const SOURCES: usize = 2;

/// Draws the term of an entry point, with what the flow analysis says of it.
pub fn of(r: &Runnable, policy: Option<&Policy>, routes: &ModelRoutes) -> Picture {
    of_term(&r.code, policy, routes, r.analyzed_for().is_some())
}

/// Draws a term, or a call of the function that it is, with what the flow analysis says of it.
pub fn of_term(code: &Arc<Code>, policy: Option<&Policy>, routes: &ModelRoutes, applied: bool) -> Picture {
    let mut drawn = core_ir::draw::draw(code);
    let options = policy::options(policy, routes.clone(), applied);
    mark(&mut drawn, code, &flow::analyze(code, &options));
    drawn
}

/// Marks the nodes whose calls are refused, or may be, with where the data comes from that breaks the bound.
/// An edge to a call or to the result says which labels reach it.
fn mark(picture: &mut Picture, code: &Code, report: &FlowReport) {
    let mut reaching: Vec<Option<&'static str>> = Vec::new();
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
            let Some(what) = kinds([source]) else { continue };
            let line = format!("{what}: {}", source.origin.describe());
            if source.breaks && !said.contains(&line) {
                said.push(line);
            }
        }
        // What an agent's own calls bring in comes along no edge.
        let is_outside =
            |source: &&Source| !node.terms.iter().any(|term| code.span(*term) == source.origin.span);
        let sources = sites.iter().flat_map(|s| &s.checks).flat_map(|c| &c.sources);
        reaching.push(kinds(sources.filter(is_outside)));
        let more = said.len().saturating_sub(SOURCES);
        said.truncate(SOURCES);
        node.lines.extend(said);
        if more > 0 {
            node.lines.push(format!("and {more} more"));
        }
    }
    // The result is drawn last.
    if let (Some(node), Some(labels)) = (picture.nodes.last(), reaching.last_mut())
        && node.look == NodeShape::End
    {
        *labels = kinds(&report.result_sources);
    }
    for (_, to, text) in &mut picture.edges {
        let Some(labels) = reaching.get(*to).copied().flatten() else { continue };
        *text = if text.is_empty() { labels.into() } else { format!("{text}; {labels}") };
    }
}

/// Words for the labels that come from data of the program's own; `None` if all of that is trusted and
/// public.
fn kinds<'s>(sources: impl IntoIterator<Item = &'s Source>) -> Option<&'static str> {
    let (mut untrusted, mut secret) = (false, false);
    for source in sources {
        let cause = &source.origin.cause;
        if !matches!(cause, Cause::Try | Cause::Bound(_) | Cause::Reclassified | Cause::Input) {
            (untrusted, secret) = (untrusted || source.untrusted, secret || source.secret);
        }
    }
    match (untrusted, secret) {
        (true, true) => Some("untrusted, secret"),
        (true, false) => Some("untrusted"),
        (false, true) => Some("secret"),
        (false, false) => None,
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
