//! `entail guard --http`: each client has a session of its own, and nobody is heard without the token.

use super::guard_list::{GUARDED, approve, folder};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const TOKEN: &str = "token-4711";

/// A guard that listens.
struct Front {
    guard: Child,
    address: String,
}

impl Front {
    fn start(dir: &Path) -> Front {
        let mut guard = Command::new(env!("CARGO_BIN_EXE_entail"))
            .args(GUARDED)
            .args(["--http", "127.0.0.1:0"])
            .current_dir(dir)
            .env("ENTAIL_GUARD_TOKEN", TOKEN)
            .env("XDG_STATE_HOME", dir.join("state"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(guard.stderr.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains("http://")).unwrap();
        // What is told later must not stop the guard.
        std::thread::spawn(move || lines.for_each(drop));
        let address = line.split("http://").nth(1).unwrap().split("/mcp").next().unwrap().to_string();
        Front { guard, address }
    }

    /// Sends a request; gives the status, the session, and the messages of the answer.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, Option<String>, Vec<Value>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nconnection: close\r\n");
        let host = ("host", self.address.as_str());
        for (name, value) in headers.iter().chain(&[host]) {
            if *name != "host" || headers.iter().all(|(n, _)| *n != "host") || (*name, *value) != host {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        let session = head.lines().find_map(|l| l.strip_prefix("mcp-session-id: ")).map(String::from);
        let data = |line: &str| serde_json::from_str(line.strip_prefix("data: ").unwrap_or(line)).ok();
        (status, session, body.lines().filter_map(data).filter(Value::is_object).collect())
    }

    fn post(&self, session: Option<&str>, message: &Value) -> (u16, Option<String>, Vec<Value>) {
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![("authorization", &*bearer), ("content-type", "application/json")];
        headers.extend(session.map(|session| ("mcp-session-id", session)));
        self.send("POST", &headers, &message.to_string())
    }

    /// Begins a session.
    fn begin(&self) -> String {
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        let (status, session, said) = self.post(None, &request(0, "initialize", hello));
        assert_eq!((status, said[0]["id"].as_u64()), (200, Some(0)), "{said:?}");
        let session = session.unwrap();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.post(Some(&session), &ready).0, 202);
        session
    }

    fn call(&self, session: &str, id: u64, tool: &str, args: Value) -> Value {
        let (status, _, said) =
            self.post(Some(session), &request(id, "tools/call", json!({"name": tool, "arguments": args})));
        assert_eq!(status, 200, "{said:?}");
        said.into_iter().find(|m| m["id"] == id).unwrap()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[test]
fn each_client_has_a_session_of_its_own() {
    let dir = folder(&[("desk", "desk")]);
    approve(dir.path());
    let front = Front::start(dir.path());
    let (reads, sends) = (front.begin(), front.begin());
    assert_ne!(reads, sends);
    let mail = json!({"to": "bob", "body": "x"});
    assert!(front.call(&reads, 1, "desk__fetch", json!({"url": "u"}))["result"]["isError"].is_null());
    let refused = front.call(&reads, 2, "desk__send", mail.clone());
    assert!(refused.to_string().contains("since calls of `desk__fetch`"), "{refused}");
    // The other client has read nothing.
    let sent = front.call(&sends, 1, "desk__send", mail.clone());
    assert!(sent["result"]["isError"].is_null(), "{sent}");
    // A session that has ended is none, and the others stay.
    let bearer = format!("Bearer {TOKEN}");
    let end = [("authorization", &*bearer), ("mcp-session-id", &*reads)];
    assert_eq!(front.send("DELETE", &end, "").0, 204);
    assert_eq!(front.post(Some(&reads), &request(3, "tools/list", json!({}))).0, 404);
    assert!(front.call(&sends, 2, "desk__send", mail)["result"]["isError"].is_null());
}

#[test]
fn an_address_that_is_taken_is_refused_with_a_remedy() {
    let dir = folder(&[("a", "usual")]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let out = Command::new(env!("CARGO_BIN_EXE_entail"))
        .args(GUARDED)
        .args(["--http", &address])
        .current_dir(dir.path())
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains(&address) && said.contains("help: choose another address"), "{said}");
    assert!(!said.contains("os error"), "{said}");
}

#[test]
fn nobody_else_is_heard() {
    let dir = folder(&[("desk", "desk")]);
    let front = Front::start(dir.path());
    let session = front.begin();
    let list = request(1, "tools/list", json!({})).to_string();
    let bearer = format!("Bearer {TOKEN}");
    let own = [("authorization", &*bearer), ("mcp-session-id", &*session)];
    assert_eq!(front.send("POST", &own, &list).0, 200);
    let with = |name: &'static str, value: &'static str| {
        let kept = own.iter().filter(|(n, _)| *n != name).copied();
        front.send("POST", &kept.chain([(name, value)]).collect::<Vec<_>>(), &list).0
    };
    assert_eq!(with("authorization", "Bearer token-4712"), 401);
    assert_eq!(with("authorization", "token-4711"), 401);
    assert_eq!(with("origin", "http://evil.example"), 403);
    assert_eq!(with("host", "evil.example"), 403);
    assert_eq!(with("mcp-session-id", "00"), 404);
    // What is no message has one error.
    for (body, status) in [("{", 400), ("[]", 400), ("7", 400), ("", 400)] {
        assert_eq!(front.send("POST", &own, body).0, status, "{body}");
    }
    assert_eq!(front.send("POST", &own[..1], &list).0, 400);
    // What the guard itself refuses is an answer.
    let (status, _, said) = front.send("POST", &own, &request(1, "initialize", json!({})).to_string());
    assert!(status == 200 && said[0]["error"].is_object(), "{said:?}");
}
