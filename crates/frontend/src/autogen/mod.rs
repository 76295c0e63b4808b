//! AutoGen: components of `autogen-agentchat` (also galleries of AutoGen Studio), and `llm_config` files before 0.4.
//!
//! | component | term |
//! |---|---|
//! | `AssistantAgent` | `llm p θ`, or a loop of `max_tool_iterations` if it has tools; handoffs take over |
//! | `UserProxyAgent` | a tool: the user |
//! | `RoundRobinGroupChat` | turns of all members in their order |
//! | `SelectorGroupChat`, `MagenticOneGroupChat` | turns; a model names who speaks next |
//! | `Swarm` | the first member, handing over |
//! | `MaxMessageTermination`, `max_turns` | the bound |
//! | `TextMentionTermination` | ends the talk when a message holds the text |
//! | `OrTerminationCondition`, `AndTerminationCondition` | the first to hold; of an *and*, the texts and the largest bound |
//! | other conditions | an end that is not known before the run |
//!
//! Source: microsoft/autogen 0.7, `autogen_agentchat/agents/_assistant_agent.py` (`max_tool_iterations` 1),
//! `autogen_agentchat/teams/_group_chat`, `autogen_agentchat/conditions`.

use crate::defaults;
use crate::doc::Node;
use crate::emit::{LoopBound, Template, Unused, clip, codes, report_keys, value_span};
use crate::kit::{Agent, Hand, Kit, Team, Turns, Units, first_text, mark, setting, size};
use crate::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use crate::shape::why;
use core_ir::{Bound, ModelParams, Name, Term, TermId};
use diagnostics::Span;
use std::sync::Arc;

/// The front end.
pub struct AutoGen;

const AGENT_UNUSED: &[Unused] = &[
    ("description", "it tells who chooses the next speaker what the agent is for"),
    ("model_context", "how much of the talk the model is shown is not compiled yet"),
    ("model_client_stream", why::RUNTIME),
    ("reflect_on_tool_use", why::NOT_YET),
    ("tool_call_summary_format", why::NOT_YET),
    ("metadata", why::SHOWN),
    ("memory", why::NOT_YET),
    ("structured_message_factory", why::NOT_YET),
];

fn provider<'d>(node: Node<'d>) -> &'d str {
    let full = node.get("provider").and_then(|p| p.text()).unwrap_or("");
    full.rsplit('.').next().unwrap_or(full)
}

fn is_component(n: Node<'_>) -> bool {
    mark::starts(n, "provider", "autogen_")
}

fn is_legacy(n: Node<'_>) -> bool {
    mark::has(n, "llm_config") && (mark::has(n, "human_input_mode") || mark::has(n, "system_message"))
}

impl Frontend for AutoGen {
    fn name(&self) -> &'static str {
        "autogen"
    }

    fn detect(&self, file: &File) -> u8 {
        let gallery = |c: Node<'_>| {
            c.entries().take(20).any(|e| e.value.items().take(20).any(is_component))
                || c.items().take(20).any(is_component)
        };
        let sure = |r: Node<'_>| {
            is_component(r)
                || r.get("components").is_some_and(gallery)
                || r.at(&["items", "components"]).is_some_and(gallery)
                || mark::list(r, &["items"], |i| i.get("components").is_some_and(gallery))
        };
        match () {
            () if mark::any(file, sure) => 95,
            () if mark::any(file, |r| r.descendants().take(400).any(is_legacy)) => 76,
            () => 0,
        }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("AutoGen ends an agent's turn at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `system_message`",
                model: "name one: `model_client.config.model`",
                bound: "state it: `max_tool_iterations` of the agent, or `MaxMessageTermination` of the team",
                exit: "give the team a termination condition that a message can meet, such as `TextMentionTermination`",
                ..Words::default()
            },
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let mut found: Vec<Node<'_>> = Vec::new();
            let mut todo = vec![root];
            let mut seen = 0;
            // Teams and agents that stand in no other one.
            while let Some(node) = todo.pop() {
                seen += 1;
                let of = provider(node);
                let runs = is_team(of) || ["Agent", "Surfer", "Coder"].iter().any(|end| of.ends_with(end));
                if is_component(node) && runs || is_legacy(node) {
                    found.push(node);
                } else if seen < 200_000 {
                    let values: Vec<Node<'_>> = node.items().chain(node.entries().map(|e| e.value)).collect();
                    todo.extend(values.into_iter().rev());
                }
            }
            for node in found {
                let config = node.get("config").unwrap_or(node);
                let label = ["label", "name"].iter().find_map(|k| node.get(k)?.text());
                let name = config.get("name").and_then(|n| n.text()).or(label).unwrap_or("team");
                let kind = if is_team(provider(node)) { UnitKind::Crew } else { UnitKind::Agent };
                units.add(name, kind, node.head(), |kit| member(kit, node, &[]));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no component is a team or an agent")
    }
}

