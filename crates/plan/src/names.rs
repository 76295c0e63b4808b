//! Names that statements bind, and ways to leave them.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{ExceptHandler, Expr, Stmt};
use ruff_text_size::{Ranged, TextRange};
use std::collections::BTreeSet;

/// Hidden variable: the lines that were printed.
pub(crate) const PRINTED: &str = "$out";
/// Levels of nesting at most.
const MAX_NESTING: usize = 200;
/// Statements at most.
pub(crate) const MAX_STATEMENTS: usize = 4_000;

/// Methods that change their object.
pub(crate) const MUTATORS: &[&str] = &[
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "sort",
    "reverse",
    "clear",
    "add",
    "discard",
    "update",
    "setdefault",
    "popitem",
];

/// The variable at the root of a path of attributes and items.
pub(crate) fn root(e: &Expr) -> Option<&str> {
    match e {
        Expr::Name(n) => Some(n.id.as_str()),
        Expr::Attribute(a) => root(&a.value),
        Expr::Subscript(s) => root(&s.value),
        _ => None,
    }
}

/// Returns the object and the name of a call of a mutating method.
pub(crate) fn mutation(e: &Expr) -> Option<(&ruff_python_ast::ExprCall, &Expr, &str)> {
    let Expr::Call(call) = e else { return None };
    let Expr::Attribute(a) = &*call.func else { return None };
    MUTATORS.contains(&a.attr.as_str()).then(|| (call, &*a.value, a.attr.as_str()))
}

fn targets(e: &Expr, out: &mut BTreeSet<String>) {
    match e {
        Expr::Tuple(t) => t.elts.iter().for_each(|e| targets(e, out)),
        Expr::List(t) => t.elts.iter().for_each(|e| targets(e, out)),
        Expr::Starred(s) => targets(&s.value, out),
        e => out.extend(root(e).map(String::from)),
    }
}

#[derive(Default)]
struct Assigned {
    names: BTreeSet<String>,
    /// Names that are assigned more than once.
    again: BTreeSet<String>,
    /// True if mutated variables count.
    mutated: bool,
}

impl Assigned {
    fn add(&mut self, name: &str) {
        if !self.names.insert(name.into()) {
            self.again.insert(name.into());
        }
    }

