//! Chat Completions, as OpenAI describes it and as Ollama, llama.cpp, vLLM and others speak it.

use super::convert::{Calls, Plan, Received, WireMessage, arguments, counted, no_message};
use super::endpoint::{Endpoint, OPENAI_URL, of_environment, required};
use super::http::Fault;
use super::sse::SseEvent;
use super::{Assembly, Dialect, Protocol, Structured, excerpt};
use crate::provider::{Finish, ModelError};
use core_ir::vendor;
use serde_json::{Map, Value as Json, json};

/// Model parameters that the source may give and the protocol knows.
const PASSED_ON: &[&str] = &[
    "top_p",
    "stop",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "user",
];

/// OpenAI, or the endpoint of the environment.
pub(in crate::provider) const OPENAI: Endpoint = Endpoint {
    name: vendor::OPENAI.name,
    protocol: Protocol::Chat,
    is_free: false,
    own: Some(OPENAI_URL),
    address: of_environment,
    parameters: &[],
    key: None,
    always_wants_key: false,
    serves: None,
    key_of_family: None,
};

/// Ollama on this machine.
pub(in crate::provider) const OLLAMA: Endpoint = Endpoint {
    name: vendor::OLLAMA.name,
    is_free: true,
    own: None,
    address: |_| Ok(("http://127.0.0.1:11434/v1".into(), None)),
    serves: Some(&vendor::OLLAMA),
    ..OPENAI
};

/// The server of llama.cpp on this machine.
pub(in crate::provider) const LLAMA_CPP: Endpoint = Endpoint {
    name: "llama.cpp",
    parameters: &["top_k", "min_p", "repeat_penalty", "cache_prompt", "chat_template_kwargs"],
    address: |_| Ok(("http://127.0.0.1:8080/v1".into(), None)),
    serves: None,
    ..OLLAMA
};

/// A server of vLLM on this machine.
pub(in crate::provider) const VLLM: Endpoint = Endpoint {
    name: "vllm",
    parameters: &["top_k", "min_p", "min_tokens", "repetition_penalty", "chat_template_kwargs"],
    address: |environment| {
        let base = environment.get("VLLM_BASE_URL").unwrap_or("http://127.0.0.1:8000/v1");
        Ok((base.to_string(), Some("VLLM_API_KEY")))
    },
    serves: None,
    ..OLLAMA
};

/// Azure OpenAI, at the address of the variable of its own clients. Models have the names of deployments.
pub(in crate::provider) const AZURE: Endpoint = Endpoint {
    name: "azure",
    protocol: Protocol::Azure,
    own: None,
    address: |environment| {
        let base = required(environment, "AZURE_OPENAI_ENDPOINT", "https://NAME.openai.azure.com")?;
        let base = base.trim_end_matches('/');
        let base = base.strip_suffix("/openai/v1").or_else(|| base.strip_suffix("/openai")).unwrap_or(base);
        Ok((format!("{base}/openai/v1"), Some("AZURE_OPENAI_API_KEY")))
    },
    key: Some("AZURE_OPENAI_API_KEY"),
    always_wants_key: true,
    ..OPENAI
};

/// OpenAI's Chat Completions.
pub(super) struct Chat {
    /// True if the key is in the header of Azure.
    pub(super) is_azure: bool,
}

impl Dialect for Chat {
    fn path(&self, _model: &str, _stream: bool) -> (String, Option<&'static str>) {
        ("/chat/completions".into(), None)
    }

    fn described(&self) -> (&'static str, &'static str) {
        if self.is_azure {
            ("Azure OpenAI", "https://NAME.openai.azure.com/openai/v1")
        } else {
            ("an OpenAI-compatible API", "https://api.openai.com/v1")
        }
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        if self.is_azure { ("api-key", key.to_string()) } else { ("authorization", format!("Bearer {key}")) }
    }

    fn body(&self, plan: &Plan<'_>) -> Json {
        body(plan)
    }

    fn read(&self, json: &Json) -> Result<Received, ModelError> {
        read(json)
    }

