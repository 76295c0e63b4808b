//! Components as JSON or YAML: what `dump_component()` writes and AutoGen Studio keeps.

use super::magentic;
use super::model::{
    Assistant, Graph, GraphEdge, Handoff, Member, MemberKind, Orchestrator, Place, Selector, SocietyOfMind,
    SpeakerSelection, Team, Termination, ToolUse, When, Words,
};
use super::selector;
use super::{AGENT_UNUSED, ASSISTANT, DEFAULT_PROMPT, INSTRUCTION, RESPONSE, TEAM_UNUSED};
use crate::defaults;
use core_ir::{Data, ModelParams, Name, ToolDecl, ToolParam, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{clip, codes, report_keys, value_span};
use frontend_kit::kit::{Kit, first_text, mark, setting};

/// The class that a component is of.
pub(super) fn provider<'d>(node: Node<'d>) -> &'d str {
    let full = node.get("provider").and_then(|p| p.text()).unwrap_or("");
    full.rsplit('.').next().unwrap_or(full)
}

pub(super) fn is_component(n: Node<'_>) -> bool {
    mark::starts(n, "provider", "autogen_")
}

pub(super) fn is_team(provider: &str) -> bool {
    provider.ends_with("GroupChat") || matches!(provider, "Swarm" | "GraphFlow")
}

/// Returns true for an agent or a team that can be given a task.
pub(super) fn runs(node: Node<'_>) -> bool {
    let of = provider(node);
    is_component(node) && (is_team(of) || ["Agent", "Surfer", "Coder"].iter().any(|end| of.ends_with(end)))
}

pub(super) fn name_of<'d>(node: Node<'d>) -> Option<&'d str> {
    let config = node.get("config").unwrap_or(node);
    config.get("name").and_then(|n| n.text()).or_else(|| node.get("label").and_then(|n| n.text()))
}

fn words(node: Node<'_>, key: &str) -> Option<Words> {
    let entry = node.entry(key)?;
    Some(Words::of(entry.value.text()?, value_span(&entry)))
}

fn flag(node: Node<'_>, key: &str) -> Option<bool> {
    node.get(key)?.as_bool()
}

/// An agent or a team.
pub(super) fn member(kit: &mut Kit<'_>, node: Node<'_>) -> Member {
    let head = node.head();
    let config = node.get("config").filter(|_| is_component(node)).unwrap_or(node);
    let of = provider(node);
    let kind = match of {
        of if is_team(of) => MemberKind::Team(Box::new(team(kit, of, config, head))),
        "UserProxyAgent" | "HttpUserProxyAgent" => {
            kit.outline.person(head, false);
            MemberKind::Outside
        }
        "CodeExecutorAgent" => MemberKind::Outside,
        "AssistantAgent" => MemberKind::Assistant(Box::new(assistant(kit, config, head))),
        "SocietyOfMindAgent" => society_of_mind(kit, config, head),
        "MessageFilterAgent" if config.get("wrapped_agent").is_some_and(is_component) => {
            let message = "the message filter is not compiled: all messages are seen";
            kit.out.push(Diagnostic::info(codes::NOT_COMPILED, message, head));
            config
                .get("wrapped_agent")
                .map_or(MemberKind::Unknown(String::new()), |inner| member(kit, inner).kind)
        }
        of if config.get("model_client").is_some() => {
            let why = format!("what `{}` adds to an assistant is not compiled", clip(of));
            kit.out.push(Diagnostic::info(codes::NOT_COMPILED, why, head));
            MemberKind::Assistant(Box::new(assistant(kit, config, head)))
        }
        of => MemberKind::Unknown(format!("an agent of the class `{}`", clip(of))),
    };
    let description = words(config, "description")
        .or_else(|| words(node, "description"))
        .unwrap_or_else(|| Words::of(default_description(of), head));
    let name = name_of(node).unwrap_or(if is_team(of) { "team" } else { "agent" }).to_string();
    Member { name, description, place: node.span(), head, kind }
}

/// Returns the default description of an agent class.
pub(super) fn default_description(class: &str) -> &'static str {
    match class {
        "AssistantAgent" => "An agent that provides assistance with ability to use tools.",
        "UserProxyAgent" => "A human user",
        "SocietyOfMindAgent" => "An agent that uses an inner team of agents to generate responses.",
        "CodeExecutorAgent" => {
            "A Code Execution Agent that generates and executes Python and shell scripts based on user instructions. It ensures correctness, efficiency, and minimal errors while gracefully handling edge cases."
        }
        _ => "A team of agents.",
    }
}

