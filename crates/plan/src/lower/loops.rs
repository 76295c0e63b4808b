//! Loops and comprehensions as bounded fixpoints.

use super::{Cx, Lower, MAX_LOOPS, Tail, Val};
use crate::codes;
use crate::names;
use crate::scope::{Frame, Frames, Taint, Ty, UNIQUE, add, join};
use core_ir::{Bound, BoundOrigin, Branch, Data, Name, Num, Prim, Term, TermId};
use diagnostics::{Span, clip};
use ruff_python_ast::{Comprehension, Expr, Stmt, StmtFor, StmtWhile};
use std::rc::Rc;

/// Rounds of a loop after which its variables are forgotten instead of followed exactly.
const EXACT_ROUNDS: usize = 8;

/// Rounds of a loop at most.
const MAX_ROUNDS: usize = 64;

/// Which value of a loop's state ends it early.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Never,
    At(bool),
    /// A list with an item.
    Filled,
}

/// Names of a loop's function, of its state and of the counter in the state.
struct RoundNames {
    again: Name,
    state: Name,
    index: Name,
}

/// How much a plan's lowering had noted.
struct Noted {
    found: usize,
    functions: usize,
    unmoved: usize,
    /// By statement around, innermost last.
    made: Vec<usize>,
}

/// A loop that has been lowered.
struct EndedLoop<'l> {
    result: TermId,
    /// Variables at its head.
    head: &'l Frames,
    /// Variables where it was left by `break`.
    broke: Option<Frames>,
    body: &'l Cx,
    /// True if the result says how the loop was left.
    signal: bool,
}

/// The accumulator of a comprehension and the value that ends it early.
#[derive(Clone, Copy)]
struct Folding<'f> {
    acc: &'f Name,
    stop: Stop,
    at: Span,
}

