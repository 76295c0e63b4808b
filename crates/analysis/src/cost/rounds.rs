//! The number of rounds of a loop that counts: a variable of its state moves by at least a constant in each
//! round, and a condition keeps it below, or above, a limit before the next one begins.
//!
//! One unfolding is measured for any state of the shape that the loop begins with. What it hands to the next
//! one shows how each variable moves, and what conditions have said of it by then. A variable that never
//! changes, or that only grows or shrinks, is then known as far as its first value is.
//!
//! Invariant: what is said of a state holds of the states of all rounds.

use super::Analysis;
use super::facts::{self, Counter, Facts};
use super::grade::Cost;
use super::values::{Value, is_plain};
use crate::range::Range;
use core_ir::{Name, Num};
use diagnostics::Span;
use std::rc::Rc;

/// Maximum number of variables of a loop that counts.
const MAX_VARIABLES: usize = 256;

/// The shape of a loop's state.
enum Shape {
    Variable(usize),
    Record(Vec<Name>),
    Tag(Name, Box<Shape>),
}

/// Knowledge of the next rounds that one round shows.
pub(super) struct Rounds {
    /// The self reference of the loop.
    own: u32,
    shape: Rc<Shape>,
    /// Of each variable.
    moves: Vec<Move>,
    /// True if a state of another shape was handed on.
    broken: bool,
}

/// How a variable changes from one round to the next.
#[derive(Clone)]
enum Move {
    /// No next round has been seen.
    Never,
    By {
        distance: Range,
        /// Range of its value in a round that is followed by another.
        from: Range,
    },
    Unknown,
}

/// A measured round, and the most rounds if they could be counted.
pub(super) struct Counted {
    pub(super) round: (u32, Value, Cost),
    pub(super) rounds: Option<u64>,
}

impl Shape {
    /// The shape of a state, with the values of its variables.
    fn of(x: &Value, values: &mut Vec<Value>) -> Shape {
        match x {
            Value::Record(fields) => {
                values.extend(fields.iter().map(|(_, v)| v.clone()));
                Shape::Record(fields.iter().map(|(n, _)| n.clone()).collect())
            }
            Value::Tag(name, x) if values.is_empty() && !matches!(**x, Value::Tag(..)) => {
                Shape::Tag(name.clone(), Box::new(Shape::of(x, values)))
            }
            x => {
                values.push(x.clone());
                Shape::Variable(0)
            }
        }
    }

    /// A state of this shape.
    fn state(&self, values: &[Value]) -> Value {
        match self {
            Shape::Variable(i) => values.get(*i).cloned().unwrap_or(Value::Data),
            Shape::Record(names) => {
                Value::Record(Rc::new(names.iter().cloned().zip(values.iter().cloned()).collect()))
            }
            Shape::Tag(name, shape) => Value::Tag(name.clone(), Rc::new(shape.state(values))),
        }
    }

    /// The values of the variables of a state; `None` if it is of another shape.
    fn values(&self, x: &Value) -> Option<Vec<Value>> {
        match (self, x) {
            (Shape::Variable(_), x) => Some(vec![x.clone()]),
            (Shape::Record(names), Value::Record(fields)) if names.len() == fields.len() => {
                let value = |name: &Name| fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
                names.iter().map(value).collect()
            }
            (Shape::Tag(name, shape), Value::Tag(n, x)) if n == name => shape.values(x),
            _ => None,
        }
    }
}

impl Rounds {
    /// Notes the state of a next round.
    pub(super) fn observe(&mut self, x: &Value) {
        let values = if is_plain(x) { self.shape.values(x) } else { None };
        let Some(values) = values else {
            self.broken = true;
            return;
        };
        for (i, (seen, v)) in self.moves.iter_mut().zip(&values).enumerate() {
            let facts = Facts::of(v);
            *seen = match (&*seen, facts.counter) {
                (Move::Never, Some(c)) if c.variable == (self.own, i) => {
                    Move::By { from: facts.value.minus(&c.by), distance: c.by }
                }
                (Move::By { distance, from }, Some(c)) if c.variable == (self.own, i) => {
                    let from = from.hull(&facts.value.minus(&c.by));
                    Move::By { distance: distance.hull(&c.by), from }
                }
                _ => Move::Unknown,
            };
        }
    }
}

impl Move {
    /// Facts of a variable in all rounds, if it begins with this value.
    fn kept(&self, first: &Value) -> Value {
        let Move::By { distance, .. } = self else { return Value::Data };
        if *distance == Range::exactly(&Num::ZERO) {
            return first.clone();
        }
        let first = Facts::of(first);
        let mut value = Range::default();
        if distance.low.as_ref().is_some_and(|(n, _)| *n >= Num::ZERO) {
            value.low = first.value.low;
        }
        if distance.high.as_ref().is_some_and(|(n, _)| *n <= Num::ZERO) {
            value.high = first.value.high;
        }
        // The sum of a number and another value is no value.
        Facts { value, number: first.number, ..Facts::default() }.value()
    }

