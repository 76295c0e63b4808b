//! The rules of `docs/calculus.md`, one arm of `Run::eval` for each: call by value by substitution, on the
//! host stack, parallel branches one after the other.
//!
//! Slow and plain on purpose. It is what the machine is compared with, so it is written from the text of
//! §3, §5, §6 and §10 and from nothing else. Where a comment names a paragraph in **bold**, it is one of §10.

use crate::outcome::{Failure, Outcome, Tree, TreeNode};
use crate::world::{Answer, Call, Message, World};
use core_ir::{
    Among, AmongSource, AnswerSink, Approve, Bound, Branch, Catches, Code, Data, ErrorClass, Globals, Label,
    LabelName, LabelSpec, Lattice, LatticeKind, MAX_DATA_DEPTH, ModelParams, Name, Num, PartLabel, PathStep,
    Pred, Prim, Principals, Recv, Role, SetStep, Slot, Stated, Term, TermId, ToolDecl, Type,
};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Parser of the code in a reply (`recv`).
pub type Parser<'a> = dyn Fn(&str) -> Result<Arc<Code>, String> + 'a;

/// Configuration of a run.
pub struct Config<'a> {
    /// The lattice of its labels.
    pub lattice: LatticeKind,
    /// The principals that labels and values name.
    pub principals: Principals,
    /// Maximum number of rule applications.
    pub fuel: u64,
    /// The longest serialized value, in bytes.
    pub max_text: usize,
    /// Clearance of model operators (`ℓmodel`).
    pub clearance: LabelSpec,
    /// True if generated code may contain `endorse` and `declassify`.
    pub generated_endorse: bool,
    /// Reads generated code.
    pub parser: &'a Parser<'a>,
    /// Rules for the answer.
    pub answer: AnswerSink,
}

/// Evaluates a program; a function that is given an input is applied to it.
pub fn run(code: &Arc<Code>, input: Option<&Data>, config: &Config, world: &mut dyn World) -> Outcome {
    // Values are freed by recursion, so the stack must be as large as the fuel makes values deep.
    stacker::grow(STACK, || {
        let mut lattice = Lattice::with_principals(config.lattice, &config.principals);
        let clearance = lattice.resolve(&config.clearance).unwrap_or(Label::BOTTOM);
        let mut run = Run {
            lattice,
            clearance,
            config,
            world,
            fuel: config.fuel,
            conversation: Conversation::empty(Label::BOTTOM),
            requests: Vec::new(),
            remark: None,
            remarks: 0,
            counted: Vec::new(),
            sets: Vec::new(),
            request: Vec::new(),
            limits: Vec::new(),
            limited: Vec::new(),
        };
        // The input is the request. Here it is trusted and public.
        run.request = input.map(core_ir::among::tokens).unwrap_or_default();
        run.read_sets(code, input);
        let program = convert(code, code.globals(), code.root());
        let result = run.eval(Label::BOTTOM, &program).and_then(|v| match input {
            Some(data) => {
                let argument = literal(Label::BOTTOM, data);
                run.apply(&v, argument)
            }
            None => Ok(v),
        });
        let result = run.answer(result);
        let result = match result {
            Ok(v) => Ok(run.tree(&v)),
            Err(e) => Err(Failure { code: e.code, message: e.message, label: run.lattice.data_of(e.label) }),
        };
        let requests =
            run.requests.iter().map(|(call, label)| (call.clone(), run.lattice.data_of(*label))).collect();
        Outcome {
            result,
            conversation_label: run.lattice.data_of(run.conversation.label),
            conversation: run.conversation.messages.clone(),
            requests,
            limits: run.limited,
        }
    })
}

/// Replacement for the user message that quotes a decoding error, whose wording is the machine's.
pub const REPAIR: &str = "That reply cannot be used";

const STACK: usize = 512 << 20;

/// `V ::= l : v`.
#[derive(Clone, Debug)]
struct Value {
    label: Label,
    node: Rc<Node>,
}

#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Num(Num),
    Str(Arc<str>),
    List(Vec<Value>),
    Record(Vec<(Name, Value)>),
    /// The arguments of a planned call of a tool.
    Args(Name, Vec<(Name, Value)>),
    Pair(Value, Value),
    Tag(Name, Value),
    /// `λx. e`, every other variable of `e` already substituted.
    Closure(Name, Rc<Expr>),
    Fix(Bound, Value),
    Guarded(Value, Pred, u32),
    Llm(Value, Rc<Model>),
    Tool(Arc<ToolDecl>),
}

/// `θ` with the tools it offers.
#[derive(Debug)]
struct Model {
    params: Arc<ModelParams>,
    tools: Vec<Arc<ToolDecl>>,
}

/// A term. Variables are names, or values that were substituted for them.
#[derive(Debug)]
enum Expr {
    Value(Value),
    Var(Name),
    Global(Arc<Globals>, u32),
    Lit(Data),
    Record(Vec<(Name, E)>),
    Args(Name, Vec<(Name, E)>),
    List(Vec<E>),
    Abs(Name, E),
    App(E, E),
    Let(Name, E, E),
    Field(E, Name),
    Index(E, E),
    With(E, Name, E),
    Prim(Prim, Vec<E>),
    Pair(E, E),
    Fst(E),
    Snd(E),
    Tag(Name, Option<E>),
    If(E, E, E),
    Case(E, Vec<(Name, Option<Name>, E)>, Option<E>),
    Classify(Vec<Name>, E),
    Fix(Bound, E),
    Guard(E, Pred, u32),
    Recall(Rc<Key>),
    Remember(Rc<Key>, E),
    Choose(Num, E, E),
    Llm(E, Rc<Model>),
    Tool(Arc<ToolDecl>),
    Send(Role, E),
    RecvCode,
    RecvData(Rc<Model>),
    Fork(E),
    Fresh(E),
    Clear,
    Relabel(E, E),
    Test(E, E),
    Assert(E, E),
    Endorse(E, E),
    Declassify(E, E),
    Try(E, E, Catches, Name, E),
    Fail(E),
    Within(Num, E),
    Par(Vec<E>),
    Each(E, E),
    Check(Type, E),
    Unknown(Name),
}

type E = Rc<Expr>;

/// A key of a store, as §6 declares it.
#[derive(Debug)]
struct Key {
    store: Name,
    name: Name,
    ty: Type,
    label: LabelSpec,
}

/// An approval with other arguments.
struct Edited<'a> {
    /// The label of what the new arguments depend on.
    label: Label,
    /// Set once the call has passed all checks.
    is_made: &'a mut bool,
}

struct Conversation {
    label: Label,
    messages: Vec<Message>,
    /// Tool calls of the last reply that were not received yet.
    pending: VecDeque<(Name, Data)>,
    /// The number of the remark that was made last.
    told: u64,
    /// Calls that were approved with other arguments, and of which no model was told: labels and texts.
    edits: Vec<(Label, String)>,
}

/// Reason why the last attempt of a guard was refused.
struct Remark {
    number: u64,
    label: Label,
    text: String,
}

impl Conversation {
    fn empty(label: Label) -> Conversation {
        Conversation { label, messages: Vec::new(), pending: VecDeque::new(), told: 0, edits: Vec::new() }
    }
}

struct Error {
    code: &'static str,
    message: String,
    label: Label,
    /// True if the error recurs however often the request is repeated.
    permanent: bool,
}

type Eval = Result<Value, Error>;

/// `deep W` and `strip W` of a part that is there.
type PartOf = Option<(Label, Data)>;

fn error<T>(code: &'static str, label: Label, message: impl Into<String>) -> Result<T, Error> {
    Err(Error { code, message: message.into(), label, permanent: false })
}

/// An error that comes again however often the request is repeated.
fn permanent<T>(code: &'static str, label: Label, message: impl Into<String>) -> Result<T, Error> {
    Err(Error { code, message: message.into(), label, permanent: true })
}

fn value(label: Label, node: Node) -> Value {
    Value { label, node: Rc::new(node) }
}

/// Reason why a value is not data.
enum NotData {
    Function,
    TooDeep,
}

struct Run<'a> {
    lattice: Lattice,
    clearance: Label,
    config: &'a Config<'a>,
    world: &'a mut dyn World,
    fuel: u64,
    /// `C`, threaded through evaluation as state. An error leaves it as it stood.
    conversation: Conversation,
    requests: Vec<(Call, Label)>,
    /// Calls that untrusted data decided, of tools that limit their number.
    counted: Vec<(Name, u64)>,
    /// The sources of the sets of `among`. Fixed before the program begins.
    sets: Vec<SetSource>,
    /// The tokens of the request, which plain text may have.
    request: Vec<Data>,
    /// Remark added to prompts in a further attempt of a guard, and the number of earlier remarks.
    remark: Option<Remark>,
    remarks: u64,
    /// The time limits in force, innermost last, and those of each request.
    limits: Vec<Num>,
    limited: Vec<Vec<Num>>,
}

