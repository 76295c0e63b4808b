//! The server as an agent of the A2A protocol, version 1.0 (JSON-RPC binding), and 0.3 for clients that name
//! no version.
//!
//! A message is the input of a pipeline: a part with `data`, or a text where the pipeline takes one. The
//! pipeline is the skill that the message's `metadata.skill` names, or the only one. A task is a run; a
//! client that goes away does not end it, and may come back to it.

use super::body_json;
use super::refusal::{Refusal, lacks_role};
use crate::service::{Refused, RunError, Service, StartOptions, Started, ifc, input_schema};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use core_ir::Type;
use serde_json::{Value, json};
use session::callers::{Caller, Role};
use session::view::WITHHELD;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

const NO_JSON: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const NO_METHOD: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
const NO_TASK: i64 = -32001;
const NOT_CANCELABLE: i64 = -32002;
const NO_PUSH: i64 = -32003;
const UNSUPPORTED: i64 = -32004;
const NO_VERSION: i64 = -32009;
/// The caller does not have the role that the method needs. A code of this server.
const FORBIDDEN: i64 = -32080;

/// Error of the protocol.
fn reason(code: i64) -> Option<&'static str> {
    Some(match code {
        NO_TASK => "TASK_NOT_FOUND",
        NOT_CANCELABLE => "TASK_NOT_CANCELABLE",
        NO_PUSH => "PUSH_NOTIFICATION_NOT_SUPPORTED",
        UNSUPPORTED => "UNSUPPORTED_OPERATION",
        NO_VERSION => "VERSION_NOT_SUPPORTED",
        _ => return None,
    })
}

/// Version of the protocol that a client uses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V03,
    V10,
}

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TaskState {
    Working,
    AuthRequired,
    Completed,
    Failed,
    Canceled,
}

impl TaskState {
    /// The name in a version of the protocol.
    fn name(self, version: Version) -> &'static str {
        let (v10, v03) = match self {
            TaskState::Working => ("TASK_STATE_WORKING", "working"),
            TaskState::AuthRequired => ("TASK_STATE_AUTH_REQUIRED", "auth-required"),
            TaskState::Completed => ("TASK_STATE_COMPLETED", "completed"),
            TaskState::Failed => ("TASK_STATE_FAILED", "failed"),
            TaskState::Canceled => ("TASK_STATE_CANCELED", "canceled"),
        };
        if version == Version::V10 { v10 } else { v03 }
    }
}

/// The card, which everybody may read.
pub(super) async fn card(State(service): State<Arc<Service>>) -> Json<Value> {
    let skills: Vec<Value> = service
        .pipelines()
        .map(|p| {
            let takes = p.input.as_ref().map_or("nothing".to_string(), Type::to_string);
            let schema = input_schema(p.input.as_ref());
            json!({"id": p.name, "name": p.name, "description": format!("Takes {takes}. As JSON Schema: {schema}"), "tags": ["entail"]})
        })
        .collect();
    let url = format!("{}/a2a", service.base());
    let mut card = json!({
        "name": "entail",
        "description": "Pipelines with bounds that are known before they run.",
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        // For clients of 0.3.
        "url": url, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": false},
        "defaultInputModes": ["application/json", "text/plain"],
        "defaultOutputModes": ["application/json", "text/plain"],
        "skills": skills,
    });
    if service.callers().wants_credential() {
        card["securitySchemes"] = json!({"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}});
        card["securityRequirements"] = json!([{"schemes": {"bearer": {"list": []}}}]);
    }
    Json(card)
}

/// An error of JSON-RPC.
struct Fault(i64, String);

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        let code = match &refused {
            Refused::Unknown(_) | Refused::Input(_) => INVALID_PARAMS,
            Refused::Conflict(_) => UNSUPPORTED,
            Refused::Full(_) | Refused::Limited(_) | Refused::Closing | Refused::Journal(_) => INTERNAL,
        };
        Fault(code, refused.message().into_owned())
    }
}

/// Answer to a request.
enum Answer {
    One(Value),
    /// Results one after the other, until the task has ended or waits for an approval.
    Many(Receiver<Value>),
}

