//! A server that speaks the protocols of models as their providers document them, whole and as streams, and
//! misbehaves as told.
//!
//! It refuses requests that the provider would refuse (order of messages, results of calls, missing fields,
//! headers, keywords of schemas), so a test that gets its reply has sent a valid request.

use runtime::Protocol;
use serde_json::{Value as Json, json};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Reply of a model.
#[derive(Clone, Debug, Default)]
pub struct Say {
    pub text: String,
    /// Names and arguments.
    pub calls: Vec<(String, String)>,
    pub refused: bool,
    pub cut: bool,
}

/// A body with its media type.
#[derive(Clone, Debug)]
pub struct Body {
    kind: &'static str,
    text: String,
}

impl Body {
    pub fn text(kind: &'static str, text: &str) -> Body {
        Body { kind, text: text.into() }
    }

    pub fn json(json: Json) -> Body {
        Body { kind: "application/json", text: json.to_string() }
    }
}

/// Action of the server on a request.
#[derive(Clone, Debug)]
pub enum Act {
    Say(Say),
    /// Byte by byte.
    Drip(Say),
    /// A byte now and then, without end.
    SlowDrip,
    /// An error of the protocol: its status and what it is called. With status 200, an error in place of an
    /// answer.
    Error(u16, &'static str),
    /// An error with `Retry-After`.
    Later(u16, u32),
    Raw(u16, Body),
    /// A stream with an event of this data; JSON is asked for and not given otherwise.
    Event(String),
    /// The bytes of a stream.
    Bytes(Vec<u8>),
    Hang,
    HangInBody,
    Close,
    Reset,
    /// Half of an answer.
    Truncate,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = format!("{self:?}").chars().take(80).collect();
        f.write_str(&text)
    }
}

pub struct Server {
    pub url: String,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

struct State {
    protocol: Protocol,
    acts: Mutex<VecDeque<Act>>,
    seen: Mutex<Vec<Json>>,
    connections: AtomicUsize,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// A server that does these things, one for each request, the last one for all further.
    pub async fn start(protocol: Protocol, acts: impl IntoIterator<Item = Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            protocol,
            acts: Mutex::new(acts.into_iter().collect()),
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            let mut open = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                open.spawn(serve(stream, shared.clone()));
            }
        });
        Server { url, state, task }
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Json> {
        self.state.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

/// Answers the requests of a connection, one after another.
async fn serve(mut stream: TcpStream, state: Arc<State>) -> Option<()> {
    loop {
        let (head, body) = request(&mut stream).await?;
        let mut body: Json = serde_json::from_slice(&body).unwrap_or(Json::Null);
        if state.protocol == Protocol::Bedrock {
            let model = head.split("/model/").nth(1).and_then(|rest| rest.split('/').next());
            body["model"] = model.unwrap_or_default().into();
            if head.contains("/converse-stream ") {
                body["stream"] = true.into();
            }
        }
        if is_gemini(state.protocol) {
            // Its requests have these in their address.
            let model = head.split("/models/").nth(1).and_then(|rest| rest.split(':').next());
            body["model"] = model.unwrap_or_default().into();
            if head.contains(":streamgeneratecontent?alt=sse ") {
                body["stream"] = true.into();
            }
        }
        state.seen.lock().unwrap().push(body.clone());
        let act = {
            let mut acts = state.acts.lock().unwrap();
            if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() }
        };
        let wrong = check(state.protocol, &head, &body);
        let act = match wrong {
            Err(why) => Act::Raw(400, Body::json(error(state.protocol, "invalid_request_error", &why))),
            Ok(()) => act?,
        };
        perform(&mut stream, state.protocol, act, body.get("stream") == Some(&Json::Bool(true))).await?;
    }
}

fn is_gemini(protocol: Protocol) -> bool {
    matches!(protocol, Protocol::Gemini | Protocol::Vertex)
}

/// Reads a request: its head, and the body of the length that the head says.
async fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?.to_lowercase();
    let length =
        head.lines().find_map(|l| l.strip_prefix("content-length: "))?.trim().parse::<usize>().ok()?;
    while bytes.len() < end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, bytes[end..end + length].to_vec()))
}

