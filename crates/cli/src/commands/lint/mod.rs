//! `entail lint`: defects in agent configurations.

mod around;
mod baseline;
mod cache;
mod flow;
mod repair;
mod settings;
mod watch;

pub use settings::LintSettings;

use crate::args::{Format as OutputFormat, LintArgs};
use crate::load::{Imports, Kind, files_and_hidden, limits_of, on_all_cores, read_bytes, reason};
use crate::neighbours::Neighbours;
use crate::packages::{Known, Packages};
use crate::preflight::Preflight;
use crate::settings::Settings;
use crate::ui::{Exit, Ui};
use around::Around;
use baseline::Baseline;
use cache::Cache;
use core_ir::Code;
use diagnostics::{FileId, Level, Sources, Span, has_errors};
use frontend::doc::{Limits, decode};
use frontend::surface::{self, EntryKind};
use frontend::{File, Outline, Project, Recognised, Unit, UnitKind};
use lint::{Config, Outcome, Report, Skip, Surroundings, fold, is_test, lint_among, lint_programs};
use serde_json::json;
use settings::Wanted;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What linting all files came to.
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
        Cache::clear();
    }
    if args.watch { watch::watch(ui, args) } else { once(ui, args) }
}

/// What a file is linted with.
pub struct Linter {
    wanted: Wanted,
    cache: Cache,
    /// The code around the files; `None` if it is not looked at.
    around: Option<Around>,
    /// What modules of Python may import.
    neighbours: Neighbours,
    /// The versions of packages.
    packages: Packages,
}

impl Linter {
    /// What settings want that stand in a folder, with nothing kept between runs.
    ///
    /// # Errors
    /// Why the settings cannot be used.
    pub fn of_settings(settings: &LintSettings, dir: &Path) -> Result<Linter, String> {
        Ok(Linter {
            wanted: Wanted::of_settings(settings, dir)?,
            cache: Cache::open("", true),
            around: Some(Around::default()),
            neighbours: Neighbours::default(),
            packages: Packages::new(settings.versions(), true),
        })
    }

    /// The report of a file of these bytes, from the cache if it is there.
    pub fn lint(&self, path: &Path, bytes: &[u8]) -> Report {
        let config = self.wanted.config_for(path);
        // Settings that hold for some files only are no part of the cache's name.
        let mut own = if self.wanted.is_uniform() { String::new() } else { format!("{config:?}") };
        if std::str::from_utf8(bytes).is_ok_and(|t| t.contains("entail:")) {
            own.push_str(&format!("{:?}", config.today));
        }
        let shown = path.display().to_string();
        if is_program(&shown) || (shown == "-" && !reads_as_agents(&shown, bytes)) {
            return program(&shown, bytes, &config);
        }
        let known = self.packages.of(path);
        if File::is_python(&shown) {
            return self.module(path, bytes, own, &known, &config);
        }
        if self.around.is_some() && names_modules(&shown, bytes) {
            return self.module(path, bytes, own, &known, &config);
        }
        let mut own = own.into_bytes();
        own.extend(&known.key);
        // Where it stands in its project says whether it is one of its tests.
        let around = self.around.as_ref().filter(|_| shown != "-");
        let below = around.and_then(|around| around.below(path)).unwrap_or(shown);
        own.push(u8::from(is_test(&below)));
        let alone = self.cached(path, bytes, &own, || {
            let project = |_| Project { versions: known.versions.clone(), ..Project::default() };
            lint_among(&below, FileId(0), bytes, project, &config)
        });
        match (&alone.outcome, &self.around) {
            (Outcome::Checked { findings, .. }, Some(around)) if Surroundings::concerns(findings) => {
                let Some(found) = around.of(path) else { return alone };
                let mut more = own;
                more.extend(found.key());
                more.extend(found.path.as_bytes());
                self.cached(path, bytes, &more, || judged(alone.clone(), &found, &config))
            }
            _ => alone,
        }
    }

    /// The report of a module of Python, or of what names one, among those of its project.
    fn module(&self, path: &Path, bytes: &[u8], own: String, known: &Known, config: &Config) -> Report {
        let shown = path.display().to_string();
        if self.around.is_none() || !reads_as_agents(&shown, bytes) {
            let alone = |_| Project { versions: known.versions.clone(), ..Project::default() };
            return lint_among(&shown, FileId(0), bytes, alone, config);
        }
        let project = self.neighbours.of(path);
        let mut more = own.into_bytes();
        more.extend(&known.key);
        more.extend(project.digest());
        // Which of them it may import depends on where it is.
        more.extend(project.path.as_bytes());
        self.cached(path, bytes, &more, || {
            let among = |_| Project {
                files: project.others(),
                versions: known.versions.clone(),
                modules: project.modules(),
            };
            lint_among(&project.path, FileId(0), bytes, among, config)
        })
    }

