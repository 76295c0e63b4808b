//! Stores on a Postgres server, which agents on several machines may share.
//!
//! Invariant: an account has a number, which grows with each write. A write is a transaction that has checked
//! the number which it read, and begins again if that has changed. So agents see each other's writes whole
//! and in one order.
//! Invariant: no message holds a password.

use super::{KeyOp, Operation, label_of, prefixed};
use crate::postgres::{PgError, PgErrorKind, PgStatement, PgValue, Pool, PostgresServer, Repeat, wait};
use core_ir::exchange::data_json;
use core_ir::{Data, Name};
use machine::store::{EntryLimits, initial, kept};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::error::SqlState;

/// Time for which an operation is tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tables, in a schema of their own. The lock is that of whoever makes them: "ENTS".
const TABLES: &str = "
    SELECT pg_advisory_xact_lock(1162761299);
    CREATE SCHEMA IF NOT EXISTS entail_stores;
    CREATE TABLE IF NOT EXISTS entail_stores.accounts (
        account TEXT PRIMARY KEY,   -- the owner, the store and the label, each after its length and a colon
        number BIGINT NOT NULL      -- of the last write
    );
    CREATE TABLE IF NOT EXISTS entail_stores.entries (
        account TEXT NOT NULL REFERENCES entail_stores.accounts (account) ON DELETE CASCADE,
        key TEXT NOT NULL,
        value TEXT NOT NULL,        -- JSON of the exchange format
        expires BIGINT,             -- milliseconds since 1970
        capacity BIGINT,            -- how many entries of the account there may be, up to this one
        number BIGINT NOT NULL,     -- the order of writes in the account
        PRIMARY KEY (account, key)
    )";

/// The part of the tables that needs the right to make schemas.
const SCHEMA: &str = "CREATE SCHEMA IF NOT EXISTS entail_stores;";

/// A server in use.
pub(super) struct Client {
    pool: Arc<Pool>,
    is_ready: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pool.server().fmt(f)
    }
}

/// An entry of an account.
struct Entry {
    key: Name,
    value: String,
    limits: EntryLimits,
}

/// An account: the number of its last write, and its entries, the latest first.
struct Account {
    number: i64,
    entries: Vec<Entry>,
}

impl Client {
    pub(super) fn of(server: &PostgresServer) -> Client {
        Client { pool: Pool::of(server), is_ready: false }
    }

    pub(super) fn carry_out(&mut self, operation: Operation) -> Result<Option<Data>, String> {
        let Operation { owner, decl, key, now, .. } = operation;
        let name = [owner, &*decl.name, &label_of(key)].map(prefixed).concat();
        let server = self.pool.server().clone();
        let failed = |e: PgError| format!("store `{}`: {}", decl.name, refused(&server, &e));
        self.prepare().map_err(failed)?;
        let began = Instant::now();
        loop {
            let account = self.account(&name).map_err(failed)?;
            let remain = kept(&account.entries, |e| e.limits, now);
            let value = match &operation.act {
                KeyOp::Recall => {
                    let held = remain.iter().find(|e| e.key == key.name);
                    let written: Vec<Name> = remain.iter().map(|e| e.key.clone()).collect();
                    return match held {
                        Some(held) => operation.of_text(&held.value).map(Some),
                        None => Ok(initial(decl, key, &written, now).cloned()),
                    };
                }
                KeyOp::Remember(value) => data_json(value).to_string(),
            };
            let written = Entry { key: key.name.clone(), value, limits: EntryLimits::of(decl, now) };
            let all = std::iter::once(&written).chain(remain.into_iter().filter(|e| e.key != key.name));
            let remain = kept(all, |e| e.limits, now);
            let gone = std::iter::once(&written).chain(&account.entries);
            let gone = gone.filter(|e| remain.iter().all(|r| r.key != e.key)).map(|e| e.key.to_string());
            match self.write(&name, account.number, &written, gone.collect()) {
                // Another agent has written in the meantime.
                Err(e) if e.is(&SqlState::DIVISION_BY_ZERO) && began.elapsed() < PATIENCE => {}
                done => return done.map(|_| None).map_err(failed),
            }
        }
    }