pub(super) async fn rpc(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Arc<Caller>>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    // Invalid JSON has no `id` to answer to.
    let request = match body_json(&headers, &body) {
        Ok(request) => request,
        Err(refusal @ Refusal::NotJson(_)) => {
            return Ok(error(&Value::Null, &Fault(NO_JSON, refusal.message().into_owned())));
        }
        Err(refusal) => return Err(refusal),
    };
    let id = request.get("id").cloned().unwrap_or_default();
    let result = |id: &Value, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let client = Client { service, caller };
    Ok(match answer(&client, &headers, &request).await {
        Ok(Answer::One(one)) => Json(result(&id, one)).into_response(),
        Ok(Answer::Many(many)) => {
            let events = ReceiverStream::new(many)
                .map(move |one| Ok::<_, Infallible>(SseEvent::default().data(result(&id, one).to_string())));
            Sse::new(events).keep_alive(KeepAlive::default()).into_response()
        }
        Err(fault) => error(&id, &fault),
    })
}

/// An error as JSON-RPC has it, with the name that the protocol gives it.
fn error(id: &Value, Fault(code, message): &Fault) -> Response {
    let mut error = json!({"code": code, "message": message});
    if let Some(reason) = reason(*code) {
        error["data"] = json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "a2a-protocol.org",
        }]);
    }
    Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response()
}

/// The caller of a request and the programs within its reach.
#[derive(Clone)]
struct Client {
    service: Arc<Service>,
    caller: Arc<Caller>,
}

impl Client {
    fn needs(&self, role: Role) -> Result<(), Fault> {
        match self.caller.has(role) {
            true => Ok(()),
            false => Err(Fault(FORBIDDEN, lacks_role(&self.caller.name, role))),
        }
    }

    fn status(&self, run: &str) -> Result<Value, Refused> {
        self.service.status(&self.caller, run)
    }

    fn has_ended(&self, run: &str) -> bool {
        self.service.outcome(&self.caller, run).is_some()
    }
}

