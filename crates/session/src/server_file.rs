//! Tools of servers as a file of the language `.agent`, which `use mcp "server";` imports.
//!
//! Entry point: [`of_lock`].
//!
//! Invariant: a program is checked without asking a server. The declarations are those that `entail.lock`
//! pins, so one lock gives one text.
//! Invariant: nothing is trusted because a server says so. Every tool writes, and what it returns is
//! untrusted, until a policy says otherwise.

use crate::tool_schemas::of_server;
use core_ir::{Name, ToolDecl, Type};
use diagnostics::{FileId, Span, clip};
use runtime::{Pins, ServerTool};
use std::collections::HashSet;
use std::fmt::Write as _;
use syntax::agent::keywords::is_reserved;
use syntax::agent::spelling::{comment, is_name, string, tool_of};

/// Parts of a type that are written. A type with more is `Any`.
const MAX_PARTS: usize = 2_000;

/// The tools of a server as declarations.
///
/// # Errors
/// The lock has no definitions of this server, or other ones than it pins; with the remedy.
pub fn of_lock(pins: &Pins, server: &str) -> Result<String, (String, String)> {
    let shown = clip(server);
    match pins.definitions(server) {
        Some(Ok(tools)) => Ok(declarations(server, &tools)),
        None if pins.knows(server) => Err((
            format!("`entail.lock` has hashes of the tools of `{shown}`, but not what they take and return"),
            format!("`entail lock --update {shown}` asks the server and writes it"),
        )),
        None => Err((
            format!("`entail.lock` has no server `{shown}`"),
            format!(
                "`entail lock {shown}` asks the server of `[mcp.{shown}]` in `entail.toml` for its tools"
            ),
        )),
        Some(Err(why)) => Err((
            format!("`entail.lock` is wrong about the server `{shown}`: {why}"),
            format!("`entail lock --update {shown}` writes it anew"),
        )),
    }
}

/// The declarations of tools. One that can't be declared is a comment that says why.
fn declarations(server: &str, tools: &[ServerTool]) -> String {
    let at = Span { file: FileId(0), start: 0, end: 0 };
    let mut out = format!("-- Tools of the MCP server `{}`, as `entail.lock` pins them.\n", comment(server));
    let mut names = HashSet::new();
    for tool in tools {
        let text = of_server(server, tool, at).and_then(|decl| declaration(server, tool, &decl, &mut names));
        match text {
            Ok(text) => out.push_str(&text),
            // Writing to a string cannot fail.
            Err(why) => {
                _ = writeln!(out, "\n-- `{}` can't be declared: {}", comment(&tool.name), comment(&why))
            }
        }
    }
    out
}

fn declaration(
    server: &str,
    tool: &ServerTool,
    decl: &ToolDecl,
    names: &mut HashSet<String>,
) -> Result<String, String> {
    let mut name = decl.name.to_string();
    while is_reserved(&name) || name == "final" || !names.insert(name.clone()) {
        name.push('_');
    }
    // Those that a call must give come first, in the order in which the schema requires them.
    let required = tool.input["required"].as_array().map_or(&[][..], Vec::as_slice);
    let place = |name: &str| required.iter().position(|r| r.as_str() == Some(name)).unwrap_or(usize::MAX);
    let mut all: Vec<_> = decl.params.iter().collect();
    all.sort_by_cached_key(|p| (place(&p.name), p.name.clone()));
    let mut params = Vec::new();
    for p in all {
        let optional = matches!(p.ty, Type::Option(_)) || p.default.is_some();
        if !is_name(&p.name) {
            match optional {
                true => continue,
                false => return Err(format!("`{}` can't be the name of a parameter", clip(&p.name))),
            }
        }
        let ty = written(&p.ty);
        params.push(match optional {
            true if ty.starts_with("Option[") => format!("{}: {ty} = null", p.name),
            true => format!("{}: Option[{ty}] = null", p.name),
            false => format!("{}: {ty}", p.name),
        });
    }
    let mut out = String::from("\n");
    if let Some(about) = decl.description.as_deref().map(comment).filter(|d| !d.is_empty()) {
        let _ = writeln!(out, "-- {about}");
    }
    let _ = writeln!(
        out,
        "tool {name}({}) -> {} as {} writes untrusted {{ mcp {} {} }}",
        params.join(", "),
        written(&decl.result),
        string(&tool_of(server, &name)),
        string(server),
        string(&tool.name)
    );
    Ok(out)
}

/// A type as the language writes it. What it can't say is wider: `Any`.
fn written(ty: &Type) -> String {
    let mut left = MAX_PARTS;
    write_type(ty, &mut left).unwrap_or_else(|| "Any".into())
}

