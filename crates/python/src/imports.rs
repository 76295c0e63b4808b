//! Import statements of a module, the names to which it gives values, and the methods that it calls.
//!
//! Entry points: [`Source::imported`], [`Source::sets`], [`Source::passes`],
//! [`Source::passed_texts`], [`Source::calls`]. All read the syntax tree:
//! comments and texts say nothing.

use crate::Source;
use crate::uses::with_stack;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Alias, Expr, Keyword, Parameter, ParameterWithDefault, Stmt};
use std::collections::BTreeSet;

/// A module that an import statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Number of dots before the name: 0 for an absolute import.
    pub level: u32,
    /// The module's name with its inner dots. Empty for `from . import NAME`.
    pub module: String,
    /// Names imported from it. Empty for `import MODULE`.
    pub names: Vec<String>,
    /// Names that the module has for what is imported: of `import a.b` the name `a`, of `import a as b` and
    /// `from a import c as b` the name `b`.
    pub bound: Vec<String>,
}

impl Imported {
    /// Qualified names that the statement may import, by which a module can be looked up: the module and each
    /// of its names. Relative names have no dots in front.
    ///
    /// # Examples
    /// ```
    /// use python::Imported;
    /// let names = vec!["adk".to_string()];
    /// let import = Imported { level: 0, module: "google".into(), bound: names.clone(), names };
    /// assert_eq!(import.qualified().collect::<Vec<_>>(), ["google", "google.adk"]);
    /// ```
    pub fn qualified(&self) -> impl Iterator<Item = String> {
        let of_name = |name: &String| match self.module.is_empty() {
            true => name.clone(),
            false => format!("{}.{name}", self.module),
        };
        std::iter::once(self.module.clone()).chain(self.names.iter().map(of_name))
    }
}

impl Source {
    /// Modules that import statements name, at any depth, in the order of the source. Read once.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let text = "'''\nimport a\n'''\nimport b, c.d\nfrom .e import f  # import g\n";
    /// let source = python::Source::new(FileId(0), "m.py", text.into());
    /// let names: Vec<_> = source.imported().iter().map(|i| (i.level, &*i.module)).collect();
    /// assert_eq!(names, [(0, "b"), (0, "c.d"), (1, "e")]);
    /// ```
    pub fn imported(&self) -> &[Imported] {
        self.imported.get_or_init(|| {
            let mut imports = Imports { found: Vec::new() };
            for statement in self.body() {
                imports.visit_stmt(statement);
            }
            imports.found
        })
    }

    /// Returns true if the module gives a value to a name: a variable, attribute or parameter, a keyword
    /// argument, or a key of a dictionary.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let sets = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).sets("limit");
    /// assert!(sets("run(limit=3)") && sets("run({'limit': 3})") && sets("x['limit'] = 3"));
    /// assert!(!sets("# limit = 3") && !sets("x = 'limit=3'") && !sets("y = limit == 3"));
    /// ```
    pub fn sets(&self, name: &str) -> bool {
        // Most modules don't contain the name at all, and need not be parsed.
        if !self.text.contains(name) {
            return false;
        }
        let mut sets = Sets { name, items_only: false, found: false };
        for statement in self.body() {
            sets.visit_stmt(statement);
        }
        sets.found
    }

    /// Returns true if the module sets an item by this key, other than in a display.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let sets = |text: &str| python::Source::new(FileId(0), "m.py", text.into()).sets_item("a");
    /// assert!(sets("if x:\n    ways['a'] = 'b'"));
    /// assert!(!sets("ways = {'a': 'b'}") && !sets("a = 1") && !sets("f(a=1)"));
    /// ```
    pub fn sets_item(&self, key: &str) -> bool {
        if !self.text.contains(key) {
            return false;
        }
        let mut sets = Sets { name: key, items_only: true, found: false };
        for statement in self.body() {
            sets.visit_stmt(statement);
        }
        sets.found
    }

    /// Names that the module passes on: those in the value of a keyword argument, an attribute or a variable
    /// with one of these names, and in the arguments of a call of one of them.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let text = "x = u()\na = Agent(parts=[x, m.y, make(z)])\nb = Part(w)\nparts.append(t)\n";
    /// let source = python::Source::new(FileId(0), "m.py", text.into());
    /// let names = source.passes(&["parts", "Part"]);
    /// assert_eq!(names.into_iter().collect::<Vec<_>>(), ["m", "make", "t", "u", "w", "x", "z"]);
    /// ```
    pub fn passes(&self, to: &[&str]) -> BTreeSet<&str> {
        let mut passes = Passes { to, found: BTreeSet::new() };
        // Most modules contain none of the names, and need not be parsed.
        if to.iter().any(|name| self.text.contains(name)) {
            self.body().iter().for_each(|s| passes.visit_stmt(s));
            // A variable that is passed on has what it is assigned.
            let names: Vec<&str> = passes.found.iter().copied().collect();
            let mut values = Values { to: &names, assigned: true, found: Vec::new() };
            self.body().iter().for_each(|s| values.visit_stmt(s));
            values.found.iter().for_each(|v| passes.take(v));
        }
        passes.found
    }

