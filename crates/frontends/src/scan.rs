//! Scan of statements before they are lowered: assignments, reads, calls and jumps.
//!
//! Invariant: nothing here is evaluated; nesting is bounded by the size of the text, not by the stack.

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Stmt};
use std::collections::BTreeSet;

/// The texts that a function gives, if each `return` writes one, or one of two; `None` gives nothing.
pub(crate) fn texts_given(body: &[Stmt]) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let mut todo: Vec<&Expr> = scan(body).returns.into_iter().flatten().collect();
    todo.reverse();
    while let Some(expr) = todo.pop() {
        match expr {
            Expr::StringLiteral(text) => out.push(text.value.to_str().to_string()),
            Expr::If(either) => todo.extend([&*either.orelse, &*either.body]),
            Expr::NoneLiteral(_) => {}
            _ => return None,
        }
    }
    out.dedup();
    (!out.is_empty()).then_some(out)
}

/// Part of an expression's value that an assigned name receives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Its value.
    All,
    /// One item of its value.
    Item,
    /// Its value joins the items of a list.
    Joins,
    /// The items of its value join those of a list.
    JoinAll,
}

/// Result of [`scan`]. Nested functions and classes are skipped.
#[derive(Default)]
pub(crate) struct Found<'a> {
    /// Names that are assigned, each with an expression and what the name has of it.
    pub assigned: Vec<(String, Option<&'a Expr>, Takes)>,
    /// Names that are read, and where.
    pub read: Vec<(String, u32)>,
    /// Calls in the order of the text.
    pub calls: Vec<&'a ExprCall>,
    /// Values of `return` statements.
    pub returns: Vec<Option<&'a Expr>>,
    /// True if a statement jumps out of the scanned ones: `return`, `raise`, or a `break` or `continue` of an
    /// outer loop.
    pub jumps: bool,
    /// True if a statement returns from the function.
    pub leaves: bool,
    /// True if a statement continues an outer loop.
    pub continues: bool,
    loops: usize,
}

/// Looks at statements.
pub(crate) fn scan<'a>(body: &'a [Stmt]) -> Found<'a> {
    let mut found = Found::default();
    for stmt in body {
        found.visit_stmt(stmt);
    }
    found
}

/// Looks at one expression.
pub(crate) fn scan_expr(expr: &Expr) -> Found<'_> {
    let mut found = Found::default();
    found.visit_expr(expr);
    found
}

impl<'a> Found<'a> {
    /// The names that are assigned.
    pub fn names(&self) -> BTreeSet<String> {
        self.assigned.iter().map(|(n, ..)| n.clone()).collect()
    }

    fn assign(&mut self, target: &'a Expr, value: Option<&'a Expr>, takes: Takes) {
        let items = match target {
            Expr::Tuple(t) => &t.elts,
            Expr::List(t) => &t.elts,
            // `d["k"] = v` changes `d`.
            Expr::Subscript(s) => {
                self.assigned.extend(dotted(&s.value).map(|n| (n, None, takes)));
                return;
            }
            _ => {
                self.assigned.extend(dotted(target).map(|n| (n, value, takes)));
                return;
            }
        };
        // An item of an item is not followed.
        let value = value.filter(|_| takes == Takes::All);
        for item in items {
            stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.assign(item, value, Takes::Item));
        }
    }
}

