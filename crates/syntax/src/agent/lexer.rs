//! Text to tokens.
//!
//! Every word is a [`Token::Word`]: which words are keywords depends on where they stand, so that a
//! base program may use the words of the extensions as names. White space and comments are not
//! tokens; comments are kept beside them for the formatter.

use super::ast::Comment;
use diagnostics::{Applicability, Diagnostic, FileId, Fix, Span};
use std::collections::HashSet;

/// The kind of a token. Its text is the source under its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A name or a keyword.
    Word,
    /// A number without sign.
    Number,
    /// A string in double quotes, or in three of them.
    Str,
    /// `f"…"`: a string with holes.
    Template,
    /// Punctuation, by its spelling.
    Punct(&'static str),
    /// An invalid token, already reported.
    Bad,
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Lexed {
    /// Its kind.
    pub token: Token,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// True if it is the first token on its line.
    pub first_on_line: bool,
}

/// The result of [`lex`]: tokens (the last is [`Token::End`]), comments, and what was wrong.
pub struct Tokens {
    /// The tokens in order.
    pub tokens: Vec<Lexed>,
    /// The comments in order.
    pub comments: Vec<Comment>,
    /// Lexical errors.
    pub diagnostics: Vec<Diagnostic>,
    /// Starts of strings that were closed where the text ended. Tokens that they swallowed aren't reported as
    /// missing.
    pub open: HashSet<u32>,
}

// Longest first, so that the first match is the right one.
const PUNCTUATION: &[&str] = &[
    "...", "===", "!==", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "**", "??", "?.", "{", "}", "[",
    "]", "(", ")", ",", ";", ":", ".", "=", "+", "-", "*", "/", "%", "<", ">", "!", "|", "?",
];

/// Returns true for a character that may begin a name.
pub fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Returns true for a character that may continue a name.
pub fn continues_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Cuts `text[from..to]` into tokens; spans count from the start of `text`. A byte order mark at the
/// very start is skipped.
pub fn lex(file: FileId, text: &str, from: usize, to: usize) -> Tokens {
    let mut out =
        Tokens { tokens: Vec::new(), comments: Vec::new(), diagnostics: Vec::new(), open: HashSet::new() };
    let text = text.get(..to).unwrap_or(text);
    let mut at = from;
    let mut first_on_line = true;
    if at == 0 && text.starts_with('\u{feff}') {
        at = '\u{feff}'.len_utf8();
    }
    let span = |start: usize, end: usize| Span { file, start: start as u32, end: end as u32 };
    while let Some(c) = text.get(at..).and_then(|t| t.chars().next()) {
        let rest = &text[at..];
        if c == '\n' || c == '\r' {
            first_on_line = true;
        }
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        if rest.starts_with("--") || rest.starts_with("//") {
            let end = at + rest.find(['\n', '\r']).unwrap_or(rest.len());
            out.comments.push(Comment { span: span(at, end), own_line: first_on_line });
            at = end;
            continue;
        }
        // Comments of other languages: one report, and what they say is skipped.
        if (c == '#' && !rest.starts_with("#\"")) || rest.starts_with("/*") {
            let end = match c {
                '#' => at + rest.find(['\n', '\r']).unwrap_or(rest.len()),
                _ => at + rest.find("*/").map_or(rest.len(), |n| n + 2),
            };
            let mark = if c == '#' { "#" } else { "/*" };
            out.diagnostics.push(
                Diagnostic::error("A001", format!("`{mark}` means nothing here"), span(at, at + mark.len()))
                    .help("comments begin with `--` or `//`"),
            );
            at = end;
            continue;
        }
        let start = at;
        let token = if rest.starts_with("f\"") {
            at = match template_end(&text[at + 1..]) {
                Some(length) => at + 1 + length,
                // A hole that isn't closed: the string ends where one without holes does.
                None => string_end(file, text, at + 1, &mut out),
            };
            Token::Template
        } else if c == '"' {
            // The holes of a prompt have strings of their own, as those of `f"…"`.
            let is_prompt = out.tokens.last().is_some_and(|t| {
                let word = text.get(t.start as usize..t.end as usize);
                matches!(word, Some("prompt" | "system"))
            });
            at = match template_end(&text[at..]).filter(|_| is_prompt) {
                Some(length) => at + length,
                None => string_end(file, text, at, &mut out),
            };
            Token::Str
        } else if let Some(length) = escaped_string(rest) {
            at += length;
            out.diagnostics.push(
                Diagnostic::error("A001", "a quote in a hole has no backslash before it", span(start, at))
                    .help("a hole has strings of its own: `f\"{names.join(\", \")}\"`")
                    .fix(Fix {
                        span: span(start, at),
                        replacement: rest[1..length - 2].to_string() + "\"",
                        applicability: Applicability::Unsafe,
                    }),
            );
            Token::Bad
        } else if let Some((length, has_holes)) = other_string(rest) {
            at += length;
            let d = Diagnostic::error("A001", "strings are written in double quotes", span(start, at));
            let inner = other_quoted(rest).map(|length| &rest[c.len_utf8()..length - closing(c).len_utf8()]);
            let fix = inner.filter(|_| c != '`').map(|inner| Fix {
                span: span(start, at),
                replacement: format!("\"{inner}\""),
                applicability: Applicability::Unsafe,
            });
            let d = d.help(match (c, has_holes) {
                ('#', _) => "write `\"…\"`, or `\"\"\"…\"\"\"` for several lines",
                (_, true) => "write `f\"… {x} …\"`",
                _ => "write `\"…\"`",
            });
            out.diagnostics.push(match fix {
                Some(fix) => d.fix(fix),
                None => d,
            });
            if has_holes { Token::Bad } else { Token::Str }
        } else if starts_name(c) {
            at += rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
            Token::Word
        } else if c.is_ascii_digit() {
            at += number_length(rest);
            if text[at..].chars().next().is_some_and(continues_name) {
                let junk = text[at..].find(|c| !continues_name(c)).unwrap_or(text.len() - at);
                out.diagnostics.push(
                    Diagnostic::error(
                        "A004",
                        format!("malformed number `{}`", &text[start..at + junk]),
                        span(start, at + junk),
                    )
                    .help("a number is written like `12`, `2.5` or `1e3`; a name can't begin with a digit"),
                );
                at += junk;
                Token::Bad
            } else {
                Token::Number
            }
        } else if let Some(p) = PUNCTUATION.iter().find(|p| rest.starts_with(**p)) {
            at += p.len();
            Token::Punct(p)
        } else {
            // One report for a run of characters that mean nothing.
            let known = |c: char| {
                c.is_whitespace()
                    || c == '"'
                    || continues_name(c)
                    || PUNCTUATION.iter().any(|p| p.starts_with(c))
            };
            at += rest.find(known).unwrap_or(rest.len()).max(c.len_utf8());
            out.diagnostics.push(unexpected(&text[start..at], span(start, at)));
            Token::Bad
        };
        out.tokens.push(Lexed { token, start: start as u32, end: at as u32, first_on_line });
        first_on_line = false;
    }
    out.tokens.push(Lexed { token: Token::End, start: at as u32, end: at as u32, first_on_line });
    out
}

/// Quotes that are a slip from another language, or from a word processor.
const OTHER_QUOTES: [char; 4] = ['\'', '“', '‘', '`'];

/// The length of a string between `\"` and `\"`.
fn escaped_string(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\\\"")?;
    let line = &inside[..inside.find(['\n', '\r']).unwrap_or(inside.len())];
    Some(2 + line.find("\\\"")? + 2)
}

