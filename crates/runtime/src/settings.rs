//! Which models there are, and which one answers.

use crate::provider::kinds::{self, KINDS, ModelSpec};
use crate::provider::{Fallback, Price, Provider, RateLimit, Scripted, Structured, embedded};
use crate::{ConfigError, Environment, Redactor, Secret};
use core_ir::{Candidate, Code, ModelParams, ModelRoute, ModelRoutes, Name, Num, Recv, Term};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Provider name of models that run in this process.
const LOCAL: &str = "local";

/// Settings of models in `entail.toml`.
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

/// Returns the accepted values of `provider`.
pub fn providers() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|k| k.name())
}

/// One `[models.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelEntry {
    /// One of [`providers`]; without it `openai`, which is any endpoint with Chat Completions.
    pub provider: Option<String>,
    /// The name under which the endpoint, or the store of local models, knows it.
    pub model: Option<String>,
    /// The address up to and without `/chat/completions`, `/responses` or `/messages`. Without it, that of
    /// the environment.
    pub base_url: Option<String>,
    /// The variable that holds the key. With `base_url` and without this, no key is sent.
    pub key_env: Option<String>,
    /// Models that are called in turn if this one fails.
    pub fallback: Vec<String>,
    /// True to stream responses, false not to; by default, responses are streamed where a listener wants the
    /// text.
    pub stream: Option<bool>,
    /// Limits on calls and tokens per minute.
    pub rate: RateLimit,
    /// A GGUF file, a script, or a recording.
    pub file: Option<PathBuf>,
    /// Preferred way to request typed answers.
    pub structured: Option<Structured>,
    /// Price of a million tokens in US dollars.
    pub price: Option<PriceEntry>,
    /// True to have the provider cache prompts, where it does so on request.
    pub cache: bool,
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
    /// Of the part of the prompt that the provider's cache had.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Of the part of the prompt that was written to the cache.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl ModelEntry {
    /// Returns whether calls cost nothing: no price is given, and the provider is one that users run on hosts
    /// of their own, or answers from a file.
    pub fn is_free(&self) -> bool {
        let provider = self.provider.as_deref();
        self.price.is_none() && provider.is_some_and(|p| kinds::find(Some(p)).is_some_and(|k| k.is_free()))
    }
}

impl ModelEntry {
    /// Returns whether the model is at the address of its vendor, where list prices hold.
    pub fn is_at_vendor(&self) -> bool {
        let kind = kinds::find(self.provider.as_deref());
        self.base_url.is_none() && kind.is_some_and(|k| k.own_address().is_some())
    }
}

impl PriceEntry {
    pub(crate) fn price(self, name: &str) -> Result<Price, ConfigError> {
        // The shortest decimal that denotes the float is what was written.
        let num = |x: f64| match format!("{x}").parse::<Num>() {
            Ok(n) if x >= 0.0 => Ok(n),
            _ => Err(ConfigError::new(format!("the price of model `{name}` is not a positive number"))),
        };
        Ok(Price {
            input: num(self.input)?,
            output: num(self.output)?,
            cached: self.cached.map(num).transpose()?,
            cache_write: self.cache_write.map(num).transpose()?,
        })
    }
}

/// Looks up the price of a model.
type PriceLookup = dyn Fn(&str) -> Option<Price> + Send + Sync;

/// List prices of models at the addresses of their vendors, by the names that those know them by.
#[derive(Clone, Default)]
pub struct PriceList(Option<Arc<PriceLookup>>);

impl PriceList {
    /// A list that is looked up so.
    pub fn new(of: impl Fn(&str) -> Option<Price> + Send + Sync + 'static) -> PriceList {
        PriceList(Some(Arc::new(of)))
    }

    /// Price of a model; `None` if it is not known.
    pub(crate) fn of(&self, model: &str) -> Option<Price> {
        self.0.as_ref()?(model)
    }
}

impl std::fmt::Debug for PriceList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "PriceList(..)" } else { "PriceList(none)" })
    }
}

