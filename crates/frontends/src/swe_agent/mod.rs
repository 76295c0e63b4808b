//! SWE-agent configurations: `agent.templates`, `agent.tools`, `agent.model`, and the flat layout before 1.0.
//!
//! The agent is a loop: the model is told the problem (`instance_template`), every reply is a command, every
//! observation joins the state. Commands are the tools; `submit` ends the loop. The bound is
//! `per_instance_call_limit`; without it only the cost limit ends the loop, which the runtime keeps.
//!
//! Source: SWE-agent/SWE-agent, `sweagent/agent/agents.py`, `sweagent/agent/models.py`:
//! `per_instance_call_limit` 0 means none.

use core_ir::{Bound, TermId, Type};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, report_keys, value_span};
use frontend_kit::kit::{Action, ActionKind, Agent, Kit, Units, first_text, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{by_name, model_of, why};
use frontend_kit::turn::Carried;

/// The front end.
pub struct SweAgent;

const UNUSED: &[frontend_kit::emit::Unused] = &[
    ("history_processors", "how old messages are shortened is not compiled yet"),
    ("history_processor", "how old messages are shortened is not compiled yet"),
    ("history_processor_args", "how old messages are shortened is not compiled yet"),
    ("max_requeries", why::RUNTIME),
    ("action_sampler", why::NOT_YET),
    ("retry_loop", why::NOT_YET),
    ("demonstrations", "examples in other files are not compiled"),
    ("put_demos_in_history", "examples in other files are not compiled"),
    ("demonstration_template", "examples in other files are not compiled"),
    ("strategy_template", why::NOT_YET),
    ("env_variables", why::RUNTIME),
    ("state_command", why::RUNTIME),
    ("parse_command", why::RUNTIME),
    ("parse_function", why::RUNTIME),
    ("util_functions", why::RUNTIME),
    ("submit_command", why::RUNTIME),
    ("blocklist", why::RUNTIME),
    ("multi_line_command_endings", why::RUNTIME),
    ("name", why::SHOWN),
];

fn is_flat(r: Node<'_>) -> bool {
    mark::has(r, "system_template") && mark::has(r, "instance_template") || mark::has(r, "next_step_template")
}

impl Frontend for SweAgent {
    fn name(&self) -> &'static str {
        "swe_agent"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            r.at(&["agent", "templates"]).is_some()
                || r.at(&["agent", "tools", "bundles"]).is_some()
                || r.at(&["agent", "agent_configs"]).is_some()
                || r.at(&["agent", "model", "per_instance_cost_limit"]).is_some()
                || r.at(&["agent", "model", "per_instance_call_limit"]).is_some()
                || r.at(&["agent", "system_template"]).is_some()
                || r.at(&["agent", "config", "_commands"]).is_some()
                || is_flat(r)
        };
        if mark::any(file, sure) { 86 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("SWE-agent asks the model that its command line names"),
            ends_loops: None,
            words: Words {
                prompt: "say what the agent is to do: `agent.templates.system_template`",
                model: "name one: `agent.model.name`",
                bound: "state it: `agent.model.per_instance_call_limit`",
                exit: "give the agent a command that submits: the bundle `tools/submit`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let node = root.get("agent").unwrap_or(root);
            let several = node.get("agent_configs");
            let all: Vec<Node<'_>> = match several {
                Some(list) => list.items().collect(),
                None => vec![node],
            };
            for node in all {
                let name = node.get("name").and_then(|n| n.text()).unwrap_or("agent");
                units.add(name, UnitKind::Agent, node.head(), |kit| agent(kit, node, name));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn agent(kit: &mut Kit<'_>, node: Node<'_>, name: &str) -> TermId {
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    let known = [
        "templates",
        "tools",
        "model",
        "type",
        "system_template",
        "instance_template",
        "next_step_template",
        "next_step_no_output_template",
        "command_files",
        "config",
        "_commands",
    ];
    report_keys(node, &known, UNUSED, "a SWE-agent configuration", kit.out);
    let templates = node.get("templates").or_else(|| node.get("config")).unwrap_or(node);
    let (prompt, prompt_at) = match first_text(templates, &["system_template"]) {
        Some((text, entry)) => (Some(text), value_span(&entry)),
        None => (None, head),
    };
    let prompt = match prompt {
        Some(text) if text.contains("{%") => kit.unknown("a Jinja template with statements", prompt_at),
        Some(text) => kit.text(text, prompt_at),
        // SWE-agent merges configurations; one that only says more about the tools or the model is a part.
        None => kit.unknown("the system template, which another configuration holds", prompt_at),
    };
    let (params, model_at) = model_of(kit, node.entry("model"), &by_name);
    let actions = tools(node);
    let limit = node.get("model").and_then(|m| m.entry("per_instance_call_limit"));
    let none = || {
        LoopBound::unknown(
            "SWE-agent stops by cost (`per_instance_cost_limit`) unless `per_instance_call_limit` is set",
        )
    };
    let bound = none().or_written(limit, kit.out);
    // 0 means no limit here.
    let bound =
        if bound.bound == Bound::Finite(0) { LoopBound { span: bound.span, ..none() } } else { bound };
    let actions_at = node.entry("tools").or_else(|| node.entry("command_files")).map(|e| e.key.span());
    let agent = Agent { name, head, prompt, params, model_at, actions, actions_at, bound };
    let term = kit.agent_with_request(agent, Carried::First, None);
    let term = match first_text(templates, &["instance_template"]) {
        Some((text, entry)) => {
            let at = value_span(&entry);
            let asked = if text.contains("{%") {
                kit.unknown("a Jinja template with statements", at)
            } else {
                problem(kit, text, at)
            };
            let run = kit.b.app(term, asked, at);
            kit.b.abs("x", Some(Type::Str), run, at)
        }
        None => term,
    };
    kit.close();
    term
}

/// The first message: the problem is what the agent is given, the rest are inputs.
fn problem(kit: &mut Kit<'_>, text: &str, at: diagnostics::Span) -> TermId {
    let mut template = frontend_kit::emit::Template::new(at);
    for part in frontend_kit::kit::double(text) {
        match part {
            frontend_kit::emit::Part::Text(t) => {
                template.text(t);
            }
            frontend_kit::emit::Part::Hole("problem_statement" | "issue") => {
                let x = kit.b.var("x", at);
                template.term(x);
            }
            frontend_kit::emit::Part::Hole(name) => {
                let value = kit.input(name, at);
                template.term(value);
            }
        }
    }
    template.build(&mut kit.b)
}

/// A tool for each bundle or file of commands, and the shell.
fn tools(node: Node<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    let tools = node.get("tools");
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).to_string()
    };
    for bundle in tools.and_then(|t| t.get("bundles")).into_iter().flat_map(|b| b.items()) {
        let path = bundle.get("path").and_then(|p| p.text()).or(bundle.text()).unwrap_or("");
        let name = stem(path);
        // A bundle of settings offers no command.
        if !path.is_empty() && name != "registry" {
            // What is submitted is the result.
            let does = if name.contains("submit") { ActionKind::Finish } else { ActionKind::Call };
            actions.push(Action { kind: does, ..Action::tool(name, bundle.head()) });
        }
    }
    if let Some(e) = tools.and_then(|t| t.entry("enable_bash_tool"))
        && e.value.as_bool() == Some(true)
    {
        actions.push(Action::tool("bash", e.key.span()));
    }
    for file in node.get("command_files").into_iter().flat_map(|c| c.items()) {
        if let Some(path) = file.text() {
            actions.push(Action::tool(stem(path), file.span()));
        }
    }
    let commands = node.at(&["config", "_commands"]).or_else(|| node.get("_commands"));
    for command in commands.into_iter().flat_map(|c| c.items()) {
        if let Some(name) = command.get("name").and_then(|n| n.text()) {
            actions.push(Action::tool(name, command.head()));
        }
    }
    actions
}
