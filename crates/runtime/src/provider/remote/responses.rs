//! OpenAI's Responses. Nothing is stored there: the conversation is sent whole. Where a program sets
//! `reasoning` or `reasoning_effort`, thoughts are sent back, encrypted, with the results of the calls that
//! they led to.

use super::convert::{Calls, Plan, Received, WireMessage, arguments, counted, no_message, with_results};
use super::endpoint::Endpoint;
use super::http::{Fault, event_json};
use super::sse::SseEvent;
use super::{Assembly, Dialect, Protocol, Structured};
use crate::provider::{Finish, ModelError};
use serde_json::{Map, Value as Json, json};

/// Model parameters that the source may give and the protocol knows.
const PASSED_ON: &[&str] = &["top_p", "service_tier", "user", "reasoning", "truncation"];

/// OpenAI, or the endpoint of the environment.
pub(in crate::provider) const OPENAI_RESPONSES: Endpoint =
    Endpoint { name: "openai-responses", protocol: Protocol::Responses, ..super::OPENAI };

/// OpenAI's Responses.
pub(super) struct Responses;

impl Dialect for Responses {
    fn path(&self, _model: &str, _stream: bool) -> (String, Option<&'static str>) {
        ("/responses".into(), None)
    }

    fn described(&self) -> (&'static str, &'static str) {
        ("an API with OpenAI's Responses", "https://api.openai.com/v1")
    }

    fn body(&self, plan: &Plan<'_>) -> Json {
        body(plan)
    }

    fn read(&self, json: &Json) -> Result<Received, ModelError> {
        read(json)
    }

    fn assembly(&self) -> Box<dyn Assembly + Send> {
        Box::new(ResponseAssembly::default())
    }
}

/// The request.
fn body(plan: &Plan<'_>) -> Json {
    let mut body = Map::new();
    body.insert("model".into(), plan.options.model.as_str().into());
    let mut input: Vec<Json> = Vec::new();
    for turn in plan.turns(Calls::Shown) {
        input.push(match turn {
            WireMessage::System(text) => json!({"role": "system", "content": text}),
            WireMessage::User(text) => json!({"role": "user", "content": text}),
            WireMessage::Assistant(text) => json!({"role": "assistant", "content": text}),
            WireMessage::Call { id, name, args, .. } => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments(args)})
            }
            WireMessage::Result { id, text } => {
                json!({"type": "function_call_output", "call_id": id, "output": text})
            }
            WireMessage::Answer { words, results } => {
                repeat(&mut input, words, &results);
                continue;
            }
        });
    }
    body.insert("input".into(), input.into());
    if let Some(say) = plan.instruction() {
        body.insert("instructions".into(), say.into());
    }
    let mut text = Map::new();
    if let Some(schema) = plan.schema() {
        let format = json!({
            "type": "json_schema", "name": plan.answer_name(), "strict": schema.strict, "schema": schema.json,
        });
        text.insert("format".into(), format);
    } else if plan.is_structured() && plan.way == Structured::JsonObject {
        text.insert("format".into(), json!({"type": "json_object"}));
    }
    for (name, value) in plan.passed_on(&["verbosity", "reasoning_effort"]) {
        match &*name {
            "verbosity" => drop(text.insert(name, value)),
            _ => drop(body.insert("reasoning".into(), json!({ "effort": value }))),
        }
    }
    if !text.is_empty() {
        body.insert("text".into(), text.into());
    }
    if let Some(t) = plan.temperature() {
        body.insert("temperature".into(), t);
    }
    body.extend(plan.passed_on(PASSED_ON));
    if let Some(most) = plan.call.output_limit() {
        // Less is refused.
        body.insert("max_output_tokens".into(), most.max(16).into());
    }
    let tools: Vec<Json> = plan
        .offers()
        .map(|o| {
            let mut tool = Map::new();
            tool.insert("type".into(), "function".into());
            tool.insert("name".into(), o.name.into());
            if let Some(text) = o.description {
                tool.insert("description".into(), text.into());
            }
            tool.insert("parameters".into(), o.parameters);
            // Without the field a schema is taken as strict.
            tool.insert("strict".into(), o.strict.into());
            Json::Object(tool)
        })
        .collect();
    if !tools.is_empty() {
        body.insert("tools".into(), tools.into());
    }
    if body.contains_key("reasoning") {
        // Nothing is stored there, so thoughts are sent back. Other models refuse the field.
        body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    }
    body.insert("store".into(), false.into());
    if plan.stream {
        body.insert("stream".into(), true.into());
    }
    Json::Object(body)
}

