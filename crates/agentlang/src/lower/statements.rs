//! Statements: blocks, loops, what follows and how a block is left.

use super::expr::prim_of;
use super::taint::Taint;
use super::variables::Mode;
use super::{MAX_COPIES, Region, Rest, SurfaceLowering, on_one_line};
use crate::check::number;
use crate::library;
use crate::predicate;
use crate::types::most_items;
use core_ir::{Bound, BoundOrigin, Branch, Catches, Data, IfSugar, Name, Num, Prim, Term, TermId, Type};
use diagnostics::Span;
use std::sync::Arc;
use syntax::agent::ast::{self, Args, Block, Expr, ExprKind, PatternForm, Run, Stmt, StmtKind, TemplatePart};

/// Header of a loop.
pub(super) struct Over {
    /// The variables that a round hands to the next.
    pub(super) vars: Arc<[String]>,
    /// Those of them that the loop gives in the end.
    pub(super) done: Arc<[String]>,
    /// Those of them that are wanted.
    pub(super) outs: Arc<[String]>,
    pub(super) bound: Bound,
    /// Origin of the bound, if it isn't written.
    pub(super) origin: Option<BoundOrigin>,
}

/// Arms of a `match` that the branches of its term belong to.
#[derive(Default)]
pub(super) struct ArmBranches(pub(super) Vec<(u32, u32)>, u32);

impl ArmBranches {
    /// Notes the next arm, after which there are this many branches, and whether there is a default.
    pub(super) fn arm(&mut self, branches: usize, has_default: bool) {
        // The default is behind the last branch.
        let end = branches as u32 + u32::from(has_default);
        self.0.extend((self.0.len() as u32..end).map(|n| (n, self.1)));
        self.1 += 1;
    }
}

/// The hidden variable of a `for`; no source name begins with `$`.
pub(super) const INDEX: &str = "$index";

/// The guard that repeats a call: a guard of its result directly after it.
fn guard_of<'s>(run: &Run, next: &'s Stmt) -> Option<(&'s Expr, u32, Span)> {
    match &next.kind {
        StmtKind::Guard(name, e, retry) if name.text == run.name.text => {
            let retry = retry.as_ref().map_or(0, |n| n.text.parse().unwrap_or(0));
            Some((e, retry, next.span))
        }
        _ => None,
    }
}

/// The variables of bindings.
pub(super) fn names_of(bindings: &[(Name, TermId)]) -> impl Iterator<Item = Name> {
    bindings.iter().map(|(name, _)| name.clone())
}

fn least(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    [a, b].into_iter().flatten().min()
}