fn is_team(provider: &str) -> bool {
    provider.ends_with("GroupChat") || provider == "Swarm" || provider == "GraphFlow"
}

fn name_of<'d>(node: Node<'d>) -> &'d str {
    let config = node.get("config").unwrap_or(node);
    config.get("name").or_else(|| node.get("label")).and_then(|n| n.text()).unwrap_or("agent")
}

/// An agent or a team. `others` are those it may hand over to.
fn member<'d>(kit: &mut Kit<'_>, node: Node<'d>, others: &[Node<'d>]) -> TermId {
    let (name, head) = (name_of(node), node.head());
    if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
        return term;
    }
    let config = node.get("config").filter(|_| is_component(node)).unwrap_or(node);
    let term = match provider(node) {
        of if is_team(of) => team(kit, of, config, head),
        "UserProxyAgent" | "HttpUserProxyAgent" => user(kit, name, head),
        // Before 0.4, an agent without a model speaks for the user, or runs code.
        "" if config.get("llm_config").is_some_and(|l| !l.is_mapping()) => user(kit, name, head),
        "AssistantAgent" | "" => assistant(kit, config, name, others, head),
        of if config.get("model_client").is_some() => {
            let why = format!("what `{}` adds to an assistant is not compiled", clip(of));
            kit.out.push(diagnostics::Diagnostic::info(codes::NOT_COMPILED, why, head));
            assistant(kit, config, name, others, head)
        }
        of => kit.undecided(codes::NOT_COMPILED, format!("an agent of the class `{}`", clip(of)), head),
    };
    kit.close();
    term
}

/// The user, as a tool that is asked.
fn user(kit: &mut Kit<'_>, name: &str, at: Span) -> TermId {
    let x = kit.b.var("x", at);
    let said = crate::flow::by_tool(kit, name, x, at);
    kit.b.abs("x", Some(core_ir::Type::Str), said, at)
}

fn model(kit: &mut Kit<'_>, config: Node<'_>) -> (ModelParams, Option<Span>) {
    let mut params = ModelParams::default();
    // Before 0.4: `llm_config: {config_list: [{model: …}], temperature: …}`.
    if let Some(old) = config.get("llm_config") {
        let first = old.get("config_list").and_then(|l| l.items().next());
        let named = first.and_then(|f| first_text(f, &["model"])).or_else(|| first_text(old, &["model"]));
        params.model = named.map(|(t, _)| Name::from(t));
        crate::kit::settings(old, &mut params, kit.out);
        return (params, Some(named.map_or(old.head(), |(_, e)| value_span(&e))));
    }
    let Some(client) = config.get("model_client") else { return (params, None) };
    let inner = client.get("config").unwrap_or(client);
    let named = first_text(inner, &["model", "azure_deployment", "model_path"]);
    params.model = named.map(|(t, _)| Name::from(t));
    for e in inner.entries().filter(|e| matches!(e.name(), "temperature" | "max_tokens" | "top_p")) {
        setting(&e, &mut params, kit.out);
    }
    (params, Some(named.map_or(client.head(), |(_, e)| value_span(&e))))
}

/// What AutoGen tells an assistant that is told nothing.
const DEFAULT_PROMPT: &str = "You are a helpful AI assistant. Solve tasks using your tools. Reply with TERMINATE when the task has been completed.";

