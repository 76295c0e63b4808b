//! The files around a file: which project it is of, and what it may import or load there.
//!
//! Entry points: [`ProjectFilesCache::of`] for many files, [`around`] and [`beside`] for one.
//!
//! Invariant: what is taken of a project that is too large to be read whole is what is nearest to the file,
//! not what its names put first.

use crate::load::{Kind, is_installed, read_bytes};
use diagnostics::FileId;
use frontend_kit::doc::{Limits, decode};
use frontend_kit::{File, Modules};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// Modules of Python that are read of a project, and their bytes.
const MAX_MODULES: (usize, u64) = (5_000, 64 << 20);
/// Other files that are read of a project, and their bytes: configurations that code loads are small.
const MAX_OTHER_FILES: (usize, u64) = (600, 4 << 20);
/// Bytes of one module, and of one other file.
const MAX_BYTES: (u64, u64) = (1 << 20, 1 << 18);
/// Maximum numbers of files and folders visited, and of nested folders.
const MAX_ENTRIES: (usize, usize) = (100_000, 16);

/// The modules that a module of Python may import, and the configurations that it may load: those of the
/// project that it is of, as far as it can be told, and otherwise of its folder, at any depth.
pub fn around(main: &Path) -> Vec<String> {
    let absolute = std::path::absolute(main).unwrap_or_else(|_| main.to_path_buf());
    let own = absolute.parent().unwrap_or(Path::new("/"));
    let root = root_of(own);
    // Shown as they would be written beside the main file.
    let shown = |p: &Path| match (p.strip_prefix(own), p.strip_prefix(root)) {
        (Ok(below), _) => main.with_file_name(below),
        (Err(_), Ok(below)) => {
            let up = own.strip_prefix(root).map_or(0, |f| f.components().count());
            let base = main.parent().unwrap_or(Path::new(""));
            let base = if up < base.components().count() { base.ancestors().nth(up) } else { None };
            base.map_or_else(|| p.to_path_buf(), |b| b.join(below))
        }
        _ => p.to_path_buf(),
    };
    project_files(root, File::is_read)
        .paths_near(own)
        .iter()
        .filter(|p| **p != absolute)
        .map(|p| shown(p).display().to_string())
        .collect()
}

/// Number of folders searched upwards for the start of a project, and for what it says of itself.
pub(crate) const MAX_PARENTS: usize = 12;

/// The folder in which the project of a module begins, given the module's own.
pub fn root_of(own: &Path) -> &Path {
    const MARKS: &[&str] =
        &["pyproject.toml", "setup.py", "requirements.txt", "uv.lock", "langgraph.json", ".git"];
    let marked = own.ancestors().take(MAX_PARENTS).find(|f| MARKS.iter().any(|m| f.join(m).exists()));
    let is_package = |folder: &Path| folder.join("__init__.py").exists();
    // A folder without `__init__.py` in a package is a part of it.
    let is_outside = |folder: &&Path| !is_package(folder) && !folder.parent().is_some_and(is_package);
    let package = own.ancestors().take(MAX_PARENTS).find(is_outside);
    marked.or(package).unwrap_or(own)
}

/// The other files of a file's project, programs included, with their texts.
pub fn beside(main: &Path) -> Vec<(String, Arc<str>)> {
    let absolute = std::path::absolute(main).unwrap_or_else(|_| main.to_path_buf());
    let own = absolute.parent().unwrap_or(Path::new("/"));
    let root = root_of(own);
    // Nobody's home directory is a project.
    if root.parent().is_none() || !root.is_dir() {
        return Vec::new();
    }
    let files = project_files(root, |p| File::is_read(p) || Kind::of(p) == Kind::Agent);
    let text = |p: PathBuf| Some((p.display().to_string(), Arc::from(std::fs::read_to_string(&p).ok()?)));
    files.paths_near(own).into_iter().filter(|p| *p != absolute).filter_map(text).collect()
}

/// The files of a project, with their sizes.
#[derive(Default)]
struct FileList(Vec<(PathBuf, u64)>);

/// The files of a project that are wanted, in a stable order.
fn project_files(root: &Path, wanted: impl Fn(&str) -> bool) -> FileList {
    let accepts = |e: &ignore::DirEntry| {
        let name = e.file_name().to_string_lossy();
        e.depth() == 0 || !is_installed(e) && !matches!(&*name, "node_modules" | "venv" | "__pycache__")
    };
    let files = ignore::WalkBuilder::new(root)
        .require_git(false)
        .max_depth(Some(MAX_ENTRIES.1))
        .filter_entry(accepts)
        .sort_by_file_name(Ord::cmp)
        .build()
        .take(MAX_ENTRIES.0)
        .filter_map(Result::ok)
        .filter(|e| wanted(&e.path().display().to_string()))
        .filter_map(|e| {
            let most = if is_module(e.path()) { MAX_BYTES.0 } else { MAX_BYTES.1 };
            let size = e.metadata().ok().filter(|m| m.is_file() && m.len() <= most)?.len();
            Some((e.into_path(), size))
        });
    FileList(files.collect())
}

