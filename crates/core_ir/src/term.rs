//! Terms, and the arena they live in.

use crate::{
    Among, AmongSource, BoundOrigin, Data, Instructions, LabelSpec, Name, Num, Pattern, Plain, Pred,
    ResultParts, StoreConflict, StoreTable, Type,
};
use diagnostics::Span;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// No term is nested deeper than this. Deeper input is an error with a place, so recursive analyses
/// need bounded stack. Long sequences are no nesting: `let`s stand in one list, stages of `>>` do not nest.
pub const MAX_DEPTH: usize = 1_000;

/// A term of a [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(pub u32);

/// A tool declaration of a [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolId(pub u32);

/// A store declaration of a [`Code`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u32);

/// Location of a variable's value.
///
/// An *activation* is one run of a function body. Its locals are numbered in the order in which they
/// are bound: the parameter is local 0, then the names bound by `let`, `case` and `catch` around the
/// place in question. Binding local `i` discards the locals from `i` on, which are out of scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Slot {
    /// Local of the current activation.
    Local(u32),
    /// Captured when the current closure was made: an index into its [`Abs::captures`].
    Captured(u32),
    /// A prelude definition: an index into [`Globals`].
    Global(u32),
}

/// Limit on the unfoldings of a fixpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// At most so often along one chain of self calls.
    Finite(u64),
    /// Without a bound: untyped code and flagged configurations only.
    Infinite,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Abs {
    /// The parameter.
    pub param: Name,
    /// Its type, where it is written.
    pub ty: Option<Type>,
    /// The body.
    pub body: TermId,
    /// Where, in the activation that makes the closure, each captured value is found. Only what the
    /// body uses: labels of unused variables must not taint the closure.
    pub captures: Box<[Slot]>,
    /// The notation it came from.
    pub sugar: AbsSugar,
}

/// Notation of an [`Abs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsSugar {
    /// A λ.
    Plain,
    /// `e1 >> … >> en`, that is `λx. en (… (e1 x))`; [`Code::stages`] lists the stages.
    Compose,
    /// `e1 | e2`, that is `λx. let r = par [e1 x, e2 x] in (r.[0], r.[1])`.
    ParPair,
}

/// Notation of a `let`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetSugar {
    /// `let`.
    Plain,
    /// `@e`, that is `let _ = send e in recv`.
    Ask,
}

/// Notation of an `if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfSugar {
    /// `if`.
    Plain,
    /// `a && b`, that is `if a then b else false`.
    And,
    /// `a || b`, that is `if a then true else b`.
    Or,
}

/// One branch of a `case`.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The tag it takes. A string equal to the tag's name is taken as the tag without payload.
    pub tag: Name,
    /// Variable bound to the payload, if any.
    pub binder: Option<Name>,
    /// Body of the branch.
    pub body: TermId,
}

/// Which errors a `try` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Catches {
    /// All that may be caught.
    #[default]
    All,
    /// `catch not timeout x. e`: all errors except those of a time limit, which pass this `try`.
    NotTimeout,
    /// `catch not permanent x. e`: all but those that come again however often the request is repeated.
    NotPermanent,
    /// `catch transient x. e`: neither those of a time limit nor permanent ones.
    Transient,
    /// `catch error x. e`: errors of programs and of the world; refusals and limits pass. The variable is
    /// bound to the record `{code, message}`.
    Error,
    /// `catch refusal x. e`: those of `catch error`, and refusals.
    Refusal,
}

/// Class of an error, as far as it matters to a `try`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// Raised by the program or by the world that it asked.
    Error,
    /// A time limit has passed.
    Timeout,
    /// A flow, policy, store or person refused something.
    Refusal,
    /// Anything else: limits on sizes, mistakes of a front end.
    Other,
}

impl Catches {
    /// Each of them with its words, which stand before the variable.
    pub const WORDS: [(Catches, &str); 6] = [
        (Catches::All, ""),
        (Catches::NotTimeout, "not timeout "),
        (Catches::NotPermanent, "not permanent "),
        (Catches::Transient, "transient "),
        (Catches::Error, "error "),
        (Catches::Refusal, "refusal "),
    ];

    /// Returns whether such a `try` catches an error.
    pub fn takes(self, class: ErrorClass, permanent: bool) -> bool {
        let timeout = class == ErrorClass::Timeout;
        match self {
            Catches::All => true,
            Catches::NotTimeout => !timeout,
            Catches::NotPermanent => !permanent,
            Catches::Transient => !timeout && !permanent,
            Catches::Error => timeout || class == ErrorClass::Error,
            Catches::Refusal => class != ErrorClass::Other,
        }
    }

    /// Returns whether the handler is given the code of the error beside its message.
    pub fn gives_code(self) -> bool {
        matches!(self, Catches::Error | Catches::Refusal)
    }
}

/// Author of a message of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator's instructions.
    System,
    /// Message of the program.
    User,
    /// Message of the model.
    Assistant,
    /// Result of a tool.
    Tool,
}

impl Role {
    /// The name used by model protocols.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// Tag returned by a `recv` that receives only pending calls (see [`ModelParams::waiting`]) if none is
/// pending.
pub const NOTHING_WAITS: &str = "none";

/// Field of the result of a reply's calls, if that is a record, which decides how to continue: the tag of a
/// call, `final`, or [`NOTHING_WAITS`].
pub const NEXT: &str = "next";

/// Parameters of a model call (the seed's `θ`).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ModelParams {
    /// Which model; `None` is the run's default.
    pub model: Option<Name>,
    /// Sampling temperature.
    pub temperature: Option<Num>,
    /// The most tokens of a reply.
    pub max_tokens: Option<u64>,
    /// The type the reply is decoded to; `None` is text as it is.
    pub result: Option<Type>,
    /// Number of further calls that may quote a decoding error and ask again.
    pub repair: u32,
    /// Tools offered. If there are any, the reply is a tag: the name of a tool with the arguments as a
    /// record, or `final` with the decoded answer.
    pub tools: Vec<ToolId>,
    /// Makes no request: receives the next pending call of the last reply, or the tag [`NOTHING_WAITS`] if
    /// none is pending.
    pub waiting: bool,
    /// Purpose of the call (the task's name), for scripts, traces and messages.
    pub purpose: Option<Name>,
    /// Everything else the source said, passed on to the handler.
    pub extra: Vec<(Name, Data)>,
}

