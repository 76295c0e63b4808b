//! Converts the result of a server's tool to data of its declared type.

use core_ir::{Data, Stated, Type};
use diagnostics::clip_to as clip;
use rmcp::model::{
    CallToolResult, ContentBlock, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents, Role,
};
use serde::Serialize;
use serde_json::{Value as Json, json};

/// Reads a result: its structured content, or else its text. A failure of the tool is an error.
///
/// A result that servers had to wrap as `{"result": …}`, because structured content was an object in older
/// revisions, is unwrapped where the type asks for what is inside.
pub(super) fn read(result: &CallToolResult, ty: &Type, most: usize) -> Result<Data, String> {
    let text = text(&result.content);
    if text.len() > most {
        return Err(format!("its result has more than {most} bytes"));
    }
    if result.is_error == Some(true) {
        return Err(match text.trim() {
            "" => "it failed without saying why".into(),
            said => format!("it failed: `{}`", clip(said, 500)),
        });
    }
    match &result.structured_content {
        Some(json) if !matches!(ty.unrefined(), Type::Str) => read_structured(json, ty, most),
        // Texts are for people and may say more; but a text inside of the structure is exactly what is
        // declared.
        Some(Json::String(s)) => Ok(Data::str(s.as_str())),
        Some(json) => match json.get("result") {
            Some(Json::String(s)) => Ok(Data::str(s.as_str())),
            _ if !text.is_empty() => Ok(Data::str(text)),
            _ => Ok(Data::str(json.to_string())),
        },
        None => read_blocks(&result.content, text, ty),
    }
}

