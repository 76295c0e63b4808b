//! A formatted program is the same term: what `entail fmt` writes is lowered like what it read.

use crate::suite::{Files, found_at, programs};
use core_ir::{Code, print_code};
use diagnostics::{FileId, has_errors};
use std::path::{Path, PathBuf};
use syntax::format;

const FILE: FileId = FileId(0);

/// The programs of the suite and of the examples, with this extension.
fn all(extension: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut out = Vec::new();
    for folder in ["suite", "examples"] {
        programs(&root.join(folder), extension, &mut out);
    }
    out
}

/// The terms of an accepted program, each behind the name of its entry, without places.
fn terms(path: &Path, text: &str) -> Option<Vec<(String, Code)>> {
    let (_, module, found) = found_at(&path.display().to_string(), text, Files::default());
    let module = module.filter(|_| !has_errors(&found))?;
    let lower = |e: &agentlang::Entry| (e.name.clone(), module.lower(e).unwrap());
    Some(module.entries().iter().map(lower).collect())
}

#[test]
fn formatted_programs_are_lowered_to_the_same_terms() {
    let (mut compared, mut changed) = (0, 0);
    for path in all("agent") {
        let text = std::fs::read_to_string(&path).unwrap();
        // As it is, and with less space, so that there is something to format.
        for text in [text.clone(), text.replace("    ", " ").replace(" {\n", "{\n")] {
            // Those with errors have no term.
            let Some(before) = terms(&path, &text) else { continue };
            let name = path.display();
            let formatted = format::agent(FILE, &text).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
            changed += usize::from(formatted != text);
            let after = terms(&path, &formatted).unwrap_or_else(|| panic!("{name}: {formatted}"));
            assert_eq!(before.len(), after.len(), "{name}");
            for ((entry, a), (_, b)) in before.iter().zip(&after) {
                compared += 1;
                assert!(a == b, "{name}, `{entry}`:\n{}\n--- formatted\n{}", print_code(a), print_code(b));
            }
        }
    }
    assert!(compared > 100 && changed > 20, "{compared} terms, {changed} changed files");
}

#[test]
fn formatted_terms_are_the_same() {
    let (mut compared, mut changed) = (0, 0);
    let compile = |text: &str| agentlang::calculus::compile(FILE, text).code;
    for path in all("lam") {
        for text in crate::suite::cases(&std::fs::read_to_string(&path).unwrap()) {
            let Some(before) = compile(&text) else { continue };
            let name = path.display();
            let formatted = format::lam(FILE, &text).unwrap_or_else(|e| panic!("{name}: {e:#?}\n{text}"));
            compared += 1;
            changed += usize::from(formatted != text);
            let after = compile(&formatted).unwrap_or_else(|| panic!("{name}: {formatted}"));
            assert!(before == after, "{name}:\n{text}\n--- formatted\n{formatted}");
        }
    }
    assert!(compared > 100 && changed >= 10, "{compared} terms, {changed} changed texts");
}
