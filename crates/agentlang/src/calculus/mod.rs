//! Programs of the calculus itself: `.lam` files, and code that models write, with the prelude in scope.
//!
//! Entry points: [`compile`] for a file, [`parse_generated`] for a model's reply.

use core_ir::{Code, Globals};
use diagnostics::{Diagnostic, FileId, Level, Sources};
use std::sync::{Arc, OnceLock};
use syntax::lam::{self, Options, Parsed};

/// The text of the prelude.
pub const PRELUDE: &str = include_str!("prelude.lam");

/// The file that spans of the prelude name. No [`Sources`] holds it, so a message that points there shows
/// no excerpt instead of a wrong one.
pub const PRELUDE_FILE: FileId = FileId(u32::MAX);

/// The file that spans of generated code name; no [`Sources`] holds it either.
pub const GENERATED_FILE: FileId = FileId(u32::MAX - 1);

/// The prelude: closed functions that every program may refer to.
///
/// # Examples
/// ```
/// assert!(agentlang::calculus::prelude().index("quarantine").is_some());
/// ```
pub fn prelude() -> Arc<Globals> {
    static PRELUDE_GLOBALS: OnceLock<Arc<Globals>> = OnceLock::new();
    PRELUDE_GLOBALS
        .get_or_init(|| match lam::parse_globals(PRELUDE_FILE, PRELUDE) {
            Ok(globals) => Arc::new(globals),
            // The text is part of this crate, and a test reads it.
            Err(_) => Globals::none(),
        })
        .clone()
}

/// Reads a `.lam` program with the prelude in scope.
///
/// # Examples
/// ```
/// let mut sources = diagnostics::Sources::new();
/// let text = "map (\\x. x * x) [1, 2, 3]";
/// let file = sources.add("squares.lam", text);
/// assert!(agentlang::calculus::compile(file, text).code.is_some());
/// ```
pub fn compile(file: FileId, text: &str) -> Parsed {
    lam::parse(file, text, &prelude(), Options::PROGRAM)
}

/// Reads a program that consists of several parts, with the prelude in scope; see [`lam::parse_parts`].
pub fn compile_parts(parts: &[lam::Part<'_>]) -> Parsed {
    lam::parse_parts(parts, &prelude(), Options::PROGRAM)
}

/// Reads what a model wrote as code: a term over the prelude that contains no `endorse`, `declassify` or
/// tool. One fence of backticks around the whole reply is taken off, because models put one there.
///
/// # Errors
/// What is wrong and where, as a text that can be given back to the model.
///
/// # Examples
/// ```
/// use agentlang::calculus::parse_generated;
/// assert!(parse_generated("```\n\\x. x + 1\n```").is_ok());
/// assert_eq!(
///     parse_generated("1 +").unwrap_err(),
///     "line 1, column 4: expected a term, found the end of the text"
/// );
/// assert!(parse_generated("tool[rm] '/'").is_err());
/// ```
pub fn parse_generated(text: &str) -> Result<Arc<Code>, String> {
    parse_generated_with(text, Options::GENERATED)
}

/// [`parse_generated`] under a policy that may allow more.
///
/// # Errors
/// As for [`parse_generated`].
pub fn parse_generated_with(text: &str, options: Options) -> Result<Arc<Code>, String> {
    let text = without_fence(text);
    let parsed = lam::parse(GENERATED_FILE, text, &prelude(), options);
    parsed.code.map(Arc::new).ok_or_else(|| explain(text, &parsed.diagnostics))
}

/// The first errors, one a line, with places in the reply.
fn explain(text: &str, diagnostics: &[Diagnostic]) -> String {
    /// More than this does not help a model to repair its reply.
    const MAX_EXPLANATIONS: usize = 5;
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let lines: Vec<String> = diagnostics
        .iter()
        .filter(|d| d.level == Level::Error)
        .take(MAX_EXPLANATIONS)
        .map(|d| {
            let place = d.span.zip(sources.get(file)).map(|(span, source)| source.line_column(span.start));
            let mut line = match place {
                Some(at) => format!("line {}, column {}: {}", at.line, at.column, d.message),
                None => d.message.clone(),
            };
            for help in &d.help {
                line.push_str("; ");
                line.push_str(help);
            }
            line
        })
        .collect();
    lines.join("\n")
}

/// The text inside a fence of backticks around the whole of it, if there is one.
fn without_fence(text: &str) -> &str {
    let inner = text.trim();
    let Some(rest) = inner.strip_prefix("```") else { return text };
    let Some(body) = rest.strip_suffix("```") else { return text };
    // The rest of the first line names a language.
    match body.split_once('\n') {
        Some((language, code)) if language.trim().chars().all(char::is_alphanumeric) => code,
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prelude_is_read_without_complaint() {
        let globals = lam::parse_globals(PRELUDE_FILE, PRELUDE).unwrap_or_else(|e| panic!("{e:#?}"));
        assert_eq!(globals.names().len(), prelude().names().len());
        for name in ["fix", "map", "filter", "fold", "any", "all", "quarantine", "is_fn", "append", "length"]
        {
            assert!(globals.index(name).is_some(), "{name}");
        }
    }

    #[test]
    fn fences_are_taken_off_once() {
        assert_eq!(without_fence("```js\n1\n```"), "1\n");
        assert_eq!(without_fence("  ```1```\n"), "1");
        assert_eq!(without_fence("```\n```\n1\n```\n```"), "```\n1\n```\n");
        assert_eq!(without_fence("`a"), "`a");
        assert_eq!(without_fence("```"), "```");
        assert_eq!(without_fence("see ```1```"), "see ```1```");
    }

    #[test]
    fn generated_code_errors_have_locations() {
        let said = parse_generated("```\nlet f = \\n. n +\nf )\n```").unwrap_err();
        assert!(said.starts_with("line 2, column 3: "), "{said}");
        let said = parse_generated("lenght [1]").unwrap_err();
        assert!(said.contains("did you mean `length`?"), "{said}");
    }
}