impl ModelParams {
    /// Returns the models that are called in turn if the named one fails: `fallback` among the source's other
    /// settings, a string or a list of strings.
    pub fn fallbacks(&self) -> Vec<&str> {
        match self.extra.iter().find(|(n, _)| &**n == "fallback").map(|(_, d)| d) {
            Some(Data::Str(name)) => vec![name],
            Some(Data::List(names)) => {
                let names = names.iter().filter_map(|d| if let Data::Str(s) = d { Some(&**s) } else { None });
                names.collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Interpretation of a reply by `recv`.
#[derive(Clone, Debug, PartialEq)]
pub enum Recv {
    /// LLMbda's: the reply is parsed as a term and evaluated in the prelude's environment; gives
    /// `[true, v]`, or `[false, message]` if it does not parse.
    Code,
    /// The reply is data, decoded as the parameters say.
    Data(Arc<ModelParams>),
}

/// Primitive functions on label-free data: total or failing, deterministic.
///
/// `wrap`/`strip` around them is the machine's business. Each takes a fixed number of operands, see
/// [`Prim::arity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // Each is described by its line in `Prim::ALL`.
pub enum Prim {
    Neg,
    Not,
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Format,
    Length,
    Keys,
    Has,
    Append,
    Range,
    IsFn,
    IsArray,
    IsRecord,
    IsStr,
    IsNum,
    IsBool,
    IsNull,
    ToStr,
    ToNum,
    Lower,
    Upper,
    Trim,
    Split,
    Join,
    Contains,
    Slice,
    Flatten,
    ToJson,
    FromJson,
    Py,
}

impl Prim {
    /// Every primitive with its name, number of operands (`None`: any) and meaning.
    pub const ALL: &'static [(Prim, &'static str, Option<usize>, &'static str)] = &[
        (Prim::Neg, "neg", Some(1), "the negation of a number"),
        (Prim::Not, "not", Some(1), "the negation of a truth value"),
        (Prim::Add, "add", Some(2), "sum of numbers, concatenation of strings or of lists"),
        (Prim::Sub, "sub", Some(2), "difference of numbers"),
        (Prim::Mul, "mul", Some(2), "product of numbers"),
        (Prim::Div, "div", Some(2), "exact quotient; fails for divisor zero"),
        (Prim::Rem, "rem", Some(2), "remainder of the division rounded down; fails for divisor zero"),
        (Prim::Eq, "eq", Some(2), "whether two values are equal; fails on functions"),
        (Prim::Ne, "ne", Some(2), "whether two values differ; fails on functions"),
        (Prim::Lt, "lt", Some(2), "less, on two numbers or two strings"),
        (Prim::Le, "le", Some(2), "less or equal, on two numbers or two strings"),
        (Prim::Gt, "gt", Some(2), "greater, on two numbers or two strings"),
        (Prim::Ge, "ge", Some(2), "greater or equal, on two numbers or two strings"),
        (Prim::Format, "format", None, "interpolation: concatenates its operands, serialized as `send` does"),
        (Prim::Length, "length", Some(1), "characters of a string, items of a list, fields of a record"),
        (Prim::Keys, "keys", Some(1), "the field names of a record"),
        (Prim::Has, "has", Some(2), "whether a record has a field"),
        (Prim::Append, "append", Some(2), "a list with one more item at its end"),
        (Prim::Range, "range", Some(2), "the integers from the first up to but not including the second"),
        (Prim::IsFn, "is_fn", Some(1), "whether a value is a function"),
        (Prim::IsArray, "is_array", Some(1), "whether a value is a list"),
        (Prim::IsRecord, "is_record", Some(1), "whether a value is a record"),
        (Prim::IsStr, "is_str", Some(1), "whether a value is a string"),
        (Prim::IsNum, "is_num", Some(1), "whether a value is a number"),
        (Prim::IsBool, "is_bool", Some(1), "whether a value is a truth value"),
        (Prim::IsNull, "is_null", Some(1), "whether a value is null"),
        (Prim::ToStr, "to_str", Some(1), "the value serialized as `send` does"),
        (Prim::ToNum, "to_num", Some(1), "the number a string denotes; fails if it denotes none"),
        (Prim::Lower, "lower", Some(1), "a string in lower case"),
        (Prim::Upper, "upper", Some(1), "a string in upper case"),
        (Prim::Trim, "trim", Some(1), "a string without white space at its ends"),
        (Prim::Split, "split", Some(2), "the parts of the first string between occurrences of the second"),
        (Prim::Join, "join", Some(2), "the strings of a list with the second operand between them"),
        (Prim::Contains, "contains", Some(2), "whether a string contains another, or a list an item"),
        (
            Prim::Slice,
            "slice",
            Some(3),
            "the characters or items from an index up to but not including another",
        ),
        (Prim::Flatten, "flatten", Some(1), "the value with every label inside joined to its top"),
        (Prim::ToJson, "to_json", Some(1), "the value as JSON text"),
        (Prim::FromJson, "from_json", Some(1), "the value that JSON text denotes; fails if it is not JSON"),
        (Prim::Py, "py", None, "the operation of Python that the first operand names"),
    ];

    fn row(self) -> &'static (Prim, &'static str, Option<usize>, &'static str) {
        // INVARIANT: `ALL` has a row for each variant, in their order (checked by a test).
        &Prim::ALL[self as usize]
    }

    /// The name as it is written in `prim[name](…)`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Number of operands; `None` if any number is accepted.
    pub fn arity(self) -> Option<usize> {
        self.row().2
    }

    /// The primitive of a name.
    pub fn from_name(name: &str) -> Option<Prim> {
        Prim::ALL.iter().find(|r| r.1 == name).map(|r| r.0)
    }
}

/// A term. Source: `docs/calculus.md` §2.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A variable; the name is for people.
    Var(Name, Slot),
    /// A literal.
    Lit(Data),
    /// `{f: e, …}`, names distinct.
    Record(Vec<(Name, TermId)>),
    /// `args[f]{x: e, …}`: the arguments of a planned call of a tool, names distinct. No other term makes
    /// such a value. See [`Builder::args`].
    Args(ToolId, Vec<(Name, TermId)>),
    /// `[e, …]`.
    List(Vec<TermId>),
    /// A function.
    Abs(Abs),
    /// `e1 e2`.
    App(TermId, TermId),
    /// `let x1 = e1 in … let xn = en in e`; each name is in scope in what follows.
    Let {
        /// The definitions, at least one.
        bindings: Vec<(Name, TermId)>,
        /// The term they are for.
        body: TermId,
        /// The notation it came from.
        sugar: LetSugar,
    },
    /// `e.f`.
    Field(TermId, Name),
    /// `e.[e]`: list and number, record and string, string and number.
    Index(TermId, TermId),
    /// `e.f := e`: the record with that field set.
    With(TermId, Name, TermId),
    /// `prim p e…`.
    Prim(Prim, Vec<TermId>),
    /// `(e, e)`.
    Pair(TermId, TermId),
    /// `fst e`.
    Fst(TermId),
    /// `snd e`.
    Snd(TermId),
    /// `` `l e ``: a tag with a payload.
    Tag(Name, Option<TermId>),
    /// `if e then e else e`.
    If(TermId, TermId, TermId, IfSugar),
    /// `case e of {l x ⇒ e, …, _ ⇒ e}`.
    Case {
        /// Value to match.
        scrutinee: TermId,
        /// The branches, tags distinct.
        branches: Vec<Branch>,
        /// The `_` branch.
        default: Option<TermId>,
    },
    /// `classify[l, …] e`: the string as one of the tags, or an error.
    Classify(Vec<Name>, TermId),
    /// `fix[n] e`.
    Fix {
        /// The bound.
        bound: Bound,
        /// Origin of the bound, if it is not written in the source: `the default of CrewAI 1.15`.
        origin: Option<BoundOrigin>,
        /// The function from self to the function.
        body: TermId,
    },
    /// `guard e P retry n`.
    Guard {
        /// Guarded term. If its value is a function, the function's results are guarded.
        term: TermId,
        /// Predicate that the result must satisfy.
        pred: Pred,
        /// Number of retries.
        retry: u32,
    },
    /// `mem e σ`.
    Mem(StoreId, TermId),
    /// `recall k`, resolved to the innermost enclosing `mem` that declares `k`: the store and the key's
    /// index.
    Recall(Name, Option<(StoreId, u32)>),
    /// `remember k e`.
    Remember(Name, Option<(StoreId, u32)>, TermId),
    /// `choose p a b`: `a` with probability `p`.
    Choose(Num, TermId, TermId),
    /// `llm p θ`.
    Llm(TermId, Arc<ModelParams>),
    /// `tool[f]`.
    Tool(ToolId),
    /// `send e`.
    Send(Role, TermId),
    /// `recv`.
    Recv(Recv),
    /// `fork e`.
    Fork(TermId),
    /// `fresh e`.
    Fresh(TermId),
    /// `clear`.
    Clear,
    /// `e1 : e2`.
    Relabel(TermId, TermId),
    /// `e1 ? e2`.
    Test(TermId, TermId),
    /// `assert e1 e2`.
    Assert(TermId, TermId),
    /// `endorse e1 e2`.
    Endorse(TermId, TermId),
    /// `declassify e1 e2`.
    Declassify(TermId, TermId),
    /// `try[l] e catch x. e`.
    Try {
        /// The label.
        label: TermId,
        /// Term to try.
        body: TermId,
        /// Which errors it is for.
        catches: Catches,
        /// Variable bound to the error's message.
        name: Name,
        /// Term evaluated after an error.
        handler: TermId,
    },
    /// `fail e`.
    Fail(TermId),
    /// `within[n] e`: requests made inside are answered within `n` seconds, or are errors.
    Within(Num, TermId),
    /// `par[n] [e, …]`: at most `n` at a time (`None`: all).
    Par(Option<u32>, Vec<TermId>),
    /// `each[n] f xs`: a function applied to every item of a list, at most `n` at a time; the results in
    /// order.
    Each(Option<u32>, TermId, TermId),
    /// `check[τ] e`: the value, which must be data of the type; the name says what it is, for messages.
    Check(Name, Type, TermId),
    /// A construct that a front end could not translate or the parser could not read. Evaluating it is an
    /// error.
    Unknown(Name),
}

/// Does something with a reference to each direct subterm of a `&Term` or `&mut Term`, in the order of
/// evaluation as far as there is one.
macro_rules! each_subterm {
    ($term:expr, $do:expr) => {
        match $term {
            Term::Var(..)
            | Term::Lit(_)
            | Term::Recall(..)
            | Term::Tool(_)
            | Term::Recv(_)
            | Term::Clear
            | Term::Unknown(_) => {}
            Term::Record(fields) | Term::Args(_, fields) => fields.into_iter().for_each(|(_, e)| $do(e)),
            Term::Abs(abs) => {
                let Abs { body, .. } = abs;
                $do(body);
            }
            Term::Let { bindings, body, .. } => {
                bindings.into_iter().for_each(|(_, e)| $do(e));
                $do(body);
            }
            Term::Case { scrutinee, branches, default } => {
                $do(scrutinee);
                branches.into_iter().for_each(|Branch { body, .. }| $do(body));
                default.into_iter().for_each(|e| $do(e));
            }
            Term::List(es) | Term::Prim(_, es) | Term::Par(_, es) => es.into_iter().for_each(|e| $do(e)),
            Term::Tag(_, e) => e.into_iter().for_each(|e| $do(e)),
            Term::Field(e, _)
            | Term::Fst(e)
            | Term::Snd(e)
            | Term::Classify(_, e)
            | Term::Fix { body: e, .. }
            | Term::Guard { term: e, .. }
            | Term::Mem(_, e)
            | Term::Remember(_, _, e)
            | Term::Llm(e, _)
            | Term::Send(_, e)
            | Term::Fork(e)
            | Term::Fresh(e)
            | Term::Fail(e)
            | Term::Within(_, e)
            | Term::Check(_, _, e) => $do(e),
            Term::App(a, b)
            | Term::Index(a, b)
            | Term::With(a, _, b)
            | Term::Pair(a, b)
            | Term::Choose(_, a, b)
            | Term::Relabel(a, b)
            | Term::Test(a, b)
            | Term::Assert(a, b)
            | Term::Endorse(a, b)
            | Term::Declassify(a, b)
            | Term::Each(_, a, b) => {
                $do(a);
                $do(b);
            }
            Term::If(a, b, c, _) | Term::Try { label: a, body: b, handler: c, .. } => {
                $do(a);
                $do(b);
                $do(c);
            }
        }
    };
}

impl Term {
    /// The direct subterms, in the order of evaluation as far as there is one.
    pub fn children(&self) -> Vec<TermId> {
        let mut out = Vec::new();
        each_subterm!(self, |c: &TermId| out.push(*c));
        out
    }

