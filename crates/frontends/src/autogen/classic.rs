//! AutoGen before 0.4, and AG2: agents that send each other messages.
//!
//! A group chat of two, of whom one has a model, is that one's conversation: a turn of the loop is one of its
//! replies. What the other one carries out are tools; what it answers comes from whoever answers for it, or
//! is what it always says. Any other group chat is a team of [`super::term`].
//!
//! Source: microsoft/autogen 0.2.40, `autogen/agentchat/conversable_agent.py`, `groupchat.py`,
//! `user_proxy_agent.py`.

use super::code::{flag, lookup, signature, words};
use super::group_chat;
use super::message_test;
use super::model::{
    Assistant, Member, MemberKind, Place, Selector, SpeakerSelection, Team, Termination, ToolUse, Words,
};
use crate::defaults;
use crate::model_requests::{ModelRequests, Uncounted};
use crate::py::{self, Given, field};
use core_ir::{Bound, ModelParams, Name, TermId, ToolDecl};
use diagnostics::{Diagnostic, Span};
use frontend_kit::doc::Node;
use frontend_kit::emit::{LoopBound, Unused, codes, undecided, value_span};
use frontend_kit::kit::{Kit, Units, first_text, mark, settings};
use frontend_kit::project::{File, UnitKind};
use frontend_kit::shape::why;
use python::{Object, ObjectId, PyKind, Value, World};
use std::collections::HashSet;

/// Packages of this generation of AutoGen.
pub(super) const PACKAGES: &[&str] = &["autogen", "ag2"];

/// Default system message of an assistant, shortened.
const ASSISTANT_PROMPT: &str = "You are a helpful AI assistant. Solve tasks using your coding and language skills. Suggest code in a code block for the user to execute. Reply \"TERMINATE\" in the end when everything is done.";
const CONVERSABLE_PROMPT: &str = "You are a helpful AI Assistant.";
const SELECT_BEFORE: &str = "You are in a role play game. The following roles are available:\n                {roles}.\n                Read the following conversation.\n                Then select the next role from {agentlist} to play. Only return the role.";
const SELECT_AFTER: &str =
    "Read the above conversation. Then select the next role from {agentlist} to play. Only return the role.";

const AGENT_KEYS: &[&str] = &[
    "name",
    "system_message",
    "llm_config",
    "is_termination_msg",
    "max_consecutive_auto_reply",
    "human_input_mode",
    "function_map",
    "code_execution_config",
    "default_auto_reply",
    "description",
    "functions",
];
const AGENT_UNUSED: &[Unused] = &[
    ("chat_messages", "messages before the group chat are not compiled"),
    ("silent", why::SHOWN),
    ("context_variables", why::NOT_YET),
    ("update_agent_state_before_reply", why::CODE),
    ("retrieve_config", "retrieval before the group chat is not compiled"),
    ("handoffs", why::NOT_YET),
];
const CHAT_KEYS: &[&str] = &["recipient", "message", "max_turns"];
const CHAT_UNUSED: &[Unused] = &[
    ("clear_history", "each group chat starts without history"),
    ("silent", why::SHOWN),
    ("cache", why::RUNTIME),
    ("summary_method", "the result is what was said last"),
    ("summary_args", "the result is what was said last"),
    ("carryover", why::NOT_YET),
    ("finished_chat_indexes_to_exclude_from_carryover", why::NOT_YET),
];
const GROUP_KEYS: &[&str] = &[
    "agents",
    "messages",
    "max_round",
    "speaker_selection_method",
    "allow_repeat_speaker",
    "select_speaker_message_template",
    "select_speaker_prompt_template",
    "max_retries_for_selecting_speaker",
];
const GROUP_UNUSED: &[Unused] = &[
    ("admin_name", why::SHOWN),
    ("send_introductions", why::NOT_YET),
    ("enable_clear_history", why::NOT_YET),
    ("func_call_filter", "the caller of a tool gets its result"),
    ("allowed_or_disallowed_speaker_transitions", "who may follow whom is not compiled yet"),
    ("speaker_transitions_type", "who may follow whom is not compiled yet"),
    ("select_speaker_auto_verbose", why::SHOWN),
];

/// Returns true if a mapping is the configuration of an agent.
pub(super) fn is_agent(n: Node<'_>) -> bool {
    mark::has(n, "llm_config") && (mark::has(n, "human_input_mode") || mark::has(n, "system_message"))
}

