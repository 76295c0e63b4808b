//! JSON with comments and trailing commas, without recursion.

use super::build::{Builder, Stop};
use super::node::{Data, Text};
use super::{Format, Limits, Loaded, clamp, codes};
use diagnostics::{Diagnostic, FileId};
use std::sync::Arc;

pub(super) fn load(file: FileId, source: &Arc<str>, limits: &Limits) -> Loaded {
    let mut reader = JsonReader {
        builder: Builder::new(file, source, Format::Json, limits),
        text: source,
        bytes: source.as_bytes(),
        at: if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 },
    };
    let mut documents = Vec::new();
    if reader.skip_blank().is_ok() && reader.at < reader.bytes.len() && reader.value().is_ok() {
        documents.extend(reader.builder.finish(Vec::new()));
        if reader.skip_blank().is_ok() && reader.at < reader.bytes.len() {
            let span = reader.builder.span(reader.at, reader.at + 1);
            reader.builder.diagnostics.push(
                Diagnostic::warn(codes::TRAILING, "text after the end of the JSON value", span).help(
                    "only the first value is read: remove the rest, or put each value into a file of its own",
                ),
            );
        }
    }
    Loaded { documents, diagnostics: reader.builder.diagnostics }
}

struct JsonReader<'a, 'l> {
    builder: Builder<'l>,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// Next expected element inside an open bracket.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// A value, or the closing bracket of an empty or comma-ended list.
    Item,
    /// A key, or the closing brace.
    Key,
    /// A comma or the closing bracket of the kind that is open.
    After,
}

impl JsonReader<'_, '_> {
    fn fail<T>(&mut self, message: impl Into<String>, at: usize) -> Result<T, Stop> {
        let text = self.text.get(at..).unwrap_or("");
        let len = text.chars().next().map_or(0, char::len_utf8);
        let span = self.builder.span(at, at + len);
        let message = format!("invalid JSON: {}", message.into());
        self.builder.diagnostics.push(Diagnostic::error(codes::SYNTAX, message, span));
        Err(Stop)
    }

