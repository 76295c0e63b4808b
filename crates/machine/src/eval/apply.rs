//! Application: `e1 e2` where `e1 ⇓ l:f`, at `pc := l`; and what becomes of a guarded value.
//!
//! Source: `docs/calculus.md` §10 (application, `guard`).

use super::{Frame, Guarded, Mode, Question, Strand};
use crate::value::{Body, Kind, Ref, Value};
use crate::{ErrorCode, Machine, Remark, prim};
use core_ir::{Bound, Code, END, Function, Label, Operand, Role, Term, TermId};
use diagnostics::Span;
use smallvec::SmallVec;
use std::sync::Arc;

/// Arguments of one call.
type Arguments = SmallVec<[Value; 4]>;

/// A closure to be called.
struct Called<'f> {
    code: &'f Arc<Code>,
    /// The function and those that it returns at once.
    functions: &'f [Function],
    captures: &'f [Value],
    /// The program counter of its body.
    label: Label,
    /// True if it is the function of a fixpoint, which is its first argument then.
    is_fixpoint: bool,
}

impl Machine {
    /// Applies a function value, at `pc` := its label.
    pub(super) fn apply(&mut self, s: &mut Strand, f: Value, v: Value, span: Span) -> Option<Question> {
        let (at, label) = (s.stack.len(), f.label);
        s.stack.extend([f, v]);
        self.apply_taken(s, (at, label), span)
    }

    /// Applies the function at this index of the stack, which has this label, to the value above. Both are on
    /// top.
    fn apply_taken(&mut self, s: &mut Strand, (at, label): (usize, Label), span: Span) -> Option<Question> {
        if self.call(s, (at, label), 1, at, span) {
            return None;
        }
        let (v, f) = (s.pop(), s.pop());
        self.apply_other(s, f, v, span)
    }

    /// Applies the operand of an instruction to the value on top.
    #[inline]
    pub(super) fn apply_operand(
        &mut self,
        s: &mut Strand,
        code: &Code,
        f: Operand,
        term: TermId,
    ) -> Option<Question> {
        let span = code.span(term);
        match f {
            Operand::Local(i) => {
                let at = s.base + i as usize;
                let label = s.stack[at].label_read(&mut self.lattice, s.pc);
                if self.call(s, (at, label), 1, s.stack.len() - 1, span) {
                    return None;
                }
                let f = s.stack[at].read(&mut self.lattice, s.pc);
                let v = s.pop();
                self.apply_other(s, f, v, span)
            }
            Operand::Taken(i) => {
                let at = s.base + i as usize;
                self.apply_taken(s, (at, s.stack[at].label), span)
            }
            _ => {
                let f = self.operand(s, code, f);
                let v = s.pop();
                self.apply(s, f, v, span)
            }
        }
    }

