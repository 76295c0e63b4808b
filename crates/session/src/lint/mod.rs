//! Findings of files: the rules on the programs, configurations and modules of projects, with what stands
//! around each file.
//!
//! Entry points: [`Linter::lint`] for one file, [`ProjectLint`] for files and directories with the settings
//! of a project.

mod baseline;
mod cache;
mod program_checks;
mod project;
mod project_context;
mod settings;

pub use baseline::Baseline;
pub use project::ProjectLint;
pub use settings::{LeastLevel, LintOptions, LintSelection, LintSettings};

use crate::error::SettingsError;
use crate::load::{Imports, Kind, files_and_hidden, limits_of, on_all_cores, read_bytes, reason};
use crate::packages::{KnownVersions, Packages};
use crate::project_files::ProjectFilesCache;
use agentlang::EntryKind;
use cache::Cache;
use core_ir::Code;
use diagnostics::{FileId, Sources, Span, has_errors};
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Outline, Project, Recognized, Unit, UnitKind};
use lint::{Config, Language, Outcome, ProjectCode, Report, is_test, lint_among, lint_programs};
use project_context::ProjectContexts;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes what earlier runs kept, of all settings.
pub fn clear_cache() {
    Cache::clear();
}

/// Inputs of lint besides the file itself.
#[derive(Clone, Copy, Debug)]
pub struct LintSources {
    /// True if the code and the packages around a file are read.
    pub surroundings: bool,
    /// True if results of earlier runs are used and kept.
    pub cache: bool,
}

/// Rules, levels and surroundings with which files are linted.
pub struct Linter {
    wanted: LintSelection,
    cache: Cache,
    /// Code of the projects; `None` if it is not read.
    around: Option<ProjectContexts>,
    /// Modules that Python modules may import.
    neighbors: ProjectFilesCache,
    /// The versions of packages.
    packages: Packages,
}

impl Linter {
    /// With these rules and levels, and what is around the files.
    fn new(wanted: LintSelection, settings: &LintSettings, sources: LintSources) -> Linter {
        Linter {
            cache: Cache::open(&wanted.key(), !sources.cache),
            around: sources.surroundings.then(ProjectContexts::default),
            neighbors: ProjectFilesCache::default(),
            packages: Packages::new(settings.versions(), sources.surroundings),
            wanted,
        }
    }

