//! Mutants of the machine: whether the properties notice when one rule of it is changed.
//!
//! The list is `mutants.toml`. A normal run checks that each of them still applies; `scripts/mutants` runs
//! them: in a copy of the workspace the body of each function that has mutants becomes a `match` on a number
//! from the environment, with a branch for each mutant, so that all of them are compiled once. The machine
//! itself knows nothing of this.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// The only property that can notice it, and why.
    only: Option<Property>,
    why: Option<String>,
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

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Property {
    Noninterference,
    Comparison,
    /// The machine agrees with the naive evaluator.
    Evaluator,
}

/// Maximum distance of a mutant from its anchor, in bytes; beyond it, the mutant has found another rule.
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

    /// Returns true if a property must notice it.
    fn must(&self, property: Property) -> bool {
        match self.only {
            Some(only) => only == property,
            None => match property {
                Property::Noninterference => self.kind == Kind::Label,
                Property::Comparison => true,
                Property::Evaluator => false,
            },
        }
    }

    /// Finds the place where the mutant applies.
    fn place(&self, source: &str) -> Result<Range<usize>, String> {
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
        if self.search == self.replace {
            Err("it changes nothing".into())
        } else {
            Ok(at..at + self.search.len())
        }
    }
}

/// The bodies of the functions of a source that was formatted, between their braces. Functions inside of
/// others are part of those.
fn bodies(source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut open: Option<(&str, Option<usize>)> = None;
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let text = line.trim_end();
        let indent = &text[..text.len() - text.trim_start().len()];
        let after = at + line.len();
        match open {
            None => {
                let is_fn = text.trim_start().starts_with("fn ")
                    || text.trim_start().starts_with("pub") && text.contains(" fn ");
                if is_fn && !text.ends_with(';') && !text.ends_with('}') {
                    open = Some((indent, text.ends_with('{').then_some(after)));
                }
            }
            Some((outer, None)) if text.ends_with('{') => open = Some((outer, Some(after))),
            Some((outer, Some(from))) if indent == outer && text.trim_start() == "}" => {
                found.push(from..at);
                open = None;
            }
            Some(_) => {}
        }
        at = after;
    }
    found
}

/// A source with all of its mutants, which are given with their numbers.
fn switched(source: &str, mutants: &[(usize, &Mutant)]) -> Result<String, String> {
    let bodies = bodies(source);
    let mut branches: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (number, mutant) in mutants {
        let wrong = |why: &str| format!("{}: {why}", mutant.name);
        let place = mutant.place(source).map_err(|why| wrong(&why))?;
        let which = bodies.iter().position(|b| b.start <= place.start && place.end <= b.end);
        let which = which.ok_or_else(|| wrong("it is in no function"))?;
        let body = &bodies[which];
        let (before, after) = (&source[body.start..place.start], &source[place.end..body.end]);
        branches
            .entry(which)
            .or_default()
            .push(format!("{number} => {{ {before}{}{after} }}\n", mutant.replace));
    }
    let mut out = String::new();
    let mut done = 0;
    for (which, branches) in branches {
        let body = &bodies[which];
        out += &source[done..body.start];
        write!(
            out,
            "match crate::mutant() {{\n{}_ => {{ {} }}\n}}\n",
            branches.concat(),
            &source[body.clone()]
        )
        .unwrap();
        done = body.end;
    }
    Ok(out + &source[done..])
}