impl Run<'_> {
    // ── labels ──

    fn join(&mut self, a: Label, b: Label) -> Label {
        self.lattice.join(a, b)
    }

    /// `deepLabel V`: every label inside, those of values captured by functions included.
    fn deep(&mut self, v: &Value) -> Label {
        fn of_value(l: &mut Lattice, v: &Value, so_far: Label) -> Label {
            stacker::maybe_grow(64 << 10, 4 << 20, || {
                let so_far = l.join(so_far, v.label);
                match &*v.node {
                    Node::Null | Node::Bool(_) | Node::Num(_) | Node::Str(_) | Node::Tool(_) => so_far,
                    Node::List(items) => items.iter().fold(so_far, |acc, i| of_value(l, i, acc)),
                    Node::Record(fields) | Node::Args(_, fields) => {
                        fields.iter().fold(so_far, |acc, (_, f)| of_value(l, f, acc))
                    }
                    Node::Pair(a, b) => {
                        let acc = of_value(l, a, so_far);
                        of_value(l, b, acc)
                    }
                    Node::Tag(_, v) | Node::Fix(_, v) | Node::Guarded(v, ..) | Node::Llm(v, _) => {
                        of_value(l, v, so_far)
                    }
                    Node::Closure(_, body) => of_expr(l, body, so_far),
                }
            })
        }
        fn of_expr(l: &mut Lattice, e: &Expr, so_far: Label) -> Label {
            stacker::maybe_grow(64 << 10, 4 << 20, || match e {
                Expr::Value(v) => of_value(l, v, so_far),
                other => children(other).into_iter().fold(so_far, |acc, c| of_expr(l, c, acc)),
            })
        }
        of_value(&mut self.lattice, v, Label::BOTTOM)
    }

    /// `strip V` where it is data: functions are not, nor is what is nested too deep.
    fn data(v: &Value) -> Result<Data, NotData> {
        fn go(v: &Value, depth: usize) -> Result<Data, NotData> {
            if depth > MAX_DATA_DEPTH {
                return Err(NotData::TooDeep);
            }
            stacker::maybe_grow(64 << 10, 4 << 20, || {
                Ok(match &*v.node {
                    Node::Null => Data::Null,
                    Node::Bool(b) => Data::Bool(*b),
                    Node::Num(n) => Data::Num(n.clone()),
                    Node::Str(s) => Data::Str(s.clone()),
                    Node::List(items) => {
                        Data::List(items.iter().map(|i| go(i, depth + 1)).collect::<Result<_, _>>()?)
                    }
                    // As data the arguments of a planned call are a record.
                    Node::Record(fields) | Node::Args(_, fields) => Data::Record(
                        fields
                            .iter()
                            .map(|(n, f)| Ok((n.clone(), go(f, depth + 1)?)))
                            .collect::<Result<_, _>>()?,
                    ),
                    Node::Pair(a, b) => Data::Pair(Arc::new((go(a, depth + 1)?, go(b, depth + 1)?))),
                    Node::Tag(n, p) => Data::Tag(n.clone(), Arc::new(go(p, depth + 1)?)),
                    Node::Closure(..) | Node::Fix(..) | Node::Guarded(..) | Node::Llm(..) | Node::Tool(_) => {
                        return Err(NotData::Function);
                    }
                })
            })
        }
        go(v, 0)
    }

    /// The data of a value that must be data: of `wanted` kind, or the error `code`; too deep is `limit`.
    fn data_or(&mut self, pc: Label, v: &Value, code: &'static str) -> Result<Data, Error> {
        match Self::data(v) {
            Ok(d) => Ok(d),
            Err(why) => {
                let deep = self.deep(v);
                let label = self.join(pc, deep);
                match why {
                    NotData::Function => error(code, label, "a function is not data"),
                    NotData::TooDeep => error("limit", label, "nested too deep"),
                }
            }
        }
    }

    /// **Serialization.** The text that `send` sends.
    fn serialize(&mut self, pc: Label, v: &Value) -> Result<String, Error> {
        let mut out = String::new();
        let fits = show(v, true, 0, &mut out);
        if fits && out.len() <= self.config.max_text {
            return Ok(out);
        }
        let deep = self.deep(v);
        error("limit", self.lattice.join(pc, deep), "too deep or too long")
    }

    /// **Labels.** `e1 ⇓ V1`, `n = deep V1`, `l = toLabel (strip V1)`.
    fn label(&mut self, pc: Label, e1: &E) -> Result<(Label, Label), Error> {
        let v1 = self.eval(pc, e1)?;
        let n = self.deep(&v1);
        match Self::data(&v1).ok().and_then(|d| self.lattice.label_of(&d)) {
            Some(l) => Ok((n, l)),
            None => error("not_a_label", self.lattice.join(pc, n), "not a label"),
        }
    }

    // ── requests ──

    /// **Time limits.** The answer, or the error `timeout` at the label that the request's other errors have.
    fn ask(&mut self, call: Call, channel: Label, answer: Label) -> Result<Answer, Error> {
        self.requests.push((call.clone(), channel));
        let limits: Vec<Num> = self.limits.iter().rev().cloned().collect();
        self.limited.push(limits.clone());
        match self.world.answer_within(&call, &limits) {
            Answer::Late(n) if limits.len() > n as usize => error("timeout", answer, "too late"),
            answer => Ok(answer),
        }
    }

    // ── evaluation ──

    /// **Reading.** A variable bound to `l:v` gives `(pc ⊔ l):v`.
    fn read(&mut self, pc: Label, v: &Value) -> Value {
        Value { label: self.join(pc, v.label), node: v.node.clone() }
    }

    /// `pc ⊢ C, e ⇓ C', V | t`, with `C` and `t` kept in `self`.
    fn eval(&mut self, pc: Label, e: &E) -> Eval {
        let Some(rest) = self.fuel.checked_sub(1) else {
            return error("fuel", pc, "out of fuel");
        };
        self.fuel = rest;
        stacker::maybe_grow(128 << 10, 4 << 20, || self.rule(pc, e))
    }

    fn rule(&mut self, pc: Label, e: &E) -> Eval {
        match &**e {
            // Reading: a variable for which a value was substituted.
            Expr::Value(v) => Ok(self.read(pc, v)),
            // Closed terms have no other variables.
            Expr::Var(name) => error("unknown", pc, format!("unbound variable `{name}`")),
            // Reading: prelude functions are labeled ⊥ and closed.
            Expr::Global(globals, index) => match globals.get(*index) {
                Some((code, id)) => match &*convert(code, globals, id) {
                    Expr::Abs(x, body) => Ok(value(pc, Node::Closure(x.clone(), body.clone()))),
                    _ => error("unknown", pc, "a prelude definition that is no function"),
                },
                None => error("unknown", pc, "no such prelude definition"),
            },
            // Reading: a literal is pc:data, everything inside labeled ⊥.
            Expr::Lit(data) => Ok(labeled(pc, pc, data)),

            // Constructors: at pc; parts keep their labels.
            Expr::Record(fields) => {
                let mut out = Vec::new();
                for (name, e) in fields {
                    out.push((name.clone(), self.eval(pc, e)?));
                }
                Ok(value(pc, Node::Record(out)))
            }
            // args[f]{…}: like a record; nothing else makes one.
            Expr::Args(tool, fields) => {
                let mut out = Vec::new();
                for (name, e) in fields {
                    out.push((name.clone(), self.eval(pc, e)?));
                }
                Ok(value(pc, Node::Args(tool.clone(), out)))
            }
            Expr::List(items) => {
                let mut out = Vec::new();
                for e in items {
                    out.push(self.eval(pc, e)?);
                }
                Ok(value(pc, Node::List(out)))
            }
            Expr::Pair(a, b) => {
                let a = self.eval(pc, a)?;
                let b = self.eval(pc, b)?;
                Ok(value(pc, Node::Pair(a, b)))
            }
            // Constructors: `t has the payload pc:null.
            Expr::Tag(name, None) => Ok(value(pc, Node::Tag(name.clone(), value(pc, Node::Null)))),
            Expr::Tag(name, Some(e)) => {
                let payload = self.eval(pc, e)?;
                Ok(value(pc, Node::Tag(name.clone(), payload)))
            }
            // Constructors: every function former gives its value at pc.
            Expr::Abs(x, body) => Ok(value(pc, Node::Closure(x.clone(), body.clone()))),
            Expr::Fix(bound, e) => {
                let f = self.eval(pc, e)?;
                Ok(value(pc, Node::Fix(*bound, f)))
            }
            Expr::Tool(tool) => Ok(value(pc, Node::Tool(tool.clone()))),
            // llm p θ: p must give a string.
            Expr::Llm(p, model) => {
                let prompt = self.eval(pc, p)?;
                if !matches!(*prompt.node, Node::Str(_)) {
                    let deep = self.deep(&prompt);
                    return error("type", self.lattice.join(pc, deep), "the prompt is not a string");
                }
                Ok(value(pc, Node::Llm(prompt, model.clone())))
            }

            // Application: the function is applied at pc := l1.
            Expr::App(e1, e2) => {
                let f = self.eval(pc, e1)?;
                let argument = self.eval(pc, e2)?;
                self.apply(&f, argument)
            }
            Expr::Let(x, e1, e2) => {
                let v = self.eval(pc, e1)?;
                let body = substitute(e2, x, &v);
                self.eval(pc, &body)
            }

            // Reading: taking l':v' out of a container labeled l gives (l ⊔ l'):v'.
            Expr::Field(e, name) => {
                let v = self.eval(pc, e)?;
                match field(&v, name) {
                    Some(part) => {
                        let part = part.clone();
                        Ok(self.read(v.label, &part))
                    }
                    None => {
                        let deep = self.deep(&v);
                        error("index", self.lattice.join(pc, deep), format!("no field `{name}`"))
                    }
                }
            }
            // Reading: an index's label is joined too.
            Expr::Index(e, i) => {
                let v = self.eval(pc, e)?;
                let i = self.eval(pc, i)?;
                let l = self.join(v.label, i.label);
                let part = match (&*v.node, &*i.node) {
                    (Node::List(items), Node::Num(n)) => n.to_usize().and_then(|n| items.get(n)).cloned(),
                    (Node::Str(s), Node::Num(n)) => n
                        .to_usize()
                        .and_then(|n| s.chars().nth(n))
                        .map(|c| value(Label::BOTTOM, Node::Str(c.to_string().into()))),
                    (Node::Record(_), Node::Str(name)) => field(&v, name).cloned(),
                    _ => None,
                };
                match part {
                    Some(part) => Ok(self.read(l, &part)),
                    None => {
                        let (a, b) = (self.deep(&v), self.deep(&i));
                        let label = self.join(a, b);
                        error("index", self.lattice.join(pc, label), "no such part")
                    }
                }
            }
            // Reading: e1.f := e2 gives l1:{… f: V2}.
            Expr::With(e1, name, e2) => {
                let v1 = self.eval(pc, e1)?;
                let v2 = self.eval(pc, e2)?;
                let Node::Record(fields) = &*v1.node else {
                    let deep = self.deep(&v1);
                    return error("index", self.lattice.join(pc, deep), "not a record");
                };
                let mut fields = fields.clone();
                match fields.iter_mut().find(|(n, _)| n == name) {
                    Some((_, slot)) => *slot = v2,
                    None => fields.push((name.clone(), v2)),
                }
                Ok(value(v1.label, Node::Record(fields)))
            }
            // Reading.
            Expr::Fst(e) => self.component(pc, e, true),
            Expr::Snd(e) => self.component(pc, e, false),

            // Primitives: (pc ⊔ ⨆ deep Vᵢ):r, the parts of r labeled ⊥.
            Expr::Prim(prim, es) => {
                let mut values = Vec::new();
                for e in es {
                    values.push(self.eval(pc, e)?);
                }
                if let Some(v) = self.of_constructor(pc, *prim, &values) {
                    return Ok(v);
                }
                let mut operands = Vec::new();
                let mut label = pc;
                for v in &values {
                    let deep = self.deep(v);
                    label = self.join(label, deep);
                    operands.push(strip(v));
                }
                match primitive(*prim, &operands, self.config.max_text) {
                    Ok(r) => Ok(Value { label, node: r.node }),
                    Err(PrimError::Limit) => error("limit", label, "too deep or too long"),
                    Err(PrimError::Unknown) => error("unknown", label, "what it gives is not known"),
                    Err(PrimError::Failed(why)) => error("prim", label, why),
                }
            }

            // Choice: the branch runs at pc ⊔ l.
            Expr::If(c, a, b) => {
                let c = self.eval(pc, c)?;
                match *c.node {
                    Node::Bool(true) => self.eval(c.label, a),
                    Node::Bool(false) => self.eval(c.label, b),
                    _ => {
                        let deep = self.deep(&c);
                        error("type", self.lattice.join(pc, deep), "not a truth value")
                    }
                }
            }
            // Choice: a tag, or a string, which counts as the tag with payload null at the string's label;
            // anything else takes `_`.
            Expr::Case(e, branches, default) => {
                let v = self.eval(pc, e)?;
                let tag = match &*v.node {
                    Node::Tag(name, payload) => Some((name.clone(), payload.clone())),
                    Node::Str(s) => Some((Name::from(&**s), value(v.label, Node::Null))),
                    _ => None,
                };
                let taken = tag.and_then(|(name, payload)| {
                    let (_, binder, body) = branches.iter().find(|b| b.0 == name)?;
                    Some(match binder {
                        Some(x) => substitute(body, x, &payload),
                        None => body.clone(),
                    })
                });
                match taken.or(default.clone()) {
                    Some(branch) => self.eval(v.label, &branch),
                    None => {
                        let deep = self.deep(&v);
                        error("no_branch", self.lattice.join(pc, deep), "no branch for this")
                    }
                }
            }
            // Choice: (pc ⊔ deep V): the tag, without payload.
            Expr::Classify(tags, e) => {
                let v = self.eval(pc, e)?;
                let deep = self.deep(&v);
                let label = self.join(pc, deep);
                let found = match &*v.node {
                    Node::Tag(name, _) => tags.iter().find(|t| *t == name),
                    Node::Str(s) => tags.iter().find(|t| ***t == **s).or_else(|| {
                        let bare = s.trim_matches(|c: char| c.is_whitespace() || "\"'`.".contains(c));
                        tags.iter().find(|t| t.eq_ignore_ascii_case(bare))
                    }),
                    _ => None,
                };
                match found {
                    Some(t) => Ok(value(label, Node::Tag(t.clone(), value(Label::BOTTOM, Node::Null)))),
                    None => error("classify", label, "none of the tags"),
                }
            }

            // guard e P retry n.
            Expr::Guard(e, pred, retry) => self.guard(pc, pred, *retry, &|run, pc| run.eval(pc, e)),

            // Stores: recall k gives (pc ⊔ ℓk): the data or null, the parts ⊥.
            Expr::Recall(key) => {
                let lk = self.resolve(&key.label);
                let label = self.join(pc, lk);
                let call = Call::Recall { store: key.store.clone(), key: key.name.clone() };
                match self.ask(call, label, label)? {
                    Answer::Found(Some(d)) => match key.ty.check(&d) {
                        Ok(()) => Ok(literal(label, &d)),
                        Err((_, why)) => error("type", label, why),
                    },
                    Answer::Found(None) => Ok(value(label, Node::Null)),
                    Answer::Failed(why) => error("store", label, why),
                    _ => error("store", label, "no answer for a store"),
                }
            }
            // Stores: pc ⊔ deep V ⊑ ℓk, then the key's type.
            Expr::Remember(key, e) => {
                let v = self.eval(pc, e)?;
                let deep = self.deep(&v);
                let raised = self.join(pc, deep);
                let lk = self.resolve(&key.label);
                if !self.lattice.flows(raised, lk) {
                    return error("store_refused", self.lattice.join(pc, lk), "refused by the key's label");
                }
                let d = self.data_or(pc, &v, "type")?;
                if let Err((_, why)) = key.ty.check(&d) {
                    return error("type", raised, why);
                }
                let call = Call::Remember { store: key.store.clone(), key: key.name.clone(), value: d };
                match self.ask(call, lk, lk)? {
                    Answer::Kept => Ok(unit(pc)),
                    Answer::Failed(why) => error("store", lk, why),
                    _ => error("store", lk, "no answer for a store"),
                }
            }

            // choose p a b: the sample is public, the chosen side runs at pc.
            Expr::Choose(p, a, b) => match self.ask(Call::Sample { probability: p.clone() }, pc, pc)? {
                Answer::Drawn(true) => self.eval(pc, a),
                Answer::Drawn(false) => self.eval(pc, b),
                _ => error("unknown", pc, "no answer for a sample"),
            },

            // send[r] e: pc ⊑ lc; lc := lc ⊔ deep V.
            Expr::Send(role, e) => {
                let v = self.eval(pc, e)?;
                self.send(pc, *role, &v)
            }
            Expr::RecvCode => self.receive_code(pc),
            Expr::RecvData(model) => self.receive_data(pc, model),
            // clear: pc ⊑ lc; C := pc : [].
            Expr::Clear => {
                self.writable(pc)?;
                self.conversation = Conversation::empty(pc);
                Ok(unit(pc))
            }
            // fork e: in a copy (lc ⊔ pc) : messages, which is dropped.
            Expr::Fork(e) => {
                let copy = self.copied(pc);
                self.inside(copy, |run| run.eval(pc, e))
            }
            // fresh e: in pc : [], which is dropped.
            Expr::Fresh(e) => self.inside(Conversation::empty(pc), |run| run.eval(pc, e)),

            // Labels: e2 at pc ⊔ n ⊔ l.
            Expr::Relabel(e1, e2) => {
                let (n, l) = self.label(pc, e1)?;
                let raised = self.join(pc, n);
                let raised = self.join(raised, l);
                self.eval(raised, e2)
            }
            // Labels: e2 at pc ⊔ n; (pc ⊔ n ⊔ l) : (label(V2) ⊑ l).
            Expr::Test(e1, e2) => {
                let (n, l) = self.label(pc, e1)?;
                let raised = self.join(pc, n);
                let v2 = self.eval(raised, e2)?;
                let below = self.lattice.flows(v2.label, l);
                Ok(value(self.join(raised, l), Node::Bool(below)))
            }
            // Labels: e2 at pc; n ⊑ pc and label(V2) ⊑ l, else the error labeled pc ⊔ n ⊔ l.
            Expr::Assert(e1, e2) => {
                let (n, l) = self.label(pc, e1)?;
                let v2 = self.eval(pc, e2)?;
                if self.lattice.flows(n, pc) && self.lattice.flows(v2.label, l) {
                    return Ok(unit(pc));
                }
                let raised = self.join(pc, n);
                error("assert", self.lattice.join(raised, l), "the label is too high")
            }
            // Labels: e2 at pc ⊔ n; (pc ⊔ n ⊔ ⟨l←, l2→⟩) : v2.
            Expr::Endorse(e1, e2) => {
                let (n, l) = self.label(pc, e1)?;
                let raised = self.join(pc, n);
                let v2 = self.eval(raised, e2)?;
                let mixed = self.lattice.reclassify(l, v2.label);
                Ok(Value { label: self.join(raised, mixed), node: v2.node })
            }
            // Labels: (pc ⊔ n ⊔ ⟨l2←, l→⟩) : v2.
            Expr::Declassify(e1, e2) => {
                let (n, l) = self.label(pc, e1)?;
                let raised = self.join(pc, n);
                let v2 = self.eval(raised, e2)?;
                let mixed = self.lattice.reclassify(v2.label, l);
                Ok(Value { label: self.join(raised, mixed), node: v2.node })
            }

            // try: e2 at pc' = pc ⊔ n ⊔ l; an error that flows to pc' is caught, in the conversation as it
            // stood. What it is not for, those of a time limit or permanent ones, goes on as if it were not
            // there.
            Expr::Try(e1, e2, catches, x, handler) => {
                let (n, l) = self.label(pc, e1)?;
                let raised = self.join(pc, n);
                let raised = self.join(raised, l);
                match self.eval(raised, e2) {
                    Err(e) if !catches.takes(class_of(e.code, e.permanent), e.permanent) => Err(e),
                    Err(e) if catchable(e.code) && self.lattice.flows(e.label, raised) => {
                        let told = if catches.gives_code() {
                            let refused = class_of(e.code, e.permanent) == ErrorClass::Refusal;
                            let code = if refused { "refused" } else { e.code };
                            let of = [("code", Data::str(code)), ("message", Data::str(e.message))];
                            literal(e.label, &Data::record(of.map(|(n, d)| (n.into(), d))))
                        } else {
                            value(e.label, Node::Str(e.message.into()))
                        };
                        let handler = substitute(handler, x, &told);
                        self.eval(raised, &handler)
                    }
                    other => other,
                }
            }
            // fail e: the error labeled pc ⊔ deep V, with the serialized value.
            Expr::Fail(e) => {
                let v = self.eval(pc, e)?;
                let message = self.serialize(pc, &v)?;
                let deep = self.deep(&v);
                error("fail", self.lattice.join(pc, deep), message)
            }
            // within[n] e: e, whose requests have the limit.
            Expr::Within(seconds, e) => {
                if self.limits.len() == 100 {
                    return error("limit", pc, "too many time limits");
                }
                self.limits.push(seconds.clone());
                let result = self.eval(pc, e);
                self.limits.pop();
                result
            }
            // par[n] es: each branch in a fork; pc:[V…], or the first error that flows to pc after all have
            // ended; an error that does not flow to pc ends the run at once.
            Expr::Par(es) => self.branches(pc, es.len(), &|run, i| run.eval(pc, &es[i])),
            // each e1 e2: V1 is applied to every item of V2 = l:[…], each in a branch, at pc ⊔ l.
            Expr::Each(f, list) => {
                let f = self.eval(pc, f)?;
                let v = self.eval(pc, list)?;
                let Node::List(items) = &*v.node else {
                    let deep = self.deep(&v);
                    return error("type", self.lattice.join(pc, deep), "`each` goes through a list");
                };
                let pc = self.join(pc, v.label);
                let f = self.read(pc, &f);
                self.branches(pc, items.len(), &|run, i| {
                    let item = run.read(pc, &items[i]);
                    run.deeper(pc, |run| run.apply(&f, item))
                })
            }
            // check[τ] e: V, or the error type labeled pc ⊔ deep V.
            Expr::Check(ty, e) => {
                let v = self.eval(pc, e)?;
                let d = self.data_or(pc, &v, "type")?;
                match ty.check(&d) {
                    Ok(()) => Ok(v),
                    Err((path, cause)) => {
                        let deep = self.deep(&v);
                        error("type", self.lattice.join(pc, deep), format!("{path}: {cause}"))
                    }
                }
            }
            // Unknown terms.
            Expr::Unknown(name) => error("unknown", pc, &**name),
        }
    }

    /// **Reading** `fst` and `snd`.
    fn component(&mut self, pc: Label, e: &E, first: bool) -> Eval {
        let v = self.eval(pc, e)?;
        match &*v.node {
            Node::Pair(a, b) => Ok(self.read(v.label, if first { a } else { b })),
            _ => {
                let deep = self.deep(&v);
                error("index", self.lattice.join(pc, deep), "not a pair")
            }
        }
    }

    /// **Application** of `V1 = l1:f` to `V2`, at `pc := l1`.
    fn apply(&mut self, v1: &Value, v2: Value) -> Eval {
        let l1 = v1.label;
        match &*v1.node {
            // A closure: its body, the parameter bound to V2.
            Node::Closure(x, body) => self.eval(l1, &substitute(body, x, &v2)),
            // fix[0] F: V2 read at l1.
            Node::Fix(Bound::Finite(0), _) => Ok(self.read(l1, &v2)),
            // fix[n] F: F is read at l1 and applied to l1:(fix[n−1] F); the result is applied to V2.
            Node::Fix(bound, f) => {
                let less = match bound {
                    Bound::Finite(n) => Bound::Finite(n - 1),
                    Bound::Infinite => Bound::Infinite,
                };
                let itself = value(l1, Node::Fix(less, f.clone()));
                let f = self.read(l1, f);
                let g = self.deeper(l1, |run| run.apply(&f, itself))?;
                self.deeper(l1, |run| run.apply(&g, v2))
            }
            // A guarded function: as guard (F V2) P retry n at l1, F read at l1.
            Node::Guarded(f, pred, retry) => self.guard(l1, pred, *retry, &|run, pc| {
                let f = run.read(pc, f);
                run.deeper(pc, |run| run.apply(&f, v2.clone()))
            }),
            Node::Llm(prompt, model) => self.oracle(l1, prompt, model, &v2),
            Node::Tool(tool) => {
                let v2 = self.read(l1, &v2);
                self.call_tool(l1, tool, &v2)
            }
            // Anything else.
            _ => {
                let deep = self.deep(v1);
                error("not_a_function", self.lattice.join(l1, deep), "not a function")
            }
        }
    }

    /// **`par[n] es`**: each in a copy of the conversation; the results in order, or the first error.
    fn branches(&mut self, pc: Label, n: usize, branch: &dyn Fn(&mut Self, usize) -> Eval) -> Eval {
        let mut out = Vec::new();
        let mut first_error = None;
        for i in 0..n {
            let copy = self.copied(pc);
            match self.inside(copy, |run| branch(run, i)) {
                Ok(v) => out.push(v),
                // Nobody may catch it, or nobody outside may.
                Err(e) if !catchable(e.code) || !self.lattice.flows(e.label, pc) => return Err(e),
                Err(e) => first_error = first_error.or(Some(e)),
            }
        }
        match first_error {
            Some(e) => Err(e),
            None => Ok(value(pc, Node::List(out))),
        }
    }

    /// **`guard e P retry n`**, `attempt` being the evaluation of `e`.
    fn guard(
        &mut self,
        pc: Label,
        pred: &Pred,
        retry: u32,
        attempt: &dyn Fn(&mut Self, Label) -> Eval,
    ) -> Eval {
        let v = attempt(self, pc)?;
        if is_function(&v) {
            return Ok(value(v.label, Node::Guarded(v, pred.clone(), retry)));
        }
        let deep = self.deep(&v);
        let raised = self.join(pc, deep);
        let why = match Self::data(&v) {
            Ok(d) => pred.holds(&d).err(),
            Err(NotData::Function) => Some("a function is not data".to_string()),
            Err(NotData::TooDeep) => Some("nested too deep".to_string()),
        };
        match why {
            // It holds: v at label deep V.
            None => Ok(Value { label: deep, node: v.node }),
            // None remains: the error guard, labeled pc ⊔ deep V.
            Some(why) if retry == 0 => error("guard", raised, why),
            // Attempts remain: e again at pc ⊔ deep V, with a remark.
            Some(why) => {
                let text = pred.remark(&why, Self::data(&v).ok().as_ref());
                self.remarks += 1;
                let remark = Remark { number: self.remarks, label: raised, text };
                let outer = self.remark.replace(remark);
                let result = self.deeper(raised, |run| run.guard(raised, pred, retry - 1, attempt));
                self.remark = outer;
                result
            }
        }
    }

    /// Counts a step that is no term of its own, and makes room on the stack.
    fn deeper(&mut self, pc: Label, f: impl FnOnce(&mut Self) -> Eval) -> Eval {
        let Some(rest) = self.fuel.checked_sub(1) else {
            return error("fuel", pc, "out of fuel");
        };
        self.fuel = rest;
        stacker::maybe_grow(128 << 10, 4 << 20, || f(self))
    }

    /// Evaluates in another conversation, which is dropped with a result and with an error (**`try`**).
    fn inside(&mut self, other: Conversation, f: impl FnOnce(&mut Self) -> Eval) -> Eval {
        let kept = std::mem::replace(&mut self.conversation, other);
        let result = f(self);
        self.conversation = kept;
        result
    }

    /// `(lc ⊔ pc) : messages`.
    fn copied(&mut self, pc: Label) -> Conversation {
        let label = self.join(self.conversation.label, pc);
        let Conversation { messages, pending, told, edits, .. } = &self.conversation;
        let (messages, pending, edits) = (messages.clone(), pending.clone(), edits.clone());
        Conversation { label, messages, pending, told: *told, edits }
    }

    /// `pc ⊑ lc`, or the error `flow` labeled `pc ⊔ lc`.
    fn writable(&mut self, pc: Label) -> Result<(), Error> {
        let lc = self.conversation.label;
        if self.lattice.flows(pc, lc) {
            return Ok(());
        }
        error("flow", self.lattice.join(pc, lc), "the program counter is above the conversation")
    }

    /// **`send[r] e`**, after `e`.
    fn send(&mut self, pc: Label, role: Role, v: &Value) -> Eval {
        self.writable(pc)?;
        let text = self.serialize(pc, v)?;
        let deep = self.deep(v);
        self.conversation.messages.push((role, text));
        self.conversation.label = self.join(self.conversation.label, deep);
        Ok(unit(pc))
    }

    /// **`recv`**: `pc ⊑ lc` and `lc ⊑ ℓmodel`; the model is asked; channel `lc`. Nothing, if only calls that
    /// wait are wanted and none does.
    fn ask_model(&mut self, pc: Label, model: Option<&Model>) -> Result<Option<Answer>, Error> {
        self.writable(pc)?;
        let lc = self.conversation.label;
        let raised = self.join(pc, lc);
        if !self.lattice.flows(lc, self.clearance) {
            return permanent("flow", raised, "the model may not see this");
        }
        // **Several tool calls** are received one after the other; a question drops those that were not.
        if model.is_some_and(|m| !m.tools.is_empty())
            && let Some((name, args)) = self.conversation.pending.pop_front()
        {
            return Ok(Some(Answer::ToolCall(name, args)));
        }
        if model.is_some_and(|m| m.params.waiting) {
            return Ok(None);
        }
        self.conversation.pending.clear();
        // *Edits*: each once, if its label flows to lc.
        for (label, text) in std::mem::take(&mut self.conversation.edits) {
            match self.lattice.flows(label, lc) {
                true => self.conversation.messages.push((Role::User, text)),
                false => self.conversation.edits.push((label, text)),
            }
        }
        // **Remarks**: once a conversation, if the remark's label flows to lc.
        if let Some(remark) = &self.remark
            && remark.number != self.conversation.told
            && self.lattice.flows(remark.label, lc)
        {
            self.conversation.messages.push((Role::User, remark.text.clone()));
            self.conversation.told = remark.number;
        }
        let call = Call::Model {
            messages: self.conversation.messages.clone(),
            params: model.map(|m| m.params.clone()),
            tools: model.map(|m| m.tools.iter().map(|t| t.name.clone()).collect()).unwrap_or_default(),
        };
        match self.ask(call, lc, raised)? {
            Answer::Failed(why) => error("model", raised, why),
            Answer::Permanent(why) => permanent("model", raised, why),
            Answer::ToolCalls(calls) => {
                self.conversation.pending = calls.into();
                match self.conversation.pending.pop_front() {
                    Some((name, args)) => Ok(Some(Answer::ToolCall(name, args))),
                    None => Ok(Some(Answer::Text(String::new()))),
                }
            }
            answer => Ok(Some(answer)),
        }
    }

    /// **`recv`** as code.
    fn receive_code(&mut self, pc: Label) -> Eval {
        let answer = self.ask_model(pc, None)?;
        let lc = self.conversation.label;
        let Some(Answer::Text(text)) = answer else {
            return error(
                "model",
                self.lattice.join(pc, lc),
                "a model that is asked for text said something else",
            );
        };
        self.conversation.messages.push((Role::Assistant, text.clone()));
        match (self.config.parser)(&text).and_then(|code| harmless(code, self.config.generated_endorse)) {
            // The value of [true, e] evaluated at pc := lc in the prelude's environment.
            Ok(code) => {
                let e = convert(&code, code.globals(), code.root());
                let pair = Expr::List(vec![Rc::new(Expr::Lit(Data::Bool(true))), e]);
                self.eval(lc, &Rc::new(pair))
            }
            // lc:[lc:false, lc:message].
            Err(why) => {
                let parts = vec![value(lc, Node::Bool(false)), value(lc, Node::Str(why.into()))];
                Ok(value(lc, Node::List(parts)))
            }
        }
    }

    /// **`recv`** as data: decoded to `θ.result`, repaired at most `θ.repair` times; gives `lc:data`, parts
    /// ⊥.
    fn receive_data(&mut self, pc: Label, model: &Model) -> Eval {
        let mut left = model.params.repair;
        loop {
            let answer = self.ask_model(pc, Some(model))?;
            let lc = self.conversation.label;
            let (said, decoded) = match answer {
                // Nothing waits.
                None => return Ok(literal(lc, &Data::Tag("none".into(), Arc::new(Data::Null)))),
                Some(Answer::Text(text)) => {
                    let d = decode(&text, model.params.result.as_ref());
                    let d = d.map(|d| match model.tools.is_empty() {
                        true => d,
                        false => Data::Tag("final".into(), Arc::new(d)),
                    });
                    (text, d)
                }
                Some(Answer::ToolCall(name, args)) => {
                    let said = args.to_json().to_string();
                    let fits = |p: &core_ir::ToolParam| match args.field(&p.name) {
                        Some(d) => p.ty.check(d).is_ok(),
                        None => matches!(p.ty, Type::Option(_)),
                    };
                    match model.tools.iter().find(|t| t.name == name) {
                        Some(tool) if tool.params.iter().all(fits) => {
                            (said, Ok(Data::Tag(name, Arc::new(args))))
                        }
                        Some(_) => (said, Err("ill-typed arguments".to_string())),
                        None => (said, Err("a tool that was not offered".to_string())),
                    }
                }
                _ => return error("model", self.lattice.join(pc, lc), "no answer for a model"),
            };
            self.conversation.messages.push((Role::Assistant, said));
            match decoded {
                Ok(d) => return Ok(literal(lc, &d)),
                Err(why) if left == 0 => {
                    self.conversation.pending.clear();
                    return error("decode", self.lattice.join(pc, lc), why);
                }
                Err(_) => {
                    self.conversation.pending.clear();
                    left -= 1;
                    self.conversation.messages.push((Role::User, REPAIR.to_string()));
                }
            }
        }
    }

    /// **`llm p θ`** applied at `l` to `V`: in the conversation `l : []`, the system message, then `V`, then
    /// the reply.
    fn oracle(&mut self, l: Label, prompt: &Value, model: &Model, v: &Value) -> Eval {
        self.inside(Conversation::empty(l), |run| {
            if matches!(&*prompt.node, Node::Str(s) if s.is_empty()) {
                // Whether there is a message depends on the prompt.
                let deep = run.deep(prompt);
                run.conversation.label = run.join(run.conversation.label, deep);
            } else {
                run.send(l, Role::System, prompt)?;
            }
            run.send(l, Role::User, v)?;
            run.receive_data(l, model)
        })
    }

    /// **Primitives** that look at constructors only, where they have a result.
    fn of_constructor(&mut self, pc: Label, prim: Prim, operands: &[Value]) -> Option<Value> {
        let fields = |v: &Value| match &*v.node {
            Node::Record(fields) | Node::Args(_, fields) => Some(fields.clone()),
            _ => None,
        };
        let count = |v: &Value| match &*v.node {
            Node::List(items) => Some(items.len()),
            _ => fields(v).map(|fields| fields.len()),
        };
        let number = |n: usize| Node::Num(Num::from(n as i64));
        let text = |name: &Name| value(Label::BOTTOM, Node::Str(Arc::from(&**name)));
        match (prim, operands) {
            (Prim::Length, [v]) => {
                let l = self.join(pc, v.label);
                Some(value(l, number(count(v)?)))
            }
            (Prim::Keys, [v]) => {
                let l = self.join(pc, v.label);
                Some(value(l, Node::List(fields(v)?.iter().map(|(name, _)| text(name)).collect())))
            }
            (Prim::Has, [v, k]) => {
                let Node::Str(key) = &*k.node else { return None };
                let there = fields(v)?.iter().any(|(name, _)| **name == **key);
                let l = self.join(pc, v.label);
                Some(value(self.join(l, k.label), Node::Bool(there)))
            }
            (Prim::Py, [op, rest @ ..]) => {
                let Node::Str(name) = &*op.node else { return None };
                let (of, key) = match rest {
                    [of] => (of, None),
                    [of, key] => (of, Some(key)),
                    _ => return None,
                };
                let mut l = self.join(pc, op.label);
                l = self.join(l, of.label);
                if let Some(key) = key {
                    let deep = self.deep(key);
                    l = self.join(l, deep);
                }
                // A container of the same form, and its parts.
                let (form, parts): (Data, Vec<Value>) = match &*of.node {
                    Node::List(items) => (Data::list(items.iter().map(|_| Data::Null)), items.clone()),
                    Node::Record(fields) => (
                        Data::record(fields.iter().map(|(name, _)| (name.clone(), Data::Null))),
                        fields.iter().map(|(_, v)| v.clone()).collect(),
                    ),
                    _ => return None,
                };
                let result = match (&**name, key) {
                    ("b.len", Some(named)) => {
                        let [of] = &parts[..] else { return None };
                        if !matches!(&*of.node, Node::List(_) | Node::Record(_) | Node::Args(..))
                            || !matches!(&*named.node, Node::Record(none) if none.is_empty())
                            || !matches!(form, Data::List(_))
                        {
                            return None;
                        }
                        l = self.join(l, of.label);
                        // An object of a class has no length, whatever its fields are.
                        if fields(of).is_some_and(|f| f.iter().any(|(n, _)| &**n == core_ir::py::CLASS)) {
                            let form = Data::record([(Name::from(core_ir::py::CLASS), Data::Null)]);
                            let operands = [Data::list([form]), Data::record([])];
                            let told = core_ir::py::apply(name, &operands, self.config.max_text).ok()?;
                            return Some(literal(l, &told));
                        }
                        value(Label::BOTTOM, number(count(of)?))
                    }
                    ("iter", None) => match form {
                        Data::List(_) => value(Label::BOTTOM, Node::List(parts)),
                        _ => value(
                            Label::BOTTOM,
                            Node::List(fields(of)?.iter().map(|(name, _)| text(name)).collect()),
                        ),
                    },
                    ("index" | "attribute", Some(key)) => {
                        let key = Self::data(key).ok()?;
                        // Whether there is such a part, and what Python raises if not.
                        let told =
                            core_ir::py::apply(name, &[form, key.clone()], self.config.max_text).ok()?;
                        let place = match (told, &key) {
                            (Data::Tag(raise, e), _) if &*raise == "raise" => {
                                return Some(literal(l, &Data::Tag(raise, e)));
                            }
                            (_, Data::Str(key)) => {
                                fields(of)?.iter().position(|(name, _)| **name == **key)?
                            }
                            (_, Data::Bool(b)) => usize::from(*b),
                            (_, Data::Num(n)) => {
                                let whole = n.to_i64()?;
                                let from_end = if whole < 0 { i64::try_from(parts.len()).ok()? } else { 0 };
                                usize::try_from(whole.checked_add(from_end)?).ok()?
                            }
                            _ => return None,
                        };
                        parts.get(place)?.clone()
                    }
                    _ => return None,
                };
                Some(value(l, Node::Tag("ok".into(), result)))
            }
            _ => None,
        }
    }

    /// *Bounded endorsement*: the sets, read before the first step at the program counter ⊥, whether or not
    /// they will be needed. One that can't be read admits nothing.
    fn read_sets(&mut self, code: &Code, input: Option<&Data>) {
        let sources: Vec<AmongSource> =
            code.tools.iter().flat_map(|t| &t.among).map(|a| a.source.clone()).collect();
        for source in sources {
            if self.sets.iter().any(|s| s.source == source) {
                continue;
            }
            let AmongSource::Tool(name) = &source else {
                let items = match &source {
                    // The input is the request. Here it is trusted and public.
                    AmongSource::Request | AmongSource::Sites => {
                        input.map(core_ir::among::tokens).unwrap_or_default()
                    }
                    AmongSource::Values(values) => values.to_vec(),
                    AmongSource::Below(_) | AmongSource::Tool(_) => Vec::new(),
                };
                self.sets.push(SetSource { source, tool: None, label: Label::BOTTOM, items, fits: true });
                continue;
            };
            let Some(tool) = code.tools.iter().find(|t| t.name == *name) else { continue };
            if !tool.can_be_a_set() {
                continue;
            }
            let mut channel = self.resolve(&tool.control);
            for p in &tool.params {
                let bound = self.resolve(&p.bound);
                channel = self.join(channel, bound);
            }
            let mut label = self.resolve(&tool.label);
            let args: Vec<(Name, Data)> = tool.params.iter().map(|p| (p.name.clone(), Data::Null)).collect();
            let all = self.of_all_parts(&Answered { tool, args: &args }, label);
            let answer = self.ask(Call::Tool { name: tool.name.clone(), args }, channel, all);
            let data = match answer {
                Ok(Answer::Data(d)) => Some(d),
                Ok(Answer::Labeled(d, own)) => {
                    let own = self.resolve(&own);
                    label = self.join(label, own);
                    Some(d)
                }
                _ => None,
            };
            let fits = data.as_ref().is_some_and(|d| tool.result.check(d).is_ok());
            let items = match data {
                None | Some(Data::Null) => Vec::new(),
                Some(Data::List(items)) => items.to_vec(),
                Some(one) => vec![one],
            };
            self.sets.push(SetSource { source, tool: Some(tool.clone()), label, items, fits });
        }
    }

    /// The label of a set: of what its values are in, of them, and of what is in them.
    fn set_label(&mut self, from: &SetSource, among: &Among) -> Label {
        let mut label = from.label;
        let Some(tool) = &from.tool else { return label };
        for (_, path) in &among.params {
            let l = self.along(tool, &[], path);
            label = self.join(label, l);
        }
        label
    }

    /// The labels that rules state along a path of a set, from the end of a way on.
    fn along(&mut self, tool: &ToolDecl, way: &[PathStep], path: &[SetStep]) -> Label {
        let mut label = match rule_about(tool, way) {
            None => Label::BOTTOM,
            Some(rule) => self.declared(rule),
        };
        let longest = tool.parts.iter().map(|r| r.path.steps().len()).max().unwrap_or(0);
        if way.len() == longest {
            return label;
        }
        // A path through a list, or to one, means its items.
        let items = self.along(tool, &further(way, PathStep::Items), path);
        label = self.join(label, items);
        let names: Vec<Name> = match path.split_first() {
            Some((SetStep::Field(name), _)) => vec![name.clone()],
            Some((SetStep::Keys, _)) => return label,
            // Any field: those that rules name, and one that none does.
            None | Some((SetStep::Values, _)) => {
                let steps = tool.parts.iter().flat_map(|r| r.path.steps());
                let named = steps.filter_map(|s| match s {
                    PathStep::Field(name) => Some(name.clone()),
                    _ => None,
                });
                let mut names: Vec<Name> = named.chain(["no rule names this".into()]).collect();
                names.sort();
                names.dedup();
                names
            }
        };
        let rest = path.get(1..).unwrap_or(&[]);
        for name in names {
            let l = self.along(tool, &further(way, PathStep::Field(name)), rest);
            label = self.join(label, l);
        }
        label
    }

    /// The label that a rule states; ⊤ if values name it.
    fn declared(&mut self, rule: &PartLabel) -> Label {
        match rule.source.is_empty() && rule.readers.is_empty() {
            true => self.resolve(&rule.label),
            false => self.lattice.top(),
        }
    }

    /// Returns whether an argument that its bound refuses is in a set: the whole label of the set flows to
    /// the bound, the secrecy of the argument does, and the data is one of the items'. Of a set for several
    /// parameters that holds for each.
    fn is_chosen(&mut self, tool: &ToolDecl, param: &Name, args: &[(Label, Option<Data>)]) -> bool {
        tool.among.iter().filter(|a| a.params.iter().any(|(n, _)| n == param)).any(|among: &Among| {
            let Some(from) = self.sets.iter().find(|s| s.source == among.source).cloned() else {
                return false;
            };
            let set = self.set_label(&from, among);
            let mut chosen = Vec::new();
            for (name, _) in &among.params {
                let Some(i) = tool.params.iter().position(|p| p.name == *name) else { return false };
                let bound = self.resolve(&tool.params[i].bound);
                let (l, data) = &args[i];
                // Of delegated calls only what those write who may choose is vouched for.
                if let Some(delegated) = &tool.delegated {
                    let theirs = self.lattice.resolve(&core_ir::Delegated::label(&delegated.to));
                    let most = self.join(bound, theirs.unwrap_or_default());
                    if !self.lattice.flows(*l, most) {
                        return false;
                    }
                }
                let l = self.lattice.reclassify(bound, *l);
                let Some(data) = data else { return false };
                if !self.lattice.flows(l, bound) || !self.lattice.flows(set, bound) {
                    return false;
                }
                chosen.push(data);
            }
            // Where parts have labels of their own, only a set of all of the result depends on its type.
            let has_parts = from.tool.as_ref().is_some_and(|t| !t.parts.is_empty());
            let is_path = has_parts && among.params.iter().all(|(_, path)| !path.is_empty());
            let items = if from.fits || is_path { &from.items[..] } else { &[] };
            let ty = from.tool.as_ref().map_or(&Type::Dyn, |t| &t.result);
            among.choices(items, ty, &chosen).is_some()
        })
    }

    /// **`tool[f] V`** at `pc`.
    fn call_tool(&mut self, pc: Label, tool: &ToolDecl, v: &Value) -> Eval {
        self.check_call(pc, tool, v, None)
    }

    /// **`tool[f] V`** at `pc`, or what follows from an approval with other arguments, which are in `V`: the
    /// label of that answer is joined to what is returned, and nobody is asked.
    fn check_call(&mut self, pc: Label, tool: &ToolDecl, v: &Value, edited: Option<Edited<'_>>) -> Eval {
        // pc ⊑ ℓpc, else the error flow, labeled pc.
        // With `approve` integrity is vouched for, so only the secrecies are compared.
        let lpc = self.resolve(&tool.control);
        if !self.admits(tool, pc, lpc) {
            return error("flow", pc, format!("`{}` may not be called here", tool.name));
        }
        // Arguments that were planned for another tool are the error type, labeled pc ⊔ deep V.
        let planned_for = match &*v.node {
            Node::Args(of, _) => Some(of.clone()),
            _ => None,
        };
        if planned_for.as_ref().is_some_and(|of| *of != tool.name) {
            let deep = self.deep(v);
            return error("type", self.join(pc, deep), "arguments of a call of another tool");
        }
        // m = l if l ⊑ ℓpc, else ℓpc; in the first case a planned call counts l as control.
        let l_flows = self.admits(tool, v.label, lpc);
        let m = if l_flows { v.label } else { lpc };
        let planned = planned_for.is_some() && l_flows;
        // A tool with one parameter takes the bare value, unless it is a record with a field of that name, or
        // planned.
        let bare = match &tool.params[..] {
            [p] if planned_for.is_none() && field(v, &p.name).is_none() => Some(p.name.clone()),
            _ => None,
        };
        let given: Option<Vec<(Name, Value)>> = match (&bare, &*v.node) {
            (_, Node::Args(_, fields)) => Some(fields.clone()),
            (Some(name), _) => Some(vec![(name.clone(), v.clone())]),
            (None, Node::Record(fields)) => Some(fields.clone()),
            // A tool without parameters takes unit or null.
            (None, Node::Null) if tool.params.is_empty() => Some(Vec::new()),
            (None, _) => None,
        };
        // For each parameter in order: deep Wᵢ ⊑ ℓᵢ, else the error flow, labeled pc ⊔ m ⊔ ℓᵢ. Wᵢ is Vᵢ of a
        // planned call, Vᵢ read at l otherwise. A missing one is null at l.
        let mut channel = lpc;
        let (mut compared, mut in_full) = (Vec::new(), Vec::new());
        // For `approve = "if-refused"`: as the arguments would be compared if nobody could be asked.
        let planned_in_full = planned_for.is_some() && self.lattice.flows(v.label, lpc);
        for p in &tool.params {
            let argument = given.as_ref().and_then(|g| g.iter().find(|(n, _)| *n == p.name)).cloned();
            let (mut l, mut full, mut data) = (v.label, v.label, Some(Data::Null));
            if let Some((_, argument)) = argument {
                let deep = self.deep(&argument);
                let read = self.join(v.label, deep);
                (l, full) = (if planned { deep } else { read }, if planned_in_full { deep } else { read });
                data = Self::data(&argument).ok();
            }
            compared.push((l, data.clone()));
            in_full.push((full, data));
        }
        for (i, p) in tool.params.iter().enumerate() {
            let bound = self.resolve(&p.bound);
            channel = self.join(channel, bound);
            if !self.admits(tool, compared[i].0, bound) && !self.is_chosen(tool, &p.name, &compared) {
                // With `approve` or `among`: labeled pc ⊔ m ⊔ ℓᵢ ⊔ ⟨⊤←, ⊥→⟩, and at the bounds of the
                // arguments that are chosen together with this one.
                let mut label = self.join(pc, bound);
                label = self.join(label, m);
                for among in tool.among.iter().filter(|a| a.params.iter().any(|(n, _)| *n == p.name)) {
                    for other in tool.params.iter().filter(|q| among.params.iter().any(|(n, _)| *n == q.name))
                    {
                        let bound = self.resolve(&other.bound);
                        label = self.join(label, bound);
                    }
                }
                if tool.approve.may_ask() || !tool.among.is_empty() {
                    let top = self.lattice.top();
                    let anyone = self.lattice.reclassify(top, Label::BOTTOM);
                    label = self.join(label, anyone);
                }
                return error("flow", label, format!("`{}` may not be this", p.name));
            }
        }
        // Missing, unknown or ill-typed arguments are the error type, labeled pc ⊔ deep V.
        let deep = self.deep(v);
        let raised = self.join(pc, deep);
        let raised = self.join(raised, edited.as_ref().map_or(Label::BOTTOM, |e| e.label));
        let Some(given) = given else { return error("type", raised, "not a record of arguments") };
        if let Some((name, _)) = given.iter().find(|(n, _)| !tool.params.iter().any(|p| p.name == *n)) {
            return error("type", raised, format!("unknown argument `{name}`"));
        }
        let mut args = Vec::new();
        for p in &tool.params {
            match given.iter().find(|(n, _)| *n == p.name) {
                Some((_, argument)) => {
                    let d = match Self::data(argument) {
                        Ok(d) => d,
                        Err(NotData::Function) => return error("type", raised, "a function is not data"),
                        Err(NotData::TooDeep) => return error("limit", raised, "nested too deep"),
                    };
                    if let Err((_, why)) = p.ty.check(&d) {
                        return error("type", raised, why);
                    }
                    args.push((p.name.clone(), d));
                }
                None if matches!(p.ty, Type::Option(_)) => args.push((p.name.clone(), Data::Null)),
                None => return error("type", raised, format!("missing argument `{}`", p.name)),
            }
        }
        // Plain text: what a form refuses of an untrusted argument is the error policy, labeled
        // pc ⊔ l ⊔ deep Wᵢ; with approval if refused somebody is asked. One that a set admitted passes.
        let if_refused = tool.approve == Approve::IfRefused;
        let mut not_plain = false;
        for (name, form) in &tool.plain {
            let Some(i) = tool.params.iter().position(|p| p.name == *name) else { continue };
            let bound = self.resolve(&tool.params[i].bound);
            let own = compared[i].0;
            // With approval if refused, one that no set has is asked about anyway.
            let in_set = match if_refused {
                true => !self.lattice.flows(in_full[i].0, bound),
                false => !self.admits(tool, own, bound),
            };
            if self.is_untrusted(own) && !in_set && form.refused(&args[i].1, &self.request).is_some() {
                not_plain = true;
                if if_refused {
                    continue;
                }
                let label = self.join(pc, v.label);
                return error("policy", self.join(label, own), "text that is not plain");
            }
        }
        // Closed forms: an argument that is not ⊥ matches its pattern, else the error policy, labeled
        // pc ⊔ l ⊔ deep Wᵢ.
        for (name, pattern) in &tool.pattern {
            let Some(i) = tool.params.iter().position(|p| p.name == *name) else { continue };
            if compared[i].0 != Label::BOTTOM && !pattern.matches(&args[i].1) {
                let label = self.join(pc, v.label);
                return error("policy", self.join(label, compared[i].0), "text of another form");
            }
        }
        // Readers: everybody whom the named arguments name may read the argument, else the error policy,
        // labeled pc ⊔ l ⊔ deep Wᵢ ⊔ deep of those.
        for (name, who) in &tool.includes {
            let at = |name: &Name| tool.params.iter().position(|p| p.name == *name);
            let Some(i) = at(name) else { continue };
            let mut label = self.join(pc, v.label);
            label = self.join(label, compared[i].0);
            let (mut readers, mut all_known) = (Vec::new(), true);
            for other in who {
                let Some(j) = at(other) else {
                    all_known = false;
                    continue;
                };
                label = self.join(label, compared[j].0);
                match self.config.principals.all_readers(&args[j].1) {
                    Some(names) => readers.extend(names.into_iter().map(|n| Data::str(&*n))),
                    None => all_known = false,
                }
            }
            let is_sets = self.config.lattice == LatticeKind::SourcesReaders;
            let most = match all_known && is_sets {
                true => self.resolve(&LabelSpec::Exact(Data::record([
                    ("sources".into(), Data::list([])),
                    ("readers".into(), Data::list(readers)),
                ]))),
                false => Label::BOTTOM,
            };
            let secrecy = self.lattice.reclassify(Label::BOTTOM, compared[i].0);
            if !self.lattice.flows(secrecy, most) {
                return error("policy", label, "not all of them may read this");
            }
        }
        // What a call that succeeds returns doesn't depend on arguments that complete it: their labels are
        // left out, if the arguments came by name.
        let mut spared = raised;
        if bare.is_none() && !tool.completes.is_empty() && edited.is_none() {
            spared = self.join(pc, v.label);
            for (p, (l, _)) in tool.params.iter().zip(&compared) {
                if !tool.completes.contains(&p.name) {
                    spared = self.join(spared, *l);
                }
            }
        }
        // Policies: from `{parameter: {value, label}, …}` in a fresh conversation at pc to a verdict. The
        // value is Vᵢ read at l, the label is deep Wᵢ, which is known to those who may see l and it.
        let (mut raised, mut verdict_asks) = (raised, false);
        if let Some(policy) = &tool.policy {
            let mut fields = Vec::new();
            for (p, (l, _)) in tool.params.iter().zip(&compared) {
                let given = given.iter().find(|(n, _)| *n == p.name);
                let given = given.map_or(value(Label::BOTTOM, Node::Null), |(_, v)| v.clone());
                let given = self.read(v.label, &given);
                let seen = self.join(v.label, *l);
                let shown = literal(seen, &self.lattice.data_of(*l));
                let both = Node::Record(vec![("value".into(), given), ("label".into(), shown)]);
                fields.push((p.name.clone(), value(pc, both)));
            }
            let e = convert(policy, policy.globals(), policy.root());
            let verdict = self.inside(Conversation::empty(pc), |run| {
                let f = run.eval(pc, &e)?;
                run.apply(&f, value(pc, Node::Record(fields)))
            })?;
            // d = pc ⊔ deep verdict; who sees the call sees the verdict.
            let d = self.deep(&verdict);
            let d = self.join(pc, d);
            if !self.admits(tool, d, channel) {
                return error("flow", d, "the verdict may not be seen by who sees the call");
            }
            verdict_asks = matches!(&*verdict.node, Node::Tag(tag, _) if **tag == *core_ir::ASK_VERDICT);
            match &*verdict.node {
                _ if verdict_asks || matches!(&*verdict.node, Node::Bool(true)) => {
                    raised = self.join(raised, d);
                    spared = self.join(spared, d);
                }
                Node::Bool(false) => return error("policy", d, "refused"),
                Node::Str(why) => return error("policy", d, &**why),
                _ => return error("type", d, "a policy gives a truth value or a reason"),
            }
        }
        // The result is (pc ⊔ ℓres ⊔ deep V):r; a failure or an ill-typed result has that label, and so has a
        // refusal.
        if tool.confirms && tool.approve == Approve::IfRefused {
            // Whether somebody is asked for a confirmation depends on the sets.
            for among in &tool.among {
                let from = self.sets.iter().find(|s| s.source == among.source).cloned();
                let set = from.map_or(Label::BOTTOM, |from| self.set_label(&from, among));
                raised = self.join(raised, set);
            }
        }
        let lres = self.resolve(&tool.label);
        let mut label = self.join(raised, lres);
        let mut returned = self.join(spared, lres);
        // at_most: calls are counted unless pc ⊔ l is trusted; a used-up count ends the run, at pc ⊔ ch.
        let decided = self.join(pc, v.label);
        let untrusted = self.lattice.reclassify(decided, Label::BOTTOM) != Label::BOTTOM;
        let most = tool.at_most.filter(|_| untrusted);
        let made =
            |run: &Self| run.counted.iter().find(|(n, _)| *n == tool.name).map_or(0, |(_, made)| *made);
        if most.is_some_and(|most| made(self) >= most) {
            return error("budget", self.join(pc, channel), "no further call that untrusted data decides");
        }
        let mut asks = tool.approve.may_ask();
        let mut refused = label;
        if if_refused {
            // Somebody is asked if control or an argument is refused in full, after the sets.
            let clean = (0..tool.params.len()).all(|i| {
                let bound = self.resolve(&tool.params[i].bound);
                self.lattice.flows(in_full[i].0, bound)
                    || self.is_chosen(tool, &tool.params[i].name, &in_full)
            });
            asks &= !clean || not_plain || !self.lattice.flows(pc, lpc);
            // That somebody is asked tells of the sets.
            for among in &tool.among {
                let from = self.sets.iter().find(|s| s.source == among.source).cloned();
                let set = from.map_or(Label::BOTTOM, |from| self.set_label(&from, among));
                refused = self.join(refused, set);
            }
        }
        asks |= verdict_asks;
        let is_approved = asks || edited.is_some();
        if let Some(edited) = edited {
            *edited.is_made = true;
        } else if asks {
            // A confirmation calls nothing: it is on the label of what is confirmed alone.
            let called = if tool.confirms { Label::BOTTOM } else { channel };
            let seen = self.join(called, raised);
            match self.ask(Call::Approve { name: tool.name.clone(), args: args.clone() }, seen, refused)? {
                Answer::Approved(Ok(())) => {}
                Answer::Approved(Err(why)) => return permanent("tool", refused, why),
                // An argument that whoever approves has written is as secret as what they were shown, and
                // comes from them.
                Answer::Edited(args, by) => {
                    let by = self.lattice.resolve_or_top(&by);
                    let all = self.join(raised, by);
                    let own = self.lattice.reclassify(by, all);
                    let mut fields = match &*v.node {
                        Node::Args(_, fields) => fields.clone(),
                        Node::Record(fields) if bare.is_none() => fields.clone(),
                        _ => bare.iter().map(|name| (name.clone(), v.clone())).collect(),
                    };
                    for (name, data) in &args {
                        let new = literal(own, data);
                        match fields.iter_mut().find(|(n, _)| n == name) {
                            Some((_, old)) => *old = new,
                            None => fields.push((name.clone(), new)),
                        }
                    }
                    let node = match &*v.node {
                        Node::Args(of, _) => Node::Args(of.clone(), fields),
                        _ => Node::Record(fields),
                    };
                    let text = format!(
                        "The call of `{}` was approved with changed arguments: {}",
                        tool.name,
                        Data::record(args).to_json()
                    );
                    self.conversation.edits.push((all, text));
                    // An error says no less than the answer, until the call is made.
                    let mut is_made = false;
                    let edited = Edited { label: all, is_made: &mut is_made };
                    let result = self.check_call(pc, tool, &value(v.label, node), Some(edited));
                    return result.map_err(|e| match is_made {
                        true => e,
                        false => {
                            Error { label: [refused, all].iter().fold(e.label, |l, m| self.join(l, *m)), ..e }
                        }
                    });
                }
                _ => return error("tool", refused, "no answer to a question for approval"),
            }
        }
        if most.is_some() {
            let now = made(self) + 1;
            self.counted.retain(|(n, _)| *n != tool.name);
            self.counted.push((tool.name.clone(), now));
        }
        // A confirmation gives its first argument; an approval has endorsed it.
        if tool.confirms {
            if is_approved {
                let secrecy = self.lattice.reclassify(Label::BOTTOM, label);
                label = self.join(pc, secrecy);
            }
            return Ok(literal(label, args.first().map_or(&Data::Null, |(_, d)| d)));
        }
        let mut answer =
            self.ask(Call::Tool { name: tool.name.clone(), args: args.clone() }, channel, label)?;
        // A label of the tool's own is joined.
        if let Answer::Labeled(d, own) = answer {
            let own = self.resolve(&own);
            label = self.join(label, own);
            returned = self.join(returned, own);
            answer = Answer::Data(d);
        }
        // A failure may quote every part of the result.
        let of = Answered { tool, args: &args };
        let failed = self.of_all_parts(&of, label);
        match answer {
            Answer::Data(d) => {
                let v = match tool.parts.is_empty() {
                    true => literal(returned, &d),
                    false => self.labeled_by_parts(&of, returned, &d),
                };
                match tool.result.check(&d) {
                    Ok(()) => Ok(v),
                    Err((_, why)) => {
                        let deep = self.deep(&v);
                        error("type", self.join(deep, label), why)
                    }
                }
            }
            Answer::Failed(why) => error("tool", failed, why),
            Answer::ToolTimeout(why) => error("tool_timeout", failed, why),
            _ => error("tool", failed, "no answer for a tool"),
        }
    }

    /// *Parts of a result*: `l` with the labels that rules state, ⊤ for one that names fields.
    fn of_all_parts(&mut self, of: &Answered<'_>, l: Label) -> Label {
        let mut all = l;
        for rule in of.tool.parts.iter() {
            let m = self.resolve(&rule.label);
            all = self.join(all, m);
            for name in rule.source.iter().chain(&rule.readers) {
                let said = match name {
                    LabelName::Field(_) => self.lattice.top(),
                    LabelName::Argument(x) => self.place(of, x),
                };
                all = self.join(all, said);
            }
        }
        all
    }

    /// The label of the places that the texts of an argument name. Elsewhere anything may come from anyone,
    /// as secret as what is at any place. ⊤ if it is no text or list of texts.
    fn place(&mut self, of: &Answered<'_>, x: &Name) -> Label {
        let given = of.args.iter().find(|(n, _)| n == x).and_then(|(_, d)| texts(d));
        let Some(named) = given.filter(|t| !t.is_empty()) else { return self.lattice.top() };
        let places = &self.config.principals.places;
        let mut all = Label::BOTTOM;
        for text in named {
            let l = match places.label(&text) {
                Some(spec) => self.resolve(spec),
                None => {
                    let mut secrecy = Label::BOTTOM;
                    for spec in places.labels() {
                        let l = self.resolve(spec);
                        secrecy = self.join(secrecy, l);
                    }
                    let top = self.lattice.top();
                    self.lattice.reclassify(top, secrecy)
                }
            };
            all = self.join(all, l);
        }
        all
    }

    /// *Parts of a result*: the answer with a label for each part.
    fn labeled_by_parts(&mut self, of: &Answered<'_>, l: Label, d: &Data) -> Value {
        let n = match rule_about(of.tool, &[]) {
            None => Label::BOTTOM,
            Some(rule) => self.of_rule(of, rule, None, &mut |_, _| None),
        };
        let l = self.join(l, n);
        self.part(of, &[], l, d)
    }

    /// The part at the end of a way, whose label is `l`.
    fn part(&mut self, of: &Answered<'_>, way: &[PathStep], l: Label, d: &Data) -> Value {
        stacker::maybe_grow(64 << 10, 4 << 20, || match d {
            Data::List(items) => {
                let way = further(way, PathStep::Items);
                let n = match rule_about(of.tool, &way) {
                    None => Label::BOTTOM,
                    Some(rule) => self.of_rule(of, rule, None, &mut |_, _| None),
                };
                let l_item = self.join(l, n);
                value(l, Node::List(items.iter().map(|item| self.part(of, &way, l_item, item)).collect()))
            }
            Data::Record(fields) => {
                let all = fields.iter().map(|(name, _)| {
                    let v = self.field_part(of, way, l, fields, name, &[]);
                    // INVARIANT: nothing was begun, so the label does not depend on itself.
                    (name.clone(), v.unwrap_or_else(|| value(l, Node::Null)))
                });
                value(l, Node::Record(all.collect()))
            }
            other => labeled(l, l, other),
        })
    }

    /// A field of a record that is labeled `l`; `None` if there is none, or if it was begun before.
    fn field_part(
        &mut self,
        of: &Answered<'_>,
        way: &[PathStep],
        l: Label,
        fields: &[(Name, Data)],
        name: &Name,
        begun: &[Name],
    ) -> Option<Value> {
        if begun.contains(name) {
            return None;
        }
        let (_, d) = fields.iter().find(|(n, _)| n == name)?;
        let begun: Vec<Name> = begun.iter().chain([name]).cloned().collect();
        let way_here = further(way, PathStep::Field(name.clone()));
        let n = match rule_about(of.tool, &way_here) {
            None => Label::BOTTOM,
            Some(rule) => self.of_rule(of, rule, Some(name), &mut |run, g| {
                let w = run.field_part(of, way, l, fields, g, &begun)?;
                let (_, d) = fields.iter().find(|(n, _)| n == g)?;
                Some((run.deep(&w), d.clone()))
            }),
        };
        let l = self.join(l, n);
        Some(self.part(of, &way_here, l, d))
    }

    /// `n` of a rule. `beside` gives `deep W` and `strip W` of a field of the same record.
    fn of_rule(
        &mut self,
        of: &Answered<'_>,
        rule: &PartLabel,
        own: Option<&Name>,
        beside: &mut dyn FnMut(&mut Self, &Name) -> PartOf,
    ) -> Label {
        let mut n = self.resolve(&rule.label);
        let names = |which: &[LabelName]| {
            which
                .iter()
                .filter_map(|name| match name {
                    LabelName::Field(g) => Some(g.clone()),
                    LabelName::Argument(_) => None,
                })
                .collect::<Vec<Name>>()
        };
        for name in rule.source.iter().chain(&rule.readers) {
            if let LabelName::Argument(x) = name {
                let said = self.place(of, x);
                n = self.join(n, said);
            }
        }
        let (sources, readers) = (names(&rule.source), names(&rule.readers));
        let is_excepted = rule.path.steps().last() == Some(&PathStep::Values)
            && own.is_some_and(|own| sources.contains(own) || readers.contains(own));
        if is_excepted {
            return n;
        }
        for g in &sources {
            let said = match beside(self, g) {
                None => self.lattice.top(),
                Some((deep, d)) => {
                    let s = self.source(&d);
                    self.join(deep, s)
                }
            };
            n = self.join(n, said);
        }
        let mut may_read = Vec::new();
        for g in &readers {
            match beside(self, g) {
                None => n = self.lattice.top(),
                Some((deep, d)) => {
                    n = self.join(n, deep);
                    for text in texts(&d).unwrap_or_default() {
                        may_read.extend(self.principal(&text, false).map(|(name, _)| name));
                    }
                }
            }
        }
        if !readers.is_empty() {
            let said = self.lattice.in_terms(&Stated { sources: Some(Vec::new()), readers: Some(may_read) });
            let said = self.resolve(&said);
            n = self.join(n, said);
        }
        n
    }

    /// The label of what comes from those whom data names.
    fn source(&mut self, d: &Data) -> Label {
        let mut sources = Some(Vec::new());
        for text in texts(d).filter(|t| !t.is_empty()).unwrap_or_else(|| vec!["".into()]) {
            match self.principal(&text, true) {
                None => sources = None,
                Some((_, true)) => {}
                Some((name, false)) => {
                    if let Some(all) = &mut sources {
                        all.push(name);
                    }
                }
            }
        }
        let said = self.lattice.in_terms(&Stated { sources, readers: None });
        self.resolve(&said)
    }

    /// The principal that a text names, and whether it is trusted. With declared values only those name their
    /// principal; listed names represent themselves; without either every text does.
    fn principal(&self, text: &str, as_source: bool) -> Option<(Name, bool)> {
        let known = &self.config.principals;
        let listed = if as_source { &known.sources } else { &known.readers };
        match known.values.get(text) {
            Some(principal) => Some((principal.name.clone(), principal.trusted)),
            None => {
                let stands_for_itself = match listed {
                    Some(names) => names.contains(text) && known.values.values().all(|p| &*p.name != text),
                    None => known.values.is_empty(),
                };
                stands_for_itself.then(|| (text.into(), false))
            }
        }
    }

    /// **The answer.** `deep V ⊑ ℓout`, else the error `flow`, labeled `ℓout`; what its form refuses, if it
    /// is untrusted, is the error `policy`, labeled `deep V`. The messages of errors are the machine's.
    fn answer(&mut self, result: Eval) -> Eval {
        let sink = self.config.answer.clone();
        let bound = self.resolve(&sink.bound);
        match result {
            Ok(v) => {
                let deep = self.deep(&v);
                if !self.lattice.flows(deep, bound) {
                    return error("flow", bound, "the answer may not be this");
                }
                if let Some(form) = sink.plain.filter(|_| self.is_untrusted(deep)) {
                    // Functions are no text.
                    let Ok(data) = Self::data(&v) else { return error("policy", deep, "no data") };
                    if form.refused(&data, &self.request).is_some() {
                        return error("policy", deep, "text that is not plain");
                    }
                }
                Ok(v)
            }
            Err(e) => Err(e),
        }
    }

    /// `l← ≠ ⊥←`.
    fn is_untrusted(&mut self, l: Label) -> bool {
        self.lattice.reclassify(l, Label::BOTTOM) != Label::BOTTOM
    }

    /// `l ⊑ bound`, or with approval `l→ ⊑ bound→`.
    fn admits(&mut self, tool: &ToolDecl, l: Label, bound: Label) -> bool {
        let l = if tool.approve.may_ask() { self.lattice.reclassify(bound, l) } else { l };
        self.lattice.flows(l, bound)
    }

    /// A label that a declaration states. One that this lattice does not have is ⊤.
    fn resolve(&mut self, spec: &LabelSpec) -> Label {
        match self.lattice.resolve(spec) {
            Some(l) => l,
            None => self.lattice.top(),
        }
    }

    fn tree(&mut self, v: &Value) -> Tree {
        stacker::maybe_grow(64 << 10, 4 << 20, || {
            let node = match &*v.node {
                Node::Null => TreeNode::Scalar(Data::Null),
                Node::Bool(b) => TreeNode::Scalar(Data::Bool(*b)),
                Node::Num(n) => TreeNode::Scalar(Data::Num(n.clone())),
                Node::Str(s) => TreeNode::Scalar(Data::Str(s.clone())),
                Node::List(items) => TreeNode::List(items.iter().map(|i| self.tree(i)).collect()),
                Node::Record(fields) => {
                    TreeNode::Record(fields.iter().map(|(n, f)| (n.clone(), self.tree(f))).collect())
                }
                Node::Args(tool, fields) => {
                    let fields = fields.iter().map(|(n, f)| (n.clone(), self.tree(f))).collect();
                    TreeNode::Args(tool.clone(), fields)
                }
                Node::Pair(a, b) => TreeNode::Pair(Box::new((self.tree(a), self.tree(b)))),
                Node::Tag(n, p) => TreeNode::Tag(n.clone(), Box::new(self.tree(p))),
                _ => {
                    let captured = Value { label: Label::BOTTOM, node: v.node.clone() };
                    let deep = self.deep(&captured);
                    TreeNode::Function(self.lattice.data_of(deep))
                }
            };
            Tree { label: self.lattice.data_of(v.label), node }
        })
    }
}

