//! Tests of messages, as functions of Python: which texts they look for.
//!
//! Entry points: [`texts`] for a test that ends a group chat, [`condition`] for one of an edge.

use super::model::Place;
use python::Function;
use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_expr, walk_stmt};
use ruff_python_ast::{BoolOp, CmpOp, Expr, ExprBoolOp, ExprCall, ExprCompare, Stmt, UnaryOp};

/// A text and where in a message it is looked for.
type Text = (String, Place);

/// Returns the texts that a test of messages looks for, if it is one of the usual tests; none if it is always
/// false.
pub(super) fn texts(function: &Function<'_>) -> Option<Vec<Text>> {
    if matches!(value(function), Some(Expr::BooleanLiteral(b)) if !b.value) {
        return Some(Vec::new());
    }
    let mut test = MessageTest::default();
    match function.lambda() {
        Some(expr) => test.visit_expr(expr),
        None => function.body().iter().for_each(|s| test.visit_stmt(s)),
    }
    (!test.is_other && !test.found.is_empty()).then_some(test.found)
}

/// A test of a message by one text.
pub(super) enum OneText {
    /// The message has the text.
    Contains(String),
    /// The message lacks the text.
    Lacks(String),
}

/// Returns the text by which a function tests a message, if it does nothing else.
pub(super) fn condition(function: &Function<'_>) -> Option<OneText> {
    let expr = value(function)?;
    if let Expr::Compare(compare) = expr
        && let ([CmpOp::NotIn], Expr::StringLiteral(text)) = (&compare.ops[..], &*compare.left)
    {
        return Some(OneText::Lacks(text.value.to_str().to_string()));
    }
    if matches!(expr, Expr::BoolOp(_) | Expr::UnaryOp(_)) {
        return None;
    }
    match &texts(function)?[..] {
        [(text, Place::Anywhere)] => Some(OneText::Contains(text.clone())),
        _ => None,
    }
}

/// The value of a lambda, or of a function that only returns one.
fn value<'a>(function: &Function<'a>) -> Option<&'a Expr> {
    if let Some(expr) = function.lambda() {
        return Some(expr);
    }
    let body = function.body();
    let documented = matches!(body.first(), Some(Stmt::Expr(s)) if s.value.is_string_literal_expr());
    match &body[usize::from(documented)..] {
        [Stmt::Return(s)] => s.value.as_deref(),
        _ => None,
    }
}

#[derive(Default)]
struct MessageTest {
    found: Vec<Text>,
    /// True if it depends on texts in another way.
    is_other: bool,
}

impl MessageTest {
    /// The number of texts that an expression adds.
    fn within(&mut self, expr: &Expr) -> usize {
        let before = self.found.len();
        self.visit_expr(expr);
        self.found.len() - before
    }

    fn compare(&mut self, compare: &ExprCompare) {
        let ([op], [right]) = (&compare.ops[..], &compare.comparators[..]) else {
            return walk_compare(self, compare);
        };
        let text = |e: &Expr| e.as_string_literal_expr().map(|t| t.value.to_str().to_string());
        match (text(&compare.left), op, text(right)) {
            // Whether a message has a content.
            (Some(key), CmpOp::In, _) if key == "content" => {}
            (Some(text), CmpOp::In, _) => self.found.push((text, Place::Anywhere)),
            (Some(text), CmpOp::Eq, None) | (None, CmpOp::Eq, Some(text)) => {
                self.found.push((text, Place::All));
            }
            // That there is any text says nothing of it.
            (None, CmpOp::NotEq, Some(text)) if text.is_empty() => {}
            (Some(_), CmpOp::NotIn | CmpOp::NotEq, _) | (None, CmpOp::NotEq, Some(_)) => self.is_other = true,
            _ => walk_compare(self, compare),
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let method = call.func.as_attribute_expr().map(|a| a.attr.as_str());
        let place = match method {
            Some("endswith") => Some(Place::End),
            Some("find") => Some(Place::Anywhere),
            _ => None,
        };
        match (place, &call.arguments.args[..]) {
            (Some(place), [Expr::StringLiteral(text)]) => {
                self.found.push((text.value.to_str().to_string(), place));
            }
            (Some(place), [Expr::Tuple(texts)]) => {
                for text in texts.elts.iter().filter_map(|t| t.as_string_literal_expr()) {
                    self.found.push((text.value.to_str().to_string(), place));
                }
            }
            _ => walk_call(self, call),
        }
    }

    fn all_of(&mut self, and: &ExprBoolOp) {
        let tests = and.values.iter().filter(|v| self.within(v) > 0).count();
        // Two texts that have to be there both.
        self.is_other |= tests > 1;
    }
}

fn walk_compare(test: &mut MessageTest, compare: &ExprCompare) {
    test.visit_expr(&compare.left);
    compare.comparators.iter().for_each(|c| test.visit_expr(c));
}

fn walk_call(test: &mut MessageTest, call: &ExprCall) {
    test.visit_expr(&call.func);
    test.visit_arguments(&call.arguments);
}

impl<'a> SourceOrderVisitor<'a> for MessageTest {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || walk_stmt(self, statement));
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || match expr {
            Expr::Compare(compare) => self.compare(compare),
            Expr::Call(call) => self.call(call),
            Expr::BoolOp(all) if all.op == BoolOp::And => self.all_of(all),
            Expr::UnaryOp(not) if not.op == UnaryOp::Not => {
                self.is_other |= self.within(&not.operand) > 0;
            }
            _ => walk_expr(self, expr),
        });
    }
}
