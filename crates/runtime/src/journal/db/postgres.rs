//! Journals on a Postgres server, for the processes of several hosts.
//!
//! A process holds a run through a lease: a row that says until when, renewed while the process lives. The
//! times are those of the server, so clocks of hosts don't matter. When a lease has expired, another process
//! may take the run over.
//!
//! Invariant: a lease has a number, which grows with each process that takes the run. Whatever is written for
//! a run is written in a transaction that has checked the number, so a process that has lost its run writes
//! nothing more, however late it notices.

mod live;

pub(in crate::journal) use live::LiveRow;

use super::super::{JournalError, parse};
use super::{Cell, Cells, Database, DbError, Held, NewRun, Row, RunLock, Statement, Value};
use crate::postgres::{
    PATIENCE, PgError, PgErrorKind, PgStatement, PgValue, Pool, PostgresServer, Registry, Repeat, lock,
    spawn, wait,
};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// Statements that bring the tables from each version to the next. Released ones never change.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        created BIGINT NOT NULL,        -- milliseconds since 1970
        name TEXT NOT NULL,
        program TEXT NOT NULL,          -- as text, without places
        digest TEXT NOT NULL,           -- of program, input and settings
        input TEXT NOT NULL,            -- JSON of the exchange format, or ''
        settings TEXT NOT NULL,         -- JSON
        parent TEXT,                    -- of a fork
        status TEXT NOT NULL,           -- running, done, failed, stopped
        outcome TEXT,                   -- JSON of the result, or the error
        caller TEXT,                    -- fields of the settings, for queries
        idempotency_key TEXT,
        request_digest TEXT,
        after_run TEXT,
        rowid BIGINT GENERATED ALWAYS AS IDENTITY
    );
    CREATE INDEX runs_created ON runs (created);
    CREATE INDEX runs_running ON runs (created) WHERE status = 'running';
    CREATE INDEX runs_after ON runs (after_run) WHERE after_run IS NOT NULL;
    CREATE UNIQUE INDEX runs_key ON runs (caller, idempotency_key) WHERE idempotency_key IS NOT NULL;
    CREATE TABLE leases (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        generation BIGINT NOT NULL,     -- grows with each process that takes the run
        holder TEXT NOT NULL,           -- the process; '' for none
        expires TIMESTAMPTZ NOT NULL
    );
    CREATE INDEX leases_holder ON leases (holder) WHERE holder <> '';
    CREATE TABLE entries (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        step BIGINT NOT NULL,           -- in the order of the answers, from 1
        strand BIGINT NOT NULL,
        number BIGINT NOT NULL,
        request TEXT NOT NULL,          -- JSON, without the conversation
        conversation BYTEA,             -- link of its last message, if a model is asked
        response TEXT,                  -- JSON; null while it is under way
        model TEXT NOT NULL,
        input_tokens BIGINT NOT NULL,
        output_tokens BIGINT NOT NULL,
        usd TEXT,
        micros BIGINT NOT NULL,
        checksum BYTEA NOT NULL,        -- of all but the run
        PRIMARY KEY (run, strand, number)
    );
    CREATE INDEX entries_step ON entries (run, step);
    CREATE TABLE messages (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        link BYTEA NOT NULL,            -- a hash of the next two
        before BYTEA NOT NULL,          -- link of the message before, or zeros
        body TEXT NOT NULL,             -- JSON
        PRIMARY KEY (run, link)
    );
    CREATE TABLE approvals (
        run TEXT NOT NULL,
        strand BIGINT NOT NULL,
        number BIGINT NOT NULL,
        token TEXT NOT NULL,            -- the question, as a hash
        tool TEXT NOT NULL,
        args TEXT NOT NULL,             -- JSON: names, values, labels
        asked BIGINT NOT NULL,          -- milliseconds since 1970
        expires BIGINT NOT NULL,
        used BIGINT,                    -- when the run took an answer
        channel TEXT NOT NULL,          -- JSON of the label of the decision to ask
        PRIMARY KEY (run, strand, number)
    );
    CREATE INDEX approvals_token ON approvals (token);
    CREATE TABLE answers (
        token TEXT NOT NULL,            -- of the question
        verdict TEXT NOT NULL,          -- approved, denied
        reason TEXT,
        approver TEXT NOT NULL,         -- whose key it is
        decided BIGINT NOT NULL,        -- milliseconds since 1970
        signature BYTEA NOT NULL,       -- of all of these
        rowid BIGINT GENERATED ALWAYS AS IDENTITY
    );
    CREATE INDEX answers_token ON answers (token);
    CREATE TABLE changes (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number BIGINT NOT NULL,         -- from 1
        changed BIGINT NOT NULL,        -- milliseconds since 1970
        step BIGINT NOT NULL,           -- the last answer to the program before
        program TEXT NOT NULL,          -- the program before
        checksum BYTEA NOT NULL,        -- of these but the run
        PRIMARY KEY (run, number)
    );
    CREATE TABLE shown (
        run TEXT PRIMARY KEY,
        outcome TEXT NOT NULL           -- JSON
    )",
    "
    CREATE TABLE budgets (
        caller TEXT NOT NULL,
        day BIGINT NOT NULL,            -- since 1970
        calls BIGINT NOT NULL,          -- used, and granted to runs that have not ended
        tokens BIGINT NOT NULL,
        usd TEXT NOT NULL,
        version BIGINT NOT NULL,        -- grows with each change
        PRIMARY KEY (caller, day)
    )",
    "
    CREATE TABLE programs (
        digest TEXT PRIMARY KEY,        -- of the body; `kept` of the settings of its runs
        body TEXT NOT NULL              -- JSON: code with places, sources, policy
    );
    ALTER TABLE entries ADD COLUMN written BIGINT;  -- milliseconds since 1970
    ALTER TABLE runs ADD COLUMN ended BIGINT;       -- milliseconds since 1970
    CREATE INDEX entries_open ON entries (run) WHERE response IS NULL;
    CREATE INDEX runs_list ON runs (created, id)",
    "
    -- Whether untrusted data decided the call; null if it is not known.
    ALTER TABLE approvals ADD COLUMN is_decided BIGINT",
    "
    CREATE TABLE elicited (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        strand BIGINT NOT NULL,         -- of the call of a tool
        number BIGINT NOT NULL,
        token TEXT NOT NULL,            -- what its server asked a person, as a hash
        answer TEXT NOT NULL,           -- JSON
        checksum BYTEA NOT NULL,        -- of these but the run
        PRIMARY KEY (run, strand, number, token)
    )",
    "
    -- Replies that arrive: no part of any run, so a crash of the server may lose them.
    CREATE UNLOGGED TABLE live (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        holder TEXT NOT NULL,           -- the process that wrote them
        replies TEXT NOT NULL           -- JSON
    )",
];

