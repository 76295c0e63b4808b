//! Replies of models as typed data.
//!
//! Source: `docs/calculus.md` §10 (`recv` as data).

use core_ir::{Data, Type};
use serde_json::Value as Json;
use std::sync::Arc;

/// Reads a reply as data of a type. Reasoning before the answer (`<think>…</think>`) is left out.
///
/// For `Str` (or no type) the text is the value. Enumerations, and tags without payload, are taken with or
/// without quotes. Everything else is JSON: the whole text, or what a Markdown code fence encloses, or the
/// text from the first brace or bracket to the last. Models wrap their answers in prose, however they are
/// asked.
///
/// # Errors
/// The problem, with its path, in words that a model can act on.
pub(crate) fn decode(text: &str, ty: Option<&Type>) -> Result<Data, String> {
    let text = without_reasoning(text);
    let Some(ty) = ty else { return Ok(Data::str(text)) };
    match ty.unrefined() {
        Type::Str => checked(ty, Data::str(text)),
        Type::Enum(_) => checked(ty, Data::str(unquoted(text))),
        Type::Variant(tags)
            if tags.iter().any(|(tag, t)| **tag == *unquoted(text) && t.admits(&Data::Null)) =>
        {
            checked(ty, Data::Tag(unquoted(text).into(), Arc::new(Data::Null)))
        }
        _ => json(text.trim(), ty),
    }
}

/// A word without the quotes around it.
fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '`', '\''])
}

/// The text after the reasoning that it begins with. Templates of chats often put the opening mark into the
/// prompt, so the closing one alone ends the reasoning, too. A text that never gets to its answer stays as it
/// is.
fn without_reasoning(text: &str) -> &str {
    const MARKS: (&str, &str) = ("<think>", "</think>");
    let Some((reasoning, answer)) = text.split_once(MARKS.1) else { return text };
    let begins = reasoning.trim_start().starts_with(MARKS.0);
    if begins || !reasoning.contains(MARKS.0) { answer.trim_start() } else { text }
}

fn checked(ty: &Type, data: Data) -> Result<Data, String> {
    ty.check(&data).map_err(|(path, cause)| format!("{path}: {cause}"))?;
    Ok(data)
}

/// The first candidate that is data of the type; what is wrong with the first one, if none is.
fn json(text: &str, ty: &Type) -> Result<Data, String> {
    let mut problem = None;
    let mut not_json = None;
    for candidate in candidates(text) {
        let read = match serde_json::from_str::<Json>(candidate) {
            Ok(json) => ty.read(&json).map_err(|e| e.to_string()).and_then(|data| checked(ty, data)),
            Err(e) => {
                not_json.get_or_insert(e);
                continue;
            }
        };
        match read {
            Ok(data) => return Ok(data),
            Err(e) => {
                problem.get_or_insert(e);
            }
        }
    }
    Err(problem.unwrap_or_else(|| {
        let why = not_json.map_or(String::new(), |e| format!(" ({e})"));
        format!(
            "$: expected JSON of type {ty}, found text that is not JSON{why}: `{}`",
            diagnostics::clip(text)
        )
    }))
}

/// The parts of a text that may be the JSON that was asked for, the likeliest first.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let fenced = text.split_once("```").and_then(|(_, rest)| {
        let rest = rest.split_once('\n').map_or(rest, |(_, body)| body);
        rest.split_once("```").map(|(body, _)| body.trim())
    });
    let embedded = match (text.find(['{', '[']), text.rfind(['}', ']'])) {
        (Some(a), Some(b)) if a < b => text.get(a..=b),
        _ => None,
    };
    [Some(text), fenced, embedded].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{EnumType, Num};
    use std::sync::Arc;

    #[test]
    fn replies_are_found_in_what_models_write_around_them() {
        let ty = Type::record([("n".into(), Type::Num)]);
        let want = Data::record([("n".into(), Data::Num(Num::from(1)))]);
        for text in ["{\"n\":1}", "Sure!\n```json\n{\"n\": 1}\n```\nDone.", "It is {\"n\":1}, I think."] {
            assert_eq!(decode(text, Some(&ty)), Ok(want.clone()), "{text}");
        }
        assert_eq!(decode("{\"n\":\"x\"}", Some(&ty)), Err("$.n: expected a number, found a string".into()));
        assert_eq!(decode("see [1]: ```json\n{\"n\":1}\n```", Some(&ty)), Ok(want));
        assert!(decode("no", Some(&ty)).unwrap_err().contains("not JSON"));
        assert_eq!(decode("{}", Some(&Type::Str)), Ok(Data::str("{}")));
        assert_eq!(decode("{}", None), Ok(Data::str("{}")));
    }

    #[test]
    fn reasoning_before_the_answer_is_left_out() {
        let ty = Type::record([("n".into(), Type::Num)]);
        let want = Data::record([("n".into(), Data::Num(Num::from(1)))]);
        for text in [
            "<think>\nPerhaps {\"n\":2}?\n</think>\n\n{\"n\":1}",
            " <think></think>{\"n\":1}",
            "so [1] or {\"n\": \"x\"}\n</think>{\"n\":1}",
        ] {
            assert_eq!(decode(text, Some(&ty)), Ok(want.clone()), "{text}");
        }
        for ty in [None, Some(&Type::Str)] {
            assert_eq!(decode("<think>a\nb</think>\n\nParis", ty), Ok(Data::str("Paris")));
            assert_eq!(decode("a</think> Paris", ty), Ok(Data::str("Paris")));
            // What is no reasoning before the answer stays.
            for text in ["Paris", "Use <think>…</think> for thoughts.", "<think>cut off", ""] {
                assert_eq!(decode(text, ty), Ok(Data::str(text)));
            }
        }
    }

    #[test]
    fn enumerations_are_taken_bare_or_quoted() {
        let e = EnumType::new("E", vec!["bug".into()]);
        let ty = Type::Enum(Arc::new(e));
        assert_eq!(decode(" \"bug\"\n", Some(&ty)), Ok(Data::str("bug")));
        assert_eq!(decode("nope", Some(&ty)), Err("$: expected one of bug, found `nope`".into()));
        let fields = Type::record([("n".into(), Type::Num)]);
        let ty = Type::Variant([("Accept".into(), Type::Null), ("Offer".into(), fields)].into());
        let accept = Data::Tag("Accept".into(), Arc::new(Data::Null));
        for text in ["Accept", "\"Accept\"", "`Accept`\n"] {
            assert_eq!(decode(text, Some(&ty)), Ok(accept.clone()), "{text}");
        }
        for text in ["Offer", "Leave"] {
            assert!(decode(text, Some(&ty)).is_err_and(|e| e.contains("not JSON")), "{text}");
        }
    }
}
