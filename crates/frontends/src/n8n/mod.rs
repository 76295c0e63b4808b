//! n8n workflows: `nodes` and `connections`.
//!
//! | source | term |
//! |---|---|
//! | AI agent, with its model, tools and memory attached | a loop around a model that is offered the tools |
//! | LLM chain, OpenAI message, classifier, extractor | an oracle |
//! | any other node | a tool on what comes in |
//! | `if`, `switch`, `filter`, batches | a decision between its outputs; the condition is unknown |
//! | cycles | `fix` |
//!
//! Expressions (`={{ … }}`) are JavaScript: a prompt that holds one is what it says, with what came in behind
//! it.
//!
//! Source: n8n-io/n8n, `packages/@n8n/nodes-langchain/nodes/agents`: `maxIterations` 10.

use crate::defaults;
use core_ir::{ModelParams, TermId};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::{Entry, Node};
use frontend_kit::emit::{LoopBound, Template, codes, value_span};
use frontend_kit::flow::{Flow, FlowNode};
use frontend_kit::kit::{Action, Agent, Kit, Units, first_text, mark, size};
use frontend_kit::outline::{LeftoverKind, LeftoverState, NodeRole, Retried};
use frontend_kit::project::{Compiled, Facts, File, Frontend, Project, UnitKind, Words};
use std::collections::{HashMap, HashSet};

/// The front end.
pub struct N8n;

impl Frontend for N8n {
    fn name(&self) -> &'static str {
        "n8n"
    }

    fn detect(&self, file: &File) -> u8 {
        let node = |n: Node<'_>| {
            mark::has(n, "typeVersion") || mark::starts(n, "type", "n8n-") || mark::starts(n, "type", "@n8n/")
        };
        if mark::any(file, |r| mark::list(r, &["nodes"], node) && mark::has(r, "connections")) {
            93
        } else {
            0
        }
    }

    fn lower(&self, project: &Project, main: usize) -> Compiled {
        let facts = Facts {
            default_model: Some("the model's node decides on the model, by its own default"),
            ends_loops: Some("n8n ends an agent's loop at the first reply that calls no tool"),
            nothing_ends_run: true,
            words: Words {
                prompt: "say what the agent is to do: `options.systemMessage`",
                bound: "state it: `options.maxIterations`",
                ..Words::default()
            },
            ..Facts::default()
        };
        let mut units = Units::new(self.name(), facts, project);
        let Some(file) = project.files.get(main) else { return units.compiled };
        for root in file.documents.iter().map(|d| d.root()) {
            let name = root.get("name").and_then(|n| n.text()).unwrap_or("workflow");
            let graph = Graph::of(root);
            if !graph.main.is_empty() {
                units.add(name, UnitKind::Crew, root.head(), |kit| graph.flow(kit, root.head()));
            }
        }
        units.done(file.documents.first().map(|d| d.root().head()), "the workflow has no nodes that run")
    }
}

struct Graph<'d> {
    known: HashMap<&'d str, Node<'d>>,
    /// Nodes that run, in their order.
    main: Vec<(&'d str, Node<'d>)>,
    edges: Vec<(String, String, Option<String>)>,
    /// Attachments of each node: their kind and the attached node.
    attached: HashMap<&'d str, Vec<(&'d str, &'d str)>>,
    /// Place of the first connection that names a node by its `id`.
    by_id: Option<Span>,
}

