//! Open Agent Spec: agents, flows, swarms and groups of workers, in JSON or YAML.
//!
//! | component | term |
//! |---|---|
//! | `Agent` | `llm p θ`, or a loop if it has tools; `{{name}}` are its inputs |
//! | `Flow` | its nodes along the control edges |
//! | `LlmNode`, `AgentNode`, `ToolNode` | an oracle, an agent, a tool |
//! | `BranchingNode` | a decision by `mapping` |
//! | `FlowNode`, `ParallelFlowNode` | the flow inside; all at the same time |
//! | `MapNode`, `ParallelMapNode`, `CatchExceptionNode` | unknown |
//! | `ManagerWorkers` | an agent whose helpers are the workers |
//! | `Swarm` | the first agent, handing over along `relationships` |
//! | `A2AAgent`, `OciAgent` | unknown: a service answers for them |
//!
//! The values of all data edges into a node are its input, as one text. The bound of an agent's loop is in
//! `metadata`, if `entail convert` wrote it (`{"entail": {"max_steps": 25}}`): Agent Spec has no field for
//! it. The same holds for one action at a time (`"calls": "first"`).
//!
//! Source: oracle/agent-spec, `docs/pyagentspec`, specification 25.4.

use core_ir::{Bound, BoundOrigin, Branch, ModelParams, Name, Prim, Term, TermId, Type};
use diagnostics::Span;
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Part, Template, Unused, clip, codes, report_keys, value_span};
use frontend_kit::flow::{Flow, FlowNode};
use frontend_kit::kit::{Action, Agent, Kit, Units, double, first_text, mark, setting, size};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use frontend_kit::shape::why;
use frontend_kit::turn::Carried;
use std::collections::HashMap;
use std::sync::Arc;

/// The front end.
pub struct AgentSpec;

const AGENT_UNUSED: &[Unused] = &[
    ("description", why::SHOWN),
    ("metadata", why::SHOWN),
    ("inputs", "the placeholders of the prompt are the inputs"),
    ("outputs", why::NOT_YET),
    ("human_in_the_loop", why::RUNTIME),
    ("transforms", "how long conversations are shortened is not compiled yet"),
];

impl Frontend for AgentSpec {
    fn name(&self) -> &'static str {
        "open_agent_spec"
    }

    fn detect(&self, file: &File) -> u8 {
        let sure = |r: Node<'_>| {
            mark::has(r, "agentspec_version")
                // Components that other files refer to.
                || mark::has(r, "$referenced_components")
                || mark::has(r, "component_type")
                    && (mark::has(r, "$referenced_components")
                        || mark::has(r, "llm_config")
                        || mark::has(r, "start_node"))
        };
        if mark::any(file, sure) { 97 } else { 0 }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: None,
            ends_loops: Some("the runtime ends the loop at the first reply that calls no tool"),
            words: Words {
                prompt: "say what the agent is to do: `system_prompt`",
                model: "name one: `llm_config.model_id`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let levels = root.descendants().filter_map(|n| n.get("$referenced_components"));
            let entries = levels.flat_map(|r| r.entries());
            let spec = Spec { known: entries.filter_map(|e| Some((e.key.text()?, e.value))).collect() };
            let kind = match kind(root) {
                "Agent" | "A2AAgent" | "OciAgent" | "RemoteAgent" | "SpecializedAgent" => UnitKind::Agent,
                "Flow" | "Swarm" | "ManagerWorkers" => UnitKind::Crew,
                _ => continue,
            };
            units.add(name(root), kind, root.head(), |kit| spec.runnable(kit, root));
        }
        units.done(
            file.documents.first().map(|d| d.root().head()),
            "the component is not an agent, a flow or a group of agents",
        )
    }
}

struct Spec<'d> {
    /// The components that may be referred to, of every level, by their ids.
    known: HashMap<&'d str, Node<'d>>,
}

fn kind<'d>(node: Node<'d>) -> &'d str {
    node.get("component_type").and_then(|t| t.text()).unwrap_or("")
}

fn name<'d>(node: Node<'d>) -> &'d str {
    node.get("name").and_then(|n| n.text()).unwrap_or("component")
}

