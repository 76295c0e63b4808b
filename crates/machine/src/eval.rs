//! The rules, as transitions of a strand: a term or a value, and a continuation.
//!
//! Each arm below names its rule by the term former; the text of the rules is `docs/calculus.md` §3, §5, §6, §10.

mod ask;
mod at_once;
mod quick;
mod rounds;
mod state;

use crate::once::{self, Shared, shared};
use crate::prim::{self, PrimError};
use crate::value::{Body, Captures, Kind, Node, NotData, Ref, Tool, Value, inside};
use crate::{
    Answers, Call, Conversation, Deadline, Deadlines, ErrorCode, Failure, Machine, Message, Part, Place,
    Refusal, Remark, Request, RequestId, SHORT, StopReason,
};
use at_once::AtOnce;
use core_ir::{
    Bound, Code, Data, EffectClass, Label, Lattice, ModelParams, Name, Num, Recv, Role, Step, Term, TermId,
    ToolDecl, ToolId, What,
};
use diagnostics::{Span, clip};
use quick::{Env, itself};
use std::sync::Arc;

/// The most branches that may exist at once in one run.
pub(crate) const MAX_STRANDS: usize = 1_000_000;

/// The most time limits in force at once: each request carries them all.
const MAX_DEADLINES: usize = 100;

/// The longest place of a strand: three numbers for each branch around it. Longer ones would take memory in the square of the
/// depth, since each request carries its own.
const LONGEST_PLACE: usize = 300;

/// Steps between two chances for the driver to look after timers and cancellation.
pub(crate) const SLICE: u32 = 200_000;

/// One thread of evaluation: the run itself, or a branch of a `par`.
#[derive(Clone)]
pub(crate) struct Strand {
    pub id: u64,
    pub parent: Option<(usize, usize)>,
    pub conversation: Conversation,
    requests: u32,
    /// Where its requests stand in a trace: for each branch on the way to it, what came before. It counts what happens
    /// under any label, so nothing but a trace may depend on it.
    place: Option<Arc<Vec<u32>>>,
    /// What is still to be added to its place, which is done when it is asked for: most branches ask for nothing.
    place_in: Option<[u32; 3]>,
    /// How many `par`s have begun, for the places of their branches.
    joins: u32,
    /// How many draws and how many `par`s there were, by the label of the program counter: a count over
    /// all labels would tell a low observer what happened under a high one.
    counts: Counts,
    /// The time limits that requests made here have.
    deadlines: Deadlines,
    /// What models are told that are asked here: this is a further attempt of a guard.
    remark: Option<Arc<Remark>>,
    /// The code that is being evaluated.
    code: Arc<Code>,
    /// Where the activation begins on the stack: what its closure has captured, copied. Copying these few values costs less than
    /// counting a reference to the closure, for most are none.
    bottom: usize,
    /// Where its locals begin.
    base: usize,
    stack: Vec<Value>,
    /// The parts of records, lists and primitives that are being evaluated; a frame says where its own begin.
    parts: Vec<Value>,
    kont: Vec<Frame>,
    pc: Label,
    /// The construct that raised the program counter last.
    pc_from: Span,
    state: State,
    waiting: Option<Waiting>,
}

/// What is counted by label.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Draws,
    Pars,
    Scopes,
    /// Calls of tools that write, by their program counter.
    Calls,
}

/// Counters by label. Many runs count nothing.
#[derive(Clone, Default)]
#[allow(clippy::box_collection, reason = "a strand that waits is to be small")]
struct Counts(Option<Box<Vec<(Counted, Label, u64)>>>);

impl Counts {
    /// Counts one more at a label and names it: a hash of label and count that does not depend on
    /// anything that happened at other labels.
    fn next(&mut self, what: Counted, lattice: &Lattice, label: Label) -> u64 {
        let name = self.peek(what, lattice, label);
        self.count(what, lattice, label);
        name
    }

    /// The name that the next one at a label gets.
    fn peek(&self, what: Counted, lattice: &Lattice, label: Label) -> u64 {
        let found = |(w, l, _): &&(Counted, Label, u64)| *w == what && lattice.same(*l, label);
        let count = self.0.iter().flat_map(|all| all.iter()).find(found).map_or(0, |(_, _, count)| *count);
        // The label's text, not its number: numbers are given in the order in which labels are met, and say where they come from.
        lattice.text(label).bytes().fold(count, |h, b| mix(h, u64::from(b)))
    }

    /// Counts one more at a label; says how many there were.
    fn count(&mut self, what: Counted, lattice: &Lattice, label: Label) -> u64 {
        let found = |(w, l, _): &(Counted, Label, u64)| *w == what && lattice.same(*l, label);
        let counts = self.0.get_or_insert_default();
        let at = match counts.iter().position(found) {
            Some(at) => at,
            None => {
                counts.push((what, label, 0));
                counts.len() - 1
            }
        };
        let count = counts[at].2;
        counts[at].2 += 1;
        count
    }
}

#[derive(Clone)]
enum State {
    Eval(TermId),
    Return(Value),
    Raise(Box<Failure>),
    /// For the answer to `Strand::waiting`.
    Waiting,
    Joining(Box<Join>),
    Ended,
}

/// A request that was made.
#[derive(Clone)]
struct Waiting {
    number: u32,
    pending: Pending,
    /// The label of the answer, or of the error that stands for one.
    answer: Label,
    span: Span,
}

/// A request to be made.
#[derive(Clone)]
struct Question {
    pending: Pending,
    call: Call,
    channel: Label,
    answer: Label,
    span: Span,
    /// What it depends on; only if the run explains flow.
    given: Vec<(Part, Label)>,
}

/// A tool call whose arguments have passed the tool's bounds and types.
#[derive(Clone)]
struct Cleared {
    /// The tool.
    tool: Ref,
    args: Vec<(Name, Data)>,
    /// The labels of the arguments.
    labels: Vec<Label>,
    /// `pc` and every label of the arguments.
    given: Label,
    /// The label of the result.
    label: Label,
    span: Span,
}

/// What is to be done with a response.
#[derive(Clone)]
enum Pending {
    Model { mode: Mode, attempt: u32 },
    Tool(Ref),
    Approve(Box<Cleared>),
    Recall { store: core_ir::StoreId, key: u32 },
    Remember,
    Sample { left: TermId, right: TermId },
}

impl Pending {
    /// The kind of error that a failure is.
    fn error(&self) -> ErrorCode {
        match self {
            Pending::Model { .. } => ErrorCode::Model,
            Pending::Tool(_) | Pending::Approve(_) => ErrorCode::Tool,
            Pending::Recall { .. } | Pending::Remember => ErrorCode::Store,
            Pending::Sample { .. } => ErrorCode::Unknown,
        }
    }
}

/// How a reply is received.
#[derive(Clone)]
enum Mode {
    Code,
    Data(Arc<ModelParams>, Arc<Code>),
}

/// What the branches of a join do.
#[derive(Clone)]
enum Branches {
    /// Of this `par` term: a term each.
    Terms(TermId, usize),
    /// `each`: the function is applied to an item each.
    Calls { function: Value, items: Vec<Value>, span: Span },
}

impl Branches {
    fn len(&self) -> usize {
        match self {
            Branches::Terms(_, count) => *count,
            Branches::Calls { items, .. } => items.len(),
        }
    }
}

#[derive(Clone)]
struct Join {
    branches: Branches,
    results: Vec<Option<Result<Value, Failure>>>,
    started: usize,
    running: usize,
    most: usize,
    /// Whether it stands in `Machine::starting`.
    queued: bool,
    /// Which `par` of this strand it is, for the names of its branches.
    name: u64,
}