/// Does what is to be done; `None` if the connection is over then.
async fn perform(stream: &mut TcpStream, protocol: Protocol, act: Act, streamed: bool) -> Option<()> {
    let is_framed = protocol == Protocol::Bedrock;
    let media_type =
        if is_framed { "application/vnd.amazon.eventstream" } else { "text/event-stream; charset=utf-8" };
    match act {
        Act::Say(say) => {
            if !streamed {
                return whole(stream, 200, "application/json", "", &answer(protocol, &say).to_string()).await;
            }
            begin(stream, media_type).await?;
            for event in events(protocol, &say) {
                chunk(stream, &event).await?;
            }
            chunk(stream, b"").await
        }
        Act::Drip(say) => {
            let (kind, text) = if streamed {
                (media_type, events(protocol, &say).concat())
            } else {
                ("application/json", answer(protocol, &say).to_string().into_bytes())
            };
            begin(stream, kind).await?;
            for byte in &text {
                chunk(stream, &[*byte]).await?;
            }
            chunk(stream, b"").await
        }
        Act::SlowDrip => {
            begin(stream, if streamed { media_type } else { "application/json" }).await?;
            let blank = if is_framed && streamed { frame("ping", "{}") } else { b" ".to_vec() };
            loop {
                chunk(stream, &blank).await?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Act::Error(200, name) if streamed => {
            let data = error(protocol, name, "the key sk-planted-0zq7xw2rt9lm4kp8vb3nc is wrong");
            begin(stream, media_type).await?;
            let event = match is_framed {
                true => exception("serviceUnavailableException", &data.to_string()),
                false => format!("event: error\ndata: {data}\n\n").into_bytes(),
            };
            chunk(stream, &event).await?;
            chunk(stream, b"").await
        }
        Act::Error(status, name) => {
            let body = error(protocol, name, "the key sk-planted-0zq7xw2rt9lm4kp8vb3nc is wrong").to_string();
            whole(stream, status, "application/json", "", &body).await
        }
        Act::Later(status, seconds) => {
            let header = format!("retry-after: {seconds}\r\n");
            whole(stream, status, "application/json", &header, "{}").await
        }
        Act::Raw(status, body) => whole(stream, status, body.kind, "", &body.text).await,
        Act::Event(data) if streamed => {
            begin(stream, media_type).await?;
            let event = match is_framed {
                // Its checksum would take longer than the client waits.
                true if data.len() > 1 << 20 => {
                    let mut out = (data.len() as u32).to_be_bytes().to_vec();
                    out.extend(0u32.to_be_bytes());
                    out.extend(checksum(&out).to_be_bytes());
                    out
                }
                true => frame("contentBlockDelta", &data),
                false => format!("data: {data}\n\n").into_bytes(),
            };
            chunk(stream, &event).await
        }
        // The same text where JSON was asked for.
        Act::Event(data) => whole(stream, 200, "application/json", "", &data).await,
        Act::Bytes(bytes) => {
            begin(stream, if streamed { media_type } else { "application/json" }).await?;
            chunk(stream, &bytes).await?;
            chunk(stream, b"").await
        }
        Act::Hang => std::future::pending().await,
        Act::HangInBody => {
            begin(stream, if streamed { media_type } else { "application/json" }).await?;
            chunk(stream, b": ").await?;
            std::future::pending().await
        }
        Act::Close => None,
        Act::Reset => {
            stream.set_zero_linger().ok()?;
            None
        }
        Act::Truncate => {
            let say = Say { text: "whatever there is to say".into(), ..Say::default() };
            if streamed {
                // The stream ends as streams do, in the middle of the answer.
                begin(stream, media_type).await?;
                let events = events(protocol, &say);
                chunk(stream, &events[..events.len() / 2].concat()).await?;
                chunk(stream, b"").await?;
            } else {
                let text = answer(protocol, &say).to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    text.len()
                );
                stream.write_all(head.as_bytes()).await.ok()?;
                stream.write_all(&text.as_bytes()[..text.len() / 2]).await.ok()?;
            }
            None
        }
    }
}

async fn whole(stream: &mut TcpStream, status: u16, kind: &str, header: &str, body: &str) -> Option<()> {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\n{header}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body.as_bytes()).await.ok()
}

async fn begin(stream: &mut TcpStream, kind: &str) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()
}

/// A chunk of a body; an empty one ends it.
async fn chunk(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await.ok()?;
    stream.write_all(bytes).await.ok()?;
    stream.write_all(b"\r\n").await.ok()
}

/// An error as the protocol tells it.
pub fn error(protocol: Protocol, name: &str, message: &str) -> Json {
    match protocol {
        Protocol::Anthropic => {
            json!({"type": "error", "error": {"type": name, "message": message}, "request_id": "req_1"})
        }
        Protocol::Bedrock => json!({ "message": message }),
        Protocol::Chat | Protocol::Azure | Protocol::Responses => {
            json!({"error": {"message": message, "type": name, "param": null, "code": null}})
        }
        Protocol::Gemini | Protocol::Vertex => {
            let (code, status) = match name {
                "rate_limit_error" => (429, "RESOURCE_EXHAUSTED"),
                "api_error" => (500, "INTERNAL"),
                "overloaded_error" => (503, "UNAVAILABLE"),
                "authentication_error" => (401, "UNAUTHENTICATED"),
                "not_found_error" => (404, "NOT_FOUND"),
                _ => (400, "INVALID_ARGUMENT"),
            };
            json!({"error": {"code": code, "message": message, "status": status}})
        }
    }
}

