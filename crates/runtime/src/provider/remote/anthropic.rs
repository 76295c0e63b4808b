//! Anthropic's Messages.
//!
//! A model with `thinking` that calls tools wants its thoughts back with the results, as it said them: they
//! are signed. So an answer that has both is kept in its own words, which the next requests repeat; of other
//! answers the text or the calls are enough.

use super::convert::{
    Calls, Plan, Received, WireMessage, counted, no_message, object, push_part, with_results, without,
};
use super::endpoint::Endpoint;
use super::http::{Fault, event_json};
use super::sse::SseEvent;
use super::{Assembly, Dialect, Protocol, excerpt};
use crate::provider::{Finish, ModelError};
use core_ir::vendor;
use serde_json::{Map, Value as Json, json};

/// The version of the protocol that requests name.
const VERSION: &str = "2023-06-01";

/// Tokens of a reply where neither the source nor a limit says how many: the protocol wants a number.
const USUAL_OUTPUT: u64 = 4096;

/// Model parameters that the source may give and the protocol knows.
const PASSED_ON: &[&str] = &["top_p", "top_k", "service_tier", "thinking", "metadata"];

/// Keywords of schemas that structured outputs do not know: bounds of numbers, lengths and counts.
const UNKNOWN: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "minItems",
];

/// Anthropic's own endpoint.
const ANTHROPIC_URL: &str = "https://api.anthropic.com/v1";

/// Anthropic, or the endpoint of its variable.
pub(in crate::provider) const ANTHROPIC: Endpoint = Endpoint {
    name: vendor::ANTHROPIC.name,
    protocol: Protocol::Anthropic,
    is_free: false,
    own: Some(ANTHROPIC_URL),
    address: |environment| {
        let base = environment.get("ANTHROPIC_BASE_URL").map_or(ANTHROPIC_URL.to_string(), versioned);
        Ok((base, Some("ANTHROPIC_API_KEY")))
    },
    parameters: &[],
    key: Some("ANTHROPIC_API_KEY"),
    always_wants_key: false,
    serves: Some(&vendor::ANTHROPIC),
    key_of_family: Some("ANTHROPIC_API_KEY"),
};

/// Anthropic's own clients take the address without the version.
fn versioned(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/v1") { base.to_string() } else { format!("{base}/v1") }
}

/// Anthropic's Messages.
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn path(&self, _model: &str, _stream: bool) -> (String, Option<&'static str>) {
        ("/messages".into(), None)
    }

    fn described(&self) -> (&'static str, &'static str) {
        ("an API with Anthropic's Messages", "https://api.anthropic.com/v1")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", VERSION)]
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-api-key", key.to_string())
    }

    fn caches_on_request(&self) -> bool {
        true
    }

    fn body(&self, plan: &Plan<'_>) -> Json {
        body(plan)
    }

    fn read(&self, json: &Json) -> Result<Received, ModelError> {
        read(json)
    }

    fn assembly(&self) -> Box<dyn Assembly + Send> {
        Box::new(MessageAssembly::default())
    }
}

