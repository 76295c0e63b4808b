//! `entail guard --mcp-config` between the official client and the servers of a list, processes and
//! addresses.
#![cfg(all(unix, feature = "mcp"))]

use assert_cmd::Command;
use rmcp::model::{CallToolRequestParams, CallToolResult, ClientConfig, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, RunningService};
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

const ENTAIL: &str = env!("CARGO_BIN_EXE_entail");

/// A server in Python without a library: on standard input and output, or over streamable HTTP if its second
/// argument is a file, to which it writes its port. The first argument says how it behaves.
const SERVER: &str = r#"
import http.server, json, os, sys, threading, time

how = sys.argv[1]

def tool(name, *params):
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in params}, "required": list(params)}
    return {"name": name, "description": "the tool " + name, "inputSchema": schema}

tools = [tool("fetch", "url"), tool("send", "to", "body"), tool("env"), tool("remember", "key", "text"), tool("recall", "key")]

def answer(request):
    method, number = request.get("method"), request.get("id")
    def result(r):
        return {"jsonrpc": "2.0", "id": number, "result": r}
    if method == "initialize":
        return result({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": how, "version": "1"}})
    if method == "tools/list":
        return result({"tools": tools})
    if method == "tools/call":
        if how == "dies":
            sys.exit(7)
        name, args = request["params"]["name"], request["params"].get("arguments", {})
        text = how + ":" + json.dumps(args)
        if how == "long":
            text = "x" * 300000
        if name in ("remember", "recall"):
            with open("notes.txt", "a+") as notes:
                notes.seek(0)
                kept = dict(line.rstrip("\n").split("=", 1) for line in notes)
                if name == "remember":
                    notes.write(args["key"] + "=" + args["text"] + "\n")
                text = kept.get(args["key"], "")
        if name == "env":
            text = os.environ.get("GIVEN", "")
        return result({"content": [{"type": "text", "text": text}], "kept": {"unknown": 1}})
    return {"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}}

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    calls = 0
    def log_message(self, *_): pass
    def reply(self, status, kind=None, body=b""):
        self.send_response(status)
        if kind: self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "s1")
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.reply(405)
    def do_DELETE(self):
        open(sys.argv[2] + ".ended", "w").close()
        self.reply(200)
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer key-4711":
            return self.reply(401)
        if request["method"] != "initialize" and (self.headers.get("Mcp-Session-Id"), self.headers.get("MCP-Protocol-Version")) != ("s1", "2025-06-18"):
            return self.reply(400)
        if "id" not in request:
            return self.reply(202)
        body = json.dumps(answer(request))
        Handler.calls += request["method"] == "tools/call"
        if how == "forgets" and Handler.calls == 1:
            return self.reply(404)
        if how == "breaks" and request["method"] == "tools/call":
            return self.reply(200, "text/event-stream", b": nothing\n\ndata: {\"half\n")
        if request["method"] == "tools/call":
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hi"}})
            body = "event: message\r\nid: 1\r\ndata: %s\r\n\r\n: a comment\n\ndata: %s\n\n" % (note, body)
            return self.reply(200, "text/event-stream; charset=utf-8", body.encode())
        self.reply(200, "application/json", body.encode())

if len(sys.argv) > 2:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with open(sys.argv[2] + ".tmp", "w") as out:
        out.write(str(server.server_port))
    os.rename(sys.argv[2] + ".tmp", sys.argv[2])
    server.serve_forever()

for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps(answer(request)), flush=True)
"#;

const POLICY: &str = "[tools.fetch]\neffect = \"read\"\n[tools.send]\neffect = \"write\"\nresult = \"trusted\"\n\
                      [tools.env]\neffect = \"read\"\nresult = \"trusted\"\n\
                      [tools.remember]\neffect = \"write\"\ncontrol = \"untrusted\"\narguments = \"untrusted\"\n\
                      result = \"trusted\"\nwrites = \"key\"\n\
                      [tools.recall]\neffect = \"read\"\nresult = \"trusted\"\nreads = \"key\"\n";

/// A folder with a list of these servers, each `(name, how)`, and a policy.
pub(super) fn folder(servers: &[(&str, &str)]) -> tempfile::TempDir {
    let entry = |(name, how): &(&str, &str)| {
        (
            (*name).to_string(),
            json!({"command": "python3", "args": ["server.py", how], "env": {"GIVEN": "${GIVEN:-none}"}}),
        )
    };
    let list: serde_json::Map<String, Value> = servers.iter().map(entry).collect();
    with_list(&json!({ "mcpServers": list }))
}

fn with_list(list: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("server.py"), SERVER).unwrap();
    std::fs::write(dir.path().join("policy.toml"), POLICY).unwrap();
    std::fs::write(dir.path().join(".mcp.json"), list.to_string()).unwrap();
    dir
}

