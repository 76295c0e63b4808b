//! Formats that are recognized so that they can be named and counted, though no front end compiles
//! them yet. A line leaves this table when its front end arrives.

use frontend_kit::doc::Node;
use frontend_kit::project::File;

/// A format's name and the mark by which a document's outermost node shows it.
type Mark = (&'static str, fn(Node<'_>) -> bool);

/// In this order: the first that matches names the file.
const MARKS: &[Mark] = &[("langflow", |r| {
    r.at(&["data", "nodes"]).is_some_and(|n| n.is_sequence()) && r.get("last_tested_version").is_some()
})];

/// The name of the format that a file shows the mark of.
pub fn format(file: &File) -> Option<&'static str> {
    file.documents.iter().take(8).find_map(|d| {
        let root = d.root();
        MARKS.iter().find(|(_, mark)| mark(root)).map(|(name, _)| *name)
    })
}
