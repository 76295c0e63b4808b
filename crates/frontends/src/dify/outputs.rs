//! Outputs of nodes, and selectors that read a part of them.
//!
//! Invariant: a part that `find` calls given is a field of the term that the node compiles to, so that
//! reading it is no type error; whatever else a selector names is a finding where it stands, and is not read.
//!
//! Source: langgenius/dify, `api/core/workflow/nodes` (the `outputs` of each `NodeRunResult`).

use super::nodes::{parameter, structure};
use super::{DifyLowering, Flow};
use core_ir::{Data, Name, Num, TermId, Type};
use diagnostics::{Diagnostic, Span, clip};
use frontend_kit::doc::Node;
use frontend_kit::emit::codes;
use frontend_kit::kit::Kit;

/// Target of a selector.
enum Found {
    /// A part of the value, or what only the run can tell.
    Given,
    /// An input of a trigger that the export doesn't list.
    Asked,
    /// A value of the platform that is empty here.
    Empty(Data),
    /// A value of the platform that isn't known here.
    NotHere,
    /// A part that no node outputs.
    Nothing,
}

fn kind_of(data: Node<'_>) -> &str {
    data.get("type").and_then(|t| t.text()).unwrap_or("")
}

/// The type of a variable that the app is started with, where it is no text.
pub(super) fn started_with(variable: Node<'_>) -> Option<Type> {
    match variable.get("type").and_then(|t| t.text()) {
        Some("file" | "json_object") => Some(Type::Dyn),
        Some("file-list") => Some(Type::list(Type::Dyn)),
        _ => None,
    }
}

/// The parts of what a node gives here; nothing if only its tool, or the run, can tell.
pub(super) fn given(data: Node<'_>) -> Option<Vec<(Name, Type)>> {
    let fixed = |names: &[&str], ty: Type| names.iter().map(|n| (Name::from(*n), ty.clone())).collect();
    let listed = |key: &str, name: &str, ty: &dyn Fn(Node<'_>) -> Type| -> Vec<(Name, Type)> {
        let items = data.get(key).into_iter().flat_map(|v| v.items());
        items.filter_map(|v| Some((v.get(name)?.text()?.into(), ty(v)))).collect()
    };
    Some(match kind_of(data) {
        "start" => listed("variables", "variable", &|v| started_with(v).unwrap_or(Type::Str)),
        "llm" => {
            let mut all: Vec<(Name, Type)> = fixed(&["text"], Type::Str);
            all.extend(structure(data).map(|ty| ("structured_output".into(), ty)));
            all
        }
        "agent" => fixed(&["text"], Type::Str),
        "question-classifier" => fixed(&["class", "class_id", "class_name"], Type::Str),
        "parameter-extractor" => {
            let typed = |p: Node<'_>| parameter(p.get("type").and_then(|t| t.text()).unwrap_or("")).0;
            let mut all = listed("parameters", "name", &typed);
            all.extend([("__is_success".into(), Type::Num), ("__reason".into(), Type::Str)]);
            all
        }
        "template-transform" => fixed(&["output"], Type::Str),
        "answer" => fixed(&["answer"], Type::Str),
        "code" => {
            let outputs = data.get("outputs").filter(|o| o.is_mapping())?;
            outputs.entries().map(|e| (Name::from(e.name()), Type::Dyn)).collect()
        }
        "http-request" => fixed(&["body", "status_code", "headers", "files"], Type::Dyn),
        "document-extractor" => fixed(&["text"], Type::Dyn),
        "list-operator" => fixed(&["result", "first_record", "last_record"], Type::Dyn),
        "knowledge-retrieval" => fixed(&["result", "files"], Type::Dyn),
        "iteration" => fixed(&["output"], Type::list(Type::Dyn)),
        "loop" => {
            let mut all = listed("loop_variables", "label", &|_| Type::Dyn);
            all.push(("loop_round".into(), Type::Num));
            all
        }
        "variable-aggregator" | "variable-assigner" => {
            let settings = data.get("advanced_settings");
            if settings.and_then(|s| s.get("group_enabled")?.as_bool()) != Some(true) {
                return Some(fixed(&["output"], Type::Dyn));
            }
            let groups = settings.and_then(|s| s.get("groups")).into_iter().flat_map(|g| g.items());
            let names = groups.filter_map(|g| Some(Name::from(g.get("group_name")?.text()?)));
            names.map(|n| (n, Type::record([("output".into(), Type::Dyn)]))).collect()
        }
        "if-else" | "assigner" | "iteration-start" | "loop-start" | "loop-end" => Vec::new(),
        _ => return None,
    })
}

/// Returns whether a part of a node's output is a list, if that is known before the run.
pub(super) fn is_list(data: Node<'_>, part: &str) -> Option<bool> {
    let kind = kind_of(data);
    match (kind, part) {
        ("code", _) => Some(data.at(&["outputs", part])?.get("type")?.text()?.starts_with("array")),
        ("list-operator" | "knowledge-retrieval", "result") | ("tool", "json" | "files") => Some(true),
        ("tool", "text") => Some(false),
        _ => {
            let (_, ty) = given(data)?.into_iter().find(|(n, _)| **n == *part)?;
            match ty {
                Type::Dyn => None,
                ty => Some(matches!(ty, Type::List(_))),
            }
        }
    }
}

