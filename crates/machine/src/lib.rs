//! The machine: runs a core term, deterministically, without touching the world.
//!
//! Entry point: [`Machine`]. The driving contract: *drain until waiting, answer, repeat*.
//!
//! ```
//! use core_ir::{Builder, Data, Globals, Num, Prim, Term};
//! use diagnostics::{FileId, Span};
//! use machine::{Config, Machine, Output, Response};
//!
//! let at = Span { file: FileId(0), start: 0, end: 0 };
//! let mut b = Builder::new();
//! let sides = [b.lit("heads", at), b.lit("tails", at)];
//! let half = Num::from(1).div(&Num::from(2)).unwrap();
//! let toss = b.add(Term::Choose(half, sides[0], sides[1]), at);
//! let code = b.finish(toss, &Globals::none()).unwrap();
//!
//! let mut machine = Machine::new(code.into(), None, Config::default());
//! let result = loop {
//!     match machine.poll() {
//!         Output::Request(id, _) => machine.handle(id, Response::Sample(true)),
//!         Output::Done(result) => break result,
//!         Output::Working => {}
//!         Output::Waiting => unreachable!("every request was answered"),
//!     }
//! };
//! assert_eq!(machine.reify(&result.unwrap()).to_string(), r#""heads""#);
//! ```
//!
//! Invariant: no clock, no randomness, no file, no socket; a run is a function of the code, the input,
//! the configuration and the responses, whatever order the responses arrive in.
//! Invariant: evaluation uses an explicit continuation and never recurses on the host stack.
//! Invariant: every value carries its label, always; there is no switch.
//! Invariant: it knows nothing of types being checked beforehand: it runs ill-typed terms too.
//!
//! Source: `docs/calculus.md` §3, §5–§7, §10.

mod answer;
mod answers;
mod decode;
mod eval;
pub mod explore;
mod list;
mod messages;
mod meter;
pub mod partial;
mod prim;
mod record;
mod sets;
pub mod store;
mod value;

pub use answers::{Answers, Args, Asked};
pub use messages::{Derived, Message, Messages, Size};
pub use sets::Choice;
pub use value::{Reified, ReifiedKind, Value};

use messages::Growing;

use core_ir::{
    AnswerSink, Candidate, Clearances, Code, Data, ErrorClass, Label, LabelSpec, Lattice, LatticeKind,
    ModelParams, ModelRoutes, Name, Num, Principals, StoreDecl, TermId, ToolDecl,
};
pub use core_ir::{Chain, Hop, What};
use diagnostics::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Reads generated code. The machine does not know the concrete syntax.
pub trait CodeParser: Send + Sync {
    /// The term a model's reply denotes, closed over the prelude.
    ///
    /// # Errors
    /// The problem, for the program and the model to read.
    fn parse(&self, text: &str) -> Result<Arc<Code>, String>;
}

/// Configuration of a run: its limits, and how it reads labels and generated code.
#[derive(Clone)]
pub struct Config {
    /// The lattice.
    pub lattice: LatticeKind,
    /// Names that its labels may have, if they have names.
    pub principals: Principals,
    /// Maximum number of steps; a step is one term evaluated, or one item, field or 16 bytes that a primitive
    /// copies or looks at.
    pub fuel: u64,
    /// The most bytes of one text, and the most parts of a value that are looked at at once.
    pub max_text: usize,
    /// The most frames of the continuation: how deep a recursion may be.
    pub max_frames: usize,
    /// Reads generated code; without one, a reply received as code never parses.
    pub parser: Option<Arc<dyn CodeParser>>,
    /// Clearance (`ℓmodel`) of models with no listed name: the data that they may see.
    pub clearance: LabelSpec,
    /// Clearances of the models with these names.
    pub clearances: Vec<(Name, LabelSpec)>,
    /// The models that may answer each call. A driver that compares conversations with clearances itself
    /// needs none of it.
    pub routes: ModelRoutes,
    /// True if generated code may contain `endorse` and `declassify`. It may never name a tool.
    pub generated_endorse: bool,
    /// True if labels keep where they come from, for [`Machine::why`]. Nothing else about the run changes.
    pub explain_flow: bool,
    /// True if the run notes which branches it takes, for [`Machine::taken_branches`]. Nothing else about the
    /// run changes.
    pub note_branches: bool,
    /// Text of the request, for `among` and `plain` of tools: its tokens may be chosen, and may be in
    /// untrusted text. It has the label of the input.
    /// Without it, the input is the request.
    pub request: Option<Arc<str>>,
    /// Label of the input. One that the lattice does not have counts as ⊤.
    pub input: LabelSpec,
    /// Bound and form of the answer, which is a sink.
    pub answer: AnswerSink,
    /// Calls that untrusted data decided before the run and that count in it (`at_most`), by tool: those of
    /// earlier programs for the same request ([`Machine::counted_calls`]).
    pub counted: Vec<(Name, u64)>,
    /// Name of the strand that is the run itself ([`RequestId::strand`]), a small number. Machines whose
    /// requests are kept together have different ones.
    pub strand: u64,
}

impl Default for Config {
    /// Two-axis lattice, 100 million steps, 16 MiB of text, 8 million frames, models may see everything,
    /// generated code may not reclassify, the input is trusted and public.
    fn default() -> Config {
        Config {
            lattice: LatticeKind::TwoAxis,
            principals: Principals::default(),
            fuel: 100_000_000,
            max_text: 16 << 20,
            max_frames: 8_000_000,
            parser: None,
            clearance: LabelSpec::TOP,
            clearances: Vec::new(),
            routes: ModelRoutes::default(),
            generated_endorse: false,
            explain_flow: false,
            note_branches: false,
            request: None,
            input: LabelSpec::BOTTOM,
            answer: AnswerSink::default(),
            counted: Vec::new(),
            strand: 0,
        }
    }
}

