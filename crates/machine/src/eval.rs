//! The evaluator: transitions of a strand, which is a term or a value and a continuation.
//!
//! `docs/calculus.md` §3, §5, §6 and §10 have the text of the rules. Each rule is one function or one match
//! arm, named by the term former. `docs/architecture.md` says where each one is.
//!
//! - `rules`: values from values. A term whose subterms need no frame is evaluated there at once.
//! - `apply`: application.
//! - `ask`: requests and what becomes of their answers.
//! - This file: the order of evaluation, conversations, labels, errors and branches.

mod apply;
mod ask;
mod rules;
mod state;

use crate::value::{Body, Captures, Kind, Node, NotData, Ref, Tool, Value};
use crate::{
    Answers, Call, Conversation, Deadline, Deadlines, ErrorCode, Failure, Machine, Message, Part, Place,
    Refusal, Remark, Request, RequestId, SHORT, StopReason,
};
use core_ir::{
    Code, Data, EffectClass, Label, Lattice, ModelParams, Name, Recv, Role, Step, Term, TermId, ToolDecl,
    ToolId, What,
};
use diagnostics::{Span, clip};
use rules::{Computed, Env};
use std::sync::Arc;

/// The most branches that may exist at once in one run.
pub(crate) const MAX_STRANDS: usize = 1_000_000;

/// The most time limits in force at once: each request carries them all.
const MAX_DEADLINES: usize = 100;

/// The longest place of a strand: three numbers for each branch around it. Longer ones would take memory in
/// the square of the depth, since each request carries its own.
const MAX_PLACE_LEN: usize = 300;

/// Steps between two chances for the driver to look after timers and cancellation.
pub(crate) const SLICE: u32 = 200_000;

/// One thread of evaluation: the run itself, or a branch of a `par`.
#[derive(Clone)]
pub(crate) struct Strand {
    pub id: u64,
    pub parent: Option<(usize, usize)>,
    pub conversation: Conversation,
    requests: u32,
    /// Place of its requests in a trace: for each enclosing branch, the events before it. It counts
    /// what happens under any label, so nothing but a trace may depend on it.
    place: Option<Arc<Vec<u32>>>,
    /// The rest of its place, which is added on demand: most branches make no request.
    place_in: Option<[u32; 3]>,
    /// Number of `par`s that have begun, for the places of their branches.
    joins: u32,
    /// Numbers of draws, `par`s and scopes by the label of the program counter: a count over
    /// all labels would tell a low observer what happened under a high one.
    counts: Counts,
    /// The time limits that requests made here have.
    deadlines: Deadlines,
    /// The remark for models that are asked here, if this is a further attempt of a guard.
    remark: Option<Arc<Remark>>,
    /// The code that is being evaluated.
    code: Arc<Code>,
    /// Start of the activation on the stack: the values that its closure captured, copied. Copying these few
    /// values costs less than counting a reference to the closure, for most are none.
    bottom: usize,
    /// Start of its locals on the stack.
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

/// The events that are counted by label.
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
        // The label's text, not its number: numbers are given in the order in which labels are met, and say
        // where they come from.
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
    /// Labels that it depends on; only if the run explains flow.
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
    /// True if untrusted data decides that the call happens, and the tool limits the number of such calls.
    counts: bool,
    span: Span,
}

/// The use of a response.
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

/// The form in which a reply is received.
#[derive(Clone)]
enum Mode {
    Code,
    Data(Arc<ModelParams>, Arc<Code>),
}

/// The branches of a join.
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
    /// True if it stands in `BranchTable::starting`.
    queued: bool,
    /// The name of the `par` within its strand, for the names of its branches.
    name: u64,
}

