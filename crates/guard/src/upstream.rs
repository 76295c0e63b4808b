//! The guard of one server of the Model Context Protocol: what it and the client say, and what is passed on.
//!
//! Messages are passed on as they are, in their order. Calls of tools, lists of tools, and whatever carries
//! text into the conversation or out of it are looked at. It is a machine without input and output: messages
//! go in, [`Action`]s come out.
//!
//! A message that adds to the conversation, or tells a server something, is decided as a call of a tool that
//! only reads, with the name `mcp:` and the method: a policy can say otherwise under
//! `[tools."mcp:resources/read"]`.

use crate::decide::{Allowed, Decision, Outcome, Question, Refused, SetRead};
use crate::handle_tools::{self, HandleTools, Inquiry};
use crate::message::{self as msg, INTERNAL_ERROR, INVALID_REQUEST, Message, REFUSED};
use crate::note::Note;
use crate::program::ToolSpec;
use crate::session::{KeptLabel, Keys, MemoryUse, Session};
use core_ir::{Data, Stated};
use diagnostics::{clip, visible};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Write as _;

/// The most requests that are under way in one direction.
pub(crate) const MAX_PENDING: usize = 1024;
/// The most tools of a server.
const MAX_TOOLS: usize = 4096;
/// The most pages of a list that the guard reads for itself.
pub(crate) const MAX_PAGES: usize = 100;
/// Bytes of such a list after which no other page is read.
pub(crate) const MAX_LIST: usize = 16 << 20;
/// The most methods that a client may use beside those of the protocol.
const MAX_METHODS: usize = 64;
/// The most questions of the revision without a handshake that may be open.
const MAX_QUESTIONS: usize = 64;
/// Characters of an argument in a question.
const MAX_ARGUMENT_CHARS: usize = 400;
/// The beginning of the numbers of the guard's own requests.
const OWN: &str = "entail-guard-";
/// Key of the guard's own question in a result that asks for input.
const OWN_INPUT: &str = "entail_guard_approval";
/// Names of tools that represent methods begin so.
pub(crate) const METHOD: &str = "mcp:";

/// Facts about a server that it does not say itself: the user's approval, and labels of earlier sessions.
pub trait Trust {
    /// Compares a tool as the server describes it now with what was approved.
    fn tool(&self, tool: &Value) -> Approval;

    /// The label that a result states of itself in `_meta.ifc`.
    fn stated(&self, ifc: &Value) -> Stated;

    /// Returns whether a message to the server contains a secret that is known without a label, such as a
    /// key in the environment of another server.
    fn has_secret(&self, message: &Value) -> bool {
        let _ = message;
        false
    }

    /// Keeps the label of what is written to the server, in addition to those that it has.
    ///
    /// # Errors
    /// It can't be kept. Then nothing may be written.
    fn keep(&self, keys: &Keys, label: &KeptLabel) -> Result<(), String> {
        let _ = (keys, label);
        Err("this guard keeps no labels".into())
    }

    /// The labels of what was written to the server, in any session.
    ///
    /// # Errors
    /// They can't be read. Then they count as the highest.
    fn kept(&self, keys: &Keys) -> Result<Vec<KeptLabel>, String> {
        let _ = keys;
        Err("this guard keeps no labels".into())
    }
}

/// State of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It is as it was approved: it is the user's word.
    Approved,
    /// Nothing of its server was approved: it is the server's word.
    Missing,
    /// It is not what was approved, for this reason.
    Changed(String),
}

/// An action of the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Send the message to the client.
    ToClient(Value),
    /// Send the message to the server.
    ToServer(Value),
    /// Put the question to a quarantined model.
    Ask(Inquiry),
    /// Tell whoever keeps the policy.
    Note(Note),
}

/// Request of the client that the server has.
enum Pending {
    /// A call of a tool, and what it reads of that which the server keeps.
    Call(Allowed, Option<Keys>),
    /// A request that tells the server something, and whose answer enters the conversation.
    Method(Allowed),
    /// A list of descriptions.
    List(&'static str),
    /// `initialize`, or what replaces it.
    Start(String),
    /// Its answer says nothing.
    Quiet,
}

/// Request of the server that the client has.
enum Asked {
    /// The answer goes to the server if the label of the conversation allows.
    Checked(String),
    /// The answer is the user's own or the client's.
    Quiet,
}

/// Request of the guard itself.
enum Own {
    /// To the client: may this call be made?
    Approval(Question, Value),
    /// To the server: its tools, for calls that came before the client listed them; the page.
    Tools(usize),
    /// To the server: a set that arguments are chosen from.
    Set(SetRead, Value),
}

impl Own {
    /// The call of the client that waits for it.
    fn call(&self) -> Option<&Value> {
        match self {
            Own::Approval(_, call) | Own::Set(_, call) => Some(call),
            Own::Tools(_) => None,
        }
    }
}

/// Effects of a message: the session changes, and the driver acts.
pub(crate) struct Step<'s> {
    pub(crate) session: &'s mut Session,
    pub(crate) actions: Vec<Action>,
}

impl Step<'_> {
    pub(crate) fn push(&mut self, action: Action) {
        self.actions.push(action);
    }
}

/// The guard of one server in a session that it may share with others.
pub(crate) struct Upstream<T> {
    /// Prefix of the names of its tools in the session.
    prefix: String,
    trust: T,
    observe: bool,
    client: HashMap<String, Pending>,
    server: HashMap<String, Asked>,
    own: BTreeMap<u64, Own>,
    next_own: u64,
    /// Tools as they were offered first.
    tools: BTreeMap<String, Value>,
    /// Tools that were not offered, with the reason.
    left_out: BTreeMap<String, String>,
    /// Tools whose results the server wraps.
    wrapped: BTreeMap<String, bool>,
    /// Methods that were offered to the session.
    methods: Vec<String>,
    /// Calls that wait for the guard's own list of tools.
    held: VecDeque<Value>,
    /// Bytes of that list so far.
    listed_bytes: usize,
    /// True once the guard has read the list itself.
    listed: bool,
    /// True if the client can ask the user, as it said at the beginning.
    elicits: bool,
    /// Questions of the revision without a handshake, by their state.
    questions: BTreeMap<u64, (Question, Value)>,
    /// The guard's own tools, if this is the only server.
    handle_tools: HandleTools,
    /// Methods whose text the client keeps from one conversation to the next, and that nobody approved.
    standing: BTreeSet<String>,
}