/// What is to be done with the value of a subterm. A `TermId` is of the activation that the frame stands in.
#[derive(Clone)]
enum Frame {
    /// End of an activation: go back to that of the caller; its code is told if it is another.
    Ret { code: Option<Arc<Code>>, bottom: usize, base: usize, pc: Label, pc_from: Span },
    /// End of a stretch at a raised program counter.
    Pc { pc: Label, pc_from: Span },
    /// End of `fork`, `fresh` or `llm`. Boxed, as what is large in other frames is: most frames are small, and all are moved.
    Conv { conversation: Box<Conversation>, pc: Label, pc_from: Span },
    /// The first subterm of this term was evaluated.
    First(TermId),
    /// The second, after the first gave this value.
    Second(TermId, Value),
    /// The argument of a function that is written there.
    Applied(TermId),
    /// A branch of a `par` that is carried out right here; the results before it begin there in `Strand::parts`.
    Branch { par: TermId, start: usize, failed: Option<Box<Failure>>, pc: Label, pc_from: Span },
    /// One of a sequence of parts, which begin there in `Strand::parts`.
    Parts(TermId, usize),
    /// The definition of this index.
    Let(TermId, usize),
    /// The body of `?`, `endorse` or `declassify`, with `l` and `pc ⊔ n`.
    Labelled { term: TermId, l: Label, at: Label, pc: Label, pc_from: Span },
    /// The function to be applied to this argument.
    FixArg(Value, Span),
    /// An attempt of a `guard`, with the attempts left and what models are told outside.
    Guard { guarded: Guarded, left: u32, remark: Option<Arc<Remark>>, pc: Label, pc_from: Span },
    /// The body of a `try`.
    Try { term: TermId, at: Label, pc: Label, pc_from: Span },
    /// The body of a `within`, with the limits outside.
    Within(Deadlines),
    /// The policy of the tool of a call.
    Policy(Box<Cleared>),
    /// The term that a model wrote.
    Generated,
    /// A question to be put to a model again.
    Ask(Box<Question>),
}

impl Frame {
    /// Whether taking this frame restores the program counter, so that nobody below needs to.
    fn restores_pc(&self) -> bool {
        matches!(
            self,
            Frame::Ret { .. }
                | Frame::Pc { .. }
                | Frame::Conv { .. }
                | Frame::Labelled { .. }
                | Frame::Guard { .. }
                | Frame::Try { .. }
                | Frame::Branch { .. }
        )
    }
}

/// What a `guard` tries.
#[derive(Clone)]
enum Guarded {
    /// The subterm of this `guard` term.
    Term(TermId),
    /// A guarded function applied to an argument.
    Call(Box<(Ref, Value)>),
}

pub(crate) enum Outcome {
    Request(RequestId, Request),
    Working,
    Joining,
    Ended(Result<Value, Failure>),
    /// An error that nobody may catch ends the run.
    Final(Failure),
}

/// A closure without captures: a prelude function, or a whole code to be evaluated.
fn closed(code: Arc<Code>, term: TermId) -> Ref {
    let body = Body::Closure { code, term, captures: Captures::new() };
    Ref::new(Node { deep: Label::BOTTOM, has_function: true, body })
}

