//! Branches of a program, and which of them the branches of a term are.
//!
//! A branch is one of the ways through an `if`, `match`, loop or `try` in a pipeline or `fn`. A term may have
//! several copies of a branch, and none of a branch that nothing calls.

use crate::check::each_expression;
use crate::exits::blocks_of;
use core_ir::TermId;
use diagnostics::Span;
use std::collections::HashMap;
use syntax::agent::ast::{Block, Expr, ExprKind, Item, Pattern, PatternForm, Stmt, StmtKind};

/// Branch of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramBranch {
    /// Identity of the branch in its program.
    pub id: BranchId,
    /// The construct and its way, as messages name it: ``the `else` of this `if` ``.
    pub name: String,
    /// Name of the pipeline or `fn`.
    pub function: String,
    /// Place to show.
    pub at: Span,
}

/// Identity of a branch in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchId {
    /// The `if`, `match`, loop or `try`.
    pub span: Span,
    /// Index of the way through it.
    pub index: u32,
}

/// Branches of a term that are branches of the program: from the term that decides and the number of its
/// branch, as the machine counts them.
pub type TermBranches = HashMap<(TermId, u32), BranchId>;

/// The branches of the pipelines and `fn`s, in the order of the text.
pub(super) fn of(items: &[Item]) -> Vec<ProgramBranch> {
    let mut found = Branches::default();
    for item in items {
        if let Item::Pipeline(p) | Item::Function(p) = item {
            found.function = &p.name.text;
            found.block(&p.body);
        }
    }
    found.all.sort_by_key(|b| (b.at, b.id));
    found.all
}

#[derive(Default)]
struct Branches<'a> {
    function: &'a str,
    all: Vec<ProgramBranch>,
}

impl<'a> Branches<'a> {
    fn add(&mut self, span: Span, ways: impl IntoIterator<Item = (String, Span)>) {
        for (index, (name, at)) in (0..).zip(ways) {
            let id = BranchId { span, index };
            self.all.push(ProgramBranch { id, name, function: self.function.to_string(), at });
        }
    }

    /// The arms of a `match`, up to the one for all others.
    fn arms(&mut self, span: Span, patterns: impl Iterator<Item = &'a Pattern>) {
        let mut ways = Vec::new();
        for p in patterns {
            let variants: Vec<String> = p.variants.iter().map(|v| v.text.clone()).collect();
            let is_last = variants.is_empty();
            let name = match (p.form, is_last) {
                (PatternForm::Else, _) if p.is_left_out() => "no case of this `if let`".to_string(),
                (PatternForm::Else, _) => "the `else` of this `if let`".to_string(),
                (_, true) => "the case `_`".to_string(),
                (_, false) => format!("the case `{}`", variants.join(" | ")),
            };
            ways.push((name, p.span));
            if is_last {
                break;
            }
        }
        self.add(span, ways);
    }

    fn block(&mut self, block: &'a Block) {
        stacker::maybe_grow(64 << 10, 1 << 20, || block.stmts.iter().for_each(|s| self.stmt(s)));
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        let head = |end: u32| Span { end: end.max(stmt.span.start), ..stmt.span };
        match &stmt.kind {
            StmtKind::If(_, then, other) | StmtKind::IfLet(_, _, then, other) => {
                let holds = ("the condition of this `if` holds".into(), head(then.span.start));
                let fails = match other {
                    Some(other) => ("the `else` of this `if`".into(), other.span),
                    None => ("the condition of this `if` fails".into(), head(then.span.start)),
                };
                self.add(stmt.span, [holds, fails]);
            }
            StmtKind::While(_, _, body) => {
                self.add(stmt.span, [("a round of this `while`".into(), head(body.span.start))]);
            }
            StmtKind::For(_, _, body) | StmtKind::ParallelFor(_, _, _, body) => {
                self.add(stmt.span, [("a round of this `for`".into(), head(body.span.start))]);
            }
            StmtKind::Match(_, arms) => self.arms(stmt.span, arms.iter().map(|a| &a.pattern)),
            StmtKind::Try(_, catch, _) => {
                self.add(stmt.span, [("the `catch` of this `try`".into(), catch.name.span)]);
            }
            _ => {}
        }
        each_expression(stmt, &mut |e| self.expression(e));
        blocks_of(stmt).into_iter().for_each(|b| self.block(b));
    }

    fn expression(&mut self, e: &'a Expr) {
        match &e.kind {
            ExprKind::If(_, _, then, other) => {
                let ways = [("the first value of this `if`", then), ("the `else` of this `if`", other)];
                self.add(e.span, ways.map(|(name, value)| (name.to_string(), value.span)));
            }
            ExprKind::Match(_, arms) => self.arms(e.span, arms.iter().map(|a| &a.pattern)),
            _ => {}
        }
    }
}
