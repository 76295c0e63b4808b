//! A document's text, and its places as the protocol counts them.

use serde_json::{Value, json};

/// Where the lines of a text begin.
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

    /// The byte at a position; the nearest one before it if there is none.
    pub(crate) fn offset(&self, position: &Value) -> usize {
        let number = |key: &str| position[key].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        let Some((start, line)) = self.line(number("line")) else { return self.text.len() };
        let (mut units, character) = (0, number("character"));
        for (i, c) in line.char_indices() {
            if units + c.len_utf16() > character {
                return start + i;
            }
            units += c.len_utf16();
        }
        start + line.len()
    }

    /// The line of a byte, and its UTF-16 column.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|s| *s <= offset).saturating_sub(1);
        let start = self.starts.get(line).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |t| t.encode_utf16().count());
        (line, column)
    }

    pub(crate) fn position(&self, offset: usize) -> Value {
        let (line, character) = self.place(offset);
        json!({"line": line, "character": character})
    }

    pub(crate) fn range(&self, start: u32, end: u32) -> Value {
        json!({"start": self.position(start as usize), "end": self.position(end.max(start) as usize)})
    }
}

/// Applies the changes of a `didChange` in order.
pub(crate) fn apply(text: &mut String, changes: &[Value]) {
    for change in changes {
        let Some(new) = change["text"].as_str() else { continue };
        if change["range"].is_object() {
            let lines = Lines::new(text);
            let start = lines.offset(&change["range"]["start"]);
            let end = lines.offset(&change["range"]["end"]).max(start);
            text.replace_range(start..end, new);
        } else {
            *text = new.to_string();
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

/// The address of a path.
pub(crate) fn uri_of(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/".contains(&b);
    let mut out = String::from("file://");
    for b in path.bytes() {
        match plain(b) {
            true => out.push(b as char),
            false => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_utf16() {
        let lines = Lines::new("a😀b\r\nü\n");
        assert_eq!(lines.position(5), json!({"line": 0, "character": 3}));
        assert_eq!(lines.offset(&json!({"line": 0, "character": 3})), 5);
        // Inside of a pair, and behind the end of a line.
        assert_eq!(lines.offset(&json!({"line": 0, "character": 2})), 1);
        assert_eq!(lines.offset(&json!({"line": 0, "character": 99})), 6);
        assert_eq!(lines.offset(&json!({"line": 1, "character": 1})), 10);
        assert_eq!(lines.offset(&json!({"line": 99, "character": 0})), 11);
    }

    #[test]
    fn addresses_are_paths() {
        let path = "/tmp/a b/ü%.agent";
        assert_eq!(path_of(&uri_of(path)), path);
        assert_eq!(path_of("file:///a%2"), "/a%2");
    }

    proptest! {
        /// A place is found again, and changes never split a character.
        #[test]
        fn places_are_found_again(text in "[a😀ü\\n\\r]{0,30}", line in 0u32..6, a in 0u32..9, b in 0u32..9) {
            let lines = Lines::new(&text);
            for (i, _) in text.char_indices().filter(|(_, c)| *c != '\n' && *c != '\r') {
                prop_assert_eq!(lines.offset(&lines.position(i)), i);
            }
            let at = |c: u32| json!({"line": line, "character": c});
            let change = json!({"range": {"start": at(a), "end": at(b)}, "text": "é"});
            let mut changed = text.clone();
            apply(&mut changed, &[change]);
            prop_assert!(changed.contains('é'));
        }
    }
}
