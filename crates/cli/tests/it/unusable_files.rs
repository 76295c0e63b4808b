//! Files that can't be used: what is wrong and what to do about it stands in a few lines, and what was there
//! stays.

use super::cli::{entail_in, write};
use std::path::Path;

const PROGRAM: &str = "pipeline main(input: String) -> String { return input; }\n";

/// Says what a command that is refused has said.
fn refused(dir: &Path, args: &[&str]) -> String {
    let ran = entail_in(dir, args);
    assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{args:?}: {}", ran.err);
    assert!(ran.err.len() < 2000, "{args:?}: {} bytes: {:.2000}", ran.err.len(), ran.err);
    ran.err
}

#[test]
fn a_file_that_cannot_be_read_or_written_has_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    write(dir.path(), "policy.toml", "");
    write(dir.path(), "latin.toml", b"# caf\xe9\n");
    write(dir.path(), "run.jsonl", "{\"event\":\"run\",\"version\":1}\n");
    let server = ["--", "true"];
    for (args, reason, remedy) in [
        (&["audit", "none.py"][..], "no such file", "relative to the working directory"),
        (&["lint", "none.py"], "no such file", "relative to the working directory"),
        (&["verify", "none.receipt"], "no such file", "relative to the working directory"),
        (&["guard", "watch", "none.log"], "no such file", "relative to the working directory"),
        (&["guard", "watch", "folder"], "it is a directory", "name a file in it"),
        (&["policy", "explain", "p.agent", "--config", "folder"], "it is a directory", "name a file in it"),
        (&["policy", "explain", "p.agent", "--config", "latin.toml"], "not UTF-8", "save it as UTF-8"),
        (
            &["policy", "check", "--policy", "policy.toml", "--mcp-config", "none.json"],
            "no such file",
            "relative",
        ),
        (
            &["policy", "check", "--policy", "policy.toml", "--mcp-config", "policy.toml"],
            "no servers",
            ".mcp.json",
        ),
        (&["cost", "p.agent", "--prices", "folder"], "it is a directory", "name a file in it"),
        (&["prices", "update", "latin.toml"], "not UTF-8", "save it as UTF-8"),
        (&["trace", "run.jsonl", "--html", "folder"], "it is a directory", "name a file in it"),
        (&["trace", "run.jsonl", "--html", "none/page.html"], "no such file", "check the path"),
        (&["policy", "init", "p.agent"], "no tools to describe", "name a program that has tools"),
    ] {
        let said = refused(dir.path(), args);
        assert!(said.contains(reason) && said.contains(remedy), "{args:?}: {said}");
        assert!(!said.contains("os error") && said.contains("help: "), "{args:?}: {said}");
    }
    let lock = [&["guard", "--policy", "policy.toml", "--lock", "folder"][..], &server].concat();
    assert!(refused(dir.path(), &lock).contains("help: name a file in it"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("b", dir.path().join("a")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let said = refused(dir.path(), &["policy", "explain", "a"]);
        assert!(said.to_lowercase().contains("symbolic links") && !said.contains("os error"), "{said}");
    }
}

/// A line of any length was printed whole, and a file of any size was read.
#[test]
fn a_mistake_in_a_long_line_of_toml_is_named_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    write(dir.path(), "policy.toml", "");
    write(dir.path(), "long.toml", format!("model = \"m\"\n{}\n", "a".repeat(100_000)));
    write(dir.path(), "huge.toml", "#".repeat((8 << 20) + 1));
    let said = refused(dir.path(), &["policy", "explain", "p.agent", "--config", "long.toml"]);
    assert!(said.contains("`long.toml` is wrong: line 2, column 100001: "), "{said}");
    let said = refused(dir.path(), &["policy", "explain", "p.agent", "--config", "huge.toml"]);
    assert!(said.contains("larger than the limit of 8388608 bytes"), "{said}");
    for file in ["long.toml", "huge.toml"] {
        let said = refused(
            dir.path(),
            &["policy", "check", "--policy", "policy.toml", "--mcp-config", "x.json", "--lock", file],
        );
        assert!(said.contains("line 2, column 100001") || said.contains("larger than the limit"), "{said}");
        refused(dir.path(), &["cost", "p.agent", "--prices", file]);
        refused(dir.path(), &["guard", "install", "codex", "--file", file, "--policy", "policy.toml"]);
    }
    write(dir.path(), "entail.lock", "version = 1\n[tools\n");
    let said = refused(dir.path(), &["policy", "explain", "p.agent"]);
    assert!(
        said.contains("entail.lock` is wrong") && said.contains("help: restore it, or remove it"),
        "{said}"
    );
}

#[test]
fn a_mistake_in_a_list_of_servers_has_its_place() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "policy.toml", "");
    write(dir.path(), "list.json", "{\n  \"mcpServers\": {\"a\" 1}\n}\n");
    write(dir.path(), "list.toml", "[mcp_servers.a]\ncommand = x\n");
    for (file, place) in [("list.json", "line 2, column "), ("list.toml", "line 2, column 11: ")] {
        let said = refused(dir.path(), &["policy", "check", "--policy", "policy.toml", "--mcp-config", file]);
        assert!(said.contains(place), "{said}");
    }
}

#[test]
fn a_file_that_is_audited_by_name_and_cannot_be_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    write(dir.path(), "latin.py", b"x = '\xe9'\n");
    write(dir.path(), "large.py", "#".repeat((1 << 20) + 1));
    write(dir.path(), "other.json", "{\"a\": 1}");
    for (file, part) in [
        ("p.agent", "entail check --show flow FILE"),
        ("latin.py", "not UTF-8"),
        ("large.py", "larger than the limit of 1048576 bytes"),
        ("other.json", "recognized by their content"),
    ] {
        let said = refused(dir.path(), &["audit", file]);
        assert!(said.contains(part), "{said}");
    }
}

/// SQLite takes an empty file for a new database, and made one of it.
#[test]
fn an_empty_file_that_is_named_as_a_journal_stays_empty() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "notes.txt", "");
    for command in [&["verify", "--all"][..], &["runs", "list"], &["trace", "1a"]] {
        let said = refused(dir.path(), &[command, &["--journal", "notes.txt"]].concat());
        assert!(said.contains("`notes.txt`: it is empty") && said.contains("help: "), "{said}");
        assert_eq!(std::fs::read(dir.path().join("notes.txt")).unwrap(), b"");
    }
}

#[test]
fn a_file_that_is_no_receipt_is_named() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "notes.txt", "a receipt for bread\n");
    let said = refused(dir.path(), &["verify", "notes.txt"]);
    assert!(
        said.contains("`notes.txt` can't be used: this is no receipt") && said.contains("help: "),
        "{said}"
    );
}

/// The page of an earlier run stays until the new one is there as a whole. Here no file may be larger than
/// 1 KiB.
#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_to_the_end_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "p.agent", PROGRAM);
    let ran = entail_in(dir.path(), &["run", "p.agent", "x", "--trace", "run.jsonl"]);
    assert_eq!(ran.status, 0, "{}", ran.err);
    write(dir.path(), "page.html", "the old page");
    let script = "ulimit -f 2; trap '' XFSZ; exec \"$0\" trace run.jsonl --html page.html";
    let out = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_entail")])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(std::fs::read_to_string(dir.path().join("page.html")).unwrap(), "the old page");
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 3, "no draft is left");
}
