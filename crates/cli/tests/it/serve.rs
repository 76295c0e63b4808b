//! `entail serve` as its clients see it: real processes, real connections.
#![cfg(feature = "serve")]

use crate::serving::{JSON, POLLS, Server, TOKEN, bounded, folder, read, sleeps, until};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A client that does not send what it began with is not waited for.
#[test]
fn half_sent_requests_are_ended() {
    let dir = folder();
    let settings = "[serve]\nhead_timeout = 0.3\nbody_timeout = 0.3\n";
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let server = greeter(dir.path());
    let begun = |text: &str| {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        // Far longer than the limits: one that is kept open fails the test.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        std::io::Write::write_all(&mut stream, text.as_bytes()).unwrap();
        crate::serving::read(stream)
    };
    for head in ["", "G", "GET /health HTTP/1.1\r\nhost: localhost\r\n"] {
        let said = begun(head);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
    }
    let host = &server.address;
    let head = format!(
        "POST /v1/pipelines/greet/runs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n"
    );
    let said = begun(&format!("{head}content-length: 15\r\n\r\n{{\"na"));
    assert!(
        said.starts_with("HTTP/1.1 408") && said.contains("the body did not arrive within 0.3 s"),
        "{said}"
    );
    // Who sends everything is answered.
    assert_eq!(server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"})).0, 200);
}

#[test]
fn tokens_that_can_be_guessed_are_named_when_the_server_begins() {
    let dir = folder();
    let settings = "[callers.ann]\ntoken_env = \"ANN_TOKEN\"\n[callers.ben]\ntoken_env = \"BEN_TOKEN\"\n";
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let tokens = [("ANN_TOKEN", "hunter2"), ("BEN_TOKEN", "planted-5f3a9c01d2e84b76")];
    let (_, said) = Server::with(dir.path(), &["greet.agent", "--script", "s.json"], &tokens).end();
    assert!(said.contains("the token of the caller `ann` can be guessed"), "{said}");
    assert!(!said.contains("`ben`") && !said.contains("hunter2"), "{said}");
}

fn greeter(dir: &Path) -> Server {
    Server::start(dir, &["greet.agent", "--script", "s.json"], None)
}

#[test]
fn a_pipeline_runs_and_its_server_describes_itself() {
    let dir = folder();
    let server = greeter(dir.path());
    let (status, outcome) = server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"}));
    assert_eq!((status, outcome["result"].as_str()), (200, Some("Hello, Ada")), "{outcome}");
    assert_eq!(outcome["usage"]["modelCalls"], 1);
    assert_eq!(server.get("/health").1["status"], "ok");
    let (status, run) = server.get(&format!("/v1/runs/{}", outcome["run"].as_str().unwrap()));
    assert_eq!((status, run["status"].as_str()), (200, Some("done")));

    let (_, description) = server.get("/openapi.json");
    assert_eq!(description["openapi"], "3.1.0");
    let path = &description["paths"]["/v1/pipelines/greet/runs"]["post"];
    let schema = &path["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["properties"]["name"]["type"], "string", "{description}");
    // Every reference leads somewhere.
    let text = description.to_string();
    for reference in text.split("\"#/").skip(1).map(|r| r.split('"').next().unwrap()) {
        assert!(description.pointer(&format!("/{reference}")).is_some(), "{reference}");
    }
}

#[test]
fn wrong_requests_are_told_so() {
    let dir = folder();
    let server =
        Server::start(dir.path(), &["greet.agent", "--script", "s.json", "--max-body", "1000"], None);
    let run = "/v1/pipelines/greet/runs";
    let code = |answer: (u16, Value)| (answer.0, answer.1["error"]["code"].as_str().unwrap().to_string());
    assert_eq!(code(server.post("/v1/pipelines/nope/runs", &json!({}))), (404, "not_found".into()));
    assert_eq!(code(server.post(run, &json!({"nam": "Ada"}))), (422, "input".into()));
    // The schema says that there are no other fields.
    let (status, odd) = server.post(run, &json!({"name": "Ada", "nam": "Eve"}));
    let said = odd["error"]["message"].as_str().unwrap();
    assert!(
        status == 422 && said.contains("$.nam: there is no such field (help: did you mean `name`?)"),
        "{odd}"
    );
    assert_eq!(code(server.get("/v1/runs/none")), (404, "not_found".into()));
    assert_eq!(code(server.get("/nothing")), (404, "not_found".into()));
    assert_eq!(server.raw("POST", run, &[JSON], "{").0, 400);
    assert_eq!(server.raw("POST", run, &[("content-type", "text/plain")], "{}").0, 415);
    let large = server.raw("POST", run, &[JSON], &format!("\"{}\"", "x".repeat(2000)));
    assert!(
        large.0 == 413 && large.2.contains("\"code\":\"too_large\"") && large.2.contains("--max-body"),
        "{large:?}"
    );
    let method = server.raw("PUT", run, &[JSON], "1");
    assert!(
        method.0 == 405 && method.1.contains("allow: POST") && method.2.contains("\"code\":\"method\""),
        "{method:?}"
    );
    // A page of a browser that has a name for this machine does not reach it.
    assert_eq!(server.raw("GET", "/v1/pipelines", &[("host", "evil.example")], "").0, 403);
}

#[test]
fn events_tell_how_a_run_goes() {
    let dir = folder();
    let server = greeter(dir.path());
    let headers = [JSON, ("accept", "text/event-stream")];
    let (status, head, body) = server.raw("POST", "/v1/pipelines/greet/runs", &headers, r#"{"name": "Ada"}"#);
    assert_eq!(status, 200);
    assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
    let names: Vec<&str> = body.lines().filter_map(|l| l.strip_prefix("event: ")).collect();
    assert_eq!(names, ["run", "asked", "answered", "result"], "{body}");
    let last = body.lines().filter_map(|l| l.strip_prefix("data: ")).next_back().unwrap();
    assert_eq!(serde_json::from_str::<Value>(last).unwrap()["result"], "Hello, Ada");
}

#[test]
fn a_token_is_wanted_where_there_is_one() {
    let dir = folder();
    let server = Server::start(dir.path(), &["greet.agent", "--script", "s.json"], Some(TOKEN));
    assert_eq!(server.get("/health").0, 200);
    let (status, head, body) = server.raw("GET", "/v1/pipelines", &[], "");
    assert!(
        status == 401 && head.to_lowercase().contains("www-authenticate: bearer") && !body.contains(TOKEN)
    );
    assert_eq!(
        server.raw("GET", "/v1/pipelines", &[("authorization", "Bearer planted-token-0124")], "").0,
        401
    );
    let right = format!("Bearer {TOKEN}");
    assert_eq!(server.raw("GET", "/v1/pipelines", &[("authorization", &right)], "").0, 200);

    // Without one, other machines are not listened to.
    std::fs::remove_file(dir.path().join("entail.toml")).unwrap();
    let mut open = Command::new(env!("CARGO_BIN_EXE_entail"));
    open.args(["serve", "greet.agent", "--script", "s.json", "--listen", "0.0.0.0:0"])
        .env_remove("ENTAIL_SERVE_TOKEN");
    open.current_dir(dir.path()).stdin(Stdio::null());
    let refused = bounded("a server that is refused ends", move || open.output().unwrap());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && said.contains("only with a token"), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn abandoned_run_is_canceled_unless_detached() {
    let dir = folder();
    let server = Server::start(dir.path(), &["slow.lam", "--max-runs", "1"], None);
    let run = "/v1/pipelines/main/runs";
    let waiting = server.send("POST", run, &[JSON], "\"x\"");
    until(|| sleeps(dir.path()));
    // There is room for one.
    let (status, head, _) = server.raw("POST", run, &[JSON], "\"x\"");
    assert!(status == 429 && head.to_lowercase().contains("retry-after: 1"), "{head}");
    drop(waiting);
    until(|| !sleeps(dir.path()));
    server.until("/health", |h| h["running"] == 0);

    let (status, _, body) = server.raw("POST", run, &[JSON, ("prefer", "respond-async")], "\"x\"");
    assert_eq!(status, 202);
    let id = serde_json::from_str::<Value>(&body).unwrap()["run"].as_str().unwrap().to_string();
    until(|| sleeps(dir.path()));
    let path = format!("/v1/runs/{id}");
    assert_eq!(server.get(&path).1["status"], "running");
    server.raw("DELETE", &path, &[], "");
    let ended = server.until(&path, |r| r["status"] == "failed");
    assert_eq!(ended["outcome"]["error"]["code"], "cancelled");
    until(|| !sleeps(dir.path()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_is_told_to_stop_leaves_nothing_behind() {
    let dir = folder();
    let mut server = Server::start(dir.path(), &["slow.lam", "--grace", "0.1"], None);
    let waiting = server.send("POST", "/v1/pipelines/main/runs", &[JSON], "\"x\"");
    until(|| sleeps(dir.path()));
    let told = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(told.success());
    // Who waits is told, and then the server ends by itself.
    let text = read(waiting);
    assert!(text.starts_with("HTTP/1.1 503") && text.contains("cancelled"), "{text}");
    let mut ended = None;
    for _ in 0..POLLS {
        ended = server.child.try_wait().unwrap();
        if ended.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ended.and_then(|status| status.code()), Some(0));
    assert!(!sleeps(dir.path()));
}

#[test]
fn approvals_wait_and_are_answered_over_http() {
    let dir = folder();
    let server = Server::start(dir.path(), &["pay.lam", "--journal", "j"], None);
    let begin = || {
        let (status, _, body) = server.raw(
            "POST",
            "/v1/pipelines/main/runs",
            &[JSON, ("prefer", "respond-async")],
            "{\"to\": \"bob\"}",
        );
        assert_eq!(status, 202, "{body}");
        let run = serde_json::from_str::<Value>(&body).unwrap()["run"].as_str().unwrap().to_string();
        let status = format!("/v1/runs/{run}");
        server.until(&status, |r| r["status"] == "waiting");
        let waits = server.questions();
        assert_eq!(waits[0]["run"], *run);
        assert_eq!(waits[0]["args"][0]["value"], "bob");
        (format!("/v1/runs/{run}"), format!("/v1/approvals/{}", waits[0]["request"].as_str().unwrap()))
    };
    let (run, question) = begin();
    assert_eq!(server.get(&run).1["status"], "waiting");
    // Whoever starts runs approves nothing.
    assert_eq!(server.post(&question, &json!({"decision": "approve"})).0, 403);
    assert_eq!(server.get("/v1/approvals").0, 403);
    assert_eq!(server.decide(&question, &json!({"decision": "perhaps"})).0, 422);
    assert_eq!(server.decide(&question, &json!({"decision": "approve"})).1["verdict"], "approved");
    assert_eq!(server.decide(&question, &json!({"decision": "deny"})).0, 409);
    assert_eq!(server.until(&run, |r| r["status"] == "done")["outcome"]["result"], "paid");

    let (run, question) = begin();
    server.decide(&question, &json!({"decision": "deny", "reason": "not again"}));
    let failed = server.until(&run, |r| r["status"] == "failed");
    assert!(failed.to_string().contains("it was refused: not again"), "{failed}");
    assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap(), "paid\n");
}

#[test]
fn it_is_an_agent_of_the_a2a_protocol() {
    let dir = folder();
    let server = Server::start(dir.path(), &["greet.agent", "slow.lam", "--script", "s.json"], None);
    let (_, card) = server.get("/.well-known/agent-card.json");
    assert_eq!(card["supportedInterfaces"][0]["protocolVersion"], "1.0");
    let skills: Vec<&str> =
        card["skills"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap()).collect();
    assert_eq!(skills, ["greet", "main"]);
    let rpc = |version: Option<&str>, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
        let mut headers = vec![JSON];
        headers.extend(version.map(|v| ("a2a-version", v)));
        let (status, _, text) = server.raw("POST", "/a2a", &headers, &body);
        assert_eq!(status, 200, "{text}");
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["id"], 7);
        json
    };
    let message = |skill: &str, part: Value| json!({"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [part], "metadata": {"skill": skill}}});
    let v1 = Some("1.0");
    let done = rpc(v1, "SendMessage", message("greet", json!({"data": {"name": "Ada"}})));
    let task = &done["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "Hello, Ada");
    let again = rpc(v1, "GetTask", json!({"id": task["id"]}));
    assert_eq!(again["result"]["artifacts"], task["artifacts"]);
    // Clients of 0.3 name no version, and say things in another way.
    let old = rpc(None, "message/send", message("greet", json!({"kind": "text", "text": "Ada"})));
    assert_eq!(
        (old["result"]["kind"].as_str(), old["result"]["status"]["state"].as_str()),
        (Some("task"), Some("completed"))
    );

    let mut params = message("main", json!({"text": "x"}));
    params["configuration"] = json!({"returnImmediately": true});
    let begun = rpc(v1, "SendMessage", params);
    let id = begun["result"]["task"]["id"].clone();
    assert_eq!(begun["result"]["task"]["status"]["state"], "TASK_STATE_WORKING");
    let ended = rpc(v1, "CancelTask", json!({ "id": id }));
    assert_eq!(ended["result"]["status"]["state"], "TASK_STATE_CANCELED", "{ended}");
    assert_eq!(rpc(v1, "CancelTask", json!({ "id": id }))["error"]["code"], -32002);
    assert_eq!(rpc(v1, "GetTask", json!({"id": "none"}))["error"]["code"], -32001);
    assert_eq!(rpc(v1, "Nothing", json!({}))["error"]["code"], -32601);
    assert_eq!(rpc(Some("2.0"), "GetTask", json!({}))["error"]["code"], -32009);
    assert_eq!(rpc(v1, "SendMessage", message("greet", json!({"data": 1})))["error"]["code"], -32602);
}

/// The results of a stream of the A2A protocol.
fn streamed(server: &Server, version: &str, method: &str, params: &Value) -> Vec<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 8, "method": method, "params": params}).to_string();
    let headers = [JSON, ("a2a-version", version), ("accept", "text/event-stream")];
    let (status, head, text) = server.raw("POST", "/a2a", &headers, &body);
    assert!(status == 200 && head.contains("text/event-stream"), "{head} {text}");
    let results = text.lines().filter_map(|l| l.strip_prefix("data:")).map(|data| {
        let json: Value = serde_json::from_str(data.trim()).unwrap();
        assert_eq!(json["id"], 8);
        json["result"].clone()
    });
    results.collect()
}

#[cfg(target_os = "linux")]
#[test]
fn tasks_of_the_a2a_protocol_are_streamed_and_listed() {
    let dir = folder();
    let args = ["greet.agent", "slow.lam", "--script", "s.json", "--journal", "j"];
    let server = Server::start(dir.path(), &args, None);
    let message = |skill: &str| json!({"message": {"messageId": "m", "role": "ROLE_USER", "contextId": "c7", "parts": [{"data": {"name": "Ada"}}], "metadata": {"skill": skill}}});
    assert_eq!(server.get("/.well-known/agent-card.json").1["capabilities"]["streaming"], true);

    let told = streamed(&server, "1.0", "SendStreamingMessage", &message("greet"));
    let kinds: Vec<&str> =
        told.iter().map(|r| r.as_object().unwrap().keys().next().unwrap().as_str()).collect();
    assert_eq!(kinds, ["task", "statusUpdate", "artifactUpdate", "statusUpdate"], "{told:?}");
    let task = &told[0]["task"];
    assert_eq!(task["contextId"], "c7");
    assert_eq!(
        told[1]["statusUpdate"]["status"]["message"]["parts"][0]["text"],
        "asks `scripted` for `greeting`"
    );
    assert_eq!(told[2]["artifactUpdate"]["artifact"]["parts"][0]["text"], "Hello, Ada");
    assert_eq!(told[3]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(told[3]["statusUpdate"]["taskId"], task["id"]);

    let old = streamed(&server, "0.3", "message/stream", &message("greet"));
    let kinds: Vec<&str> = old.iter().map(|r| r["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task", "status-update", "artifact-update", "status-update"], "{old:?}");
    let finals: Vec<&Value> = old.iter().map(|r| &r["final"]).collect();
    assert_eq!(finals, [&Value::Null, &json!(false), &Value::Null, &json!(true)]);

    // Somebody comes later, and sees how it ends.
    let (_, begun) = server.post(
        "/a2a",
        &json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {
            "message": {"parts": [{"kind": "text", "text": "x"}], "metadata": {"skill": "main"}}, "configuration": {"blocking": false}}}),
    );
    let id = begun["result"]["id"].as_str().unwrap().to_string();
    until(|| sleeps(dir.path()));
    let body =
        json!({"jsonrpc": "2.0", "id": 8, "method": "SubscribeToTask", "params": {"id": id}}).to_string();
    let mut watched = BufReader::new(server.send("POST", "/a2a", &[JSON, ("a2a-version", "1.0")], &body));
    let (watched, first) = bounded("the first event", move || {
        let mut line = String::new();
        while !line.starts_with("data:") {
            line.clear();
            assert!(watched.read_line(&mut line).unwrap() > 0, "the stream ends");
        }
        (watched, line)
    });
    assert!(first.contains("TASK_STATE_WORKING") && first.contains(&id), "{first}");
    let cancel = json!({"jsonrpc": "2.0", "id": 2, "method": "tasks/cancel", "params": {"id": id}});
    assert_eq!(server.post("/a2a", &cancel).1["result"]["status"]["state"], "canceled");
    let rest = bounded("the stream ends", move || {
        let mut watched = watched;
        let mut rest = String::new();
        watched.read_to_string(&mut rest).unwrap();
        rest
    });
    assert!(rest.contains("TASK_STATE_CANCELED"), "{rest}");
    // It has ended: there is nothing to follow.
    let (_, _, over) = server.raw("POST", "/a2a", &[JSON, ("a2a-version", "1.0")], &body);
    assert!(over.contains("-32004"), "{over}");

    let list = |params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 3, "method": "ListTasks", "params": params}).to_string();
        let (_, _, text) = server.raw("POST", "/a2a", &[JSON, ("a2a-version", "1.0")], &body);
        serde_json::from_str::<Value>(&text).unwrap()["result"].clone()
    };
    let first = list(json!({"pageSize": 2}));
    assert_eq!((first["totalSize"].as_u64(), first["tasks"][0]["id"].as_str()), (Some(3), Some(&*id)));
    let second = list(json!({"pageSize": 2, "pageToken": first["nextPageToken"]}));
    assert_eq!(second["tasks"][0]["id"], task["id"]);
    assert_eq!((second["tasks"].as_array().unwrap().len(), second["nextPageToken"].as_str()), (1, Some("")));
    assert_eq!(list(json!({"contextId": "c7"}))["totalSize"], 2);
    assert_eq!(list(json!({"status": "TASK_STATE_CANCELED"}))["totalSize"], 1);
}
