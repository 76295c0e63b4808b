//! Journals on a Postgres server, as the command line has them.
#![cfg(unix)]

#[path = "../../../runtime/tests/it/support/postgres.rs"]
#[allow(dead_code)]
mod server;

use crate::program;
use serde_json::Value;
use server::PostgresServer;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = r#"
tool pay(n: Number) -> String writes { exec "sh" "-c" "echo paid >> ledger; echo paid" }
tool wait(n: Number) -> String reads { exec "sh" "-c" "echo waits >> waits; while [ ! -e go ]; do sleep 0.02; done" }
task ask(q: String) -> String by agent { prompt "question {q}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(q: String) -> List[String] {
    let a = run ask with { q: q } by asker;
    let b = run ask with { q: a } by asker;
    return [a, b];
}
pipeline pays() -> String { let p = run pay with { n: 1 }; let w = run wait with { n: 1 }; return p; }
"#;

const SCRIPT: &str = r#"[{"match": "question a", "reply": "one"}, {"match": "question one", "reply": "two"},
    {"match": "question uno", "reply": "due"}]"#;

const PASSPHRASE: &str = "correct horse battery";

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = program::entail(dir, args);
    command.env("XDG_CONFIG_HOME", dir.join("config"));
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_MODEL", "PGPASSWORD"] {
        command.env_remove(name);
    }
    command
}

fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    program::ran(&mut command(dir, args))
}

/// The same with a passphrase on standard input.
fn with_passphrase(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = command(dir, args);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(PASSPHRASE.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), PROGRAM).unwrap();
    std::fs::write(dir.path().join("s.json"), SCRIPT).unwrap();
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().next().unwrap_or_default()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn run_of(dir: &Path, journal: &str) -> Value {
    let listed = entail(dir, &["runs", "list", "--journal", journal, "--format", "json"]);
    assert_eq!(listed.0, 0, "{listed:?}");
    json(&listed.1)
}

#[test]
fn a_run_is_stopped_resumed_and_looked_at() {
    let Some(server) = PostgresServer::shared() else { return };
    let (dir, journal) = (folder(), server.fresh());
    let at = dir.path();
    let run = ["run", "p.agent", "--script", "s.json", "--journal", &journal, "--format", "json"];
    let begun = entail(at, &[&run[..], &["--pipeline", "main", "--max-calls", "1", "a"]].concat());
    assert_eq!((begun.0, json(&begun.1)["error"]["code"].as_str()), (1, Some("budget")), "{begun:?}");
    let id = json(&begun.1)["run"].as_str().unwrap().to_string();
    let resumed = entail(at, &[&run[..], &["--pipeline", "main", "--resume", &id[..8]]].concat());
    assert_eq!(json(&resumed.1)["result"], serde_json::json!(["one", "two"]), "{resumed:?}");
    assert_eq!(json(&resumed.1)["run"], id.as_str());
    let listed = run_of(at, &journal);
    assert_eq!((&listed["status"], &listed["answered"]), (&"done".into(), &2.into()));
    let shown = entail(at, &["runs", "show", &id, "--journal", &journal]);
    assert!(shown.0 == 0 && shown.1.contains("question one"), "{shown:?}");
    let checked = entail(at, &["runs", "check", "--journal", &journal]);
    assert_eq!(checked.0, 0, "{checked:?}");
    assert!(checked.1.starts_with("checked 1 run, 2 requests and"), "{checked:?}");
    let traced = entail(at, &["trace", &id, "--journal", &journal, "--script", "s.json"]);
    assert!(traced.0 == 0 && traced.1.contains("question one"), "{traced:?}");
    let forked = entail(
        at,
        &["runs", "fork", &id, "--at", "1", "--response", r#"{"reply": "uno"}"#, "--journal", &journal],
    );
    let fork = forked.1.trim();
    let resumed = entail(at, &[&run[..], &["--pipeline", "main", "--resume", fork]].concat());
    assert_eq!(json(&resumed.1)["result"][0], "uno", "{resumed:?}");
    let deleted = entail(at, &["runs", "delete", &id, fork, "--journal", &journal]);
    assert_eq!(deleted.0, 0, "{deleted:?}");
    assert_eq!(entail(at, &["runs", "list", "--journal", &journal]).1, "");
}

#[test]
fn a_run_is_verified_and_an_altered_one_is_not() {
    let Some(server) = PostgresServer::shared() else { return };
    let (dir, journal) = (folder(), server.fresh());
    let at = dir.path();
    let run = ["run", "p.agent", "--script", "s.json", "--journal", &journal, "--format", "json"];
    let ran = entail(at, &[&run[..], &["--pipeline", "main", "a"]].concat());
    let id = json(&ran.1)["run"].as_str().unwrap().to_string();
    let verify = ["verify", &id, "--journal", &journal, "--format", "json"];
    let checked = entail(at, &verify);
    let report = json(&checked.1);
    assert_eq!((checked.0, &report["findings"]), (0, &serde_json::json!([])), "{report}");
    assert_eq!(report["checks"][1]["verdict"], "verified", "{report}");
    let database = journal.split("@/").nth(1).and_then(|rest| rest.split('?').next()).unwrap();
    for (sql, step, kind) in [
        ("UPDATE entail.entries SET response = replace(response, 'one', 'uno') WHERE step = 1", 1, "damaged"),
        ("DELETE FROM entail.entries WHERE step = 2", 2, "missing"),
    ] {
        server.sql(database, sql);
        let checked = entail(at, &verify);
        let report = json(&checked.1);
        assert_eq!(checked.0, 1, "{report}");
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().any(|f| f["step"] == step && f["kind"] == kind), "{sql}: {report}");
    }
}

