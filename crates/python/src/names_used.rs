//! Names that a module uses: what it calls, by qualified name, and every identifier in it.
//!
//! Entry points: [`Source::imports`], [`Source::makes`], [`Source::refers`]. Nothing is evaluated; all read
//! the syntax tree, so comments, texts, aliases and layout say nothing.
//!
//! Invariant: an alias of an import is the name that was imported.

use crate::Source;
use crate::uses::with_stack;
use diagnostics::Span;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_keyword, walk_stmt};
use ruff_python_ast::{Expr, Keyword, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Names in a row that are kept of a call; of a longer row, the last ones.
const MAX_PARTS: usize = 8;

/// The mark of a call in the name of something that is called: `Team().crew().kickoff`.
const CALL: &str = "()";

/// Names that a module uses, read once.
#[derive(Debug, Default)]
pub(crate) struct NamesUsed {
    /// Names of what is called, subclassed or used as a decorator, with the packages that imports name.
    made: BTreeSet<String>,
    /// Every variable, attribute, keyword and imported name.
    all: HashSet<String>,
    keyed: Vec<KeyedRead>,
    calls: HashSet<TextRange>,
}

/// A read of an item under a text: `settings["model"]` or `settings.get("model")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRead {
    /// The key.
    pub key: String,
    /// Place of the whole expression.
    pub span: Span,
    /// True for `[…]`, which fails where there is no such item.
    pub is_subscript: bool,
}

impl Source {
    /// Returns the reads of items under texts within a place, in no order.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::{FileId, Span};
    /// let text = "f(d [ 'a' ], e.get(\"b\"), 'c')  # d['x']\n";
    /// let module = python::Source::new(FileId(0), "m.py", text.into());
    /// let all = Span { file: FileId(0), start: 0, end: text.len() as u32 };
    /// let keys: Vec<_> = module.keyed_reads(all).map(|r| (&*r.key, r.is_subscript)).collect();
    /// assert_eq!(keys, [("a", true), ("b", false)]);
    /// ```
    pub fn keyed_reads(&self, within: Span) -> impl Iterator<Item = &KeyedRead> {
        let inside = move |s: Span| within.start <= s.start && s.end <= within.end;
        self.names_used().keyed.iter().filter(move |read| inside(read.span))
    }

    /// Returns true if an expression that calls something stands at a place.
    pub fn is_call(&self, at: Span) -> bool {
        self.names_used().calls.contains(&TextRange::new(at.start.into(), at.end.into()))
    }

    /// Returns true if the module imports one of these packages or something in them.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let imports = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).imports(&["a"]);
    /// assert!(imports("import a") && imports("from a.b import c") && imports("import os, a.b as x"));
    /// assert!(!imports("# import a") && !imports("import ab") && !imports("from . import a"));
    /// ```
    pub fn imports(&self, packages: &[&str]) -> bool {
        self.imports_one(packages, |head| packages.contains(&head))
    }

    /// Returns true if the module imports a package of one of these names, or one of a partner, whose name
    /// begins with it: `langchain` or `langchain_openai`.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let imports = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).imports_family(&["a"]);
    /// assert!(imports("import a") && imports("from a_x.b import c") && !imports("import ab"));
    /// ```
    pub fn imports_family(&self, names: &[&str]) -> bool {
        let is_family = |head: &str| {
            let end =
                |name: &&str| head.strip_prefix(*name).is_some_and(|r| r.is_empty() || r.starts_with('_'));
            names.iter().any(end)
        };
        self.imports_one(names, is_family)
    }

    /// Returns true if the module imports this module or something in it.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let imports = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).imports_module("a.b");
    /// assert!(imports("import a.b") && imports("from a import b") && imports("from a.b.c import d"));
    /// assert!(!imports("import a") && !imports("from a import c") && !imports("from .a import b"));
    /// ```
    pub fn imports_module(&self, module: &str) -> bool {
        let last = module.rsplit('.').next().unwrap_or(module);
        let within =
            |name: String| name.strip_prefix(module).is_some_and(|r| r.is_empty() || r.starts_with('.'));
        // An import writes the name, so a text without it need not be parsed.
        self.text.contains(last) && self.imported().iter().any(|i| i.level == 0 && i.qualified().any(within))
    }

