//! Loops in place: rounds of a fixpoint that do nothing but decide by small numbers and call themselves again.
//!
//! Entry point: `Machine::rounds`. `fix[n] (λself. λx. if c then e else self e)` is how programs count, wait and look for something.
//!
//! Invariant: as in [`super::quick`]: gives exactly what the rules give, in value, label and fuel. A round that is not of
//! this kind is begun as the rules say, from its beginning; those before it need not be done again.

use super::Strand;
use super::quick::{DEPTH, Env, Small, itself, unfolds};
use crate::Machine;
use crate::value::{Kind, Value};
use core_ir::{Bound, Code, Label, Operand, Simple, Slot, Term, TermId};
use diagnostics::Span;
use smallvec::SmallVec;
use std::sync::Arc;

/// How many rounds are carried out in one step of a strand.
const MOST: u32 = 64;

/// What came of carrying out rounds in place.
pub(super) enum Rounds {
    /// The last one gave this value.
    Ended(Value),
    /// The activation of the next one has begun.
    GoesOn,
    /// Nothing was done.
    Refused,
}

impl Machine {
    /// Applies a fixpoint that a variable holds, if its function is `λself. λx. e`, to an integer or truth value. Does `first` before an
    /// activation begins. Uses fuel even if it did nothing.
    #[inline]
    pub(super) fn rounds(
        &mut self,
        s: &mut Strand,
        slot: Slot,
        span: Span,
        argument: (Label, Small),
        first: impl FnOnce(&mut Strand),
    ) -> Rounds {
        let Some(held) = s.captured(slot) else { return Rounds::Refused };
        let (Some(unfolding), Kind::Node(node)) = (unfolds(held), &held.kind) else { return Rounds::Refused };
        let mut left = match unfolding.left {
            Bound::Finite(0) => return Rounds::Refused,
            Bound::Finite(left) => left,
            Bound::Infinite => u64::MAX,
        };
        let Some(fuel) = self.fuel.checked_sub(1) else { return Rounds::Refused };
        self.fuel = fuel;
        let (code, inner): (&Arc<Code>, _) = (unfolding.code, unfolding.inner);
        // What the inner function captures: itself, and what the outer one has captured.
        let mut captured: SmallVec<[Value; 2]> = SmallVec::with_capacity(inner.captures.len());
        let own = self.lattice.join(held.label, s.pc);
        let mut place = None;
        for (i, slot) in inner.captures.iter().enumerate() {
            captured.push(match slot {
                Slot::Local(_) => {
                    place = Some(i);
                    itself(own, node.clone())
                }
                Slot::Captured(i) => unfolding.captures[*i as usize].clone(),
                Slot::Global(i) => Value::new(Label::BOTTOM, Kind::Node(self.global(*i))),
            });
        }
        let mut pc = self.lattice.join(unfolding.function.label, own);
        let mut from = if pc == s.pc { s.pc_from } else { span };
        let mut locals = [argument.1.value(argument.0)];
        'rounds: for _ in 0..MOST {
            let before = self.fuel;
            let mut at = Env { code, captured: &captured, locals: &locals, pc };
            let (mut term, mut by) = (inner.body, from);
            let value = loop {
                match code.term(term) {
                    Term::If(condition, then, otherwise, _) => {
                        let Some(fuel) = self.fuel.checked_sub(1) else { break None };
                        self.fuel = fuel;
                        let Some((raised, yes)) = self.at_branch(&at, *condition, DEPTH) else { break None };
                        if raised != at.pc {
                            (at.pc, by) = (raised, code.span(term));
                        }
                        term = if yes { *then } else { *otherwise };
                    }
                    Term::App(function, next) if place.is_some_and(|i| is_captured(code, *function, i)) => {
                        // A step for the call, one for the variable, and one for the unfolding.
                        let (Some(fuel), Some(place)) =
                            (self.fuel.checked_sub(3).filter(|_| left > 1), place)
                        else {
                            break None;
                        };
                        self.fuel = fuel;
                        let Some((label, small)) = self.small(&at, *next, DEPTH) else { break None };
                        let raised = at.pc;
                        left -= 1;
                        locals[0] = small.value(label);
                        let own = &mut captured[place];
                        own.label = self.lattice.join(own.label, raised);
                        own.unfold();
                        pc = self.lattice.join(unfolding.function.label, own.label);
                        from = if pc == raised { by } else { code.span(term) };
                        continue 'rounds;
                    }
                    _ => break self.atom_in(&at, term, DEPTH),
                }
            };
            match value {
                Some(value) => return Rounds::Ended(value),
                None => {
                    self.fuel = before;
                    break;
                }
            }
        }
        let (body, other) = (inner.body, (!Arc::ptr_eq(code, &s.code)).then(|| code.clone()));
        first(s);
        let new = s.stack.len();
        s.stack.extend(captured);
        let base = s.stack.len();
        s.stack.extend(locals);
        s.begin(other.as_ref(), (new, base), (pc, from), body);
        Rounds::GoesOn
    }
}

/// Whether a term is the variable that is captured at this place.
#[inline]
fn is_captured(code: &Code, term: TermId, place: usize) -> bool {
    matches!(code.simple(term), Simple::Operand(Operand::Captured(i)) if *i as usize == place)
}
