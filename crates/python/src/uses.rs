//! Uses of packages in a module: imports, calls and attributes by qualified name, each with its place.
//!
//! Entry point: [`Source::uses`]. Nothing is evaluated. A name counts if its scope binds it once, by an
//! import or by a call of something imported.
//!
//! Invariant: what is known is right. A name that has two bindings, or that other code may set, is left out.

use crate::Source;
use diagnostics::Span;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{
    Alias, ExceptHandler, Expr, ExprCall, ExprContext, Parameters, Pattern, Stmt, StmtImportFrom, StmtTry,
};
use ruff_text_size::{Ranged, TextRange};
use std::collections::{HashMap, HashSet};

/// Uses of packages in a module.
#[derive(Clone, Debug, Default)]
pub struct Uses {
    /// Absolute imports, in the order of the source.
    pub imports: Vec<ImportUse>,
    /// Attributes and calls of what is imported, in the order of the source.
    pub names: Vec<NameUse>,
    /// Qualified names and names of attributes that the module sets itself.
    pub patched: HashSet<String>,
}

/// One name of an import statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportUse {
    /// The module, with dots.
    pub module: String,
    /// The name that is imported from it; `None` for `import MODULE`.
    pub name: Option<String>,
    /// Place of the name, or of the module if there is no name.
    pub span: Span,
    /// Place of the module in the statement.
    pub module_span: Span,
    /// True if the statement imports nothing else.
    pub alone: bool,
    /// True if the module expects that the import may fail, or does not run it.
    pub guarded: bool,
}

/// An attribute or a call of something that is imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameUse {
    /// The object that is used.
    pub target: Target,
    /// Place of the last name.
    pub span: Span,
    /// The arguments if it is called.
    pub call: Option<CallUse>,
    /// True if the module expects that the use may fail.
    pub guarded: bool,
}

/// The object that is used.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A qualified name, as `langgraph.graph.StateGraph`.
    Name(String),
    /// An attribute of what a call of a qualified name gives.
    Member {
        /// The qualified name that was called.
        class: String,
        /// The attribute.
        name: String,
    },
}

/// The arguments of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallUse {
    /// The number of positional arguments, `*args` not counted.
    pub positional: usize,
    /// True if there is `*args`.
    pub spread: bool,
    /// Keyword arguments with the places of their names.
    pub keywords: Vec<(String, Span)>,
    /// True if there is `**kwargs`.
    pub keywords_spread: bool,
}

/// Runs a step of a recursion over the syntax tree on a stack that is large enough.
pub(crate) fn with_stack<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, step)
}

/// Names in an expression, texts left out.
#[derive(Default)]
struct Names<'a> {
    /// Variables and attributes.
    all: Vec<&'a str>,
    /// Last names of the functions that are called.
    called: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn of(expr: &'a Expr) -> Names<'a> {
        let mut names = Names::default();
        names.visit_expr(expr);
        names
    }

    /// Returns true for the test of an `if` that depends on the installed version or its names.
    fn ask_version(&self) -> bool {
        const NAMES: &[&str] = &["hasattr", "getattr", "find_spec", "TYPE_CHECKING"];
        const PARTS: &[&str] = &["version", "VERSION", "signature", "_AVAILABLE", "HAS_"];
        self.all.iter().any(|n| NAMES.contains(n) || PARTS.iter().any(|p| n.contains(p)))
    }

    /// Returns true for a decorator that skips a test or expects that it fails.
    fn skip(&self) -> bool {
        self.all.iter().any(|n| n.contains("skip") || n.contains("xfail"))
    }

    /// Returns true for the context of a `with` that expects an exception.
    fn expect_exception(&self) -> bool {
        let expects =
            |n: &&str| n.ends_with("raises") || n.ends_with("suppress") || n.contains("assertRaises");
        self.called.iter().any(expects)
    }
}

