//! Wrong programs of newcomers: what people type who know Python, TypeScript, BAML or an agent framework, or
//! who slip.
//!
//! The programs of `tests/newcomers` were written before anybody looked at their messages. `// Error: a-b
//! CODE` or `// Warning: a-b CODE` above a line is what is expected there. Nothing else may be found.
//!
//! `messages.txt` has what each is told, and `scores.tsv` how good that is, from 1 to 5: the mistake is
//! found, placed, explained and remedied, and no message only follows from it. A person gives the scores.
//!
//! `UPDATE_EXPECTED=1 cargo test -p agentlang --test it newcomers::` writes marks and messages anew. Scores
//! of messages that changed are then given again.

use crate::surface::annotations;
use agentlang::check;
use diagnostics::{Sources, render};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newcomers")
}

/// The programs by name, with their texts.
fn programs() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let programs = files.filter(|path| path.extension().is_some_and(|e| e == "agent"));
    let named = programs.map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    });
    named.collect()
}

fn is_mark(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("// Error: ") || line.starts_with("// Warning: ")
}

/// The text without marks.
fn unmarked(text: &str) -> String {
    let lines = text.lines().filter(|line| !is_mark(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The text with a mark above each line of a finding: its place and code.
fn marked(name: &str, text: &str) -> String {
    let found = annotations(Path::new(name), text);
    let mut out = String::new();
    for (i, line) in text.lines().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        for (_, finding) in found.iter().filter(|(l, _)| *l as usize == i + 1) {
            let words: Vec<&str> = finding.splitn(4, ' ').take(3).collect();
            out += &format!("{indent}// {}\n", words.join(" "));
        }
        out += &format!("{line}\n");
    }
    out
}

/// The messages of a text.
fn messages(name: &str, text: &str) -> String {
    let mut sources = Sources::new();
    let file = sources.add(format!("{name}.agent"), text);
    let found = check(file, text).1;
    let shown: Vec<String> = found.iter().map(|d| render::text(&sources, d, false)).collect();
    shown.join("\n")
}

#[test]
fn each_mistake_is_found_at_its_place_and_told_as_recorded() {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let (mut wrong, mut all) = (String::new(), String::new());
    for (name, text) in programs() {
        let plain = unmarked(&text);
        let expected = marked(&name, &plain);
        if update {
            std::fs::write(folder().join(format!("{name}.agent")), &expected).unwrap();
        } else if expected != text {
            wrong += &format!("{name} is now:\n{expected}");
        }
        all += &format!("=== {name}\n{}\n", messages(&name, &plain).trim_end());
    }
    let recorded = folder().join("messages.txt");
    if update {
        std::fs::write(recorded, &all).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{wrong}");
    let before = std::fs::read_to_string(recorded).unwrap();
    let changed = all.split("=== ").filter(|one| !before.contains(one));
    let changed: Vec<&str> = changed.collect();
    assert!(all == before, "told otherwise:\n{}", changed.concat());
}

/// The requirement of the project: 4.7 of 5 over at least 100 programs.
#[test]
fn messages_are_good() {
    let scores = std::fs::read_to_string(folder().join("scores.tsv")).unwrap();
    let mut given: BTreeMap<&str, f64> = BTreeMap::new();
    for row in scores.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [name, before, after] = columns[..] else { panic!("{row}") };
        let score = |text: &str| text.parse().ok().filter(|n| (1.0..=5.0).contains(n));
        assert!(score(before).is_some(), "{row}");
        given.insert(name, score(after).unwrap_or_else(|| panic!("{row}")));
    }
    let names: Vec<String> = programs().into_keys().collect();
    assert_eq!(given.keys().copied().collect::<Vec<_>>(), names);
    let mean = given.values().sum::<f64>() / names.len() as f64;
    assert!(names.len() >= 100 && mean >= 4.7, "{mean} over {}", names.len());
}
