//! Programs in `.agent`.

use super::{difference, files, inserted, own_folders};
use agentlang::{Loader, Module};
use analysis::{flow, types};
use core_ir::{Code, print_code};
use diagnostics::{Diagnostic, FileId, Level, Sources, has_errors};
use frontend_kit::{Project, Unit, UnitKind, doc::Limits};
use ide::{Nothing, TokenKind, Workspace};
use std::path::Path;
use std::sync::Arc;

const FILE: FileId = FileId(0);

/// The end of every new name, so that texts can be compared without it.
const RENAMED: &str = "_zz";

/// The files that a program imports, from the disk.
struct Imports(Sources);

impl Imports {
    fn beside(&self, from: FileId, path: &str) -> std::path::PathBuf {
        let importing = Path::new(&self.0.get(from).unwrap().path);
        importing.parent().unwrap().join(path)
    }
}

impl Loader for Imports {
    fn load(&mut self, from: FileId, path: &str) -> Result<(FileId, Arc<str>), String> {
        let place = self.beside(from, path).display().to_string();
        if let Some((id, source)) = self.0.iter().find(|(_, s)| s.path == place) {
            return Ok((id, source.text.clone()));
        }
        let text: Arc<str> = std::fs::read_to_string(&place).map_err(|e| e.to_string())?.into();
        Ok((self.0.add(place, text.clone()), text))
    }

    fn units(&mut self, from: FileId, path: &str) -> Result<Vec<Unit>, String> {
        let place = self.beside(from, path);
        let mut paths = files(std::slice::from_ref(&place), &["yaml", "yml", "json", "py"]);
        // Of a folder, all files, the tasks of a crew first.
        paths.sort_by_key(|p| (!p.ends_with("tasks.yaml"), p.clone()));
        let mut read = Vec::new();
        for path in paths {
            let text: Arc<str> = std::fs::read_to_string(&path).map_err(|e| e.to_string())?.into();
            let name = path.display().to_string();
            let id = self.0.add(name.clone(), text.clone());
            read.push(frontend_kit::File::read(id, &name, &text, &Limits::default()));
        }
        let project = Project { files: read, ..Project::default() };
        frontends::compile(&project, 0).map(|c| c.units).ok_or_else(|| "no framework's".to_string())
    }
}

fn check(path: &str, text: &str) -> (Option<Module>, Vec<Diagnostic>) {
    let mut imports = Imports(Sources::new());
    let file = imports.0.add(path, text);
    agentlang::check_files(file, text, &mut imports)
}

/// The kind of a byte of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Text,
    Comment,
}

fn classes(text: &str) -> Vec<Class> {
    let mut out = vec![Class::Code; text.len()];
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let line = rest.find('\n').unwrap_or(rest.len());
        let (length, class) = if rest.starts_with("//") || rest.starts_with("--") {
            (line, Class::Comment)
        } else if let Some(long) = rest.strip_prefix("\"\"\"") {
            (long.find("\"\"\"").map_or(rest.len(), |i| i + 6), Class::Text)
        } else if rest.starts_with('"') {
            let mut escaped = false;
            let end = rest[1..line].char_indices().find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            // A text without its quote ends with the line.
            (end.map_or(rest.len().min(line + 1), |(i, _)| i + 2), Class::Text)
        } else {
            (rest.chars().next().map_or(1, char::len_utf8), Class::Code)
        };
        out[at..at + length].fill(class);
        at += length;
    }
    out
}

/// Number of characters before each byte of a program that are neither space nor comment. Commas and
/// semicolons, which the formatter may add, do not count, nor does the end of a new name.
fn positions(text: &str) -> Vec<usize> {
    let classes = classes(text);
    let mut out = Vec::with_capacity(text.len() + 1);
    let mut count = 0;
    let mut skip = 0;
    for (i, c) in text.char_indices() {
        out.resize(i + c.len_utf8(), count);
        if text[i..].starts_with(RENAMED) {
            skip = RENAMED.len();
        }
        let counts = classes[i] != Class::Comment && !c.is_whitespace() && !matches!(c, ',' | ';');
        if skip > 0 {
            skip -= 1;
        } else if counts {
            count += 1;
        }
    }
    out.push(count);
    out
}

