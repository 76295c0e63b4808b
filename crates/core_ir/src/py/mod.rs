//! Python's data model on label-free data: the operations of the primitive `py`.
//!
//! Entry point: [`apply`]. An operation is named by a string. `add` or `index` are operators, `b.NAME` is a
//! builtin function, `m.NAME` a method that leaves its object as it is, and `mut.NAME` a method that changes
//! it. `agent.NAME` is a function of the language `.agent`.
//!
//! | Python | data |
//! |---|---|
//! | `None`, `bool`, `str`, `list` | null, a truth value, a string, a list |
//! | `int`, `float` | an exact rational number; a whole number is an `int` |
//! | `tuple`, `set` | the tags `tuple` and `set` of a list; the items of a set are sorted and distinct |
//! | `dict` | a record; if a key is no string, the tag `dict` of a list of pairs `[key, value]` |
//! | `Counter`, `defaultdict` | the tags `counter` of a dictionary, and `defaultdict` of a factory and a dictionary |
//! | `datetime`, `date`, `time`, `timedelta`, `timezone` | tags of these names |
//! | an object of a class, a member of an `Enum` | a record with the field `$class`, a tag |
//! | a match of `re`, a compiled pattern | the tags `match` and `pattern` |
//!
//! Invariant: pure and total. What Python raises is data, `` `raise {class, message} ``.

mod agent;
mod builtins;
mod dates;
mod format;
mod methods;
mod numbers;
mod objects;
mod regexes;
mod seq;
mod unicode;

use crate::{Data, Name};
use dates::Moment;
use objects::ClassKind;
use std::cmp::Ordering;

pub use format::repr;
pub use objects::CLASS;

/// Reason why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PyError {
    /// An exception of Python: its class and its message.
    Raise(&'static str, String),
    /// CPython has a result, and the language of plans has none. No `except` clause catches it.
    Unsupported(String),
    /// A `while` loop has used up its rounds. No `except` clause catches it.
    Rounds(String),
    /// The result is beyond the run's limit on sizes.
    Limit,
    /// The operation or its number of operands is unknown: a mistake of the front end.
    Unknown,
}

pub(crate) type PyResult<T = Data> = Result<T, PyError>;

fn raise<T>(class: &'static str, message: impl Into<String>) -> PyResult<T> {
    Err(PyError::Raise(class, message.into()))
}

fn type_error<T>(message: impl Into<String>) -> PyResult<T> {
    raise("TypeError", message)
}

fn value_error<T>(message: impl Into<String>) -> PyResult<T> {
    raise("ValueError", message)
}

fn unsupported<T>(message: impl Into<String>) -> PyResult<T> {
    Err(PyError::Unsupported(message.into()))
}

/// Operations that always have a result; it is given without `` `ok ``.
const TOTAL: &[&str] = &[
    "eq",
    "ne",
    "truth",
    "not",
    "json",
    "caught",
    "is_unbound",
    "b.str",
    "b.repr",
    "b.type",
    "only_owner",
    "rounds",
    "exception",
    "conforms",
    "object",
    "now",
    "bounded",
];

/// Applies an operation. Fallible operations give `` `ok v `` or `` `raise {class, message} ``; those of the
/// language `.agent`, whose names begin with `agent.`, give the value itself.
///
/// # Errors
/// [`PyError::Raise`] for an operand that an operation of `.agent` does not take, [`PyError::Limit`] if a
/// text or list is larger than `limit` bytes, [`PyError::Unsupported`], [`PyError::Rounds`] and
/// [`PyError::Unknown`].
///
/// # Examples
/// ```
/// use core_ir::{py, Data};
/// let sum = py::apply("add", &[Data::Num(1.into()), Data::Num(2.into())], 1000).unwrap();
/// assert_eq!(sum, Data::Tag("ok".into(), Data::Num(3.into()).into()));
/// ```
pub fn apply(op: &str, args: &[Data], limit: usize) -> Result<Data, PyError> {
    if let Some(name) = op.strip_prefix(agent::PREFIX) {
        let value = agent::operate(name, args, limit)?;
        return if size(&value) > limit { Err(PyError::Limit) } else { Ok(value) };
    }
    let total = TOTAL.contains(&op);
    match operate(op, args, limit) {
        Ok(value) if size(&value) > limit => Err(PyError::Limit),
        Ok(value) if total => Ok(value),
        Ok(value) => Ok(Data::Tag("ok".into(), value.into())),
        Err(PyError::Raise(class, message)) if !total => {
            Ok(Data::Tag("raise".into(), exception(class, &message).into()))
        }
        Err(PyError::Raise(..)) => Err(PyError::Unknown),
        Err(e) => Err(e),
    }
}

