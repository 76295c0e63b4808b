//! The evaluator: transitions of a strand, which executes the instructions of a code ([`core_ir::Op`]).
//!
//! `docs/calculus.md` §3, §5, §6 and §10 have the text of the rules. Each rule is one function or one match
//! arm, named by the term former. `docs/architecture.md` says where each one is.
//!
//! - `rules`: values from values.
//! - `apply`: application.
//! - `ask`: requests and what becomes of their answers.
//! - This file: instructions, conversations, labels, errors and branches.
//!
//! Invariant: between two instructions, the stack of the activation is as high as the next instruction says
//! ([`core_ir::Instruction::height`]). Debug builds check it at each one.
//! Invariant: a frame refers to code by the index of an instruction.

mod apply;
mod ask;
mod rules;
mod stamp;
mod state;

use crate::prim::Small;
use crate::value::{Body, Captures, Kind, Node, NotData, Ref, Tool, Value};
use crate::{
    Answers, Call, CallCount, Choice, Conversation, Deadline, Deadlines, ErrorCode, Failure, Machine,
    Message, Part, Place, Refusal, Remark, Request, RequestId, SHORT, StopReason,
};
use core_ir::{
    Code, Data, END, EffectClass, Instruction, Label, Lattice, ModelParams, Name, Op, Operand, Recv, Role,
    Step, Term, TermId, ToolDecl, ToolId, What,
};
use diagnostics::{Span, clip};
use rules::{Computed, Env};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most branches that may exist at once in one run.
pub(crate) const MAX_STRANDS: usize = 1_000_000;

/// The most time limits in force at once: each request carries them all.
const MAX_DEADLINES: usize = 100;

/// The longest place of a strand: three numbers for each branch around it. Longer ones would take memory in
/// the square of the depth, since each request carries its own.
const MAX_PLACE_LEN: usize = 300;

/// Instructions between two chances for the driver to look after timers and cancellation.
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
    /// Where the stack ends when the activation does. Below its values there may be the function.
    bottom: usize,
    /// Start of the activation on the stack: the values that its closure captured, copied; the argument;
    /// other locals and temporaries. Copying the few values that are captured costs less than counting a
    /// reference to the closure.
    base: usize,
    stack: Vec<Value>,
    /// The next instruction.
    ip: u32,
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
    /// Continues with the next instruction.
    Run,
    Raise(Box<Failure>),
    /// For the answer to `Strand::waiting`.
    Waiting,
    Joining(Box<Join>),
}

/// A request that was made.
#[derive(Clone)]
struct Waiting {
    number: u32,
    pending: Pending,
    /// The label of the answer, or of the error that represents one.
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
    /// The label of control and arguments.
    inputs: Label,
    span: Span,
    /// Labels that it depends on; only if the run explains flow.
    given: Vec<(Part, Label)>,
    choices: Box<[Choice]>,
    counts: CallCount,
}

/// A tool call whose arguments have passed the tool's bounds and types.
#[derive(Clone)]
struct Cleared {
    /// The tool.
    tool: Ref,
    args: Vec<(Name, Data)>,
    /// The labels of the arguments.
    labels: Vec<Label>,
    /// The label of what decided that the call is made; only if somebody sees the call.
    control: Label,
    /// `pc` and every label of the arguments.
    given: Label,
    /// The label of the result, as far as it depends on all arguments: of failures.
    label: Label,
    /// The label of what a call that succeeds returns.
    value: Label,
    /// True if somebody has to approve it.
    asks: bool,
    /// Set if somebody has approved it with other arguments, which these are.
    edited: Option<Edited>,
    /// The value that the tool is applied to.
    applied: Value,
    choices: Vec<Choice>,
    /// True if untrusted data decides that the call happens, and the tool limits the number of such calls.
    counts: bool,
    span: Span,
}

/// Labels of an approval with other arguments.
#[derive(Clone, Copy)]
struct Edited {
    /// The label of what the new arguments depend on. The result of the call has it, too.
    label: Label,
    /// The label of the answer: that the call is checked again is known there, and so is why it is refused.
    answer: Label,
}

/// The use of a response.
#[derive(Clone)]
enum Pending {
    Model {
        mode: Mode,
        attempt: u32,
    },
    /// A call, with the labels that its arguments name, and the label of what it returns if it succeeds.
    Tool(Ref, Box<[(Name, Label)]>, Label),
    Approve(Box<Cleared>),
    Recall {
        store: core_ir::StoreId,
        key: u32,
    },
    Remember,
    Sample {
        left: u32,
        right: u32,
    },
}

