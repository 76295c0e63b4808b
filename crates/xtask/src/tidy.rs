//! Checks of the repository's texts: line lengths, structure of pages, words, links.
//!
//! Entry point: [`check`]. What cannot be repaired at once is listed with its reason in `exceptions.tsv`,
//! whose numbers may fall and not rise.

use crate::markdown::{self, Line};
use crate::rust::{self, PartKind};
use crate::{File, generate, words};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Longest line of prose and comments, in characters.
pub const MAX_COLUMNS: usize = 110;

/// Most words of a sentence on a page, inline code counted as one. Shorter is better: this leaves room for
/// enumerations.
pub const MAX_WORDS: usize = 30;

/// Most semicolons of a sentence on a page.
pub const MAX_SEMICOLONS: usize = 2;

/// Sections of a rule's page, in their order.
pub const RULE_SECTIONS: [&str; 5] = ["What it does", "Why it matters", "Example", "Fix", "Known limits"];

/// One untidy place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of check; the first column of `exceptions.tsv`.
    pub check: Check,
    /// Path from the root.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// Problem and remedy.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {} [{}]", self.path, self.line, self.message, self.check.name())
    }
}

/// Kinds of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Prose of a page longer than [`MAX_COLUMNS`].
    ProseLength,
    /// Sentence of a page with more than [`MAX_WORDS`] or [`MAX_SEMICOLONS`].
    SentenceLength,
    /// Comment longer than [`MAX_COLUMNS`].
    CommentLength,
    /// Rule page without one of [`RULE_SECTIONS`], or without an example.
    RulePage,
    /// Banned phrase in a page.
    PageWords,
    /// Banned phrase in a string literal with more than one word.
    MessageWords,
    /// British spelling in a page or a source.
    Spelling,
    /// Banned phrase in a comment.
    CommentWords,
    /// Doc comment with one of [`words::VAGUE_BEGINNINGS`].
    DocComment,
    /// Test whose name begins with a question word and so does not say what it asserts.
    TestName,
    /// Name of a framework in a rule.
    FrameworkName,
    /// Number of rules, front ends, theorems or tests in a page.
    StaleCount,
    /// Link or anchor that leads nowhere.
    Link,
    /// Page that `SUMMARY.md` doesn't list, or the reverse.
    Summary,
    /// Generated part that is not current.
    Generated,
    /// Name of an error that a page doesn't explain, or the reverse.
    ErrorNames,
    /// Command that would install or run the package `entail` of a public registry, which belongs to others.
    ForeignPackage,
    /// Entry of `exceptions.tsv` that is malformed or no longer needed.
    Exceptions,
}

impl Check {
    const ALL: [Check; 18] = [
        Check::ProseLength,
        Check::SentenceLength,
        Check::CommentLength,
        Check::RulePage,
        Check::PageWords,
        Check::MessageWords,
        Check::Spelling,
        Check::CommentWords,
        Check::DocComment,
        Check::TestName,
        Check::FrameworkName,
        Check::StaleCount,
        Check::Link,
        Check::Summary,
        Check::Generated,
        Check::ErrorNames,
        Check::ForeignPackage,
        Check::Exceptions,
    ];

    /// Returns the name used in findings and in `exceptions.tsv`.
    pub fn name(self) -> &'static str {
        match self {
            Check::ProseLength => "prose-length",
            Check::SentenceLength => "sentence-length",
            Check::CommentLength => "comment-length",
            Check::RulePage => "rule-page",
            Check::PageWords => "page-words",
            Check::MessageWords => "message-words",
            Check::Spelling => "spelling",
            Check::CommentWords => "comment-words",
            Check::DocComment => "doc-comment",
            Check::TestName => "test-name",
            Check::FrameworkName => "framework-name",
            Check::StaleCount => "stale-count",
            Check::Link => "link",
            Check::Summary => "summary",
            Check::Generated => "generated",
            Check::ErrorNames => "error-names",
            Check::ForeignPackage => "foreign-package",
            Check::Exceptions => "exceptions",
        }
    }
}

