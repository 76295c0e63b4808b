//! A client that speaks the protocol over streams, and one that speaks nonsense.

use lsp::{Server, serve};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::{BufReader, Cursor};

const URI: &str = "file:///nowhere/p.agent";

/// Everything that the server says to these messages.
fn session(messages: &[Value]) -> Vec<Value> {
    let mut input = Vec::new();
    for m in messages {
        let text = m.to_string();
        input.extend(format!("Content-Length: {}\r\n\r\n{text}", text.len()).bytes());
    }
    let mut output = Vec::new();
    serve(Server::new(), &mut BufReader::new(Cursor::new(input)), &mut output).unwrap();
    let mut said = Vec::new();
    let mut rest = std::str::from_utf8(&output).unwrap();
    while let Some((head, body)) = rest.split_once("\r\n\r\n") {
        let length: usize = head.strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        said.push(serde_json::from_str(&body[..length]).unwrap());
        rest = &body[length..];
    }
    said
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn notify(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn open(uri: &str, text: &str) -> Value {
    notify(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": text}}),
    )
}

/// The answer to one question about a text, at the place of the `|` in it.
fn ask(method: &str, marked: &str, more: Value) -> Value {
    let at = marked.find('|').unwrap_or(0);
    let text = marked.replacen('|', "", 1);
    let line = text[..at].matches('\n').count();
    let column = text[..at].rsplit('\n').next().unwrap().encode_utf16().count();
    let position = json!({"line": line, "character": column});
    let mut params = json!({"textDocument": {"uri": URI}, "position": position, "range": {"start": position, "end": position}});
    if let (Some(p), Value::Object(more)) = (params.as_object_mut(), more) {
        p.extend(more);
    }
    let said = session(&[request(1, "initialize", json!({})), open(URI, &text), request(2, method, params)]);
    let answer = said.into_iter().find(|m| m["id"] == 2).unwrap();
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

const PROGRAM: &str = "enum Tone { warm, cold }\n\
    agent writer { tools: [look] }\n\
    tool look(q: String) -> String reads {}\n\
    task tone(text: String) -> Tone by agent { prompt \"The tone of {text}\" }\n\
    pipeline main(text: String) -> Tone {\n    let t = tone(text) by writer retries 1;\n    return t;\n}\n";

fn marked(place: &str) -> String {
    let plain = place.replacen('|', "", 1);
    assert!(PROGRAM.contains(&plain), "{plain}");
    PROGRAM.replacen(&plain, place, 1)
}

#[test]
fn findings_follow_what_is_typed() {
    let change = |range: Value, text: &str| {
        let change = json!([{"range": range, "text": text}]);
        notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI, "version": 2}, "contentChanges": change}),
        )
    };
    let said = session(&[
        request(1, "initialize", json!({})),
        notify("initialized", json!({})),
        open(URI, "pipeline p() -> String { return \"😀\" + x; }"),
        // Behind the emoji, which is two units long.
        change(json!({"start": {"line": 0, "character": 39}, "end": {"line": 0, "character": 40}}), "\"y\""),
        notify("textDocument/didClose", json!({"textDocument": {"uri": URI}})),
        request(2, "shutdown", Value::Null),
        notify("exit", Value::Null),
    ]);
    assert_eq!(said.len(), 5, "{said:#?}");
    assert_eq!(said[0]["result"]["capabilities"]["textDocumentSync"]["change"], 2);
    let found = &said[1]["params"]["diagnostics"];
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("A030"), &json!(1)), "{found}");
    let place = json!({"start": {"line": 0, "character": 39}, "end": {"line": 0, "character": 40}});
    assert_eq!(found[0]["range"], place);
    assert_eq!(said[2]["params"]["diagnostics"], json!([]), "{}", said[2]);
    assert_eq!(said[3]["params"]["diagnostics"], json!([]));
    assert_eq!(said[4]["result"], Value::Null);
}

#[test]
fn terms_and_configurations_are_checked_as_well() {
    let found = |uri: &str, text: &str| {
        let said = session(&[request(1, "initialize", json!({})), open(uri, text)]);
        said[1]["params"]["diagnostics"].clone()
    };
    assert!(found("file:///a/t.lam", "\\x. y")[0]["message"].as_str().unwrap().contains('y'));
    let agent = "agentId: helper\ntype: simple\nmodel: {name: small}\nsystemPrompt: \"\"\n";
    assert_eq!(found("file:///a/agent.yaml", agent)[0]["code"], "L001");
    assert_eq!(found("file:///a/other.yaml", "a: 1\n"), json!([]));
    assert!(found("file:///a/broken.yaml", "a: [1\n").as_array().unwrap().len() < 3);
}