/// Returns an exception as data.
pub fn exception(class: &str, message: &str) -> Data {
    Data::record([("class".into(), Data::str(class)), ("message".into(), Data::str(message))])
}

/// Reads the class and the message of an exception that a run ended with, from the message of the failure.
///
/// # Examples
/// ```
/// let message = r#"{"class":"KeyError","message":"'a'"}"#;
/// assert_eq!(core_ir::py::uncaught(message), Some(("KeyError".into(), "'a'".into())));
/// ```
pub fn uncaught(message: &str) -> Option<(String, String)> {
    let json: serde_json::Value = serde_json::from_str(message).ok()?;
    let object = json.as_object().filter(|o| o.len() == 2)?;
    let text = |name: &str| object.get(name)?.as_str().map(String::from);
    Some((text("class")?, text("message")?))
}

/// Bytes of the value itself; parts were measured when they were made.
fn size(value: &Data) -> usize {
    match value {
        Data::Str(s) => s.len(),
        Data::List(items) => items.len().saturating_mul(16),
        Data::Tag(_, payload) => size(payload),
        _ => 0,
    }
}

/// A value by its Python type.
#[derive(Clone, Copy)]
enum View<'a> {
    None,
    Bool(bool),
    Num(&'a crate::Num),
    Str(&'a str),
    List(&'a [Data]),
    Tuple(&'a [Data]),
    Set(&'a [Data]),
    /// A dictionary whose keys are strings.
    Record(&'a [(Name, Data)]),
    /// A dictionary as pairs.
    Dict(&'a [Data]),
    /// A dictionary that counts.
    Counter(&'a Data),
    /// A dictionary with a value for keys that are not there: its factory and its entries.
    Default(&'a str, &'a Data),
    /// An object of a class of the plan, with all its fields.
    Object(&'a str, ClassKind, &'a [(Name, Data)]),
    /// A value of the module `datetime`.
    Moment(Moment),
    /// A match of `re`.
    Match(&'a Data),
    /// A compiled pattern.
    Pattern(&'a str),
    /// The exception of a handler: its class and its message.
    Exception(&'a str, &'a str),
    Other,
}

fn view(d: &Data) -> View<'_> {
    match d {
        Data::Null => View::None,
        Data::Bool(b) => View::Bool(*b),
        Data::Num(n) => View::Num(n),
        Data::Str(s) => View::Str(s),
        Data::List(items) => View::List(items),
        Data::Record(fields) => match objects::class_of(fields) {
            Some((class, kind)) => View::Object(class, kind, fields),
            None => View::Record(fields),
        },
        Data::Tag(name, payload) => match (&**name, &**payload) {
            ("tuple", Data::List(items)) => View::Tuple(items),
            ("set", Data::List(items)) => View::Set(items),
            ("dict", Data::List(items)) => View::Dict(items),
            ("counter", inner) => View::Counter(inner),
            ("defaultdict", Data::List(parts)) => match &parts[..] {
                [Data::Str(factory), inner] => View::Default(factory, inner),
                _ => View::Other,
            },
            ("match", inner) => View::Match(inner),
            ("pattern", Data::Str(text)) => View::Pattern(text),
            ("exception", e) => {
                let text = |f| e.field(f).and_then(Data::as_str).unwrap_or("");
                View::Exception(text("class"), text("message"))
            }
            (tag, payload) => dates::moment(tag, payload).map_or(View::Other, View::Moment),
        },
        Data::Pair(_) => View::Other,
    }
}

fn tuple(items: Vec<Data>) -> Data {
    Data::Tag("tuple".into(), Data::List(items.into()).into())
}

/// The dictionary that a `Counter` or `defaultdict` is.
fn base(d: &Data) -> &Data {
    match view(d) {
        View::Counter(inner) | View::Default(_, inner) => inner,
        _ => d,
    }
}

/// A changed dictionary of the same class as it was.
fn like(old: &Data, new: Data) -> Data {
    match view(old) {
        View::Counter(_) => Data::Tag("counter".into(), new.into()),
        View::Default(factory, _) => {
            Data::Tag("defaultdict".into(), Data::list([Data::str(factory), new]).into())
        }
        _ => new,
    }
}

/// The value that a factory of a `defaultdict` makes.
fn made(factory: &str) -> Data {
    match factory {
        "list" => Data::list([]),
        "dict" => Data::record([]),
        "set" => Data::Tag("set".into(), Data::list([]).into()),
        "str" => Data::str(""),
        "bool" => Data::Bool(false),
        _ => Data::Num(crate::Num::ZERO),
    }
}

fn class(d: &Data) -> &str {
    match view(d) {
        View::None => "NoneType",
        View::Bool(_) => "bool",
        View::Num(n) => {
            if numbers::whole(n) {
                "int"
            } else {
                "float"
            }
        }
        View::Str(_) => "str",
        View::List(_) => "list",
        View::Tuple(_) => "tuple",
        View::Set(_) => "set",
        View::Record(_) | View::Dict(_) => "dict",
        View::Counter(_) => "Counter",
        View::Default(..) => "defaultdict",
        View::Object(class, ..) => class,
        View::Moment(m) => m.class(),
        View::Match(_) => "Match",
        View::Pattern(_) => "Pattern",
        View::Exception(..) => "exception",
        View::Other => "object",
    }
}

/// The pairs of a dictionary.
fn pairs(d: &Data) -> Option<Vec<(Data, Data)>> {
    match view(base(d)) {
        View::Record(fields) => Some(fields.iter().map(|(n, v)| (Data::str(&**n), v.clone())).collect()),
        View::Dict(items) => Some(items.iter().filter_map(pair).collect()),
        _ => None,
    }
}

fn pair(item: &Data) -> Option<(Data, Data)> {
    match item {
        Data::List(kv) if kv.len() == 2 => Some((kv[0].clone(), kv[1].clone())),
        _ => None,
    }
}

/// A dictionary of distinct pairs: a record if all keys are strings.
fn dict(pairs: Vec<(Data, Data)>) -> Data {
    if pairs.iter().all(|(k, _)| matches!(k, Data::Str(_))) {
        return Data::record(pairs.into_iter().filter_map(|(k, v)| match k {
            Data::Str(s) => Some((Name::from(&*s), v)),
            _ => None,
        }));
    }
    let items = pairs.into_iter().map(|(k, v)| Data::list([k, v]));
    Data::Tag("dict".into(), Data::list(items).into())
}

fn lookup<'a>(pairs: &'a [(Data, Data)], key: &Data) -> Option<&'a Data> {
    pairs.iter().find(|(k, _)| equal(k, key)).map(|(_, v)| v)
}

fn put(pairs: &mut Vec<(Data, Data)>, key: Data, value: Data) {
    match pairs.iter_mut().find(|(k, _)| equal(k, &key)) {
        Some((_, old)) => *old = value,
        None => pairs.push((key, value)),
    }
}

/// Returns true if Python can change such a value in place, so that it is no key.
fn is_heap(view: &View<'_>) -> bool {
    matches!(
        view,
        View::List(_)
            | View::Set(_)
            | View::Record(_)
            | View::Dict(_)
            | View::Counter(_)
            | View::Default(..)
            | View::Object(_, ClassKind::Data | ClassKind::Model, _)
    )
}

fn hashable(key: &Data) -> PyResult<()> {
    match view(key) {
        View::Tuple(items) => items.iter().try_for_each(hashable),
        view if is_heap(&view) => type_error(format!("unhashable type: '{}'", class(key))),
        _ => Ok(()),
    }
}

/// Equality as Python defines it.
pub(crate) fn equal(a: &Data, b: &Data) -> bool {
    let all = |x: &[Data], y: &[Data]| x.len() == y.len() && x.iter().zip(y).all(|(a, b)| equal(a, b));
    let (a, b) = (base(a), base(b));
    stacker::maybe_grow(64 << 10, 1 << 20, || match (view(a), view(b)) {
        (View::None, View::None) => true,
        (View::Moment(x), View::Moment(y)) => dates::equal(x, y),
        (View::Object(x, ClassKind::Enum | ClassKind::StrEnum, _), View::Object(y, ..)) => {
            x == y && a.field("name") == b.field("name")
        }
        (View::Object(x, _, p), View::Object(y, _, q)) => {
            x == y
                && p.len() == q.len()
                && objects::own(p).zip(objects::own(q)).all(|((n, v), (m, w))| n == m && equal(v, w))
        }
        // A member of a `StrEnum` is a string.
        (View::Object(_, ClassKind::StrEnum, _), View::Str(s))
        | (View::Str(s), View::Object(_, ClassKind::StrEnum, _)) => {
            objects::member(a).or(objects::member(b)).and_then(Data::as_str) == Some(s)
        }
        (View::Pattern(x), View::Pattern(y)) => x == y,
        (View::Match(x), View::Match(y)) => x == y,
        (View::Str(a), View::Str(b)) => a == b,
        (View::Bool(_) | View::Num(_), View::Bool(_) | View::Num(_)) => {
            numbers::number(a) == numbers::number(b)
        }
        (View::List(x), View::List(y)) | (View::Tuple(x), View::Tuple(y)) | (View::Set(x), View::Set(y)) => {
            all(x, y)
        }
        (View::Record(_) | View::Dict(_), View::Record(_) | View::Dict(_)) => {
            let (Some(x), Some(y)) = (pairs(a), pairs(b)) else { return false };
            x.len() == y.len() && x.iter().all(|(k, v)| lookup(&y, k).is_some_and(|w| equal(v, w)))
        }
        (View::Other, View::Other) => a == b,
        _ => false,
    })
}

/// A value, or the text that a member of a `StrEnum` is.
fn text_of(d: &Data) -> &Data {
    match view(d) {
        View::Object(_, ClassKind::StrEnum, _) => objects::member(d).unwrap_or(d),
        _ => d,
    }
}

/// Order of two values that `<` compares; `None` for sets of which neither contains the other.
fn compare(a: &Data, b: &Data, op: &str) -> PyResult<Option<Ordering>> {
    let (a, b) = (text_of(a), text_of(b));
    stacker::maybe_grow(64 << 10, 1 << 20, || match (view(a), view(b)) {
        (View::Str(a), View::Str(b)) => Ok(Some(a.cmp(b))),
        (View::Moment(a), View::Moment(b)) => dates::compare(a, b, op).map(Some),
        (View::Set(x), View::Set(y)) => {
            let within = |x: &[Data], y: &[Data]| x.iter().all(|p| y.iter().any(|q| equal(p, q)));
            let order = x.len().cmp(&y.len());
            let is_ordered = if order == Ordering::Greater { within(y, x) } else { within(x, y) };
            Ok(is_ordered.then_some(order))
        }
        (View::Bool(_) | View::Num(_), View::Bool(_) | View::Num(_)) => {
            Ok(Some(numbers::number(a).cmp(&numbers::number(b))))
        }
        (View::List(x), View::List(y)) | (View::Tuple(x), View::Tuple(y)) => {
            for (p, q) in x.iter().zip(y) {
                if !equal(p, q) {
                    return compare(p, q, op);
                }
            }
            Ok(Some(x.len().cmp(&y.len())))
        }
        _ => {
            type_error(format!("'{op}' not supported between instances of '{}' and '{}'", class(a), class(b)))
        }
    })
}

/// A total order of values, in which sets are kept: values that are equal have no other one between them.
fn total_order(a: &Data, b: &Data) -> Ordering {
    let rank = |d: &Data| match view(d) {
        View::None => 0,
        View::Bool(_) | View::Num(_) => 1,
        View::Str(_) => 2,
        View::Tuple(_) => 3,
        View::Moment(_) => 4,
        _ => 5,
    };
    let (a, b) = (text_of(a), text_of(b));
    rank(a).cmp(&rank(b)).then_with(|| match (view(a), view(b)) {
        (View::Tuple(x), View::Tuple(y)) => x
            .iter()
            .zip(y)
            .map(|(p, q)| total_order(p, q))
            .find(|o| *o != Ordering::Equal)
            .unwrap_or_else(|| x.len().cmp(&y.len())),
        // Those that no operator compares are kept apart.
        (View::Moment(x), View::Moment(y)) => x.kind().cmp(&y.kind()).then_with(|| {
            // INVARIANT: moments of one kind are ordered.
            dates::compare(x, y, "<").unwrap_or(Ordering::Equal)
        }),
        _ if rank(a) < 4 => compare(a, b, "<").ok().flatten().unwrap_or(Ordering::Equal),
        _ => format::repr(a).cmp(&format::repr(b)),
    })
}

/// A set of hashable values.
fn set(mut items: Vec<Data>) -> PyResult {
    items.iter().try_for_each(hashable)?;
    items.sort_by(total_order);
    items.dedup_by(|b, a| equal(a, b));
    Ok(Data::Tag("set".into(), Data::List(items.into()).into()))
}

/// Truth value.
fn truth(d: &Data) -> bool {
    match view(base(d)) {
        View::None => false,
        View::Bool(b) => b,
        View::Num(n) => !n.is_zero(),
        View::Str(s) => !s.is_empty(),
        View::List(i) | View::Tuple(i) | View::Set(i) | View::Dict(i) => !i.is_empty(),
        View::Record(f) => !f.is_empty(),
        View::Moment(Moment::Delta(n)) => n != 0,
        _ => true,
    }
}

/// The items that a loop over a value visits.
fn iterate(d: &Data) -> PyResult<Vec<Data>> {
    Ok(match objects::form(base(d)) {
        View::List(items) | View::Tuple(items) | View::Set(items) => items.to_vec(),
        View::Str(s) => s.chars().map(|c| Data::str(c.to_string())).collect(),
        View::Record(fields) => fields.iter().map(|(n, _)| Data::str(&**n)).collect(),
        View::Dict(items) => items.iter().filter_map(pair).map(|(k, _)| k).collect(),
        _ => return type_error(format!("'{}' object is not iterable", objects::class_of_form(d))),
    })
}

/// JSON data for a tool: tuples and sets are lists, keys of dictionaries are strings, an object is its
/// fields, a member of an enumeration its value, a date its ISO text, and a duration its seconds.
fn plain(d: &Data) -> Data {
    stacker::maybe_grow(64 << 10, 1 << 20, || match view(base(d)) {
        View::Object(_, ClassKind::Enum | ClassKind::StrEnum, _) => {
            d.field("value").map_or(Data::Null, plain)
        }
        View::Object(_, _, fields) => Data::record(objects::own(fields).map(|(n, v)| (n.clone(), plain(v)))),
        View::Moment(Moment::Delta(_)) => match dates::method_of(d, "total_seconds") {
            Ok(seconds) => seconds,
            Err(_) => Data::Null,
        },
        View::Moment(Moment::Zone(_)) => Data::str(format::str(d)),
        View::Moment(_) => dates::method_of(d, "isoformat").unwrap_or(Data::Null),
        View::Match(m) => regexes::method(m, "group", &[], &[]).unwrap_or(Data::Null),
        View::Pattern(p) => Data::str(p),
        View::List(items) | View::Tuple(items) | View::Set(items) => Data::list(items.iter().map(plain)),
        View::Record(fields) => Data::record(fields.iter().map(|(n, v)| (n.clone(), plain(v)))),
        View::Dict(items) => {
            let mut out: Vec<(Name, Data)> = Vec::new();
            for (k, v) in items.iter().filter_map(pair) {
                let key = Name::from(match view(&k) {
                    View::None => "null".to_string(),
                    View::Bool(b) => b.to_string(),
                    _ => format::str(&k),
                });
                match out.iter_mut().find(|(n, _)| *n == key) {
                    Some((_, old)) => *old = plain(&v),
                    None => out.push((key, plain(&v))),
                }
            }
            Data::record(out)
        }
        _ => d.clone(),
    })
}

/// A value as a person is shown it, as JSON: an object is its fields without the name of its class, a member
/// of an enumeration its value, a tuple or set a list, a date its ISO text. A dictionary whose keys are no
/// strings is a list of pairs, so nothing is left out where two keys are written alike.
///
/// # Examples
/// ```
/// use core_ir::{Data, py};
/// let class = Data::Tag("Bill".into(), Data::str("data").into());
/// let bill = Data::record([(py::CLASS.into(), class), ("to".into(), Data::str("bob"))]);
/// assert_eq!(py::shown(&bill), Data::record([("to".into(), Data::str("bob"))]));
/// // What was read has no classes, whatever its keys are.
/// let read = Data::record([(py::CLASS.into(), Data::str("Bill"))]);
/// assert_eq!(py::shown(&read), read);
/// ```
pub fn shown(d: &Data) -> Data {
    stacker::maybe_grow(64 << 10, 1 << 20, || match view(base(d)) {
        View::Object(_, ClassKind::Enum | ClassKind::StrEnum, _) => {
            d.field("value").map_or(Data::Null, shown)
        }
        View::Object(_, _, fields) => Data::record(objects::own(fields).map(|(n, v)| (n.clone(), shown(v)))),
        View::List(items) | View::Tuple(items) | View::Set(items) => Data::list(items.iter().map(shown)),
        View::Record(fields) => Data::record(fields.iter().map(|(n, v)| (n.clone(), shown(v)))),
        View::Dict(items) => {
            let both = |(k, v): (Data, Data)| Data::list([shown(&k), shown(&v)]);
            Data::list(items.iter().filter_map(pair).map(both))
        }
        View::Moment(_) | View::Match(_) | View::Pattern(_) => plain(d),
        _ => d.clone(),
    })
}

fn no_attribute(of: &Data, key: &Data) -> PyResult {
    let class = objects::class_of_form(of);
    raise("AttributeError", format!("'{class}' object has no attribute '{}'", format::str(key)))
}

fn operate(op: &str, args: &[Data], limit: usize) -> PyResult {
    if let Some(name) = op.strip_prefix("b.") {
        let [Data::List(args), Data::Record(named)] = args else { return Err(PyError::Unknown) };
        return builtins::call(name, args, named, limit);
    }
    if let Some(name) = op.strip_prefix("m.") {
        let [object, Data::List(args), Data::Record(named)] = args else { return Err(PyError::Unknown) };
        return methods::call(name, object, args, named, limit);
    }
    if let Some(name) = op.strip_prefix("mut.") {
        let [object, Data::List(args), Data::Record(named)] = args else { return Err(PyError::Unknown) };
        let (object, value) = methods::change(name, object, args, named)?;
        return Ok(Data::record([("self".into(), object), ("value".into(), value)]));
    }
    if let Some(name) = op.strip_prefix("re.") {
        let [Data::List(args), Data::Record(named)] = args else { return Err(PyError::Unknown) };
        return regexes::call(name, args, named, limit);
    }
    let boolean = |b: bool| Ok(Data::Bool(b));
    match (op, args) {
        ("eq", [a, b]) => boolean(equal(a, b)),
        ("ne", [a, b]) => boolean(!equal(a, b)),
        ("lt" | "le" | "gt" | "ge", [a, b]) => {
            let (sign, holds): (&str, fn(Ordering) -> bool) = match op {
                "lt" => ("<", |o| o == Ordering::Less),
                "le" => ("<=", |o| o != Ordering::Greater),
                "gt" => (">", |o| o == Ordering::Greater),
                _ => (">=", |o| o != Ordering::Less),
            };
            boolean(compare(a, b, sign)?.is_some_and(holds))
        }
        ("truth", [a]) => boolean(truth(a)),
        ("not", [a]) => boolean(!truth(a)),
        ("in", [item, of]) => boolean(seq::contains(item, of)?),
        ("index", [of, key]) => seq::index(of, key),
        ("method", [of, Data::Str(name)]) => {
            if methods::exists(of, name) {
                Ok(Data::Null)
            } else {
                methods::no_method(of, name)
            }
        }
        ("attribute", [of, key]) => match (objects::form(of), key) {
            (View::Record(fields), Data::Str(name)) if fields.iter().any(|(n, _)| **n == **name) => {
                seq::index(of, key)
            }
            (View::Object(_, _, fields), Data::Str(name)) if fields.iter().any(|(n, _)| **n == **name) => {
                Ok(of.field(name).cloned().unwrap_or(Data::Null))
            }
            (View::Moment(m), Data::Str(name)) if dates::attribute(m, name).is_some() => {
                Ok(dates::attribute(m, name).unwrap_or(Data::Null))
            }
            (View::Pattern(text), Data::Str(name)) if &**name == "pattern" => Ok(Data::str(text)),
            (View::Exception(class, message), Data::Str(name)) if &**name == "args" => match (class, message)
            {
                ("KeyError", _) => unsupported("`args` of a `KeyError`: use `str(e)`"),
                (_, "") => Ok(tuple(Vec::new())),
                _ => Ok(tuple(vec![Data::str(message)])),
            },
            // What `form` takes for an object has no methods of a dictionary.
            (View::Object(..), _) if matches!(view(of), View::Record(_)) => no_attribute(of, key),
            (_, Data::Str(name)) if methods::exists(of, name) => {
                unsupported(format!("the method `{name}` as a value: call it"))
            }
            _ => no_attribute(of, key),
        },
        ("slice", [of, from, to, step]) => seq::slice(of, from, to, step),
        ("put", [of, key, value]) => seq::put_item(of, key, value),
        ("put_back", [of, key, value]) => seq::put_back(of, key, value),
        ("put_attribute", [of, key, value]) => seq::put_attribute(of, key, value),
        ("put_slice", [of, from, to, value]) => seq::put_slice(of, from, to, value),
        // What a mutation looks at: a `defaultdict` has every key.
        ("index_to_change", [of, key]) => match view(of) {
            View::Default(factory, inner) => {
                hashable(key)?;
                let all = pairs(inner).unwrap_or_default();
                Ok(lookup(&all, key).cloned().unwrap_or_else(|| made(factory)))
            }
            _ => seq::index(of, key),
        },
        ("unpack_rest", [of, Data::Num(before), Data::Num(after)]) => {
            let items = match iterate(of) {
                Ok(items) => items,
                Err(_) => return type_error(format!("cannot unpack non-iterable {} object", class(of))),
            };
            let (before, after) = (before.to_usize().unwrap_or(0), after.to_usize().unwrap_or(0));
            if items.len() < before + after {
                return value_error(format!(
                    "not enough values to unpack (expected at least {}, got {})",
                    before + after,
                    items.len()
                ));
            }
            let end = items.len() - after;
            let middle = Data::list(items[before..end].to_vec());
            let first = items[..before].iter().cloned();
            Ok(Data::list(first.chain([middle]).chain(items[end..].iter().cloned())))
        }
        ("concat", lists) => {
            let mut out = Vec::new();
            for list in lists {
                out.extend(iterate(list)?);
            }
            Ok(Data::list(out))
        }
        ("c_int", [of]) => Ok(Data::Num(numbers::c_int(of)?.into())),
        ("separator", [of]) => match of {
            Data::Null => Ok(Data::str(" ")),
            Data::Str(_) => Ok(of.clone()),
            _ => type_error(format!("sep must be None or a string, not {}", class(of))),
        },
        ("texts", [of]) => Ok(Data::list(iterate(of)?.iter().map(|d| Data::str(format::str(d))))),
        ("selected", [Data::List(items), Data::List(keys)]) => {
            let kept = items.iter().zip(keys.iter()).filter(|(_, k)| truth(k));
            Ok(Data::list(kept.map(|(i, _)| i.clone())))
        }
        ("conforms", [ty, value]) => boolean(objects::conforms(ty, value, objects::Truth::Apart)),
        ("checked", [ty, shown, what, value]) => objects::checked(ty, shown, what, value),
        ("typed", [ty, value]) => objects::typed(ty, value),
        ("object", [tag, fields]) => Ok(objects::object(tag, fields)),
        ("member", [members, value]) => objects::member_of(members, value),
        ("member_named", [members, name]) => objects::member_named(members, name),
        ("bounded", [bounds, value]) => boolean(objects::bounded(bounds, value)),
        ("now", [Data::Str(kind), seconds]) => Ok(dates::now(kind, seconds)),
        ("iter", [of]) => Ok(Data::list(iterate(of)?)),
        ("unpack", [of, Data::Num(n)]) => {
            let items = match iterate(of) {
                Ok(items) => items,
                Err(_) => return type_error(format!("cannot unpack non-iterable {} object", class(of))),
            };
            let count = n.to_usize().unwrap_or(0);
            match items.len().cmp(&count) {
                Ordering::Equal => Ok(Data::list(items)),
                Ordering::Less => value_error(format!(
                    "not enough values to unpack (expected {count}, got {})",
                    items.len()
                )),
                Ordering::Greater => value_error(format!("too many values to unpack (expected {count})")),
            }
        }
        ("tuple", [Data::List(items)]) => Ok(tuple(items.to_vec())),
        ("set", [Data::List(items)]) => set(items.to_vec()),
        ("dict", [Data::List(keys), Data::List(values)]) => {
            let mut out = Vec::new();
            for (k, v) in keys.iter().zip(values.iter()) {
                hashable(k)?;
                put(&mut out, k.clone(), v.clone());
            }
            Ok(dict(out))
        }
        ("format", [value, Data::Str(spec)]) => Ok(Data::str(format::format(value, spec, limit)?)),
        ("json", [a]) => Ok(plain(a)),
        ("only_owner", [a, Data::Str(name)]) if is_heap(&view(a)) => {
            unsupported(format!("`{name}` may have another name: make a copy first (P010)"))
        }
        ("only_owner", [_, _]) => Ok(Data::Null),
        ("rounds", [Data::Num(now), Data::Num(most)]) if now >= most => {
            Err(PyError::Rounds(format!("the loop has used its {most} rounds")))
        }
        ("rounds", [_, _]) => Ok(Data::Null),
        ("is_unbound", [a]) => boolean(matches!(a, Data::Tag(name, _) if &**name == "unbound")),
        ("caught", [error]) => Ok(caught(error)),
        ("exception", [Data::Tag(_, e)]) => Ok((**e).clone()),
        (_, [a, b]) => numbers::binary(op, a, b, limit),
        (_, [a]) => numbers::unary(op, a),
        _ => Err(PyError::Unknown),
    }
}

/// The exception that an error of the machine is: `{code, message}` as `catch error` gives it.
fn caught(error: &Data) -> Data {
    let text = |f: &str| error.field(f).and_then(Data::as_str).unwrap_or("");
    let message = text("message");
    match text("code") {
        // A plan fails with an exception as data, whose message is its JSON.
        "fail" => serde_json::from_str(message)
            .ok()
            .and_then(|json| Data::from_json(&json).ok())
            .filter(|e| e.field("class").is_some() && e.field("message").is_some())
            .unwrap_or_else(|| exception("Exception", message)),
        "timeout" | "tool_timeout" => exception("TimeoutError", message),
        "flow" | "policy" | "refused" => exception("PolicyError", message),
        "type" => exception("TypeError", message),
        "prim" => exception("OverflowError", message),
        _ => exception("ToolError", message),
    }
}

#[cfg(test)]
mod tests;
