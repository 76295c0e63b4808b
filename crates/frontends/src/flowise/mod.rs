//! Flowise: agentflows, sequential agents, multi-agent and chat flows.
//!
//! | source | term |
//! |---|---|
//! | agentflow nodes and edges | a graph: agents and models, tools, decisions; `loopBackToNode` makes a cycle, bounded by `maxLoopCount` |
//! | sequential agents (`seqAgent`, `seqCondition`, `seqLoop`) | the same |
//! | `supervisor` with `worker`s | an agent whose helpers are the workers |
//! | any other chat flow | what the last node is made of: model, prompt, tools |
//!
//! Source: FlowiseAI/Flowise, `packages/components/nodes/agentflow`, `sequentialagents`, `multiagents`.

use core_ir::{Bound, ModelParams, Name, TermId};
use diagnostics::Span;
use frontend_kit::doc::{Entry, Node};
use frontend_kit::emit::{LoopBound, value_span};
use frontend_kit::flow::{Flow, FlowNode, classified};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use std::collections::HashMap;

/// The front end.
pub struct Flowise;

impl Frontend for Flowise {
    fn name(&self) -> &'static str {
        "flowise"
    }

    fn detect(&self, file: &File) -> u8 {
        let node = |n: Node<'_>| {
            n.at(&["data", "inputParams"]).is_some() || n.at(&["data", "inputAnchors"]).is_some()
        };
        if mark::any(file, |r| mark::list(r, &["nodes"], node)) { 92 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the model's node decides on the model, by its own default"),
            ends_loops: Some("Flowise ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                bound: "state it: `maxIterations`, or `maxLoopCount` of a loop node",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let all = All::of(root);
            if !all.nodes.is_empty() {
                units.add("flow", UnitKind::Crew, root.head(), |kit| all.lower(kit, root.head()));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the flow has no nodes that run")
    }
}

struct All<'d> {
    nodes: Vec<(&'d str, Node<'d>)>,
    known: HashMap<&'d str, Node<'d>>,
    /// Source, target, source handle.
    edges: Vec<(&'d str, &'d str, &'d str)>,
}

fn kind<'d>(node: Node<'d>) -> &'d str {
    node.at(&["data", "name"]).and_then(|n| n.text()).unwrap_or("")
}

fn input<'d>(node: Node<'d>, keys: &[&str]) -> Option<(&'d str, Entry<'d>)> {
    first_text(node.at(&["data", "inputs"])?, keys)
}

/// A text without the tags of Flowise's editor.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            _ if !inside => out.push(c),
            _ => {}
        }
    }
    out.trim().to_string()
}