#[test]
fn repairs_of_findings_are_offered() {
    let actions = ask(
        "textDocument/codeAction",
        &PROGRAM.replace("by writer", "by |writre"),
        json!({"context": {"diagnostics": []}}),
    );
    let action = &actions[0];
    assert_eq!(action["kind"], "quickfix");
    assert_eq!(action["edit"]["changes"][URI][0]["newText"], "writer", "{actions}");
    assert_eq!(action["diagnostics"][0]["code"], "A033");
}

#[test]
fn names_lead_to_their_declarations_and_uses() {
    let start = |v: &Value| {
        (v["range"]["start"]["line"].as_u64().unwrap(), v["range"]["start"]["character"].as_u64().unwrap())
    };
    assert_eq!(start(&ask("textDocument/definition", &marked("by wri|ter"), json!({}))), (1, 6));
    assert_eq!(start(&ask("textDocument/definition", &marked("let t = to|ne"), json!({}))), (3, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("tools: [|look"), json!({}))), (2, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("-> Ton|e by"), json!({}))), (0, 5));
    assert_eq!(start(&ask("textDocument/definition", &marked("return |t;"), json!({}))), (5, 8));
    // A variable of one name in another declaration is another variable.
    let uses = ask(
        "textDocument/references",
        &PROGRAM.replace("tone(text) by", "tone(te|xt) by"),
        json!({"context": {"includeDeclaration": true}}),
    );
    assert_eq!(uses.as_array().unwrap().iter().map(|u| start(u).0).collect::<Vec<_>>(), [4, 5], "{uses}");
}

#[test]
fn renaming_changes_every_place_of_a_name() {
    let edit = ask("textDocument/rename", &marked("agent wri|ter"), json!({"newName": "author"}));
    let edits = edit["changes"][URI].as_array().unwrap();
    assert_eq!(edits.len(), 2, "{edit}");
    assert!(edits.iter().all(|e| e["newText"] == "author"));
}

#[test]
fn what_a_name_means_is_shown() {
    let text = |v: Value| v["contents"]["value"].as_str().unwrap_or("").to_string();
    let hover = text(ask("textDocument/hover", &marked("let t = to|ne"), json!({})));
    assert!(hover.contains("task tone(text: String) -> Tone by agent"), "{hover}");
    let hover = text(ask("textDocument/hover", &marked("pipeline ma|in"), json!({})));
    assert!(hover.contains("model calls"), "{hover}");
    let hover = text(ask("textDocument/hover", &marked("retr|ies 1"), json!({})));
    assert!(hover.contains("failed call"), "{hover}");
    let hints = ask("textDocument/inlayHint", PROGRAM, json!({}));
    assert_eq!(hints[0]["position"]["line"], 4, "{hints}");
    let symbols = ask("textDocument/documentSymbol", PROGRAM, json!({}));
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Tone", "writer", "look", "tone", "main"]);
}

