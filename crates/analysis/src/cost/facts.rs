//! Knowledge of data that is not known itself: ranges of numbers and of lengths, field by field, and how far
//! a value is from the one that a round of a loop began with.
//!
//! Invariant: facts hold of every value that the data can be. A range is about the number, or the length, of
//! data that has one.

use super::values::{Value, field, is_plain, known};
use crate::range::{Range, negated};
use core_ir::{Comparison, Data, Measure, Name, Num, Pred, Prim, Type};
use std::rc::Rc;

/// Knowledge of data.
#[derive(Clone, Default)]
pub(super) struct Facts {
    /// Range of the number, if it is one.
    pub(super) value: Range,
    /// Range of the length, if it has one.
    pub(super) length: Range,
    /// True if it is a number for certain.
    pub(super) number: bool,
    /// Fields of which something is known.
    pub(super) fields: Vec<(Name, Value)>,
    /// Its distance from a variable of a loop, if it is the sum of both.
    pub(super) counter: Option<Counter>,
}

/// Distance of a number from its value at the beginning of a round.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Counter {
    /// Number of the self reference of the loop, and of the variable in its state.
    pub(super) variable: (u32, usize),
    pub(super) by: Range,
}

impl Facts {
    fn is_any(&self) -> bool {
        self.value.is_any()
            && self.length.is_any()
            && !self.number
            && self.fields.is_empty()
            && self.counter.is_none()
    }

    /// Data of which these facts are known.
    pub(super) fn value(self) -> Value {
        if self.is_any() { Value::Data } else { Value::Within(Rc::new(self)) }
    }

    /// Facts of a value without functions.
    pub(super) fn of(v: &Value) -> Facts {
        match v {
            Value::Within(facts) => (**facts).clone(),
            Value::Record(fields) => Facts {
                length: Range::exactly(&Num::from(fields.len() as i64)),
                fields: fields.to_vec(),
                ..Facts::default()
            },
            v => Facts { value: range(v), length: length(v), number: is_number(v), ..Facts::default() },
        }
    }

    /// Facts of data that is one of two.
    pub(super) fn either(a: &Facts, b: &Facts) -> Facts {
        let both = |(name, v): &(Name, Value)| {
            let (_, w) = b.fields.iter().find(|(n, _)| n == name)?;
            let joined = Value::join(v.clone(), w.clone());
            (is_plain(&joined) && !matches!(joined, Value::Data)).then(|| (name.clone(), joined))
        };
        let counter = match (&a.counter, &b.counter) {
            (Some(x), Some(y)) if x.variable == y.variable => {
                Some(Counter { variable: x.variable, by: x.by.hull(&y.by) })
            }
            _ => None,
        };
        Facts {
            value: a.value.hull(&b.value),
            length: a.length.hull(&b.length),
            number: a.number && b.number,
            fields: a.fields.iter().filter_map(both).collect(),
            counter,
        }
    }
}

/// Range of the number that a value is, if it is one.
pub(super) fn range(v: &Value) -> Range {
    match (v, v.number()) {
        (_, Some(n)) => Range::exactly(n),
        (Value::Within(facts), _) => facts.value.clone(),
        _ => Range::default(),
    }
}

/// Range of the length of a value, if it has one.
pub(super) fn length(v: &Value) -> Range {
    match (v, v.items()) {
        (_, Some(n)) => Range::exactly(&Num::from(n as i64)),
        (Value::Record(fields), _) => Range::exactly(&Num::from(fields.len() as i64)),
        (Value::Within(facts), _) => facts.length.clone(),
        _ => Range::default(),
    }
}

/// Returns the most items that a list has, if that is known.
pub(super) fn most_items(v: &Value) -> Option<u64> {
    // No length is in an empty range.
    length(v).last().map(|most| most.unwrap_or(0))
}

pub(super) fn is_number(v: &Value) -> bool {
    match v {
        Value::Within(facts) => facts.number,
        v => v.number().is_some(),
    }
}

