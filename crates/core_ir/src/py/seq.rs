//! Items, slices, membership and sets.

use super::numbers::{integer, small};
use super::{
    PyResult, View, class, dict, equal, format, hashable, iterate, lookup, pairs, put, raise, set, tuple,
    type_error, unsupported, value_error, view,
};
use crate::Data;

/// `item in of`.
pub(super) fn contains(item: &Data, of: &Data) -> PyResult<bool> {
    let item = super::objects::key(item);
    match view(super::base(of)) {
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
        return match class(of) {
            "str" => type_error(format!("string indices must be integers, not '{}'", class(key))),
            kind => type_error(format!("{kind} indices must be integers or slices, not {}", class(key))),
        };
    }
    let kind = if class(of) == "str" { "string" } else { class(of) };
    let out = || raise("IndexError", format!("{kind} index out of range"));
    let Ok(i) = small(key) else { return out() };
    let at = if i < 0 { i + length as i64 } else { i };
    if at < 0 || at >= length as i64 { out() } else { Ok(at as usize) }
}

/// `of[key]`.
pub(super) fn index(of: &Data, key: &Data) -> PyResult {
    let key = super::objects::key(key);
    match super::objects::form(of) {
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
        View::Counter(inner) => {
            hashable(key)?;
            let all = pairs(inner).unwrap_or_default();
            Ok(lookup(&all, key).cloned().unwrap_or(Data::Num(crate::Num::ZERO)))
        }
        View::Default(_, inner) => {
            hashable(key)?;
            match lookup(&pairs(inner).unwrap_or_default(), key) {
                Some(v) => Ok(v.clone()),
                None => unsupported("reading an absent key of a `defaultdict` changes it: use `d.get(key)`"),
            }
        }
        View::Match(m) => Ok(super::regexes::group_text(super::regexes::group(m, key)?)),
        _ => type_error(format!("'{}' object is not subscriptable", super::objects::class_of_form(of))),
    }
}

/// The container of a part that was changed in place, which may be a tuple.
pub(super) fn put_back(of: &Data, key: &Data, value: &Data) -> PyResult {
    let View::Tuple(items) = view(of) else { return put_item(of, key, value) };
    let mut items = items.to_vec();
    let at = place(key, items.len(), of)?;
    items[at] = value.clone();
    Ok(tuple(items))
}

/// `of.name = value`, as the changed value. A record has its fields as attributes.
pub(super) fn put_attribute(of: &Data, key: &Data, value: &Data) -> PyResult {
    match (view(of), key) {
        (View::Object(class, kind, fields), Data::Str(name)) => {
            let known = fields.iter().any(|(n, _)| **n == **name);
            if matches!(kind, super::ClassKind::Enum | super::ClassKind::StrEnum) {
                return raise("AttributeError", format!("cannot assign to member of '{class}'"));
            }
            if kind == super::ClassKind::Model && !known {
                return value_error(format!("\"{class}\" object has no field \"{name}\""));
            }
            let mut fields = fields.to_vec();
            match fields.iter_mut().find(|(n, _)| **n == **name) {
                Some((_, old)) => *old = value.clone(),
                None => fields.push((crate::Name::from(&**name), value.clone())),
            }
            Ok(Data::record(fields))
        }
        (View::Record(_), Data::Str(_)) => put_item(of, key, value),
        (_, key) => {
            raise("AttributeError", format!("'{}' object has no attribute '{}'", class(of), format::str(key)))
        }
    }
}