/// Result of [`check`].
#[derive(Debug, Default)]
pub struct Report {
    /// Untidy places that no exception admits.
    pub findings: Vec<Finding>,
    /// Exceptions whose number may be lowered: the check, the file stem and the number of places that are
    /// left.
    pub lower: Vec<(Check, String, usize)>,
}

/// Checks the files of the repository. `exceptions` is the text of `exceptions.tsv`; `exists` tells which
/// paths there are beside the files, such as pictures.
pub fn check(files: &[File], exceptions: &str, exists: &dyn Fn(&str) -> bool) -> Report {
    let mut found = Vec::new();
    for file in files {
        spelling(file, &mut found);
        foreign_package(file, &mut found);
        if file.path.ends_with(".md") {
            page(file, &mut found);
        } else if file.path.ends_with(".rs") {
            source(file, &mut found);
        }
    }
    links(files, exists, &mut found);
    summary(files, &mut found);
    for (file, message) in generate::outdated(files) {
        found.push(Finding { check: Check::Generated, path: file, line: 0, message });
    }
    error_names(files, &mut found);
    admitted(found, exceptions)
}

/// Reports British spelling in pages and sources, except in its list and in the tests of this check.
fn spelling(file: &File, found: &mut Vec<Finding>) {
    let is_text = [".md", ".rs", ".toml", ".py", ".v", ".ml", ".lam", ".agent"];
    let is_text = is_text.iter().any(|extension| file.path.ends_with(extension));
    let lists = ["crates/xtask/src/words.rs", "crates/xtask/src/tidy.rs"];
    // The suite is data.
    if !is_text || file.path.starts_with("suite/") || lists.contains(&file.path.as_str()) {
        return;
    }
    for (n, line) in file.text.lines().enumerate() {
        found.extend(words::british(line).into_iter().map(|(word, usual)| {
            let message = format!("`{word}`: the American spelling is `{usual}`");
            Finding { check: Check::Spelling, path: file.path.clone(), line: n + 1, message }
        }));
    }
}

/// Pages whose lines and words are checked: the book and what a contributor reads.
/// Programs that fetch a package from a public registry by the name that follows their options.
const INSTALLERS: &[&str] = &[
    "pip install",
    "pipx install",
    "pipx run",
    "uv add",
    "uv pip install",
    "uv tool install",
    "uv tool run",
    "uvx",
    "npm install",
    "npx",
    "cargo install",
];

/// Reports commands that name the package `entail` of a registry.
fn foreign_package(file: &File, found: &mut Vec<Finding>) {
    if file.path.starts_with("crates/xtask/src/") {
        return;
    }
    for (n, line) in file.text.lines().enumerate() {
        for installer in INSTALLERS {
            let Some((_, rest)) = line.split_once(installer) else { continue };
            if !rest.starts_with(' ') {
                continue;
            }
            let end = rest.find(['`', '|', ';', '&', '#', ')']).unwrap_or(rest.len());
            let named = |word: &str| {
                let name =
                    word.trim_matches(['\'', '"', ',', '.']).split(['[', '=', '@', '<', '>', '~']).next();
                name == Some("entail")
            };
            if rest[..end].split_whitespace().any(named) {
                let message = format!("`{installer} … entail`: the package of that name belongs to others");
                let (check, path) = (Check::ForeignPackage, file.path.clone());
                found.push(Finding { check, path, line: n + 1, message });
                break;
            }
        }
    }
}

fn is_prose(path: &str) -> bool {
    path.starts_with("docs/") || ["README.md", "CONTRIBUTING.md"].contains(&path)
}

