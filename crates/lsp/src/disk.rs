//! Files on the disk, for programs that import them.

use ide::{Host, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most bytes of a file that is imported; the parser refuses more anyway.
const MAX_FILE: u64 = 16 << 20;

/// Returns the canonical path of a file; `None` if it doesn't exist.
pub fn resolve(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// The text of a file that is not too large; `None` if it can't be read.
pub fn read(place: &Path) -> Option<Arc<str>> {
    let small = std::fs::metadata(place).is_ok_and(|m| m.is_file() && m.len() <= MAX_FILE);
    let text = small.then(|| std::fs::read_to_string(place).ok()).flatten();
    text.map(Arc::from)
}

/// The disk alone: no settings, no policy, no configurations of other frameworks.
pub(crate) struct Disk;

impl Host for Disk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        resolve(path)
    }

    fn read(&self, place: &Path) -> Option<Arc<str>> {
        read(place)
    }

    fn options(&self, folder: &Path) -> Result<Options, String> {
        ide::Nothing.options(folder)
    }

    fn units(&self, path: &Path) -> Result<Vec<frontend_kit::Unit>, String> {
        ide::Nothing.units(path)
    }
}
