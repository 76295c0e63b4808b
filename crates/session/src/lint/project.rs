//! Linting with the settings of a project.

use super::program_checks::{findings, unready};
use super::{
    Baseline, LintOptions, LintSelection, LintSources, Linter, files_of, is_program, lint_all,
    speaks_of_agents,
};
use crate::error::SettingsError;
use crate::load;
use crate::preflight::Preflight;
use crate::settings::Settings;
use diagnostics::{Diagnostic, Sources, has_errors};
use lint::{Outcome, Report};
use std::path::{Path, PathBuf};

/// A linter with the settings of a project and the options of a driver.
pub struct ProjectLint<'a> {
    linter: Linter,
    options: LintOptions<'a>,
    baseline: Option<PathBuf>,
    loading: load::Options,
    /// Under the policy file that the driver names.
    policy: Option<load::Options>,
    preflight: Preflight,
}

impl<'a> ProjectLint<'a> {
    /// With settings, options, and perhaps a policy file whose refusals are findings.
    ///
    /// # Errors
    /// A rule or a glob of the settings or options is invalid.
    pub fn new(
        settings: &Settings,
        options: LintOptions<'a>,
        policy: Option<&Path>,
        sources: LintSources,
    ) -> Result<ProjectLint<'a>, SettingsError> {
        let wanted = LintSelection::new(&settings.lint, &settings.dir, options)?;
        Ok(ProjectLint {
            baseline: wanted.baseline.clone(),
            linter: Linter::new(wanted, &settings.lint, sources),
            options,
            loading: settings.loading(policy),
            policy: policy.map(|path| settings.loading(Some(path))),
            preflight: Preflight::of(settings),
        })
    }

    /// The linter of single files.
    pub fn linter(&self) -> &Linter {
        &self.linter
    }

    /// The file of known findings.
    pub fn baseline(&self) -> Option<&Path> {
        self.baseline.as_deref()
    }

    /// Lints the files on all cores and keeps the results for later runs. The reports are in the order of the
    /// files.
    pub fn reports(&self, files: &[(PathBuf, bool)]) -> Vec<Result<Report, String>> {
        let reports = lint_all(files, &self.linter);
        self.linter.cache.save();
        reports
    }

    /// Adds what keeps a program from running, and the flows that the policy refuses.
    ///
    /// # Errors
    /// The policy is wrong; the findings say how.
    pub fn complete(
        &self,
        sources: &mut Sources,
        path: &str,
        found: &mut Vec<Diagnostic>,
    ) -> Result<(), Vec<Diagnostic>> {
        if is_program(path) && !has_errors(found) {
            found.extend(unready(sources, path, &self.loading, self.options, &self.preflight));
        }
        if let Some(loading) = &self.policy {
            for d in findings(sources, path, loading, self.options)? {
                if !found.contains(&d) {
                    found.push(d);
                }
            }
        }
        Ok(())
    }

    /// Lints files and directories: the findings of each file that are not in the baseline, with their
    /// sources.
    ///
    /// # Errors
    /// A path that is named, or the baseline, can't be read.
    pub fn run(&self, paths: &[PathBuf]) -> Result<Vec<(Sources, Vec<Diagnostic>)>, SettingsError> {
        let mut files = Vec::new();
        for path in paths {
            files.extend(files_of(path, true)?);
        }
        let known = match self.baseline() {
            None => None,
            Some(path) => Some(Baseline::read(path).map_err(|why| {
                SettingsError::new(why).with_help(Some("`--write-baseline` makes one".into()))
            })?),
        };
        let mut out = Vec::new();
        for ((path, named), report) in files.iter().zip(self.reports(&files)) {
            let shown = path.display().to_string();
            let report = match report {
                Ok(report) => report,
                Err(why) if *named => {
                    return Err(SettingsError::new(format!("cannot read `{shown}`: {why}")));
                }
                Err(_) => continue,
            };
            let mut sources = Sources::new();
            sources.add(&*shown, report.text.clone().unwrap_or_else(|| "".into()));
            let mut found = match report.outcome {
                Outcome::Skipped(_) => continue,
                Outcome::Unreadable(_)
                    if !named && report.text.as_deref().is_some_and(|t| !speaks_of_agents(t)) =>
                {
                    continue;
                }
                Outcome::Unreadable(found) => found,
                Outcome::Checked { mut findings, .. } => {
                    self.complete(&mut sources, &shown, &mut findings).map_err(|wrong| {
                        SettingsError::new(wrong.first().map_or("the policy is wrong", |d| &d.message))
                    })?;
                    findings
                }
            };
            if let Some(known) = &known {
                known.take_out(&shown, &sources, &mut found);
            }
            out.push((sources, found));
        }
        Ok(out)
    }
}
