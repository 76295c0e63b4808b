//! Files by number, and byte ranges in them.

use std::sync::Arc;

/// A file of a [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A byte range of one file: `start..end`, at most 4 GiB into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Which file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that covers both; `self` if they are of different files.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A human place: both count from one, columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Character in the line, from 1.
    pub column: u32,
}

/// One file as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user wrote it.
    pub path: String,
    /// The text. Whoever read the file reports invalid UTF-8.
    pub text: Arc<str>,
    line_starts: Vec<u32>,
}

impl Source {
    /// The line and column of a byte offset (clamped into the file).
    pub fn line_column(&self, offset: u32) -> LineColumn {
        let mut at = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.line_starts.partition_point(|s| *s as usize <= at).max(1) - 1;
        let start = self.line_starts[line] as usize;
        // The offset of a start never exceeds `at`, and both are character boundaries.
        let column = self.text.get(start..at).map_or(0, |t| t.chars().count());
        LineColumn { line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// The bytes of a line (from 1), without its line break; empty at the end of the file for a line
    /// that does not exist.
    pub fn line_range(&self, line: u32) -> std::ops::Range<usize> {
        let index = (line.max(1) - 1) as usize;
        let start = self.line_starts.get(index).map_or(self.text.len(), |s| *s as usize);
        let end = self.line_starts.get(index + 1).map_or(self.text.len(), |s| *s as usize);
        let shown = self.text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r']);
        start..start + shown.len()
    }

    /// The text of a line (from 1), without its line break.
    pub fn line(&self, line: u32) -> &str {
        self.text.get(self.line_range(line)).unwrap_or("")
    }
}

/// All files that spans may point into.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file. Only the first 4 GiB of a text can be pointed into.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text: Arc<str> = text.into();
        let mut line_starts = vec![0];
        let bytes = text.as_bytes();
        for i in memchr::memchr2_iter(b'\n', b'\r', bytes) {
            // A lone carriage return ends a line too, as YAML has it.
            if bytes[i] == b'\n' || bytes.get(i + 1) != Some(&b'\n') {
                line_starts.push(u32::try_from(i + 1).unwrap_or(u32::MAX));
            }
        }
        self.files.push(Source { path: path.into(), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// The id that the next file added will have.
    pub fn next_id(&self) -> FileId {
        FileId(self.files.len() as u32)
    }

    /// The file of an id, if it is one of these.
    pub fn get(&self, file: FileId) -> Option<&Source> {
        self.files.get(file.0 as usize)
    }

    /// All files in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &Source)> {
        self.files.iter().enumerate().map(|(i, s)| (FileId(i as u32), s))
    }

    /// A span of a file.
    pub fn span(&self, file: FileId, start: usize, end: usize) -> Span {
        let clamp = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Span { file, start: clamp(start), end: clamp(end.max(start)) }
    }

    /// The text that a span covers (empty if it covers none).
    pub fn text(&self, span: Span) -> &str {
        self.get(span.file).and_then(|s| s.text.get(span.start as usize..span.end as usize)).unwrap_or("")
    }

    /// `path:line:column` of the start of a span.
    pub fn place(&self, span: Span) -> String {
        match self.get(span.file) {
            Some(s) => {
                let at = s.line_column(span.start);
                format!("{}:{}:{}", s.path, at.line, at.column)
            }
            None => "<unknown>".to_string(),
        }
    }
}

/// A path with `/` and without `.` and `..` as far as they can be resolved.
///
/// # Examples
/// ```
/// assert_eq!(diagnostics::normal_path("a/./b/../c.py"), "a/c.py");
/// ```
pub fn normal_path(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|p| *p != ".." && !p.is_empty()) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_end_as_in_yaml() {
        let mut sources = Sources::new();
        let file = sources.add("f", "aé\r\nb\rc\n");
        let s = sources.get(file).unwrap();
        assert_eq!(s.line_column(3), LineColumn { line: 1, column: 3 });
        assert_eq!(s.line_column(5), LineColumn { line: 2, column: 1 });
        assert_eq!(s.line_column(7), LineColumn { line: 3, column: 1 });
        assert_eq!(s.line_column(999), LineColumn { line: 4, column: 1 });
        assert_eq!((s.line(1), s.line(2), s.line(3), s.line(4), s.line(9)), ("aé", "b", "c", "", ""));
    }

    #[test]
    fn an_offset_inside_a_character_is_the_character() {
        let mut sources = Sources::new();
        let file = sources.add("f", "é");
        assert_eq!(sources.get(file).unwrap().line_column(1), LineColumn { line: 1, column: 1 });
    }
}
