//! Findings as reports for other programs: SARIF, GitHub annotations, a Markdown summary.
//!
//! Entry points: [`Report`], which collects the findings of many files and becomes one document;
//! [`fingerprints`], which name findings across versions of a file.
//!
//! Invariant: like [`render`](crate::render), nothing here knows what a code means; the rules that a SARIF
//! document lists are handed in.

use crate::{Applicability, Diagnostic, Level, Source, Sources, Span};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt::Write;

/// Description of a code in a report.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// The code, `L003`.
    pub code: &'static str,
    /// Its name, `vacuous-loop`.
    pub name: &'static str,
    /// Summary of the problem in one line.
    pub summary: &'static str,
    /// The whole explanation, in Markdown.
    pub text: &'static str,
}

/// A finding as it goes into a report.
#[derive(Clone, Debug)]
struct Row {
    code: &'static str,
    level: Level,
    path: String,
    line: u32,
    message: String,
    /// The SARIF result, without its rule's index.
    result: Map<String, Value>,
    /// The annotation on GitHub.
    annotation: String,
}

/// Findings of many files.
///
/// # Examples
/// ```
/// use diagnostics::{Diagnostic, Sources, report::Report};
/// let mut sources = Sources::new();
/// let file = sources.add("a.yaml", "maxSteps: 0\n");
/// let mut report = Report::default();
/// report.add(&sources, &[Diagnostic::error("L003", "never runs", sources.span(file, 10, 11))]);
/// let expected = "::error title=L003,file=a.yaml,line=1,endLine=1,col=11,endColumn=12::never runs\n";
/// assert_eq!(report.github(), expected);
/// assert_eq!(report.sarif("0.1.0", &[])["runs"][0]["results"][0]["ruleId"], "L003");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds the findings whose spans point into the sources.
    pub fn add(&mut self, sources: &Sources, found: &[Diagnostic]) {
        for (d, fingerprint) in found.iter().zip(fingerprints(sources, found)) {
            let at = d.span.and_then(|s| sources.get(s.file).map(|source| (source, s)));
            self.rows.push(Row {
                code: d.code,
                level: d.level,
                path: at.map(|(source, _)| source.path.clone()).unwrap_or_default(),
                line: at.map_or(0, |(source, s)| source.line_column(s.start).line),
                message: d.message.clone(),
                result: result(sources, d, fingerprint),
                annotation: annotation(at, d),
            });
        }
    }

    /// A SARIF 2.1.0 log of one run. Codes that `rules` does not name are listed without a description.
    ///
    /// A finding of level unknown is a result of kind `open`, which is SARIF's word for it.
    pub fn sarif(&self, version: &str, rules: &[RuleInfo]) -> Value {
        let mut listed: Vec<Value> = Vec::new();
        let mut index: HashMap<&str, usize> = HashMap::new();
        let mut results = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let number = *index.entry(row.code).or_insert_with(|| {
                listed.push(rule(row.code, rules));
                listed.len() - 1
            });
            let mut result = row.result.clone();
            result.insert("ruleIndex".into(), number.into());
            results.push(Value::Object(result));
        }
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {"driver": {"name": "entail", "version": version, "rules": listed}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        })
    }

    /// Workflow commands that GitHub shows as annotations of the files, a line each.
    pub fn github(&self) -> String {
        self.rows.iter().fold(String::new(), |mut out, row| {
            out.push_str(&row.annotation);
            out.push('\n');
            out
        })
    }

    /// A summary for a job page or a comment: counts, then a table.
    pub fn markdown(&self) -> String {
        let count = |level| self.rows.iter().filter(|r| r.level == level).count();
        let mut out = String::from("## entail lint\n\n");
        if self.rows.is_empty() {
            out.push_str("Nothing found.\n");
            return out;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "error: {}, warn: {}, unknown: {}, info: {}\n\n| level | code | place | finding |\n|---|---|---|---|",
            count(Level::Error),
            count(Level::Warn),
            count(Level::Unknown),
            count(Level::Info),
        );
        for row in &self.rows {
            let _ = writeln!(
                out,
                "| {} | {} | {}:{} | {} |",
                row.level.as_str(),
                row.code,
                cell(&row.path),
                row.line,
                cell(&row.message)
            );
        }
        out
    }
}

/// Text in a cell of a Markdown table: no line breaks, no bars, no markup of HTML. Code spans stay.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' => out.push_str("\\|"),
            '<' => out.push_str("&lt;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn rule(code: &str, rules: &[RuleInfo]) -> Value {
    match rules.iter().find(|r| r.code == code) {
        None => json!({"id": code}),
        Some(r) => json!({
            "id": code,
            "name": r.name,
            "shortDescription": {"text": r.summary},
            "help": {"text": r.text, "markdown": r.text},
        }),
    }
}