/// Looks at the schema `entail`: whether the journal's mark is there, whether anything else is, and how the
/// database writes texts.
const LOOK: &str = "
    SELECT to_regclass('entail.journal_version') IS NOT NULL,
        EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace('entail')),
        to_regnamespace('entail') IS NOT NULL,
        current_setting('server_encoding')";

/// The lock of whoever makes or changes the tables: "ENTL".
const MAKING: i64 = 0x454e_544c;

const RESTORE: &str = "restore the database from a backup, or keep new runs in another one";

const PASSWORD: &str = "set `PGPASSWORD` to the password of the user";

/// Interval after which those who wait for answers look at the tables although nothing was heard.
const FALLBACK: Duration = Duration::from_secs(10);

/// Names of answered questions that are remembered until everyone who waits looks.
const HEARD: usize = 10_000;

/// Time that giving a run back may take.
const PARTING: Duration = Duration::from_secs(2);

/// A journal on a server.
#[derive(Clone, Debug)]
pub(in crate::journal) struct Postgres(Arc<Shared>);

/// State that all journals of this process on the same server share.
struct Shared {
    pool: Arc<Pool>,
    /// Names this process as the holder of leases.
    holder: String,
    /// Runs that this process holds or is about to.
    held: Mutex<HashSet<String>>,
    /// True once leases are renewed.
    renews: AtomicBool,
    /// True once answers are listened to.
    listens: AtomicBool,
    /// Grows when everyone who waits for an answer should look.
    looks: AtomicI64,
    /// Questions that were answered since.
    answered: Mutex<HashSet<String>>,
    /// Replies that arrive and are not written yet.
    live: Mutex<live::LiveQueue>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.server().fmt(f)
    }
}

