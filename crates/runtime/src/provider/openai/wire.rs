//! The protocol: requests are written, answers are read. No IO.

use super::{OpenAiOptions, Structured, excerpt};
use crate::Schema;
use crate::provider::{ModelCall, ModelError, Tokens};
use core_ir::{Data, Name, Role, ToolDecl, Type};
use machine::{Message, Reply};
use serde_json::{Map, Value as Json, json};
use std::collections::HashSet;

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

/// A request, with what is needed to read its answer.
pub(super) struct Plan {
    pub(super) body: Json,
    /// How the answer is shaped.
    shape: Shape,
    /// For each tool of the call the name it has in the request.
    names: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Text, as it comes.
    Text,
    /// JSON as the type says.
    Direct,
    /// JSON in a `value` field.
    Wrapped,
}

/// The base of a refined type.
fn base(ty: &Type) -> &Type {
    match ty {
        Type::Refined(r) => base(&r.0),
        other => other,
    }
}

/// The bytes of the conversation, for a guess at its tokens.
pub(super) fn bytes(call: &ModelCall) -> usize {
    call.messages.iter().map(|m| m.content.len()).sum()
}

impl Plan {
    pub(super) fn new(call: &ModelCall, options: &OpenAiOptions, structured: Structured) -> Plan {
        // Plain text needs no schema. Anything else is JSON to the machine, also where the type says nothing.
        let schema = match call.result() {
            None | Some(Type::Str) => None,
            Some(ty) => Schema::of(ty),
        };
        let names = tool_names(&call.tools);
        let mut body = Map::new();
        body.insert("model".into(), options.model.as_str().into());
        let mut messages = conversation(&call.messages, &call.tools, &names);
        let mut shape = Shape::Text;
        if let Some(schema) = schema {
            let direct = schema.is_object() || structured == Structured::Prompt;
            shape = if direct { Shape::Direct } else { Shape::Wrapped };
            let schema = if direct { schema } else { schema.wrapped() };
            if structured != Structured::JsonSchema {
                let say = format!(
                    "Answer with JSON and nothing else, according to this JSON Schema:\n{}",
                    schema.json
                );
                messages.insert(0, json!({"role": "system", "content": say}));
            }
            let format = match structured {
                Structured::JsonSchema => Some(json!({
                    "type": "json_schema",
                    "json_schema": {"name": identifier(call.purpose().unwrap_or("answer")), "strict": schema.strict, "schema": schema.json},
                })),
                Structured::JsonObject => Some(json!({"type": "json_object"})),
                Structured::Prompt => None,
            };
            if let Some(format) = format {
                body.insert("response_format".into(), format);
            }
        }
        body.insert("messages".into(), messages.into());
        if let Some(params) = &call.params {
            if let Some(t) = &params.temperature {
                body.insert("temperature".into(), t.to_json());
            }
            for (name, value) in &params.extra {
                if PASSED_ON.contains(&&**name) {
                    body.insert(name.to_string(), value.to_json());
                }
            }
        }
        if let Some(most) = call.output_limit() {
            // The endpoint of OpenAI wants the new name, most others know only the old one.
            let new = options.base_url.contains("//api.openai.com");
            body.insert(if new { "max_completion_tokens" } else { "max_tokens" }.into(), most.into());
        }
        if !call.tools.is_empty() {
            let tools: Vec<Json> = call.tools.iter().zip(&names).map(|(t, n)| tool(t, n)).collect();
            body.insert("tools".into(), tools.into());
        }
        Plan { body: Json::Object(body), shape, names }
    }

    /// Whether the request says in a field of its own that the answer must be JSON.
    pub(super) fn is_structured(&self) -> bool {
        self.body.get("response_format").is_some()
    }
}