/// Environment variable that selects the mutant in the copy; 0 selects none.
const NUMBER: &str = "
pub(crate) fn mutant() -> usize {
    static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| std::env::var(\"MUTANT\").ok().and_then(|n| n.parse().ok()).unwrap_or(0))
}
";

/// The mutants by their file, with their numbers.
fn by_file(mutants: &[Mutant]) -> BTreeMap<PathBuf, Vec<(usize, &Mutant)>> {
    let mut files: BTreeMap<PathBuf, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (i, m) in mutants.iter().enumerate() {
        files.entry(m.path()).or_default().push((i + 1, m));
    }
    files
}

/// File and function of each row of the table in docs/architecture.md.
fn label_rules() -> BTreeSet<(String, String)> {
    let page = read(&workspace().join("docs/architecture.md"));
    let (_, section) = page.split_once("## Where each label rule is").expect("a section");
    let rows =
        section.lines().skip_while(|l| !l.starts_with("|---")).skip(1).take_while(|l| l.starts_with('|'));
    let rules = rows.map(|row| {
        let cells: Vec<&str> =
            row.trim_matches('|').rsplit('|').map(|c| c.trim().trim_matches('`')).collect();
        let [function, file, ..] = cells[..] else { panic!("{row}") };
        (file.to_string(), function.to_string())
    });
    rules.collect()
}

/// The files of the machine, by their name below its sources, without their tests.
fn machine_sources() -> BTreeMap<String, String> {
    let root = workspace().join("crates/machine/src");
    let (mut folders, mut out) = (vec![root.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                let text = read(&path);
                let own = text.split("#[cfg(test)]").next().unwrap_or_default();
                out.insert(name, own.to_string());
            }
        }
    }
    out
}

/// The table of docs/architecture.md names functions that are there, each once.
#[test]
fn every_label_rule_is_where_the_table_says() {
    let rules = label_rules();
    let sources = machine_sources();
    for (file, function) in &rules {
        let text = &sources[file];
        let found = text.matches(&format!("fn {function}(")).count()
            + text.matches(&format!("fn {function}<")).count();
        assert_eq!(found, 1, "`{function}` in {file}");
    }
    assert!(rules.len() > 70, "{} rows", rules.len());
}

/// The table names each function that joins, compares or reclassifies labels. 25 were missing.
#[test]
fn every_function_with_a_label_rule_is_in_the_table() {
    let rules = label_rules();
    let mut missing = BTreeSet::new();
    for (file, text) in machine_sources() {
        // The function that is open, and how far it is indented.
        let mut open: Option<(usize, &str)> = None;
        for line in text.lines() {
            let code = line.trim_start();
            let indent = line.len() - code.len();
            let name = code.split_once("fn ").filter(|(before, _)| {
                before.split_whitespace().all(|word| word.starts_with("pub") || word == "const")
            });
            if let (None, Some((_, name))) = (open, name) {
                open = Some((indent, name.split(['(', '<']).next().unwrap_or_default()));
            }
            let Some((outer, function)) = open else { continue };
            let is_rule = ["lattice.join(", ".flows(", ".reclassify("].iter().any(|rule| code.contains(rule));
            if is_rule && !rules.contains(&(file.clone(), function.to_string())) {
                missing.insert(format!("{file}: {function}"));
            }
            if indent == outer && (code == "}" || code.ends_with(" }") || code.ends_with(';')) {
                open = None;
            }
        }
    }
    assert!(missing.is_empty(), "not in the table of docs/architecture.md: {missing:#?}");
}

#[test]
fn every_mutant_applies() {
    let mutants = mutants();
    let mut problems = String::new();
    let mut names = BTreeSet::new();
    let mut results = BTreeSet::new();
    for (path, of_file) in by_file(&mutants) {
        let source = read(&workspace().join(&path));
        for (number, m) in of_file {
            if let Err(why) = switched(&source, &[(number, m)]) {
                writeln!(problems, "{why}").unwrap();
            } else if let Ok(place) = m.place(&source)
                && !results.insert((path.clone(), place.start, place.end, &m.replace))
            {
                writeln!(problems, "{}: the same as another", m.name).unwrap();
            }
            assert!(names.insert(&m.name), "two mutants are called {}", m.name);
            assert!(m.only.is_none() || m.why.is_some(), "{}: why only that property?", m.name);
        }
    }
    assert!(problems.is_empty(), "crates/testkit/mutants.toml does not fit crates/machine/src:\n{problems}");
    assert!(mutants.iter().filter(|m| m.kind == Kind::Label).count() >= 40);
}

/// Writes a file, unless it has this text: what has not changed is not compiled again.
fn write(to: &Path, text: &[u8]) {
    if std::fs::read(to).ok().as_deref() != Some(text) {
        std::fs::write(to, text).unwrap();
    }
}

