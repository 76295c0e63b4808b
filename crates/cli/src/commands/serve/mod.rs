//! `entail serve`: pipelines over HTTP, and as an agent of the A2A protocol.
//!
//! Entry point: [`serve`]. [`super::service`] runs pipelines and knows the runs, this module and [`a2a`] are ways to reach it, and [`openapi`] describes it.
//!
//! Invariant: without a token nobody but this machine is listened to, and a request must name this machine (no page of a browser reaches it
//! through a name of its own).
//! Invariant: a run that nobody waits for any more is cancelled, unless it was asked for as one to come back to.

mod a2a;
mod openapi;

use super::service::{How, Log, Refused, Service, Started};
use crate::args::{LogArg, ServeArgs};
use crate::settings::Settings;
use crate::ui::{Exit, Ui};
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use runtime::{CancellationToken, Decider, Decision, Unfinished, Via};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio_stream::Stream;
use tokio_util::sync::DropGuard;

/// Runs the command.
pub fn serve(ui: &Ui, args: &ServeArgs) -> Exit {
    let settings = match Settings::read(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let token = settings.environment.secret(&args.token_env);
    if !args.listen.ip().is_loopback() && token.is_none() {
        let help =
            format!("set `{}` in the environment or in `.env`, or listen on 127.0.0.1", args.token_env);
        return ui.usage("other machines are listened to only with a token", Some(&help));
    }
    if args.world.watch || args.world.trace.is_some() {
        let help = "`--log json` tells what happens in all runs, `--otlp` sends traces of them";
        return ui
            .usage("a server has many runs, so it can neither show one nor write its trace", Some(help));
    }
    let log = Log::new(ui, args.world.log == Some(LogArg::Json));
    let service =
        Service::new(ui, &args.files, &args.world, args.journal.as_deref(), args.max_runs, &settings, log);
    let service = match service {
        Ok(service) => Arc::new(service),
        Err(exit) => return exit,
    };
    if service.pipelines().next().is_none() {
        return ui.usage("there is nothing to serve", Some("name programs that have pipelines"));
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let exit = runtime.block_on(listen(ui, args, service, token));
    runtime.shutdown_timeout(Duration::from_millis(200));
    exit
}

async fn listen(ui: &Ui, args: &ServeArgs, service: Arc<Service>, token: Option<runtime::Secret>) -> Exit {
    let listener = match tokio::net::TcpListener::bind(args.listen).await {
        Ok(listener) => listener,
        Err(e) => {
            return ui.usage(
                &format!("cannot listen on `{}`: {e}", args.listen),
                Some("choose another address with `--listen`"),
            );
        }
    };
    let address = listener.local_addr().unwrap_or(args.listen);
    let base = args.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
    service.listens_at(&base, token.is_some());
    if ui.is_json() {
        ui.result(&json!({"listening": base}).to_string());
    } else {
        ui.note(&format!("listening on {base}  (described by {base}/openapi.json)"));
    }
    let stop = CancellationToken::new();
    tokio::spawn(stopped(stop.clone()));
    let app = router(service.clone(), Arc::new(Guard { token, address }), args.max_body);
    if !args.no_resume {
        tokio::spawn(service.clone().resume_all());
    }
    let closed = CancellationToken::new();
    let shutdown = {
        let (service, stop, closed, grace) = (
            service.clone(),
            stop.clone(),
            closed.clone(),
            Duration::from_secs_f64(args.grace.clamp(0.0, 86_400.0)),
        );
        async move {
            stop.cancelled().await;
            // No new runs; those under way get their time, and are left then to the next server, or cancelled.
            service.close(grace).await;
            closed.cancel();
        }
    };
    let serving = axum::serve(listener, app).with_graceful_shutdown(shutdown);
    // Who has begun a request and never ends it does not keep the server from ending.
    let abandoned = async {
        closed.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        served = serving.into_future() => if let Err(e) = served {
            ui.say(&format!("error: {e}"));
            return Exit::Failed;
        },
        () = abandoned => {}
    }
    Exit::Done
}

/// How long clients have to read their answers after the last run has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Until Ctrl-C is pressed or the process is asked to end. A second time ends it at once.
async fn stopped(stop: CancellationToken) {
    for end in [false, true] {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        if end {
            std::process::exit(130);
        }
        stop.cancel();
    }
}

/// Who may ask.
struct Guard {
    token: Option<runtime::Secret>,
    address: SocketAddr,
}

impl Guard {
    fn admits(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let text = |name| headers.get(name).and_then(|v: &axum::http::HeaderValue| v.to_str().ok());
        if let Some(token) = &self.token {
            let given =
                text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer ")).unwrap_or_default();
            if same(given.as_bytes(), token.expose().as_bytes()) {
                return Ok(());
            }
            return Err(Failure::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "a bearer token is wanted, and this is not it",
            ));
        }
        let host = text(header::HOST).unwrap_or_default();
        let name =
            host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
        let here = self.address.ip().to_string();
        if matches!(name, "localhost" | "127.0.0.1" | "[::1]") || name == here {
            return Ok(());
        }
        Err(Failure::new(
            StatusCode::FORBIDDEN,
            "forbidden",
            "without a token only this machine by its own name is answered",
        ))
    }
}

/// Compares without telling by the time where the difference is.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |d, (x, y)| d | (x ^ y)) == 0
}

