//! `entail lint`: defects in agent configurations.

use crate::args::{LevelArg, LintArgs};
use crate::load::{files_under, read_bytes, reason};
use crate::ui::{Exit, Ui};
use check::lint::{Config, Outcome, Report, Skip, lint_bytes};
use diagnostics::{FileId, Level, Sources};
use frontend::doc::Format;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What linting all files came to.
#[derive(Default)]
struct Tally {
    checked: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<String, usize>,
    unreadable: usize,
    findings: BTreeMap<(&'static str, Level), usize>,
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
    let config = match config(ui, args) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    // A file named on the command line that cannot be read is a wrong request; one met in a directory is a finding.
    let reports = lint_all(&files, &config);
    let mut tally = Tally::default();
    let mut failed = false;
    let mut usage = false;
    for ((path, named), report) in files.iter().zip(reports) {
        let shown = path.display().to_string();
        let report = match report {
            Ok(report) => report,
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
        sources.add(&*shown, report.text.clone().unwrap_or_else(|| "".into()));
        let findings = match report.outcome {
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
            Outcome::Checked { framework, findings, .. } => {
                *tally.checked.entry(framework).or_default() += 1;
                findings
            }
        };
        for d in &findings {
            failed |= d.level == Level::Error;
            *tally.findings.entry((d.code, d.level)).or_default() += 1;
        }
        ui.findings(&sources, &findings);
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

fn config(ui: &Ui, args: &LintArgs) -> Result<Config, Exit> {
    let rules = check::lint::RULES.iter().map(|r| r.code);
    let codes: Vec<&str> = rules.chain(frontend::codes::EXPLANATIONS.iter().map(|e| e.code)).collect();
    for code in args.select.iter().chain(&args.ignore) {
        if !codes.iter().any(|c| c.starts_with(&**code)) {
            let near = diagnostics::nearest(code, codes.iter().copied());
            let help = near.map(|n| format!("did you mean `{n}`?"));
            return Err(ui.usage(&format!("there is no rule `{code}`"), help.as_deref()));
        }
    }
    // What could not be decided is shown with the warnings.
    let level = match args.level {
        LevelArg::Info => Level::Info,
        LevelArg::Warn => Level::Unknown,
        LevelArg::Error => Level::Error,
    };
    Ok(Config { select: args.select.clone(), ignore: args.ignore.clone(), level })
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
fn lint_all(files: &[(PathBuf, bool)], config: &Config) -> Vec<Result<Report, String>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(files.len().max(1));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((path, _)) = files.get(index) else { break };
                    let shown = path.display().to_string();
                    let report = match read_bytes(&shown) {
                        Ok(bytes) => Ok(lint_bytes(&shown, FileId(0), &bytes, config)),
                        Err(e) => Err(reason(&e)),
                    };
                    // A poisoned lock means that another thread panicked; its panic is raised by the scope.
                    if let Ok(mut done) = done.lock() {
                        done.push((index, report));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, r)| r).collect()
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
