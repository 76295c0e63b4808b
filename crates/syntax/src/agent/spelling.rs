//! Names, texts and comments as the language writes them, for declarations that are generated.

use super::keywords::is_reserved;
use std::fmt::Write as _;

/// Returns whether a text can be the name of a parameter or field.
///
/// # Examples
/// ```
/// use syntax::agent::spelling::is_name;
/// assert!(is_name("page_2") && !is_name("if") && !is_name("2nd") && !is_name("from-date"));
/// ```
pub fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_reserved(name)
}

/// A string of the language.
pub fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Writing to a string cannot fail.
            c if c.is_control() => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text as the rest of a comment: on one line, without what a reader can't see.
pub fn comment(text: &str) -> String {
    let words: Vec<String> =
        text.split_whitespace().map(|w| diagnostics::visible(w, usize::MAX).to_string()).collect();
    words.join(" ")
}

/// The name outside of the program of a tool that comes from elsewhere: `SOURCE__NAME`.
///
/// # Examples
/// ```
/// assert_eq!(syntax::agent::spelling::tool_of("git hub", "search"), "git_hub__search");
/// ```
pub fn tool_of(source: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let source: String = source.chars().map(plain).collect();
    let parts: Vec<&str> = source.split('_').filter(|p| !p.is_empty()).collect();
    format!("{}__{name}", parts.join("_"))
}
