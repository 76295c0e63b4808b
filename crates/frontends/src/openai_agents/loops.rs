//! Loops of a function in which agents are run, as terms: `fix` over a record of the names that a turn
//! changes.

use super::block::{AT, Env, Following, GIVEN, LIST, Rest, STATE, Said, Turn};
use super::function::{Frame, FunctionLowering, called, core};
use crate::scan::{awaited, dotted, scan, scan_expr};
use core_ir::{Bound, Data, IfSugar, Name, Num, Prim, Term, TermId};
use diagnostics::Span;
use frontend_kit::emit::{LoopBound, codes};
use frontend_kit::kit::Kit;
use python::PyKind;
use ruff_python_ast::{CmpOp, Expr, Number, Operator, Stmt, StmtFor, StmtWhile};
use std::collections::BTreeSet;

/// More than any list holds here.
const MAX_ITEMS: u64 = 1_000_000;

/// A loop.
struct Over<'w> {
    at: Span,
    body: &'w [Stmt],
    orelse: &'w [Stmt],
    /// End of the loop in its file.
    end: u32,
    /// The name of an item, and what it goes over.
    items: Option<(&'w Expr, &'w Expr)>,
    test: Option<&'w Expr>,
    bound: LoopBound,
}

impl<'w> FunctionLowering<'_, 'w> {
    pub(super) fn while_loop(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        (s, before): (&'w StmtWhile, &'w [Stmt]),
        following: Following<'_, 'w>,
        said: &mut Said,
    ) -> Option<TermId> {
        let endless = matches!(&*s.test, Expr::BooleanLiteral(b) if b.value);
        let asks = scan(&s.body).calls.iter().any(|c| called(c) == "input");
        let bound = match self.counter(f, s, before) {
            Some(n) => LoopBound::written(Bound::Finite(n), Some(self.at(f, &*s.test))),
            None if asks => LoopBound::unknown("the answer to `input()` decides whether the loop continues"),
            None if endless => LoopBound::none("`while True` runs until a statement in it leaves the loop"),
            None => LoopBound::none("`while` runs as long as its condition is true"),
        };
        let test = (!endless).then_some(&*s.test);
        let over = Over {
            at: self.at(f, s),
            body: &s.body,
            orelse: &s.orelse,
            end: s.range.end().into(),
            items: None,
            test,
            bound,
        };
        self.repeated(kit, f, env, over, following, said)
    }

    /// Returns the maximal number of iterations of a loop that compares a counter which every iteration
    /// increments: `while n < 3: n += 1`.
    fn counter(&self, f: &Frame<'w>, s: &StmtWhile, before: &[Stmt]) -> Option<u64> {
        // Of several tests that must hold, one is enough.
        let tests: Vec<&Expr> = match &*s.test {
            Expr::BoolOp(b) if b.op.is_and() => b.values.iter().collect(),
            other => vec![other],
        };
        tests.into_iter().find_map(|t| self.counted(f, t, s, before))
    }

    fn counted(&self, f: &Frame<'w>, test: &Expr, s: &StmtWhile, before: &[Stmt]) -> Option<u64> {
        let Expr::Compare(c) = test else { return None };
        let ([op], [limit]) = (&c.ops[..], &c.comparators[..]) else { return None };
        let name = dotted(&c.left)?;
        let limit = self.whole_number(f, limit)?;
        let turns = match op {
            CmpOp::Lt => limit,
            CmpOp::LtE => limit.checked_add(1)?,
            _ => return None,
        };
        // It begins at a number, which nothing changes before the loop.
        let begin = before.iter().rev().find_map(|stmt| {
            let found = scan(std::slice::from_ref(stmt));
            let value = found.assigned.iter().find(|(n, ..)| *n == name)?;
            Some(match stmt {
                Stmt::Assign(_) | Stmt::AnnAssign(_) => value.1.and_then(|v| self.whole_number(f, v)),
                _ => None,
            })
        })??;
        let found = scan(&s.body);
        let times = found.assigned.iter().filter(|(n, ..)| *n == name).count();
        let at = s.body.iter().position(|stmt| {
            matches!(stmt, Stmt::AugAssign(a) if a.op == Operator::Add && dotted(&a.target).as_deref() == Some(&name) && self.whole_number(f, &a.value).is_some_and(|n| n > 0))
        })?;
        // Nothing in the turn goes on to the next before it is counted.
        let skipped = s.body[..at].iter().any(|stmt| scan(std::slice::from_ref(stmt)).continues);
        (times == 1 && !skipped).then(|| u64::try_from(turns.saturating_sub(begin)).unwrap_or(0))
    }

    fn whole_number(&self, f: &Frame<'w>, expr: &Expr) -> Option<i64> {
        match expr {
            Expr::NumberLiteral(n) => match &n.value {
                Number::Int(i) => i.as_i64(),
                _ => None,
            },
            Expr::Name(_) | Expr::Attribute(_) => {
                let value = self.fixed(f, expr)?;
                match value.kind {
                    PyKind::Int(n) => Some(n),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn for_loop(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        s: &'w StmtFor,
        following: Following<'_, 'w>,
        said: &mut Said,
    ) -> Option<TermId> {
        let found = scan(&s.body);
        let acts = self.acts(f, &found);
        // What is shown while an agent runs.
        let streamed = matches!(&*s.iter, Expr::Call(c) if called(c) == "stream_events");
        if s.is_async && (!acts || streamed && !self.runs_in(f, &found)) {
            return None;
        }
        let bound = match self.turns(f, &s.iter) {
            Some(n) => LoopBound::written(Bound::Finite(n), Some(self.at(f, &*s.iter))),
            None if acts => LoopBound::unknown("one iteration for each item of a computed iterable"),
            None => LoopBound::written(Bound::Finite(MAX_ITEMS), None),
        };
        let items = Some((&*s.target, &*s.iter));
        let over = Over {
            at: self.at(f, s),
            body: &s.body,
            orelse: &s.orelse,
            end: s.range.end().into(),
            items,
            test: None,
            bound,
        };
        self.repeated(kit, f, env, over, following, said)
    }

    /// Returns the number of items of a literal.
    pub(super) fn turns(&self, f: &Frame<'w>, iter: &Expr) -> Option<u64> {
        let count = |n: usize| u64::try_from(n).ok();
        match iter {
            Expr::List(l) => count(l.elts.len()).filter(|_| !l.elts.iter().any(Expr::is_starred_expr)),
            Expr::Tuple(l) => count(l.elts.len()).filter(|_| !l.elts.iter().any(Expr::is_starred_expr)),
            Expr::Call(call) => match (called(call), &call.arguments.args[..]) {
                ("range", [to]) => u64::try_from(self.whole_number(f, to)?.max(0)).ok(),
                ("range", [from, to]) => {
                    let turns = self.whole_number(f, to)?.checked_sub(self.whole_number(f, from)?)?;
                    u64::try_from(turns.max(0)).ok()
                }
                ("enumerate", [of, ..]) => self.turns(f, of),
                _ => None,
            },
            Expr::Name(_) | Expr::Attribute(_) => {
                let value = self.fixed(f, iter)?;
                let PyKind::List(id) = value.kind else { return None };
                let list = self.reader.world.list(id);
                count(list.items.len()).filter(|_| list.open.is_none() && !list.items.iter().any(|i| i.maybe))
            }
            _ => None,
        }
    }

    fn repeated(
        &self,
        kit: &mut Kit<'_>,
        f: &Frame<'w>,
        env: &mut Env,
        over: Over<'w>,
        following: Following<'_, 'w>,
        said: &mut Said,
    ) -> Option<TermId> {
        let Over { at, body, orelse, end, items, test, bound } = over;
        let Following { after, rest } = following;
        let found = scan(body);
        let all = self.assigned(f, &found);
        let mut names: Vec<String> = self.needed(f, &all, end, rest);
        // What a turn reads that another one left.
        names.extend(
            all.iter().filter(|n| env.contains(*n) && !names.contains(n)).cloned().collect::<Vec<_>>(),
        );
        let acts = self.acts(f, &found) || test.is_some_and(|t| self.acts(f, &scan_expr(t)));
        let shown = names.iter().all(|n| self.needed(f, &BTreeSet::from([n.clone()]), end, rest).is_empty());
        if !acts && !found.leaves && shown {
            return None;
        }
        if !orelse.is_empty() {
            let message = "the `else` of a loop is not compiled";
            let unknown = kit.undecided(codes::NOT_COMPILED, message.into(), self.at(f, &orelse[0]));
            said.push(("_".into(), unknown));
        }
        let turn = Turn { names, counted: items.is_some(), returns: found.leaves };
        let mut inner = env.clone();
        inner.extend(turn.names.iter().cloned());
        let begins = self.state(
            kit,
            &Turn { counted: false, names: turn.names.clone(), returns: turn.returns },
            env,
            None,
            false,
            at,
        );
        let begins = match (items.is_some(), kit.b.term(begins).clone()) {
            (true, Term::Record(mut fields)) => {
                let zero = kit.b.lit(Num::from(0i64), at);
                fields.push((AT.into(), zero));
                kit.b.add(Term::Record(fields), at)
            }
            _ => begins,
        };
        let list = items.map(|(target, iter)| (target, self.listed(kit, f, env, iter)));
        let mut step: Said = Vec::new();
        let state: Name = STATE.into();
        self.fields(kit, &turn.names, &state, at, &mut step);
        if turn.counted {
            let s = kit.b.var(STATE, at);
            step.push((AT.into(), kit.b.add(Term::Field(s, AT.into()), at)));
        }
        let mut first: Said = Vec::new();
        let mut then = inner.clone();
        if let Some((target, (_, numbered))) = &list {
            self.item(kit, target, *numbered, &mut then, at, &mut first);
        }
        let goes_on = match (&list, test) {
            (Some(_), _) => {
                let (index, list) = (kit.b.var(AT, at), kit.b.var(LIST, at));
                let count = kit.b.add(Term::Prim(Prim::Length, vec![list]), at);
                Some(kit.b.add(Term::Prim(Prim::Lt, vec![index, count]), at))
            }
            (None, Some(test)) => Some(self.test(kit, f, &mut inner.clone(), test)),
            (None, None) => None,
        };
        let term = self.block(kit, f, then, body, &Rest::Turn(&turn, rest));
        let term = kit.b.let_in(first, term, at);
        let term = match goes_on {
            Some(test) => {
                let over = self.state(kit, &turn, &inner, None, false, at);
                kit.b.add(Term::If(test, term, over, IfSugar::Plain), at)
            }
            None => term,
        };
        let term = kit.b.let_in(step, term, at);
        let term = kit.b.abs(STATE, None, term, at);
        let term = kit.b.abs("self", None, term, at);
        let fix_at = bound.span.unwrap_or(at);
        let fix = kit.fix(bound, term, fix_at);
        let mut ran = kit.b.app(fix, begins, at);
        if let Some((_, (list, _))) = list {
            ran = kit.b.let_in(vec![(LIST.into(), list)], ran, at);
        }
        let left = kit.b.fresh("loop");
        said.push((left.clone(), ran));
        self.fields(kit, &turn.names, &left, at, said);
        env.extend(turn.names.iter().cloned());
        if !turn.returns {
            return None;
        }
        let given = |kit: &mut Kit<'_>| {
            let left = kit.b.var(left.clone(), at);
            kit.b.add(Term::Field(left, GIVEN.into()), at)
        };
        let (of, nothing) = (given(kit), kit.b.lit(Data::list(Vec::new()), at));
        let goes_on = kit.b.add(Term::Prim(Prim::Eq, vec![of, nothing]), at);
        let on = self.block(kit, f, env.clone(), after, rest);
        let (of, zero) = (given(kit), kit.b.lit(Num::from(0i64), at));
        let value = kit.b.add(Term::Index(of, zero), at);
        let ends = self.give(kit, f, env, Some(value), rest, at);
        Some(kit.b.add(Term::If(goes_on, on, ends, IfSugar::Plain), at))
    }

    /// Lowers the iterable of a loop as a list. Returns its first index, too, for `enumerate`.
    fn listed(&self, kit: &mut Kit<'_>, f: &Frame<'w>, env: &mut Env, iter: &Expr) -> (TermId, Option<i64>) {
        let at = self.at(f, iter);
        if let Expr::Call(call) = awaited(iter) {
            match (called(call), &call.arguments.args[..]) {
                ("range", [to]) => {
                    let (zero, to) = (kit.b.lit(Num::from(0i64), at), self.value(kit, f, env, to));
                    return (kit.b.add(Term::Prim(Prim::Range, vec![zero, to]), at), None);
                }
                ("range", [from, to]) => {
                    let (from, to) = (self.value(kit, f, env, from), self.value(kit, f, env, to));
                    return (kit.b.add(Term::Prim(Prim::Range, vec![from, to]), at), None);
                }
                ("enumerate", [of, rest @ ..]) => {
                    let start = call.arguments.find_keyword("start").map(|k| &k.value).or(rest.first());
                    let start = start.map_or(Some(0), |s| self.whole_number(f, s));
                    if let Some(start) = start {
                        return (self.value(kit, f, env, of), Some(start));
                    }
                }
                _ => {}
            }
        }
        (self.value(kit, f, env, iter), None)
    }

    /// Names the item of a turn.
    fn item(
        &self,
        kit: &mut Kit<'_>,
        target: &Expr,
        numbered: Option<i64>,
        env: &mut Env,
        at: Span,
        said: &mut Said,
    ) {
        let (list, index) = (kit.b.var(LIST, at), kit.b.var(AT, at));
        let item = kit.b.add(Term::Index(list, index), at);
        let (number, target) = match (numbered, target) {
            (Some(start), Expr::Tuple(t)) if t.elts.len() == 2 => (Some((start, &t.elts[0])), &t.elts[1]),
            _ => (None, target),
        };
        if let Some((start, name)) = number
            && let Some(name) = dotted(name)
        {
            let (index, start) = (kit.b.var(AT, at), kit.b.lit(Num::from(start), at));
            said.push((core(&name), kit.b.add(Term::Prim(Prim::Add, vec![index, start]), at)));
            env.insert(name);
        }
        self.take(kit, target, item, env, at, said);
    }
}