/// The arguments of a call as Anthropic's protocol has them whole: an object, where they are one.
fn input(args: &str) -> Json {
    serde_json::from_str(args).unwrap_or_else(|_| args.into())
}

/// Returns thinking blocks of an Anthropic model before its answer.
pub fn thoughts() -> Vec<Json> {
    vec![
        json!({"type": "thinking", "thinking": "hm, what is there?", "signature": "EqQBCkgI"}),
        json!({"type": "redacted_thinking", "data": "EmwKAhgBEgy3"}),
    ]
}

/// Thought of a model before it calls tools.
pub const THOUGHT: &str = "hm, what is there?";

/// Signature of the thoughts of a Gemini model, which it wants back with its calls.
pub const SIGNATURE: &str = "CiQB0e2Kb2lq";

/// A whole answer.
fn answer(protocol: Protocol, say: &Say) -> Json {
    let Say { text, calls, refused, cut } = say;
    let calls = calls.iter().enumerate();
    match protocol {
        Protocol::Chat | Protocol::Azure => {
            let calls: Vec<Json> = calls
                .map(|(i, (n, a))| json!({"id": format!("call_{i}"), "type": "function", "function": {"name": n, "arguments": a}}))
                .collect();
            let finish = match (cut, calls.is_empty()) {
                (true, _) => "length",
                (false, true) => "stop",
                (false, false) => "tool_calls",
            };
            let said = |is: bool| if is && calls.is_empty() { json!(text) } else { Json::Null };
            let mut message =
                json!({"role": "assistant", "content": said(!refused), "refusal": said(*refused)});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
                // As DeepSeek and vLLM tell it.
                message["reasoning_content"] = THOUGHT.into();
            }
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1_760_000_000, "model": "m-test",
                "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
                "usage": {
                    "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
                    "prompt_tokens_details": {"cached_tokens": 2},
                },
            })
        }
        Protocol::Responses => {
            let mut output = vec![
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNATURE}),
            ];
            let part = if *refused {
                json!({"type": "refusal", "refusal": text})
            } else {
                json!({"type": "output_text", "text": text, "annotations": []})
            };
            if calls.len() == 0 || !text.is_empty() {
                output.push(json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}));
            }
            output.extend(calls.map(|(i, (n, a))| {
                json!({"type": "function_call", "id": format!("fc_{i}"), "call_id": format!("call_{i}"), "name": n, "arguments": a, "status": "completed"})
            }));
            json!({
                "id": "resp_1", "object": "response", "created_at": 1_760_000_000, "model": "m-test", "error": null,
                "status": if *cut { "incomplete" } else { "completed" },
                "incomplete_details": if *cut { json!({"reason": "max_output_tokens"}) } else { Json::Null },
                "output": output,
                "usage": {
                    "input_tokens": 11, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 7,
                    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18,
                },
            })
        }
        Protocol::Anthropic => {
            let mut content = thoughts();
            if calls.len() == 0 || !text.is_empty() {
                content.push(json!({"type": "text", "text": text}));
            }
            let reason = match (refused, cut, calls.len()) {
                (true, ..) => "refusal",
                (_, true, _) => "max_tokens",
                (_, _, 0) => "end_turn",
                _ => "tool_use",
            };
            content.extend(calls.map(|(i, (n, a))| json!({"type": "tool_use", "id": format!("toolu_{i}"), "name": n, "input": input(a)})));
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "m-test", "content": content,
                "stop_reason": reason, "stop_sequence": null,
                "usage": {"input_tokens": 8, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 7},
            })
        }
        Protocol::Bedrock => {
            let thought = json!({"text": "hm, what is there?", "signature": "EqQBCkgI"});
            let mut content = vec![json!({"reasoningContent": {"reasoningText": thought}})];
            if calls.len() == 0 || !text.is_empty() {
                content.push(json!({ "text": text }));
            }
            let reason = match (refused, cut, calls.len()) {
                (true, ..) => "refusal",
                (_, true, _) => "max_tokens",
                (_, _, 0) => "end_turn",
                _ => "tool_use",
            };
            content.extend(calls.map(|(i, (n, a))| json!({"toolUse": {"toolUseId": format!("tooluse_{i}"), "name": n, "input": input(a)}})));
            json!({
                "output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
                "usage": {
                    "inputTokens": 8, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 1, "outputTokens": 7,
                    "totalTokens": 18,
                },
                "metrics": {"latencyMs": 12},
            })
        }
        Protocol::Gemini | Protocol::Vertex => {
            let reason = match (refused, cut) {
                (true, _) => "SAFETY",
                (_, true) => "MAX_TOKENS",
                _ => "STOP",
            };
            json!({
                "candidates": [{"content": {"role": "model", "parts": parts(say)}, "finishReason": reason, "index": 0}],
                "usageMetadata": {
                    "promptTokenCount": 11, "cachedContentTokenCount": 2, "candidatesTokenCount": 5,
                    "thoughtsTokenCount": 2, "totalTokenCount": 18,
                },
                "modelVersion": "m-test", "responseId": "r-1",
            })
        }
    }
}