    /// Replaces the subterms.
    #[must_use]
    pub fn map_children(mut self, f: &mut impl FnMut(TermId) -> TermId) -> Term {
        each_subterm!(&mut self, |c: &mut TermId| *c = f(*c));
        self
    }
}

/// Class of a tool's effects on the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum EffectClass {
    /// Nothing: its result depends on its arguments alone.
    Pure,
    /// Looks at the world.
    Read,
    /// Changes the world. The default, because it is the careful assumption.
    #[default]
    Write,
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolParam {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: Type,
    /// The highest label an argument may have (`ℓᵢ`).
    pub bound: LabelSpec,
    /// Value that its declaration gives an argument that is left out. A front end writes it into the call:
    /// the machine does not look at it.
    pub default: Option<Data>,
}

/// A tool that data of certain sources may choose the calls of, in a block of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Delegated {
    /// The tool that is called.
    pub tool: Name,
    /// The sources, by the names that the policy has for them; sorted.
    pub to: Box<[Name]>,
}

impl Delegated {
    /// The label that data of these sources has at most: everybody's for `untrusted`, whoever may read it.
    pub fn label(to: &[Name]) -> LabelSpec {
        if let [word] = to
            && **word == *"untrusted"
        {
            return LabelSpec::Axes { untrusted: true, secret: false };
        }
        let sources = Data::list(to.iter().map(|n| Data::str(&**n)));
        LabelSpec::Exact(Data::record([("sources".into(), sources), ("readers".into(), Data::str("*"))]))
    }

    /// The mark as data: `{tool: NAME, to: [NAME, …]}`.
    pub fn to_data(&self) -> Data {
        let to = Data::list(self.to.iter().map(|n| Data::str(&**n)));
        Data::record([("tool".into(), Data::str(&*self.tool)), ("to".into(), to)])
    }

    /// Reads [`Delegated::to_data`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::Delegated;
    /// let pay = Delegated { tool: "pay".into(), to: ["alice".into()].into() };
    /// assert_eq!(Delegated::from_data(&pay.to_data()), Some(pay));
    /// ```
    pub fn from_data(data: &Data) -> Option<Delegated> {
        let name = |data: &Data| match data {
            Data::Str(name) => Some(Name::from(&**name)),
            _ => None,
        };
        let (Data::Record(fields), Data::List(to)) = (data, data.field("to")?) else { return None };
        let tool = name(data.field("tool")?)?;
        (fields.len() == 2).then_some(Delegated { tool, to: to.iter().map(name).collect::<Option<_>>()? })
    }
}

/// The calls of a tool that need approval.
///
/// The order is that of strictness.
///
/// # Examples
/// ```
/// use core_ir::Approve;
/// assert!(Approve::Always > Approve::IfRefused);
/// assert!(Approve::IfRefused.may_ask() && !Approve::Never.may_ask());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Approve {
    /// No calls.
    #[default]
    Never,
    /// Calls that the bounds, or the form of a text, would refuse otherwise.
    IfRefused,
    /// All calls.
    Always,
}

/// Tag of the verdict of a policy function that admits a call once a person has approved it.
///
/// # Examples
/// ```
/// assert_eq!(core_ir::ASK_VERDICT, "ask");
/// ```
pub const ASK_VERDICT: &str = "ask";

impl Approve {
    /// Returns true if some calls may need approval.
    pub fn may_ask(self) -> bool {
        self != Approve::Never
    }
}

/// A tool: signature and flow policy. Source: `docs/calculus.md` §5.
///
/// Applied to a record with a field for each parameter. A tool with exactly one parameter may be
/// applied to the bare value, unless the value is a record that has a field of the parameter's name.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDecl {
    /// Its name, unique in the program.
    pub name: Name,
    /// Its parameters, names distinct.
    pub params: Vec<ToolParam>,
    /// Type of the result.
    pub result: Type,
    /// Class of the tool's effects.
    pub effect: EffectClass,
    /// The highest program-counter label under which it may be called (`ℓpc`).
    pub control: LabelSpec,
    /// The label of what it returns (`ℓres`), joined with those of the arguments.
    pub label: LabelSpec,
    /// Labels of parts of what it returns.
    pub parts: ResultParts,
    /// Description shown to models.
    pub description: Option<Name>,
    /// Implementation stated by the program (`{exec: […]}`, `{http: …}`), which the runtime reads.
    pub handler: Option<Data>,
    /// The calls that need approval, which endorses their arguments for this call.
    pub approve: Approve,
    /// The tool of the world that it is, with rules of its own for data that a plan lets choose its calls.
    pub delegated: Option<Arc<Delegated>>,
    /// True for a confirmation: nothing is called. The result is the first argument, which an approval
    /// endorses.
    pub confirms: bool,
    /// Sets out of which untrusted data may choose arguments that their bounds refuse.
    pub among: Box<[Among]>,
    /// Forms that untrusted text must have in these parameters.
    pub plain: Box<[(Name, Plain)]>,
    /// Patterns that arguments must match which aren't trusted and public.
    pub pattern: Box<[(Name, Pattern)]>,
    /// Parameters that only complete a call: what a call that succeeds returns doesn't depend on them.
    pub completes: Box<[Name]>,
    /// For these parameters, the parameters that name who must be among the readers of the argument.
    pub includes: Includes,
    /// Maximum number of calls in a run that untrusted data decides; the next one ends the run.
    pub at_most: Option<u64>,
    /// A function that decides whether a call may be made: from a record that has, for each argument, `value`
    /// and `label` (a label value), to `true`, `false`, a text that says why not, or the tag
    /// [`ASK_VERDICT`], which leaves the call to a person. It asks nothing
    /// ([`Code::is_quiet`]) and is closed over the same prelude as the code that declares the tool.
    pub policy: Option<Arc<Code>>,
    /// Place of the declaration.
    pub span: Span,
}

/// Reads patterns of parameters: `{code: "[0-9]{6}", …}`.
///
/// # Examples
/// ```
/// use core_ir::{Data, patterns_from_data};
/// let data = Data::record([("code".into(), Data::str("[0-9]{6}"))]);
/// assert_eq!(patterns_from_data(&data).unwrap()[0].1.as_str(), "[0-9]{6}");
/// assert_eq!(patterns_from_data(&Data::record([("code".into(), Data::str("("))])), None);
/// ```
pub fn patterns_from_data(data: &Data) -> Option<Box<[(Name, Pattern)]>> {
    let Data::Record(params) = data else { return None };
    params.iter().map(|(name, p)| Some((name.clone(), Pattern::new(p.as_str()?).ok()?))).collect()
}

