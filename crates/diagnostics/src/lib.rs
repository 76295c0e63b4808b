//! Places in source files, and the one type for everything Entail has to say about them.
//!
//! Entry point: [`Diagnostic`], built with [`Diagnostic::error`], [`Diagnostic::warn`] or
//! [`Diagnostic::info`], printed by [`render::text`] or [`render::json`] together with the
//! [`Sources`] that its spans point into; [`report::Report`] makes reports for other programs of many.
//!
//! Invariant: a [`Span`] is a byte range of the file *as it was read*; line and column are computed
//! only when something is printed.
//! Invariant: this crate knows nothing of terms, rules or frameworks. A code is just text here; the
//! crate that reports a code also owns its explanation.

pub mod fix;
pub mod render;
pub mod report;
mod source;

pub use source::{FileId, LineColumn, Source, Sources, Span, normal_path};

/// Severity of a finding. Ordered from the least to the most serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Worth knowing; nothing is wrong.
    Info,
    /// The analysis could not decide. Neither a defect nor a clean bill.
    Unknown,
    /// May be wrong, or is wrong but survivable.
    Warn,
    /// Wrong.
    Error,
}

impl Level {
    /// The name used in text and JSON: `info`, `unknown`, `warn` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Unknown => "unknown",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

/// A place with a remark, secondary to the place a diagnostic is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remark {
    /// Where.
    pub span: Span,
    /// Annotation of the place.
    pub text: String,
}

/// Confidence in a [`Fix`] (the terms are Ruff's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Applicability {
    /// Shown, never applied.
    DisplayOnly,
    /// May change the meaning; applied only on explicit request.
    Unsafe,
    /// Keeps the meaning, or repairs it in the only possible way.
    Safe,
}

impl Applicability {
    /// The name used in JSON: `display-only`, `unsafe` or `safe`.
    pub fn as_str(self) -> &'static str {
        match self {
            Applicability::DisplayOnly => "display-only",
            Applicability::Unsafe => "unsafe",
            Applicability::Safe => "safe",
        }
    }
}

/// A replacement of source text that would repair the finding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fix {
    /// The range that is replaced (empty for an insertion).
    pub span: Span,
    /// The new text.
    pub replacement: String,
    /// Confidence in the fix.
    pub applicability: Applicability,
}

/// One finding: what is wrong, where, and what to do about it.
///
/// # Examples
/// ```
/// use diagnostics::{Diagnostic, Sources};
/// let mut sources = Sources::new();
/// let file = sources.add("a.lam", "1 +");
/// let found = Diagnostic::error("C001", "expected an operand", sources.span(file, 2, 3))
///     .help("write a term after `+`");
/// assert!(diagnostics::render::text(&sources, &found, false).contains("a.lam:1:3"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// Stable code, for example `L004a`.
    pub code: &'static str,
    /// Severity.
    pub level: Level,
    /// The problem, in lower case, without a final period, user text in backticks.
    pub message: String,
    /// The place the finding is about; `None` only if no file could be read at all.
    pub span: Option<Span>,
    /// Short text beside the caret.
    pub label: String,
    /// Other places that matter.
    pub remarks: Vec<Remark>,
    /// The remedy.
    pub help: Vec<String>,
    /// One line of semantics from which the finding follows (lint rules).
    pub meaning: Option<&'static str>,
    /// Which framework's configuration it is about, if any.
    pub framework: Option<&'static str>,
    /// Which agent or task of the file, if any.
    pub agent: Option<String>,
    /// The name or value that tells it from other findings of its code at its place; empty if its code and
    /// place do. It is never shown.
    pub about: String,
    /// A mechanical repair, if there is one.
    pub fix: Option<Fix>,
    /// True if the source lines must not be shown because they contain a secret.
    pub hide_source: bool,
}

impl Diagnostic {
    /// A finding of the given level.
    pub fn new(
        level: Level,
        code: &'static str,
        message: impl Into<String>,
        span: impl Into<Option<Span>>,
    ) -> Self {
        Diagnostic {
            code,
            level,
            message: message.into(),
            span: span.into(),
            label: String::new(),
            remarks: Vec::new(),
            help: Vec::new(),
            meaning: None,
            framework: None,
            agent: None,
            about: String::new(),
            fix: None,
            hide_source: false,
        }
    }

    /// A finding of level error.
    pub fn error(code: &'static str, message: impl Into<String>, span: impl Into<Option<Span>>) -> Self {
        Self::new(Level::Error, code, message, span)
    }

    /// A finding of level warn.
    pub fn warn(code: &'static str, message: impl Into<String>, span: impl Into<Option<Span>>) -> Self {
        Self::new(Level::Warn, code, message, span)
    }

    /// A finding of level info.
    pub fn info(code: &'static str, message: impl Into<String>, span: impl Into<Option<Span>>) -> Self {
        Self::new(Level::Info, code, message, span)
    }

    /// Puts a short text beside the caret.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = text.into();
        self
    }

    /// Says what tells it from other findings of its code at its place.
    #[must_use]
    pub fn about(mut self, name: impl Into<String>) -> Self {
        self.about = name.into();
        self
    }

    /// Points at another place.
    #[must_use]
    pub fn remark(mut self, span: Span, text: impl Into<String>) -> Self {
        self.remarks.push(Remark { span, text: text.into() });
        self
    }

    /// Proposes a remedy.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(text.into());
        self
    }

    /// Adds a mechanical repair.
    #[must_use]
    pub fn fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }
}

