//! Types as JSON Schemas, for models that are told what to answer.
//!
//! Invariant: whatever a schema of this module accepts reads back (with [`core_ir::Type::read`]) as data of
//! the type, unless [`Schema::exact`] is false; the machine checks every reply against the type in any case.

use core_ir::{Comparison, Data, EnumType, Measure, Name, Num, Pred, RecType, Type};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;

/// Keyword for the descriptions of an `enum`'s values. Not of JSON Schema; editors use it.
const ENUM_DESCRIPTIONS: &str = "enumDescriptions";

/// Types nested deeper than this are described as "anything".
const MAX_DEPTH: usize = 60;

/// A JSON Schema with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The schema.
    pub json: Json,
    /// True if the schema is within the subset that providers call strict: every property required, no others
    /// allowed, no schema without a type.
    pub strict: bool,
    /// True if the schema expresses the whole type. Otherwise a valid answer may still not have the type.
    pub exact: bool,
}

impl Schema {
    /// The schema of a type's data as JSON (see [`Data::to_json`]); `None` for a type that has no data, a
    /// function's.
    ///
    /// Every field is required, an optional one admits `null`: models are better at that than at leaving out.
    ///
    /// # Examples
    /// ```
    /// use core_ir::Type;
    /// let t = Type::record([("n".into(), Type::option(Type::Num))]);
    /// let s = runtime::Schema::of(&t).unwrap();
    /// let n = serde_json::json!({"type": ["number", "null"]});
    /// let expected = serde_json::json!({
    ///     "type": "object", "properties": {"n": n}, "required": ["n"], "additionalProperties": false,
    /// });
    /// assert_eq!(s.json, expected);
    /// assert!(s.strict && s.exact);
    /// ```
    pub fn of(ty: &Type) -> Option<Schema> {
        Schema::write(ty, false)
    }

    /// [`Schema::of`] with the name of an enumeration as `title`, and the descriptions of its values in a
    /// list `enumDescriptions` beside `enum`, in the same order, instead of one text.
    #[cfg(feature = "local")]
    pub(crate) fn described_by_value(ty: &Type) -> Option<Schema> {
        Schema::write(ty, true)
    }

    fn write(ty: &Type, by_value: bool) -> Option<Schema> {
        let mut work = SchemaWriter { strict: true, exact: true, by_value, defs: Map::new() };
        // A recursive type is an object by itself where it is the whole.
        let mut json = match ty {
            Type::Rec(r) => work.schema(&r.unfold(), 0)?,
            ty => work.schema(ty, 0)?,
        };
        if !work.defs.is_empty()
            && let Some(fields) = json.as_object_mut()
        {
            fields.insert(DEFS.into(), Json::Object(work.defs));
        }
        Some(Schema { json, strict: work.strict, exact: work.exact })
    }

    /// The schema of a tool's or task's parameters: an object with a property for each.
    pub fn of_params<'a>(params: impl IntoIterator<Item = (&'a Name, &'a Type)>) -> Option<Schema> {
        Schema::of(&Type::record(params.into_iter().map(|(n, t)| (n.clone(), t.clone()))))
    }

    /// Returns true if the schema describes an object, as providers require of the outermost one.
    pub fn is_object(&self) -> bool {
        self.json.get("type").is_some_and(|t| t == "object")
    }

    /// Wraps the schema in an object `{"value": …}`.
    #[must_use]
    pub fn wrapped(mut self) -> Schema {
        let defs = take_defs(&mut self.json);
        let mut json = object(vec![("value".to_string(), self.json)]);
        if let Some(defs) = defs {
            json[DEFS] = defs;
        }
        Schema { json, ..self }
    }
}

fn object(properties: Vec<(String, Json)>) -> Json {
    let required: Vec<Json> = properties.iter().map(|(n, _)| Json::from(n.as_str())).collect();
    json!({
        "type": "object",
        "properties": Json::Object(properties.into_iter().collect::<Map<_, _>>()),
        "required": required,
        "additionalProperties": false,
    })
}

/// Keyword for the schemas that others refer to, at the root.
pub(crate) const DEFS: &str = "$defs";

/// Takes the schemas that others refer to from the root.
pub(crate) fn take_defs(schema: &mut Json) -> Option<Json> {
    schema.as_object_mut()?.remove(DEFS)
}