    /// Creates a linter with the settings of a folder and without a cache.
    ///
    /// # Errors
    /// Reason why the settings cannot be used.
    pub fn of_settings(settings: &LintSettings, dir: &Path) -> Result<Linter, String> {
        let sources = LintSources { surroundings: true, cache: false };
        Ok(Linter::new(LintSelection::of_settings(settings, dir)?, settings, sources))
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
            lint_among(frontends::recognize, &below, FileId(0), bytes, project, &config)
        });
        match (&alone.outcome, &self.around) {
            (Outcome::Checked { findings, .. }, Some(around)) if ProjectCode::concerns(findings) => {
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
    fn module(
        &self,
        path: &Path,
        bytes: &[u8],
        own: String,
        known: &KnownVersions,
        config: &Config,
    ) -> Report {
        let shown = path.display().to_string();
        if self.around.is_none() || !reads_as_agents(&shown, bytes) {
            let alone = |_| Project { versions: known.versions.clone(), ..Project::default() };
            return lint_among(frontends::recognize, &shown, FileId(0), bytes, alone, config);
        }
        let project = self.neighbors.of(path);
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
            lint_among(frontends::recognize, &project.path, FileId(0), bytes, among, config)
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

/// Returns whether a text that cannot be read may be meant to define agents: it has a word of some format.
pub fn speaks_of_agents(text: &str) -> bool {
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

/// Returns whether a file is a program in a language of Entail, by its name.
pub fn is_program(path: &str) -> bool {
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
    let (language, mut findings, units) = match Kind::of(path) {
        Kind::Lam => {
            let parsed = agentlang::calculus::compile(id, &text);
            let all = Span { file: id, start: 0, end: text.len() as u32 };
            let code = parsed.code.filter(|_| !has_errors(&parsed.diagnostics));
            (Language::Lam, parsed.diagnostics, code.map(|c| unit("main", c, all)).into_iter().collect())
        }
        _ => {
            let (module, found) = agentlang::check_files(id, &text, &mut Imports::new(&mut sources, id));
            let mut units = Vec::new();
            if let Some(module) = &module {
                let entries = module.entries().iter();
                for entry in entries.filter(|e| e.kind == EntryKind::Pipeline && e.span.file == id) {
                    units.extend(module.lower(entry).ok().map(|code| unit(&entry.name, code, entry.span)));
                }
            }
            (Language::Agent, found, units)
        }
    };
    findings.extend(lint_programs(language, units, config));
    // Findings in an imported file belong to that file.
    findings.retain(|d| d.span.is_none_or(|s| s.file == id));
    for d in &mut findings {
        d.remarks.retain(|r| r.span.file == id);
        d.framework = Some(language.name());
    }
    config.filter(&mut findings);
    Report {
        text: Some(text),
        outcome: Outcome::Checked {
            framework: language.name(),
            units: 1,
            findings,
            silenced: 0,
            test: is_test(path),
        },
    }
}

/// Returns true if a configuration names Python modules, which are compiled with it. Only JSON does.
fn names_modules(path: &str, bytes: &[u8]) -> bool {
    let limits = Limits::default();
    path.ends_with(".json")
        && std::str::from_utf8(bytes).is_ok_and(|t| t.contains("\"graphs\""))
        && decode(FileId(0), bytes, &limits).is_ok_and(|text| {
            let file = File::read(FileId(0), path, &text, &limits);
            matches!(frontends::recognize(&file), Recognized::Frontend(f) if f.names_modules())
        })
}

/// Returns true if a front end recognizes a module, or if it uses a framework. Of other modules the project
/// is not read.
fn reads_as_agents(path: &str, bytes: &[u8]) -> bool {
    let limits = Limits::default();
    decode(FileId(0), bytes, &limits).is_ok_and(|text| {
        let file = File::read(FileId(0), path, &text, &limits);
        matches!(frontends::recognize(&file), Recognized::Frontend(_)) || lint::uses_framework(&file)
    })
}

/// The report in the light of the code around the file.
fn judged(mut report: Report, found: &project_context::ProjectContext, config: &Config) -> Report {
    if let (Outcome::Checked { findings, .. }, Some(code)) = (&mut report.outcome, found.code()) {
        code.judge(&found.path, findings);
        findings.retain(|d| config.wants(d));
    }
    report
}

/// Hidden folders in which clients keep their lists of MCP servers; other hidden folders are skipped.
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

/// Returns true if a file of a hidden folder is not such a list.
fn is_of_an_editor(path: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next().unwrap_or(path);
    let listed = name.contains("mcp") || name == "settings.json";
    !listed && parts.any(|folder| HIDDEN.contains(&folder))
}

/// Lists the file itself (named; `-` is standard input), or the programs, the YAML, JSON and, if wanted,
/// Python files in a directory, in a stable order. Each comes with whether it is named.
///
/// # Errors
/// The path can't be read.
pub fn files_of(path: &Path, python: bool) -> Result<Vec<(PathBuf, bool)>, SettingsError> {
    if path == Path::new("-") {
        return Ok(vec![(path.to_path_buf(), true)]);
    }
    let metadata = std::fs::metadata(path).map_err(|e| SettingsError::unreadable(path, &e))?;
    if !metadata.is_dir() {
        return Ok(vec![(path.to_path_buf(), true)]);
    }
    let wanted = |p: &str| is_program(p) || File::is_read(p) && (python || !File::is_python(p));
    // Folders above the directory say nothing about it.
    let above = path.display().to_string().len();
    let below = |p: &str| !is_of_an_editor(p.get(above..).unwrap_or(p));
    let files = files_and_hidden(path, |name| HIDDEN.contains(&name), |p| wanted(p) && below(p));
    Ok(files.into_iter().map(|p| (p, false)).collect())
}

/// Lints the files on all cores; the reports, or the reasons why files can't be read, are in the order of the
/// files.
pub fn lint_all(files: &[(PathBuf, bool)], linter: &Linter) -> Vec<Result<Report, String>> {
    on_all_cores(files, |(path, _)| {
        let shown = path.display().to_string();
        match read_bytes(&shown) {
            Ok(bytes) => Ok(linter.lint(path, &bytes)),
            Err(e) => Err(reason(&e)),
        }
    })
}