impl Postgres {
    /// The journal on a server, which is made if it is missing.
    pub(in crate::journal) fn open(server: &PostgresServer) -> Result<Postgres, JournalError> {
        Postgres::prepared(server, true)
    }

    /// The journal on a server, which has one.
    pub(in crate::journal) fn existing(server: &PostgresServer) -> Result<Postgres, JournalError> {
        Postgres::prepared(server, false)
    }

    /// The journal on a server, which has been opened.
    pub(in crate::journal) fn of(server: &PostgresServer) -> Postgres {
        static JOURNALS: Registry<Shared> = Registry::new();
        Postgres(JOURNALS.get(server.key(), || Shared {
            pool: Pool::of(server),
            holder: format!("process {} on {}, {}", std::process::id(), host(), crate::journal::new_id()),
            held: Mutex::default(),
            renews: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            looks: AtomicI64::new(0),
            answered: Mutex::default(),
            live: Mutex::default(),
        }))
    }

    fn prepared(server: &PostgresServer, may_make: bool) -> Result<Postgres, JournalError> {
        let Postgres(shared) = Postgres::of(server);
        let pool = shared.pool.clone();
        let version = wait(async move { version(&pool).await }).map_err(|e| refused(server, &e))?;
        let current = MIGRATIONS.len() as i64;
        match version {
            Version::Of(version) if version == current => {}
            Version::Of(version) if version > current => {
                let what = format!("the journal in `{server}` has version {version}, not {current}");
                return Err(JournalError::new(what).with_help("use the version of `entail` that made it"));
            }
            Version::Foreign => {
                let what = format!("the schema `entail` in `{server}` is not a journal");
                let help = "it stays as it is; name another database";
                return Err(JournalError::new(what).with_help(help));
            }
            Version::Encoding(encoding) => {
                let what = format!("the database `{server}` has the encoding {encoding}, not UTF8");
                return Err(JournalError::new(what).with_help("name a database with the encoding UTF8"));
            }
            Version::None { .. } if !may_make => {
                let help = "`entail run FILE --journal postgres://…` makes one";
                return Err(JournalError::new(format!("journal `{server}` not found")).with_help(help));
            }
            Version::Of(_) | Version::None { .. } => {
                let pool = shared.pool.clone();
                wait(async move { migrate(&pool, version).await }).map_err(|e| refused(server, &e))?;
            }
        }
        Ok(Postgres(shared))
    }

    fn query(&self, query: PgStatement) -> Result<Vec<tokio_postgres::Row>, DbError> {
        let pool = self.0.pool.clone();
        Ok(wait(async move { pool.query(&query, PATIENCE).await })?)
    }

    fn carry_out(&self, statements: Vec<PgStatement>, repeat: Repeat) -> Result<u64, PgError> {
        let pool = self.0.pool.clone();
        wait(async move { pool.write(&statements, PATIENCE, repeat).await })
    }

    fn failed(&self, e: &PgError) -> JournalError {
        refused(self.0.pool.server(), e)
    }

