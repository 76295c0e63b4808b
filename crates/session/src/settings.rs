//! `entail.toml` and the environment.

use crate::callers::{CallerEntry, ServeEntry};
use crate::error::SettingsError;
use crate::frameworks::LintSettings;
use crate::load;
use analysis::cost::{Prices, TokenPrice};
use core_ir::Data;
use runtime::{
    Approvers, Environment, FileSettings, McpServer, ModelEntry, ModelSettings, Pins, PostgresServer, Price,
    PriceList, PythonSettings, RedisServer, StorePlace, Stores, TelemetryEntry,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Contents of `entail.toml`. Unknown fields are errors, so that a slip is not a silent default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    model: Option<runtime::Chain>,
    models: BTreeMap<String, ModelEntry>,
    handlers: BTreeMap<String, serde_json::Value>,
    mcp: BTreeMap<String, McpServer>,
    python: PythonSettings,
    lint: LintSettings,
    stores: BTreeMap<String, StoreEntry>,
    limits: LimitsEntry,
    retry_timeouts: bool,
    policy: Option<PathBuf>,
    approvers: BTreeMap<String, ApproverEntry>,
    serve: ServeEntry,
    callers: BTreeMap<String, CallerEntry>,
    plan: Option<PlanEntry>,
    telemetry: TelemetryEntry,
}

impl File {
    fn read(path: &Path) -> Result<File, SettingsError> {
        let text = load::read_kept(path).map_err(|e| SettingsError::unreadable(path, &e))?;
        toml::from_str(&text).map_err(|e| {
            let (shown, problem) = (path.display(), runtime::toml_problem(&text, &e));
            SettingsError::new(format!("`{shown}` is wrong: {problem}"))
        })
    }
}

impl File {
    /// The public keys of `[approvers]`.
    fn approvers(&self) -> Result<Approvers, String> {
        let keys = self.approvers.iter().map(|(name, entry)| match entry.key.parse() {
            Ok(key) => Ok((name.clone(), key)),
            Err(why) => Err(format!("the `key` of `[approvers.{name}]` is wrong: {why}")),
        });
        Ok(Approvers::new(keys.collect::<Result<Vec<_>, _>>()?))
    }
}

/// One `[stores.NAME]`: where a store is kept, in one of these ways, and who shares it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StoreEntry {
    /// An SQLite file.
    sqlite: Option<PathBuf>,
    /// The address of a Postgres server, without a password.
    postgres: Option<String>,
    /// The variable that holds the address of a Postgres server, with a password or without.
    postgres_env: Option<String>,
    /// The address of a Redis server, without a password.
    redis: Option<String>,
    /// The variable that holds the address of a Redis server, with a password or without.
    redis_env: Option<String>,
    /// True if all callers of a server and all programs that it serves share the entries.
    shared: bool,
}

impl StoreEntry {
    /// The place of the store, if it is not in the process.
    ///
    /// # Errors
    /// The mistake in the entry.
    fn place(self, dir: &Path, environment: &Environment) -> Result<Option<StorePlace>, String> {
        let StoreEntry { sqlite, postgres, postgres_env, redis, redis_env, shared } = self;
        let password = environment.get(PGPASSWORD);
        let at_postgres = |address: &str| PostgresServer::at(address, password).map(StorePlace::Postgres);
        let at_redis = |address: &str| RedisServer::at(address).map(StorePlace::Redis);
        // It is needed where the store is used.
        let named = |variable: String, at: &dyn Fn(&str) -> Result<StorePlace, String>| {
            let Some(address) = environment.get(&variable) else { return Ok(StorePlace::NotSet(variable)) };
            at(address).map_err(|why| format!("the variable `{variable}`: {why}"))
        };
        let place = match (sqlite, postgres, postgres_env, redis, redis_env) {
            (Some(file), None, None, None, None) => StorePlace::File(dir.join(file)),
            (None, Some(address), None, None, None) => match PostgresServer::shows_password(&address) {
                false => at_postgres(&address)?,
                true => return Err(no_password("postgres_env")),
            },
            (None, None, Some(variable), None, None) => named(variable, &at_postgres)?,
            (None, None, None, Some(address), None) => {
                let server = RedisServer::at(&address)?;
                if server.has_password() {
                    return Err(no_password("redis_env"));
                }
                StorePlace::Redis(server)
            }
            (None, None, None, None, Some(variable)) => named(variable, &at_redis)?,
            (None, None, None, None, None) if shared => return Ok(None),
            _ => {
                let ways = "set one of `sqlite`, `postgres`, `postgres_env`, `redis` and `redis_env`";
                return Err(ways.to_string());
            }
        };
        Ok(Some(place))
    }
}