    /// Texts that the module passes on: those in the value of a keyword argument with one of these names, or
    /// in what a variable that is the value is assigned.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let text = "NEEDS = ['a==1', 'b']\nsetup(name='c', install_requires=NEEDS + ['d'])\n";
    /// let source = python::Source::new(FileId(0), "setup.py", text.into());
    /// assert_eq!(source.passed_texts(&["install_requires"]), ["d", "a==1", "b"]);
    /// ```
    pub fn passed_texts(&self, to: &[&str]) -> Vec<&str> {
        if !to.iter().any(|name| self.text.contains(name)) {
            return Vec::new();
        }
        let mut values = Values { to, assigned: false, found: Vec::new() };
        self.body().iter().for_each(|s| values.visit_stmt(s));
        let mut all = Texts::default();
        values.found.iter().for_each(|v| all.visit_expr(v));
        let names: Vec<&str> = all.names.iter().copied().collect();
        let mut values = Values { to: &names, assigned: true, found: Vec::new() };
        self.body().iter().for_each(|s| values.visit_stmt(s));
        values.found.iter().for_each(|v| all.visit_expr(v));
        all.found
    }

    /// Returns true if the module calls one of these methods. `run` is a method of anything but of another
    /// package, `Runner.run` of the name `Runner`.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let source = |text: &str| python::Source::new(FileId(0), "m.py", text.into());
    /// let calls = |text: &str| source(text).calls(&["kickoff", "R.run"]);
    /// assert!(calls("x = [crew().kickoff(inputs)]") && calls("async def f():\n    await R.run(a)"));
    /// assert!(!calls("# crew.kickoff()") && !calls("'R.run()'"));
    /// assert!(!calls("kickoff()") && !calls("q.run()"));
    /// assert!(!source("import asyncio\nasyncio.run(main())").calls(&["run"]));
    /// ```
    pub fn calls(&self, methods: &[&str]) -> bool {
        let methods: Vec<(Option<&str>, &str)> = methods
            .iter()
            .map(|m| m.rsplit_once('.').map_or((None, *m), |(receiver, method)| (Some(receiver), method)))
            .filter(|(_, method)| self.text.contains(method))
            .collect();
        // Most modules contain none of the names, and need not be parsed.
        if methods.is_empty() {
            return false;
        }
        let packages = self.imported().iter().filter(|i| i.names.is_empty() && i.level == 0);
        let packages = packages.flat_map(|i| &i.bound).map(String::as_str).collect();
        let mut calls = Calls { methods: &methods, packages, found: false };
        for statement in self.body() {
            calls.visit_stmt(statement);
        }
        calls.found
    }
}

/// Methods with the name that they belong to, if it matters.
struct Calls<'n> {
    methods: &'n [(Option<&'n str>, &'n str)],
    /// Names of modules, whose functions are no methods.
    packages: BTreeSet<&'n str>,
    found: bool,
}

impl<'a> SourceOrderVisitor<'a> for Calls<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !self.found {
            with_stack(|| walk_stmt(self, statement));
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr
            && let Expr::Attribute(method) = &*call.func
        {
            let receiver = match &*method.value {
                Expr::Name(name) => Some(name.id.as_str()),
                _ => None,
            };
            let is_one = |(of, name): &(Option<&str>, &str)| {
                let is_its = match of {
                    Some(_) => *of == receiver,
                    None => receiver.is_none_or(|r| !self.packages.contains(r)),
                };
                *name == method.attr.as_str() && is_its
            };
            self.found |= self.methods.iter().any(is_one);
        }
        if !self.found {
            with_stack(|| walk_expr(self, expr));
        }
    }
}

/// Receivers with the names that are passed to them.
struct Passes<'n, 'a> {
    to: &'n [&'n str],
    found: BTreeSet<&'a str>,
}

impl<'a> Passes<'_, 'a> {
    fn is_receiver(&self, target: &Expr) -> bool {
        let name = match target {
            Expr::Name(name) => name.id.as_str(),
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => return false,
        };
        self.to.contains(&name)
    }

    fn take(&mut self, value: &'a Expr) {
        let mut names = Names { found: &mut self.found };
        names.visit_expr(value);
    }
}

impl<'a> SourceOrderVisitor<'a> for Passes<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if let Stmt::Assign(assign) = statement
            && assign.targets.iter().any(|t| self.is_receiver(t))
        {
            self.take(&assign.value);
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr {
            // A list with one of the names gets it: `parts.append(x)`.
            let added = match &*call.func {
                Expr::Attribute(a) => matches!(&*a.attr, "append" | "extend") && self.is_receiver(&a.value),
                _ => false,
            };
            let whole = added || self.is_receiver(&call.func);
            for arg in call.arguments.args.iter().filter(|_| whole) {
                self.take(arg);
            }
            for keyword in &call.arguments.keywords {
                let named = keyword.arg.as_ref().is_some_and(|a| self.to.contains(&a.as_str()));
                if whole || named {
                    self.take(&keyword.value);
                }
            }
        }
        with_stack(|| walk_expr(self, expr));
    }
}