    /// Takes the lease of a run, unless another process has it.
    fn take(&self, run: &str) -> Result<Option<i64>, PgError> {
        let add = PgStatement::new(
            "INSERT INTO leases SELECT id, 0, '', '-infinity' FROM runs WHERE id = $1 ON CONFLICT DO NOTHING",
            vec![text(run)],
        );
        // What a killed process showed.
        let forget = PgStatement::new(
            "DELETE FROM live WHERE run = $1 AND NOT EXISTS
                 (SELECT FROM leases WHERE leases.run = live.run AND expires > clock_timestamp())",
            vec![text(run)],
        );
        self.carry_out(vec![add, forget], Repeat::Harmless)?;
        // What this process took and was not told of, because the connection was lost, it may take again.
        let take = PgStatement::new(
            "UPDATE leases SET generation = generation + 1, holder = $2,
                 expires = clock_timestamp() + $3 * interval '1 millisecond'
             WHERE run = (SELECT run FROM leases
                 WHERE run = $1 AND (expires <= clock_timestamp() OR holder = $2) FOR UPDATE SKIP LOCKED)
             RETURNING generation",
            vec![text(run), text(&self.0.holder), self.0.lease()],
        );
        let pool = self.0.pool.clone();
        let rows = wait(async move { pool.query(&take, PATIENCE).await })?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// The holder of a run, and the seconds that its lease has left; `None` without a holder.
    fn holder(&self, run: &str) -> Result<Option<(String, i64)>, PgError> {
        let query = PgStatement::new(
            "SELECT holder, ceil(extract(epoch FROM expires - clock_timestamp()))::bigint FROM leases
             WHERE run = $1 AND expires > clock_timestamp()",
            vec![text(run)],
        );
        let pool = self.0.pool.clone();
        let rows = wait(async move { pool.query(&query, PATIENCE).await })?;
        Ok(rows.first().map(|row| (row.get(0), row.get(1))))
    }

    fn lease(&self, run: &str, generation: i64) -> RunLock {
        if !self.0.renews.swap(true, Ordering::SeqCst) {
            spawn(renew(Arc::downgrade(&self.0), self.0.pool.server().lease() / 3));
        }
        Arc::new(Lease { shared: self.0.clone(), run: run.to_string(), generation })
    }
}

impl Shared {
    /// The length of a lease, in milliseconds.
    fn lease(&self) -> PgValue {
        PgValue::Int(i64::try_from(self.pool.server().lease().as_millis()).ok())
    }
}

fn text(text: &str) -> PgValue {
    PgValue::Text(Some(text.to_string()))
}

/// The name of this host.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "host".into(), |name| name.trim().replace('\0', ""))
}

/// Content of a database where a journal should be.
#[derive(Clone, Debug)]
enum Version {
    /// A journal of this version.
    Of(i64),
    /// Nothing; the schema may be there.
    None { has_schema: bool },
    /// Any other failure.
    Foreign,
    /// A database that can't hold all texts.
    Encoding(String),
}

async fn version(pool: &Pool) -> Result<Version, PgError> {
    let rows = pool.query(&PgStatement::new(LOOK, Vec::new()), Duration::ZERO).await?;
    let Some(row) = rows.first() else { return Ok(Version::Foreign) };
    let (is_ours, has_tables, has_schema): (bool, bool, bool) = (row.get(0), row.get(1), row.get(2));
    let encoding: String = row.get(3);
    Ok(match (is_ours, has_tables) {
        _ if encoding != "UTF8" => Version::Encoding(encoding),
        (true, _) => {
            let query = PgStatement::new("SELECT max(version) FROM journal_version", Vec::new());
            let rows = pool.query(&query, Duration::ZERO).await?;
            rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).map_or(Version::Foreign, Version::Of)
        }
        (false, true) => Version::Foreign,
        (false, false) => Version::None { has_schema },
    })
}

/// Makes the tables, or brings them to the current version.
async fn migrate(pool: &Pool, version: Version) -> Result<(), PgError> {
    let (mut sql, first) = match version {
        Version::None { has_schema } => {
            let schema = if has_schema { "" } else { "CREATE SCHEMA IF NOT EXISTS entail;" };
            let mark =
                "CREATE TABLE journal_version (version BIGINT PRIMARY KEY, made TIMESTAMPTZ NOT NULL);";
            (format!("{schema} {mark}"), 0)
        }
        Version::Of(version) => (String::new(), usize::try_from(version).unwrap_or(usize::MAX)),
        Version::Foreign | Version::Encoding(_) => return Ok(()),
    };
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(first) {
        sql.push_str(&format!("{migration};\nINSERT INTO journal_version VALUES ({}, now());", number + 1));
    }
    // One message is one transaction.
    let all = format!("SELECT pg_advisory_xact_lock({MAKING}); {sql}");
    match pool.batch(&all).await {
        Ok(()) => Ok(()),
        Err(e) => {
            // Another process may have been faster.
            let raced = [SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_SCHEMA, SqlState::UNIQUE_VIOLATION];
            match raced.iter().any(|code| e.is(code)) {
                true => Ok(()),
                false => Err(e),
            }
        }
    }
}