    fn cached(&self, path: &Path, bytes: &[u8], more: &[u8], make: impl FnOnce() -> Report) -> Report {
        if !self.cache.is_on() {
            return make();
        }
        let key = self.cache.key(path, bytes, more);
        self.cache.get(&key, bytes).unwrap_or_else(|| {
            let report = make();
            self.cache.put(key, &report);
            report
        })
    }
}

/// Whether a text that cannot be read may be meant to define agents: it has a word of some format.
fn speaks_of_agents(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "system_prompt",
        "systemPrompt",
        "system_message",
        "systemMessage",
        "systemRole",
        "instruction",
        "backstory",
        "expected_output",
        "prompt",
        "llm",
        "agentId",
        "agent:",
        "agents:",
        "\"agents\"",
        "agent_class",
        "sub_agents",
        "toolsets",
        "kagent.dev",
        "maxSteps",
        "mcp",
        "component_type",
        "model_config",
        "crewai",
        "autogen",
        "langgraph",
    ];
    WORDS.iter().any(|w| text.contains(w))
}

/// Whether a file is a program of ours.
fn is_program(path: &str) -> bool {
    matches!(Kind::of(path), Kind::Agent | Kind::Lam)
}

/// The report of a program: what `entail check` says of its text, and what the rules say of its terms.
fn program(path: &str, bytes: &[u8], config: &Config) -> Report {
    let mut sources = Sources::new();
    let text = match decode(FileId(0), bytes, &limits_of(path)) {
        Ok(text) => text,
        Err(d) => return Report { text: None, outcome: Outcome::Unreadable(vec![*d]) },
    };
    let id = sources.add(path, text.clone());
    let unit = |name: &str, code: Code, span: Span| Unit {
        name: name.to_string(),
        kind: UnitKind::Agent,
        code: Arc::new(code),
        span,
        agents: Vec::new(),
        outline: Outline::default(),
    };
    let (framework, mut findings, units) = match Kind::of(path) {
        Kind::Lam => {
            let parsed = frontend::calculus::compile(id, &text);
            let all = Span { file: id, start: 0, end: text.len() as u32 };
            let code = parsed.code.filter(|_| !has_errors(&parsed.diagnostics));
            ("lam", parsed.diagnostics, code.map(|c| unit("main", c, all)).into_iter().collect())
        }
        _ => {
            let (module, found) = surface::check_files(id, &text, &mut Imports::new(&mut sources, id));
            let mut units = Vec::new();
            if let Some(module) = &module {
                let entries = module.entries().iter();
                for entry in entries.filter(|e| e.kind == EntryKind::Pipeline && e.span.file == id) {
                    units.extend(module.lower(entry).ok().map(|code| unit(&entry.name, code, entry.span)));
                }
            }
            ("agent", found, units)
        }
    };
    findings.extend(lint_programs(framework, units, config));
    // What is found in a file that it imports is that file's.
    findings.retain(|d| d.span.is_none_or(|s| s.file == id));
    for d in &mut findings {
        d.remarks.retain(|r| r.span.file == id);
        d.framework = Some(framework);
    }
    config.filter(&mut findings);
    Report { text: Some(text), outcome: Outcome::Checked { framework, units: 1, findings, silenced: 0 } }
}

/// Whether a configuration names modules of Python, which are compiled with it. Only JSON does.
fn names_modules(path: &str, bytes: &[u8]) -> bool {
    let limits = Limits::default();
    path.ends_with(".json")
        && std::str::from_utf8(bytes).is_ok_and(|t| t.contains("\"graphs\""))
        && decode(FileId(0), bytes, &limits).is_ok_and(|text| {
            let file = File::read(FileId(0), path, &text, &limits);
            matches!(frontend::recognise(&file), Recognised::Frontend(f) if f.names_modules())
        })
}

/// Whether a front end reads a module. Most modules build no agents; what is around them is not looked at.
fn reads_as_agents(path: &str, bytes: &[u8]) -> bool {
    let limits = Limits::default();
    decode(FileId(0), bytes, &limits).is_ok_and(|text| {
        let file = File::read(FileId(0), path, &text, &limits);
        matches!(frontend::recognise(&file), Recognised::Frontend(_))
    })
}

