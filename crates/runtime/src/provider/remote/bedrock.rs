//! Converse of Amazon Bedrock: one protocol for the models of many vendors.
//!
//! Requests are signed, or have an API key of Bedrock. Streams are frames ([`super::event_stream`]). The
//! type of an answer is said in the instructions.

use super::aws::AwsCredentials;
use super::convert::{
    Calls, Plan, Received, WireMessage, counted, no_message, object, push_part, with_results,
};
use super::endpoint::{Endpoint, required};
use super::http::{Fault, event_json};
use super::sse::SseEvent;
use super::{Assembly, Dialect, Protocol, StreamKind, Structured};
use crate::provider::{Finish, ModelError};
use crate::{ConfigError, ConfigErrorKind, Environment};
use core_ir::Num;
use runs::percent_encoded;
use serde_json::{Map, Value as Json, json};

/// Bedrock in the region of the variables of Amazon's own clients.
pub(in crate::provider) const BEDROCK: Endpoint = Endpoint {
    name: "bedrock",
    protocol: Protocol::Bedrock,
    is_free: false,
    own: None,
    address: |environment| {
        let region = region(environment)?;
        Ok((format!("https://bedrock-runtime.{region}.amazonaws.com"), Some(API_KEY)))
    },
    parameters: &[],
    key: Some(API_KEY),
    always_wants_key: false,
    serves: None,
    key_of_family: None,
};

/// The variable of API keys of Bedrock.
const API_KEY: &str = "AWS_BEARER_TOKEN_BEDROCK";

fn region(environment: &Environment) -> Result<&str, ConfigError> {
    let other = environment.get("AWS_DEFAULT_REGION").filter(|r| !r.trim().is_empty());
    match required(environment, "AWS_REGION", "us-east-1") {
        Ok(region) => Ok(region),
        Err(e) => other.ok_or(e),
    }
}

/// The credentials that sign requests, where no API key is set.
///
/// # Errors
/// A variable is missing.
pub(super) fn credentials(environment: &Environment) -> Result<AwsCredentials, ConfigError> {
    let missing = |variable: &str| {
        ConfigError::new(format!("`{variable}` is not set"))
            .of_kind(ConfigErrorKind::NotSet(variable.to_string()))
            .with_help(format!(
                "set `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, or `{API_KEY}`, in the environment or in `.env`"
            ))
    };
    let access_key = environment.get("AWS_ACCESS_KEY_ID").map(str::trim).filter(|k| !k.is_empty());
    Ok(AwsCredentials {
        access_key: access_key.ok_or_else(|| missing("AWS_ACCESS_KEY_ID"))?.to_string(),
        secret_key: environment
            .secret("AWS_SECRET_ACCESS_KEY")
            .ok_or_else(|| missing("AWS_SECRET_ACCESS_KEY"))?,
        session_token: environment.secret("AWS_SESSION_TOKEN"),
        region: region(environment)?.trim().to_string(),
    })
}

/// Converse.
pub(super) struct Bedrock;

impl Dialect for Bedrock {
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        let end = if stream { "converse-stream" } else { "converse" };
        // Names of models have colons, and some have slashes.
        (format!("/model/{}/{end}", percent_encoded(model)), None)
    }

    fn described(&self) -> (&'static str, &'static str) {
        ("Amazon Bedrock", "https://bedrock-runtime.us-east-1.amazonaws.com")
    }

    fn signed_service(&self) -> Option<&'static str> {
        Some("bedrock")
    }

    fn structured(&self) -> Structured {
        Structured::Prompt
    }

    fn streams(&self) -> StreamKind {
        StreamKind::Frames
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
        Box::new(ConverseAssembly::default())
    }
}

