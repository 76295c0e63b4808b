//! Requests and responses as JSON, as they are kept in a journal.

use crate::approve::Edit;
use core_ir::exchange::{data_from_json, data_json};
use core_ir::{Candidate, Data, LabelSpec, Name, Role, ToolDecl};
use machine::{Call, Message, Messages, NOBODY, Reply, Response};
use runs::{Decider, Via};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write as _;

/// Encodes a request: everything that determines the answer except the conversation. Two requests are equal
/// if their encodings and their conversations are.
pub(super) fn request(call: &Call) -> Json {
    match call {
        Call::Model { messages: _, params, tools, attempt } => {
            let mut o = Map::new();
            o.insert("kind".into(), "model".into());
            match params {
                None => drop(o.insert("reply".into(), "code".into())),
                Some(p) => {
                    let texts = [("model", p.model.as_deref()), ("purpose", p.purpose.as_deref())];
                    for (name, value) in texts.into_iter().filter_map(|(n, v)| Some((n, v?))) {
                        o.insert(name.into(), value.into());
                    }
                    if let Some(t) = &p.temperature {
                        o.insert("temperature".into(), t.to_string().into());
                    }
                    if let Some(n) = p.max_tokens {
                        o.insert("max_tokens".into(), n.into());
                    }
                    if let Some(t) = &p.result {
                        o.insert("result".into(), t.to_string().into());
                    }
                    if !p.extra.is_empty() {
                        o.insert("extra".into(), fields(&p.extra));
                    }
                }
            }
            if !tools.is_empty() {
                o.insert("tools".into(), tools.iter().map(|t| tool(t)).collect());
            }
            if *attempt > 0 {
                o.insert("attempt".into(), (*attempt).into());
            }
            Json::Object(o)
        }
        Call::Tool { tool, args } => json!({"kind": "tool", "tool": &*tool.name, "args": fields(args)}),
        Call::Approve { tool, args, .. } => {
            json!({"kind": "approve", "tool": &*tool.name, "args": fields(args)})
        }
        Call::Recall { store, key } => {
            json!({"kind": "recall", "store": &*store.name, "key": key_name(store, *key)})
        }
        Call::Remember { store, key, value } => json!({
            "kind": "remember", "store": &*store.name, "key": key_name(store, *key), "value": data_json(value),
        }),
        Call::Sample { probability, draw } => {
            json!({"kind": "sample", "probability": probability.to_string(), "draw": draw.to_string()})
        }
    }
}

/// A conversation.
pub(super) fn messages_json(messages: &Messages) -> Json {
    messages.iter().map(message_json).collect()
}

/// One message of a conversation.
pub(super) fn message_json(m: &Message) -> Json {
    let mut o = Map::new();
    o.insert("role".into(), role(m.role).into());
    o.insert("content".into(), (&*m.content).into());
    if let Some(call) = &m.call {
        o.insert("call".into(), (&*call.0).into());
        o.insert("args".into(), data_json(&call.1));
    }
    Json::Object(o)
}

/// Puts the conversation where those who read look for it, behind the kind of the request.
pub(super) fn put_messages(request: &mut Json, messages: Json) {
    if let Json::Object(o) = request {
        let rest = std::mem::take(o);
        for (i, (name, value)) in rest.into_iter().enumerate() {
            o.insert(name, value);
            if i == 0 {
                o.insert("messages".into(), Json::Null);
            }
        }
        o.insert("messages".into(), messages);
    }
}

fn key_name(store: &core_ir::StoreDecl, key: u32) -> &str {
    store.keys.get(key as usize).map_or("?", |k| &k.name)
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn fields(fields: &[(Name, Data)]) -> Json {
    Json::Object(fields.iter().map(|(n, d)| (n.to_string(), data_json(d))).collect())
}

/// A tool on offer, as its signature.
fn tool(t: &ToolDecl) -> Json {
    let mut text = format!("{}(", t.name);
    for (i, p) in t.params.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{}: {}", if i > 0 { ", " } else { "" }, p.name, p.ty);
    }
    let _ = write!(text, ") -> {}", t.result);
    text.into()
}