/// Names a request. Depends only on the program's own course, not on the order of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// Number of the branch: zero for the run itself, a hash of the way to it for a branch of a `par`.
    pub strand: u64,
    /// Sequence number of the request within its branch.
    pub number: u32,
}

/// A request of the machine to the world.
#[derive(Clone, Debug)]
pub struct Request {
    /// The call.
    pub call: Call,
    /// The channel label: who can see that it is asked.
    pub channel: Label,
    /// The label of the answer, and of the errors that represent one. What is answered, and when, may
    /// depend only on the program's data of labels that flow to this, and on requests whose channel does.
    pub answer: Label,
    /// The label of what the request is made of: of what decides that it is made, and of its arguments. For
    /// a model or a store that is the channel label.
    pub inputs: Label,
    /// The time limits that the answer has to keep.
    pub deadlines: Deadlines,
    /// The term that asks.
    pub span: Span,
    /// The parts that the request depends on, with their labels: whether it is made, the conversation or each
    /// argument, the value kept. Only if the run explains flow ([`Config::explain_flow`]); it is for the
    /// operator, who may see it all.
    pub given: Box<[(Part, Label)]>,
    /// Position in the order of a run whose branches are run one after another: requests compare as
    /// their places do; branches within a hundred others share the place of the outer one. Depends on the
    /// program's own course alone, so a trace in this order is the same every time.
    pub place: Place,
    /// Name of a call of a tool that writes, for its idempotency key; with the tool it names the call within
    /// the run. A function of the branch, the program counter of the call, and the number of earlier calls of
    /// such tools at that program counter. It tells no more than the channel and the answer do
    /// (`docs/calculus.md` §10, idempotency keys). `None` for all other requests.
    pub call_id: Option<u64>,
    /// Of a call of a tool: arguments that were admitted because they are in a set (`among`). For the
    /// operator.
    pub choices: Box<[Choice]>,
    /// How the call counts for `at_most`; of a question to a person, how the call would.
    pub counts: CallCount,
}

/// How a call counts for the limit of calls that untrusted data decides (`at_most`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallCount {
    /// It doesn't: trusted data alone decides it, or the tool has no such limit.
    #[default]
    No,
    /// It is one more. If an earlier run for the same request made it, [`Machine::made_earlier`] says so.
    More,
    /// There may be no more. Calls of [`Config::counted`] may be repeated all the same: the response is that
    /// of an earlier run, or [`Machine::no_further`] ends the run.
    Repeated,
}

/// Where a request stands in the order of a run; see [`Request::place`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The place of the branch; none for the run itself.
    branch: Option<Arc<Vec<u32>>>,
    /// Sequence number of the request within its branch.
    number: u32,
}

impl Place {
    /// The place as numbers, which compare as places do.
    pub fn path(&self) -> Arc<[u32]> {
        self.branch.iter().flat_map(|b| b.iter()).copied().chain([self.number, u32::MAX]).collect()
    }
}

/// A part of a request or refusal that has a label of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The program counter: that the request is made.
    Control,
    /// An argument of a tool.
    Argument(Name),
    /// The conversation that a model is shown.
    Conversation,
    /// The value that is kept under a key, or asserted about.
    Value,
    /// The verdict of a tool's policy.
    Verdict,
    /// The answer of the run.
    Answer,
    /// The form of the text of an argument; without a name, of the answer.
    Form(Option<Name>),
    /// The readers of an argument.
    Readers(Name),
    /// The pattern that an argument must match.
    Pattern(Name),
}

impl Part {
    /// `the argument `to``, and so on.
    pub fn describe(&self) -> String {
        match self {
            Part::Control => "whether it happens".into(),
            Part::Argument(name) => format!("the argument `{name}`"),
            Part::Conversation => "the conversation".into(),
            Part::Value => "the value".into(),
            Part::Verdict => "what the policy says".into(),
            Part::Answer => "the answer".into(),
            Part::Form(Some(name)) => format!("the text of the argument `{name}`"),
            Part::Form(None) => "the text of the answer".into(),
            Part::Readers(name) => format!("the readers of the argument `{name}`"),
            Part::Pattern(name) => format!("the form of the argument `{name}`"),
        }
    }

    /// The name used in traces: `control`, `conversation`, `value`, `verdict`, `answer`, or that of the
    /// argument.
    pub fn name(&self) -> &str {
        match self {
            Part::Control => "control",
            Part::Argument(name) | Part::Form(Some(name)) | Part::Readers(name) | Part::Pattern(name) => name,
            Part::Conversation => "conversation",
            Part::Value => "value",
            Part::Verdict => "verdict",
            Part::Answer | Part::Form(None) => "answer",
        }
    }
}

/// A refusal of a flow rule, for the operator: labels are in it that the refusal's own label does not cover.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The part that broke the bound.
    pub part: Part,
    /// The tool, model or key that has the bound; `None` for conversations, assertions and the answer.
    pub name: Option<Name>,
    /// The label that it has.
    pub label: Label,
    /// The bound.
    pub bound: Label,
}

/// A call of a tool that a flow rule refused, for the operator. The program may have caught that and gone on,
/// as the loop of an agent does.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    /// The call.
    pub span: Span,
    /// The first refusal.
    pub refusal: Refusal,
    /// Number of refusals.
    pub times: u64,
}

/// The most calls of which [`Machine::refused_calls`] tells.
const MAX_REFUSED: usize = 16;

/// The enclosing `within[n]` of a request. Empty for most, and then it costs nothing.
///
/// The machine has no clock: the driver measures, and answers [`Response::Late`] when a limit has passed, at
/// once if it had passed before. So that time says nothing about secrets, the clock that counts for a request
/// runs only while it is open itself, or another request of the scope is whose answer label flows both to the
/// channel and to the answer label of that request (`docs/calculus.md` §10, time limits). For a program
/// without labels that is all the time spent waiting since the first request of the scope.
#[derive(Clone, Debug, Default)]
pub struct Deadlines(Option<Arc<Scope>>);