/// Parts of an answer of Gemini.
fn parts(say: &Say) -> Vec<Json> {
    let mut parts = vec![json!({"text": "hm, what is there?", "thought": true})];
    if say.calls.is_empty() || !say.text.is_empty() {
        parts.push(json!({"text": say.text}));
    }
    parts.extend(say.calls.iter().enumerate().map(|(i, (n, a))| {
        let mut part = json!({"functionCall": {"name": n, "args": input(a)}});
        // Of several calls the first has the signature.
        if i == 0 {
            part["thoughtSignature"] = SIGNATURE.into();
        }
        part
    }));
    parts
}

/// The same as events.
fn events(protocol: Protocol, say: &Say) -> Vec<Vec<u8>> {
    match protocol {
        Protocol::Bedrock => frames(say),
        _ => sent_events(protocol, say).into_iter().map(String::into_bytes).collect(),
    }
}

/// A frame of Amazon with these headers.
fn framed(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut head = Vec::new();
    for (name, value) in headers {
        head.push(name.len() as u8);
        head.extend(name.bytes());
        // A text.
        head.push(7);
        head.extend((value.len() as u16).to_be_bytes());
        head.extend(value.bytes());
    }
    let mut out = ((16 + head.len() + payload.len()) as u32).to_be_bytes().to_vec();
    out.extend((head.len() as u32).to_be_bytes());
    out.extend(checksum(&out).to_be_bytes());
    out.extend(head);
    out.extend(payload.bytes());
    out.extend(checksum(&out).to_be_bytes());
    out
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 * (crc & 1));
        }
    }
    !crc
}

fn frame(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", name), (":content-type", "application/json"), (":message-type", "event")];
    framed(&headers, payload)
}

fn exception(name: &str, payload: &str) -> Vec<u8> {
    framed(&[(":exception-type", name), (":message-type", "exception")], payload)
}

