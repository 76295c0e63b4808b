//! The texts of a project's modules, parsed when they are first looked at.

use crate::Imported;
use crate::names_used::NamesUsed;
use diagnostics::{FileId, Span, normal_path};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::{Mod, Stmt};
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

/// Bytes of one module at most; a longer one counts as empty.
pub(crate) const MAX_BYTES: usize = 2 << 20;
/// Stack for dropping one level of a syntax tree, generously.
const LEVEL: usize = 1024;

/// A module's text.
#[derive(Debug)]
pub struct Source {
    /// The file's number.
    pub id: FileId,
    /// Its path, with `/`.
    pub path: String,
    /// Its text.
    pub text: Arc<str>,
    tree: OnceLock<Tree>,
    pub(crate) imported: OnceLock<Vec<Imported>>,
    pub(crate) used: OnceLock<NamesUsed>,
}

#[derive(Debug)]
struct Tree {
    module: Option<Box<Mod>>,
    /// Upper bound on its depth.
    depth: usize,
    error: Option<(TextRange, String)>,
}

impl Drop for Tree {
    fn drop(&mut self) {
        // The tree's own drop is recursive.
        if self.depth > 200 {
            let module = self.module.take();
            stacker::grow(self.depth.saturating_mul(LEVEL) + (1 << 20), || drop(module));
        }
    }
}

impl Source {
    /// A module's text; it is parsed when it is first looked at.
    pub fn new(id: FileId, path: &str, text: Arc<str>) -> Source {
        let (tree, imported, used) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Source { id, path: normal_path(path), text, tree, imported, used }
    }

    /// The place of a range.
    pub fn span(&self, range: TextRange) -> Span {
        Span { file: self.id, start: range.start().into(), end: range.end().into() }
    }

    /// The text of a range, shortened.
    pub(crate) fn written(&self, range: TextRange) -> Arc<str> {
        let text = self.text.get(range.start().into()..range.end().into()).unwrap_or("");
        match text.char_indices().nth(80) {
            Some((at, _)) => format!("{}…", &text[..at]).into(),
            None => text.into(),
        }
    }

    /// Its statements, as far as they can be read.
    pub fn body(&self) -> &[Stmt] {
        match self.tree().module.as_deref() {
            Some(Mod::Module(module)) => &module.body,
            _ => &[],
        }
    }

    /// The first thing that is wrong with its syntax.
    pub fn syntax_error(&self) -> Option<(Span, String)> {
        self.tree().error.as_ref().map(|(range, message)| (self.span(*range), message.clone()))
    }

    /// Returns true if the module is a template: it isn't valid Python, and it has placeholders in double
    /// braces, or statements in braces with percent signs, where Python has none.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let is_template = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).is_template();
    /// assert!(is_template("class {{crew_name}}():\n    pass\n"));
    /// assert!(is_template("{% if cli %}\nimport cli\n{% endif %}\n"));
    /// assert!(!is_template("x = {{1}}\n") && !is_template("x = '{{a}}' +\n"));
    /// ```
    pub fn is_template(&self) -> bool {
        // A set within a set is valid, whatever becomes of it.
        if self.tree().error.is_none() || self.text.len() > MAX_BYTES {
            return false;
        }
        let parsed = parse_unchecked(&self.text, ParseOptions::from(Mode::Module));
        let tokens: Vec<(TokenKind, TextRange)> =
            parsed.tokens().iter().map(|t| (t.kind(), t.range())).collect();
        tokens.windows(2).any(|pair| {
            let [(first, at), (second, next)] = pair else { return false };
            let adjacent = at.end() == next.start();
            let opens =
                matches!((first, second), (TokenKind::Lbrace, TokenKind::Lbrace | TokenKind::Percent));
            adjacent && opens
        })
    }

    fn tree(&self) -> &Tree {
        self.tree.get_or_init(|| {
            if self.text.len() > MAX_BYTES {
                let message = format!("more than {MAX_BYTES} bytes of Python");
                return Tree { module: None, depth: 0, error: Some((TextRange::default(), message)) };
            }
            let parsed = parse_unchecked(&self.text, ParseOptions::from(Mode::Module));
            let error = parsed.errors().first().map(|e| (e.location, lowered(&e.error.to_string())));
            // Each level of a tree takes at least a token of its own.
            let (mut open, mut line, mut deepest) = (0usize, 0usize, 0usize);
            for token in parsed.tokens().iter() {
                match token.kind() {
                    TokenKind::Indent => open += 1,
                    TokenKind::Dedent => open = open.saturating_sub(1),
                    TokenKind::Newline => line = 0,
                    _ => line += 1,
                }
                deepest = deepest.max(open + line);
            }
            Tree { module: Some(Box::new(parsed.into_syntax())), depth: deepest, error }
        })
    }