/// A response; `None` for one that is not kept.
pub(super) fn response(r: &Response) -> Option<Json> {
    Some(match r {
        Response::LabeledTool(result, label) => {
            let mut json = response(&Response::Tool(result.clone()))?;
            json["label"] = label_json(label);
            json
        }
        Response::Edited { args, label } => json!({ "edit": fields(args), "label": label_json(label) }),
        Response::Model(Ok(Reply::ToolCalls(calls))) => {
            json!({ "calls": calls.iter().map(|(n, args)| json!([&**n, data_json(args)])).collect::<Vec<_>>() })
        }
        Response::Model(Ok(Reply::Text(text))) => json!({ "reply": text }),
        Response::Model(Ok(Reply::ToolCall { name, args })) => {
            json!({"call": &**name, "args": data_json(args)})
        }
        Response::Tool(Ok(data)) | Response::Recall(Ok(Some(data))) => json!({ "data": data_json(data) }),
        Response::Recall(Ok(None)) | Response::Remember(Ok(())) | Response::Approve(Ok(())) => json!({}),
        Response::Model(Err(e))
        | Response::Tool(Err(e))
        | Response::Recall(Err(e))
        | Response::Remember(Err(e))
        | Response::Approve(Err(e)) => json!({ "error": e }),
        Response::Unattended => json!({ "error": NOBODY, "nobody": true }),
        Response::Permanent(e) => json!({ "error": e, "permanent": true }),
        Response::ToolTimeout(e) => json!({ "error": e, "timeout": true }),
        Response::Late(which) => json!({ "late": which }),
        Response::Uncleared(models) => {
            let names = |m: &Candidate| m.names().map(|n| Json::from(&**n)).collect::<Json>();
            json!({ "uncleared": models.iter().map(names).collect::<Json>() })
        }
        Response::Sample(_) | Response::Stop(_) => return None,
    })
}

/// A label that is stated with an answer.
pub(super) fn label_json(label: &LabelSpec) -> Json {
    match label {
        LabelSpec::Axes { untrusted, secret } => json!({"untrusted": untrusted, "secret": secret}),
        LabelSpec::Exact(data) => json!({ "exact": data_json(data) }),
    }
}

/// Reads a label that is stated with an answer.
pub(super) fn read_label(label: &Json) -> Result<LabelSpec, String> {
    let is = |axis: &str| label.get(axis).and_then(Json::as_bool);
    match (label.get("exact"), is("untrusted"), is("secret")) {
        (Some(data), _, _) => {
            data_from_json(data).map(LabelSpec::Exact).map_err(|e| format!("`label`: {}", e.message))
        }
        (None, Some(untrusted), Some(secret)) => Ok(LabelSpec::Axes { untrusted, secret }),
        _ => Err("`label` is none".into()),
    }
}

/// The arguments that an approver wrote.
pub(super) fn edit_json(args: &[(Name, Data)]) -> Json {
    fields(args)
}

/// Reads [`edit_json`].
pub(super) fn read_edit(json: &Json) -> Option<Vec<(Name, Data)>> {
    let fields = json.as_object()?.iter();
    fields.map(|(name, value)| Some((Name::from(name.as_str()), data_from_json(value).ok()?))).collect()
}

/// Reads the approval that a kept response is, perhaps with other arguments; `None` if it is none.
pub(super) fn approved(response: &Json) -> Option<Option<Edit>> {
    if response.get("error").is_some() || response.get("late").is_some() {
        return None;
    }
    match response.get("edit") {
        None => Some(None),
        Some(args) => {
            Some(Some(Edit { args: read_edit(args)?, label: read_label(response.get("label")?).ok()? }))
        }
    }
}

/// Reads the party that approved a call, or refused it, from a kept response.
pub(super) fn decider(response: &Json) -> Option<Decider> {
    let by = response.get("by")?;
    let via = Via::named(by.get("via")?.as_str()?)?;
    Some(Decider::new(by.get("name")?.as_str()?, via))
}

/// Returns true if a recorded response is a refusal for lack of an approver.
fn is_nobodys(response: &Json) -> bool {
    response.get("nobody") == Some(&Json::Bool(true))
}

/// Returns the placeholder for a response that holds a secret.
pub(super) fn withheld() -> Json {
    json!({ "withheld": true })
}