/// The changelog tells history, and its lines may be long.
fn changelog(file: &File, found: &mut Vec<Finding>) {
    let lines = markdown::lines(&file.text);
    for (line, text) in paragraphs(&lines) {
        found.extend(words::banned(&text).into_iter().map(|(phrase, usual)| {
            let message = format!("`{phrase}`: say {usual}");
            Finding { check: Check::PageWords, path: file.path.clone(), line, message }
        }));
    }
}

fn page(file: &File, found: &mut Vec<Finding>) {
    if file.path == "CHANGELOG.md" {
        changelog(file, found);
    }
    if !is_prose(&file.path) {
        return;
    }
    let mut add =
        |check, line, message| found.push(Finding { check, path: file.path.clone(), line, message });
    let lines = markdown::lines(&file.text);
    for line in lines.iter().filter(|l| !l.is_code) {
        if let Some(columns) = too_long(line) {
            add(Check::ProseLength, line.number, format!("{columns} columns; wrap at {MAX_COLUMNS}"));
        }
    }
    for (line, text) in paragraphs(&lines) {
        for (phrase, usual) in words::banned_in_pages(&text) {
            add(Check::PageWords, line, format!("`{phrase}`: say {usual}"));
        }
        if let Some(count) = stale_count(&text) {
            add(Check::StaleCount, line, format!("`{count}` will be wrong one day: leave the number out"));
        }
    }
    // A decision record stays as it was written.
    if !file.path.starts_with("docs/decisions/") {
        for sentence in markdown::sentences(&lines) {
            if let Some(problem) = too_many(&sentence.text) {
                let message = format!("{problem} in \"{} …\": make it two sentences", clip(&sentence.text));
                add(Check::SentenceLength, sentence.line, message);
            }
        }
    }
    if file.path.starts_with("docs/rules/") && !file.path.ends_with("README.md") {
        rule_page(&file.text, &mut add);
    }
}

/// Tells what a sentence has too many of.
fn too_many(sentence: &str) -> Option<String> {
    let words = sentence.split_whitespace().filter(|w| w.chars().any(char::is_alphanumeric)).count();
    let semicolons = sentence.matches(';').count();
    if words > MAX_WORDS {
        return Some(format!("{words} words"));
    }
    (semicolons > MAX_SEMICOLONS).then(|| format!("{semicolons} semicolons"))
}

/// Columns of a line of prose that is too long and could be wrapped.
fn too_long(line: &Line<'_>) -> Option<usize> {
    let text = line.text.trim_start();
    let columns = line.text.chars().count();
    // Inline code is not broken.
    let can_be_wrapped =
        !text.starts_with(['|', '#', '<', '[', '!']) && markdown::without_code(text).trim().contains(' ');
    (columns > MAX_COLUMNS && can_be_wrapped).then_some(columns)
}

/// Prose without code, joined to paragraphs: a phrase may span two lines.
fn paragraphs(lines: &[Line<'_>]) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let text = line.text.trim();
        if line.is_code || text.is_empty() {
            is_open = false;
            continue;
        }
        let is_row = text.starts_with('|');
        match out.last_mut() {
            Some((_, paragraph)) if is_open && !is_row => paragraph.push_str(&format!(" {text}")),
            _ => out.push((line.number, text.to_string())),
        }
        is_open = !is_row;
    }
    for (_, text) in &mut out {
        *text = markdown::without_code(text);
    }
    out
}

/// A number of rules, front ends, theorems or tests, such as `35 rules`.
fn stale_count(text: &str) -> Option<String> {
    const NUMBERS: [&str; 8] =
        ["dozen", "twenty", "thirty", "forty", "fifty", "hundred", "hundreds", "dozens"];
    let words: Vec<&str> = text.split_whitespace().collect();
    for (n, word) in words.iter().enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).replace(',', "").to_lowercase();
        let is_count = bare.parse::<u64>().is_ok_and(|v| v > 9) || NUMBERS.contains(&bare.as_str());
        let next: Vec<String> = words[n + 1..]
            .iter()
            .take(3)
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
            .collect();
        let counted = match next.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["rules" | "theorems" | "tests", ..] => 1,
            ["front", "ends", ..] | ["lint", "rules", ..] => 2,
            _ => 0,
        };
        if is_count && counted > 0 {
            return Some(words[n..=n + counted].join(" "));
        }
    }
    None
}

