//! The code around a configuration: which files of a project may supply what a configuration leaves out.

use super::cache::{Key, key_of};
use crate::load::files_under;
use crate::project_files::MAX_PARENTS;
use lint::ProjectCode;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// A project begins at a directory that has one of these.
const MARKS: &[&str] = &[
    "pyproject.toml",
    "requirements.txt",
    "setup.py",
    "uv.lock",
    "poetry.lock",
    "Pipfile",
    ".git",
    "entail.toml",
];
/// Directories of other people's code.
const FOREIGN: &[&str] = &["node_modules", "site-packages", ".venv", "venv", "__pycache__", ".tox"];

/// Context of a project, once it has been read.
type Project = OnceLock<(ProjectCode, Key)>;

/// Context of configurations: the code of their projects, read once for each project.
#[derive(Default)]
pub struct ProjectContexts {
    roots: Mutex<HashMap<PathBuf, Option<PathBuf>>>,
    projects: Mutex<HashMap<PathBuf, Arc<Project>>>,
}

/// Code of one file's project, with its key in the cache.
pub struct ProjectContext {
    cell: Arc<Project>,
    /// The file's path in the project.
    pub path: String,
}

impl ProjectContext {
    /// The code.
    pub fn code(&self) -> Option<&ProjectCode> {
        self.cell.get().map(|(s, _)| s)
    }

    /// Returns the key of the context in the cache.
    pub fn key(&self) -> Key {
        self.cell.get().map_or_else(Key::default, |(_, k)| *k)
    }
}

impl ProjectContexts {
    /// Returns the code of a file's project; `None` if there is none.
    pub fn of(&self, file: &Path) -> Option<ProjectContext> {
        let (root, path) = self.within(file)?;
        let cell = self.projects.lock().ok()?.entry(root.clone()).or_default().clone();
        let (code, _) = cell.get_or_init(|| read(&root));
        (!code.is_empty()).then(|| ProjectContext { cell: cell.clone(), path })
    }

    /// The path of a file below its project's directory; `None` if it is in none.
    pub fn below(&self, file: &Path) -> Option<String> {
        self.within(file).map(|(_, path)| path)
    }

    fn within(&self, file: &Path) -> Option<(PathBuf, String)> {
        let folder = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let root = self.root(folder)?;
        let whole = std::path::absolute(file).ok()?;
        let path = whole.strip_prefix(&root).unwrap_or(file).display().to_string().replace('\\', "/");
        Some((root, path))
    }

    /// The directory in which a project begins.
    fn root(&self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.roots.lock().ok()?.get(folder) {
            return known.clone();
        }
        // A relative path ends before the directory that the command was given in does.
        let whole = std::path::absolute(folder).ok()?;
        let found = whole.ancestors().take(MAX_PARENTS).find(|d| MARKS.iter().any(|m| d.join(m).exists()));
        // Nobody's home directory is a project.
        let found = found.filter(|d| d.parent().is_some()).map(Path::to_path_buf);
        self.roots.lock().ok()?.insert(folder.to_path_buf(), found.clone());
        found
    }
}

/// Python modules and environment files below a directory, and a key for all of them.
fn read(root: &Path) -> (ProjectCode, Key) {
    let wanted = |path: &str| {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let foreign = path.split(['/', '\\']).any(|p| FOREIGN.contains(&p));
        !foreign && (name.ends_with(".py") || is_environment(name))
    };
    let mut files = files_under(root, wanted);
    // Environment files are hidden, and as a rule ignored by git.
    for name in [".env", ".env.example", ".env.sample", ".env.template"] {
        files.push(root.join(name));
    }
    files.sort();
    files.dedup();
    let mut modules = Vec::new();
    let mut environment = Vec::new();
    let mut parts: Vec<u8> = Vec::new();
    for file in files.iter().take(4 * lint::MAX_MODULES) {
        let Ok(bytes) = std::fs::read(file) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let shown = file.strip_prefix(root).unwrap_or(file).display().to_string().replace('\\', "/");
        parts.extend(key_of(&[shown.as_bytes(), text.as_bytes()]));
        if shown.ends_with(".py") {
            modules.push((shown, Arc::from(text)));
        } else {
            environment.push((shown, Arc::from(text)));
        }
    }
    (ProjectCode::new(modules, environment), key_of(&[&parts]))
}

fn is_environment(name: &str) -> bool {
    name == ".env" || name.starts_with(".env.")
}
