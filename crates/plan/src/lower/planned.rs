//! Planned calls: the arguments of a call are made before the branch, loop or `try` that decides whether it
//! happens.
//!
//! Under an untrusted condition every value is read as untrusted, so a record of arguments that is made there
//! is refused. `args[f]{…}` keeps the labels of the place where it is made. It is made at the innermost
//! statement around the call that no data decides, and only if every argument has a value there: literals,
//! variables that nothing rebinds in between, and total operations on them. Nothing that may fail, and no
//! call, is moved.
//!
//! Source: `docs/language/plans.md`, `docs/calculus.md` (`args[f]{…}`).

use super::{Catching, Lower};
use crate::names;
use crate::scope::Taint;
use core_ir::{Data, Name, Prim, Term, TermId, ToolDecl, ToolId};
use diagnostics::Span;
use ruff_python_ast::Stmt;
use ruff_text_size::{Ranged, TextSize};
use std::collections::BTreeSet;
use std::rc::Rc;

/// Terms of one argument that is moved, at most.
const MAX_MOVED: usize = 1_000;
/// Nesting of one argument that is moved, at most.
const MAX_DEPTH: usize = 50;

/// A statement before which arguments can be made, with what follows it in its block.
pub(crate) struct Place<'a> {
    stmts: &'a [Stmt],
    /// Frames that there are at the statement: those of functions expanded inside of it are later ones.
    frames: usize,
    pc: Taint,
    pub(crate) made: Vec<(Name, TermId)>,
    /// Variables that the first so many statements bind, kept for the calls of one statement.
    rebound: (usize, Rc<BTreeSet<String>>),
}

/// A term that is copied to another place.
struct Move {
    place: usize,
    /// Variables that are bound again between the place and the call.
    rebound: Rc<BTreeSet<String>>,
    left: usize,
}

impl<'a> Lower<'a> {
    /// Lowers statements behind the arguments of planned calls that are made before them.
    pub(crate) fn with_place(
        &mut self,
        stmts: &'a [Stmt],
        at: Span,
        lower: impl FnOnce(&mut Self) -> TermId,
    ) -> TermId {
        let (frames, pc) = (self.frames.len(), self.pc);
        self.places.push(Place { stmts, frames, pc, made: Vec::new(), rebound: Default::default() });
        let term = lower(self);
        let made = self.places.pop().map_or_else(Vec::new, |p| p.made);
        self.b.let_in(made, term, at)
    }

    /// Makes the arguments of a call where nothing untrusted or secret decides, if they all have their value
    /// there. Returns the arguments as they are read at the call.
    pub(crate) fn planned(
        &mut self,
        tool: ToolId,
        decl: &ToolDecl,
        fields: &[(Name, TermId)],
        at: Span,
    ) -> Option<TermId> {
        if self.pc == Taint::NONE && self.catching == Catching::No {
            return None;
        }
        let place = self.places.iter().rposition(|p| p.pc == Taint::NONE)?;
        let end = TextSize::from(at.end);
        let around = &mut self.places[place];
        let between = around.stmts.iter().take_while(|s| s.range().start() < end).count();
        // Many calls in one statement walk through it once.
        if around.rebound.0 != between {
            around.rebound = (between, names::assigned(&around.stmts[..between]).into());
        }
        let mut to = Move { place, rebound: around.rebound.1.clone(), left: MAX_MOVED };
        let mut parts = Vec::new();
        for p in &decl.params {
            let part = match fields.iter().find(|(n, _)| *n == p.name) {
                Some((_, term)) => self.moved(*term, &mut to, 0)?,
                None => self.lit(Data::Null, at),
            };
            parts.push((p.name.clone(), part));
        }
        self.terms += 1;
        let args = self.b.args(tool, parts, at);
        let name = self.fresh("args");
        self.places[place].made.push((name.clone(), args));
        Some(self.var(&name, at))
    }

    /// A copy of a pure and total term for another place; `None` if it may have another value there.
    fn moved(&mut self, term: TermId, to: &mut Move, depth: usize) -> Option<TermId> {
        to.left = to.left.checked_sub(1)?;
        let depth = depth + 1;
        if depth > MAX_DEPTH {
            return None;
        }
        let at = self.b.span(term);
        let copy = match self.b.term(term).clone() {
            Term::Lit(data) => Term::Lit(data),
            Term::Var(name, _) => {
                if self.stands(&name, to) {
                    return Some(self.var(&name, at));
                }
                let same = self.bound_once.get(&name).copied()?;
                return self.moved(same, to, depth);
            }
            Term::Record(fields) => {
                let fields: Option<Vec<_>> =
                    fields.into_iter().map(|(n, t)| Some((n, self.moved(t, to, depth)?))).collect();
                Term::Record(fields?)
            }
            Term::List(items) => Term::List(self.all_moved(items, to, depth)?),
            Term::Tag(tag, value) => Term::Tag(
                tag,
                match value {
                    Some(v) => Some(self.moved(v, to, depth)?),
                    None => None,
                },
            ),
            // What may raise is inside of a `case`, which is not moved.
            Term::Prim(prim @ (Prim::Py | Prim::Format), items) => {
                Term::Prim(prim, self.all_moved(items, to, depth)?)
            }
            _ => return None,
        };
        Some(self.add(copy, at))
    }

    fn all_moved(&mut self, items: Vec<TermId>, to: &mut Move, depth: usize) -> Option<Vec<TermId>> {
        items.into_iter().map(|t| self.moved(t, to, depth)).collect()
    }

    /// Returns true for a variable that has the same value at the place as now.
    fn stands(&self, core: &Name, to: &Move) -> bool {
        let frames = self.places[to.place].frames;
        let mut all = self.frames.iter().take(frames).flat_map(|f| &f.vars);
        all.any(|(name, known)| {
            known.core == *core
                && known.function.is_none()
                && !known.maybe_unbound
                && !to.rebound.contains(name)
        })
    }

    /// Notes the value of a name that nothing binds to another one.
    pub(crate) fn note_once(&mut self, name: &Name, term: TermId) {
        self.bound_once.insert(name.clone(), term);
    }
}
