//! Agents and workflows that Python makes with the Agent Framework.
//!
//! | source | term |
//! |---|---|
//! | `Agent(client, instructions, …)`, `ChatAgent(…)`, `client.as_agent(…)` | `llm p θ`; with tools a conversation |
//! | functions, `@tool` | a tool with the function's parameters, types and documentation |
//! | `agent.as_tool(…)` | an agent that is asked |
//! | `SequentialBuilder`, `ConcurrentBuilder` | one after the other; at the same time |
//! | `HandoffBuilder` | `handoff_to_name`: the other goes on in the same conversation |
//! | `GroupChatBuilder`, `MagenticBuilder` | turns; whoever orchestrates names who speaks |
//! | `WorkflowBuilder` | a graph; an executor that is code is a tool of its name, and conditions are unknown |
//!
//! Source: microsoft/agent-framework (commit 5eb3eb74): `python/packages/core/agent_framework/_agents.py`,
//! `_tools.py`, `_workflows/_workflow_builder.py`, `packages/orchestrations`.

use crate::defaults;
use crate::py::{self, Given, field};
use core_ir::{Approve, EffectClass, LabelSpec, ModelParams, Name, TermId, ToolDecl, ToolParam, Type};
use diagnostics::Span;
use frontend_kit::conversation::{CallEffect, Choice, Speaker, conversation};
use frontend_kit::emit::{LoopBound, Unused, clip, codes, undecided};
use frontend_kit::flow::{Flow, FlowNode};
use frontend_kit::kit::{Kit, Team, Turns, Units, plain};
use frontend_kit::outline::Ends;
use frontend_kit::project::{Compiled, File, Project, UnitKind};
use frontend_kit::shape::why;
use python::{Method, Object, ObjectId, PyKind, Value, World};
use std::collections::HashSet;

const PACKAGE: &str = "agent_framework";
const BUILDERS: &[&str] = &[
    "WorkflowBuilder",
    "SequentialBuilder",
    "ConcurrentBuilder",
    "HandoffBuilder",
    "GroupChatBuilder",
    "MagenticBuilder",
];
const AGENT_KEYS: &[&str] = &[
    "name",
    "instructions",
    "client",
    "chat_client",
    "tools",
    "default_options",
    "temperature",
    "max_tokens",
    "model",
    "model_id",
    "top_p",
];
const AGENT_UNUSED: &[Unused] = &[
    ("description", "it tells who chooses the next speaker what the agent is for"),
    ("id", why::SHOWN),
    ("middleware", why::CODE),
    ("context_providers", why::NOT_YET),
    ("context_provider", why::NOT_YET),
    ("chat_message_store_factory", why::RUNTIME),
    ("conversation_id", why::RUNTIME),
    ("compaction_strategy", "how much of the chat the model sees is not compiled yet"),
];
const SETTINGS: &[&str] = &["temperature", "max_tokens", "top_p", "seed", "reasoning_effort"];
/// Agents within one another at most.
const MAX_DEPTH: usize = 12;

pub(super) fn detect(file: &File) -> u8 {
    let makes = |name: &str| py::ends_with(name, &["Agent", "as_agent", "create_agent", "Builder"]);
    let module = file.python.as_ref().filter(|m| m.imports_family(&["agent_framework"]));
    if module.is_some_and(|m| m.makes(makes)) { 82 } else { 0 }
}

pub(super) fn lower(mut units: Units, project: &Project, file: &File) -> Compiled {
    py::evaluated(project, file, python::Limits::default(), None, |world, found| {
        units.compiled.diagnostics.extend(found);
        made(units, file, world)
    })
}

