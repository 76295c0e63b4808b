//! Primitive functions: operands in, result with its parts labeled ⊥ out.
//!
//! Source: `docs/calculus.md` §3 (`prim p e`), §10.

use crate::list::List;
use crate::meter::Meter;
use crate::value::{Body, Kind, Node, NotData, Value};
use core_ir::py::{self, PyError};
use core_ir::{Data, Label, Lattice, Num, NumError, Prim};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::sync::Arc;

/// Reason why a primitive has no result.
#[derive(Debug)]
pub(crate) enum PrimError {
    /// The operands are wrong; an error of the program.
    Wrong(String),
    /// The result, or an operand taken apart, is beyond the run's limits.
    Limit(String),
    /// It is not known which result the operation has.
    Unknown(String),
}

impl From<NotData> for PrimError {
    fn from(e: NotData) -> PrimError {
        match e {
            NotData::Function => PrimError::Wrong(e.message()),
            NotData::TooDeep | NotData::TooLarge => PrimError::Limit(e.message()),
        }
    }
}

impl From<NumError> for PrimError {
    fn from(e: NumError) -> PrimError {
        PrimError::Wrong(e.to_string())
    }
}

/// Applies a primitive. The meter bounds the bytes of a text, the items of a list and the parts looked at. It
/// counts what is copied and looked at, with or without a result.
#[inline]
pub(crate) fn apply(
    lattice: &mut Lattice,
    prim: Prim,
    args: &[&Value],
    meter: &mut Meter,
) -> Result<Kind, PrimError> {
    match (prim, args) {
        (_, [Value { kind: Kind::Num(a), .. }, Value { kind: Kind::Num(b), .. }])
            if let Some(result) = numbers(prim, a, b) =>
        {
            Ok(result?)
        }
        (Prim::Length, [of]) if let Some(count) = count(of) => Ok(Kind::Num(Num::from(count as i64))),
        (Prim::Append, [Value { kind: Kind::Node(n), .. }, item]) if let Body::List(items) = &n.body => {
            append(lattice, (n, items), item, meter)
        }
        _ => apply_any(lattice, prim, args, meter),
    }
}

/// The number of items of a list or of fields of a record.
fn count(of: &Value) -> Option<usize> {
    match of.body()? {
        Body::List(items) => Some(items.len()),
        body => body.as_record().map(|fields| fields.len()),
    }
}

/// A list with one more item, both stripped.
fn append(
    lattice: &mut Lattice,
    (node, items): (&Node, &List),
    item: &Value,
    meter: &mut Meter,
) -> Result<Kind, PrimError> {
    at_most(items.len() + 1, meter.limit())?;
    let own = if is_stripped(node) { None } else { Some(strip_items(lattice, items, meter)?) };
    let item = item.strip(lattice, meter)?;
    let (items, deep, has_function) = match &own {
        Some(own) => (&own.items, own.deep, own.has_function),
        None => (items, Label::BOTTOM, node.has_function),
    };
    let deep = item.deep_label_in(lattice, deep);
    let has_function = has_function || item.has_function();
    Ok(Value::known(Label::BOTTOM, Body::List(items.append(item)), deep, has_function).kind)
}

#[inline(never)]
fn apply_any(
    lattice: &mut Lattice,
    prim: Prim,
    args: &[&Value],
    meter: &mut Meter,
) -> Result<Kind, PrimError> {
    meter.bytes(texts(prim, args));
    let result = apply_parts(lattice, prim, args, meter)?;
    meter.bytes(new_text(prim, &result));
    Ok(result.kind)
}