/// Copies what has changed of a tree, but for the files that are made otherwise.
fn copy(from: &Path, to: &Path, made: &BTreeSet<PathBuf>) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_name() == "target" || entry.file_name() == ".git" {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            copy(&from, &to, made);
        } else if !made.contains(&to) {
            write(&to, &std::fs::read(&from).unwrap());
            std::fs::set_permissions(&to, std::fs::metadata(&from).unwrap().permissions()).unwrap();
        }
    }
}

/// End of a test run.
#[derive(Clone)]
enum End {
    Passed,
    /// Noticed: after how many programs, or how else the run ended.
    Caught(String),
}

impl End {
    fn show(&self) -> &str {
        match self {
            End::Passed => "MISSED",
            End::Caught(after) => after,
        }
    }
}

/// Builds the tests of the copy and returns their program.
fn build(scratch: &Path) -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(scratch.join("workspace"))
        .args([
            "test",
            "--offline",
            "--no-run",
            "--message-format=json-render-diagnostics",
            "-p",
            "testkit",
            "--test",
            "it",
        ])
        .env("CARGO_TARGET_DIR", scratch.join("target"))
        .env("RUSTFLAGS", "--cap-lints allow")
        .stderr(Stdio::inherit());
    let out = command.output().unwrap();
    assert!(out.status.success(), "a mutant does not build");
    let text = String::from_utf8_lossy(&out.stdout);
    let messages: Vec<serde_json::Value> =
        text.lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let program = |m: &serde_json::Value| m["target"]["name"] == "it" && m["executable"].is_string();
    let message = messages.iter().find(|m| program(m)).expect("the tests were built");
    PathBuf::from(message["executable"].as_str().unwrap())
}

/// The processor time that a process and those it started have taken, if the system says it (`/proc`, in
/// hundredths of a second). How long a run takes by the clock says nothing on a machine that has other things
/// to do.
fn processor_time(process: u32) -> Option<Duration> {
    // Its parent, and its time.
    let stat = |process: &str| -> Option<(u32, u64)> {
        let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
        let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
        Some((u32::try_from(number(1)?).ok()?, number(11)? + number(12)?))
    };
    let own = stat(&process.to_string())?.1;
    let others = std::fs::read_dir("/proc").ok()?.flatten();
    let started = others.filter_map(|other| stat(other.file_name().to_str()?).filter(|s| s.0 == process));
    Some(Duration::from_millis(10 * (own + started.map(|s| s.1).sum::<u64>())))
}