fn rule_page(text: &str, add: &mut impl FnMut(Check, usize, String)) {
    let titles: Vec<&str> =
        markdown::headings(text).into_iter().filter(|(level, _)| *level == 2).map(|(_, t)| t).collect();
    if titles != RULE_SECTIONS {
        add(Check::RulePage, 0, format!("sections are {titles:?}; expected {RULE_SECTIONS:?}"));
    }
    if !text.lines().any(|l| l.starts_with("Level: ") && l.contains("Theme: ")) {
        add(Check::RulePage, 0, "no line `Level: … · Theme: …`".into());
    }
    for (language, name) in [("```yaml", "YAML"), ("```python", "Python")] {
        let has = |title| markdown::section(text, title).is_some_and(|s| s.contains(language));
        if has("Example") != has("Fix") {
            add(Check::RulePage, 0, format!("{name} in only one of *Example* and *Fix*"));
        }
        if language == "```yaml" && !has("Example") {
            add(Check::RulePage, 0, "no example in YAML".into());
        }
    }
}

/// Folders of sources whose comments and messages are checked.
fn is_source(path: &str) -> bool {
    path.starts_with("crates/") || path.starts_with("python/")
}

/// Tests, benches and generators, whose literals are data.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["/tests/", "/benches/", "/examples/", "/testkit/", "/xtask/"].iter().any(|part| path.contains(part))
        || name.starts_with("tests")
}

fn source(file: &File, found: &mut Vec<Finding>) {
    if !is_source(&file.path) {
        return;
    }
    comment_words(file, found);
    test_names(file, found);
    let mut add =
        |check, line, message| found.push(Finding { check, path: file.path.clone(), line, message });
    for (n, line) in file.text.lines().enumerate() {
        let text = line.trim_start();
        let columns = line.chars().count();
        let is_table = text.starts_with("//! |") || text.starts_with("/// |");
        if text.starts_with("//") && columns > MAX_COLUMNS && !is_table && !text.contains("://") {
            add(Check::CommentLength, n + 1, format!("{columns} columns; wrap at {MAX_COLUMNS}"));
        }
    }
    let code = rust::without_tests(&file.text);
    let mut last_doc = None;
    for part in rust::parts(code) {
        match part.kind {
            PartKind::Doc => {
                // Only the first line of a doc comment begins it.
                let is_first = last_doc.is_none_or(|last| last + 1 != part.line);
                last_doc = Some(part.line);
                let vague = words::VAGUE_BEGINNINGS.iter().find(|v| part.text.starts_with(**v));
                if let Some(vague) = vague.filter(|_| is_first) {
                    let message = format!("doc comment begins with `{}`: name the thing", vague.trim());
                    add(Check::DocComment, part.line, message);
                }
            }
            PartKind::Literal if !is_test(&file.path) && part.text.contains(' ') => {
                for (phrase, usual) in words::banned(&markdown::without_code(&part.text)) {
                    let message = format!("`{phrase}` in `{}`: say {usual}", clip(&part.text));
                    add(Check::MessageWords, part.line, message);
                }
            }
            PartKind::Comment | PartKind::Literal => {}
        }
    }
    if file.path.contains("/lint/") && file.path.contains("/rules/") {
        let mut names = BTreeSet::new();
        for line in code.lines() {
            let text = line.split("//").next().unwrap_or(line);
            if !text.contains("include_str!") {
                names.extend(words::frameworks(text));
            }
        }
        if !names.is_empty() {
            let names: Vec<&str> = names.into_iter().collect();
            let message = format!("names {}: rules read facts, not frameworks", names.join(", "));
            add(Check::FrameworkName, 0, message);
        }
    }
}

