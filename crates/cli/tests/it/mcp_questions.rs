//! Questions of MCP servers at a terminal, and where there is none.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

const SERVER: &str = include_str!("mcp_questions/server.py");
const TERMINAL: &str = include_str!("mcp_questions/terminal.py");

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("server.py", SERVER);
    write("terminal.py", TERMINAL);
    write("entail.toml", "[mcp.booking]\ncommand = [\"python3\", \"server.py\"]\n");
    write(
        "trip.agent",
        "tool book() -> String reads { mcp \"booking\" }\npipeline main() -> String { let b = run book with {}; return b; }\n",
    );
    dir
}

/// Returns the exit status and the output of `entail run` at a terminal at which these lines are typed.
fn at_terminal(dir: &Path, typed: &[(&str, &str)]) -> (i32, String) {
    let typed = serde_json::to_string(typed).unwrap();
    let mut command = Command::new("python3");
    command.args(["terminal.py", &typed, env!("CARGO_BIN_EXE_entail"), "run", "trip.agent"]);
    let out = command.current_dir(dir).stdin(Stdio::null()).output().unwrap();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn the_person_at_the_terminal_answers() {
    let dir = folder();
    let typed = [("answer? [y/N] ", "y\n"), ("> ", "Paris\n"), ("> ", "2\n"), ("> ", "0\n"), ("> ", "3\n")];
    let (status, shown) = at_terminal(dir.path(), &typed);
    assert_eq!(status, 0, "{shown}");
    // Its message moves no cursor.
    assert!(shown.contains(r"  | Where?\u{1b}[2J\u{202e}"), "{shown}");
    for text in ["the MCP server `booking` asks a question", "it is none of the options", "it is less than 1"]
    {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let shown = shown.replace('\\', "");
    assert!(shown.contains(r#"{"action": "accept", "content": {"city": "Oslo", "days": 3}}"#), "{shown}");
    let (status, shown) = at_terminal(dir.path(), &[("answer? [y/N] ", "\n")]);
    assert!(status == 0 && shown.contains(r#"action\": \"decline"#), "{shown}");
    // Ctrl-D.
    let (status, shown) = at_terminal(dir.path(), &[("answer? [y/N] ", "y\n"), ("> ", "\x04")]);
    assert!(status == 0 && shown.contains(r#"action\": \"cancel"#), "{shown}");
}

#[test]
fn without_a_terminal_servers_are_told_that_nobody_answers() {
    let dir = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    let out =
        command.args(["run", "trip.agent"]).current_dir(dir.path()).stdin(Stdio::null()).output().unwrap();
    let shown = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && shown.contains("it failed: `nobody to ask`"), "{shown}");
}