impl FileList {
    /// Returns the modules, or the other files, limited to those near to a folder; the flag is true if that
    /// is all of them.
    fn near(&self, own: &Path, modules: bool) -> (Vec<usize>, bool) {
        let most = if modules { MAX_MODULES } else { MAX_OTHER_FILES };
        let mut order: Vec<usize> =
            (0..self.0.len()).filter(|i| is_module(&self.0[*i].0) == modules).collect();
        let all = order.len();
        if all <= most.0 && order.iter().map(|i| self.0[*i].1).sum::<u64>() <= most.1 {
            return (order, true);
        }
        // Files in the folder or below come first, then those below its parent, and so on. Among these, the
        // highest and then the smallest come first: configurations are small, recordings of tests are not.
        order.sort_by_cached_key(|i| {
            let (path, size) = &self.0[*i];
            let common = own.components().zip(path.components()).take_while(|(a, b)| a == b).count();
            (Reverse(common), path.components().count(), *size)
        });
        order.truncate(most.0);
        let mut bytes = 0;
        order.retain(|i| {
            let fits = bytes + self.0[*i].1 <= most.1;
            bytes += if fits { self.0[*i].1 } else { 0 };
            fits
        });
        order.sort_unstable();
        (order, false)
    }

    /// The paths of all that are near to a folder.
    fn paths_near(&self, own: &Path) -> Vec<PathBuf> {
        let mut all = self.near(own, true).0;
        all.extend(self.near(own, false).0);
        all.sort_unstable();
        all.into_iter().map(|i| self.0[i].0.clone()).collect()
    }
}

fn is_module(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "py")
}

/// Modules that Python modules may import. Each project is read once, however many of its modules are
/// requested.
#[derive(Default)]
pub struct ProjectFilesCache {
    /// By the folder in which a project begins.
    projects: ByFolder<ProjectReader>,
    /// The modules and the other files that count for a module: by that folder, or by the module's own where
    /// only some are read.
    modules: ByFolder<ModuleGroup>,
    others: ByFolder<ModuleGroup>,
}

/// Values that are made once, by folder.
type ByFolder<T> = Mutex<HashMap<PathBuf, Arc<OnceLock<T>>>>;

fn entry<T>(of: &ByFolder<T>, folder: &Path) -> Arc<OnceLock<T>> {
    // After a panic elsewhere nothing is shared; it is raised there.
    of.lock().map(|mut m| m.entry(folder.to_path_buf()).or_default().clone()).unwrap_or_default()
}

/// A file with a hash of its path and text; `None` if it can't be read.
type HashedFile = Option<(File, [u8; 32])>;

/// The files of a project, each read when it is first wanted.
#[derive(Default)]
struct ProjectReader {
    listed: FileList,
    files: Vec<OnceLock<HashedFile>>,
    /// For Python modules and for other files: true if all of the project count for each module.
    all: [bool; 2],
}

/// Some files of a project, what its modules of Python make, and a hash of their paths and texts.
#[derive(Default)]
struct ModuleGroup {
    files: Vec<File>,
    modules: Option<Arc<Modules>>,
    digest: [u8; 32],
}

/// The project of a module.
pub struct ProjectFiles {
    /// The module's path as the project has it.
    pub path: String,
    modules: Arc<OnceLock<ModuleGroup>>,
    others: Arc<OnceLock<ModuleGroup>>,
}

impl ProjectFilesCache {
    /// The project that a module is of. A file is numbered from 1 on, the module itself is to be 0.
    pub fn of(&self, main: &Path) -> ProjectFiles {
        let absolute = std::path::absolute(main).unwrap_or_else(|_| main.to_path_buf());
        let own = absolute.parent().unwrap_or(Path::new("/"));
        let root = root_of(own);
        let project = entry(&self.projects, root);
        let project = project.get_or_init(|| {
            let listed = project_files(root, File::is_read);
            let files = listed.0.iter().map(|_| OnceLock::new()).collect();
            let all = [true, false].map(|modules| listed.near(root, modules).1);
            ProjectReader { listed, files, all }
        });
        let shared = |of: &ByFolder<ModuleGroup>, modules: bool| {
            let all = project.all[usize::from(!modules)];
            let shared = entry(of, if all { root } else { own });
            shared.get_or_init(|| project.shared(&project.listed.near(own, modules).0, modules));
            shared
        };
        ProjectFiles {
            path: absolute.display().to_string(),
            modules: shared(&self.modules, true),
            others: shared(&self.others, false),
        }
    }
}

