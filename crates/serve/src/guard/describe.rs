//! Descriptions of a server, to be approved.

use super::peer::{Event, Peer};
use super::server_tool;
use ::guard::described_as_tool;
use diagnostics::clip_to as clip;
use runtime::ServerTool;
use serde_json::{Value, json};
use session::server_list::Launch;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

/// Time for a server to say what it offers.
const START: Duration = Duration::from_secs(60);
/// The most pages of a list.
const MAX_PAGES: usize = 100;
/// Bytes of all that a server says of itself.
const MAX_SAID: usize = 16 << 20;

/// Descriptions of a server, to be approved: its tools, its instructions and its prompts.
///
/// # Errors
/// It can't be started, or doesn't say what it offers, in words for people.
pub async fn describe(launch: &Launch, max_message: usize) -> Result<Vec<ServerTool>, String> {
    Ok(said(launch, max_message).await?.iter().map(server_tool).collect())
}

/// The tools of a server, with the hints that it gives of them.
///
/// # Errors
/// It can't be started, or doesn't say what it offers, in words for people.
pub async fn offered(launch: &Launch, max_message: usize) -> Result<Vec<Value>, String> {
    let mut all = said(launch, max_message).await?;
    all.retain(|tool| tool["name"].as_str().is_some_and(|name| !::guard::is_method(name)));
    Ok(all)
}

/// All that a server says of itself.
async fn said(launch: &Launch, max_message: usize) -> Result<Vec<Value>, String> {
    let (send, events) = mpsc::channel(1);
    let peer = Peer::start(0, launch, max_message, send, Arc::new(Notify::new()))?;
    let mut talk = Talk { peer, events, next: 0, said: 0, meta: None };
    let said = timeout(START, talk.offers()).await;
    // It must not wait for somebody to read what it says.
    drop(talk.events);
    talk.peer.close().await;
    match said {
        Ok(said) => said,
        Err(_) => Err(format!("it did not say what it offers within {} s", START.as_secs())),
    }
}

/// Requests to a server, one after the other.
struct Talk {
    peer: Peer,
    events: mpsc::Receiver<(usize, Event)>,
    next: u64,
    /// Bytes that it has said.
    said: usize,
    /// `_meta` of requests in the revision without a handshake.
    meta: Option<Value>,
}

impl Talk {
    async fn offers(&mut self) -> Result<Vec<Value>, String> {
        let info = json!({"name": "entail", "version": env!("CARGO_PKG_VERSION")});
        // Servers offer some tools only to clients that can do what these need.
        let able = json!({"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": info});
        let start = match self.ask("initialize", hello).await? {
            Ok(start) => {
                self.peer.outlet.push(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
                start
            }
            // It may speak the revision without a handshake alone.
            Err(why) => {
                self.meta = Some(json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                    "io.modelcontextprotocol/clientInfo": info, "io.modelcontextprotocol/clientCapabilities": able}));
                self.ask("server/discover", json!({})).await?.map_err(|_| why)?
            }
        };
        let mut found = Vec::new();
        if let Some(text) = start.get("instructions").filter(|t| !t.is_null()) {
            found.push(described_as_tool("initialize", text));
        }
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.ask("tools/list", params).await??;
            let tools = page["tools"].as_array_mut().map(std::mem::take).unwrap_or_default();
            found.extend(tools);
            match page["nextCursor"].as_str() {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        for (capability, method) in [
            ("prompts", "prompts/list"),
            ("resources", "resources/list"),
            ("resources", "resources/templates/list"),
        ] {
            if start["capabilities"].get(capability).is_some()
                && let Ok(list) = self.ask(method, json!({})).await?
            {
                found.push(described_as_tool(method, &list));
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
        let outlet = &self.peer.outlet;
        outlet.push(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        loop {
            let line = match self.events.recv().await {
                Some((_, Event::Line(line))) => line,
                Some((_, Event::Gone(how))) => return Err(format!("it is gone: {how}")),
                None => return Err("it ended before it said what it offers".into()),
            };
            self.said = self.said.saturating_add(line.len());
            if self.said > MAX_SAID {
                return Err(format!("it says more than {MAX_SAID} bytes of itself"));
            }
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("method").is_some() {
                if let Some(id) = message.get("id") {
                    let none = json!({"code": -32601, "message": "nobody is here to answer"});
                    outlet.push(&json!({"jsonrpc": "2.0", "id": id, "error": none}));
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
