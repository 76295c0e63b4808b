//! watsonx Orchestrate agents (ADK YAML, `spec_version`).
//!
//! `tools` are tools, `collaborators` helpers; guidelines that name a tool are part of the instructions.
//! Agents of kind `external` are unknown: a service answers for them. Collaborators in other files are
//! unknown unless they are loaded.
//!
//! Source: IBM/ibm-watsonx-orchestrate-adk, `agent_builder/agents/types.py`.

use core_ir::TermId;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, codes, value_span};
use frontend_kit::kit::{Action, Kit, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

/// The front end.
pub struct Watsonx;

const SHAPE: Shape = Shape {
    what: "a watsonx Orchestrate agent",
    name: &["name"],
    prompt: &["instructions"],
    model: &["llm", "model"],
    tools: &["tools", "toolkits"],
    end: None,
    bound: &[],
    also: &["spec_version", "kind", "style", "collaborators", "guidelines", "knowledge_base"],
    unused: &[
        ("description", "it tells other agents what this one is for"),
        ("display_name", why::SHOWN),
        ("title", why::SHOWN),
        ("tags", why::SHOWN),
        ("icon", why::SHOWN),
        ("category", why::SHOWN),
        ("publisher", why::SHOWN),
        ("version", why::SHOWN),
        ("language_support", why::SHOWN),
        ("starter_prompts", "they are suggested to the user"),
        ("welcome_content", "it greets the user before the first message"),
        ("hidden", why::RUNTIME),
        ("context_access_enabled", why::RUNTIME),
        ("context_variables", why::NOT_YET),
        ("voice_configuration", why::RUNTIME),
        ("memory_enabled", why::NOT_YET),
        ("chat_with_docs", why::NOT_YET),
        ("plugins", why::CODE),
        ("config", why::RUNTIME),
        ("structured_output", why::NOT_YET),
        ("custom_join_tool", why::NOT_YET),
        ("restrictions", why::RUNTIME),
        ("llm_config", why::NOT_YET),
    ],
    split: frontend_kit::kit::plain,
    default: |_| LoopBound::unknown("watsonx Orchestrate documents no limit"),
};

impl Frontend for Watsonx {
    fn name(&self) -> &'static str {
        "watsonx_orchestrate"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            let kind = matches!(mark::text(r, "kind"), Some("native" | "external" | "assistant"));
            (mark::has(r, "spec_version") || kind && mark::has(r, "name"))
                && (mark::has(r, "llm") || mark::has(r, "style") || mark::has(r, "instructions") || kind)
                && !mark::has(r, "agents")
        };
        if mark::any(file, sure) { 84 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("watsonx Orchestrate asks the model that the environment prefers"),
            ends_loops: Some("watsonx Orchestrate ends the turn at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instructions`",
                model: "name one: `llm`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()).filter(|r| r.is_mapping()) {
            let name = SHAPE.name_of(root).unwrap_or("agent");
            units.add(name, UnitKind::Agent, root.head(), |kit| agent(kit, project, root));
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn agent(kit: &mut Kit<'_>, project: &Project, node: Node<'_>) -> TermId {
    let name = SHAPE.name_of(node).unwrap_or("agent");
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    let kind = node.entry("kind").filter(|e| matches!(e.value.text(), Some("external" | "assistant")));
    let term = match kind {
        Some(e) => {
            let why = "this agent is a remote service, whose content is not known";
            kit.undecided(codes::NOT_COMPILED, why.into(), value_span(&e))
        }
        None => {
            let mut actions = Vec::new();
            for item in node.get("collaborators").into_iter().flat_map(|c| c.items()) {
                let other = item.text().or_else(|| item.get("name")?.text()).unwrap_or("");
                let at = item.head();
                let roots = project.files.iter().flat_map(|f| f.documents.iter()).map(|d| d.root());
                let known =
                    |r: &Node<'_>| r.get("spec_version").is_some() && SHAPE.name_of(*r) == Some(other);
                let found = roots.into_iter().find(known);
                let term = match found {
                    Some(root) => agent(kit, project, root),
                    None => kit.unknown(&format!("the agent {other}"), at),
                };
                actions.push(Action::ask(other, term, at));
            }
            for item in node.get("knowledge_base").into_iter().flat_map(|k| k.items()) {
                if let Some(base) = item.text() {
                    actions.push(Action::tool(base, item.span()));
                }
            }
            let prompt = prompt(kit, node);
            shape::agent_with(kit, node, &SHAPE, Given { prompt, ..Given::default() }, actions, &by_name)
        }
    };
    kit.close();
    term
}

/// The instructions with the guidelines, or the description if there are neither.
fn prompt(kit: &mut Kit<'_>, node: Node<'_>) -> Option<TermId> {
    let text = |key: &str| node.get(key).and_then(|t| t.text()).filter(|t| !t.trim().is_empty());
    let mut guidelines = String::new();
    for g in node.get("guidelines").into_iter().flat_map(|g| g.items()) {
        let part = |key: &str| g.get(key).and_then(|t| t.text()).unwrap_or("");
        guidelines.push_str(&format!("\n- {} {}", part("condition"), part("action")));
        if let Some(tool) = g.get("tool").and_then(|t| t.text()) {
            guidelines.push_str(&format!(" (tool: {tool})"));
        }
    }
    if guidelines.is_empty() && text("instructions").is_some() {
        return None;
    }
    // Without instructions the agent acts by its description.
    let key = if text("instructions").is_some() { "instructions" } else { "description" };
    let at = node.entry(key).map_or(node.head(), |e| value_span(&e));
    let all = format!("{}{guidelines}", text(key).unwrap_or(""));
    Some(kit.text(&all, at))
}
