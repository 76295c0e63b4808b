//! Linting one file as it lies on the disk.

use super::{Config, Suppressions, all, codes, framework_use, uses_framework};
use diagnostics::{Diagnostic, FileId, Level};
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{Facts, File, Project, Recognize, Recognized};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Result of linting a file.
#[derive(Clone, Debug)]
pub struct Report {
    /// The text that the findings' spans point into; `None` if the bytes are no text.
    pub text: Option<Arc<str>>,
    /// Findings, or the reason why there are none.
    pub outcome: Outcome,
}

/// Outcome of linting a file.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Nothing was looked for.
    Skipped(Skip),
    /// It could not be read, or not to its end: what is wrong with it as YAML or JSON.
    Unreadable(Vec<Diagnostic>),
    /// It was compiled and checked.
    Checked {
        /// The front end that compiled it.
        framework: &'static str,
        /// Number of compiled terms.
        units: usize,
        /// The findings; none is good news.
        findings: Vec<Diagnostic>,
        /// Number of findings silenced by comments in the file.
        silenced: usize,
        /// True if the file is a test's or scaffolding: see [`is_test`].
        test: bool,
    },
}

/// Reason why a file is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    /// Its name is not that of a YAML, JSON or Python file.
    OtherKind,
    /// It holds nothing.
    Empty,
    /// It is no agent configuration that is known here.
    NoAgent,
    /// It is a module of Python with placeholders that a generator fills in.
    Template,
    /// It is of the named format, which no front end compiles yet.
    Unsupported(&'static str),
}

impl std::fmt::Display for Skip {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Skip::OtherKind => f.write_str("neither YAML, JSON nor Python"),
            Skip::Empty => f.write_str("empty"),
            Skip::NoAgent => f.write_str("no agent configuration"),
            Skip::Template => f.write_str("a template of a module"),
            Skip::Unsupported(name) => write!(f, "format {name} has no front end yet"),
        }
    }
}

/// Findings of one code in one file.
const MAX_PER_CODE: usize = 500;

/// Leaves out what comes after the first findings of a code, and says how many that are: a file made to be
/// long shall not be answered by a report as long.
fn cap(findings: &mut Vec<Diagnostic>) {
    if findings.len() <= MAX_PER_CODE {
        return;
    }
    let mut counts: HashMap<&'static str, usize> = HashMap::new();
    findings.retain(|d| {
        let n = counts.entry(d.code).or_default();
        *n += 1;
        *n <= MAX_PER_CODE
    });
    for (code, n) in counts.into_iter().filter(|(_, n)| *n > MAX_PER_CODE) {
        if let Some(last) = findings.iter_mut().rev().find(|d| d.code == code) {
            last.help.push(format!("{} more findings of {code} in this file are left out", n - MAX_PER_CODE));
        }
    }
}

/// Folders of tests, and of what is there for tests and measurements.
const TEST_FOLDERS: &[&str] = &[
    "tests",
    "test",
    "testing",
    "unit_tests",
    "integration_tests",
    "e2e",
    "__tests__",
    "testdata",
    "test_data",
    "bench",
    "benchmarks",
];

/// Returns true if a path below the project's folder is a test's, or what tests and benchmarks need. Of an
/// absolute path only the parent folder counts, because folders above a project say nothing about it.
///
/// # Examples
/// ```
/// use lint::is_test;
/// assert!(is_test("tests/data/agents.yaml") && is_test("app/test_main.py"));
/// assert!(is_test("/home/me/app/tests/agents.yaml") && is_test("libs/core/bench/fanout.py"));
/// assert!(!is_test("/home/me/test/app/agents.yaml") && !is_test("app/latest/agents.yaml"));
/// ```
pub fn is_test(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or(path);
    let whole = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
    let folders = if whole { 1 } else { usize::MAX };
    let named = name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py";
    (named && File::is_python(name)) || parts.take(folders).any(|p| TEST_FOLDERS.contains(&p))
}

/// Takes what stands in a test less hard: what a test does wrong it does on purpose. A key in it is a key.
fn in_test(findings: &mut [Diagnostic]) {
    for d in findings.iter_mut().filter(|d| d.level > Level::Unknown && d.code != "S001") {
        d.level = Level::Info;
        d.help.push("it stands in a test".to_string());
    }
}

/// Path of a module that limits runs, if a module of the project does and one imports this file: a run of
/// what is made here may be limited by it. Tests don't count.
fn limited_elsewhere<'p>(project: &'p Project, facts: &Facts) -> Option<&'p str> {
    let setting = facts.code.run_limit?;
    let (own, others) = project.files.split_first()?;
    let others: Vec<&File> = others.iter().filter(|f| !is_test(&f.path)).collect();
    let limits = others.iter().find(|f| f.python.as_ref().is_some_and(|m| m.sets(setting)))?;
    let modules = project.python();
    let own = modules.by_path(&own.path)?;
    let imports = |f: &&File| modules.by_path(&f.path).is_some_and(|m| modules.imported(m).contains(&own));
    // Who imports none of it, and runs nothing, is made known in a way that is not seen.
    let runs = facts.code.runs;
    let is_run = !runs.is_empty() && !project.files.first()?.python.as_ref()?.calls(runs);
    (others.iter().any(imports) || is_run).then_some(&limits.path)
}

