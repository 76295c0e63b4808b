//! Agents that the framework builds, and graphs within graphs.
//!
//! | source | term |
//! |---|---|
//! | `create_react_agent`, `create_agent`, `AgentExecutor` | a conversation: `send[system] p; send x; case (fix[k] …) of {…}` |
//! | an agent or a graph as a node | the same in the conversation of the graph around it |
//! | `agent.invoke({"messages": […]})` in a node | the same in a conversation of its own |
//!
//! A round of such an agent is a reply and what it calls. Of `n` steps the last is never a success, so there
//! are `(n − 1) / 2` rounds; then, as the framework does it, one reply more, which is refused.
//!
//! Source: langgraph-prebuilt 1.1.2 `chat_agent_executor.py`; langchain 1.4.7 `agents/factory.py`; langchain
//! 0.3 `agents/agent.py`.

use super::node::{Graph, Mode, NodeRun};
use super::plan::Plan;
use super::pregel::Stops;
use super::prompt::{MessageContent, Part};
use super::value::{REPLY, STATE, Scope, message_role};
use super::{GraphReader, Inner, ReplyKind};
use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{Bound, Branch, ModelParams, Name, Prim, Recv, Role, Term, TermId, ToolDecl, Type};
use diagnostics::Span;
use frontend_kit::Ends;
use frontend_kit::calls;
use frontend_kit::emit::{LoopBound, Unused, codes, undecided};
use frontend_kit::kit::Kit;
use frontend_kit::shape::why;
use python::{Object, ObjectId, PyKind, Value};
use std::sync::Arc;

const AGENT_KEYS: &[&str] = &[
    "model",
    "tools",
    "prompt",
    "system_prompt",
    "state_modifier",
    "messages_modifier",
    "name",
    "response_format",
];
const AGENT_UNUSED: &[Unused] = &[
    ("checkpointer", "state kept between runs is not compiled"),
    ("store", "state kept between runs is not compiled"),
    ("state_schema", "an agent's state is its conversation here"),
    ("context_schema", "what runs are configured with is not compiled"),
    ("config_schema", "what runs are configured with is not compiled"),
    ("pre_model_hook", why::CODE),
    ("post_model_hook", why::CODE),
    ("middleware", why::CODE),
    ("interrupt_before", why::NOT_YET),
    ("interrupt_after", why::NOT_YET),
    ("version", why::RUNTIME),
    ("debug", why::RUNTIME),
    ("cache", why::RUNTIME),
];
const EXECUTOR_KEYS: &[&str] = &["agent", "tools", "max_iterations"];
/// Advice for the bound of an executor's loop.
const EXECUTOR_BOUND: &str = "state it: `max_iterations=` of the executor";
const EXECUTOR_UNUSED: &[Unused] = &[
    ("verbose", why::SHOWN),
    ("handle_parsing_errors", why::RUNTIME),
    ("return_intermediate_steps", why::SHOWN),
    ("early_stopping_method", why::NOT_YET),
    ("max_execution_time", why::NOT_YET),
    ("memory", "what earlier runs said is not compiled"),
    ("callbacks", why::CODE),
    ("stream_runnable", why::RUNTIME),
    ("trim_intermediate_steps", why::NOT_YET),
];

