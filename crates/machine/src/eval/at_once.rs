//! What needs no frame though it does more than compute: entries in the conversation, requests that are answered at once, pairs of
//! branches and rounds of loops that are carried out in place.
//!
//! Entry points: `Machine::at_once`, where the value of a part or a definition is needed; `Machine::answered_at_once`, for a question that is ready.
//!
//! Invariant: as in [`super::quick`]: gives exactly what the rules give, in value, label, fuel and the names of requests, or does nothing at
//! all; then the rules are followed from the beginning, which also find the words for what is wrong. Nothing is refused once somebody was asked.

use super::quick::{DEPTH, Env, held};
use super::rounds::Rounds;
use super::{Frame, Question, State, Strand, Waiting};
use crate::value::{Body, Kind, Tool, Value};
use crate::{Answers, Args, Asked, Call, Machine, RequestId, Response};
use core_ir::{
    Data, Label, Lattice, Name, Operand, Role, Simple, Slot, StoreId, Term, TermId, ToolId, ToolParam,
};
use diagnostics::Span;
use smallvec::SmallVec;
use std::sync::Arc;

/// What came of trying something at once.
pub(super) enum AtOnce {
    /// Its value stands behind the parts of what is being evaluated.
    Done,
    /// The frame is there, and the strand goes on above it: an activation has begun, or there is an error.
    GoesOn,
    /// Nothing was done.
    Refused,
}

/// An error was raised, which the state of the strand says.
struct Raised;

/// What was done: its value stands behind the parts, or there is an error.
type Done = Result<(), Raised>;

impl Strand {
    #[inline]
    fn done(&mut self, value: Value) -> Done {
        self.parts.push(value);
        Ok(())
    }

    #[inline]
    fn done_or_raised(&mut self, value: Option<Value>) -> Done {
        match value {
            Some(value) => self.done(value),
            None => Err(Raised),
        }
    }

    /// What the next request of this strand is shown with.
    fn asked<'a>(&'a self, lattice: &'a Lattice, channel: Label, answer: Label, span: Span) -> Asked<'a> {
        Asked {
            id: RequestId { strand: self.id, number: self.requests },
            channel,
            answer,
            deadlines: &self.deadlines,
            span,
            lattice,
            branch: self.place.as_ref(),
        }
    }
}

/// The part of this number.
#[inline]
fn part(s: &Strand, term: TermId, number: usize) -> Option<(TermId, Simple)> {
    let part = match s.code.term(term) {
        Term::Record(fields) => fields.get(number).map(|f| f.1),
        Term::List(terms) | Term::Prim(_, terms) => terms.get(number).copied(),
        _ => unreachable!("a term with parts"),
    }?;
    Some((part, *s.code.simple(part)))
}

impl Machine {
    /// Goes on with the parts of a record, list or primitive; those that there are begin at `start`.
    pub(super) fn gather(
        &mut self,
        s: &mut Strand,
        mut term: TermId,
        mut start: usize,
        world: &mut dyn Answers,
    ) {
        loop {
            let next = part(s, term, s.parts.len() - start);
            let small = match next {
                Some((
                    _,
                    Simple::ToolCall(..) | Simple::Recall(..) | Simple::Remember(..) | Simple::Send(..),
                )) => next,
                Some(_) => self.add_small(s, term, start),
                None => None,
            };
            let Some((next, simple)) = small else {
                let Some(value) = self.whole(s, term, start) else { return };
                // What waits for the value is often something with parts, too.
                let Some(Frame::Parts(outer, begin)) = s.kont.last() else { return s.give(value) };
                (term, start) = (*outer, *begin);
                s.kont.pop();
                s.parts.push(value);
                continue;
            };
            let may_be_atom = match simple {
                Simple::Parts if self.fuel > 0 && s.kont.len() < self.config.max_frames => {
                    self.fuel -= 1;
                    s.kont.push(Frame::Parts(term, start));
                    (term, start) = (next, s.parts.len());
                    continue;
                }
                Simple::Parts => false,
                Simple::ToolCall(..)
                | Simple::Recall(..)
                | Simple::Remember(..)
                | Simple::Send(..)
                | Simple::Call(..) => match self.at_once(s, next, world, || Frame::Parts(term, start)) {
                    AtOnce::Done => continue,
                    AtOnce::GoesOn => return,
                    AtOnce::Refused => matches!(simple, Simple::Call(..)),
                },
                _ => true,
            };
            if !may_be_atom || !self.add_atom(s, next) {
                s.kont.push(Frame::Parts(term, start));
                s.go(next);
                return;
            }
        }
    }

