//! Agents and teams that Python makes with `autogen-agentchat`.
//!
//! Source: microsoft/autogen 0.7.5: `autogen_agentchat/agents`, `teams/_group_chat`, `conditions`,
//! `base/_handoff.py`, `tools`.

use super::component::{asks, default_description, is_team};
use super::magentic;
use super::message_test::{OneText, condition};
use super::model::{
    Assistant, Graph, GraphEdge, Handoff, Member, MemberKind, Orchestrator, Place, Selector, SocietyOfMind,
    SpeakerSelection, Team, Termination, ToolUse, When, Words,
};
use super::selector;
use super::{AGENT_UNUSED, ASSISTANT, DEFAULT_PROMPT, INSTRUCTION, RESPONSE, TEAM_UNUSED};
use crate::defaults;
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Given, field};
use core_ir::{Bound, Data, ModelParams, Name, ToolDecl, Type};
use diagnostics::{Diagnostic, Span};
use frontend_kit::emit::{LoopBound, Unused, clip, codes, undecided};
use frontend_kit::kit::Kit;
use python::{Object, ObjectId, Piece, PyKind, Value, World};
use std::collections::HashSet;

/// Packages of this generation of AutoGen.
pub(super) const PACKAGES: &[&str] = &["autogen_agentchat", "autogen_ext", "autogen_core"];

/// Members, tools and conditions within one another at most.
const MAX_DEPTH: usize = 12;

/// Parameters of model clients that say how a model is asked.
pub(super) const SETTINGS: &[&str] = &[
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "seed",
    "stop",
    "reasoning_effort",
];

/// Agents whose conversation the provider keeps.
const HOSTED: &[&str] = &["OpenAIAgent", "OpenAIAssistantAgent", "AzureAIAgent"];
const HOSTED_KEYS: &[&str] =
    &["name", "description", "instructions", "model", "deployment_name", "tools", "temperature"];
const HOSTED_UNUSED: &[Unused] = &[
    ("client", frontend_kit::shape::why::RUNTIME),
    ("project_client", frontend_kit::shape::why::RUNTIME),
    ("store", frontend_kit::shape::why::RUNTIME),
    ("assistant_id", frontend_kit::shape::why::RUNTIME),
    ("thread_id", frontend_kit::shape::why::RUNTIME),
    ("metadata", frontend_kit::shape::why::SHOWN),
];

const USER_UNUSED: &[Unused] = &[("input_func", frontend_kit::shape::why::CODE)];

pub(super) struct AgentChatReader<'r, 'w> {
    pub world: &'r World<'w>,
}

/// A text as far as it is known.
pub(super) fn words(world: &World<'_>, given: Given<'_>) -> Words {
    let at = given.value.span;
    let pieces = match world.text_of(given.value) {
        None => vec![Err(world.unknown_reason(given.value).to_string())],
        Some(pieces) => pieces
            .into_iter()
            .map(|p| match p {
                Piece::Text(t) => Ok(t.to_string()),
                Piece::Hole(_, written) => Err(written.to_string()),
            })
            .collect(),
    };
    Words { pieces, at, is_default: given.value.is_default }
}

/// Returns the value of a flag, if it is known.
pub(super) fn flag(world: &World<'_>, given: Option<Given<'_>>) -> Option<bool> {
    match world.resolve_env(given?.value).kind {
        PyKind::Bool(b) => Some(b),
        _ => None,
    }
}

