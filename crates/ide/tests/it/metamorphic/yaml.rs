//! YAML as a tree of what is written, and texts that say the same in another layout.

use saphyr_parser::{Event, Parser, ScalarStyle};
use std::collections::BTreeSet;

/// A node as it is written.
#[derive(Clone, Debug)]
pub enum Written {
    Scalar { text: String, plain: bool, properties: String },
    Sequence { items: Vec<Written>, properties: String },
    Mapping { entries: Vec<(Written, Written)>, properties: String },
    Alias(usize),
}

/// The quotes of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quotes {
    /// Single where a string allows it. Keys are left plain.
    Single,
    /// Double, of keys too.
    Double,
    /// None where a string allows it, and literal blocks for lines.
    Plain,
}

/// A layout.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub indent: usize,
    pub quotes: Quotes,
    /// Collections below this depth are in flow style.
    pub flow_below: usize,
    /// A blank line before each entry of the outermost mapping.
    pub blank_lines: bool,
}

/// Parsed events of a text.
pub struct Stream {
    pub documents: Vec<Written>,
    /// The lines, from zero, before which no line may be inserted: those inside a scalar.
    pub inside: BTreeSet<usize>,
    pub has_aliases: bool,
}

/// The documents of a text; `None` if it is no YAML.
pub fn read(text: &str) -> Option<Stream> {
    enum Open {
        Sequence(Vec<Written>, String),
        Mapping(Vec<(Written, Written)>, Option<Written>, String),
    }
    let mut stream = Stream { documents: Vec::new(), inside: BTreeSet::new(), has_aliases: false };
    let mut open: Vec<Open> = Vec::new();
    let mut anchors = false;
    let mut properties = |anchor: usize, tag: Option<std::borrow::Cow<'_, saphyr_parser::Tag>>| {
        let mut out = String::new();
        if anchor != 0 {
            anchors = true;
            out += &format!("&a{anchor} ");
        }
        if let Some(tag) = tag {
            match tag.handle.as_str() {
                "tag:yaml.org,2002:" => out += &format!("!!{} ", tag.suffix),
                handle => out += &format!("{handle}{} ", tag.suffix),
            }
        }
        out
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.ok()?;
        let done = match event {
            Event::Scalar(text, style, anchor, tag) => {
                stream.inside.extend(span.start.line()..span.end.line());
                let plain = style == ScalarStyle::Plain;
                Written::Scalar { text: text.to_string(), plain, properties: properties(anchor, tag) }
            }
            Event::Alias(anchor) => Written::Alias(anchor),
            Event::SequenceStart(anchor, tag) => {
                open.push(Open::Sequence(Vec::new(), properties(anchor, tag)));
                continue;
            }
            Event::MappingStart(anchor, tag) => {
                open.push(Open::Mapping(Vec::new(), None, properties(anchor, tag)));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop()? {
                Open::Sequence(items, properties) => Written::Sequence { items, properties },
                Open::Mapping(entries, _, properties) => Written::Mapping { entries, properties },
            },
            _ => continue,
        };
        match open.last_mut() {
            None => stream.documents.push(done),
            Some(Open::Sequence(items, _)) => items.push(done),
            Some(Open::Mapping(entries, key, _)) => match key.take() {
                None => *key = Some(done),
                Some(key) => entries.push((key, done)),
            },
        }
    }
    stream.has_aliases = anchors;
    Some(stream)
}

