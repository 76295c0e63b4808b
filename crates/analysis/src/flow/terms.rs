//! One rule for each term former.

use super::eval::{Analysis, Env, Error, State, grown};
use super::sinks::Bounded;
use super::taint::{Cause, Range, Taint};
use super::value::{AbstractFunction, AbstractValue, CodeId, Form, Shape};
use super::{Checked, Sink};
use core_ir::{Catches, Data, Label, Name, Prim, Recv, Slot, Term, TermId};
use diagnostics::Span;
use std::collections::BTreeSet;
use std::rc::Rc;

impl Analysis {
    /// Attempts of a guard until one satisfies: `attempt` is given what the failed ones add to the program
    /// counter.
    pub(super) fn guard(
        &mut self,
        code: CodeId,
        term: TermId,
        pc: Range,
        state: &mut State,
        mut attempt: impl FnMut(&mut Self, Range, &mut State) -> Option<AbstractValue>,
    ) -> Option<AbstractValue> {
        let Term::Guard { retry: mut left, .. } = *self.code(code).term(term) else { return None };
        let mut again = Range::BOTTOM;
        let mut result: Option<(AbstractValue, Range)> = None;
        loop {
            let start = state.conversation;
            let Some(v) = attempt(self, again, state) else { break };
            let deep = v.deep_range(&mut self.taints);
            let is_function = matches!(v.shape, Shape::Fns(_));
            let passed = match &v.shape {
                Shape::Fns(_) => {
                    let label = v.label;
                    self.function(
                        AbstractFunction::Guarded { code, term, function: Rc::new(v.clone()) },
                        label,
                    )
                }
                Shape::Top { fns, unknown } if *unknown || !fns.is_empty() => {
                    // Perhaps a function: one that does what these do, or something else.
                    self.escape(&v);
                    let span = self.blamed;
                    let any = self.anything(span);
                    let label = Range::new(v.label.lo, deep.hi);
                    AbstractValue {
                        label,
                        inner: self.taints.union(v.inner, any.inner),
                        shape: Shape::unknown(),
                    }
                }
                _ => AbstractValue { label: Range { under: 0, ..deep }, ..v.clone() },
            };
            result = Some(match result {
                None => (passed, state.conversation),
                Some((w, c)) => (
                    AbstractValue::either(&mut self.taints, &w, &passed),
                    self.taints.either_conversation(c, state.conversation),
                ),
            });
            if is_function {
                break;
            }
            let failed = self.join(pc, deep);
            self.raise(state, failed);
            if left == 0 {
                break;
            }
            left -= 1;
            let next = Range::new(Label::BOTTOM, self.taints.union(again.hi, deep.hi));
            let conversation = self.taints.either_conversation(start, state.conversation);
            if next == again && conversation == start {
                // A further attempt brings nothing new.
                break;
            }
            again = next;
            state.conversation = conversation;
        }
        let (value, conversation) = result?;
        state.conversation = conversation;
        Some(value)
    }

    // ----- terms -----

    pub(super) fn eval(
        &mut self,
        env: &mut Env,
        id: TermId,
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        grown(|| self.eval_inner(env, id, pc, state))
    }

    pub(super) fn read(&mut self, env: &Env, slot: Slot) -> AbstractValue {
        let found = match slot {
            Slot::Local(i) => env.locals.get(i as usize).cloned(),
            Slot::Captured(i) => env.captures.get(i as usize).cloned(),
            Slot::Global(i) => {
                let term = self.codes[0].globals().get(i).map(|(_, t)| t);
                return match term {
                    Some(term) => {
                        let fun =
                            AbstractFunction::Closure { code: CodeId(1), term, captures: Rc::default() };
                        self.function(fun, Range::BOTTOM)
                    }
                    None => self.anything(self.blamed),
                };
            }
        };
        match found {
            Some(v) => v,
            // INVARIANT: slots are resolved when code is made; on the safe side all the same.
            None => self.anything(self.blamed),
        }
    }

    /// The label that a value denotes, if it is known.
    pub(super) fn denoted(&mut self, v: &AbstractValue) -> Option<Label> {
        match &v.shape {
            Shape::Const(d) => self.taints.lattice.label_of(d),
            _ => None,
        }
    }

