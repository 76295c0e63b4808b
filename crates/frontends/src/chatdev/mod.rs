//! ChatDev 2 workflows: `graph.nodes` and `graph.edges`.
//!
//! | node | term |
//! |---|---|
//! | `agent` | an oracle, or a loop with the tools of `tooling` |
//! | `literal`, `template`, `passthrough` | a text |
//! | `python`, `human` | a tool |
//! | `loop_counter` | ends its cycle: its `max_iterations` bounds the whole |
//! | `subgraph` | unknown, unless it is in the file |
//! | edges with a condition | a decision that is not known before the run |
//!
//! Source: OpenBMB/ChatDev, `entity/configs`, `runtime/node`.

use core_ir::{Bound, ModelParams, Name, TermId};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, value_span};
use frontend_kit::flow::{Flow, FlowNode};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};

/// The front end.
pub struct ChatDev;

impl Frontend for ChatDev {
    fn name(&self) -> &'static str {
        "chatdev"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure =
            |r: Node<'_>| mark::list(r, &["graph", "nodes"], |n| mark::has(n, "id") && mark::has(n, "type"));
        if mark::any(file, sure) { 90 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("ChatDev ends an agent's loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `config.role`",
                model: "name one: `config.name`",
                bound: "state it: a `loop_counter` node in the cycle",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let Some(graph) = root.get("graph") else { continue };
            let name = graph.get("id").and_then(|i| i.text()).unwrap_or("graph");
            units.add(name, UnitKind::Crew, graph.head(), |kit| lower(kit, root, graph, graph.head()));
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the graph has no nodes")
    }
}

fn lower(kit: &mut Kit<'_>, root: Node<'_>, graph: Node<'_>, at: Span) -> TermId {
    let mut nodes: Vec<FlowNode<'_>> = Vec::new();
    let mut most: Option<LoopBound> = None;
    let count = graph.get("nodes").map_or(0, |n| n.items().len()) as u64;
    for n in graph.get("nodes").into_iter().flat_map(|n| n.items()) {
        let id = n.get("id").and_then(|i| i.text()).unwrap_or("");
        let place = n.head();
        let config = n.get("config").unwrap_or(n);
        let which = format!("which edges of {id} are taken");
        let node = match n.get("type").and_then(|t| t.text()).unwrap_or("") {
            "agent" => FlowNode::new(id, id, place, move |kit, x| {
                let term = agent(kit, root, n, config, id);
                kit.b.app(term, x, place)
            }),
            "literal" => FlowNode::new(id, id, place, move |kit, _| match first_text(config, &["content"]) {
                Some((t, e)) => variables(kit, root, t, value_span(&e)),
                None => kit.text("", place),
            }),
            "template" => FlowNode::new(id, id, place, move |kit, x| {
                let (text, at) =
                    first_text(config, &["template"]).map_or(("", place), |(t, e)| (t, value_span(&e)));
                if text.contains("{%") {
                    return frontend_kit::flow::by_tool(kit, &format!("template: {id}"), x, at);
                }
                let mut out = frontend_kit::emit::Template::new(at);
                let mut x = Some(x);
                for part in frontend_kit::kit::double(text) {
                    match (part, x.take()) {
                        (frontend_kit::emit::Part::Text(t), keep) => {
                            out.text(t);
                            x = keep;
                        }
                        (frontend_kit::emit::Part::Hole("input"), Some(value)) => {
                            out.term(value);
                        }
                        (frontend_kit::emit::Part::Hole(name), keep) => {
                            let value = kit.input(name, at);
                            out.term(value);
                            x = keep;
                        }
                    }
                }
                out.build(&mut kit.b)
            }),
            "loop_counter" => {
                let written = LoopBound::unknown("").or_written(config.entry("max_iterations"), kit.out);
                if let Bound::Finite(turns) = written.bound {
                    // Nodes are counted here: each time round runs every node at most once.
                    let all = turns.saturating_add(1).saturating_mul(count);
                    let larger = match most.as_ref().map(|m| m.bound) {
                        Some(Bound::Finite(m)) => m < all,
                        _ => true,
                    };
                    if larger {
                        most = Some(LoopBound { bound: Bound::Finite(all), ..written });
                    }
                }
                FlowNode::pass(id, id, place)
            }
            "passthrough" | "loop_timer" => FlowNode::pass(id, id, place),
            "subgraph" => {
                let path = config.at(&["config", "path"]).and_then(|p| p.text());
                match config.get("config").filter(|c| c.get("nodes").is_some()) {
                    Some(inner) => FlowNode::new(id, id, place, move |kit, x| {
                        if let Err(term) = kit.open(id, inner.span(), place, size(inner.span())) {
                            return term;
                        }
                        let term = lower(kit, root, inner, place);
                        kit.close();
                        kit.b.app(term, x, place)
                    }),
                    None => FlowNode::unknown(
                        id,
                        id,
                        format!("the graph in {}", path.unwrap_or("another file")),
                        place,
                    ),
                }
            }
            _ => FlowNode::tool(id, id, place),
        };
        nodes.push(node.undecided(which));
    }
    let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
    for e in graph.get("edges").into_iter().flat_map(|e| e.items()) {
        let end = |key: &str| e.get(key).and_then(|t| t.text()).unwrap_or("").to_string();
        if e.get("trigger").and_then(|t| t.as_bool()) == Some(false) {
            continue;
        }
        let condition = e.get("condition").and_then(|c| c.text().or_else(|| c.get("type")?.text()));
        let when = condition.filter(|c| *c != "true").map(|c| format!("{c} {}", end("to")));
        edges.push((end("from"), end("to"), when));
    }
    let start = graph.get("start").into_iter().flat_map(|s| s.items().chain(s.text().map(|_| s)));
    let start = start.filter_map(|s| s.text()).map(str::to_string).collect();
    let bound = most.unwrap_or_else(|| LoopBound::none("no `loop_counter` ends the cycles of this graph"));
    Flow { nodes, edges, start, triggers: false, bound, at }.lower(kit)
}

/// A text with the file's `${VAR}` in it.
fn variables(kit: &mut Kit<'_>, root: Node<'_>, text: &str, at: Span) -> TermId {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find("${") {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let Some(close) = after.find('}') else {
            rest = after;
            break;
        };
        match root.at(&["vars", &after[2..close]]).and_then(|v| v.text()) {
            Some(value) if out.len() < 1 << 20 => out.push_str(value),
            _ => out.push_str(&after[..=close]),
        }
        rest = &after[close + 1..];
    }
    out.push_str(rest);
    kit.text(&out, at)
}

fn agent(kit: &mut Kit<'_>, root: Node<'_>, node: Node<'_>, config: Node<'_>, id: &str) -> TermId {
    let head = node.head();
    if let Err(term) = kit.open(id, node.span(), head, size(node.span())) {
        return term;
    }
    let prompt = match first_text(config, &["role"]) {
        Some((text, entry)) => variables(kit, root, text, value_span(&entry)),
        None => kit.text("", head),
    };
    let named = first_text(config, &["name"]);
    let mut params = ModelParams { model: named.map(|(t, _)| Name::from(t)), ..ModelParams::default() };
    for e in config.get("params").into_iter().flat_map(|p| p.entries()) {
        setting(&e, &mut params, kit.out);
    }
    let mut actions = Vec::new();
    for tooling in
        config.get("tooling").into_iter().flat_map(|t| t.items().chain(t.is_mapping().then_some(t)))
    {
        let inner = tooling.get("config").unwrap_or(tooling);
        let tools: Vec<Node<'_>> = inner.get("tools").into_iter().flat_map(|t| t.items()).collect();
        for tool in &tools {
            if let Some(name) = tool.text().or_else(|| tool.get("name")?.text()) {
                actions.push(Action::tool(name, tool.head()));
            }
        }
        if tools.is_empty() {
            let name = tooling.get("type").and_then(|t| t.text()).unwrap_or("tools");
            actions.push(Action::tool(name, tooling.head()));
        }
    }
    let bound = LoopBound::unknown("ChatDev documents no limit of an agent's tool calls");
    let model_at = named.map(|(_, e)| value_span(&e));
    let term =
        kit.agent(Agent { name: id, head, prompt, params, model_at, actions, actions_at: None, bound });
    kit.close();
    term
}
