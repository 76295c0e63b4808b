//! Conversions shared by the protocols of remote models: names of tools and shapes of answers, in both
//! directions. No IO.

use super::{RemoteOptions, Structured, excerpt};
use crate::Schema;
use crate::provider::{FaultKind, Finish, ModelCall, ModelError, Tokens, VerbatimReply};
use core_ir::{Data, Name, ToolDecl, Type};
use machine::Reply;
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// A question on its way: what decides the request and the reading of its answer.
pub(super) struct Plan<'a> {
    pub(super) call: &'a ModelCall,
    pub(super) options: &'a RemoteOptions,
    pub(super) way: Structured,
    pub(super) stream: bool,
    /// True if the output limit is called `max_completion_tokens` (in Chat Completions).
    pub(super) new_limit: bool,
    shape: Shape,
    schema: Option<Schema>,
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

/// Contents of a response, in any protocol.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) text: Option<String>,
    /// Calls of tools: name and arguments, which may be a text that should be JSON.
    pub(super) calls: Vec<(Option<String>, Json)>,
    pub(super) finish: Finish,
    /// The model's words if it declined.
    pub(super) refusal: Option<String>,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    /// Tokens of the prompt that the provider's cache had.
    pub(super) cached: u64,
    /// Tokens of the prompt that were written to the cache.
    pub(super) cache_write: u64,
    /// The answer as it was said, if it has to be repeated so.
    pub(super) words: Option<Json>,
}

/// A tool as it is offered.
pub(super) struct OfferedTool<'a> {
    pub(super) name: &'a str,
    pub(super) description: Option<&'a str>,
    pub(super) parameters: Json,
    pub(super) strict: bool,
}

