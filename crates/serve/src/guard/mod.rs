//! The guard between a client of the Model Context Protocol on standard input and output and a server that is
//! a process.
//!
//! Entry points: [`guard_stdio`], and [`describe`] for what is approved of a server.
//!
//! Invariant: nothing but messages that [`guard::Proxy`] gave is written to either side.
//! Invariant: what waits to be written is bounded; whoever doesn't read is not read from, and then left.
//! Invariant: when the client leaves or this function returns, the server's process group has been ended.

use ::guard::{Action, Approval, Proxy, Session, SessionOptions, Trust, described_as_tool};
use core_ir::Stated;
use diagnostics::clip_to as clip;
use policy::Policy;
use runtime::{CancellationToken, PinState, Pins, ServerTool};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

pub use ::guard::Note;

/// Bytes that may wait to be written to one side before the other side is no longer read.
const QUEUE: usize = 4 << 20;
/// Bytes that may wait to be written to one side at all.
const MAX_QUEUE: usize = 64 << 20;
/// Time for a server to exit by itself when its standard input is closed.
const GRACE: Duration = Duration::from_secs(2);
/// Time for the answers to a client that has closed its end.
const LINGER: Duration = Duration::from_secs(10);
/// Time for a server to say what it offers.
const START: Duration = Duration::from_secs(60);
/// The most pages of a list.
const MAX_PAGES: usize = 100;

/// Options of a guard.
#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// The server: a program and its arguments.
    pub command: Vec<OsString>,
    /// The policy.
    pub policy: Arc<Policy>,
    /// Name of the client's model, for its clearance.
    pub model: Option<String>,
    /// The approved descriptions.
    pub pins: Pins,
    /// Name of the server in it.
    pub server: String,
    /// True if nothing is refused, and what would be is told.
    pub observe: bool,
    /// The most bytes of a message.
    pub max_message: usize,
}

/// How a guard ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardEnd {
    /// The client left.
    ClientLeft,
    /// It was canceled.
    Canceled,
    /// The server ended first, or sent what can't be read.
    ServerGone(String),
}

/// Compares descriptions with the lock file.
struct Pinned {
    pins: Pins,
    server: String,
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
}

fn server_tool(tool: &Value) -> ServerTool {
    let text = |field: &str| tool[field].as_str().unwrap_or_default();
    let output = tool.get("outputSchema").filter(|o| !o.is_null()).cloned();
    ServerTool::new(text("name"), text("description"), tool["inputSchema"].clone(), output)
}

/// One line of a peer.
enum Line {
    Text(String),
    TooLong,
}

/// Reads lines into a channel until the end, or until one is too long.
fn read_lines(from: impl AsyncRead + Send + Unpin + 'static, most: usize) -> mpsc::Receiver<Line> {
    let (send, lines) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut from = BufReader::with_capacity(64 << 10, from);
        let mut line = Vec::new();
        loop {
            let Ok(chunk) = from.fill_buf().await else { return };
            if chunk.is_empty() {
                return;
            }
            let end = chunk.iter().position(|b| *b == b'\n');
            let taken = end.map_or(chunk.len(), |at| at);
            if line.len() + taken > most {
                let _ = send.send(Line::TooLong).await;
                return;
            }
            line.extend_from_slice(&chunk[..taken]);
            from.consume(end.map_or(taken, |at| at + 1));
            if end.is_some() {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                // An empty line is no message.
                if !text.trim().is_empty() && send.send(Line::Text(text)).await.is_err() {
                    return;
                }
            }
        }
    });
    lines
}

/// A queue of messages to a peer, written by a task of its own.
struct Outlet {
    send: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    written: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Outlet {
    fn new(mut to: impl AsyncWrite + Send + Unpin + 'static) -> Outlet {
        let (send, mut lines) = mpsc::unbounded_channel::<Vec<u8>>();
        let (waiting, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (left, told) = (waiting.clone(), written.clone());
        let task = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                let is_gone = to.write_all(&line).await.is_err() || to.flush().await.is_err();
                left.fetch_sub(line.len(), Ordering::SeqCst);
                told.notify_one();
                if is_gone {
                    return;
                }
            }
            let _ = to.shutdown().await;
        });
        Outlet { send, waiting, written, task }
    }

    fn push(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.waiting.fetch_add(line.len(), Ordering::SeqCst);
        // Whoever is gone is noticed by its reader.
        let _ = self.send.send(line);
    }

    fn is_free(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) < QUEUE
    }

    fn is_overfull(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > MAX_QUEUE
    }

    /// Writes what waits, for a limited time, and closes.
    async fn close(self) {
        drop(self.send);
        let _ = timeout(GRACE, self.task).await;
    }
}

