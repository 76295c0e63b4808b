//! Names of the files of a program: which declaration a name means in which file.
//!
//! The file that is checked and all that it imports with a plain `use` share one set of names. Every other
//! file has the names of its own and those of its plain imports. A declaration of such a file has a name of
//! its own in the program, `file::name`, which no text can contain. [`resolve`] gives each name of the
//! program the one that it means, so that later stages know nothing of files.
//!
//! Invariant: a program of plain imports stays as it is.
//! Invariant: messages have names as the file that they are about writes them ([`Scopes::show`]).

use super::check::{duplicate, removal, suggest};
use super::codes;
use super::files::WithheldFunction;
use super::functions::{function_names, higher};
use super::predicate;
use super::workflow::REVIEW;
use diagnostics::{Diagnostic, FileId, Span, clip, nearest};
use std::collections::{BTreeSet, HashMap, HashSet};
use syntax::agent::ast::{
    AgentValue, Args, BodyKind, Callable, ClauseKind, Expr, ExprKind, Field, Item, MockAnswer, Name, Pattern,
    PatternForm, PolicyArg, PolicyRule, Program, Run, Step, Stmt, StmtKind, StrLit, Template, TemplatePart,
    TypeExpr, TypeKind, Use, UsedNames,
};

/// Text between the file and the name in the name of a declaration.
const BEHIND: &str = "::";

/// The name that a declaration has where it stands.
pub(super) fn declared_name(name: &str) -> &str {
    name.rsplit_once(BEHIND).map_or(name, |(_, name)| name)
}

/// Returns whether a declaration is one of the file that is checked, or of its plain imports.
pub(super) fn is_own(name: &str) -> bool {
    !name.contains(BEHIND)
}

/// Kind of a declaration. Those of different kinds may have one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Type,
    Case,
    Agent,
    Tool,
    Callable,
    Constant,
}

impl Kind {
    const ALL: [Kind; 6] = [Kind::Type, Kind::Case, Kind::Agent, Kind::Tool, Kind::Callable, Kind::Constant];

    fn as_str(self) -> &'static str {
        match self {
            Kind::Type => "type",
            Kind::Case => "case",
            Kind::Agent => "agent",
            Kind::Tool => "tool",
            Kind::Callable => "task or pipeline",
            Kind::Constant => "constant",
        }
    }
}

/// Kinds of what is called: a task where there is one of the name, otherwise a tool.
const CALLED: &[Kind] = &[Kind::Callable, Kind::Tool];
/// Kinds of an agent's helpers, and of those that it hands off to.
const ASKED: &[Kind] = &[Kind::Agent, Kind::Callable];

/// An import of a file, resolved.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) from: FileId,
    /// `None` if there is no such file, which was reported.
    pub(super) to: Option<FileId>,
    pub(super) import: Use,
}

/// A file behind a name.
#[derive(Debug)]
struct Behind {
    /// `None` if there is no such file, which was reported.
    file: Option<FileId>,
    path: StrLit,
    name: Name,
}

/// A name that an import takes out of a file.
#[derive(Debug)]
struct Taken {
    local: Name,
    /// The declarations that it means, by kind.
    means: Vec<(Kind, String)>,
}

#[derive(Debug, Default)]
struct Scope {
    /// The set of names to which the declarations of the file belong.
    group: usize,
    behind: HashMap<String, Behind>,
    taken: HashMap<String, Taken>,
    /// Files of other groups whose names are those of this file, too.
    open: Vec<FileId>,
}

/// Names that some files share.
#[derive(Debug, Default)]
struct Group {
    /// The part before the name of each declaration; empty for the file that is checked.
    prefix: String,
    names: HashMap<(Kind, String), Span>,
}

impl Group {
    fn full(&self, name: &str) -> String {
        match self.prefix.is_empty() {
            true => name.to_string(),
            false => format!("{}{BEHIND}{name}", self.prefix),
        }
    }
}

/// The names of all files of a program.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    groups: Vec<Group>,
    scopes: HashMap<FileId, Scope>,
    /// The declarations of each file.
    own: HashMap<FileId, HashMap<(Kind, String), Span>>,
    /// Each file and those that it imports plainly, directly or through others.
    closures: HashMap<FileId, Vec<FileId>>,
    /// Places of imported names that are wrong.
    faulty: HashSet<Span>,
    /// Places of names of which a finding has been reported.
    reported: HashSet<Span>,
    /// The group of each prefix.
    prefixes: HashMap<String, usize>,
    /// Functions of modules of Python that are no tools, by the file of the declarations of the others.
    withheld: HashMap<FileId, Vec<WithheldFunction>>,
}

impl Scopes {
    /// The group of a file.
    pub(super) fn group(&self, file: FileId) -> usize {
        self.scopes.get(&file).map_or(0, |s| s.group)
    }

    /// Returns whether the finding only repeats what was said of a name.
    pub(super) fn repeats(&self, d: &Diagnostic) -> bool {
        !self.reported.is_empty() && d.span.is_some_and(|at| self.reported.contains(&at))
    }

    /// The declaration that a file makes known under a name to those that import it.
    fn exported(&self, file: FileId, kind: Kind, name: &str) -> Option<(String, Span)> {
        let key = (kind, name.to_string());
        let files = self.closures.get(&file)?;
        files.iter().find_map(|f| {
            let at = self.own.get(f)?.get(&key)?;
            Some((self.groups.get(self.group(*f))?.full(name), *at))
        })
    }

