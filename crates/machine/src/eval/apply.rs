//! Application: `e1 e2` where `e1 ⇓ l:f`, at `pc := l`; and what becomes of a guarded value.
//!
//! Source: `docs/calculus.md` §10 (application, `guard`).

use super::rules::Env;
use super::{Frame, Guarded, Mode, Question, State, Strand, message_cost};
use crate::value::{Body, Kind, Ref, Value};
use crate::{ErrorCode, Machine, Remark, prim};
use core_ir::{Bound, Code, Label, Role, Term, TermId, What};
use diagnostics::Span;
use std::sync::Arc;

impl Machine {
    /// Applies a function value, at `pc` := its label.
    pub(super) fn apply(&mut self, s: &mut Strand, f: Value, v: Value, span: Span) -> Option<Question> {
        let Kind::Node(node) = &f.kind else {
            self.not_a_function(s, &f, span);
            return None;
        };
        match &node.body {
            Body::Closure { code, term, captures } => self.call(s, (code, *term), captures, v, f.label, span),
            Body::Fix(..) if node.left() == Some(Bound::Finite(0)) => {
                s.give(v.read(&mut self.lattice, f.label));
            }
            Body::Fix(_, function) => {
                let own = itself(f.label, node.clone());
                let function = function.read(&mut self.lattice, f.label);
                if let Some(Body::Closure { code, term, captures }) = function.body()
                    && let Term::Abs(outer) = code.term(*term)
                    && let Term::Abs(_) = code.term(outer.body)
                {
                    // `λself. λx. e`: the inner function is called without being made.
                    let at =
                        Env { code, captured: captures, locals: &[own], pc: function.label, strand: s.id };
                    match self.step(&at, outer.body) {
                        Ok(()) => {
                            let captures = self.captures(&at, outer.body);
                            self.call(s, (code, outer.body), &captures, v, at.pc, span);
                        }
                        Err(failure) => s.state = State::Raise(failure),
                    }
                    return None;
                }
                // The function that this gives is applied to `v`. Fixpoints of fixpoints must not recurse
                // here.
                s.kont.extend([Frame::FixArg(v, span), Frame::FixArg(own, span)]);
                s.give(function);
            }
            Body::Guarded { code, term, function } => {
                let Term::Guard { retry, .. } = code.term(*term) else { unreachable!("a guard") };
                let guarded = Guarded::Call(Box::new((node.clone(), v.clone())));
                let (left, remark) = (*retry, s.remark.clone());
                s.kont.push(Frame::Guard { guarded, left, remark, pc: s.pc, pc_from: s.pc_from });
                s.set_pc(f.label, span);
                let function = function.read(&mut self.lattice, s.pc);
                // Guarded functions of guarded functions must not recurse here.
                s.kont.push(Frame::FixArg(v, span));
                s.give(function);
            }
            Body::Llm { prompt, params, code, term } => {
                let (prompt, params, code) = (prompt.clone(), params.clone(), code.clone());
                let from = code.span(*term);
                let saved = (s.pc, s.pc_from);
                if f.label != s.pc {
                    (s.pc, s.pc_from) = (f.label, span);
                }
                self.open(s);
                if let Some(Frame::Conv { pc, pc_from, .. }) = s.kont.last_mut() {
                    (*pc, *pc_from) = saved;
                }
                let text = match v.text(self.config.max_text) {
                    Ok(text) => text,
                    Err(e) => {
                        self.not_data(s, &v, e, span);
                        return None;
                    }
                };
                self.charge(message_cost(&text));
                if let Some(system) = prim::as_str(&prompt)
                    && !system.is_empty()
                {
                    s.message(Role::System, system.clone(), None);
                }
                s.message(Role::User, text, None);
                let (a, b) = (self.deep(&prompt), self.deep(&v));
                let label = self.lattice.join(a, b);
                let label = self.raised(label, s.conversation.label, What::Sent, span);
                s.conversation.label = self.lattice.join(s.conversation.label, label);
                return self.receive(s, Mode::Data(params, code), 0, from);
            }
            Body::Tool(_) => {
                s.set_pc(f.label, span);
                if let Kind::Node(tool) = f.kind {
                    return self.call_tool(s, tool, v, span);
                }
            }
            _ => self.not_a_function(s, &f, span),
        }
        None
    }

    /// Calls a closure of this label: its body runs at `pc` := the label.
    fn call(
        &mut self,
        s: &mut Strand,
        (code, term): (&Arc<Code>, TermId),
        captures: &[Value],
        v: Value,
        label: Label,
        span: Span,
    ) {
        let Term::Abs(abs) = code.term(term) else {
            // INVARIANT: a closure that is a value stands for a λ.
            unreachable!("a closure is a function")
        };
        let pc = label;
        if code.is_in_place(abs.body) {
            let at = Env { code, captured: captures, locals: &[v], pc, strand: s.id };
            let result = self.compute(&at, abs.body);
            s.settle(result);
        } else {
            s.enter(code, captures, Some(v), (pc, span), abs.body);
        }
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
            Guarded::Term(term) => (None, *term),
            Guarded::Call(call) => match &call.0.body {
                Body::Guarded { code, term, .. } => (Some(code.clone()), *term),
                _ => unreachable!("a guarded function"),
            },
        };
        let code = own.as_ref().unwrap_or(&s.code);
        let Term::Guard { term: tried, pred, .. } = code.term(term) else { unreachable!("a guard") };
        let span = code.span(term);
        if v.is_function() {
            (s.pc, s.pc_from) = saved;
            let label = v.label;
            let body = Body::Guarded { code: code.clone(), term, function: v };
            s.give(Value::node(&mut self.lattice, label, body));
            return None;
        }
        let deep = self.deep(&v);
        let data = v.to_data(self.config.max_text);
        let verdict = match &data {
            Ok(data) => pred.holds(data),
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
                    Guarded::Term(_) => None,
                    Guarded::Call(call) => match &call.0.body {
                        Body::Guarded { function, .. } => {
                            Some((function.read(&mut self.lattice, s.pc), call.1.clone()))
                        }
                        _ => unreachable!("a guarded function"),
                    },
                };
                let tried = *tried;
                let text = pred.remark(&reason, data.as_ref().ok());
                let remark = s.remark.replace(Arc::new(Remark { label: s.pc, text }));
                s.kont.push(Frame::Guard { guarded, left: left - 1, remark, pc, pc_from });
                match again {
                    None => s.go(tried),
                    Some((function, argument)) => return self.apply(s, function, argument, span),
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