/// The request.
fn body(plan: &Plan<'_>) -> Json {
    let mut body = Map::new();
    body.insert("model".into(), plan.options.model.as_str().into());
    body.insert("max_tokens".into(), plan.call.output_limit().unwrap_or(USUAL_OUTPUT).into());
    let mut system: Vec<String> = plan.instruction().into_iter().collect();
    let mut messages: Vec<Json> = Vec::new();
    let calls = if plan.call.tools.is_empty() { Calls::InWords } else { Calls::Shown };
    for turn in plan.turns(calls) {
        match turn {
            // Instructions have a place of their own at the beginning; later ones are said.
            WireMessage::System(text) if messages.is_empty() => system.push(text.to_string()),
            turn => add(&mut messages, turn),
        }
    }
    if messages.first().is_none_or(|m| m["role"] != "user") {
        // A conversation begins with the user's words.
        messages.insert(0, json!({"role": "user", "content": [{"type": "text", "text": "(begin)"}]}));
    }
    if !system.is_empty() {
        let system = system.join("\n\n");
        let system = match plan.options.cache {
            false => system.into(),
            true => json!([{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]),
        };
        body.insert("system".into(), system);
    }
    if plan.options.cache
        && let Some(last) = messages.last_mut().and_then(|m| m["content"].as_array_mut()?.last_mut())
    {
        // The next question begins as this one does.
        last["cache_control"] = json!({"type": "ephemeral"});
    }
    body.insert("messages".into(), messages.into());
    if let Some(schema) = plan.schema() {
        let format = json!({"type": "json_schema", "schema": without(&schema.json, UNKNOWN)});
        body.insert("output_config".into(), json!({ "format": format }));
    }
    if let Some(t) = plan.temperature() {
        body.insert("temperature".into(), t);
    }
    body.extend(plan.passed_on(PASSED_ON));
    body.extend(plan.stops().map(|stops| ("stop_sequences".to_string(), stops)));
    let tools: Vec<Json> = plan
        .offers()
        .map(|o| {
            let mut tool = Map::new();
            tool.insert("name".into(), o.name.into());
            if let Some(text) = o.description {
                tool.insert("description".into(), text.into());
            }
            tool.insert("input_schema".into(), o.parameters);
            Json::Object(tool)
        })
        .collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if plan.stream {
        body.insert("stream".into(), true.into());
    }
    Json::Object(body)
}

/// Adds a turn to the messages, in which user and assistant take turns.
fn add(messages: &mut Vec<Json>, turn: WireMessage<'_>) {
    // A block without text is refused.
    let text = |t: &str| json!({"type": "text", "text": if t.trim().is_empty() { "(nothing)" } else { t }});
    let (role, block) = match turn {
        WireMessage::System(t) | WireMessage::User(t) => ("user", text(&t)),
        WireMessage::Assistant(t) => ("assistant", text(&t)),
        WireMessage::Call { id, name, args, .. } => {
            // Arguments that are no object can't be shown as they were.
            (
                "assistant",
                json!({"type": "tool_use", "id": id, "name": name, "input": object(args.to_json())}),
            )
        }
        WireMessage::Result { id, text } => ("user", result(&json!(id), text)),
        WireMessage::Answer { words, results } => return repeat(messages, words, &results),
    };
    push(messages, role, block);
}

/// Adds an answer as it was said, with the results of its calls.
fn repeat(messages: &mut Vec<Json>, content: &Json, results: &[&str]) {
    let (told, made) = with_results(content, results, |block| is(block, "tool_use").then_some(block));
    told.into_iter().for_each(|block| push(messages, "assistant", block));
    for (call, text) in made {
        push(messages, "user", result(&call["id"], text));
    }
}

fn result(id: &Json, text: &str) -> Json {
    json!({"type": "tool_result", "tool_use_id": id, "content": text})
}

fn is(block: &Json, kind: &str) -> bool {
    block.get("type").is_some_and(|t| t == kind)
}

/// Adds a block.
fn push(messages: &mut Vec<Json>, role: &str, block: Json) {
    push_part(messages, role, "content", block);
}

/// Reads an answer.
fn read(json: &Json) -> Result<Received, ModelError> {
    let Some(blocks) = json.get("content").and_then(Json::as_array) else { return Err(no_message(json)) };
    let mut out = Received::default();
    for block in blocks {
        match block.get("type").and_then(Json::as_str) {
            Some("text") => {
                let text = block.get("text").and_then(Json::as_str).unwrap_or_default();
                out.text.get_or_insert_default().push_str(text);
            }
            Some("tool_use") => {
                let name = block.get("name").and_then(Json::as_str).map(String::from);
                out.calls.push((name, block.get("input").cloned().unwrap_or_default()));
            }
            // Thinking, and tools of the provider.
            _ => {}
        }
    }
    let thinks = |b: &Json| is(b, "thinking") || is(b, "redacted_thinking");
    if !out.calls.is_empty() && blocks.iter().any(thinks) {
        out.words = Some(repeatable(blocks));
    }
    let usage = |name: &str| json.pointer("/usage").and_then(|u| u.get(name)).and_then(Json::as_u64);
    out.input = usage("input_tokens").map(|n| {
        let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
        cached.into_iter().filter_map(usage).fold(n, u64::saturating_add)
    });
    out.cached = counted(json, "/usage/cache_read_input_tokens");
    out.cache_write = counted(json, "/usage/cache_creation_input_tokens");
    out.output = usage("output_tokens");
    out.finish = match json.get("stop_reason").and_then(Json::as_str) {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::Refused,
        _ => Finish::Other,
    };
    Ok(out)
}

/// The blocks of an answer as requests may have them.
fn repeatable(blocks: &[Json]) -> Json {
    let is_empty = |b: &&Json| is(b, "text") && b["text"].as_str().is_none_or(|t| t.trim().is_empty());
    let block = |b: &Json| {
        let mut block = b.clone();
        if is(b, "tool_use") {
            block["input"] = object(block["input"].take());
        }
        block
    };
    blocks.iter().filter(|b| !is_empty(b)).map(block).collect()
}

/// Makes of the events of a stream the answer that would have come without one.
#[derive(Debug, Default)]
struct MessageAssembly {
    message: Option<Json>,
    blocks: Vec<Json>,
    /// Text accumulated for each block: its text, its reasoning, or the arguments of a call.
    grown: Vec<String>,
    stopped: bool,
}

impl Assembly for MessageAssembly {
    /// Takes an event; what it adds to the text. `None` after the last.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault> {
        let json = event_json(event)?;
        let wrong = |what: &str| Fault::Nonsense(format!("{what}: {}", excerpt(&event.data)));
        let index = json.get("index").and_then(Json::as_u64).and_then(|i| usize::try_from(i).ok());
        match json.get("type").and_then(Json::as_str).unwrap_or_default() {
            "message_start" => self.message = json.get("message").filter(|m| m.is_object()).cloned(),
            "content_block_start" => {
                let block = json.get("content_block").filter(|b| b.is_object());
                let (Some(block), true) = (block, index == Some(self.blocks.len())) else {
                    return Err(wrong("a block begins out of order"));
                };
                self.blocks.push(block.clone());
                self.grown.push(String::new());
            }
            "content_block_delta" => {
                let at = index.filter(|i| *i < self.blocks.len());
                let Some(at) = at else { return Err(wrong("a content block continues that never started")) };
                let part = |name: &str| json.get("delta").and_then(|d| d.get(name)).and_then(Json::as_str);
                if let Some(input) = part("partial_json") {
                    self.grown[at].push_str(input);
                } else if let Some(text) = part("text") {
                    self.grown[at].push_str(text);
                    return Ok(Some(text.to_string()));
                } else if let Some(thought) = part("thinking") {
                    self.grown[at].push_str(thought);
                } else if let Some(signature) = part("signature") {
                    grow(&mut self.blocks[at], "signature", signature);
                }
            }
            "message_delta" => {
                let Some(message) = &mut self.message else { return Err(wrong("no message has begun")) };
                if let Some(reason) = json.pointer("/delta/stop_reason").filter(|r| r.is_string()) {
                    message["stop_reason"] = reason.clone();
                    self.stopped = true;
                }
                for (name, n) in json.get("usage").and_then(Json::as_object).into_iter().flatten() {
                    if n.is_u64() {
                        if !message["usage"].is_object() {
                            message["usage"] = json!({});
                        }
                        message["usage"][name] = n.clone();
                    }
                }
            }
            "message_stop" => {
                self.stopped |= self.message.is_some();
                return Ok(None);
            }
            // `ping`, the end of a block, and what later versions add.
            _ => {}
        }
        Ok(Some(String::new()))
    }

    /// The whole answer, if it is whole.
    fn end(self: Box<Self>) -> Option<Json> {
        let mut message = self.message.filter(|_| self.stopped)?;
        let blocks = self.blocks.into_iter().zip(self.grown).map(|(mut block, grown)| {
            if block["type"] == "tool_use" && !grown.is_empty() {
                // Invalid JSON stays text, and the model is told.
                block["input"] = serde_json::from_str(&grown).unwrap_or(Json::String(grown));
            } else if is(&block, "text") {
                grow(&mut block, "text", &grown);
            } else if is(&block, "thinking") {
                grow(&mut block, "thinking", &grown);
            }
            block
        });
        message["content"] = blocks.collect();
        Some(message)
    }
}

/// Adds to a text of a block.
fn grow(block: &mut Json, field: &str, more: &str) {
    let begun = block.get(field).and_then(Json::as_str).unwrap_or_default();
    block[field] = format!("{begun}{more}").into();
}