/// Behavior of an agent whose round limit is reached.
pub(super) enum Last {
    /// The model is asked once more, then the run fails.
    AskAndFail(String),
    /// The model is asked once more; if it calls a tool, that is called, and the run fails.
    CallAndFail(String),
    /// The model is asked once more; if it calls a tool, this is the answer.
    AskAndSay(&'static str),
    /// This is the answer.
    Say(&'static str),
}

/// An agent, read.
pub(super) struct Agent {
    pub head: Span,
    pub parts: Vec<Part>,
    pub params: ModelParams,
    pub tools: Vec<Value>,
    pub decls: Vec<ToolDecl>,
    /// Agents that are asked: how they are called, their name.
    pub helpers: Vec<(ToolDecl, String, ObjectId)>,
    /// Agents that carry out tasks in conversations of their own.
    pub subagents: Vec<super::deep_agents::Subagent>,
    bound: LoopBound,
    last: Last,
    /// Asked for at the end, in this form.
    after: Option<Type>,
    pub scope: Scope,
}

impl Agent {
    /// An agent without helpers.
    pub fn of(
        head: Span,
        parts: Vec<Part>,
        params: ModelParams,
        tools: Vec<Value>,
        decls: Vec<ToolDecl>,
        bound: LoopBound,
        last: Last,
    ) -> Agent {
        let scope = Scope { inputs: true, ..Scope::default() };
        Agent {
            head,
            parts,
            params,
            tools,
            decls,
            helpers: Vec::new(),
            subagents: Vec::new(),
            bound,
            last,
            after: None,
            scope,
        }
    }
}

/// Returns true for a model that LangChain asks for a structured answer by the provider's own means; an
/// answer that is not valid is an error then.
///
/// Source: langchain 1.4.7, `agents/factory.py`, `FALLBACK_MODELS_WITH_STRUCTURED_OUTPUT`.
fn has_native_form(model: &str) -> bool {
    const NAMES: &[&str] = &["grok", "gpt-5", "gpt-4.1", "gpt-4o", "gpt-oss", "o3-pro", "o3-mini"];
    NAMES.iter().any(|n| model.contains(n))
}

impl GraphReader<'_, '_> {
    /// The agent or graph that a value is.
    pub fn inner_graph(&self, value: &Value) -> Option<Inner> {
        let (mut id, _) = self.world.object_of(value)?;
        for _ in 0..12 {
            let object = self.world.object(id);
            if self.is_agent(object) {
                return Some(Inner::Agent(id));
            }
            match (self.method_call(object), object.base) {
                (Some((base, "compile")), _) if self.is_team(self.world.object(base)) => {
                    return Some(Inner::Team(base));
                }
                (Some((base, "compile")), _) if self.plans.contains_key(&self.graph_root(base)) => {
                    return Some(Inner::Graph(self.graph_root(base)));
                }
                (Some((base, "with_config" | "with_retry")), _) => id = base,
                _ => return None,
            }
        }
        None
    }

    /// The graph that a builder's methods were called on.
    fn graph_root(&self, id: ObjectId) -> ObjectId {
        let mut at = id;
        for _ in 0..400 {
            match self.world.object(at).base {
                Some(base) => at = base,
                None => break,
            }
        }
        at
    }

    /// Returns true for an agent that the framework builds.
    pub fn is_agent(&self, object: &Object) -> bool {
        object.base.is_none()
            && object.class.is_none()
            && match object.short() {
                // LangChain's own takes one step; an executor makes the loop of it.
                "create_react_agent" => object.package() == "langgraph",
                "create_agent" | "create_tool_calling_executor" => true,
                "create_deep_agent" | "async_create_deep_agent" => return object.package() == "deepagents",
                "AgentExecutor" | "initialize_agent" | "from_agent_and_tools" => {
                    object.package().starts_with("langchain")
                }
                _ => false,
            }
            && (object.package().starts_with("langchain") || object.package() == "langgraph")
    }

    /// The name that an agent is given.
    pub fn agent_name(&self, id: ObjectId) -> Option<String> {
        let object = self.world.object(id);
        let own = self
            .is_agent(object)
            .then(|| field(object, None, "name"))
            .flatten()
            .and_then(|g| py::label(self.world, g.value));
        own.or_else(|| {
            // `.compile(name="team")`.
            let compiled = object.callee.ends_with(".compile").then(|| field(object, None, "name")).flatten();
            compiled.and_then(|g| py::label(self.world, g.value))
        })
    }

    /// Calls of what was made of an agent, with the names of the methods.
    pub fn runs_of(&self, id: ObjectId) -> Vec<(String, &Object)> {
        self.world.method_chain(id).into_iter().map(|(m, o)| (m.name.to_string(), o)).collect()
    }

    /// Reads an agent.
    pub fn read_agent(&self, kit: &mut Kit<'_>, id: ObjectId) -> Agent {
        let object = self.world.object(id);
        let head = object.span;
        let name = self.agent_name(id).unwrap_or_else(|| "agent".into());
        let scope = Scope { inputs: true, ..Scope::default() };
        if matches!(object.short(), "AgentExecutor" | "from_agent_and_tools" | "initialize_agent") {
            return self.executor(kit, object, name, scope);
        }
        if object.package() == "deepagents" {
            let bound = self.limit(&self.runs_of(id), defaults::create_deep_agent(kit.versions));
            return self.read_deep(kit, object, &name, bound);
        }
        py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let mut tools =
            field(object, Some(1), "tools").map_or_else(Vec::new, |g| match self.world.object_of(g.value) {
                // `ToolNode(tools)`.
                Some((_, o)) if o.short() == "ToolNode" => {
                    field(o, Some(0), "tools").map_or_else(Vec::new, |g| self.tool_items(g.value))
                }
                _ => self.tool_items(g.value),
            });
        let mut params = ModelParams { purpose: Some(name.as_str().into()), ..ModelParams::default() };
        if let Some(given) = field(object, Some(0), "model") {
            self.note_scripted(kit, given.value);
            match self.model(given.value) {
                Some(model) => {
                    params =
                        self.params(kit, &super::model::Model { tools: Vec::new(), ..model.clone() }, &name);
                    if tools.is_empty() {
                        tools = model.tools;
                    }
                }
                None => {
                    py::model(self.world, Some(given), &mut params, kit);
                }
            }
        }
        let mut after = None;
        if let Some(given) = field(object, None, "response_format").filter(|g| !g.value.is_none()) {
            let schema = match self.world.object_of(given.value) {
                Some((_, o)) if matches!(o.short(), "ToolStrategy" | "ProviderStrategy" | "AutoStrategy") => {
                    field(o, Some(0), "schema").map_or(given.value, |g| g.value)
                }
                _ => given.value,
            };
            let ty = self.schema(schema);
            match object.short() {
                "create_agent" => params.result = Some(ty),
                _ => after = Some(ty),
            }
        }
        let parts = self.agent_prompt(kit, object);
        let langchain = object.short() == "create_agent" && object.package() == "langchain";
        let default = match langchain {
            true => defaults::create_agent(kit.versions),
            false => defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions),
        };
        let limit = self.limit(&self.runs_of(id), default);
        let strategy = field(object, None, "response_format").filter(|g| !g.value.is_none());
        let strategy = strategy.map(|g| self.world.object_of(g.value).map(|(_, o)| o.short()));
        // A structured answer that is not valid is asked for again at the next step, without one between.
        let asks_again = langchain && strategy.is_some_and(|s| s != Some("ProviderStrategy"));
        let steps = limit.clone();
        let (mut bound, last) = rounds(limit, langchain);
        if asks_again {
            bound = steps.clone();
        }
        // Without tools there is no loop: each reply that is not valid is asked for again, to the limit.
        let native =
            strategy != Some(Some("ToolStrategy")) && params.model.as_deref().is_some_and(has_native_form);
        if let (true, true, false, Bound::Finite(n)) = (asks_again, tools.is_empty(), native, steps.bound) {
            params.repair = u32::try_from(n.saturating_sub(1)).unwrap_or(u32::MAX);
        }
        let given = field(object, Some(1), "tools").map(|g| g.value);
        if bound.origin.is_some() && given.is_some_and(|v| py::are_tools_of_run(self.world, v, &tools)) {
            bound.facts.ends = Some(Ends::ByUnknownTools);
        }
        let decls = self.tools(kit, &tools);
        Agent { after, ..Agent::of(head, parts, params, tools, decls, bound, last) }
    }

    /// The instructions of an agent, as messages.
    pub fn agent_prompt(&self, kit: &mut Kit<'_>, object: &Object) -> Vec<Part> {
        let given = ["prompt", "system_prompt", "state_modifier", "messages_modifier"]
            .iter()
            .find_map(|n| field(object, None, n));
        let Some(Given { value, at }) = given.filter(|g| !g.value.is_none()) else { return Vec::new() };
        let system = |value: &Value| vec![Part::Say(Role::System, MessageContent::Value(value.clone()))];
        match &self.world.resolve_env(value).kind {
            PyKind::Str(_) | PyKind::Text(_) => system(value),
            PyKind::Function(_) | PyKind::Bound(..) => {
                let Some(traced) = self.traced(value) else { return Vec::new() };
                let scope = Scope {
                    state: Some((traced.state, STATE.into())),
                    messages: Some("messages".into()),
                    ..Scope::default()
                };
                let parts = match &traced.trace.value.kind {
                    PyKind::Str(_) | PyKind::Text(_) => system(&traced.trace.value),
                    _ => self.parts(&scope, &traced.trace.value),
                };
                let sharing = std::rc::Rc::new(self.sharing(traced, &[]));
                let says = |part: Part| match part {
                    Part::Say(Role::System, MessageContent::Value(value)) if !sharing.is_empty() => {
                        Some(Part::Say(Role::System, MessageContent::Computed(value, sharing.clone())))
                    }
                    said @ Part::Say(Role::System, _) => Some(said),
                    _ => None,
                };
                parts.into_iter().filter_map(says).collect()
            }
            _ if self.message_of(value).is_some() => {
                let parts = self.parts(&Scope::default(), value);
                parts.into_iter().filter(|p| matches!(p, Part::Say(..))).collect()
            }
            _ if self.is_prompt(value) => {
                let mut parts = Vec::new();
                let vars = super::prompt::Vars::Values(Vec::new());
                self.prompt_parts(&Scope { inputs: true, ..Scope::default() }, value, &vars, &mut parts, 0);
                parts.retain(|p| matches!(p, Part::Say(Role::System, _)));
                parts
            }
            _ => {
                let message = format!("the instructions are not known: {}", self.world.unknown_reason(value));
                kit.out.push(undecided(codes::NOT_COMPILED, message.clone(), at));
                vec![Part::Say(Role::System, MessageContent::Value(Value::unknown(message, at)))]
            }
        }
    }

    /// LangChain's executor of an agent that calls tools.
    fn executor(&self, kit: &mut Kit<'_>, object: &Object, name: String, scope: Scope) -> Agent {
        let head = object.span;
        py::report(object, EXECUTOR_KEYS, EXECUTOR_UNUSED, "an agent executor", kit.out);
        let whole = object.short() == "initialize_agent";
        let inner = field(object, Some(0), "agent")
            .and_then(|g| self.world.object_of(g.value))
            .map(|(_, o)| o)
            .filter(|_| !whole);
        let of = inner.unwrap_or(object);
        let model = match whole {
            true => field(object, Some(1), "llm"),
            false => field(of, Some(0), "llm"),
        };
        let tools = match whole {
            true => field(object, Some(0), "tools"),
            false => field(object, Some(1), "tools").or_else(|| field(of, Some(1), "tools")),
        };
        let tools = tools.map_or_else(Vec::new, |g| self.tool_items(g.value));
        let mut params = ModelParams { purpose: Some(name.as_str().into()), ..ModelParams::default() };
        match model.map(|g| (g, self.model(g.value))) {
            Some((_, Some(model))) => {
                params = self.params(kit, &super::model::Model { tools: Vec::new(), ..model }, &name)
            }
            Some((given, None)) => {
                py::model(self.world, Some(given), &mut params, kit);
            }
            None => {}
        }
        let mut parts = Vec::new();
        if let Some(prompt) = field(of, Some(2), "prompt").filter(|_| inner.is_some())
            && !self.prompt_parts(&scope, prompt.value, &super::prompt::Vars::Inputs, &mut parts, 0)
        {
            let message =
                format!("the instructions are not known: {}", self.world.unknown_reason(prompt.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message.clone(), prompt.at));
            parts.push(Part::Say(Role::System, MessageContent::Value(Value::unknown(message, prompt.at))));
        }
        if matches!(
            of.short(),
            "create_react_agent"
                | "initialize_agent"
                | "create_structured_chat_agent"
                | "create_json_chat_agent"
        ) {
            let message = "this agent speaks a protocol of its own in plain text; here it calls tools";
            kit.out.push(undecided(codes::NOT_COMPILED, message, head));
        }
        let default = defaults::bound(&defaults::LANGCHAIN_ITERATIONS, kit.versions);
        let mut bound = py::bound(self.world, field(object, None, "max_iterations"), default);
        bound.facts.bounded = Some(EXECUTOR_BOUND);
        let decls = self.tools(kit, &tools);
        let last = Last::Say("Agent stopped due to max iterations.");
        Agent::of(head, parts, params, tools, decls, bound, last)
    }

    /// An agent as a function of a text.
    pub fn agent_unit(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let agent = self.read_agent(kit, id);
        self.agent_term(kit, agent)
    }

    /// An agent that was read, as a function of a text.
    pub fn agent_term(&self, kit: &mut Kit<'_>, agent: Agent) -> TermId {
        let head = agent.head;
        let alone = agent.decls.is_empty() && agent.helpers.is_empty() && agent.after.is_none();
        if let (true, [] | [Part::Say(Role::System, _)]) = (alone, &agent.parts[..]) {
            let prompt = match agent.parts.first() {
                Some(Part::Say(_, said)) => self.said(kit, &agent.scope, said),
                _ => kit.text("", head),
            };
            return kit.b.add(Term::Llm(prompt, Arc::new(agent.params)), head);
        }
        let asks = agent.parts.iter().any(|p| matches!(p, Part::Say(Role::User, _)));
        let mut said = self.sends(kit, &agent.scope, &agent.parts);
        if !asks {
            let x = kit.b.var("x", head);
            said.push(("_".into(), kit.b.add(Term::Send(Role::User, x), head)));
        }
        let body = self.rounds_of(kit, agent);
        let body = kit.b.let_in(said, body, head);
        let body = kit.b.add(Term::Fresh(body), head);
        kit.b.abs("x", Some(Type::Str), body, head)
    }

    /// The loop of an agent in the conversation as it stands; gives the answer.
    pub(super) fn rounds_of(&self, kit: &mut Kit<'_>, agent: Agent) -> TermId {
        let Agent { head, mut params, decls, helpers, subagents, bound, last, after, tools, .. } = agent;
        let fix_at = bound.span.unwrap_or(head);
        let task = (!subagents.is_empty()).then(|| self.task_decl(&subagents, head));
        for decl in decls.iter().chain(helpers.iter().map(|(d, ..)| d)).chain(&task) {
            let id = kit.declared(decl.clone());
            params.tools.push(id);
        }
        let params = Arc::new(params);
        let recv = |kit: &mut Kit<'_>| kit.b.add(Term::Recv(Recv::Data(params.clone())), head);
        let answer = if decls.is_empty() && helpers.is_empty() {
            recv(kit)
        } else {
            let mut branches = Vec::new();
            for (i, decl) in decls.iter().enumerate() {
                let (o, at) = self.called(kit, decl);
                let shown = kit.b.var("o", at);
                let send = kit.b.add(Term::Send(Role::Tool, shown), at);
                let mut said = vec![("o".into(), o), ("_".into(), send)];
                let body = if self.returns_directly(tools.get(i)) {
                    // The calls beside it are carried out, too.
                    said.extend(calls::more(kit, &params, Vec::new(), at).map(|more| ("_".into(), more)));
                    let shown = kit.b.var("o", at);
                    let text = kit.b.add(Term::Prim(Prim::ToStr, vec![shown]), at);
                    kit.b.add(Term::Tag("final".into(), Some(text)), at)
                } else {
                    next(kit, &params, at)
                };
                let body = kit.b.let_in(said, body, at);
                branches.push(Branch { tag: decl.name.clone(), binder: Some("a".into()), body });
            }
            if task.is_some() {
                let more = next(kit, &params, head);
                branches.push(self.task_branch(kit, subagents, more, head));
            }
            for (decl, name, id) in &helpers {
                let more = next(kit, &params, decl.span);
                let body = self.helped(kit, name, *id, more, decl.span);
                branches.push(Branch { tag: decl.name.clone(), binder: None, body });
            }
            let a = kit.b.var("a", head);
            let done = kit.b.add(Term::Tag("final".into(), Some(a)), head);
            branches.push(Branch { tag: "final".into(), binder: Some("a".into()), body: done });
            let again = kit.b.add(Term::Tag("again".into(), None), head);
            let all = (head, head, head);
            let calls = calls::calls(kit, (*params).clone(), Vec::new(), branches, again, all);
            let a = kit.b.var("a", head);
            let done = kit.b.add(Term::Tag("final".into(), Some(a)), head);
            let (this, go) = (kit.b.var("self", head), kit.b.var("$go", head));
            let again = kit.b.app(this, go, head);
            let branches = vec![
                Branch { tag: "final".into(), binder: Some("a".into()), body: done },
                Branch { tag: "again".into(), binder: None, body: again },
            ];
            let step = kit.b.add(Term::Case { scrutinee: calls, branches, default: None }, head);
            let step = kit.b.abs("$go", None, step, head);
            let step = kit.b.abs("self", None, step, head);
            let fix = kit.fix(bound, step, fix_at);
            let again = kit.b.add(Term::Tag("again".into(), None), head);
            let ran = kit.b.app(fix, again, head);
            let a = kit.b.var("a", head);
            let over = self.used_up(kit, &last, &decls, &params, head, fix_at);
            let branches = vec![
                Branch { tag: "final".into(), binder: Some("a".into()), body: a },
                Branch { tag: "again".into(), binder: None, body: over },
            ];
            kit.b.add(Term::Case { scrutinee: ran, branches, default: None }, head)
        };
        let Some(ty) = after else { return answer };
        let form = ModelParams { result: Some(ty), tools: Vec::new(), ..(*params).clone() };
        let formed = kit.b.add(Term::Recv(Recv::Data(Arc::new(form))), head);
        kit.b.let_in(vec![("_".into(), answer)], formed, head)
    }

    /// Another agent answers in a copy of the conversation, then it goes on.
    fn helped(&self, kit: &mut Kit<'_>, name: &str, id: ObjectId, next: TermId, at: Span) -> TermId {
        let told = kit.text(&format!("Successfully transferred to {name}"), at);
        let told = kit.b.add(Term::Send(Role::Tool, told), at);
        let answer = match kit.open(name, self.world.object(id).span, at, 0) {
            Err(unknown) => unknown,
            Ok(()) => {
                let agent = self.read_agent(kit, id);
                let said = self.sends(kit, &agent.scope, &agent.parts);
                let body = self.rounds_of(kit, agent);
                kit.close();
                let body = kit.b.let_in(said, body, at);
                kit.b.add(Term::Fork(body), at)
            }
        };
        let r = kit.b.var("r", at);
        let said = kit.b.add(Term::Send(Role::Assistant, r), at);
        let bindings = vec![("_".into(), told), ("r".into(), answer), ("_".into(), said)];
        kit.b.let_in(bindings, next, at)
    }

    fn returns_directly(&self, tool: Option<&Value>) -> bool {
        let Some(tool) = tool else { return false };
        let direct = match py::function_of(tool) {
            Some(f) => py::decorator_arg(self.world, f, &["tool"], None, "return_direct"),
            None => {
                self.world.object_of(tool).and_then(|(_, o)| field(o, None, "return_direct")).map(|g| g.value)
            }
        };
        direct.is_some_and(|v| matches!(v.kind, PyKind::Bool(true)))
    }

    fn called(&self, kit: &mut Kit<'_>, decl: &ToolDecl) -> (TermId, Span) {
        let at = decl.span;
        let id = kit.declared(decl.clone());
        let tool = kit.b.add(Term::Tool(id), at);
        let a = kit.b.var("a", at);
        (kit.b.app(tool, a, at), at)
    }

    fn used_up(
        &self,
        kit: &mut Kit<'_>,
        last: &Last,
        decls: &[ToolDecl],
        params: &Arc<ModelParams>,
        at: Span,
        fix_at: Span,
    ) -> TermId {
        let fail = |kit: &mut Kit<'_>, message: &str| {
            let message = kit.text(message, fix_at);
            kit.b.add(Term::Fail(message), fix_at)
        };
        let recv = kit.b.add(Term::Recv(Recv::Data(params.clone())), at);
        match last {
            Last::Say(text) => kit.text(text, fix_at),
            Last::AskAndFail(message) => {
                let body = fail(kit, message);
                kit.b.let_in(vec![("_".into(), recv)], body, at)
            }
            Last::AskAndSay(text) => {
                let (a, text) = (kit.b.var("a", at), kit.text(text, fix_at));
                let branches = vec![Branch { tag: "final".into(), binder: Some("a".into()), body: a }];
                kit.b.add(Term::Case { scrutinee: recv, branches, default: Some(text) }, at)
            }
            Last::CallAndFail(message) => {
                let mut branches = Vec::new();
                for decl in decls {
                    let (o, place) = self.called(kit, decl);
                    let body = fail(kit, message);
                    let body = kit.b.let_in(vec![("_".into(), o)], body, place);
                    branches.push(Branch { tag: decl.name.clone(), binder: Some("a".into()), body });
                }
                let a = kit.b.var("a", at);
                branches.push(Branch { tag: "final".into(), binder: Some("a".into()), body: a });
                // Whoever else would be asked is not.
                let other = (params.tools.len() > decls.len()).then(|| fail(kit, message));
                kit.b.add(Term::Case { scrutinee: recv, branches, default: other }, at)
            }
        }
    }

