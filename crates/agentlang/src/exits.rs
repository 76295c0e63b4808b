//! Exits of blocks: reaching the end, `return`, `break` and `continue`.

use diagnostics::Span;
use std::collections::HashMap;
use syntax::agent::ast::{Block, ExprKind, Item, Program, Stmt, StmtKind};

/// The ways in which a statement or block may end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exits {
    /// True if the next statement is reachable.
    pub(super) falls: bool,
    pub(super) returns: bool,
    pub(super) breaks: bool,
    pub(super) continues: bool,
}

impl Exits {
    const FALLS: Exits = Exits { falls: true, returns: false, breaks: false, continues: false };

    fn or(self, other: Exits) -> Exits {
        Exits {
            falls: self.falls || other.falls,
            returns: self.returns || other.returns,
            breaks: self.breaks || other.breaks,
            continues: self.continues || other.continues,
        }
    }

    /// Returns true if it may end early, without reaching its end.
    pub(super) fn early(self) -> bool {
        self.returns || self.breaks || self.continues
    }
}

/// The exits of every block of a program, by the block's span.
#[derive(Debug, Default)]
pub(super) struct ExitTable(HashMap<Span, Exits>);

impl ExitTable {
    pub(super) fn of(program: &Program) -> ExitTable {
        let mut table = ExitTable::default();
        for item in &program.items {
            match item {
                Item::Pipeline(p) | Item::Function(p) => {
                    table.add(&p.body);
                }
                Item::Test(t) => {
                    table.add(&t.body);
                }
                _ => {}
            }
        }
        table
    }

    /// The exits of a block of the program.
    pub(super) fn block(&self, block: &Block) -> Exits {
        // Every block of the program has been added; another one can only fall through.
        self.0.get(&block.span).copied().unwrap_or(Exits::FALLS)
    }

    fn optional(&self, block: Option<&Block>) -> Exits {
        block.map_or(Exits::FALLS, |b| self.block(b))
    }

    /// The exits of a statement of the program.
    pub(super) fn stmt(&self, stmt: &Stmt) -> Exits {
        let none = Exits::default();
        match &stmt.kind {
            StmtKind::Return(_) => Exits { returns: true, ..none },
            StmtKind::Break => Exits { breaks: true, ..none },
            StmtKind::Continue => Exits { continues: true, ..none },
            StmtKind::If(_, a, b) | StmtKind::IfLet(_, _, a, b) => {
                self.block(a).or(self.optional(b.as_ref()))
            }
            StmtKind::Try(a, _, b) => self.block(a).or(self.block(b)),
            StmtKind::Ensure(a, _) => self.block(a),
            StmtKind::Match(_, arms) if !arms.is_empty() => {
                arms.iter().fold(none, |e, arm| e.or(self.block(&arm.body)))
            }
            StmtKind::While(condition, max, body) => {
                let inside = self.block(body);
                let forever =
                    matches!(condition.kind, ExprKind::Bool(true)) && max.is_none() && !inside.breaks;
                Exits { falls: !forever, returns: inside.returns, ..none }
            }
            StmtKind::For(_, _, body) => Exits { falls: true, returns: self.block(body).returns, ..none },
            _ => Exits::FALLS,
        }
    }

    fn add(&mut self, block: &Block) -> Exits {
        let exits = stacker::maybe_grow(64 << 10, 1 << 20, || {
            let mut exits = Exits::FALLS;
            for stmt in &block.stmts {
                for inner in blocks_of(stmt) {
                    self.add(inner);
                }
                // What can't be reached has no say.
                if exits.falls {
                    let next = self.stmt(stmt);
                    exits = Exits { falls: false, ..exits }.or(next);
                }
            }
            exits
        });
        self.0.insert(block.span, exits);
        exits
    }
}

/// The blocks directly inside a statement.
pub(super) fn blocks_of(stmt: &Stmt) -> Vec<&Block> {
    match &stmt.kind {
        StmtKind::If(_, a, b) | StmtKind::IfLet(_, _, a, b) => {
            [Some(a), b.as_ref()].into_iter().flatten().collect()
        }
        StmtKind::Try(a, _, b) | StmtKind::Ensure(a, b) => vec![a, b],
        StmtKind::Match(_, arms) => arms.iter().map(|a| &a.body).collect(),
        StmtKind::While(_, _, b) | StmtKind::For(_, _, b) | StmtKind::ParallelFor(_, _, _, b) => vec![b],
        _ => Vec::new(),
    }
}
