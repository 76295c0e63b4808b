//! Databases that keep journals.
//!
//! Entry point: [`Database`]. The logic of journals (checksums, links, signatures, what is resumed) is above
//! it and stands once. A database has the tables, carries out statements, and lets one process at a time work
//! on a run.
//!
//! Invariant: statements are the same for all databases, up to what [`Database::field`] and
//! [`Database::indexes`] give. Values are numbered `?1`, `?2` and so on.
//! Invariant: what one [`Database::write`] writes is there whole or not at all, and durable when it returns.

#[cfg(feature = "postgres")]
mod postgres;
mod sqlite;

#[cfg(feature = "postgres")]
pub(super) use postgres::{LiveRow, Postgres};
pub(super) use sqlite::Sqlite;

use super::JournalError;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A database that keeps a journal.
pub(super) trait Database: fmt::Debug + Send {
    /// Visits the rows of a query in its order.
    fn each(
        &self,
        query: &Statement,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError>;

    /// Holds the state that the database has now: all queries from here on see it, and need no turn of their
    /// own. Nothing can be written until it is closed.
    fn hold(&self) -> Result<(), DbError> {
        Ok(())
    }

    /// Carries out statements in one transaction. Returns the number of rows that they changed.
    ///
    /// With `held`, nothing is written unless this process still holds the run.
    fn write(&self, held: Option<&RunLock>, statements: &[Statement]) -> Result<u64, DbError>;

    /// Writes like [`Database::write`] for a run that this process holds. Statements that were interrupted
    /// may be carried out again, so a second time must change nothing.
    fn append(&self, held: &RunLock, statements: &[Statement]) -> Result<(), DbError> {
        self.write(Some(held), statements).map(|_| ())
    }

    /// Adds a run, and holds it.
    fn begin(&self, run: NewRun) -> Result<RunLock, JournalError>;

    /// Holds a run until the lock is dropped.
    ///
    /// # Errors
    /// Another process holds it.
    fn lock(&self, run: &str) -> Result<RunLock, JournalError>;

    /// Returns true if a live process holds a run.
    fn is_locked(&self, run: &str) -> bool;

    /// A condition on runs that excludes those which a live process holds, as far as the database knows.
    fn is_free(&self) -> &'static str {
        "TRUE"
    }

    /// Interval at which processes of other hosts look for runs whose process is gone; `None` if there are no
    /// other hosts.
    fn takeover(&self) -> Option<Duration> {
        None
    }

    /// A number that changes when another connection may have written an answer to a question.
    fn version(&self, question: &str) -> Result<i64, DbError>;

    /// The statement that wakes those who wait for an answer to a question, if [`Database::version`] needs
    /// it.
    fn wake(&self, _question: &str) -> Option<Statement> {
        None
    }

    /// Returns false if the structure of the database is damaged.
    fn is_intact(&self) -> Result<bool, DbError>;

    /// The same database over a connection of its own.
    fn another(&self) -> Result<Box<dyn Database>, JournalError>;

    /// The statement that adds a fork of a run, which begins at this time.
    fn copy_of_run(&self, run: &str, fork: &str, now: i64) -> Statement;

    /// The expression for a field of the settings of a run.
    fn field(&self, name: &str) -> String;

    /// The expression for the code of the error that a run ended with; null if it ended with none.
    fn error_code(&self) -> &'static str;

    /// Clauses by which a query reads entries over one index each. No page belongs to two of these indexes.
    fn indexes(&self) -> &'static [&'static str];

    /// Its name in messages.
    fn shown(&self) -> String;

    /// The remedy if it is damaged.
    fn restore(&self) -> &'static str;
}

