//! The guard for clients that speak streamable HTTP: each has a session of its own, with servers of its own.
//!
//! Entry point: [`HttpFront::bind`].
//!
//! A message of a client is a line of its session's guard, and what the guard says goes to the request that
//! it answers. What answers none goes with a request that is open, or to the stream that the client listens
//! to, or waits for one of the two.
//!
//! Invariant: no message reaches a session but with its number, and nobody is heard without the token.
//! Invariant: sessions, messages that wait and their bytes are bounded. A session that nobody uses ends.

use super::hook::Hooks;
use super::outlet::Outlet;
use super::peer::{Line, Lines};
use super::{GuardEnd, GuardOptions, Log, Note, guard_between};
use crate::http::connections;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use runtime::{CancellationToken, hex};
use serde_json::{Value, json};
use session::callers::hash_of;
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, WriteHalf};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// The most sessions at once, of all clients.
const MAX_SESSIONS: usize = 1_024;
/// The most requests of a session that are open.
const MAX_OPEN: usize = 1_024;
/// The most messages that wait for a stream of the client, and their bytes.
const MAX_WAITING: (usize, usize) = (256, 1 << 20);
/// Time after which a session ends that nobody uses.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Time between two looks for such sessions.
const LOOK: Duration = Duration::from_secs(30);
/// Time for a guard to take a message.
const TAKE: Duration = Duration::from_secs(30);
/// Time within which the head of a request has to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// Bytes of the pipe between a session and its guard.
const PIPE: usize = 64 << 10;
/// Header with the number of a session.
const SESSION: &str = "mcp-session-id";

/// Where notes of all sessions go: with the number of the session, and the server that one is about.
pub type FrontLog = Arc<Mutex<dyn FnMut(u64, Option<&str>, &Note) + Send>>;

/// The guard of clients over HTTP, on an address of this machine.
pub struct HttpFront {
    listener: TcpListener,
    address: SocketAddr,
    front: Arc<Front>,
}

struct Front {
    options: GuardOptions,
    /// Hash of the token that clients show.
    token: [u8; 32],
    hosts: [String; 2],
    sessions: Mutex<BTreeMap<String, Arc<FrontSession>>>,
    tasks: Mutex<JoinSet<()>>,
    log: FrontLog,
    /// Number of sessions that have begun.
    begun: AtomicU64,
    stop: CancellationToken,
}

/// A session with its guard.
struct FrontSession {
    to_guard: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
    streams: Mutex<Streams>,
    end: CancellationToken,
}

/// Where what the guard says goes.
struct Streams {
    /// Open requests by their number.
    open: BTreeMap<String, mpsc::UnboundedSender<Value>>,
    /// The stream that the client listens to.
    listening: Option<mpsc::UnboundedSender<Value>>,
    waiting: VecDeque<Value>,
    waiting_bytes: usize,
    used: Instant,
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic while it was held leaves entries that are there or not.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpFront {
    /// Listens at an address of this machine. Clients show the token as `Authorization: Bearer TOKEN`.
    ///
    /// # Errors
    /// The address is none of this machine, or can't be listened at, in words for people.
    pub async fn bind(
        address: SocketAddr,
        token: &str,
        options: GuardOptions,
        log: FrontLog,
    ) -> Result<HttpFront, String> {
        if !address.ip().is_loopback() {
            return Err(format!("`{address}` is no address of this machine alone"));
        }
        let listener = TcpListener::bind(address).await;
        let listener =
            listener.map_err(|e| format!("cannot listen at `{address}`: {}", session::load::reason(&e)))?;
        let address = listener.local_addr().map_err(|e| e.to_string())?;
        let front = Front {
            options,
            token: hash_of(token),
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
            sessions: Mutex::default(),
            tasks: Mutex::default(),
            log,
            begun: AtomicU64::new(0),
            stop: CancellationToken::new(),
        };
        Ok(HttpFront { listener, address, front: Arc::new(front) })
    }

    /// The address that clients are given.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Serves until it is told to stop, and ends all sessions.
    pub async fn run(self, stop: &CancellationToken) {
        let HttpFront { listener, front, .. } = self;
        let app = Router::new()
            .route("/mcp", post(posted).get(listened).delete(ended))
            .layer(DefaultBodyLimit::max(front.options.max_message))
            .with_state(front.clone());
        let most = connections::most(2 * MAX_SESSIONS);
        let serving = connections::serve(listener, app, most, HEAD_TIMEOUT, front.stop.clone());
        tokio::select! {
            () = serving => {}
            () = stop.cancelled() => {}
            () = front.end_idle() => {}
        }
        front.stop.cancel();
        for session in std::mem::take(&mut *lock(&front.sessions)).into_values() {
            session.end.cancel();
        }
        let mut tasks = std::mem::take(&mut *lock(&front.tasks));
        while tasks.join_next().await.is_some() {}
    }
}

impl Front {
    /// Ends sessions that nobody uses, as long as it is asked.
    async fn end_idle(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            lock(&self.sessions).retain(|_, session| {
                let is_used = lock(&session.streams).is_used();
                if !is_used {
                    session.end.cancel();
                }
                is_used
            });
            let mut tasks = lock(&self.tasks);
            while tasks.try_join_next().is_some() {}
        }
    }