/// SplitMix64, to name branches by the way to them.
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Strand {
    pub(crate) fn root(code: Arc<Code>, input: Option<Value>, conversation: Conversation) -> Strand {
        let root = code.root();
        let span = code.span(root);
        let mut kont = Vec::new();
        if let Some(input) = input {
            kont.push(Frame::FixArg(input, span));
        }
        Strand {
            id: crate::ROOT,
            parent: None,
            place: None,
            place_in: None,
            joins: 0,
            conversation,
            requests: 0,
            counts: Counts::default(),
            deadlines: Deadlines::default(),
            remark: None,
            code,
            bottom: 0,
            base: 0,
            stack: Vec::new(),
            parts: Vec::new(),
            kont,
            pc: Label::BOTTOM,
            pc_from: span,
            state: State::Eval(root),
            waiting: None,
        }
    }

    /// Goes on with the value of the term at hand. The state was taken when this step began, so there is nothing to drop.
    #[inline]
    fn give(&mut self, value: Value) {
        std::mem::forget(std::mem::replace(&mut self.state, State::Return(value)));
    }

    /// Goes on with this term; see [`Strand::give`].
    #[inline]
    fn go(&mut self, term: TermId) {
        std::mem::forget(std::mem::replace(&mut self.state, State::Eval(term)));
    }

    /// Sets the program counter for what follows; what comes after that finds the old one again.
    fn set_pc(&mut self, pc: Label, from: Span) {
        if pc == self.pc {
            return;
        }
        if self.kont.last().is_some_and(|f| !f.restores_pc()) {
            self.kont.push(Frame::Pc { pc: self.pc, pc_from: self.pc_from });
        }
        self.pc = pc;
        self.pc_from = from;
    }

    /// Binds local `index` of the current activation; those from there on are out of scope.
    fn bind(&mut self, index: usize, value: Value) {
        self.stack.truncate(self.base + index);
        self.stack.push(value);
    }

    /// Begins an activation; in tail position the current one ends with that.
    fn enter(
        &mut self,
        code: &Arc<Code>,
        captures: impl IntoIterator<Item = Value>,
        argument: Option<Value>,
        (pc, from): (Label, Span),
        body: TermId,
    ) {
        let new = self.stack.len();
        self.stack.extend(captures);
        let base = self.stack.len();
        self.stack.extend(argument);
        self.begin(Some(code), (new, base), (pc, from), body);
    }

    /// Begins the activation whose captures and argument were pushed on the stack, from `new` and `base` on; of this code, if it
    /// may be another.
    #[inline]
    fn begin(
        &mut self,
        code: Option<&Arc<Code>>,
        (new, base): (usize, usize),
        (pc, from): (Label, Span),
        body: TermId,
    ) {
        let other = code.filter(|code| !Arc::ptr_eq(code, &self.code)).cloned();
        let left = other.map(|code| std::mem::replace(&mut self.code, code));
        if let Some(Frame::Ret { code: caller, .. }) = self.kont.last_mut() {
            // The caller's code is the first that was left.
            if caller.is_none() {
                *caller = left;
            }
            self.stack.drain(self.bottom..new);
            self.base = base - (new - self.bottom);
        } else {
            let (bottom, base_before) = (self.bottom, self.base);
            let (caller, from) = (self.pc, self.pc_from);
            once::push(&mut self.kont, || Frame::Ret {
                code: left,
                bottom,
                base: base_before,
                pc: caller,
                pc_from: from,
            });
            (self.bottom, self.base) = (new, base);
        }
        if pc != self.pc {
            self.pc = pc;
            self.pc_from = from;
        }
        self.go(body);
    }

    /// Ends an activation: its values are given up, and those of the caller are in reach again.
    #[inline]
    fn leave(&mut self, code: Option<Arc<Code>>, (bottom, base): (usize, usize), (pc, from): (Label, Span)) {
        self.stack.truncate(self.bottom);
        if let Some(code) = code {
            self.code = code;
        }
        (self.bottom, self.base) = (bottom, base);
        (self.pc, self.pc_from) = (pc, from);
    }

    /// What a closure that is made here captures.
    fn captured(&self, slot: core_ir::Slot) -> Option<&Value> {
        match slot {
            core_ir::Slot::Local(i) => self.stack.get(self.base + i as usize),
            core_ir::Slot::Captured(i) => self.stack.get(self.bottom + i as usize),
            core_ir::Slot::Global(_) => None,
        }
    }

    /// The parts from `start` on, which are copied at once: one by one would take longer.
    fn taken(&mut self, start: usize) -> Vec<Value> {
        if start > 0 {
            return self.parts.split_off(start);
        }
        let mut taken = Vec::with_capacity(self.parts.len());
        taken.append(&mut self.parts);
        taken
    }

    fn message(&mut self, role: Role, content: Arc<str>, call: Option<Arc<(Name, Data)>>) {
        self.conversation.messages.push(|| Message { role, content, call });
    }

    /// Where its requests stand.
    fn place(&mut self) -> Option<Arc<Vec<u32>>> {
        if let Some(own) = self.place_in.take() {
            let around = self.place.as_ref().map_or(&[][..], |place| place);
            self.place = Some(Arc::new([around, &own].concat()));
        }
        self.place.clone()
    }

    /// Name of a call of a tool that it would make now; see [`Request::call_id`].
    pub(crate) fn call_id(&self, lattice: &Lattice, tool: &ToolDecl) -> Option<u64> {
        // The tool is given the key and may answer by it. The program counter flows to the channel and to the
        // label of the answer, so who sees either sees the branch and all calls that are counted.
        let name = || mix(self.id, self.counts.peek(Counted::Calls, lattice, self.pc));
        (tool.effect == EffectClass::Write).then(name)
    }

    /// Counts a request that was made.
    fn made(&mut self, lattice: &Lattice, call: &Call) {
        match call {
            Call::Tool { tool, .. } => self.called(lattice, tool),
            _ => self.requests += 1,
        }
    }

    /// Counts a call of a tool that was made.
    fn called(&mut self, lattice: &Lattice, tool: &ToolDecl) {
        self.requests += 1;
        if tool.effect == EffectClass::Write {
            self.counts.count(Counted::Calls, lattice, self.pc);
        }
    }

    pub(crate) fn next_request(&self) -> RequestId {
        RequestId { strand: self.id, number: self.requests }
    }

    /// Where its next request stands; its place is there ([`Strand::stands`]).
    pub(crate) fn next_place(&self) -> Place {
        Place { branch: self.place.clone(), number: self.requests }
    }

    /// The time limits of its next request.
    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// Sees to it that its place is there.
    #[inline]
    fn stands(&mut self) {
        if self.place_in.is_some() {
            self.place();
        }
    }

    /// The next branch of the `par` this strand waits for, if its bound admits one more.
    pub(crate) fn next_branch(&mut self, lattice: &mut Lattice, slot: usize) -> Option<Strand> {
        let place = self.place();
        let State::Joining(join) = &mut self.state else { return None };
        let index = join.started;
        if index >= join.branches.len() || join.running >= join.most {
            return None;
        }
        join.started += 1;
        join.running += 1;
        let (state, kont, in_scope) = match &join.branches {
            Branches::Terms(par, _) => {
                let Term::Par(_, terms) = self.code.term(*par) else { unreachable!("the term of a `par`") };
                let in_scope = self.bottom..self.base + self.code.locals(terms[index]);
                (State::Eval(terms[index]), Vec::new(), in_scope)
            }
            Branches::Calls { function, items, span } => {
                let call = vec![Frame::FixArg(items[index].clone(), *span)];
                (State::Return(function.clone()), call, self.bottom..self.base)
            }
        };
        // Branches stand before the next request of this strand, and after those of an earlier `par`.
        self.joins += u32::from(index == 0);
        let mut conversation = self.conversation.copy();
        conversation.label = lattice.join(conversation.label, self.pc);
        let short = place.as_ref().is_none_or(|p| p.len() < LONGEST_PLACE);
        let place_in = short.then(|| [self.requests, self.joins, u32::try_from(index).unwrap_or(u32::MAX)]);
        Some(Strand {
            id: mix(mix(self.id, join.name), index as u64),
            parent: Some((slot, index)),
            place,
            place_in,
            joins: 0,
            conversation,
            requests: 0,
            counts: Counts::default(),
            deadlines: self.deadlines.clone(),
            remark: self.remark.clone(),
            code: self.code.clone(),
            bottom: 0,
            base: self.base - self.bottom,
            stack: self.stack[in_scope].to_vec(),
            parts: Vec::new(),
            kont,
            pc: self.pc,
            pc_from: self.pc_from,
            state,
            waiting: None,
        })
    }

    /// Notes whether this joining strand is to be looked at; says if that is news.
    pub(crate) fn is_to_be_looked_at(&mut self, queued: bool) -> bool {
        match &mut self.state {
            State::Joining(join) => std::mem::replace(&mut join.queued, queued) != queued,
            _ => false,
        }
    }

    /// The term whose request it waits for.
    pub(crate) fn waits_for(&self) -> Option<Span> {
        match &self.state {
            State::Waiting => self.waiting.as_ref().map(|w| w.span),
            _ => None,
        }
    }

    /// The conversation that is left when everything that was opened inside is closed.
    pub(crate) fn outermost_conversation(self) -> Conversation {
        let opened = self.kont.into_iter().find_map(|frame| match frame {
            Frame::Conv { conversation, .. } => Some(*conversation),
            _ => None,
        });
        opened.unwrap_or(self.conversation)
    }

    /// Gives back the room that it does not need while it waits for an answer, which may be long.
    pub(crate) fn rest(&mut self) {
        if !matches!(self.state, State::Waiting) {
            return;
        }
        fn fit<T>(room: &mut Vec<T>) {
            if room.capacity() <= SHORT {
                room.shrink_to_fit();
            }
        }
        fit(&mut self.stack);
        fit(&mut self.parts);
        fit(&mut self.kont);
        self.conversation.messages.fit();
    }

    /// The program counter it runs at.
    pub(crate) fn pc(&self) -> Label {
        self.pc
    }

    pub(crate) fn branch_ended(&mut self, index: usize, result: Result<Value, Failure>) {
        if let State::Joining(join) = &mut self.state {
            join.results[index] = Some(result);
            join.running -= 1;
        }
    }

    /// Goes on if every branch has ended; says whether it does.
    pub(crate) fn joined(&mut self, lattice: &mut Lattice) -> bool {
        let State::Joining(join) = &mut self.state else { return false };
        if join.running > 0 || join.started < join.branches.len() {
            return false;
        }
        let results: Result<Vec<Value>, Failure> = join.results.drain(..).flatten().collect();
        self.state = match results {
            Ok(values) => State::Return(Value::node(lattice, self.pc, Body::List(values))),
            Err(failure) => State::Raise(Box::new(failure)),
        };
        true
    }

    fn fail(&mut self, code: ErrorCode, label: Label, span: Span, message: impl Into<String>) {
        let message = message.into();
        let stopped = (code == ErrorCode::Fuel).then_some(StopReason::Fuel);
        let failure = Failure {
            code,
            message,
            label,
            strand: self.id,
            span,
            notes: Vec::new(),
            refusal: None,
            stopped,
            permanent: false,
            unattended: false,
        };
        self.state = State::Raise(Box::new(failure));
    }

    /// Says of a failure that it comes again however often the request is repeated.
    fn permanently(&mut self) {
        if let State::Raise(f) = &mut self.state {
            f.permanent = true;
        }
    }

    /// Says of a failure that nobody was there to approve the call. It comes again however often the call is
    /// repeated.
    fn unattended(&mut self) {
        if let State::Raise(f) = &mut self.state {
            (f.permanent, f.unattended) = (true, true);
        }
    }

    /// Says of a failure which bound was broken.
    fn refused(&mut self, part: Part, name: Option<&Name>, label: Label, bound: Label) {
        if let State::Raise(f) = &mut self.state {
            f.refusal = Some(Box::new(Refusal { part, name: name.cloned(), label, bound }));
        }
    }

    fn explain(&mut self, span: Span, note: impl Into<String>) {
        if let State::Raise(f) = &mut self.state {
            f.notes.push((span, note.into()));
        }
    }
}