#[test]
fn a_killed_run_is_taken_over_when_its_lease_has_ended() {
    let Some(server) = PostgresServer::shared() else { return };
    let (dir, journal) = (folder(), format!("{}&lease=3", server.fresh()));
    let at = dir.path();
    let run =
        ["run", "p.agent", "--pipeline", "pays", "--journal", &journal, "--format", "json", "--run-refused"];
    let mut holder = command(at, &run).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !at.join("waits").exists() {
        assert!(holder.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let id = run_of(at, &journal)["run"].as_str().unwrap().to_string();
    assert_eq!(run_of(at, &journal)["status"], "running");
    let resume = [&run[..], &["--resume", &id]].concat();
    let early = entail(at, &resume);
    assert_eq!(early.0, 2, "{early:?}");
    assert!(early.1.contains("another process executes run") && early.1.contains("its lease"), "{early:?}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    std::fs::write(at.join("go"), "").unwrap();
    let ended = loop {
        let ended = entail(at, &resume);
        if ended.0 != 2 {
            break ended;
        }
        assert!(ended.1.contains("another process executes run"), "{ended:?}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert_eq!((ended.0, &json(&ended.1)["result"]), (0, &"paid".into()), "{ended:?}");
    assert_eq!(std::fs::read_to_string(at.join("ledger")).unwrap(), "paid\n");
}

#[test]
fn a_question_is_answered_from_another_process() {
    let Some(server) = PostgresServer::shared() else { return };
    let (dir, journal) = (folder(), server.fresh());
    let at = dir.path();
    std::fs::write(at.join("go"), "").unwrap();
    std::fs::write(at.join("policy.toml"), "[tools.pay]\neffect = \"write\"\napprove = true\n").unwrap();
    let key = with_passphrase(at, &["approve", "--new-key", "alice", "--passphrase-stdin"]).1;
    std::fs::write(at.join("entail.toml"), format!("policy = \"policy.toml\"\n{key}")).unwrap();
    let run = ["run", "p.agent", "--pipeline", "pays", "--journal", &journal, "--format", "json"];
    let left = entail(at, &[&run[..], &["--approvals", "leave"]].concat());
    assert_eq!(left.0, 1, "{left:?}");
    let waiting = run_of(at, &journal);
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let id = waiting["run"].as_str().unwrap();
    let approve = ["approve", id, "--journal", &journal, "--yes", "--passphrase-stdin"];
    let approved = with_passphrase(at, &approve);
    assert_eq!((approved.0, approved.1.lines().next()), (0, Some("approved")), "{approved:?}");
    let resumed = entail(at, &[&run[..], &["--resume", id]].concat());
    assert_eq!((resumed.0, &json(&resumed.1)["result"]), (0, &"paid".into()), "{resumed:?}");
    let checked = entail(at, &["runs", "check", "--journal", &journal]);
    assert!(checked.0 == 0 && checked.1.contains("all intact"), "{checked:?}");
}

#[test]
fn a_journal_that_can_not_be_used_is_one_error_with_status_2() {
    let dir = folder();
    let at = dir.path();
    let commands: [&[&str]; 5] = [
        &["run", "p.agent", "--pipeline", "main", "--script", "s.json", "a"],
        &["runs", "list"],
        &["approve", "1"],
        &["trace", "1a"],
        &["serve", "p.agent", "--script", "s.json"],
    ];
    for (journal, why) in [
        ("postgres://alice:planted@127.0.0.1:9/db", "the address of the journal has a password"),
        ("postgres://alice@127.0.0.1:9/db?planted=1", "an option that is unknown"),
        ("postgresql://alice@127.0.0.1:9/db", "cannot reach the Postgres server"),
        ("postgres:planted", "is no address of a Postgres server"),
    ] {
        for command in commands {
            let ran = entail(at, &[command, &["--journal", journal]].concat());
            assert_eq!(ran.0, 2, "{command:?} {journal}: {ran:?}");
            assert!(ran.2.contains(why) && ran.2.contains("help"), "{command:?} {journal}: {ran:?}");
            assert!(!ran.2.contains("planted"), "{command:?}: {ran:?}");
        }
    }
}

#[test]
fn a_store_on_postgres_remembers_from_run_to_run() {
    let Some(server) = PostgresServer::shared() else { return };
    let (dir, address) = (folder(), server.fresh());
    let at = dir.path();
    let count = "mem (let n = recall n in let _ = remember n ((if is_null n then 0 else n) + 1) in recall n)\n  \
                 {n: Num} backend \"postgres\"";
    std::fs::write(at.join("count.lam"), count).unwrap();
    let settings =
        |entry: &str| std::fs::write(at.join("entail.toml"), format!("[stores.memory]\n{entry}")).unwrap();
    let counted = || entail(at, &["eval", "count.lam"]);
    let none = counted();
    assert!(none.0 == 1 && none.2.contains("its backend `postgres` is not configured"), "{none:?}");
    settings(&format!("postgres = \"{address}\""));
    for expected in ["1\n", "2\n"] {
        let counted = counted();
        assert_eq!((counted.0, &*counted.1), (0, expected), "{counted:?}");
    }
    settings("postgres_env = \"AT\"");
    let counted_with = |at_env: &str| program::ran(command(at, &["eval", "count.lam"]).env("AT", at_env));
    assert_eq!(counted_with(&address).1, "3\n");
    for (entry, variable, why) in [
        ("postgres = \"postgres://a:planted@h/d\"", "", "a password has no place in this file"),
        ("postgres_env = \"AT\"", "planted", "the variable `AT`: what is given is no address"),
        ("postgres_env = \"AT\"", "postgres://a:planted@127.0.0.1:9/d", "cannot reach the Postgres server"),
    ] {
        settings(entry);
        let refused = counted_with(variable);
        assert!(refused.0 != 0 && refused.2.contains(why), "{entry}: {refused:?}");
        assert!(!refused.2.contains("planted"), "{entry}: {refused:?}");
    }
}

#[cfg(feature = "serve")]
mod servers {
    use super::{PostgresServer, entail};
    use crate::serving::{JSON, Server, folder, until};
    use crate::streaming::{REPLY, folder_with, model};
    use crate::ui::Browser;
    use serde_json::{Value, json};
    use std::time::Duration;

    const RUNS: &str = "/v1/pipelines/main/runs";

    /// Begins a payment that wants approval; gives the path of the run.
    fn ask(server: &Server, key: &str) -> String {
        let headers = [JSON, ("prefer", "respond-async"), ("idempotency-key", key)];
        let (status, head, text) = server.raw("POST", RUNS, &headers, r#"{"to": "bob"}"#);
        assert_eq!(status, 202, "{text}");
        let location =
            head.lines().find_map(|l| l.to_lowercase().strip_prefix("location: ").map(str::to_string));
        location.unwrap()
    }

    #[test]
    fn another_host_takes_the_runs_of_a_killed_server_over() {
        let Some(postgres) = PostgresServer::shared() else { return };
        let dir = folder();
        // Two servers with one journal; each has an address of its own.
        let journal = postgres.fresh();
        let start = |lease: u32| {
            let journal = format!("{journal}&lease={lease}");
            Server::start(dir.path(), &["pay.lam", "--journal", &journal], None)
        };
        let (first, second) = (start(2), start(3));
        let run = ask(&first, "one");
        let waits = first.until(&run, |r| r["status"] == "waiting");
        let question = format!("/v1/approvals/{}", waits["waiting"][0]["request"].as_str().unwrap());
        // The other one sees the run and its question, and leaves both to the first.
        assert_eq!(second.get(&run).1["status"], "waiting");
        let (status, said) = second.decide(&question, &json!({"decision": "approve"}));
        assert!(status == 409 && said.to_string().contains("a server of another host executes"), "{said}");
        let (status, _, said) = second.raw("POST", &format!("{run}/resume"), &[], "");
        assert!(status == 409 && said.contains("another process executes"), "{said}");
        assert_eq!(second.get("/health").1["waiting"], 0);
        drop(first);
        second.until("/health", |h| h["waiting"] == 1);
        let (status, said) = second.decide(&question, &json!({"decision": "approve"}));
        assert_eq!(status, 200, "{said}");
        assert_eq!(second.until(&run, |r| r["status"] == "done")["outcome"]["result"], "paid");
        assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap().lines().count(), 1);
        let (_, log) = second.end();
        assert!(!log.contains("cannot resume"), "{log}");
    }

    /// A page on another host shows replies while they arrive, of runs of the command and of a server. A
    /// client that may not see them is told none of them.
    #[test]
    fn replies_are_there_for_pages_of_all_hosts_while_they_arrive() {
        let Some(postgres) = PostgresServer::shared() else { return };
        let journal = postgres.fresh();
        let database = journal.split(['/', '?']).nth(3).unwrap();
        let (here, there) = (folder_with(model(None, Duration::from_millis(60))), folder());
        let server = Server::start(here.path(), &["--journal", &journal, "book.agent"], None);
        let page = Browser::with(there.path(), &journal, &[]);
        for by_server in [true, false] {
            let known = page.get("/api/runs").1["runs"].as_array().unwrap().len();
            let shown = std::thread::scope(|scope| {
                let ran = scope.spawn(|| match by_server {
                    true => {
                        server.post("/v1/pipelines/hidden/runs", &json!({"text": "a book"})).1.to_string()
                    }
                    false => {
                        let run =
                            ["run", "book.agent", "--pipeline", "hidden", "--journal", &journal, "a book"];
                        entail(here.path(), &run).1
                    }
                });
                let mut seen = Value::Null;
                until(|| {
                    let runs = page.get("/api/runs").1["runs"].take();
                    if runs.as_array().unwrap().len() == known {
                        return false;
                    }
                    let live = format!("/api/runs/{}/live", runs[0]["id"].as_str().unwrap());
                    seen = page.get(&live).1["replies"].get(0).cloned().unwrap_or_default();
                    seen["value"].is_object()
                });
                assert_eq!(
                    (&seen["label"], &seen["purpose"]),
                    (&json!(["U", "S"]), &json!("extract")),
                    "{seen}"
                );
                assert!(REPLY.starts_with(seen["text"].as_str().unwrap()), "{seen}");
                ran.join().unwrap()
            });
            assert!(!shown.contains("planted") && shown.contains('1'), "{shown}");
            let run = page.get("/api/runs").1["runs"][0]["id"].as_str().unwrap().to_string();
            assert_eq!(page.get(&format!("/api/runs/{run}/live")).1, json!({"replies": []}));
            assert_eq!(postgres.sql(database, "SELECT count(*) FROM entail.live"), "0");
        }
    }

    #[test]
    fn a_key_begins_one_run_on_all_hosts() {
        let Some(postgres) = PostgresServer::shared() else { return };
        let (dir, journal) = (folder(), postgres.fresh());
        let servers = [60, 61].map(|lease| {
            Server::start(dir.path(), &["pay.lam", "--journal", &format!("{journal}&lease={lease}")], None)
        });
        for key in ["a", "b", "c"] {
            let begun: Vec<String> = std::thread::scope(|all| {
                let asked: Vec<_> = (0..8)
                    .map(|n| {
                        all.spawn({
                            let server = &servers[n % 2];
                            move || ask(server, key)
                        })
                    })
                    .collect();
                asked.into_iter().map(|asked| asked.join().unwrap()).collect()
            });
            assert!(begun.iter().all(|run| *run == begun[0]), "{begun:?}");
        }
        let listed = entail(dir.path(), &["runs", "list", "--journal", &journal, "--format", "json"]).1;
        assert_eq!(listed.lines().count(), 3, "{listed}");
        let waiting =
            || servers.iter().map(|server| server.get("/health").1["waiting"].as_u64().unwrap()).sum::<u64>();
        until(|| waiting() == 3);
    }

    /// Each run is granted one call before it begins, so no two servers grant the same one.
    #[test]
    fn a_budget_of_a_day_holds_for_all_servers_together() {
        let Some(postgres) = PostgresServer::shared() else { return };
        let (dir, journal) = (folder(), postgres.fresh());
        let limits = "[callers.local]\nlimits = { calls = 1, calls_per_day = 5 }\n";
        std::fs::write(dir.path().join("entail.toml"), limits).unwrap();
        let start = |lease: u32| {
            let journal = format!("{journal}&lease={lease}");
            Server::start(dir.path(), &["greet.agent", "--script", "s.json", "--journal", &journal], None)
        };
        let servers = [start(60), start(61)];
        let greet = |server: &Server| server.post("/v1/pipelines/greet/runs", &json!({"name": "Ada"})).0;
        assert_eq!(servers.each_ref().map(greet), [200, 200]);
        let statuses: Vec<u16> = std::thread::scope(|all| {
            let asked: Vec<_> = (0..8)
                .map(|n| {
                    all.spawn({
                        let server = &servers[n % 2];
                        move || greet(server)
                    })
                })
                .collect();
            asked.into_iter().map(|asked| asked.join().unwrap()).collect()
        });
        let granted = statuses.iter().filter(|status| **status == 200).count();
        assert!(granted == 3 && statuses.iter().all(|s| [200, 429].contains(s)), "{statuses:?}");
        let [first, second] = servers;
        drop(first);
        assert_eq!(greet(&second), 429);
        assert_eq!(greet(&start(62)), 429);
    }
}
