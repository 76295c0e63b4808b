//! The embedded local model.
//!
//! Invariant: a typed reply is constrained to its type's schema, and a reply received as code to a literal,
//! so both always parse. Invariant: it is never offered a tool that changes the world: its choice of tools is
//! not to be relied on.

use super::{Answer, ModelCall, ModelError, Price, Provider, Tokens, Work};
use crate::event::Progress;
use crate::schema::{DEFS, take_defs};
use crate::{ConfigError, Schema};
use core_ir::{Data, EffectClass, Role, ToolDecl, Type};
use diagnostics::clip_to as clip;
use localmodel::{Error, LocalModel, Request};
use machine::Reply;
use serde_json::{Value as Json, json};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

/// Tokens of a reply if nothing says how many. The reply of a model as small as this does not get better by
/// being longer.
const USUAL_OUTPUT: u64 = 512;

/// A model in this process. It is loaded when first asked and answers one question at a time. Free text that
/// reaches the limit of tokens is taken as it is.
pub struct Local {
    path: PathBuf,
    model: Arc<Mutex<Option<LocalModel>>>,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A failure of the local model as a mistake in the configuration, with the remedy.
pub(crate) fn config_error(e: &Error) -> ConfigError {
    let mut error = ConfigError::new(match e {
        Error::NotInstalled { .. } => format!("the local model is not installed: {e}"),
        other => format!("the local model can't be used: {other}"),
    });
    error.help = match e {
        Error::NotInstalled { .. } => Some(
            "fetch it once with `entail model pull`, or name another model with `--model` (and set `OPENAI_API_KEY`)".into(),
        ),
        other => other.help(),
    };
    error.local_model_missing = matches!(e, Error::NotInstalled { .. });
    error
}

fn model_error(e: &Error) -> ModelError {
    let error = ModelError::new(format!("the local model: {e}"));
    ModelError { help: e.help(), ..error }
}

/// Tells the computation to end when the one who waits for it is gone.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Local {
    /// Creates the model of a GGUF file. The file is read at the first call.
    pub fn new(path: impl Into<PathBuf>) -> Local {
        Local { path: path.into(), model: Arc::default() }
    }

    async fn answer(self: Arc<Self>, call: ModelCall, progress: Progress) -> Answer {
        let plan = Plan::new(&call);
        let request = match plan.request(&call) {
            Ok(request) => request,
            Err(e) => return Answer::failed(e),
        };
        let mut slot = self.model.clone().lock_owned().await;
        let path = self.path.clone();
        let stop = Arc::new(AtomicBool::new(false));
        let guard = StopOnDrop(stop.clone());
        let computed = tokio::task::spawn_blocking(move || {
            let model = match &mut *slot {
                Some(model) => model,
                None => slot.insert(LocalModel::load(&path)?),
            };
            model.generate(&request, &mut |made| {
                if let localmodel::Progress::Text { piece, output_tokens } = made {
                    progress.text(piece);
                    progress.growing(output_tokens as u64);
                }
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })
        });
        let reply = computed.await;
        drop(guard);
        match reply {
            Ok(Ok(reply)) => {
                let tokens = Tokens::new(reply.input_tokens as u64, reply.output_tokens as u64);
                Answer::new(plan.read(&call, reply.text), tokens)
            }
            Ok(Err(e)) => Answer::failed(model_error(&e)),
            Err(_) => Answer::failed(ModelError::new("the local model crashed")),
        }
    }
}

/// Form of the text that the model may write.
enum Plan {
    /// Text.
    Text,
    /// A literal of the calculus.
    Code,
    /// JSON of this schema.
    Typed(Schema),
    /// `{"call": tool, "args": {…}}` or `{"final": answer}`.
    Choice(Json),
}

fn offered(call: &ModelCall) -> impl Iterator<Item = &ToolDecl> {
    call.tools.iter().map(|t| &**t).filter(|t| t.effect != EffectClass::Write)
}

/// An object with exactly these fields.
fn object(fields: [(&str, Json); 2]) -> Json {
    let required: Vec<&str> = fields.iter().map(|(n, _)| *n).collect();
    json!({
        "type": "object",
        "required": required,
        "properties": fields.iter().map(|(n, s)| (n.to_string(), s.clone())).collect::<serde_json::Map<_, _>>(),
        "additionalProperties": false,
    })
}

