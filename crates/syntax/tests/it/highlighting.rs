//! The grammars of editors name the words of the languages, all of them and no others.

use std::collections::BTreeSet;
use syntax::agent::keywords::{Role, TABLE};

/// The words that a grammar shows in each of its colors.
fn colors(file: &str) -> Vec<(String, BTreeSet<String>)> {
    let path = format!("{}/../../editors/vscode/syntaxes/{file}", env!("CARGO_MANIFEST_DIR"));
    let grammar: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut out = Vec::new();
    for pattern in grammar["patterns"].as_array().unwrap() {
        let (Some(name), Some(words)) = (pattern["name"].as_str(), pattern["match"].as_str()) else {
            continue;
        };
        let Some(words) = words.strip_prefix("\\b(").and_then(|w| w.strip_suffix(")\\b")) else { continue };
        out.push((name.to_string(), words.split('|').map(str::to_string).collect()));
    }
    out
}

/// The color of a role; words that only stand where a name would have none.
fn color(word: &str, role: Role) -> Option<&'static str> {
    Some(match role {
        Role::Item | Role::Step => "storage.type",
        Role::Statement if word == "let" => "storage.type",
        Role::Statement | Role::Part => "keyword.control",
        Role::Expression | Role::Clause | Role::Link | Role::Body => "keyword.other",
        Role::Flow => "storage.modifier",
        Role::Type => "support.type",
        Role::Constant => "constant.language",
        Role::Field => return None,
    })
}

#[test]
fn the_grammar_of_agent_files_has_the_words_of_the_table() {
    let colors = colors("agent.tmLanguage.json");
    assert_eq!(colors.len(), 6, "{colors:?}");
    for (name, words) in colors {
        let table = TABLE.iter().filter(|k| color(k.word, k.role) == Some(&name));
        let table: BTreeSet<String> = table.map(|k| k.word.to_string()).collect();
        let line = table.iter().map(String::as_str).collect::<Vec<_>>().join("|");
        assert_eq!(words, table, "{name}: \\\\b({line})\\\\b");
    }
}

#[test]
fn the_grammar_of_lam_files_has_the_words_of_the_calculus() {
    let colors = colors("lam.tmLanguage.json");
    // Words that may be variables, or are parts of a form.
    let others = ["fix", "inf", "relabel", "quarantine", "pure", "read", "write", "by"];
    let known: BTreeSet<String> =
        core_ir::print::KEYWORDS.iter().chain(&others).map(|w| w.to_string()).collect();
    let shown: BTreeSet<String> = colors.iter().flat_map(|(_, words)| words.clone()).collect();
    assert_eq!(shown, known);
    assert_eq!(
        shown.len(),
        colors.iter().map(|(_, words)| words.len()).sum::<usize>(),
        "a word has one color"
    );
}