/// Parameters with those that name whom their readers must include.
pub type Includes = Box<[(Name, Box<[Name]>)]>;

/// Reads the parameters whose readers other parameters name: `{body: ["to", "cc"], …}`.
///
/// # Examples
/// ```
/// use core_ir::{Data, includes_from_data};
/// let data = Data::record([("body".into(), Data::list([Data::str("to")]))]);
/// let [(body, who)] = &includes_from_data(&data).unwrap()[..] else { panic!("one parameter") };
/// assert_eq!((&**body, &*who[0]), ("body", "to"));
/// ```
pub fn includes_from_data(data: &Data) -> Option<Includes> {
    let Data::Record(params) = data else { return None };
    let names = |data: &Data| match data {
        Data::List(names) if !names.is_empty() => {
            names.iter().map(|n| Some(Name::from(n.as_str()?))).collect::<Option<Box<[Name]>>>()
        }
        _ => None,
    };
    params.iter().map(|(name, who)| Some((name.clone(), names(who)?))).collect()
}

impl ToolDecl {
    /// A tool of which nothing is known but its name: one parameter `input`, anything in, anything
    /// out, may change the world, its result comes from anyone. Arguments must be trusted and public.
    pub fn unknown(name: Name, span: Span) -> ToolDecl {
        ToolDecl {
            name,
            params: vec![ToolParam {
                name: "input".into(),
                ty: Type::Dyn,
                bound: LabelSpec::BOTTOM,
                default: None,
            }],
            result: Type::Dyn,
            effect: EffectClass::Write,
            control: LabelSpec::BOTTOM,
            label: LabelSpec::Axes { untrusted: true, secret: false },
            parts: ResultParts::default(),
            description: None,
            handler: None,
            approve: Approve::Never,
            delegated: None,
            confirms: false,
            among: Box::default(),
            plain: Box::default(),
            pattern: Box::default(),
            completes: Box::default(),
            includes: Box::default(),
            at_most: None,
            policy: None,
            span,
        }
    }

    /// Name of the tool of the world that is called.
    pub fn called(&self) -> &Name {
        self.delegated.as_ref().map_or(&self.name, |d| &d.tool)
    }

    /// The confirmation of a value by a person, who is asked where the value is untrusted: the parameters are
    /// the value and the reason. Secrecy is not changed, so any may be confirmed.
    pub fn confirmation(name: Name, span: Span) -> ToolDecl {
        let trusted = LabelSpec::Axes { untrusted: false, secret: true };
        let param =
            |name: &str, ty| ToolParam { name: name.into(), ty, bound: trusted.clone(), default: None };
        ToolDecl {
            params: vec![param("value", Type::Dyn), param("why", Type::Str)],
            effect: EffectClass::Pure,
            control: LabelSpec::TOP,
            label: LabelSpec::BOTTOM,
            approve: Approve::IfRefused,
            confirms: true,
            ..ToolDecl::unknown(name, span)
        }
    }

    /// Returns true if a person may be asked about a call: because of [`ToolDecl::approve`], or because the
    /// policy function says so.
    pub fn may_ask(&self) -> bool {
        self.approve.may_ask() || self.policy_may_ask()
    }

    /// Returns true if the policy function may leave a call to a person.
    pub fn policy_may_ask(&self) -> bool {
        let asks = |t: &Term| matches!(t, Term::Tag(tag, _) if **tag == *ASK_VERDICT);
        self.policy.as_ref().is_some_and(|policy| policy.reaches(asks))
    }

    /// Returns whether the result can be a set that arguments are chosen from ([`Among`]): a read that needs
    /// no arguments, and that nothing but the bounds can refuse.
    pub fn can_be_a_set(&self) -> bool {
        self.effect != EffectClass::Write
            && !self.approve.may_ask()
            && !self.confirms
            && self.delegated.is_none()
            && self.policy.is_none()
            && self.params.iter().all(|p| matches!(p.ty, Type::Option(_)))
    }

    /// Returns whether only the name of the tool is known, as [`ToolDecl::unknown`] declares it.
    pub fn is_unknown(&self) -> bool {
        let blank = ToolDecl::unknown(self.name.clone(), self.span);
        self.params == blank.params
            && self.result == blank.result
            && self.effect == blank.effect
            && self.control == blank.control
            && self.label == blank.label
            && self.parts.is_empty()
    }

    /// Returns whether nothing states what the tool does. Its name may be known, and what it takes and
    /// returns (a function of Python). It is then taken to change the world.
    pub fn is_unspecified(&self) -> bool {
        let blank = ToolDecl::unknown(self.name.clone(), self.span);
        self.params.iter().all(|p| p.bound == LabelSpec::BOTTOM)
            && self.effect == blank.effect
            && self.control == blank.control
            && self.label == blank.label
            && self.parts.is_empty()
            && !self.approve.may_ask()
            && self.among.is_empty()
            && self.plain.is_empty()
            && self.at_most.is_none()
            && self.policy.is_none()
    }
}

/// A key of a store. Source: `docs/calculus.md` §6.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyDecl {
    /// Its name.
    pub name: Name,
    /// The type of what it holds; never changes.
    pub ty: Type,
    /// The label of what it holds; never changes.
    pub label: LabelSpec,
    /// Initial value, if any.
    pub initial: Option<Data>,
}

/// A store `σ`.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreDecl {
    /// Its name; a program has one declaration for each.
    pub name: Name,
    /// Its keys, names distinct.
    pub keys: Vec<KeyDecl>,
    /// The most entries it keeps under each label.
    pub capacity: Option<u64>,
    /// Seconds after which an entry is gone.
    pub ttl: Option<u64>,
    /// The kind of backend the source asks for, such as `redis`.
    pub backend: Option<Name>,
    /// Place of the declaration.
    pub span: Span,
}

/// The definitions of the prelude: closed functions, known by index.
#[derive(Debug)]
pub struct Globals {
    names: Vec<Name>,
    /// `None` only for [`Globals::none`].
    code: Option<Arc<Code>>,
    terms: Vec<TermId>,
}

impl Globals {
    /// An empty prelude.
    pub fn none() -> Arc<Globals> {
        Arc::new(Globals { names: Vec::new(), code: None, terms: Vec::new() })
    }

    /// The names in order.
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// The index of a name.
    pub fn index(&self, name: &str) -> Option<u32> {
        self.names.iter().rposition(|n| &**n == name).map(|i| i as u32)
    }

    /// Returns the code of the definitions and the function of an index.
    pub fn get(&self, index: u32) -> Option<(&Arc<Code>, TermId)> {
        Some((self.code.as_ref()?, *self.terms.get(index as usize)?))
    }
}

/// A closed, resolved term with what it refers to and where each part came from.
#[derive(Clone, Debug)]
pub struct Code {
    terms: Vec<Term>,
    spans: Vec<Span>,
    locals: Vec<u32>,
    /// For each term, true if it is plain.
    plain: Vec<bool>,
    /// Made when they are asked for first: analyses need none.
    instructions: OnceLock<Instructions>,
    root: TermId,
    /// The tools, by [`ToolId`].
    pub tools: Vec<Arc<ToolDecl>>,
    /// The stores, by [`StoreId`].
    pub stores: Vec<Arc<StoreDecl>>,
    globals: Arc<Globals>,
}

/// Equality of the terms, tools and stores; places do not count.
impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        let tools = |c: &Code| -> Vec<ToolDecl> {
            let nowhere = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
            c.tools.iter().map(|t| ToolDecl { span: nowhere, ..(**t).clone() }).collect()
        };
        let stores = |c: &Code| -> Vec<StoreDecl> {
            let nowhere = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
            c.stores.iter().map(|t| StoreDecl { span: nowhere, ..(**t).clone() }).collect()
        };
        self.terms == other.terms
            && self.root == other.root
            && tools(self) == tools(other)
            && stores(self) == stores(other)
    }
}

impl Code {
    /// The tool of a name, if a set can be read from it ([`Among`]).
    pub fn set_read(&self, name: &Name) -> Option<&Arc<ToolDecl>> {
        self.tools.iter().find(|t| t.name == *name).filter(|t| t.can_be_a_set())
    }

    /// The tools that sets are read from ([`Among`]), each once: they are called before the first step.
    pub fn set_reads(&self) -> Vec<&Arc<ToolDecl>> {
        let mut reads: Vec<&Arc<ToolDecl>> = Vec::new();
        for among in self.tools.iter().flat_map(|t| &t.among) {
            let AmongSource::Tool(name) = &among.source else { continue };
            reads.extend(self.set_read(name).filter(|t| !reads.iter().any(|r| r.name == t.name)));
        }
        reads
    }