    /// The reason why a request is not heard.
    fn refusal(&self, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let text = |name: header::HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
        if !text(header::HOST).is_some_and(|host| self.hosts.iter().any(|h| h == host)) {
            return Some((StatusCode::FORBIDDEN, "the request names another host"));
        }
        // No page of a browser speaks to a guard.
        if headers.contains_key(header::ORIGIN) {
            return Some((StatusCode::FORBIDDEN, "the request comes from a page"));
        }
        let token = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        match token.map(hash_of) == Some(self.token) {
            true => None,
            false => Some((StatusCode::UNAUTHORIZED, "the request does not show the token of this guard")),
        }
    }

    fn session(&self, headers: &HeaderMap) -> Result<(String, Arc<FrontSession>), Box<Response>> {
        let Some(id) = headers.get(SESSION).and_then(|v| v.to_str().ok()) else {
            return Err(wrong(StatusCode::BAD_REQUEST, "no session is named: send `initialize` first"));
        };
        match lock(&self.sessions).get(id) {
            Some(session) => Ok((id.to_string(), session.clone())),
            None => Err(wrong(StatusCode::NOT_FOUND, "there is no such session: send `initialize` again")),
        }
    }

    /// Begins a session with its guard.
    fn begin(self: &Arc<Front>) -> Result<(String, Arc<FrontSession>), Box<Response>> {
        let mut bytes = [0; 16];
        if let Err(e) = getrandom::fill(&mut bytes) {
            return Err(wrong(StatusCode::SERVICE_UNAVAILABLE, &e.to_string()));
        }
        let id = hex(&bytes);
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (from_guard, to_guard) = tokio::io::split(ours);
        let session = Arc::new(FrontSession {
            to_guard: tokio::sync::Mutex::new(to_guard),
            streams: Mutex::new(Streams::new()),
            end: self.stop.child_token(),
        });
        {
            let mut sessions = lock(&self.sessions);
            if sessions.len() >= MAX_SESSIONS {
                let why = "there are too many sessions";
                return Err(wrong(StatusCode::SERVICE_UNAVAILABLE, why));
            }
            sessions.insert(id.clone(), session.clone());
        }
        let (front, own, name) = (self.clone(), session.clone(), id.clone());
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let guarding = async move {
            let log = front.log.clone();
            let mut say = |server: Option<&str>, note: &Note| (*lock(&log))(number, server, note);
            let (read, write) = tokio::io::split(theirs);
            let mut hooks: Option<Hooks> = None;
            let end = guard_over(&front.options, (read, write), &mut hooks, &own.end, &mut say).await;
            if let Err(why) = end {
                say(None, &Note::Gone(why));
            }
            lock(&front.sessions).remove(&name);
            // Whoever still waits is told by the end of the stream.
            lock(&own.streams).close();
        };
        let telling = {
            let session = session.clone();
            let most = self.options.max_message;
            async move {
                let mut lines = Lines::new(from_guard, most.saturating_mul(2));
                while let Some(Line::Text(line)) = lines.next().await {
                    // INVARIANT: a guard writes nothing but messages.
                    if let Ok(message) = serde_json::from_str(&line) {
                        lock(&session.streams).tell(message);
                    }
                }
            }
        };
        let mut tasks = lock(&self.tasks);
        tasks.spawn(guarding);
        tasks.spawn(telling);
        Ok((id, session))
    }
}