/// A server's process with what it has started.
struct Server {
    child: Child,
}

impl Server {
    fn start(command: &[OsString]) -> Result<Server, String> {
        let Some((program, args)) = command.split_first() else { return Err("no command was given".into()) };
        let mut start = Command::new(program);
        start.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        #[cfg(unix)]
        start.process_group(0);
        let child = start.spawn().map_err(|e| {
            format!("cannot start `{}`: {}", program.to_string_lossy(), session::load::reason(&e))
        })?;
        Ok(Server { child })
    }

    /// Waits for its end for a while, and ends it.
    async fn end(mut self) -> Option<ExitStatus> {
        let status = timeout(GRACE, self.child.wait()).await.ok().and_then(Result::ok);
        self.kill();
        match status {
            Some(status) => Some(status),
            None => timeout(GRACE, self.child.wait()).await.ok().and_then(Result::ok),
        }
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(pid) = self.child.id().and_then(|id| i32::try_from(id).ok())
            && let Some(leader) = rustix::process::Pid::from_raw(pid)
        {
            // Nobody is left: fine.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Guards one server for one client on standard input and output, which is one session.
///
/// # Errors
/// The server can't be started, in words for people.
pub async fn guard_stdio(
    options: GuardOptions,
    cancel: &CancellationToken,
    log: &mut dyn FnMut(&Note),
) -> Result<GuardEnd, String> {
    let GuardOptions { command, policy, model, pins, server, observe, max_message } = options;
    let session = Session::new(policy, &SessionOptions { model: model.map(|m| m.as_str().into()) });
    let mut proxy = Proxy::new(session, Pinned { pins, server }, observe);
    let mut process = Server::start(&command)?;
    let (Some(stdin), Some(stdout)) = (process.child.stdin.take(), process.child.stdout.take()) else {
        return Err("the server has no pipes".into());
    };
    let (to_server, to_client) = (Outlet::new(stdin), Outlet::new(tokio::io::stdout()));
    let mut client = read_lines(tokio::io::stdin(), max_message);
    let mut lines = read_lines(stdout, max_message);
    let too_long = format!("a message of more than {max_message} bytes");
    // Once the client has closed its end, what it has asked for is answered for a while.
    let mut leaving = None;
    let end = loop {
        if leaving.is_some() && proxy.is_idle() {
            break GuardEnd::ClientLeft;
        }
        let actions = tokio::select! {
            () = cancel.cancelled() => break GuardEnd::Canceled,
            () = sleep_until(leaving.unwrap_or_else(Instant::now)), if leaving.is_some() => break GuardEnd::ClientLeft,
            () = to_server.written.notified() => continue,
            () = to_client.written.notified() => continue,
            line = client.recv(), if leaving.is_none() && to_server.is_free() => match line {
                Some(Line::Text(line)) => proxy.from_client(&line),
                Some(Line::TooLong) => {
                    to_client.push(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": too_long}}));
                    log(&Note::Invalid { by_server: false, why: too_long });
                    break GuardEnd::ClientLeft;
                }
                None => {
                    leaving = Some(Instant::now() + LINGER);
                    continue;
                }
            },
            line = lines.recv(), if to_client.is_free() => match line {
                Some(Line::Text(line)) => proxy.from_server(&line),
                Some(Line::TooLong) => {
                    log(&Note::Invalid { by_server: true, why: too_long.clone() });
                    break GuardEnd::ServerGone(too_long);
                }
                None => break GuardEnd::ServerGone(String::new()),
            },
        };
        for action in actions {
            match action {
                Action::ToClient(message) => to_client.push(&message),
                Action::ToServer(message) => to_server.push(&message),
                Action::Note(note) => log(&note),
            }
        }
        if to_server.is_overfull() {
            break GuardEnd::ServerGone("it does not read what it is sent".into());
        }
        if to_client.is_overfull() {
            break GuardEnd::ClientLeft;
        }
    };
    to_server.close().await;
    let status = process.end().await;
    let end = match end {
        GuardEnd::ServerGone(why) if why.is_empty() => GuardEnd::ServerGone(match status {
            Some(status) => format!("it ended with {status}"),
            None => "it closed its standard output".into(),
        }),
        end => end,
    };
    if let GuardEnd::ServerGone(how) = &end {
        for action in proxy.server_gone(how) {
            if let Action::ToClient(message) = action {
                to_client.push(&message);
            }
        }
    }
    to_client.close().await;
    Ok(end)
}

/// Descriptions of a server, to be approved: its tools, its instructions and its prompts.
///
/// # Errors
/// It can't be started, or doesn't say what it offers, in words for people.
pub async fn describe(command: &[OsString], max_message: usize) -> Result<Vec<ServerTool>, String> {
    let mut process = Server::start(command)?;
    let (Some(stdin), Some(stdout)) = (process.child.stdin.take(), process.child.stdout.take()) else {
        return Err("the server has no pipes".into());
    };
    let mut talk =
        Talk { to: Outlet::new(stdin), lines: read_lines(stdout, max_message), next: 0, meta: None };
    let said = timeout(START, talk.offers()).await;
    talk.to.close().await;
    process.end().await;
    match said {
        Ok(said) => said,
        Err(_) => Err(format!("it did not say what it offers within {} s", START.as_secs())),
    }
}

/// Requests to a server, one after the other.
struct Talk {
    to: Outlet,
    lines: mpsc::Receiver<Line>,
    next: u64,
    /// `_meta` of requests in the revision without a handshake.
    meta: Option<Value>,
}

impl Talk {
    async fn offers(&mut self) -> Result<Vec<ServerTool>, String> {
        let info = json!({"name": "entail", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let start = match self.ask("initialize", hello).await? {
            Ok(start) => {
                self.to.push(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                start
            }
            // It may speak the revision without a handshake alone.
            Err(why) => {
                self.meta = Some(json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": info, "io.modelcontextprotocol/clientCapabilities": {}}));
                self.ask("server/discover", json!({})).await?.map_err(|_| why)?
            }
        };
        let mut found = Vec::new();
        if let Some(text) = start.get("instructions").filter(|t| !t.is_null()) {
            found.push(server_tool(&described_as_tool("initialize", text)));
        }
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.ask("tools/list", params).await??;
            let tools = page["tools"].as_array_mut().map(std::mem::take).unwrap_or_default();
            found.extend(tools.iter().map(server_tool));
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        for (capability, method) in [("prompts", "prompts/list"), ("resources", "resources/templates/list")] {
            if start["capabilities"].get(capability).is_some()
                && let Ok(list) = self.ask(method, json!({})).await?
            {
                found.push(server_tool(&described_as_tool(method, &list)));
            }
        }
        Ok(found)
    }

    /// A request, and its result or the error of the server.
    async fn ask(&mut self, method: &str, mut params: Value) -> Result<Result<Value, String>, String> {
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.to.push(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let line = match self.lines.recv().await {
                Some(Line::Text(line)) => line,
                Some(Line::TooLong) => return Err("it sent a message that is too long".into()),
                None => return Err("it ended before it said what it offers".into()),
            };
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("method").is_some() {
                if let Some(id) = message.get("id") {
                    let none = json!({"code": -32601, "message": "nobody is here to answer"});
                    self.to.push(&json!({"jsonrpc": "2.0", "id": id, "error": none}));
                }
                continue;
            }
            if message["id"] != json!(self.next) {
                continue;
            }
            return Ok(match message.get("error") {
                Some(error) => {
                    Err(clip(error["message"].as_str().unwrap_or("it answered with an error"), 200))
                }
                None => Ok(message["result"].take()),
            });
        }
    }
}