impl<'d> Graph<'d> {
    fn of(root: Node<'d>) -> Graph<'d> {
        let mut graph = Graph {
            known: HashMap::new(),
            main: Vec::new(),
            edges: Vec::new(),
            attached: HashMap::new(),
            by_id: None,
        };
        let mut ids: HashMap<&str, &str> = HashMap::new();
        let mut all: Vec<(&str, Node<'d>)> = Vec::new();
        for n in root.get("nodes").into_iter().flat_map(|n| n.items()) {
            let name = n.get("name").and_then(|n| n.text()).unwrap_or("");
            if !kind(n).ends_with("stickyNote") && graph.known.insert(name, n).is_none() {
                all.push((name, n));
            }
            ids.extend(n.get("id").and_then(|id| id.text()).map(|id| (id, name)));
        }
        let mut parts: Vec<&str> = Vec::new();
        for from in root.get("connections").into_iter().flat_map(|c| c.entries()) {
            let Some(mut source) = from.key.text() else { continue };
            if let Some(name) = ids.get(source).filter(|_| !graph.known.contains_key(source)) {
                source = name;
                graph.by_id.get_or_insert(from.key.span());
            }
            for port in from.value.entries() {
                let how = port.key.text().unwrap_or("main");
                let outputs: Vec<Node<'d>> = port.value.items().collect();
                let linked = outputs.iter().filter(|o| o.items().len() > 0).count();
                for (i, output) in outputs.iter().enumerate() {
                    for to in output.items().filter_map(|t| t.get("node")) {
                        let Some(mut target) = to.text() else { continue };
                        if let Some(name) = ids.get(target).filter(|_| !graph.known.contains_key(target)) {
                            target = name;
                            graph.by_id.get_or_insert(to.span());
                        }
                        if how == "main" {
                            let decides =
                                outputs.len() > 1 && linked > 0 || is_gate(graph.known.get(source).copied());
                            graph.edges.push((source.into(), target.into(), decides.then(|| i.to_string())));
                        } else if how.starts_with("ai_") {
                            graph.attached.entry(target).or_default().push((how, source));
                            parts.push(source);
                        }
                    }
                }
            }
        }
        let runs = |name: &str| {
            let linked = graph.edges.iter().any(|(f, t, _)| f == name || t == name);
            linked || !parts.contains(&name)
        };
        graph.main = all.into_iter().filter(|(name, _)| runs(name)).collect();
        graph
    }

    fn flow(&self, kit: &mut Kit<'_>, at: Span) -> TermId {
        let nodes = self.main.iter().map(|(name, n)| self.node(name, *n)).collect();
        self.outline(kit);
        if let Some(at) = self.by_id {
            let message = "a connection names a node by its `id`: n8n knows nodes by their names";
            let d = Diagnostic::warn(codes::UNDEFINED, message, at);
            kit.out.push(d.help("write the `name` of each node in `connections`"));
        }
        let bound =
            LoopBound::unknown("the cycle runs as often as there are batches, or until its condition holds");
        Flow { nodes, edges: self.edges.clone(), start: Vec::new(), triggers: true, bound, at }.lower(kit)
    }

    /// Records properties that the term doesn't show: nodes that nothing starts, and repeated nodes.
    fn outline(&self, kit: &mut Kit<'_>) {
        let starts = |n: Node<'d>| {
            let short = kind(n).rsplit('.').next().unwrap_or("").to_ascii_lowercase();
            short.contains("trigger")
                || ["webhook", "start", "cron", "interval", "emailreadimap"].contains(&&*short)
        };
        let enabled = |n: Node<'d>| n.get("disabled").and_then(|d| d.as_bool()) != Some(true);
        let any_trigger = self.main.iter().any(|(_, n)| starts(*n));
        let leads: HashSet<&str> = self.edges.iter().map(|(from, ..)| from.as_str()).collect();
        let led_to: HashSet<&str> = self.edges.iter().map(|(_, to, _)| to.as_str()).collect();
        let begins = self.main.iter().any(|(name, n)| starts(*n) && leads.contains(name));
        for (name, n) in self.main.iter().filter(|(_, n)| enabled(*n)) {
            if any_trigger && !led_to.contains(name) && !starts(*n) {
                let state = match (begins, leads.contains(name)) {
                    (true, false) => LeftoverState::SetAside,
                    (false, _) => LeftoverState::Apart,
                    (true, true) => LeftoverState::Unreached,
                };
                kit.outline.leftover(LeftoverKind::Node, name, n.head(), state);
            }
            let retried = n.get("retryOnFail").and_then(|r| r.as_bool()) == Some(true);
            // What is deleted twice is gone as well.
            if retried && role(*n) == NodeRole::Writes && operation(*n) != "delete" {
                let at = n.entry("retryOnFail").map_or(n.head(), |e| e.key.span());
                let times = n.get("maxTries").and_then(|t| t.as_u64());
                let (name, message) = (name.to_string(), is_message(*n));
                kit.outline.retried(Retried { name, at, times, writes: Some(true), message });
            }
        }
    }

    fn node<'g>(&'g self, name: &'g str, node: Node<'d>) -> FlowNode<'g> {
        FlowNode { role: role(node), ..self.plain_node(name, node) }
    }

    fn plain_node<'g>(&'g self, name: &'g str, node: Node<'d>) -> FlowNode<'g> {
        let at = node.head();
        let short = kind(node).rsplit('.').next().unwrap_or("");
        if is_ai(node) {
            return FlowNode::new(name, name, at, move |kit, x| {
                let (agent, asked) = self.agent(kit, name, node);
                let input = match asked {
                    Some((text, place)) => {
                        let mut whole = Template::new(place);
                        whole.text(&text).text("\n").term(x);
                        whole.build(&mut kit.b)
                    }
                    None => x,
                };
                kit.b.app(agent, input, at)
            })
            .undecided(format!("the output that {name} uses"));
        }
        match short {
            "noOp" | "merge" | "stopAndError" | "wait" => FlowNode::pass(name, name, at),
            _ if short.to_ascii_lowercase().contains("trigger") || short == "webhook" || short == "start" => {
                FlowNode::pass(name, name, at)
            }
            "if" | "switch" | "filter" | "splitInBatches" => FlowNode::pass(name, name, at),
            _ => FlowNode::tool(name, name, at),
        }
        .undecided(format!("the output that {name} uses"))
    }

    /// An agent or a chain with what is attached to it, and what it is asked.
    fn agent(&self, kit: &mut Kit<'_>, name: &str, node: Node<'d>) -> (TermId, Option<(String, Span)>) {
        let head = node.head();
        if let Err(term) = kit.open(name, node.span(), head, size(node.span())) {
            return (term, None);
        }
        let parameters = node.get("parameters").unwrap_or(node);
        let attached = self.attached.get(name).map_or(&[][..], |a| a);
        let model = attached.iter().find(|(how, _)| *how == "ai_languageModel");
        let model = model.and_then(|(_, n)| self.known.get(n)).copied().unwrap_or(node);
        let (params, model_at) = params(kit, model);
        let mut actions = Vec::new();
        for (_, tool) in attached.iter().filter(|(how, _)| *how == "ai_tool") {
            let Some(n) = self.known.get(tool) else { continue };
            let named = tool_name(*n);
            if is_ai(*n) && !kit.is_open(n.span()) {
                let (term, _) = self.agent(kit, tool, *n);
                actions.push(Action::ask(*tool, term, n.head()));
            } else {
                actions.push(Action::tool(named.unwrap_or(tool), n.head()));
            }
        }
        let system = system(parameters);
        let prompt_at = system.as_ref().map_or(head, |(_, at)| *at);
        let asked = first_text(parameters, &["text", "prompt", "inputText"])
            .map(|(t, e)| (unmarked(t), value_span(&e)));
        // n8n's own instructions where none are written.
        let own = if kind(node).ends_with(".agent") { "You are a helpful assistant" } else { "" };
        let (prompt, asked) = match (system, asked) {
            (Some((text, _)), asked) => (kit.text(&text, prompt_at), asked),
            (None, asked) if !own.is_empty() => (kit.text(own, prompt_at), asked),
            (None, Some((text, at))) => (kit.text(&text, at), None),
            (None, None) => (kit.unknown("what this node asks", prompt_at), None),
        };
        let entry = parameters.get("options").and_then(|o| o.entry("maxIterations"));
        let bound = defaults::bound(&defaults::N8N_ITERATIONS, kit.versions).or_written(entry, kit.out);
        let term =
            kit.agent(Agent { name, head, prompt, params, model_at, actions, actions_at: None, bound });
        kit.close();
        (term, asked)
    }
}