impl Machine {
    /// Runs a strand until it needs the world, has used its slice, waits for branches, or has ended.
    pub(crate) fn run(&mut self, s: &mut Strand, world: &mut dyn Answers) -> Outcome {
        // A step may do a lot in place; what it does is in the fuel.
        let enough = self.fuel.saturating_sub(u64::from(SLICE));
        for _ in 0..SLICE {
            // What is at hand is left where it is if it can be, instead of being moved out and in again.
            if let State::Eval(id) = s.state {
                if self.fuel < enough {
                    break;
                }
                if self.fuel == 0 || s.kont.len() > self.config.max_frames {
                    let span = s.code.span(id);
                    let message = if self.fuel == 0 {
                        format!("still running after {} steps", self.config.fuel)
                    } else {
                        format!("recursion deeper than {} frames", self.config.max_frames)
                    };
                    s.kont.clear();
                    s.fail(ErrorCode::Fuel, s.pc, span, message);
                    continue;
                }
                self.fuel -= 1;
                if let Some(question) = self.eval(s, id, world)
                    && let Some(question) = self.answered_at_once(s, question, world)
                {
                    return self.request(s, question);
                }
                if let State::Joining(_) = s.state {
                    return Outcome::Joining;
                }
                continue;
            }
            if let State::Return(value) = &s.state {
                match s.kont.last() {
                    Some(Frame::Ret { .. }) => {
                        if let Some(Frame::Ret { code, bottom, base, pc, pc_from }) = s.kont.pop() {
                            s.leave(code, (bottom, base), (pc, pc_from));
                        }
                        continue;
                    }
                    Some(Frame::Pc { pc, pc_from }) => {
                        (s.pc, s.pc_from) = (*pc, *pc_from);
                        s.kont.pop();
                        continue;
                    }
                    Some(Frame::Parts(term, start)) => {
                        let (term, start) = (*term, *start);
                        if let Kind::Num(n) = &value.kind
                            && let Some(i) = n.to_i64()
                        {
                            s.parts.push(Value::new(value.label, Kind::Num(Num::from(i))));
                        } else if let State::Return(value) = std::mem::replace(&mut s.state, State::Ended) {
                            s.parts.push(value);
                        }
                        s.kont.pop();
                        self.gather(s, term, start, world);
                        continue;
                    }
                    _ => {}
                }
            }
            match std::mem::replace(&mut s.state, State::Ended) {
                State::Eval(_) => unreachable!("done above"),
                State::Return(value) => match s.kont.pop() {
                    None => return Outcome::Ended(Ok(value)),
                    Some(frame) => {
                        if let Some(question) = self.resume(s, frame, value, world)
                            && let Some(question) = self.answered_at_once(s, question, world)
                        {
                            return self.request(s, question);
                        }
                        if let State::Joining(_) = s.state {
                            return Outcome::Joining;
                        }
                    }
                },
                State::Raise(failure) => match s.kont.pop() {
                    None => return Outcome::Ended(Err(*failure)),
                    Some(frame) => {
                        if let Some(last) = self.unwind(s, frame, failure) {
                            return Outcome::Final(*last);
                        }
                    }
                },
                State::Waiting | State::Joining(_) | State::Ended => {
                    // INVARIANT: only strands that can go on are in the ready queue.
                    unreachable!("a strand that waits is not run")
                }
            }
        }
        Outcome::Working
    }

    fn request(&mut self, s: &mut Strand, question: Question) -> Outcome {
        let Question { pending, call, channel, answer, span, mut given } = question;
        if self.lattice.keeps_origins() {
            given.push((Part::Control, s.pc));
        }
        let id = RequestId { strand: s.id, number: s.requests };
        s.state = State::Waiting;
        s.waiting = Some(Waiting { number: s.requests, pending, answer, span });
        let place = Place { branch: s.place(), number: s.requests };
        let call_id = match &call {
            Call::Tool { tool, .. } => s.call_id(&self.lattice, tool),
            _ => None,
        };
        s.made(&self.lattice, &call);
        Outcome::Request(
            id,
            Request {
                call,
                channel,
                answer,
                deadlines: s.deadlines.clone(),
                given: given.into(),
                span,
                place,
                call_id,
            },
        )
    }

    fn deep(&mut self, v: &Value) -> Label {
        v.deep_label(&mut self.lattice)
    }

    /// `pc ⊔ deep V`, the label of most errors.
    fn blame(&mut self, s: &Strand, v: &Value) -> Label {
        let deep = self.deep(v);
        self.lattice.join(s.pc, deep)
    }

    /// Uses fuel in proportion to bytes copied.
    fn charge(&mut self, steps: u64) {
        self.fuel = self.fuel.saturating_sub(steps);
    }

    fn not_data(&mut self, s: &mut Strand, v: &Value, e: NotData, code: ErrorCode, span: Span) {
        let code = if e == NotData::Function { code } else { ErrorCode::Limit };
        let label = self.blame(s, v);
        s.fail(code, label, span, e.message());
    }

    /// One step into a term.
    fn eval(&mut self, s: &mut Strand, id: TermId, world: &mut dyn Answers) -> Option<Question> {
        match s.code.term(id) {
            Term::App(function, argument) => {
                let (function, argument) = (*function, *argument);
                if self.call(s, id, function, argument) {
                    return None;
                }
                if let Term::Tool(tool) = s.code.term(function)
                    && let Some(left) = self.fuel.checked_sub(1)
                {
                    let (tool, fuel) = (*tool, std::mem::replace(&mut self.fuel, left));
                    if let Some(argument) = self.atom(s, argument) {
                        let tool = self.tool(&s.code, tool);
                        let span = s.code.span(id);
                        return self.call_tool(s, tool, argument, span);
                    }
                    self.fuel = fuel;
                }
                // To make the function does nothing that anybody could tell, so it is made when its argument is there.
                if self.fuel > 0 && matches!(s.code.term(function), Term::Abs(_)) {
                    self.fuel -= 1;
                    s.kont.push(Frame::Applied(id));
                    s.go(argument);
                    return None;
                }
            }
            Term::Var(..)
            | Term::Lit(_)
            | Term::Prim(..)
            | Term::Field(..)
            | Term::Index(..)
            | Term::Fst(_)
            | Term::Snd(_) => {
                // The step of this term was counted already.
                self.fuel += 1;
                if self.give_atom(s, id) {
                    return None;
                }
                self.fuel -= 1;
            }
            _ => {}
        }
        let code = &s.code;
        match code.term(id) {
            // INVARIANT: what needs no frame was done above; there is fuel for it, since there was for this step.
            Term::Var(..) | Term::Lit(_) => unreachable!("a term that needs no frame"),
            Term::Abs(abs) => {
                let mut captured = Captures::with_capacity(abs.captures.len());
                for slot in &abs.captures {
                    captured.push(match (s.captured(*slot), slot) {
                        (Some(value), _) => value.clone(),
                        (None, core_ir::Slot::Global(i)) => {
                            Value::new(Label::BOTTOM, Kind::Node(self.global(*i)))
                        }
                        // INVARIANT: `Builder::finish` resolves variables to slots that are there.
                        (None, _) => unreachable!("a captured variable"),
                    });
                }
                let body = Body::Closure { code: code.clone(), term: id, captures: captured };
                s.give(Value::node(&mut self.lattice, s.pc, body));
            }
            Term::App(e, _)
            | Term::Field(e, _)
            | Term::Index(e, _)
            | Term::With(e, _, _)
            | Term::Pair(e, _)
            | Term::Each(_, e, _)
            | Term::Fst(e)
            | Term::Snd(e)
            | Term::Tag(_, Some(e))
            | Term::Case { scrutinee: e, .. }
            | Term::Classify(_, e)
            | Term::Fix { body: e, .. }
            | Term::Remember(_, _, e)
            | Term::Llm(e, _)
            | Term::Send(_, e)
            | Term::Relabel(e, _)
            | Term::Test(e, _)
            | Term::Assert(e, _)
            | Term::Endorse(e, _)
            | Term::Declassify(e, _)
            | Term::Try { label: e, .. }
            | Term::Fail(e)
            | Term::Check(_, _, e) => {
                let e = *e;
                match self.atom(s, e) {
                    Some(v) => return self.first(s, id, v),
                    None => {
                        s.kont.push(Frame::First(id));
                        s.go(e);
                    }
                }
            }
            Term::If(e, ..) => {
                let e = *e;
                if let Some((label, yes)) = self.condition(s, e) {
                    self.decided(s, id, label, yes);
                } else {
                    match self.atom(s, e) {
                        Some(v) => return self.first(s, id, v),
                        None => {
                            s.kont.push(Frame::First(id));
                            s.go(e);
                        }
                    }
                }
            }
            Term::Let { .. } => self.definitions(s, id, 0, world),
            Term::Record(fields) if fields.is_empty() => s.give(Value::unit(s.pc)),
            Term::Record(_) | Term::List(_) | Term::Prim(..) => self.gather(s, id, s.parts.len(), world),
            Term::Tag(name, None) => {
                let body = Body::Tag(name.clone(), Value::new(s.pc, Kind::Null));
                s.give(Value::node(&mut self.lattice, s.pc, body));
            }
            Term::Guard { term, retry, .. } => {
                let (term, left) = (*term, *retry);
                if let Some(v) = self.atom(s, term) {
                    return self.guarded(s, Guarded::Term(id), left, (s.pc, s.pc_from), v);
                }
                let (guarded, remark) = (Guarded::Term(id), s.remark.clone());
                s.kont.push(Frame::Guard { guarded, left, remark, pc: s.pc, pc_from: s.pc_from });
                s.go(term);
            }
            Term::Mem(_, e) => s.go(*e),
            Term::Within(..) if s.deadlines.len() >= MAX_DEADLINES => {
                let message = format!("more than {MAX_DEADLINES} time limits in force at once");
                let span = code.span(id);
                s.fail(ErrorCode::Limit, s.pc, span, message);
            }
            Term::Within(seconds, e) => {
                let scope = mix(s.id, s.counts.next(Counted::Scopes, &self.lattice, s.pc));
                let limits = s.deadlines.and(Deadline { scope, seconds: seconds.clone() }, code.span(id));
                s.go(*e);
                s.kont.push(Frame::Within(std::mem::replace(&mut s.deadlines, limits)));
            }
            Term::Recall(name, at) => {
                let span = code.span(id);
                let Some((store, key)) = *at else {
                    // INVARIANT: `Builder::finish` resolves keys; the code cannot have been made otherwise.
                    let message = format!("no store has the key `{name}`");
                    s.fail(ErrorCode::Unknown, s.pc, span, message);
                    return None;
                };
                let decl = code.store(store).clone();
                let label = self.recalls(&decl.keys[key as usize], s.pc);
                let pending = Pending::Recall { store, key };
                let call = Call::Recall { store: decl, key };
                return Some(Question {
                    pending,
                    call,
                    channel: label,
                    answer: label,
                    span,
                    given: Vec::new(),
                });
            }
            Term::Choose(p, left, right) => {
                let span = code.span(id);
                let draw = mix(s.id, s.counts.next(Counted::Draws, &self.lattice, s.pc));
                let call = Call::Sample { probability: p.clone(), draw };
                let pending = Pending::Sample { left: *left, right: *right };
                return Some(Question {
                    pending,
                    call,
                    channel: s.pc,
                    answer: s.pc,
                    span,
                    given: Vec::new(),
                });
            }
            Term::Tool(tool) => {
                let node = self.tool(code, *tool);
                s.give(Value::new(s.pc, Kind::Node(node)));
            }
            Term::Recv(mode) => {
                let mode = match mode {
                    Recv::Code => Mode::Code,
                    Recv::Data(params) => Mode::Data(params.clone(), code.clone()),
                };
                let span = code.span(id);
                return self.receive(s, mode, 0, span);
            }
            Term::Fork(e) => {
                let e = *e;
                let saved = Box::new(s.conversation.copy());
                s.conversation.label = self.lattice.join(saved.label, s.pc);
                s.kont.push(Frame::Conv { conversation: saved, pc: s.pc, pc_from: s.pc_from });
                s.go(e);
            }
            Term::Fresh(e) => {
                let e = *e;
                self.open(s);
                s.go(e);
            }
            Term::Clear => {
                let span = code.span(id);
                if self.may_touch_conversation(s, "clear", span) {
                    s.conversation = Conversation::empty(s.pc);
                    s.give(Value::unit(s.pc));
                }
            }
            Term::Par(most, branches) => {
                if branches.is_empty() {
                    s.give(Value::node(&mut self.lattice, s.pc, Body::List(Vec::new())));
                    return None;
                }
                if self.is_plain(s, branches) {
                    s.joins += 1;
                    s.counts.count(Counted::Pars, &self.lattice, s.pc);
                    self.branches(s, id, s.parts.len(), None);
                    return None;
                }
                let (most, branches) = (*most, Branches::Terms(id, branches.len()));
                self.branch_out(s, most, branches);
            }
            Term::Unknown(reason) => {
                let (span, message) = (code.span(id), format!("not known before the run: {reason}"));
                s.fail(ErrorCode::Unknown, s.pc, span, message);
            }
        }
        None
    }