/// The report in the light of the code around the file.
fn judged(mut report: Report, found: &around::Found, config: &Config) -> Report {
    if let (Outcome::Checked { findings, .. }, Some(code)) = (&mut report.outcome, found.code()) {
        code.judge(&found.path, findings);
        findings.retain(|d| config.wants(d));
    }
    report
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
    let (loading, preflight) = (settings.loading(args.policy.as_deref()), Preflight::of(&settings));
    let mut written = args.write_baseline.then(Baseline::new);
    // A file named on the command line that cannot be read is a wrong request; one met in a directory is a finding.
    let linter = Linter {
        cache: Cache::open(&wanted.key(), args.no_cache),
        around: (!args.no_python).then(Around::default),
        neighbours: Neighbours::default(),
        packages: Packages::new(settings.lint.versions(), !args.no_python),
        wanted,
    };
    let wanted = &linter.wanted;
    let reports = lint_all(&files, &linter);
    linter.cache.save();
    let mut tally = Tally::default();
    let mut report = diagnostics::report::Report::default();
    let mut failed = false;
    let mut usage = false;
    for ((path, named), linted) in files.iter().zip(reports) {
        let shown = path.display().to_string();
        let linted = match linted {
            Ok(linted) if args.fix || args.unsafe_fixes || args.diff => {
                match repair::repair(ui, args, path, linted, &linter) {
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
                // A directory holds much that is no agent: charts, manifests, fixtures. Those are counted only.
                if !named && linted.text.as_deref().is_some_and(|t| !speaks_of_agents(t)) {
                    continue;
                }
                findings
            }
            Outcome::Checked { framework, findings, silenced, .. } => {
                *tally.checked.entry(framework).or_default() += 1;
                tally.silenced += silenced;
                let mut findings = findings;
                if is_program(&shown) && !has_errors(&findings) {
                    let more = flow::unready(&mut sources, &shown, &loading, args, &preflight);
                    findings.extend(more);
                }
                if let Some(options) = &policy {
                    match flow::findings(&mut sources, &shown, options, args) {
                        Ok(more) => {
                            for d in more {
                                if !findings.contains(&d) {
                                    findings.push(d);
                                }
                            }
                        }
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
        // Whoever reads JSON wants each.
        if !ui.is_json() {
            fold(&mut findings);
        }
        for d in &findings {
            failed |= d.level == Level::Error;
            let by_format = tally.findings.entry((d.code, d.level)).or_default();
            *by_format.entry(d.framework.unwrap_or("unread")).or_default() += 1;
        }
        match ui.args.format {
            // What would be changed is the result then.
            _ if args.diff => {}
            OutputFormat::Text
            | OutputFormat::Json
            | OutputFormat::Lam
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
        | OutputFormat::Lam
        | OutputFormat::Mermaid
        | OutputFormat::Dot
        | OutputFormat::Svg
        | OutputFormat::Junit => {}
        OutputFormat::Sarif => {
            ui.result(&report.sarif(env!("CARGO_PKG_VERSION"), &lint::codes()).to_string());
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

/// Where clients keep their lists of MCP servers; all else that is hidden is left out.
const HIDDEN: &[&str] = &[
    ".mcp.json",
    ".vscode",
    ".cursor",
    ".gemini",
    ".kiro",
    ".roo",
    ".windsurf",
    ".trae",
    ".amazonq",
    ".continue",
];

/// Whether a file of a hidden folder is something else than such a list.
fn is_of_an_editor(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or(path);
    let listed = name.contains("mcp") || name == "settings.json";
    !listed && parts.any(|folder| HIDDEN.contains(&folder))
}

/// The file itself (named; `-` is standard input), or the programs, the YAML, JSON and, if wanted, Python files in a directory, in a stable order.
fn files_of(path: &Path, python: bool) -> Result<Vec<(PathBuf, bool)>, String> {
    if path == Path::new("-") {
        return Ok(vec![(path.to_path_buf(), true)]);
    }
    let metadata =
        std::fs::metadata(path).map_err(|e| format!("cannot read `{}`: {}", path.display(), reason(&e)));
    if !metadata?.is_dir() {
        return Ok(vec![(path.to_path_buf(), true)]);
    }
    let wanted = |p: &str| is_program(p) || File::is_read(p) && (python || !File::is_python(p));
    // What stands above the directory says nothing about it.
    let above = path.display().to_string().len();
    let below = |p: &str| !is_of_an_editor(p.get(above..).unwrap_or(p));
    let files = files_and_hidden(path, |name| HIDDEN.contains(&name), |p| wanted(p) && below(p));
    Ok(files.into_iter().map(|p| (p, false)).collect())
}

/// Lints the files on all cores; the reports are in the order of the files.
fn lint_all(files: &[(PathBuf, bool)], linter: &Linter) -> Vec<Result<Report, String>> {
    on_all_cores(files, |(path, _)| {
        let shown = path.display().to_string();
        match read_bytes(&shown) {
            Ok(bytes) => Ok(linter.lint(path, &bytes)),
            Err(e) => Err(reason(&e)),
        }
    })
}

fn summary(ui: &Ui, args: &LintArgs, tally: &Tally) {
    let checked: usize = tally.checked.values().sum();
    let skipped: usize = tally.skipped.values().sum();
    let count = |level| {
        tally.findings.iter().filter(|((_, l), _)| *l == level).flat_map(|(_, n)| n.values()).sum::<usize>()
    };
    let (errors, warnings, unknown) = (count(Level::Error), count(Level::Warn), count(Level::Unknown));
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
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
