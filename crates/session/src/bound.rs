//! Cost bounds with the models and prices of the settings.

use crate::settings::Settings;
use analysis::cost::{self, CostBound, Interval, Model, Prices};
use core_ir::{Code, ModelRoutes};
use diagnostics::Sources;
use serde_json::{Value, json};
use std::sync::Arc;

/// Returns the cost bound of a run, with the prices of `entail.toml` and all models of a chain. If `model` is
/// given, it is the model of every call.
pub fn bound_of(settings: &Settings, model: Option<&str>, code: &Arc<Code>, applied: bool) -> CostBound {
    cost::bound_with(code, applied, &prices(settings), &routes(settings, model))
}

/// Which models may answer, as far as somebody has said so: the embedded model alone, which answers where
/// nobody has, costs nothing, and a bound is to hold for others as well.
pub fn routes(settings: &Settings, model: Option<&str>) -> ModelRoutes {
    let mut routes = settings.model_settings(model).routes(&settings.environment);
    if settings.models.model.is_none() && settings.environment.get("ENTAIL_MODEL").is_none() {
        routes.default.clear();
    }
    routes
}

/// The list that comes with Entail, with the models of the settings by the names of their entries.
pub fn prices(settings: &Settings) -> Prices {
    let mut prices = Prices::standard();
    for (name, entry) in &settings.models.models {
        let endpoint = prices.model(entry.model.as_deref().unwrap_or(name)).unwrap_or_default();
        let free = entry.provider.as_deref().is_some_and(|p| FREE_PROVIDERS.contains(&p));
        let model = match entry.price {
            Some(price) => endpoint.priced(price.input, price.output),
            None if free => endpoint.priced(0.0, 0.0),
            // Elsewhere the model of that name may cost something else.
            None if entry.base_url.is_some() => Model { input: None, output: None, ..endpoint },
            None => endpoint,
        };
        prices = prices.with_model(name, model);
    }
    prices
}

/// Providers whose models cost nothing.
const FREE_PROVIDERS: [&str; 5] = ["ollama", "llama.cpp", "local", "scripted", "recorded"];

/// The figures of a bound as JSON; the most is `null` where no bound is known.
pub fn figures(bound: &CostBound, sources: &Sources) -> Value {
    let interval = |i: Interval| json!({"least": i.least, "most": i.most});
    let open: Vec<Value> = bound
        .unbounded
        .iter()
        .map(|(span, why)| json!({"place": sources.place(*span), "why": why}))
        .collect();
    let unpriced: Vec<Value> =
        bound.unpriced.iter().map(|(model, calls)| json!({"model": &**model, "calls": calls})).collect();
    json!({
        "modelCalls": interval(bound.model_calls),
        "toolCalls": interval(bound.tool_calls),
        "inputTokens": interval(bound.input_tokens),
        "outputTokens": interval(bound.output_tokens),
        "usd": {"least": in_dollars(bound.money.least), "most": usd(bound)},
        "ms": interval(bound.millis),
        "unpriced": unpriced,
        "unbounded": open,
    })
}

fn in_dollars(billionths: u64) -> f64 {
    billionths as f64 / 1e9
}

/// The most dollars of a run, if all models that it may ask have a price.
pub fn usd(bound: &CostBound) -> Option<f64> {
    bound.money.most.filter(|_| bound.unpriced.is_empty()).map(in_dollars)
}