fn tool(decl: &ToolDecl, name: &str) -> Json {
    let schema = Schema::of_params(decl.params.iter().map(|p| (&p.name, &p.ty)));
    let (parameters, strict) = match schema {
        Some(s) => (s.json, s.strict),
        None => (json!({"type": "object"}), false),
    };
    let mut function = Map::new();
    function.insert("name".into(), name.into());
    if let Some(text) = &decl.description {
        function.insert("description".into(), (**text).into());
    }
    function.insert("parameters".into(), parameters);
    if strict {
        function.insert("strict".into(), true.into());
    }
    json!({"type": "function", "function": function})
}

/// A text as the protocol allows names to be: letters, digits, `_` and `-`, 1 to 64 of them.
fn identifier(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let out: String = text.chars().take(64).map(keep).collect();
    if out.is_empty() { "_".into() } else { out }
}

/// A name for each tool, all different.
fn tool_names(tools: &[std::sync::Arc<ToolDecl>]) -> Vec<String> {
    let mut taken = HashSet::new();
    let names = tools.iter().map(|t| {
        let plain = identifier(&t.name);
        let mut name = plain.clone();
        let mut n = 2;
        while !taken.insert(name.clone()) {
            let end = format!("_{n}");
            name = format!("{}{end}", plain.get(..plain.len().min(64 - end.len())).unwrap_or_default());
            n += 1;
        }
        name
    });
    names.collect()
}

fn conversation(messages: &[Message], tools: &[std::sync::Arc<ToolDecl>], names: &[String]) -> Vec<Json> {
    let known = |name: &Name| {
        let at = tools.iter().position(|t| t.name == *name);
        at.and_then(|i| names.get(i).cloned()).unwrap_or_else(|| identifier(name))
    };
    let mut out = Vec::with_capacity(messages.len());
    // The call that the next message answers.
    let mut open: Option<String> = None;
    for (i, m) in messages.iter().enumerate() {
        if let Some(id) = open.take() {
            // Whatever follows a call is its result, also a complaint about its arguments.
            out.push(json!({"role": "tool", "tool_call_id": id, "content": &*m.content}));
            continue;
        }
        match (&m.call, m.role) {
            // A call that nothing follows can't be shown as one.
            (Some(call), _) if i + 1 < messages.len() => {
                let id = format!("call_{i}");
                let arguments = match &call.1 {
                    Data::Str(raw) => raw.to_string(),
                    args => args.to_json().to_string(),
                };
                out.push(json!({
                    "role": "assistant",
                    "content": null,
                    "tool_calls": [{"id": id, "type": "function", "function": {"name": known(&call.0), "arguments": arguments}}],
                }));
                open = Some(id);
            }
            // The result of a call that the program made, not the model.
            (_, Role::Tool) => out.push(json!({"role": "user", "content": &*m.content})),
            (_, role) => out.push(json!({"role": role.as_str(), "content": &*m.content})),
        }
    }
    out
}

/// Reads an answer: the reply, and what was used.
pub(super) fn read(
    call: &ModelCall,
    plan: &Plan,
    json: &Json,
    sent: usize,
) -> (Result<Reply, ModelError>, Tokens) {
    let choice = json.pointer("/choices/0");
    let message = choice.and_then(|c| c.get("message"));
    let text = message.and_then(content);
    let usage = |name: &str| json.pointer("/usage").and_then(|u| u.get(name)).and_then(Json::as_u64);
    let guess = Tokens::guess(sent, text.as_ref().map_or(0, String::len));
    let tokens = Tokens {
        input: usage("prompt_tokens").unwrap_or(guess.input),
        output: usage("completion_tokens").unwrap_or(guess.output),
    };
    (reply(call, plan, json, choice, message, text), tokens)
}