impl<'d> All<'d> {
    fn of(root: Node<'d>) -> All<'d> {
        let mut nodes = Vec::new();
        for n in root.get("nodes").into_iter().flat_map(|n| n.items()) {
            let id = n.get("id").and_then(|i| i.text()).unwrap_or("");
            if !kind(n).starts_with("stickyNote") {
                nodes.push((id, n));
            }
        }
        let known = nodes.iter().copied().collect();
        let text = |e: Node<'d>, key: &str| e.get(key).and_then(|t| t.text()).unwrap_or("");
        let edges = root.get("edges").into_iter().flat_map(|e| e.items());
        let edges = edges.map(|e| (text(e, "source"), text(e, "target"), text(e, "sourceHandle"))).collect();
        All { nodes, known, edges }
    }

    fn lower(&self, kit: &mut Kit<'_>, at: Span) -> TermId {
        let has = |test: fn(&str) -> bool| self.nodes.iter().any(|(_, n)| test(kind(*n)));
        if has(|k| k.ends_with("Agentflow")) {
            return self.graph(kit, |k| k.ends_with("Agentflow"), at);
        }
        if has(|k| k == "seqStart") {
            return self.graph(kit, |k| k.starts_with("seq") && k != "seqState", at);
        }
        if let Some((_, supervisor)) = self.nodes.iter().find(|(_, n)| kind(*n) == "supervisor") {
            return self.supervised(kit, *supervisor);
        }
        // What nothing follows is what answers; what stands before is its parts.
        let last: Vec<Node<'d>> = self
            .nodes
            .iter()
            .filter(|(id, _)| self.edges.iter().all(|(from, _, _)| from != id))
            .map(|(_, n)| *n)
            .collect();
        let sides = last.iter().map(|n| self.agent(kit, *n)).collect();
        kit.together(sides, None, at)
    }

    /// The nodes whose kind passes, as a graph.
    fn graph(&self, kit: &mut Kit<'_>, runs: fn(&str) -> bool, at: Span) -> TermId {
        let mut edges = Vec::new();
        let mut bound = LoopBound::unknown("the flow goes back to a node that has run");
        let mut nodes: Vec<FlowNode<'_>> = Vec::new();
        for (id, n) in self.nodes.iter().filter(|(_, n)| runs(kind(*n))) {
            // Nodes within an iteration are compiled as the iteration.
            if n.get("parentNode").and_then(|p| p.text()).is_some_and(|p| self.known.contains_key(p)) {
                continue;
            }
            nodes.push(self.node(id, *n));
            let back = input(*n, &["loopBackToNode", "loopToName"]);
            if let Some((target, _)) = back {
                let target = target.split(['-', ' ']).next().unwrap_or(target);
                let named = |n: Node<'d>| {
                    input(n, &["agentName", "llmNodeName", "toolNodeName", "conditionName"]).map(|(t, _)| t)
                };
                let id_of = self.nodes.iter().find(|(i, n)| *i == target || named(*n) == Some(target));
                if let Some((to, _)) = id_of {
                    edges.push((id.to_string(), to.to_string(), None));
                }
                if let Some(count) = n.at(&["data", "inputs"]).and_then(|i| i.entry("maxLoopCount")) {
                    let written = LoopBound::unknown("").or_written(Some(count), kit.out);
                    // Turns are counted by node here: each time round runs every node at most once.
                    if let Bound::Finite(n) = written.bound {
                        let turns = n.saturating_add(1).saturating_mul(self.nodes.len() as u64);
                        bound = LoopBound { bound: Bound::Finite(turns), ..written };
                    }
                }
            }
        }
        for (from, to, handle) in &self.edges {
            let decides = self.known.get(from).is_some_and(|n| {
                kind(*n).to_ascii_lowercase().contains("condition") || kind(*n).starts_with("humanInput")
            });
            let label =
                handle.rsplit(['-', '_']).find(|p| p.chars().all(|c| c.is_ascii_digit()) && !p.is_empty());
            let label = if decides { Some(label.unwrap_or(handle).to_string()) } else { None };
            edges.push((from.to_string(), to.to_string(), label));
        }
        let start = self.nodes.iter().find(|(_, n)| matches!(kind(*n), "startAgentflow" | "seqStart"));
        let start = start.map(|(id, _)| id.to_string()).into_iter().collect();
        Flow { nodes, edges, start, triggers: false, bound, at }.lower(kit)
    }