    fn imports_one(&self, names: &[&str], is: impl Fn(&str) -> bool) -> bool {
        // An import writes the name, so a text without it need not be parsed.
        names.iter().any(|n| self.text.contains(n))
            && self.imported().iter().any(|i| i.level == 0 && is(i.module.split('.').next().unwrap_or("")))
    }

    /// Returns true if something that the module calls, subclasses or decorates with has a name that passes
    /// the test. Names have the modules that imports name, and `()` where a result is used:
    /// `crewai.Agent`, `app.crew.Team().crew().kickoff`. Of `a.b.c` the test is given each of `a`, `b` and
    /// `c`, too.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let makes = |text: &str, name: &str| {
    ///     python::Source::new(FileId(0), "m.py", text.into()).makes(|n| n == name)
    /// };
    /// assert!(makes("from a import Graph as G\nG[int](3)", "Graph"));
    /// assert!(makes("from a import b as g\ng.Graph()", "a.b.Graph"));
    /// assert!(makes("class X(Flow[S]): pass", "Flow") && makes("@base\nclass X: pass", "base"));
    /// assert!(makes("Team().crew().kickoff(1)", "Team().crew().kickoff"));
    /// assert!(makes("add('x', kind=Graph)", "Graph") && !makes("isinstance(x, Graph)", "Graph"));
    /// assert!(!makes("# Graph()", "Graph") && !makes("'Graph()'", "Graph") && !makes("x = Graph", "Graph"));
    /// ```
    pub fn makes(&self, test: impl Fn(&str) -> bool) -> bool {
        let made = &self.names_used().made;
        made.iter().any(|name| test(name) || name.split('.').any(|part| test(part.trim_end_matches(CALL))))
    }

    /// Returns true if an identifier stands in the module: a variable, an attribute, a keyword argument, or a
    /// name that it imports, under whatever alias.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let refers = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).refers("Send");
    /// assert!(refers("from t import Send as S") && refers("t.Send(1)") && refers("f(Send=1)"));
    /// assert!(!refers("# Send(1)") && !refers("'Send(1)'") && !refers("Sender(1)"));
    /// ```
    pub fn refers(&self, name: &str) -> bool {
        // A text without it has no such identifier, and need not be parsed.
        self.text.contains(name) && self.names_used().all.contains(name)
    }

    fn names_used(&self) -> &NamesUsed {
        self.used.get_or_init(|| {
            let mut imported = ImportedNames::default();
            let mut walk = Walk::new(self);
            for statement in self.body() {
                imported.visit_stmt(statement);
            }
            for statement in self.body() {
                walk.visit_stmt(statement);
            }
            let mut made = BTreeSet::new();
            for path in walk.made {
                let (head, rest) = path.split_once('.').map_or((&*path, None), |(h, r)| (h, Some(r)));
                let name = head.trim_end_matches(CALL);
                let calls = &head[name.len()..];
                let tail = rest.map_or(String::new(), |r| format!(".{r}"));
                match imported.names.get(name) {
                    Some(targets) => made.extend(targets.iter().map(|t| format!("{t}{calls}{tail}"))),
                    None => {
                        made.insert(path);
                    }
                }
            }
            NamesUsed { made, all: walk.all, keyed: walk.keyed, calls: walk.calls }
        })
    }
}

/// The names that imports bind, at any depth, with what they name.
#[derive(Default)]
struct ImportedNames {
    names: HashMap<String, BTreeSet<String>>,
}

impl<'a> SourceOrderVisitor<'a> for ImportedNames {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let module = alias.name.as_str();
                    let (name, target) = match &alias.asname {
                        Some(name) => (name.as_str(), module),
                        None => {
                            let first = module.split('.').next().unwrap_or(module);
                            (first, first)
                        }
                    };
                    self.names.entry(name.to_string()).or_default().insert(target.to_string());
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |m| m.as_str());
                for alias in &import.names {
                    let name = alias.asname.as_ref().unwrap_or(&alias.name).to_string();
                    let target = match module {
                        "" => alias.name.to_string(),
                        module => format!("{module}.{}", alias.name),
                    };
                    self.names.entry(name).or_default().insert(target);
                }
            }
            _ => with_stack(|| walk_stmt(self, statement)),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