impl FrontSession {
    /// Gives the guard a message.
    async fn give(&self, message: &Value) -> Result<(), Box<Response>> {
        let line = format!("{message}\n");
        let given = async {
            let mut to_guard = self.to_guard.lock().await;
            to_guard.write_all(line.as_bytes()).await
        };
        match timeout(TAKE, given).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(wrong(StatusCode::NOT_FOUND, "the session has ended")),
            Err(_) => {
                // Half of the message may be written: nothing that follows could be read.
                self.end.cancel();
                Err(wrong(StatusCode::SERVICE_UNAVAILABLE, "the guard does not take the message"))
            }
        }
    }
}

impl Streams {
    fn new() -> Streams {
        Streams {
            open: BTreeMap::new(),
            listening: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            used: Instant::now(),
        }
    }

    fn is_used(&mut self) -> bool {
        self.open.retain(|_, stream| !stream.is_closed());
        let listens = self.listening.as_ref().is_some_and(|stream| !stream.is_closed());
        !self.open.is_empty() || listens || self.used.elapsed() < IDLE
    }

    fn close(&mut self) {
        self.open.clear();
        self.listening = None;
    }

    /// Opens the stream of a request; `None` if one with the number is open, or if there are too many.
    fn open(&mut self, id: &Value) -> Option<mpsc::UnboundedReceiver<Value>> {
        self.open.retain(|_, stream| !stream.is_closed());
        self.used = Instant::now();
        if self.open.len() >= MAX_OPEN || self.open.contains_key(&id.to_string()) {
            return None;
        }
        let (send, receive) = mpsc::unbounded_channel();
        self.tell_waiting(&send);
        self.open.insert(id.to_string(), send);
        Some(receive)
    }

    /// Opens the stream that the client listens to, in place of an earlier one.
    fn listen(&mut self) -> mpsc::UnboundedReceiver<Value> {
        let (send, receive) = mpsc::unbounded_channel();
        self.tell_waiting(&send);
        (self.listening, self.used) = (Some(send), Instant::now());
        receive
    }

    fn tell_waiting(&mut self, to: &mpsc::UnboundedSender<Value>) {
        self.waiting_bytes = 0;
        for message in self.waiting.drain(..) {
            // The receiver is ours.
            let _ = to.send(message);
        }
    }

    /// Takes a message of the guard.
    fn tell(&mut self, mut message: Value) {
        if message.get("method").is_none() {
            // A client that has left its request doesn't hear of it.
            if let Some(stream) = self.open.remove(&message["id"].to_string()) {
                let _ = stream.send(message);
            }
            return;
        }
        let streams = self.open.values().chain(&self.listening);
        for stream in streams {
            match stream.send(message) {
                Ok(()) => return,
                Err(back) => message = back.0,
            }
        }
        self.waiting_bytes += message.to_string().len();
        self.waiting.push_back(message);
        while self.waiting.len() > MAX_WAITING.0 || self.waiting_bytes > MAX_WAITING.1 {
            match self.waiting.pop_front() {
                Some(first) => self.waiting_bytes -= first.to_string().len(),
                None => break,
            }
        }
    }
}

