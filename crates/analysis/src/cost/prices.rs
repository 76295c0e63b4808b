//! Prices and context limits of models.
//!
//! Entry points: [`Prices::standard`], the list that comes with Entail, [`Prices::list`], a list that
//! replaces it, and [`Prices::with`], which puts another on top.
//!
//! Invariant: a model that no list names has no price and no size; nothing is guessed.

use core_ir::Num;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

/// Prices of a model in US dollars for a million tokens, exactly as a list states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPrice {
    /// Of the prompt.
    pub input: Num,
    /// Of the reply.
    pub output: Num,
    /// Of the part of the prompt that the provider's cache had.
    pub cached: Option<Num>,
    /// Of the part of the prompt that was written to the cache.
    pub cache_write: Option<Num>,
}

/// Entry of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Price and limits, as bounds need them.
    pub model: Model,
    /// The prices, if the list has both that of the prompt and that of the reply.
    pub price: Option<TokenPrice>,
    /// The day from which the prices hold, or on which they were read, as `2026-11-27`.
    pub date: Option<Arc<str>>,
    /// Page or contract that the prices are from.
    pub source: Option<Arc<str>>,
}

/// A list of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Date of the list, as its file states it.
    pub date: String,
    models: BTreeMap<String, Entry>,
    /// The most milliseconds of a call of a model, unless its entry says otherwise.
    millis: Option<u64>,
}

/// Mistake in a list of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceListError {
    /// Line and column, from 1.
    pub place: (usize, usize),
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl fmt::Display for PriceListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.0, self.place.1, self.message)
    }
}

impl std::error::Error for PriceListError {}

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
    /// The list that comes with Entail, read once.
    pub fn standard() -> &'static Prices {
        static LIST: OnceLock<Prices> = OnceLock::new();
        // The text is part of this crate, and a test reads it.
        LIST.get_or_init(|| Prices::list(STANDARD).unwrap_or_default())
    }

    /// Reads a list that replaces the one that comes with Entail: of each model the price of the prompt and
    /// of the reply, from when it holds, and where it is from.
    ///
    /// # Errors
    /// The first mistake in the list.
    ///
    /// # Examples
    /// ```
    /// use analysis::cost::Prices;
    /// let text = "date = \"2026-11-27\"\nsource = \"our contract\"\n[models.mine]\ninput = 0.5\noutput = 1";
    /// let prices = Prices::list(text).unwrap();
    /// assert_eq!(prices.entry("mine").unwrap().1.date.as_deref(), Some("2026-11-27"));
    /// let e = Prices::list("[models.mine]\ninput = 0.5\noutput = 1").unwrap_err();
    /// assert!(e.message.contains("no `date`"));
    /// ```
    pub fn list(text: &str) -> Result<Prices, PriceListError> {
        let prices = Prices::default().read(text, true)?;
        if prices.models.is_empty() {
            let help = "write a table such as `[models.\"gpt-4.1\"]` with `input` and `output`";
            return Err(PriceListError {
                place: (1, 1),
                message: "the list has no models".into(),
                help: help.into(),
            });
        }
        Ok(prices)
    }

    /// Adds the entries of a file in the format of `crates/analysis/data/prices.toml`. What an entry leaves
    /// out is unknown.
    ///
    /// # Errors
    /// The first mistake in the file.
    ///
    /// # Examples
    /// ```
    /// use analysis::cost::Prices;
    /// let prices = Prices::standard().clone().with("[models.mine]\ninput = 0.5\noutput = 1").unwrap();
    /// assert_eq!(prices.model("mine").unwrap().input, Some(500));
    /// assert_eq!(prices.with("[models.mine]\ninput = -1").unwrap_err().place, (2, 9));
    /// ```
    pub fn with(self, text: &str) -> Result<Prices, PriceListError> {
        self.read(text, false)
    }

    /// Adds the entries of a file; a `complete` one says everything of each model.
    fn read(mut self, text: &str, complete: bool) -> Result<Prices, PriceListError> {
        let reader = ListReader { text };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().unwrap_or_default();
            reader.error(at, e.message().to_string(), "the file has to be TOML".into())
        })?;
        // What entries say that say nothing themselves.
        let mut general = Entry::default();
        let mut models = None;
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "date" => {
                    let date = reader.date("date", value)?;
                    self.date = date.to_string();
                    general.date = Some(date);
                }
                "source" => general.source = Some(reader.source("source", value)?),
                "limits" => {
                    for (key, value) in reader.table("limits", value)? {
                        match key.get_ref().as_ref() {
                            "seconds" => {
                                self.millis = Some(reader.scaled("limits.seconds", value, 1_000.0)?)
                            }
                            other => return Err(reader.unknown(key, "limits.", other, &["seconds"])),
                        }
                    }
                }
                "models" => models = Some(reader.table("models", value)?),
                other => return Err(reader.unknown(key, "", other, &["date", "source", "limits", "models"])),
            }
        }
        for (name, value) in models.into_iter().flatten() {
            let entry = reader.entry(name.get_ref(), value, &general)?;
            if complete {
                reader.complete(name, &entry)?;
            }
            self.models.insert(name.get_ref().to_string(), entry);
        }
        Ok(self)
    }

    /// Sets the entry of a name.
    #[must_use]
    pub fn with_model(mut self, name: &str, model: Model) -> Prices {
        self.models.insert(name.to_string(), Entry { model, ..Entry::default() });
        self
    }

    /// Returns whether the list has an entry of exactly this name.
    pub fn has_entry(&self, name: &str) -> bool {
        self.models.contains_key(name)
    }

    /// The entries by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.models.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Looks up the entry of a model, with the entry's name, by the model's name, or by the name without a
    /// provider before it (`openai/gpt-4o`) or a date or version after it (`gpt-4o-2024-08-06`).
    pub fn entry(&self, name: &str) -> Option<(&str, &Entry)> {
        let bare = name.rsplit(['/', ':']).next().filter(|n| !n.is_empty()).unwrap_or(name);
        let whole = self.models.get_key_value(name).or_else(|| self.models.get_key_value(bare));
        let (name, entry) = whole.or_else(|| {
            // The longest name that this one is a dated version of.
            let is_version = |known: &str| {
                let rest = bare.strip_prefix(known).and_then(|rest| rest.strip_prefix(['-', '@']));
                let is_date = |rest: &str| {
                    // Less is the number of another model: `claude-opus-4-8` is none of `claude-opus-4`.
                    let digits = rest.chars().filter(char::is_ascii_digit).count();
                    digits >= 3 && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
                };
                rest.is_some_and(|rest| rest == "latest" || is_date(rest))
            };
            self.models.iter().filter(|(known, _)| is_version(known)).max_by_key(|(known, _)| known.len())
        })?;
        Some((name, entry))
    }

    /// Looks up price and limits of a model as [`Prices::entry`] does.
    pub fn model(&self, name: &str) -> Option<Model> {
        let found = self.entry(name)?.1.model;
        Some(Model { millis: found.millis.or(self.millis), ..found })
    }

    /// The most milliseconds of a call of any model.
    pub fn millis(&self) -> Option<u64> {
        self.millis
    }
}

