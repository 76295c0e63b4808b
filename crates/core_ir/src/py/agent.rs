//! Operations of the language `.agent` on lists, texts and numbers: what its functions are lowered to.
//!
//! Entry point: [`operate`].
//!
//! Invariant: total on data of the types that the language's checker asks for. Other data is an error with a
//! message in the words of the language.
//! Invariant: time is linear in the operands, but for sorting, which is `n log n`.

use super::{PyError, PyResult, dates, raise};
use crate::{Data, Format, Name, Num, Pred};
use diagnostics::clip;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::Arc;

/// Beginning of the names of these operations.
pub(super) const PREFIX: &str = "agent.";

/// Significant digits of a number that no decimal shows exactly, in a text.
const SHOWN_DIGITS: i64 = 10;

/// The most digits after the point that can be asked for, and before it that can be rounded away.
const MAX_DIGITS: i64 = 100;

/// Data under the total order of [`order`].
struct Ordered<'a>(&'a Data);

impl PartialEq for Ordered<'_> {
    fn eq(&self, other: &Self) -> bool {
        order(self.0, other.0) == Ordering::Equal
    }
}

impl Eq for Ordered<'_> {}

impl PartialOrd for Ordered<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        order(self.0, other.0)
    }
}

/// A total order of data: null, truth values, numbers, texts, lists, records, others. Equal data is what the
/// primitive `==` says is equal.
fn order(a: &Data, b: &Data) -> Ordering {
    let rank = |d: &Data| match d {
        Data::Null => 0,
        Data::Bool(_) => 1,
        Data::Num(_) => 2,
        Data::Str(_) => 3,
        Data::List(_) => 4,
        Data::Record(_) => 5,
        Data::Pair(_) => 6,
        Data::Tag(..) => 7,
    };
    stacker::maybe_grow(32 << 10, 1 << 20, || match (a, b) {
        (Data::Bool(a), Data::Bool(b)) => a.cmp(b),
        (Data::Num(a), Data::Num(b)) => a.cmp(b),
        (Data::Str(a), Data::Str(b)) => a.cmp(b),
        (Data::List(a), Data::List(b)) => {
            let first = a.iter().zip(b.iter()).map(|(a, b)| order(a, b)).find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Data::Record(a), Data::Record(b)) => {
            // The order of fields does not count.
            let sorted = |fields: &[(Name, Data)]| {
                let mut all: Vec<usize> = (0..fields.len()).collect();
                all.sort_by(|i, j| fields[*i].0.cmp(&fields[*j].0));
                all
            };
            let fields = sorted(a).into_iter().zip(sorted(b));
            let first = fields
                .map(|(i, j)| a[i].0.cmp(&b[j].0).then_with(|| order(&a[i].1, &b[j].1)))
                .find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Data::Pair(a), Data::Pair(b)) => order(&a.0, &b.0).then_with(|| order(&a.1, &b.1)),
        (Data::Tag(a, p), Data::Tag(b, q)) => a.cmp(b).then_with(|| order(p, q)),
        (a, b) => rank(a).cmp(&rank(b)),
    })
}

fn wrong<T>(name: &str, wants: &str, found: Option<&Data>) -> PyResult<T> {
    let found = found.map_or("nothing", Data::kind);
    raise("TypeError", format!("`{name}` needs {wants}, found {found}"))
}

fn list<'a>(name: &str, data: &'a Data) -> PyResult<&'a [Data]> {
    match data {
        Data::List(items) => Ok(items),
        other => wrong(name, "a list", Some(other)),
    }
}

fn map_entries<'a>(name: &str, data: &'a Data) -> PyResult<&'a [(Name, Data)]> {
    match data {
        Data::Record(entries) => Ok(entries),
        other => wrong(name, "a map", Some(other)),
    }
}

/// The map with other entries. A key that is there keeps its place.
fn merged(entries: &[(Name, Data)], others: &[(Name, Data)]) -> Data {
    let mut all = entries.to_vec();
    let places: HashMap<&Name, usize> = entries.iter().enumerate().map(|(i, (n, _))| (n, i)).collect();
    for (name, value) in others {
        match places.get(name) {
            Some(at) => all[*at].1 = value.clone(),
            None => all.push((name.clone(), value.clone())),
        }
    }
    Data::record(all)
}

fn text<'a>(name: &str, data: &'a Data) -> PyResult<&'a str> {
    match data {
        Data::Str(s) => Ok(s),
        other => wrong(name, "a text", Some(other)),
    }
}

fn number<'a>(name: &str, data: &'a Data) -> PyResult<&'a Num> {
    match data {
        Data::Num(n) => Ok(n),
        other => wrong(name, "a number", Some(other)),
    }
}

