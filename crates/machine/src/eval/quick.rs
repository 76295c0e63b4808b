//! Shorter ways for what programs do most: operations on small integers without frames or copies of their operands,
//! calls of functions that are at hand, and branches of a `par` that do nothing but compute.
//!
//! Entry points: `Machine::with_atom`, `Machine::call`, `Machine::branches`. Most of what a loop computes is of this kind: `n == 0`, `n - 1`, `i < count`.
//!
//! Invariant: gives exactly what the rules give, in value, label and fuel, or nothing at all; then the rules are followed
//! from the beginning. That is sound because what it looks at does nothing but compute.

use super::{Frame, State, Strand};
use crate::value::{Body, Kind, Value};
use crate::{Failure, Machine};
use core_ir::{Bound, Data, Label, Num, Prim, Slot, Term, TermId};
use diagnostics::Span;
use std::sync::Arc;

/// How deep operations in operands are followed.
const DEPTH: u32 = 4;

/// What an operand is.
#[derive(Clone, Copy)]
enum Small {
    Int(i64),
    Bool(bool),
}

impl Machine {
    /// Gives the value of a term that needs no frame to `to`: a variable, a literal, an operation on small integers. Says
    /// whether it is one.
    ///
    /// A closure and not a result, so that a number is written once, to where it belongs: a processor that copies
    /// sixteen bytes which were just written one by one waits for them.
    #[inline(always)]
    pub(super) fn with_atom(&mut self, s: &mut Strand, id: TermId, to: impl Fn(&mut Strand, Value)) -> bool {
        let fuel = self.fuel;
        match self.small(s, id, DEPTH) {
            Some((label, Small::Int(i))) => to(s, Value::new(label, Kind::Num(Num::from(i)))),
            Some((label, Small::Bool(b))) => to(s, Value::new(label, Kind::Bool(b))),
            None => {
                self.fuel = fuel;
                match self.other_atom(s, id) {
                    Some(value) => to(s, value),
                    None => return false,
                }
            }
        }
        true
    }

    /// The value of a term that needs no frame.
    pub(super) fn atom(&mut self, s: &Strand, id: TermId) -> Option<Value> {
        let fuel = self.fuel;
        match self.small(s, id, DEPTH) {
            Some((label, Small::Int(i))) => Some(Value::new(label, Kind::Num(Num::from(i)))),
            Some((label, Small::Bool(b))) => Some(Value::new(label, Kind::Bool(b))),
            None => {
                self.fuel = fuel;
                self.other_atom(s, id)
            }
        }
    }

    /// The value of a variable, a literal, or a part of what a variable holds.
    fn other_atom(&mut self, s: &Strand, id: TermId) -> Option<Value> {
        if self.fuel == 0 {
            return None;
        }
        let (whole, steps) = match s.code.term(id) {
            Term::Var(..) | Term::Lit(_) => {
                self.fuel -= 1;
                return Some(self.leaf(s, id));
            }
            Term::Field(of, _) | Term::Fst(of) | Term::Snd(of) => (held(s, *of)?, 2),
            Term::Index(of, _) => (held(s, *of)?, 3),
            _ => return None,
        };
        let part = match (s.code.term(id), whole.body()?) {
            (Term::Field(_, name), Body::Record(fields)) => &fields.iter().find(|(n, _)| n == name)?.1,
            (Term::Fst(_), Body::Pair(first, _)) => first,
            (Term::Snd(_), Body::Pair(_, second)) => second,
            (Term::Index(_, at), Body::List(items)) => match s.code.term(*at) {
                Term::Lit(Data::Num(n)) => items.get(n.to_usize()?)?,
                _ => return None,
            },
            _ => return None,
        };
        self.fuel = self.fuel.checked_sub(steps)?;
        let label = self.lattice.join(whole.label, s.pc);
        Some(part.read(&mut self.lattice, label))
    }