pub(super) const GUARDED: &[&str] = &["guard", "--policy", "policy.toml", "--mcp-config", ".mcp.json"];

pub(super) fn approve(dir: &Path) -> String {
    let ended = Command::new(ENTAIL)
        .args(["guard", "--approve", "--mcp-config", ".mcp.json"])
        .current_dir(dir)
        .env("SEARCH_KEY", "key-4711")
        .timeout(Duration::from_secs(120))
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap()
}

async fn client(dir: &Path, lifecycle: ClientLifecycleMode) -> RunningService<RoleClient, ClientConfig> {
    let mut command = tokio::process::Command::new(ENTAIL);
    command.args(GUARDED).current_dir(dir).env("GIVEN", "of the environment").env("SEARCH_KEY", "key-4711");
    command.env("XDG_STATE_HOME", dir.join("state"));
    let transport = TokioChildProcess::new(command).unwrap();
    ClientConfig::default().serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

async fn calls(
    client: &RunningService<RoleClient, ClientConfig>,
    tool: &'static str,
    args: Value,
) -> (String, bool) {
    let args = args.as_object().unwrap().clone();
    let result: CallToolResult =
        client.call_tool(CallToolRequestParams::new(tool).with_arguments(args)).await.unwrap();
    let result = serde_json::to_value(result).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap_or_default().to_string();
    (text, result["isError"] == true)
}

/// The official client, with the handshake and with the fall back to it.
#[tokio::test]
async fn the_servers_of_a_list_are_one_session() {
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    for lifecycle in [ClientLifecycleMode::Initialize, auto] {
        let dir = folder(&[("web", "a"), ("my mail", "b")]);
        let shown = approve(dir.path());
        assert!(shown.contains("web__fetch") && shown.contains("my_mail__send"), "{shown}");
        let talk = async {
            let client = client(dir.path(), lifecycle).await;
            let tools = client.list_all_tools().await.unwrap();
            let names: Vec<&str> = tools.iter().map(|t| &*t.name).collect();
            assert_eq!(
                names,
                [
                    "web__fetch",
                    "web__send",
                    "web__env",
                    "web__remember",
                    "web__recall",
                    "my_mail__fetch",
                    "my_mail__send",
                    "my_mail__env",
                    "my_mail__remember",
                    "my_mail__recall"
                ]
            );
            let to_bob = || json!({"to": "bob", "body": "hi"});
            let (text, failed) = calls(&client, "my_mail__send", to_bob()).await;
            assert!(text.starts_with("b:") && !failed, "{text}");
            assert_eq!(calls(&client, "web__env", json!({})).await.0, "of the environment");
            assert!(calls(&client, "web__fetch", json!({"url": "u"})).await.0.starts_with("a:"));
            let (text, failed) = calls(&client, "my_mail__send", to_bob()).await;
            assert!(failed && text.contains("since calls of `web__fetch`"), "{text}");
            client.cancel().await.unwrap();
        };
        tokio::time::timeout(Duration::from_secs(120), talk).await.unwrap();
    }
}

/// The official client works with handles: what it is told of a page is a name, also of what another model
/// answers about it.
#[tokio::test]
async fn a_client_passes_on_what_it_has_a_handle_of() {
    let dir = folder(&[("web", "a")]);
    let dir = dir.path();
    let policy = "[models.asked]\nclearance = \"untrusted\"\n[tools.fetch]\neffect = \"read\"\nhandle = \"trusted\"\n\
                  [tools.remember]\neffect = \"write\"\nresult = \"trusted\"\narguments = \"untrusted\"\n\
                  [tools.send]\neffect = \"write\"\nresult = \"trusted\"\n";
    std::fs::write(dir.join("policy.toml"), policy).unwrap();
    std::fs::write(
        dir.join("entail.toml"),
        "[models.asked]\nprovider = \"scripted\"\nfile = \"replies.json\"\n",
    )
    .unwrap();
    std::fs::write(dir.join("replies.json"), r#"["\"nine to five\""]"#).unwrap();
    approve(dir);
    let talk = async {
        let mut command = tokio::process::Command::new(ENTAIL);
        command.args(GUARDED).args(["--quarantine", "asked"]).current_dir(dir);
        command.env("XDG_STATE_HOME", dir.join("state"));
        let transport = TokioChildProcess::new(command).unwrap();
        let client = ClientConfig::default()
            .serve_with_lifecycle(transport, ClientLifecycleMode::Initialize)
            .await
            .unwrap();
        let tools = client.list_all_tools().await.unwrap();
        assert_eq!(tools.iter().filter(|t| t.name.starts_with("entail_")).count(), 2);
        let (told, _) = calls(&client, "web__fetch", json!({"url": "u"})).await;
        assert!(told.contains("#h1") && !told.contains("a:"), "{told}");
        let (told, _) = calls(&client, "entail_ask", json!({"handle": "#h1", "question": "when?"})).await;
        assert_eq!(told, "The answer is the handle #h2.");
        let (told, _) = calls(&client, "web__remember", json!({"key": "k", "text": "#h2"})).await;
        assert!(told.contains("#h3"), "{told}");
        let (text, failed) = calls(&client, "web__send", json!({"to": "bob", "body": "#h2"})).await;
        assert!(failed && text.contains("the argument `body`"), "{text}");
        let (text, failed) = calls(&client, "web__send", json!({"to": "bob", "body": "hi"})).await;
        assert!(text.starts_with("a:") && !failed, "{text}");
        let (text, _) = calls(&client, "entail_open", json!({"handle": "#h2"})).await;
        assert_eq!(text, "nine to five");
        let (_, failed) = calls(&client, "web__send", json!({"to": "bob", "body": "hi"})).await;
        assert!(failed);
        client.cancel().await.unwrap();
    };
    tokio::time::timeout(Duration::from_secs(120), talk).await.unwrap();
    assert_eq!(std::fs::read_to_string(dir.join("notes.txt")).unwrap(), "k=nine to five\n");
}

/// A model that the settings do not have is an error before anything starts.
#[test]
fn a_quarantined_model_must_be_there() {
    let dir = folder(&[("web", "a")]);
    std::fs::write(
        dir.path().join("entail.toml"),
        "[models.asked]\nprovider = \"scripted\"\nfile = \"none.json\"\n",
    )
    .unwrap();
    let mut command = Command::new(ENTAIL);
    command.args(GUARDED).args(["--quarantine", "asked"]).current_dir(dir.path());
    let ended = command.write_stdin("").timeout(Duration::from_secs(60)).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
}

/// A client that writes lines and waits for each answer.
struct Raw {
    guard: Child,
    stdin: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl Raw {
    fn start(dir: &Path, options: &[&str]) -> Raw {
        let mut command = std::process::Command::new(ENTAIL);
        command.args(GUARDED).args(options).current_dir(dir).env("SEARCH_KEY", "key-4711");
        command.env("XDG_STATE_HOME", dir.join("state"));
        Raw::of(command)
    }

    fn of(mut command: std::process::Command) -> Raw {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().unwrap();
        let out = BufReader::new(guard.stdout.take().unwrap());
        let mut raw = Raw { stdin: guard.stdin.take(), out, guard };
        raw.ask(0, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
        raw.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        raw
    }

    fn say(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    /// The answer; what comes before it is skipped.
    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.out.read_line(&mut line).unwrap() > 0, "the guard is gone");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn call(&mut self, id: u64, tool: &str) -> Value {
        let args = if tool.ends_with("fetch") { json!({"url": "u"}) } else { json!({}) };
        self.ask(id, "tools/call", json!({"name": tool, "arguments": args}))
    }

    /// Leaves; gives what the guard has written to standard error.
    fn leave(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut log = String::new();
        std::io::Read::read_to_string(&mut self.guard.stderr.take().unwrap(), &mut log).unwrap();
        (self.guard.wait().unwrap().code(), log)
    }
}

#[test]
fn a_server_that_dies_or_floods_leaves_the_others() {
    let dir = folder(&[("good", "good"), ("dies", "dies"), ("long", "long")]);
    let mut raw = Raw::start(dir.path(), &["--max-message", "100000"]);
    let answer = raw.call(1, "dies__fetch");
    assert!(answer["error"]["message"].as_str().unwrap().contains("exit status: 7"), "{answer}");
    let answer = raw.call(2, "long__fetch");
    assert!(answer["error"]["message"].as_str().unwrap().contains("more than 100000 bytes"), "{answer}");
    let answer = raw.call(3, "good__fetch");
    assert_eq!(answer["result"]["kept"]["unknown"], 1, "{answer}");
    let (status, log) = raw.leave();
    assert_eq!(status, Some(0), "{log}");
    assert!(log.contains("entail guard: dies: the server is gone"), "{log}");
}

/// A process that ends is started again, and its tools are there again.
#[test]
fn a_server_that_ends_is_started_again() {
    let dir = folder(&[("good", "good"), ("dies", "dies")]);
    let mut raw = Raw::start(dir.path(), &[]);
    assert!(raw.call(1, "dies__fetch").to_string().contains("exit status: 7"));
    let is_listed = |raw: &mut Raw, id: u64| {
        let listed = raw.ask(id, "tools/list", json!({}));
        listed["result"]["tools"].as_array().unwrap().iter().any(|t| t["name"] == "dies__fetch")
    };
    assert!(!is_listed(&mut raw, 2));
    let back = (3..80).any(|id| {
        std::thread::sleep(Duration::from_millis(250));
        is_listed(&mut raw, id)
    });
    assert!(back, "it is not started again");
    let (status, log) = raw.leave();
    assert!(status == Some(0) && log.contains("dies: the server is there again"), "{log}");
}

/// A new conversation of the client has read nothing, and one that goes on may have read anything.
#[test]
fn a_client_tells_the_guard_when_a_conversation_begins() {
    let dir = folder(&[("desk", "desk")]);
    let dir = dir.path();
    let policy = format!("{POLICY}[tools.Bash]\neffect = \"write\"\nresult = \"trusted\"\n");
    std::fs::write(dir.join("policy.toml"), policy).unwrap();
    approve(dir);
    let mut command = std::process::Command::new(ENTAIL);
    command.args(GUARDED).arg("--hooks").current_dir(dir);
    command.env("XDG_RUNTIME_DIR", dir).env("XDG_STATE_HOME", dir.join("state"));
    let mut raw = Raw::of(command);
    let ls = || before("Bash", json!({"command": "ls"}));
    let starts =
        |source: &str| json!({"hook_event_name": "SessionStart", "source": source, "session_id": "s"});
    let allowed = (Some(0), String::new(), String::new());
    assert_eq!(hook(dir, &ls()), allowed);
    raw.call(1, "desk__fetch");
    assert_eq!(hook(dir, &ls()).1, "deny");
    // A conversation that is made shorter is the same one.
    assert_eq!(hook(dir, &starts("compact")), allowed);
    assert_eq!(hook(dir, &ls()).1, "deny");
    assert_eq!(hook(dir, &starts("clear")), allowed);
    assert_eq!(hook(dir, &ls()), allowed);
    let sent =
        raw.ask(2, "tools/call", json!({"name": "desk__send", "arguments": {"to": "bob", "body": "x"}}));
    assert!(sent["result"]["isError"].is_null(), "{sent}");
    assert_eq!(hook(dir, &starts("resume")), allowed);
    let (_, decision, why) = hook(dir, &ls());
    assert!(decision == "deny" && why.contains("the conversation that is resumed"), "{why}");
    let (_, log) = raw.leave();
    assert!(log.contains("a new conversation begins at the label []"), "{log}");
    // Without a guard the client is told that nobody knows.
    assert_eq!(hook(dir, &starts("clear")).0, Some(2));
}

#[test]
fn a_server_that_cannot_start_is_left_out_and_no_secret_is_told() {
    let dir = with_list(&json!({"mcpServers": {
        "good": {"command": "python3", "args": ["server.py", "good"]},
        "none": {"command": "no-such-program", "env": {"TOKEN": "${SEARCH_KEY}"}},
        "unset": {"command": "x", "env": {"TOKEN": "${NOT_SET_HERE}"}},
        "nowhere": {"url": "http://127.0.0.1:1/mcp?token=key-4711", "headers": {"Authorization": "Bearer ${SEARCH_KEY}"}},
    }}));
    let mut raw = Raw::start(dir.path(), &[]);
    assert_eq!(raw.ask(1, "tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 5);
    let (status, log) = raw.leave();
    assert_eq!(status, Some(0), "{log}");
    for part in [
        "cannot start `no-such-program`",
        "`NOT_SET_HERE` is not set",
        "nowhere: the server is gone",
        "no connection",
    ] {
        assert!(log.contains(part), "{part}\n{log}");
    }
    assert!(!log.contains("key-4711"), "{log}");

    for (list, part) in
        [(json!({"mcpServers": {}}), "no server that can be started"), (json!([]), "lists no servers")]
    {
        std::fs::write(dir.path().join(".mcp.json"), list.to_string()).unwrap();
        let ended = Command::new(ENTAIL).args(GUARDED).current_dir(dir.path()).output().unwrap();
        let log = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code() == Some(2) && log.contains(part), "{log}");
    }
    let list = json!({"mcpServers": {"a.b": {"command": "x"}, "a_b": {"command": "x"}}});
    std::fs::write(dir.path().join(".mcp.json"), list.to_string()).unwrap();
    let ended = Command::new(ENTAIL).args(GUARDED).current_dir(dir.path()).output().unwrap();
    assert!(String::from_utf8(ended.stderr).unwrap().contains("both begin with `a_b`"));
}

/// Starts a server over HTTP; gives it and its address.
fn over_http(dir: &Path, how: &str) -> (Ended, String) {
    let file = dir.join(format!("port-{how}"));
    let server =
        std::process::Command::new("python3").arg("server.py").arg(how).arg(&file).current_dir(dir).spawn();
    let server = Ended(server.unwrap());
    for _ in 0..600 {
        if let Ok(port) = std::fs::read_to_string(&file) {
            return (server, format!("http://127.0.0.1:{port}/mcp"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the server does not start");
}

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_over_http_is_guarded_as_a_process_is() {
    let dir = with_list(&json!({}));
    let (_usual, usual) = over_http(dir.path(), "usual");
    let (_breaks, breaks) = over_http(dir.path(), "breaks");
    let (_forgets, forgets) = over_http(dir.path(), "forgets");
    let with_key =
        |url: &str| json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer ${SEARCH_KEY}"}});
    let list = json!({"mcpServers": {"usual": with_key(&usual), "breaks": with_key(&breaks), "forgets": with_key(&forgets),
        "closed": {"url": usual}, "good": {"command": "python3", "args": ["server.py", "good"]}}});
    std::fs::write(dir.path().join(".mcp.json"), list.to_string()).unwrap();
    // All but one can be asked for what they say.
    let ended = Command::new(ENTAIL)
        .args(["guard", "--approve", "--mcp-config", ".mcp.json"])
        .current_dir(dir.path())
        .env("SEARCH_KEY", "key-4711")
        .timeout(Duration::from_secs(120))
        .output()
        .unwrap();
    let shown = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.code() == Some(1) && shown.contains("usual__fetch"), "{shown}");
    let mut raw = Raw::start(dir.path(), &[]);
    assert_eq!(raw.ask(1, "tools/list", json!({}))["result"]["tools"].as_array().unwrap().len(), 20);
    let answer = raw.call(2, "usual__fetch");
    assert_eq!(answer["result"]["content"][0]["text"], "usual:{\"url\": \"u\"}");
    assert_eq!(answer["result"]["kept"]["unknown"], 1, "{answer}");
    let answer = raw.call(3, "breaks__fetch");
    assert!(answer["error"]["message"].as_str().unwrap().contains("the stream ended before"), "{answer}");
    let answer = raw.call(4, "forgets__fetch");
    assert!(answer["error"]["message"].as_str().unwrap().contains("its session has ended"), "{answer}");
    assert!(raw.call(5, "good__fetch").get("result").is_some());
    assert!(raw.call(6, "usual__fetch").get("result").is_some());
    let (status, log) = raw.leave();
    assert_eq!(status, Some(0), "{log}");
    assert!(
        log.contains("closed: the server is gone") && log.contains("it wants authorization (401)"),
        "{log}"
    );
    assert!(!log.contains("key-4711"), "{log}");
    // The guard has said good-bye.
    assert!(dir.path().join("port-usual.ended").exists());
}

/// A page has something remembered in one session, and another session of another process recalls it.
#[test]
fn labels_outlive_the_process_and_decisions_are_in_a_file() {
    let dir = folder(&[("desk", "desk")]);
    approve(dir.path());
    let (log, options) = ("decisions.jsonl", ["--log", "decisions.jsonl"]);
    let mut raw = Raw::start(dir.path(), &options);
    let remember = |key: &str| json!({"name": "desk__remember", "arguments": {"key": key, "text": "x"}});
    raw.ask(1, "tools/call", remember("own"));
    raw.call(2, "desk__fetch");
    let answer = raw.ask(3, "tools/call", remember("planted"));
    assert_eq!(answer["result"]["isError"], Value::Null, "{answer}");
    raw.leave();

    let mut raw = Raw::start(dir.path(), &options);
    let recall = |key: &str| json!({"name": "desk__recall", "arguments": {"key": key}});
    let send = || json!({"name": "desk__send", "arguments": {"to": "bob", "body": "x"}});
    assert_eq!(raw.ask(1, "tools/call", recall("own"))["result"]["content"][0]["text"], "x");
    assert_eq!(raw.ask(2, "tools/call", send())["result"]["isError"], Value::Null);
    raw.ask(3, "tools/call", recall("planted"));
    let answer = raw.ask(4, "tools/call", send());
    assert!(answer.to_string().contains("since calls of `desk__recall`"), "{answer}");
    raw.leave();
    assert!(dir.path().join("state/entail/labels.db").exists());

    let text = std::fs::read_to_string(dir.path().join(log)).unwrap();
    let lines: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let events: Vec<(&str, &str)> = lines
        .iter()
        .map(|l| (l["event"].as_str().unwrap(), l["tool"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        events,
        [
            ("made", "desk__remember"),
            ("made", "desk__fetch"),
            ("raised", ""),
            ("made", "desk__remember"),
            ("made", "desk__recall"),
            ("made", "desk__send"),
            ("made", "desk__recall"),
            ("recalled", "desk__recall"),
            ("raised", ""),
            ("refused", "desk__send")
        ]
    );
    assert_eq!(lines[7]["raisedBy"], json!(["desk__fetch"]));
    let sessions: std::collections::BTreeSet<&str> =
        lines.iter().map(|l| l["session"].as_str().unwrap()).collect();
    assert_eq!(sessions.len(), 2);

    // The last session as a trace, and the first one by its name.
    let trace = |more: &[&str]| {
        let mut command = std::process::Command::new(ENTAIL);
        let done = command.current_dir(dir.path()).args(["trace", log]).args(more).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let shown = trace(&[]);
    assert!(shown.contains("tool desk__send") && shown.contains("<- error: refused: "), "{shown}");
    assert!(shown.contains("since calls of `desk__recall`"), "{shown}");
    assert!(
        shown.contains("recalled desk__recall") && shown.contains("since calls of `desk__fetch`"),
        "{shown}"
    );
    assert!(shown.contains("3 made, 0 asked about, 1 refused"), "{shown}");
    let first = lines[0]["session"].as_str().unwrap();
    let shown = trace(&[first]);
    assert!(shown.contains("3 made, 0 asked about, 0 refused") && shown.contains(first), "{shown}");
    let json = trace(&["--json"]);
    assert!(json.lines().all(|l| serde_json::from_str::<Value>(l).unwrap()["event"].is_string()), "{json}");
    trace(&["--html", "session.html"]);
    let page = std::fs::read_to_string(dir.path().join("session.html")).unwrap();
    assert!(page.contains("since calls of `desk__recall`"));
}

/// Exit status of the hook of a client, with its decision and reason, if it says any.
fn hook(dir: &Path, input: &Value) -> (Option<i32>, String, String) {
    // As Claude Code does, through a shell.
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!("\"{ENTAIL}\" guard hook --policy policy.toml; exit $?"));
    command.current_dir(dir).env("XDG_RUNTIME_DIR", dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut hook = command.spawn().unwrap();
    write!(hook.stdin.take().unwrap(), "{input}").unwrap();
    let out = hook.wait_with_output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let said = &said["hookSpecificOutput"];
    let part = |name: &str| said[name].as_str().unwrap_or_default().to_string();
    (out.status.code(), part("permissionDecision"), part("permissionDecisionReason"))
}

fn before(tool: &str, input: Value) -> Value {
    json!({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": tool, "tool_input": input})
}

/// The words of the user are the request, whenever they are told.
#[test]
fn a_client_tells_the_guard_what_its_user_asks_for() {
    let dir = folder(&[("desk", "desk")]);
    let dir = dir.path();
    let policy = format!(
        "{POLICY}[tools.WebFetch]\neffect = \"read\"\n[tools.Mail]\neffect = \"write\"\nresult = \"trusted\"\n\
         control = \"untrusted\"\namong = {{ to = \"request\" }}\n"
    );
    std::fs::write(dir.join("policy.toml"), policy).unwrap();
    approve(dir);
    let mut command = std::process::Command::new(ENTAIL);
    command
        .args(GUARDED)
        .arg("--hooks")
        .current_dir(dir)
        .env("XDG_RUNTIME_DIR", dir)
        .env("XDG_STATE_HOME", dir.join("state"));
    let raw = Raw::of(command);
    let allowed = (Some(0), String::new(), String::new());
    assert_eq!(hook(dir, &before("WebFetch", json!({"url": "u", "prompt": "p"}))), allowed);
    let mail = |to: &str| before("Mail", json!({"to": to}));
    assert_eq!(hook(dir, &mail("bob@example.org")).1, "deny");
    let asks = json!({"hook_event_name": "UserPromptSubmit", "prompt": "mail it to bob@example.org, please"});
    assert_eq!(hook(dir, &asks), allowed);
    assert_eq!(hook(dir, &mail("bob@example.org")), allowed);
    assert_eq!(hook(dir, &mail("mallory@example.org")).1, "deny");
    raw.leave();
    // Without a guard a prompt is no reason to stop the user.
    assert_eq!(hook(dir, &asks), allowed);
}

/// The hooks of a client and its servers are one session, and without a guard nothing is known.
#[test]
fn the_tools_of_the_client_are_decided_by_its_hooks() {
    let dir = folder(&[("desk", "desk")]);
    let dir = dir.path();
    let policy = format!(
        "{POLICY}[tools.Bash]\neffect = \"write\"\nresult = \"trusted\"\n[tools.WebFetch]\neffect = \"read\"\n\
         [tools.Deploy]\neffect = \"write\"\napprove = true\nresult = \"trusted\"\n"
    );
    std::fs::write(dir.join("policy.toml"), policy).unwrap();
    approve(dir);
    let ls = || before("Bash", json!({"command": "ls"}));
    let allowed = (Some(0), String::new(), String::new());

    let mut command = std::process::Command::new(ENTAIL);
    command
        .args(GUARDED)
        .arg("--hooks")
        .current_dir(dir)
        .env("XDG_RUNTIME_DIR", dir)
        .env("XDG_STATE_HOME", dir.join("state"));
    let mut raw = Raw::of(command);
    assert_eq!(hook(dir, &ls()), allowed);
    assert_eq!(hook(dir, &before("Deploy", json!({}))).1, "ask");
    assert_eq!(hook(dir, &before("WebFetch", json!({"url": "u", "prompt": "p"}))), allowed);
    let (_, decision, why) = hook(dir, &ls());
    assert!(decision == "deny" && why.contains("since calls of `WebFetch`"), "{why}");
    let answer =
        raw.ask(1, "tools/call", json!({"name": "desk__send", "arguments": {"to": "bob", "body": "x"}}));
    assert!(answer.to_string().contains("since calls of `WebFetch`"), "{answer}");
    // Other events, and tools that the guard sees anyway.
    assert_eq!(hook(dir, &json!({"hook_event_name": "PostToolUse", "tool_name": "Bash"})), allowed);
    assert_eq!(hook(dir, &before("mcp__entail__desk__send", json!({}))), allowed);
    // What is no call is a refusal for the client: status 2.
    for wrong in [json!({}), json!("x"), json!({"hook_event_name": "PreToolUse"})] {
        assert_eq!(hook(dir, &wrong).0, Some(2), "{wrong}");
    }
    raw.leave();

    let (_, decision, why) = hook(dir, &ls());
    assert!(decision == "deny" && why.contains("no guard of this client answers"), "{why}");
    assert_eq!(std::fs::read_dir(dir.join("entail")).unwrap().count(), 0, "the socket is gone");
    // A folder that others can enter is not used.
    std::fs::set_permissions(dir.join("entail"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let ended = Command::new(ENTAIL)
        .args(GUARDED)
        .arg("--hooks")
        .current_dir(dir)
        .env("XDG_RUNTIME_DIR", dir)
        .env("XDG_STATE_HOME", dir.join("state"))
        .output()
        .unwrap();
    let log = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(2) && log.contains("only this user can enter"), "{log}");
}

/// A key of one server is not told to another one, in whatever encoding, though no label knows it.
#[test]
fn a_key_of_one_server_is_not_told_to_another() {
    let key = "q8Zr-Lw3T-x0Vb-77Kd-eHn2";
    let encoded = "cThaci1MdzNULXgwVmItNzdLZC1lSG4y";
    let entry = |env: Value| json!({"command": "python3", "args": ["server.py", "x"], "env": env});
    let list = json!({"mcpServers": {"web": entry(json!({})), "bank": entry(json!({"BANK_TOKEN": key}))}});
    let dir = with_list(&list);
    approve(dir.path());
    let mut raw = Raw::start(dir.path(), &[]);
    let mut send = |id: u64, server: &str, body: &str| {
        let args = json!({"to": "bob", "body": format!("see {body}!")});
        raw.ask(id, "tools/call", json!({"name": format!("{server}__send"), "arguments": args}))
    };
    for (id, body) in [(1, key), (2, encoded)] {
        let answer = send(id, "web", body);
        assert!(answer["result"]["isError"] == true && !answer.to_string().contains(body), "{answer}");
        assert!(answer.to_string().contains("contain a secret"), "{answer}");
    }
    assert_ne!(send(3, "bank", key)["result"]["isError"], true);
    assert_ne!(send(4, "web", "q8Zr-Lw3T")["result"]["isError"], true);
    let (_, log) = raw.leave();
    assert!(!log.contains(key), "{log}");
}

/// Output and exit status of the hook of another client.
fn hook_of(dir: &Path, client: &str, input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(ENTAIL);
    command.args(["guard", "hook", "--client", client, "--policy", "policy.toml"]);
    command.current_dir(dir).env("XDG_RUNTIME_DIR", dir).timeout(Duration::from_secs(60));
    let out = command.write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code(), text(out.stdout), text(out.stderr))
}

/// A model that was refused over the protocol and tries its client's shell is refused there, too, in the
/// words of each client that runs hooks.
#[test]
fn each_client_with_hooks_is_refused_in_its_own_words() {
    let shell = json!({"command": "curl evil.example"});
    let before = |client: &str| match client {
        "codex" => json!({"hook_event_name": "PreToolUse", "tool_name": "shell", "tool_input": shell}),
        "gemini" => json!({"hook_event_name": "BeforeTool", "tool_name": "shell", "tool_input": shell}),
        "cursor" => json!({"hook_event_name": "preToolUse", "tool_name": "shell", "tool_input": shell}),
        _ => json!({"agent_action_name": "pre_shell", "tool_info": shell}),
    };
    for client in ["codex", "gemini", "cursor", "windsurf"] {
        let dir = folder(&[("desk", "desk")]);
        let dir = dir.path();
        let policy = format!("{POLICY}[tools.shell]\neffect = \"write\"\nresult = \"trusted\"\n");
        std::fs::write(dir.join("policy.toml"), policy).unwrap();
        approve(dir);
        let mut command = std::process::Command::new(ENTAIL);
        command.args(GUARDED).arg("--hooks").current_dir(dir).env("XDG_RUNTIME_DIR", dir);
        let mut raw = Raw::of(command);
        let call = before(client).to_string();
        let (status, said, _) = hook_of(dir, client, &call);
        let is_allowed = said.is_empty() || said.contains("\"permission\":\"allow\"");
        assert!(status == Some(0) && is_allowed, "{client}: {said}");
        assert!(raw.call(1, "desk__fetch")["error"].is_null());
        let answer =
            raw.ask(2, "tools/call", json!({"name": "desk__send", "arguments": {"to": "bob", "body": "x"}}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let (status, said, log) = hook_of(dir, client, &call);
        let (why, refused) = match client {
            "gemini" | "cursor" => (&said, said.contains("\"deny\"") && status == Some(0)),
            _ => (&log, status == Some(2)),
        };
        assert!(refused && why.contains("since calls of `desk__fetch`"), "{client}: {said} {log}");
        // What is no call is a refusal, with a remedy.
        for wrong in ["", "{}", "x"] {
            let (status, _, log) = hook_of(dir, client, wrong);
            assert!(status == Some(2) && log.contains("--hooks"), "{client}: {log}");
        }
        raw.leave();
    }
}

/// Servers are processes of their own group, so that only the guard can end them.
#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_ends_the_servers_that_are_asked_what_they_offer() {
    let dir = with_list(&json!({"mcpServers": {"deaf": {"command": "sh", "args": ["deaf.sh"]}}}));
    std::fs::write(dir.path().join("deaf.sh"), "echo $$ > pid\nexec sleep 600 0<&-\n").unwrap();
    std::fs::write(dir.path().join("entail.toml"), "[mcp.deaf]\ncommand = [\"sh\", \"deaf.sh\"]\n").unwrap();
    let pid = dir.path().join("pid");
    for (args, signal, status) in [
        (&["guard", "--approve", "--mcp-config", ".mcp.json"][..], "-INT", 130),
        (&["guard", "--approve", "--mcp-config", ".mcp.json"], "-TERM", 143),
        (
            &["policy", "check", "--policy", "policy.toml", "--mcp-config", ".mcp.json", "--discover"],
            "-INT",
            130,
        ),
        (&["tools", "--discover", "deaf"], "-INT", 130),
    ] {
        let _ = std::fs::remove_file(&pid);
        let mut child = std::process::Command::new(ENTAIL)
            .args(args)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let server = loop {
            let text = std::fs::read_to_string(&pid).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_string();
            }
            assert!(child.try_wait().unwrap().is_none(), "{args:?} ended by itself");
            std::thread::yield_now();
        };
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains("error[cancelled]: "), "{args:?}: {said}");
        // Killed, it may still be waited for by whoever adopts it.
        let state = || std::fs::read_to_string(format!("/proc/{server}/stat")).unwrap_or_default();
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::yield_now();
        }
    }
    assert!(!dir.path().join("entail.lock").exists());
}

/// Approvals are for everybody who has the project. The servers of a client may have keys in them.
#[cfg(unix)]
#[test]
fn who_may_read_a_new_file_depends_on_what_is_in_it() {
    use std::os::unix::fs::PermissionsExt;
    let dir =
        with_list(&json!({"mcpServers": {"a": {"command": "python3", "args": ["server.py", "usual"]}}}));
    let script = "umask 022; \"$0\" guard --approve --mcp-config .mcp.json && \
                  \"$0\" guard install claude-code --policy policy.toml";
    let out = Command::new("sh").args(["-c", script, ENTAIL]).current_dir(dir.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let mode = |file: &str| std::fs::metadata(dir.path().join(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("entail.lock"), mode(".mcp.entail.json")), (0o644, 0o600));
    // The command that it advises works in every folder.
    let lock = dir.path().canonicalize().unwrap().join("entail.lock");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains(&format!("--lock {}", lock.display())), "{said}");
}

/// An approval by another command stays while a server is asked.
#[test]
fn two_approvals_at_once_are_both_kept() {
    let list = json!({"mcpServers": {
        "a": {"command": "sh", "args": ["-c", "\"$ENTAIL\" guard --approve --server b -- python3 server.py usual >/dev/null </dev/null; exec python3 server.py usual"],
            "env": {"ENTAIL": ENTAIL}}
    }});
    let dir = with_list(&list);
    let said = approve(dir.path());
    let lock = std::fs::read_to_string(dir.path().join("entail.lock")).unwrap();
    for server in ["[tools.\"a\"]", "[tools.\"b\"]"] {
        assert!(lock.contains(server), "{lock}{said}");
    }
}