/// A `within[n]` that is being evaluated, and those around it.
#[derive(Debug)]
struct Scope {
    deadline: Deadline,
    /// Where it stands.
    span: Span,
    /// Number of scopes, this one included. Bounded, so dropping them does not recurse far.
    depth: usize,
    outer: Deadlines,
}

/// One time limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// Names the scope within the run; derived from the program's own course, like [`RequestId`].
    pub scope: u64,
    /// Time limit of its requests together, in seconds.
    pub seconds: Num,
}

impl Deadlines {
    /// The limits, innermost first.
    pub fn iter(&self) -> impl Iterator<Item = &Deadline> {
        self.scopes().map(|s| &s.deadline)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Number of limits, at most 100.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |s| s.depth)
    }

    fn scopes(&self) -> impl Iterator<Item = &Scope> {
        std::iter::successors(self.0.as_deref(), |s| s.outer.0.as_deref())
    }

    /// These and one more inside.
    fn and(&self, deadline: Deadline, span: Span) -> Deadlines {
        Deadlines(Some(Arc::new(Scope { deadline, span, depth: self.len() + 1, outer: self.clone() })))
    }
}

/// The kinds of requests.
#[derive(Clone, Debug)]
pub enum Call {
    /// Ask a model.
    Model {
        /// The conversation so far.
        messages: Messages,
        /// Output format; `None` if the reply is received as code.
        params: Option<Arc<ModelParams>>,
        /// The tools offered.
        tools: Vec<Arc<ToolDecl>>,
        /// Number of earlier replies to this question that did not decode.
        attempt: u32,
    },
    /// Call a tool, with an argument for each parameter.
    Tool {
        /// Its declaration.
        tool: Arc<ToolDecl>,
        /// The arguments in the order of the parameters.
        args: Vec<(Name, Data)>,
    },
    /// Ask whoever answers for the run whether a tool may be called with these arguments; the call follows if
    /// so.
    Approve {
        /// The tool's declaration.
        tool: Arc<ToolDecl>,
        /// The arguments in the order of the parameters.
        args: Vec<(Name, Data)>,
        /// For each argument, the join of the labels in it and of the record that it came in: where it came
        /// from, who decided that the call happens, and who may see it.
        labels: Box<[Label]>,
        /// The label of what decided that the call is made, and of the record that its arguments came in.
        control: Label,
    },
    /// Read a key.
    Recall {
        /// The store.
        store: Arc<StoreDecl>,
        /// The index of the key.
        key: u32,
    },
    /// Write a key.
    Remember {
        /// The store.
        store: Arc<StoreDecl>,
        /// The index of the key.
        key: u32,
        /// The value.
        value: Data,
    },
    /// Draw a sample: true with the given probability.
    Sample {
        /// Between 0 and 1.
        probability: Num,
        /// Number of the draw. A handler with a seed must derive the sample from the seed and this
        /// number alone, so that draws under a secret condition do not show in public ones.
        draw: u64,
    },
}

/// The answer to a [`Call`], of the same kind; or [`Response::Late`] or [`Response::Stop`] to any.
#[derive(Clone, Debug)]
pub enum Response {
    /// The model's reply, or its error.
    Model(Result<Reply, String>),
    /// The tool's result, or its error.
    Tool(Result<Data, String>),
    /// To a tool request: the tool did not answer within a limit of its own, in words. No limit of the
    /// program has passed: that is [`Response::Late`].
    ToolTimeout(String),
    /// The result of a tool that labels it. The label is joined to the declared one; it never lowers
    /// it. A label that the lattice of the run does not have counts as the highest.
    LabeledTool(Result<Data, String>, LabelSpec),
    /// Approval of the call, or the reason of its refusal.
    Approve(Result<(), String>),
    /// To a request for approval: approval of the call with other arguments. It is checked again, and made
    /// with them. Nobody is asked again.
    Edited {
        /// The arguments that are other ones, by the names of their parameters.
        args: Vec<(Name, Data)>,
        /// Label of what whoever approved the call writes. One that the lattice of the run does not have
        /// counts as the highest.
        label: LabelSpec,
    },
    /// To a request for approval: nobody is there to be asked.
    Unattended,
    /// The value of the key, if it has one.
    Recall(Result<Option<Data>, String>),
    /// Success of writing the key, or the error.
    Remember(Result<(), String>),
    /// The sample.
    Sample(bool),
    /// To a model request: why no model answers it, however often it is asked: a wrong key, a quota, a
    /// conversation that is too long, a refusal.
    Permanent(String),
    /// To a model request: no model that could answer it may see the conversation ([`Machine::may_see`]). At
    /// least one, in the order in which they would have been asked.
    Uncleared(Vec<Candidate>),
    /// A time limit has passed: which of the request's [`Deadlines`], the innermost being 0.
    Late(u32),
    /// The run ends here; the program cannot catch it.
    Stop(Stop),
}

/// A model's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Text.
    Text(String),
    /// A call of one of the tools offered.
    ToolCall {
        /// The tool.
        name: Name,
        /// Its arguments.
        args: Data,
    },
    /// Several calls of tools, at least one. The program receives one after the other, as if the model had
    /// been asked for each: the next `recv` that offers tools gives the next one without asking.
    ToolCalls(Vec<(Name, Data)>),
}

/// The end of a run from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The reason, which decides the error code.
    pub reason: StopReason,
    /// For people.
    pub message: String,
}

/// Reason for the end of a run before its program ended. No `try` catches the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A signal, or a client that left.
    Interrupted,
    /// The time limit of the run.
    TimeLimit,
    /// A limit on calls, tokens or money.
    Budget,
    /// The limit on steps of the machine.
    Fuel,
    /// A call that waits for the approval of a person who is not there.
    Approval,
    /// A writing tool that was interrupted: its effect is unknown.
    Unfinished,
    /// A journal that can't be written, or that disagrees with the program.
    Journal,
    /// A tool, model or store that is missing or configured wrongly.
    Configuration,
}