async fn answer(client: &Client, headers: &HeaderMap, request: &Value) -> Result<Answer, Fault> {
    let version = match headers.get("a2a-version").map(|v| v.to_str().unwrap_or_default()) {
        None | Some("") => Version::V03,
        Some(v) if v == "1.0" || v.starts_with("1.0.") => Version::V10,
        Some(v) if v == "0.3" || v.starts_with("0.3.") => Version::V03,
        Some(v) => {
            return Err(Fault(
                NO_VERSION,
                format!("version `{}` is not spoken here; 1.0 and 0.3 are", diagnostics::clip_to(v, 20)),
            ));
        }
    };
    let method = request.get("method").and_then(Value::as_str).filter(|_| request["jsonrpc"] == "2.0");
    let Some(method) = method else {
        return Err(Fault(INVALID_REQUEST, "this is not a JSON-RPC request".into()));
    };
    let params = request.get("params").unwrap_or(&Value::Null);
    let traceparent = super::traceparent(headers);
    let task_id = || {
        params
            .get("id")
            .and_then(Value::as_str)
            .ok_or_else(|| Fault(INVALID_PARAMS, "`id` names no task".into()))
    };
    Ok(Answer::One(match method {
        "SendMessage" | "message/send" => {
            client.needs(Role::Start)?;
            send(client, params, version, traceparent).await?
        }
        "SendStreamingMessage" | "message/stream" => {
            client.needs(Role::Start)?;
            client.needs(Role::Watch)?;
            let Started { run, events, .. } = begin(client, params, traceparent)?;
            return follow(client, run, Source::Client(events), version).map(Answer::Many);
        }
        "SubscribeToTask" | "tasks/resubscribe" => {
            client.needs(Role::Watch)?;
            let id = task_id()?;
            // Before its state is read, so that no event is missed in between.
            let events = client.service.watch(&client.caller, id).ok_or_else(|| no_task(id))?;
            if client.has_ended(id) {
                return Err(Fault(UNSUPPORTED, "the task has ended".into()));
            }
            return follow(client, id.to_string(), Source::Watcher(events), version).map(Answer::Many);
        }
        "GetTask" | "tasks/get" => {
            client.needs(Role::Watch)?;
            task(client, task_id()?, version)?
        }
        "ListTasks" => {
            client.needs(Role::Watch)?;
            list(client, params, version)?
        }
        "CancelTask" | "tasks/cancel" => {
            client.needs(Role::Start)?;
            let id = task_id()?;
            let before = client.status(id).map_err(|_| no_task(id))?;
            if matches!(before["status"].as_str(), Some("done" | "failed" | WITHHELD)) {
                return Err(Fault(NOT_CANCELABLE, "the task has ended".into()));
            }
            client.service.cancel(&client.caller, id)?;
            // It ends as soon as it hears of it.
            for _ in 0..200 {
                if client.has_ended(id) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            task(client, id, version)?
        }
        push if push.contains("PushNotificationConfig") || push.contains("pushNotificationConfig") => {
            return Err(no_push());
        }
        "GetExtendedAgentCard" | "agent/getAuthenticatedExtendedCard" => {
            return Err(Fault(UNSUPPORTED, "the card has all there is".into()));
        }
        other => {
            return Err(Fault(NO_METHOD, format!("unknown method `{}`", diagnostics::clip_to(other, 60))));
        }
    }))
}

fn no_push() -> Fault {
    Fault(NO_PUSH, "push notifications are not supported: get the task, or subscribe to it".into())
}

fn no_task(id: &str) -> Fault {
    Fault(NO_TASK, format!("unknown task `{}`", diagnostics::clip_to(id, 80)))
}

/// Returns a page of the known tasks, newest first.
fn list(client: &Client, params: &Value, version: Version) -> Result<Value, Fault> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
    let most = params.get("pageSize").and_then(Value::as_u64).unwrap_or(50);
    let most = usize::try_from(most.clamp(1, 100)).unwrap_or(50);
    let (context, state) = (text("contextId"), text("status"));
    let artifacts = params.get("includeArtifacts").and_then(Value::as_bool) == Some(true);
    let since = text("statusTimestampAfter");
    // A second and a run; what is older than the last of a list follows in the next.
    let after = text("pageToken").map(|token| {
        let (changed, run) = token.split_once('.').unwrap_or_default();
        (changed.parse::<i64>().unwrap_or_default(), run.to_string())
    });
    let (mut page, mut total, mut next, mut more) = (Vec::new(), 0, String::new(), false);
    for (changed, run) in client.service.runs(&client.caller) {
        // One may have been forgotten since.
        let Ok(mut task) = task(client, &run, version) else { continue };
        if context.is_some_and(|c| task["contextId"] != c)
            || state.is_some_and(|s| task["status"]["state"] != s)
            || since.is_some_and(|s| task["status"]["timestamp"].as_str() < Some(s))
        {
            continue;
        }
        total += 1;
        if after.as_ref().is_some_and(|last| (changed, run.clone()) >= *last) {
            continue;
        }
        if page.len() == most {
            more = true;
            continue;
        }
        next = format!("{changed}.{run}");
        if let Some(task) = task.as_object_mut().filter(|_| !artifacts) {
            task.remove("artifacts");
        }
        page.push(task);
    }
    let next = if more { next } else { String::new() };
    Ok(json!({"tasks": page, "nextPageToken": next, "pageSize": most, "totalSize": total}))
}

/// Takes a message, and waits for what comes of it, unless that is not wanted.
async fn send(
    client: &Client,
    params: &Value,
    version: Version,
    traceparent: Option<&str>,
) -> Result<Value, Fault> {
    let later = params.pointer("/configuration/returnImmediately").and_then(Value::as_bool) == Some(true)
        || params.pointer("/configuration/blocking").and_then(Value::as_bool) == Some(false);
    let Started { run, mut events, .. } = begin(client, params, traceparent)?;
    if !later {
        // Until it ends or waits for an approval. A client that disconnects earlier can query the task.
        while let Some(event) = events.recv().await {
            if event["event"] == "waiting" {
                break;
            }
        }
    }
    let task = task(client, &run, version)?;
    Ok(if version == Version::V10 { json!({ "task": task }) } else { task })
}

/// Source of a run's events.
enum Source {
    Client(Receiver<Value>),
    Watcher(broadcast::Receiver<Value>),
}