    fn assembly(&self) -> Box<dyn Assembly + Send> {
        Box::new(ChatAssembly::default())
    }
}

/// The request.
fn body(plan: &Plan<'_>) -> Json {
    let mut body = Map::new();
    body.insert("model".into(), plan.options.model.as_str().into());
    let mut messages: Vec<Json> = Vec::new();
    if let Some(say) = plan.instruction() {
        messages.push(json!({"role": "system", "content": say}));
    }
    for turn in plan.turns(Calls::Shown) {
        messages.push(match turn {
            WireMessage::System(text) => json!({"role": "system", "content": text}),
            WireMessage::User(text) => json!({"role": "user", "content": text}),
            WireMessage::Assistant(text) => json!({"role": "assistant", "content": text}),
            WireMessage::Call { id, name, args, .. } => json!({
                "role": "assistant",
                "content": null,
                "tool_calls": [{"id": id, "type": "function", "function": {"name": name, "arguments": arguments(args)}}],
            }),
            WireMessage::Result { id, text } => json!({"role": "tool", "tool_call_id": id, "content": text}),
            WireMessage::Answer { words, results } => {
                repeat(&mut messages, words, &results);
                continue;
            }
        });
    }
    if let Some(schema) = plan.schema() {
        let format = json!({
            "type": "json_schema",
            "json_schema": {"name": plan.answer_name(), "strict": schema.strict, "schema": schema.json},
        });
        body.insert("response_format".into(), format);
    } else if plan.is_structured() && plan.way == Structured::JsonObject {
        body.insert("response_format".into(), json!({"type": "json_object"}));
    }
    body.insert("messages".into(), messages.into());
    if let Some(t) = plan.temperature() {
        body.insert("temperature".into(), t);
    }
    body.extend(plan.passed_on(PASSED_ON));
    body.extend(plan.passed_on(plan.options.parameters));
    if let Some(most) = plan.call.output_limit() {
        body.insert(if plan.new_limit { "max_completion_tokens" } else { "max_tokens" }.into(), most.into());
    }
    let tools: Vec<Json> = plan
        .offers()
        .map(|o| {
            let mut function = Map::new();
            function.insert("name".into(), o.name.into());
            if let Some(text) = o.description {
                function.insert("description".into(), text.into());
            }
            function.insert("parameters".into(), o.parameters);
            if o.strict {
                function.insert("strict".into(), true.into());
            }
            json!({"type": "function", "function": function})
        })
        .collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if plan.stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Json::Object(body)
}

/// Adds an answer as it was said, with the results of its calls. Calls that were not made are left out: none
/// may be without a result.
fn repeat(messages: &mut Vec<Json>, words: &Json, results: &[&str]) {
    let calls = words["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let made = &calls[..calls.len().min(results.len())];
    let mut said = words.clone();
    said["tool_calls"] = made.into();
    messages.push(said);
    let answers = made.iter().zip(results);
    messages.extend(
        answers.map(|(call, text)| json!({"role": "tool", "tool_call_id": call["id"], "content": text})),
    );
}

/// Reads an answer.
fn read(json: &Json) -> Result<Received, ModelError> {
    let choice = json.pointer("/choices/0");
    let usage = |name: &str| json.pointer("/usage").and_then(|u| u.get(name)).and_then(Json::as_u64);
    let message = choice.and_then(|c| c.get("message")).filter(|m| m.is_object());
    let Some(message) = message else { return Err(no_message(json)) };
    let refusal = message.get("refusal").and_then(Json::as_str).filter(|r| !r.is_empty());
    let calls = message.get("tool_calls").and_then(Json::as_array).into_iter().flatten().map(|c| {
        let function = c.get("function").unwrap_or(c);
        let name = function.get("name").and_then(Json::as_str).map(String::from);
        (name, function.get("arguments").cloned().unwrap_or_default())
    });
    let finish = match choice.and_then(|c| c.get("finish_reason")).and_then(Json::as_str) {
        _ if refusal.is_some() => Finish::Refused,
        Some("stop") => Finish::Stop,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::Filtered,
        _ => Finish::Other,
    };
    let calls: Vec<_> = calls.collect();
    let thoughts = THOUGHTS.into_iter().find(|field| !said(message, field).is_empty());
    let words = thoughts.filter(|_| !calls.is_empty()).map(|field| {
        let mut words = json!({"role": "assistant", "content": message.get("content")});
        words[field] = said(message, field).into();
        words["tool_calls"] = message.get("tool_calls").cloned().unwrap_or_default();
        words
    });
    Ok(Received {
        text: content(message),
        calls,
        finish,
        refusal: refusal.map(String::from),
        input: usage("prompt_tokens"),
        output: usage("completion_tokens"),
        cached: counted(json, "/usage/prompt_tokens_details/cached_tokens"),
        cache_write: 0,
        words,
    })
}

/// Fields in which servers tell what a model thought: that of DeepSeek, which wants it back with the results
/// of calls, and that of vLLM and Ollama.
const THOUGHTS: [&str; 2] = ["reasoning_content", "reasoning"];

fn said<'j>(message: &'j Json, field: &str) -> &'j str {
    message.get(field).and_then(Json::as_str).unwrap_or_default()
}

