//! The open documents, and the queries about them.

use crate::analysis::{
    Analysis, Host, Language, Options, Programs, PythonFile, analyze, declared_in_python, used,
};
use crate::calls;
use crate::config_symbols;
use crate::cross_file::{self, Place, SameName, Text};
use crate::names::{self, Kind, MAIN, Names, Occurrence};
use crate::outline;
use crate::{
    Completion, CompletionKind, Edit, FileEdits, Finding, Fold, Hint, HintKind, Hover, Lens, Location,
    QueryError, Range, Repair, Signature, Symbol, Token, TokenKind,
};
use diagnostics::{Applicability, Diagnostic, Span};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syntax::agent::ast::{Item, Program, Use, UseSource, UsedName, UsedNames};
use syntax::agent::keywords::{self, Role};

/// The most declarations that one search finds.
const MAX_NAMED: usize = 500;

/// No settings, no policy, no files.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Host for Nothing {
    fn resolve(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn read(&self, _: &Path) -> Option<Arc<str>> {
        None
    }

    fn options(&self, _: &Path) -> Result<Options, String> {
        Ok(Options::default())
    }

    fn units(&self, _: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
        Err("configurations are not read here".into())
    }
}

struct Document {
    text: Arc<str>,
    /// The files that were read for its findings.
    read: HashSet<String>,
}

/// The open documents with everything around them.
pub struct Workspace {
    around: Box<dyn Host>,
    documents: BTreeMap<String, Document>,
}

impl Workspace {
    /// Without documents.
    pub fn new(around: Box<dyn Host>) -> Workspace {
        Workspace { around, documents: BTreeMap::new() }
    }

    /// Opens a document, or replaces its text.
    pub fn open(&mut self, path: &str, text: Arc<str>) {
        self.documents.insert(path.to_string(), Document { text, read: HashSet::new() });
    }

    /// Replaces the text of an open document.
    pub fn change(&mut self, path: &str, text: Arc<str>) {
        if let Some(document) = self.documents.get_mut(path) {
            document.text = text;
        }
    }

    /// Closes a document.
    pub fn close(&mut self, path: &str) {
        self.documents.remove(path);
    }

    /// The text of an open document.
    pub fn text(&self, path: &str) -> Option<&Arc<str>> {
        self.documents.get(path).map(|d| &d.text)
    }

    /// Notes that files on the disk have changed.
    pub fn disk_changed(&self) {
        self.around.changed();
    }

    /// The open documents for whose findings a file was read, in the order of their names.
    pub fn readers(&self, path: &str) -> Vec<String> {
        let place = self.around.resolve(Path::new(path));
        let place = place.map_or_else(|| path.to_string(), |p| p.display().to_string());
        let of = self.documents.iter().filter(|(_, d)| d.read.contains(&place));
        of.map(|(path, _)| path.clone()).collect()
    }

    /// The findings of a document.
    pub fn findings(&mut self, path: &str) -> Vec<Finding> {
        let Some(view) = self.view(path) else { return Vec::new() };
        let analysis = self.analysis(&view);
        let here = analysis.found.iter().filter(|d| d.span.is_none_or(|s| s.file == MAIN));
        let found = here.map(|d| view.finding(&analysis, d)).collect();
        let read = analysis.sources.iter().skip(1).map(|(_, s)| s.path.clone()).collect();
        if let Some(document) = self.documents.get_mut(path) {
            document.read = read;
        }
        found
    }

    /// The entry points of a document.
    pub fn programs(&self, path: &str) -> Option<Programs> {
        let view = self.view(path)?;
        Some(self.analysis(&view).programs(view.path, view.text))
    }

