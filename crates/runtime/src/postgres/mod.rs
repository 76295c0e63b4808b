//! Connections to Postgres servers.
//!
//! Entry point: [`PostgresServer`]. Statements wait for one of a few connections, which are kept. A statement
//! that can't have been carried out, or may be twice, is repeated while the server is away.
//!
//! Invariant: no message holds a password.
//! Invariant: a thread of its own works on all connections, so any other thread may wait for an answer.

mod address;

pub use address::PostgresServer;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

/// Connections of one process to one server.
const CONNECTIONS: usize = 8;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);

/// Time limit for the answers to the statements of a transaction.
const ANSWER: Duration = Duration::from_secs(30);

/// Time for which statements are repeated while the server is away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Pauses between attempts: the first, doubled up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Settings of every connection. Durability and isolation do not depend on the server's defaults, and a
/// client that is gone holds no lock for long.
const SETTINGS: &str = "
    SET search_path TO entail;
    SET synchronous_commit TO on;
    SET default_transaction_isolation TO 'read committed';
    SET idle_in_transaction_session_timeout TO '15s';
    SET lock_timeout TO '10s';
    SET client_min_messages TO warning";

/// A value of a statement; `None` is null.
#[derive(Clone, Debug)]
pub(crate) enum PgValue {
    /// `bigint`.
    Int(Option<i64>),
    /// `text`.
    Text(Option<String>),
    /// `bytea`.
    Bytes(Option<Vec<u8>>),
}

impl PgValue {
    fn typed(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            PgValue::Int(n) => (n, Type::INT8),
            PgValue::Text(text) => (text, Type::TEXT),
            PgValue::Bytes(bytes) => (bytes, Type::BYTEA),
        }
    }
}

/// A statement with values `$1`, `$2` and so on.
#[derive(Clone, Debug)]
pub(crate) struct PgStatement {
    pub(crate) sql: String,
    pub(crate) values: Vec<PgValue>,
}

impl PgStatement {
    pub(crate) fn new(sql: impl Into<String>, values: Vec<PgValue>) -> PgStatement {
        PgStatement { sql: sql.into(), values }
    }

    /// Texts of Postgres can't hold the character NUL.
    fn has_nul(&self) -> bool {
        let nul = |value: &PgValue| matches!(value, PgValue::Text(Some(text)) if text.contains('\0'));
        self.values.iter().any(nul)
    }
}

/// Kind of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PgErrorKind {
    /// There is no connection: nothing was carried out.
    Unreachable,
    /// The connection was lost: whether the statements were carried out is not known.
    Lost,
    /// The server refused a statement, with this code.
    Refused(SqlState),
    /// The request itself is wrong.
    Invalid,
}

/// Reason why a server can't be used.
#[derive(Clone, Debug)]
pub(crate) struct PgError {
    pub(crate) kind: PgErrorKind,
    /// The problem, on one line and without secrets.
    pub(crate) cause: String,
}

impl PgError {
    fn new(kind: PgErrorKind, cause: impl Into<String>) -> PgError {
        PgError { kind, cause: cause.into() }
    }

    /// An error of the client library. Of a message of the server only its main line is taken, as others may
    /// quote values.
    fn of(e: &tokio_postgres::Error, connecting: bool) -> PgError {
        let clip = |text: &str| diagnostics::clip_to(&text.replace(['\n', '\r'], " "), 200);
        if let Some(db) = e.as_db_error() {
            let away = [
                SqlState::ADMIN_SHUTDOWN,
                SqlState::CRASH_SHUTDOWN,
                SqlState::CANNOT_CONNECT_NOW,
                SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            ];
            let kind = match (away.contains(db.code()), connecting) {
                (true, true) => PgErrorKind::Unreachable,
                (true, false) => PgErrorKind::Lost,
                (false, true) if *db.code() == SqlState::TOO_MANY_CONNECTIONS => PgErrorKind::Unreachable,
                (false, _) => PgErrorKind::Refused(db.code().clone()),
            };
            return PgError::new(kind, clip(db.message()));
        }
        let source = std::error::Error::source(e).map(|s| format!(": {s}")).unwrap_or_default();
        let said = e.to_string();
        // The library tells these apart in its text alone. They stay as they are.
        let is_setup = ["invalid configuration", "authentication error", "error performing TLS handshake"];
        let kind = match connecting {
            true if is_setup.iter().any(|setup| said.starts_with(setup)) => PgErrorKind::Invalid,
            true => PgErrorKind::Unreachable,
            false if e.is_closed() || source_is_io(e) => PgErrorKind::Lost,
            false => PgErrorKind::Invalid,
        };
        PgError::new(kind, clip(&if said.ends_with(&source) { said } else { format!("{said}{source}") }))
    }

