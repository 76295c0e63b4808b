//! The guard between a client and several servers of the Model Context Protocol, which are one session: what
//! one server returns decides what the others may be asked.
//!
//! Each server has a guard of its own ([`Upstream`]), which decides about labels. Here messages find their
//! server and lists are merged; no label is known. A tool or a prompt is named `SERVER__NAME`, a resource
//! belongs to the server that named it first.
//!
//! It is a machine without input, output and clock: [`Gateway::set_time`] says what time it is.
//!
//! Invariant: a server that is slow, wrong or gone delays a list by [`WAIT`] at most, and nothing else of the
//! other servers.

mod lists;
mod own_tools;
mod owners;

pub use own_tools::OwnDecision;

use crate::handle_tools::{self, HandleTools, Inquiry};
use crate::message::{self as msg, INVALID_REQUEST, Message};
use crate::note::Note;
use crate::proxy::{not_json, policy_problem};
use crate::session::{SERVER_SEPARATOR, Session};
use crate::upstream::{Action, MAX_PENDING, Step, Trust, Upstream, own_number};
use core_ir::Data;
use diagnostics::clip;
use lists::{Gather, LISTS, List};
use owners::Owners;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Time for servers to start before the client is answered without them. Clients wait ten seconds or more.
pub const START: Duration = Duration::from_secs(8);
/// Time for servers to answer for a list.
pub const WAIT: Duration = Duration::from_secs(20);
/// Revisions of the protocol with a handshake, the newest last.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Error code of JSON-RPC for a method that is not known.
const METHOD_NOT_FOUND: i64 = -32601;
/// Error code of JSON-RPC for parameters that are wrong.
const INVALID_PARAMS: i64 = -32602;
/// Error code of the protocol for a resource that nobody has.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// The beginning of the gateway's progress tokens.
const TOKEN: &str = "entail-guard-";

/// A server of a gateway.
#[derive(Debug)]
pub struct GatewayServer<T> {
    /// Its name in the client's list.
    pub name: String,
    /// The user's approval of it.
    pub trust: T,
    /// True if somebody approved it. Then the policy may name its tools without the server.
    pub is_approved: bool,
}

/// An action of the driver of a gateway. Servers are numbered in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
pub enum Routed {
    /// Send the message to the client.
    ToClient(Value),
    /// Send the message to the server.
    ToServer(usize, Value),
    /// Put the question to a quarantined model.
    Ask(Inquiry),
    /// Tell whoever keeps the policy; about this server, if it is about one.
    Note(Option<usize>, Note),
}

/// State of a server.
#[derive(Debug)]
enum State {
    /// It has not answered `initialize`.
    Starting,
    /// It has: its answer.
    Ready {
        capabilities: Value,
        instructions: Option<String>,
        /// True once it has been told that the client is ready.
        is_told: bool,
    },
    /// It is gone, for this reason.
    Gone(String),
}

/// A server with its guard.
struct Member<T> {
    /// Its name as part of the names of its tools.
    short: String,
    guard: Upstream<T>,
    state: State,
}

impl<T> Member<T> {
    /// Returns whether it is ready and has a capability.
    fn has(&self, capability: &str) -> bool {
        match &self.state {
            State::Ready { capabilities, .. } => capabilities.get(capability).is_some(),
            _ => false,
        }
    }

    fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready { .. })
    }
}

/// State of the conversation with the client.
enum Phase {
    /// It has said nothing.
    New,
    /// It waits for the answer to `initialize`.
    Starting {
        /// Its number.
        id: Value,
        /// The revision of the protocol that it asked for.
        revision: String,
        /// When it is answered at the latest.
        until: Duration,
    },
    Running,
}

/// Purpose of a request that a server has.
#[derive(Clone, Copy)]
enum Purpose {
    /// It is the client's.
    Client,
    /// A page of a list.
    Page(u64),
    /// `initialize`.
    Start,
}

/// A request that a server has.
struct Sent {
    server: usize,
    purpose: Purpose,
    /// The client's number.
    id: Value,
    /// The token by which the client knows its progress.
    token: Option<String>,
}

/// A request of the client that is under way.
enum Open {
    /// One server has it, under this number.
    Sent(u64),
    /// Several have it.
    Gather(u64),
}

/// A request of a server that the client has.
struct Asked {
    server: usize,
    /// The server's number.
    id: Value,
    /// The token by which the server knows its progress.
    token: Option<Value>,
}