    /// The repairs of the findings that touch a range.
    pub fn repairs(&self, path: &str, range: Range) -> Vec<Repair> {
        let Some(view) = self.view(path) else { return Vec::new() };
        let analysis = self.analysis(&view);
        let mut out = Vec::new();
        for d in &analysis.found {
            let (Some(span), Some(fix)) = (d.span, &d.fix) else { continue };
            let touches =
                span.file == MAIN && span.start as usize <= range.end && range.start <= span.end as usize;
            if !touches || fix.span.file != MAIN || fix.applicability == Applicability::DisplayOnly {
                continue;
            }
            let Some(title) = repair_title(d) else { continue };
            out.push(Repair {
                title,
                applicability: fix.applicability,
                finding: view.finding(&analysis, d),
                edit: Edit { range: range_of(fix.span), text: fix.replacement.clone() },
            });
        }
        out
    }

    /// An explanation of what stands at a place.
    pub fn hover(&self, path: &str, offset: usize) -> Option<Hover> {
        let view = self.view(path)?;
        let findings = self.analysis(&view);
        let inside = |s: Span| s.file == MAIN && (s.start as usize..=s.end as usize).contains(&offset);
        if let Some(text) = config_symbols::hover(view.path, view.text, offset) {
            let found = findings.found.iter().filter(|d| d.span.is_some_and(inside));
            let found = found.filter_map(|d| Some(format!("**{}** {}\n\n{}", d.code, d.message, d.meaning?)));
            let all: Vec<String> = std::iter::once(text).chain(found).collect();
            return Some(Hover { markdown: all.join("\n\n"), range: None });
        }
        if let Some(here) = view.at(offset) {
            if let Some(hover) = self.hover_python(&view, offset) {
                return Some(hover);
            }
            let Some(declared) = view.declaration(offset) else { return self.hover_across(&view, offset) };
            let mut markdown = format!("```agent\n{}\n```", view.header(declared));
            if let Some(bound) =
                findings.bounds().into_iter().find(|b| here.kind == Kind::Callable && b.name == here.text)
            {
                markdown.push_str(&format!("\n\nA run makes {}.", bound.text));
            }
            return Some(Hover { markdown, range: Some(range_of(here.span)) });
        }
        let word = word_at(view.text, offset);
        if view.language() == Language::Agent
            && let Some(meaning) = keywords::about(word)
        {
            return Some(Hover { markdown: format!("`{word}`: {meaning}"), range: None });
        }
        // In other files, what is found here says what the field means in the calculus.
        let found = findings.found.iter().find(|d| d.span.is_some_and(inside))?;
        let markdown = format!("**{}** {}\n\n{}", found.code, found.message, found.meaning?);
        Some(Hover { markdown, range: found.span.map(range_of) })
    }

    /// The head of a declaration of another file.
    fn hover_across(&self, view: &View<'_>, offset: usize) -> Option<Hover> {
        let (files, same) = self.across(view, offset)?;
        let (here, declared) = (same.places.get(same.here)?, same.places.iter().find(|p| p.declares)?);
        let (path, text) = files.get(declared.file)?;
        let other = View::new(path, text);
        let header = other.header(other.at(declared.start)?);
        Some(Hover { markdown: format!("```agent\n{header}\n```"), range: Some(here.start..here.end) })
    }

    /// The declaration, in a module of Python, of the name at a place.
    fn in_python(&self, view: &View<'_>, offset: usize) -> Option<(String, PythonFile, Location)> {
        let here = view.at(offset)?;
        let uses = view.program.iter().flat_map(|p| &p.items).filter_map(|item| match item {
            Item::Use(u) if u.source == UseSource::Python => Some(u),
            _ => None,
        });
        let open = self.unsaved();
        uses.into_iter().find_map(|import| {
            let name = match (&import.names, &here.behind) {
                (UsedNames::Behind(name), Some(behind)) if name.text == *behind => here.text.as_str(),
                (UsedNames::These(names), None) => {
                    let is_it = |n: &&UsedName| {
                        n.name.span == here.span || n.local().text == here.text && here.kind != Kind::Taken
                    };
                    names.iter().find(is_it)?.name.text.as_str()
                }
                (UsedNames::All, None) if view.declaration(offset).is_none() => here.text.as_str(),
                _ => return None,
            };
            let import = (import, name);
            let (module, place) = declared_in_python(view.path, view.text, import, &open, &*self.around)?;
            Some((name.to_string(), module, place))
        })
    }