fn apply_parts(
    lattice: &mut Lattice,
    prim: Prim,
    args: &[&Value],
    meter: &mut Meter,
) -> Result<Value, PrimError> {
    let limit = meter.limit();
    let bottom = |kind| Ok(Value::new(Label::BOTTOM, kind));
    let wrong = |what: &str| {
        let found: Vec<&str> = args.iter().map(|v| v.kind()).collect();
        Err(PrimError::Wrong(format!("`{}` needs {what}, found {}", prim.name(), found.join(" and "))))
    };
    let boolean = |b: bool| bottom(Kind::Bool(b));
    let text = |s: String| {
        if s.len() > limit { Err(NotData::TooLarge.into()) } else { bottom(Kind::Str(s.into())) }
    };
    let kinds: SmallVec<[&Kind; 4]> = args.iter().map(|v| &v.kind).collect();
    match (prim, &kinds[..]) {
        (Prim::Neg, [Kind::Num(a)]) => bottom(Kind::Num(a.neg())),
        (Prim::Neg, _) => wrong("a number"),
        (Prim::Not, [Kind::Bool(b)]) => boolean(!b),
        (Prim::Not, _) => wrong("a boolean"),
        (Prim::Add, [Kind::Str(a), Kind::Str(b)]) => {
            if a.len() + b.len() > limit {
                return Err(NotData::TooLarge.into());
            }
            let mut s = String::with_capacity(a.len() + b.len());
            s.push_str(a);
            s.push_str(b);
            bottom(Kind::Str(s.into()))
        }
        (Prim::Add, [Kind::Node(a), Kind::Node(b)]) => match (&a.body, &b.body) {
            (Body::List(x), Body::List(y)) => {
                at_most(x.len() + y.len(), limit)?;
                let (x, y) = (stripped(lattice, a, x, meter)?, stripped(lattice, b, y, meter)?);
                Ok(x.concat(lattice, y).value())
            }
            _ => wrong("two numbers, two strings or two lists"),
        },
        (Prim::Add, _) => wrong("two numbers, two strings or two lists"),
        (Prim::Sub | Prim::Mul | Prim::Div | Prim::Rem, _) => wrong("two numbers"),
        (Prim::Eq | Prim::Ne, [_, _]) => {
            if args.iter().any(|v| v.has_function()) {
                return Err(PrimError::Wrong("functions cannot be compared".into()));
            }
            boolean(args[0].same(args[1], meter)? == (prim == Prim::Eq))
        }
        (Prim::Lt | Prim::Le | Prim::Gt | Prim::Ge, [a, b]) => {
            let order = match (a, b) {
                (Kind::Str(a), Kind::Str(b)) => a.cmp(b),
                _ => return wrong("two numbers or two strings"),
            };
            boolean(match prim {
                Prim::Lt => order == Ordering::Less,
                Prim::Le => order != Ordering::Greater,
                Prim::Gt => order == Ordering::Greater,
                _ => order != Ordering::Less,
            })
        }
        (Prim::Format, _) => {
            let mut s = String::new();
            for a in args {
                let text = a.text(meter)?;
                meter.bytes(text.len());
                s.push_str(&text);
                if s.len() > limit {
                    return Err(NotData::TooLarge.into());
                }
            }
            text(s)
        }
        (Prim::ToStr, [_]) => bottom(Kind::Str(args[0].text(meter)?)),
        (Prim::Length, [Kind::Str(s)]) => bottom(Kind::Num(Num::from(s.chars().count() as i64))),
        (Prim::Length, _) => wrong("a string, a list or a record"),
        (Prim::Keys, [Kind::Node(n)]) => match n.body.as_record() {
            Some(fields) => {
                meter.parts(fields.len())?;
                let keys = fields.iter().map(|(n, _)| Value::str(Label::BOTTOM, &**n)).collect();
                Ok(Value::node(lattice, Label::BOTTOM, Body::List(keys)))
            }
            None => wrong("a record"),
        },
        (Prim::Keys, _) => wrong("a record"),
        (Prim::Has, [Kind::Node(n), Kind::Str(key)]) => match n.body.as_record() {
            Some(fields) => boolean(fields.get(key).is_some()),
            None => wrong("a record and a string"),
        },
        (Prim::Has, _) => wrong("a record and a string"),
        (Prim::Append, _) => wrong("a list and an item"),
        (Prim::Range, [Kind::Num(a), Kind::Num(b)]) => match (a.to_i64(), b.to_i64()) {
            (Some(a), Some(b)) => {
                let count = b.checked_sub(a).map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(0));
                at_most(count, limit)?;
                meter.parts(count)?;
                let items = (a..b).map(|i| Value::new(Label::BOTTOM, Kind::Num(Num::from(i)))).collect();
                Ok(Value::known(Label::BOTTOM, Body::List(items), Label::BOTTOM, false))
            }
            _ => wrong("two integers"),
        },
        (Prim::Range, _) => wrong("two integers"),
        (Prim::IsFn, [_]) => boolean(args[0].is_function()),
        (Prim::IsArray, [_]) => boolean(matches!(args[0].body(), Some(Body::List(_)))),
        (Prim::IsRecord, [_]) => boolean(args[0].body().is_some_and(|body| body.as_record().is_some())),
        (Prim::IsStr, [k]) => boolean(matches!(k, Kind::Str(_))),
        (Prim::IsNum, [k]) => boolean(matches!(k, Kind::Num(_))),
        (Prim::IsBool, [k]) => boolean(matches!(k, Kind::Bool(_))),
        (Prim::IsNull, [k]) => boolean(matches!(k, Kind::Null)),
        (Prim::ToNum, [Kind::Str(s)]) => match s.trim().parse() {
            Ok(n) => bottom(Kind::Num(n)),
            Err(e) => Err(PrimError::Wrong(format!("`to_num`: {e}"))),
        },
        (Prim::ToNum, _) => wrong("a string"),
        (Prim::Lower, [Kind::Str(s)]) => text(s.to_lowercase()),
        (Prim::Upper, [Kind::Str(s)]) => text(s.to_uppercase()),
        (Prim::Trim, [Kind::Str(s)]) => text(s.trim().to_string()),
        (Prim::Lower | Prim::Upper | Prim::Trim, _) => wrong("a string"),
        (Prim::Split, [Kind::Str(s), Kind::Str(by)]) => {
            let parts: Vec<Value> = if by.is_empty() {
                s.chars().map(|c| Value::str(Label::BOTTOM, c.to_string())).collect()
            } else {
                s.split(&**by).map(|p| Value::str(Label::BOTTOM, p)).collect()
            };
            meter.parts(parts.len())?;
            Ok(Value::node(lattice, Label::BOTTOM, Body::List(parts.into())))
        }
        (Prim::Split, _) => wrong("two strings"),
        (Prim::Join, [Kind::Node(n), Kind::Str(by)]) => {
            let Body::List(items) = &n.body else { return wrong("a list of strings and a string") };
            meter.parts(items.len())?;
            let mut s = String::new();
            for (i, item) in items.iter().enumerate() {
                let Kind::Str(part) = &item.kind else { return wrong("a list of strings and a string") };
                if i > 0 {
                    s.push_str(by);
                }
                s.push_str(part);
                if s.len() > limit {
                    return Err(NotData::TooLarge.into());
                }
            }
            text(s)
        }
        (Prim::Join, _) => wrong("a list of strings and a string"),
        (Prim::Contains, [Kind::Str(s), Kind::Str(part)]) => boolean(s.contains(&**part)),
        (Prim::Contains, [Kind::Node(n), _]) => {
            let Body::List(items) = &n.body else { return wrong("two strings, or a list and an item") };
            if args.iter().any(|v| v.has_function()) {
                return Err(PrimError::Wrong("functions cannot be compared".into()));
            }
            for item in items.iter() {
                meter.parts(1)?;
                if item.same(args[1], meter)? {
                    return boolean(true);
                }
            }
            boolean(false)
        }
        (Prim::Contains, _) => wrong("two strings, or a list and an item"),
        (Prim::Slice, [of, Kind::Num(a), Kind::Num(b)]) => {
            let (Some(a), Some(b)) = (a.to_usize(), b.to_usize()) else {
                return wrong("a string or list and two indices");
            };
            match of {
                Kind::Str(s) => text(s.chars().skip(a).take(b.saturating_sub(a)).collect()),
                Kind::Node(n) => match &n.body {
                    Body::List(items) => {
                        // Of what is left out no label and no function stays.
                        let part = items.slice(a, a.saturating_add(b.saturating_sub(a)));
                        at_most(part.len(), limit)?;
                        if n.deep == Label::BOTTOM && !n.has_function && !n.has_args {
                            return Ok(Value::known(Label::BOTTOM, Body::List(part), Label::BOTTOM, false));
                        }
                        Ok(strip_items(lattice, &part, meter)?.value())
                    }
                    _ => wrong("a string or list and two indices"),
                },
                _ => wrong("a string or list and two indices"),
            }
        }
        (Prim::Slice, _) => wrong("a string or list and two indices"),
        (Prim::Flatten, [_]) => Ok(args[0].strip(lattice, meter)?),
        (Prim::ToJson, [_]) => text(args[0].to_data(meter)?.to_json().to_string()),
        (Prim::FromJson, [Kind::Str(s)]) => {
            let json = serde_json::from_str(s)
                .map_err(|e| PrimError::Wrong(format!("`from_json`: not JSON: {e}")))?;
            let data = Data::from_json(&json).map_err(|e| PrimError::Limit(e.to_string()))?;
            meter.data(&data);
            Ok(Value::from_data(lattice, Label::BOTTOM, &data))
        }
        (Prim::FromJson, _) => wrong("a string"),
        (Prim::Py, [Kind::Str(op), ..]) => {
            let operands: Vec<Data> =
                args[1..].iter().map(|v| v.to_data(meter)).collect::<Result<_, NotData>>()?;
            operands.iter().for_each(|data| meter.data(data));
            match py::apply(op, &operands, limit) {
                Ok(data) => {
                    meter.data(&data);
                    Ok(Value::from_data(lattice, Label::BOTTOM, &data))
                }
                Err(PyError::Limit) => Err(NotData::TooLarge.into()),
                Err(PyError::Rounds(message)) => Err(PrimError::Limit(message)),
                Err(PyError::Unsupported(what)) => {
                    Err(PrimError::Unknown(format!("not in the language of plans: {what}")))
                }
                Err(PyError::Raise(_, message)) => Err(PrimError::Wrong(message)),
                Err(PyError::Unknown) => {
                    Err(PrimError::Wrong(format!("`py` has no operation `{op}` of these operands")))
                }
            }
        }
        (Prim::Py, _) => wrong("the name of an operation"),
        // A wrong number of operands: front ends check arities, but `Code` does not promise them.
        (
            Prim::Eq
            | Prim::Ne
            | Prim::Lt
            | Prim::Le
            | Prim::Gt
            | Prim::Ge
            | Prim::ToStr
            | Prim::IsFn
            | Prim::IsArray
            | Prim::IsRecord
            | Prim::IsStr
            | Prim::IsNum
            | Prim::IsBool
            | Prim::IsNull
            | Prim::Flatten
            | Prim::ToJson,
            _,
        ) => Err(PrimError::Wrong(format!("`{}` has the wrong number of operands", prim.name()))),
    }
}

