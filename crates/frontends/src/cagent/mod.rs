//! Docker agent (cagent) files: `agents`, of which `root` or the first one answers, and `models`.
//!
//! | source | term |
//! |---|---|
//! | `instruction`, `model` | `llm p θ`; a name in `models` represents its provider and model |
//! | `toolsets` | a tool each, named by its type, reference or listed tools |
//! | `sub_agents` | helpers that are asked and answer (`transfer_task`) |
//! | `handoffs` | agents that take over |
//! | `max_iterations` | the bound; without it, or 0, there is none |
//!
//! Source: docker/docker-agent, `pkg/config/latest/types.go`, `pkg/runtime/loop.go`.

use core_ir::{Bound, TermId};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Unused, clip, codes, near, report_keys, undecided};
use frontend_kit::kit::{Action, Kit, Units, mark};
use frontend_kit::outline::{LeftoverKind, LeftoverState};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Shape, why};
use std::collections::HashMap;

/// The front end.
pub struct Cagent;

const TOP: &[&str] = &["agents", "models", "version"];
const TOP_UNUSED: &[Unused] = &[
    ("metadata", why::SHOWN),
    ("providers", why::RUNTIME),
    ("permissions", "which calls need approval is not compiled yet"),
    ("rag", "retrieval is not compiled yet"),
    ("mcps", why::RUNTIME),
    ("workflow", why::NOT_YET),
    ("config", why::NOT_YET),
    ("tasks", why::NOT_YET),
    ("process", why::NOT_YET),
    ("memory", why::NOT_YET),
    ("include", why::NOT_YET),
];

fn no_limit(_: &frontend_kit::Versions) -> LoopBound {
    LoopBound::none("Docker agent runs until a reply calls no tool, if `max_iterations` is missing or 0")
}

const SHAPE: Shape = Shape {
    what: "a Docker agent",
    name: &["name"],
    prompt: &["instruction", "instructions"],
    model: &["model"],
    tools: &[],
    end: None,
    bound: &["max_iterations"],
    also: &["toolsets", "tools", "sub_agents", "handoffs", "role", "goal"],
    unused: &[
        ("description", why::SHOWN),
        ("welcome_message", why::SHOWN),
        ("add_date", "it adds the date to the instructions when it runs"),
        ("add_environment_info", "it adds facts about the machine to the instructions when it runs"),
        ("add_prompt_files", "it adds files to the instructions when it runs"),
        ("num_history_items", why::NOT_YET),
        ("commands", "they are what a user may ask"),
        ("rag", "retrieval is not compiled yet"),
        ("skills", why::NOT_YET),
        ("code_mode_tools", why::NOT_YET),
        ("think", why::NOT_YET),
        ("memory", why::NOT_YET),
        ("fallback", why::RUNTIME),
        ("hooks", why::CODE),
        ("structured_output", why::NOT_YET),
        ("enable_bang_commands", why::RUNTIME),
    ],
    split: frontend_kit::kit::plain,
    default: no_limit,
};

struct Agents<'d> {
    known: HashMap<&'d str, Node<'d>>,
    models: Option<Node<'d>>,
}

