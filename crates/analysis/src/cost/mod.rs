//! Static bounds on the model and tool calls of a run.
//!
//! Entry point: [`bound`]. The term is evaluated over abstract values: functions are followed through
//! variables, records and calls; data is not known. A `fix` is bounded by its number and by how often
//! one unfolding calls itself.
//!
//! Invariant: an upper bound is never exceeded by a run. Where the analysis cannot tell, the bound is
//! absent and a reason says which place it is due to; it is never guessed.
//!
//! Source: `docs/calculus.md` §4 corrections 1 and 2; seed 000 Theorems 5.4 and 5.6, corrected.

mod facts;
mod grade;
mod prices;
mod refine;
mod rounds;
mod values;

pub use grade::{Interval, Line, Share};
pub use prices::{Entry, Model, PriceListError, Prices, TokenPrice};

use core_ir::{
    Bound, BoundOrigin, Code, Data, Globals, ModelParams, ModelRoutes, Name, Pred, Recv, Slot, Term, TermId,
    Type,
};
use diagnostics::{FileId, Span};
use facts::Facts;
use grade::{Cost, Repetition, Step};
use rounds::Rounds;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use values::{Closure, Env, Local, Token, Value, field, is_plain, known, prim};

/// Bounds on the resources of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostBound {
    /// Calls of models, repairs included.
    pub model_calls: Interval,
    /// Calls of tools.
    pub tool_calls: Interval,
    /// Tokens that models read; without a bound if the size of a model is not known.
    pub input_tokens: Interval,
    /// Tokens that models write.
    pub output_tokens: Interval,
    /// Money for the models that have a price, in billionths of a US dollar.
    pub money: Interval,
    /// Time in milliseconds, for models and tools that have a time limit.
    pub millis: Interval,
    /// The models without a price, with the most calls of each: what these cost comes on top of `money`.
    pub unpriced: Vec<(Name, Option<u64>)>,
    /// The most expensive path.
    pub path: Vec<Line>,
    /// Places that have no bound, each with the reason.
    pub unbounded: Vec<(Span, String)>,
}

/// The bound of evaluating a code (with the prelude that it was resolved against), and, if it is to be
/// applied to an input, of applying its value.
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
/// assert_eq!(analysis::cost::bound(&code.into(), true).model_calls.to_string(), "2");
/// ```
pub fn bound(code: &Arc<Code>, applied: bool) -> CostBound {
    bound_with(code, applied, Prices::standard(), &ModelRoutes::default())
}

/// [`bound`] with other prices, and with what settings say about which models answer which calls.
pub fn bound_with(code: &Arc<Code>, applied: bool, prices: &Prices, routes: &ModelRoutes) -> CostBound {
    let root = code.span(code.root());
    let mut a = Analysis {
        globals: code.globals().clone(),
        source: root.file,
        blamed: root,
        confirmations: HashSet::new(),
        steps: MAX_STEPS,
        depth: 0,
        nested: 0,
        recursion: 0,
        under_way: HashMap::new(),
        next_self: 0,
        reasons: Vec::new(),
        prices,
        routes,
        retrying: 0,
        undecided: 0,
        trials: Vec::new(),
        given_up: None,
        failures: 0,
        handed: Vec::new(),
        rounds: HashMap::new(),
        closures: HashMap::new(),
        summaries: HashMap::new(),
        limits: 0,
    };
    let env = Rc::new(Env { locals: Vec::new(), captures: Vec::new() });
    let (value, mut cost) = a.eval(code, code.root(), &env);
    if applied {
        let (_, called) = a.apply(&value, Value::Data, code.span(code.root()));
        cost = cost.plus(&called);
    }
    for read in code.set_reads() {
        cost = cost.plus(&a.call_tool(&read.name, read.span));
    }
    let cost = cost.shown();
    let mut unbounded = a.reasons;
    let mut seen = std::collections::HashSet::new();
    unbounded.retain(|reason| seen.insert(reason.clone()));
    CostBound {
        model_calls: cost.models,
        tool_calls: cost.tools,
        input_tokens: cost.input,
        output_tokens: cost.output,
        money: cost.money,
        millis: cost.millis,
        unpriced: cost.unpriced.iter().map(|(n, m)| (n.clone(), *m)).collect(),
        path: grade::lines(&cost.trail, MAX_LINES),
        unbounded,
    }
}

/// Number of uses of a self reference in code that repeats without a known limit.
const UNCOUNTED_USES: u64 = u64::MAX;
/// Lines of a derivation.
const MAX_LINES: usize = 200;

/// Maximum number of visited terms.
const MAX_STEPS: u64 = 2_000_000;
/// Maximum depth of nested calls.
const MAX_DEPTH: u32 = 5_000;
/// Maximum number of recursive calls among them.
const MAX_RECURSIVE_CALLS: u32 = 1_000;
/// Maximum number of terms and calls that the analysis is in at once: the stack grows, but not in a browser,
/// where it has 1 MB.
const MAX_NESTED: Option<u32> = if cfg!(target_family = "wasm") { Some(140) } else { None };
/// Steps of one attempt to follow a loop round by round, and attempts that may fail.
const MAX_TRIAL_STEPS: u64 = 100_000;
const MAX_FAILURES: u32 = 40;
/// Maximum number of calls, and of functions, that are told apart to be looked up.
const MAX_SUMMARIES: usize = 100_000;

struct Analysis<'p> {
    globals: Arc<Globals>,
    /// The file of the program itself; places elsewhere (in the prelude) mean nothing to its author.
    source: FileId,
    /// The last place in the program itself.
    blamed: Span,
    /// Tools that confirm a value instead of calling something.
    confirmations: HashSet<Name>,
    steps: u64,
    depth: u32,
    /// Number of terms that are being evaluated, each in the one before.
    nested: u32,
    /// Number of active calls of functions that were already active.
    recursion: u32,
    /// Active calls of each function, by its code and its term.
    under_way: HashMap<(usize, TermId), u32>,
    next_self: u32,
    reasons: Vec<(Span, String)>,
    prices: &'p Prices,
    /// Which models may answer which calls.
    routes: &'p ModelRoutes,
    /// Number of enclosing guards that may be retrying and tell models so.
    retrying: u32,
    /// Number of open choices whose outcome is unknown.
    undecided: u32,
    /// The loops that are followed round by round: what was undecided before, and the steps that were left.
    trials: Vec<(u32, u64)>,
    /// The loop that cannot be followed so, by its index in `trials`.
    given_up: Option<usize>,
    failures: u32,
    /// Self references that were handed more than data.
    handed: Vec<u32>,
    /// The loops whose rounds are being counted, by their self references.
    rounds: HashMap<u32, Rounds>,
    /// Functions by their code and captures.
    closures: HashMap<Vec<Token>, Rc<Closure>>,
    /// Results of calls.
    summaries: HashMap<Vec<Token>, Rc<Summary>>,
    /// The number of times that a limit of the analysis cut a call short.
    limits: u64,
}

