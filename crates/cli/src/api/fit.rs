//! Types of Rust beside types of programs, by way of JSON Schema.
//!
//! Invariant: only a definite difference is one. Bounds, patterns and refinements are left to the run.

use core_ir::{Name, Type};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use session::tool_schemas::type_of_schema;

/// Types are followed down to this depth.
const MAX_DEPTH: usize = 24;

/// The type of the JSON that a type of Rust is written as (`written`), or read from.
pub(super) fn type_of<T: JsonSchema>(written: bool) -> Type {
    let settings = SchemaSettings::draft2020_12();
    let settings = if written { settings.for_serialize() } else { settings.for_deserialize() };
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    type_of_schema(&schema)
}

/// Returns the reason why some value of `actual` is not of type `expected`; `None` if there is no such value,
/// or if that is unknown.
pub(super) fn misfit(actual: &Type, expected: &Type) -> Option<String> {
    let mut path = String::new();
    let why = differs(actual, expected, &mut path, 0)?;
    let path = path.strip_prefix('.').unwrap_or(&path);
    Some(if path.is_empty() { why } else { format!("`{path}` {why}") })
}

/// The first difference; `path` is left at its place.
fn differs(actual: &Type, expected: &Type, path: &mut String, depth: usize) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    let other = || Some(format!("is {actual}, not {expected}"));
    let mut part = |step: String, a: &Type, e: &Type| {
        let length = path.len();
        path.push_str(&step);
        let found = differs(a, e, path, depth + 1);
        if found.is_none() {
            path.truncate(length);
        }
        found
    };
    match (actual, expected) {
        (Type::Dyn, _) | (_, Type::Dyn) => None,
        // Their bodies are compared where one meets a type that is none.
        (Type::Rec(_), Type::Rec(_)) => None,
        (Type::Rec(a), _) => part(String::new(), &a.unfold(), expected),
        (_, Type::Rec(e)) => part(String::new(), actual, &e.unfold()),
        (_, Type::Refined(e)) => part(String::new(), actual, &e.0),
        (Type::Refined(a), _) => part(String::new(), &a.0, expected),
        (Type::Null, Type::Option(_)) => None,
        (Type::Option(a), Type::Option(e)) => part(String::new(), a, e),
        (_, Type::Option(e)) => part(String::new(), actual, e),
        (Type::Option(a), _) => {
            Some(format!("may be null, where {expected} is wanted")).filter(|_| !matches!(**a, Type::Dyn))
        }
        (Type::Enum(_), Type::Str) => None,
        (Type::Enum(a), Type::Enum(e)) => a
            .variants
            .iter()
            .find(|v| !e.variants.contains(v))
            .map(|v| format!("may be `{v}`, which is not one of {}", quoted(&e.variants))),
        (Type::Str, Type::Enum(e)) => Some(format!("is any text, not only {}", quoted(&e.variants))),
        (Type::List(a), Type::List(e)) => part("[]".into(), a, e),
        (Type::Record(a), Type::Record(e)) => {
            e.iter().find_map(|(name, want)| match a.iter().find(|(n, _)| n == name) {
                Some((_, have)) => part(format!(".{name}"), have, want),
                None if matches!(want, Type::Option(_) | Type::Dyn | Type::Null) => None,
                None => Some(format!("has no `{name}`")),
            })
        }
        (Type::Variant(a), Type::Variant(e)) => {
            a.iter().find_map(|(tag, have)| match e.iter().find(|(n, _)| n == tag) {
                Some((_, want)) => part(format!(".{tag}"), have, want),
                None => Some(format!("may be `{tag}`, which the other is not")),
            })
        }
        (Type::Enum(a), Type::Variant(e)) => a
            .variants
            .iter()
            .find(|v| !e.iter().any(|(n, t)| n == *v && *t == Type::Null))
            .map(|v| format!("may be `{v}`, which the other is not")),
        (Type::Map(a), Type::Map(e)) => {
            part("{keys}".into(), &a.0, &e.0).or_else(|| part("{*}".into(), &a.1, &e.1))
        }
        (Type::Pair(a), Type::Pair(e)) => {
            part("[0]".into(), &a.0, &e.0).or_else(|| part("[1]".into(), &a.1, &e.1))
        }
        (Type::Fun(_), Type::Fun(_)) => None,
        (a, e) if std::mem::discriminant(a) == std::mem::discriminant(e) => None,
        _ => other(),
    }
}