    /// Applies a function that a variable holds, or one that is written there, to an argument that needs no frame; says
    /// whether it did.
    pub(super) fn call(&mut self, s: &mut Strand, id: TermId, function: TermId, argument: TermId) -> bool {
        // A step for the function, and at least one for the argument.
        let fuel = self.fuel;
        if fuel < 2 {
            return false;
        }
        self.fuel -= 1;
        let new = s.stack.len();
        let mut other = None;
        let (body, pc, from) = match s.code.term(function) {
            Term::Var(_, slot) => match s.captured(*slot) {
                Some(Value { label, kind: Kind::Node(node) }) => {
                    let Body::Closure { code, term, captures } = &node.body else {
                        self.fuel = fuel;
                        return false;
                    };
                    // INVARIANT: a closure that is a value stands for a λ.
                    let Term::Abs(abs) = code.term(*term) else { unreachable!("a closure is a function") };
                    if !Arc::ptr_eq(code, &s.code) {
                        other = Some(code.clone());
                    }
                    let (body, pc, span) = (abs.body, self.lattice.join(*label, s.pc), s.code.span(id));
                    match &captures[..] {
                        [] => {}
                        [one] => {
                            let one = one.clone();
                            s.stack.push(one);
                        }
                        _ => {
                            let node = node.clone();
                            let Body::Closure { captures, .. } = &node.body else {
                                unreachable!("looked at")
                            };
                            s.stack.extend_from_slice(captures);
                        }
                    }
                    (body, pc, span)
                }
                _ => {
                    self.fuel = fuel;
                    return false;
                }
            },
            Term::Abs(abs) => {
                let body = abs.body;
                self.capture(s, function);
                (body, s.pc, s.pc_from)
            }
            _ => {
                self.fuel = fuel;
                return false;
            }
        };
        let base = s.stack.len();
        if !self.with_atom(s, argument, |s, v| s.stack.push(v)) {
            s.stack.truncate(new);
            self.fuel = fuel;
            return false;
        }
        s.begin(other.as_ref(), (new, base), (pc, from), body);
        true
    }

    /// Copies what a function that is written here captures to the top of the stack; no closure is made.
    #[inline]
    fn capture(&mut self, s: &mut Strand, function: TermId) {
        // INVARIANT: callers have looked.
        let Term::Abs(abs) = s.code.term(function) else { unreachable!("a function") };
        for slot in &abs.captures {
            let value = match slot {
                Slot::Local(i) => s.stack[s.base + *i as usize].clone(),
                Slot::Captured(i) => s.stack[s.bottom + *i as usize].clone(),
                Slot::Global(i) => Value::new(Label::BOTTOM, Kind::Node(self.global(*i))),
            };
            s.stack.push(value);
        }
    }

    /// Applies a function that is written there to its argument.
    pub(super) fn applied(&mut self, s: &mut Strand, application: TermId, argument: Value) {
        // INVARIANT: its frame is only ever made for the application of a function that is written there.
        let Term::App(function, _) = s.code.term(application) else { unreachable!("an application") };
        let Term::Abs(abs) = s.code.term(*function) else { unreachable!("a function") };
        let (function, body) = (*function, abs.body);
        // What is above belongs to subterms that have ended.
        s.stack.truncate(s.base + s.code.locals(application));
        let new = s.stack.len();
        self.capture(s, function);
        let base = s.stack.len();
        s.stack.push(argument);
        s.begin(None, (new, base), (s.pc, s.pc_from), body);
    }

    /// Whether all branches of a `par` do nothing but compute: each is plain, or applies a function whose body is to an
    /// argument that is.
    pub(super) fn is_plain(&self, s: &Strand, branches: &[TermId]) -> bool {
        branches.iter().all(|branch| {
            s.code.is_plain(*branch)
                || match s.code.term(*branch) {
                    Term::App(function, argument) if s.code.is_plain(*argument) => {
                        match held(s, *function).and_then(Value::body) {
                            Some(Body::Closure { code, term, .. }) => {
                                matches!(code.term(*term), Term::Abs(abs) if code.is_plain(abs.body))
                            }
                            _ => false,
                        }
                    }
                    _ => false,
                }
        })
    }

    /// Goes on with a `par` whose branches are carried out one after another, right here: nobody can tell, for they ask
    /// nothing. Their results so far begin at `start`; the first error there was is `failed`.
    pub(super) fn branches(
        &mut self,
        s: &mut Strand,
        par: TermId,
        start: usize,
        failed: Option<Box<Failure>>,
    ) {
        loop {
            let done = s.parts.len() - start;
            let Term::Par(_, branches) = s.code.term(par) else { unreachable!("a `par`") };
            let Some(branch) = branches.get(done).copied() else { break };
            if !self.with_atom(s, branch, |s, v| s.parts.push(v)) {
                s.kont.push(Frame::Branch { par, start, failed, pc: s.pc, pc_from: s.pc_from });
                s.go(branch);
                return;
            }
        }
        match failed {
            Some(failure) => {
                s.parts.truncate(start);
                s.state = State::Raise(failure);
            }
            None => {
                let items = Body::List(s.parts.drain(start..).collect());
                s.give(Value::node(&mut self.lattice, s.pc, items));
            }
        }
    }

