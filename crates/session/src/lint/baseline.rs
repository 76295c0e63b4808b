//! Baselines: the findings that a project lives with, so that only new ones fail.

use crate::load::{reason, replace_file};
use diagnostics::{Diagnostic, Sources, report::fingerprints};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Findings by path. Each is named by its [fingerprint](fingerprints), which outlives changes elsewhere in
/// the file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    version: u32,
    findings: BTreeMap<String, Vec<BaselineEntry>>,
}

/// One known finding. Code and message are for people who read the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineEntry {
    fingerprint: String,
    code: String,
    message: String,
}

impl Baseline {
    /// The version of the file's format.
    const VERSION: u32 = 1;

    /// An empty one, to be written.
    pub fn new() -> Baseline {
        Baseline { version: Baseline::VERSION, findings: BTreeMap::new() }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Baseline, String> {
        let shown = path.display();
        let text =
            std::fs::read_to_string(path).map_err(|e| format!("cannot read `{shown}`: {}", reason(&e)))?;
        let baseline: Baseline =
            serde_json::from_str(&text).map_err(|e| format!("`{shown}` is not a baseline: {e}"))?;
        if baseline.version == Baseline::VERSION {
            Ok(baseline)
        } else {
            Err(format!(
                "`{shown}` is a baseline of version {}, this program reads version 1",
                baseline.version
            ))
        }
    }

    /// Writes the file.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|e| e.to_string())?;
        replace_file(path, &(text + "\n"))
            .map_err(|e| format!("cannot write `{}`: {}", path.display(), reason(&e)))
    }

    /// Adds the findings of a file.
    pub fn add(&mut self, path: &str, sources: &Sources, found: &[Diagnostic]) {
        if found.is_empty() {
            return;
        }
        let known = found.iter().zip(fingerprints(sources, found)).map(|(d, fingerprint)| BaselineEntry {
            fingerprint,
            code: d.code.to_string(),
            message: d.message.clone(),
        });
        self.findings.entry(key(path)).or_default().extend(known);
    }

    /// Takes out the findings that are known; says how many.
    pub fn take_out(&self, path: &str, sources: &Sources, found: &mut Vec<Diagnostic>) -> usize {
        let Some(known) = self.findings.get(&key(path)) else { return 0 };
        let mut left: HashMap<&str, usize> = HashMap::new();
        for k in known {
            *left.entry(&k.fingerprint).or_default() += 1;
        }
        let before = found.len();
        let mut names = fingerprints(sources, found).into_iter();
        found.retain(|_| {
            let name = names.next().unwrap_or_default();
            match left.get_mut(name.as_str()) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    false
                }
                _ => true,
            }
        });
        before - found.len()
    }

    /// Number of findings.
    pub fn count(&self) -> usize {
        self.findings.values().map(Vec::len).sum()
    }
}

/// A path as the file has it, the same on every system.
fn key(path: &str) -> String {
    path.strip_prefix("./").unwrap_or(path).replace('\\', "/")
}
