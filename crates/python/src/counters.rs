//! Limits of `while` loops that count their iterations.
//!
//! A loop has a limit if a comparison of a counter with a number ends it, and every iteration that does not
//! leave the loop increments the counter.

use crate::eval::{Context, Times, World};
use crate::value::PyKind;
use ruff_python_ast as ast;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{CmpOp, Expr, ExprContext, Operator, Stmt};

impl<'a> World<'a> {
    /// Maximal number of iterations of a loop that is about to be evaluated.
    pub(crate) fn iterations(&self, s: &'a ast::StmtWhile, at: Context) -> Times {
        let mut tests: Vec<&Expr> = Vec::new();
        let mut todo = vec![&*s.test];
        // Of several tests that must hold, one is enough.
        while let Some(test) = todo.pop() {
            match test {
                Expr::BoolOp(b) if b.op.is_and() => todo.extend(&b.values),
                other => tests.push(other),
            }
        }
        let by_test = tests.into_iter().filter_map(|t| self.counted(t, false, &s.body, at)).min();
        // `if n >= 3: break` in each iteration.
        let guards = s.body.iter().filter_map(|stmt| match stmt {
            Stmt::If(i) if i.elif_else_clauses.is_empty() => {
                matches!(i.body.last(), Some(Stmt::Break(_) | Stmt::Return(_))).then_some(&*i.test)
            }
            _ => None,
        });
        let by_guard = guards.filter_map(|t| self.counted(t, true, &s.body, at)).min();
        [by_test, by_guard.map(|n| n.saturating_add(1))].into_iter().flatten().min()
    }

    /// Number of iterations after which a comparison fails, or holds if it `ends` the loop.
    fn counted(&self, test: &Expr, ends: bool, body: &'a [Stmt], at: Context) -> Option<u64> {
        let Expr::Compare(c) = test else { return None };
        let ([op], [right]) = (&c.ops[..], &c.comparators[..]) else { return None };
        let (counter, op, limit) = match (&*c.left, right) {
            (Expr::Name(n), limit) if advances(body, n.id.as_str()) => (n, *op, limit),
            (limit, Expr::Name(n)) if advances(body, n.id.as_str()) => (n, mirrored(*op)?, limit),
            _ => return None,
        };
        let from = self.number(&Expr::Name(counter.clone()), at)?;
        let to = self.number(limit, at).filter(|_| !assigned(body, limit))?;
        let last = match (op, ends) {
            (CmpOp::Lt, false) | (CmpOp::GtE | CmpOp::Eq, true) => to,
            (CmpOp::LtE, false) | (CmpOp::Gt, true) => to.checked_add(1)?,
            _ => return None,
        };
        // A step of more than one may pass by what ends it.
        if op == CmpOp::Eq && (from > to || !steps_by_one(body, counter.id.as_str())) {
            return None;
        }
        u64::try_from(last.saturating_sub(from).max(0)).ok()
    }

    /// Value of a whole number that is written, or of a name or attribute that holds one.
    fn number(&self, expr: &Expr, at: Context) -> Option<i64> {
        let value = match expr {
            Expr::NumberLiteral(n) => return n.value.as_int().and_then(|i| i.as_i64()),
            Expr::Name(n) => self.lookup_in(at.scope, n.id.as_str())?,
            Expr::Attribute(a) => match (&*a.value, at.this) {
                (Expr::Name(n), Some((Some(this), _))) if n.id.as_str() == "self" => {
                    self.object(this).attr(a.attr.as_str())?.clone()
                }
                _ => return None,
            },
            _ => return None,
        };
        match value.kind {
            PyKind::Int(n) if !value.maybe => Some(n),
            _ => None,
        }
    }
}

fn mirrored(op: CmpOp) -> Option<CmpOp> {
    Some(match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::LtE => CmpOp::GtE,
        CmpOp::Gt => CmpOp::Lt,
        CmpOp::GtE => CmpOp::LtE,
        CmpOp::Eq => CmpOp::Eq,
        _ => return None,
    })
}

/// Ways in which the evaluation of some statements goes on.
#[derive(Clone, Copy, Default)]
struct Ways {
    /// It may reach the end without an increment.
    plain: bool,
    /// It may reach the end after an increment.
    counted: bool,
    /// It may begin the next iteration without an increment.
    skips: bool,
}

impl Ways {
    fn or(self, other: Ways) -> Ways {
        Ways {
            plain: self.plain || other.plain,
            counted: self.counted || other.counted,
            skips: self.skips || other.skips,
        }
    }
}

const START: Ways = Ways { plain: true, counted: false, skips: false };