/// A source of sets of `among`.
#[derive(Clone)]
struct SetSource {
    source: AmongSource,
    /// The tool that it was read from; none for the request.
    tool: Option<Arc<ToolDecl>>,
    /// The label of the result as a whole.
    label: Label,
    items: Vec<Data>,
    /// True if the result has the type of the tool.
    fits: bool,
}

/// A call that is answered.
struct Answered<'t> {
    tool: &'t ToolDecl,
    args: &'t [(Name, Data)],
}

/// The rule about the part at the end of a way: of several, the one that names the field at the first step in
/// which they differ.
fn rule_about<'t>(tool: &'t ToolDecl, way: &[PathStep]) -> Option<&'t PartLabel> {
    let leads_there = |rule: &&PartLabel| {
        let steps = rule.path.steps();
        let same = |(step, taken): (&PathStep, &PathStep)| match (step, taken) {
            (PathStep::Values, PathStep::Field(_)) => true,
            (step, taken) => step == taken,
        };
        steps.len() == way.len() && steps.iter().zip(way).all(same)
    };
    let names_fields = |rule: &&PartLabel| -> Vec<bool> {
        rule.path.steps().iter().map(|step| *step != PathStep::Values).collect()
    };
    tool.parts.iter().filter(leads_there).max_by_key(names_fields)
}

