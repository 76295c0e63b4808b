//! The file that the running code is in.

use std::path::PathBuf;
use std::sync::OnceLock;

/// The file that this code is in, if it is not that of the process.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Names the file that this code is in, where that is not the program of the process: results that another
/// build kept are not used.
pub fn carried_by(file: PathBuf) {
    // It is loaded once.
    let _ = FILE.set(file);
}

/// The file that this code is in.
///
/// # Errors
/// The system doesn't tell which program the process runs.
pub fn own_file() -> std::io::Result<PathBuf> {
    FILE.get().map_or_else(std::env::current_exe, |file| Ok(file.clone()))
}
