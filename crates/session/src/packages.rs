//! The versions of packages around files: what lock files and requirements say, from a file's folder upwards
//! to the root of its project.
//!
//! Entry points: [`versions`] for one file, [`Packages::of`] for many. What is nearer to the file counts
//! more.

use crate::load::read_bytes;
use crate::project_files::MAX_PARENTS;
use frontend_kit::Versions;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The lists of requirements in a folder beside `requirements.txt`, and those in a folder `requirements`, by
/// name.
fn requirements(folder: &Path) -> Vec<String> {
    // A folder that can't be read says nothing.
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    };
    let beside = names(folder).into_iter().filter(|n| Versions::is_requirements(n));
    let below = names(&folder.join("requirements")).into_iter().filter(|n| n.ends_with(".txt"));
    beside.chain(below.map(|n| format!("requirements/{n}"))).collect()
}

/// The versions of packages around a file.
pub fn versions(file: &Path) -> Versions {
    Packages::new(Versions::default(), true).of(file).versions.clone()
}

/// The versions of packages around many files; each folder is read once.
pub struct Packages {
    /// Versions stated in the settings.
    stated: Versions,
    /// True if files of packages are read.
    reads: bool,
    /// Versions stated by the files of a folder, if any.
    folders: Mutex<HashMap<PathBuf, Option<Arc<Versions>>>>,
    /// Versions that apply in a folder.
    around: Mutex<HashMap<PathBuf, Arc<KnownVersions>>>,
}

/// Versions known around a file.
#[derive(Default)]
pub struct KnownVersions {
    /// The versions.
    pub versions: Versions,
    /// Key of the versions in the cache; empty if none is known.
    pub key: Vec<u8>,
}

impl Packages {
    /// Creates the versions of packages. Stated versions take precedence over those read from files.
    pub fn new(stated: Versions, reads: bool) -> Packages {
        Packages { stated, reads, folders: Mutex::default(), around: Mutex::default() }
    }

    /// The versions around a file.
    pub fn of(&self, file: &Path) -> Arc<KnownVersions> {
        let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        let folder = absolute.parent().unwrap_or(Path::new("/"));
        // After a panic elsewhere nothing is shared; it is raised there.
        if let Some(known) = self.around.lock().ok().and_then(|all| all.get(folder).cloned()) {
            return known;
        }
        let mut versions = self.stated.clone();
        for folder in folder.ancestors().take(if self.reads { MAX_PARENTS } else { 0 }) {
            if let Some(more) = self.said_in(folder) {
                versions.extend(&more);
            }
            if folder.join(".git").exists() {
                break;
            }
        }
        let mut hash = Sha256::new();
        let mut any = false;
        for (package, version) in versions.all() {
            any = true;
            hash.update(format!("{package} {version}\n"));
        }
        let key = if any { hash.finalize().to_vec() } else { Vec::new() };
        let known = Arc::new(KnownVersions { versions, key });
        if let Ok(mut all) = self.around.lock() {
            all.insert(folder.to_path_buf(), known.clone());
        }
        known
    }

    fn said_in(&self, folder: &Path) -> Option<Arc<Versions>> {
        if let Some(known) = self.folders.lock().ok().and_then(|all| all.get(folder).cloned()) {
            return known;
        }
        let mut said: Option<Versions> = None;
        for name in Versions::FILES.iter().map(|n| n.to_string()).chain(requirements(folder)) {
            let path = folder.join(name).display().to_string();
            if let Ok(bytes) = read_bytes(&path) {
                said.get_or_insert_default().read(&path, &Versions::text(&bytes));
            }
        }
        let said = said.map(Arc::new);
        if let Ok(mut all) = self.folders.lock() {
            all.insert(folder.to_path_buf(), said.clone());
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_in_utf_16_and_under_a_misspelled_name_say_versions() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        let wide: Vec<u8> =
            "\u{feff}google-adk==1.0.0\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(dir.path().join("requirements.txt"), wide).unwrap();
        std::fs::write(dir.path().join("requirments.txt"), "langchain==0.3.27\n").unwrap();
        let found = versions(&dir.path().join("main.py"));
        assert_eq!((found.exact("google-adk"), found.exact("langchain")), (Some("1.0.0"), Some("0.3.27")));
    }

    #[test]
    fn all_lists_of_requirements_say_versions() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("app");
        std::fs::create_dir_all(folder.join("requirements")).unwrap();
        std::fs::create_dir(dir.path().join(".git")).unwrap();
        for (name, text) in [
            ("app/requirements-dev.txt", "crewai==1.6.1\nlanggraph==0.1\n"),
            ("app/requirements/base.txt", "openai-agents==0.2.1\n"),
            ("app/notes.txt", "google-adk==9\n"),
            ("app/requirements.txt", "langgraph==0.6.7\n"),
            ("setup.cfg", "[options]\ninstall_requires =\n    langchain==0.3.1\n"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let found = versions(&folder.join("main.py"));
        for (package, version) in [
            ("crewai", Some("1.6.1")),
            ("openai-agents", Some("0.2.1")),
            ("google-adk", None),
            ("langgraph", Some("0.6.7")),
            ("langchain", Some("0.3.1")),
        ] {
            assert_eq!(found.exact(package), version, "{package}");
        }
    }
}