/// Returns the closing counterpart of one of [`OTHER_QUOTES`].
fn closing(quote: char) -> char {
    match quote {
        '“' => '”',
        '‘' => '’',
        other => other,
    }
}

/// The length of a string of another language, and whether it has holes.
fn other_string(text: &str) -> Option<(usize, bool)> {
    if let Some(length) = other_quoted(text) {
        return Some((length, text.starts_with('`') && text[..length].contains("${")));
    }
    match text.strip_prefix("#\"") {
        Some(inside) => Some((2 + inside.find("\"#")? + 2, false)),
        None => Some((1 + other_quoted(text.strip_prefix('f')?)?, true)),
    }
}

/// The length of a string in other quotes than double ones.
fn other_quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|c| OTHER_QUOTES.contains(c))?;
    let line = &text[..text.find(['\n', '\r']).unwrap_or(text.len())];
    let end = closing(quote);
    let length = line[quote.len_utf8()..].find(end)?;
    Some(quote.len_utf8() + length + end.len_utf8())
}

fn unexpected(junk: &str, span: Span) -> Diagnostic {
    let shown: String = junk.chars().take(20).collect();
    let found = Diagnostic::error("A001", format!("`{shown}` means nothing here"), span);
    match junk.chars().next() {
        Some('\'' | '`' | '“' | '”' | '‘' | '’') => {
            found.help("strings are written in double quotes: `\"text\"`")
        }
        Some('@') => found.help("there are no decorators: say what something does after its result type"),
        Some('$') => found.help("a variable is written `x`, and `{x}` in an f-string"),
        Some('&') => found.help("`and` is written `&&`"),
        _ => found.help("remove it; text is between double quotes"),
    }
}

