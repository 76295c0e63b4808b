//! Methods of strings, lists, dictionaries and sets.

use super::numbers::small;
use super::{
    PyError, PyResult, View, class, dict, equal, format, hashable, iterate, lookup, pairs, put, raise, seq,
    set, truth, tuple, type_error, unicode, unsupported, value_error, view,
};
use crate::{Data, Name, Num};

/// Returns whether an object has a method, whatever it is called with.
pub(super) fn exists(object: &Data, name: &str) -> bool {
    let list = ["append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear", "copy"];
    match view(super::base(object)) {
        View::Moment(m) => super::dates::has(m, name),
        View::Match(_) => super::regexes::has(name),
        View::Pattern(_) => {
            matches!(name, "search" | "match" | "fullmatch" | "findall" | "finditer" | "sub" | "split")
        }
        View::Object(_, super::ClassKind::Model, _) => {
            matches!(name, "model_dump" | "dict" | "model_dump_json" | "json" | "model_copy" | "copy")
        }
        View::Object(_, super::ClassKind::StrEnum, _) => {
            super::objects::member(object).is_some_and(|v| exists(v, name))
        }
        View::Str(_) => !matches!(
            text(name, "", object, &vec![Data::Null; 9], &[], 0),
            Err(PyError::Raise("AttributeError", _))
        ),
        View::List(_) => list.contains(&name) || matches!(name, "count" | "index"),
        View::Tuple(_) => matches!(name, "count" | "index"),
        View::Record(_) | View::Dict(_) => {
            matches!(
                name,
                "get"
                    | "keys"
                    | "values"
                    | "items"
                    | "copy"
                    | "pop"
                    | "popitem"
                    | "setdefault"
                    | "update"
                    | "clear"
            ) || name == "most_common" && matches!(view(object), View::Counter(_))
        }
        View::Set(_) => matches!(
            name,
            "add"
                | "discard"
                | "remove"
                | "update"
                | "clear"
                | "pop"
                | "copy"
                | "union"
                | "intersection"
                | "difference"
                | "symmetric_difference"
                | "issubset"
                | "issuperset"
                | "isdisjoint"
        ),
        _ => false,
    }
}

pub(super) fn no_method<T>(object: &Data, name: &str) -> PyResult<T> {
    raise("AttributeError", format!("'{}' object has no attribute '{name}'", class(object)))
}

fn count<T>(name: &str, args: &[Data]) -> PyResult<T> {
    type_error(format!("{name}() takes another number of arguments ({} given)", args.len()))
}

