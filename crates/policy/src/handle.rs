//! `handle`: results, or parts of them, that a guard keeps from the model if their label is above a floor.
//! The model gets a handle, so that the conversation keeps its label. Others ignore it.

use super::{Policy, PolicyReader, Signature, Value, codes};
use crate::tree::Node;
use core_ir::{LabelSpec, PartPath, ToolDecl};
use diagnostics::{Diagnostic, Span};

/// A part of the result, by the path to it, with the floor and the place. The empty path is all of it.
pub(super) type HandleRule = (PartPath, LabelSpec, Span);

impl PolicyReader {
    /// A floor for the whole result, or a table with a floor for each part.
    pub(super) fn handle(&mut self, value: &Value) -> Vec<HandleRule> {
        if let Node::Text(_) = value.get_ref() {
            let whole = PartPath::default();
            return self.label(value).map(|floor| (whole, floor, value.span())).into_iter().collect();
        }
        let what = "a label such as \"trusted\", or a table with a label for each part of the result";
        let Some(table) = self.table(value, what) else { return Vec::new() };
        let mut out: Vec<HandleRule> = Vec::new();
        for (key, floor) in table.iter() {
            let span = key.span();
            let Some(path) = self.part_path(key.get_ref(), span) else { continue };
            let is_within = |a: &PartPath, b: &PartPath| b.steps().starts_with(a.steps());
            if let Some((other, ..)) = out.iter().find(|(o, ..)| is_within(o, &path) || is_within(&path, o)) {
                let message = format!("`{path}` and `{other}` are parts of each other");
                let d = Diagnostic::error(codes::WRONG_VALUE, message, span);
                self.found.push(d.help("name one of the two"));
                continue;
            }
            if let Some(floor) = self.label(floor) {
                out.push((path, floor, span));
            }
        }
        out
    }
}

impl Signature {
    /// Reports parts that the result doesn't have.
    pub(super) fn check_handle(&self, decl: &ToolDecl, found: &mut Vec<Diagnostic>) {
        for (path, _, span) in &self.handle {
            if path.fits(&decl.result).is_err() {
                let message = format!("what `{}` returns has no part `{path}`", decl.name);
                let d = Diagnostic::error(codes::PART, message, *span);
                found.push(d.help(format!("its type is `{}`", decl.result)));
            }
        }
    }
}

impl Policy {
    /// The parts of a tool's result that a guard gives the model a handle of, if their label is above the
    /// floor. The empty path is the whole result.
    pub fn handle(&self, tool: &str) -> impl Iterator<Item = (&PartPath, &LabelSpec)> {
        let tables = self.tools.iter().filter(move |t| *t.name == *tool);
        tables.flat_map(|t| &t.says.handle).map(|(path, floor, _)| (path, floor))
    }

    /// Returns whether a guard gives handles of any tool's results.
    pub fn has_handles(&self) -> bool {
        self.tools.iter().any(|t| !t.says.handle.is_empty())
    }
}
