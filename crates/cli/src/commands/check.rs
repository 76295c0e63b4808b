//! `entail check`: what a program entails, without running it.

use super::{say_problem, worth_saying};
use crate::args::CheckArgs;
use crate::ui::{Exit, Ui};
use core_ir::{Code, Name};
use diagnostics::{Diagnostic, FileId, Sources, has_errors};
use entries::check::{Aspect, Entry, entry};
use frontend_kit::File;
use session::bound::Pricing;
use session::load::{Kind, Loaded, Options, Problem, files_under, load, on_all_cores};
use session::preflight::Preflight;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that are loaded before what was found of them is said.
const AT_ONCE: usize = 64;

/// Runs the command.
pub fn check(ui: &Ui, args: &CheckArgs) -> Exit {
    if args.equiv {
        return super::equiv::equiv(ui, &args.paths);
    }
    let mut exit = Exit::Done;
    let mut programs = 0;
    // The settings are a part of what is checked: a mistake in them is a finding.
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(_) => return Exit::Failed,
    };
    let options = settings.loading(args.policy.as_deref());
    let (preflight, pricing) = (Preflight::of(&settings), Pricing::of(&settings, None));
    let against = CheckContext { args, options: &options, preflight: &preflight, pricing: &pricing };
    let wrong = preflight.settings();
    if !wrong.is_empty() {
        ui.findings(&Sources::new(), &wrong);
        exit = Exit::Failed;
    }
    let (mut lacking, mut unpriced) = (BTreeSet::new(), BTreeSet::new());
    for path in &args.paths {
        let shown = path.display().to_string();
        if shown != "-" && !path.exists() {
            return ui.usage(&format!("cannot read `{shown}`: no such file"), None);
        }
        let is_directory = path.is_dir();
        // Some at a time: what is said is in order, and not all of it is held at once.
        for files in programs_under(path).chunks(AT_ONCE) {
            for Checked { sources, outcome } in on_all_cores(files, |file| one(file, against)) {
                match outcome {
                    // In a directory, configurations of unknown formats are simply not programs.
                    Err(Problem::Unreadable(..)) if is_directory => continue,
                    // A policy that the settings name is checked with them.
                    Err(problem @ Problem::Policy(_)) if args.policy.is_none() => {
                        say_problem(ui, &sources, problem);
                        exit = worse(exit, Exit::Failed);
                    }
                    Err(problem) => exit = worse(exit, say_problem(ui, &sources, problem)),
                    Ok(Findings { found, entries, host, unknown, lacks, no_price }) => {
                        lacking.extend(lacks);
                        unpriced.extend(no_price);
                        if has_errors(&found) {
                            exit = worse(exit, Exit::Failed);
                        }
                        ui.findings(&sources, &worth_saying(ui, found));
                        for entry in entries {
                            exit = worse(exit, show(ui, &sources, entry));
                        }
                        if !ui.is_json() && !ui.args.quiet {
                            let file = sources.get(FileId(0)).map_or("", |s| &*s.path);
                            if !host.is_empty() {
                                let what = super::plural(host.len(), "tool");
                                let are = if host.len() == 1 { "is" } else { "are" };
                                ui.result(&format!(
                                    "{file}: {what} {are} left to the host: {}",
                                    listed(&host)
                                ));
                            }
                            if !unknown.is_empty() {
                                ui.result(&format!(
                                    "{file}: no policy describes {}, so every call is refused; `entail policy init` writes a policy to complete",
                                    listed(&unknown)
                                ));
                            }
                        }
                    }
                }
                programs += 1;
            }
        }
    }
    if programs == 0 {
        let help = "programs end in `.agent` or `.lam`; configurations are recognized by their content";
        return ui.usage("nothing to check there", Some(help));
    }
    if !ui.is_json() {
        if !lacking.is_empty() {
            let all: Vec<&str> = lacking.iter().map(String::as_str).collect();
            ui.note(&diagnostics::clip_to(&format!("not ready to run: {}", all.join("; ")), 500));
        }
        if !unpriced.is_empty() {
            let all: Vec<&str> = unpriced.iter().map(String::as_str).collect();
            ui.note(&diagnostics::clip_to(&format!("no price is known of {}", all.join(", ")), 500));
        }
    }
    exit
}

