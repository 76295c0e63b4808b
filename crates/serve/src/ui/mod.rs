//! A page of this machine that shows the runs of a journal, and answers what they ask.
//!
//! Entry point: [`UiServer`].
//!
//! Invariant: only the browser that was given the link sees anything: the token of the link is exchanged,
//! once, for a cookie that no script can read. Every request names this server and comes from its own page,
//! so no other page reaches it, under whichever name. Invariant: a cookie alone approves nothing. Each answer
//! is signed with an approver's key, which the passphrase of that answer opens; neither is kept. Invariant:
//! what runs hold is sent as JSON, and the page makes text of it.

mod documents;
mod door;
mod guarded;
mod inbox;
mod runs;

use crate::error::Error;
use crate::http::connections;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use documents::Documents;
use door::Door;
use machine::ErrorCode;
use runtime::{Approvers, CancellationToken, Journal, JournalError, JournalPlace};
use serde_json::{Value, json};
use session::Session;
use session::guard_log::FollowedGuardLog;
use session::kept::RunDocument;
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_stream::Stream;

/// Options of a [`UiServer`].
pub struct UiOptions {
    /// The journal whose runs are shown.
    pub journal: JournalPlace,
    /// Settings of the approvers, the callers and the prices.
    pub session: Session,
    /// Approvers whose answers runs take.
    pub approvers: Approvers,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
    /// Writes a run as one page that needs nothing else.
    pub export: fn(&RunDocument) -> Vec<u8>,
    /// How a journal is named on the command line, for the commands that the page shows.
    pub named: String,
    /// A file of a guard's decisions, whose sessions are listed beside the runs.
    pub guard_log: Option<PathBuf>,
}

/// A server that listens and does not answer yet.
pub struct UiServer {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    ui: Arc<Ui>,
}

/// State of the server.
struct Ui {
    journal: JournalPlace,
    session: Session,
    approvers: Approvers,
    export: fn(&RunDocument) -> Vec<u8>,
    named: String,
    guard_log: Option<Mutex<FollowedGuardLog>>,
    documents: Documents,
    /// Held while a passphrase is tried, so that guesses wait for each other.
    unlocking: Mutex<()>,
}

/// Most connections at once.
const MAX_CONNECTIONS: usize = 256;

/// The most bytes of a body.
const MAX_BODY: usize = 1 << 20;

/// Time within which the head of a request has to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Interval between two looks at the journal for what has changed.
const LOOK: Duration = Duration::from_millis(300);

/// Files of the page. The script and the style are made from `web/src` by `web/assets.mjs`.
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("../../../../web/src/ui/index.html")),
    ("/ui.js", "text/javascript; charset=utf-8", include_str!("../../assets/ui.js")),
    ("/ui.css", "text/css; charset=utf-8", include_str!("../../assets/ui.css")),
];

impl UiServer {
    /// Listens on this machine for a browser.
    ///
    /// # Errors
    /// The port can't be listened on, or the journal can't be read.
    pub async fn bind(options: UiOptions) -> Result<UiServer, Error> {
        let UiOptions { journal, session, approvers, port, export, named, guard_log } = options;
        let (place, is_enough) = (journal.clone(), guard_log.is_some());
        let opened = tokio::task::spawn_blocking(move || {
            // Whoever only runs guards has no journal yet.
            if is_enough { Journal::open(&place).map(drop) } else { Journal::existing(&place).map(drop) }
        })
        .await;
        opened.unwrap_or(Ok(()))?;
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = match TcpListener::bind(wanted).await {
            Ok(listener) => listener,
            Err(e) => return Err(Error::Listen { address: wanted, cause: session::load::reason(&e) }),
        };
        let address = listener.local_addr().unwrap_or(wanted);
        let token = door::fresh().map_err(Error::Randomness)?;
        let documents = Documents::default();
        let unlocking = Mutex::new(());
        let guard_log = guard_log.map(|path| Mutex::new(FollowedGuardLog::new(path)));
        let ui = Ui { journal, session, approvers, export, named, guard_log, documents, unlocking };
        Ok(UiServer { listener, address, token, ui: Arc::new(ui) })
    }

    /// The link that opens the page, once. The token is behind the `#`, which browsers don't send.
    pub fn link(&self) -> String {
        format!("http://{}/#token={}", self.address, self.token)
    }

    /// Serves until it is told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let UiServer { listener, address, token, ui } = self;
        let door = Arc::new(Door::new(address, &token));
        let app = router(ui, door);
        let ended = stop.clone();
        let serving =
            connections::serve(listener, app, connections::most(MAX_CONNECTIONS), HEAD_TIMEOUT, stop);
        // Pages that listen to events do not keep it from ending.
        tokio::select! {
            () = serving => {}
            () = async { ended.cancelled().await; tokio::time::sleep(Duration::from_millis(200)).await } => {}
        }
    }
}

fn router(ui: Arc<Ui>, door: Arc<Door>) -> Router {
    let guarded = Router::new()
        .route("/api/about", get(about))
        .route("/api/runs", get(runs::list))
        .route("/api/runs/{run}", get(runs::show))
        .route("/api/runs/{run}/events", get(runs::events))
        .route("/api/runs/{run}/live", get(runs::live))
        .route("/api/runs/{run}/page", get(runs::page))
        .route("/api/runs/{run}/program", get(runs::program))
        .route("/api/runs/{run}/fork", post(runs::fork))
        .route("/api/approvals", get(inbox::list))
        .route("/api/approvals/{request}", post(inbox::decide))
        .route("/api/events", get(events))
        .layer(from_fn_with_state(door.clone(), door::admitted))
        .with_state(ui);
    let mut app = Router::new();
    for (path, kind, text) in FILES {
        let answer = move || async move { ([(header::CONTENT_TYPE, kind)], text) };
        app = app.route(path, get(answer));
    }
    let session =
        Router::new().route("/api/session", post(door::open).delete(door::close)).with_state(door.clone());
    app.merge(session)
        .merge(guarded)
        .fallback(async || Refusal::NotFound("unknown path".into()))
        .layer(axum::extract::DefaultBodyLimit::max(MAX_BODY))
        .layer(from_fn_with_state(door, door::own))
        .layer(from_fn(hardened))
}

