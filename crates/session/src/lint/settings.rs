//! Selection of rules and levels: a driver's options over `[lint]` of `entail.toml`.

use crate::error::SettingsError;
use diagnostics::Level;
use frontend_kit::Versions;
use globset::{Glob, GlobSet, GlobSetBuilder};
use lint::{Config, Day};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `[lint]` of `entail.toml`.
///
/// ```toml
/// [lint]
/// ignore = ["L017"]
/// level = "warn"
/// levels = { L004b = "error", L002 = "off" }
/// versions = { crewai = "0.86.0" }
///
/// [[lint.paths]]
/// match = ["legacy/**"]
/// levels = { L001 = "info" }
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LintSettings {
    select: Vec<String>,
    ignore: Vec<String>,
    level: Option<LeastLevel>,
    levels: BTreeMap<String, LevelSetting>,
    paths: Vec<PathSettings>,
    baseline: Option<PathBuf>,
    /// Number of model calls above which L018 reports a run.
    #[serde(rename = "most-model-calls")]
    most_model_calls: Option<u64>,
    /// Largest default of a framework that L017 does not warn of.
    #[serde(rename = "most-default-rounds")]
    most_default_rounds: Option<u64>,
    /// The versions of frameworks, whatever lock files say.
    versions: BTreeMap<String, String>,
}

impl LintSettings {
    /// The versions that are stated.
    pub fn versions(&self) -> Versions {
        let mut out = Versions::default();
        self.versions.iter().for_each(|(package, version)| out.set(package, version));
        out
    }
}

/// `[[lint.paths]]`: what else holds for some files. Of several that match, the later counts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSettings {
    #[serde(rename = "match")]
    globs: Vec<String>,
    #[serde(default)]
    ignore: Vec<String>,
    #[serde(default)]
    levels: BTreeMap<String, LevelSetting>,
}

/// The level that a code is given.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LevelSetting {
    Off,
    Info,
    Warn,
    Error,
}

/// The least serious level that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LeastLevel {
    /// Everything.
    Info,
    /// Findings that could not be decided, warnings and errors.
    Unknown,
    /// Warnings and errors.
    Warn,
    /// Errors.
    Error,
}

/// Options of a driver that lints.
#[derive(Clone, Copy, Debug, Default)]
pub struct LintOptions<'a> {
    /// Only these codes; a prefix selects all codes that begin with it. Empty: those of the settings.
    pub select: &'a [String],
    /// Not these codes, nor those that the settings leave out.
    pub ignore: &'a [String],
    /// The least serious level that is shown, instead of that of the settings.
    pub level: Option<LeastLevel>,
    /// The file of known findings, instead of that of the settings.
    pub baseline: Option<&'a Path>,
}

/// Selection of rules and levels for each file.
pub struct LintSelection {
    base: Config,
    paths: Vec<(GlobSet, Config)>,
    /// Folder that the globs are relative to.
    dir: PathBuf,
    /// The findings that are known already, as a file.
    pub baseline: Option<PathBuf>,
}

impl LintSelection {
    /// Combines the options of a driver with the settings; options count more. Globs are relative to the
    /// folder.
    ///
    /// # Errors
    /// A code is unknown, or a glob is invalid.
    pub fn new(
        settings: &LintSettings,
        dir: &Path,
        options: LintOptions<'_>,
    ) -> Result<LintSelection, SettingsError> {
        let known: Vec<&str> = lint::codes().iter().map(|c| c.code).collect();
        let of_paths = settings.paths.iter().flat_map(|p| p.ignore.iter().chain(p.levels.keys()));
        let named =
            options.select.iter().chain(options.ignore).chain(&settings.select).chain(&settings.ignore);
        for code in named.chain(settings.levels.keys()).chain(of_paths) {
            if !known.iter().any(|c| c.starts_with(&**code)) {
                let near = diagnostics::nearest(code, known.iter().copied());
                let help = near.map(|n| format!("did you mean `{n}`?"));
                return Err(SettingsError::new(format!("unknown rule `{code}`")).with_help(help));
            }
        }
        LintSelection::build(settings, dir, options).map_err(SettingsError::new)
    }

