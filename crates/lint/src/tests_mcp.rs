//! Lists of MCP servers.

use super::*;
use diagnostics::{FileId, Sources};

/// `code agent text-at-the-place` of each finding above info.
fn found(text: &str) -> Vec<String> {
    let mut sources = Sources::new();
    sources.add("mcp.json", text);
    let Outcome::Checked { framework, findings, .. } =
        lint_bytes(frontends::recognize, "mcp.json", FileId(0), text.as_bytes(), &Config::default()).outcome
    else {
        panic!("not read: {text}")
    };
    assert_eq!(framework, "mcp");
    let show = |d: &Diagnostic| {
        let at = if d.hide_source { "…" } else { sources.text(d.span.unwrap()) };
        format!("{} {} {at}", d.code, d.agent.as_deref().unwrap_or("-"))
    };
    findings.iter().map(show).collect()
}

#[test]
fn servers_are_linted() {
    let text = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@acme/files", "--api-key", "8f14e45fceea167a5a36dedd4bea2543"]},
        "time": {"command": "uvx", "args": ["acme-time@2.0.1"], "env": {"ACME_TOKEN": "8f14e45fceea167a5a36dedd4bea2543"}},
        "mail": {"type": "http", "url": "http://mail.acme-tools.io/mcp", "headers": {"Authorization": "Bearer 8f14e45fceea167a5a36dedd4bea2543"}},
        "bridge": {"command": "npx", "args": ["mcp-remote@0.1.29", "http://mail.acme-tools.io/sse", "--allow-http"]},
        "desk": {"command": "desk", "autoApprove": ["read_file", "execute_command"], "alwaysAllow": ["bash"]},
    }}"#;
    assert_eq!(
        found(text),
        [
            "S006 files \"@acme/files\"",
            "S001 files …",
            "S001 time …",
            "S002 mail \"http://mail.acme-tools.io/mcp\"",
            "S001 mail …",
            "S002 bridge \"http://mail.acme-tools.io/sse\"",
            "S003 desk \"execute_command\"",
            "S003 desk \"bash\"",
        ]
    );
}

#[test]
fn files_without_mcp_servers_are_skipped() {
    for text in [
        r#"{"servers": [{"url": "https://api.acme-tools.io/v1"}], "openapi": "3.1.0"}"#,
        r#"{"servers": {"one": {"url": "https://api.acme-tools.io/v1"}}}"#,
        r#"{"servers": {"one": {"host": "h", "command": 3}}}"#,
        r#"{"mcpServers": ["a", "b"]}"#,
        r#"{"mcpServers": "a"}"#,
    ] {
        let outcome =
            lint_bytes(frontends::recognize, "a.json", FileId(0), text.as_bytes(), &Config::default())
                .outcome;
        assert!(matches!(outcome, Outcome::Skipped(Skip::NoAgent)), "{text}: {outcome:?}");
    }
}

#[test]
fn s006_findings_of_a_file_are_folded() {
    let text = r#"{"mcpServers": {"a": {"command": "npx", "args": ["-y", "a"]}, "b": {"command": "uvx", "args": ["b"]}}}"#;
    let report = lint_bytes(frontends::recognize, "mcp.json", FileId(0), text.as_bytes(), &Config::default());
    let Outcome::Checked { mut findings, .. } = report.outcome else { panic!() };
    fold(&mut findings);
    assert_eq!(findings.len(), 1);
    assert!(
        findings[0].help.iter().any(|h| h == "the same holds for 1 more in this file: `b`"),
        "{findings:?}"
    );
}