    /// The head of a declaration that a module of Python became.
    fn hover_python(&self, view: &View<'_>, offset: usize) -> Option<Hover> {
        let range = range_of(view.at(offset)?.span);
        let (name, module, place) = self.in_python(view, offset)?;
        let declared = View::new(view.path, &module.text);
        let of = declared.names.iter().flat_map(|n| &n.all).find(|o| o.declares && o.text == name)?;
        let file = place.path.rsplit('/').next().unwrap_or(&place.path);
        let markdown =
            format!("```agent\n{}\n```\n\nFrom `{}`.", declared.header(of), diagnostics::clip(file));
        Some(Hover { markdown, range: Some(range) })
    }

    /// Names of an imported file: behind its name, or in the braces of the import. `None` elsewhere.
    fn names_behind(&self, view: &View<'_>, offset: usize) -> Option<Vec<Completion>> {
        let before = view.text.get(..offset)?.trim_end_matches(is_word);
        let mut imports = view.program.iter().flat_map(|p| &p.items).filter_map(|item| match item {
            Item::Use(u) => Some(u),
            _ => None,
        });
        let import = match before.strip_suffix('.') {
            Some(before) => {
                let word = &before[before.trim_end_matches(is_word).len()..];
                imports.find(|u| matches!(&u.names, UsedNames::Behind(name) if name.text == word))?
            }
            None => {
                let inside = |u: &&Use| {
                    matches!(u.names, UsedNames::These(_))
                        && (u.path.span.end as usize..u.span.end as usize).contains(&offset)
                };
                imports.find(inside)?
            }
        };
        let texts = used(view.path, view.text, &[import], &self.unsaved(), &*self.around);
        let other = View::new(view.path, texts.first()?);
        let declared = other.names.iter().flat_map(|n| &n.all).filter(|o| o.declares);
        let named = declared.filter_map(|o| {
            let kind = match o.kind {
                Kind::Type | Kind::Case => CompletionKind::Type,
                Kind::Agent => CompletionKind::Agent,
                Kind::Tool | Kind::Callable => CompletionKind::Function,
                Kind::Constant => CompletionKind::Variable,
                Kind::Variable(_) | Kind::Policy | Kind::Import | Kind::Taken | Kind::Renamed => return None,
            };
            Some(Completion { detail: Some(other.header(o)), ..Completion::new(o.text.as_str(), kind) })
        });
        Some(named.collect())
    }

    /// Texts that may stand at a place.
    pub fn completion(&self, path: &str, offset: usize) -> Vec<Completion> {
        let Some(view) = self.view(path) else { return Vec::new() };
        match view.language() {
            Language::Config | Language::Python => {
                config_symbols::completion(view.path, view.text, offset, || self.world(&view))
            }
            Language::Agent => {
                let behind = self.names_behind(&view, offset);
                behind.unwrap_or_else(|| view.completion(offset))
            }
            Language::Lam => view.completion(offset),
        }
    }

    /// The declarations of what is named at a place.
    pub fn definition(&self, path: &str, offset: usize) -> Vec<Location> {
        let Some(view) = self.view(path) else { return Vec::new() };
        if view.language() == Language::Agent {
            let files = self.world(&view);
            if let Some(file) = cross_file::file_named(&files, offset) {
                return location(&files, file, 0..0).into_iter().collect();
            }
        }
        if let Some((_, _, place)) = self.in_python(&view, offset) {
            return vec![place];
        }
        let Some((files, same)) = self.across(&view, offset) else {
            return view.declaration(offset).map(|o| view.location(o.span)).into_iter().collect();
        };
        let declared = same.places.iter().filter(|p| p.declares);
        declared.filter_map(|p| location(&files, p.file, p.start..p.end)).collect()
    }

