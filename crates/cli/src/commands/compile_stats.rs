//! `entail compile --stats`: how much of a directory compiles, by format.

use super::fragments;
use crate::ui::{Exit, Ui};
use analysis::types;
use core_ir::{Term, Type};
use diagnostics::{Diagnostic, FileId, Level, Span};
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Project, Recognized};
use serde_json::json;
use session::frameworks::recognize;
use session::load::{files_under, on_all_cores, read_bytes};
use session::project_files::ProjectFilesCache;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Result of compiling one file.
struct Outcome {
    format: String,
    bytes: usize,
    took: Duration,
    state: State,
    units: usize,
    /// The units in which types fit.
    typed: usize,
    terms: usize,
    unknown: usize,
    /// Reasons why parts are unknown, each with its places and the number of parts.
    reasons: Reasons,
    /// Number of units that use each former.
    formers: [usize; fragments::MANY],
    /// The first error of a type.
    ill: Option<Diagnostic>,
    /// Reason why the file did not compile, or compiled to nothing.
    why: Option<Diagnostic>,
}

/// Reasons with their places (a file's path and a line), and how many parts come from there.
type Reasons = BTreeMap<String, BTreeMap<(String, usize), usize>>;

/// Stage that a file reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is a term, or several.
    Compiled,
    /// It is of the format and defines nothing that runs, and is told so.
    Nothing,
    /// An error stands in the way.
    Failed,
    /// It is no agent configuration.
    Skipped,
}

/// One row of the table.
#[derive(Default)]
struct Row {
    files: usize,
    compiled: usize,
    nothing: usize,
    failed: usize,
    units: usize,
    typed: usize,
    terms: usize,
    unknown: usize,
    formers: [usize; fragments::MANY],
    bytes: usize,
    took: Duration,
}

/// Runs the command.
pub fn stats(ui: &Ui, path: &str) -> Exit {
    let path = Path::new(path);
    let files = match std::fs::metadata(path) {
        Ok(m) if m.is_dir() => files_under(path, File::is_read),
        Ok(_) => vec![path.to_path_buf()],
        Err(e) => {
            return ui.cannot_read(path.display(), &e);
        }
    };
    let begun = Instant::now();
    let neighbors = ProjectFilesCache::default();
    let outcomes = on_all_cores(&files, |path| one(path.as_path(), &neighbors));
    let wall = begun.elapsed();
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut total = Row::default();
    let mut skipped = 0;
    for (file, outcome) in files.iter().zip(&outcomes) {
        let Some(outcome) = outcome else { continue };
        total.bytes += outcome.bytes;
        total.took += outcome.took;
        if ui.args.verbose && ui.is_json() {
            ui.result(&line(file, outcome).to_string());
        }
        if outcome.state == State::Skipped {
            skipped += 1;
            continue;
        }
        let told = ui.args.verbose && !ui.is_json();
        if let (true, Some(why)) = (told, &outcome.why) {
            ui.say(&format!("{}: {}: {} {}", outcome.format, file.display(), why.code, why.message));
        }
        if let (true, Some(ill)) = (told, &outcome.ill) {
            ui.say(&format!("{}: {}: {} {}", outcome.format, file.display(), ill.code, ill.message));
        }
        let row = rows.entry(&outcome.format).or_default();
        row.took += outcome.took;
        for row in [row, &mut total] {
            row.files += 1;
            row.compiled += usize::from(outcome.state == State::Compiled);
            row.nothing += usize::from(outcome.state == State::Nothing);
            row.failed += usize::from(outcome.state == State::Failed);
            row.units += outcome.units;
            row.typed += outcome.typed;
            row.terms += outcome.terms;
            row.unknown += outcome.unknown;
            for (all, more) in row.formers.iter_mut().zip(outcome.formers) {
                *all += more;
            }
        }
    }
    if ui.is_json() {
        if ui.args.verbose {
            reasons(ui, &outcomes);
        }
        let rows: serde_json::Map<String, serde_json::Value> =
            rows.iter().map(|(name, r)| (name.to_string(), json_of(r))).collect();
        let seconds = wall.as_secs_f64();
        ui.result(&json!({"formats": rows, "total": json_of(&total), "skipped": skipped, "bytes": total.bytes, "seconds": seconds, "compileSeconds": total.took.as_secs_f64()}).to_string());
        return Exit::Done;
    }
    ui.result(&format!(
        "{:<20} {:>6} {:>9} {:>8} {:>7} {:>7} {:>6} {:>12} {:>9} {:>8}",
        "format",
        "files",
        "compiled",
        "nothing",
        "failed",
        "rate",
        "units",
        "type checks",
        "terms",
        "unknown"
    ));
    for (name, r) in rows.iter().map(|(n, r)| (*n, r)).chain([("all", &total)]) {
        // A file that defines nothing that runs is rightly compiled to nothing.
        let rate = percent(r.compiled, r.files - r.nothing);
        ui.result(&format!(
            "{name:<20} {:>6} {:>9} {:>8} {:>7} {rate:>7} {:>6} {:>12} {:>9} {:>8}",
            r.files,
            r.compiled,
            r.nothing,
            r.failed,
            r.units,
            percent(r.typed, r.units),
            r.terms,
            r.unknown
        ));
    }
    ui.result(&format!(
        "\n{:<20} {:>6}{}",
        "units that use",
        "units",
        fragments::NAMES.map(|n| format!(" {n:>6}")).concat()
    ));
    for (name, r) in rows.iter().map(|(n, r)| (*n, r)).chain([("all", &total)]) {
        let counts = r.formers.map(|n| format!(" {n:>6}")).concat();
        ui.result(&format!("{name:<20} {:>6}{counts}", r.units));
    }
    if ui.args.verbose {
        reasons(ui, &outcomes);
    }
    let seconds = wall.as_secs_f64().max(1e-9);
    let megabytes = total.bytes as f64 / 1e6;
    ui.note(&format!(
        "{} files ({skipped} are no agent configurations), {megabytes:.1} MB in {seconds:.2} s, type checks included: {:.0} files/s, {:.1} MB/s",
        files.len(),
        files.len() as f64 / seconds,
        megabytes / seconds,
    ));
    let seconds = total.took.as_secs_f64().max(1e-9);
    ui.note(&format!(
        "parsing and lowering alone, one file after the other: {seconds:.2} s, {:.0} files/s, {:.1} MB/s",
        files.len() as f64 / seconds,
        megabytes / seconds,
    ));
    Exit::Done
}