/// Data that is in a range if it is a number, and, with `number`, is one; `None` if that is nothing new.
pub(super) fn within(v: &Value, of: &Range, number: bool) -> Option<Value> {
    let mut facts = open(v)?;
    let before = (facts.value.clone(), facts.number);
    facts.value.meet(of);
    facts.number |= number;
    (before != (facts.value.clone(), facts.number)).then(|| facts.value())
}

/// Data whose length is in a range if it has one; `None` if that is nothing new.
pub(super) fn of_length(v: &Value, range: &Range) -> Option<Value> {
    let mut facts = open(v)?;
    let before = facts.length.clone();
    facts.length.meet(range);
    facts.length = facts.length.whole();
    (before != facts.length).then(|| facts.value())
}

/// A value of which a field changes.
pub(super) fn in_field(v: &Value, name: &Name, change: &Change<'_>) -> Option<Value> {
    let changed = change(&field(v, name))?;
    if let Value::Record(fields) = v {
        let with =
            |(n, old): &(Name, Value)| (n.clone(), if n == name { changed.clone() } else { old.clone() });
        return Some(Value::Record(Rc::new(fields.iter().map(with).collect())));
    }
    let mut facts = open(v)?;
    facts.fields.retain(|(n, _)| n != name);
    facts.fields.push((name.clone(), changed));
    Some(facts.value())
}

/// A step from a value to one of which more is known; `None` if that is nothing new.
pub(super) type Change<'a> = dyn Fn(&Value) -> Option<Value> + 'a;

/// The facts of data that is not known.
fn open(v: &Value) -> Option<Facts> {
    match v {
        Value::Data => Some(Facts::default()),
        Value::Within(facts) => Some((**facts).clone()),
        _ => None,
    }
}

/// A value of which a predicate holds, or fails.
pub(super) fn satisfying(v: Value, p: &Pred, holds: bool) -> Value {
    if open(&v).is_none() {
        return v;
    }
    let narrowed = |v: &Value| match p {
        Pred::Compare(measure, c, n) => {
            let c = if holds { *c } else { negated(*c) };
            let mut range = Range::default();
            if c != Comparison::Ne {
                range.compare(c, n);
            }
            match measure {
                Measure::Length => of_length(v, &range),
                Measure::Value => within(v, &range, holds),
                Measure::Words => None,
            }
        }
        Pred::OneOf(items) if holds => {
            let one = Facts::of(&items.iter().map(known).reduce(Value::join)?);
            let of_value = within(v, &one.value, one.number);
            let narrower = of_value.as_ref().unwrap_or(v);
            of_length(narrower, &one.length).or(of_value)
        }
        Pred::Field(name, p) if holds => in_field(v, name, &|v| Some(satisfying(v.clone(), p, true))),
        _ => None,
    };
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match p {
        Pred::Not(p) => satisfying(v, p, !holds),
        Pred::Schema(schema) if holds => satisfying(v, schema.necessary().0, true),
        Pred::And(p) if holds => satisfying(satisfying(v, &p.0, true), &p.1, true),
        Pred::Or(p) if !holds => satisfying(satisfying(v, &p.0, false), &p.1, false),
        Pred::And(p) | Pred::Or(p) => {
            Value::join(satisfying(v.clone(), &p.0, holds), satisfying(v, &p.1, holds))
        }
        _ => narrowed(&v).unwrap_or(v),
    })
}

/// A value of a type.
pub(super) fn of_type(v: Value, ty: &Type) -> Value {
    if open(&v).is_none() {
        return v;
    }
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match ty {
        Type::Num => within(&v, &Range::default(), true).unwrap_or(v),
        Type::Refined(r) => satisfying(of_type(v, &r.0), &r.1, true),
        Type::Record(fields) => fields.iter().fold(v, |v, (name, ty)| {
            let typed = |of: &Value| match of_type(of.clone(), ty) {
                Value::Data => None,
                typed => Some(typed),
            };
            in_field(&v, name, &typed).unwrap_or(v)
        }),
        _ => v,
    })
}

