//! Application: `e1 e2` where `e1 ⇓ l:f`, at `pc := l`; and what becomes of a guarded value.
//!
//! Source: `docs/calculus.md` §10 (application, `guard`).

use super::{Frame, Guarded, Mode, Question, State, Strand};
use crate::value::{Body, Kind, Ref, Value};
use crate::{ErrorCode, Machine, Remark, prim};
use core_ir::{Bound, Code, END, Label, Operand, Role, Term, TermId};
use diagnostics::Span;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Arguments of one call.
type Arguments = SmallVec<[Value; 4]>;

/// A closure to be called.
struct Called<'f> {
    code: &'f Arc<Code>,
    term: TermId,
    captures: &'f [Value],
    /// The program counter of its body.
    label: Label,
    /// The fixpoint that it is the function of: its first argument.
    own: Option<Value>,
}

impl Called<'_> {
    /// The function that is left when it is applied to this many arguments, at least one, if it is known
    /// without evaluating: `λy. e` of `λx. λy. e` after one.
    fn after(&self, count: usize) -> Option<TermId> {
        let instructions = self.code.instructions();
        (0..count).try_fold(self.term, |function, _| instructions.returned(function))
    }
}

impl Machine {
    /// Applies a function value, at `pc` := its label.
    pub(super) fn apply(&mut self, s: &mut Strand, f: Value, v: Value, span: Span) -> Option<Question> {
        let Kind::Node(node) = &f.kind else {
            self.not_a_function(s, &f, span);
            return None;
        };
        match &node.body {
            Body::Closure { .. } => {
                if let Some(called) = self.called(&f) {
                    self.call(s, &called, smallvec![v], span);
                }
            }
            Body::Fix(..) if node.left() == Some(Bound::Finite(0)) => {
                s.give(v.read(&mut self.lattice, f.label));
            }
            Body::Fix(_, function) => {
                if let Some(mut called) = self.called(&f)
                    && called.after(1).is_some()
                    && let Some(own) = called.own.take()
                {
                    self.call(s, &called, smallvec![own, v], span);
                    return None;
                }
                let own = itself(f.label, node.clone());
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
        let mut args: Arguments = s.stack.drain(first + applied..).collect();
        s.cut((first - s.base) as u32);
        let f = s.pop();
        let span = code.span(term);
        if args.len() > 1
            && let Some(mut called) = self.called(&f)
            && called.after(args.len() - 1 + usize::from(called.own.is_some())).is_some()
        {
            if let Some(own) = called.own.take() {
                args.insert(0, own);
            }
            self.call(s, &called, args, span);
            return None;
        }
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
        match self.called(&s.stack[first - 1]) {
            Some(called) => called.after(args + usize::from(called.own.is_some())).is_some(),
            None => false,
        }
    }

    /// The closure that applying a function calls: itself, or the function of a fixpoint.
    fn called<'f>(&mut self, f: &'f Value) -> Option<Called<'f>> {
        let Kind::Node(node) = &f.kind else { return None };
        match &node.body {
            Body::Closure { code, term, captures } => {
                Some(Called { code, term: *term, captures, label: f.label, own: None })
            }
            Body::Fix(_, function) if node.left() != Some(Bound::Finite(0)) => match function.body() {
                Some(Body::Closure { code, term, captures }) => {
                    let label = self.lattice.join(function.label, f.label);
                    let own = Some(itself(f.label, node.clone()));
                    Some(Called { code, term: *term, captures, label, own })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls a closure: its body runs at `pc` := its label. With further arguments, those are of the
    /// functions that it returns at once, which are not made.
    fn call(&mut self, s: &mut Strand, called: &Called<'_>, mut args: Arguments, span: Span) {
        let Called { code, captures, label, .. } = *called;
        let pc = label;
        // INVARIANT: callers give at least one argument, and no more than the functions take.
        let Some(last) = args.pop() else { unreachable!("a call has an argument") };
        let Some(function) = called.after(args.len()) else { unreachable!("a function returned at once") };
        let instructions = code.instructions();
        let body = instructions.body(function);
        if s.kont.len() > self.config.max_frames {
            let message = format!("recursion deeper than {} frames", self.config.max_frames);
            return s.fail(ErrorCode::Fuel, pc, span, message);
        }
        if args.is_empty() {
            s.enter(code, (pc, span), body);
            s.stack.extend_from_slice(captures);
            s.base = s.stack.len();
            s.stack.push(last);
            return;
        }
        // Each of these functions would have been evaluated.
        if let Err(failure) =
            self.step(&super::rules::Env { code, pc, strand: s.id }, function, args.len() as u32)
        {
            s.state = State::Raise(failure);
            return;
        }
        let slots = instructions.captures(function);
        s.enter(code, (pc, span), body);
        for slot in slots {
            let (mut level, mut slot) = (args.len() - 1, *slot);
            let held = loop {
                match slot {
                    Operand::Local(_) => break Some(&args[level]),
                    Operand::Captured(i) if level == 0 => break captures.get(i as usize),
                    Operand::Captured(i) => {
                        // INVARIANT: it is returned by the function of the level below.
                        let Some(function) = called.after(level) else { break None };
                        slot = instructions.captures(function)[i as usize];
                        level -= 1;
                    }
                    _ => break None,
                }
            };
            s.stack.push(self.captured(held, slot));
        }
        s.base = s.stack.len();
        s.stack.push(last);
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

/// A fixpoint as its own function gets it.
fn itself(label: Label, fixpoint: Ref) -> Value {
    Value::new(label, Kind::Node(fixpoint.unfolded()))
}

/// Number of arguments that are applied already.
fn marks(args: &[Value]) -> usize {
    args.iter().take_while(|arg| arg.is_mark()).count()
}
