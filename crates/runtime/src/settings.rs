//! Which models there are, and which one answers.

#[cfg(feature = "local")]
use crate::provider::Local;
use crate::provider::{
    Fallback, Price, Protocol, Provider, RateLimit, Recorded, Remote, RemoteOptions, Scripted, Structured,
};
use crate::{ConfigError, ConfigErrorKind, Environment, Redactor, Secret};
use core_ir::{Candidate, Code, ModelParams, ModelRoute, ModelRoutes, Name, Num, Recv, Term};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a model is called that runs in this process.
const LOCAL: &str = "local";

/// The provider of an entry that names none.
const OPENAI_CHAT: &str = "openai";

/// OpenAI's own endpoint.
const OPENAI: &str = "https://api.openai.com/v1";

/// Anthropic's own endpoint.
const ANTHROPIC: &str = "https://api.anthropic.com/v1";

/// Where Ollama listens, and llama.cpp's server.
const OLLAMA: &str = "http://127.0.0.1:11434/v1";
const LLAMA_CPP: &str = "http://127.0.0.1:8080/v1";

/// What `entail.toml` may say about models.
///
/// ```toml
/// model = "fast"                       # the default; without it the local model
///
/// [models.fast]
/// model = "gpt-4o-mini"                # the name the endpoint knows; default: the entry's own
/// base_url = "https://api.example.com/v1"
/// key_env = "EXAMPLE_API_KEY"          # the variable, never the key
/// price = { input = 0.15, output = 0.6 }
///
/// [models.tiny]
/// provider = "local"
/// file = "models/tiny.gguf"
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileSettings {
    /// The model of calls that name none; or several, of which the first that can answers.
    pub model: Option<Chain>,
    /// Models by the names that programs use.
    pub models: BTreeMap<String, ModelEntry>,
}

/// A model, or several of which the first that can answers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Chain {
    /// One.
    One(String),
    /// Several, at least one.
    Several(Vec<String>),
}

impl Chain {
    /// The names.
    pub fn names(&self) -> &[String] {
        match self {
            Chain::One(name) => std::slice::from_ref(name),
            Chain::Several(names) => names,
        }
    }
}

/// What `provider` may be.
pub const PROVIDERS: [&str; 8] =
    ["openai", "openai-responses", "anthropic", "ollama", "llama.cpp", "local", "scripted", "recorded"];

/// One `[models.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelEntry {
    /// One of [`PROVIDERS`]; without it `openai`, which is any endpoint with Chat Completions.
    pub provider: Option<String>,
    /// The name under which the endpoint, or the store of local models, knows it.
    pub model: Option<String>,
    /// The address up to and without `/chat/completions`, `/responses` or `/messages`. Without it, that of the environment.
    pub base_url: Option<String>,
    /// The variable that holds the key. With `base_url` and without this, no key is sent.
    pub key_env: Option<String>,
    /// The models that are asked if this one can't be, one after another.
    pub fallback: Vec<String>,
    /// Whether answers come as streams; without it, where somebody watches them grow.
    pub stream: Option<bool>,
    /// How many calls and tokens a minute may have.
    pub rate: RateLimit,
    /// A GGUF file, a script, or a recording.
    pub file: Option<PathBuf>,
    /// How typed answers are asked for at first.
    pub structured: Option<Structured>,
    /// What a million tokens cost in US dollars.
    pub price: Option<PriceEntry>,
    /// Seconds to connect.
    pub connect_timeout: Option<f64>,
    /// Seconds of silence.
    pub read_timeout: Option<f64>,
    /// Seconds for an answer, repetitions included.
    pub timeout: Option<f64>,
    /// Repetitions of a failed request.
    pub retries: Option<u32>,
}

/// Prices of a million tokens in US dollars.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceEntry {
    /// Of the prompt.
    pub input: f64,
    /// Of the reply.
    pub output: f64,
}