impl<'r> AgentChatReader<'r, '_> {
    fn is_of(&self, object: &Object) -> bool {
        PACKAGES.contains(&object.package()) && object.base.is_none()
    }

    /// The class of AutoGen that an object is of, or derives from.
    pub fn class(&self, id: ObjectId) -> Option<String> {
        let object = self.world.object(id);
        if self.is_of(object) {
            return Some(object.short().to_string());
        }
        let found = std::cell::RefCell::new(None);
        self.world.derives(object.class?, |name| {
            let ours = PACKAGES.iter().any(|p| name.split('.').next() == Some(*p));
            if ours {
                *found.borrow_mut() = name.rsplit('.').next().map(str::to_string);
            }
            ours
        });
        found.into_inner()
    }

    /// Returns true for an agent or a team that can be given a task.
    pub fn runs(&self, id: ObjectId) -> bool {
        self.class(id).is_some_and(|c| {
            is_team(&c)
                || (["Agent", "Surfer", "Coder"].iter().any(|end| c.ends_with(end)) && c != "RoutedAgent")
        })
    }

    pub(super) fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'r>> {
        field(self.world.object(id), position, name).filter(|g| !g.value.is_none())
    }

    /// The agent or team that a value is.
    pub fn who(&self, value: &Value) -> Option<ObjectId> {
        let (id, _) = self.world.object_of(value)?;
        self.runs(id).then_some(id)
    }

    pub fn name(&self, id: ObjectId) -> String {
        let team = self.class(id).is_some_and(|c| is_team(&c));
        let given = self.get(id, (!team).then_some(0), "name");
        let class = self.world.object(id).class.map(|c| self.world.class(c).name.to_string());
        given
            .and_then(|g| py::label(self.world, g.value))
            .or(class)
            .unwrap_or_else(|| if team { "team".into() } else { "agent".into() })
    }

    /// Returns the place of an agent's definition. Agents that one function makes are told apart by the place
    /// of their names.
    pub fn place(&self, id: ObjectId) -> Span {
        let span = self.world.object(id).span;
        let alone = self.world.objects().filter(|(_, o)| o.span == span).take(2).count() < 2;
        let name = self.get(id, Some(0), "name").filter(|g| !alone && g.value.as_str().is_some());
        name.map_or(span, |g| g.value.span)
    }

    /// Those that take part in what one does.
    pub fn parts(&self, id: ObjectId) -> Vec<ObjectId> {
        let lists = [("participants", Some(0)), ("tools", None)];
        let listed = lists.iter().filter_map(|(key, at)| {
            let team = self.class(id).is_some_and(|c| is_team(&c));
            self.get(id, at.filter(|_| team), key)
        });
        let mut out: Vec<ObjectId> = Vec::new();
        let mut values: Vec<Value> =
            listed.filter_map(|g| self.world.items(g.value)).flatten().cloned().collect();
        values.extend(self.nodes_of(self.get(id, Some(0), "participants")).unwrap_or_default());
        for value in &values {
            let Some((inner, object)) = self.world.object_of(value) else { continue };
            let inside = ["agent", "team"].iter().find_map(|k| field(object, Some(0), k));
            out.extend(match object.short() {
                "AgentTool" | "TeamTool" => inside.and_then(|g| self.who(g.value)),
                _ => self.runs(inner).then_some(inner),
            });
        }
        for key in ["team", "wrapped_agent"] {
            out.extend(self.get(id, None, key).and_then(|g| self.who(g.value)));
        }
        out
    }

    /// `builder.get_participants()`: what was added to the builder of a graph.
    fn nodes_of(&self, given: Option<Given<'_>>) -> Option<Vec<Value>> {
        let (_, object) = self.world.object_of(given?.value)?;
        let builder = object.base.filter(|_| object.short() == "get_participants")?;
        let added = self.world.method_chain(builder).into_iter().filter(|(m, _)| &*m.name == "add_node");
        Some(added.filter_map(|(_, call)| Some(field(call, Some(0), "agent")?.value.clone())).collect())
    }

    /// The calls that give a task to what is defined at a place.
    pub fn tasks(&self, place: Span) -> Vec<ObjectId> {
        const TASKS: &[&str] = &["on_messages", "on_messages_stream", "run", "run_stream"];
        let given = |o: &Object| {
            TASKS.contains(&o.short()) && o.base.is_some_and(|b| self.runs(b) && self.place(b) == place)
        };
        self.world.objects().filter(|(_, o)| given(o)).map(|(id, _)| id).collect()
    }

    /// Reason for model calls beside the turns of an agent or a team: functions that it or its members are
    /// given, or by what the class of a member does.
    pub fn beside(&self, asks: &ModelRequests<'_, '_>, id: ObjectId) -> Option<Uncounted> {
        /// Agents whose requests are all compiled.
        const COMPILED: &[&str] = &[
            "AssistantAgent",
            "BaseChatAgent",
            "MagenticOneCoderAgent",
            "MessageFilterAgent",
            "OpenAIAgent",
            "SocietyOfMindAgent",
            "UserProxyAgent",
        ];
        let mut all = vec![id];
        let mut at = 0;
        while let Some(id) = all.get(at).copied() {
            at += 1;
            let parts: Vec<ObjectId> = self.parts(id).into_iter().filter(|p| !all.contains(p)).collect();
            all.extend(parts);
        }
        all.iter().find_map(|id| {
            let object = self.world.object(*id);
            let class = self.class(*id).unwrap_or_default();
            let asks_itself = !is_team(&class) && !COMPILED.contains(&&*class);
            if asks_itself && self.get(*id, None, "model_client").is_some() {
                let why = format!("model calls of `{}` outside its turns are not compiled", clip(&class));
                return Some((why, object.span));
            }
            let own = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
            let args = object.args.iter().map(|a| &a.value).chain(object.attrs.iter().map(|(_, v)| v));
            asks.beside(args.chain(&own), &|id| self.runs(id))
        })
    }

    fn list(&self, kit: &mut Kit<'_>, given: Option<Given<'_>>, what: &str) -> Vec<Value> {
        let Some(given) = given else { return Vec::new() };
        let open = match self.world.resolve_env(given.value).kind {
            PyKind::List(list) => self.world.list(list).open,
            _ => Some(given.at),
        };
        if let Some(at) = open {
            let message =
                format!("some of the {what} are not known: {}", self.world.unknown_reason(given.value));
            kit.left_out(message, at);
        }
        match what {
            "tools" => py::tool_list(self.world, given.value),
            _ => self.world.items(given.value).map_or(Vec::new(), <[Value]>::to_vec),
        }
    }

    /// An agent or a team.
    pub fn member(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> Member {
        let object = self.world.object(id);
        let head = object.span;
        let class = self.class(id).unwrap_or_default();
        let kind = match &*class {
            _ if depth > MAX_DEPTH || !kit.budget.take(0, head, kit.out) => {
                MemberKind::Unknown("an agent beyond the limit".into())
            }
            of if is_team(of) => MemberKind::Team(Box::new(self.team(kit, id, of, depth))),
            "AssistantAgent" => MemberKind::Assistant(Box::new(self.assistant(kit, id, depth))),
            "UserProxyAgent" => {
                py::report(object, &["name", "description"], USER_UNUSED, "a user", kit.out);
                kit.outline.person(head, false);
                MemberKind::Outside
            }
            "CodeExecutorAgent" if self.get(id, None, "model_client").is_none() => MemberKind::Outside,
            "SocietyOfMindAgent" => self.society_of_mind(kit, id, depth),
            "MessageFilterAgent" => {
                match self.get(id, Some(1), "wrapped_agent").and_then(|g| self.who(g.value)) {
                    Some(inner) => {
                        let message = "the message filter is not compiled: all messages are seen";
                        kit.out.push(undecided(codes::NOT_COMPILED, message, head));
                        self.member(kit, inner, depth + 1).kind
                    }
                    None => MemberKind::Unknown("the agent behind a filter".into()),
                }
            }
            of if object.class.is_none() && self.get(id, Some(1), "model_client").is_some() => {
                let why = format!("what `{}` adds to an assistant is not compiled", clip(of));
                kit.out.push(Diagnostic::info(codes::NOT_COMPILED, why, head));
                MemberKind::Assistant(Box::new(self.assistant(kit, id, depth)))
            }
            of if HOSTED.contains(&of) => MemberKind::Assistant(Box::new(self.hosted(kit, id))),
            // Code is carried out elsewhere, by the agent's name.
            "BaseChatAgent" => {
                let message = "what this agent does is code: a tool of its name";
                kit.out.push(Diagnostic::info(codes::NOT_COMPILED, message, head));
                MemberKind::Outside
            }
            of => MemberKind::Unknown(format!("what an agent of the class `{}` does", clip(of))),
        };
        let description = self.get(id, None, "description").map(|g| words(self.world, g));
        let description = description.unwrap_or_else(|| Words::of(default_description(&class), head));
        Member { name: self.name(id), description, place: self.place(id), head, kind }
    }

    fn model(&self, kit: &mut Kit<'_>, given: Option<Given<'_>>) -> (ModelParams, Option<Span>) {
        let mut params = ModelParams::default();
        let at = model(self.world, given, &mut params, kit);
        (params, at)
    }

    /// Returns true if a client passes prompts as system messages, as OpenAI's clients do.
    fn speaks_openai(&self, given: Option<Given<'_>>) -> bool {
        let Some((_, client)) = given.and_then(|g| self.world.object_of(g.value)) else { return true };
        let info = field(client, None, "model_info").and_then(|g| self.world.entries(g.value));
        let family = info.and_then(|e| e.iter().find(|(k, _)| k.as_str() == Some("family")));
        let known = match family.map(|(_, v)| (self.world.str(v), self.world.name_of(v))) {
            None => true,
            Some((Some(text), _)) => super::is_openai(text),
            // `ModelFamily.GPT_4O`
            Some((None, name)) => name.is_some_and(|n| {
                let last = n.rsplit('.').next().unwrap_or("").to_lowercase().replace('_', "-");
                super::is_openai(&last)
            }),
        };
        client.short().contains("OpenAI") && known
    }

    fn assistant(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> Assistant {
        let object = self.world.object(id);
        let head = object.span;
        py::report(object, ASSISTANT, AGENT_UNUSED, "an assistant", kit.out);
        let system = match field(object, None, "system_message") {
            Some(given) if given.value.is_none() => None,
            Some(given) => Some(words(self.world, given)),
            None => Some(Words::of(DEFAULT_PROMPT, head)),
        };
        let (mut params, model_at) = self.model(kit, self.get(id, Some(1), "model_client"));
        params.purpose = Some(self.name(id).as_str().into());
        let typed = self.get(id, None, "output_content_type");
        params.result = typed.map(|g| py::type_of(self.world, g.value)).filter(|t| !matches!(t, Type::Null));
        let default = defaults::bound(&defaults::AUTOGEN_TOOLS, kit.versions);
        let bound = py::bound(self.world, self.get(id, None, "max_tool_iterations"), default);
        let reflect = self.get(id, None, "reflect_on_tool_use");
        let summary = self.get(id, None, "tool_call_summary_format");
        if let Some(given) = self.get(id, None, "tool_call_summary_formatter") {
            let message = "how the results of tools are told is code";
            kit.out.push(undecided(codes::NOT_COMPILED, message, given.at));
        }
        Assistant {
            system,
            model_at,
            tools: self.tools(kit, id, depth),
            handoffs: self.handoffs(kit, id),
            bound,
            reflect: flag(self.world, reflect).unwrap_or(typed.is_some()),
            summary: summary.and_then(|g| self.world.str(g.value)).map(str::to_string),
            result: params.result.clone(),
            params,
        }
    }

    /// An agent whose conversation the provider keeps.
    fn hosted(&self, kit: &mut Kit<'_>, id: ObjectId) -> Assistant {
        let object = self.world.object(id);
        py::report(object, HOSTED_KEYS, HOSTED_UNUSED, "an agent", kit.out);
        let mut params =
            ModelParams { purpose: Some(self.name(id).as_str().into()), ..ModelParams::default() };
        let given = ["model", "deployment_name"].iter().find_map(|k| self.get(id, None, k));
        let model_at = py::model(self.world, given, &mut params, kit);
        for (key, given) in SETTINGS.iter().filter_map(|k| Some((*k, self.get(id, None, k)?))) {
            py::setting(self.world, key, given, &mut params, kit.out);
        }
        let mut tools = Vec::new();
        for value in self.list(kit, self.get(id, None, "tools"), "tools") {
            let hosted = self.world.str(&value).map(|n| ToolDecl::unknown(n.into(), value.span));
            match hosted.map(|decl| ToolUse { decl, ask: None }).or_else(|| self.tool(kit, &value, MAX_DEPTH))
            {
                Some(tool) => tools.push(tool),
                None => {
                    py::unknown_tool(kit, self.world, &value);
                }
            }
        }
        let system = self.get(id, None, "instructions").map(|g| words(self.world, g));
        Assistant {
            system,
            params,
            model_at,
            tools,
            handoffs: Vec::new(),
            bound: LoopBound::unknown("the provider ends the calls of tools"),
            reflect: true,
            summary: None,
            result: None,
        }
    }

    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> Vec<ToolUse> {
        let mut out: Vec<ToolUse> = Vec::new();
        for value in self.list(kit, self.get(id, None, "tools"), "tools") {
            let at = value.span;
            if value.maybe && !py::is_rest(&value) {
                let message = "the agent may not have this tool; it is assumed to have it";
                kit.out.push(undecided(codes::NOT_COMPILED, message, at));
            }
            match self.tool(kit, &value, depth) {
                Some(tool) => out.push(tool),
                None => {
                    py::unknown_tool(kit, self.world, &value);
                    let name = py::outside(&value).unwrap_or_else(|| format!("unknown_{}", out.len() + 1));
                    out.push(ToolUse { decl: ToolDecl::unknown(name.into(), at), ask: None });
                }
            }
        }
        if let Some(given) = self.get(id, None, "workbench") {
            let several = self.world.items(given.value).map(<[Value]>::to_vec);
            for value in several.unwrap_or_else(|| vec![given.value.clone()]) {
                self.workbench(kit, &value, given.at, depth, &mut out);
            }
        }
        out
    }

    fn workbench(&self, kit: &mut Kit<'_>, value: &Value, at: Span, depth: usize, out: &mut Vec<ToolUse>) {
        let bench = self.world.object_of(value).map(|(_, o)| o);
        if let Some(own) =
            bench.filter(|o| o.short().starts_with("Static")).and_then(|o| field(o, Some(0), "tools"))
        {
            for value in self.list(kit, Some(own), "tools") {
                out.extend(self.tool(kit, &value, depth));
            }
            return;
        }
        let server = bench.and_then(|o| field(o, Some(0), "server_params"));
        let server = server.and_then(|g| self.world.object_of(g.value)).map(|(_, o)| o);
        let named = server.and_then(|o| ["command", "url"].iter().find_map(|k| field(o, None, k)));
        let name = named.and_then(|g| py::label(self.world, g.value)).unwrap_or_else(|| "mcp".into());
        let message = format!(
            "the tools of the server `{}` are known when it runs; one tool represents all",
            clip(&name)
        );
        kit.out.push(undecided(codes::NOT_COMPILED, message, at));
        // What represents a server is no tool, so two of them have no name in common.
        let taken = |name: &str| out.iter().any(|t| &*t.decl.name == name);
        let free = (2..).map(|n| format!("{name}_{n}")).find(|n| !taken(n));
        let shown = if taken(&name) { free.unwrap_or_default() } else { name.clone() };
        let mut decl = ToolDecl::unknown(shown.as_str().into(), value.span);
        decl.handler = Some(Data::record([(Name::from("mcp"), Data::str(name.as_str()))]));
        out.push(ToolUse { decl, ask: None });
    }

    fn tool(&self, kit: &mut Kit<'_>, value: &Value, depth: usize) -> Option<ToolUse> {
        let at = value.span;
        let plain = |decl: ToolDecl| Some(ToolUse { decl, ask: None });
        if let Some(function) = py::function_of(value) {
            return plain(signature(self.world, function, None));
        }
        let (_, object) = self.world.object_of(value)?;
        let text = |key| field(object, None, key).and_then(|g| self.world.str(g.value));
        match object.short() {
            "FunctionTool" => {
                let function = field(object, Some(0), "func").and_then(|g| py::function_of(g.value))?;
                let mut decl = signature(self.world, function, text("name"));
                let about = field(object, Some(1), "description").and_then(|g| self.world.str(g.value));
                decl.description = about.map(Name::from).or(decl.description);
                plain(decl)
            }
            "AgentTool" | "TeamTool" => {
                let inner = ["agent", "team"].iter().find_map(|k| field(object, Some(0), k));
                let inner = inner.and_then(|g| self.who(g.value))?;
                let asked = self.member(kit, inner, depth + 1);
                let mut decl = asks(text("name").unwrap_or(&asked.name).into(), at);
                let about = text("description").map_or_else(|| asked.description.shown(), str::to_string);
                decl.description = Some(about.as_str().into());
                plain(decl).map(|t| ToolUse { ask: Some(asked), ..t })
            }
            _ if object.class.is_some() || self.is_of(object) => {
                let class = object.class.map(|c| self.world.class(c).name.to_string());
                let name = text("name").map(str::to_string).or(class);
                let mut decl =
                    ToolDecl::unknown(name.unwrap_or_else(|| object.short().to_string()).into(), at);
                decl.description = text("description").map(Name::from);
                plain(decl)
            }
            _ => None,
        }
    }

    fn handoffs(&self, kit: &mut Kit<'_>, id: ObjectId) -> Vec<Handoff> {
        let mut out = Vec::new();
        for value in self.list(kit, self.get(id, None, "handoffs"), "handoffs") {
            let at = value.span;
            if let Some(target) = self.world.str(&value) {
                out.push(Handoff::to(target, at));
                continue;
            }
            let object = self.world.object_of(&value).map(|(_, o)| o);
            let said = |key: &str| {
                let given = object.and_then(|o| field(o, None, key))?;
                self.world.str(given.value).filter(|t| !t.is_empty()).map(str::to_string)
            };
            let Some(target) = said("target").or_else(|| py::label(self.world, &value)) else {
                let message =
                    format!("the target of this handoff is not known: {}", self.world.unknown_reason(&value));
                kit.left_out(message, at);
                continue;
            };
            let mut handoff = Handoff::to(&target, at);
            handoff.name = said("name").unwrap_or(handoff.name);
            handoff.message = said("message").unwrap_or(handoff.message);
            handoff.description = said("description").unwrap_or(handoff.description);
            out.push(handoff);
        }
        out
    }

    fn society_of_mind(&self, kit: &mut Kit<'_>, id: ObjectId, depth: usize) -> MemberKind {
        let head = self.world.object(id).span;
        let Some(team) = self.get(id, Some(1), "team").and_then(|g| self.who(g.value)) else {
            return MemberKind::Unknown("the group chat inside an agent".into());
        };
        let client = self.get(id, Some(2), "model_client");
        let (mut params, model_at) = self.model(kit, client);
        params.purpose = Some(self.name(id).as_str().into());
        let text = |key: &str, default: &str| {
            self.get(id, None, key).map_or_else(|| Words::of(default, head), |g| words(self.world, g))
        };
        MemberKind::SocietyOfMind(Box::new(SocietyOfMind {
            team: self.member(kit, team, depth + 1),
            params,
            model_at,
            instruction: text("instruction", INSTRUCTION),
            response: text("response_prompt", RESPONSE),
            as_system: self.speaks_openai(client),
        }))
    }

    fn team(&self, kit: &mut Kit<'_>, id: ObjectId, of: &str, depth: usize) -> Team {
        let object = self.world.object(id);
        let head = object.span;
        let used = [
            "participants",
            "name",
            "description",
            "termination_condition",
            "max_turns",
            "model_client",
            "selector_prompt",
            "allow_repeated_speaker",
            "max_selector_attempts",
            "max_stalls",
            "final_answer_prompt",
            "selector_func",
            "candidate_func",
            "graph",
        ];
        py::report(object, &used, TEAM_UNUSED, "a team", kit.out);
        let participants = self.get(id, Some(0), "participants");
        let mut members = Vec::new();
        let listed = match self.nodes_of(participants) {
            Some(nodes) => nodes,
            None => self.list(kit, participants, "members"),
        };
        for value in listed {
            match self.who(&value) {
                Some(inner) => members.push(self.member(kit, inner, depth + 1)),
                None => {
                    let why = format!("a member that is not known: {}", self.world.unknown_reason(&value));
                    let name = format!("unknown_{}", members.len() + 1);
                    let description = Words::of("", value.span);
                    let (place, kind) = (value.span, MemberKind::Unknown(why));
                    members.push(Member { name, description, place, head: place, kind });
                }
            }
        }
        let positions: &[(&str, usize)] = match of {
            "SelectorGroupChat" | "MagenticOneGroupChat" | "GraphFlow" => &[],
            // Before 0.5 these could be given by position.
            _ => &[("termination_condition", 1), ("max_turns", 2)],
        };
        let at = |key: &str| positions.iter().find(|(k, _)| *k == key).map(|(_, i)| *i);
        let ends = self.get(id, at("termination_condition"), "termination_condition");
        let ends = ends.map(|g| self.ends(g.value, g.at, 0));
        let default = match of {
            "MagenticOneGroupChat" => &defaults::AUTOGEN_MAGENTIC,
            _ => &defaults::AUTOGEN_TURNS,
        };
        let default = defaults::bound(default, kit.versions);
        let bound = match field(object, at("max_turns"), "max_turns").filter(|g| !g.value.is_none()) {
            Some(given) => py::bound(self.world, Some(given), default),
            None => default,
        };
        let how = match of {
            "RoundRobinGroupChat" => SpeakerSelection::RoundRobin,
            "Swarm" => SpeakerSelection::Swarm,
            "GraphFlow" => SpeakerSelection::Graph(self.graph(kit, id)),
            "MagenticOneGroupChat" => self.orchestrator(kit, id),
            _ => self.selector(kit, id),
        };
        Team { how, members, opener: "user".into(), ends, bound, at: participants.map_or(head, |g| g.at) }
    }

    fn orchestrator(&self, kit: &mut Kit<'_>, id: ObjectId) -> SpeakerSelection {
        let (params, model_at) = self.model(kit, self.get(id, Some(1), "model_client"));
        let own = LoopBound::by_default(magentic::STALLS, "");
        let stalls = match py::bound(self.world, self.get(id, None, "max_stalls"), own).bound {
            Bound::Finite(n) => n,
            Bound::Infinite => u64::MAX,
        };
        let answer = self.get(id, None, "final_answer_prompt").map(|g| words(self.world, g));
        let answer = answer.filter(|w| !magentic::is_own(&w.shown()));
        SpeakerSelection::Magentic(Box::new(Orchestrator { params, model_at, stalls, answer }))
    }

    fn selector(&self, kit: &mut Kit<'_>, id: ObjectId) -> SpeakerSelection {
        let head = self.world.object(id).span;
        let client = self.get(id, Some(1), "model_client");
        let (params, model_at) = self.model(kit, client);
        let attempts = defaults::bound(&defaults::AUTOGEN_SELECTS, kit.versions);
        let attempts = py::bound(self.world, self.get(id, None, "max_selector_attempts"), attempts);
        let code = ["selector_func", "candidate_func"].iter().find_map(|k| {
            let given = self.get(id, None, k)?;
            Some(("who speaks next, which code decides".to_string(), given.at))
        });
        let prompt = self.get(id, None, "selector_prompt").map(|g| words(self.world, g));
        let selector = Selector {
            params,
            model_at,
            prompt: prompt.unwrap_or_else(|| Words::of(selector::PROMPT, head)),
            after: None,
            as_system: self.speaks_openai(client),
            repeats: flag(self.world, self.get(id, None, "allow_repeated_speaker")).unwrap_or(false),
            attempts,
            code,
        };
        SpeakerSelection::Selector(Box::new(selector))
    }

    /// Reads the graph of a `DiGraphBuilder`.
    fn graph(&self, kit: &mut Kit<'_>, id: ObjectId) -> Graph {
        let mut graph = Graph { edges: Vec::new(), start: None };
        let given = self.get(id, Some(1), "graph");
        let mut root = given.and_then(|g| self.world.object_of(g.value)).map(|(id, _)| id);
        let mut seen = HashSet::new();
        while let Some(inner) = root.filter(|r| seen.insert(*r)) {
            match self.world.object(inner).base {
                Some(base) => root = Some(base),
                None => break,
            }
        }
        if let Some(written) = root.filter(|r| self.world.object(*r).short() == "DiGraph") {
            return self.written_graph(kit, written);
        }
        let builder = root.filter(|r| self.world.object(*r).short() == "DiGraphBuilder");
        let (Some(builder), Some(_)) = (builder, given) else {
            let at = given.map_or(self.world.object(id).span, |g| g.at);
            kit.out.push(undecided(codes::NOT_COMPILED, "the edges of the graph", at));
            return graph;
        };
        for (method, call) in self.world.method_chain(builder) {
            let arg = |i: usize, name: &str| field(call, Some(i), name).filter(|g| !g.value.is_none());
            let called = |given: Option<Given<'_>>| given.and_then(|g| self.node(g.value));
            match &*method.name {
                "add_edge" => {
                    let (Some(from), Some(to)) = (called(arg(0, "source")), called(arg(1, "target"))) else {
                        kit.out.push(undecided(codes::NOT_COMPILED, "what an edge joins", call.span));
                        continue;
                    };
                    let when = arg(2, "condition").map_or(When::Always, |g| self.when(g.value));
                    graph.edges.push(self.arrow(from, to, when, call));
                }
                "add_conditional_edges" => {
                    let ways = arg(1, "condition_to_target").and_then(|g| self.world.entries(g.value));
                    let (Some(from), Some(ways)) = (called(arg(0, "source")), ways) else {
                        kit.out.push(undecided(codes::NOT_COMPILED, "what an edge joins", call.span));
                        continue;
                    };
                    for (when, to) in ways {
                        if let Some(to) = self.node(to) {
                            graph.edges.push(self.arrow(from.clone(), to, self.when(when), call));
                        }
                    }
                }
                "set_entry_point" => graph.start = called(arg(0, "name")),
                _ => {}
            }
        }
        graph
    }

    /// `DiGraph(nodes={"a": DiGraphNode(name="a", edges=[DiGraphEdge(target="b")])})`.
    fn written_graph(&self, kit: &mut Kit<'_>, id: ObjectId) -> Graph {
        let start = self.get(id, None, "default_start_node").and_then(|g| self.node(g.value));
        let mut graph = Graph { edges: Vec::new(), start };
        let nodes = self.get(id, None, "nodes").and_then(|g| self.world.entries(g.value));
        for (name, node) in nodes.unwrap_or(&[]) {
            let from = self.node(name);
            let edges = self.world.object_of(node).and_then(|(_, o)| field(o, None, "edges"));
            for edge in self.list(kit, edges, "edges") {
                let call = self.world.object_of(&edge).map(|(_, o)| o);
                let to = call.and_then(|o| field(o, None, "target")).and_then(|g| self.node(g.value));
                let (Some(call), Some(from), Some(to)) = (call, from.clone(), to) else {
                    kit.out.push(undecided(codes::NOT_COMPILED, "what an edge joins", edge.span));
                    continue;
                };
                let when = field(call, None, "condition").filter(|g| !g.value.is_none());
                let when = when.map_or(When::Always, |g| self.when(g.value));
                graph.edges.push(self.arrow(from, to, when, call));
            }
        }
        graph
    }

    fn node(&self, value: &Value) -> Option<String> {
        match self.world.str(value) {
            Some(name) => Some(name.to_string()),
            None => self.who(value).map(|id| self.name(id)),
        }
    }

    fn when(&self, value: &Value) -> When {
        if let Some(text) = self.world.str(value) {
            return When::Contains(text.to_string());
        }
        // `lambda m: "GOOD" in m.to_model_text()`
        match py::function_of(value).and_then(|f| condition(self.world.function(f))) {
            Some(OneText::Contains(text)) => return When::Contains(text),
            Some(OneText::Lacks(text)) => return When::NotContains(text),
            None => {}
        }
        When::Unknown("the condition of an edge, which is code".into())
    }

    fn arrow(&self, from: String, to: String, when: When, call: &Object) -> GraphEdge {
        let text = |key: &str| field(call, None, key).and_then(|g| self.world.str(g.value));
        let group = text("activation_group").filter(|g| !g.is_empty()).unwrap_or(&to).to_string();
        GraphEdge { from, to, when, group, any: text("activation_condition") == Some("any"), at: call.span }
    }

    /// A condition, or several with `|` and `&`.
    fn ends(&self, value: &Value, at: Span, depth: usize) -> Termination {
        let unknown = |why: String| Termination::Unknown(why, at);
        let Some((_, object)) = self.world.object_of(value).filter(|_| depth < 64) else {
            return unknown(format!("what ends the chat: {}", self.world.unknown_reason(value)));
        };
        let at = object.span;
        let each = || object.args.iter().map(|a| self.ends(&a.value, a.span, depth + 1)).collect();
        let text = |i: usize, key: &str| {
            field(object, Some(i), key).and_then(|g| Some((py::label(self.world, g.value)?, g.value.span)))
        };
        let texts = |i: usize, key: &str| {
            let given = field(object, Some(i), key)?;
            let items = self.world.items(given.value)?;
            items.iter().map(|v| self.world.str(v).map(str::to_string)).collect::<Option<Vec<_>>>()
        };
        let missing =
            |what: &str| Termination::Unknown(format!("whether `{}` ends the chat", clip(what)), at);
        match &*object.callee {
            "|" => return Termination::Any(each()),
            "&" => return Termination::All(each()),
            _ => {}
        }
        match object.short() {
            "OrTerminationCondition" => Termination::Any(each()),
            "AndTerminationCondition" => Termination::All(each()),
            "MaxMessageTermination" => {
                let given = field(object, Some(0), "max_messages");
                let events = flag(self.world, field(object, Some(1), "include_agent_event"));
                match given.map(|g| (&self.world.resolve_env(g.value).kind, g.at)) {
                    Some((PyKind::Int(n), at)) if *n >= 0 && events != Some(true) => {
                        Termination::Messages(n.unsigned_abs(), at)
                    }
                    _ => unknown("how many messages end the chat".into()),
                }
            }
            "TextMentionTermination" => match text(0, "text") {
                Some((text, at)) => {
                    Termination::Mention { text, sources: texts(1, "sources"), place: Place::Anywhere, at }
                }
                None => missing("TextMentionTermination"),
            },
            "HandoffTermination" => match text(0, "target") {
                Some((target, at)) => Termination::Handoff(target, at),
                None => missing("HandoffTermination"),
            },
            "SourceMatchTermination" => match texts(0, "sources") {
                Some(names) => Termination::Source(names, at),
                None => missing("SourceMatchTermination"),
            },
            "TextMessageTermination" => Termination::TextOf(text(0, "source").map(|(t, _)| t), at),
            "FunctionCallTermination" => match text(0, "function_name") {
                Some((name, at)) => Termination::Called(name, at),
                None => missing("FunctionCallTermination"),
            },
            // Nobody in a compiled group chat says it.
            "StopMessageTermination" => Termination::Any(Vec::new()),
            of => super::outside(of, at).unwrap_or_else(|| missing(of)),
        }
    }
}

/// The tool that a function is, with all of its documentation.
pub(super) fn signature(world: &World<'_>, function: python::FunctionId, name: Option<&str>) -> ToolDecl {
    let f = world.function(function);
    let hidden = |world: &World<'_>, annotation: &Value| {
        world.name_of(annotation).is_some_and(|n| n.trim_end_matches("[]").ends_with("CancellationToken"))
    };
    let name = name.map_or_else(|| f.name.to_string(), str::to_string);
    let mut decl = py::signature(world, function, &name, f.name_span, hidden);
    decl.description = f.doc.as_deref().map(|d| Name::from(d.trim()));
    decl
}