    /// Makes the tables, if they are missing.
    fn prepare(&mut self) -> Result<(), PgError> {
        if self.is_ready {
            return Ok(());
        }
        let pool = self.pool.clone();
        wait(async move {
            let look = "SELECT to_regclass('entail_stores.entries') IS NOT NULL,
                to_regnamespace('entail_stores') IS NOT NULL";
            let rows = pool.query(&PgStatement::new(look, Vec::new()), Duration::ZERO).await?;
            match rows.first().map(|row| (row.get(0), row.get(1))) {
                Some((true, _)) => Ok(()),
                // Whoever may not make a schema may have one that was made for it.
                Some((false, true)) => pool.batch(&TABLES.replace(SCHEMA, "")).await,
                _ => pool.batch(TABLES).await,
            }
        })?;
        self.is_ready = true;
        Ok(())
    }

    fn account(&self, name: &str) -> Result<Account, PgError> {
        let query = PgStatement::new(
            "SELECT accounts.number, key, value, expires, capacity
             FROM entail_stores.accounts LEFT JOIN entail_stores.entries USING (account)
             WHERE account = $1 ORDER BY entries.number DESC",
            vec![text(name)],
        );
        let pool = self.pool.clone();
        let rows = wait(async move { pool.query(&query, PATIENCE).await })?;
        let number = rows.first().map_or(0, |row| row.get(0));
        let entries = rows.iter().filter_map(|row| {
            let capacity = row.get::<_, Option<i64>>(4).map(|c| u64::try_from(c).unwrap_or(0));
            Some(Entry {
                key: row.get::<_, Option<String>>(1)?.into(),
                value: row.get(2),
                limits: EntryLimits { expires: row.get(3), capacity },
            })
        });
        Ok(Account { number, entries: entries.collect() })
    }

    /// Writes an entry and deletes others, unless the account has changed since it was read.
    fn write(&self, account: &str, number: i64, entry: &Entry, gone: Vec<String>) -> Result<u64, PgError> {
        let limits = &entry.limits;
        let capacity = limits.capacity.map(|c| i64::try_from(c).unwrap_or(i64::MAX));
        let mut all = vec![
            PgStatement::new(
                "INSERT INTO entail_stores.accounts VALUES ($1, 0) ON CONFLICT DO NOTHING",
                vec![text(account)],
            ),
            // Fails if it is not the account that was read.
            PgStatement::new(
                "WITH same AS (UPDATE entail_stores.accounts SET number = number + 1
                     WHERE account = $1 AND number = $2 RETURNING 1)
                 SELECT 1 / count(*) FROM same",
                vec![text(account), PgValue::Int(Some(number))],
            ),
            PgStatement::new(
                "INSERT INTO entail_stores.entries VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (account, key) DO UPDATE SET value = excluded.value, expires = excluded.expires,
                     capacity = excluded.capacity, number = excluded.number",
                vec![
                    text(account),
                    text(&entry.key),
                    text(&entry.value),
                    PgValue::Int(limits.expires),
                    PgValue::Int(capacity),
                    PgValue::Int(Some(number.saturating_add(1))),
                ],
            ),
        ];
        all.extend(gone.into_iter().map(|key| {
            let delete = "DELETE FROM entail_stores.entries WHERE account = $1 AND key = $2";
            PgStatement::new(delete, vec![text(account), PgValue::Text(Some(key))])
        }));
        let pool = self.pool.clone();
        wait(async move { pool.write(&all, PATIENCE, Repeat::Never).await })
    }
}

fn text(text: &str) -> PgValue {
    PgValue::Text(Some(text.to_string()))
}

/// The reason that a server can't be used, with the remedy.
fn refused(server: &PostgresServer, e: &PgError) -> String {
    let cause = &e.cause;
    match &e.kind {
        PgErrorKind::Unreachable => format!(
            "cannot reach the Postgres server `{server}`: {cause} (help: start it, or correct its address in `entail.toml`)"
        ),
        PgErrorKind::Lost => format!("the connection to the Postgres server `{server}` was lost: {cause}"),
        PgErrorKind::Refused(code) if *code == SqlState::DIVISION_BY_ZERO => {
            format!("too many agents write to it at once on the Postgres server `{server}`")
        }
        PgErrorKind::Refused(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => format!(
            "the Postgres server `{server}` refused: {cause} (help: let the owner of the database run \
             `CREATE SCHEMA entail_stores AUTHORIZATION {}`)",
            server.user()
        ),
        PgErrorKind::Refused(_) | PgErrorKind::Invalid => {
            format!("the Postgres server `{server}` refused: {cause}")
        }
    }
}
