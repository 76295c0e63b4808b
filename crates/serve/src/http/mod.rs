//! Pipelines over HTTP, and as an agent of the A2A protocol.
//!
//! Entry point: [`HttpServer`]. This module and `a2a` are ways to reach a [`Service`], and `openapi`
//! describes it.
//!
//! Invariant: every request is that of a caller, which is known before the body is read. Without a credential
//! that is the user of this machine: the connection comes from this machine, and the request names this
//! machine (no page of a browser reaches it through a name of its own).
//! Invariant: a run whose client is gone is canceled, unless it was started in the background.

mod a2a;
pub(crate) mod connections;
mod openapi;
mod refusal;

use crate::error::Error;
use crate::service::{Key, KeyedStart, MEDIA_TYPE, Refused, Service, StartOptions, Started};
use axum::body::{Bytes, to_bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use refusal::{MAX_KEY, Refusal, status_of};
use runtime::{CancellationToken, Decision, Unfinished};
use serde_json::{Value, json};
use session::callers::{self, Caller, Role};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::Receiver;
use tokio_stream::Stream;
use tokio_util::sync::DropGuard;

/// Options of a [`HttpServer`].
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Public address of the server; `http://ADDRESS` if absent.
    pub public_url: Option<String>,
    /// Most bytes of a body.
    pub max_body: usize,
    /// Most connections at once.
    pub max_connections: usize,
    /// Time within which the head of a request has to arrive; also how long a connection is kept for the next
    /// one.
    pub head_timeout: Duration,
    /// Time within which the body of a request has to arrive.
    pub body_timeout: Duration,
    /// True to resume the background runs that an earlier server has left.
    pub resume: bool,
    /// Time for active runs to end when the server is told to stop.
    pub grace: Duration,
}

/// A server that listens and does not answer yet.
pub struct HttpServer {
    service: Arc<Service>,
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

impl HttpServer {
    /// Listens for connections to a service.
    ///
    /// # Errors
    /// The address can't be listened on.
    pub async fn bind(service: Arc<Service>, options: HttpOptions) -> Result<HttpServer, Error> {
        let listener = match TcpListener::bind(options.listen).await {
            Ok(listener) => listener,
            Err(e) => {
                return Err(Error::Listen { address: options.listen, cause: session::load::reason(&e) });
            }
        };
        let address = listener.local_addr().unwrap_or(options.listen);
        service.listens_at(&options.public_url.clone().unwrap_or_else(|| format!("http://{address}")));
        Ok(HttpServer { service, listener, address, options })
    }

    /// The address of the server as clients write it.
    pub fn base(&self) -> &str {
        self.service.base()
    }