    /// The function of Python of a name that a file would make known, if it could be a tool.
    fn withheld(&self, file: FileId, name: &str) -> Option<&WithheldFunction> {
        let files = self.closures.get(&file)?;
        files.iter().filter_map(|f| self.withheld.get(f)).flatten().find(|f| f.name == name)
    }

    /// The function of Python that a plain name of a file would mean, if it could be a tool.
    fn plain_withheld(&self, file: FileId, kinds: &[Kind], name: &str) -> Option<&WithheldFunction> {
        if self.withheld.is_empty() || !kinds.contains(&Kind::Tool) || function_names().any(|f| f == name) {
            return None;
        }
        let scope = self.scopes.get(&file)?;
        let names = &self.groups.get(scope.group)?.names;
        if kinds.iter().any(|kind| names.contains_key(&(*kind, name.to_string()))) {
            return None;
        }
        let is_known = |f: &FileId| self.group(*f) == scope.group || scope.open.contains(f);
        let modules = self.withheld.iter().filter(|(f, _)| is_known(f));
        modules.flat_map(|(_, all)| all).find(|f| f.name == name)
    }

    /// The names of a kind that a file makes known.
    fn exports(&self, file: FileId, kinds: &[Kind]) -> BTreeSet<&str> {
        let own = self.closures.get(&file).into_iter().flatten().filter_map(|f| self.own.get(f));
        own.flat_map(|names| names.keys())
            .filter(|(k, _)| kinds.contains(k))
            .map(|(_, n)| n.as_str())
            .collect()
    }

    /// The declaration that a plain name means in a file.
    fn plain(&self, file: FileId, kind: Kind, name: &str) -> Option<(String, Option<Span>)> {
        let scope = self.scopes.get(&file)?;
        if let Some(taken) = scope.taken.get(name)
            && let Some((_, full)) = taken.means.iter().find(|(k, _)| *k == kind)
        {
            return Some((full.clone(), Some(taken.local.span)));
        }
        let group = self.groups.get(scope.group)?;
        if group.prefix.is_empty() && scope.open.is_empty() {
            return None;
        }
        let key = (kind, name.to_string());
        if group.names.contains_key(&key) {
            return (!group.prefix.is_empty()).then(|| (group.full(name), None));
        }
        let other = scope.open.iter().find(|f| self.own.get(f).is_some_and(|own| own.contains_key(&key)))?;
        Some((self.groups.get(self.group(*other))?.full(name), None))
    }

    /// The task that a name means in a file.
    pub(super) fn task(&self, file: FileId, name: &str) -> String {
        self.plain(file, Kind::Callable, name).map_or_else(|| name.to_string(), |(full, _)| full)
    }

    /// A name of the program as a file writes it.
    fn written(&self, prefix: &str, name: &str, file: FileId) -> String {
        let full = format!("{prefix}{BEHIND}{name}");
        let Some(scope) = self.scopes.get(&file) else { return name.to_string() };
        let taken = scope.taken.values().filter(|t| t.means.iter().any(|(_, m)| *m == full));
        if let Some(taken) = taken.min_by_key(|t| t.local.span.start) {
            return taken.local.text.clone();
        }
        let is_it = |f: FileId| {
            Kind::ALL.iter().any(|kind| self.exported(f, *kind, name).is_some_and(|(found, _)| found == full))
        };
        let mut behind: Vec<&Behind> = scope.behind.values().filter(|b| b.file.is_some_and(is_it)).collect();
        behind.sort_by_key(|b| b.name.span.start);
        match behind.first() {
            Some(b) if self.prefixes.get(prefix) != Some(&scope.group) => format!("{}.{name}", b.name.text),
            _ => name.to_string(),
        }
    }

    /// A text with the names of the program as a file writes them.
    pub(super) fn show(&self, text: &str, file: FileId) -> String {
        let mut out = String::new();
        let mut rest = text;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        while let Some(at) = rest.find(BEHIND) {
            let (before, after) = (&rest[..at], &rest[at + BEHIND.len()..]);
            let start = before.char_indices().rev().find(|(_, c)| !is_word(*c));
            let start = start.map_or(0, |(i, c)| i + c.len_utf8());
            let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
            let (prefix, name) = (&before[start..], &after[..end]);
            if self.prefixes.contains_key(prefix) && !name.is_empty() {
                out.push_str(&before[..start]);
                out.push_str(&self.written(prefix, name, file));
                rest = &after[end..];
            } else {
                out.push_str(&rest[..at + BEHIND.len()]);
                rest = after;
            }
        }
        out.push_str(rest);
        out
    }

    /// Gives a finding the names that the file at its place has.
    pub(super) fn shown(&self, d: &mut Diagnostic) {
        if self.prefixes.is_empty() {
            return;
        }
        let file = d.span.map_or(FileId(0), |at| at.file);
        let texts = [&mut d.message, &mut d.label].into_iter();
        let texts = texts.chain(d.remarks.iter_mut().map(|r| &mut r.text)).chain(&mut d.help);
        for text in texts.chain(d.fix.as_mut().map(|f| &mut f.replacement)) {
            if text.contains(BEHIND) {
                *text = self.show(text, file);
            }
        }
    }
}

