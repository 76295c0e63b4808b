//! `scripts/registry-servers` on answers of servers that were recorded: names of tools and their hints.

use std::path::{Path, PathBuf};

const REGISTRY: &str = r#"# Servers.

source = "https://example.org/"
date = "2026-07-08"

[[server]]
name = "airtable-mcp-server"
match = [
  "airtable-mcp-server",
]
reads = ["account-read"]
writes = ["account-write"]

[[server]]
name = "github"
match = ["@modelcontextprotocol/server-github"]
source = "old"
date = "2026-07-08"
reads = ["public-read"]
writes = ["publish"]

[[server]]
name = "memory"
match = ["@modelcontextprotocol/server-memory"]
source = "old"
date = "2026-07-29"
reads = ["memory-read"]
writes = ["memory-write"]
read_tools = ["read_graph", "search_nodes", "open_nodes"]
write_tools = ["create_entities", "create_relations", "add_observations", "delete_entities",
  "delete_observations", "delete_relations"]

[[server]]
name = "playwright"
match = ["@playwright/mcp"]
source = "old"
date = "2026-08-07"
reads = ["public-read"]
writes = ["account-write"]
read_tools = ["browser_navigate", "browser_gone"]
write_tools = ["browser_click"]
[[server.tools]]
names = ["browser_run_code_unsafe"]
effects = ["code"]
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Exit status and output of the script, with the registry of a folder and the recorded answers.
fn script(registry: &Path, options: &[&str]) -> (Option<i32>, String) {
    let done = std::process::Command::new("python3")
        .arg(root().join("scripts/registry-servers"))
        .arg("--from")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/registry"))
        .arg("--registry")
        .arg(registry)
        .args(options)
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    (done.status.code(), String::from_utf8(said).unwrap())
}

fn tools(registry: &toml::Table, server: &str, list: &str) -> Vec<String> {
    let entry = registry["server"].as_array().unwrap().iter().find(|s| s["name"].as_str() == Some(server));
    let list = entry.unwrap().get(list).and_then(|l| l.as_array());
    list.into_iter().flatten().map(|t| t.as_str().unwrap().to_string()).collect()
}

#[test]
fn offers_of_servers_are_compared_with_the_registry_and_written() {
    let dir = tempfile::tempdir().unwrap();
    let registry = dir.path().join("servers.toml");
    std::fs::write(&registry, REGISTRY).unwrap();
    let (status, said) = script(&registry, &[]);
    assert_eq!(status, Some(1), "{said}");
    for line in [
        "memory 2026.8.31: 9 tools, as listed",
        "airtable-mcp-server 1.14.0: 16 tools, known by its purpose alone",
        "  + delete_records (changes something)",
        "playwright 0.0.83: 25 tools, which differ",
        "  - browser_gone",
        "  + browser_snapshot (reads)",
        "  ! browser_navigate: the registry says that it reads, the server that it changes something",
        "1 as listed, 1 differ, 2 known by their purpose alone, 0 could not be asked",
    ] {
        assert!(said.lines().any(|l| l == line), "{line} is not in\n{said}");
    }
    assert!(!said.contains("browser_run_code_unsafe"), "{said}");
    assert_eq!(std::fs::read_to_string(&registry).unwrap(), REGISTRY);

    let (_, said) = script(&registry, &["--write"]);
    let text = std::fs::read_to_string(&registry).unwrap();
    let written: toml::Table = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert!(
        tools(&written, "airtable-mcp-server", "write_tools").contains(&"delete_records".into()),
        "{said}"
    );
    let reads = tools(&written, "playwright", "read_tools");
    // A known tool stays where a person put it, and one that is gone is gone.
    assert!(reads.contains(&"browser_navigate".into()) && !reads.contains(&"browser_gone".into()), "{text}");
    assert!(text.contains("[[server.tools]]\nnames = [\"browser_run_code_unsafe\"]"), "{text}");
    // Without a hint nobody knows what they do.
    assert!(tools(&written, "github", "read_tools").is_empty(), "{text}");
    assert!(text.contains("source = \"https://www.npmjs.com/package/@playwright/mcp/v/0.0.83\""), "{text}");
    assert_eq!(text.matches("source = \"old\"").count(), 2, "{text}");
    // An entry of the catalog gets a source of its own.
    assert!(
        text.contains("source = \"https://www.npmjs.com/package/airtable-mcp-server/v/1.14.0\""),
        "{text}"
    );
    assert!(text.contains("source = \"https://example.org/\""), "{text}");

    // What was written agrees.
    let (_, said) = script(&registry, &["airtable-mcp-server"]);
    assert!(said.contains("16 tools, as listed") && said.contains("1 as listed, 0 differ"), "{said}");
}
