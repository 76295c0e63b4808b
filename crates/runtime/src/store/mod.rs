//! Stores: in this process, in SQLite files, on a Postgres or a Redis server. They behave alike.
//!
//! Entry points: [`Stores::recall`], [`Stores::remember`], [`Stores::scoped`].
//!
//! Invariant: operations are atomic, and those of one store have a total order, whoever else uses it.
//! Invariant: a key gives only what is of its type and was written under its label.
//! Invariant: what an operation finds under a label depends on the time of its run and on what was written
//! under that label, and on nothing else.

#[cfg_attr(not(feature = "postgres"), path = "postgres_absent.rs")]
mod postgres;
#[cfg_attr(not(feature = "redis"), path = "redis_absent.rs")]
mod redis;
mod sqlite;

pub use redis::RedisServer;

use crate::{ConfigError, ConfigErrorKind, PostgresServer};
use core_ir::{Data, KeyDecl, Name, StoreConflict, StoreDecl, StoreTable};
use machine::store::StoreState;
use runs::of_type;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Backend names of stores that live in the process.
const HERE: [&str; 4] = ["memory", "in_memory", "local", "dict"];

/// Backend name of stores on a Postgres server.
const POSTGRES: &str = "postgres";

/// Backend name of stores on a Redis server.
const REDIS: &str = "redis";

/// Location of a store that outlives the process.
#[derive(Clone, Debug)]
pub enum StorePlace {
    /// An SQLite file.
    File(PathBuf),
    /// A Postgres server.
    Postgres(PostgresServer),
    /// A Redis server.
    Redis(RedisServer),
    /// A server whose address is in this variable, which is not set.
    NotSet(String),
}

/// A caller and a program, whose entries are separate from those of all others.
///
/// The names may hold any characters: in files and on servers each is written after its length, so no two
/// scopes meet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreScope {
    /// The name of the caller, such as the name of a token.
    pub caller: String,
    /// The name of the program, the same whenever it is served.
    pub program: String,
}

impl StoreScope {
    /// The name of the owner in files and on servers.
    fn owner(&self) -> String {
        [&*self.caller, &*self.program].map(prefixed).concat()
    }
}

/// A store whose address is in a variable that is not set.
fn not_set(store: &str, variable: &str) -> ConfigError {
    ConfigError::new(format!("no handler for store `{store}`: `{variable}` is not set"))
        .with_help(format!(
            "set `{variable}` to the address of the server, such as `redis://localhost:6379` or \
             `postgres://USER@HOST/DATABASE`, in the environment or in `.env`"
        ))
        .of_kind(ConfigErrorKind::NotSet(variable.to_string()))
}

/// A text after its length in bytes and a colon. No sequence of such texts is another one.
fn prefixed(text: &str) -> String {
    format!("{}:{text}", text.len())
}

/// Stores by name. A clone is the same stores, so what one run remembers another can recall as long as they
/// share it.
///
/// A store has one account for each label. An account holds at most as many entries as the capacity; the one
/// that was written longest ago goes first, and reading is no use. An entry expires by the lifetime that was
/// declared when it was written. Initial values are there from the beginning: they count toward the capacity
/// as entries older than all others. A [run](crate::run) reads the time once, when it begins, so entries
/// expire between runs only. See `docs/calculus.md` §10, stores.
///
/// # Scopes
/// All programs that use one `Stores` share what is in it, by the names of the stores. [`Stores::scoped`]
/// gives the same stores with entries that belong to one caller and one program, apart from those that are
/// [shared](Stores::with_shared).
///
/// ```
/// # use core_ir::{Data, KeyDecl, LabelSpec, StoreDecl, Type};
/// # use diagnostics::{FileId, Span};
/// use runtime::{StoreScope, Stores};
/// # let key = KeyDecl { name: "k".into(), ty: Type::Str, label: LabelSpec::BOTTOM, initial: None };
/// # let at = Span { file: FileId(0), start: 0, end: 0 };
/// # let (name, keys) = ("notes".into(), vec![key]);
/// # let notes = StoreDecl { name, keys, capacity: None, ttl: None, backend: None, span: at };
/// let all = Stores::new();
/// let of = |caller: &str| all.scoped(StoreScope { caller: caller.into(), program: "shop.agent".into() });
/// of("ann").remember(&notes, 0, Data::str("hers")).unwrap();
/// assert_eq!(of("ann").recall(&notes, 0), Ok(Some(Data::str("hers"))));
/// assert_eq!(of("bob").recall(&notes, 0), Ok(None));
/// ```
#[derive(Clone, Debug)]
pub struct Stores {
    here: Arc<Mutex<HashMap<(String, Name), StoreState>>>,
    /// Locations of the stores outside of the process.
    places: Arc<HashMap<Name, StorePlace>>,
    /// Names of the stores that all scopes share.
    shared: Arc<BTreeSet<Name>>,
    /// The default server for stores whose program names the backend `redis`.
    redis: Option<RedisServer>,
    /// Whatever programs say, all are in this process.
    only_here: bool,
    open: Arc<Mutex<HashMap<Name, Arc<Mutex<OpenStore>>>>>,
    /// The declarations that runs began with, by owner.
    declared: Arc<Mutex<HashMap<String, StoreTable>>>,
    /// The owner of entries, empty for the local user.
    owner: Arc<str>,
    /// The time of the run, in milliseconds since 1970. Without one each operation reads the clock.
    now: Option<i64>,
    /// A moment on both clocks: that of the world, which other processes share, and ours, which never jumps.
    epoch: (Duration, Instant),
}

