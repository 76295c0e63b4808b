//! YAML and JSON with the place of every node: what framework configurations are read with.
//!
//! Entry points: [`decode`] turns the bytes of a file into text, [`load`] turns text into
//! [`Document`]s. Both are total: whatever the input, they return within time and memory linear in
//! [`Limits`], with at least one diagnostic if anything was not understood.
//!
//! JSON may carry comments and trailing commas, as configuration files do. YAML may hold several
//! documents, anchors, merge keys and custom tags; an alias is a reference to the one node it
//! names, never a copy, so that a "billion laughs" file is as small in memory as it is on disk.
//!
//! Invariant: spans are byte ranges of the text as it was given to [`load`], byte order mark
//! included.
//! Invariant: the graph of nodes is acyclic; an alias points to a node that ended before it.
//! Invariant: this module knows no framework, and reads no file: `!include` stays a tag.

mod build;
mod json;
mod node;
mod number;
mod yaml;

#[cfg(test)]
mod tests;

pub use node::{Document, Entry, Include, Node, NodeId, NodeKind};

use diagnostics::{Diagnostic, FileId, Span};
use std::sync::Arc;

/// Codes of the diagnostics that this module reports.
pub mod codes {
    /// The bytes are not text: invalid UTF-8, UTF-16, or a NUL.
    pub const NOT_TEXT: &str = "D001";
    /// Neither valid YAML nor valid JSON.
    pub const SYNTAX: &str = "D002";
    /// Larger or deeper than the limits allow.
    pub const LIMIT: &str = "D003";
    /// One key twice in one mapping.
    pub const DUPLICATE_KEY: &str = "D004";
    /// A template that has to be rendered before it is a configuration.
    pub const TEMPLATE: &str = "D005";
    /// An anchor, alias or merge key that means nothing.
    pub const ALIAS: &str = "D006";
    /// Text after the end of a JSON value.
    pub const TRAILING: &str = "D007";
    /// A file that is named for inclusion and was not read.
    pub const INCLUDE: &str = "D008";
}

/// Format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON, with comments and trailing commas allowed.
    Json,
    /// YAML 1.2 with the merge keys of 1.1.
    Yaml,
}

impl Format {
    /// Returns the format of a path by its extension. `None` for any other extension.
    pub fn of_path(path: &str) -> Option<Format> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let (_, extension) = name.rsplit_once('.')?;
        match extension.to_ascii_lowercase().as_str() {
            "json" | "jsonc" | "json5" => Some(Format::Json),
            "yaml" | "yml" => Some(Format::Yaml),
            _ => None,
        }
    }
}

/// Bounds on what is read. Exceeding one is a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub bytes: usize,
    /// Sequences and mappings within one another.
    pub depth: usize,
    /// Nodes of all documents of one file.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 8 << 20, depth: 128, nodes: 2_000_000 }
    }
}

/// Result of [`load`].
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The documents that were read to their end, in order. Empty documents are left out.
    pub documents: Vec<Document>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Loaded {
    /// Returns true if the text could not be read to its end.
    pub fn failed(&self) -> bool {
        diagnostics::has_errors(&self.diagnostics)
    }
}

/// The bytes of a file as text.
///
/// # Errors
/// One diagnostic if the file is larger than [`Limits::bytes`], holds a NUL or is not UTF-8.
pub fn decode(file: FileId, bytes: &[u8], limits: &Limits) -> Result<Arc<str>, Box<Diagnostic>> {
    let at = |n: usize| Span { file, start: clamp(n), end: clamp(n) };
    if bytes.len() > limits.bytes {
        return Err(Box::new(too_large(limits, at(0))));
    }
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(Box::new(
            Diagnostic::error(codes::NOT_TEXT, "the file is encoded as UTF-16", at(0))
                .help("save it as UTF-8"),
        ));
    }
    if let Some(n) = bytes.iter().position(|b| *b == 0) {
        return Err(Box::new(
            Diagnostic::error(codes::NOT_TEXT, format!("the file is binary: byte {n} is zero"), at(n))
                .help("a configuration is a text file in UTF-8"),
        ));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Arc::from(text)),
        Err(e) => {
            let n = e.valid_up_to();
            Err(Box::new(
                Diagnostic::error(
                    codes::NOT_TEXT,
                    format!(
                        "the file is not UTF-8: byte {n} is 0x{:02x}",
                        bytes.get(n).copied().unwrap_or(0)
                    ),
                    at(n),
                )
                .help("save it as UTF-8"),
            ))
        }
    }
}

/// Reads all documents of a text. `format` is what the path says; with `None` the text decides.
///
/// A text that begins with a brace or bracket is tried as JSON first even if it is called YAML: the
/// result is the same, faster, and JSON's escapes are not all YAML's.
///
/// # Examples
/// ```
/// use frontend_kit::doc::{load, Format, Limits};
/// let text = "agents:\n  - &a {name: scout, steps: 20}\n  - *a\n".into();
/// let loaded = load(diagnostics::FileId(0), &text, Some(Format::Yaml), &Limits::default());
/// let agents = loaded.documents[0].root().get("agents").unwrap();
/// let last = agents.items().last().unwrap();
/// assert_eq!(last.get("steps").unwrap().as_u64(), Some(20));
/// assert_eq!(&text[last.span().start as usize..last.span().end as usize], "*a");
/// ```
pub fn load(file: FileId, text: &Arc<str>, format: Option<Format>, limits: &Limits) -> Loaded {
    let at = |n: usize| Span { file, start: clamp(n), end: clamp(n) };
    if text.len() > limits.bytes {
        let diagnostics = vec![too_large(limits, at(0))];
        return Loaded { documents: Vec::new(), diagnostics };
    }
    if let Some(n) = text.find('\0') {
        let d = Diagnostic::error(codes::NOT_TEXT, format!("the file is binary: byte {n} is zero"), at(n));
        return Loaded { documents: Vec::new(), diagnostics: vec![d] };
    }
    if format == Some(Format::Json) {
        return json::load(file, text, limits);
    }
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let templated = body.starts_with("{{") || body.starts_with("{%");
    if !templated && (body.starts_with(['{', '[']) || body.starts_with("//") || body.starts_with("/*")) {
        let as_json = json::load(file, text, limits);
        // What is too large as JSON is too large as YAML, which takes far more memory to find out.
        if !as_json.failed() || as_json.diagnostics.iter().any(|d| d.code == codes::LIMIT) {
            return as_json;
        }
        if format.is_none() {
            let as_yaml = yaml::load(file, text, limits);
            return if as_yaml.failed() { as_json } else { as_yaml };
        }
    }
    yaml::load(file, text, limits)
}

fn too_large(limits: &Limits, span: Span) -> Diagnostic {
    Diagnostic::error(
        codes::LIMIT,
        format!("the file is larger than the limit of {} bytes", limits.bytes),
        span,
    )
    .help("a configuration of this size is hardly written by hand: leave it out, or split it")
}

/// A byte offset as spans hold it. Files end long before this saturates.
fn clamp(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