impl ProjectReader {
    /// A file with a hash of its path and text; `None` if it can't be read.
    fn file(&self, index: usize) -> Option<&(File, [u8; 32])> {
        let read = || {
            let limits = Limits::default();
            let id = FileId(u32::try_from(index).ok()?.checked_add(1)?);
            let path = self.listed.0.get(index)?.0.display().to_string();
            let text = decode(id, &read_bytes(&path).ok()?, &limits).ok()?;
            let mut hash = Sha256::new();
            for part in [path.as_bytes(), text.as_bytes()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            Some((File::read(id, &path, &text, &limits), hash.finalize().into()))
        };
        self.files.get(index)?.get_or_init(read).as_ref()
    }

    fn shared(&self, indices: &[usize], modules: bool) -> ModuleGroup {
        let mut hash = Sha256::new();
        let mut files = Vec::new();
        for (file, digest) in indices.iter().filter_map(|i| self.file(*i)) {
            hash.update(digest);
            files.push(file.clone());
        }
        let modules = modules.then(|| frontend_kit::modules(&files));
        ModuleGroup { files, modules, digest: hash.finalize().into() }
    }
}

impl ProjectFiles {
    /// The project's other files.
    pub fn others(&self) -> Vec<File> {
        let both = [&self.modules, &self.others].into_iter().filter_map(|s| s.get());
        let mut files: Vec<File> =
            both.flat_map(|s| &s.files).filter(|f| f.path != self.path).cloned().collect();
        files.sort_by_key(|f| f.id);
        files
    }

    /// Returns the project's Python modules.
    pub fn modules(&self) -> Option<Arc<Modules>> {
        self.modules.get().and_then(|s| s.modules.clone())
    }

    /// Digest of all files of the project.
    pub fn digest(&self) -> [u8; 64] {
        let mut out = [0; 64];
        for (part, shared) in out.chunks_mut(32).zip([&self.modules, &self.others]) {
            part.copy_from_slice(&shared.get().map_or([0; 32], |s| s.digest));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(files: impl Iterator<Item = String>) -> FileList {
        FileList(files.map(|p| (PathBuf::from(p), 10)).collect())
    }

    #[test]
    fn a_folder_in_a_package_is_of_its_project() {
        let dir = tempfile::tempdir().unwrap();
        let templates = dir.path().join("app/templates");
        std::fs::create_dir_all(&templates).unwrap();
        assert_eq!(root_of(&templates), templates);
        std::fs::write(dir.path().join("app/__init__.py"), "").unwrap();
        assert_eq!(root_of(&templates), dir.path());
    }

    #[test]
    fn a_module_far_below_is_of_its_project() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("app/agents/writers/images/builders/last");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(dir.path().join("pyproject.toml"), "").unwrap();
        assert_eq!(root_of(&deep), dir.path());
        std::fs::write(dir.path().join("requirements.txt"), "google-adk==1.14.1\n").unwrap();
        let versions = crate::packages::versions(&deep.join("agent.py"));
        assert_eq!(versions.exact("google-adk"), Some("1.14.1"));
    }

    #[test]
    fn a_project_that_can_be_read_is_read_whole() {
        let files = listed((0..MAX_MODULES.0).map(|i| format!("/p/a{i}/m.py")));
        let (near, all) = files.near(Path::new("/p/z"), true);
        assert_eq!((near.len(), all), (MAX_MODULES.0, true));
    }

    #[test]
    fn of_a_larger_project_what_is_near_is_read() {
        let far = (0..MAX_MODULES.0).map(|i| format!("/p/a/{i:05}.py"));
        let configurations = (0..MAX_OTHER_FILES.0).map(|i| format!("/p/b/{i:05}.json"));
        let near = ["/p/z/x/main.py", "/p/z/x/deep/er/m.py", "/p/z/y.py", "/p/z/agents.yaml", "/p/top.py"];
        let files = listed(far.chain(configurations).chain(near.iter().map(|p| p.to_string())));
        let own = Path::new("/p/z/x");
        assert!(!files.near(own, true).1 && !files.near(own, false).1);
        let taken = files.paths_near(own);
        assert_eq!(taken.len(), MAX_MODULES.0 + MAX_OTHER_FILES.0);
        assert!(near.iter().all(|p| taken.contains(&PathBuf::from(p))));
        assert!(taken.is_sorted_by_key(|p| files.0.iter().position(|(q, _)| q == p)));
    }

    #[test]
    fn recordings_beside_configurations_do_not_hide_them() {
        let recorded = (0..20)
            .map(|i| (PathBuf::from(format!("/p/tests/cassettes/{i:02}.yaml")), MAX_OTHER_FILES.1 / 10));
        let loaded = ["agents", "tasks"].map(|n| (PathBuf::from(format!("/p/tests/config/{n}.yaml")), 2_000));
        let files = FileList(recorded.chain(loaded.clone()).collect());
        let taken = files.paths_near(Path::new("/p/tests"));
        assert!(loaded.iter().all(|(p, _)| taken.contains(p)), "{taken:?}");
        assert_eq!(taken.len(), 2 + 9);
    }

    #[test]
    fn of_many_bytes_what_is_near_is_read() {
        let large = (0..20).map(|i| (PathBuf::from(format!("/p/a/{i:02}.yaml")), MAX_OTHER_FILES.1 / 10));
        let near = [(PathBuf::from("/p/z/agents.yaml"), 10)];
        let files = FileList(large.chain(near).collect());
        let taken = files.paths_near(Path::new("/p/z"));
        assert!(taken.len() < 12 && taken.contains(&PathBuf::from("/p/z/agents.yaml")), "{taken:?}");
    }
}