    /// All places of what is named at a place, in all files; its declarations only on request.
    pub fn references(&self, path: &str, offset: usize, declarations: bool) -> Vec<Location> {
        let Some(view) = self.view(path) else { return Vec::new() };
        match self.across(&view, offset) {
            Some((files, same)) => {
                let all = same.places.iter().filter(|p| declarations || !p.declares);
                all.filter_map(|p| location(&files, p.file, p.start..p.end)).collect()
            }
            None => {
                let all = view.same(offset).into_iter().filter(|o| declarations || !o.declares);
                all.map(|o| view.location(o.span)).collect()
            }
        }
    }

    /// All places in the document of what is named at a place.
    pub fn highlights(&self, path: &str, offset: usize) -> Vec<Range> {
        let Some(view) = self.view(path) else { return Vec::new() };
        match self.across(&view, offset) {
            Some((_, same)) => {
                same.places.iter().filter(|p| p.file == 0).map(|p: &Place| p.start..p.end).collect()
            }
            None => view.same(offset).into_iter().map(|o| range_of(o.span)).collect(),
        }
    }

    /// The name at a place with its range, if it can be changed.
    pub fn renamable(&self, path: &str, offset: usize) -> Option<(Range, String)> {
        let view = self.view(path)?;
        if self.in_python(&view, offset).is_some() {
            return None;
        }
        if let Some((_, SameName { name, places, here, fixed: None, .. })) = self.across(&view, offset) {
            let at = places.get(here)?;
            return Some((at.start..at.end, name));
        }
        let here = view.at(offset).filter(|o| o.kind != Kind::Policy)?;
        Some((range_of(here.span), here.text.clone()))
    }

    /// The changes that give what is named at a place another name, in all files.
    ///
    /// # Errors
    /// There is nothing to rename, it can't be renamed, or the new name is invalid.
    pub fn rename(&self, path: &str, offset: usize, to: &str) -> Result<Vec<FileEdits>, QueryError> {
        let Some(view) = self.view(path) else { return Ok(Vec::new()) };
        if self.in_python(&view, offset).is_some() {
            return Err(QueryError::Refused("it is a name of a module of Python".into()));
        }
        match self.across(&view, offset) {
            Some((files, same)) => rename_across(&files, &same, to),
            None => view.rename(offset, to).map(|edits| vec![edits]),
        }
    }

    /// The declarations of a program.
    pub fn symbols(&self, path: &str) -> Vec<Symbol> {
        self.view(path).map_or_else(Vec::new, |view| view.symbols())
    }

    /// The names and comments of a program, in the order of the text. They may overlap.
    pub fn tokens(&self, path: &str) -> Vec<Token> {
        let Some(view) = self.view(path) else { return Vec::new() };
        let name = |o: &Occurrence| {
            let kind = match o.kind {
                Kind::Type | Kind::Case => TokenKind::Type,
                Kind::Agent => TokenKind::Agent,
                Kind::Tool | Kind::Callable | Kind::Policy => TokenKind::Function,
                Kind::Variable(_) | Kind::Constant | Kind::Import | Kind::Taken | Kind::Renamed => {
                    TokenKind::Variable
                }
            };
            Token { range: range_of(o.span), kind, declares: o.declares }
        };
        let mut all: Vec<Token> = view.names.iter().flat_map(|n| &n.all).map(name).collect();
        let comments = view.program.iter().flat_map(|p| &p.comments);
        all.extend(comments.map(|c| Token {
            range: range_of(c.span),
            kind: TokenKind::Comment,
            declares: false,
        }));
        all.sort_by_key(|t| t.range.start);
        all
    }

