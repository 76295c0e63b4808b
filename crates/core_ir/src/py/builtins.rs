//! Builtin functions, without those that take a function.

use super::numbers::{self, integer, number, small, whole};
use super::{
    PyError, PyResult, View, class, dict, format, hashable, iterate, pair, pairs, put, raise, seq, set,
    truth, tuple, type_error, unsupported, value_error, view,
};
use crate::{Data, Name, Num};
use std::cmp::Ordering;

fn named<'a>(all: &'a [(Name, Data)], name: &str) -> Option<&'a Data> {
    all.iter().find(|(n, _)| &**n == name).map(|(_, d)| d)
}

/// A list without its order of types: `sorted` with the keys of its items.
fn keyed(items: &[Data], keys: Option<&Data>) -> Vec<(Data, Data)> {
    match keys {
        Some(Data::List(keys)) => keys.iter().cloned().zip(items.iter().cloned()).collect(),
        _ => items.iter().map(|i| (i.clone(), i.clone())).collect(),
    }
}

pub(super) fn call(name: &str, args: &[Data], kw: &[(Name, Data)], limit: usize) -> PyResult {
    if let Some(name) = name.strip_prefix("datetime.") {
        return super::dates::call(name, args, kw);
    }
    let only = |known: &[&str]| match kw.iter().find(|(n, _)| !known.contains(&&**n)) {
        Some((n, _)) => type_error::<()>(format!("{name}() got an unexpected keyword argument '{n}'")),
        None => Ok(()),
    };
    match name {
        // `$keys` holds what the key function gave for each item.
        "sorted" => only(&["reverse", "$keys"])?,
        "min" | "max" => only(&["default", "$keys"])?,
        "sum" => only(&["start"])?,
        "enumerate" => only(&["start"])?,
        "round" => only(&["ndigits"])?,
        "dict" => {}
        "zip" => only(&["strict"])?,
        "dumps" => only(&["indent", "sort_keys", "ensure_ascii", "default"])?,
        "int" => only(&["base"])?,
        "replace" => {}
        _ => only(&[])?,
    }
    let reverse = named(kw, "reverse").is_some_and(truth);
    match (name, args) {
        ("str", []) => Ok(Data::str("")),
        ("str", [a]) => Ok(Data::str(format::str(a))),
        ("repr", [a]) => Ok(Data::str(format::repr(a))),
        ("type", [a]) => Ok(Data::str(class(a))),
        ("len", [a]) => match super::objects::form(super::base(a)) {
            View::Str(s) => Ok(Data::Num(Num::from(s.chars().count() as i64))),
            View::List(i) | View::Tuple(i) | View::Set(i) | View::Dict(i) => {
                Ok(Data::Num(Num::from(i.len() as i64)))
            }
            View::Record(f) => Ok(Data::Num(Num::from(f.len() as i64))),
            _ => type_error(format!("object of type '{}' has no len()", super::objects::class_of_form(a))),
        },
        ("int", []) | ("float", []) => Ok(Data::Num(Num::ZERO)),
        ("int", [a]) => match named(kw, "base") {
            Some(base) => numbers::int_of_base(a, base),
            None => numbers::int(a),
        },
        ("int", [a, base]) => numbers::int_of_base(a, base),
        ("bin" | "hex" | "oct", [a]) => {
            let n = integer(a)?;
            let (sign, n) = if n < Num::ZERO { ("-", n.neg()) } else { ("", n) };
            let (prefix, base) = match name {
                "bin" => ("0b", 2),
                "hex" => ("0x", 16),
                _ => ("0o", 8),
            };
            Ok(Data::str(format!("{sign}{prefix}{}", n.to_radix(base)?)))
        }
        ("float", [a]) => numbers::float(a),
        ("bool", []) => Ok(Data::Bool(false)),
        ("bool", [a]) => Ok(numbers::boolean(a)),
        ("round", [a]) => numbers::round(a, named(kw, "ndigits")),
        ("round", [a, digits]) => numbers::round(a, Some(digits)),
        ("abs", [a]) if matches!(view(a), View::Moment(super::Moment::Delta(_))) => numbers::unary("abs", a),
        ("abs", [a]) => match number(a) {
            Some(n) => Ok(Data::Num(if n < Num::ZERO { n.neg() } else { n })),
            None => type_error(format!("bad operand type for abs(): '{}'", class(a))),
        },
        ("floor" | "ceil" | "trunc", [a]) => match number(a) {
            Some(n) => Ok(Data::Num(match name {
                "floor" => n.floor(),
                "ceil" => n.neg().floor().neg(),
                _ => numbers::trunc(&n),
            })),
            None => type_error(format!("must be real number, not {}", class(a))),
        },
        ("divmod", [a, b]) => match (number(a), number(b)) {
            (Some(x), Some(y)) => {
                if y.is_zero()
                    && let Some(message) = numbers::by_zero("divmod", numbers::whole(&x))
                {
                    return raise("ZeroDivisionError", message);
                }
                Ok(tuple(vec![Data::Num(numbers::floor_div(&x, &y)?), Data::Num(x.rem(&y)?)]))
            }
            _ => type_error(format!(
                "unsupported operand type(s) for divmod(): '{}' and '{}'",
                class(a),
                class(b)
            )),
        },
        ("pow", [a, b] | [a, b, Data::Null]) => numbers::binary("pow", a, b, limit),
        ("pow", [a, b, m]) => numbers::pow_mod(a, b, m),
        ("range", [_] | [_, _] | [_, _, _]) => range(args, limit),
        ("list", []) => Ok(Data::list([])),
        ("list", [a]) => Ok(Data::list(iterate(a)?)),
        ("tuple", []) => Ok(tuple(Vec::new())),
        ("tuple", [a]) => Ok(tuple(iterate(a)?)),
        ("set" | "frozenset", []) => set(Vec::new()),
        ("set" | "frozenset", [a]) => set(iterate(a)?),
        ("dict", [] | [_]) => {
            let mut out = Vec::new();
            if let [a] = args {
                match pairs(a) {
                    Some(all) => out = all,
                    None => {
                        for item in iterate(a)? {
                            let Ok(kv) = iterate(&item) else {
                                return type_error(
                                    "cannot convert dictionary update sequence element to a sequence",
                                );
                            };
                            let [k, v] = &kv[..] else {
                                return value_error(format!(
                                    "dictionary update sequence element has length {}; 2 is required",
                                    kv.len()
                                ));
                            };
                            hashable(k)?;
                            put(&mut out, k.clone(), v.clone());
                        }
                    }
                }
            }
            for (n, v) in kw {
                put(&mut out, Data::str(&**n), v.clone());
            }
            Ok(dict(out))
        }
        ("reversed", [a]) => match view(a) {
            View::Set(_) => type_error("'set' object is not reversible"),
            View::Counter(_) | View::Default(..) => {
                unsupported("`reversed` of this dictionary: use `list(d)`")
            }
            _ => {
                let mut items = iterate(a)?;
                items.reverse();
                Ok(Data::list(items))
            }
        },
        ("enumerate", [_] | [_, _]) => {
            let start = args.get(1).or(named(kw, "start"));
            let start = start.map_or(Ok(Num::ZERO), integer)?;
            let mut out = Vec::new();
            let mut at = start;
            for item in iterate(&args[0])? {
                out.push(tuple(vec![Data::Num(at.clone()), item]));
                at = at.add(&Num::ONE)?;
            }
            Ok(Data::list(out))
        }
        ("zip", _) => {
            let all: Vec<Vec<Data>> = args.iter().map(iterate).collect::<PyResult<_>>()?;
            let shortest = all.iter().map(Vec::len).min().unwrap_or(0);
            if named(kw, "strict").is_some_and(truth) && all.iter().any(|i| i.len() != shortest) {
                return value_error("zip() arguments have different lengths");
            }
            Ok(Data::list((0..shortest).map(|i| tuple(all.iter().map(|l| l[i].clone()).collect()))))
        }
        ("sorted", [a]) => {
            let items = iterate(a)?;
            Ok(Data::list(seq::sort(keyed(&items, named(kw, "$keys")), reverse)?))
        }
        ("sum", [_] | [_, _]) => {
            let mut total = args.get(1).or(named(kw, "start")).cloned().unwrap_or(Data::Num(Num::ZERO));
            if matches!(total, Data::Str(_)) {
                return type_error("sum() can't sum strings [use ''.join(seq) instead]");
            }
            for item in iterate(&args[0])? {
                total = numbers::binary("add", &total, &item, limit)?;
            }
            Ok(total)
        }
        ("any", [a]) => Ok(Data::Bool(iterate(a)?.iter().any(truth))),
        ("all", [a]) => Ok(Data::Bool(iterate(a)?.iter().all(truth))),
        ("min" | "max", [_, ..]) => {
            let items = if let [one] = args { iterate(one)? } else { args.to_vec() };
            if items.is_empty() {
                return match named(kw, "default") {
                    Some(d) => Ok(d.clone()),
                    None => value_error(format!("{name}() arg is an empty sequence")),
                };
            }
            let mut all = keyed(&items, named(kw, "$keys")).into_iter();
            let Some(mut best) = all.next() else { return Err(PyError::Unknown) };
            for next in all {
                let sign = if name == "min" { "<" } else { ">" };
                let order = super::compare(&next.0, &best.0, sign)?;
                if (name == "min" && order == Some(Ordering::Less))
                    || (name == "max" && order == Some(Ordering::Greater))
                {
                    best = next;
                }
            }
            Ok(best.1)
        }
        ("chr", [a]) => match small(a).ok().and_then(|i| u32::try_from(i).ok()).and_then(char::from_u32) {
            Some(c) => Ok(Data::str(c.to_string())),
            None => {
                integer(a)?;
                value_error("chr() arg not in range(0x110000)")
            }
        },
        ("ord", [a]) => match view(a) {
            View::Str(s) if s.chars().count() == 1 => {
                Ok(Data::Num(Num::from(s.chars().next().map_or(0, |c| i64::from(c as u32)))))
            }
            View::Str(_) => type_error("ord() expected a character, but string of another length found"),
            _ => type_error(format!("ord() expected string of length 1, but {} found", class(a))),
        },
        ("format", [a]) => Ok(Data::str(format::str(a))),
        ("format", [a, Data::Str(spec)]) => Ok(Data::str(format::format(a, spec, limit)?)),
        // The second operand is the names of the classes.
        ("isinstance", [a, Data::List(classes)]) => {
            let own = class(a);
            let is = |c: &Data| match c.as_str() {
                // A whole number may represent either.
                Some("float") => own == "float",
                Some("int") => own == "int" || own == "bool",
                Some("dict") => matches!(own, "dict" | "Counter" | "defaultdict"),
                Some("date") => matches!(own, "date" | "datetime"),
                Some("str") => {
                    own == "str" || matches!(view(a), View::Object(_, super::ClassKind::StrEnum, _))
                }
                Some(c) => c == own || c == "object",
                None => false,
            };
            Ok(Data::Bool(classes.iter().any(is)))
        }
        ("loads", [Data::Str(text)]) => {
            let Ok(json) = serde_json::from_str(text) else {
                return raise("JSONDecodeError", "the text is not JSON");
            };
            Data::from_json(&json).map_or_else(|e| value_error(e.to_string()), Ok)
        }
        ("loads", [a]) => type_error(format!("the JSON object must be str, not {}", class(a))),
        ("dumps", [a]) => {
            let indent = match named(kw, "indent") {
                None | Some(Data::Null) => None,
                Some(Data::Str(s)) => Some(s.to_string()),
                Some(d) => Some(" ".repeat(usize::try_from(small(d)?).unwrap_or(0).min(64))),
            };
            let style = JsonStyle {
                indent,
                sorted: named(kw, "sort_keys").is_some_and(truth),
                ascii: named(kw, "ensure_ascii").is_none_or(truth),
                any: named(kw, "default").is_some(),
            };
            let json = json_text(a, &style, 1)?;
            if json.len() > limit { Err(PyError::Limit) } else { Ok(Data::str(json)) }
        }
        ("fromkeys", [keys] | [keys, _]) => {
            let mut out: Vec<(Data, Data)> = Vec::new();
            for key in iterate(keys)? {
                hashable(&key)?;
                put(&mut out, key, args.get(1).cloned().unwrap_or(Data::Null));
            }
            Ok(dict(out))
        }
        ("asdict", [a]) => match view(a) {
            View::Object(_, super::ClassKind::Data, _) => Ok(as_dict(a)),
            _ => type_error("asdict() should be called on dataclass instances"),
        },
        ("replace", [a]) => match view(a) {
            View::Object(_, super::ClassKind::Data, fields) => {
                let mut fields = fields.to_vec();
                for (n, v) in kw {
                    match fields.iter_mut().find(|(f, _)| f == n) {
                        Some((_, old)) => *old = v.clone(),
                        None => return type_error(format!("got an unexpected keyword argument '{n}'")),
                    }
                }
                Ok(Data::record(fields))
            }
            _ => type_error("replace() should be called on dataclass instances"),
        },
        ("sqrt", [a]) => match number(a) {
            Some(n) if n < Num::ZERO => value_error("math domain error"),
            Some(n) => Ok(Data::Num(square_root(&n)?)),
            None => type_error(format!("must be real number, not {}", class(a))),
        },
        ("prod", [a]) => {
            let mut total = Data::Num(Num::ONE);
            for item in iterate(a)? {
                total = numbers::binary("mul", &total, &item, limit)?;
            }
            Ok(total)
        }
        ("gcd", all) => {
            let mut total = Num::ZERO;
            for d in all {
                let mut b = integer(d)?;
                if b < Num::ZERO {
                    b = b.neg();
                }
                while !b.is_zero() {
                    let rest = total.rem(&b)?;
                    (total, b) = (b, rest);
                }
            }
            Ok(Data::Num(total))
        }
        ("defaultdict", [Data::Str(factory)]) => Ok(Data::Tag(
            "defaultdict".into(),
            Data::list([Data::Str(factory.clone()), dict(Vec::new())]).into(),
        )),
        ("defaultdict", [Data::Str(factory), a]) => {
            let entries = call("dict", std::slice::from_ref(a), &[], limit)?;
            Ok(Data::Tag("defaultdict".into(), Data::list([Data::Str(factory.clone()), entries]).into()))
        }
        ("Counter", []) => Ok(Data::Tag("counter".into(), dict(Vec::new()).into())),
        ("Counter", [a]) if pairs(a).is_some() => {
            Ok(Data::Tag("counter".into(), dict(pairs(a).unwrap_or_default()).into()))
        }
        ("Counter", [a]) => {
            let mut out: Vec<(Data, Data)> = Vec::new();
            for item in iterate(a)? {
                hashable(&item)?;
                let old = super::lookup(&out, &item).and_then(number).unwrap_or(Num::ZERO);
                put(&mut out, item, Data::Num(old.add(&Num::ONE)?));
            }
            Ok(Data::Tag("counter".into(), dict(out).into()))
        }
        _ => type_error(format!("{name}() takes another number of arguments ({} given)", args.len())),
    }
}