impl ModelEntry {
    /// Returns whether calls cost nothing: no price is given, and the provider is one that users run on hosts of their own, or answers
    /// from a file.
    pub fn is_free(&self) -> bool {
        let provider = self.provider.as_deref();
        self.price.is_none() && provider.is_some_and(|p| FREE_PROVIDERS.contains(&p))
    }
}

/// Providers whose models cost nothing unless a price is given.
const FREE_PROVIDERS: [&str; 5] = ["ollama", "llama.cpp", "local", "scripted", "recorded"];

impl PriceEntry {
    fn price(self, name: &str) -> Result<Price, ConfigError> {
        // The shortest decimal that denotes the float is what was written.
        let num = |x: f64| match format!("{x}").parse::<Num>() {
            Ok(n) if x >= 0.0 => Ok(n),
            _ => Err(ConfigError::new(format!("the price of model `{name}` is not a positive number"))),
        };
        Ok(Price { input: num(self.input)?, output: num(self.output)? })
    }
}

/// Everything that decides which model answers. First what forces one model on all calls: `script`, then `model`. Then, for
/// a call that names a model: its entry; `local`; an installed local model; else the endpoint of the environment. For a call that names none:
/// `ENTAIL_MODEL`, then the file's `model`, else the local model.
///
/// The endpoint of the environment is `ENTAIL_BASE_URL` with `ENTAIL_API_KEY`, or else `OPENAI_BASE_URL` (default: that
/// of OpenAI) with `OPENAI_API_KEY`: a key never goes to an address that was set for another.
#[derive(Clone, Debug, Default)]
pub struct ModelSettings {
    /// `--model`.
    pub model: Option<String>,
    /// `--script`.
    pub script: Option<PathBuf>,
    /// `entail.toml`.
    pub file: FileSettings,
    /// The directory that paths in `file` are relative to.
    pub file_dir: PathBuf,
}

/// The models of a run. A clone shares them, so connections and loaded models are kept from run to run.
#[derive(Clone)]
pub struct Models {
    inner: Arc<Inner>,
}

struct Inner {
    /// Answers everything.
    only: Option<Arc<dyn Provider>>,
    /// Which models may answer which calls.
    routes: ModelRoutes,
    settings: ModelSettings,
    environment: Environment,
    redactor: Redactor,
    made: Mutex<BTreeMap<String, Arc<dyn Provider>>>,
}

/// Result of routing a call to the models that answer it.
pub(crate) enum Routed {
    /// This model, or chain of models.
    To(Arc<dyn Provider>),
    /// None of these may see the conversation.
    Uncleared(Vec<Candidate>),
}

impl ModelSettings {
    /// Returns whether calls of a model cost nothing: it is the embedded one, an installed one, or of a provider of
    /// which [`ModelEntry::is_free`] says so.
    pub fn is_free(&self, name: &str, environment: &Environment) -> bool {
        match self.file.models.get(name) {
            Some(entry) => entry.is_free(),
            None if name == LOCAL || is_installed(name, environment) => true,
            None => unnamed(name, environment).is_free(),
        }
    }

    /// Which models may answer which calls, as far as names say: what an analysis of clearances needs.
    ///
    /// A model of an entry also has the name that its endpoint knows, by itself and after the provider:
    /// `[models.fast]` with `model = "gpt-4.1-mini"` is `fast`, `gpt-4.1-mini` and `openai/gpt-4.1-mini`.
    pub fn routes(&self, environment: &Environment) -> ModelRoutes {
        let names = |names: &[String]| names.iter().map(|n| Name::from(n.as_str())).collect::<Vec<_>>();
        let entry = |(name, entry): (&String, &ModelEntry)| {
            let provider = entry.provider.as_deref().unwrap_or(OPENAI_CHAT);
            let known = entry.model.as_deref().unwrap_or(name);
            let mut aliases: Vec<Name> = Vec::new();
            for alias in [known.into(), format!("{provider}/{known}").into()] {
                if alias != Name::from(name.as_str()) && !aliases.contains(&alias) {
                    aliases.push(alias);
                }
            }
            aliases.extend(Candidate::named(known).aliases);
            (Name::from(name.as_str()), ModelRoute { aliases, fallback: names(&entry.fallback) })
        };
        let default = match (environment.get("ENTAIL_MODEL"), &self.file.model) {
            (Some(name), _) => vec![name.into()],
            (None, Some(chain)) => names(chain.names()),
            (None, None) => vec![LOCAL.into()],
        };
        ModelRoutes {
            forced: self.model.as_deref().map(Name::from),
            default,
            entries: self.file.models.iter().map(entry).collect(),
        }
    }
}