fn further(way: &[PathStep], step: PathStep) -> Vec<PathStep> {
    way.iter().cloned().chain([step]).collect()
}

/// A text, or a list of texts.
fn texts(d: &Data) -> Option<Vec<Name>> {
    match d {
        Data::Str(text) => Some(vec![Name::from(&**text)]),
        Data::List(items) => items.iter().map(|i| i.as_str().map(Name::from)).collect(),
        _ => None,
    }
}

/// **Never caught.**
fn catchable(code: &str) -> bool {
    !matches!(code, "fuel" | "budget" | "cancelled" | "configuration")
}

fn is_function(v: &Value) -> bool {
    matches!(*v.node, Node::Closure(..) | Node::Fix(..) | Node::Guarded(..) | Node::Llm(..) | Node::Tool(_))
}

fn unit(pc: Label) -> Value {
    value(pc, Node::Record(Vec::new()))
}

fn field<'v>(v: &'v Value, name: &str) -> Option<&'v Value> {
    match &*v.node {
        Node::Record(fields) => fields.iter().find(|(n, _)| &**n == name).map(|(_, f)| f),
        _ => None,
    }
}

/// `l:data`, everything inside labeled ⊥.
fn literal(label: Label, data: &Data) -> Value {
    labeled(label, Label::BOTTOM, data)
}