impl<'a> SourceOrderVisitor<'a> for Names<'a> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => self.all.push(name.id.as_str()),
            Expr::Attribute(attribute) => self.all.push(attribute.attr.as_str()),
            Expr::Call(call) => match &*call.func {
                Expr::Name(name) => self.called.push(name.id.as_str()),
                Expr::Attribute(attribute) => self.called.push(attribute.attr.as_str()),
                _ => {}
            },
            _ => {}
        }
        with_stack(|| walk_expr(self, expr));
    }
}

impl Source {
    /// Uses of packages in the module.
    ///
    /// # Examples
    /// ```
    /// use diagnostics::FileId;
    /// use python::Target;
    /// let text = "from agents import Agent\na = Agent('x', tool=1)\na.run()\n";
    /// let uses = python::Source::new(FileId(0), "m.py", text.into()).uses();
    /// assert_eq!(uses.imports[0].module, "agents");
    /// assert_eq!(uses.names[0].target, Target::Name("agents.Agent".into()));
    /// assert_eq!(uses.names[0].call.as_ref().unwrap().keywords[0].0, "tool");
    /// assert_eq!(uses.names[1].target, Target::Member { class: "agents.Agent".into(), name: "run".into() });
    /// ```
    pub fn uses(&self) -> Uses {
        let mut globals = Globals::default();
        for statement in self.body() {
            globals.visit_stmt(statement);
        }
        let mut walk = Walk {
            source: self,
            globals: globals.names,
            scopes: Vec::new(),
            guards: Guards::default(),
            uses: Uses::default(),
        };
        walk.scope(self.body(), None, false);
        walk.uses
    }
}

/// A binding of a name in a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Binding {
    /// A qualified name.
    Import(String),
    /// The result of a call; the place of the expression that is called.
    Result(TextRange),
    /// Anything else.
    Other,
}

/// A lexical scope.
struct Scope<'a> {
    names: HashMap<&'a str, Binding>,
    /// Calls that are bound to names.
    calls: HashMap<TextRange, &'a Expr>,
    is_class: bool,
}

/// Failures that the code around a place expects.
#[derive(Clone, Copy, Default)]
struct Guards {
    imports: bool,
    names: bool,
}

/// Names that functions declare `global` or `nonlocal`.
#[derive(Default)]
struct Globals<'a> {
    names: HashSet<&'a str>,
}

impl<'a> SourceOrderVisitor<'a> for Globals<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Global(s) => self.names.extend(s.names.iter().map(|n| n.as_str())),
            Stmt::Nonlocal(s) => self.names.extend(s.names.iter().map(|n| n.as_str())),
            _ => {}
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

/// The bindings of one scope, without those of the scopes in it.
struct Bindings<'a> {
    names: HashMap<&'a str, Binding>,
    calls: HashMap<TextRange, &'a Expr>,
}

impl<'a> Bindings<'a> {
    fn bind(&mut self, name: &'a str, binding: Binding) {
        self.names
            .entry(name)
            .and_modify(|old| {
                if *old != binding {
                    *old = Binding::Other;
                }
            })
            .or_insert(binding);
    }

    fn assigned(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Name(name), Expr::Call(call)) => {
                self.calls.insert(call.func.range(), &call.func);
                self.bind(name.id.as_str(), Binding::Result(call.func.range()));
            }
            _ => self.visit_expr(target),
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Bindings<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(f) => return self.bind(f.name.as_str(), Binding::Other),
            Stmt::ClassDef(c) => return self.bind(c.name.as_str(), Binding::Other),
            Stmt::Import(import) => {
                for alias in &import.names {
                    let name = alias.name.as_str();
                    match &alias.asname {
                        Some(asname) => self.bind(asname.as_str(), Binding::Import(name.to_string())),
                        None => {
                            let first = name.split('.').next().unwrap_or(name);
                            self.bind(first, Binding::Import(first.to_string()));
                        }
                    }
                }
                return;
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    let binding = match absolute(import) {
                        Some(module) => Binding::Import(format!("{module}.{}", alias.name)),
                        None => Binding::Other,
                    };
                    self.bind(bound, binding);
                }
                return;
            }
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                match &assign.targets[..] {
                    [target] => self.assigned(target, &assign.value),
                    targets => targets.iter().for_each(|t| self.visit_expr(t)),
                }
                return;
            }
            Stmt::AnnAssign(assign) => {
                match &assign.value {
                    Some(value) => {
                        self.visit_expr(value);
                        self.assigned(&assign.target, value);
                    }
                    None => self.visit_expr(&assign.target),
                }
                return;
            }
            Stmt::Try(tried) => {
                for ExceptHandler::ExceptHandler(handler) in &tried.handlers {
                    if let Some(name) = &handler.name {
                        self.bind(name.as_str(), Binding::Other);
                    }
                }
            }
            _ => {}
        }
        with_stack(|| walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx != ExprContext::Load => self.bind(name.id.as_str(), Binding::Other),
            Expr::Lambda(_) => {}
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(p) => p.name.as_ref(),
            Pattern::MatchStar(p) => p.name.as_ref(),
            Pattern::MatchMapping(p) => p.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name.as_str(), Binding::Other);
        }
        walk_pattern(self, pattern);
    }
}