/// Name that a tool of n8n's own states for the model. Any other tool has the name of its node: what a client
/// of a server calls `toolName` is a tool of that server.
fn tool_name<'d>(node: Node<'d>) -> Option<&'d str> {
    let short = kind(node).strip_prefix("@n8n/n8n-nodes-langchain.")?;
    let parameters = node.get("parameters").filter(|_| !short.starts_with("mcp"))?;
    let (text, _) = first_text(parameters, &["name", "toolName"])?;
    (!text.starts_with('=')).then_some(text)
}

fn kind<'d>(node: Node<'d>) -> &'d str {
    node.get("type").and_then(|t| t.text()).unwrap_or("")
}

/// Services by which people get messages. The operation that is not written down is to send one.
const MESSENGERS: &[&str] =
    &["gmail", "slack", "telegram", "emailSend", "discord", "twilio", "whatsApp", "sendGrid", "mattermost"];

/// Operation that a node of a service carries out, empty if it is not written down.
fn operation<'d>(node: Node<'d>) -> &'d str {
    node.at(&["parameters", "operation"]).and_then(|o| o.text()).unwrap_or("")
}

/// Returns true if a node that writes sends a message.
fn is_message(node: Node<'_>) -> bool {
    let operation = operation(node);
    let short = kind(node).rsplit('.').next().unwrap_or("");
    let sends = ["", "send", "post", "reply", "sendMessage"].contains(&operation);
    MESSENGERS.contains(&short) && sends
}