fn reply(
    call: &ModelCall,
    plan: &Plan,
    json: &Json,
    choice: Option<&Json>,
    message: Option<&Json>,
    text: Option<String>,
) -> Result<Reply, ModelError> {
    let Some(message) = message.filter(|m| m.is_object()) else {
        return Err(ModelError::new(format!("the answer holds no message: {}", excerpt(&json.to_string()))));
    };
    let finish = choice.and_then(|c| c.get("finish_reason")).and_then(Json::as_str).unwrap_or_default();
    if let Some(refusal) = message.get("refusal").and_then(Json::as_str).filter(|r| !r.is_empty()) {
        return Err(ModelError::new(format!("the model refused: {}", excerpt(refusal))));
    }
    match finish {
        "content_filter" => {
            return Err(ModelError::new("the endpoint's content filter withheld the answer"));
        }
        "length" => {
            let received = excerpt(text.as_deref().unwrap_or_default());
            let limit = call.output_limit().map_or(String::new(), |n| format!(" of {n} tokens"));
            let own = call.params.as_ref().and_then(|p| p.max_tokens);
            let help = if call.max_output.is_some_and(|n| own.is_none_or(|own| n < own)) {
                "allow a larger budget"
            } else {
                "allow more `max_tokens`, or ask for less"
            };
            return Err(ModelError::new(format!("the answer was cut off at the limit{limit}: {received}"))
                .with_help(help));
        }
        _ => {}
    }
    if let Some(Json::Array(calls)) = message.get("tool_calls").filter(|c| c.get(0).is_some()) {
        let calls = calls.iter().map(|c| tool_call(call, plan, c.get("function").unwrap_or(c)));
        let mut calls = calls.collect::<Result<Vec<_>, _>>()?;
        return Ok(match (calls.len(), calls.pop()) {
            (1, Some((name, args))) => Reply::ToolCall { name, args },
            (_, last) => Reply::ToolCalls(calls.into_iter().chain(last).collect()),
        });
    }
    let Some(text) = text.filter(|t| !t.trim().is_empty()) else {
        return Err(ModelError::new(format!("the model's answer is empty: {}", excerpt(&json.to_string()))));
    };
    Ok(Reply::Text(match plan.shape {
        Shape::Text => text,
        Shape::Direct => unquote(call, text),
        Shape::Wrapped => match serde_json::from_str::<Json>(&text) {
            Ok(Json::Object(mut fields)) if fields.len() == 1 && fields.contains_key("value") => {
                let value = fields.remove("value").unwrap_or_default();
                unquote(call, value.to_string())
            }
            // Not as asked for; the machine says what is wrong with it, or finds that it is fine.
            _ => text,
        },
    }))
}

/// Where the type is a text, the text that JSON denotes.
fn unquote(call: &ModelCall, text: String) -> String {
    match call.result().map(base) {
        Some(Type::Str) => serde_json::from_str::<String>(&text).unwrap_or(text),
        _ => text,
    }
}

fn tool_call(call: &ModelCall, plan: &Plan, function: &Json) -> Result<(Name, Data), ModelError> {
    let Some(sent) = function.get("name").and_then(Json::as_str) else {
        return Err(ModelError::new(format!(
            "the model called a tool without a name: {}",
            excerpt(&function.to_string())
        )));
    };
    let tool = plan.names.iter().position(|n| n == sent).and_then(|i| call.tools.get(i));
    let name = tool.map_or_else(|| Name::from(sent), |t| t.name.clone());
    let raw = match function.get("arguments") {
        Some(Json::String(s)) if s.trim().is_empty() => "{}".to_string(),
        Some(Json::String(s)) => s.clone(),
        None | Some(Json::Null) => "{}".to_string(),
        Some(other) => other.to_string(),
    };
    let args = match serde_json::from_str::<Json>(&raw) {
        Ok(json) => match tool {
            Some(t) => Type::record(t.params.iter().map(|p| (p.name.clone(), p.ty.clone()))).read(&json),
            None => Data::from_json(&json),
        }
        .map_err(|e| ModelError::new(format!("the arguments of a call of `{name}`: {e}")))?,
        // The machine finds no argument in a text and tells the model.
        Err(_) => Data::str(raw),
    };
    Ok((name, args))
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
