//! Where journals are.

use super::db::Sqlite;
use super::{Journal, JournalError};
use crate::PostgresServer;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a journal is.
///
/// # Examples
/// ```
/// use runtime::JournalPlace;
/// let place = JournalPlace::named(".entail".as_ref(), None).unwrap();
/// assert_eq!(place.to_string(), ".entail/journal.db");
/// ```
#[derive(Clone, Debug)]
pub enum JournalPlace {
    /// The file of a directory, which is made with the journal.
    Directory(PathBuf),
    /// A file, such as a recording.
    File(PathBuf),
    /// A Postgres server, for the processes of several hosts.
    Server(PostgresServer),
}

impl JournalPlace {
    /// The journal of a directory, or on a Postgres server if `place` is an address. The password is that of
    /// the environment, if there is one.
    ///
    /// # Errors
    /// The address is none, or contains a password, which all processes of this machine could read.
    pub fn named(place: &Path, password: Option<&str>) -> Result<JournalPlace, JournalError> {
        let address = place.to_str().filter(|text| is_address(text));
        let Some(address) = address else { return Ok(JournalPlace::Directory(place.to_path_buf())) };
        if PostgresServer::shows_password(address) {
            let what = "the address of the journal has a password, which other processes can read";
            return Err(JournalError::new(what).with_help("leave it out, and set `PGPASSWORD` instead"));
        }
        let server = PostgresServer::at(address, password).map_err(|why| match why.split_once(" (help: ") {
            Some((what, help)) => JournalError::new(what).with_help(help.trim_end_matches(')')),
            None => JournalError::new(why),
        });
        server.map(JournalPlace::Server)
    }

    /// The place, or the file if it is one: for reading what is there.
    #[must_use]
    pub fn or_file(self) -> JournalPlace {
        match self {
            JournalPlace::Directory(path) if path.is_file() => JournalPlace::File(path),
            place => place,
        }
    }

    pub(super) fn open(&self) -> Result<Journal, JournalError> {
        match self {
            JournalPlace::Directory(dir) => Ok(Journal::of(Sqlite::open(&made(dir)?)?)),
            JournalPlace::File(file) => Ok(Journal::of(Sqlite::open(file)?)),
            #[cfg(feature = "postgres")]
            JournalPlace::Server(server) => Ok(Journal::of(super::db::Postgres::open(server)?)),
            #[cfg(not(feature = "postgres"))]
            JournalPlace::Server(server) => server.absent(),
        }
    }

    pub(super) fn existing(&self) -> Result<Journal, JournalError> {
        match self {
            JournalPlace::Directory(dir) => Ok(Journal::of(Sqlite::existing(&journal_file(dir))?)),
            JournalPlace::File(file) => Ok(Journal::of(Sqlite::named(file)?)),
            #[cfg(feature = "postgres")]
            JournalPlace::Server(server) => Ok(Journal::of(super::db::Postgres::existing(server)?)),
            #[cfg(not(feature = "postgres"))]
            JournalPlace::Server(server) => server.absent(),
        }
    }
}

impl fmt::Display for JournalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalPlace::Directory(dir) => journal_file(dir).display().fmt(f),
            JournalPlace::File(file) => file.display().fmt(f),
            JournalPlace::Server(server) => server.fmt(f),
        }
    }
}

impl From<&Path> for JournalPlace {
    fn from(file: &Path) -> JournalPlace {
        JournalPlace::File(file.to_path_buf())
    }
}

impl From<PathBuf> for JournalPlace {
    fn from(file: PathBuf) -> JournalPlace {
        JournalPlace::File(file)
    }
}

impl From<&PathBuf> for JournalPlace {
    fn from(file: &PathBuf) -> JournalPlace {
        JournalPlace::File(file.clone())
    }
}

impl From<&JournalPlace> for JournalPlace {
    fn from(place: &JournalPlace) -> JournalPlace {
        place.clone()
    }
}

/// Returns true if a text is meant as the address of a Postgres server.
fn is_address(text: &str) -> bool {
    ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme))
}

/// The journal in a directory.
pub fn journal_file(dir: &Path) -> PathBuf {
    dir.join("journal.db")
}

/// The file of the journal in a directory, which is made if it is missing.
fn made(dir: &Path) -> Result<PathBuf, JournalError> {
    match std::fs::create_dir_all(dir) {
        Ok(()) => Ok(journal_file(dir)),
        Err(_) if dir.exists() && !dir.is_dir() => {
            let what = format!("`{}` is a file, and a journal is in a directory", dir.display());
            Err(JournalError::new(what).with_help(
                "name a directory, which need not be there yet; a single run in a file is `--record FILE`, and `--replay FILE` repeats it",
            ))
        }
        Err(e) => {
            let why = match e.kind() {
                std::io::ErrorKind::PermissionDenied => "permission denied".into(),
                _ => e.to_string(),
            };
            Err(JournalError::new(format!("cannot make the directory `{}`: {why}", dir.display())))
        }
    }
}