struct SchemaWriter {
    /// Schemas of recursive types by their names.
    defs: Map<String, Json>,
    strict: bool,
    exact: bool,
    /// True if each value of an enumeration is described by itself, in [`ENUM_DESCRIPTIONS`].
    by_value: bool,
}

impl SchemaWriter {
    fn anything(&mut self) -> Json {
        self.strict = false;
        json!({})
    }

    /// Providers' strict subset has no description of a single value, so that of the whole lists them.
    fn enumeration(&self, e: &EnumType) -> Json {
        let names: Vec<&str> = e.variants.iter().map(|v| &**v).collect();
        let mut schema = json!({"type": "string", "enum": names});
        if self.by_value && !e.is_literal() {
            schema["title"] = json!(*e.name);
        }
        if e.is_described() {
            let (key, text) = descriptions(e, &names, self.by_value);
            schema[key] = text;
        }
        schema
    }

    /// A reference to the schema of a recursive type.
    fn reference(&mut self, ty: &Arc<RecType>, depth: usize) -> Option<Json> {
        let name = &**ty.name();
        if !self.defs.contains_key(name) {
            // Reserved, so that the type may refer to itself.
            self.defs.insert(name.into(), Json::Null);
            let schema = self.schema(&ty.unfold(), depth + 1)?;
            self.defs.insert(name.into(), schema);
        }
        Some(json!({"$ref": format!("#/{DEFS}/{name}")}))
    }

    fn schema(&mut self, ty: &Type, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            self.exact = false;
            return Some(self.anything());
        }
        Some(match ty {
            Type::Dyn => self.anything(),
            Type::Str => json!({"type": "string"}),
            Type::Num => json!({"type": "number"}),
            Type::Bool => json!({"type": "boolean"}),
            Type::Null => json!({"type": "null"}),
            Type::List(t) => json!({"type": "array", "items": self.schema(t, depth + 1)?}),
            Type::Option(t) => {
                let inner = self.schema(t, depth + 1)?;
                nullable(inner)
            }
            Type::Record(fields) => {
                let properties = fields
                    .iter()
                    .map(|(n, t)| Some((n.to_string(), self.schema(t, depth + 1)?)))
                    .collect::<Option<Vec<_>>>()?;
                object(properties)
            }
            // Providers' strict subset asks each object for its fields.
            Type::Map(of) => {
                self.strict = false;
                let value = self.schema(&of.1, depth + 1)?;
                match keys(&of.0) {
                    Keys::Any => json!({"type": "object", "additionalProperties": value}),
                    Keys::Names(e) => {
                        let all = e.variants.iter().map(|v| (v.to_string(), value.clone()));
                        let all: Map<String, Json> = all.collect();
                        json!({"type": "object", "properties": all, "additionalProperties": false})
                    }
                    Keys::Pattern(pattern) => json!({
                        "type": "object",
                        "patternProperties": {pattern: value},
                        "additionalProperties": false,
                    }),
                    Keys::Unknown => {
                        self.exact = false;
                        json!({"type": "object", "additionalProperties": value})
                    }
                }
            }
            Type::Enum(e) => self.enumeration(e),
            Type::Variant(tags) => {
                // A tag whose payload may be null may be written without one.
                let plain = tags.iter().filter(|(_, t)| t.check(&Data::Null).is_ok());
                let plain: Vec<&str> = plain.map(|(n, _)| &**n).collect();
                let mut parts = Vec::new();
                if !plain.is_empty() {
                    parts.push(json!({"type": "string", "enum": plain}));
                }
                for (name, t) in tags.iter().filter(|(_, t)| *t != Type::Null) {
                    parts.push(object(vec![(name.to_string(), self.schema(t, depth + 1)?)]));
                }
                any_of(parts)
            }
            Type::Pair(p) => {
                // Providers' strict subset has no `prefixItems`; where both sides are alike it needs none.
                let (a, b) = (self.schema(&p.0, depth + 1)?, self.schema(&p.1, depth + 1)?);
                if a == b {
                    json!({"type": "array", "items": a, "minItems": 2, "maxItems": 2})
                } else {
                    self.strict = false;
                    json!({"type": "array", "prefixItems": [a, b], "items": false, "minItems": 2, "maxItems": 2})
                }
            }
            Type::Fun(_) => return None,
            Type::Rec(r) => self.reference(r, depth)?,
            // What is unfolded has none.
            Type::Var(_) => self.anything(),
            Type::Refined(r) => {
                let mut base = self.schema(&r.0, depth + 1)?;
                if !refine(&mut base, &r.0, &r.1) {
                    self.exact = false;
                }
                base
            }
        })
    }
}

