//! Open Agent Spec.
//!
//! | term | component |
//! |---|---|
//! | `llm p θ` | `Agent` |
//! | a loop around one that is offered tools | `Agent` with `ServerTool`s and `MCPTool`s; its bound is in `metadata` |
//! | with agents that are asked and answer | `ManagerWorkers` |
//! | with agents that take over | `Swarm` |
//! | `e1 >> e2` | `Flow` of `AgentNode`s and `ToolNode`s, one after the other |
//!
//! Source: oracle/agent-spec, specification 25.4.

use crate::cannot;
use crate::codes::OURS;
use crate::text_loop::{Action, ActionKind, text_loop};
use core_ir::{Bound, BoundOrigin, Code, Data, ModelParams, Name, Prim, Term, TermId, ToolDecl, Type};
use diagnostics::{Diagnostic, Span, clip};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The version whose components are written.
const VERSION: &str = "25.4.1";

/// Writes a term; without an error among what is found the text is whole.
pub(crate) fn write(code: &Code, name: &str) -> (String, Vec<Diagnostic>) {
    let mut w = Writer { code, found: Vec::new(), ids: HashMap::new(), shared: Map::new() };
    let mut root = w.program(name);
    if let Some(o) = root.as_object_mut() {
        o.insert("agentspec_version".into(), VERSION.into());
        if !w.shared.is_empty() {
            o.insert("$referenced_components".into(), Value::Object(w.shared));
        }
    }
    // INVARIANT: JSON values serialize.
    (serde_json::to_string_pretty(&root).unwrap_or_default() + "\n", w.found)
}

struct Writer<'c> {
    code: &'c Code,
    found: Vec<Diagnostic>,
    /// Number of uses of each name in an identifier.
    ids: HashMap<String, u32>,
    shared: Map<String, Value>,
}

/// An agent as a component, with what it hands work to.
struct Agent {
    component: Value,
    /// Agents that are asked.
    workers: Vec<Value>,
    /// Agents that take over, with their places.
    takers: Vec<(Span, TermId)>,
}

/// A step of a flow.
enum Step {
    Agent(TermId),
    Tool(TermId),
}