/// Result of a primitive that is a machine integer or a boolean.
pub(crate) enum Small {
    Integer(i64),
    Boolean(bool),
}

/// The primitives of two machine integers, where the result is small. [`numbers`] has the others.
#[inline(always)]
pub(crate) fn integers(prim: Prim, a: i64, b: i64) -> Option<Small> {
    match prim {
        Prim::Add => a.checked_add(b).map(Small::Integer),
        Prim::Sub => a.checked_sub(b).map(Small::Integer),
        Prim::Mul => a.checked_mul(b).map(Small::Integer),
        Prim::Div => Num::quotient(a, b).map(Small::Integer),
        Prim::Rem => Num::remainder(a, b).map(Small::Integer),
        Prim::Eq => Some(Small::Boolean(a == b)),
        Prim::Ne => Some(Small::Boolean(a != b)),
        Prim::Lt => Some(Small::Boolean(a < b)),
        Prim::Le => Some(Small::Boolean(a <= b)),
        Prim::Gt => Some(Small::Boolean(a > b)),
        Prim::Ge => Some(Small::Boolean(a >= b)),
        _ => None,
    }
}

/// The primitives of two numbers.
fn numbers(prim: Prim, a: &Num, b: &Num) -> Option<Result<Kind, NumError>> {
    let order = || a.cmp(b);
    Some(Ok(match prim {
        Prim::Add => return Some(a.add(b).map(Kind::Num)),
        Prim::Sub => return Some(a.sub(b).map(Kind::Num)),
        Prim::Mul => return Some(a.mul(b).map(Kind::Num)),
        Prim::Div => return Some(a.div(b).map(Kind::Num)),
        Prim::Rem => return Some(a.rem(b).map(Kind::Num)),
        Prim::Eq => Kind::Bool(a == b),
        Prim::Ne => Kind::Bool(a != b),
        Prim::Lt => Kind::Bool(order() == Ordering::Less),
        Prim::Le => Kind::Bool(order() != Ordering::Greater),
        Prim::Gt => Kind::Bool(order() == Ordering::Greater),
        Prim::Ge => Kind::Bool(order() != Ordering::Less),
        _ => return None,
    }))
}