    fn node(&self, id: &'d str, n: Node<'d>) -> FlowNode<'_> {
        let at = n.get("data").unwrap_or(n).head();
        let label = n.at(&["data", "label"]).and_then(|l| l.text()).unwrap_or(kind(n));
        let unknown = format!("the branch that {label} takes");
        match kind(n) {
            "conditionAgentAgentflow" => FlowNode::new(id, label, at, move |kit, x| {
                let agent = self.agent(kit, n);
                kit.b.app(agent, x, at)
            })
            .deciding(move |kit, value| {
                let scenarios = n.at(&["data", "inputs", "conditionAgentScenarios"]);
                let count = scenarios.map_or(0, |s| s.items().len());
                let labels: Vec<String> = (0..count).map(|i| i.to_string()).collect();
                classified(kit, &labels, value, at)
            }),
            "llmAgentflow" | "agentAgentflow" | "seqAgent" | "seqLLMNode" => {
                FlowNode::new(id, label, at, move |kit, x| {
                    let agent = self.agent(kit, n);
                    kit.b.app(agent, x, at)
                })
            }
            "startAgentflow" | "seqStart" | "seqEnd" | "loopAgentflow" | "seqLoop" | "conditionAgentflow"
            | "seqCondition" => FlowNode::pass(id, label, at).undecided(unknown),
            "humanInputAgentflow" => FlowNode::tool(id, label, at).undecided(unknown),
            "seqConditionAgent" => FlowNode::new(id, label, at, move |kit, x| {
                let agent = self.agent(kit, n);
                kit.b.app(agent, x, at)
            })
            .undecided(unknown),
            "iterationAgentflow" => FlowNode::unknown(
                id,
                label,
                "an iteration over values that are known when it runs".into(),
                at,
            ),
            _ => FlowNode::tool(id, label, at),
        }
    }

    /// The nodes that are attached to a node.
    fn parts(&self, node: Node<'d>) -> Vec<Node<'d>> {
        let id = node.get("id").and_then(|i| i.text()).unwrap_or("");
        let sources = self.edges.iter().filter(|(_, to, _)| *to == id).map(|(from, _, _)| *from);
        sources.filter_map(|s| self.known.get(s).copied()).collect()
    }

    fn category(node: Node<'d>) -> &'d str {
        node.at(&["data", "category"]).and_then(|c| c.text()).unwrap_or("")
    }

    /// An agent, a chain or a model: its instructions, model and tools.
    fn agent(&self, kit: &mut Kit<'_>, node: Node<'d>) -> TermId {
        let name = node.at(&["data", "label"]).and_then(|l| l.text()).unwrap_or(kind(node));
        let named =
            input(node, &["agentName", "workerName", "llmNodeName", "chainName"]).map_or(name, |(t, _)| t);
        let head = node.get("data").unwrap_or(node).head();
        if let Err(term) = kit.open(named, node.span(), head, size(node.span()) / 8) {
            return term;
        }
        let parts = self.parts(node);
        let mut text: Option<(String, Span)> = None;
        let prompts = [
            "systemMessagePrompt",
            "systemMessage",
            "workerPrompt",
            "supervisorPrompt",
            "conditionAgentInstructions",
            "conditionAgentSystemPrompt",
            "agentInstructions",
            "instructions",
            "systemPrompt",
            "prefix",
            "responsePrompt",
            "template",
        ];
        for of in std::iter::once(node)
            .chain(parts.iter().copied().filter(|p| kind(*p).to_ascii_lowercase().contains("prompt")))
        {
            if let (None, Some((t, e))) = (&text, input(of, &prompts)) {
                text = Some((plain(t), value_span(&e)));
            }
        }
        let messages = ["agentMessages", "llmMessages"].iter().find_map(|k| node.at(&["data", "inputs", k]));
        for m in messages.into_iter().flat_map(|m| m.items()) {
            if let Some((t, e)) = first_text(m, &["content"]) {
                match &mut text {
                    Some((all, _)) => all.push_str(&format!("\n{}", plain(t))),
                    None => text = Some((plain(t), value_span(&e))),
                }
            }
        }
        let prompt = match text {
            Some((t, at)) => kit.filled(&t, at, frontend_kit::emit::parts),
            None => kit.unknown("the instructions, which are this node's own", head),
        };
        let (params, model_at) = self.model(node, &parts, head);
        let mut actions = Vec::new();
        for part in parts.iter().filter(|p| {
            let c = Self::category(**p);
            c.starts_with("Tools") || kind(**p).ends_with("Tool") || kind(**p).ends_with("MCP")
        }) {
            let label = input(*part, &["toolName", "name", "customToolName"]).map(|(t, _)| t);
            actions
                .push(Action::tool(label.unwrap_or(kind(*part)), part.get("data").unwrap_or(*part).head()));
        }
        let tools =
            node.at(&["data", "inputs", "agentTools"]).or_else(|| node.at(&["data", "inputs", "tools"]));
        for tool in tools.into_iter().flat_map(|t| t.items()) {
            if let Some((t, e)) = first_text(tool, &["agentSelectedTool"]) {
                actions.push(Action::tool(t, value_span(&e)));
            }
        }
        let entry = node.at(&["data", "inputs"]).and_then(|i| i.entry("maxIterations"));
        let entry = entry.filter(|e| e.value.text().is_some_and(|t| !t.trim().is_empty()));
        let bound = LoopBound::unknown("Flowise leaves it to the agent's library").or_written(entry, kit.out);
        let term = kit.agent(Agent {
            name: named,
            head,
            prompt,
            params,
            model_at,
            actions,
            actions_at: None,
            bound,
        });
        kit.close();
        term
    }

    /// The model of a node: its own choice, or the model that is attached.
    fn model(&self, node: Node<'d>, parts: &[Node<'d>], head: Span) -> (ModelParams, Option<Span>) {
        let mut params = ModelParams::default();
        let own = ["agentModelConfig", "llmModelConfig", "conditionAgentModelConfig"];
        let config = own.iter().find_map(|k| node.at(&["data", "inputs", k]));
        if let Some((name, e)) = config.and_then(|c| first_text(c, &["modelName", "model"])) {
            params.model = Some(Name::from(name));
            params.temperature = config
                .and_then(|c| c.get("temperature"))
                .and_then(|t| t.as_num().or_else(|| t.as_str()?.parse().ok()));
            return (params, Some(value_span(&e)));
        }
        let model = parts
            .iter()
            .find(|p| Self::category(**p).starts_with("Chat Models") || Self::category(**p) == "LLMs");
        // A start node may hold the model of all that follow.
        let of = model.copied().unwrap_or(node);
        if let Some((name, e)) =
            input(of, &["modelName", "customModel", "model"]).filter(|(t, _)| !t.starts_with("{{"))
        {
            params.model = Some(Name::from(name));
            let temperature = of.at(&["data", "inputs", "temperature"]);
            params.temperature = temperature.and_then(|t| t.as_num().or_else(|| t.as_str()?.parse().ok()));
            return (params, Some(value_span(&e)));
        }
        (params, Some(head))
    }

    fn supervised(&self, kit: &mut Kit<'_>, supervisor: Node<'d>) -> TermId {
        let name = input(supervisor, &["supervisorName"]).map_or("Supervisor", |(t, _)| t);
        let head = supervisor.get("data").unwrap_or(supervisor).head();
        if let Err(term) = kit.open(name, supervisor.span(), head, 0) {
            return term;
        }
        let (text, at) =
            input(supervisor, &["supervisorPrompt"]).map_or(("", head), |(t, e)| (t, value_span(&e)));
        let prompt = kit.filled(text, at, frontend_kit::emit::parts);
        let (params, model_at) = self.model(supervisor, &self.parts(supervisor), head);
        let mut actions = Vec::new();
        for (_, worker) in self.nodes.iter().filter(|(_, n)| kind(*n) == "worker") {
            let name = input(*worker, &["workerName"]).map_or("worker", |(t, _)| t);
            let term = self.agent(kit, *worker);
            actions.push(Action::ask(name, term, worker.get("data").unwrap_or(*worker).head()));
        }
        let entry = supervisor.at(&["data", "inputs"]).and_then(|i| i.entry("recursionLimit"));
        let bound = LoopBound::by_default(100, "the default of Flowise's supervisor, 100 steps")
            .or_written(entry, kit.out);
        let term =
            kit.agent(Agent { name, head, prompt, params, model_at, actions, actions_at: None, bound });
        kit.close();
        term
    }
}