/// The model that a component names.
fn model(kit: &mut Kit<'_>, client: Option<Node<'_>>) -> (ModelParams, Option<Span>) {
    let mut params = ModelParams::default();
    let Some(client) = client else { return (params, None) };
    let inner = client.get("config").unwrap_or(client);
    let named = first_text(inner, &["model", "azure_deployment", "model_path"]);
    params.model = named.map(|(t, _)| Name::from(t));
    for e in inner.entries().filter(|e| matches!(e.name(), "temperature" | "max_tokens" | "top_p" | "seed")) {
        setting(&e, &mut params, kit.out);
    }
    (params, Some(named.map_or(client.head(), |(_, e)| value_span(&e))))
}

/// Returns true if a client passes prompts as system messages, as OpenAI's clients do.
fn speaks_openai(client: Option<Node<'_>>) -> bool {
    let Some(client) = client else { return true };
    let family = client.at(&["config", "model_info", "family"]).and_then(|f| f.text());
    provider(client).contains("OpenAI") && family.is_none_or(super::is_openai)
}

fn assistant(kit: &mut Kit<'_>, config: Node<'_>, head: Span) -> Assistant {
    report_keys(config, ASSISTANT, AGENT_UNUSED, "an AutoGen assistant", kit.out);
    let system = match config.entry("system_message") {
        // An empty text is what the model is told; the default holds where there is none.
        Some(e) => e.value.text().map(|text| Words::of(text, value_span(&e))),
        None => Some(Words::of(DEFAULT_PROMPT, head)),
    };
    let (mut params, model_at) = model(kit, config.get("model_client"));
    params.purpose = config.get("name").and_then(|n| n.text()).map(Name::from);
    let schema = config.get("structured_message_factory");
    if let Some(factory) = schema.filter(|f| f.is_mapping()) {
        let message = "the form of the answer is a JSON Schema, which is not compiled yet";
        kit.out.push(Diagnostic::info(codes::UNUSED_KEY, message, factory.head()));
    }
    let bound = defaults::bound(&defaults::AUTOGEN_TOOLS, kit.versions);
    let bound = bound.or_written(config.entry("max_tool_iterations"), kit.out);
    Assistant {
        system,
        params,
        model_at,
        tools: tools(kit, config),
        handoffs: config.get("handoffs").into_iter().flat_map(|h| h.items()).filter_map(handoff).collect(),
        bound,
        reflect: flag(config, "reflect_on_tool_use").unwrap_or(schema.is_some_and(|s| s.is_mapping())),
        summary: config.get("tool_call_summary_format").and_then(|f| f.text()).map(str::to_string),
        result: None,
    }
}

fn tools(kit: &mut Kit<'_>, config: Node<'_>) -> Vec<ToolUse> {
    let mut out = Vec::new();
    let workbenches =
        config.get("workbench").into_iter().flat_map(|w| w.items().chain(w.is_mapping().then_some(w)));
    let mut listed: Vec<Node<'_>> = config.get("tools").into_iter().flat_map(|t| t.items()).collect();
    for workbench in workbenches {
        let inner = workbench.get("config").unwrap_or(workbench);
        let own: Vec<Node<'_>> = inner.get("tools").into_iter().flat_map(|t| t.items()).collect();
        if own.is_empty() && provider(workbench).contains("Mcp") {
            let command =
                inner.at(&["server_params", "command"]).or_else(|| inner.at(&["server_params", "url"]));
            let name = command.and_then(|c| c.text()).unwrap_or("mcp");
            let mut decl = ToolDecl::unknown(name.into(), workbench.head());
            decl.handler = Some(Data::record([(Name::from("mcp"), Data::str(name))]));
            out.push(ToolUse { decl, ask: None });
        }
        listed.extend(own);
    }
    for tool in listed {
        let inner = tool.get("config").unwrap_or(tool);
        // A tool may be an agent or a team.
        let agent = inner.get("agent").or_else(|| inner.get("team")).filter(|a| is_component(*a));
        let text = |key: &str| inner.get(key).and_then(|d| d.as_str()).map(Name::from);
        if let Some(agent) = agent {
            let name =
                text("name").or_else(|| name_of(agent).map(Name::from)).unwrap_or_else(|| "agent".into());
            let asked = member(kit, agent);
            let mut decl = asks(name, tool.head());
            decl.description =
                text("description").or_else(|| Some(asked.description.shown().as_str().into()));
            out.push(ToolUse { decl, ask: Some(asked) });
        } else if let Some((name, _)) =
            first_text(inner, &["name"]).or_else(|| first_text(tool, &["label", "provider"]))
        {
            let name = name.rsplit('.').next().unwrap_or(name);
            let mut decl = ToolDecl::unknown(name.into(), tool.head());
            decl.description = text("description");
            out.push(ToolUse { decl, ask: None });
        }
    }
    out
}