impl Plan {
    fn new(call: &ModelCall) -> Plan {
        if call.params.is_none() {
            return Plan::Code;
        }
        let schema = match call.result() {
            None | Some(Type::Str) => None,
            // It would ramble about anything at all; a text is something.
            Some(Type::Dyn) => Schema::of(&Type::Str),
            Some(ty) => Schema::described_by_value(ty),
        };
        // Schemas refer to those at the root, each of them by the name of a type of the program.
        let mut defs = serde_json::Map::new();
        let mut lift = |schema: &mut Json| {
            if let Some(Json::Object(all)) = take_defs(schema) {
                defs.extend(all);
            }
        };
        let mut ways: Vec<Json> = offered(call)
            .filter_map(|t| {
                let mut args = Schema::of_params(t.params.iter().map(|p| (&p.name, &p.ty)))?;
                lift(&mut args.json);
                Some(object([("call", json!({"type": "string", "enum": [&*t.name]})), ("args", args.json)]))
            })
            .collect();
        if ways.is_empty() {
            return schema.map_or(Plan::Text, Plan::Typed);
        }
        let mut answer = schema.map_or_else(|| json!({"type": "string"}), |s| s.json);
        lift(&mut answer);
        ways.push(json!({
            "type": "object",
            "properties": {"final": answer},
            "required": ["final"],
            "additionalProperties": false,
        }));
        let mut choice = json!({ "anyOf": ways });
        if !defs.is_empty() {
            choice[DEFS] = Json::Object(defs);
        }
        Plan::Choice(choice)
    }

    fn schema(&self) -> Option<Json> {
        match self {
            Plan::Text => None,
            // Braces would interpolate, and not every escape of JSON is one of the calculus.
            Plan::Code => Some(json!({"type": "string", "pattern": r"^[^{}\\\x00-\x1f]{1,240}$"})),
            Plan::Typed(schema) => Some(schema.json.clone()),
            Plan::Choice(json) => Some(json.clone()),
        }
    }

    fn request(&self, call: &ModelCall) -> Result<Request, ModelError> {
        let mut messages = Vec::new();
        if let Plan::Choice(_) = self {
            let mut say = String::from("Call one of these tools, or give the final answer.");
            for t in offered(call) {
                let about = t.description.as_deref().map_or(String::new(), |d| format!(": {d}"));
                say.push_str(&format!("\n- {}{about}", t.name));
            }
            messages.push(localmodel::Message::system(say));
        }
        for m in call.messages.iter() {
            let content = &*m.content;
            let message = match (m.role, &m.call) {
                (_, Some(c)) => {
                    let said = json!({"call": &*c.0, "args": c.1.to_json()});
                    localmodel::Message::assistant(said.to_string())
                }
                // The template has one system message, at the beginning.
                (Role::System, None) => match messages.last_mut() {
                    Some(last) if last.role == localmodel::Role::System => {
                        last.content.push_str("\n\n");
                        last.content.push_str(content);
                        continue;
                    }
                    None => localmodel::Message::system(content),
                    Some(_) => localmodel::Message::user(content),
                },
                (Role::User | Role::Tool, None) => localmodel::Message::user(content),
                (Role::Assistant, None) => localmodel::Message::assistant(content),
            };
            messages.push(message);
        }
        if messages.is_empty() {
            return Err(ModelError::new("the local model: the prompt is empty")
                .with_help("`send` a message before `recv`"));
        }
        let most = call.output_limit().unwrap_or(USUAL_OUTPUT).clamp(1, 1 << 20);
        Ok(Request {
            schema: self.schema(),
            max_tokens: usize::try_from(most).unwrap_or(usize::MAX),
            ..Request::new(messages)
        })
    }

    fn read(&self, call: &ModelCall, text: String) -> Result<Reply, ModelError> {
        match self {
            Plan::Text | Plan::Code => Ok(Reply::Text(text)),
            Plan::Typed(_) => Ok(Reply::Text(plain(call, text))),
            Plan::Choice(_) => {
                let json: Json = serde_json::from_str(&text).map_err(|e| {
                    ModelError::new(format!("the local model wrote no JSON ({e}): `{}`", clip(&text, 200)))
                })?;
                if let Some(answer) = json.get("final") {
                    let text = match (answer, call.result()) {
                        (Json::String(s), None) => s.clone(),
                        (answer, _) => plain(call, answer.to_string()),
                    };
                    return Ok(Reply::Text(text));
                }
                let name = json.get("call").and_then(Json::as_str).unwrap_or_default();
                let args = json.get("args").cloned().unwrap_or_default();
                let args = match offered(call).find(|t| &*t.name == name) {
                    Some(t) => {
                        Type::record(t.params.iter().map(|p| (p.name.clone(), p.ty.clone()))).read(&args)
                    }
                    None => Data::from_json(&args),
                };
                let args = args.map_err(|e| ModelError::new(format!("the local model: {e}")))?;
                Ok(Reply::ToolCall { name: name.into(), args })
            }
        }
    }
}

/// Decodes the reply's JSON to text if the type is a string.
fn plain(call: &ModelCall, text: String) -> String {
    match call.result().map(Type::unrefined) {
        Some(Type::Str) => serde_json::from_str::<String>(&text).unwrap_or(text),
        _ => text,
    }
}

impl Provider for Local {
    fn name(&self) -> &str {
        "local"
    }

    fn price(&self) -> Option<Price> {
        Some(Price::FREE)
    }

    fn may_block(&self) -> bool {
        false
    }

    fn ask(self: Arc<Self>, call: ModelCall, progress: Progress) -> Work<Answer> {
        Work::Later(Box::pin(self.answer(call, progress)))
    }
}