fn made(mut units: Units, file: &File, world: World<'_>) -> Compiled {
    let reader = BuilderReader { world: &world };
    let here = |id: ObjectId| py::made_here(&world, id, file);
    let builders: Vec<ObjectId> =
        world.objects().map(|(id, _)| id).filter(|id| here(*id) && reader.is_builder(*id)).collect();
    let mut used: HashSet<ObjectId> = HashSet::new();
    let mut places: HashSet<Span> = HashSet::new();
    for id in builders {
        used.extend(reader.parts(id));
        let span = world.object(id).span;
        if !places.insert(span) {
            continue;
        }
        let name = field(world.object(id), None, "name").and_then(|g| py::label(&world, g.value));
        let name = name.unwrap_or_else(|| "workflow".into());
        units.add(&name, UnitKind::Crew, span, |kit| reader.workflow(kit, id));
    }
    let agents: Vec<ObjectId> = world.objects().map(|(id, _)| id).filter(|id| reader.is_agent(*id)).collect();
    for id in &agents {
        used.extend(reader.parts(*id).into_iter().filter(|p| p != id));
    }
    for id in agents {
        if here(id) && !used.contains(&id) && places.insert(world.object(id).span) {
            let (name, span) = (reader.name(id), world.object(id).span);
            units.add(&name, UnitKind::Agent, span, |kit| reader.agent(kit, id, 0));
        }
    }
    let start = Span { file: file.id, start: 0, end: 0 };
    units.done(Some(start), "no agent and no workflow is made here")
}

struct BuilderReader<'r, 'w> {
    world: &'r World<'w>,
}

fn ours(object: &Object) -> bool {
    object.package().starts_with(PACKAGE)
}