/// A kept response to a request of this kind.
pub(crate) fn read_response(call: &Call, json: &Json) -> Result<Response, String> {
    if *json == withheld() {
        let why = "it held a secret of the environment, which no journal keeps (help: a value that nobody can guess is taken out \
                   of answers instead)";
        return Err(why.into());
    }
    if let Some(which) = json.get("late").and_then(Json::as_u64).and_then(|n| u32::try_from(n).ok()) {
        return Ok(Response::Late(which));
    }
    if let (Call::Model { .. }, Some(models)) = (call, json.get("uncleared")) {
        return uncleared(models).ok_or_else(|| "`uncleared` is not a list of lists of names".into());
    }
    let error = json.get("error").and_then(Json::as_str).map(String::from);
    let data = |name: &str| {
        json.get(name)
            .map(data_from_json)
            .transpose()
            .map_err(|e| format!("`{name}`: {}: {}", e.path, e.message))
    };
    let needs = |what: &str| format!("a response of this kind has {what}");
    Ok(match (call, error) {
        (Call::Model { .. }, Some(e)) if json.get("permanent") == Some(&Json::Bool(true)) => {
            Response::Permanent(e)
        }
        (Call::Model { .. }, Some(e)) => Response::Model(Err(e)),
        (Call::Tool { .. }, Some(e)) if json.get("timeout") == Some(&Json::Bool(true)) => {
            Response::ToolTimeout(e)
        }
        (Call::Tool { .. }, Some(e)) => labeled(json, Err(e))?,
        (Call::Approve { .. }, Some(_)) if is_nobodys(json) => Response::Unattended,
        (Call::Approve { .. }, Some(e)) => Response::Approve(Err(e)),
        (Call::Approve { .. }, None) => match json.get("edit") {
            None => Response::Approve(Ok(())),
            Some(edit) => Response::Edited {
                args: read_edit(edit).ok_or_else(|| needs("`edit`, an object with the arguments"))?,
                label: read_label(json.get("label").unwrap_or(&Json::Null))?,
            },
        },
        (Call::Recall { .. }, Some(e)) => Response::Recall(Err(e)),
        (Call::Remember { .. }, Some(e)) => Response::Remember(Err(e)),
        (Call::Model { .. }, None) if json.get("calls").is_some() => {
            let call = |c: &Json| {
                let args = data_from_json(c.get(1)?).ok()?;
                Some((Name::from(c.get(0)?.as_str()?), args))
            };
            let calls =
                json["calls"].as_array().and_then(|cs| cs.iter().map(call).collect::<Option<Vec<_>>>());
            Response::Model(Ok(Reply::ToolCalls(
                calls.ok_or_else(|| needs("`calls`, a list of names and arguments"))?,
            )))
        }
        (Call::Model { .. }, None) => match (json.get("reply"), json.get("call").and_then(Json::as_str)) {
            (Some(Json::String(text)), None) => Response::Model(Ok(Reply::Text(text.clone()))),
            (None, Some(name)) => {
                let args = data("args")?.unwrap_or_else(|| Data::record([]));
                Response::Model(Ok(Reply::ToolCall { name: name.into(), args }))
            }
            _ => return Err(needs("`reply` (a text), `call` and `args`, or `error`")),
        },
        (Call::Tool { .. }, None) => {
            labeled(json, Ok(data("data")?.ok_or_else(|| needs("`data` or `error`"))?))?
        }
        (Call::Recall { .. }, None) => Response::Recall(Ok(data("data")?)),
        (Call::Remember { .. }, None) => Response::Remember(Ok(())),
        (Call::Sample { .. }, None | Some(_)) => return Err("samples are not kept".into()),
    })
}

/// The models of which none may see a conversation, each with all its names.
fn uncleared(models: &Json) -> Option<Response> {
    let model = |names: &Json| {
        let names = names.as_array()?.iter().map(|n| n.as_str().map(Name::from));
        let mut names = names.collect::<Option<Vec<_>>>()?.into_iter();
        Some(Candidate { name: names.next()?, aliases: names.collect() })
    };
    let models = models.as_array()?.iter().map(model).collect::<Option<Vec<_>>>()?;
    Some(Response::Uncleared(models))
}

/// A tool's result, with the label that the tool gave it, if it did.
fn labeled(json: &Json, result: Result<Data, String>) -> Result<Response, String> {
    let Some(label) = json.get("label") else { return Ok(Response::Tool(result)) };
    Ok(Response::LabeledTool(result, read_label(label)?))
}

/// Describes the difference between two requests; `None` if they are equal.
pub(super) fn difference(recorded: &Json, now: &Json) -> Option<String> {
    let Difference { path, what } = first_difference(recorded, now)?;
    Some(if path.is_empty() { what } else { format!("at {path}: {what}") })
}

/// The first place at which two requests differ.
struct Difference {
    path: String,
    what: String,
}

impl Difference {
    /// A difference at the top.
    fn here(what: String) -> Option<Difference> {
        Some(Difference { path: String::new(), what })
    }

    /// Prefixes the path with a step.
    fn within(self, step: &str) -> Difference {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Difference { path: format!("{step}{dot}{}", self.path), ..self }
    }
}

