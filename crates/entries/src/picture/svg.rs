//! SVG images of pictures. The layout is the one of the dagre library (layers, few crossings), with a limit
//! on its work.

use core_ir::draw::{Mark, Node, NodeShape, Picture};
use dugong::graphlib::{Graph, GraphOptions};
use dugong::{EdgeLabel, GraphLabel, LabelPos, NodeLabel, Point, WorkControl, WorkError, layout_controlled};
use std::fmt::Write;

/// Characters of a line at most; what is longer is clipped.
const WIDTH: usize = 44;
/// Units of the layout's work at most: a picture of fifty nodes needs some sixty thousand.
const WORK: usize = 2_000_000;

/// A limit on the work of the layout.
struct WorkLimit(usize);

impl WorkControl for WorkLimit {
    fn charge(&mut self, units: usize) -> Result<(), WorkError> {
        self.0 = self.0.checked_sub(units).ok_or(WorkError::Interrupted)?;
        Ok(())
    }
}

/// Draws a picture as an SVG image.
///
/// # Errors
/// The picture is too large or too tangled to be laid out.
pub fn svg(picture: &Picture) -> Result<String, String> {
    let mut graph: Graph<NodeLabel, EdgeLabel, GraphLabel> =
        Graph::new(GraphOptions { multigraph: true, compound: true, ..Default::default() });
    graph.set_graph(GraphLabel {
        nodesep: 28.0,
        ranksep: 34.0,
        edgesep: 14.0,
        marginx: 16.0,
        marginy: 16.0,
        ..Default::default()
    });
    graph.set_default_edge_label(EdgeLabel::default);
    for (i, node) in picture.nodes.iter().enumerate() {
        let (width, height) = size(node);
        graph.set_node(i.to_string(), NodeLabel { width, height, ..Default::default() });
    }
    for (i, (from, to, label)) in picture.edges.iter().enumerate() {
        let shown = clip(label);
        let (width, height) = if shown.is_empty() { (0.0, 0.0) } else { (breadth(&shown) + 8.0, 16.0) };
        let label = EdgeLabel { width, height, labelpos: LabelPos::C, weight: 1.0, ..Default::default() };
        graph.set_edge_named(from.to_string(), to.to_string(), Some(i.to_string()), Some(label));
    }
    layout_controlled(&mut graph, &mut WorkLimit(WORK))
        .map_err(|e| format!("cannot lay the picture out: {e}"))?;
    let (width, height) = (graph.graph().width.max(1.0), graph.graph().height.max(1.0));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"13\">\n{STYLE}"
    );
    for (i, (from, to, label)) in picture.edges.iter().enumerate() {
        let name = i.to_string();
        let Some(edge) = graph.edge(&from.to_string(), &to.to_string(), Some(&name)) else { continue };
        edge_of(&mut out, &edge.points);
        if let (Some(x), Some(y), false) = (edge.x, edge.y, label.is_empty()) {
            let shown = clip(label);
            let w = breadth(&shown) + 6.0;
            let _ = writeln!(
                out,
                "<rect class=\"behind\" x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"16\"/>\
                 <text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                x - w / 2.0,
                y - 8.0,
                y + 4.5,
                escape(&shown)
            );
        }
    }
    for (i, node) in picture.nodes.iter().enumerate() {
        let Some(NodeLabel { width, height, x: Some(x), y: Some(y), .. }) = graph.node(&i.to_string()) else {
            continue;
        };
        node_of(&mut out, node, (*x, *y), (*width, *height));
    }
    out.push_str("</svg>\n");
    Ok(out)
}