impl Written {
    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        match self {
            Written::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The same with the entries of mappings in reverse, except of those that `ordered` holds, by their path.
    pub fn reversed(&self, path: &mut Vec<String>, ordered: &dyn Fn(&[String]) -> bool) -> Written {
        match self {
            Written::Sequence { items, properties } => {
                path.push("*".to_string());
                let items = items.iter().map(|i| i.reversed(path, ordered)).collect();
                path.pop();
                Written::Sequence { items, properties: properties.clone() }
            }
            Written::Mapping { entries, properties } => {
                let keep = ordered(path);
                let mut entries: Vec<(Written, Written)> = entries
                    .iter()
                    .map(|(key, value)| {
                        path.push(key.text().unwrap_or("?").to_string());
                        let value = value.reversed(path, ordered);
                        path.pop();
                        (key.clone(), value)
                    })
                    .collect();
                if !keep {
                    entries.reverse();
                }
                Written::Mapping { entries, properties: properties.clone() }
            }
            other => other.clone(),
        }
    }

    /// Returns true if every key is a scalar on one line.
    pub fn has_simple_keys(&self) -> bool {
        match self {
            Written::Sequence { items, .. } => items.iter().all(Written::has_simple_keys),
            Written::Mapping { entries, .. } => entries.iter().all(|(key, value)| {
                key.text().is_some_and(|k| !k.contains('\n') && k.len() < 500) && value.has_simple_keys()
            }),
            _ => true,
        }
    }
}

/// The documents of a stream in a layout.
pub fn write(documents: &[Written], layout: Layout) -> String {
    let mut out = String::new();
    for (i, document) in documents.iter().enumerate() {
        if i > 0 {
            out.push_str("---\n");
        }
        Writer { layout, out: &mut out }.block(document, 0, 0);
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

struct Writer<'o> {
    layout: Layout,
    out: &'o mut String,
}

impl Writer<'_> {
    /// A node in block style, behind a key, a dash or nothing; `depth` counts collections, `column` is that
    /// of the collection's lines.
    fn block(&mut self, node: &Written, depth: usize, column: usize) {
        let in_flow = depth > self.layout.flow_below;
        match node {
            Written::Sequence { items, properties } if !items.is_empty() && !in_flow => {
                if !properties.is_empty() || depth > 0 {
                    self.out.push_str(properties.trim_end());
                    self.out.push('\n');
                }
                for item in items {
                    self.out.push_str(&" ".repeat(column));
                    self.out.push('-');
                    self.child(item, depth, column);
                }
            }
            Written::Mapping { entries, properties } if !entries.is_empty() && !in_flow => {
                if !properties.is_empty() || depth > 0 {
                    self.out.push_str(properties.trim_end());
                    self.out.push('\n');
                }
                for (key, value) in entries {
                    if self.layout.blank_lines && depth == 0 {
                        self.out.push('\n');
                    }
                    self.out.push_str(&" ".repeat(column));
                    self.key(key);
                    self.out.push(':');
                    self.child(value, depth, column);
                }
            }
            other => {
                self.flow(other, Some(column));
                self.out.push('\n');
            }
        }
    }

    fn child(&mut self, node: &Written, depth: usize, column: usize) {
        let null = matches!(node, Written::Scalar { text, plain: true, properties } if text.is_empty() && properties.is_empty());
        if !null {
            self.out.push(' ');
        }
        self.block(node, depth + 1, column + self.layout.indent);
    }

    fn key(&mut self, key: &Written) {
        match key {
            Written::Scalar { text, plain: true, .. }
                if self.layout.quotes != Quotes::Double && (is_simple(text) || is_special(text)) =>
            {
                self.out.push_str(text);
            }
            other => self.flow(other, None),
        }
    }

    /// A node on one line; a string may become a literal block of this column if there is one.
    fn flow(&mut self, node: &Written, block: Option<usize>) {
        match node {
            Written::Alias(anchor) => self.out.push_str(&format!("*a{anchor}")),
            Written::Scalar { text, plain, properties } => {
                self.out.push_str(properties);
                let special = *plain && is_special(text) && !text.contains([',', '[', ']', '{', '}', '\n']);
                if special {
                    let null = text.is_empty() && block.is_none();
                    self.out.push_str(if null { "null" } else { text });
                } else {
                    self.string(text, block);
                }
            }
            Written::Sequence { items, properties } => {
                self.out.push_str(properties);
                self.out.push('[');
                for (i, item) in items.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.flow(item, None);
                }
                self.out.push(']');
            }
            Written::Mapping { entries, properties } => {
                self.out.push_str(properties);
                self.out.push('{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { "" });
                    self.key(key);
                    self.out.push_str(": ");
                    self.flow(value, None);
                }
                self.out.push('}');
            }
        }
    }

    fn string(&mut self, text: &str, block: Option<usize>) {
        let printable = text.chars().all(|c| !c.is_control() || c == '\n');
        let literal = printable && text.trim() == text.trim_end_matches('\n') && text.contains('\n');
        match (self.layout.quotes, block) {
            (Quotes::Plain, Some(column)) if literal && !text.ends_with("\n\n") => {
                self.out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
                for line in text.trim_end_matches('\n').split('\n') {
                    self.out.push('\n');
                    if !line.is_empty() {
                        self.out.push_str(&" ".repeat(column.max(1)));
                        self.out.push_str(line);
                    }
                }
            }
            (Quotes::Plain, _) if is_simple(text) => self.out.push_str(text),
            (Quotes::Single, _) if printable && !text.contains('\n') => {
                self.out.push_str(&format!("'{}'", text.replace('\'', "''")));
            }
            _ => self.out.push_str(&serde_json::Value::from(text).to_string()),
        }
    }
}

/// Returns true if a plain scalar may be something else than a string to some reader of YAML.
fn is_special(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<"].contains(&lower.as_str())
        || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'))
}

/// Returns true if a string may stand plain anywhere.
fn is_simple(text: &str) -> bool {
    !is_special(text)
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/'))
}