    /// Serves requests until it is told to stop, and then until the active runs have ended or are left to the
    /// next server.
    pub async fn run(self, stop: CancellationToken) {
        let HttpServer { service, listener, address, options } = self;
        let (max_body, body_timeout) = (options.max_body, options.body_timeout);
        let door = HttpState { service: service.clone(), address, max_body, body_timeout };
        let app = router(service.clone(), Arc::new(door), options.max_body);
        if options.resume {
            tokio::spawn(service.clone().resume_all());
        }
        let closed = CancellationToken::new();
        let shutdown = {
            let (service, closed, grace) = (service.clone(), closed.clone(), options.grace);
            async move {
                stop.cancelled().await;
                // No new runs; those under way get their time, and are left then to the next server, or
                // canceled.
                service.close(grace).await;
                closed.cancel();
            }
        };
        tokio::spawn(shutdown);
        let most = connections::most(options.max_connections);
        let serving = connections::serve(listener, app, most, options.head_timeout, closed.clone());
        // Who has begun a request and never ends it does not keep the server from ending.
        let abandoned = async {
            closed.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            () = serving => {}
            () = abandoned => {}
        }
    }
}

/// Time for clients to read their answers after the last run has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// State of the HTTP server: the service, its address and the limits of requests.
struct HttpState {
    service: Arc<Service>,
    address: SocketAddr,
    max_body: usize,
    /// Time within which the body of a request has to arrive.
    body_timeout: Duration,
}

impl HttpState {
    /// The caller that a request is of.
    fn admits(&self, headers: &HeaderMap, peer: SocketAddr) -> Result<Arc<Caller>, Refusal> {
        let callers = self.service.callers();
        let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
        let unknown = || Refusal::Unauthorized;
        if headers.contains_key(header::AUTHORIZATION) {
            let token = text("authorization").and_then(|v| v.strip_prefix("Bearer "));
            return token.and_then(|t| callers.by_token(t)).ok_or_else(unknown);
        }
        let here = peer.ip().to_canonical().is_loopback();
        // A name that a client states itself counts for nothing: the proxy is on this machine, and states one
        // name.
        if let Some(name) = callers.header.as_deref().filter(|_| here)
            && headers.contains_key(name)
        {
            let stated = text(name).filter(|_| headers.get_all(name).iter().count() == 1);
            return stated.and_then(|n| callers.by_name(n)).ok_or_else(unknown);
        }
        let Some(local) = callers.local.as_ref().filter(|_| here) else { return Err(unknown()) };
        let host = text("host").unwrap_or_default();
        let name =
            host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
        if matches!(name, "localhost" | "127.0.0.1" | "[::1]") || name == self.address.ip().to_string() {
            return Ok(local.clone());
        }
        Err(Refusal::ForeignName)
    }
}

/// Refuses a caller that does not have this role.
fn needs(caller: &Caller, role: Role) -> Result<(), Refusal> {
    if caller.has(role) {
        return Ok(());
    }
    Err(Refusal::NoRole { caller: caller.name.to_string(), role })
}

fn router(service: Arc<Service>, door: Arc<HttpState>, max_body: usize) -> Router {
    let guarded = Router::new()
        .route("/openapi.json", get(description))
        .route("/v1/pipelines", get(pipelines))
        .route("/v1/pipelines/{name}/runs", post(start))
        .route("/v1/runs", get(runs))
        .route("/v1/runs/{run}", get(status).delete(cancel))
        .route("/v1/runs/{run}/resume", post(resume))
        .route("/v1/approvals", get(approvals))
        .route("/v1/approvals/{request}", post(decide))
        .route("/metrics", get(metrics))
        .route("/a2a", post(a2a::rpc))
        .layer(from_fn_with_state(door.clone(), admitted));
    let health = Router::new().route("/health", get(health)).layer(from_fn_with_state(door, greeted));
    Router::new()
        .merge(health)
        .route("/.well-known/agent-card.json", get(a2a::card))
        .merge(guarded)
        .fallback(async || Refusal::UnknownPath)
        .layer(DefaultBodyLimit::max(max_body))
        .layer(map_response(async |response: Response| worded(response)))
        .layer(from_fn_with_state(service.clone(), noted))
        .with_state(service)
}

/// Answers requests that are refused early like all others: as JSON, with what to do.
fn worded(response: Response) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED {
        return response;
    }
    Refusal::Method.into_response()
}

/// The pattern of a path, of which there are few.
fn route_of(path: &str) -> &'static str {
    let mut parts = path.trim_start_matches('/').split('/');
    match (parts.next().unwrap_or(""), parts.next(), parts.next(), parts.next(), parts.next()) {
        ("openapi.json", None, ..) => "/openapi.json",
        ("health", None, ..) => "/health",
        ("metrics", None, ..) => "/metrics",
        ("a2a", None, ..) => "/a2a",
        (".well-known", Some("agent-card.json"), None, ..) => "/.well-known/agent-card.json",
        ("v1", Some("pipelines"), None, ..) => "/v1/pipelines",
        ("v1", Some("pipelines"), Some(_), Some("runs"), None) => "/v1/pipelines/{name}/runs",
        ("v1", Some("runs"), None, ..) => "/v1/runs",
        ("v1", Some("runs"), Some(_), None, _) => "/v1/runs/{run}",
        ("v1", Some("runs"), Some(_), Some("resume"), None) => "/v1/runs/{run}/resume",
        ("v1", Some("approvals"), None, ..) => "/v1/approvals",
        ("v1", Some("approvals"), Some(_), None, _) => "/v1/approvals/{request}",
        _ => "other",
    }
}

