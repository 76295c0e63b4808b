//! How often a run may call models and tools, before it runs.
//!
//! Entry point: [`bound`]. The term is evaluated over abstract values: functions are followed through
//! variables, records and calls; data is not known. A `fix` is bounded by its number and by how often
//! one unfolding calls itself.
//!
//! Invariant: an upper bound is never exceeded by a run. Where the analysis cannot tell, the bound is
//! absent and a reason says which place it is due to; it is never guessed.
//!
//! Source: `docs/calculus.md` §4 corrections 1 and 2; seed 000 Theorems 5.4 and 5.6, corrected.

use core_ir::{Bound, Code, Globals, ModelParams, Name, Recv, Slot, Term, TermId, ToolId, Type};
use diagnostics::{FileId, Span};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// From how many to how many, in a run that ends without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// At least so many.
    pub least: u64,
    /// At most so many, also in a run that fails; `None` if no bound is known.
    pub most: Option<u64>,
}

impl Interval {
    const ZERO: Interval = Interval { least: 0, most: Some(0) };

    fn up_to(least: u64, most: u64) -> Interval {
        Interval { least, most: Some(most) }
    }

    fn plus(self, other: Interval) -> Interval {
        Interval {
            least: self.least.saturating_add(other.least),
            most: self.most.zip(other.most).map(|(a, b)| a.saturating_add(b)),
        }
    }

    fn envelope(self, other: Interval) -> Interval {
        Interval {
            least: self.least.min(other.least),
            most: self.most.zip(other.most).map(|(a, b)| a.max(b)),
        }
    }

    fn times(self, n: u64) -> Interval {
        Interval {
            least: self.least.saturating_mul(n),
            most: if n == 0 { Some(0) } else { self.most.map(|m| m.saturating_mul(n)) },
        }
    }
}

impl fmt::Display for Interval {
    /// `3`, `1 to 4`, or `at least 1, no bound`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.most {
            Some(m) if m == self.least => write!(f, "{m}"),
            Some(m) => write!(f, "{} to {m}", self.least),
            None => write!(f, "at least {}, no bound", self.least),
        }
    }
}

/// What a run may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostBound {
    /// Calls of models, repairs included.
    pub model_calls: Interval,
    /// Calls of tools.
    pub tool_calls: Interval,
    /// Why a bound is absent: the places, each with a remark.
    pub unbounded: Vec<(Span, String)>,
}

/// The bound of evaluating a code (with the prelude that it was resolved against), and, if it is to be applied to an input, of applying its value.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, ModelParams, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let mut ask = || {
///     let p = b.lit("Translate.", at);
///     b.add(Term::Llm(p, ModelParams::default().into()), at)
/// };
/// let stages = vec![ask(), ask()];
/// let pipe = b.compose(stages, at);
/// let code = b.finish(pipe, &Globals::none()).unwrap();
/// assert_eq!(check::cost::bound(&code.into(), true).model_calls.to_string(), "2");
/// ```
pub fn bound(code: &Arc<Code>, applied: bool) -> CostBound {
    let root = code.span(code.root());
    let mut a = Analysis {
        globals: code.globals().clone(),
        source: root.file,
        blamed: root,
        steps: MOST_STEPS,
        depth: 0,
        next_self: 0,
        reasons: Vec::new(),
    };
    let env = Rc::new(Env { locals: Vec::new(), captures: Vec::new() });
    let (value, mut cost) = a.eval(code, code.root(), &env);
    if applied {
        let (_, called) = a.apply(&value, Value::Data, code.span(code.root()));
        cost = cost.plus(&called);
    }
    let mut unbounded = a.reasons;
    let mut seen = std::collections::HashSet::new();
    unbounded.retain(|reason| seen.insert(reason.clone()));
    CostBound { model_calls: cost.models, tool_calls: cost.tools, unbounded }
}

/// Terms looked at before the analysis gives up.
const MOST_STEPS: u64 = 2_000_000;
/// Calls followed into each other before the analysis gives up.
const MOST_DEPTH: u32 = 300;
/// Alternatives kept apart where branches give different functions.
const MOST_CHOICES: usize = 16;