struct Walk<'s> {
    source: &'s Source,
    made: BTreeSet<String>,
    all: HashSet<String>,
    keyed: Vec<KeyedRead>,
    calls: HashSet<TextRange>,
}

impl Walk<'_> {
    fn new(source: &Source) -> Walk<'_> {
        let (made, all, keyed, calls) = Default::default();
        Walk { source, made, all, keyed, calls }
    }

    fn keyed(&mut self, key: &Expr, range: TextRange, is_subscript: bool) {
        if let Expr::StringLiteral(key) = key {
            let span = self.source.span(range);
            self.keyed.push(KeyedRead { key: key.value.to_str().to_string(), span, is_subscript });
        }
    }

    fn made(&mut self, expr: &Expr) {
        self.made.extend(path(expr));
    }
}

/// Functions that compare with a class and make nothing of it.
const COMPARES: [&str; 4] = ["isinstance", "issubclass", "cast", "typing.cast"];

/// Returns whether an expression is a name as classes have them.
fn is_class(expr: &Expr) -> bool {
    let name = match expr {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(a) => a.attr.as_str(),
        _ => return false,
    };
    name.starts_with(|c: char| c.is_ascii_uppercase()) && name.contains(|c: char| c.is_ascii_lowercase())
}

/// The name of what is called: `a.b`, `a().b`, `a` of `a[T]`.
fn path(expr: &Expr) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut calls = String::new();
    let mut at = expr;
    for _ in 0..4 * MAX_PARTS {
        match at {
            Expr::Subscript(s) => at = &s.value,
            Expr::Await(a) => at = &a.value,
            Expr::Call(call) => {
                calls = CALL.to_string();
                at = &call.func;
            }
            Expr::Attribute(a) => {
                parts.push(format!("{}{calls}", a.attr));
                calls.clear();
                at = &a.value;
            }
            Expr::Name(name) => {
                parts.push(format!("{}{calls}", name.id));
                break;
            }
            // Of what has no name, the attributes.
            _ if parts.is_empty() => return None,
            _ => break,
        }
        if parts.len() == MAX_PARTS {
            break;
        }
    }
    parts.reverse();
    (!parts.is_empty()).then(|| parts.join("."))
}

impl<'a> SourceOrderVisitor<'a> for Walk<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(f) => f.decorator_list.iter().for_each(|d| self.made(&d.expression)),
            Stmt::ClassDef(c) => {
                c.decorator_list.iter().for_each(|d| self.made(&d.expression));
                c.bases().iter().for_each(|base| self.made(base));
            }
            Stmt::Import(import) => {
                let names = import.names.iter().flat_map(|a| a.name.as_str().split('.'));
                self.all.extend(names.map(str::to_string));
            }
            Stmt::ImportFrom(import) => {
                self.all.extend(import.names.iter().map(|a| a.name.to_string()));
            }
            _ => {}
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => {
                self.made(&call.func);
                self.calls.insert(call.range());
                // A class that is handed to a call may be made by it: `Member("writer", kind=CodeAgent)`.
                if !path(&call.func).is_some_and(|name| COMPARES.contains(&&*name)) {
                    let keywords = call.arguments.keywords.iter().map(|keyword| &keyword.value);
                    call.arguments
                        .args
                        .iter()
                        .chain(keywords)
                        .filter(|e| is_class(e))
                        .for_each(|e| self.made(e));
                }
                if let (Expr::Attribute(method), [key, ..]) = (&*call.func, &call.arguments.args[..])
                    && method.attr.as_str() == "get"
                {
                    self.keyed(key, call.range(), false);
                }
            }
            Expr::Subscript(s) => self.keyed(&s.slice, s.range, true),
            Expr::Name(name) => drop(self.all.insert(name.id.to_string())),
            Expr::Attribute(a) => drop(self.all.insert(a.attr.to_string())),
            _ => {}
        }
        with_stack(|| walk_expr(self, expr));
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        self.all.extend(keyword.arg.as_ref().map(ToString::to_string));
        walk_keyword(self, keyword);
    }
}