/// Values of keyword arguments with some names, or of variables with them.
struct Values<'n, 'a> {
    to: &'n [&'n str],
    assigned: bool,
    found: Vec<&'a Expr>,
}

impl<'a> SourceOrderVisitor<'a> for Values<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let is_named = |target: &Expr| matches!(target, Expr::Name(n) if self.to.contains(&n.id.as_str()));
        if let Stmt::Assign(assign) = statement
            && self.assigned
            && assign.targets.iter().any(is_named)
        {
            self.found.push(&assign.value);
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        let named = keyword.arg.as_ref().is_some_and(|a| self.to.contains(&a.as_str()));
        if named && !self.assigned {
            self.found.push(&keyword.value);
        }
        self.visit_expr(&keyword.value);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        with_stack(|| walk_expr(self, expr));
    }
}

/// Texts and names in expressions.
#[derive(Default)]
struct Texts<'a> {
    found: Vec<&'a str>,
    names: BTreeSet<&'a str>,
}

impl<'a> SourceOrderVisitor<'a> for Texts<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::StringLiteral(text) => self.found.push(text.value.to_str()),
            Expr::Name(name) => {
                self.names.insert(name.id.as_str());
            }
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }
}

/// Names in an expression.
struct Names<'f, 'a> {
    found: &'f mut BTreeSet<&'a str>,
}

impl<'a> SourceOrderVisitor<'a> for Names<'_, 'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Name(name) = expr {
            self.found.insert(name.id.as_str());
        }
        with_stack(|| walk_expr(self, expr));
    }
}

struct Imports {
    found: Vec<Imported>,
}

impl<'a> SourceOrderVisitor<'a> for Imports {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                let of = |alias: &Alias| {
                    let module = alias.name.to_string();
                    let first = module.split('.').next().unwrap_or_default().to_string();
                    let bound = vec![alias.asname.as_ref().map_or(first, |a| a.to_string())];
                    Imported { level: 0, module, names: Vec::new(), bound }
                };
                self.found.extend(import.names.iter().map(of));
            }
            Stmt::ImportFrom(import) => self.found.push(Imported {
                level: import.level,
                module: import.module.as_ref().map_or_else(String::new, |m| m.to_string()),
                names: import.names.iter().map(|a| a.name.to_string()).collect(),
                bound: import
                    .names
                    .iter()
                    .map(|a| a.asname.as_ref().unwrap_or(&a.name).to_string())
                    .collect(),
            }),
            _ => with_stack(|| walk_stmt(self, statement)),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

struct Sets<'n> {
    name: &'n str,
    /// True if only `x['name'] = …` counts.
    items_only: bool,
    found: bool,
}

impl Sets<'_> {
    fn is_target(&self, target: &Expr) -> bool {
        match target {
            Expr::Subscript(subscript) => self.is_key(&subscript.slice),
            _ if self.items_only => false,
            Expr::Name(name) => name.id.as_str() == self.name,
            Expr::Attribute(attribute) => attribute.attr.as_str() == self.name,
            _ => false,
        }
    }

    fn is_key(&self, key: &Expr) -> bool {
        matches!(key, Expr::StringLiteral(text) if text.value.to_str() == self.name)
    }
}

impl<'a> SourceOrderVisitor<'a> for Sets<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.found |= match statement {
            Stmt::Assign(assign) => assign.targets.iter().any(|t| self.is_target(t)),
            Stmt::AnnAssign(assign) => assign.value.is_some() && self.is_target(&assign.target),
            _ => false,
        };
        if !self.found {
            with_stack(|| walk_stmt(self, statement));
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.found |= match expr {
            _ if self.items_only => false,
            Expr::Dict(dict) => dict.items.iter().any(|i| i.key.as_ref().is_some_and(|k| self.is_key(k))),
            Expr::Named(named) => self.is_target(&named.target),
            _ => false,
        };
        if !self.found {
            with_stack(|| walk_expr(self, expr));
        }
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        let named = keyword.arg.as_ref().is_some_and(|a| a.as_str() == self.name);
        self.found |= named && !self.items_only;
        self.visit_expr(&keyword.value);
    }

    fn visit_parameter_with_default(&mut self, parameter: &'a ParameterWithDefault) {
        let named = parameter.name().as_str() == self.name && parameter.default().is_some();
        self.found |= named && !self.items_only;
        if let Some(default) = parameter.default() {
            self.visit_expr(default);
        }
    }

    fn visit_parameter(&mut self, _: &'a Parameter) {}
}
