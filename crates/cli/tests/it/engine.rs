//! Runs on a real server of Restate: what is killed goes on, people approve, time limits hold, and nothing
//! reaches the engine that must not.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PASSPHRASE: &str = "correct horse battery";

/// A server of the engine in a folder of its own, with a program for it.
struct World {
    dir: TempDir,
    admin: String,
    ingress: String,
    server: u32,
    worker: Option<Child>,
    /// Address of the first worker; the later ones have it, too.
    listen: String,
    options: Vec<String>,
    /// The file of the server's private key.
    key: Option<PathBuf>,
}

impl World {
    /// `None` if no server is installed.
    fn new(program: &str, settings: &str, options: &[&str]) -> Option<World> {
        let server = installed()?;
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.agent"), program).unwrap();
        std::fs::write(dir.path().join("entail.toml"), settings).unwrap();
        let mut world = World {
            dir,
            admin: String::new(),
            ingress: String::new(),
            server: 0,
            worker: None,
            listen: "127.0.0.1:0".into(),
            options: options.iter().map(|o| o.to_string()).collect(),
            key: None,
        };
        world.start(&server);
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        command.args(args).current_dir(self.dir.path());
        command.env("XDG_CONFIG_HOME", self.path("config")).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn entail(&self, args: &[&str], input: &str) -> (i32, String, String) {
        let mut child = self.command(args).spawn().unwrap();
        // Nobody need read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let out = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
    }

    fn start(&mut self, server: &Path) {
        let mut command =
            self.command(&["engine", "start", "--dir", "engine", "--port", "0", "--format", "json"]);
        if let Some(key) = &self.key {
            command.env("RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE", key);
        }
        let out = command.env("ENTAIL_RESTATE_SERVER", server).output().unwrap();
        let state: Value = serde_json::from_slice(&out.stdout).unwrap();
        let text = |name: &str| state[name].as_str().unwrap_or_else(|| panic!("{state}")).to_string();
        (self.admin, self.ingress) = (text("engine"), text("ingress"));
        self.server = u32::try_from(state["pid"].as_u64().unwrap()).unwrap();
    }

    fn kill_server(&self) {
        kill(&self.server.to_string());
        until("the server is gone", || !is_alive(self.server));
    }

    /// Starts the worker. A server that has just been started may not answer yet.
    fn work(&mut self, more: &[&str]) {
        let begun = Instant::now();
        loop {
            let log = std::fs::File::options().append(true).create(true).open(self.path("worker.log"));
            let mut args = vec!["worker", "p.agent", "--engine", &self.admin, "--listen", &self.listen];
            args.extend(["--format", "json"]);
            args.extend(self.options.iter().map(String::as_str));
            args.extend(more);
            let mut command = self.command(&args);
            // So that its tools are killed with it, as those of a host are.
            let mut child = command.stderr(log.unwrap()).process_group(0).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            if let Some(listening) = said["listening"].as_str() {
                self.listen = listening.strip_prefix("http://").unwrap().to_string();
                self.worker = Some(child);
                return;
            }
            let _ = child.wait();
            assert!(begun.elapsed() < Duration::from_secs(60), "{line}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn kill_worker(&mut self) {
        let mut worker = self.worker.take().unwrap();
        kill(&format!("-{}", worker.id()));
        worker.wait().unwrap();
    }

    fn begin(&self, run: &str, input: &str) {
        let args = ["run", "p.agent", "--engine", &self.admin, "--run", run, "--detach", "--input", input];
        let (status, out, err) = self.entail(&args, "");
        assert_eq!(status, 0, "{out}{err}");
    }

    /// Waits for the outcome of a run: exit status, standard output, standard error.
    fn end(&self, run: &str, input: &str) -> (i32, Value) {
        let args =
            ["run", "p.agent", "--engine", &self.admin, "--run", run, "--input", input, "--format", "json"];
        let (status, out, err) = self.entail(&args, "");
        (status, serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}")))
    }

    fn runs(&self) -> Vec<Value> {
        let (status, out, err) =
            self.entail(&["runs", "list", "--engine", &self.admin, "--format", "json"], "");
        assert_eq!(status, 0, "{out}{err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn status(&self, run: &str) -> String {
        let runs = self.runs();
        let found = runs.iter().find(|r| r["run"] == run);
        found.map_or(String::new(), |r| r["status"].as_str().unwrap().to_string())
    }

    /// The status of a run in the words of the engine.
    fn engine_status(&self, run: &str) -> String {
        let query = format!(
            "SELECT status FROM sys_invocation WHERE target_service_key = '{run}' AND target_handler_name = 'run'"
        );
        let (_, rows) = post(&self.admin, "/query", &serde_json::json!({"query": query}).to_string());
        // The body comes in chunks, whose lengths stand between them.
        let status = rows.split("\"status\":\"").nth(1).and_then(|rest| rest.split('"').next());
        status.unwrap_or_default().to_string()
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(String::from).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.kill_worker();
        }
        self.kill_server();
    }
}

/// The server that is installed.
#[allow(clippy::print_stderr, reason = "whoever runs the tests should know that one was not run")]
fn installed() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("ENTAIL_RESTATE_SERVER").filter(|named| !named.is_empty()) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|dir| dir.join("restate-server")).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("NOT RUN: there is no `restate-server` here (`.ci/run engine` installs it)");
    }
    found
}

