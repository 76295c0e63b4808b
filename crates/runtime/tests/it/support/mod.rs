//! A server that speaks the Chat Completions protocol, and misbehaves as told.
//!
//! It checks requests as the real endpoint does (roles, tool results, strict schemas) and answers 400 to
//! wrong ones, so a test that gets its reply has also sent a valid request.

#[cfg(unix)]
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod program;
#[cfg(unix)]
#[cfg(feature = "redis")]
pub mod redis;

use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::net::TcpListener;

/// Action of the server on a request.
#[derive(Clone, Debug)]
pub enum Act {
    /// Answers with this text.
    Say(String),
    /// Answers with this message and finish reason.
    Message(Json, &'static str),
    /// Answers with this status, media type, extra header and body.
    Raw(u16, &'static str, Option<(&'static str, String)>, String),
    /// Never answers.
    Hang,
    /// Sends the head and the beginning of the body, and no more.
    HangInBody,
    /// Closes the connection without a word.
    Close,
    /// Resets the connection.
    Reset,
    /// Announces a longer body than it sends.
    Truncate,
    /// Sends a body without end.
    Endless,
    /// Sends a correct answer one byte at a time.
    Drip(String),
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub authorization: Option<String>,
    pub body: Json,
}

pub struct Server {
    pub url: String,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Seen>>,
    /// Requests that are being handled.
    busy: AtomicUsize,
    most_busy: AtomicUsize,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server that does these things, one for each request, the last one for all further.
    pub async fn start(acts: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            acts: Mutex::new(acts.into_iter().collect()),
            seen: Mutex::default(),
            busy: AtomicUsize::new(0),
            most_busy: AtomicUsize::new(0),
        });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { return };
                let state = shared.clone();
                if matches!(state.acts.lock().unwrap().front(), Some(Act::Reset)) {
                    stream.set_zero_linger().unwrap();
                }
                let service = service_fn(move |request| answer(state.clone(), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Server { url, state, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Forgets the requests that it has seen.
    pub fn forget(&self) {
        self.state.seen.lock().unwrap().clear();
    }

    /// Requests whose client is still there and has no answer yet.
    pub fn busy(&self) -> usize {
        self.state.busy.load(Ordering::SeqCst)
    }

    /// The most requests that were handled at once.
    pub fn most_busy(&self) -> usize {
        self.state.most_busy.load(Ordering::SeqCst)
    }

    /// Waits until `n` requests are being handled.
    pub async fn until_busy(&self, n: usize) {
        while self.busy() != n {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}

/// Counts a request as being handled as long as it lives.
struct Busy(Arc<State>);

impl Busy {
    fn new(state: Arc<State>) -> Busy {
        let n = state.busy.fetch_add(1, Ordering::SeqCst) + 1;
        state.most_busy.fetch_max(n, Ordering::SeqCst);
        Busy(state)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A body in pieces.
enum Piece {
    Bytes(Bytes),
    /// Gives what was sent before time to leave.
    Pause(Pin<Box<tokio::time::Sleep>>),
    Break,
    Hang,
    Endless,
}

struct Pieces {
    pieces: VecDeque<Piece>,
    _busy: Busy,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.pieces.pop_front() {
            None => Poll::Ready(None),
            Some(Piece::Bytes(b)) => Poll::Ready(Some(Ok(Frame::data(b)))),
            Some(Piece::Pause(mut sleep)) => {
                if sleep.as_mut().poll(cx).is_pending() {
                    self.pieces.push_front(Piece::Pause(sleep));
                    return Poll::Pending;
                }
                self.poll_frame(cx)
            }
            Some(Piece::Break) => Poll::Ready(Some(Err(io::Error::other("told to")))),
            Some(Piece::Hang) => {
                self.pieces.push_front(Piece::Hang);
                Poll::Pending
            }
            Some(Piece::Endless) => {
                self.pieces.push_front(Piece::Endless);
                Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; 1 << 16])))))
            }
        }
    }
}