/// The result of a call of a function.
struct Summary {
    value: Value,
    cost: Cost,
    /// Reasons that the call adds to [`CostBound::unbounded`], each once.
    reasons: Vec<(Span, String)>,
    /// The last place in the program itself.
    blamed: Span,
}

/// Returns true if a reply is plain text.
fn is_text(params: &ModelParams) -> bool {
    matches!(params.result, None | Some(Type::Str))
}

/// Returns the number of calls that one question to a model may take.
fn asks(params: &ModelParams) -> Interval {
    // A reply of any type must still be JSON.
    let may_fail = !params.tools.is_empty() || !is_text(params);
    Interval::up_to(1, 1 + if may_fail { u64::from(params.repair) } else { 0 })
}

impl Analysis<'_> {
    fn give_up(&mut self, span: Span, why: impl Into<String>) -> (Value, Cost) {
        self.reason(span, why);
        (Value::Unknown, Cost::unknown())
    }

    fn reason(&mut self, span: Span, why: impl Into<String>) {
        let span = if span.file == self.source { span } else { self.blamed };
        self.reasons.push((span, why.into()));
    }

    fn eval(&mut self, code: &Arc<Code>, id: TermId, env: &Rc<Env>) -> (Value, Cost) {
        self.nested += 1;
        let result = stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.eval_inner(code, id, env));
        self.nested -= 1;
        result
    }

    /// All of these, one after the other; their values do not matter.
    fn sequence(&mut self, code: &Arc<Code>, ids: &[TermId], env: &Rc<Env>) -> Cost {
        ids.iter().fold(Cost::zero(), |c, id| c.plus(&self.eval(code, *id, env).1))
    }

    fn bind(env: &Rc<Env>, at: usize, value: Value) -> Rc<Env> {
        let mut locals = env.locals[..at.min(env.locals.len())].to_vec();
        locals.push(value.into());
        Rc::new(Env { locals, captures: env.captures.clone() })
    }

    fn eval_inner(&mut self, code: &Arc<Code>, id: TermId, env: &Rc<Env>) -> (Value, Cost) {
        let span = code.span(id);
        self.steps = self.steps.saturating_sub(1);
        if let Some((_, floor)) = self.trials.last()
            && self.steps < *floor
            && self.given_up.is_none()
        {
            self.given_up = Some(self.trials.len() - 1);
        }
        if self.given_up.is_some() {
            // Whoever began the attempt throws this away.
            return (Value::Unknown, Cost::zero());
        }
        if self.steps == 0 {
            self.limits += 1;
            return self.give_up(span, "the analysis stopped here: the program is too large for it");
        }
        match code.term(id) {
            Term::Var(_, slot) => (self.read(env, *slot), Cost::zero()),
            Term::Lit(d) => (known(d), Cost::zero()),
            Term::Tag(name, None) => (Value::Tag(name.clone(), Rc::new(known(&Data::Null))), Cost::zero()),
            Term::Clear | Term::Recall(..) => (Value::Data, Cost::zero()),
            Term::Abs(abs) => {
                let captures = abs.captures.iter().map(|s| self.read(env, *s)).collect();
                (self.closure(code, id, captures), Cost::zero())
            }
            Term::Record(fields) | Term::Args(_, fields) => {
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
            Term::Par(most, items) => self.parallel(code, *most, items, env),
            Term::Each(most, f, list) => {
                let (f, made) = self.eval(code, *f, env);
                let (list, given) = self.eval(code, *list, env);
                let before = made.plus(&given);
                // Of what has no items nothing is called.
                let known = list.values().or_else(|| (facts::most_items(&list) == Some(0)).then(Vec::new));
                match known {
                    Some(items) => {
                        let together = most.is_none_or(|n| n as usize >= items.len());
                        let (mut cost, mut out) = (Cost::zero(), Vec::with_capacity(items.len()));
                        for item in items {
                            let (v, c) = self.apply(&f, item, span);
                            cost = if together { cost.beside(&c) } else { cost.plus(&c) };
                            out.push(v);
                        }
                        (Value::List(Rc::new(out)), before.plus(&cost))
                    }
                    None => {
                        let item = if is_plain(&list) { Value::Data } else { Value::Unknown };
                        self.undecided += 1;
                        let (v, once) = self.apply(&f, item, span);
                        self.undecided -= 1;
                        let why = "as often as the list has items, which is known only when it runs";
                        let length = facts::length(&list);
                        let all = match facts::most_items(&list) {
                            Some(n) => {
                                let all = once.times(n).least_of(&once.times(length.first().min(n)));
                                let together = most.is_none_or(|most| u64::from(most) >= n);
                                let latest = if together { once.millis.most } else { all.millis.most };
                                let millis = Interval { least: 0, most: latest };
                                Cost { millis, ..all }.told(span, Repetition::Unfoldings(n, 1, n))
                            }
                            None => {
                                if once.spends() || !once.own.is_empty() {
                                    self.reason(span, why);
                                }
                                once.open().optional().told(span, Repetition::Unbounded(why.into()))
                            }
                        };
                        let items = match is_plain(&v) {
                            true => Facts { length, ..Facts::default() }.value(),
                            false => Value::Unknown,
                        };
                        (items, before.plus(&all))
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
                let (i, d) = self.eval(code, *b, env);
                let v = match (&v, &i) {
                    (Value::Record(_), Value::Known(key)) if key.as_str().is_some() => {
                        field(&v, &Name::from(key.as_str().unwrap_or("")))
                    }
                    // Any of its fields.
                    (Value::Record(fields), _) => {
                        fields.iter().map(|(_, v)| v.clone()).reduce(Value::join).unwrap_or(Value::Data)
                    }
                    (v, i) => {
                        let at = i.number().and_then(core_ir::Num::to_usize);
                        self.part(v, &|vs| match at {
                            Some(i) => vs.get(i).cloned(),
                            None => vs.iter().cloned().reduce(Value::join),
                        })
                    }
                };
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
                    v if is_plain(&v) && is_plain(&new) => Value::Data,
                    _ => Value::Unknown,
                };
                (v, c.plus(&d))
            }
            Term::Tag(name, Some(e)) => {
                let (v, c) = self.eval(code, *e, env);
                (Value::Tag(name.clone(), Rc::new(v)), c)
            }
            Term::Prim(p, es) => {
                let mut cost = Cost::zero();
                let mut values = Vec::with_capacity(es.len());
                for e in es {
                    let (v, c) = self.eval(code, *e, env);
                    cost = cost.plus(&c);
                    values.push(v);
                }
                (prim(*p, &values), cost)
            }
            Term::App(f, x) => {
                let (f, c) = self.eval(code, *f, env);
                let (x, d) = self.eval(code, *x, env);
                let (v, e) = self.apply(&f, x, span);
                (v, c.plus(&d).plus(&e))
            }
            Term::Let { bindings, body, .. } => {
                let mut cost = Cost::zero();
                let locals = env.locals[..code.locals(id).min(env.locals.len())].to_vec();
                let mut inner = Rc::new(Env { locals, captures: env.captures.clone() });
                for (_, e) in bindings {
                    let (v, c) = self.eval(code, *e, &inner);
                    cost = cost.plus(&c);
                    // Nobody keeps an environment, so none is copied here, however many variables there are.
                    self.after(code, *e, &mut inner);
                    Rc::make_mut(&mut inner).locals.push(Local { value: v, term: Some(*e) });
                }
                let (v, c) = self.eval(code, *body, &inner);
                (v, cost.plus(&c))
            }
            Term::If(c, a, b, _) => {
                let (value, cost) = self.eval(code, *c, env);
                let ways = match &value {
                    Value::Known(d) if **d == Data::Bool(true) => vec![(*a, env.clone())],
                    Value::Known(d) if **d == Data::Bool(false) => vec![(*b, env.clone())],
                    _ => [(*a, true), (*b, false)]
                        .map(|(way, holds)| (way, self.assuming(code, *c, holds, env)))
                        .into(),
                };
                self.branches(code, &ways, cost)
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
                        // A string counts as the tag of its name; other data takes no branch.
                        Value::Known(d) if d.as_str() != Some(&*b.tag) => continue,
                        Value::Known(_) | Value::Data | Value::Within(_) => Value::Data,
                        Value::Choice(vs) => match payload(vs, &b.tag) {
                            Some(v) => v,
                            None => continue,
                        },
                        _ => Value::Unknown,
                    };
                    let env = if b.binder.is_some() { Self::bind(env, at, payload) } else { env.clone() };
                    ways.push((b.body, env));
                }
                // A tag that has a branch does not take the default.
                if let Some(e) = default
                    && (ways.is_empty() || !matches!(v, Value::Tag(..) | Value::Known(_)))
                {
                    ways.push((*e, env.clone()));
                }
                self.branches(code, &ways, cost)
            }
            Term::Fix { bound, body, origin } => {
                let (v, c) = self.eval(code, *body, env);
                (Value::Fix(*bound, Rc::new(v), span, origin.clone()), c)
            }
            Term::Guard { term, retry, pred } => {
                let attempts = u64::from(*retry) + 1;
                self.again(attempts, 1);
                let (v, c) = self.eval(code, *term, env);
                self.again(attempts, -1);
                let all = c.times(attempts).least_of(&c);
                let all = if attempts > 1 { all.told(span, Repetition::Attempts(attempts)) } else { all };
                match v {
                    v if is_plain(&v) => (facts::satisfying(v, pred, true), all),
                    Value::Unknown => (Value::Unknown, all.optional()),
                    v => (Value::Guarded(Rc::new(v), *retry, span), all.envelope(&c)),
                }
            }
            Term::Fresh(e) => {
                let (v, c) = self.eval(code, *e, env);
                // No call waits in a conversation that begins.
                let models = Interval {
                    least: c.models.least.saturating_add(asks_first(code, *e).into()),
                    ..c.models
                };
                (v, Cost { models, ..c })
            }
            Term::Mem(_, e) | Term::Fork(e) => self.eval(code, *e, env),
            Term::Check(_, ty, e) => {
                let (v, c) = self.eval(code, *e, env);
                (facts::of_type(v, ty), c)
            }
            Term::Within(seconds, e) => {
                let (v, mut c) = self.eval(code, *e, env);
                let limit = seconds.mul(&core_ir::Num::from(1_000)).ok();
                let limit =
                    limit.and_then(|n| n.neg().floor().neg().to_i64()).and_then(|n| u64::try_from(n).ok());
                if let Some(limit) = limit {
                    c.millis.most = Some(c.millis.most.map_or(limit, |m| m.min(limit)));
                    c.millis.least = c.millis.least.min(limit);
                }
                (v, c)
            }
            Term::Classify(_, e) | Term::Send(_, e) | Term::Remember(_, _, e) => {
                let (_, c) = self.eval(code, *e, env);
                (Value::Data, c)
            }
            Term::Fail(e) => {
                let (_, c) = self.eval(code, *e, env);
                (Value::Data, c.never())
            }
            Term::Llm(e, params) => {
                let (v, c) = self.eval(code, *e, env);
                (Value::Llm(params.clone(), v.bytes(), span), c)
            }
            Term::Tool(tool) => {
                let decl = code.tool(*tool);
                if decl.confirms {
                    self.confirmations.insert(decl.name.clone());
                }
                (Value::Tool(decl.name.clone()), Cost::zero())
            }
            Term::Recv(Recv::Data(params)) => {
                let c = self.ask(params, None, span);
                // The conversation may be empty.
                let input = Interval { least: 0, ..c.input };
                let c = Cost { input, ..c };
                // A reply with several calls also answers the following `recv`s that offer tools, so this one
                // may be free.
                (Value::Data, if params.tools.is_empty() { c } else { c.optional() })
            }
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
                self.undecided += 1;
                let (v, tried) = self.eval(code, *body, env);
                let inner = Self::bind(env, code.locals(id), Value::Data);
                let (w, handled) = self.eval(code, *handler, &inner);
                self.undecided -= 1;
                // The body may fail at any point and then the handler runs. A success is either all of the
                // body or all of the handler.
                let both = tried.plus(&handled);
                let some = tried.envelope(&handled);
                (Value::join(v, w), c.plus(&both.least_of(&some)))
            }
            Term::Unknown(reason) => self.give_up(span, format!("not known before the run: {reason}")),
        }
    }

    /// Enters (1) or leaves (-1) code that may be evaluated more than once.
    fn again(&mut self, attempts: u64, change: i32) {
        if attempts > 1 {
            self.undecided = self.undecided.saturating_add_signed(change);
            self.retrying = self.retrying.saturating_add_signed(change);
        }
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

    /// Branches side by side: all adds but latency, unless only some may run at a time.
    fn parallel(
        &mut self,
        code: &Arc<Code>,
        most: Option<u32>,
        items: &[TermId],
        env: &Rc<Env>,
    ) -> (Value, Cost) {
        let together = most.is_none_or(|n| n as usize >= items.len());
        let mut cost = Cost::zero();
        let mut out = Vec::with_capacity(items.len());
        for e in items {
            let (v, c) = self.eval(code, *e, env);
            cost = if together { cost.beside(&c) } else { cost.plus(&c) };
            out.push(v);
        }
        (Value::List(Rc::new(out)), cost)
    }

    fn branches(&mut self, code: &Arc<Code>, ways: &[(TermId, Rc<Env>)], before: Cost) -> (Value, Cost) {
        let mut all: Option<(Value, Cost)> = None;
        let open = ways.len() > 1;
        self.undecided += u32::from(open);
        for (e, env) in ways {
            let (v, c) = self.eval(code, *e, env);
            all = Some(match all {
                None => (v, c),
                Some((w, d)) => (Value::join(w, v), d.envelope(&c)),
            });
        }
        self.undecided -= u32::from(open);
        let (v, c) = all.unwrap_or((Value::Data, Cost::zero()));
        (v, before.plus(&c))
    }

    fn read(&mut self, env: &Rc<Env>, slot: Slot) -> Value {
        match slot {
            Slot::Local(i) => env.locals.get(i as usize).map_or(Value::Unknown, |local| local.value.clone()),
            Slot::Captured(i) => env.captures.get(i as usize).cloned().unwrap_or(Value::Unknown),
            Slot::Global(i) => match self.globals.get(i) {
                _ if self.globals.names().get(i as usize).is_some_and(|n| &**n == "fix") => Value::PreludeFix,
                Some((code, term)) => {
                    let code = code.clone();
                    self.closure(&code, term, Vec::new())
                }
                None => Value::Unknown,
            },
        }
    }

    /// The function of this code and term. Equal ones are one value, so that calls of them are comparable.
    fn closure(&mut self, code: &Arc<Code>, term: TermId, captures: Vec<Value>) -> Value {
        let mut key = vec![Token::Function(Arc::as_ptr(code).addr(), term)];
        let described = captures.iter().try_for_each(|v| v.describe(&mut key)).is_some();
        let make = |number| Rc::new(Closure { number, code: code.clone(), term, captures });
        if !described || self.closures.len() >= MAX_SUMMARIES {
            return Value::Closure(make(None));
        }
        // Numbers fit: there are at most `MAX_SUMMARIES`.
        let number = u32::try_from(self.closures.len()).ok();
        Value::Closure(self.closures.entry(key).or_insert_with(|| make(number)).clone())
    }

    /// Describes a call, if its cost depends on the function and the argument alone.
    fn call_key(&self, f: &Value, x: &Value) -> Option<Vec<Token>> {
        let Value::Closure(function) = f else { return None };
        let own = function.code.span(function.term).file == self.source;
        let mut key = vec![Token::Call(self.retrying > 0, (!own).then_some(self.blamed))];
        f.describe(&mut key)?;
        x.describe(&mut key)?;
        Some(key)
    }

    /// A part of a container.
    fn part(&mut self, v: &Value, pick: &dyn Fn(&[Value]) -> Option<Value>) -> Value {
        match v {
            Value::Data | Value::Within(_) => Value::Data,
            Value::Known(d) => match &**d {
                Data::List(items) => {
                    let values: Vec<Value> = items.iter().map(known).collect();
                    pick(&values).unwrap_or(Value::Data)
                }
                _ => Value::Data,
            },
            Value::List(vs) => pick(vs).unwrap_or(Value::Data),
            _ => Value::Unknown,
        }
    }

    fn apply(&mut self, f: &Value, x: Value, span: Span) -> (Value, Cost) {
        if span.file == self.source {
            self.blamed = span;
        }
        let Some(key) = self.call_key(f, &x) else { return self.apply_anew(f, x, span) };
        if let Some(summary) = self.summaries.get(&key) {
            let summary = summary.clone();
            self.steps = self.steps.saturating_sub(1);
            self.reasons.extend(summary.reasons.iter().cloned());
            self.blamed = summary.blamed;
            return (summary.value.clone(), summary.cost.clone());
        }
        let (reasons, limits) = (self.reasons.len(), self.limits);
        let (value, cost) = self.apply_anew(f, x, span);
        // What a limit cut short is different elsewhere.
        if self.given_up.is_none() && self.limits == limits && self.summaries.len() < MAX_SUMMARIES {
            let mut seen = HashSet::new();
            let reasons = self.reasons[reasons..].iter().filter(|r| seen.insert(*r)).cloned().collect();
            let summary = Summary { value: value.clone(), cost: cost.clone(), reasons, blamed: self.blamed };
            self.summaries.insert(key, Rc::new(summary));
        }
        (value, cost)
    }

    fn apply_anew(&mut self, f: &Value, x: Value, span: Span) -> (Value, Cost) {
        let function = match f {
            Value::Closure(c) => Some((Arc::as_ptr(&c.code).addr(), c.term)),
            _ => None,
        };
        let under_way = function.and_then(|f| self.under_way.get(&f)).copied().unwrap_or(0);
        let recurs = under_way > 0;
        let nested = self.nested.saturating_add(self.depth);
        let is_nested = self.depth >= MAX_DEPTH || MAX_NESTED.is_some_and(|most| nested >= most);
        if is_nested || (recurs && self.recursion >= MAX_RECURSIVE_CALLS) {
            self.limits += 1;
            if let Some(last) = self.trials.len().checked_sub(1) {
                self.given_up.get_or_insert(last);
                return (Value::Unknown, Cost::zero());
            }
            let why = match recurs {
                true => "no bound on how deep this recursion goes",
                false => "calls are nested deeper here than the analysis follows them",
            };
            return self.give_up(span, why);
        }
        if let Some(function) = function {
            self.under_way.insert(function, under_way + 1);
        }
        self.depth += 1;
        self.recursion += u32::from(recurs);
        let result = stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.apply_inner(f, x, span));
        self.recursion -= u32::from(recurs);
        self.depth -= 1;
        match (function, under_way) {
            (Some(function), 0) => drop(self.under_way.remove(&function)),
            (Some(function), n) => drop(self.under_way.insert(function, n)),
            (None, _) => {}
        }
        result
    }

    fn apply_inner(&mut self, f: &Value, x: Value, span: Span) -> (Value, Cost) {
        match f {
            Value::Closure(c) => {
                let Term::Abs(abs) = c.code.term(c.term) else {
                    return self.give_up(span, "not a function");
                };
                let env = Rc::new(Env { locals: vec![x.into()], captures: c.captures.clone() });
                self.eval(&c.code.clone(), abs.body, &env)
            }
            Value::PreludeFix => {
                let at = if span.file == self.source { span } else { self.blamed };
                (Value::Fix(Bound::Infinite, Rc::new(x), at, None), Cost::zero())
            }
            Value::Llm(params, prompt, at) => {
                let bytes = prompt.zip(x.bytes()).map(|(a, b)| a.saturating_add(b));
                let at = if at.file == self.source { *at } else { self.blamed };
                (Value::Data, self.ask(params, bytes, at))
            }
            Value::Tool(name) => (Value::Data, self.call_tool(name, span)),
            Value::Own(k, plain) => {
                if x.holds_own(0) {
                    return self.give_up(span, "the loop hands itself on, so its calls cannot be counted");
                }
                if !is_plain(&x) {
                    self.handed.push(*k);
                }
                if self.given_up.is_none()
                    && let Some(rounds) = self.rounds.get_mut(k)
                {
                    rounds.observe(&x);
                }
                let result = if *plain { Value::Data } else { Value::Unknown };
                (result, Cost { own: Rc::new([(*k, 1)].into()), ..Cost::zero() })
            }
            Value::Round(trial, bound, body) => {
                // Whether there is another round must be known.
                if self.given_up.is_some() || self.trials.get(*trial).is_none_or(|t| self.undecided > t.0) {
                    self.given_up.get_or_insert(*trial);
                    return (Value::Unknown, Cost::zero());
                }
                let (bound, body, trial) = (*bound, body.clone(), *trial);
                self.round(bound, &body, x, trial, span)
            }
            Value::Guarded(f, retry, at) => {
                let attempts = u64::from(*retry) + 1;
                let (f, retry, at) = (f.clone(), *retry, *at);
                self.again(attempts, 1);
                let (v, c) = self.apply(&f, x, span);
                self.again(attempts, -1);
                let all = c.times(attempts).least_of(&c);
                // A function that comes back is guarded as well.
                let v = match v {
                    v if is_plain(&v) => v,
                    Value::Unknown => Value::Unknown,
                    v => Value::Guarded(Rc::new(v), retry, at),
                };
                (v, if attempts > 1 { all.told(at, Repetition::Attempts(attempts)) } else { all })
            }
            Value::Fix(bound, body, at, origin) => {
                let (bound, body, at, origin) = (*bound, body.clone(), *at, origin.clone());
                self.unfold(bound, &body, x, at, origin)
            }
            Value::Choice(fs) => {
                let fs = fs.clone();
                let mut all: Option<(Value, Cost)> = None;
                self.undecided += 1;
                for f in fs.iter() {
                    let (v, c) = self.apply(f, x.clone(), span);
                    all = Some(match all {
                        None => (v, c),
                        Some((w, d)) => (Value::join(w, v), d.envelope(&c)),
                    });
                }
                self.undecided -= 1;
                all.unwrap_or((Value::Data, Cost::zero()))
            }
            // Applying data is an error, which costs nothing.
            Value::Data
            | Value::Within(_)
            | Value::Known(_)
            | Value::Record(_)
            | Value::List(_)
            | Value::Tag(..) => (Value::Data, Cost::zero()),
            Value::Unknown => self.give_up(span, "it is not known which function is called here"),
        }
    }

    /// One round of a loop that is followed round by round.
    fn round(&mut self, bound: Bound, body: &Rc<Value>, x: Value, trial: usize, at: Span) -> (Value, Cost) {
        let next = match bound {
            Bound::Finite(0) => return (x, Cost::zero()),
            Bound::Finite(n) => Bound::Finite(n - 1),
            Bound::Infinite => Bound::Infinite,
        };
        let own = Value::Round(trial, next, body.clone());
        let (g, made) = self.apply(body, own, at);
        let (v, called) = self.apply(&g, x, at);
        (v, made.plus(&called))
    }

    /// Follows a loop round by round, if at each it is known whether there is another.
    fn follow(&mut self, bound: Bound, body: &Rc<Value>, x: &Value, at: Span) -> Option<(Value, Cost)> {
        if self.given_up.is_some() || self.failures > MAX_FAILURES || !x.has_known() {
            return None;
        }
        let trial = self.trials.len();
        let reasons = self.reasons.len();
        let (depth, undecided) = (self.depth, self.undecided);
        self.trials.push((self.undecided, self.steps.saturating_sub(MAX_TRIAL_STEPS)));
        let (v, c) = self.round(bound, body, x.clone(), trial, at);
        self.trials.truncate(trial);
        (self.depth, self.undecided) = (depth, undecided);
        match self.given_up {
            Some(which) => {
                self.failures += 1;
                self.reasons.truncate(reasons);
                if which == trial {
                    self.given_up = None;
                }
                None
            }
            None if v.holds_round() => None,
            None => Some((v, c)),
        }
    }

    /// `fix[n] F x`: the cost of one unfolding, as often as unfoldings can happen.
    fn unfold(
        &mut self,
        bound: Bound,
        body: &Rc<Value>,
        x: Value,
        at: Span,
        origin: Option<BoundOrigin>,
    ) -> (Value, Cost) {
        if bound == Bound::Finite(0) {
            return (x, Cost::zero());
        }
        // A bound in place of calls that are not in the term.
        let open = bound == Bound::Infinite && matches!(origin, Some(BoundOrigin::Uncounted(_)));
        // Runs that the term has once.
        let runs = match (bound, &origin) {
            (Bound::Finite(n), Some(BoundOrigin::Repeated(_))) => Some(n),
            _ => None,
        };
        if !open
            && runs.is_none()
            && let Some(exact) = self.follow(bound, body, &x, at)
        {
            return exact;
        }
        let reasons = self.reasons.len();
        let counted = if open || runs.is_some() { None } else { self.count_rounds(body, &x, at) };
        if counted.is_none() {
            self.reasons.truncate(reasons);
        }
        let bound = match (bound, counted.as_ref().and_then(|counted| counted.rounds)) {
            (Bound::Finite(n), Some(rounds)) => Bound::Finite(n.min(rounds)),
            (Bound::Infinite, Some(rounds)) => Bound::Finite(rounds),
            (bound, None) => bound,
        };
        // First as if only data went round, then, if that is not so, as if nothing were known of what does.
        let (mut own, mut v, mut once) = match counted {
            Some(counted) => counted.round,
            None => self.measure(body, is_plain(&x), at),
        };
        if is_plain(&x) && (!is_plain(&v) || self.handed.contains(&own)) && self.given_up.is_none() {
            (own, v, once) = self.measure(body, false, at);
        }
        if v.holds_own(own) {
            return self.give_up(at, "the loop hands itself on, so its calls cannot be counted");
        }
        let mut counts = (*once.own).clone();
        let k = counts.remove(&own).unwrap_or(0);
        once.own = Rc::new(counts);
        let unfoldings = match (bound, k) {
            (_, 0) if !open => runs.or(Some(1)),
            (Bound::Infinite, _) => None,
            (Bound::Finite(2..), UNCOUNTED_USES) => None,
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
        let total = match unfoldings {
            Some(1) => once.clone(),
            Some(n) => {
                let bound = if let Bound::Finite(b) = bound { b } else { 0 };
                once.times(n).told(at, Repetition::Unfoldings(n, k, bound))
            }
            None => {
                let why = match (&origin, bound) {
                    (_, Bound::Finite(_)) => {
                        "how often a round of this loop calls it again has no bound".into()
                    }
                    (Some(BoundOrigin::Unlimited(why)), _) => format!("this loop has no bound: {why}"),
                    (Some(origin), _) => format!("this loop has no bound: {}", origin.describe()),
                    (None, _) => "this loop has no bound".to_string(),
                };
                if open || once.spends() || !once.own.is_empty() {
                    self.reason(at, why.clone());
                }
                let all = if open { once.uncounted() } else { once.open() };
                all.told(at, Repetition::Unbounded(why))
            }
        };
        // A bound that is reached gives back an argument.
        let result = if is_plain(&v) && is_plain(&x) { Value::Data } else { Value::Unknown };
        (result, total.least_of(&once))
    }

    /// Measures one unfolding: the number of its self reference, its value, and its cost. With `plain`, the
    /// loop passes on data only.
    fn measure(&mut self, body: &Value, plain: bool, at: Span) -> (u32, Value, Cost) {
        // Later unfoldings get an argument that is not known here.
        let argument = if plain { Value::Data } else { Value::Unknown };
        let own = self.new_self();
        self.measure_with(own, body, plain, argument, at)
    }

    fn new_self(&mut self) -> u32 {
        let own = self.next_self;
        self.next_self += 1;
        own
    }

    /// [`measure`](Self::measure) of a self reference, for what is known of the argument of each unfolding.
    fn measure_with(
        &mut self,
        own: u32,
        body: &Value,
        plain: bool,
        argument: Value,
        at: Span,
    ) -> (u32, Value, Cost) {
        self.undecided += 1;
        let (g, made) = self.apply(body, Value::Own(own, plain), at);
        let (v, called) = self.apply(&g, argument, at);
        self.undecided -= 1;
        (own, v, made.plus(&called))
    }

    /// Returns the cost of one model call, repairs included. `bytes` is the size of the conversation, if
    /// known.
    fn ask(&mut self, params: &ModelParams, bytes: Option<u64>, at: Span) -> Cost {
        if params.waiting {
            // A pending call was received and paid with its reply.
            return Cost::zero();
        }
        let calls = asks(params);
        let most = calls.most.unwrap_or(1);
        // In the worst case each model of a chain is called and charged before the last one answers.
        let candidates = self.routes.candidates(Some(params));
        let chain: Vec<&str> = candidates.iter().map(|m| &*m.name).collect();
        let mut unpriced: Vec<(Name, Option<u64>)> = Vec::new();
        let (mut read, mut written, mut dearest, mut time) = (Some(0), Some(0), Some(0), Some(0));
        for model in &chain {
            let (r, w, money, millis) = self.one_call(model, params, bytes, most);
            let add = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
            (read, written, time) = (add(read, r), add(written, w), add(time, millis));
            if money.is_none() {
                unpriced.push((Name::from(*model), Some(most)));
            }
            dearest = add(dearest, money);
        }
        let money = dearest;
        let one = Cost {
            models: Interval::up_to(1, 1),
            input: Interval { least: 1, most: read },
            output: Interval { least: 0, most: written },
            money: Interval { least: 0, most: Some(money.unwrap_or(0)) },
            millis: Interval { least: 0, most: time },
            ..Cost::zero()
        };
        let mut all = one.times(most).least_of(&one);
        if !unpriced.is_empty() {
            all.unpriced = Rc::new(unpriced.into_iter().collect());
        }
        let shown = match chain[..] {
            [""] => "the run's default model".to_string(),
            _ => format!("`{}`", chain.join("`, else `")),
        };
        let mut what =
            format!("{} of {shown}", if most == 1 { "a call".into() } else { format!("up to {most} calls") });
        if let Some(money) = money {
            what.push_str(&format!(", at most {}", dollars(money.saturating_mul(most))));
        }
        let money = money.map(|money| money.saturating_mul(most));
        let most = Share { model_calls: all.models.most, tool_calls: Some(0), money };
        all.trail = Some(Rc::new(Step::Call { at, what, most }));
        all
    }

    /// Of one call among those of one model: the tokens that it reads and writes, its price, and the time it
    /// takes.
    fn one_call(
        &self,
        name: &str,
        params: &ModelParams,
        bytes: Option<u64>,
        most: u64,
    ) -> (Option<u64>, Option<u64>, Option<u64>, Option<u64>) {
        let sizes = self.prices.model(name).unwrap_or_default();
        // A token is at least a byte, and a message adds a few to its text. The encoding of tools and of an
        // answer's schema, and the messages of repairs, are unknown here.
        let remark = if self.retrying > 0 { Pred::REMARK_BYTES } else { 0 };
        let text = bytes
            .filter(|_| most == 1 && params.tools.is_empty() && is_text(params))
            .map(|b| b.saturating_add(TOKENS_AROUND).saturating_add(remark));
        let read = match (text, sizes.context) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let written = match (params.max_tokens, sizes.max_output.or(sizes.context)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let price = |per: Option<u64>, tokens: Option<u64>| match (per, tokens) {
            (Some(0), _) => Some(0),
            (Some(per), Some(n)) => Some(n.saturating_mul(per)),
            _ => None,
        };
        let money = price(sizes.input, read).zip(price(sizes.output, written));
        let money = money.map(|(a, b)| a.saturating_add(b));
        (read, written, money, sizes.millis.or(self.prices.millis()))
    }

    fn call_tool(&mut self, name: &Name, at: Span) -> Cost {
        let at = if at.file == self.source { at } else { self.blamed };
        let most = Share { model_calls: Some(0), tool_calls: Some(1), money: Some(0) };
        Cost {
            // A confirmation asks a person and calls nothing.
            tools: Interval::up_to(u64::from(!self.confirmations.contains(name)), 1),
            // Tools have no time limit of their own.
            millis: Interval::OPEN,
            trail: Some(Rc::new(Step::Call { at, what: format!("a call of the tool `{name}`"), most })),
            ..Cost::zero()
        }
    }
}

/// Returns the payload that a branch of a `case` receives from these values; `None` if no value has its tag.
fn payload(vs: &[Value], tag: &Name) -> Option<Value> {
    let parts = vs.iter().filter_map(|v| match v {
        Value::Tag(name, p) => (name == tag).then(|| (**p).clone()),
        Value::Data | Value::Within(_) | Value::Known(_) => Some(Value::Data),
        _ => Some(Value::Unknown),
    });
    parts.reduce(Value::join)
}

/// Returns true if a conversation begins with messages and a call that offers tools: `send …; recv[θ]`, whose
/// reply is matched or passed on.
fn asks_first(code: &Code, mut id: TermId) -> bool {
    let plain = |id: TermId| {
        let mut parts = vec![id];
        while let Some(id) = parts.pop() {
            let term = code.term(id);
            if matches!(term, Term::App(..) | Term::Recv(_) | Term::Fresh(_) | Term::Fork(_)) {
                return false;
            }
            parts.extend(term.children());
        }
        true
    };
    loop {
        id = match code.term(id) {
            Term::Let { bindings, body, .. } if bindings.iter().all(|(_, said)| plain(*said)) => *body,
            Term::App(f, given) if is_loop(code, *f) => *given,
            Term::Case { scrutinee, .. } => *scrutinee,
            Term::Record(fields) => match fields.first() {
                Some((_, first)) => *first,
                None => return false,
            },
            Term::Recv(Recv::Data(params)) => return !params.tools.is_empty() && !params.waiting,
            _ => return false,
        };
    }
}

fn is_loop(code: &Code, id: TermId) -> bool {
    matches!(code.term(id), Term::Fix { body, .. } if matches!(code.term(*body), Term::Abs(_)))
}

/// Tokens of a conversation beside its texts: roles and separators of a system and a user message.
const TOKENS_AROUND: u64 = 32;

/// An amount of billionths of a dollar as it is written: `$0.0021`, rounded up to what is shown.
///
/// # Examples
/// ```
/// assert_eq!(analysis::cost::dollars(2_100_000), "$0.0021");
/// assert_eq!(analysis::cost::dollars(1_234_567_890), "$1.24");
/// assert_eq!(analysis::cost::dollars(0), "$0");
/// ```
pub fn dollars(billionths: u64) -> String {
    let places: u32 = match billionths {
        0 => return "$0".into(),
        n if n >= 1_000_000_000 => 2,
        n if n >= 1_000_000 => 4,
        _ => 9,
    };
    let unit = 10_u64.pow(9 - places);
    let n = billionths.div_ceil(unit);
    let (whole, rest) = (n / 10_u64.pow(places), n % 10_u64.pow(places));
    let digits = format!("{rest:0width$}", width = places as usize);
    let digits = digits.trim_end_matches('0');
    let digits = if digits.len() < 2 { format!("{digits:0<2}") } else { digits.to_string() };
    format!("${whole}.{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{Builder, Catches, EffectClass, Globals, IfSugar, LabelSpec, Num, ToolDecl};
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
    fn calls_that_are_not_in_the_term_leave_it_without_a_bound() {
        let beside = |origin: &str| {
            let origin = Some(BoundOrigin::from(origin));
            of(true, |b| {
                let (f, x) = (llm(b, 0), b.var("x", AT));
                let body = b.app(f, x, AT);
                let body = b.abs("x", None, body, AT);
                let body = b.abs("s", None, body, AT);
                let fix = b.add(Term::Fix { bound: Bound::Infinite, origin, body }, AT);
                let x = b.var("x", AT);
                let call = b.app(fix, x, AT);
                b.abs("x", None, call, AT)
            })
        };
        let open = beside("not counted: `memory` makes calls that are not compiled");
        assert_eq!((open.model_calls.least, open.model_calls.most), (1, None));
        assert!(open.unbounded[0].1.contains("`memory`"), "{:?}", open.unbounded);
        // Uncounted calls may include tool calls, even if the term has none.
        assert_eq!(open.tool_calls.most, None);
        assert_eq!(beside("not known: `n`").model_calls, Interval::up_to(1, 1));
    }

    #[test]
    fn runs_that_the_term_has_once_cost_as_much_as_all() {
        let repeated = |bound: u64, origin: Option<BoundOrigin>| {
            of(true, |b| {
                let (f, x) = (llm(b, 0), b.var("x", AT));
                let body = b.app(f, x, AT);
                let body = b.abs("x", None, body, AT);
                let body = b.abs("s", None, body, AT);
                let fix = b.add(Term::Fix { bound: Bound::Finite(bound), origin, body }, AT);
                let x = b.var("x", AT);
                let call = b.app(fix, x, AT);
                b.abs("x", None, call, AT)
            })
        };
        let runs = Some(BoundOrigin::from("repeated: it is run more than once"));
        assert_eq!(repeated(3, runs).model_calls, Interval::up_to(1, 3));
        assert_eq!(repeated(3, None).model_calls, Interval::up_to(1, 1));
    }

    #[test]
    fn unbounded_and_unknown_costs_are_reported() {
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
        let unlimited = of(true, |b| {
            let (f, x) = (llm(b, 0), b.var("x", AT));
            let asked = b.app(f, x, AT);
            let again = call(b, "s", asked);
            let body = b.abs("x", None, again, AT);
            let body = b.abs("s", None, body, AT);
            let origin = Some(BoundOrigin::Unlimited("its limit is off".into()));
            let fix = b.add(Term::Fix { bound: Bound::Infinite, origin, body }, AT);
            let x = b.var("x", AT);
            let call = b.app(fix, x, AT);
            b.abs("x", None, call, AT)
        });
        assert_eq!(unlimited.unbounded[0].1, "this loop has no bound: its limit is off");
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
    fn a_long_chain_of_functions_is_no_recursion() {
        let chain = |n: usize| {
            of(true, |b| {
                let mut bindings: Vec<(Name, TermId)> = vec![("f0".into(), llm(b, 0))];
                for i in 1..n {
                    let x = b.var("x", AT);
                    let body = call(b, &format!("f{}", i - 1), x);
                    bindings.push((format!("f{i}").into(), b.abs("x", None, body, AT)));
                }
                let x = b.var("x", AT);
                let last = call(b, &format!("f{}", n - 1), x);
                let all = b.let_in(bindings, last, AT);
                b.abs("x", None, all, AT)
            })
        };
        let c = chain(1_500);
        assert_eq!((c.model_calls, c.unbounded), (Interval::up_to(1, 1), Vec::new()));
        // `(λf. f f) (λf. f f)` recurs, and what asks in it has no bound.
        let c = of(false, |b| {
            let twice = |b: &mut Builder| {
                let (f, g) = (b.var("f", AT), b.var("f", AT));
                let both = b.app(f, g, AT);
                let (ask, x) = (llm(b, 0), b.lit("x", AT));
                let asked = b.app(ask, x, AT);
                let all = b.add(Term::Pair(asked, both), AT);
                b.abs("f", None, all, AT)
            };
            let (f, g) = (twice(b), twice(b));
            b.app(f, g, AT)
        });
        assert_eq!(c.model_calls.most, None);
        assert_eq!(c.unbounded[0].1, "no bound on how deep this recursion goes");
    }

    /// `let f0 = ask in let f1 = \x. f0 (f0 x) in … in fn`.
    fn doubled(times: usize) -> CostBound {
        of(true, |b| {
            let mut bindings: Vec<(Name, TermId)> = vec![("f0".into(), llm(b, 0))];
            for i in 1..=times {
                let (before, x) = (Name::from(format!("f{}", i - 1)), b.var("x", AT));
                let (outer, inner) = (b.var(before.clone(), AT), b.var(before, AT));
                let once = b.app(inner, x, AT);
                let twice = b.app(outer, once, AT);
                bindings.push((format!("f{i}").into(), b.abs("x", None, twice, AT)));
            }
            let body = b.var(format!("f{times}"), AT);
            b.let_in(bindings, body, AT)
        })
    }

    #[test]
    fn functions_that_call_others_twice_are_exact() {
        assert_eq!(doubled(22).model_calls, Interval::up_to(1 << 22, 1 << 22));
        assert_eq!(doubled(60).model_calls, Interval::up_to(1 << 60, 1 << 60));
    }

    #[test]
    fn the_models_of_a_chain_are_priced_as_the_settings_say() {
        let mut b = Builder::new();
        let prompt = b.lit("p", AT);
        let params = ModelParams { max_tokens: Some(1_000), ..ModelParams::default() };
        let f = b.add(Term::Llm(prompt, params.into()), AT);
        let x = b.lit("x", AT);
        let root = b.app(f, x, AT);
        let code = Arc::new(b.finish(root, &Globals::none()).unwrap());
        let prices = Prices::standard()
            .clone()
            .with_model("fast", Model::default().priced(0.0, 1.0))
            .with_model("a/b", Model::default().priced(0.0, 2.0));
        let mut routes = ModelRoutes { default: vec!["fast".into()], ..ModelRoutes::default() };
        // A dollar for a million tokens: a thousand tokens are a thousandth of a dollar.
        assert_eq!(bound_with(&code, false, &prices, &routes).money.most, Some(1_000_000));
        routes.entries.entry("fast".into()).or_default().fallback.push("a/b".into());
        assert_eq!(bound_with(&code, false, &prices, &routes).money.most, Some(3_000_000));
        routes.default = vec!["nobody-knows".into()];
        let c = bound_with(&code, false, &prices, &routes);
        assert_eq!(c.unpriced, [("nobody-knows".into(), Some(1))]);
    }

    #[test]
    fn calls_before_a_failure_count() {
        // Two attempts and then the error: a run that succeeds has asked once at least.
        let c = of(true, |b| {
            let mut ask = |name: &str| {
                let f = llm(b, 0);
                let x = b.var(name, AT);
                b.app(f, x, AT)
            };
            let (first, second) = (ask("x"), ask("x"));
            let m = b.var("m", AT);
            let last = b.add(Term::Fail(m), AT);
            let mut attempt = |body, handler| {
                let label = b.lit(Data::list([]), AT);
                b.add(Term::Try { label, body, catches: Catches::All, name: "m".into(), handler }, AT)
            };
            let inner = attempt(second, last);
            let all = attempt(first, inner);
            b.abs("x", None, all, AT)
        });
        assert_eq!(c.model_calls, Interval::up_to(1, 2));
        let never = of(true, |b| {
            let m = b.var("m", AT);
            let e = b.add(Term::Fail(m), AT);
            b.abs("m", None, e, AT)
        });
        assert_eq!(never.model_calls, Interval::ZERO);
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
