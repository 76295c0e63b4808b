//! Replies that are told while they arrive, from a model that writes slowly.
#![cfg(feature = "serve")]

use crate::serving::{JSON, Server};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// The reply of the model.
pub(crate) const REPLY: &str =
    r#"{"title": "The planted hobbit", "year": 1937, "tags": ["tale", "there and back again"]}"#;

const PROGRAM: &str = r#"tool vault(key: String) -> String reads secret { exec "echo" "{key}" }
agent reader { tools: [], model: "slow", prompt: "You extract." }
task extract(text: String) -> Obj{title: String, year: Number, tags: List[String]} by agent { prompt "What is it? {text}" }
pipeline open(text: String) -> Number {
    let book = run extract with { text: text } by reader;
    return book.year;
}
pipeline hidden(text: String) -> Number {
    let secret = vault(text);
    let book = run extract with { text: secret } by reader;
    return 1;
}
"#;

/// Answers each request with a stream of pieces, with pauses; `cut` ends each within an event after this many
/// pieces.
pub(crate) fn model(cut: Option<usize>, pause: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || answer(stream.unwrap(), cut, pause));
        }
    });
    format!("http://{address}/v1")
}

fn answer(mut stream: TcpStream, cut: Option<usize>, pause: Duration) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n = stream.read(&mut buffer).unwrap_or(0);
        bytes.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let length = |head: &str| {
            let lower = head.to_lowercase();
            lower.lines().find_map(|l| l.strip_prefix("content-length: ")?.trim().parse::<usize>().ok())
        };
        match text.split_once("\r\n\r\n") {
            Some((head, body)) if body.len() >= length(head).unwrap_or(0) => break,
            _ if n == 0 => return,
            _ => {}
        }
    }
    let _ =
        stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n");
    let chars: Vec<char> = REPLY.chars().collect();
    for (n, piece) in chars.chunks(6).enumerate() {
        let delta =
            json!({"choices": [{"index": 0, "delta": {"content": piece.iter().collect::<String>()}}]});
        let event = format!("data: {delta}\n\n");
        let sent = if cut == Some(n) { &event[..event.len() / 2] } else { &event };
        if stream.write_all(sent.as_bytes()).is_err() || cut == Some(n) {
            return;
        }
        std::thread::sleep(pause);
    }
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}});
    let _ = stream.write_all(format!("data: {end}\n\ndata: [DONE]\n\n").as_bytes());
}

fn folder(cut: Option<usize>) -> tempfile::TempDir {
    folder_with(model(cut, Duration::from_millis(5)))
}

pub(crate) fn folder_with(address: String) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("book.agent", PROGRAM);
    write(
        "entail.toml",
        &format!(
            "[models.slow]\nmodel = \"m\"\nbase_url = \"{address}\"\nretries = 1\nprice = {{ input = 0, output = 0 }}\n"
        ),
    );
    dir
}

/// The events of a run.
fn events(dir: &Path, pipeline: &str) -> Vec<Value> {
    let server = Server::start(dir, &["book.agent"], None);
    let headers = [JSON, ("accept", "text/event-stream")];
    let path = format!("/v1/pipelines/{pipeline}/runs");
    let (status, _, body) = server.raw("POST", &path, &headers, r#"{"text": "a book"}"#);
    assert_eq!(status, 200, "{body}");
    let data = body.lines().filter_map(|l| l.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|e| e["event"] == kind).collect()
}

#[test]
fn a_client_is_told_typed_values_as_they_arrive() {
    let events = events(folder(None).path(), "open");
    assert_eq!(events.last().unwrap()["result"], 1937, "{events:?}");
    let text: String = of(&events, "text").iter().map(|e| e["text"].as_str().unwrap()).collect();
    assert_eq!(text, REPLY);
    let partials = of(&events, "partial");
    let whole: Value = serde_json::from_str(REPLY).unwrap();
    assert!(partials.len() >= 2, "{events:?}");
    for partial in &partials {
        // The title grows; the year is there when it is whole.
        assert!(
            whole["title"]
                .as_str()
                .unwrap()
                .starts_with(partial["value"]["title"].as_str().unwrap_or_default())
        );
        assert!(partial["value"].get("year").is_none_or(|year| *year == 1937), "{partial}");
        assert!(partial["open"].is_array() || partial["value"] == whole, "{partial}");
    }
    // They stand between the question and its answer.
    let at = |kind: &str| events.iter().position(|e| e["event"] == kind).unwrap();
    assert!(at("asked") < at("partial") && at("partial") < at("answered"), "{events:?}");
}

/// A caller does not see in pieces what it may not see.
#[test]
fn a_reply_above_the_clearance_is_not_told_in_pieces() {
    let events = events(folder(None).path(), "hidden");
    let all = Value::from(events.clone()).to_string();
    assert!(of(&events, "text").is_empty() && of(&events, "partial").is_empty(), "{all}");
    assert!(!all.contains("planted") && !all.contains("1937"), "{all}");
    assert_eq!(events.last().unwrap()["event"], "result", "{all}");
}

/// The stream ends within an event: the reply is asked for again, and what was told of it begins over.
#[test]
fn a_stream_that_is_cut_off_is_an_error_and_no_reply() {
    let events = events(folder(Some(4)).path(), "open");
    assert_eq!(events.last().unwrap()["error"]["code"], "model", "{events:?}");
    assert_eq!(of(&events, "retry").len(), 1);
    for partial in of(&events, "partial") {
        assert!(partial["open"].is_array(), "{partial}");
    }
    assert_eq!(of(&events, "answered")[0]["status"], "failed");
}

/// The page of `entail ui` shows replies to runs of a server while they arrive, whoever their client is. A
/// client that may not see the reply, or did not ask for events, is told none of it.
#[test]
fn a_reply_to_a_run_of_a_server_is_there_for_the_page_while_it_arrives() {
    let dir = folder_with(model(None, Duration::from_millis(60)));
    let server = Server::start(dir.path(), &["--journal", "j", "book.agent"], None);
    let (told, asked) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ran = server.post("/v1/pipelines/hidden/runs", &json!({"text": "a book"}));
            told.send(ran).unwrap();
        });
        let live = dir.path().join("j/live");
        let arriving = |file: std::fs::DirEntry| {
            let text = std::fs::read_to_string(file.path()).ok()?;
            let reply = serde_json::from_str::<Value>(&text).ok()?["replies"][0].take();
            (reply["value"].is_object()).then_some(reply)
        };
        let mut seen = None;
        crate::serving::until(|| {
            let files = std::fs::read_dir(&live).into_iter().flatten().flatten();
            seen = files.filter(|f| f.path().extension().is_some_and(|e| e == "json")).find_map(arriving);
            seen.is_some()
        });
        let seen = seen.unwrap();
        assert_eq!(seen["label"], json!(["U", "S"]), "{seen}");
        assert!(REPLY.starts_with(seen["text"].as_str().unwrap()), "{seen}");
        assert_eq!(seen["purpose"], "extract");
        let (status, ran) = asked.recv().unwrap();
        assert_eq!((status, &ran["result"]), (200, &json!(1)), "{ran}");
        assert!(!ran.to_string().contains("planted"), "{ran}");
        crate::serving::until(|| std::fs::read_dir(&live).unwrap().count() == 0);
    });
}
