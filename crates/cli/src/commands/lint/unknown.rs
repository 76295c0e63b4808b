//! Findings of level unknown in text output: a line for each file at the end, or with `-v` all of them by
//! cause.

use crate::ui::Ui;
use diagnostics::{Diagnostic, Level, Sources};
use std::collections::BTreeMap;

/// Remedy of a cause whose findings name none.
const REMEDY: &str = "write the value as a constant, or lint the folder of the whole project";

/// Takes the findings of level unknown out of a file's findings.
pub fn take(findings: &mut Vec<Diagnostic>) -> Vec<Diagnostic> {
    let (unknown, others) = std::mem::take(findings).into_iter().partition(|d| d.level == Level::Unknown);
    *findings = others;
    unknown
}

/// Files that have a line of their own. Of more, those with the most findings have one.
const MAX_LINES: usize = 20;

/// Numbers of findings of level unknown by code.
type Codes = BTreeMap<&'static str, usize>;

/// Findings of level unknown of all files, to be counted at the end.
#[derive(Default)]
pub struct Undecided {
    files: Vec<(String, Codes)>,
    /// Number of tests that have any. Nobody acts on what is unknown there.
    tests: usize,
    in_tests: Codes,
}

fn sum(codes: &Codes) -> usize {
    codes.values().sum()
}

fn listed(codes: &Codes) -> String {
    codes.iter().map(|(code, n)| format!("{n} {code}")).collect::<Vec<_>>().join(", ")
}

impl Undecided {
    /// Counts the findings of a file.
    pub fn add(&mut self, path: &str, test: bool, unknown: &[Diagnostic]) {
        if unknown.is_empty() {
            return;
        }
        let mut codes = Codes::new();
        unknown.iter().for_each(|d| *codes.entry(d.code).or_default() += 1);
        match test {
            false => self.files.push((path.to_string(), codes)),
            true => {
                self.tests += 1;
                codes.into_iter().for_each(|(code, n)| *self.in_tests.entry(code).or_default() += n);
            }
        }
    }

    /// Writes a line for each file, one for further files, and one for all tests.
    pub fn show(mut self, ui: &Ui) {
        if self.files.is_empty() && self.tests == 0 {
            return;
        }
        let mut lines = vec!["not decided (`-v` shows each, by cause and with the remedy):".to_string()];
        let rest = match self.files.len() > MAX_LINES {
            true => {
                self.files.sort_by_key(|(path, codes)| (std::cmp::Reverse(sum(codes)), path.clone()));
                self.files.split_off(MAX_LINES)
            }
            false => Vec::new(),
        };
        for (path, codes) in &self.files {
            lines.push(format!("  {path}: {} unknown ({})", sum(codes), listed(codes)));
        }
        let mut together = |n: usize, what: &str, codes: &Codes| {
            if n > 0 {
                let files = super::super::plural(n, what);
                lines.push(format!("  {files}: {} unknown ({})", sum(codes), listed(codes)));
            }
        };
        let mut codes = Codes::new();
        for (code, n) in rest.iter().flat_map(|(_, codes)| codes) {
            *codes.entry(code).or_default() += n;
        }
        together(rest.len(), "further file", &codes);
        together(self.tests, "test", &self.in_tests);
        ui.result(&format!("{}\n", lines.join("\n")));
    }
}

/// Writes a file's findings of level unknown by cause.
pub fn show(ui: &Ui, path: &str, sources: &Sources, unknown: &[Diagnostic]) {
    // A cause is a code and what to do about it.
    let mut causes: BTreeMap<(&str, &str), Vec<&Diagnostic>> = BTreeMap::new();
    for d in unknown {
        let remedy = d.help.last().map_or(REMEDY, String::as_str);
        causes.entry((d.code, remedy)).or_default().push(d);
    }
    for ((code, remedy), found) in causes {
        let mut text = format!("{path}: {} unknown ({code}):\n", found.len());
        for d in found {
            let at = d.span.and_then(|s| Some(sources.get(s.file)?.line_column(s.start)));
            let at = at.map_or(String::new(), |p| format!("{}:{}: ", p.line, p.column));
            text.push_str(&format!("  {at}{}\n", d.message));
        }
        ui.result(&format!("{text}  = help: {remedy}\n"));
    }
}
