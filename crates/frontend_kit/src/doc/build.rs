//! Building the node tree, shared by both readers. Never recurses.

use super::node::{Data, Document, Include, NodeId, Raw, Text};
use super::{Format, Limits, clamp, codes};
use diagnostics::{Diagnostic, FileId, Span};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// A mapping with more entries than this gets an index.
const SMALL: usize = 16;
/// Links from mappings to the mappings they merge, over the whole file: a chain of merges would
/// otherwise need space quadratic in its length.
const MAX_MERGES: usize = 100_000;
/// Duplicate keys reported one by one.
const MAX_DUPLICATES: usize = 20;

/// Reason why building stopped; the reader stops, too.
#[derive(Debug)]
pub(super) struct Stop;

struct Frame {
    node: NodeId,
    /// Index of its first child on the stack.
    base: usize,
    mapping: bool,
}

pub(super) struct Builder<'l> {
    limits: &'l Limits,
    pub diagnostics: Vec<Diagnostic>,
    /// True if `<<: null` is ignored and not reported.
    pub ignore_null_merges: bool,
    file: FileId,
    source: Arc<str>,
    format: Format,
    nodes: Vec<Raw>,
    children: Vec<NodeId>,
    merges: HashMap<NodeId, Box<[NodeId]>>,
    sorted: HashMap<NodeId, Box<[u32]>>,
    tags: Vec<(NodeId, Box<str>)>,
    frames: Vec<Frame>,
    /// Finished children of the open frames.
    stack: Vec<NodeId>,
    /// Nodes of the documents already finished.
    finished_nodes: usize,
    merge_links: usize,
    merges_full: bool,
    duplicates: usize,
    /// True if an unquoted placeholder was reported.
    placeholder: bool,
}

impl<'l> Builder<'l> {
    pub fn new(file: FileId, source: &Arc<str>, format: Format, limits: &'l Limits) -> Self {
        Builder {
            limits,
            diagnostics: Vec::new(),
            ignore_null_merges: false,
            file,
            source: source.clone(),
            format,
            nodes: Vec::new(),
            children: Vec::new(),
            merges: HashMap::new(),
            sorted: HashMap::new(),
            tags: Vec::new(),
            frames: Vec::new(),
            stack: Vec::new(),
            finished_nodes: 0,
            merge_links: 0,
            merges_full: false,
            duplicates: 0,
            placeholder: false,
        }
    }

