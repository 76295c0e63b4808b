//! The guard between a client of the Model Context Protocol on standard input and output and its servers,
//! which are processes or addresses.
//!
//! Entry points: [`guard_stdio`], and [`describe`] for what is approved of a server.
//!
//! Invariant: nothing but messages that [`guard::Proxy`] or [`guard::Gateway`] gave is written to any side.
//! Invariant: what waits to be written is bounded; whoever doesn't read is not read from, and then left.
//! Invariant: when the client leaves or this function returns, the process groups of the servers have been
//! ended.

mod decisions;
mod describe;
#[cfg(feature = "http")]
mod front;
#[cfg(unix)]
mod hook;
#[cfg(not(unix))]
#[path = "hook_elsewhere.rs"]
mod hook;
mod http;
mod labels;
mod outlet;
mod peer;
mod running;

pub use ::guard::Note;
pub use ::guard::{AnswerForm, Inquiry, OwnDecision, Param, ToolSpec};
pub use decisions::DecisionLog;
pub use describe::{describe, offered};
#[cfg(feature = "http")]
pub use front::{FrontLog, HttpFront};
pub use hook::{HookAnswer, ask, hook_folder, tell_conversation, tell_request};
pub use labels::LabelStore;

use ::guard::{
    Action, Approval, Gateway, GatewayServer, KeptLabel, Keys, Proxy, Routed, Session, SessionOptions, Trust,
    short_name,
};
use core_ir::{Code, Data, Stated};
use diagnostics::Diagnostic;
use hook::{Asked, Hooks};
use outlet::Outlet;
use peer::Line;
use policy::Policy;
use running::{Heard, Running};
use runtime::{CancellationToken, PinState, Pins, Redactor, Secret, ServerTool};
use serde_json::Value;
use session::server_list::ListedServer;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

/// Time for the answers to a client that has closed its end.
const LINGER: Duration = Duration::from_secs(10);

/// The servers of a guard.
#[derive(Clone, Debug)]
pub enum Guarded {
    /// One, whose tools keep their names.
    One(ListedServer),
    /// The servers of a list, behind one endpoint and in one session.
    List(Vec<ListedServer>),
}

/// Options of a guard.
#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// The servers.
    pub servers: Guarded,
    /// The policy.
    pub policy: Arc<Policy>,
    /// Name of the client's model, for its clearance.
    pub model: Option<String>,
    /// The approved descriptions, by the names of servers.
    pub pins: Pins,
    /// Labels of what tools have written in earlier sessions; without them what tools read has the highest.
    pub labels: Option<Arc<LabelStore>>,
    /// The folder in which the client's hooks find the guard of a list, if they shall.
    pub hooks: Option<PathBuf>,
    /// Secrets of the user's environment.
    pub secrets: Vec<Secret>,
    /// Puts questions about handles to a quarantined model, if there is one.
    pub quarantine: Option<Quarantine>,
    /// True if nothing is refused, and what would be is told.
    pub observe: bool,
    /// The most bytes of a message.
    pub max_message: usize,
}

/// The answer to a question about a handle.
pub type Answered = Pin<Box<dyn Future<Output = Result<Data, String>> + Send>>;

/// A quarantined model: it has no tools and sees nothing but the question and what it is about.
#[derive(Clone)]
pub struct Quarantine {
    /// Its name, for its clearance.
    pub model: String,
    /// Puts a question to it.
    pub ask: Arc<dyn Fn(Inquiry) -> Answered + Send + Sync>,
}

impl std::fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quarantine").field("model", &self.model).finish_non_exhaustive()
    }
}

/// How a guard ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardEnd {
    /// The client left.
    ClientLeft,
    /// It was canceled.
    Canceled,
    /// The only server ended first, or sent what can't be read.
    ServerGone(String),
}

/// Where notes go, with the server that one is about.
pub type Log<'l> = &'l mut (dyn FnMut(Option<&str>, &Note) + Send);

/// Facts about a server: its approved descriptions in the lock file, and labels of what was written to it.
struct Pinned {
    pins: Arc<Pins>,
    server: String,
    labels: Option<Arc<LabelStore>>,
    /// Name under which labels are kept.
    identity: String,
    /// Secrets of the user and of other servers.
    secrets: Redactor,
}