impl SurfaceLowering<'_> {
    pub(super) fn block(&mut self, block: &Block, mode: &Mode) -> TermId {
        let mark = self.scope.journal.len();
        let end = Span { start: block.span.end.saturating_sub(1), ..block.span };
        let term = self.region(&Rest { stmts: &block.stmts, leave: 0, next: None, end }, mode);
        self.scope.undo(mark);
        term
    }

    /// Statements with the functions that what follows some of them becomes.
    pub(super) fn region(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        self.regions.push(Region {
            journal: self.scope.journal.len(),
            binders: self.binders.len(),
            nested: 0,
            functions: Vec::new(),
        });
        let term = self.seq(rest, mode);
        let functions = self.regions.pop().map_or(Vec::new(), |r| r.functions);
        self.b.let_in(functions, term, rest.end)
    }

    /// Lowers the continuation of a nested branch: in place or, beyond a depth, as a call of a function of
    /// the region's variables.
    pub(super) fn deeper(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let Some(region) = self.regions.last_mut() else { return self.seq(rest, mode) };
        if region.nested < MAX_COPIES {
            region.nested += 1;
            let term = self.seq(rest, mode);
            if let Some(region) = self.regions.last_mut() {
                region.nested -= 1;
            }
            return term;
        }
        let at = rest.stmts.first().map_or(rest.end, |s| s.span);
        let variables = self.variables_of_region(at.start, mode);
        let function = self.b.fresh("rest");
        let state = self.b.fresh("state");
        let mut bindings = Vec::new();
        for v in &variables {
            let of = self.b.var(state.clone(), at);
            bindings.push((v.clone(), self.b.add(Term::Field(of, v.clone()), at)));
        }
        let nested = self.regions.last_mut().map(|r| std::mem::take(&mut r.nested));
        let body = self.seq(rest, mode);
        let body = self.b.let_in(bindings, body, at);
        let body = self.b.abs(state, None, body, at);
        if let Some(region) = self.regions.last_mut() {
            region.nested = nested.unwrap_or_default();
            region.functions.push((function.clone(), body));
        }
        let fields = variables.into_iter().map(|v| (v.clone(), self.b.var(v, at))).collect();
        let state = self.b.add(Term::Record(fields), at);
        let function = self.b.var(function, at);
        self.b.app(function, state, at)
    }

    /// The variables that the region has bound and that may be read from a place on, or packed as `mode`
    /// says.
    pub(super) fn variables_of_region(&self, from: u32, mode: &Mode) -> Vec<Name> {
        let Some(region) = self.regions.last() else { return Vec::new() };
        let packed: [&[String]; 2] = match mode {
            Mode::Pipeline | Mode::Test => [&[], &[]],
            Mode::Block { outs, around, .. } => [outs, around],
            Mode::Loop { vars, done, .. } => [vars, done],
        };
        let wanted = |source: &String| {
            self.last_reads.get(source).is_some_and(|at| *at >= from)
                || packed.iter().any(|vars| vars.contains(source))
        };
        let changed = self.scope.journal.get(region.journal..).unwrap_or_default().iter().map(|(n, _)| n);
        let mut out: Vec<Name> = changed
            .filter(|n| wanted(n))
            .filter_map(|n| Some(self.scope.names.get(n)?.name.clone()))
            .chain(self.binders.get(region.binders..).unwrap_or_default().iter().filter_map(|b| {
                // What was bound before the region is in scope in its functions anyway.
                b.before.as_ref().map(|h| h.name.clone())
            }))
            .collect();
        out.sort();
        out.dedup();
        out
    }

    pub(super) fn seq(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        stacker::maybe_grow(128 << 10, 1 << 20, || self.seq_inner(rest, mode))
    }

    pub(super) fn seq_inner(&mut self, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        let mut slice = rest;
        let pc = self.pc;
        let (body, at) = 'all: loop {
            for (i, stmt) in slice.stmts.iter().enumerate() {
                match &stmt.kind {
                    StmtKind::Return(e) => {
                        let value = self.expr(e);
                        let value = self.sure(value, e.span, "the result of a `fn`");
                        break 'all (self.exit_return(value, mode, stmt.span), stmt.span);
                    }
                    StmtKind::Break => break 'all (self.exit_break(mode, stmt.span), stmt.span),
                    StmtKind::Continue => break 'all (self.exit_continue(mode, stmt.span), stmt.span),
                    StmtKind::Run(run) => {
                        let guard = slice.stmts.get(i + 1).and_then(|next| guard_of(run, next));
                        let (value, taint) = self.run(run, guard);
                        let length = match &run.args {
                            Args::Positional(args) if self.c.decls.callable(&run.target.text).is_none() => {
                                self.length_of_call(&run.target.text, args)
                            }
                            // The other calls have results of any length.
                            _ => None,
                        };
                        bindings.push((self.bind(&run.name.text, taint), value));
                        self.know_length(&run.name.text, length);
                        let c = self.c;
                        let given = c.decls.callable(&run.target.text).map(|s| &s.result);
                        self.know_type(&run.name.text, c.facts.checked.get(&run.name.span).or(given));
                    }
                    StmtKind::Let(name, _, e) => {
                        let value = self.expr(e);
                        let value = self.declared(name, value);
                        let taint = self.taint_of_value(e);
                        let length = self.length(e);
                        bindings.push((self.bind(&name.text, taint), value));
                        self.know_length(&name.text, length);
                        let c = self.c;
                        self.know_type(&name.text, c.facts.checked.get(&name.span));
                    }
                    StmtKind::Parallel { max_concurrency, runs } => {
                        self.parallel(max_concurrency.as_ref(), runs, stmt.span, &mut bindings);
                    }
                    StmtKind::Assert(e, message) => {
                        let term = self.assertion(e, message.as_ref(), stmt.span);
                        bindings.push(("_".into(), term));
                    }
                    StmtKind::Guard(name, e, _) => {
                        // With the call just before it, it has been lowered together.
                        if i > 0
                            && matches!(&slice.stmts[i - 1].kind, StmtKind::Run(r) if guard_of(r, stmt).is_some())
                        {
                            continue;
                        }
                        let value = self.variable(&name.text, name.span);
                        let term = self.guarded(value, &name.text, e, 0, stmt.span);
                        let taint = self.scope.names.get(&name.text).map_or(Taint::NONE, |h| h.taint);
                        bindings.push((self.bind(&name.text, taint), term));
                    }
                    StmtKind::ParallelFor(name, list, max, body) => {
                        self.parallel_for(stmt, name, list, max.as_ref(), body, &mut bindings);
                    }
                    // Not in a program that was accepted.
                    StmtKind::Error(_) => {
                        let term = self.b.add(Term::Unknown("statement".into()), stmt.span);
                        bindings.push(("_".into(), term));
                    }
                    StmtKind::If(..)
                    | StmtKind::IfLet(..)
                    | StmtKind::Match(..)
                    | StmtKind::Try(..)
                    | StmtKind::Ensure(..)
                    | StmtKind::For(..)
                    | StmtKind::While(..) => {
                        let exits = self.c.exits.stmt(stmt);
                        if !exits.early() && exits.falls {
                            let outs = self.outs(stmt);
                            let inner = Mode::Block {
                                outs: outs.clone(),
                                tagged: false,
                                around: [].into(),
                                binders: 0,
                            };
                            let value = self.compound(stmt, &inner, None);
                            let taint = self.taint_of_stmt(stmt);
                            self.unpack(&outs, taint, value, stmt.span, &mut bindings);
                            continue;
                        }
                        let rest = Rest {
                            stmts: &slice.stmts[i + 1..],
                            leave: slice.leave,
                            next: slice.next,
                            end: slice.end,
                        };
                        break 'all (self.split(stmt, &rest, mode), stmt.span);
                    }
                }
            }
            for _ in 0..slice.leave {
                if let Some(binder) = self.binders.pop() {
                    self.leave(&binder);
                }
            }
            match slice.next {
                Some(next) => slice = next,
                None => break (self.fall(mode, slice.end), slice.end),
            }
        };
        self.pc = pc;
        self.b.let_in(bindings, body, at)
    }

    /// A statement that may leave the block early, with what follows it.
    pub(super) fn split(&mut self, stmt: &Stmt, rest: &Rest<'_>, mode: &Mode) -> TermId {
        let at = stmt.span;
        let ways: Option<Vec<Option<&Block>>> = match &stmt.kind {
            StmtKind::If(_, a, b) | StmtKind::IfLet(_, _, a, b) => Some(vec![Some(a), b.as_ref()]),
            StmtKind::Match(_, arms) => Some(arms.iter().map(|a| Some(&a.body)).collect()),
            // What follows may be moved neither into a `try`, which would catch its errors, nor into a loop.
            _ => None,
        };
        let falling =
            ways.map(|w| w.iter().filter(|b| b.is_none_or(|b| self.c.exits.block(b).falls)).count());
        if falling.is_some_and(|n| n <= 1) {
            return self.compound(stmt, mode, Some(rest));
        }
        let exits = self.c.exits.stmt(stmt);
        let outs = self.outs(stmt);
        let (around, binders) = match mode {
            Mode::Loop { vars, binders, .. } => (vars.clone(), *binders),
            Mode::Block { around, binders, .. } => (around.clone(), *binders),
            Mode::Pipeline | Mode::Test => ([].into(), 0),
        };
        let inner = Mode::Block { outs: outs.clone(), tagged: true, around: around.clone(), binders };
        let value = self.compound(stmt, &inner, None);
        let taint = self.taint_of_stmt(stmt);
        let pc = self.pc;
        self.pc = pc.join(taint);
        let mut branches = Vec::new();
        if exits.falls {
            let held = self.b.fresh("next");
            let mut bindings = Vec::new();
            let value = self.b.var(held.clone(), at);
            let mark = self.scope.journal.len();
            self.unpack(&outs, taint, value, at, &mut bindings);
            let binders = self.binders.clone();
            let body = self.deeper(rest, mode);
            self.binders = binders;
            self.scope.undo(mark);
            let body = self.b.let_in(bindings, body, at);
            branches.push(Branch { tag: "next".into(), binder: Some(held), body });
        } else if matches!(stmt.kind, StmtKind::While(..)) {
            // A loop is begun with this tag, so its type has it; one that only a `return` ends never gives
            // it.
            let message = self.b.lit("a loop without an end has ended", at);
            let body = self.b.add(Term::Fail(message), at);
            branches.push(Branch { tag: "next".into(), binder: None, body });
        }
        if exits.returns {
            let held = self.b.fresh("value");
            let value = self.b.var(held.clone(), at);
            let body = self.exit_return(value, mode, at);
            branches.push(Branch { tag: "return".into(), binder: Some(held), body });
        }
        for (on, tag) in [(exits.breaks, "break"), (exits.continues, "continue")] {
            if !on {
                continue;
            }
            let held = self.b.fresh(tag);
            let value = self.b.var(held.clone(), at);
            let mut bindings = Vec::new();
            let mark = self.scope.journal.len();
            self.unpack(&around, taint, value, at, &mut bindings);
            let body = if tag == "break" { self.exit_break(mode, at) } else { self.exit_continue(mode, at) };
            self.scope.undo(mark);
            let body = self.b.let_in(bindings, body, at);
            branches.push(Branch { tag: tag.into(), binder: Some(held), body });
        }
        self.pc = pc;
        self.b.add(Term::Case { scrutinee: value, branches, default: None }, at)
    }

    /// A statement with blocks. Each ends as `mode` says; the one that continues, with `rest` if any.
    pub(super) fn compound(&mut self, stmt: &Stmt, mode: &Mode, rest: Option<&Rest<'_>>) -> TermId {
        let pc = self.pc;
        let term = self.compound_inner(stmt, mode, rest);
        self.pc = pc;
        term
    }

    pub(super) fn compound_inner(&mut self, stmt: &Stmt, mode: &Mode, rest: Option<&Rest<'_>>) -> TermId {
        let at = stmt.span;
        if let StmtKind::If(e, ..) | StmtKind::IfLet(_, e, ..) | StmtKind::Match(e, _) = &stmt.kind {
            self.pc = self.pc.join(self.taint(e));
        }
        match &stmt.kind {
            StmtKind::If(condition, then, other) => {
                let condition = self.expr(condition);
                let then = self.way(Some(then), &[], at, mode, rest);
                let other = self.way(other.as_ref(), &[], at, mode, rest);
                let choice = self.b.add(Term::If(condition, then, other, IfSugar::Plain), at);
                self.branching(choice, at, [(0, 0), (1, 1)])
            }
            StmtKind::IfLet(name, e, then, other) => {
                let option = self.b.fresh("option");
                let value = self.expr(e);
                let seen = self.b.var(option.clone(), e.span);
                let absent = self.b.add(Term::Prim(Prim::IsNull, vec![seen]), e.span);
                let other = self.way(other.as_ref(), &[], at, mode, rest);
                let inside = self.b.var(option.clone(), name.span);
                let held = self.inner_name(&name.text);
                let then = self.way(Some(then), &[(&name.text, held.clone())], at, mode, rest);
                let then = self.b.let_in(vec![(held, inside)], then, at);
                let choice = self.b.add(Term::If(absent, other, then, IfSugar::Plain), at);
                let choice = self.branching(choice, at, [(0, 1), (1, 0)]);
                self.b.let_in(vec![(option, value)], choice, at)
            }
            StmtKind::Match(e, arms) => {
                let scrutinee = self.scrutinee(e);
                let mut branches = Vec::new();
                let mut shared_bodies = Vec::new();
                let mut default = None;
                let mut taken = ArmBranches::default();
                for arm in arms {
                    if arm.pattern.variants.is_empty() {
                        default = default.or_else(|| Some(self.way(Some(&arm.body), &[], at, mode, rest)));
                    } else if default.is_none() {
                        let payload = self.b.fresh("payload");
                        let fields = self.fields_of(&arm.pattern, &payload);
                        let bound: Vec<(&str, Name)> =
                            arm.pattern.fields.iter().map(|f| &*f.name.text).zip(names_of(&fields)).collect();
                        let body = self.way(Some(&arm.body), &bound, at, mode, rest);
                        let body = self.b.let_in(fields, body, at);
                        let shared = self.arm(e, &arm.pattern, payload, body, arm.body.span, &mut branches);
                        shared_bodies.extend(shared);
                    }
                    taken.arm(branches.len(), default.is_some());
                }
                let choice = self.choice(e, scrutinee, branches, default, at);
                let choice = self.branching(choice, at, taken.0);
                self.b.let_in(shared_bodies, choice, at)
            }
            StmtKind::Try(body, catch, handler) => {
                // The label of every error that the body can have: so it always catches those that it is for,
                // and what it gives is labeled accordingly.
                let taint = self.taint_of_block(body);
                self.pc = self.pc.join(taint);
                let body = self.way(Some(body), &[], at, mode, None);
                let held = self.inner_name(&catch.name.text);
                let handler = self.way(Some(handler), &[(&catch.name.text, held.clone())], at, mode, None);
                let label = self.label(taint, at);
                let catches = match catch.kind {
                    ast::CatchKind::Any => Catches::All,
                    ast::CatchKind::Error => Catches::Error,
                    ast::CatchKind::Refusal => Catches::Refusal,
                };
                let term = Term::Try { label, body, catches, name: held, handler };
                let term = self.b.add(term, at);
                self.branching(term, at, [(1, 0)])
            }
            StmtKind::Ensure(body, cleanup) => {
                // Branches of a `par` run to their end, one after another, and then the first error
                // counts, as long as it flows to where the `par` is.
                let taint = self.taint_of_block(body);
                self.pc = self.pc.join(taint);
                let body = self.way(Some(body), &[], at, mode, None);
                let nothing = Mode::Block { outs: [].into(), tagged: false, around: [].into(), binders: 0 };
                let cleanup = self.way(Some(cleanup), &[], at, &nothing, None);
                let both = self.b.add(Term::Par(Some(1), vec![body, cleanup]), at);
                let label = self.label(taint, at);
                let both = self.b.add(Term::Relabel(label, both), at);
                let first = self.b.lit(Num::ZERO, at);
                self.b.add(Term::Index(both, first), at)
            }
            StmtKind::While(condition, max, body) => {
                let bound =
                    max.as_ref().and_then(|n| n.text.parse().ok()).map_or(Bound::Infinite, Bound::Finite);
                let vars = self.outs(stmt);
                let over = Over { vars: vars.clone(), done: vars.clone(), bound, origin: None, outs: vars };
                self.repeat(stmt, &over, body, mode, |lower| (lower.expr(condition), Vec::new()))
            }
            StmtKind::For(name, list, body) => self.for_loop(stmt, name, list, body, mode),
            // The others have no blocks.
            _ => self.b.add(Term::Unknown("statement".into()), at),
        }
    }

    /// Variables for the fields that a pattern binds, taken from the payload of the case.
    pub(super) fn fields_of(&mut self, pattern: &ast::Pattern, payload: &Name) -> Vec<(Name, TermId)> {
        let decls = self.c.decls;
        let case = pattern.variants.first().and_then(|v| match self.c.facts.patterns.get(&v.span) {
            Some(name) => decls.types.cases.get(name),
            None => decls.types.tagged(&v.text),
        });
        let mut bindings = Vec::new();
        for f in &pattern.fields {
            let optional =
                case.and_then(|c| c.field(&f.field.text)).is_some_and(|t| matches!(t, Type::Option(_)));
            let of = self.b.var(payload.clone(), f.field.span);
            let value = self.access(of, &f.field.text, optional, f.field.span);
            bindings.push((self.inner_name(&f.name.text), value));
        }
        bindings
    }

    /// The value that a `match` looks at. A number is looked at as the text that shows it.
    pub(super) fn scrutinee(&mut self, e: &Expr) -> TermId {
        let value = self.expr(e);
        match self.c.facts.matched_literals.get(&e.span) {
            Some(PatternForm::Numbers) => self.b.add(Term::Prim(Prim::ToStr, vec![value]), e.span),
            _ => value,
        }
    }

    /// A `match` on `of` with its branches. For the types of the core the text of a number may be any text,
    /// and the language has checked that these are all numbers that it can be: so the last branch takes the
    /// rest.
    pub(super) fn choice(
        &mut self,
        of: &Expr,
        scrutinee: TermId,
        mut branches: Vec<Branch>,
        mut default: Option<TermId>,
        at: Span,
    ) -> TermId {
        if default.is_none() && self.c.facts.matched_literals.get(&of.span) == Some(&PatternForm::Numbers) {
            default = branches.pop().map(|last| last.body);
        }
        self.b.add(Term::Case { scrutinee, branches, default }, at)
    }

    /// Adds the branches of an arm of a `match` on `of`. Several variants share one body: a function that
    /// each calls, which is the result.
    pub(super) fn arm(
        &mut self,
        of: &Expr,
        pattern: &ast::Pattern,
        payload: Name,
        body: TermId,
        at: Span,
        branches: &mut Vec<Branch>,
    ) -> Option<(Name, TermId)> {
        let types = &self.c.decls.types;
        // A text, as a variant of an enum is, and a number have no payload.
        let literal = self.c.facts.matched_literals.contains_key(&of.span);
        let is_case = |v: &ast::Name| !literal && types.tagged(&v.text).is_some();
        let binder = |lower: &mut Self, v: &ast::Name| is_case(v).then(|| lower.b.fresh("payload"));
        let tag = |v: &ast::Name| match pattern.form {
            PatternForm::Numbers => number(&v.text).into(),
            _ => Name::from(v.text.as_str()),
        };
        if let [v] = &pattern.variants[..] {
            let binder = is_case(v).then_some(payload);
            branches.push(Branch { tag: tag(v), binder, body });
            return None;
        }
        let unused = self.b.fresh("unused");
        let shared = self.b.abs(unused, None, body, at);
        let case = self.b.fresh("case");
        for v in &pattern.variants {
            let function = self.b.var(case.clone(), v.span);
            let argument = self.b.lit(Data::Null, v.span);
            let body = self.b.app(function, argument, v.span);
            let binder = binder(self, v);
            branches.push(Branch { tag: tag(v), binder, body });
        }
        Some((case, shared))
    }

    /// One way through a statement; a missing block is an empty one.
    pub(super) fn way(
        &mut self,
        block: Option<&Block>,
        bound: &[(&str, Name)],
        at: Span,
        mode: &Mode,
        rest: Option<&Rest<'_>>,
    ) -> TermId {
        let mark = self.scope.journal.len();
        let binders = self.binders.clone();
        for (source, name) in bound {
            self.enter(source, name.clone());
        }
        let (stmts, end) = match block {
            Some(b) => (&b.stmts[..], Span { start: b.span.end.saturating_sub(1), ..b.span }),
            None => (&[][..], at),
        };
        let falls = block.is_none_or(|b| self.c.exits.block(b).falls);
        let all = Rest { stmts, leave: bound.len(), next: rest.filter(|_| falls), end };
        let term = match rest {
            None => self.region(&all, mode),
            Some(_) if falls => self.deeper(&all, mode),
            Some(_) => self.seq(&all, mode),
        };
        self.scope.undo(mark);
        self.binders = binders;
        term
    }

    /// A loop with a hidden index that counts through the list. It has as many rounds as the list has items,
    /// which is its bound if that is known; the state of the last round, in which the bound ends it, has the
    /// index too.
    pub(super) fn for_loop(
        &mut self,
        stmt: &Stmt,
        name: &ast::Name,
        list: &Expr,
        body: &Block,
        mode: &Mode,
    ) -> TermId {
        let at = list.span;
        let outs = self.outs(stmt);
        let vars: Arc<[String]> = outs.iter().cloned().chain([INDEX.to_string()]).collect();
        let (bound, origin) = match self.length(list) {
            // A loop without a round is no loop; one that may have one has none if there is no item.
            Some(n) => (Bound::Finite(n.max(1)), None),
            None => (Bound::Infinite, Some(self.length_of(at))),
        };
        let items = self.b.fresh("items");
        let value = self.expr(list);
        let zero = self.b.lit(Num::ZERO, at);
        let mark = self.scope.journal.len();
        let index = self.bind(INDEX, Taint::NONE);
        let over = Over { vars: vars.clone(), done: vars, bound, origin, outs };
        let each = self.inner_name(&name.text);
        let term = self.repeat(stmt, &over, body, mode, |lower| {
            let var = |lower: &mut Self, name: &Name| lower.b.var(name.clone(), at);
            let (now, all) = (lower.variable(INDEX, at), var(lower, &items));
            let length = lower.b.add(Term::Prim(Prim::Length, vec![all]), at);
            let more = lower.b.add(Term::Prim(Prim::Lt, vec![now, length]), at);
            let (now, all) = (lower.variable(INDEX, at), var(lower, &items));
            let item = lower.b.add(Term::Index(all, now), name.span);
            let (now, one) = (lower.variable(INDEX, at), lower.b.lit(Num::ONE, at));
            let next = lower.b.add(Term::Prim(Prim::Add, vec![now, one]), at);
            lower.enter(&name.text, each.clone());
            (more, vec![(each.clone(), item), (lower.bind(INDEX, Taint::NONE), next)])
        });
        self.scope.undo(mark);
        self.b.let_in(vec![(items, value), (index, zero)], term, stmt.span)
    }

    /// `(fix[n] (λagain. λstate. if condition then body else state)) state`, the state being the variables
    /// that the body binds for its next round and for what follows. `head` gives the condition and what is
    /// bound before each round.
    pub(super) fn repeat(
        &mut self,
        stmt: &Stmt,
        over: &Over,
        body: &Block,
        mode: &Mode,
        head: impl FnOnce(&mut Self) -> (TermId, Vec<(Name, TermId)>),
    ) -> TermId {
        let at = stmt.span;
        let tagged = self.c.exits.block(body).returns;
        let start = self.state(&over.vars, tagged, at);
        let (again, state) = (self.b.fresh("again"), self.b.fresh("state"));
        let inner = Mode::Loop {
            again: again.clone(),
            vars: over.vars.clone(),
            done: over.done.clone(),
            tagged,
            binders: self.binders.len(),
        };
        let mark = self.scope.journal.len();
        let mut bindings = Vec::new();
        let held = if tagged { self.b.fresh("next") } else { state.clone() };
        let value = self.b.var(held.clone(), at);
        // A later round may have been reached on, and bind, anything that the loop touches.
        let taint = self.taint_of_stmt(stmt);
        self.pc = self.pc.join(taint);
        self.unpack(&over.vars, taint, value, at, &mut bindings);
        let outside = self.scope.journal.len();
        let (condition, each) = head(self);
        let then = self.block(body, &inner);
        let then = self.b.let_in(each, then, at);
        self.scope.undo(outside);
        if let Mode::Loop { binders, .. } = &inner {
            self.binders.truncate(*binders);
        }
        let done = self.state(&over.done, tagged, at);
        let round = self.b.add(Term::If(condition, then, done, IfSugar::Plain), at);
        let round = self.branching(round, at, [(0, 0)]);
        let mut round = self.b.let_in(bindings, round, at);
        self.scope.undo(mark);
        if tagged {
            let scrutinee = self.b.var(state.clone(), at);
            let branches = vec![Branch { tag: "next".into(), binder: Some(held), body: round }];
            round = self.b.add(Term::Case { scrutinee, branches, default: None }, at);
        }
        let round = self.b.abs(state, None, round, at);
        let round = self.b.abs(again, None, round, at);
        let fix = self.b.add(Term::Fix { bound: over.bound, origin: over.origin.clone(), body: round }, at);
        let result = self.b.app(fix, start, at);
        let result = self.only(result, over, tagged, at);
        // The loop gives `next` or, if it returns, `return`. A block around it that wants tags gets them.
        match (tagged, mode) {
            (false, Mode::Block { tagged: true, .. }) => {
                self.b.add(Term::Tag("next".into(), Some(result)), at)
            }
            _ => result,
        }
    }

    /// Of what a loop gives, what is wanted of it.
    pub(super) fn only(&mut self, result: TermId, over: &Over, tagged: bool, at: Span) -> TermId {
        if over.done == over.outs {
            return result;
        }
        // What is left out is not the only variable of the loop if any is wanted, so its state is a record.
        let select = |lower: &mut Self, held: &Name| match &over.outs[..] {
            [] => lower.b.lit(Data::Null, at),
            [one] => {
                let of = lower.b.var(held.clone(), at);
                lower.b.add(Term::Field(of, one.as_str().into()), at)
            }
            all => {
                let mut fields = Vec::with_capacity(all.len());
                for v in all {
                    let of = lower.b.var(held.clone(), at);
                    fields
                        .push((Name::from(v.as_str()), lower.b.add(Term::Field(of, v.as_str().into()), at)));
                }
                lower.b.add(Term::Record(fields), at)
            }
        };
        let all = self.b.fresh("all");
        if !tagged {
            let wanted = select(self, &all);
            return self.b.let_in(vec![(all, result)], wanted, at);
        }
        let wanted = select(self, &all);
        let next = self.b.add(Term::Tag("next".into(), Some(wanted)), at);
        let value = self.b.fresh("value");
        let of = self.b.var(value.clone(), at);
        let returned = self.b.add(Term::Tag("return".into(), Some(of)), at);
        let branches = vec![
            Branch { tag: "next".into(), binder: Some(all), body: next },
            Branch { tag: "return".into(), binder: Some(value), body: returned },
        ];
        self.b.add(Term::Case { scrutinee: result, branches, default: None }, at)
    }

    /// Returns an upper bound on the length of a list, if it is known.
    pub(super) fn length(&self, e: &Expr) -> Option<u64> {
        match &e.kind {
            ExprKind::Paren(inner) => self.length(inner),
            ExprKind::List(items) => Some(items.len() as u64),
            ExprKind::Map(entries) => Some(entries.len() as u64),
            ExprKind::Var(name) => match (self.scope.names.get(name), self.c.decls.constants.get(name)) {
                (Some(held), _) => least(held.length, held.declared.as_ref().and_then(most_items)),
                // One that is made from others may grow with each of them.
                (None, Some(constant)) => match &constant.value.kind {
                    ExprKind::List(items) => Some(items.len() as u64),
                    _ => None,
                },
                (None, None) => None,
            },
            ExprKind::Field(..) => self.declared_type(e).as_ref().and_then(most_items),
            ExprKind::Binary(ast::BinaryOp::Add, _, a, b) => self.length(a)?.checked_add(self.length(b)?),
            ExprKind::Call(name, args) => match self.c.decls.function(&name.text) {
                Some(declared) => self.length_from_library(&declared.name, args),
                None => self.length_of_call(&name.text, args),
            },
            _ => None,
        }
    }

    /// The type that a variable, or a field of one, was checked against.
    pub(super) fn declared_type(&self, e: &Expr) -> Option<Type> {
        match &e.kind {
            ExprKind::Paren(inner) => self.declared_type(inner),
            ExprKind::Var(name) => self.scope.names.get(name)?.declared.clone(),
            ExprKind::Field(of, name) => {
                let mut of = self.declared_type(of)?.unfolded();
                // A field is taken of an option where a condition has shown that it is there.
                while let Type::Refined(_) | Type::Option(_) = &of {
                    of = match of {
                        Type::Refined(r) => r.0.unfolded(),
                        Type::Option(inside) => inside.unfolded(),
                        other => other,
                    };
                }
                let Type::Record(fields) = of else { return None };
                fields.iter().find(|(n, _)| **n == *name.text).map(|(_, t)| t.clone())
            }
            _ => None,
        }
    }

    /// Notes the type that the value of a variable was checked against.
    pub(super) fn know_type(&mut self, source: &str, ty: Option<&Type>) {
        if let (Some(ty), Some(held)) = (ty, self.scope.names.get_mut(source)) {
            held.declared = Some(ty.clone());
        }
    }

    pub(super) fn length_of_call(&self, name: &str, args: &[Expr]) -> Option<u64> {
        match (name, args) {
            ("append", [list, _]) | ("set", [list, _, _]) => self.length(list)?.checked_add(1),
            ("slice", [list, from, to]) => {
                let cut = predicate::count(from).zip(predicate::count(to)).map(|(a, b)| b.saturating_sub(a));
                least(self.length(list), cut)
            }
            ("map" | "filter" | "sort_by" | "group_by", [list, _]) => self.length(list),
            ("sort" | "reverse" | "unique" | "keys" | "values" | "items", [list]) => self.length(list),
            ("remove", [map, _]) => self.length(map),
            ("merge", [a, b]) => self.length(a)?.checked_add(self.length(b)?),
            ("zip", [a, b]) => least(self.length(a), self.length(b)),
            ("range", [from, to]) => Some(predicate::count(to)?.saturating_sub(predicate::count(from)?)),
            _ => None,
        }
    }

    /// Length of what a function of `std:lists` gives of a list.
    fn length_from_library(&self, name: &ast::Name, args: &[Expr]) -> Option<u64> {
        let function = library::function_of("lists", name)?;
        match (function, args) {
            ("take", [list, n]) => least(self.length(list), predicate::count(n)),
            ("drop" | "common" | "without", [list, _]) | ("numbered" | "present", [list]) => {
                self.length(list)
            }
            _ => None,
        }
    }

    pub(super) fn know_length(&mut self, source: &str, length: Option<u64>) {
        if length.is_some()
            && let Some(held) = self.scope.names.get_mut(source)
        {
            held.length = length;
        }
    }

    pub(super) fn outs(&self, stmt: &Stmt) -> Arc<[String]> {
        self.c.facts.outs.get(&stmt.span).cloned().unwrap_or_else(|| [].into())
    }

    pub(super) fn parallel(
        &mut self,
        max: Option<&ast::Number>,
        runs: &[Run],
        at: Span,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let (branches, taints): (Vec<TermId>, Vec<Taint>) = runs.iter().map(|r| self.run(r, None)).unzip();
        let n = max.and_then(|n| n.text.parse().ok());
        let par = self.b.add(Term::Par(n, branches), at);
        let held = self.b.fresh("parallel");
        bindings.push((held.clone(), par));
        // An error of one branch keeps all results from being seen.
        let taint = taints.into_iter().fold(Taint::NONE, Taint::join);
        for (i, run) in runs.iter().enumerate() {
            let of = self.b.var(held.clone(), run.span);
            let i = self.b.lit(Num::from(i as i64), run.span);
            let value = self.b.add(Term::Index(of, i), run.span);
            bindings.push((self.bind(&run.name.text, taint), value));
        }
    }

    /// `each[n] (λitem. body) list`: a round gives what it binds. Each variable is then the list of what the
    /// rounds have bound it to.
    pub(super) fn parallel_for(
        &mut self,
        stmt: &Stmt,
        name: &ast::Name,
        list: &Expr,
        max: Option<&ast::Number>,
        body: &Block,
        bindings: &mut Vec<(Name, TermId)>,
    ) {
        let at = stmt.span;
        let outs = self.outs(stmt);
        let taint = self.taint_of_stmt(stmt);
        let length = self.length(list);
        let items = self.expr(list);
        let pc = self.pc;
        self.pc = pc.join(self.taint(list));
        let item = self.inner_name(&name.text);
        let inner = Mode::Block { outs: outs.clone(), tagged: false, around: [].into(), binders: 0 };
        let round = self.way(Some(body), &[(&name.text, item.clone())], at, &inner, None);
        self.pc = pc;
        let round = self.b.abs(item, None, round, at);
        let n = max.and_then(|n| n.text.parse().ok());
        let each = self.b.add(Term::Each(n, round, items), at);
        let each = self.branching(each, at, [(0, 0)]);
        match &outs[..] {
            [] => bindings.push(("_".into(), each)),
            [one] => bindings.push((self.bind(one, taint), each)),
            all => {
                let held = self.b.fresh("rounds");
                bindings.push((held.clone(), each));
                for v in all {
                    let round = self.b.fresh("round");
                    let of = self.b.var(round.clone(), at);
                    let value = self.b.add(Term::Field(of, v.as_str().into()), at);
                    let value = self.b.abs(round, None, value, at);
                    let of = self.b.var(held.clone(), at);
                    let values = self.b.add(Term::Each(None, value, of), at);
                    bindings.push((self.bind(v, taint), values));
                }
            }
        }
        for v in outs.iter() {
            self.know_length(v, length);
        }
    }

    /// An assertion; a comparison that fails shows both sides.
    pub(super) fn assertion(&mut self, e: &Expr, message: Option<&ast::Template>, at: Span) -> TermId {
        let (written, mut e) = (e, e);
        while let ExprKind::Paren(inner) = &e.kind {
            e = inner;
        }
        let passed = self.b.lit(Data::Null, at);
        if let ExprKind::Binary(op, _, a, b) = &e.kind
            && let Some(prim) = prim_of(*op).filter(|_| op.precedence() == 3 || op.precedence() == 4)
        {
            let (left, right) = (self.b.fresh("left"), self.b.fresh("right"));
            let (va, vb) = (self.expr(a), self.expr(b));
            let operands = vec![self.b.var(left.clone(), a.span), self.b.var(right.clone(), b.span)];
            let condition = self.b.add(Term::Prim(prim, operands), e.span);
            let (mut parts, mut text) = self.failure(written, message, at);
            text.push_str(" (left: ");
            parts.push(self.b.lit(&*text, at));
            parts.extend([
                self.b.var(left.clone(), a.span),
                self.b.lit(", right: ", at),
                self.b.var(right.clone(), b.span),
                self.b.lit(")", at),
            ]);
            let message = self.b.add(Term::Prim(Prim::Format, parts), at);
            let fail = self.b.add(Term::Fail(message), at);
            let test = self.b.add(Term::If(condition, passed, fail, IfSugar::Plain), at);
            return self.b.let_in(vec![(left, va), (right, vb)], test, at);
        }
        let condition = self.expr(e);
        let (mut parts, text) = self.failure(written, message, at);
        let text = self.b.lit(&*text, at);
        let message = match parts.is_empty() {
            true => text,
            false => {
                parts.push(text);
                self.b.add(Term::Prim(Prim::Format, parts), at)
            }
        };
        let fail = self.b.add(Term::Fail(message), at);
        self.b.add(Term::If(condition, passed, fail, IfSugar::Plain), at)
    }

    /// The message of an assertion that fails: the parts up to the last hole, and the text after it.
    fn failure(&mut self, e: &Expr, message: Option<&ast::Template>, at: Span) -> (Vec<TermId>, String) {
        let (mut parts, mut text) = (Vec::new(), String::from("assertion failed: "));
        let Some(message) = message else {
            text.push_str(&on_one_line(self.c.files.text(e.span).unwrap_or("")));
            return (parts, text);
        };
        for part in &message.parts {
            match part {
                TemplatePart::Text(t) => text.push_str(&t.value),
                TemplatePart::Hole(e) => {
                    parts.push(self.b.lit(&*std::mem::take(&mut text), at));
                    parts.push(self.operand(e));
                }
            }
        }
        (parts, text)
    }

    pub(super) fn guarded(&mut self, term: TermId, name: &str, e: &Expr, retry: u32, at: Span) -> TermId {
        match predicate::of(name, e) {
            Ok(pred) => self.b.add(Term::Guard { term, pred, retry }, at),
            Err(span) => self.b.add(Term::Unknown("guard".into()), span),
        }
    }
}