fn result(sources: &Sources, d: &Diagnostic, fingerprint: String) -> Map<String, Value> {
    let (level, kind) = match d.level {
        Level::Error => ("error", "fail"),
        Level::Warn => ("warning", "fail"),
        Level::Info => ("note", "fail"),
        Level::Unknown => ("none", "open"),
    };
    let mut text = d.message.clone();
    for help in &d.help {
        text.push_str("\nhelp: ");
        text.push_str(help);
    }
    let mut out = Map::new();
    out.insert("ruleId".into(), d.code.into());
    out.insert("level".into(), level.into());
    out.insert("kind".into(), kind.into());
    out.insert("message".into(), json!({"text": text}));
    let main = d.span.and_then(|s| location(sources, s, &d.label));
    if let Some(mut main) = main.clone() {
        if let (Some(agent), Some(o)) = (&d.agent, main.as_object_mut()) {
            o.insert("logicalLocations".into(), json!([{"name": agent, "kind": "member"}]));
        }
        out.insert("locations".into(), json!([main]));
    }
    let evidence: Vec<Value> = d.remarks.iter().filter_map(|r| location(sources, r.span, &r.text)).collect();
    if !evidence.is_empty() {
        // The way to the finding, ending at it.
        let steps: Vec<Value> = evidence.iter().chain(&main).map(|l| json!({"location": l})).collect();
        out.insert("codeFlows".into(), json!([{"threadFlows": [{"locations": steps}]}]));
        out.insert("relatedLocations".into(), evidence.into());
    }
    out.insert("partialFingerprints".into(), json!({"entail/v1": fingerprint}));
    if let Some(fix) = &d.fix
        && fix.applicability > Applicability::DisplayOnly
        && let Some(source) = sources.get(fix.span.file)
    {
        out.insert(
            "fixes".into(),
            json!([{
                "description": {"text": d.help.first().unwrap_or(&d.message)},
                "artifactChanges": [{
                    "artifactLocation": {"uri": uri(&source.path)},
                    "replacements": [{
                        "deletedRegion": region(source, fix.span),
                        "insertedContent": {"text": fix.replacement},
                    }],
                }],
            }]),
        );
    }
    let mut properties = Map::new();
    if let Some(framework) = d.framework {
        properties.insert("framework".into(), framework.into());
    }
    if let Some(meaning) = d.meaning {
        properties.insert("meaning".into(), meaning.into());
    }
    if !properties.is_empty() {
        out.insert("properties".into(), properties.into());
    }
    out
}

fn location(sources: &Sources, span: Span, text: &str) -> Option<Value> {
    let source = sources.get(span.file)?;
    let mut out = json!({"physicalLocation": {
        "artifactLocation": {"uri": uri(&source.path)},
        "region": region(source, span),
    }});
    if !text.is_empty()
        && let Some(o) = out.as_object_mut()
    {
        o.insert("message".into(), json!({"text": text}));
    }
    Some(out)
}

fn region(source: &Source, span: Span) -> Value {
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    json!({
        "startLine": start.line, "startColumn": start.column,
        "endLine": end.line, "endColumn": end.column,
    })
}

/// A path as a URI reference: slashes, and percent signs for what may not stand in one.
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for &b in path.strip_prefix("./").unwrap_or(path).as_bytes() {
        match b {
            b'\\' => out.push('/'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' | b'@' | b'+' => {
                out.push(char::from(b));
            }
            b => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{b:02X}");
            }
        }
    }
    out
}

fn annotation(at: Option<(&Source, Span)>, d: &Diagnostic) -> String {
    let command = match d.level {
        Level::Error => "error",
        Level::Warn => "warning",
        Level::Info | Level::Unknown => "notice",
    };
    let mut out = format!("::{command} title={}", d.code);
    if let Some((source, span)) = at {
        let (start, end) = (source.line_column(span.start), source.line_column(span.end));
        let path = escaped(source.path.strip_prefix("./").unwrap_or(&source.path), true);
        // Writing to a string cannot fail.
        let _ = write!(out, ",file={path},line={},endLine={}", start.line, end.line);
        // GitHub refuses columns of a range over several lines.
        if start.line == end.line {
            let _ = write!(out, ",col={},endColumn={}", start.column, end.column);
        }
    }
    out.push_str("::");
    let mut message = d.message.clone();
    for help in &d.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    out.push_str(&escaped(&message, false));
    out
}