impl std::fmt::Debug for Models {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Models")
            .field("only", &self.inner.only.as_ref().map(|p| p.name().to_string()))
            .field("settings", &self.inner.settings)
            .finish_non_exhaustive()
    }
}

impl Models {
    /// One model for every call. Its clearance is that of its own name, whatever a program calls it; if it
    /// [stands in](Provider::stands_in) for others, that of those.
    pub fn only(provider: Arc<dyn Provider>) -> Models {
        let forced = (!provider.stands_in()).then(|| provider.name().into());
        let routes = ModelRoutes { forced, ..ModelRoutes::default() };
        Models::with(Some(provider), routes, ModelSettings::default(), Environment::default())
    }

    /// As the settings say. A script, or a model that is forced on all calls, is looked up now; others when they are first asked for.
    ///
    /// # Errors
    /// The script or the forced model can't be used.
    pub fn new(settings: ModelSettings, environment: Environment) -> Result<Models, ConfigError> {
        let only: Option<Arc<dyn Provider>> = match &settings.script {
            Some(path) => Some(Arc::new(Scripted::load(path)?)),
            None => None,
        };
        let routes = settings.routes(&environment);
        let models = Models::with(only, routes, settings, environment);
        if models.inner.routes.forced.is_some() {
            models.resolve(None)?;
        }
        Ok(models)
    }

    fn with(
        only: Option<Arc<dyn Provider>>,
        routes: ModelRoutes,
        settings: ModelSettings,
        environment: Environment,
    ) -> Models {
        let redactor = Redactor::new(secrets(&settings, &environment));
        let made = Mutex::default();
        Models { inner: Arc::new(Inner { only, routes, settings, environment, redactor, made }) }
    }

    /// Removes the keys of all models and every other secret of the environment from texts.
    pub fn redactor(&self) -> &Redactor {
        &self.inner.redactor
    }

