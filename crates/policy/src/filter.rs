//! `filter`: lists of a result of which a guard leaves out the items whose label is above a floor, so that
//! the conversation keeps its label. Others ignore it: there the items are what their labels say.

use super::{Policy, PolicyReader, Signature, Value, codes};
use core_ir::{LabelSpec, PartPath, PathStep, ToolDecl};
use diagnostics::{Diagnostic, Span};

/// A list, by the path to its items, with the floor and the place.
pub(super) type FilterRule = (PartPath, LabelSpec, Span);

/// Returns whether a path leads through records to the items of one list.
fn is_list(path: &PartPath) -> bool {
    let Some((last, before)) = path.steps().split_last() else { return false };
    *last == PathStep::Items && before.iter().all(|step| matches!(step, PathStep::Field(_)))
}

impl PolicyReader {
    /// A table with a floor for each list.
    pub(super) fn filter(&mut self, value: &Value) -> Vec<FilterRule> {
        let Some(table) = self.table(value, "a table with a label for each list of the result") else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (key, floor) in table.iter() {
            let span = key.span();
            let Some(path) = self.part_path(key.get_ref(), span) else { continue };
            if !is_list(&path) {
                let d = Diagnostic::error(codes::WRONG_VALUE, "this path leads to no list", span);
                self.found.push(d.help("write the path to the items of a list: `[]`, `messages[]`"));
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
    /// Reports lists that the result doesn't have.
    pub(super) fn check_filter(&self, decl: &ToolDecl, found: &mut Vec<Diagnostic>) {
        for (path, _, span) in &self.filter {
            if path.fits(&decl.result).is_err() {
                let message = format!("what `{}` returns has no part `{path}`", decl.name);
                let d = Diagnostic::error(codes::PART, message, *span);
                found.push(d.help(format!("its type is `{}`", decl.result)));
            }
        }
    }
}

impl Policy {
    /// The lists of a tool's result of which items are left out whose label is above the floor.
    pub fn filter(&self, tool: &str) -> impl Iterator<Item = (&PartPath, &LabelSpec)> {
        let tables = self.tools.iter().filter(move |t| *t.name == *tool);
        tables.flat_map(|t| &t.says.filter).map(|(path, floor, _)| (path, floor))
    }
}
