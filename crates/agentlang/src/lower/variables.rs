//! Source names and the variables that hold their values: bound, packed for what follows, and unpacked there.

use super::SurfaceLowering;
use super::taint::Taint;
use core_ir::{Data, Name, Term, TermId, Type};
use diagnostics::Span;
use std::collections::HashMap;
use std::sync::Arc;
use syntax::agent::ast::{self, Block, ClauseKind, Expr, Run, Stmt, StmtKind};

/// Lowered variable: the name that holds its value, and an upper bound on its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) name: Name,
    pub(super) taint: Taint,
    /// True if the name has another meaning outside the block that it is bound for.
    pub(super) shadows: bool,
    /// If it is a list, how many items it has at most, as far as that is known.
    pub(super) length: Option<u64>,
    /// The type that its value was checked against when it was bound.
    pub(super) declared: Option<Type>,
}

/// A name that is bound for a block only.
#[derive(Clone, Debug)]
pub(super) struct Binder {
    pub(super) source: String,
    pub(super) held: Held,
    /// Previous meaning of the name.
    pub(super) before: Option<Held>,
}

/// The source names in scope.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) names: HashMap<String, Held>,
    pub(super) journal: Vec<(String, Option<Held>)>,
}

impl Scope {
    pub(super) fn set(&mut self, source: &str, held: Option<Held>) {
        let old = match held {
            Some(n) => self.names.insert(source.to_string(), n),
            None => self.names.remove(source),
        };
        self.journal.push((source.to_string(), old));
    }

    pub(super) fn undo(&mut self, mark: usize) {
        while self.journal.len() > mark {
            let Some((source, old)) = self.journal.pop() else { return };
            match old {
                Some(n) => self.names.insert(source, n),
                None => self.names.remove(&source),
            };
        }
    }
}

/// Handling of a block's end and of early exits.
#[derive(Clone)]
pub(super) enum Mode {
    /// The body of a pipeline: `return` gives its value.
    Pipeline,
    /// The body of a test.
    Test,
    /// A block inside another: gives the values of these variables; as the tag `next` if the block may be
    /// left early, so that `return`, `break` and `continue` can be told from it. `around` and `binders` are
    /// the variables of the loop around it and the number of binders outside of that.
    Block { outs: Arc<[String]>, tagged: bool, around: Arc<[String]>, binders: usize },
    /// The body of a loop over these variables, which gives `done` of them in the end; tagged if it may
    /// `return`.
    Loop { again: Name, vars: Arc<[String]>, done: Arc<[String]>, tagged: bool, binders: usize },
}

/// Returns the last read of each variable in a block.
pub(super) fn last_reads(block: &Block) -> HashMap<String, u32> {
    let mut out: HashMap<String, u32> = HashMap::new();
    let mut read = |name: &str, at: Span| match out.get_mut(name) {
        Some(last) => *last = at.start.max(*last),
        None => {
            out.insert(name.to_string(), at.start);
        }
    };
    let mut work = vec![block];
    while let Some(block) = work.pop() {
        for stmt in &block.stmts {
            for e in expressions_of(stmt) {
                e.each_variable(&mut read);
            }
            let runs: &[Run] = match &stmt.kind {
                StmtKind::Run(run) => std::slice::from_ref(run),
                StmtKind::Parallel { runs, .. } => runs,
                StmtKind::Guard(name, ..) => {
                    read(&name.text, name.span);
                    &[]
                }
                _ => &[],
            };
            for e in runs.iter().flat_map(crate::check::arguments_of) {
                e.each_variable(&mut read);
            }
            work.extend(crate::exits::blocks_of(stmt));
        }
    }
    out
}

