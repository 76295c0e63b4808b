//! Quantities and how they combine.
//!
//! Source: `docs/calculus.md` §4 (the grade): sequence adds, a branch takes the envelope, `par` adds all but
//! latency.

use core_ir::Name;
use diagnostics::Span;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// From how many to how many.
///
/// The least is that of runs that end with a value: what is shown of a program that never does is 0. A run
/// that fails may use less. The most holds of every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Minimum in a run that ends with a value.
    pub least: u64,
    /// Maximum, also in a run that fails; `None` if no bound is known.
    pub most: Option<u64>,
}

impl Interval {
    /// None at all.
    pub const ZERO: Interval = Interval { least: 0, most: Some(0) };
    pub(super) const OPEN: Interval = Interval { least: 0, most: None };

    /// Between these.
    pub fn up_to(least: u64, most: u64) -> Interval {
        Interval { least, most: Some(most) }
    }

    pub(super) fn plus(self, other: Interval) -> Interval {
        Interval {
            least: self.least.saturating_add(other.least),
            most: self.most.zip(other.most).map(|(a, b)| a.saturating_add(b)),
        }
    }

    pub(super) fn envelope(self, other: Interval) -> Interval {
        Interval {
            least: self.least.min(other.least),
            most: self.most.zip(other.most).map(|(a, b)| a.max(b)),
        }
    }

    /// Both at the same time.
    fn beside(self, other: Interval) -> Interval {
        Interval {
            least: self.least.max(other.least),
            most: self.most.zip(other.most).map(|(a, b)| a.max(b)),
        }
    }

    pub(super) fn times(self, n: u64) -> Interval {
        Interval {
            least: self.least.saturating_mul(n),
            most: if n == 0 { Some(0) } else { self.most.map(|m| m.saturating_mul(n)) },
        }
    }

    pub(super) fn open(self) -> Interval {
        if self.most == Some(0) { self } else { Interval { least: self.least, most: None } }
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

/// Cost of evaluating a term: an interval for each quantity.
#[derive(Clone)]
pub(super) struct Cost {
    pub(super) models: Interval,
    pub(super) tools: Interval,
    /// Tokens.
    pub(super) input: Interval,
    pub(super) output: Interval,
    /// Billionths of a dollar, for models that have a price.
    pub(super) money: Interval,
    pub(super) millis: Interval,
    /// The most calls of each model that has none.
    pub(super) unpriced: Rc<BTreeMap<Name, Option<u64>>>,
    /// The most calls of each self reference that is being measured.
    pub(super) own: Rc<BTreeMap<u32, u64>>,
    /// Derivation of the upper bound.
    pub(super) trail: Trail,
}

/// The calls on the most expensive path.
pub(super) type Trail = Option<Rc<Step>>;

pub(super) enum Step {
    /// A call, with what it costs.
    Call { at: Span, what: String, most: Share },
    /// A repetition of a trail.
    Many { at: Span, times: Repetition, of: Trail },
    /// The one and then the other.
    Both(Rc<Step>, Rc<Step>),
}

/// Reason why code is evaluated more than once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Repetition {
    /// Unfoldings of a loop: their number, the bound and the maximum of self calls in one unfolding.
    Unfoldings(u64, u64, u64),
    /// Attempts of a guard.
    Attempts(u64),
    /// Without a bound, for this reason.
    Unbounded(String),
}

impl Cost {
    pub(super) fn zero() -> Cost {
        Cost {
            models: Interval::ZERO,
            tools: Interval::ZERO,
            input: Interval::ZERO,
            output: Interval::ZERO,
            money: Interval::ZERO,
            millis: Interval::ZERO,
            unpriced: Rc::default(),
            own: Rc::default(),
            trail: None,
        }
    }

    pub(super) fn unknown() -> Cost {
        let open = Interval::OPEN;
        Cost {
            models: open,
            tools: open,
            input: open,
            output: open,
            money: open,
            millis: open,
            ..Cost::zero()
        }
    }

    fn each(&self, other: &Cost, f: impl Fn(Interval, Interval) -> Interval) -> Cost {
        Cost {
            models: f(self.models, other.models),
            tools: f(self.tools, other.tools),
            input: f(self.input, other.input),
            output: f(self.output, other.output),
            money: f(self.money, other.money),
            millis: f(self.millis, other.millis),
            ..self.clone()
        }
    }