impl Writer<'_> {
    fn cannot(&mut self, what: impl Into<String>, at: Span) -> Value {
        self.found.push(cannot(format!("Open Agent Spec cannot express {}", what.into()), at));
        Value::Null
    }

    fn id(&mut self, name: &str) -> String {
        let stem: String = name
            .chars()
            .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .take(40)
            .collect();
        let n = self.ids.entry(stem.clone()).or_insert(0);
        *n += 1;
        if *n == 1 { stem } else { format!("{stem}_{n}") }
    }

    fn program(&mut self, name: &str) -> Value {
        let code = self.code;
        let mut root = code.root();
        // The inputs of the unit are the placeholders of its prompts.
        if let Term::Abs(abs) = code.term(root)
            && matches!(abs.ty, Some(Type::Record(_)))
        {
            root = match code.term(abs.body) {
                Term::App(f, x) if self.is_input(*x) => *f,
                Term::App(_, x) => {
                    return self.cannot("an initial text", code.span(*x));
                }
                _ => abs.body,
            };
        }
        self.runnable(root, name)
    }

    /// `inputs.input`.
    fn is_input(&self, id: TermId) -> bool {
        match self.code.term(id) {
            Term::Field(of, f) => {
                &**f == "input" && matches!(self.code.term(*of), Term::Var(n, _) if &**n == "inputs")
            }
            _ => false,
        }
    }

    /// A component for a function of text.
    fn runnable(&mut self, id: TermId, name: &str) -> Value {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || self.runnable_inner(id, name))
    }

    fn runnable_inner(&mut self, id: TermId, name: &str) -> Value {
        if let Term::Llm(..) | Term::Fix { .. } = self.code.term(id) {
            let Some(agent) = self.agent(id, name) else { return Value::Null };
            return self.group(agent, id);
        }
        match self.steps(id) {
            Some(steps) => match &steps[..] {
                [Step::Agent(only)] => self.runnable(*only, name),
                _ => self.flow(&steps, name, id),
            },
            None => {
                let (what, at) = self.reason(id);
                self.cannot(what, at)
            }
        }
    }

    /// Returns the first part of a term that can't be converted, in the order of the text.
    fn reason(&self, id: TermId) -> (String, Span) {
        let code = self.code;
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let what = match code.term(id) {
                Term::Unknown(why) => format!("an unknown part: {}", clip(why)),
                Term::Mem(..) | Term::Recall(..) | Term::Remember(..) => "memory".into(),
                Term::Guard { .. } => "a guard".into(),
                Term::Choose(..) => "a random choice".into(),
                Term::Par(..) | Term::Each(..) => "parallel parts".into(),
                Term::If(..) | Term::Case { .. } => {
                    "a router whose branches get another input than the router itself".into()
                }
                Term::Send(..) | Term::Recv(_) | Term::Fork(_) | Term::Fresh(_) | Term::Clear => {
                    "an explicit conversation".into()
                }
                Term::Try { .. } | Term::Fail(_) => "error handling".into(),
                Term::Prim(Prim::Format, _) | Term::Lit(_) => "a computed text".into(),
                term => {
                    open.extend(term.children().into_iter().rev());
                    continue;
                }
            };
            return (what, code.span(id));
        }
        ("a function of this kind".into(), code.span(id))
    }

    // ----- agents -----

    /// An agent with those around it that it hands work to.
    fn group(&mut self, agent: Agent, id: TermId) -> Value {
        let at = self.code.span(id);
        match (agent.workers.is_empty(), agent.takers.is_empty()) {
            (true, true) => agent.component,
            (false, true) => {
                let name = agent.component["name"].clone();
                let own = self.id("group");
                json!({
                    "component_type": "ManagerWorkers", "id": own, "name": name,
                    "group_manager": agent.component, "workers": agent.workers,
                })
            }
            (true, false) => self.swarm(agent),
            (false, false) => self.cannot("an agent with both helpers and handoffs", at),
        }
    }

    fn swarm(&mut self, first: Agent) -> Value {
        let mut pairs: Vec<Value> = Vec::new();
        let refer = |w: &mut Self, component: Value| {
            let id = component["id"].as_str().unwrap_or_default().to_string();
            w.shared.insert(id.clone(), component);
            json!({ "$component_ref": id })
        };
        let name = first.component["name"].clone();
        let begin = refer(self, first.component);
        let mut open: Vec<(Value, Vec<(Span, TermId)>)> = vec![(begin.clone(), first.takers)];
        while let Some((from, takers)) = open.pop() {
            for (at, id) in takers {
                let Some(to) = self.agent(id, "agent") else { continue };
                if !to.workers.is_empty() {
                    self.cannot("an agent with handoffs that also calls other agents", at);
                }
                let component = refer(self, to.component);
                pairs.push(json!([from, component]));
                open.push((component, to.takers));
            }
        }
        let own = self.id("swarm");
        json!({ "component_type": "Swarm", "id": own, "name": name, "first_agent": begin, "relationships": pairs })
    }

    /// `llm p θ`, or a loop around one with its tools and helpers.
    fn agent(&mut self, id: TermId, name: &str) -> Option<Agent> {
        let code = self.code;
        let at = code.span(id);
        match code.term(id) {
            Term::Llm(prompt, params) => {
                let component = self.component(Some(*prompt), params, name, at);
                Some(Agent { component, workers: Vec::new(), takers: Vec::new() })
            }
            Term::Fix { bound, origin, .. } => {
                let Some(found) = text_loop(code, id) else {
                    self.cannot("a loop other than the tool loop of an agent", at);
                    return None;
                };
                let mut component = self.component(found.prompt, found.params, name, at);
                let mut agent = Agent { component: Value::Null, workers: Vec::new(), takers: Vec::new() };
                let mut tools = Vec::new();
                for action in &found.actions {
                    self.action(action, &mut tools, &mut agent);
                }
                component["tools"] = Value::Array(tools);
                self.bound(&mut component, *bound, origin.as_ref(), at);
                if found.one_action {
                    component["metadata"]["entail"]["calls"] = "first".into();
                }
                agent.component = component;
                Some(agent)
            }
            _ => {
                let (what, at) = self.reason(id);
                self.cannot(what, at);
                None
            }
        }
    }

    /// The bound of a loop, for which Agent Spec has no word.
    fn bound(&mut self, component: &mut Value, bound: Bound, origin: Option<&BoundOrigin>, at: Span) {
        if let (Bound::Infinite, Some(BoundOrigin::Unknown(why))) = (bound, origin)
            && **why == *frontends::AGENT_SPEC_BOUND
        {
            return;
        }
        let origin = origin.map(BoundOrigin::to_string);
        let most = match bound {
            Bound::Finite(n) => json!(n),
            Bound::Infinite => Value::Null,
        };
        component["metadata"] = json!({ "entail": { "max_steps": most, "max_steps_from": origin } });
        if let Bound::Finite(n) = bound {
            let message = format!("only Entail knows that this loop has {n} steps at most");
            self.found.push(Diagnostic::info(OURS, message, at).help(
                "Agent Spec has no field for it: it is written to `metadata`, which other runtimes ignore",
            ));
        }
    }

    fn is_var(&self, id: TermId, name: &str) -> bool {
        matches!(self.code.term(id), Term::Var(n, _) if &**n == name)
    }

    /// Converts an action of an agent.
    fn action(&mut self, action: &Action, tools: &mut Vec<Value>, agent: &mut Agent) {
        let decl = self.code.tool(action.id).clone();
        match action.kind {
            // Another agent takes over.
            ActionKind::HandOff(taker) => agent.takers.push((action.at, taker)),
            ActionKind::Call if !agent.workers.is_empty() => {
                self.cannot("a tool that is listed after an agent: agents must come last", decl.span);
            }
            ActionKind::Call => tools.push(self.tool(&decl)),
            ActionKind::Ask(f) => {
                let worker = self.runnable(f, &decl.name);
                // What a worker is called is what the manager calls it.
                if worker["name"] != *decl.name {
                    let message = format!("a worker that its manager knows as `{}`", clip(&decl.name));
                    if !worker.is_null() {
                        self.cannot(message, action.at);
                    }
                }
                agent.workers.push(worker);
            }
            ActionKind::Finish => {
                self.cannot("a tool whose result is the answer", action.at);
            }
            ActionKind::End => {
                self.cannot("a call that ends the loop", action.at);
            }
        }
    }

    fn tool(&mut self, decl: &ToolDecl) -> Value {
        let blank = ToolDecl {
            description: decl.description.clone(),
            handler: decl.handler.clone(),
            ..ToolDecl::unknown(decl.name.clone(), decl.span)
        };
        if *decl != blank {
            return self
                .cannot(format!("all of the declaration of the tool `{}`", clip(&decl.name)), decl.span);
        }
        let id = self.id(&decl.name);
        let mut tool = json!({ "component_type": "ServerTool", "id": id, "name": &*decl.name });
        if let Some(description) = &decl.description {
            tool["description"] = (&**description).into();
        }
        match decl.handler.as_ref().map(|h| (h, server(h))) {
            None => {}
            Some((_, Some(server))) => {
                tool["component_type"] = "MCPTool".into();
                let transport = self.id(server);
                tool["client_transport"] =
                    json!({ "component_type": "ClientTransport", "id": transport, "name": server });
            }
            Some((_, None)) => return self.cannot("the handler of this tool", decl.span),
        }
        tool
    }

    fn component(&mut self, prompt: Option<TermId>, params: &ModelParams, name: &str, at: Span) -> Value {
        let name = params.purpose.as_deref().unwrap_or(name);
        let id = self.id(name);
        let prompt = prompt.map_or_else(|| "".into(), |prompt| self.template(prompt));
        let mut agent = json!({ "component_type": "Agent", "id": id, "name": name, "system_prompt": prompt });
        let inputs: Vec<Value> = holes(&agent["system_prompt"])
            .into_iter()
            .map(|title| json!({ "title": title, "type": "string" }))
            .collect();
        if !inputs.is_empty() {
            agent["inputs"] = Value::Array(inputs);
        }
        if params.result.is_some() {
            self.cannot("the type of a reply", at);
        }
        let mut settings = Map::new();
        if let Some(t) = &params.temperature {
            settings.insert("temperature".into(), t.to_json());
        }
        if let Some(n) = params.max_tokens {
            settings.insert("max_tokens".into(), n.into());
        }
        for (key, value) in &params.extra {
            settings.insert(key.to_string(), value.to_json());
        }
        let Some(model) = &params.model else {
            if !settings.is_empty() {
                self.cannot("settings of a model without a name", at);
            }
            self.found.push(
                Diagnostic::info(OURS, "this agent names no model, which only Entail accepts", at)
                    .help("name a model in the source: other runtimes require `llm_config`"),
            );
            return agent;
        };
        let id = self.id(model);
        let mut config = json!({
            "component_type": "LlmConfig", "id": id, "name": &**model, "model_id": &**model,
        });
        if !settings.is_empty() {
            config["default_generation_parameters"] = Value::Object(settings);
        }
        agent["llm_config"] = config;
        agent
    }

    /// A prompt, the unit's inputs as placeholders.
    fn template(&mut self, id: TermId) -> Value {
        let code = self.code;
        match code.term(id) {
            Term::Lit(Data::Str(text)) => (&**text).into(),
            Term::Prim(Prim::Format, parts) => {
                let mut out = String::new();
                for part in parts {
                    match code.term(*part) {
                        Term::Lit(Data::Str(text)) => out.push_str(text),
                        Term::Field(of, name) if self.is_var(*of, "inputs") => {
                            out.push_str(&format!("{{{{{name}}}}}"));
                        }
                        _ => {
                            return self.cannot(
                                "a prompt with placeholders for other values than inputs",
                                code.span(*part),
                            );
                        }
                    }
                }
                out.into()
            }
            Term::Unknown(why) => {
                let what = format!("an unknown part: {}", clip(why));
                self.cannot(what, code.span(id))
            }
            _ => self.cannot("a prompt that is computed", code.span(id)),
        }
    }

    // ----- flows -----

    /// The functions that a text goes through one after the other.
    fn steps(&self, id: TermId) -> Option<Vec<Step>> {
        stacker::maybe_grow(64 * 1024, 2 * 1024 * 1024, || {
            let code = self.code;
            if let Some(stages) = code.stages(id) {
                let mut out = Vec::new();
                for stage in stages {
                    out.extend(self.steps(stage)?);
                }
                return Some(out);
            }
            match code.term(id) {
                Term::Llm(..) | Term::Fix { .. } => Some(vec![Step::Agent(id)]),
                Term::Abs(abs) => {
                    let mut known: Vec<(Name, Vec<TermId>)> = vec![(abs.param.clone(), Vec::new())];
                    let calls = self.calls(abs.body, &mut known)?;
                    let mut out = Vec::new();
                    for call in calls {
                        match code.term(call) {
                            Term::Tool(_) => out.push(Step::Tool(call)),
                            _ => out.extend(self.steps(call)?),
                        }
                    }
                    Some(out)
                }
                _ => None,
            }
        })
    }

    /// The functions that made a value out of the parameter, the first first.
    fn calls(&self, id: TermId, known: &mut Vec<(Name, Vec<TermId>)>) -> Option<Vec<TermId>> {
        match self.code.term(id) {
            Term::Var(name, _) => known.iter().rev().find(|(n, _)| n == name).map(|(_, calls)| calls.clone()),
            Term::App(f, x) => {
                let mut calls = self.calls(*x, known)?;
                calls.push(*f);
                Some(calls)
            }
            Term::Prim(Prim::ToStr, of) => match self.code.term(*of.first()?) {
                Term::App(f, x) if matches!(self.code.term(*f), Term::Tool(_)) => {
                    let mut calls = self.calls(*x, known)?;
                    calls.push(*f);
                    Some(calls)
                }
                _ => None,
            },
            Term::Let { bindings, body, .. } => {
                let before = known.len();
                for (name, value) in bindings {
                    let calls = self.calls(*value, known)?;
                    known.push((name.clone(), calls));
                }
                let out = self.calls(*body, known);
                known.truncate(before);
                out
            }
            _ => None,
        }
    }

    fn flow(&mut self, steps: &[Step], name: &str, id: TermId) -> Value {
        let at = self.code.span(id);
        if steps.is_empty() {
            return self.cannot("a flow without steps", at);
        }
        let mut nodes = vec![self.node("StartNode", "start", Map::new())];
        for (i, step) in steps.iter().enumerate() {
            let node = match step {
                Step::Agent(agent) => {
                    let component = self.runnable(*agent, &format!("step_{}", i + 1));
                    let name = component["name"].as_str().unwrap_or("step").to_string();
                    // Nodes of one name would be one variable.
                    let name = format!("{}. {name}", i + 1);
                    self.node("AgentNode", &name, Map::from_iter([("agent".to_string(), component)]))
                }
                Step::Tool(tool) => {
                    let Term::Tool(tool) = self.code.term(*tool) else { continue };
                    let decl = self.code.tool(*tool).clone();
                    if decl.handler.is_some() || decl.description.is_some() {
                        self.cannot("the handler of a step's tool", decl.span);
                    }
                    let component = self.tool(&decl);
                    let name = format!("{}. {}", i + 1, decl.name);
                    self.node("ToolNode", &name, Map::from_iter([("tool".to_string(), component)]))
                }
            };
            nodes.push(node);
        }
        nodes.push(self.node("EndNode", "end", Map::new()));
        let mut edges = Vec::new();
        for pair in nodes.windows(2) {
            let id = self.id("edge");
            edges.push(json!({
                "component_type": "ControlFlowEdge", "id": id, "name": id,
                "from_node": pair[0], "to_node": pair[1],
            }));
        }
        let own = self.id(name);
        json!({
            "component_type": "Flow", "id": own, "name": name, "start_node": nodes[0], "nodes": nodes,
            "control_flow_connections": edges, "data_flow_connections": [],
        })
    }

    /// A node; what is given back refers to it.
    fn node(&mut self, kind: &str, name: &str, more: Map<String, Value>) -> Value {
        let id = self.id(name);
        let mut node = json!({ "component_type": kind, "id": id, "name": name });
        if let Some(o) = node.as_object_mut() {
            o.extend(more);
        }
        self.shared.insert(id.clone(), node);
        json!({ "$component_ref": id })
    }
}

/// The server of a handler that is nothing else.
fn server(handler: &Data) -> Option<&str> {
    match handler {
        Data::Record(fields) if fields.len() == 1 => handler.field("mcp")?.as_str(),
        _ => None,
    }
}

/// The placeholders of a prompt, each once.
fn holes(prompt: &Value) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = prompt.as_str().unwrap_or_default();
    while let Some((_, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        if !out.iter().any(|n| n == name) {
            out.push(name.to_string());
        }
        rest = behind;
    }
    out
}