/// Requests that are refused are in the log; what runs do is there anyway. All are counted.
async fn noted(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let response = next.run(request).await;
    let status = response.status();
    let known = ["GET", "POST", "DELETE"].into_iter().find(|known| *known == method.as_str());
    service.answered(known.unwrap_or("other"), route_of(&path), status.as_u16());
    if matches!(status.as_u16(), 401 | 403 | 429 | 500) {
        service.log().refused(method.as_str(), &path, status.as_u16());
    }
    response
}

/// Lets in who is known, before the body is read.
async fn admitted(
    State(door): State<Arc<HttpState>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = match door.admits(request.headers(), peer) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            whole(request, &door).await
        }
        Err(refusal) => Err(refusal),
    };
    match admitted {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// The request with its body, which has to arrive in time.
async fn whole(request: Request, door: &HttpState) -> Result<Request, Refusal> {
    let HttpState { max_body, body_timeout, .. } = *door;
    let (head, body) = request.into_parts();
    match tokio::time::timeout(body_timeout, to_bytes(body, max_body)).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, body.into())),
        Ok(Err(_)) => Err(Refusal::TooLarge(max_body)),
        Err(_) => Err(Refusal::TooSlow(body_timeout)),
    }
}

/// Lets everybody in, and tells who is known.
async fn greeted(
    State(door): State<Arc<HttpState>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = door.admits(request.headers(), peer).ok();
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Reports whether the server is up. A caller that watches also gets the number of its runs that have not
/// ended. The user of this machine instead gets how many of all runs are at work and how many wait.
async fn health(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Option<Arc<Caller>>>,
) -> Json<Value> {
    let mut health = json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")});
    if let Some(caller) = caller.filter(|c| c.has(Role::Watch)) {
        if caller.name == callers::LOCAL {
            let (running, waiting) = service.under_way();
            (health["running"], health["waiting"]) = (running.into(), waiting.into());
        } else {
            health["open"] = service.open_of(&caller).into();
        }
    }
    Json(health)
}

/// The numbers of the server, over all callers.
async fn metrics(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Response, Refusal> {
    needs(&caller, Role::Metrics)?;
    // Questions are counted in the journal.
    let text = tokio::task::spawn_blocking(move || service.metrics()).await.unwrap_or_default();
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response())
}

async fn description(State(service): State<Arc<Service>>) -> Result<Json<Value>, Refusal> {
    openapi::description(&service).map(Json).map_err(|e| Refusal::Description(e.to_string()))
}

async fn pipelines(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(service.pipelines().map(openapi::pipeline_json).collect())
}

/// The JSON of a body. That it must say that it is JSON keeps forms of foreign pages out.
fn body_json(headers: &HeaderMap, body: &Bytes) -> Result<Value, Refusal> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind != "application/json" && !kind.ends_with("+json") {
        return Err(Refusal::MediaType);
    }
    serde_json::from_slice(body).map_err(|e| Refusal::NotJson(e.to_string()))
}

fn wants(headers: &HeaderMap, name: header::HeaderName, what: &str) -> bool {
    headers.get_all(name).iter().filter_map(|v| v.to_str().ok()).any(|v| v.contains(what))
}

/// The span of the client's that a request is a part of.
fn traceparent(headers: &HeaderMap) -> Option<&str> {
    headers.get("traceparent")?.to_str().ok()
}

/// The answer to who will come back for a run.
fn begun(run: &str) -> Response {
    let location = format!("/v1/runs/{run}");
    (StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(json!({"run": run, "status": "running"})))
        .into_response()
}

