//! YAML through `saphyr-parser`'s events.

use super::build::{Builder, Stop};
use super::node::{Data, Document, Include, NodeId, Text};
use super::{Format, Limits, Loaded, clamp, codes, number};
use diagnostics::{Diagnostic, FileId, Span};
use saphyr_parser::{Event, Input, Marker, Parser, ScalarStyle, ScanError, Tag};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

const BOM: &str = "\u{feff}";

pub(super) fn load(file: FileId, source: &Arc<str>, limits: &Limits) -> Loaded {
    let base = if source.starts_with(BOM) { BOM.len() } else { 0 };
    let mut reader = YamlReader::new(file, source, &source[base..], base, limits);
    let Some(error) = reader.read(&[]) else { return reader.into_loaded() };
    // Other readers do not mind where the lines of a quoted text begin, and where a bracket closes.
    for repair in [Repaired::join_lines as Repair<'_>, Repaired::move_bracket] {
        if let Some(loaded) = read_repaired(file, source, base, error.clone(), limits, repair) {
            return loaded;
        }
    }
    // Some frameworks paste files into one another by `!include path` on a line of its own before
    // they parse. With such lines blanked out the rest is often good YAML.
    let (masked, includes) = mask_includes(file, &source[base..], base);
    if !includes.is_empty()
        && let Some(mut loaded) = read_around_includes(file, source, &masked, base, &includes, limits)
    {
        let reports = includes.iter().take(MAX_INCLUDES).map(|i| not_included(&i.path, i.span));
        loaded.diagnostics.extend(reports);
        return loaded;
    }
    reader.fail(error);
    reader.into_loaded()
}

/// Included files reported one by one.
const MAX_INCLUDES: usize = 20;

fn not_included(path: &str, span: Span) -> Diagnostic {
    let path: String = path.chars().take(100).collect();
    Diagnostic::info(codes::INCLUDE, format!("`{path}` is not read: `!include` is not part of YAML"), span)
        .help("what the file defines is unknown here")
}

/// Reads a text whose include lines are blanked out. An alias without an anchor refers to an included
/// file and reads as null: a document in front of the text, which is dropped, gives every name an
/// anchor.
fn read_around_includes(
    file: FileId,
    source: &Arc<str>,
    masked: &str,
    base: usize,
    includes: &[Include],
    limits: &Limits,
) -> Option<Loaded> {
    let mut text = String::from("---\n");
    for name in alias_names(masked) {
        text.push_str(&format!("- &{name} ~\n"));
    }
    text.push_str("---\n");
    let front = text.len();
    text.push_str(masked);
    let mut reader = YamlReader::new(file, source, masked, base, limits);
    reader.text = &text;
    reader.front = Some(front);
    reader.positions = Positions::new(&text);
    reader.builder.ignore_null_merges = true;
    reader.read(includes).is_none().then(|| reader.into_loaded())
}

fn is_about_quotes(error: &ScanError) -> bool {
    error.info().contains("indentation in quoted scalar")
}

/// Repairs of a text at most: it is read again after each.
const MAX_REPAIRS: usize = 30;

/// A text that is repaired at the places of its errors. It keeps its length.
struct Repaired<'s> {
    original: &'s str,
    base: usize,
    body: String,
    /// Texts of the quoted scalars that were changed, by their places in the source.
    quoted: Vec<(usize, String)>,
}

/// Repairs the place of an error; `None` if something else is wrong there.
type Repair<'s> = fn(&mut Repaired<'s>, &ScanError, usize) -> Option<()>;

impl Repaired<'_> {
    /// Makes one line of a quoted scalar whose later lines are indented less than they should be.
    fn join_lines(&mut self, error: &ScanError, at: usize) -> Option<()> {
        let (end, text) = is_about_quotes(error).then(|| unfolded(self.original, at)).flatten()?;
        let joined = |c: char| if matches!(c, '\n' | '\r') { ' ' } else { c };
        let line: String = self.body[at..end].chars().map(joined).collect();
        if line == self.body[at..end] {
            return None;
        }
        self.body.replace_range(at..end, &line);
        self.quoted.push((self.base + at, text));
        Some(())
    }

    /// Moves a closing bracket that stands at the column of its key to the end of the line before.
    fn move_bracket(&mut self, _: &ScanError, at: usize) -> Option<()> {
        let body = &mut self.body;
        let bracket = body.get(at..at + 1).filter(|b| matches!(*b, "]" | "}"))?.to_string();
        let before = body[..at].trim_end();
        let line = &before[before.rfind('\n').map_or(0, |i| i + 1)..];
        // In a comment the bracket would be lost.
        if line.contains('#') || !body[before.len()..at].contains('\n') {
            return None;
        }
        let end = before.len();
        body.replace_range(at..at + 1, "\n");
        body.replace_range(end..end + 1, &bracket);
        Some(())
    }
}