/// Remedy that a front end knows for a finding that a later analysis reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The place of the finding.
    pub at: Span,
    /// The change to make.
    pub help: String,
}

impl Hint {
    /// Adds the remedies to the findings at their places.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{Diagnostic, FileId, Hint, Span};
    /// let at = Span { file: FileId(0), start: 3, end: 9 };
    /// let hint = Hint { at, help: "bind `to` before the `if`".into() };
    /// let mut found = [Diagnostic::error("S101", "refused", at)];
    /// Hint::add(&[hint], &mut found);
    /// assert_eq!(found[0].help, ["bind `to` before the `if`"]);
    /// ```
    pub fn add(hints: &[Hint], found: &mut [Diagnostic]) {
        for d in found {
            let own = hints.iter().filter(|h| d.span == Some(h.at) && !d.help.contains(&h.help));
            d.help.extend(own.map(|h| h.help.clone()).collect::<Vec<_>>());
        }
    }
}

/// Explanation of a code for `entail explain`. The crate that reports a code keeps its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: &'static str,
    /// Short title of the problem.
    pub title: &'static str,
    /// Explanation of the problem and its remedy.
    pub text: &'static str,
    /// A source that has the fault; empty where none is small enough to show.
    pub wrong: &'static str,
    /// Corrected example; empty where none can be right (limits).
    pub right: &'static str,
}

/// Puts diagnostics in the order of their places. Those without one come first, those of one place keep their
/// order.
///
/// ```
/// # use diagnostics::{Diagnostic, FileId, Span};
/// let at = |start| Span { file: FileId(0), start, end: start + 1 };
/// let mut all = vec![Diagnostic::error("X001", "second", at(7)), Diagnostic::error("X001", "first", at(3))];
/// diagnostics::sort(&mut all);
/// assert_eq!(all[0].message, "first");
/// ```
pub fn sort(all: &mut [Diagnostic]) {
    all.sort_by_key(|d| d.span);
}

/// Returns true if any finding has the level error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.level == Level::Error)
}

/// The beginning of a user's text on one line, for messages: at most 60 characters, control characters
/// as spaces.
///
/// # Examples
/// ```
/// assert_eq!(diagnostics::clip("two\nlines"), "two lines");
/// ```
pub fn clip(text: &str) -> String {
    clip_to(text, 60)
}

/// [`clip`] to another length.
pub fn clip_to(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (i, c) in text.trim().chars().enumerate() {
        if i == most {
            out.push('…');
            break;
        }
        out.push(if c.is_control() { ' ' } else { c });
    }
    out
}

/// Returns a name as a key of TOML, in quotes if it needs them.
///
/// # Examples
/// ```
/// assert_eq!(diagnostics::toml_key("web_search"), "web_search");
/// assert_eq!(diagnostics::toml_key("web search"), "\"web search\"");
/// ```
pub fn toml_key(name: &str) -> String {
    if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')) {
        return name.to_string();
    }
    let mut out = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text with everything escaped that controls a terminal or is not seen: control characters, and those that
/// change the direction of writing, have no width or show nothing. Of long texts the beginning, and how much
/// is left out.
///
/// # Examples
/// ```
/// assert_eq!(diagnostics::visible("a\u{202e}b\u{3164}", 9), r"a\u{202e}b\u{3164}");
/// assert_eq!(diagnostics::visible("abc", 2), "ab … and 1 more characters");
/// ```
pub fn visible(text: &str, most: usize) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    for c in chars.by_ref().take(most) {
        let hidden = c.is_control()
            || matches!(
                c,
                '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            )
            || matches!(c, '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
            || matches!(c, '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}')
            || matches!(c, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
        if hidden { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    match chars.count() {
        0 => out,
        left => format!("{out} … and {left} more characters"),
    }
}

/// The candidate nearest to `name` by edit distance, if it is near enough to be a likely slip.
///
/// # Examples
/// ```
/// assert_eq!(diagnostics::nearest("sumarize", ["classify", "summarize"]), Some("summarize"));
/// assert_eq!(diagnostics::nearest("x", ["classify"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names longer than this are never slips of one another worth the quadratic work.
    const MAX_NAME_LEN: usize = 64;
    let length = name.chars().count();
    if length > MAX_NAME_LEN {
        return None;
    }
    let allowed = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|c| c.chars().count() <= MAX_NAME_LEN && *c != name)
        .map(|c| (edit_distance(name, c), c))
        .filter(|(d, _)| *d <= allowed)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// The characters of a name that say which words it has: `wordCount` and `word_count` have the same.
fn words_of(name: &str) -> impl Iterator<Item = char> + '_ {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase)
}

/// Distance in characters that are inserted, left out, replaced, or swapped with their neighbor. Names of the
/// same words in another style are one apart.
fn edit_distance(a: &str, b: &str) -> usize {
    if words_of(a).eq(words_of(b)) {
        return usize::from(a != b);
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let replaced = row[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_have_swapped_characters_or_another_style() {
        assert_eq!(nearest("srot", ["sort", "send"]), Some("sort"));
        assert_eq!(nearest("pya", ["pay"]), Some("pay"));
        assert_eq!(nearest("wordCount", ["words", "word_count"]), Some("word_count"));
        assert_eq!(nearest("xy", ["ab"]), None);
    }

    #[test]
    fn texts_are_clipped_to_one_line_of_characters() {
        assert_eq!(clip_to("a\nb\u{1b}[31m", 3), "a b…");
        assert_eq!(clip_to("äöü", 3), "äöü");
    }
}