async fn start(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    needs(&caller, Role::Start)?;
    let input = body_json(&headers, &body)?;
    let streams = wants(&headers, header::ACCEPT, "text/event-stream");
    let background = wants(&headers, header::HeaderName::from_static("prefer"), "respond-async");
    if streams && !background {
        needs(&caller, Role::Watch)?;
    }
    let how = StartOptions {
        streams: streams && !background,
        background,
        traceparent: traceparent(&headers),
        ..StartOptions::default()
    };
    let Some(key) = idempotency_key(&headers)? else {
        let Started { run, events, cancel } = service.start(&caller, &name, &input, how)?;
        if background {
            return Ok(begun(&run));
        }
        // Whoever asked and goes away does not want the answer any more.
        let left = cancel.drop_guard();
        if streams {
            return Ok(sse(Events { events, left: Some(left) }));
        }
        let mut events = events;
        while events.recv().await.is_some() {}
        let _ = left.disarm();
        return ended(&service, &caller, &run);
    };
    let digest = runtime::hex(&callers::hash_of(&format!("{name}\n{}", String::from_utf8_lossy(&body))));
    // Its client may come back for the answer, so the run continues.
    let how = StartOptions { background: true, ..how };
    match service.start_once(&caller, &name, &input, Key { name: &key, digest: &digest }, how)? {
        KeyedStart::Begun(Started { run, .. }) if background => Ok(begun(&run)),
        KeyedStart::Begun(Started { events, .. }) if streams => Ok(sse(Events { events, left: None })),
        KeyedStart::Begun(Started { run, mut events, .. }) => {
            while events.recv().await.is_some() {}
            ended(&service, &caller, &run)
        }
        KeyedStart::Known(run) if background => Ok(begun(&run)),
        KeyedStart::Known(run) => again(&service, &caller, &run).await,
        KeyedStart::Another => Err(Refusal::KeyReused),
    }
}

/// The key under which a client repeats a request, if it has one.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    match key.to_str() {
        Ok(key) if !key.is_empty() && key.len() <= MAX_KEY => Ok(Some(key.to_string())),
        _ => Err(Refusal::BadKey),
    }
}