/// A method that leaves its object as it is.
pub(super) fn call(name: &str, object: &Data, args: &[Data], kw: &[(Name, Data)], limit: usize) -> PyResult {
    let takes = |known: &[&str]| match kw.iter().find(|(n, _)| !known.contains(&&**n)) {
        Some((n, _)) => type_error::<()>(format!("{name}() takes no keyword argument '{n}'")),
        None => Ok(()),
    };
    // A method that is not there is no matter of its arguments.
    if !kw.is_empty() && !exists(object, name) {
        return no_method(object, name);
    }
    if let View::Str(s) = view(object) {
        match name {
            "split" | "rsplit" => takes(&["sep", "maxsplit"])?,
            "splitlines" => takes(&["keepends"])?,
            "expandtabs" => takes(&["tabsize"])?,
            "format" => {}
            _ => takes(&[])?,
        }
        return text(name, s, object, args, kw, limit);
    }
    match view(object) {
        View::Moment(m) => return super::dates::method(m, name, args, kw),
        View::Match(m) if super::regexes::has(name) => return super::regexes::method(m, name, args, kw),
        View::Pattern(_) if exists(object, name) => {
            let all: Vec<Data> = std::iter::once(object.clone()).chain(args.iter().cloned()).collect();
            return super::regexes::call(name, &all, kw, limit);
        }
        View::Object(_, super::ClassKind::Model, fields) => {
            return match name {
                "model_dump" | "dict" if kw.is_empty() && args.is_empty() => {
                    Ok(super::builtins::as_dict(object))
                }
                "model_copy" | "copy" => {
                    takes(&["update"])?;
                    let mut fields = fields.to_vec();
                    if let Some((_, update)) = kw.first() {
                        for (k, v) in pairs(update).unwrap_or_default() {
                            let Some(k) = k.as_str() else { continue };
                            match fields.iter_mut().find(|(f, _)| **f == *k) {
                                Some((_, old)) => *old = v,
                                None => fields.push((Name::from(k), v)),
                            }
                        }
                    }
                    Ok(Data::record(fields))
                }
                "model_dump" | "dict" | "model_dump_json" | "json" => {
                    unsupported(format!("`{name}` with options: use `model_dump()`"))
                }
                _ => no_method(object, name),
            };
        }
        View::Object(_, super::ClassKind::StrEnum, _) => {
            return match super::objects::member(object) {
                Some(value) => call(name, value, args, kw, limit),
                None => no_method(object, name),
            };
        }
        _ => {}
    }
    takes(&[])?;
    if name == "most_common" && !matches!(view(object), View::Counter(_)) {
        return no_method(object, name);
    }
    let whole = object;
    let object = super::base(object);
    match (view(object), name, args) {
        (View::List(items) | View::Tuple(items), "count", [a]) => {
            Ok(number(items.iter().filter(|i| equal(i, a)).count()))
        }
        (View::List(items) | View::Tuple(items), "index", [a, bounds @ ..]) if bounds.len() <= 2 => {
            let part = |i: usize, default: i64| match bounds.get(i) {
                Some(d) => small(d).map(|n| if n < 0 { (n + items.len() as i64).max(0) } else { n }),
                None => Ok(default),
            };
            let (from, to) = (part(0, 0)?, part(1, items.len() as i64)?);
            let found = items
                .iter()
                .enumerate()
                .find(|(i, item)| *i as i64 >= from && (*i as i64) < to && equal(item, a));
            match found {
                Some((i, _)) => Ok(number(i)),
                None => value_error(format!("{} is not in list", format::repr(a))),
            }
        }
        (View::List(_) | View::Set(_) | View::Record(_) | View::Dict(_), "copy", []) => Ok(whole.clone()),
        (View::Record(_) | View::Dict(_), "get", [key] | [key, _]) => {
            hashable(key)?;
            let all = pairs(object).unwrap_or_default();
            Ok(lookup(&all, key).or(args.get(1)).cloned().unwrap_or(Data::Null))
        }
        (View::Record(_) | View::Dict(_), "keys", []) => Ok(Data::list(iterate(object)?)),
        (View::Record(_) | View::Dict(_), "values", []) => {
            Ok(Data::list(pairs(object).unwrap_or_default().into_iter().map(|(_, v)| v)))
        }
        (View::Record(_) | View::Dict(_), "items", []) => {
            Ok(Data::list(pairs(object).unwrap_or_default().into_iter().map(|(k, v)| tuple(vec![k, v]))))
        }
        (View::Record(_) | View::Dict(_), "most_common", [] | [_]) => {
            let mut sorted: Vec<Data> =
                most_common(object)?.into_iter().map(|(k, v)| tuple(vec![k, v])).collect();
            if let [n] = args {
                sorted.truncate(usize::try_from(small(n)?).unwrap_or(0));
            }
            Ok(Data::list(sorted))
        }
        (View::Set(own), "union" | "intersection" | "difference" | "symmetric_difference", _) => {
            let op = match name {
                "union" => "or",
                "intersection" => "and",
                "difference" => "sub",
                _ => "xor",
            };
            let mut result = set(own.to_vec())?;
            for other in args {
                let items = iterate(other)?;
                items.iter().try_for_each(hashable)?;
                let View::Set(own) = view(&result) else { return Err(PyError::Unknown) };
                result = match view(other) {
                    // From what is no set CPython takes the items themselves.
                    View::Set(_) => seq::combine(op, own, &items)?,
                    _ if op == "and" => {
                        set(items.iter().filter(|i| own.iter().any(|o| equal(i, o))).cloned().collect())?
                    }
                    _ => seq::combine(op, own, &items)?,
                };
            }
            Ok(result)
        }
        (View::Set(own), "issubset" | "issuperset" | "isdisjoint", [other]) => {
            let other = iterate(other)?;
            let has = |of: &[Data], item: &Data| of.iter().any(|i| equal(i, item));
            Ok(Data::Bool(match name {
                "issubset" => own.iter().all(|i| has(&other, i)),
                "issuperset" => other.iter().all(|i| has(own, i)),
                _ => !own.iter().any(|i| has(&other, i)),
            }))
        }
        _ if exists(whole, name) => count(name, args),
        _ => no_method(object, name),
    }
}