async fn answer(state: Arc<State>, request: Request<Incoming>) -> Result<Response<Pieces>, io::Error> {
    use http_body_util::BodyExt;
    let busy = Busy::new(state.clone());
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let body: Json = serde_json::from_slice(&body).unwrap_or(Json::Null);
    let authorization = head.headers.get("authorization").map(|v| v.to_str().unwrap().to_string());
    let path = head.uri.path().to_string();
    state.seen.lock().unwrap().push(Seen { path: path.clone(), authorization, body: body.clone() });
    let act = {
        let mut acts = state.acts.lock().unwrap();
        if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() }
    };
    let Some(act) = act else { return Ok(error(500, "the test gave nothing to do", busy)) };
    if !path.ends_with("/v1/chat/completions") {
        return Ok(error(404, "Invalid URL", busy));
    }
    if let Err(why) = check(&body) {
        return Ok(error(400, &why, busy));
    }
    let ok = |piece: Vec<Piece>, length: Option<u64>, busy| {
        response(200, "application/json", None, piece, length, busy)
    };
    let say =
        |text: &str| completion(&body, json!({"role": "assistant", "content": text}), "stop").to_string();
    Ok(match act {
        Act::Say(text) => ok(vec![Piece::Bytes(say(&text).into())], None, busy),
        Act::Message(message, finish) => {
            ok(vec![Piece::Bytes(completion(&body, message, finish).to_string().into())], None, busy)
        }
        Act::Raw(status, kind, header, body) => {
            response(status, kind, header, vec![Piece::Bytes(body.into())], None, busy)
        }
        Act::Hang => {
            let _busy = busy;
            std::future::pending::<Infallible>().await;
            unreachable!()
        }
        Act::HangInBody => ok(vec![Piece::Bytes("{\"id\":".into()), Piece::Hang], None, busy),
        Act::Close | Act::Reset => return Err(io::Error::other("told to close")),
        Act::Truncate => {
            let text = say("whatever");
            let half = text[..text.len() / 2].to_string();
            let pause = Piece::Pause(Box::pin(tokio::time::sleep(std::time::Duration::from_millis(20))));
            ok(vec![Piece::Bytes(half.into()), pause, Piece::Break], Some(text.len() as u64), busy)
        }
        Act::Endless => ok(vec![Piece::Endless], None, busy),
        Act::Drip(text) => {
            let bytes = say(&text).into_bytes();
            ok(bytes.into_iter().map(|b| Piece::Bytes(vec![b].into())).collect(), None, busy)
        }
    })
}

fn response(
    status: u16,
    kind: &str,
    header: Option<(&str, String)>,
    pieces: Vec<Piece>,
    length: Option<u64>,
    busy: Busy,
) -> Response<Pieces> {
    let mut builder = Response::builder().status(status).header("content-type", kind);
    if let Some((name, value)) = header {
        builder = builder.header(name, value);
    }
    if let Some(length) = length {
        builder = builder.header("content-length", length);
    }
    builder.body(Pieces { pieces: pieces.into(), _busy: busy }).unwrap()
}

fn error(status: u16, message: &str, busy: Busy) -> Response<Pieces> {
    let body = json!({"error": {"message": message, "type": "invalid_request_error", "code": null}});
    response(status, "application/json", None, vec![Piece::Bytes(body.to_string().into())], None, busy)
}

fn completion(request: &Json, message: Json, finish: &str) -> Json {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    })
}