impl Pending {
    /// The kind of error that a failure is.
    fn error(&self) -> ErrorCode {
        match self {
            Pending::Model { .. } => ErrorCode::Model,
            Pending::Tool(..) | Pending::Approve(_) => ErrorCode::Tool,
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
    /// A region each. Their places begin at this index of [`core_ir::Instructions::target`].
    Regions(u32, usize),
    /// `each`: the function is applied to an item each.
    Calls { function: Value, items: Vec<Value>, span: Span },
}

impl Branches {
    fn len(&self) -> usize {
        match self {
            Branches::Regions(_, count) => *count,
            Branches::Calls { items, .. } => items.len(),
        }
    }
}

#[derive(Clone)]
struct Join {
    branches: Branches,
    results: Vec<Option<Computed>>,
    started: usize,
    running: usize,
    most: usize,
    /// True if it stands in `BranchTable::starting`.
    queued: bool,
    /// The name of the `par` within its strand, for the names of its branches.
    name: u64,
}

/// A frame of the continuation: the use of the value of a region. Instructions are those of the activation
/// around it.
#[derive(Clone)]
enum Frame {
    /// End of an activation: go back to that of the caller; its code is told if it is another.
    Ret { code: Option<Arc<Code>>, ip: u32, bottom: usize, base: usize, pc: Label, pc_from: Span },
    /// End of a stretch at a raised program counter: the instruction where it ends.
    Pc { end: u32, pc: Label, pc_from: Span },
    /// End of `fork`, `fresh` or `llm`. Boxed, as what is large in other frames is: most frames are small,
    /// and all are moved.
    Conv { conversation: Box<Conversation>, after: u32, pc: Label, pc_from: Span },
    /// A branch of a `par` or `each` that is carried out right here.
    Branch { carried: Box<Carried>, pc: Label, pc_from: Span },
    /// The body of `?`, `endorse` or `declassify`, with `l` and `pc ⊔ n`.
    Labeled { term: u32, l: Label, at: Label, pc: Label, pc_from: Span },
    /// The function to be applied to this argument.
    FixArg(Value, Span),
    /// An attempt of a `guard`, with the attempts left and what models are told outside.
    Guard { guarded: Guarded, left: u32, remark: Option<Arc<Remark>>, pc: Label, pc_from: Span },
    /// The body of a `try`.
    Try { term: u32, at: Label, pc: Label, pc_from: Span },
    /// The body of a `within`, with the limits outside.
    Within { outer: Deadlines, after: u32 },
    /// The policy of the tool of a call.
    Policy(Box<Cleared>),
    /// The term that a model wrote.
    Generated,
    /// A question to be put to a model again.
    Ask(Box<Question>),
}

/// The branches of a `par` or `each` that is carried out right here: the results so far, and the first error.
#[derive(Clone)]
struct Carried {
    branches: Branches,
    values: Vec<Value>,
    failed: Option<Box<Failure>>,
    /// Number of values of the activation below those of the branches.
    height: u32,
    /// Where evaluation goes on after the branches.
    after: u32,
}

impl Frame {
    /// Returns whether taking this frame restores the program counter.
    fn restores_pc(&self) -> bool {
        matches!(
            self,
            Frame::Ret { .. }
                | Frame::Pc { .. }
                | Frame::Conv { .. }
                | Frame::Labeled { .. }
                | Frame::Guard { .. }
                | Frame::Try { .. }
                | Frame::Branch { .. }
        )
    }
}

/// The subject of a `guard`.
#[derive(Clone)]
enum Guarded {
    /// The region of the `guard` that this instruction opens.
    Term(u32),
    /// A guarded function applied to an argument.
    Call(Box<(Ref, Value)>),
}

/// Reason why a strand does not continue with the next instruction of the same code.
enum Paused {
    /// Its last region has ended with this value.
    Ended(Value),
    Asks(Box<Question>),
    /// It is in another code, or in another state, or has used its slice.
    Elsewhere,
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
    /// The strand of a run, which has made some requests before its first step.
    pub(crate) fn root(
        id: u64,
        code: Arc<Code>,
        input: Option<Value>,
        conversation: Conversation,
        requests: u32,
    ) -> Strand {
        let span = code.span(code.root());
        let ip = code.instructions().root();
        let mut kont = Vec::new();
        if let Some(input) = input {
            kont.push(Frame::FixArg(input, span));
        }
        Strand {
            id,
            parent: None,
            place: None,
            place_in: None,
            joins: 0,
            conversation,
            requests,
            counts: Counts::default(),
            deadlines: Deadlines::default(),
            remark: None,
            code,
            bottom: 0,
            base: 0,
            stack: Vec::new(),
            ip,
            kont,
            pc: Label::BOTTOM,
            pc_from: span,
            state: State::Run,
            waiting: None,
        }
    }

    /// Continues with the value of the term at hand.
    #[inline]
    fn give(&mut self, value: Value) {
        self.stack.push(value);
        self.state = State::Run;
    }

    /// Continues with the value of the term at hand, or with the error that it is.
    #[inline]
    fn settle(&mut self, result: Computed) {
        match result {
            Ok(value) => self.give(value),
            Err(failure) => self.state = State::Raise(failure),
        }
    }

    /// Continues with this instruction.
    #[inline]
    fn go(&mut self, ip: u32) {
        self.ip = ip;
        self.state = State::Run;
    }

    /// Ends a region with this value and goes on at an instruction, with the stack that it wants. What
    /// follows [`END`] is the end of the region around.
    #[inline]
    fn give_at(&mut self, ip: u32, value: Value) {
        self.end_at(ip);
        self.give(value);
    }

    /// Ends a region whose value the instruction at `ip` finds on top.
    #[inline]
    fn end_at(&mut self, ip: u32) {
        if ip != END {
            // Names of a `let` that ends a region are still there.
            let height = self.code.instructions().all()[ip as usize].height;
            self.cut(height - 1);
        }
        self.ip = ip;
    }

    /// Takes the value on top.
    #[inline]
    fn pop(&mut self) -> Value {
        // INVARIANT: `Instructions::verify` admits instructions whose values are there.
        self.stack.pop().expect("a value on the stack")
    }

    /// Takes an operand off the stack, if it is a temporary.
    #[inline]
    fn take_off(&mut self, operand: Operand) {
        if operand.is_taken() {
            self.stack.pop();
        }
    }

    /// Label and number of an operand, if it is a machine integer.
    #[inline(always)]
    fn integer(&self, code: &Code, operand: Operand) -> Option<(Label, i64)> {
        match operand {
            Operand::Taken(i) | Operand::Local(i) => match &self.stack[self.base + i as usize] {
                Value { label, kind: Kind::Num(n) } => Some((*label, n.to_i64()?)),
                _ => None,
            },
            Operand::Literal(term) => match code.term(term) {
                Term::Lit(Data::Num(n)) => Some((self.pc, n.to_i64()?)),
                _ => None,
            },
            Operand::Global(_) => None,
        }
    }

    /// Takes an operand off the stack, if it is a temporary, which is a boolean or a machine integer.
    #[inline(always)]
    fn take_off_small(&mut self, operand: Operand) {
        if operand.is_taken() {
            // It owns nothing, so nothing has to be looked at to drop it.
            std::mem::forget(self.stack.pop());
        }
    }

    /// Pushes a value that is made when there is room for it. So each part of it is written where it belongs:
    /// a value that is moved as a whole right after its parts were written waits for them.
    #[inline(always)]
    fn push_made(&mut self, make: impl FnOnce() -> Value) {
        self.stack.extend(std::iter::once_with(make));
    }

    /// Puts a small value in the place of two operands that are small, too.
    #[inline(always)]
    fn put_small(&mut self, operands: (Operand, Operand), label: Label, small: Small) {
        match operands {
            (Operand::Taken(_), b) => self.take_off_small(b),
            (_, Operand::Taken(_)) => {}
            _ => {
                return match small {
                    Small::Integer(n) => self.push_made(|| Value::new(label, Kind::Num(n.into()))),
                    Small::Boolean(b) => self.push_made(|| Value::new(label, Kind::Bool(b))),
                };
            }
        }
        // As in `push_made`. What was there owns nothing.
        if let Some(slot) = self.stack.last_mut() {
            slot.label = label;
            std::mem::forget(match small {
                Small::Integer(n) => std::mem::replace(&mut slot.kind, Kind::Num(n.into())),
                Small::Boolean(b) => std::mem::replace(&mut slot.kind, Kind::Bool(b)),
            });
        }
    }

    /// The place where the current instruction is.
    #[inline]
    fn env<'a>(&self, code: &'a Arc<Code>) -> Env<'a> {
        Env { code, pc: self.pc, strand: self.id }
    }

