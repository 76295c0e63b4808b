//! A server at an address, over streamable HTTP. Messages are passed on as they are: what this program does
//! not know of them stays in them.
//!
//! Each message is a request of its own, whose answer is a message or a stream of them. Another stream brings
//! what the server says by itself.
//!
//! Invariant: a request that is not answered, for whatever reason, is answered with an error.
//! Invariant: neither the address nor a header is in a message.
//!
//! Source: "Transports" of the specification, revision 2025-11-25.

use super::outlet::{Outlet, Waiting};
use super::peer::{Event, Events, GRACE, too_long};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use runtime::http_cause;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The most requests that are under way.
const MAX_REQUESTS: usize = 128;
/// Time before the server's own stream is opened again, doubled up to the other.
const RECONNECT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const STREAM: &str = "text/event-stream";

/// State that the requests of a server share.
struct Shared {
    number: usize,
    client: Client,
    url: Url,
    most: usize,
    events: Events,
    /// Headers that the server's answer to `initialize` adds to each further request.
    own: Mutex<HeaderMap>,
    stop: CancellationToken,
}

/// Prepares to connect: the queue of messages, and the task that ends with the server.
pub(super) fn start(
    number: usize,
    url: &str,
    headers: &[(String, String)],
    most: usize,
    events: Events,
    written: Arc<Notify>,
    stop: CancellationToken,
) -> Result<(Outlet, JoinHandle<()>), String> {
    let url = runtime::http_url(url, "its `url`").map_err(|e| e.one_line())?;
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let wrong =
            |_| format!("its header `{}` has characters that no header can have", diagnostics::clip(name));
        let key = HeaderName::try_from(name.as_str()).map_err(|_| wrong(()))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong(()))?;
        value.set_sensitive(true);
        all.insert(key, value);
    }
    let client = runtime::http_client(&url, CONNECT, None, all).map_err(|e| e.one_line())?;
    let shared = Arc::new(Shared { number, client, url, most, events, own: Mutex::default(), stop });
    let waiting = Waiting::new(written);
    let ended = {
        let shared = shared.clone();
        tokio::spawn(async move {
            shared.stop.cancelled().await;
            shared.leave().await;
        })
    };
    let outlet = Outlet::with(waiting.clone(), |lines| write(shared, lines, waiting));
    Ok((outlet, ended))
}

/// Sends each line as a request, several at a time.
async fn write(shared: Arc<Shared>, mut lines: mpsc::UnboundedReceiver<Vec<u8>>, waiting: Waiting) {
    let room = Arc::new(Semaphore::new(MAX_REQUESTS));
    let (mut tasks, mut open) = (JoinSet::new(), HashMap::<String, AbortHandle>::new());
    while let Some(line) = lines.recv().await {
        let message: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
        if message["method"] == "notifications/cancelled"
            && let Some(request) = open.remove(&message["params"]["requestId"].to_string())
        {
            request.abort();
        }
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        while tasks.try_join_next().is_some() {}
        open.retain(|_, request| !request.is_finished());
        let request = message.get("method").and_then(|_| message.get("id")).cloned();
        let (shared, waiting, id) = (shared.clone(), waiting.clone(), request.clone());
        let task = tasks.spawn(async move {
            shared.exchange(&message, line, id, &waiting).await;
            drop(permit);
        });
        if let Some(id) = request {
            open.insert(id.to_string(), task);
        }
    }
    // Nobody waits for answers any more.
    tasks.shutdown().await;
}

impl Shared {
    fn own(&self) -> HeaderMap {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, name: HeaderName, value: HeaderValue) {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(name, value);
    }

    fn request(&self, method: Method) -> RequestBuilder {
        self.client.request(method, self.url.clone()).headers(self.own())
    }

    async fn tell(&self, event: Event) {
        let _ = self.events.send((self.number, event)).await;
    }

    /// Sends a message, and tells what the server answers. `id` is its number, if it is a request.
    async fn exchange(
        self: Arc<Shared>,
        message: &Value,
        line: Vec<u8>,
        id: Option<Value>,
        waiting: &Waiting,
    ) {
        let bytes = line.len();
        let request = self.request(Method::POST).header(CONTENT_TYPE, "application/json");
        let sent = request.header(ACCEPT, format!("application/json, {STREAM}")).body(line).send().await;
        waiting.done(bytes);
        let read = match sent {
            Ok(response) => self.read(response, message, id.as_ref()).await,
            Err(e) => Err(http_cause(&e)),
        };
        if message["method"] == "notifications/initialized" && read.is_ok() {
            tokio::spawn(self.clone().listen());
        }
        if let (Err(why), Some(id)) = (read, id) {
            let error = json!({"code": -32603, "message": format!("the server did not answer: {why}")});
            self.tell(Event::Line(json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())).await;
        }
    }