/// An answer of Bedrock as a stream.
fn frames(say: &Say) -> Vec<Vec<u8>> {
    let whole = answer(Protocol::Bedrock, say);
    let mut out = vec![frame("messageStart", r#"{"role":"assistant"}"#)];
    for (i, block) in whole.pointer("/output/message/content").unwrap().as_array().unwrap().iter().enumerate()
    {
        let mut deltas: Vec<Json> = Vec::new();
        if let Some(call) = block.get("toolUse") {
            let start = json!({"toolUse": {"toolUseId": call["toolUseId"], "name": call["name"]}});
            let event = json!({"contentBlockIndex": i, "start": start});
            out.push(frame("contentBlockStart", &event.to_string()));
            let before =
                whole.pointer("/output/message/content").unwrap().as_array().unwrap().len() - say.calls.len();
            let args = say.calls[i - before].1.as_bytes();
            let part = |p: &[u8]| json!({"toolUse": {"input": String::from_utf8_lossy(p)}});
            deltas.extend(args.chunks(4).map(part));
        } else if let Some(thought) = block.pointer("/reasoningContent/reasoningText") {
            deltas.push(json!({"reasoningContent": {"text": thought["text"]}}));
            deltas.push(json!({"reasoningContent": {"signature": thought["signature"]}}));
        } else {
            let text: Vec<char> = block["text"].as_str().unwrap().chars().collect();
            deltas.extend(text.chunks(3).map(|p| json!({"text": p.iter().collect::<String>()})));
        }
        for delta in deltas {
            let event = json!({"contentBlockIndex": i, "delta": delta, "p": "abcd"});
            out.push(frame("contentBlockDelta", &event.to_string()));
        }
        out.push(frame("contentBlockStop", &json!({"contentBlockIndex": i}).to_string()));
    }
    out.push(frame("messageStop", &json!({"stopReason": whole["stopReason"]}).to_string()));
    let event = json!({"usage": whole["usage"], "metrics": whole["metrics"]});
    out.push(frame("metadata", &event.to_string()));
    out
}

fn sent_events(protocol: Protocol, say: &Say) -> Vec<String> {
    let whole = answer(protocol, say);
    let pieces: Vec<String> =
        say.text.chars().collect::<Vec<_>>().chunks(3).map(|c| c.iter().collect()).collect();
    let plain = |data: Json| format!("data: {data}\n\n");
    let named =
        |data: Json| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default());
    let mut out = Vec::new();
    match protocol {
        // Its streams have frames.
        Protocol::Bedrock => {}
        Protocol::Chat | Protocol::Azure => {
            let delta = |delta: Json, finish: Json| {
                plain(json!({
                    "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m-test", "usage": null,
                    "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
                }))
            };
            out.push(delta(json!({"role": "assistant", "content": "", "refusal": null}), Json::Null));
            let field = if say.refused { "refusal" } else { "content" };
            for piece in pieces.iter().filter(|_| say.calls.is_empty()) {
                out.push(delta(json!({ field: piece }), Json::Null));
            }
            if !say.calls.is_empty() {
                let (a, b) = THOUGHT.split_at(4);
                out.extend([a, b].map(|t| delta(json!({ "reasoning_content": t }), Json::Null)));
            }
            for (i, (name, args)) in say.calls.iter().enumerate() {
                let function = json!({"name": name, "arguments": ""});
                let call =
                    json!({"index": i, "id": format!("call_{i}"), "type": "function", "function": function});
                out.push(delta(json!({ "tool_calls": [call] }), Json::Null));
                for piece in args.as_bytes().chunks(4) {
                    let piece = String::from_utf8_lossy(piece);
                    let call = json!({"index": i, "function": {"arguments": piece}});
                    out.push(delta(json!({ "tool_calls": [call] }), Json::Null));
                }
            }
            out.push(delta(json!({}), whole["choices"][0]["finish_reason"].clone()));
            out.push(plain(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": whole["usage"]})));
            out.push("data: [DONE]\n\n".into());
        }
        Protocol::Responses => {
            let mut started = whole.clone();
            (started["status"], started["output"], started["usage"]) =
                ("in_progress".into(), json!([]), Json::Null);
            let mut number = 0;
            let mut say_event = |mut data: Json| {
                number += 1;
                data["sequence_number"] = number.into();
                out.push(named(data));
            };
            say_event(json!({"type": "response.created", "response": started}));
            for (i, item) in whole["output"].as_array().into_iter().flatten().enumerate() {
                say_event(json!({"type": "response.output_item.added", "output_index": i, "item": item}));
                if item["type"] == "message" {
                    let kind =
                        if say.refused { "response.refusal.delta" } else { "response.output_text.delta" };
                    for piece in &pieces {
                        say_event(
                            json!({"type": kind, "item_id": item["id"], "output_index": i, "content_index": 0, "delta": piece}),
                        );
                    }
                }
                say_event(json!({"type": "response.output_item.done", "output_index": i, "item": item}));
            }
            let kind = if say.cut { "response.incomplete" } else { "response.completed" };
            say_event(json!({"type": kind, "response": whole}));
        }
        Protocol::Anthropic => {
            let mut started = whole.clone();
            (started["content"], started["stop_reason"]) = (json!([]), Json::Null);
            started["usage"]["output_tokens"] = 1.into();
            out.push(named(json!({"type": "message_start", "message": started})));
            out.push(named(json!({"type": "ping"})));
            for (i, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
                let (begun, deltas) = match block["type"].as_str() {
                    Some("text") => {
                        let deltas: Vec<Json> =
                            pieces.iter().map(|p| json!({"type": "text_delta", "text": p})).collect();
                        (json!({"type": "text", "text": ""}), deltas)
                    }
                    Some("tool_use") => {
                        let mut begun = block.clone();
                        begun["input"] = json!({});
                        let before = whole["content"].as_array().unwrap().len() - say.calls.len();
                        let args = &say.calls[i - before].1;
                        let part = |p: &[u8]| json!({"type": "input_json_delta", "partial_json": String::from_utf8_lossy(p)});
                        (begun, args.as_bytes().chunks(4).map(part).collect())
                    }
                    Some("thinking") => {
                        let part = |name: &str| {
                            let text = block[name].as_str().unwrap();
                            let (a, b) = text.split_at(text.len() / 2);
                            [a, b].map(|p| json!({"type": format!("{name}_delta"), name: p}))
                        };
                        let deltas = [part("thinking"), part("signature")].concat();
                        (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
                    }
                    _ => (block.clone(), Vec::new()),
                };
                out.push(named(json!({"type": "content_block_start", "index": i, "content_block": begun})));
                out.extend(
                    deltas
                        .into_iter()
                        .map(|d| named(json!({"type": "content_block_delta", "index": i, "delta": d}))),
                );
                out.push(named(json!({"type": "content_block_stop", "index": i})));
            }
            let delta = json!({"stop_reason": whole["stop_reason"], "stop_sequence": null});
            out.push(named(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})));
            out.push(named(json!({"type": "message_stop"})));
        }
        Protocol::Gemini | Protocol::Vertex => {
            let event = |parts: Vec<Json>, finish: Json| {
                let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
                if finish.is_string() {
                    candidate["finishReason"] = finish;
                }
                plain(json!({"candidates": [candidate], "usageMetadata": whole["usageMetadata"]}))
            };
            for part in parts(say) {
                if part.get("text").is_some() && part.get("thought").is_none() {
                    out.extend(pieces.iter().map(|p| event(vec![json!({ "text": p })], Json::Null)));
                } else {
                    out.push(event(vec![part], Json::Null));
                }
            }
            out.push(event(vec![json!({"text": ""})], whole["candidates"][0]["finishReason"].clone()));
        }
    }
    out
}

/// Checks a request as the provider would.
fn check(protocol: Protocol, head: &str, body: &Json) -> Result<(), String> {
    let key = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";
    let has = |line: &str| if head.contains(line) { Ok(()) } else { Err(format!("no `{line}`")) };
    if body["model"] != "m-test" {
        return Err("model is missing".into());
    }
    match protocol {
        Protocol::Chat | Protocol::Azure => {
            has("post /v1/chat/completions ")?;
            match protocol {
                Protocol::Azure => has(&format!("api-key: {key}\r\n"))?,
                _ => has(&format!("authorization: bearer {key}\r\n"))?,
            }
            chat(body["messages"].as_array().ok_or("no messages")?, body.get("reasoning_effort").is_some())
        }
        Protocol::Bedrock => {
            has("post /v1/model/m-test/converse")?;
            has("authorization: aws4-hmac-sha256 credential=akid/")?;
            has("/eu-central-1/bedrock/aws4_request, signedheaders=host;x-amz-date;x-amz-security-token, ")?;
            has("x-amz-date: 20")?;
            has("x-amz-security-token: session\r\n")?;
            bedrock(body)
        }
        Protocol::Responses => {
            has("post /v1/responses ")?;
            has(&format!("authorization: bearer {key}\r\n"))?;
            let thinks = body.get("reasoning").is_some();
            if thinks != (body["include"] == json!(["reasoning.encrypted_content"])) {
                return Err("Encrypted content is not supported with this model.".into());
            }
            let (mut open, mut thought): (Vec<Json>, bool) = (Vec::new(), false);
            for item in body["input"].as_array().ok_or("no input")? {
                match item["type"].as_str() {
                    Some("reasoning") if open.is_empty() && item["encrypted_content"] == SIGNATURE => {
                        thought = true
                    }
                    // Several calls of one answer are next to each other.
                    Some("function_call")
                        if item["arguments"].is_string() && (open.is_empty() || thought) =>
                    {
                        if thinks && !thought {
                            return Err(
                                "function_call was provided without its required reasoning item".into()
                            );
                        }
                        open.push(item["call_id"].clone());
                    }
                    Some("function_call_output") if open.contains(&item["call_id"]) => {
                        open.retain(|id| *id != item["call_id"]);
                        thought = thought && !open.is_empty();
                    }
                    Some("message") if thought && item["content"].is_array() => {}
                    None if open.is_empty() && item["role"].is_string() && item["content"].is_string() => {}
                    _ => return Err(format!("No tool output found for function call: {item}")),
                }
            }
            for tool in body["tools"].as_array().into_iter().flatten() {
                if tool["type"] != "function" || !tool["name"].is_string() || !tool["strict"].is_boolean() {
                    return Err(format!("a wrong tool: {tool}"));
                }
            }
            if open.is_empty() { Ok(()) } else { Err("No tool output found for function call".into()) }
        }
        Protocol::Anthropic => {
            has("post /v1/messages ")?;
            has(&format!("x-api-key: {key}\r\n"))?;
            has("anthropic-version: 2023-06-01\r\n")?;
            if !body["max_tokens"].is_u64() {
                return Err("max_tokens: Field required".into());
            }
            anthropic(body)
        }
        Protocol::Gemini | Protocol::Vertex => {
            has("post /v1/models/m-test:")?;
            if protocol == Protocol::Gemini {
                has(&format!("x-goog-api-key: {key}\r\n"))?;
            } else {
                has(&format!("authorization: bearer {key}\r\n"))?;
            }
            gemini(body)
        }
    }
}

fn bedrock(body: &Json) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("messages")?;
    let thinks = body.pointer("/additionalModelRequestFields/thinking").is_some();
    let mut open: Vec<&Json> = Vec::new();
    for (i, m) in messages.iter().enumerate() {
        let want = if i % 2 == 0 { "user" } else { "assistant" };
        if m["role"] != want {
            return Err(format!("A conversation must alternate between user and assistant roles: {m}"));
        }
        let blocks = m["content"].as_array().ok_or("content")?;
        let calls = blocks.iter().any(|b| b.get("toolUse").is_some());
        if thinks && calls && blocks[0].get("reasoningContent").is_none() {
            return Err(format!("messages.{i}.content.0.type: Expected `thinking`"));
        }
        for block in blocks {
            if let Some(call) = block.get("toolUse") {
                if body["toolConfig"]["tools"].as_array().is_none_or(Vec::is_empty) {
                    return Err(
                        "The toolConfig field must be defined when using toolUse and toolResult".into()
                    );
                }
                if !call["input"].is_object() {
                    return Err(format!("toolUse.input is no document: {block}"));
                }
                open.push(&call["toolUseId"]);
            } else if let Some(result) = block.get("toolResult") {
                let Some(at) = open.iter().position(|id| **id == result["toolUseId"]) else {
                    return Err(format!("unexpected toolResult: {block}"));
                };
                if result["content"][0]["text"].as_str().is_none_or(str::is_empty) {
                    return Err(format!("an empty toolResult: {block}"));
                }
                open.remove(at);
            } else if block.get("cachePoint").is_some() && open.is_empty() {
                continue;
            } else if block.get("reasoningContent").is_none()
                && (!open.is_empty() || block["text"].as_str().is_none_or(|t| t.trim().is_empty()))
            {
                return Err(format!("The text field in the ContentBlock object is blank: {block}"));
            }
        }
        if i % 2 == 0 && !open.is_empty() {
            return Err("Expected toolResult blocks for the toolUse blocks".into());
        }
    }
    for tool in body.pointer("/toolConfig/tools").and_then(Json::as_array).into_iter().flatten() {
        if !tool["toolSpec"]["name"].is_string() || !tool["toolSpec"]["inputSchema"]["json"].is_object() {
            return Err(format!("toolSpec: {tool}"));
        }
    }
    let known = [
        "messages",
        "system",
        "inferenceConfig",
        "toolConfig",
        "additionalModelRequestFields",
        "model",
        "stream",
    ];
    match body.as_object().and_then(|o| o.keys().find(|k| !known.contains(&k.as_str()))) {
        Some(field) => Err(format!("Unknown field {field}")),
        None if open.is_empty() => Ok(()),
        None => Err("Expected toolResult blocks for the toolUse blocks".into()),
    }
}

fn gemini(body: &Json) -> Result<(), String> {
    let wrong = |what: String| Err(format!("Invalid JSON payload received. {what}"));
    let thinks = body.pointer("/generationConfig/thinkingConfig").is_some();
    let mut open: Vec<&Json> = Vec::new();
    let contents = body["contents"].as_array().ok_or("contents is not specified")?;
    if contents.first().is_none_or(|c| c["role"] != "user") {
        return wrong("contents: the first one is the user's".into());
    }
    for (i, content) in contents.iter().enumerate() {
        let of_model = match content["role"].as_str() {
            Some("model") => true,
            Some("user") => false,
            _ => return wrong(format!("Please use a valid role: user, model: {content}")),
        };
        let parts = content["parts"].as_array().ok_or("parts")?;
        let calls: Vec<&Json> = parts.iter().filter(|p| p.get("functionCall").is_some()).collect();
        let results = parts.iter().filter(|p| p.get("functionResponse").is_some()).count();
        if !open.is_empty() && results != open.len() {
            return wrong(format!(
                "the number of function response parts is equal to the number of function call parts: {content}"
            ));
        }
        if thinks && calls.first().is_some_and(|p| p["thoughtSignature"] != SIGNATURE) {
            return wrong(format!("Function call is missing a thought_signature in content {i}"));
        }
        for part in parts {
            let is_right = match part.as_object().and_then(|p| p.keys().find(|k| !k.starts_with("thought"))) {
                Some(kind) if kind == "text" => part["text"].as_str().is_some_and(|t| !t.is_empty()),
                Some(kind) if kind == "functionCall" => {
                    of_model
                        && part["functionCall"]["args"].is_object()
                        && part["functionCall"]["name"].is_string()
                }
                Some(kind) if kind == "functionResponse" => {
                    let answer = &part["functionResponse"];
                    let asked = open.iter().position(|call| call["functionCall"]["name"] == answer["name"]);
                    !of_model && answer["response"].is_object() && asked.map(|at| open.remove(at)).is_some()
                }
                _ => false,
            };
            if !is_right {
                return wrong(format!("contents[{i}].parts: {part}"));
            }
        }
        open = calls;
    }
    if !open.is_empty() {
        return wrong("a function call turn comes immediately before its function response turn".into());
    }
    let config = &body["generationConfig"];
    if config.get("responseJsonSchema").is_some() && config["responseMimeType"] != "application/json" {
        return wrong("responseJsonSchema needs responseMimeType".into());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        for one in tool["functionDeclarations"].as_array().ok_or("functionDeclarations")? {
            if !one["name"].is_string() || !one["parametersJsonSchema"].is_object() {
                return wrong(format!("tools: {one}"));
            }
        }
    }
    for word in ["\"minLength\":", "\"exclusiveMinimum\":", "\"pattern\":"] {
        if body.to_string().contains(word) {
            return wrong(format!("Unknown name {word} at a schema"));
        }
    }
    Ok(())
}

/// Checks messages; `thinks` if those with calls have to have what the model thought.
fn chat(messages: &[Json], thinks: bool) -> Result<(), String> {
    let mut open: Vec<&Json> = Vec::new();
    for m in messages {
        if !open.is_empty() {
            let Some(at) = open.iter().position(|id| m["role"] == "tool" && m["tool_call_id"] == **id) else {
                return Err("tool_calls must be followed by tool messages".into());
            };
            open.remove(at);
        } else if let Some(calls) = m.get("tool_calls").and_then(Json::as_array) {
            if thinks && m["reasoning_content"] != THOUGHT {
                return Err("Missing `reasoning_content` field in the assistant message".into());
            }
            open = calls.iter().map(|call| &call["id"]).collect();
        } else if !m["content"].is_string() || m["role"] == "tool" {
            return Err(format!("a wrong message: {m}"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err("a tool call without response".into()) }
}

fn anthropic(body: &Json) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("messages: Field required")?;
    let mut open: Vec<&Json> = Vec::new();
    for (i, m) in messages.iter().enumerate() {
        let want = if i % 2 == 0 { "user" } else { "assistant" };
        if m["role"] != want {
            return Err(format!("messages: roles must alternate, and begin with \"user\": {m}"));
        }
        let blocks = m["content"].as_array().ok_or("content: a list of blocks is sent")?;
        let calls = blocks.iter().any(|b| b["type"] == "tool_use");
        if body["thinking"]["type"] == "enabled" && calls && blocks[0]["type"] != "thinking" {
            return Err(format!("messages.{i}.content.0.type: Expected `thinking` or `redacted_thinking`"));
        }
        for block in blocks {
            if thoughts().contains(block) && open.is_empty() {
                continue;
            }
            let id = match block["type"].as_str() {
                Some("text")
                    if open.is_empty() && block["text"].as_str().is_some_and(|t| !t.trim().is_empty()) =>
                {
                    continue;
                }
                Some("tool_use") if block["input"].is_object() => {
                    if body["tools"].as_array().is_none_or(Vec::is_empty) {
                        return Err(
                            "Requests which include `tool_use` or `tool_result` blocks must define tools"
                                .into(),
                        );
                    }
                    open.push(&block["id"]);
                    continue;
                }
                Some("tool_result") => &block["tool_use_id"],
                _ => {
                    return Err(format!(
                        "messages.{i}: a wrong block, or one before the result of a call: {block}"
                    ));
                }
            };
            let Some(at) = open.iter().position(|o| *o == id) else {
                return Err(format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
            };
            open.remove(at);
        }
        if i % 2 == 0 && !open.is_empty() {
            return Err("`tool_use` ids were found without `tool_result` blocks immediately after".into());
        }
    }
    if !open.is_empty() {
        return Err("`tool_use` ids were found without `tool_result` blocks immediately after".into());
    }
    if let Some(format) = body.pointer("/output_config/format") {
        if format["type"] != "json_schema" {
            return Err("output_config.format.type".into());
        }
        let text = format["schema"].to_string();
        for word in ["\"minimum\":", "\"maximum\":", "\"minLength\":", "\"maxLength\":", "\"maxItems\":"] {
            if text.contains(word) {
                return Err(format!(
                    "output_config.format.schema: For 'number' type, property {word} is not supported"
                ));
            }
        }
    }
    Ok(())
}