/// Path of a module that takes in an agent of this file as a part of its own agent: it is the run of that one
/// that has a limit. Tests don't count.
fn taken_in<'p>(project: &'p Project, facts: &Facts) -> Option<&'p str> {
    let members = facts.code.members;
    let (own, others) = project.files.split_first().filter(|_| !members.is_empty())?;
    let modules = project.python();
    let own = modules.by_path(&own.path)?;
    let takes = |f: &&File| {
        let names = f.python.as_ref().map(|m| m.passes(members)).unwrap_or_default();
        let module = modules.by_path(&f.path).filter(|_| !names.is_empty());
        module.is_some_and(|m| modules.bound(m, own).any(|name| names.contains(name)))
    };
    others.iter().filter(|f| !is_test(&f.path)).find(takes).map(|f| &*f.path)
}

/// Reasons in other modules why a finding asks for a limit that runs may not need here, each with the level
/// that the finding has then.
fn limits_of_runs(project: &Project, facts: &Facts) -> Vec<(Level, String)> {
    let taken = taken_in(project, facts).map(|by| {
        (Level::Info, format!("it is part of an agent of `{by}`: a run of that one has the limit"))
    });
    let limited = limited_elsewhere(project, facts).map(|by| {
        (Level::Unknown, format!("`{by}` limits runs; whether those of this are among them is not seen"))
    });
    let said: Vec<(Level, String)> = taken.into_iter().chain(limited).collect();
    match said.is_empty() {
        true => {
            runs_elsewhere(project, facts).map(|(level, why)| (level, why.to_string())).into_iter().collect()
        }
        false => said,
    }
}

/// Where the runs of what a file makes begin, if no run is seen that could take a limit: the highest level of
/// a finding that asks for one, and the reason. Tests don't count.
fn runs_elsewhere(project: &Project, facts: &Facts) -> Option<(Level, &'static str)> {
    let runs = facts.code.runs;
    let own = project.files.first().filter(|_| !runs.is_empty())?;
    let begins: Vec<&File> = project
        .files
        .iter()
        .filter(|f| f.python.as_ref().is_some_and(|m| m.calls(runs)) && !is_test(&f.path))
        .collect();
    if begins.is_empty() {
        return Some((Level::Info, "no module of the project begins a run that could take a limit"));
    }
    let modules = project.python();
    let own = modules.by_path(&own.path)?;
    let of = |f: &File| modules.by_path(&f.path);
    let mut importers: HashMap<usize, Vec<usize>> = HashMap::new();
    for module in project.files.iter().filter(|f| !is_test(&f.path)).filter_map(of) {
        for imported in modules.imported(module) {
            importers.entry(imported).or_default().push(module);
        }
    }
    // A module may give its agents to one that begins runs, and those of others that it imports.
    let begin =
        reached(begins.iter().filter_map(|f| of(f)), |m| importers.get(&m).cloned().unwrap_or_default());
    let run = reached(begin, |m| modules.imported(m));
    let reason = "no module that begins a run knows it: its runs begin in a way that is not seen";
    (!run.contains(&own)).then_some((Level::Unknown, reason))
}

/// These modules and all to which `next` leads from them.
fn reached<N: IntoIterator<Item = usize>>(
    from: impl IntoIterator<Item = usize>,
    next: impl Fn(usize) -> N,
) -> HashSet<usize> {
    let mut seen: HashSet<usize> = from.into_iter().collect();
    let mut open: Vec<usize> = seen.iter().copied().collect();
    while let Some(module) = open.pop() {
        open.extend(next(module).into_iter().filter(|m| seen.insert(*m)));
    }
    seen
}

/// The name in reports of a module of Python that no front end compiles.
pub const MODULE: &str = "python";

/// The findings about uses of frameworks in the first file of a project.
fn used(project: &Project, framework: &'static str) -> Vec<Diagnostic> {
    let mut findings = framework_use::findings(project);
    findings.iter_mut().for_each(|d| d.framework = Some(framework));
    findings
}

/// Gives each finding that names no remedy the one of its code.
fn advise(findings: &mut [Diagnostic]) {
    for d in findings.iter_mut().filter(|d| d.help.is_empty()) {
        d.help.extend(frontend_kit::codes::remedy(d.code).map(str::to_string));
    }
}

/// Silences, filters, orders and limits the findings of a file; the number that comments in it silence.
fn finish(id: FileId, text: &str, findings: &mut Vec<Diagnostic>, config: &Config) -> usize {
    advise(findings);
    let silenced = if text.contains("entail:") {
        let known = codes();
        let is_code = |c: &str| known.iter().any(|k| k.code.starts_with(c));
        Suppressions::read(id, text, is_code).apply(findings, config.today)
    } else {
        0
    };
    config.filter(findings);
    diagnostics::sort(findings);
    cap(findings);
    silenced
}

