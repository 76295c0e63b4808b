//! The attack paths as a picture: what brings text in, the models, and what acts.

use super::{Audit, PathKind, Step};
use core_ir::draw::{MAX_NODES, Mark, Node, NodeShape, Picture};
use std::collections::HashMap;

/// Draws the paths of all programs.
pub(super) fn draw(audit: &Audit) -> Picture {
    let mut drawing = Drawing::default();
    for (i, program) in audit.programs.iter().enumerate() {
        let file = audit.sources.get(program.file).map_or("", |s| &*s.path);
        for path in &program.paths {
            let model = |step: &Step| step.agent.clone().unwrap_or_else(|| program.name.clone());
            let mut models: Vec<String> = Vec::new();
            for step in [Some(&path.source), path.private.as_ref(), Some(&path.sink)].into_iter().flatten() {
                if !models.contains(&model(step)) {
                    models.push(model(step));
                }
            }
            let of_model = |d: &mut Drawing, name: &str| {
                d.node(i, NodeShape::Model, vec![name.to_string(), file.to_string()])
            };
            let (source, sink) = (drawing.step(i, &path.source, "in"), drawing.step(i, &path.sink, "out"));
            let mark = if path.kind == PathKind::Acts { Mark::Open } else { Mark::Refused };
            let nodes: Vec<usize> = models.iter().map(|m| of_model(&mut drawing, m)).collect();
            if let Some(node) = drawing.picture.nodes.get_mut(sink) {
                node.mark = node.mark.max(mark);
            }
            let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else { continue };
            drawing.edge(source, *first, "text of outsiders");
            for pair in nodes.windows(2) {
                drawing.edge(pair[0], pair[1], "");
            }
            if let Some(private) = &path.private {
                let at = models.iter().position(|m| *m == model(private)).and_then(|p| nodes.get(p));
                let node = drawing.step(i, private, "in");
                drawing.edge(node, at.copied().unwrap_or(*first), "private data");
            }
            drawing.edge(*last, sink, super::paths::outcome(path.sink.fact.effect));
        }
    }
    drawing.picture
}

#[derive(Default)]
struct Drawing {
    picture: Picture,
    nodes: HashMap<(usize, Vec<String>), usize>,
}

impl Drawing {
    /// A node for a step. A tool that is both the beginning and the end of paths has two.
    fn step(&mut self, program: usize, step: &Step, side: &str) -> usize {
        let lines = vec![step.name.clone(), step.fact.effect.describe().to_string(), side.to_string()];
        self.node(program, NodeShape::Tool, lines)
    }

    fn node(&mut self, program: usize, look: NodeShape, mut lines: Vec<String>) -> usize {
        let key = (program, lines.clone());
        if let Some(known) = self.nodes.get(&key) {
            return *known;
        }
        if self.picture.nodes.len() >= MAX_NODES {
            return self.picture.nodes.len() - 1;
        }
        if look == NodeShape::Tool {
            lines.pop();
        }
        self.picture.nodes.push(Node { look, lines, terms: Vec::new(), mark: Mark::None });
        self.nodes.insert(key, self.picture.nodes.len() - 1);
        self.picture.nodes.len() - 1
    }

    fn edge(&mut self, from: usize, to: usize, label: &str) {
        let edge = (from, to, label.to_string());
        if from != to && !self.picture.edges.contains(&edge) {
            self.picture.edges.push(edge);
        }
    }
}