/// A square root: exact if it is rational, or else the nearest number that a `float` is.
fn square_root(n: &Num) -> PyResult<Num> {
    let root: Num = format!("{:e}", n.to_f64().sqrt()).parse()?;
    Ok(root)
}

/// An object of a dataclass as dictionaries.
pub(super) fn as_dict(d: &Data) -> Data {
    let parts = |items: &[Data]| -> Vec<Data> { items.iter().map(as_dict).collect() };
    stacker::maybe_grow(64 << 10, 1 << 20, || match view(d) {
        View::Object(_, super::ClassKind::Data | super::ClassKind::Model, fields) => {
            Data::record(super::objects::own(fields).map(|(n, v)| (n.clone(), as_dict(v))))
        }
        View::List(items) => Data::list(parts(items)),
        View::Tuple(items) => tuple(parts(items)),
        View::Record(fields) => Data::record(fields.iter().map(|(n, v)| (n.clone(), as_dict(v)))),
        View::Dict(items) => dict(items.iter().filter_map(pair).map(|(k, v)| (k, as_dict(&v))).collect()),
        _ => d.clone(),
    })
}

/// Options of `json.dumps`.
struct JsonStyle {
    indent: Option<String>,
    sorted: bool,
    ascii: bool,
    /// True with `default=str`: what is no JSON is shown as text.
    any: bool,
}

