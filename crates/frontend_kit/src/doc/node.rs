//! The tree of nodes and the view through which it is read.

use super::{Format, clamp, number};
use diagnostics::{FileId, Span};
use std::collections::HashMap;
use std::sync::Arc;

/// A node of one [`Document`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(super) u32);

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Null, or nothing after the colon.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// Text.
    String,
    /// A list.
    Sequence,
    /// Keys with values.
    Mapping,
}

impl NodeKind {
    /// The name used in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            NodeKind::Null => "null",
            NodeKind::Bool => "a boolean",
            NodeKind::Number => "a number",
            NodeKind::String => "a string",
            NodeKind::Sequence => "a list",
            NodeKind::Mapping => "a mapping",
        }
    }
}

/// Text of a scalar: a range of the source where it stands there unchanged.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Slice(u32, u32),
    Owned(Box<str>),
}

#[derive(Clone, Debug)]
pub(super) enum Data {
    Null,
    Bool(bool, Text),
    Number(Text),
    String(Text),
    /// A range of `Document::children`.
    Sequence(u32, u32),
    /// A range of `Document::children`: key, value, key, value, …
    Mapping(u32, u32),
    Alias(NodeId),
}

#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub data: Data,
    pub start: u32,
    pub end: u32,
}

/// A file that a document wants inserted (`!include path` on a line of its own, or `key: !include
/// path`). Not read here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include {
    /// The path as written.
    pub path: String,
    /// Span of its name.
    pub span: Span,
}

/// One YAML document or one JSON value, immutable.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) file: FileId,
    pub(super) source: Arc<str>,
    pub(super) format: Format,
    pub(super) nodes: Vec<Raw>,
    pub(super) children: Vec<NodeId>,
    pub(super) root: NodeId,
    /// For a mapping with merge keys: the mappings whose keys it takes over, strongest first, each once.
    pub(super) merges: HashMap<NodeId, Box<[NodeId]>>,
    /// For a large mapping: its entries' numbers in order of their keys.
    pub(super) sorted: HashMap<NodeId, Box<[u32]>>,
    /// Tags other than YAML's own, in order of node.
    pub(super) tags: Vec<(NodeId, Box<str>)>,
    pub(super) includes: Vec<Include>,
}

impl Document {
    /// The outermost node.
    pub fn root(&self) -> Node<'_> {
        self.node(self.root)
    }

    /// The file it was read from.
    pub fn file(&self) -> FileId {
        self.file
    }

    /// The text it was read from.
    pub fn source(&self) -> &Arc<str> {
        &self.source
    }

    /// Returns the format that it was read in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Files that it wants inserted at its top level.
    pub fn includes(&self) -> &[Include] {
        &self.includes
    }

    /// Number of nodes; every walk that visits each node once is bounded by it.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Never: a document has a root.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn node(&self, site: NodeId) -> Node<'_> {
        // INVARIANT: the builder resolves an alias to a node that is no alias.
        let id = match self.raw(site).data {
            Data::Alias(target) => target,
            _ => site,
        };
        Node { doc: self, id, site }
    }

    pub(super) fn raw(&self, id: NodeId) -> &Raw {
        // INVARIANT: ids are made by the builder of this document, and nodes are never removed.
        &self.nodes[id.0 as usize]
    }

    /// Returns true if [`Node::text`] of a node is this text. Lengths are compared first: nearly all keys
    /// differ in them already.
    fn reads(&self, id: NodeId, text: &str) -> bool {
        match &self.raw(id).data {
            Data::String(t) | Data::Number(t) | Data::Bool(_, t) => match t {
                Text::Slice(a, b) => {
                    (*b as usize).checked_sub(*a as usize) == Some(text.len())
                        && self.source.as_bytes().get(*a as usize..*b as usize) == Some(text.as_bytes())
                }
                Text::Owned(s) => **s == *text,
            },
            _ => false,
        }
    }

    pub(super) fn text<'a>(&'a self, text: &'a Text) -> &'a str {
        match text {
            Text::Slice(a, b) => self.source.get(*a as usize..*b as usize).unwrap_or(""),
            Text::Owned(s) => s,
        }
    }
}

/// A node as it is read: aliases are followed, merge keys looked through.
#[derive(Clone, Copy, Debug)]
pub struct Node<'d> {
    doc: &'d Document,
    /// The node itself.
    id: NodeId,
    /// Node at the place of use: the alias, if it was reached through one.
    site: NodeId,
}

/// A key with its value.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'d> {
    /// The key.
    pub key: Node<'d>,
    /// The value.
    pub value: Node<'d>,
    /// True if it was merged in through a merge key.
    pub merged: bool,
}

impl Entry<'_> {
    /// The key's text, empty if the key is no scalar.
    pub fn name(&self) -> &str {
        self.key.text().unwrap_or("")
    }

    /// Key and value together.
    pub fn span(&self) -> Span {
        self.key.span().to(self.value.span())
    }
}