    /// The module's name as far as its path tells: `a.b` of `x/a/b.py`, with the last two parts.
    pub fn module_name(&self) -> &str {
        let stem = self.path.strip_suffix(".py").unwrap_or(&self.path);
        let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
        stem.rsplit('/').next().unwrap_or(stem)
    }

    /// The last parts of the names by which it is imported: `b` of `a/b.py`, and the folder's for
    /// `a/__init__.py`.
    fn names(&self) -> impl Iterator<Item = &str> {
        let stem = self.path.strip_suffix(".py").unwrap_or(&self.path);
        let package = stem.strip_suffix("__init__").map(|folder| folder.trim_end_matches('/'));
        std::iter::once(stem).chain(package).map(|p| p.rsplit('/').next().unwrap_or(p))
    }

    fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(f, _)| f)
    }
}

fn lowered(message: &str) -> String {
    let mut chars = message.trim_end_matches('.').chars();
    chars.next().map_or(String::new(), |c| c.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
thread_local! {
    /// Number of times that a folder was searched for a module.
    pub(crate) static SEARCHES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The modules of a project.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Modules that come before these. One of these represents one of them that has the same path.
    base: Option<Arc<Sources>>,
    files: Vec<Arc<Source>>,
    by_path: HashMap<String, usize>,
    /// The last parts of all modules' names. Most imports name what is no module of the project, which this
    /// tells without a search of every folder upwards.
    names: HashSet<Box<str>>,
}

impl Sources {
    /// No modules.
    pub fn new() -> Sources {
        Sources::default()
    }

    /// Modules beside which others are added.
    pub(crate) fn over(base: Arc<Sources>) -> Sources {
        Sources { base: Some(base), ..Sources::default() }
    }

    fn first(&self) -> usize {
        self.base.as_ref().map_or(0, |b| b.len())
    }

    /// Adds a module and gives its number. Of two of the same path the first counts for imports.
    pub fn add(&mut self, id: FileId, path: &str, text: Arc<str>) -> usize {
        self.push(Arc::new(Source::new(id, path, text)))
    }

    /// Adds a module that may be parsed already, and gives its number.
    pub fn push(&mut self, source: Arc<Source>) -> usize {
        let index = self.len();
        self.by_path.entry(source.path.clone()).or_insert(index);
        for name in source.names() {
            if !self.names.contains(name) {
                self.names.insert(name.into());
            }
        }
        self.files.push(source);
        index
    }

    /// A module by its number.
    pub fn get(&self, index: usize) -> Option<&Source> {
        match index.checked_sub(self.first()) {
            Some(own) => self.files.get(own).map(Arc::as_ref),
            None => self.base.as_ref()?.get(index),
        }
    }

    /// A module by its path.
    pub fn by_path(&self, path: &str) -> Option<usize> {
        self.at(&normal_path(path))
    }

    fn at(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied().or_else(|| self.base.as_ref()?.at(path))
    }

    fn has_name(&self, name: &str) -> bool {
        self.names.contains(name) || self.base.as_ref().is_some_and(|b| b.has_name(name))
    }

    /// The module of a file.
    pub fn of_file(&self, id: FileId) -> Option<usize> {
        let own = self.files.iter().position(|f| f.id == id).map(|i| i + self.first());
        own.or_else(|| self.base.as_ref()?.of_file(id))
    }

    /// Number of modules, those of the base included.
    pub fn len(&self) -> usize {
        self.first() + self.files.len()
    }

    /// Returns true if there are no modules.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of the modules that the import statements of a module name, in order.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let mut sources = python::Sources::new();
    /// let tools = sources.add(FileId(0), "app/tools.py", "".into());
    /// let main = sources.add(FileId(1), "app/main.py", "from . import tools\nimport os\n".into());
    /// assert_eq!(sources.imported(main).into_iter().collect::<Vec<_>>(), [tools]);
    /// ```
    pub fn imported(&self, module: usize) -> BTreeSet<usize> {
        let imports = self.get(module).map_or(&[][..], Source::imported);
        let found = |i: &Imported| -> Vec<usize> {
            i.qualified().filter_map(|name| self.import(module, i.level, &name)).collect()
        };
        imports.iter().flat_map(found).collect()
    }

    /// Names under which a module has something of another module: it imports that one, or a package that
    /// imports it.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let mut sources = python::Sources::new();
    /// let part = sources.add(FileId(0), "app/parts/one.py", "".into());
    /// sources.add(FileId(1), "app/parts/__init__.py", "from .one import agent\n".into());
    /// let main = sources.add(FileId(2), "app/main.py", "from .parts import agent as one\nimport
    /// os\n".into()); assert_eq!(sources.bound(main, part).collect::<Vec<_>>(), ["one"]);
    /// ```
    pub fn bound(&self, module: usize, of: usize) -> impl Iterator<Item = &str> {
        let leads = move |m: usize| {
            let is_package = self.get(m).is_some_and(|s| s.path.ends_with("__init__.py"));
            m == of || is_package && self.imported(m).contains(&of)
        };
        let found = move |i: &&Imported| {
            i.qualified().filter_map(|name| self.import(module, i.level, &name)).any(leads)
        };
        let imports = self.get(module).map_or(&[][..], Source::imported);
        imports.iter().filter(found).flat_map(|i| i.bound.iter().map(String::as_str))
    }

    /// The module that an import names, `level` dots before the name. Without dots, the nearest folder
    /// upwards that has it.
    pub(crate) fn import(&self, from: usize, level: u32, name: &str) -> Option<usize> {
        let source = self.get(from)?;
        // A module that is started imports no other copy of itself either.
        let other = |m: &usize| self.get(*m).is_some_and(|s| s.path != source.path);
        let last = name.rsplit('.').next().unwrap_or(name);
        if !name.is_empty() && !self.has_name(last) {
            return None;
        }
        let path = name.replace('.', "/");
        let fits = |m: &usize| other(m) || level > 0 && path.is_empty();
        places(source.folder(), level, &path).find_map(|folder| self.find(&folder, &path).filter(fits))
    }

    /// Paths of modules that run when a module is imported: of its package, and for each name that it
    /// imports where that is looked for in the project, nearest first.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let mut sources = python::Sources::new();
    /// let main = sources.add(FileId(0), "app/main.py", "from .models import A\n".into());
    /// let sought = sources.sought(main);
    /// assert_eq!(sought[0], ["app/__init__.py"]);
    /// assert_eq!(sought[2], ["app/models.py", "app/models/__init__.py"]);
    /// ```
    pub fn sought(&self, module: usize) -> Vec<Vec<String>> {
        let Some(source) = self.get(module) else { return Vec::new() };
        let of = |(level, name): (u32, String)| {
            let path = name.replace('.', "/");
            let of_folder = |folder: String| paths(&folder, &path).into_iter().flatten().collect::<Vec<_>>();
            places(source.folder(), level, &path).flat_map(of_folder).collect()
        };
        let named = source.imported().iter().flat_map(|i| {
            // `from . import a` imports the package, too.
            let package = (i.level > 0).then(String::new);
            // Of `a.b` first the package `a`.
            let packages = i.module.match_indices('.').map(|(at, _)| i.module[..at].to_string());
            let all = package.into_iter().chain(packages).chain(i.qualified());
            all.map(|name| (i.level, name)).collect::<Vec<_>>()
        });
        let own = vec![join_path(source.folder(), "__init__.py")];
        std::iter::once(own).chain(named.map(of)).collect()
    }

    fn find(&self, folder: &str, path: &str) -> Option<usize> {
        #[cfg(test)]
        SEARCHES.with(|n| n.set(n.get() + 1));
        paths(folder, path).into_iter().flatten().find_map(|path| self.at(&path))
    }
}

/// The file of a module in a folder, and that of a package.
fn paths(folder: &str, path: &str) -> [Option<String>; 2] {
    let base = join_path(folder, path);
    [(!path.is_empty()).then(|| format!("{base}.py")), Some(join_path(&base, "__init__.py"))]
}

/// The folders in which an import with `level` dots before its name is looked for, nearest first.
fn places(folder: &str, level: u32, path: &str) -> impl Iterator<Item = String> {
    const MAX_PARENTS: usize = 12;
    let mut first = Some(folder);
    for _ in 1..level {
        first = first.and_then(parent);
    }
    let most = match (level, path.is_empty()) {
        (0, true) => 0,
        (0, false) => MAX_PARENTS,
        _ => 1,
    };
    let folders: Vec<&str> = std::iter::successors(first, |f| parent(f)).take(most).collect();
    let each = folders.into_iter().flat_map(move |folder| {
        let sources = (level == 0).then(|| join_path(folder, "src"));
        std::iter::once(folder.to_string()).chain(sources)
    });
    each.collect::<Vec<_>>().into_iter()
}

fn join_path(folder: &str, path: &str) -> String {
    match (folder, path) {
        ("", p) => p.to_string(),
        (f, "") => f.to_string(),
        (f, p) => format!("{f}/{p}"),
    }
}

fn parent(folder: &str) -> Option<&str> {
    if folder.is_empty() { None } else { Some(folder.rsplit_once('/').map_or("", |(f, _)| f)) }
}