fn sse(events: Events) -> Response {
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Returns the end of a run as the answer to the request that started it.
fn ended(service: &Service, caller: &Caller, run: &str) -> Result<Response, Refusal> {
    let Some(outcome) = service.outcome(caller, run) else {
        return Err(Refusal::Lost);
    };
    Ok((status_of(&outcome), Json(outcome)).into_response())
}

/// Answers a repeated request: with the answer of its run, once that has ended. For a run that is not active
/// here, the answer names it.
async fn again(service: &Service, caller: &Caller, run: &str) -> Result<Response, Refusal> {
    // Before it is looked whether it has ended, so that nothing happens in between.
    if let Some(mut events) = service.watch(caller, run) {
        while service.outcome(caller, run).is_none() {
            match events.recv().await {
                Ok(event) if matches!(event["event"].as_str(), Some("result" | "error")) => break,
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
        return ended(service, caller, run);
    }
    let status = service.status(caller, run)?;
    Ok(match status.get("outcome") {
        Some(outcome) => (status_of(outcome), Json(outcome.clone())).into_response(),
        None => begun(run),
    })
}

/// The events of a run as they are sent; the run is canceled when the connection is gone before the last.
struct Events {
    events: Receiver<Value>,
    left: Option<DropGuard>,
}

impl Stream for Events {
    type Item = Result<SseEvent, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.events.poll_recv(cx) {
            Poll::Ready(Some(event)) => {
                let name = event["event"].as_str().unwrap_or("event").to_string();
                Poll::Ready(Some(Ok(SseEvent::default().event(name).data(event.to_string()))))
            }
            Poll::Ready(None) => {
                if let Some(left) = self.left.take() {
                    left.disarm();
                }
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

async fn status(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Refusal> {
    needs(&caller, Role::Watch)?;
    Ok(Json(service.status(&caller, &run)?))
}

async fn cancel(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Refusal> {
    needs(&caller, Role::Start)?;
    service.cancel(&caller, &run)?;
    Ok(Json(service.status(&caller, &run)?))
}

/// Query of a list of runs.
#[derive(serde::Deserialize)]
struct ListQuery {
    limit: Option<u32>,
}

async fn runs(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Query(most): Query<ListQuery>,
) -> Result<Json<Value>, Refusal> {
    needs(&caller, Role::Watch)?;
    Ok(Json(service.newest(&caller, most.limit.unwrap_or(50).min(1000))?.into()))
}

/// Request to resume a run: `{"unfinished": "retry"}`.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    #[serde(default)]
    unfinished: Unfinished,
}

async fn resume(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    needs(&caller, Role::Start)?;
    let how = match body.is_empty() {
        true => Resume::default(),
        false => {
            serde_json::from_value(body_json(&headers, &body)?).map_err(|e| Refusal::Body(e.to_string()))?
        }
    };
    let id = run.clone();
    let resumed =
        tokio::task::spawn_blocking(move || service.resume(&caller, &id, how.unfinished).map(drop)).await;
    resumed.unwrap_or_else(|_| Err(Refused::Journal("it crashed".into())))?;
    Ok(begun(&run))
}

async fn approvals(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<Json<Value>, Refusal> {
    needs(&caller, Role::Approve)?;
    Ok(Json(service.waiting(&caller, None)?.into()))
}

/// Body of an answer to a question: `{"decision": "approve"}`, perhaps with arguments in place of those of
/// the call (`"edit": {…}`), or `{"decision": "deny", "reason": "…"}`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    decision: Verdict,
    reason: Option<String>,
    edit: Option<Value>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Approve,
    Deny,
}

async fn decide(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    Path(request): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    needs(&caller, Role::Approve)?;
    let json = body_json(&headers, &body)?;
    let said: DecisionBody =
        serde_json::from_value(json).map_err(|e| Refusal::Body(format!("not a decision: {e}")))?;
    let Some(path) = service.journal() else {
        return Err(Refusal::NoJournal);
    };
    if matches!(said.decision, Verdict::Approve) && said.reason.is_some() {
        return Err(Refusal::Body("`reason` is allowed only with `deny`".into()));
    }
    if matches!(said.decision, Verdict::Deny) && said.edit.is_some() {
        return Err(Refusal::Body("`edit` is allowed only with `approve`".into()));
    }
    let failed = |e: runtime::JournalError| Refusal::from(Refused::Journal(e.message));
    let journal = service.journal_at(path).map_err(failed)?;
    let question = journal.question(&request).map_err(failed)?;
    // Who may not see a question does not decide it, and is not told that it is there.
    let Some(question) = question.filter(|q| service.may_see(&caller, &journal, q)) else {
        return Err(Refusal::NoQuestion);
    };
    // An answer goes to the run in memory, and that is the memory of another server.
    if service.is_elsewhere(&question.run).await {
        let why = "a server of another host executes the run: answer there, or sign the answer with `entail approve`";
        return Err(Refusal::NotWaiting(why.into()));
    }
    let decision = match (said.decision, said.edit) {
        (Verdict::Deny, _) => Decision::Deny(said.reason),
        (Verdict::Approve, None) => Decision::Approve,
        (Verdict::Approve, Some(edit)) => {
            session::approvals::edited(path, &question, &edit).map_err(Refusal::Body)?
        }
    };
    let decided = service.decide(journal, &request, &decision, &caller);
    decided.map_err(|e| Refusal::NotWaiting(e.message))?;
    let verdict = decision.verdict();
    // An answer implies that the run should continue. If its server is gone, the run is resumed where
    // possible.
    let resumed = service.resume_if_it_is_ours(&question.run).await;
    Ok(Json(json!({"request": request, "run": question.run, "verdict": verdict, "resumed": resumed})))
}