/// The variable of the password for Postgres servers, as other clients have it.
const PGPASSWORD: &str = "PGPASSWORD";

fn no_password(variable: &str) -> String {
    format!(
        "a password has no place in this file: name the variable that holds the address with `{variable}`"
    )
}

/// `[plan]`: plan mode as a pipeline of servers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlanEntry {
    /// Tools as `entail plan --tools` names them; files are relative to the settings.
    pub tools: Vec<String>,
    /// The model that writes plans; the default model without it.
    pub planner: Option<String>,
    /// The model that `ask` of plans asks; the default model without it.
    pub quarantine: Option<String>,
    /// Maximum number of further plans, each after findings about the one before.
    pub replan: Option<u32>,
    /// Maximum number of further plans, each after a plan that was run and ended with an error.
    pub replan_errors: Option<u32>,
    /// Maximum number of rounds of a `while` loop.
    pub max_rounds: Option<u64>,
    /// True if the planner may see what MCP servers say of tools that nobody has approved.
    pub unpinned: bool,
}

/// One `[approvers.NAME]`: an approver whose signed answers count.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApproverEntry {
    /// The public key that `entail approve --new-key` shows.
    key: String,
}

/// The variable that holds the address of the Redis server of stores whose program says `redis` and which
/// have no entry.
const REDIS_URL: &str = "REDIS_URL";

/// `[limits]`: what a run may use if the command line does not say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsEntry {
    /// Calls of models.
    pub calls: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Tokens of prompts and replies.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
    /// Seconds.
    pub timeout: Option<f64>,
    /// Seconds for which a question whether a tool may be called can be answered; a week without it.
    pub approval: Option<f64>,
}

/// Settings from `entail.toml` and the `.env` beside it: models, handlers of tools, servers, stores, limits.
#[derive(Debug)]
pub struct Settings {
    /// Models.
    pub models: FileSettings,
    /// Implementations of tools and tasks with empty bodies.
    pub handlers: Vec<(String, Data)>,
    /// MCP servers.
    pub mcp: BTreeMap<String, McpServer>,
    /// Settings of Python functions.
    pub python: PythonSettings,
    /// Locations of the stores that outlive the process.
    stores: Vec<(core_ir::Name, StorePlace)>,
    /// Stores that all callers and programs of a server share.
    shared_stores: Vec<core_ir::Name>,
    /// Location of stores whose program says `redis` and that have no entry.
    redis: Option<RedisServer>,
    /// Limits of a run.
    pub limits: LimitsEntry,
    /// Settings of lint.
    pub lint: LintSettings,
    /// True if the `retries` of programs also retry timeouts.
    retry_timeouts: bool,
    /// The policy file.
    policy: Option<PathBuf>,
    /// Approvers that may answer questions from outside the process of a run.
    pub approvers: Approvers,
    /// Settings of the server.
    pub serve: ServeEntry,
    /// Callers that may reach a server, by name.
    pub callers: BTreeMap<String, CallerEntry>,
    /// Plan mode as a pipeline of servers, if it is offered.
    pub plan: Option<PlanEntry>,
    /// Destination of traces and metrics.
    pub telemetry: TelemetryEntry,
    /// Prices of models, if there is a list of them beside the settings.
    own_prices: Option<Arc<Prices>>,
    /// Approved definitions of MCP servers.
    pub pins: Pins,
    /// The directory that paths in the settings are relative to.
    pub dir: PathBuf,
    /// The variables of the process and of `.env`.
    pub environment: Environment,
}

impl Settings {
    /// File of approved definitions of MCP servers, beside `entail.toml`.
    pub const LOCK: &str = "entail.lock";

    /// File of prices that replaces the list that comes with Entail, beside `entail.toml`.
    pub const PRICES: &str = "entail.prices.toml";