/// The bytes that an item of a list counts for.
const ITEM: usize = 16;

/// Refuses lists of more items than the limit on sizes admits.
fn at_most(items: usize, limit: usize) -> Result<(), PrimError> {
    if items > limit / ITEM { Err(NotData::TooLarge.into()) } else { Ok(()) }
}

/// A list whose items are stripped, with what is inside.
struct Stripped {
    items: List,
    deep: Label,
    has_function: bool,
}

impl Stripped {
    fn concat(self, lattice: &mut Lattice, other: Stripped) -> Stripped {
        Stripped {
            items: self.items.concat(&other.items),
            deep: lattice.join(self.deep, other.deep),
            has_function: self.has_function || other.has_function,
        }
    }

    fn value(self) -> Value {
        Value::known(Label::BOTTOM, Body::List(self.items), self.deep, self.has_function)
    }
}

/// Returns whether a list has no labels and no arguments of planned calls inside.
fn is_stripped(node: &Node) -> bool {
    node.deep == Label::BOTTOM && !node.has_args
}

/// The stripped items of a list. One without labels and arguments of planned calls inside is stripped
/// already, and shared.
fn stripped(
    lattice: &mut Lattice,
    node: &Node,
    items: &List,
    meter: &mut Meter,
) -> Result<Stripped, PrimError> {
    if is_stripped(node) {
        return Ok(Stripped { items: items.clone(), deep: Label::BOTTOM, has_function: node.has_function });
    }
    strip_items(lattice, items, meter)
}