impl<'r> BuilderReader<'r, '_> {
    fn is_builder(&self, id: ObjectId) -> bool {
        let object = self.world.object(id);
        ours(object) && object.base.is_none() && BUILDERS.contains(&object.short())
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        let object = self.world.object(id);
        if !ours(object) {
            return false;
        }
        match object.short() {
            "Agent" | "ChatAgent" | "RawAgent" => object.base.is_none(),
            // `client.as_agent(…)`, but not `workflow.as_agent()`.
            "create_agent" | "as_agent" => object.base.is_some_and(|b| {
                let client = self.world.object(b);
                client.base.is_none() && client.short().ends_with("Client")
            }),
            _ => false,
        }
    }

    fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'r>> {
        field(self.world.object(id), position, name).filter(|g| !g.value.is_none())
    }

    fn agent_of(&self, value: &Value) -> Option<ObjectId> {
        let (id, object) = self.world.object_of(value)?;
        match object.short() {
            "AgentExecutor" => field(object, Some(0), "agent").and_then(|g| self.agent_of(g.value)),
            _ => self.is_agent(id).then_some(id),
        }
    }

    fn name(&self, id: ObjectId) -> String {
        self.get(id, None, "name")
            .and_then(|g| py::label(self.world, g.value))
            .unwrap_or_else(|| "agent".into())
    }

    /// The agents that one asks, or that take part in a workflow.
    fn parts(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut out = Vec::new();
        let mut look = |value: &Value| match self.world.items(value) {
            Some(items) => {
                out.extend(items.iter().filter_map(|v| self.agent_of(v).or_else(|| self.asked(v))))
            }
            None => out.extend(self.agent_of(value).or_else(|| self.asked(value))),
        };
        let object = self.world.object(id);
        object.args.iter().for_each(|a| look(&a.value));
        for (_, call) in self.world.method_chain(id) {
            call.args.iter().for_each(|a| look(&a.value));
        }
        out
    }

    fn asked(&self, value: &Value) -> Option<ObjectId> {
        let (_, object) = self.world.object_of(value)?;
        object.base.filter(|b| object.short() == "as_tool" && self.is_agent(*b))
    }

    fn speaker(&self, kit: &mut Kit<'_>, id: ObjectId, copies: usize, depth: usize) -> Speaker {
        let object = self.world.object(id);
        py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        let head = object.span;
        let mut params =
            ModelParams { purpose: Some(self.name(id).as_str().into()), ..ModelParams::default() };
        let method = object.base.is_some();
        let client = match object.base {
            Some(client) => Some(self.world.object(client)),
            None => ["client", "chat_client"]
                .iter()
                .find_map(|k| self.get(id, Some(0), k))
                .and_then(|g| self.world.object_of(g.value))
                .map(|(_, o)| o),
        };
        let names = ["model", "model_id", "deployment_name", "model_deployment_name"];
        let own = names.iter().find_map(|k| self.get(id, None, k));
        let named = own.or_else(|| client.and_then(|c| names.iter().find_map(|k| field(c, None, k))));
        params.model = named.and_then(|g| self.world.str(g.value)).map(Name::from);
        if let Some(given) = named.filter(|g| params.model.is_none() && !g.value.is_none()) {
            let why = format!("the model is not known: {}", self.world.unknown_reason(given.value));
            kit.unknown_model(why, given.at);
        }
        for (key, given) in SETTINGS.iter().filter_map(|k| Some((*k, self.get(id, None, k)?))) {
            py::setting(self.world, key, given, &mut params, kit.out);
        }
        let options = self.get(id, None, "default_options").and_then(|g| self.world.entries(g.value));
        for (key, value) in options.unwrap_or(&[]) {
            match key.as_str() {
                Some("response_format") => {
                    params.result =
                        Some(py::type_of(self.world, value)).filter(|t| !matches!(t, Type::Null | Type::Dyn));
                }
                Some(key) if SETTINGS.contains(&key) => {
                    py::setting(self.world, key, Given { value, at: value.span }, &mut params, kit.out);
                }
                _ => {}
            }
        }
        let given = self.get(id, (!method).then_some(1), "instructions");
        let prompts = (0..copies.max(1))
            .map(|_| match given {
                Some(given) => py::text(kit, self.world, given.value, plain),
                None => kit.text("", head),
            })
            .collect();
        let choices = self.tools(kit, id, depth);
        let model_at = named.map_or(head, |g| g.at);
        Speaker { name: self.name(id), head, prompts, params, model_at, choices, choices_at: None }
    }

    /// `Str → Str`.
    fn agent(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> TermId {
        let head = self.world.object(id).span;
        let text = self.get(id, None, "instructions").map_or(0, |g| py::length(self.world, g.value));
        if let Err(unknown) = kit.open(&self.name(id), head, head, text) {
            return unknown;
        }
        let speaker = self.speaker(kit, id, 1, depth);
        let bound = defaults::bound(&defaults::MAF_CALLS, kit.versions);
        let term = conversation(kit, vec![speaker], bound, "too many rounds of function calls", head);
        kit.close();
        term
    }

    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> Vec<Choice> {
        let Some(given) = self.get(id, None, "tools") else { return Vec::new() };
        let one = [given.value.clone()];
        let listed = self.world.items(given.value).unwrap_or(&one);
        if let PyKind::List(list) = self.world.resolve_env(given.value).kind
            && let Some(at) = self.world.list(list).open
        {
            let message =
                format!("some of the tools are not known: {}", self.world.unknown_reason(given.value));
            kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        }
        let mut out = Vec::new();
        for value in listed {
            let at = value.span;
            if let Some(f) = py::function_of(value) {
                let name = py::decorator_arg(self.world, f, &["tool", "ai_function"], None, "name");
                let own = self.world.function(f).name.to_string();
                let name = name.and_then(|v| self.world.str(v)).map_or(own, str::to_string);
                let mut decl =
                    py::signature(self.world, f, &name, self.world.function(f).name_span, |_, _| false);
                let mode = py::decorator_arg(self.world, f, &["tool", "ai_function"], None, "approval_mode");
                if mode.and_then(|v| self.world.str(v)) == Some("always_require") {
                    decl.approve = Approve::Always;
                }
                out.push(Choice::new(decl, CallEffect::Call));
                continue;
            }
            let object = self.world.object_of(value).map(|(_, o)| o);
            let text =
                |key: &str| object.and_then(|o| field(o, None, key)).and_then(|g| self.world.str(g.value));
            if let Some(agent) = self.asked(value) {
                let name = text("name").map_or_else(|| self.name(agent), str::to_string);
                let mut decl = quiet(&identifier(&name), at);
                decl.description = text("description").map(Name::from);
                let arg = text("arg_name").unwrap_or("task");
                decl.params =
                    vec![ToolParam { name: arg.into(), ty: Type::Str, bound: LabelSpec::TOP, default: None }];
                let term = match depth < MAX_DEPTH {
                    true => self.agent(kit, agent, depth + 1),
                    false => kit.unknown("an agent beyond the limit", at),
                };
                out.push(Choice::new(decl, CallEffect::Ask(term)));
                continue;
            }
            // `client.get_web_search_tool()`, `HostedWebSearchTool()`, `MCPStdioTool(name="files")`
            let short = object.map(|o| o.short());
            let hosted = short.and_then(|s| s.strip_prefix("get_")).and_then(|s| s.strip_suffix("_tool"));
            let class = short.filter(|s| s.ends_with("Tool"));
            let name = text("name").or(hosted).or(class).map(str::to_string).or_else(|| py::outside(value));
            match name {
                Some(name) => out.push(Choice::new(ToolDecl::unknown(name.into(), at), CallEffect::Call)),
                None => {
                    let message = format!("a tool that is not known: {}", self.world.unknown_reason(value));
                    kit.out.push(undecided(codes::NOT_COMPILED, message, at));
                    let name = format!("unknown_{}", out.len() + 1);
                    out.push(Choice::new(ToolDecl::unknown(name.into(), at), CallEffect::Call));
                }
            }
        }
        out
    }

    fn workflow(&self, kit: &mut Kit<'_>, id: ObjectId) -> TermId {
        let object = self.world.object(id);
        let at = object.span;
        let calls = self.world.method_chain(id);
        match object.short() {
            "WorkflowBuilder" => self.graph(kit, object, &calls),
            "SequentialBuilder" => {
                let stages = self.members(kit, object, &calls);
                let stages = stages.into_iter().map(|(_, term)| term).collect();
                kit.sequence(stages, at)
            }
            "ConcurrentBuilder" => {
                let sides = self.members(kit, object, &calls);
                let sides = sides.into_iter().map(|(_, term)| term).collect();
                kit.together(sides, None, at)
            }
            "HandoffBuilder" => self.handoffs(kit, object, &calls),
            _ => self.group(kit, object, &calls),
        }
    }

    /// Returns the values that a builder gets under a key or through a method.
    fn given(&self, object: &'r Object, calls: &[(&'r Method, &'r Object)], keys: &[&str]) -> Vec<Value> {
        let mut out = Vec::new();
        let mut add = |value: &Value| match (self.world.items(value), self.world.entries(value)) {
            (Some(items), _) => out.extend(items.iter().cloned()),
            (_, Some(entries)) => out.extend(entries.iter().map(|(_, v)| v.clone())),
            _ => out.push(value.clone()),
        };
        keys.iter().filter_map(|k| field(object, None, k)).for_each(|g| add(g.value));
        for (_, call) in calls.iter().filter(|(m, _)| keys.contains(&&*m.name)) {
            call.args.iter().for_each(|a| add(&a.value));
        }
        out
    }

    /// The participants, each with what it does.
    fn members(
        &self,
        kit: &mut Kit<'_>,
        object: &'r Object,
        calls: &[(&'r Method, &'r Object)],
    ) -> Vec<(String, TermId)> {
        let mut out = Vec::new();
        for value in self.given(object, calls, &["participants", "register_participants"]) {
            let node = self.node(&value);
            let term = self.does(kit, &value);
            out.push((node.unwrap_or_else(|| format!("unknown_{}", out.len() + 1)), term));
        }
        if out.is_empty() {
            kit.out.push(undecided(codes::NOT_COMPILED, "who takes part is not known", object.span));
        }
        out
    }

    /// Returns the name of a participant or executor.
    fn node(&self, value: &Value) -> Option<String> {
        if let Some(name) = self.world.str(value) {
            return Some(name.to_string());
        }
        if let Some(f) = py::function_of(value) {
            return Some(self.world.function(f).name.to_string());
        }
        let (id, object) = self.world.object_of(value)?;
        let own = ["id", "executor_id", "name"].iter().find_map(|k| field(object, None, k));
        let own = own.and_then(|g| py::label(self.world, g.value));
        let agent = self.agent_of(value).map(|a| self.name(a));
        let class = object.class.map(|c| self.world.class(c).name.to_string());
        own.or(agent).or(class).or_else(|| Some(format!("{}_{id:?}", object.short())))
    }

    /// `Str → Str`: an agent, or code.
    fn does(&self, kit: &mut Kit<'_>, value: &Value) -> TermId {
        let at = value.span;
        if let Some(agent) = self.agent_of(value) {
            return self.agent(kit, agent, 0);
        }
        match self.node(value) {
            Some(name) => {
                let x = kit.b.var("x", at);
                let said = frontend_kit::flow::by_tool(kit, &name, x, at);
                kit.b.abs("x", Some(Type::Str), said, at)
            }
            None => {
                let why = format!("who takes part: {}", self.world.unknown_reason(value));
                kit.undecided(codes::NOT_COMPILED, why, at)
            }
        }
    }

    fn graph(&self, kit: &mut Kit<'_>, object: &'r Object, calls: &[(&'r Method, &'r Object)]) -> TermId {
        let at = object.span;
        let mut values: Vec<(String, Value)> = Vec::new();
        let mut edges: Vec<(String, String, Option<String>)> = Vec::new();
        let mut node = |value: &Value| {
            let name = self.node(value)?;
            if !values.iter().any(|(n, _)| *n == name) {
                values.push((name.clone(), value.clone()));
            }
            Some(name)
        };
        let mut start = field(object, None, "start_executor").and_then(|g| node(g.value));
        let mut lost = Vec::new();
        for (method, call) in calls {
            let arg = |i: usize, name: &str| field(call, Some(i), name).filter(|g| !g.value.is_none());
            let list = |g: Option<Given<'r>>| g.and_then(|g| self.world.items(g.value)).unwrap_or(&[]);
            match &*method.name {
                "set_start_executor" => start = arg(0, "executor").and_then(|g| node(g.value)),
                "add_edge" => {
                    let ends = (arg(0, "source"), arg(1, "target"));
                    let (Some(from), Some(to)) = ends else { continue };
                    let (Some(from), Some(to)) = (node(from.value), node(to.value)) else {
                        lost.push(call.span);
                        continue;
                    };
                    let when = arg(2, "condition").map(|_| format!("to {to}"));
                    edges.push((from, to, when));
                }
                "add_chain" => {
                    let names: Vec<String> = list(arg(0, "executors")).iter().filter_map(&mut node).collect();
                    let pairs = names.windows(2).map(|w| (w[0].clone(), w[1].clone(), None));
                    edges.extend(pairs);
                }
                "add_fan_out_edges" | "add_multi_selection_edge_group" => {
                    let Some(from) = arg(0, "source").and_then(|g| node(g.value)) else { continue };
                    let chosen = &*method.name != "add_fan_out_edges";
                    for to in list(arg(1, "targets")) {
                        let Some(to) = node(to) else { continue };
                        let when = chosen.then(|| format!("to {to}"));
                        edges.push((from.clone(), to, when));
                    }
                }
                "add_fan_in_edges" => {
                    let Some(to) = arg(1, "target").and_then(|g| node(g.value)) else { continue };
                    for from in list(arg(0, "sources")) {
                        edges.extend(node(from).map(|from| (from, to.clone(), None)));
                    }
                }
                "add_switch_case_edge_group" => {
                    let Some(from) = arg(0, "source").and_then(|g| node(g.value)) else { continue };
                    for case in list(arg(1, "cases")) {
                        let Some((_, case)) = self.world.object_of(case) else { continue };
                        let default = case.short() == "Default";
                        let to =
                            field(case, Some(usize::from(!default)), "target").and_then(|g| node(g.value));
                        let Some(to) = to else { continue };
                        let when = (!default).then(|| format!("to {to}"));
                        edges.push((from.clone(), to, when));
                    }
                }
                _ => {}
            }
        }
        for span in lost {
            kit.out.push(undecided(codes::NOT_COMPILED, "what an edge joins", span));
        }
        // Code in a cycle sends a message on or does not: that is how such a cycle ends.
        let code: HashSet<String> = values
            .iter()
            .filter(|(n, v)| self.agent_of(v).is_none() && in_cycle(n, &edges))
            .map(|(n, _)| n.clone())
            .collect();
        for (from, to, when) in &mut edges {
            if when.is_none() && code.contains(from) {
                *when = Some(format!("to {to}"));
            }
        }
        // `register_agent(make, name="writer")`: nodes are named before they are made.
        let decides: HashSet<&String> = edges.iter().filter(|(.., w)| w.is_some()).map(|(f, ..)| f).collect();
        let mut nodes = Vec::new();
        for (name, value) in &values {
            let term = self.does(kit, value);
            let place = value.span;
            let mut term = Some(term);
            let run = move |kit: &mut Kit<'_>, x: TermId| match term.take() {
                Some(function) => kit.b.app(function, x, place),
                None => kit.unknown("the same executor again", place),
            };
            let node = FlowNode::new(name.as_str(), name.as_str(), place, run);
            nodes.push(match decides.contains(name) {
                true => node.undecided(format!("where {} leads, which code decides", clip(name))),
                false => node,
            });
        }
        let given = field(object, None, "max_iterations");
        let default = defaults::bound(&defaults::MAF_STEPS, kit.versions);
        let mut bound = py::bound(self.world, given, default);
        if bound.span.is_none() {
            bound.facts.ends = Some(Ends::ByExecutors);
        }
        Flow { nodes, edges, start: start.into_iter().collect(), triggers: false, bound, at }.lower(kit)
    }

    fn handoffs(&self, kit: &mut Kit<'_>, object: &'r Object, calls: &[(&'r Method, &'r Object)]) -> TermId {
        let at = object.span;
        let all = self.given(object, calls, &["participants"]);
        let mut agents: Vec<ObjectId> = all.iter().filter_map(|v| self.agent_of(v)).collect();
        let mut seen = HashSet::new();
        agents.retain(|a| seen.insert(*a));
        let start = self.given(object, calls, &["with_start_agent", "set_coordinator"]);
        if let Some(first) = start.first().and_then(|v| self.agent_of(v)) {
            agents.retain(|a| *a != first);
            agents.insert(0, first);
        }
        let mut over: Vec<(ObjectId, ObjectId)> = Vec::new();
        for (_, call) in calls.iter().filter(|(m, _)| &*m.name == "add_handoff") {
            let from = field(call, Some(0), "source").and_then(|g| self.agent_of(g.value));
            let Some(to) = field(call, Some(1), "targets") else { continue };
            let to = self.world.items(to.value).map_or_else(|| vec![to.value.clone()], <[Value]>::to_vec);
            for to in to.iter().filter_map(|v| self.agent_of(v)) {
                over.extend(from.map(|from| (from, to)));
            }
        }
        // Where nothing is said, a coordinator may hand off to everybody, and else everybody may to
        // everybody.
        if over.is_empty() {
            let coordinated = calls.iter().any(|(m, _)| &*m.name == "set_coordinator");
            for a in agents.iter().take(if coordinated { 1 } else { agents.len() }) {
                over.extend(agents.iter().filter(|b| *b != a).map(|b| (*a, *b)));
            }
        }
        if agents.is_empty() || agents.len() > 60 {
            return kit.undecided(codes::NOT_COMPILED, "who takes part in the handoffs".into(), at);
        }
        let mut speakers = Vec::new();
        for (i, id) in agents.iter().enumerate() {
            let copies = over.iter().filter(|(_, to)| to == id).count() + usize::from(i == 0);
            let span = self.world.object(*id).span;
            let opened = kit.open(&self.name(*id), span, span, 0).is_ok();
            let mut speaker = self.speaker(kit, *id, copies, 0);
            if opened {
                kit.close();
            }
            for (_, to) in over.iter().filter(|(from, _)| from == id) {
                let Some(index) = agents.iter().position(|a| a == to) else { continue };
                let name = self.name(*to);
                let mut decl = quiet(&identifier(&format!("handoff_to_{name}")), span);
                decl.description = Some(format!("Handoff to the {name} agent.").into());
                let said = format!("{{\"handoff_to\": \"{name}\"}}");
                speaker.choices.push(Choice::new(decl, CallEffect::Switch(index, said)));
            }
            speakers.push(speaker);
        }
        let mut bound = LoopBound::none("the framework sets no limit of handoffs");
        bound.facts.bounded = Some(HANDOFF_BOUND);
        // Without a way back, an agent answers after a few handoffs, and the user is asked.
        let edges: Vec<_> = over.iter().map(|(a, b)| (format!("{a:?}"), format!("{b:?}"), None)).collect();
        bound.facts.stopped = !edges.iter().any(|(from, ..)| in_cycle(from, &edges));
        conversation(kit, speakers, bound, "too many replies", at)
    }

    fn group(&self, kit: &mut Kit<'_>, object: &'r Object, calls: &[(&'r Method, &'r Object)]) -> TermId {
        let at = object.span;
        let members = self.members(kit, object, calls);
        let keys = [
            "orchestrator_agent",
            "manager_agent",
            "set_manager",
            "with_manager",
            "set_prompt_based_manager",
        ];
        let manager = self.given(object, calls, &keys).iter().find_map(|v| self.agent_of(v));
        // A model that orchestrates says when it is done, too.
        let says = manager.is_some() || object.short() == "MagenticBuilder";
        let oracle = match manager {
            Some(agent) => self.agent(kit, agent, 0),
            None => kit.undecided(codes::NOT_COMPILED, "who speaks next, which code decides".into(), at),
        };
        let stops = self.given(object, calls, &["termination_condition", "with_termination_condition"]);
        let decided = stops.first().map(|v| v.span).or(says.then_some(at));
        let rounds = ["max_rounds", "max_round_count", "with_max_rounds"];
        let rounds = self.given(object, calls, &rounds).into_iter().next();
        let default = LoopBound::none("the framework sets no limit of rounds");
        let bound = py::bound(self.world, rounds.as_ref().map(|v| Given { value: v, at: v.span }), default);
        kit.team(Team {
            members,
            turns: Turns::Chosen(oracle),
            stops: Vec::new(),
            decided,
            ends: false,
            bound,
            at,
        })
    }
}

/// Advice for the bound of handoffs.
const HANDOFF_BOUND: &str = "end it: `with_termination_condition(…)` of the builder";

/// Returns true if a node is in a cycle.
fn in_cycle(name: &str, edges: &[(String, String, Option<String>)]) -> bool {
    let mut seen: HashSet<&str> = HashSet::new();
    let mut todo = vec![name];
    while let Some(at) = todo.pop() {
        for (_, to, _) in edges.iter().filter(|(from, ..)| from == at) {
            if to == name {
                return true;
            }
            if seen.insert(to) {
                todo.push(to);
            }
        }
    }
    false
}

/// The declaration of something that only the program sees.
fn quiet(name: &str, at: Span) -> ToolDecl {
    let mut decl = ToolDecl::unknown(name.into(), at);
    decl.params = Vec::new();
    decl.result = Type::Str;
    decl.effect = EffectClass::Pure;
    decl.control = LabelSpec::TOP;
    decl.label = LabelSpec::BOTTOM;
    decl
}

/// A name that models may call.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