/// An answer that says why nothing was done, as JSON-RPC.
fn wrong(status: StatusCode, why: &str) -> Box<Response> {
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": why}});
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, body.to_string()).into_response().into()
}

fn sse(messages: mpsc::UnboundedReceiver<Value>) -> Response {
    let event =
        |message: Value| Ok::<_, Infallible>(Event::default().event("message").data(message.to_string()));
    let events = UnboundedReceiverStream::new(messages).map(event);
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// A message of a client.
async fn posted(State(front): State<Arc<Front>>, headers: HeaderMap, body: Bytes) -> Response {
    match post_message(&front, &headers, &body).await {
        Ok(response) => response,
        Err(response) => *response,
    }
}

async fn post_message(
    front: &Arc<Front>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Box<Response>> {
    if let Some((status, why)) = front.refusal(headers) {
        return Err(wrong(status, why));
    }
    let message: Value = serde_json::from_slice(body)
        .map_err(|e| wrong(StatusCode::BAD_REQUEST, &format!("it is no JSON: {e}")))?;
    if !message.is_object() {
        return Err(wrong(StatusCode::BAD_REQUEST, "a message is an object"));
    }
    let is_start = message["method"] == "initialize";
    let (id, session) = match is_start && !headers.contains_key(SESSION) {
        true => front.begin()?,
        false => front.session(headers)?,
    };
    let has_answer = message.get("method").is_some() && message.get("id").is_some_and(|id| !id.is_null());
    if !has_answer {
        session.give(&message).await?;
        lock(&session.streams).used = Instant::now();
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let Some(answers) = lock(&session.streams).open(&message["id"]) else {
        return Err(wrong(
            StatusCode::BAD_REQUEST,
            "a request with the id is under way, or there are too many",
        ));
    };
    session.give(&message).await?;
    let mut response = sse(answers);
    // INVARIANT: the number is hexadecimal.
    if let Ok(value) = id.parse() {
        response.headers_mut().insert(SESSION, value);
    }
    Ok(response)
}

/// A client listens to what answers no request.
async fn listened(State(front): State<Arc<Front>>, headers: HeaderMap) -> Response {
    if let Some((status, why)) = front.refusal(&headers) {
        return *wrong(status, why);
    }
    match front.session(&headers) {
        Ok((_, session)) => {
            let messages = lock(&session.streams).listen();
            sse(messages)
        }
        Err(response) => *response,
    }
}

/// A client ends its session.
async fn ended(State(front): State<Arc<Front>>, headers: HeaderMap) -> Response {
    if let Some((status, why)) = front.refusal(&headers) {
        return *wrong(status, why);
    }
    match front.session(&headers) {
        Ok((id, session)) => {
            lock(&front.sessions).remove(&id);
            session.end.cancel();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}

/// Guards servers for one client, which speaks on a stream and reads another.
async fn guard_over(
    options: &GuardOptions,
    (from, to): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    hooks: &mut Option<Hooks>,
    cancel: &CancellationToken,
    log: Log<'_>,
) -> Result<GuardEnd, String> {
    let written = Arc::new(Notify::new());
    let to_client = Outlet::new(to, written.clone());
    let (client, _reading) = read_client(from, options.max_message);
    guard_between(options, (client, to_client), written, hooks, cancel, log).await
}

/// Ends a task when it is dropped.
struct Ends(AbortHandle);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads a client until the end, or until a line is too long.
fn read_client(from: impl AsyncRead + Send + Unpin + 'static, most: usize) -> (mpsc::Receiver<Line>, Ends) {
    let (send, lines) = mpsc::channel(1);
    let mut from = Lines::new(from, most);
    let reading = tokio::spawn(async move {
        while let Some(line) = from.next().await {
            let is_last = matches!(line, Line::TooLong);
            if send.send(line).await.is_err() || is_last {
                return;
            }
        }
    });
    (lines, Ends(reading.abort_handle()))
}