fn strip_items(lattice: &mut Lattice, items: &List, meter: &mut Meter) -> Result<Stripped, PrimError> {
    meter.parts(items.len())?;
    let mut out = Vec::with_capacity(items.len());
    // What is no node has no label once it is stripped, so only nodes are looked into.
    let (mut deep, mut has_function) = (Label::BOTTOM, false);
    for item in items.iter() {
        out.push(match &item.kind {
            Kind::Node(_) => {
                let stripped = item.strip(lattice, meter)?;
                deep = stripped.deep_label_in(lattice, deep);
                has_function |= stripped.has_function();
                stripped
            }
            kind => Value::new(Label::BOTTOM, kind.clone()),
        });
    }
    Ok(Stripped { items: out.into(), deep, has_function })
}

/// `classify`: the tag that a text names. Source: `docs/calculus.md` §10.
pub(crate) fn classify<'a>(text: &str, tags: &'a [core_ir::Name]) -> Option<&'a core_ir::Name> {
    let trimmed = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '.'));
    tags.iter().find(|t| &***t == text).or_else(|| tags.iter().find(|t| t.eq_ignore_ascii_case(trimmed)))
}

/// The bytes of texts that a primitive looks at as a whole.
fn texts(prim: Prim, args: &[&Value]) -> usize {
    let all = |args: &[&Value]| args.iter().filter_map(|v| as_str(v)).map(|s| s.len()).sum();
    match prim {
        // They count what they compare and write, or look at the kind alone.
        Prim::Eq
        | Prim::Ne
        | Prim::Format
        | Prim::ToStr
        | Prim::ToJson
        | Prim::Append
        | Prim::Flatten
        | Prim::Py
        | Prim::Not
        | Prim::Neg
        | Prim::IsFn
        | Prim::IsArray
        | Prim::IsRecord
        | Prim::IsStr
        | Prim::IsNum
        | Prim::IsBool
        | Prim::IsNull => 0,
        // The text is looked for in each item.
        Prim::Contains => args.first().and_then(|v| as_str(v)).map_or(0, |s| s.len()),
        Prim::Add
        | Prim::Sub
        | Prim::Mul
        | Prim::Div
        | Prim::Rem
        | Prim::Lt
        | Prim::Le
        | Prim::Gt
        | Prim::Ge
        | Prim::Length
        | Prim::Keys
        | Prim::Has
        | Prim::Range
        | Prim::ToNum
        | Prim::Lower
        | Prim::Upper
        | Prim::Trim
        | Prim::Split
        | Prim::Join
        | Prim::Slice
        | Prim::FromJson => all(args),
    }
}

/// The bytes of a text that a primitive made.
fn new_text(prim: Prim, result: &Value) -> usize {
    match prim {
        // What is a text already is shared, or counted where it is written.
        Prim::Format | Prim::ToStr | Prim::Flatten | Prim::Py => 0,
        _ => as_str(result).map_or(0, |s| s.len()),
    }
}

/// A shared text from any kind of text operand.
pub(crate) fn as_str(v: &Value) -> Option<&Arc<str>> {
    match &v.kind {
        Kind::Str(s) => Some(s),
        _ => None,
    }
}