/// Returns true if every iteration that does not leave the loop increments a name, which nothing else sets.
fn advances(body: &[Stmt], name: &str) -> bool {
    let mut sets = Sets { name, found: 0, increments: 0, by_one: true };
    body.iter().for_each(|s| sets.visit_stmt(s));
    let ways = follow(body, name, START);
    sets.found == sets.increments && sets.increments > 0 && !ways.plain && !ways.skips
}

fn steps_by_one(body: &[Stmt], name: &str) -> bool {
    let mut sets = Sets { name, found: 0, increments: 0, by_one: true };
    body.iter().for_each(|s| sets.visit_stmt(s));
    sets.increments == 1 && sets.by_one
}

/// Returns true if statements may change what an expression reads.
fn assigned(body: &[Stmt], read: &Expr) -> bool {
    let name = match read {
        Expr::Name(n) => n.id.as_str(),
        Expr::Attribute(a) => a.attr.as_str(),
        _ => return false,
    };
    let mut sets = Sets { name, found: 0, increments: 0, by_one: true };
    body.iter().for_each(|s| sets.visit_stmt(s));
    sets.found > 0
}

fn follow(body: &[Stmt], name: &str, mut now: Ways) -> Ways {
    for stmt in body {
        if !now.plain && !now.counted {
            break;
        }
        let from = Ways { skips: false, ..now };
        let then = stacker::maybe_grow(64 * 1024, 1024 * 1024, || step(stmt, name, from));
        now = Ways { skips: now.skips || then.skips, ..then };
    }
    now
}

fn step(stmt: &Stmt, name: &str, now: Ways) -> Ways {
    let ended = Ways::default();
    match stmt {
        Stmt::AugAssign(_) if increment(stmt, name).is_some() => Ways { plain: false, counted: true, ..now },
        Stmt::Return(_) | Stmt::Raise(_) | Stmt::Break(_) => ended,
        Stmt::Continue(_) => Ways { skips: now.plain, ..ended },
        Stmt::If(s) => {
            let mut ways = follow(&s.body, name, now);
            for clause in &s.elif_else_clauses {
                ways = ways.or(follow(&clause.body, name, now));
            }
            let covered = s.elif_else_clauses.last().is_some_and(|c| c.test.is_none());
            if covered { ways } else { ways.or(now) }
        }
        // What raises may do so before it counts.
        Stmt::Try(s) => {
            let body = follow(&s.body, name, now);
            let orelse = Ways { skips: body.skips || now.skips, ..follow(&s.orelse, name, body) };
            let mut ways = if s.orelse.is_empty() { body } else { orelse };
            for ast::ExceptHandler::ExceptHandler(handler) in &s.handlers {
                let from = Ways { counted: now.counted || body.counted, ..now };
                ways = ways.or(follow(&handler.body, name, from));
            }
            let last = follow(&s.finalbody, name, ways);
            Ways { skips: last.skips || ways.skips, ..last }
        }
        // A context may swallow an exception.
        Stmt::With(s) => follow(&s.body, name, now).or(now),
        Stmt::Match(s) => s.cases.iter().fold(now, |ways, case| ways.or(follow(&case.body, name, now))),
        // They may have no iteration; their `continue` is their own.
        Stmt::For(_) | Stmt::While(_) => now,
        _ => now,
    }
}

/// The number by which a statement increments a name.
fn increment(stmt: &Stmt, name: &str) -> Option<i64> {
    let Stmt::AugAssign(a) = stmt else { return None };
    let (Expr::Name(target), Expr::NumberLiteral(by)) = (&*a.target, &*a.value) else { return None };
    let by = by.value.as_int().and_then(|i| i.as_i64()).filter(|n| *n > 0)?;
    (a.op == Operator::Add && target.id.as_str() == name).then_some(by)
}

/// Statements that set a name, among them increments.
struct Sets<'n> {
    name: &'n str,
    found: usize,
    increments: usize,
    by_one: bool,
}

impl<'a> SourceOrderVisitor<'a> for Sets<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Some(by) = increment(stmt, self.name) {
            self.increments += 1;
            self.by_one &= by == 1;
        }
        match stmt {
            Stmt::Global(s) => self.found += usize::from(s.names.iter().any(|n| n.as_str() == self.name)),
            Stmt::Nonlocal(s) => self.found += usize::from(s.names.iter().any(|n| n.as_str() == self.name)),
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, stmt));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(n) if n.ctx != ExprContext::Load => {
                self.found += usize::from(n.id.as_str() == self.name);
            }
            Expr::Attribute(a) if a.ctx != ExprContext::Load => {
                self.found += usize::from(a.attr.as_str() == self.name);
            }
            _ => {}
        }
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_expr(self, expr));
    }
}