fn quoted(names: &[Name]) -> String {
    let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use serde_json::{Value, json};
    use std::collections::HashMap;

    #[derive(Serialize, JsonSchema)]
    #[allow(dead_code, reason = "only their schema is looked at")]
    enum Urgency {
        /// Soon.
        High,
        Low,
    }

    #[derive(Serialize, JsonSchema)]
    #[allow(dead_code, reason = "only their schema is looked at")]
    enum Shape {
        Point,
        Circle(f64),
        Named { name: String },
    }

    #[derive(Serialize, JsonSchema)]
    struct Ticket {
        text: String,
        urgency: Urgency,
        tags: Vec<Option<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        owner: Option<Box<Ticket>>,
        more: HashMap<String, u8>,
        any: Value,
        shape: Shape,
    }

    #[test]
    fn types_of_rust_are_read_from_their_schemas() {
        assert_eq!(type_of::<Vec<u32>>(true).to_string(), "List Num");
        assert_eq!(type_of::<Option<bool>>(false).to_string(), "Option Bool");
        assert_eq!(type_of::<()>(true).to_string(), "Null");
        assert_eq!(type_of::<Value>(true).to_string(), "Dyn");
        assert_eq!(type_of::<Urgency>(true).to_string(), "Enum one(Low, High)");
        assert_eq!(type_of::<Shape>(true).to_string(), "<Point: Null, Circle: Num, Named: {name: Str}>");
        let Type::Record(fields) = type_of::<Ticket>(true) else { panic!("no record") };
        let of = |name: &str| fields.iter().find(|(n, _)| &**n == name).map(|(_, t)| t.clone()).unwrap();
        assert_eq!(of("tags").to_string(), "List (Option Str)");
        assert!(matches!(of("more"), Type::Map(_)), "{}", of("more"));
        assert_eq!(of("any"), Type::Dyn);
        assert!(matches!(of("owner"), Type::Option(_)), "{}", of("owner"));
    }

    #[test]
    fn misfits_are_reported_with_their_place() {
        let record =
            |fields: &[(&str, Type)]| Type::record(fields.iter().map(|(n, t)| ((*n).into(), t.clone())));
        let urgency = type_of_schema(&json!({"enum": ["High", "Low"]}));
        for (actual, expected, why) in [
            (Type::Str, Type::Num, Some("is Str, not Num")),
            (record(&[("a", Type::Num)]), record(&[("a", Type::Num), ("b", Type::Str)]), Some("has no `b`")),
            (record(&[("a", Type::Num)]), record(&[("b", Type::option(Type::Str))]), None),
            (
                record(&[("a", Type::list(Type::option(Type::Str)))]),
                record(&[("a", Type::list(Type::Str))]),
                Some("`a[]` may be null, where Str is wanted"),
            ),
            (Type::Str, urgency.clone(), Some("is any text, not only `High`, `Low`")),
            (urgency.clone(), Type::Str, None),
            (
                urgency,
                type_of_schema(&json!({"enum": ["High"]})),
                Some("may be `Low`, which is not one of `High`"),
            ),
            (Type::Dyn, Type::Num, None),
            (Type::Null, Type::option(Type::Num), None),
            (Type::Num, Type::option(Type::Str), Some("is Num, not Str")),
        ] {
            assert_eq!(misfit(&actual, &expected).as_deref(), why, "{actual} for {expected}");
        }
    }
}