fn first_difference(recorded: &Json, now: &Json) -> Option<Difference> {
    if recorded == now {
        return None;
    }
    match (recorded, now) {
        (Json::Object(a), Json::Object(b)) => {
            for (name, x) in a {
                match b.get(name) {
                    None => {
                        return Difference::here(format!("`{name}` was {} and is not there now", shown(x)));
                    }
                    Some(y) => {
                        if let Some(found) = first_difference(x, y) {
                            return Some(found.within(name));
                        }
                    }
                }
            }
            let new = b.iter().find(|(n, _)| !a.contains_key(*n));
            new.and_then(|(name, y)| Difference::here(format!("`{name}` is {} and was not there", shown(y))))
        }
        (Json::Array(a), Json::Array(b)) => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                if let Some(found) = first_difference(x, y) {
                    return Some(found.within(&format!("[{}]", i + 1)));
                }
            }
            Difference::here(format!("there were {} items and are {}", a.len(), b.len()))
        }
        (Json::String(a), Json::String(b)) => {
            // Long texts are shown from a little before the first character that differs.
            let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
            let from = if same > 40 { same - 20 } else { 0 };
            let part = |t: &str| {
                let text: String = t.chars().skip(from).take(80).collect();
                format!("`{}{}`", if from > 0 { "…" } else { "" }, diagnostics::clip_to(&text, 80))
            };
            Difference::here(format!("it was {} and is {}", part(a), part(b)))
        }
        _ => Difference::here(format!("it was {} and is {}", shown(recorded), shown(now))),
    }
}

fn shown(json: &Json) -> String {
    format!("`{}`", diagnostics::clip_to(&json.to_string(), 80))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Num;

    #[test]
    fn differences_are_shown_with_their_place() {
        let a = json!({"kind": "model", "messages": [{"content": "one"}, {"content": "two"}]});
        let b = json!({"kind": "model", "messages": [{"content": "one"}, {"content": "2"}]});
        assert_eq!(difference(&a, &a), None);
        assert_eq!(difference(&a, &b).unwrap(), "at messages[2].content: it was `two` and is `2`");
        let long = |end: &str| json!({"text": format!("{}{end}", "x".repeat(60))});
        assert_eq!(
            difference(&long("a"), &long("b")).unwrap(),
            format!("at text: it was `…{0}a` and is `…{0}b`", "x".repeat(20))
        );
        assert_eq!(difference(&json!([1]), &json!([1, 2])).unwrap(), "there were 1 items and are 2");
        assert_eq!(difference(&json!({}), &json!({"t": 1})).unwrap(), "`t` is `1` and was not there");
    }

    #[test]
    fn responses_are_read_as_they_were_written() {
        let tool = Call::Tool {
            tool: ToolDecl::unknown(
                "t".into(),
                diagnostics::Span { file: diagnostics::FileId(0), start: 0, end: 0 },
            )
            .into(),
            args: vec![],
        };
        let data = Data::Pair(std::sync::Arc::new((Data::Num("1/3".parse::<Num>().unwrap()), Data::Null)));
        let labeled = |result| Response::LabeledTool(result, LabelSpec::TOP);
        let exact = LabelSpec::Exact(Data::list([Data::str("U")]));
        for r in [
            Response::Tool(Ok(data.clone())),
            Response::Tool(Err("no".into())),
            Response::ToolTimeout("no result within 1 s".into()),
            Response::Late(1),
            labeled(Ok(data)),
            labeled(Err("no".into())),
            Response::LabeledTool(Ok(Data::Null), exact),
        ] {
            let read = read_response(&tool, &response(&r).unwrap()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{r:?}"));
        }
        assert!(read_response(&tool, &json!({})).unwrap_err().contains("`data` or `error`"));
        let Call::Tool { tool, args } = tool else { panic!("a tool") };
        let asks = Call::Approve { tool, args, labels: Box::default(), control: core_ir::Label::BOTTOM };
        let args = vec![("n".into(), Data::Num("1/3".parse::<Num>().unwrap()))];
        for label in [LabelSpec::BOTTOM, LabelSpec::Exact(Data::list([Data::str("U")]))] {
            let edited = Response::Edited { args: args.clone(), label };
            let read = read_response(&asks, &response(&edited).unwrap()).unwrap();
            assert_eq!(format!("{read:?}"), format!("{edited:?}"));
        }
        for wrong in
            [json!({"edit": {"n": 1}}), json!({"edit": 1, "label": {"untrusted": false, "secret": false}})]
        {
            assert!(read_response(&asks, &wrong).is_err(), "{wrong}");
        }
        let model =
            Call::Model { messages: Messages::default(), params: None, tools: Vec::new(), attempt: 0 };
        let named = Candidate { name: "fast".into(), aliases: vec!["gpt".into(), "openai/gpt".into()] };
        let uncleared = Response::Uncleared(vec![named, Candidate::named("tiny")]);
        let read = read_response(&model, &response(&uncleared).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{uncleared:?}"));
        assert!(read_response(&model, &json!({"uncleared": [[]]})).is_err());
        let permanent = response(&Response::Permanent("no key".into())).unwrap();
        assert!(matches!(read_response(&model, &permanent), Ok(Response::Permanent(why)) if why == "no key"));
    }
}