impl Source {
    /// The next one; `None` at the end.
    async fn next(&mut self) -> Option<Value> {
        match self {
            Source::Client(events) => events.recv().await,
            Source::Watcher(events) => loop {
                match events.recv().await {
                    Ok(event) => return Some(event),
                    // Missed events are not repeated; the next one carries the current state.
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            },
        }
    }
}

/// Streams the status and the events of a task, until it has ended or waits for an approval.
fn follow(client: &Client, run: String, source: Source, version: Version) -> Result<Receiver<Value>, Fault> {
    let first = task(client, &run, version)?;
    let (to, results) = channel(16);
    let client = client.clone();
    tokio::spawn(async move {
        // A task does not end when its last listener leaves.
        let _ = tell(&client, &run, first, source, version, &to).await;
    });
    Ok(results)
}

async fn tell(
    client: &Client,
    run: &str,
    first: Value,
    mut source: Source,
    version: Version,
    to: &Sender<Value>,
) -> Result<(), ()> {
    let v10 = version == Version::V10;
    let context = first["contextId"].clone();
    let waits = |task: &Value| task["status"]["state"] == TaskState::AuthRequired.name(version);
    let waited = waits(&first);
    let send = async |result: Value| to.send(result).await.map_err(|_| ());
    let status = |status: &Value, last: bool| match v10 {
        true => json!({"statusUpdate": {"taskId": run, "contextId": context, "status": status}}),
        false => {
            json!({"kind": "status-update", "taskId": run, "contextId": context, "status": status, "final": last})
        }
    };
    send(if v10 { json!({ "task": first }) } else { first }).await?;
    if waited {
        return Ok(());
    }
    while let Some(event) = source.next().await {
        match event["event"].as_str() {
            Some("asked") => {
                let mut working = json!({"state": TaskState::Working.name(version)});
                working["message"] = message(run, &doing(&event), version);
                send(status(&working, false)).await?;
            }
            Some("waiting") => {
                if let Ok(task) = task(client, run, version)
                    && waits(&task)
                {
                    return send(status(&task["status"], true)).await;
                }
            }
            // The next server resumes it.
            Some("error") if RunError::of(&event) == Some(RunError::Interrupted) => return Ok(()),
            Some("result" | "error") => break,
            _ => {}
        }
    }
    let Ok(task) = task(client, run, version) else { return Ok(()) };
    for artifact in task["artifacts"].as_array().into_iter().flatten() {
        send(match v10 {
            true => json!({"artifactUpdate": {"taskId": run, "contextId": context, "artifact": artifact, "append": false, "lastChunk": true}}),
            false => json!({"kind": "artifact-update", "taskId": run, "contextId": context, "artifact": artifact, "append": false, "lastChunk": true}),
        })
        .await?;
    }
    send(status(&task["status"], true)).await
}

/// A request of the run in words, without what is said in it.
fn doing(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    match (text("kind"), text("purpose")) {
        ("model", "") => format!("asks `{}`", text("model")),
        ("model", purpose) => format!("asks `{}` for `{purpose}`", text("model")),
        ("tool", _) => format!("calls `{}`", text("tool")),
        ("approve", _) => format!("asks to call `{}`", text("tool")),
        (kind, _) => format!("{kind} {}", text("key")).trim().to_string(),
    }
}

/// Begins a run with what a message says.
fn begin(client: &Client, params: &Value, traceparent: Option<&str>) -> Result<Started, Fault> {
    let message = params.get("message").filter(|m| m.is_object());
    let Some(message) = message else { return Err(Fault(INVALID_PARAMS, "`message` is missing".into())) };
    if let Some(task) = message.get("taskId").and_then(Value::as_str).filter(|t| !t.is_empty()) {
        client.status(task).map_err(|_| no_task(task))?;
        return Err(Fault(UNSUPPORTED, "a task takes one message; begin another".into()));
    }
    if params.pointer("/configuration/taskPushNotificationConfig").is_some_and(|c| !c.is_null())
        || params.pointer("/configuration/pushNotificationConfig").is_some_and(|c| !c.is_null())
    {
        return Err(no_push());
    }
    let named = message.pointer("/metadata/skill").or_else(|| params.pointer("/metadata/skill"));
    let service = &client.service;
    let mut all = service.pipelines();
    let pipeline = match (named.and_then(Value::as_str), all.next(), all.next()) {
        (Some(name), ..) => service.pipelines().find(|p| p.name == name),
        (None, Some(only), None) => Some(only),
        _ => None,
    };
    let Some(pipeline) = pipeline else {
        return Err(Fault(INVALID_PARAMS, "`metadata.skill` must name one of the skills of the card".into()));
    };
    let parts = message.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let input = match parts.iter().find_map(|p| p.get("data")) {
        Some(data) => data.clone(),
        None => {
            let text: Vec<&str> = parts.iter().filter_map(|p| p.get("text")?.as_str()).collect();
            if text.is_empty() {
                return Err(Fault(INVALID_PARAMS, "the message has no part with `data` or `text`".into()));
            }
            as_input(pipeline.input.as_ref(), text.join("\n"))
        }
    };
    let context = message.get("contextId").and_then(Value::as_str);
    Ok(service.start(
        &client.caller,
        &pipeline.name,
        &input,
        StartOptions { background: true, context, traceparent, ..StartOptions::default() },
    )?)
}

/// A text as the input of a pipeline: as it is, as the only field, or as JSON.
fn as_input(ty: Option<&Type>, text: String) -> Value {
    match ty {
        Some(Type::Record(fields))
            if fields.len() == 1 && fields[0].1 == Type::Str && !text.trim_start().starts_with('{') =>
        {
            json!({ &*fields[0].0: text })
        }
        None | Some(Type::Str | Type::Dyn) => text.into(),
        Some(_) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

/// A run as a task.
fn task(client: &Client, run: &str, version: Version) -> Result<Value, Fault> {
    let status = client.status(run).map_err(|_| no_task(run))?;
    let outcome = status.get("outcome");
    let canceled = outcome.and_then(RunError::of) == Some(RunError::Cancelled);
    let state = match status["status"].as_str() {
        Some("done") => TaskState::Completed,
        Some("failed") if canceled => TaskState::Canceled,
        Some("failed" | WITHHELD) => TaskState::Failed,
        Some("waiting") => TaskState::AuthRequired,
        _ => TaskState::Working,
    };
    let v10 = version == Version::V10;
    let text = |t: &str| if v10 { json!({ "text": t }) } else { json!({"kind": "text", "text": t}) };
    let mut task = json!({
        "id": run, "contextId": client.service.context(&client.caller, run).unwrap_or_else(|| run.to_string()),
        "status": {"state": state.name(version)},
    });
    if let Some(changed) = client.service.changed(&client.caller, run) {
        task["status"]["timestamp"] = runtime::utc(changed).into();
    }
    let said = match (outcome.and_then(|o| o["error"]["message"].as_str()), status.get("waiting")) {
        (Some(why), _) => Some(why.to_string()),
        (None, Some(waiting)) => Some(format!("approval is required: {waiting}")),
        (None, None) => None,
    };
    if let Some(said) = said {
        task["status"]["message"] = message(run, &said, version);
        if let Some(label) = outcome.and_then(|o| o.pointer("/error/label")) {
            task["status"]["message"]["metadata"] = json!({"label": label, "ifc": ifc(label)});
        }
    }
    if let Some(result) = outcome.and_then(|o| o.get("result")) {
        let part = match (result, v10) {
            (Value::String(t), _) => text(t),
            (other, true) => json!({"data": other, "mediaType": "application/json"}),
            (other, false) => json!({"kind": "data", "data": other}),
        };
        let label = outcome.and_then(|o| o.get("label")).unwrap_or(&Value::Null);
        let metadata = json!({"label": label, "ifc": ifc(label)});
        task["artifacts"] =
            json!([{"artifactId": "result", "name": "result", "parts": [part], "metadata": metadata}]);
    }
    if !v10 {
        task["kind"] = "task".into();
    }
    Ok(task)
}

/// Status of a task for the client.
fn message(run: &str, said: &str, version: Version) -> Value {
    let id = format!("{run}-status");
    match version {
        Version::V10 => json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": said}]}),
        Version::V03 => {
            json!({"kind": "message", "messageId": id, "role": "agent", "parts": [{"kind": "text", "text": said}]})
        }
    }
}