/// Keys of a map, as far as a schema can say them.
enum Keys<'t> {
    Any,
    Names(&'t EnumType),
    Pattern(&'t str),
    Unknown,
}

fn keys(ty: &Type) -> Keys<'_> {
    match ty {
        Type::Str => Keys::Any,
        Type::Enum(e) => Keys::Names(e),
        Type::Refined(r) => match (&r.0, &r.1) {
            (Type::Str, Pred::Matches(pattern)) if is_portable(pattern) => Keys::Pattern(pattern),
            _ => Keys::Unknown,
        },
        _ => Keys::Unknown,
    }
}

/// The descriptions of some values of an enumeration, as a keyword of their schema.
fn descriptions(e: &EnumType, values: &[&str], by_value: bool) -> (&'static str, Json) {
    let all: HashMap<&str, &str> = e.described_variants().filter_map(|(v, d)| Some((&**v, &**d?))).collect();
    if by_value {
        let texts: Vec<&str> = values.iter().map(|v| all.get(v).copied().unwrap_or_default()).collect();
        return (ENUM_DESCRIPTIONS, json!(texts));
    }
    let lines = values.iter().filter_map(|v| Some(format!("{v}: {}", all.get(v)?)));
    ("description", lines.collect::<Vec<_>>().join("\n").into())
}

fn any_of(mut parts: Vec<Json>) -> Json {
    if parts.len() == 1 { parts.remove(0) } else { json!({ "anyOf": parts }) }
}

/// The schema or `null`.
fn nullable(mut schema: Json) -> Json {
    let scalar = matches!(
        schema.get("type").and_then(Json::as_str),
        Some("string" | "number" | "integer" | "boolean")
    );
    match schema.as_object_mut() {
        Some(fields) if fields.is_empty() => schema,
        Some(fields) if scalar => {
            let ty = fields["type"].take();
            fields["type"] = json!([ty, "null"]);
            if let Some(Json::Array(values)) = fields.get_mut("enum") {
                values.push(Json::Null);
            }
            schema
        }
        _ => {
            let already = |s: &Json| {
                s.get("type")
                    .is_some_and(|t| t == "null" || t.as_array().is_some_and(|t| t.contains(&json!("null"))))
            };
            if already(&schema) {
                return schema;
            }
            if let Some(Json::Array(parts)) = schema.get_mut("anyOf") {
                if !parts.iter().any(already) {
                    parts.push(json!({"type": "null"}));
                }
                return schema;
            }
            json!({"anyOf": [schema, {"type": "null"}]})
        }
    }
}

/// Adds what the predicate demands, as far as a schema can say it; whether it could say all of it. Never
/// rejects a value that the predicate admits.
fn refine(schema: &mut Json, base: &Type, pred: &Pred) -> bool {
    let mut base = base;
    while let Type::Refined(r) = base {
        base = &r.0;
    }
    let Some(fields) = schema.as_object_mut() else { return false };
    match (pred, base) {
        (Pred::True, _) => true,
        (Pred::And(p), _) => {
            // Both, even if the first can't be said.
            let first = refine(schema, base, &p.0);
            refine(schema, base, &p.1) && first
        }
        (Pred::Compare(Measure::Length, c, n), Type::Str) => {
            bound_count(fields, "minLength", "maxLength", *c, n)
        }
        (Pred::Compare(Measure::Length, c, n), Type::List(_)) => {
            bound_count(fields, "minItems", "maxItems", *c, n)
        }
        (Pred::Compare(Measure::Length, c, n), Type::Map(_)) => {
            bound_count(fields, "minProperties", "maxProperties", *c, n)
        }
        (Pred::Compare(Measure::Value, c, n), Type::Num) => bound_value(fields, *c, n),
        (Pred::Schema(_), Type::Num) if *pred == Pred::integer() => {
            fields.insert("type".into(), "integer".into());
            true
        }
        // Every number of JSON is one.
        (Pred::Schema(_), Type::Num) if *pred == Pred::decimal() => true,
        (Pred::Matches(pattern), Type::Str) if is_portable(pattern) => add_pattern(fields, pattern),
        (Pred::Contains(part), Type::Str) => add_pattern(fields, &escape(part)),
        (Pred::OneOf(items), Type::Str | Type::Num | Type::Bool | Type::Enum(_)) => {
            let fits: Vec<Json> = items.iter().filter(|d| base.check(d).is_ok()).map(Data::to_json).collect();
            if fits.is_empty() || fields.contains_key("enum") && !matches!(base, Type::Enum(_)) {
                return false;
            }
            if let Type::Enum(e) = base
                && e.is_described()
            {
                let values: Vec<&str> = fits.iter().filter_map(Json::as_str).collect();
                let (key, text) = descriptions(e, &values, fields.contains_key(ENUM_DESCRIPTIONS));
                fields.insert(key.into(), text);
            }
            fields.insert("enum".into(), Json::Array(fits));
            true
        }
        (Pred::Field(name, p), Type::Record(record)) => {
            let ty = record.iter().find(|(n, _)| n == name).map(|(_, t)| t);
            let part = fields.get_mut("properties").and_then(|ps| ps.get_mut(&**name));
            match (ty, part) {
                (Some(ty), Some(part)) => refine(part, ty, p),
                _ => false,
            }
        }
        (Pred::Every(p), Type::List(t)) => fields.get_mut("items").is_some_and(|items| refine(items, t, p)),
        _ => false,
    }
}

