//! Evaluation of a body in which no branch is decided and each statement is visited once.
//!
//! Entry point: [`World::block_in_order`]. It takes as many steps as the body is long, so it ends where the
//! evaluation of all branches and loops exceeds its budget. A name has the last value that is written to it,
//! so this finds calls and decides no values.

use crate::eval::{Context, World};
use crate::value::*;
use ruff_python_ast::{self as ast, Stmt};
use ruff_text_size::Ranged;

impl<'a> World<'a> {
    /// Visits each statement of a block once, those of all branches and loops included.
    pub(crate) fn block_in_order(&mut self, body: &'a [Stmt], at: Context) {
        for stmt in body {
            let span = self.span(at.module, stmt.range());
            if !self.step(1, span) {
                return;
            }
            self.with_stack(|w| w.visit(stmt, at));
        }
    }

    fn visit(&mut self, stmt: &'a Stmt, at: Context) {
        let span = self.span(at.module, stmt.range());
        match stmt {
            Stmt::If(s) => {
                self.expr(&s.test, at);
                self.block_in_order(&s.body, at);
                for clause in &s.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        self.expr(test, at);
                    }
                    self.block_in_order(&clause.body, at);
                }
            }
            Stmt::For(s) => {
                self.expr(&s.iter, at);
                self.assign(&s.target, Value::unknown("an item of a loop", span), at);
                self.block_in_order(&s.body, at);
                self.block_in_order(&s.orelse, at);
            }
            Stmt::While(s) => {
                self.expr(&s.test, at);
                self.block_in_order(&s.body, at);
                self.block_in_order(&s.orelse, at);
            }
            Stmt::With(s) => {
                for item in &s.items {
                    let value = self.expr(&item.context_expr, at);
                    let entered = self.call_context_manager(&value, ["__enter__", "__aenter__"], span);
                    if let Some(target) = &item.optional_vars {
                        self.assign(target, entered.unwrap_or(value), at);
                    }
                }
                self.block_in_order(&s.body, at);
            }
            Stmt::Try(s) => {
                self.block_in_order(&s.body, at);
                for handler in &s.handlers {
                    let ast::ExceptHandler::ExceptHandler(h) = handler;
                    if let Some(name) = &h.name {
                        self.bind(name.id.as_str(), Value::unknown("an exception", span), at);
                    }
                    self.block_in_order(&h.body, at);
                }
                self.block_in_order(&s.orelse, at);
                self.block_in_order(&s.finalbody, at);
            }
            Stmt::Match(s) => {
                self.expr(&s.subject, at);
                for case in &s.cases {
                    self.bind_pattern_names(&case.pattern, at);
                    self.block_in_order(&case.body, at);
                }
            }
            Stmt::Return(s) => {
                let value = s.value.as_deref().map(|v| self.expr(v, at));
                self.record_return(value.unwrap_or_else(|| Value::new(PyKind::None, span)));
            }
            Stmt::Break(_) | Stmt::Continue(_) => {}
            _ => {
                self.statement(stmt, at);
            }
        }
    }
}
