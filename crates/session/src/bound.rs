//! Cost bounds with the models and prices of the settings.

use crate::preflight::asked;
use crate::settings::Settings;
use analysis::cost::{self, CostBound, Entry, Model, PriceListError, Prices};
use core_ir::{Code, ModelRoutes};
use runtime::{Environment, ModelEntry, ModelSettings, PriceEntry, RunBound};
use std::collections::BTreeSet;
use std::sync::Arc;

pub use entries::bound::{figures, path, usd};

/// Prices of models, and which models may answer which calls: the list that comes with Entail, completed by
/// the settings. Every command and the library take their bounds from here, so they agree.
#[derive(Clone, Debug)]
pub struct Pricing {
    prices: Prices,
    routes: ModelRoutes,
    /// Settings that say which models cost nothing.
    settings: Option<(ModelSettings, Environment)>,
}

impl Default for Pricing {
    /// The list that comes with Entail alone.
    fn default() -> Pricing {
        Pricing { prices: Prices::standard().clone(), routes: ModelRoutes::default(), settings: None }
    }
}

impl Pricing {
    /// The prices of `entail.toml` and all models of a chain. If `model` is given, it is the model of every
    /// call.
    pub fn of(settings: &Settings, model: Option<&str>) -> Pricing {
        let named = settings.model_settings(model);
        let mut routes = named.routes(&settings.environment);
        // The embedded model is the default. It costs nothing, but a bound must hold for other models as
        // well.
        if settings.models.model.is_none() && settings.environment.get("ENTAIL_MODEL").is_none() {
            routes.default.clear();
        }
        let prices = prices_of(settings);
        Pricing { prices, routes, settings: Some((named, settings.environment.clone())) }
    }

    /// Adds the entries of a price list, which take precedence.
    ///
    /// # Errors
    /// The mistake in the list.
    pub fn with_list(self, list: &str) -> Result<Pricing, PriceListError> {
        Ok(Pricing { prices: self.prices.with(list)?, ..self })
    }

    /// Sets the model for calls that name none.
    #[must_use]
    pub fn with_default(mut self, model: &str) -> Pricing {
        self.routes.default = vec![model.into()];
        self
    }

    /// The names of the models that a term may ask, without a default that is not named.
    pub fn models(&self, code: &Code) -> BTreeSet<String> {
        let candidates = asked(code).flat_map(|(_, params)| self.routes.candidates(params));
        candidates.map(|c| c.name.to_string()).filter(|name| !name.is_empty()).collect()
    }

    /// Returns the cost bound of a term, or of a call of the function that it is.
    pub fn bound(&self, code: &Arc<Code>, applied: bool) -> CostBound {
        let mut prices = self.prices.clone();
        if let Some((settings, environment)) = &self.settings {
            let named = asked(code).flat_map(|(_, params)| self.routes.candidates(params));
            for name in named.map(|candidate| candidate.name) {
                // An entry of a list has said what it costs.
                if !prices.has_entry(&name) && settings.is_free(&name, environment) {
                    prices = prices.with_model(&name, Model::default().priced(0.0, 0.0));
                }
            }
        }
        cost::bound_with(code, applied, &prices, &self.routes)
    }
}

/// A cost bound as telemetry tells it.
pub fn of_run(bound: &CostBound) -> RunBound {
    RunBound {
        model_calls: bound.model_calls.most,
        tool_calls: bound.tool_calls.most,
        input_tokens: bound.input_tokens.most,
        output_tokens: bound.output_tokens.most,
        usd: usd(bound),
    }
}

/// Price that a model gets, and where it is from.
#[derive(Clone, Debug, PartialEq)]
pub enum PriceOrigin<'s> {
    /// The entry of the model in `entail.toml` states it.
    Settings(PriceEntry),
    /// Its provider runs on the user's own hosts.
    Free,
    /// The entry of this name in the list of prices.
    Listed(&'s str, &'s Entry),
    /// The model is not at the address of its vendor, so that it may cost anything.
    Elsewhere,
    /// No list knows the model.
    Unknown,
}

/// Returns the price that a model gets by these settings.
pub fn price_of<'s>(settings: &'s Settings, name: &str) -> PriceOrigin<'s> {
    let entry = settings.models.models.get(name);
    let listed = |model: &str| match settings.prices().entry(model) {
        Some((name, entry)) => PriceOrigin::Listed(name, entry),
        None => PriceOrigin::Unknown,
    };
    match entry {
        Some(ModelEntry { price: Some(price), .. }) => PriceOrigin::Settings(*price),
        Some(entry) if entry.is_free() => PriceOrigin::Free,
        Some(entry) if !entry.is_at_vendor() => PriceOrigin::Elsewhere,
        Some(entry) => listed(entry.model.as_deref().unwrap_or(name)),
        None if settings.prices().has_entry(name) => listed(name),
        None if settings.model_settings(None).is_free(name, &settings.environment) => PriceOrigin::Free,
        None => listed(name),
    }
}

/// The list of prices, with the models of the settings by the names of their entries.
fn prices_of(settings: &Settings) -> Prices {
    let mut prices = settings.prices().clone();
    for (name, entry) in &settings.models.models {
        let endpoint = prices.model(entry.model.as_deref().unwrap_or(name)).unwrap_or_default();
        let model = match entry.price {
            // A bound holds whatever a cache has of the prompt.
            Some(price) => {
                let special = [price.cached, price.cache_write].into_iter().flatten();
                endpoint.priced(special.fold(price.input, f64::max), price.output)
            }
            None if entry.is_free() => endpoint.priced(0.0, 0.0),
            // Elsewhere the model of that name may cost something else.
            None if !entry.is_at_vendor() => Model { input: None, output: None, ..endpoint },
            None if entry.cache => {
                let listed = prices.entry(entry.model.as_deref().unwrap_or(name));
                let written =
                    listed.and_then(|(_, e)| e.price.as_ref()?.cache_write.as_ref()?.to_json().as_f64());
                let written = written.and_then(|dollars| Model::default().priced(dollars, 0.0).input);
                Model { input: endpoint.input.max(written), ..endpoint }
            }
            None => endpoint,
        };
        prices = prices.with_model(name, model);
    }
    prices
}
