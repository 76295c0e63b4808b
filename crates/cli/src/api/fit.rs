//! Types of Rust beside types of programs, by way of JSON Schema.
//!
//! Invariant: what a schema says that is not understood here counts as anything, so only a definite
//! difference is one. Bounds, patterns and refinements are left to the run.

use core_ir::{EnumType, Name, Type};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Schemas and types are followed down to this depth.
const MAX_DEPTH: usize = 24;

/// The type of the JSON that a type of Rust is written as (`written`), or read from.
pub(super) fn type_of<T: JsonSchema>(written: bool) -> Type {
    let settings = SchemaSettings::draft2020_12();
    let settings = if written { settings.for_serialize() } else { settings.for_deserialize() };
    let schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    type_of_schema(&schema)
}

/// The type that a JSON Schema describes, as far as it is understood.
pub(super) fn type_of_schema(schema: &Value) -> Type {
    SchemaReader { root: schema, left: 4000 }.read(schema, 0)
}

struct SchemaReader<'a> {
    root: &'a Value,
    /// Number of parts that may still be visited: a type that refers to itself twice has exponentially many.
    left: u32,
}

impl<'a> SchemaReader<'a> {
    fn read(&mut self, schema: &'a Value, depth: usize) -> Type {
        self.left = self.left.saturating_sub(1);
        if depth > MAX_DEPTH || self.left == 0 {
            return Type::Dyn;
        }
        let Value::Object(fields) = schema else { return Type::Dyn };
        if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
            let target = to.strip_prefix('#').and_then(|at| self.root.pointer(at));
            return target.map_or(Type::Dyn, |t| self.read(t, depth + 1));
        }
        if let Some(Value::Array(parts)) = fields.get("allOf") {
            return match &parts[..] {
                [one] => self.read(one, depth + 1),
                _ => Type::Dyn,
            };
        }
        for any in ["anyOf", "oneOf"] {
            if let Some(Value::Array(parts)) = fields.get(any) {
                return self.one_of(parts, depth);
            }
        }
        if let Some(values) = names_of(fields) {
            return values;
        }
        match fields.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, fields, depth),
            Some(Value::Array(kinds)) => {
                let some: Vec<&str> =
                    kinds.iter().filter_map(Value::as_str).filter(|k| *k != "null").collect();
                match &some[..] {
                    [] => Type::Null,
                    [one] if some.len() < kinds.len() => optional(self.of_kind(one, fields, depth)),
                    [one] => self.of_kind(one, fields, depth),
                    _ => Type::Dyn,
                }
            }
            _ => Type::Dyn,
        }
    }

    fn of_kind(&mut self, kind: &str, fields: &'a Map<String, Value>, depth: usize) -> Type {
        match kind {
            "string" => Type::Str,
            "number" | "integer" => Type::Num,
            "boolean" => Type::Bool,
            "null" => Type::Null,
            "array" => match fields.get("items") {
                Some(items @ Value::Object(_)) if !fields.contains_key("prefixItems") => {
                    Type::list(self.read(items, depth + 1))
                }
                _ => Type::Dyn,
            },
            "object" => {
                let Some(Value::Object(properties)) = fields.get("properties") else { return Type::Dyn };
                let required = fields.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &str| required.is_some_and(|all| all.iter().any(|r| r.as_str() == Some(name)));
                let field = |(name, schema): (&String, &'a Value)| {
                    let ty = self.read(schema, depth + 1);
                    (Name::from(name.as_str()), if is_required(name) { ty } else { optional(ty) })
                };
                Type::record(properties.iter().map(field))
            }
            _ => Type::Dyn,
        }
    }

    /// One of several: an option, an enumeration, a variant, or anything.
    fn one_of(&mut self, parts: &'a [Value], depth: usize) -> Type {
        let is_null = |p: &&Value| p.get("type").and_then(Value::as_str) == Some("null");
        let some: Vec<&Value> = parts.iter().filter(|p| !is_null(p)).collect();
        let ty = match &some[..] {
            [] => return Type::Null,
            [one] => self.read(one, depth + 1),
            several => self.tags(several, depth).unwrap_or(Type::Dyn),
        };
        if some.len() < parts.len() { optional(ty) } else { ty }
    }

    /// An `enum` of Rust as `serde` writes it by itself: names, and objects with one field, which is the
    /// name.
    fn tags(&mut self, parts: &[&'a Value], depth: usize) -> Option<Type> {
        let mut tags: Vec<(Name, Type)> = Vec::new();
        for part in parts {
            let fields = part.as_object()?;
            if let Some(Type::Enum(names)) = names_of(fields) {
                tags.extend(names.variants.iter().map(|n| (n.clone(), Type::Null)));
                continue;
            }
            let properties = fields.get("properties")?.as_object()?;
            let mut properties = properties.iter();
            let (Some((name, payload)), None) = (properties.next(), properties.next()) else { return None };
            // A value with the tag inside is a different encoding.
            fields.get("required")?.as_array()?.iter().find(|r| r.as_str() == Some(name))?;
            tags.push((name.as_str().into(), self.read(payload, depth + 1)));
        }
        if tags.iter().all(|(_, t)| *t == Type::Null) {
            return Some(enumeration(tags.into_iter().map(|(n, _)| n).collect()));
        }
        Some(Type::Variant(tags.into()))
    }
}

/// The strings that a schema lists.
fn names_of(fields: &Map<String, Value>) -> Option<Type> {
    let values = match (fields.get("enum"), fields.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => return None,
    };
    let names: Option<Vec<Name>> = values.iter().map(|v| v.as_str().map(Name::from)).collect();
    names.filter(|n| !n.is_empty()).map(enumeration)
}

fn enumeration(mut variants: Vec<Name>) -> Type {
    let mut seen = std::collections::HashSet::new();
    variants.retain(|v| seen.insert(v.clone()));
    Type::Enum(Arc::new(EnumType { name: "one".into(), variants }))
}

fn optional(ty: Type) -> Type {
    match ty {
        ty @ (Type::Option(_) | Type::Dyn | Type::Null) => ty,
        ty => Type::option(ty),
    }
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
        assert_eq!(of("more"), Type::Dyn);
        assert_eq!(of("any"), Type::Dyn);
        assert!(matches!(of("owner"), Type::Option(_)), "{}", of("owner"));
    }

    #[test]
    fn misfits_are_reported_with_their_place() {
        let record =
            |fields: &[(&str, Type)]| Type::record(fields.iter().map(|(n, t)| ((*n).into(), t.clone())));
        let urgency = enumeration(vec!["High".into(), "Low".into()]);
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
            (urgency, enumeration(vec!["High".into()]), Some("may be `Low`, which is not one of `High`")),
            (Type::Dyn, Type::Num, None),
            (Type::Null, Type::option(Type::Num), None),
            (Type::Num, Type::option(Type::Str), Some("is Num, not Str")),
        ] {
            assert_eq!(misfit(&actual, &expected).as_deref(), why, "{actual} for {expected}");
        }
    }
}
