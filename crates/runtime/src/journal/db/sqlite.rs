//! Journals in an SQLite file.
//!
//! Invariant: a run is held through a file beside the journal, which the system unlocks when its process
//! ends.

use super::super::{JournalError, whole};
use super::{Cell, Cells, Database, DbError, Held, NewRun, Row, RunLock, Statement, Value};
use crate::write_lock::WriteLock;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The version of the tables.
const VERSION: i64 = 2;

/// "ENTL": marks the file as ours.
const APPLICATION: i64 = 0x454e_544c;

const TABLES: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created INTEGER NOT NULL,       -- milliseconds since 1970
        name TEXT NOT NULL,
        program TEXT NOT NULL,          -- as text, without places
        digest TEXT NOT NULL,           -- of program, input and settings
        input TEXT NOT NULL,            -- JSON of the exchange format, or ''
        settings TEXT NOT NULL,         -- JSON
        parent TEXT,                    -- of a fork
        status TEXT NOT NULL,           -- running, done, failed
        outcome TEXT                    -- JSON of the result, or the error
    ) STRICT;
    CREATE TABLE entries (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        step INTEGER NOT NULL,          -- in the order of the answers, from 1
        strand INTEGER NOT NULL,
        number INTEGER NOT NULL,
        request TEXT NOT NULL,          -- JSON, without the conversation
        conversation BLOB,              -- link of its last message, if a model is asked
        response TEXT,                  -- JSON; null while it is under way
        model TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        usd TEXT,
        micros INTEGER NOT NULL,
        checksum BLOB NOT NULL,         -- of all but the run
        PRIMARY KEY (run, strand, number)
    ) STRICT;
    CREATE TABLE messages (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        link BLOB NOT NULL,             -- a hash of the next two
        before BLOB NOT NULL,           -- link of the message before, or zeros
        body TEXT NOT NULL,             -- JSON
        PRIMARY KEY (run, link)
    ) STRICT;
    CREATE INDEX entries_step ON entries (run, step);
";