/// Bounds a count, which is a natural number.
fn bound_count(fields: &mut Map<String, Json>, min: &str, max: &str, c: Comparison, n: &Num) -> bool {
    let floor = n.floor();
    let whole = floor == *n;
    let Some(f) = floor.to_i64() else { return false };
    let (least, most) = match c {
        Comparison::Ge => (Some(if whole { f } else { f + 1 }), None),
        Comparison::Gt => (Some(f + 1), None),
        Comparison::Le => (None, Some(f)),
        Comparison::Lt => (None, Some(if whole { f - 1 } else { f })),
        Comparison::Eq if whole => (Some(f), Some(f)),
        Comparison::Eq | Comparison::Ne => return false,
    };
    if let Some(least) = least.filter(|l| *l > 0) {
        let old = fields.get(min).and_then(Json::as_i64).unwrap_or(0);
        fields.insert(min.into(), json!(old.max(least)));
    }
    if let Some(most) = most {
        if most < 0 {
            return false;
        }
        let old = fields.get(max).and_then(Json::as_i64).unwrap_or(i64::MAX);
        fields.insert(max.into(), json!(old.min(most)));
    }
    true
}

fn bound_value(fields: &mut Map<String, Json>, c: Comparison, n: &Num) -> bool {
    // A fraction without a finite decimal would be rounded, perhaps to the wrong side.
    let shown = n.to_json();
    if !Data::from_json(&shown).is_ok_and(|d| d == Data::Num(n.clone())) {
        return false;
    }
    let keys: &[&str] = match c {
        Comparison::Ge => &["minimum"],
        Comparison::Gt => &["exclusiveMinimum"],
        Comparison::Le => &["maximum"],
        Comparison::Lt => &["exclusiveMaximum"],
        Comparison::Eq => &["minimum", "maximum"],
        Comparison::Ne => return false,
    };
    // Two bounds of one kind: the second would have to be compared; leave that to the check.
    if keys.iter().any(|k| fields.contains_key(*k)) {
        return false;
    }
    for key in keys {
        fields.insert((*key).into(), shown.clone());
    }
    true
}

fn add_pattern(fields: &mut Map<String, Json>, pattern: &str) -> bool {
    if fields.contains_key("pattern") {
        return false;
    }
    fields.insert("pattern".into(), pattern.into());
    true
}

/// Returns true if a regular expression has the same meaning in JSON Schema (ECMA-262) as here: only the
/// common, ASCII core.
fn is_portable(pattern: &str) -> bool {
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // Classes such as `\w` differ in Unicode; `\d` is at least narrower there.
            '\\' => match chars.next() {
                Some('d') => {}
                Some(c) if c.is_ascii_punctuation() && c != '<' && c != '>' => {}
                _ => return false,
            },
            '(' if chars.peek() == Some(&'?') => return false,
            '[' if matches!(chars.peek(), Some('^' | '[')) => return false,
            '&' | '~' | '-' if chars.peek() == Some(&c) => return false,
            c if !(' '..='~').contains(&c) => return false,
            _ => {}
        }
    }
    true
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$' | '/'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