    /// The bounds of pipelines behind their heads, and the types of variables.
    pub fn hints(&self, path: &str) -> Vec<Hint> {
        let Some(view) = self.view(path) else { return Vec::new() };
        let analysis = self.analysis(&view);
        let bounds = analysis.bounds();
        let bound = |item: &Item| {
            let (name, _, _) = names::title(item);
            let end = match item {
                Item::Pipeline(p) => p.result.span.end,
                Item::Workflow(w) => w.result.span.end,
                _ => return None,
            };
            let bound = bounds.iter().find(|b| b.name == name)?;
            Some(Hint { offset: end as usize, label: bound.text.clone(), kind: HintKind::Bound })
        };
        let mut hints: Vec<Hint> = view.program.iter().flat_map(|p| &p.items).filter_map(bound).collect();
        hints.extend(analysis.variables().into_iter().map(|(at, ty)| Hint {
            offset: at.end as usize,
            label: format!(": {ty}"),
            kind: HintKind::Type,
        }));
        hints
    }

    /// The signatures of the call of a program that is being written at a place.
    pub fn signatures(&self, path: &str, offset: usize) -> Vec<Signature> {
        let view = self.view(path).filter(|view| view.language() == Language::Agent);
        let Some(view) = view else { return Vec::new() };
        let items = view.program.iter().flat_map(|p| &p.items);
        let uses: Vec<&Use> = items
            .filter_map(|item| match item {
                Item::Use(used) => Some(used),
                _ => None,
            })
            .collect();
        let mut declared = vec![view.text.clone()];
        declared.extend(used(view.path, view.text, &uses, &self.unsaved(), &*self.around));
        let imports: Vec<&str> = view
            .names
            .iter()
            .flat_map(|n| &n.all)
            .filter(|o| o.declares && o.kind == Kind::Import)
            .map(|o| o.text.as_str())
            .collect();
        calls::signatures(view.text, offset, &declared, &imports)
    }

    /// The parts of a program that can be folded, in the order of the text.
    pub fn folds(&self, path: &str) -> Vec<Fold> {
        let view = self.view(path).filter(|view| view.language() == Language::Agent);
        view.map_or_else(Vec::new, |view| outline::folds(view.text))
    }

    /// The actions above the declarations of a program.
    pub fn lenses(&self, path: &str) -> Vec<Lens> {
        let Some(view) = self.view(path) else { return Vec::new() };
        let Some(program) = &view.program else { return Vec::new() };
        outline::lenses(program, &self.analysis(&view).bounds())
    }

    /// The declarations of the open programs and of the other ones of their projects whose names contain a
    /// text, whatever its case.
    pub fn named(&self, text: &str) -> Vec<(Symbol, Location)> {
        let wanted = text.to_lowercase();
        let mut files: BTreeMap<String, Arc<str>> = BTreeMap::new();
        // The files of a project are read from the disk, and documents of one folder are of one project.
        let paths = self.documents.keys().map(Path::new);
        let one_of_each_folder: BTreeMap<_, _> = paths.map(|path| (path.parent(), path)).collect();
        for path in one_of_each_folder.into_values() {
            files.extend(self.around.files(path));
        }
        // Of what is open, the text that the editor has.
        let open = self.documents.iter().map(|(path, d)| (path.clone(), d.text.clone()));
        files.extend(open);
        let mut found = Vec::new();
        for (path, text) in &files {
            let view = View::new(path, text);
            let here = view.symbols().into_iter().filter(|s| s.name.to_lowercase().contains(&wanted));
            found.extend(here.map(|symbol| {
                let (path, text, range) = (path.clone(), text.clone(), symbol.name_range.clone());
                (symbol, Location { path, text, range })
            }));
            if found.len() >= MAX_NAMED {
                break;
            }
        }
        found.truncate(MAX_NAMED);
        found
    }

    /// The changes that lay a document out; `None` for languages without a layout of their own.
    ///
    /// # Errors
    /// The document has errors.
    pub fn format(&self, path: &str) -> Result<Option<Vec<Edit>>, QueryError> {
        let Some(view) = self.view(path) else { return Ok(None) };
        let formatted = match view.language() {
            Language::Agent => syntax::format::agent(MAIN, view.text),
            Language::Lam => syntax::format::lam(MAIN, view.text),
            Language::Config | Language::Python => return Ok(None),
        };
        match formatted {
            Ok(text) if *text == **view.text => Ok(Some(Vec::new())),
            Ok(text) => Ok(Some(vec![Edit { range: 0..view.text.len(), text }])),
            Err(_) => Err(QueryError::Refused("a file with errors is not formatted".into())),
        }
    }