/// The reason that a server has no journal, with the remedy.
fn refused(server: &PostgresServer, e: &PgError) -> JournalError {
    let PgError { kind, cause } = e;
    let cannot = format!("cannot use the journal `{server}`: {cause}");
    let (user, database) = (server.user(), server.database());
    let code = match kind {
        PgErrorKind::Unreachable => {
            let what = format!("cannot reach the Postgres server of the journal `{server}`: {cause}");
            return JournalError::new(what).with_help("start it, or correct the address");
        }
        PgErrorKind::Invalid if cause.contains("password missing") => {
            return JournalError::new(cannot).with_help(PASSWORD);
        }
        PgErrorKind::Invalid if cause.contains("TLS") => {
            let help = "add `?sslrootcert=FILE` with the certificate of its authority to the address";
            return JournalError::new(cannot).with_help(help);
        }
        PgErrorKind::Lost => {
            let what =
                format!("the connection to the Postgres server of the journal `{server}` was lost: {cause}");
            return JournalError::new(what).with_help("try again");
        }
        PgErrorKind::Invalid => return JournalError::new(cannot),
        PgErrorKind::Refused(code) => code,
    };
    let help = if [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION].contains(code) {
        PASSWORD.to_string()
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        format!("make it: `createdb {database}`")
    } else if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        format!("let the owner of the database run `CREATE SCHEMA entail AUTHORIZATION {user}`")
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        "name the server that is written to, or add `?target_session_attrs=read-write` to the address".into()
    } else if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN {
        "its tables were changed: restore the database from a backup".into()
    } else {
        return JournalError::new(cannot);
    };
    JournalError::new(cannot).with_help(help)
}

/// A run that this process holds.
#[derive(Debug)]
struct Lease {
    shared: Arc<Shared>,
    run: String,
    generation: i64,
}

impl Held for Lease {
    /// Fails unless the lease is still that of this process, and keeps others from taking it until the end of
    /// the transaction.
    fn fence(&self) -> Option<Statement> {
        let held = "SELECT 1 / count(*) FROM
             (SELECT FROM leases WHERE run = ?1 AND generation = ?2 FOR SHARE) AS held";
        Some(Statement::new(held).with(&*self.run).with(self.generation))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let give = PgStatement::new(
            "UPDATE leases SET holder = '', expires = '-infinity' WHERE run = $1 AND generation = $2",
            vec![text(&self.run), PgValue::Int(Some(self.generation))],
        );
        let (shared, run) = (self.shared.clone(), self.run.clone());
        let (done, given) = std::sync::mpsc::sync_channel(1);
        spawn(async move {
            // What is not given back expires.
            let _ = shared.pool.write(&[give], PARTING, Repeat::Harmless).await;
            lock(&shared.held).remove(&run);
            let _ = done.send(());
        });
        let _ = given.recv_timeout(PARTING);
    }
}

/// Renews the leases of this process as long as it has the journal open.
async fn renew(shared: Weak<Shared>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let Some(shared) = shared.upgrade() else { return };
        if lock(&shared.held).is_empty() {
            continue;
        }
        let renew = PgStatement::new(
            "UPDATE leases SET expires = clock_timestamp() + $2 * interval '1 millisecond' WHERE holder = $1",
            vec![text(&shared.holder), shared.lease()],
        );
        // The next one is soon.
        let _ = shared.pool.write(&[renew], interval, Repeat::Harmless).await;
    }
}