const STYLE: &str = "<style>
.behind { fill: #ffffff; }
.line { fill: none; stroke: #5f6b7a; stroke-width: 1.4; }
text { fill: #1b2430; text-anchor: middle; }
.end { fill: #eef1f5; stroke: #5f6b7a; }
.model { fill: #e3edfd; stroke: #2f5fb3; }
.tool { fill: #e2f4ea; stroke: #2b7a4b; }
.choice { fill: #fdf3dc; stroke: #a06a00; }
.loop { fill: #f1e8fb; stroke: #6b3fa0; }
.unknown { fill: #ffffff; stroke: #5f6b7a; stroke-dasharray: 5 4; }
.open { stroke: #b8860b; stroke-width: 3; }
.refused { stroke: #b00020; stroke-width: 3; }
</style>
<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
<path d=\"M0 0 L10 5 L0 10 z\" fill=\"#5f6b7a\"/></marker></defs>
<rect class=\"behind\" width=\"100%\" height=\"100%\"/>
";

/// Estimates the width of a text, because the font is unknown. Letters outside of Latin count twice.
fn breadth(text: &str) -> f64 {
    text.chars().map(|c| if (c as u32) < 0x1100 { 7.3 } else { 13.5 }).sum()
}

fn clip(text: &str) -> String {
    let one: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if one.chars().count() <= WIDTH {
        return one;
    }
    one.chars().take(WIDTH - 1).chain(['…']).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn size(node: &Node) -> (f64, f64) {
    let text = node.lines.iter().map(|l| breadth(&clip(l))).fold(0.0, f64::max);
    let lines = node.lines.len().max(1) as f64;
    match node.look {
        // The text has to fit between the slanted sides.
        NodeShape::Choice => (text * 1.3 + 44.0, lines * 18.0 + 34.0),
        NodeShape::Loop => (text + 52.0, lines * 18.0 + 16.0),
        _ => (text + 28.0, lines * 18.0 + 16.0),
    }
}

/// A smooth line through the points: each inner point bends it, and it passes half-way between two of them.
fn edge_of(out: &mut String, points: &[Point]) {
    let [first, inner @ .., last] = points else { return };
    let mut path = format!("M{:.1} {:.1}", first.x, first.y);
    for (i, p) in inner.iter().enumerate() {
        let next = inner.get(i + 1);
        let (x, y) = next.map_or((last.x, last.y), |n| ((p.x + n.x) / 2.0, (p.y + n.y) / 2.0));
        let _ = write!(path, " Q{:.1} {:.1} {x:.1} {y:.1}", p.x, p.y);
    }
    if inner.is_empty() {
        let _ = write!(path, " L{:.1} {:.1}", last.x, last.y);
    }
    let _ = writeln!(out, "<path class=\"line\" marker-end=\"url(#tip)\" d=\"{path}\"/>");
}

fn node_of(out: &mut String, node: &Node, (x, y): (f64, f64), (w, h): (f64, f64)) {
    let look = match node.look {
        NodeShape::End => "end",
        NodeShape::Model => "model",
        NodeShape::Tool => "tool",
        NodeShape::Choice => "choice",
        NodeShape::Loop => "loop",
        NodeShape::Unknown => "unknown",
    };
    let mark = match node.mark {
        Mark::None => "",
        Mark::Open => " open",
        Mark::Refused => " refused",
    };
    let (left, right, top, bottom) = (x - w / 2.0, x + w / 2.0, y - h / 2.0, y + h / 2.0);
    let _ = match node.look {
        NodeShape::Choice => write!(
            out,
            "<polygon class=\"{look}{mark}\" points=\"{x:.1},{top:.1} {right:.1},{y:.1} {x:.1},{bottom:.1} {left:.1},{y:.1}\"/>"
        ),
        NodeShape::Loop => {
            let (a, b) = (left + 14.0, right - 14.0);
            write!(
                out,
                "<polygon class=\"{look}{mark}\" points=\"{a:.1},{top:.1} {b:.1},{top:.1} {right:.1},{y:.1} \
                 {b:.1},{bottom:.1} {a:.1},{bottom:.1} {left:.1},{y:.1}\"/>"
            )
        }
        _ => {
            let round = match node.look {
                NodeShape::End => h / 2.0,
                NodeShape::Tool => 10.0,
                _ => 3.0,
            };
            write!(
                out,
                "<rect class=\"{look}{mark}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{round:.1}\"/>"
            )
        }
    };
    let begin = y - 18.0 * (node.lines.len() as f64 - 1.0) / 2.0 + 4.5;
    for (i, line) in node.lines.iter().enumerate() {
        let _ = write!(
            out,
            "<text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
            begin + 18.0 * i as f64,
            escape(&clip(line))
        );
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(look: NodeShape, lines: &[&str]) -> Node {
        Node {
            look,
            lines: lines.iter().map(|l| l.to_string()).collect(),
            terms: Vec::new(),
            mark: Mark::None,
        }
    }

    /// Fifty nodes: stages, each with a decision that skips one or goes back to a loop.
    fn fifty() -> Picture {
        let mut picture = Picture::default();
        for i in 0..50 {
            let look =
                [NodeShape::Model, NodeShape::Choice, NodeShape::Tool, NodeShape::Loop, NodeShape::Unknown]
                    [i % 5];
            picture
                .nodes
                .push(node(look, &[&format!("node {i}"), "a line that is rather longer than the others"]));
            if i > 0 {
                picture.edges.push((i - 1, i, if i % 5 == 2 { "yes".into() } else { String::new() }));
            }
            if i % 5 == 1 && i + 3 < 50 {
                picture.edges.push((i, i + 3, "no".into()));
            }
            if i % 10 == 9 {
                picture.edges.push((i, i - 6, String::new()));
            }
        }
        picture
    }

    /// `x y width height` of every rectangle and polygon that is a node.
    fn boxes(svg: &str) -> Vec<(f64, f64, f64, f64)> {
        let number = |line: &str, name: &str| -> f64 {
            let at = line.find(&format!(" {name}=\"")).expect("the attribute is written") + name.len() + 3;
            line[at..].split('"').next().expect("it ends").parse().expect("it is a number")
        };
        let mut found = Vec::new();
        for line in svg.lines() {
            if line.starts_with("<rect class=\"behind\"") {
                continue;
            }
            if line.starts_with("<rect") {
                found.push((
                    number(line, "x"),
                    number(line, "y"),
                    number(line, "width"),
                    number(line, "height"),
                ));
            } else if let Some(points) =
                line.strip_prefix("<polygon").and_then(|l| l.split("points=\"").nth(1))
            {
                let points = points.split('"').next().expect("it ends");
                let all: Vec<(f64, f64)> = points
                    .split_whitespace()
                    .map(|p| p.split_once(',').expect("a pair"))
                    .map(|(x, y)| (x.parse().expect("a number"), y.parse().expect("a number")))
                    .collect();
                let low = |f: fn(&(f64, f64)) -> f64| all.iter().map(f).fold(f64::MAX, f64::min);
                let high = |f: fn(&(f64, f64)) -> f64| all.iter().map(f).fold(f64::MIN, f64::max);
                let (x, y) = (low(|p| p.0), low(|p| p.1));
                found.push((x, y, high(|p| p.0) - x, high(|p| p.1) - y));
            }
        }
        found
    }

    #[test]
    fn fifty_nodes_do_not_overlap_and_say_what_they_are() {
        let svg = svg(&fifty()).expect("fifty nodes can be laid out");
        let boxes = boxes(&svg);
        assert_eq!(boxes.len(), 50);
        for (i, a) in boxes.iter().enumerate() {
            for b in &boxes[i + 1..] {
                let apart = a.0 + a.2 <= b.0 || b.0 + b.2 <= a.0 || a.1 + a.3 <= b.1 || b.1 + b.3 <= a.1;
                assert!(apart, "{a:?} and {b:?} overlap");
            }
        }
        for i in 0..50 {
            assert!(svg.contains(&format!(">node {i}</text>")), "node {i} is not named");
        }
    }

    #[test]
    fn text_cannot_leave_its_place() {
        let mut picture = Picture::default();
        picture.nodes.push(node(NodeShape::Model, &["</text><script>alert(\"1\") && 2</script>"]));
        let svg = svg(&picture).expect("one node can be laid out");
        assert!(!svg.contains("<script"));
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;"));
    }

    #[test]
    fn a_tangle_is_refused_and_not_worked_on_for_ever() {
        let mut picture = Picture::default();
        for i in 0..core_ir::draw::MAX_NODES {
            picture.nodes.push(node(NodeShape::Tool, &["t"]));
            for step in 1..5 {
                picture.edges.push((i, (i * step * 37 + step) % core_ir::draw::MAX_NODES, String::new()));
            }
        }
        // Either is right; what is tested is that it ends.
        match svg(&picture) {
            Ok(svg) => assert!(svg.ends_with("</svg>\n")),
            Err(message) => assert!(message.contains("cannot lay the picture out"), "{message}"),
        }
    }
}