impl Pinned {
    fn labels(&self) -> Result<&LabelStore, String> {
        self.labels.as_deref().ok_or_else(|| "this guard has no file of labels".into())
    }
}

impl Trust for Pinned {
    fn tool(&self, tool: &Value) -> Approval {
        let state = self.pins.state(&self.server, &server_tool(tool));
        match (&state, state.refusal()) {
            (PinState::Approved, _) => Approval::Approved,
            (_, Some(why)) => Approval::Changed(why),
            (_, None) => Approval::Missing,
        }
    }

    fn stated(&self, ifc: &Value) -> Stated {
        runtime::stated_label(ifc)
    }

    fn has_secret(&self, message: &Value) -> bool {
        self.secrets.finds(message)
    }

    fn keep(&self, keys: &Keys, label: &KeptLabel) -> Result<(), String> {
        self.labels()?.keep(&self.identity, keys, label)
    }

    fn kept(&self, keys: &Keys) -> Result<Vec<KeptLabel>, String> {
        self.labels()?.kept(&self.identity, keys)
    }
}

/// The secrets that a server must not be told: those of the user and of the others. Its own it has.
fn secrets_for(server: &ListedServer, options: &GuardOptions) -> Redactor {
    let own: Vec<Secret> = server.secrets().collect();
    let listed = match &options.servers {
        Guarded::One(_) => &[][..],
        Guarded::List(servers) => servers,
    };
    let others = listed.iter().flat_map(ListedServer::secrets);
    Redactor::new(options.secrets.iter().cloned().chain(others).filter(|secret| !own.contains(secret)))
}

fn server_tool(tool: &Value) -> ServerTool {
    let text = |field: &str| tool[field].as_str().unwrap_or_default();
    let output = tool.get("outputSchema").filter(|o| !o.is_null()).cloned();
    ServerTool::new(text("name"), text("description"), tool["inputSchema"].clone(), output)
}

/// The guard of one server or of several.
enum Core {
    One(Box<Proxy<Pinned>>),
    Many(Box<Gateway<Pinned>>),
}

impl Core {
    fn new(options: &GuardOptions) -> Result<Core, String> {
        let model = options.model.as_deref().map(Into::into);
        let quarantine = options.quarantine.as_ref().map(|q| q.model.as_str().into());
        let session_options = SessionOptions { model, quarantine, ..SessionOptions::default() };
        let session = Session::new(options.policy.clone(), &session_options);
        let pins = Arc::new(options.pins.clone());
        let trust = |server: &ListedServer| Pinned {
            pins: pins.clone(),
            server: server.name.clone(),
            labels: options.labels.clone(),
            identity: labels::identity(server),
            secrets: secrets_for(server, options),
        };
        match &options.servers {
            Guarded::One(server) => {
                Ok(Core::One(Box::new(Proxy::new(session, trust(server), options.observe))))
            }
            Guarded::List(servers) => {
                let member = |server: &ListedServer| GatewayServer {
                    name: server.name.clone(),
                    trust: trust(server),
                    is_approved: pins.knows(&server.name),
                };
                let members = servers.iter().map(member).collect();
                Gateway::new(session, members, options.observe).map(|gateway| Core::Many(Box::new(gateway)))
            }
        }
    }

    fn client_says(&mut self, line: &str) -> Vec<Routed> {
        match self {
            Core::One(proxy) => of_first(proxy.from_client(line)),
            Core::Many(gateway) => gateway.from_client(line),
        }
    }

    fn server_says(&mut self, server: usize, line: &str) -> Vec<Routed> {
        match self {
            Core::One(proxy) => of_first(proxy.from_server(line)),
            Core::Many(gateway) => gateway.from_server(server, line),
        }
    }

    fn server_gone(&mut self, server: usize, how: &str) -> Vec<Routed> {
        match self {
            Core::One(proxy) => of_first(proxy.server_gone(how)),
            Core::Many(gateway) => gateway.server_gone(server, how),
        }
    }