/// The guard of several servers in one session.
pub struct Gateway<T> {
    session: Session,
    servers: Vec<Member<T>>,
    phase: Phase,
    now: Duration,
    next: u64,
    sent: BTreeMap<u64, Sent>,
    /// Requests of the client by their number.
    open: HashMap<String, Open>,
    gathers: BTreeMap<u64, Gather>,
    asked: BTreeMap<u64, Asked>,
    owners: Owners,
    /// `initialize` of the client, for servers that are started again.
    hello: Option<Value>,
    /// True if it refuses nothing.
    observe: bool,
    /// The guard's own tools.
    handle_tools: HandleTools,
    /// Tools that the client has by itself, with the arguments that they have had.
    own_tools: BTreeMap<String, BTreeSet<String>>,
    told_policy: bool,
}

/// The name of a server as part of the names of its tools: letters, digits, `-`, and `_` one at a time.
pub fn short_name(name: &str) -> String {
    let mut short = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        if c != '_' || !(short.is_empty() || short.ends_with('_')) {
            short.push(c);
        }
    }
    short.truncate(short.trim_end_matches('_').len());
    if short.is_empty() { "server".into() } else { short }
}

impl<T: Trust> Gateway<T> {
    /// A guard of these servers in a session that has not begun. One that observes refuses nothing and says
    /// what it would have refused.
    ///
    /// # Errors
    /// Two servers have names that differ only in characters that names of tools do not have.
    pub fn new(
        mut session: Session,
        servers: Vec<GatewayServer<T>>,
        observe: bool,
    ) -> Result<Gateway<T>, String> {
        let mut members: Vec<Member<T>> = Vec::with_capacity(servers.len());
        let mut names: HashMap<String, String> = HashMap::new();
        for GatewayServer { name, trust, is_approved } in servers {
            let short = short_name(&name);
            if let Some(other) = names.insert(short.clone(), name.clone()) {
                let (other, name) = (clip(&other), clip(&name));
                return Err(format!(
                    "the tools of the servers `{other}` and `{name}` both begin with `{short}`"
                ));
            }
            session.add_server(&short, is_approved);
            let prefix = format!("{short}{SERVER_SEPARATOR}");
            let guard = Upstream::new(&prefix, trust, observe, &mut session);
            members.push(Member { short, guard, state: State::Starting });
        }
        Ok(Gateway {
            session,
            servers: members,
            phase: Phase::New,
            now: Duration::ZERO,
            next: 0,
            sent: BTreeMap::new(),
            open: HashMap::new(),
            gathers: BTreeMap::new(),
            asked: BTreeMap::new(),
            owners: Owners::default(),
            hello: None,
            observe,
            handle_tools: HandleTools::default(),
            own_tools: BTreeMap::new(),
            told_policy: false,
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Nothing is known of what the conversation has read: its label is the highest from now on.
    pub fn assume_highest(&mut self, by: &str) {
        self.session.assume_highest(by);
    }

    /// The user has begun a new conversation, in which the model has seen nothing of the one before. Its
    /// label is the lowest, joined with those of texts that the client keeps: descriptions that nobody
    /// approved. What was asked before and is answered later raises it as before. Calls that the model chose
    /// before and that aren't decided are not made.
    pub fn begin_again(&mut self) -> Vec<Routed> {
        let (from, mut out) = (self.session.label(), Vec::new());
        self.session = self.session.fresh();
        let refused = self.handle_tools.begin_again(&self.session);
        out.extend(refused.into_iter().map(of_guard));
        for server in 0..self.servers.len() {
            let mut step = Step { session: &mut self.session, actions: Vec::new() };
            self.servers[server].guard.begin_again(&mut step);
            let actions = step.actions;
            self.act(server, actions, &mut out);
        }
        out.push(Routed::Note(None, Note::Fresh { from, to: self.session.label() }));
        self.checked(out)
    }

    /// Takes the answer of a quarantined model ([`Routed::Ask`]).
    pub fn quarantine_said(&mut self, number: u64, said: Result<Data, String>) -> Vec<Routed> {
        let actions = self.handle_tools.answered(number, said, &mut self.session);
        self.checked(actions.into_iter().map(of_guard).collect())
    }

    /// A server that was gone is started again: it is asked to begin as the first time. Calls of its tools
    /// are refused until it has.
    pub fn server_back(&mut self, server: usize) -> Vec<Routed> {
        let mut out = Vec::new();
        let Some(member) = self.servers.get_mut(server) else { return out };
        if !matches!(member.state, State::Gone(_)) {
            return out;
        }
        member.guard.server_is_new();
        member.state = State::Starting;
        out.push(Routed::Note(Some(server), Note::Back));
        if let Some(hello) = self.hello.clone() {
            self.send(server, Purpose::Start, &Value::Null, hello, &mut out);
        }
        self.checked(out)
    }

    /// Says what time it is: since some moment, the same for all calls.
    pub fn set_time(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    /// When [`Gateway::expire`] has to be called, if the time comes.
    pub fn deadline(&self) -> Option<Duration> {
        let starting = match &self.phase {
            Phase::Starting { until, .. } => Some(*until),
            _ => None,
        };
        self.gathers.values().map(|g| g.until).chain(starting).min()
    }

    /// Returns whether nobody waits for a server.
    pub fn is_idle(&self) -> bool {
        let is_idle = |m: &Member<T>| !m.is_ready() || m.guard.is_idle();
        self.servers.iter().all(is_idle)
            && self.handle_tools.is_idle()
            && !matches!(self.phase, Phase::Starting { .. })
    }

    /// Takes a line of the client.
    pub fn from_client(&mut self, line: &str) -> Vec<Routed> {
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(e) => return not_json(&e).into_iter().map(of_guard).collect(),
        };
        let mut out = Vec::new();
        match msg::envelope(&message) {
            Err(why) => {
                out.push(Routed::ToClient(msg::error(&Value::Null, INVALID_REQUEST, &why)));
                out.push(invalid_of_client(why));
            }
            Ok(Message::Request { id, method }) => self.request(&id, &method, message, &mut out),
            Ok(Message::Notification { method }) => self.notification(&method, message, &mut out),
            Ok(Message::Response { id }) => self.client_answers(&id, message, &mut out),
        }
        self.checked(out)
    }

    /// Takes a line of a server.
    pub fn from_server(&mut self, server: usize, line: &str) -> Vec<Routed> {
        let Some(member) = self.servers.get_mut(server) else { return Vec::new() };
        if matches!(member.state, State::Gone(_)) {
            return Vec::new();
        }
        let message: Value = match serde_json::from_str(line) {
            Ok(message) => message,
            Err(e) => {
                let why = format!("it is no JSON: {e}");
                return vec![Routed::Note(Some(server), Note::Invalid { by_server: true, why })];
            }
        };
        let mut step = Step { session: &mut self.session, actions: Vec::new() };
        member.guard.server_says(message, &mut step);
        let (actions, mut out) = (step.actions, Vec::new());
        self.act(server, actions, &mut out);
        self.checked(out)
    }

    /// A server is gone: every request that it has fails, and the client is told that lists have changed.
    pub fn server_gone(&mut self, server: usize, how: &str) -> Vec<Routed> {
        let mut out = Vec::new();
        self.lose(server, how, &mut out);
        self.checked(out)
    }

    /// Answers the client's requests whose time has passed with what is there.
    pub fn expire(&mut self) -> Vec<Routed> {
        let mut out = Vec::new();
        if let Phase::Starting { until, .. } = &self.phase
            && *until <= self.now
        {
            for (server, _) in
                self.servers.iter().enumerate().filter(|(_, m)| matches!(m.state, State::Starting))
            {
                let why = format!("it has not started within {} s", START.as_secs());
                out.push(left_out(server, "the server", &why));
            }
            self.answer_start(&mut out);
        }
        let overdue = self.gathers.iter().filter(|(_, g)| g.until <= self.now);
        let overdue: Vec<u64> = overdue.map(|(number, _)| *number).collect();
        for number in overdue {
            let waiting = self.gathers.get(&number).into_iter().flat_map(|g| &g.parts);
            let waiting: Vec<usize> = waiting.filter(|(_, p)| !p.is_done).map(|(s, _)| *s).collect();
            for server in waiting {
                let why = format!("it has not answered within {} s", WAIT.as_secs());
                out.push(left_out(server, "what the server lists", &why));
            }
            self.cancel_pages(number, &mut out);
            self.answer_gather(number, &mut out);
        }
        self.checked(out)
    }

    fn checked(&mut self, mut out: Vec<Routed>) -> Vec<Routed> {
        let problem = policy_problem(&self.session, &mut self.told_policy);
        out.extend(problem.map(|note| Routed::Note(None, note)));
        out
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Gives a server's guard a message of the client.
    fn give(&mut self, server: usize, message: Value, out: &mut Vec<Routed>) {
        let Some(member) = self.servers.get_mut(server) else { return };
        let mut step = Step { session: &mut self.session, actions: Vec::new() };
        member.guard.client_says(message, &mut step);
        let actions = step.actions;
        self.act(server, actions, out);
    }

    fn act(&mut self, server: usize, actions: Vec<Action>, out: &mut Vec<Routed>) {
        for action in actions {
            match action {
                Action::ToServer(message) => out.push(Routed::ToServer(server, message)),
                Action::Note(note) => out.push(Routed::Note(Some(server), note)),
                // INVARIANT: the guard of one of several servers has no tools of its own.
                Action::Ask(_) => {}
                Action::ToClient(message) => self.pass_on(server, message, out),
            }
        }
    }

    // Messages of the client.

    fn request(&mut self, id: &Value, method: &str, message: Value, out: &mut Vec<Routed>) {
        let mut refuse = |code, why: &str| out.push(Routed::ToClient(msg::error(id, code, why)));
        if self.open.contains_key(&msg::key(id)) || self.handle_tools.is_under_way(id) {
            return refuse(INVALID_REQUEST, &format!("a request with the id {id} is under way"));
        }
        if self.open.len() >= MAX_PENDING {
            return refuse(INVALID_REQUEST, &format!("more than {MAX_PENDING} requests are under way"));
        }
        match (method, &self.phase) {
            ("ping", _) => out.push(Routed::ToClient(json!({"jsonrpc": "2.0", "id": id, "result": {}}))),
            ("initialize", Phase::New) => self.start(id, &message, out),
            ("initialize", _) => refuse(INVALID_REQUEST, "`initialize` was sent before"),
            // Clients of the revision without a handshake fall back to one with it.
            ("server/discover", _) => {
                refuse(
                    METHOD_NOT_FOUND,
                    "several servers behind one guard need the handshake: send `initialize`",
                );
            }
            (_, Phase::New | Phase::Starting { .. }) => refuse(INVALID_REQUEST, "`initialize` comes first"),
            ("tools/call", Phase::Running) => self.call(id, message, out),
            ("logging/setLevel", Phase::Running) => {
                self.gather(id, "logging", None, method, message["params"].clone(), out);
            }
            _ => match LISTS.iter().find(|list| list.method == method) {
                Some(_) if message["params"].get("cursor").is_some_and(|c| !c.is_null()) => {
                    refuse(INVALID_PARAMS, "there is no such cursor: all is on the first page");
                }
                Some(list) => self.gather(id, list.capability, Some(list), method, json!({}), out),
                None => self.route(id, method, message, out),
            },
        }
    }

    fn start(&mut self, id: &Value, message: &Value, out: &mut Vec<Routed>) {
        let revision = message["params"]["protocolVersion"].as_str().unwrap_or_default().into();
        self.phase = Phase::Starting { id: id.clone(), revision, until: self.now + START };
        self.hello = Some(message.clone());
        for server in 0..self.servers.len() {
            if matches!(self.servers[server].state, State::Starting) {
                self.send(server, Purpose::Start, id, message.clone(), out);
            }
        }
        self.start_if_all_have(out);
    }

    /// Sends a request to a server under a number of its own.
    fn send(
        &mut self,
        server: usize,
        purpose: Purpose,
        id: &Value,
        mut message: Value,
        out: &mut Vec<Routed>,
    ) -> u64 {
        let number = self.number();
        message["id"] = number.into();
        let token = message["params"]["_meta"].get("progressToken").map(msg::key);
        self.sent.insert(number, Sent { server, purpose, id: id.clone(), token });
        if matches!(purpose, Purpose::Client) {
            self.open.insert(msg::key(id), Open::Sent(number));
        }
        self.give(server, message, out);
        number
    }

    fn call(&mut self, id: &Value, mut message: Value, out: &mut Vec<Routed>) {
        let Some(name) = message["params"]["name"].as_str() else {
            let why = "a call has the `name` of a tool";
            return out.push(Routed::ToClient(msg::error(id, INVALID_REQUEST, why)));
        };
        if !self.observe && self.session.has_handles() && handle_tools::is_own(name) {
            let actions = self.handle_tools.call(message, &mut self.session);
            return out.extend(actions.into_iter().map(of_guard));
        }
        let found = self.named(name);
        match found {
            Ok((server, bare)) => {
                message["params"]["name"] = bare.into();
                self.send(server, Purpose::Client, id, message, out);
            }
            Err(why) => {
                let refused = self
                    .session
                    .refuse(name, &why.unwrap_or_else(|| format!("there is no tool `{}`", clip(name))));
                let text = format!("entail guard refused this call: {refused}");
                out.push(Routed::Note(None, Note::Refused(refused)));
                out.push(Routed::ToClient(msg::tool_error(id, &text, msg::is_stateless(&message))));
            }
        }
    }

    /// The server of a name and its own name for it. Without such a server, or if it is not there, why not.
    fn named(&self, name: &str) -> Result<(usize, String), Option<String>> {
        let (short, bare) = name.split_once(SERVER_SEPARATOR).ok_or(None)?;
        let server = self.servers.iter().position(|m| m.short == short).ok_or(None)?;
        match &self.servers[server].state {
            State::Ready { .. } => Ok((server, bare.into())),
            State::Starting => Err(Some(format!("the server `{short}` has not started yet"))),
            State::Gone(how) => Err(Some(format!("the server `{short}` is gone: {how}"))),
        }
    }

    /// Sends a request to the one server that it is for.
    fn route(&mut self, id: &Value, method: &str, mut message: Value, out: &mut Vec<Routed>) {
        let params = &message["params"];
        let found = match method {
            "prompts/get" => {
                self.prompt(&params["name"]).map(|(server, bare)| (server, Some(("/params/name", bare))))
            }
            "completion/complete" if params["ref"]["type"] == "ref/prompt" => {
                let found = self.prompt(&params["ref"]["name"]);
                found.map(|(server, bare)| (server, Some(("/params/ref/name", bare))))
            }
            "completion/complete" => self.resource(&params["ref"]["uri"]).map(|server| (server, None)),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.resource(&params["uri"]).map(|server| (server, None))
            }
            _ => match self.only(|_| true) {
                Some(server) => Ok((server, None)),
                None => Err((
                    METHOD_NOT_FOUND,
                    format!("of several servers none is known for `{}`", clip(method)),
                )),
            },
        };
        match found {
            Ok((server, renamed)) => {
                if let Some((at, bare)) = renamed
                    && let Some(name) = message.pointer_mut(at)
                {
                    *name = bare.into();
                }
                self.send(server, Purpose::Client, id, message, out);
            }
            Err((code, why)) => out.push(Routed::ToClient(msg::error(id, code, &why))),
        }
    }

    fn prompt(&self, name: &Value) -> Result<(usize, String), (i64, String)> {
        let name = name.as_str().unwrap_or_default();
        let found = self.named(name);
        found.map_err(|why| {
            (INVALID_PARAMS, why.unwrap_or_else(|| format!("there is no prompt `{}`", clip(name))))
        })
    }

    fn resource(&self, uri: &Value) -> Result<usize, (i64, String)> {
        let uri = uri.as_str().unwrap_or_default();
        let owner = self.owners.owner(uri).or_else(|| self.only(|m| m.has("resources")));
        match owner.filter(|server| self.servers[*server].is_ready()) {
            Some(server) => Ok(server),
            None => Err((RESOURCE_NOT_FOUND, format!("no server lists the resource `{}`", clip(uri)))),
        }
    }

    /// The only ready server of this kind, if there is one.
    fn only(&self, is: impl Fn(&Member<T>) -> bool) -> Option<usize> {
        let mut all = self.servers.iter().enumerate().filter(|(_, m)| m.is_ready() && is(m));
        let first = all.next()?.0;
        all.next().is_none().then_some(first)
    }

    fn notification(&mut self, method: &str, message: Value, out: &mut Vec<Routed>) {
        match method {
            "notifications/cancelled" => self.cancel(message, out),
            "notifications/progress" => {
                let token = message["params"]["progressToken"].as_str().and_then(|t| t.strip_prefix(TOKEN));
                let number = token.and_then(|t| t.parse().ok());
                if let Some(Asked { server, token: Some(token), .. }) =
                    number.and_then(|n: u64| self.asked.get(&n))
                {
                    let (server, mut message) = (*server, message);
                    message["params"]["progressToken"] = token.clone();
                    self.give(server, message, out);
                }
            }
            "notifications/initialized" => {
                for server in 0..self.servers.len() {
                    self.tell_ready(server, out);
                }
            }
            "notifications/roots/list_changed" => {
                for server in 0..self.servers.len() {
                    if self.servers[server].is_ready() {
                        self.give(server, message.clone(), out);
                    }
                }
            }
            _ => match self.only(|_| true) {
                Some(server) => self.give(server, message, out),
                None => out.push(invalid_of_client(format!(
                    "of several servers none is known for `{}`",
                    clip(method)
                ))),
            },
        }
    }

    /// Tells a server once that the client is ready.
    fn tell_ready(&mut self, server: usize, out: &mut Vec<Routed>) {
        if !matches!(self.phase, Phase::Running) {
            return;
        }
        if let State::Ready { is_told, .. } = &mut self.servers[server].state
            && !std::mem::replace(is_told, true)
        {
            self.give(server, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), out);
        }
    }

    fn cancel(&mut self, mut message: Value, out: &mut Vec<Routed>) {
        self.handle_tools.canceled(&message["params"]["requestId"]);
        match self.open.remove(&msg::key(&message["params"]["requestId"])) {
            Some(Open::Sent(number)) => {
                if let Some(sent) = self.sent.remove(&number) {
                    message["params"]["requestId"] = number.into();
                    self.give(sent.server, message, out);
                }
            }
            Some(Open::Gather(number)) => {
                self.cancel_pages(number, out);
                self.gathers.remove(&number);
            }
            None => {}
        }
    }

    /// Cancels the requests for a list that servers have.
    fn cancel_pages(&mut self, gather: u64, out: &mut Vec<Routed>) {
        let is_of = |sent: &Sent| matches!(sent.purpose, Purpose::Page(g) if g == gather);
        let numbers: Vec<u64> = self.sent.iter().filter(|(_, s)| is_of(s)).map(|(n, _)| *n).collect();
        for number in numbers {
            if let Some(sent) = self.sent.remove(&number) {
                self.give(sent.server, canceled(&number.into()), out);
            }
        }
    }

    fn client_answers(&mut self, id: &Value, mut message: Value, out: &mut Vec<Routed>) {
        let Some(Asked { server, id, .. }) = id.as_u64().and_then(|n| self.asked.remove(&n)) else {
            let why = format!("it answers the request {}, which is not open", clip(&id.to_string()));
            return out.push(invalid_of_client(why));
        };
        message["id"] = id;
        self.give(server, message, out);
    }

    // Messages of servers, as their guards have passed them on.

    fn pass_on(&mut self, server: usize, message: Value, out: &mut Vec<Routed>) {
        match msg::envelope(&message) {
            Ok(Message::Response { id }) => self.answered(server, &id, message, out),
            Ok(Message::Request { id, method }) => self.asks(server, id, &method, message, out),
            Ok(Message::Notification { method }) => self.notifies(server, &method, message, out),
            // INVARIANT: a guard passes on nothing but messages.
            Err(_) => {}
        }
    }

    fn answered(&mut self, server: usize, id: &Value, mut message: Value, out: &mut Vec<Routed>) {
        let Some(sent) = id.as_u64().and_then(|n| self.sent.remove(&n)) else { return };
        match sent.purpose {
            Purpose::Start => self.started(server, message, out),
            Purpose::Page(gather) => self.page_came(gather, server, message, out),
            Purpose::Client => {
                self.open.remove(&msg::key(&sent.id));
                self.owners.add_links(&message["result"], server);
                message["id"] = sent.id;
                out.push(Routed::ToClient(message));
            }
        }
    }

    fn asks(&mut self, server: usize, id: Value, method: &str, mut message: Value, out: &mut Vec<Routed>) {
        let number = self.number();
        message["id"] = number.into();
        let own = message["params"]["_meta"].get_mut("progressToken");
        let token = own.map(|t| std::mem::replace(t, format!("{TOKEN}{number}").into()));
        // All servers are one to the client: the user has to know which of them asks.
        if method == "elicitation/create"
            && own_number(&id).is_none()
            && let Some(text) = message["params"]["message"].as_str()
        {
            let text = format!("The server `{}` asks: {text}", self.servers[server].short);
            message["params"]["message"] = text.into();
        }
        self.asked.insert(number, Asked { server, id, token });
        out.push(Routed::ToClient(message));
    }

    fn notifies(&mut self, server: usize, method: &str, mut message: Value, out: &mut Vec<Routed>) {
        match method {
            "notifications/cancelled" => {
                let id = &message["params"]["requestId"];
                let is_it = |a: &Asked| a.server == server && a.id == *id;
                let number = self.asked.iter().find(|(_, a)| is_it(a)).map(|(number, _)| *number);
                let Some(number) = number else { return };
                self.asked.remove(&number);
                message["params"]["requestId"] = number.into();
            }
            "notifications/progress" => {
                let token = Some(msg::key(&message["params"]["progressToken"]));
                if !self.sent.values().any(|s| s.server == server && s.token == token) {
                    let why = "it tells the progress of a request that it does not have".into();
                    return out.push(Routed::Note(Some(server), Note::Invalid { by_server: true, why }));
                }
            }
            // Until the client is answered, it has no lists that could change.
            _ if !matches!(self.phase, Phase::Running) && method.ends_with("/list_changed") => return,
            _ => {}
        }
        out.push(Routed::ToClient(message));
    }

    // The beginning.

    fn started(&mut self, server: usize, mut message: Value, out: &mut Vec<Routed>) {
        if !matches!(self.servers[server].state, State::Starting) {
            return;
        }
        let revision = message["result"]["protocolVersion"].as_str();
        let wrong = match (&message["error"], revision) {
            (Value::Null, Some(revision)) if REVISIONS.contains(&revision) => None,
            (Value::Null, revision) => {
                let revision = clip(revision.unwrap_or("none"));
                Some(format!(
                    "it speaks the revision `{revision}` of the protocol, which is none with a handshake"
                ))
            }
            (error, _) => {
                let why = error["message"].as_str().unwrap_or("no reason");
                Some(format!("it refused to start: {}", diagnostics::clip_to(why, 200)))
            }
        };
        if let Some(why) = wrong {
            return self.lose(server, &why, out);
        }
        let result = &mut message["result"];
        let capabilities = result["capabilities"].take();
        let instructions = result["instructions"].as_str().map(String::from);
        self.servers[server].state = State::Ready { capabilities, instructions, is_told: false };
        match self.phase {
            // The client has its answer: it has to ask again.
            Phase::Running => {
                self.tell_ready(server, out);
                self.lists_changed(server, out);
            }
            _ => self.start_if_all_have(out),
        }
    }

    fn start_if_all_have(&mut self, out: &mut Vec<Routed>) {
        if !self.servers.iter().any(|m| matches!(m.state, State::Starting)) {
            self.answer_start(out);
        }
    }

    /// Answers `initialize` for the servers that are there.
    fn answer_start(&mut self, out: &mut Vec<Routed>) {
        if !matches!(self.phase, Phase::Starting { .. }) {
            return;
        }
        let Phase::Starting { id, revision, .. } = std::mem::replace(&mut self.phase, Phase::Running) else {
            return;
        };
        // What an older server does not know is not asked of it. So the client has the revision that it
        // wants.
        let known = REVISIONS.iter().find(|known| **known == revision);
        let revision = known.unwrap_or(&REVISIONS[REVISIONS.len() - 1]);
        let mut result = json!({"protocolVersion": revision, "capabilities": self.capabilities(),
            "serverInfo": {"name": "entail-guard", "version": env!("CARGO_PKG_VERSION")}});
        let mut texts = Vec::new();
        for member in &self.servers {
            if let State::Ready { instructions: Some(text), .. } = &member.state {
                texts.push(format!("## {}\n\n{text}", member.short));
            }
        }
        if !texts.is_empty() {
            result["instructions"] = texts.join("\n\n").into();
        }
        out.push(Routed::ToClient(json!({"jsonrpc": "2.0", "id": id, "result": result})));
    }

    /// The capabilities of all servers together, those that are not there yet included.
    fn capabilities(&self) -> Value {
        let is_late = self.servers.iter().any(|m| matches!(m.state, State::Starting));
        let mut all = Map::new();
        all.insert("tools".into(), json!({"listChanged": true}));
        for (name, value) in [
            ("prompts", json!({"listChanged": true})),
            ("resources", json!({"listChanged": true, "subscribe": true})),
            ("logging", json!({})),
            ("completions", json!({})),
        ] {
            if is_late || self.servers.iter().any(|m| m.has(name)) {
                all.insert(name.into(), value);
            }
        }
        Value::Object(all)
    }

    fn lists_changed(&self, server: usize, out: &mut Vec<Routed>) {
        for list in [&lists::TOOLS, &lists::PROMPTS, &lists::RESOURCES] {
            if self.servers[server].has(list.capability) {
                let method = format!("notifications/{}/list_changed", list.capability);
                out.push(Routed::ToClient(json!({"jsonrpc": "2.0", "method": method})));
            }
        }
    }

    fn lose(&mut self, server: usize, how: &str, out: &mut Vec<Routed>) {
        let Some(member) = self.servers.get_mut(server) else { return };
        if matches!(member.state, State::Gone(_)) {
            return;
        }
        let actions = member.guard.server_gone(how);
        if matches!(self.phase, Phase::Running) {
            self.lists_changed(server, out);
        }
        self.servers[server].state = State::Gone(how.into());
        out.push(Routed::Note(Some(server), Note::Gone(how.into())));
        self.act(server, actions, out);
        let numbers: Vec<u64> =
            self.asked.iter().filter(|(_, a)| a.server == server).map(|(n, _)| *n).collect();
        for number in numbers {
            self.asked.remove(&number);
            out.push(Routed::ToClient(canceled(&number.into())));
        }
        self.start_if_all_have(out);
    }

    // Lists.

    /// Asks all servers that have a capability.
    fn gather(
        &mut self,
        id: &Value,
        capability: &str,
        list: Option<&'static List>,
        method: &str,
        params: Value,
        out: &mut Vec<Routed>,
    ) {
        let servers = self.servers.iter().enumerate().filter(|(_, m)| m.has(capability));
        let servers: Vec<usize> = servers.map(|(server, _)| server).collect();
        let number = self.number();
        let gather = Gather::new(id.clone(), list, servers.iter().copied(), self.now + WAIT);
        self.gathers.insert(number, gather);
        self.open.insert(msg::key(id), Open::Gather(number));
        for server in &servers {
            let message = json!({"jsonrpc": "2.0", "id": null, "method": method, "params": params});
            self.send(*server, Purpose::Page(number), id, message, out);
        }
        self.answer_if_done(number, out);
    }

    fn page_came(&mut self, gather: u64, server: usize, mut message: Value, out: &mut Vec<Routed>) {
        let share = lists::share(self.servers.len());
        let Some(open) = self.gathers.get_mut(&gather) else { return };
        let (id, list) = (open.id.clone(), open.list);
        let Some(part) = open.parts.get_mut(&server) else { return };
        let failed = message["error"]["message"].as_str().map(String::from);
        if let Some(list) = list
            && failed.is_none()
            && let Some(cursor) = part.take(&mut message["result"], list, share)
        {
            let next =
                json!({"jsonrpc": "2.0", "id": null, "method": list.method, "params": {"cursor": cursor}});
            self.send(server, Purpose::Page(gather), &id, next, out);
            return;
        }
        part.is_done = true;
        if part.is_cut {
            let why = format!("it lists more than {share} bytes");
            out.push(left_out(server, "a part of what the server lists", &why));
        } else if list == Some(&lists::TOOLS) && failed.is_none() {
            let short = self.servers[server].short.clone();
            self.session.close_server(&short);
        }
        if let Some(why) = failed.filter(|_| list.is_some()) {
            out.push(left_out(server, "what the server lists", &diagnostics::clip_to(&why, 200)));
        }
        self.answer_if_done(gather, out);
    }

    fn answer_if_done(&mut self, gather: u64, out: &mut Vec<Routed>) {
        if self.gathers.get(&gather).is_some_and(Gather::is_done) {
            self.answer_gather(gather, out);
        }
    }

    fn answer_gather(&mut self, gather: u64, out: &mut Vec<Routed>) {
        let Some(gather) = self.gathers.remove(&gather) else { return };
        self.open.remove(&msg::key(&gather.id));
        let (servers, owners) = (&self.servers, &mut self.owners);
        let key = gather.list.map_or("", |list| list.key);
        let is_tools = gather.list == Some(&lists::TOOLS) && !self.observe;
        let mut answer = gather.answer(|server, mut item| {
            let own = item[key].as_str()?.to_string();
            let is_kept = match key {
                "name" => {
                    item[key] = format!("{}{SERVER_SEPARATOR}{own}", servers[server].short).into();
                    true
                }
                "uri" => owners.add(&own, server),
                _ => owners.add_template(&own, server),
            };
            if !is_kept {
                out.push(left_out(
                    server,
                    &format!("the resource `{}`", clip(&own)),
                    "another server named it first",
                ));
            }
            is_kept.then_some(item)
        });
        if is_tools && let Some(tools) = answer["result"]["tools"].as_array_mut() {
            handle_tools::add_to(tools, &self.session);
        }
        out.push(Routed::ToClient(answer));
    }
}

/// An action of the guard itself.
fn of_guard(action: Action) -> Routed {
    match action {
        Action::Note(note) => Routed::Note(None, note),
        Action::Ask(inquiry) => Routed::Ask(inquiry),
        Action::ToClient(message) | Action::ToServer(message) => Routed::ToClient(message),
    }
}

fn invalid_of_client(why: String) -> Routed {
    Routed::Note(None, Note::Invalid { by_server: false, why })
}

fn left_out(server: usize, what: &str, why: &str) -> Routed {
    Routed::Note(Some(server), Note::LeftOut { what: what.into(), why: why.into() })
}

fn canceled(number: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
}