/// Runs one test of the copy as a mutant, and says how much time it took. One that takes more than it may
/// does not end.
fn run(
    scratch: &Path,
    program: &Path,
    test: &str,
    mutant: usize,
    programs: (&str, &str),
    longest: Option<Duration>,
) -> (End, Duration) {
    let mut child = Command::new(program)
        .current_dir(scratch.join("workspace/crates/testkit"))
        .args(["--exact", test])
        .env("MUTANT", mutant.to_string())
        .env("NI_SHRINK", "0")
        .env(programs.0, programs.1)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = |mut from: Box<dyn std::io::Read + Send>| {
        std::thread::spawn(move || {
            let mut out = Vec::new();
            from.read_to_end(&mut out).map(|_| String::from_utf8_lossy(&out).into_owned()).unwrap_or_default()
        })
    };
    let out = reader(Box::new(child.stdout.take().unwrap()));
    let err = reader(Box::new(child.stderr.take().unwrap()));
    let (started, mut taken, mut looks) = (Instant::now(), Duration::ZERO, 0);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        looks += 1;
        if looks % 10 == 0 {
            taken = processor_time(child.id()).unwrap_or_else(|| started.elapsed());
        }
        if longest.is_some_and(|longest| taken > longest) {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = out.join().unwrap() + &err.join().unwrap();
    let end = match status {
        None => End::Caught("no end".into()),
        Some(status) if status.success() => {
            assert!(text.contains("1 passed"), "{test} was not run: {text}");
            End::Passed
        }
        Some(_) => {
            let after = text.split("caught after ").nth(1).and_then(|rest| rest.split(' ').next());
            End::Caught(after.map_or_else(|| "crash".to_string(), String::from))
        }
    };
    (end, taken)
}

/// Runs a property on the machine with the mutant of this number, for so much processor time at most; says
/// how much it took.
type Attempt<'a> = dyn Fn(usize, Option<Duration>) -> (End, Duration) + Sync + 'a;

/// Runs every mutant (or those whose names contain one of `MUTANTS`, between commas) until the properties
/// notice it; a table on standard output.
#[test]
#[ignore = "takes minutes; scripts/mutants runs it"]
fn every_mutant_is_caught() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants");
    let copied = scratch.join("workspace");
    std::fs::create_dir_all(&copied).unwrap();
    for part in ["Cargo.toml", "Cargo.lock", "clippy.toml"] {
        write(&copied.join(part), &std::fs::read(workspace().join(part)).unwrap());
    }
    let mutants = mutants();
    let by_file = by_file(&mutants);
    let root = copied.join("crates/machine/src/lib.rs");
    let made = by_file.keys().map(|path| copied.join(path)).chain([root.clone()]).collect();
    for part in ["crates", "docs", "proofs", "python", "web/unicode_names2"] {
        copy(&workspace().join(part), &copied.join(part), &made);
    }
    assert!(
        copied.join("proofs/Extract/entail-interpreter").exists(),
        "the extracted interpreter is not built; scripts/proofs builds it"
    );
    for path in
        by_file.keys().cloned().chain(["crates/machine/src/lib.rs".into()]).collect::<BTreeSet<PathBuf>>()
    {
        let of_file = by_file.get(&path).map_or(&[][..], Vec::as_slice);
        let mut source = switched(&read(&workspace().join(&path)), of_file).unwrap_or_else(|e| panic!("{e}"));
        if copied.join(&path) == root {
            source += NUMBER;
        }
        write(&copied.join(&path), source.as_bytes());
    }
    let program = build(&scratch);

    let wanted = std::env::var("MUTANTS").unwrap_or_default();
    let pairs = std::env::var("MUTANT_PAIRS").unwrap_or_else(|_| "200000".into());
    let programs = std::env::var("MUTANT_PROGRAMS").unwrap_or_else(|_| "20000".into());
    let noninterference = |number, longest| {
        run(&scratch, &program, "noninterference::secrets_do_not_show", number, ("NI_PAIRS", &pairs), longest)
    };
    let comparison = |number, longest| {
        let test = "oracle::generated_programs_agree_with_the_extracted_interpreter";
        run(&scratch, &program, test, number, ("ORACLE_CASES", &programs), longest)
    };
    let evaluator = |number, longest| {
        let test = "machine::machine_is_naive_on_programs_that_fit";
        run(&scratch, &program, test, number, ("PROPTEST_CASES", &programs), longest)
    };
    let properties: [(Property, &Attempt<'_>); 3] = [
        (Property::Noninterference, &noninterference),
        (Property::Comparison, &comparison),
        (Property::Evaluator, &evaluator),
    ];
    // The machine as it is passes, so what is caught is caught for the mutant; and how long it takes says
    // what is too long.
    let longest = properties.map(|(_, run)| {
        let (end, taken) = run(0, None);
        assert!(matches!(end, End::Passed), "the machine itself does not pass");
        taken * 10 + Duration::from_secs(60)
    });
    let chosen: Vec<(usize, &Mutant)> = mutants
        .iter()
        .enumerate()
        .map(|(i, m)| (i + 1, m))
        .filter(|(_, m)| wanted.split(',').any(|part| m.name.contains(part)))
        .collect();
    let next = AtomicUsize::new(0);
    let survivors = Mutex::new(Vec::new());
    println!(
        "| mutant | rule | noninterference: pairs | comparison: programs | evaluator |\n|---|---|---|---|---|"
    );
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((number, m)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut row = format!("| {} | {} |", m.name, m.rule);
                    let mut missed = false;
                    for ((property, run), longest) in properties.into_iter().zip(longest) {
                        // What need not be noticed is not looked for.
                        let end = m.must(property).then(|| run(*number, Some(longest)).0);
                        missed |= matches!(end, Some(End::Passed));
                        write!(row, " {} |", end.as_ref().map_or("", End::show)).unwrap();
                    }
                    println!("{row}");
                    if missed {
                        survivors.lock().unwrap().push(m.name.clone());
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    println!("\n{} mutants, {} not caught", chosen.len(), survivors.len());
    assert!(survivors.is_empty(), "not caught: {}", survivors.join(", "));
}
