//! Programs that the front ends accept have no type error.

use analysis::types::{self, Typing};
use core_ir::{Code, Term, Type};
use diagnostics::{FileId, Sources, has_errors};
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(directory: &Path, extensions: &[&str], out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut entries: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            files(&path, extensions, out);
        } else if path.extension().and_then(|e| e.to_str()).is_some_and(|e| extensions.contains(&e)) {
            out.push(path);
        }
    }
}

fn fine(what: &str, text: &str, code: &Code, input: Option<&Type>) -> Typing {
    let typing = types::check(code, input);
    assert!(typing.complete, "{what}");
    // What is not known to satisfy a condition is checked in the run.
    if let Some(d) = typing.diagnostics.iter().find(|d| d.code != types::codes::REFINEMENT) {
        let place = d.span.and_then(|s| text.get(s.start as usize..s.end as usize)).unwrap_or("");
        panic!("{what}: {} {} at `{place}`\n{}", d.code, d.message, core_ir::print_code(code));
    }
    typing
}

#[test]
fn agent_programs_that_are_accepted_have_no_type_error() {
    let mut paths = Vec::new();
    for directory in ["suite/agent", "examples"] {
        files(&root().join(directory), &["agent"], &mut paths);
    }
    let mut checked = 0;
    let mut settled = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let (Some(module), _) = agentlang::check(FileId(0), &text) else { continue };
        for entry in module.entries() {
            let Ok(code) = module.lower(entry) else { continue };
            let what = format!("{} {}", path.display(), entry.name);
            let typing = fine(&what, &text, &code, Some(&entry.input));
            checked += 1;
            settled += usize::from(typing.is_static());
        }
    }
    assert!(checked > 50, "{checked}");
    // Most is known before the run; functions of lists, such as `map`, and functions that call themselves are
    // typed by the language alone.
    assert!(settled * 10 > checked * 7, "{settled} of {checked}");
}

#[test]
fn lam_programs_of_the_examples_have_no_type_error() {
    let mut paths = Vec::new();
    for directory in ["suite/lam", "examples"] {
        files(&root().join(directory), &["lam"], &mut paths);
    }
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let mut sources = Sources::new();
        let file = sources.add(path.display().to_string(), text.as_str());
        if let Some(code) = agentlang::calculus::compile(file, &text).code {
            fine(&path.display().to_string(), &text, &code, None);
        }
    }
}

fn config(path: &Path) -> usize {
    let Ok(text) = std::fs::read_to_string(path).map(Arc::<str>::from) else { return 0 };
    let file = File::read(FileId(0), &path.display().to_string(), &text, &Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let Some(compiled) = frontends::compile(&project, 0) else { return 0 };
    if has_errors(&compiled.diagnostics) {
        return 0;
    }
    for unit in &compiled.units {
        // What it takes is written at its function, or a text.
        let input = match unit.code.term(unit.code.root()) {
            Term::Abs(abs) => abs.ty.clone().unwrap_or(Type::Str),
            _ => Type::Str,
        };
        fine(&format!("{} {}", path.display(), unit.name), &text, &unit.code, Some(&input));
    }
    compiled.units.len()
}

#[test]
fn configurations_that_compile_have_no_type_error() {
    let mut paths = Vec::new();
    for directory in ["suite/frontends", "examples"] {
        files(&root().join(directory), &["yaml", "yml", "json"], &mut paths);
    }
    assert!(paths.iter().map(|p| config(p)).sum::<usize>() > 3);
}

/// A directory of public configurations, where there is one: `ENTAIL_CORPUS=directory cargo test`.
#[test]
fn configurations_of_a_corpus_have_no_type_error() {
    let Ok(corpus) = std::env::var("ENTAIL_CORPUS") else { return };
    let mut paths = Vec::new();
    files(Path::new(&corpus), &["yaml", "yml", "json"], &mut paths);
    let units: usize = paths.iter().map(|p| config(p)).sum();
    assert!(units > 0, "{} files", paths.len());
}