    pub fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: clamp(start), end: clamp(end.max(start)) }
    }

    fn alloc(&mut self, data: Data, start: usize, end: usize) -> Result<NodeId, Stop> {
        if self.finished_nodes + self.nodes.len() >= self.limits.nodes {
            let d = Diagnostic::error(
                codes::LIMIT,
                format!("the file has more than {} nodes", self.limits.nodes),
                self.span(start, start),
            );
            self.diagnostics.push(d);
            return Err(Stop);
        }
        let id = NodeId(clamp(self.nodes.len()));
        self.nodes.push(Raw { data, start: clamp(start), end: clamp(end.max(start)) });
        Ok(id)
    }

    /// A finished node without children.
    pub fn leaf(&mut self, data: Data, start: usize, end: usize) -> Result<NodeId, Stop> {
        let id = self.alloc(data, start, end)?;
        self.stack.push(id);
        Ok(id)
    }

    pub fn tag(&mut self, id: NodeId, tag: &str) {
        self.tags.push((id, tag.into()));
    }

    /// Returns true if the innermost open node is a mapping that waits for the value of a key.
    pub fn awaits_value(&self) -> bool {
        self.frames.last().is_some_and(|f| f.mapping && (self.stack.len() - f.base) % 2 == 1)
    }

    /// End of the node that was finished last, if the innermost open node has one.
    pub fn last_end(&self) -> Option<usize> {
        let base = self.frames.last().map_or(0, |f| f.base);
        let last = self.stack.get(base..)?.last()?;
        Some(self.nodes.get(last.0 as usize)?.end as usize)
    }

    pub fn too_deep(&mut self, start: usize) -> Stop {
        let d = Diagnostic::error(
            codes::LIMIT,
            format!("nested more than {} levels deep", self.limits.depth),
            self.span(start, start + 1),
        )
        .help("no configuration needs this: the rest of the file is not read");
        self.diagnostics.push(d);
        Stop
    }

    pub fn open(&mut self, mapping: bool, start: usize) -> Result<NodeId, Stop> {
        if self.frames.len() >= self.limits.depth {
            return Err(self.too_deep(start));
        }
        let data = if mapping { Data::Mapping(0, 0) } else { Data::Sequence(0, 0) };
        let node = self.alloc(data, start, start)?;
        self.frames.push(Frame { node, base: self.stack.len(), mapping });
        Ok(node)
    }

    /// Closes the innermost open node. `end` is where its closing bracket ends; without one it ends
    /// with its last child.
    pub fn close(&mut self, end: Option<usize>) -> NodeId {
        // INVARIANT: readers close only what they opened; both keep their own count by grammar.
        let Some(frame) = self.frames.pop() else { return NodeId(0) };
        let mut kids: Vec<NodeId> = self.stack.drain(frame.base.min(self.stack.len())..).collect();
        let start = self.nodes[frame.node.0 as usize].start;
        let last = kids.last().map_or(start, |k| self.nodes[k.0 as usize].end);
        let end = end.map_or(last, clamp).max(start);
        if frame.mapping
            && self.format == Format::Yaml
            && end - start >= 4
            && self.is_placeholder(start, end, &kids)
        {
            self.nodes[frame.node.0 as usize] =
                Raw { data: Data::String(Text::Slice(start, end)), start, end };
            if !std::mem::replace(&mut self.placeholder, true) {
                let d = Diagnostic::info(
                    codes::TEMPLATE,
                    "a placeholder without quotes is read as text",
                    self.span(start as usize, end as usize),
                )
                .help("put it into quotes, or check the rendered file");
                self.diagnostics.push(d);
            }
            self.stack.push(frame.node);
            return frame.node;
        }
        if frame.mapping {
            if kids.len() % 2 == 1 {
                // Only after an error inside a mapping; such a document is dropped.
                kids.pop();
            }
            if self.format == Format::Yaml {
                self.split_merges(frame.node, &mut kids);
            }
            self.drop_duplicates(frame.node, &mut kids);
        }
        let first = clamp(self.children.len());
        let len = clamp(kids.len());
        self.children.append(&mut kids);
        let data = if frame.mapping { Data::Mapping(first, len) } else { Data::Sequence(first, len) };
        self.nodes[frame.node.0 as usize] = Raw { data, start, end };
        self.stack.push(frame.node);
        frame.node
    }

    /// `key: {{ value }}` without quotes is, to YAML, a mapping with a mapping for a key. Nobody
    /// means that.
    fn is_placeholder(&self, start: u32, end: u32, kids: &[NodeId]) -> bool {
        let text = self.source.get(start as usize..end as usize).unwrap_or("");
        kids.len() == 2
            && text.starts_with("{{")
            && text.ends_with("}}")
            && matches!(self.nodes[kids[0].0 as usize].data, Data::Mapping(..) | Data::String(_))
            && matches!(self.nodes[kids[1].0 as usize].data, Data::Null)
    }

    fn key(&self, id: NodeId) -> Option<&str> {
        let raw = self.nodes.get(id.0 as usize)?;
        let raw = match raw.data {
            Data::Alias(target) => self.nodes.get(target.0 as usize)?,
            _ => raw,
        };
        match &raw.data {
            Data::String(t) | Data::Number(t) | Data::Bool(_, t) => Some(match t {
                Text::Slice(a, b) => self.source.get(*a as usize..*b as usize).unwrap_or(""),
                Text::Owned(s) => s,
            }),
            _ => None,
        }
    }

    fn node_span(&self, id: NodeId) -> Span {
        let raw = &self.nodes[id.0 as usize];
        Span { file: self.file, start: raw.start, end: raw.end }
    }

    /// Takes the `<<` entries out of a mapping's children.
    fn split_merges(&mut self, node: NodeId, kids: &mut Vec<NodeId>) {
        // A quoted "<<" is an ordinary key.
        let is_merge = |b: &Self, key: NodeId| {
            b.key(key) == Some("<<") && b.nodes[key.0 as usize].end - b.nodes[key.0 as usize].start == 2
        };
        if !kids.chunks_exact(2).any(|p| is_merge(self, p[0])) {
            return;
        }
        let mut rest = Vec::with_capacity(kids.len());
        let mut sources = Vec::new();
        for pair in std::mem::take(kids).chunks_exact(2) {
            if !is_merge(self, pair[0]) {
                rest.extend_from_slice(pair);
                continue;
            }
            let value = self.resolve(pair[1]);
            match self.nodes[value.0 as usize].data {
                Data::Mapping(..) => sources.push(value),
                Data::Sequence(first, len) => {
                    for i in first..first + len {
                        let source = self.resolve(self.children[i as usize]);
                        if matches!(self.nodes[source.0 as usize].data, Data::Mapping(..)) {
                            sources.push(source);
                        } else {
                            self.bad_merge(self.children[i as usize]);
                        }
                    }
                }
                Data::Null if self.ignore_null_merges => {}
                _ => self.bad_merge(pair[1]),
            }
        }
        *kids = rest;
        let mut seen = HashSet::new();
        let mut all = Vec::new();
        'sources: for source in sources {
            let inherited = self.merges.get(&source).map_or(&[][..], |m| &**m);
            for m in std::iter::once(source).chain(inherited.iter().copied()) {
                if self.merge_links + all.len() >= MAX_MERGES {
                    if !self.merges_full {
                        self.merges_full = true;
                        let d = Diagnostic::error(
                            codes::LIMIT,
                            format!("the merge keys of this file need more than {MAX_MERGES} look-ups"),
                            self.node_span(node),
                        );
                        self.diagnostics.push(d);
                    }
                    break 'sources;
                }
                if seen.insert(m) {
                    all.push(m);
                }
            }
        }
        self.merge_links += all.len();
        self.merges.insert(node, all.into());
    }

    fn bad_merge(&mut self, value: NodeId) {
        // What a tag represents may well be a mapping.
        if self.tags.binary_search_by_key(&value, |(id, _)| *id).is_ok() {
            return;
        }
        let d = Diagnostic::warn(
            codes::ALIAS,
            "a merge key takes a mapping, or a list of mappings",
            self.node_span(value),
        )
        .help("write `<<: *name`, where `&name` marks a mapping");
        self.diagnostics.push(d);
    }

    pub fn resolve(&self, id: NodeId) -> NodeId {
        match self.nodes[id.0 as usize].data {
            Data::Alias(target) => target,
            _ => id,
        }
    }

    /// Of several entries with one key the last counts, as in every reader that does not refuse the
    /// file; the others are reported and left out.
    fn drop_duplicates(&mut self, node: NodeId, kids: &mut Vec<NodeId>) {
        let n = kids.len() / 2;
        let mut overridden: Vec<(usize, usize)> = Vec::new();
        let large = n > SMALL;
        let mut order: Vec<u32> = Vec::new();
        if large {
            order = (0..clamp(n)).filter(|i| self.key(kids[2 * *i as usize]).is_some()).collect();
            order.sort_by_key(|i| self.key(kids[2 * *i as usize]));
            for pair in order.windows(2) {
                let (a, b) = (pair[0] as usize, pair[1] as usize);
                if self.key(kids[2 * a]) == self.key(kids[2 * b]) {
                    overridden.push((a, b));
                }
            }
        } else {
            for a in 0..n {
                let Some(key) = self.key(kids[2 * a]) else { continue };
                if let Some(b) = (a + 1..n).find(|b| self.key(kids[2 * b]) == Some(key)) {
                    overridden.push((a, b));
                }
            }
        }
        if !overridden.is_empty() {
            // The last entry of each key, with the first and the number of them.
            let mut last: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
            overridden.sort_unstable();
            for (a, b) in &overridden {
                let (first, count) = last.remove(a).unwrap_or((*a, 1));
                last.insert(*b, (first, count + 1));
            }
            for (b, (a, count)) in last {
                self.duplicates += 1;
                if self.duplicates > MAX_DUPLICATES {
                    break;
                }
                let (first, used) = (self.node_span(kids[2 * a]), self.node_span(kids[2 * b]));
                let key: String = self.key(kids[2 * a]).unwrap_or("").chars().take(60).collect();
                let times = if count > 2 { format!(" is given {count} times") } else { String::new() };
                let d = Diagnostic::warn(
                    codes::DUPLICATE_KEY,
                    format!("duplicate key `{key}`{times}; only this one is used"),
                    used,
                )
                .remark(first, "first given here")
                .help("remove or rename one of them: some readers refuse the file, others take the last");
                self.diagnostics.push(d);
            }
            let dead: HashSet<usize> = overridden.iter().map(|(a, _)| *a).collect();
            let kept: Vec<NodeId> = kids
                .chunks_exact(2)
                .enumerate()
                .filter(|(i, _)| !dead.contains(i))
                .flat_map(|(_, p)| p.iter().copied())
                .collect();
            *kids = kept;
            if large {
                order = (0..clamp(kids.len() / 2))
                    .filter(|i| self.key(kids[2 * *i as usize]).is_some())
                    .collect();
                order.sort_by_key(|i| self.key(kids[2 * *i as usize]));
            }
        }
        if large {
            self.sorted.insert(node, order.into());
        }
    }

    /// The document whose outermost node was just finished; `None` if there is none.
    pub fn finish(&mut self, includes: Vec<Include>) -> Option<Document> {
        let root = self.stack.pop();
        self.stack.clear();
        self.frames.clear();
        self.finished_nodes += self.nodes.len();
        let document = Document {
            file: self.file,
            source: self.source.clone(),
            format: self.format,
            nodes: std::mem::take(&mut self.nodes),
            children: std::mem::take(&mut self.children),
            root: root?,
            merges: std::mem::take(&mut self.merges),
            sorted: std::mem::take(&mut self.sorted),
            tags: std::mem::take(&mut self.tags),
            includes,
        };
        Some(document)
    }
}