impl StopReason {
    /// The error code of a run that ends for this reason.
    pub fn code(self) -> ErrorCode {
        match self {
            StopReason::Budget => ErrorCode::Budget,
            StopReason::Fuel => ErrorCode::Fuel,
            StopReason::Configuration => ErrorCode::Configuration,
            StopReason::Interrupted
            | StopReason::TimeLimit
            | StopReason::Approval
            | StopReason::Unfinished
            | StopReason::Journal => ErrorCode::Cancelled,
        }
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Interrupted => "interrupted",
            StopReason::TimeLimit => "time_limit",
            StopReason::Budget => "budget",
            StopReason::Fuel => "fuel",
            StopReason::Approval => "approval",
            StopReason::Unfinished => "unfinished",
            StopReason::Journal => "journal",
            StopReason::Configuration => "configuration",
        }
    }
}

/// The kinds of errors. Source: `docs/calculus.md` §10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is described by its rule in docs/calculus.md §10.
pub enum ErrorCode {
    NotAFunction,
    NoBranch,
    Flow,
    Type,
    Tool,
    ToolTimeout,
    Model,
    Decode,
    Guard,
    Assert,
    Fail,
    Index,
    Prim,
    NotALabel,
    StoreRefused,
    Store,
    Classify,
    Timeout,
    Policy,
    Unknown,
    Limit,
    Budget,
    Fuel,
    Cancelled,
    Configuration,
}

impl ErrorCode {
    /// Every kind, in the order of the declaration.
    pub const ALL: [ErrorCode; ErrorCode::Configuration as usize + 1] = [
        ErrorCode::NotAFunction,
        ErrorCode::NoBranch,
        ErrorCode::Flow,
        ErrorCode::Type,
        ErrorCode::Tool,
        ErrorCode::ToolTimeout,
        ErrorCode::Model,
        ErrorCode::Decode,
        ErrorCode::Guard,
        ErrorCode::Assert,
        ErrorCode::Fail,
        ErrorCode::Index,
        ErrorCode::Prim,
        ErrorCode::NotALabel,
        ErrorCode::StoreRefused,
        ErrorCode::Store,
        ErrorCode::Classify,
        ErrorCode::Timeout,
        ErrorCode::Policy,
        ErrorCode::Unknown,
        ErrorCode::Limit,
        ErrorCode::Budget,
        ErrorCode::Fuel,
        ErrorCode::Cancelled,
        ErrorCode::Configuration,
    ];

    /// The name used in messages and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::NotAFunction => "not_a_function",
            ErrorCode::NoBranch => "no_branch",
            ErrorCode::Flow => "flow",
            ErrorCode::Type => "type",
            ErrorCode::Tool => "tool",
            ErrorCode::ToolTimeout => "tool_timeout",
            ErrorCode::Model => "model",
            ErrorCode::Decode => "decode",
            ErrorCode::Guard => "guard",
            ErrorCode::Assert => "assert",
            ErrorCode::Fail => "fail",
            ErrorCode::Index => "index",
            ErrorCode::Prim => "prim",
            ErrorCode::NotALabel => "not_a_label",
            ErrorCode::StoreRefused => "store_refused",
            ErrorCode::Store => "store",
            ErrorCode::Classify => "classify",
            ErrorCode::Timeout => "timeout",
            ErrorCode::Policy => "policy",
            ErrorCode::Unknown => "unknown",
            ErrorCode::Limit => "limit",
            ErrorCode::Budget => "budget",
            ErrorCode::Fuel => "fuel",
            ErrorCode::Cancelled => "cancelled",
            ErrorCode::Configuration => "configuration",
        }
    }

    /// Returns whether no `try` may catch it.
    pub fn is_final(self) -> bool {
        matches!(self, ErrorCode::Budget | ErrorCode::Fuel | ErrorCode::Cancelled | ErrorCode::Configuration)
    }
}

/// An error that nothing caught.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind.
    pub code: ErrorCode,
    /// The message that a handler is given.
    pub message: String,
    /// The label of the error: who may learn that it happened.
    pub label: Label,
    /// The branch that failed, as in [`RequestId::strand`]. Branches that ask nobody count as what is around
    /// them.
    pub strand: u64,
    /// The term that failed.
    pub span: Span,
    /// Other places that explain it.
    pub notes: Vec<(Span, String)>,
    /// If it is a refused flow: which.
    pub refusal: Option<Box<Refusal>>,
    /// The reason, if the run was ended from outside.
    pub stopped: Option<StopReason>,
    /// True if the error recurs however often the request is repeated: a model that refuses for good or that
    /// no clearance admits, or a call that somebody did not approve.
    pub permanent: bool,
    /// True if a call was not made because nobody was there to approve it.
    pub unattended: bool,
}

impl Failure {
    /// Returns the class of the error. A call that somebody did not approve is refused.
    pub fn class(&self) -> ErrorClass {
        match self.code {
            ErrorCode::Timeout => ErrorClass::Timeout,
            ErrorCode::Flow | ErrorCode::Policy | ErrorCode::StoreRefused => ErrorClass::Refusal,
            ErrorCode::Tool if self.permanent => ErrorClass::Refusal,
            ErrorCode::Limit
            | ErrorCode::Unknown
            | ErrorCode::NotALabel
            | ErrorCode::Budget
            | ErrorCode::Fuel
            | ErrorCode::Cancelled
            | ErrorCode::Configuration => ErrorClass::Other,
            _ => ErrorClass::Error,
        }
    }
}

/// Reason of a refusal when nobody is there to approve a call.
pub const NOBODY: &str = "nobody is there to approve it";