/// The names that an item declares.
fn declares(item: &mut Item) -> Vec<(Kind, &mut Name)> {
    match item {
        Item::Use(_) | Item::Test(_) | Item::Policy(_) => Vec::new(),
        Item::Const(c) => vec![(Kind::Constant, &mut c.name)],
        Item::Import(i) => vec![(Kind::Callable, &mut i.name)],
        Item::Alias(a) => vec![(Kind::Type, &mut a.name)],
        Item::Enum(e) => vec![(Kind::Type, &mut e.name)],
        Item::Sum(s) => {
            let cases = s.cases.iter_mut().map(|c| (Kind::Case, &mut c.name));
            std::iter::once((Kind::Type, &mut s.name)).chain(cases).collect()
        }
        Item::Agent(a) => vec![(Kind::Agent, &mut a.name)],
        Item::Tool(c) => vec![(Kind::Tool, &mut c.name)],
        Item::Task(c) => vec![(Kind::Callable, &mut c.name)],
        Item::Pipeline(p) | Item::Function(p) => vec![(Kind::Callable, &mut p.name)],
        Item::Workflow(w) => vec![(Kind::Callable, &mut w.name)],
    }
}

/// A path as a part of names: the name of the file, in letters, digits and `_`.
fn stem(path: &str) -> String {
    let name = path.rsplit(['/', '\\', ':']).next().unwrap_or(path);
    let name = name.split('.').next().unwrap_or(name);
    let mut stem: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    if !stem.starts_with(char::is_alphabetic) {
        stem.insert(0, '_');
    }
    stem
}

/// Gives each name of a program the declaration that it means. `order` is the files in the order in which
/// they were found, the checked one first; `links` is their imports.
pub(super) fn resolve(
    program: &mut Program,
    order: &[FileId],
    links: Vec<Link>,
    withheld: HashMap<FileId, Vec<WithheldFunction>>,
    out: &mut Vec<Diagnostic>,
) -> Scopes {
    let mut scopes = Scopes { withheld, ..Scopes::default() };
    for item in &mut program.items {
        let file = item.span().file;
        for (kind, name) in declares(item) {
            let own = scopes.own.entry(file).or_default();
            own.entry((kind, name.text.clone())).or_insert(name.span);
        }
    }
    scopes.group_files(order, &links);
    scopes.open_scopes(&links, out);
    if scopes.groups.len() > 1 {
        for item in &mut program.items {
            let group = &scopes.groups[scopes.group(item.span().file)];
            for (_, name) in declares(item).into_iter().filter(|_| !group.prefix.is_empty()) {
                name.text = group.full(&name.text);
            }
        }
    }
    let mut names =
        Names { scopes: &scopes, file: FileId(0), out, used: scopes.faulty.clone(), said: HashSet::new() };
    for item in &mut program.items {
        names.file = item.span().file;
        names.item(item);
    }
    let Names { used, said, .. } = names;
    for link in &links {
        unused(&link.import, &used, out);
    }
    scopes.reported = said;
    scopes
}

impl Scopes {
    fn group_files(&mut self, order: &[FileId], links: &[Link]) {
        let mut plain: HashMap<FileId, Vec<FileId>> = HashMap::new();
        for link in links.iter().filter(|l| matches!(l.import.names, UsedNames::All)) {
            plain.entry(link.from).or_default().extend(link.to);
        }
        let closure = |from: FileId, enters: &dyn Fn(FileId) -> bool| {
            let mut all = vec![from];
            let mut seen = HashSet::from([from]);
            let mut next = 0;
            while let Some(file) = all.get(next).copied() {
                next += 1;
                for to in plain.get(&file).into_iter().flatten() {
                    if enters(*to) && seen.insert(*to) {
                        all.push(*to);
                    }
                }
            }
            all
        };
        let paths: HashMap<FileId, &str> =
            links.iter().rev().filter_map(|l| Some((l.to?, l.import.path.value.as_str()))).collect();
        for file in order {
            if self.scopes.contains_key(file) {
                continue;
            }
            let number = self.groups.len();
            let mut group = Group::default();
            if number > 0 {
                let stem = stem(paths.get(file).copied().unwrap_or(""));
                group.prefix = stem.clone();
                let mut further = 2;
                while self.prefixes.contains_key(&group.prefix) {
                    group.prefix = format!("{stem}{further}");
                    further += 1;
                }
                self.prefixes.insert(group.prefix.clone(), number);
            }
            for member in closure(*file, &|f| !self.scopes.contains_key(&f)) {
                self.scopes.insert(member, Scope { group: number, ..Scope::default() });
                for (key, at) in self.own.get(&member).into_iter().flatten() {
                    group.names.entry(key.clone()).or_insert(*at);
                }
            }
            self.groups.push(group);
        }
        // The checked file and its plain imports look up nothing in others.
        let imported =
            links.iter().filter(|l| !matches!(l.import.names, UsedNames::All)).filter_map(|l| l.to);
        let others = order.iter().copied().filter(|f| self.group(*f) > 0);
        for file in imported.chain(others).collect::<BTreeSet<_>>() {
            self.closures.insert(file, closure(file, &|_| true));
        }
    }