/// Adds an answer as it was said, with the results of its calls.
fn repeat(input: &mut Vec<Json>, items: &Json, results: &[&str]) {
    let (told, made) = with_results(items, results, |item| (item["type"] == "function_call").then_some(item));
    input.extend(told);
    input.extend(made.into_iter().map(
        |(call, text)| json!({"type": "function_call_output", "call_id": call["call_id"], "output": text}),
    ));
}

/// Reads an answer.
fn read(json: &Json) -> Result<Received, ModelError> {
    let Some(output) = json.get("output").and_then(Json::as_array) else { return Err(no_message(json)) };
    let mut out = Received::default();
    let mut has_message = false;
    for item in output {
        match item.get("type").and_then(Json::as_str) {
            Some("message") => {
                has_message = true;
                for part in item.get("content").and_then(Json::as_array).into_iter().flatten() {
                    let said = |name: &str| part.get(name).and_then(Json::as_str).unwrap_or_default();
                    match part.get("type").and_then(Json::as_str) {
                        Some("output_text") => out.text.get_or_insert_default().push_str(said("text")),
                        Some("refusal") => out.refusal.get_or_insert_default().push_str(said("refusal")),
                        _ => {}
                    }
                }
            }
            Some("function_call") => {
                let name = item.get("name").and_then(Json::as_str).map(String::from);
                out.calls.push((name, item.get("arguments").cloned().unwrap_or_default()));
            }
            // Reasoning, and calls of tools that the provider has and we did not offer.
            _ => {}
        }
    }
    let usage = |name: &str| json.pointer("/usage").and_then(|u| u.get(name)).and_then(Json::as_u64);
    (out.input, out.output) = (usage("input_tokens"), usage("output_tokens"));
    out.cached = counted(json, "/usage/input_tokens_details/cached_tokens");
    let is_thought = |item: &Json| item["type"] == "reasoning" && item["encrypted_content"].is_string();
    if !out.calls.is_empty() && output.iter().any(is_thought) {
        out.words = Some(output.clone().into());
    }
    out.finish = match json.get("status").and_then(Json::as_str) {
        Some("incomplete") => match json.pointer("/incomplete_details/reason").and_then(Json::as_str) {
            Some("content_filter") => Finish::Filtered,
            _ => Finish::Length,
        },
        _ if out.refusal.is_some() => Finish::Refused,
        _ if !out.calls.is_empty() => Finish::ToolCalls,
        _ if has_message => Finish::Stop,
        _ => return Err(no_message(json)),
    };
    Ok(out)
}

/// Makes of the events of a stream the answer that would have come without one: the last event holds it.
#[derive(Debug, Default)]
struct ResponseAssembly {
    response: Option<Json>,
}

impl Assembly for ResponseAssembly {
    /// Takes an event; what it adds to the text. `None` after the last.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault> {
        let json = event_json(event)?;
        match json.get("type").and_then(Json::as_str).unwrap_or_default() {
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = json.get("response").cloned().unwrap_or_default();
                super::http::no_error(&response)?;
                self.response = Some(response);
                Ok(None)
            }
            "response.output_text.delta" => {
                Ok(Some(json.get("delta").and_then(Json::as_str).unwrap_or_default().to_string()))
            }
            _ => Ok(Some(String::new())),
        }
    }

    /// The whole answer, if it is whole.
    fn end(self: Box<Self>) -> Option<Json> {
        self.response
    }
}