/// Lints a file by itself. `recognize` says which front end reads it. Total: any path, any bytes.
pub fn lint_bytes(recognize: Recognize, path: &str, id: FileId, bytes: &[u8], config: &Config) -> Report {
    lint_among(recognize, path, id, bytes, |_| Project::default(), config)
}

/// Lints a file of a project. `around` returns the versions of the project's packages and, for a Python
/// module, the files that it may import or load. It is called only for files that a front end reads, with a
/// flag that tells whether the file is a module or names one. Findings in the other files are left out.
/// Total, like [`lint_bytes`].
pub fn lint_among(
    recognize: Recognize,
    path: &str,
    id: FileId,
    bytes: &[u8],
    around: impl FnOnce(bool) -> Project,
    config: &Config,
) -> Report {
    let skipped = |skip, text| Report { text, outcome: Outcome::Skipped(skip) };
    // Standard input has no name to be of a kind by.
    if path != "-" && !File::is_read(path) {
        return skipped(Skip::OtherKind, None);
    }
    let limits = Limits::default();
    let text = match decode(id, bytes, &limits) {
        Ok(text) => text,
        // It may be a module like any other.
        Err(_) if File::is_python(path) => return skipped(Skip::NoAgent, None),
        Err(d) => {
            let mut found = vec![*d];
            advise(&mut found);
            return Report { text: None, outcome: Outcome::Unreadable(found) };
        }
    };
    let file = File::read(id, path, &text, &limits);
    let mut load = file.diagnostics.clone();
    let recognized = recognize(&file);
    let outcome = match recognized {
        _ if file.python.as_ref().is_some_and(|m| m.is_template()) => Outcome::Skipped(Skip::Template),
        Recognized::Frontend(frontend) => {
            let is_python = file.python.is_some();
            let among = is_python || frontend.names_modules();
            let Project { files: others, versions, modules } = around(among);
            let mut files = vec![file];
            if among {
                files.extend(others);
            }
            let project = Project { files, versions, modules };
            let compiled = frontend.lower(&project, 0);
            let mut findings = load;
            findings.extend(all(&compiled, Some(&project), config));
            if among {
                findings.retain(|d| d.span.is_none_or(|s| s.file == id));
                findings.iter_mut().for_each(|d| d.remarks.retain(|r| r.span.file == id));
            }
            if is_python {
                findings.extend(used(&project, compiled.framework));
            }
            if is_test(path) {
                in_test(&mut findings);
            }
            if is_python {
                for d in &mut findings {
                    // The others are written for YAML and JSON.
                    d.fix = d
                        .fix
                        .take()
                        .filter(|_| matches!(d.code, "L003" | "L017" | "L028" | "L029" | "S002" | "S003"));
                }
                let open = |d: &Diagnostic| d.code == "L017" && d.level > Level::Unknown;
                let of_runs = match findings.iter().any(open) {
                    true => limits_of_runs(&project, &compiled.facts),
                    false => Vec::new(),
                };
                for (level, reason) in of_runs {
                    for d in findings.iter_mut().filter(|d| open(d)) {
                        d.level = level;
                        d.help.push(reason.clone());
                    }
                }
            }
            let silenced = finish(id, &text, &mut findings, config);
            Outcome::Checked {
                framework: compiled.framework,
                units: compiled.units.len(),
                findings,
                silenced,
                test: is_test(path),
            }
        }
        // A file that could not be read to its end may be anything.
        _ if file.documents.is_empty() && !file.diagnostics.is_empty() => {
            advise(&mut load);
            config.filter(&mut load);
            Outcome::Unreadable(load)
        }
        Recognized::Unsupported(name) => Outcome::Skipped(Skip::Unsupported(name)),
        Recognized::Unknown
            if text.trim().is_empty() || (file.documents.is_empty() && file.python.is_none()) =>
        {
            Outcome::Skipped(Skip::Empty)
        }
        // A module that makes no agent may use a framework, and is reported where it does so wrongly.
        Recognized::Unknown if uses_framework(&file) => {
            let Project { files: others, versions, modules } = around(true);
            let project = Project { files: [vec![file], others].concat(), versions, modules };
            let mut findings = used(&project, MODULE);
            if is_test(path) {
                in_test(&mut findings);
            }
            let silenced = finish(id, &text, &mut findings, config);
            match findings.is_empty() {
                true => Outcome::Skipped(Skip::NoAgent),
                false => {
                    let test = is_test(path);
                    Outcome::Checked { framework: MODULE, units: 0, findings, silenced, test }
                }
            }
        }
        Recognized::Unknown => Outcome::Skipped(Skip::NoAgent),
    };
    Report { text: Some(text), outcome }
}