/// The entries of a dictionary, those with the largest values first.
pub(super) fn most_common(counts: &Data) -> PyResult<Vec<(Data, Data)>> {
    let all = pairs(counts).unwrap_or_default();
    let keyed = all.into_iter().map(|(k, v)| (v.clone(), Data::list([k, v]))).collect();
    let sorted = seq::sort(keyed, true)?;
    Ok(sorted.iter().filter_map(super::pair).collect())
}

fn number(n: usize) -> Data {
    Data::Num(Num::from(n as i64))
}

fn blank(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn string<'a>(d: &'a Data, name: &str) -> PyResult<&'a str> {
    match d {
        Data::Str(s) => Ok(s),
        _ => type_error(format!("{name}() argument must be str, not {}", class(d))),
    }
}

/// The part of a text between two indices, as `find` and `startswith` take them, and where it begins.
/// Nothing if it begins beyond the end.
fn part<'a>(s: &'a str, bounds: &[Data]) -> PyResult<Option<(&'a str, usize)>> {
    let length = s.chars().count() as i64;
    let fit = |d: Option<&Data>, default: i64| -> PyResult<i64> {
        match d {
            None | Some(Data::Null) => Ok(default),
            Some(d) => {
                let n = small(d)?;
                Ok(if n < 0 { (n + length).max(0) } else { n })
            }
        }
    };
    let (from, to) = (fit(bounds.first(), 0)?, fit(bounds.get(1), length)?.min(length));
    if from > length || from > to {
        return Ok(None);
    }
    let byte = |i: i64| s.char_indices().nth(i as usize).map_or(s.len(), |(b, _)| b);
    Ok(Some((&s[byte(from)..byte(to)], from as usize)))
}