/// Puts the security policy on every answer: own files only, no frames, nothing kept.
async fn hardened(request: axum::extract::Request, next: axum::middleware::Next) -> Response {
    const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

/// Reason why a request is refused.
#[derive(Debug)]
enum Refusal {
    /// No session, or one that has ended.
    NoSession,
    /// The request comes from another page or names another host.
    Foreign(&'static str),
    /// There is no such thing.
    NotFound(String),
    /// The request is wrong.
    Input(String),
    /// Whoever asks may not do it.
    Forbidden(String, Option<String>),
    /// It can't be done any more.
    Conflict(String),
    /// The journal can't be used.
    Journal(JournalError),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message, help) = match self {
            Refusal::NoSession => {
                let help = "open the link that `entail ui` prints, or start it again for a new one";
                (StatusCode::UNAUTHORIZED, "session", "this browser has no session".into(), Some(help.into()))
            }
            Refusal::Foreign(why) => (StatusCode::FORBIDDEN, "foreign", why.to_string(), None),
            Refusal::NotFound(what) => (StatusCode::NOT_FOUND, "not_found", what, None),
            Refusal::Input(what) => (StatusCode::UNPROCESSABLE_ENTITY, "input", what, None),
            Refusal::Forbidden(what, help) => (StatusCode::FORBIDDEN, "forbidden", what, help),
            Refusal::Conflict(what) => (StatusCode::CONFLICT, "conflict", what, None),
            Refusal::Journal(e) => (StatusCode::INTERNAL_SERVER_ERROR, "journal", e.message, e.help),
        };
        (status, Json(json!({"error": {"code": code, "message": message, "help": help}}))).into_response()
    }
}

impl From<JournalError> for Refusal {
    fn from(e: JournalError) -> Refusal {
        Refusal::Journal(e)
    }
}

/// Does what waits for files, on a thread for that.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let crashed = || Refusal::Journal(JournalError { message: "it crashed".into(), help: None });
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(crashed()))
}

impl Ui {
    fn journal(&self) -> Result<Journal, JournalError> {
        Ok(Journal::existing(&self.journal)?.with_approvers(self.approvers.clone()))
    }
}

/// The journal, and who can answer from here.
async fn about(State(ui): State<Arc<Ui>>) -> Json<Value> {
    Json(json!({
        "journal": ui.journal.to_string(), "named": ui.named, "version": env!("CARGO_PKG_VERSION"),
        "errors": ErrorCode::ALL.map(ErrorCode::as_str), "approvers": ui.approvers.names().collect::<Vec<_>>(), "keys": inbox::keys(&ui.approvers),
    }))
}

/// Changes of the journal, as server-sent events: the page asks for what it shows then. Each event
/// has the revision as its name, so a page that comes back is told at once if it has missed something.
async fn events(State(ui): State<Arc<Ui>>, headers: HeaderMap) -> Response {
    let look = move || {
        let journal = ui.journal()?;
        // Which they are, and not how many: one may have come in the place of another.
        let mut waiting = DefaultHasher::new();
        journal.waiting(None)?.iter().for_each(|question| question.token.hash(&mut waiting));
        Ok(format!("{}-{:x}-{}", journal.state()?, waiting.finish(), ui.guard_revision()))
    };
    changes(last_event(&headers), look)
}

/// The last event that a client has seen.
fn last_event(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("last-event-id")?.to_str().ok()?.to_string())
}

/// A stream of the revisions that `look` gives, beginning with the present one if `seen` is another.
fn changes(
    seen: Option<String>,
    look: impl Fn() -> Result<String, JournalError> + Send + Sync + 'static,
) -> Response {
    let look = Arc::new(look);
    let (send, receive) = tokio::sync::mpsc::channel::<SseEvent>(1);
    tokio::spawn(async move {
        let mut seen = seen;
        loop {
            let look = look.clone();
            let Ok(looked) = tokio::task::spawn_blocking(move || look()).await else { return };
            let event = match looked {
                Ok(now) if seen.as_ref() == Some(&now) => None,
                Ok(now) => {
                    seen = Some(now.clone());
                    Some(SseEvent::default().event("changed").id(&now).data(now))
                }
                Err(e) => Some(SseEvent::default().event("failed").data(e.message)),
            };
            if let Some(event) = event
                && send.send(event).await.is_err()
            {
                return;
            }
            tokio::select! {
                () = send.closed() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    });
    Sse::new(Received(receive)).keep_alive(KeepAlive::default()).into_response()
}

/// Events as they come.
struct Received(tokio::sync::mpsc::Receiver<SseEvent>);

impl Stream for Received {
    type Item = Result<SseEvent, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|event| event.map(Ok))
    }
}

/// JSON of a body. That it must say that it is JSON keeps forms of other pages out.
fn body_json(headers: &HeaderMap, body: &[u8]) -> Result<Value, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some("application/json") {
        return Err(Refusal::Input("the body must be of type `application/json`".into()));
    }
    serde_json::from_slice(body).map_err(|e| Refusal::Input(format!("the body is not JSON: {e}")))
}