    /// The settings alone, without checking the codes that they name.
    ///
    /// # Errors
    /// A glob is invalid.
    pub fn of_settings(settings: &LintSettings, dir: &Path) -> Result<LintSelection, String> {
        LintSelection::build(settings, dir, LintOptions::default())
    }

    fn build(settings: &LintSettings, dir: &Path, options: LintOptions<'_>) -> Result<LintSelection, String> {
        let LintOptions { select: selected, ignore: ignored, level, baseline } = options;
        let level = match level.or(settings.level).unwrap_or(LeastLevel::Unknown) {
            LeastLevel::Info => Level::Info,
            LeastLevel::Unknown => Level::Unknown,
            LeastLevel::Warn => Level::Warn,
            LeastLevel::Error => Level::Error,
        };
        let select = if selected.is_empty() { settings.select.clone() } else { selected.to_vec() };
        let ignore = settings.ignore.iter().chain(ignored).cloned().collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let today = now.map(|t| Day::of_unix(t.as_secs()));
        let most_model_calls = settings.most_model_calls.or(Some(Config::MAX_MODEL_CALLS));
        let most_default_rounds = settings.most_default_rounds.unwrap_or(Config::MAX_DEFAULT_ROUNDS);
        let levels = Vec::new();
        let mut base = Config { select, ignore, level, levels, most_model_calls, most_default_rounds, today };
        set_levels(&mut base, &settings.levels);
        let mut paths = Vec::new();
        for p in &settings.paths {
            let mut globs = GlobSetBuilder::new();
            for g in &p.globs {
                globs.add(Glob::new(g).map_err(|e| format!("`[[lint.paths]]`: {e}"))?);
            }
            let globs = globs.build().map_err(|e| format!("`[[lint.paths]]`: {e}"))?;
            let mut config = Config { ignore: p.ignore.clone(), ..Config::default() };
            set_levels(&mut config, &p.levels);
            paths.push((globs, config));
        }
        let baseline = baseline.map(Path::to_path_buf).or(settings.baseline.as_ref().map(|p| dir.join(p)));
        Ok(LintSelection { base, paths, dir: dir.to_path_buf(), baseline })
    }

    /// Returns true if all files have the same configuration.
    pub fn is_uniform(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the key of the settings in the name of a cache.
    pub fn key(&self) -> String {
        // The day counts only for files with comments that hold until one.
        format!("{:?} {}", Config { today: None, ..self.base.clone() }, self.is_uniform())
    }

    /// Returns the configuration for a file.
    pub fn config_for(&self, path: &Path) -> Config {
        let mut config = self.base.clone();
        if self.paths.is_empty() {
            return config;
        }
        let dir = if self.dir.as_os_str().is_empty() { Path::new(".") } else { &self.dir };
        let inside = match (path.canonicalize(), dir.canonicalize()) {
            (Ok(path), Ok(dir)) => path.strip_prefix(&dir).map(Path::to_path_buf).ok(),
            _ => None,
        };
        let path = inside.as_deref().unwrap_or(path);
        for (globs, more) in &self.paths {
            if globs.is_match(path) {
                config.ignore.extend(more.ignore.iter().cloned());
                config.levels.extend(more.levels.iter().cloned());
            }
        }
        config
    }
}

fn set_levels(config: &mut Config, levels: &BTreeMap<String, LevelSetting>) {
    for (code, level) in levels {
        let level = match level {
            LevelSetting::Off => {
                config.ignore.push(code.clone());
                continue;
            }
            LevelSetting::Info => Level::Info,
            LevelSetting::Warn => Level::Warn,
            LevelSetting::Error => Level::Error,
        };
        config.levels.push((code.clone(), level));
    }
}