fn one_turn() -> LoopBound {
    LoopBound::written(Bound::Finite(1), None)
}

fn plain(system: Words, params: ModelParams, model_at: Option<Span>) -> Assistant {
    Assistant {
        system: Some(system),
        params,
        model_at,
        tools: Vec::new(),
        handoffs: Vec::new(),
        bound: one_turn(),
        reflect: false,
        summary: None,
        result: None,
    }
}

/// The agent that a mapping describes.
pub(super) fn configured(kit: &mut Kit<'_>, node: Node<'_>) -> Member {
    let head = node.head();
    let name = super::component::name_of(node).unwrap_or("agent").to_string();
    let description = first_text(node, &["description"]);
    let description =
        description.map_or_else(|| Words::of("", head), |(text, e)| Words::of(text, value_span(&e)));
    let kind = match node.get("llm_config").filter(|l| l.is_mapping()) {
        // Without a model, it speaks for the user, or runs code.
        None => MemberKind::Outside,
        Some(config) => {
            let mut params = ModelParams { purpose: Some(name.as_str().into()), ..ModelParams::default() };
            let first = config.get("config_list").and_then(|l| l.items().next());
            let named =
                first.and_then(|f| first_text(f, &["model"])).or_else(|| first_text(config, &["model"]));
            params.model = named.map(|(t, _)| Name::from(t));
            settings(config, &mut params, kit.out);
            let system = match first_text(node, &["system_message"]) {
                Some((text, e)) => Words::of(text, value_span(&e)),
                None => Words::of(ASSISTANT_PROMPT, head),
            };
            let model_at = named.map_or(config.head(), |(_, e)| value_span(&e));
            MemberKind::Assistant(Box::new(plain(system, params, Some(model_at))))
        }
    };
    Member { name, description, place: node.span(), head, kind }
}

/// Texts in a message that end a chat, or the reason why they aren't known.
pub(super) type Stop = Result<Vec<(String, Place)>, String>;

struct ClassicReader<'r, 'w> {
    world: &'r World<'w>,
}

/// Reason why a chat has no bound that another model call sums up.
const SUMMARY: &str = "a model summarizes the group chat";

/// A group chat that the module begins.
struct Chat<'r> {
    initiator: ObjectId,
    recipient: ObjectId,
    turns: Option<Given<'r>>,
    at: Span,
    /// The call that begins it, alone or with others.
    call: Span,
    /// Place of a summary by other means than the last message.
    summary: Option<Span>,
}

/// The group chats that a module begins, and agents that take part in none.
pub(super) fn lower(units: &mut Units, world: &World<'_>, asks: &ModelRequests<'_, '_>, file: &File) {
    let reader = ClassicReader { world };
    let (chats, other) = reader.chats(file, &mut units.compiled.diagnostics);
    let mut used: HashSet<ObjectId> = HashSet::new();
    let mut places: HashSet<Span> = HashSet::new();
    for chat in &chats {
        used.extend([chat.initiator, chat.recipient]);
        used.extend(reader.group(chat.recipient).into_iter().flat_map(|g| reader.members(g)));
        if !places.insert(chat.at) {
            continue;
        }
        let name = reader.name(chat.recipient);
        units.add(&name, UnitKind::Crew, chat.at, |kit| {
            let term = reader.chat(kit, chat);
            let begun: Vec<ObjectId> = world
                .objects()
                .filter(|(_, o)| o.span == chat.call && o.base.is_some())
                .map(|(id, _)| id)
                .collect();
            let summary = || chat.summary.map(|at| (SUMMARY.to_string(), at));
            py::counted(kit, term, py::repeats(world, &begun), || {
                let call = begun.first().copied();
                let parts = [chat.initiator, chat.recipient].into_iter().chain(call);
                other.clone().or_else(summary).or_else(|| reader.beside(asks, parts))
            })
        });
    }
    let all: Vec<ObjectId> = world.objects().map(|(id, _)| id).filter(|id| reader.is_agent(*id)).collect();
    // A group that nobody here begins a group chat with begins with the message that it is given.
    for id in &all {
        let group = reader.group(*id).filter(|_| !used.contains(id));
        let here = py::made_in(world.object(*id), file);
        if let Some(group) = group.filter(|_| here && places.insert(world.object(*id).span)) {
            used.extend(reader.members(group));
            used.insert(*id);
            let span = world.object(*id).span;
            units.add(&reader.name(*id), UnitKind::Crew, span, |kit| {
                let team = reader.groupchat(kit, *id, group, None);
                let term = reader.team(kit, *id, team);
                let more = reader.beside(asks, [*id]);
                more.map_or(term, |(why, at)| kit.uncounted(term, &why, at))
            });
        }
    }
    for id in all {
        let object = world.object(id);
        let alone = py::made_in(object, file) && !used.contains(&id) && reader.group(id).is_none();
        if alone && places.insert(object.span) {
            units.add(&reader.name(id), UnitKind::Agent, object.span, |kit| {
                let member = reader.member(kit, id, one_turn());
                let term = group_chat::alone(kit, &member);
                let asked = |o: &Object| {
                    matches!(o.short(), "generate_reply" | "a_generate_reply" | "run") && o.base == Some(id)
                };
                let runs: Vec<ObjectId> =
                    world.objects().filter(|(_, o)| asked(o)).map(|(id, _)| id).collect();
                py::counted(kit, term, py::repeats(world, &runs), || reader.beside(asks, [id]))
            });
        }
    }
}

