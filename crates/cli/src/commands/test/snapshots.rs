//! `expect snapshot e;`: values that are compared with those in `NAME.snapshots.json` beside `NAME.agent`.
//!
//! Invariant: without `--accept` no file is written.

use super::{TestRun, title};
use diagnostics::Diagnostic;
use serde_json::{Map, Value};
use session::load::{Test, read_data, reason};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A snapshot that differs from the value that is recorded.
pub(super) struct Differing {
    pub(super) report: Diagnostic,
    /// The recorded value, and the one of the run, as text.
    pub(super) before: String,
    pub(super) after: String,
}

/// Recorded values of a program: those of a test under its title, each under its own name.
pub(super) struct Snapshots {
    path: PathBuf,
    tests: Map<String, Value>,
}

impl Snapshots {
    /// Reads the file beside a program. A program without one has no snapshots.
    ///
    /// # Errors
    /// The reason why the file is none.
    pub(super) fn beside(program: &Path) -> Result<Snapshots, String> {
        let path = program.with_extension("snapshots.json");
        if !path.exists() {
            return Ok(Snapshots { path, tests: Map::new() });
        }
        let wrong = |why: String| format!("`{}`: {why}", path.display());
        let bytes = read_data(&path.display().to_string()).map_err(|e| wrong(reason(&e)))?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(tests)) => Ok(Snapshots { path, tests }),
            Ok(_) => Err(wrong("not an object with the snapshots of each test".into())),
            Err(e) => Err(wrong(format!("not JSON: {e}"))),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The names in the file that are no test.
    pub(super) fn unknown<'a>(&'a self, titles: &BTreeSet<String>) -> Vec<&'a str> {
        self.tests.keys().filter(|name| !titles.contains(*name)).map(String::as_str).collect()
    }

    /// Compares the snapshots of a run with those that are recorded.
    pub(super) fn compare(&self, test: &Test, run: &TestRun) -> Vec<Differing> {
        let Some(values) = values_of(test, run) else { return Vec::new() };
        let recorded = self.tests.get(&title(test));
        let mut out = Vec::new();
        for (point, value) in test.plan.snapshots.iter().zip(values.values()) {
            let before = recorded.and_then(|r| r.get(&point.name));
            if before == Some(value) {
                continue;
            }
            let (name, file) = (diagnostics::clip(&point.name), self.path.display());
            let message = match before {
                Some(_) => format!("`{name}` is not as in `{file}`"),
                None => format!("`{name}` is not in `{file}`"),
            };
            let report = Diagnostic::error("snapshot", message, point.span)
                .help("if it is as it should be, `entail test --accept` writes it there");
            out.push(Differing { report, before: before.map_or(String::new(), shown), after: shown(value) });
        }
        out
    }

    /// Takes the snapshots of a run as those of its test.
    pub(super) fn take(&mut self, test: &Test, run: &TestRun) {
        let Some(values) = values_of(test, run) else { return };
        match values.is_empty() {
            true => drop(self.tests.remove(&title(test))),
            false => drop(self.tests.insert(title(test), Value::Object(values))),
        }
    }

    /// Forgets what is recorded of tests that there are not.
    pub(super) fn keep_only(&mut self, titles: &BTreeSet<String>) {
        self.tests.retain(|name, _| titles.contains(name));
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        // INVARIANT: a JSON value serializes.
        serde_json::to_string_pretty(&self.tests).unwrap_or_default() + "\n"
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }
}

/// The snapshots of a run by name, in the order of the test; `None` of one that failed. Secrets of the
/// settings are left out, as in recorded replies.
fn values_of(test: &Test, run: &TestRun) -> Option<Map<String, Value>> {
    let data = run.report.result.as_ref().ok()?.data()?;
    let mut json = data.to_json();
    run.report.records.json(&mut json);
    let get = |name: &String| json.get(name).cloned().unwrap_or(Value::Null);
    Some(test.plan.snapshots.iter().map(|p| (p.name.clone(), get(&p.name))).collect())
}

fn shown(value: &Value) -> String {
    // INVARIANT: a JSON value serializes.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