/// Reads a text again after each repair. `None` if something else is wrong as well.
fn read_repaired<'s>(
    file: FileId,
    source: &'s Arc<str>,
    base: usize,
    mut error: ScanError,
    limits: &Limits,
    repair: Repair<'s>,
) -> Option<Loaded> {
    let original = &source[base..];
    let mut text = Repaired { original, base, body: original.to_string(), quoted: Vec::new() };
    for _ in 0..MAX_REPAIRS {
        let at = Positions::new(&text.body).byte(&text.body, error.marker().index());
        repair(&mut text, &error, at)?;
        let mut reader = YamlReader::new(file, source, &text.body, base, limits);
        reader.quoted.clone_from(&text.quoted);
        match reader.read(&[]) {
            None => return Some(reader.into_loaded()),
            Some(e) => error = e,
        }
    }
    None
}

/// The end of the quoted scalar that begins at `start`, and what it says: a single line break is a space,
/// several are one less.
fn unfolded(body: &str, start: usize) -> Option<(usize, String)> {
    let quote = body.get(start..)?.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut out = String::new();
    let mut chars = body[start + 1..].char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                chars.next();
                out.push('\'');
            }
            c if c == quote => return Some((start + 1 + i + 1, out)),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                '0' => out.push('\0'),
                '\n' => {
                    // A line that goes on in the next one.
                    while chars.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
                }
                letter @ ('x' | 'u' | 'U') => {
                    let digits = if letter == 'x' {
                        2
                    } else if letter == 'u' {
                        4
                    } else {
                        8
                    };
                    let mut code = 0;
                    for _ in 0..digits {
                        code = code * 16 + chars.next()?.1.to_digit(16)?;
                    }
                    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                }
                other => out.push(other),
            },
            '\n' => {
                out.truncate(out.trim_end_matches([' ', '\t', '\r']).len());
                let mut breaks = 1;
                while let Some((_, c)) = chars.next_if(|(_, c)| matches!(c, ' ' | '\t' | '\r' | '\n')) {
                    breaks += usize::from(c == '\n');
                }
                match breaks {
                    1 => out.push(' '),
                    n => out.extend(std::iter::repeat_n('\n', n - 1)),
                }
            }
            c => out.push(c),
        }
    }
    None
}

/// The names after asterisks, each once: those of aliases, and some that are none.
fn alias_names(text: &str) -> BTreeSet<&str> {
    const MAX_ALIASES: usize = 1000;
    let named = text.match_indices('*').filter_map(|(i, _)| {
        let rest = &text[i + 1..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
        Some(&rest[..end]).filter(|n| !n.is_empty() && n.len() < 100)
    });
    named.take(MAX_ALIASES).collect()
}

/// The text with lines that are nothing but `!include path` blanked out, byte for byte.
fn mask_includes(file: FileId, body: &str, base: usize) -> (String, Vec<Include>) {
    let mut masked = String::new();
    let mut includes = Vec::new();
    let mut at = base;
    for line in body.split_inclusive('\n') {
        let content = line.trim_end();
        match content
            .strip_prefix("!include")
            .filter(|p| p.starts_with([' ', '\t']) && !p.trim().contains([' ', ':']))
        {
            Some(path) => {
                includes.push(Include {
                    path: path.trim().to_string(),
                    span: Span { file, start: clamp(at), end: clamp(at + content.len()) },
                });
                masked.extend(std::iter::repeat_n(' ', content.len()));
                masked.push_str(&line[content.len()..]);
            }
            None => masked.push_str(line),
        }
        at += line.len();
    }
    (masked, includes)
}

/// Byte offsets of character offsets.
struct Positions {
    ascii: bool,
    /// Byte offset of every `STEP`th character.
    marks: Vec<u32>,
    len: usize,
}

const STEP: usize = 64;

impl Positions {
    fn new(text: &str) -> Self {
        let ascii = text.is_ascii();
        let marks = if ascii {
            Vec::new()
        } else {
            text.char_indices().step_by(STEP).map(|(i, _)| clamp(i)).collect()
        };
        Positions { ascii, marks, len: text.len() }
    }

    fn byte(&self, text: &str, character: usize) -> usize {
        if self.ascii {
            return character.min(self.len);
        }
        let Some(mark) = self.marks.get(character / STEP) else { return self.len };
        let from = *mark as usize;
        text[from..].char_indices().nth(character % STEP).map_or(self.len, |(i, _)| from + i)
    }
}

/// Maximal lookahead of the parser beyond its last event, in characters. It keeps every token of a bracket
/// that isn't closed yet, some hundred bytes for each character.
const WINDOW: usize = 1 << 20;

/// The characters of a text, which seems to end where the parser looks too far ahead.
struct Window<'a> {
    text: std::str::Chars<'a>,
    taken: usize,
    last: Rc<Seen>,
}

