//! Semantic Kernel's declarative agents: `type: chat_completion_agent`, `foundry_agent`, `azure_assistant`,
//! `openai_assistant`, …
//!
//! Source: microsoft/semantic-kernel, `dotnet/src/Agents/Abstractions/Definition`.

use frontend_kit::doc::Node;
use frontend_kit::emit::LoopBound;
use frontend_kit::kit::{Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Shape, by_name, why};

/// The front end.
pub struct SemanticKernel;

const SHAPE: Shape = Shape {
    what: "a Semantic Kernel agent",
    name: &["name", "id"],
    prompt: &["instructions"],
    model: &["model"],
    tools: &["tools"],
    end: None,
    bound: &[],
    also: &["type", "version", "template"],
    unused: &[
        ("description", why::SHOWN),
        ("inputs", why::NOT_YET),
        ("outputs", why::NOT_YET),
        ("metadata", why::SHOWN),
        ("options", why::RUNTIME),
    ],
    split: dollar,
    default: |_| LoopBound::unknown("the service that runs the agent decides"),
};

/// `{{$name}}`.
fn dollar(text: &str) -> Vec<frontend_kit::emit::Part<'_>> {
    use frontend_kit::emit::Part;
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(open) = text[at..].find("{{$") {
        let open = at + open;
        let Some(len) = text[open..].find("}}") else { break };
        let name = text[open + 3..open + len].trim();
        at = open + 3;
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        if open > start {
            parts.push(Part::Text(&text[start..open]));
        }
        parts.push(Part::Hole(name));
        at = open + len + 2;
        start = at;
    }
    if start < text.len() || parts.is_empty() {
        parts.push(Part::Text(&text[start..]));
    }
    parts
}

impl Frontend for SemanticKernel {
    fn name(&self) -> &'static str {
        "semantic_kernel"
    }

    fn detect(&self, file: &File) -> u8 {
        let kinds = [
            "foundry_agent",
            "chat_completion_agent",
            "azure_assistant",
            "azureai_agent",
            "openai_assistant",
            "openai_responses",
            "copilot_studio_agent",
        ];
        let sure = |r: Node<'_>| mark::text(r, "type").is_some_and(|t| kinds.contains(&t));
        if mark::any(file, sure) { 93 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the kernel's service decides on the model"),
            ends_loops: Some("the service ends the loop at the first reply that calls no tool"),
            words: Words { prompt: "say what the agent is to do: `instructions`", ..Words::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()).filter(|r| r.is_mapping()) {
            let name = SHAPE.name_of(root).unwrap_or("agent");
            units.add(name, UnitKind::Agent, root.head(), |kit| {
                if let Err(term) = kit.open(name, root.span(), root.head(), size(root.span())) {
                    return term;
                }
                // What a service hosts may have its instructions there.
                let hosted =
                    mark::text(root, "type").is_some_and(|t| t.contains("foundry") || t.contains("azure"));
                let prompt = (hosted && root.get("instructions").is_none())
                    .then(|| kit.unknown("the instructions of a hosted agent", root.head()));
                let given = shape::Given { called: Some(name), prompt, ..Default::default() };
                let term = shape::agent_with(kit, root, &SHAPE, given, Vec::new(), &by_name);
                kit.close();
                term
            });
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}