/// A number of digits, rounded down and within the limits.
fn digits(name: &str, data: &Data) -> PyResult<i64> {
    let n = number(name, data)?.floor();
    let most = Num::from(MAX_DIGITS);
    let n = if n > most { most } else { n.max(Num::from(-MAX_DIGITS)) };
    Ok(n.to_i64().unwrap_or(0))
}

fn power_of_ten(n: i64) -> PyResult<Num> {
    format!("1e{n}").parse().map_err(|_| PyError::Limit)
}

/// The nearest number with `digits` digits after the point. Ties are rounded away from zero.
fn rounded(n: &Num, digits: i64) -> PyResult<Num> {
    let scale = power_of_ten(digits)?;
    let half = power_of_ten(0)?.div(&Num::from(2)).map_err(|_| PyError::Limit)?;
    let size = if *n < Num::ZERO { n.neg() } else { n.clone() };
    let whole = size.mul(&scale).and_then(|n| n.add(&half)).map_err(|_| PyError::Limit)?.floor();
    let result = whole.div(&scale).map_err(|_| PyError::Limit)?;
    Ok(if *n < Num::ZERO { result.neg() } else { result })
}

/// A number with exactly `digits` digits after the point.
fn fixed(n: &Num, digits: i64) -> PyResult<String> {
    let digits = digits.max(0);
    let mut out = rounded(n, digits)?.to_string();
    let have = match out.split_once('.') {
        Some((_, fraction)) => fraction.len() as i64,
        None => {
            out.push_str(if digits > 0 { "." } else { "" });
            0
        }
    };
    out.extend(std::iter::repeat_n('0', usize::try_from(digits - have).unwrap_or(0)));
    Ok(out)
}

/// A number as a decimal: exact if one is, and otherwise rounded to [`SHOWN_DIGITS`] significant digits.
fn decimal(n: &Num) -> String {
    let exact = n.to_string();
    if !exact.contains('/') {
        return exact;
    }
    let size = n.to_f64().abs();
    let before = if size > 0.0 && size.is_finite() { size.log10().floor() as i64 + 1 } else { 0 };
    let digits = (SHOWN_DIGITS - before).clamp(0, 4 * MAX_DIGITS);
    rounded(n, digits).map_or(exact, |n| n.to_string())
}

/// A value as text, as `format` shows it, with every number as a decimal.
fn shown(data: &Data, outermost: bool, out: &mut String) {
    let quoted = |s: &str| serde_json::Value::String(s.to_string()).to_string();
    let list = |items: &[Data], out: &mut String| {
        out.push('[');
        for (i, item) in items.iter().enumerate() {
            out.push_str(if i > 0 { "," } else { "" });
            shown(item, false, out);
        }
        out.push(']');
    };
    stacker::maybe_grow(32 << 10, 1 << 20, || match data {
        Data::Null => out.push_str("null"),
        Data::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Data::Num(n) => out.push_str(&decimal(n)),
        Data::Str(s) if outermost => out.push_str(s),
        Data::Str(s) => out.push_str(&quoted(s)),
        Data::List(items) => list(items, out),
        Data::Pair(p) => list(&[p.0.clone(), p.1.clone()], out),
        Data::Record(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                // INVARIANT: writing to a string does not fail.
                let _ = write!(out, "{}{}:", if i > 0 { "," } else { "" }, quoted(name));
                shown(value, false, out);
            }
            out.push('}');
        }
        Data::Tag(name, payload) if **payload == Data::Null => {
            out.push_str(&if outermost { name.to_string() } else { quoted(name) });
        }
        Data::Tag(name, payload) => {
            let _ = write!(out, "{{{}:", quoted(name));
            shown(payload, false, out);
            out.push('}');
        }
    });
}

fn pad(name: &str, s: &Data, width: &Data, with: Option<&Data>, limit: usize) -> PyResult<(String, String)> {
    let s = text(name, s)?;
    let fill = match with {
        Some(with) => text(name, with)?,
        None => " ",
    };
    let width = number(name, width)?.floor();
    let missing = width.sub(&Num::from(s.chars().count() as i64)).map_err(|_| PyError::Limit)?;
    if missing <= Num::ZERO || fill.is_empty() {
        return Ok((s.to_string(), String::new()));
    }
    let missing = missing.to_usize().filter(|n| *n <= limit).ok_or(PyError::Limit)?;
    Ok((s.to_string(), fill.chars().cycle().take(missing).collect()))
}