    /// Reads what each file imports by name.
    fn open_scopes(&mut self, links: &[Link], out: &mut Vec<Diagnostic>) {
        let groups: HashMap<FileId, usize> = self.scopes.iter().map(|(f, s)| (*f, s.group)).collect();
        for (file, scope) in &mut self.scopes {
            let files = self.closures.get(file).into_iter().flatten().copied();
            scope.open = files.filter(|f| groups.get(f) != Some(&scope.group)).collect();
        }
        for link in links {
            match &link.import.names {
                UsedNames::All => self.no_clash(link, out),
                UsedNames::Behind(name) => self.put_behind(link, name, out),
                UsedNames::These(names) => {
                    for used in names {
                        self.take(link, &used.name, used.local(), out);
                    }
                }
            }
        }
    }

    /// A plain import of a file whose names are not those of the importing one.
    fn no_clash(&self, link: &Link, out: &mut Vec<Diagnostic>) {
        let from = self.group(link.from);
        if link.to.is_none_or(|to| self.group(to) == from) {
            return;
        }
        let Some(group) = self.groups.get(from) else { return };
        let files = self.scopes.get(&link.from).map_or(&[][..], |s| &s.open);
        let others = files.iter().filter_map(|f| self.own.get(f));
        let mut twice: Vec<(&(Kind, String), &Span)> =
            others.flatten().filter(|(key, _)| group.names.contains_key(key)).collect();
        twice.sort_by_key(|(_, at)| (at.file, at.start));
        for (key, at) in twice.into_iter().take(1) {
            let name = Name { text: key.1.clone(), span: group.names[key] };
            out.push(
                duplicate(key.0.as_str(), &name, *at).remark(link.import.path.span, "imported here").help(
                    format!(
                        "or import the file behind a name: `use \"…\" as {};`",
                        stem(&link.import.path.value)
                    ),
                ),
            );
        }
    }

    fn put_behind(&mut self, link: &Link, name: &Name, out: &mut Vec<Diagnostic>) {
        let Some(scope) = self.scopes.get(&link.from) else { return };
        let constant = (Kind::Constant, name.text.clone());
        let first = scope.behind.get(&name.text).map(|b| b.name.span);
        let constant = self.groups.get(scope.group).and_then(|g| g.names.get(&constant)).copied();
        if let Some(first) = first.or(constant) {
            self.faulty.insert(name.span);
            out.push(duplicate(if constant.is_some() { "constant" } else { "import" }, name, first));
            return;
        }
        let behind = Behind { file: link.to, path: link.import.path.clone(), name: name.clone() };
        if link.to.is_none() {
            self.faulty.insert(name.span);
        }
        if let Some(scope) = self.scopes.get_mut(&link.from) {
            scope.behind.insert(name.text.clone(), behind);
        }
    }

    fn take(&mut self, link: &Link, name: &Name, local: &Name, out: &mut Vec<Diagnostic>) {
        let found: Vec<(Kind, String, Span)> = Kind::ALL
            .iter()
            .filter_map(|kind| {
                let (full, at) = self.exported(link.to?, *kind, &name.text)?;
                Some((*kind, full, at))
            })
            .collect();
        if found.is_empty() {
            self.faulty.insert(local.span);
        }
        if let (true, Some(to)) = (found.is_empty(), link.to) {
            out.push(match self.withheld(to, &name.text) {
                Some(function) => no_tool(function, name.span),
                None => {
                    let known = self.exports(to, &Kind::ALL);
                    not_declared(&link.import.path, "", &name.text, name.span, &known, "")
                }
            });
        }
        let Some(scope) = self.scopes.get(&link.from) else { return };
        if let Some(first) = scope.taken.get(&local.text) {
            out.push(duplicate("import", local, first.local.span));
            self.faulty.insert(local.span);
            return;
        }
        let Some(group) = self.groups.get(scope.group) else { return };
        let mut means = Vec::new();
        for (kind, full, _) in found {
            let own =
                group.names.get(&(kind, local.text.clone())).filter(|_| group.full(&local.text) != full);
            if let Some(own) = own {
                let d = duplicate(kind.as_str(), local, *own);
                out.push(d.help(format!("or import it by another name: `{} as other`", name.text)));
                self.faulty.insert(local.span);
                return;
            }
            means.push((kind, full));
        }
        if let Some(scope) = self.scopes.get_mut(&link.from) {
            scope.taken.insert(local.text.clone(), Taken { local: local.clone(), means });
        }
    }
}

/// The report of a name that an imported file does not declare. `behind` stands before a repair.
fn not_declared(
    path: &StrLit,
    kind: &str,
    name: &str,
    at: Span,
    known: &BTreeSet<&str>,
    behind: &str,
) -> Diagnostic {
    let d = Diagnostic::error(
        codes::NOT_DECLARED,
        format!("`{}` declares no {kind}`{name}`", clip(&path.value)),
        at,
    );
    match nearest(name, known.iter().copied()) {
        Some(near) => suggest(d, &format!("{behind}{near}")),
        None if known.is_empty() => d.help("it declares none"),
        None => {
            let names: Vec<String> = known.iter().take(12).map(|n| format!("`{n}`")).collect();
            let more = if known.len() > 12 { " and others" } else { "" };
            d.help(format!("it declares {}{more}", names.join(", ")))
        }
    }
}