/// Progress of the parser within a [`Window`].
#[derive(Default)]
struct Seen {
    /// End of the last event, in characters.
    reported: Cell<usize>,
    /// True if the parser looked too far ahead.
    cut: Cell<bool>,
}

impl Iterator for Window<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        if self.taken > self.last.reported.get() + WINDOW || self.last.cut.get() {
            self.last.cut.set(true);
            return None;
        }
        self.taken += 1;
        self.text.next()
    }
}

struct YamlReader<'a, 'l> {
    builder: Builder<'l>,
    /// Parsed text: the body, perhaps with a prefix.
    text: &'a str,
    /// Bytes of the text before the body, which make up one document; `None` for none.
    front: Option<usize>,
    body: &'a str,
    base: usize,
    positions: Positions,
    documents: Vec<Document>,
    /// By the parser's number: the node, and whether it has ended. Of the current document.
    anchors: Vec<(NodeId, bool)>,
    /// The parser's number of the first anchor of this document.
    first_anchor: usize,
    /// The anchors of the open nodes, zero for none.
    open_anchors: Vec<usize>,
    /// Values that are the name of a file to be included.
    included: usize,
    /// End of the last event, in characters, if the parser sees the text through a [`Window`].
    last: Option<Rc<Seen>>,
    /// Starts of scalars that were joined to one line, with their values.
    quoted: Vec<(usize, String)>,
}

impl<'a, 'l> YamlReader<'a, 'l> {
    fn new(file: FileId, source: &Arc<str>, body: &'a str, base: usize, limits: &'l Limits) -> Self {
        YamlReader {
            builder: Builder::new(file, source, Format::Yaml, limits),
            text: body,
            front: None,
            body,
            base,
            positions: Positions::new(body),
            documents: Vec::new(),
            anchors: Vec::new(),
            first_anchor: 1,
            open_anchors: Vec::new(),
            included: 0,
            last: None,
            quoted: Vec::new(),
        }
    }

    fn into_loaded(self) -> Loaded {
        Loaded { documents: self.documents, diagnostics: self.builder.diagnostics }
    }

    fn at(&self, marker: Marker) -> usize {
        let at = self.positions.byte(self.text, marker.index());
        self.base + at.saturating_sub(self.front.unwrap_or(0))
    }

    /// Reads all documents. The syntax error that ended it, if one did; a limit that was hit is
    /// reported here already.
    fn read(&mut self, includes: &[Include]) -> Option<ScanError> {
        if self.text.len() <= WINDOW {
            return self.read_events(Parser::new_from_str(self.text), includes);
        }
        let last = Rc::new(Seen::default());
        let characters = Window { text: self.text.chars(), taken: 0, last: last.clone() };
        self.last = Some(last);
        self.read_events(Parser::new_from_iter(characters), includes)
    }