/// `label:data`, everything inside labeled `inner`.
fn labeled(label: Label, inner: Label, data: &Data) -> Value {
    stacker::maybe_grow(64 << 10, 4 << 20, || {
        let part = |d: &Data| labeled(inner, inner, d);
        let node = match data {
            Data::Null => Node::Null,
            Data::Bool(b) => Node::Bool(*b),
            Data::Num(n) => Node::Num(n.clone()),
            Data::Str(s) => Node::Str(s.clone()),
            Data::List(items) => Node::List(items.iter().map(part).collect()),
            Data::Record(fields) => Node::Record(fields.iter().map(|(n, d)| (n.clone(), part(d))).collect()),
            Data::Pair(p) => Node::Pair(part(&p.0), part(&p.1)),
            Data::Tag(n, p) => Node::Tag(n.clone(), part(p)),
        };
        value(label, node)
    })
}

/// `strip V`: every label ⊥, but functions keep the labels of what they captured. Arguments of planned calls
/// become records.
fn strip(v: &Value) -> Value {
    stacker::maybe_grow(64 << 10, 4 << 20, || {
        let node = match &*v.node {
            Node::List(items) => Rc::new(Node::List(items.iter().map(strip).collect())),
            Node::Record(fields) | Node::Args(_, fields) => {
                Rc::new(Node::Record(fields.iter().map(|(n, f)| (n.clone(), strip(f))).collect()))
            }
            Node::Pair(a, b) => Rc::new(Node::Pair(strip(a), strip(b))),
            Node::Tag(n, p) => Rc::new(Node::Tag(n.clone(), strip(p))),
            _ => v.node.clone(),
        };
        Value { label: Label::BOTTOM, node }
    })
}