/// Why a call with a known secret is not made.
const SECRET: &str = "its arguments contain a secret of this computer, such as a key of another server";
/// Requests of the client whose answer is not shown to a model.
const QUIET: [&str; 2] = ["ping", "logging/setLevel"];
/// Requests of the client that tell the server something and whose answer says nothing.
const TOLD: [&str; 2] = ["resources/subscribe", "resources/unsubscribe"];
/// Lists of descriptions.
const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
/// Fields of a list of tools whose descriptions were approved.
const LISTED: [&str; 5] = ["tools", "nextCursor", "resultType", "ttlMs", "cacheScope"];
/// Fields of a tool that was approved.
const APPROVED: [&str; 6] =
    ["name", "description", "inputSchema", "outputSchema", "annotations", "execution"];
/// Words of `taskSupport`.
const TASK_SUPPORT: [&str; 3] = ["forbidden", "optional", "required"];
/// Requests of the server that the user or the client answers, and not the model.
const ASIDE: [&str; 3] = ["ping", "roots/list", "elicitation/create"];
/// Notifications of the server that clients show to the user, or nobody.
const FOR_THE_USER: [&str; 9] = [
    "notifications/message",
    "notifications/progress",
    "notifications/cancelled",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/elicitation/complete",
    "notifications/subscriptions/acknowledged",
];

impl<T: Trust> Upstream<T> {
    /// The guard of a server that has not begun. One that observes refuses nothing and says what it would
    /// have refused.
    pub(crate) fn new(prefix: &str, trust: T, observe: bool, session: &mut Session) -> Upstream<T> {
        let mut upstream = Upstream {
            prefix: prefix.into(),
            trust,
            observe,
            client: HashMap::new(),
            server: HashMap::new(),
            own: BTreeMap::new(),
            next_own: 0,
            tools: BTreeMap::new(),
            left_out: BTreeMap::new(),
            wrapped: BTreeMap::new(),
            methods: Vec::new(),
            held: VecDeque::new(),
            listed_bytes: 0,
            listed: false,
            elicits: false,
            questions: BTreeMap::new(),
            handle_tools: HandleTools::default(),
            standing: BTreeSet::new(),
        };
        // What the policy says of methods that nobody has used yet is no slip for those that are in use.
        let own = |n: &str| {
            let bare = n.strip_prefix(prefix).unwrap_or(n);
            bare.strip_prefix(METHOD).map(String::from)
        };
        let methods: Vec<String> = session.named().filter_map(own).collect();
        let mut step = Step { session, actions: Vec::new() };
        for method in methods {
            let _ = upstream.method(&method, &mut step);
        }
        upstream
    }

    /// The name that the session has for a tool of this server.
    fn name(&self, tool: &str) -> String {
        format!("{}{tool}", self.prefix)
    }