/// An abstract value.
#[derive(Clone)]
enum Value {
    /// Data without functions inside.
    Data,
    /// Anything, including functions of which nothing is known.
    Unknown,
    Closure(Rc<Closure>),
    /// The prelude's `fix`: applied to a function it is `fix[∞]` of it.
    PreludeFix,
    Fix(Bound, Rc<Value>, Span),
    Guarded(Rc<Value>, u32),
    Llm(Arc<ModelParams>),
    Tool,
    /// The self reference of an unfolding that is being measured.
    Own(u32),
    Record(Rc<Vec<(Name, Value)>>),
    List(Rc<Vec<Value>>),
    Tag(Name, Rc<Value>),
    /// One of these.
    Choice(Rc<Vec<Value>>),
}

struct Closure {
    code: Arc<Code>,
    term: TermId,
    captures: Vec<Value>,
}

struct Env {
    locals: Vec<Value>,
    captures: Vec<Value>,
}

#[derive(Clone)]
struct Cost {
    models: Interval,
    tools: Interval,
    /// The most calls of each self reference that is being measured.
    own: BTreeMap<u32, u64>,
}

impl Cost {
    fn zero() -> Cost {
        Cost { models: Interval::ZERO, tools: Interval::ZERO, own: BTreeMap::new() }
    }

    fn unknown() -> Cost {
        let open = Interval { least: 0, most: None };
        Cost { models: open, tools: open, own: BTreeMap::new() }
    }

    fn plus(&self, other: &Cost) -> Cost {
        let mut own = self.own.clone();
        for (k, n) in &other.own {
            let sum = own.entry(*k).or_default();
            *sum = sum.saturating_add(*n);
        }
        Cost { models: self.models.plus(other.models), tools: self.tools.plus(other.tools), own }
    }

    fn envelope(&self, other: &Cost) -> Cost {
        let mut own = self.own.clone();
        for (k, n) in &other.own {
            let most = own.entry(*k).or_default();
            *most = (*most).max(*n);
        }
        Cost { models: self.models.envelope(other.models), tools: self.tools.envelope(other.tools), own }
    }

    fn times(&self, n: u64) -> Cost {
        let own = self.own.iter().map(|(k, m)| (*k, m.saturating_mul(n))).collect();
        Cost { models: self.models.times(n), tools: self.tools.times(n), own }
    }

    /// The same, but perhaps not at all.
    fn optional(&self) -> Cost {
        self.envelope(&Cost::zero())
    }
}

struct Analysis {
    globals: Arc<Globals>,
    /// The file of the program itself; places elsewhere (in the prelude) mean nothing to its author.
    source: FileId,
    /// The last place in the program itself.
    blamed: Span,
    steps: u64,
    depth: u32,
    next_self: u32,
    reasons: Vec<(Span, String)>,
}

impl Value {
    fn join(a: Value, b: Value) -> Value {
        match (a, b) {
            (Value::Data, Value::Data) => Value::Data,
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            (a, b) => {
                let mut all = Vec::new();
                for v in [a, b] {
                    match v {
                        Value::Choice(vs) => all.extend(vs.iter().cloned()),
                        v => all.push(v),
                    }
                }
                if all.iter().filter(|v| matches!(v, Value::Data)).count() > 1 {
                    let mut data = false;
                    all.retain(|v| !matches!(v, Value::Data) || !std::mem::replace(&mut data, true));
                }
                if all.len() > MOST_CHOICES { Value::Unknown } else { Value::Choice(Rc::new(all)) }
            }
        }
    }

    /// Whether a self reference of number `from` or later is inside.
    fn holds_own(&self, from: u32) -> bool {
        match self {
            Value::Own(k) => *k >= from,
            Value::Data | Value::Unknown | Value::Llm(_) | Value::Tool | Value::PreludeFix => false,
            Value::Closure(c) => c.captures.iter().any(|v| v.holds_own(from)),
            Value::Fix(_, v, _) | Value::Guarded(v, _) | Value::Tag(_, v) => v.holds_own(from),
            Value::Record(fs) => fs.iter().any(|(_, v)| v.holds_own(from)),
            Value::List(vs) | Value::Choice(vs) => vs.iter().any(|v| v.holds_own(from)),
        }
    }
}