    /// The variables that the models were set up with.
    pub(crate) fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// Names of variables that hold keys of models.
    pub(crate) fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.inner.settings.file.models.values().filter_map(|m| m.key_env.as_deref())
    }

    /// The model that answers a call which names `name`, or none, if clearances don't matter.
    ///
    /// # Errors
    /// There is no such model, or it is not configured; the error says what to do.
    pub fn resolve(&self, name: Option<&str>) -> Result<Arc<dyn Provider>, ConfigError> {
        let params = ModelParams { model: name.map(Name::from), ..ModelParams::default() };
        self.chain(&self.inner.routes.candidates(Some(&params)))
    }

    /// The models that may answer a call with these parameters, if clearances don't matter, as one that asks
    /// one after the other.
    ///
    /// # Errors
    /// As [`Models::resolve`], of any of them.
    pub fn resolve_chain(&self, params: Option<&ModelParams>) -> Result<Arc<dyn Provider>, ConfigError> {
        self.chain(&self.inner.routes.candidates(params))
    }

    /// The model that answers a call with these parameters: of all that may answer it, those that may see it.
    /// Every request goes through this.
    ///
    /// # Errors
    /// As [`Models::resolve`].
    pub(crate) fn resolve_for(
        &self,
        params: Option<&ModelParams>,
        may_see: impl Fn(&Candidate) -> bool,
    ) -> Result<Routed, ConfigError> {
        let mut all = self.inner.routes.candidates(params);
        if all.iter().any(&may_see) {
            all.retain(may_see);
            self.chain(&all).map(Routed::To)
        } else {
            Ok(Routed::Uncleared(all))
        }
    }

    fn chain(&self, models: &[Candidate]) -> Result<Arc<dyn Provider>, ConfigError> {
        match (&self.inner.only, models) {
            (Some(only), _) => Ok(only.clone()),
            (None, []) => Err(ConfigError::new("the list of models is empty")),
            (None, [model]) => self.named(&model.name),
            (None, all) => {
                let chain = all.iter().map(|m| self.named(&m.name)).collect::<Result<Vec<_>, _>>()?;
                Ok(Arc::new(Fallback::new(chain)))
            }
        }
    }

    /// Looks every model up that a program can ask for, before it runs.
    ///
    /// # Errors
    /// The first that can't be used.
    pub fn check(&self, code: &Code) -> Result<(), ConfigError> {
        for (_, term) in code.iter() {
            let params = match term {
                // Nobody is asked.
                Term::Recv(Recv::Data(params)) if params.waiting => continue,
                Term::Llm(_, params) | Term::Recv(Recv::Data(params)) => Some(&**params),
                Term::Recv(Recv::Code) => None,
                _ => continue,
            };
            self.resolve_chain(params)?;
        }
        Ok(())
    }

    fn named(&self, name: &str) -> Result<Arc<dyn Provider>, ConfigError> {
        // A panic while the lock was held can't leave the map half changed.
        let mut made = self.inner.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(provider) = made.get(name) {
            return Ok(provider.clone());
        }
        let provider = self.make(name)?;
        made.insert(name.to_string(), provider.clone());
        Ok(provider)
    }

    fn make(&self, name: &str) -> Result<Arc<dyn Provider>, ConfigError> {
        let Inner { settings, environment, redactor, .. } = &*self.inner;
        let Some(entry) = settings.file.models.get(name) else {
            if name == LOCAL {
                return local(None, environment);
            }
            if let Some(found) = installed(name, environment) {
                return found;
            }
            return remote(name, &unnamed(name, environment), environment, redactor);
        };
        let file = entry.file.as_ref().map(|f| settings.file_dir.join(f));
        let bad = |why: &str| ConfigError::new(format!("model `{name}`: {why}"));
        match entry.provider.as_deref() {
            Some("local") => match (file, &entry.model) {
                (Some(file), _) => local(Some(&file), environment),
                (None, Some(model)) => {
                    installed(model, environment).unwrap_or_else(|| Err(not_installed(model)))
                }
                (None, None) => local(None, environment),
            },
            Some("scripted") => match file {
                Some(file) => Ok(Arc::new(Scripted::load(&file)?)),
                None => Err(bad("a scripted model needs a `file`")),
            },
            Some("recorded") => match file {
                Some(file) => Ok(Arc::new(Recorded::load(&file)?)),
                None => Err(bad("a recorded model needs a `file`")),
            },
            None | Some("openai" | "openai-responses" | "anthropic" | "ollama" | "llama.cpp") => {
                remote(name, entry, environment, redactor)
            }
            Some(other) => Err(bad(&format!("`{other}` is none of the providers"))
                .with_help(format!("write one of `{}`", PROVIDERS.join("`, `")))),
        }
    }
}

/// Everything that must not be shown: what the settings name as keys, and what looks like one.
fn secrets(settings: &ModelSettings, environment: &Environment) -> Vec<Secret> {
    let named = settings.file.models.values().filter_map(|m| environment.secret(m.key_env.as_deref()?));
    environment.secrets().map(|(_, s)| s).chain(named).collect()
}