fn write_type(ty: &Type, left: &mut usize) -> Option<String> {
    *left = left.checked_sub(1)?;
    // As deep as schemas are read.
    Some(match ty {
        Type::Str => "String".into(),
        Type::Num => "Number".into(),
        Type::Bool => "Bool".into(),
        Type::List(item) => format!("List[{}]", inner(item, left)?),
        Type::Option(item) => match inner(item, left)? {
            any if any == "Any" => any,
            item => format!("Option[{item}]"),
        },
        Type::Map(of) if matches!(of.0, Type::Str | Type::Enum(_)) => {
            format!("Map[{}, {}]", inner(&of.0, left)?, inner(&of.1, left)?)
        }
        Type::Record(fields) if fields.iter().all(|(n, _)| is_name(n)) => {
            let field = |(n, t): &(Name, Type)| Some(format!("{n}: {}", inner(t, left)?));
            format!("Obj{{{}}}", fields.iter().map(field).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Type::Enum(e) => {
            *left = left.checked_sub(e.variants.len())?;
            e.variants.iter().map(|v| string(v)).collect::<Vec<_>>().join(" | ")
        }
        _ => "Any".into(),
    })
}

/// A part of a type. Where it is too large, the whole is.
fn inner(ty: &Type, left: &mut usize) -> Option<String> {
    write_type(ty, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnostics::Sources;
    use serde_json::{Value, json};

    /// The declarations of a server's tools, which are a program without findings.
    fn declared(server: &str, tools: &[ServerTool]) -> String {
        let mut pins = Pins::default();
        pins.approve(server, tools);
        let text = of_lock(&Pins::parse(&pins.to_toml()).unwrap(), server).unwrap();
        let file = Sources::new().add("server", text.as_str());
        let (module, found) = agentlang::check(file, &text);
        assert!(module.is_some() && found.is_empty(), "{found:?}\n{text}");
        text
    }

    fn takes(properties: Value, required: Value) -> Value {
        json!({"type": "object", "properties": properties, "required": required})
    }

    #[test]
    fn schemas_become_types() {
        let input = takes(
            json!({"query": {"type": "string"}, "state": {"enum": ["open", "closed"]}, "page": {"type": "integer"},
                "any": {}, "labels": {"type": "object", "additionalProperties": {"type": "boolean"}}}),
            json!(["query", "labels"]),
        );
        let output = json!({"type": "object", "required": ["items"], "properties": {
            "items": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "number"}, "content-type": {"type": "string"}}}},
            "next": {"anyOf": [{"type": "string"}, {"type": "null"}]}}});
        let tool = ServerTool::new("search-issues", "Finds\n  issues. -- \"}", input, Some(output));
        let expected = "-- Tools of the MCP server `git hub`, as `entail.lock` pins them.\n\n\
            -- Finds issues. -- \"}\n\
            tool search_issues(query: String, labels: Map[String, Bool], any: Option[Any] = null, \
            page: Option[Number] = null, state: Option[\"open\" | \"closed\"] = null) -> \
            Obj{items: List[Any], next: Option[String]} as \"git_hub__search_issues\" writes untrusted \
            { mcp \"git hub\" \"search-issues\" }\n";
        assert_eq!(declared("git hub", &[tool]), expected);
    }

    #[test]
    fn names_that_the_language_does_not_have_get_others() {
        let none = || json!({"type": "object"});
        let names = ["a-b", "a.b", "a b", "let", "final", "9lives", "", "é", "match", "a\u{202e}\n\"b"];
        let tools: Vec<ServerTool> = names.iter().map(|n| ServerTool::new(n, "", none(), None)).collect();
        let text = declared("s\"\n\\", &tools);
        for name in ["a_b(", "a_b_(", "a_b__(", "let_(", "final_(", "_9lives(", "match("] {
            assert!(text.contains(&format!("tool {name}")), "{name} is not in\n{text}");
        }
        // A parameter that must be given and has no name of the language.
        let weird = |required| {
            ServerTool::new("weird", "", takes(json!({"from-date": {}, "if": {}}), required), None)
        };
        assert!(declared("s", &[weird(json!([]))]).contains("tool weird() -> Any"));
        let left_out = declared("s", &[weird(json!(["if"]))]);
        assert!(left_out.contains("-- `weird` can't be declared: `if` can't be the name"), "{left_out}");
        let text = json!({"enum": ["a\"b", "c\\", "d\n\u{7}", "{x}"]});
        assert!(
            declared("s", &[ServerTool::new("t", "", none(), Some(text))]).contains("\"a\\\"b\" | \"c\\\\\"")
        );
    }

    #[test]
    fn servers_with_very_many_tools_and_very_large_schemas() {
        let input = || takes(json!({"x": {"type": "string"}}), json!(["x"]));
        let many: Vec<ServerTool> =
            (0..10_000).map(|i| ServerTool::new(&format!("tool-{i}"), "Does it.", input(), None)).collect();
        assert_eq!(declared("many", &many).matches("\ntool ").count(), 10_000);
        let fields: serde_json::Map<String, Value> =
            (0..50_000).map(|i| (format!("f{i}"), json!({"type": "string"}))).collect();
        let wide = json!({"type": "object", "properties": fields});
        let deep =
            (0..100).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
        let doubled = (0..40).fold(json!({"type": "string"}), |inner, i| {
            json!({"$defs": {format!("d{i}"): inner}, "type": "object", "properties": {
                "a": {"$ref": format!("#/$defs/d{i}")}, "b": {"$ref": format!("#/$defs/d{i}")}}})
        });
        let tools = [wide, deep, doubled].map(|s| ServerTool::new("large", "", input(), Some(s)));
        let text = declared("large", &[tools[0].clone()]);
        assert!(text.contains("-> Any as"), "{}", &text[..300]);
        declared("large", &[tools[1].clone()]);
        declared("large", &[tools[2].clone()]);
    }
}
