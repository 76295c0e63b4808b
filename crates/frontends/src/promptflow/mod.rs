//! Prompt flow (`flow.dag.yaml`): nodes that refer to one another by `${node.output}`.
//!
//! `llm` nodes are oracles, their prompts Jinja files beside; `python`, `prompt` and other nodes are tools.
//! The graph is the references. Of variants, the default one counts.
//!
//! Source: microsoft/promptflow, `src/promptflow-core/promptflow/_schemas`.

use core_ir::{ModelParams, Name, Term, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, value_span};
use frontend_kit::flow::{Flow, FlowNode, by_tool};
use frontend_kit::kit::{Kit, Units, first_text, mark, setting};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use std::sync::Arc;

/// The front end.
pub struct PromptFlow;

impl Frontend for PromptFlow {
    fn name(&self) -> &'static str {
        "promptflow"
    }

    fn detect(&self, file: &File) -> u8 {
        let node = |n: Node<'_>| mark::has(n, "source") || mark::has(n, "use_variants");
        let sure = |r: Node<'_>| {
            r.get("inputs").is_some_and(|i| i.is_mapping()) && mark::list(r, &["nodes"], node)
                || mark::starts(r, "$schema", "https://azuremlschemas") && mark::has(r, "nodes")
        };
        if mark::any(file, sure) { 89 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the connection decides on the model"),
            ends_loops: None,
            words: Words {
                model: "name one: `inputs.model` or `inputs.deployment_name`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            if root.get("nodes").is_some_and(|n| n.items().len() > 0) {
                let name = root.get("name").and_then(|n| n.text()).unwrap_or("flow");
                units.add(name, UnitKind::Crew, root.head(), |kit| flow(kit, root, root.head()));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the flow has no nodes")
    }
}

fn flow(kit: &mut Kit<'_>, root: Node<'_>, at: Span) -> TermId {
    let items: Vec<Node<'_>> = root.get("nodes").into_iter().flat_map(|n| n.items()).collect();
    let names: Vec<&str> = items.iter().map(|n| n.get("name").and_then(|n| n.text()).unwrap_or("")).collect();
    let mut nodes = Vec::new();
    let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
    for (node, name) in items.iter().zip(&names) {
        // The default variant of a node stands elsewhere.
        let variants = root.at(&["node_variants", name]);
        let default = variants.and_then(|v| v.get("default_variant_id")?.text());
        let chosen = default.and_then(|d| variants?.at(&["variants", d, "node"]));
        let node = chosen
            .filter(|_| node.get("use_variants").and_then(|u| u.as_bool()) == Some(true))
            .unwrap_or(*node);
        let place = node.head();
        let mut read: Vec<usize> = Vec::new();
        for text in node.descendants().filter_map(|n| n.as_str()) {
            for reference in text.split("${").skip(1) {
                let from = reference.split(['.', '}']).next().unwrap_or("");
                match names.iter().position(|n| *n == from) {
                    Some(i) if from != *name => read.push(i),
                    None if reference.contains(".output}") && from != "inputs" => {
                        kit.outline.missing(from, place);
                    }
                    _ => {}
                }
            }
        }
        // Inputs have names: their order means nothing.
        read.sort_unstable();
        edges.extend(read.into_iter().map(|i| (names[i].to_string(), name.to_string(), None)));
        let kind = node.get("type").and_then(|t| t.text()).unwrap_or("");
        nodes.push(match kind {
            "llm" | "custom_llm" => {
                FlowNode::new(*name, *name, place, move |kit, x| oracle(kit, node, name, x, place))
            }
            _ => FlowNode::new(*name, *name, place, move |kit, x| by_tool(kit, name, x, place)),
        });
    }
    let bound = LoopBound::unknown("a flow without cycles");
    Flow { nodes, edges, start: Vec::new(), triggers: false, bound, at }.lower(kit)
}

fn oracle(kit: &mut Kit<'_>, node: Node<'_>, name: &str, input: TermId, at: Span) -> TermId {
    let inputs = node.get("inputs").unwrap_or(node);
    let mut params = ModelParams { purpose: Some(name.into()), ..ModelParams::default() };
    let named = first_text(inputs, &["model", "deployment_name"]);
    params.model = named.map(|(t, _)| Name::from(t));
    for key in ["temperature", "max_tokens", "top_p"] {
        if let Some(e) = inputs.entry(key).filter(|e| e.value.text().is_some_and(|t| !t.contains("${"))) {
            setting(&e, &mut params, kit.out);
        }
    }
    let path = node.at(&["source", "path"]).and_then(|p| p.text()).unwrap_or("another file");
    let place = node.get("source").and_then(|s| s.entry("path")).map_or(at, |e| value_span(&e));
    let prompt = kit.unknown(&format!("the prompt in {path}"), place);
    let model_at = named.map_or(at, |(_, e)| value_span(&e));
    let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at);
    kit.b.app(oracle, input, at)
}