/// A repair that writes a character twice, which makes it text.
fn doubled(character: &str, span: Span) -> Fix {
    Fix { span, replacement: character.repeat(2), applicability: Applicability::Unsafe }
}

fn number_length(text: &str) -> usize {
    let digits = |t: &str| t.find(|c: char| !c.is_ascii_digit()).unwrap_or(t.len());
    let mut n = digits(text);
    if let Some(fraction) = text[n..].strip_prefix('.')
        && digits(fraction) > 0
    {
        n += 1 + digits(fraction);
    }
    if let Some(exponent) = text[n..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let length = digits(&exponent[sign..]);
        if length > 0 {
            n += 1 + sign + length;
        }
    }
    n
}

/// The length of a string with holes on one line, if it ends there. A hole has strings of its own:
/// `f"{names.join(", ")}"`, `prompt "{names.join(", ")}"`.
fn template_end(text: &str) -> Option<usize> {
    if text.starts_with("\"\"\"") {
        return None;
    }
    let mut at = 1;
    loop {
        let rest = text.get(at..)?;
        at += match rest.chars().next()? {
            '"' => return Some(at + 1),
            '\n' | '\r' => return None,
            '\\' => 1 + rest[1..].chars().next()?.len_utf8(),
            '{' if rest.starts_with("{{") => 2,
            '{' => hole_length(rest)?,
            c => c.len_utf8(),
        };
    }
}

/// The end of the string that begins with the quote at `at`. A string in single quotes ends with its
/// line at the latest, so that a forgotten quote spoils one line and not the file.
fn string_end(file: FileId, text: &str, at: usize, out: &mut Tokens) -> usize {
    let long = text[at..].starts_with("\"\"\"");
    let mut position = at + if long { 3 } else { 1 };
    let mut characters = text[position..].char_indices();
    while let Some((offset, c)) = characters.next() {
        match c {
            '\\' => {
                // The escaped character can't end the string; a line break still does.
                if let Some((o, '\n' | '\r')) = characters.clone().next()
                    && !long
                {
                    position += o;
                    break;
                }
                characters.next();
            }
            '"' if !long => return position + offset + 1,
            '"' if text[position + offset..].starts_with("\"\"\"") => return position + offset + 3,
            '\n' | '\r' if !long => {
                position += offset;
                break;
            }
            _ => {}
        }
        if characters.as_str().is_empty() {
            position = text.len();
            break;
        }
    }
    let end = position.min(text.len()).max(at + 1);
    let d = Diagnostic::error(
        "A002",
        "this string has no end",
        Span { file, start: at as u32, end: if long { at as u32 + 3 } else { end as u32 } },
    );
    out.open.insert(end as u32);
    out.diagnostics.push(if long {
        d.help("close it with `\"\"\"`")
    } else {
        d.help("close it with `\"` on the same line, or write it between `\"\"\"` and `\"\"\"` if it has several lines")
    });
    end
}

/// A piece of a string after its escapes are resolved, with the range of source it came from.
pub struct Piece {
    /// The text.
    pub text: String,
    /// Its first byte in the source.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
}

