//! A guard with its connections: what it does with each event.
//!
//! Invariant: an event of a server that was started again is never taken for one of its successor.

use super::hook::{Asked, Told};
use super::outlet::Outlet;
use super::peer::{Event, Events, Line, Peer, too_long};
use super::{Core, GuardEnd, GuardOptions, Guarded, Inquiry, Log, Note, OwnDecision, Quarantine};
use ::guard::Routed;
use core_ir::Data;
use serde_json::json;
use session::server_list::ListedServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Time in which the client says nothing before a new conversation begins: what it has sent before belongs
/// to the last one.
const QUIET: Duration = Duration::from_millis(300);
/// The longest time until a new conversation begins.
const MAX_QUIET: Duration = Duration::from_secs(3);
/// Time until a server is started again the first time; it doubles each time.
const RESTART: Duration = Duration::from_secs(1);
/// The most times that a server is started again in a row.
const MAX_RESTARTS: u32 = 5;
/// Time after which a server that runs counts as well.
const WELL: Duration = Duration::from_secs(60);

/// The next event of a guard. A server is named by its tag.
pub(super) enum Heard {
    Own(Asked),
    Client(Option<Line>),
    Server(usize, Event),
    /// The answer to a question about a handle, by its number.
    Quarantine(u64, Result<Data, String>),
}

/// The connections of a guard.
pub(super) struct Wires {
    names: Vec<String>,
    /// The servers; those that are gone are none.
    peers: Vec<Option<Peer>>,
    pub(super) to_client: Outlet,
    quarantine: Option<Quarantine>,
    answers: mpsc::UnboundedSender<(u64, Result<Data, String>)>,
}

impl Wires {
    fn act(&self, actions: Vec<Routed>, log: Log<'_>) {
        for action in actions {
            match action {
                Routed::ToClient(message) => self.to_client.push(&message),
                Routed::ToServer(server, message) => {
                    if let Some(peer) = self.peers.get(server).and_then(Option::as_ref) {
                        peer.outlet.push(&message);
                    }
                }
                Routed::Ask(inquiry) => self.ask(inquiry),
                Routed::Note(server, note) => {
                    log(server.and_then(|s| self.names.get(s)).map(String::as_str), &note);
                }
            }
        }
    }

    /// Puts a question to the quarantined model. How many are open is bounded by the guard.
    fn ask(&self, inquiry: Inquiry) {
        // INVARIANT: only a guard with such a model asks.
        let Some(quarantine) = &self.quarantine else { return };
        let (number, answer, send) = (inquiry.number, (quarantine.ask)(inquiry), self.answers.clone());
        tokio::spawn(async move {
            // Nobody listens any more: the guard ends.
            let _ = send.send((number, answer.await));
        });
    }

    /// Returns whether a server takes what the client says. If none is left, the guard itself answers.
    pub(super) fn may_read_client(&self) -> bool {
        let mut left = self.peers.iter().flatten().peekable();
        left.peek().is_none() || left.any(|peer| peer.outlet.is_free())
    }

    /// A server that does not read.
    fn overfull(&self) -> Option<usize> {
        self.peers.iter().position(|p| p.as_ref().is_some_and(|peer| peer.outlet.is_overfull()))
    }

    /// Ends a server without waiting for that.
    fn lose(&mut self, server: usize) {
        if let Some(peer) = self.peers.get_mut(server).and_then(Option::take) {
            tokio::spawn(peer.close());
        }
    }

    async fn close_servers(&mut self) {
        let mut closing: JoinSet<()> = self.peers.drain(..).flatten().map(Peer::close).collect();
        while closing.join_next().await.is_some() {}
    }
}

/// The starts of a server.
#[derive(Clone, Copy)]
struct Starts {
    /// Number of starts.
    count: usize,
    /// Failures in a row.
    failures: u32,
    /// Time of the last start.
    last: Instant,
    /// When it is started again.
    next: Option<Instant>,
}