/// A store that is kept elsewhere, in use.
#[derive(Debug)]
enum OpenStore {
    File(sqlite::File),
    Postgres(postgres::Client),
    Redis(Box<redis::Client>),
}

/// Operation on a key.
enum KeyOp {
    Recall,
    Remember(Data),
}

/// An operation on a key.
struct Operation<'a> {
    /// See [`StoreScope::owner`].
    owner: &'a str,
    decl: &'a StoreDecl,
    key: &'a KeyDecl,
    act: KeyOp,
    /// Milliseconds since 1970.
    now: i64,
}

impl Operation<'_> {
    /// Carries the operation out in this process.
    fn on(self, state: &mut StoreState) -> Result<Option<Data>, String> {
        match &self.act {
            KeyOp::Recall => state
                .recall(self.decl, self.key, self.now)
                .map(|data| of_type(self.decl, self.key, data))
                .transpose(),
            KeyOp::Remember(value) => {
                state.remember(self.decl, self.key, value.clone(), self.now);
                Ok(None)
            }
        }
    }

    /// Checks a value given as JSON in the exchange format.
    fn of_text(&self, text: &str) -> Result<Data, String> {
        let wrong = |why: String| format!("key `{}` of store `{}`: {why}", self.key.name, self.decl.name);
        let json = crate::journal::parse(text).map_err(|e| wrong(e.to_string()))?;
        of_type(self.decl, self.key, core_ir::exchange::data_from_json(&json).map_err(|e| wrong(e.message))?)
    }
}

/// The label of an account as it is written in files and on servers.
fn label_of(key: &KeyDecl) -> String {
    format!("{:?}", key.label)
}

impl Default for Stores {
    fn default() -> Stores {
        let world = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Stores {
            here: Arc::default(),
            places: Arc::default(),
            shared: Arc::default(),
            redis: None,
            only_here: false,
            open: Arc::default(),
            declared: Arc::default(),
            owner: "".into(),
            now: None,
            epoch: (world, Instant::now()),
        }
    }
}

impl Stores {
    /// Empty stores.
    pub fn new() -> Stores {
        Stores::default()
    }

    /// Empty stores that are all in this process, whatever backend programs name: for tests, which touch
    /// nothing outside.
    pub fn only_here() -> Stores {
        Stores { only_here: true, ..Stores::default() }
    }

    /// With these stores elsewhere (`[stores.NAME]` of `entail.toml`).
    #[must_use]
    pub fn with_places(mut self, places: impl IntoIterator<Item = (Name, StorePlace)>) -> Stores {
        self.places = Arc::new(places.into_iter().collect());
        self
    }

    /// With a server for stores whose program names the backend `redis` and which have no place
    /// (`REDIS_URL`).
    #[must_use]
    pub fn with_redis(mut self, server: Option<RedisServer>) -> Stores {
        self.redis = server;
        self
    }

    /// With these stores shared by all scopes (`shared = true` in `[stores.NAME]` of `entail.toml`).
    #[must_use]
    pub fn with_shared(mut self, names: impl IntoIterator<Item = Name>) -> Stores {
        self.shared = Arc::new(names.into_iter().collect());
        self
    }

    /// Returns whether all scopes share the store of this name.
    pub fn is_shared(&self, name: &str) -> bool {
        self.shared.contains(name)
    }

    /// Returns the stores restricted to one caller of one program: entries of other scopes, and of no scope,
    /// are neither visible nor evicted. Shared stores stay shared. This is cheap enough for every request.
    #[must_use]
    pub fn scoped(&self, scope: StoreScope) -> Stores {
        Stores { owner: scope.owner().into(), ..self.clone() }
    }

    /// The stores for a run that declares these and began at this time, in milliseconds since 1970. Makes and
    /// writes nothing.
    ///
    /// # Errors
    /// A mistake of configuration, which ends the run before it begins: a backend that is not configured, or
    /// another declaration of a store that a run with the same stores began with.
    pub(crate) fn begin(&self, stores: &[Arc<StoreDecl>], began: Option<i64>) -> Result<Stores, String> {
        for store in stores {
            self.place(store).map_err(|e| e.one_line())?;
            let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
            let table = declared.entry(self.owner_of(&store.name).to_string()).or_default();
            if let Err(conflict) = table.declare(store) {
                return Err(format!(
                    "{conflict}: another program uses it already (help: {})",
                    StoreConflict::HELP
                ));
            }
        }
        Ok(Stores { now: Some(began.unwrap_or_else(|| self.clock())), ..self.clone() })
    }

