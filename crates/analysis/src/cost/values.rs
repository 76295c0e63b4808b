//! Abstract values of the cost analysis: functions are followed, small data is computed.

use super::facts::{self, Facts};
use crate::range::Range;
use core_ir::{Bound, BoundOrigin, Code, Data, ModelParams, Name, Num, Prim, TermId};
use diagnostics::Span;
use std::rc::Rc;
use std::sync::Arc;

/// Alternatives kept apart where branches give different functions.
const MAX_CHOICES: usize = 16;
/// Items of a list, and bytes of a text, that are computed with.
const MAX_ITEMS: usize = 4_096;
const MAX_TEXT_BYTES: usize = 1 << 16;

/// An abstract value.
#[derive(Clone)]
pub(super) enum Value {
    /// Data without functions inside.
    Data,
    /// Data without functions inside, of which something is known.
    Within(Rc<Facts>),
    /// This very data.
    Known(Rc<Data>),
    /// Anything, including functions of which nothing is known.
    Unknown,
    Closure(Rc<Closure>),
    /// The prelude's `fix`: applied to a function it is `fix[∞]` of it.
    PreludeFix,
    Fix(Bound, Rc<Value>, Span, Option<BoundOrigin>),
    Guarded(Rc<Value>, u32, Span),
    /// A model, with the bytes of its prompt if they are known.
    Llm(Arc<ModelParams>, Option<u64>, Span),
    Tool(Name),
    /// The self reference of an unfolding that is being measured, and whether its results are data.
    Own(u32, bool),
    /// The self reference of a loop that is followed round by round.
    Round(usize, Bound, Rc<Value>),
    Record(Rc<Vec<(Name, Value)>>),
    List(Rc<Vec<Value>>),
    Tag(Name, Rc<Value>),
    /// One of these.
    Choice(Rc<Vec<Value>>),
}

/// A function with what it captured.
pub(super) struct Closure {
    /// Number of the function among those of equal code and captures, if these can be compared.
    pub(super) number: Option<u32>,
    pub(super) code: Arc<Code>,
    pub(super) term: TermId,
    pub(super) captures: Vec<Value>,
}

/// A step of the description by which values are compared ([`Value::describe`]).
#[derive(PartialEq, Eq, Hash)]
pub(super) enum Token {
    Data,
    Known(Rc<Data>),
    /// Of this number of fields: ranges of the value and the length, whether it is a number, and its distance
    /// from a variable of a loop.
    Within(Range, Range, bool, Option<facts::Counter>, usize),
    Unknown,
    /// A closure of this number.
    Closure(u32),
    PreludeFix,
    Fix(Bound, Span, Option<BoundOrigin>),
    Guarded(u32, Span),
    /// By the address of its parameters, which the code keeps.
    Llm(usize, Option<u64>, Span),
    Tool(Name),
    /// Of this number of fields: a name and a value each.
    Record(usize),
    Field(Name),
    List(usize),
    Tag(Name),
    Choice(usize),
    /// The function of this code (by its address) and term, with captures that follow.
    Function(usize, TermId),
    /// A call: whether models are told that it is repeated, and the place that code of other files is put
    /// down to.
    Call(bool, Option<Span>),
}

#[derive(Clone)]
pub(super) struct Env {
    pub(super) locals: Vec<Local>,
    pub(super) captures: Vec<Value>,
}

/// A variable with the term of the same function whose value it is, if a `let` has bound it.
#[derive(Clone)]
pub(super) struct Local {
    pub(super) value: Value,
    pub(super) term: Option<TermId>,
}

impl From<Value> for Local {
    fn from(value: Value) -> Local {
        Local { value, term: None }
    }
}

/// A literal.
pub(super) fn known(d: &Data) -> Value {
    match d {
        Data::Record(fields) => {
            Value::Record(Rc::new(fields.iter().map(|(n, d)| (n.clone(), known(d))).collect()))
        }
        Data::Tag(n, d) => Value::Tag(n.clone(), Rc::new(known(d))),
        d => Value::Known(Rc::new(d.clone())),
    }
}

