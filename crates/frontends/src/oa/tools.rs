//! Tools of tasks: built into the runner, of MCP servers, or Python classes.

use super::Task;
use core_ir::{Data, EffectClass, LabelSpec, Name, Term, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, clip};
use frontend_kit::conversation::{CallEffect, Choice};
use frontend_kit::emit::{codes, near};
use frontend_kit::kit::Kit;
use frontend_kit::shape::of_schema;

/// The tools of the runner: identifier, name for models, parameters, what they do.
const NATIVE: &[(&str, &str, &[&str], EffectClass)] = &[
    ("file.read", "file_read", &["path"], EffectClass::Read),
    ("file.write", "file_write", &["path", "content"], EffectClass::Write),
    ("http.get", "http_get", &["url"], EffectClass::Read),
    ("http.post", "http_post", &["url", "body"], EffectClass::Write),
    ("env.read", "env_read", &["name"], EffectClass::Read),
];

/// Reads the tools that the model of a task may call.
pub(super) fn choices(kit: &mut Kit<'_>, task: Task<'_>) -> Vec<Choice> {
    let declared = task.spec.root.get("tools");
    let mut out = Vec::new();
    for item in task.node.get("tools").into_iter().flat_map(|t| t.items()) {
        let name = item.text().unwrap_or("");
        let Some(tool) = declared.and_then(|d| d.get(name)) else {
            let message = format!("unknown tool `{}`", clip(name));
            let known: Vec<&str> =
                declared.into_iter().flat_map(|d| d.entries()).filter_map(|e| e.key.text()).collect();
            let d = Diagnostic::error(codes::UNDEFINED, message, item.span());
            kit.out.push(match near(name, known, &*kit.out) {
                Some(near) => d.help(format!("did you mean `{near}`?")),
                None => d.help("declare it under `tools`"),
            });
            continue;
        };
        let at = item.span();
        let text = |key: &str| tool.get(key).and_then(|t| t.text());
        let mut decl = ToolDecl {
            description: text("description").map(Name::from),
            ..ToolDecl::unknown(name.into(), at)
        };
        let native = text("native").unwrap_or("");
        match text("type").unwrap_or("") {
            "native" => match NATIVE.iter().find(|(id, ..)| *id == native) {
                Some((_, called, params, effect)) => {
                    decl.name = (*called).into();
                    decl.effect = *effect;
                    decl.result = Type::Str;
                    let param = |p: &&str| ToolParam {
                        name: (*p).into(),
                        ty: Type::Str,
                        bound: LabelSpec::BOTTOM,
                        default: None,
                    };
                    decl.params = params.iter().map(param).collect();
                    if native == "env.read" {
                        decl.label = LabelSpec::Axes { untrusted: false, secret: true };
                    }
                }
                None => {
                    let message = format!("the runner has no tool `{}`", clip(native));
                    let help = "it has `file.read`, `file.write`, `http.get`, `http.post` and `env.read`";
                    kit.out.push(Diagnostic::error(codes::UNDEFINED, message, tool.head()).help(help));
                    continue;
                }
            },
            // Which tools a server has is known when it is asked.
            "mcp" => decl.handler = Some(Data::record([(Name::from("mcp"), Data::str(name))])),
            _ => {
                let given = tool.get("parameters").map(|p| of_schema(p, 0));
                if let Some(Type::Record(fields)) = given {
                    let param = |(name, ty): &(Name, Type)| ToolParam {
                        name: name.clone(),
                        ty: ty.clone(),
                        bound: LabelSpec::BOTTOM,
                        default: None,
                    };
                    decl.params = fields.iter().map(param).collect();
                }
            }
        }
        let does = match allowed(task, &[name, native, &decl.name]) {
            true => CallEffect::Call,
            false => {
                let message = format!("the sandbox does not allow `{}`", clip(name));
                let message = kit.text(&message, at);
                CallEffect::Show(kit.b.add(Term::Fail(message), at))
            }
        };
        out.push(Choice::new(decl, does));
    }
    out
}

/// Returns true if the sandbox allows a tool with these names. The task's settings replace those of the file.
fn allowed(task: Task<'_>, names: &[&str]) -> bool {
    const PATH: &[&str] = &["sandbox", "tools"];
    let Some(tools) = task.node.at(PATH).or_else(|| task.spec.root.at(PATH)) else { return true };
    let listed = |key: &str| {
        let list = tools.get(key).filter(|l| l.is_sequence())?;
        Some(list.items().any(|i| i.text().is_some_and(|t| !t.is_empty() && names.contains(&t))))
    };
    listed("allow").unwrap_or(true) && !listed("deny").unwrap_or(false)
}