impl<'a> Lower<'a> {
    /// Number of items of an expression, if it is written there.
    fn length(&self, e: &Expr) -> Option<u64> {
        let integer = |e: &Expr| match e {
            Expr::NumberLiteral(n) => match &n.value {
                ruff_python_ast::Number::Int(i) => i.as_u64(),
                _ => None,
            },
            _ => None,
        };
        match e {
            // `*xs` is as many items as there are.
            Expr::List(ruff_python_ast::ExprList { elts, .. })
            | Expr::Tuple(ruff_python_ast::ExprTuple { elts, .. }) => {
                let starred = elts.iter().any(|e| matches!(e, Expr::Starred(_)));
                (!starred).then_some(elts.len() as u64)
            }
            Expr::Call(c) if matches!(&*c.func, Expr::Name(n) if n.id.as_str() == "range") => {
                match &c.arguments.args[..] {
                    [n] => integer(n),
                    [from, to] => Some(integer(to)?.saturating_sub(integer(from)?)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn bound(&self, e: &Expr, at: Span) -> (Bound, Option<BoundOrigin>) {
        match self.length(e) {
            // One more unfolding sees that there are no more items.
            Some(n) => (Bound::Finite(n.saturating_add(1)), None),
            None => {
                let source = self.source.text.get(at.start as usize..at.end as usize).unwrap_or("the list");
                let origin = format!("the length of `{}`, which is known only when it runs", clip(source));
                (Bound::Infinite, Some(BoundOrigin::Default(origin.into())))
            }
        }
    }

    /// `(fix[n] (λagain. λstate. round)) start`.
    fn repeat(
        &mut self,
        bound: (Bound, Option<BoundOrigin>),
        names: (Name, Name),
        round: TermId,
        start: TermId,
        at: Span,
    ) -> TermId {
        let (again, state) = names;
        let round = self.b.abs(state, None, round, at);
        let round = self.b.abs(again, None, round, at);
        let fix = self.add(Term::Fix { bound: bound.0, origin: bound.1, body: round }, at);
        self.b.app(fix, start, at)
    }

    /// Lowers the body of a loop until what is known at its head no longer changes.
    fn settle(&mut self, at: Span, mut round: impl FnMut(&mut Self) -> (TermId, Cx)) -> (TermId, Cx) {
        if self.loops >= MAX_LOOPS {
            let v =
                self.refuse(at, "loops nested too deep", "move the inner loops into functions of their own");
            return (v.term, Cx::new([].into(), false));
        }
        self.loops += 1;
        let (pc, iterated) = (self.pc, self.iterated.clone());
        let mut head: Frames = self.frames.clone();
        let mut inside = pc;
        let mut rounds = 0;
        let result = loop {
            self.frames = head.clone();
            self.pc = inside;
            self.iterated = iterated.clone();
            let before = self.noted();
            let (term, cx) = round(self);
            // A round begins after the one before it, or after its `continue`.
            let mut next = head.clone();
            for frames in [&cx.next, &cx.again].into_iter().flatten() {
                next = join(&next, frames);
            }
            let decided = inside.join(cx.taint);
            if next == head && decided == inside {
                break (term, cx);
            }
            rounds += 1;
            if rounds >= MAX_ROUNDS {
                let v = self.error(
                    codes::TOO_LARGE,
                    at,
                    "loop with too many variables that depend on each other",
                    "keep the values in a list, or move parts of the loop into functions",
                );
                break (v.term, cx);
            }
            if rounds >= EXACT_ROUNDS {
                self.widen(&mut next, &head, &cx.outs);
            }
            self.forget(before);
            (head, inside) = (next, decided);
        };
        self.iterated = iterated;
        self.pc = pc;
        self.loops -= 1;
        result
    }

    fn noted(&self) -> Noted {
        Noted {
            found: self.found.len(),
            functions: self.functions.len(),
            unmoved: self.unmoved.len(),
            made: self.places.iter().map(|p| p.made.len()).collect(),
        }
    }

    /// Forgets what was noted since: a part that is lowered once more notes it again.
    fn forget(&mut self, since: Noted) {
        self.found.truncate(since.found);
        self.functions.truncate(since.functions);
        self.unmoved.truncate(since.unmoved);
        for (place, made) in self.places.iter_mut().zip(since.made) {
            place.made.truncate(made);
        }
    }

    /// Forgets types and labels of the variables of a loop, and each fact about any variable that a round
    /// still changes, so that few more rounds change anything.
    fn widen(&self, next: &mut Frames, head: &Frames, outs: &Rc<[String]>) {
        for (i, frame) in next.iter_mut().enumerate() {
            for (name, known) in frame.vars.iter_mut().filter(|(_, known)| known.function.is_none()) {
                let is_out = i == self.frame && name != names::PRINTED && outs.contains(name);
                let before = head.get(i).and_then(|f| f.vars.get(name));
                if is_out || before.is_none_or(|b| b.ty != known.ty) {
                    known.ty = Ty::Any;
                }
                if is_out || before.is_none_or(|b| b.taint != known.taint) {
                    known.taint = Taint { untrusted: true, secret: true };
                }
                if before.is_none_or(|b| b.unique != known.unique) {
                    known.unique = 0;
                }
            }
        }
    }

    pub(crate) fn for_loop(
        &mut self,
        s: &'a StmtFor,
        items: Name,
        list: Val,
        cx: &mut Cx,
        at: Span,
    ) -> TermId {
        let outs = cx.outs.clone();
        let head_at = self.at(&*s.iter);
        let bound = self.bound(&s.iter, head_at);
        let names = RoundNames { again: self.fresh("again"), state: self.fresh("state"), index: "$i".into() };
        self.note_loop(&names.state, &items);
        let start = self.frames.clone();
        let over = match &*s.iter {
            Expr::Name(n) => Some(n.id.to_string()),
            _ => None,
        };
        // `d.items()` and `enumerate(xs)` show a collection, too.
        let over = over.or_else(|| viewed(&s.iter));
        let pc = self.pc;
        self.pc = pc.join(list.taint);
        let mut initial = self.state(&outs, at);
        let zero = self.number(0, at);
        initial.insert(0, (names.index.clone(), zero));
        self.mark_state(&mut initial, at);
        let initial = self.add(Term::Record(initial), at);
        let left = names::leaves(&s.body, true) || has_jump(&s.body) || cx.signal;
        let list_again = list.clone();
        let mut broke: Option<Frames> = None;
        let mut head: Option<Frames> = None;
        let (round, body_cx) = self.settle(at, |l| {
            head = Some(l.frames.clone());
            let mut body = Cx::new(outs.clone(), left);
            l.iterated.extend(over.clone());
            // The state of the round.
            let mut bindings = l.unpack(&outs, &names.state, at);
            let now = l.field(&names.state, &names.index, at);
            let all = l.var(&items, at);
            let length = l.add(Term::Prim(Prim::Length, vec![all]), at);
            let more = l.add(Term::Prim(Prim::Lt, vec![now, length]), at);
            let before = l.frames.clone();
            let (all, now) = (l.var(&items, at), l.field(&names.state, &names.index, at));
            let item = l.add(Term::Index(all, now), at);
            let ty = match &list_again.ty {
                Ty::List(item) => (**item).clone(),
                _ => Ty::Any,
            };
            let roots =
                list_again.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
            let unique =
                if list_again.unique < UNIQUE { list_again.unique.saturating_sub(1) } else { UNIQUE };
            let item = Val { term: item, ty, taint: list_again.taint, unique, roots, function: None };
            let simple = matches!(&*s.target, Expr::Name(_));
            let term = if simple {
                let target = l.bind_target(&s.target, item);
                let term = l.seq(&s.body, &mut body, &Tail::Next);
                l.b.let_in(target, term, at)
            } else {
                // Unpacking may fail.
                let target = &*s.target;
                let names: Vec<String> = names::bound_by(target).into_iter().collect();
                l.simple(
                    &names,
                    &mut body,
                    at,
                    |l| (l.bind_target(target, item), ()),
                    |l, body, ()| l.seq(&s.body, body, &Tail::Next),
                )
            };
            let ended = body.other.take();
            let term = l.next_round(term, &mut body, left, &names, at);
            broke = ended;
            // No more items.
            l.frames = before;
            let done = l.done(&outs, left, at);
            let chosen = l.choose(more, term, done, at);
            let all_bindings = std::mem::take(&mut bindings);
            let round = l.b.let_in(all_bindings, chosen, at);
            (round, body)
        });
        let result = self.repeat(bound, (names.again, names.state), round, initial, at);
        self.pc = pc.join(list.taint);
        // After the loop: as at its head, or as it was left.
        let head = head.unwrap_or(start);
        let done = EndedLoop { result, head: &head, broke, body: &body_cx, signal: left };
        let term = self.after(done, &s.orelse, cx, at);
        self.pc = pc;
        term
    }

    /// The fields of a loop's state.
    fn state(&mut self, outs: &Rc<[String]>, at: Span) -> Vec<(Name, TermId)> {
        let mut fields = Vec::new();
        for name in outs.iter() {
            let known = self.frames[self.frame].vars.get(name).filter(|k| k.function.is_none());
            let term = match known.map(|k| k.core.clone()) {
                Some(core) => self.var(&core, at),
                None => self.unbound(at),
            };
            fields.push((Name::from(name.as_str()), term));
        }
        fields
    }

    /// Makes a loop's state a record like its result: `fix` gives the state where its bound is used up.
    fn mark_state(&mut self, fields: &mut Vec<(Name, TermId)>, at: Span) {
        let (kind, value) = (self.lit(Data::str("next"), at), self.placeholder(Data::Null, at));
        fields.push(("$k".into(), kind));
        fields.push(("$v".into(), value));
    }

    /// The record of a loop that has ended by itself.
    fn done(&mut self, outs: &Rc<[String]>, signal: bool, at: Span) -> TermId {
        let mut fields = self.state(outs, at);
        if signal {
            let (kind, value) = (self.lit(Data::str("next"), at), self.placeholder(Data::Null, at));
            fields.push(("$k".into(), kind));
            fields.push(("$v".into(), value));
        }
        self.add(Term::Record(fields), at)
    }

    /// Goes on after a round: with another one, or with the record of how it was left.
    fn next_round(
        &mut self,
        body: TermId,
        cx: &mut Cx,
        signal: bool,
        names: &RoundNames,
        at: Span,
    ) -> TermId {
        let RoundNames { again, state, index } = names;
        let s = self.fresh("round");
        let now = self.field(state, index, at);
        let one = self.number(1, at);
        let next = self.add(Term::Prim(Prim::Add, vec![now, one]), at);
        let mut fields = vec![(index.clone(), next)];
        for name in cx.outs.clone().iter() {
            let value = self.field(&s, name, at);
            fields.push((Name::from(name.as_str()), value));
        }
        self.mark_state(&mut fields, at);
        let fields = self.add(Term::Record(fields), at);
        let function = self.var(again, at);
        let call = self.b.app(function, fields, at);
        let term = if signal {
            let kind = self.field(&s, "$k", at);
            let (left, other) = (self.var(&s, at), call);
            // `continue` goes on, too.
            let go_on = self.lit(Data::list([Data::str("next"), Data::str("continue")]), at);
            let goes = self.add(Term::Prim(Prim::Contains, vec![go_on, kind]), at);
            self.choose(goes, other, left, at)
        } else {
            call
        };
        self.b.let_in(vec![(s, body)], term, at)
    }

    /// The continuation of a loop: its `else`, or how it was left.
    fn after(&mut self, ended: EndedLoop<'_>, orelse: &'a [Stmt], cx: &mut Cx, at: Span) -> TermId {
        let EndedLoop { result, head, broke, body, signal } = ended;
        let s = self.fresh("loop");
        let outs = cx.outs.clone();
        self.pc = self.pc.join(body.taint);
        self.frames = head.clone();
        if let Some(frames) = &body.next {
            self.frames = join(&self.frames, frames);
        }
        // The variables of all ways out are in the same record.
        let after = self.frames.clone();
        let ended = self.seq_with(&outs, &s, orelse, cx, at);
        if !signal {
            return self.b.let_in(vec![(s, result)], ended, at);
        }
        let mut branches = vec![Branch { tag: "next".into(), binder: None, body: ended }];
        self.frames = broke.clone().unwrap_or_else(|| after.clone());
        let bindings = self.unpack(&outs, &s, at);
        let broken = self.pack(cx, "next", None, at);
        let broken = self.b.let_in(bindings, broken, at);
        let default = if cx.signal {
            branches.push(Branch { tag: "break".into(), binder: None, body: broken });
            self.frames = broke.unwrap_or(after);
            let bindings = self.unpack(&outs, &s, at);
            let left = self.propagate(cx, &s, false, at);
            self.b.let_in(bindings, left, at)
        } else {
            broken
        };
        let scrutinee = self.field(&s, "$k", at);
        let choice = self.add(Term::Case { scrutinee, branches, default: Some(default) }, at);
        self.b.let_in(vec![(s, result)], choice, at)
    }

    fn seq_with(
        &mut self,
        outs: &Rc<[String]>,
        s: &Name,
        stmts: &'a [Stmt],
        cx: &mut Cx,
        at: Span,
    ) -> TermId {
        let bindings = self.unpack(outs, s, at);
        let term = self.seq(stmts, cx, &Tail::Next);
        self.b.let_in(bindings, term, at)
    }

    pub(crate) fn while_loop(&mut self, s: &'a StmtWhile, cx: &mut Cx, at: Span) -> TermId {
        let outs = cx.outs.clone();
        let names = RoundNames { again: self.fresh("again"), state: self.fresh("state"), index: "$i".into() };
        let start = self.frames.clone();
        let pc = self.pc;
        let mut initial = self.state(&outs, at);
        let zero = self.number(0, at);
        initial.insert(0, (names.index.clone(), zero));
        self.mark_state(&mut initial, at);
        let initial = self.add(Term::Record(initial), at);
        let left = true;
        let most = self.world.max_rounds;
        let mut broke: Option<Frames> = None;
        let mut ended: Option<Frames> = None;
        let (round, body_cx) = self.settle(at, |l| {
            let mut body = Cx::new(outs.clone(), left);
            ended = None;
            let bindings = l.unpack(&outs, &names.state, at);
            let mut done_frames: Option<Frames> = None;
            let mut tested = Taint::NONE;
            let test_at = l.at(&*s.test);
            let term = l.simple(
                &[],
                &mut body,
                test_at,
                |l| l.test(&s.test, at),
                |l, body, (name, v)| {
                    tested = v.taint;
                    l.pc = l.pc.join(v.taint);
                    add(&mut done_frames, &l.frames.clone());
                    let done = l.done(&outs, left, at);
                    // The rounds are counted.
                    let now = l.field(&names.state, &names.index, at);
                    let limit = l.number(i64::try_from(most).unwrap_or(i64::MAX), at);
                    // Nobody catches it.
                    let counted = l.total("rounds", vec![now, limit], at);
                    let term = l.seq(&s.body, body, &Tail::Next);
                    let term = l.next_round(term, body, left, &names, at);
                    let term = l.b.let_in(vec![("_".into(), counted)], term, at);
                    let test = l.var(&name, at);
                    l.choose(test, term, done, at)
                },
            );
            body.taint = body.taint.join(tested);
            broke = body.other.take();
            ended = done_frames;
            (l.b.let_in(bindings, term, at), body)
        });
        let bound = (Bound::Finite(most.saturating_add(1)), None);
        let result = self.repeat(bound, (names.again, names.state), round, initial, at);
        let head = ended.unwrap_or(start);
        let without = Cx { next: None, ..Cx::new(outs, left) };
        let without = Cx { taint: body_cx.taint, ..without };
        self.pc = pc;
        let done = EndedLoop { result, head: &head, broke, body: &without, signal: left };
        let term = self.after(done, &s.orelse, cx, at);
        self.pc = pc;
        term
    }

    // ── comprehensions ──

    /// A frame for the targets of comprehensions and parameters of `lambda`.
    pub(crate) fn enter(&mut self, locals: Vec<String>) -> (usize, usize) {
        self.instances += 1;
        let parent = self.frame;
        let once = locals.as_slice().into();
        let frame = Frame {
            vars: std::collections::BTreeMap::new(),
            locals: locals.into(),
            parent: Some(parent),
            prefix: format!("{}_", self.instances).into(),
            closed: false,
            once,
        };
        self.frames.push(frame);
        self.frame = self.frames.len() - 1;
        (parent, self.frames.len() - 1)
    }

    pub(crate) fn leave(&mut self, frame: (usize, usize)) {
        self.frame = frame.0;
        self.frames.truncate(frame.1);
    }

    /// A fold over what the generators of a comprehension produce.
    pub(crate) fn comprehension(
        &mut self,
        generators: &'a [Comprehension],
        first: TermId,
        stop: Stop,
        at: Span,
        each: &mut dyn FnMut(&mut Self, &Name) -> (TermId, Taint),
    ) -> (TermId, Taint) {
        let mut locals: Vec<String> = Vec::new();
        for g in generators {
            locals.extend(names::bound_by(&g.target));
        }
        let Some(outer) = generators.first() else { return (first, Taint::NONE) };
        // The first iterable is evaluated outside.
        let list = self.expr(&outer.iter);
        let list = self.items_of(list, at);
        let pc = self.pc;
        let mut inside = pc;
        loop {
            self.pc = inside;
            let before = self.noted();
            let frame = self.enter(locals.clone());
            let acc = self.fresh("acc");
            let folding = Folding { acc: &acc, stop, at };
            let (term, taint) = self.generator(generators, list.clone(), folding, each);
            self.leave(frame);
            self.pc = pc;
            // An item that ends it decides whether there is another round.
            let decided = if stop == Stop::Never { inside } else { inside.join(taint) };
            if decided == inside {
                return (self.b.let_in(vec![(acc, first)], term, at), taint);
            }
            self.forget(before);
            inside = decided;
        }
    }

    fn generator(
        &mut self,
        generators: &'a [Comprehension],
        list: Val,
        folding: Folding<'_>,
        each: &mut dyn FnMut(&mut Self, &Name) -> (TermId, Taint),
    ) -> (TermId, Taint) {
        let Folding { acc, stop, at } = folding;
        let Some((g, more)) = generators.split_first() else { return each(self, acc) };
        if g.is_async {
            self.refuse(at, "`async for` is not part of the plan language", "write `for`");
        }
        let bound = self.bound(&g.iter, self.at(&g.iter));
        let items = self.fresh("items");
        let (again, state) = (self.fresh("again"), self.fresh("state"));
        self.note_once(&items, list.term);
        self.note_loop(&state, &items);
        let inner = self.fresh("acc");
        let pc = self.pc;
        self.pc = pc.join(list.taint);
        let ty = match &list.ty {
            Ty::List(item) => (**item).clone(),
            _ => Ty::Any,
        };
        let roots = list.roots.iter().map(|(f, n, d)| (*f, n.clone(), d.saturating_add(1))).collect();
        let unique = if list.unique < UNIQUE { list.unique.saturating_sub(1) } else { UNIQUE };
        let (all, now) = (self.var(&items, at), self.field(&state, "$i", at));
        let item = self.add(Term::Index(all, now), at);
        let item = Val { term: item, ty, taint: list.taint, unique, roots, function: None };
        let mut bindings = Vec::new();
        let so_far = self.field(&state, "acc", at);
        bindings.push((inner.clone(), so_far));
        bindings.extend(self.bind_target(&g.target, item));
        let mut taint = list.taint;
        let body = self.filtered(&g.ifs, more, Folding { acc: &inner, stop, at }, &mut taint, each);
        let (now, one) = (self.field(&state, "$i", at), self.number(1, at));
        let next = self.add(Term::Prim(Prim::Add, vec![now, one]), at);
        let state_next = self.add(Term::Record(vec![("$i".into(), next), ("acc".into(), body)]), at);
        let function = self.var(&again, at);
        let round = self.b.app(function, state_next, at);
        let round = self.b.let_in(bindings, round, at);
        let (now, all) = (self.field(&state, "$i", at), self.var(&items, at));
        let length = self.add(Term::Prim(Prim::Length, vec![all]), at);
        let mut goes = self.add(Term::Prim(Prim::Lt, vec![now, length]), at);
        if stop != Stop::Never {
            let so_far = self.field(&state, "acc", at);
            let open = match stop {
                Stop::At(true) => self.add(Term::Prim(Prim::Not, vec![so_far]), at),
                Stop::Filled => {
                    let length = self.add(Term::Prim(Prim::Length, vec![so_far]), at);
                    let zero = self.number(0, at);
                    self.add(Term::Prim(Prim::Eq, vec![length, zero]), at)
                }
                _ => so_far,
            };
            let no = self.lit(Data::Bool(false), at);
            goes = self.choose(open, goes, no, at);
        }
        let done = self.var(&state, at);
        let chosen = self.choose(goes, round, done, at);
        let zero = self.lit(Num::ZERO, at);
        let so_far = self.var(acc, at);
        let start = self.add(Term::Record(vec![("$i".into(), zero), ("acc".into(), so_far)]), at);
        let result = self.repeat(bound, (again, state), chosen, start, at);
        let result = self.add(Term::Field(result, "acc".into()), at);
        self.pc = pc;
        (self.b.let_in(vec![(items, list.term)], result, at), taint)
    }

    fn filtered(
        &mut self,
        ifs: &'a [Expr],
        more: &'a [Comprehension],
        folding: Folding<'_>,
        taint: &mut Taint,
        each: &mut dyn FnMut(&mut Self, &Name) -> (TermId, Taint),
    ) -> TermId {
        let Folding { acc, at, .. } = folding;
        let Some((test, rest)) = ifs.split_first() else {
            let (term, t) = match more.first() {
                None => each(self, acc),
                Some(g) => {
                    let list = self.expr(&g.iter);
                    let list = self.items_of(list, at);
                    self.generator(more, list, folding, each)
                }
            };
            *taint = taint.join(t);
            return term;
        };
        let test = self.expr(test);
        let holds = self.truth(&test, at);
        *taint = taint.join(test.taint);
        let pc = self.pc;
        self.pc = pc.join(test.taint);
        let then = self.filtered(rest, more, folding, taint, each);
        self.pc = pc;
        let other = self.var(acc, at);
        self.choose(holds, then, other, at)
    }

    pub(crate) fn list_comprehension(
        &mut self,
        elt: &'a Expr,
        generators: &'a [Comprehension],
        at: Span,
    ) -> Val {
        let first = self.add(Term::List(Vec::new()), at);
        let (mut ty, mut unique) = (None::<Ty>, UNIQUE);
        let (term, taint) = self.comprehension(generators, first, Stop::Never, at, &mut |l, acc| {
            let v = l.argument(elt);
            unique = unique.min(l.store(&v).saturating_add(1));
            ty = Some(match ty.take() {
                Some(t) => t.join(&v.ty),
                None => v.ty.clone(),
            });
            let acc = l.var(acc, at);
            (l.add(Term::Prim(Prim::Append, vec![acc, v.term]), at), v.taint)
        });
        let ty = Ty::List(Rc::new(ty.unwrap_or(Ty::Any)));
        Val { unique: unique.min(UNIQUE), ..self.val(term, ty, taint) }
    }

    pub(crate) fn set_comprehension(
        &mut self,
        elt: &'a Expr,
        generators: &'a [Comprehension],
        at: Span,
    ) -> Val {
        let none = self.add(Term::List(Vec::new()), at);
        let first = self.py("set", vec![none], Taint::NONE, at);
        let (term, taint) = self.comprehension(generators, first, Stop::Never, at, &mut |l, acc| {
            let v = l.argument(elt);
            l.store(&v);
            let acc = l.var(acc, at);
            let args = l.add(Term::List(vec![v.term]), at);
            let named = l.add(Term::Record(Vec::new()), at);
            let changed = l.py("mut.add", vec![acc, args, named], v.taint, at);
            (l.add(Term::Field(changed, "self".into()), at), v.taint)
        });
        self.val(term, Ty::Set, taint)
    }

    pub(crate) fn dict_comprehension(
        &mut self,
        key: &'a Expr,
        value: &'a Expr,
        generators: &'a [Comprehension],
        at: Span,
    ) -> Val {
        let first = self.add(Term::Record(Vec::new()), at);
        let mut unique = UNIQUE;
        let (term, taint) = self.comprehension(generators, first, Stop::Never, at, &mut |l, acc| {
            let (k, v) = (l.argument(key), l.argument(value));
            unique = unique.min(l.store(&v).saturating_add(1));
            let taint = k.taint.join(v.taint);
            let acc = l.var(acc, at);
            (l.py("put", vec![acc, k.term, v.term], taint, at), taint)
        });
        Val { unique: unique.min(UNIQUE), ..self.val(term, Ty::Dict(None), taint) }
    }
}

/// The collection that `d.items()`, `enumerate(xs)` or the like shows while a loop runs.
fn viewed(e: &Expr) -> Option<String> {
    let Expr::Call(c) = e else { return None };
    match &*c.func {
        Expr::Attribute(a) if matches!(a.attr.as_str(), "items" | "keys" | "values") => match &*a.value {
            Expr::Name(n) => Some(n.id.to_string()),
            _ => None,
        },
        Expr::Name(n) if matches!(n.id.as_str(), "enumerate" | "reversed" | "zip") => {
            c.arguments.args.iter().find_map(|a| match a {
                Expr::Name(n) => Some(n.id.to_string()),
                a => viewed(a),
            })
        }
        _ => None,
    }
}

/// Returns true if a loop's body has a `break` or `continue` of the loop.
fn has_jump(stmts: &[Stmt]) -> bool {
    names::leaves(stmts, false)
}