    /// `n ⊔ l` and what is known of `l`.
    pub(super) fn label_operand(
        &mut self,
        v: &AbstractValue,
        pc: Range,
        span: Span,
        cause: Cause,
        state: &mut State,
    ) -> (Range, Range, Option<Label>) {
        let n = v.deep_range(&mut self.taints);
        let at = self.join(pc, n);
        let place = self.place(span);
        match self.denoted(v) {
            Some(l) => {
                let range = self.exact(place, cause, l);
                (at, range, Some(l))
            }
            None => {
                self.raise(state, at);
                let hi = self.taints.one(place, Cause::Computed, self.taints.top);
                (at, Range::new(Label::BOTTOM, hi), None)
            }
        }
    }

    /// The values of several terms, one after the other.
    pub(super) fn all(
        &mut self,
        env: &mut Env,
        ids: &[TermId],
        pc: Range,
        state: &mut State,
    ) -> Option<Vec<AbstractValue>> {
        ids.iter().map(|id| self.eval(env, *id, pc, state)).collect()
    }

    pub(super) fn eval_inner(
        &mut self,
        env: &mut Env,
        id: TermId,
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        if self.gave_up.is_some() {
            return None;
        }
        let code = self.code(env.code);
        let span = code.span(id);
        if span.file == self.source {
            self.blamed = span;
        }
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            self.give_up("the program is too large for it");
            return None;
        }
        match code.term(id) {
            Term::Var(_, slot) => Some(self.read(env, *slot).read(&mut self.taints, pc)),
            Term::Lit(data) => Some(AbstractValue::literal(data, pc)),
            Term::Abs(abs) => {
                let captures: Vec<AbstractValue> = abs.captures.iter().map(|s| self.read(env, *s)).collect();
                Some(self.function(
                    AbstractFunction::Closure { code: env.code, term: id, captures: Rc::new(captures) },
                    pc,
                ))
            }
            Term::Record(fields) => {
                let ids: Vec<TermId> = fields.iter().map(|(_, e)| *e).collect();
                let parts = self.all(env, &ids, pc, state)?;
                let names = fields.iter().map(|(n, _)| n.clone());
                if let Some(parts) = constants(&parts, pc).filter(|p| !p.is_empty()) {
                    return Some(AbstractValue::literal(&Data::record(names.zip(parts)), pc));
                }
                let fields = names.zip(parts).collect();
                Some(AbstractValue::made(&mut self.taints, pc, Shape::Record(Rc::new(fields))))
            }
            Term::Args(tool, fields) => {
                let ids: Vec<TermId> = fields.iter().map(|(_, e)| *e).collect();
                let parts = self.all(env, &ids, pc, state)?;
                let fields = fields.iter().map(|(n, _)| n.clone()).zip(parts).collect();
                let shape = Shape::Args(code.tool(*tool).name.clone(), Rc::new(fields));
                Some(AbstractValue::made(&mut self.taints, pc, shape))
            }
            Term::List(items) => {
                let parts = self.all(env, items, pc, state)?;
                if let Some(parts) = constants(&parts, pc) {
                    return Some(AbstractValue::literal(&Data::list(parts), pc));
                }
                Some(AbstractValue::made(&mut self.taints, pc, Shape::List(Rc::new(parts))))
            }
            Term::Pair(a, b) => {
                let a = self.eval(env, *a, pc, state)?;
                let b = self.eval(env, *b, pc, state)?;
                Some(AbstractValue::made(&mut self.taints, pc, Shape::Pair(Rc::new((a, b)))))
            }
            Term::Tag(name, payload) => {
                let payload = match payload {
                    Some(e) => self.eval(env, *e, pc, state)?,
                    None => AbstractValue::literal(&Data::Null, pc),
                };
                Some(AbstractValue::made(
                    &mut self.taints,
                    pc,
                    Shape::Tags(Rc::new(vec![(name.clone(), payload)])),
                ))
            }
            Term::App(f, x) => {
                let f = self.eval(env, *f, pc, state)?;
                let x = self.eval(env, *x, pc, state)?;
                self.apply(&f, x, pc, span, state)
            }
            Term::Let { bindings, body, .. } => {
                let first = code.locals(id);
                for (i, (_, e)) in bindings.iter().enumerate() {
                    let v = self.eval(env, *e, pc, state)?;
                    env.bind(first + i, v);
                }
                self.eval(env, *body, pc, state)
            }
            Term::Field(e, name) => {
                let v = self.eval(env, *e, pc, state)?;
                self.field(&v, name, pc, state)
            }
            Term::Index(a, b) => {
                let v = self.eval(env, *a, pc, state)?;
                let i = self.eval(env, *b, pc, state)?;
                self.index(&v, &i, pc, state)
            }
            Term::With(e, name, x) => {
                let v = self.eval(env, *e, pc, state)?;
                let x = self.eval(env, *x, pc, state)?;
                let opened = v.opened();
                if let Shape::Record(fields) = &opened.shape {
                    let mut fields = fields.as_ref().clone();
                    match fields.iter_mut().find(|(n, _)| n == name) {
                        Some((_, old)) => *old = x,
                        None => fields.push((name.clone(), x)),
                    }
                    return Some(AbstractValue::made(
                        &mut self.taints,
                        v.label,
                        Shape::Record(Rc::new(fields)),
                    ));
                }
                let label = self.blame(pc, &v);
                self.raise(state, label);
                if !opened.shape.is_open() {
                    return None;
                }
                let mut fns = BTreeSet::new();
                let unknown = v.shape.functions(&mut fns) | x.shape.functions(&mut fns);
                let deep = x.deep(&mut self.taints);
                let inner = self.taints.union(v.inner, deep);
                Some(AbstractValue {
                    label: v.label,
                    inner,
                    shape: Shape::Top { fns: Rc::new(fns), unknown },
                })
            }
            Term::Fst(e) | Term::Snd(e) => {
                let v = self.eval(env, *e, pc, state)?;
                let first = matches!(code.term(id), Term::Fst(_));
                match &v.opened().shape {
                    Shape::Pair(p) => {
                        let side = if first { &p.0 } else { &p.1 };
                        Some(side.read(&mut self.taints, v.label))
                    }
                    shape => {
                        let label = self.blame(pc, &v);
                        self.raise(state, label);
                        shape.is_open().then(|| v.some_part(&mut self.taints))
                    }
                }
            }
            Term::Prim(p, es) => {
                let parts = self.all(env, es, pc, state)?;
                Some(self.prim(*p, &parts, pc, state))
            }
            Term::If(c, a, b, _) => {
                let c = self.eval(env, *c, pc, state)?;
                let ways = match &c.shape {
                    Shape::Const(Data::Bool(true)) => vec![*a],
                    Shape::Const(Data::Bool(false)) => vec![*b],
                    shape => {
                        let label = self.blame(pc, &c);
                        self.raise(state, label);
                        if shape.is_open() { vec![*a, *b] } else { Vec::new() }
                    }
                };
                let pc = self.join(pc, c.label);
                self.one_of(state, ways, |s, way, state| s.eval(env, way, pc, state))
            }
            Term::Case { scrutinee, branches, default } => {
                let v = self.eval(env, *scrutinee, pc, state)?;
                let opened = v.opened();
                let null =
                    |label| AbstractValue { label, inner: Taint::NONE, shape: Shape::Const(Data::Null) };
                // The branches that may be taken, with what their binders are bound to; and whether none may
                // be.
                let mut ways: Vec<(TermId, Option<AbstractValue>)> = Vec::new();
                let mut none = true;
                match &opened.shape {
                    Shape::Tags(tags) => {
                        none = false;
                        for (name, payload) in tags.iter() {
                            match branches.iter().find(|b| b.tag == *name) {
                                Some(b) => ways.push((b.body, b.binder.as_ref().map(|_| payload.clone()))),
                                None => none = true,
                            }
                        }
                    }
                    Shape::Const(Data::Str(s)) => {
                        if let Some(b) = branches.iter().find(|b| *b.tag == **s) {
                            none = false;
                            ways.push((b.body, b.binder.as_ref().map(|_| null(v.label))));
                        }
                    }
                    shape if shape.is_open() => {
                        let part = v.some_part(&mut self.taints);
                        for b in branches {
                            ways.push((b.body, b.binder.as_ref().map(|_| part.clone())));
                        }
                    }
                    _ => {}
                }
                if none {
                    match default {
                        Some(e) => ways.push((*e, None)),
                        None => {
                            let label = self.blame(pc, &v);
                            self.raise(state, label);
                        }
                    }
                }
                let pc = self.join(pc, v.label);
                let at = code.locals(id);
                self.one_of(state, ways, |s, (way, payload), state| {
                    if let Some(payload) = payload {
                        env.bind(at, payload);
                    }
                    s.eval(env, way, pc, state)
                })
            }
            Term::Classify(tags, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let mut tags: Vec<(Name, AbstractValue)> = tags
                    .iter()
                    .map(|t| (t.clone(), AbstractValue::literal(&Data::Null, Range::BOTTOM)))
                    .collect();
                tags.sort_by(|(n, _), (m, _)| n.cmp(m));
                Some(AbstractValue { label, inner: Taint::NONE, shape: Shape::Tags(Rc::new(tags)) })
            }
            Term::Fix { bound, body, .. } => {
                let body = self.eval(env, *body, pc, state)?;
                let fun = AbstractFunction::Fix {
                    code: env.code,
                    term: id,
                    bound: *bound,
                    own: false,
                    body: Rc::new(body),
                };
                Some(self.function(fun, pc))
            }
            Term::Guard { term, .. } => {
                let (term, code) = (*term, env.code);
                self.guard(code, id, pc, state, |s, again, state| {
                    let pc = s.join(pc, again);
                    s.eval(env, term, pc, state)
                })
            }
            Term::Mem(_, e) => self.eval(env, *e, pc, state),
            Term::Recall(name, at) => {
                let spec = at.map(|(store, key)| code.store(store).keys[key as usize].label.clone());
                let label = spec.and_then(|s| self.taints.lattice.resolve(&s)).unwrap_or(self.taints.top);
                let place = self.place(span);
                let held = self.exact(place, Cause::Key(name.clone()), label);
                let label = self.join(pc, held);
                self.raise(state, label);
                Some(AbstractValue::data(label))
            }
            Term::Remember(name, at, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let spec = at.map(|(store, key)| code.store(store).keys[key as usize].label.clone());
                let bound = spec.and_then(|s| self.taints.lattice.resolve(&s)).unwrap_or_default();
                let found = self.blame(pc, &v);
                let sink = Sink::Key(name.clone());
                let goes_on = self.check(span, sink, &[Bounded::new(Checked::Value, found, bound)]);
                if !self.taints.surely_flows(found, bound) {
                    let place = self.place(span);
                    let at = self.exact(place, Cause::Bound(name.clone()), bound);
                    let label = self.join(pc, at);
                    self.raise(state, label);
                }
                if !goes_on {
                    return None;
                }
                // Ill-typed, the store fails, or it is late.
                self.raise(state, found);
                self.raise(state, pc);
                let late = self.exact(span, Cause::Bound(name.clone()), bound);
                let late = self.join(pc, late);
                self.raise(state, late);
                Some(AbstractValue::unit(pc))
            }
            Term::Choose(_, a, b) => {
                self.raise(state, pc);
                self.one_of(state, vec![*a, *b], |s, way, state| s.eval(env, way, pc, state))
            }
            Term::Llm(e, _) => {
                let prompt = self.eval(env, *e, pc, state)?;
                if !matches!(prompt.shape, Shape::Const(Data::Str(_))) {
                    let label = self.blame(pc, &prompt);
                    self.raise(state, label);
                }
                Some(self.function(
                    AbstractFunction::Llm { code: env.code, term: id, prompt: Rc::new(prompt) },
                    pc,
                ))
            }
            Term::Tool(tool) => {
                Some(self.function(AbstractFunction::Tool { code: env.code, tool: *tool }, pc))
            }
            Term::Send(_, e) => {
                let v = self.eval(env, *e, pc, state)?;
                if !self.touch(span, Sink::Send, pc, state) {
                    return None;
                }
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let deep = v.deep_range(&mut self.taints);
                let lc = state.conversation;
                state.conversation = Range { under: lc.under, ..self.join(lc, deep) };
                Some(AbstractValue::unit(pc))
            }
            Term::Recv(how) => {
                let params = match how {
                    Recv::Code => None,
                    Recv::Data(params) => Some(params),
                };
                self.receive(env.code, params, false, pc, span, state)
            }
            Term::Clear => {
                if !self.touch(span, Sink::Clear, pc, state) {
                    return None;
                }
                // No mark: what was received before does not flow to what is new, and a mark of this place
                // may be known to callers from an earlier time.
                state.conversation = Range { under: 0, ..pc };
                Some(AbstractValue::unit(pc))
            }
            Term::Fork(e) => {
                let lc = state.conversation;
                let inside = Range { under: lc.under, ..self.join(lc, pc) };
                let at = if lc.under == 0 { pc } else { Range { under: lc.under, ..pc } };
                self.inside(env, *e, at, inside, state)
            }
            Term::Fresh(e) => {
                let under = self.opened(env, id, pc);
                let inside = Range { under, ..pc };
                let at = if under == 0 { pc } else { inside };
                self.inside(env, *e, at, inside, state)
            }
            Term::Relabel(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, Cause::Written, state);
                let pc = self.join(at, l);
                self.eval(env, *e, pc, state)
            }
            Term::Test(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, Cause::Written, state);
                self.eval(env, *e, at, state)?;
                let label = self.join(at, l);
                Some(AbstractValue::data(label))
            }
            Term::Assert(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, known) = self.label_operand(&l, pc, span, Cause::Written, state);
                let v = self.eval(env, *e, pc, state)?;
                let holds = at.hi == pc.hi && known.is_some_and(|l| self.taints.surely_flows(v.label, l));
                if !holds {
                    let label = self.join(at, l);
                    self.raise(state, label);
                    if known.is_some_and(|l| self.taints.never_flows(v.label, l)) {
                        return None;
                    }
                }
                Some(AbstractValue::unit(pc))
            }
            Term::Endorse(l, e) | Term::Declassify(l, e) => {
                let l = self.eval(env, *l, pc, state)?;
                let (at, l, _) = self.label_operand(&l, pc, span, Cause::Written, state);
                let v = self.eval(env, *e, at, state)?;
                let integrity = matches!(code.term(id), Term::Endorse(..));
                let label = if integrity {
                    self.taints.reclassify(l, v.label)
                } else {
                    self.taints.reclassify(v.label, l)
                };
                self.note_reclassified(span, integrity, at, l, v.label);
                let label = self.join(at, label);
                Some(AbstractValue { label, ..v })
            }
            Term::Within(_, e) => self.eval(env, *e, pc, state),
            Term::Try { label, body, handler, catches, .. } => {
                let l = self.eval(env, *label, pc, state)?;
                let (at, l, given) = self.label_operand(&l, pc, span, Cause::Try, state);
                let inside = self.join(at, l);
                let (body, handler, index) = (*body, *handler, code.locals(id));
                let mut after = State { conversation: state.conversation, error: None };
                let value = self.eval(env, body, inside, &mut after);
                let Some(error) = after.error else {
                    self.note_try(span, given, inside, None);
                    state.conversation = after.conversation;
                    return value;
                };
                let escapes = !self.taints.surely_flows(error.label, inside.lo);
                self.note_try(span, given, inside, Some(error.label).filter(|_| escapes));
                // An error of a time limit, or a permanent one, may be any of them.
                if escapes || *catches != Catches::All {
                    self.raise_in(state, error);
                }
                // A caught error flows to the program counter inside.
                let within = self.taints.lattice.flows(
                    self.taints.label_with_input(error.label.hi),
                    self.taints.label_with_input(inside.hi),
                );
                let label = if within { error.label } else { Range { lo: error.label.lo, ..inside } };
                let mut caught = State { conversation: error.conversation, error: None };
                let inside_most = self.taints.label_with_input(inside.hi);
                let handled = if self.taints.lattice.flows(error.label.lo, inside_most) {
                    env.bind(index, AbstractValue::data(label));
                    self.eval(env, handler, inside, &mut caught)
                } else {
                    // Every error passes.
                    None
                };
                if let Some(e) = caught.error {
                    self.raise_in(state, e);
                }
                match (value, handled) {
                    (Some(a), Some(b)) => {
                        state.conversation =
                            self.taints.either_conversation(after.conversation, caught.conversation);
                        Some(AbstractValue::either(&mut self.taints, &a, &b))
                    }
                    (Some(a), None) => {
                        state.conversation = after.conversation;
                        Some(a)
                    }
                    (None, Some(b)) => {
                        state.conversation = caught.conversation;
                        Some(b)
                    }
                    (None, None) => None,
                }
            }
            Term::Fail(e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                None
            }
            Term::Par(_, branches) => {
                let lc = state.conversation;
                let inside = Range { under: lc.under, ..self.join(lc, pc) };
                let at = if lc.under == 0 { pc } else { Range { under: lc.under, ..pc } };
                let mut values = Some(Vec::new());
                for e in branches {
                    // A branch is evaluated whatever becomes of the others.
                    let v = self.inside(env, *e, at, inside, state);
                    values = values.zip(v).map(|(mut vs, v)| {
                        vs.push(v);
                        vs
                    });
                }
                Some(AbstractValue::made(&mut self.taints, pc, Shape::List(Rc::new(values?))))
            }
            Term::Each(_, f, list) => {
                let f = self.eval(env, *f, pc, state)?;
                let list = self.eval(env, *list, pc, state)?;
                self.each(&f, &list, pc, span, state)
            }
            Term::Check(_, ty, e) => {
                let v = self.eval(env, *e, pc, state)?;
                let label = self.blame(pc, &v);
                self.raise(state, label);
                let shape = match &v.shape {
                    Shape::Fns(_) => return None,
                    // A value that passes is data, and perhaps the arguments of a planned call.
                    Shape::Top { unknown: true, .. } if ty.may_hold_records() => Shape::unknown(),
                    Shape::Top { .. } => Shape::data(),
                    shape => shape.clone(),
                };
                Some(AbstractValue { shape, ..v })
            }
            Term::Unknown(what) => {
                self.unknown.insert(self.blamed, what.clone());
                self.raise(state, pc);
                self.passes_unknown.then(|| AbstractValue {
                    label: pc,
                    inner: Taint::NONE,
                    shape: Shape::unknown(),
                })
            }
        }
    }

    /// Evaluates in another conversation, which is closed then.
    pub(super) fn inside(
        &mut self,
        env: &mut Env,
        id: TermId,
        pc: Range,
        conversation: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        self.inside_with(conversation, state, |s, inner| s.eval(env, id, pc, inner))
    }

    fn inside_with(
        &mut self,
        conversation: Range,
        state: &mut State,
        run: impl FnOnce(&mut Self, &mut State) -> Option<AbstractValue>,
    ) -> Option<AbstractValue> {
        let mut inner = State { conversation, error: None };
        let value = run(self, &mut inner);
        let mark = conversation.under;
        if let Some(e) = inner.error {
            let under = if e.label.under == mark { 0 } else { e.label.under };
            let outside = state.conversation;
            self.raise_in(state, Error { label: Range { under, ..e.label }, conversation: outside });
        }
        Some(self.closed(value?, mark))
    }

    /// `each f list`: a branch for every item, at the list's label.
    fn each(
        &mut self,
        f: &AbstractValue,
        list: &AbstractValue,
        pc: Range,
        span: Span,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let opened = list.opened();
        // Of a list that is not known, there may be no item, or many that look alike.
        let (items, known) = match &opened.shape {
            Shape::List(items) => (items.as_ref().clone(), true),
            shape => {
                if !matches!(shape, Shape::Parts(p) if p.form == Form::List) {
                    let label = self.blame(pc, list);
                    self.raise(state, label);
                }
                match shape {
                    Shape::Parts(parts) => (vec![parts.item.clone()], false),
                    Shape::Top { .. } => (vec![list.some_part(&mut self.taints)], false),
                    _ => return None,
                }
            }
        };
        let pc = self.join(pc, list.label);
        let lc = state.conversation;
        let inside = Range { under: lc.under, ..self.join(lc, pc) };
        let at = if lc.under == 0 { pc } else { Range { under: lc.under, ..pc } };
        let function = f.read(&mut self.taints, at);
        let mut values = Vec::new();
        let mut all = true;
        for item in items {
            let item = item.read(&mut self.taints, at);
            match self.inside_with(inside, state, |s, inner| s.apply(&function, item, at, span, inner)) {
                Some(v) => values.push(v),
                None => all = false,
            }
        }
        if known {
            return all.then(|| AbstractValue::made(&mut self.taints, pc, Shape::List(Rc::new(values))));
        }
        let mut fns = BTreeSet::new();
        let mut unknown = false;
        let mut inner = Taint::NONE;
        for v in &values {
            unknown |= v.shape.functions(&mut fns);
            let deep = v.deep(&mut self.taints);
            inner = self.taints.union(inner, deep);
        }
        Some(AbstractValue { label: pc, inner, shape: Shape::Top { fns: Rc::new(fns), unknown } })
    }

    pub(super) fn field(
        &mut self,
        v: &AbstractValue,
        name: &Name,
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let opened = v.opened();
        if let Shape::Record(fields) = &opened.shape
            && let Some((_, part)) = fields.iter().find(|(n, _)| n == name)
        {
            return Some(part.read(&mut self.taints, v.label));
        }
        let Shape::Parts(parts) = &opened.shape else {
            let label = self.blame(pc, v);
            self.raise(state, label);
            return opened.shape.is_open().then(|| v.some_part(&mut self.taints));
        };
        if !matches!(&parts.form, Form::Record(there) if there.contains(name)) {
            let label = self.blame(pc, v);
            self.raise(state, label);
        }
        Some(parts.field(name).read(&mut self.taints, v.label))
    }

    pub(super) fn index(
        &mut self,
        v: &AbstractValue,
        i: &AbstractValue,
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let at = self.join(v.label, i.label);
        let opened = v.opened();
        let known = match (&opened.shape, &i.shape) {
            (Shape::List(items), Shape::Const(Data::Num(n))) => {
                n.to_usize().and_then(|n| items.get(n)).cloned()
            }
            (Shape::Record(fields), Shape::Const(Data::Str(s))) => {
                fields.iter().find(|(n, _)| **n == **s).map(|(_, v)| v.clone())
            }
            _ => None,
        };
        if let Some(part) = known {
            return Some(part.read(&mut self.taints, at));
        }
        let (a, b) = (self.blame(pc, v), i.deep_range(&mut self.taints));
        let label = self.join(a, b);
        self.raise(state, label);
        let part = match (&opened.shape, &i.shape) {
            (Shape::Parts(parts), Shape::Const(Data::Num(_))) => parts.item.clone(),
            (Shape::Parts(parts), Shape::Const(Data::Str(name))) => parts.field(name).clone(),
            // An index of which only the type is not known: of a list it is a number.
            (Shape::Parts(parts), _) if parts.form == Form::List => parts.item.clone(),
            _ => v.some_part(&mut self.taints),
        };
        Some(part.read(&mut self.taints, at))
    }

    /// A primitive that looks at the constructor of its operand, if more is known of that than what the rule
    /// for all primitives says.
    fn of_constructor(
        &mut self,
        p: Prim,
        operands: &[AbstractValue],
        pc: Range,
        state: &mut State,
    ) -> Option<AbstractValue> {
        let mut label = pc;
        for v in operands {
            label = self.join(label, v.label);
        }
        let (result, fails) = match (p, operands) {
            (Prim::Length, [of]) => {
                let fails = has_constructor(of)?;
                if fails {
                    self.raise(state, label);
                }
                return Some(AbstractValue::data(label));
            }
            (Prim::Py, [op, rest @ ..]) => {
                let Shape::Const(Data::Str(name)) = &op.shape else { return None };
                match (&**name, rest) {
                    ("b.len", [args, _]) => {
                        let Shape::List(args) = &args.opened().shape else { return None };
                        let [of] = &args[..] else { return None };
                        // An object of a class of a plan has no length, and may be a record of any fields.
                        let may_be_object = match &of.shape {
                            Shape::Record(fields) => fields.iter().any(|(n, _)| &**n == core_ir::py::CLASS),
                            Shape::Parts(parts) => parts.form != Form::List,
                            _ => false,
                        };
                        let fails = has_constructor(of)? || may_be_object;
                        label = self.join(label, of.label);
                        (AbstractValue::data(Range::BOTTOM), fails)
                    }
                    ("iter", [of]) => {
                        let Shape::Parts(parts) = &of.shape else { return None };
                        // Of a list it is the list; what is iterated else has no labels of parts.
                        let whole = AbstractValue { label: Range::BOTTOM, ..of.clone() };
                        let whole = match parts.form {
                            Form::Record(_) => AbstractValue::data(Range::BOTTOM),
                            Form::List => whole,
                            // The letters of a text, or the names of a record.
                            Form::Any => at_most(&whole),
                        };
                        (whole, parts.form == Form::Any)
                    }
                    ("index" | "attribute", [of, key]) => {
                        let Shape::Parts(known) = &of.shape else { return None };
                        let deep = key.deep_range(&mut self.taints);
                        label = self.join(label, deep);
                        let part = match &key.shape {
                            Shape::Const(Data::Str(name)) if known.form != Form::List => {
                                known.field(name).clone()
                            }
                            _ if known.form == Form::List => known.item.clone(),
                            // Of a text it is a letter.
                            Shape::Const(Data::Num(_)) => at_most(&known.item),
                            _ => return None,
                        };
                        (part, true)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        // The operands may be too large.
        let mut all = pc;
        for v in operands {
            all = self.blame(all, v);
        }
        self.raise(state, Range { lo: label.lo, ..all });
        let mut tags = vec![("ok".into(), result)];
        if fails {
            tags.push(("raise".into(), AbstractValue::data(Range::BOTTOM)));
        }
        Some(AbstractValue::made(&mut self.taints, label, Shape::Tags(Rc::new(tags))))
    }

    pub(super) fn prim(
        &mut self,
        p: Prim,
        parts: &[AbstractValue],
        pc: Range,
        state: &mut State,
    ) -> AbstractValue {
        if let Some(result) = self.of_constructor(p, parts, pc, state) {
            return result;
        }
        let mut label = pc;
        let mut fns = BTreeSet::new();
        let mut unknown = false;
        let mut inner = Taint::NONE;
        for part in parts {
            label = self.blame(label, part);
            unknown |= part.shape.functions(&mut fns);
            inner = self.taints.union(inner, part.inner);
        }
        let tests = matches!(
            p,
            Prim::IsFn
                | Prim::IsArray
                | Prim::IsRecord
                | Prim::IsStr
                | Prim::IsNum
                | Prim::IsBool
                | Prim::IsNull
        );
        if !tests {
            self.raise(state, label);
        }
        // Some look at constructors only, and may give parts with their labels.
        let is_python = |name: &str| matches!(name, "b.len" | "iter" | "index" | "attribute");
        let of_constructor = match (p, parts) {
            (Prim::Length | Prim::Keys | Prim::Has, _) => true,
            (Prim::Py, [op, ..]) => match &op.shape {
                Shape::Const(Data::Str(name)) => is_python(name),
                shape => shape.is_open(),
            },
            _ => false,
        };
        if of_constructor {
            let mut least = pc.lo;
            for part in parts {
                least = self.taints.lattice.join(least, part.label.lo);
            }
            let label = Range { lo: least, ..label };
            let inner = if p == Prim::Py { label.hi } else { Taint::NONE };
            return AbstractValue { label, inner, shape: Shape::data() };
        }
        // Functions in a list or under `flatten` keep what they captured.
        let carries = matches!(p, Prim::Flatten | Prim::Append | Prim::Add | Prim::Slice);
        if !carries || (fns.is_empty() && !unknown) {
            return AbstractValue::data(label);
        }
        match (p, parts) {
            (Prim::Flatten, [v]) if matches!(v.shape, Shape::Fns(_)) => AbstractValue { label, ..v.clone() },
            _ => AbstractValue { label, inner, shape: Shape::Top { fns: Rc::new(fns), unknown } },
        }
    }
}

/// The value with what is known of labels from above only.
fn at_most(v: &AbstractValue) -> AbstractValue {
    v.mapped(&|label| Range { lo: Label::BOTTOM, ..label }, &mut |id| id)
}

/// Returns whether a value may be something else than a list or a record, if it has no parts then. `None` if
/// nothing is known of its parts.
fn has_constructor(v: &AbstractValue) -> Option<bool> {
    match &v.shape {
        Shape::List(_) | Shape::Record(_) | Shape::Args(..) => Some(false),
        Shape::Parts(parts) => Some(parts.form == Form::Any),
        _ => None,
    }
}

/// The constants that parts of a literal are, if all of them are, and they and what is inside stand at its
/// own label: what was endorsed may still have other labels inside.
fn constants(parts: &[AbstractValue], pc: Range) -> Option<Vec<Data>> {
    parts
        .iter()
        .map(|v| match &v.shape {
            Shape::Const(d) if *v == AbstractValue::literal(d, pc) => Some(d.clone()),
            _ => None,
        })
        .collect()
}
