//! Findings of other files with the cause of an earlier one: a line each in text output.

use diagnostics::{Diagnostic, Sources, render};
use lint::{Cause, cause};
use std::collections::{HashMap, HashSet};

/// Causes of the findings that were written.
#[derive(Default)]
pub struct Seen(HashSet<Cause>);

/// Number of findings of each cause in one file.
pub type Alike = HashMap<Cause, usize>;

impl Seen {
    /// Counts a file's findings by cause.
    pub fn count(&self, findings: &[Diagnostic]) -> Alike {
        let mut alike = Alike::new();
        for cause in findings.iter().filter_map(cause) {
            *alike.entry(cause).or_default() += 1;
        }
        alike
    }

    /// Returns the line of a finding whose cause was written before. The first one is written in full.
    pub fn brief(&mut self, sources: &Sources, d: &Diagnostic, alike: &Alike) -> Option<String> {
        let cause = cause(d)?;
        let count = alike.get(&cause).copied().unwrap_or(1);
        if self.0.insert(cause) {
            return None;
        }
        let more = if count > 1 { format!(" ({count} in this file)") } else { String::new() };
        Some(format!("{}{more}", render::line(sources, d)))
    }
}