/// The request.
fn body(plan: &Plan<'_>) -> Json {
    let mut body = Map::new();
    let mut system: Vec<String> = plan.instruction().into_iter().collect();
    let mut messages: Vec<Json> = Vec::new();
    let calls = if plan.call.tools.is_empty() { Calls::InWords } else { Calls::Shown };
    for turn in plan.turns(calls) {
        match turn {
            WireMessage::Answer { words, results } => repeat(&mut messages, words, &results),
            // Instructions have a place of their own at the beginning; later ones are said.
            WireMessage::System(said) if messages.is_empty() => system.push(said.to_string()),
            WireMessage::System(said) | WireMessage::User(said) => push(&mut messages, "user", text(&said)),
            WireMessage::Assistant(said) => push(&mut messages, "assistant", text(&said)),
            WireMessage::Call { id, name, args, .. } => {
                let call = json!({"toolUseId": id, "name": name, "input": object(args.to_json())});
                push(&mut messages, "assistant", json!({ "toolUse": call }));
            }
            WireMessage::Result { id, text } => push(&mut messages, "user", result(&json!(id), text)),
        }
    }
    if messages.first().is_none_or(|m| m["role"] != "user") {
        // A conversation begins with the user's words.
        messages.insert(0, json!({"role": "user", "content": [text("(begin)")]}));
    }
    let point = plan.options.cache.then(|| json!({"cachePoint": {"type": "default"}}));
    if let Some(blocks) = messages.last_mut().and_then(|m| m["content"].as_array_mut()) {
        // The next question begins as this one does.
        blocks.extend(point.clone());
    }
    body.insert("messages".into(), messages.into());
    if !system.is_empty() {
        let text = json!({"text": system.join("\n\n")});
        body.insert("system".into(), std::iter::once(text).chain(point).collect());
    }
    let mut config = Map::new();
    if let Some(most) = plan.call.output_limit() {
        config.insert("maxTokens".into(), most.into());
    }
    if let Some(t) = plan.call.params.as_ref().and_then(|p| p.temperature.as_ref()) {
        config.insert("temperature".into(), Num::to_json(t));
    }
    config.extend(plan.passed_on(&["top_p"]).map(|(_, value)| ("topP".to_string(), value)));
    config.extend(plan.stops().map(|stops| ("stopSequences".to_string(), stops)));
    if !config.is_empty() {
        body.insert("inferenceConfig".into(), config.into());
    }
    let more: Map<String, Json> = plan.passed_on(&["thinking", "top_k"]).collect();
    if !more.is_empty() {
        body.insert("additionalModelRequestFields".into(), more.into());
    }
    let tools: Vec<Json> = plan
        .offers()
        .map(|o| {
            let mut tool = Map::new();
            tool.insert("name".into(), o.name.into());
            if let Some(text) = o.description {
                tool.insert("description".into(), text.into());
            }
            tool.insert("inputSchema".into(), json!({ "json": o.parameters }));
            json!({ "toolSpec": tool })
        })
        .collect();
    if !tools.is_empty() {
        body.insert("toolConfig".into(), json!({ "tools": tools }));
    }
    Json::Object(body)
}

/// A text; an empty one is refused.
fn text(text: &str) -> Json {
    json!({"text": if text.trim().is_empty() { "(nothing)" } else { text }})
}

fn result(id: &Json, said: &str) -> Json {
    json!({"toolResult": {"toolUseId": id, "content": [text(said)]}})
}

/// Adds a block.
fn push(messages: &mut Vec<Json>, role: &str, block: Json) {
    push_part(messages, role, "content", block);
}

/// Adds an answer as it was said, with the results of its calls.
fn repeat(messages: &mut Vec<Json>, content: &Json, results: &[&str]) {
    let (told, made) = with_results(content, results, |block| block.get("toolUse"));
    told.into_iter().for_each(|block| push(messages, "assistant", block));
    for (call, said) in made {
        push(messages, "user", result(&call["toolUseId"], said));
    }
}

/// Reads an answer.
fn read(json: &Json) -> Result<Received, ModelError> {
    let blocks = json.pointer("/output/message/content").and_then(Json::as_array);
    let Some(blocks) = blocks else { return Err(no_message(json)) };
    let mut out = Received::default();
    for block in blocks {
        if let Some(call) = block.get("toolUse") {
            let name = call.get("name").and_then(Json::as_str).map(String::from);
            out.calls.push((name, call.get("input").cloned().unwrap_or_default()));
        } else if let Some(said) = block.get("text").and_then(Json::as_str) {
            out.text.get_or_insert_default().push_str(said);
        }
    }
    if !out.calls.is_empty() && blocks.iter().any(|b| b.get("reasoningContent").is_some()) {
        out.words = Some(blocks.iter().filter(|b| !is_empty(b)).map(repeatable).collect());
    }
    let usage = |name: &str| json.pointer("/usage").and_then(|u| u.get(name)).and_then(Json::as_u64);
    out.input = usage("inputTokens").map(|n| {
        let cached = ["cacheReadInputTokens", "cacheWriteInputTokens"];
        cached.into_iter().filter_map(usage).fold(n, u64::saturating_add)
    });
    out.cached = counted(json, "/usage/cacheReadInputTokens");
    out.cache_write = counted(json, "/usage/cacheWriteInputTokens");
    out.output = usage("outputTokens");
    out.finish = match json.get("stopReason").and_then(Json::as_str) {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("tool_use") => Finish::ToolCalls,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("content_filtered" | "guardrail_intervened") => Finish::Filtered,
        Some("refusal") => Finish::Refused,
        _ => Finish::Other,
    };
    Ok(out)
}

fn is_empty(block: &Json) -> bool {
    block.get("text").is_some_and(|t| t.as_str().is_none_or(|t| t.trim().is_empty()))
}

