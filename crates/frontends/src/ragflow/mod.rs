//! RAGFlow agents: `dsl.components` with `downstream`.
//!
//! `Generate`, `LLM`, `Agent`, `Categorize`, `RewriteQuestion` and the like ask a model; `Answer`, `Begin`,
//! `Message` hand on a text; the rest are tools. `Categorize` and `Switch` decide by the ids that follow
//! them. An `Answer` waits for the user: what leads back to it begins a new turn, which a cycle of the graph
//! represents.
//!
//! Source: infiniflow/ragflow, `agent/component`.

use core_ir::{ModelParams, Name, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, value_span};
use frontend_kit::flow::{Flow, FlowNode, classified};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};

/// The front end.
pub struct RagFlow;

fn components(root: Node<'_>) -> Option<Node<'_>> {
    root.at(&["dsl", "components"]).or_else(|| {
        root.get("components").filter(|_| root.get("graph").is_some() || root.get("path").is_some())
    })
}

impl Frontend for RagFlow {
    fn name(&self) -> &'static str {
        "ragflow"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            components(r).is_some_and(|c| {
                c.entries().take(20).any(|e| e.value.at(&["obj", "component_name"]).is_some())
            })
        };
        if mark::any(file, sure) { 94 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("RAGFlow asks the tenant's default model"),
            ends_loops: Some("RAGFlow ends an agent's loop at the first reply that calls no tool"),
            words: Words { bound: "state it: `max_rounds`", ..Words::default() },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(parts) = components(root) else { continue };
            let title = root.get("title").and_then(|t| t.text().or_else(|| t.entries().next()?.value.text()));
            units.add(title.unwrap_or("agent"), UnitKind::Crew, parts.head(), |kit| {
                flow(kit, parts, parts.head())
            });
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the agent has no components")
    }
}

fn flow(kit: &mut Kit<'_>, parts: Node<'_>, at: Span) -> TermId {
    let mut nodes = Vec::new();
    let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
    for e in parts.entries() {
        let Some(id) = e.key.text() else { continue };
        let part = e.value;
        let place = e.key.span();
        let kind = part.at(&["obj", "component_name"]).and_then(|n| n.text()).unwrap_or("");
        let params = part.at(&["obj", "params"]).unwrap_or(part);
        let next: Vec<&str> =
            part.get("downstream").into_iter().flat_map(|d| d.items()).filter_map(|d| d.text()).collect();
        let decides = matches!(kind, "Categorize" | "Switch" | "Relevant");
        edges.extend(next.iter().map(|to| (id.to_string(), to.to_string(), decides.then(|| to.to_string()))));
        let which = format!("where {id} leads");
        nodes.push(match kind {
            "Begin" | "begin" | "Answer" | "Message" | "Switch" | "Template" | "IterationItem"
            | "UserFillUp" => FlowNode::pass(id, id, place).undecided(which),
            "Generate" | "LLM" | "Agent" | "RewriteQuestion" | "KeywordExtract" | "Relevant" => {
                FlowNode::new(id, id, place, move |kit, x| {
                    let term = agent(kit, params, id, place);
                    kit.b.app(term, x, place)
                })
                .undecided(which)
            }
            "Categorize" => {
                let categories = params.get("category_description");
                let names: Vec<String> =
                    categories.into_iter().flat_map(|c| c.entries()).map(|c| c.name().to_string()).collect();
                let targets: Vec<(String, String)> = categories
                    .into_iter()
                    .flat_map(|c| c.entries())
                    .filter_map(|c| {
                        let to = c.value.get("to")?;
                        let to = to.text().or_else(|| to.items().next()?.text())?;
                        Some((c.name().to_string(), to.to_string()))
                    })
                    .collect();
                FlowNode::new(id, id, place, move |kit, x| {
                    let term = agent(kit, params, id, place);
                    kit.b.app(term, x, place)
                })
                .deciding(move |kit, value| {
                    let tag = classified(kit, &names, value, place);
                    let branches = targets
                        .iter()
                        .map(|(name, to)| core_ir::Branch {
                            tag: name.as_str().into(),
                            binder: None,
                            body: kit.text(to, place),
                        })
                        .collect();
                    let nowhere = kit.text("", place);
                    kit.b.add(core_ir::Term::Case { scrutinee: tag, branches, default: Some(nowhere) }, place)
                })
            }
            _ => FlowNode::tool(id, id, place).undecided(which),
        });
    }
    let start = parts.entries().find(|e| {
        e.value
            .at(&["obj", "component_name"])
            .and_then(|n| n.text())
            .is_some_and(|n| n.eq_ignore_ascii_case("begin"))
    });
    let start = start.and_then(|e| e.key.text().map(str::to_string));
    let bound = LoopBound::unknown("each user message is one iteration of the cycle");
    let start = start.into_iter().collect();
    Flow { nodes, edges, start, triggers: false, bound, at }.lower(kit)
}

fn agent(kit: &mut Kit<'_>, node: Node<'_>, id: &str, at: Span) -> TermId {
    if let Err(term) = kit.open(id, node.span(), at, size(node.span())) {
        return term;
    }
    let prompt = match first_text(node, &["sys_prompt", "prompt", "system_prompt"]) {
        Some((text, e)) => kit.text(text, value_span(&e)),
        None => kit.unknown("the instructions, which are this component's own", at),
    };
    let named = first_text(node, &["llm_id"]);
    let mut params = ModelParams { model: named.map(|(t, _)| Name::from(t)), ..ModelParams::default() };
    for key in ["temperature", "max_tokens"] {
        if let Some(e) = node.entry(key) {
            setting(&e, &mut params, kit.out);
        }
    }
    let mut actions = Vec::new();
    for tool in node.get("tools").into_iter().flat_map(|t| t.items()) {
        let Some((name, _)) = first_text(tool, &["name", "component_name", "id"]) else { continue };
        let inner = tool.get("params").filter(|p| {
            tool.get("component_name").and_then(|n| n.text()) == Some("Agent") && p.get("llm_id").is_some()
        });
        actions.push(match inner {
            Some(params) => {
                let term = agent(kit, params, name, tool.head());
                Action::ask(name, term, tool.head())
            }
            None => Action::tool(name, tool.head()),
        });
    }
    let bound = LoopBound::by_default(5, "the default of RAGFlow, 5 rounds")
        .or_written(node.entry("max_rounds"), kit.out);
    let model_at = named.map(|(_, e)| value_span(&e));
    let term =
        kit.agent(Agent { name: id, head: at, prompt, params, model_at, actions, actions_at: None, bound });
    kit.close();
    term
}
