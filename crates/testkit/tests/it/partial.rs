//! Typed replies that arrive in pieces.

use core_ir::{Data, Type};
use machine::partial::{MAX_BYTES, PartialReply, PartialValue, PathStep};
use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};

/// Documents with texts that need escapes, and everything else that JSON has.
fn documents() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        "[a-z]{0,6}",
        Just("\"\\/\u{8}\n\u{1f}é𝄞".to_string()),
        Just("</think> ``` {".to_string())
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-99_999_i64..99_999).prop_map(Json::from),
        (-99_i32..99).prop_map(|n| json!(f64::from(n) / 4.0)),
        text.clone().prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map("[a-z\"é]{1,4}", inner, 0..5)
                .prop_map(|fields| Json::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A type that takes a document and shows as much of it as can be.
fn type_of(json: &Json) -> Type {
    match json {
        Json::Null => Type::Null,
        Json::Bool(_) => Type::Bool,
        Json::Number(_) => Type::Num,
        Json::String(_) => Type::Str,
        Json::Array(items) => {
            let first = items.first().map_or(Type::Dyn, type_of);
            let all_same = items.iter().all(|item| type_of(item) == first);
            Type::list(if all_same { first } else { Type::Dyn })
        }
        Json::Object(fields) => {
            Type::record(fields.iter().map(|(name, value)| (name.as_str().into(), type_of(value))))
        }
    }
}

/// Written as models write: with space, or each character escaped.
fn written(json: &Json, how: usize) -> String {
    match how {
        0 => json.to_string(),
        1 => serde_json::to_string_pretty(json).unwrap(),
        _ => {
            let plain = json.to_string();
            let mut out = String::new();
            for c in plain.chars() {
                match c.is_ascii() {
                    true => out.push(c),
                    false => c.encode_utf16(&mut [0; 2]).iter().for_each(|u| out += &format!("\\u{u:04x}")),
                }
            }
            out
        }
    }
}

/// Returns whether a value has grown out of another one; `open` leads to what could grow in that.
fn has_grown(before: &Json, open: Option<&[PathStep]>, after: &Json) -> bool {
    let Some(open) = open else { return before == after };
    let within =
        |step: PathStep| open.split_first().filter(|(first, _)| **first == step).map(|(_, rest)| rest);
    match (before, after) {
        (Json::String(a), Json::String(b)) => b.starts_with(a.as_str()),
        (Json::Array(a), Json::Array(b)) => {
            a.len() <= b.len()
                && a.iter().zip(b).enumerate().all(|(i, (x, y))| has_grown(x, within(PathStep::Item(i)), y))
        }
        (Json::Object(a), Json::Object(b)) => a.iter().all(|(name, x)| {
            b.get(name).is_some_and(|y| has_grown(x, within(PathStep::Field(name.clone())), y))
        }),
        _ => before == after,
    }
}

fn of_type(ty: &Type) -> PartialReply {
    PartialReply::of(ty).unwrap()
}

proptest! {
    #[test]
    fn every_prefix_has_a_value_that_grows_to_the_whole(
        document in documents(), how in 0usize..3, before in prop_oneof![Just(""), Just("Sure: "), Just("```json\n"), Just("<think>{\"a\": [1</think>")], wraps: bool,
    ) {
        prop_assume!(document.is_object() || document.is_array());
        let ty = type_of(&document);
        let whole = ty.read(&document).unwrap().to_json();
        let text = match wraps && document.is_array() {
            true => format!("{before}{}", written(&json!({"value": document}), how)),
            false => format!("{before}{} That is it.", written(&document, how)),
        };
        let mut reply = of_type(&ty);
        let mut last: Option<PartialValue> = None;
        for c in text.chars() {
            reply.push(c.encode_utf8(&mut [0; 4]));
            let now = reply.value();
            if let Some(before) = &last {
                let after = now.as_ref().unwrap();
                prop_assert!(has_grown(&before.value, before.open.as_deref(), &after.value), "{before:?} {after:?} of {text}");
            }
            last = now;
        }
        let last = last.unwrap();
        prop_assert_eq!((last.value, last.open), (whole.clone(), None));
        // Pieces don't count.
        let mut at_once = of_type(&ty);
        at_once.push(&text);
        prop_assert_eq!(at_once.value().unwrap().value, whole);
    }

    #[test]
    fn whatever_a_model_writes_is_shown_in_its_type_or_not_at_all(text in "[\\[\\]{},:\"\\\\au0-9tn \u{e9}]{0,60}", n in 0usize..3) {
        let types = [
            Type::list(Type::Num),
            Type::record([("a".into(), Type::option(Type::Num)), ("u".into(), Type::Str)]),
            Type::map(Type::Str, Type::list(Type::Dyn)),
        ];
        let ty = &types[n];
        let mut reply = of_type(ty);
        for c in text.chars() {
            reply.push(c.encode_utf8(&mut [0; 4]));
            if let Some(PartialValue { value, open: None }) = reply.value() {
                let data = ty.read(&value).unwrap();
                prop_assert_eq!(ty.check(&data), Ok(()));
            }
        }
    }
}

#[test]
fn values_that_may_be_others_are_shown_when_they_are_whole() {
    let ty = Type::record([
        ("n".into(), Type::Num),
        (
            "kind".into(),
            Type::Enum(std::sync::Arc::new(core_ir::EnumType::new("K", vec!["bug".into(), "bugs".into()]))),
        ),
        ("tags".into(), Type::list(Type::Str)),
    ]);
    let mut reply = of_type(&ty);
    let mut shown = |piece: &str| {
        reply.push(piece);
        let now = reply.value().unwrap();
        (now.value.clone(), now.open_json())
    };
    assert_eq!(shown("{\"n\": 1"), (json!({}), json!(["n"])));
    assert_eq!(shown("2, \"kind\": \"bug"), (json!({"n": 12}), json!(["kind"])));
    assert_eq!(
        shown("\", \"tags\": [\"a"),
        (json!({"n": 12, "kind": "bug", "tags": ["a"]}), json!(["tags", 0]))
    );
    assert_eq!(shown("\"]"), (json!({"n": 12, "kind": "bug", "tags": ["a"]}), json!([])));
    assert_eq!(shown("}"), (json!({"n": 12, "kind": "bug", "tags": ["a"]}), Json::Null));
    // A field of another type, and one that the type does not have, are left out; the whole is none.
    let mut wrong = of_type(&ty);
    wrong.push("{\"n\": \"x\", \"odd\": 1, \"kind\": \"bug\"}");
    let wrong = wrong.value().unwrap();
    assert_eq!((wrong.value, wrong.open), (json!({"kind": "bug"}), Some(Vec::new())));
    // What has no parts is there or not.
    assert!(PartialReply::of(&Type::Str).is_none() && PartialReply::of(&Type::Num).is_none());
}

#[test]
fn hostile_replies_end_the_showing_and_take_no_more_room() {
    let ty = Type::list(Type::Dyn);
    let mut deep = of_type(&ty);
    deep.push(&"[".repeat(100_000));
    assert_eq!(deep.value(), None);
    let mut endless = of_type(&Type::list(Type::Str));
    let piece = "x".repeat(4096);
    endless.push("[\"");
    for _ in 0..2 * MAX_BYTES / piece.len() {
        endless.push(&piece);
    }
    assert_eq!(endless.value(), None);
    for broken in
        ["[1, 2", "[\"a\" \"b\"", "[\"\\ud800x\"", "[\"\u{1}\"", "[tru}", "{\"a\": 1, \"a\": 2}", "[1 2]"]
    {
        let mut reply = of_type(&Type::list(Type::Num));
        reply.push(broken);
        assert!(reply.value().is_none_or(|v| v.open.is_some()), "{broken}");
    }
    let data = Data::from_json(&json!([1])).unwrap();
    let mut later = of_type(&Type::list(Type::Num));
    later.push("Use {x} and [y]: [1]");
    assert_eq!(later.value().unwrap().value, data.to_json());
}
