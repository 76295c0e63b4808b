//! The aiwaves Agents framework: an agent team, a standard operating procedure (SOP), or both in one file.
//!
//! The nodes of an SOP follow one another along its edges; in a node, its agents take turns until
//! `max_chat_nums` messages are said; a node with `transit_type: order` and an edge onward is left after one.
//! Agents of a team alone are units of their own. Where a node may go to several others a controller decides;
//! that is compiled as the first edge that leads on.
//!
//! Source: aiwaves-cn/agents, `src/agents/task/solution.py`, `src/agents/environment`.

use core_ir::TermId;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, codes, value_span};
use frontend_kit::kit::{Agent, Kit, Team, Turns, Units, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::model_node;

/// The front end.
pub struct Aiwaves;

fn is_sop(r: Node<'_>) -> bool {
    mark::has(r, "nodes") && mark::has(r, "edges") && mark::has(r, "root") && mark::has(r, "end")
}

fn is_team(r: Node<'_>) -> bool {
    r.get("agents").is_some_and(|a| {
        a.entries().take(20).any(|e| mark::has(e.value, "agent_roles") || mark::has(e.value, "LLM_config"))
    })
}

/// The procedure and the team of a file.
fn parts(root: Node<'_>) -> (Option<Node<'_>>, Option<Node<'_>>) {
    let sop = root.get("sop").filter(|s| is_sop(*s)).or(Some(root).filter(|r| is_sop(*r)));
    let team = root.get("agent_team").filter(|t| is_team(*t)).or(Some(root).filter(|r| is_team(*r)));
    (sop, team)
}

impl Frontend for Aiwaves {
    fn name(&self) -> &'static str {
        "aiwaves_agents"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            let (sop, team) = parts(r);
            sop.is_some() || team.is_some()
        };
        if mark::any(file, sure) { 88 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the framework asks the model that the environment names"),
            ends_loops: None,
            words: Words { bound: "state it: `controller.max_chat_nums`", ..Words::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        // A team may stand in the file beside.
        let beside = project.files.iter().filter(|f| f.folder() == file.folder());
        let all: Vec<Node<'_>> = beside.flat_map(|f| f.documents.iter()).map(|d| d.root()).collect();
        for root in file.documents.iter().map(|d| d.root()) {
            let (sop, team) = parts(root);
            let team = team.or_else(|| all.iter().find_map(|r| parts(*r).1));
            if let Some(sop) = sop {
                units.add("sop", UnitKind::Crew, sop.head(), |kit| procedure(kit, sop, team));
            } else if let Some(team) = team {
                for e in team.get("agents").into_iter().flat_map(|a| a.entries()) {
                    let name = e.key.text().unwrap_or("agent").to_string();
                    units.add(&name, UnitKind::Agent, e.key.span(), |kit| {
                        agent(kit, None, team, &name, e.key.span())
                    });
                }
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn procedure(kit: &mut Kit<'_>, sop: Node<'_>, team: Option<Node<'_>>) -> TermId {
    let end = sop.get("end").and_then(|e| e.text()).unwrap_or("");
    let mut name = sop.get("root").and_then(|r| r.text()).unwrap_or("");
    let mut stages = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    while name != end && !seen.contains(&name) && seen.len() < 200 {
        seen.push(name);
        let Some(entry) = sop.get("nodes").and_then(|n| n.entry(name)) else { break };
        let edges = sop.get("edges").and_then(|e| e.entry(name));
        let ways = edges.map_or(0, |e| e.value.items().count());
        stages.push(node(kit, entry.value, entry.key.span(), team, ways));
        let onward = edges.into_iter().flat_map(|e| e.value.items()).filter_map(|n| n.text());
        let onward: Vec<&str> = onward.filter(|n| !seen.contains(n)).collect();
        if let (Some(e), true) = (edges, onward.len() > 1) {
            let why = "the controller decides where to go; compiled as the first edge that leads on";
            kit.out.push(frontend_kit::emit::undecided(codes::NOT_COMPILED, why, value_span(&e)));
        }
        name = onward.first().copied().unwrap_or(end);
    }
    let at = sop.head();
    kit.sequence(stages, at)
}

/// A node that `ways` edges leave, the one to itself included.
fn node(
    kit: &mut Kit<'_>,
    node: Node<'_>,
    at: diagnostics::Span,
    team: Option<Node<'_>>,
    ways: usize,
) -> TermId {
    let listed = node.get("node_agents").or_else(|| node.get("agents"));
    let mut names: Vec<&str> = listed.into_iter().flat_map(|a| a.items()).filter_map(|a| a.text()).collect();
    if names.is_empty() {
        // The team says which roles its agents have in which node.
        let this = node.get("node_name").and_then(|n| n.text()).unwrap_or("");
        for e in team.and_then(|t| t.get("agents")).into_iter().flat_map(|a| a.entries()) {
            if e.value.get("agent_roles").is_some_and(|r| r.get(this).is_some()) {
                names.push(e.key.text().unwrap_or(""));
            }
        }
    }
    let mut members = Vec::new();
    for name in names {
        let term = match team {
            Some(team) => agent(kit, Some(node), team, name, at),
            None => kit.unknown(&format!("the agent {name} of a team"), at),
        };
        members.push((name.to_string(), term));
    }
    if members.is_empty() {
        let name = node.get("node_name").and_then(|n| n.text()).unwrap_or("");
        return kit.unknown(&format!("the agents of {name}, which are in a team"), at);
    }
    let transit = node.get("controller").and_then(|c| c.entry("transit_type"));
    if ways > 1 && transit.is_some_and(|e| e.value.text() == Some("order")) {
        // After each message the group chat moves on along the edges: there is one, of the role that begins.
        let begins = node.get("begin_role").and_then(|r| r.text());
        let role = |name: &str| {
            let this = node.get("node_name").and_then(|n| n.text()).unwrap_or("");
            team.and_then(|t| t.at(&["agents", name, "agent_roles", this])?.text())
        };
        let first = members.iter().position(|(name, _)| begins.is_some() && role(name) == begins);
        return members.swap_remove(first.unwrap_or(0)).1;
    }
    let entry = node.get("controller").and_then(|c| c.entry("max_chat_nums"));
    // `max_chat_nums` is 10 where it is missing: src/agents/task/node.py.
    let default = LoopBound::by_default(10, "the default of aiwaves agents, 10 messages");
    let mut bound = default.or_written(entry, kit.out);
    if let core_ir::Bound::Finite(n) = bound.bound {
        // Messages, not rounds.
        let rounds = n.div_ceil(members.len() as u64);
        bound.bound = core_ir::Bound::Finite(rounds);
    }
    // Unless nodes follow in order, a model decides after each message whether to go on to the next.
    let decided = transit.filter(|e| e.value.text() != Some("order")).map(|e| value_span(&e));
    let by_rule = node
        .at(&["controller", "transit_system_prompt"])
        .and_then(|p| p.text())
        .is_some_and(|p| !p.is_empty());
    let decided = decided.or(if transit.is_none() && by_rule { Some(at) } else { None });
    kit.team(Team { members, turns: Turns::RoundRobin, stops: Vec::new(), decided, ends: false, bound, at })
}

fn agent(
    kit: &mut Kit<'_>,
    node: Option<Node<'_>>,
    team: Node<'_>,
    name: &str,
    at: diagnostics::Span,
) -> TermId {
    let entry = team.get("agents").and_then(|a| a.entry(name));
    let Some(entry) = entry else { return kit.unknown(&format!("the agent {name}"), at) };
    let of = entry.value;
    if let Err(term) = kit.open(name, of.span(), entry.key.span(), size(of.span())) {
        return term;
    }
    if of.get("is_user").and_then(|u| u.as_bool()) == Some(true) {
        kit.close();
        return kit.unknown(&format!("{name}, who is the user"), entry.key.span());
    }
    let mut prompt = frontend_kit::emit::Template::new(entry.key.span());
    let mut put = |text: Option<&str>| {
        if let Some(text) = text.filter(|t| !t.trim().is_empty()) {
            prompt.text(text).text("\n");
        }
    };
    put(of.get("agent_description").and_then(|d| d.text()));
    put(of.get("agent_style").and_then(|d| d.text()));
    if let Some(node) = node {
        put(node.get("node_description").and_then(|d| d.text()));
        let this = node.get("node_name").and_then(|n| n.text()).unwrap_or("");
        let role = of.at(&["agent_roles", this]).and_then(|r| r.text()).unwrap_or("");
        let prompts = ["node_prompt_templates", "node_primary_prompts"].iter().find_map(|k| node.get(k));
        for e in prompts.into_iter().flat_map(|p| p.entries()) {
            let inner = e.value.entries().filter_map(|i| i.value.text());
            let texts: Vec<&str> = e.value.text().into_iter().chain(inner).collect();
            if e.value.text().is_some() || e.name() == role {
                texts.into_iter().for_each(|t| put(Some(t)));
            }
        }
    } else {
        put(Some(name));
    }
    let prompt = prompt.build(&mut kit.b);
    let (params, model_at) = match of.entry("LLM_config") {
        Some(e) => (model_node(kit, e.value), Some(e.key.span())),
        None => Default::default(),
    };
    let tools = frontend_kit::kit::tools_of(of.entry("toolkit"), kit.out);
    let bound = LoopBound::written(core_ir::Bound::Finite(1), None);
    let head = entry.key.span();
    let agent = Agent { name, head, prompt, params, model_at, actions: tools, actions_at: None, bound };
    let term = kit.agent(agent);
    kit.close();
    term
}