/// Tables that journals of before may lack.
const MORE_TABLES: &str = "
    CREATE TABLE IF NOT EXISTS approvals (
        run TEXT NOT NULL,
        strand INTEGER NOT NULL,
        number INTEGER NOT NULL,
        token TEXT NOT NULL,            -- what is asked, as a hash
        tool TEXT NOT NULL,
        args TEXT NOT NULL,             -- JSON: names, values, labels
        asked INTEGER NOT NULL,         -- milliseconds since 1970
        expires INTEGER NOT NULL,
        used INTEGER,                   -- when the run took an answer
        channel TEXT NOT NULL DEFAULT '',   -- JSON of the label of the decision to ask; '' if it is not known
        is_decided INTEGER,             -- whether untrusted data decided the call; null if it is not known
        PRIMARY KEY (run, strand, number)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS answers (
        token TEXT NOT NULL,            -- of the question
        verdict TEXT NOT NULL,          -- approved, denied
        reason TEXT,
        approver TEXT NOT NULL,         -- whose key it is
        decided INTEGER NOT NULL,       -- milliseconds since 1970
        signature BLOB NOT NULL         -- of all of these
    ) STRICT;
    CREATE INDEX IF NOT EXISTS answers_token ON answers (token);
    CREATE TABLE IF NOT EXISTS changes (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,        -- from 1
        changed INTEGER NOT NULL,       -- milliseconds since 1970
        step INTEGER NOT NULL,          -- the last answer to the program before
        program TEXT NOT NULL,          -- the program before
        checksum BLOB NOT NULL,         -- of these but the run
        PRIMARY KEY (run, number)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS elicited (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        strand INTEGER NOT NULL,        -- of the call of a tool
        number INTEGER NOT NULL,
        token TEXT NOT NULL,            -- what its server asked a person, as a hash
        answer TEXT NOT NULL,           -- JSON
        checksum BLOB NOT NULL,         -- of these but the run
        PRIMARY KEY (run, strand, number, token)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS shown (
        run TEXT PRIMARY KEY,
        outcome TEXT NOT NULL           -- JSON
    ) STRICT;
    CREATE TABLE IF NOT EXISTS programs (
        digest TEXT PRIMARY KEY,        -- of the body; `kept` of the settings of its runs
        body TEXT NOT NULL              -- JSON: code with places, sources, policy
    ) STRICT;
    CREATE INDEX IF NOT EXISTS entries_open ON entries (run) WHERE response IS NULL;
    CREATE INDEX IF NOT EXISTS runs_key ON runs
        (json_extract(settings, '$.caller'), json_extract(settings, '$.idempotencyKey'))
        WHERE json_extract(settings, '$.idempotencyKey') IS NOT NULL";

/// Columns that journals of before may lack: table, name, type and default.
const MORE_COLUMNS: &[(&str, &str, &str)] = &[
    ("approvals", "channel", "TEXT NOT NULL DEFAULT ''"),
    ("approvals", "is_decided", "INTEGER"),
    // Milliseconds since 1970.
    ("entries", "written", "INTEGER"),
    ("runs", "ended", "INTEGER"),
];

/// The index that lists of runs are read from. The program of a run is long, and is not in it.
const LIST_INDEX: &str = "
    CREATE INDEX IF NOT EXISTS runs_list ON runs (
        created, id, status, name,
        CASE WHEN status IN ('failed', 'stopped') AND json_valid(outcome) THEN json_extract(outcome, '$.error') END
    )";

const ELSEWHERE: &str = "it stays as it is; name another place";

const RESTORE: &str = "restore it from a copy, or start a new run with another file";

/// Statements that a connection keeps compiled.
const COMPILED: usize = 64;

/// A journal in a file.
#[derive(Debug)]
pub(in crate::journal) struct Sqlite {
    db: Connection,
    path: PathBuf,
    turn: WriteLock,
}

impl Sqlite {
    /// Opens a file, or makes one.
    pub(in crate::journal) fn open(path: &Path) -> Result<Sqlite, JournalError> {
        Sqlite::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens a file that exists, and that somebody named. SQLite takes an empty one for a new database, and
    /// what only looks at runs would make one of it. In a journal's own folder an empty file is what a full
    /// disk left.
    pub(in crate::journal) fn named(path: &Path) -> Result<Sqlite, JournalError> {
        if std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() == 0) {
            let message = format!("cannot use the journal `{}`: it is empty", path.display());
            return Err(JournalError { message, help: Some(ELSEWHERE.into()) });
        }
        Sqlite::existing(path)
    }

    /// Opens a file that exists.
    pub(in crate::journal) fn existing(path: &Path) -> Result<Sqlite, JournalError> {
        if !path.is_file() {
            return Err(JournalError {
                message: format!("journal `{}` not found", path.display()),
                help: Some(
                    "`entail run FILE --journal DIR` keeps runs, `--record FILE` makes a recording; name that place, or the run's directory with `--journal DIR`"
                        .into(),
                ),
            });
        }
        Sqlite::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Sqlite, JournalError> {
        let shown = path.display();
        let failed = |e: rusqlite::Error| {
            let help = match e.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => Some(ELSEWHERE.into()),
                Some(rusqlite::ErrorCode::DatabaseCorrupt) => Some(RESTORE.into()),
                _ => None,
            };
            JournalError { message: format!("cannot use the journal `{shown}`: {}", cause(&e)), help }
        };
        if path.is_dir() {
            return Err(JournalError::new(format!("`{shown}` is a directory, and no journal"))
                .with_help("name a file in it"));
        }
        let mut db =
            Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
        let turn = WriteLock::of(path);
        db.set_prepared_statement_cache_capacity(COMPILED);
        db.busy_timeout(Duration::from_secs(10)).map_err(failed)?;
        let number = |db: &Connection, name: &str| db.pragma_query_value(None, name, |r| r.get::<_, i64>(0));
        // A response must be on the disk before the program acts on it.
        db.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        db.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let (application, version) =
            (number(&db, "application_id").map_err(failed)?, number(&db, "user_version").map_err(failed)?);
        if version == VERSION && application == APPLICATION {
            whole_pages(&db, path)?;
            prepare(&db).map_err(failed)?;
            return Ok(Sqlite { db, path: path.to_path_buf(), turn });
        }
        if application == APPLICATION {
            return Err(JournalError::new(format!(
                "the journal `{shown}` has version {version}, not {VERSION}"
            ))
            .with_help("use the version of `entail` that made it, or another file"));
        }
        let tables: i64 =
            db.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0)).map_err(failed)?;
        if tables > 0 || application != 0 {
            return Err(
                JournalError::new(format!("`{shown}` is a database, but no journal")).with_help(ELSEWHERE)
            );
        }
        let writing = turn.take();
        db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
        let made = (|| {
            let t = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            // Another process may have been faster.
            if number(&t, "user_version")? == 0 {
                t.execute_batch(TABLES)?;
                prepare(&t)?;
                t.pragma_update(None, "application_id", APPLICATION)?;
                t.pragma_update(None, "user_version", VERSION)?;
            }
            t.commit()
        })();
        made.map_err(failed)?;
        drop(writing);
        Ok(Sqlite { db, path: path.to_path_buf(), turn })
    }

    /// Path of the file that is locked while a run is held.
    fn lock_path(&self, id: &str) -> OsString {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{id}.lock"));
        path
    }
}

/// Makes what journals of before lack.
fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch(MORE_TABLES)?;
    for (table, column, of) in MORE_COLUMNS {
        let has = || -> rusqlite::Result<bool> {
            let known = "SELECT count(*) FROM pragma_table_info(?1) WHERE name = ?2";
            Ok(db.query_row(known, [table, column], |r| r.get::<_, i64>(0))? > 0)
        };
        if has()? {
            continue;
        }
        let added = db.execute_batch(&format!("ALTER TABLE {table} ADD COLUMN {column} {of}"));
        // Another process may have been faster.
        if added.is_err() && !has()? {
            return added;
        }
    }
    db.execute_batch(LIST_INDEX)
}