    /// Waits for branches, of which there is at least one.
    fn branch_out(&mut self, s: &mut Strand, most: Option<u32>, branches: Branches) {
        let join = Join {
            results: (0..branches.len()).map(|_| None).collect(),
            branches,
            started: 0,
            running: 0,
            queued: false,
            // A bound of zero would never end; it means one at a time.
            most: most.map_or(usize::MAX, |n| n.max(1) as usize),
            name: s.counts.next(Counted::Pars, &self.lattice, s.pc),
        };
        s.state = State::Joining(Box::new(join));
    }

    /// Opens an empty conversation at the program counter, until its frame is taken.
    fn open(&mut self, s: &mut Strand) {
        let saved = std::mem::replace(&mut s.conversation, Conversation::empty(s.pc));
        s.kont.push(Frame::Conv { conversation: Box::new(saved), pc: s.pc, pc_from: s.pc_from });
    }

    fn global(&mut self, index: u32) -> Ref {
        if let Some(node) = &self.globals[index as usize] {
            return node.clone();
        }
        // INVARIANT: a global slot of this code, of the prelude itself, and of generated code, which is
        // parsed against the same prelude, is an index into it.
        let (code, term) = self.root.globals().get(index).expect("a prelude definition");
        let node = closed(code.clone(), term);
        self.globals[index as usize] = Some(node.clone());
        node
    }

    /// A tool as a function. Those of the run's own code are made once.
    fn tool(&mut self, code: &Arc<Code>, id: ToolId) -> Ref {
        let own = Arc::ptr_eq(code, &self.root);
        if own && let Some(Some(node)) = self.tools.get(id.0 as usize) {
            return node.clone();
        }
        let body = Body::Tool(Tool::new(&mut self.lattice, code.tool(id)));
        let node = Ref::new(Node { deep: Label::BOTTOM, has_function: true, body });
        if own {
            self.tools[id.0 as usize] = Some(node.clone());
        }
        node
    }