    /// The name that the server has for a tool of the session, if it is one of this server.
    fn bare<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_prefix(&*self.prefix)
    }

    /// Takes a message of the client.
    pub(crate) fn client_says(&mut self, message: Value, out: &mut Step<'_>) {
        match msg::envelope(&message) {
            Err(why) => {
                out.push(Action::ToClient(msg::error(&Value::Null, INVALID_REQUEST, &why)));
                out.push(Action::Note(Note::Invalid { by_server: false, why }));
            }
            Ok(Message::Request { id, method }) => self.request(&id, &method, message, out),
            Ok(Message::Notification { method }) => self.notification(&method, message, out),
            Ok(Message::Response { id }) => self.client_answers(&id, message, out),
        }
    }

    /// Takes a message of the server.
    pub(crate) fn server_says(&mut self, message: Value, out: &mut Step<'_>) {
        match msg::envelope(&message) {
            Err(why) => out.push(invalid_of_server(why)),
            Ok(Message::Request { id, method }) => self.server_asks(&id, &method, message, out),
            Ok(Message::Notification { method }) => self.server_notifies(&method, message, out),
            Ok(Message::Response { id }) => self.server_answers(&id, message, out),
        }
    }

    /// The server is gone: every request that it has fails.
    pub(crate) fn server_gone(&mut self, how: &str) -> Vec<Action> {
        let why = format!("the server is gone: {how}");
        let mut ids: Vec<String> = self.client.drain().map(|(id, _)| id).collect();
        ids.sort();
        let own = std::mem::take(&mut self.own);
        let held = std::mem::take(&mut self.held);
        let calls = own.values().filter_map(Own::call).chain(&held);
        ids.extend(calls.map(|call| msg::key(&call["id"])));
        let answer = |id: String| {
            // INVARIANT: keys are the text of JSON values.
            let id = serde_json::from_str(&id).unwrap_or(Value::Null);
            Action::ToClient(msg::error(&id, INTERNAL_ERROR, &why))
        };
        ids.into_iter().map(answer).collect()
    }

    /// The server is there again, as a process or connection that has been told nothing. What it offered
    /// first is remembered, so it can't offer something else now.
    pub(crate) fn server_is_new(&mut self) {
        self.client.clear();
        self.server.clear();
        (self.listed, self.listed_bytes) = (false, 0);
    }

    /// The user has begun a new conversation, and the session another label. Calls that the model has chosen
    /// before and that aren't decided are not made. What the client still shows of the server's texts has its
    /// label again.
    pub(crate) fn begin_again(&mut self, out: &mut Step<'_>) {
        let refused = self.handle_tools.begin_again(out.session);
        out.actions.extend(refused);
        for message in std::mem::take(&mut self.held) {
            let tool = self.name(message["params"]["name"].as_str().unwrap_or_default());
            let refused = out.session.refuse(&tool, "a new conversation has begun");
            self.refuse(&message, refused, out);
        }
        for method in self.standing.clone() {
            let name = self.name(&format!("{METHOD}{method}"));
            // A failure has the labels of all parts.
            match out.session.admit(&name, &Data::Null) {
                Some(allowed) => drop(self.finish(allowed, Err(String::new()), None, &[], out)),
                None => out.session.raise_to_top(&name),
            }
        }
    }

    /// Returns whether nobody waits for the server.
    pub(crate) fn is_idle(&self) -> bool {
        let waits_for_client = |own: &Own| matches!(own, Own::Approval(..));
        self.client.is_empty()
            && self.held.is_empty()
            && self.own.values().all(waits_for_client)
            && self.handle_tools.is_idle()
    }

    fn is_under_way(&self, id: &Value) -> bool {
        let mut waiting = self.held.iter().chain(self.own.values().filter_map(Own::call));
        self.client.contains_key(&msg::key(id))
            || waiting.any(|call| call["id"] == *id)
            || self.handle_tools.is_under_way(id)
    }

    fn request(&mut self, id: &Value, method: &str, message: Value, out: &mut Step<'_>) {
        if self.is_under_way(id) {
            let why = format!("a request with the id {id} is under way");
            return out.push(Action::ToClient(msg::error(id, INVALID_REQUEST, &why)));
        }
        if self.client.len() + self.held.len() + self.own.len() >= MAX_PENDING {
            let why = format!("more than {MAX_PENDING} requests are under way");
            return out.push(Action::ToClient(msg::error(id, INVALID_REQUEST, &why)));
        }
        let pending = match method {
            "tools/call" => return self.call(message, out),
            "initialize" => {
                self.elicits = msg::elicits(&message["params"]["capabilities"]);
                Pending::Start(method.into())
            }
            "server/discover" => Pending::Start(method.into()),
            _ if QUIET.contains(&method) => Pending::Quiet,
            _ => match LISTS.iter().find(|l| **l == method) {
                Some(list) => Pending::List(list),
                None => match self.tells(method, &message["params"], out) {
                    Ok(_) if TOLD.contains(&method) => Pending::Quiet,
                    Ok(allowed) => Pending::Method(allowed),
                    Err(refused) => {
                        let error = msg::error(id, REFUSED, &refused.to_string());
                        return out.push(Action::ToClient(error));
                    }
                },
            },
        };
        self.client.insert(msg::key(id), pending);
        out.push(Action::ToServer(message));
    }

    /// Decides about a message that tells a server something, by its method.
    fn tells(&mut self, method: &str, params: &Value, out: &mut Step<'_>) -> Result<Allowed, Box<Refused>> {
        let Some(tool) = self.method(method, out) else {
            return Err(out.session.refuse(method, "too many methods are in use").into());
        };
        if !self.observe && self.trust.has_secret(params) {
            let refused = out.session.refuse(&tool, SECRET);
            out.push(Action::Note(Note::Refused(refused.clone())));
            return Err(refused.into());
        }
        let args = Data::from_json(params).unwrap_or(Data::Null);
        // No method asks or reads: it has no set, and approval of one is a refusal.
        match self.decide(&tool, &args, out) {
            Decision::Allowed(allowed) => Ok(allowed),
            Decision::Refused(refused) => {
                out.push(Action::Note(Note::Refused(refused.clone())));
                Err(refused.into())
            }
            Decision::Asks(question) => match out.session.unattended(question) {
                Decision::Refused(refused) => {
                    out.push(Action::Note(Note::Refused(refused.clone())));
                    Err(refused.into())
                }
                _ => Err(out.session.refuse(&tool, "a message of the protocol can't be asked about").into()),
            },
            Decision::Reads(read) => match out.session.read(read, Err("not now".into()), None) {
                Decision::Allowed(allowed) => Ok(allowed),
                _ => Err(out.session.refuse(&tool, "a message of the protocol has no sets").into()),
            },
        }
    }

    /// The name under which the session knows a method; `None` if there are too many.
    fn method(&mut self, method: &str, out: &mut Step<'_>) -> Option<String> {
        let name = self.name(&format!("{METHOD}{method}"));
        if !self.methods.iter().any(|m| m == method) {
            if self.methods.len() >= MAX_METHODS {
                return None;
            }
            self.methods.push(method.into());
            out.session.offer([ToolSpec { name: name.as_str().into(), params: None, reads: true }]);
        }
        Some(name)
    }

    /// Decides a call; a guard that observes makes it all the same.
    fn decide(&mut self, tool: &str, args: &Data, out: &mut Step<'_>) -> Decision {
        let (decision, note) = out.session.decide(tool, args, self.observe);
        out.actions.extend(note.map(Action::Note));
        decision
    }

    fn call(&mut self, message: Value, out: &mut Step<'_>) {
        let id = message["id"].clone();
        let Some(bare) = message["params"]["name"].as_str().map(String::from) else {
            let why = "a call has the `name` of a tool";
            return out.push(Action::ToClient(msg::error(&id, INVALID_REQUEST, why)));
        };
        let tool = self.name(&bare);
        if self.offers_own(&bare, out.session) {
            let actions = self.handle_tools.call(message, out.session);
            return out.actions.extend(actions);
        }
        if bare.starts_with(METHOD) {
            let why = format!(
                "there is no tool `{}`: names that begin with `{METHOD}` are those of methods",
                clip(&tool)
            );
            return self.refuse(&message, out.session.refuse(&tool, &why), out);
        }
        if message["params"].get("task").is_some_and(|t| !t.is_null()) {
            let why = "the result of a task would pass unlabeled: call the tool without `task`";
            return self.refuse(&message, out.session.refuse(&tool, why), out);
        }
        // The answer to a question of this guard itself.
        if let Some(state) = own_number(&message["params"]["requestState"])
            && let Some((question, asked)) = self.questions.remove(&state)
        {
            return self.answered(question, &asked, message, out);
        }
        if !out.session.knows(&tool) {
            if let Some(why) = self.left_out.get(&bare) {
                let why = format!("`{tool}` is refused: {why}");
                return self.refuse(&message, out.session.refuse(&tool, &why), out);
            }
            if !self.listed {
                return self.hold(message, out);
            }
        }
        let args = match arguments(&message) {
            Ok(args) => args,
            Err(why) => return self.refuse(&message, out.session.refuse(&tool, &why), out),
        };
        // Answers of the client's model that go along, in the revision without a handshake.
        let inputs = &message["params"]["inputResponses"];
        if !inputs.is_null()
            && let Err(refused) = self.tells("sampling/createMessage", inputs, out)
        {
            return self.reply_refused(&message, &refused, out);
        }
        let decision = self.decide(&tool, &args, out);
        self.decided(decision, message, out);
    }

    fn decided(&mut self, decision: Decision, message: Value, out: &mut Step<'_>) {
        match decision {
            Decision::Allowed(allowed) if !self.may_leave(&allowed, &message, out) => {
                let refused = out.session.refuse(allowed.tool(), SECRET);
                self.refuse(&message, refused, out);
            }
            Decision::Allowed(allowed) => match self.written(&allowed, &message, out.session) {
                Ok(reads) => {
                    let (tool, label) = (allowed.tool().clone(), out.session.label());
                    out.push(Action::Note(Note::Made { tool, label }));
                    self.client.insert(msg::key(&message["id"]), Pending::Call(allowed, reads));
                    let mut message = message;
                    if let Some(params) = message.get_mut("params") {
                        *params = with_values(std::mem::take(params), "arguments", out.session);
                    }
                    out.push(Action::ToServer(message));
                }
                Err(why) => {
                    let why = format!("the label of what it writes can't be kept: {why}");
                    let refused = out.session.refuse(allowed.tool(), &why);
                    self.refuse(&message, refused, out);
                }
            },
            Decision::Refused(refused) => self.refuse(&message, refused, out),
            Decision::Reads(read) => {
                let Some(set) = self.bare(read.set()) else {
                    let why = Err("it is a tool of another server".into());
                    let decision = out.session.read(read, why, None);
                    return self.decided(decision, message, out);
                };
                let mut params = json!({"name": set, "arguments": {}});
                if let Some(meta) = msg::own_meta(&message) {
                    params["_meta"] = meta;
                }
                self.ask(Own::Set(read, message), "tools/call", params, out);
            }
            Decision::Asks(question) => self.question(question, message, out),
        }
    }

    /// Returns whether the arguments of a call have no known secret. A guard that observes makes it all the
    /// same.
    fn may_leave(&self, allowed: &Allowed, message: &Value, out: &mut Step<'_>) -> bool {
        let sent = with_values(message["params"].clone(), "arguments", out.session);
        if !self.trust.has_secret(&sent["arguments"]) {
            return true;
        }
        if self.observe {
            let refused = out.session.refuse(allowed.tool(), SECRET);
            out.push(Action::Note(Note::WouldRefuse(refused)));
        }
        self.observe
    }

    /// Keeps the label of what a call writes; gives what it reads.
    fn written(
        &self,
        allowed: &Allowed,
        message: &Value,
        session: &mut Session,
    ) -> Result<Option<Keys>, String> {
        let args = arguments(message).unwrap_or(Data::Null);
        let MemoryUse { writes, reads } = session.memory(allowed.tool(), &session.with_values(&args));
        if let Some(keys) = writes
            && let Some(label) = session.to_keep(&args)
        {
            self.trust.keep(&keys, &label)?;
        }
        Ok(reads)
    }

    /// Labels of what a call has read.
    fn recalled(&self, keys: &Keys) -> Vec<KeptLabel> {
        self.trust.kept(keys).unwrap_or_else(|_| {
            // It is in no lattice, so it is the highest of each.
            vec![KeptLabel { lattice: String::new(), label: Data::Null, raised_by: Vec::new() }]
        })
    }

    /// Sends a request of the guard's own.
    fn ask(&mut self, own: Own, method: &str, params: Value, out: &mut Step<'_>) {
        self.next_own += 1;
        let request = msg::request(&own_id(self.next_own), method, params);
        out.push(match own {
            Own::Approval(..) => Action::ToClient(request),
            Own::Tools(_) | Own::Set(..) => Action::ToServer(request),
        });
        self.own.insert(self.next_own, own);
    }

    fn question(&mut self, question: Question, message: Value, out: &mut Step<'_>) {
        let tool = question.tool().clone();
        let form = json!({
            "message": described(&question),
            "requestedSchema": {"type": "object", "required": ["approve"], "properties": {
                "approve": {"type": "boolean", "title": "Make this call", "description": "Leave it off to refuse the call."}
            }},
        });
        let is_stateless = msg::is_stateless(&message);
        if is_stateless && msg::elicits(msg::capabilities(&message)) {
            self.next_own += 1;
            let state = own_id(self.next_own);
            let result = json!({"resultType": "input_required", "requestState": state,
                "inputRequests": {OWN_INPUT: {"method": "elicitation/create", "params": form}}});
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            // Whoever has not answered for so long has given up.
            if self.questions.len() >= MAX_QUESTIONS {
                self.questions.pop_first();
            }
            self.questions.insert(self.next_own, (question, message));
            out.push(Action::Note(Note::Asked(tool)));
            return out.push(Action::ToClient(answer));
        }
        if !is_stateless && self.elicits {
            out.push(Action::Note(Note::Asked(tool)));
            return self.ask(Own::Approval(question, message), "elicitation/create", form, out);
        }
        let decision = out.session.unattended(question);
        self.decided(decision, message, out);
    }

    /// The call comes again with the user's answer.
    fn answered(&mut self, question: Question, asked: &Value, message: Value, out: &mut Step<'_>) {
        let same = |field: &str| asked["params"].get(field) == message["params"].get(field);
        let answer = match same("name") && same("arguments") {
            true => approval(Some(&message["params"]["inputResponses"][OWN_INPUT])),
            false => Err("it is not the call that was asked about".into()),
        };
        let decision = out.session.answer(question, answer);
        // The server did not ask.
        let mut message = message;
        if let Some(params) = message["params"].as_object_mut() {
            params.remove("inputResponses");
            params.remove("requestState");
        }
        self.decided(decision, message, out);
    }

    fn refuse(&mut self, message: &Value, refused: Refused, out: &mut Step<'_>) {
        out.push(Action::Note(Note::Refused(refused.clone())));
        self.reply_refused(message, &refused, out);
    }

    fn reply_refused(&self, message: &Value, refused: &Refused, out: &mut Step<'_>) {
        let text = format!("entail guard refused this call: {refused}");
        let error = msg::tool_error(&message["id"], &text, msg::is_stateless(message));
        out.push(Action::ToClient(error));
    }

    /// Keeps a call until the guard knows the tools.
    fn hold(&mut self, message: Value, out: &mut Step<'_>) {
        let is_first = self.held.is_empty();
        let meta = msg::own_meta(&message);
        self.held.push_back(message);
        if is_first {
            let params = meta.map_or(json!({}), |meta| json!({"_meta": meta}));
            self.ask(Own::Tools(0), "tools/list", params, out);
        }
    }

    fn notification(&mut self, method: &str, message: Value, out: &mut Step<'_>) {
        if method == "notifications/cancelled" {
            let id = message["params"]["requestId"].clone();
            self.handle_tools.canceled(&id);
            self.client.remove(&msg::key(&id));
            if let Some(at) = self.held.iter().position(|request| request["id"] == id) {
                self.held.remove(at);
                return;
            }
            let own = self.own.iter().find(|(_, own)| own.call().is_some_and(|call| call["id"] == id));
            if let Some(number) = own.map(|(number, _)| *number) {
                let canceled = json!({"jsonrpc": "2.0", "method": method,
                    "params": {"requestId": own_id(number), "reason": "the call was canceled"}});
                match self.own.remove(&number) {
                    Some(Own::Approval(..)) => out.push(Action::ToClient(canceled)),
                    _ => out.push(Action::ToServer(canceled)),
                }
                return;
            }
        } else if !method.starts_with("notifications/") {
            // A server might do what a request without a number asks for.
            let why = format!("`{}` is no notification", clip(method));
            return out.push(Action::Note(Note::Invalid { by_server: false, why }));
        } else if !matches!(
            method,
            "notifications/initialized" | "notifications/progress" | "notifications/roots/list_changed"
        ) && self.tells(method, &message["params"], out).is_err()
        {
            return;
        }
        out.push(Action::ToServer(message));
    }

    fn client_answers(&mut self, id: &Value, message: Value, out: &mut Step<'_>) {
        if let Some(number) = own_number(id)
            && matches!(self.own.get(&number), Some(Own::Approval(..)))
        {
            if let Some(Own::Approval(question, request)) = self.own.remove(&number) {
                let decision = match message.get("error") {
                    Some(_) => out.session.unattended(question),
                    None => out.session.answer(question, approval(message.get("result"))),
                };
                self.decided(decision, request, out);
            }
            return;
        }
        match self.server.remove(&msg::key(id)) {
            None => out.push(Action::Note(Note::Invalid {
                by_server: false,
                why: format!("it answers the request {}, which is not open", clip(&id.to_string())),
            })),
            Some(Asked::Quiet) => out.push(Action::ToServer(message)),
            Some(Asked::Checked(method)) => match self.tells(&method, &message["result"], out) {
                Ok(_) => out.push(Action::ToServer(message)),
                Err(refused) => {
                    out.push(Action::ToServer(msg::error(id, REFUSED, &refused.message)));
                }
            },
        }
    }

    fn server_asks(&mut self, id: &Value, method: &str, message: Value, out: &mut Step<'_>) {
        let key = msg::key(id);
        let wrong = if self.server.contains_key(&key) || own_number(id).is_some() {
            Some(format!("a request with the id {} is under way", clip(&id.to_string())))
        } else if self.server.len() >= MAX_PENDING {
            Some(format!("more than {MAX_PENDING} requests are under way"))
        } else {
            None
        };
        if let Some(why) = wrong {
            out.push(Action::ToServer(msg::error(id, INVALID_REQUEST, &why)));
            return out.push(invalid_of_server(why));
        }
        let asked = match ASIDE.contains(&method) && !self.is_named(method, out.session) {
            true => Asked::Quiet,
            false => {
                if let Err(why) = self.enters(method, &message["params"], out) {
                    return out.push(Action::ToServer(msg::error(id, REFUSED, &why)));
                }
                Asked::Checked(method.into())
            }
        };
        self.server.insert(key, asked);
        out.push(Action::ToClient(message));
    }

    fn server_notifies(&mut self, method: &str, message: Value, out: &mut Step<'_>) {
        if method == "notifications/cancelled" {
            self.server.remove(&msg::key(&message["params"]["requestId"]));
        }
        let is_aside = FOR_THE_USER.contains(&method) && !self.is_named(method, out.session);
        if !is_aside && self.enters(method, &message["params"], out).is_err() {
            return;
        }
        out.push(Action::ToClient(message));
    }

    /// Returns whether the policy has a table for a method.
    fn is_named(&self, method: &str, session: &Session) -> bool {
        session.is_named(&self.name(&format!("{METHOD}{method}")))
    }

    /// A message of the server enters the conversation unasked, or is withheld.
    fn enters(&mut self, method: &str, content: &Value, out: &mut Step<'_>) -> Result<(), String> {
        let Some(tool) = self.method(method, out) else { return Err("too many methods are in use".into()) };
        let Some(allowed) = out.session.admit(&tool, &Data::Null) else {
            return Err("the policy can't be used".into());
        };
        let data = Data::from_json(content).map_err(|e| e.to_string());
        match self.finish(allowed, data, None, &[], out) {
            Outcome::Delivered => Ok(()),
            Outcome::Withheld(refused) => Err(refused.message),
        }
    }

    /// Takes note of a result before the client gets it.
    fn finish(
        &mut self,
        allowed: Allowed,
        data: Result<Data, String>,
        stated: Option<Stated>,
        kept: &[KeptLabel],
        out: &mut Step<'_>,
    ) -> Outcome {
        let by = allowed.tool().clone();
        let stated = stated.map(|s| out.session.stated(&s));
        let stated = out.session.joined(stated, kept);
        let (outcome, notes) = out.session.conclude(allowed, data, stated, self.observe);
        if notes.iter().any(|note| matches!(note, Note::Raised { .. })) {
            let mut raised_by: Vec<_> = kept.iter().flat_map(|k| k.raised_by.iter().cloned()).collect();
            raised_by.dedup();
            if !raised_by.is_empty() {
                out.push(Action::Note(Note::Recalled { tool: by, raised_by }));
            }
        }
        out.actions.extend(notes.into_iter().map(Action::Note));
        outcome
    }

    /// The label that a result states of itself.
    fn stated(&self, result: &Value) -> Option<Stated> {
        Some(self.trust.stated(result["_meta"].get("ifc")?))
    }

    /// The data of a result, and the label that it states. A failure has the labels of all parts.
    fn read(&self, tool: &str, result: &Value, session: &Session) -> (Result<Data, String>, Option<Stated>) {
        let wrapped = self.bare(tool).and_then(|bare| self.wrapped.get(bare)).copied();
        let read = msg::read_result(result, wrapped.unwrap_or(false));
        let data = match read.data {
            // Content that is none of the parts has the labels of all, too.
            Ok(data) if read.is_whole || !session.has_parts(tool) => Ok(data),
            Ok(_) => Err("there is more in it than its parts".into()),
            Err(why) => Err(why),
        };
        (data, self.stated(result))
    }

    fn server_answers(&mut self, id: &Value, mut message: Value, out: &mut Step<'_>) {
        if let Some(number) = own_number(id) {
            return self.own_answer(number, &message, out);
        }
        let Some(pending) = self.client.remove(&msg::key(id)) else {
            let why = format!("it answers the request {}, which is not open", clip(&id.to_string()));
            return out.push(invalid_of_server(why));
        };
        let failed = message.get("error").map(|e| e.to_string());
        match pending {
            Pending::Quiet => match failed {
                None => message["result"] = quiet(&message["result"]),
                Some(_) => {
                    if let Err(why) = self.enters("error", &message["error"], out) {
                        message = msg::error(id, REFUSED, &why);
                    }
                }
            },
            Pending::Start(method) => self.started(&method, &mut message, out),
            Pending::List(method) => match failed {
                None => {
                    self.list(method, &mut message["result"], out);
                    self.add_own_tools(method, &mut message["result"], out.session);
                }
                Some(_) => {
                    if let Err(why) = self.enters(method, &message["error"], out) {
                        message = msg::error(id, REFUSED, &why);
                    }
                }
            },
            Pending::Call(allowed, reads) => {
                let (data, stated) = match failed {
                    Some(error) => (Err(error), None),
                    None => self.read(allowed.tool(), &message["result"], out.session),
                };
                let data = match message.get_mut("result") {
                    Some(result) => self.filtered(&allowed, data, result, out),
                    None => data,
                };
                let kept = reads.map_or(Vec::new(), |keys| self.recalled(&keys));
                let data = match self.handled(&allowed, data, (stated.as_ref(), &kept), &mut message, out) {
                    Some(data) => data,
                    None => return out.push(Action::ToClient(message)),
                };
                if let Outcome::Withheld(refused) = self.finish(allowed, data, stated, &kept, out) {
                    let is_stateless = message["result"].get("resultType").is_some();
                    message = msg::tool_error(id, &withheld(&refused), is_stateless);
                }
            }
            Pending::Method(allowed) => {
                let result = &message["result"];
                let (data, stated) = match failed {
                    Some(error) => (Err(error), None),
                    None => (Data::from_json(result).map_err(|e| e.to_string()), self.stated(result)),
                };
                if let Outcome::Withheld(refused) = self.finish(allowed, data, stated, &[], out) {
                    message = msg::error(id, REFUSED, &withheld(&refused));
                }
            }
        }
        out.push(Action::ToClient(message));
    }

    /// Keeps a result or parts of it from the model, which gets handles. Gives the rest, which enters the
    /// conversation; `None` if nothing does.
    fn handled(
        &mut self,
        allowed: &Allowed,
        data: Result<Data, String>,
        (stated, kept): (Option<&Stated>, &[KeptLabel]),
        message: &mut Value,
        out: &mut Step<'_>,
    ) -> Option<Result<Data, String>> {
        // A guard that only observes gives what there is.
        if self.observe || !out.session.has_handles() {
            return Some(data);
        }
        let tool = allowed.tool().clone();
        let stated = stated.map(|s| out.session.stated(s));
        let stated = out.session.joined(stated, kept);
        let is_stateless = message["result"].get("resultType").is_some();
        let value = msg::whole_value(message, &data);
        if let Some(name) = out.session.keep(allowed, &data, stated.as_ref(), value) {
            let text = handle_tools::told(&name, &tool, out.session);
            *message = msg::tool_text(&message["id"], &text, is_stateless);
            out.push(Action::Note(Note::Kept { tool, handles: vec![name] }));
            return None;
        }
        if let Ok(whole) = &data
            && let Some((told, rest, handles)) = out.session.keep_parts(allowed, whole, stated.as_ref())
        {
            if let Some(result) = message.get_mut("result") {
                let wrapped = self.bare(&tool).and_then(|bare| self.wrapped.get(bare)).copied();
                msg::put_data(result, &told.to_json(), wrapped.unwrap_or(false));
            }
            out.push(Action::Note(Note::Kept { tool, handles }));
            return Some(Ok(rest));
        }
        Some(data)
    }

    /// Returns whether a name is that of a tool of the guard's own.
    fn offers_own(&self, bare: &str, session: &Session) -> bool {
        self.prefix.is_empty() && session.has_handles() && handle_tools::is_own(bare)
    }

    /// Takes the answer of a quarantined model.
    pub(crate) fn inquiry_answered(&mut self, number: u64, said: Result<Data, String>, out: &mut Step<'_>) {
        let actions = self.handle_tools.answered(number, said, out.session);
        out.actions.extend(actions);
    }

    /// Leaves items out of a result, and out of the message that has it.
    fn filtered(
        &self,
        allowed: &Allowed,
        data: Result<Data, String>,
        result: &mut Value,
        out: &mut Step<'_>,
    ) -> Result<Data, String> {
        // A guard that only observes gives what there is.
        let Some((data, items)) =
            data.as_ref().ok().filter(|_| !self.observe).and_then(|data| out.session.filtered(allowed, data))
        else {
            return data;
        };
        if items > 0 {
            let wrapped = self.bare(allowed.tool()).and_then(|bare| self.wrapped.get(bare)).copied();
            msg::put_data(result, &data.to_json(), wrapped.unwrap_or(false));
            out.push(Action::Note(Note::Filtered { tool: allowed.tool().clone(), items }));
        }
        Ok(data)
    }

    fn own_answer(&mut self, number: u64, message: &Value, out: &mut Step<'_>) {
        match self.own.remove(&number) {
            Some(Own::Tools(page)) => self.own_tools(page, message, out),
            Some(Own::Set(read, request)) => {
                let set = read.set().to_string();
                let (data, stated) = match message.get("error") {
                    Some(error) => (Err(error.to_string()), None),
                    None => self.read(&set, &message["result"], out.session),
                };
                let reads = out.session.memory(&set, &Data::record([])).reads;
                let kept = reads.map_or(Vec::new(), |keys| self.recalled(&keys));
                let stated = stated.map(|s| out.session.stated(&s));
                let stated = out.session.joined(stated, &kept);
                // INVARIANT: the call was decided, so it has arguments.
                let args = arguments(&request).unwrap_or(Data::Null);
                let (decision, note) = out.session.decide_after(read, data, stated, &args, self.observe);
                out.actions.extend(note.map(Action::Note));
                self.decided(decision, request, out);
            }
            // Only the client answers those.
            Some(own @ Own::Approval(..)) => {
                self.own.insert(number, own);
                out.push(invalid_of_server("it answers a question to the client".into()));
            }
            None => out.push(invalid_of_server("it answers a request that is not open".into())),
        }
    }

    /// A page of the tools that the guard asked for itself.
    fn own_tools(&mut self, page: usize, message: &Value, out: &mut Step<'_>) {
        let mut result = message.get("result").cloned().unwrap_or(Value::Null);
        self.declare(&mut result, out);
        self.listed_bytes = self.listed_bytes.saturating_add(msg::size(&result));
        let cursor = result["nextCursor"].as_str().map(String::from);
        if let Some(cursor) = cursor.filter(|_| page + 1 < MAX_PAGES && self.listed_bytes < MAX_LIST) {
            let mut params = json!({"cursor": cursor});
            if let Some(meta) = self.held.front().and_then(msg::own_meta) {
                params["_meta"] = meta;
            }
            return self.ask(Own::Tools(page + 1), "tools/list", params, out);
        }
        self.listed = true;
        for message in std::mem::take(&mut self.held) {
            self.call(message, out);
        }
    }

    /// Takes note of the tools of a list, and leaves out those that must not be used. Says whether all of
    /// their descriptions were approved.
    fn declare(&mut self, result: &mut Value, out: &mut Step<'_>) -> bool {
        let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) else { return false };
        let (mut approved, mut specs) = (true, Vec::new());
        let mut kept = Vec::with_capacity(tools.len());
        for mut tool in std::mem::take(tools) {
            let Some(name) = tool["name"].as_str().map(String::from) else {
                out.push(left_out("a tool", "it has no name"));
                continue;
            };
            let trusted = match self.tools.get(&name) {
                Some(first) if *first == tool => self.trust.tool(&tool),
                Some(_) => Approval::Changed("its description has changed since the session began".into()),
                None if self.tools.len() >= MAX_TOOLS => {
                    Approval::Changed(format!("the server has more than {MAX_TOOLS} tools"))
                }
                None if self.offers_own(&name, out.session) => {
                    Approval::Changed("it is the name of a tool of the guard itself".into())
                }
                None if name.starts_with(METHOD) => {
                    Approval::Changed(format!("names that begin with `{METHOD}` are those of methods"))
                }
                None => self.trust.tool(&tool),
            };
            match trusted {
                Approval::Changed(why) if !self.observe => {
                    out.push(left_out(&format!("the tool `{}`", clip(&name)), &why));
                    out.session.withdraw(&self.name(&name));
                    if self.left_out.len() < MAX_TOOLS {
                        self.left_out.insert(name, why);
                    }
                    continue;
                }
                Approval::Changed(why) => {
                    out.push(left_out(&format!("(only observing) the tool `{}`", clip(&name)), &why));
                    approved = false;
                }
                Approval::Missing => approved = false,
                Approval::Approved => {
                    self.tools.entry(name.clone()).or_insert_with(|| tool.clone());
                    approved_alone(&mut tool);
                }
            }
            if !self.left_out.contains_key(&name) {
                self.wrapped.insert(name.clone(), is_wrapped(&tool));
                specs.push(ToolSpec::of_schema(&self.name(&name), &tool["inputSchema"]));
                self.tools.entry(name).or_insert_with(|| tool.clone());
                // A handle is not what the schema describes.
                if let Some(fields) = tool.as_object_mut().filter(|_| out.session.has_handles()) {
                    fields.remove("outputSchema");
                }
                kept.push(tool);
            }
        }
        *tools = kept;
        out.session.offer(specs);
        approved
    }

    /// A list of descriptions, on its way to the client: text of the server, unless the user has approved it.
    fn list(&mut self, method: &'static str, result: &mut Value, out: &mut Step<'_>) {
        let is_approved = match method {
            "tools/list" => self.declare(result, out),
            _ => {
                let says_nothing = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
                let is_empty = result.as_object().is_some_and(|fields| fields.values().all(says_nothing));
                is_empty || self.trust.tool(&described_as_tool(method, result)) == Approval::Approved
            }
        };
        if is_approved {
            // What was approved is all that is in it.
            if let Some(fields) = result.as_object_mut() {
                match method {
                    "tools/list" => fields.retain(|name, _| LISTED.contains(&name.as_str())),
                    _ => drop(fields.remove("_meta")),
                }
            }
            return;
        }
        match self.enters(method, result, out) {
            Ok(()) => drop(self.standing.insert(method.into())),
            Err(why) => {
                out.push(left_out(&format!("what `{method}` lists"), &why));
                if let Some(fields) = result.as_object_mut() {
                    fields.values_mut().filter_map(Value::as_array_mut).for_each(Vec::clear);
                }
            }
        }
    }

    /// Adds the guard's own tools to the last page of a list of tools.
    fn add_own_tools(&self, method: &str, result: &mut Value, session: &Session) {
        let is_last = result.get("nextCursor").is_none_or(Value::is_null);
        if method == "tools/list"
            && self.prefix.is_empty()
            && !self.observe
            && is_last
            && let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut)
        {
            handle_tools::add_to(tools, session);
        }
    }

    /// The answer to `initialize` or `server/discover`.
    fn started(&mut self, method: &str, message: &mut Value, out: &mut Step<'_>) {
        let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) else { return };
        if let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut)
            && capabilities.remove("tasks").is_some()
        {
            out.push(left_out("the capability `tasks`", "results of tasks would pass unlabeled"));
        }
        let Some(text) = result.get("instructions").filter(|t| !t.is_null()).cloned() else { return };
        match self.trust.tool(&described_as_tool("initialize", &text)) {
            Approval::Approved => {}
            Approval::Changed(why) if !self.observe => {
                result.remove("instructions");
                out.push(left_out("the server's instructions", &why));
            }
            Approval::Missing | Approval::Changed(_) => match self.enters(method, &text, out) {
                Ok(()) => drop(self.standing.insert(method.into())),
                Err(_) => {
                    if let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) {
                        result.remove("instructions");
                    }
                }
            },
        }
    }
}

