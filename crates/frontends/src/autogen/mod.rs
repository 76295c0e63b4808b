//! AutoGen: agents and teams of `autogen-agentchat`, as components (also galleries of AutoGen Studio) and in
//! Python; and before 0.4, agents that converse in pairs and groups, as `llm_config` files and in Python.
//!
//! | source | term |
//! |---|---|
//! | `AssistantAgent` | `llm p θ`; with tools or handoffs a conversation of `max_tool_iterations`, and one more question with `reflect_on_tool_use` |
//! | `UserProxyAgent`, `CodeExecutorAgent` | a tool: whoever answers the last message |
//! | `AgentTool`, `TeamTool` | an agent that is asked |
//! | `SocietyOfMindAgent` | its team, then a model that is told what was said |
//! | a team | `fix[n]`, a turn of the group chat each; the state holds what was said |
//! | `RoundRobinGroupChat` | the members in their order |
//! | `SelectorGroupChat` | a model names who speaks next |
//! | `MagenticOneGroupChat` | a loop that asks for a progress ledger; its state holds the facts, the plan and the stalls |
//! | `Swarm` | whom the last one handed off to |
//! | `GraphFlow` | whoever the edges lead to, several at once by `par` |
//! | `max_turns`, `MaxMessageTermination` | the bound |
//! | other conditions, `|` and `&` | a test of the state |
//! | `initiate_chat` (before 0.4) | the recipient's conversation; what the initiator carries out are tools |
//! | `GroupChat` (before 0.4) | as a team |
//!
//! The modules: [`model`] says what all notations say alike, `component` and `code` read 0.4 and later,
//! `classic` what came before; `turn`, `term`, `choose`, `magentic`, `network` and `ends` make terms.
//!
//! Source: microsoft/autogen 0.7.5, `autogen_agentchat`; 0.2.40, `autogen/agentchat`.

mod assistant_turn;
mod classic;
mod code;
mod component;
mod graph_flow;
mod group_chat;
mod magentic;
mod message_test;
mod model;
mod selector;
mod termination;
mod two_agent_chat;

use crate::py;
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::Unused;
use frontend_kit::kit::{Units, mark};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::why;
use model::Termination;
use python::{ObjectId, World};
use std::collections::HashSet;

/// The front end.
pub struct AutoGen;

/// Default system message of an assistant.
const DEFAULT_PROMPT: &str = "You are a helpful AI assistant. Solve tasks using your tools. Reply with TERMINATE when the task has been completed.";
/// Default instructions around the messages of the group chat inside a `SocietyOfMindAgent`.
const INSTRUCTION: &str = "Earlier you were asked to fulfill a request. You and your team worked diligently to address that request. Here is a transcript of that conversation:";
const RESPONSE: &str = "Output a standalone response to the original request, without mentioning any of the intermediate discussion.";

const ASSISTANT: &[&str] = &[
    "name",
    "description",
    "model_client",
    "tools",
    "workbench",
    "handoffs",
    "system_message",
    "max_tool_iterations",
    "reflect_on_tool_use",
    "tool_call_summary_format",
    "tool_call_summary_formatter",
    "structured_message_factory",
    "output_content_type",
];
const AGENT_UNUSED: &[Unused] = &[
    ("model_context", "how much of the chat the model sees is not compiled yet"),
    ("model_client_stream", why::RUNTIME),
    ("metadata", why::SHOWN),
    ("memory", why::NOT_YET),
    ("output_content_type_format", why::NOT_YET),
];
const TEAM_UNUSED: &[Unused] = &[
    ("runtime", why::RUNTIME),
    ("emit_team_events", why::SHOWN),
    ("custom_message_types", why::CODE),
    ("model_client_streaming", why::RUNTIME),
    ("model_context", "how much of the chat the model sees is not compiled yet"),
];

/// Returns true for the name of an OpenAI model.
fn is_openai(family: &str) -> bool {
    ["gpt-", "o1", "o3", "o4"].iter().any(|f| family.starts_with(f))
}

/// A condition that nothing said in the group chat decides.
fn outside(class: &str, at: Span) -> Option<Termination> {
    let why = match class {
        "TimeoutTermination" => "the time that a chat takes",
        "TokenUsageTermination" => "the number of tokens that a chat uses",
        "ExternalTermination" => "the caller who started the chat",
        _ => return None,
    };
    Some(Termination::Outside(why.to_string(), at))
}

/// Advice for the bound of a team, which differs from that of an agent.
const GROUP_CHAT_BOUND: &str = "limit it: `max_turns` of the team, or a `MaxMessageTermination`";

fn facts() -> Facts {
    Facts {
        default_model: None,
        ends_loops: Some("AutoGen ends an agent's turn at the first reply that calls no tool"),
        words: Words {
            prompt: "say what the agent is to do: `system_message`",
            model: "name one: `model_client.config.model`",
            bound: "state it: `max_tool_iterations` of the agent",
            exit: "give the team a termination condition that a message can meet, such as `TextMentionTermination`",
            ..Words::default()
        },
        chats: true,
        ..Facts::default()
    }
}

/// The words where a group chat is begun with `initiate_chat`.
fn classic_words(words: Words) -> Words {
    Words {
        model: "name one: `llm_config`",
        bound: "state it: `max_turns=` of `initiate_chat`, `max_round=` of the group, or `max_consecutive_auto_reply=` of an agent",
        exit: "give an agent an `is_termination_msg` that a message can meet",
        ..words
    }
}