/// Returns the value of a part of a failed node's output.
pub(super) fn nothing_of(ty: &Type) -> Data {
    match ty {
        Type::Str => Data::str(""),
        Type::Num => Data::Num(Num::ZERO),
        Type::Bool => Data::Bool(false),
        Type::List(_) => Data::list(Vec::new()),
        Type::Record(fields) => Data::record(fields.iter().map(|(n, ty)| (n.clone(), nothing_of(ty)))),
        _ => Data::Null,
    }
}

fn find(data: Node<'_>, path: &[&str]) -> Found {
    let Some((first, rest)) = path.split_first() else { return Found::Given };
    let kind = kind_of(data);
    let fails = data.get("error_strategy").and_then(|s| s.text()).is_some_and(|s| s != "none");
    if matches!(*first, "error_message" | "error_type") && fails {
        return if rest.is_empty() { Found::Given } else { Found::Nothing };
    }
    if kind.starts_with("trigger-") {
        let lists = ["variables", "params", "headers", "body"];
        let mut named = lists.iter().flat_map(|l| data.get(l)).flat_map(|l| l.items());
        let is_it = |v: Node<'_>| {
            ["variable", "name"].iter().any(|k| v.get(k).and_then(|n| n.text()) == Some(*first))
        };
        return if named.any(is_it) && rest.is_empty() { Found::Given } else { Found::Asked };
    }
    let Some(fields) = given(data) else { return Found::Given };
    let Some((_, ty)) = fields.iter().find(|(n, _)| **n == **first) else {
        let list = || Data::list(Vec::new());
        return match (kind, *first) {
            ("llm" | "agent", "files") | ("agent", "json") if rest.is_empty() => Found::Empty(list()),
            ("llm", "reasoning_content") if rest.is_empty() => Found::Empty(Data::str("")),
            ("llm" | "agent" | "question-classifier", "usage")
            | ("llm" | "agent", "files")
            | ("agent", "json")
            | ("parameter-extractor", "__usage")
            | ("if-else", "result" | "selected_case_id") => Found::NotHere,
            _ => Found::Nothing,
        };
    };
    let mut ty = ty;
    for part in rest {
        ty = match ty {
            Type::Dyn => return Found::Given,
            Type::Record(fields) => match fields.iter().find(|(n, _)| **n == **part) {
                Some((_, ty)) => ty,
                None => return Found::Nothing,
            },
            // It may be left out.
            Type::Option(_) => return Found::NotHere,
            _ => return Found::Nothing,
        };
    }
    Found::Given
}

impl<'d> Flow<'_, 'd> {
    /// The settings of a node, wherever it stands.
    fn settings(&self, id: &str) -> Option<Node<'d>> {
        let (_, node) = self.nodes.iter().find(|(n, _)| *n == id)?;
        Some(node.get("data").unwrap_or(*node))
    }
}

impl DifyLowering<'_, '_, '_> {
    /// Returns the replacement for a part that the output lacks, and reports it. `None` if the part exists.
    pub(super) fn instead(
        &self,
        kit: &mut Kit<'_>,
        path: &[&str],
        missing: &Data,
        at: Span,
    ) -> Option<TermId> {
        let (id, rest) = path.split_first()?;
        let Some(data) = self.flow.settings(id) else { return Some(absent(kit, path, None, at)) };
        let field = rest.join(".");
        match find(data, rest) {
            Found::Given => None,
            Found::Asked => {
                kit.typed_input(rest[0], Type::Dyn);
                let value = kit.input(rest[0], at);
                Some(rest[1..].iter().fold(value, |v, f| kit.b.add(core_ir::Term::Field(v, (*f).into()), at)))
            }
            Found::Empty(value) => {
                let why = format!("`{}` is left out: models and agents give a text here", clip(&field));
                kit.out.push(Diagnostic::info(codes::UNUSED_KEY, why, at));
                let in_text = matches!(missing, Data::Str(_));
                Some(if in_text { kit.text("", at) } else { kit.b.lit(value, at) })
            }
            Found::NotHere => {
                let why = format!("`{}` of a node of type `{}`", clip(&field), clip(kind_of(data)));
                Some(kit.undecided(codes::NOT_COMPILED, why, at))
            }
            Found::Nothing => Some(absent(kit, path, Some(data), at)),
        }
    }

    /// Returns true if no node outputs the target of a selector.
    pub(super) fn lacks(&self, path: &[&str]) -> bool {
        match path {
            [] | ["sys" | "env" | "conversation", ..] => false,
            [_, label, ..] if label.starts_with("sys.") => false,
            [id, ..] if self.flow.inside == Some(*id) || self.is_loop_around(id) => false,
            [id, rest @ ..] => {
                self.flow.settings(id).is_none_or(|data| matches!(find(data, rest), Found::Nothing))
            }
        }
    }

    /// Says that nothing gives what a selector names; the term does not know what is read there.
    pub(super) fn absent(&self, kit: &mut Kit<'_>, path: &[&str], at: Span) -> TermId {
        absent(kit, path, path.first().and_then(|id| self.flow.settings(id)), at)
    }
}

fn absent(kit: &mut Kit<'_>, path: &[&str], node: Option<Node<'_>>, at: Span) -> TermId {
    // Nodes have numbers; people know their titles.
    let title = node.and_then(|n| n.get("title")?.text()).filter(|t| !t.is_empty());
    let name = match (title, path) {
        (Some(title), [_, rest @ ..]) => format!("{title}.{}", rest.join(".")),
        _ => path.join("."),
    };
    kit.outline.missing(&name, at);
    kit.unknown(&format!("nothing gives {name} a value"), at)
}
