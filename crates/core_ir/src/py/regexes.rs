//! `re`: regular expressions in linear time.
//!
//! A match is the tag `match` of its groups, each `[start, end, text]` in characters, with the names of
//! groups. A compiled pattern is the tag `pattern` of its text.

use super::numbers::small;
use super::{PyError, PyResult, View, class, raise, tuple, type_error, unsupported, view};
use crate::{Data, Name, Num};
use regex::{Captures, Regex};

fn text(d: Option<&Data>) -> PyResult<&str> {
    match d {
        Some(Data::Str(s)) => Ok(s),
        Some(d) => type_error(format!("expected string or bytes-like object, got '{}'", class(d))),
        None => type_error("a missing argument"),
    }
}

/// A pattern as this crate's dialect writes it, and whether `$` ends a text: it also matches before a last
/// line break.
struct Pattern {
    text: String,
    dollar: bool,
    /// True if it may match nothing where it could also match something: it has an alternative or a lazy
    /// repetition.
    reluctant: bool,
}

/// Letters of words, as `str.isalnum` has them, and the underscore.
const WORD: &str = r"\p{L}\p{N}_";
/// White space, as `str.isspace` has it.
const SPACE: &str = r"\s\x1c-\x1f";

fn translate(pattern: &str) -> Pattern {
    // Flags stand at the beginning.
    let flags = pattern.strip_prefix("(?").and_then(|p| p.split(')').next()).unwrap_or("");
    let lines = flags.bytes().all(|b| b.is_ascii_lowercase()) && flags.contains('m');
    let (mut out, mut dollar) = (String::with_capacity(pattern.len() + 8), false);
    let (mut chars, mut inside) = (pattern.chars().peekable(), false);
    let (mut reluctant, mut repeats) = (false, false);
    while let Some(c) = chars.next() {
        // A question mark after a repetition, and not after a group's bracket.
        reluctant |= !inside && (c == '|' || c == '?' && repeats);
        repeats = matches!(c, '*' | '+' | '?' | '}') && !repeats;
        match c {
            '\\' => match chars.next() {
                Some('Z') if !inside => out.push_str(r"\z"),
                Some('w') => out.push_str(&format!("[{WORD}]")),
                Some('W') => out.push_str(&format!("[^{WORD}]")),
                Some('s') => out.push_str(&format!("[{SPACE}]")),
                Some('S') => out.push_str(&format!("[^{SPACE}]")),
                Some(c) => {
                    out.push('\\');
                    out.push(c);
                }
                None => out.push('\\'),
            },
            '[' if !inside => {
                inside = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    chars.next();
                    out.push('^');
                }
                // A bracket that comes first is one of the characters.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str(r"\]");
                }
            }
            '[' => out.push_str(r"\["),
            ']' if inside => {
                inside = false;
                out.push(']');
            }
            // Operators of sets are none in Python.
            '&' | '~' if inside => {
                out.push('\\');
                out.push(c);
            }
            '$' if !inside && !lines => {
                dollar = true;
                out.push_str(r"\z");
            }
            c => out.push(c),
        }
    }
    Pattern { text: out, dollar, reluctant }
}

/// A compiled pattern.
struct Compiled {
    regex: Regex,
    dollar: bool,
    reluctant: bool,
}

fn compile(pattern: &str, name: &str) -> PyResult<Compiled> {
    let Pattern { text, dollar, reluctant } = translate(pattern);
    let wrapped = match name {
        "match" => format!(r"\A(?:{text})"),
        "fullmatch" => format!(r"\A(?:{text})\z"),
        _ => text,
    };
    match Regex::new(&wrapped) {
        Ok(regex) => Ok(Compiled { regex, dollar, reluctant }),
        Err(_) => unsupported(format!("the pattern `{pattern}`")),
    }
}

fn number(n: usize) -> Data {
    Data::Num(Num::from(n as i64))
}

/// Counts characters up to places that mostly follow each other.
#[derive(Clone, Copy)]
struct Places<'s> {
    subject: &'s str,
    byte: usize,
    count: usize,
}

