//! Shorter ways for what programs do most: operations on small integers without frames or copies of their operands,
//! calls of functions that are at hand, and branches of a `par` that do nothing but compute.
//!
//! Entry points: `Machine::add_small`, `Machine::add_atom`, `Machine::call`, `Machine::branches`. Most of what a loop computes is of this kind: `n == 0`, `n - 1`, `i < count`.
//!
//! Invariant: gives exactly what the rules give, in value, label and fuel, or nothing at all; then the rules are followed
//! from the beginning. That is sound because what it looks at does nothing but compute.

use super::rounds::Rounds;
use super::{Counted, Frame, State, Strand};
use crate::once::{self, Shared, shared};
use crate::value::{Body, Kind, Node, Ref, Value};
use crate::{Conversation, Failure, Machine};
use core_ir::{Abs, Bound, Code, Data, Label, Num, Operand, Prim, Simple, Slot, Term, TermId};
use diagnostics::Span;
use std::sync::Arc;

/// How deep terms in operands, arguments and branches are followed, functions that are applied there included.
pub(super) const DEPTH: u32 = 8;

/// The steps of `(r.[0], r.[1])`.
const PAIRED: u64 = 1 + 2 * 3;

/// The steps of an operation: one for itself, and one for each operand.
const OPERATION: u64 = 3;

/// The steps of a function applied to an operand whose body is an operation: one for the application, one for the function and one for what it is applied to.
const APPLIED: u64 = 3 + OPERATION;

/// What an operand is.
#[derive(Clone, Copy)]
pub(super) enum Small {
    Int(i64),
    Bool(bool),
}

impl Small {
    /// What data is, if that is one of these.
    #[inline]
    pub(super) fn of(data: &Data) -> Option<Small> {
        match data {
            Data::Num(n) => Some(Small::Int(n.to_i64()?)),
            Data::Bool(b) => Some(Small::Bool(*b)),
            _ => None,
        }
    }

    /// Writes the value to the end of these; see [`once`].
    #[inline(always)]
    pub(super) fn add_to(self, parts: &mut Vec<Value>, label: Label) {
        match self {
            Small::Int(i) => once::push(parts, || Value::new(label, Kind::Num(Num::from(i)))),
            Small::Bool(b) => once::push(parts, || Value::new(label, Kind::Bool(b))),
        }
    }

    #[inline]
    pub(super) fn data(self) -> Data {
        match self {
            Small::Int(i) => Data::Num(Num::from(i)),
            Small::Bool(b) => Data::Bool(b),
        }
    }

    #[inline]
    pub(super) fn value(self, label: Label) -> Value {
        match self {
            Small::Int(i) => Value::new(label, Kind::Num(Num::from(i))),
            Small::Bool(b) => Value::new(label, Kind::Bool(b)),
        }
    }
}

/// Where a term is evaluated: the activation of a strand, or that of a function which is carried out in place.
#[derive(Clone, Copy)]
pub(super) struct Env<'a> {
    pub(super) code: &'a Code,
    pub(super) captured: &'a [Value],
    pub(super) locals: &'a [Value],
    pub(super) pc: Label,
}

impl<'a> Env<'a> {
    #[inline]
    pub(super) fn of(s: &'a Strand) -> Env<'a> {
        let (captured, locals) = s.stack[s.bottom..].split_at(s.base - s.bottom);
        Env { code: &s.code, captured, locals, pc: s.pc }
    }

    /// The same, and the state of the strand, to be written to.
    #[inline]
    fn beside(s: &'a mut Strand) -> (Env<'a>, &'a mut State) {
        let (captured, locals) = s.stack[s.bottom..].split_at(s.base - s.bottom);
        (Env { code: &s.code, captured, locals, pc: s.pc }, &mut s.state)
    }

    /// The same, and the parts of what is being evaluated.
    #[inline]
    fn beside_parts(s: &'a mut Strand) -> (Env<'a>, &'a mut Vec<Value>) {
        let (captured, locals) = s.stack[s.bottom..].split_at(s.base - s.bottom);
        (Env { code: &s.code, captured, locals, pc: s.pc }, &mut s.parts)
    }

    /// The same, and the conversation.
    #[inline]
    pub(super) fn beside_conversation(s: &'a mut Strand) -> (Env<'a>, &'a mut Conversation) {
        let (captured, locals) = s.stack[s.bottom..].split_at(s.base - s.bottom);
        (Env { code: &s.code, captured, locals, pc: s.pc }, &mut s.conversation)
    }

    /// What a variable holds.
    #[inline]
    pub(super) fn held(&self, variable: TermId) -> Option<&'a Value> {
        match self.code.term(variable) {
            Term::Var(_, Slot::Local(i)) => self.locals.get(*i as usize),
            Term::Var(_, Slot::Captured(i)) => self.captured.get(*i as usize),
            _ => None,
        }
    }