    fn is_idle(&self) -> bool {
        match self {
            Core::One(proxy) => proxy.is_idle(),
            Core::Many(gateway) => gateway.is_idle(),
        }
    }

    fn set_time(&mut self, now: Duration) {
        if let Core::Many(gateway) = self {
            gateway.set_time(now);
        }
    }

    fn deadline(&self) -> Option<Duration> {
        match self {
            Core::One(_) => None,
            Core::Many(gateway) => gateway.deadline(),
        }
    }

    /// Decides a call of a tool that the client has by itself.
    fn own_tool(&mut self, tool: &str, input: &Value) -> (OwnDecision, Vec<Routed>) {
        match self {
            // INVARIANT: only the guard of a list listens.
            Core::One(_) => (OwnDecision::Allowed, Vec::new()),
            Core::Many(gateway) => gateway.own_tool(tool, input),
        }
    }

    /// Takes the answer of the quarantined model.
    fn quarantine_said(&mut self, number: u64, said: Result<Data, String>) -> Vec<Routed> {
        match self {
            Core::One(proxy) => of_first(proxy.quarantine_said(number, said)),
            Core::Many(gateway) => gateway.quarantine_said(number, said),
        }
    }

    /// The user has begun a new conversation.
    fn begin_again(&mut self) -> Vec<Routed> {
        match self {
            Core::One(proxy) => of_first(proxy.begin_again()),
            Core::Many(gateway) => gateway.begin_again(),
        }
    }

    fn assume_highest(&mut self, by: &str) {
        match self {
            Core::One(proxy) => proxy.assume_highest(by),
            Core::Many(gateway) => gateway.assume_highest(by),
        }
    }

    /// A server is started again.
    fn server_back(&mut self, server: usize) -> Vec<Routed> {
        match self {
            // INVARIANT: the guard of one server ends with it.
            Core::One(_) => Vec::new(),
            Core::Many(gateway) => gateway.server_back(server),
        }
    }

    /// Takes note of what the user asks for.
    fn user_asks(&mut self, text: &str) {
        match self {
            Core::One(proxy) => proxy.user_asks(text),
            Core::Many(gateway) => gateway.user_asks(text),
        }
    }

    fn expire(&mut self) -> Vec<Routed> {
        match self {
            Core::One(_) => Vec::new(),
            Core::Many(gateway) => gateway.expire(),
        }
    }
}

fn of_first(actions: Vec<Action>) -> Vec<Routed> {
    let routed = |action| match action {
        Action::ToClient(message) => Routed::ToClient(message),
        Action::ToServer(message) => Routed::ToServer(0, message),
        Action::Ask(inquiry) => Routed::Ask(inquiry),
        Action::Note(note) => Routed::Note(None, note),
    };
    actions.into_iter().map(routed).collect()
}

/// The name under which the tools of a listed server are known.
pub fn tool_prefix(server: &str) -> String {
    format!("{}{}", short_name(server), ::guard::SERVER_SEPARATOR)
}

/// Guards servers for one client on standard input and output, which is one session.
///
/// # Errors
/// The only server can't be started, or two servers of a list have the same name for tools, in words for
/// people.
pub async fn guard_stdio(
    options: GuardOptions,
    cancel: &CancellationToken,
    log: Log<'_>,
) -> Result<GuardEnd, String> {
    let mut hooks = match (&options.hooks, &options.servers) {
        (Some(_), Guarded::One(_)) => return Err("hooks need a list of servers: `--mcp-config FILE`".into()),
        (Some(folder), Guarded::List(_)) => Some(Hooks::listen(folder)?),
        (None, _) => None,
    };
    let written = Arc::new(Notify::new());
    let ends = (peer::read_stdin(options.max_message), Outlet::stdout(written.clone()));
    guard_between(&options, ends, written, &mut hooks, cancel, log).await
}