    /// Applies a value that is no closure and no fixpoint of one.
    #[inline(never)]
    fn apply_other(&mut self, s: &mut Strand, f: Value, v: Value, span: Span) -> Option<Question> {
        let Kind::Node(node) = &f.kind else {
            self.not_a_function(s, &f, span);
            return None;
        };
        match &node.body {
            Body::Fix(..) if node.left() == Some(Bound::Finite(0)) => {
                s.give(v.read(&mut self.lattice, f.label));
            }
            Body::Fix(_, function) => {
                let own = Value::new(f.label, Kind::Node(itself(&f)));
                let function = function.read(&mut self.lattice, f.label);
                // The function that this gives is applied to `v`. Fixpoints of fixpoints must not recurse
                // here.
                s.begin_region();
                s.kont.extend([Frame::FixArg(v, span), Frame::FixArg(own, span)]);
                s.give(function);
            }
            Body::Guarded { code, term, function } => {
                let Term::Guard { retry, .. } = code.term(*term) else { unreachable!("a guard") };
                let guarded = Guarded::Call(Box::new((node.clone(), v.clone())));
                let (left, remark) = (*retry, s.remark.clone());
                s.begin_region();
                s.kont.push(Frame::Guard { guarded, left, remark, pc: s.pc, pc_from: s.pc_from });
                s.set_pc(f.label, span, END);
                let function = function.read(&mut self.lattice, s.pc);
                // Guarded functions of guarded functions must not recurse here.
                s.kont.push(Frame::FixArg(v, span));
                s.give(function);
            }
            Body::Llm { prompt, params, code, term } => {
                let (prompt, params, code) = (prompt.clone(), params.clone(), code.clone());
                let from = code.span(*term);
                s.begin_region();
                let saved = (s.pc, s.pc_from);
                if f.label != s.pc {
                    (s.pc, s.pc_from) = (f.label, span);
                }
                self.open(s, END);
                if let Some(Frame::Conv { pc, pc_from, .. }) = s.kont.last_mut() {
                    (*pc, *pc_from) = saved;
                }
                let text = match self.text(&v) {
                    Ok(text) => text,
                    Err(e) => {
                        self.not_data(s, &v, e, span);
                        return None;
                    }
                };
                let deep = self.deep(&prompt);
                match prim::as_str(&prompt).filter(|system| !system.is_empty()) {
                    Some(system) => self.say(s, Role::System, system.clone(), None, deep, span),
                    // That there is none is said, too.
                    None => self.hear(s, deep, span),
                }
                let deep = self.deep(&v);
                self.say(s, Role::User, text, None, deep, span);
                return self.receive(s, Mode::Data(params, code), 0, from);
            }
            Body::Tool(_) => {
                s.raise_pc(f.label, span);
                if let Kind::Node(tool) = f.kind {
                    // As a function would read it: what chose the tool chose what the tool is applied to.
                    let v = v.read(&mut self.lattice, s.pc);
                    return self.call_tool(s, tool, v, span);
                }
            }
            _ => self.not_a_function(s, &f, span),
        }
        None
    }

    /// Applies a function to the values on top, in order; it is below them. Marks among them are applied
    /// already. `term` is the application to the last.
    pub(super) fn apply_all(
        &mut self,
        s: &mut Strand,
        code: &Code,
        term: TermId,
        count: usize,
    ) -> Option<Question> {
        let first = s.stack.len() - count;
        let applied = marks(&s.stack[first..]);
        if applied > 0 {
            s.stack.drain(first..first + applied);
        }
        let span = code.span(term);
        let f = (first - 1, s.stack[first - 1].label);
        if applied + 1 < count && self.call(s, f, count - applied, first - 1, span) {
            return None;
        }
        let mut args: Arguments = s.stack.drain(first..).collect();
        let f = s.pop();
        // One after another, each where its own application stands.
        let mut at = term;
        let mut rest = Vec::with_capacity(args.len());
        while let Some(arg) = args.pop() {
            rest.push((arg, code.span(at)));
            if let Term::App(function, _) = code.term(at) {
                at = *function;
            }
        }
        let (arg, span) = rest.pop()?;
        if !rest.is_empty() {
            s.begin_region();
            s.kont.extend(rest.into_iter().map(|(arg, span)| Frame::FixArg(arg, span)));
        }
        self.apply(s, f, arg, span)
    }

    /// Returns whether the function below the values on top only makes a further function when it is applied
    /// to them.
    pub(super) fn takes_more(&mut self, s: &Strand, count: usize) -> bool {
        let first = s.stack.len() - count;
        let args = count - marks(&s.stack[first..]);
        let f = &s.stack[first - 1];
        match self.called(f, f.label) {
            // That a fixpoint applies its function to itself is a level, too.
            Some(called) => args + usize::from(called.is_fixpoint) < called.functions.len(),
            None => false,
        }
    }