    fn target(&mut self, e: &Expr) {
        match e {
            Expr::Tuple(t) => t.elts.iter().for_each(|e| self.target(e)),
            Expr::List(t) => t.elts.iter().for_each(|e| self.target(e)),
            Expr::Starred(s) => self.target(&s.value),
            Expr::Name(n) => self.add(n.id.as_str()),
            e if self.mutated => root(e).into_iter().for_each(|n| self.add(n)),
            _ => {}
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Assigned {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(s) => s.targets.iter().for_each(|t| self.target(t)),
            Stmt::AugAssign(s) => self.target(&s.target),
            Stmt::AnnAssign(s) if s.value.is_some() => self.target(&s.target),
            Stmt::For(s) => self.target(&s.target),
            Stmt::FunctionDef(s) => {
                self.add(s.name.as_str());
                return;
            }
            Stmt::Try(s) => {
                for ExceptHandler::ExceptHandler(h) in &s.handlers {
                    h.name.iter().for_each(|n| self.add(n.as_str()));
                }
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, e: &'a Expr) {
        if self.mutated
            && let Some((_, of, _)) = mutation(e)
            && let Some(name) = root(of)
        {
            self.add(name);
        }
        if let Expr::Call(call) = e
            && matches!(&*call.func, Expr::Name(n) if n.id.as_str() == "print")
        {
            self.add(PRINTED);
        }
        if !matches!(e, Expr::Lambda(_)) {
            walk_expr(self, e);
        }
    }
}

/// Variables that statements bind or mutate, without those of functions inside.
pub(crate) fn assigned(stmts: &[Stmt]) -> BTreeSet<String> {
    let mut all = Assigned { mutated: true, ..Assigned::default() };
    stmts.iter().for_each(|s| all.visit_stmt(s));
    all.names
}

/// Variables that one place in statements binds or mutates, without those of functions inside.
pub(crate) fn assigned_once(stmts: &[Stmt]) -> BTreeSet<String> {
    let mut all = Assigned { mutated: true, ..Assigned::default() };
    stmts.iter().for_each(|s| all.visit_stmt(s));
    all.names.difference(&all.again).cloned().collect()
}

/// Variables that statements bind: those that are local to a function of these statements.
pub(crate) fn bound(stmts: &[Stmt]) -> BTreeSet<String> {
    let mut all = Assigned::default();
    stmts.iter().for_each(|s| all.visit_stmt(s));
    all.names
}

/// Variables of an assignment target.
pub(crate) fn bound_by(target: &Expr) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    targets(target, &mut out);
    out
}

/// Returns true if statements may leave by `return`, or by `break` or `continue` of a loop around them.
pub(crate) fn leaves(stmts: &[Stmt], in_loop: bool) -> bool {
    stmts.iter().any(|s| match s {
        Stmt::Return(_) => true,
        Stmt::Break(_) | Stmt::Continue(_) => !in_loop,
        Stmt::If(s) => {
            leaves(&s.body, in_loop) || s.elif_else_clauses.iter().any(|c| leaves(&c.body, in_loop))
        }
        Stmt::For(s) => leaves(&s.body, true) || leaves(&s.orelse, in_loop),
        Stmt::While(s) => leaves(&s.body, true) || leaves(&s.orelse, in_loop),
        Stmt::Try(s) => {
            leaves(&s.body, in_loop)
                || leaves(&s.orelse, in_loop)
                || leaves(&s.finalbody, in_loop)
                || s.handlers.iter().any(|ExceptHandler::ExceptHandler(h)| leaves(&h.body, in_loop))
        }
        _ => false,
    })
}

/// Returns the place and keyword of each `break` and `continue` that stands in no loop of its function.
/// The statements must not be nested too deep.
pub(crate) fn outside_of_loops(stmts: &[Stmt]) -> Vec<(TextRange, &'static str)> {
    fn walk(stmts: &[Stmt], in_loop: bool, out: &mut Vec<(TextRange, &'static str)>) {
        for s in stmts {
            match s {
                Stmt::Break(b) if !in_loop => out.push((b.range, "break")),
                Stmt::Continue(c) if !in_loop => out.push((c.range, "continue")),
                Stmt::FunctionDef(f) => walk(&f.body, false, out),
                Stmt::ClassDef(c) => walk(&c.body, false, out),
                Stmt::With(w) => walk(&w.body, in_loop, out),
                Stmt::If(i) => {
                    walk(&i.body, in_loop, out);
                    i.elif_else_clauses.iter().for_each(|c| walk(&c.body, in_loop, out));
                }
                Stmt::For(f) => {
                    walk(&f.body, true, out);
                    walk(&f.orelse, in_loop, out);
                }
                Stmt::While(w) => {
                    walk(&w.body, true, out);
                    walk(&w.orelse, in_loop, out);
                }
                Stmt::Try(t) => {
                    walk(&t.body, in_loop, out);
                    for ExceptHandler::ExceptHandler(h) in &t.handlers {
                        walk(&h.body, in_loop, out);
                    }
                    walk(&t.orelse, in_loop, out);
                    walk(&t.finalbody, in_loop, out);
                }
                _ => {}
            }
        }
    }
    let mut out = Vec::new();
    walk(stmts, false, &mut out);
    out
}

/// Counts how often a name occurs in an expression.
pub(crate) fn occurrences(e: &Expr, name: &str) -> usize {
    struct Count<'n>(&'n str, usize);
    impl<'a> SourceOrderVisitor<'a> for Count<'_> {
        fn visit_expr(&mut self, e: &'a Expr) {
            if matches!(e, Expr::Name(n) if n.id.as_str() == self.0) {
                self.1 += 1;
            }
            walk_expr(self, e);
        }
    }
    let mut count = Count(name, 0);
    count.visit_expr(e);
    count.1
}

/// The first part of a plan that is too much, and why.
pub(crate) enum TooMuch {
    Depth(TextRange),
    Statements(TextRange),
}

/// Returns the first part of a plan that is nested too deep, or that is one statement too many.
pub(crate) fn too_much(body: &[Stmt]) -> Option<TooMuch> {
    #[derive(Default)]
    struct Depth {
        now: usize,
        statements: usize,
        found: Option<TooMuch>,
    }
    impl Depth {
        fn inside(&mut self, at: TextRange, go: impl FnOnce(&mut Depth)) {
            if self.now >= MAX_NESTING {
                self.found.get_or_insert(TooMuch::Depth(at));
            }
            if self.found.is_none() {
                self.now += 1;
                stacker::maybe_grow(64 << 10, 1 << 20, || go(self));
                self.now -= 1;
            }
        }
    }
    impl<'a> SourceOrderVisitor<'a> for Depth {
        fn visit_stmt(&mut self, s: &'a Stmt) {
            self.statements += 1;
            if self.statements > MAX_STATEMENTS {
                self.found.get_or_insert(TooMuch::Statements(s.range()));
            }
            self.inside(s.range(), |d| walk_stmt(d, s));
        }
        fn visit_expr(&mut self, e: &'a Expr) {
            self.inside(e.range(), |d| walk_expr(d, e));
        }
    }
    let mut depth = Depth::default();
    for s in body {
        if depth.found.is_some() {
            break;
        }
        depth.visit_stmt(s);
    }
    depth.found
}