    /// Returns whether nothing is left to do in the current region.
    #[inline]
    fn is_at_end(&self) -> bool {
        self.ip == END || matches!(self.code.instructions().all()[self.ip as usize].op, Op::End)
    }

    /// Sets the program counter for what follows, up to this instruction. What comes after that, or outside
    /// the region if it is [`END`], finds the old one again.
    fn set_pc(&mut self, pc: Label, from: Span, end: u32) {
        if pc == self.pc {
            return;
        }
        self.keep_pc(end);
        self.pc = pc;
        self.pc_from = from;
    }

    /// Sees to it that the program counter is as it is now at this instruction, or outside the region if it
    /// is [`END`].
    fn keep_pc(&mut self, end: u32) {
        if end != END || self.kont.last().is_some_and(|f| !f.restores_pc()) {
            self.kont.push(Frame::Pc { end, pc: self.pc, pc_from: self.pc_from });
        }
    }

    /// Begins a region: at its end the strand goes on where it is now.
    fn begin_region(&mut self) {
        self.keep_pc(if self.is_at_end() { END } else { self.ip });
        self.ip = END;
    }

    /// Sets the program counter until the instruction at hand has its value.
    fn raise_pc(&mut self, pc: Label, from: Span) {
        if pc != self.pc {
            self.begin_region();
            (self.pc, self.pc_from) = (pc, from);
        }
    }

    /// Begins an activation; if nothing is left to do in the current one, that ends. The values above this
    /// height of the stack are the first ones of the new activation. Its code is told if it is another.
    /// Returns by how much they moved down.
    #[inline(always)]
    fn enter(&mut self, code: Option<Arc<Code>>, (pc, from): (Label, Span), ip: u32, height: usize) -> usize {
        let is_last = self.is_at_end();
        let left = code.map(|code| std::mem::replace(&mut self.code, code));
        match self.kont.last_mut() {
            Some(Frame::Ret { code: caller, .. }) if is_last => {
                // The caller's code is the first that was left.
                if caller.is_none() {
                    *caller = left;
                }
                if self.bottom < height {
                    self.stack.drain(self.bottom..height);
                }
            }
            _ => {
                self.kont.push(Frame::Ret {
                    code: left,
                    ip: self.ip,
                    bottom: self.bottom,
                    base: self.base,
                    pc: self.pc,
                    pc_from: self.pc_from,
                });
                self.bottom = height;
            }
        }
        self.base = self.bottom;
        if pc != self.pc {
            (self.pc, self.pc_from) = (pc, from);
        }
        self.ip = ip;
        height - self.bottom
    }

    /// Ends an activation: its values are given up, and those of the caller are in reach again.
    #[inline(always)]
    fn leave(&mut self, code: Option<Arc<Code>>, (bottom, base): (usize, usize), (pc, from): (Label, Span)) {
        self.stack.truncate(self.bottom);
        if let Some(code) = code {
            self.code = code;
        }
        (self.bottom, self.base) = (bottom, base);
        (self.pc, self.pc_from) = (pc, from);
    }