/// The declaration of a tool that gives a task to somebody.
pub(super) fn asks(name: Name, at: Span) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name, at);
    decl.params =
        vec![ToolParam { name: "task".into(), ty: Type::Str, bound: core_ir::LabelSpec::TOP, default: None }];
    decl.result = Type::Str;
    decl.effect = core_ir::EffectClass::Pure;
    decl.control = core_ir::LabelSpec::TOP;
    decl.label = core_ir::LabelSpec::BOTTOM;
    decl
}

fn handoff(node: Node<'_>) -> Option<Handoff> {
    let at = node.head();
    if let Some(target) = node.text() {
        return Some(Handoff::to(target, at));
    }
    let mut handoff = Handoff::to(node.get("target")?.text()?, at);
    let said =
        |key: &str| node.get(key).and_then(|t| t.as_str()).filter(|t| !t.is_empty()).map(str::to_string);
    handoff.name = said("name").unwrap_or(handoff.name);
    handoff.message = said("message").unwrap_or(handoff.message);
    handoff.description = said("description").unwrap_or(handoff.description);
    Some(handoff)
}

fn society_of_mind(kit: &mut Kit<'_>, config: Node<'_>, head: Span) -> MemberKind {
    let Some(team) = config.get("team").filter(|t| is_component(*t)) else {
        return MemberKind::Unknown("the group chat inside an agent".into());
    };
    let (mut params, model_at) = model(kit, config.get("model_client"));
    params.purpose = config.get("name").and_then(|n| n.text()).map(Name::from);
    MemberKind::SocietyOfMind(Box::new(SocietyOfMind {
        team: member(kit, team),
        params,
        model_at,
        instruction: words(config, "instruction").unwrap_or_else(|| Words::of(INSTRUCTION, head)),
        response: words(config, "response_prompt").unwrap_or_else(|| Words::of(RESPONSE, head)),
        as_system: speaks_openai(config.get("model_client")),
    }))
}

fn team(kit: &mut Kit<'_>, of: &str, config: Node<'_>, head: Span) -> Team {
    let used = [
        "name",
        "description",
        "participants",
        "termination_condition",
        "max_turns",
        "model_client",
        "selector_prompt",
        "allow_repeated_speaker",
        "max_selector_attempts",
        "max_stalls",
        "final_answer_prompt",
        "graph",
    ];
    report_keys(config, &used, TEAM_UNUSED, "an AutoGen team", kit.out);
    let list: Vec<Node<'_>> = config.get("participants").into_iter().flat_map(|p| p.items()).collect();
    let members: Vec<Member> = list.into_iter().map(|p| member(kit, p)).collect();
    let ends = config.get("termination_condition").filter(|c| c.is_mapping()).and_then(ends);
    let default = match of {
        "MagenticOneGroupChat" => &defaults::AUTOGEN_MAGENTIC,
        _ => &defaults::AUTOGEN_TURNS,
    };
    let bound = defaults::bound(default, kit.versions).or_written(config.entry("max_turns"), kit.out);
    let how = match of {
        "RoundRobinGroupChat" => SpeakerSelection::RoundRobin,
        "Swarm" => SpeakerSelection::Swarm,
        "GraphFlow" => SpeakerSelection::Graph(graph(config)),
        "MagenticOneGroupChat" => {
            let (params, model_at) = model(kit, config.get("model_client"));
            let stalls = config.get("max_stalls").and_then(|n| n.as_u64()).unwrap_or(magentic::STALLS);
            let answer = words(config, "final_answer_prompt").filter(|w| !magentic::is_own(&w.shown()));
            SpeakerSelection::Magentic(Box::new(Orchestrator { params, model_at, stalls, answer }))
        }
        _ => {
            let (params, model_at) = model(kit, config.get("model_client"));
            let attempts = defaults::bound(&defaults::AUTOGEN_SELECTS, kit.versions);
            let selector = Selector {
                params,
                model_at,
                prompt: words(config, "selector_prompt").unwrap_or_else(|| Words::of(selector::PROMPT, head)),
                after: None,
                as_system: speaks_openai(config.get("model_client")),
                repeats: flag(config, "allow_repeated_speaker").unwrap_or(false),
                attempts: attempts.or_written(config.entry("max_selector_attempts"), kit.out),
                code: None,
            };
            SpeakerSelection::Selector(Box::new(selector))
        }
    };
    let at = config.entry("participants").map_or(head, |e| e.key.span());
    Team { how, members, opener: "user".into(), ends, bound, at }
}

