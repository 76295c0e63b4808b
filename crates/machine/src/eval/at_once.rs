//! What needs no frame though it does more than compute: entries in the conversation, requests that are answered at once, guards of numbers, pairs of
//! branches and rounds of loops that are carried out in place.
//!
//! Entry points: `Machine::at_once`, where the value of a part or a definition is needed; `Machine::answered_at_once`, for a question that is ready.
//!
//! Invariant: as in [`super::quick`]: gives exactly what the rules give, in value, label, fuel and the names of requests, or does nothing at
//! all; then the rules are followed from the beginning, which also find the words for what is wrong. Nothing is refused once somebody was asked.

use super::quick::{DEPTH, Env, Small, held};
use super::rounds::Rounds;
use super::{Frame, Question, State, Strand, Waiting, message_cost};
use crate::once::{self, shared};
use crate::value::{Body, Kind, Node, Ref, Tool, Value, inside};
use crate::{Answers, Args, Asked, Call, Machine, Message, Response};
use core_ir::{
    Data, Label, Lattice, Name, Operand, Role, Simple, Slot, StoreId, Term, TermId, ToolId, ToolParam,
};
use diagnostics::Span;
use smallvec::SmallVec;
use std::mem::ManuallyDrop;
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
    #[inline(always)]
    fn done(&mut self, value: Value) -> Done {
        self.parts.push(value);
        Ok(())
    }

    /// Adds a number or truth value to the parts.
    #[inline(always)]
    fn add(&mut self, label: Label, small: Small) -> Done {
        small.add_to(&mut self.parts, label);
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
        Asked { channel, answer, span, lattice, strand: self }
    }
}

/// What came of adding parts.
enum Added {
    /// All are there.
    All,
    /// This part needs a frame.
    UpTo(TermId),
    /// Those of a part, this list, have begun, and begin there; this one of them needs a frame.
    Within(TermId, usize, TermId),
    /// As [`AtOnce::GoesOn`].
    GoesOn,
}

/// Whether a term asks the world, says something or guards: what [`Machine::asked`] knows.
#[inline(always)]
fn asks(simple: &Simple) -> bool {
    matches!(
        simple,
        Simple::ToolCall(..)
            | Simple::Recall(..)
            | Simple::Remember(..)
            | Simple::Send(..)
            | Simple::Guard(_)
    )
}

/// Whether a variable holds a function whose body makes a pair of two branches.
#[inline(always)]
fn makes_both(s: &Strand, function: TermId) -> bool {
    let Some(Value { kind: Kind::Node(node), .. }) = held(s, function) else { return false };
    let Body::Closure { code, term, .. } = &node.body else { return false };
    let Term::Abs(abs) = code.term(*term) else { return false };
    matches!(code.simple(abs.body), Simple::Both(..))
}

/// How many parts a term has.
#[inline]
fn parts_of(s: &Strand, term: TermId) -> usize {
    match s.code.term(term) {
        Term::Record(fields) => fields.len(),
        Term::List(terms) | Term::Prim(_, terms) => terms.len(),
        _ => unreachable!("a term with parts"),
    }
}

/// The part of this number.
#[inline]
fn part(s: &Strand, term: TermId, number: usize) -> Option<TermId> {
    match s.code.term(term) {
        Term::Record(fields) => fields.get(number).map(|f| f.1),
        Term::List(terms) | Term::Prim(_, terms) => terms.get(number).copied(),
        _ => unreachable!("a term with parts"),
    }
}

