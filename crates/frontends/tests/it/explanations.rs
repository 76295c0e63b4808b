//! The examples of the diagnostics of documents and front ends.

use diagnostics::{Diagnostic, FileId};
use frontend_kit::codes::EXPLANATIONS;
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Project};
use frontends::compile;

fn said(text: &str) -> Vec<&'static str> {
    let limits = Limits::default();
    let text = match decode(FileId(0), text.as_bytes(), &limits) {
        Ok(text) => text,
        Err(d) => return vec![d.code],
    };
    let path = if text.starts_with('{') && !text.starts_with("{{") { "a.json" } else { "a.yaml" };
    let file = File::read(FileId(0), path, &text, &limits);
    let mut all: Vec<Diagnostic> = file.diagnostics.clone();
    if let Some(compiled) = compile(&Project { files: vec![file], ..Project::default() }, 0) {
        all.extend(compiled.diagnostics);
    }
    all.iter().map(|d| d.code).collect()
}

#[test]
fn each_wrong_example_gives_its_code_and_each_right_one_does_not() {
    for e in EXPLANATIONS {
        let (wrong, right) = (said(e.wrong), said(e.right));
        assert!(e.wrong.is_empty() || wrong.contains(&e.code), "{}: {wrong:?}", e.code);
        assert!(!right.contains(&e.code), "{}: {right:?}", e.code);
    }
}
