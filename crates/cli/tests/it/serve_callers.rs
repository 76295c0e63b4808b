//! Callers of `entail serve`: who may do what, and what each is shown. Real processes, real connections.
#![cfg(feature = "serve")]

use crate::serving::{CALLERS, JSON, Server, TOKEN, bounded, folder};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A secret is read, and decides: what the result is, whether there is one, and how much is done on the way.
const PROGRAM: &str = r#"
tool vault() -> String reads secret { exec "sh" "-c" "cat vault" }
tool shout(text: String) -> String pure { builtin "text.upper" }
tool pay(to: String) -> String { exec "sh" "-c" "echo paid" }

pipeline value(x: String) -> String { let a = run vault with {}; return a; }
pipeline fails(x: String) -> String { let a = run vault with {}; assert a == "4711"; return a; }
pipeline differs(x: String) -> String { let a = run vault with {}; assert a == "same as nothing"; return x; }
pipeline works(x: String) -> String {
    let a = run vault with {};
    if a == "4711" { let b = run shout with { text: a }; let c = run shout with { text: b }; }
    return x;
}
pipeline pays(to: String) -> String { let a = run pay with { to: to }; return a; }
"#;

const SECRETS: [&str; 2] = ["4711", "planted-secret-of-another-length"];

/// Two ordinary callers, one that sees everything and is trusted, one that only starts, one that only
/// watches.
const ENTRIES: &str = r#"
[callers.ann]
token_env = "ANN_TOKEN"
[callers.ben]
token_env = "BEN_TOKEN"
[callers.high]
token_env = "HIGH_TOKEN"
input = "trusted"
clearance = "any"
[callers.starter]
token_env = "STARTER_TOKEN"
roles = ["start"]
limits = { runs_per_minute = 2 }
[callers.watcher]
token_env = "WATCHER_TOKEN"
roles = ["watch"]
"#;

const TOKENS: [(&str, &str); 5] = [
    ("ANN_TOKEN", "planted-ann"),
    ("BEN_TOKEN", "planted-ben"),
    ("HIGH_TOKEN", "planted-high"),
    ("STARTER_TOKEN", "planted-starter"),
    ("WATCHER_TOKEN", "planted-watcher"),
];

fn world(secret: &str, entries: &str) -> tempfile::TempDir {
    let dir = folder();
    std::fs::write(dir.path().join("p.agent"), PROGRAM).unwrap();
    std::fs::write(dir.path().join("vault"), secret).unwrap();
    std::fs::write(dir.path().join("entail.toml"), format!("{entries}{CALLERS}")).unwrap();
    dir
}

fn served(dir: &Path) -> Server {
    Server::with(dir, &["p.agent", "--journal", "j"], &TOKENS)
}

fn run_of(pipeline: &str) -> String {
    format!("/v1/pipelines/{pipeline}/runs")
}