/// Reports banned phrases in comments, also those that a line break divides. Tests count.
fn comment_words(file: &File, found: &mut Vec<Finding>) {
    // Words are listed and tested there.
    if file.path.contains("/xtask/") {
        return;
    }
    let parts = rust::parts(&file.text);
    let comments: Vec<_> = parts.iter().filter(|p| p.kind != PartKind::Literal).collect();
    for block in comments.chunk_by(|a, b| a.kind == b.kind && a.line + 1 == b.line) {
        let text: Vec<&str> = block.iter().map(|p| p.text.as_str()).collect();
        for (phrase, usual) in words::banned(&markdown::without_code(&text.join(" "))) {
            let message = format!("`{phrase}` in a comment: say {usual}");
            let (path, line) = (file.path.clone(), block[0].line);
            found.push(Finding { check: Check::CommentWords, path, line, message });
        }
    }
}

/// Reports tests named `what_…` or `whether_…`.
fn test_names(file: &File, found: &mut Vec<Finding>) {
    let mut is_test = false;
    for (n, line) in file.text.lines().enumerate() {
        let line = line.trim_start().trim_start_matches("async ");
        if line.starts_with("#[") {
            is_test |= line.contains("test");
            continue;
        }
        let name = line.strip_prefix("fn ").filter(|_| std::mem::take(&mut is_test));
        let vague = ["what_", "whether_"].into_iter().find(|v| name.is_some_and(|n| n.starts_with(v)));
        if let Some(vague) = vague {
            let message = format!("name of a test begins with `{vague}`: state what it asserts");
            found.push(Finding { check: Check::TestName, path: file.path.clone(), line: n + 1, message });
        }
    }
}

fn clip(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.chars().take(60).collect()
}

/// Joins a relative path to the folder of a page and resolves `..`.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn links(files: &[File], exists: &dyn Fn(&str) -> bool, found: &mut Vec<Finding>) {
    let pages: BTreeMap<&str, &str> = files.iter().map(|f| (f.path.as_str(), f.text.as_str())).collect();
    for file in files.iter().filter(|f| f.path.ends_with(".md")) {
        for (line, link) in markdown::links(&file.text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = link.split_once('#').map_or((link.as_str(), None), |(p, a)| (p, Some(a)));
            let target = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
            let message = if !pages.contains_key(target.as_str()) && !exists(&target) {
                Some(format!("`{link}` leads nowhere"))
            } else if file.path.starts_with("docs/") && !target.starts_with("docs/") {
                Some(format!("`{link}` leads out of the book: name the path in backticks"))
            } else {
                anchor
                    .zip(pages.get(target.as_str()))
                    .filter(|(anchor, page)| !markdown::anchors(page).iter().any(|a| a == anchor))
                    .map(|_| format!("`{link}`: the page has no such heading"))
            };
            if let Some(message) = message {
                found.push(Finding { check: Check::Link, path: file.path.clone(), line, message });
            }
        }
    }
}

fn summary(files: &[File], found: &mut Vec<Finding>) {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let Some(contents) = files.iter().find(|f| f.path == SUMMARY) else { return };
    let listed: Vec<String> =
        markdown::links(&contents.text).into_iter().map(|(_, link)| resolve(SUMMARY, &link)).collect();
    for file in files.iter().filter(|f| f.path.starts_with("docs/") && f.path.ends_with(".md")) {
        let times = listed.iter().filter(|l| **l == file.path).count();
        if file.path != SUMMARY && times != 1 {
            let message = format!("{SUMMARY} lists the page {times} times");
            found.push(Finding { check: Check::Summary, path: file.path.clone(), line: 0, message });
        }
    }
}