impl<'r> ClassicReader<'r, '_> {
    fn class(&self, id: ObjectId) -> Option<String> {
        let object = self.world.object(id);
        let ours = |name: &str| PACKAGES.contains(&name.split('.').next().unwrap_or(""));
        if ours(&object.callee) && object.base.is_none() {
            return Some(object.short().to_string());
        }
        let found = std::cell::RefCell::new(None);
        self.world.derives(object.class?, |name| {
            if ours(name) {
                *found.borrow_mut() = name.rsplit('.').next().map(str::to_string);
            }
            ours(name)
        });
        found.into_inner()
    }

    /// Reason for model calls beside a group chat: functions that it or its members are given, by group
    /// chats within it, or for a summary.
    fn beside(
        &self,
        asks: &ModelRequests<'_, '_>,
        ids: impl IntoIterator<Item = ObjectId>,
    ) -> Option<Uncounted> {
        let mut all: Vec<ObjectId> = ids.into_iter().collect();
        let groups: Vec<ObjectId> = all.iter().filter_map(|id| self.group(*id)).collect();
        all.extend(groups.iter().flat_map(|g| self.members(*g)));
        all.extend(groups);
        let open = |object: &Object, name: &str| {
            Some((format!("`{name}` calls a model outside of the group chat"), object.span))
        };
        let found = all.iter().find_map(|id| {
            let object = self.world.object(*id);
            if let Some(given) = field(object, None, "summary_method")
                && self.world.str(given.value) != Some("last_msg")
            {
                return Some((SUMMARY.to_string(), given.at));
            }
            let calls = object.calls.iter().map(|call| self.world.object(call.result));
            if let Some(nested) = calls.clone().find(|o| o.short() == "register_nested_chats") {
                return open(nested, "register_nested_chats");
            }
            let own = object.class.map(|c| Value::new(PyKind::Class(c), object.span));
            let args = object.args.iter().chain(calls.flat_map(|o| &o.args)).map(|a| &a.value);
            asks.beside(args.chain(&own), &|id| self.is_agent(id))
        });
        // What is added to agents, and the functions that they carry out.
        let added = || {
            let objects = self.world.objects().map(|(_, o)| o);
            objects.into_iter().find_map(|o| match o.short() {
                "add_to_agent" => open(o, "add_to_agent"),
                "register_function" => asks.beside(o.args.iter().map(|a| &a.value), &|id| self.is_agent(id)),
                _ => None,
            })
        };
        let decorated = || {
            let tools = ["register_for_execution", "register_for_llm"];
            let functions = self.world.functions().filter(|(_, f)| {
                f.decorators
                    .iter()
                    .any(|d| self.world.object_of(d).is_some_and(|(_, o)| tools.contains(&o.short())))
            });
            functions.into_iter().find_map(|(id, _)| asks.within(id))
        };
        found.or_else(added).or_else(decorated)
    }

    fn is_agent(&self, id: ObjectId) -> bool {
        self.class(id).is_some_and(|c| c.ends_with("Agent") || c == "GroupChatManager")
    }

    fn get(&self, id: ObjectId, position: Option<usize>, name: &str) -> Option<Given<'r>> {
        field(self.world.object(id), position, name).filter(|g| !g.value.is_none())
    }

    fn agent(&self, value: &Value) -> Option<ObjectId> {
        let (id, _) = self.world.object_of(value)?;
        self.is_agent(id).then_some(id)
    }

    fn name(&self, id: ObjectId) -> String {
        let manager = self.class(id).is_some_and(|c| c == "GroupChatManager");
        let given = self.get(id, (!manager).then_some(0), "name");
        let default = if manager { "chat_manager" } else { "agent" };
        given.and_then(|g| py::label(self.world, g.value)).unwrap_or_else(|| default.into())
    }

    /// The chats that a module begins, and why there are others, if any.
    fn chats(&self, file: &File, out: &mut Vec<Diagnostic>) -> (Vec<Chat<'r>>, Option<Uncounted>) {
        let mut chats = Vec::new();
        let mut other: Option<Uncounted> = None;
        for (_, call) in self.world.objects().filter(|(_, o)| py::made_in(o, file)) {
            let begins = matches!(call.short(), "initiate_chat" | "a_initiate_chat");
            let initiator = call.base.filter(|b| self.is_agent(*b));
            if let (true, Some(initiator)) = (begins, initiator) {
                py::report(call, CHAT_KEYS, CHAT_UNUSED, "a chat", out);
                let recipient = field(call, Some(0), "recipient");
                match recipient.and_then(|g| self.agent(g.value)) {
                    Some(recipient) => {
                        let turns = field(call, None, "max_turns").filter(|g| !g.value.is_none());
                        let at = call.span;
                        chats.push(Chat { initiator, recipient, turns, at, call: at, summary: None });
                    }
                    None => {
                        let why = recipient.map_or("nobody".into(), |g| self.world.unknown_reason(g.value));
                        let message = format!("the partner of the chat is not known: {why}");
                        out.push(undecided(codes::NOT_COMPILED, message.clone(), call.span));
                        other.get_or_insert((message, call.span));
                    }
                }
            }
            if matches!(call.short(), "initiate_chats" | "a_initiate_chats") {
                let known = self.several(call, initiator, &mut chats, out);
                if !known {
                    let why = "which chats `initiate_chats` begins is not known";
                    other.get_or_insert((why.to_string(), call.span));
                }
            }
        }
        (chats, other)
    }

    /// `initiate_chats([{"recipient": …, "message": …}, …])`. Returns false if one of them is not known.
    fn several(
        &self,
        call: &'r Object,
        initiator: Option<ObjectId>,
        chats: &mut Vec<Chat<'r>>,
        out: &mut Vec<Diagnostic>,
    ) -> bool {
        let given = field(call, Some(0), "chat_queue");
        let list = given.and_then(|g| self.world.items(g.value));
        let Some(list) = list else { return false };
        let mut known = given.is_some_and(|g| self.world.count(g.value).is_some());
        let message = "what one chat carries over to the next is not compiled: each is a unit of its own";
        out.push(undecided(codes::NOT_COMPILED, message, call.span));
        for entry in list {
            let of = |key: &str| lookup(self.world, entry, key);
            let sender = of("sender").and_then(|v| self.agent(v)).or(initiator);
            let (Some(initiator), Some(recipient)) = (sender, of("recipient").and_then(|v| self.agent(v)))
            else {
                known = false;
                continue;
            };
            let turns = of("max_turns").map(|value| Given { value, at: value.span });
            let summary = of("summary_method").filter(|v| self.world.str(v) != Some("last_msg"));
            let summary = summary.map(|v| v.span);
            chats.push(Chat { initiator, recipient, turns, at: entry.span, call: call.span, summary });
        }
        known
    }

    /// The model's parameters; `None` if it has none.
    fn model(&self, kit: &mut Kit<'_>, id: ObjectId) -> Option<(ModelParams, Span)> {
        let class = self.class(id).unwrap_or_default();
        let position = (class == "AssistantAgent").then_some(2);
        let mut params =
            ModelParams { purpose: Some(self.name(id).as_str().into()), ..ModelParams::default() };
        let Some(given) = self.get(id, position, "llm_config") else {
            // A configuration may be given by what stands around an assistant.
            let assistant = class == "AssistantAgent" || self.world.object(id).open.is_some();
            return assistant.then(|| (params, self.world.object(id).span));
        };
        let value = self.world.resolve_env(given.value);
        let list = |v: &'r Value| {
            let list = lookup(self.world, v, "config_list").and_then(|l| self.world.items(l));
            list.and_then(<[Value]>::first).unwrap_or(v)
        };
        let (name, extra): (Option<&Value>, Vec<(&str, &Value)>) = match &value.kind {
            PyKind::Bool(false) => return None,
            PyKind::Dict(_) => {
                let entries = self.world.entries(value).unwrap_or(&[]);
                let extra = entries.iter().filter_map(|(k, v)| Some((k.as_str()?, v))).collect();
                (lookup(self.world, list(value), "model"), extra)
            }
            PyKind::Object(object) => {
                let object = self.world.object(*object);
                let first = field(object, Some(0), "config_list").map(|g| g.value);
                let first = first.and_then(|v| match self.world.items(v) {
                    Some(items) => items.first(),
                    None => Some(v),
                });
                let inner = first.and_then(|v| lookup(self.world, v, "model"));
                let extra = object.args.iter().filter_map(|a| Some((a.name.as_deref()?, &a.value))).collect();
                (field(object, None, "model").map(|g| g.value).or(inner), extra)
            }
            _ => (None, Vec::new()),
        };
        params.model = name.and_then(|v| self.world.str(v)).map(Name::from);
        for (key, value) in extra {
            if super::code::SETTINGS.contains(&key) {
                py::setting(self.world, key, Given { value, at: value.span }, &mut params, kit.out);
            }
        }
        if params.model.is_none() {
            // What the configuration is made of says more than that it is one.
            let listed = lookup(self.world, value, "config_list").unwrap_or(value);
            let first = self.world.items(listed).and_then(<[Value]>::first).unwrap_or(listed);
            let of = lookup(self.world, first, "model").unwrap_or(first);
            let why = match of.kind {
                PyKind::Dict(_) | PyKind::List(_) => {
                    "the model is not known: the configuration names none".to_string()
                }
                _ => format!("the model is not known: {}", self.world.unknown_reason(of)),
            };
            kit.unknown_model(why, given.at);
        }
        Some((params, given.at))
    }

    fn member(&self, kit: &mut Kit<'_>, id: ObjectId, bound: LoopBound) -> Member {
        let object = self.world.object(id);
        let head = object.span;
        let class = self.class(id).unwrap_or_default();
        py::report(object, AGENT_KEYS, AGENT_UNUSED, "an agent", kit.out);
        for call in
            object.calls.iter().filter(|c| matches!(&*c.name, "register_reply" | "register_nested_chats"))
        {
            let message = format!("`{}` is left out: {}", call.name, why::CODE);
            kit.out.push(Diagnostic::info(codes::NOT_COMPILED, message, self.world.object(call.result).span));
        }
        let system = match class.as_str() {
            "UserProxyAgent" => self.get(id, None, "system_message"),
            _ => self.get(id, Some(1), "system_message"),
        };
        // Whoever is asked each time may answer `exit`, whether a model would answer otherwise or not.
        if self.mode(id) == "ALWAYS" {
            kit.outline.person(head, true);
        }
        let kind = match self.model(kit, id) {
            None => self.proxy(id),
            Some((params, at)) => {
                let default = if class == "AssistantAgent" { ASSISTANT_PROMPT } else { CONVERSABLE_PROMPT };
                let system = system.map_or_else(|| Words::of(default, head), |g| words(self.world, g));
                let tools = self.tools(kit, id);
                MemberKind::Assistant(Box::new(Assistant { tools, bound, ..plain(system, params, Some(at)) }))
            }
        };
        let description = self.get(id, None, "description").or(system).map(|g| words(self.world, g));
        let description = description.unwrap_or_else(|| Words::of("", head));
        Member { name: self.name(id), description, place: head, head, kind }
    }

    fn mode(&self, id: ObjectId) -> &'r str {
        let default = match self.class(id).as_deref() {
            Some("UserProxyAgent" | "RetrieveUserProxyAgent") => "ALWAYS",
            Some("AssistantAgent") => "NEVER",
            _ => "TERMINATE",
        };
        self.get(id, None, "human_input_mode").and_then(|g| self.world.str(g.value)).unwrap_or(default)
    }

    /// A speaker without a model: a person, a code executor, or a constant reply.
    fn proxy(&self, id: ObjectId) -> MemberKind {
        let code = field(self.world.object(id), None, "code_execution_config");
        let user = self.class(id).is_some_and(|c| c.ends_with("UserProxyAgent"));
        let runs = match code {
            Some(g) => !matches!(self.world.resolve_env(g.value).kind, PyKind::Bool(false) | PyKind::None),
            None => user,
        };
        if self.mode(id) == "ALWAYS" || runs {
            return MemberKind::Outside;
        }
        let given = self.get(id, None, "default_auto_reply");
        match given.map(|g| self.world.str(g.value)) {
            None => MemberKind::Constant(String::new()),
            Some(Some(text)) => MemberKind::Constant(text.to_string()),
            Some(None) => MemberKind::Outside,
        }
    }

    /// The tools that an agent may ask for.
    fn tools(&self, kit: &mut Kit<'_>, id: ObjectId) -> Vec<ToolUse> {
        let mut out: Vec<ToolDecl> = Vec::new();
        let about = |mut decl: ToolDecl, given: Option<Given<'_>>| {
            decl.description =
                given.and_then(|g| self.world.str(g.value)).map(Name::from).or(decl.description);
            decl
        };
        let text = |o: &'r Object, i: Option<usize>, key: &str| {
            field(o, i, key).and_then(|g| self.world.str(g.value))
        };
        for (f, function) in self.world.functions() {
            for decorator in function.decorators.iter() {
                let Some((_, o)) = self.world.object_of(decorator) else { continue };
                if o.short() == "register_for_llm" && o.base == Some(id) {
                    let decl = signature(self.world, f, text(o, None, "name"));
                    out.push(about(decl, field(o, None, "description")));
                }
            }
        }
        for (_, call) in self.world.objects() {
            // `agent.register_for_llm(name="f")(f)`
            let maker = call.base.map(|b| self.world.object(b));
            let of = maker.filter(|m| m.short() == "register_for_llm" && m.base == Some(id));
            let function = field(call, Some(0), "f").and_then(|g| py::function_of(g.value));
            if let (Some(maker), Some(f), "__call__") = (of, function, call.short()) {
                let decl = signature(self.world, f, text(maker, None, "name"));
                out.push(about(decl, field(maker, None, "description")));
            }
            let ours = PACKAGES.contains(&call.package()) && call.short() == "register_function";
            let caller = field(call, None, "caller").and_then(|g| self.agent(g.value));
            if let (true, true, Some(f)) = (ours && call.base.is_none(), caller == Some(id), function) {
                let decl = signature(self.world, f, text(call, None, "name"));
                out.push(about(decl, field(call, None, "description")));
            }
        }
        let config = self.get(id, None, "llm_config").map(|g| g.value);
        for key in ["functions", "tools"] {
            let listed = config.and_then(|c| lookup(self.world, c, key)).and_then(|v| self.world.items(v));
            for item in listed.unwrap_or(&[]) {
                let item = lookup(self.world, item, "function").unwrap_or(item);
                let named = |key: &str| lookup(self.world, item, key).and_then(|v| self.world.str(v));
                if let Some(name) = named("name") {
                    let mut decl = ToolDecl::unknown(name.into(), item.span);
                    decl.description = named("description").map(Name::from);
                    out.push(decl);
                }
            }
        }
        for value in self.get(id, None, "functions").and_then(|g| self.world.items(g.value)).unwrap_or(&[]) {
            match py::function_of(value) {
                Some(f) => out.push(signature(self.world, f, None)),
                None => {
                    py::unknown_tool(kit, self.world, value);
                }
            }
        }
        let mut seen = HashSet::new();
        out.retain(|d| seen.insert(d.name.clone()));
        out.into_iter().map(|decl| ToolUse { decl, ask: None }).collect()
    }

    /// Returns the texts in a message that an agent doesn't answer.
    fn stop(&self, id: ObjectId) -> Stop {
        let position = match self.class(id).as_deref() {
            Some("UserProxyAgent") => Some(1),
            _ => None,
        };
        let Some(given) = self.get(id, position, "is_termination_msg") else {
            return Ok(vec![("TERMINATE".into(), Place::All)]);
        };
        let unknown = || Err("whether a message ends the group chat, which code decides".to_string());
        let Some(f) = py::function_of(given.value) else { return unknown() };
        message_test::texts(self.world.function(f)).map_or_else(unknown, Ok)
    }

    fn auto_replies(&self, kit: &Kit<'_>, id: ObjectId) -> LoopBound {
        let default = defaults::bound(&defaults::AUTOGEN_REPLIES, kit.versions);
        py::bound(self.world, self.get(id, None, "max_consecutive_auto_reply"), default)
    }

    /// `Str → Str`.
    fn chat(&self, kit: &mut Kit<'_>, chat: &Chat<'_>) -> TermId {
        if let Some(group) = self.group(chat.recipient) {
            let team = self.groupchat(kit, chat.recipient, group, Some(chat.initiator));
            return self.team(kit, chat.recipient, team);
        }
        let bound = self.replies(kit, chat);
        let recipient = self.member(kit, chat.recipient, bound.clone());
        let initiator = self.member(kit, chat.initiator, bound.clone());
        let at = chat.at;
        if let (MemberKind::Assistant(a), false) =
            (&recipient.kind, matches!(initiator.kind, MemberKind::Assistant(_)))
        {
            if let Err(unknown) = group_chat::open(kit, &recipient) {
                return unknown;
            }
            let stop = self.stop(chat.initiator);
            let term = super::two_agent_chat::conversation(kit, &recipient, a, &initiator, stop, bound, at);
            kit.close();
            return term;
        }
        let (to, from) = (recipient.name.clone(), initiator.name.clone());
        let ends = [(chat.initiator, to), (chat.recipient, from.clone())].map(|(who, said_by)| {
            match self.stop(who) {
                Ok(texts) => Termination::Any(mentions(texts, Some(said_by), self.world.object(who).span)),
                Err(why) => Termination::Unknown(why, self.world.object(who).span),
            }
        });
        // Between two replies of the recipient the initiator speaks.
        let bound = match bound.bound {
            Bound::Finite(n) => {
                LoopBound { bound: Bound::Finite(n.saturating_mul(2).saturating_sub(1)), ..bound }
            }
            Bound::Infinite => bound,
        };
        let team = Team {
            how: SpeakerSelection::RoundRobin,
            members: vec![recipient, initiator],
            opener: from,
            ends: Some(Termination::Any(ends.into())),
            bound,
            at,
        };
        self.team(kit, chat.recipient, team)
    }

    fn team(&self, kit: &mut Kit<'_>, id: ObjectId, team: Team) -> TermId {
        let head = self.world.object(id).span;
        let description = Words::of("", head);
        let (name, place) = (format!("{} and others", self.name(id)), team.at);
        group_chat::alone(
            kit,
            &Member { name, description, place, head, kind: MemberKind::Team(Box::new(team)) },
        )
    }

    /// Returns the maximal number of the recipient's replies.
    fn replies(&self, kit: &Kit<'_>, chat: &Chat<'_>) -> LoopBound {
        if chat.turns.is_some() {
            return py::bound(self.world, chat.turns, LoopBound::unknown("the turns of the group chat"));
        }
        let theirs = self.auto_replies(kit, chat.recipient);
        let own = self.auto_replies(kit, chat.initiator);
        // Whom a person answers for replies as long as the person does.
        if self.mode(chat.initiator) == "ALWAYS" {
            return theirs;
        }
        let own = match own.bound {
            Bound::Finite(n) => LoopBound { bound: Bound::Finite(n.saturating_add(1)), ..own },
            Bound::Infinite => own,
        };
        match (own.bound, theirs.bound) {
            (Bound::Finite(a), Bound::Finite(b)) if b < a => theirs,
            (Bound::Infinite, Bound::Finite(_)) => theirs,
            _ => own,
        }
    }

    /// The `GroupChat` of a manager.
    fn group(&self, id: ObjectId) -> Option<ObjectId> {
        if self.class(id)? != "GroupChatManager" {
            return None;
        }
        let (group, object) = self.world.object_of(self.get(id, Some(0), "groupchat")?.value)?;
        (object.short() == "GroupChat").then_some(group)
    }

    fn members(&self, group: ObjectId) -> Vec<ObjectId> {
        let given = self.get(group, Some(0), "agents");
        let items = given.and_then(|g| self.world.items(g.value)).unwrap_or(&[]);
        items.iter().filter_map(|v| self.agent(v)).collect()
    }

    fn groupchat(
        &self,
        kit: &mut Kit<'_>,
        manager: ObjectId,
        group: ObjectId,
        opener: Option<ObjectId>,
    ) -> Team {
        let object = self.world.object(group);
        py::report(object, GROUP_KEYS, GROUP_UNUSED, "a group", kit.out);
        let rounds = defaults::bound(&defaults::AUTOGEN_ROUNDS, kit.versions);
        let rounds = py::bound(self.world, self.get(group, Some(2), "max_round"), rounds);
        // The first message is a round, too.
        let bound = match rounds.bound {
            Bound::Finite(n) => LoopBound { bound: Bound::Finite(n.saturating_sub(1)), ..rounds },
            Bound::Infinite => rounds,
        };
        let given = self.get(group, Some(0), "agents");
        if given.is_none_or(|g| self.world.items(g.value).is_none()) {
            let message = "the members of the group are not known";
            kit.left_out(message.into(), object.span);
        }
        let mut ids = self.members(group);
        let method = self.get(group, None, "speaker_selection_method");
        let named = method.map(|g| self.world.str(g.value).map(str::to_lowercase));
        if let (Some(Some("round_robin")), Some(opener)) = (named.as_ref().map(Option::as_deref), opener)
            && let Some(i) = ids.iter().position(|m| *m == opener)
        {
            let next = (i + 1) % ids.len();
            ids.rotate_left(next);
        }
        let members: Vec<Member> = ids.iter().map(|m| self.member(kit, *m, bound.clone())).collect();
        let how = match named.as_ref().map(Option::as_deref) {
            Some(Some("round_robin")) => SpeakerSelection::RoundRobin,
            None | Some(Some("auto")) => self.selector(kit, manager, group, None),
            Some(Some("random")) => self.selector(kit, manager, group, Some("who is drawn by lot to speak")),
            Some(Some("manual")) => self.selector(kit, manager, group, Some("whom a person names to speak")),
            Some(_) => self.selector(kit, manager, group, Some("who speaks next, which code decides")),
        };
        let ends = match self.stop(manager) {
            Ok(texts) => Termination::Any(mentions(texts, None, self.world.object(manager).span)),
            Err(why) => Termination::Unknown(why, self.world.object(manager).span),
        };
        Team {
            how,
            members,
            opener: opener.map_or_else(|| "user".into(), |o| self.name(o)),
            ends: Some(ends),
            bound,
            at: given.map_or(object.span, |g| g.at),
        }
    }

    fn selector(
        &self,
        kit: &mut Kit<'_>,
        manager: ObjectId,
        group: ObjectId,
        code: Option<&str>,
    ) -> SpeakerSelection {
        let head = self.world.object(group).span;
        let model = if code.is_none() { self.model(kit, manager) } else { None };
        let (params, model_at) = model.map_or((ModelParams::default(), None), |(p, at)| (p, Some(at)));
        let text = |key: &str, default: &str| {
            self.get(group, None, key).map_or_else(|| Words::of(default, head), |g| words(self.world, g))
        };
        let retries = self.get(group, None, "max_retries_for_selecting_speaker");
        let default = defaults::bound(&defaults::AUTOGEN_RETRIES, kit.versions);
        let retries = py::bound(self.world, retries, default);
        let attempts = match retries.bound {
            Bound::Finite(n) => LoopBound { bound: Bound::Finite(n.saturating_add(1)), ..retries },
            Bound::Infinite => retries,
        };
        let method = self.get(group, None, "speaker_selection_method").map_or(head, |g| g.at);
        SpeakerSelection::Selector(Box::new(Selector {
            params,
            model_at,
            prompt: text("select_speaker_message_template", SELECT_BEFORE),
            after: Some(text("select_speaker_prompt_template", SELECT_AFTER)),
            as_system: true,
            repeats: flag(self.world, self.get(group, None, "allow_repeat_speaker")).unwrap_or(true),
            attempts,
            code: code.map(|why| (why.to_string(), method)),
        }))
    }
}

fn mentions(texts: Vec<(String, Place)>, by: Option<String>, at: Span) -> Vec<Termination> {
    let sources = by.map(|name| vec![name]);
    let one = |(text, place)| Termination::Mention { text, sources: sources.clone(), place, at };
    texts.into_iter().map(one).collect()
}