/// The result of [`Machine::poll`].
#[derive(Clone, Debug)]
pub enum Output {
    /// The machine needs this; answer with [`Machine::handle`], now or later.
    Request(RequestId, Request),
    /// It did a slice of work and can go on at once: look after timers and cancellation, then poll again.
    Working,
    /// Nothing can happen before a response arrives.
    Waiting,
    /// The run has ended. Said again at every further poll.
    Done(Result<Value, Failure>),
}

/// A conversation: its label and its messages.
#[derive(Clone, Debug)]
pub(crate) struct Conversation {
    pub label: Label,
    pub messages: Growing,
    /// Tool calls of the last reply that were not received yet, the next one last. Mostly there are none.
    #[allow(clippy::box_collection, reason = "a conversation of a run that waits is to be small")]
    pub pending: Option<Box<Vec<(Name, Data)>>>,
    /// The remark that was made last.
    pub told: Option<Arc<Remark>>,
    /// Calls that were made with other arguments than the model gave, and of which no model was told yet.
    #[allow(clippy::box_collection, reason = "a conversation of a run that waits is to be small")]
    pub edits: Option<Box<Vec<Arc<Remark>>>>,
}

/// Up to how many elements a vector takes no more room than it needs, in what waits. Longer ones are not
/// moved for that.
pub(crate) const SHORT: usize = 64;

/// A text for models, with its label: the guard's reason against the last attempt, or what an approver
/// changed.
#[derive(Debug)]
pub(crate) struct Remark {
    pub label: Label,
    pub text: String,
}

impl Conversation {
    pub(crate) fn empty(label: Label) -> Conversation {
        Conversation { label, messages: Growing::default(), pending: None, told: None, edits: None }
    }

    /// A copy that continues by itself, at a program counter.
    pub(crate) fn branch(&mut self, lattice: &mut Lattice, pc: Label) -> Conversation {
        let (messages, label) = (self.messages.copy(), lattice.join(self.label, pc));
        let (pending, told, edits) = (self.pending.clone(), self.told.clone(), self.edits.clone());
        Conversation { label, messages, pending, told, edits }
    }
}

/// The most bound names that are remembered for explanations.
const MAX_BINDINGS: usize = 100_000;

/// For keys that are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Not used: the keys are `u64`.
        self.0 = bytes.iter().fold(self.0, |h, b| h.rotate_left(8) ^ u64::from(*b));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
}

/// State of a run that has or had branches under way.
#[derive(Clone, Default)]
struct BranchTable {
    /// The slots that have become free.
    free: Vec<usize>,
    /// Where the branches of `par`s are; the run itself is in the first slot.
    slots: HashMap<u64, usize, BuildHasherDefault<AsItIs>>,
    /// The strands that can go on after the first that can, in the order in which they could.
    ready: VecDeque<usize>,
    /// Strands that wait for branches and may have some to start; the last goes first.
    starting: Vec<usize>,
}

/// A run of one term. See the [crate] documentation for how it is driven. A copy goes on by itself from where
/// this one is.
#[derive(Clone)]
#[allow(clippy::box_collection, reason = "mostly there are none, and a machine that waits is to be small")]
pub struct Machine {
    lattice: Lattice,
    config: Arc<Config>,
    clearances: Box<Clearances<Label>>,
    /// True if the driver compares conversations with clearances, see [`Machine::leave_clearance_to_driver`].
    driver_clears: bool,
    root: Arc<Code>,
    globals: Box<[Option<value::Ref>]>,
    tools: Box<[Option<value::Ref>]>,
    strands: Vec<Option<Box<eval::Strand>>>,
    /// The strand that can go on; those that can, too, are among the branches.
    ready: Option<usize>,
    /// State of branches; many runs have none.
    branches: Option<Box<BranchTable>>,
    /// The strand that made a request last, if it was not looked after since.
    asked: Option<usize>,
    fuel: u64,
    /// Conversation of the run, at its end.
    conversation: Option<Box<(Label, Messages)>>,
    done: Option<Result<Value, Box<Failure>>>,
    /// Labels of values that names were bound to; only if the run explains flow.
    bound: Option<Box<BTreeMap<(Name, Span), Label>>>,
    /// Calls that were refused.
    refused: Option<Box<Vec<RefusedCall>>>,
    /// Tools of which a policy function refused a call.
    denied: Option<Box<Vec<Name>>>,
    /// Calls that untrusted data decided, by tool; only of tools that limit their number.
    counted: Option<Box<Vec<(Name, u64)>>>,
    /// Sets that arguments may be chosen from.
    sets: Option<Box<sets::Sets>>,
    /// Branches of the program that were taken; only if the run notes them.
    taken: Option<Box<BTreeSet<TakenBranch>>>,
}

/// A branch that a run took: the term that decides, and the number of the branch. Of an `if` it is 0 where
/// the condition holds, and 1 where not; of a `case` the index of the branch, the default being behind the
/// last; of a `try` 1, the handler; of an `each` 0, a call of its function.
pub type TakenBranch = (TermId, u32);

