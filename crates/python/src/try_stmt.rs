//! `try` statements, and blocks under context managers.
//!
//! Invariant: what follows where something failed is there; how often, and with which names, is not known.

use crate::eval::{Context, World};
use crate::stmt::{Flow, is_constant};
use crate::symbolic::Condition;
use crate::value::*;
use diagnostics::Span;
use ruff_python_ast as ast;
use std::collections::HashMap;

/// Reason of values that are unknown after a failure.
const AFTER_FAILURE: &str = "a value after a failure";

impl<'a> World<'a> {
    /// Evaluates a `try` statement. Values computed before a failure aren't known in its handlers.
    pub(crate) fn try_stmt(&mut self, s: &'a ast::StmtTry, at: Context) -> Flow {
        let span = self.span(at.module, s.range);
        let before = self.names(at, span);
        let flow = self.block(&s.body, at);
        let mut goes_on = false;
        let mut others: Vec<HashMap<&'a str, Value>> = Vec::new();
        for handler in &s.handlers {
            let ast::ExceptHandler::ExceptHandler(h) = handler;
            self.on_failure(span, at, |w| {
                if let Some(name) = &h.name {
                    let span = w.span(at.module, name.range);
                    w.bind(name.id.as_str(), Value::unknown("an exception", span), at);
                }
                if w.block(&h.body, at) == Flow::Next {
                    goes_on = true;
                    others.push(w.names(at, span));
                }
            });
        }
        let flow = if flow == Flow::Next { self.block(&s.orelse, at) } else { flow };
        let flow = match flow {
            Flow::Next if goes_on && self.symbolic => {
                others.push(before);
                self.join_constants(&others, at, span);
                flow
            }
            Flow::Next => flow,
            // What follows is reached where it fails.
            _ if goes_on && self.symbolic => self.after_failure(before, at, span),
            _ => flow,
        };
        let last = self.block(&s.finalbody, at);
        if last == Flow::Next { flow } else { last }
    }

    /// Continues after a possible failure, with changed names unknown.
    pub(crate) fn after_failure(&mut self, before: HashMap<&'a str, Value>, at: Context, span: Span) -> Flow {
        self.path.push(Condition::Undecided);
        let names: Vec<&'a str> = self.scope(at.scope).vars.keys().copied().collect();
        self.step(names.len() / 8, span);
        for name in names {
            let now = self.scope(at.scope).vars.get(name);
            if !now.zip(before.get(name)).is_some_and(|(a, b)| self.same(a, b)) {
                self.scope_mut(at.scope).vars.insert(name, Value::unknown(AFTER_FAILURE, span));
            }
        }
        Flow::Next
    }

    /// Joins constants that differ between the body of a `try` and its handlers.
    fn join_constants(&mut self, others: &[HashMap<&'a str, Value>], at: Context, span: Span) {
        let names = self.scope(at.scope).vars.clone();
        self.step(names.len() * others.len() / 8, span);
        for (name, value) in names {
            let differs = |o: &HashMap<&str, Value>| o.get(name).is_some_and(|v| !self.same(v, &value));
            if is_constant(&value) && others.iter().any(differs) {
                let all = others.iter().filter_map(|o| o.get(name).cloned());
                let all = std::iter::once(value).chain(all).collect();
                let either = self.either(all, span);
                self.scope_mut(at.scope).vars.insert(name, either);
            }
        }
    }

    /// Calls a method of a context manager of the project at the start or end of its block.
    pub(crate) fn call_context_manager(
        &mut self,
        value: &Value,
        methods: [&str; 2],
        span: Span,
    ) -> Option<Value> {
        let PyKind::Object(id) = value.kind else { return None };
        let class = self.object(id).class?;
        let function = methods.iter().find_map(|m| match self.class_lookup(class, m)?.0.kind {
            PyKind::Function(f) => Some(f),
            _ => None,
        })?;
        Some(self.call_body(function, Some(id), Vec::new(), Some(span), span))
    }
}
