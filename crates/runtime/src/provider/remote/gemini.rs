//! Google's Gemini, and the Gemini models of Vertex AI.
//!
//! A model that thinks signs its thoughts, and wants the signatures back with the results of the calls that
//! it made. So an answer with calls and signatures is kept in its own words, which the next requests repeat.

use super::convert::{
    Calls, Plan, Received, WireMessage, counted, no_message, object, push_part, with_results, without,
};
use super::endpoint::{Endpoint, required};
use super::http::{Fault, event_json};
use super::sse::SseEvent;
use super::{Assembly, Dialect, Protocol, Structured};
use crate::provider::{Finish, ModelError};
use core_ir::vendor;
use serde_json::{Map, Value as Json, json};

/// Google's own endpoint.
const GEMINI_URL: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Gemini at Google's own endpoint.
pub(in crate::provider) const GEMINI: Endpoint = Endpoint {
    name: "gemini",
    protocol: Protocol::Gemini,
    is_free: false,
    own: Some(GEMINI_URL),
    address: |environment| {
        let base = environment.get("GEMINI_BASE_URL").unwrap_or(GEMINI_URL);
        Ok((base.to_string(), Some("GEMINI_API_KEY")))
    },
    parameters: &[],
    key: Some("GEMINI_API_KEY"),
    always_wants_key: false,
    serves: Some(&vendor::GOOGLE),
    key_of_family: Some("GEMINI_API_KEY"),
};

/// Gemini of Vertex AI, in the project and the region of the variables of Google's own clients.
pub(in crate::provider) const VERTEX: Endpoint = Endpoint {
    name: "vertex",
    protocol: Protocol::Vertex,
    is_free: false,
    own: None,
    address: |environment| {
        let project = required(environment, "GOOGLE_CLOUD_PROJECT", "my-project")?;
        let region = environment.get("GOOGLE_CLOUD_LOCATION").unwrap_or("global");
        let host = match region {
            "global" => "aiplatform.googleapis.com".to_string(),
            region => format!("{region}-aiplatform.googleapis.com"),
        };
        let base = format!("https://{host}/v1/projects/{project}/locations/{region}/publishers/google");
        Ok((base, Some("GOOGLE_ACCESS_TOKEN")))
    },
    parameters: &[],
    key: Some("GOOGLE_ACCESS_TOKEN"),
    always_wants_key: true,
    serves: None,
    key_of_family: None,
};

/// Model parameters that the source may give, and their names in the protocol.
const PASSED_ON: [(&[&str], &str); 6] = [
    (&["top_p"], "topP"),
    (&["top_k"], "topK"),
    (&["seed"], "seed"),
    (&["presence_penalty"], "presencePenalty"),
    (&["frequency_penalty"], "frequencyPenalty"),
    (&["thinkingConfig"], "thinkingConfig"),
];

/// Keywords of schemas that the protocol does not know.
const UNKNOWN: &[&str] =
    &["exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"];

/// The protocol.
pub(super) struct Gemini {
    /// True if the key is an access token.
    pub(super) takes_token: bool,
}

impl Dialect for Gemini {
    fn path(&self, model: &str, stream: bool) -> (String, Option<&'static str>) {
        let model = model.strip_prefix("models/").unwrap_or(model);
        if stream {
            (format!("/models/{model}:streamGenerateContent"), Some("alt=sse"))
        } else {
            (format!("/models/{model}:generateContent"), None)
        }
    }

    fn described(&self) -> (&'static str, &'static str) {
        ("an API with Google's Gemini", GEMINI_URL)
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        if self.takes_token {
            ("authorization", format!("Bearer {key}"))
        } else {
            ("x-goog-api-key", key.to_string())
        }
    }

    fn body(&self, plan: &Plan<'_>) -> Json {
        body(plan)
    }

    fn read(&self, json: &Json) -> Result<Received, ModelError> {
        read(json)
    }

    fn assembly(&self) -> Box<dyn Assembly + Send> {
        Box::new(ContentAssembly::default())
    }
}