/// A frame of the continuation: the use of the value of a subterm. A `TermId` is of the activation around it.
#[derive(Clone)]
enum Frame {
    /// End of an activation: go back to that of the caller; its code is told if it is another.
    Ret { code: Option<Arc<Code>>, bottom: usize, base: usize, pc: Label, pc_from: Span },
    /// End of a stretch at a raised program counter.
    Pc { pc: Label, pc_from: Span },
    /// End of `fork`, `fresh` or `llm`. Boxed, as what is large in other frames is: most frames are small,
    /// and all are moved.
    Conv { conversation: Box<Conversation>, pc: Label, pc_from: Span },
    /// The first subterm of this term was evaluated.
    First(TermId),
    /// The second, after the first gave this value.
    Second(TermId, Value),
    /// A branch of a `par` that is carried out right here; the results before it begin there in
    /// `Strand::parts`.
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
    /// Returns whether taking this frame restores the program counter.
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

/// The subject of a `guard`.
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
    Ref::new(Node { deep: Label::BOTTOM, has_function: true, has_args: false, body })
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

    /// Goes on with the value of the term at hand.
    #[inline]
    fn give(&mut self, value: Value) {
        self.state = State::Return(value);
    }

    /// Goes on with the value of the term at hand, or with the error that it is.
    #[inline]
    fn settle(&mut self, result: Computed) {
        self.state = match result {
            Ok(value) => State::Return(value),
            Err(failure) => State::Raise(failure),
        };
    }

    /// Goes on with this term.
    #[inline]
    fn go(&mut self, term: TermId) {
        self.state = State::Eval(term);
    }

