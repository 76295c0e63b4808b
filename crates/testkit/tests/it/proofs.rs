//! The map from claims to theorems (`docs/proofs.md`) and the proofs name the same things.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the texts in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The theorems of the page, each with its file: rows of a table whose last cell is one.
fn named(page: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for line in page.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [.., theorems, file] = cells[..] else { continue };
        if let Some(file) = quoted(file).find(|f| f.ends_with(".v")) {
            out.extend(quoted(theorems).map(|t| (t.to_string(), file.to_string())));
        }
    }
    out
}

/// Returns true if a file states a theorem of that name, and proves it.
fn states(source: &str, name: &str) -> bool {
    let kinds = ["Theorem", "Lemma", "Corollary", "Example"];
    source.lines().any(|line| {
        let mut words = line.split([' ', ':', '(']).filter(|w| !w.is_empty());
        words.next().is_some_and(|w| kinds.contains(&w)) && words.next() == Some(name)
    })
}

#[test]
fn every_theorem_of_the_page_is_in_its_file_and_its_assumptions_are_printed() {
    let theorems = named(&read("docs/proofs.md"));
    assert!(theorems.len() > 50, "{theorems:?}");
    let assumptions = read("proofs/Assumptions.v");
    for (name, file) in &theorems {
        assert!(
            states(&read(&format!("proofs/{file}")), name),
            "docs/proofs.md: no `{name}` in proofs/{file}"
        );
        assert!(
            assumptions.contains(&format!("Print Assumptions {name}.")),
            "proofs/Assumptions.v does not print those of `{name}`"
        );
    }
}

#[test]
fn every_theorem_whose_assumptions_are_printed_is_on_the_page() {
    let page: BTreeSet<String> = named(&read("docs/proofs.md")).into_iter().map(|(name, _)| name).collect();
    for line in read("proofs/Assumptions.v").lines() {
        if let Some(name) = line.strip_prefix("Print Assumptions ").and_then(|l| l.strip_suffix('.')) {
            assert!(page.contains(name), "docs/proofs.md does not say what `{name}` is for");
        }
    }
}

/// The tests of counterexamples are in this file, if the page gives no path.
const COUNTEREXAMPLES: &str = "crates/machine/tests/it/counterexamples.rs";

#[test]
fn every_counterexample_of_the_page_has_its_test_and_its_theorem() {
    let page = read("docs/proofs.md");
    let mut tests = BTreeSet::new();
    for line in page.lines().filter(|l| l.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, test, _, file] = cells[..] else { continue };
        if !quoted(file).any(|f| f.ends_with(".v")) {
            continue;
        }
        for quoted in quoted(test) {
            let (path, name) = quoted.split_once("::").unwrap_or((COUNTEREXAMPLES, quoted));
            assert!(has(path, &read(path), name), "docs/proofs.md: no test `{name}` in {path}");
            tests.insert(name.to_string());
        }
    }
    let counterexamples = read(COUNTEREXAMPLES);
    let all = counterexamples.lines().filter_map(|l| l.strip_prefix("fn c")?.split_once("()"));
    let numbered = all.filter(|(name, _)| name.starts_with(|c: char| c.is_ascii_digit()));
    let numbered: Vec<String> = numbered.map(|(name, _)| format!("c{name}")).collect();
    assert!(numbered.len() >= 10, "{numbered:?}");
    for name in numbered {
        assert!(tests.contains(&name), "docs/proofs.md does not say what `{name}` is a test of");
    }
}

/// Returns true if a file has a test, a case or a theorem of that name.
fn has(path: &str, source: &str, name: &str) -> bool {
    match path.rsplit('.').next() {
        Some("rs") => source.contains(&format!("fn {name}(")),
        Some("lam") => {
            source.lines().any(|l| l.strip_prefix("--- ").or(l.strip_prefix("=== ")) == Some(name))
        }
        Some("v") => states(source, name),
        _ => false,
    }
}

#[test]
fn every_place_that_the_seed_page_names_is_there() {
    let page = read("docs/seed-lambda-a.md");
    let (mut files, mut names) = (0, 0);
    for quoted in quoted(&page) {
        let (path, name) = match quoted.split_once("::") {
            Some((path, name)) => (path, Some(name)),
            None => (quoted, None),
        };
        if !["crates/", "suite/", "examples/", "proofs/", "scripts/"]
            .iter()
            .any(|root| path.starts_with(root))
        {
            continue;
        }
        files += 1;
        assert!(root().join(path).exists(), "docs/seed-lambda-a.md: there is no `{path}`");
        if let Some(name) = name {
            names += 1;
            assert!(has(path, &read(path), name), "docs/seed-lambda-a.md: no `{name}` in {path}");
        }
    }
    assert!(files > 60 && names > 40, "{files} places, {names} names");
}