fn json_text(d: &Data, style: &JsonStyle, depth: usize) -> PyResult<String> {
    stacker::maybe_grow(64 << 10, 1 << 20, || json_text_inner(d, style, depth))
}

fn json_text_inner(d: &Data, style: &JsonStyle, depth: usize) -> PyResult<String> {
    let text = |s: &str| if style.ascii { ascii(s) } else { serde_json::Value::from(s).to_string() };
    let join = |open: char, all: Vec<String>, close: char| match &style.indent {
        _ if all.is_empty() => format!("{open}{close}"),
        None => format!("{open}{}{close}", all.join(", ")),
        Some(by) => {
            let (inner, outer) = (by.repeat(depth), by.repeat(depth - 1));
            format!("{open}\n{inner}{}\n{outer}{close}", all.join(&format!(",\n{inner}")))
        }
    };
    match view(super::base(d)) {
        View::List(items) | View::Tuple(items) => {
            let all: PyResult<Vec<String>> = items.iter().map(|i| json_text(i, style, depth + 1)).collect();
            Ok(join('[', all?, ']'))
        }
        View::Record(_) | View::Dict(_) => {
            let mut all = pairs(d).unwrap_or_default();
            if style.sorted {
                all = seq::sort_pairs(all)?;
            }
            let mut out = Vec::new();
            for (k, v) in all {
                let key = match view(&k) {
                    View::Str(s) => s.to_string(),
                    View::None => "null".into(),
                    View::Bool(b) => b.to_string(),
                    View::Num(n) => format::num(n),
                    _ => {
                        return type_error(format!(
                            "keys must be str, int, float, bool or None, not {}",
                            class(&k)
                        ));
                    }
                };
                out.push(format!("{}: {}", text(&key), json_text(&v, style, depth + 1)?));
            }
            Ok(join('{', out, '}'))
        }
        View::Str(s) => Ok(text(s)),
        View::Num(n) => Ok(format::num(n)),
        View::None | View::Bool(_) => Ok(d.to_json().to_string()),
        View::Object(_, super::ClassKind::StrEnum, _) => {
            json_text(super::objects::member(d).unwrap_or(&Data::Null), style, depth)
        }
        _ if style.any => Ok(text(&format::str(d))),
        _ => type_error(format!("Object of type {} is not JSON serializable", class(d))),
    }
}

/// A JSON string in which everything beyond ASCII is escaped.
fn ascii(s: &str) -> String {
    let mut out = String::new();
    for c in serde_json::Value::from(s).to_string().chars() {
        if c.is_ascii() && c != '\u{7f}' {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

fn range(args: &[Data], limit: usize) -> PyResult {
    let numbers: Vec<Num> = args.iter().map(integer).collect::<PyResult<_>>()?;
    let (from, to, step) = match &numbers[..] {
        [to] => (Num::ZERO, to.clone(), Num::ONE),
        [from, to] => (from.clone(), to.clone(), Num::ONE),
        [from, to, step] => (from.clone(), to.clone(), step.clone()),
        _ => return Err(PyError::Unknown),
    };
    if step.is_zero() {
        return value_error("range() arg 3 must not be zero");
    }
    debug_assert!(whole(&step));
    let mut out = Vec::new();
    let mut at = from;
    while (step > Num::ZERO && at < to) || (step < Num::ZERO && at > to) {
        if out.len() * 16 > limit {
            return Err(PyError::Limit);
        }
        out.push(Data::Num(at.clone()));
        at = at.add(&step)?;
    }
    Ok(Data::list(out))
}