/// Returns `some` of `all` as a percentage; a dash if there are none.
fn percent(some: usize, all: usize) -> String {
    if all == 0 { "–".into() } else { format!("{:.1}%", 100.0 * some as f64 / all as f64) }
}

/// Returns the result for one file as JSON.
fn line(file: &Path, o: &Outcome) -> serde_json::Value {
    let state = match o.state {
        State::Compiled => "compiled",
        State::Nothing => "nothing",
        State::Failed => "failed",
        State::Skipped => "skipped",
    };
    let each =
        o.reasons.iter().flat_map(|(why, places)| places.iter().map(move |(place, n)| (why, place, n)));
    let unknowns: Vec<_> = each
        .map(|(why, (file, line), parts)| json!({"why": why, "file": file, "line": line, "parts": parts}))
        .collect();
    let said = |d: &Option<Diagnostic>| d.as_ref().map(|d| format!("{} {}", d.code, d.message));
    json!({"file": file.display().to_string(), "format": o.format, "state": state, "units": o.units, "typeChecks": o.typed,
        "terms": o.terms, "unknown": o.unknown, "unknowns": unknowns, "seconds": o.took.as_secs_f64(), "why": said(&o.why), "illTyped": said(&o.ill)})
}

/// The path of a place's file, and its line.
fn place(project: &Project, main: &str, at: Span) -> (String, usize) {
    let Some((index, file)) = project.files.iter().enumerate().find(|(_, f)| f.id == at.file) else {
        return (String::new(), 0);
    };
    let text = file.python.as_ref().map_or(if index == 0 { main } else { "" }, |p| &p.text);
    let before = text.as_bytes().get(..at.start as usize).unwrap_or(text.as_bytes());
    (file.path.clone(), 1 + before.iter().filter(|b| **b == b'\n').count())
}

/// A reason without the names that it quotes, so that those of many places are one.
fn without_names(why: &str) -> String {
    let parts = why.split('`').enumerate().map(|(i, part)| if i % 2 == 1 { "…" } else { part });
    parts.collect::<Vec<_>>().join("`")
}

/// Prints the reasons why parts are unknown, most frequent first.
fn reasons(ui: &Ui, outcomes: &[Option<Outcome>]) {
    /// Places with the number of parts, and formats.
    type Seen<'o> = (BTreeMap<&'o (String, usize), usize>, BTreeSet<&'o str>);
    let mut all: BTreeMap<String, Seen<'_>> = BTreeMap::new();
    for outcome in outcomes.iter().flatten() {
        for (why, places) in &outcome.reasons {
            let (places_of, formats) = all.entry(without_names(why)).or_default();
            formats.insert(&outcome.format);
            for (place, parts) in places {
                *places_of.entry(place).or_default() += parts;
            }
        }
    }
    let mut all: Vec<_> = all.into_iter().map(|(why, (p, f))| (p.len(), p.values().sum(), why, f)).collect();
    all.sort_by(|a, b| (b.0, &a.2).cmp(&(a.0, &b.2)));
    if ui.is_json() {
        for (places, parts, why, formats) in all {
            let parts: usize = parts;
            ui.result(
                &json!({"unknown": why, "places": places, "parts": parts, "formats": formats}).to_string(),
            );
        }
        return;
    }
    if !all.is_empty() {
        ui.result(&format!("\n{:>7} {:>7}  why parts are unknown", "places", "parts"));
    }
    for (places, parts, why, _) in all {
        ui.result(&format!("{places:>7} {parts:>7}  {why}"));
    }
}

