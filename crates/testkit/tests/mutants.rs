//! Mutants of the machine: whether the properties notice when one rule of it is changed.
//!
//! The list is `mutants.toml`. A normal run checks that each of them still applies; `scripts/mutants` runs them, in a copy of the workspace.
#![allow(clippy::disallowed_methods, clippy::print_stdout)]

use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutants {
    mutant: Vec<Mutant>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    kind: Kind,
    /// The rule of `docs/calculus.md` that it breaks.
    rule: String,
    /// Of `crates/machine/src`.
    file: String,
    after: Option<String>,
    search: String,
    replace: String,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A label that is not joined, or not checked: noninterference fails.
    Label,
    /// Something else.
    Rule,
}

/// How far behind its anchor a mutant may apply, in bytes: more, and it has found another rule.
const REACH: usize = 1_500;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn mutants() -> Vec<Mutant> {
    let text = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("mutants.toml"));
    toml::from_str::<Mutants>(&text).expect("a list of mutants").mutant
}

impl Mutant {
    fn path(&self) -> PathBuf {
        Path::new("crates/machine/src").join(&self.file)
    }

    /// The source with this mutation.
    fn apply(&self, source: &str) -> Result<String, String> {
        let (from, upto) = match &self.after {
            Some(after) => match source.match_indices(after.as_str()).map(|m| m.0).collect::<Vec<_>>()[..] {
                [one] => (one, one + REACH),
                ref many => return Err(format!("its anchor occurs {} times", many.len())),
            },
            None => (0, source.len()),
        };
        let found: Vec<usize> = source.match_indices(self.search.as_str()).map(|m| m.0).collect();
        let at = match self.after {
            None if found.len() != 1 => return Err(format!("its text occurs {} times", found.len())),
            _ => found
                .into_iter()
                .find(|at| (from..upto).contains(at))
                .ok_or("its text is not behind its anchor")?,
        };
        let mut out = source.to_string();
        out.replace_range(at..at + self.search.len(), &self.replace);
        if out == source { Err("it changes nothing".into()) } else { Ok(out) }
    }
}

#[test]
fn every_mutant_applies() {
    let mutants = mutants();
    let mut problems = String::new();
    let mut names = BTreeSet::new();
    let mut results = BTreeSet::new();
    for m in &mutants {
        match m.apply(&read(&workspace().join(m.path()))) {
            Ok(source) => {
                if !results.insert(source) {
                    writeln!(problems, "{}: the same as another", m.name).unwrap();
                }
            }
            Err(why) => writeln!(problems, "{}: {why}", m.name).unwrap(),
        }
        assert!(names.insert(&m.name), "two mutants are called {}", m.name);
    }
    assert!(problems.is_empty(), "crates/testkit/mutants.toml does not fit crates/machine/src:\n{problems}");
    assert!(mutants.iter().filter(|m| m.kind == Kind::Label).count() >= 40);
}

/// Copies what has changed of a tree.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "target" || entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to);
        } else {
            let new = std::fs::read(&from).unwrap();
            if std::fs::read(&to).ok().as_ref() != Some(&new) {
                std::fs::copy(&from, &to).unwrap();
            }
        }
    }
}

/// What became of a run of a test.
enum End {
    Passed,
    /// After so many programs.
    Caught(String),
    NotBuilt(String),
}

impl End {
    fn show(&self) -> &str {
        match self {
            End::Passed => "-",
            End::Caught(after) => after,
            End::NotBuilt(_) => "does not build",
        }
    }
}

/// Builds and runs one test of the copy.
fn run(scratch: &Path, test: &str, name: &str, programs: (&str, &str)) -> End {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(scratch.join("workspace"))
        .args(["test", "--offline", "-q", "-p", "testkit", "--test", test, "--", "--exact", name])
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .env("CARGO_INCREMENTAL", "1")
        .env(programs.0, programs.1)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let reader = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut out = Vec::new();
            from.read_to_end(&mut out).map(|_| String::from_utf8_lossy(&out).into_owned()).unwrap_or_default()
        })
    };
    let out = reader(Box::new(child.stdout.take().unwrap()));
    let err = reader(Box::new(child.stderr.take().unwrap()));
    let started = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if started.elapsed() > Duration::from_secs(900) => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    let Some(status) = status else { return End::Caught("no end".into()) };
    let text = out.join().unwrap() + &err.join().unwrap();
    if status.success() {
        return End::Passed;
    }
    if text.contains("error[E") || text.contains("could not compile") {
        return End::NotBuilt(text);
    }
    let after = text.split("caught after ").nth(1).and_then(|rest| rest.split(' ').next());
    End::Caught(after.map_or_else(|| "crash".to_string(), String::from))
}

/// Runs every mutant (or those whose name contains `MUTANTS`) until a property notices it; a table on standard output.
#[test]
#[ignore = "takes an hour; scripts/mutants runs it"]
fn every_mutant_is_caught() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    let copied = scratch.join("workspace");
    std::fs::create_dir_all(&copied).unwrap();
    for part in ["Cargo.toml", "Cargo.lock", "clippy.toml"] {
        std::fs::copy(workspace().join(part), copied.join(part)).unwrap();
    }
    for part in ["crates", "docs", "proofs"] {
        copy(&workspace().join(part), &copied.join(part));
    }
    assert!(
        copied.join("proofs/Extract/entail-oracle").exists(),
        "the extracted interpreter is not built; scripts/proofs builds it"
    );
    let wanted = std::env::var("MUTANTS").unwrap_or_default();
    let pairs = std::env::var("MUTANT_PAIRS").unwrap_or_else(|_| "200000".into());
    let programs = std::env::var("MUTANT_PROGRAMS").unwrap_or_else(|_| "20000".into());
    let both = || {
        let pairs = run(&scratch, "noninterference", "secrets_do_not_show", ("NI_PAIRS", &pairs));
        let oracle = "generated_programs_agree_with_the_extracted_interpreter";
        (pairs, run(&scratch, "oracle", oracle, ("ORACLE_CASES", &programs)))
    };
    println!("| mutant | rule | noninterference: pairs | comparison: programs |\n|---|---|---|---|");
    let mut survivors = Vec::new();
    for m in mutants().iter().filter(|m| m.name.contains(&wanted)) {
        let path = copied.join(m.path());
        let source = read(&workspace().join(m.path()));
        std::fs::write(&path, m.apply(&source).unwrap()).unwrap();
        let (noninterference, oracle) = both();
        std::fs::write(&path, &source).unwrap();
        println!("| {} | {} | {} | {} |", m.name, m.rule, noninterference.show(), oracle.show());
        for end in [&noninterference, &oracle] {
            if let End::NotBuilt(text) = end {
                panic!("{} does not build:\n{text}", m.name);
            }
        }
        let missed = |end: &End| matches!(end, End::Passed);
        if missed(&oracle) || (m.kind == Kind::Label && missed(&noninterference)) {
            survivors.push(m.name.clone());
        }
    }
    assert!(survivors.is_empty(), "not caught: {}", survivors.join(", "));
    // The machine as it is passes.
    let (noninterference, oracle) = both();
    assert!(matches!((noninterference, oracle), (End::Passed, End::Passed)));
}