    /// Reads the answer to a message.
    async fn read(&self, response: Response, message: &Value, id: Option<&Value>) -> Result<(), String> {
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.own().contains_key(SESSION) {
            self.tell(Event::Gone("its session has ended".into())).await;
            return Err("its session has ended".into());
        }
        if !status.is_success() {
            return Err(refusal(status));
        }
        let is_start = message["method"] == "initialize";
        if is_start && let Some(session) = response.headers().get(SESSION) {
            self.remember(SESSION, session.clone());
        }
        let Some(id) = id else { return Ok(()) };
        if is_stream(&response) {
            let mut stream = Stream::new(response, self.most);
            while let Some(event) = stream.next().await? {
                if self.take(event.data, id, is_start).await {
                    return Ok(());
                }
            }
            return Err("the stream ended before".into());
        }
        let body = body(response, self.most).await?;
        match self.take(String::from_utf8_lossy(&body).into_owned(), id, is_start).await {
            true => Ok(()),
            false => Err("its answer is one to something else".into()),
        }
    }

    /// Passes on what the server says. Says whether it is the answer to a request.
    async fn take(&self, text: String, id: &Value, is_start: bool) -> bool {
        // A line break in a message would end it.
        let message: Value = match serde_json::from_str(&text) {
            Ok(message) => message,
            Err(_) => Value::Null,
        };
        let is_answer = message.get("method").is_none() && message["id"] == *id;
        if is_answer
            && is_start
            && let Some(revision) = message["result"]["protocolVersion"].as_str()
            && let Ok(revision) = HeaderValue::from_str(revision)
        {
            self.remember(REVISION, revision);
        }
        self.tell(Event::Line(text)).await;
        is_answer
    }

    /// Listens to what the server says by itself, if it offers that.
    async fn listen(self: Arc<Shared>) {
        let stop = self.stop.clone();
        let listening = async {
            let (mut last, mut pause) = (None, RECONNECT[0]);
            loop {
                let mut request = self.request(Method::GET).header(ACCEPT, STREAM);
                if let Some(last) = last.take() {
                    request = request.header(LAST_EVENT, last);
                }
                match request.send().await {
                    Ok(response) if response.status().is_success() && is_stream(&response) => {
                        let mut stream = Stream::new(response, self.most);
                        while let Ok(Some(event)) = stream.next().await {
                            pause = RECONNECT[0];
                            last = event.id.and_then(|id| HeaderValue::from_str(&id).ok()).or(last);
                            self.tell(Event::Line(event.data)).await;
                        }
                    }
                    Ok(response)
                        if response.status() == StatusCode::NOT_FOUND && self.own().contains_key(SESSION) =>
                    {
                        return self.tell(Event::Gone("its session has ended".into())).await;
                    }
                    // It has no such stream.
                    Ok(response) if response.status().is_client_error() || response.status().is_success() => {
                        return;
                    }
                    Ok(_) | Err(_) => {}
                }
                sleep(pause).await;
                pause = (2 * pause).min(RECONNECT[1]);
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = listening => {}
        }
    }

    /// Ends the session.
    async fn leave(&self) {
        if self.own().contains_key(SESSION) {
            let _ = timeout(GRACE, self.request(Method::DELETE).send()).await;
        }
    }
}

/// Meaning of a status that is no success. The server's own words are not read.
fn refusal(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => format!(
            "it wants authorization ({}): name a header with a key in the list; `npx mcp-remote URL` logs in",
            status.as_u16()
        ),
        _ => format!("the status of its answer is {}", status.as_u16()),
    }
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(STREAM))
}

/// The body of a response, of a limited length.
async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| http_cause(&e))? {
        if bytes.len() + chunk.len() > most {
            return Err(too_long(most));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// An event of a stream that has data.
struct Message {
    id: Option<String>,
    data: String,
}

/// A stream of events.
struct Stream {
    response: Response,
    /// Bytes that were received and not read.
    rest: Vec<u8>,
    most: usize,
}

impl Stream {
    fn new(response: Response, most: usize) -> Stream {
        Stream { response, rest: Vec::new(), most }
    }

    /// The next event with data; `None` at the end.
    async fn next(&mut self) -> Result<Option<Message>, String> {
        let mut event = Message { id: None, data: String::new() };
        // Bytes of an unfinished line in which no end was found.
        let mut looked = 0;
        loop {
            let Some(end) = self.rest[looked..].iter().position(|b| *b == b'\n').map(|at| looked + at) else {
                looked = self.rest.len();
                if looked + event.data.len() > self.most {
                    return Err(too_long(self.most));
                }
                match self.response.chunk().await.map_err(|e| http_cause(&e))? {
                    Some(chunk) => self.rest.extend_from_slice(&chunk),
                    None => return Ok(None),
                }
                continue;
            };
            let line = String::from_utf8_lossy(&self.rest[..end]).trim_end_matches('\r').to_string();
            self.rest.drain(..=end);
            looked = 0;
            if event.data.len() + line.len() > self.most {
                return Err(too_long(self.most));
            }
            if line.is_empty() {
                if !event.data.is_empty() {
                    return Ok(Some(event));
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                }
                "id" => event.id = Some(value.into()),
                _ => {}
            }
        }
    }
}