/// What a name says by itself where the settings have no entry for it. Frameworks write `anthropic/…` and `ollama/…`.
fn unnamed(name: &str, environment: &Environment) -> ModelEntry {
    let entry = |provider: &str, model: &str| ModelEntry {
        provider: Some(provider.into()),
        model: Some(model.into()),
        ..ModelEntry::default()
    };
    let elsewhere = ["ENTAIL_BASE_URL", "OPENAI_BASE_URL"].iter().any(|v| environment.get(v).is_some());
    match name.split_once('/') {
        Some((provider @ ("anthropic" | "ollama"), model))
            if environment.get("ENTAIL_BASE_URL").is_none() =>
        {
            entry(provider, model)
        }
        None if name.starts_with("claude-")
            && !elsewhere
            && environment.get("ANTHROPIC_API_KEY").is_some() =>
        {
            entry("anthropic", name)
        }
        _ => ModelEntry::default(),
    }
}

fn remote(
    name: &str,
    entry: &ModelEntry,
    environment: &Environment,
    redactor: &Redactor,
) -> Result<Arc<dyn Provider>, ConfigError> {
    let provider = entry.provider.as_deref().unwrap_or(OPENAI_CHAT);
    // An address, and the variable with the key that was set for it.
    let (base, key_env) = match (&entry.base_url, provider) {
        (Some(base), _) => (base.clone(), None),
        (None, "anthropic") => match environment.get("ANTHROPIC_BASE_URL") {
            Some(base) => (anthropic_base(base), Some("ANTHROPIC_API_KEY")),
            None => (ANTHROPIC.to_string(), Some("ANTHROPIC_API_KEY")),
        },
        (None, "ollama") => (OLLAMA.to_string(), None),
        (None, "llama.cpp") => (LLAMA_CPP.to_string(), None),
        (None, _) => match environment.get("ENTAIL_BASE_URL") {
            Some(base) => (base.to_string(), Some("ENTAIL_API_KEY")),
            None => {
                let base = environment.get("OPENAI_BASE_URL").unwrap_or(OPENAI);
                (base.to_string(), Some("OPENAI_API_KEY"))
            }
        },
    };
    let key_env = entry.key_env.as_deref().or(key_env);
    let key = key_env.and_then(|n| environment.secret(n));
    if key.is_none() && (base == OPENAI || base == ANTHROPIC || entry.key_env.is_some()) {
        let variable = key_env.unwrap_or("OPENAI_API_KEY");
        let other = match provider {
            _ if entry.base_url.is_some() => "",
            "anthropic" => "",
            _ if name.starts_with("claude-") => ", or `ANTHROPIC_API_KEY` for Anthropic's own API",
            _ => " (and `OPENAI_BASE_URL` for an endpoint other than OpenAI's)",
        };
        return Err(ConfigError::new(format!("no key for model `{name}`: `{variable}` is not set"))
            .of_kind(ConfigErrorKind::NotSet(variable.to_string()))
            .with_help(format!(
                "set `{variable}` in the environment or in `.env`{other}, or run with `--model local`"
            )));
    }
    // Frameworks write `openai/gpt-4o`.
    let model = entry.model.as_deref().unwrap_or_else(|| name.strip_prefix("openai/").unwrap_or(name));
    let mut options = RemoteOptions::new(model, base, key);
    options.protocol = match provider {
        "openai-responses" => Protocol::Responses,
        "anthropic" => Protocol::Anthropic,
        _ => Protocol::Chat,
    };
    options.stream = entry.stream;
    options.rate = entry.rate;
    options.key_source = key_env.unwrap_or("key_env").to_string();
    options.redactor = redactor.clone();
    if let Some(structured) = entry.structured {
        options.structured = structured;
    }
    options.price = entry.price.map(|p| p.price(name)).transpose()?;
    if entry.is_free() {
        options.price = Some(Price::FREE);
    }
    let seconds = |field: &str, value: Option<f64>, default: &mut Duration| -> Result<(), ConfigError> {
        if let Some(s) = value {
            *default =
                Duration::try_from_secs_f64(s).ok().filter(|d| *d > Duration::ZERO).ok_or_else(|| {
                    ConfigError::new(format!("model `{name}`: `{field}` is not a positive number of seconds"))
                })?;
        }
        Ok(())
    };
    seconds("connect_timeout", entry.connect_timeout, &mut options.connect_timeout)?;
    seconds("read_timeout", entry.read_timeout, &mut options.read_timeout)?;
    seconds("timeout", entry.timeout, &mut options.total_timeout)?;
    if let Some(n) = entry.retries {
        options.backoff.retries = n;
    }
    Ok(Arc::new(Remote::new(options)?))
}