/// Without what no label covers: names of runs, and times.
fn untimed(text: &str) -> String {
    fn walk(json: &mut Value) {
        match json {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match name.as_str() {
                        "run" | "id" | "taskId" | "contextId" | "messageId" | "ms" | "timestamp" => {
                            *value = Value::Null;
                        }
                        _ => walk(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    let line = |line: &str| {
        let (head, data) = line.split_at(line.find(['{', '[']).unwrap_or(0));
        match serde_json::from_str::<Value>(data.trim()) {
            Ok(mut json) => {
                walk(&mut json);
                format!("{head}{json}")
            }
            Err(_) => line.to_string(),
        }
    };
    // The size of a chunk depends on the digits of a time.
    let is_size = |line: &&str| !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
    text.lines().filter(|l| !is_size(l)).map(line).collect::<Vec<_>>().join("\n")
}

/// Everything that a caller is told about runs of a pipeline, through every door.
fn told(server: &Server, token: &str, pipeline: &str) -> Vec<String> {
    let bearer = format!("Bearer {token}");
    let headers = [JSON, ("authorization", &*bearer)];
    let path = run_of(pipeline);
    let body = r#"{"x": "y", "to": "y"}"#;
    let body = if pipeline == "pays" { r#"{"to": "y"}"# } else { body.split(',').next().unwrap() };
    let body = if body.ends_with('}') { body.to_string() } else { format!("{body}}}") };
    let mut all = Vec::new();
    let (status, _, text) = server.raw("POST", &path, &headers, &body);
    let run = serde_json::from_str::<Value>(&text).unwrap()["run"].as_str().unwrap().to_string();
    all.push(format!("{status} {text}"));
    let events = [&headers[..], &[("accept", "text/event-stream")]].concat();
    all.push(server.raw("POST", &path, &events, &body).2);
    all.push(server.raw("GET", &format!("/v1/runs/{run}"), &headers, "").2);
    all.push(server.raw("GET", "/v1/runs", &headers, "").2);
    for (version, method) in [
        ("1.0", "SendMessage"),
        ("1.0", "SendStreamingMessage"),
        ("0.3", "message/send"),
        ("0.3", "message/stream"),
    ] {
        let data: Value = serde_json::from_str(&body).unwrap();
        let message = json!({"messageId": "m", "parts": [{"kind": "data", "data": data}], "metadata": {"skill": pipeline}});
        let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}});
        let headers = [&headers[..], &[("a2a-version", version)]].concat();
        all.push(server.raw("POST", "/a2a", &headers, &rpc.to_string()).2);
    }
    all.iter().map(|text| untimed(text)).collect()
}

#[test]
fn low_caller_view_is_independent_of_secrets() {
    let worlds = SECRETS.map(|secret| {
        let dir = world(secret, ENTRIES);
        let server = served(dir.path());
        let low = ["value", "fails", "differs", "works"].map(|p| (p, told(&server, "planted-ann", p)));
        let high = told(&server, "planted-high", "value");
        drop(server);
        // The next server knows no more.
        let server = served(dir.path());
        let kept = untimed(&server.get_as("planted-ann", "/v1/runs").1.to_string());
        (low, high, kept)
    });
    let [(low, high, kept), (low2, high2, kept2)] = worlds;
    for ((pipeline, told), (_, told2)) in low.iter().zip(&low2) {
        for (one, other) in told.iter().zip(told2) {
            assert_eq!(one, other, "{pipeline}");
            assert!(SECRETS.iter().all(|s| !one.contains(s)), "{pipeline}: {one}");
        }
    }
    assert_eq!(kept, kept2);
    let [value, fails, differs, works] = low.map(|(_, told)| told);
    for withheld in [&value, &fails, &differs] {
        assert!(
            withheld[0].starts_with("403 ") && withheld[0].contains("\"code\":\"withheld\""),
            "{withheld:?}"
        );
        assert!(withheld[2].contains("\"status\":\"withheld\""), "{}", withheld[2]);
        assert!(
            withheld[4].contains("TASK_STATE_FAILED") && withheld[4].contains("withheld"),
            "{}",
            withheld[4]
        );
    }
    // A run may work on a secret and have a public result; what it does with the secret is not there.
    assert!(works[0].starts_with("200 ") && works[0].contains("\"toolCalls\":0"), "{}", works[0]);
    assert!(works[1].contains("event: result") && !works[1].contains("shout"), "{}", works[1]);
    // Whoever may see it sees it, with its label.
    assert!(high[0].contains("4711") && high[0].contains(r#""label":["U","S"]"#), "{}", high[0]);
    assert!(high[4].contains(r#""ifc":{"integrity":"untrusted","confidentiality":[]}"#), "{}", high[4]);
    assert!(high2[1].contains(SECRETS[1]), "{}", high2[1]);
}

#[test]
fn a_policy_bounds_what_every_caller_sees() {
    let dir = world(SECRETS[0], &format!("policy = \"p.toml\"\n{ENTRIES}"));
    std::fs::write(dir.path().join("p.toml"), "[output]\nclearance = \"untrusted\"\n").unwrap();
    let server = served(dir.path());
    let high = told(&server, "planted-high", "value");
    assert!(high.iter().all(|text| !text.contains(SECRETS[0])), "{high:?}");
    let (_, log) = server.end();
    assert!(log.contains("withheld") && !log.contains(SECRETS[0]), "{log}");
}

#[test]
fn the_input_of_a_caller_has_its_label() {
    let dir = world(SECRETS[0], ENTRIES);
    let server = served(dir.path());
    let body = json!({"to": "bob"});
    let (status, refused) = server.post_as("planted-ann", &run_of("pays"), &body);
    assert_eq!((status, refused["error"]["code"].as_str()), (422, Some("flow")), "{refused}");
    let (status, paid) = server.post_as("planted-high", &run_of("pays"), &body);
    assert_eq!((status, paid["result"].as_str()), (200, Some("paid")), "{paid}");
    drop(server);
    // The user of this machine is a caller as well.
    let dir = world(SECRETS[0], "");
    assert_eq!(served(dir.path()).post(&run_of("pays"), &body).0, 422);
    let dir = world(SECRETS[0], "[callers.local]\ninput = \"trusted\"\n");
    assert_eq!(served(dir.path()).post(&run_of("pays"), &body).0, 200);
}

#[test]
fn runs_belong_to_their_caller() {
    let dir = world(SECRETS[0], ENTRIES);
    let server = served(dir.path());
    let (_, done) = server.post_as("planted-ann", &run_of("works"), &json!({"x": "y"}));
    let path = format!("/v1/runs/{}", done["run"].as_str().unwrap());
    assert_eq!(server.get_as("planted-ann", &path).0, 200);
    let task = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": done["run"]}});
    let nothing = |server: &Server, token: &str| {
        assert_eq!(server.get_as(token, &path).0, 404);
        assert_eq!(server.get_as(token, "/v1/runs").1, json!([]));
        assert_eq!(server.post_as(token, "/a2a", &task).1["error"]["code"], -32001);
    };
    for token in ["planted-ben", "planted-high", "planted-watcher"] {
        nothing(&server, token);
    }
    let cancel = format!("Bearer {}", "planted-ben");
    assert_eq!(server.raw("DELETE", &path, &[("authorization", &*cancel)], "").0, 404);
    assert_eq!(server.post_as("planted-ben", &format!("{path}/resume"), &json!({})).0, 404);
    drop(server);
    let server = served(dir.path());
    assert_eq!(server.get_as("planted-ann", &path).1["outcome"]["result"], "y");
    nothing(&server, "planted-ben");
}

#[test]
fn a_caller_does_what_its_roles_say() {
    let dir = world(SECRETS[0], ENTRIES);
    let server = served(dir.path());
    let body = json!({"x": "y"});
    let refused = |answer: (u16, Value), role: &str| {
        let said = answer.1["error"]["message"].as_str().unwrap_or_default().to_string();
        assert!(answer.0 == 403 && said.contains(&format!("`{role}`")), "{answer:?}");
    };
    refused(server.post_as("planted-watcher", &run_of("works"), &body), "start");
    refused(server.post_as(crate::serving::APPROVER, &run_of("works"), &body), "start");
    refused(server.get_as("planted-starter", "/v1/runs"), "watch");
    for token in ["planted-ann", "planted-high", "planted-starter", "planted-watcher"] {
        refused(server.get_as(token, "/v1/approvals"), "approve");
        refused(server.post_as(token, "/v1/approvals/x", &json!({"decision": "approve"})), "approve");
    }
    let rpc = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}});
    assert_eq!(server.post_as("planted-starter", "/a2a", &rpc).1["error"]["code"], -32080);
    // It gets its own answer all the same, as often as it may.
    for _ in 0..2 {
        assert_eq!(server.post_as("planted-starter", &run_of("works"), &body).1["result"], "y");
    }
    let (status, limited) = server.post_as("planted-starter", &run_of("works"), &body);
    assert_eq!((status, limited["error"]["code"].as_str()), (429, Some("limited")), "{limited}");
    assert_eq!(server.get("/health").1.get("running"), None);
    assert_eq!(server.get_as("planted-ann", "/health").1["open"], 0);
    assert_eq!(server.get_as("planted-starter", "/health").1.get("open"), None);
}

#[test]
fn a_name_counts_only_if_the_proxy_states_it() {
    let entries = "[serve]\nclient_name_header = \"x-client\"\n[callers.carl]\nclient_name = \"CN=carl\"\n";
    let dir = world(SECRETS[0], entries);
    let server = served(dir.path());
    let status = |headers: &[(&str, &str)]| server.raw("GET", "/v1/runs", headers, "").0;
    assert_eq!(status(&[("x-client", "CN=carl")]), 200);
    assert_eq!(status(&[("x-client", "CN=eve")]), 401);
    assert_eq!(status(&[("x-client", "CN=carl"), ("x-client", "CN=eve")]), 401);
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("x-client", "CN=carl"), ("authorization", "Bearer x")]), 401);
    // The token of the environment is a caller of its own.
    drop(server);
    let environment = [&TOKENS[..], &[("ENTAIL_SERVE_TOKEN", TOKEN)]].concat();
    let server = Server::with(dir.path(), &["p.agent"], &environment);
    assert_eq!(server.get_as(TOKEN, "/v1/runs").0, 200);
}