    /// Reads this file, or the nearest `entail.toml` from the working directory upwards if none is named, and
    /// the `.env` beside it.
    ///
    /// # Errors
    /// The file can't be read or used.
    pub fn read(config: Option<&Path>) -> Result<Settings, SettingsError> {
        match config {
            Some(path) => Settings::of(Some(path)),
            None => Settings::nearest(),
        }
    }

    /// Loads the nearest `entail.toml` from the working directory upwards, or the default settings if there
    /// is none.
    ///
    /// # Errors
    /// It is there and can't be used.
    pub fn nearest() -> Result<Settings, SettingsError> {
        Settings::of(std::env::current_dir().ok().and_then(|here| nearest(&here)).as_deref())
    }

    /// Loads a file such as `entail.toml`.
    ///
    /// # Errors
    /// It can't be read or used.
    pub fn load(path: impl AsRef<Path>) -> Result<Settings, SettingsError> {
        Settings::of(Some(path.as_ref()))
    }

    fn of(path: Option<&Path>) -> Result<Settings, SettingsError> {
        let wrong = |why: String| SettingsError::new(why);
        let dir = path.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default();
        let file = match path {
            None => File::default(),
            Some(path) => File::read(path)?,
        };
        let approvers = file.approvers().map_err(wrong)?;
        let mut handlers = Vec::new();
        for (name, value) in &file.handlers {
            let data = Data::from_json(value).map_err(|e| wrong(format!("the handler of `{name}`: {e}")))?;
            handlers.push((name.clone(), data));
        }
        let environment =
            Environment::of_process().with_file(&dir.join(".env")).map_err(SettingsError::from)?;
        let models = FileSettings { model: file.model, models: file.models };
        let (mut stores, mut shared_stores) = (Vec::new(), Vec::new());
        for (name, entry) in file.stores {
            if entry.shared {
                shared_stores.push(name.as_str().into());
            }
            let place = entry.place(&dir, &environment);
            let place = place.map_err(|why| wrong(format!("`[stores.{name}]` is wrong: {why}")))?;
            stores.extend(place.map(|place| (name.as_str().into(), place)));
        }
        let redis = match environment.get(REDIS_URL).filter(|a| !a.trim().is_empty()) {
            None => None,
            // Others may mean something else by it, so it is an error only where it is used.
            Some(address) => RedisServer::at(address.trim()).ok(),
        };
        let policy = file.policy.map(|p| dir.join(p));
        let (serve, callers, plan) = (file.serve, file.callers, file.plan);
        let (lint, limits, retry_timeouts) = (file.lint, file.limits, file.retry_timeouts);
        let mcp = file.mcp.into_iter().map(|(name, server)| {
            let mut server = server.within(&dir);
            if let (Some(_), Some(url)) = (&server.oauth, &server.url) {
                server.token_file = crate::keyring::token_file(&name, url);
            }
            (name, server)
        });
        let mcp = mcp.collect();
        let lock = dir.join(Settings::LOCK);
        let pins = read_lock(&lock)?;
        let python = PythonSettings { dir: dir.clone(), locked: pins.modules().clone(), ..file.python };
        let own_prices = own_prices(&dir.join(Settings::PRICES))?.map(Arc::new);
        Ok(Settings {
            models,
            handlers,
            mcp,
            python,
            stores,
            shared_stores,
            redis,
            limits,
            lint,
            retry_timeouts,
            policy,
            approvers,
            serve,
            callers,
            plan,
            telemetry: file.telemetry,
            own_prices,
            pins,
            dir,
            environment,
        })
    }

    /// Creates the stores of the settings.
    pub fn fresh_stores(&self) -> Stores {
        Stores::new()
            .with_places(self.stores.clone())
            .with_shared(self.shared_stores.clone())
            .with_redis(self.redis.clone())
    }

    /// Returns the options for loading programs; a policy file of the command line replaces that of the
    /// settings.
    pub fn loading(&self, policy: Option<&Path>) -> load::Options {
        let policy = policy.map(Path::to_path_buf).or_else(|| self.policy.clone());
        let routes = self.model_settings(None).routes(&self.environment);
        let pins = Some(Arc::new(self.pins.clone()));
        load::Options { retry_timeouts: self.retry_timeouts, policy, undecided: false, routes, pins }
    }