/// The result of a primitive on data, as far as facts of its operands determine it.
pub(super) fn result(p: Prim, args: &[Value]) -> Value {
    let of = |value: Range| Facts { value, number: true, ..Facts::default() }.value();
    let listed = |length: Range| Facts { length, ..Facts::default() }.value();
    match (p, args) {
        (Prim::Length, [v]) => {
            let mut natural = Range::natural();
            natural.meet(&length(v));
            of(natural)
        }
        (Prim::Add, [a, b]) => {
            let number = is_number(a) || is_number(b);
            let facts = Facts {
                value: range(a).plus(&range(b)),
                length: if number { Range::default() } else { length(a).plus(&length(b)) },
                number,
                fields: Vec::new(),
                counter: moved(a, &range(b), is_number(b)).or_else(|| moved(b, &range(a), is_number(a))),
            };
            facts.value()
        }
        (Prim::Sub, [a, b]) => {
            let by = range(b).negated();
            let facts = Facts {
                value: range(a).plus(&by),
                number: true,
                counter: moved(a, &by, is_number(b)),
                ..Facts::default()
            };
            facts.value()
        }
        (Prim::Neg, [v]) => of(range(v).negated()),
        (Prim::Mul | Prim::Div | Prim::Rem, [_, _]) => of(Range::default()),
        (Prim::Append, [xs, _]) => listed(length(xs).plus(&Range::exactly(&Num::ONE))),
        (Prim::Slice, [of, from, to]) => {
            let mut cut = count(from, to);
            cut.low = None;
            if let Some((n, strict)) = length(of).high {
                cut.at_most(&n, strict);
            }
            listed(cut)
        }
        (Prim::Range, [from, to]) => listed(count(from, to)),
        (Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge | Prim::Eq | Prim::Ne, [a, b]) => {
            match compared(p, a, b) {
                Some(is) => known(&Data::Bool(is)),
                None => Value::Data,
            }
        }
        // A list with some of the items of another.
        (Prim::Py, [Value::Known(name), items, ..])
            if matches!(
                name.as_str(),
                Some(
                    "agent.filter"
                        | "agent.sort_by"
                        | "agent.sort"
                        | "agent.reverse"
                        | "agent.unique"
                        | "agent.group_by"
                )
            ) =>
        {
            listed(Range { low: None, ..length(items) })
        }
        _ => Value::Data,
    }
}

/// The distance of a sum from a variable of a loop.
fn moved(v: &Value, by: &Range, number: bool) -> Option<Counter> {
    let Value::Within(facts) = v else { return None };
    let counter = facts.counter.as_ref()?;
    number.then(|| Counter { variable: counter.variable, by: counter.by.plus(by) })
}

/// The number of whole numbers from one up to another.
fn count(from: &Value, to: &Value) -> Range {
    let mut all = range(to).minus(&range(from));
    all = all.whole();
    // From a greater number to a smaller one there are none.
    if all.high.as_ref().is_some_and(|(n, _)| *n < Num::ZERO) {
        all.high = Some((Num::ZERO, false));
    }
    all
}

/// Decides a comparison of which one side is a number for certain, so that both are.
fn compared(p: Prim, a: &Value, b: &Value) -> Option<bool> {
    if !is_number(a) && !is_number(b) {
        return None;
    }
    let (a, b) = (range(a), range(b));
    match p {
        Prim::Lt => a.is_less(&b),
        Prim::Gt => b.is_less(&a),
        Prim::Le => b.is_less(&a).map(|less| !less),
        Prim::Ge => a.is_less(&b).map(|less| !less),
        // What is no number is not equal to one.
        Prim::Eq | Prim::Ne => {
            let apart = a.is_less(&b) == Some(true) || b.is_less(&a) == Some(true);
            apart.then_some(p == Prim::Ne)
        }
        _ => None,
    }
}
