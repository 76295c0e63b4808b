//! Chores of the repository: `cargo xtask tidy`, `cargo xtask generate`.
//!
//! Entry points: [`tidy::check`] reads the repository and returns what is untidy; [`generate::pages`] returns
//! the parts of the book that are computed from code and pages. Both are tests of this package as well.
//!
//! Invariant: nothing here depends on another crate of the workspace. The checks read text, so they run in
//! seconds and keep working while crates are moved.

pub mod generate;
pub mod markdown;
pub mod rust;
pub mod scaffold;
pub mod tidy;
pub mod words;

use std::path::{Path, PathBuf};

/// Untidy places that are admitted for now: check, file stem or `*`, greatest number of places, reason.
pub const EXCEPTIONS: &str = include_str!("../exceptions.tsv");

/// Root folder of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// One text file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Path from the root, with `/` between its parts.
    pub path: String,
    /// Content.
    pub text: String,
}

impl File {
    /// Creates a file from its path and content.
    pub fn new(path: &str, text: &str) -> Self {
        File { path: path.into(), text: text.into() }
    }
}

/// Tells whether a file is read: pages, sources, manifests, examples, data of tables, and the parts of the
/// suite that the support matrix lists.
fn is_read(path: &Path) -> bool {
    let extension = path.extension().map(|e| e.to_string_lossy().into_owned()).unwrap_or_default();
    let is_in = |folder: &str| path.parent().is_some_and(|p| p.to_string_lossy().contains(folder));
    match extension.as_str() {
        "md" | "rs" | "toml" => true,
        "py" | "baml" | "tsv" if is_in("examples/programs") => true,
        "tsv" => is_in("runtime/data"),
        "py" if is_in("python/") || is_in("scripts") => true,
        "v" | "ml" => is_in("proofs"),
        "lam" | "agent" => is_in("examples"),
        "py" | "yaml" | "json" => is_in("suite/faithful"),
        "expected" => is_in("suite/frontends"),
        _ => false,
    }
}

/// Reads the text files below the root that some check or page needs, sorted by path. Build output, hidden
/// folders and installed packages are left out.
///
/// # Errors
/// A folder or file that cannot be read.
pub fn read_repository(root: &Path) -> std::io::Result<Vec<File>> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.starts_with('.') || ["target", "node_modules", "corpus"].contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if is_read(&path) {
                let parts = path.strip_prefix(root).unwrap_or(&path).iter();
                let parts: Vec<String> = parts.map(|p| p.to_string_lossy().into_owned()).collect();
                files.push(File { path: parts.join("/"), text: std::fs::read_to_string(&path)? });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}