impl Value {
    pub(super) fn join(a: Value, b: Value) -> Value {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || Value::join_inner(a, b))
    }

    fn join_inner(a: Value, b: Value) -> Value {
        let plain = is_plain(&a) && is_plain(&b);
        match (a, b) {
            (Value::Known(a), Value::Known(b)) if a == b => Value::Known(a),
            (Value::Data, b) if plain && !b.has_tag() => Value::Data,
            (a, Value::Data) if plain && !a.has_tag() => Value::Data,
            (Value::Unknown, _) | (_, Value::Unknown) => Value::Unknown,
            // Records of the same fields.
            (Value::Record(a), Value::Record(b))
                if plain && a.len() == b.len() && a.iter().zip(b.iter()).all(|((n, _), (m, _))| n == m) =>
            {
                let both = |((n, v), (_, w)): (&(Name, Value), &(Name, Value))| {
                    (n.clone(), Value::join(v.clone(), w.clone()))
                };
                Value::Record(Rc::new(a.iter().zip(b.iter()).map(both).collect()))
            }
            (a, b) if plain && !a.has_tag() && !b.has_tag() => {
                Facts::either(&Facts::of(&a), &Facts::of(&b)).value()
            }
            (a, b) => {
                let mut all: Vec<Value> = Vec::new();
                for v in [a, b] {
                    match v {
                        Value::Choice(vs) => vs.iter().for_each(|v| add_choice(&mut all, v.clone())),
                        v => add_choice(&mut all, v),
                    }
                }
                match &all[..] {
                    [one] => one.clone(),
                    _ if all.len() <= MAX_CHOICES => Value::Choice(Rc::new(all)),
                    _ if plain => Value::Data,
                    _ => Value::Unknown,
                }
            }
        }
    }

    fn has_tag(&self) -> bool {
        matches!(self, Value::Tag(..) | Value::Choice(_))
    }

    /// Returns true if the value may contain a self reference of number `from` or later.
    pub(super) fn holds_own(&self, from: u32) -> bool {
        self.any(|v| matches!(v, Value::Own(k, _) if *k >= from)).unwrap_or(true)
    }

    /// Returns true if the value may contain the self reference of a loop that is being unrolled.
    pub(super) fn holds_round(&self) -> bool {
        self.any(|v| matches!(v, Value::Round(..))).unwrap_or(true)
    }

    /// Returns true if a part is known, so that a loop over the value may end at a known iteration.
    pub(super) fn has_known(&self) -> bool {
        self.any(|v| matches!(v, Value::Known(_))).unwrap_or(false)
    }

    /// Returns true if a part satisfies the predicate; `None` if there are too many parts to visit.
    fn any(&self, such: impl Fn(&Value) -> bool) -> Option<bool> {
        const MAX_PARTS: usize = 20_000;
        let mut work = vec![self];
        let mut looked = 0;
        while let Some(v) = work.pop() {
            looked += 1;
            if such(v) {
                return Some(true);
            }
            if looked > MAX_PARTS {
                return None;
            }
            match v {
                Value::Data
                | Value::Known(_)
                | Value::Unknown
                | Value::Llm(..)
                | Value::Tool(_)
                | Value::Own(..)
                | Value::PreludeFix => {}
                Value::Within(facts) => work.extend(facts.fields.iter().map(|(_, v)| v)),
                Value::Closure(c) => work.extend(&c.captures),
                Value::Fix(_, v, ..) | Value::Guarded(v, ..) | Value::Tag(_, v) | Value::Round(_, _, v) => {
                    work.push(v);
                }
                Value::Record(fs) => work.extend(fs.iter().map(|(_, v)| v)),
                Value::List(vs) | Value::Choice(vs) => work.extend(vs.iter()),
            }
        }
        Some(false)
    }

    /// Appends the description of the value: equal descriptions are of equal values. Returns `None` if the
    /// value is too large to be compared, or part of a loop that is being measured or followed.
    pub(super) fn describe(&self, out: &mut Vec<Token>) -> Option<()> {
        const MAX_TOKENS: usize = 64;
        if out.len() >= MAX_TOKENS {
            return None;
        }
        match self {
            Value::Data => out.push(Token::Data),
            Value::Known(d) => {
                let small = match &**d {
                    Data::Null | Data::Bool(_) | Data::Num(_) => true,
                    Data::Str(text) => text.len() <= MAX_TEXT_BYTES,
                    _ => false,
                };
                out.push(small.then(|| Token::Known(d.clone()))?);
            }
            Value::Within(facts) => {
                out.push(Token::Within(
                    facts.value.clone(),
                    facts.length.clone(),
                    facts.number,
                    facts.counter.clone(),
                    facts.fields.len(),
                ));
                for (name, value) in &facts.fields {
                    out.push(Token::Field(name.clone()));
                    value.describe(out)?;
                }
            }
            Value::Unknown => out.push(Token::Unknown),
            Value::Closure(c) => out.push(Token::Closure(c.number?)),
            Value::PreludeFix => out.push(Token::PreludeFix),
            Value::Fix(bound, body, at, origin) => {
                out.push(Token::Fix(*bound, *at, origin.clone()));
                body.describe(out)?;
            }
            Value::Guarded(body, retry, at) => {
                out.push(Token::Guarded(*retry, *at));
                body.describe(out)?;
            }
            Value::Llm(params, bytes, at) => out.push(Token::Llm(Arc::as_ptr(params).addr(), *bytes, *at)),
            Value::Tool(name) => out.push(Token::Tool(name.clone())),
            Value::Own(..) | Value::Round(..) => return None,
            Value::Record(fields) => {
                out.push(Token::Record(fields.len()));
                for (name, value) in fields.iter() {
                    out.push(Token::Field(name.clone()));
                    value.describe(out)?;
                }
            }
            Value::List(items) => {
                out.push(Token::List(items.len()));
                items.iter().try_for_each(|v| v.describe(out))?;
            }
            Value::Tag(name, payload) => {
                out.push(Token::Tag(name.clone()));
                payload.describe(out)?;
            }
            Value::Choice(values) => {
                out.push(Token::Choice(values.len()));
                values.iter().try_for_each(|v| v.describe(out))?;
            }
        }
        Some(())
    }

    /// The number that it is.
    pub(super) fn number(&self) -> Option<&Num> {
        match self {
            Value::Known(d) => match &**d {
                Data::Num(n) => Some(n),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Value::Known(d) => d.as_str(),
            _ => None,
        }
    }

    /// Returns the maximum number of bytes that the value has when it is sent.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self {
            Value::Known(d) => match &**d {
                Data::Str(s) => Some(s.len() as u64),
                d @ (Data::Null | Data::Bool(_) | Data::Num(_)) => {
                    Some(core_ir::print_data(d).len() as u64 + 2)
                }
                // How the rest is written is the machine's business.
                _ => None,
            },
            _ => None,
        }
    }

    /// It as data, if all of it is known.
    fn data(&self) -> Option<Data> {
        match self {
            Value::Known(d) => Some((**d).clone()),
            Value::List(vs) if vs.len() <= MAX_ITEMS => {
                vs.iter().map(Value::data).collect::<Option<Vec<_>>>().map(Data::list)
            }
            _ => None,
        }
    }

    /// Returns the number of items, if the value is a list of known length.
    pub(super) fn items(&self) -> Option<usize> {
        match self {
            Value::List(vs) => Some(vs.len()),
            Value::Known(d) => match &**d {
                Data::List(items) => Some(items.len()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Its items, if it is a list of known length.
    pub(super) fn values(&self) -> Option<Vec<Value>> {
        match self {
            Value::List(vs) => Some(vs.to_vec()),
            Value::Known(d) => match &**d {
                Data::List(items) => Some(items.iter().map(known).collect()),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Adds one of several values. Those that are told apart by nothing but data are one.
fn add_choice(all: &mut Vec<Value>, v: Value) {
    let same = |w: &Value| match (w, &v) {
        (Value::Tag(n, p), Value::Tag(m, q)) => n == m && is_plain(p) && is_plain(q),
        (Value::Data | Value::Within(_) | Value::Known(_), Value::Data | Value::Within(_)) => true,
        (Value::Data | Value::Within(_), Value::Known(_)) => true,
        _ => false,
    };
    match all.iter_mut().find(|w| same(w)) {
        Some(w) => {
            *w = match (&*w, v) {
                (Value::Tag(n, p), Value::Tag(_, q)) => {
                    Value::Tag(n.clone(), Rc::new(Value::join((**p).clone(), (*q).clone())))
                }
                (w, v) => Value::join(w.clone(), v),
            }
        }
        None => all.push(v),
    }
}

/// Returns true if a value contains no function.
pub(super) fn is_plain(v: &Value) -> bool {
    match v {
        Value::Data | Value::Within(_) | Value::Known(_) => true,
        Value::Record(fs) => fs.iter().all(|(_, v)| is_plain(v)),
        Value::List(vs) | Value::Choice(vs) => vs.iter().all(is_plain),
        Value::Tag(_, v) => is_plain(v),
        _ => false,
    }
}

pub(super) fn field(v: &Value, name: &Name) -> Value {
    match v {
        Value::Data | Value::Known(_) => Value::Data,
        Value::Within(facts) => {
            facts.fields.iter().find(|(n, _)| n == name).map_or(Value::Data, |(_, v)| v.clone())
        }
        Value::Record(fields) => {
            fields.iter().find(|(n, _)| n == name).map_or(Value::Data, |(_, v)| v.clone())
        }
        Value::Choice(vs) => vs.iter().map(|v| field(v, name)).reduce(Value::join).unwrap_or(Value::Data),
        _ => Value::Unknown,
    }
}

/// A primitive: computed where its operands are known and small. Lists may carry functions through some of
/// them.
pub(super) fn prim(p: Prim, args: &[Value]) -> Value {
    let data = |d: Data| Value::Known(Rc::new(d));
    let num = |n: Result<Num, core_ir::NumError>| n.map_or(Value::Data, |n| data(Data::Num(n)));
    let carries = matches!(p, Prim::Add | Prim::Append | Prim::Slice | Prim::Flatten);
    let unknown = || match args.iter().all(is_plain) || !carries {
        true => facts::result(p, args),
        false => Value::Unknown,
    };
    match (p, args) {
        (Prim::Flatten, [v]) => v.clone(),
        (Prim::Length, [v]) => match v.items() {
            Some(n) => data(Data::Num(Num::from(n as i64))),
            None => unknown(),
        },
        (Prim::Append, [xs, x]) => match xs.values() {
            Some(mut all) if all.len() < MAX_ITEMS => {
                all.push(x.clone());
                Value::List(Rc::new(all))
            }
            _ => unknown(),
        },
        (Prim::Range, [a, b]) => match (a.number().and_then(Num::to_i64), b.number().and_then(Num::to_i64)) {
            (Some(a), Some(b)) if b.saturating_sub(a) <= MAX_ITEMS as i64 => {
                data(Data::list((a..b).map(|i| Data::Num(Num::from(i)))))
            }
            _ => unknown(),
        },
        (Prim::Format, all) if all.iter().all(|v| v.text().is_some()) => {
            let text: String = all.iter().filter_map(Value::text).collect();
            if text.len() > MAX_TEXT_BYTES { Value::Data } else { data(Data::str(text)) }
        }
        (Prim::Not, [Value::Known(d)]) => match &**d {
            Data::Bool(b) => data(Data::Bool(!b)),
            _ => unknown(),
        },
        (Prim::Neg, [v]) => v.number().map_or_else(unknown, |n| data(Data::Num(n.neg()))),
        (Prim::IsNull, [Value::Known(d)]) => data(Data::Bool(**d == Data::Null)),
        (Prim::IsNull, [Value::List(_) | Value::Record(_) | Value::Tag(..)]) => data(Data::Bool(false)),
        (Prim::Has, [Value::Record(fields), key]) => match key.text() {
            Some(key) => data(Data::Bool(fields.iter().any(|(n, _)| **n == *key))),
            None => unknown(),
        },
        (Prim::Eq | Prim::Ne, [a, b]) => match (a.data(), b.data()) {
            // The order of a record's fields does not count, so only these are compared.
            (Some(a), Some(b)) if !matches!(a, Data::List(_) | Data::Pair(_)) => {
                data(Data::Bool((a == b) == (p == Prim::Eq)))
            }
            _ => unknown(),
        },
        (Prim::Add, [a, b]) => match (a.number(), b.number(), a.text(), b.text(), a.values(), b.values()) {
            (Some(a), Some(b), ..) => num(a.add(b)),
            (_, _, Some(a), Some(b), ..) if a.len() + b.len() <= MAX_TEXT_BYTES => {
                data(Data::str(format!("{a}{b}")))
            }
            (_, _, _, _, Some(mut a), Some(mut b)) if a.len() + b.len() <= MAX_ITEMS => {
                a.append(&mut b);
                Value::List(Rc::new(a))
            }
            _ => unknown(),
        },
        (_, [a, b]) => match (p, a.number(), b.number()) {
            (Prim::Sub, Some(a), Some(b)) => num(a.sub(b)),
            (Prim::Mul, Some(a), Some(b)) => num(a.mul(b)),
            (Prim::Div, Some(a), Some(b)) => num(a.div(b)),
            (Prim::Rem, Some(a), Some(b)) => num(a.rem(b)),
            (Prim::Lt, Some(a), Some(b)) => data(Data::Bool(a < b)),
            (Prim::Le, Some(a), Some(b)) => data(Data::Bool(a <= b)),
            (Prim::Gt, Some(a), Some(b)) => data(Data::Bool(a > b)),
            (Prim::Ge, Some(a), Some(b)) => data(Data::Bool(a >= b)),
            _ => unknown(),
        },
        _ => unknown(),
    }
}