struct Meaning {
    found: Vec<String>,
    terms: Option<Vec<(String, Arc<Code>)>>,
}

fn meaning(path: &str, text: &str) -> Meaning {
    let (module, mut all) = check(path, text);
    let mut terms = None;
    if let Some(module) = module.filter(|_| !has_errors(&all)) {
        let lower = |e| Some((e, Arc::new(module.lower(e).ok()?)));
        let lowered: Vec<(&agentlang::Entry, _)> = module.entries().iter().filter_map(lower).collect();
        for (entry, code) in &lowered {
            all.extend(types::check(code, Some(&entry.input)).diagnostics);
            let options = flow::Options { applied: true, ..flow::Options::default() };
            all.extend(flow::findings(&flow::analyze(code, &options)));
            let unit = Unit {
                name: entry.name.as_str().into(),
                kind: UnitKind::Agent,
                code: code.clone(),
                span: entry.span,
                agents: Vec::new(),
                outline: frontend_kit::Outline::default(),
            };
            let config = lint::Config { level: Level::Info, ..lint::Config::default() };
            all.extend(lint::lint_programs(lint::Language::Agent, vec![unit], &config));
        }
        terms = Some(lowered.into_iter().map(|(e, code)| (e.name.clone(), code)).collect());
    }
    let positions = positions(text);
    let place = |d: &Diagnostic| {
        let span = d.span.filter(|s| s.file == FILE)?;
        Some(positions[span.start as usize]..positions[span.end as usize])
    };
    let mut found: Vec<String> = all
        .iter()
        .map(|d| {
            let message = d.message.replace(RENAMED, "");
            format!("{} {} {} at {:?}", d.code, d.level.as_str(), message, place(d))
        })
        .collect();
    found.sort();
    Meaning { found, terms }
}

/// The lines of a program before which a line may stand without a meaning: not inside a text, and not below a
/// comment, which may be the description of a declaration below it.
fn free_lines<'t>(text: &'t str, classes: &[Class]) -> Vec<(usize, &'t str)> {
    let mut free = Vec::new();
    let (mut at, mut below_comment) = (0, false);
    for line in text.split_inclusive('\n') {
        if !below_comment && (at == 0 || classes[at - 1] != Class::Text) {
            free.push((at, line));
        }
        let first = line.len() - line.trim_start().len();
        below_comment = classes.get(at + first) == Some(&Class::Comment);
        at += line.len();
    }
    free
}

/// A text with comments on lines of their own and at the ends of lines. A blank line follows each of the
/// former: a comment directly above a declaration is its description.
fn commented(text: &str) -> String {
    let classes = classes(text);
    let mut insertions: Vec<(usize, String)> = Vec::new();
    for (at, _) in free_lines(text, &classes).into_iter().skip(1) {
        insertions.push((at, "  -- a \"remark: {\n\n".to_string()));
    }
    for (end, _) in text.match_indices('\n') {
        let line = &text[text[..end].rfind('\n').map_or(0, |i| i + 1)..end];
        if !line.trim().is_empty() && classes[end] == Class::Code && classes[end - 1] != Class::Comment {
            insertions.push((end, "  // it's (one".to_string()));
        }
    }
    insertions.sort();
    inserted(text, &insertions)
}

/// A text with other indentation and blank lines.
fn laid_out(text: &str) -> String {
    let classes = classes(text);
    let wider = |(at, line): (usize, &str)| {
        let indent = if line.trim().is_empty() { 0 } else { line.len() - line.trim_start().len() };
        let blank = if at > 0 { "\n" } else { "" };
        (at, format!("{blank}{}", " ".repeat(indent)))
    };
    let insertions: Vec<_> = free_lines(text, &classes).into_iter().map(wider).collect();
    inserted(text, &insertions)
}

