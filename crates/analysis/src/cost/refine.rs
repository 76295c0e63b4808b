//! Facts of variables where a condition holds, and where it fails.
//!
//! A condition is followed through variables that a `let` of the same function has bound, so that
//! `let n = length(xs); assert n <= 5` says how long `xs` is.

use super::Analysis;
use super::facts::{self, Change, in_field, of_length, within};
use super::values::{Env, Local, Value, field, known, prim};
use crate::range::{Range, negated};
use core_ir::{Code, Comparison, Data, Prim, Slot, Term, TermId};
use std::rc::Rc;
use std::sync::Arc;

/// Depth to which conditions and the variables in them are followed.
const MAX_FOLLOWED: u32 = 32;

/// Returns true if a term never has a value.
pub(super) fn fails(code: &Code, mut id: TermId) -> bool {
    loop {
        match code.term(id) {
            Term::Fail(_) => return true,
            Term::Let { body, .. } => id = *body,
            _ => return false,
        }
    }
}

impl Analysis<'_> {
    /// The variables where a condition holds, or fails.
    pub(super) fn assuming(
        &self,
        code: &Arc<Code>,
        condition: TermId,
        holds: bool,
        env: &Rc<Env>,
    ) -> Rc<Env> {
        let mut env = env.clone();
        self.assume_all(code, condition, holds, &mut env);
        env
    }

    /// The variables after a term that has a value: conditions whose other branch fails hold.
    pub(super) fn after(&self, code: &Arc<Code>, term: TermId, env: &mut Rc<Env>) {
        let mut last = term;
        while let Term::Let { body, .. } = code.term(last) {
            last = *body;
        }
        let Term::If(condition, a, b, _) = code.term(last) else { return };
        let holds = match (fails(code, *a), fails(code, *b)) {
            (false, true) => true,
            (true, false) => false,
            _ => return,
        };
        if last == term {
            return self.assume_all(code, *condition, holds, env);
        }
        // With the variables that are bound on the way to the condition.
        let outside = env.locals.len();
        let mut inner = env.clone();
        let mut at = term;
        while let Term::Let { bindings, body, .. } = code.term(at) {
            for (_, bound) in bindings {
                let value = self.peek(code, *bound, &inner, MAX_FOLLOWED);
                Rc::make_mut(&mut inner).locals.push(Local { value, term: Some(*bound) });
            }
            at = *body;
        }
        self.assume_all(code, *condition, holds, &mut inner);
        Rc::make_mut(&mut inner).locals.truncate(outside);
        *env = inner;
    }

    /// [`assume`](Self::assume), twice: a later part of a condition may say something of an earlier one, as
    /// in `length(xs) <= n && n <= 5`.
    fn assume_all(&self, code: &Arc<Code>, condition: TermId, holds: bool, env: &mut Rc<Env>) {
        for _ in 0..2 {
            self.assume(code, condition, holds, env, MAX_FOLLOWED);
        }
    }

    fn assume(&self, code: &Arc<Code>, id: TermId, holds: bool, env: &mut Rc<Env>, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let truth = |id: TermId| match code.term(id) {
            Term::Lit(Data::Bool(b)) => Some(*b),
            _ => None,
        };
        match code.term(id) {
            Term::Var(_, Slot::Local(i)) => {
                if let Some(term) = env.locals.get(*i as usize).and_then(|local| local.term) {
                    self.assume(code, term, holds, env, depth);
                }
            }
            Term::Check(_, _, e) => self.assume(code, *e, holds, env, depth),
            Term::Prim(Prim::Not, es) => {
                if let [e] = es[..] {
                    self.assume(code, e, !holds, env, depth);
                }
            }
            // `&&` that holds, and `||` that fails: the other branch would have had the other value.
            Term::If(c, a, b, _) => {
                let (taken, branch) = match (truth(*a), truth(*b)) {
                    (Some(value), _) if value != holds => (false, *b),
                    (_, Some(value)) if value != holds => (true, *a),
                    _ => return,
                };
                self.assume(code, *c, taken, env, depth);
                self.assume(code, branch, holds, env, depth);
            }
            Term::Prim(p, es) => {
                let ([a, b], Some(c)) = (&es[..], comparison(*p)) else { return };
                let c = if holds { c } else { negated(c) };
                let (va, vb) = (self.peek(code, *a, env, depth), self.peek(code, *b, env, depth));
                let (ra, rb) = (facts::range(&va), facts::range(&vb));
                // Only numbers compare with numbers.
                let number = facts::is_number(&va) || facts::is_number(&vb);
                let below = |r: &Range, strict: bool| Range {
                    high: r.high.clone().map(|(n, s)| (n, s || strict)),
                    ..Range::default()
                };
                let above = |r: &Range, strict: bool| Range {
                    low: r.low.clone().map(|(n, s)| (n, s || strict)),
                    ..Range::default()
                };
                let (of_a, of_b) = match c {
                    Comparison::Lt => (below(&rb, true), above(&ra, true)),
                    Comparison::Le => (below(&rb, false), above(&ra, false)),
                    Comparison::Gt => (above(&rb, true), below(&ra, true)),
                    Comparison::Ge => (above(&rb, false), below(&ra, false)),
                    Comparison::Eq => (rb, ra),
                    Comparison::Ne => return,
                };
                self.narrow(code, *a, &of_a, number, env, depth);
                self.narrow(code, *b, &of_b, number, env, depth);
            }
            _ => {}
        }
    }

    /// The value of a term without calls, as far as it is known.
    fn peek(&self, code: &Arc<Code>, id: TermId, env: &Rc<Env>, depth: u32) -> Value {
        let Some(depth) = depth.checked_sub(1) else { return Value::Unknown };
        match code.term(id) {
            Term::Var(_, Slot::Local(i)) => {
                env.locals.get(*i as usize).map_or(Value::Unknown, |local| local.value.clone())
            }
            Term::Var(_, Slot::Captured(i)) => {
                env.captures.get(*i as usize).cloned().unwrap_or(Value::Unknown)
            }
            Term::Lit(d @ Data::Num(_)) => known(d),
            Term::Field(e, name) => field(&self.peek(code, *e, env, depth), name),
            Term::Check(_, _, e) => self.peek(code, *e, env, depth),
            Term::Prim(p @ (Prim::Length | Prim::Add | Prim::Sub | Prim::Neg), es) => {
                let values: Vec<Value> = es.iter().map(|e| self.peek(code, *e, env, depth)).collect();
                prim(*p, &values)
            }
            _ => Value::Unknown,
        }
    }

    /// Restricts what a term reads: its value is in the range if it is a number, and is one with `number`.
    fn narrow(
        &self,
        code: &Arc<Code>,
        id: TermId,
        range: &Range,
        number: bool,
        env: &mut Rc<Env>,
        depth: u32,
    ) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match code.term(id) {
            Term::Var(..) | Term::Field(..) => {
                self.update(code, id, &|v| within(v, range, number), env, depth);
                if let Term::Var(_, Slot::Local(i)) = code.term(id)
                    && let Some(term) = env.locals.get(*i as usize).and_then(|local| local.term)
                {
                    self.narrow(code, term, range, number, env, depth);
                }
            }
            Term::Check(_, _, e) => self.narrow(code, *e, range, number, env, depth),
            Term::Prim(p, es) => match (p, &es[..]) {
                (Prim::Length, [e]) => self.update(code, *e, &|v| of_length(v, range), env, depth),
                (Prim::Add, [a, b]) if number => {
                    let (va, vb) = (self.peek(code, *a, env, depth), self.peek(code, *b, env, depth));
                    self.narrow(code, *a, &range.minus(&facts::range(&vb)), true, env, depth);
                    self.narrow(code, *b, &range.minus(&facts::range(&va)), true, env, depth);
                }
                (Prim::Sub, [a, b]) => {
                    let (va, vb) = (self.peek(code, *a, env, depth), self.peek(code, *b, env, depth));
                    self.narrow(code, *a, &range.plus(&facts::range(&vb)), true, env, depth);
                    self.narrow(code, *b, &facts::range(&va).minus(range), true, env, depth);
                }
                (Prim::Neg, [e]) => self.narrow(code, *e, &range.negated(), true, env, depth),
                _ => {}
            },
            _ => {}
        }
    }

    /// Changes what is known of a variable, or of a field of one, that a term reads.
    fn update(&self, code: &Arc<Code>, id: TermId, change: &Change<'_>, env: &mut Rc<Env>, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match code.term(id) {
            Term::Var(_, Slot::Local(i)) => {
                let i = *i as usize;
                let Some(local) = env.locals.get(i) else { return };
                let term = local.term;
                if let Some(new) = change(&local.value) {
                    Rc::make_mut(env).locals[i].value = new;
                }
                if let Some(term) = term {
                    self.update(code, term, change, env, depth);
                }
            }
            Term::Var(_, Slot::Captured(i)) => {
                let i = *i as usize;
                if let Some(new) = env.captures.get(i).and_then(change) {
                    Rc::make_mut(env).captures[i] = new;
                }
            }
            Term::Field(e, name) => self.update(code, *e, &|v| in_field(v, name, change), env, depth),
            Term::Check(_, _, e) => self.update(code, *e, change, env, depth),
            _ => {}
        }
    }
}

fn comparison(p: Prim) -> Option<Comparison> {
    Some(match p {
        Prim::Lt => Comparison::Lt,
        Prim::Le => Comparison::Le,
        Prim::Gt => Comparison::Gt,
        Prim::Ge => Comparison::Ge,
        Prim::Eq => Comparison::Eq,
        Prim::Ne => Comparison::Ne,
        _ => return None,
    })
}
