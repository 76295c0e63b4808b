//! Tools that JSON Schemas describe: their types and their declarations.
//!
//! Entry points: [`declaration`] and [`of_server`] for a tool, [`type_of_schema`] for a type.
//!
//! Invariant: what a schema says that is not understood here counts as anything. Bounds, patterns and
//! refinements are left to the run.

use core_ir::{Data, EnumType, LabelSpec, Name, RecType, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use runtime::ServerTool;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Schemas are followed down to this depth.
const MAX_DEPTH: usize = 24;

/// A tool as its owner describes it: an MCP server, or a function of Python.
#[derive(Clone, Copy, Debug)]
pub struct ToolSchemas<'a> {
    /// Its name in plans.
    pub name: &'a str,
    /// Its description, if it has one.
    pub description: Option<&'a str>,
    /// JSON Schema of the arguments, an object.
    pub takes: &'a Value,
    /// JSON Schema of the result, if it is known.
    pub gives: Option<&'a Value>,
}

/// The declaration of a tool of which only schemas are known. It is taken to change the world and to give
/// untrusted data, until a policy says otherwise.
///
/// # Errors
/// The name is none of a function, or the arguments are no object.
pub fn declaration(tool: &ToolSchemas<'_>, span: Span) -> Result<ToolDecl, String> {
    let name = tool.name;
    if !is_identifier(name) {
        return Err(format!("`{}` is no name of a function", diagnostics::clip(name)));
    }
    let reader = || SchemaReader::new(tool.takes);
    let properties = match tool.takes.get("properties") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(fields)) => fields.clone(),
        Some(_) => return Err(format!("the schema of the arguments of `{name}` has no properties")),
    };
    let required = tool.takes.get("required").and_then(Value::as_array);
    let is_required = |p: &str| required.is_some_and(|all| all.iter().any(|r| r.as_str() == Some(p)));
    let mut params = Vec::new();
    for (param, schema) in &properties {
        let ty = reader().read(schema, 0);
        let ty = if is_required(param) { ty } else { optional(ty) };
        // A default that is no value of the type is none.
        let default = schema.get("default").and_then(|d| Data::from_json(d).ok());
        let default = default.filter(|d| !is_required(param) && *d != Data::Null && ty.admits(d));
        // A parameter of any type may be left out, too, though its type doesn't say so.
        let default = default.or((ty == Type::Dyn && !is_required(param)).then_some(Data::Null));
        params.push(ToolParam { name: param.as_str().into(), ty, bound: LabelSpec::BOTTOM, default });
    }
    let result = tool.gives.map_or(Type::Dyn, type_of_schema);
    let description = tool.description.filter(|d| !d.trim().is_empty()).map(|d| d.trim().into());
    Ok(ToolDecl { params, result, description, ..ToolDecl::unknown(name.into(), span) })
}

/// A tool of an MCP server, under a name that a plan can call. A result that the server wraps as
/// `{"result": …}` has the type of what is inside.
///
/// # Errors
/// The arguments are no object.
pub fn of_server(server: &str, tool: &ServerTool, span: Span) -> Result<ToolDecl, String> {
    let name = identifier(&tool.name);
    let (description, takes) = (Some(&*tool.description), &tool.input);
    let mut decl = declaration(&ToolSchemas { name: &name, description, takes, gives: None }, span)?;
    decl.result = tool.output.as_ref().map_or(Type::Dyn, result_of_server);
    let at = [("server".into(), Data::str(server)), ("tool".into(), Data::str(tool.name.as_str()))];
    decl.handler = Some(Data::record([("mcp".into(), Data::record(at))]));
    Ok(decl)
}

/// The type of a server's result, by the schema that it says. What the server wraps as `{"result": …}` has
/// the type of what is inside.
pub fn result_of_server(schema: &Value) -> Type {
    let inner = schema.get("properties").and_then(Value::as_object).filter(|p| p.len() == 1);
    if let Some(inner) = inner.and_then(|p| p.get("result")) {
        let ty = SchemaReader::new(schema).read(inner, 0);
        // A result of any type is not unwrapped.
        if ty != Type::Dyn {
            return ty;
        }
    }
    type_of_schema(schema)
}

/// A name of Python for a tool: what no name may have is `_` in it.
fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.chars().next().is_none_or(|c| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// True for an ASCII name of Python.
fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Parts of a schema that are visited: a type that refers to itself twice has exponentially many.
const MAX_PARTS: u32 = 4000;

/// The type that a JSON Schema describes, as far as it is understood.
pub fn type_of_schema(schema: &Value) -> Type {
    SchemaReader::new(schema).read(schema, 0)
}

struct SchemaReader<'a> {
    root: &'a Value,
    /// Number of parts that may still be visited.
    left: u32,
    /// Schemas that are being read because a `$ref` names them, outermost first.
    open: Vec<Name>,
    /// Types that mention themselves or each other.
    bodies: BTreeMap<Name, Type>,
    /// Names of the schemas that a `$ref` names: the last part of it, if no other has it.
    names: BTreeMap<Name, &'a str>,
}