    /// A function that a variable holds, or one that is written there and captures nothing, if its body looks as if it could
    /// be carried out in place: its code, what it captured, its body, and the label of the function.
    #[inline]
    fn function(&self, function: TermId) -> Option<(&'a Code, &'a [Value], TermId, Label)> {
        let (code, captured, body, label): (&Code, &[Value], _, _) = match self.code.term(function) {
            Term::Abs(abs) if abs.captures.is_empty() => (self.code, &[], abs.body, Label::BOTTOM),
            Term::Var(..) => {
                let Value { label, kind: Kind::Node(node) } = self.held(function)? else { return None };
                let Body::Closure { code, term, captures } = &node.body else { return None };
                // INVARIANT: a closure that is a value stands for a λ.
                let Term::Abs(abs) = code.term(*term) else { unreachable!("a closure is a function") };
                (code, captures, abs.body, *label)
            }
            _ => return None,
        };
        matches!(
            code.term(body),
            Term::Var(..)
                | Term::Lit(_)
                | Term::Prim(..)
                | Term::If(..)
                | Term::App(..)
                | Term::Field(..)
                | Term::Index(..)
                | Term::Fst(_)
                | Term::Snd(_)
        )
        .then_some((code, captured, body, label))
    }
}

impl Machine {
    /// Gives the value of a term that needs no frame to `to`: a variable, a literal, an operation on small integers, a function
    /// of these. Says whether it is one.
    ///
    /// A closure and not a result, so that a number is written once, to where it belongs: a processor that copies
    /// sixteen bytes which were just written one by one waits for them.
    #[inline(always)]
    fn atom_to(&mut self, at: &Env<'_>, id: TermId, mut to: impl FnMut(Value)) -> bool {
        let fuel = self.fuel;
        match self.small(at, id, DEPTH) {
            Some((label, Small::Int(i))) => to(Value::new(label, Kind::Num(Num::from(i)))),
            Some((label, Small::Bool(b))) => to(Value::new(label, Kind::Bool(b))),
            None => {
                self.fuel = fuel;
                match self.other_atom(at, id, DEPTH) {
                    Some(value) => to(value),
                    None => {
                        self.fuel = fuel;
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Goes on with the value of a term that needs no frame; says whether it is one.
    #[inline]
    pub(super) fn give_atom(&mut self, s: &mut Strand, id: TermId) -> bool {
        let (at, state) = Env::beside(s);
        // The state was taken when this step began, so there is nothing to drop.
        self.atom_to(&at, id, |v| std::mem::forget(std::mem::replace(state, State::Return(v))))
    }

    /// Adds the value of a term that needs no frame to the parts; says whether it is one.
    #[inline(never)]
    pub(super) fn add_atom(&mut self, s: &mut Strand, id: TermId) -> bool {
        let (at, parts) = Env::beside_parts(s);
        self.atom_to(&at, id, |v| parts.push(v))
    }

    /// Adds small parts of a record, list or primitive, up to one that is not: that one is the result. Those that there are begin
    /// at `start`.
    #[inline(always)]
    pub(super) fn add_small(&mut self, s: &mut Strand, term: TermId, start: usize) -> Option<TermId> {
        let (at, parts) = Env::beside_parts(s);
        let done = parts.len() - start;
        match at.code.term(term) {
            Term::Record(fields) => self.add_small_of(&at, fields.get(done..)?, |f| f.1, parts),
            Term::List(terms) | Term::Prim(_, terms) => {
                self.add_small_of(&at, terms.get(done..)?, |t| *t, parts)
            }
            _ => unreachable!("a term with parts"),
        }
    }

    #[inline(always)]
    fn add_small_of<T>(
        &mut self,
        at: &Env<'_>,
        terms: &[T],
        of: impl Fn(&T) -> TermId,
        parts: &mut Vec<Value>,
    ) -> Option<TermId> {
        parts.reserve(terms.len());
        for term in terms {
            let id = of(term);
            let fuel = self.fuel;
            let small = match at.code.simple(id) {
                Simple::Operand(operand) if fuel > 0 => {
                    self.fuel = fuel - 1;
                    self.operand(at, *operand)
                }
                Simple::Operation(prim, a, b) => self.operation(at, *prim, *a, *b, OPERATION, DEPTH),
                Simple::Applied(prim, a, b) => self.operation(at, *prim, *a, *b, APPLIED, DEPTH),
                Simple::Call(..) | Simple::Other => self.small_term(at, id, DEPTH),
                _ => None,
            };
            match small {
                Some((label, small)) => small.add_to(parts, label),
                None => {
                    self.fuel = fuel;
                    return Some(id);
                }
            }
        }
        None
    }

    /// The value of a term that needs no frame.
    #[inline]
    pub(super) fn atom(&mut self, s: &Strand, id: TermId) -> Option<Value> {
        self.atom_in(&Env::of(s), id, DEPTH)
    }

    pub(super) fn atom_in(&mut self, at: &Env<'_>, id: TermId, depth: u32) -> Option<Value> {
        let fuel = self.fuel;
        if let Some((label, small)) = self.small(at, id, depth) {
            return Some(small.value(label));
        }
        self.fuel = fuel;
        let value = self.other_atom(at, id, depth);
        if value.is_none() {
            self.fuel = fuel;
        }
        value
    }

    /// The truth value of a condition that needs no frame, and its label.
    pub(super) fn condition(&mut self, s: &Strand, id: TermId) -> Option<(Label, bool)> {
        let fuel = self.fuel;
        if let Some((label, Small::Bool(b))) = self.small(&Env::of(s), id, DEPTH) {
            return Some((label, b));
        }
        self.fuel = fuel;
        None
    }

    /// The value of a variable, a literal, a part of what a variable holds, or what a function or an `if` makes of these. Uses fuel even
    /// if it is none.
    fn other_atom(&mut self, at: &Env<'_>, id: TermId, depth: u32) -> Option<Value> {
        let (whole, steps) = match at.code.term(id) {
            Term::Var(..) | Term::Lit(_) => {
                self.fuel = self.fuel.checked_sub(1)?;
                return Some(self.leaf(at, id));
            }
            Term::Field(of, _) | Term::Fst(of) | Term::Snd(of) => (at.held(*of)?, 2),
            Term::Index(of, _) => (at.held(*of)?, 3),
            Term::App(function, argument) => {
                let depth = depth.checked_sub(1)?;
                let (code, captured, body, label) = at.function(*function)?;
                self.fuel = self.fuel.checked_sub(2)?;
                let locals = [self.atom_in(at, *argument, depth)?];
                let pc = self.lattice.join(label, at.pc);
                return self.atom_in(&Env { code, captured, locals: &locals, pc }, body, depth);
            }
            Term::If(condition, then, otherwise, _) => {
                let depth = depth.checked_sub(1)?;
                self.fuel = self.fuel.checked_sub(1)?;
                let pc = self.at_branch(at, *condition, depth)?;
                let branch = if pc.1 { *then } else { *otherwise };
                return self.atom_in(&Env { pc: pc.0, ..*at }, branch, depth);
            }
            _ => return None,
        };
        let part = match (at.code.term(id), whole.body()?) {
            (Term::Field(_, name), Body::Record(fields)) => &fields.iter().find(|(n, _)| n == name)?.1,
            (Term::Fst(_), Body::Pair(first, _)) => first,
            (Term::Snd(_), Body::Pair(_, second)) => second,
            (Term::Index(_, number), Body::List(items)) => match at.code.term(*number) {
                Term::Lit(Data::Num(n)) => items.get(n.to_usize()?)?,
                _ => return None,
            },
            _ => return None,
        };
        self.fuel = self.fuel.checked_sub(steps)?;
        let label = self.lattice.join(whole.label, at.pc);
        Some(part.read(&mut self.lattice, label))
    }

    /// The program counter in a branch that this condition decides, and which branch it is.
    #[inline]
    pub(super) fn at_branch(&mut self, at: &Env<'_>, condition: TermId, depth: u32) -> Option<(Label, bool)> {
        // What raises the program counter is a step where origins are kept.
        if self.lattice.keeps_origins() {
            return None;
        }
        let (label, Small::Bool(yes)) = self.small(at, condition, depth)? else { return None };
        // INVARIANT: what `small` reads has at least the label of the program counter.
        Some((label, yes))
    }

    /// What a variable holds or a literal is, if that is an integer or truth value. Uses no fuel.
    #[inline(always)]
    fn operand(&mut self, at: &Env<'_>, operand: Operand) -> Option<(Label, Small)> {
        let operand = match operand {
            Operand::Local(i) => at.locals.get(i as usize)?,
            Operand::Captured(i) => at.captured.get(i as usize)?,
            Operand::Int(i) => return Some((at.pc, Small::Int(i.into()))),
        };
        let small = match &operand.kind {
            Kind::Num(n) => Small::Int(n.to_i64()?),
            Kind::Bool(b) => Small::Bool(*b),
            _ => return None,
        };
        Some((self.lattice.join(operand.label, at.pc), small))
    }

    /// What a primitive makes of two integers.
    #[inline(always)]
    fn combined(
        &mut self,
        prim: Prim,
        (l, a): (Label, Small),
        (m, b): (Label, Small),
    ) -> Option<(Label, Small)> {
        let (Small::Int(a), Small::Int(b)) = (a, b) else { return None };
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
        Some((self.lattice.join(l, m), result))
    }

    /// An integer or truth value. Uses fuel even if it is none.
    #[inline(always)]
    pub(super) fn small(&mut self, at: &Env<'_>, id: TermId, depth: u32) -> Option<(Label, Small)> {
        match *at.code.simple(id) {
            Simple::Operand(operand) => {
                self.fuel = self.fuel.checked_sub(1)?;
                self.operand(at, operand)
            }
            Simple::Operation(prim, a, b) => self.operation(at, prim, a, b, OPERATION, depth),
            Simple::Applied(prim, a, b) => self.operation(at, prim, a, b, APPLIED, depth),
            _ => self.small_term(at, id, depth),
        }
    }

    /// The same where a strand stands. A literal needs nothing of what is in scope there.
    #[inline(always)]
    pub(super) fn small_at(&mut self, s: &Strand, id: TermId) -> Option<(Label, Small)> {
        match *s.code.simple(id) {
            Simple::Operand(Operand::Int(i)) => {
                self.fuel = self.fuel.checked_sub(1)?;
                Some((s.pc, Small::Int(i.into())))
            }
            _ => self.small(&Env::of(s), id, DEPTH),
        }
    }

    /// An operation on two operands, which takes so many steps.
    fn operation(
        &mut self,
        at: &Env<'_>,
        prim: Prim,
        a: Operand,
        b: Operand,
        steps: u64,
        depth: u32,
    ) -> Option<(Label, Small)> {
        if depth == 0 {
            return None;
        }
        self.fuel = self.fuel.checked_sub(steps)?;
        let (a, b) = (self.operand(at, a)?, self.operand(at, b)?);
        self.combined(prim, a, b)
    }

    /// What is neither an operand nor an operation on two.
    fn small_term(&mut self, at: &Env<'_>, id: TermId, depth: u32) -> Option<(Label, Small)> {
        self.fuel = self.fuel.checked_sub(1)?;
        match at.code.term(id) {
            Term::Lit(Data::Num(n)) => Some((at.pc, Small::Int(n.to_i64()?))),
            Term::Prim(prim, operands) => {
                let (prim, [a, b], depth) = (*prim, &operands[..], depth.checked_sub(1)?) else {
                    return None;
                };
                let (a, b) = (self.small(at, *a, depth)?, self.small(at, *b, depth)?);
                self.combined(prim, a, b)
            }
            Term::App(function, argument) => {
                let depth = depth.checked_sub(1)?;
                let (code, captured, body, label) = at.function(*function)?;
                self.fuel = self.fuel.checked_sub(1)?;
                let (given, argument) = self.small(at, *argument, depth)?;
                let locals = [argument.value(given)];
                let pc = self.lattice.join(label, at.pc);
                self.small(&Env { code, captured, locals: &locals, pc }, body, depth)
            }
            Term::If(condition, then, otherwise, _) => {
                let depth = depth.checked_sub(1)?;
                let (pc, yes) = self.at_branch(at, *condition, depth)?;
                let branch = if yes { *then } else { *otherwise };
                self.small(&Env { pc, ..*at }, branch, depth)
            }
            _ => None,
        }
    }

    /// Applies a function that a variable holds, or one that is written there, to an argument that needs no frame; says
    /// whether it did.
    pub(super) fn call(&mut self, s: &mut Strand, id: TermId, function: TermId, argument: TermId) -> bool {
        // A step for the function, and at least one for the argument.
        let fuel = self.fuel;
        if fuel < 2 {
            return false;
        }
        let (slot, is_fixpoint) = match s.code.term(function) {
            Term::Var(_, slot) => match s.captured(*slot) {
                Some(Value { kind: Kind::Node(node), .. }) => match &node.body {
                    Body::Closure { .. } => (Some(*slot), false),
                    Body::Fix(..) => (Some(*slot), true),
                    _ => return false,
                },
                _ => return false,
            },
            Term::Abs(_) => (None, false),
            _ => return false,
        };
        self.fuel -= 1;
        let small = self.small(&Env::of(s), argument, DEPTH);
        let mut other = None;
        if small.is_none() {
            self.fuel = fuel - 1;
            other = self.other_atom(&Env::of(s), argument, DEPTH);
            if other.is_none() {
                self.fuel = fuel;
                return false;
            }
        }
        if is_fixpoint && let (Some(given), Some(slot)) = (small, slot) {
            return match self.rounds(s, slot, s.code.span(id), given, |_| {}) {
                Rounds::Ended(value) => {
                    s.give(value);
                    true
                }
                Rounds::GoesOn => true,
                Rounds::Refused => {
                    self.fuel = fuel;
                    false
                }
            };
        }
        // A number has a way of its own, in which it is written once; see `atom_to`.
        let done = match (small, other) {
            (Some((label, Small::Int(i))), _) => {
                let push = |s: &mut Strand| s.stack.push(Value::new(label, Kind::Num(Num::from(i))));
                self.begin_call(s, id, function, (slot, is_fixpoint), push)
            }
            (Some((label, small)), _) => {
                let push = |s: &mut Strand| s.stack.push(small.value(label));
                self.begin_call(s, id, function, (slot, is_fixpoint), push)
            }
            (None, other) => {
                let push = |s: &mut Strand| s.stack.extend(other);
                self.begin_call(s, id, function, (slot, is_fixpoint), push)
            }
        };
        if !done {
            self.fuel = fuel;
        }
        done
    }

    /// Begins the activation of a function that `call` has looked at; says whether it did.
    #[inline(always)]
    fn begin_call(
        &mut self,
        s: &mut Strand,
        id: TermId,
        function: TermId,
        (slot, is_fixpoint): (Option<Slot>, bool),
        argument: impl FnOnce(&mut Strand),
    ) -> bool {
        let Some(slot) = slot else {
            let Term::Abs(abs) = s.code.term(function) else {
                unreachable!("a function that is written there")
            };
            let (body, new) = (abs.body, s.stack.len());
            self.capture(s, function);
            let base = s.stack.len();
            argument(s);
            s.begin(None, (new, base), (s.pc, s.pc_from), body);
            return true;
        };
        let span = s.code.span(id);
        if is_fixpoint {
            return self.call_fixpoint(s, slot, span, argument);
        }
        let Some(Value { label, kind: Kind::Node(node) }) = s.captured(slot) else {
            unreachable!("looked at")
        };
        let Body::Closure { code, term, captures } = &node.body else { unreachable!("looked at") };
        // INVARIANT: a closure that is a value stands for a λ.
        let Term::Abs(abs) = code.term(*term) else { unreachable!("a closure is a function") };
        let other = (!Arc::ptr_eq(code, &s.code)).then(|| code.clone());
        let (body, pc) = (abs.body, self.lattice.join(*label, s.pc));
        let new = s.stack.len();
        match &captures[..] {
            [] => {}
            [one] => {
                let one = one.clone();
                s.stack.push(one);
            }
            _ => {
                let node = node.clone();
                let Body::Closure { captures, .. } = &node.body else { unreachable!("looked at") };
                s.stack.extend_from_slice(captures);
            }
        }
        let base = s.stack.len();
        argument(s);
        s.begin(other.as_ref(), (new, base), (pc, span), body);
        true
    }

    /// Applies a fixpoint that a variable holds, if its function is `λself. λx. e`; says whether it did. Uses fuel even if not.
    #[inline(always)]
    fn call_fixpoint(
        &mut self,
        s: &mut Strand,
        slot: Slot,
        span: Span,
        argument: impl FnOnce(&mut Strand),
    ) -> bool {
        let Some(held) = s.captured(slot).filter(|f| unfolds(f).is_some_and(|u| u.left != Bound::Finite(0)))
        else {
            return false;
        };
        let Some(fuel) = self.fuel.checked_sub(1) else { return false };
        self.fuel = fuel;
        let label = self.lattice.join(held.label, s.pc);
        // In tail position the variable has been looked at for the last time.
        let place = match slot {
            Slot::Local(i) => s.base + i as usize,
            Slot::Captured(i) => s.bottom + i as usize,
            Slot::Global(_) => return false,
        };
        let is_last = matches!(s.kont.last(), Some(Frame::Ret { .. }));
        let held = &mut s.stack[place].kind;
        let kind = if is_last { std::mem::replace(held, Kind::Null) } else { held.clone() };
        let Kind::Node(node) = kind else { unreachable!("looked at") };
        self.begin_unfolded(s, itself(label, node), span, argument);
        true
    }

    /// Begins the activation of the inner function of a fixpoint, which gets this one as itself.
    #[inline(always)]
    fn begin_unfolded(&mut self, s: &mut Strand, own: Value, span: Span, argument: impl FnOnce(&mut Strand)) {
        // INVARIANT: callers have looked.
        let Some(Unfolding { function, code, captures, inner, .. }) = unfolds(&own) else {
            unreachable!("a fixpoint that unfolds")
        };
        let label = self.lattice.join(function.label, own.label);
        let other = (!Arc::ptr_eq(code, &s.code)).then(|| code.clone());
        let (new, body) = (s.stack.len(), inner.body);
        // The only local there is: itself, which mostly is all that is captured.
        if let [Slot::Local(_)] = inner.captures[..] {
            s.stack.push(own);
        } else {
            let mut place = None;
            for slot in &inner.captures {
                let value = match slot {
                    Slot::Local(_) => {
                        place = Some(s.stack.len());
                        Value::new(Label::BOTTOM, Kind::Null)
                    }
                    Slot::Captured(i) => captures[*i as usize].clone(),
                    Slot::Global(i) => Value::new(Label::BOTTOM, Kind::Node(self.global(*i))),
                };
                s.stack.push(value);
            }
            if let Some(place) = place {
                s.stack[place] = own;
            }
        }
        let base = s.stack.len();
        argument(s);
        s.begin(other.as_ref(), (new, base), (label, span), body);
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
            if !self.add_atom(s, branch) {
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
                if let Some(pair) = self.paired(s, start) {
                    s.give(pair);
                    return;
                }
                let items = Body::List(s.taken(start));
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
    pub(super) fn unfold(&mut self, s: &mut Strand, f: &Value, argument: Value, span: Span) -> Option<Value> {
        let Kind::Node(node) = &f.kind else { return Some(argument) };
        let Some(fuel) = self.fuel.checked_sub(1).filter(|_| unfolds(f).is_some()) else {
            return Some(argument);
        };
        self.fuel = fuel;
        self.begin_unfolded(s, itself(f.label, node.clone()), span, |s| s.stack.push(argument));
        None
    }

    /// Two results of branches that the `let` around them makes a pair of, `let r = … in (r.[0], r.[1])`, as `f | g` does: no list
    /// is made of them, which nobody else could see.
    fn paired(&mut self, s: &mut Strand, start: usize) -> Option<Value> {
        let Some(Frame::Let(term, 0)) = s.kont.last() else { return None };
        if !matches!(s.code.simple(*term), Simple::Both(..))
            || s.parts.len() != start + 2
            || self.lattice.keeps_origins()
        {
            return None;
        }
        self.fuel = self.fuel.checked_sub(PAIRED)?;
        s.kont.pop();
        let (mut second, mut first) = (s.parts.pop()?, s.parts.pop()?);
        first.label = self.lattice.join(first.label, s.pc);
        second.label = self.lattice.join(second.label, s.pc);
        Some(Value::node(&mut self.lattice, s.pc, Body::Pair(first, second)))
    }

    /// Applies a function that a variable holds, whose body makes a pair of two branches ([`Simple::Both`]), if these and the argument need no
    /// frame: the pair and its label. Uses fuel even if it did nothing.
    pub(super) fn both(
        &mut self,
        s: &mut Strand,
        function: TermId,
        argument: TermId,
    ) -> Option<(Label, Shared<Node>)> {
        let at = Env::of(s);
        let Value { label, kind: Kind::Node(node) } = at.held(function)? else { return None };
        let Body::Closure { code, term, captures } = &node.body else { return None };
        let Term::Abs(abs) = code.term(*term) else { return None };
        let Simple::Both(first, second) = *code.simple(abs.body) else { return None };
        if self.lattice.keeps_origins() {
            return None;
        }
        // A step for the call, one for the variable, one for the `let` and one for the `par`.
        self.fuel = self.fuel.checked_sub(4)?;
        let pc = self.lattice.join(*label, s.pc);
        let fuel = self.fuel;
        let node = match self.small(&at, argument, DEPTH) {
            Some((given, Small::Int(argument))) => {
                let locals = [Value::new(given, Kind::Num(Num::from(argument)))];
                self.pair(&Env { code, captured: captures, locals: &locals, pc }, first, second)?
            }
            _ => {
                self.fuel = fuel;
                let locals = [self.atom_in(&at, argument, DEPTH)?];
                self.pair(&Env { code, captured: captures, locals: &locals, pc }, first, second)?
            }
        };
        self.fuel = self.fuel.checked_sub(PAIRED)?;
        s.joins += 1;
        s.counts.count(Counted::Pars, &self.lattice, pc);
        Some((pc, node))
    }

    /// The pair of two terms that need no frame.
    fn pair(&mut self, at: &Env<'_>, first: TermId, second: TermId) -> Option<Shared<Node>> {
        let fuel = self.fuel;
        // Two numbers are written once, to where they belong; see `once`.
        if let Some((l, Small::Int(a))) = self.small(at, first, DEPTH)
            && let Some((m, Small::Int(b))) = self.small(at, second, DEPTH)
        {
            let deep = self.lattice.join(l, m);
            return Some(shared(|| {
                let (a, b) = (Kind::Num(Num::from(a)), Kind::Num(Num::from(b)));
                let body = Body::Pair(Value::new(l, a), Value::new(m, b));
                Node { deep, has_function: false, body }
            }));
        }
        self.fuel = fuel;
        let (first, second) = (self.atom_in(at, first, DEPTH)?, self.atom_in(at, second, DEPTH)?);
        Some(Value::made(&mut self.lattice, Body::Pair(first, second)))
    }
}

/// A fixpoint whose function is `λself. λx. e`.
pub(super) struct Unfolding<'a> {
    /// How often it may still be unfolded.
    pub(super) left: Bound,
    pub(super) function: &'a Value,
    pub(super) code: &'a Arc<Code>,
    pub(super) captures: &'a [Value],
    /// `λx. e`.
    pub(super) inner: &'a Abs,
}

pub(super) fn unfolds(f: &Value) -> Option<Unfolding<'_>> {
    let Kind::Node(node) = &f.kind else { return None };
    let Body::Fix(_, function) = &node.body else { return None };
    let Some(Body::Closure { code, term, captures }) = function.body() else { return None };
    let Term::Abs(outer) = code.term(*term) else { return None };
    let Term::Abs(inner) = code.term(outer.body) else { return None };
    Some(Unfolding { left: node.left()?, function, code, captures, inner })
}

/// A fixpoint as its own function gets it.
#[inline]
pub(super) fn itself(label: Label, fixpoint: Ref) -> Value {
    Value::new(label, Kind::Node(fixpoint.unfolded()))
}

/// What a variable holds.
pub(super) fn held(s: &Strand, variable: TermId) -> Option<&Value> {
    match s.code.term(variable) {
        Term::Var(_, slot) => s.captured(*slot),
        _ => None,
    }
}