impl<'s> Places<'s> {
    fn new(subject: &'s str) -> Places<'s> {
        Places { subject, byte: 0, count: 0 }
    }

    fn up_to(&mut self, byte: usize) -> usize {
        if byte < self.byte {
            (self.byte, self.count) = (0, 0);
        }
        self.count += self.subject[self.byte..byte].chars().count();
        self.byte = byte;
        self.count
    }
}

/// A match as data. Matches are given in their order.
fn found(m: &Captures<'_>, regex: &Regex, places: &mut Places<'_>) -> Data {
    places.up_to(m.get(0).map_or(0, |g| g.start()));
    let begin = *places;
    let chars = |byte: usize| {
        let mut places = begin;
        number(places.up_to(byte))
    };
    let groups = m.iter().map(|g| match g {
        Some(g) => Data::list([chars(g.start()), chars(g.end()), Data::str(g.as_str())]),
        None => Data::Null,
    });
    let named = regex.capture_names().enumerate().filter_map(|(i, n)| Some((Name::from(n?), number(i))));
    let parts = [("groups".into(), Data::list(groups)), ("names".into(), Data::record(named))];
    Data::Tag("match".into(), Data::record(parts).into())
}

/// The first match. `$` may match before the line break that ends the text.
fn first<'s>(regex: &Regex, dollar: bool, name: &str, subject: &'s str) -> PyResult<Option<Captures<'s>>> {
    let whole = regex.captures(subject);
    let Some(short) = subject.strip_suffix('\n').filter(|_| dollar && name != "fullmatch") else {
        return Ok(whole);
    };
    let span = |m: &Captures<'_>| m.get(0).map_or((0, 0), |g| (g.start(), g.end()));
    Ok(match (whole, regex.captures(short)) {
        (None, m) | (m, None) => m,
        (Some(a), Some(b)) if span(&a) == span(&b) || span(&a).0 < span(&b).0 => Some(a),
        (Some(a), Some(b)) if span(&b).0 < span(&a).0 => Some(b),
        _ => return unsupported("`$` before a last line break and after it"),
    })
}

/// All matches that do not overlap. An empty one may follow another one at once, but no empty one.
fn all<'s>(pattern: &Compiled, subject: &'s str) -> PyResult<Vec<Captures<'s>>> {
    let Compiled { regex, dollar, reluctant } = pattern;
    if *dollar && subject.ends_with('\n') {
        return unsupported("`$` in a text that ends with a line break: use `.strip()` first");
    }
    let (mut out, mut at, mut empty) = (Vec::new(), 0, None);
    while at <= subject.len() {
        let Some(m) = regex.captures_at(subject, at) else { break };
        let (start, end) = m.get(0).map_or((at, at), |g| (g.start(), g.end()));
        if start == end && empty == Some(start) {
            at = start + subject[start..].chars().next().map_or(1, char::len_utf8);
            empty = None;
            continue;
        }
        // After a match of nothing, Python tries to match something at the same place.
        if start == end && *reluctant && end < subject.len() {
            return unsupported(
                "a pattern that matches nothing before it matches something: `+` instead of `*`",
            );
        }
        empty = (start == end).then_some(end);
        at = end;
        out.push(m);
    }
    Ok(out)
}

/// Text of a replacement: `\1`, `\g<1>` and `\g<name>` are groups.
fn expanded(template: &str, m: &Captures<'_>) -> PyResult<String> {
    let mut out = String::new();
    let mut chars = template.chars().peekable();
    let group = |m: &Captures<'_>, name: &str| -> PyResult<String> {
        let found = match name.parse::<usize>() {
            Ok(i) if i < m.len() => m.get(i),
            Ok(_) => return unsupported("a reference to a group that is not there"),
            Err(_) => m.name(name),
        };
        Ok(found.map_or(String::new(), |g| g.as_str().to_string()))
    };
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('\\') => out.push('\\'),
            Some('g') if chars.next() == Some('<') => {
                let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                out += &group(m, &name)?;
            }
            Some(d) if d.is_ascii_digit() && d != '0' => {
                let mut name = d.to_string();
                if let Some(next) = chars.peek().copied().filter(char::is_ascii_digit) {
                    chars.next();
                    name.push(next);
                }
                out += &group(m, &name)?;
            }
            Some(c) if !c.is_ascii_alphanumeric() => {
                out.push('\\');
                out.push(c);
            }
            _ => return unsupported("this escape in the replacement of `re.sub`"),
        }
    }
    Ok(out)
}

