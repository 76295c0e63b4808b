//! Modules of Python.

use super::{difference, files, own_folders};
use core_ir::exchange;
use diagnostics::{FileId, Level, Sources, Span};
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project};
use lint::{Config, Outcome};
use ruff_python_ast::comparable::ComparableMod;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::source_order::{
    SourceOrderVisitor, walk_except_handler, walk_expr, walk_pattern, walk_stmt,
};
use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprContext, InterpolatedStringElement, Mod, Parameter, Pattern, Stmt,
    StmtFunctionDef,
};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: FileId = FileId(0);

/// The end of every new name, so that texts can be compared without it.
const RENAMED: &str = "_zz";

/// Known differences: the change, a part of the path, and the reason.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "aliases",
        "fixtures/S003/",
        "S003 looks for `subprocess.run` and the like by the names as they are written",
    ),
    (
        "aliases",
        "worst_case/autogen/code_executor/",
        "S003 looks for executors by the names as they are written",
    ),
    (
        "aliases",
        "audit/cases/v09_surfer_and_executor/",
        "S003 looks for executors by the names as they are written",
    ),
    ("aliases", "fixtures/L017/model_class_info.py", "a model that makes its own replies is found by name"),
];

/// Name of the module that a helper moves into.
const HELPER: &str = "helper_zz";

/// A replacement of a part of a text.
struct Edit {
    from: usize,
    to: usize,
    by: String,
}

impl Edit {
    fn insert(at: usize, by: impl Into<String>) -> Edit {
        Edit { from: at, to: at, by: by.into() }
    }

    fn replace(range: TextRange, by: impl Into<String>) -> Edit {
        Edit { from: range.start().into(), to: range.end().into(), by: by.into() }
    }
}

/// A changed text, with where each byte of the text before went.
struct Changed {
    text: String,
    edits: Vec<Edit>,
    /// A module beside it.
    helper: Option<String>,
}

impl Changed {
    fn new(text: &str, mut edits: Vec<Edit>) -> Option<Changed> {
        if edits.is_empty() {
            return None;
        }
        edits.sort_by_key(|e| (e.from, e.to));
        let (mut out, mut at) = (String::new(), 0);
        for edit in &edits {
            out.push_str(text.get(at..edit.from)?);
            out.push_str(&edit.by);
            at = edit.to;
        }
        out.push_str(&text[at..]);
        Some(Changed { text: out, edits, helper: None })
    }

    /// The place of a byte in the changed text; of one where something is inserted, before it or after it.
    fn moved(&self, at: usize, after: bool) -> usize {
        let mut shift = 0isize;
        for edit in &self.edits {
            if edit.from < at || edit.from == at && edit.to == at && after {
                shift += edit.by.len() as isize - (edit.to - edit.from) as isize;
            }
        }
        (at as isize + shift) as usize
    }
}

fn parse(text: &str) -> Option<Parsed<Mod>> {
    let parsed = parse_unchecked(text, ParseOptions::from(Mode::Module));
    parsed.errors().is_empty().then_some(parsed)
}

fn body(module: &Mod) -> &[Stmt] {
    match module {
        Mod::Module(module) => &module.body,
        Mod::Expression(_) => &[],
    }
}

/// Text with comments at the ends of lines and on lines of their own.
fn commented(text: &str, parsed: &Parsed<Mod>) -> Option<Changed> {
    let mut edits = Vec::new();
    let mut before = TokenKind::Newline;
    for token in parsed.tokens().iter() {
        let at = usize::from(token.start());
        match token.kind() {
            TokenKind::Newline | TokenKind::NonLogicalNewline if before != TokenKind::Comment => {
                // Every line that has something.
                if before != TokenKind::NonLogicalNewline && before != TokenKind::Newline {
                    edits.push(Edit::insert(at, "  # it's Agent( \"one"));
                }
                if token.kind() == TokenKind::Newline && token.end() > token.start() {
                    edits.push(Edit::insert(token.end().into(), "# input() {remark: [1\n"));
                }
            }
            _ => {}
        }
        before = token.kind();
    }
    same_tree(text, Changed::new(text, edits)?)
}