    /// The place of the answer: of the term whose value the program gives.
    pub fn answer_span(&self) -> Span {
        let mut at = self.root;
        // Children stand before their parents, so this ends.
        loop {
            at = match self.term(at) {
                Term::Let { body, .. } => *body,
                Term::Abs(abs) => abs.body,
                _ => return self.span(at),
            };
        }
    }

    /// The whole term.
    pub fn root(&self) -> TermId {
        self.root
    }

    /// A term.
    // INVARIANT: a `TermId` is only meaningful for the `Code` that it came from, and then in range.
    #[inline]
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    /// Returns the source place of a term.
    #[inline]
    pub fn span(&self, id: TermId) -> Span {
        self.spans[id.0 as usize]
    }

    /// Returns the number of locals in scope at a term, which is the number of the next local that it binds.
    #[inline]
    pub fn locals(&self, id: TermId) -> usize {
        self.locals[id.0 as usize] as usize
    }

    /// Returns true if evaluating the term only computes, in time bounded by its size: it makes no request,
    /// touches no conversation, and applies only functions written at the application.
    #[inline]
    pub fn is_plain(&self, id: TermId) -> bool {
        self.plain[id.0 as usize]
    }

    /// The instructions that the term is lowered to.
    #[inline]
    pub fn instructions(&self) -> &Instructions {
        self.instructions.get_or_init(|| Instructions::of(self))
    }

    /// A tool.
    #[inline]
    pub fn tool(&self, id: ToolId) -> &Arc<ToolDecl> {
        &self.tools[id.0 as usize]
    }

    /// A store.
    #[inline]
    pub fn store(&self, id: StoreId) -> &Arc<StoreDecl> {
        &self.stores[id.0 as usize]
    }

    /// The prelude that the global variables of this code refer to.
    pub fn globals(&self) -> &Arc<Globals> {
        &self.globals
    }

    /// All terms, children before parents; the last is the root.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (TermId, &Term)> + ExactSizeIterator {
        self.terms.iter().enumerate().map(|(i, t)| (TermId(i as u32), t))
    }

    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Returns true if evaluating the code makes no request, whatever its prelude functions are applied to.
    pub fn is_quiet(&self) -> bool {
        !self.reaches(|term| {
            matches!(
                term,
                Term::Llm(..)
                    | Term::Tool(_)
                    | Term::Recv(_)
                    | Term::Choose(..)
                    | Term::Recall(..)
                    | Term::Remember(..)
            )
        })
    }

    /// Returns true if a term is a loop over the calls of one reply, `fix[n] (λmore. λt. …)`: each iteration
    /// receives a pending call without asking the model, so the loop ends with the last call.
    pub fn receives_calls(&self, fix: TermId) -> bool {
        let Term::Fix { body, .. } = self.term(fix) else { return false };
        let Term::Abs(outer) = self.term(*body) else { return false };
        let Term::Abs(inner) = self.term(outer.body) else { return false };
        let waiting = |id: TermId| matches!(self.term(id), Term::Recv(Recv::Data(params)) if params.waiting);
        let given = |id: TermId| match self.term(id) {
            Term::Record(fields) => fields.iter().any(|(_, e)| waiting(*e)),
            _ => waiting(id),
        };
        let mut calls = 0;
        for id in post_order(&self.terms, inner.body) {
            let Term::App(f, x) = self.term(id) else { continue };
            if !matches!(self.term(*f), Term::Var(name, _) if *name == outer.param) {
                continue;
            }
            if !given(*x) {
                return false;
            }
            calls += 1;
        }
        calls > 0
    }

    /// Returns true if the code, or a prelude function that it uses directly or indirectly, contains a term
    /// of a kind.
    pub fn reaches(&self, kind: impl Fn(&Term) -> bool) -> bool {
        fn used(term: &Term) -> Option<u32> {
            match term {
                Term::Var(_, Slot::Global(i)) => Some(*i),
                _ => None,
            }
        }
        if self.terms.iter().any(&kind) {
            return true;
        }
        let mut work: Vec<u32> = self.terms.iter().filter_map(used).collect();
        let mut seen = vec![false; self.globals.names().len()];
        while let Some(i) = work.pop() {
            // A definition that is not there may be anything.
            let Some((code, root)) = self.globals.get(i) else { return true };
            if std::mem::replace(&mut seen[i as usize], true) {
                continue;
            }
            for id in post_order(&code.terms, root) {
                let term = code.term(id);
                if kind(term) {
                    return true;
                }
                work.extend(used(term));
            }
        }
        false
    }

    /// Never true: there is always a root.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Returns the stages of a composition, first to last; `None` for other terms.
    pub fn stages(&self, id: TermId) -> Option<Vec<TermId>> {
        let Term::Abs(Abs { sugar: AbsSugar::Compose, body, .. }) = self.term(id) else { return None };
        let mut stages = Vec::new();
        let mut at = *body;
        while let Term::App(f, x) = self.term(at) {
            stages.push(*f);
            at = *x;
        }
        stages.reverse();
        Some(stages)
    }

    /// Returns the two sides of `e1 | e2`; `None` for other terms.
    pub fn par_pair(&self, id: TermId) -> Option<(TermId, TermId)> {
        let Term::Abs(Abs { sugar: AbsSugar::ParPair, body, .. }) = self.term(id) else { return None };
        let Term::Let { bindings, .. } = self.term(*body) else { return None };
        let Term::Par(_, sides) = self.term(bindings.first()?.1) else { return None };
        let side = |i: usize| match self.term(*sides.get(i)?) {
            Term::App(f, _) => Some(*f),
            _ => None,
        };
        Some((side(0)?, side(1)?))
    }
}

/// Reason why terms do not form a [`Code`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// A variable that nothing binds.
    Unbound(Name, Span),
    /// `recall` or `remember` of a key that no enclosing `mem` declares.
    UnknownKey(Name, Span),
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep(Span),
    /// A term that was used in two places: a mistake of the front end.
    Shared(Span),
    /// A prelude definition that is not a closed function.
    NotAFunction(Name, Span),
    /// The policy of the tool of this name asks something of the world, or belongs to another prelude.
    Policy(Name, Span),
    /// Two declarations of one store that differ.
    Stores(Box<StoreConflict>),
}

/// Makes a [`Code`]: add terms bottom-up, then [`Builder::finish`].
///
/// Names that start with `$` are for variables that a front end invents; no source language of
/// names has them, and `.lam` can show them.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Data, Globals, Prim, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let x = b.var("x", at);
/// let one = b.add(Term::Lit(Data::Num(1.into())), at);
/// let sum = b.add(Term::Prim(Prim::Add, vec![x, one]), at);
/// let f = b.abs("x", None, sum, at);
/// let code = b.finish(f, &Globals::none()).unwrap();
/// assert_eq!(code.len(), 4);
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    terms: Vec<Term>,
    spans: Vec<Span>,
    tools: Vec<Arc<ToolDecl>>,
    stores: Vec<Arc<StoreDecl>>,
    fresh: u32,
}

/// The parameter of sugar. No source text can name it.
const HIDDEN: &str = "·x";

impl Builder {
    /// No terms.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds a term whose children were added before. Each term may be used once.
    pub fn add(&mut self, term: Term, span: Span) -> TermId {
        self.terms.push(term);
        self.spans.push(span);
        TermId(self.terms.len() as u32 - 1)
    }