/// The text of a message: a string, or a list of parts.
fn content(message: &Json) -> Option<String> {
    match message.get("content")? {
        Json::String(s) => Some(s.clone()),
        Json::Array(parts) => {
            Some(parts.iter().filter_map(|p| p.get("text").and_then(Json::as_str)).collect::<String>())
        }
        _ => None,
    }
}

/// Makes of the events of a stream the answer that would have come without one.
#[derive(Debug, Default)]
struct ChatAssembly {
    content: String,
    refusal: String,
    /// Thoughts of the model, in each of their fields.
    thoughts: [String; 2],
    calls: Vec<Call>,
    finish: Option<String>,
    usage: Option<Json>,
    any: bool,
    done: bool,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    name: Option<String>,
    arguments: String,
}

/// Calls of one reply; a server that counts further is broken.
const MAX_CALLS: u64 = 1024;

impl ChatAssembly {
    /// Returns true if a part belongs to another call than the one with its index.
    fn is_another(&self, index: u64, part: &Json) -> bool {
        let call = usize::try_from(index).ok().and_then(|i| self.calls.get(i));
        let text = |json: Option<&Json>| json.and_then(Json::as_str).is_some_and(|t| !t.is_empty());
        let id = part.get("id").and_then(Json::as_str).unwrap_or_default();
        let is_begun = call.is_some_and(|c| !c.id.is_empty() && c.name.is_some() && c.id != id);
        is_begun && !id.is_empty() && text(part.pointer("/function/name"))
    }
}