    /// Gives up the values above this height of the activation.
    fn cut(&mut self, height: u32) {
        self.stack.truncate(self.base + height as usize);
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
        let (ip, kont, base, stack) = match &join.branches {
            Branches::Regions(targets, _) => {
                let ip = self.code.instructions().target(targets + index as u32);
                (ip, Vec::new(), self.base - self.bottom, self.stack[self.bottom..].to_vec())
            }
            Branches::Calls { function, items, span } => {
                let call = vec![Frame::FixArg(items[index].clone(), *span)];
                (END, call, 0, vec![function.clone()])
            }
        };
        // Branches stand before the next request of this strand, and after those of an earlier `par`.
        self.joins += u32::from(index == 0);
        let conversation = self.conversation.branch(lattice, self.pc);
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
            base,
            stack,
            ip,
            kont,
            pc: self.pc,
            pc_from: self.pc_from,
            state: State::Run,
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
        fit(&mut self.kont);
        self.conversation.messages.fit();
    }

    /// The program counter it runs at.
    pub(crate) fn pc(&self) -> Label {
        self.pc
    }

    pub(crate) fn branch_ended(&mut self, index: usize, result: Result<Value, Failure>) {
        if let State::Joining(join) = &mut self.state {
            join.results[index] = Some(result.map_err(Box::new));
            join.running -= 1;
        }
    }