/// `of[from:to] = value`, as the changed list.
pub(super) fn put_slice(of: &Data, from: &Data, to: &Data, value: &Data) -> PyResult {
    let View::List(items) = view(of) else {
        return type_error(format!("'{}' object does not support item assignment", class(of)));
    };
    let Ok(new) = iterate(value) else { return type_error("can only assign an iterable") };
    let one = Data::Num(crate::Num::ONE);
    // The places of the slice are those of a slice of the indices.
    let numbers = Data::list((0..items.len() + 1).map(|i| Data::Num(crate::Num::from(i as i64))));
    let length = Data::Num(crate::Num::from(items.len() as i64));
    let bound = |d: &Data, default: usize| -> PyResult<usize> {
        if *d == Data::Null {
            return Ok(default);
        }
        let negative = matches!(view(d), View::Num(n) if *n < crate::Num::ZERO);
        let Data::List(before) = slice(&numbers, &Data::Null, d, &one)? else { return Ok(default) };
        // `numbers` has one item more than the list.
        Ok(if negative { before.len().saturating_sub(1) } else { before.len().min(items.len()) })
    };
    let _ = length;
    let start = bound(from, 0)?;
    let end = bound(to, items.len())?.max(start);
    let all = items[..start].iter().cloned().chain(new).chain(items[end..].iter().cloned());
    Ok(Data::list(all))
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
        View::Record(_) | View::Dict(_) | View::Counter(_) | View::Default(..) => {
            hashable(key)?;
            let mut all = pairs(of).unwrap_or_default();
            put(&mut all, key.clone(), value.clone());
            Ok(super::like(of, dict(all)))
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
        View::Record(_) | View::Dict(_) | View::Counter(_) | View::Default(..) => {
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
        // CPython keeps the items of the smaller set, and of the right one if both have as many: of `1` and
        // `True`, which are equal, it decides which is shown.
        "and" if x.len() < y.len() => set(left(true).collect()),
        "and" => set(y.iter().filter(|i| has(x, i)).cloned().collect()),
        "sub" => set(left(false).collect()),
        "xor" => set(left(false).chain(right).collect()),
        "or" => set(x.iter().chain(y).cloned().collect()),
        _ => unsupported("an operator of sets"),
    }
}

/// Sorts stably; the order of equal items stays in reverse, too. Ends at the first two items that have no
/// order: the sorts of the standard library may panic where the order is none.
pub(super) fn sort(keyed: Vec<(Data, Data)>, reverse: bool) -> PyResult<Vec<Data>> {
    let comes_first = |a: usize, b: usize| match super::compare(&keyed[a].0, &keyed[b].0, "<")? {
        Some(order) => Ok(if reverse { order.is_gt() } else { order.is_lt() }),
        None => unsupported("sorting sets of which neither contains the other"),
    };
    let mut order: Vec<usize> = (0..keyed.len()).collect();
    let mut merged = Vec::with_capacity(order.len());
    let mut width = 1;
    while width < order.len() {
        merged.clear();
        for run in order.chunks(2 * width) {
            let (mut left, mut right) = run.split_at(width.min(run.len()));
            // In order already, as most of what is sorted again.
            if let ([.., a], [b, ..]) = (left, right)
                && !comes_first(*b, *a)?
            {
                merged.extend_from_slice(run);
                continue;
            }
            while let ([a, left_rest @ ..], [b, right_rest @ ..]) = (left, right) {
                if comes_first(*b, *a)? {
                    merged.push(*b);
                    right = right_rest;
                } else {
                    merged.push(*a);
                    left = left_rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        width *= 2;
    }
    let mut values: Vec<Option<Data>> = keyed.into_iter().map(|(_, v)| Some(v)).collect();
    Ok(order.into_iter().filter_map(|i| values[i].take()).collect())
}

/// The entries of a dictionary in the order of their keys.
pub(super) fn sort_pairs(all: Vec<(Data, Data)>) -> PyResult<Vec<(Data, Data)>> {
    let keyed = all.into_iter().map(|(k, v)| (k.clone(), tuple(vec![k, v]))).collect();
    let sorted = sort(keyed, false)?;
    Ok(sorted
        .into_iter()
        .filter_map(|item| match view(&item) {
            View::Tuple([k, v]) => Some((k.clone(), v.clone())),
            _ => None,
        })
        .collect())
}