/// Reads the parts of a list.
struct ListReader<'t> {
    text: &'t str,
}

/// A value with its place.
type Value<'t> = Spanned<DeValue<'t>>;

/// A number as it is written, without the underscores.
const NUMBER: &str = "write a number such as `0.4`";

impl<'t> ListReader<'t> {
    fn error(&self, at: Range<usize>, message: String, help: String) -> PriceListError {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        PriceListError { place: (line, column), message, help }
    }

    fn unknown(
        &self,
        key: &Spanned<std::borrow::Cow<'t, str>>,
        path: &str,
        name: &str,
        known: &[&str],
    ) -> PriceListError {
        let help = format!("expected `{}`", known.join("`, `"));
        self.error(key.span(), format!("unknown key `{path}{name}`"), help)
    }

    fn table<'v>(&self, at: &str, value: &'v Value<'t>) -> Result<&'v DeTable<'t>, PriceListError> {
        let wrong = || {
            let help = format!("write it as a table: `[{at}]`");
            self.error(value.span(), format!("`{at}` is not a table"), help)
        };
        value.get_ref().as_table().ok_or_else(wrong)
    }

    fn source(&self, at: &str, value: &Value<'t>) -> Result<Arc<str>, PriceListError> {
        let text = value.get_ref().as_str().filter(|t| !t.trim().is_empty());
        text.map(Arc::from).ok_or_else(|| {
            let help = "write the address of the page, or the name of the contract, in quotes";
            self.error(value.span(), format!("`{at}` is not a text"), help.into())
        })
    }

    fn date(&self, at: &str, value: &Value<'t>) -> Result<Arc<str>, PriceListError> {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(date) => date.to_string(),
            _ => String::new(),
        };
        if is_day(&text) {
            return Ok(text.into());
        }
        let help = "write a day that exists, such as `\"2026-11-27\"`";
        Err(self.error(value.span(), format!("`{at}` is not a date"), help.into()))
    }

    /// A number that is not negative, exactly.
    fn number(&self, at: &str, value: &Value<'t>) -> Result<Num, PriceListError> {
        let wrong = |what: &str| self.error(value.span(), format!("`{at}` {what}"), NUMBER.into());
        let text = match value.get_ref() {
            DeValue::Integer(n) if n.radix() == 10 => n.as_str(),
            DeValue::Float(n) => n.as_str(),
            _ => return Err(wrong("is not a number")),
        };
        let number = text.trim_start_matches('+').parse::<Num>().map_err(|_| wrong("is not a number"))?;
        if number < Num::ZERO || number >= Num::from(1_000_000_000_000) {
            return Err(wrong("is out of range"));
        }
        Ok(number)
    }

    /// A number that is not negative, in smaller units, rounded up.
    fn scaled(&self, at: &str, value: &Value<'t>, by: f64) -> Result<u64, PriceListError> {
        let number = self.number(at, value)?;
        let n = number.to_json().as_f64().unwrap_or(f64::INFINITY) * by;
        if !(0.0..1e15).contains(&n) {
            return Err(self.error(value.span(), format!("`{at}` is out of range"), NUMBER.into()));
        }
        // Binary fractions may stand a hair above the decimal that was written.
        Ok((n - 1e-6).ceil().max(0.0) as u64)
    }

    fn entry(&self, name: &str, value: &Value<'t>, general: &Entry) -> Result<Entry, PriceListError> {
        const KNOWN: [&str; 9] = [
            "input",
            "output",
            "cached",
            "cache_write",
            "context",
            "max_output",
            "seconds",
            "date",
            "source",
        ];
        let path = format!("models.\"{name}\"");
        let mut model = Model::default();
        let (mut date, mut source) = (general.date.clone(), general.source.clone());
        let mut prices: [Option<Num>; 4] = [None, None, None, None];
        for (key, value) in self.table(&path, value)? {
            let at = format!("{path}.{}", key.get_ref());
            // A dollar for a million tokens is a thousand billionths for one.
            match key.get_ref().as_ref() {
                "input" => {
                    prices[0] = Some(self.number(&at, value)?);
                    model.input = Some(self.scaled(&at, value, 1_000.0)?);
                }
                "output" => {
                    prices[1] = Some(self.number(&at, value)?);
                    model.output = Some(self.scaled(&at, value, 1_000.0)?);
                }
                "cached" => prices[2] = Some(self.number(&at, value)?),
                "cache_write" => prices[3] = Some(self.number(&at, value)?),
                "context" => model.context = Some(self.scaled(&at, value, 1.0)?),
                "max_output" => model.max_output = Some(self.scaled(&at, value, 1.0)?),
                "seconds" => model.millis = Some(self.scaled(&at, value, 1_000.0)?),
                "date" => date = Some(self.date(&at, value)?),
                "source" => source = Some(self.source(&at, value)?),
                other => return Err(self.unknown(key, &format!("{path}."), other, &KNOWN)),
            }
        }
        let [input, output, cached, cache_write] = prices;
        let price =
            input.zip(output).map(|(input, output)| TokenPrice { input, output, cached, cache_write });
        Ok(Entry { model, price, date, source })
    }

    /// Refuses an entry that leaves out what a list has to say.
    fn complete(
        &self,
        name: &Spanned<std::borrow::Cow<'t, str>>,
        entry: &Entry,
    ) -> Result<(), PriceListError> {
        let missing = if entry.price.is_none() {
            "`input` or no `output`"
        } else if entry.date.is_none() {
            "`date`"
        } else if entry.source.is_none() {
            "`source`"
        } else {
            return Ok(());
        };
        let help = if entry.price.is_none() {
            "write both, in US dollars for a million tokens"
        } else {
            "write it in the entry, or before the first table for all entries"
        };
        let message = format!("`models.\"{}\"` has no {missing}", name.get_ref());
        Err(self.error(name.span(), message, help.into()))
    }
}

