//! Tools that JSON Schemas describe: their types and their declarations.
//!
//! Entry points: [`declaration`] and [`of_server`] for a tool, [`type_of_schema`] for a type.
//!
//! Invariant: what a schema says that is not understood here counts as anything. Bounds, patterns and
//! refinements are left to the run.

use core_ir::{Data, EnumType, LabelSpec, Name, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use runtime::ServerTool;
use serde_json::{Map, Value};
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
    let reader = || SchemaReader { root: tool.takes, left: MAX_PARTS };
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
        let ty = SchemaReader { root: schema, left: MAX_PARTS }.read(inner, 0);
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
    SchemaReader { root: schema, left: MAX_PARTS }.read(schema, 0)
}

struct SchemaReader<'a> {
    root: &'a Value,
    /// Number of parts that may still be visited.
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