    /// A term added before.
    pub fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize]
    }

    /// Returns the source place of a term added before.
    pub fn span(&self, id: TermId) -> Span {
        self.spans[id.0 as usize]
    }

    /// Rewrites each of the terms added so far; the function may add terms of its own, which are not
    /// rewritten.
    pub fn revise(&mut self, mut f: impl FnMut(&mut Builder, TermId, Term) -> Term) {
        for i in 0..self.terms.len() {
            let term = std::mem::replace(&mut self.terms[i], Term::Clear);
            let term = f(self, TermId(i as u32), term);
            self.terms[i] = term;
        }
    }

    /// A variable, resolved when the code is finished.
    pub fn var(&mut self, name: impl Into<Name>, span: Span) -> TermId {
        self.add(Term::Var(name.into(), Slot::Local(u32::MAX)), span)
    }

    /// A variable name that no source text and no other call gives: `$self1`.
    pub fn fresh(&mut self, stem: &str) -> Name {
        self.fresh += 1;
        Name::from(format!("${stem}{}", self.fresh))
    }

    /// A literal.
    pub fn lit(&mut self, data: impl Into<Data>, span: Span) -> TermId {
        self.add(Term::Lit(data.into()), span)
    }

    /// A function.
    pub fn abs(&mut self, param: impl Into<Name>, ty: Option<Type>, body: TermId, span: Span) -> TermId {
        let abs = Abs { param: param.into(), ty, body, captures: Box::new([]), sugar: AbsSugar::Plain };
        self.add(Term::Abs(abs), span)
    }

    /// An application.
    pub fn app(&mut self, function: TermId, argument: TermId, span: Span) -> TermId {
        self.add(Term::App(function, argument), span)
    }

    /// `args[f]{x: e, …}`: the arguments of a planned call of `tool`, with a field for each parameter.
    ///
    /// The parts are evaluated where the term stands. A call with the value takes the label that the value is
    /// read at as control, and compares each part with its bound without that label. So the value is built
    /// outside of every branch, loop and `try` that untrusted data decides, and the call stands inside:
    ///
    /// ```
    /// use core_ir::{Builder, Globals, IfSugar, Num, Term, ToolDecl};
    /// use diagnostics::{FileId, Span};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let mut b = Builder::new();
    /// let pay = b.tool(ToolDecl::unknown("pay".into(), at));
    /// let amount = b.lit(Num::from(5), at);
    /// let planned = b.args(pay, vec![("input".into(), amount)], at);
    /// let (condition, function) = (b.lit(true, at), b.add(Term::Tool(pay), at));
    /// let (planned_here, nothing) = (b.var("planned", at), b.lit(core_ir::Data::Null, at));
    /// let call = b.app(function, planned_here, at);
    /// let branch = b.add(Term::If(condition, call, nothing, IfSugar::Plain), at);
    /// let plan = b.let_in(vec![("planned".into(), planned)], branch, at);
    /// assert!(b.finish(plan, &Globals::none()).is_ok());
    /// ```
    ///
    /// A parameter that is left out is missing in the call, and that it is missing has the label of the
    /// value: write `null` or the default instead.
    pub fn args(&mut self, tool: ToolId, fields: Vec<(Name, TermId)>, span: Span) -> TermId {
        self.add(Term::Args(tool, fields), span)
    }

    /// `let name = value in body`; joins with the body if that is a plain `let` itself.
    pub fn let_in(&mut self, bindings: Vec<(Name, TermId)>, body: TermId, span: Span) -> TermId {
        if bindings.is_empty() {
            return body;
        }
        let term = match &mut self.terms[body.0 as usize] {
            Term::Let { bindings: inner, body: last, sugar: LetSugar::Plain } => {
                let mut all = bindings;
                all.append(inner);
                Term::Let { bindings: all, body: *last, sugar: LetSugar::Plain }
            }
            _ => Term::Let { bindings, body, sugar: LetSugar::Plain },
        };
        self.add(term, span)
    }

    /// `stages[0] >> … >> stages[n]`; a stage that is itself a composition is spliced in.
    pub fn compose(&mut self, stages: Vec<TermId>, span: Span) -> TermId {
        let mut flat = Vec::new();
        for stage in stages {
            match &self.terms[stage.0 as usize] {
                Term::Abs(Abs { sugar: AbsSugar::Compose, body, .. }) => {
                    let mut inner = Vec::new();
                    let mut at = *body;
                    while let Term::App(f, x) = &self.terms[at.0 as usize] {
                        inner.push(*f);
                        at = *x;
                    }
                    flat.extend(inner.into_iter().rev());
                }
                _ => flat.push(stage),
            }
        }
        let mut body = self.var(HIDDEN, span);
        for stage in flat {
            let at = self.span(stage);
            body = self.app(stage, body, at);
        }
        let abs =
            Abs { param: HIDDEN.into(), ty: None, body, captures: Box::new([]), sugar: AbsSugar::Compose };
        self.add(Term::Abs(abs), span)
    }

    /// `left | right`.
    pub fn par_pair(&mut self, left: TermId, right: TermId, span: Span) -> TermId {
        let mut side = |f: TermId| {
            let x = self.var(HIDDEN, span);
            self.app(f, x, span)
        };
        let sides = vec![side(left), side(right)];
        let par = self.add(Term::Par(None, sides), span);
        let mut nth = |i: i64| {
            let r = self.var("·r", span);
            let i = self.lit(Num::from(i), span);
            self.add(Term::Index(r, i), span)
        };
        let (a, b) = (nth(0), nth(1));
        let pair = self.add(Term::Pair(a, b), span);
        let body = self
            .add(Term::Let { bindings: vec![("·r".into(), par)], body: pair, sugar: LetSugar::Plain }, span);
        let abs =
            Abs { param: HIDDEN.into(), ty: None, body, captures: Box::new([]), sugar: AbsSugar::ParPair };
        self.add(Term::Abs(abs), span)
    }

    /// `@e`.
    pub fn ask(&mut self, e: TermId, span: Span) -> TermId {
        let send = self.add(Term::Send(Role::User, e), span);
        let recv = self.add(Term::Recv(Recv::Code), span);
        self.add(Term::Let { bindings: vec![("_".into(), send)], body: recv, sugar: LetSugar::Ask }, span)
    }

    /// Declares a tool and gives its number.
    pub fn tool(&mut self, tool: ToolDecl) -> ToolId {
        self.tools.push(Arc::new(tool));
        ToolId(self.tools.len() as u32 - 1)
    }

    /// The tools declared so far.
    pub fn tools(&self) -> &[Arc<ToolDecl>] {
        &self.tools
    }

    /// Adds a copy of a finished term, with its tools and stores; a tool that is declared here just so
    /// already is that one. Its free names are those of the prelude, so nothing around it may bind them.
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Builder, Globals, Term, ToolDecl};
    /// use diagnostics::{FileId, Span};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let mut inner = Builder::new();
    /// let tool = inner.tool(ToolDecl::unknown("search".into(), at));
    /// let term = inner.add(Term::Tool(tool), at);
    /// let code = inner.finish(term, &Globals::none()).unwrap();
    /// let mut b = Builder::new();
    /// let (first, second) = (b.graft(&code), b.graft(&code));
    /// let both = b.add(Term::List(vec![first, second]), at);
    /// assert_eq!(b.finish(both, &Globals::none()).unwrap().tools.len(), 1);
    /// ```
    pub fn graft(&mut self, code: &Code) -> TermId {
        let tools: Vec<ToolId> = code.tools.iter().map(|t| self.same_tool(t)).collect();
        let first_store = self.stores.len() as u32;
        self.stores.extend(code.stores.iter().cloned());
        let tool = |id: ToolId| tools.get(id.0 as usize).copied().unwrap_or(id);
        let store = |id: StoreId| StoreId(id.0 + first_store);
        let params = |p: &Arc<ModelParams>| {
            let mut own = ModelParams::clone(p);
            own.tools = p.tools.iter().map(|t| tool(*t)).collect();
            Arc::new(own)
        };
        // A finished term has children first, so that each has its new number when it is looked up.
        let mut new: Vec<TermId> = Vec::with_capacity(code.len());
        for (id, term) in code.iter() {
            let mut copy = term.clone().map_children(&mut |c| new[c.0 as usize]);
            match &mut copy {
                Term::Tool(id) | Term::Args(id, _) => *id = tool(*id),
                Term::Llm(_, p) => *p = params(p),
                Term::Recv(Recv::Data(p)) => *p = params(p),
                Term::Mem(id, _) => *id = store(*id),
                // Resolved again: what is not bound inside is a key of a store around it, or unknown.
                Term::Recall(_, key) | Term::Remember(_, key, _) => *key = None,
                Term::Abs(abs) => abs.captures = Box::default(),
                _ => {}
            }
            new.push(self.add(copy, code.span(id)));
        }
        new[code.root().0 as usize]
    }

    fn same_tool(&mut self, tool: &Arc<ToolDecl>) -> ToolId {
        let same = |t: &&Arc<ToolDecl>| {
            let placed = ToolDecl { span: tool.span, ..ToolDecl::clone(t) };
            placed.name == tool.name && placed == **tool
        };
        if let Some(i) = self.tools.iter().position(|t| same(&t)) {
            return ToolId(i as u32);
        }
        self.tools.push(tool.clone());
        ToolId(self.tools.len() as u32 - 1)
    }

    /// A store declared before.
    pub fn store_decl(&self, id: StoreId) -> &StoreDecl {
        &self.stores[id.0 as usize]
    }

    /// Declares a store and gives its number.
    pub fn store(&mut self, store: StoreDecl) -> StoreId {
        self.stores.push(Arc::new(store));
        StoreId(self.stores.len() as u32 - 1)
    }

    /// Resolves the names below `root` and drops what is not part of it.
    ///
    /// # Errors
    /// Everything that is wrong, in the order of the text.
    pub fn finish(self, root: TermId, globals: &Arc<Globals>) -> Result<Code, Vec<BuildError>> {
        self.finish_with_ids(root, globals).map(|(code, _)| code)
    }

    /// [`Builder::finish`], with the number that each term has in the code: facts that are kept beside the
    /// terms by number are renumbered by it.
    ///
    /// # Errors
    /// The errors of [`Builder::finish`].
    ///
    /// # Examples
    /// ```
    /// use core_ir::{Builder, Globals, Num};
    /// use diagnostics::{FileId, Span};
    /// let at = Span { file: FileId(0), start: 0, end: 0 };
    /// let mut b = Builder::new();
    /// let (left_out, kept) = (b.lit(Num::from(1), at), b.lit(Num::from(2), at));
    /// let (code, ids) = b.finish_with_ids(kept, &Globals::none()).unwrap();
    /// assert_eq!((ids.of(left_out), ids.of(kept)), (None, Some(code.root())));
    /// ```
    pub fn finish_with_ids(
        self,
        root: TermId,
        globals: &Arc<Globals>,
    ) -> Result<(Code, NewIds), Vec<BuildError>> {
        let names = globals.names.clone();
        self.resolve(root, &names, globals.clone())
    }

    /// Makes a prelude of the definitions, which may refer to each other by name in any order.
    ///
    /// # Errors
    /// The errors of [`Builder::finish`], or a definition is not a function.
    pub fn finish_globals(
        mut self,
        definitions: Vec<(Name, TermId)>,
        span: Span,
    ) -> Result<Globals, Vec<BuildError>> {
        for (name, id) in &definitions {
            if !matches!(self.term(*id), Term::Abs(_)) {
                return Err(vec![BuildError::NotAFunction(name.clone(), self.span(*id))]);
            }
        }
        let names: Vec<Name> = definitions.iter().map(|(n, _)| n.clone()).collect();
        let root = self.add(Term::Record(definitions), span);
        let (code, _) = self.resolve(root, &names, Globals::none())?;
        let Term::Record(fields) = code.term(code.root()) else { return Err(Vec::new()) };
        let terms = fields.iter().map(|(_, t)| *t).collect();
        Ok(Globals { names, code: Some(Arc::new(code)), terms })
    }

    fn resolve(
        mut self,
        root: TermId,
        names: &[Name],
        globals: Arc<Globals>,
    ) -> Result<(Code, NewIds), Vec<BuildError>> {
        let mut resolver = Resolver {
            globals: names.iter().enumerate().map(|(i, n)| (n.clone(), i as u32)).collect(),
            activations: vec![Activation::default()],
            bound: HashMap::new(),
            stores: Vec::new(),
            errors: Vec::new(),
            locals: vec![UNSEEN; self.terms.len()],
        };
        resolver.run(&mut self, root);
        for tool in &self.tools {
            let Some(policy) = &tool.policy else { continue };
            let same = Arc::ptr_eq(&policy.globals, &globals) || policy.globals.names.is_empty();
            if !same || !policy.is_quiet() {
                resolver.errors.push(BuildError::Policy(tool.name.clone(), tool.span));
            }
        }
        let mut table = StoreTable::default();
        for store in &self.stores {
            if let Err(conflict) = table.declare(store) {
                resolver.errors.push(BuildError::Stores(Box::new(conflict)));
            }
        }
        if !resolver.errors.is_empty() {
            return Err(resolver.errors);
        }
        // Keep what was reached, in an order that has children first.
        let order = post_order(&self.terms, root);
        let mut new_id = vec![u32::MAX; self.terms.len()];
        for (new, old) in order.iter().enumerate() {
            new_id[old.0 as usize] = new as u32;
        }
        let mut terms = Vec::with_capacity(order.len());
        let mut spans = Vec::with_capacity(order.len());
        let mut locals = Vec::with_capacity(order.len());
        let mut plain = Vec::with_capacity(order.len());
        for old in order {
            let term = std::mem::replace(&mut self.terms[old.0 as usize], Term::Clear);
            let term = term.map_children(&mut |c| TermId(new_id[c.0 as usize]));
            plain.push(is_plain(&term, &terms, &plain));
            terms.push(term);
            spans.push(self.spans[old.0 as usize]);
            locals.push(resolver.locals[old.0 as usize]);
        }
        let root = TermId(terms.len() as u32 - 1);
        let code = Code {
            terms,
            spans,
            locals,
            plain,
            instructions: OnceLock::new(),
            root,
            tools: self.tools,
            stores: self.stores,
            globals,
        };
        Ok((code, NewIds(new_id)))
    }
}