/// The module of an absolute `from … import`.
fn absolute(import: &StmtImportFrom) -> Option<&str> {
    import.module.as_ref().filter(|_| import.level == 0).map(|m| m.as_str())
}

struct Walk<'s, 'a> {
    source: &'s Source,
    globals: HashSet<&'a str>,
    scopes: Vec<Scope<'a>>,
    guards: Guards,
    uses: Uses,
}

/// The value that an expression gives, as far as imports tell.
enum Value {
    Target(Target),
    /// An instance of what a qualified name gives when it is called.
    Instance(String),
}

impl<'a> Walk<'_, 'a> {
    fn scope(&mut self, body: &'a [Stmt], params: Option<&'a Parameters>, is_class: bool) {
        let mut bindings = Bindings { names: HashMap::new(), calls: HashMap::new() };
        for param in params.iter().flat_map(|p| p.iter()) {
            bindings.bind(param.name().as_str(), Binding::Other);
        }
        for statement in body {
            bindings.visit_stmt(statement);
        }
        self.scopes.push(Scope { names: bindings.names, calls: bindings.calls, is_class });
        for statement in body {
            self.visit_stmt(statement);
        }
        self.scopes.pop();
    }

    /// The binding of a name, seen from the scope at a depth, and the index of its scope.
    fn binding(&self, name: &str, depth: usize) -> Option<(usize, &Binding)> {
        if self.globals.contains(name) {
            return None;
        }
        let visible = |i: &usize| *i + 1 == depth || !self.scopes[*i].is_class;
        (0..depth).rev().filter(visible).find_map(|i| Some((i, self.scopes[i].names.get(name)?)))
    }

    /// The value of a name, seen from the scope at a depth.
    fn name(&self, name: &str, depth: usize) -> Option<Value> {
        match self.binding(name, depth)? {
            (_, Binding::Import(qualified)) => Some(Value::Target(Target::Name(qualified.clone()))),
            (i, Binding::Result(at)) => {
                let called = self.scopes[i].calls.get(at)?;
                self.imported_name(called, i + 1).map(Value::Instance)
            }
            (_, Binding::Other) => None,
        }
    }

    /// The qualified name of a chain that begins with an import.
    fn imported_name(&self, expr: &Expr, depth: usize) -> Option<String> {
        let mut parts = Vec::new();
        let mut expr = expr;
        let root = loop {
            expr = match expr {
                Expr::Name(name) => break name.id.as_str(),
                Expr::Attribute(attribute) => {
                    parts.push(attribute.attr.as_str());
                    &attribute.value
                }
                Expr::Subscript(subscript) if parts.is_empty() => &subscript.value,
                _ => return None,
            };
        };
        let (_, Binding::Import(qualified)) = self.binding(root, depth)? else { return None };
        parts.push(qualified);
        parts.reverse();
        Some(parts.join("."))
    }

    fn value(&self, expr: &Expr, depth: usize) -> Option<Value> {
        match expr {
            Expr::Name(name) => self.name(name.id.as_str(), depth),
            Expr::Attribute(attribute) => {
                let value = with_stack(|| self.value(&attribute.value, depth));
                let attr = attribute.attr.as_str();
                match value? {
                    Value::Target(Target::Name(q)) => {
                        Some(Value::Target(Target::Name(format!("{q}.{attr}"))))
                    }
                    Value::Instance(class) => {
                        Some(Value::Target(Target::Member { class, name: attr.to_string() }))
                    }
                    Value::Target(Target::Member { .. }) => None,
                }
            }
            // `Agent[Deps]`: a class of the same constructor.
            Expr::Subscript(subscript) => match with_stack(|| self.value(&subscript.value, depth))? {
                Value::Target(Target::Name(q)) => Some(Value::Target(Target::Name(q))),
                _ => None,
            },
            Expr::Call(call) => match with_stack(|| self.value(&call.func, depth))? {
                Value::Target(Target::Name(class)) => Some(Value::Instance(class)),
                _ => None,
            },
            _ => None,
        }
    }

    fn target(&self, expr: &Expr) -> Option<Target> {
        match self.value(expr, self.scopes.len())? {
            Value::Target(target) => Some(target),
            Value::Instance(_) => None,
        }
    }

    fn used(&mut self, expr: &Expr, call: Option<CallUse>) {
        let at = match expr {
            Expr::Attribute(attribute) => attribute.attr.range(),
            Expr::Subscript(subscript) => match &*subscript.value {
                Expr::Attribute(attribute) => attribute.attr.range(),
                value => value.range(),
            },
            _ => expr.range(),
        };
        if let Some(target) = self.target(expr) {
            let span = self.source.span(at);
            self.uses.names.push(NameUse { target, span, call, guarded: self.guards.names });
        }
    }

    fn call(&mut self, call: &'a ExprCall) {
        let mut made = CallUse::default();
        for argument in &call.arguments.args {
            match argument {
                Expr::Starred(_) => made.spread = true,
                _ => made.positional += 1,
            }
        }
        for keyword in &call.arguments.keywords {
            match &keyword.arg {
                Some(name) => made.keywords.push((name.to_string(), self.source.span(name.range()))),
                None => made.keywords_spread = true,
            }
        }
        if let (Expr::Name(f), [object, Expr::StringLiteral(name), ..]) =
            (&*call.func, &call.arguments.args[..])
            && f.id.as_str() == "setattr"
        {
            self.patched(object, name.value.to_str());
        }
        self.used(&call.func, Some(made));
        self.inside(&call.func);
        for argument in &call.arguments.args {
            self.visit_expr(argument);
        }
        for keyword in &call.arguments.keywords {
            self.visit_expr(&keyword.value);
        }
    }

    /// Visits what stands inside of a chain of names: calls, subscripts.
    fn inside(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(_) => {}
            Expr::Attribute(attribute) => {
                with_stack(|| self.inside(&attribute.value));
            }
            Expr::Subscript(subscript) => {
                self.visit_expr(&subscript.slice);
                with_stack(|| self.inside(&subscript.value));
            }
            other => self.visit_expr(other),
        }
    }

    fn patched(&mut self, object: &Expr, name: &str) {
        self.uses.patched.insert(name.to_string());
        if let Some(Target::Name(q)) = self.target(object) {
            self.uses.patched.insert(format!("{q}.{name}"));
        }
    }

    fn imported(&mut self, alias: &Alias, module: &str, module_range: Option<TextRange>, alone: bool) {
        let name = alias.name.as_str();
        if name == "*" {
            return;
        }
        let span = self.source.span(alias.name.range());
        self.uses.imports.push(ImportUse {
            module: module.to_string(),
            name: module_range.map(|_| name.to_string()),
            span,
            module_span: module_range.map_or(span, |r| self.source.span(r)),
            alone,
            guarded: self.guards.imports,
        });
    }

    fn guarded(&mut self, guards: Guards, visit: impl FnOnce(&mut Self)) {
        let before = self.guards;
        self.guards.imports |= guards.imports;
        self.guards.names |= guards.names;
        visit(self);
        self.guards = before;
    }
}