impl<'d> Node<'d> {
    /// The document it belongs to.
    pub fn document(&self) -> &'d Document {
        self.doc
    }

    /// The identity of the node behind aliases, to recognize one that was seen before.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns its kind.
    pub fn kind(&self) -> NodeKind {
        match self.doc.raw(self.id).data {
            Data::Null | Data::Alias(_) => NodeKind::Null,
            Data::Bool(..) => NodeKind::Bool,
            Data::Number(_) => NodeKind::Number,
            Data::String(_) => NodeKind::String,
            Data::Sequence(..) => NodeKind::Sequence,
            Data::Mapping(..) => NodeKind::Mapping,
        }
    }

    /// Returns its span: that of the alias, if it was reached through one.
    pub fn span(&self) -> Span {
        let raw = self.doc.raw(self.site);
        Span { file: self.doc.file, start: raw.start, end: raw.end }
    }

    /// Returns the span of its content.
    pub fn definition(&self) -> Span {
        let raw = self.doc.raw(self.id);
        Span { file: self.doc.file, start: raw.start, end: raw.end }
    }

    /// Returns true if it is null or empty.
    pub fn is_null(&self) -> bool {
        self.kind() == NodeKind::Null
    }

    /// Returns true if it is a list.
    pub fn is_sequence(&self) -> bool {
        self.kind() == NodeKind::Sequence
    }

    /// Returns true if it is a mapping.
    pub fn is_mapping(&self) -> bool {
        self.kind() == NodeKind::Mapping
    }

    /// The text of a string. Numbers and booleans are not strings: see [`Node::text`].
    pub fn as_str(&self) -> Option<&'d str> {
        match &self.doc.raw(self.id).data {
            Data::String(t) => Some(self.doc.text(t)),
            _ => None,
        }
    }

    /// The text of any scalar but null, as it was written.
    pub fn text(&self) -> Option<&'d str> {
        match &self.doc.raw(self.id).data {
            Data::String(t) | Data::Number(t) | Data::Bool(_, t) => Some(self.doc.text(t)),
            _ => None,
        }
    }

    /// A boolean; in YAML also `yes`, `no`, `on` and `off` without quotes, as version 1.1 has it.
    pub fn as_bool(&self) -> Option<bool> {
        match &self.doc.raw(self.id).data {
            Data::Bool(b, _) => Some(*b),
            // Quoted text ends before its quote.
            Data::String(Text::Slice(a, b))
                if self.doc.format == Format::Yaml && *b == self.doc.raw(self.id).end && b - a <= 3 =>
            {
                match self.as_str()? {
                    "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
                    "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The text of a number, exactly as written.
    pub fn number(&self) -> Option<&'d str> {
        match &self.doc.raw(self.id).data {
            Data::Number(t) => Some(self.doc.text(t)),
            _ => None,
        }
    }

    /// A whole number from zero to `u64::MAX`: `20`, `20.0` and `2e1` alike.
    pub fn as_u64(&self) -> Option<u64> {
        number::decimal(self.number()?)?.as_u64()
    }

    /// A number, exactly; `None` also for infinities, NaN, and exponents beyond all use.
    pub fn as_num(&self) -> Option<core_ir::Num> {
        number::decimal(self.number()?)?.to_num()
    }

    /// The tag, unless it is one of YAML's own: `!include`.
    pub fn tag(&self) -> Option<&'d str> {
        let i = self.doc.tags.binary_search_by_key(&self.id, |(id, _)| *id).ok()?;
        self.doc.tags.get(i).map(|(_, t)| &**t)
    }

    /// The elements of a list; none of anything else.
    pub fn items(&self) -> impl ExactSizeIterator<Item = Node<'d>> + DoubleEndedIterator + Clone + use<'d> {
        let range = match self.doc.raw(self.id).data {
            Data::Sequence(first, len) => first as usize..(first + len) as usize,
            _ => 0..0,
        };
        let doc = self.doc;
        doc.children[range].iter().map(move |id| doc.node(*id))
    }

    /// The entries of a mapping in the order they are written, then those taken over by merge keys
    /// that are not written; each key once. None of anything else.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'d>> + use<'d> {
        let this = Node { site: self.id, ..*self };
        let merged = self.doc.merges.get(&self.id).map_or(&[][..], |m| &**m);
        let doc = self.doc;
        let mut seen: std::collections::HashSet<&'d str> = std::collections::HashSet::new();
        if !merged.is_empty() {
            seen.extend(this.own_entries().filter_map(|e| e.key.text()));
        }
        this.own_entries().chain(
            merged
                .iter()
                .flat_map(move |m| doc.node(*m).own_entries().map(|e| Entry { merged: true, ..e }))
                .filter(move |e| e.key.text().is_none_or(|k| seen.insert(k))),
        )
    }

    fn own_entries(&self) -> impl Iterator<Item = Entry<'d>> + use<'d> {
        let range = match self.doc.raw(self.id).data {
            Data::Mapping(first, len) => first as usize..(first + len) as usize,
            _ => 0..0,
        };
        let doc = self.doc;
        doc.children[range].chunks_exact(2).map(move |pair| Entry {
            key: doc.node(pair[0]),
            value: doc.node(pair[1]),
            merged: false,
        })
    }

    /// The entry of a key.
    pub fn entry(&self, key: &str) -> Option<Entry<'d>> {
        if let Some(entry) = self.own_entry(key) {
            return Some(entry);
        }
        let merged = self.doc.merges.get(&self.id)?;
        merged.iter().find_map(|m| self.doc.node(*m).own_entry(key)).map(|e| Entry { merged: true, ..e })
    }

    fn own_entry(&self, key: &str) -> Option<Entry<'d>> {
        if let Some(sorted) = self.doc.sorted.get(&self.id) {
            let Data::Mapping(first, _) = self.doc.raw(self.id).data else { return None };
            let pair = |n: u32| {
                let at = (first + 2 * n) as usize;
                (self.doc.children[at], self.doc.children[at + 1])
            };
            let key_of = |n: u32| self.doc.node(pair(n).0).text().unwrap_or("");
            let i = sorted.partition_point(|n| key_of(*n) < key);
            let n = *sorted.get(i)?;
            if self.doc.node(pair(n).0).text() != Some(key) {
                return None;
            }
            let (key, value) = pair(n);
            return Some(Entry { key: self.doc.node(key), value: self.doc.node(value), merged: false });
        }
        // Every front end asks for the keys that it knows a file by, so this reads no more of an entry than
        // its key.
        let Data::Mapping(first, len) = self.doc.raw(self.id).data else { return None };
        let entries = self.doc.children[first as usize..(first + len) as usize].chunks_exact(2);
        entries
            .map(|pair| (self.doc.node(pair[0]), pair[1]))
            .find(|(k, _)| self.doc.reads(k.id, key))
            .map(|(key, value)| Entry { key, value: self.doc.node(value), merged: false })
    }

    /// The value of a key. `None` for a missing key, and for anything that is no mapping.
    pub fn get(&self, key: &str) -> Option<Node<'d>> {
        self.entry(key).map(|e| e.value)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<Node<'d>> {
        path.iter().try_fold(*self, |node, key| node.get(key))
    }

    /// Every text and number here and below with the key it stands under (of an item, the key of its list;
    /// `""` if there is none), each once however many aliases it has. Linear in the size of the document.
    pub fn texts(&self) -> impl Iterator<Item = (&'d str, Node<'d>)> + use<'d> {
        let doc = self.doc;
        let mut seen = vec![false; doc.nodes.len()];
        let mut todo = vec![("", self.site)];
        std::iter::from_fn(move || {
            while let Some((key, site)) = todo.pop() {
                let node = doc.node(site);
                if seen.get_mut(node.id.0 as usize).is_none_or(|mark| std::mem::replace(mark, true)) {
                    continue;
                }
                match doc.raw(node.id).data {
                    Data::Sequence(first, len) => {
                        let items = &doc.children[first as usize..(first + len) as usize];
                        todo.extend(items.iter().map(|item| (key, *item)));
                    }
                    Data::Mapping(first, len) => {
                        let entries = doc.children[first as usize..(first + len) as usize].chunks_exact(2);
                        todo.extend(entries.map(|e| (doc.node(e[0]).text().unwrap_or(""), e[1])));
                    }
                    _ if node.text().is_some() => return Some((key, node)),
                    _ => {}
                }
            }
            None
        })
    }

    /// This node and everything below, each node once however often it is aliased, parents first.
    /// Linear in the size of the document.
    pub fn descendants(&self) -> impl Iterator<Item = Node<'d>> + use<'d> {
        let doc = self.doc;
        let mut seen = vec![false; doc.nodes.len()];
        let mut todo = vec![self.site];
        std::iter::from_fn(move || {
            while let Some(site) = todo.pop() {
                let node = doc.node(site);
                let Some(mark) = seen.get_mut(node.id.0 as usize) else { continue };
                if std::mem::replace(mark, true) {
                    continue;
                }
                let (Data::Sequence(first, len) | Data::Mapping(first, len)) = doc.raw(node.id).data else {
                    return Some(node);
                };
                todo.extend(doc.children[first as usize..(first + len) as usize].iter().rev());
                todo.extend(doc.merges.get(&node.id).into_iter().flat_map(|m| m.iter()));
                return Some(node);
            }
            None
        })
    }

    /// The place just after this node: where something that is missing would have to be added.
    pub fn end(&self) -> Span {
        let span = self.span();
        Span { start: span.end, ..span }
    }

    /// The first line of the node, for a diagnostic about the whole of a long mapping or list.
    pub fn head(&self) -> Span {
        let span = self.span();
        let text = self.doc.source.get(span.start as usize..span.end as usize).unwrap_or("");
        let first = text.find(['\n', '\r']).unwrap_or(text.len());
        Span { end: span.start.saturating_add(clamp(text[..first].trim_end().len())), ..span }
    }
}