fn text(name: &str, s: &str, object: &Data, args: &[Data], kw: &[(Name, Data)], limit: usize) -> PyResult {
    let named = |n: &str| kw.iter().find(|(k, _)| &**k == n).map(|(_, d)| d);
    let give = |t: String| if t.len() > limit { Err(PyError::Limit) } else { Ok(Data::str(t)) };
    let boolean = |b: bool| Ok(Data::Bool(b));
    if args.is_empty()
        && let Some(answer) = unicode::is(name, s)
    {
        return boolean(answer);
    }
    match (name, args) {
        ("upper", []) => give(s.to_uppercase()),
        ("lower", []) => give(s.to_lowercase()),
        ("casefold", []) => give(unicode::casefold(s)),
        ("capitalize", []) => give(unicode::capitalize(s)),
        ("title", []) => give(unicode::title(s)),
        ("swapcase", []) => give(unicode::swapcase(s)),
        ("strip" | "lstrip" | "rstrip", [] | [_]) => {
            let chars: Option<Vec<char>> = match args {
                [] | [Data::Null] => None,
                [a, ..] => Some(string(a, name)?.chars().collect()),
            };
            let cut = |c: char| chars.as_ref().map_or_else(|| blank(c), |set| set.contains(&c));
            give(
                match name {
                    "strip" => s.trim_matches(cut),
                    "lstrip" => s.trim_start_matches(cut),
                    _ => s.trim_end_matches(cut),
                }
                .to_string(),
            )
        }
        ("split" | "rsplit", [] | [_] | [_, _]) => {
            let sep = args.first().or(named("sep")).filter(|d| **d != Data::Null);
            let most = args.get(1).or(named("maxsplit")).map_or(Ok(-1), small)?;
            let most = usize::try_from(most).ok();
            let parts: Vec<String> = match sep {
                Some(sep) => {
                    let sep = string(sep, name)?;
                    if sep.is_empty() {
                        return value_error("empty separator");
                    }
                    let n = most.map_or(usize::MAX, |n| n.saturating_add(1));
                    if name == "split" {
                        s.splitn(n, sep).map(String::from).collect()
                    } else {
                        let mut all: Vec<String> = s.rsplitn(n, sep).map(String::from).collect();
                        all.reverse();
                        all
                    }
                }
                None => split_blank(s, most, name == "rsplit"),
            };
            Ok(Data::list(parts.into_iter().map(Data::str)))
        }
        ("splitlines", [] | [_]) => {
            let keep = args.first().or(named("keepends")).is_some_and(truth);
            let mut out = Vec::new();
            let mut rest = s;
            while !rest.is_empty() {
                let ends = |c: char| {
                    matches!(
                        c,
                        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                            ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
                    )
                };
                let (line, after) = match rest.find(ends) {
                    Some(at) => {
                        let end = if rest[at..].starts_with("\r\n") {
                            at + 2
                        } else {
                            at + rest[at..].chars().next().map_or(1, char::len_utf8)
                        };
                        (&rest[..if keep { end } else { at }], &rest[end..])
                    }
                    None => (rest, ""),
                };
                out.push(Data::str(line));
                rest = after;
            }
            Ok(Data::list(out))
        }
        ("join", [of]) => {
            let Ok(items) = iterate(of) else { return type_error("can only join an iterable") };
            let mut parts = Vec::new();
            for (i, item) in items.iter().enumerate() {
                match item {
                    Data::Str(p) => parts.push(&**p),
                    _ => {
                        return type_error(format!(
                            "sequence item {i}: expected str instance, {} found",
                            class(item)
                        ));
                    }
                }
            }
            give(parts.join(s))
        }
        ("replace", [old, new] | [old, new, _]) => {
            let (old, new) = (string(old, name)?, string(new, name)?);
            let most = args.get(2).map_or(Ok(-1), small)?;
            let size = s.len().saturating_add(s.len().saturating_add(1).saturating_mul(new.len()));
            if size > limit && s.replace(old, "").len() + s.matches(old).count() * new.len() > limit {
                return Err(PyError::Limit);
            }
            give(match usize::try_from(most) {
                Ok(n) => s.replacen(old, new, n),
                Err(_) => s.replace(old, new),
            })
        }
        ("find" | "rfind" | "index" | "rindex", [of, bounds @ ..]) if bounds.len() <= 2 => {
            let of = string(of, name)?;
            let found = part(s, bounds)?.and_then(|(within, from)| {
                let at = if name.starts_with('r') { within.rfind(of) } else { within.find(of) };
                at.map(|b| within[..b].chars().count() + from)
            });
            match found {
                Some(i) => Ok(number(i)),
                None if name.ends_with("index") => value_error("substring not found"),
                None => Ok(Data::Num(Num::from(-1))),
            }
        }
        ("count", [of, bounds @ ..]) if bounds.len() <= 2 => {
            let of = string(of, name)?;
            Ok(number(part(s, bounds)?.map_or(0, |(within, _)| match of {
                "" => within.chars().count() + 1,
                of => within.matches(of).count(),
            })))
        }
        ("startswith" | "endswith", [of, bounds @ ..]) if bounds.len() <= 2 => {
            let all = match view(of) {
                View::Tuple(items) => items.to_vec(),
                View::Str(_) => vec![of.clone()],
                _ => {
                    return type_error(format!(
                        "{name} first arg must be str or a tuple of str, not {}",
                        class(of)
                    ));
                }
            };
            let Some((within, _)) = part(s, bounds)? else { return boolean(false) };
            let mut any = false;
            for of in &all {
                let of = string(of, name)?;
                any |= if name == "startswith" { within.starts_with(of) } else { within.ends_with(of) };
            }
            boolean(any)
        }
        ("isspace", []) => boolean(!s.is_empty() && s.chars().all(blank)),
        ("isascii", []) => boolean(s.is_ascii()),
        ("zfill", [width]) => {
            let width = usize::try_from(small(width)?).unwrap_or(0);
            if width > limit {
                return Err(PyError::Limit);
            }
            let (sign, digits) = match s.chars().next() {
                Some(c @ ('+' | '-')) => (c.to_string(), &s[1..]),
                _ => (String::new(), s),
            };
            let missing = width.saturating_sub(s.chars().count());
            give(format!("{sign}{}{digits}", "0".repeat(missing)))
        }
        ("center" | "ljust" | "rjust", [width] | [width, _]) => {
            let width = usize::try_from(small(width)?).unwrap_or(0);
            let fill = match args.get(1) {
                Some(d) => string(d, name)?,
                None => " ",
            };
            if fill.chars().count() != 1 {
                return type_error("The fill character must be exactly one character long");
            }
            if width > limit {
                return Err(PyError::Limit);
            }
            let missing = width.saturating_sub(s.chars().count());
            // Of an odd rest, the left side gets more if the width is odd, as CPython does it.
            let left = match name {
                "ljust" => 0,
                "rjust" => missing,
                _ => missing / 2 + (missing & width & 1),
            };
            give(format!("{}{s}{}", fill.repeat(left), fill.repeat(missing - left)))
        }
        ("partition" | "rpartition", [sep]) => {
            let sep = string(sep, name)?;
            if sep.is_empty() {
                return value_error("empty separator");
            }
            let found = if name == "partition" { s.split_once(sep) } else { s.rsplit_once(sep) };
            let parts = match found {
                Some((a, b)) => [a, sep, b],
                None if name == "partition" => [s, "", ""],
                None => ["", "", s],
            };
            Ok(tuple(parts.into_iter().map(Data::str).collect()))
        }
        ("removeprefix", [p]) => give(s.strip_prefix(string(p, name)?).unwrap_or(s).into()),
        ("removesuffix", [p]) => {
            let p = string(p, name)?;
            give(if p.is_empty() { s } else { s.strip_suffix(p).unwrap_or(s) }.into())
        }
        ("format", _) => template(s, args, kw, limit),
        ("format_map", [of]) => {
            let Data::Record(fields) = super::base(of) else {
                return unsupported("`format_map` with something else than a dictionary of names");
            };
            template(s, &[], fields, limit)
        }
        ("expandtabs" | "encode" | "translate" | "maketrans" | "isprintable", _) => {
            unsupported(format!("`str.{name}`"))
        }
        (
            "upper" | "lower" | "casefold" | "capitalize" | "title" | "swapcase" | "strip" | "lstrip"
            | "rstrip" | "split" | "rsplit" | "splitlines" | "join" | "replace" | "find" | "rfind" | "index"
            | "rindex" | "count" | "startswith" | "endswith" | "isdigit" | "isdecimal" | "isnumeric"
            | "isalpha" | "isalnum" | "isspace" | "isupper" | "islower" | "istitle" | "isidentifier"
            | "isascii" | "zfill" | "center" | "ljust" | "rjust" | "partition" | "rpartition"
            | "removeprefix" | "removesuffix" | "format_map",
            _,
        ) => count(name, args),
        _ => no_method(object, name),
    }
}