    fn view(&self, path: &str) -> Option<View<'_>> {
        let (path, document) = self.documents.get_key_value(path)?;
        Some(View::new(path, &document.text))
    }

    /// The document, then the other files of its project; of what is open, the text that the editor has.
    fn world(&self, view: &View<'_>) -> Vec<Text> {
        let mut files: Vec<Text> = vec![(view.path.to_string(), view.text.clone())];
        let open = self.documents.iter().filter(|(path, _)| *path != view.path);
        files.extend(open.map(|(path, d)| (path.clone(), d.text.clone())));
        let known: HashSet<String> = files.iter().map(|(p, _)| p.clone()).collect();
        let more = self.around.files(Path::new(view.path));
        files.extend(more.into_iter().filter(|(p, _)| !known.contains(p)));
        files
    }

    /// Returns the symbol at a place, if other files may refer to it.
    fn across(&self, view: &View<'_>, offset: usize) -> Option<(Vec<Text>, SameName)> {
        let local = |o: &Occurrence| matches!(o.kind, Kind::Variable(_) | Kind::Policy | Kind::Import);
        if view.at(offset).is_some_and(local) {
            return None;
        }
        let files = self.world(view);
        let same = cross_file::same(&files, offset)?;
        Some((files, same))
    }

    fn analysis(&self, view: &View<'_>) -> Analysis {
        analyze(view.path, view.text, &self.unsaved(), &*self.around)
    }

    /// The texts of the open documents, which others may import, as the editor has them.
    fn unsaved(&self) -> HashMap<PathBuf, Arc<str>> {
        let open = self.documents.iter();
        open.filter_map(|(path, d)| Some((self.around.resolve(Path::new(path))?, d.text.clone()))).collect()
    }
}

/// A document with what is read from it.
struct View<'a> {
    path: &'a str,
    text: &'a Arc<str>,
    program: Option<Program>,
    names: Option<Names>,
}

