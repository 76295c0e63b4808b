//! Diagnostics as text for people and as JSON for programs.

use crate::{Applicability, Diagnostic, Fix, Level, Source, Sources, Span};
use annotate_snippets::{AnnotationKind, Group, Level as Title, Patch, Renderer, Snippet};
use serde_json::{Map, Value, json};

/// Longest line that is shown with its finding. A longer one (minified JSON) is named by place only.
const MAX_LINE_LEN: usize = 400;

/// A finding on one line: level, code, place and message.
///
/// # Examples
/// ```
/// use diagnostics::{Diagnostic, Sources, render};
/// let mut sources = Sources::new();
/// let file = sources.add("a.yaml", "type: react\n");
/// let d = Diagnostic::warn("L017", "no bound", sources.span(file, 6, 11));
/// assert_eq!(render::line(&sources, &d), "warning[L017]: a.yaml:1:7: no bound");
/// ```
pub fn line(sources: &Sources, d: &Diagnostic) -> String {
    let level = match d.level {
        Level::Warn => "warning",
        other => other.as_str(),
    };
    let at = d.span.map_or(String::new(), |s| format!("{}: ", sources.place(s)));
    format!("{level}[{}]: {}{}", d.code, visible(&at), visible(&d.message))
}

/// A finding as people read it: title, source excerpt with carets, help. Ends without a line break.
///
/// Control characters of the source (terminal escapes in hostile files) are shown as visible
/// stand-ins, never passed on.
pub fn text(sources: &Sources, d: &Diagnostic, color: bool) -> String {
    let title = match d.level {
        Level::Error => Title::ERROR,
        Level::Warn => Title::WARNING,
        Level::Info => Title::INFO,
        Level::Unknown => Title::WARNING.with_name("unknown"),
    };
    let message = visible(&d.message);
    let label = visible(&d.label);
    let remarks: Vec<String> = d.remarks.iter().map(|r| visible(&r.text)).collect();
    let mut group = Group::with_title(title.primary_title(&*message).id(d.code));
    let mut shown: Vec<(Span, AnnotationKind, &str)> = Vec::new();
    if let Some(span) = d.span {
        shown.push((span, AnnotationKind::Primary, &label));
    }
    for (r, t) in d.remarks.iter().zip(&remarks) {
        shown.push((r.span, AnnotationKind::Context, t));
    }
    let (excerpts, notes) = excerpts(sources, &shown, if d.hide_source { 0 } else { MAX_LINE_LEN });
    for e in &excerpts {
        let mut snippet = Snippet::source(e.text.as_str()).path(e.path).line_start(e.first as usize);
        for (range, kind, text) in &e.annotations {
            let annotation = (*kind).span(range.clone());
            snippet = snippet.annotation(if text.is_empty() { annotation } else { annotation.label(*text) });
        }
        group = group.element(snippet);
    }
    for note in &notes {
        group = group.element(Title::NOTE.message(note.as_str()));
    }
    let help: Vec<String> = d.help.iter().map(|h| visible(h)).collect();
    for h in &help {
        group = group.element(Title::HELP.message(h.as_str()));
    }
    if let Some(meaning) = d.meaning {
        group = group.element(Title::NOTE.message(meaning));
    }
    let mut groups = vec![group];
    // A fix that is never applied is at least shown.
    let shown = d.fix.as_ref().filter(|f| f.applicability == Applicability::DisplayOnly && !d.hide_source);
    let change = shown.and_then(|fix| change(sources, fix));
    if let Some((path, first, lines, range, new)) = &change {
        let snippet = Snippet::source(lines.as_str()).path(path.as_str()).line_start(*first as usize);
        let title = Title::HELP.secondary_title("suggested change");
        groups.push(Group::with_title(title).element(snippet.patch(Patch::new(range.clone(), new.as_str()))));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    renderer.render(&groups).to_string()
}

/// The path, the first line, the lines around a change, its place in them and its text; nothing if that is
/// too much to be shown.
fn change(sources: &Sources, fix: &Fix) -> Option<(String, u32, String, std::ops::Range<usize>, String)> {
    const MAX_LINES: u32 = 12;
    let source = sources.get(fix.span.file)?;
    let first = source.line_column(fix.span.start).line;
    let last = source.line_column(fix.span.end.max(fix.span.start + 1) - 1).line;
    let short = |l: u32| source.line_range(l).len() <= MAX_LINE_LEN;
    if last - first >= MAX_LINES || !(first..=last).all(short) {
        return None;
    }
    let (base, end) = (source.line_range(first).start, source.line_range(last).end);
    // The range of a line leaves its break out; what is removed may have it.
    let end = end.max(fix.span.end as usize);
    let text = source.text.get(base..end)?;
    let range = fix.span.start as usize - base..fix.span.end as usize - base;
    Some((source.path.clone(), first, visible(text), range, visible(&fix.replacement)))
}

/// Lines of one file with what is marked in them.
struct Excerpt<'a> {
    source: &'a Source,
    path: &'a str,
    /// The lines, by number from 1.
    first: u32,
    last: u32,
    places: Vec<(Span, AnnotationKind, &'a str)>,
    text: String,
    /// The places as ranges of the text.
    annotations: Vec<(std::ops::Range<usize>, AnnotationKind, &'a str)>,
}

/// Places in one file that lie near each other share an excerpt. A place whose lines are too long to be shown
/// (minified JSON) becomes a note.
fn excerpts<'a>(
    sources: &'a Sources,
    shown: &[(Span, AnnotationKind, &'a str)],
    longest: usize,
) -> (Vec<Excerpt<'a>>, Vec<String>) {
    const MAX_LINES: u32 = 4;
    const NEAR: u32 = 40;
    let mut out: Vec<Excerpt<'a>> = Vec::new();
    let mut notes = Vec::new();
    for (span, kind, text) in shown.iter().cloned() {
        let Some(source) = sources.get(span.file) else { continue };
        let first = source.line_column(span.start).line;
        let last = source.line_column(span.end.max(span.start + 1) - 1).line.min(first + MAX_LINES - 1);
        let showable = |first: u32, last: u32| (first..=last).all(|l| source.line_range(l).len() <= longest);
        if !showable(first, last) {
            let colon = if text.is_empty() { "" } else { ": " };
            notes.push(format!("at {}{colon}{text}", sources.place(span)));
            continue;
        }
        let near = out.iter_mut().find(|e| {
            let (a, b) = (e.first.min(first), e.last.max(last));
            std::ptr::eq(e.source, source) && b - a <= NEAR && showable(a, b)
        });
        match near {
            Some(e) => {
                (e.first, e.last) = (e.first.min(first), e.last.max(last));
                e.places.push((span, kind, text));
            }
            None => out.push(Excerpt {
                source,
                path: &source.path,
                first,
                last,
                places: vec![(span, kind, text)],
                text: String::new(),
                annotations: Vec::new(),
            }),
        }
    }
    for e in &mut out {
        let base = e.source.line_range(e.first).start;
        let end = e.source.line_range(e.last).end;
        let text = e.source.text.get(base..end).unwrap_or("");
        let inside = |offset: u32| {
            let mut at = (offset as usize).saturating_sub(base).min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        for (span, kind, label) in e.places.drain(..) {
            let start = inside(span.start);
            e.annotations.push((start..inside(span.end).max(start), kind, label));
        }
        e.text = visible(text);
    }
    (out, notes)
}

/// Replaces control characters (but not tab and line feed) by one-byte stand-ins, so that byte
/// offsets stay valid and a terminal obeys nothing that a file says. A carriage return before a line feed
/// becomes a space.
fn visible(text: &str) -> String {
    let mut rest = text.chars();
    std::iter::from_fn(|| rest.next().map(|c| (c, rest.clone().next())))
        .map(|(c, next)| match c {
            '\t' | '\n' => c,
            '\r' if next == Some('\n') => ' ',
            c if c.is_ascii_control() => '?',
            // C1 controls and bidirectional overrides, replaced by a character of the same width.
            '\u{80}'..='\u{9f}' => '\u{a4}',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// A finding as one JSON object, in the shape of the command-line contract.
///
/// # Examples
/// ```
/// # use diagnostics::*;
/// let mut sources = Sources::new();
/// let file = sources.add("a.yaml", "x: 1\n");
/// let d = Diagnostic::warn("L017", "no bound", sources.span(file, 0, 1));
/// let json = render::json(&sources, &d);
/// assert_eq!(json["line"], 1);
/// assert_eq!(json["level"], "warn");
/// ```
pub fn json(sources: &Sources, d: &Diagnostic) -> Value {
    let mut object = Map::new();
    object.insert("code".into(), d.code.into());
    object.insert("level".into(), d.level.as_str().into());
    object.insert("message".into(), d.message.clone().into());
    if let Some(span) = d.span
        && let Value::Object(place) = place(sources, span)
    {
        object.extend(place);
    }
    if let Some(framework) = d.framework {
        object.insert("framework".into(), framework.into());
    }
    if let Some(agent) = &d.agent {
        object.insert("agent".into(), agent.clone().into());
    }
    if let Some(meaning) = d.meaning {
        object.insert("meaning".into(), meaning.into());
    }
    if !d.help.is_empty() {
        object.insert("help".into(), d.help.join("; ").into());
    }
    let evidence: Vec<Value> = d
        .remarks
        .iter()
        .map(|r| {
            let mut e = place(sources, r.span);
            if let Some(o) = e.as_object_mut() {
                o.insert("text".into(), r.text.clone().into());
            }
            e
        })
        .collect();
    if !evidence.is_empty() {
        object.insert("evidence".into(), evidence.into());
    }
    if let Some(fix) = &d.fix
        && let Value::Object(mut change) = place(sources, fix.span)
    {
        change.insert("replacement".into(), fix.replacement.clone().into());
        change.insert("applicability".into(), fix.applicability.as_str().into());
        object.insert("fix".into(), change.into());
    }
    Value::Object(object)
}

fn place(sources: &Sources, span: Span) -> Value {
    let Some(source) = sources.get(span.file) else { return json!({}) };
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    json!({
        "path": source.path, "line": start.line, "column": start.column,
        "endLine": end.line, "endColumn": end.column,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text_of_file: &str, start: usize, end: usize) -> String {
        let mut sources = Sources::new();
        let file = sources.add("f.lam", text_of_file);
        text(
            &sources,
            &Diagnostic::error("T001", "bad `x`", sources.span(file, start, end)).label("here"),
            false,
        )
    }

    #[test]
    fn points_at_the_place() {
        let out = shown("let x = 1\nlet y = x\n", 18, 19);
        assert!(out.contains("error[T001]: bad `x`"), "{out}");
        assert!(out.contains("f.lam:2:9") && out.contains("^ here"), "{out}");
    }

    #[test]
    fn a_place_at_the_end_of_the_file_or_past_it_is_shown() {
        for (s, e) in [(0, 0), (3, 3), (3, 900), (800, 900)] {
            assert!(shown("abc", s, e).contains("f.lam"), "{s}..{e}");
        }
        assert!(shown("", 0, 0).contains("bad `x`"));
        assert!(shown("a\n", 2, 2).contains("f.lam:2:1"));
    }

    #[test]
    fn terminal_escapes_of_a_file_are_not_passed_on() {
        let out = shown("a \u{1b}[31m red \u{202e}\u{9b} b", 0, 1);
        assert!(!out.contains('\u{1b}') && !out.contains('\u{202e}') && !out.contains('\u{9b}'), "{out:?}");
    }

    #[test]
    fn line_breaks_of_windows_are_none_of_the_text() {
        let mut sources = Sources::new();
        let file = sources.add("f", "a\r\nb\rc\r\nd\r\n");
        let d =
            Diagnostic::error("X", "m", sources.span(file, 8, 9)).remark(sources.span(file, 0, 1), "first");
        let out = text(&sources, &d, false);
        assert!(!out.contains('\r') && !out.contains("a?") && !out.contains("c?"), "{out}");
    }

    #[test]
    fn places_that_are_near_share_an_excerpt() {
        let mut sources = Sources::new();
        let file = sources.add("f", "a\nb\nc\n");
        let d =
            Diagnostic::error("X", "m", sources.span(file, 4, 5)).remark(sources.span(file, 0, 1), "first");
        let out = text(&sources, &d, false);
        assert_eq!(out.matches("f:").count(), 1, "{out}");
        assert!(out.contains("- first") && out.contains('^'), "{out}");
    }

    #[test]
    fn a_very_long_line_is_named_not_shown() {
        let out = shown(&"x".repeat(100_000), 50_000, 50_001);
        assert!(out.len() < 1000 && out.contains("f.lam:1:50001"), "{out}");
    }
}
