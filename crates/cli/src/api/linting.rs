//! Lint as a function.

use super::{Error, Finding};
use session::lint::{LintOptions, LintSources, ProjectLint};
use session::{Settings, SettingsError};
use std::path::{Path, PathBuf};

/// Lints files and directories as `entail lint` does, with the settings of the nearest `entail.toml`: what is
/// wrong, and what could not be decided.
///
/// # Errors
/// A path can't be read, or the settings can't be used.
pub fn lint(paths: &[impl AsRef<Path>]) -> Result<Vec<Finding>, Error> {
    let usage = |e: SettingsError| Error::usage(e.message).with_help(e.help);
    let paths: Vec<PathBuf> = paths.iter().map(|p| p.as_ref().to_path_buf()).collect();
    let settings = Settings::nearest().map_err(usage)?;
    let sources = LintSources { surroundings: true, cache: true };
    let project = ProjectLint::new(&settings, LintOptions::default(), None, sources).map_err(usage)?;
    let linted = project.run(&paths).map_err(usage)?;
    Ok(linted.iter().flat_map(|(sources, found)| found.iter().map(|d| Finding::of(sources, d))).collect())
}