    /// Whether an error of a branch is the end of the run: nobody may catch it, and going on would show that it has not
    /// happened. The branch began at this program counter.
    pub(crate) fn is_last(&self, failure: &Failure, pc: Label) -> bool {
        failure.code.is_final() || !self.lattice.flows(failure.label, pc)
    }

    /// Applies a fixpoint whose function is `λself. λx. e` to an argument: what it does on the way, making the inner
    /// function, needs no activation and no closure. Gives the argument back if the function is another one.
    pub(super) fn unfold(
        &mut self,
        s: &mut Strand,
        f: &Value,
        next: Bound,
        function: &Value,
        argument: Value,
        span: Span,
    ) -> Option<Value> {
        let Kind::Node(node) = &function.kind else { return Some(argument) };
        let Body::Closure { code, term, captures } = &node.body else { return Some(argument) };
        let Term::Abs(outer) = code.term(*term) else { return Some(argument) };
        let Term::Abs(inner) = code.term(outer.body) else { return Some(argument) };
        let Some(fuel) = self.fuel.checked_sub(1) else { return Some(argument) };
        self.fuel = fuel;
        let mut own = Some(Value::node(&mut self.lattice, f.label, Body::Fix(next, function.clone())));
        let label = self.lattice.join(function.label, f.label);
        let new = s.stack.len();
        let last = inner.captures.iter().rposition(|slot| matches!(slot, Slot::Local(_)));
        for (i, slot) in inner.captures.iter().enumerate() {
            s.stack.extend(match slot {
                // The only local there is: itself. The last to capture it takes it.
                Slot::Local(_) if Some(i) == last => own.take(),
                Slot::Local(_) => own.clone(),
                Slot::Captured(i) => Some(captures[*i as usize].clone()),
                Slot::Global(i) => Some(Value::new(Label::BOTTOM, Kind::Node(self.global(*i)))),
            });
        }
        let base = s.stack.len();
        s.stack.push(argument);
        s.begin(Some(code), (new, base), (label, span), inner.body);
        None
    }

    fn small(&mut self, s: &Strand, id: TermId, depth: u32) -> Option<(Label, Small)> {
        self.fuel = self.fuel.checked_sub(1)?;
        let operand = match s.code.term(id) {
            Term::Var(_, slot) => s.captured(*slot)?,
            Term::Lit(Data::Num(n)) => return Some((s.pc, Small::Int(n.to_i64()?))),
            Term::Prim(prim, operands) => {
                let (prim, [a, b], depth) = (*prim, &operands[..], depth.checked_sub(1)?) else {
                    return None;
                };
                let ((l, Small::Int(a)), (m, Small::Int(b))) =
                    (self.small(s, *a, depth)?, self.small(s, *b, depth)?)
                else {
                    return None;
                };
                let result = match prim {
                    Prim::Add => Small::Int(a.checked_add(b)?),
                    Prim::Sub => Small::Int(a.checked_sub(b)?),
                    Prim::Mul => Small::Int(a.checked_mul(b)?),
                    Prim::Eq => Small::Bool(a == b),
                    Prim::Ne => Small::Bool(a != b),
                    Prim::Lt => Small::Bool(a < b),
                    Prim::Le => Small::Bool(a <= b),
                    Prim::Gt => Small::Bool(a > b),
                    Prim::Ge => Small::Bool(a >= b),
                    _ => return None,
                };
                return Some((self.lattice.join(l, m), result));
            }
            _ => return None,
        };
        let Kind::Num(n) = &operand.kind else { return None };
        let small = Small::Int(n.to_i64()?);
        Some((self.lattice.join(operand.label, s.pc), small))
    }
}

/// What a variable holds.
fn held(s: &Strand, variable: TermId) -> Option<&Value> {
    match s.code.term(variable) {
        Term::Var(_, slot) => s.captured(*slot),
        _ => None,
    }
}