    /// An agent or a graph as a node of a graph.
    pub(super) fn inner(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        inner: Inner,
        run: NodeRun<'_>,
    ) -> TermId {
        let NodeRun { name, state, mode, at } = run;
        match inner {
            Inner::Agent(id) => {
                let Some(key) = graph.plan.messages() else {
                    return kit.undecided(
                        codes::NOT_COMPILED,
                        "an agent in a graph whose state holds no messages".into(),
                        at,
                    );
                };
                if let Err(unknown) = kit.open(name, self.world.object(id).span, at, 0) {
                    return unknown;
                }
                let agent = self.read_agent(kit, id);
                let mut said = self.sends(kit, &agent.scope, &agent.parts);
                let answer = self.rounds_of(kit, agent);
                kit.close();
                let var: Name = kit.b.fresh("r");
                said.push((var.clone(), answer));
                let text = kit.b.var(var, at);
                let message = self.message_term(kit, Role::Assistant, text, at);
                let new = kit.b.add(Term::List(vec![message]), at);
                let body = match mode {
                    Mode::Beside => kit.b.add(Term::Record(vec![(key.into(), new)]), at),
                    Mode::Alone => {
                        let old = self.read(kit, &state.into(), key, at);
                        let all = kit.b.add(Term::Prim(Prim::Add, vec![old, new]), at);
                        let s = kit.b.var(state, at);
                        let s = kit.b.add(Term::With(s, key.into(), all), at);
                        self.no_reply(kit, graph, s, at)
                    }
                };
                let term = kit.b.let_in(said, body, at);
                if mode == Mode::Beside { kit.b.add(Term::Fork(term), at) } else { term }
            }
            Inner::Team(_) => kit.undecided(codes::NOT_COMPILED, "a team as a node of a graph".into(), at),
            Inner::Graph(id) => {
                let Some(plan) = self.plans.get(&id) else { return kit.unknown("a graph", at) };
                if let Err(unknown) = kit.open(name, plan.at, at, 0) {
                    return unknown;
                }
                let cx = self.graph(plan, graph.depth + 1);
                let mut fields = Vec::new();
                let mut said: Vec<(Name, TermId)> = Vec::new();
                for channel in &plan.channels {
                    let shared = graph.plan.channel(&channel.name).is_some();
                    let value = match shared {
                        true => self.read(kit, &state.into(), &channel.name, at),
                        false => kit.b.lit(channel.initial.clone(), at),
                    };
                    fields.push((Name::from(channel.name.as_str()), value));
                }
                self.first_fields(kit, &cx, &mut fields, at);
                // Its instructions are said where it begins.
                said.extend(self.hoisted(kit, &cx, plan.at));
                let first = self.first_state(kit, fields, at);
                said.push((STATE.into(), first));
                let limit = self.limit(&[], defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions));
                let last = self.steps(kit, &cx, limit, &Stops::default());
                kit.close();
                let sub = kit.b.let_in(said, last, at);
                let var: Name = kit.b.fresh("sub");
                let mut out = match mode {
                    Mode::Alone => kit.b.var(state, at),
                    Mode::Beside => kit.b.add(Term::Record(Vec::new()), at),
                };
                let mut record = Vec::new();
                for channel in plan.channels.iter().filter(|c| graph.plan.channel(&c.name).is_some()) {
                    let new = self.read(kit, &var, &channel.name, at);
                    match mode {
                        Mode::Alone => {
                            out = kit.b.add(Term::With(out, channel.name.as_str().into(), new), at)
                        }
                        Mode::Beside => record.push((Name::from(channel.name.as_str()), new)),
                    }
                }
                if mode == Mode::Beside {
                    out = kit.b.add(Term::Record(record), at);
                } else {
                    out = self.no_reply(kit, graph, out, at);
                }
                kit.b.let_in(vec![(var, sub)], out, at)
            }
        }
    }

    /// The fields that the state has beside its keys.
    pub fn first_fields(
        &self,
        kit: &mut Kit<'_>,
        graph: &Graph<'_>,
        fields: &mut Vec<(Name, TermId)>,
        at: Span,
    ) {
        if graph.replies {
            let nothing = kit.text("", at);
            fields.push((REPLY.into(), kit.b.add(Term::Tag("final".into(), Some(nothing)), at)));
        }
        let says =
            |n: &super::plan::Node| self.traced(&n.value).is_some_and(|t| self.commands(&t.trace.value));
        let commands = graph.plan.nodes.iter().any(|n| !n.ends.is_empty() || says(n));
        if commands {
            fields.push((super::node::GOTO.into(), kit.text("", at)));
        }
    }

    /// A state at its beginning. Its keys may be anything later; only a conversation stays one.
    pub fn first_state(&self, kit: &mut Kit<'_>, fields: Vec<(Name, TermId)>, at: Span) -> TermId {
        let stays = |(name, term): &(Name, TermId)| {
            name.starts_with('$') || matches!(kit.b.term(*term), Term::List(items) if !items.is_empty())
        };
        let open = !fields.iter().all(stays);
        let record = kit.b.add(Term::Record(fields), at);
        if open { kit.b.add(Term::Check("state".into(), Type::Dyn, record), at) } else { record }
    }

    /// The state, with nothing left to be called.
    fn no_reply(&self, kit: &mut Kit<'_>, graph: &Graph<'_>, state: TermId, at: Span) -> TermId {
        if !graph.replies {
            return state;
        }
        let nothing = kit.text("", at);
        let tag = kit.b.add(Term::Tag("final".into(), Some(nothing)), at);
        kit.b.add(Term::With(state, REPLY.into(), tag), at)
    }

    /// The instructions that all models of a graph share, said.
    pub fn hoisted(&self, kit: &mut Kit<'_>, graph: &Graph<'_>, at: Span) -> Option<(Name, TermId)> {
        let value = graph.hoisted.as_ref()?;
        let text = self.text(kit, &Scope::default(), value);
        let _ = at;
        let place = value.span;
        Some(("_".into(), kit.b.add(Term::Send(Role::System, text), place)))
    }

    /// `agent.invoke(…)` in a function: in a conversation of its own.
    pub fn run_inside(
        &self,
        kit: &mut Kit<'_>,
        scope: &Scope,
        id: ObjectId,
        arg: Option<&Value>,
        depth: usize,
        at: Span,
    ) -> (TermId, ReplyKind) {
        const MAX_DEPTH: usize = 12;
        let on = Value::new(PyKind::Object(id), at);
        let Some(inner) = self.inner_graph(&on).filter(|_| depth < MAX_DEPTH) else {
            return (
                kit.undecided(codes::NOT_COMPILED, "a run beyond the limit".into(), at),
                ReplyKind::Data,
            );
        };
        match inner {
            Inner::Agent(agent_id) => {
                let name = self.agent_name(agent_id).unwrap_or_else(|| "agent".into());
                if let Err(unknown) = kit.open(&name, self.world.object(agent_id).span, at, 0) {
                    return (unknown, ReplyKind::Text);
                }
                let agent = self.read_agent(kit, agent_id);
                let kind = if agent.after.is_some() || agent.params.result.is_some() {
                    ReplyKind::Data
                } else {
                    ReplyKind::Text
                };
                let parts = arg.map_or_else(Vec::new, |a| self.parts(scope, a));
                let mut said = self.sends(kit, &agent.scope, &agent.parts);
                let shared = parts.iter().any(Part::has_conversation);
                said.extend(self.sends(kit, scope, &parts));
                let body = self.rounds_of(kit, agent);
                kit.close();
                let body = kit.b.let_in(said, body, at);
                let term = if shared { Term::Fork(body) } else { Term::Fresh(body) };
                (kit.b.add(term, at), kind)
            }
            Inner::Team(_) => {
                (kit.undecided(codes::NOT_COMPILED, "a team that a node runs".into(), at), ReplyKind::Text)
            }
            Inner::Graph(graph_id) => {
                let Some(plan) = self.plans.get(&graph_id) else {
                    return (kit.unknown("a graph", at), ReplyKind::Data);
                };
                if let Err(unknown) = kit.open("graph", plan.at, at, 0) {
                    return (unknown, ReplyKind::Data);
                }
                let cx = self.graph(plan, depth);
                let whole = arg.is_some_and(|a| matches!(a.kind, PyKind::Object(s) if scope.state.as_ref().is_some_and(|(id, _)| *id == s)));
                let entries: Vec<(String, Value)> =
                    arg.and_then(|a| self.world.entries(a)).map_or_else(Vec::new, |e| {
                        e.iter().filter_map(|(k, v)| Some((k.as_str()?.to_string(), v.clone()))).collect()
                    });
                let mut said: Vec<(Name, TermId)> = self.hoisted(kit, &cx, at).into_iter().collect();
                let mut fields = Vec::new();
                for channel in &plan.channels {
                    let key: Name = channel.name.as_str().into();
                    let given = entries.iter().find(|(k, _)| *k == channel.name).map(|(_, v)| v);
                    let value = match (given, plan.messages() == Some(&channel.name), &scope.state) {
                        (Some(value), true, _) => {
                            let parts = self.parts(scope, value);
                            said.extend(self.sends(kit, scope, &parts));
                            self.messages_term(kit, scope, &parts, value.span)
                        }
                        (Some(value), false, _) => self.expr(kit, scope, value),
                        (None, _, Some((_, var))) if whole => self.read(kit, &var.clone(), &channel.name, at),
                        _ => kit.b.lit(channel.initial.clone(), at),
                    };
                    fields.push((key, value));
                }
                self.first_fields(kit, &cx, &mut fields, at);
                let first = self.first_state(kit, fields, at);
                said.push((STATE.into(), first));
                let limit = self.limit(
                    &self.runs_of(graph_id),
                    defaults::bound(&defaults::LANGGRAPH_STEPS, kit.versions),
                );
                let last = self.steps(kit, &cx, limit, &Stops::default());
                kit.close();
                let body = kit.b.let_in(said, last, at);
                (kit.b.add(Term::Fresh(body), at), ReplyKind::Data)
            }
        }
    }

    /// Messages as a list of records.
    pub fn messages_term(&self, kit: &mut Kit<'_>, scope: &Scope, parts: &[Part], at: Span) -> TermId {
        let mut items = Vec::new();
        for part in parts {
            match part {
                Part::Say(role, said) => {
                    let text = self.said(kit, scope, said);
                    items.push(self.message_term(kit, *role, text, at));
                }
                Part::Conversation => {}
                Part::Either(value, ..) | Part::Several(value) | Part::Other(value) => {
                    let text = self.expr(kit, scope, value);
                    items.push(self.message_term(kit, Role::User, text, at));
                }
            }
        }
        kit.b.add(Term::List(items), at)
    }

    /// Returns true if no node adds a system message to the state.
    fn adds_no_instructions(&self, plan: &Plan) -> bool {
        plan.nodes.iter().all(|node| {
            let Some(traced) = self.traced(&node.value) else {
                return self.inner_graph(&node.value).is_none();
            };
            traced.trace.objects.iter().all(|id| {
                let says = message_role(&self.world.object(*id).callee) == Some(Role::System);
                !says || !self.is_added(&traced.trace.value, *id)
            })
        })
    }

    /// Collects the facts about a whole graph that its nodes need.
    pub fn graph<'p>(&self, plan: &'p Plan, depth: usize) -> Graph<'p> {
        let mut graph = Graph {
            plan,
            has_conversation: false,
            replies: false,
            hoisted: None,
            uninstructed: self.adds_no_instructions(plan),
            tools: Vec::new(),
            names: Vec::new(),
            depth,
        };
        let mut prompts: Vec<Option<Value>> = Vec::new();
        let mut agents = false;
        for node in &plan.nodes {
            if self.inner_graph(&node.value).is_some() {
                graph.has_conversation |= plan.messages().is_some();
                agents = true;
                continue;
            }
            if let Some(chain) = self.chain(&node.value) {
                graph.has_conversation |= plan.messages().is_some();
                graph.replies |= !chain.model.tools.is_empty();
                graph.tools.extend(chain.model.tools);
                prompts.push(None);
                continue;
            }
            let Some(traced) = self.traced(&node.value) else { continue };
            let scope = self.scope(&graph, traced, STATE);
            for id in &traced.trace.objects {
                let object = self.world.object(*id);
                let Some((base, arg)) = self.asking(object) else { continue };
                let on = Value::new(PyKind::Object(base), object.span);
                let Some(chain) = self.chain(&on) else { continue };
                let parts = self.asked_with(&scope, &chain, *id, arg.map(|a| &a.value));
                if !chain.model.tools.is_empty() {
                    graph.replies = true;
                    graph.tools.extend(chain.model.tools.iter().cloned());
                }
                if parts.iter().any(Part::has_conversation) {
                    graph.has_conversation = true;
                    let middle = parts.iter().position(|p| matches!(p, Part::Conversation));
                    prompts.push(match &parts[..middle.unwrap_or(0)] {
                        [
                            Part::Say(
                                Role::System,
                                MessageContent::Value(value)
                                | MessageContent::Template(value, _)
                                | MessageContent::Computed(value, _),
                            ),
                        ] => Some(value.clone()),
                        _ => None,
                    });
                }
            }
        }
        // Instructions that are the same for all are said at the beginning.
        let first = prompts.first().cloned().flatten();
        if let (Some(first), false) = (first, agents) {
            let text = self.world.str(&first).map(str::to_string);
            let same = text.is_some()
                && prompts
                    .iter()
                    .all(|p| p.as_ref().and_then(|v| self.world.str(v)).map(str::to_string) == text);
            if same {
                graph.hoisted = Some(first);
            }
        }
        for tool in &graph.tools {
            if let Some(decl) = self.tool(tool)
                && !graph.names.contains(&decl.name)
            {
                graph.names.push(decl.name);
            }
        }
        graph
    }
}

/// Rounds of an agent of two nodes within a limit of steps, and what comes after them.
pub(super) fn rounds(limit: LoopBound, fails: bool) -> (LoopBound, Last) {
    let Bound::Finite(n) = limit.bound else { return (limit, Last::AskAndFail(String::new())) };
    let message = format!("Recursion limit of {n} reached without hitting a stop condition");
    let turns = n.saturating_sub(1) / 2;
    let last = match (n - 2 * turns, fails) {
        (0 | 1, _) => Last::AskAndFail(message),
        (_, true) => Last::CallAndFail(message),
        (_, false) => Last::AskAndSay("Sorry, need more steps to process this request."),
    };
    (LoopBound { bound: Bound::Finite(turns), ..limit }, last)
}

/// Returns the term after a call of an agent's loop.
fn next(kit: &mut Kit<'_>, params: &ModelParams, at: Span) -> TermId {
    let more = calls::more(kit, params, Vec::new(), at);
    more.unwrap_or_else(|| kit.b.add(Term::Tag("again".into(), None), at))
}