/// A message on its way. What follows a call is its result, also a complaint about its arguments.
pub(super) enum WireMessage<'a> {
    System(Cow<'a, str>),
    User(Cow<'a, str>),
    Assistant(Cow<'a, str>),
    Call {
        id: String,
        name: String,
        args: &'a Data,
    },
    Result {
        id: String,
        text: &'a str,
    },
    /// An answer of this model with calls, as it was said, and the results of those calls that were made.
    Answer {
        words: &'a Json,
        results: Vec<&'a str>,
    },
}

/// How earlier calls of a conversation are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// As calls.
    Shown,
    /// In words: without tools on offer some protocols allow no calls.
    InWords,
}

impl<'a> Plan<'a> {
    pub(super) fn new(call: &'a ModelCall, options: &'a RemoteOptions, way: Structured) -> Plan<'a> {
        // Plain text needs no schema. Anything else is JSON to the machine, also where the type says nothing.
        let schema = match call.result() {
            None | Some(Type::Str) => None,
            Some(ty) => Schema::of(ty),
        };
        let (shape, schema) = match schema {
            None => (Shape::Text, None),
            Some(s) if s.is_object() || way == Structured::Prompt => (Shape::Direct, Some(s)),
            Some(s) => (Shape::Wrapped, Some(s.wrapped())),
        };
        let names = tool_names(&call.tools);
        Plan { call, options, way, stream: false, new_limit: false, shape, schema, names }
    }

    /// The schema, if the request says in a field of its own what the answer must be.
    pub(super) fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref().filter(|_| self.way == Structured::JsonSchema)
    }

    /// Returns true if a field of the request demands a JSON answer.
    pub(super) fn is_structured(&self) -> bool {
        self.schema.is_some() && self.way != Structured::Prompt
    }

    /// The name of the answer's type, as protocols want names to be.
    pub(super) fn answer_name(&self) -> String {
        identifier(self.call.purpose().unwrap_or("answer"))
    }

    /// Returns the instruction that describes the answer's form in words, where no field does.
    pub(super) fn instruction(&self) -> Option<String> {
        let schema = self.schema.as_ref().filter(|_| self.way != Structured::JsonSchema)?;
        Some(format!("Answer with JSON and nothing else, according to this JSON Schema:\n{}", schema.json))
    }

    /// The tools on offer.
    pub(super) fn offers(&self) -> impl Iterator<Item = OfferedTool<'_>> {
        self.call.tools.iter().zip(&self.names).map(|(decl, name)| {
            let schema = Schema::of_params(decl.params.iter().map(|p| (&p.name, &p.ty)));
            let (parameters, strict) = match schema {
                Some(s) => (s.json, s.strict),
                None => (json!({"type": "object"}), false),
            };
            OfferedTool { name, description: decl.description.as_deref(), parameters, strict }
        })
    }

    /// The conversation.
    pub(super) fn turns(&self, calls: Calls) -> Vec<WireMessage<'_>> {
        let messages = &self.call.messages;
        let known = |name: &Name| {
            let at = self.call.tools.iter().position(|t| t.name == *name);
            at.and_then(|i| self.names.get(i).cloned()).unwrap_or_else(|| identifier(name))
        };
        let mut out = Vec::with_capacity(messages.len());
        // The call that the next message answers.
        let mut open: Option<String> = None;
        let mut said = self.call.said.iter().peekable();
        let mut rest = messages.iter().enumerate();
        while let Some((i, m)) = rest.next() {
            let said = said.next_if(|s| s.at == i);
            if let Some(id) = open.take() {
                out.push(match calls {
                    Calls::Shown => WireMessage::Result { id, text: &m.content },
                    Calls::InWords => WireMessage::User(format!("Its result: {}", m.content).into()),
                });
                continue;
            }
            out.push(match (&m.call, m.role) {
                // A call that nothing follows can't be shown as one.
                (Some(call), _) if i + 1 < messages.len() => match said {
                    Some(VerbatimReply { calls: made, words, .. })
                        if calls == Calls::Shown && words["model"] == *self.options.model =>
                    {
                        // The result of this call, and its other calls with theirs.
                        let results = rest.by_ref().take(2 * made - 1).step_by(2);
                        let results = results.map(|(_, m)| &*m.content).collect();
                        WireMessage::Answer { words: &words["content"], results }
                    }
                    _ => {
                        let (id, name, args) = (format!("call_{i}"), known(&call.0), &call.1);
                        open = Some(id.clone());
                        match calls {
                            Calls::Shown => WireMessage::Call { id, name, args },
                            Calls::InWords => {
                                let said = format!("I call the tool {name} with {}", args.to_json());
                                WireMessage::Assistant(said.into())
                            }
                        }
                    }
                },
                (_, core_ir::Role::System) => WireMessage::System((&*m.content).into()),
                (_, core_ir::Role::Assistant) => WireMessage::Assistant((&*m.content).into()),
                // A result with role tool is that of a call which the program made, not the model.
                (_, core_ir::Role::User | core_ir::Role::Tool) => WireMessage::User((&*m.content).into()),
            });
        }
        out
    }

    /// The parameters of the source that the protocol knows under the same name.
    pub(super) fn passed_on(&self, known: &'static [&str]) -> impl Iterator<Item = (String, Json)> {
        let extra = self.call.params.iter().flat_map(|p| &p.extra);
        extra.filter(|(n, _)| known.contains(&&**n)).map(|(n, v)| (n.to_string(), v.to_json()))
    }

    /// The texts that end an answer, as a list, if the source says them.
    pub(super) fn stops(&self) -> Option<Json> {
        let (_, stop) = self.passed_on(&["stop"]).next()?;
        Some(if stop.is_array() { stop } else { json!([stop]) })
    }

    /// The sampling temperature, if the source says one.
    pub(super) fn temperature(&self) -> Option<Json> {
        self.call.params.as_ref()?.temperature.as_ref().map(core_ir::Num::to_json)
    }

    /// Returns the tokens used as the provider counts them, or an estimate.
    pub(super) fn tokens(&self, received: &Received, sent: usize) -> Tokens {
        let guess = Tokens::guess(sent, received.text.as_ref().map_or(0, String::len));
        Tokens {
            input: received.input.unwrap_or(guess.input),
            output: received.output.unwrap_or(guess.output),
            cached: received.cached,
            cache_write: received.cache_write,
        }
    }

    /// Returns the reply, or the reason why there is none. `json` is the whole response, for messages.
    pub(super) fn reply(&self, received: Received, json: &Json) -> Result<Reply, ModelError> {
        let Received { text, calls, finish, refusal, .. } = received;
        match finish {
            Finish::Refused => {
                let words = refusal.or(text).unwrap_or_default();
                return Err(ModelError::of(
                    FaultKind::Refused,
                    format!("the model refused: {}", excerpt(&words)),
                ));
            }
            Finish::Filtered => {
                return Err(ModelError::of(
                    FaultKind::Filtered,
                    "the endpoint's content filter withheld the answer",
                ));
            }
            Finish::Length => return Err(self.cut_off(text.as_deref())),
            Finish::Stop | Finish::ToolCalls | Finish::Other => {}
        }
        if !calls.is_empty() {
            let calls = calls.into_iter().map(|(name, args)| self.tool_call(name, args));
            let mut calls = calls.collect::<Result<Vec<_>, _>>()?;
            return Ok(match (calls.len(), calls.pop()) {
                (1, Some((name, args))) => Reply::ToolCall { name, args },
                (_, last) => Reply::ToolCalls(calls.into_iter().chain(last).collect()),
            });
        }
        let Some(text) = text.filter(|t| !t.trim().is_empty()) else {
            return Err(ModelError::of(
                FaultKind::Empty,
                format!("the model's answer is empty: {}", excerpt(&json.to_string())),
            ));
        };
        Ok(Reply::Text(match self.shape {
            Shape::Text => text,
            Shape::Direct => self.unquote(text),
            Shape::Wrapped => match serde_json::from_str::<Json>(&text) {
                Ok(Json::Object(mut fields)) if fields.len() == 1 && fields.contains_key("value") => {
                    let value = fields.remove("value").unwrap_or_default();
                    self.unquote(value.to_string())
                }
                // Not as asked for; the machine says what is wrong with it, or finds that it is fine.
                _ => text,
            },
        }))
    }

    fn cut_off(&self, text: Option<&str>) -> ModelError {
        let received = excerpt(text.unwrap_or_default());
        let limit = self.call.output_limit().map_or(String::new(), |n| format!(" of {n} tokens"));
        let own = self.call.params.as_ref().and_then(|p| p.max_tokens);
        let help = if self.call.max_output.is_some_and(|n| own.is_none_or(|own| n < own)) {
            "allow a larger budget"
        } else {
            "allow more `max_tokens`, or ask for less"
        };
        let what = format!("the answer was cut off at the limit{limit}: {received}");
        ModelError::of(FaultKind::CutOff, what).with_help(help)
    }

    /// Decodes the reply's JSON to text if the type is a string.
    fn unquote(&self, text: String) -> String {
        match self.call.result().map(Type::unrefined) {
            Some(Type::Str) => serde_json::from_str::<String>(&text).unwrap_or(text),
            _ => text,
        }
    }

    fn tool_call(&self, sent: Option<String>, args: Json) -> Result<(Name, Data), ModelError> {
        let Some(sent) = sent else {
            let what = format!("the model called a tool without a name: {}", excerpt(&args.to_string()));
            return Err(ModelError::of(FaultKind::Malformed, what));
        };
        let tool = self.names.iter().position(|n| *n == sent).and_then(|i| self.call.tools.get(i));
        let name = tool.map_or_else(|| Name::from(&*sent), |t| t.name.clone());
        let raw = match args {
            Json::String(s) if s.trim().is_empty() => "{}".to_string(),
            Json::String(s) => s,
            Json::Null => "{}".to_string(),
            other => other.to_string(),
        };
        let args = match serde_json::from_str::<Json>(&raw) {
            Ok(json) => match tool {
                Some(t) => Type::record(t.params.iter().map(|p| (p.name.clone(), p.ty.clone()))).read(&json),
                None => Data::from_json(&json),
            }
            .map_err(|e| {
                ModelError::of(FaultKind::Malformed, format!("the arguments of a call of `{name}`: {e}"))
            })?,
            // The machine finds no argument in a text and tells the model.
            Err(_) => Data::str(raw),
        };
        Ok((name, args))
    }
}