impl<'a> View<'a> {
    fn new(path: &'a str, text: &'a Arc<str>) -> View<'a> {
        let agent = Language::of(path) == Language::Agent;
        let program = agent.then(|| syntax::agent::parse(MAIN, text).0);
        let names = program.as_ref().map(Names::of);
        View { path, text, program, names }
    }

    fn language(&self) -> Language {
        Language::of(self.path)
    }

    fn location(&self, span: Span) -> Location {
        Location { path: self.path.to_string(), text: self.text.clone(), range: range_of(span) }
    }

    fn at(&self, offset: usize) -> Option<&Occurrence> {
        self.names.as_ref()?.at(offset)
    }

    fn same(&self, offset: usize) -> Vec<&Occurrence> {
        match (&self.names, self.at(offset)) {
            (Some(names), Some(here)) => names.same(here).collect(),
            _ => Vec::new(),
        }
    }

    fn declaration(&self, offset: usize) -> Option<&Occurrence> {
        let here = self.at(offset)?;
        self.names.as_ref()?.declaration(here)
    }

    /// The head of what a name declares: up to its body, or the line of a variable.
    fn header(&self, declared: &Occurrence) -> String {
        const MAX_HEADER: usize = 400;
        let start = declared.span.start as usize;
        let item = self.program.as_ref().and_then(|p| names::item_at(p, start));
        let span = match (declared.kind, item) {
            (Kind::Variable(_), _) | (_, None) => {
                let line = self.text.get(..start).map_or(0, |before| before.matches('\n').count());
                return self.text.lines().nth(line).map_or(String::new(), |l| diagnostics::clip(l.trim()));
            }
            (_, Some((_, Item::Pipeline(p)))) => Span { end: p.result.span.end, ..p.span },
            (_, Some((_, Item::Workflow(w)))) => Span { end: w.result.span.end, ..w.span },
            (_, Some((_, Item::Tool(c) | Item::Task(c)))) => Span { end: c.body.span.start, ..c.span },
            (_, Some((_, item))) => item.span(),
        };
        let text = self.text.get(range_of(span)).unwrap_or("").trim();
        text.chars().take(MAX_HEADER).collect()
    }

    fn symbols(&self) -> Vec<Symbol> {
        let items = self.program.iter().flat_map(|p| &p.items);
        let symbol = |item: &Item| {
            let (name, span, kind) = names::title(item);
            let name = if name.is_empty() { "?".into() } else { name };
            Symbol { name, kind, range: range_of(item.span()), name_range: range_of(span) }
        };
        items.map(symbol).collect()
    }

    fn finding(&self, analysis: &Analysis, d: &Diagnostic) -> Finding {
        let remark = |r: &diagnostics::Remark| {
            let location = match r.span.file {
                MAIN => self.location(r.span),
                other => {
                    let source = analysis.sources.get(other)?;
                    let (path, text) = (source.path.clone(), source.text.clone());
                    Location { path, text, range: range_of(r.span) }
                }
            };
            Some((location, r.text.clone()))
        };
        Finding {
            code: d.code,
            level: d.level,
            message: d.message.clone(),
            help: d.help.clone(),
            range: d.span.map_or(0..0, range_of),
            related: d.remarks.iter().filter_map(remark).collect(),
        }
    }

    fn completion(&self, offset: usize) -> Vec<Completion> {
        use CompletionKind::{Agent, Field, Function, Keyword, Type, Variable};
        let (Some(names), Some(program)) = (&self.names, &self.program) else { return Vec::new() };
        // The text before the current word decides the possible completions.
        let before = self.text.get(..offset).unwrap_or("").trim_end_matches(is_word);
        let item = names::item_at(program, offset).map(|(i, _)| i);
        let wanted = |k: Kind| match k {
            Kind::Variable(of) => Some(of) == item,
            _ => true,
        };
        let of_kind = |only: &dyn Fn(Kind) -> bool| {
            let mut seen: Vec<(&str, CompletionKind)> = Vec::new();
            for o in names.all.iter().filter(|o| o.declares && wanted(o.kind) && only(o.kind)) {
                let kind = match o.kind {
                    Kind::Type | Kind::Case => Type,
                    Kind::Agent => Agent,
                    Kind::Tool | Kind::Callable | Kind::Policy => Function,
                    Kind::Variable(_) | Kind::Constant | Kind::Import | Kind::Taken | Kind::Renamed => {
                        Variable
                    }
                };
                if !seen.contains(&(o.text.as_str(), kind)) {
                    seen.push((&o.text, kind));
                }
            }
            seen
        };
        let trimmed = before.trim_end();
        let arguments = calls::names_of_arguments(self.text, before.len(), program);
        let items: Vec<(&str, CompletionKind)> = if trimmed.ends_with(['{', ',']) && !arguments.is_empty() {
            arguments.iter().map(|name| (name.as_str(), Field)).collect()
        } else if before.ends_with('.') {
            names.fields.iter().map(|f| (f.as_str(), Field)).collect()
        } else if trimmed.ends_with(" by") {
            of_kind(&|k| k == Kind::Agent)
        } else if trimmed.rfind("tools:").is_some_and(|i| !trimmed[i..].contains(']')) {
            of_kind(&|k| k == Kind::Tool)
        } else if trimmed.ends_with(" run") {
            of_kind(&|k| matches!(k, Kind::Callable | Kind::Tool))
        } else if trimmed.ends_with("->") {
            let built_in = keywords::words(Role::Type).map(|t| (t, Keyword));
            of_kind(&|k| k == Kind::Type).into_iter().chain(built_in).collect()
        } else {
            let words = keywords::all().map(|w| (w, Keyword));
            of_kind(&|_| true)
                .into_iter()
                .chain(agentlang::function_names().map(|f| (f, Function)))
                .chain(words)
                .collect()
        };
        let item = |(label, kind): (&str, CompletionKind)| Completion {
            detail: keywords::about(label).filter(|_| kind == Keyword).map(String::from),
            ..Completion::new(label, kind)
        };
        items.into_iter().map(item).collect()
    }

    /// The changes that give a name of this document alone another one.
    fn rename(&self, offset: usize, to: &str) -> Result<FileEdits, QueryError> {
        let Some(here) = self.at(offset).filter(|o| o.kind != Kind::Policy) else {
            return Err(QueryError::Refused("nothing here has a name that can be changed".into()));
        };
        if !is_identifier(to) {
            return Err(QueryError::InvalidName(format!("`{}` can't be a name", diagnostics::clip(to))));
        }
        let taken =
            self.names.as_ref().is_some_and(|n| n.all.iter().any(|o| o.kind == here.kind && o.text == to));
        if taken {
            return Err(QueryError::Refused(format!("`{to}` is a name here already")));
        }
        let text = |o: &Occurrence| self.names.as_ref().map_or_else(|| to.to_string(), |n| n.renamed(o, to));
        let edit = |o: &Occurrence| Edit { range: range_of(o.span), text: text(o) };
        let edits = self.same(offset).into_iter().map(edit).collect();
        Ok(FileEdits { path: self.path.to_string(), text: self.text.clone(), edits })
    }
}

