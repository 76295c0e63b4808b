//! `--fix`, `--unsafe-fixes`, `--diff`.

use crate::args::LintArgs;
use crate::ui::Ui;
use diagnostics::{Applicability, Diagnostic, FileId, fix};
use lint::{Outcome, Report};
use session::lint::Linter;
use session::load::{reason, replace_file};
use std::path::Path;

/// Maximum number of rounds: a repair may reveal the next finding, or undo an earlier repair.
const MAX_ROUNDS: usize = 10;

/// Repairs a file until no repair is left, and writes it back or prints the difference. Returns the remaining
/// findings and the number of repairs.
pub fn repair(
    ui: &Ui,
    args: &LintArgs,
    path: &Path,
    mut linted: Report,
    linter: &Linter,
) -> Result<(Report, usize), String> {
    let least = if args.unsafe_fixes { Applicability::Unsafe } else { Applicability::Safe };
    let shown = path.display().to_string();
    let Some(before) = linted.text.clone() else { return Ok((linted, 0)) };
    let (mut text, mut repaired) = (before.to_string(), 0);
    for _ in 0..MAX_ROUNDS {
        let found: &[Diagnostic] = match &linted.outcome {
            Outcome::Checked { findings, .. } | Outcome::Unreadable(findings) => findings,
            Outcome::Skipped(_) => &[],
        };
        let (better, n) = fix::apply(&text, FileId(0), found, least);
        if n == 0 {
            break;
        }
        repaired += n;
        text = better;
        linted = linter.lint(path, text.as_bytes());
    }
    if repaired == 0 {
        return Ok((linted, 0));
    }
    if args.diff {
        ui.result(&ui.diff(&shown, &before, &text));
        return Ok((linted, repaired));
    }
    replace_file(path, &text).map_err(|e| format!("cannot write `{shown}`: {}", reason(&e)))?;
    Ok((linted, repaired))
}