impl dyn Database + '_ {
    /// Values read from the rows of a query.
    pub(super) fn all<T>(
        &self,
        query: &Statement,
        mut read: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut found = Vec::new();
        self.each(query, &mut |row| {
            found.push(read(row)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// The value read from the first row of a query that gives few.
    pub(super) fn first<T>(
        &self,
        query: &Statement,
        read: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        Ok(self.all(query, read)?.into_iter().next())
    }
}

/// A run that is added.
#[derive(Clone, Debug)]
pub(super) struct NewRun {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) name: String,
    pub(super) program: String,
    pub(super) digest: String,
    pub(super) input: String,
    /// JSON.
    pub(super) settings: String,
}

impl NewRun {
    /// The row of the table `runs`.
    fn statement(&self) -> Statement {
        Statement::new(
            "INSERT INTO runs (id, created, name, program, digest, input, settings, status)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'running')",
        )
        .with(&*self.id)
        .with(self.created)
        .with(&*self.name)
        .with(&*self.program)
        .with(&*self.digest)
        .with(&*self.input)
        .with(&*self.settings)
    }
}

/// Keeps other processes from going on with a run, until it is dropped.
pub(super) type RunLock = Arc<dyn Held>;

/// A run that this process holds.
pub(super) trait Held: fmt::Debug + Send + Sync {
    /// A statement that fails unless the run is still held.
    #[cfg(feature = "postgres")]
    fn fence(&self) -> Option<Statement> {
        None
    }
}

/// A statement and its values.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    sql: Cow<'static, str>,
    values: Vec<Value>,
}

impl Statement {
    /// A statement without values yet.
    pub(super) fn new(sql: impl Into<Cow<'static, str>>) -> Statement {
        Statement { sql: sql.into(), values: Vec::new() }
    }

    /// Returns true if the statement has a place for a value.
    pub(super) fn takes_values(&self) -> bool {
        self.sql.contains("?1")
    }

    /// With the next value.
    #[must_use]
    pub(super) fn with(mut self, value: impl Into<Value>) -> Statement {
        self.values.push(value.into());
        self
    }
}

/// A value of a statement; `None` is null.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A number.
    Int(Option<i64>),
    /// A text.
    Text(Option<String>),
    /// Bytes.
    Blob(Option<Vec<u8>>),
}

macro_rules! values {
    ($($type:ty => |$value:ident| $made:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($value: $type) -> Value {
                $made
            }
        })*
    };
}

values! {
    i64 => |n| Value::Int(Some(n));
    Option<i64> => |n| Value::Int(n);
    u32 => |n| Value::Int(Some(n.into()));
    &str => |t| Value::Text(Some(t.to_string()));
    Option<&str> => |t| Value::Text(t.map(String::from));
    String => |t| Value::Text(Some(t));
    Option<String> => |t| Value::Text(t);
    &String => |t| Value::Text(Some(t.clone()));
    Vec<u8> => |b| Value::Blob(Some(b));
    [u8; 16] => |b| Value::Blob(Some(b.to_vec()));
    Option<[u8; 16]> => |b| Value::Blob(b.map(|b| b.to_vec()));
}

/// A row that a query gives.
pub(super) struct Row<'a>(&'a dyn Cells);

impl Row<'_> {
    /// Reads a column, from 0.
    ///
    /// # Errors
    /// It holds what is not of this type, so it is not what was written.
    pub(super) fn get<T: FromCell>(&self, column: usize) -> Result<T, DbError> {
        T::from_cell(self.0.cell(column)?).ok_or_else(DbError::damaged)
    }
}

/// The columns of a row.
trait Cells {
    fn cell(&self, column: usize) -> Result<Cell<'_>, DbError>;
}

/// A column of a row.
pub(super) enum Cell<'a> {
    /// Nothing.
    Null,
    /// A number, or a truth value as 0 or 1.
    Int(i64),
    /// A text.
    Text(&'a str),
    /// Bytes.
    Blob(&'a [u8]),
}

/// Types that a column is read as.
pub(super) trait FromCell: Sized {
    /// `None` if it holds something else.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

macro_rules! cells {
    ($($type:ty : $($pattern:pat => $made:expr),*;)*) => {
        $(impl FromCell for $type {
            fn from_cell(cell: Cell<'_>) -> Option<$type> {
                match cell {
                    $($pattern => $made,)*
                    _ => None,
                }
            }
        })*
    };
}

cells! {
    i64: Cell::Int(n) => Some(n);
    u32: Cell::Int(n) => n.try_into().ok();
    bool: Cell::Int(n) => Some(n != 0);
    String: Cell::Text(text) => Some(text.to_string());
    Vec<u8>: Cell::Blob(bytes) => Some(bytes.to_vec());
    [u8; 16]: Cell::Blob(bytes) => bytes.try_into().ok();
}

impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Option<T>> {
        match cell {
            Cell::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }
}

/// Reason why a database can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DbError {
    /// The problem, on one line.
    pub(super) cause: String,
    /// True if what it holds is not what was written.
    pub(super) is_damaged: bool,
}

impl DbError {
    /// A part differs from what was written.
    pub(super) fn damaged() -> DbError {
        DbError { cause: "it is damaged".into(), is_damaged: true }
    }
}
