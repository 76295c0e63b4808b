//! Labels of what tools have written, kept from one session to the next.
//!
//! A row says that something was written to a server under a key at a label. Rows are only added: a label of
//! a key never falls. Several guards may use one file at a time.
//!
//! A server is known by what starts it or where it is. So one that two clients list has one memory, whatever
//! they call it.

use ::guard::{KeptLabel, Keys};
use core_ir::{Data, Name};
use rusqlite::{Connection, OpenFlags, params};
use serde_json::Value;
use session::server_list::{Launch, ListedServer};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most rows of a server. What is written beyond them counts as written under all keys.
const MAX_ROWS: i64 = 100_000;
/// Time to wait for another guard that writes.
const BUSY: Duration = Duration::from_secs(5);
/// The key of what concerns all keys; others begin with `=`.
const ALL: &str = "*";

/// A file of labels.
#[derive(Debug)]
pub struct LabelStore {
    db: Mutex<Connection>,
}

impl LabelStore {
    /// Opens a file, which is made if there is none.
    ///
    /// # Errors
    /// It can't be opened, or is something else, in words for people.
    pub fn open(path: &Path) -> Result<LabelStore, String> {
        let wrong = |why: String| format!("cannot keep labels in `{}`: {why}", path.display());
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|e| wrong(session::load::reason(&e)))?;
        }
        // No name of a file is taken for an address.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let db = Connection::open_with_flags(path, flags)?;
            db.busy_timeout(BUSY)?;
            db.pragma_update(None, "journal_mode", "wal")?;
            db.execute_batch(
                "create table if not exists written (
                    server text not null, key text not null, lattice text not null, label text not null,
                    raised_by text not null, at integer not null,
                    primary key (server, key, lattice, label)) without rowid",
            )?;
            Ok(db)
        };
        let db = open().map_err(|e: rusqlite::Error| wrong(e.to_string()))?;
        Ok(LabelStore { db: Mutex::new(db) })
    }

    /// The file that all sessions of a user share.
    pub fn usual_path(environment: &runtime::Environment) -> Option<PathBuf> {
        let set = |name: &str| environment.get(name).map(PathBuf::from);
        let base = set("XDG_STATE_HOME").or_else(|| match cfg!(windows) {
            true => set("LOCALAPPDATA"),
            false => set("HOME").map(|home| home.join(".local/state")),
        })?;
        Some(base.join("entail/labels.db"))
    }

    fn db(&self) -> std::sync::MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the label of something that is written.
    pub(super) fn keep(&self, server: &str, keys: &Keys, label: &KeptLabel) -> Result<(), String> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_secs());
        let raised_by: Vec<&str> = label.raised_by.iter().map(|n| &**n).collect();
        let raised_by = Value::from(raised_by).to_string();
        let text = label.label.to_json().to_string();
        let mut db = self.db();
        let mut add = || {
            let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let rows: i64 =
                tx.query_row("select count(*) from written where server = ?1", [server], |row| row.get(0))?;
            for key in rows_of(keys, rows < MAX_ROWS) {
                tx.execute(
                    "insert or ignore into written values (?1, ?2, ?3, ?4, ?5, ?6)",
                    params![
                        server,
                        key,
                        label.lattice,
                        text,
                        raised_by,
                        i64::try_from(at).unwrap_or(i64::MAX)
                    ],
                )?;
            }
            tx.commit()
        };
        add().map_err(|e: rusqlite::Error| e.to_string())
    }

    /// The labels of what was written under these keys.
    pub(super) fn kept(&self, server: &str, keys: &Keys) -> Result<Vec<KeptLabel>, String> {
        let db = self.db();
        let read = || {
            let mut out: Vec<KeptLabel> = Vec::new();
            let mut add = |row: &rusqlite::Row<'_>| {
                let (lattice, label): (String, String) = (row.get(0)?, row.get(1)?);
                let raised_by: String = row.get(2)?;
                let label = serde_json::from_str::<Value>(&label).ok().and_then(|l| Data::from_json(&l).ok());
                let names: Vec<String> = serde_json::from_str(&raised_by).unwrap_or_default();
                let raised_by = names.into_iter().map(Name::from).collect();
                // What can't be read is in no lattice.
                let label = label.unwrap_or(Data::Null);
                if !out.iter().any(|known| known.lattice == lattice && known.label == label) {
                    out.push(KeptLabel { lattice, label, raised_by });
                }
                Ok::<(), rusqlite::Error>(())
            };
            const COLUMNS: &str = "select lattice, label, raised_by from written where server = ?1";
            match keys {
                Keys::All => {
                    let mut all = db.prepare_cached(COLUMNS)?;
                    let mut rows = all.query([server])?;
                    while let Some(row) = rows.next()? {
                        add(row)?;
                    }
                }
                Keys::Some(_) => {
                    let mut one = db.prepare_cached(&format!("{COLUMNS} and key = ?2"))?;
                    for key in rows_of(keys, true).into_iter().chain([ALL.into()]) {
                        let mut rows = one.query([server, &key])?;
                        while let Some(row) = rows.next()? {
                            add(row)?;
                        }
                    }
                }
            }
            Ok(out)
        };
        read().map_err(|e: rusqlite::Error| e.to_string())
    }
}

