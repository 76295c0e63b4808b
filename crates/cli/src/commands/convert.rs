//! `entail convert`: a program written in another format, so that it compiles to the same term.

use super::{choose, load_or_say, worth_saying};
use crate::args::{ConvertArgs, ConvertTo};
use crate::ui::{Exit, Ui};
use convert::Target;
use core_ir::Code;
use diagnostics::{FileId, Sources, has_errors, render};
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Project, Recognized};
use serde_json::{Value, json};
use session::frameworks::recognize;
use session::load::{Loaded, files_under, on_all_cores, read_bytes};
use session::project_files::ProjectFilesCache;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs the command.
pub fn convert(ui: &Ui, args: &ConvertArgs) -> Exit {
    if args.stats {
        return stats(ui, &args.file);
    }
    let target = match args.to {
        Some(ConvertTo::Agent) => Target::Agent,
        Some(ConvertTo::Agentspec) => Target::AgentSpec,
        Some(ConvertTo::Lam) => Target::Lam,
        None => {
            return ui.usage("the output format is missing", Some("`--to agent`, `agentspec` or `lam`"));
        }
    };
    if target == Target::Agent && args.file.ends_with(".agent") {
        return ui.usage("this is an `.agent` program already", Some("`entail fmt` writes it in one style"));
    }
    let mut sources = Sources::new();
    let Loaded { runnables: all, found, .. } = match load_or_say(ui, &mut sources, &args.file, None) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let wrong = has_errors(&found);
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    if wrong {
        return Exit::Failed;
    }
    let one = match choose(ui, &args.file, &all, args.pipeline.as_deref()) {
        Ok(one) => one,
        Err(exit) => return exit,
    };
    let converted = convert::convert(&one.code, &one.name, target);
    if ui.is_json() {
        let found: Vec<Value> = converted.found.iter().map(|d| render::json(&sources, d)).collect();
        ui.result(&json!({"program": one.name, "text": converted.text, "findings": found}).to_string());
    } else {
        ui.problems(&sources, &converted.found);
        if let Some(text) = &converted.text {
            ui.result(text.trim_end());
        }
    }
    if converted.text.is_some() { Exit::Done } else { Exit::Failed }
}

/// Counts of the units of one format.
#[derive(Default)]
struct Row {
    units: usize,
    converted: [usize; Target::ALL.len()],
}

/// `--stats`: how many of the units of a directory can be converted, by format and target.
fn stats(ui: &Ui, path: &str) -> Exit {
    let files = match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => files_under(Path::new(path), File::is_read),
        Ok(_) => vec![PathBuf::from(path)],
        Err(e) => return ui.cannot_read(path, &e),
    };
    let neighbors = ProjectFilesCache::default();
    let outcomes = on_all_cores(&files, |path| one(path, &neighbors));
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut why: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut total = Row::default();
    for (file, outcome) in files.iter().zip(outcomes.iter()) {
        let Some((format, units)) = outcome else { continue };
        for unit in units {
            for row in [rows.entry(*format).or_default(), &mut total] {
                row.units += 1;
                for (n, lacks) in row.converted.iter_mut().zip(unit) {
                    *n += usize::from(lacks.is_none());
                }
            }
            for (i, lacks) in unit.iter().enumerate() {
                if let Some(lacks) = lacks {
                    if ui.args.verbose {
                        ui.say(&format!("{format}: {}: {}: {lacks}", file.display(), Target::ALL[i].0));
                    }
                    // Text in backticks differs from place to place.
                    let kind: String = lacks.split('`').step_by(2).collect::<Vec<_>>().join("…");
                    *why.entry((i, kind.split(": ").next().unwrap_or_default().to_string())).or_default() +=
                        1;
                }
            }
        }
    }
    if ui.is_json() {
        let row = |r: &Row| {
            let to = Target::ALL.iter().zip(r.converted).map(|((n, _), count)| (n.to_string(), count.into()));
            json!({"units": r.units, "to": serde_json::Map::from_iter(to)})
        };
        let all: serde_json::Map<String, Value> = rows.iter().map(|(n, r)| (n.to_string(), row(r))).collect();
        ui.result(&json!({"formats": all, "total": row(&total)}).to_string());
        return Exit::Done;
    }
    let names = Target::ALL.map(|(n, _)| format!(" {n:>10}")).concat();
    ui.result(&format!("{:<20} {:>6}{names}", "format", "units"));
    for (name, r) in rows.iter().map(|(n, r)| (*n, r)).chain([("all", &total)]) {
        let share = |n: usize| 100.0 * n as f64 / r.units.max(1) as f64;
        let shares = r.converted.map(|n| format!(" {:>9.1}%", share(n))).concat();
        ui.result(&format!("{name:<20} {:>6}{shares}", r.units));
    }
    let mut why: Vec<((usize, String), usize)> = why.into_iter().collect();
    why.sort_by_key(|((target, _), n)| (*target, std::cmp::Reverse(*n)));
    for ((target, what), n) in why {
        ui.note(&format!("{:<10} {n:>6}  {what}", Target::ALL[target].0));
    }
    Exit::Done
}

/// The format of a file, and for each unit what the first thing is that each target cannot say.
type Outcome = (&'static str, Vec<[Option<String>; Target::ALL.len()]>);

fn one(path: &Path, neighbors: &ProjectFilesCache) -> Option<Outcome> {
    let shown = path.display().to_string();
    let bytes = read_bytes(&shown).ok()?;
    let limits = Limits::default();
    let text = decode(FileId(0), &bytes, &limits).ok()?;
    let file = File::read(FileId(0), &shown, &text, &limits);
    let Recognized::Frontend(frontend) = recognize(&file) else { return None };
    let (mut files, mut modules) = (vec![file], None);
    if File::is_python(&shown) {
        let project = neighbors.of(path);
        files = vec![File::read(FileId(0), &project.path, &text, &limits)];
        files.extend(project.others());
        modules = project.modules();
    }
    let compiled = frontend.lower(&Project { files, modules, ..Project::default() }, 0);
    let lacks = |code: &Arc<Code>, name: &str, target: Target| {
        let converted = convert::convert(code, name, target);
        let first = converted.found.into_iter().find(|d| d.level == diagnostics::Level::Error);
        first.map(|d| d.message).filter(|_| converted.text.is_none())
    };
    let unit = |u: &frontend_kit::Unit| Target::ALL.map(|(_, target)| lacks(&u.code, &u.name, target));
    Some((frontend.name(), compiled.units.iter().map(unit).collect()))
}