#[test]
fn a_fresh_token_is_shown_once_with_the_lines_of_its_caller() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["serve", "--new-token", "boss"]).current_dir(dir.path());
    let made = bounded("a token", move || command.output().unwrap());
    let (out, err) = (String::from_utf8(made.stdout).unwrap(), String::from_utf8(made.stderr).unwrap());
    let token = out.trim();
    assert!(token.starts_with("entail-") && token.len() == 7 + 64 && !err.contains(token), "{out} {err}");
    // What it prints makes the token a caller's.
    let lines: String = err.lines().skip_while(|l| !l.starts_with('[')).map(|l| format!("{l}\n")).collect();
    let dir = world(SECRETS[0], &lines.replace("boss", "ann"));
    let server = Server::with(dir.path(), &["p.agent"], &[]);
    assert_eq!(server.get_as(token, "/v1/runs").0, 200);
    assert_eq!(server.get("/v1/runs").0, 401);
}

/// The memory of a caller's runs is that caller's own.
#[test]
fn callers_share_no_memory() {
    let dir = world(SECRETS[0], ENTRIES);
    let counts = "store visits {count: Num = 0}\n\\x. mem (let n = (recall count) + 1 in let done = remember count n in n) visits\n";
    std::fs::write(dir.path().join("count.lam"), counts).unwrap();
    let server = Server::with(dir.path(), &["count.lam"], &TOKENS);
    let visit = |token: &str| server.post_as(token, &run_of("main"), &json!("x")).1["result"].clone();
    assert_eq!(
        [visit("planted-ann"), visit("planted-ann"), visit("planted-ben")],
        [json!(1), json!(2), json!(1)]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_answers_while_thousands_of_requests_are_begun_and_not_ended() {
    use std::io::Write;
    use std::net::TcpStream;
    let (wanted, mut half) = (3000, Vec::new());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX).min(8192);
    let raised = rustix::process::Rlimit { current: Some(most), maximum: limit.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let wanted = wanted.min(usize::try_from(most).unwrap() - 200);
    let dir = world(SECRETS[0], ENTRIES);
    let server = Server::with(dir.path(), &["p.agent", "--max-connections", "64"], &TOKENS);
    // One that is at work is not closed for another one.
    let bearer = ("authorization", "Bearer planted-ann");
    for n in 0..wanted {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let begun: &[u8] = match n % 3 {
            0 => b"",
            1 => b"POST /v1/pipelines/works/runs HTTP/1.1\r\nhost: x\r\ncontent-le",
            // Without a token the body is not waited for.
            _ => b"POST /v1/pipelines/works/runs HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{",
        };
        let _ = stream.write_all(begun);
        half.push(stream);
        if n % 1000 == 999 {
            assert_eq!(server.get("/health").0, 200, "after {n}");
        }
    }
    assert_eq!(server.get("/health").1["status"], "ok");
    let (status, _, text) = server.raw("POST", &run_of("works"), &[JSON, bearer], r#"{"x": "y"}"#);
    assert_eq!(status, 200, "{text}");
    drop(half);
}

#[test]
fn a_request_that_is_repeated_under_its_key_begins_one_run() {
    for journal in [&[][..], &["--journal", "j"]] {
        let dir = world(SECRETS[0], ENTRIES);
        let count = "tool count() -> String reads { exec \"sh\" \"-c\" \"echo x >> counted; wc -l < counted\" }\n\
                     pipeline counts(x: String) -> String { let n = run count with {}; return n; }\n";
        std::fs::write(dir.path().join("count.agent"), count).unwrap();
        let args = [&["count.agent"], journal].concat();
        let server = Server::with(dir.path(), &args, &TOKENS);
        let post = |server: &Server, token: &str, key: &str, body: &str, extra: &[(&str, &str)]| {
            let bearer = format!("Bearer {token}");
            let headers =
                [&[JSON, ("authorization", &*bearer), ("idempotency-key", key)][..], extra].concat();
            let (status, _, text) = server.raw("POST", &run_of("counts"), &headers, body);
            (status, text)
        };
        let (body, other) = (r#"{"x": "1"}"#, r#"{"x": "2"}"#);
        let first = post(&server, "planted-ann", "k1", body, &[]);
        assert_eq!(first.0, 200, "{}", first.1);
        assert_eq!(post(&server, "planted-ann", "k1", body, &[]), first);
        let (status, text) = post(&server, "planted-ann", "k1", other, &[]);
        assert!(status == 422 && text.contains("key_reused"), "{text}");
        // A key is its caller's.
        let theirs = post(&server, "planted-ben", "k1", other, &[]);
        assert!(theirs.0 == 200 && theirs.1 != first.1, "{}", theirs.1);
        assert_ne!(post(&server, "planted-ann", "k2", body, &[]).1, first.1);
        assert_eq!(post(&server, "planted-ann", "", body, &[]).0, 422);
        // Whoever does not wait finds the same run.
        let later = [("prefer", "respond-async")];
        let (status, begun) = post(&server, "planted-ann", "k1", body, &later);
        let run = serde_json::from_str::<Value>(&first.1).unwrap()["run"].clone();
        assert_eq!((status, &serde_json::from_str::<Value>(&begun).unwrap()["run"]), (202, &run));
        let counted = || std::fs::read_to_string(dir.path().join("counted")).unwrap().lines().count();
        assert_eq!(counted(), 3);
        if !journal.is_empty() {
            // The next server knows the key.
            drop(server);
            let server = Server::with(dir.path(), &args, &TOKENS);
            let again: Value =
                serde_json::from_str(&post(&server, "planted-ann", "k1", body, &[]).1).unwrap();
            assert_eq!((&again["run"], &again["result"]), (&run, &json!("1")));
            assert_eq!(counted(), 3);
        }
    }
}

/// Many ask at once under one key; one run answers all.
#[test]
fn a_key_holds_for_requests_at_once() {
    let dir = world(SECRETS[0], ENTRIES);
    let slow = "tool count() -> String reads { exec \"sh\" \"-c\" \"echo x >> counted; sleep 0.3; wc -l < counted\" }\n\
                pipeline counts(x: String) -> String { let n = run count with {}; return n; }\n";
    std::fs::write(dir.path().join("count.agent"), slow).unwrap();
    let server = Server::with(dir.path(), &["count.agent"], &TOKENS);
    let headers = [JSON, ("authorization", "Bearer planted-ann"), ("idempotency-key", "k")];
    let asked: Vec<_> =
        (0..8).map(|_| server.send("POST", &run_of("counts"), &headers, r#"{"x": "1"}"#)).collect();
    let answers: Vec<String> = asked
        .into_iter()
        .map(|s| crate::serving::read(s).split_once("\r\n\r\n").unwrap().1.to_string())
        .collect();
    assert!(
        answers[0].contains("\"result\":\"1\"") && answers.iter().all(|a| *a == answers[0]),
        "{answers:?}"
    );
}

/// `[output]` bounds the user of the command line, too: the same bytes and the same status, whatever a secret
/// is.
#[test]
fn the_local_user_is_shown_what_the_policy_lets_out() {
    let run = |dir: &Path, pipeline: &str, extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        command.args(["run", "p.agent", "--pipeline", pipeline, "y"]).args(extra).current_dir(dir);
        let done = bounded("a run", move || command.output().unwrap());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let worlds = SECRETS.map(|secret| {
        let dir = world(secret, "policy = \"p.toml\"\n");
        std::fs::write(dir.path().join("p.toml"), "[output]\nclearance = \"untrusted\"\n").unwrap();
        let mut told = Vec::new();
        for pipeline in ["value", "fails", "differs"] {
            for extra in [&[][..], &["--watch"], &["--verbose"], &["--log", "json"]] {
                let (status, out, err) = run(dir.path(), pipeline, extra);
                assert_eq!(status, Some(1), "{out} {err}");
                let (out, err) = (untimed(&out), untimed(&err));
                assert!(
                    err.contains("error[withheld]") && !err.contains(SECRETS[1]) && out.is_empty(),
                    "{out} {err}"
                );
                // Times are covered by nothing.
                if extra.is_empty() {
                    told.push(err);
                }
            }
            told.push(untimed(&run(dir.path(), pipeline, &["--format", "json"]).1));
        }
        let (status, out, err) = run(dir.path(), "works", &[]);
        assert_eq!((status, out.trim()), (Some(0), "\"y\""), "{err}");
        // Without the policy everything is shown.
        std::fs::write(dir.path().join("p.toml"), "").unwrap();
        assert!(run(dir.path(), "value", &[]).1.contains(secret));
        told
    });
    assert_eq!(worlds[0], worlds[1]);
}

/// Twenty runs at once over one server of the Model Context Protocol, which is this program itself: twenty
/// answers, one process. Another caller has another one.
#[cfg(feature = "mcp")]
#[test]
fn runs_of_a_caller_share_an_mcp_server() {
    let entries = format!(
        "[mcp.s]\ncommand = [\"sh\", \"-c\", \"echo started >> started; exec {} mcp q.agent\"]\n{ENTRIES}",
        env!("CARGO_BIN_EXE_entail")
    );
    let dir = world(SECRETS[0], &entries);
    let asks = "tool look(x: String) -> Any reads { mcp \"s\" \"run_looks\" }\n\
                pipeline asks(x: String) -> Any { let a = run look with { x: x }; return a; }\n";
    std::fs::write(dir.path().join("asks.agent"), asks).unwrap();
    std::fs::write(dir.path().join("q.agent"), "pipeline looks(x: String) -> String { return x; }\n")
        .unwrap();
    let server = Server::with(dir.path(), &["asks.agent"], &TOKENS);
    let headers = [JSON, ("authorization", "Bearer planted-ann")];
    let asked: Vec<_> = (0..20)
        .map(|n| server.send("POST", &run_of("asks"), &headers, &json!({"x": format!("y{n}")}).to_string()))
        .collect();
    for (n, stream) in asked.into_iter().enumerate() {
        let text = crate::serving::read(stream);
        let answer: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(answer["result"]["result"], format!("y{n}"), "{answer}");
    }
    let started = || std::fs::read_to_string(dir.path().join("started")).unwrap().lines().count();
    assert_eq!(started(), 1);
    assert_eq!(server.post_as("planted-ben", &run_of("asks"), &json!({"x": "y"})).1["result"]["result"], "y");
    assert_eq!(started(), 2);
}

/// The value of a series in the text of `/metrics`.
fn series(text: &str, name: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn metrics_are_for_the_caller_that_has_the_role_and_show_nothing_of_a_run() {
    let entries =
        format!("{ENTRIES}[callers.monitor]\ntoken_env = \"MONITOR_TOKEN\"\nroles = [\"metrics\"]\n");
    let dir = world(SECRETS[1], &entries);
    let tokens = [&TOKENS[..], &[("MONITOR_TOKEN", "planted-monitor")]].concat();
    let args = ["p.agent", "greet.agent", "pay.lam", "--script", "s.json", "--journal", "j"];
    let server = Server::with(dir.path(), &args, &tokens);
    let scrape = |token: &str| {
        let bearer = format!("Bearer {token}");
        server.raw("GET", "/metrics", &[("authorization", &*bearer)], "")
    };
    assert_eq!(server.raw("GET", "/metrics", &[], "").0, 401);
    let (status, _, body) = scrape("planted-ann");
    assert!(status == 403 && body.contains("metrics"), "{body}");
    let monitor = |path: &str| server.post_as("planted-monitor", path, &json!({"x": "1"})).0;
    assert_eq!(monitor("/v1/pipelines/value/runs"), 403);

    let run = |pipeline: &str, input: Value| {
        server.post_as("planted-ann", &format!("/v1/pipelines/{pipeline}/runs"), &input)
    };
    for _ in 0..2 {
        assert_eq!(run("greet", json!({"name": "Ada"})).0, 200);
    }
    assert_eq!(run("value", json!({"x": "1"})).0, 403);
    assert_eq!(run("works", json!({"x": "1"})).0, 200);
    let (status, head, text) = scrape("planted-monitor");
    assert_eq!(status, 200);
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    for (name, value) in [
        (r#"entail_runs{state="running"}"#, 0.0),
        ("entail_runs_limit", 64.0),
        ("entail_approvals_pending", 0.0),
        (r#"entail_runs_started_total{pipeline="greet"}"#, 2.0),
        (r#"entail_runs_ended_total{pipeline="greet",outcome="done"}"#, 2.0),
        (r#"entail_requests_total{gen_ai_operation_name="execute_tool",target="vault",status="ok"}"#, 2.0),
        (r#"entail_run_duration_seconds_count{pipeline="greet"}"#, 2.0),
        (r#"entail_http_requests_total{method="POST",route="/v1/pipelines/{name}/runs",status="200"}"#, 3.0),
        (r#"entail_http_requests_total{method="GET",route="/metrics",status="401"}"#, 1.0),
    ] {
        assert_eq!(series(&text, name), Some(value), "{name}: {text}");
    }
    let asked = text.lines().find(|l| l.starts_with(r#"entail_requests_total{gen_ai_operation_name="chat""#));
    assert!(asked.is_some_and(|line| line.ends_with(" 2")), "{text}");
    // Each family is described once, and each line is one of the format.
    for line in text.lines() {
        let is_value = |line: &str| line.rsplit_once(' ').is_some_and(|(_, n)| n.parse::<f64>().is_ok());
        assert!(line.starts_with("# HELP ") || line.starts_with("# TYPE ") || is_value(line), "{line}");
    }
    for secret in SECRETS.iter().chain(&["Ada", "planted"]) {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_call_that_waits_for_approval_is_counted() {
    let dir = folder();
    let server = Server::start(dir.path(), &["pay.lam", "--journal", "j"], None);
    let (status, _, _) =
        server.raw("POST", "/v1/pipelines/main/runs", &[JSON, ("prefer", "respond-async")], "\"bob\"");
    assert_eq!(status, 202);
    server.until("/health", |health| health["waiting"] == 1);
    // The user of this machine needs no entry.
    let (status, _, text) = server.raw("GET", "/metrics", &[], "");
    assert_eq!(status, 200);
    assert_eq!(series(&text, "entail_approvals_pending"), Some(1.0), "{text}");
    assert_eq!(series(&text, r#"entail_runs{state="waiting"}"#), Some(1.0), "{text}");
    let question = server.questions()[0]["request"].as_str().unwrap().to_string();
    assert_eq!(server.decide(&format!("/v1/approvals/{question}"), &json!({"decision": "approve"})).0, 200);
    server.until("/health", |health| health["waiting"] == 0 && health["running"] == 0);
    let (_, _, text) = server.raw("GET", "/metrics", &[], "");
    assert_eq!(
        series(&text, r#"entail_approvals_total{tool="pay",decision="approved"}"#),
        Some(1.0),
        "{text}"
    );
    assert_eq!(series(&text, "entail_approvals_pending"), Some(0.0), "{text}");
}
