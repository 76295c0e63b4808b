//! Objects of the plan's classes, and values against types.
//!
//! An object is a record with the field `$class`, a tag: the name of the class, with its kind. No JSON has
//! a tag, so nothing that is read is an object of a class: a record with another `$class` is a dictionary.
//! But `len`, loops, indices and attributes look at which fields a record has and at nothing else, so that
//! the labels of its parts do not count: see [`form`]. A type is data, too: a name, or a list of a former and
//! its parts.

use super::dates;
use super::numbers::{number, whole};
use super::{PyResult, View, class, equal, format, raise, type_error, value_error, view};
use crate::{Data, Name};

/// The field that names the class of an object.
pub const CLASS: &str = "$class";

/// Kind of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassKind {
    /// `@dataclass`.
    Data,
    /// A model of Pydantic.
    Model,
    /// `Enum`: the fields are `name` and `value`.
    Enum,
    /// `StrEnum`, or `str` and `Enum`: equal to its value.
    StrEnum,
}

/// The class of a record that is an object.
pub(super) fn class_of(fields: &[(Name, Data)]) -> Option<(&str, ClassKind)> {
    let (_, class) = fields.iter().find(|(n, _)| &**n == CLASS)?;
    let Data::Tag(name, kind) = class else { return None };
    let kind = match kind.as_str()? {
        "data" => ClassKind::Data,
        "model" => ClassKind::Model,
        "enum" => ClassKind::Enum,
        "str enum" | "StrEnum" => ClassKind::StrEnum,
        _ => return None,
    };
    Some((name, kind))
}

/// A value as `len`, loops, indices and attributes see it: a record with the field `$class` is an object,
/// whatever that field is. It has the fields as attributes, no items and no length.
pub(super) fn form(d: &Data) -> View<'_> {
    match view(d) {
        View::Record(fields) if fields.iter().any(|(n, _)| &**n == CLASS) => {
            View::Object("object", ClassKind::Data, fields)
        }
        seen => seen,
    }
}

/// Name of the class of such a value in messages.
pub(super) fn class_of_form(d: &Data) -> &str {
    match form(d) {
        View::Object(class, ..) => class,
        _ => class(d),
    }
}

/// Returns true for a member of a `StrEnum`, which is shown as its value.
pub(super) fn shown_as_value(fields: &[(Name, Data)]) -> bool {
    fields
        .iter()
        .any(|(n, d)| &**n == CLASS && matches!(d, Data::Tag(_, kind) if kind.as_str() == Some("StrEnum")))
}

/// The fields that a class declares.
pub(super) fn own(fields: &[(Name, Data)]) -> impl Iterator<Item = &(Name, Data)> {
    fields.iter().filter(|(n, _)| &**n != CLASS)
}

/// The value of a member of an enumeration.
pub(super) fn member(d: &Data) -> Option<&Data> {
    match view(d) {
        View::Object(_, ClassKind::Enum | ClassKind::StrEnum, _) => d.field("value"),
        _ => None,
    }
}

/// A key as dictionaries look it up: a member of a `StrEnum` is its string.
pub(super) fn key(d: &Data) -> &Data {
    match view(d) {
        View::Object(_, ClassKind::StrEnum, _) => member(d).unwrap_or(d),
        _ => d,
    }
}

/// An object with the fields of a record: of the class and kind that the tag names.
pub(super) fn object(tag: &Data, fields: &Data) -> Data {
    let Data::Record(fields) = fields else { return fields.clone() };
    let class = std::iter::once((CLASS.into(), tag.clone()));
    Data::record(class.chain(own(fields).cloned()))
}

/// `Kind(value)`: the member of this value.
pub(super) fn member_of(members: &Data, value: &Data) -> PyResult {
    let Data::List(members) = members else { return Err(super::PyError::Unknown) };
    let name = members.first().map_or("", |m| class(m)).to_string();
    match members.iter().find(|m| member(m).is_some_and(|v| equal(v, value)) || equal(m, value)) {
        Some(m) => Ok(m.clone()),
        None => value_error(format!("{} is not a valid {name}", format::repr(value))),
    }
}

/// `Kind[name]`.
pub(super) fn member_named(members: &Data, name: &Data) -> PyResult {
    let Data::List(members) = members else { return Err(super::PyError::Unknown) };
    match members.iter().find(|m| m.field("name") == Some(name)) {
        Some(m) => Ok(m.clone()),
        None => raise("KeyError", format::repr(name)),
    }
}

/// Parts of a type: its former and its operands.
fn former(ty: &Data) -> (&str, &[Data]) {
    match ty {
        Data::List(parts) => match parts.split_first() {
            Some((Data::Str(name), rest)) => (name, rest),
            _ => ("any", &[]),
        },
        Data::Str(name) => (name, &[]),
        _ => ("any", &[]),
    }
}

/// Meaning of a truth value where a number is stated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Truth {
    /// An integer, as everywhere in Python.
    Number,
    /// No number: a model of Pydantic would convert it, and a plan converts nothing.
    Apart,
}