/// Numbers that the terms of a [`Builder`] have in the finished code.
#[derive(Clone, Debug)]
pub struct NewIds(Vec<u32>);

impl NewIds {
    /// Returns the number of a term in the code; `None` if the term is not part of it.
    pub fn of(&self, id: TermId) -> Option<TermId> {
        self.0.get(id.0 as usize).copied().filter(|new| *new != u32::MAX).map(TermId)
    }
}

/// Returns true if a term is plain. `before` and `plain` hold the earlier terms, among them its subterms, and
/// their results.
fn is_plain(term: &Term, before: &[Term], plain: &[bool]) -> bool {
    let is = |id: &TermId| plain[id.0 as usize];
    match term {
        // A function that is not applied does nothing.
        Term::Var(..) | Term::Lit(_) | Term::Abs(_) => true,
        Term::App(f, x) => match &before[f.0 as usize] {
            Term::Abs(abs) => is(&abs.body) && is(x),
            _ => false,
        },
        Term::Record(fields) | Term::Args(_, fields) => fields.iter().all(|(_, e)| is(e)),
        Term::List(items) | Term::Prim(_, items) => items.iter().all(is),
        Term::Field(e, _) | Term::Fst(e) | Term::Snd(e) | Term::Tag(_, Some(e)) | Term::Fail(e) => is(e),
        Term::Tag(_, None) => true,
        Term::Index(a, b) | Term::With(a, _, b) | Term::Pair(a, b) => is(a) && is(b),
        Term::If(a, b, c, _) => is(a) && is(b) && is(c),
        Term::Let { bindings, body, .. } => bindings.iter().all(|(_, e)| is(e)) && is(body),
        _ => false,
    }
}

/// The terms below `root`, children first, in the order of the text.
fn post_order(terms: &[Term], root: TermId) -> Vec<TermId> {
    let mut order = Vec::new();
    let mut work = vec![(root, false)];
    while let Some((id, done)) = work.pop() {
        if done {
            order.push(id);
            continue;
        }
        work.push((id, true));
        let first = work.len();
        each_subterm!(&terms[id.0 as usize], |c: &TermId| work.push((*c, false)));
        work[first..].reverse();
    }
    order
}

#[derive(Default)]
struct Activation {
    locals: Vec<Name>,
    captures: Vec<Slot>,
    /// The captured names, parallel to `captures`, with what they resolve to in the parent.
    captured: HashMap<Slot, u32>,
}

struct Resolver {
    globals: HashMap<Name, u32>,
    activations: Vec<Activation>,
    /// Bindings of each name, innermost last: the activation and the index among its locals.
    bound: HashMap<Name, Vec<(usize, u32)>>,
    stores: Vec<StoreId>,
    errors: Vec<BuildError>,
    /// For each term, [`UNSEEN`] or how many locals are in scope there.
    locals: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

enum Work {
    Visit(TermId, usize),
    Bind(Name),
    Unbind(usize),
    LeaveAbs(TermId),
    LeaveMem,
}

impl Resolver {
    /// Walks the term with an explicit stack: the depth limit is checked here, so it cannot be relied on yet.
    fn run(&mut self, b: &mut Builder, root: TermId) {
        let mut work = vec![Work::Visit(root, 0)];
        while let Some(item) = work.pop() {
            match item {
                Work::Bind(name) => self.bind(name),
                Work::Unbind(n) => self.unbind(n),
                Work::LeaveMem => {
                    self.stores.pop();
                }
                Work::LeaveAbs(id) => {
                    self.unbind(1);
                    // INVARIANT: `LeaveAbs` is pushed together with the activation it ends.
                    if let Some(done) = self.activations.pop()
                        && let Term::Abs(abs) = &mut b.terms[id.0 as usize]
                    {
                        abs.captures = done.captures.into();
                    }
                }
                Work::Visit(id, depth) => self.visit(b, id, depth, &mut work),
            }
        }
    }