/// The changes that give what several files name another name.
fn rename_across(files: &[Text], same: &SameName, to: &str) -> Result<Vec<FileEdits>, QueryError> {
    if let Some(why) = &same.fixed {
        return Err(QueryError::Refused(why.clone()));
    }
    let word = is_identifier(to);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    let text = to.starts_with(char::is_alphabetic) && to.trim() == to && to.chars().all(plain);
    // A text that YAML would not read as a string.
    let other = ["true", "false", "null", "yes", "no", "on", "off"];
    let fits = word || text && !same.word;
    if !fits || other.contains(&to.to_ascii_lowercase().as_str()) {
        return Err(QueryError::InvalidName(format!("`{}` can't be a name here", diagnostics::clip(to))));
    }
    let of_file = |(i, (path, text)): (usize, &Text)| {
        let here = same.places.iter().filter(|p| p.file == i);
        let edits: Vec<Edit> = here.map(|p| Edit { range: p.start..p.end, text: to.to_string() }).collect();
        (!edits.is_empty()).then(|| FileEdits { path: path.clone(), text: text.clone(), edits })
    };
    Ok(files.iter().enumerate().filter_map(of_file).collect())
}

fn location(files: &[Text], file: usize, range: Range) -> Option<Location> {
    let (path, text) = files.get(file)?;
    Some(Location { path: path.clone(), text: text.clone(), range })
}

pub(crate) fn range_of(span: Span) -> Range {
    span.start as usize..span.end as usize
}

/// The title of a finding's repair, if it has one.
pub fn repair_title(d: &Diagnostic) -> Option<String> {
    let action = action(&d.fix.as_ref()?.replacement);
    Some(match d.help.first() {
        Some(help) => format!("{action} ({help})"),
        None => action,
    })
}

/// The change of a repair, in two words.
fn action(replacement: &str) -> String {
    match replacement.trim() {
        "" => "remove it".into(),
        text => format!("write `{}`", diagnostics::clip_to(text, 40)),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word_at(text: &str, offset: usize) -> &str {
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start =
        before.rfind(|c| !is_word(c)).map_or(0, |i| i + before[i..].chars().next().map_or(1, char::len_utf8));
    let end = offset + after.find(|c| !is_word(c)).unwrap_or(after.len());
    text.get(start..end).unwrap_or("")
}

/// Returns whether a text can be a name in a program.
fn is_identifier(to: &str) -> bool {
    let starts = to.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && to.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !keywords::is_reserved(to)
}