/// Text in another layout: line breaks within brackets, blank lines, spaces around `=`, other quotes.
fn laid_out(text: &str, parsed: &Parsed<Mod>) -> Option<Changed> {
    let mut edits = Vec::new();
    let (mut open, mut formatted) = (0usize, 0usize);
    for token in parsed.tokens().iter() {
        let (from, to) = (usize::from(token.start()), usize::from(token.end()));
        match token.kind() {
            TokenKind::FStringStart | TokenKind::TStringStart => formatted += 1,
            TokenKind::FStringEnd | TokenKind::TStringEnd => formatted = formatted.saturating_sub(1),
            _ if formatted > 0 => {}
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => open += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => open = open.saturating_sub(1),
            TokenKind::Comma if open > 0 => edits.push(Edit::insert(to, "\n            ")),
            TokenKind::Equal => edits.push(Edit { from, to, by: "  =  ".into() }),
            TokenKind::Newline if to > from => edits.push(Edit::insert(to, "\n")),
            TokenKind::String => {
                let written = &text[from..to];
                let inner = written.strip_prefix('\'').and_then(|w| w.strip_suffix('\''));
                if let Some(inner) = inner.filter(|w| !w.contains(['\'', '"', '\\', '\n'])) {
                    edits.push(Edit { from, to, by: format!("\"{inner}\"") });
                }
            }
            _ => {}
        }
    }
    same_tree(text, Changed::new(text, edits)?)
}

/// The change, if it keeps the syntax tree.
fn same_tree(text: &str, changed: Changed) -> Option<Changed> {
    let (before, after) = (parse(text)?, parse(&changed.text)?);
    (ComparableMod::from(before.syntax()) == ComparableMod::from(after.syntax())).then_some(changed)
}

/// Bindings and reads of a name.
#[derive(Default)]
struct NameUses {
    /// Places of variables with this name.
    places: Vec<TextRange>,
    /// Number of bindings that are no assignment: parameters, functions, classes, imports, exceptions.
    declared: usize,
    /// Places that assign to it.
    stores: Vec<TextRange>,
}

#[derive(Default)]
struct Names<'a> {
    of: BTreeMap<&'a str, NameUses>,
    /// Words of texts.
    words: BTreeSet<String>,
    functions: Vec<&'a StmtFunctionDef>,
    classes: Vec<TextRange>,
    /// Imports of the module's own body.
    imports: Vec<&'a Alias>,
    /// True if names may be used otherwise than by variables.
    is_open: bool,
}