impl<'d> Spec<'d> {
    /// A component, or the one that is referred to.
    fn get(&self, node: Node<'d>) -> Node<'d> {
        let reference = node.get("$component_ref").and_then(|r| r.text());
        reference.and_then(|r| self.known.get(r).copied()).unwrap_or(node)
    }

    fn field(&self, node: Node<'d>, key: &str) -> Option<Node<'d>> {
        node.get(key).map(|n| self.get(n))
    }

    /// `Str → Str`.
    fn runnable(&self, kit: &mut Kit<'_>, node: Node<'d>) -> TermId {
        let node = self.get(node);
        let head = node.head();
        if let Err(term) = kit.open(name(node), node.span(), head, size(node.span())) {
            return term;
        }
        let term = match kind(node) {
            "Agent" | "SpecializedAgent" => {
                let inner = self.field(node, "agent").unwrap_or(node);
                self.agent(kit, inner, Vec::new())
            }
            "Flow" => self.flow(kit, node),
            "ManagerWorkers" => {
                let mut actions = Vec::new();
                for worker in node.get("workers").into_iter().flat_map(|w| w.items()) {
                    let worker = self.get(worker);
                    let term = self.runnable(kit, worker);
                    actions.push(Action::ask(name(worker), term, worker.head()));
                }
                match self.field(node, "group_manager") {
                    Some(manager) if kind(manager) == "Agent" => self.agent(kit, manager, actions),
                    Some(manager) => {
                        // A model alone manages.
                        let (params, model_at) = model(kit, Some(manager));
                        let prompt =
                            kit.text("You manage the workers: hand out the work, then answer.", head);
                        kit.agent(Agent {
                            name: name(node),
                            head,
                            prompt,
                            params,
                            model_at,
                            actions,
                            actions_at: None,
                            bound: no_limit(),
                        })
                    }
                    None => kit.unknown("the manager of this group", head),
                }
            }
            "Swarm" => self.swarm(kit, node, self.field(node, "first_agent"), head),
            other => {
                let why = format!("a component of type `{}` is answered for elsewhere", clip(other));
                kit.undecided(codes::NOT_COMPILED, why, head)
            }
        };
        kit.close();
        term
    }

    fn swarm(&self, kit: &mut Kit<'_>, swarm: Node<'d>, agent: Option<Node<'d>>, head: Span) -> TermId {
        let Some(agent) = agent else { return kit.unknown("the first agent of this swarm", head) };
        if let Err(term) = kit.open(name(agent), agent.span(), agent.head(), size(agent.span())) {
            return term;
        }
        let mut actions = Vec::new();
        for pair in swarm.get("relationships").into_iter().flat_map(|r| r.items()) {
            let ends: Vec<Node<'d>> = pair.items().map(|e| self.get(e)).collect();
            if let [from, to] = ends[..]
                && from.span() == agent.span()
            {
                let at = pair.head();
                let term = if kit.is_open(to.span()) {
                    kit.unknown(&format!("{}, again", name(to)), at)
                } else {
                    self.swarm(kit, swarm, Some(to), head)
                };
                actions.push(Action::handoff(name(to), term, at));
            }
        }
        let term = self.agent(kit, agent, actions);
        kit.close();
        term
    }

    fn agent(&self, kit: &mut Kit<'_>, node: Node<'d>, more: Vec<Action>) -> TermId {
        let head = node.head();
        let known = [
            "component_type",
            "id",
            "name",
            "system_prompt",
            "llm_config",
            "tools",
            "toolboxes",
            "agentspec_version",
            "$referenced_components",
        ];
        report_keys(node, &known, AGENT_UNUSED, "an Agent Spec agent", kit.out);
        let prompt = match first_text(node, &["system_prompt"]) {
            Some((text, e)) => kit.filled(text, value_span(&e), double),
            None => kit.text("", head),
        };
        let (params, model_at) = model(kit, self.field(node, "llm_config"));
        let mut actions = Vec::new();
        for tool in node.get("tools").into_iter().flat_map(|t| t.items()) {
            let tool = self.get(tool);
            let server = self.field(tool, "client_transport").map(name);
            let action = match server.filter(|_| kind(tool) == "MCPTool") {
                Some(server) => Action::mcp(name(tool), server, tool.head()),
                None => Action::tool(name(tool), tool.head()),
            };
            let description = tool.get("description").and_then(|d| d.text()).map(str::to_string);
            actions.push(Action { description, ..action });
        }
        for toolbox in node.get("toolboxes").into_iter().flat_map(|t| t.items()) {
            let toolbox = self.get(toolbox);
            let filter: Vec<&str> = toolbox
                .get("tool_filter")
                .into_iter()
                .flat_map(|f| f.items())
                .filter_map(|f| f.text())
                .collect();
            if filter.is_empty() {
                actions.push(Action::mcp(name(toolbox), name(toolbox), toolbox.head()));
            }
            actions.extend(filter.into_iter().map(|f| Action::mcp(f, name(toolbox), toolbox.head())));
        }
        actions.extend(more);
        let actions_at = node.entry("tools").map(|e| e.key.span());
        let first = node.at(&["metadata", "entail", "calls"]).and_then(|c| c.text()) == Some("first");
        let carried = if first { Carried::First } else { Carried::All };
        let bound = limit(node);
        let agent = Agent { name: name(node), head, prompt, params, model_at, actions, actions_at, bound };
        kit.agent_with_request(agent, carried, None)
    }

    fn flow(&self, kit: &mut Kit<'_>, flow: Node<'d>) -> TermId {
        let mut nodes = Vec::new();
        for n in flow.get("nodes").into_iter().flat_map(|n| n.items()) {
            let n = self.get(n);
            nodes.push(self.node(n));
        }
        let id = |n: Option<Node<'d>>| n.and_then(|n| n.get("id")?.text()).unwrap_or("").to_string();
        let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
        for e in flow.get("control_flow_connections").into_iter().flat_map(|e| e.items()) {
            let e = self.get(e);
            let from = self.field(e, "from_node");
            let decides = from.is_some_and(|f| {
                kind(f) == "BranchingNode" || f.get("branches").is_some_and(|b| b.items().len() > 1)
            });
            let branch = e.get("from_branch").and_then(|b| b.text()).filter(|b| decides && *b != "default");
            edges.push((id(from), id(self.field(e, "to_node")), branch.map(str::to_string)));
        }
        let start = self.field(flow, "start_node").map(|s| id(Some(s))).into_iter().collect();
        let bound = LoopBound::unknown("Agent Spec has no limit of a flow's cycles");
        Flow { nodes, edges, start, triggers: false, bound, at: flow.head() }.lower(kit)
    }

    fn node<'s>(&'s self, n: Node<'d>) -> FlowNode<'s>
    where
        'd: 's,
    {
        let id = n.get("id").and_then(|i| i.text()).unwrap_or("");
        let (label, at) = (name(n), n.head());
        let which = format!("which branch {label} takes");
        match kind(n) {
            "StartNode" | "EndNode" => FlowNode::pass(id, label, at),
            "OutputMessageNode" => {
                FlowNode::new(id, label, at, move |kit, x| match first_text(n, &["message"]) {
                    Some((text, e)) => data(kit, text, x, value_span(&e)),
                    None => x,
                })
            }
            "InputMessageNode" => FlowNode::tool(id, "ask_user", at),
            "LlmNode" => FlowNode::new(id, label, at, move |kit, x| {
                let (params, model_at) = model(kit, self.field(n, "llm_config"));
                let params = ModelParams { purpose: Some(label.into()), ..params };
                let (prompt, asked) = match first_text(n, &["prompt_template"]) {
                    Some((text, e)) => (kit.text("", at), data(kit, text, x, value_span(&e))),
                    None => (kit.text("", at), x),
                };
                // The template is all that is said: instructions and request in one.
                let empty = kit.text("", at);
                let (prompt, asked) = if first_text(n, &["prompt_template"]).is_some() {
                    (asked, empty)
                } else {
                    (prompt, asked)
                };
                let oracle = kit.b.add(Term::Llm(prompt, Arc::new(params)), model_at.unwrap_or(at));
                kit.b.app(oracle, asked, at)
            }),
            "AgentNode" => FlowNode::new(id, label, at, move |kit, x| {
                let term = match n.get("agent") {
                    Some(agent) => self.runnable(kit, agent),
                    None => kit.unknown("the agent of this node", at),
                };
                kit.b.app(term, x, at)
            }),
            "FlowNode" => FlowNode::new(id, label, at, move |kit, x| {
                let term = match n.get("subflow") {
                    Some(flow) => self.runnable(kit, flow),
                    None => kit.unknown("the flow of this node", at),
                };
                kit.b.app(term, x, at)
            }),
            "ParallelFlowNode" => FlowNode::new(id, label, at, move |kit, x| {
                let flows: Vec<Node<'d>> = n.get("subflows").into_iter().flat_map(|s| s.items()).collect();
                let sides = flows.into_iter().map(|f| self.runnable(kit, f)).collect();
                let term = kit.together(sides, None, at);
                kit.b.app(term, x, at)
            }),
            "ToolNode" => FlowNode::tool(id, self.field(n, "tool").map_or(label, name), at),
            "ApiNode" => FlowNode::tool(id, label, at),
            "BranchingNode" => {
                let mapped = n.get("mapping").into_iter().flat_map(|m| m.entries());
                let outcomes: Vec<_> =
                    mapped.filter_map(|e| Some((e.value.text()?.to_string(), e.span()))).collect();
                let node = FlowNode::pass(id, label, at).deciding(move |kit, value| {
                    let mut branches: Vec<Branch> = Vec::new();
                    for e in n.get("mapping").into_iter().flat_map(|m| m.entries()) {
                        if branches.iter().all(|b| &*b.tag != e.name()) {
                            let body = kit.text(e.value.text().unwrap_or(""), at);
                            branches.push(Branch { tag: e.name().into(), binder: None, body });
                        }
                    }
                    let default = kit.text("default", at);
                    let scrutinee = kit.b.add(Term::Prim(Prim::Trim, vec![value]), at);
                    kit.b.add(Term::Case { scrutinee, branches, default: Some(default) }, at)
                });
                FlowNode { outcomes: Some(outcomes), ..node }
            }
            other => {
                FlowNode::unknown(id, label, format!("a node of type `{}`", clip(other)), at).undecided(which)
            }
        }
    }
}

/// Reason why the bound of a loop without one is not known.
pub const NO_BOUND: &str = "Agent Spec has no place for it";

fn no_limit() -> LoopBound {
    LoopBound::unknown(NO_BOUND)
}

/// The bound that `entail convert` wrote beside an agent, in `metadata`.
fn limit(agent: Node<'_>) -> LoopBound {
    let Some(ours) = agent.at(&["metadata", "entail"]) else { return no_limit() };
    let origin = ours.get("max_steps_from").and_then(|o| o.text()).map(BoundOrigin::from);
    match ours.entry("max_steps") {
        Some(e) => match e.value.as_u64() {
            Some(n) => LoopBound { origin, ..LoopBound::written(Bound::Finite(n), Some(value_span(&e))) },
            None if e.value.is_null() => LoopBound { origin, ..LoopBound::written(Bound::Infinite, None) },
            None => no_limit(),
        },
        None => no_limit(),
    }
}

/// A text whose placeholders are what flows in.
fn data(kit: &mut Kit<'_>, text: &str, x: TermId, at: Span) -> TermId {
    let mut out = Template::new(at);
    for part in double(text) {
        match part {
            Part::Text(t) => {
                out.text(t);
            }
            Part::Hole(_) => {
                let value = kit.b.var("$in", at);
                out.term(value);
            }
        }
    }
    let body = out.build(&mut kit.b);
    let body = kit.b.abs("$in", Some(Type::Str), body, at);
    kit.b.app(body, x, at)
}

/// The parameters of an LLM configuration.
fn model(kit: &mut Kit<'_>, config: Option<Node<'_>>) -> (ModelParams, Option<Span>) {
    let mut params = ModelParams::default();
    let Some(config) = config else { return (params, None) };
    // A component of another file is known by its id.
    let named = first_text(config, &["model_id", "name", "$component_ref"]);
    params.model = named.map(|(t, _)| Name::from(t));
    for e in config.get("default_generation_parameters").into_iter().flat_map(|p| p.entries()) {
        setting(&e, &mut params, kit.out);
    }
    (params, Some(named.map_or(config.head(), |(_, e)| value_span(&e))))
}