/// The keys as rows have them.
fn rows_of(keys: &Keys, has_room: bool) -> Vec<String> {
    match keys {
        Keys::Some(keys) if has_room => keys.iter().map(|key| format!("={key}")).collect(),
        _ => vec![ALL.into()],
    }
}

/// Identity of a server: the words that start it, or its address without a query.
pub(super) fn identity(server: &ListedServer) -> String {
    match &server.launch {
        Launch::Process { command, .. } => {
            Value::from_iter(command.iter().map(|w| w.to_string_lossy().into_owned())).to_string()
        }
        Launch::Http { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(text: &str) -> KeptLabel {
        KeptLabel {
            lattice: "two-axis".into(),
            label: Data::list([Data::str(text)]),
            raised_by: vec!["fetch".into()],
        }
    }

    fn some(keys: &[&str]) -> Keys {
        Keys::Some(keys.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn labels_are_kept_by_server_and_key_over_openings() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/labels.db");
        let store = LabelStore::open(&path).unwrap();
        store.keep("a", &some(&["x", "y"]), &label("U")).unwrap();
        store.keep("a", &some(&["x"]), &label("S")).unwrap();
        store.keep("a", &some(&["*"]), &label("U")).unwrap();
        store.keep("b", &Keys::All, &label("U")).unwrap();
        drop(store);
        let (store, other) = (LabelStore::open(&path).unwrap(), LabelStore::open(&path).unwrap());
        other.keep("a", &some(&["z"]), &label("S")).unwrap();
        let at = |server: &str, keys: Keys| {
            let mut found: Vec<String> =
                store.kept(server, &keys).unwrap().iter().map(|k| k.label.to_json().to_string()).collect();
            found.sort();
            found.join(" ")
        };
        assert_eq!(at("a", some(&["x"])), r#"["S"] ["U"]"#);
        assert_eq!(at("a", some(&["y"])), r#"["U"]"#);
        assert_eq!(at("a", some(&["z"])), r#"["S"]"#);
        assert_eq!(at("a", some(&["none"])), "");
        assert_eq!(at("a", Keys::All), r#"["S"] ["U"]"#);
        assert_eq!(at("b", some(&["none"])), r#"["U"]"#);
        assert_eq!(at("c", Keys::All), "");
        assert_eq!(store.kept("a", &some(&["y"])).unwrap()[0].raised_by, [Name::from("fetch")]);
    }

    #[test]
    fn a_file_that_is_something_else_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("labels.db");
        std::fs::write(&path, "this is no database, and it is long enough to be looked at as one").unwrap();
        let why = LabelStore::open(&path).unwrap_err();
        assert!(why.contains("cannot keep labels in"), "{why}");
        assert!(LabelStore::open(dir.path()).is_err());
    }

    #[test]
    fn a_server_is_known_by_what_starts_it() {
        let launch = |url: &str| Launch::Http { url: url.into(), headers: Vec::new() };
        let of = |name: &str, launch: Launch| identity(&ListedServer { name: name.into(), launch });
        assert_eq!(of("a", launch("https://h/mcp?key=1")), of("b", launch("https://h/mcp?key=2")));
        let process = |words: &[&str]| Launch::Process {
            command: words.iter().map(Into::into).collect(),
            env: Vec::new(),
            folder: None,
        };
        assert_ne!(of("a", process(&["x", "y z"])), of("a", process(&["x", "y", "z"])));
    }
}