    fn map(&self, f: impl Fn(Interval) -> Interval) -> Cost {
        self.each(self, |a, _| f(a))
    }

    pub(super) fn plus(&self, other: &Cost) -> Cost {
        let mut sum = self.each(other, Interval::plus);
        sum.own = merged(&self.own, &other.own, u64::saturating_add);
        sum.unpriced = merged(&self.unpriced, &other.unpriced, |a, b| Some(a?.saturating_add(b?)));
        sum.trail = both(&self.trail, &other.trail);
        sum
    }

    /// Both at the same time: all add but latency.
    pub(super) fn beside(&self, other: &Cost) -> Cost {
        Cost { millis: self.millis.beside(other.millis), ..self.plus(other) }
    }

    pub(super) fn envelope(&self, other: &Cost) -> Cost {
        let mut all = self.each(other, Interval::envelope);
        all.own = merged(&self.own, &other.own, u64::max);
        all.unpriced = merged(&self.unpriced, &other.unpriced, |a, b| Some(a?.max(b?)));
        all.trail = if self.weight() >= other.weight() { self.trail.clone() } else { other.trail.clone() };
        all
    }

    /// Sort key by which one of two branches is chosen for display.
    fn weight(&self) -> (u64, u64, u64, bool) {
        let most = |i: Interval| i.most.unwrap_or(u64::MAX);
        (most(self.money), most(self.models), most(self.tools), self.trail.is_some())
    }

    pub(super) fn times(&self, n: u64) -> Cost {
        let mut all = self.map(|i| i.times(n));
        all.own = Rc::new(self.own.iter().map(|(k, m)| (*k, m.saturating_mul(n))).collect());
        all.unpriced =
            Rc::new(self.unpriced.iter().map(|(k, m)| (k.clone(), m.map(|m| m.saturating_mul(n)))).collect());
        all
    }

    /// Returns the cost of any number of repetitions.
    pub(super) fn open(&self) -> Cost {
        let mut all = self.map(Interval::open);
        all.own = Rc::new(self.own.keys().map(|k| (*k, super::UNCOUNTED_USES)).collect());
        all.unpriced = Rc::new(self.unpriced.keys().map(|k| (k.clone(), None)).collect());
        all
    }

    /// This and calls of which nothing is known, not even whether there are any.
    pub(super) fn uncounted(&self) -> Cost {
        let all = self.open();
        all.map(|i| Interval { most: None, ..i })
    }

    /// The upper ends of this with the lower ends of another: retries and unfoldings may not happen.
    pub(super) fn least_of(&self, once: &Cost) -> Cost {
        self.each(once, |all, once| Interval { least: once.least, most: all.most })
    }

    /// Cost of a term that never returns a value. Its least cost is neutral in an envelope.
    pub(super) fn never(&self) -> Cost {
        self.map(|i| Interval { least: u64::MAX, ..i })
    }

    /// Returns the cost as displayed: code that never returns a value has the least cost 0.
    pub(super) fn shown(&self) -> Cost {
        self.map(|i| Interval { least: if i.least == u64::MAX { 0 } else { i.least }, ..i })
    }

    /// Returns the cost of code that may not be evaluated at all.
    pub(super) fn optional(&self) -> Cost {
        self.map(|i| Interval { least: 0, ..i })
    }

    /// Labels the derivation as a repetition of what was measured.
    pub(super) fn told(mut self, at: Span, times: Repetition) -> Cost {
        if let Some(of) = self.trail.take() {
            self.trail = Some(Rc::new(Step::Many { at, times, of: Some(of) }));
        }
        self
    }

    /// Returns true if it is nothing at all.
    pub(super) fn is_free(&self) -> bool {
        let all = [self.models, self.tools, self.input, self.output, self.money, self.millis];
        all.iter().all(|i| i.most == Some(0)) && self.unpriced.is_empty() && self.own.is_empty()
    }