impl<'a> Names<'a> {
    fn read(body: &'a [Stmt]) -> Names<'a> {
        let mut names = Names::default();
        body.iter().for_each(|s| names.visit_stmt(s));
        for stmt in body {
            let aliases = match stmt {
                Stmt::Import(s) => &s.names,
                Stmt::ImportFrom(s) if s.module.as_ref().is_none_or(|m| m.as_str() != "__future__") => {
                    &s.names
                }
                _ => continue,
            };
            names.imports.extend(aliases.iter().filter(|a| a.asname.is_none() && !a.name.contains('.')));
        }
        names
    }

    fn declare(&mut self, name: &'a str) {
        self.of.entry(name).or_default().declared += 1;
    }

    fn text(&mut self, text: &str) {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.words.extend(text.split(|c| !is_word(c)).map(str::to_string));
    }

    /// Returns true if a name may be changed wherever it is a variable.
    fn is_free(&self, name: &str) -> bool {
        !self.words.contains(name) && !name.starts_with('_')
    }
}

impl<'a> SourceOrderVisitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(f) => {
                self.declare(&f.name);
                self.functions.push(f);
            }
            Stmt::ClassDef(c) => {
                self.declare(&c.name);
                self.classes.push(c.range);
            }
            Stmt::Global(s) => s.names.iter().for_each(|n| self.declare(n)),
            Stmt::Nonlocal(s) => s.names.iter().for_each(|n| self.declare(n)),
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let bound = alias.asname.as_ref().map_or(alias.name.split('.').next().unwrap_or(""), |n| n.as_str());
        self.is_open |= bound == "*";
        self.declare(bound);
    }

    fn visit_parameter(&mut self, parameter: &'a Parameter) {
        self.declare(&parameter.name);
        if let Some(annotation) = &parameter.annotation {
            self.visit_annotation(annotation);
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(h) = handler;
        if let Some(name) = &h.name {
            self.declare(name);
        }
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(p) => p.name.as_ref(),
            Pattern::MatchStar(p) => p.name.as_ref(),
            Pattern::MatchMapping(p) => p.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.declare(name);
        }
        walk_pattern(self, pattern);
    }

    fn visit_interpolated_string_element(&mut self, element: &'a InterpolatedStringElement) {
        match element {
            InterpolatedStringElement::Literal(text) => self.text(&text.value),
            InterpolatedStringElement::Interpolation(i) => {
                self.is_open |= i.debug_text.is_some();
                self.visit_expr(&i.expression);
                if let Some(spec) = &i.format_spec {
                    spec.elements.iter().for_each(|e| self.visit_interpolated_string_element(e));
                }
            }
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                self.is_open |= matches!(name.id.as_str(), "locals" | "globals" | "vars" | "eval" | "exec");
                let uses = self.of.entry(name.id.as_str()).or_default();
                uses.places.push(name.range);
                if name.ctx != ExprContext::Load {
                    uses.stores.push(name.range);
                }
            }
            Expr::StringLiteral(text) => self.text(text.value.to_str()),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

/// Text in which each import that can be has an alias.
fn aliased(text: &str, names: &Names<'_>) -> Option<Changed> {
    let mut edits = Vec::new();
    for alias in names.imports.iter().filter(|a| names.is_free(&a.name)) {
        let name = alias.name.as_str();
        let uses = names.of.get(name)?;
        if uses.declared != 1 || !uses.stores.is_empty() {
            continue;
        }
        edits.push(Edit::insert(alias.name.range.end().into(), format!(" as {name}{RENAMED}")));
        edits.extend(uses.places.iter().map(|at| Edit::replace(*at, format!("{name}{RENAMED}"))));
    }
    Changed::new(text, edits)
}

/// Text in which each variable of a function that can be has another name.
fn renamed(text: &str, names: &Names<'_>) -> Option<Changed> {
    let mut edits = Vec::new();
    for (name, uses) in names.of.iter().filter(|(n, u)| u.declared == 0 && names.is_free(n)) {
        let inside = |range: &TextRange, at: &TextRange| range.contains_range(*at);
        let in_class = |at: &TextRange| {
            names.classes.iter().any(|c| {
                let function_in_class =
                    names.functions.iter().any(|f| inside(c, &f.range) && inside(&f.range, at));
                inside(c, at) && !function_in_class
            })
        };
        let home = names.functions.iter().find(|f| uses.places.iter().all(|at| inside(&f.range, at)));
        if home.is_none() || uses.stores.is_empty() || uses.stores.iter().any(in_class) {
            continue;
        }
        edits.extend(uses.places.iter().map(|at| Edit::replace(*at, format!("{name}{RENAMED}"))));
    }
    Changed::new(text, edits)
}

/// Text of which the first function that needs nothing of its module but imports is in another module.
fn split(text: &str, module: &[Stmt], names: &Names<'_>) -> Option<(Changed, Span)> {
    let imports: Vec<&Stmt> =
        module.iter().filter(|s| matches!(s, Stmt::Import(_) | Stmt::ImportFrom(_))).collect();
    let imported: BTreeSet<&str> = imports
        .iter()
        .flat_map(|s| match s {
            Stmt::Import(s) => &s.names,
            Stmt::ImportFrom(s) => &s.names,
            _ => unreachable!("only imports are listed"),
        })
        .map(|a| a.asname.as_ref().map_or(a.name.split('.').next().unwrap_or(""), |n| n.as_str()))
        .collect();
    let helper = module.iter().filter_map(Stmt::as_function_def_stmt).find(|f| {
        let name = f.name.as_str();
        let is_called = names.of.get(name).is_some_and(|u| u.declared == 1 && u.stores.is_empty());
        let mut own = Names::default();
        f.body.iter().for_each(|s| own.visit_stmt(s));
        f.parameters.iter().for_each(|p| own.declare(p.name()));
        let needs_module = own.of.iter().any(|(n, uses)| {
            let local = uses.declared > 0 || !uses.stores.is_empty();
            let global = names.of.get(n).is_some_and(|all| all.declared > 0 || !all.stores.is_empty());
            !local && global && !imported.contains(n)
        });
        // Annotations and defaults are read where it is defined.
        let mut head = Names::default();
        head.visit_parameters(&f.parameters);
        f.returns.iter().for_each(|r| head.visit_annotation(r));
        let head_needs = head.of.iter().any(|(n, uses)| {
            !uses.places.is_empty()
                && !imported.contains(n)
                && names.of.get(n).is_some_and(|all| all.declared > 0)
        });
        f.decorator_list.is_empty() && is_called && names.is_free(name) && !needs_module && !head_needs
    })?;
    let at = |range: TextRange| usize::from(range.start())..usize::from(range.end());
    let mut moved: String = imports.iter().map(|s| format!("{}\n", &text[at(s.range())])).collect();
    moved.push_str(&text[at(helper.range)]);
    moved.push('\n');
    let import = format!("from {HELPER} import {}", helper.name);
    let mut changed = Changed::new(text, vec![Edit::replace(helper.range, import)])?;
    changed.helper = Some(moved);
    let span = Span { file: FILE, start: helper.range.start().into(), end: helper.range.end().into() };
    Some((changed, span))
}

/// Parts of a module's analysis that are compared.
struct Meaning {
    /// Code, level and message, and the place.
    found: Vec<(String, Option<Span>)>,
    units: Vec<String>,
    /// Places of the units.
    places: Vec<Span>,
}

fn without_places(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !matches!(key.as_str(), "at" | "files"));
            fields.values_mut().for_each(without_places);
        }
        Value::Array(items) => items.iter_mut().for_each(without_places),
        _ => {}
    }
}