    fn read_events<'t, T: Input>(
        &mut self,
        mut parser: Parser<'t, T>,
        includes: &[Include],
    ) -> Option<ScanError> {
        let mut empty = true;
        let mut in_front = self.front.is_some();
        loop {
            let (event, span) = match parser.next_event()? {
                Ok(e) => e,
                Err(e) => return Some(e),
            };
            if let Some(last) = &self.last {
                last.reported.set(span.end.index());
            }
            let (start, end) = (self.at(span.start), self.at(span.end));
            let step = match event {
                Event::StreamEnd => return None,
                Event::Nothing | Event::StreamStart => Ok(()),
                Event::DocumentStart(_) => {
                    empty = true;
                    self.first_anchor += self.anchors.len();
                    self.anchors.clear();
                    self.open_anchors.clear();
                    Ok(())
                }
                Event::DocumentEnd => {
                    // Included files belong to the first document, where such lines stand.
                    let included = if self.documents.is_empty() { includes.to_vec() } else { Vec::new() };
                    let dropped = std::mem::replace(&mut in_front, false) || empty;
                    if let Some(document) = self.builder.finish(included)
                        && !dropped
                    {
                        self.documents.push(document);
                    }
                    Ok(())
                }
                Event::Alias(anchor) => {
                    empty = false;
                    self.alias(anchor, start, end)
                }
                Event::Scalar(text, style, anchor, tag) => {
                    empty &= text.is_empty() && style == ScalarStyle::Plain && tag.is_none();
                    self.scalar(text, style, anchor, tag, start, end)
                }
                Event::SequenceStart(anchor, tag) => {
                    empty = false;
                    self.open(false, anchor, tag, start)
                }
                Event::MappingStart(anchor, tag) => {
                    empty = false;
                    self.open(true, anchor, tag, start)
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    self.close(start, end);
                    Ok(())
                }
            };
            if step.is_err() {
                return None;
            }
        }
    }

    fn anchor(&mut self, anchor: usize, id: NodeId, ended: bool) {
        if anchor == 0 {
            return;
        }
        // The parser numbers anchors one by one.
        let index = anchor.saturating_sub(self.first_anchor);
        if self.anchors.len() <= index {
            self.anchors.resize(index + 1, (id, false));
        }
        self.anchors[index] = (id, ended);
    }

    fn alias(&mut self, anchor: usize, start: usize, end: usize) -> Result<(), Stop> {
        let known = anchor.checked_sub(self.first_anchor).and_then(|i| self.anchors.get(i)).copied();
        let data = match known {
            Some((target, true)) => Data::Alias(self.builder.resolve(target)),
            Some((_, false)) => {
                let d = Diagnostic::error(
                    codes::ALIAS,
                    "an alias within the node that its anchor marks",
                    self.builder.span(start, end),
                )
                .help("a node can't contain itself: remove the alias");
                self.builder.diagnostics.push(d);
                Data::Null
            }
            None if self.front.is_some() => Data::Null,
            None => {
                let d = Diagnostic::error(
                    codes::ALIAS,
                    "the anchor of this alias is in another document",
                    self.builder.span(start, end),
                )
                .help("anchors reach only to the end of their document");
                self.builder.diagnostics.push(d);
                Data::Null
            }
        };
        self.builder.leaf(data, start, end).map(drop)
    }

    fn open(
        &mut self,
        mapping: bool,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        start: usize,
    ) -> Result<(), Stop> {
        let id = self.builder.open(mapping, start)?;
        self.anchor(anchor, id, false);
        self.open_anchors.push(anchor);
        self.tag(id, tag.as_deref());
        Ok(())
    }

    fn close(&mut self, start: usize, end: usize) {
        // A flow collection ends with its bracket; a block collection ends where its last child does, and the
        // parser's mark is at whatever comes next. A comment behind the bracket may belong to its mark.
        let bracket = end > start && matches!(self.body.as_bytes().get(start - self.base), Some(b']' | b'}'));
        let id = self.builder.close(bracket.then_some(start + 1));
        let anchor = self.open_anchors.pop().unwrap_or(0);
        self.anchor(anchor, id, true);
    }

    fn tag(&mut self, id: NodeId, tag: Option<&Tag>) {
        if let Some(tag) = tag.filter(|t| !t.is_yaml_core_schema()) {
            let text = format!("{}{}", tag.handle, tag.suffix);
            self.builder.tag(id, &text);
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<Cow<'_, Tag>>,
        start: usize,
        end: usize,
    ) -> Result<(), Stop> {
        let plain = style == ScalarStyle::Plain;
        if plain && text.is_empty() && tag.is_none() {
            // No value. The parser's mark is at the next token; the place of interest is after the
            // colon of the key it belongs to.
            let at = if self.builder.awaits_value() { self.after_colon().unwrap_or(start) } else { start };
            let id = self.builder.leaf(Data::Null, at, at)?;
            self.anchor(anchor, id, true);
            return Ok(());
        }
        let end = self.base + trimmed(self.body, start - self.base, end - self.base);
        let core = tag.as_deref().filter(|t| t.is_yaml_core_schema()).map(|t| t.suffix.clone());
        let custom = tag.as_deref().is_some_and(|t| !t.is_yaml_core_schema());
        // Text that stands in the source as it is, after its quote if it has one, is kept as a slice.
        let stored = |text: Cow<'_, str>| {
            let from = end.saturating_sub(text.len() + usize::from(!plain));
            match self.body.get(from.wrapping_sub(self.base)..).is_some_and(|t| t.starts_with(&*text)) {
                true if !text.is_empty() => Text::Slice(clamp(from), clamp(from + text.len())),
                _ => Text::Owned(text.into()),
            }
        };
        let unfolded = self.quoted.iter().find(|(at, _)| *at == start).map(|(_, t)| t.as_str());
        let data = match core.as_deref() {
            _ if unfolded.is_some() => Data::String(Text::Owned(unfolded.unwrap_or_default().into())),
            Some("str" | "binary") => Data::String(stored(text)),
            Some("null") => Data::Null,
            _ if custom => Data::String(stored(text)),
            Some("int" | "float") if number::is_yaml_number(&text) => Data::Number(stored(text)),
            _ if !plain => Data::String(stored(text)),
            _ => match &*text {
                "~" | "null" | "Null" | "NULL" => Data::Null,
                "true" | "True" | "TRUE" => Data::Bool(true, stored(text)),
                "false" | "False" | "FALSE" => Data::Bool(false, stored(text)),
                t if number::is_yaml_number(t) => Data::Number(stored(text)),
                _ => Data::String(stored(text)),
            },
        };
        if tag.as_deref().is_some_and(|t| t.handle == "!" && t.suffix == "include") {
            self.included += 1;
            if self.included <= MAX_INCLUDES {
                let path = match &data {
                    Data::String(Text::Slice(a, b)) => {
                        self.body.get(*a as usize - self.base..*b as usize - self.base)
                    }
                    Data::String(Text::Owned(t)) => Some(&**t),
                    _ => None,
                };
                let d = not_included(path.unwrap_or(""), self.builder.span(start, end));
                self.builder.diagnostics.push(d);
            }
        }
        let id = self.builder.leaf(data, start, end)?;
        self.anchor(anchor, id, true);
        self.tag(id, tag.as_deref());
        Ok(())
    }

    /// The place after the colon that follows the key just read.
    fn after_colon(&self) -> Option<usize> {
        let key_end = self.builder.last_end()? - self.base;
        let rest = self.body.get(key_end..)?;
        let gap = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest[gap..].starts_with(':').then_some(self.base + key_end + gap + 1)
    }

    /// Reports the syntax error that ended the file: as one about templates if that is what it is.
    fn fail(&mut self, error: ScanError) {
        let at = self.at(*error.marker());
        let info = error.info();
        if self.last.as_ref().is_some_and(|l| l.cut.get()) {
            self.builder.diagnostics.push(
                Diagnostic::error(
                    codes::LIMIT,
                    format!("one bracket or one text of more than {WINDOW} characters"),
                    self.builder.span(at, at + 1),
                )
                .help("no configuration needs this: the rest of the file is not read"),
            );
            return;
        }
        if info.contains("recursion limit") {
            let _ = self.builder.too_deep(at);
            return;
        }
        let span = self.builder.span(at, at);
        if let Some(place) = template_mark(self.body, at - self.base) {
            let place = self.builder.span(self.base + place, self.base + place + 2);
            self.builder.diagnostics.retain(|d| d.code != codes::TEMPLATE);
            self.builder.diagnostics.push(
                crate::emit::undecided(
                    codes::TEMPLATE,
                    "this is a template, which is not YAML until it is rendered",
                    place,
                )
                .remark(span, info.to_string())
                .help("check the rendered file, or put the placeholders into quotes"),
            );
            return;
        }
        self.builder.diagnostics.push(Diagnostic::error(
            codes::SYNTAX,
            format!("invalid YAML: {info}"),
            span,
        ));
    }
}

/// A scalar's end without the blank lines that a block scalar's mark includes.
fn trimmed(body: &str, start: usize, end: usize) -> usize {
    body.get(start..end).map_or(end, |t| start + t.trim_end().len())
}

/// The first template mark that stands outside quotes and comments, if the error at `error` can be
/// its doing: some line up to the error begins with one, or one is on the line of the error or the
/// one before.
fn template_mark(body: &str, error: usize) -> Option<usize> {
    let mut at = 0;
    let mut near = None;
    for line in body.split_inclusive('\n') {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if content.starts_with("{{") || content.starts_with("{%") {
            return Some(at + indent);
        }
        if at > error {
            break;
        }
        if !content.starts_with('#')
            && let Some(i) = line.find("{{").or_else(|| line.find("{%"))
        {
            near = Some((at + i, at + line.len()));
        }
        if at + line.len() > error {
            // The line of the error: what was seen on it or on the line before counts.
            return near.filter(|(_, end)| *end >= at).map(|(i, _)| i);
        }
        at += line.len();
    }
    near.filter(|(_, end)| *end >= at).map(|(i, _)| i)
}
