//! Import statements of a module, the names to which it gives values, and the methods that it calls.
//!
//! Entry points: [`Source::imported`], [`Source::sets`], [`Source::calls`]. All read the syntax tree:
//! comments and texts say nothing.

use crate::Source;
use crate::uses::with_stack;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, Keyword, Parameter, ParameterWithDefault, Stmt};

/// A module that an import statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Number of dots before the name: 0 for an absolute import.
    pub level: u32,
    /// The module's name with its inner dots. Empty for `from . import NAME`.
    pub module: String,
    /// Names imported from it. Empty for `import MODULE`.
    pub names: Vec<String>,
}

impl Imported {
    /// Qualified names that the statement may import, by which a module can be looked up: the module and each
    /// of its names. Relative names have no dots in front.
    ///
    /// # Examples
    /// ```
    /// use python::Imported;
    /// let import = Imported { level: 0, module: "google".into(), names: vec!["adk".into()] };
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
        let mut sets = Sets { name, found: false };
        for statement in self.body() {
            sets.visit_stmt(statement);
        }
        sets.found
    }

    /// Returns true if the module calls one of these methods. `run` is a method of anything, `Runner.run` of
    /// the name `Runner`.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// let source = |text: &str| python::Source::new(FileId(0), "m.py", text.into());
    /// let calls = |text: &str| source(text).calls(&["kickoff", "R.run"]);
    /// assert!(calls("x = [crew().kickoff(inputs)]") && calls("async def f():\n    await R.run(a)"));
    /// assert!(!calls("# crew.kickoff()") && !calls("'R.run()'"));
    /// assert!(!calls("kickoff()") && !calls("q.run()"));
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
        let mut calls = Calls { methods: &methods, found: false };
        for statement in self.body() {
            calls.visit_stmt(statement);
        }
        calls.found
    }
}

/// Methods with the name that they belong to, if it matters.
struct Calls<'n> {
    methods: &'n [(Option<&'n str>, &'n str)],
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
                *name == method.attr.as_str() && (of.is_none() || *of == receiver)
            };
            self.found |= self.methods.iter().any(is_one);
        }
        if !self.found {
            with_stack(|| walk_expr(self, expr));
        }
    }
}

struct Imports {
    found: Vec<Imported>,
}

impl<'a> SourceOrderVisitor<'a> for Imports {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(import) => {
                let module = |name: &str| Imported { level: 0, module: name.to_string(), names: Vec::new() };
                self.found.extend(import.names.iter().map(|a| module(a.name.as_str())));
            }
            Stmt::ImportFrom(import) => self.found.push(Imported {
                level: import.level,
                module: import.module.as_ref().map_or_else(String::new, |m| m.to_string()),
                names: import.names.iter().map(|a| a.name.to_string()).collect(),
            }),
            _ => with_stack(|| walk_stmt(self, statement)),
        }
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

struct Sets<'n> {
    name: &'n str,
    found: bool,
}

impl Sets<'_> {
    fn is_target(&self, target: &Expr) -> bool {
        match target {
            Expr::Name(name) => name.id.as_str() == self.name,
            Expr::Attribute(attribute) => attribute.attr.as_str() == self.name,
            Expr::Subscript(subscript) => self.is_key(&subscript.slice),
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
            Expr::Dict(dict) => dict.items.iter().any(|i| i.key.as_ref().is_some_and(|k| self.is_key(k))),
            Expr::Named(named) => self.is_target(&named.target),
            _ => false,
        };
        if !self.found {
            with_stack(|| walk_expr(self, expr));
        }
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        self.found |= keyword.arg.as_ref().is_some_and(|a| a.as_str() == self.name);
        self.visit_expr(&keyword.value);
    }

    fn visit_parameter_with_default(&mut self, parameter: &'a ParameterWithDefault) {
        self.found |= parameter.name().as_str() == self.name && parameter.default().is_some();
        if let Some(default) = parameter.default() {
            self.visit_expr(default);
        }
    }

    fn visit_parameter(&mut self, _: &'a Parameter) {}
}