fn split_blank(s: &str, most: Option<usize>, from_end: bool) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = s.trim_matches(blank);
    while !rest.is_empty() {
        if most.is_some_and(|n| out.len() >= n) {
            // The rest keeps the white space at its far end.
            let whole = if from_end { s.trim_end_matches(blank) } else { s.trim_start_matches(blank) };
            let taken = if from_end {
                &s[..s.len().min(rest.as_ptr() as usize - s.as_ptr() as usize + rest.len())]
            } else {
                &s[rest.as_ptr() as usize - s.as_ptr() as usize..]
            };
            out.push(if most == Some(0) { whole.to_string() } else { taken.to_string() });
            break;
        }
        let at = if from_end { rest.rfind(blank) } else { rest.find(blank) };
        let Some(at) = at else {
            out.push(rest.to_string());
            break;
        };
        let width = rest[at..].chars().next().map_or(1, char::len_utf8);
        if from_end {
            out.push(rest[at + width..].to_string());
            rest = rest[..at].trim_end_matches(blank);
        } else {
            out.push(rest[..at].to_string());
            rest = rest[at + width..].trim_start_matches(blank);
        }
    }
    if from_end {
        out.reverse();
    }
    out
}

/// `s.format(…)`: fields are positions and names.
fn template(s: &str, args: &[Data], kw: &[(Name, Data)], limit: usize) -> PyResult {
    let mut out = String::new();
    let mut next = 0;
    // True if fields are numbered, false if they aren't.
    let mut manual = None;
    let mut chars = s.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                out.push('{');
            }
            '}' if chars.peek() == Some(&'}') => {
                chars.next();
                out.push('}');
            }
            '}' => return value_error("Single '}' encountered in format string"),
            '{' => {
                let mut field = String::new();
                loop {
                    match chars.next() {
                        Some('}') => break,
                        Some('{') => return unsupported("nested fields in `str.format`"),
                        Some(c) => field.push(c),
                        None => return value_error("expected '}' before end of string"),
                    }
                }
                let (field, spec) = field.split_once(':').unwrap_or((&field, ""));
                let (field, conversion) = match field.split_once('!') {
                    Some((f, c)) => (f, Some(c)),
                    None => (field, None),
                };
                if field.contains(['.', '[']) {
                    return unsupported("attributes and items in `str.format`");
                }
                let value = if field.is_empty() || field.bytes().all(|b| b.is_ascii_digit()) {
                    let numbered = !field.is_empty();
                    if manual.is_some_and(|m| m != numbered) {
                        let (from, to) = if numbered {
                            ("automatic field numbering", "manual field specification")
                        } else {
                            ("manual field specification", "automatic field numbering")
                        };
                        return value_error(format!("cannot switch from {from} to {to}"));
                    }
                    manual = Some(numbered);
                    let at = if numbered { field.parse().unwrap_or(usize::MAX) } else { next };
                    next += 1;
                    match args.get(at) {
                        Some(v) => v,
                        None => {
                            return raise(
                                "IndexError",
                                format!("Replacement index {at} out of range for positional args tuple"),
                            );
                        }
                    }
                } else {
                    match kw.iter().find(|(n, _)| &**n == field) {
                        Some((_, v)) => v,
                        None => return raise("KeyError", format::repr(&Data::str(field))),
                    }
                };
                let shown = match conversion {
                    Some("r") => Data::str(format::repr(value)),
                    Some("s") => Data::str(format::str(value)),
                    None => value.clone(),
                    Some(_) => return unsupported("this conversion in `str.format`"),
                };
                out.push_str(&format::format(&shown, spec, limit)?);
            }
            c => out.push(c),
        }
        if out.len() > limit {
            return Err(PyError::Limit);
        }
    }
    Ok(Data::str(out))
}