/// The expressions that are directly in a statement.
pub(super) fn expressions_of(stmt: &Stmt) -> Vec<&Expr> {
    match &stmt.kind {
        StmtKind::Run(run) => clause_expressions(run).collect(),
        StmtKind::Parallel { runs, .. } => runs.iter().flat_map(clause_expressions).collect(),
        StmtKind::Let(_, _, e)
        | StmtKind::If(e, ..)
        | StmtKind::IfLet(_, e, ..)
        | StmtKind::While(e, ..)
        | StmtKind::For(_, e, _)
        | StmtKind::ParallelFor(_, e, ..)
        | StmtKind::Match(e, _)
        | StmtKind::Guard(_, e, _)
        | StmtKind::Return(e) => vec![e],
        StmtKind::Assert(e, message) => {
            std::iter::once(e).chain(message.iter().flat_map(ast::Template::holes)).collect()
        }
        StmtKind::Try(..)
        | StmtKind::Ensure(..)
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Error(_) => Vec::new(),
    }
}

pub(super) fn clause_expressions(run: &Run) -> impl Iterator<Item = &Expr> {
    run.clauses.iter().filter_map(|c| match &c.kind {
        ClauseKind::Use(e) => Some(e),
        _ => None,
    })
}

impl SurfaceLowering<'_> {
    /// Binds a source name; its label is at most `taint` and the program counter's. The variable has that
    /// name, unless what the name means outside of the block must stay reachable.
    pub(super) fn bind(&mut self, source: &str, taint: Taint) -> Name {
        let shadows = self.scope.names.get(source).is_some_and(|h| h.shadows);
        let name = if shadows { self.b.fresh(source) } else { Name::from(source) };
        let held =
            Held { name: name.clone(), taint: taint.join(self.pc), shadows, length: None, declared: None };
        self.scope.set(source, Some(held));
        name
    }

    /// Binds a name for a block, to a variable that [`SurfaceLowering::inner_name`] has given.
    pub(super) fn enter(&mut self, source: &str, name: Name) {
        let before = self.scope.names.get(source).cloned();
        let held = Held { name, taint: self.pc, shadows: before.is_some(), length: None, declared: None };
        self.scope.set(source, Some(held.clone()));
        self.binders.push(Binder { source: source.to_string(), held, before });
    }

    /// A name leaves its scope: it means what it did before, or nothing unless it was bound anew.
    pub(super) fn leave(&mut self, binder: &Binder) {
        if binder.before.is_some() || self.scope.names.get(&binder.source) == Some(&binder.held) {
            self.scope.set(&binder.source, binder.before.clone());
        }
    }

    /// A variable for a name that is bound inside a block only: another one if the name means something
    /// outside, which must stay reachable.
    pub(super) fn inner_name(&mut self, source: &str) -> Name {
        if self.scope.names.contains_key(source) { self.b.fresh(source) } else { source.into() }
    }

    pub(super) fn variable(&mut self, source: &str, at: Span) -> TermId {
        let name = match self.scope.names.get(source) {
            Some(held) => held.name.clone(),
            None => self.constant(source).unwrap_or_else(|| source.into()),
        };
        self.b.var(name, at)
    }

    /// The variable of a constant, which is defined outside of all functions, before those that use it.
    fn constant(&mut self, source: &str) -> Option<Name> {
        let decls = self.c.decls;
        let decl = decls.constants.get(source)?;
        if let Some(name) = self.constants.get(source) {
            return Some(name.clone());
        }
        let names = std::mem::take(&mut self.scope.names);
        let binders = std::mem::take(&mut self.binders);
        let pc = std::mem::replace(&mut self.pc, Taint::NONE);
        let value = stacker::maybe_grow(128 << 10, 1 << 20, || self.expr(&decl.value));
        let value = self.sure(value, decl.value.span, &format!("the constant `{source}`"));
        (self.scope.names, self.binders, self.pc) = (names, binders, pc);
        let name = self.b.fresh(source);
        self.constants.insert(source.to_string(), name.clone());
        self.definitions.push((name.clone(), value));
        Some(name)
    }

    /// The values of variables as one value: the value itself if it is one, otherwise a record.
    pub(super) fn pack(&mut self, vars: &[String], at: Span) -> TermId {
        match vars {
            [] => self.b.lit(Data::Null, at),
            [one] => self.variable(one, at),
            all => {
                let fields = all.iter().map(|v| (Name::from(v.as_str()), self.variable(v, at))).collect();
                self.b.add(Term::Record(fields), at)
            }
        }
    }

    /// The same where a loop is left or its next round begun: the names bound for blocks inside it stay
    /// behind.
    pub(super) fn pack_outside(&mut self, vars: &[String], binders: usize, at: Span) -> TermId {
        let mark = self.scope.journal.len();
        for i in (binders..self.binders.len()).rev() {
            let binder = self.binders[i].clone();
            self.leave(&binder);
        }
        let value = self.pack(vars, at);
        self.scope.undo(mark);
        value
    }

    pub(super) fn state(&mut self, vars: &[String], tagged: bool, at: Span) -> TermId {
        let value = self.pack(vars, at);
        self.wrap(value, tagged, at)
    }

    pub(super) fn wrap(&mut self, value: TermId, tagged: bool, at: Span) -> TermId {
        if tagged { self.b.add(Term::Tag("next".into(), Some(value)), at) } else { value }
    }

    /// Binds the variables again to what [`SurfaceLowering::pack`] made of them. Each may be as it was
    /// before, and so have the label that it had.
    pub(super) fn unpack(
        &mut self,
        vars: &[String],
        taint: Taint,
        value: TermId,
        at: Span,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let before =
            |lower: &Self, v: &String| lower.scope.names.get(v).map_or(taint, |held| taint.join(held.taint));
        match vars {
            [] => bindings.push(("_".into(), value)),
            [one] => {
                let taint = before(self, one);
                bindings.push((self.bind(one, taint), value));
            }
            all => {
                let held = self.b.fresh("all");
                bindings.push((held.clone(), value));
                for v in all {
                    let of = self.b.var(held.clone(), at);
                    let field = self.b.add(Term::Field(of, v.as_str().into()), at);
                    let taint = before(self, v);
                    bindings.push((self.bind(v, taint), field));
                }
            }
        }
    }

    pub(super) fn fall(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Pipeline => {
                // The checker has seen that every path returns; only a loop without end leads here.
                let message = self.b.lit("the end of the pipeline was reached without a result", at);
                self.b.add(Term::Fail(message), at)
            }
            Mode::Test if self.snapshots.is_empty() => self.b.lit(Data::Null, at),
            Mode::Test => {
                let all = self.snapshots.clone();
                let fields = all.into_iter().map(|(name, v)| (name, self.variable(v, at))).collect();
                self.b.add(Term::Record(fields), at)
            }
            Mode::Block { outs, tagged, .. } => self.state(outs, *tagged, at),
            Mode::Loop { .. } => self.exit_continue(mode, at),
        }
    }

    pub(super) fn exit_return(&mut self, value: TermId, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Pipeline | Mode::Test => value,
            Mode::Block { .. } | Mode::Loop { .. } => self.b.add(Term::Tag("return".into(), Some(value)), at),
        }
    }

    pub(super) fn exit_break(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Loop { done, tagged, binders, .. } => {
                let value = self.pack_outside(done, *binders, at);
                self.wrap(value, *tagged, at)
            }
            Mode::Block { around, binders, .. } => {
                let value = self.pack_outside(around, *binders, at);
                self.b.add(Term::Tag("break".into(), Some(value)), at)
            }
            // The checker has refused a `break` outside of a loop.
            Mode::Pipeline | Mode::Test => self.b.add(Term::Unknown("break".into()), at),
        }
    }

    pub(super) fn exit_continue(&mut self, mode: &Mode, at: Span) -> TermId {
        match mode {
            Mode::Loop { again, vars, tagged, binders, .. } => {
                let next = self.pack_outside(vars, *binders, at);
                let next = self.wrap(next, *tagged, at);
                let again = self.b.var(again.clone(), at);
                self.b.app(again, next, at)
            }
            Mode::Block { around, binders, .. } => {
                let value = self.pack_outside(around, *binders, at);
                self.b.add(Term::Tag("continue".into(), Some(value)), at)
            }
            Mode::Pipeline | Mode::Test => self.b.add(Term::Unknown("continue".into()), at),
        }
    }
}