impl Frontend for AutoGen {
    fn name(&self) -> &'static str {
        "autogen"
    }

    fn run_methods(&self) -> &'static [&'static str] {
        &["run_stream"]
    }

    fn detect(&self, file: &File) -> u8 {
        if file.python.is_some() {
            let makes = |name: &str| {
                let chats = ["initiate_chat", "initiate_chats"].iter().any(|c| name.ends_with(c));
                chats || py::ends_with(name, &["Agent", "GroupChat", "Swarm", "GraphFlow"])
            };
            let imports = py::imports(file, code::PACKAGES) || py::imports(file, classic::PACKAGES);
            return if imports && py::makes(file, makes) { 85 } else { 0 };
        }
        let gallery = |c: Node<'_>| {
            c.entries().take(20).any(|e| e.value.items().take(20).any(component::is_component))
                || c.items().take(20).any(component::is_component)
        };
        let sure = |r: Node<'_>| {
            component::is_component(r)
                || r.get("components").is_some_and(gallery)
                || r.at(&["items", "components"]).is_some_and(gallery)
                || mark::list(r, &["items"], |i| i.get("components").is_some_and(gallery))
        };
        match () {
            () if mark::any(file, sure) => 95,
            () if mark::any(file, |r| r.descendants().take(400).any(classic::is_agent)) => 76,
            () => 0,
        }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let mut units = Units::new(self.name(), facts(), project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        if file.python.is_some() {
            return python(units, project, file);
        }
        for root in file.documents.iter().map(|d| d.root()) {
            let mut found: Vec<Node<'_>> = Vec::new();
            let mut todo = vec![root];
            let mut seen = 0;
            // Teams and agents that stand in no other one.
            while let Some(node) = todo.pop() {
                seen += 1;
                if component::runs(node) || classic::is_agent(node) {
                    found.push(node);
                } else if seen < 200_000 {
                    let values: Vec<Node<'_>> = node.items().chain(node.entries().map(|e| e.value)).collect();
                    todo.extend(values.into_iter().rev());
                }
            }
            for node in found {
                if component::runs(node) {
                    let team = component::is_team(component::provider(node));
                    let kind = if team { UnitKind::Crew } else { UnitKind::Agent };
                    let name = component::name_of(node).unwrap_or(if team { "team" } else { "agent" });
                    units.add(name, kind, node.head(), |kit| {
                        let member = component::member(kit, node);
                        group_chat::alone(kit, &member)
                    });
                } else {
                    let name = component::name_of(node).unwrap_or("agent");
                    units.add(name, UnitKind::Agent, node.head(), |kit| {
                        let member = classic::configured(kit, node);
                        group_chat::alone(kit, &member)
                    });
                }
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no component is a team or an agent")
    }
}

/// The teams and agents that a module makes, and that are no part of another one.
fn python(mut units: Units, project: &Project, file: &File) -> Compiled {
    let classic = !py::imports(file, code::PACKAGES);
    if classic {
        units.compiled.facts.words = classic_words(units.compiled.facts.words);
    }
    py::evaluated(project, file, python::Limits::default(), None, |world, found| {
        units.compiled.diagnostics.extend(found);
        made(units, file, world, classic)
    })
}

fn made(mut units: Units, file: &File, world: World<'_>, classic: bool) -> Compiled {
    let reader = code::AgentChatReader { world: &world };
    let mut parts: HashSet<ObjectId> = HashSet::new();
    let all: Vec<ObjectId> = world.objects().map(|(id, _)| id).filter(|id| reader.runs(*id)).collect();
    for id in &all {
        parts.extend(reader.parts(*id).into_iter().filter(|p| p != id));
    }
    // What stands in one place and is made several times is the same.
    let part_places: HashSet<Span> = parts.iter().map(|p| reader.place(*p)).collect();
    let tools = |id: ObjectId| reader.get(id, None, "tools").map(|g| g.value);
    let kept = py::distinct(&mut units, (&world, file), all.iter().copied(), tools);
    let mut places: HashSet<(Span, ObjectId)> = HashSet::new();
    let asks = crate::model_requests::ModelRequests::new(&world);
    for id in all {
        let object = world.object(id);
        if !py::made_here(&world, id, file) || parts.contains(&id) {
            continue;
        }
        let place = reader.place(id);
        if part_places.contains(&place) || !kept.contains(&id) || !places.insert((place, id)) {
            continue;
        }
        let name = reader.name(id);
        let team = reader.class(id).is_some_and(|c| component::is_team(&c));
        let kind = if team { UnitKind::Crew } else { UnitKind::Agent };
        units.add(&name, kind, object.span, |kit| {
            let member = reader.member(kit, id, 0);
            let term = group_chat::alone(kit, &member);
            let runs = reader.tasks(place);
            let times = py::repeats(&world, &runs);
            let times = if team { py::resumed(times) } else { times };
            py::counted(kit, term, times, || reader.beside(&asks, id))
        });
    }
    classic::lower(&mut units, &world, &asks, file);
    let start = Span { file: file.id, start: 0, end: 0 };
    if classic {
        // Its words name what bounds a group chat.
        for unit in &mut units.compiled.units {
            unit.outline.loops.values_mut().for_each(|l| l.bounded = None);
        }
    }
    units.done(Some(start), "no agent and no team is made here")
}