/// An error of a request: `{"error": {"code", "message"}}`.
pub(super) struct Failure {
    status: StatusCode,
    code: String,
    message: String,
}

impl Failure {
    /// Whether a body was meant to be JSON and is not.
    fn is_no_json(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST
    }

    fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Failure {
        Failure { status, code: code.into(), message: message.into() }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = Json(json!({"error": {"code": self.code, "message": self.message}}));
        let mut response = (self.status, body).into_response();
        if self.status == StatusCode::TOO_MANY_REQUESTS {
            response.headers_mut().insert(header::RETRY_AFTER, axum::http::HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, axum::http::HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        let (status, code) = match &refused {
            Refused::Unknown(_) => (StatusCode::NOT_FOUND, "not_found"),
            Refused::Input(_) => (StatusCode::UNPROCESSABLE_ENTITY, "input"),
            Refused::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            Refused::Full(_) => (StatusCode::TOO_MANY_REQUESTS, "busy"),
            Refused::Closing => (StatusCode::SERVICE_UNAVAILABLE, "closing"),
            Refused::Journal(_) => (StatusCode::INTERNAL_SERVER_ERROR, "journal"),
        };
        Failure::new(status, code, refused.message())
    }
}

fn router(service: Arc<Service>, guard: Arc<Guard>, max_body: usize) -> Router {
    let guarded = Router::new()
        .route("/openapi.json", get(description))
        .route("/v1/pipelines", get(pipelines))
        .route("/v1/pipelines/{name}/runs", post(start))
        .route("/v1/runs", get(runs))
        .route("/v1/runs/{run}", get(status).delete(cancel))
        .route("/v1/runs/{run}/resume", post(resume))
        .route("/v1/approvals", get(approvals))
        .route("/v1/approvals/{request}", post(decide))
        .route("/a2a", post(a2a::rpc))
        .layer(from_fn_with_state(guard, admitted));
    Router::new()
        .route("/health", get(health))
        .route("/.well-known/agent-card.json", get(a2a::card))
        .merge(guarded)
        .fallback(async || Failure::new(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path"))
        .layer(DefaultBodyLimit::max(max_body))
        .layer(map_response(move |response: Response| std::future::ready(worded(response, max_body))))
        .layer(from_fn_with_state(service.clone(), noted))
        .with_state(service)
}

/// What is refused before it reaches anybody here is told as all else is: as JSON, with what to do.
fn worded(response: Response, max_body: usize) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let said = kind.and_then(|k| k.to_str().ok()).is_some_and(|k| k.starts_with("application/json"));
    let (code, message) = match response.status() {
        _ if said => return response,
        StatusCode::PAYLOAD_TOO_LARGE => (
            "too_large",
            format!("the body has more than {max_body} bytes, which is what `--max-body` allows"),
        ),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("method", "this path takes other methods, which the header `allow` names".to_string())
        }
        _ => return response,
    };
    Failure::new(response.status(), code, message).into_response()
}

/// Requests that are refused are in the log; what runs do is there anyway.
async fn noted(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_string());
    let response = next.run(request).await;
    let status = response.status();
    if matches!(status.as_u16(), 401 | 403 | 429 | 500) {
        service.log().refused(method.as_str(), &path, status.as_u16());
    }
    response
}

async fn admitted(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.admits(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    }
}

async fn health(State(service): State<Arc<Service>>) -> Json<Value> {
    let (running, waiting) = service.under_way();
    Json(
        json!({"status": "ok", "version": env!("CARGO_PKG_VERSION"), "running": running, "waiting": waiting}),
    )
}

async fn description(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(openapi::description(&service))
}

async fn pipelines(State(service): State<Arc<Service>>) -> Json<Value> {
    Json(service.pipelines().map(openapi::pipeline_json).collect())
}

/// The JSON of a body. That it must say that it is JSON keeps forms of foreign pages out.
pub(super) fn body_json(headers: &HeaderMap, body: &Bytes) -> Result<Value, Failure> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind != "application/json" && !kind.ends_with("+json") {
        let message = "the body must be of type `application/json`";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media_type", message));
    }
    serde_json::from_slice(body)
        .map_err(|e| Failure::new(StatusCode::BAD_REQUEST, "json", format!("the body is not JSON: {e}")))
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
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let input = body_json(&headers, &body)?;
    let streams = wants(&headers, header::ACCEPT, "text/event-stream");
    let background = wants(&headers, header::HeaderName::from_static("prefer"), "respond-async");
    let how = How {
        streams: streams && !background,
        background,
        context: None,
        traceparent: traceparent(&headers),
    };
    let Started { run, events, cancel } = service.start(&name, &input, how)?;
    if background {
        return Ok(begun(&run));
    }
    // Whoever asked and goes away does not want the answer any more.
    let left = cancel.drop_guard();
    if streams {
        return Ok(Sse::new(Events { events, left: Some(left) })
            .keep_alive(KeepAlive::default())
            .into_response());
    }
    let mut events = events;
    while events.recv().await.is_some() {}
    let _ = left.disarm();
    let Some(outcome) = service.outcome(&run) else {
        return Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "lost", "the run was lost"));
    };
    Ok((status_of(&outcome), Json(outcome)).into_response())
}

