//! Letta agent files (`.af`): `agents` with their system message, tools and memory blocks.
//!
//! Memory blocks are keys of a store around the agent; tools are offered by name.
//!
//! Source: letta-ai/agent-file; letta-ai/letta, `letta/constants.py`: `DEFAULT_MAX_STEPS` 50.

use crate::defaults;
use core_ir::{Data, KeyDecl, LabelSpec, Name, StoreDecl, Term, TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{report_keys, value_span};
use frontend_kit::kit::{Action, Agent, Kit, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{model_node, why};
use frontend_kit::turn::Carried;

/// The front end.
pub struct Letta;

const UNUSED: &[frontend_kit::emit::Unused] = &[
    ("description", why::SHOWN),
    ("tags", why::SHOWN),
    ("embedding_config", why::RUNTIME),
    ("messages", "what was said in earlier runs is not compiled"),
    ("in_context_message_ids", "what was said in earlier runs is not compiled"),
    ("tool_rules", why::NOT_YET),
    ("metadata", why::SHOWN),
    ("metadata_", why::SHOWN),
];

impl Frontend for Letta {
    fn name(&self) -> &'static str {
        "letta"
    }

    fn detect(&self, file: &File) -> u8 {
        let agent = |a: Node<'_>| mark::has(a, "agent_type") && mark::has(a, "llm_config");
        if mark::any(file, |r| agent(r) || mark::list(r, &["agents"], agent)) { 94 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("Letta asks the model of its server"),
            ends_loops: Some("Letta ends the loop at the first reply that calls no tool"),
            words: Words { prompt: "say what the agent is to do: `system`", ..Words::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let list: Vec<Node<'_>> = match root.get("agents") {
                Some(agents) => agents.items().collect(),
                None => vec![root],
            };
            for node in list {
                let name = node.get("name").and_then(|n| n.text()).unwrap_or("agent");
                units.add(name, UnitKind::Agent, node.head(), |kit| agent(kit, root, node, name));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn agent(kit: &mut Kit<'_>, root: Node<'_>, node: Node<'_>, name: &str) -> TermId {
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    let known = [
        "name",
        "system",
        "llm_config",
        "tools",
        "tool_ids",
        "blocks",
        "block_ids",
        "core_memory",
        "agent_type",
        "memory_blocks",
        "id",
    ];
    report_keys(node, &known, UNUSED, "a Letta agent", kit.out);
    let entry = node.entry("system");
    let prompt_at = entry.map_or(head, |e| value_span(&e));
    let prompt = kit.text(entry.and_then(|e| e.value.text()).unwrap_or(""), prompt_at);
    let (params, model_at) = match node.entry("llm_config") {
        Some(e) => (model_node(kit, e.value), Some(e.key.span())),
        None => (core_ir::ModelParams::default(), None),
    };
    let mut actions: Vec<Action> = Vec::new();
    let ids: Vec<&str> =
        node.get("tool_ids").into_iter().flat_map(|t| t.items()).filter_map(|t| t.text()).collect();
    for tool in node.get("tools").into_iter().flat_map(|t| t.items()) {
        if let Some(name) = tool.text().or_else(|| tool.get("name")?.text()) {
            actions.push(Action::tool(name, tool.head()));
        }
    }
    for tool in root.get("tools").into_iter().flat_map(|t| t.items()) {
        let (id, name) = (tool.get("id").and_then(|i| i.text()), tool.get("name").and_then(|n| n.text()));
        if let (Some(id), Some(name)) = (id, name)
            && ids.contains(&id)
        {
            actions.push(Action::tool(name, tool.head()));
        }
    }
    let bound = defaults::bound(&defaults::LETTA_STEPS, kit.versions);
    let agent = Agent { name, head, prompt, params, model_at, actions, actions_at: None, bound };
    let term = kit.agent_with_request(agent, Carried::First, None);
    let term = remembering(kit, root, node, name, term);
    kit.close();
    term
}

/// The memory blocks as a store around the agent.
fn remembering(kit: &mut Kit<'_>, root: Node<'_>, node: Node<'_>, name: &str, term: TermId) -> TermId {
    let ids: Vec<&str> =
        node.get("block_ids").into_iter().flat_map(|b| b.items()).filter_map(|b| b.text()).collect();
    let own = ["core_memory", "blocks", "memory_blocks"].into_iter().filter_map(|k| node.get(k));
    let own = own.flat_map(|b| b.items());
    let shared = root.get("blocks").into_iter().flat_map(|b| b.items());
    let shared = shared.filter(|b| b.get("id").and_then(|i| i.text()).is_some_and(|i| ids.contains(&i)));
    let mut keys: Vec<KeyDecl> = Vec::new();
    for block in own.chain(shared).take(1_000) {
        let Some(label) = block.get("label").and_then(|l| l.text()) else { continue };
        if keys.iter().any(|k| &*k.name == label) {
            continue;
        }
        let initial = block.get("value").and_then(|v| v.text()).map(Data::str);
        // What tools returned may be in it, so it may come from anyone.
        let of = LabelSpec::Axes { untrusted: true, secret: false };
        keys.push(KeyDecl { name: label.into(), ty: Type::Str, label: of, initial });
    }
    if keys.is_empty() {
        return term;
    }
    let at = kit.b.span(term);
    let store = kit.b.store(StoreDecl {
        name: Name::from(name),
        keys,
        capacity: None,
        ttl: None,
        backend: Some("letta".into()),
        span: at,
    });
    kit.b.add(Term::Mem(store, term), at)
}
