//! `re`: regular expressions in linear time.

use super::{PyResult, class, tuple, type_error, unsupported};
use crate::{Data, Name};
use regex::Regex;

fn text(d: Option<&Data>) -> PyResult<&str> {
    match d {
        Some(Data::Str(s)) => Ok(s),
        Some(d) => type_error(format!("expected string or bytes-like object, got '{}'", class(d))),
        None => type_error("a missing argument"),
    }
}

/// A match as data: the groups, `None` where one took no part.
fn found(m: &regex::Captures<'_>, names: &Regex) -> Data {
    let groups = m.iter().map(|g| g.map_or(Data::Null, |g| Data::str(g.as_str())));
    let named = names
        .capture_names()
        .flatten()
        .map(|n| (Name::from(n), m.name(n).map_or(Data::Null, |g| Data::str(g.as_str()))));
    Data::record([("groups".into(), Data::list(groups)), ("named".into(), Data::record(named))])
}

pub(super) fn call(name: &str, args: &[Data], _: &[(Name, Data)]) -> PyResult {
    let pattern = text(args.first())?;
    let wrapped = match name {
        "match" => format!(r"\A(?:{pattern})"),
        "fullmatch" => format!(r"\A(?:{pattern})\z"),
        _ => pattern.to_string(),
    };
    let Ok(regex) = Regex::new(&wrapped) else {
        return unsupported(format!("the pattern `{pattern}`"));
    };
    match name {
        "search" | "match" | "fullmatch" => {
            let subject = text(args.get(1))?;
            Ok(regex.captures(subject).map_or(Data::Null, |m| found(&m, &regex)))
        }
        "findall" => {
            let subject = text(args.get(1))?;
            let group = |m: &regex::Captures<'_>, i: usize| Data::str(m.get(i).map_or("", |g| g.as_str()));
            Ok(Data::list(regex.captures_iter(subject).map(|m| match regex.captures_len() {
                1 => group(&m, 0),
                2 => group(&m, 1),
                n => tuple((1..n).map(|i| group(&m, i)).collect()),
            })))
        }
        "sub" => {
            let (new, subject) = (text(args.get(1))?, text(args.get(2))?);
            if new.contains('\\') {
                return unsupported("references to groups in `re.sub`");
            }
            Ok(Data::str(regex.replace_all(subject, regex::NoExpand(new)).into_owned()))
        }
        "split" => {
            if regex.captures_len() > 1 {
                return unsupported("groups in the pattern of `re.split`");
            }
            Ok(Data::list(regex.split(text(args.get(1))?).map(Data::str)))
        }
        _ => unsupported(format!("`re.{name}`")),
    }
}