/// The text that the client gets in place of a result.
fn withheld(refused: &Refused) -> String {
    format!("entail guard withheld the result: {refused}")
}

/// The answer without its contents.
fn quiet(result: &Value) -> Value {
    match result["resultType"].as_str() {
        Some("complete") => json!({"resultType": "complete"}),
        _ => json!({}),
    }
}

fn invalid_of_server(why: String) -> Action {
    Action::Note(Note::Invalid { by_server: true, why })
}

fn left_out(what: &str, why: &str) -> Action {
    Action::Note(Note::LeftOut { what: what.into(), why: why.into() })
}

fn own_id(number: u64) -> String {
    format!("{OWN}{number}")
}

/// The number of a request of the guard's own.
pub(crate) fn own_number(id: &Value) -> Option<u64> {
    id.as_str()?.strip_prefix(OWN)?.parse().ok()
}

/// Returns whether the name of a tool represents a method.
pub fn is_method(tool: &str) -> bool {
    tool.starts_with(METHOD)
}

/// The text of a server under a method, as a tool that can be approved.
pub fn described_as_tool(method: &str, said: &Value) -> Value {
    let text = said.as_str().map_or_else(|| said.to_string(), String::from);
    json!({"name": format!("{METHOD}{method}"), "description": text, "inputSchema": {}})
}