/// A method that changes its object: the changed object and the result.
pub(super) fn change(
    name: &str,
    object: &Data,
    args: &[Data],
    kw: &[(Name, Data)],
) -> PyResult<(Data, Data)> {
    let named = |n: &str| kw.iter().find(|(k, _)| &**k == n).map(|(_, d)| d);
    let none = Data::Null;
    match view(object) {
        View::List(items) => {
            let mut items = items.to_vec();
            let value = match (name, args) {
                ("append", [a]) => {
                    items.push(a.clone());
                    none
                }
                ("extend", [a]) => {
                    items.extend(iterate(a)?);
                    none
                }
                ("insert", [at, a]) => {
                    let i = small(at)?;
                    let length = items.len() as i64;
                    let i = (if i < 0 { i + length } else { i }).clamp(0, length);
                    items.insert(i as usize, a.clone());
                    none
                }
                ("pop", [] | [_]) => {
                    let i = args.first().map_or(Ok(-1), small)?;
                    if items.is_empty() {
                        return raise("IndexError", "pop from empty list");
                    }
                    let at = if i < 0 { i + items.len() as i64 } else { i };
                    if at < 0 || at >= items.len() as i64 {
                        return raise("IndexError", "pop index out of range");
                    }
                    items.remove(at as usize)
                }
                ("remove", [a]) => match items.iter().position(|i| equal(i, a)) {
                    Some(at) => {
                        items.remove(at);
                        none
                    }
                    None => return value_error("list.remove(x): x not in list"),
                },
                ("sort", []) => {
                    let keys = match named("$keys") {
                        Some(Data::List(keys)) => keys.to_vec(),
                        _ => items.clone(),
                    };
                    let keyed = keys.into_iter().zip(items).collect();
                    items = seq::sort(keyed, named("reverse").is_some_and(truth))?;
                    none
                }
                ("reverse", []) => {
                    items.reverse();
                    none
                }
                ("clear", []) => {
                    items.clear();
                    none
                }
                ("append" | "extend" | "insert" | "pop" | "remove" | "sort" | "reverse" | "clear", _) => {
                    return count(name, args);
                }
                _ => return no_method(object, name),
            };
            Ok((Data::list(items), value))
        }
        View::Set(items) => {
            let mut items = items.to_vec();
            let position = |items: &[Data], a: &Data| items.iter().position(|i| equal(i, a));
            let value = match (name, args) {
                ("add", [a]) => {
                    hashable(a)?;
                    items.push(a.clone());
                    none
                }
                ("discard" | "remove", [a]) => {
                    hashable(a)?;
                    match position(&items, a) {
                        Some(at) => {
                            items.remove(at);
                        }
                        None if name == "remove" => return raise("KeyError", format::repr(a)),
                        None => {}
                    }
                    none
                }
                ("update", _) => {
                    for a in args {
                        items.extend(iterate(a)?);
                    }
                    none
                }
                ("clear", []) => {
                    items.clear();
                    none
                }
                ("pop", []) => {
                    return unsupported("`set.pop` takes any item: use `sorted(s)[0]` and `discard`");
                }
                ("add" | "discard" | "remove" | "clear" | "pop", _) => return count(name, args),
                _ => return no_method(object, name),
            };
            Ok((set(items)?, value))
        }
        View::Record(_) | View::Dict(_) | View::Counter(_) | View::Default(..) => {
            let mut all = pairs(object).unwrap_or_default();
            let counts = matches!(view(object), View::Counter(_));
            let value = match (name, args) {
                ("pop", [key] | [key, _]) => {
                    hashable(key)?;
                    match all.iter().position(|(k, _)| equal(k, key)) {
                        Some(at) => all.remove(at).1,
                        None => match args.get(1) {
                            Some(d) => d.clone(),
                            None => return raise("KeyError", format::repr(key)),
                        },
                    }
                }
                ("popitem", []) => match all.pop() {
                    Some((k, v)) => tuple(vec![k, v]),
                    None => return raise("KeyError", "'popitem(): dictionary is empty'"),
                },
                ("setdefault", [key] | [key, _]) => {
                    hashable(key)?;
                    match lookup(&all, key).cloned() {
                        Some(v) => v,
                        None => {
                            let v = args.get(1).cloned().unwrap_or(Data::Null);
                            put(&mut all, key.clone(), v.clone());
                            v
                        }
                    }
                }
                ("update", [] | [_]) if counts => {
                    let more = super::builtins::call("Counter", args, &[], usize::MAX)?;
                    let more = pairs(&more).unwrap_or_default().into_iter();
                    for (k, v) in more.chain(kw.iter().map(|(n, v)| (Data::str(&**n), v.clone()))) {
                        let old = lookup(&all, &k).cloned().unwrap_or(number(0));
                        put(&mut all, k, super::numbers::binary("add", &v, &old, usize::MAX)?);
                    }
                    none
                }
                ("update", [] | [_]) => {
                    let more = super::builtins::call("dict", args, kw, usize::MAX)?;
                    for (k, v) in pairs(&more).unwrap_or_default() {
                        put(&mut all, k, v);
                    }
                    none
                }
                ("clear", []) => {
                    all.clear();
                    none
                }
                ("pop" | "popitem" | "setdefault" | "update" | "clear", _) => return count(name, args),
                _ => return no_method(object, name),
            };
            Ok((super::like(object, dict(all)), value))
        }
        _ => no_method(object, name),
    }
}
