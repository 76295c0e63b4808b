//! `entail check`: what a program entails, without running it.

use super::{analyzed_for, say_problem, worth_saying};
use crate::args::{CheckArgs, Show};
use crate::ui::{Exit, Ui};
use ::policy::Policy;
use analysis::{flow, types};
use core_ir::{ModelRoutes, Name};
use diagnostics::{Diagnostic, FileId, Hint, Sources, has_errors};
use frontend_kit::File;
use serde_json::{Value, json};
use session::bound::{Pricing, figures};
use session::load::{Kind, Loaded, Options, Problem, Runnable, files_under, load, on_all_cores};
use session::policy;
use session::preflight::Preflight;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// Result of checking one entry point.
struct Entry {
    found: Vec<Diagnostic>,
    object: Value,
    lines: Vec<String>,
    /// Models for which there is no list price.
    unpriced: Vec<Name>,
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
            for r in &runnables {
                let mut entry = entry(&sources, &name, r, &args.show, policy.as_ref(), &routes, pricing);
                let ready = preflight.entry(Kind::of(&name), r, policy.as_ref());
                // Entry points share their tools; and the flows are shown already, if that is wanted.
                for d in ready.errors() {
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

/// Analyses one entry point.
fn entry(
    sources: &Sources,
    path: &str,
    r: &Runnable,
    show: &[Show],
    policy: Option<&Policy>,
    routes: &ModelRoutes,
    pricing: &Pricing,
) -> Entry {
    let input = analyzed_for(r);
    let mut object = json!({"path": path, "entry": r.name, "input": input.as_ref().map(ToString::to_string)});
    let mut lines = Vec::new();
    let of = input.as_ref().map_or(String::new(), |t| format!(" of {t}"));
    lines.push(format!("{path}: {}{of}", r.name));
    let mut add = |more: Value| {
        if let (Some(o), Value::Object(more)) = (object.as_object_mut(), more) {
            o.extend(more);
        }
    };
    let typing = types::check(&r.code, r.input.as_ref());
    let mut found = typing.diagnostics;
    let mut unpriced = Vec::new();
    if show.contains(&Show::Types) {
        let ty = typing.result.as_ref().unwrap_or(&typing.ty);
        let open: Vec<String> = typing.dynamic.iter().map(|s| sources.place(*s).to_string()).collect();
        lines.push(match typing.result {
            Some(_) => format!("  result: {ty}"),
            None => format!("  type: {ty}"),
        });
        if !typing.complete {
            lines.push("  the program is too large for all of its types to be checked".into());
        }
        if !open.is_empty() {
            let shown = open.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
            let more = if open.len() > 5 { ", …" } else { "" };
            lines.push(format!(
                "  decided when it runs: {} ({shown}{more})",
                super::plural(open.len(), "use")
            ));
        }
        add(json!({"type": ty.to_string(), "dynamic": open, "complete": typing.complete}));
    }
    if show.contains(&Show::Effects) {
        let effects = match (&r.input, &input) {
            // Those of a call.
            (None, Some(_)) => types::check(&r.code, input.as_ref()).effects,
            _ => typing.effects,
        };
        lines.push(format!("  effects: {effects}"));
        add(json!({"effects": effects.to_string()}));
    }
    if show.contains(&Show::Cost) {
        let bound = pricing.bound(&r.code, input.is_some());
        add(figures(&bound, sources));
        unpriced = bound.unpriced.iter().map(|(name, _)| name.clone()).collect();
        lines.push(format!("  model calls: {}", bound.model_calls));
        lines.push(format!("  tool calls: {}", bound.tool_calls));
        for (span, why) in &bound.unbounded {
            lines.push(format!("  at {}: {why}", sources.place(*span)));
        }
    }
    if show.contains(&Show::Flow) {
        let options = policy::options(policy, routes.clone(), input.is_some());
        let report = flow::analyze(&r.code, &options);
        let mut refused = flow::findings(&report);
        Hint::add(&r.hints, &mut refused);
        found.extend(refused);
        add(json!({"flow": flow::to_json(&report, sources)}));
        lines.extend(flow::to_text(&report, sources).into_iter().map(|line| format!("  {line}")));
    }
    Entry { found, object, lines, unpriced }
}

fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Usage, _) | (_, Exit::Usage) => Exit::Usage,
        (Exit::Failed, _) | (_, Exit::Failed) => Exit::Failed,
        _ => Exit::Done,
    }
}

/// The file itself, or the programs and configurations in a directory, in a stable order.
fn programs_under(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_path_buf()];
    }
    files_under(path, |p| Kind::of(p) != Kind::Config || File::is_read(p))
}