/// The failures that the handlers of a `try` expect.
fn expected(tried: &StmtTry) -> Guards {
    let mut guards = Guards::default();
    for ExceptHandler::ExceptHandler(handler) in &tried.handlers {
        let mut names = Vec::new();
        match handler.type_.as_deref() {
            None => guards.imports = true,
            Some(Expr::Tuple(all)) => names.extend(&all.elts),
            Some(one) => names.push(one),
        }
        for name in names {
            let last = match name {
                Expr::Name(name) => name.id.as_str(),
                Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => "Exception",
            };
            match last {
                "ImportError" | "ModuleNotFoundError" => guards = Guards { imports: true, names: true },
                "Exception" | "BaseException" => guards.imports = true,
                "TypeError" | "AttributeError" | "ValidationError" | "ValueError" => guards.names = true,
                _ => {}
            }
        }
    }
    guards
}

const ALL: Guards = Guards { imports: true, names: true };

impl<'a> SourceOrderVisitor<'a> for Walk<'_, 'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::FunctionDef(f) => {
                for decorator in &f.decorator_list {
                    self.visit_expr(&decorator.expression);
                }
                for default in f.parameters.iter().filter_map(|p| p.default()) {
                    self.visit_expr(default);
                }
                let skipped = f.decorator_list.iter().any(|d| Names::of(&d.expression).skip());
                let guards = if skipped { ALL } else { Guards::default() };
                self.guarded(guards, |w| {
                    with_stack(|| w.scope(&f.body, Some(&f.parameters), false));
                });
            }
            Stmt::ClassDef(c) => {
                for decorator in &c.decorator_list {
                    self.visit_expr(&decorator.expression);
                }
                for base in c.bases() {
                    self.visit_expr(base);
                }
                with_stack(|| self.scope(&c.body, None, true));
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.imported(alias, alias.name.as_str(), None, import.names.len() == 1);
                }
            }
            Stmt::ImportFrom(import) => {
                if let (Some(module), Some(at)) = (absolute(import), &import.module) {
                    for alias in &import.names {
                        self.imported(alias, module, Some(at.range()), import.names.len() == 1);
                    }
                }
            }
            Stmt::Try(tried) => {
                let guards = expected(tried);
                self.guarded(guards, |w| tried.body.iter().for_each(|s| w.visit_stmt(s)));
                // They run where the names that are tried do not exist.
                self.guarded(guards, |w| {
                    for ExceptHandler::ExceptHandler(handler) in &tried.handlers {
                        handler.body.iter().for_each(|s| w.visit_stmt(s));
                    }
                });
                self.guarded(Guards { imports: false, ..guards }, |w| {
                    tried.orelse.iter().chain(&tried.finalbody).for_each(|s| w.visit_stmt(s));
                });
            }
            Stmt::If(s) => {
                let guards = if Names::of(&s.test).ask_version() { ALL } else { Guards::default() };
                self.guarded(guards, |w| with_stack(|| walk_stmt(w, statement)));
            }
            Stmt::With(s) => {
                let expects = s.items.iter().any(|i| Names::of(&i.context_expr).expect_exception());
                let guards = if expects { ALL } else { Guards::default() };
                self.guarded(guards, |w| with_stack(|| walk_stmt(w, statement)));
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    if let Expr::Attribute(attribute) = target {
                        self.patched(&attribute.value, attribute.attr.as_str());
                    }
                    if let Expr::Subscript(subscript) = target
                        && let Expr::StringLiteral(key) = &*subscript.slice
                        && self.target(&subscript.value) == Some(Target::Name("sys.modules".into()))
                    {
                        self.uses.patched.insert(key.value.to_str().to_string());
                    }
                }
                with_stack(|| walk_stmt(self, statement));
            }
            _ => with_stack(|| walk_stmt(self, statement)),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => with_stack(|| self.call(call)),
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Load => {
                self.used(expr, None);
                self.inside(expr);
            }
            // Its parameters may shadow anything; few calls of frameworks stand in one.
            Expr::Lambda(_) => {}
            _ => with_stack(|| walk_expr(self, expr)),
        }
    }
}