/// Goes on with a value that was made of parts. What waits for it is often something with parts, too: that goes on then, from its term and
/// the beginning of its parts on.
#[inline(always)]
fn up(s: &mut Strand, value: impl FnOnce() -> Value) -> Option<(TermId, usize)> {
    let Some(Frame::Parts(outer, begin)) = s.kont.last() else {
        s.give(value());
        return None;
    };
    let around = (*outer, *begin);
    s.kont.truncate(s.kont.len() - 1);
    once::push(&mut s.parts, value);
    Some(around)
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
            // Room for all that are to come, so that a long list is not copied again and again.
            s.parts.reserve((start + parts_of(s, term)).saturating_sub(s.parts.len()));
            let next = match self.add_parts::<false>(s, term, start, start, (0, 0), world) {
                Added::All => {
                    let around = if let Term::List(_) = s.code.term(term) {
                        let node = self.listed(s, start);
                        let pc = s.pc;
                        up(s, || Value::new(pc, Kind::Node(Ref::Counted(node))))
                    } else {
                        let Some(value) = self.whole(s, term, start) else { return };
                        up(s, || value)
                    };
                    let Some(around) = around else { return };
                    (term, start) = around;
                    continue;
                }
                Added::UpTo(next) => next,
                Added::Within(list, begin, next) => {
                    once::push(&mut s.kont, || Frame::Parts(term, start));
                    (term, start) = (list, begin);
                    next
                }
                Added::GoesOn => return,
            };
            once::push(&mut s.kont, || Frame::Parts(term, start));
            if self.may_begin_parts(s, next, 1) {
                self.fuel -= 1;
                (term, start) = (next, s.parts.len());
            } else {
                s.go(next);
                return;
            }
        }
    }

    /// Whether this is a term with parts, whose parts may begin now. So many frames are there already that wait for it.
    #[inline]
    fn may_begin_parts(&self, s: &Strand, term: TermId, waiting: usize) -> bool {
        matches!(s.code.simple(term), Simple::Parts | Simple::ShortList(..))
            && self.fuel > 0
            && s.kont.len() - waiting < self.config.max_frames
    }

    /// Adds parts of a record, list or primitive, up to one that needs a frame; those that there are begin at `start`. Those of a list may have a room of their own
    /// (`OWN`), which nobody but [`Machine::short_list`] sees: a frame that waits finds them with those of what is around, from `begin` on.
    #[inline(always)]
    fn add_parts<const OWN: bool>(
        &mut self,
        s: &mut Strand,
        term: TermId,
        start: usize,
        begin: usize,
        (first, count): (u32, u32),
        world: &mut dyn Answers,
    ) -> Added {
        loop {
            let done = s.parts.len() - start;
            let mut next = match OWN {
                true if done == count as usize => return Added::All,
                true => s.code.part(first + done as u32),
                false => match part(s, term, done) {
                    Some(next) => next,
                    None => return Added::All,
                },
            };
            let fuel = self.fuel;
            match self.asked(s, next, world) {
                Some(Some(Ok(()))) => continue,
                Some(Some(Err(Raised))) => {
                    s.kont.push(Frame::Parts(term, begin));
                    return Added::GoesOn;
                }
                Some(None) => {
                    self.fuel = fuel;
                    return Added::UpTo(next);
                }
                None => {}
            }
            // A pair of branches is not looked at as a number first.
            let branches = match *s.code.simple(next) {
                Simple::Call(function, _) => makes_both(s, function),
                _ => false,
            };
            if !branches && !matches!(s.code.simple(next), Simple::Parts | Simple::ShortList(..)) {
                let Some(other) = self.add_small(s, term, start) else { return Added::All };
                if other != next && asks(s.code.simple(other)) {
                    continue;
                }
                next = other;
            }
            match *s.code.simple(next) {
                Simple::ShortList(first, count) if !OWN && self.may_begin_parts(s, next, 0) => {
                    self.fuel -= 1;
                    let waiting = s.kont.len();
                    match self.short_list(s, next, (first, count), world) {
                        Added::All => continue,
                        Added::GoesOn => {
                            s.kont.insert(waiting, Frame::Parts(term, start));
                            return Added::GoesOn;
                        }
                        within => return within,
                    }
                }
                Simple::Parts | Simple::ShortList(..) => return Added::UpTo(next),
                Simple::Call(function, argument) => {
                    let frame = || Frame::Parts(term, begin);
                    match self.called_at_once(s, next, (function, argument), &frame) {
                        AtOnce::Done => continue,
                        AtOnce::GoesOn => return Added::GoesOn,
                        AtOnce::Refused => {}
                    }
                }
                _ => {}
            }
            if !self.add_atom(s, next) {
                return Added::UpTo(next);
            }
        }
    }

    /// Adds a list whose parts need no frame: they are written to the room that the list has in the end.
    fn short_list(
        &mut self,
        s: &mut Strand,
        list: TermId,
        (first, count): (u32, u32),
        world: &mut dyn Answers,
    ) -> Added {
        let (room, begin) = (Vec::with_capacity(count as usize), s.parts.len());
        let outer = std::mem::replace(&mut s.parts, room);
        let added = self.add_parts::<true>(s, list, 0, begin, (first, count), world);
        if let Added::All = added {
            let (deep, has_function) = inside(&mut self.lattice, s.parts.iter());
            let node = shared(|| Node { deep, has_function, body: Body::List(std::mem::take(&mut s.parts)) });
            s.parts = outer;
            let pc = s.pc;
            once::push(&mut s.parts, || Value::new(pc, Kind::Node(Ref::Counted(node))));
            return Added::All;
        }
        // The rules keep them with those of what is around.
        let own = std::mem::replace(&mut s.parts, outer);
        s.parts.extend(own);
        match added {
            Added::UpTo(next) => Added::Within(list, begin, next),
            added => added,
        }
    }

    /// What a term that asks the world, says something or guards does, if that needs no frame; `Some(None)` if it needs one, and `None` of any other
    /// term. Uses fuel even if it did nothing.
    #[inline(always)]
    fn asked(&mut self, s: &mut Strand, id: TermId, world: &mut dyn Answers) -> Option<Option<Done>> {
        Some(match *s.code.simple(id) {
            Simple::Recall(store, key) => self.recalled_at_once(s, id, (store, key), world),
            Simple::Remember(store, key, e) => self.remembered_at_once(s, id, (store, key), e, world),
            Simple::ToolCall(tool, argument) => self.called(s, id, tool, argument, world),
            Simple::Send(role, e) => self.sent(s, role, e),
            Simple::Guard(e) => self.guarded_at_once(s, id, e),
            _ => return None,
        })
    }

    /// Applies what a variable holds at once, if that is a pair of branches or a fixpoint and needs no frame; else the caller does. If the strand goes
    /// on with something else, `frame` waits for the value.
    #[inline(never)]
    fn called_at_once(
        &mut self,
        s: &mut Strand,
        id: TermId,
        (function, argument): (TermId, TermId),
        frame: &dyn Fn() -> Frame,
    ) -> AtOnce {
        let fuel = self.fuel;
        let done = match (s.code.simple(function), held(s, function)) {
            (Simple::Operand(operand), Some(Value { kind: Kind::Node(node), .. })) => match node.body {
                Body::Closure { .. } => match self.both(s, function, argument) {
                    Some((label, node)) => {
                        once::push(&mut s.parts, || Value::new(label, Kind::Node(Ref::Counted(node))));
                        AtOnce::Done
                    }
                    None => AtOnce::Refused,
                },
                Body::Fix(..) => match self.looped(s, id, *operand, argument, frame) {
                    Rounds::Ended(value) => {
                        s.parts.push(value);
                        AtOnce::Done
                    }
                    Rounds::GoesOn => AtOnce::GoesOn,
                    Rounds::Refused => AtOnce::Refused,
                },
                _ => AtOnce::Refused,
            },
            _ => AtOnce::Refused,
        };
        if let AtOnce::Refused = done {
            self.fuel = fuel;
        }
        done
    }

    /// Does at once what a term does, if that needs no frame; else the caller does. If the strand goes on with something else, `frame` waits for the value.
    #[inline]
    pub(super) fn at_once(
        &mut self,
        s: &mut Strand,
        id: TermId,
        world: &mut dyn Answers,
        frame: impl Fn() -> Frame,
    ) -> AtOnce {
        let fuel = self.fuel;
        match self.asked(s, id, world) {
            Some(Some(Ok(()))) => AtOnce::Done,
            Some(Some(Err(Raised))) => {
                s.kont.push(frame());
                AtOnce::GoesOn
            }
            Some(None) => {
                self.fuel = fuel;
                AtOnce::Refused
            }
            None => match *s.code.simple(id) {
                Simple::Call(function, argument) => self.called_at_once(s, id, (function, argument), &frame),
                _ => AtOnce::Refused,
            },
        }
    }

    /// Applies a fixpoint that a variable holds to a small argument, and carries out rounds of it in place.
    fn looped(
        &mut self,
        s: &mut Strand,
        id: TermId,
        function: Operand,
        argument: TermId,
        frame: &dyn Fn() -> Frame,
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
        let Question { pending, call, answer, span, .. } = question;
        let number = s.requests;
        s.made(&self.lattice, &call);
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
            Body::Tool(tool) => match self.small_at(s, argument) {
                // A number counts as one part of a text.
                Some((label, small)) if self.config.max_text > 0 => {
                    // Shown where it was written, see `once`; there is nothing in it to be dropped.
                    let data = ManuallyDrop::new([small.data()]);
                    self.call_with_one(s, tool, label, &data, span, world)
                }
                _ => {
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
        data: &[Data; 1],
        span: Span,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        let ([only], [bound]) = (&tool.decl.params[..], &tool.bounds[..]) else { return None };
        self.may_call(s, tool)?;
        self.may_be_given(only, *bound, label, &data[0])?;
        let given = self.lattice.join(s.pc, label);
        self.ask_tool(s, tool, given, data, span, world)
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
        let answer = world.tool(&asked, &tool.decl, Args::bare(&tool.decl, args));
        if let Some(Ok(data)) = &answer
            && let Some(small) = Small::of(data)
            && tool.decl.result.admits(data)
        {
            s.called(&self.lattice, &tool.decl);
            // There is nothing in it to be dropped.
            std::mem::forget(answer);
            return Some(s.add(label, small));
        }
        let result = answer?;
        s.called(&self.lattice, &tool.decl);
        let value = self.result(s, tool, label, Label::BOTTOM, span, result);
        Some(s.done_or_raised(value))
    }

    /// `recall k`.
    #[inline(always)]
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
        let kept = &decl.keys[key as usize];
        let label = self.recalls(kept, s.pc);
        let asked = s.asked(&self.lattice, label, label, span);
        let answer = world.recall(&asked, decl, key);
        if let Some(Ok(Some(data))) = &answer
            && let Some(small) = Small::of(data)
            && kept.ty.admits(data)
        {
            s.requests += 1;
            // There is nothing in it to be dropped.
            std::mem::forget(answer);
            return Some(s.add(label, small));
        }
        let result = answer?;
        s.requests += 1;
        let value = self.found(s, (store, key), label, span, result);
        Some(s.done_or_raised(value))
    }

    /// `remember k e` where `e` needs no frame.
    #[inline(always)]
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
        let fuel = self.fuel;
        if let Some((label, small)) = self.small_at(s, e)
            && self.config.max_text > 0
        {
            let data = ManuallyDrop::new(small.data());
            return self.remember_data(s, id, (store, key), label, &data, world);
        }
        self.fuel = fuel;
        let v = self.atom(s, e)?;
        let label = v.deep_label(&mut self.lattice);
        let data = v.to_data(self.config.max_text).ok()?;
        self.remember_data(s, id, (store, key), label, &data, world)
    }

    /// `remember k V` where `V` is that data, and that is the join of its labels.
    #[inline(always)]
    fn remember_data(
        &mut self,
        s: &mut Strand,
        id: TermId,
        (store, key): (StoreId, u32),
        label: Label,
        data: &Data,
        world: &mut dyn Answers,
    ) -> Option<Done> {
        s.stands();
        let (decl, span) = (s.code.store(store), s.code.span(id));
        let kept = &decl.keys[key as usize];
        let bound = self.lattice.resolve(&kept.label).unwrap_or_default();
        let deep = self.lattice.join(s.pc, label);
        if !self.lattice.flows(deep, bound) || !kept.ty.admits(data) {
            return None;
        }
        let asked = s.asked(&self.lattice, bound, bound, span);
        let answer = world.remember(&asked, decl, key, data);
        if let Some(Ok(())) = answer {
            s.requests += 1;
            let pc = s.pc;
            once::push(&mut s.parts, || Value::unit(pc));
            return Some(Ok(()));
        }
        let result = answer?;
        s.requests += 1;
        let value = self.kept(s, bound, span, result);
        Some(s.done_or_raised(value))
    }

    /// `guard e P` where `e` is a number or truth value that satisfies `P`. One that does not is left to the rules, which know what comes then.
    fn guarded_at_once(&mut self, s: &mut Strand, id: TermId, e: TermId) -> Option<Done> {
        let Term::Guard { pred, .. } = s.code.term(id) else { return None };
        // A number counts as one part of a text.
        if self.lattice.keeps_origins() || self.config.max_text == 0 {
            return None;
        }
        self.fuel = self.fuel.checked_sub(1)?;
        let (label, small) = self.small_at(s, e)?;
        // Looked at where it was written, see `once`; there is nothing in it to be dropped.
        let data = ManuallyDrop::new(small.data());
        pred.holds(&data).ok()?;
        Some(s.add(label, small))
    }

    /// Enters a text that is written there, or that a variable holds, into the conversation.
    fn sent(&mut self, s: &mut Strand, role: Role, e: TermId) -> Option<Done> {
        // Where origins are kept it matters what raises the label.
        if self.lattice.keeps_origins() || !self.lattice.flows(s.pc, s.conversation.label) {
            return None;
        }
        self.fuel = self.fuel.checked_sub(2)?;
        let (at, conversation) = Env::beside_conversation(s);
        let (text, label) = match at.code.term(e) {
            Term::Lit(Data::Str(text)) => (text, at.pc),
            Term::Var(..) => match at.held(e)? {
                Value { label, kind: Kind::Str(text) } => (text, self.lattice.join(*label, at.pc)),
                _ => return None,
            },
            _ => return None,
        };
        if text.len() > self.config.max_text {
            return None;
        }
        // As `say` does where no origins are kept.
        self.fuel = self.fuel.saturating_sub(message_cost(text));
        conversation.label = self.lattice.join(conversation.label, label);
        conversation.messages.push(|| Message { role, content: text.clone(), call: None });
        let pc = s.pc;
        once::push(&mut s.parts, || Value::unit(pc));
        Some(Ok(()))
    }
}