/// Anthropic's own clients take the address without the version.
fn anthropic_base(base: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with("/v1") { base.to_string() } else { format!("{base}/v1") }
}

fn not_installed(name: &str) -> ConfigError {
    ConfigError::new(format!("the local model `{name}` is not installed")).with_help(
        "list installed models with `entail model list`; add one with `entail model pull --from FILE`",
    )
}

#[cfg(feature = "local")]
fn store(environment: &Environment) -> Result<localmodel::store::Store, ConfigError> {
    match environment.get("ENTAIL_MODEL_DIR") {
        Some(dir) => Ok(localmodel::store::Store::at(dir)),
        None => localmodel::store::Store::from_env().map_err(|e| crate::provider::local_error(&e)),
    }
}

/// The local model of a file, or the default one.
#[cfg(feature = "local")]
fn local(file: Option<&Path>, environment: &Environment) -> Result<Arc<dyn Provider>, ConfigError> {
    let path = match file {
        Some(path) => path.to_path_buf(),
        None => store(environment)?.default_model().map_err(|e| crate::provider::local_error(&e))?,
    };
    Ok(Arc::new(Local::new(path)))
}

#[cfg(not(feature = "local"))]
fn local(_: Option<&Path>, _: &Environment) -> Result<Arc<dyn Provider>, ConfigError> {
    Err(ConfigError::new("this build has no local model")
        .with_help("name a model with `--model`, or build with the feature `local`"))
}

/// The model in the store of local models, if there is one of that name.
#[cfg(feature = "local")]
fn installed(name: &str, environment: &Environment) -> Option<Result<Arc<dyn Provider>, ConfigError>> {
    let path = store(environment).ok()?.find(name).ok()?;
    Some(local(Some(&path), environment))
}

#[cfg(feature = "local")]
fn is_installed(name: &str, environment: &Environment) -> bool {
    store(environment).is_ok_and(|store| store.find(name).is_ok())
}

#[cfg(not(feature = "local"))]
fn is_installed(_: &str, _: &Environment) -> bool {
    false
}

