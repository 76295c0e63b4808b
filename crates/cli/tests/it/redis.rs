//! Memory on a Redis server, as the command line sees it: λA configurations, `.agent` and `.lam` name it; it
//! outlives the run.
#![cfg(unix)]

#[path = "../../../runtime/tests/it/support/redis.rs"]
#[allow(dead_code)]
mod server;

use crate::program;
use server::RedisServer;
use std::path::Path;

/// Exit status, what it prints, what it says besides.
fn entail(dir: &Path, url: Option<&str>, args: &[&str]) -> (i32, String, String) {
    let mut command = program::entail(dir, args);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_MODEL", "REDIS_URL"] {
        command.env_remove(name);
    }
    command.envs(url.map(|url| ("REDIS_URL", url)));
    program::ran(&mut command)
}

const COUNT: &str = "mem (let n = recall n in let _ = remember n ((if is_null n then 0 else n) + 1) in recall n)\n  \
                     {n: Num} backend \"redis\"";

#[test]
fn a_program_that_names_redis_remembers_from_run_to_run() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.address());
    std::fs::write(dir.path().join("count.lam"), COUNT).unwrap();
    for expected in ["1\n", "2\n", "3\n"] {
        let (status, out, err) = entail(dir.path(), Some(&url), &["eval", "count.lam"]);
        assert_eq!((status, out.as_str()), (0, expected), "{err}");
    }
    let (status, _, err) = entail(dir.path(), None, &["eval", "count.lam"]);
    assert_eq!(status, 1);
    assert!(
        err.contains("its backend `redis` is not configured") && err.contains("set `REDIS_URL`"),
        "{err}"
    );
    let (status, _, err) = entail(dir.path(), Some("unix:///no/such.sock"), &["eval", "count.lam"]);
    assert_eq!(status, 1);
    assert!(err.contains("cannot reach the Redis server `unix:///no/such.sock`"), "{err}");
}

/// Seed 000, Listing 1: `memory: {strategy: redis}`; and the memory of an agent.
#[test]
fn configurations_and_agents_name_redis() {
    let Some(server) = RedisServer::start(&[]) else { return };
    let (dir, url) = (tempfile::tempdir().unwrap(), server.address());
    let config = "agentId: helper\ntype: react\nmodel: m\nsystemPrompt: Help.\nreact: {maxSteps: 3}\nmcp: {localTools: [terminate, shout]}\n\
                  memory: {strategy: redis, size: 20, ttl: 7200}\n";
    std::fs::write(dir.path().join("helper.yaml"), config).unwrap();
    let script =
        r#"[{"tool": "shout", "args": {"input": "a"}}, {"tool": "terminate", "args": {"answer": "b"}}]"#;
    std::fs::write(dir.path().join("helper.json"), script).unwrap();
    std::fs::write(dir.path().join("cat.toml"), "[handlers]\nshout = { exec = [\"cat\"] }\n").unwrap();
    let run = ["run", "--config", "cat.toml", "helper.yaml", "--script", "helper.json", "hello"];
    let (status, _, err) = entail(dir.path(), Some(&url), &run);
    assert_eq!(status, 0, "{err}");
    assert!(
        server
            .cli(&["HGET", "entail:account:0:6:helper39:Axes { untrusted: true, secret: false }", "state"])
            .contains("hello")
    );

    let agent = "agent scribe { tools: [], prompt: \"You take notes.\",\n               \
                 memory: { store: \"redis\", keys: { notes: List[String] }, size: 20, ttl: 7200 } }\n\
                 task note(text: String) -> String by agent { prompt \"{text}\" }\n\
                 pipeline main(text: String) -> String { let x = note(text) by scribe; return x; }\n";
    std::fs::write(dir.path().join("scribe.agent"), agent).unwrap();
    let script = r#"[{"tool": "remember_notes", "args": {"value": ["bees"]}}, "noted"]"#;
    std::fs::write(dir.path().join("first.json"), script).unwrap();
    std::fs::write(dir.path().join("then.json"), r#"["bees it was"]"#).unwrap();
    std::fs::write(dir.path().join("named.toml"), "[stores.scribe]\nredis_env = \"NOTES_AT\"\n").unwrap();
    let (status, out, err) =
        entail(dir.path(), Some(&url), &["run", "scribe.agent", "--script", "first.json", "x"]);
    assert_eq!((status, out.as_str()), (0, "\"noted\"\n"), "{err}");
    // Another process shows the model what was remembered.
    let (status, out, err) =
        entail(dir.path(), Some(&url), &["trace", "scribe.agent", "x", "--script", "then.json"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("recall scribe.notes") && out.contains("bees"), "{out}");

    let named = ["run", "--config", "named.toml", "scribe.agent", "--script", "first.json", "x"];
    let (status, _, err) = entail(dir.path(), None, &named);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("error[E003]: no handler for store `scribe`: `NOTES_AT` is not set"), "{err}");
}

#[test]
fn unknown_entry_fails_before_run() {
    let dir = tempfile::tempdir().unwrap();
    for (entry, expected) in [
        ("", "set one of `sqlite`, `postgres`, `postgres_env`, `redis` and `redis_env`"),
        ("redis = \"x\"\nsqlite = \"y\"", "set one of"),
        ("redis = \"localhost\"", "is written `redis://localhost:6379`"),
        ("redis = \"redis://u:hush@localhost\"", "name the variable that holds the address with `redis_env`"),
    ] {
        std::fs::write(dir.path().join("entail.toml"), format!("[stores.s]\n{entry}\n")).unwrap();
        let (status, _, err) = entail(dir.path(), None, &["eval", "1"]);
        assert_eq!(status, 2, "{err}");
        assert!(err.contains("`[stores.s]` is wrong") && err.contains(expected), "{err}");
        assert!(!err.contains("hush"), "{err}");
    }
}

/// `entail test` touches nothing outside.
#[test]
fn tests_keep_stores_in_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let program = "agent scribe { tools: [], memory: { store: \"redis\", keys: { n: Number } } }\n\
                   task note(text: String) -> String by agent { prompt \"{text}\" }\n\
                   test \"a note\" {\n    let x = note(\"a\") by scribe;\n    assert x == \"noted\";\n}\n";
    std::fs::write(dir.path().join("t.agent"), program).unwrap();
    std::fs::write(dir.path().join("t.replies.json"), "[\"noted\"]").unwrap();
    let (status, out, err) = entail(dir.path(), Some("unix:///no/such.sock"), &["test", "t.agent"]);
    assert_eq!(status, 0, "{out}{err}");
}
