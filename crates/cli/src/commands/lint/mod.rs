//! `entail lint`: defects in agent configurations.

mod repair;
mod seen;
mod unknown;
mod watch;

use crate::args::{Format as OutputFormat, LevelArg, LintArgs};
use crate::ui::{Exit, Ui};
use diagnostics::{Level, Sources};
use lint::{Outcome, Skip, fold};
use seen::Seen;
use serde_json::json;
use session::lint::{Baseline, LintOptions, LintSources, ProjectLint, files_of, speaks_of_agents};
use std::collections::BTreeMap;
use std::path::Path;
use unknown::Undecided;

/// Result of linting all files.
#[derive(Default)]
struct Tally {
    checked: BTreeMap<&'static str, usize>,
    skipped: BTreeMap<String, usize>,
    unreadable: usize,
    /// By code and level, then by format.
    findings: BTreeMap<(&'static str, Level), BTreeMap<&'static str, usize>>,
    /// Silenced by comments.
    silenced: usize,
    /// Left out because the baseline has them.
    known: usize,
    fixed: usize,
}

/// Runs the command.
pub fn lint(ui: &Ui, args: &LintArgs) -> Exit {
    if args.clear_cache {
        session::lint::clear_cache();
    }
    if args.watch { watch::watch(ui, args) } else { once(ui, args) }
}

/// Lints everything once.
fn once(ui: &Ui, args: &LintArgs) -> Exit {
    let mut files = Vec::new();
    if args.paths.iter().any(|p| p == Path::new("-")) && (args.fix || args.unsafe_fixes || args.diff) {
        return ui.usage("standard input cannot be repaired", Some("name a file"));
    }
    for path in &args.paths {
        match files_of(path, !args.no_python) {
            Ok(more) => files.extend(more),
            Err(e) => return crate::setup::refuse(ui, e),
        }
    }
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let options = LintOptions {
        select: &args.select,
        ignore: &args.ignore,
        level: args.level.map(LevelArg::least),
        baseline: args.baseline.as_deref(),
    };
    let around = LintSources { surroundings: !args.no_python, cache: !args.no_cache };
    let project = match ProjectLint::new(&settings, options, args.policy.as_deref(), around) {
        Ok(project) => project,
        Err(e) => return ui.usage(&e.message, e.help.as_deref()),
    };
    let known = match project.baseline() {
        Some(path) if !args.write_baseline => match Baseline::read(path) {
            Ok(known) => Some(known),
            Err(message) => return ui.usage(&message, Some("`--write-baseline` makes one")),
        },
        _ => None,
    };
    let mut written = args.write_baseline.then(Baseline::new);
    // A file named on the command line that cannot be read is a wrong request; one met in a directory is a
    // finding.
    let reports = project.reports(&files);
    let mut tally = Tally::default();
    let mut report = diagnostics::report::Report::default();
    let mut undecided = Undecided::default();
    let mut seen = Seen::default();
    // Lines of brief findings, after which an empty one is due.
    let mut lines_end_open = false;
    let mut failed = false;
    let mut usage = false;
    for ((path, named), linted) in files.iter().zip(reports) {
        let shown = path.display().to_string();
        let linted = match linted {
            Ok(linted) if args.fix || args.unsafe_fixes || args.diff => {
                match repair::repair(ui, args, path, linted, project.linter()) {
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
        let mut in_test = false;
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
                // A directory holds much that is no agent: charts, manifests, fixtures. Those are counted
                // only.
                if !named && linted.text.as_deref().is_some_and(|t| !speaks_of_agents(t)) {
                    continue;
                }
                findings
            }
            Outcome::Checked { framework, findings, silenced, test, .. } => {
                in_test = test;
                *tally.checked.entry(framework).or_default() += 1;
                tally.silenced += silenced;
                let mut findings = findings;
                if let Err(wrong) = project.complete(&mut sources, &shown, &mut findings) {
                    ui.problems(&sources, &wrong);
                    return Exit::Usage;
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
        // Whoever reads JSON wants each.
        let alike = seen.count(&findings);
        if !ui.is_json() {
            fold(&mut findings);
        }
        for d in &findings {
            failed |= d.level == Level::Error;
            let by_format = tally.findings.entry((d.code, d.level)).or_default();
            *by_format.entry(d.framework.unwrap_or("unread")).or_default() += 1;
        }
        match ui.args.format {
            // The changes are the result then.
            _ if args.diff => {}
            OutputFormat::Sarif | OutputFormat::Github | OutputFormat::Markdown => {
                report.add(&sources, &findings);
            }
            _ if ui.is_json() => ui.findings(&sources, &findings),
            _ => {
                let unknown = unknown::take(&mut findings);
                for d in &findings {
                    match seen.brief(&sources, d, &alike).filter(|_| !ui.args.verbose) {
                        Some(line) => {
                            ui.result(&line);
                            lines_end_open = true;
                        }
                        None => {
                            if std::mem::take(&mut lines_end_open) {
                                ui.result("");
                            }
                            ui.findings(&sources, std::slice::from_ref(d));
                        }
                    }
                }
                match ui.args.verbose {
                    true => unknown::show(ui, &shown, &sources, &unknown),
                    false => undecided.add(&shown, in_test, &unknown),
                }
            }
        }
    }
    if let (Some(written), Some(path)) = (&written, project.baseline()) {
        return match written.write(path) {
            Ok(()) => {
                ui.note(&format!(
                    "wrote {} to `{}`",
                    super::plural(written.count(), "finding"),
                    path.display()
                ));
                Exit::Done
            }
            Err(message) => ui.usage(&message, None),
        };
    }
    if lines_end_open {
        ui.result("");
    }
    undecided.show(ui);
    match ui.args.format {
        OutputFormat::Sarif => {
            ui.result(&report.sarif(env!("CARGO_PKG_VERSION"), &lint::codes()).to_string());
        }
        OutputFormat::Github => ui.result(report.github().trim_end()),
        OutputFormat::Markdown => ui.result(report.markdown().trim_end()),
        _ => {}
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

fn summary(ui: &Ui, args: &LintArgs, tally: &Tally) {
    let checked: usize = tally.checked.values().sum();
    let skipped: usize = tally.skipped.values().sum();
    let count = |level| {
        tally.findings.iter().filter(|((_, l), _)| *l == level).flat_map(|(_, n)| n.values()).sum::<usize>()
    };
    let (errors, warnings, unknown) = (count(Level::Error), count(Level::Warn), count(Level::Unknown));
    if args.stats {
        if ui.is_json() {
            let findings: Vec<_> = tally
                .findings
                .iter()
                .map(|((c, l), n)| {
                    let all: usize = n.values().sum();
                    json!({"code": c, "level": l.as_str(), "count": all, "formats": n})
                })
                .collect();
            let line = json!({"stats": {
                "checked": tally.checked, "skipped": tally.skipped, "unreadable": tally.unreadable, "findings": findings,
            }});
            ui.result(&line.to_string());
        } else {
            for ((code, level), formats) in &tally.findings {
                let all: usize = formats.values().sum();
                let mut formats: Vec<(&str, usize)> = formats.iter().map(|(f, n)| (*f, *n)).collect();
                formats.sort_by_key(|(f, n)| (std::cmp::Reverse(*n), *f));
                let formats: Vec<String> = formats.iter().map(|(f, n)| format!("{f} {n}")).collect();
                let code = format!("{code} ({})", level.as_str());
                ui.result(&format!("{all:>6}  {code:<16} {}", formats.join(", ")));
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
            ui.note(&format!("{} {what}", super::plural(n, "finding")));
        }
        let unknown = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
        let unreadable =
            if tally.unreadable > 0 { format!(", {} unreadable", tally.unreadable) } else { String::new() };
        ui.note(&format!(
            "{}, {}{unknown} in {} checked ({skipped} skipped{unreadable})",
            super::plural(errors, "error"),
            super::plural(warnings, "warning"),
            super::plural(checked, "file"),
        ));
    }
}
