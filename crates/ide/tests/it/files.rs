//! A project of a few files for the tests.

use ide::{Host, Options, Workspace};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files of a project beside its main program: path and text.
struct Files(&'static [(&'static str, &'static str)]);

impl Host for Files {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        self.read(path).map(|_| path.to_path_buf())
    }

    fn read(&self, place: &Path) -> Option<Arc<str>> {
        self.0.iter().find(|(path, _)| Path::new(path) == place).map(|(_, text)| Arc::from(*text))
    }

    fn options(&self, _: &Path) -> Result<Options, String> {
        Ok(Options::default())
    }

    fn units(&self, _: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
        Err("not here".into())
    }

    fn files(&self, _: &Path) -> Vec<(String, Arc<str>)> {
        self.0.iter().map(|(path, text)| (path.to_string(), Arc::from(*text))).collect()
    }
}

/// A workspace with these files, in which `main.agent` is open.
pub(crate) fn workspace(files: &'static [(&'static str, &'static str)], main: &str) -> Workspace {
    let mut workspace = Workspace::new(Box::new(Files(files)));
    workspace.open("main.agent", main.into());
    workspace
}

/// The offset of the nth occurrence of a text, behind its first character.
pub(crate) fn at(text: &str, of: &str, nth: usize) -> usize {
    text.match_indices(of).nth(nth).unwrap().0 + 1
}