/// A function of `re`. The pattern is a text or compiled.
pub(super) fn call(name: &str, args: &[Data], kw: &[(Name, Data)], limit: usize) -> PyResult {
    let pattern = match args.first() {
        Some(Data::Tag(tag, p)) if &**tag == "pattern" => text(Some(&**p))?,
        p => text(p)?,
    };
    let named = |n: &str| kw.iter().find(|(k, _)| &**k == n).map(|(_, d)| d);
    let most = |d: Option<&Data>| -> PyResult<usize> {
        let n = d.map_or(Ok(0), small)?;
        Ok(if n <= 0 { usize::MAX } else { usize::try_from(n).unwrap_or(usize::MAX) })
    };
    let compiled = compile(pattern, name)?;
    let regex = &compiled.regex;
    match name {
        "compile" => Ok(Data::Tag("pattern".into(), Data::str(pattern).into())),
        "search" | "match" | "fullmatch" => {
            let subject = text(args.get(1).or(named("string")))?;
            let m = first(regex, compiled.dollar, name, subject)?;
            Ok(m.map_or(Data::Null, |m| found(&m, regex, &mut Places::new(subject))))
        }
        "finditer" => {
            let subject = text(args.get(1).or(named("string")))?;
            let mut places = Places::new(subject);
            Ok(Data::list(all(&compiled, subject)?.iter().map(|m| found(m, regex, &mut places))))
        }
        "findall" => {
            let subject = text(args.get(1).or(named("string")))?;
            let group = |m: &Captures<'_>, i: usize| Data::str(m.get(i).map_or("", |g| g.as_str()));
            Ok(Data::list(all(&compiled, subject)?.iter().map(|m| match regex.captures_len() {
                1 => group(m, 0),
                2 => group(m, 1),
                n => tuple((1..n).map(|i| group(m, i)).collect()),
            })))
        }
        "sub" => {
            let new = text(args.get(1).or(named("repl")))?;
            let subject = text(args.get(2).or(named("string")))?;
            let most = most(args.get(3).or(named("count")))?;
            let (mut out, mut last) = (String::new(), 0);
            for m in all(&compiled, subject)?.iter().take(most) {
                let Some(g) = m.get(0) else { continue };
                out += &subject[last..g.start()];
                out += &expanded(new, m)?;
                last = g.end();
                if out.len() > limit {
                    return Err(PyError::Limit);
                }
            }
            Ok(Data::str(out + &subject[last..]))
        }
        "split" => {
            let subject = text(args.get(1).or(named("string")))?;
            let most = most(args.get(2).or(named("maxsplit")))?;
            let (mut out, mut last) = (Vec::new(), 0);
            for m in all(&compiled, subject)?.iter().take(most) {
                let Some(g) = m.get(0) else { continue };
                out.push(Data::str(&subject[last..g.start()]));
                out.extend(m.iter().skip(1).map(|g| g.map_or(Data::Null, |g| Data::str(g.as_str()))));
                last = g.end();
            }
            out.push(Data::str(&subject[last..]));
            Ok(Data::list(out))
        }
        _ => unsupported(format!("`re.{name}`")),
    }
}

/// A group of a match by its number or name.
pub(super) fn group<'a>(m: &'a Data, key: &Data) -> PyResult<&'a Data> {
    let missing = || raise("IndexError", "no such group");
    let Some(Data::List(groups)) = m.field("groups") else { return missing() };
    let index = match (view(key), key) {
        (View::Str(name), _) => m.field("names").and_then(|n| n.field(name)),
        (View::Num(_) | View::Bool(_), key) => Some(key),
        _ => None,
    };
    let Some(index) = index else { return missing() };
    match small(index).ok().and_then(|i| usize::try_from(i).ok()).and_then(|i| groups.get(i)) {
        Some(g) => Ok(g),
        None => missing(),
    }
}

/// The text of a group, or `None`.
pub(super) fn group_text(g: &Data) -> Data {
    match g {
        Data::List(parts) => parts.get(2).cloned().unwrap_or(Data::Null),
        _ => Data::Null,
    }
}

/// Returns true if a match has the method.
pub(super) fn has(name: &str) -> bool {
    matches!(name, "group" | "groups" | "groupdict" | "start" | "end" | "span")
}

/// A method of a match.
pub(super) fn method(m: &Data, name: &str, args: &[Data], kw: &[(Name, Data)]) -> PyResult {
    let zero = number(0);
    let place = |i: usize| -> PyResult {
        match group(m, args.first().unwrap_or(&zero))? {
            Data::List(parts) => Ok(parts.get(i).cloned().unwrap_or(Data::Null)),
            _ => Ok(Data::Num(Num::from(-1))),
        }
    };
    let default = || {
        args.first()
            .or_else(|| kw.iter().find(|(n, _)| &**n == "default").map(|(_, d)| d))
            .cloned()
            .unwrap_or(Data::Null)
    };
    let or_default = |g: &Data| match group_text(g) {
        Data::Null => default(),
        text => text,
    };
    match (name, args) {
        ("group", []) => Ok(group_text(group(m, &zero)?)),
        ("group", [key]) => Ok(group_text(group(m, key)?)),
        ("group", many) => {
            Ok(tuple(many.iter().map(|k| Ok(group_text(group(m, k)?))).collect::<PyResult<_>>()?))
        }
        ("groups", [] | [_]) => {
            let Some(Data::List(groups)) = m.field("groups") else { return Err(PyError::Unknown) };
            Ok(tuple(groups.iter().skip(1).map(or_default).collect()))
        }
        ("groupdict", [] | [_]) => {
            let Some(Data::Record(names)) = m.field("names") else { return Err(PyError::Unknown) };
            let all: PyResult<Vec<(Name, Data)>> =
                names.iter().map(|(n, i)| Ok((n.clone(), or_default(group(m, i)?)))).collect();
            Ok(Data::record(all?))
        }
        ("start", [] | [_]) => place(0),
        ("end", [] | [_]) => place(1),
        ("span", [] | [_]) => Ok(tuple(vec![place(0)?, place(1)?])),
        _ => type_error(format!("{name}() takes another number of arguments ({} given)", args.len())),
    }
}
