//! Files of no framework in particular that give an agent, or a list of agents, instructions: "model,
//! system prompt, tools" under any of the usual names.
//!
//! One agent is one oracle, or a loop if it has tools; of a list, each agent is a unit of its own, because
//! nothing here says how they work together. How often a loop runs is not known.

use frontend_kit::doc::Node;
use frontend_kit::emit::LoopBound;
use frontend_kit::kit::{Units, double};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Shape, by_name, why};

/// One agent.
pub struct Generic;

/// Several.
pub struct MultiAgent;

fn not_said(_: &frontend_kit::Versions) -> LoopBound {
    LoopBound::unknown("it depends on what runs this file")
}

const PROMPTS: &[&str] = &[
    "instructions",
    "instruction",
    "system_prompt",
    "systemPrompt",
    "system_message",
    "systemMessage",
    "systemInstruction",
    "system_instruction",
    "system",
    "prompt",
];

const SHAPE: Shape = Shape {
    what: "an agent in general",
    name: &["name", "id", "agent_id", "slug", "role", "input_key"],
    prompt: PROMPTS,
    model: &["model", "llm", "model_name", "deployment_name", "llm_config", "model_config"],
    tools: &["tools", "collaborators", "toolsets"],
    end: None,
    bound: &[
        "max_iterations",
        "maxIterations",
        "max_iter",
        "max_turns",
        "max_steps",
        "maxSteps",
        "max_tool_calls",
    ],
    also: &["version", "api", "type", "spec_version", "kind", "agents"],
    unused: &[
        ("description", why::SHOWN),
        ("title", why::SHOWN),
        ("tags", why::SHOWN),
        ("icon", why::SHOWN),
        ("picture", why::SHOWN),
        ("purpose", why::SHOWN),
        ("personality", "only the instructions are compiled"),
        ("principles", "only the instructions are compiled"),
        ("memory", why::NOT_YET),
        ("knowledge_base", why::NOT_YET),
        ("visibility", why::RUNTIME),
        ("style", why::NOT_YET),
    ],
    split: double,
    default: not_said,
};

fn prompted(node: Node<'_>) -> bool {
    PROMPTS.iter().any(|k| node.get(k).is_some_and(|p| p.as_str().is_some()))
}

/// The agent of a file: the whole, or what stands under `agent`.
fn one(root: Node<'_>) -> Option<Node<'_>> {
    let named =
        |n: Node<'_>| ["name", "model", "llm", "slug", "id", "model_name"].iter().any(|k| n.get(k).is_some());
    if prompted(root) && named(root) {
        return Some(root);
    }
    root.get("agent").filter(|a| prompted(*a))
}

/// The agents of a list, or under `agents`, with the name of each.
fn several<'d>(root: Node<'d>) -> Vec<(Option<&'d str>, Node<'d>)> {
    if root.is_sequence() {
        return root.items().filter(|n| prompted(*n)).map(|n| (None, n)).collect();
    }
    let Some(agents) = root.get("agents") else { return Vec::new() };
    let items = agents.items().map(|n| (None, n));
    let entries = agents.entries().map(|e| (e.key.text(), e.value));
    items.chain(entries).filter(|(_, n)| prompted(*n)).collect()
}

fn facts() -> Facts {
    Facts {
        default_model: Some("what runs this file decides on the model"),
        ends_loops: Some("a reply without a tool call is taken as the answer"),
        words: Words { prompt: "say what the agent is to do: `instructions`", ..Words::default() },
        any_reader: true,
        ..Facts::default()
    }
}

impl Frontend for Generic {
    fn name(&self) -> &'static str {
        "generic"
    }

    fn detect(&self, file: &File) -> u8 {
        let found = file.documents.iter().take(8).any(|d| one(d.root()).is_some());
        if found { 51 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let mut units = Units::new(self.name(), facts(), project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for node in file.documents.iter().filter_map(|d| one(d.root())) {
            add(&mut units, node, None);
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

impl Frontend for MultiAgent {
    fn name(&self) -> &'static str {
        "multi_agent"
    }

    fn detect(&self, file: &File) -> u8 {
        let found = file.documents.iter().take(8).any(|d| {
            let root = d.root();
            let items = root.items().chain(root.get("agents").into_iter().flat_map(|a| a.items()));
            items.take(20).any(prompted)
                || root.get("agents").is_some_and(|a| a.entries().take(20).any(|e| prompted(e.value)))
        });
        if found { 53 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let mut units = Units::new(self.name(), facts(), project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for (name, node) in file.documents.iter().flat_map(|d| several(d.root())) {
            add(&mut units, node, name);
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn add(units: &mut Units, node: Node<'_>, called: Option<&str>) {
    let name = called.or_else(|| SHAPE.name_of(node)).unwrap_or("agent");
    units.add(name, UnitKind::Agent, node.head(), |kit| {
        if let Err(term) = kit.open(name, node.span(), node.head(), frontend_kit::kit::size(node.span())) {
            return term;
        }
        let silent =
            PROMPTS.iter().all(|k| node.get(k).and_then(|p| p.text()).is_none_or(|t| t.trim().is_empty()));
        // A class brings instructions of its own, and for a proxy a person speaks.
        let why = if node.get("model_path").or(node.get("class")).is_some() {
            Some("the instructions of the agent's class")
        } else {
            name.to_ascii_lowercase().contains("proxy").then_some("a person speaks for this agent")
        };
        let prompt = why.filter(|_| silent).map(|why| kit.unknown(why, node.head()));
        let given = shape::Given { called: Some(name), prompt, ..Default::default() };
        let term = shape::agent_with(kit, node, &SHAPE, given, Vec::new(), &by_name);
        kit.close();
        term
    });
}
