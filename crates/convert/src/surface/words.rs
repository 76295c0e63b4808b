//! Names, texts, numbers and flow words as the surface language writes them.

use core_ir::{LabelSpec, Num};
use std::fmt::Write;
use syntax::agent::keywords::is_reserved;

/// The words for a bound, as far as there are some.
pub(super) fn required(bound: &LabelSpec) -> String {
    match bound {
        LabelSpec::Axes { untrusted, secret } => {
            let word = |lacks: bool, word: &'static str| if lacks { word } else { "" };
            format!("{}{}", word(!untrusted, " requires trusted"), word(!secret, " requires public"))
        }
        LabelSpec::Exact(_) => String::new(),
    }
}

/// Returns true if a text can be a name of the program as it is.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(name)
}

/// A text between quotes.
pub(super) fn text(s: &str) -> String {
    format!("\"{}\"", escaped(s))
}

/// Escapes the content of a string literal.
pub(super) fn escaped(s: &str) -> String {
    let mut out = String::new();
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Control characters have four digits at most.
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

/// A number; a fraction that has no finite decimals is a quotient.
pub(super) fn number(n: &Num) -> String {
    let text = n.to_string();
    match text.split_once('/') {
        Some((a, b)) => format!("({a} / {b})"),
        None => text,
    }
}

/// A text between quotes in which braces would open holes: they are doubled.
pub(super) fn template(s: &str) -> String {
    format!("\"{}\"", escaped(s).replace('{', "{{").replace('}', "}}"))
}