    /// Returns true if the server refused a statement with this code.
    pub(crate) fn is(&self, code: &SqlState) -> bool {
        matches!(&self.kind, PgErrorKind::Refused(refused) if refused == code)
    }
}

/// Returns true if the error comes from the connection.
fn source_is_io(e: &tokio_postgres::Error) -> bool {
    std::error::Error::source(e).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// Effect of carrying statements out twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// The second time changes nothing.
    Harmless,
    /// They must not be.
    Never,
}

/// A connection.
pub(crate) struct Connection {
    client: Client,
    work: JoinHandle<()>,
    /// Statements of transactions that the server has compiled. Their texts are few.
    compiled: Mutex<HashMap<String, Statement>>,
}

impl Connection {
    fn new(client: Client, work: JoinHandle<()>) -> Connection {
        Connection { client, work, compiled: Mutex::default() }
    }

    async fn compiled(&self, statement: &PgStatement) -> Result<Statement, tokio_postgres::Error> {
        if let Some(compiled) = lock(&self.compiled).get(&statement.sql) {
            return Ok(compiled.clone());
        }
        let types: Vec<Type> = statement.values.iter().map(|value| value.typed().1).collect();
        let compiled = self.client.prepare_typed(&statement.sql, &types).await?;
        lock(&self.compiled).insert(statement.sql.clone(), compiled.clone());
        Ok(compiled)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Also one that the server does not answer any more.
        self.work.abort();
    }
}