fn json_of(r: &Row) -> serde_json::Value {
    let formers: serde_json::Map<String, serde_json::Value> =
        fragments::NAMES.iter().zip(r.formers).map(|(n, count)| (n.to_string(), count.into())).collect();
    json!({"formers": formers, "files": r.files, "compiled": r.compiled, "nothing": r.nothing, "failed": r.failed, "units": r.units, "typeChecks": r.typed, "terms": r.terms, "unknown": r.unknown})
}

fn one(path: &Path, neighbors: &ProjectFilesCache) -> Option<Outcome> {
    let shown = path.display().to_string();
    let bytes = read_bytes(&shown).ok()?;
    let begun = Instant::now();
    let limits = Limits::default();
    let mut outcome = Outcome {
        format: String::new(),
        bytes: bytes.len(),
        took: Duration::ZERO,
        state: State::Skipped,
        units: 0,
        typed: 0,
        terms: 0,
        unknown: 0,
        reasons: Reasons::new(),
        formers: [0; fragments::MANY],
        ill: None,
        why: None,
    };
    let text = match decode(FileId(0), &bytes, &limits) {
        Ok(text) => text,
        Err(d) => {
            return Some(Outcome {
                format: "unreadable".into(),
                state: State::Failed,
                why: Some(*d),
                ..outcome
            });
        }
    };
    let file = File::read(FileId(0), &shown, &text, &limits);
    let broken = file.diagnostics.iter().find(|d| d.level == Level::Error).cloned();
    match recognize(&file) {
        Recognized::Frontend(frontend) => {
            outcome.format = frontend.name().into();
            // A module belongs to a project; a configuration is read by itself.
            let (mut files, mut modules) = (vec![file], None);
            if File::is_python(&shown) || frontend.names_modules() {
                let project = neighbors.of(path);
                files = vec![File::read(FileId(0), &project.path, &text, &limits)];
                files.extend(project.others());
                modules = project.modules();
            }
            let project = Project { files, modules, ..Project::default() };
            let compiled = frontend.lower(&project, 0);
            outcome.took = begun.elapsed();
            outcome.units = compiled.units.len();
            for unit in &compiled.units {
                // The input type is stated at its function; the default is a string.
                let input = match unit.code.term(unit.code.root()) {
                    Term::Abs(abs) => abs.ty.clone().unwrap_or(Type::Str),
                    _ => Type::Str,
                };
                let typing = types::check(&unit.code, Some(&input));
                match typing.diagnostics.into_iter().find(|d| d.level == Level::Error) {
                    Some(d) => outcome.ill = outcome.ill.or(Some(d)),
                    None => outcome.typed += usize::from(typing.complete),
                }
                outcome.terms += unit.code.len();
                for (count, used) in outcome.formers.iter_mut().zip(fragments::of(&unit.code)) {
                    *count += usize::from(used);
                }
                for (id, term) in unit.code.iter() {
                    let Term::Unknown(why) = term else { continue };
                    outcome.unknown += 1;
                    let place = place(&project, &text, unit.code.span(id));
                    *outcome.reasons.entry(why.to_string()).or_default().entry(place).or_default() += 1;
                }
            }
            let error = compiled.diagnostics.iter().find(|d| d.level == Level::Error).cloned();
            let error = broken.or(error);
            let nothing =
                || compiled.diagnostics.iter().find(|d| d.code == frontend_kit::emit::codes::NOTHING);
            (outcome.state, outcome.why) = match error {
                Some(e) => (State::Failed, Some(e)),
                None if compiled.units.is_empty() => (State::Nothing, nothing().cloned()),
                None => (State::Compiled, None),
            };
        }
        Recognized::Unsupported(name) => {
            outcome.took = begun.elapsed();
            outcome.format = format!("{name} (no front end)");
            outcome.state = State::Failed;
        }
        Recognized::Unknown => {
            outcome.took = begun.elapsed();
            if broken.is_some() {
                outcome.format = "unreadable".into();
                outcome.state = State::Failed;
                outcome.why = broken;
            }
        }
    }
    Some(outcome)
}