/// A text without what a change of names and layout changes in it.
fn plain(text: &str, path: &str) -> String {
    let folder = path.rsplit_once('/').map_or(String::new(), |(f, _)| format!("{f}/"));
    let text = text.replace(&format!("{folder}{HELPER}.py"), path).replace(RENAMED, "");
    text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '\\')).collect()
}

fn meaning(path: &str, text: &str, helper: Option<&str>) -> Option<Meaning> {
    let config = Config { level: Level::Info, ..Config::default() };
    let read =
        |id: u32, path: &str, text: &str| File::read(FileId(id), path, &Arc::from(text), &Limits::default());
    let others = || -> Vec<File> {
        let folder = path.rsplit_once('/').map_or(String::new(), |(f, _)| format!("{f}/"));
        helper.iter().map(|text| read(1, &format!("{folder}{HELPER}.py"), text)).collect()
    };
    let around = |_| Project { files: others(), ..Project::default() };
    let report = lint::lint_among(frontends::recognize, path, FILE, text.as_bytes(), around, &config);
    let Outcome::Checked { findings, .. } = report.outcome else { return None };
    let found = findings
        .into_iter()
        .map(|d| (plain(&format!("{} {} {}", d.code, d.level.as_str(), d.message), path), d.span));
    let mut files = vec![read(0, path, text)];
    files.extend(others());
    let project = Project { files, ..Project::default() };
    let compiled = frontends::compile(&project, 0);
    let units = compiled.iter().flat_map(|c| &c.units).map(|u| {
        let mut term = exchange::to_json(&u.code, &Sources::new());
        without_places(&mut term);
        plain(&format!("{}: {term}", u.name), path)
    });
    let places = compiled.iter().flat_map(|c| &c.units).map(|u| u.span).collect();
    Some(Meaning { found: found.collect(), units: units.collect(), places })
}

#[derive(Default)]
struct Tally {
    files: usize,
    units: usize,
    /// Differences of [`KNOWN`].
    known: usize,
    changes: BTreeMap<&'static str, usize>,
    differences: BTreeMap<&'static str, Vec<String>>,
}

