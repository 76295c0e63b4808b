//! Hover, completion and layout.

use crate::Document;
use crate::check::workspace;
use crate::places::Places;
use ide::{CompletionKind, QueryError};
use serde_json::{Value, json};

/// Answers `hover`.
pub(crate) fn hover(document: &Document, at: usize) -> Value {
    let places = Places::of(&document.text);
    let hover = workspace(document).hover(&document.path, places.byte(at));
    match hover {
        None => json!({"markdown": null}),
        Some(hover) => {
            let range = hover.range.map(|r| [places.utf16(r.start), places.utf16(r.end)]);
            json!({"markdown": hover.markdown, "range": range})
        }
    }
}

/// Answers `complete`.
pub(crate) fn complete(document: &Document, at: usize) -> Value {
    let places = Places::of(&document.text);
    let items = workspace(document).completion(&document.path, places.byte(at));
    let item = |c: ide::Completion| json!({"label": c.label, "kind": kind(c.kind), "insert": c.insert, "detail": c.detail, "about": c.documentation});
    json!({"items": items.into_iter().map(item).collect::<Vec<_>>()})
}

/// The name that CodeMirror has for a kind.
fn kind(kind: CompletionKind) -> &'static str {
    match kind {
        CompletionKind::Type => "type",
        CompletionKind::Agent => "class",
        CompletionKind::Function => "function",
        CompletionKind::Variable => "variable",
        CompletionKind::Field => "property",
        CompletionKind::Keyword => "keyword",
    }
}

/// Answers `format`.
pub(crate) fn format(document: &Document) -> Value {
    match workspace(document).format(&document.path) {
        Ok(None) => json!({"error": "only `.agent` and `.lam` have a layout of their own"}),
        Ok(Some(edits)) => json!({"text": edits.first().map_or(document.text.as_str(), |e| e.text.as_str())}),
        Err(QueryError::Refused(why) | QueryError::InvalidName(why)) => json!({"error": why}),
    }
}
