//! The fixtures of `suite/frontends`: what each compiles to is in the file `NAME.expected` beside it.
//!
//! A fixture is compiled with the other files of its folder at hand. `UPDATE_EXPECTED=1` writes what came
//! out; read the difference before it is committed.

use diagnostics::{Sources, Span};
use frontend_kit::doc::Limits;
use frontend_kit::{Compiled, File, Project, Recognized};
use frontends::{FRONTENDS, recognize};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders whose expectations are written in tests of their own.
const ELSEWHERE: &[&str] = &["crewai", "lambda_yaml"];

fn suite() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/frontends")
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

/// A folder with the names and texts of its fixtures.
type Folder = (String, Vec<(String, Arc<str>)>);

/// Every folder.
fn folders() -> Vec<Folder> {
    let mut all = Vec::new();
    for folder in files_in(&suite()).into_iter().filter(|p| p.is_dir()) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let mut files = Vec::new();
        for path in files_in(&folder) {
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            if File::is_read(&file) {
                files.push((file, Arc::from(std::fs::read_to_string(&path).unwrap())));
            }
        }
        all.push((name, files));
    }
    all
}

fn project(files: &[(String, Arc<str>)], main: usize) -> (Project, Sources) {
    let mut sources = Sources::new();
    let mut project = Project::default();
    let others = (0..files.len()).filter(|i| *i != main);
    for i in std::iter::once(main).chain(others) {
        let (path, text) = &files[i];
        let id = sources.add(path.as_str(), text.clone());
        project.files.push(File::read(id, path, text, &Limits::default()));
    }
    (project, sources)
}

fn shown(compiled: &Compiled, sources: &Sources) -> String {
    let mut out = format!("{}\n", compiled.framework);
    let place = |s: Option<Span>| s.map_or(String::new(), |s| sources.place(s));
    for d in &compiled.diagnostics {
        let _ = writeln!(out, "{} {} {}: {}", d.code, d.level.as_str(), place(d.span), d.message);
    }
    for unit in &compiled.units {
        let agents: Vec<&str> = unit.agents.iter().map(|a| a.name.as_str()).collect();
        let _ = writeln!(out, "\n# {} {:?} [{}]", unit.name, unit.kind, agents.join(", "));
        out.push_str(&core_ir::print_code(&unit.code));
        out.push('\n');
    }
    out
}

#[test]
fn fixtures_compile_to_what_is_expected() {
    let update = std::env::var_os("UPDATE_EXPECTED").is_some();
    let mut wrong = Vec::new();
    for (folder, files) in folders().iter().filter(|(f, _)| !ELSEWHERE.contains(&f.as_str())) {
        for (i, (name, _)) in files.iter().enumerate() {
            let (project, sources) = project(files, i);
            let Recognized::Frontend(frontend) = recognize(&project.files[0]) else {
                // A file that others refer to.
                continue;
            };
            let compiled = frontend.lower(&project, 0);
            inside(&compiled, &sources);
            let got = shown(&compiled, &sources);
            let path = suite().join(folder).join(format!("{name}.expected"));
            if update {
                std::fs::write(&path, &got).unwrap();
            } else if std::fs::read_to_string(&path).unwrap_or_default() != got {
                wrong.push(format!("{folder}/{name}: now\n{got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every place is within its file, every message is one, every term is printable.
fn inside(compiled: &Compiled, sources: &Sources) {
    let inside = |s: Span| {
        let len = sources.get(s.file).map_or(0, |f| f.text.len());
        s.start <= s.end && s.end as usize <= len
    };
    for d in &compiled.diagnostics {
        assert!(d.span.is_none_or(inside), "{d:?}");
        assert!(!d.message.ends_with('.') && !d.message.is_empty(), "{d:?}");
    }
    for unit in &compiled.units {
        for (id, _) in unit.code.iter() {
            assert!(inside(unit.code.span(id)));
        }
    }
}

#[test]
fn every_front_end_has_fixtures() {
    let mut missing: Vec<&str> = FRONTENDS.iter().map(|f| f.name()).collect();
    for (_, files) in folders() {
        for i in 0..files.len() {
            let (project, _) = project(&files, i);
            if let Recognized::Frontend(frontend) = recognize(&project.files[0]) {
                missing.retain(|m| *m != frontend.name());
            }
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// A damaged fixture is compiled or complained about, whatever front end reads it: within the size of the
    /// file, never by a panic.
    #[test]
    fn damaged_fixtures_compile_or_complain(
        which in any::<proptest::sample::Index>(),
        edits in proptest::collection::vec((any::<u16>(), "[-:{}\\[\\]() \n\"a-z0-9*&|.=,]{0,4}", 0..12usize), 1..6),
    ) {
        let all: Vec<(String, Arc<str>)> = folders().into_iter().flat_map(|(_, f)| f).collect();
        let (name, text) = which.get(&all);
        let mut text: Vec<char> = text.chars().collect();
        for (place, insert, remove) in edits {
            let place = place as usize % (text.len() + 1);
            let end = (place + remove).min(text.len());
            text.splice(place..end, insert.chars());
        }
        let text: String = text.into_iter().collect();
        let (project, sources) = project(&[(name.clone(), Arc::from(text.as_str()))], 0);
        for frontend in FRONTENDS {
            let compiled = frontend.lower(&project, 0);
            inside(&compiled, &sources);
            let terms: usize = compiled.units.iter().map(|u| u.code.len()).sum();
            prop_assert!(terms <= 40 * text.len() + 2_000, "{} terms of {} bytes", terms, text.len());
        }
        let _ = recognize(&project.files[0]);
    }
}