    fn current(&mut self) -> &mut Activation {
        // INVARIANT: the outermost activation is never popped.
        self.activations.last_mut().expect("an activation")
    }

    fn visit(&mut self, b: &mut Builder, id: TermId, depth: usize, work: &mut Vec<Work>) {
        let span = b.spans[id.0 as usize];
        let in_scope = self.current().locals.len() as u32;
        if std::mem::replace(&mut self.locals[id.0 as usize], in_scope) != UNSEEN {
            self.errors.push(BuildError::Shared(span));
            return;
        }
        if depth > MAX_DEPTH {
            self.errors.push(BuildError::TooDeep(span));
            return;
        }
        // The continuation comes last.
        let first = work.len();
        match &mut b.terms[id.0 as usize] {
            Term::Var(name, slot) => match self.lookup(name) {
                Some(found) => *slot = found,
                None => self.errors.push(BuildError::Unbound(name.clone(), span)),
            },
            Term::Recall(name, slot) => match self.key(&b.stores, name) {
                Some(found) => *slot = Some(found),
                None => self.errors.push(BuildError::UnknownKey(name.clone(), span)),
            },
            Term::Remember(name, slot, e) => {
                match self.key(&b.stores, name) {
                    Some(found) => *slot = Some(found),
                    None => self.errors.push(BuildError::UnknownKey(name.clone(), span)),
                }
                work.push(Work::Visit(*e, depth + 1));
            }
            Term::Abs(abs) => {
                self.activations.push(Activation::default());
                self.bind(abs.param.clone());
                // The stages of a composition are siblings to a reader, however many there are.
                let inner = if abs.sugar == AbsSugar::Compose { depth } else { depth + 1 };
                work.push(Work::Visit(abs.body, inner));
                work.push(Work::LeaveAbs(id));
            }
            Term::App(f, x) => {
                let (f, x) = (*f, *x);
                let spine = matches!(&b.terms[x.0 as usize], Term::App(..)) && self.in_composition();
                work.push(Work::Visit(f, depth + 1));
                work.push(Work::Visit(x, if spine { depth } else { depth + 1 }));
            }
            Term::Let { bindings, body, .. } => {
                for (name, e) in bindings.iter() {
                    work.push(Work::Visit(*e, depth + 1));
                    work.push(Work::Bind(name.clone()));
                }
                work.push(Work::Visit(*body, depth + 1));
                work.push(Work::Unbind(bindings.len()));
            }
            Term::Case { scrutinee, branches, default } => {
                work.push(Work::Visit(*scrutinee, depth + 1));
                for branch in branches.iter() {
                    if let Some(name) = &branch.binder {
                        work.push(Work::Bind(name.clone()));
                    }
                    work.push(Work::Visit(branch.body, depth + 1));
                    if branch.binder.is_some() {
                        work.push(Work::Unbind(1));
                    }
                }
                work.extend(default.map(|e| Work::Visit(e, depth + 1)));
            }
            Term::Try { label, body, name, handler, .. } => {
                work.push(Work::Visit(*label, depth + 1));
                work.push(Work::Visit(*body, depth + 1));
                work.push(Work::Bind(name.clone()));
                work.push(Work::Visit(*handler, depth + 1));
                work.push(Work::Unbind(1));
            }
            Term::Mem(store, e) => {
                self.stores.push(*store);
                work.push(Work::Visit(*e, depth + 1));
                work.push(Work::LeaveMem);
            }
            other => each_subterm!(other, |c: &mut TermId| work.push(Work::Visit(*c, depth + 1))),
        }
        work[first..].reverse();
    }

    /// Returns true if the current activation is the hidden function of a composition.
    fn in_composition(&self) -> bool {
        self.activations.last().is_some_and(|a| a.locals.len() == 1 && &*a.locals[0] == HIDDEN)
    }

    fn key(&self, stores: &[Arc<StoreDecl>], name: &Name) -> Option<(StoreId, u32)> {
        self.stores.iter().rev().find_map(|id| {
            let keys = &stores.get(id.0 as usize)?.keys;
            keys.iter().position(|k| k.name == *name).map(|i| (*id, i as u32))
        })
    }

    fn bind(&mut self, name: Name) {
        let level = self.activations.len() - 1;
        let locals = &mut self.current().locals;
        let index = locals.len() as u32;
        locals.push(name.clone());
        self.bound.entry(name).or_default().push((level, index));
    }

    /// Ends the scopes of the last `n` locals.
    fn unbind(&mut self, n: usize) {
        for _ in 0..n {
            if let Some(places) = self.current().locals.pop().and_then(|name| self.bound.get_mut(&name)) {
                places.pop();
            }
        }
    }

    fn lookup(&mut self, name: &Name) -> Option<Slot> {
        let Some((level, index)) = self.bound.get(name).and_then(|places| places.last().copied()) else {
            return self.globals.get(name).map(|i| Slot::Global(*i));
        };
        // Each activation between the binder and the use hands the value on.
        let mut slot = Slot::Local(index);
        for activation in &mut self.activations[level + 1..] {
            let next = activation.captures.len() as u32;
            let index = *activation.captured.entry(slot).or_insert(next);
            if index == next {
                activation.captures.push(slot);
            }
            slot = Slot::Captured(index);
        }
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::FileId;

    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

    #[test]
    fn primitives_are_listed_in_order() {
        for (i, row) in Prim::ALL.iter().enumerate() {
            assert_eq!(row.0 as usize, i, "{}", row.1);
            assert_eq!(Prim::from_name(row.1), Some(row.0));
        }
    }

    #[test]
    fn variables_become_slots_and_closures_capture_only_what_they_use() {
        // λa. λb. λc. a c
        let mut b = Builder::new();
        let (a, c) = (b.var("a", AT), b.var("c", AT));
        let body = b.app(a, c, AT);
        let f = b.abs("c", None, body, AT);
        let f = b.abs("b", None, f, AT);
        let f = b.abs("a", None, f, AT);
        let code = b.finish(f, &Globals::none()).unwrap();
        let shown: Vec<String> = code
            .iter()
            .filter_map(|(_, t)| match t {
                Term::Abs(a) => Some(format!("{} {:?}", a.param, a.captures)),
                Term::Var(n, s) => Some(format!("{n} {s:?}")),
                _ => None,
            })
            .collect();
        assert_eq!(shown, ["a Captured(0)", "c Local(0)", "c [Captured(0)]", "b [Local(0)]", "a []"]);
    }

    #[test]
    fn mistakes_are_reported_all_at_once() {
        let mut b = Builder::new();
        let (x, y) = (b.var("x", AT), b.var("y", AT));
        let r = b.add(Term::Recall("k".into(), None), AT);
        let l = b.add(Term::List(vec![x, y, r]), AT);
        let errors = b.finish(l, &Globals::none()).unwrap_err();
        assert_eq!(
            errors,
            [
                BuildError::Unbound("x".into(), AT),
                BuildError::Unbound("y".into(), AT),
                BuildError::UnknownKey("k".into(), AT)
            ]
        );
        let mut b = Builder::new();
        let x = b.lit(true, AT);
        let l = b.add(Term::List(vec![x, x]), AT);
        assert_eq!(b.finish(l, &Globals::none()).unwrap_err(), [BuildError::Shared(AT)]);
    }

    #[test]
    fn deep_nesting_is_an_error_and_long_sequences_are_not_deep() {
        let mut b = Builder::new();
        let mut e = b.lit(true, AT);
        for _ in 0..100_000 {
            e = b.add(Term::Fork(e), AT);
        }
        assert!(matches!(b.finish(e, &Globals::none()).unwrap_err()[..], [BuildError::TooDeep(_)]));
        let mut b = Builder::new();
        let stages = (0..100_000).map(|_| b.add(Term::Tool(ToolId(0)), AT)).collect();
        let e = b.compose(stages, AT);
        assert_eq!(b.finish(e, &Globals::none()).map(|c| c.stages(c.root()).unwrap().len()), Ok(100_000));
    }

    #[test]
    fn the_prelude_is_mutually_recursive() {
        let mut b = Builder::new();
        let g = b.var("g", AT);
        let f = b.abs("x", None, g, AT);
        let fv = b.var("f", AT);
        let h = b.abs("x", None, fv, AT);
        let globals = Arc::new(b.finish_globals(vec![("f".into(), f), ("g".into(), h)], AT).unwrap());
        assert_eq!(globals.index("g"), Some(1));
        let (code, term) = globals.get(0).unwrap();
        let Term::Abs(abs) = code.term(term) else { panic!("a function") };
        assert_eq!(*code.term(abs.body), Term::Var("g".into(), Slot::Global(1)));
    }
}