/// Returns the role of a node for policies. Services are classified by the chosen operation.
fn role(node: Node<'_>) -> NodeRole {
    let short = kind(node).rsplit('.').next().unwrap_or("");
    let operation = operation(node);
    if operation == "sendAndWait" || operation == "dispatchAndWait" {
        return NodeRole::Approves;
    }
    let writing =
        ["send", "post", "create", "delete", "reply", "sendMessage", "publish", "append", "insert", "charge"];
    let service = kind(node).starts_with("n8n-nodes-base.")
        && !["code", "set", "function", "executeWorkflow"].contains(&short);
    let resource = node.at(&["parameters", "resource"]).and_then(|o| o.text()).unwrap_or("");
    let draft = resource == "draft" || resource == "label";
    if service
        && !draft
        && (writing.contains(&operation) || operation.is_empty() && MESSENGERS.contains(&short))
    {
        NodeRole::Writes
    } else {
        NodeRole::Plain
    }
}

/// Returns true if a node calls a model.
fn is_ai(node: Node<'_>) -> bool {
    let kind = kind(node);
    let Some(short) = kind.split("langchain.").nth(1) else { return false };
    let asks = [
        "agent",
        "agentTool",
        "chain",
        "openAi",
        "anthropic",
        "googleGemini",
        "informationExtractor",
        "textClassifier",
        "sentimentAnalysis",
    ];
    asks.iter().any(|a| short.starts_with(a)) && !short.to_ascii_lowercase().contains("embedding")
}

fn is_gate(node: Option<Node<'_>>) -> bool {
    node.is_some_and(|n| {
        ["if", "switch", "filter", "splitInBatches"].iter().any(|k| kind(n) == format!("n8n-nodes-base.{k}"))
    })
}

/// A text without the mark of an expression.
fn unmarked(text: &str) -> String {
    text.strip_prefix('=').unwrap_or(text).to_string()
}

/// The instructions: `options.systemMessage`, or the first message.
fn system(parameters: Node<'_>) -> Option<(String, Span)> {
    let options = parameters.get("options");
    let direct = options
        .and_then(|o| first_text(o, &["systemMessage", "systemPromptTemplate", "prefix", "humanMessage"]));
    if let Some((text, entry)) = direct {
        return Some((unmarked(text), value_span(&entry)));
    }
    let lists = [
        &["messages", "messageValues"][..],
        &["messages", "values"],
        &["responses", "values"],
        &["prompt", "messages"],
    ];
    for list in lists {
        let mut found: Option<(String, Span)> = None;
        for m in parameters.at(list).into_iter().flat_map(|m| m.items()) {
            if let Some((text, entry)) = first_text(m, &["message", "content"]) {
                match &mut found {
                    Some((all, _)) => {
                        all.push('\n');
                        all.push_str(&unmarked(text));
                    }
                    None => found = Some((unmarked(text), value_span(&entry))),
                }
            }
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The parameters of a model's node.
fn params(kit: &mut Kit<'_>, node: Node<'_>) -> (ModelParams, Option<Span>) {
    let mut params = ModelParams::default();
    let Some(parameters) = node.get("parameters") else { return (params, Some(node.head())) };
    let entry: Option<Entry<'_>> = ["model", "modelId", "modelName"].iter().find_map(|k| parameters.entry(k));
    let value = entry.and_then(|e| e.value.text().or_else(|| e.value.get("value")?.text()));
    // Its models are named `openai/gpt-5`, as if another service were asked.
    let through = if kind(node).ends_with("OpenRouter") { "openrouter/" } else { "" };
    params.model = value.filter(|v| !v.is_empty()).map(|v| format!("{through}{}", unmarked(v)).into());
    for e in parameters.get("options").into_iter().flat_map(|o| o.entries()) {
        if matches!(e.name(), "temperature" | "maxTokens" | "topP" | "frequencyPenalty" | "presencePenalty") {
            frontend_kit::kit::setting(&e, &mut params, kit.out);
        }
    }
    (params, Some(entry.map_or(node.head(), |e| value_span(&e))))
}