fn assistant<'d>(kit: &mut Kit<'_>, config: Node<'d>, name: &str, others: &[Node<'d>], head: Span) -> TermId {
    let known = [
        "name",
        "model_client",
        "tools",
        "workbench",
        "handoffs",
        "system_message",
        "max_tool_iterations",
        "llm_config",
        "human_input_mode",
        "max_consecutive_auto_reply",
        "code_execution_config",
        "is_termination_msg",
    ];
    if config.get("model_client").is_some() {
        report_keys(config, &known, AGENT_UNUSED, "an AutoGen assistant", kit.out);
    }
    let prompt = match first_text(config, &["system_message"]) {
        Some((text, e)) => kit.text(text, value_span(&e)),
        // An empty text is what the model is told; the default holds where there is none.
        None => match config.entry("system_message").filter(|e| e.value.as_str().is_some()) {
            Some(e) if config.get("model_client").is_some() => kit.text("", value_span(&e)),
            _ => kit.text(DEFAULT_PROMPT, head),
        },
    };
    let (params, model_at) = model(kit, config);
    let mut hands = Vec::new();
    let workbenches =
        config.get("workbench").into_iter().flat_map(|w| w.items().chain(w.is_mapping().then_some(w)));
    let mut listed: Vec<Node<'d>> = config.get("tools").into_iter().flat_map(|t| t.items()).collect();
    for workbench in workbenches {
        let inner = workbench.get("config").unwrap_or(workbench);
        let tools: Vec<Node<'d>> = inner.get("tools").into_iter().flat_map(|t| t.items()).collect();
        if tools.is_empty() {
            let command =
                inner.at(&["server_params", "command"]).or_else(|| inner.at(&["server_params", "url"]));
            let name = command.and_then(|c| c.text()).unwrap_or(provider(workbench));
            hands.push(Hand::mcp(name, name, workbench.head()));
        }
        listed.extend(tools);
    }
    for tool in listed {
        let inner = tool.get("config").unwrap_or(tool);
        // A tool may be an agent or a team.
        let agent = inner.get("agent").or_else(|| inner.get("team")).filter(|a| is_component(*a));
        if let Some(agent) = agent {
            let term = member(kit, agent, &[]);
            hands.push(Hand::ask(name_of(agent), term, tool.head()));
        } else if let Some((name, _)) =
            first_text(inner, &["name"]).or_else(|| first_text(tool, &["label", "provider"]))
        {
            hands.push(Hand::tool(name.rsplit('.').next().unwrap_or(name), tool.head()));
        }
    }
    for handoff in config.get("handoffs").into_iter().flat_map(|h| h.items()) {
        let target = handoff.text().or_else(|| handoff.get("target")?.text()).unwrap_or("");
        let at = handoff.head();
        let term = match others.iter().find(|o| name_of(**o) == target) {
            Some(other) if kit.is_open(other.span()) => kit.unknown(&format!("{target}, again"), at),
            Some(other) => member(kit, *other, others),
            None => kit.unknown(&format!("the agent {target}"), at),
        };
        hands.push(Hand::over(format!("transfer_to_{target}"), term, at));
    }
    let bound = defaults::bound(&defaults::AUTOGEN_TOOLS, kit.versions);
    let bound = bound.or_written(config.entry("max_tool_iterations"), kit.out);
    let hands_at = config.entry("tools").or_else(|| config.entry("workbench")).map(|e| e.key.span());
    kit.agent(Agent { name, head, prompt, params, model_at, hands, hands_at, bound })
}

/// What ends a talk.
#[derive(Default)]
struct Ends {
    stops: Vec<(String, Span)>,
    /// Messages, with the place that says so.
    messages: Option<(u64, Span)>,
    /// Something that is not compiled.
    decided: Option<Span>,
}

fn ends(node: Node<'_>, any: bool, out: &mut Ends) {
    let config = node.get("config").unwrap_or(node);
    match provider(node) {
        "OrTerminationCondition" | "AndTerminationCondition" => {
            let or = provider(node) == "OrTerminationCondition";
            for c in config.get("conditions").into_iter().flat_map(|c| c.items()) {
                ends(c, or && any, out);
            }
        }
        "MaxMessageTermination" => {
            if let Some(e) = config.entry("max_messages")
                && let Some(n) = e.value.as_u64()
            {
                let n = match out.messages {
                    Some((m, _)) if any => n.min(m),
                    Some((m, _)) => n.max(m),
                    None => n,
                };
                out.messages = Some((n, value_span(&e)));
            }
        }
        "TextMentionTermination" => {
            if let Some((text, e)) = first_text(config, &["text"]) {
                out.stops.push((text.to_string(), value_span(&e)));
            }
        }
        _ => out.decided = out.decided.or(Some(node.head())),
    }
}