/// Guards servers for one client, whose lines are those of a queue.
async fn guard_between(
    options: &GuardOptions,
    (mut client, to_client): (mpsc::Receiver<Line>, Outlet),
    written: Arc<Notify>,
    hooks: &mut Option<Hooks>,
    cancel: &CancellationToken,
    log: Log<'_>,
) -> Result<GuardEnd, String> {
    let (send, mut events) = mpsc::channel(1);
    let mut guard = Running::start(options, to_client, send, written.clone(), log)?;
    // Once the client has closed its end, what it has asked for is answered for a while.
    let mut leaving = None;
    let end = loop {
        if leaving.is_some() && guard.core.is_idle() {
            break GuardEnd::ClientLeft;
        }
        let wait = [leaving, guard.deadline()].into_iter().flatten().min();
        let wires = &guard.wires;
        let event = tokio::select! {
            () = cancel.cancelled() => break GuardEnd::Canceled,
            () = sleep_until(wait.unwrap_or_else(Instant::now)), if wait.is_some() => None,
            () = written.notified() => continue,
            line = client.recv(), if leaving.is_none() && wires.may_read_client() => Some(Heard::Client(line)),
            asked = next_asked(hooks) => Some(Heard::Own(asked)),
            Some((number, said)) = guard.answers.recv() => Some(Heard::Quarantine(number, said)),
            Some((tag, event)) = events.recv(), if wires.to_client.is_free() => Some(Heard::Server(tag, event)),
        };
        let end = match event {
            None if leaving.is_some_and(|at| at <= Instant::now()) => Some(GuardEnd::ClientLeft),
            Some(Heard::Client(None)) => {
                leaving = Some(Instant::now() + LINGER);
                continue;
            }
            event => guard.heard(event, log),
        };
        if let Some(end) = end {
            break end;
        }
    };
    // Servers must not wait for somebody to read what they say.
    drop(events);
    guard.close(&end).await;
    Ok(end)
}

/// The next question of the client's hooks; never, if there are none.
async fn next_asked(hooks: &mut Option<Hooks>) -> Asked {
    if let Some(hooks) = hooks
        && let Some(asked) = hooks.asked.recv().await
    {
        return asked;
    }
    std::future::pending().await
}

/// A server as far as a policy is about it: its name, whether somebody approved it, and its tools.
#[derive(Clone, Debug)]
pub struct DeclaredServer {
    /// Its name in the client's list; `None` for a server that is guarded alone, whose tools keep their
    /// names.
    pub name: Option<String>,
    /// True if somebody approved it.
    pub is_approved: bool,
    /// Its tools.
    pub tools: Vec<ToolSpec>,
}

/// The tools of servers as a policy declares them in a guard of these servers, and the policy with the names
/// that they have there.
///
/// # Errors
/// The policy does not fit the tools.
pub fn declared(
    policy: Arc<Policy>,
    servers: &[DeclaredServer],
) -> Result<(Code, Arc<Policy>), Vec<Diagnostic>> {
    let mut session = Session::new(policy, &SessionOptions::default());
    for server in servers {
        let prefix = server.name.as_deref().map_or(String::new(), tool_prefix);
        if let Some(name) = &server.name {
            session.add_server(&short_name(name), server.is_approved);
        }
        session.offer(server.tools.iter().map(|tool| {
            let name = format!("{prefix}{}", tool.name);
            ToolSpec { name: name.into(), ..tool.clone() }
        }));
        if let Some(name) = &server.name {
            session.close_server(&short_name(name));
        }
    }
    session.declared()
}

/// Decides a call of a tool that a client has by itself where no guard is there to be asked: nothing is known
/// of what the conversation has read.
pub fn decide_alone(policy: Arc<Policy>, tool: &str, input: &Value) -> OwnDecision {
    let session = Session::new(policy, &SessionOptions::default());
    let pins = Arc::new(Pins::default());
    let (server, identity, secrets) = (String::new(), String::new(), Redactor::default());
    let nobody = Pinned { pins, server, labels: None, identity, secrets };
    // A list without servers is a session all the same.
    let servers: Vec<GatewayServer<Pinned>> =
        Vec::from([GatewayServer { name: String::new(), trust: nobody, is_approved: false }]);
    match Gateway::new(session, servers, false) {
        Ok(mut gateway) => {
            gateway.assume_highest("what was read before");
            gateway.own_tool(tool, input).0
        }
        // INVARIANT: one server has the name of no other.
        Err(_) => unreachable!("two servers of a name"),
    }
}