    /// The models of a run, with this one for every call if there is one.
    pub fn model_settings(&self, model: Option<&str>) -> ModelSettings {
        ModelSettings {
            model: model.map(String::from),
            script: None,
            file: self.models.clone(),
            file_dir: self.dir.clone(),
            prices: self.price_list(),
        }
    }

    /// Prices of models: the list beside the settings, or the one that comes with Entail.
    pub fn prices(&self) -> &Prices {
        self.own_prices.as_deref().unwrap_or_else(|| Prices::standard())
    }

    /// Returns true if there is a list of prices beside the settings.
    pub fn has_own_prices(&self) -> bool {
        self.own_prices.is_some()
    }

    /// Prices for runs, out of the list of the settings.
    fn price_list(&self) -> PriceList {
        let own = self.own_prices.clone();
        PriceList::new(move |model| {
            let prices = own.as_deref().unwrap_or_else(|| Prices::standard());
            let TokenPrice { input, output, cached, cache_write } = prices.entry(model)?.1.price.clone()?;
            Some(Price { input, output, cached, cache_write })
        })
    }
}

/// Reads the list of prices beside the settings; `None` if there is none.
fn own_prices(path: &Path) -> Result<Option<Prices>, SettingsError> {
    match load::read_kept(path) {
        Ok(text) => match Prices::list(&text) {
            Ok(prices) => Ok(Some(prices)),
            Err(e) => Err(SettingsError::new(format!("{}:{e}", path.display())).with_help(Some(e.help))),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        // Without it, other prices would count.
        Err(e) => Err(SettingsError::unreadable(path, &e)),
    }
}

/// Reads the approved descriptions of servers; none if the file is not there.
///
/// # Errors
/// The file can't be read, or is wrong. Without it nothing would be held to anything.
pub fn read_lock(path: &Path) -> Result<Pins, SettingsError> {
    match load::read_kept(path) {
        Ok(text) => Pins::parse(&text).map_err(|why| {
            let help = "restore it, or remove it and approve the servers again with `entail guard --approve` or \
                        `entail lock`";
            SettingsError::new(format!("`{}` is wrong: {why}", path.display())).with_help(Some(help.into()))
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Pins::default()),
        Err(e) => Err(SettingsError::unreadable(path, &e)),
    }
}

/// The approvers that the settings name, and nothing else of them: those of this file, or of the nearest
/// `entail.toml` upwards.
///
/// # Errors
/// The file can't be used.
pub fn approvers(config: Option<&Path>) -> Result<Approvers, SettingsError> {
    let here = || std::env::current_dir().ok().and_then(|here| nearest(&here));
    let Some(path) = config.map(Path::to_path_buf).or_else(here) else { return Ok(Approvers::default()) };
    Ok(File::read(&path)?.approvers()?)
}

/// Returns the options for loading programs in a folder, from the file that `--config` names or the nearest
/// `entail.toml` upwards.
///
/// # Errors
/// Reason why that file cannot be used.
pub fn loading_in(folder: &Path, config: Option<&Path>) -> Result<load::Options, String> {
    let Some(path) = config.map(Path::to_path_buf).or_else(|| nearest(folder)) else {
        return Ok(load::Options::default());
    };
    let file = File::read(&path).map_err(|e| e.message)?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let pins = read_lock(&dir.join(Settings::LOCK)).map_err(|e| e.message)?;
    Ok(load::Options {
        retry_timeouts: file.retry_timeouts,
        policy: file.policy.map(|p| dir.join(p)),
        undecided: false,
        routes: Default::default(),
        pins: Some(Arc::new(pins)),
    })
}

/// Returns the lint settings of a folder, and the folder that their paths are relative to.
///
/// # Errors
/// Reason why the file cannot be used.
pub fn linting_in(folder: &Path, config: Option<&Path>) -> Result<(LintSettings, PathBuf), String> {
    let Some(path) = config.map(Path::to_path_buf).or_else(|| nearest(folder)) else {
        return Ok((LintSettings::default(), PathBuf::new()));
    };
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok((File::read(&path).map_err(|e| e.message)?.lint, dir))
}

/// The nearest `entail.toml` from a folder upwards.
fn nearest(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|d| d.join("entail.toml")).find(|p| p.is_file())
}