impl Machine {
    /// Calls of tools that a flow rule refused, whether the program went on or not: the first few that
    /// differ.
    pub fn refused_calls(&self) -> &[RefusedCall] {
        self.refused.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Branches of the program that the run took so far, in the order of their terms; none without
    /// [`Config::note_branches`]. Those of policies and of generated code are not among them.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Builder, Globals, IfSugar, Term};
    /// use diagnostics::{FileId, Span};
    /// use machine::{Config, Machine, Output};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let mut b = Builder::new();
    /// let (condition, yes, no) = (b.lit(false, at), b.lit("yes", at), b.lit("no", at));
    /// let choice = b.add(Term::If(condition, yes, no, IfSugar::Plain), at);
    /// let code = std::sync::Arc::new(b.finish(choice, &Globals::none()).unwrap());
    /// let root = code.root();
    /// let config = Config { note_branches: true, ..Config::default() };
    /// let mut machine = Machine::new(code, None, config);
    /// assert!(matches!(machine.poll(), Output::Done(Ok(_))));
    /// assert_eq!(machine.taken_branches().collect::<Vec<_>>(), [(root, 1)]);
    /// ```
    pub fn taken_branches(&self) -> impl Iterator<Item = TakenBranch> {
        self.taken.iter().flat_map(|taken| taken.iter().copied())
    }

    /// Notes that a branch of the program is taken, if the run notes them.
    fn note_taken(&mut self, code: &Code, term: TermId, branch: u32) {
        if let Some(taken) = &mut self.taken
            && std::ptr::eq(code, &*self.root)
        {
            taken.insert((term, branch));
        }
    }

    /// Tools of which a policy function refused a call, whether the program went on or not.
    pub fn denied_tools(&self) -> &[Name] {
        self.denied.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Calls that untrusted data decided so far, by tool, with those of [`Config::counted`]; only of tools
    /// that limit their number.
    pub fn counted_calls(&self) -> &[(Name, u64)] {
        self.counted.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns whether a request is made before the first step, for a set that arguments may be chosen from.
    pub fn is_for_set(&self, id: RequestId) -> bool {
        id.strand == self.config.strand && self.sets.as_ref().is_some_and(|sets| id.number < sets.requests())
    }

    fn note_denied(&mut self, tool: &Name) {
        let known = self.denied.get_or_insert_default();
        if !known.contains(tool) {
            known.push(tool.clone());
        }
    }

    /// Notes that a strand's call was refused, see [`Machine::refused_calls`].
    fn note_refused(&mut self, failure: &Failure) {
        let Some(refusal) = &failure.refusal else { return };
        let known = self.refused.get_or_insert_default();
        let same = |c: &&mut RefusedCall| {
            c.span == failure.span && c.refusal.name == refusal.name && c.refusal.part == refusal.part
        };
        if let Some(call) = known.iter_mut().find(same) {
            call.times += 1;
        } else if known.len() < MAX_REFUSED {
            known.push(RefusedCall { span: failure.span, refusal: Refusal::clone(refusal), times: 1 });
        }
    }

    /// A machine about to evaluate the code; with an input, about to apply it to that. Many runs of one
    /// configuration may share it.
    pub fn new(code: Arc<Code>, input: Option<Data>, config: impl Into<Arc<Config>>) -> Machine {
        Machine::with(code, input, config.into())
    }

    fn with(code: Arc<Code>, input: Option<Data>, config: Arc<Config>) -> Machine {
        let mut lattice = Lattice::with_principals(config.lattice, &config.principals);
        if config.explain_flow {
            lattice.keep_origins();
        }
        // A clearance that is no label of this lattice admits nothing, the safe side.
        let listed = config.clearances.iter();
        let clearances = Clearances {
            default: lattice.resolve(&config.clearance).unwrap_or_default(),
            named: listed.map(|(n, l)| (n.clone(), lattice.resolve(l).unwrap_or_default())).collect(),
        };
        let sets = sets::Sets::of(&mut lattice, &code, input.as_ref(), &config);
        let before = sets.as_ref().map_or(0, |s| s.requests());
        let mut machine = Machine {
            sets,
            clearances: Box::new(clearances),
            driver_clears: false,
            globals: vec![None; code.globals().names().len()].into(),
            tools: vec![None; code.tools.len()].into(),
            root: code.clone(),
            // Mostly there is one.
            strands: Vec::with_capacity(1),
            ready: None,
            branches: None,
            asked: None,
            fuel: config.fuel,
            conversation: None,
            done: None,
            bound: None,
            refused: None,
            denied: None,
            counted: (!config.counted.is_empty()).then(|| Box::new(config.counted.clone())),
            taken: config.note_branches.then(Box::default),
            lattice,
            config,
        };
        let label = machine.lattice.resolve_or_top(&machine.config.input);
        let input = input.map(|d| Value::from_data(&mut machine.lattice, label, &d));
        let strand = eval::Strand::root(
            machine.config.strand,
            code,
            input,
            Conversation::empty(Label::BOTTOM),
            before,
        );
        machine.enlist(strand, true);
        machine
    }

    /// Leaves it to the driver to compare conversations with clearances. The driver knows which models may
    /// answer a call; the machine knows what [`Config::routes`] says. The driver asks only models that
    /// [`Machine::may_see`] admits, and answers [`Response::Uncleared`] if there is none.
    pub fn leave_clearance_to_driver(&mut self) {
        self.driver_clears = true;
    }

    /// Returns whether a model may see a conversation with this channel label: the rule `lc ⊑ ℓmodel` of
    /// `recv`.
    pub fn may_see(&self, model: &Candidate, channel: Label) -> bool {
        self.clearances.of(model).all(|clearance| self.lattice.flows(channel, *clearance))
    }

    /// Works until the world is needed, a slice of work is done, or the run has ended.
    pub fn poll(&mut self) -> Output {
        self.poll_with(&mut answers::Nobody)
    }

    /// Works like [`Machine::poll`], with a handler that answers some requests at once.
    pub fn poll_with(&mut self, world: &mut dyn Answers) -> Output {
        if let Some(done) = &self.done {
            return Output::Done(done.clone().map_err(|f| *f));
        }
        if let Some(slot) = self.asked.take()
            && let Some(Some(strand)) = self.strands.get_mut(slot)
        {
            strand.rest();
        }
        if let Some(output) = self.next_set() {
            return output;
        }
        loop {
            if let Some(slot) = self.branches.as_mut().and_then(|b| b.starting.pop()) {
                if let Some(strand) = self.strands[slot].take()
                    && let Some(output) = self.start(slot, strand, world)
                {
                    return output;
                }
            } else if let Some(slot) = self.next_ready() {
                let Some(mut strand) = self.strands[slot].take() else { continue };
                let outcome = self.run(&mut strand, world);
                match outcome {
                    eval::Outcome::Request(id, request) => {
                        self.strands[slot] = Some(strand);
                        self.asked = Some(slot);
                        return Output::Request(id, request);
                    }
                    eval::Outcome::Working => {
                        self.strands[slot] = Some(strand);
                        self.can_go_on(slot);
                        return Output::Working;
                    }
                    eval::Outcome::Joining => {
                        self.look_at(slot, strand);
                    }
                    eval::Outcome::Ended(result) => self.ended(slot, *strand, result),
                    eval::Outcome::Final(failure) => {
                        self.strands[slot] = Some(strand);
                        self.finish(Err(failure));
                    }
                }
            } else {
                return Output::Waiting;
            }
            if let Some(done) = &self.done {
                return Output::Done(done.clone().map_err(|f| *f));
            }
        }
    }

    /// Takes back that a call counts: an earlier run, whose calls count already, made it
    /// ([`CallCount::More`]). That it is one of those must depend on nothing but data and requests whose
    /// labels flow to the channel.
    pub fn made_earlier(&mut self, request: &Request) {
        let Call::Tool { tool, .. } = &request.call else { return };
        if request.counts != CallCount::More {
            return;
        }
        let counted = self.counted.iter_mut().flat_map(|c| c.iter_mut()).find(|(n, _)| *n == tool.name);
        if let Some((_, calls)) = counted {
            *calls = calls.saturating_sub(1);
        }
    }

    /// Ends the run at a request that may only be a repeated one ([`CallCount::Repeated`]) and is none.
    pub fn no_further(&mut self, id: RequestId) {
        if self.done.is_some() {
            return;
        }
        let Some(slot) = self.slot(id.strand) else { return };
        let Some(mut strand) = self.strands.get_mut(slot).and_then(Option::take) else { return };
        let ended = self.is_used_up(&mut strand, id.number);
        self.strands[slot] = Some(strand);
        if ended {
            self.can_go_on(slot);
        }
    }

    /// Takes a response. One to a request that is not outstanding (answered already, or its run is over) is
    /// ignored.
    pub fn handle(&mut self, id: RequestId, response: Response) {
        if self.done.is_some() {
            return;
        }
        if let Response::Stop(stop) = response {
            return self.stop(stop, Some(id.strand));
        }
        if self.set_answered(id, &response) {
            return;
        }
        let Some(slot) = self.slot(id.strand) else { return };
        let Some(mut strand) = self.strands.get_mut(slot).and_then(Option::take) else { return };
        let answered = self.answer(&mut strand, id.number, response);
        self.strands[slot] = Some(strand);
        if answered {
            self.can_go_on(slot);
        }
    }

    /// Ends the run from outside.
    pub fn cancel(&mut self, stop: Stop) {
        self.stop(stop, None);
    }

    /// Ends the run; the error points at what the strand waits for, or else any strand.
    fn stop(&mut self, stop: Stop, strand: Option<u64>) {
        if self.done.is_none() {
            let waits = |slot: &usize| self.strands.get(*slot)?.as_ref()?.waits_for();
            let span = match strand {
                Some(id) => self.slot(id).and_then(|slot| waits(&slot)),
                // Which of several branches is named must not depend on the order of a hash map.
                None => {
                    let mut ids: Vec<_> = self.branches.iter().flat_map(|b| &b.slots).collect();
                    ids.sort();
                    waits(&0).or_else(|| ids.into_iter().find_map(|(_, slot)| waits(slot)))
                }
            };
            let span = span.unwrap_or_else(|| self.root.span(self.root.root()));
            self.finish(Err(Failure {
                code: stop.reason.code(),
                message: stop.message,
                label: Label::BOTTOM,
                strand: self.config.strand,
                span,
                notes: Vec::new(),
                refusal: None,
                stopped: Some(stop.reason),
                permanent: false,
                unattended: false,
            }));
        }
    }

    /// The stores that the program declares. No other is used in the run.
    pub fn stores(&self) -> &[Arc<StoreDecl>] {
        &self.root.stores
    }

    /// The lattice of the run, which gives its labels their meaning.
    pub fn lattice(&self) -> &Lattice {
        &self.lattice
    }

    /// The steps done so far.
    pub fn fuel_used(&self) -> u64 {
        self.config.fuel - self.fuel
    }

    /// The conversation of the run, after its end; before, the empty one.
    pub fn conversation(&self) -> (Label, Messages) {
        match self.conversation.as_deref() {
            None => (Label::BOTTOM, Messages::default()),
            Some((label, messages)) => (*label, messages.clone()),
        }
    }

    /// A value as a tree that can be printed and compared.
    pub fn reify(&self, value: &Value) -> Reified {
        Reified::of(&self.lattice, value, self.config.max_text)
    }

    /// The join of all labels in a value.
    pub fn deep_label(&mut self, value: &Value) -> Label {
        value.deep_label(&mut self.lattice)
    }

    /// Origin of each component of a label of this run. Empty unless the run explains flow
    /// ([`Config::explain_flow`]).
    pub fn why(&self, label: Label) -> Vec<Chain> {
        self.lattice.why(label)
    }

    /// The names that were bound so far, where, and the join of all labels in what they were bound to there.
    /// Empty unless the run explains flow.
    pub fn bindings(&self) -> impl Iterator<Item = (&Name, Span, Label)> {
        self.bound.iter().flat_map(|b| b.iter()).map(|((name, span), label)| (name, *span, *label))
    }

    /// The labeled parts of a value, at most `most` of them: the way to each, and the join of all labels in
    /// it and around it.
    pub fn labeled_parts(&mut self, value: &Value, most: usize) -> Vec<(String, Label)> {
        value.labeled_parts(&mut self.lattice, most)
    }

    /// Takes note of what a name is bound to.
    fn note_binding(&mut self, name: &Name, span: Span, value: &Value) {
        let label = value.deep_label(&mut self.lattice);
        // A bound on what is kept: a program may have been made by a machine, with any number of names.
        if label == Label::BOTTOM {
            return;
        }
        let bound = self.bound.get_or_insert_default();
        if bound.len() < MAX_BINDINGS {
            let before = bound.entry((name.clone(), span)).or_default();
            *before = self.lattice.join(*before, label);
        }
    }

    fn finish(&mut self, result: Result<Value, Failure>) {
        if let Some(run) = self.strands.first_mut().and_then(Option::take) {
            self.keep(run.outermost_conversation());
        }
        let result = self.delivered(result);
        self.done = Some(result.map_err(Box::new));
        self.strands.clear();
        self.ready = None;
        self.branches = None;
    }

    /// Lets a strand go on when those have that could before it.
    fn can_go_on(&mut self, slot: usize) {
        if self.ready.is_none() && self.branches.as_ref().is_none_or(|b| b.ready.is_empty()) {
            self.ready = Some(slot);
        } else {
            self.branches_mut().ready.push_back(slot);
        }
    }

    fn next_ready(&mut self) -> Option<usize> {
        self.ready.take().or_else(|| self.branches.as_mut()?.ready.pop_front())
    }

    fn branches_mut(&mut self) -> &mut BranchTable {
        self.branches.get_or_insert_default()
    }

    /// Keeps the conversation of the run, which is at its end.
    fn keep(&mut self, mut conversation: Conversation) {
        self.conversation = Some(Box::new((conversation.label, conversation.messages.share())));
    }

    fn slot(&self, id: u64) -> Option<usize> {
        if id == self.config.strand { Some(0) } else { self.branches.as_ref()?.slots.get(&id).copied() }
    }

    /// Returns whether the end of a branch is the end of the run: nobody may catch the error, and going on
    /// would show that it has not happened.
    fn ends_the_run(&self, parent: &eval::Strand, result: &Result<Value, Failure>) -> bool {
        matches!(result, Err(f) if self.is_last(f, parent.pc()))
    }

    /// Gives a strand a place, and lets it run if it can.
    fn enlist(&mut self, strand: eval::Strand, ready: bool) -> usize {
        let id = strand.id;
        let slot = match self.branches.as_mut().and_then(|b| b.free.pop()) {
            Some(slot) => slot,
            None => {
                self.strands.push(None);
                self.strands.len() - 1
            }
        };
        self.strands[slot] = Some(Box::new(strand));
        if id != self.config.strand {
            self.branches_mut().slots.insert(id, slot);
        }
        if ready {
            self.can_go_on(slot);
        }
        slot
    }

    /// A strand has ended: the run with it, or a branch of a `par`.
    fn ended(&mut self, slot: usize, strand: eval::Strand, result: Result<Value, Failure>) {
        let Some((parent, index)) = strand.parent else {
            self.keep(strand.conversation);
            return self.finish(result);
        };
        let branches = self.branches_mut();
        branches.slots.remove(&strand.id);
        branches.free.push(slot);
        // INVARIANT: a parent stays in its slot, joining, until all its branches have ended.
        if let Some(mut p) = self.strands[parent].take() {
            if self.ends_the_run(&p, &result) {
                self.strands[parent] = Some(p);
                return self.finish(result);
            }
            p.branch_ended(index, result);
            self.look_at(parent, p);
        }
    }

    /// Puts a joining strand back, to be looked at next: it may have branches to start, or be done with them.
    fn look_at(&mut self, slot: usize, mut strand: Box<eval::Strand>) {
        if strand.is_to_be_looked_at(true) {
            self.branches_mut().starting.push(slot);
        }
        self.strands[slot] = Some(strand);
    }

    /// Starts branches of a joining strand as far as its bound admits; lets it go on when all have ended.
    ///
    /// A branch runs at once. Most end without asking for anything, and then need no place among the strands;
    /// one that has branches of its own is given one, and so is one that asks, before the others are started.
    fn start(
        &mut self,
        slot: usize,
        mut strand: Box<eval::Strand>,
        world: &mut dyn Answers,
    ) -> Option<Output> {
        strand.is_to_be_looked_at(false);
        let before = self.fuel;
        loop {
            // After a slice of work the driver gets its chance between branches.
            if before - self.fuel > u64::from(eval::SLICE) {
                self.look_at(slot, strand);
                return Some(Output::Working);
            }
            let Some(mut branch) = strand.next_branch(&mut self.lattice, slot) else { break };
            if branch.id == self.config.strand
                || self.slot(branch.id).is_some()
                || self.branches.as_ref().is_some_and(|b| b.slots.len() >= eval::MAX_STRANDS)
            {
                let message = format!("more than {} branches at once", eval::MAX_STRANDS);
                self.cancel(Stop { reason: StopReason::Fuel, message });
                return None;
            }
            match self.run(&mut branch, world) {
                eval::Outcome::Ended(result) => {
                    if self.ends_the_run(&strand, &result) {
                        self.strands[slot] = Some(strand);
                        self.finish(result);
                        return None;
                    }
                    if let Some((_, index)) = branch.parent {
                        strand.branch_ended(index, result);
                    }
                }
                eval::Outcome::Final(failure) => {
                    self.strands[slot] = Some(strand);
                    self.finish(Err(failure));
                    return None;
                }
                eval::Outcome::Working => {
                    self.enlist(branch, true);
                }
                eval::Outcome::Joining => {
                    let branch = self.enlist(branch, false);
                    self.look_at(slot, strand);
                    // That one first.
                    if let Some(strand) = self.strands[branch].take() {
                        self.look_at(branch, strand);
                    }
                    return None;
                }
                eval::Outcome::Request(id, request) => {
                    self.asked = Some(self.enlist(branch, false));
                    self.look_at(slot, strand);
                    return Some(Output::Request(id, request));
                }
            }
        }
        if strand.joined(&mut self.lattice) {
            self.can_go_on(slot);
        }
        self.strands[slot] = Some(strand);
        None
    }
}