impl Database for Sqlite {
    fn each(
        &self,
        query: &Statement,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let mut statement = self.db.prepare_cached(&query.sql)?;
        let mut rows = statement.query(rusqlite::params_from_iter(&query.values))?;
        while let Some(row) = rows.next()? {
            visit(&Row(row))?;
        }
        Ok(())
    }

    fn hold(&self) -> Result<(), DbError> {
        Ok(self.db.execute_batch("BEGIN")?)
    }

    fn write(&self, _: Option<&RunLock>, statements: &[Statement]) -> Result<u64, DbError> {
        let _turn = self.turn.take();
        let t = Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        let mut changed = 0;
        for statement in statements {
            let mut compiled = t.prepare_cached(&statement.sql)?;
            changed += compiled.execute(rusqlite::params_from_iter(&statement.values))? as u64;
        }
        t.commit()?;
        Ok(changed)
    }

    fn begin(&self, run: NewRun) -> Result<RunLock, JournalError> {
        self.write(None, &[run.statement()]).map_err(|e| JournalError::of(self, &e))?;
        self.lock(&run.id)
    }

    fn lock(&self, id: &str) -> Result<RunLock, JournalError> {
        let path = self.lock_path(id);
        let failed = |e: std::io::Error| JournalError::new(format!("cannot lock run `{id}`: {e}"));
        // Data that this process or another one has just released may still be on its way to the disk. And
        // the previous holder of the lock may have removed the file between our opening and locking it.
        for _ in 0..20 {
            let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if same_file(&file, &path) => return Ok(Arc::new(FileLock { _file: file, path })),
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(25)),
                Err(std::fs::TryLockError::Error(e)) => return Err(failed(e)),
            }
        }
        Err(JournalError::new(format!("another process executes run `{id}`")))
    }

    fn is_locked(&self, id: &str) -> bool {
        // Nothing is made here: a journal may be read where nothing can be written.
        let lock = File::open(self.lock_path(id));
        lock.is_ok_and(|file| matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
    }

    /// Lengths and times of the files would not do: a writer appends to the log before it makes the answer
    /// visible, and the disk may take any time in between.
    fn version(&self, _: &str) -> Result<i64, DbError> {
        Ok(self.db.prepare_cached("PRAGMA data_version")?.query_row([], |r| r.get(0))?)
    }

    fn is_intact(&self) -> Result<bool, DbError> {
        let found: String = self.db.query_row("PRAGMA integrity_check(1)", [], |r| r.get(0))?;
        Ok(found == "ok")
    }

    fn another(&self) -> Result<Box<dyn Database>, JournalError> {
        Ok(Box::new(Sqlite::existing(&self.path)?))
    }

    fn copy_of_run(&self, run: &str, fork: &str, now: i64) -> Statement {
        let copy = "INSERT INTO runs (id, created, name, program, digest, input, settings, parent, status)
             SELECT ?1, ?2, name, program, digest, input, settings, id, 'running' FROM runs WHERE id = ?3";
        Statement::new(copy).with(fork).with(now).with(run)
    }

    fn field(&self, name: &str) -> String {
        format!("json_extract(runs.settings, '$.{name}')")
    }

    fn error_code(&self) -> &'static str {
        "CASE WHEN status IN ('failed', 'stopped') AND json_valid(outcome) THEN json_extract(outcome, '$.error') END"
    }

    fn indexes(&self) -> &'static [&'static str] {
        &["INDEXED BY sqlite_autoindex_entries_1", "INDEXED BY entries_step"]
    }

    fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn restore(&self) -> &'static str {
        RESTORE
    }
}