    /// The owner of the entries of a store.
    fn owner_of(&self, name: &str) -> &str {
        if self.is_shared(name) { "" } else { &self.owner }
    }

    /// The time, in milliseconds since 1970.
    fn clock(&self) -> i64 {
        let now = self.epoch.0 + self.epoch.1.elapsed();
        i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the location of a store; `None` for one that lives in this process.
    fn place(&self, decl: &StoreDecl) -> Result<Option<StorePlace>, ConfigError> {
        let name = &decl.name;
        if self.only_here {
            return Ok(None);
        }
        match self.places.get(name) {
            Some(StorePlace::NotSet(variable)) => return Err(not_set(name, variable)),
            Some(place) => return Ok(Some(place.clone())),
            None => {}
        }
        match decl.backend.as_deref() {
            None => Ok(None),
            Some(backend) if HERE.contains(&backend) => Ok(None),
            Some(REDIS) => match &self.redis {
                Some(server) => Ok(Some(StorePlace::Redis(server.clone()))),
                None => Err(ConfigError::new(format!(
                    "no handler for store `{name}`: its backend `redis` is not configured"
                ))
                .with_help(format!(
                    "set `REDIS_URL`, such as `redis://localhost:6379`, or add `[stores.{name}]` with \
                     `redis = \"redis://localhost:6379\"` to `entail.toml`"
                ))
                .of_kind(ConfigErrorKind::NotSet("REDIS_URL".into()))),
            },
            Some(POSTGRES) => Err(ConfigError::new(format!(
                "no handler for store `{name}`: its backend `postgres` is not configured"
            ))
            .with_help(format!(
                "add `[stores.{name}]` with `postgres = \"postgres://USER@HOST/DATABASE\"` to `entail.toml`"
            ))),
            Some(backend) => Err(ConfigError::new(format!(
                "no handler for store `{name}`: the backend `{backend}` is not configured"
            ))
            .with_help(format!(
                "add `[stores.{name}]` with `sqlite = \"memory.db\"` to `entail.toml`, or leave `backend` out to keep it in memory"
            ))),
        }
    }

    /// Reports a store whose backend is not configured, without opening it.
    ///
    /// # Errors
    /// There is no place for the backend that the declaration names.
    pub fn check(&self, decl: &StoreDecl) -> Result<(), ConfigError> {
        self.place(decl).map(|_| ())
    }

    /// Returns true if the store lives in this process, so that using it waits for nothing.
    pub(crate) fn is_in_process(&self, decl: &StoreDecl) -> bool {
        matches!(self.place(decl), Ok(None))
    }

    fn act(&self, decl: &StoreDecl, key: u32, act: KeyOp) -> Result<Option<Data>, String> {
        let Some(key) = decl.keys.get(key as usize) else {
            return Err(format!("store `{}` has no such key", decl.name));
        };
        let place = self.place(decl).map_err(|e| e.one_line())?;
        let now = self.now.unwrap_or_else(|| self.clock());
        let owner = self.owner_of(&decl.name);
        let operation = Operation { owner, decl, key, act, now };
        let Some(place) = place else {
            // A panic while the lock was held can't leave a store half changed in a way that matters.
            let mut stores = self.here.lock().unwrap_or_else(PoisonError::into_inner);
            return operation.on(stores.entry((owner.to_string(), decl.name.clone())).or_default());
        };
        let open = {
            let mut all = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            match all.get(&decl.name) {
                Some(open) => open.clone(),
                None => {
                    let open = match place {
                        StorePlace::File(path) => OpenStore::File(sqlite::File::open(&path)?),
                        StorePlace::Postgres(server) => OpenStore::Postgres(postgres::Client::of(&server)),
                        StorePlace::Redis(server) => OpenStore::Redis(Box::new(redis::Client::of(server))),
                        StorePlace::NotSet(variable) => return Err(not_set(&decl.name, &variable).one_line()),
                    };
                    all.entry(decl.name.clone()).or_insert(Arc::new(Mutex::new(open))).clone()
                }
            }
        };
        // A panic while the lock was held rolls the transaction back.
        let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *open {
            OpenStore::File(file) => file.carry_out(operation),
            OpenStore::Postgres(client) => client.carry_out(operation),
            OpenStore::Redis(client) => client.carry_out(operation),
        }
    }

    /// Returns the value of a key, if it has one. Waits for the file or the server, at most some seconds.
    ///
    /// # Errors
    /// The declaration asks for a backend that is not configured, the file or the server can't be used, or
    /// holds what is not of the key's type.
    pub fn recall(&self, decl: &StoreDecl, key: u32) -> Result<Option<Data>, String> {
        self.act(decl, key, KeyOp::Recall)
    }

    /// Writes a key.
    ///
    /// # Errors
    /// The errors of [`Stores::recall`].
    pub fn remember(&self, decl: &StoreDecl, key: u32, value: Data) -> Result<(), String> {
        self.act(decl, key, KeyOp::Remember(value)).map(|_| ())
    }
}