/// The number of a day.
fn calendar_day(name: &str, data: &Data) -> PyResult<i64> {
    let written = text(name, data)?;
    match dates::day_of_iso(written) {
        Some(day) if written.contains('-') => Ok(day),
        _ => raise(
            "TypeError",
            format!("`{name}` needs a day such as `2026-01-31`, found `{}`", clip(written)),
        ),
    }
}

/// The seconds of a duration such as `P1DT2H`.
fn seconds(name: &str, written: &str) -> PyResult<Num> {
    let is_duration = Format::named("Duration")
        .is_some_and(|f| Pred::Matches(f.pattern.into()).holds(&Data::str(written)).is_ok());
    if !is_duration {
        let found = clip(written);
        return raise("TypeError", format!("`{name}` needs a duration such as `PT1H30M`, found `{found}`"));
    }
    let (mut sum, mut digits) = (Num::ZERO, String::new());
    for c in written.chars() {
        let unit = match c {
            '0'..='9' => {
                digits.push(c);
                continue;
            }
            'D' => 86_400,
            'H' => 3_600,
            'M' => 60,
            'S' => 1,
            _ => continue,
        };
        let n: Num = std::mem::take(&mut digits).parse().map_err(|_| PyError::Limit)?;
        sum = n.mul(&Num::from(unit)).and_then(|n| sum.add(&n)).map_err(|_| PyError::Limit)?;
    }
    Ok(sum)
}

