//! A document's text, and its places as the protocol counts them.

use lsp_types::{Position, Range, TextDocumentContentChangeEvent, Uri};

/// Line starts of a text.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Lines { text, starts }
    }

    /// A line without its end.
    fn line(&self, line: usize) -> Option<(usize, &'a str)> {
        let start = *self.starts.get(line)?;
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end)?;
        Some((start, text.trim_end_matches(['\n', '\r'])))
    }

    /// Returns the byte offset of a position, or the nearest one before it.
    pub(crate) fn offset(&self, position: Position) -> usize {
        let number = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let Some((start, line)) = self.line(number(position.line)) else { return self.text.len() };
        let (mut units, character) = (0, number(position.character));
        for (i, c) in line.char_indices() {
            if units + c.len_utf16() > character {
                return start + i;
            }
            units += c.len_utf16();
        }
        start + line.len()
    }

    /// The line and the UTF-16 column of a byte.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |t| t.encode_utf16().count());
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position::new(number(line), number(column))
    }

    pub(crate) fn range(&self, range: &ide::Range) -> Range {
        Range::new(self.position(range.start), self.position(range.end.max(range.start)))
    }
}

/// Applies the changes of a `didChange` in order.
pub(crate) fn apply(text: &mut String, changes: &[TextDocumentContentChangeEvent]) {
    for change in changes {
        match change.range {
            Some(range) => {
                let lines = Lines::new(text);
                let start = lines.offset(range.start);
                let end = lines.offset(range.end).max(start);
                text.replace_range(start..end, &change.text);
            }
            None => text.clone_from(&change.text),
        }
    }
}

/// The path of a `file:` address; other addresses are their own paths, which lead nowhere.
pub(crate) fn path_of(uri: &str) -> String {
    let rest = uri.strip_prefix("file://").unwrap_or(uri);
    let mut out = Vec::with_capacity(rest.len());
    let bytes = rest.as_bytes();
    let mut i = 0;
    while let Some(b) = bytes.get(i) {
        let code = bytes.get(i + 1..i + 3).and_then(|h| std::str::from_utf8(h).ok());
        match (b, code.and_then(|h| u8::from_str_radix(h, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                i += 3;
            }
            _ => {
                out.push(*b);
                i += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The address of a path; `None` if it has none.
pub(crate) fn uri_of(path: &str) -> Option<Uri> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    let mut out = String::from("file://");
    for b in path.bytes() {
        match plain(b) {
            true => out.push(b as char),
            false => out.push_str(&format!("%{b:02X}")),
        }
    }
    out.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_utf16() {
        let lines = Lines::new("a😀b\r\nü\n");
        let at = Position::new;
        assert_eq!(lines.position(5), at(0, 3));
        assert_eq!(lines.offset(at(0, 3)), 5);
        // Inside of a pair, and behind the end of a line.
        assert_eq!(lines.offset(at(0, 2)), 1);
        assert_eq!(lines.offset(at(0, 99)), 6);
        assert_eq!(lines.offset(at(1, 1)), 10);
        assert_eq!(lines.offset(at(99, 0)), 11);
    }

    #[test]
    fn addresses_are_paths() {
        let path = "/tmp/a b/ü%.agent";
        assert_eq!(path_of(uri_of(path).unwrap().as_str()), path);
        assert_eq!(path_of("file:///a%2"), "/a%2");
    }

    proptest! {
        /// A place is found again, and changes never split a character.
        #[test]
        fn places_are_found_again(text in "[a😀ü\\n\\r]{0,30}", line in 0u32..6, a in 0u32..9, b in 0u32..9) {
            let lines = Lines::new(&text);
            for (i, _) in text.char_indices().filter(|(_, c)| *c != '\n' && *c != '\r') {
                prop_assert_eq!(lines.offset(lines.position(i)), i);
            }
            let range = Some(Range::new(Position::new(line, a), Position::new(line, b)));
            let change = TextDocumentContentChangeEvent { range, range_length: None, text: "é".into() };
            let mut changed = text.clone();
            apply(&mut changed, &[change]);
            prop_assert!(changed.contains('é'));
        }
    }
}