/// Some names in a line.
fn listed<T: std::fmt::Display>(names: &BTreeSet<T>) -> String {
    const MAX_NAMES: usize = 8;
    let mut out: Vec<String> = names.iter().take(MAX_NAMES).map(|n| format!("`{n}`")).collect();
    if names.len() > MAX_NAMES {
        out.push("…".into());
    }
    out.join(", ")
}

/// Result of checking one file.
struct Checked {
    sources: Sources,
    outcome: Result<Findings, Problem>,
}

/// Findings to report about one file.
struct Findings {
    found: Vec<Diagnostic>,
    entries: Vec<Entry>,
    /// Tools that the host supplies.
    host: BTreeSet<Name>,
    /// Tools of a configuration of which nothing is known, and whose calls are refused every time.
    unknown: BTreeSet<Name>,
    /// Requirements of a run that this machine lacks.
    lacks: BTreeSet<String>,
    /// Models without a price.
    no_price: BTreeSet<String>,
}

/// Options and settings that files are checked against.
#[derive(Clone, Copy)]
struct CheckContext<'a> {
    args: &'a CheckArgs,
    options: &'a Options,
    preflight: &'a Preflight,
    pricing: &'a Pricing,
}

/// Loads one file and analyses what can be run in it.
fn one(file: &Path, against: CheckContext<'_>) -> Checked {
    let CheckContext { args, options, preflight, pricing } = against;
    let mut sources = Sources::new();
    let name = file.display().to_string();
    let outcome = load(&mut sources, &name, options).map(
        |Loaded { runnables, found, policy, routes, declared, .. }| {
            let mut all = Findings {
                found,
                entries: Vec::new(),
                host: BTreeSet::new(),
                unknown: BTreeSet::new(),
                lacks: BTreeSet::new(),
                no_price: BTreeSet::new(),
            };
            for d in preflight.declarations(&declared) {
                if !all.found.contains(&d) {
                    all.found.push(d);
                }
            }
            let aspects: Vec<Aspect> = args.show.iter().map(|s| s.aspect()).collect();
            let bound = |code: &Arc<Code>, applied: bool| pricing.bound(code, applied);
            for r in &runnables {
                let mut entry = entry(&sources, &name, r, &aspects, policy.as_ref(), &routes, &bound);
                let ready = preflight.entry(Kind::of(&name), r, policy.as_ref());
                // Entry points share their tools; and the flows are shown already, if that is wanted.
                for d in ready.errors().into_iter().chain(ready.warnings.clone()) {
                    if !all.found.contains(&d) && !entry.found.contains(&d) {
                        all.found.push(d);
                    }
                }
                let (host, lacks) = (ready.left_to_host(), ready.lacking());
                entry.unpriced.retain(|name| !preflight.has_price(name));
                all.no_price.extend(entry.unpriced.iter().map(|name| match &**name {
                    "" => "the default model".to_string(),
                    name => format!("`{name}`"),
                }));
                if let Some(object) = entry.object.as_object_mut() {
                    object.insert("host".into(), host.iter().map(|n| &**n).collect());
                    object.insert("unknownTools".into(), ready.unknown.iter().map(|n| &**n).collect());
                    object.insert("lacking".into(), lacks.iter().map(String::as_str).collect());
                }
                all.host.extend(host);
                all.unknown.extend(ready.unknown);
                all.lacks.extend(lacks);
                all.entries.push(entry);
            }
            all
        },
    );
    Checked { sources, outcome }
}

/// Says what was found of one entry point: what is wrong comes first, then one object, or some lines.
fn show(ui: &Ui, sources: &Sources, entry: Entry) -> Exit {
    let exit = if has_errors(&entry.found) { Exit::Failed } else { Exit::Done };
    ui.findings(sources, &worth_saying(ui, entry.found));
    if ui.is_json() {
        ui.result(&entry.object.to_string());
    } else {
        entry.lines.iter().for_each(|line| ui.result(line));
    }
    exit
}

fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Usage, _) | (_, Exit::Usage) => Exit::Usage,
        (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
        _ => Exit::Done,
    }
}

/// The file itself, or the programs and configurations in a directory, in a stable order.
pub(super) fn programs_under(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    files_under(path, |p| Kind::of(p) != Kind::Config || File::is_read(p))
}
