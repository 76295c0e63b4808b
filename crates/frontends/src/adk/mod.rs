//! Google ADK agents: in YAML (`root_agent.yaml`) here, those that Python makes in [`code`].
//!
//! | source | term |
//! |---|---|
//! | `LlmAgent` | `llm p θ`, or a loop if it has tools or sub-agents |
//! | `sub_agents` of an `LlmAgent` | handoffs: ADK transfers the group chat to them |
//! | `SequentialAgent` | `e1 >> … >> en` |
//! | `ParallelAgent` | all on the same input, answers one below the other |
//! | `LoopAgent` | `fix[max_iterations]`; a sub-agent ends it by an error (`escalate`) |
//! | `AgentTool` | a helper that is asked and answers |
//! | any other `agent_class` | unknown: it is Python |
//!
//! Sub-agents stand in files of their own (`config_path`); those that are not loaded are unknown.
//!
//! Source: google/adk-python, `agents/agent_config.py`, `agents/loop_agent.py`; `agents/run_config.py`:
//! `max_llm_calls` 500.

use crate::defaults;
use core_ir::TermId;
use frontend_kit::Ends;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, codes, value_span};
use frontend_kit::kit::{Action, ActionKind, Kit, Units, mark, setting};
use frontend_kit::project::{CodeFacts, Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::{self, Given, Shape, by_name, why};

mod code;

/// The front end.
pub struct Adk;

const UNUSED: &[frontend_kit::emit::Unused] = &[
    ("description", why::SHOWN),
    ("output_key", "the output of an agent is passed on anyway"),
    ("before_agent_callbacks", why::CODE),
    ("after_agent_callbacks", why::CODE),
    ("before_model_callbacks", why::CODE),
    ("after_model_callbacks", why::CODE),
    ("before_tool_callbacks", why::CODE),
    ("after_tool_callbacks", why::CODE),
    ("input_schema", why::NOT_YET),
    ("output_schema", why::NOT_YET),
    ("include_contents", why::NOT_YET),
    ("disallow_transfer_to_parent", why::NOT_YET),
    ("disallow_transfer_to_peers", why::NOT_YET),
    ("static_instruction", why::NOT_YET),
    ("planner", why::NOT_YET),
    ("code_executor", why::NOT_YET),
];

/// Tools that Gemini carries out, so that a call and its result are parts of one reply.
///
/// Source: google/adk-python, `tools/google_search_tool.py` and the other subclasses of `BaseTool` that only
/// change the request.
const HOSTED: &[&str] = &[
    "EnterpriseWebSearchTool",
    "GoogleMapsGroundingTool",
    "GoogleSearchTool",
    "UrlContextTool",
    "VertexAiSearchTool",
    "enterprise_web_search",
    "google_maps_grounding",
    "google_search",
    "url_context",
];

const SHAPE: Shape = Shape {
    what: "an ADK agent",
    name: &["name"],
    prompt: &["instruction"],
    model: &["model", "model_code"],
    tools: &[],
    end: None,
    bound: &[],
    also: &["agent_class", "sub_agents", "tools", "generate_content_config", "max_iterations"],
    unused: UNUSED,
    split: frontend_kit::emit::parts,
    default: |v| defaults::bound(&defaults::ADK_CALLS, v),
};

impl Frontend for Adk {
    fn name(&self) -> &'static str {
        "adk"
    }

    fn names_files(&self) -> bool {
        true
    }

    fn detect(&self, file: &File) -> u8 {
        if file.python.is_some() {
            return code::detect(file);
        }
        let sure = |r: Node<'_>| {
            mark::text(r, "agent_class").is_some()
                || mark::has(r, "instruction")
                    && mark::text(r, "name").is_some()
                    && (mark::has(r, "model") || mark::has(r, "sub_agents") || mark::has(r, "tools"))
                    && !mark::has(r, "kind")
        };
        if mark::any(file, sure) { 85 } else { 0 }
    }

    fn fields(&self) -> Vec<&'static str> {
        SHAPE.fields()
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("ADK takes the model of the agent above, or its own default"),
            ends_loops: Some("ADK ends the loop at the first reply that calls no tool"),
            shares_session: true,
            words: Words {
                prompt: "say what the agent is to do: `instruction`",
                bound: "state it: `run_config=RunConfig(max_llm_calls=…)` of the run",
                round: "limit it: `max_iterations` of the LoopAgent",
                ..Words::default()
            },
            code: CodeFacts {
                run_limit: Some("max_llm_calls"),
                members: &["sub_agents", "AgentTool"],
                runs: &["run", "run_async", "run_debug", "run_live"],
                ..CodeFacts::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        if file.python.is_some() {
            return code::lower(units, project, file);
        }
        for root in file.documents.iter().map(|d| d.root()) {
            let name = SHAPE.name_of(root).unwrap_or("agent");
            let kind = if mark::has(root, "sub_agents") { UnitKind::Crew } else { UnitKind::Agent };
            units.add(name, kind, root.head(), |kit| agent(kit, project, file, root));
        }
        units.done(file.documents.first().map(|d| d.root().head()), "no agent is defined")
    }
}

