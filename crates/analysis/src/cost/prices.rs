//! Prices and context limits of models.
//!
//! Entry points: [`Prices::standard`], the list that comes with Entail, and [`Prices::with`], which puts
//! another on top.
//!
//! Invariant: a model that no list names has no price and no size; nothing is guessed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Price and limits of a model. Money is in billionths of a US dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// For each token that it reads.
    pub input: Option<u64>,
    /// For each token that it writes.
    pub output: Option<u64>,
    /// The most tokens of a conversation.
    pub context: Option<u64>,
    /// The most tokens of a reply.
    pub max_output: Option<u64>,
    /// The most milliseconds of a call.
    pub millis: Option<u64>,
}

/// A list of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Date of the list, as its file states it.
    pub date: String,
    models: BTreeMap<String, Model>,
    /// The most milliseconds of a call of a model, unless its entry says otherwise.
    millis: Option<u64>,
}

const STANDARD: &str = include_str!("../../data/prices.toml");

impl Model {
    /// Sets prices in US dollars per million tokens, rounded up.
    #[must_use]
    pub fn priced(self, input: f64, output: f64) -> Model {
        let per_token = |dollars: f64| Some((dollars * 1_000.0 - 1e-6).ceil().max(0.0) as u64);
        Model { input: per_token(input), output: per_token(output), ..self }
    }
}

impl Prices {
    /// The list that comes with Entail.
    pub fn standard() -> Prices {
        Prices::listed().clone()
    }

    /// The list that comes with Entail, read once.
    pub(super) fn listed() -> &'static Prices {
        static LIST: OnceLock<Prices> = OnceLock::new();
        // The text is part of this crate, and a test reads it.
        LIST.get_or_init(|| Prices::default().with(STANDARD).unwrap_or_default())
    }

    /// Adds the entries of a file in the format of `crates/analysis/data/prices.toml`.
    ///
    /// # Errors
    /// What is wrong with the file, for its author.
    ///
    /// # Examples
    /// ```
    /// use analysis::cost::Prices;
    /// let prices = Prices::standard().with("[models.mine]\ninput = 0.5\noutput = 1").unwrap();
    /// assert_eq!(prices.model("mine").unwrap().input, Some(500));
    /// assert!(prices.with("[models.mine]\ninput = -1").is_err());
    /// ```
    pub fn with(mut self, text: &str) -> Result<Prices, String> {
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| e.message().to_string())?;
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("date", toml::Value::String(date)) => self.date = date.clone(),
                ("limits", toml::Value::Table(limits)) => {
                    for (key, value) in limits {
                        match key.as_str() {
                            "seconds" => self.millis = Some(scaled(key, value, 1_000.0)?),
                            _ => return Err(format!("unknown limit `{key}`; expected `seconds`")),
                        }
                    }
                }
                ("models", toml::Value::Table(models)) => {
                    for (name, entry) in models {
                        let model = model(name, entry)?;
                        self.models.insert(name.clone(), model);
                    }
                }
                ("date" | "limits" | "models", _) => return Err(format!("`{key}` has the wrong form")),
                _ => return Err(format!("unknown key `{key}`; expected `date`, `limits` or `models`")),
            }
        }
        Ok(self)
    }

    /// Sets the entry of a name.
    #[must_use]
    pub fn with_model(mut self, name: &str, model: Model) -> Prices {
        self.models.insert(name.to_string(), model);
        self
    }

    /// Returns whether the list has an entry of exactly this name.
    pub fn has_entry(&self, name: &str) -> bool {
        self.models.contains_key(name)
    }

    /// Looks up a model by its name, or by the name without a provider before it (`openai/gpt-4o`) or a date
    /// or version after it (`gpt-4o-2024-08-06`).
    pub fn model(&self, name: &str) -> Option<Model> {
        let whole = self.models.get(name).copied();
        let name = name.rsplit(['/', ':']).next().filter(|n| !n.is_empty()).unwrap_or(name);
        let found = whole.or_else(|| self.models.get(name).copied()).or_else(|| {
            // The longest name that this one is a dated version of.
            let versions = |(known, model): (&String, &Model)| {
                let rest = name.strip_prefix(known.as_str())?.strip_prefix(['-', '@'])?;
                let dated = rest == "latest" || rest.chars().all(|c| c.is_ascii_digit() || c == '-');
                dated.then_some((known.len(), *model))
            };
            self.models.iter().filter_map(versions).max_by_key(|(n, _)| *n).map(|(_, m)| m)
        })?;
        Some(Model { millis: found.millis.or(self.millis), ..found })
    }

    /// The most milliseconds of a call of any model.
    pub fn millis(&self) -> Option<u64> {
        self.millis
    }
}

fn model(name: &str, entry: &toml::Value) -> Result<Model, String> {
    let toml::Value::Table(entry) = entry else { return Err(format!("`models.{name}` is not a table")) };
    let mut model = Model::default();
    for (key, value) in entry {
        let at = format!("models.{name}.{key}");
        match key.as_str() {
            // A dollar for a million tokens is a thousand billionths for one.
            "input" => model.input = Some(scaled(&at, value, 1_000.0)?),
            "output" => model.output = Some(scaled(&at, value, 1_000.0)?),
            "context" => model.context = Some(scaled(&at, value, 1.0)?),
            "max_output" => model.max_output = Some(scaled(&at, value, 1.0)?),
            "seconds" => model.millis = Some(scaled(&at, value, 1_000.0)?),
            _ => {
                return Err(format!(
                    "unknown key `{at}`; expected `input`, `output`, `context`, `max_output` or `seconds`"
                ));
            }
        }
    }
    Ok(model)
}

/// A number that is not negative, in smaller units, rounded up.
fn scaled(at: &str, value: &toml::Value, by: f64) -> Result<u64, String> {
    let n = match value {
        toml::Value::Integer(n) => *n as f64,
        toml::Value::Float(n) => *n,
        _ => return Err(format!("`{at}` is not a number")),
    };
    let scaled = n * by;
    if !(0.0..1e15).contains(&scaled) {
        return Err(format!("`{at}` is out of range"));
    }
    // Binary fractions may stand a hair above the decimal that was written.
    Ok((scaled - 1e-6).ceil().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let prices = Prices::default().with(STANDARD).unwrap();
        assert!(prices.models.len() > 20 && !prices.date.is_empty());
        for (name, m) in &prices.models {
            assert!(m.input.is_some() && m.output.is_some() && m.input <= m.output, "{name}");
        }
        assert_eq!(prices.model("gpt-4o-mini").unwrap().input, Some(150));
    }

    #[test]
    fn versions_and_providers_are_recognized_and_nothing_else() {
        let prices = Prices::standard();
        let of = |name: &str| prices.model(name).and_then(|m| m.input);
        assert_eq!(of("openai/gpt-4o-mini-2024-07-18"), Some(150));
        assert_eq!(of("claude-3-5-sonnet-latest"), Some(3_000));
        assert_eq!(of("gpt-4o-audio"), None);
        assert_eq!(of("gpt-4o-minimal"), None);
        assert_eq!(of(""), None);
    }
}