/// A request to a connection.
#[derive(Clone, Copy)]
enum Ask<'a> {
    Query(&'a PgStatement),
    Write(&'a [PgStatement]),
    Batch(&'a str),
}

/// The rows of a query, or the number of rows that were changed.
type Told = (Vec<Row>, u64);

impl Ask<'_> {
    async fn of(self, connection: &Connection) -> Result<Told, tokio_postgres::Error> {
        let client = &connection.client;
        match self {
            Ask::Query(query) => {
                let values: Vec<_> = query.values.iter().map(PgValue::typed).collect();
                Ok((client.query_typed(&query.sql, &values).await?, 0))
            }
            Ask::Batch(sql) => client.batch_execute(sql).await.map(|()| (Vec::new(), 0)),
            Ask::Write(statements) => {
                let mut compiled = Vec::with_capacity(statements.len());
                for statement in statements {
                    let values: Vec<_> = statement.values.iter().map(|value| value.typed().0).collect();
                    compiled.push((connection.compiled(statement).await?, values));
                }
                let mut work: Vec<Work<'_>> = vec![command(client, "BEGIN")];
                for (statement, values) in &compiled {
                    work.push(Box::pin(client.execute(statement, values)));
                }
                // After a statement that failed this rolls back.
                work.push(command(client, "COMMIT"));
                Ok((Vec::new(), in_order(work).await?))
            }
        }
    }
}

/// A statement under way.
type Work<'a> = Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + Send + 'a>>;

fn command<'a>(client: &'a Client, sql: &'static str) -> Work<'a> {
    Box::pin(async move { client.batch_execute(sql).await.map(|()| 0) })
}

/// The connections of this process to a server.
pub(crate) struct Pool {
    server: PostgresServer,
    idle: Mutex<Vec<Connection>>,
    free: Semaphore,
}

impl Pool {
    /// The connections to a server: the same for all that use it.
    pub(crate) fn of(server: &PostgresServer) -> Arc<Pool> {
        static POOLS: Registry<Pool> = Registry::new();
        POOLS.get(server.key(), || Pool {
            server: server.clone(),
            idle: Mutex::default(),
            free: Semaphore::new(CONNECTIONS),
        })
    }

    pub(crate) fn server(&self) -> &PostgresServer {
        &self.server
    }

    /// The rows of a query. It is repeated while the server is away, for this time.
    pub(crate) async fn query(&self, query: &PgStatement, patience: Duration) -> Result<Vec<Row>, PgError> {
        refuse_nul(std::slice::from_ref(query))?;
        Ok(self.repeat(patience, Repeat::Harmless, Ask::Query(query)).await?.0)
    }

    /// Carries statements out in one transaction, all of them in one exchange with the server. Returns the
    /// number of rows that they changed.
    pub(crate) async fn write(
        &self,
        statements: &[PgStatement],
        patience: Duration,
        repeat: Repeat,
    ) -> Result<u64, PgError> {
        refuse_nul(statements)?;
        Ok(self.repeat(patience, repeat, Ask::Write(statements)).await?.1)
    }

    /// Statements in one message, of our own text alone. They are one transaction.
    pub(crate) async fn batch(&self, sql: &str) -> Result<(), PgError> {
        self.repeat(Duration::ZERO, Repeat::Never, Ask::Batch(sql)).await.map(|_| ())
    }

    async fn repeat(&self, patience: Duration, repeat: Repeat, ask: Ask<'_>) -> Result<Told, PgError> {
        // Never closed.
        let _turn = self.free.acquire().await;
        let (began, mut pause) = (Instant::now(), PAUSES.0);
        loop {
            let asked = match self.connection().await {
                Ok(connection) => self.ask(connection, ask).await,
                Err(e) => Err(e),
            };
            let may_repeat = match asked.as_ref().map_err(|e| &e.kind) {
                Err(PgErrorKind::Unreachable) => true,
                Err(PgErrorKind::Lost) => repeat == Repeat::Harmless,
                _ => false,
            };
            if !may_repeat || began.elapsed() + pause > patience {
                return asked;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn ask(&self, connection: Connection, ask: Ask<'_>) -> Result<Told, PgError> {
        let Ok(told) = tokio::time::timeout(ANSWER, ask.of(&connection)).await else {
            // The connection is dropped: its late answer would be read as that of the next question.
            let why = format!("the server did not answer within {} s", ANSWER.as_secs());
            return Err(PgError::new(PgErrorKind::Lost, why));
        };
        let told = told.map_err(|e| PgError::of(&e, false));
        // What is lost, or may be in the middle of a transaction, is dropped.
        if told.as_ref().map_or_else(|e| matches!(e.kind, PgErrorKind::Refused(_)), |_| true) {
            lock(&self.idle).push(connection);
        }
        told
    }

    /// A connection that is not in use, or a new one.
    async fn connection(&self) -> Result<Connection, PgError> {
        loop {
            let idle = lock(&self.idle).pop();
            match idle {
                Some(connection) if connection.client.is_closed() => {}
                Some(connection) => return Ok(connection),
                None => break,
            }
        }
        let (client, connection) = self.server.connect().await?;
        // An error of the connection is that of the statement that waits.
        let work = tokio::spawn(async move { drop(connection.await) });
        let connection = Connection::new(client, work);
        connection.client.batch_execute(SETTINGS).await.map_err(|e| PgError::of(&e, true))?;
        Ok(connection)
    }

    /// Listens to a channel over a connection of its own, until that is lost. `heard` gets what is said, and
    /// first `None`: what was said before was not heard.
    pub(crate) async fn listen(
        &self,
        listen: &str,
        mut heard: impl FnMut(Option<String>),
    ) -> Result<(), PgError> {
        let (client, mut connection) = self.server.connect().await?;
        let (said, mut hear) = tokio::sync::mpsc::unbounded_channel();
        let work = tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(message) = message
                    && said.send(message.payload().to_string()).is_err()
                {
                    break;
                }
            }
        });
        let connection = Connection::new(client, work);
        connection.client.batch_execute(listen).await.map_err(|e| PgError::of(&e, true))?;
        heard(None);
        while let Some(said) = hear.recv().await {
            heard(Some(said));
        }
        Ok(())
    }
}

fn refuse_nul(statements: &[PgStatement]) -> Result<(), PgError> {
    match statements.iter().any(PgStatement::has_nul) {
        false => Ok(()),
        true => {
            let why = "a text has the character NUL, which Postgres can't keep";
            Err(PgError::new(PgErrorKind::Invalid, why))
        }
    }
}

/// Begins all of these before it waits for the first, so they are one exchange. Gives the sum of their
/// results, or the first error. After one that can't be sent none is begun, so nothing is committed.
async fn in_order(mut work: Vec<Work<'_>>) -> Result<u64, tokio_postgres::Error> {
    let mut done: Vec<Option<Result<u64, tokio_postgres::Error>>> = work.iter().map(|_| None).collect();
    let mut is_sent = false;
    std::future::poll_fn(|cx| {
        // The answers come in this order, too.
        for (work, done) in work.iter_mut().zip(&mut done).filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(result) = work.as_mut().poll(cx) {
                let stops = result.is_err() && !is_sent;
                *done = Some(result);
                if stops {
                    return Poll::Ready(());
                }
            }
        }
        is_sent = true;
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().sum()
}

/// Objects that all who use the same server share, as long as one of them lives.
pub(crate) struct Registry<T>(LazyLock<Mutex<HashMap<String, Weak<T>>>>);

impl<T> Registry<T> {
    pub(crate) const fn new() -> Registry<T> {
        Registry(LazyLock::new(Mutex::default))
    }

    /// The object of this name, or a new one.
    pub(crate) fn get(&self, name: &str, new: impl FnOnce() -> T) -> Arc<T> {
        let mut all = lock(&self.0);
        if let Some(found) = all.get(name).and_then(Weak::upgrade) {
            return found;
        }
        all.retain(|_, other| other.strong_count() > 0);
        let made = Arc::new(new());
        all.insert(name.to_string(), Arc::downgrade(&made));
        made
    }
}

/// The thread that works on connections.
static BACKGROUND: LazyLock<Result<Handle, String>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| e.to_string())?;
    let handle = runtime.handle().clone();
    let work = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name("postgres".into()).spawn(work).map_err(|e| e.to_string())?;
    Ok(handle)
});

/// Gives work to the thread of all connections.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    // Without the thread there is no connection, and whoever waits for one is told so.
    if let Ok(background) = &*BACKGROUND {
        background.spawn(work);
    }
}

/// Does work on the thread of all connections, and waits for it.
pub(crate) fn wait<T: Send + 'static>(
    work: impl Future<Output = Result<T, PgError>> + Send + 'static,
) -> Result<T, PgError> {
    let (done, result) = std::sync::mpsc::sync_channel(1);
    match &*BACKGROUND {
        // Whoever does not wait any more does not mind.
        Ok(background) => drop(background.spawn(async move { drop(done.send(work.await)) })),
        Err(why) => return Err(PgError::new(PgErrorKind::Unreachable, why.as_str())),
    }
    let receive = || {
        let gone = PgError::new(PgErrorKind::Lost, "the connection was given up");
        result.recv().unwrap_or(Err(gone))
    };
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        // Others of its tasks go on.
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(receive),
        _ => receive(),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is locked is left half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