    /// Goes on if every branch has ended; says whether it does.
    pub(crate) fn joined(&mut self, lattice: &mut Lattice) -> bool {
        let State::Joining(join) = &mut self.state else { return false };
        if join.running > 0 || join.started < join.branches.len() {
            return false;
        }
        let results: Result<Vec<Value>, Box<Failure>> = join.results.drain(..).flatten().collect();
        let results = results.map(|values| rules::results(lattice, self.pc, values));
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
        // An endless computation uses fuel; unwinding does not.
        let enough = self.fuel.saturating_sub(u64::from(SLICE));
        let mut left = SLICE;
        while left > 0 && self.fuel >= enough {
            left -= 1;
            let question = match std::mem::replace(&mut s.state, State::Run) {
                State::Run => match self.execute(s, enough) {
                    Paused::Ended(value) => return Outcome::Ended(Ok(value)),
                    Paused::Asks(question) => Some(*question),
                    Paused::Elsewhere => None,
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
                State::Waiting | State::Joining(_) => {
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

    /// Executes instructions of one code while there is this much fuel.
    fn execute(&mut self, s: &mut Strand, enough: u64) -> Paused {
        // Shared, not borrowed: the strand changes, and may go on in another code.
        let code = s.code.clone();
        let instructions = code.instructions().all();
        while self.fuel >= enough {
            let at = s.ip;
            let Instruction { ref op, term, cost, height } = instructions[at as usize];
            debug_assert!(at == END || s.stack.len() == s.base + height as usize, "{at}: {op:?}");
            s.ip = at + 1;
            if !self.step(cost) {
                self.out_of_fuel(s, s.pc, code.span(term));
                return Paused::Elsewhere;
            }
            let computed = match *op {
                Op::End => {
                    if let Some(Frame::Ret { code: caller, ip, bottom, base, pc, pc_from }) =
                        s.kont.last_mut()
                    {
                        let (caller, to) = (caller.take(), *ip);
                        let (around, from) = ((*bottom, *base), (*pc, *pc_from));
                        // What it owned was taken out.
                        std::mem::forget(s.kont.pop());
                        let value = s.pop();
                        let changes = caller.is_some();
                        s.leave(caller, around, from);
                        s.stack.push(value);
                        s.ip = to;
                        if changes {
                            return Paused::Elsewhere;
                        }
                        continue;
                    }
                    let value = s.pop();
                    let question = match s.kont.pop() {
                        None => return Paused::Ended(value),
                        Some(frame) => self.resume(s, frame, value),
                    };
                    match paused(s, &code, question) {
                        None => continue,
                        Some(paused) => return paused,
                    }
                }
                Op::Push(operand) => Ok(self.operand(s, &code, operand)),
                Op::Closure => Ok(self.closure(&s.env(&code), term, &s.stack[s.base..])),
                Op::EmptyTag => Ok(self.empty_tag(&s.env(&code), term)),
                Op::Structure(count) => {
                    let parts = s.stack.split_off(s.stack.len() - count as usize);
                    Ok(self.structure(&s.env(&code), term, parts))
                }
                Op::Prim1(prim, a) => {
                    let held = self.held(s, &code, a);
                    let result = self.primitive(&s.env(&code), term, prim, &[&held]);
                    drop(held);
                    s.take_off(a);
                    result
                }
                Op::Prim2(prim, a, b) => {
                    if let Some((label, result)) = self.of_integers(s, &code, prim, (a, b)) {
                        s.put_small((a, b), label, result);
                        continue;
                    }
                    let held = self.held(s, &code, a);
                    let other = self.held(s, &code, b);
                    let result = self.primitive(&s.env(&code), term, prim, &[&held, &other]);
                    drop((held, other));
                    s.take_off(b);
                    s.take_off(a);
                    result
                }
                Op::PrimN(prim, count) => {
                    let first = s.stack.len() - count as usize;
                    let args: SmallVec<[&Value; 4]> = s.stack[first..].iter().collect();
                    let result = self.primitive(&s.env(&code), term, prim, &args);
                    drop(args);
                    s.stack.truncate(first);
                    result
                }
                Op::Part(e) => {
                    let held = self.held(s, &code, e);
                    let result = self.part(&s.env(&code), term, &held);
                    drop(held);
                    s.take_off(e);
                    result
                }
                Op::Item(a, b) => {
                    let held = self.held(s, &code, a);
                    let key = self.held(s, &code, b);
                    let result = self.item(&s.env(&code), term, &held, &key);
                    drop((held, key));
                    s.take_off(b);
                    s.take_off(a);
                    result
                }
                Op::Unary(e) => {
                    let v = self.operand(s, &code, e);
                    self.unary(&s.env(&code), term, v)
                }
                Op::Binary(a, b) => {
                    let b = self.operand(s, &code, b);
                    let a = self.operand(s, &code, a);
                    self.binary(&s.env(&code), term, a, b)
                }
                Op::If { condition, otherwise, join } => {
                    let decided = match condition {
                        Operand::Taken(i) | Operand::Local(i) => {
                            self.decided(&s.env(&code), term, &s.stack[s.base + i as usize])
                        }
                        _ => {
                            let v = self.operand(s, &code, condition);
                            self.decided(&s.env(&code), term, &v)
                        }
                    };
                    match decided {
                        Ok((pc, first)) => {
                            s.take_off_small(condition);
                            self.note_taken(&code, term, u32::from(!first));
                            if pc != s.pc {
                                s.set_pc(pc, code.span(term), join);
                            }
                            if !first {
                                s.ip = otherwise;
                            }
                            continue;
                        }
                        Err(failure) => Err(failure),
                    }
                }
                Op::Jump(to) => {
                    s.ip = to;
                    continue;
                }
                Op::Join => {
                    if let Some(Frame::Pc { end, pc, pc_from }) = s.kont.last()
                        && *end == at
                    {
                        (s.pc, s.pc_from) = (*pc, *pc_from);
                        s.kont.pop();
                    }
                    continue;
                }
                Op::Slide(count) => {
                    let value = s.pop();
                    s.stack.truncate(s.stack.len() - count as usize);
                    s.stack.push(value);
                    continue;
                }
                Op::Define(index) => {
                    if self.lattice.keeps_origins() {
                        self.note_definition(s, term, index as usize);
                    }
                    continue;
                }
                Op::Bind(count) if self.takes_more(s, count as usize) => {
                    s.ip += 1;
                    continue;
                }
                Op::Bind(count) | Op::Call(count) => {
                    let question = self.apply_all(s, &code, term, count as usize);
                    match paused(s, &code, question) {
                        None => continue,
                        Some(paused) => return paused,
                    }
                }
                Op::Pad(count) => {
                    s.stack.extend((0..count).map(|_| Value::mark()));
                    continue;
                }
                Op::Case { targets, join } => {
                    let v = s.pop();
                    match self.case(s, &code, term, (targets, join), v) {
                        Ok(()) => continue,
                        Err(failure) => Err(failure),
                    }
                }
                Op::Apply(f, a) => {
                    if !a.is_taken() {
                        let v = self.operand(s, &code, a);
                        s.stack.push(v);
                    }
                    let question = self.apply_operand(s, &code, f, term);
                    match paused(s, &code, question) {
                        None => continue,
                        Some(paused) => return paused,
                    }
                }
                _ => {
                    let question = self.act(s, &code, at);
                    match paused(s, &code, question) {
                        None => continue,
                        Some(paused) => return paused,
                    }
                }
            };
            match computed {
                Ok(value) => s.stack.push(value),
                Err(failure) => {
                    s.state = State::Raise(failure);
                    return Paused::Elsewhere;
                }
            }
        }
        Paused::Elsewhere
    }

    /// Executes an instruction that may do more than compute a value.
    fn act(&mut self, s: &mut Strand, code: &Arc<Code>, at: u32) -> Option<Question> {
        let Instruction { op, term, .. } = code.instructions().all()[at as usize];
        match op {
            Op::First { after, .. } => {
                let v = s.pop();
                self.first(s, code, (at, term), after, v)
            }
            Op::Second => {
                let (v, first) = (s.pop(), s.pop());
                self.second(s, code, term, first, v)
            }
            _ => self.eval(s, code, (at, term), op),
        }
    }

    fn request(&mut self, s: &mut Strand, question: Question) -> Outcome {
        let Question { pending, call, channel, answer, inputs, span, mut given, choices, counts } = question;
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
                inputs,
                deadlines: s.deadlines.clone(),
                given: given.into(),
                span,
                place,
                call_id,
                choices,
                counts,
            },
        )
    }

    fn not_data(&mut self, s: &mut Strand, v: &Value, e: NotData, span: Span) {
        let label = self.blame(s.pc, v);
        s.fail(e.code(ErrorCode::Type), label, span, e.message());
    }

    /// Begins a form that does more than compute and has no subterm that comes first.
    fn eval(
        &mut self,
        s: &mut Strand,
        code: &Arc<Code>,
        (at, id): (u32, TermId),
        op: Op,
    ) -> Option<Question> {
        match code.term(id) {
            Term::Guard { retry, .. } => {
                let (guarded, remark) = (Guarded::Term(at), s.remark.clone());
                s.kont.push(Frame::Guard { guarded, left: *retry, remark, pc: s.pc, pc_from: s.pc_from });
            }
            Term::Within(..) if s.deadlines.len() >= MAX_DEADLINES => {
                let message = format!("more than {MAX_DEADLINES} time limits in force at once");
                let span = code.span(id);
                s.fail(ErrorCode::Limit, s.pc, span, message);
            }
            Term::Within(seconds, _) => {
                let scope = mix(s.id, s.counts.next(Counted::Scopes, &self.lattice, s.pc));
                let limits = s.deadlines.and(Deadline { scope, seconds: seconds.clone() }, code.span(id));
                let outer = std::mem::replace(&mut s.deadlines, limits);
                s.kont.push(Frame::Within { outer, after: after(op) });
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
                    inputs: label,
                    span,
                    given: Vec::new(),
                    choices: Box::default(),
                    counts: CallCount::No,
                });
            }
            Term::Choose(p, ..) => {
                let Op::Choose { right } = op else { unreachable!("the instruction of a `choose`") };
                let span = code.span(id);
                let draw = mix(s.id, s.counts.next(Counted::Draws, &self.lattice, s.pc));
                let call = Call::Sample { probability: p.clone(), draw };
                let pending = Pending::Sample { left: at + 1, right };
                return Some(Question {
                    pending,
                    call,
                    channel: s.pc,
                    answer: s.pc,
                    inputs: s.pc,
                    span,
                    given: Vec::new(),
                    choices: Box::default(),
                    counts: CallCount::No,
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
            Term::Fork(_) => {
                let inside = s.conversation.branch(&mut self.lattice, s.pc);
                let outside = std::mem::replace(&mut s.conversation, inside);
                s.kont.push(Frame::Conv {
                    conversation: Box::new(outside),
                    after: after(op),
                    pc: s.pc,
                    pc_from: s.pc_from,
                });
            }
            Term::Fresh(_) => self.open(s, after(op)),
            Term::Clear => {
                let span = code.span(id);
                if self.may_touch_conversation(s, "clear", span) {
                    s.conversation = Conversation::empty(s.pc);
                    s.give(Value::unit(s.pc));
                }
            }
            Term::Par(most, branches) => {
                let Op::Par { targets, after } = op else { unreachable!("the instruction of a `par`") };
                s.ip = after;
                if branches.is_empty() {
                    s.give(rules::results(&mut self.lattice, s.pc, Vec::new()));
                    return None;
                }
                let regions = Branches::Regions(targets, branches.len());
                if is_plain(s, code, branches, targets) {
                    let height = code.instructions().all()[at as usize].height;
                    self.carry_out(s, regions, height);
                } else {
                    self.branch_out(s, *most, regions);
                }
            }
            Term::Unknown(reason) => {
                let (span, message) = (code.span(id), format!("not known before the run: {reason}"));
                s.fail(ErrorCode::Unknown, s.pc, span, message);
            }
            // INVARIANT: the other forms have instructions of their own.
            _ => unreachable!("a form that begins with itself"),
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
    fn open(&mut self, s: &mut Strand, after: u32) {
        let saved = std::mem::replace(&mut s.conversation, Conversation::empty(s.pc));
        s.kont.push(Frame::Conv { conversation: Box::new(saved), after, pc: s.pc, pc_from: s.pc_from });
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
        let body = Body::Tool(Tool::in_lattice(&mut self.lattice, code.tool(id)));
        let node = Ref::new(Node { deep: Label::BOTTOM, has_function: true, has_args: false, body });
        if own {
            self.tools[id.0 as usize] = Some(node.clone());
        }
        node
    }

    /// Takes an error one frame up; gives it back if it ends the run here.
    fn unwind(&mut self, s: &mut Strand, frame: Frame, failure: Box<Failure>) -> Option<Box<Failure>> {
        match frame {
            Frame::Ret { code, bottom, base, pc, pc_from, .. } => {
                s.leave(code, (bottom, base), (pc, pc_from));
            }
            Frame::Conv { conversation, pc, pc_from, .. } => {
                s.conversation = *conversation;
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Try { term, at, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                if !failure.code.is_final() && self.lattice.flows(failure.label, at) {
                    let code = s.code.clone();
                    let Instruction { op, term, height, .. } = code.instructions().all()[term as usize];
                    if let Op::First { after, handler } = op
                        && let Term::Try { catches, .. } = code.term(term)
                        && catches.takes(failure.class(), failure.permanent)
                    {
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
                        self.note_taken(&code, term, 1);
                        s.set_pc(at, code.span(term), after);
                        // The label was on top.
                        s.cut(height - 1);
                        s.ip = handler;
                        s.give(value);
                        return None;
                    }
                }
            }
            Frame::Branch { mut carried, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                if self.is_last(&failure, pc) {
                    return Some(failure);
                }
                // The others run to their end; the first error counts. Something has to represent the result.
                carried.values.push(Value::new(pc, Kind::Null));
                carried.failed = carried.failed.or(Some(failure));
                self.branches(s, carried);
                return None;
            }
            Frame::Pc { pc, pc_from, .. } | Frame::Labeled { pc, pc_from, .. } => {
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Guard { remark, pc, pc_from, .. } => {
                s.remark = remark;
                (s.pc, s.pc_from) = (pc, pc_from);
            }
            Frame::Within { outer, .. } => s.deadlines = outer,
            Frame::FixArg(..) | Frame::Generated | Frame::Ask(_) => {}
            Frame::Policy(call) => {
                s.state = State::Raise(failure);
                self.raised_after_edit(s, call.edited);
                return None;
            }
        }
        s.state = State::Raise(failure);
        None
    }

    /// Gives the value of a region to what waits for it.
    fn resume(&mut self, s: &mut Strand, frame: Frame, v: Value) -> Option<Question> {
        // Where it is not said otherwise, what is around is a region that ends with what this gives.
        s.ip = END;
        match frame {
            // INVARIANT: `Op::End` ends activations itself.
            Frame::Ret { .. } => unreachable!("the end of an activation"),
            Frame::Pc { end, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give_at(end, v);
            }
            Frame::Try { term, pc, pc_from, .. } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give_at(after(s.code.instructions().all()[term as usize].op), v);
            }
            Frame::Conv { conversation, after, pc, pc_from } => {
                s.conversation = *conversation;
                (s.pc, s.pc_from) = (pc, pc_from);
                s.give_at(after, v);
            }
            Frame::Branch { mut carried, pc, pc_from } => {
                (s.pc, s.pc_from) = (pc, pc_from);
                carried.values.push(v);
                self.branches(s, carried);
            }
            Frame::FixArg(argument, span) => return self.apply(s, v, argument, span),
            Frame::Guard { guarded, left, remark, pc, pc_from } => {
                s.remark = remark;
                return self.guarded(s, guarded, left, (pc, pc_from), v);
            }
            Frame::Labeled { term, l, at, pc, pc_from } => {
                let Instruction { op, term, .. } = s.code.instructions().all()[term as usize];
                s.end_at(after(op));
                let label = match s.code.term(term) {
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
            Frame::Within { outer, after } => {
                s.deadlines = outer;
                s.give_at(after, v);
            }
            Frame::Policy(call) => return self.judged(s, *call, v),
            Frame::Ask(question) => return Some(*question),
        }
        None
    }

    /// Takes note of the value of a definition, which is on top.
    fn note_definition(&mut self, s: &Strand, term: TermId, index: usize) {
        let code = &s.code;
        if let Term::Let { bindings, .. } = code.term(term)
            && let (Some((name, definition)), Some(v)) = (bindings.get(index), s.stack.last())
        {
            self.note_binding(name, code.span(*definition), v);
        }
    }

    /// Enters a message into the conversation.
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
        self.hear(s, deep, span);
        s.message(role, text, call);
    }

    /// Raises the label of the conversation to that of what is said.
    #[inline]
    fn hear(&mut self, s: &mut Strand, deep: Label, span: Span) {
        let deep = self.raised(deep, s.conversation.label, What::Sent, || span);
        s.conversation.label = self.lattice.join(s.conversation.label, deep);
    }

    /// Evaluates branches that only compute, at this height of the activation. They are evaluated one after
    /// another in this strand: nobody can tell, because they ask nothing.
    fn carry_out(&mut self, s: &mut Strand, branches: Branches, height: u32) {
        s.joins += 1;
        s.counts.count(Counted::Pars, &self.lattice, s.pc);
        let values = Vec::with_capacity(branches.len());
        self.branches(s, Box::new(Carried { branches, values, failed: None, height, after: s.ip }));
    }

    /// Evaluates the next branch, or ends with the results of all.
    fn branches(&mut self, s: &mut Strand, mut carried: Box<Carried>) {
        let next = carried.values.len();
        if next == carried.branches.len() {
            s.end_at(carried.after);
            return s.settle(match carried.failed.take() {
                Some(failure) => Err(failure),
                None => Ok(rules::results(&mut self.lattice, s.pc, std::mem::take(&mut carried.values))),
            });
        }
        s.cut(carried.height);
        match &carried.branches {
            Branches::Regions(targets, _) => {
                s.go(s.code.instructions().target(targets + next as u32));
                s.kont.push(Frame::Branch { carried, pc: s.pc, pc_from: s.pc_from });
            }
            Branches::Calls { function, items, span } => {
                let (function, v, span) = (function.clone(), items[next].clone(), *span);
                s.go(END);
                s.kont.push(Frame::Branch { carried, pc: s.pc, pc_from: s.pc_from });
                let (at, label) = (s.stack.len(), function.label);
                s.stack.extend([function, v]);
                // INVARIANT: `is_plain_function` admits closures alone, which take one argument at least.
                let is_called = self.call(s, (at, label), 1, at, span);
                debug_assert!(is_called, "a closure");
            }
        }
    }

    /// Returns whether an error of a branch ends the run: nobody may catch it, and going on would show that
    /// it has not happened. The branch began at this program counter.
    pub(crate) fn is_last(&self, failure: &Failure, pc: Label) -> bool {
        failure.code.is_final() || !self.lattice.flows(failure.label, pc)
    }

    /// `case`: the value that decides is there.
    fn case(
        &mut self,
        s: &mut Strand,
        code: &Arc<Code>,
        term: TermId,
        (targets, join): (u32, u32),
        v: Value,
    ) -> Result<(), Box<Failure>> {
        let Term::Case { branches, default, .. } = code.term(term) else { unreachable!("a `case`") };
        let (tag, payload): (Option<&str>, Option<&Value>) = match (&v.kind, v.body()) {
            (Kind::Str(text), _) => (Some(text), None),
            (_, Some(Body::Tag(name, payload))) => (Some(name), Some(payload)),
            _ => (None, None),
        };
        let found = tag.and_then(|tag| branches.iter().position(|b| &*b.tag == tag));
        let pc = self.raised_pc(&s.env(code), term, v.label);
        let span = code.span(term);
        match (found, default) {
            (Some(index), _) => {
                self.note_taken(code, term, index as u32);
                s.set_pc(pc, span, join);
                if branches[index].binder.is_some() {
                    s.stack.push(payload.cloned().unwrap_or(Value::new(v.label, Kind::Null)));
                }
                s.ip = code.instructions().target(targets + index as u32);
            }
            (None, Some(_)) => {
                self.note_taken(code, term, branches.len() as u32);
                s.set_pc(pc, span, join);
                s.ip = code.instructions().target(targets + branches.len() as u32);
            }
            (None, None) => {
                let message = match tag {
                    Some(tag) => format!("no branch for `{}`", clip(tag)),
                    None => format!("`case` needs a tag or a string, found {}", v.kind()),
                };
                let label = self.blame(s.pc, &v);
                return Err(failure(s.id, ErrorCode::NoBranch, label, span, message));
            }
        }
        Ok(())
    }

    /// The first subterm of a form that does more than compute has its value.
    fn first(
        &mut self,
        s: &mut Strand,
        code: &Arc<Code>,
        (ip, term): (u32, TermId),
        after: u32,
        v: Value,
    ) -> Option<Question> {
        let span = code.span(term);
        match code.term(term) {
            Term::Send(role, _) => {
                let role = *role;
                if !self.may_touch_conversation(s, "send", span) {
                    return None;
                }
                let deep = self.deep(&v);
                // What a model received as a call it is shown as one again.
                let call = match &v.kind {
                    Kind::Node(node) if role == Role::Assistant => match &node.body {
                        Body::Tag(name, args) => self.data(args).ok().map(|d| (name.clone(), d)),
                        _ => None,
                    },
                    _ => None,
                };
                let text = match v {
                    Value { kind: Kind::Str(text), .. } if text.len() <= self.config.max_text => text,
                    v => match self.text(&v) {
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
            // The label of a form that begins with one.
            _ => {
                let n = self.deep(&v);
                let at = self.lattice.join(s.pc, n);
                let l = self.data(&v).ok().and_then(|d| self.lattice.label_of(&d));
                let Some(l) = l else {
                    let what = v.in_brief(200);
                    s.fail(ErrorCode::NotALabel, at, span, format!("{what} is not a label"));
                    return None;
                };
                let l = self.lattice.mark(l, n, l, || local(What::Stated, span));
                match code.term(term) {
                    Term::Relabel(..) => {
                        let pc = self.lattice.join(at, l);
                        s.set_pc(pc, span, after);
                    }
                    Term::Assert(..) => s.stack.push(v),
                    Term::Try { .. } => {
                        let pc = self.lattice.join(at, l);
                        s.kont.push(Frame::Try { term: ip, at: pc, pc: s.pc, pc_from: s.pc_from });
                        s.set_pc(pc, span, END);
                    }
                    _ => {
                        s.kont.push(Frame::Labeled { term: ip, l, at, pc: s.pc, pc_from: s.pc_from });
                        s.set_pc(at, span, END);
                    }
                }
            }
        }
        None
    }

    /// Both subterms of `each` or `assert` have their values.
    fn second(
        &mut self,
        s: &mut Strand,
        code: &Arc<Code>,
        term: TermId,
        first: Value,
        v: Value,
    ) -> Option<Question> {
        let span = code.span(term);
        match code.term(term) {
            Term::Each(most, ..) => {
                let height = (s.stack.len() - s.base) as u32;
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
                s.raise_pc(pc, span);
                if items.is_empty() {
                    s.give(rules::results(&mut self.lattice, pc, items));
                } else {
                    self.note_taken(code, term, 0);
                    let (is_plain, calls) =
                        (is_plain_function(&function), Branches::Calls { function, items, span });
                    if is_plain { self.carry_out(s, calls, height) } else { self.branch_out(s, most, calls) }
                }
            }
            Term::Assert(..) => {
                let n = self.deep(&first);
                // It was a label when the first subterm was evaluated.
                let l = self.data(&first).ok().and_then(|d| self.lattice.label_of(&d));
                let l = l.unwrap_or_default();
                if self.lattice.flows(n, s.pc) && self.lattice.flows(v.label, l) {
                    s.give(Value::unit(s.pc));
                } else {
                    let message =
                        format!("assertion failed: the label does not flow to {}", self.lattice.show(l));
                    let found = format!("the value is labeled {}", self.lattice.show(v.label));
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
            // INVARIANT: `Op::Second` is of one of these.
            _ => unreachable!("`each` or `assert`"),
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
            format!("`{what}` under the label {pc} would show it to the conversation, which is labeled {lc}"),
        );
        s.explain(s.pc_from, format!("what runs here depends on a value labeled {pc}"));
        s.refused(Part::Control, None, s.pc, s.conversation.label);
        false
    }
}

/// Reason why execution of a code does not go on, if there is one.
#[inline(always)]
fn paused(s: &Strand, code: &Arc<Code>, question: Option<Question>) -> Option<Paused> {
    match question {
        Some(question) => Some(Paused::Asks(Box::new(question))),
        None if matches!(s.state, State::Run) && Arc::ptr_eq(code, &s.code) => None,
        None => Some(Paused::Elsewhere),
    }
}

/// The steps that it counts to enter a text into the conversation.
#[inline]
fn message_cost(text: &str) -> u64 {
    text.len() as u64 / 16
}

/// Where evaluation goes on after a region that this instruction begins.
fn after(op: Op) -> u32 {
    match op {
        Op::First { after, .. } | Op::Open { after } | Op::Par { after, .. } => after,
        _ => END,
    }
}

/// Returns whether all branches of a `par` only compute: each is plain, or applies a function that a variable
/// holds, and whose body is plain, to an argument that is.
fn is_plain(s: &Strand, code: &Code, branches: &[TermId], targets: u32) -> bool {
    let instructions = code.instructions();
    branches.iter().zip(targets..).all(|(branch, target)| {
        code.is_plain(*branch)
            || match code.term(*branch) {
                Term::App(_, argument) if code.is_plain(*argument) => {
                    let held = match instructions.applied(instructions.target(target)) {
                        Some(Operand::Local(i)) => s.stack.get(s.base + i as usize),
                        _ => None,
                    };
                    held.is_some_and(is_plain_function)
                }
                _ => false,
            }
    })
}

/// Returns whether a function only computes when it is applied.
fn is_plain_function(f: &Value) -> bool {
    match f.body() {
        Some(Body::Closure { code, term, .. }) => {
            matches!(code.term(*term), Term::Abs(abs) if code.is_plain(abs.body))
        }
        _ => false,
    }
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