/// The report of a function of Python that a program names, and that can't be a tool.
fn no_tool(function: &WithheldFunction, at: Span) -> Diagnostic {
    let WithheldFunction { name, why, help, at: place } = function;
    let d = Diagnostic::error(codes::NO_TOOL, format!("`{name}` can't be a tool: {why}"), at);
    d.remark(*place, "here").help(help)
}

/// Warns of what is imported and not used.
fn unused(import: &Use, used: &HashSet<Span>, out: &mut Vec<Diagnostic>) {
    let warn = |name: &Name, fix: Span| {
        Diagnostic::warn(codes::UNUSED_IMPORT, format!("`{}` is imported and not used", name.text), name.span)
            .help("remove it")
            .fix(removal(fix))
    };
    match &import.names {
        UsedNames::All => {}
        UsedNames::Behind(name) if used.contains(&name.span) => {}
        UsedNames::Behind(name) => out.push(warn(name, import.span)),
        UsedNames::These(names) => {
            let unused = |i: usize| !used.contains(&names[i].local().span);
            if (0..names.len()).all(unused) {
                out.extend(names.first().map(|n| warn(n.local(), import.span)));
                return;
            }
            for i in (0..names.len()).filter(|i| unused(*i)) {
                // With the comma that separates it.
                let n = &names[i];
                let end = |n: &syntax::agent::ast::UsedName| n.local().span.end;
                let span = match (names.get(i + 1), i.checked_sub(1)) {
                    (Some(next), _) => Span { end: next.name.span.start, ..n.name.span },
                    (None, Some(before)) => Span { start: end(&names[before]), end: end(n), ..n.name.span },
                    (None, None) => import.span,
                };
                out.push(warn(n.local(), span));
            }
        }
    }
}

/// A walk over a file that replaces its names.
struct Names<'a> {
    scopes: &'a Scopes,
    file: FileId,
    out: &'a mut Vec<Diagnostic>,
    /// Places of the imported names that are used.
    used: HashSet<Span>,
    /// Places of names of which a finding was reported here.
    said: HashSet<Span>,
}

