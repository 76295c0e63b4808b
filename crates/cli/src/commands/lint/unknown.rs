//! Findings of level unknown in text output: a line for each file, or with `-v` all of them by cause.

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

/// Writes a file's findings of level unknown.
pub fn show(ui: &Ui, path: &str, sources: &Sources, unknown: &[Diagnostic]) {
    if unknown.is_empty() {
        return;
    }
    if !ui.args.verbose {
        let mut codes: BTreeMap<&str, usize> = BTreeMap::new();
        unknown.iter().for_each(|d| *codes.entry(d.code).or_default() += 1);
        let codes: Vec<String> = codes.iter().map(|(code, n)| format!("{n} {code}")).collect();
        return ui.result(&format!(
            "{path}: {} unknown ({}); `-v` shows them\n",
            unknown.len(),
            codes.join(", ")
        ));
    }
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