/// A new conversation that the client has told of.
struct Fresh {
    /// When it begins.
    at: Instant,
    /// When it begins at the latest.
    latest: Instant,
    told: oneshot::Sender<OwnDecision>,
}

/// A guard with its connections.
pub(super) struct Running<'o> {
    options: &'o GuardOptions,
    pub(super) core: Core,
    pub(super) wires: Wires,
    /// Answers of the quarantined model.
    pub(super) answers: mpsc::UnboundedReceiver<(u64, Result<Data, String>)>,
    starts: Vec<Starts>,
    fresh: Option<Fresh>,
    events: Events,
    written: Arc<Notify>,
    begin: Instant,
}

fn servers(options: &GuardOptions) -> &[ListedServer] {
    match &options.servers {
        Guarded::One(server) => std::slice::from_ref(server),
        Guarded::List(servers) => servers,
    }
}

impl<'o> Running<'o> {
    /// Starts the servers.
    pub(super) fn start(
        options: &'o GuardOptions,
        to_client: Outlet,
        events: Events,
        written: Arc<Notify>,
        log: Log<'_>,
    ) -> Result<Running<'o>, String> {
        let core = Core::new(options)?;
        let names = servers(options).iter().map(|s| s.name.clone()).collect();
        let count = servers(options).len();
        let now = Instant::now();
        let starts = Starts { count: 0, failures: 0, last: now, next: None };
        let (send, answers) = mpsc::unbounded_channel();
        let quarantine = options.quarantine.clone();
        let peers = Vec::with_capacity(count);
        let mut guard = Running {
            options,
            core,
            wires: Wires { names, peers, to_client, quarantine, answers: send },
            answers,
            starts: vec![starts; count],
            fresh: None,
            events,
            written,
            begin: now,
        };
        for server in 0..count {
            match guard.started(server) {
                Ok(peer) => guard.wires.peers.push(Some(peer)),
                Err(why) if matches!(guard.core, Core::One(_)) => return Err(why),
                // It is not there at all: another attempt would end alike.
                Err(why) => {
                    guard.wires.peers.push(None);
                    let actions = guard.core.server_gone(server, &why);
                    guard.wires.act(actions, log);
                }
            }
        }
        Ok(guard)
    }

    /// Starts a server under a tag of its own.
    fn started(&mut self, server: usize) -> Result<Peer, String> {
        let all = servers(self.options);
        let starts = &mut self.starts[server];
        (starts.count, starts.last, starts.next) = (starts.count + 1, Instant::now(), None);
        let tag = server + starts.count * all.len();
        let most = self.options.max_message;
        Peer::start(tag, &all[server].launch, most, self.events.clone(), self.written.clone())
    }

    /// The server of a tag, if its last start has it.
    fn tagged(&self, tag: usize) -> Option<usize> {
        let count = self.starts.len().max(1);
        let (server, start) = (tag % count, tag / count);
        self.starts.get(server).is_some_and(|s| s.count == start).then_some(server)
    }

    /// When [`Running::heard`] has to be called without an event.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let core = self.core.deadline().map(|at| self.begin + at);
        let restarts = self.starts.iter().filter_map(|s| s.next);
        restarts.chain(core).chain(self.fresh.as_ref().map(|f| f.at)).min()
    }

    /// Acts on an event, or on the time. Returns how the guard ends, if it does.
    pub(super) fn heard(&mut self, event: Option<Heard>, log: Log<'_>) -> Option<GuardEnd> {
        self.core.set_time(self.begin.elapsed());
        let actions = match event {
            None => self.timed(log),
            Some(Heard::Own(asked)) => self.told(asked),
            Some(Heard::Quarantine(number, said)) => self.core.quarantine_said(number, said),
            Some(Heard::Client(Some(Line::Text(line)))) => {
                if let Some(fresh) = &mut self.fresh {
                    fresh.at = (Instant::now() + QUIET).min(fresh.latest);
                }
                self.core.client_says(&line)
            }
            Some(Heard::Client(Some(Line::TooLong))) => {
                let why = too_long(self.options.max_message);
                self.wires
                    .to_client
                    .push(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": why}}));
                log(None, &Note::Invalid { by_server: false, why });
                return Some(GuardEnd::ClientLeft);
            }
            // The driver waits for what is under way.
            Some(Heard::Client(None)) => Vec::new(),
            Some(Heard::Server(tag, event)) => {
                let server = self.tagged(tag)?;
                match event {
                    Event::Line(line) => self.core.server_says(server, &line),
                    Event::Gone(how) if matches!(self.core, Core::One(_)) => {
                        return Some(GuardEnd::ServerGone(how));
                    }
                    Event::Gone(how) => self.lost(server, &how),
                }
            }
        };
        self.wires.act(actions, log);
        if let Some(server) = self.wires.overfull() {
            let how = "it does not read what it is sent";
            if matches!(self.core, Core::One(_)) {
                return Some(GuardEnd::ServerGone(how.into()));
            }
            let actions = self.lost(server, how);
            self.wires.act(actions, log);
        }
        self.wires.to_client.is_overfull().then_some(GuardEnd::ClientLeft)
    }

    /// A server of a list is gone. It is started again after a while, unless it ends each time.
    fn lost(&mut self, server: usize, how: &str) -> Vec<Routed> {
        self.wires.lose(server);
        let starts = &mut self.starts[server];
        if starts.last.elapsed() >= WELL {
            starts.failures = 0;
        }
        if starts.failures < MAX_RESTARTS {
            starts.next = Some(Instant::now() + RESTART * 2_u32.pow(starts.failures));
            starts.failures += 1;
        }
        self.core.server_gone(server, how)
    }

    /// Acts on the time.
    fn timed(&mut self, log: Log<'_>) -> Vec<Routed> {
        let now = Instant::now();
        let mut actions = self.core.expire();
        if let Some(fresh) = self.fresh.take_if(|fresh| fresh.at <= now) {
            actions.extend(self.core.begin_again());
            let _ = fresh.told.send(OwnDecision::Allowed);
        }
        for server in 0..self.starts.len() {
            if self.starts[server].next.is_none_or(|at| at > now) {
                continue;
            }
            match self.started(server) {
                Ok(peer) => {
                    self.wires.peers[server] = Some(peer);
                    // What it has to be told goes to the new connection.
                    self.wires.act(std::mem::take(&mut actions), log);
                    actions = self.core.server_back(server);
                }
                Err(_) => {
                    self.starts[server].next = None;
                }
            }
        }
        actions
    }

    /// A message of a client's hook.
    fn told(&mut self, Asked { told, answer }: Asked) -> Vec<Routed> {
        let (decision, actions) = match told {
            Told::Call { tool, input } => self.core.own_tool(&tool, &input),
            Told::Request(text) => {
                self.core.user_asks(&text);
                (OwnDecision::Allowed, Vec::new())
            }
            Told::Resumed => {
                self.core.assume_highest("the conversation that is resumed");
                (OwnDecision::Allowed, Vec::new())
            }
            Told::Fresh => {
                let now = Instant::now();
                self.fresh = Some(Fresh { at: now + QUIET, latest: now + MAX_QUIET, told: answer });
                return Vec::new();
            }
        };
        // Whoever does not wait for the answer makes no call.
        let _ = answer.send(decision);
        actions
    }

    /// Ends the servers and writes what waits for the client.
    pub(super) async fn close(mut self, end: &GuardEnd) {
        self.wires.close_servers().await;
        if let GuardEnd::ServerGone(how) = end {
            for action in self.core.server_gone(0, how) {
                if let Routed::ToClient(message) = action {
                    self.wires.to_client.push(&message);
                }
            }
        }
        self.wires.to_client.close().await;
    }
}
