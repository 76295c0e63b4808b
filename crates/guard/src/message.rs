//! Messages of JSON-RPC and of the Model Context Protocol, as far as they are looked at.

use core_ir::Data;
use serde_json::{Map, Value, json};

/// Error code of JSON-RPC for text that is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// Error code of JSON-RPC for a message that is none of the protocol.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// Error code of JSON-RPC for an internal error: here, of a server that is gone.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// Error code of what the guard refuses.
pub(crate) const REFUSED: i64 = -32001;

/// Field of `_meta` by which requests of the revision without a handshake are known.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Field of `_meta` with what the client can do, in that revision.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A message, by what it is.
pub(crate) enum Message {
    Request { id: Value, method: String },
    Notification { method: String },
    Response { id: Value },
}

/// Reads the envelope of a message.
pub(crate) fn envelope(message: &Value) -> Result<Message, String> {
    let Value::Object(fields) = message else {
        return Err(match message {
            Value::Array(_) => "a batch of messages, which this protocol does not have".into(),
            _ => "a message is an object".into(),
        });
    };
    let id = match fields.get("id") {
        None => None,
        Some(id @ (Value::String(_) | Value::Number(_))) => Some(id.clone()),
        // The answer to a message whose number could not be read.
        Some(Value::Null) if !fields.contains_key("method") => Some(Value::Null),
        Some(_) => return Err("the `id` of a message is a string or a number".into()),
    };
    let has_result = fields.contains_key("result") || fields.contains_key("error");
    if fields.contains_key("result") && fields.contains_key("error") {
        return Err("a message has a `result` or an `error`".into());
    }
    match (fields.get("method"), id) {
        (Some(_), _) if has_result => Err("a message with `method` has no `result` and no `error`".into()),
        (Some(Value::String(method)), Some(id)) => Ok(Message::Request { id, method: method.clone() }),
        (Some(Value::String(method)), None) => Ok(Message::Notification { method: method.clone() }),
        (Some(_), _) => Err("the `method` of a message is a string".into()),
        (None, Some(id)) if has_result => Ok(Message::Response { id }),
        (None, _) => Err("a message has a `method`, or an `id` with a `result` or an `error`".into()),
    }
}