#[test]
fn what_fits_is_completed() {
    let labels = |v: Value| {
        v.as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(labels(ask("textDocument/completion", &marked("by wri|ter"), json!({}))), ["writer"]);
    assert_eq!(labels(ask("textDocument/completion", &marked("tools: [lo|ok"), json!({}))), ["look"]);
    let types = labels(ask("textDocument/completion", &marked("-> To|ne {"), json!({})));
    assert!(types.contains(&"Tone".into()) && types.contains(&"Option".into()), "{types:?}");
    let all = labels(ask("textDocument/completion", &marked("return |t;"), json!({})));
    assert!(
        ["t", "text", "tone", "length", "assert"].iter().all(|w| all.contains(&(*w).to_string())),
        "{all:?}"
    );
}

#[test]
fn formatting_and_tokens() {
    let edits = ask("textDocument/formatting", "pipeline p( x:String )->String{return x ;}", json!({}));
    assert_eq!(edits[0]["newText"], "pipeline p(x: String) -> String {\n    return x;\n}\n");
    let data = ask(
        "textDocument/semanticTokens/full",
        "-- why\nenum A { b }\ntask t(x: A) -> A {}\n",
        json!({}),
    )["data"]
        .clone();
    // A comment; `A`; `t`, `x`, `A`, `A`: line, column, length, kind, whether it is declared, each from the one before.
    let expected =
        json!([0, 0, 6, 4, 0, 1, 5, 1, 0, 1, 1, 5, 1, 2, 1, 0, 2, 1, 3, 1, 0, 3, 1, 0, 0, 0, 6, 1, 0, 0]);
    assert_eq!(data, expected);
}

#[test]
fn requests_are_answered_once_whatever_they_are() {
    let said = session(&[
        request(1, "textDocument/hover", json!({})),
        request(2, "initialize", json!({})),
        request(3, "nobody/knows", json!({})),
        request(4, "textDocument/hover", json!({"textDocument": {"uri": "file:///not/open"}})),
        notify("nobody/knows", json!({})),
        json!(17),
        json!({"id": 5, "result": null}),
    ]);
    let codes: Vec<i64> = said.iter().map(|m| m["error"]["code"].as_i64().unwrap_or(0)).collect();
    assert_eq!(codes, [-32002, 0, -32601, -32602, -32600], "{said:#?}");
}

#[test]
fn broken_streams_end_with_an_error_and_broken_json_with_an_answer() {
    let mut out = Vec::new();
    assert!(serve(Server::new(), &mut BufReader::new(&b"Hello: 1\r\n\r\n{}"[..]), &mut out).is_err());
    assert!(
        serve(Server::new(), &mut BufReader::new(&b"Content-Length: 99999999999\r\n\r\n{}"[..]), &mut out)
            .is_err()
    );
    // A stream that ends in the middle is a client that is gone.
    assert!(
        !serve(Server::new(), &mut BufReader::new(&b"Content-Length: 9\r\n\r\n{}"[..]), &mut out).unwrap()
    );
    let mut out = Vec::new();
    serve(Server::new(), &mut BufReader::new(&b"Content-Length: 2\r\n\r\n{]"[..]), &mut out).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("-32700"));
}

fn methods() -> impl Strategy<Value = String> {
    let all = [
        "initialize",
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/codeAction",
        "textDocument/completion",
        "textDocument/definition",
        "textDocument/documentHighlight",
        "textDocument/documentSymbol",
        "textDocument/formatting",
        "textDocument/hover",
        "textDocument/inlayHint",
        "textDocument/prepareRename",
        "textDocument/references",
        "textDocument/rename",
        "textDocument/semanticTokens/full",
        "textDocument/didClose",
        "textDocument/didSave",
        "$/x",
    ];
    prop::sample::select(all.to_vec()).prop_map(String::from)
}

fn params() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        (0u64..12).prop_map(Value::from),
        Just(json!(-1)),
        Just(json!(1e99)),
        Just(json!(u64::MAX)),
        Just(Value::Null)
    ];
    let position = (number.clone(), number).prop_map(|(l, c)| json!({"line": l, "character": c}));
    let text = prop_oneof![
        Just(PROGRAM.to_string()),
        "[a-z😀{}();=.\" \\n]{0,80}",
        (0usize..PROGRAM.len()).prop_map(|n| PROGRAM.get(..n).unwrap_or("").to_string()),
    ];
    let uri =
        prop::sample::select(vec!["file:///a.agent", "file:///a.lam", "file:///a.yaml", "x", "file://%"]);
    (position.clone(), position, text, uri, any::<bool>()).prop_map(|(a, b, text, uri, whole)| {
        let range = json!({"start": a, "end": b});
        let change = if whole { json!({"text": text}) } else { json!({"text": text, "range": range}) };
        json!({
            "textDocument": {"uri": uri, "version": 3, "text": text}, "position": a, "range": range,
            "contentChanges": [change, 4], "newName": text, "context": {},
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is said, each request gets one answer with its number, and the server goes on.
    #[test]
    fn a_client_that_speaks_nonsense_is_survived(
        said in prop::collection::vec((methods(), params(), any::<bool>()), 1..14),
    ) {
        let mut server = Server::new();
        server.handle(&request(0, "initialize", json!({})));
        for (i, (method, params, asks)) in said.into_iter().enumerate() {
            let id = i as u32 + 1;
            let answers = match asks {
                true => server.handle(&request(id, &method, params)),
                false => server.handle(&notify(&method, params)),
            };
            let own: Vec<_> = answers.iter().filter(|a| a.get("id").is_some()).collect();
            prop_assert_eq!(own.len(), usize::from(asks));
            prop_assert!(own.iter().all(|a| a["id"] == id && (a.get("result").is_some() != a.get("error").is_some())));
        }
    }
}