/// Returns true if a variable declared here is local: parameters are named by calls.
fn is_local(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    ["let", "for", "catch"].iter().any(|word| before.ends_with(word))
}

/// A text whose local variables have other names, and how many.
fn renamed(path: &str, text: &str) -> (String, usize) {
    let mut workspace = Workspace::new(Box::new(Nothing));
    workspace.open(path, text.into());
    let (mut count, mut from) = (0, 0);
    loop {
        let now = workspace.text(path).unwrap().clone();
        let tokens = workspace.tokens(path);
        let next = tokens.iter().find(|t| {
            t.declares
                && t.kind == TokenKind::Variable
                && t.range.start >= from
                && is_local(&now, t.range.start)
                && !now[t.range.clone()].ends_with(RENAMED)
                // A variable with the name of a constant is an error, and with another name it is none.
                && !now.contains(&format!("const {}", &now[t.range.clone()]))
        });
        let Some(next) = next else { return (now.to_string(), count) };
        from = next.range.start;
        let name = format!("{}{RENAMED}", &now[next.range.clone()]);
        let Ok(changes) = workspace.rename(path, next.range.start, &name) else {
            from = next.range.end;
            continue;
        };
        let Some(change) = changes.into_iter().find(|c| c.path == path) else {
            from = next.range.end;
            continue;
        };
        let mut edits = change.edits;
        edits.sort_by_key(|e| std::cmp::Reverse(e.range.start));
        let mut changed = now.to_string();
        edits.iter().for_each(|e| changed.replace_range(e.range.clone(), &e.text));
        workspace.change(path, changed.into());
        count += 1;
    }
}

/// A term as it is printed, without what depends on the length of names and on keywords among them: line
/// breaks and quotes.
fn unnamed(code: &Code) -> String {
    let text = print_code(code).replace(RENAMED, "");
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '$')).collect()
}

#[derive(Default)]
struct Tally {
    files: usize,
    terms: usize,
    renamed: usize,
    differences: Vec<String>,
}

impl Tally {
    fn compare(&mut self, name: &str, path: &str, before: &Meaning, changed: &str) {
        let after = meaning(path, changed);
        let mut out = difference(&before.found, &after.found);
        match (&before.terms, &after.terms) {
            (Some(a), Some(b)) => {
                assert_eq!(a.len(), b.len(), "{name} of {path}");
                for ((entry, a), (_, b)) in a.iter().zip(b) {
                    self.terms += 1;
                    let equal = if name == "names" { unnamed(a) == unnamed(b) } else { a == b };
                    if !equal {
                        out += &format!("  term of {entry}:\n{}\n{}\n", print_code(a), print_code(b));
                    }
                }
            }
            (a, b) if a.is_some() != b.is_some() => out += "  it is accepted only before or after\n",
            _ => {}
        }
        if !out.is_empty() {
            self.differences.push(format!("{name} of {path}:\n{out}"));
        }
    }

    fn file(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let path = path.display().to_string();
        let before = meaning(&path, &text);
        self.files += 1;
        self.compare("comments", &path, &before, &commented(&text));
        self.compare("layout", &path, &before, &laid_out(&text));
        if let Ok(formatted) = syntax::format::agent(FILE, &text) {
            self.compare("formatting", &path, &before, &formatted);
        }
        let (changed, count) = renamed(&path, &text);
        self.renamed += count;
        if count > 0 {
            self.compare("names", &path, &before, &changed);
        }
    }
}

#[test]
fn comments_layout_and_local_names_of_programs_mean_nothing() {
    let mut tally = Tally::default();
    files(&own_folders(), &["agent"]).iter().for_each(|path| tally.file(path));
    let Tally { files, terms, renamed, differences } = tally;
    eprintln!("{files} files, {terms} terms, {renamed} variables");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    assert!(files > 90 && terms > 500 && renamed > 300, "{files} files, {terms} terms, {renamed} variables");
}