impl Frontend for Cagent {
    fn name(&self) -> &'static str {
        "cagent"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            let agent = |a: Node<'_>| {
                mark::has(a, "instruction") && (mark::has(a, "model") || mark::has(a, "toolsets"))
                    || mark::has(a, "toolsets")
            };
            let entries =
                |a: Node<'_>| a.entries().take(20).any(|e| agent(e.value)) || a.items().take(20).any(agent);
            r.get("agents").is_some_and(entries)
        };
        if mark::any(file, sure) { 80 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("Docker agent ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `instruction`",
                model: "name one: `model: provider/model`",
                bound: "state it: `max_iterations`",
                ..Words::default()
            },
            asks_user: true,
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(list) = root.get("agents") else { continue };
            report_keys(root, TOP, TOP_UNUSED, "a Docker agent file", &mut units.compiled.diagnostics);
            let named = list.items().filter_map(|n| Some((n.get("name")?.text()?, n)));
            let all: Vec<(&str, Node<'_>)> =
                list.entries().map(|e| (e.key.text().unwrap_or(""), e.value)).chain(named).collect();
            let agents = Agents { known: all.iter().copied().collect(), models: root.get("models") };
            let main = agents.known.get("root").copied().map(|n| ("root", n)).or(all.first().copied());
            let Some((name, node)) = main else { continue };
            let mut reached = Vec::new();
            let kind = if all.len() > 1 { UnitKind::Crew } else { UnitKind::Agent };
            units.add(name, kind, node.head(), |kit| {
                let term = agent(kit, &agents, name, node);
                reached = all.iter().map(|(_, n)| kit.seen(n.span())).collect();
                // Older files list what runs under `workflow`.
                let listed = root.get("workflow").is_some();
                for ((name, node), _) in all.iter().zip(&reached).filter(|(_, r)| !**r && !listed) {
                    kit.outline.leftover(LeftoverKind::Agent, name, node.definition(), LeftoverState::ByName);
                }
                term
            });
            // What the main agent does not reach is still something that can be run by name.
            for ((name, node), _) in all.iter().zip(reached).filter(|(_, r)| !r) {
                units.add(name, UnitKind::Agent, node.head(), |kit| agent(kit, &agents, name, *node));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn agent<'d>(kit: &mut Kit<'_>, agents: &Agents<'d>, name: &str, node: Node<'d>) -> TermId {
    if let Err(term) = kit.open(name, node.span(), node.head(), frontend_kit::kit::size(node.span())) {
        return term;
    }
    let mut actions = tools(kit, node);
    for (key, over) in [("sub_agents", false), ("handoffs", true)] {
        let Some(entry) = node.entry(key) else { continue };
        for (sub, item) in frontend_kit::emit::names(&entry, kit.out) {
            let at = item.span();
            let term = match agents.known.get(sub) {
                // Who transferred the task gets the answer: a transfer back is no way out of itself.
                Some(found) if kit.is_open(found.span()) => {
                    if over {
                        kit.outline.handoff_cycles.push((name.to_string(), sub.to_string(), at));
                    }
                    continue;
                }
                Some(found) => agent(kit, agents, sub, *found),
                None if sub.contains('/') => kit.unknown(&format!("the agent {sub} of a registry"), at),
                None => {
                    let d =
                        undecided(codes::UNDEFINED, format!("no agent is called `{}` here", clip(sub)), at);
                    let d = match near(sub, agents.known.keys().copied(), kit.out) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    };
                    kit.out.push(d);
                    kit.unknown(&format!("the agent {sub}"), at)
                }
            };
            actions.push(if over { Action::handoff(sub, term, at) } else { Action::ask(sub, term, at) });
        }
    }
    let resolve = |name: &str| agents.models?.get(name);
    let prompt = match frontend_kit::kit::first_text(node, SHAPE.prompt) {
        Some(_) => None,
        // PraisonAI's files of this layout say it in CrewAI's words.
        None => {
            let words = ["role", "goal"].iter().filter_map(|k| node.get(k)?.text());
            let text = words.collect::<Vec<_>>().join("\n");
            Some(kit.text(&text, node.head()))
        }
    };
    let given = shape::Given { called: Some(name), prompt, ..Default::default() };
    let mut term = shape::agent_with(kit, node, &SHAPE, given, actions, &resolve);
    // 0 means no limit here.
    if let core_ir::Term::Fix { bound: Bound::Finite(0), body, .. } = *kit.b.term(term) {
        let at = kit.b.span(term);
        let none = no_limit(kit.versions);
        term = kit.fix(none, body, at);
    }
    kit.close();
    term
}

/// The tools of the toolsets: those that are listed, or the toolset itself.
fn tools(kit: &mut Kit<'_>, node: Node<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    let items = ["toolsets", "tools"].into_iter().filter_map(|k| node.get(k)).flat_map(|t| t.items());
    for item in items {
        let at = item.head();
        let kind = item.text().or_else(|| item.get("type")?.text()).unwrap_or("");
        if kind.is_empty() {
            let message = "a toolset without a type is left out";
            kit.out.push(diagnostics::Diagnostic::warn(codes::WRONG_KIND, message, at));
            continue;
        }
        let name = ["ref", "name", "command", "url"].iter().find_map(|k| item.get(k)?.text());
        let name = name.or_else(|| item.at(&["remote", "url"])?.text());
        let server = name.map_or(kind, |n| n.strip_prefix("docker:").unwrap_or(n));
        let listed: Vec<&str> =
            item.get("tools").into_iter().flat_map(|t| t.items()).filter_map(|t| t.text()).collect();
        let keyed = item.get("shell").into_iter().flat_map(|t| t.entries()).filter_map(|e| e.key.text());
        let listed: Vec<&str> = listed.into_iter().chain(keyed).collect();
        let one = if kind == "mcp" { server } else { kind };
        let names = if listed.is_empty() { vec![one] } else { listed };
        for tool in names {
            // Two toolsets of one kind are told apart by a number.
            let mut unique = tool.to_string();
            let mut n = 2;
            while actions.iter().any(|h| h.name == unique) && n < 100 {
                unique = format!("{tool}_{n}");
                n += 1;
            }
            actions.push(if kind == "mcp" {
                Action::mcp(unique, server, at)
            } else {
                Action::tool(unique, at)
            });
        }
    }
    actions
}