/// Carries out an operation by its name without the prefix.
///
/// # Errors
/// A message about an operand, or the limit on sizes.
pub(super) fn operate(name: &str, args: &[Data], limit: usize) -> PyResult {
    let texts = |a: &Data, b: &Data, f: fn(&str, &str) -> bool| -> PyResult {
        Ok(Data::Bool(f(text(name, a)?, text(name, b)?)))
    };
    match (name, args) {
        ("filter", [items, flags]) => {
            let (items, flags) = (list(name, items)?, list(name, flags)?);
            let mut kept = Vec::new();
            for (item, flag) in items.iter().zip(flags) {
                match flag {
                    Data::Bool(true) => kept.push(item.clone()),
                    Data::Bool(false) => {}
                    other => return wrong(name, "true or false of each item", Some(other)),
                }
            }
            Ok(Data::list(kept))
        }
        ("sort_by", [items, keys]) => {
            let (items, keys) = (list(name, items)?, list(name, keys)?);
            let mut all: Vec<(&Data, &Data)> = keys.iter().zip(items).collect();
            all.sort_by(|a, b| order(a.0, b.0));
            Ok(Data::list(all.into_iter().map(|(_, item)| item.clone())))
        }
        ("group_by", [items, keys]) => {
            let (items, keys) = (list(name, items)?, list(name, keys)?);
            let mut places: BTreeMap<Ordered<'_>, usize> = BTreeMap::new();
            let mut groups: Vec<(&Data, Vec<Data>)> = Vec::new();
            for (key, item) in keys.iter().zip(items) {
                let place = *places.entry(Ordered(key)).or_insert(groups.len());
                if place == groups.len() {
                    groups.push((key, Vec::new()));
                }
                groups[place].1.push(item.clone());
            }
            Ok(Data::list(groups.into_iter().map(|(key, items)| {
                Data::record([("key".into(), key.clone()), ("items".into(), Data::list(items))])
            })))
        }
        ("sort", [items]) => {
            let mut all = list(name, items)?.to_vec();
            all.sort_by(order);
            Ok(Data::list(all))
        }
        ("flatten", [lists]) => {
            let mut out = Vec::new();
            for inner in list(name, lists)? {
                out.extend_from_slice(list(name, inner)?);
            }
            Ok(Data::list(out))
        }
        ("zip", [a, b]) => {
            let (a, b) = (list(name, a)?, list(name, b)?);
            Ok(Data::list(
                a.iter()
                    .zip(b)
                    .map(|(a, b)| Data::record([("first".into(), a.clone()), ("second".into(), b.clone())])),
            ))
        }
        ("reverse", [Data::Str(s)]) => Ok(Data::str(s.chars().rev().collect::<String>())),
        ("reverse", [items]) => Ok(Data::list(list(name, items)?.iter().rev().cloned())),
        ("unique", [items]) => {
            let mut seen = std::collections::BTreeSet::new();
            let items = list(name, items)?;
            Ok(Data::list(items.iter().filter(|i| seen.insert(Ordered(i))).cloned()))
        }
        ("sum", [items]) => {
            let mut sum = Num::ZERO;
            for item in list(name, items)? {
                sum = sum.add(number(name, item)?).map_err(|_| PyError::Limit)?;
            }
            Ok(Data::Num(sum))
        }
        ("min" | "max", [items]) => {
            let items = list(name, items)?;
            let best = if name == "min" {
                items.iter().min_by(|a, b| order(a, b))
            } else {
                // Of equal ones the first.
                items.iter().rev().max_by(|a, b| order(a, b))
            };
            Ok(best.cloned().unwrap_or(Data::Null))
        }
        ("min" | "max", [a, b]) => {
            let (x, y) = (number(name, a)?, number(name, b)?);
            Ok(if (name == "min") == (x <= y) { a.clone() } else { b.clone() })
        }
        ("set", [map, key, value]) => {
            let (entries, key) = (map_entries(name, map)?, text(name, key)?);
            Ok(merged(entries, &[(key.into(), value.clone())]))
        }
        ("merge", [first, second]) => Ok(merged(map_entries(name, first)?, map_entries(name, second)?)),
        ("remove", [map, key]) => {
            let (entries, key) = (map_entries(name, map)?, text(name, key)?);
            Ok(Data::record(entries.iter().filter(|(n, _)| **n != *key).cloned()))
        }
        ("starts_with", [s, part]) => texts(s, part, |s, part| s.starts_with(part)),
        ("ends_with", [s, part]) => texts(s, part, |s, part| s.ends_with(part)),
        ("replace", [s, old, new]) => {
            let (s, old, new) = (text(name, s)?, text(name, old)?, text(name, new)?);
            if old.is_empty() {
                return Ok(Data::str(s));
            }
            let most = s.matches(old).count().saturating_mul(new.len());
            if most > limit {
                return Err(PyError::Limit);
            }
            Ok(Data::str(s.replace(old, new)))
        }
        ("pad_start", [s, width, with @ ..]) => {
            let (s, fill) = pad(name, s, width, with.first(), limit)?;
            Ok(Data::str(fill + &s))
        }
        ("pad_end", [s, width, with @ ..]) => {
            let (s, fill) = pad(name, s, width, with.first(), limit)?;
            Ok(Data::str(s + &fill))
        }
        ("add_days", [day, n]) => {
            let n = number(name, n)?;
            let whole = n.to_i64().filter(|_| n.floor() == *n);
            match (calendar_day(name, day)?, whole) {
                (day, Some(n)) => match dates::iso_day(day.saturating_add(n)) {
                    Some(text) => Ok(Data::str(text)),
                    None => raise("ValueError", format!("`{name}` leaves the years 1 to 9999")),
                },
                (_, None) => raise("TypeError", format!("`{name}` needs a whole number of days, found {n}")),
            }
        }
        ("days_between", [first, last]) => {
            let days = calendar_day(name, last)? - calendar_day(name, first)?;
            Ok(Data::Num(Num::from(days)))
        }
        ("seconds", [duration]) => Ok(Data::Num(seconds(name, text(name, duration)?)?)),
        ("round", [n]) => Ok(Data::Num(rounded(number(name, n)?, 0)?)),
        ("round", [n, places]) => Ok(Data::Num(rounded(number(name, n)?, digits(name, places)?)?)),
        ("floor", [n]) => Ok(Data::Num(number(name, n)?.floor())),
        ("ceil", [n]) => Ok(Data::Num(number(name, n)?.neg().floor().neg())),
        ("abs", [n]) => {
            let n = number(name, n)?;
            Ok(Data::Num(if *n < Num::ZERO { n.neg() } else { n.clone() }))
        }
        ("fixed", [n, places]) => Ok(Data::str(fixed(number(name, n)?, digits(name, places)?)?)),
        ("shown", [value]) => {
            let mut out = String::new();
            shown(value, true, &mut out);
            Ok(Data::Str(Arc::from(out)))
        }
        _ => Err(PyError::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::py::apply;

    fn json(text: &str) -> Data {
        Data::from_json(&serde_json::from_str(text).unwrap()).unwrap()
    }

    /// An operation on JSON operands, and its result as JSON or its message.
    fn check(name: &str, args: &[&str], expected: &str) {
        let args: Vec<Data> = args.iter().map(|a| json(a)).collect();
        let found = match apply(&format!("agent.{name}"), &args, 10_000) {
            Ok(d) => d.to_json().to_string(),
            Err(PyError::Raise(_, message)) => message,
            Err(e) => format!("{e:?}"),
        };
        assert_eq!(found, expected, "{name} {args:?}");
    }

    #[test]
    fn lists() {
        check("filter", &["[1,2,3]", "[true,false,true]"], "[1,3]");
        check("filter", &["[1]", "[3]"], "`filter` needs true or false of each item, found a number");
        check("sort_by", &[r#"["b","a","c"]"#, "[2,1,2]"], r#"["a","b","c"]"#);
        check("sort_by", &["[1,2,3]", r#"["x",null,0]"#], "[2,3,1]");
        check("sort", &[r#"["b","a"]"#], r#"["a","b"]"#);
        check(
            "group_by",
            &["[1,2,3]", r#"["x","y","x"]"#],
            r#"[{"key":"x","items":[1,3]},{"key":"y","items":[2]}]"#,
        );
        check("flatten", &["[[1],[],[2,3]]"], "[1,2,3]");
        check("flatten", &["[1]"], "`flatten` needs a list, found a number");
        check("zip", &["[1,2]", r#"["a"]"#], r#"[{"first":1,"second":"a"}]"#);
        check("unique", &["[2,1,2,{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]"], r#"[2,1,{"a":1,"b":2}]"#);
        check("sum", &["[0.1,0.2]"], "0.3");
        check("sum", &["[]"], "0");
        check("min", &["[]"], "null");
        check("max", &["[1,3,2]"], "3");
        check("min", &["2", "1"], "1");
        check("max", &["2", "1"], "2");
        check("reverse", &["[1,2]"], "[2,1]");
    }

    #[test]
    fn maps() {
        check("set", &[r#"{"a":1,"b":2}"#, r#""a""#, "3"], r#"{"a":3,"b":2}"#);
        check("set", &["{}", r#""$x""#, "null"], r#"{"$x":null}"#);
        check("remove", &[r#"{"a":1,"b":2}"#, r#""a""#], r#"{"b":2}"#);
        check("remove", &[r#"{"a":1}"#, r#""b""#], r#"{"a":1}"#);
        check("merge", &[r#"{"a":1,"b":2}"#, r#"{"c":3,"a":4}"#], r#"{"a":4,"b":2,"c":3}"#);
    }

    #[test]
    fn texts() {
        check("starts_with", &[r#""abc""#, r#""ab""#], "true");
        check("ends_with", &[r#""abc""#, r#""ab""#], "false");
        check("replace", &[r#""aXbX""#, r#""X""#, r#""--""#], r#""a--b--""#);
        check("replace", &[r#""ab""#, r#""""#, r#""-""#], r#""ab""#);
        check("pad_start", &[r#""7""#, "3", r#""0""#], r#""007""#);
        check("pad_end", &[r#""é""#, "3"], r#""é  ""#);
        check("pad_end", &[r#""abc""#, "-3"], r#""abc""#);
        check("pad_end", &[r#""a""#, "1e9"], "Limit");
        check(
            "replace",
            &[&format!("\"{}\"", "a".repeat(200)), r#""a""#, &format!("\"{}\"", "b".repeat(200))],
            "Limit",
        );
    }

    #[test]
    fn numbers() {
        check("round", &["2.5"], "3");
        check("round", &["-2.5"], "-3");
        check("round", &["2.675", "2"], "2.68");
        check("round", &["1234", "-2"], "1200");
        check("floor", &["-0.5"], "-1");
        check("ceil", &["0.2"], "1");
        check("abs", &["-3"], "3");
        check("add_days", &["\"2024-02-28\"", "2"], "\"2024-03-01\"");
        check("add_days", &["\"2026-01-01\"", "-1"], "\"2025-12-31\"");
        check("days_between", &["\"2025-12-31\"", "\"2026-03-01\""], "60");
        check("seconds", &["\"P1DT2H3M4S\""], "93784");
        check("fixed", &["2", "2"], r#""2.00""#);
        check("fixed", &["-0.005", "2"], r#""-0.01""#);
        check("fixed", &["1.25", "0"], r#""1""#);
        check("fixed", &["1", "1e99"], &format!("\"1.{}\"", "0".repeat(100)));
    }

    #[test]
    fn no_fraction_is_shown() {
        let shown = |n: &str| {
            let n = Data::list([Data::Num(n.parse().unwrap()), Data::str("x")]);
            apply("agent.shown", &[n], 1000).unwrap()
        };
        for (n, text) in [
            ("1/3", "0.3333333333"),
            ("-2/3", "-0.6666666667"),
            ("1000000/3", "333333.3333"),
            ("1/3000000", "0.0000003333333333"),
            ("1e20/3", "33333333333333333333"),
            ("0.125", "0.125"),
            ("7", "7"),
        ] {
            assert_eq!(shown(n), Data::str(format!("[{text},\"x\"]")), "{n}");
        }
        assert_eq!(apply("agent.shown", &[Data::str("a\"b")], 1000), Ok(Data::str("a\"b")));
    }
}
