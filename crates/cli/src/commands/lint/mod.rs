//! `entail lint`: defects in agent configurations.

mod baseline;
mod flow;
mod repair;
mod settings;

pub use settings::LintSettings;

use crate::args::{Format as OutputFormat, LintArgs};
use crate::load::{files_under, on_all_cores, read_bytes, reason};
use crate::settings::Settings;
use crate::ui::{Exit, Ui};
use baseline::Baseline;
use check::lint::{Outcome, Report, Skip, lint_bytes};
use diagnostics::{FileId, Level, Sources};
use frontend::doc::Format;
use serde_json::json;
use settings::Wanted;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What linting all files came to.
#[derive(Default)]
struct Tally {
    checked: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<String, usize>,
    unreadable: usize,
    findings: BTreeMap<(&'static str, Level), usize>,
    /// Silenced by comments.
    silenced: usize,
    /// Left out because the baseline has them.
    known: usize,
    fixed: usize,
}

/// Runs the command.
pub fn lint(ui: &Ui, args: &LintArgs) -> Exit {
    let mut files = Vec::new();
    for path in &args.paths {
        match files_of(path) {
            Ok(more) => files.extend(more),
            Err(message) => return ui.usage(&message, None),
        }
    }
    let settings = match Settings::read(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let wanted = match Wanted::new(ui, args, &settings.lint, &settings.dir) {
        Ok(wanted) => wanted,
        Err(exit) => return exit,
    };
    let known = match &wanted.baseline {
        Some(path) if !args.write_baseline => match Baseline::read(path) {
            Ok(known) => Some(known),
            Err(message) => return ui.usage(&message, Some("`--write-baseline` makes one")),
        },
        _ => None,
    };
    let policy = args.policy.as_deref().map(|path| settings.loading(Some(path)));
    let mut written = args.write_baseline.then(Baseline::new);
    // A file named on the command line that cannot be read is a wrong request; one met in a directory is a finding.
    let reports = lint_all(&files, &wanted);
    let mut tally = Tally::default();
    let mut report = diagnostics::report::Report::default();
    let mut failed = false;
    let mut usage = false;
    for ((path, named), linted) in files.iter().zip(reports) {
        let shown = path.display().to_string();
        let linted = match linted {
            Ok(linted) if args.fix || args.unsafe_fixes || args.diff => {
                match repair::repair(ui, args, path, linted, &wanted) {
                    Ok((linted, n)) => {
                        tally.fixed += n;
                        linted
                    }
                    Err(message) => {
                        ui.usage(&message, None);
                        usage = true;
                        continue;
                    }
                }
            }
            Ok(linted) => linted,
            Err(e) => {
                let message = format!("cannot read `{shown}`: {e}");
                if *named {
                    ui.usage(&message, None);
                    usage = true;
                } else {
                    ui.note(&format!("warning: {message}"));
                    tally.unreadable += 1;
                }
                continue;
            }
        };
        let mut sources = Sources::new();
        sources.add(&*shown, linted.text.clone().unwrap_or_else(|| "".into()));
        let mut findings = match linted.outcome {
            Outcome::Skipped(skip) => {
                // A file that was named and is of no kind that is linted deserves a word.
                if *named {
                    ui.note(&format!("note: `{shown}` is skipped: {skip}"));
                }
                if skip != Skip::OtherKind {
                    *tally.skipped.entry(skip.to_string()).or_default() += 1;
                }
                continue;
            }
            Outcome::Unreadable(findings) => {
                tally.unreadable += 1;
                findings
            }
            Outcome::Checked { framework, findings, silenced, .. } => {
                *tally.checked.entry(framework).or_default() += 1;
                tally.silenced += silenced;
                let mut findings = findings;
                if let Some(options) = &policy {
                    match flow::findings(&mut sources, &shown, options, args) {
                        Ok(more) => findings.extend(more),
                        Err(wrong) => {
                            ui.problems(&sources, &wrong);
                            return Exit::Usage;
                        }
                    }
                }
                findings
            }
        };
        if let Some(known) = &known {
            tally.known += known.take_out(&shown, &sources, &mut findings);
        }
        if let Some(written) = &mut written {
            written.add(&shown, &sources, &findings);
            continue;
        }
        for d in &findings {
            failed |= d.level == Level::Error;
            *tally.findings.entry((d.code, d.level)).or_default() += 1;
        }
        match ui.args.format {
            // What would be changed is the result then.
            _ if args.diff => {}
            OutputFormat::Text
            | OutputFormat::Json
            | OutputFormat::Mermaid
            | OutputFormat::Dot
            | OutputFormat::Svg
            | OutputFormat::Junit => ui.findings(&sources, &findings),
            OutputFormat::Sarif | OutputFormat::Github | OutputFormat::Markdown => {
                report.add(&sources, &findings);
            }
        }
    }
    if let (Some(written), Some(path)) = (&written, &wanted.baseline) {
        return match written.write(path) {
            Ok(()) => {
                ui.note(&format!("{} findings are in `{}` now", written.len(), path.display()));
                Exit::Done
            }
            Err(message) => ui.usage(&message, None),
        };
    }
    match ui.args.format {
        OutputFormat::Text
        | OutputFormat::Json
        | OutputFormat::Mermaid
        | OutputFormat::Dot
        | OutputFormat::Svg
        | OutputFormat::Junit => {}
        OutputFormat::Sarif => {
            ui.result(&report.sarif(env!("CARGO_PKG_VERSION"), &check::lint::codes()).to_string());
        }
        OutputFormat::Github => ui.result(report.github().trim_end()),
        OutputFormat::Markdown => ui.result(report.markdown().trim_end()),
    }
    summary(ui, args, &tally);
    if usage {
        Exit::Usage
    } else if failed {
        Exit::Failed
    } else {
        Exit::Done
    }
}

/// The file itself (named), or the YAML and JSON files in a directory, in a stable order.
fn files_of(path: &Path) -> Result<Vec<(PathBuf, bool)>, String> {
    let metadata =
        std::fs::metadata(path).map_err(|e| format!("cannot read `{}`: {}", path.display(), reason(&e)));
    if !metadata?.is_dir() {
        return Ok(vec![(path.to_path_buf(), true)]);
    }
    let files = files_under(path, |p| Format::of_path(p).is_some());
    Ok(files.into_iter().map(|p| (p, false)).collect())
}

/// Lints the files on all cores; the reports are in the order of the files.
fn lint_all(files: &[(PathBuf, bool)], wanted: &Wanted) -> Vec<Result<Report, String>> {
    on_all_cores(files, |(path, _)| {
        let shown = path.display().to_string();
        match read_bytes(&shown) {
            Ok(bytes) => Ok(lint_bytes(&shown, FileId(0), &bytes, &wanted.config_for(path))),
            Err(e) => Err(reason(&e)),
        }
    })
}

fn summary(ui: &Ui, args: &LintArgs, tally: &Tally) {
    let checked: usize = tally.checked.values().sum();
    let skipped: usize = tally.skipped.values().sum();
    let count =
        |level| tally.findings.iter().filter(|((_, l), _)| *l == level).map(|(_, n)| n).sum::<usize>();
    let (errors, warnings, unknown) = (count(Level::Error), count(Level::Warn), count(Level::Unknown));
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    if args.stats {
        if ui.is_json() {
            let findings: Vec<_> = tally
                .findings
                .iter()
                .map(|((c, l), n)| json!({"code": c, "level": l.as_str(), "count": n}))
                .collect();
            let line = json!({"stats": {
                "checked": tally.checked, "skipped": tally.skipped, "unreadable": tally.unreadable, "findings": findings,
            }});
            ui.result(&line.to_string());
        } else {
            for ((code, level), n) in &tally.findings {
                ui.result(&format!("{n:>6}  {code} ({})", level.as_str()));
            }
            for (framework, n) in &tally.checked {
                ui.result(&format!("{n:>6}  files of {framework} checked"));
            }
            for (why, n) in &tally.skipped {
                ui.result(&format!("{n:>6}  files skipped: {why}"));
            }
        }
    }
    if !ui.is_json() {
        let more = [
            (tally.fixed, if args.diff { "could be repaired" } else { "repaired" }),
            (tally.silenced, "silenced by comments"),
            (tally.known, "in the baseline"),
        ];
        for (n, what) in more.into_iter().filter(|(n, _)| *n > 0) {
            ui.note(&format!("{} {what}", plural(n, "finding")));
        }
        let unknown = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
        let unreadable =
            if tally.unreadable > 0 { format!(", {} unreadable", tally.unreadable) } else { String::new() };
        ui.note(&format!(
            "{}, {}{unknown} in {} checked ({skipped} skipped{unreadable})",
            plural(errors, "error"),
            plural(warnings, "warning"),
            plural(checked, "file"),
        ));
    }
}