/// A count at a place of a response; 0 if it is not there.
pub(super) fn counted(json: &Json, at: &str) -> u64 {
    json.pointer(at).and_then(Json::as_u64).unwrap_or_default()
}

/// Explains why a response contains no message.
pub(super) fn no_message(json: &Json) -> ModelError {
    let what = format!("the answer holds no message: {}", excerpt(&json.to_string()));
    ModelError::of(FaultKind::Malformed, what)
}

/// The arguments of a call as a text of JSON.
pub(super) fn arguments(args: &Data) -> String {
    match args {
        Data::Str(raw) => raw.to_string(),
        args => args.to_json().to_string(),
    }
}

/// The arguments of a call, which are an object.
pub(super) fn object(input: Json) -> Json {
    if input.is_object() { input } else { json!({ "arguments": input }) }
}

/// The schema without these keywords, which a protocol does not know. They are in the description instead,
/// and are checked when the answer is there.
pub(super) fn without(schema: &Json, unknown: &[&str]) -> Json {
    let Json::Object(fields) = schema else { return schema.clone() };
    let mut out = Map::new();
    let mut left_out = Vec::new();
    for (name, value) in fields {
        let is_small = name == "minItems" && value.as_u64().is_some_and(|n| n <= 1);
        if unknown.contains(&&**name) && !is_small {
            left_out.push(format!("{name}: {value}"));
            continue;
        }
        let value = match (&**name, value) {
            // These hold schemas by name, where a name is no keyword.
            ("properties" | "$defs", Json::Object(parts)) => {
                parts.iter().map(|(n, s)| (n.clone(), without(s, unknown))).collect()
            }
            ("anyOf" | "allOf", Json::Array(parts)) => parts.iter().map(|s| without(s, unknown)).collect(),
            ("items", part) => without(part, unknown),
            (_, value) => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    if !left_out.is_empty() {
        let mut text = left_out.join(", ");
        if let Some(said) = out.get("description").and_then(Json::as_str) {
            text = format!("{said} ({text})");
        }
        out.insert("description".into(), text.into());
    }
    Json::Object(out)
}

/// A text as the protocols allow names to be: letters, digits, `_` and `-`, 1 to 64 of them.
fn identifier(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let out: String = text.chars().take(64).map(keep).collect();
    if out.is_empty() { "_".into() } else { out }
}

/// A name for each tool, all different.
fn tool_names(tools: &[Arc<ToolDecl>]) -> Vec<String> {
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
/// The parts of an answer that are told again, and its calls with their results. Calls that were not made are
/// left out: none may be without a result. `call` gives the call that a part is.
pub(super) fn with_results<'a>(
    parts: &'a Json,
    results: &[&'a str],
    call: impl Fn(&'a Json) -> Option<&'a Json>,
) -> (Vec<Json>, Vec<(&'a Json, &'a str)>) {
    let (mut told, mut made) = (Vec::new(), Vec::new());
    for part in parts.as_array().into_iter().flatten() {
        if let Some(call) = call(part) {
            let Some(result) = results.get(made.len()) else { continue };
            made.push((call, *result));
        }
        told.push(part.clone());
    }
    (told, made)
}

/// Adds a part to the list of the last message, or begins a message: some protocols want the parties to take
/// turns.
pub(super) fn push_part(messages: &mut Vec<Json>, role: &str, list: &str, part: Json) {
    if let Some(last) = messages.last_mut()
        && last["role"] == role
        && let Some(parts) = last[list].as_array_mut()
    {
        parts.push(part);
    } else {
        messages.push(json!({"role": role, list: [part]}));
    }
}