    /// The environment of the current activation.
    #[inline]
    fn env(&self) -> Env<'_> {
        let (captured, locals) = self.stack[self.bottom..].split_at(self.base - self.bottom);
        Env { code: &self.code, captured, locals, pc: self.pc, strand: self.id }
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
        captures: &[Value],
        argument: Option<Value>,
        (pc, from): (Label, Span),
        body: TermId,
    ) {
        let left = (!Arc::ptr_eq(code, &self.code)).then(|| std::mem::replace(&mut self.code, code.clone()));
        if let Some(Frame::Ret { code: caller, .. }) = self.kont.last_mut() {
            // The caller's code is the first that was left.
            if caller.is_none() {
                *caller = left;
            }
            self.stack.truncate(self.bottom);
        } else {
            self.kont.push(Frame::Ret {
                code: left,
                bottom: self.bottom,
                base: self.base,
                pc: self.pc,
                pc_from: self.pc_from,
            });
            self.bottom = self.stack.len();
        }
        self.stack.extend_from_slice(captures);
        self.base = self.stack.len();
        self.stack.extend(argument);
        if pc != self.pc {
            (self.pc, self.pc_from) = (pc, from);
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

    fn message(&mut self, role: Role, content: Arc<str>, call: Option<Arc<(Name, Data)>>) {
        self.conversation.messages.push(Message { role, content, call });
    }

    /// Place of its requests in a trace.
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
        let short = place.as_ref().is_none_or(|p| p.len() < MAX_PLACE_LEN);
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
        let results = results.map_err(Box::new).map(|values| rules::results(lattice, self.pc, values));
        self.settle(results);
        true
    }

    fn fail(&mut self, code: ErrorCode, label: Label, span: Span, message: impl Into<String>) {
        self.state = State::Raise(failure(self.id, code, label, span, message.into()));
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
        // A transition may evaluate several terms; what it does is in the fuel.
        let enough = self.fuel.saturating_sub(u64::from(SLICE));
        for _ in 0..SLICE {
            let question = match std::mem::replace(&mut s.state, State::Ended) {
                State::Eval(id) => {
                    if self.fuel < enough {
                        s.go(id);
                        break;
                    }
                    self.eval(s, id)
                }
                State::Return(value) => match s.kont.pop() {
                    None => return Outcome::Ended(Ok(value)),
                    Some(Frame::Ret { code, bottom, base, pc, pc_from }) => {
                        s.leave(code, (bottom, base), (pc, pc_from));
                        s.give(value);
                        continue;
                    }
                    Some(frame) => self.resume(s, frame, value),
                },
                // Nobody catches it. What was opened inside is closed at the end of the run.
                State::Raise(failure) if failure.code == ErrorCode::Fuel => return Outcome::Final(*failure),
                State::Raise(failure) => match s.kont.pop() {
                    None => return Outcome::Ended(Err(*failure)),
                    Some(frame) => {
                        if let Some(last) = self.unwind(s, frame, failure) {
                            return Outcome::Final(*last);
                        }
                        continue;
                    }
                },
                State::Waiting | State::Joining(_) | State::Ended => {
                    // INVARIANT: only strands that can go on are in the ready queue.
                    unreachable!("a strand that waits is not run")
                }
            };
            if let Some(question) = question
                && let Some(question) = self.answered_at_once(s, question, world)
            {
                return self.request(s, question);
            }
            if let State::Joining(_) = s.state {
                return Outcome::Joining;
            }
        }
        Outcome::Working
    }

    fn request(&mut self, s: &mut Strand, question: Question) -> Outcome {
        let Question { pending, call, channel, answer, span, mut given } = question;
        if self.lattice.keeps_origins() {
            given.push((Part::Control, s.pc));
        }
        let id = s.next_request();
        s.state = State::Waiting;
        s.waiting = Some(Waiting { number: s.requests, pending, answer, span });
        s.stands();
        let place = s.next_place();
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

    fn not_data(&mut self, s: &mut Strand, v: &Value, e: NotData, span: Span) {
        let label = self.blame(s.pc, v);
        s.fail(e.code(ErrorCode::Type), label, span, e.message());
    }

    /// The value of a term that needs no frame, if it is one.
    #[inline]
    fn operand(&mut self, s: &Strand, id: TermId) -> Option<Computed> {
        s.code.is_in_place(id).then(|| self.compute(&s.env(), id))
    }

    /// One step into a term.
    fn eval(&mut self, s: &mut Strand, id: TermId) -> Option<Question> {
        if s.kont.len() > self.config.max_frames {
            let message = format!("recursion deeper than {} frames", self.config.max_frames);
            s.fail(ErrorCode::Fuel, s.pc, s.code.span(id), message);
            return None;
        }
        if let Some(result) = self.operand(s, id) {
            s.settle(result);
            return None;
        }
        if let Err(failure) = self.step(&s.env(), id) {
            s.state = State::Raise(failure);
            return None;
        }
        let code = &s.code;
        match code.term(id) {
            // INVARIANT: `Code::is_in_place` holds of these.
            Term::Var(..) | Term::Lit(_) | Term::Abs(_) | Term::Tag(_, None) => {
                unreachable!("a term that needs no frame")
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
            | Term::If(e, ..)
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
                match self.operand(s, e) {
                    Some(Ok(v)) => return self.first(s, id, v),
                    Some(Err(failure)) => s.state = State::Raise(failure),
                    None => {
                        s.kont.push(Frame::First(id));
                        s.go(e);
                    }
                }
            }
            Term::Let { .. } => self.definitions(s, id, 0),
            Term::Record(_) | Term::Args(..) | Term::List(_) | Term::Prim(..) => {
                self.gather(s, id, s.parts.len())
            }
            Term::Guard { term, retry, .. } => {
                let (term, left) = (*term, *retry);
                match self.operand(s, term) {
                    Some(Ok(v)) => return self.guarded(s, Guarded::Term(id), left, (s.pc, s.pc_from), v),
                    Some(Err(failure)) => s.state = State::Raise(failure),
                    None => {
                        let (guarded, remark) = (Guarded::Term(id), s.remark.clone());
                        s.kont.push(Frame::Guard { guarded, left, remark, pc: s.pc, pc_from: s.pc_from });
                        s.go(term);
                    }
                }
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
                    s.give(rules::results(&mut self.lattice, s.pc, Vec::new()));
                    return None;
                }
                if is_plain(s, branches) {
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
        let node = Ref::new(Node { deep: Label::BOTTOM, has_function: true, has_args: false, body });
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
                        && catches.takes(failure.class(), failure.permanent)
                    {
                        let (handler, index, span) = (*handler, code.locals(term), code.span(term));
                        let value = if catches.gives_code() {
                            let code = if failure.class() == core_ir::ErrorClass::Refusal {
                                "refused"
                            } else {
                                failure.code.as_str()
                            };
                            let fields = [
                                ("code".into(), Data::str(code)),
                                ("message".into(), Data::str(failure.message)),
                            ];
                            Value::from_data(&mut self.lattice, failure.label, &Data::record(fields))
                        } else {
                            Value::str(failure.label, failure.message)
                        };
                        s.set_pc(at, span);
                        s.bind(index, value);
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
    fn resume(&mut self, s: &mut Strand, frame: Frame, v: Value) -> Option<Question> {
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
                self.definitions(s, term, index + 1);
            }
            Frame::Parts(term, start) => {
                s.parts.push(v);
                self.gather(s, term, start);
            }
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
                s.give(Value::node(&mut self.lattice, s.pc, Body::List(vec![yes, v].into())));
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

    /// Takes note of the value of a definition.
    fn note_definition(&mut self, s: &Strand, term: TermId, index: usize, v: &Value) {
        let code = &s.code;
        if let Term::Let { bindings, .. } = code.term(term)
            && let Some((name, definition)) = bindings.get(index)
        {
            self.note_binding(name, code.span(*definition), v);
        }
    }

    /// Enters a message into the conversation, whose label may be raised by that of the message.
    #[inline]
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
    fn definitions(&mut self, s: &mut Strand, term: TermId, mut index: usize) {
        loop {
            let code = &s.code;
            let Term::Let { bindings, body, .. } = code.term(term) else { unreachable!("a let") };
            let Some((_, definition)) = bindings.get(index) else {
                s.go(*body);
                return;
            };
            let (definition, local) = (*definition, code.locals(term) + index);
            match self.operand(s, definition) {
                Some(Ok(value)) => {
                    if self.lattice.keeps_origins() {
                        self.note_definition(s, term, index, &value);
                    }
                    s.bind(local, value);
                    index += 1;
                }
                Some(Err(failure)) => {
                    s.state = State::Raise(failure);
                    return;
                }
                None => {
                    s.kont.push(Frame::Let(term, index));
                    s.go(definition);
                    return;
                }
            }
        }
    }

    /// Goes on with the parts of a record, list or primitive; those that are there begin at `start`.
    fn gather(&mut self, s: &mut Strand, term: TermId, start: usize) {
        loop {
            let done = s.parts.len() - start;
            let next = match s.code.term(term) {
                Term::Record(fields) | Term::Args(_, fields) => fields.get(done).map(|f| f.1),
                Term::List(terms) | Term::Prim(_, terms) => terms.get(done).copied(),
                _ => unreachable!("a term with parts"),
            };
            let Some(next) = next else { break };
            match self.operand(s, next) {
                Some(Ok(value)) => s.parts.push(value),
                Some(Err(failure)) => {
                    s.parts.truncate(start);
                    s.state = State::Raise(failure);
                    return;
                }
                None => {
                    s.kont.push(Frame::Parts(term, start));
                    s.go(next);
                    return;
                }
            }
        }
        let result = match s.code.term(term) {
            Term::Prim(..) => {
                let result = self.primitive(&s.env(), term, &s.parts[start..]);
                s.parts.truncate(start);
                result
            }
            _ => {
                let parts = s.parts.split_off(start);
                Ok(self.structure(&s.env(), term, parts))
            }
        };
        s.settle(result);
    }

    /// Goes on with a `par` whose branches only compute. They are evaluated one after another in this strand:
    /// nobody can tell, because they ask nothing. Their results so far begin at `start`; the first error is
    /// `failed`.
    fn branches(&mut self, s: &mut Strand, par: TermId, start: usize, mut failed: Option<Box<Failure>>) {
        loop {
            let done = s.parts.len() - start;
            let Term::Par(_, branches) = s.code.term(par) else { unreachable!("a `par`") };
            let Some(branch) = branches.get(done).copied() else { break };
            match self.operand(s, branch) {
                Some(Ok(value)) => s.parts.push(value),
                Some(Err(failure)) if self.is_last(&failure, s.pc) => {
                    s.state = State::Raise(failure);
                    return;
                }
                Some(Err(failure)) => {
                    failed = failed.or(Some(failure));
                    s.parts.push(Value::new(s.pc, Kind::Null));
                }
                None => {
                    s.kont.push(Frame::Branch { par, start, failed, pc: s.pc, pc_from: s.pc_from });
                    s.go(branch);
                    return;
                }
            }
        }
        let values = s.parts.split_off(start);
        s.settle(match failed {
            Some(failure) => Err(failure),
            None => Ok(rules::results(&mut self.lattice, s.pc, values)),
        });
    }

    /// Returns whether an error of a branch ends the run: nobody may catch it, and going on would show that
    /// it has not happened. The branch began at this program counter.
    pub(crate) fn is_last(&self, failure: &Failure, pc: Label) -> bool {
        failure.code.is_final() || !self.lattice.flows(failure.label, pc)
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
                match self.operand(s, e) {
                    Some(Ok(w)) => return self.second(s, term, v, w),
                    Some(Err(failure)) => s.state = State::Raise(failure),
                    None => {
                        s.kont.push(Frame::Second(term, v));
                        s.go(e);
                    }
                }
            }
            Term::If(..) => match self.decided(&s.env(), term, &v) {
                Ok((pc, branch)) => {
                    s.set_pc(pc, span);
                    s.go(branch);
                }
                Err(failure) => s.state = State::Raise(failure),
            },
            Term::Case { branches, default, .. } => {
                let (tag, payload): (Option<&str>, Option<&Value>) = match (&v.kind, v.body()) {
                    (Kind::Str(text), _) => (Some(text), None),
                    (_, Some(Body::Tag(name, payload))) => (Some(name), Some(payload)),
                    _ => (None, None),
                };
                let found = tag.and_then(|tag| branches.iter().find(|b| &*b.tag == tag));
                let pc = self.raised_pc(s.pc, v.label, span);
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
                        let label = self.blame(s.pc, &v);
                        s.fail(ErrorCode::NoBranch, label, span, message);
                    }
                }
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
                            self.not_data(s, &v, e, span);
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
            _ => {
                let result = self.unary(&s.env(), term, v);
                s.settle(result);
            }
        }
        None
    }

    /// Both subterms of a term have their values.
    fn second(&mut self, s: &mut Strand, term: TermId, first: Value, v: Value) -> Option<Question> {
        let code = &s.code;
        let span = code.span(term);
        match code.term(term) {
            Term::App(..) => return self.apply(s, first, v, span),
            Term::Each(most, ..) => {
                let Some(Body::List(items)) = v.body() else {
                    let label = self.blame(s.pc, &v);
                    let message = format!("`each` goes through a list, found {}", v.kind());
                    s.fail(ErrorCode::Type, label, span, message);
                    return None;
                };
                self.charge(items.len() as u64);
                let (most, pc) = (*most, self.lattice.join(s.pc, v.label));
                let function = first.read(&mut self.lattice, pc);
                let items: Vec<Value> = items.iter().map(|i| i.read(&mut self.lattice, pc)).collect();
                s.set_pc(pc, span);
                if items.is_empty() {
                    s.give(rules::results(&mut self.lattice, pc, items));
                } else {
                    self.branch_out(s, most, Branches::Calls { function, items, span });
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
            _ => {
                let result = self.binary(&s.env(), term, &first, v);
                s.settle(result);
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

/// Returns whether all branches of a `par` only compute: each is plain, or applies a function that a variable
/// holds, and whose body is plain, to an argument that is.
fn is_plain(s: &Strand, branches: &[TermId]) -> bool {
    branches.iter().all(|branch| {
        s.code.is_plain(*branch)
            || match s.code.term(*branch) {
                Term::App(function, argument) if s.code.is_plain(*argument) => {
                    match s.env().held(*function).and_then(Value::body) {
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

/// An error of a strand, of which nothing else is known.
fn failure(strand: u64, code: ErrorCode, label: Label, span: Span, message: String) -> Box<Failure> {
    let stopped = (code == ErrorCode::Fuel).then_some(StopReason::Fuel);
    Box::new(Failure {
        code,
        message,
        label,
        strand,
        span,
        notes: Vec::new(),
        refusal: None,
        stopped,
        permanent: false,
        unattended: false,
    })
}

/// A step that asked nobody.
pub(super) fn local(what: What, span: Span) -> Step {
    Step { what, span, request: None, place: None }
}