    pub(super) fn spends(&self) -> bool {
        [self.models, self.tools].iter().any(|i| i.most != Some(0))
    }
}

fn both(a: &Trail, b: &Trail) -> Trail {
    match (a, b) {
        (Some(a), Some(b)) => Some(Rc::new(Step::Both(a.clone(), b.clone()))),
        (Some(a), None) => Some(a.clone()),
        (None, b) => b.clone(),
    }
}

fn merged<K: Ord + Clone, V: Copy>(
    a: &Rc<BTreeMap<K, V>>,
    b: &Rc<BTreeMap<K, V>>,
    f: impl Fn(V, V) -> V,
) -> Rc<BTreeMap<K, V>> {
    if b.is_empty() {
        return a.clone();
    }
    if a.is_empty() {
        return b.clone();
    }
    let mut all = (**a).clone();
    for (k, v) in b.iter() {
        all.entry(k.clone()).and_modify(|x| *x = f(*x, *v)).or_insert(*v);
    }
    Rc::new(all)
}

/// A long trail must not be dropped by recursion.
impl Drop for Step {
    fn drop(&mut self) {
        let mut work: Vec<Rc<Step>> = Vec::new();
        take(self, &mut work);
        while let Some(step) = work.pop() {
            if let Ok(mut step) = Rc::try_unwrap(step) {
                take(&mut step, &mut work);
            }
        }
    }
}

fn take(step: &mut Step, work: &mut Vec<Rc<Step>>) {
    let nothing = || {
        Rc::new(Step::Call {
            at: Span { file: diagnostics::FileId(0), start: 0, end: 0 },
            what: String::new(),
            most: Share::default(),
        })
    };
    match step {
        Step::Call { .. } => {}
        Step::Many { of, .. } => work.extend(of.take()),
        Step::Both(a, b) => {
            // Only unshared parts are dropped recursively.
            for side in [a, b] {
                if Rc::strong_count(side) == 1 && !matches!(**side, Step::Call { .. }) {
                    work.push(std::mem::replace(side, nothing()));
                }
            }
        }
    }
}

/// The most that one place spends. A quantity without a bound is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Calls of models.
    pub model_calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Money in billionths of a US dollar; `None` also if the model has no price.
    pub money: Option<u64>,
}

impl Share {
    fn times(self, n: Option<u64>) -> Share {
        let times = |most: Option<u64>| match (most, n) {
            (Some(0), _) | (_, Some(0)) => Some(0),
            (most, n) => most.zip(n).map(|(most, n)| most.saturating_mul(n)),
        };
        Share {
            model_calls: times(self.model_calls),
            tool_calls: times(self.tool_calls),
            money: times(self.money),
        }
    }
}

impl Repetition {
    /// The most repetitions.
    fn most(&self) -> Option<u64> {
        match self {
            Repetition::Unfoldings(n, ..) | Repetition::Attempts(n) => Some(*n),
            Repetition::Unbounded(_) => None,
        }
    }
}

/// One line of a derivation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Nesting depth in loops and guards.
    pub depth: u32,
    /// Where.
    pub span: Span,
    /// Name of what is called, or the number of times that the following, more indented lines happen.
    pub text: String,
    /// The most that a call spends in a run, all repetitions around it included. Of a repetition `None`.
    pub most: Option<Share>,
}

/// The calls of a trail in order.
pub(super) fn lines(trail: &Trail, most: usize) -> Vec<Line> {
    let mut out: Vec<Line> = Vec::new();
    let mut work: Vec<(Rc<Step>, u32, Option<u64>)> = trail.iter().map(|t| (t.clone(), 0, Some(1))).collect();
    while let Some((step, depth, around)) = work.pop() {
        if out.len() >= most {
            break;
        }
        match &*step {
            Step::Call { at, what, most } => {
                out.push(Line { depth, span: *at, text: what.clone(), most: Some(most.times(around)) });
            }
            Step::Both(a, b) => work.extend([(b.clone(), depth, around), (a.clone(), depth, around)]),
            Step::Many { at, times, of } => {
                let text = match times {
                    Repetition::Unfoldings(n, 1, _) => format!("at most {n} rounds, each:"),
                    Repetition::Unfoldings(n, k, bound) => {
                        format!("at most {n} rounds (bound {bound}, up to {k} self calls a round), each:")
                    }
                    Repetition::Attempts(n) => format!("at most {n} attempts, each:"),
                    Repetition::Unbounded(why) => format!("{why}, each round:"),
                };
                out.push(Line { depth, span: *at, text, most: None });
                let around = around.zip(times.most()).map(|(around, n)| around.saturating_mul(n));
                work.extend(of.iter().map(|t| (t.clone(), depth + 1, around)));
            }
        }
    }
    out
}
