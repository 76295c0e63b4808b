//! ModelScope-Agent (ms-agent): `llm`, `prompt.system`, `tools`, `max_chat_round`, and workflows of such
//! files.
//!
//! A workflow (`name: {agent_config: file, next: [name]}`) is the composition along `next`; files that are
//! not loaded are unknown. A `code_file` replaces the agent by Python, which is unknown.
//!
//! Source: modelscope/ms-agent, `ms_agent/agent/llm_agent.py`: `DEFAULT_MAX_CHAT_ROUND` 20.

use crate::defaults;
use core_ir::TermId;
use frontend_kit::doc::Node;
use frontend_kit::emit::{codes, value_span};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{by_name, model_of, why};

/// The front end.
pub struct MsAgent;

const UNUSED: &[frontend_kit::emit::Unused] = &[
    ("callbacks", why::CODE),
    ("handler", why::CODE),
    ("help", why::SHOWN),
    ("output_dir", why::RUNTIME),
    ("tool_call_timeout", why::RUNTIME),
    ("tag", why::SHOWN),
    ("memory", why::NOT_YET),
    ("type", why::NOT_YET),
    ("local_dir", why::RUNTIME),
    ("self_reflection", why::NOT_YET),
    ("refine_condenser", why::NOT_YET),
    ("code_condenser", why::NOT_YET),
];

fn is_agent(r: Node<'_>) -> bool {
    r.get("llm").is_some_and(|l| l.get("service").is_some() || l.get("model").is_some())
        && (mark::has(r, "generation_config")
            || mark::has(r, "max_chat_round")
            || r.at(&["llm", "service"]).is_some())
}

fn is_workflow(r: Node<'_>) -> bool {
    let step =
        |n: Node<'_>| mark::has(n, "agent_config") || n.get("agent").is_some() && n.get("next").is_some();
    r.is_mapping() && r.entries().take(20).any(|e| step(e.value))
}

impl Frontend for MsAgent {
    fn name(&self) -> &'static str {
        "ms_agent"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        if mark::any(file, |r| is_agent(r) || is_workflow(r)) { 72 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("ms-agent ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `prompt.system`",
                model: "name one: `llm.model`",
                bound: "state it: `max_chat_round`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            if is_agent(root) {
                let name = root.get("tag").and_then(|t| t.text()).unwrap_or("agent");
                units.add(name, UnitKind::Agent, root.head(), |kit| agent(kit, project, file, root, name));
            } else if is_workflow(root) {
                units.add("workflow", UnitKind::Crew, root.head(), |kit| workflow(kit, project, file, root));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

/// The agent in another file.
fn elsewhere(kit: &mut Kit<'_>, project: &Project, file: &File, path: &str, at: diagnostics::Span) -> TermId {
    let found = project.beside(file, path).and_then(|f| Some((f, f.documents.first()?.root())));
    match found {
        Some((other, root)) => agent(kit, project, other, root, path),
        None => kit.unknown(&format!("the agent in {path}"), at),
    }
}

/// The name of the step after a step.
fn next<'d>(step: Node<'d>) -> Option<&'d str> {
    let next = step.get("next")?;
    next.items().next().unwrap_or(next).text()
}

fn workflow(kit: &mut Kit<'_>, project: &Project, file: &File, root: Node<'_>) -> TermId {
    let head = root.head();
    let steps: Vec<(&str, Node<'_>)> =
        root.entries().map(|e| (e.key.text().unwrap_or(""), e.value)).collect();
    let named: Vec<&str> = steps.iter().filter_map(|(_, n)| next(*n)).collect();
    let mut at = steps.iter().find(|(name, n)| n.is_mapping() && !named.contains(name)).or(steps.first());
    let mut stages = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    while let Some((name, node)) = at {
        if seen.contains(name) || seen.len() > 200 {
            break;
        }
        seen.push(name);
        let place = node.head();
        let code = node.at(&["agent", "kwargs", "code_file"]).and_then(|c| c.text());
        let config = node.get("agent_config").and_then(|c| c.text());
        stages.push(match (code, config) {
            (None, Some(path)) => elsewhere(kit, project, file, path, place),
            (Some(code), _) => kit.unknown(&format!("the agent {name} in {code}, which is Python"), place),
            _ => kit.unknown(&format!("the agent {name}"), place),
        });
        at = next(*node).and_then(|n| steps.iter().find(|(name, _)| *name == n));
    }
    kit.sequence(stages, head)
}

fn agent(kit: &mut Kit<'_>, project: &Project, file: &File, node: Node<'_>, name: &str) -> TermId {
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    let known = ["llm", "prompt", "tools", "generation_config", "max_chat_round", "code_file", "tag"];
    frontend_kit::emit::report_keys(node, &known, UNUSED, "an ms-agent configuration", kit.out);
    let place = node.entry("prompt").map_or(head, |e| e.key.span());
    let prompt = match node.get("prompt").and_then(|p| first_text(p, &["system", "prompt"])) {
        Some((text, entry)) => kit.text(text, value_span(&entry)),
        None if node.at(&["prompt", "agent"]).or(node.at(&["prompt", "root"])).is_some() => {
            kit.unknown("instructions in a file of prompts", place)
        }
        // ms-agent's own default.
        None => kit.text("You are a helpful assistant.", place),
    };
    let (mut params, model_at) = match node.entry("llm") {
        Some(e) => model_of(kit, Some(e), &by_name),
        None => Default::default(),
    };
    let mut settings: Vec<_> = node.get("generation_config").into_iter().flat_map(|g| g.entries()).collect();
    // Of two limits the one that replaced the other counts.
    settings.sort_by_key(|e| e.name() == "max_completion_tokens");
    for e in settings {
        setting(&e, &mut params, kit.out);
    }
    let actions = tools(kit, project, file, node);
    let entry = node.entry("max_chat_round");
    let bound = defaults::bound(&defaults::MS_AGENT_ROUNDS, kit.versions).or_written(entry, kit.out);
    let actions_at = node.entry("tools").map(|e| e.key.span());
    let term = match node.entry("code_file") {
        Some(e) => {
            let why =
                format!("the agent is Python code (`{}`)", diagnostics::clip(e.value.text().unwrap_or("")));
            kit.undecided(codes::NOT_COMPILED, why, value_span(&e))
        }
        None => kit.agent(Agent { name, head, prompt, params, model_at, actions, actions_at, bound }),
    };
    kit.close();
    term
}

fn tools(kit: &mut Kit<'_>, project: &Project, file: &File, node: Node<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    for e in node.get("tools").into_iter().flat_map(|t| t.entries()) {
        let (server, at) = (e.name(), e.key.span());
        if server == "plugins" {
            actions.extend(e.value.items().filter_map(|p| Some(Action::tool(p.text()?, p.span()))));
            continue;
        }
        if server == "agent_tools" {
            for d in e.value.get("definitions").into_iter().flat_map(|d| d.items()) {
                let name = d.get("tool_name").and_then(|n| n.text()).unwrap_or("agent");
                let path = d.get("config_path").and_then(|p| p.text()).unwrap_or("");
                let term = elsewhere(kit, project, file, path, d.head());
                actions.push(Action::ask(name, term, d.head()));
            }
            continue;
        }
        let listed: Vec<Node<'_>> = e
            .value
            .get("include")
            .or_else(|| e.value.get("tools"))
            .into_iter()
            .flat_map(|i| i.items())
            .collect();
        if listed.is_empty() {
            actions.push(Action::tool(server, at));
        }
        actions.extend(listed.iter().filter_map(|t| Some(Action::mcp(t.text()?, server, t.span()))));
    }
    actions
}