#[cfg(not(feature = "local"))]
fn installed(_: &str, _: &Environment) -> Option<Result<Arc<dyn Provider>, ConfigError>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(
        settings: ModelSettings,
        env: &[(&str, &str)],
        name: Option<&str>,
    ) -> Result<String, ConfigError> {
        let models = Models::new(settings, Environment::new(env.iter().copied()))?;
        models.resolve(name).map(|p| p.name().to_string())
    }

    #[test]
    fn a_named_model_needs_a_key_and_the_error_says_which() {
        let e = resolve(ModelSettings::default(), &[("ENTAIL_MODEL_DIR", "/nowhere")], Some("gpt-4o"))
            .unwrap_err();
        assert_eq!(e.message, "no key for model `gpt-4o`: `OPENAI_API_KEY` is not set");
        assert!(e.help.unwrap().contains("`OPENAI_BASE_URL` for an endpoint other"));
        let e = resolve(ModelSettings::default(), &[("ENTAIL_MODEL_DIR", "/nowhere")], Some("claude-x"));
        let help = e.unwrap_err().help.unwrap();
        assert!(help.contains("or `ANTHROPIC_API_KEY` for Anthropic's own API"), "{help}");
        let env = [("OPENAI_API_KEY", "sk-planted"), ("ENTAIL_MODEL_DIR", "/nowhere")];
        assert_eq!(resolve(ModelSettings::default(), &env, Some("openai/gpt-4o")).unwrap(), "gpt-4o");
        // An endpoint of one's own may do without a key.
        let env = [("ENTAIL_BASE_URL", "http://127.0.0.1:1/v1"), ("ENTAIL_MODEL_DIR", "/nowhere")];
        assert_eq!(resolve(ModelSettings::default(), &env, Some("llama3")).unwrap(), "llama3");
    }

    #[test]
    fn the_default_is_local_unless_something_is_configured() {
        let env = [("ENTAIL_MODEL_DIR", "/nowhere"), ("OPENAI_API_KEY", "sk-planted")];
        let e = resolve(ModelSettings::default(), &env, None).unwrap_err();
        #[cfg(feature = "local")]
        assert!(e.local_model_missing && e.help.as_ref().unwrap().contains("entail model pull"), "{e:?}");
        #[cfg(not(feature = "local"))]
        assert!(e.message.contains("no local model"));
        let with = [env[0], env[1], ("ENTAIL_MODEL", "gpt-4o-mini")];
        assert_eq!(resolve(ModelSettings::default(), &with, None).unwrap(), "gpt-4o-mini");
        let forced = ModelSettings { model: Some("gpt-5".into()), ..ModelSettings::default() };
        assert_eq!(resolve(forced, &with, Some("claude")).unwrap(), "gpt-5");
    }

    #[test]
    fn entries_are_used_and_checked() {
        let file = |json: serde_json::Value| ModelSettings {
            file: serde_json::from_value(json).unwrap(),
            ..ModelSettings::default()
        };
        let s = file(serde_json::json!({
            "model": "fast",
            "models": {"fast": {"model": "m", "base_url": "http://127.0.0.1:1/v1", "price": {"input": 0.15, "output": 0.6}}}
        }));
        assert_eq!(resolve(s.clone(), &[], None).unwrap(), "m");
        let models = Models::new(s, Environment::default()).unwrap();
        let price = models.resolve(None).unwrap().price().unwrap();
        assert_eq!(price.input, "0.15".parse().unwrap());
        let wrong = |entry: serde_json::Value| {
            resolve(file(serde_json::json!({"models": {"m": entry}})), &[], Some("m")).unwrap_err().message
        };
        assert_eq!(wrong(serde_json::json!({"provider": "x"})), "model `m`: `x` is none of the providers");
        assert_eq!(
            wrong(serde_json::json!({"provider": "scripted"})),
            "model `m`: a scripted model needs a `file`"
        );
        assert!(wrong(serde_json::json!({"base_url": "ftp://u:sk-planted@h"})).contains("scheme `ftp`"));
        assert!(wrong(serde_json::json!({"base_url": "http://h", "timeout": -1.0})).contains("`timeout`"));
        let s = file(serde_json::json!({"models": {"m": {"base_url": "http://h", "key_env": "NONE"}}}));
        let e = resolve(s, &[], Some("m")).unwrap_err();
        assert!(e.message.contains("`NONE` is not set"));
        let help = e.help.unwrap();
        assert_eq!(help, "set `NONE` in the environment or in `.env`, or run with `--model local`");
        assert!(serde_json::from_value::<FileSettings>(serde_json::json!({"modle": 1})).is_err());
    }

    #[test]
    fn a_script_answers_for_every_model() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.json");
        std::fs::write(&path, r#"["hi"]"#).unwrap();
        let s =
            ModelSettings { script: Some(path), model: Some("gpt-4o".into()), ..ModelSettings::default() };
        assert_eq!(resolve(s, &[], Some("other")).unwrap(), "scripted");
    }
}
