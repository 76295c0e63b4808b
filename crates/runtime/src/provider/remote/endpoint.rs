//! Providers behind HTTP: where their endpoints are, and which key they want.

use super::{Protocol, Remote, RemoteOptions, bedrock};
use crate::provider::kinds::{ModelSpec, ProviderKind};
use crate::provider::{Price, Provider};
use crate::{ConfigError, ConfigErrorKind, Environment};
use core_ir::vendor::{self, Vendor};
use std::sync::Arc;
use std::time::Duration;

/// OpenAI's own endpoint.
pub(super) const OPENAI_URL: &str = "https://api.openai.com/v1";

/// An address, and the variable with the key that was set for it.
pub(super) type Address = (String, Option<&'static str>);

/// A provider behind HTTP.
pub(in crate::provider) struct Endpoint {
    /// Its name in the settings.
    pub(super) name: &'static str,
    /// Protocol of the endpoint.
    pub(super) protocol: Protocol,
    /// True if its models cost nothing unless a price is given.
    pub(super) is_free: bool,
    /// An address that always wants a key.
    pub(super) own: Option<&'static str>,
    /// The address where an entry has none, and the variable with the key that was set for it.
    pub(super) address: fn(&Environment) -> Result<Address, ConfigError>,
    /// Model parameters that the provider knows beyond its protocol.
    pub(super) parameters: &'static [&'static str],
    /// The variable of keys at the provider's own address; `None` where that of OpenAI is meant.
    pub(super) key: Option<&'static str>,
    /// True if no address of it answers without a key.
    pub(super) always_wants_key: bool,
    /// The vendor whose models names such as `VENDOR/model` mean here. Frameworks write them.
    pub(super) serves: Option<&'static Vendor>,
    /// The variable with which names of that vendor's families mean it, too, if it is set.
    pub(super) key_of_family: Option<&'static str>,
}

/// The endpoint that the environment names, or else OpenAI's, each with its own key: a key never goes to an
/// address that was set for another.
pub(super) fn of_environment(environment: &Environment) -> Result<Address, ConfigError> {
    Ok(match environment.get("ENTAIL_BASE_URL") {
        Some(base) => (base.to_string(), Some("ENTAIL_API_KEY")),
        None => {
            let base = environment.get("OPENAI_BASE_URL").unwrap_or(OPENAI_URL);
            (base.to_string(), Some("OPENAI_API_KEY"))
        }
    })
}

/// A variable that a provider can't do without.
///
/// # Errors
/// It is not set.
pub(super) fn required<'e>(
    environment: &'e Environment,
    variable: &str,
    example: &str,
) -> Result<&'e str, ConfigError> {
    let value = environment.get(variable).map(str::trim).filter(|v| !v.is_empty());
    value.ok_or_else(|| {
        ConfigError::new(format!("`{variable}` is not set"))
            .of_kind(ConfigErrorKind::NotSet(variable.to_string()))
            .with_help(format!(
                "set it in the environment or in `.env`, such as `{example}`, or `base_url` in the model's entry"
            ))
    })
}

impl ProviderKind for Endpoint {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_free(&self) -> bool {
        self.is_free
    }

    fn own_address(&self) -> Option<&'static str> {
        self.own
    }

    fn claims<'n>(&self, name: &'n str, environment: &Environment) -> Option<&'n str> {
        let elsewhere = ["ENTAIL_BASE_URL", "OPENAI_BASE_URL"].iter().any(|v| environment.get(v).is_some());
        let vendor = self.serves?;
        if name.contains('/') {
            let (meant, model) = Vendor::of_prefix(name)?;
            return (meant == vendor && environment.get("ENTAIL_BASE_URL").is_none()).then_some(model);
        }
        let variable = self.key_of_family?;
        (vendor.makes(name) && !elsewhere && environment.get(variable).is_some()).then_some(name)
    }

    fn make(&self, wanted: &ModelSpec<'_>) -> Result<Arc<dyn Provider>, ConfigError> {
        let ModelSpec { name, entry, environment, redactor, prices, .. } = *wanted;
        let in_model =
            |e: ConfigError| ConfigError { message: format!("model `{name}`: {}", e.message), ..e };
        let (base, key_env) = match &entry.base_url {
            Some(base) => (base.clone(), None),
            None => (self.address)(environment).map_err(in_model)?,
        };
        let key_env = entry.key_env.as_deref().or(key_env);
        let key = key_env.and_then(|n| environment.secret(n));
        let wants_key = wanted.wants_key(&base) || self.always_wants_key || entry.key_env.is_some();
        let signing = match (self.protocol, &key) {
            (Protocol::Bedrock, None) if entry.key_env.is_none() => {
                Some(bedrock::credentials(environment).map_err(in_model)?)
            }
            _ => None,
        };
        if key.is_none() && wants_key {
            let variable = key_env.or(self.key).unwrap_or("OPENAI_API_KEY");
            let other = if entry.base_url.is_some() || self.key.is_some() {
                ""
            } else if vendor::ANTHROPIC.makes(name) {
                ", or `ANTHROPIC_API_KEY` for Anthropic's own API"
            } else {
                " (and `OPENAI_BASE_URL` for an endpoint other than OpenAI's)"
            };
            return Err(ConfigError::new(format!("no key for model `{name}`: `{variable}` is not set"))
                .of_kind(ConfigErrorKind::NotSet(variable.to_string()))
                .with_help(format!(
                    "set `{variable}` in the environment or in `.env`{other}, or run with `--model local`"
                )));
        }
        // Frameworks write `openai/gpt-4o`.
        let bare = Vendor::of_prefix(name).filter(|(vendor, _)| **vendor == vendor::OPENAI);
        let model = entry.model.as_deref().unwrap_or_else(|| bare.map_or(name, |(_, model)| model));
        // Elsewhere the model of that name may cost something else.
        let listed = self.own.filter(|own| base.trim_end_matches('/') == *own).and_then(|_| prices.of(model));
        let mut options = RemoteOptions::new(model, base, key);
        options.protocol = self.protocol;
        options.signing = signing;
        options.parameters = self.parameters;
        options.stream = entry.stream;
        options.rate = entry.rate;
        options.key_source = match &options.signing {
            Some(_) => "AWS_SECRET_ACCESS_KEY".to_string(),
            None => key_env.unwrap_or("key_env").to_string(),
        };
        options.redactor = redactor.clone();
        if let Some(structured) = entry.structured {
            options.structured = structured;
        }
        options.price = entry.price.map(|p| p.price(name)).transpose()?.or(listed);
        if entry.is_free() {
            options.price = Some(Price::FREE);
        }
        options.cache = entry.cache;
        if entry.cache {
            if !self.protocol.dialect().caches_on_request() {
                return Err(ConfigError::new(format!(
                    "model `{name}`: `{}` has no caching on request",
                    self.name
                ))
                .with_help("leave `cache` out: what the provider caches by itself is counted"));
            }
            // Less would be counted than is charged.
            if options.price.as_ref().is_some_and(|price| price.cache_write.is_none()) {
                let what = format!("model `{name}`: the price of what `cache` writes is unknown");
                return Err(ConfigError::new(what)
                    .with_help("add `cached` and `cache_write` to `price`, or leave `cache` out"));
            }
        }
        let seconds = |field: &str, value: Option<f64>, default: &mut Duration| -> Result<(), ConfigError> {
            if let Some(s) = value {
                *default =
                    Duration::try_from_secs_f64(s).ok().filter(|d| *d > Duration::ZERO).ok_or_else(|| {
                        ConfigError::new(format!(
                            "model `{name}`: `{field}` is not a positive number of seconds"
                        ))
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
}
