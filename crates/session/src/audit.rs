//! The audit of files and directories.
//!
//! Entry point: [`of`]. What an audit finds is a matter of the crate `audit`.

pub use ::audit::*;

use crate::error::SettingsError;
use crate::lint::{files_of, speaks_of_agents};
use crate::load::{Kind, read_bytes};
use crate::packages::Packages;
use crate::project_files::around;
use diagnostics::FileId;
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Versions};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Files that are read of a directory, and bytes of one of them.
const MAX_FILES: (usize, usize) = (10_000, 1 << 20);

/// Audits files and directories.
///
/// # Errors
/// A path can't be read, or is a file that is no program of a known kind; the message says why.
pub fn of(paths: &[PathBuf]) -> Result<Audit, SettingsError> {
    with_offers(paths, Offers::new())
}

/// Audits files and directories; these servers of lists were asked what they offer.
///
/// # Errors
/// A path can't be read, or is a file that is no program of a known kind; the message says why.
pub fn with_offers(paths: &[PathBuf], offers: Offers) -> Result<Audit, SettingsError> {
    let mut audit = Audit::with_offers(offers);
    let packages = Packages::new(Versions::default(), true);
    for path in paths {
        let listed = files_of(path, true)?;
        let named = listed.iter().any(|(_, named)| *named);
        let mut all: Vec<PathBuf> = listed.into_iter().map(|(p, _)| p).take(MAX_FILES.0).collect();
        let mains: HashSet<PathBuf> = all.iter().cloned().collect();
        if let ([only], true) = (&all[..], named) {
            // What it imports, and the lists of servers that it names.
            let only = only.clone();
            readable(&only)?;
            all.extend(around(&only).into_iter().map(PathBuf::from));
        }
        let before = (audit.programs.len(), audit.plain_modules);
        let is_named = |path: &PathBuf| named && mains.contains(path);
        let files = all.iter().filter_map(|path| given(path, mains.contains(path), is_named(path))).collect();
        audit.project(files, |path| packages.of(Path::new(path)).versions.clone());
        if named && (audit.programs.len(), audit.plain_modules) == before {
            let shown = path.display();
            let help = match Kind::of(&shown.to_string()) {
                Kind::Config => "programs and lists of servers are recognized by their content",
                _ => "`entail check --show flow FILE` shows what reaches what in such a program",
            };
            let what = format!("`{shown}` is no program of a known framework and no list of servers");
            return Err(SettingsError::new(what).with_help(Some(help.into())));
        }
    }
    Ok(audit)
}

/// Returns an error if a file that is named can't be looked at.
fn readable(path: &Path) -> Result<(), SettingsError> {
    let shown = path.display().to_string();
    let bytes = read_bytes(&shown).map_err(|e| SettingsError::unreadable(path, &e))?;
    let limits = Limits { bytes: MAX_FILES.1, ..Limits::default() };
    match decode(FileId(0), &bytes, &limits) {
        Ok(_) => Ok(()),
        Err(d) => {
            let what = format!("cannot read `{shown}`: {}", d.message);
            Err(SettingsError::new(what).with_help(d.help.first().cloned()))
        }
    }
}

/// A file of a project, unless it is none that is read. One that the user names is read in any case.
fn given(path: &Path, is_main: bool, is_named: bool) -> Option<GivenFile> {
    let shown = path.display().to_string();
    if !File::is_read(&shown) && shown != "-" {
        return None;
    }
    let bytes = read_bytes(&shown).ok()?;
    if bytes.len() > MAX_FILES.1 {
        return None;
    }
    let text = decode(FileId(0), &bytes, &Limits::default()).ok()?;
    // Data in JSON is mostly no configuration; all modules may be imported.
    let is_read = is_named
        || File::is_python(&shown)
        || speaks_of_agents(&text)
        || text.contains("ervers")
        || text.contains("nodes");
    is_read.then_some(GivenFile { path: shown, text, is_main })
}