    /// Takes an error one frame up; gives it back if it ends the run here.
    fn unwind(&mut self, s: &mut Strand, frame: Frame, failure: Box<Failure>) -> Option<Box<Failure>> {
        match frame {
            Frame::Ret { code, bottom, base, pc, pc_from } => {
                s.leave(code, (bottom, base), (pc, pc_from));
            }
            Frame::Conv { conversation, pc, pc_from } => {
                s.conversation = *conversation;
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Try { term, at, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                if !failure.code.is_final() && self.lattice.flows(failure.label, at) {
                    let code = &s.code;
                    if let Term::Try { handler, catches, .. } = code.term(term)
                        && catches.takes(failure.code == ErrorCode::Timeout, failure.permanent)
                    {
                        let (handler, index, span) = (*handler, code.locals(term), code.span(term));
                        s.set_pc(at, span);
                        s.bind(index, Value::str(failure.label, failure.message));
                        s.go(handler);
                        return None;
                    }
                }
            }
            Frame::Branch { par, start, failed, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                if self.is_last(&failure, pc) {
                    return Some(failure);
                }
                // The others run to their end; the first error counts. Something has to stand for the result.
                s.parts.push(Value::new(pc, Kind::Null));
                self.branches(s, par, start, failed.or(Some(failure)));
                return None;
            }
            Frame::Pc { pc, pc_from } | Frame::Labelled { pc, pc_from, .. } => {
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Guard { remark, pc, pc_from, .. } => {
                s.remark = remark;
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Within(outer) => s.deadlines = outer,
            Frame::Parts(_, start) => s.parts.truncate(start),
            Frame::First(_)
            | Frame::Second(..)
            | Frame::Applied(_)
            | Frame::Let(..)
            | Frame::FixArg(..)
            | Frame::Policy(_)
            | Frame::Generated
            | Frame::Ask(_) => {}
        }
        s.state = State::Raise(failure);
        None
    }

    /// Gives the value of a subterm to what waits for it.
    fn resume(
        &mut self,
        s: &mut Strand,
        frame: Frame,
        v: Value,
        world: &mut dyn Answers,
    ) -> Option<Question> {
        match frame {
            Frame::Ret { code, bottom, base, pc, pc_from } => {
                s.leave(code, (bottom, base), (pc, pc_from));
                s.give(v);
            }
            Frame::Pc { pc, pc_from } | Frame::Try { pc, pc_from, .. } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give(v);
            }
            Frame::Conv { conversation, pc, pc_from } => {
                s.conversation = *conversation;
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give(v);
            }
            Frame::Let(term, index) => {
                let local = s.code.locals(term) + index;
                if self.lattice.keeps_origins() {
                    self.note_definition(s, term, index, &v);
                }
                s.bind(local, v);
                self.definitions(s, term, index + 1, world);
            }
            Frame::Parts(term, start) => {
                s.parts.push(v);
                self.gather(s, term, start, world);
            }
            Frame::Applied(term) => self.applied(s, term, v),
            Frame::Branch { par, start, failed, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                s.parts.push(v);
                self.branches(s, par, start, failed);
            }
            Frame::FixArg(argument, span) => return self.apply(s, v, argument, span),
            Frame::Guard { guarded, left, remark, pc, pc_from } => {
                s.remark = remark;
                return self.guarded(s, guarded, left, (pc, pc_from), v);
            }
            Frame::Labelled { term, l, at, pc, pc_from } => {
                let code = &s.code;
                let label = match code.term(term) {
                    Term::Test(..) => {
                        let holds = self.lattice.flows(v.label, l);
                        let label = self.lattice.join(at, l);
                        s.give(Value::new(label, Kind::Bool(holds)));
                        (s.pc, s.pc_from) = (pc, pc_from);
                        return None;
                    }
                    Term::Endorse(..) => self.lattice.reclassify(l, v.label),
                    _ => self.lattice.reclassify(v.label, l),
                };
                let label = self.lattice.join(at, label);
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give(Value::new(label, v.kind));
            }
            Frame::Generated => {
                let yes = Value::new(s.pc, Kind::Bool(true));
                s.give(Value::node(&mut self.lattice, s.pc, Body::List(vec![yes, v])));
            }
            Frame::Within(outer) => {
                s.deadlines = outer;
                s.give(v);
            }
            Frame::Policy(call) => return self.judged(s, *call, v),
            Frame::Ask(question) => return Some(*question),
            Frame::First(term) => return self.first(s, term, v),
            Frame::Second(term, first) => return self.second(s, term, first, v),
        }
        None
    }

    /// The value of a variable or a literal.
    fn leaf(&mut self, at: &Env<'_>, id: TermId) -> Value {
        match at.code.term(id) {
            Term::Var(_, core_ir::Slot::Local(i)) => at.locals[*i as usize].read(&mut self.lattice, at.pc),
            Term::Var(_, core_ir::Slot::Captured(i)) => {
                at.captured[*i as usize].read(&mut self.lattice, at.pc)
            }
            Term::Var(_, core_ir::Slot::Global(i)) => Value::new(at.pc, Kind::Node(self.global(*i))),
            Term::Lit(data) => Value::literal(&mut self.lattice, at.pc, data),
            _ => unreachable!("a variable or a literal"),
        }
    }

    /// Takes note of the value of a definition.
    fn note_definition(&mut self, s: &Strand, term: TermId, index: usize, v: &Value) {
        let code = &s.code;
        if let Term::Let { bindings, .. } = code.term(term)
            && let Some((name, definition)) = bindings.get(index)
        {
            self.note_binding(name, code.span(*definition), v);
        }
    }

    /// A label that something raises to: with this step as what it comes from, if it does raise it.
    #[inline(always)]
    fn raised(&mut self, by: Label, to: Label, what: What, span: Span) -> Label {
        if self.lattice.keeps_origins() && !self.lattice.flows(by, to) {
            return self.lattice.mark(by, by, Label::BOTTOM, || local(what, span));
        }
        by
    }

    /// Enters a message into the conversation, whose label may be raised by that of the message.
    #[inline(always)]
    fn say(
        &mut self,
        s: &mut Strand,
        role: Role,
        text: Arc<str>,
        call: Option<Arc<(Name, Data)>>,
        deep: Label,
        span: Span,
    ) {
        self.charge(message_cost(&text));
        let deep = self.raised(deep, s.conversation.label, What::Sent, span);
        s.conversation.label = self.lattice.join(s.conversation.label, deep);
        s.message(role, text, call);
    }

    /// Goes on with a `let` at the definition of this index.
    fn definitions(&mut self, s: &mut Strand, term: TermId, mut index: usize, world: &mut dyn Answers) {
        loop {
            let code = &s.code;
            let Term::Let { bindings, body, .. } = code.term(term) else { unreachable!("a let") };
            let Some((_, definition)) = bindings.get(index) else {
                s.go(*body);
                return;
            };
            let (definition, local) = (*definition, code.locals(term) + index);
            let value = match self.atom(s, definition) {
                Some(value) => value,
                None => match self.at_once(s, definition, world, || Frame::Let(term, index)) {
                    AtOnce::Done => match s.parts.pop() {
                        Some(value) => value,
                        None => unreachable!("what was done is there"),
                    },
                    AtOnce::GoesOn => return,
                    AtOnce::Refused => {
                        s.kont.push(Frame::Let(term, index));
                        s.go(definition);
                        return;
                    }
                },
            };
            if self.lattice.keeps_origins() {
                self.note_definition(s, term, index, &value);
            }
            s.bind(local, value);
            index += 1;
        }
    }

    /// A list of the parts from `start` on.
    #[inline]
    fn listed(&mut self, s: &mut Strand, start: usize) -> Shared<Node> {
        // Before they are moved: those that were just written can be read one by one at once, and moved only later.
        let (deep, has_function) = inside(&mut self.lattice, s.parts[start..].iter());
        let items = s.taken(start);
        shared(|| Node { deep, has_function, body: Body::List(items) })
    }

    /// All parts of a record, list or primitive are there: its value, if there is no error.
    fn whole(&mut self, s: &mut Strand, term: TermId, start: usize) -> Option<Value> {
        let code = &s.code;
        let body = match code.term(term) {
            Term::Record(fields) => {
                Body::Record(fields.iter().map(|(n, _)| n.clone()).zip(s.parts.drain(start..)).collect())
            }
            Term::Prim(p, _) => {
                let parts = &s.parts[start..];
                let mut label = s.pc;
                for part in parts {
                    let deep = self.deep(part);
                    label = self.lattice.join(label, deep);
                }
                let result = match prim::apply(&mut self.lattice, *p, parts, self.config.max_text) {
                    Ok(result) => {
                        let cost = prim::cost(parts, &result);
                        self.charge(cost);
                        Some(Value::new(label, result.kind))
                    }
                    Err(e) => {
                        let span = code.span(term);
                        match e {
                            PrimError::Wrong(m) => s.fail(ErrorCode::Prim, label, span, m),
                            PrimError::Limit(m) => s.fail(ErrorCode::Limit, label, span, m),
                        }
                        None
                    }
                };
                s.parts.truncate(start);
                return result;
            }
            _ => Body::List(s.taken(start)),
        };
        Some(Value::node(&mut self.lattice, s.pc, body))
    }

    /// The first subterm of a term has its value.
    fn first(&mut self, s: &mut Strand, term: TermId, v: Value) -> Option<Question> {
        let code = &s.code;
        let span = code.span(term);
        match code.term(term) {
            Term::App(_, e)
            | Term::Index(_, e)
            | Term::With(_, _, e)
            | Term::Pair(_, e)
            | Term::Each(_, _, e) => {
                let e = *e;
                match self.atom(s, e) {
                    Some(w) => return self.second(s, term, v, w),
                    None => {
                        s.kont.push(Frame::Second(term, v));
                        s.go(e);
                    }
                }
            }
            Term::Field(_, name) => match v.body() {
                Some(Body::Record(fields)) if fields.iter().any(|(n, _)| n == name) => {
                    // INVARIANT: the guard above found it.
                    let (_, field) = fields.iter().find(|(n, _)| n == name).expect("a field");
                    s.give(field.read(&mut self.lattice, v.label));
                }
                _ => {
                    let message = missing_field(&v, name);
                    let label = self.blame(s, &v);
                    s.fail(ErrorCode::Index, label, span, message);
                }
            },
            Term::Fst(_) | Term::Snd(_) => {
                let is_first = matches!(code.term(term), Term::Fst(_));
                match v.body() {
                    Some(Body::Pair(a, b)) => {
                        let side = if is_first { a } else { b };
                        s.give(side.read(&mut self.lattice, v.label));
                    }
                    _ => {
                        let label = self.blame(s, &v);
                        let what = if is_first { "fst" } else { "snd" };
                        s.fail(
                            ErrorCode::Index,
                            label,
                            span,
                            format!("`{what}` needs a pair, found {}", v.kind()),
                        );
                    }
                }
            }
            Term::Tag(name, _) => {
                let body = Body::Tag(name.clone(), v);
                s.give(Value::node(&mut self.lattice, s.pc, body));
            }
            Term::If(..) => match v.kind {
                Kind::Bool(b) => self.decided(s, term, v.label, b),
                _ => {
                    let label = self.blame(s, &v);
                    s.fail(
                        ErrorCode::Type,
                        label,
                        span,
                        format!("a condition must be a boolean, found {}", v.kind()),
                    );
                }
            },
            Term::Case { branches, default, .. } => {
                let (tag, payload): (Option<&str>, Option<&Value>) = match (&v.kind, v.body()) {
                    (Kind::Str(text), _) => (Some(text), None),
                    (_, Some(Body::Tag(name, payload))) => (Some(name), Some(payload)),
                    _ => (None, None),
                };
                let found = tag.and_then(|tag| branches.iter().find(|b| &*b.tag == tag));
                let by = self.raised(v.label, s.pc, What::Decided, span);
                let pc = self.lattice.join(s.pc, by);
                match (found, default) {
                    (Some(branch), _) => {
                        let body = branch.body;
                        let bound = branch.binder.is_some().then(|| code.locals(term));
                        let payload = payload.cloned().unwrap_or(Value::new(v.label, Kind::Null));
                        s.set_pc(pc, span);
                        if let Some(index) = bound {
                            s.bind(index, payload);
                        }
                        s.go(body);
                    }
                    (None, Some(e)) => {
                        let e = *e;
                        s.set_pc(pc, span);
                        s.go(e);
                    }
                    (None, None) => {
                        let message = match tag {
                            Some(tag) => format!("no branch for `{}`", clip(tag)),
                            None => format!("`case` needs a tag or a string, found {}", v.kind()),
                        };
                        let label = self.blame(s, &v);
                        s.fail(ErrorCode::NoBranch, label, span, message);
                    }
                }
            }
            Term::Classify(tags, _) => {
                let tag = match (&v.kind, v.body()) {
                    (Kind::Str(text), _) => prim::classify(text, tags),
                    (_, Some(Body::Tag(name, _))) => tags.iter().find(|t| *t == name),
                    _ => None,
                };
                match tag.cloned() {
                    Some(tag) => {
                        let label = self.blame(s, &v);
                        let body = Body::Tag(tag, Value::new(Label::BOTTOM, Kind::Null));
                        s.give(Value::node(&mut self.lattice, label, body));
                    }
                    None => {
                        let shown = match prim::as_str(&v) {
                            Some(text) => format!("`{}`", clip(text)),
                            None => v.kind().to_string(),
                        };
                        let names: Vec<&str> = tags.iter().map(|t| &**t).collect();
                        let message = format!("{shown} is none of {}", names.join(", "));
                        let label = self.blame(s, &v);
                        s.fail(ErrorCode::Classify, label, span, message);
                    }
                }
            }
            Term::Fix { bound, .. } => {
                let body = Body::Fix(*bound, v);
                s.give(Value::node(&mut self.lattice, s.pc, body));
            }
            Term::Llm(_, params) => {
                if !matches!(v.kind, Kind::Str(_)) {
                    let label = self.blame(s, &v);
                    s.fail(
                        ErrorCode::Type,
                        label,
                        span,
                        format!("a prompt must be a string, found {}", v.kind()),
                    );
                    return None;
                }
                let body = Body::Llm { prompt: v, params: params.clone(), code: code.clone(), term };
                s.give(Value::node(&mut self.lattice, s.pc, body));
            }
            Term::Send(role, _) => {
                let role = *role;
                if !self.may_touch_conversation(s, "send", span) {
                    return None;
                }
                let deep = self.deep(&v);
                // What a model received as a call it is shown as one again.
                let call = match &v.kind {
                    Kind::Node(node) if role == Role::Assistant => match &node.body {
                        Body::Tag(name, args) => {
                            args.to_data(self.config.max_text).ok().map(|d| (name.clone(), d))
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let text = match v {
                    Value { kind: Kind::Str(text), .. } if text.len() <= self.config.max_text => text,
                    v => match v.text(self.config.max_text) {
                        Ok(text) => text,
                        Err(e) => {
                            self.not_data(s, &v, e, ErrorCode::Type, span);
                            return None;
                        }
                    },
                };
                self.say(s, role, text, call.map(Arc::new), deep, span);
                s.give(Value::unit(s.pc));
            }
            Term::Remember(_, at, _) => {
                // INVARIANT: `Builder::finish` resolves keys.
                let (store, key) = at.expect("a resolved key");
                let decl = code.store(store).clone();
                return self.remember(s, decl, key, v, span);
            }
            Term::Fail(_) => {
                let label = self.blame(s, &v);
                match v.text(self.config.max_text) {
                    Ok(text) => s.fail(ErrorCode::Fail, label, span, &*text),
                    Err(e) => self.not_data(s, &v, e, ErrorCode::Type, span),
                }
            }
            Term::Check(what, ty, _) => {
                let problem = match v.to_data(self.config.max_text) {
                    Ok(data) => ty
                        .check(&data)
                        .err()
                        .map(|(path, cause)| (ErrorCode::Type, format!("{what}: {path}: {cause}"))),
                    Err(NotData::Function) => Some((
                        ErrorCode::Type,
                        format!("{what}: expected {}, found a function", ty.in_words()),
                    )),
                    Err(e) => Some((ErrorCode::Limit, e.message())),
                };
                match problem {
                    None => s.give(v),
                    Some((code, message)) => {
                        let label = self.blame(s, &v);
                        s.fail(code, label, span, message);
                    }
                }
            }
            Term::Relabel(_, e)
            | Term::Test(_, e)
            | Term::Assert(_, e)
            | Term::Endorse(_, e)
            | Term::Declassify(_, e)
            | Term::Try { body: e, .. } => {
                let e = *e;
                let n = self.deep(&v);
                let at = self.lattice.join(s.pc, n);
                let l = v.to_data(self.config.max_text).ok().and_then(|d| self.lattice.label_of(&d));
                let Some(l) = l else {
                    let what = v.text(200).map_or_else(|_| v.kind().to_string(), |t| format!("`{t}`"));
                    s.fail(ErrorCode::NotALabel, at, span, format!("{what} is not a label"));
                    return None;
                };
                let l = self.lattice.mark(l, n, l, || local(What::Stated, span));
                let code = &s.code;
                match code.term(term) {
                    Term::Relabel(..) => {
                        let pc = self.lattice.join(at, l);
                        s.set_pc(pc, span);
                    }
                    Term::Assert(..) => s.kont.push(Frame::Second(term, v)),
                    Term::Try { .. } => {
                        let pc = self.lattice.join(at, l);
                        s.kont.push(Frame::Try { term, at: pc, pc: s.pc, pc_from: s.pc_from });
                        s.set_pc(pc, span);
                    }
                    _ => {
                        s.kont.push(Frame::Labelled { term, l, at, pc: s.pc, pc_from: s.pc_from });
                        s.set_pc(at, span);
                    }
                }
                s.go(e);
            }
            _ => unreachable!("a term with a first subterm"),
        }
        None
    }

    /// Goes on with the branch that the condition of an `if` says.
    fn decided(&mut self, s: &mut Strand, term: TermId, label: Label, b: bool) {
        let Term::If(_, then, otherwise, _) = s.code.term(term) else { unreachable!("an `if`") };
        let branch = if b { *then } else { *otherwise };
        let span = s.code.span(term);
        let by = self.raised(label, s.pc, What::Decided, span);
        let pc = self.lattice.join(s.pc, by);
        s.set_pc(pc, span);
        s.go(branch);
    }

    /// Both subterms of a term have their values.
    fn second(&mut self, s: &mut Strand, term: TermId, first: Value, v: Value) -> Option<Question> {
        let code = &s.code;
        let span = code.span(term);
        match code.term(term) {
            Term::App(..) => return self.apply(s, first, v, span),
            Term::Pair(..) => {
                s.give(Value::node(&mut self.lattice, s.pc, Body::Pair(first, v)));
            }
            Term::Each(most, ..) => {
                let Some(Body::List(items)) = v.body() else {
                    let label = self.blame(s, &v);
                    let message = format!("`each` goes through a list, found {}", v.kind());
                    s.fail(ErrorCode::Type, label, span, message);
                    return None;
                };
                self.fuel = self.fuel.saturating_sub(items.len() as u64);
                let (most, pc) = (*most, self.lattice.join(s.pc, v.label));
                let function = first.read(&mut self.lattice, pc);
                let items: Vec<Value> = items.iter().map(|i| i.read(&mut self.lattice, pc)).collect();
                s.set_pc(pc, span);
                if items.is_empty() {
                    s.give(Value::node(&mut self.lattice, pc, Body::List(items)));
                } else {
                    self.branch_out(s, most, Branches::Calls { function, items, span });
                }
            }
            Term::With(_, name, _) => match first.body() {
                Some(Body::Record(fields)) => {
                    let mut fields = fields.clone();
                    match fields.iter_mut().find(|(n, _)| n == name) {
                        Some((_, old)) => *old = v,
                        None => fields.push((name.clone(), v)),
                    }
                    self.fuel = self.fuel.saturating_sub(fields.len() as u64);
                    s.state =
                        State::Return(Value::node(&mut self.lattice, first.label, Body::Record(fields)));
                }
                _ => {
                    let label = self.blame(s, &first);
                    s.fail(
                        ErrorCode::Index,
                        label,
                        span,
                        format!("a field can be set in a record only, found {}", first.kind()),
                    );
                }
            },
            Term::Index(..) => {
                let label = self.lattice.join(first.label, v.label);
                let found = match (first.body(), &first.kind, &v.kind) {
                    (Some(Body::List(items)), _, Kind::Num(i)) => {
                        i.to_usize().and_then(|i| items.get(i)).map(|p| p.read(&mut self.lattice, label))
                    }
                    (Some(Body::Record(fields)), _, Kind::Str(name)) => fields
                        .iter()
                        .find(|(n, _)| **n == **name)
                        .map(|(_, p)| p.read(&mut self.lattice, label)),
                    (_, Kind::Str(text), Kind::Num(i)) => i
                        .to_usize()
                        .and_then(|i| text.chars().nth(i))
                        .map(|c| Value::str(label, c.to_string())),
                    _ => None,
                };
                match found {
                    Some(value) => s.give(value),
                    None => {
                        let key = v.text(100).map_or_else(|_| v.kind().to_string(), |t| format!("`{t}`"));
                        let message = format!("{} has nothing at {key}", first.kind());
                        let a = self.blame(s, &first);
                        let b = self.deep(&v);
                        let label = self.lattice.join(a, b);
                        s.fail(ErrorCode::Index, label, span, message);
                    }
                }
            }
            Term::Assert(..) => {
                let n = self.deep(&first);
                // It was a label when the first subterm was evaluated.
                let l = first.to_data(self.config.max_text).ok().and_then(|d| self.lattice.label_of(&d));
                let l = l.unwrap_or_default();
                if self.lattice.flows(n, s.pc) && self.lattice.flows(v.label, l) {
                    s.give(Value::unit(s.pc));
                } else {
                    let message =
                        format!("assertion failed: the label does not flow to {}", self.lattice.show(l));
                    let found = format!("the value is labelled {}", self.lattice.show(v.label));
                    let label = self.lattice.join(s.pc, n);
                    let label = self.lattice.join(label, l);
                    let (n_flows, own) = (self.lattice.flows(n, s.pc), v.label);
                    s.fail(ErrorCode::Assert, label, span, message);
                    s.explain(span, found);
                    if n_flows {
                        s.refused(Part::Value, None, own, l);
                    }
                }
            }
            _ => unreachable!("a term with two subterms"),
        }
        None
    }

    /// Applies a function value, at `pc` := its label.
    fn apply(&mut self, s: &mut Strand, f: Value, v: Value, span: Span) -> Option<Question> {
        let Kind::Node(node) = &f.kind else {
            self.not_a_function(s, &f, span);
            return None;
        };
        match &node.body {
            Body::Closure { code, term, captures } => {
                let Term::Abs(abs) = code.term(*term) else {
                    // INVARIANT: a closure that is a value stands for a λ.
                    unreachable!("a closure is a function")
                };
                s.enter(code, captures.iter().cloned(), Some(v), (f.label, span), abs.body);
            }
            Body::Fix(..) if node.left() == Some(Bound::Finite(0)) => {
                s.give(v.read(&mut self.lattice, f.label));
            }
            Body::Fix(_, function) => {
                let v = self.unfold(s, &f, v, span)?;
                s.set_pc(f.label, span);
                let own = itself(s.pc, node.clone());
                let function = function.read(&mut self.lattice, s.pc);
                s.kont.push(Frame::FixArg(v, span));
                return self.apply(s, function, own, span);
            }
            Body::Guarded { code, term, function } => {
                let Term::Guard { retry, .. } = code.term(*term) else { unreachable!("a guard") };
                let guarded = Guarded::Call(Box::new((node.clone(), v.clone())));
                let (left, remark) = (*retry, s.remark.clone());
                s.kont.push(Frame::Guard { guarded, left, remark, pc: s.pc, pc_from: s.pc_from });
                s.set_pc(f.label, span);
                let function = function.read(&mut self.lattice, s.pc);
                return self.apply(s, function, v, span);
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
                        self.not_data(s, &v, e, ErrorCode::Type, span);
                        return None;
                    }
                };
                self.charge(text.len() as u64 / 16);
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
    fn guarded(
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

    /// `pc ⊑ lc`, or the refusal of `what`.
    fn may_touch_conversation(&mut self, s: &mut Strand, what: &str, span: Span) -> bool {
        if self.lattice.flows(s.pc, s.conversation.label) {
            return true;
        }
        let (pc, lc) = (self.lattice.show(s.pc), self.lattice.show(s.conversation.label));
        let label = self.lattice.join(s.pc, s.conversation.label);
        s.fail(
            ErrorCode::Flow,
            label,
            span,
            format!(
                "`{what}` under the label {pc} would show it to the conversation, which is labelled {lc}"
            ),
        );
        s.explain(s.pc_from, format!("what runs here depends on a value labelled {pc}"));
        s.refused(Part::Control, None, s.pc, s.conversation.label);
        false
    }
}

/// The steps that it counts to enter a text into the conversation.
#[inline]
fn message_cost(text: &str) -> u64 {
    text.len() as u64 / 16
}

/// A step that asked nobody.
pub(super) fn local(what: What, span: Span) -> Step {
    Step { what, span, request: None, place: None }
}

fn missing_field(v: &Value, name: &str) -> String {
    match v.body() {
        Some(Body::Record(fields)) => {
            let have: Vec<&str> = fields.iter().take(12).map(|(n, _)| &**n).collect();
            format!(
                "no field `{name}`; there is {}",
                if have.is_empty() { "none".into() } else { have.join(", ") }
            )
        }
        _ => format!("no field `{name}` in {}", v.kind()),
    }
}