/// Reads a resource: its text. Binary data has only a result of any type, as the protocol has it.
pub(super) fn read_resource(read: &ReadResourceResult, ty: &Type, most: usize) -> Result<Data, String> {
    let is_binary = |c: &ResourceContents| !matches!(c, ResourceContents::TextResourceContents { .. });
    if read.contents.iter().any(is_binary) {
        return match ty.unrefined() {
            Type::Dyn => read_structured(&as_json(&read.contents)?, ty, most),
            ty => Err(format!("it is binary data where {ty} is expected")),
        };
    }
    let texts = read.contents.iter().filter_map(|c| match c {
        ResourceContents::TextResourceContents { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.len() > most {
        return Err(format!("it has more than {most} bytes"));
    }
    read_blocks(&[], text, ty)
}

/// Reads a prompt. As a text it is the text of its message, or of all of them with their roles. Otherwise it
/// is a list of `{role, content}`.
pub(super) fn read_prompt(got: &GetPromptResult, ty: &Type, most: usize) -> Result<Data, String> {
    let role = |message: &PromptMessage| match message.role {
        Role::Assistant => "assistant",
        _ => "user",
    };
    if matches!(ty.unrefined(), Type::Str) {
        let texts = got.messages.iter().map(|message| match &message.content {
            ContentBlock::Text(t) => Ok((role(message), t.text.as_str())),
            _ => Err("it has more than text where Str is expected".to_string()),
        });
        let text = match &texts.collect::<Result<Vec<_>, _>>()?[..] {
            [(_, text)] => text.to_string(),
            all => {
                let parts = all.iter().map(|(role, text)| format!("{role}: {text}"));
                parts.collect::<Vec<_>>().join("\n\n")
            }
        };
        return if text.len() > most {
            Err(format!("it has more than {most} bytes"))
        } else {
            Ok(Data::str(text))
        };
    }
    let messages = got.messages.iter().map(|message| {
        let content = match &message.content {
            ContentBlock::Text(t) => Json::String(t.text.clone()),
            other => as_json(other)?,
        };
        Ok(json!({ "role": role(message), "content": content }))
    });
    read_structured(&messages.collect::<Result<Json, String>>()?, ty, most)
}

fn as_json(value: &impl Serialize) -> Result<Json, String> {
    serde_json::to_value(value).map_err(|e| format!("its result: {e}"))
}

/// The label that the server says its result has, in `_meta.ifc`.
pub(super) fn label(result: &CallToolResult) -> Option<Stated> {
    Some(super::stated_label(result.meta.as_ref()?.0.get("ifc")?))
}

fn read_structured(json: &Json, ty: &Type, most: usize) -> Result<Data, String> {
    if json.to_string().len() > most {
        return Err(format!("its result has more than {most} bytes"));
    }
    let direct = decode(json, ty);
    if direct.is_err()
        && let Json::Object(fields) = json
        && fields.len() == 1
        && let Some(inner) = fields.get("result")
        && let Ok(data) = decode(inner, ty)
    {
        return Ok(data);
    }
    direct.map_err(|why| format!("its result: {why}"))
}

fn decode(json: &Json, ty: &Type) -> Result<Data, String> {
    let data = ty.read(json).map_err(|e| e.to_string())?;
    match ty.check(&data) {
        Ok(()) => Ok(data),
        Err((path, why)) if path == "$" => Err(why),
        Err((path, why)) => Err(format!("{path}: {why}")),
    }
}

fn read_blocks(blocks: &[ContentBlock], text: String, ty: &Type) -> Result<Data, String> {
    let other = blocks.iter().find_map(|b| match b {
        ContentBlock::Image(_) => Some("an image"),
        ContentBlock::Audio(_) => Some("audio"),
        _ => None,
    });
    if let Some(other) = other {
        // Only a result of any type can hold it, as the protocol has it.
        return match ty.unrefined() {
            Type::Dyn => {
                let json = serde_json::to_value(blocks).map_err(|e| format!("its result: {e}"))?;
                Data::from_json(&json).map_err(|e| format!("its result: {e}"))
            }
            ty => Err(format!("its result is {other} where {ty} is expected")),
        };
    }
    if matches!(ty.unrefined(), Type::Str) {
        return Ok(Data::str(text));
    }
    match serde_json::from_str::<Json>(&text) {
        Ok(json) => decode(&json, ty).map_err(|why| format!("its result: {why}")),
        Err(_) if matches!(ty.unrefined(), Type::Dyn) => Ok(Data::str(text)),
        Err(_) if text.is_empty() && matches!(ty.unrefined(), Type::Null | Type::Option(_)) => Ok(Data::Null),
        Err(_) if text.is_empty() => Err(format!("its result is empty where {ty} is expected")),
        Err(e) => {
            Err(format!("its result is text where {ty} is expected, not JSON ({e}): `{}`", clip(&text, 300)))
        }
    }
}

/// All that is text, one block a line.
fn text(blocks: &[ContentBlock]) -> String {
    let part = |b: &ContentBlock| match b {
        ContentBlock::Text(t) => Some(t.text.clone()),
        ContentBlock::Resource(r) => match &r.resource {
            ResourceContents::TextResourceContents { text, .. } => Some(text.clone()),
            _ => None,
        },
        ContentBlock::ResourceLink(link) => Some(link.uri.clone()),
        _ => None,
    };
    blocks.iter().filter_map(part).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use core_ir::Name;
    use core_ir::Num;

    fn read_as(result: Json, ty: &Type) -> Result<Data, String> {
        read(&serde_json::from_value(result).unwrap(), ty, 200)
    }

    fn text(t: &str) -> Json {
        json!({"content": [{"type": "text", "text": t}]})
    }

    #[test]
    fn structure_goes_before_text() {
        let both = json!({"content": [{"type": "text", "text": "4"}], "structuredContent": {"n": 5}});
        let record = Type::record([("n".into(), Type::Num)]);
        assert_eq!(read_as(both.clone(), &record), Ok(Data::record([("n".into(), Data::Num(Num::from(5)))])));
        assert_eq!(read_as(both.clone(), &Type::Str), Ok(Data::str("4")));
        assert_eq!(read_as(both, &Type::Num).unwrap_err(), "its result: expected a number, found a record");
        let wrapped = json!({"content": [], "structuredContent": {"result": [1]}});
        let one = Data::list([Data::Num(Num::from(1))]);
        assert_eq!(read_as(wrapped.clone(), &Type::list(Type::Num)), Ok(one.clone()));
        assert_eq!(read_as(wrapped, &Type::Dyn), Ok(Data::record([("result".into(), one)])));
    }

    #[test]
    fn text_is_read_as_the_type_says() {
        assert_eq!(read_as(text("7"), &Type::Num), Ok(Data::Num(Num::from(7))));
        assert_eq!(read_as(text("7"), &Type::Str), Ok(Data::str("7")));
        assert_eq!(read_as(text("seven"), &Type::Dyn), Ok(Data::str("seven")));
        assert_eq!(read_as(json!({"content": []}), &Type::option(Type::Num)), Ok(Data::Null));
        let e = read_as(text("seven"), &Type::Num).unwrap_err();
        assert!(e.contains("text where Num is expected") && e.contains("`seven`"), "{e}");
        assert!(read_as(text(""), &Type::Num).unwrap_err().contains("empty"));
    }

    #[test]
    fn labels_of_servers_are_kept() {
        let read = |ifc: Json| {
            let result = json!({"content": [], "_meta": {"ifc": ifc}});
            label(&serde_json::from_value(result).unwrap())
        };
        let list = |of: &[&str]| of.iter().map(|n| Name::from(*n)).collect::<Vec<_>>();
        let said = |sources: Option<&[&str]>, readers: Option<&[&str]>| {
            Some(Stated { sources: sources.map(list), readers: readers.map(list) })
        };
        assert_eq!(read(json!({"integrity": "untrusted", "confidentiality": ["public"]})), said(None, None));
        assert_eq!(
            read(json!({"integrity": "trusted", "confidentiality": ["alice", "bob"]})),
            said(Some(&[]), Some(&["alice", "bob"]))
        );
        assert_eq!(
            read(json!({"integrity": ["web"], "confidentiality": "public"})),
            said(Some(&["web"]), None)
        );
        // An empty name names no one.
        assert_eq!(read(json!({"integrity": "trusted", "confidentiality": []})), said(Some(&[]), Some(&[])));
        assert_eq!(read(json!({"integrity": ["web", 7], "confidentiality": "team"})), said(None, Some(&[])));
        assert_eq!(
            read(json!({"confidentiality": ["alice", {"team": 1}]})),
            said(Some(&[]), Some(&["alice"]))
        );
        assert_eq!(read(json!("whatever")), said(None, Some(&[])));
        assert_eq!(label(&serde_json::from_value(text("x")).unwrap()), None);
    }

    #[test]
    fn resources_and_prompts_are_read_as_the_type_says() {
        let resource = |contents: Json, ty: &Type| {
            read_resource(&serde_json::from_value(json!({ "contents": contents })).unwrap(), ty, 100)
        };
        let text = |t: &str| json!({"uri": "a:b", "text": t});
        assert_eq!(resource(json!([text("1"), text("2")]), &Type::Str), Ok(Data::str("1\n2")));
        assert_eq!(
            resource(json!([text("[1]")]), &Type::list(Type::Num)),
            Ok(Data::list([Data::Num(Num::from(1))]))
        );
        let long = resource(json!([text(&"x".repeat(101))]), &Type::Str);
        assert_eq!(long, Err("it has more than 100 bytes".into()));
        let blob = json!([{"uri": "a:b", "blob": "AA=="}]);
        assert_eq!(resource(blob.clone(), &Type::Str), Err("it is binary data where Str is expected".into()));
        assert!(resource(blob, &Type::Dyn).is_ok_and(|d| d.to_json().to_string().contains("AA==")));
        let prompt = |messages: Json, ty: &Type| {
            read_prompt(&serde_json::from_value(json!({ "messages": messages })).unwrap(), ty, 100)
        };
        let said = |role: &str, t: &str| json!({"role": role, "content": {"type": "text", "text": t}});
        assert_eq!(prompt(json!([said("user", "hi")]), &Type::Str), Ok(Data::str("hi")));
        let both = json!([said("user", "hi"), said("assistant", "yes?")]);
        assert_eq!(prompt(both.clone(), &Type::Str), Ok(Data::str("user: hi\n\nassistant: yes?")));
        let message = Type::record([("role".into(), Type::Str), ("content".into(), Type::Str)]);
        let list = prompt(both, &Type::list(message)).unwrap().to_json().to_string();
        assert!(list.contains("yes?") && list.contains("assistant"), "{list}");
        let image =
            json!([{"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}}]);
        assert_eq!(prompt(image, &Type::Str), Err("it has more than text where Str is expected".into()));
        let long = json!([said("user", &"x".repeat(101))]);
        assert!(prompt(long, &Type::Str).is_err());
    }

    #[test]
    fn failures_sizes_and_pictures() {
        let failed = json!({"content": [{"type": "text", "text": "no such city"}], "isError": true});
        assert_eq!(read_as(failed, &Type::Str).unwrap_err(), "it failed: `no such city`");
        assert!(read_as(text(&"x".repeat(201)), &Type::Str).unwrap_err().contains("more than 200 bytes"));
        let long = json!({"content": [], "structuredContent": {"x": "y".repeat(200)}});
        assert!(read_as(long, &Type::Dyn).unwrap_err().contains("more than 200 bytes"));
        let image = json!({"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]});
        assert_eq!(
            read_as(image.clone(), &Type::Str).unwrap_err(),
            "its result is an image where Str is expected"
        );
        assert!(read_as(image, &Type::Dyn).is_ok());
    }
}
