//! The place beside a journal where a run shows its replies that arrive.
//!
//! Entry points: [`LiveBoard`] of a run that this process executes, and [`LiveBoard::read`].
//!
//! Invariant: it is no part of the journal: no run reads it, no check examines it, and no copy of a run has
//! it. It is gone when the run has ended. What a killed process leaves goes when the run is resumed.
//! Invariant: no run waits for a server because of it. What can't be written is not shown.

use super::JournalPlace;
#[cfg(feature = "postgres")]
use super::db::{LiveRow, Postgres};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Most bytes of the text of a run.
const MAX_BYTES: usize = 4 << 20;

/// The text that a run shows: in a file beside a journal in a directory, or in a row beside one on a server.
#[derive(Debug)]
pub struct LiveBoard(Board);

#[derive(Debug)]
enum Board {
    File(PathBuf),
    #[cfg(feature = "postgres")]
    Row(LiveRow),
}

impl LiveBoard {
    /// The board of a run that this process holds; `None` for a recording.
    pub fn of(place: &JournalPlace, run: &str) -> Option<LiveBoard> {
        Some(LiveBoard(match place {
            JournalPlace::Directory(dir) => {
                let file = file(dir, run)?;
                // A process that was killed may have left it.
                let _ = std::fs::remove_file(&file);
                Board::File(file)
            }
            #[cfg(feature = "postgres")]
            JournalPlace::Server(server) => Board::Row(Postgres::of(server).live_row(run)),
            #[cfg(not(feature = "postgres"))]
            JournalPlace::Server(_) => return None,
            JournalPlace::File(_) => return None,
        }))
    }

    /// Shows a text in place of the one before.
    pub fn show(&self, text: String) {
        if text.len() > MAX_BYTES {
            return self.clear();
        }
        match &self.0 {
            Board::File(file) => drop(replace(file, &text)),
            #[cfg(feature = "postgres")]
            Board::Row(row) => row.show(text),
        }
    }

    /// Shows nothing.
    pub fn clear(&self) {
        match &self.0 {
            Board::File(file) => drop(std::fs::remove_file(file)),
            #[cfg(feature = "postgres")]
            Board::Row(row) => row.clear(),
        }
    }

    /// Shows nothing any more, also if this process ends now.
    pub fn close(self) {
        match self.0 {
            Board::File(file) => drop(std::fs::remove_file(file)),
            #[cfg(feature = "postgres")]
            Board::Row(row) => row.close(),
        }
    }

    /// The text that a run shows. That of a run whose process was killed may still be there, see
    /// [`super::Journal::is_at_work`].
    pub fn read(place: &JournalPlace, run: &str) -> Option<String> {
        match place {
            JournalPlace::Directory(dir) => {
                let file = file(dir, run)?;
                let is_short = std::fs::metadata(&file).ok()?.len() <= MAX_BYTES as u64;
                is_short.then(|| std::fs::read_to_string(file).ok())?
            }
            #[cfg(feature = "postgres")]
            JournalPlace::Server(server) => Postgres::of(server).live_text(run, MAX_BYTES),
            #[cfg(not(feature = "postgres"))]
            JournalPlace::Server(_) => None,
            JournalPlace::File(_) => None,
        }
    }
}

/// The file of a run beside the journal in a directory; `None` for a name that is none.
fn file(dir: &Path, run: &str) -> Option<PathBuf> {
    let is_name = !run.is_empty() && run.bytes().all(|b| b.is_ascii_alphanumeric());
    is_name.then(|| dir.join("live").join(format!("{run}.json")))
}

/// Writes a file so that nobody reads half of it.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(text.as_bytes())?;
    std::fs::rename(new, file)
}
