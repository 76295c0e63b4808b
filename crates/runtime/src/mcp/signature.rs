//! Compares the declaration of a tool with the server's JSON Schemas.
//!
//! Only a definite difference is one: where a schema says nothing, or something that is not understood here,
//! it agrees.

use core_ir::{ToolDecl, Type};
use serde_json::{Map, Value as Json};
use std::cell::Cell;

/// Schemas and types are compared down to this depth.
const MAX_DEPTH: usize = 16;

/// Maximum number of visited parts of a schema. A schema that refers to itself twice has exponentially many.
const MAX_PARTS: u32 = 10_000;

/// The first difference between a declaration and the schemas of a server's tool.
///
/// `input` is that of the arguments, `output` that of the structured result, if there is one.
pub(super) fn difference(
    decl: &ToolDecl,
    input: &Map<String, Json>,
    output: Option<&Map<String, Json>>,
) -> Option<String> {
    let input = Json::Object(input.clone());
    let s = Schemas::new(&input);
    let properties = input.get("properties").and_then(Json::as_object);
    let required: Vec<&str> = input
        .get("required")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let closed = input.get("additionalProperties") == Some(&Json::Bool(false));
    for name in &required {
        if !decl.params.iter().any(|p| &*p.name == *name) {
            return Some(format!("the server requires the parameter `{name}`, which the declaration lacks"));
        }
    }
    for p in &decl.params {
        let Some(schema) = properties.and_then(|ps| ps.get(&*p.name)) else {
            // A schema without any property says nothing of them.
            if closed || properties.is_some_and(|ps| !ps.is_empty()) {
                let names: Vec<&str> = properties.into_iter().flatten().map(|(n, _)| n.as_str()).collect();
                let has = if names.is_empty() { "none".into() } else { format!("`{}`", names.join("`, `")) };
                return Some(format!("the server knows no parameter `{}`; it has {has}", p.name));
            }
            continue;
        };
        // An absent argument is left out, so it need not be allowed to be `null`.
        let ty = match &p.ty {
            Type::Option(inner) if !required.contains(&&*p.name) => inner,
            other => other,
        };
        if let Some(why) = s.refuses(schema, ty, 0) {
            return Some(format!("the parameter `{}` is declared as {}, but {why}", p.name, p.ty.in_words()));
        }
    }
    let output = Json::Object(output?.clone());
    let s = Schemas::new(&output);
    match &decl.result {
        // Texts and anything are always there.
        Type::Dyn | Type::Str => None,
        ty => {
            let why = s.never_gives(&output, ty, 0)?;
            // Servers wrap what is no object.
            let wrapped = output.pointer("/properties/result");
            if wrapped.is_some_and(|inner| s.never_gives(inner, ty, 0).is_none()) {
                return None;
            }
            Some(format!("its result is declared as {}, but {why}", ty.in_words()))
        }
    }
}

/// Kinds of JSON values, as bits.
type Kinds = u8;
const NULL: Kinds = 1;
const BOOL: Kinds = 2;
const NUMBER: Kinds = 4;
const STRING: Kinds = 8;
const ARRAY: Kinds = 16;
const OBJECT: Kinds = 32;
const ALL: Kinds = 63;

fn kinds_of_type(ty: &Type) -> Kinds {
    match ty {
        Type::Dyn | Type::Fun(_) => ALL,
        Type::Str | Type::Enum(_) => STRING,
        Type::Num => NUMBER,
        Type::Bool => BOOL,
        Type::Null => NULL,
        Type::List(_) | Type::Pair(_) => ARRAY,
        Type::Record(_) | Type::Map(_) => OBJECT,
        Type::Option(t) => NULL | kinds_of_type(t),
        Type::Variant(_) => STRING | OBJECT,
        Type::Refined(r) => kinds_of_type(&r.0),
        Type::Rec(r) => kinds_of_type(&r.unfold()),
        Type::Var(_) => ALL,
    }
}

fn kind_of(value: &Json) -> Kinds {
    match value {
        Json::Null => NULL,
        Json::Bool(_) => BOOL,
        Json::Number(_) => NUMBER,
        Json::String(_) => STRING,
        Json::Array(_) => ARRAY,
        Json::Object(_) => OBJECT,
    }
}