    /// The closure that applying a function with this label calls: itself, or the function of a fixpoint.
    #[inline(always)]
    fn called<'f>(&mut self, f: &'f Value, label: Label) -> Option<Called<'f>> {
        let (function, label, is_fixpoint) = match f.body()? {
            Body::Closure { .. } => (f, label, false),
            Body::Fix(..) if f.left() == Some(Bound::Finite(0)) => return None,
            Body::Fix(_, function) => (function, self.lattice.join(function.label, label), true),
            _ => return None,
        };
        let Some(Body::Closure { code, term, captures }) = function.body() else { return None };
        let functions = code.instructions().returned(*term);
        Some(Called { code, functions, captures, label, is_fixpoint })
    }

    /// Calls a closure, or a fixpoint of one, with one argument or more: its body runs at `pc` := its label.
    /// The function is at an index of the stack and has this label; the arguments are on top. Further
    /// arguments are of the functions that it returns at once, which are not made. Returns false, and does
    /// nothing, if this is something else or takes fewer arguments. Otherwise, what is on the stack from this
    /// height on is taken.
    #[inline]
    pub(super) fn call(
        &mut self,
        s: &mut Strand,
        (at, label): (usize, Label),
        count: usize,
        height: usize,
        span: Span,
    ) -> bool {
        let Some(called) = self.called(&s.stack[at], label) else { return false };
        let own = usize::from(called.is_fixpoint);
        let last = count + own - 1;
        let [first, ..] = called.functions else { return false };
        let Some(function) = called.functions.get(last) else { return false };
        let pc = called.label;
        if s.kont.len() > self.config.max_frames {
            self.too_deep(s, pc, span);
            return true;
        }
        // Each of these functions would have been evaluated.
        if !self.step(last as u32) {
            let span = called.code.span(function.term);
            self.out_of_fuel(s, pc, span);
            return true;
        }
        let body = function.body;
        let code = (!Arc::ptr_eq(called.code, &s.code)).then(|| called.code.clone());
        let mut base = s.stack.len() - count;
        if function.whole as usize == last && (last == 0 || first.is_fixpoint == called.is_fixpoint) {
            // The arguments are where the function has them; what was captured comes behind them.
            let captured = called.captures.len();
            if called.is_fixpoint {
                let fixpoint = itself(&s.stack[at]);
                s.push_made(|| Value::new(label, Kind::Node(fixpoint)));
            }
            for i in 0..captured {
                let value = called_captures(&s.stack[at])[i].clone();
                s.stack.push(value);
            }
        } else {
            self.gather(s, (at, label), count);
        }
        base -= s.enter(code, (pc, span), body, height);
        s.base = base;
        true
    }

    /// Replaces the arguments on top by the activation of the function that is called with them.
    #[inline(never)]
    fn gather(&mut self, s: &mut Strand, (at, label): (usize, Label), count: usize) {
        let f = s.stack[at].clone();
        // INVARIANT: it is called.
        let Some(called) = self.called(&f, label) else { unreachable!("a function") };
        let own = usize::from(called.is_fixpoint);
        let mut args: Arguments = s.stack.drain(s.stack.len() - count..).collect();
        let last = count + own - 1;
        let function = |level: usize| &called.functions[level];
        for place in 0..=function(last).captures.len() as u32 {
            let (mut level, mut slot) = (last, Operand::Local(place));
            // Only one of the captured values is the argument of a level, so that is taken.
            let held = loop {
                let around = function(level);
                match slot {
                    Operand::Local(i) if i == around.argument && level < own => {
                        break Value::new(label, Kind::Node(itself(&f)));
                    }
                    Operand::Local(i) if i == around.argument => break taken(&mut args[level - own]),
                    Operand::Local(i) => {
                        let index = (i - u32::from(i > around.argument)) as usize;
                        slot = around.captures[index];
                        match level.checked_sub(1) {
                            Some(below) => level = below,
                            None => break self.captured(called.captures.get(index), slot),
                        }
                    }
                    _ => break self.captured(None, slot),
                }
            };
            s.stack.push(held);
        }
    }

    #[cold]
    fn too_deep(&self, s: &mut Strand, pc: Label, span: Span) {
        let message = format!("recursion deeper than {} frames", self.config.max_frames);
        s.fail(ErrorCode::Fuel, pc, span, message);
    }

    fn not_a_function(&mut self, s: &mut Strand, f: &Value, span: Span) {
        let deep = self.deep(f);
        let label = self.lattice.join(f.label, deep);
        s.fail(
            ErrorCode::NotAFunction,
            label,
            span,
            format!("{} is applied, but is not a function", f.kind()),
        );
    }

    /// An attempt of a `guard` gave a value.
    pub(super) fn guarded(
        &mut self,
        s: &mut Strand,
        guarded: Guarded,
        left: u32,
        saved: (Label, Span),
        v: Value,
    ) -> Option<Question> {
        // Of a guarded function; a term is of the code at hand.
        let (own, term) = match &guarded {
            Guarded::Term(at) => {
                let opened = s.code.instructions().all()[*at as usize];
                s.end_at(super::after(opened.op));
                (None, opened.term)
            }
            Guarded::Call(call) => match &call.0.body {
                Body::Guarded { code, term, .. } => (Some(code.clone()), *term),
                _ => unreachable!("a guarded function"),
            },
        };
        let code = own.unwrap_or_else(|| s.code.clone());
        let Term::Guard { pred, .. } = code.term(term) else { unreachable!("a guard") };
        let span = code.span(term);
        if v.is_function() {
            (s.pc, s.pc_from) = saved;
            let label = v.label;
            let body = Body::Guarded { code: code.clone(), term, function: v };
            s.give(Value::node(&mut self.lattice, label, body));
            return None;
        }
        let deep = self.deep(&v);
        let data = self.data(&v);
        let verdict = match &data {
            Ok(data) => {
                let mut steps = 0;
                let holds = pred.holds_counting(data, &mut steps);
                self.charge(steps);
                holds
            }
            Err(e) => Err(e.message()),
        };
        match verdict {
            Ok(()) => {
                (s.pc, s.pc_from) = saved;
                s.give(Value::new(deep, v.kind));
            }
            Err(reason) if left > 0 => {
                s.pc = self.lattice.join(s.pc, deep);
                s.pc_from = span;
                let (pc, pc_from) = saved;
                let again = match &guarded {
                    Guarded::Term(at) => {
                        s.cut(s.code.instructions().all()[*at as usize].height);
                        s.go(at + 1);
                        None
                    }
                    Guarded::Call(call) => match &call.0.body {
                        Body::Guarded { function, .. } => {
                            Some((function.read(&mut self.lattice, s.pc), call.1.clone()))
                        }
                        _ => unreachable!("a guarded function"),
                    },
                };
                let text = pred.remark(&reason, data.as_ref().ok());
                let remark = s.remark.replace(Arc::new(Remark { label: s.pc, text }));
                s.kont.push(Frame::Guard { guarded, left: left - 1, remark, pc, pc_from });
                if let Some((function, argument)) = again {
                    return self.apply(s, function, argument, span);
                }
            }
            Err(reason) => {
                let label = self.lattice.join(s.pc, deep);
                let message = format!("the result does not satisfy `{pred}`: {reason}");
                (s.pc, s.pc_from) = saved;
                s.fail(ErrorCode::Guard, label, span, message);
            }
        }
        None
    }
}

/// The captured values of a closure, or of the closure that a fixpoint is of.
#[inline]
fn called_captures(f: &Value) -> &[Value] {
    match f.body() {
        Some(Body::Closure { captures, .. }) => captures,
        Some(Body::Fix(_, f)) => called_captures(f),
        _ => &[],
    }
}

/// A fixpoint as its own function gets it.
#[inline(always)]
fn itself(fixpoint: &Value) -> Ref {
    match &fixpoint.kind {
        Kind::Node(node) => node.unfolded(),
        _ => unreachable!("a fixpoint"),
    }
}

/// Takes a value that nobody uses again where it is.
#[inline]
fn taken(value: &mut Value) -> Value {
    std::mem::replace(value, Value::new(Label::BOTTOM, Kind::Null))
}

/// Number of arguments that are applied already.
fn marks(args: &[Value]) -> usize {
    args.iter().take_while(|arg| arg.is_mark()).count()
}