/// The model that a client asks.
pub(super) fn model(
    world: &World<'_>,
    given: Option<Given<'_>>,
    params: &mut ModelParams,
    kit: &mut Kit<'_>,
) -> Option<Span> {
    let given = given?;
    let Some((_, client)) = world.object_of(given.value) else {
        if let PyKind::Either(_) | PyKind::Unknown(_) = given.value.kind {
            let why = format!("the model is not known: {}", world.unknown_reason(given.value));
            kit.unknown_model(why, given.at);
            return Some(given.at);
        }
        return py::model(world, Some(given), params, kit);
    };
    let names = ["model", "azure_deployment", "model_id", "model_path", "deployment_name"];
    // `ChatCompletionClient.load_component({"provider": …, "config": {"model": …}})`
    let loaded = (client.short() == "load_component").then(|| client.args.first()).flatten();
    let config = loaded.and_then(|a| lookup(world, &a.value, "config"));
    if let Some(config) = config {
        let named = names.iter().find_map(|n| lookup(world, config, n)).and_then(|v| world.str(v));
        params.model = named.map(Name::from);
    } else {
        let named =
            names.iter().find_map(|n| field(client, None, n)).or_else(|| field(client, Some(0), "model"));
        params.model = named.and_then(|g| world.str(g.value)).map(|n| Name::from(n.trim()));
        for arg in &client.args {
            if let Some(name) = arg.name.as_deref().filter(|n| SETTINGS.contains(n)) {
                py::setting(world, name, Given { value: &arg.value, at: arg.span }, params, kit.out);
            }
        }
    }
    if params.model.is_none() {
        kit.unknown_model(format!("which model `{}` asks", client.callee), given.at);
    }
    Some(given.at)
}

/// Returns the value of a key of a dictionary.
pub(super) fn lookup<'v>(world: &'v World<'_>, value: &'v Value, key: &str) -> Option<&'v Value> {
    world.entries(value)?.iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
}