/// Listens to answers as long as this process has the journal open.
async fn listen(shared: Weak<Shared>) {
    let looks = |shared: &Weak<Shared>| {
        if let Some(shared) = shared.upgrade() {
            lock(&shared.answered).clear();
            shared.looks.fetch_add(1, Ordering::SeqCst);
        }
    };
    while let Some(pool) = shared.upgrade().map(|shared| shared.pool.clone()) {
        let heard = |token: Option<String>| match (token, shared.upgrade()) {
            (Some(token), Some(shared)) if lock(&shared.answered).len() < HEARD => {
                lock(&shared.answered).insert(token);
            }
            _ => looks(&shared),
        };
        let fallback = async {
            loop {
                tokio::time::sleep(FALLBACK).await;
                looks(&shared);
                if shared.strong_count() == 0 {
                    return;
                }
            }
        };
        tokio::select! {
            // It is tried again.
            _ = pool.listen("LISTEN entail_answers", heard) => {}
            () = fallback => {}
        }
        drop(pool);
        looks(&shared);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

impl Database for Postgres {
    fn each(
        &self,
        query: &Statement,
        visit: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        // The connection is free before the first visit, which may need it.
        self.query(query.into())?.iter().try_for_each(|row| visit(&Row(row)))
    }

    fn write(&self, held: Option<&RunLock>, statements: &[Statement]) -> Result<u64, DbError> {
        let fence = held.and_then(|lock| lock.fence());
        let all: Vec<PgStatement> = fence.iter().chain(statements).map(PgStatement::from).collect();
        let changed = self.carry_out(all, Repeat::Never).map_err(|e| fenced(e, fence.is_some()))?;
        Ok(changed.saturating_sub(fence.is_some().into()))
    }

    fn append(&self, held: &RunLock, statements: &[Statement]) -> Result<(), DbError> {
        let all: Vec<PgStatement> = held.fence().iter().chain(statements).map(PgStatement::from).collect();
        self.carry_out(all, Repeat::Harmless).map(|_| ()).map_err(|e| fenced(e, true))
    }

    fn begin(&self, run: NewRun) -> Result<RunLock, JournalError> {
        let settings = parse(&run.settings).unwrap_or_default();
        let field = |name: &str| PgValue::Text(settings[name].as_str().map(String::from));
        let mut add = PgStatement::from(&run.statement());
        // Fields for queries, beside what every journal has.
        add.sql = "INSERT INTO runs (id, created, name, program, digest, input, settings, status,
                 caller, idempotency_key, request_digest, after_run)
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8, $9, $10, $11)"
            .into();
        add.values.extend(["caller", "idempotencyKey", "requestDigest", super::super::AFTER_RUN].map(field));
        let hold = PgStatement::new(
            "INSERT INTO leases VALUES ($1, 1, $2, clock_timestamp() + $3 * interval '1 millisecond')",
            vec![text(&run.id), text(&self.0.holder), self.0.lease()],
        );
        lock(&self.0.held).insert(run.id.clone());
        match self.carry_out(vec![add, hold], Repeat::Never) {
            Ok(_) => Ok(self.lease(&run.id, 1)),
            Err(e) => {
                lock(&self.0.held).remove(&run.id);
                Err(self.failed(&e))
            }
        }
    }

    fn lock(&self, run: &str) -> Result<RunLock, JournalError> {
        // What this process has just released may still be on its way.
        let is_free = || {
            (0..20).any(|_| {
                let is_free = lock(&self.0.held).insert(run.to_string());
                if !is_free {
                    std::thread::sleep(Duration::from_millis(25));
                }
                is_free
            })
        };
        if !is_free() {
            let taken = JournalError::new(format!("another process executes run `{run}`"));
            return Err(taken.with_help("it is this process"));
        }
        let free = |e| {
            lock(&self.0.held).remove(run);
            e
        };
        if let Some(generation) = self.take(run).map_err(|e| free(self.failed(&e)))? {
            return Ok(self.lease(run, generation));
        }
        let holder = self.holder(run).map_err(|e| free(self.failed(&e)))?;
        let taken = JournalError::new(format!("another process executes run `{run}`"));
        Err(free(match holder {
            Some((holder, seconds)) => {
                let by = holder.rsplit_once(", ").map_or(&*holder, |(by, _)| by);
                taken.with_help(format!("{by} has it; its lease ends in {seconds} s unless it is renewed"))
            }
            None => taken,
        }))
    }

    fn is_locked(&self, run: &str) -> bool {
        self.holder(run).is_ok_and(|holder| holder.is_some())
    }

    fn is_free(&self) -> &'static str {
        "NOT EXISTS (SELECT FROM leases WHERE leases.run = runs.id AND leases.expires > clock_timestamp())"
    }

    fn takeover(&self) -> Option<Duration> {
        Some(self.0.pool.server().lease() / 3)
    }

    fn version(&self, question: &str) -> Result<i64, DbError> {
        if !self.0.listens.swap(true, Ordering::SeqCst) {
            spawn(listen(Arc::downgrade(&self.0)));
        }
        let looks = self.0.looks.load(Ordering::SeqCst);
        Ok(2 * looks + i64::from(lock(&self.0.answered).contains(question)))
    }

    fn wake(&self, question: &str) -> Option<Statement> {
        Some(Statement::new("SELECT pg_notify('entail_answers', ?1)").with(question))
    }

    /// The server looks after its files.
    fn is_intact(&self) -> Result<bool, DbError> {
        Ok(true)
    }

    fn another(&self) -> Result<Box<dyn Database>, JournalError> {
        Ok(Box::new(self.clone()))
    }

    fn copy_of_run(&self, run: &str, fork: &str, now: i64) -> Statement {
        let copy = "INSERT INTO runs (id, created, name, program, digest, input, settings, parent, status,
                 caller, after_run)
             SELECT ?1, ?2, name, program, digest, input, settings, id, 'running', caller, after_run
             FROM runs WHERE id = ?3";
        Statement::new(copy).with(fork).with(now).with(run)
    }

    fn field(&self, name: &str) -> String {
        match name {
            "caller" => "runs.caller",
            "idempotencyKey" => "runs.idempotency_key",
            "requestDigest" => "runs.request_digest",
            super::super::AFTER_RUN => "runs.after_run",
            super::super::programs::KEPT => "(runs.settings::json ->> 'kept')",
            // No other field is asked for.
            _ => "NULL",
        }
        .into()
    }

    fn error_code(&self) -> &'static str {
        "CASE WHEN status IN ('failed', 'stopped') THEN outcome::json ->> 'error' END"
    }

    fn indexes(&self) -> &'static [&'static str] {
        &[""]
    }

    fn shown(&self) -> String {
        self.0.pool.server().to_string()
    }

    fn restore(&self) -> &'static str {
        RESTORE
    }
}