/// **Serialization.** Whether the value is not nested too deep.
fn show(v: &Value, outermost: bool, depth: usize, out: &mut String) -> bool {
    if depth > MAX_DATA_DEPTH {
        return false;
    }
    let quoted = |s: &str| serde_json::Value::String(s.to_string()).to_string();
    stacker::maybe_grow(64 << 10, 4 << 20, || {
        match &*v.node {
            Node::Null => out.push_str("null"),
            Node::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Node::Num(n) => out.push_str(&n.to_string()),
            Node::Str(s) if outermost => out.push_str(s),
            Node::Str(s) => out.push_str(&quoted(s)),
            Node::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    if !show(item, false, depth + 1, out) {
                        return false;
                    }
                }
                out.push(']');
            }
            Node::Record(fields) | Node::Args(_, fields) => {
                out.push('{');
                for (i, (name, item)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&quoted(name));
                    out.push(':');
                    if !show(item, false, depth + 1, out) {
                        return false;
                    }
                }
                out.push('}');
            }
            Node::Pair(a, b) => {
                out.push('(');
                if !show(a, false, depth + 1, out) {
                    return false;
                }
                out.push_str(", ");
                if !show(b, false, depth + 1, out) {
                    return false;
                }
                out.push(')');
            }
            Node::Tag(name, payload) => {
                out.push('`');
                out.push_str(name);
                if !matches!(*payload.node, Node::Null) {
                    out.push(' ');
                    return show(payload, false, depth + 1, out);
                }
            }
            _ => out.push_str("<function>"),
        }
        true
    })
}

