//! Modules of Python whose functions are tools of a program: `use python "tools.py";`.
//!
//! Entry point: [`PythonFile::read`].
//!
//! Invariant: nothing is run. Only files of the project of the module are read.

use crate::load::{Problem, read_text_and_bytes, reason};
use crate::project_files::root_of;
use agentlang::{NotImported, WithheldFunction};
use diagnostics::Sources;
use frontends::{Declared, ToolModule};
use runtime::{ModulePin, file_hash};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A module with the modules of its project that it imports.
#[derive(Clone, Debug)]
pub struct PythonFile {
    /// The declarations of its functions, as a file of the language.
    pub text: Arc<str>,
    /// The functions that are no tools.
    pub withheld: Vec<WithheldFunction>,
    /// The tools and types.
    pub declared: Vec<Declared>,
    /// The files, each with its hash.
    files: Vec<(PathBuf, String)>,
}

impl PythonFile {
    /// Reads a module, and what it imports. `path` is that of the module for whoever calls it.
    ///
    /// # Errors
    /// There is no such file, or it is not valid Python.
    pub fn read(sources: &mut Sources, path: &Path) -> Result<PythonFile, NotImported> {
        let because = |why: String, help: &str| NotImported { why, help: help.into() };
        let place = path
            .canonicalize()
            .map_err(|e| because(reason(&e), "the path is relative to the folder of this file"))?;
        if path.extension().is_none_or(|e| e != "py") {
            return Err(because("it is no module of Python".into(), "name a file that ends in `.py`"));
        }
        let shown = path.display().to_string();
        let (file, text, bytes) =
            read_text_and_bytes(sources, &shown).map_err(|p| because(message(p), "repair the file"))?;
        let mut files = vec![(place.clone(), file_hash(&bytes))];
        let root = root_of(place.parent().unwrap_or(Path::new("/"))).to_path_buf();
        let here = std::env::current_dir().unwrap_or_default();
        let (modules, main) = frontends::with_imports(file, &place.display().to_string(), text, |path| {
            let place =
                Path::new(path).canonicalize().ok().filter(|p| p.starts_with(&root) && p.is_file())?;
            let shown = place.strip_prefix(&here).unwrap_or(&place).display().to_string();
            let (file, text, bytes) = read_text_and_bytes(sources, &shown).ok()?;
            files.push((place.clone(), file_hash(&bytes)));
            Some((file, text))
        });
        let ToolModule { text, withheld, declared } = frontends::tool_module(&modules, main, &shown)
            .map_err(|why| because(why, "repair the module"))?;
        let withheld = withheld.into_iter().map(|(name, reason)| WithheldFunction {
            name,
            why: reason.why,
            help: reason.help,
            at: reason.at,
        });
        Ok(PythonFile { text: text.into(), withheld: withheld.collect(), declared, files })
    }

    /// The path of the module relative to the folder of a lock, and what the lock has of it.
    pub fn pin(&self, folder: &Path) -> (String, ModulePin) {
        let folder = folder.canonicalize().or_else(|_| std::env::current_dir()).unwrap_or_default();
        let files: Vec<(String, String)> =
            self.files.iter().map(|(place, hash)| (relative(place, &folder), hash.clone())).collect();
        let declared = self.declared.iter().map(|d| (d.name.clone(), d.signature.clone())).collect();
        let path = files.first().map_or(String::new(), |(path, _)| path.clone());
        (path, ModulePin { files: files.into_iter().collect(), declared })
    }
}

fn message(problem: Problem) -> String {
    match problem {
        Problem::Unreadable(message, _) => message,
        Problem::Wrong(found) | Problem::Policy(found) => {
            found.first().map_or_else(|| "it is not text".into(), |d| d.message.clone())
        }
    }
}

/// A path relative to a folder, with `/`. Both are absolute.
fn relative(path: &Path, folder: &Path) -> String {
    let parts = |p: &Path| -> Vec<String> {
        let part = |c: Component<'_>| match c {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        };
        p.components().filter_map(part).collect()
    };
    let (path, folder) = (parts(path), parts(folder));
    let shared = path.iter().zip(&folder).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", folder.len() - shared);
    up.chain(path[shared..].iter().map(String::as_str)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_from_the_lock_to_the_module() {
        let check = |path: &str, folder: &str, expected: &str| {
            assert_eq!(relative(Path::new(path), Path::new(folder)), expected);
        };
        check("/a/b/tools.py", "/a/b", "tools.py");
        check("/a/b/c/tools.py", "/a/b", "c/tools.py");
        check("/a/tools.py", "/a/b/c", "../../tools.py");
        check("/a/d/tools.py", "/a/b", "../d/tools.py");
    }

    #[test]
    fn the_lock_has_what_a_module_imports_in_its_project() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("pyproject.toml", "");
        write(
            "app/tools.py",
            "import json\nimport parts.models as m\nfrom lib import helper\ndef f(x: m.A): ...\n",
        );
        write("parts/__init__.py", "");
        write("parts/models.py", "from typing import TypedDict\nclass A(TypedDict):\n    x: int\n");
        write("src/lib/helper.py", "import tools\n");
        write("other.py", "");
        let file = PythonFile::read(&mut Sources::new(), &dir.path().join("app/tools.py")).unwrap();
        let (path, pin) = file.pin(&dir.path().join("app"));
        assert_eq!(path, "tools.py");
        let files: Vec<&str> = pin.files.keys().map(String::as_str).collect();
        assert_eq!(files, ["../parts/__init__.py", "../parts/models.py", "../src/lib/helper.py", "tools.py"]);
        assert_eq!(pin.declared["f"], "(x: A) -> Any");
        assert_eq!(pin.declared["A"], "Obj{x: Int}");
        assert_eq!(pin.verify(&dir.path().join("app")), Ok(()));
        write("parts/models.py", "");
        assert_eq!(pin.verify(&dir.path().join("app")), Err("../parts/models.py".into()));
    }
}