fn graph(config: Node<'_>) -> Graph {
    let mut edges = Vec::new();
    for node in config.at(&["graph", "nodes"]).into_iter().flat_map(|n| n.entries()) {
        for e in node.value.get("edges").into_iter().flat_map(|e| e.items()) {
            let Some(to) = e.get("target").and_then(|t| t.text()) else { continue };
            let when = match e.get("condition").filter(|c| !c.is_null()) {
                None => When::Always,
                Some(c) => match c.text() {
                    Some(text) => When::Contains(text.to_string()),
                    None => When::Unknown("the condition of an edge".into()),
                },
            };
            let group = e.get("activation_group").and_then(|g| g.text()).filter(|g| !g.is_empty());
            edges.push(GraphEdge {
                from: node.name().to_string(),
                to: to.to_string(),
                when,
                group: group.unwrap_or(to).to_string(),
                any: e.get("activation_condition").and_then(|a| a.text()) == Some("any"),
                at: e.head(),
            });
        }
    }
    let start = config.at(&["graph", "default_start_node"]).and_then(|s| s.text()).map(str::to_string);
    Graph { edges, start }
}

/// A condition. Conditions within one another are as deep as the document at most.
fn ends(node: Node<'_>) -> Option<Termination> {
    let config = node.get("config").unwrap_or(node);
    let at = node.head();
    let text = |key: &str| first_text(config, &[key]).map(|(t, e)| (t.to_string(), value_span(&e)));
    let several = || config.get("conditions").into_iter().flat_map(|c| c.items()).filter_map(ends).collect();
    Some(match provider(node) {
        "OrTerminationCondition" => Termination::Any(several()),
        "AndTerminationCondition" => Termination::All(several()),
        "MaxMessageTermination" => {
            let e = config.entry("max_messages")?;
            if flag(config, "include_agent_event") == Some(true) {
                return Some(Termination::Unknown(
                    "how many events count as messages".into(),
                    value_span(&e),
                ));
            }
            Termination::Messages(e.value.as_u64()?, value_span(&e))
        }
        "TextMentionTermination" => {
            let (text, at) = text("text")?;
            let sources = config.get("sources").filter(|s| s.is_sequence());
            let sources = sources.map(|s| s.items().filter_map(|i| i.text().map(str::to_string)).collect());
            Termination::Mention { text, sources, place: Place::Anywhere, at }
        }
        "HandoffTermination" => {
            let (target, at) = text("target")?;
            Termination::Handoff(target, at)
        }
        "SourceMatchTermination" => {
            let sources = config.get("sources").into_iter().flat_map(|s| s.items());
            Termination::Source(sources.filter_map(|s| s.text().map(str::to_string)).collect(), at)
        }
        "TextMessageTermination" => Termination::TextOf(text("source").map(|(t, _)| t), at),
        "FunctionCallTermination" => {
            let (name, at) = text("function_name")?;
            Termination::Called(name, at)
        }
        // Nobody in a compiled group chat says it.
        "StopMessageTermination" => Termination::Any(Vec::new()),
        of => super::outside(of, at)
            .unwrap_or_else(|| Termination::Unknown(format!("whether `{}` ends the chat", clip(of)), at)),
    })
}