/// Checks a request.
fn check(body: &Json) -> Result<(), String> {
    let fields = body.as_object().ok_or("the body is no object")?;
    if !fields.get("model").is_some_and(Json::is_string) {
        return Err("you must provide a model parameter".into());
    }
    let messages = fields.get("messages").and_then(Json::as_array).ok_or("no messages")?;
    if messages.is_empty() {
        return Err("messages is too short".into());
    }
    let mut open: Option<&Json> = None;
    for m in messages {
        let role = m["role"].as_str().ok_or("a message without role")?;
        if let Some(id) = open.take() {
            if role != "tool" || m["tool_call_id"] != *id || !m["content"].is_string() {
                return Err(
                    "tool_calls must be followed by tool messages responding to each tool_call_id".into()
                );
            }
            continue;
        }
        match role {
            "system" | "user" if m["content"].is_string() => {}
            "assistant" => match m.get("tool_calls") {
                Some(calls) => {
                    let arguments =
                        calls[0]["function"]["arguments"].as_str().ok_or("arguments are no string")?;
                    serde_json::from_str::<Json>(arguments).map_err(|e| e.to_string())?;
                    open = Some(&calls[0]["id"]);
                }
                None if m["content"].is_string() => {}
                None => return Err("an assistant message without content".into()),
            },
            _ => return Err(format!("messages with role {role} are not allowed here")),
        }
    }
    if open.is_some() {
        return Err("a tool call without response".into());
    }
    if let Some(format) = fields.get("response_format") {
        match format["type"].as_str() {
            Some("json_object") => {}
            Some("json_schema") => {
                let schema = &format["json_schema"];
                identifier(&schema["name"])?;
                if schema["schema"]["type"] != "object" {
                    return Err("schema must have type object".into());
                }
                if schema["strict"] == true {
                    strict(&schema["schema"])?;
                }
            }
            _ => return Err("unknown response_format".into()),
        }
    }
    for tool in fields.get("tools").and_then(Json::as_array).into_iter().flatten() {
        let function = &tool["function"];
        identifier(&function["name"])?;
        if function["parameters"]["type"] != "object" {
            return Err("parameters must have type object".into());
        }
        if function["strict"] == true {
            strict(&function["parameters"])?;
        }
    }
    Ok(())
}

fn identifier(name: &Json) -> Result<(), String> {
    let ok = |n: &str| {
        (1..=64).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
    };
    if name.as_str().is_some_and(ok) {
        Ok(())
    } else {
        Err(format!("{name} does not match '^[a-zA-Z0-9_-]{{1,64}}$'"))
    }
}

/// The rules of strict schemas.
pub fn strict(schema: &Json) -> Result<(), String> {
    const KNOWN: &[&str] = &[
        "type",
        "properties",
        "required",
        "additionalProperties",
        "enum",
        "anyOf",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "pattern",
        "minLength",
        "maxLength",
        "$defs",
    ];
    let fields = schema.as_object().ok_or("a schema that is no object")?;
    if fields.contains_key("$ref") {
        return if fields.len() == 1 { Ok(()) } else { Err("'$ref' stands alone".into()) };
    }
    if let Some(name) = fields.keys().find(|k| !KNOWN.contains(&k.as_str())) {
        return Err(format!("'{name}' is not permitted"));
    }
    if !fields.contains_key("type") && !fields.contains_key("anyOf") {
        return Err("schema must have a 'type' key".into());
    }
    if let Some(properties) = fields.get("properties").and_then(Json::as_object) {
        let required = fields.get("required").and_then(Json::as_array).ok_or("'required' is required")?;
        if required.len() != properties.len()
            || !required.iter().all(|r| properties.contains_key(r.as_str().unwrap_or("")))
        {
            return Err("'required' must name every property".into());
        }
        if fields.get("additionalProperties") != Some(&json!(false)) {
            return Err("'additionalProperties' must be false".into());
        }
        properties.values().try_for_each(strict)?;
    }
    fields.get("items").map_or(Ok(()), strict)?;
    fields
        .get("$defs")
        .and_then(Json::as_object)
        .into_iter()
        .flat_map(|d| d.values())
        .try_for_each(strict)?;
    fields.get("anyOf").and_then(Json::as_array).into_iter().flatten().try_for_each(strict)
}
