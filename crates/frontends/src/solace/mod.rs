//! Solace Agent Mesh: `apps`, each an agent, a workflow, a gateway or a proxy on an event broker.
//!
//! | source | term |
//! |---|---|
//! | `app_config` with `instruction` | `llm p θ`, or a loop if it has tools |
//! | tools of type `mcp`, `builtin-group`, `python` | a tool each |
//! | gateways, proxies, shared settings | nothing: they carry messages |
//!
//! Peers that an agent may delegate to are found when it runs; they are not in the file.
//!
//! Source: SolaceLabs/solace-agent-mesh, `agent/sac/app.py`: `max_llm_calls_per_task` 20.

use crate::defaults;
use core_ir::TermId;
use frontend_kit::doc::Node;
use frontend_kit::emit::{codes, value_span};
use frontend_kit::kit::{Action, Kit, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

/// The front end.
pub struct Solace;

const SHAPE: Shape = Shape {
    what: "a Solace Agent Mesh agent",
    name: &["agent_name"],
    prompt: &["instruction"],
    model: &["model"],
    tools: &[],
    end: None,
    bound: &["max_llm_calls_per_task"],
    also: &["tools", "model_provider"],
    unused: &[
        ("namespace", why::RUNTIME),
        ("supports_streaming", why::RUNTIME),
        ("display_name", why::SHOWN),
        ("session_service", why::RUNTIME),
        ("artifact_service", why::RUNTIME),
        ("artifact_handling_mode", why::RUNTIME),
        ("enable_embed_resolution", why::RUNTIME),
        ("enable_artifact_content_instruction", "it adds instructions when it runs"),
        ("enable_builtin_artifact_tools", why::NOT_YET),
        ("enable_builtin_data_tools", why::NOT_YET),
        ("agent_card", "it tells other agents what this one is for"),
        ("agent_card_publishing", why::RUNTIME),
        ("agent_discovery", why::RUNTIME),
        ("inter_agent_communication", "peers are found when it runs"),
        ("agent_init_function", why::CODE),
        ("agent_cleanup_function", why::CODE),
        ("data_tools_config", why::RUNTIME),
        ("log_file_name", why::RUNTIME),
    ],
    split: frontend_kit::kit::plain,
    default: |v| defaults::bound(&defaults::SOLACE_CALLS, v),
};

impl Frontend for Solace {
    fn name(&self) -> &'static str {
        "solace_mesh"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            let app = |a: Node<'_>| {
                mark::starts(a, "app_module", "solace")
                    || mark::has(a, "app_config") && (mark::has(a, "broker") || mark::has(a, "app_module"))
            };
            mark::list(r, &["apps"], app)
                || mark::list(r, &["shared_config"], |s| s.is_mapping())
                || r.get("shared_config").is_some_and(|s| s.is_mapping())
                || mark::list(r, &["flows"], |f| mark::has(f, "components") && mark::has(f, "name"))
        };
        if mark::any(file, sure) { 83 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the mesh's shared configuration names the model"),
            ends_loops: Some("the agent ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `app_config.instruction`",
                bound: "state it: `max_llm_calls_per_task`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for app in file.documents.iter().flat_map(|d| d.root().get("apps")).flat_map(|a| a.items()) {
            let Some(config) = app.get("app_config") else { continue };
            // A proxy speaks for agents elsewhere, whatever else stands in its configuration.
            let module = app.get("app_module").and_then(|m| m.text()).unwrap_or("");
            if mark::has(config, "proxied_agents") || module.contains(".proxies.") {
                continue;
            }
            let name = SHAPE.name_of(config).or_else(|| app.get("name")?.text()).unwrap_or("agent");
            if let Some(workflow) = config.entry("workflow") {
                units.add(name, UnitKind::Crew, config.head(), |kit| {
                    let why = "workflows of the mesh are not compiled yet";
                    kit.undecided(codes::NOT_COMPILED, why.into(), workflow.key.span())
                });
            } else if config.get("instruction").is_some() || config.get("tools").is_some() {
                units.add(name, UnitKind::Agent, config.head(), |kit| agent(kit, config, name));
            }
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "no app is an agent: gateways, proxies and shared settings carry messages",
        )
    }
}

fn agent(kit: &mut Kit<'_>, config: Node<'_>, name: &str) -> TermId {
    if let Err(term) = kit.open(name, config.span(), config.head(), size(config.span())) {
        return term;
    }
    let mut actions: Vec<Action> = Vec::new();
    for item in config.get("tools").into_iter().flat_map(|t| t.items()) {
        let at = item.head();
        let kind = item.get("tool_type").and_then(|t| t.text()).unwrap_or("");
        let keys = ["tool_name", "group_name", "function_name", "class_name", "component_module", "name"];
        let name = keys.iter().find_map(|k| item.get(k)?.text());
        let command = || {
            let args = item.at(&["connection_params", "args"]).into_iter().flat_map(|a| a.items());
            let package = args.filter_map(|a| a.text()).find(|a| !a.starts_with('-'));
            package.or(item.at(&["connection_params", "url"]).and_then(|u| u.text()))
        };
        match (kind, name.or_else(command)) {
            ("mcp", Some(name)) => actions.push(Action::mcp(name, name, at)),
            (_, Some(name)) => actions.push(Action::tool(name, at)),
            (_, None) => actions.push(Action::tool(if kind.is_empty() { "tool" } else { kind }, at)),
        }
    }
    let prompt = config.entry("instruction").filter(|e| e.value.tag().is_some());
    let prompt = prompt.map(|e| {
        let at = value_span(&e);
        kit.unknown("instructions in another file", at)
    });
    let given = Given { called: Some(name), prompt, ..Given::default() };
    let term = shape::agent_with(kit, config, &SHAPE, given, actions, &by_name);
    kit.close();
    term
}