/// The request.
fn body(plan: &Plan<'_>) -> Json {
    let mut body = Map::new();
    let mut system: Vec<String> = plan.instruction().into_iter().collect();
    let mut contents: Vec<Json> = Vec::new();
    // The call that is open: results name it.
    let mut called = String::new();
    for turn in plan.turns(Calls::Shown) {
        match turn {
            WireMessage::Answer { words, results } => repeat(&mut contents, words, &results),
            // Instructions have a place of their own at the beginning; later ones are said.
            WireMessage::System(text) if contents.is_empty() => system.push(text.to_string()),
            WireMessage::System(text) | WireMessage::User(text) => push(&mut contents, "user", part(&text)),
            WireMessage::Assistant(text) => push(&mut contents, "model", part(&text)),
            WireMessage::Call { name, args, .. } => {
                let call = json!({"functionCall": {"name": name, "args": object(args.to_json())}});
                push(&mut contents, "model", call);
                called = name;
            }
            WireMessage::Result { text, .. } => push(&mut contents, "user", result(&called, text)),
        }
    }
    if contents.first().is_none_or(|c| c["role"] != "user") {
        // A conversation begins with the user's words.
        contents.insert(0, json!({"role": "user", "parts": [part("(begin)")]}));
    }
    body.insert("contents".into(), contents.into());
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": [{"text": system.join("\n\n")}]}));
    }
    let mut config = Map::new();
    if let Some(schema) = plan.schema() {
        config.insert("responseMimeType".into(), "application/json".into());
        config.insert("responseJsonSchema".into(), without(&schema.json, UNKNOWN));
    } else if plan.is_structured() && plan.way == Structured::JsonObject {
        config.insert("responseMimeType".into(), "application/json".into());
    }
    if let Some(t) = plan.temperature() {
        config.insert("temperature".into(), t);
    }
    if let Some(most) = plan.call.output_limit() {
        config.insert("maxOutputTokens".into(), most.into());
    }
    for (name, theirs) in PASSED_ON {
        config.extend(plan.passed_on(name).map(|(_, value)| (theirs.to_string(), value)));
    }
    config.extend(plan.stops().map(|stops| ("stopSequences".to_string(), stops)));
    // As programs write it for models of Anthropic.
    for (_, thinking) in plan.passed_on(&["thinking"]) {
        if let Some(budget) = thinking.get("budget_tokens") {
            config.insert("thinkingConfig".into(), json!({ "thinkingBudget": budget }));
        }
    }
    if !config.is_empty() {
        body.insert("generationConfig".into(), config.into());
    }
    let tools: Vec<Json> = plan
        .offers()
        .map(|o| {
            let mut tool = Map::new();
            tool.insert("name".into(), o.name.into());
            if let Some(text) = o.description {
                tool.insert("description".into(), text.into());
            }
            tool.insert("parametersJsonSchema".into(), without(&o.parameters, UNKNOWN));
            Json::Object(tool)
        })
        .collect();
    if !tools.is_empty() {
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
    }
    Json::Object(body)
}

/// A text; an empty one is refused.
fn part(text: &str) -> Json {
    json!({"text": if text.trim().is_empty() { "(nothing)" } else { text }})
}

fn result(name: &str, text: &str) -> Json {
    json!({"functionResponse": {"name": name, "response": {"result": text}}})
}

/// Adds a part.
fn push(contents: &mut Vec<Json>, role: &str, part: Json) {
    push_part(contents, role, "parts", part);
}

/// Adds an answer as it was said, with the results of its calls.
fn repeat(contents: &mut Vec<Json>, parts: &Json, results: &[&str]) {
    let (told, made) = with_results(parts, results, |part| part.get("functionCall"));
    told.into_iter().for_each(|part| push(contents, "model", part));
    for (call, text) in made {
        let mut answer = result(call["name"].as_str().unwrap_or_default(), text);
        if let Some(id) = call.get("id") {
            answer["functionResponse"]["id"] = id.clone();
        }
        push(contents, "user", answer);
    }
}