/// How many calls one question to a model may take.
fn asks(params: &ModelParams) -> Interval {
    let may_fail = !params.tools.is_empty() || !matches!(params.result, None | Some(Type::Str | Type::Dyn));
    Interval::up_to(1, 1 + if may_fail { u64::from(params.repair) } else { 0 })
}

impl Analysis {
    fn give_up(&mut self, span: Span, why: impl Into<String>) -> (Value, Cost) {
        self.reason(span, why);
        (Value::Unknown, Cost::unknown())
    }

    fn reason(&mut self, span: Span, why: impl Into<String>) {
        let span = if span.file == self.source { span } else { self.blamed };
        self.reasons.push((span, why.into()));
    }

    fn eval(&mut self, code: &Arc<Code>, id: TermId, env: &Rc<Env>) -> (Value, Cost) {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.eval_inner(code, id, env))
    }

    /// All of these, one after the other; their values do not matter.
    fn sequence(&mut self, code: &Arc<Code>, ids: &[TermId], env: &Rc<Env>) -> Cost {
        ids.iter().fold(Cost::zero(), |c, id| c.plus(&self.eval(code, *id, env).1))
    }

    fn bind(env: &Rc<Env>, at: usize, value: Value) -> Rc<Env> {
        let mut locals = env.locals[..at.min(env.locals.len())].to_vec();
        locals.push(value);
        Rc::new(Env { locals, captures: env.captures.clone() })
    }

    fn eval_inner(&mut self, code: &Arc<Code>, id: TermId, env: &Rc<Env>) -> (Value, Cost) {
        let span = code.span(id);
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return self.give_up(span, "the analysis stopped here: the program is too large for it");
        }
        match code.term(id) {
            Term::Var(_, slot) => (self.read(env, *slot), Cost::zero()),
            Term::Lit(_) | Term::Clear | Term::Recall(..) | Term::Tag(_, None) => (Value::Data, Cost::zero()),
            Term::Abs(abs) => {
                let captures = abs.captures.iter().map(|s| self.read(env, *s)).collect();
                let closure = Closure { code: code.clone(), term: id, captures };
                (Value::Closure(Rc::new(closure)), Cost::zero())
            }
            Term::Record(fields) => {
                let mut cost = Cost::zero();
                let mut out = Vec::with_capacity(fields.len());
                for (name, e) in fields {
                    let (v, c) = self.eval(code, *e, env);
                    cost = cost.plus(&c);
                    out.push((name.clone(), v));
                }
                (Value::Record(Rc::new(out)), cost)
            }
            Term::List(items) => self.list(code, items, env),
            Term::Par(_, items) => self.list(code, items, env),
            Term::Each(_, f, list) => {
                let (f, made) = self.eval(code, *f, env);
                let (list, given) = self.eval(code, *list, env);
                let before = made.plus(&given);
                match &list {
                    Value::List(items) => {
                        let (mut cost, mut out) = (before, Vec::with_capacity(items.len()));
                        for item in items.iter() {
                            let (v, c) = self.apply(&f, item.clone(), span);
                            cost = cost.plus(&c);
                            out.push(v);
                        }
                        (Value::List(Rc::new(out)), cost)
                    }
                    other => {
                        let item = if is_plain(other) { Value::Data } else { Value::Unknown };
                        let (v, once) = self.apply(&f, item, span);
                        let spends = |i: Interval| i.most != Some(0);
                        if spends(once.models) || spends(once.tools) || !once.own.is_empty() {
                            self.reason(
                                span,
                                "as often as the list has items, which is known only when it runs",
                            );
                        }
                        let open =
                            |i: Interval| if spends(i) { Interval { least: 0, most: None } } else { i };
                        let own = once.own.keys().map(|k| (*k, u64::MAX)).collect();
                        let all = Cost { models: open(once.models), tools: open(once.tools), own };
                        (if is_plain(&v) { Value::Data } else { Value::Unknown }, before.plus(&all))
                    }
                }
            }
            Term::Pair(a, b) => self.list(code, &[*a, *b], env),
            Term::Fst(e) | Term::Snd(e) => {
                let (v, c) = self.eval(code, *e, env);
                let at = usize::from(matches!(code.term(id), Term::Snd(_)));
                (self.part(&v, &|vs| vs.get(at).cloned()), c)
            }
            Term::Index(a, b) => {
                let (v, c) = self.eval(code, *a, env);
                let (_, d) = self.eval(code, *b, env);
                let at = match code.term(*b) {
                    Term::Lit(core_ir::Data::Num(n)) => n.to_usize(),
                    _ => None,
                };
                let v = self.part(&v, &|vs| match at {
                    Some(i) => vs.get(i).cloned(),
                    None => vs.iter().cloned().reduce(Value::join),
                });
                (v, c.plus(&d))
            }
            Term::Field(e, name) => {
                let (v, c) = self.eval(code, *e, env);
                (field(&v, name), c)
            }
            Term::With(e, name, x) => {
                let (v, c) = self.eval(code, *e, env);
                let (new, d) = self.eval(code, *x, env);
                let v = match v {
                    Value::Record(fields) => {
                        let mut fields: Vec<_> = fields.iter().filter(|(n, _)| n != name).cloned().collect();
                        fields.push((name.clone(), new));
                        Value::Record(Rc::new(fields))
                    }
                    Value::Data if matches!(new, Value::Data) => Value::Data,
                    _ => Value::Unknown,
                };
                (v, c.plus(&d))
            }
            Term::Tag(name, Some(e)) => {
                let (v, c) = self.eval(code, *e, env);
                (Value::Tag(name.clone(), Rc::new(v)), c)
            }
            Term::Prim(p, es) => {
                let cost = self.sequence(code, es, env);
                // Lists may carry functions through these.
                let carries = matches!(
                    p,
                    core_ir::Prim::Add
                        | core_ir::Prim::Append
                        | core_ir::Prim::Slice
                        | core_ir::Prim::Flatten
                );
                let v = if carries { self.carried(code, es, env) } else { Value::Data };
                (v, cost)
            }
            Term::App(f, x) => {
                let (f, c) = self.eval(code, *f, env);
                let (x, d) = self.eval(code, *x, env);
                let (v, e) = self.apply(&f, x, span);
                (v, c.plus(&d).plus(&e))
            }
            Term::Let { bindings, body, .. } => {
                let mut cost = Cost::zero();
                let mut locals = env.locals[..code.locals(id).min(env.locals.len())].to_vec();
                for (_, e) in bindings {
                    let inner = Rc::new(Env { locals: locals.clone(), captures: env.captures.clone() });
                    let (v, c) = self.eval(code, *e, &inner);
                    cost = cost.plus(&c);
                    locals.push(v);
                }
                let inner = Rc::new(Env { locals, captures: env.captures.clone() });
                let (v, c) = self.eval(code, *body, &inner);
                (v, cost.plus(&c))
            }
            Term::If(c, a, b, _) => {
                let (_, cost) = self.eval(code, *c, env);
                self.branches(code, &[(*a, env.clone()), (*b, env.clone())], cost)
            }
            Term::Choose(_, a, b) => {
                self.branches(code, &[(*a, env.clone()), (*b, env.clone())], Cost::zero())
            }
            Term::Case { scrutinee, branches, default } => {
                let (v, cost) = self.eval(code, *scrutinee, env);
                let at = code.locals(id);
                let mut ways = Vec::new();
                for b in branches {
                    let payload = match &v {
                        Value::Tag(name, p) if *name == b.tag => (**p).clone(),
                        Value::Tag(..) => continue,
                        Value::Data => Value::Data,
                        _ => Value::Unknown,
                    };
                    let env = if b.binder.is_some() { Self::bind(env, at, payload) } else { env.clone() };
                    ways.push((b.body, env));
                }
                // A tag that has a branch does not take the default.
                if let Some(e) = default
                    && (ways.is_empty() || !matches!(v, Value::Tag(..)))
                {
                    ways.push((*e, env.clone()));
                }
                self.branches(code, &ways, cost)
            }
            Term::Fix { bound, body, .. } => {
                let (v, c) = self.eval(code, *body, env);
                (Value::Fix(*bound, Rc::new(v), span), c)
            }
            Term::Guard { term, retry, .. } => {
                let (v, c) = self.eval(code, *term, env);
                match v {
                    v if is_plain(&v) => {
                        let all = c.times(u64::from(*retry) + 1);
                        (
                            v,
                            Cost {
                                models: least(all.models, c.models),
                                tools: least(all.tools, c.tools),
                                own: all.own,
                            },
                        )
                    }
                    Value::Unknown => (Value::Unknown, c.times(u64::from(*retry) + 1).optional()),
                    v => {
                        let all = c.times(u64::from(*retry) + 1).envelope(&c);
                        (Value::Guarded(Rc::new(v), *retry), all)
                    }
                }
            }
            Term::Mem(_, e) | Term::Fork(e) | Term::Fresh(e) | Term::Within(_, e) | Term::Check(_, _, e) => {
                self.eval(code, *e, env)
            }
            Term::Classify(_, e) | Term::Send(_, e) | Term::Remember(_, _, e) | Term::Fail(e) => {
                let (_, c) = self.eval(code, *e, env);
                (Value::Data, c)
            }
            Term::Llm(e, params) => {
                let (_, c) = self.eval(code, *e, env);
                (Value::Llm(params.clone()), c)
            }
            Term::Tool(ToolId(_)) => (Value::Tool, Cost::zero()),
            Term::Recv(Recv::Data(params)) => (Value::Data, Cost { models: asks(params), ..Cost::zero() }),
            Term::Recv(Recv::Code) => {
                self.reasons
                    .push((span, "the model's reply is run as code, which may call models itself".into()));
                let (v, cost) = (Value::Unknown, Cost::unknown());
                (v, cost.plus(&Cost { models: Interval::up_to(1, 1), ..Cost::zero() }))
            }
            Term::Relabel(a, b) | Term::Endorse(a, b) | Term::Declassify(a, b) => {
                let (_, c) = self.eval(code, *a, env);
                let (v, d) = self.eval(code, *b, env);
                (v, c.plus(&d))
            }
            Term::Test(a, b) | Term::Assert(a, b) => (Value::Data, self.sequence(code, &[*a, *b], env)),
            Term::Try { label, body, handler, .. } => {
                let (_, c) = self.eval(code, *label, env);
                let (v, tried) = self.eval(code, *body, env);
                let inner = Self::bind(env, code.locals(id), Value::Data);
                let (w, handled) = self.eval(code, *handler, &inner);
                // The body may fail at any point and the handler run after that.
                let both = tried.plus(&handled);
                let some = both.envelope(&tried).envelope(&handled);
                let models =
                    Interval { least: some.models.least.min(handled.models.least), most: both.models.most };
                let tools =
                    Interval { least: some.tools.least.min(handled.tools.least), most: both.tools.most };
                (Value::join(v, w), c.plus(&Cost { models, tools, own: both.own }))
            }
            Term::Unknown(reason) => self.give_up(span, format!("not known before the run: {reason}")),
        }
    }

    /// Values of parts that a primitive may hand on: data if none is a function.
    fn carried(&mut self, code: &Arc<Code>, es: &[TermId], env: &Rc<Env>) -> Value {
        let reasons = self.reasons.len();
        let all_data = es.iter().all(|e| is_plain(&self.eval(code, *e, env).0));
        self.reasons.truncate(reasons);
        if all_data { Value::Data } else { Value::Unknown }
    }

    fn list(&mut self, code: &Arc<Code>, items: &[TermId], env: &Rc<Env>) -> (Value, Cost) {
        let mut cost = Cost::zero();
        let mut out = Vec::with_capacity(items.len());
        for e in items {
            let (v, c) = self.eval(code, *e, env);
            cost = cost.plus(&c);
            out.push(v);
        }
        (Value::List(Rc::new(out)), cost)
    }

    fn branches(&mut self, code: &Arc<Code>, ways: &[(TermId, Rc<Env>)], before: Cost) -> (Value, Cost) {
        let mut all: Option<(Value, Cost)> = None;
        for (e, env) in ways {
            let (v, c) = self.eval(code, *e, env);
            all = Some(match all {
                None => (v, c),
                Some((w, d)) => (Value::join(w, v), d.envelope(&c)),
            });
        }
        let (v, c) = all.unwrap_or((Value::Data, Cost::zero()));
        (v, before.plus(&c))
    }

    fn read(&mut self, env: &Rc<Env>, slot: Slot) -> Value {
        match slot {
            Slot::Local(i) => env.locals.get(i as usize).cloned().unwrap_or(Value::Unknown),
            Slot::Captured(i) => env.captures.get(i as usize).cloned().unwrap_or(Value::Unknown),
            Slot::Global(i) => match self.globals.get(i) {
                _ if self.globals.names().get(i as usize).is_some_and(|n| &**n == "fix") => Value::PreludeFix,
                Some((code, term)) => {
                    Value::Closure(Rc::new(Closure { code: code.clone(), term, captures: Vec::new() }))
                }
                None => Value::Unknown,
            },
        }
    }

    /// A part of a container.
    fn part(&mut self, v: &Value, pick: &dyn Fn(&[Value]) -> Option<Value>) -> Value {
        match v {
            Value::Data => Value::Data,
            Value::List(vs) => pick(vs).unwrap_or(Value::Data),
            _ => Value::Unknown,
        }
    }

    fn apply(&mut self, f: &Value, x: Value, span: Span) -> (Value, Cost) {
        if span.file == self.source {
            self.blamed = span;
        }
        if self.depth >= MOST_DEPTH {
            return self.give_up(span, "no bound on how deep this recursion goes");
        }
        self.depth += 1;
        let result = stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.apply_inner(f, x, span));
        self.depth -= 1;
        result
    }

    fn apply_inner(&mut self, f: &Value, x: Value, span: Span) -> (Value, Cost) {
        match f {
            Value::Closure(c) => {
                let Term::Abs(abs) = c.code.term(c.term) else {
                    return self.give_up(span, "not a function");
                };
                let env = Rc::new(Env { locals: vec![x], captures: c.captures.clone() });
                self.eval(&c.code.clone(), abs.body, &env)
            }
            Value::PreludeFix => {
                let at = if span.file == self.source { span } else { self.blamed };
                (Value::Fix(Bound::Infinite, Rc::new(x), at), Cost::zero())
            }
            Value::Llm(params) => (Value::Data, Cost { models: asks(params), ..Cost::zero() }),
            Value::Tool => (Value::Data, Cost { tools: Interval::up_to(1, 1), ..Cost::zero() }),
            Value::Own(k) => {
                if x.holds_own(0) {
                    return self.give_up(span, "the loop hands itself on, so its calls cannot be counted");
                }
                (Value::Data, Cost { own: BTreeMap::from([(*k, 1)]), ..Cost::zero() })
            }
            Value::Guarded(f, retry) => {
                let (v, c) = self.apply(f, x, span);
                let all = c.times(u64::from(*retry) + 1);
                (
                    v,
                    Cost {
                        models: least(all.models, c.models),
                        tools: least(all.tools, c.tools),
                        own: all.own,
                    },
                )
            }
            Value::Fix(bound, body, at) => self.unfold(*bound, body, x, *at),
            Value::Choice(fs) => {
                let fs = fs.clone();
                let mut all: Option<(Value, Cost)> = None;
                for f in fs.iter() {
                    let (v, c) = self.apply(f, x.clone(), span);
                    all = Some(match all {
                        None => (v, c),
                        Some((w, d)) => (Value::join(w, v), d.envelope(&c)),
                    });
                }
                all.unwrap_or((Value::Data, Cost::zero()))
            }
            // Applying data is an error, which costs nothing.
            Value::Data | Value::Record(_) | Value::List(_) | Value::Tag(..) => (Value::Data, Cost::zero()),
            Value::Unknown => self.give_up(span, "it is not known which function is called here"),
        }
    }

    /// `fix[n] F x`: the cost of one unfolding, as often as unfoldings can happen.
    fn unfold(&mut self, bound: Bound, body: &Value, x: Value, at: Span) -> (Value, Cost) {
        if bound == Bound::Finite(0) {
            return (x, Cost::zero());
        }
        let own = self.next_self;
        self.next_self += 1;
        let (g, made) = self.apply(body, Value::Own(own), at);
        // Later unfoldings get an argument that is not known here.
        let argument = if is_plain(&x) { Value::Data } else { Value::Unknown };
        let (v, called) = self.apply(&g, argument, at);
        if v.holds_own(own) {
            return self.give_up(at, "the loop hands itself on, so its calls cannot be counted");
        }
        let mut once = made.plus(&called);
        let k = once.own.remove(&own).unwrap_or(0);
        let unfoldings = match (bound, k) {
            (_, 0) => Some(1),
            (Bound::Infinite, _) => None,
            (Bound::Finite(n), 1) => Some(n),
            // (k^n - 1) / (k - 1), that is 1 + k + … + k^(n-1).
            (Bound::Finite(n), k) => {
                let mut sum: u64 = 0;
                for _ in 0..n.min(64) {
                    sum = sum.saturating_mul(k).saturating_add(1);
                }
                Some(if n > 64 { u64::MAX } else { sum })
            }
        };
        let spends = |i: Interval| i.most != Some(0);
        let total = match unfoldings {
            Some(n) => once.times(n),
            None => {
                if spends(once.models) || spends(once.tools) || !once.own.is_empty() {
                    self.reason(at, "this loop has no bound");
                }
                let open = |i: Interval| if spends(i) { Interval { least: i.least, most: None } } else { i };
                Cost { models: open(once.models), tools: open(once.tools), own: once.own.clone() }
            }
        };
        let result = if is_plain(&v) { Value::Data } else { Value::Unknown };
        (
            result,
            Cost {
                models: least(total.models, once.models),
                tools: least(total.tools, once.tools),
                own: total.own,
            },
        )
    }
}