/// Reads a reply as data: text for text, one of the names for an enumeration, and for everything else JSON,
/// which is the whole reply, or in a code fence, or between the first bracket and the last, whichever first
/// fits.
fn decode(text: &str, ty: Option<&Type>) -> Result<Data, String> {
    let Some(ty) = ty else { return Ok(Data::str(text)) };
    let mut base = ty;
    while let Type::Refined(r) = base {
        base = &r.0;
    }
    let trimmed = text.trim();
    let data = match base {
        Type::Str => Data::str(text),
        Type::Enum(_) => Data::str(trimmed.trim_matches(['"', '`', '\''])),
        _ => {
            let fence = trimmed.split("```").nth(1).filter(|_| trimmed.matches("```").count() > 1);
            let fence = fence.map(|f| f.split_once('\n').map_or(f, |(_, body)| body));
            let open = trimmed.find(['{', '[']).unwrap_or(trimmed.len());
            let close = trimmed.rfind(['}', ']']).map_or(0, |i| i + 1);
            let candidates = [Some(trimmed), fence, trimmed.get(open..close)];
            let read = candidates.into_iter().flatten().filter_map(|c| {
                let json = serde_json::from_str::<serde_json::Value>(c).ok()?;
                ty.read(&json).ok()
            });
            return read.into_iter().find(|d| ty.check(d).is_ok()).ok_or("no JSON that fits".to_string());
        }
    };
    match ty.check(&data) {
        Ok(()) => Ok(data),
        Err((path, cause)) => Err(format!("{path}: {cause}")),
    }
}

/// Generated code contains no `tool[…]`, offers no tools, and contains no `endorse` or `declassify` unless it
/// may.
fn harmless(code: Arc<Code>, endorse: bool) -> Result<Arc<Code>, String> {
    let offers = code.iter().any(|(_, t)| match t {
        Term::Tool(_) | Term::Args(..) => true,
        Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => !params.tools.is_empty(),
        _ => false,
    });
    let declares = code.iter().any(|(_, t)| matches!(t, Term::Mem(..)));
    let mut harm = offers.then_some("tool").or_else(|| declares.then_some("mem"));
    if !endorse {
        let endorses = || code.reaches(|t| matches!(t, Term::Endorse(..)));
        let declassifies = || code.reaches(|t| matches!(t, Term::Declassify(..)));
        harm = harm.or_else(|| endorses().then_some("endorse"));
        harm = harm.or_else(|| declassifies().then_some("declassify"));
    }
    match harm {
        Some(what) => Err(format!("generated code may not contain `{what}`")),
        None => Ok(code),
    }
}

// ── terms ──

/// The term as a tree, variables as names. Global variables are those of the prelude, also in the prelude.
fn convert(code: &Arc<Code>, prelude: &Arc<Globals>, id: TermId) -> E {
    let go = |id: &TermId| convert(code, prelude, *id);
    let all = |ids: &[TermId]| ids.iter().map(go).collect::<Vec<E>>();
    let tool = |id| code.tool(id).clone();
    let model = |params: &Arc<ModelParams>| {
        Rc::new(Model { params: params.clone(), tools: params.tools.iter().map(|t| tool(*t)).collect() })
    };
    let key = |slot: &Option<(core_ir::StoreId, u32)>| {
        let (store, index) = (*slot)?;
        let store = code.store(store);
        let k = store.keys.get(index as usize)?;
        Some(Rc::new(Key {
            store: store.name.clone(),
            name: k.name.clone(),
            ty: k.ty.clone(),
            label: k.label.clone(),
        }))
    };
    stacker::maybe_grow(64 << 10, 4 << 20, || {
        Rc::new(match code.term(id) {
            Term::Var(_, Slot::Global(index)) => Expr::Global(prelude.clone(), *index),
            Term::Var(name, _) => Expr::Var(name.clone()),
            Term::Lit(d) => Expr::Lit(d.clone()),
            Term::Record(fields) => Expr::Record(fields.iter().map(|(n, e)| (n.clone(), go(e))).collect()),
            Term::Args(id, fields) => {
                let fields = fields.iter().map(|(n, e)| (n.clone(), go(e))).collect();
                Expr::Args(tool(*id).name.clone(), fields)
            }
            Term::List(es) => Expr::List(all(es)),
            Term::Abs(abs) => Expr::Abs(abs.param.clone(), go(&abs.body)),
            Term::App(a, b) => Expr::App(go(a), go(b)),
            Term::Let { bindings, body, .. } => {
                return bindings
                    .iter()
                    .rev()
                    .fold(go(body), |body, (x, e)| Rc::new(Expr::Let(x.clone(), go(e), body)));
            }
            Term::Field(e, n) => Expr::Field(go(e), n.clone()),
            Term::Index(a, b) => Expr::Index(go(a), go(b)),
            Term::With(a, n, b) => Expr::With(go(a), n.clone(), go(b)),
            Term::Prim(p, es) => Expr::Prim(*p, all(es)),
            Term::Pair(a, b) => Expr::Pair(go(a), go(b)),
            Term::Fst(e) => Expr::Fst(go(e)),
            Term::Snd(e) => Expr::Snd(go(e)),
            Term::Tag(n, e) => Expr::Tag(n.clone(), e.as_ref().map(go)),
            Term::If(c, a, b, _) => Expr::If(go(c), go(a), go(b)),
            Term::Case { scrutinee, branches, default } => Expr::Case(
                go(scrutinee),
                branches
                    .iter()
                    .map(|Branch { tag, binder, body }| (tag.clone(), binder.clone(), go(body)))
                    .collect(),
                default.as_ref().map(go),
            ),
            Term::Classify(tags, e) => Expr::Classify(tags.clone(), go(e)),
            Term::Fix { bound, body, .. } => Expr::Fix(*bound, go(body)),
            Term::Guard { term, pred, retry } => Expr::Guard(go(term), pred.clone(), *retry),
            // mem e σ is e with the keys of σ in scope, which were resolved when the code was made.
            Term::Mem(_, e) => return go(e),
            Term::Recall(name, slot) => match key(slot) {
                Some(k) => Expr::Recall(k),
                None => Expr::Unknown(name.clone()),
            },
            Term::Remember(name, slot, e) => match key(slot) {
                Some(k) => Expr::Remember(k, go(e)),
                None => Expr::Unknown(name.clone()),
            },
            Term::Choose(p, a, b) => Expr::Choose(p.clone(), go(a), go(b)),
            Term::Llm(e, params) => Expr::Llm(go(e), model(params)),
            Term::Tool(id) => Expr::Tool(tool(*id)),
            Term::Send(role, e) => Expr::Send(*role, go(e)),
            Term::Recv(Recv::Code) => Expr::RecvCode,
            Term::Recv(Recv::Data(params)) => Expr::RecvData(model(params)),
            Term::Fork(e) => Expr::Fork(go(e)),
            Term::Fresh(e) => Expr::Fresh(go(e)),
            Term::Clear => Expr::Clear,
            Term::Relabel(a, b) => Expr::Relabel(go(a), go(b)),
            Term::Test(a, b) => Expr::Test(go(a), go(b)),
            Term::Assert(a, b) => Expr::Assert(go(a), go(b)),
            Term::Endorse(a, b) => Expr::Endorse(go(a), go(b)),
            Term::Declassify(a, b) => Expr::Declassify(go(a), go(b)),
            Term::Try { label, body, catches, name, handler } => {
                Expr::Try(go(label), go(body), *catches, name.clone(), go(handler))
            }
            Term::Fail(e) => Expr::Fail(go(e)),
            Term::Within(n, e) => Expr::Within(n.clone(), go(e)),
            Term::Par(_, es) => Expr::Par(all(es)),
            Term::Each(_, f, list) => Expr::Each(go(f), go(list)),
            Term::Check(_, ty, e) => Expr::Check(ty.clone(), go(e)),
            Term::Unknown(name) => Expr::Unknown(name.clone()),
        })
    })
}

fn children(e: &Expr) -> Vec<&E> {
    match e {
        Expr::Value(_)
        | Expr::Var(_)
        | Expr::Global(..)
        | Expr::Lit(_)
        | Expr::Tag(_, None)
        | Expr::Recall(_)
        | Expr::Tool(_)
        | Expr::RecvCode
        | Expr::RecvData(_)
        | Expr::Clear
        | Expr::Unknown(_) => Vec::new(),
        Expr::Record(fields) | Expr::Args(_, fields) => fields.iter().map(|(_, e)| e).collect(),
        Expr::List(es) | Expr::Prim(_, es) | Expr::Par(es) => es.iter().collect(),
        Expr::Abs(_, e)
        | Expr::Field(e, _)
        | Expr::Fst(e)
        | Expr::Snd(e)
        | Expr::Tag(_, Some(e))
        | Expr::Classify(_, e)
        | Expr::Fix(_, e)
        | Expr::Guard(e, ..)
        | Expr::Remember(_, e)
        | Expr::Llm(e, _)
        | Expr::Send(_, e)
        | Expr::Fork(e)
        | Expr::Fresh(e)
        | Expr::Fail(e)
        | Expr::Within(_, e)
        | Expr::Check(_, e) => vec![e],
        Expr::App(a, b)
        | Expr::Let(_, a, b)
        | Expr::Index(a, b)
        | Expr::With(a, _, b)
        | Expr::Pair(a, b)
        | Expr::Each(a, b)
        | Expr::Choose(_, a, b)
        | Expr::Relabel(a, b)
        | Expr::Test(a, b)
        | Expr::Assert(a, b)
        | Expr::Endorse(a, b)
        | Expr::Declassify(a, b) => vec![a, b],
        Expr::If(a, b, c) | Expr::Try(a, b, _, _, c) => vec![a, b, c],
        Expr::Case(e, branches, default) => {
            [e].into_iter().chain(branches.iter().map(|b| &b.2)).chain(default).collect()
        }
    }
}