    /// Does at once what a term does, if that needs no frame; else the caller does. If the strand goes on with something else, `frame` waits for the value.
    #[inline]
    pub(super) fn at_once(
        &mut self,
        s: &mut Strand,
        id: TermId,
        world: &mut dyn Answers,
        frame: impl FnOnce() -> Frame,
    ) -> AtOnce {
        let fuel = self.fuel;
        let done = match *s.code.simple(id) {
            Simple::Send(role, e) => self.sent(s, id, role, e),
            Simple::ToolCall(tool, argument) => self.called(s, id, tool, argument, world),
            Simple::Recall(store, key) => self.recalled_at_once(s, id, (store, key), world),
            Simple::Remember(store, key, e) => self.remembered_at_once(s, id, (store, key), e, world),
            Simple::Call(function, argument) => match (s.code.simple(function), held(s, function)) {
                (Simple::Operand(operand), Some(Value { kind: Kind::Node(node), .. })) => match node.body {
                    Body::Closure { .. } => self.both(s, function, argument).map(|v| s.done(v)),
                    Body::Fix(..) => match self.looped(s, id, *operand, argument, frame) {
                        Rounds::Ended(value) => {
                            s.parts.push(value);
                            return AtOnce::Done;
                        }
                        Rounds::GoesOn => return AtOnce::GoesOn,
                        Rounds::Refused => {
                            self.fuel = fuel;
                            return AtOnce::Refused;
                        }
                    },
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        match done {
            Some(Ok(())) => AtOnce::Done,
            Some(Err(Raised)) => {
                s.kont.push(frame());
                AtOnce::GoesOn
            }
            None => {
                self.fuel = fuel;
                AtOnce::Refused
            }
        }
    }

    /// Applies a fixpoint that a variable holds to a small argument, and carries out rounds of it in place.
    fn looped(
        &mut self,
        s: &mut Strand,
        id: TermId,
        function: Operand,
        argument: TermId,
        frame: impl FnOnce() -> Frame,
    ) -> Rounds {
        // A step for the call and one for the variable.
        let Some(fuel) = self.fuel.checked_sub(2) else { return Rounds::Refused };
        self.fuel = fuel;
        let Some(argument) = self.small(&Env::of(s), argument, DEPTH) else { return Rounds::Refused };
        let slot = match function {
            Operand::Local(i) => Slot::Local(i),
            Operand::Captured(i) => Slot::Captured(i),
            Operand::Int(_) => return Rounds::Refused,
        };
        let span = s.code.span(id);
        self.rounds(s, slot, span, argument, |s| s.kont.push(frame()))
    }

    /// Answers a question at once, if somebody can; gives it back if not.
    pub(super) fn answered_at_once(
        &mut self,
        s: &mut Strand,
        question: Question,
        world: &mut dyn Answers,
    ) -> Option<Question> {
        if self.lattice.keeps_origins() {
            return Some(question);
        }
        s.stands();
        let asked = s.asked(&self.lattice, question.channel, question.answer, question.span);
        let response = match &question.call {
            Call::Tool { tool, args } => {
                world.tool(&asked, tool, Args::named(tool, args)).map(Response::Tool)
            }
            Call::Recall { store, key } => world.recall(&asked, store, *key).map(Response::Recall),
            Call::Remember { store, key, value } => {
                world.remember(&asked, store, *key, value).map(Response::Remember)
            }
            Call::Sample { probability, draw } => {
                world.sample(&asked, probability, *draw).map(Response::Sample)
            }
            Call::Model { .. } | Call::Approve { .. } => None,
        };
        let Some(response) = response else { return Some(question) };
        let Question { pending, answer, span, .. } = question;
        let number = s.requests;
        s.requests += 1;
        s.state = State::Waiting;
        s.waiting = Some(Waiting { number, pending, answer, span });
        self.answer(s, number, response);
        None
    }

    /// `tool[f] e` where `e` needs no frame.
    fn called(
        &mut self,
        s: &mut Strand,
        id: TermId,
        tool: ToolId,
        argument: TermId,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        if self.lattice.keeps_origins() || !Arc::ptr_eq(&s.code, &self.root) {
            return None;
        }
        // A step for the call, and one for the tool.
        let fuel = self.fuel.checked_sub(2)?;
        self.fuel = fuel;
        // Out of its place while it is used, which costs less than to count one more share of it.
        let place = tool.0 as usize;
        let tool = match self.tools.get_mut(place).and_then(Option::take) {
            Some(tool) => tool,
            None => self.tool(&s.code, tool),
        };
        let span = s.code.span(id);
        let result = match &tool.body {
            Body::Tool(tool) => match self.small(&Env::of(s), argument, DEPTH) {
                Some((label, small)) => self.call_with_one(s, tool, label, small.data(), span, world),
                None => {
                    self.fuel = fuel;
                    self.atom(s, argument).and_then(|v| self.call_with(s, tool, &v, span, world))
                }
            },
            _ => None,
        };
        self.tools[place] = Some(tool);
        result
    }

    /// A call of a tool that has one parameter with a scalar.
    #[inline]
    fn call_with_one(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        label: Label,
        data: Data,
        span: Span,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        let ([only], [bound]) = (&tool.decl.params[..], &tool.bounds[..]) else { return None };
        self.may_call(s, tool)?;
        self.may_be_given(only, *bound, label, &data)?;
        let given = self.lattice.join(s.pc, label);
        self.ask_tool(s, tool, given, &[data], span, world)
    }

    /// A call of a tool that has one parameter with that, or with a record that has a field for each parameter.
    fn call_with(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        v: &Value,
        span: Span,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        self.may_call(s, tool)?;
        let fields: &[(Name, Value)] = match v.body() {
            Some(Body::Record(fields)) => fields,
            _ => &[],
        };
        let (decl, most) = (&tool.decl, self.config.max_text);
        let mut args: SmallVec<[Data; 2]> = SmallVec::new();
        let mut argument = |param: &ToolParam, bound: Label, around: Label, v: &Value| {
            let label = v.deep_label_in(&mut self.lattice, around);
            let data = v.to_data(most).ok()?;
            self.may_be_given(param, bound, label, &data)?;
            args.push(data);
            Some(())
        };
        match (&decl.params[..], &tool.bounds[..]) {
            ([only], [bound]) if fields.iter().all(|(n, _)| *n != only.name) => {
                argument(only, *bound, Label::BOTTOM, v)?;
            }
            // Names are distinct, so as many fields as parameters, each of which is found, are all that there are.
            (params, bounds) if !params.is_empty() && fields.len() == params.len() => {
                for (param, bound) in params.iter().zip(bounds) {
                    let (_, field) = fields.iter().find(|(n, _)| *n == param.name)?;
                    argument(param, *bound, v.label, field)?;
                }
            }
            _ => return None,
        }
        let given = self.blame(s, v);
        self.ask_tool(s, tool, given, &args, span, world)
    }

    /// Whether a tool may be called here and nobody is to decide about that. Approval admits more, and asks first.
    #[inline]
    fn may_call(&self, s: &Strand, tool: &Tool) -> Option<()> {
        let decides = tool.decl.approve || tool.decl.policy.is_some();
        (!decides && self.lattice.flows(s.pc, tool.control)).then_some(())
    }

    /// Whether data of this label may be the argument.
    #[inline]
    fn may_be_given(&self, param: &ToolParam, bound: Label, label: Label, data: &Data) -> Option<()> {
        (self.lattice.flows(label, bound) && param.ty.admits(data)).then_some(())
    }

    /// Calls a tool; `given` is the join of the program counter and all labels of the arguments.
    #[inline]
    fn ask_tool(
        &mut self,
        s: &mut Strand,
        tool: &Tool,
        given: Label,
        args: &[Data],
        span: Span,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        let label = self.lattice.join(given, tool.result);
        s.stands();
        let asked = s.asked(&self.lattice, tool.channel, label, span);
        let result = world.tool(&asked, &tool.decl, Args::bare(&tool.decl, args))?;
        s.requests += 1;
        let value = self.result(s, tool, label, Label::BOTTOM, span, result);
        Some(s.done_or_raised(value))
    }

    /// `recall k`.
    fn recalled_at_once(
        &mut self,
        s: &mut Strand,
        id: TermId,
        (store, key): (StoreId, u32),
        world: &mut dyn Answers,
    ) -> Option<Done> {
        if self.lattice.keeps_origins() {
            return None;
        }
        self.fuel = self.fuel.checked_sub(1)?;
        s.stands();
        let (decl, span) = (s.code.store(store), s.code.span(id));
        let label = self.recalls(decl, key, s.pc);
        let asked = s.asked(&self.lattice, label, label, span);
        let result = world.recall(&asked, decl, key)?;
        s.requests += 1;
        let value = self.found(s, (store, key), label, span, result);
        Some(s.done_or_raised(value))
    }

    /// `remember k e` where `e` needs no frame.
    fn remembered_at_once(
        &mut self,
        s: &mut Strand,
        id: TermId,
        (store, key): (StoreId, u32),
        e: TermId,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        if self.lattice.keeps_origins() {
            return None;
        }
        self.fuel = self.fuel.checked_sub(1)?;
        let v = self.atom(s, e)?;
        s.stands();
        let (decl, span) = (s.code.store(store), s.code.span(id));
        let kept = &decl.keys[key as usize];
        let bound = self.lattice.resolve(&kept.label).unwrap_or_default();
        let deep = self.blame(s, &v);
        if !self.lattice.flows(deep, bound) {
            return None;
        }
        let data = v.to_data(self.config.max_text).ok().filter(|data| kept.ty.admits(data))?;
        let asked = s.asked(&self.lattice, bound, bound, span);
        let result = world.remember(&asked, decl, key, &data)?;
        s.requests += 1;
        let value = self.kept(s, bound, span, result);
        Some(s.done_or_raised(value))
    }

    /// Enters a text that is written there, or that a variable holds, into the conversation.
    fn sent(&mut self, s: &mut Strand, id: TermId, role: Role, e: TermId) -> Option<Done> {
        // Where origins are kept it matters what raises the label.
        if self.lattice.keeps_origins() || !self.lattice.flows(s.pc, s.conversation.label) {
            return None;
        }
        self.fuel = self.fuel.checked_sub(2)?;
        let (text, label) = match s.code.term(e) {
            Term::Lit(Data::Str(text)) => (text, s.pc),
            Term::Var(..) => match held(s, e) {
                Some(Value { label, kind: Kind::Str(text) }) => (text, self.lattice.join(*label, s.pc)),
                _ => return None,
            },
            _ => return None,
        };
        if text.len() > self.config.max_text {
            return None;
        }
        let (text, span) = (text.clone(), s.code.span(id));
        self.say(s, role, text, None, label, span);
        let unit = Value::unit(s.pc);
        Some(s.done(unit))
    }
}