fn agent(kit: &mut Kit<'_>, project: &Project, file: &File, node: Node<'_>) -> TermId {
    let name = SHAPE.name_of(node).unwrap_or("agent");
    let head = node.head();
    if let Err(term) = kit.open(name, node.span(), head, frontend_kit::kit::size(node.span())) {
        return term;
    }
    let class = node.get("agent_class").and_then(|c| c.text()).unwrap_or("LlmAgent");
    let kind = class.rsplit('.').next().unwrap_or(class);
    let term = match kind {
        "LlmAgent" | "Agent" | "" if class.len() <= "google.adk.agents.LlmAgent".len() => {
            let mut actions = tools(kit, project, file, node);
            let mut bound = (SHAPE.default)(kit.versions);
            let is_hosted = |a: &Action| matches!(a.kind, ActionKind::Call) && HOSTED.contains(&&*a.name);
            if node.get("sub_agents").is_none() && actions.iter().all(is_hosted) {
                bound.facts.ends = Some(Ends::AtOnce);
            }
            for (name, term, at) in subs(kit, project, file, node) {
                actions.push(Action::handoff(name, term, at));
            }
            let mut given = Given::default();
            for e in node.get("generate_content_config").into_iter().flat_map(|c| c.entries()) {
                setting(&e, &mut given.params, kit.out);
            }
            shape::agent_bounded(kit, node, &SHAPE, given, actions, &by_name, bound)
        }
        "SequentialAgent" | "ParallelAgent" | "LoopAgent" => {
            frontend_kit::emit::report_keys(
                node,
                &["agent_class", "name", "sub_agents", "max_iterations"],
                UNUSED,
                "an ADK workflow agent",
                kit.out,
            );
            let parts: Vec<TermId> = subs(kit, project, file, node).into_iter().map(|(_, t, _)| t).collect();
            let at = node.entry("sub_agents").map_or(head, |e| e.key.span());
            match kind {
                "ParallelAgent" => kit.together(parts, None, at),
                "SequentialAgent" => kit.sequence(parts, at),
                _ => {
                    let body = kit.sequence(parts, at);
                    let none = LoopBound::none(
                        "an ADK LoopAgent without `max_iterations` runs until one of its agents escalates",
                    );
                    let bound = none.or_written(node.entry("max_iterations"), kit.out);
                    kit.repeat(body, bound, true, at)
                }
            }
        }
        _ => {
            let at = node.entry("agent_class").map_or(head, |e| value_span(&e));
            kit.undecided(codes::NOT_COMPILED, format!("the agent class `{class}` is Python code"), at)
        }
    };
    kit.close();
    term
}

/// The sub-agents, each with its name and place.
fn subs(
    kit: &mut Kit<'_>,
    project: &Project,
    file: &File,
    node: Node<'_>,
) -> Vec<(String, TermId, diagnostics::Span)> {
    let mut found = Vec::new();
    for item in node.get("sub_agents").into_iter().flat_map(|s| s.items()) {
        let at = item.head();
        if let Some(path) = item.get("config_path").and_then(|p| p.text()) {
            let (name, term) = elsewhere(kit, project, file, path, at);
            found.push((name, term, at));
        } else if let Some(code) = item.get("code").and_then(|c| c.text()) {
            let name = code.rsplit('.').next().unwrap_or(code).to_string();
            let term = kit.unknown(&format!("the agent {code}, which is Python code"), at);
            found.push((name, term, at));
        } else if item.is_mapping() {
            let name = SHAPE.name_of(item).unwrap_or("agent").to_string();
            let term = agent(kit, project, file, item);
            found.push((name, term, at));
        } else {
            let term = kit.unknown("a sub-agent", at);
            found.push((item.text().unwrap_or("agent").to_string(), term, at));
        }
    }
    found
}

/// An agent in another file, with its name.
fn elsewhere(
    kit: &mut Kit<'_>,
    project: &Project,
    file: &File,
    path: &str,
    at: diagnostics::Span,
) -> (String, TermId) {
    let found = project.beside(file, path).and_then(|f| Some((f, f.documents.first()?.root())));
    if let Some((other, root)) = found {
        let name = SHAPE.name_of(root).unwrap_or("agent").to_string();
        return (name, agent(kit, project, other, root));
    }
    let stem = path.rsplit('/').next().unwrap_or(path);
    let stem = stem.split('.').next().unwrap_or(stem);
    (stem.to_string(), kit.unknown(&format!("the agent in {path}"), at))
}

fn tools(kit: &mut Kit<'_>, project: &Project, file: &File, node: Node<'_>) -> Vec<Action> {
    let mut actions = Vec::new();
    for item in node.get("tools").into_iter().flat_map(|t| t.items()) {
        let at = item.head();
        let name = item.text().or_else(|| item.get("name")?.text()).unwrap_or("");
        match item.at(&["args", "agent", "config_path"]).and_then(|p| p.text()) {
            Some(path) => {
                let (name, term) = elsewhere(kit, project, file, path, at);
                actions.push(Action::ask(name, term, at));
            }
            None => {
                let short = name.rsplit('.').next().unwrap_or(name);
                let wrapped = item.at(&["args", "func"]).and_then(|f| f.text());
                let short = wrapped.map_or(short, |f| f.rsplit('.').next().unwrap_or(f));
                // `exit_loop` ends the loop agent around this one.
                let does = if short == "exit_loop" { ActionKind::End } else { ActionKind::Call };
                actions.push(Action { kind: does, ..Action::tool(short, at) });
            }
        }
    }
    actions
}