fn kill(process: &str) {
    assert!(Command::new("kill").args(["-9", "--", process]).status().unwrap().success());
}

fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Posts to the engine: the status, and the body of the answer.
fn post(base: &str, path: &str, body: &str) -> (u16, String) {
    let host = base.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\naccept: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_once("\r\n\r\n").unwrap().1.to_string())
}

/// A tool that says that it was called, and waits for a file.
const WAITING: &str = "sh\", \"-c\", \"echo $ENTAIL_IDEMPOTENCY_KEY >> calls; while [ ! -e go ]; do sleep 0.02; done; echo paid";

const PARALLEL: &str = r#"
tool quick(n: Number) -> String writes {}
tool slow(n: Number) -> String writes {}
pipeline main(n: Number) -> List[String] {
    parallel max_concurrency 3 {
        let a = run quick with { n: 1 };
        let b = run slow with { n: 2 };
        let c = run quick with { n: 3 };
    } join;
    let d = run quick with { n: n };
    return [a, b, c, d];
}
"#;

/// The branches that were answered are not called again, and those under way are, with their keys.
#[test]
fn branches_go_on_after_kills_of_worker_and_server() {
    let settings = format!(
        "[handlers]\nquick = {{ exec = [\"sh\", \"-c\", \"cat >> quick; echo >> quick; echo fast\"], idempotent = true }}\n\
         slow = {{ exec = [\"{WAITING}\"], idempotent = true }}\n"
    );
    let Some(mut world) = World::new(PARALLEL, &settings, &[]) else { return };
    world.work(&[]);
    world.begin("r", r#"{"n": 4}"#);
    let answered = || {
        let (_, out, _) =
            world.entail(&["runs", "show", "r", "--engine", &world.admin, "--format", "json"], "");
        let run: Value = serde_json::from_str(&out).unwrap_or_default();
        run["steps"]
            .as_array()
            .map_or(0, |steps| steps.iter().filter(|step| !step["record"].is_null()).count())
    };
    // And the start of the run.
    until("two branches have ended", || answered() == 3 && world.lines("calls").len() == 1);
    world.kill_worker();
    world.work(&[]);
    until("the third is called again", || world.lines("calls").len() == 2);
    world.kill_server();
    let server = installed().unwrap();
    world.start(&server);
    until("and again", || world.lines("calls").len() == 3);
    std::fs::write(world.path("go"), "").unwrap();
    let (status, outcome) = world.end("r", r#"{"n": 4}"#);
    assert_eq!(
        (status, &outcome["result"]),
        (0, &serde_json::json!(["fast", "paid", "fast", "fast"])),
        "{outcome}"
    );
    assert_eq!(outcome["usage"]["toolCalls"], 4);
    assert_eq!(world.lines("quick").len(), 3, "{:?}", world.lines("quick"));
    let mut keys = world.lines("calls");
    keys.dedup();
    assert!(keys.len() == 1 && keys[0].len() == 32, "{keys:?}");
    // A name is one run.
    assert_eq!(world.end("r", r#"{"n": 5}"#).1, outcome);
}

const PAYMENT: &str = "tool pay(n: Number) -> String writes {}\npipeline main(n: Number) -> String { let a = run pay with { n: n }; return a; }\n";

/// A call that may have been made is not made again unless somebody says so.
#[test]
fn an_interrupted_call_is_held_until_somebody_decides() {
    let settings = format!("[handlers]\npay = {{ exec = [\"{WAITING}\"] }}\n");
    for (decision, calls) in [("retry", 2), ("fail", 1)] {
        let Some(mut world) = World::new(PAYMENT, &settings, &[]) else { return };
        world.work(&[]);
        world.begin("r", r#"{"n": 1}"#);
        until("the tool is at work", || world.lines("calls").len() == 1);
        world.kill_worker();
        std::fs::write(world.path("go"), "").unwrap();
        world.work(&[]);
        let (status, held) = world.end("r", r#"{"n": 1}"#);
        let why = held["held"].as_str().unwrap_or_default();
        assert!(
            status == 1 && why.contains("`pay` was at work") && why.contains("--unfinished retry"),
            "{held}"
        );
        assert_eq!((world.status("r").as_str(), world.lines("calls").len()), ("held", 1));
        world.kill_worker();
        world.work(&["--unfinished", decision]);
        until("it has ended", || ["done", "failed"].contains(&world.status("r").as_str()));
        let (status, outcome) = world.end("r", r#"{"n": 1}"#);
        assert_eq!(world.lines("calls").len(), calls);
        match decision {
            "retry" => assert_eq!((status, &outcome["result"]), (0, &"paid".into()), "{outcome}"),
            _ => assert_eq!((status, &outcome["error"]["code"]), (1, &"tool".into()), "{outcome}"),
        }
    }
}

/// The run waits without a worker, an answer counts if an approver has signed it, and for its question alone.
#[test]
fn signed_answers_approve_and_others_do_not() {
    let settings = "policy = \"policy.toml\"\n[handlers]\npay = { exec = [\"sh\", \"-c\", \"echo paid >> ledger; echo paid\"] }\n";
    let Some(mut world) = World::new(PAYMENT, settings, &[]) else { return };
    std::fs::write(world.path("policy.toml"), "[tools.pay]\neffect = \"write\"\napprove = true\n").unwrap();
    let (status, key, err) =
        world.entail(&["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE);
    assert_eq!(status, 0, "{err}");
    std::fs::write(world.path("entail.toml"), format!("{settings}{key}")).unwrap();
    world.work(&[]);
    world.begin("r", r#"{"n": 7}"#);
    world.begin("other", r#"{"n": 8}"#);
    let waiting = |run: &str| {
        let runs = world.runs();
        let run = runs.iter().find(|r| r["run"] == run).cloned().unwrap_or_default();
        run["waiting"][0].clone()
    };
    until("both ask", || !waiting("r").is_null() && !waiting("other").is_null());
    let token = waiting("r")["request"].as_str().unwrap().to_string();
    assert_eq!(waiting("r")["args"][0]["value"], 7);
    until("the worker has let go", || world.engine_status("r") == "suspended");
    world.kill_worker();
    // Nobody answers without a worker that checks it, and the question stays.
    world.work(&[]);
    let forged = serde_json::json!({"token": token, "verdict": "approved", "reason": null, "approver": "alice",
        "decided": 1, "signature": "AAAA"});
    let (status, said) = post(&world.ingress, "/entail.p.main/r/answer", &forged.to_string());
    assert!(status == 403 && said.contains("signature"), "{status} {said}");
    let (status, _) = post(&world.ingress, "/entail.p.main/r/answer", r#"{"token": "00"}"#);
    assert_eq!(status, 404);
    assert_eq!((world.lines("ledger").len(), world.status("r").as_str()), (0, "waiting"));
    let approve = ["approve", "r", "--engine", &world.admin, "--yes", "--passphrase-stdin"];
    let (status, out, err) = world.entail(&approve, PASSPHRASE);
    assert_eq!((status, out.as_str()), (0, "approved\n"), "{err}");
    let (status, outcome) = world.end("r", r#"{"n": 7}"#);
    assert_eq!((status, &outcome["result"]), (0, &"paid".into()), "{outcome}");
    let deny =
        ["approve", "other", "--engine", &world.admin, "--deny", "--reason", "not now", "--passphrase-stdin"];
    assert_eq!(world.entail(&deny, PASSPHRASE).0, 0);
    let (status, outcome) = world.end("other", r#"{"n": 8}"#);
    assert!(status == 1 && outcome.to_string().contains("not now"), "{outcome}");
    assert_eq!(world.lines("ledger").len(), 1);
    assert!(world.entail(&approve, PASSPHRASE).2.contains("nothing of run `r` waits"));
}

/// The time that a limit counts is the engine's, so a kill does not begin it anew.
#[test]
fn limits_of_time_and_cancellation_reach_the_tools() {
    let program = "tool wait(n: Number) -> String {}\n\
                   pipeline main(n: Number) -> String { let a = run wait with { n: n } timeout 3; return a; }\n";
    let settings = "[handlers]\nwait = { exec = [\"sh\", \"-c\", \"echo $$ >> calls; exec sleep 600\"], timeout = 600 }\n";
    let Some(mut world) = World::new(program, settings, &[]) else { return };
    world.work(&[]);
    world.begin("late", r#"{"n": 3}"#);
    until("it is at work", || world.lines("calls").len() == 1);
    world.kill_worker();
    std::thread::sleep(Duration::from_secs(4));
    world.work(&[]);
    let (status, outcome) = world.end("late", r#"{"n": 3}"#);
    assert_eq!((status, &outcome["error"]["code"]), (1, &"timeout".into()), "{outcome}");
    // The time was up when the attempt began, so that the tool was not called again.
    assert_eq!(world.lines("calls").len(), 1);

    // A run without a limit.
    world.kill_worker();
    std::fs::write(world.path("p.agent"), program.replace(" timeout 3", "")).unwrap();
    world.work(&[]);
    world.begin("long", r#"{"n": 600}"#);
    until("it is at work", || world.lines("calls").len() == 2);
    let tool: u32 = world.lines("calls")[1].parse().unwrap();
    assert!(is_alive(tool));
    let (status, _, err) = world.entail(&["runs", "cancel", "long", "--engine", &world.admin], "");
    assert_eq!(status, 0, "{err}");
    let (status, outcome) = world.end("long", r#"{"n": 600}"#);
    assert_eq!((status, &outcome["error"]["code"]), (1, &"cancelled".into()), "{outcome}");
    until("the tool has ended", || !is_alive(tool));
}

/// A server of MCP whose results say of themselves that strangers may have written them.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer, params = {"jsonrpc": "2.0", "id": asked["id"]}, asked.get("params", {})
    if asked["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "number"}}}
        answer["result"] = {"tools": [{"name": "read", "inputSchema": schema}]}
    elif asked["method"] != "tools/call":
        answer["error"] = {"code": -32601, "message": "no such method"}
    else:
        content = [{"type": "text", "text": "mallory"}]
        answer["result"] = {"content": content, "_meta": {"ifc": {"integrity": "untrusted", "confidentiality": ["public"]}}}
    print(json.dumps(answer), flush=True)
"#;

/// A label that an answer states is there after a replay, so that what it forbids stays forbidden. The policy
/// alone would trust the answer.
#[test]
fn an_injection_is_refused_after_a_replay_too() {
    let program = "tool read(n: Number) -> String {}\ntool slow(n: Number) -> String writes {}\n\
                   tool pay(to: String) -> String writes {}\n\
                   pipeline main(n: Number) -> String {\n  let to = run read with { n: n };\n  \
                   let s = run slow with { n: n };\n  let p = run pay with { to: to };\n  return s;\n}\n";
    let settings = format!(
        "policy = \"policy.toml\"\n[mcp.s]\ncommand = [\"python3\", \"-S\", \"server.py\"]\n\
         [handlers]\nread = {{ mcp = [\"s\", \"read\"] }}\nslow = {{ exec = [\"{WAITING}\"], idempotent = true }}\n\
         pay = {{ exec = [\"sh\", \"-c\", \"echo paid >> ledger\"], idempotent = true }}\n"
    );
    let policy = "[tools.read]\neffect = \"read\"\nresult = \"trusted\"\n[tools.slow]\neffect = \"write\"\n\
                  [tools.pay]\neffect = \"write\"\narguments = \"trusted\"\n";
    let Some(mut world) = World::new(program, &settings, &[]) else { return };
    std::fs::write(world.path("server.py"), SERVER).unwrap();
    std::fs::write(world.path("policy.toml"), policy).unwrap();
    world.work(&[]);
    for (run, kills) in [("through", false), ("replayed", true)] {
        let before = world.lines("calls").len();
        let _ = std::fs::remove_file(world.path("go"));
        world.begin(run, r#"{"n": 1}"#);
        until("the second tool is at work", || world.lines("calls").len() > before);
        if kills {
            world.kill_worker();
            std::fs::remove_file(world.path("server.py")).unwrap();
            world.work(&[]);
        }
        std::fs::write(world.path("go"), "").unwrap();
        let (status, outcome) = world.end(run, r#"{"n": 1}"#);
        assert_eq!((status, &outcome["error"]["code"]), (1, &"flow".into()), "{outcome}");
        let refused = &outcome["error"]["refused"];
        assert_eq!((&refused["name"], &refused["label"]), (&"pay".into(), &serde_json::json!(["U"])));
    }
    assert_eq!(world.lines("ledger").len(), 0);
}

/// Secrets of the environment are neither in the engine's journal nor in its files.
#[test]
fn the_engine_learns_no_secret() {
    let secret = "sk-fUeX93kqPZ71mWcRtY20aQ";
    let program = "tool leak(n: Number) -> String {}\npipeline main(n: Number) -> String { let a = run leak with { n: n }; return a; }\n";
    let settings = format!("[handlers]\nleak = {{ exec = [\"echo\", \"token {secret} of them\"] }}\n");
    let Some(mut world) = World::new(program, &settings, &[]) else { return };
    std::fs::write(world.path(".env"), format!("SERVICE_API_KEY={secret}\n")).unwrap();
    world.work(&[]);
    let (status, outcome) = world.end("r", r#"{"n": 1}"#);
    assert_eq!(status, 0, "{outcome}");
    assert!(
        outcome["result"].as_str().unwrap().starts_with("token ") && !outcome.to_string().contains(secret)
    );
    let query = serde_json::json!({"query": "SELECT raw, entry_json FROM sys_journal"});
    let (status, journal) = post(&world.admin, "/query", &query.to_string());
    assert_eq!(status, 200);
    let bytes: Vec<String> = secret.bytes().map(|b| b.to_string()).collect();
    let (hex, list): (String, String) =
        (secret.bytes().map(|b| format!("{b:02x}")).collect(), bytes.join(","));
    assert!(journal.len() > 500 && [secret, &hex, &list].iter().all(|shape| !journal.contains(shape)));
    let found = Command::new("grep").args(["-raF", secret, "engine"]).current_dir(world.dir.path()).output();
    assert!(found.unwrap().stdout.is_empty());
    let input = format!("{{\"n\": \"{secret}\"}}");
    let args = ["run", "p.agent", "--engine", &world.admin, "--input", &input];
    let (status, _, err) = world.entail(&args, "");
    assert_eq!(status, 2, "{err}");
}

/// A run ends on the program that it began with.
#[test]
fn a_changed_program_holds_its_runs() {
    let settings = format!("[handlers]\npay = {{ exec = [\"{WAITING}\"], idempotent = true }}\n");
    let Some(mut world) = World::new(PAYMENT, &settings, &[]) else { return };
    world.work(&[]);
    world.begin("r", r#"{"n": 1}"#);
    until("the tool is at work", || world.lines("calls").len() == 1);
    world.kill_worker();
    std::fs::write(world.path("p.agent"), PAYMENT.replace("{ n: n }", "{ n: n + 1 }")).unwrap();
    std::fs::write(world.path("go"), "").unwrap();
    world.work(&[]);
    let (status, held) = world.end("r", r#"{"n": 1}"#);
    assert!(status == 1 && held["held"].as_str().unwrap_or_default().contains("has changed"), "{held}");
    world.kill_worker();
    std::fs::write(world.path("p.agent"), PAYMENT).unwrap();
    world.work(&[]);
    until("it has ended", || world.status("r") == "done");
    assert_eq!(world.end("r", r#"{"n": 1}"#).1["result"], "paid");
}

/// A private key of Ed25519, for tests alone.
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcH\n-----END PRIVATE KEY-----\n";

/// A worker with a key takes the requests of its engine, and of nobody else.
#[test]
fn a_worker_with_a_key_answers_its_engine_alone() {
    let settings = "[handlers]\npay = { exec = [\"echo\", \"paid\"] }\n";
    let Some(mut world) = World::new(PAYMENT, settings, &[]) else { return };
    std::fs::write(world.path("key.pem"), PEM).unwrap();
    world.kill_server();
    world.key = Some(world.path("key.pem"));
    world.start(&installed().unwrap());
    let log = || std::fs::read_to_string(world.path("engine/server.log")).unwrap();
    until("the server has read its key", || log().contains("publickeyv1_"));
    let log = log();
    let key = log.split("publickeyv1_").nth(1).unwrap();
    let key: String = key.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    world.work(&["--identity-key", &format!("publickeyv1_{key}")]);
    let (status, outcome) = world.end("r", r#"{"n": 1}"#);
    assert_eq!((status, &outcome["result"]), (0, &"paid".into()), "{outcome}");
    world.kill_worker();
    // The key of another engine.
    let args = ["worker", "p.agent", "--engine", &world.admin, "--listen", &world.listen];
    let other = ["--identity-key", "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp"];
    let (status, _, err) = world.entail(&[&args[..], &other].concat(), "");
    assert!(status == 2 && err.contains("401"), "{status} {err}");
}

#[test]
fn missing_servers_and_addresses_have_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
        let out = command
            .args(args)
            .current_dir(dir.path())
            .env("PATH", dir.path())
            .env_remove("ENTAIL_RESTATE_SERVER")
            .output();
        let out = out.unwrap();
        (out.status.code().unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let (status, err) = run(&["engine", "start"]);
    assert!(status == 2 && err.contains("not installed") && err.contains("ENTAIL_RESTATE_SERVER"), "{err}");
    assert_eq!(run(&["engine", "status"]).0, 1);
    let (status, err) = run(&["runs", "list", "--engine", "http://127.0.0.1:9"]);
    assert!(
        status == 2 && err.contains("cannot reach the engine") && err.contains("entail engine start"),
        "{err}"
    );
    let (status, err) = run(&["worker", "p.agent", "--listen", "0.0.0.0:0"]);
    assert!(status == 2 && err.contains("--identity-key"), "{err}");
}