fn shown(kinds: Kinds) -> String {
    let names: Vec<&str> = [
        (NULL, "null"),
        (BOOL, "a boolean"),
        (NUMBER, "a number"),
        (STRING, "a string"),
        (ARRAY, "an array"),
        (OBJECT, "an object"),
    ]
    .into_iter()
    .filter(|(k, _)| kinds & k != 0)
    .map(|(_, n)| n)
    .collect();
    if names.is_empty() { "nothing".into() } else { names.join(" or ") }
}

struct Schemas<'a> {
    /// Document that `$ref` refers to.
    root: &'a Json,
    /// Number of parts that may still be visited.
    left: Cell<u32>,
}

impl<'a> Schemas<'a> {
    fn new(root: &'a Json) -> Schemas<'a> {
        Schemas { root, left: Cell::new(MAX_PARTS) }
    }

    /// Returns true if the comparison must give up and treat the schema as unconstrained.
    fn is_enough(&self, depth: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        depth > MAX_DEPTH || left == 0
    }

    /// The schema itself, or the one that it refers to.
    fn resolve(&self, mut schema: &'a Json) -> &'a Json {
        for _ in 0..MAX_DEPTH {
            let Some(at) = schema.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix('#')) else {
                break;
            };
            let Some(next) = self.root.pointer(at) else { break };
            schema = next;
        }
        schema
    }

    /// The kinds of values that a schema may admit.
    fn kinds(&self, schema: &'a Json, depth: usize) -> Kinds {
        if self.is_enough(depth) {
            return ALL;
        }
        let schema = self.resolve(schema);
        let fields = match schema {
            Json::Bool(false) => return 0,
            Json::Object(fields) => fields,
            _ => return ALL,
        };
        let named = |t: &Json| match t.as_str() {
            Some("null") => NULL,
            Some("boolean") => BOOL,
            Some("number" | "integer") => NUMBER,
            Some("string") => STRING,
            Some("array") => ARRAY,
            Some("object") => OBJECT,
            _ => ALL,
        };
        let mut kinds = match fields.get("type") {
            None => ALL,
            Some(Json::Array(types)) => types.iter().map(named).fold(0, |a, b| a | b),
            Some(one) => named(one),
        };
        if let Some(Json::Array(values)) = fields.get("enum") {
            kinds &= values.iter().map(kind_of).fold(0, |a, b| a | b);
        }
        if let Some(value) = fields.get("const") {
            kinds &= kind_of(value);
        }
        for any in ["anyOf", "oneOf"] {
            if let Some(Json::Array(parts)) = fields.get(any) {
                kinds &= parts.iter().map(|p| self.kinds(p, depth + 1)).fold(0, |a, b| a | b);
            }
        }
        if let Some(Json::Array(parts)) = fields.get("allOf") {
            kinds = parts.iter().fold(kinds, |k, p| k & self.kinds(p, depth + 1));
        }
        kinds
    }

    /// Returns the reason why the schema rejects some value of the type.
    fn refuses(&self, schema: &'a Json, ty: &Type, depth: usize) -> Option<String> {
        if self.is_enough(depth) || matches!(ty, Type::Dyn) {
            return None;
        }
        let schema = self.resolve(schema);
        let (have, admitted) = (kinds_of_type(ty), self.kinds(schema, depth));
        if have & !admitted != 0 {
            return Some(format!("the server expects {}", shown(admitted)));
        }
        match ty {
            Type::Refined(r) => self.refuses(schema, &r.0, depth + 1),
            Type::Rec(r) => self.refuses(schema, &r.unfold(), depth + 1),
            Type::Map(of) => match schema.get("additionalProperties")? {
                Json::Bool(false) => Some("the server allows no fields in it but those that it names".into()),
                values => self.refuses(values, &of.1, depth + 1).map(|why| format!("of its values {why}")),
            },
            Type::Enum(e) => {
                let values = schema.get("enum")?.as_array()?;
                let missing = e.variants.iter().find(|v| !values.iter().any(|j| j.as_str() == Some(&**v)))?;
                Some(format!("the server does not accept `{missing}`"))
            }
            Type::Str => {
                let values = schema.get("enum")?.as_array()?;
                let names: Vec<String> = values.iter().map(Json::to_string).collect();
                Some(format!("the server accepts only {}", names.join(", ")))
            }
            Type::List(t) => {
                let why = self.refuses(schema.get("items")?, t, depth + 1)?;
                Some(format!("of its items {why}"))
            }
            Type::Record(types) => {
                let required = schema.get("required").and_then(Json::as_array).into_iter().flatten();
                for name in required.filter_map(Json::as_str) {
                    if !types.iter().any(|(n, _)| &**n == name) {
                        return Some(format!("the server requires a field `{name}` in it"));
                    }
                }
                let properties = schema.get("properties").and_then(Json::as_object);
                let closed = schema.get("additionalProperties") == Some(&Json::Bool(false));
                types.iter().find_map(|(n, t)| match properties.and_then(|ps| ps.get(&**n)) {
                    Some(part) => {
                        self.refuses(part, t, depth + 1).map(|why| format!("of its field `{n}` {why}"))
                    }
                    None => closed.then(|| format!("the server allows no field `{n}` in it")),
                })
            }
            _ => None,
        }
    }

    /// Returns the reason why no value of the schema has the type.
    fn never_gives(&self, schema: &'a Json, ty: &Type, depth: usize) -> Option<String> {
        if self.is_enough(depth) || matches!(ty, Type::Dyn) {
            return None;
        }
        let schema = self.resolve(schema);
        let given = self.kinds(schema, depth);
        if given & kinds_of_type(ty) == 0 {
            return Some(format!("the server returns {}", shown(given)));
        }
        match ty {
            Type::Refined(r) => self.never_gives(schema, &r.0, depth + 1),
            Type::Rec(r) => self.never_gives(schema, &r.unfold(), depth + 1),
            Type::Record(types) if given == OBJECT => {
                let properties = schema.get("properties").and_then(Json::as_object)?;
                let closed = schema.get("additionalProperties") == Some(&Json::Bool(false));
                types.iter().find_map(|(n, t)| match properties.get(&**n) {
                    Some(part) => {
                        self.never_gives(part, t, depth + 1).map(|why| format!("of its field `{n}` {why}"))
                    }
                    None if closed && !matches!(t, Type::Option(_) | Type::Dyn) => {
                        Some(format!("the server returns no field `{n}`"))
                    }
                    None => None,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::{LabelSpec, ToolParam};
    use diagnostics::{FileId, Span};
    use serde_json::json;

    fn compare(params: &[(&str, Type)], result: Type, input: Json, output: Option<Json>) -> Option<String> {
        let at = Span { file: FileId(0), start: 0, end: 0 };
        let param = |(n, t): &(&str, Type)| ToolParam {
            name: (*n).into(),
            ty: t.clone(),
            bound: LabelSpec::BOTTOM,
            default: None,
        };
        let decl = ToolDecl {
            params: params.iter().map(param).collect(),
            result,
            ..ToolDecl::unknown("t".into(), at)
        };
        difference(&decl, input.as_object().unwrap(), output.as_ref().map(|o| o.as_object().unwrap()))
    }

    fn weather() -> Json {
        json!({"type": "object", "properties": {
            "city": {"type": "string"},
            "days": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null},
            "unit": {"$ref": "#/$defs/Unit"},
        }, "required": ["city"], "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}}})
    }

    #[test]
    fn a_declaration_that_fits_has_no_difference() {
        let params = [("city", Type::Str), ("days", Type::option(Type::Num))];
        assert_eq!(compare(&params, Type::Str, weather(), None), None);
        assert_eq!(compare(&params[..1], Type::Dyn, weather(), None), None);
        assert_eq!(compare(&[("x", Type::Num)], Type::Num, json!({"type": "object"}), None), None);
        let wrapped =
            json!({"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]});
        assert_eq!(compare(&[], Type::Num, json!({"type": "object"}), Some(wrapped)), None);
    }

    #[test]
    fn every_difference_is_named() {
        let city = ("city", Type::Str);
        let say = |params: &[(&str, Type)]| compare(params, Type::Dyn, weather(), None).unwrap();
        assert_eq!(say(&[]), "the server requires the parameter `city`, which the declaration lacks");
        assert_eq!(
            say(&[city.clone(), ("town", Type::Str)]),
            "the server knows no parameter `town`; it has `city`, `days`, `unit`"
        );
        assert_eq!(
            say(&[("city", Type::Num)]),
            "the parameter `city` is declared as a number, but the server expects a string"
        );
        assert!(
            say(&[("city", Type::option(Type::Str))]).ends_with("but the server expects a string"),
            "required, so it cannot be left out"
        );
        assert_eq!(
            say(&[city, ("unit", Type::Str)]),
            "the parameter `unit` is declared as a string, but the server accepts only \"c\", \"f\""
        );
        let list =
            json!({"type": "object", "properties": {"xs": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(
            compare(&[("xs", Type::list(Type::Num))], Type::Dyn, list, None).unwrap(),
            "the parameter `xs` is declared as a list, but of its items the server expects a string"
        );
        let output =
            json!({"type": "object", "properties": {"n": {"type": "string"}}, "additionalProperties": false});
        let record = |n: &str| Type::record([(n.into(), Type::Num)]);
        assert!(
            compare(&[], record("n"), json!({}), Some(output.clone()))
                .unwrap()
                .ends_with("but of its field `n` the server returns a string")
        );
        assert!(
            compare(&[], record("m"), json!({}), Some(output.clone()))
                .unwrap()
                .ends_with("the server returns no field `m`")
        );
        assert!(
            compare(&[], Type::Num, json!({}), Some(output))
                .unwrap()
                .ends_with("but the server returns an object")
        );
    }

    #[test]
    fn maps_and_types_that_mention_themselves_are_compared() {
        let map =
            |values: Json| json!({"properties": {"m": {"type": "object", "additionalProperties": values}}});
        let numbers = Type::map(Type::Str, Type::Num);
        let say = |values: Json| compare(&[("m", numbers.clone())], Type::Dyn, map(values), None);
        assert_eq!(say(json!({"type": "number"})), None);
        assert_eq!(say(json!(true)), None);
        assert!(
            say(json!({"type": "string"}))
                .unwrap()
                .ends_with("but of its values the server expects a string")
        );
        assert!(say(json!(false)).unwrap().ends_with("allows no fields in it but those that it names"));
        let body = Type::record([
            ("name".into(), Type::Str),
            ("parts".into(), Type::list(Type::Var("Part".into()))),
        ]);
        let part = core_ir::RecType::new("Part".into(), [("Part".into(), body)].into()).unwrap();
        let part = Type::Rec(part.into());
        let schema = |name: &str| {
            json!({"properties": {"p": {"$ref": "#/$defs/Part"}}, "$defs": {"Part": {"type": "object", "properties": {
                "name": {"type": name}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}}}}}})
        };
        assert_eq!(compare(&[("p", part.clone())], Type::Dyn, schema("string"), None), None);
        let why = compare(&[("p", part.clone())], Type::Dyn, schema("number"), None).unwrap();
        assert!(why.ends_with("of its field `name` the server expects a number"), "{why}");
        let output = json!({"type": "object", "properties": {"name": {"type": "number"}}});
        let why = compare(&[], part, json!({}), Some(output)).unwrap();
        assert!(why.ends_with("of its field `name` the server returns a number"), "{why}");
    }

    #[test]
    fn schemas_that_refer_to_themselves_end() {
        let input = json!({"type": "object", "properties": {"x": {"$ref": "#/properties/x"}}});
        assert_eq!(compare(&[("x", Type::Num)], Type::Dyn, input, None), None);
        let deep = json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/l"}},
            "$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/l"}}}});
        let wide = json!({"type": "object", "properties": {"x": {"anyOf": vec![json!({"$ref": "#/properties/x"}); 50]}}});
        assert_eq!(compare(&[("x", Type::Num)], Type::Dyn, wide, None), None);
        let ty = (0..40).fold(Type::Num, |t, _| Type::list(t));
        assert_eq!(compare(&[("x", ty)], Type::Dyn, deep, None), None);
    }
}
