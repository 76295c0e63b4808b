//! Formats that are recognised so that they can be named and counted, though no front end compiles
//! them yet. A line leaves this table when its front end arrives.

use crate::doc::Node;
use crate::project::File;

/// A format's name and the mark by which a document's outermost node shows it.
type Mark = (&'static str, fn(Node<'_>) -> bool);

/// In this order: the first that matches names the file.
const MARKS: &[Mark] = &[
    ("open_agent_spec", |r| {
        has(r, "agentspec_version") || (has(r, "component_type") && has(r, "$referenced_components"))
    }),
    ("dify", |r| {
        is(r, "kind", "app") && has(r, "app") || has(r, "app") && mapping_with(r, "workflow", "graph")
    }),
    ("n8n", |r| {
        list_of(r, "nodes", |n| has(n, "typeVersion") || text_starts(n, "type", "n8n-"))
            && has(r, "connections")
    }),
    ("flowise", |r| {
        list_of(r, "nodes", |n| {
            mapping_with(n, "data", "inputParams") || mapping_with(n, "data", "inputAnchors")
        })
    }),
    ("langflow", |r| {
        r.at(&["data", "nodes"]).is_some_and(|n| n.is_sequence()) && has(r, "last_tested_version")
    }),
    ("ragflow", |r| r.at(&["dsl", "components"]).is_some()),
    ("langgraph", |r| {
        mapping(r, "graphs") && (has(r, "dependencies") || has(r, "node_version") || has(r, "source"))
    }),
    ("autogen", |r| {
        text_starts(r, "provider", "autogen_")
            || list_of(r, "components", |c| text_starts(c, "provider", "autogen_"))
            || r.descendants().take(400).any(|n| has(n, "llm_config") && has(n, "human_input_mode"))
    }),
    ("ms_declarative", |r| {
        matches!(text(r, "kind"), Some("Workflow")) && has(r, "trigger")
            || is(r, "kind", "AdaptiveDialog")
            || is(r, "kind", "Prompt") && has(r, "instructions")
    }),
    ("promptflow", |r| {
        mapping(r, "inputs") && list_of(r, "nodes", |n| has(n, "source") || has(n, "use_variants"))
            || text_starts(r, "$schema", "https://azuremlschemas")
    }),
    ("chatdev", |r| list_of_at(r, &["graph", "nodes"], |n| has(n, "id") && has(n, "type"))),
];

/// The name of the format that a file shows the mark of.
pub fn format(file: &File) -> Option<&'static str> {
    file.documents.iter().take(8).find_map(|d| {
        let root = d.root();
        // Some formats keep several agents in one list.
        let first = if root.is_sequence() { root.items().next()? } else { root };
        MARKS.iter().find(|(_, mark)| mark(first)).map(|(name, _)| *name)
    })
}

/// Whether a name stands for files that show the mark of no one format.
pub fn is_catch_all(name: &str) -> bool {
    matches!(name, "generic" | "multi_agent")
}

fn has(node: Node<'_>, key: &str) -> bool {
    node.get(key).is_some()
}

fn mapping(node: Node<'_>, key: &str) -> bool {
    node.get(key).is_some_and(|n| n.is_mapping())
}

fn mapping_with(node: Node<'_>, key: &str, inner: &str) -> bool {
    node.at(&[key, inner]).is_some()
}

fn text<'d>(node: Node<'d>, key: &str) -> Option<&'d str> {
    node.get(key)?.as_str()
}

fn is(node: Node<'_>, key: &str, value: &str) -> bool {
    text(node, key) == Some(value)
}

fn text_starts(node: Node<'_>, key: &str, prefix: &str) -> bool {
    text(node, key).is_some_and(|t| t.starts_with(prefix))
}

/// Whether one of the first items of a list passes.
fn list_of(node: Node<'_>, key: &str, test: fn(Node<'_>) -> bool) -> bool {
    list_of_at(node, &[key], test)
}

fn list_of_at(node: Node<'_>, path: &[&str], test: fn(Node<'_>) -> bool) -> bool {
    node.at(path).is_some_and(|n| n.items().take(20).any(test))
}