/// Text in a workflow command; a property also hides what separates properties.
fn escaped(text: &str, property: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' => out.push_str("%25"),
            '\r' => out.push_str("%0D"),
            '\n' => out.push_str("%0A"),
            ':' if property => out.push_str("%3A"),
            ',' if property => out.push_str("%2C"),
            c => out.push(c),
        }
    }
    out
}

/// A name for each finding that outlives changes elsewhere in the file: made of the code, the path, the agent
/// and the text of the line, and of a number where these agree.
///
/// # Examples
/// ```
/// use diagnostics::{Diagnostic, Sources, report::fingerprints};
/// let named = |text: &str, at| {
///     let mut sources = Sources::new();
///     let file = sources.add("a.yaml", text);
///     fingerprints(&sources, &[Diagnostic::warn("L017", "no bound", sources.span(file, at, at + 1))])
/// };
/// assert_eq!(named("type: react\n", 0), named("# a comment\ntype: react\n", 12));
/// assert_ne!(named("type: react\n", 0), named("type: chain\n", 0));
/// ```
pub fn fingerprints(sources: &Sources, found: &[Diagnostic]) -> Vec<String> {
    let mut seen: HashMap<u64, u64> = HashMap::new();
    let mut out = Vec::with_capacity(found.len());
    for d in found {
        let mut hash = Fnv::default();
        hash.text(d.code);
        if let Some((source, span)) = d.span.and_then(|s| sources.get(s.file).map(|source| (source, s))) {
            hash.text(&uri(&source.path));
            hash.text(source.line(source.line_column(span.start).line).trim());
        }
        hash.text(d.agent.as_deref().unwrap_or(""));
        let before = seen.entry(hash.0).or_insert(0);
        hash.text(&before.to_string());
        *before += 1;
        out.push(format!("{:016x}", hash.0));
    }
    out
}

/// FNV-1a of 64 bits: names must stay the same from version to version, which the standard hasher does not
/// promise.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Takes a text, and a byte that stands in none, as its end.
    fn text(&mut self, text: &str) {
        for b in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fix;

    fn one(path: &str, make: impl FnOnce(Span) -> Diagnostic) -> Report {
        let mut sources = Sources::new();
        let file = sources.add(path, "a: 1\nb: 2\n");
        let mut report = Report::default();
        report.add(&sources, &[make(sources.span(file, 5, 6))]);
        report
    }

    #[test]
    fn unknown_is_an_open_result() {
        let log = one("a.yaml", |s| Diagnostic::new(Level::Unknown, "L001", "m", s)).sarif("1", &[]);
        let result = &log["runs"][0]["results"][0];
        assert_eq!((result["kind"].as_str(), result["level"].as_str()), (Some("open"), Some("none")));
    }

    #[test]
    fn evidence_is_a_code_flow_that_ends_at_the_finding() {
        let log = one("a.yaml", |s| {
            let before = Span { file: s.file, start: 0, end: 1 };
            Diagnostic::error("L001", "m", s).remark(before, "first")
        })
        .sarif("1", &[]);
        let steps = &log["runs"][0]["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"];
        let line = |i: usize| steps[i]["location"]["physicalLocation"]["region"]["startLine"].as_u64();
        assert_eq!((line(0), line(1)), (Some(1), Some(2)));
    }

    #[test]
    fn fixes_name_the_range_and_the_text() {
        let log = one("a.yaml", |s| {
            Diagnostic::error("L003", "m", s).fix(Fix {
                span: s,
                replacement: "c".into(),
                applicability: Applicability::Unsafe,
            })
        })
        .sarif("1", &[]);
        let change = &log["runs"][0]["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["insertedContent"]["text"], "c");
        assert_eq!(change["deletedRegion"]["startLine"], 2);
    }

    #[test]
    fn hostile_names_and_messages_break_out_of_no_format() {
        let report = one("dir,x/a:b\n::error::.yaml", |s| Diagnostic::error("L001", "| <b> 100%\n::stop", s));
        assert_eq!(report.github().matches('\n').count(), 1);
        assert!(report.github().contains("file=dir%2Cx/a%3Ab%0A"), "{}", report.github());
        assert!(report.markdown().contains("\\| &lt;b> 100% ::stop"), "{}", report.markdown());
        let log = report.sarif("1", &[]);
        let uri =
            &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(uri, "dir%2Cx/a%3Ab%0A%3A%3Aerror%3A%3A.yaml");
    }

    #[test]
    fn equal_findings_have_fingerprints_of_their_own() {
        let mut sources = Sources::new();
        let file = sources.add("a", "x\n");
        let d = Diagnostic::warn("L017", "m", sources.span(file, 0, 1));
        let names = fingerprints(&sources, &[d.clone(), d]);
        assert_ne!(names[0], names[1]);
    }
}