/// The failure of a transaction that may have had a fence.
fn fenced(e: PgError, had_fence: bool) -> DbError {
    match had_fence && e.is(&SqlState::DIVISION_BY_ZERO) {
        true => DbError { cause: "another process has taken the run over".into(), is_damaged: false },
        false => e.into(),
    }
}

impl From<PgError> for DbError {
    fn from(e: PgError) -> DbError {
        let cause = match &e.kind {
            PgErrorKind::Refused(code) if *code == SqlState::DISK_FULL => {
                "the disk of the server is full".into()
            }
            PgErrorKind::Unreachable => format!("the server can't be reached: {}", e.cause),
            PgErrorKind::Lost => format!("the connection was lost: {}", e.cause),
            _ => e.cause,
        };
        DbError { cause, is_damaged: false }
    }
}

impl From<&Statement> for PgStatement {
    fn from(statement: &Statement) -> PgStatement {
        let values = statement.values.iter().map(|value| match value.clone() {
            Value::Int(n) => PgValue::Int(n),
            Value::Text(text) => PgValue::Text(text),
            Value::Blob(bytes) => PgValue::Bytes(bytes),
        });
        // No statement has a question mark in a text.
        PgStatement::new(statement.sql.replace('?', "$"), values.collect())
    }
}

impl Cells for tokio_postgres::Row {
    fn cell(&self, column: usize) -> Result<Cell<'_>, DbError> {
        let Some(about) = self.columns().get(column) else { return Err(DbError::damaged()) };
        let cell = match *about.type_() {
            Type::INT8 => self.try_get::<_, Option<i64>>(column).map(|n| n.map(Cell::Int)),
            Type::INT4 => self.try_get::<_, Option<i32>>(column).map(|n| n.map(|n| Cell::Int(n.into()))),
            Type::BOOL => self.try_get::<_, Option<bool>>(column).map(|b| b.map(|b| Cell::Int(b.into()))),
            Type::TEXT => self.try_get::<_, Option<&str>>(column).map(|text| text.map(Cell::Text)),
            Type::BYTEA => self.try_get::<_, Option<&[u8]>>(column).map(|bytes| bytes.map(Cell::Blob)),
            // Somebody changed the tables.
            _ => return Err(DbError::damaged()),
        };
        cell.map(|cell| cell.unwrap_or(Cell::Null)).map_err(|_| DbError::damaged())
    }
}