/// Returns true if a value has a type. A record may represent an object: it has the fields.
pub(super) fn conforms(ty: &Data, value: &Data, truth: Truth) -> bool {
    let (name, parts) = former(ty);
    let conforms = |ty: &Data, value: &Data| conforms(ty, value, truth);
    stacker::maybe_grow(64 << 10, 1 << 20, || match (name, parts) {
        ("none", _) => matches!(value, Data::Null),
        ("str", _) => matches!(value, Data::Str(_)),
        ("bool", _) => matches!(value, Data::Bool(_)),
        ("int" | "float", _) if matches!(value, Data::Bool(_)) => truth == Truth::Number,
        ("int", _) => matches!(view(value), View::Num(n) if whole(n)),
        ("float", _) => matches!(value, Data::Num(_)),
        ("list", [item]) => match view(value) {
            View::List(items) => items.iter().all(|i| conforms(item, i)),
            _ => false,
        },
        ("set", [item]) => match view(value) {
            View::Set(items) => items.iter().all(|i| conforms(item, i)),
            _ => false,
        },
        ("tuple", []) => matches!(view(value), View::Tuple(_)),
        ("tuple", types) => match view(value) {
            View::Tuple(items) => {
                items.len() == types.len() && types.iter().zip(items).all(|(t, i)| conforms(t, i))
            }
            _ => false,
        },
        ("dict", _) => super::pairs(value).is_some(),
        ("option", [inner]) => matches!(value, Data::Null) || conforms(inner, value),
        ("union", all) => all.iter().any(|t| conforms(t, value)),
        ("literal", all) => all.contains(value),
        ("date" | "datetime" | "time" | "timedelta", _) => {
            class(value) == name || name == "date" && class(value) == "datetime"
        }
        ("enum", [Data::List(members)]) => members.iter().any(|m| equal(m, value)),
        ("class", [tag, Data::Record(types), _]) => {
            let Data::Record(fields) = value else { return false };
            let fits = match (class_of(fields), tag) {
                (Some((own, _)), Data::Tag(wanted, _)) => own == &**wanted,
                (None, _) => true,
                _ => false,
            };
            fits && types
                .iter()
                .all(|(n, t)| fields.iter().find(|(f, _)| f == n).is_some_and(|(_, v)| conforms(t, v)))
        }
        _ => true,
    })
}

/// A value of an answer as its type says: objects of classes, members of enumerations, dates.
pub(super) fn typed(ty: &Data, value: &Data) -> PyResult {
    let (name, parts) = former(ty);
    stacker::maybe_grow(64 << 10, 1 << 20, || match (name, parts, value) {
        ("option", _, Data::Null) => Ok(Data::Null),
        ("option", [inner], v) => typed(inner, v),
        ("list", [item], Data::List(items)) => {
            Ok(Data::list(items.iter().map(|i| typed(item, i)).collect::<PyResult<Vec<_>>>()?))
        }
        ("date" | "datetime" | "time", _, Data::Str(_)) => {
            dates::call(&format!("{name}.fromisoformat"), std::slice::from_ref(value), &[])
        }
        ("enum", [members], v) => member_of(members, v),
        ("class", [tag, Data::Record(types), defaults], Data::Record(fields)) => {
            let mut out = vec![(Name::from(CLASS), tag.clone())];
            if *tag == Data::Null {
                out.clear();
            }
            for (n, t) in types.iter() {
                let given = fields.iter().find(|(f, _)| f == n).map(|(_, v)| v);
                let value = match (given, defaults.field(n)) {
                    (None | Some(Data::Null), Some(d)) => d.clone(),
                    (Some(v), _) => typed(t, v)?,
                    (None, None) => Data::Null,
                };
                out.push((n.clone(), value));
            }
            Ok(Data::record(out))
        }
        _ => Ok(value.clone()),
    })
}

/// `TypeError` for a value that has not the type which the plan states.
pub(super) fn checked(ty: &Data, shown: &Data, what: &Data, value: &Data) -> PyResult {
    if conforms(ty, value, Truth::Number) {
        return Ok(Data::Null);
    }
    let text = |d: &Data| d.as_str().unwrap_or("").to_string();
    type_error(format!("`{}` is stated to be `{}`, not '{}'", text(what), text(shown), class(value)))
}

/// A number within the bounds of a `Field`, or a text or list of a bounded length.
pub(super) fn bounded(bounds: &Data, value: &Data) -> bool {
    let Data::Record(bounds) = bounds else { return true };
    bounds.iter().all(|(name, bound)| {
        let Some(bound) = number(bound) else { return true };
        let length = match view(value) {
            View::Str(s) => Some(s.chars().count()),
            View::List(items) => Some(items.len()),
            _ => None,
        };
        match (&**name, number(value), length) {
            ("ge", Some(n), _) => n >= bound,
            ("gt", Some(n), _) => n > bound,
            ("le", Some(n), _) => n <= bound,
            ("lt", Some(n), _) => n < bound,
            ("min_length", _, Some(n)) => crate::Num::from(n as i64) >= bound,
            ("max_length", _, Some(n)) => crate::Num::from(n as i64) <= bound,
            _ => true,
        }
    })
}