    /// The last round that can begin, counted from 0, and the range of the variable in it.
    fn last_round(&self, first: &Value) -> Option<(u64, Range)> {
        let Move::By { distance, from } = self else { return None };
        let first = facts::range(first);
        let up = last_round_up(&first, distance, from);
        let down = || {
            let (m, range) = last_round_up(&first.negated(), &distance.negated(), &from.negated())?;
            Some((m, range.negated()))
        };
        up.or_else(down)
    }
}

/// [`Move::last_round`] of a variable that grows.
fn last_round_up(first: &Range, distance: &Range, from: &Range) -> Option<(u64, Range)> {
    let ((start, s), (step, _), (end, t)) =
        (first.low.as_ref()?, distance.low.as_ref()?, from.high.as_ref()?);
    if *step <= Num::ZERO {
        return None;
    }
    // In a round that is followed by another, start + m * step <= end.
    let mut m = end.sub(start).ok()?.div(step).ok()?;
    if (*s || *t) && m == m.floor() {
        m = m.sub(&Num::ONE).ok()?;
    }
    let m = u64::try_from(m.floor().add(&Num::ONE).ok()?.to_i64()?.max(0)).ok()?;
    let least = start.add(&step.mul(&Num::from(i64::try_from(m).ok()?)).ok()?).ok()?;
    Some((m, Range { low: Some((least, *s)), ..Range::default() }))
}

impl Analysis<'_> {
    /// Measures a round of a loop that begins with a state without functions, and counts the rounds; `None`
    /// if there is nothing to count by.
    pub(super) fn count_rounds(&mut self, body: &Value, x: &Value, at: Span) -> Option<Counted> {
        if !is_plain(x) || self.given_up.is_some() {
            return None;
        }
        let mut first = Vec::new();
        let shape = Rc::new(Shape::of(x, &mut first));
        if first.len() > MAX_VARIABLES || first.iter().all(|v| facts::range(v).is_any()) {
            return None;
        }
        let reasons = self.reasons.len();
        let mut state = vec![Value::Data; first.len()];
        let (mut round, mut moves) = self.measure_counting(body, &shape, &state, &first, at)?;
        let mut last = last_of(&first, &moves);
        let kept: Vec<Value> = moves.iter().zip(&first).map(|(m, v)| m.kept(v)).collect();
        // What is known of one variable says something of the others.
        let known = |v: &&Value| !matches!(v, Value::Data);
        if last.is_none() && kept.iter().filter(known).count() > 1 {
            self.reasons.truncate(reasons);
            state = kept;
            (round, moves) = self.measure_counting(body, &shape, &state, &first, at)?;
            last = last_of(&first, &moves);
        }
        let Some((i, m, range)) = last else { return Some(Counted { round, rounds: None }) };
        // In the last round the condition fails, which often costs nothing.
        let after = self.reasons.len();
        if let Some(v) = state.get_mut(i) {
            let number = facts::is_number(&first[i]);
            *v = facts::within(v, &range, number).unwrap_or_else(|| v.clone());
        }
        let free = m > 0
            && self
                .measure_counting(body, &shape, &state, &first, at)
                .is_some_and(|((.., c), _)| c.is_free());
        self.reasons.truncate(after);
        Some(Counted { round, rounds: m.checked_add(u64::from(!free)) })
    }

    /// Measures a round of any state of a shape of which this is known, and what it hands to the next one.
    fn measure_counting(
        &mut self,
        body: &Value,
        shape: &Rc<Shape>,
        state: &[Value],
        first: &[Value],
        at: Span,
    ) -> Option<((u32, Value, Cost), Vec<Move>)> {
        let (own, limits) = (self.new_self(), self.limits);
        // A variable of which nothing is known at the beginning leads nowhere.
        let counted = |(i, (v, first)): (usize, (&Value, &Value))| match v {
            Value::Data | Value::Within(_) if !matches!(first, Value::Data) => {
                let counter = Some(Counter { variable: (own, i), by: Range::exactly(&Num::ZERO) });
                Facts { counter, ..Facts::of(v) }.value()
            }
            v => v.clone(),
        };
        let values: Vec<Value> = state.iter().zip(first).enumerate().map(counted).collect();
        let moves = vec![Move::Never; values.len()];
        self.rounds.insert(own, Rounds { own, shape: shape.clone(), moves, broken: false });
        let round = self.measure_with(own, body, true, shape.state(&values), at);
        let rounds = self.rounds.remove(&own)?;
        let whole = self.given_up.is_none() && self.limits == limits && !rounds.broken;
        (whole && is_plain(&round.1) && !self.handed.contains(&own)).then_some((round, rounds.moves))
    }
}

/// The variable that bounds the rounds, the last of them, and its range in it.
fn last_of(first: &[Value], moves: &[Move]) -> Option<(usize, u64, Range)> {
    let all = first.iter().zip(moves).enumerate();
    let counts = all.filter_map(|(i, (v, m))| m.last_round(v).map(|(m, range)| (i, m, range)));
    counts.min_by_key(|(_, m, _)| *m)
}
