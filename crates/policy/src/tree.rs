//! A policy as a tree of tables, whoever wrote it: the text of a file, or a block of a program.
//!
//! Invariant: every part has its place, so a finding about it can say where it is.

use diagnostics::{FileId, Span};
use std::fmt::Write as _;
use toml::de::{DeTable, DeValue};

/// A part with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Spanned<T> {
    value: T,
    span: Span,
}

impl<T> Spanned<T> {
    /// A part at a place.
    pub fn new(span: Span, value: T) -> Spanned<T> {
        Spanned { value, span }
    }

    /// The part.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Its place.
    pub fn span(&self) -> Span {
        self.span
    }
}

/// A value of a table.
pub type Value = Spanned<Node>;

/// Kinds of values.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A text.
    Text(String),
    /// A whole number; `None` if it is negative or too large to count with.
    Whole(Option<u64>),
    /// A truth value.
    Bool(bool),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(Table),
    /// A value that no key takes, by its kind: a fraction or a date.
    Other(&'static str),
}

/// Keys with their values, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<(Spanned<String>, Value)>);

impl Node {
    /// The kind of value, for messages.
    pub fn type_str(&self) -> &'static str {
        match self {
            Node::Text(_) => "string",
            Node::Whole(_) => "integer",
            Node::Bool(_) => "boolean",
            Node::List(_) => "array",
            Node::Table(_) => "table",
            Node::Other(kind) => kind,
        }
    }

    fn of_toml(file: FileId, value: &DeValue<'_>) -> Node {
        // The parser of TOML bounds how deep values nest.
        match value {
            DeValue::String(text) => Node::Text(text.to_string()),
            DeValue::Integer(n) => Node::Whole(u64::from_str_radix(n.as_str(), n.radix()).ok()),
            DeValue::Boolean(b) => Node::Bool(*b),
            DeValue::Array(items) => Node::List(
                items
                    .iter()
                    .map(|v| Spanned::new(place(file, v.span()), Node::of_toml(file, v.get_ref())))
                    .collect(),
            ),
            DeValue::Table(table) => Node::Table(Table::of_toml(file, table)),
            other => Node::Other(other.type_str()),
        }
    }

    /// Writes the value on one line of TOML.
    fn write(&self, out: &mut String) {
        match self {
            Node::Text(text) => write_text(text, out),
            Node::Whole(n) => out.push_str(&n.map_or_else(|| "-1".into(), |n| n.to_string())),
            Node::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Node::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    item.get_ref().write(out);
                }
                out.push(']');
            }
            Node::Table(table) => {
                out.push('{');
                for (i, (key, value)) in table.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { " " });
                    write_text(key.get_ref(), out);
                    out.push_str(" = ");
                    value.get_ref().write(out);
                }
                out.push_str(" }");
            }
            // No value of a block is of such a kind.
            Node::Other(_) => out.push_str("\"\""),
        }
    }
}

fn place(file: FileId, range: std::ops::Range<usize>) -> Span {
    Span { file, start: range.start as u32, end: range.end as u32 }
}

/// Writes a basic string of TOML.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => {
                // Writing to a `String` can't fail.
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

impl Table {
    /// The table of a TOML text.
    pub(super) fn of_toml(file: FileId, table: &DeTable<'_>) -> Table {
        let entry = |(key, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
            let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
            (
                Spanned::new(place(file, key.span()), key.get_ref().to_string()),
                Spanned::new(place(file, value.span()), Node::of_toml(file, value.get_ref())),
            )
        };
        Table(table.iter().map(entry).collect())
    }

    /// The keys with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Spanned<String>, &Value)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(k, _)| k.get_ref() == key).map(|(_, v)| v)
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if it has no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a key with its value. Returns the place of the key that is there already, if there is one; then
    /// nothing is added.
    pub fn insert(&mut self, key: Spanned<String>, value: Value) -> Option<Span> {
        match self.0.iter().find(|(k, _)| k.get_ref() == key.get_ref()) {
            Some((old, _)) => Some(old.span()),
            None => {
                self.0.push((key, value));
                None
            }
        }
    }

    /// The table that is the value of a key; it is added if it is not there. `None` if the value is no table.
    pub fn table_at(&mut self, key: &Spanned<String>) -> Option<&mut Table> {
        match self.node_at(key, Node::Table(Table::default())) {
            Node::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The list that is the value of a key; it is added if it is not there. `None` if the value is no list.
    pub fn list_at(&mut self, key: &Spanned<String>) -> Option<&mut Vec<Value>> {
        match self.node_at(key, Node::List(Vec::new())) {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// The value of a key; if it is not there, this one is added.
    fn node_at(&mut self, key: &Spanned<String>, empty: Node) -> &mut Node {
        let at = self.0.iter().position(|(k, _)| k.get_ref() == key.get_ref()).unwrap_or_else(|| {
            self.0.push((key.clone(), Spanned::new(key.span(), empty)));
            self.0.len() - 1
        });
        &mut self.0[at].1.value
    }

    /// The keys with their values, each on a line of TOML.
    pub(super) fn to_toml_lines(&self) -> String {
        let mut out = String::new();
        for (key, value) in self.iter() {
            write_text(key.get_ref(), &mut out);
            out.push_str(" = ");
            value.get_ref().write(&mut out);
            out.push('\n');
        }
        out
    }
}