    fn unexpected<T>(&mut self, expected: &str) -> Result<T, Stop> {
        let at = self.at;
        match self.text.get(at..).and_then(|t| t.chars().next()) {
            Some(c) if !c.is_control() => self.fail(format!("expected {expected}, found `{c}`"), at),
            Some(_) => self.fail(format!("expected {expected}, found a control character"), at),
            None => self.fail(format!("expected {expected}, but the file ends here"), at),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') => match self.bytes.get(self.at + 1) {
                    Some(b'/') => {
                        let rest = &self.bytes[self.at..];
                        self.at += rest.iter().position(|b| *b == b'\n' || *b == b'\r').unwrap_or(rest.len());
                    }
                    Some(b'*') => match self.text[self.at + 2..].find("*/") {
                        Some(end) => self.at += 2 + end + 2,
                        None => return self.fail("this comment has no end", self.at),
                    },
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// One value with everything in it.
    fn value(&mut self) -> Result<(), Stop> {
        let mut open: Vec<bool> = Vec::new();
        let mut state = State::Item;
        loop {
            self.skip_blank()?;
            let mapping = open.last().copied();
            match (state, self.peek()) {
                (State::Key, Some(b'"')) => {
                    self.string()?;
                    self.skip_blank()?;
                    if self.peek() != Some(b':') {
                        return self.unexpected("`:`");
                    }
                    self.at += 1;
                    self.skip_blank()?;
                    // What comes now is a value, and no bracket closes here.
                    if matches!(self.peek(), Some(b']' | b'}')) {
                        return self.unexpected("a value");
                    }
                    state = State::Item;
                }
                (State::Key | State::After, Some(b'}')) if mapping == Some(true) => {
                    self.close(&mut open);
                    state = State::After;
                }
                (State::Item | State::After, Some(b']')) if mapping == Some(false) => {
                    self.close(&mut open);
                    state = State::After;
                }
                (State::After, Some(b',')) => {
                    self.at += 1;
                    state = if mapping == Some(true) { State::Key } else { State::Item };
                }
                (State::Item, Some(b'{' | b'[')) => {
                    let is_mapping = self.peek() == Some(b'{');
                    self.builder.open(is_mapping, self.at)?;
                    open.push(is_mapping);
                    self.at += 1;
                    state = if is_mapping { State::Key } else { State::Item };
                }
                (State::Item, Some(b'"')) => {
                    self.string()?;
                    state = State::After;
                }
                (State::Item, Some(_)) => {
                    self.word()?;
                    state = State::After;
                }
                (State::Item, None) => return self.unexpected("a value"),
                (State::Key, _) => return self.unexpected("a key in double quotes, or `}`"),
                (State::After, _) if mapping == Some(true) => return self.unexpected("`,` or `}`"),
                (State::After, _) => return self.unexpected("`,` or `]`"),
            }
            if open.is_empty() {
                return Ok(());
            }
        }
    }

    fn close(&mut self, open: &mut Vec<bool>) {
        self.at += 1;
        open.pop();
        self.builder.close(Some(self.at));
    }

    /// A number or one of the names.
    fn word(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let len = rest
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_')))
            .unwrap_or(rest.len());
        if len == 0 {
            return self.unexpected("a value");
        }
        let word = &self.text[start..start + len];
        let text = Text::Slice(clamp(start), clamp(start + len));
        let data = match word {
            "null" => Data::Null,
            "true" => Data::Bool(true, text),
            "false" => Data::Bool(false, text),
            // Python writes these.
            "NaN" | "Infinity" | "-Infinity" => Data::Number(text),
            _ if is_number(word) => Data::Number(text),
            _ => {
                let word: String = word.chars().take(40).collect();
                return self
                    .fail(format!("`{word}` is neither a number nor `true`, `false` or `null`"), start);
            }
        };
        self.at += len;
        self.builder.leaf(data, start, start + len).map(drop)
    }

    /// A string in double quotes, the first of which is the next byte.
    fn string(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let mut at = start + 1;
        loop {
            match self.bytes.get(at) {
                None => return self.fail("this string has no closing quote", start),
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(b) if *b < 0x20 => {
                    return self.fail("a control character (such as a line break) inside a string", at);
                }
                Some(_) => at += 1,
            }
        }
        let raw = &self.text[start + 1..at];
        let text = if raw.contains('\\') {
            match unescape(raw) {
                Ok(s) => Text::Owned(s.into()),
                Err(offset) => return self.fail("an unknown escape in a string", start + 1 + offset),
            }
        } else {
            Text::Slice(clamp(start + 1), clamp(at))
        };
        self.at = at + 1;
        self.builder.leaf(Data::String(text), start, at + 1).map(drop)
    }
}

/// JSON's grammar of numbers.
fn is_number(word: &str) -> bool {
    let body = word.strip_prefix('-').unwrap_or(word);
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(i) => (&body[..i], Some(&body[i + 1..])),
        None => (body, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((w, f)) => (w, Some(f)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['-', '+']).unwrap_or(e)))
}

/// The text between the quotes; the offset of the first bad escape otherwise. Half of a surrogate
/// pair becomes U+FFFD, as there is no such character.
fn unescape(raw: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(raw.len());
    let mut at = 0;
    let hex = |at: usize| {
        let digits = raw.get(at..at + 4)?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    };
    while let Some(i) = raw[at..].find('\\') {
        out.push_str(&raw[at..at + i]);
        let escape = at + i;
        at = escape + 2;
        match raw.as_bytes().get(escape + 1) {
            Some(b @ (b'"' | b'\\' | b'/')) => out.push(char::from(*b)),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'n') => out.push('\n'),
            Some(b'r') => out.push('\r'),
            Some(b't') => out.push('\t'),
            Some(b'u') => {
                let unit = hex(at).ok_or(escape)?;
                at += 4;
                let low = (raw.get(at..at + 2) == Some("\\u")).then(|| hex(at + 2)).flatten();
                match (unit, low) {
                    (0xd800..0xdc00, Some(low @ 0xdc00..0xe000)) => {
                        at += 6;
                        let scalar = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(scalar).unwrap_or('\u{fffd}'));
                    }
                    _ => out.push(char::from_u32(unit).unwrap_or('\u{fffd}')),
                }
            }
            _ => return Err(escape),
        }
    }
    out.push_str(&raw[at..]);
    Ok(out)
}