/// Everything that decides which model answers. First what forces one model on all calls: `script`, then
/// `model`. Then, for a call that names a model: its entry; `local`; an installed local model; else the
/// endpoint of the environment. For a call that names none: `ENTAIL_MODEL`, then the file's `model`, else the
/// local model.
///
/// The endpoint of the environment is `ENTAIL_BASE_URL` with `ENTAIL_API_KEY`, or else `OPENAI_BASE_URL`
/// (default: that of OpenAI) with `OPENAI_API_KEY`: a key never goes to an address that was set for another.
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
    /// Prices of models whose entry has none.
    pub prices: PriceList,
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
    /// Returns whether calls of a model cost nothing: it is the embedded one, an installed one, or of a
    /// provider of which [`ModelEntry::is_free`] says so.
    pub fn is_free(&self, name: &str, environment: &Environment) -> bool {
        match self.file.models.get(name) {
            Some(entry) => entry.is_free(),
            None if name == LOCAL || embedded::installed(name, environment).is_some() => true,
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
            let provider = entry.provider.as_deref().unwrap_or(KINDS[0].name());
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

    /// Creates the models of the settings. A script, or a model that is forced on all calls, is loaded now;
    /// other models are created at their first call.
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
    /// The errors of [`Models::resolve`] for any model of the chain.
    pub fn resolve_chain(&self, params: Option<&ModelParams>) -> Result<Arc<dyn Provider>, ConfigError> {
        self.chain(&self.inner.routes.candidates(params))
    }

    /// The model that answers a call with these parameters: of all that may answer it, those that may see it.
    /// Every request goes through this.
    ///
    /// # Errors
    /// The errors of [`Models::resolve`].
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
        let implied;
        let entry = match settings.file.models.get(name) {
            Some(entry) => entry,
            None if name == LOCAL => return embedded::local(None, environment),
            None => match embedded::installed(name, environment) {
                Some(found) => return found,
                None => {
                    implied = unnamed(name, environment);
                    &implied
                }
            },
        };
        let file = entry.file.as_ref().map(|f| settings.file_dir.join(f));
        let prices = &settings.prices;
        let wanted = ModelSpec { name, entry, file: file.as_deref(), environment, redactor, prices };
        match kinds::find(entry.provider.as_deref()) {
            Some(kind) => kind.make(&wanted),
            None => {
                let other = entry.provider.as_deref().unwrap_or_default();
                let all: Vec<&str> = providers().collect();
                Err(wanted
                    .wrong(&format!("unknown provider `{other}`"))
                    .with_help(format!("write one of `{}`", all.join("`, `"))))
            }
        }
    }
}

/// Everything that must not be shown: what the settings name as keys, and what looks like one.
fn secrets(settings: &ModelSettings, environment: &Environment) -> Vec<Secret> {
    let named = settings.file.models.values().filter_map(|m| environment.secret(m.key_env.as_deref()?));
    environment.secrets().map(|(_, s)| s).chain(named).collect()
}

/// Derives the settings of a model without an entry from its name.
fn unnamed(name: &str, environment: &Environment) -> ModelEntry {
    let claim = KINDS.iter().find_map(|k| Some((k.name(), k.claims(name, environment)?)));
    claim.map_or_else(ModelEntry::default, |(provider, model)| ModelEntry {
        provider: Some(provider.into()),
        model: Some(model.into()),
        ..ModelEntry::default()
    })
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
        assert_eq!(wrong(serde_json::json!({"provider": "x"})), "model `m`: unknown provider `x`");
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

    /// The list counts at the address of the vendor, and nowhere else.
    #[test]
    fn a_listed_price_is_that_of_the_vendor() {
        let price = Price::new("0.15".parse().unwrap(), "0.6".parse().unwrap());
        let listed = price.clone();
        let prices = PriceList::new(move |name| (name == "gpt-4o-mini").then(|| listed.clone()));
        let file = serde_json::json!({"models": {
            "fast": {"model": "gpt-4o-mini"},
            "near": {"model": "gpt-4o-mini", "base_url": "http://127.0.0.1:1/v1"},
            "dear": {"model": "gpt-4o-mini", "price": {"input": 7, "output": 8}},
        }});
        let file: FileSettings = serde_json::from_value(file).unwrap();
        let of = |name: &str, env: &[(&str, &str)]| {
            let settings =
                ModelSettings { file: file.clone(), prices: prices.clone(), ..ModelSettings::default() };
            let key = [("OPENAI_API_KEY", "sk-planted"), ("ENTAIL_MODEL_DIR", "/nowhere")];
            let env = Environment::new(key.into_iter().chain(env.iter().copied()));
            Models::new(settings, env).unwrap().resolve(Some(name)).unwrap().price()
        };
        assert_eq!(of("fast", &[]), Some(price.clone()));
        assert_eq!(of("gpt-4o-mini", &[]), Some(price));
        assert_eq!(of("dear", &[]).unwrap().input, 7.into());
        // Unknown is not free.
        assert_eq!(of("near", &[]), None);
        assert_eq!(of("gpt-5", &[]), None);
        assert_eq!(of("gpt-4o-mini", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]), None);
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