/// Part of a string.
pub enum Part {
    /// Text.
    Text(Piece),
    /// A hole `{…}`: the range of source between the braces.
    Hole(u32, u32),
}

/// Resolves the escapes of a string token and, if `holes`, cuts it at its holes. `{{` and `}}` are
/// braces in a string with holes.
///
/// `start..end` is the token without the `f` of a template.
pub fn parts(
    file: FileId,
    source: &str,
    start: u32,
    end: u32,
    holes: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Part> {
    let raw = &source[start as usize..end as usize];
    let long = raw.starts_with("\"\"\"");
    let (quote, end) = match raw.chars().next() {
        _ if long => ("\"\"\"", "\"\"\""),
        Some('\'') => ("'", "'"),
        Some('`') => ("`", "`"),
        Some('#') => ("#\"", "\"#"),
        Some('“') => ("“", "”"),
        Some('‘') => ("‘", "’"),
        _ => ("\"", "\""),
    };
    let opened = &raw[quote.len().min(raw.len())..];
    let inner = opened.strip_suffix(end).unwrap_or(opened);
    let base = start as usize + (raw.len() - opened.len());
    let (skip_first, indent) = if long { layout(inner) } else { (0, 0) };
    // The line break before closing quotes on a line of their own belongs to them.
    let inner = match inner.rsplit_once('\n') {
        Some((before, last)) if long && skip_first <= before.len() && last.trim().is_empty() => {
            before.strip_suffix('\r').unwrap_or(before)
        }
        _ => inner,
    };

    let mut out = Vec::new();
    let mut text = String::new();
    let mut text_start = base + skip_first;
    let mut at = skip_first;
    let mut line_start = skip_first > 0;
    let span = |from: usize, to: usize| Span { file, start: (base + from) as u32, end: (base + to) as u32 };
    while let Some(c) = inner[at..].chars().next() {
        if line_start && indent > 0 {
            let blank = inner[at..].bytes().take(indent).take_while(|b| *b == b' ' || *b == b'\t').count();
            at += blank;
            line_start = false;
            continue;
        }
        line_start = false;
        let rest = &inner[at..];
        match c {
            '\\' => {
                let (resolved, length) = match escape(rest) {
                    Ok(found) => found,
                    Err((length, why)) => {
                        diagnostics.push(
                            Diagnostic::error("A003", why, span(at, at + length))
                                .fix(doubled("\\", span(at, at + 1)))
                                .help("the escapes are `\\n` `\\t` `\\r` `\\\\` `\\\"` `\\'` `\\0` `\\u00e9` `\\u{1f600}`"),
                        );
                        (char::REPLACEMENT_CHARACTER, length)
                    }
                };
                text.push(resolved);
                at += length;
            }
            '{' | '}' if holes && rest[1..].starts_with(c) => {
                text.push(c);
                at += 2;
            }
            '{' if holes => {
                let Some(length) = hole_length(rest) else {
                    diagnostics.push(
                        Diagnostic::error("A005", "this `{` has no matching `}`", span(at, at + 1))
                            .help("write `{{` for a brace that is text")
                            .fix(doubled("{", span(at, at + 1))),
                    );
                    text.push(c);
                    at += 1;
                    continue;
                };
                if !text.is_empty() {
                    let piece = Piece {
                        text: std::mem::take(&mut text),
                        start: text_start as u32,
                        end: (base + at) as u32,
                    };
                    out.push(Part::Text(piece));
                }
                out.push(Part::Hole((base + at + 1) as u32, (base + at + length - 1) as u32));
                at += length;
                text_start = base + at;
            }
            '}' if holes => {
                diagnostics.push(
                    Diagnostic::error("A005", "this `}` closes nothing", span(at, at + 1))
                        .help("write `}}` for a brace that is text")
                        .fix(doubled("}", span(at, at + 1))),
                );
                text.push(c);
                at += 1;
            }
            _ => {
                // A carriage return before a line feed is the file's, not the text's.
                if !(c == '\r' && rest[1..].starts_with('\n')) {
                    text.push(c);
                }
                at += c.len_utf8();
                line_start = c == '\n';
            }
        }
    }
    if !text.is_empty() || out.is_empty() {
        out.push(Part::Text(Piece { text, start: text_start as u32, end: (base + inner.len()) as u32 }));
    }
    out
}

/// Returns the layout of a multi-line string: the length of the empty first line, and the common indentation
/// of the others.
fn layout(inner: &str) -> (usize, usize) {
    let first = inner.find('\n').map_or(0, |n| if inner[..n].trim().is_empty() { n + 1 } else { 0 });
    let body = if first > 0 { &inner[first..] } else { inner.split_once('\n').map_or("", |(_, b)| b) };
    let last = body.rsplit('\n').next().unwrap_or("");
    let indent = body
        .lines()
        .filter(|l| !l.trim().is_empty() || std::ptr::eq(l.as_ptr(), last.as_ptr()))
        .map(|l| l.bytes().take_while(|b| *b == b' ' || *b == b'\t').count())
        .min()
        .unwrap_or(0);
    (first, indent)
}

/// The length of a hole with its braces. Braces inside nest, and those in its strings are text.
fn hole_length(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut characters = text.char_indices();
    while let Some((i, c)) = characters.next() {
        match c {
            '"' => loop {
                match characters.next()?.1 {
                    '"' => break,
                    '\n' => return None,
                    '\\' => {
                        characters.next()?;
                    }
                    _ => {}
                }
            },
            '\\' if characters.as_str().starts_with('"') => return escaped_hole(text),
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// The length of a hole whose strings have a backslash before their quotes, which the parser reports.
fn escaped_hole(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut inside = false;
    let mut characters = text.char_indices();
    while let Some((i, c)) = characters.next() {
        match c {
            '\\' => inside ^= characters.next()?.1 == '"',
            '"' | '\n' => return None,
            '{' if !inside => depth += 1,
            '}' if !inside => {
                depth -= 1;
                if depth == 0 {
                    return Some(i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The character that an escape represents and the length of the escape, or how long the mistake is
/// and what is wrong with it.
fn escape(text: &str) -> Result<(char, usize), (usize, String)> {
    let mut characters = text.chars();
    characters.next();
    let simple = match characters.next() {
        None => return Err((1, "a backslash at the end of a string".into())),
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('0') => '\0',
        Some(c @ ('\\' | '"' | '\'' | '{' | '}')) => c,
        Some('u') => return unicode_escape(text),
        Some(c) => return Err((1 + c.len_utf8(), format!("unknown escape `\\{c}`"))),
    };
    Ok((simple, 2))
}

fn unicode_escape(text: &str) -> Result<(char, usize), (usize, String)> {
    if let Some(rest) = text[2..].strip_prefix('{') {
        let Some(end) = rest.find('}').filter(|n| (1..=6).contains(n)) else {
            return Err((3, "`\\u{` needs one to six hexadecimal digits and `}`".into()));
        };
        let code = u32::from_str_radix(&rest[..end], 16).ok().and_then(char::from_u32);
        return match code {
            Some(c) => Ok((c, end + 4)),
            None => Err((end + 4, format!("`\\u{{{}}}` is no character", &rest[..end]))),
        };
    }
    let unit = |t: &str| {
        t.get(..4)
            .filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|h| u16::from_str_radix(h, 16).ok())
    };
    let Some(first) = unit(&text[2..]) else {
        return Err((2, "`\\u` needs four hexadecimal digits, or digits in braces".into()));
    };
    // JSON writes characters beyond the first plane as two escapes.
    let second = text[6..].strip_prefix("\\u").and_then(unit);
    let decoded = |units: &[u16]| char::decode_utf16(units.iter().copied()).next().and_then(Result::ok);
    match (decoded(&[first]), second) {
        (Some(c), _) => Ok((c, 6)),
        (None, Some(second)) => match decoded(&[first, second]) {
            Some(c) => Ok((c, 12)),
            None => Err((12, "these two escapes are not a character".into())),
        },
        (None, None) => Err((6, format!("`\\u{first:04x}` is half a character"))),
    }
}
