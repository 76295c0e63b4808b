//! `entail serve` with a journal: runs and questions that outlive the server, and what is said of them
//! elsewhere.
#![cfg(feature = "serve")]

use crate::serving::{APPROVER, CALLERS, JSON, Server, TOKEN, bounded, folder, until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

const RUNS: &str = "/v1/pipelines/main/runs";

/// Begins a run that nobody waits for; gives its path.
fn begin(server: &Server, body: &str) -> String {
    let (status, head, text) = server.raw("POST", RUNS, &[JSON, ("prefer", "respond-async")], body);
    assert_eq!(status, 202, "{text}");
    let location = head.lines().find_map(|l| l.to_lowercase().strip_prefix("location: ").map(str::to_string));
    location.unwrap()
}

/// Begins a payment, and waits until somebody is asked about it; gives the path of the run, and that of the
/// question.
fn ask(server: &Server) -> (String, String) {
    let run = begin(server, r#"{"to": "bob"}"#);
    let waits = server.until(&run, |r| r["status"] == "waiting");
    (run, format!("/v1/approvals/{}", waits["waiting"][0]["request"].as_str().unwrap()))
}

fn payments(dir: &Path) -> usize {
    std::fs::read_to_string(dir.join("ledger")).unwrap_or_default().lines().count()
}

const SERVED: [&str; 3] = ["pay.lam", "--journal", "j"];

/// A call without arguments is asked about under a secret condition: that it is asked tells the condition.
#[test]
fn a_question_is_shown_only_to_those_who_may_know_that_it_is_asked() {
    let dir = folder();
    let program = "tool vault() -> String reads secret { exec \"sh\" \"-c\" \"echo 4711\" }\n\
        tool alarm() -> String writes { exec \"sh\" \"-c\" \"echo rung >> ledger; echo rung\" }\n\
        pipeline main(to: String) -> String {\n\
            let a = run vault with {};\n\
            if a == \"4711\" { let r = run alarm with {}; }\n\
            return to;\n\
        }\n";
    std::fs::write(dir.path().join("p.agent"), program).unwrap();
    let policy = "[tools.alarm]\neffect = \"write\"\napprove = true\ncontrol = \"secret\"\n";
    std::fs::write(dir.path().join("policy.toml"), policy).unwrap();
    let low = "[callers.low]\ntoken_sha256 = \"53b3311461fdefa98c03a55a60eb6d5c707eca648cd3ae4691f5e41d1502a674\"\n\
        roles = [\"approve\"]\nclearance = \"untrusted\"\n";
    let settings = format!("policy = \"policy.toml\"\n{CALLERS}{low}");
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let server = Server::start(dir.path(), &["p.agent", "--journal", "j"], None);
    let run = begin(&server, r#"{"to": "x"}"#);
    until(|| !server.questions().as_array().unwrap().is_empty());
    let question = server.questions()[0]["request"].as_str().unwrap().to_string();
    let of_low = "planted-low-approver-0123";
    assert_eq!(server.get_as(of_low, "/v1/approvals"), (200, json!([])));
    let path = format!("/v1/approvals/{question}");
    let (status, said) = server.post_as(of_low, &path, &json!({"decision": "approve"}));
    assert_eq!(status, 404, "{said}");
    assert_eq!(server.decide(&path, &json!({"decision": "approve"})).0, 200);
    until(|| payments(dir.path()) == 1);
    // Who decided, and how that is known, is there to be read.
    let name = run.rsplit('/').next().unwrap().to_string();
    server.until(&run, |r| r["status"] == "done");
    drop(server);
    let read = |format: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_entail"));
        let args = [&["runs", "--journal", "j", "show", &name], format].concat();
        let out = command.args(args).current_dir(dir.path()).output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap()
    };
    let shown = read(&[]);
    assert!(shown.contains("\"name\":\"boss\"") && shown.contains("\"via\":\"caller\""), "{shown}");
    let object: Value = serde_json::from_str(&read(&["--format", "json"])).unwrap();
    let steps = object["steps"].as_array().unwrap();
    let by: Vec<&Value> = steps.iter().map(|s| &s["response"]["by"]).filter(|by| !by.is_null()).collect();
    assert_eq!(by, [&json!({"name": "boss", "via": "caller"})], "{object}");
}

/// The usage of a caller's day is known to the next server, also if the one before was killed.
#[test]
fn limits_of_a_day_outlive_the_server() {
    let dir = folder();
    let entries = format!("[callers.local]\nlimits = {{ calls_per_day = 2 }}\n{CALLERS}");
    std::fs::write(dir.path().join("entail.toml"), entries).unwrap();
    let greet = "/v1/pipelines/greet/runs";
    let args = ["greet.agent", "--script", "s.json", "--journal", "j"];
    for _ in 0..2 {
        let server = Server::start(dir.path(), &args, None);
        let (status, answer) = server.post(greet, &json!({"name": "Ada"}));
        assert_eq!(status, 200, "{answer}");
        drop(server);
    }
    let server = Server::start(dir.path(), &args, None);
    let (status, answer) = server.post(greet, &json!({"name": "Ada"}));
    assert_eq!(status, 429, "{answer}");
    assert!(answer.to_string().contains("calls of models of today"), "{answer}");
    drop(server);
    // Without a journal nobody knows, and the server says so.
    let server = Server::start(dir.path(), &args[..3], None);
    assert_eq!(server.post(greet, &json!({"name": "Ada"})).0, 200);
    let (_, said) = server.end();
    assert!(said.contains("without `--journal`, daily limits start over"), "{said}");
}

/// A plan that waits in a tool and then for an approver, after one that ended with an error. The servers
/// after the first one have a planner that writes nothing of use, so it must not be asked again.
#[test]
fn a_plan_goes_on_where_it_was_when_its_server_was_killed() {
    let dir = folder();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let plan = "[plan]\ntools = [\"tools.agent\"]\nreplan_errors = 1\n[callers.local]\ninput = \"trusted\"\n\
                clearance = \"any\"\n";
    write("entail.toml", &format!("policy = \"policy.toml\"\n{plan}{CALLERS}"));
    write(
        "policy.toml",
        "[tools.pay]\neffect = \"write\"\n[tools.sign]\neffect = \"write\"\napprove = true\n",
    );
    let tools = r#"tool read_bill(path: String) -> String reads untrusted { exec "sh" "-c" "echo r >> reads; printf 'Due 98'" }
tool pay(recipient: String, amount: Number) -> String writes { exec "sh" "-c" "echo paid >> ledger" }
tool sign(name: String) -> String writes { exec "sh" "-c" "echo signed >> signed" }
tool wait() -> String reads untrusted { exec "sh" "-c" "echo w >> waits; test -e go || sleep 60; printf ' done'" }
"#;
    write("tools.agent", tools);
    let fails = "pay(\"DE12\", 98)\nbill = read_bill(\"bill.txt\")\nprint(int(bill))";
    let waits =
        "pay(\"DE12\", 98)\nbill = read_bill(\"bill.txt\")\nend = wait()\nsign(\"me\")\nprint(bill + end)";
    write("first.json", &json!([fails, waits]).to_string());
    write("later.json", &json!([{"repeat": true, "reply": "x = = 1"}]).to_string());
    let count =
        |file: &str| std::fs::read_to_string(dir.path().join(file)).unwrap_or_default().lines().count();
    let serve = |script| Server::start(dir.path(), &["--journal", "j", "--script", script], None);

    let server = serve("first.json");
    let path = "/v1/pipelines/plan/runs";
    let (status, head, text) =
        server.raw("POST", path, &[JSON, ("prefer", "respond-async")], "\"Pay the bill\"");
    assert_eq!(status, 202, "{text}");
    let run = head.lines().find_map(|l| l.to_lowercase().strip_prefix("location: ").map(str::to_string));
    let run = run.unwrap();
    until(|| count("waits") == 1);
    // Without a word, in the middle of a call that only reads.
    drop(server);
    write("go", "");

    let server = serve("later.json");
    let asked = server.until(&run, |r| r["status"] == "waiting");
    assert_eq!(count("waits"), 2);
    // And while it waits for somebody.
    drop(server);
    let server = serve("later.json");
    let again = server.until(&run, |r| r["status"] == "waiting");
    assert_eq!(asked["waiting"][0]["request"], again["waiting"][0]["request"]);
    let question = format!("/v1/approvals/{}", again["waiting"][0]["request"].as_str().unwrap());
    assert_eq!(server.decide(&question, &json!({"decision": "approve"})).0, 200);
    let done = server.until(&run, |r| r["status"] == "done");
    let outcome = &done["outcome"];
    assert_eq!(outcome["result"], "Due 98 done", "{done}");
    assert_eq!(outcome["replans"][0]["code"], "ValueError", "{done}");
    // Each call was made once, but the one that was interrupted; the second plan was given the results of
    // the first.
    let calls = ["ledger", "reads", "waits", "signed"].map(count);
    assert_eq!(calls, [1, 1, 2, 1]);
    // Both plans are the run's.
    let usage = &outcome["usage"];
    assert_eq!((&usage["modelCalls"], &usage["toolCalls"]), (&json!(2), &json!(4)), "{done}");
    drop(server);
    // A server that comes after the end knows it, and does nothing again.
    let server = serve("later.json");
    assert_eq!(server.get(&run).1["outcome"]["result"], "Due 98 done");
    assert_eq!(["ledger", "reads", "waits", "signed"].map(count), calls);
    drop(server);
    // With other tools it is another program.
    assert_eq!(server_warns_of_another_plan(dir.path(), tools), (1, true));
}

/// Begins a plan that waits, kills its server, and lets the next one have another policy. Gives the number of
/// calls that were made, and whether the server says that it doesn't resume the run.
fn server_warns_of_another_plan(dir: &Path, tools: &str) -> (usize, bool) {
    std::fs::remove_file(dir.join("go")).unwrap();
    std::fs::remove_file(dir.join("waits")).unwrap();
    std::fs::write(dir.join("one.json"), json!(["print(wait())"]).to_string()).unwrap();
    let server = Server::start(dir, &["--journal", "j", "--script", "one.json"], None);
    let (status, _, text) =
        server.raw("POST", "/v1/pipelines/plan/runs", &[JSON, ("prefer", "respond-async")], "\"Wait\"");
    assert_eq!(status, 202, "{text}");
    let calls = || std::fs::read_to_string(dir.join("waits")).unwrap_or_default().lines().count();
    until(|| calls() == 1);
    drop(server);
    std::fs::write(dir.join("go"), "").unwrap();
    std::fs::write(
        dir.join("tools.agent"),
        tools.replace("wait() -> String reads untrusted", "wait() -> String reads secret"),
    )
    .unwrap();
    let server = Server::start(dir, &["--journal", "j", "--script", "one.json"], None);
    std::thread::sleep(std::time::Duration::from_secs(2));
    let (_, said) = server.end();
    (calls(), said.contains("the program has changed since run"))
}

#[test]
fn a_run_that_waits_survives_its_server_and_is_answered_once() {
    let dir = folder();
    let server = Server::start(dir.path(), &SERVED, None);
    let (run, question) = ask(&server);
    // Without a word.
    drop(server);

    // The next server resumes it by itself; the question is the same.
    let server = Server::start(dir.path(), &SERVED, None);
    let waits = server.until(&run, |r| r["status"] == "waiting");
    assert!(question.ends_with(waits["waiting"][0]["request"].as_str().unwrap()), "{waits}");
    assert_eq!(server.questions().as_array().unwrap().len(), 1);
    // Nobody else's answer counts.
    for (name, status) in [("0123456789abcdef0123", 404), ("", 404)] {
        let bearer = format!("Bearer {APPROVER}");
        let headers = [JSON, ("authorization", &*bearer)];
        let path = format!("/v1/approvals/{name}");
        assert_eq!(server.raw("POST", &path, &headers, r#"{"decision": "approve"}"#).0, status);
    }
    let short = &question[..question.len() - 4];
    assert_eq!(
        server.decide(short, &json!({"decision": "approve"})).0,
        404,
        "a beginning of a name is no name"
    );
    assert_eq!(server.decide(&question, &json!({"decision": "approve", "to": "mallory"})).0, 422);
    assert_eq!(server.decide(&question, &json!({"decision": "approve", "reason": "x"})).0, 422);
    assert_eq!(payments(dir.path()), 0);
    let (status, said) = server.decide(&question, &json!({"decision": "approve"}));
    assert_eq!((status, said["verdict"].as_str()), (200, Some("approved")), "{said}");
    let done = server.until(&run, |r| r["status"] == "done");
    assert_eq!(done["outcome"]["result"], "paid");
    for decision in ["approve", "deny"] {
        assert_eq!(server.decide(&question, &json!({"decision": decision})).0, 409);
    }
    let resume = |run: &str| server.raw("POST", &format!("{run}/resume"), &[], "").0;
    assert_eq!((resume(&run), resume("/v1/runs/none")), (409, 404));
    drop(server);

    // What has ended is known to whoever comes later.
    let server = Server::start(dir.path(), &SERVED, None);
    assert_eq!(server.get(&run).1["outcome"]["result"], "paid");
    assert_eq!(server.get("/v1/runs").1[0]["status"], "done");
    assert_eq!(server.get(&run[..run.len() - 3]).0, 404);
    assert_eq!(payments(dir.path()), 1);
}

#[test]
fn an_answer_that_finds_no_server_at_work_resumes_the_run() {
    let dir = folder();
    let server = Server::start(dir.path(), &SERVED, None);
    let (first, question) = ask(&server);
    let (second, other) = ask(&server);
    drop(server);
    let args = [&SERVED[..], &["--no-resume"]].concat();
    let server = Server::start(dir.path(), &args, None);
    assert_eq!(server.get(&first).1["status"], "waiting");
    assert_eq!(server.get("/health").1["waiting"], 0);
    let (status, said) = server.decide(&question, &json!({"decision": "approve"}));
    assert_eq!((status, &said["resumed"]), (200, &json!(true)), "{said}");
    assert_eq!(server.until(&first, |r| r["status"] == "done")["outcome"]["result"], "paid");
    // And the other way round: first it goes on, then it is answered.
    assert_eq!(server.raw("POST", &format!("{second}/resume"), &[], "").0, 202);
    server.until("/health", |h| h["waiting"] == 1);
    assert_eq!(server.raw("POST", &format!("{second}/resume"), &[], "").0, 409);
    let (status, said) = server.decide(&other, &json!({"decision": "deny", "reason": "not to bob"}));
    assert_eq!((status, &said["resumed"]), (200, &json!(false)), "{said}");
    let failed = server.until(&second, |r| r["status"] == "failed");
    assert!(failed.to_string().contains("it was refused: not to bob"), "{failed}");
    assert_eq!(payments(dir.path()), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_is_told_to_end_leaves_what_waits_to_the_next() {
    let dir = folder();
    let server = Server::start(dir.path(), &[&SERVED[..], &["--grace", "3600"]].concat(), None);
    let (run, question) = ask(&server);
    // Somebody who begins a request and does not end it keeps nobody waiting.
    let mut half = std::net::TcpStream::connect(&server.address).unwrap();
    half.write_all(b"GET /health HTTP/1.1\r\nhost:").unwrap();
    let (status, said) = server.end();
    assert_eq!(status, Some(0), "{said}");
    drop(half);

    // The program is another one by then: what was approved of the old one is not done by the new one.
    let pay = std::fs::read_to_string(dir.path().join("pay.lam")).unwrap();
    std::fs::write(dir.path().join("pay.lam"), pay.replace("tool[pay] x", "tool[pay] {to: \"mallory\"}"))
        .unwrap();
    let mut server = Server::start(dir.path(), &SERVED, None);
    let said = server.line_with("cannot resume run");
    assert!(said.contains("the program has changed"), "{said}");
    let (status, _, refused) = server.raw("POST", &format!("{run}/resume"), &[], "");
    assert!(status == 409 && refused.contains("the program has changed"), "{refused}");
    let (_, answered) = server.decide(&question, &json!({"decision": "approve"}));
    assert_eq!(answered["resumed"], false);
    drop(server);

    std::fs::write(dir.path().join("pay.lam"), pay).unwrap();
    // That answer was in the memory of a server that is gone, so it is asked for again.
    let server = Server::start(dir.path(), &SERVED, None);
    server.until(&run, |r| r["status"] == "waiting");
    assert_eq!(payments(dir.path()), 0);
    assert_eq!(server.decide(&question, &json!({"decision": "approve"})).0, 200);
    assert_eq!(server.until(&run, |r| r["status"] == "done")["outcome"]["result"], "paid");
    assert_eq!(payments(dir.path()), 1);
}

/// A call that changes the world was under way when the server was killed: nobody knows whether it has
/// happened, so somebody has to decide.
#[cfg(target_os = "linux")]
#[test]
fn a_call_that_was_under_way_is_decided_by_a_person() {
    let dir = folder();
    let slow = r#"tool pay(to: Str) -> Str write by {exec: ["sh", "-c", "echo paid >> ledger; while [ ! -e go ]; do sleep 0.02; done; echo paid"]}
\x. tool[pay] x
"#;
    std::fs::write(dir.path().join("pay.lam"), slow).unwrap();
    // Whoever decides about a call that was under way is told which it was.
    let local = format!("[callers.local]\ninput = \"trusted\"\nclearance = \"any\"\n{CALLERS}");
    std::fs::write(dir.path().join("entail.toml"), local).unwrap();
    let server = Server::start(dir.path(), &SERVED, None);
    let run = begin(&server, r#"{"to": "bob"}"#);
    until(|| payments(dir.path()) == 1);
    drop(server);
    std::fs::write(dir.path().join("go"), "").unwrap();

    let server = Server::start(dir.path(), &SERVED, None);
    let stopped = server.until(&run, |r| r["status"] == "failed");
    assert!(stopped.to_string().contains("pay"), "{stopped}");
    let resume = format!("{run}/resume");
    assert_eq!(server.post(&resume, &json!({"unfinished": "perhaps"})).0, 422);
    assert_eq!(payments(dir.path()), 1);
    assert_eq!(server.post(&resume, &json!({"unfinished": "retry"})).0, 202);
    assert_eq!(server.until(&run, |r| r["status"] == "done")["outcome"]["result"], "paid");
    assert_eq!(payments(dir.path()), 2);
}

#[test]
fn a_question_expires() {
    let dir = folder();
    let settings = format!("[limits]\napproval = 0.3\n{CALLERS}");
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let server = Server::start(dir.path(), &SERVED, None);
    let (run, question) = ask(&server);
    let failed = server.until(&run, |r| r["status"] == "failed");
    assert!(failed.to_string().contains("it was not approved in time"), "{failed}");
    let (status, said) = server.decide(&question, &json!({"decision": "approve"}));
    assert_eq!(status, 409, "{said}");
    assert_eq!(server.questions(), json!([]));
    assert_eq!(payments(dir.path()), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn who_waits_for_approval_takes_no_place_and_who_is_one_too_many_is_told() {
    let dir = folder();
    let slow = r#"
tool nap() -> String reads { exec "sh" "-c" "sleep 60" }
pipeline nap_now(x: String) -> String { let a = run nap with {}; return a; }
"#;
    std::fs::write(dir.path().join("nap.agent"), slow).unwrap();
    let server =
        Server::start(dir.path(), &["pay.lam", "nap.agent", "--journal", "j", "--max-runs", "1"], None);
    let (first, question) = ask(&server);
    let (second, _) = ask(&server);
    server.until("/health", |h| h["running"] == 0 && h["waiting"] == 2);
    let napping = "/v1/pipelines/nap_now/runs";
    let (status, _, text) = server.raw("POST", napping, &[JSON, ("prefer", "respond-async")], r#"{"x": ""}"#);
    assert_eq!(status, 202, "{text}");
    let (status, head, text) = server.raw("POST", napping, &[JSON], r#"{"x": ""}"#);
    assert!(status == 429 && head.to_lowercase().contains("retry-after: 1"), "{head}");
    assert!(text.contains("one is active") && text.contains("try again later"), "{text}");
    // Who was there before goes on, however many there are.
    server.decide(&question, &json!({"decision": "approve"}));
    server.until(&first, |r| r["status"] == "done");
    assert_eq!(server.get(&second).1["status"], "waiting");
}

#[test]
fn approval_requires_token() {
    let dir = folder();
    let server = Server::start(dir.path(), &SERVED, Some(TOKEN));
    let bearer = format!("Bearer {TOKEN}");
    let headers = [JSON, ("authorization", &*bearer)];
    let (_, _, text) = server.raw(
        "POST",
        RUNS,
        &[&headers[..], &[("prefer", "respond-async")]].concat(),
        r#"{"to": "bob"}"#,
    );
    let run = serde_json::from_str::<Value>(&text).unwrap()["run"].as_str().unwrap().to_string();
    let status = format!("/v1/runs/{run}");
    until(|| server.get_as(TOKEN, &status).1["status"] == "waiting");
    let waiting = server.questions();
    let question = waiting[0]["request"].as_str().unwrap();
    let path = format!("/v1/approvals/{question}");
    let approve = r#"{"decision": "approve"}"#;
    for wrong in
        ["", "Bearer ", "Bearer planted-token-012", "bearer planted-token-01234", &format!("Basic {TOKEN}")]
    {
        assert_eq!(server.raw("POST", &path, &[JSON, ("authorization", wrong)], approve).0, 401, "{wrong}");
    }
    for path in [&*path, "/v1/runs", "/openapi.json", "/a2a", &format!("/v1/runs/{run}/resume")] {
        assert_eq!(server.raw("POST", path, &[JSON], approve).0, 401, "{path}");
    }
    assert_eq!(payments(dir.path()), 0);
    // The token that starts runs does not approve their calls.
    assert_eq!(server.raw("POST", &path, &headers, approve).0, 403);
    assert_eq!(payments(dir.path()), 0);
    assert_eq!(server.decide(&path, &json!({"decision": "approve"})).0, 200);
    until(|| payments(dir.path()) == 1);
    let (_, _, card) = server.raw("GET", "/.well-known/agent-card.json", &[], "");
    assert!(card.contains("securityRequirements") && !card.contains(TOKEN), "{card}");
    let (status, said) = server.end();
    assert_eq!(status, Some(0));
    assert!(said.contains("401") && !said.contains("planted"), "{said}");
}

/// Takes what is posted, whatever it is, and answers with this text; gives its address and all that it got.
fn receiver(answer: String) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Arc::new(Mutex::new(Vec::new()));
    let all = got.clone();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                let text = String::from_utf8_lossy(&bytes).to_lowercase();
                if let Some((head, body)) = text.split_once("\r\n\r\n") {
                    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
                    if body.len() >= length.map_or(0, |n| n.trim().parse().unwrap()) {
                        break;
                    }
                }
                match stream.read(&mut buffer).unwrap_or(0) {
                    0 => break,
                    n => bytes.extend_from_slice(&buffer[..n]),
                }
            }
            all.lock().unwrap().extend_from_slice(&bytes);
            let head =
                "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length";
            let _ = stream.write_all(format!("{head}: {}\r\n\r\n{answer}", answer.len()).as_bytes());
        }
    });
    (address, got)
}

/// Everything that is written in a directory.
fn written(dir: &Path, out: &mut Vec<u8>) {
    for path in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
        match path.is_dir() {
            true => written(&path, out),
            false => out.extend(std::fs::read(path).unwrap()),
        }
    }
}

/// A model that tells its key to everybody, and a tool that tells what it finds in its environment.
#[test]
fn secrets_are_in_no_answer_log_journal_trace_or_metric() {
    const KEY: &str = "sk-planted-0zq7xw2rt9lm4kp8vb3nc";
    const OTHER: &str = "planted-other-4fT9zQ2LwX7cV5bN8m";
    let said = format!("your key is {KEY} and {OTHER} or {}", KEY.replace('p', "\\u0070"));
    let completion = format!(
        r#"{{"choices": [{{"index": 0, "message": {{"role": "assistant", "content": "{said}"}}, "finish_reason": "stop"}}], "usage": {{"prompt_tokens": 1, "completion_tokens": 1}}}}"#
    );
    let error = format!(r#"{{"error": {{"message": "{said}"}}}}"#);
    for (answer, log) in
        [(completion.clone(), "json"), (error.clone(), "json"), (completion, "text"), (error, "text")]
    {
        let (model, asked) = receiver(answer);
        let (collector, collected) = receiver("{}".into());
        let dir = folder();
        let settings = format!(
            "model = \"m\"\n[models.m]\nprovider = \"openai\"\nbase_url = \"{model}/v1\"\nkey_env = \"M_KEY\"\nretries = 0\n"
        );
        std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
        let mut args = vec!["greet.agent", "--journal", "j", "--otlp", &collector];
        if log == "json" {
            args.extend(["--log", "json"]);
        }
        let environment = [
            ("M_KEY", KEY),
            ("OTHER_SECRET", OTHER),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
            ("ENTAIL_SERVE_TOKEN", TOKEN),
        ];
        let server = Server::with(dir.path(), &args, &environment);
        let bearer = format!("Bearer {TOKEN}");
        let path = "/v1/pipelines/greet/runs";
        let mut all = Vec::new();
        for extra in [&[][..], &[("accept", "text/event-stream")], &[("prefer", "respond-async")]] {
            let headers = [&[JSON, ("authorization", &*bearer), ("traceparent", TRACE)][..], extra].concat();
            let (_, head, body) = server.raw("POST", path, &headers, r#"{"name": "Ada"}"#);
            all.extend(format!("{head}{body}").into_bytes());
        }
        // A token in the wrong place.
        server.raw("GET", "/v1/pipelines", &[("authorization", TOKEN)], "");
        until(|| spans(&collected) >= 3);
        let (status, log) = server.end();
        assert_eq!(status, Some(0), "{log}");
        assert!(
            asked.lock().unwrap().windows(KEY.len()).any(|w| w == KEY.as_bytes()),
            "the model gets its key"
        );
        let traces = collected.lock().unwrap().clone();
        let text = String::from_utf8_lossy(&traces).into_owned();
        assert!(
            text.contains("0af7651916cd43dd8448eb211c80319c"),
            "the span of the client's is the parent: {text}"
        );
        assert!(text.contains("[redacted]") && log.contains("greet"), "{log}");
        all.extend(traces);
        all.extend(log.into_bytes());
        written(dir.path(), &mut all);
        assert!(!String::from_utf8_lossy(&all).contains("planted"), "{}", String::from_utf8_lossy(&all));
    }
}

/// Results of runs, spans of their requests and the numbers of the server tell the same tokens and the same
/// money, to the last digit.
#[test]
fn results_spans_and_metrics_agree_on_money() {
    const RUNS: usize = 6;
    let completion = r#"{"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1003, "completion_tokens": 17, "prompt_tokens_details": {"cached_tokens": 600}}}"#;
    let (model, _) = receiver(completion.into());
    let (collector, collected) = receiver("{}".into());
    let dir = folder();
    let settings = format!(
        "model = \"m\"\n[models.m]\nbase_url = \"{model}/v1\"\nprice = {{ input = 3, output = 15, cached = 0.3 }}\n\
         [telemetry]\nendpoint = \"{collector}\"\nqueue = 4096\n"
    );
    std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
    let server = Server::start(dir.path(), &["greet.agent"], None);
    // 403 tokens at 3 dollars for a million, 600 at 0.3 and 17 at 15.
    let cost = 0.001_644;
    for _ in 0..RUNS {
        let (status, body) = server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"}));
        assert_eq!((status, body["usage"]["usd"].as_f64()), (200, Some(cost)), "{body}");
    }
    until(|| spans(&collected) >= RUNS);
    server.until("/health", |health| health["running"] == 0);
    let number = |text: &str, name: &str| {
        let line = text.lines().find(|l| l.starts_with(name));
        let value = line.and_then(|l| l.rsplit_once(' ')?.1.parse::<f64>().ok());
        value.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let metrics = || server.raw("GET", "/metrics", &[], "").2;
    until(|| number(&metrics(), "entail_telemetry_pending") == 0.0);
    let text = metrics();
    assert_eq!(number(&text, "entail_cost_usd_total{"), 0.009_864, "{text}");
    let traces = String::from_utf8_lossy(&collected.lock().unwrap()).into_owned();
    let told = |attribute: &str| traces.matches(attribute).count();
    // Of the question, and of the run.
    assert_eq!(told(&format!(r#"{{"key":"entail.cost.usd","value":{{"doubleValue":{cost}}}}}"#)), 2 * RUNS);
    assert_eq!(told(r#"{"key":"gen_ai.usage.cache_read.input_tokens","value":{"intValue":"600"}}"#), RUNS);
    // Every span that was sent has arrived, and none was lost.
    let outcome = |o: &str| {
        let name = format!(r#"entail_telemetry_items_total{{signal="spans",outcome="{o}"}}"#);
        number(&text, &name)
    };
    assert_eq!(outcome("sent"), told(r#""spanId":"#) as f64, "{text}");
    assert_eq!((outcome("rejected"), outcome("failed"), outcome("dropped")), (0.0, 0.0, 0.0), "{text}");
    server.end();
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Returns the number of runs exported as traces.
fn spans(collected: &Mutex<Vec<u8>>) -> usize {
    let got = collected.lock().unwrap();
    String::from_utf8_lossy(&got).matches("invoke_agent greet.agent greet").count()
}

#[test]
fn a_log_of_objects_tells_what_happens_without_what_is_said() {
    let dir = folder();
    let server = Server::start(dir.path(), &["greet.agent", "--script", "s.json", "--log", "json"], None);
    server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"}));
    let (_, log) = server.end();
    let events: Vec<Value> = log.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["run", "asked", "answered", "result"], "{log}");
    assert!(events.iter().all(|e| e["run"] == events[0]["run"] && e["time"].is_number()), "{log}");
    assert!(!log.contains("Ada"), "{log}");

    let server = Server::start(dir.path(), &["greet.agent", "--script", "s.json"], None);
    server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"}));
    let (_, log) = server.end();
    assert!(log.contains(" greet done (1 model call, 0 tool calls, ") && !log.contains("Ada"), "{log}");
    assert!(log.lines().all(|l| l.chars().count() <= 100), "{log}");
    let refused = bounded("a server that could not do it", move || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_entail"));
        command.args(["serve", "greet.agent", "--script", "s.json", "--watch"]).current_dir(dir.path());
        command.output().unwrap()
    });
    assert_eq!(refused.status.code(), Some(2));
}