impl<'a> SourceOrderVisitor<'a> for Found<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Assign(s) => s.targets.iter().for_each(|t| self.assign(t, Some(&s.value), Takes::All)),
            Stmt::AnnAssign(s) if s.value.is_some() => self.assign(&s.target, s.value.as_deref(), Takes::All),
            Stmt::AugAssign(s) => {
                self.assign(&s.target, None, Takes::All);
                self.read.extend(dotted(&s.target).map(|n| (n, s.range.start().into())));
            }
            Stmt::For(s) => self.assign(&s.target, Some(&s.iter), Takes::Item),
            Stmt::With(s) => {
                for target in s.items.iter().filter_map(|i| i.optional_vars.as_deref()) {
                    self.assign(target, None, Takes::All);
                }
            }
            Stmt::Return(s) => {
                self.returns.push(s.value.as_deref().filter(|v| !v.is_none_literal_expr()));
                (self.jumps, self.leaves) = (true, true);
            }
            Stmt::Raise(_) => self.jumps = true,
            Stmt::Break(_) => self.jumps |= self.loops == 0,
            Stmt::Continue(_) => {
                self.jumps |= self.loops == 0;
                self.continues |= self.loops == 0;
            }
            Stmt::Expr(s) if is_exit(&s.value) => {
                self.returns.push(None);
                (self.jumps, self.leaves) = (true, true);
            }
            // `xs.append(x)` changes `xs`.
            Stmt::Expr(s) => {
                if let Some((name, method, item)) = grown(&s.value) {
                    let takes = if method == "append" { Takes::Joins } else { Takes::JoinAll };
                    self.assigned.push((name, Some(item), takes));
                }
            }
            _ => {}
        }
        let in_loop = usize::from(matches!(stmt, Stmt::For(_) | Stmt::While(_)));
        self.loops += in_loop;
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
        self.loops -= in_loop;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Lambda(_) => return,
            Expr::Call(call) => self.calls.push(call),
            Expr::Name(n) if n.ctx.is_load() => {
                self.read.push((n.id.to_string(), n.range.start().into()));
            }
            Expr::Attribute(a) if a.ctx.is_load() => {
                self.read.extend(dotted(expr).map(|n| (n, u32::from(a.range.start()))));
            }
            Expr::Named(n) => {
                self.assigned.extend(dotted(&n.target).map(|t| (t, Some(&*n.value), Takes::All)))
            }
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}

/// Returns true if nothing can follow a block: every path ends in `return` or `raise`.
pub(crate) fn never_ends(body: &[Stmt]) -> bool {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || match body.last() {
        Some(Stmt::Return(_) | Stmt::Raise(_)) => true,
        Some(Stmt::Expr(s)) => is_exit(&s.value),
        Some(Stmt::With(s)) => never_ends(&s.body),
        Some(Stmt::If(s)) => {
            let clauses = &s.elif_else_clauses;
            never_ends(&s.body)
                && clauses.last().is_some_and(|c| c.test.is_none())
                && clauses.iter().all(|c| never_ends(&c.body))
        }
        Some(Stmt::Try(s)) => {
            let handled = |h: &ruff_python_ast::ExceptHandler| {
                let ruff_python_ast::ExceptHandler::ExceptHandler(h) = h;
                never_ends(&h.body)
            };
            (never_ends(&s.body) || never_ends(&s.orelse)) && s.handlers.iter().all(handled)
        }
        _ => false,
    })
}

/// `a.b.c` of names.
pub(crate) fn dotted(expr: &Expr) -> Option<String> {
    const MAX_DEPTH: usize = 8;
    let mut parts: Vec<&str> = Vec::new();
    let mut at = expr;
    for _ in 0..MAX_DEPTH {
        match at {
            Expr::Attribute(a) => {
                parts.push(&a.attr);
                at = &a.value;
            }
            Expr::Name(n) => {
                parts.push(&n.id);
                parts.reverse();
                return Some(parts.join("."));
            }
            _ => return None,
        }
    }
    None
}

/// Returns the operand of `await`, or the expression itself.
pub(crate) fn awaited(expr: &Expr) -> &Expr {
    match expr {
        Expr::Await(a) => &a.value,
        _ => expr,
    }
}

/// `xs.append(x)` and `xs.extend(ys)`: the name, the method and what is added.
pub(crate) fn grown(expr: &Expr) -> Option<(String, &str, &Expr)> {
    let Expr::Call(call) = expr else { return None };
    let Expr::Attribute(method) = &*call.func else { return None };
    match &call.arguments.args[..] {
        [one] if matches!(method.attr.as_str(), "append" | "extend") => {
            Some((dotted(&method.value)?, method.attr.as_str(), one))
        }
        _ => None,
    }
}

/// Returns true for a call that ends the program: `exit()`, `sys.exit()`.
pub(crate) fn is_exit(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(c) if dotted(&c.func).is_some_and(|n| matches!(&*n, "exit" | "quit" | "sys.exit")))
}