/// A run that failed by itself is no success; which error it was is in the body.
fn status_of(outcome: &Value) -> StatusCode {
    match outcome["error"]["code"].as_str() {
        None => StatusCode::OK,
        Some("cancelled" | "budget") => StatusCode::SERVICE_UNAVAILABLE,
        Some("model" | "tool") => StatusCode::BAD_GATEWAY,
        Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

/// The events of a run as they are sent; the run is cancelled when the connection is gone before the last.
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
    Path(run): Path<String>,
) -> Result<Json<Value>, Failure> {
    Ok(Json(service.status(&run)?))
}

async fn cancel(
    State(service): State<Arc<Service>>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Failure> {
    service.cancel(&run)?;
    Ok(Json(service.status(&run)?))
}

/// How many runs a list has, unless it is said.
#[derive(serde::Deserialize)]
struct Most {
    limit: Option<u32>,
}

async fn runs(State(service): State<Arc<Service>>, Query(most): Query<Most>) -> Result<Json<Value>, Failure> {
    Ok(Json(service.newest(most.limit.unwrap_or(50).min(1000))?.into()))
}

/// How a run is gone on with: `{"unfinished": "retry"}`.
#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Resume {
    #[serde(default)]
    unfinished: Unfinished,
}

async fn resume(
    State(service): State<Arc<Service>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Failure> {
    let how = match body.is_empty() {
        true => Resume::default(),
        false => serde_json::from_value(body_json(&headers, &body)?)
            .map_err(|e| Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "input", e.to_string()))?,
    };
    let id = run.clone();
    let resumed = tokio::task::spawn_blocking(move || service.resume(&id, how.unfinished).map(drop)).await;
    resumed.unwrap_or_else(|_| Err(Refused::Journal("it crashed".into())))?;
    Ok(begun(&run))
}

async fn approvals(State(service): State<Arc<Service>>) -> Result<Json<Value>, Failure> {
    let Some(path) = service.journal() else { return Ok(Json(json!([]))) };
    let waiting = service.journal_at(path).and_then(|j| j.waiting(None));
    let waiting = waiting.map_err(|e| Refused::Journal(e.message))?;
    Ok(Json(waiting.iter().map(super::approve::waiting_json).collect()))
}

/// What is said to a question: `{"decision": "approve"}`, or `{"decision": "deny", "reason": "…"}`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    decision: Verdict,
    reason: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Approve,
    Deny,
}

async fn decide(
    State(service): State<Arc<Service>>,
    Path(request): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let json = body_json(&headers, &body)?;
    let said: Said = serde_json::from_value(json)
        .map_err(|e| Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "input", format!("no decision: {e}")))?;
    let Some(path) = service.journal() else {
        return Err(Failure::new(StatusCode::NOT_FOUND, "not_found", "without a journal nothing waits"));
    };
    if matches!(said.decision, Verdict::Approve) && said.reason.is_some() {
        let message = "no decision: `reason` belongs to `deny`; the run is told nothing of why it is allowed";
        return Err(Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "input", message));
    }
    let decision = match said.decision {
        Verdict::Approve => Decision::Approve,
        Verdict::Deny => Decision::Deny(said.reason),
    };
    let failed = |e: runtime::JournalError| Failure::from(Refused::Journal(e.message));
    let journal = service.journal_at(path).map_err(failed)?;
    let Some(question) = journal.question(&request).map_err(failed)? else {
        let message = "there is no such question; the run may ask something else by now";
        return Err(Failure::new(StatusCode::NOT_FOUND, "not_found", message));
    };
    let by = Decider::new("HTTP", Via::Caller);
    let decided = service.decide(journal, &request, &decision, by);
    decided.map_err(|e| Failure::new(StatusCode::CONFLICT, "not_waiting", e.message))?;
    let verdict = if decision == Decision::Approve { "approved" } else { "denied" };
    // Who answers wants it to go on. A run whose server has gone is gone on with, if it can be.
    let resumed = service.resume_if_it_is_ours(&question.run).await;
    Ok(Json(json!({"request": request, "run": question.run, "verdict": verdict, "resumed": resumed})))
}