/// `e[x := V]`. Values are closed, so nothing can be captured.
fn substitute(e: &E, x: &Name, v: &Value) -> E {
    stacker::maybe_grow(64 << 10, 4 << 20, || {
        let go = |e: &E| substitute(e, x, v);
        // Below a binder of the same name there is nothing to substitute.
        let under = |binder: &Name, e: &E| if binder == x { e.clone() } else { substitute(e, x, v) };
        let all = |es: &[E]| es.iter().map(go).collect::<Vec<E>>();
        Rc::new(match &**e {
            Expr::Var(name) if name == x => Expr::Value(v.clone()),
            Expr::Value(_)
            | Expr::Var(_)
            | Expr::Global(..)
            | Expr::Lit(_)
            | Expr::Tag(_, None)
            | Expr::Recall(_)
            | Expr::Tool(_)
            | Expr::RecvCode
            | Expr::RecvData(_)
            | Expr::Clear
            | Expr::Unknown(_) => return e.clone(),
            Expr::Abs(y, body) => Expr::Abs(y.clone(), under(y, body)),
            Expr::Let(y, a, b) => Expr::Let(y.clone(), go(a), under(y, b)),
            Expr::Try(l, a, c, y, b) => Expr::Try(go(l), go(a), *c, y.clone(), under(y, b)),
            Expr::Case(e, branches, default) => Expr::Case(
                go(e),
                branches
                    .iter()
                    .map(|(tag, binder, body)| {
                        let body = match binder {
                            Some(y) => under(y, body),
                            None => go(body),
                        };
                        (tag.clone(), binder.clone(), body)
                    })
                    .collect(),
                default.as_ref().map(go),
            ),
            Expr::Record(fields) => Expr::Record(fields.iter().map(|(n, e)| (n.clone(), go(e))).collect()),
            Expr::Args(tool, fields) => {
                Expr::Args(tool.clone(), fields.iter().map(|(n, e)| (n.clone(), go(e))).collect())
            }
            Expr::List(es) => Expr::List(all(es)),
            Expr::App(a, b) => Expr::App(go(a), go(b)),
            Expr::Field(e, n) => Expr::Field(go(e), n.clone()),
            Expr::Index(a, b) => Expr::Index(go(a), go(b)),
            Expr::With(a, n, b) => Expr::With(go(a), n.clone(), go(b)),
            Expr::Prim(p, es) => Expr::Prim(*p, all(es)),
            Expr::Pair(a, b) => Expr::Pair(go(a), go(b)),
            Expr::Fst(e) => Expr::Fst(go(e)),
            Expr::Snd(e) => Expr::Snd(go(e)),
            Expr::Tag(n, Some(e)) => Expr::Tag(n.clone(), Some(go(e))),
            Expr::If(c, a, b) => Expr::If(go(c), go(a), go(b)),
            Expr::Classify(tags, e) => Expr::Classify(tags.clone(), go(e)),
            Expr::Fix(bound, e) => Expr::Fix(*bound, go(e)),
            Expr::Guard(e, p, n) => Expr::Guard(go(e), p.clone(), *n),
            Expr::Remember(k, e) => Expr::Remember(k.clone(), go(e)),
            Expr::Choose(p, a, b) => Expr::Choose(p.clone(), go(a), go(b)),
            Expr::Llm(e, m) => Expr::Llm(go(e), m.clone()),
            Expr::Send(r, e) => Expr::Send(*r, go(e)),
            Expr::Fork(e) => Expr::Fork(go(e)),
            Expr::Fresh(e) => Expr::Fresh(go(e)),
            Expr::Relabel(a, b) => Expr::Relabel(go(a), go(b)),
            Expr::Test(a, b) => Expr::Test(go(a), go(b)),
            Expr::Assert(a, b) => Expr::Assert(go(a), go(b)),
            Expr::Endorse(a, b) => Expr::Endorse(go(a), go(b)),
            Expr::Declassify(a, b) => Expr::Declassify(go(a), go(b)),
            Expr::Fail(e) => Expr::Fail(go(e)),
            Expr::Within(n, e) => Expr::Within(n.clone(), go(e)),
            Expr::Par(es) => Expr::Par(all(es)),
            Expr::Each(f, list) => Expr::Each(go(f), go(list)),
            Expr::Check(t, e) => Expr::Check(t.clone(), go(e)),
        })
    })
}

/// The class of an error, which decides whether a `try` is for it.
fn class_of(code: &str, permanent: bool) -> ErrorClass {
    match code {
        "timeout" => ErrorClass::Timeout,
        "flow" | "policy" | "store_refused" => ErrorClass::Refusal,
        "tool" if permanent => ErrorClass::Refusal,
        "limit" | "unknown" | "not_a_label" => ErrorClass::Other,
        other if !catchable(other) => ErrorClass::Other,
        _ => ErrorClass::Error,
    }
}

// ── primitives ──

enum PrimError {
    Failed(String),
    Limit,
    Unknown,
}

/// The primitives as `Prim::ALL` describes them, on stripped values.
fn primitive(prim: Prim, operands: &[Value], max_text: usize) -> Result<Value, PrimError> {
    use Node::{Bool, List, Num as Number, Record, Str};
    let fail = |why: &str| Err(PrimError::Failed(format!("{}: {why}", prim.name())));
    let give = |node: Node| Ok(value(Label::BOTTOM, node));
    let text = |s: String| give(Str(s.into()));
    let count = |n: usize| give(Number(Num::from(n as i64)));
    let arith = |r: Result<Num, core_ir::NumError>| match r {
        Ok(n) => give(Number(n)),
        Err(e) => fail(&e.to_string()),
    };
    let nodes: Vec<&Node> = operands.iter().map(|v| &*v.node).collect();
    match (prim, &nodes[..]) {
        (Prim::Neg, [Number(a)]) => give(Number(a.neg())),
        (Prim::Not, [Bool(a)]) => give(Bool(!a)),
        (Prim::Add, [Number(a), Number(b)]) => arith(a.add(b)),
        (Prim::Add, [Str(a), Str(b)]) => text(format!("{a}{b}")),
        (Prim::Add, [List(a), List(b)]) => give(List(a.iter().chain(b).cloned().collect())),
        (Prim::Sub, [Number(a), Number(b)]) => arith(a.sub(b)),
        (Prim::Mul, [Number(a), Number(b)]) => arith(a.mul(b)),
        (Prim::Div, [Number(a), Number(b)]) => arith(a.div(b)),
        (Prim::Rem, [Number(a), Number(b)]) => arith(a.rem(b)),
        (Prim::Eq, [_, _]) => give(Bool(equal(&operands[0], &operands[1])?)),
        (Prim::Ne, [_, _]) => give(Bool(!equal(&operands[0], &operands[1])?)),
        (Prim::Lt, [Number(a), Number(b)]) => give(Bool(a < b)),
        (Prim::Le, [Number(a), Number(b)]) => give(Bool(a <= b)),
        (Prim::Gt, [Number(a), Number(b)]) => give(Bool(a > b)),
        (Prim::Ge, [Number(a), Number(b)]) => give(Bool(a >= b)),
        (Prim::Lt, [Str(a), Str(b)]) => give(Bool(a < b)),
        (Prim::Le, [Str(a), Str(b)]) => give(Bool(a <= b)),
        (Prim::Gt, [Str(a), Str(b)]) => give(Bool(a > b)),
        (Prim::Ge, [Str(a), Str(b)]) => give(Bool(a >= b)),
        (Prim::Format, _) | (Prim::ToStr, [_]) => {
            let mut out = String::new();
            for v in operands {
                if !show(v, true, 0, &mut out) || out.len() > max_text {
                    return Err(PrimError::Limit);
                }
            }
            text(out)
        }
        (Prim::Length, [Str(s)]) => count(s.chars().count()),
        (Prim::Length, [List(l)]) => count(l.len()),
        (Prim::Length, [Record(r)]) => count(r.len()),
        (Prim::Keys, [Record(r)]) => {
            give(List(r.iter().map(|(n, _)| value(Label::BOTTOM, Str((**n).into()))).collect()))
        }
        (Prim::Has, [Record(_), Str(name)]) => give(Bool(field(&operands[0], name).is_some())),
        (Prim::Append, [List(l), _]) => give(List(l.iter().chain([&operands[1]]).cloned().collect())),
        (Prim::Range, [Number(a), Number(b)]) => match (a.to_i64(), b.to_i64()) {
            (Some(a), Some(b)) => {
                give(List((a..b).map(|i| value(Label::BOTTOM, Number(Num::from(i)))).collect()))
            }
            _ => fail("not integers"),
        },
        (Prim::IsFn, [_]) => give(Bool(is_function(&operands[0]))),
        (Prim::IsArray, [a]) => give(Bool(matches!(a, List(_)))),
        (Prim::IsRecord, [a]) => give(Bool(matches!(a, Record(_)))),
        (Prim::IsStr, [a]) => give(Bool(matches!(a, Str(_)))),
        (Prim::IsNum, [a]) => give(Bool(matches!(a, Number(_)))),
        (Prim::IsBool, [a]) => give(Bool(matches!(a, Bool(_)))),
        (Prim::IsNull, [a]) => give(Bool(matches!(a, Node::Null))),
        (Prim::ToNum, [Str(s)]) => match s.trim().parse::<Num>() {
            Ok(n) => give(Number(n)),
            Err(e) => fail(&e.to_string()),
        },
        (Prim::Lower, [Str(s)]) => text(s.to_lowercase()),
        (Prim::Upper, [Str(s)]) => text(s.to_uppercase()),
        (Prim::Trim, [Str(s)]) => text(s.trim().to_string()),
        (Prim::Split, [Str(s), Str(by)]) if !by.is_empty() => {
            give(List(s.split(&**by).map(|p| value(Label::BOTTOM, Str(p.into()))).collect()))
        }
        (Prim::Join, [List(items), Str(between)]) => {
            let mut parts: Vec<&str> = Vec::new();
            for item in items {
                match &*item.node {
                    Str(s) => parts.push(s),
                    _ => return fail("not strings"),
                }
            }
            text(parts.join(between))
        }
        (Prim::Contains, [Str(s), Str(part)]) => give(Bool(s.contains(&**part))),
        (Prim::Contains, [List(items), _]) => {
            // As `==`, whatever is found first: fails on functions.
            equal(&operands[0], &operands[0])?;
            equal(&operands[1], &operands[1])?;
            let mut found = false;
            for item in items {
                found |= equal(item, &operands[1])?;
            }
            give(Bool(found))
        }
        (Prim::Slice, [whole, Number(from), Number(to)]) => {
            let (Some(from), Some(to)) = (from.to_usize(), to.to_usize()) else {
                return fail("not indices");
            };
            let most = to.saturating_sub(from);
            match whole {
                Str(s) => text(s.chars().skip(from).take(most).collect()),
                List(l) => give(List(l.iter().skip(from).take(most).cloned().collect())),
                _ => fail("not a string or list"),
            }
        }
        (Prim::Flatten, [_]) => Ok(operands[0].clone()),
        (Prim::ToJson, [_]) => match Run::data(&operands[0]) {
            Ok(d) => text(d.to_json().to_string()),
            Err(NotData::Function) => fail("a function is not data"),
            Err(NotData::TooDeep) => Err(PrimError::Limit),
        },
        (Prim::FromJson, [Str(s)]) => match serde_json::from_str::<serde_json::Value>(s) {
            Ok(json) => match Data::from_json(&json) {
                Ok(d) => Ok(literal(Label::BOTTOM, &d)),
                Err(e) => fail(&e.to_string()),
            },
            Err(e) => fail(&e.to_string()),
        },
        (Prim::Py, [Str(op), ..]) => {
            let mut data = Vec::new();
            for operand in &operands[1..] {
                match Run::data(operand) {
                    Ok(d) => data.push(d),
                    Err(NotData::Function) => return fail("a function is not data"),
                    Err(NotData::TooDeep) => return Err(PrimError::Limit),
                }
            }
            match core_ir::py::apply(op, &data, max_text) {
                Ok(d) => Ok(literal(Label::BOTTOM, &d)),
                Err(core_ir::py::PyError::Limit | core_ir::py::PyError::Rounds(_)) => Err(PrimError::Limit),
                Err(core_ir::py::PyError::Unsupported(_)) => Err(PrimError::Unknown),
                Err(core_ir::py::PyError::Raise(_, message)) => fail(&message),
                Err(_) => fail("no such operation of these operands"),
            }
        }
        _ => fail("wrong operands"),
    }
}

/// Compares two values. Fails if either contains a function.
fn equal(a: &Value, b: &Value) -> Result<bool, PrimError> {
    fn has_function(v: &Value) -> bool {
        stacker::maybe_grow(64 << 10, 4 << 20, || match &*v.node {
            Node::List(items) => items.iter().any(has_function),
            Node::Record(fields) => fields.iter().any(|(_, f)| has_function(f)),
            Node::Pair(a, b) => has_function(a) || has_function(b),
            Node::Tag(_, p) => has_function(p),
            _ => is_function(v),
        })
    }
    fn same(a: &Value, b: &Value) -> bool {
        stacker::maybe_grow(64 << 10, 4 << 20, || match (&*a.node, &*b.node) {
            (Node::Null, Node::Null) => true,
            (Node::Bool(a), Node::Bool(b)) => a == b,
            (Node::Num(a), Node::Num(b)) => a == b,
            (Node::Str(a), Node::Str(b)) => a == b,
            (Node::List(a), Node::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
            // Whatever the order of the fields.
            (Node::Record(x), Node::Record(y)) => {
                x.len() == y.len() && x.iter().all(|(n, v)| field(b, n).is_some_and(|w| same(v, w)))
            }
            (Node::Pair(a, c), Node::Pair(b, d)) => same(a, b) && same(c, d),
            (Node::Tag(m, a), Node::Tag(n, b)) => m == n && same(a, b),
            _ => false,
        })
    }
    if has_function(a) || has_function(b) {
        return Err(PrimError::Failed("functions are not compared".into()));
    }
    Ok(same(a, b))
}