/// Returns whether a text is a day of the calendar, as `2026-11-27`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let digits = |part: &str, n: usize| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) || !digits(day, 2) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or_default();
    let (year, month, day) = (number(year), number(month), number(day));
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read() {
        let prices = Prices::list(STANDARD).unwrap();
        assert!(prices.models.len() > 20 && !prices.date.is_empty());
        for (name, entry) in &prices.models {
            let m = entry.model;
            assert!(m.input.is_some() && m.output.is_some() && m.input <= m.output, "{name}");
            let price = entry.price.as_ref().unwrap();
            assert!(price.cached.as_ref().is_none_or(|cached| *cached <= price.input), "{name}");
        }
        assert_eq!(prices.model("gpt-4o-mini").unwrap().input, Some(150));
    }

    #[test]
    fn versions_and_providers_are_recognized_and_nothing_else() {
        let prices = Prices::standard();
        let of = |name: &str| prices.model(name).and_then(|m| m.input);
        assert_eq!(of("openai/gpt-4o-mini-2024-07-18"), Some(150));
        assert_eq!(of("claude-3-5-sonnet-latest"), Some(3_000));
        assert_eq!(prices.entry("openai/gpt-4o-mini-2024-07-18").unwrap().0, "gpt-4o-mini");
        // Another model of the family may cost something else.
        let known = Prices::default().with("[models.claude-opus-4]\ninput = 15\noutput = 75").unwrap();
        assert_eq!(known.model("claude-opus-4-8"), None);
        assert_eq!(known.model("claude-opus-4@20250514").unwrap().input, Some(15_000));
        assert_eq!(of("gpt-4o-audio"), None);
        assert_eq!(of("gpt-4o-minimal"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn prices_are_exact() {
        let text = "[models.m]\ninput = 0.0375\noutput = 1_000.5\ncached = 0.003";
        let entry = Prices::default().with(text).unwrap().models.remove("m").unwrap();
        let price = entry.price.unwrap();
        assert_eq!(price.input, "0.0375".parse().unwrap());
        assert_eq!(price.output, "1000.5".parse().unwrap());
        assert_eq!(price.cached, Some("0.003".parse().unwrap()));
        // A bound is rounded up.
        assert_eq!(entry.model.input, Some(38));
    }

    #[test]
    fn mistakes_have_a_place_and_a_remedy() {
        let general = "date = \"2026-02-28\"\nsource = \"s\"\n";
        let cases = [
            ("x = 1", (1, 1), "unknown key `x`", "`date`, `source`"),
            ("date = \"2026-02-29\"", (1, 8), "`date` is not a date", "a day that exists"),
            ("date = 7", (1, 8), "`date` is not a date", "a day that exists"),
            ("source = \" \"", (1, 10), "`source` is not a text", "address of the page"),
            ("models = 1", (1, 10), "`models` is not a table", "[models]"),
            ("[models.m]\ninput = -1\noutput = 1", (2, 9), "`models.\"m\".input` is out of range", "0.4"),
            ("[models.m]\ninput = nan\noutput = 1", (2, 9), "`models.\"m\".input` is not a number", "0.4"),
            ("[models.m]\ninput = \"1\"", (2, 9), "`models.\"m\".input` is not a number", "0.4"),
            ("[models.m]\nprice = 1", (2, 1), "unknown key `models.\"m\".price`", "`input`"),
            ("[models.m]\ninput = 1", (1, 9), "`models.\"m\"` has no `input` or no `output`", "write both"),
            ("[models.m]\ninput = 1\noutput = 2", (1, 9), "`models.\"m\"` has no `date`", "for all entries"),
            ("[models.m\n", (1, 10), "unclosed table", "TOML"),
            ("", (1, 1), "the list has no models", "[models.\"gpt-4.1\"]"),
        ];
        for (text, place, message, help) in cases {
            let e = Prices::list(text).unwrap_err();
            assert!(e.message.contains(message) && e.help.contains(help), "{text}: {e:?}");
            assert_eq!(e.place, place, "{text}: {e:?}");
        }
        let e = Prices::list("date = \"2026-02-28\"\n[models.m]\ninput = 1\noutput = 2").unwrap_err();
        assert!(e.message.contains("has no `source`"), "{e:?}");
        let good = format!("{general}[models.m]\ninput = 1\noutput = 2\ndate = 2024-02-29\n");
        let prices = Prices::list(&good).unwrap();
        assert_eq!(prices.entry("m").unwrap().1.date.as_deref(), Some("2024-02-29"));
        // The list replaces the other one.
        assert_eq!(prices.model("gpt-4o"), None);
    }
}
