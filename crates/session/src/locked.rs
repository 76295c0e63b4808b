//! Models of a program in `entail.lock`, compared with what a run would have instead.
//!
//! Entry points: [`model_pins`] for the lock, [`prices_that_differ`] and [`not_locked`] for what uses it.
//!
//! Invariant: a run is held to the prices that are in use, never to those of the lock. The lock says that
//! they have changed.

use crate::bound::{PriceOrigin, price_of};
use crate::settings::Settings;
use core_ir::{Data, Num, ToolDecl};
use diagnostics::clip;
use runtime::ModelPin;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The prices of models, as the settings have them now.
pub fn model_pins<'n>(
    settings: &Settings,
    models: impl IntoIterator<Item = &'n String>,
) -> BTreeMap<String, ModelPin> {
    models.into_iter().map(|name| (name.clone(), model_pin(settings, name))).collect()
}

fn model_pin(settings: &Settings, name: &str) -> ModelPin {
    let dollars = |n: f64| n.to_string();
    match price_of(settings, name) {
        PriceOrigin::Settings(price) => ModelPin {
            input: Some(dollars(price.input)),
            output: Some(dollars(price.output)),
            cached: price.cached.map(dollars),
            cache_write: price.cache_write.map(dollars),
            date: None,
            source: Some("entail.toml".into()),
        },
        PriceOrigin::Free => {
            let nothing = Some("0".to_string());
            ModelPin { input: nothing.clone(), output: nothing, ..ModelPin::default() }
        }
        PriceOrigin::Listed(_, entry) => {
            let text = |n: &Num| n.to_string();
            let price = entry.price.as_ref();
            ModelPin {
                input: price.map(|p| text(&p.input)),
                output: price.map(|p| text(&p.output)),
                cached: price.and_then(|p| p.cached.as_ref()).map(text),
                cache_write: price.and_then(|p| p.cache_write.as_ref()).map(text),
                date: entry.date.as_deref().map(String::from),
                source: entry.source.as_deref().map(String::from),
            }
        }
        PriceOrigin::Elsewhere | PriceOrigin::Unknown => ModelPin::default(),
    }
}

/// A model whose price is not the locked one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceDifference {
    /// The name of the model.
    pub model: String,
    /// Price in the lock.
    pub locked: ModelPin,
    /// Price by the settings.
    pub now: ModelPin,
}

impl std::fmt::Display for PriceDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PriceDifference { model, locked, now } = self;
        write!(f, "`{}` costs {now}, and {locked} in `{}`", clip(model), Settings::LOCK)
    }
}

/// The locked models among these whose price is another one now.
pub fn prices_that_differ<'n>(
    settings: &Settings,
    models: impl IntoIterator<Item = &'n String>,
) -> Vec<PriceDifference> {
    let locked = models.into_iter().filter_map(|name| Some((name, settings.pins.models().get(name)?)));
    let now = locked.map(|(name, pin)| (name, pin, model_pin(settings, name)));
    let other = now.filter(|(_, locked, now)| !locked.has_price_of(now));
    other
        .map(|(name, locked, now)| PriceDifference { model: name.clone(), locked: locked.clone(), now })
        .collect()
}

/// Models, servers and modules of Python that a program uses and the lock lacks, in words for people.
pub fn not_locked(settings: &Settings, models: &BTreeSet<String>, tools: &[Arc<ToolDecl>]) -> Vec<String> {
    let mut out: Vec<String> = models
        .iter()
        .filter(|name| !settings.pins.models().contains_key(*name))
        .map(|name| format!("the price of `{}`", clip(name)))
        .collect();
    for handler in tools.iter().filter_map(|t| t.handler.as_ref()) {
        let server = match handler.field("mcp") {
            Some(Data::Str(server)) => Some(&**server),
            Some(of) => of.field("server").and_then(Data::as_str),
            None => None,
        };
        if let Some(server) = server.filter(|s| !settings.pins.knows(s)) {
            out.push(format!("the server `{}`", clip(server)));
        }
        let module = handler.field("python").and_then(|of| of.field("file")).and_then(Data::as_str);
        if let Some(module) = module.filter(|m| !is_locked(settings, m)) {
            out.push(format!("the module `{}`", clip(module)));
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|what| seen.insert(what.clone()));
    out
}

fn is_locked(settings: &Settings, module: &str) -> bool {
    let Ok(place) = Path::new(module).canonicalize() else { return false };
    let mut locked = settings.pins.modules().keys();
    locked.any(|path| settings.dir.join(path).canonicalize().is_ok_and(|other| other == place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_compared_with_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let settings = |price: &str| {
            let model = "[models.mine]\nmodel = \"m\"\nbase_url = \"https://x.example/v1\"\n";
            write("entail.toml", &format!("{model}{price}"));
            Settings::load(dir.path().join("entail.toml")).unwrap()
        };
        let models = ["mine".to_string(), "nobody-knows-it".into()];
        let priced = settings("price = { input = 2, output = 8.5 }\n");
        let mut pins = priced.pins.clone();
        for (name, pin) in model_pins(&priced, &models) {
            pins.lock_model(&name, pin);
        }
        write("entail.lock", &pins.to_toml());
        let again = settings("price = { input = 2, output = 8.5 }\n");
        assert_eq!(again.pins, pins);
        assert_eq!(prices_that_differ(&again, &models), []);
        let shown = |settings: &Settings| {
            prices_that_differ(settings, &models).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let other = settings("price = { input = 3, output = 8.5 }\n");
        let locked = "$2 for a million tokens of prompt and $8.5 of reply in `entail.lock`";
        let now = "$3 for a million tokens of prompt and $8.5 of reply";
        assert_eq!(shown(&other), [format!("`mine` costs {now}, and {locked}")]);
        assert_eq!(shown(&settings("")), [format!("`mine` costs an unknown price, and {locked}")]);
        // A list beside the settings knows a model that none knew.
        write(
            "entail.prices.toml",
            "date = \"2026-11-27\"\nsource = \"us\"\n[models.nobody-knows-it]\ninput = 0.5\noutput = 1\n",
        );
        let listed = settings("price = { input = 2, output = 8.5 }\n");
        let now = "$0.5 for a million tokens of prompt and $1 of reply";
        assert_eq!(
            shown(&listed),
            [format!("`nobody-knows-it` costs {now}, and an unknown price in `entail.lock`")]
        );
        let all = BTreeSet::from(["mine".to_string(), "third".into()]);
        assert_eq!(not_locked(&listed, &all, &[]), ["the price of `third`"]);
    }
}