/// Reads an answer.
fn read(json: &Json) -> Result<Received, ModelError> {
    let usage = |name: &str| json.pointer("/usageMetadata").and_then(|u| u.get(name)).and_then(Json::as_u64);
    let sum = |names: [&str; 2]| names.into_iter().filter_map(usage).reduce(u64::saturating_add);
    let mut out = Received {
        input: sum(["promptTokenCount", "toolUsePromptTokenCount"]),
        output: sum(["candidatesTokenCount", "thoughtsTokenCount"]),
        cached: counted(json, "/usageMetadata/cachedContentTokenCount"),
        ..Received::default()
    };
    let blocked = json.pointer("/promptFeedback/blockReason").is_some_and(Json::is_string);
    let Some(candidate) = json.pointer("/candidates/0") else {
        if blocked {
            out.finish = Finish::Filtered;
            return Ok(out);
        }
        return Err(no_message(json));
    };
    let parts = candidate.pointer("/content/parts").and_then(Json::as_array);
    let parts = parts.map(Vec::as_slice).unwrap_or_default();
    for part in parts {
        if let Some(call) = part.get("functionCall") {
            let name = call.get("name").and_then(Json::as_str).map(String::from);
            out.calls.push((name, call.get("args").cloned().unwrap_or_default()));
        } else if let Some(text) = part.get("text").and_then(Json::as_str)
            && !is_thought(part)
        {
            out.text.get_or_insert_default().push_str(text);
        }
    }
    if !out.calls.is_empty() && parts.iter().any(|p| p.get("thoughtSignature").is_some()) {
        // Streams may end with an empty text, which requests may not have. One with a signature has to stay.
        let is_empty =
            |part: &Json| part.get("text").is_some_and(|t| t == "") && part.get("thoughtSignature").is_none();
        out.words = Some(parts.iter().filter(|p| !is_empty(p)).map(repeatable).collect());
    }
    out.finish = match candidate.get("finishReason").and_then(Json::as_str) {
        Some("STOP") if out.calls.is_empty() => Finish::Stop,
        Some("STOP") => Finish::ToolCalls,
        Some("MAX_TOKENS") => Finish::Length,
        Some(
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
            | "LANGUAGE",
        ) => Finish::Filtered,
        // A candidate says at least why it ended.
        None if parts.is_empty() => return Err(no_message(json)),
        _ => Finish::Other,
    };
    Ok(out)
}

fn is_thought(part: &Json) -> bool {
    part.get("thought") == Some(&Json::Bool(true))
}

/// A part of an answer as requests may have it.
fn repeatable(part: &Json) -> Json {
    let mut part = part.clone();
    if let Some(args) = part.get_mut("functionCall").and_then(|call| call.get_mut("args")) {
        *args = object(args.take());
    }
    part
}

/// Makes of the events of a stream the answer that would have come without one: each event has further parts.
#[derive(Debug, Default)]
struct ContentAssembly {
    parts: Vec<Json>,
    finish: Option<Json>,
    feedback: Option<Json>,
    usage: Option<Json>,
}

/// Parts of one reply; a server that sends more is broken.
const MAX_PARTS: usize = 1 << 16;

impl Assembly for ContentAssembly {
    /// Takes an event; what it adds to the text. The protocol has no last event: the stream ends.
    fn event(&mut self, event: &SseEvent) -> Result<Option<String>, Fault> {
        let json = event_json(event)?;
        for (place, field) in [("/usageMetadata", &mut self.usage), ("/promptFeedback", &mut self.feedback)] {
            if let Some(value) = json.pointer(place).filter(|v| v.is_object()) {
                *field = Some(value.clone());
            }
        }
        let mut text = String::new();
        for part in json.pointer("/candidates/0/content/parts").and_then(Json::as_array).into_iter().flatten()
        {
            let said = part.get("text").and_then(Json::as_str);
            if let Some(said) = said.filter(|_| !is_thought(part)) {
                text.push_str(said);
            }
            let is_plain = |p: &Json| p.as_object().is_some_and(|o| o.len() == 1 && o.contains_key("text"));
            let is_full = self.parts.len() == MAX_PARTS;
            match self.parts.last_mut() {
                // Text in pieces is one text.
                Some(last) if is_plain(last) && is_plain(part) => {
                    if let (Some(Json::String(grown)), Some(said)) = (last.get_mut("text"), said) {
                        grown.push_str(said);
                    }
                }
                _ if is_full => {
                    return Err(Fault::Nonsense(format!("the answer has more than {MAX_PARTS} parts")));
                }
                _ => self.parts.push(part.clone()),
            }
        }
        if let Some(reason) = json.pointer("/candidates/0/finishReason").filter(|r| r.is_string()) {
            self.finish = Some(reason.clone());
        }
        Ok(Some(text))
    }

    /// The whole answer, if it is whole.
    fn end(self: Box<Self>) -> Option<Json> {
        let blocked = self.feedback.as_ref().is_some_and(|f| f.get("blockReason").is_some());
        if self.finish.is_none() && !blocked {
            return None;
        }
        let mut out = json!({"usageMetadata": self.usage, "promptFeedback": self.feedback});
        if let Some(finish) = self.finish {
            let content = json!({"role": "model", "parts": self.parts});
            out["candidates"] = json!([{"content": content, "finishReason": finish}]);
        }
        Some(out)
    }
}