impl<'a> SchemaReader<'a> {
    fn new(root: &'a Value) -> SchemaReader<'a> {
        SchemaReader {
            root,
            left: MAX_PARTS,
            open: Vec::new(),
            bodies: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }

    /// The type that a `$ref` names. One that mentions itself is recursive.
    fn reference(&mut self, to: &'a str, depth: usize) -> Type {
        let short = Name::from(to.rsplit('/').next().unwrap_or(to));
        let name = if *self.names.entry(short.clone()).or_insert(to) == to { short } else { to.into() };
        if self.open.contains(&name) {
            return Type::Var(name);
        }
        let Some(target) = to.strip_prefix('#').and_then(|at| self.root.pointer(at)) else {
            return Type::Dyn;
        };
        self.open.push(name.clone());
        let ty = self.read(target, depth + 1);
        self.open.pop();
        // What it mentions, and what that mentions.
        let (mut all, mut left) = (vec![(name.clone(), ty.clone())], mentioned(&ty));
        let (mut is_recursive, mut is_closed) = (false, true);
        while let Some(other) = left.pop() {
            if other == name {
                is_recursive = true;
            } else if all.iter().all(|(n, _)| *n != other) {
                match self.bodies.get(&other).filter(|_| !self.open.contains(&other)) {
                    Some(body) => {
                        left.extend(mentioned(body));
                        all.push((other, body.clone()));
                    }
                    // It is not read to its end, and takes this one along.
                    None => is_closed = false,
                }
            }
        }
        if !is_recursive {
            return ty;
        }
        // The body of a recursive type is a list, a map, a record or has cases.
        if !matches!(ty, Type::List(_) | Type::Map(_) | Type::Record(_) | Type::Variant(_)) {
            return Type::Dyn;
        }
        if !is_closed {
            self.bodies.insert(name.clone(), ty);
            return Type::Var(name);
        }
        RecType::new(name, all.into()).map_or(Type::Dyn, |r| Type::Rec(Arc::new(r)))
    }

    fn read(&mut self, schema: &'a Value, depth: usize) -> Type {
        self.left = self.left.saturating_sub(1);
        if depth > MAX_DEPTH || self.left == 0 {
            return Type::Dyn;
        }
        let Value::Object(fields) = schema else { return Type::Dyn };
        if let Some(to) = fields.get("$ref").and_then(Value::as_str) {
            return self.reference(to, depth);
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
                let properties = match fields.get("properties") {
                    Some(Value::Object(properties)) if !properties.is_empty() => properties,
                    other => return self.map(fields, other.is_some_and(Value::is_object), depth),
                };
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

    /// An object without fields that are known: a map, if the schema says of which values.
    fn map(&mut self, fields: &'a Map<String, Value>, is_record: bool, depth: usize) -> Type {
        let values = match fields.get("additionalProperties") {
            Some(values @ Value::Object(of)) if !of.is_empty() => self.read(values, depth + 1),
            _ if is_record => return Type::record([]),
            _ => return Type::Dyn,
        };
        let names = fields.get("propertyNames").and_then(Value::as_object).and_then(names_of);
        Type::map(names.unwrap_or(Type::Str), values)
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

/// The variables of a type.
fn mentioned(ty: &Type) -> Vec<Name> {
    let (mut found, mut left) = (Vec::new(), vec![ty]);
    while let Some(ty) = left.pop() {
        match ty {
            Type::Var(name) => found.push(name.clone()),
            Type::List(of) | Type::Option(of) => left.push(of),
            Type::Record(parts) | Type::Variant(parts) => left.extend(parts.iter().map(|(_, t)| t)),
            Type::Map(p) => left.extend([&p.0, &p.1]),
            // Those of a recursive type are its own; no other type is made from a schema.
            _ => {}
        }
    }
    found
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
    Type::Enum(Arc::new(EnumType::new("one", variants)))
}

fn optional(ty: Type) -> Type {
    match ty {
        ty @ (Type::Option(_) | Type::Dyn | Type::Null) => ty,
        ty => Type::option(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rec(of: &Type) -> RecType {
        match of {
            Type::Rec(r) => (**r).clone(),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn objects_of_values_are_maps() {
        let numbers = json!({"type": "object", "additionalProperties": {"type": "integer"}});
        assert_eq!(type_of_schema(&numbers), Type::map(Type::Str, Type::Num));
        let keyed = json!({"type": "object", "properties": {}, "propertyNames": {"enum": ["a", "b"]},
            "additionalProperties": {"type": "array", "items": {"type": "string"}}});
        let keys = enumeration(vec!["a".into(), "b".into()]);
        assert_eq!(type_of_schema(&keyed), Type::map(keys, Type::list(Type::Str)));
        for open in [json!({"type": "object"}), json!({"type": "object", "additionalProperties": true})] {
            assert_eq!(type_of_schema(&open), Type::Dyn);
        }
        let record = json!({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"],
            "additionalProperties": {"type": "integer"}});
        assert_eq!(type_of_schema(&record), Type::record([("a".into(), Type::Null)]));
    }

    #[test]
    fn schemas_that_refer_to_themselves_are_recursive_types() {
        // As pydantic and schemars write them.
        let comment = json!({
            "$defs": {"Comment": {"type": "object", "required": ["text", "replies"], "properties": {
                "text": {"type": "string"},
                "replies": {"type": "array", "items": {"$ref": "#/$defs/Comment"}},
                "next": {"anyOf": [{"$ref": "#/$defs/Comment"}, {"type": "null"}]},
            }}},
            "$ref": "#/$defs/Comment",
        });
        let of_comment = rec(&type_of_schema(&comment));
        let itself = Type::Rec(Arc::new(of_comment.clone()));
        let body = Type::record([
            ("text".into(), Type::Str),
            ("replies".into(), Type::list(itself.clone())),
            ("next".into(), Type::option(itself)),
        ]);
        assert_eq!(&**of_comment.name(), "Comment");
        assert_eq!(of_comment.unfold(), body);
        let deep = json!({"text": "a", "replies": [{"text": "b", "replies": [], "next": {"text": 3, "replies": []}}]});
        let wrong = type_of_schema(&comment).read_input(&deep).unwrap_err();
        assert!(wrong.message.contains("$.replies[0].next.text"), "{}", wrong.message);

        // Two that mention each other, one of them itself, too, and one that is mentioned twice.
        let block = json!({
            "definitions": {
                "Block": {"type": "object", "required": ["items", "id"], "properties": {
                    "items": {"type": "array", "items": {"$ref": "#/definitions/Item"}},
                    "id": {"$ref": "#/definitions/Id"},
                }},
                "Item": {"type": "object", "required": ["block", "more", "id"], "properties": {
                    "block": {"anyOf": [{"$ref": "#/definitions/Block"}, {"type": "null"}]},
                    "more": {"type": "object", "additionalProperties": {"$ref": "#/definitions/Item"}},
                    "id": {"$ref": "#/definitions/Id"},
                }},
                "Id": {"type": "string"},
            },
            "type": "object", "properties": {"a": {"$ref": "#/definitions/Block"}, "b": {"$ref": "#/definitions/Item"}},
            "required": ["a", "b"],
        });
        let Type::Record(fields) = type_of_schema(&block) else { panic!("no record") };
        assert_eq!(rec(&fields[0].1).bodies().len(), 2);
        let of = |ty: &Type, json: Value| ty.read_input(&json).is_ok();
        let item = |block: Value, id: Value| json!({"block": block, "more": {"k": {"block": null, "more": {}, "id": id}}, "id": "i"});
        let block = |id: Value| json!({"items": [item(json!({"items": [], "id": "x"}), id)], "id": "y"});
        assert!(of(&fields[0].1, block(json!("z"))) && !of(&fields[0].1, block(json!(1))));
        assert!(
            of(&fields[1].1, item(Value::Null, json!("z"))) && !of(&fields[1].1, item(json!([]), json!("z")))
        );

        // Any JSON, and what refers to nothing but itself, is anything.
        let any = json!({"$defs": {"Json": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]}},
            "$ref": "#/$defs/Json"});
        assert_eq!(type_of_schema(&any), Type::Dyn);
        let round =
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        assert_eq!(type_of_schema(&round), Type::Dyn);
        // The root.
        let list = json!({"type": "array", "items": {"$ref": "#"}});
        let Type::List(inner) = type_of_schema(&list) else { panic!("no list") };
        assert_eq!(rec(&inner).unfold(), Type::list((*inner).clone()));
    }

    #[test]
    fn an_argument_of_any_type_may_be_left_out() {
        let takes = json!({
            "properties": {
                "a": {}, "b": {}, "c": {"default": null}, "d": {"default": 5}, "e": {"type": "object"},
                "f": {"type": "string"}, "g": {"type": "integer", "default": 1}
            },
            "required": ["a"],
        });
        let tool = ToolSchemas { name: "f", description: None, takes: &takes, gives: None };
        let span = Span { file: diagnostics::FileId(0), start: 0, end: 0 };
        let decl = declaration(&tool, span).unwrap();
        let defaults: Vec<_> = decl.params.iter().map(|p| p.default.clone()).collect();
        let (null, number) = (Some(Data::Null), |n: i64| Some(Data::Num(n.into())));
        // The type of `f` says so.
        assert_eq!(defaults, [None, null.clone(), null.clone(), number(5), null, None, number(1)]);
    }
}