impl Tally {
    fn compare(
        &mut self,
        name: &'static str,
        path: &str,
        before: &Meaning,
        changed: Option<Changed>,
        moved: Option<Span>,
    ) {
        let Some(changed) = changed.filter(|c| parse(&c.text).is_some()) else { return };
        // What a function makes is a unit of its module.
        if moved.is_some_and(|m| before.places.iter().any(|s| m.start <= s.start && s.end <= m.end)) {
            return;
        }
        *self.changes.entry(name).or_default() += 1;
        let Some(after) = meaning(path, &changed.text, changed.helper.as_deref()) else {
            // What makes the agents may be in the module that the function moved into.
            if moved.is_some() {
                return;
            }
            let all = self.differences.entry(name).or_default();
            return all.push(format!("{path}: nothing is found any more"));
        };
        // What is in the module that a function moved into is reported there.
        let stays = |span: &Option<Span>| match (span, moved) {
            (Some(s), Some(moved)) => !(moved.start <= s.start && s.end <= moved.end),
            _ => true,
        };
        let at = |span: Option<Span>| match span {
            // The place of an imported name includes its alias.
            Some(s) if name == "aliases" => changed.moved(s.start as usize, true).to_string(),
            Some(s) => format!(
                "{}-{}",
                changed.moved(s.start as usize, true),
                changed.moved(s.end as usize, s.end == s.start)
            ),
            None => String::new(),
        };
        let said = |of: &[(String, Option<Span>)], map: &dyn Fn(Option<Span>) -> String| {
            let kept = of.iter().filter(|(_, span)| stays(span));
            kept.map(|(what, span)| format!("{what} at {}", map(*span))).collect::<Vec<String>>()
        };
        let plain = |span: Option<Span>| match span {
            Some(s) if name == "aliases" => s.start.to_string(),
            Some(s) => format!("{}-{}", s.start, s.end),
            None => String::new(),
        };
        let (mut was, mut is) = (said(&before.found, &at), Vec::new());
        is.extend(after.found.iter().map(|(what, span)| format!("{what} at {}", plain(*span))));
        was.sort();
        is.sort();
        let mut out = if was == is { String::new() } else { difference(&was, &is) };
        if before.units != after.units {
            for (a, b) in before.units.iter().zip(&after.units).filter(|(a, b)| a != b) {
                let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
                let part =
                    |t: &str| -> String { t.chars().skip(same.saturating_sub(120)).take(260).collect() };
                out += &format!("  - term …{}\n  + term …{}\n", part(a), part(b));
            }
            if before.units.len() != after.units.len() {
                out += &format!("  {} units became {}\n", before.units.len(), after.units.len());
            }
        }
        let known = KNOWN.iter().any(|(of, part, _)| *of == name && path.contains(part));
        if !out.is_empty() && known {
            self.known += 1;
        } else if !out.is_empty() {
            self.differences.entry(name).or_default().push(format!("{path}:\n{out}"));
        }
    }

    fn file(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let path = path.canonicalize().unwrap_or(path.to_path_buf()).display().to_string();
        // A comment may be a suppression; a marked fixture states its findings in one.
        let Some(parsed) = parse(&text).filter(|_| !text.contains("entail:")) else { return };
        let Some(before) = meaning(&path, &text, None) else { return };
        self.files += 1;
        self.units += before.units.len();
        let of = path.as_str();
        self.compare("comments", of, &before, commented(&text, &parsed), None);
        self.compare("layout", of, &before, laid_out(&text, &parsed), None);
        let module = body(parsed.syntax());
        let names = Names::read(module);
        if names.is_open {
            return;
        }
        self.compare("aliases", of, &before, aliased(&text, &names), None);
        self.compare("names of variables", of, &before, renamed(&text, &names), None);
        if let Some((changed, moved)) = split(&text, module, &names) {
            self.compare("another module", of, &before, Some(changed), Some(moved));
        }
    }

    fn finish(self) {
        let counts: Vec<String> = self.changes.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let counts = counts.join(", ");
        eprintln!(
            "{} files, {} units, {} known differences, changes: {counts}",
            self.files, self.units, self.known
        );
        let differ =
            self.differences.iter().map(|(name, of)| format!("{name} ({}):\n{}", of.len(), of.join("\n")));
        let differ: Vec<String> = differ.collect();
        assert!(differ.is_empty(), "{}", differ.join("\n"));
    }
}

#[test]
fn comments_layout_and_names_of_modules_mean_nothing() {
    let mut tally = Tally::default();
    let mut folders = own_folders();
    folders.push(folders[0].join("../crates/lint/tests/fixtures"));
    files(&folders, &["py"]).iter().for_each(|path| tally.file(path));
    assert!(tally.files > 100, "{} files", tally.files);
    tally.finish();
}

#[test]
fn comments_layout_and_names_of_modules_of_a_corpus_mean_nothing() {
    let Ok(corpus) = std::env::var("ENTAIL_CORPUS") else { return };
    let cases = std::env::var("ENTAIL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut tally = Tally::default();
    for path in files(&[PathBuf::from(corpus)], &["py"]) {
        if tally.files < cases {
            tally.file(&path);
        }
    }
    tally.finish();
}