/// The user's answer to a form.
fn approval(result: Option<&Value>) -> Result<(), String> {
    let Some(result) = result else { return Err("nobody answered".into()) };
    match (result["action"].as_str(), &result["content"]["approve"]) {
        (Some("accept"), Value::Bool(true)) => Ok(()),
        (Some("accept"), _) => Err("the user refused it".into()),
        (Some("decline"), _) => Err("the user declined".into()),
        (Some("cancel"), _) => Err("the user gave no answer".into()),
        _ => Err("nobody answered".into()),
    }
}

/// A question for people. It controls no terminal.
fn described(question: &Question) -> String {
    let mut text = format!("May `{}` be called?", visible(question.tool(), MAX_ARGUMENT_CHARS));
    for (name, value, label) in question.args() {
        let value = visible(&value.to_json().to_string(), MAX_ARGUMENT_CHARS);
        let label = if label == "[]" { String::new() } else { format!("  (label {label})") };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  {} = {value}{label}", visible(name, MAX_ARGUMENT_CHARS));
    }
    text
}

/// An object with the values of handles in place of their names in one of its fields.
fn with_values(mut object: Value, field: &str, session: &Session) -> Value {
    if let Some(value) = object.get_mut(field)
        && let Ok(data) = Data::from_json(value)
        && !session.handles_in(&data).is_empty()
    {
        *value = session.with_values(&data).to_json();
    }
    object
}

/// The arguments of a call.
fn arguments(message: &Value) -> Result<Data, String> {
    match message["params"].get("arguments") {
        None | Some(Value::Null) => Ok(Data::record([])),
        Some(args @ Value::Object(_)) => Data::from_json(args).map_err(|e| e.to_string()),
        Some(_) => Err("the `arguments` of a call are an object".into()),
    }
}

/// True if the server wraps the tool's results as `{"result": …}`.
fn is_wrapped(tool: &Value) -> bool {
    let properties = tool["outputSchema"]["properties"].as_object();
    properties.is_some_and(|p| p.len() == 1 && p.contains_key("result"))
}

/// Leaves of an approved tool what was approved, which is its name, description and schemas, and what is no
/// text.
fn approved_alone(tool: &mut Value) {
    let Some(fields) = tool.as_object_mut() else { return };
    fields.retain(|name, _| APPROVED.contains(&name.as_str()));
    if let Some(annotations) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|_, value| value.is_boolean());
    }
    if let Some(execution) = fields.get_mut("execution").and_then(Value::as_object_mut) {
        execution.retain(|name, value| {
            name == "taskSupport" && value.as_str().is_some_and(|text| TASK_SUPPORT.contains(&text))
        });
    }
}