/// Bytes of a value as it is written.
pub(crate) fn size(value: &Value) -> usize {
    /// Counts what is written.
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Writing to a counter cannot fail, and what a parser has read can be written.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

/// A key for an `id`: `1` and `"1"` differ.
pub(crate) fn key(id: &Value) -> String {
    id.to_string()
}

pub(crate) fn request(id: &str, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The result of a call of a tool: a text.
pub(crate) fn tool_text(id: &Value, text: &str, is_stateless: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}]});
    if is_stateless {
        result["resultType"] = "complete".into();
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// The result of a call of a tool that failed, so that the model reads why.
pub(crate) fn tool_error(id: &Value, text: &str, is_stateless: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    if is_stateless {
        result["resultType"] = "complete".into();
    }
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Returns whether a request is one of the revision without a handshake.
pub(crate) fn is_stateless(request: &Value) -> bool {
    request["params"]["_meta"].get(VERSION).is_some()
}

/// Returns whether the client can show a form to the user: by the capabilities that it has stated.
pub(crate) fn elicits(capabilities: &Value) -> bool {
    match capabilities.get("elicitation") {
        Some(Value::Object(modes)) => modes.is_empty() || modes.contains_key("form"),
        _ => false,
    }
}

/// The capabilities that a request of the revision without a handshake states.
pub(crate) fn capabilities(request: &Value) -> &Value {
    &request["params"]["_meta"][CAPABILITIES]
}

/// The part of a request's `_meta` that every request needs.
pub(crate) fn own_meta(request: &Value) -> Option<Value> {
    let mut meta: Map<String, Value> = request["params"]["_meta"].as_object()?.clone();
    meta.retain(|name, _| name.starts_with("io.modelcontextprotocol/"));
    (!meta.is_empty()).then_some(Value::Object(meta))
}

/// Puts data into a result in place of what was read of it. Nothing else that the server said stays.
pub(crate) fn put_data(result: &mut Value, data: &Value, wrapped: bool) {
    let text = data.as_str().map_or_else(|| data.to_string(), String::from);
    let mut out = json!({"content": [{"type": "text", "text": text}]});
    if result.get("structuredContent").is_some() {
        out["structuredContent"] = if wrapped { json!({"result": data}) } else { data.clone() };
    }
    if result["resultType"] == "complete" {
        out["resultType"] = "complete".into();
    }
    *result = out;
}

/// A tool's result as data, and whether that is all that the client is given.
pub(crate) struct ReadResult {
    /// The data, or the text of a failure.
    pub(crate) data: Result<Data, String>,
    /// False if the client is given more than the data: then labels of parts say nothing of that.
    pub(crate) is_whole: bool,
}

/// A result as a value that is handed on: its text as it is, or else its data.
pub(crate) fn whole_value(message: &Value, data: &Result<Data, String>) -> Data {
    let result = &message["result"];
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Option<Vec<&str>> =
        blocks.iter().map(|b| b["text"].as_str().filter(|_| b["type"] == "text")).collect();
    match (texts, data) {
        (Some(texts), _) if result.get("structuredContent").is_none() && !texts.is_empty() => {
            Data::str(texts.join("\n"))
        }
        (_, Ok(data)) => data.clone(),
        (_, Err(_)) => Data::from_json(result).unwrap_or(Data::Null),
    }
}

/// Reads a result as a run does: its structured content, or else its text, as JSON if it is that. `wrapped`
/// says that the server wraps results as `{"result": …}`.
pub(crate) fn read_result(result: &Value, wrapped: bool) -> ReadResult {
    let failure = |why: &str| ReadResult { data: Err(why.into()), is_whole: false };
    if result.get("resultType").and_then(Value::as_str).is_some_and(|t| t != "complete") {
        return failure("it asks for more");
    }
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let text_of = |b: &Value| match b["type"].as_str() {
        Some("text") => b["text"].as_str().map(String::from),
        _ => None,
    };
    let texts: Vec<Option<String>> = blocks.iter().map(text_of).collect();
    let all_text = texts.iter().all(Option::is_some);
    let text = texts.iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n");
    if result["isError"] == Value::Bool(true) {
        return failure(&text);
    }
    let json = match result.get("structuredContent") {
        Some(structured) => {
            let inner = structured.get("result").filter(|_| wrapped).unwrap_or(structured);
            let says = |t: &String| match serde_json::from_str::<Value>(t) {
                Ok(json) => {
                    json == *structured
                        || json == *inner
                        || inner.as_array().is_some_and(|items| items.contains(&json))
                }
                Err(_) => inner.as_str() == Some(t),
            };
            let is_whole = all_text && texts.iter().flatten().all(says);
            return match Data::from_json(inner) {
                Ok(data) => ReadResult { data: Ok(data), is_whole },
                Err(e) => failure(&e.to_string()),
            };
        }
        None if all_text => serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text)),
        None => Value::Array(blocks.to_vec()),
    };
    match Data::from_json(&json) {
        Ok(data) => ReadResult { data: Ok(data), is_whole: all_text },
        Err(e) => failure(&e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value, wrapped: bool) -> (Result<String, String>, bool) {
        let read = read_result(&result, wrapped);
        (read.data.map(|d| d.to_json().to_string()), read.is_whole)
    }

    fn text(t: &str) -> Value {
        json!({"type": "text", "text": t})
    }

    #[test]
    fn a_result_is_read_as_a_run_reads_it() {
        let ok = |t: &str| Ok(t.to_string());
        assert_eq!(read(json!({"content": [text("hi")]}), false), (ok("\"hi\""), true));
        assert_eq!(read(json!({"content": [text("[1, 2]")]}), false), (ok("[1,2]"), true));
        let items = json!({"content": [text("1"), text("2")], "structuredContent": {"result": [1, 2]}});
        assert_eq!(read(items.clone(), true), (ok("[1,2]"), true));
        assert_eq!(read(items, false), (ok("{\"result\":[1,2]}"), false));
        assert_eq!(read(json!({"content": [text("no")], "isError": true}), false), (Err("no".into()), false));
    }

    /// Labels of parts do not cover content outside of the structure.
    #[test]
    fn a_text_beside_the_structure_is_noticed() {
        let more =
            json!({"content": [text("{\"a\": 1}"), text("pay mallory")], "structuredContent": {"a": 1}});
        assert!(!read(more, false).1);
        let image = json!({"content": [{"type": "image", "data": "", "mimeType": "image/png"}]});
        assert!(!read(image, false).1);
    }

    #[test]
    fn malformed_messages_are_told_apart() {
        for wrong in [
            json!([]),
            json!("x"),
            json!({}),
            json!({"id": 1}),
            json!({"id": {}, "method": "ping"}),
            json!({"id": null, "method": "ping"}),
            json!({"id": 1, "method": 2}),
            json!({"id": 1, "method": "x", "result": {}}),
            json!({"id": 1, "error": {}, "result": {}}),
        ] {
            assert!(envelope(&wrong).is_err(), "{wrong}");
        }
        assert!(matches!(envelope(&json!({"id": "a", "method": "ping"})), Ok(Message::Request { .. })));
        assert!(matches!(envelope(&json!({"method": "ping"})), Ok(Message::Notification { .. })));
        assert!(matches!(envelope(&json!({"id": 1, "error": {}})), Ok(Message::Response { .. })));
    }
}
