//! Items, slices, membership and sets.

use super::numbers::{integer, small};
use super::{
    PyResult, View, class, dict, equal, format, hashable, iterate, lookup, pairs, put, raise, set, tuple,
    type_error, unsupported, value_error, view,
};
use crate::Data;

/// `item in of`.
pub(super) fn contains(item: &Data, of: &Data) -> PyResult<bool> {
    match view(of) {
        View::Str(s) => match view(item) {
            View::Str(part) => Ok(s.contains(part)),
            _ => type_error(format!("'in <string>' requires string as left operand, not {}", class(item))),
        },
        View::List(items) | View::Tuple(items) => Ok(items.iter().any(|i| equal(i, item))),
        View::Set(items) => {
            hashable(item)?;
            Ok(items.iter().any(|i| equal(i, item)))
        }
        View::Record(fields) => {
            hashable(item)?;
            Ok(matches!(item, Data::Str(s) if fields.iter().any(|(n, _)| **n == **s)))
        }
        View::Dict(_) => {
            hashable(item)?;
            Ok(lookup(&pairs(of).unwrap_or_default(), item).is_some())
        }
        _ => type_error(format!("argument of type '{}' is not iterable", class(of))),
    }
}

/// The place of an index, counted from the end if it is negative.
fn place(key: &Data, length: usize, of: &Data) -> PyResult<usize> {
    if !matches!(view(key), View::Num(_) | View::Bool(_)) || integer(key).is_err() {
        let kind = if class(of) == "str" { "string" } else { class(of) };
        return type_error(format!("{kind} indices must be integers, not '{}'", class(key)));
    }
    let out = || raise("IndexError", format!("{} index out of range", class(of)));
    let Ok(i) = small(key) else { return out() };
    let at = if i < 0 { i + length as i64 } else { i };
    if at < 0 || at >= length as i64 { out() } else { Ok(at as usize) }
}

/// `of[key]`.
pub(super) fn index(of: &Data, key: &Data) -> PyResult {
    match view(of) {
        View::List(items) | View::Tuple(items) => Ok(items[place(key, items.len(), of)?].clone()),
        View::Str(s) => {
            let at = place(key, s.chars().count(), of)?;
            Ok(Data::str(s.chars().skip(at).take(1).collect::<String>()))
        }
        View::Record(fields) => {
            hashable(key)?;
            let found = match key {
                Data::Str(name) => fields.iter().find(|(n, _)| **n == **name).map(|(_, v)| v.clone()),
                _ => None,
            };
            found.map_or_else(|| raise("KeyError", format::repr(key)), Ok)
        }
        View::Dict(_) => {
            hashable(key)?;
            let all = pairs(of).unwrap_or_default();
            lookup(&all, key).cloned().map_or_else(|| raise("KeyError", format::repr(key)), Ok)
        }
        _ => type_error(format!("'{}' object is not subscriptable", class(of))),
    }
}

/// `of[key] = value`, as the changed value.
pub(super) fn put_item(of: &Data, key: &Data, value: &Data) -> PyResult {
    match view(of) {
        View::List(items) => {
            if !matches!(view(key), View::Num(_) | View::Bool(_)) {
                return type_error(format!("list indices must be integers or slices, not {}", class(key)));
            }
            let at = match place(key, items.len(), of) {
                Err(super::PyError::Raise("IndexError", _)) => {
                    return raise("IndexError", "list assignment index out of range");
                }
                at => at?,
            };
            let mut items = items.to_vec();
            items[at] = value.clone();
            Ok(Data::list(items))
        }
        View::Record(_) | View::Dict(_) => {
            hashable(key)?;
            let mut all = pairs(of).unwrap_or_default();
            put(&mut all, key.clone(), value.clone());
            Ok(dict(all))
        }
        _ => type_error(format!("'{}' object does not support item assignment", class(of))),
    }
}

/// `of[from:to:step]`.
pub(super) fn slice(of: &Data, from: &Data, to: &Data, step: &Data) -> PyResult {
    let chars: Vec<Data>;
    let items = match view(of) {
        View::List(items) | View::Tuple(items) => items,
        View::Str(_) => {
            chars = iterate(of)?;
            &chars
        }
        View::Record(_) | View::Dict(_) => {
            return type_error("unhashable type: 'slice'");
        }
        _ => return type_error(format!("'{}' object is not subscriptable", class(of))),
    };
    let bound = |d: &Data| -> PyResult<Option<i64>> {
        match view(d) {
            View::None => Ok(None),
            View::Num(n) if super::numbers::whole(n) => {
                // Beyond the range of a machine integer is beyond every list.
                Ok(Some(n.to_i64().unwrap_or(if *n < crate::Num::ZERO {
                    i64::MIN / 2
                } else {
                    i64::MAX / 2
                })))
            }
            View::Bool(b) => Ok(Some(i64::from(b))),
            _ => type_error("slice indices must be integers or None or have an __index__ method"),
        }
    };
    let step = bound(step)?.unwrap_or(1);
    if step == 0 {
        return value_error("slice step cannot be zero");
    }
    let length = items.len() as i64;
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let fit = |i: i64| (if i < 0 { i.saturating_add(length) } else { i }).clamp(low, high);
    let start = bound(from)?.map_or(if step > 0 { low } else { high }, fit);
    let end = bound(to)?.map_or(if step > 0 { high } else { low }, fit);
    let mut out = Vec::new();
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        out.push(items[at as usize].clone());
        at = match at.checked_add(step) {
            Some(next) => next,
            None => break,
        };
    }
    Ok(match view(of) {
        View::Str(_) => Data::str(out.iter().filter_map(Data::as_str).collect::<String>()),
        View::Tuple(_) => tuple(out),
        _ => Data::list(out),
    })
}

/// Operators of two sets.
pub(super) fn combine(op: &str, x: &[Data], y: &[Data]) -> PyResult {
    let has = |of: &[Data], item: &Data| of.iter().any(|i| equal(i, item));
    let left = |keep: bool| x.iter().filter(move |i| has(y, i) == keep).cloned();
    let right = y.iter().filter(|i| !has(x, i)).cloned();
    match op {
        "and" => set(left(true).collect()),
        "sub" => set(left(false).collect()),
        "xor" => set(left(false).chain(right).collect()),
        "or" => set(x.iter().chain(y).cloned().collect()),
        _ => unsupported("an operator of sets"),
    }
}

/// Sorts stably; the order of equal items stays in reverse, too.
pub(super) fn sort(mut keyed: Vec<(Data, Data)>, reverse: bool) -> PyResult<Vec<Data>> {
    let mut failed = None;
    keyed.sort_by(|(a, _), (b, _)| match super::compare(a, b, "<") {
        Ok(order) if reverse => order.reverse(),
        Ok(order) => order,
        Err(e) => {
            failed.get_or_insert(e);
            std::cmp::Ordering::Equal
        }
    });
    match failed {
        Some(e) => Err(e),
        None => Ok(keyed.into_iter().map(|(_, v)| v).collect()),
    }
}
