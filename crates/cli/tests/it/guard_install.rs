//! `entail guard install` and `uninstall`: what becomes of a client's files, and that its guard starts.
#![cfg(all(unix, feature = "mcp"))]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ENTAIL: &str = env!("CARGO_BIN_EXE_entail");

const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"tools": [{"name": "where", "description": os.getcwd(), "inputSchema": {"type": "object"}}]}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"#;

fn entail(dir: &Path, args: &[&str]) -> Output {
    Command::new(ENTAIL).args(args).current_dir(dir).env("HOME", dir.join("home")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A project of Claude Code with a list that has comments.
fn project() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let server = dir.path().join("server.py");
    std::fs::write(&server, SERVER).unwrap();
    std::fs::write(dir.path().join("policy.toml"), "[tools.where]\neffect = \"read\"\n").unwrap();
    let list = format!(
        "{{\n  // all of them\n  \"mcpServers\": {{\n    \"a\": {{\"command\": \"python3\", \"args\": [{0}], \"env\": {{\"TOKEN\": \"hush-4711\"}}}},\n    \"b\": {{\"command\": \"python3\", \"args\": [{0}]}}, // the last\n  }}\n}}\n",
        json!(server)
    );
    std::fs::write(dir.path().join(".mcp.json"), &list).unwrap();
    (dir, list)
}

#[test]
fn a_project_is_guarded_and_comes_back_as_it_was() {
    let (dir, list) = project();
    let dir = dir.path();
    let read = |file: &str| std::fs::read_to_string(dir.join(file)).ok();
    let install = ["guard", "install", "claude-code", "--policy", "policy.toml"];

    let shown = entail(dir, &[&install[..], &["--show"]].concat());
    let diff = text(&shown.stdout);
    assert!(
        shown.status.success() && diff.contains("+    \"entail\": {") && diff.contains("-    \"a\":"),
        "{diff}"
    );
    assert!(!diff.contains("hush-4711") && read(".mcp.json").as_ref() == Some(&list), "{diff}");
    assert_eq!(read(".mcp.entail.json"), None);

    let done = entail(dir, &install);
    assert!(done.status.success(), "{done:?}");
    let config: Value =
        serde_json::from_str(&read(".mcp.json").unwrap().replace("// all of them", "")).unwrap();
    let entry = &config["mcpServers"]["entail"];
    assert_eq!(config["mcpServers"].as_object().unwrap().len(), 1, "{config}");

    // The client starts it in a folder of its own.
    let words: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut guard = Command::new(entry["command"].as_str().unwrap())
        .args(&words)
        .current_dir(elsewhere.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = guard.stdin.take().unwrap();
    let mut out = BufReader::new(guard.stdout.take().unwrap());
    let mut ask = |id: u64, method: &str, params: Value| -> Value {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    ask(1, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
    let tools = ask(2, "tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a__where", "b__where"]);
    drop(stdin);
    assert!(guard.wait().unwrap().success());

    // The lock is where it was said to be, not where the guard runs.
    let approve = words.iter().skip(1).filter(|w| **w != "--policy" && !w.ends_with("policy.toml")).copied();
    let approve: Vec<&str> = ["guard", "--approve"].into_iter().chain(approve).collect();
    let approved = entail(elsewhere.path(), &approve);
    assert!(approved.status.success(), "{approved:?}");
    assert!(read("entail.lock").is_some_and(|lock| lock.contains("[tools.\"a\"]")));

    assert!(entail(dir, &install).status.success(), "once more");
    let back = entail(dir, &["guard", "uninstall", "claude-code"]);
    assert!(back.status.success(), "{back:?}");
    assert_eq!((read(".mcp.json"), read(".mcp.entail.json")), (Some(list), None));
    let twice = entail(dir, &["guard", "uninstall", "claude-code"]);
    assert!(
        twice.status.code() == Some(2) && text(&twice.stderr).contains("no guard stands in front"),
        "{twice:?}"
    );
}

#[test]
fn an_installation_that_fails_changes_nothing() {
    let (dir, list) = project();
    let dir = dir.path();
    for (args, part) in [
        (&["install", "claude", "--policy", "policy.toml"][..], "(there is: claude-code"),
        (&["install", "claude-code"], "a guard needs a policy"),
        (&["install", "claude-code", "--policy", "none.toml"], "none.toml"),
        (&["install", "windsurf", "--policy", "policy.toml"], "there is no"),
        (&["install", "cursor", "--policy", "policy.toml", "--file", "policy.toml"], "policy.toml"),
        (&["install", "claude-code", "--policy", "policy.toml", "--user"], "home/.claude.json"),
    ] {
        let ended = entail(dir, &[&["guard"], args].concat());
        let log = text(&ended.stderr);
        assert!(ended.status.code() == Some(2) && log.contains(part), "{args:?}: {log}");
    }
    assert_eq!(std::fs::read_to_string(dir.join(".mcp.json")).unwrap(), list);
    // A file of the user, by its name.
    std::fs::create_dir_all(dir.join("home/.codex")).unwrap();
    let toml = "# mine\n[mcp_servers.a]\ncommand = \"x\" # why\n";
    std::fs::write(dir.join("home/.codex/config.toml"), toml).unwrap();
    assert!(entail(dir, &["guard", "install", "codex", "--policy", "policy.toml"]).status.success());
    let config = std::fs::read_to_string(dir.join("home/.codex/config.toml")).unwrap();
    assert!(config.contains("[mcp_servers.entail]") && !config.contains("# mine"), "{config}");
    assert!(entail(dir, &["guard", "uninstall", "codex"]).status.success());
    assert_eq!(std::fs::read_to_string(dir.join("home/.codex/config.toml")).unwrap(), toml);
}

/// A file of hooks that is not there is written, and removed again. What is there is the user's.
#[test]
fn the_hooks_of_a_client_are_installed_with_the_guard() {
    let (dir, _) = project();
    let dir = dir.path();
    let at = dir.join(".claude/settings.local.json");
    let install = ["guard", "install", "claude-code", "--policy", "policy.toml", "--hooks"];
    let shown = entail(dir, &[&install[..], &["--show"]].concat());
    assert!(text(&shown.stdout).contains("PreToolUse") && !at.exists(), "{shown:?}");
    for _ in 0..2 {
        assert!(entail(dir, &install).status.success());
        let hooks: Value = serde_json::from_str(&std::fs::read_to_string(&at).unwrap()).unwrap();
        let command = hooks["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
        // The client runs it in some folder, through a shell.
        let run = Command::new("sh").args(["-c", command]).env("XDG_RUNTIME_DIR", dir).output().unwrap();
        assert!(run.status.code() == Some(2) && text(&run.stderr).contains("it says nothing"), "{run:?}");
    }
    assert!(entail(dir, &["guard", "uninstall", "claude-code"]).status.success());
    assert!(!at.exists());

    std::fs::write(&at, "{\"model\": \"x\"}").unwrap();
    let done = entail(dir, &install);
    assert!(text(&done.stderr).contains("add the hooks to") && done.status.success(), "{done:?}");
    assert_eq!(std::fs::read_to_string(&at).unwrap(), "{\"model\": \"x\"}");
    assert!(entail(dir, &["guard", "uninstall", "claude-code"]).status.success());

    std::fs::create_dir_all(dir.join(".zed")).unwrap();
    std::fs::write(dir.join(".zed/settings.json"), "{\"context_servers\": {\"a\": {\"command\": \"x\"}}}")
        .unwrap();
    let zed = entail(dir, &["guard", "install", "zed", "--policy", "policy.toml", "--hooks"]);
    assert!(zed.status.code() == Some(2) && text(&zed.stderr).contains("without `--hooks`"), "{zed:?}");
}