/// A block of an answer as requests may have it.
fn repeatable(block: &Json) -> Json {
    let mut block = block.clone();
    if let Some(input) = block.get_mut("toolUse").and_then(|call| call.get_mut("input")) {
        *input = object(input.take());
    }
    block
}

/// Makes of the events of a stream the answer that would have come without one.
#[derive(Debug, Default)]
struct ConverseAssembly {
    /// The blocks by their numbers, in the order of their beginnings.
    blocks: Vec<(u64, Json)>,
    stop: Option<Json>,
    usage: Option<Json>,
}

/// Blocks of one reply; a server that sends more is broken.
const MAX_BLOCKS: usize = 4096;

impl ConverseAssembly {
    /// The block with a number, which begins if there is none.
    fn block(&mut self, index: u64) -> Result<&mut Json, Fault> {
        let at = self.blocks.iter().position(|(i, _)| *i == index);
        let at = match at {
            Some(at) => at,
            None if self.blocks.len() == MAX_BLOCKS => {
                return Err(Fault::Nonsense(format!("the answer has more than {MAX_BLOCKS} blocks")));
            }
            None => {
                self.blocks.push((index, json!({})));
                self.blocks.len() - 1
            }
        };
        Ok(&mut self.blocks[at].1)
    }
}

impl Assembly for ConverseAssembly {
    /// Takes an event; what it adds to the text. What is used comes after the end of the message, so the
    /// stream is read to its end.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault> {
        if let Some(status) = status_of(&event.name) {
            let json: Json = serde_json::from_str(&event.data).unwrap_or_default();
            let said = json.get("message").and_then(Json::as_str).unwrap_or(&event.data);
            let message = diagnostics::clip_to(said, 500);
            return Err(Fault::Status { status, message, code: event.name.clone(), unknown: Vec::new() });
        }
        let json = event_json(event)?;
        let index = json.get("contentBlockIndex").and_then(Json::as_u64).unwrap_or_default();
        match event.name.as_str() {
            "contentBlockStart" => {
                if let Some(call) = json.pointer("/start/toolUse").filter(|call| call.is_object()) {
                    let block = self.block(index)?;
                    *block = json!({ "toolUse": call });
                    block["toolUse"]["input"] = "".into();
                }
            }
            "contentBlockDelta" => {
                let part = |at: &str| json.pointer(at).and_then(Json::as_str);
                let block = self.block(index)?;
                if let Some(text) = part("/delta/text") {
                    grow(&mut block["text"], text);
                    return Ok(Some(text.to_string()));
                } else if let Some(input) = part("/delta/toolUse/input") {
                    grow(&mut block["toolUse"]["input"], input);
                } else if let Some(thought) = part("/delta/reasoningContent/text") {
                    grow(&mut block["reasoningContent"]["reasoningText"]["text"], thought);
                } else if let Some(signature) = part("/delta/reasoningContent/signature") {
                    grow(&mut block["reasoningContent"]["reasoningText"]["signature"], signature);
                } else if let Some(redacted) = part("/delta/reasoningContent/redactedContent") {
                    grow(&mut block["reasoningContent"]["redactedContent"], redacted);
                }
            }
            "messageStop" => self.stop = json.get("stopReason").cloned(),
            "metadata" => self.usage = json.get("usage").cloned(),
            // The beginning of the message, the end of a block, and what later versions add.
            _ => {}
        }
        Ok(Some(String::new()))
    }

    /// The whole answer, if it is whole.
    fn end(self: Box<Self>) -> Option<Json> {
        let stop = self.stop.filter(Json::is_string)?;
        let content = self.blocks.into_iter().map(|(_, mut block)| {
            if let Some(input) = block.get_mut("toolUse").and_then(|call| call.get_mut("input")) {
                let text = input.as_str().unwrap_or_default().to_string();
                // Invalid JSON stays text, and the model is told.
                *input = match text.trim() {
                    "" => json!({}),
                    text => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
                };
            }
            block
        });
        let message = json!({"role": "assistant", "content": content.collect::<Json>()});
        Some(json!({"output": {"message": message}, "stopReason": stop, "usage": self.usage}))
    }
}

/// The status that an exception in a stream means; `None` if it is an event.
fn status_of(name: &str) -> Option<u16> {
    match name {
        "throttlingException" => Some(429),
        "serviceUnavailableException" => Some(503),
        "internalServerException" | "modelStreamErrorException" => Some(500),
        "modelTimeoutException" => Some(408),
        "validationException" => Some(400),
        _ => None,
    }
}

/// Adds to a text, which begins if there is none.
fn grow(text: &mut Json, more: &str) {
    let begun = text.as_str().unwrap_or_default();
    *text = format!("{begun}{more}").into();
}