impl rusqlite::ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(Some(n)) => ValueRef::Integer(*n),
            Value::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Value::Blob(Some(bytes)) => ValueRef::Blob(bytes),
            Value::Int(None) | Value::Text(None) | Value::Blob(None) => ValueRef::Null,
        }))
    }
}

impl Cells for rusqlite::Row<'_> {
    fn cell(&self, column: usize) -> Result<Cell<'_>, DbError> {
        Ok(match self.get_ref(column)? {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(n) => Cell::Int(n),
            ValueRef::Text(text) => Cell::Text(std::str::from_utf8(text).map_err(|_| DbError::damaged())?),
            ValueRef::Blob(bytes) => Cell::Blob(bytes),
            // No column holds such numbers.
            ValueRef::Real(_) => return Err(DbError::damaged()),
        })
    }
}

impl From<rusqlite::Error> for DbError {
    fn from(e: rusqlite::Error) -> DbError {
        let is_damaged = e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt);
        DbError { cause: cause(&e), is_damaged }
    }
}

/// Keeps others from going on with the same run.
#[derive(Debug)]
struct FileLock {
    _file: File,
    path: OsString,
}

impl Held for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // While it is locked: see `same_file`.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn same_file(file: &File, path: &std::ffi::OsStr) -> bool {
    use std::os::unix::fs::MetadataExt;
    let inode = |m: std::io::Result<std::fs::Metadata>| m.ok().map(|m| (m.dev(), m.ino()));
    inode(file.metadata()).is_some() && inode(file.metadata()) == inode(std::fs::metadata(path))
}

/// Always false: where open files can't be removed, there is nothing to compare.
#[cfg(not(unix))]
fn same_file(_: &File, _: &std::ffi::OsStr) -> bool {
    true
}

fn cause(e: &rusqlite::Error) -> String {
    let text = match e {
        rusqlite::Error::SqliteFailure(failure, message) => match failure.code {
            rusqlite::ErrorCode::DiskFull => "the disk is full".into(),
            rusqlite::ErrorCode::NotADatabase => "it is not a journal".into(),
            rusqlite::ErrorCode::DatabaseCorrupt => "it is damaged".into(),
            rusqlite::ErrorCode::CannotOpen => "it can't be opened".into(),
            rusqlite::ErrorCode::SystemIoFailure => {
                let may_be_full = [
                    rusqlite::ffi::SQLITE_IOERR_WRITE,
                    rusqlite::ffi::SQLITE_IOERR_FSYNC,
                    rusqlite::ffi::SQLITE_IOERR_TRUNCATE,
                    rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
                ];
                match may_be_full.contains(&failure.extended_code) {
                    true => "writing to the disk failed; it may be full".into(),
                    false => format!("it can't be read or written: {failure}"),
                }
            }
            rusqlite::ErrorCode::ReadOnly => "it can't be written".into(),
            rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked => {
                "another process is using it".into()
            }
            _ => message.clone().unwrap_or_else(|| failure.to_string()),
        },
        other => other.to_string(),
    };
    diagnostics::clip_to(&text, 200)
}

/// Refuses a file that ends within a page, which SQLite would read as if zeros followed. While there is a
/// log, the missing part may be in it.
fn whole_pages(db: &Connection, path: &Path) -> Result<(), JournalError> {
    let page: u64 = whole(db.pragma_query_value(None, "page_size", |r| r.get(0)).unwrap_or(4096)).max(1);
    let torn = || std::fs::metadata(path).is_ok_and(|m| m.len() % page != 0);
    if !torn() {
        return Ok(());
    }
    // Moves what is in the log to its place: busy, pages in the log, pages moved.
    let moved = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |r| {
        Ok((r.get::<_, i64>(0)?, r.get::<_, i64>(1)?, r.get::<_, i64>(2)?))
    });
    let at_work = matches!(moved, Ok((busy, log, done)) if busy != 0 || done < log);
    if torn() && !at_work {
        let what = format!("cannot use the journal `{}`: {}", path.display(), DbError::damaged().cause);
        return Err(JournalError::new(what).with_help(RESTORE));
    }
    Ok(())
}