fn team(kit: &mut Kit<'_>, of: &str, config: Node<'_>, head: Span) -> TermId {
    let list: Vec<Node<'_>> = config.get("participants").into_iter().flat_map(|p| p.items()).collect();
    if of == "Swarm" {
        return match list.first() {
            Some(first) => member(kit, *first, &list),
            None => kit.unknown("a swarm without members", head),
        };
    }
    if of == "GraphFlow" {
        return graph(kit, config, &list, head);
    }
    let mut end = Ends::default();
    if let Some(condition) = config.get("termination_condition").filter(|c| c.is_mapping()) {
        ends(condition, true, &mut end);
    }
    let members: Vec<(String, TermId)> =
        list.iter().map(|p| (name_of(*p).to_string(), member(kit, *p, &list))).collect();
    let turns = config.entry("max_turns").and_then(|e| Some((e.value.as_u64()?, value_span(&e))));
    // The task is a message, too.
    let said = end.messages.map(|(n, at)| (n.saturating_sub(1), at));
    let limit = match (turns, said) {
        (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
        (a, b) => a.or(b),
    };
    let mut bound = match limit {
        Some((n, at)) => LoopBound { bound: Bound::Finite(n), origin: None, span: Some(at) },
        None => defaults::bound(&defaults::AUTOGEN_TURNS, kit.versions),
    };
    let at = config.entry("participants").map_or(head, |e| e.key.span());
    let turns = if of == "RoundRobinGroupChat" {
        if let Bound::Finite(n) = bound.bound {
            bound.bound = Bound::Finite(n.div_ceil(members.len().max(1) as u64));
        }
        Turns::RoundRobin
    } else {
        let names: Vec<&str> = members.iter().map(|(n, _)| n.as_str()).collect();
        let (mut params, model_at) = model(kit, config);
        params.purpose = Some("selector".into());
        let prompt = match first_text(config, &["selector_prompt"]) {
            Some((text, e)) => {
                let mut out = Template::new(value_span(&e));
                out.text(&text.replace("{participants}", &names.join(", ")));
                out.build(&mut kit.b)
            }
            None => kit.text(
                &format!("Select who speaks next, one of: {}. Reply with the name only.", names.join(", ")),
                head,
            ),
        };
        Turns::Chosen(kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(head)))
    };
    kit.team(Team { members, turns, stops: end.stops, decided: end.decided, ends: false, bound, at })
}

/// `GraphFlow`: members along edges.
fn graph(kit: &mut Kit<'_>, config: Node<'_>, list: &[Node<'_>], head: Span) -> TermId {
    use crate::flow::{Flow, FlowNode};
    let nodes = list
        .iter()
        .map(|p| {
            let (name, at) = (name_of(*p), p.head());
            let p = *p;
            FlowNode::new(name, name, at, move |kit, x| {
                let term = member(kit, p, &[]);
                kit.b.app(term, x, at)
            })
            .undecided(format!("where {name} leads"))
        })
        .collect();
    let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
    for (name, node) in config
        .at(&["graph", "nodes"])
        .into_iter()
        .flat_map(|n| n.entries())
        .map(|e| (e.name().to_string(), e.value))
    {
        for e in node.get("edges").into_iter().flat_map(|e| e.items()) {
            let to = e.get("target").and_then(|t| t.text()).unwrap_or("").to_string();
            edges.push((name.clone(), to, e.get("condition").and_then(|c| c.text()).map(str::to_string)));
        }
    }
    let start = config.at(&["graph", "default_start_node"]).and_then(|s| s.text()).map(str::to_string);
    let bound = defaults::bound(&defaults::AUTOGEN_TURNS, kit.versions)
        .or_written(config.entry("max_turns"), kit.out);
    let start = start.into_iter().collect();
    Flow { nodes, edges, start, triggers: false, bound, at: head }.lower(kit)
}