/// Compares the names of errors in the machine with the page that explains them.
fn error_names(files: &[File], found: &mut Vec<Finding>) {
    const PAGE: &str = "docs/exit-codes.md";
    let Some(page) = files.iter().find(|f| f.path == PAGE) else { return };
    for (item, title) in [("ErrorCode", "Errors of a run"), ("StopReason", "Reasons of a stop")] {
        let names: BTreeSet<String> = generate::names_of_enum(files, item).into_iter().collect();
        let section = markdown::section(&page.text, title).unwrap_or("");
        let rows = section.lines().filter_map(|l| l.strip_prefix("| `")?.split('`').next());
        let explained: BTreeSet<String> = rows.map(str::to_string).collect();
        for name in names.symmetric_difference(&explained) {
            let message = format!("`{name}` is not both in `{item}` and in the section *{title}*");
            found.push(Finding { check: Check::ErrorNames, path: PAGE.into(), line: 0, message });
        }
    }
}

/// Leaves out what `exceptions.tsv` admits: lines of a check, a file stem or `*`, a number and a reason, with
/// tabs.
fn admitted(found: Vec<Finding>, exceptions: &str) -> Report {
    let mut report = Report::default();
    let mut left = found;
    for (n, line) in exceptions.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.is_empty()) {
        let mut complain = |message: String| {
            let path = "crates/xtask/exceptions.tsv".to_string();
            report.findings.push(Finding { check: Check::Exceptions, path, line: n + 1, message });
        };
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, stem, number, reason] = fields[..] else {
            complain("expected check, file stem, number, reason".into());
            continue;
        };
        let check = Check::ALL.into_iter().find(|c| c.name() == name);
        let (Some(check), Ok(number)) = (check, number.parse::<usize>()) else {
            complain("unknown check or malformed number".into());
            continue;
        };
        if reason.trim().is_empty() {
            complain("no reason".into());
        }
        let stem_of = |f: &Finding| {
            let name = f.path.rsplit('/').next().unwrap_or(&f.path);
            name.split('.').next().unwrap_or(name).to_string()
        };
        let is_meant = |f: &Finding| f.check == check && (stem == "*" || stem_of(f) == stem);
        let count = left.iter().filter(|f| is_meant(f)).count();
        if count == 0 {
            complain(format!("`{name}` of `{stem}` is not needed any more: remove the line"));
        } else if count <= number {
            left.retain(|f| !is_meant(f));
            if count < number {
                report.lower.push((check, stem.to_string(), count));
            }
        } else {
            complain(format!("{count} places, {number} are admitted: repair the new ones"));
        }
    }
    report.findings.extend(left);
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(files: &[File]) -> Vec<Check> {
        check(files, "", &|_| false).findings.into_iter().map(|f| f.check).collect()
    }

    fn page(text: &str) -> File {
        File::new("README.md", text)
    }

    #[test]
    fn long_prose_is_found_and_long_tables_code_and_headings_are_not() {
        let long = "word ".repeat(30);
        assert_eq!(checks(&[page(&format!("{long}\n"))]), [Check::ProseLength]);
        let fine = format!("| {long} |\n\n```text\n{long}\n```\n\n# {long}\n");
        assert_eq!(checks(&[page(&fine)]), []);
        assert_eq!(checks(&[page(&format!("`{long}`.\n"))]), []);
    }

    #[test]
    fn long_sentences_are_found_and_items_code_and_abbreviated_links_are_not() {
        let words = |n: usize| vec!["word"; n].join(" ");
        let lines = |n: usize| words(n).replace("word word word", "word word\nword");
        assert_eq!(checks(&[page(&format!("{}.\n", lines(31)))]), [Check::SentenceLength]);
        assert_eq!(checks(&[page(&format!("{}.\n", lines(30)))]), []);
        // Each of these ends a sentence.
        let twice = |between: &str| checks(&[page(&format!("{}{between}{}.\n", lines(20), lines(20)))]);
        for between in [". A\n", ".) `a b`\n", ": the\n", "\n- ", "\n\n", "\n1. "] {
            assert_eq!(twice(between), [], "{between:?}");
        }
        assert_eq!(twice(" e.g. "), [Check::SentenceLength]);
        let code = format!("{} `{}`.\n", lines(29), words(9));
        assert_eq!(checks(&[page(&code)]), []);
        assert_eq!(checks(&[page("a; b; c; d.\n")]), [Check::SentenceLength]);
        assert_eq!(checks(&[page("a; b; c. D; e.\n")]), []);
    }

    #[test]
    fn long_comments_are_found() {
        let text = format!("// {}\nfn f() {{}}\n", "word ".repeat(30));
        assert_eq!(checks(&[File::new("crates/a/src/lib.rs", &text)]), [Check::CommentLength]);
    }

    #[test]
    fn banned_phrases_are_found_across_lines_and_not_in_code() {
        assert_eq!(checks(&[page("so it goes\nround.\n")]), [Check::PageWords]);
        assert_eq!(checks(&[page("the field `talk`\n")]), []);
        assert_eq!(checks(&[page("it no longer fails\n")]), [Check::PageWords]);
        assert_eq!(checks(&[File::new("CHANGELOG.md", "it no longer fails\n")]), []);
        assert_eq!(checks(&[File::new("CHANGELOG.md", "an endless talk\n")]), [Check::PageWords]);
        let source = |text| checks(&[File::new("crates/a/src/lib.rs", text)]);
        assert_eq!(source("fn f() { g(\"the talk ends\") }\n"), [Check::MessageWords]);
        assert_eq!(source("fn f() { g(\"talk\") }\n"), []);
        assert_eq!(checks(&[File::new("crates/a/tests/b.rs", "fn f() { g(\"the talk ends\") }\n")]), []);
        let help = "/// Ends the talk.\nfn f() {}\n";
        // The command line takes its help texts from doc comments.
        assert_eq!(checks(&[File::new("crates/cli/src/args.rs", help)]), [Check::CommentWords]);
    }

    #[test]
    fn british_spelling_is_found_in_pages_and_sources() {
        assert!(checks(&[page("# A\n\nIts behaviour.\n")]).contains(&Check::Spelling));
        let source = |text: &str| checks(&[File::new("crates/a/src/lib.rs", text)]);
        assert_eq!(source("fn recognise() {}\n"), [Check::Spelling]);
        assert_eq!(source("fn recognize() {}\n"), []);
    }

    #[test]
    fn vague_beginnings_count_on_the_first_line_only() {
        let source = |text| checks(&[File::new("crates/a/src/lib.rs", text)]);
        assert_eq!(source("/// What it is.\nfn f() {}\n"), [Check::DocComment]);
        assert_eq!(source("/// Returns\n/// What it is.\nfn f() {}\n"), []);
    }

    #[test]
    fn banned_phrases_are_found_in_comments_across_lines_and_not_in_their_code() {
        let source = |text| checks(&[File::new("crates/a/src/lib.rs", text)]);
        assert_eq!(source("/// Ends the\n/// talk.\nfn f() {}\n"), [Check::CommentWords]);
        assert_eq!(source("fn f() {\n    // It goes\n    // round.\n}\n"), [Check::CommentWords]);
        assert_eq!(source("/// The field `talk`.\nfn f() {}\n"), []);
        // Two comments are two texts.
        assert_eq!(source("// It goes\nfn f() {}\n// round\n"), []);
    }

    #[test]
    fn tests_are_named_for_what_they_assert() {
        let source = |text| checks(&[File::new("crates/a/src/lib.rs", text)]);
        assert_eq!(source("#[test]\nfn what_ends() {}\n"), [Check::TestName]);
        assert_eq!(source("#[tokio::test]\nasync fn whether_it_ends() {}\n"), [Check::TestName]);
        assert_eq!(source("fn what_ends() {}\n#[test]\nfn loops_end() {}\n"), []);
    }

    #[test]
    fn a_rule_reads_no_framework() {
        let rule = |text| checks(&[File::new("crates/lint/src/lint/rules/l001.rs", text)]);
        assert_eq!(rule("fn f() { g(\"crewai\") }\n"), [Check::FrameworkName]);
        assert_eq!(rule("// as crewai does\nfn f() {}\n"), []);
    }

    #[test]
    fn numbers_of_rules_are_found() {
        assert_eq!(checks(&[page("There are 35 lint rules.\n")]), [Check::StaleCount]);
        assert_eq!(checks(&[page("There are three rules.\n")]), []);
    }

    #[test]
    fn commands_that_run_a_package_of_others_are_found() {
        for line in
            ["$ uvx entail lint .", "pip install --upgrade 'entail[guard]==0.1'", "npx -y entail@latest"]
        {
            assert_eq!(checks(&[File::new("python/README.md", line)]), [Check::ForeignPackage], "{line}");
        }
        for line in [
            "uvx entail-lang lint .",
            "cargo install --path crates/cli",
            "$ pip install ./python  # has `entail`",
        ] {
            assert_eq!(checks(&[File::new("python/README.md", line)]), [], "{line}");
        }
    }

    #[test]
    fn links_lead_to_pages_and_headings() {
        let other = File::new("docs/b.md", "# B\n\n## Part one\n");
        let of = |text| {
            let summary = File::new("docs/SUMMARY.md", "[a](a.md) [b](b.md)\n");
            checks(&[File::new("docs/a.md", text), other.clone(), summary])
        };
        assert_eq!(of("[x](b.md#part-one)\n"), []);
        assert_eq!(of("[x](b.md#part-two)\n"), [Check::Link]);
        assert_eq!(of("[x](c.md)\n"), [Check::Link]);
        assert_eq!(of("[x](../docs/c.md)\n"), [Check::Link]);
    }

    #[test]
    fn every_page_is_in_the_summary_once() {
        let summary = File::new("docs/SUMMARY.md", "[a](a.md)\n");
        let (a, b) = (File::new("docs/a.md", ""), File::new("docs/b.md", ""));
        assert_eq!(checks(&[summary, a, b]), [Check::Summary]);
    }

    #[test]
    fn a_rule_page_has_its_sections_and_both_examples() {
        let rule = |text: &str| {
            let summary = File::new("docs/SUMMARY.md", "[x](rules/x.md)\n");
            checks(&[File::new("docs/rules/x.md", text), summary])
        };
        let good = "# L1: x\n\nLevel: warn · Theme: t\n\n## What it does\n\n## Why it matters\n\n## Example\n\n\
                    ```yaml\n```\n\n## Fix\n\n```yaml\n```\n\n## Known limits\n";
        assert_eq!(rule(good), []);
        assert_eq!(rule(&good.replace("## Fix\n\n```yaml\n```", "## Fix\n")), [Check::RulePage]);
        assert_eq!(rule(&good.replace("## Known limits\n", "")), [Check::RulePage]);
        assert_eq!(rule(&good.replace("Theme", "")), [Check::RulePage]);
    }

    #[test]
    fn exceptions_admit_a_number_of_places_with_a_reason() {
        let files = [File::new("crates/a/src/lib.rs", "/// What a.\nfn a() {}\n/// What b.\nfn b() {}\n")];
        let of = |exceptions: &str| check(&files, exceptions, &|_| false);
        assert!(of("doc-comment\t*\t2\told comments\n").findings.is_empty());
        assert_eq!(of("doc-comment\tlib\t3\told comments\n").lower, [(Check::DocComment, "lib".into(), 2)]);
        assert_eq!(of("doc-comment\t*\t1\told comments\n").findings.len(), 3);
        assert_eq!(of("doc-comment\t*\t2\t\n").findings.len(), 1);
        assert_eq!(of("link\t*\t2\tnot needed\n").findings.len(), 3);
    }
}