impl Assembly for ChatAssembly {
    /// Takes an event; what it adds to the text. `None` after the last.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(None);
        }
        let json = super::http::event_json(event)?;
        if let Some(usage) = json.get("usage").filter(|u| u.is_object()) {
            self.usage = Some(usage.clone());
        }
        let Some(choice) = json.pointer("/choices/0") else { return Ok(Some(String::new())) };
        self.any = true;
        if let Some(finish) = choice.get("finish_reason").and_then(Json::as_str) {
            self.finish = Some(finish.to_string());
        }
        let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) else {
            return Ok(Some(String::new()));
        };
        self.refusal.push_str(said(delta, "refusal"));
        for (grown, field) in self.thoughts.iter_mut().zip(THOUGHTS) {
            grown.push_str(said(delta, field));
        }
        for (place, part) in
            delta.get("tool_calls").and_then(Json::as_array).into_iter().flatten().enumerate()
        {
            // Some servers give whole calls without an index, one or several in an event.
            let index = match part.get("index").and_then(Json::as_u64) {
                // Some count every whole call as the first.
                Some(index) if self.is_another(index, part) => self.calls.len() as u64,
                Some(index) => index,
                None if place == 0 || part.get("id").is_some() => self.calls.len() as u64,
                None => self.calls.len().saturating_sub(1) as u64,
            };
            if index > self.calls.len() as u64 || index >= MAX_CALLS {
                let what = format!("a call of a tool begins as number {index}: {}", excerpt(&event.data));
                return Err(Fault::Nonsense(what));
            }
            if index == self.calls.len() as u64 {
                self.calls.push(Call::default());
            }
            let call = &mut self.calls[usize::try_from(index).unwrap_or_default()];
            let function = part.get("function").unwrap_or(part);
            if let Some(id) = part.get("id").and_then(Json::as_str).filter(|_| call.id.is_empty()) {
                call.id = id.to_string();
            }
            if let Some(name) = function.get("name").and_then(Json::as_str) {
                call.name.get_or_insert_default().push_str(name);
            }
            match function.get("arguments") {
                Some(Json::String(text)) => call.arguments.push_str(text),
                None | Some(Json::Null) => {}
                Some(whole) => call.arguments.push_str(&whole.to_string()),
            }
        }
        let text = content(delta).unwrap_or_default();
        self.content.push_str(&text);
        Ok(Some(text))
    }

    /// The whole answer, if it is whole.
    fn end(self: Box<Self>) -> Option<Json> {
        if self.finish.is_none() && !(self.done && self.any) {
            return None;
        }
        let text = |s: String| if s.is_empty() { Json::Null } else { s.into() };
        let mut message =
            json!({"role": "assistant", "content": text(self.content), "refusal": text(self.refusal)});
        for (thought, field) in self.thoughts.into_iter().zip(THOUGHTS).filter(|(t, _)| !t.is_empty()) {
            message[field] = thought.into();
        }
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(|c| {
                json!({"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}})
            });
            message["tool_calls"] = calls.collect();
        }
        Some(json!({
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self.usage,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls of a stream whose events have these parts of calls: names and arguments.
    fn calls(events: &[Json]) -> Vec<(String, String)> {
        let mut assembly = ChatAssembly::default();
        for parts in events {
            let data = json!({"choices": [{"delta": {"tool_calls": parts}}]}).to_string();
            assembly.event(&SseEvent { name: String::new(), data }).unwrap();
        }
        let done = SseEvent { name: String::new(), data: "[DONE]".into() };
        assert_eq!(assembly.event(&done).unwrap(), None);
        let read = read(&Box::new(assembly).end().unwrap()).unwrap();
        let text = |json: &Json| json.as_str().unwrap().to_string();
        read.calls.iter().map(|(name, args)| (name.clone().unwrap(), text(args))).collect()
    }

    #[test]
    fn calls_are_told_apart_however_servers_count_them() {
        let whole = |index: Option<u32>, id: &str, q: &str| {
            let args = json!({ "q": q }).to_string();
            let mut part = json!({"id": id, "function": {"name": "look", "arguments": args}});
            if let Some(index) = index {
                part["index"] = index.into();
            }
            part
        };
        let want = [("look".to_string(), r#"{"q":"a"}"#.to_string()), ("look".into(), r#"{"q":"b"}"#.into())];
        for (first, second) in [(Some(0), Some(1)), (None, None), (Some(0), Some(0))] {
            let (a, b) = (whole(first, "1", "a"), whole(second, "2", "b"));
            assert_eq!(calls(&[json!([a, b])]), want, "{second:?}, in one event");
            assert_eq!(calls(&[json!([a]), json!([b])]), want, "{second:?}, in two");
        }
        // One call whose parts repeat its number, or everything but the arguments.
        let part = |id: &str, args: &str| json!([{"index": 0, "id": id, "function": {"name": "", "arguments": args}}]);
        let begun = json!([{"index": 0, "id": "1", "function": {"name": "look", "arguments": ""}}]);
        let parts = [begun, part("1", "{\"q\":"), part("", "\"a\"}")];
        assert_eq!(calls(&parts), want[..1]);
    }
}