impl Names<'_> {
    fn scope(&self) -> Option<&Scope> {
        self.scopes.scopes.get(&self.file)
    }

    /// The declaration that a plain name means, if it has another name in the program.
    fn plain(&mut self, kinds: &[Kind], name: &str, at: Span) -> Option<String> {
        let found = kinds.iter().find_map(|kind| self.scopes.plain(self.file, *kind, name));
        match found {
            Some((full, import)) => {
                self.used.extend(import);
                Some(full)
            }
            None => {
                // An import that names nothing has been reported.
                let taken = self.scope().and_then(|s| s.taken.get(name));
                if let Some(taken) = taken.filter(|t| t.means.is_empty()) {
                    let import = taken.local.span;
                    self.used.insert(import);
                    self.said.insert(at);
                } else if let Some(function) = self.scopes.plain_withheld(self.file, kinds, name) {
                    self.out.push(no_tool(function, at));
                    self.said.insert(at);
                }
                None
            }
        }
    }

    /// The declaration behind the name of an import. What is missing there is reported.
    fn inside(&mut self, import: &str, name: &str, kinds: &[Kind], at: Span) -> Option<String> {
        let scopes = self.scopes;
        let scope = scopes.scopes.get(&self.file)?;
        let Some(behind) = scope.behind.get(import) else {
            let d = Diagnostic::error(codes::NOT_DECLARED, format!("there is no import `{import}`"), at);
            let known = scope.behind.keys().map(String::as_str);
            let is_type = scopes
                .own
                .get(&self.file)
                .is_some_and(|own| own.contains_key(&(Kind::Type, import.to_string())));
            self.out.push(match nearest(import, known) {
                _ if is_type => d.help("a case is written without its type"),
                Some(near) => suggest(d, &format!("{near}.{name}")),
                None => {
                    d.help(format!("import a file behind this name: `use \"{import}.agent\" as {import};`"))
                }
            });
            self.said.insert(at);
            return None;
        };
        self.used.insert(behind.name.span);
        let Some(file) = behind.file else {
            self.said.insert(at);
            return None;
        };
        if let Some((full, _)) = kinds.iter().find_map(|kind| scopes.exported(file, *kind, name)) {
            return Some(full);
        }
        if let Some(function) = scopes.withheld(file, name) {
            self.out.push(no_tool(function, at));
            self.said.insert(at);
            return None;
        }
        let known = scopes.exports(file, kinds);
        let other = Kind::ALL.iter().find_map(|kind| Some((kind, scopes.exported(file, *kind, name)?)));
        // A value may be of several kinds.
        let what = match kinds {
            [Kind::Constant, ..] | [] => String::new(),
            [kind, ..] => format!("{} ", kind.as_str()),
        };
        let d = not_declared(&behind.path, &what, name, at, &known, &format!("{import}."));
        self.out.push(match other {
            Some((kind, (_, place))) => d.remark(place, format!("this is a {}", kind.as_str())),
            None => d,
        });
        self.said.insert(at);
        None
    }

    /// A text that names a declaration, perhaps behind that of an import.
    fn text(&mut self, kinds: &[Kind], text: &str, at: Span) -> Option<String> {
        match text.split_once('.') {
            Some((import, name)) => self.inside(import, name, kinds, at),
            None => self.plain(kinds, text, at),
        }
    }

    fn name(&mut self, kinds: &[Kind], name: &mut Name) {
        if let Some(full) = self.text(kinds, &name.text, name.span) {
            name.text = full;
        }
    }

    /// A variable that is bound. It hides no import.
    fn bind(&mut self, name: &Name) {
        let Some(scope) = self.scope() else { return };
        let import = scope.behind.get(&name.text).map(|b| b.name.span);
        let value =
            [Kind::Constant, Kind::Case].iter().find_map(|k| self.scopes.plain(self.file, *k, &name.text));
        let (what, place) = match (import, value) {
            (Some(place), _) | (None, Some((_, Some(place)))) => ("an import", Some(place)),
            (None, Some((_, None))) => ("a constant or a case", None),
            (None, None) => return,
        };
        let d = Diagnostic::error(
            codes::CONSTANT_BOUND,
            format!("`{}` is {what}, so no variable can have its name", name.text),
            name.span,
        );
        let d = match place {
            Some(place) => d.remark(place, "imported here"),
            None => d,
        };
        self.out.push(d.help("choose another name"));
    }

    fn item(&mut self, item: &mut Item) {
        match item {
            Item::Use(_) => {}
            Item::Const(c) => {
                c.ty.iter_mut().for_each(|t| self.ty(t));
                self.expr(&mut c.value);
            }
            Item::Import(i) => {
                self.fields(&mut i.params);
                self.ty(&mut i.result);
            }
            Item::Alias(a) => self.ty(&mut a.ty),
            Item::Enum(_) => {}
            Item::Sum(s) => s.cases.iter_mut().for_each(|c| self.fields(&mut c.fields)),
            Item::Agent(a) => {
                for field in &mut a.fields {
                    match &mut field.value {
                        AgentValue::Tools(names, _) | AgentValue::FinalTools(names, _) => {
                            names.iter_mut().for_each(|n| self.name(&[Kind::Tool], n));
                        }
                        AgentValue::Helpers(others, _) | AgentValue::Handoffs(others, _) => {
                            others.iter_mut().for_each(|o| self.name(ASKED, &mut o.name));
                        }
                        AgentValue::Memory(m) => self.fields(&mut m.keys),
                        _ => {}
                    }
                }
            }
            Item::Tool(c) | Item::Task(c) => self.callable(c),
            Item::Pipeline(p) | Item::Function(p) => {
                // A type that a call decides has no name of a declared one.
                p.generics.iter_mut().for_each(|g| self.name(&[Kind::Type], g));
                self.params(&mut p.params);
                self.ty(&mut p.result);
                self.stmts(&mut p.body.stmts);
            }
            Item::Workflow(w) => {
                self.params(&mut w.params);
                self.ty(&mut w.result);
                w.steps.iter_mut().for_each(|s| self.step(s));
            }
            Item::Test(t) => {
                if let Some(rows) = &mut t.rows {
                    rows.ty.iter_mut().for_each(|ty| self.ty(ty));
                    self.bind(&rows.name);
                }
                self.stmts(&mut t.body.stmts);
                for mock in &mut t.mocks {
                    self.called(&mut mock.call);
                    if let MockAnswer::Gives(e) = &mut mock.answer {
                        self.expr(e);
                    }
                }
                t.expectations.iter_mut().for_each(|e| self.called(&mut e.call));
                t.attacks.iter_mut().for_each(|a| self.name(CALLED, &mut a.tool));
            }
            Item::Policy(p) => p.rules.iter_mut().for_each(|rule| self.rule(rule)),
        }
    }

    /// The tool of a mock or an expectation. Its arguments are constants.
    fn called(&mut self, call: &mut Expr) {
        match &mut call.kind {
            ExprKind::Var(name) => {
                if let Some(full) = self.text(CALLED, name, call.span) {
                    *name = full;
                }
            }
            ExprKind::Call(name, _) => self.name(CALLED, name),
            _ => {}
        }
    }

    fn rule(&mut self, rule: &mut PolicyRule) {
        const OF_POLICY: &[Kind] = &[Kind::Tool, Kind::Callable];
        if rule.key.text == "tool" {
            match rule.args.first_mut() {
                Some(PolicyArg::Word(name)) => self.name(OF_POLICY, name),
                Some(PolicyArg::Text(name)) => {
                    if let Some(full) = self.plain(OF_POLICY, &name.value, name.span) {
                        name.value = full;
                    }
                }
                _ => {}
            }
        }
        rule.condition.iter_mut().for_each(|e| self.expr(e));
        // Rules of rules have none.
        for inner in rule.rules.iter_mut().flat_map(|(rules, _)| rules) {
            inner.condition.iter_mut().for_each(|e| self.expr(e));
        }
    }

    fn callable(&mut self, c: &mut Callable) {
        self.fields(&mut c.params);
        self.ty(&mut c.result);
        c.body.examples.iter_mut().for_each(|e| self.expr(e));
        c.body.system.iter_mut().for_each(|t| self.template(t));
        match &mut c.body.kind {
            BodyKind::Prompt(t) => self.template(t),
            // The holes of a command or address are parameters.
            BodyKind::Http(..)
            | BodyKind::Exec(_)
            | BodyKind::Empty
            | BodyKind::Builtin(_)
            | BodyKind::Mcp(..)
            | BodyKind::Python(..)
            | BodyKind::Error => {}
        }
    }

    fn params(&mut self, params: &mut [Field]) {
        params.iter().for_each(|p| self.bind(&p.name));
        self.fields(params);
    }

    fn fields(&mut self, fields: &mut [Field]) {
        for f in fields {
            self.ty(&mut f.ty);
            f.default.iter_mut().for_each(|e| self.expr(e));
        }
    }

    fn step(&mut self, step: &mut Step) {
        match step {
            Step::Stage { name, agent, task, args, .. } => {
                self.bind(name);
                self.name(&[Kind::Agent], agent);
                self.name(CALLED, task);
                args.iter_mut().for_each(|e| self.expr(e));
            }
            Step::Review { name, reviewer, reviser, task, .. } => {
                self.bind(name);
                // The task that reviews has the name of the review.
                self.plain(&[Kind::Callable], &format!("{REVIEW}{}", name.text), name.span);
                self.name(&[Kind::Agent], reviewer);
                self.name(&[Kind::Agent], reviser);
                self.name(CALLED, task);
            }
            Step::Return(e, _) => self.expr(e),
        }
    }

    fn ty(&mut self, ty: &mut TypeExpr) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &mut ty.kind {
            TypeKind::Name(name) => {
                if let Some(full) = self.text(&[Kind::Type], name, ty.span) {
                    *name = full;
                } else if name.contains('.') {
                    ty.kind = TypeKind::Error;
                }
            }
            TypeKind::List(t) | TypeKind::Option(t) => self.ty(t),
            TypeKind::Map(of) => {
                self.ty(&mut of.0);
                self.ty(&mut of.1);
            }
            TypeKind::Obj(fields) => self.fields(fields),
            // A condition is about the value alone.
            TypeKind::Where(t, _) => self.ty(t),
            TypeKind::Literals(_) | TypeKind::Error => {}
        });
    }

    fn stmts(&mut self, stmts: &mut [Stmt]) {
        stacker::maybe_grow(64 << 10, 1 << 20, || stmts.iter_mut().for_each(|s| self.stmt(s)));
    }

    fn stmt(&mut self, stmt: &mut Stmt) {
        match &mut stmt.kind {
            StmtKind::Run(run) => self.run(run),
            StmtKind::Let(name, ty, e) => {
                self.bind(name);
                ty.iter_mut().for_each(|t| self.ty(t));
                self.expr(e);
            }
            StmtKind::Parallel { runs, .. } => runs.iter_mut().for_each(|r| self.run(r)),
            StmtKind::If(e, then, other) => {
                self.expr(e);
                self.stmts(&mut then.stmts);
                other.iter_mut().for_each(|b| self.stmts(&mut b.stmts));
            }
            StmtKind::IfLet(name, e, then, other) => {
                self.bind(name);
                self.expr(e);
                self.stmts(&mut then.stmts);
                other.iter_mut().for_each(|b| self.stmts(&mut b.stmts));
            }
            StmtKind::While(e, _, body) => {
                self.expr(e);
                self.stmts(&mut body.stmts);
            }
            StmtKind::For(name, e, body) | StmtKind::ParallelFor(name, e, _, body) => {
                self.bind(name);
                self.expr(e);
                self.stmts(&mut body.stmts);
            }
            StmtKind::Match(e, arms) => {
                self.expr(e);
                for arm in arms {
                    self.pattern(&mut arm.pattern);
                    self.stmts(&mut arm.body.stmts);
                }
            }
            StmtKind::Try(body, catch, handler) => {
                self.bind(&catch.name);
                self.stmts(&mut body.stmts);
                self.stmts(&mut handler.stmts);
            }
            StmtKind::Ensure(body, cleanup) => {
                self.stmts(&mut body.stmts);
                self.stmts(&mut cleanup.stmts);
            }
            StmtKind::Assert(e, message) => {
                self.expr(e);
                message.iter_mut().for_each(|t| self.template(t));
            }
            StmtKind::Guard(_, e, _) => self.guard(e),
            StmtKind::Return(e) => self.expr(e),
            StmtKind::Break | StmtKind::Continue | StmtKind::Error(_) => {}
        }
    }

    /// The condition of a guard, which has functions of its own.
    fn guard(&mut self, e: &mut Expr) {
        match &mut e.kind {
            ExprKind::Call(name, args) if predicate::test(&name.text).is_some() => {
                args.iter_mut().for_each(|a| self.guard(a));
            }
            ExprKind::Binary(_, _, a, b) => {
                self.guard(a);
                self.guard(b);
            }
            ExprKind::Unary(_, inner) | ExprKind::Paren(inner) => self.guard(inner),
            _ => self.expr(e),
        }
    }

    /// The case that a pattern is for has the name that its type gives it.
    fn pattern(&mut self, pattern: &mut Pattern) {
        // Texts and numbers name nothing.
        let words = pattern.form == PatternForm::Words;
        for v in pattern.variants.iter_mut().filter(|_| words) {
            if let Some(full) = self.text(&[Kind::Case], &v.text, v.span) {
                v.text = declared_name(&full).to_string();
            }
        }
        pattern.fields.iter().for_each(|f| self.bind(&f.name));
    }

    fn run(&mut self, run: &mut Run) {
        self.bind(&run.name);
        run.ty.iter_mut().for_each(|t| self.ty(t));
        match &mut run.args {
            Args::Named(args) => {
                self.name(CALLED, &mut run.target);
                args.iter_mut().for_each(|(_, e)| self.expr(e));
            }
            Args::Positional(args) => self.call(&mut run.target, args),
        }
        for clause in &mut run.clauses {
            match &mut clause.kind {
                ClauseKind::By(agent) => self.name(&[Kind::Agent], agent),
                ClauseKind::Use(e) => self.expr(e),
                ClauseKind::Retries(_) | ClauseKind::Timeout(_) | ClauseKind::Abort => {}
            }
        }
    }

    /// The import of this name.
    fn is_import(&self, e: &Expr) -> Option<String> {
        match &e.kind {
            ExprKind::Var(name) if self.scope()?.behind.contains_key(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// A call. `lib.f(x)` was read as `f(lib, x)`.
    fn call(&mut self, name: &mut Name, args: &mut Vec<Expr>) {
        let import = args.first().and_then(|first| self.is_import(first)).zip(args.first().map(|e| e.span));
        match import {
            Some((import, at)) if at.end < name.span.start => {
                let span = at.to(name.span);
                if let Some(full) = self.inside(&import, &name.text, CALLED, span) {
                    name.text = full;
                }
                name.span = span;
                args.remove(0);
            }
            _ => self.name(CALLED, name),
        }
        let function = higher(&name.text).and(args.len().checked_sub(1));
        for (i, e) in args.iter_mut().enumerate() {
            match &mut e.kind {
                // The name of a function.
                ExprKind::Var(f) if function == Some(i) => match self.plain(&[Kind::Callable], f, e.span) {
                    Some(full) => *f = full,
                    None => self.expr(e),
                },
                _ => self.expr(e),
            }
        }
    }

    fn template(&mut self, template: &mut Template) {
        for part in &mut template.parts {
            if let TemplatePart::Hole(e) = part {
                self.expr(e);
            }
        }
    }

    fn expr(&mut self, e: &mut Expr) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expression(e));
    }

    fn expression(&mut self, e: &mut Expr) {
        let span = e.span;
        match &mut e.kind {
            ExprKind::Var(name) => {
                if let Some(full) = self.plain(&[Kind::Constant, Kind::Case], name, span) {
                    *name = full;
                } else if self.scope().is_some_and(|s| s.behind.contains_key(name)) {
                    let message = format!("`{name}` is an import, and no value");
                    let d = Diagnostic::error(codes::UNKNOWN_VARIABLE, message, span);
                    self.out.push(d.help(format!("name something that it declares: `{name}.…`")));
                    e.kind = ExprKind::Error;
                }
            }
            ExprKind::Field(of, name) => match self.is_import(of) {
                Some(import) => {
                    const VALUES: &[Kind] = &[Kind::Constant, Kind::Case, Kind::Callable];
                    e.kind = match self.inside(&import, &name.text, VALUES, span) {
                        Some(full) => ExprKind::Var(full),
                        None => ExprKind::Error,
                    };
                }
                None => self.expr(of),
            },
            ExprKind::OptionalField(of, _) | ExprKind::Unary(_, of) | ExprKind::Paren(of) => self.expr(of),
            ExprKind::Index(a, b) | ExprKind::Binary(_, _, a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Record(fields) | ExprKind::Map(fields) => {
                fields.iter_mut().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::Construct(name, fields) => {
                self.name(&[Kind::Case], name);
                fields.iter_mut().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::Update(of, fields) => {
                self.expr(of);
                fields.iter_mut().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::List(items) => items.iter_mut().for_each(|e| self.expr(e)),
            ExprKind::Template(t) => self.template(t),
            ExprKind::Call(name, args) => self.call(name, args),
            ExprKind::Lambda(params, body) => {
                params.iter().for_each(|p| self.bind(p));
                self.expr(body);
            }
            ExprKind::If(name, condition, then, other) => {
                name.iter().for_each(|n| self.bind(n));
                self.expr(condition);
                self.expr(then);
                self.expr(other);
            }
            ExprKind::Match(of, arms) => {
                self.expr(of);
                for arm in arms {
                    self.pattern(&mut arm.pattern);
                    self.expr(&mut arm.value);
                }
            }
            ExprKind::Block(lets, value) => {
                for l in lets {
                    self.bind(&l.name);
                    l.ty.iter_mut().for_each(|t| self.ty(t));
                    self.expr(&mut l.value);
                }
                self.expr(value);
            }
            ExprKind::Quarantine(prompt, ty) => {
                self.expr(prompt);
                self.ty(ty);
            }
            ExprKind::Endorse(of, values, other) => {
                self.expr(of);
                values.iter_mut().for_each(|e| self.expr(e));
                other.iter_mut().for_each(|e| self.expr(e));
            }
            ExprKind::Str(_) | ExprKind::Number(_) | ExprKind::Bool(_) | ExprKind::Null | ExprKind::Error => {
            }
        }
    }
}