/// The upper end of one interval with the lower end of another: retries and unfoldings may not happen.
fn least(all: Interval, once: Interval) -> Interval {
    Interval { least: once.least, most: all.most }
}

/// Whether a value is data through and through.
fn is_plain(v: &Value) -> bool {
    match v {
        Value::Data => true,
        Value::Record(fs) => fs.iter().all(|(_, v)| is_plain(v)),
        Value::List(vs) | Value::Choice(vs) => vs.iter().all(is_plain),
        Value::Tag(_, v) => is_plain(v),
        _ => false,
    }
}

fn field(v: &Value, name: &Name) -> Value {
    match v {
        Value::Data => Value::Data,
        Value::Record(fields) => {
            fields.iter().find(|(n, _)| n == name).map_or(Value::Data, |(_, v)| v.clone())
        }
        Value::Choice(vs) => vs.iter().map(|v| field(v, name)).reduce(Value::join).unwrap_or(Value::Data),
        _ => Value::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{Builder, Catches, Data, EffectClass, Globals, IfSugar, LabelSpec, Num, Pred, ToolDecl};
    use diagnostics::FileId;

    const AT: Span = Span { file: FileId(0), start: 0, end: 0 };

    fn of(applied: bool, build: impl FnOnce(&mut Builder) -> TermId) -> CostBound {
        let mut b = Builder::new();
        let root = build(&mut b);
        bound(&Arc::new(b.finish(root, &Globals::none()).unwrap()), applied)
    }

    fn llm(b: &mut Builder, repair: u32) -> TermId {
        let prompt = b.lit("p", AT);
        let params = ModelParams { result: Some(Type::Num), repair, ..ModelParams::default() };
        b.add(Term::Llm(prompt, params.into()), AT)
    }

    /// `fix[n] (λs. λx. …)` with a body made of `s` and `x`.
    fn fix(b: &mut Builder, n: Bound, body: impl FnOnce(&mut Builder) -> TermId) -> TermId {
        let body = body(b);
        let f = b.abs("x", None, body, AT);
        let f = b.abs("s", None, f, AT);
        b.add(Term::Fix { bound: n, origin: None, body: f }, AT)
    }

    fn call(b: &mut Builder, f: &str, x: TermId) -> TermId {
        let f = b.var(f, AT);
        b.app(f, x, AT)
    }

    #[test]
    fn repairs_and_retries_count() {
        let c = of(true, |b| {
            let x = b.var("x", AT);
            let f = llm(b, 2);
            let call = b.app(f, x, AT);
            let g = b.add(Term::Guard { term: call, pred: Pred::True, retry: 3 }, AT);
            b.abs("x", None, g, AT)
        });
        assert_eq!((c.model_calls.to_string(), c.tool_calls.to_string()), ("1 to 12".into(), "0".into()));
    }

    #[test]
    fn a_self_call_in_two_branches_counts_once_and_in_two_operands_twice() {
        // Each unfolding asks once and calls itself in either branch.
        let linear = of(true, |b| {
            fix(b, Bound::Finite(10), |b| {
                let f = llm(b, 0);
                let x = b.var("x", AT);
                let c = b.app(f, x, AT);
                let (x, y) = (b.var("x", AT), b.var("x", AT));
                let (l, r) = (call(b, "s", x), call(b, "s", y));
                b.add(Term::If(c, l, r, IfSugar::Plain), AT)
            })
        });
        assert_eq!(linear.model_calls, Interval::up_to(1, 10));
        // The seed's bound counts 10 here; s (s x) unfolds 2^10 - 1 times.
        let doubling = of(true, |b| {
            fix(b, Bound::Finite(10), |b| {
                let f = llm(b, 0);
                let x = b.var("x", AT);
                let x = b.app(f, x, AT);
                let inner = call(b, "s", x);
                call(b, "s", inner)
            })
        });
        assert_eq!(doubling.model_calls, Interval::up_to(1, 1023));
        assert!(doubling.unbounded.is_empty());
    }

    #[test]
    fn what_is_unbounded_or_unknown_is_said() {
        let endless = of(true, |b| {
            fix(b, Bound::Infinite, |b| {
                let f = llm(b, 0);
                let x = b.var("x", AT);
                let x = b.app(f, x, AT);
                call(b, "s", x)
            })
        });
        assert_eq!(endless.model_calls, Interval { least: 1, most: None });
        assert_eq!(endless.unbounded[0].1, "this loop has no bound");
        let pure = of(true, |b| {
            fix(b, Bound::Infinite, |b| {
                let x = b.var("x", AT);
                call(b, "s", x)
            })
        });
        assert_eq!(pure.model_calls, Interval::ZERO);
        let escaping = of(true, |b| {
            fix(b, Bound::Finite(3), |b| {
                let (s, x) = (b.var("s", AT), b.var("x", AT));
                let t = b.var("s", AT);
                let pair = b.add(Term::Pair(s, x), AT);
                b.app(t, pair, AT)
            })
        });
        assert_eq!(escaping.model_calls.most, None);
        let generated = of(false, |b| {
            let hi = b.lit("hi", AT);
            b.ask(hi, AT)
        });
        assert_eq!(generated.model_calls, Interval { least: 1, most: None });
        let argument = of(true, |b| {
            let f = b.var("f", AT);
            let one = b.lit(Num::ONE, AT);
            let body = b.app(f, one, AT);
            b.abs("f", None, body, AT)
        });
        // The input is data, so applying it is an error that costs nothing.
        assert_eq!(argument.model_calls, Interval::ZERO);
    }

    #[test]
    fn tools_are_followed_through_records() {
        let c = of(true, |b| {
            let tool = b.tool(ToolDecl {
                effect: EffectClass::Read,
                control: LabelSpec::TOP,
                ..ToolDecl::unknown("t".into(), AT)
            });
            let t = b.add(Term::Tool(tool), AT);
            let r = b.add(Term::Record(vec![("go".into(), t)]), AT);
            let v = b.var("r", AT);
            let f = b.add(Term::Field(v, "go".into()), AT);
            let x = b.var("x", AT);
            let body = b.app(f, x, AT);
            let body = b.let_in(vec![("r".into(), r)], body, AT);
            b.abs("x", None, body, AT)
        });
        assert_eq!(c.tool_calls, Interval::up_to(1, 1));
    }

    #[test]
    fn a_try_may_do_both() {
        let c = of(true, |b| {
            let mut ask = |name: &str| {
                let f = llm(b, 0);
                let x = b.var(name, AT);
                b.app(f, x, AT)
            };
            let (body, handler) = (ask("x"), ask("m"));
            let label = b.lit(Data::list([]), AT);
            let t = b.add(Term::Try { label, body, catches: Catches::All, name: "m".into(), handler }, AT);
            b.abs("x", None, t, AT)
        });
        assert_eq!(c.model_calls, Interval::up_to(1, 2));
    }
}
