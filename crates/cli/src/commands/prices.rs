//! `entail prices`: prices of models, from when they hold and where they are from; and the replacement of
//! the list.

use crate::args::{PricesArgs, PricesCommand};
use crate::ui::{Exit, Ui};
use analysis::cost::Prices;
use core_ir::Num;
use serde_json::{Map, Value, json};
use session::SettingsError;
use session::bound::{PriceOrigin, price_of};
use session::load::read_kept;
use session::settings::Settings;
use std::path::{Path, PathBuf};

/// Runs the command.
pub fn prices(ui: &Ui, args: &PricesArgs) -> Exit {
    match &args.command {
        Some(PricesCommand::Update { file }) => update(ui, file),
        None => list(ui, &args.models),
    }
}

/// Reads a list of prices as text.
///
/// # Errors
/// The reason why it can't be read.
pub(super) fn text_of(path: &Path) -> Result<String, SettingsError> {
    read_kept(path).map_err(|e| SettingsError::unreadable(path, &e))
}

/// A row of the list: the model, its prices, and where they are from.
struct Row {
    name: String,
    /// Entry of the list that the name means, if it is another one.
    listed_as: Option<String>,
    /// US dollars for a million tokens: prompt, reply, cached, written to the cache.
    prices: [Option<Num>; 4],
    date: Option<String>,
    source: String,
    /// The source in JSON.
    kind: &'static str,
}

fn row(settings: &Settings, name: &str) -> Row {
    let unknown = |source: &str, kind| Row {
        name: name.to_string(),
        listed_as: None,
        prices: [None, None, None, None],
        date: None,
        source: source.to_string(),
        kind,
    };
    match price_of(settings, name) {
        PriceOrigin::Settings(price) => {
            let exact = |x: f64| format!("{x}").parse::<Num>().ok();
            let [cached, written] = [price.cached, price.cache_write].map(|x| x.and_then(exact));
            let prices = [exact(price.input), exact(price.output), cached, written];
            Row { prices, ..unknown("`price` of its entry in the settings", "settings") }
        }
        PriceOrigin::Free => {
            let prices = [Some(Num::ZERO), Some(Num::ZERO), None, None];
            Row { prices, ..unknown("its provider runs on your own hosts", "free") }
        }
        PriceOrigin::Listed(entry, found) => {
            let price = found.price.clone();
            let cached = price.as_ref().map(|p| [p.cached.clone(), p.cache_write.clone()]);
            let [cached, written] = cached.unwrap_or_default();
            Row {
                listed_as: (entry != name).then(|| entry.to_string()),
                prices: [price.as_ref().map(|p| p.input.clone()), price.map(|p| p.output), cached, written],
                date: found.date.as_deref().map(String::from),
                ..unknown(found.source.as_deref().unwrap_or("unknown"), "list")
            }
        }
        PriceOrigin::Elsewhere => {
            unknown("not at the address of its vendor: set `price` in its entry", "unknown")
        }
        PriceOrigin::Unknown => unknown("no list has it: set `price` in an entry of the settings", "unknown"),
    }
}

fn list(ui: &Ui, models: &[String]) -> Exit {
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let names: Vec<String> = if models.is_empty() {
        let own = settings.models.models.keys().cloned();
        let listed = settings.prices().entries().map(|(name, _)| name.to_string());
        let mut names: Vec<String> = own.chain(listed).collect();
        names.sort();
        names.dedup();
        names
    } else {
        models.to_vec()
    };
    let rows: Vec<Row> = names.iter().map(|name| row(&settings, name)).collect();
    let place = own_list(&settings);
    let origin = if settings.has_own_prices() { place.display().to_string() } else { "built in".into() };
    if ui.is_json() {
        let models: Vec<Value> = rows.iter().map(json_of).collect();
        let list = json!({"origin": origin, "date": settings.prices().date});
        ui.result(&json!({"list": list, "models": models}).to_string());
        return Exit::Done;
    }
    ui.note(&format!("list of prices: {origin}; US dollars for a million tokens"));
    let cells: Vec<[String; 6]> = rows.iter().map(cells_of).collect();
    let head = ["model", "input", "output", "cached", "cache write", "from"].map(String::from);
    let width = |column: usize| {
        let all = cells.iter().chain([&head]).map(|row| row[column].chars().count());
        all.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let sources = rows.iter().map(|row| row.source.as_str());
    for (row, source) in std::iter::once((&head, "source")).chain(cells.iter().zip(sources)) {
        let line: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        ui.result(format!("{}  {source}", line.join("  ")).trim_end());
    }
    Exit::Done
}

fn cells_of(row: &Row) -> [String; 6] {
    let name = match &row.listed_as {
        Some(entry) => format!("{} (as {entry})", row.name),
        None => row.name.clone(),
    };
    let [input, output, cached, written] = &row.prices;
    let known = |price: &Option<Num>| price.as_ref().map_or("unknown".into(), |n| n.to_json().to_string());
    let special = |price: &Option<Num>| price.as_ref().map_or("-".into(), |n| n.to_json().to_string());
    let date = row.date.clone().unwrap_or_else(|| "-".into());
    [name, known(input), known(output), special(cached), special(written), date]
}

fn json_of(row: &Row) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), json!(row.name));
    out.insert("as".into(), json!(row.listed_as));
    for (name, price) in ["input", "output", "cached", "cacheWrite"].into_iter().zip(&row.prices) {
        out.insert(name.into(), price.as_ref().map_or(Value::Null, Num::to_json));
    }
    out.insert("date".into(), json!(row.date));
    out.insert("source".into(), json!(row.source));
    out.insert("kind".into(), json!(row.kind));
    Value::Object(out)
}

/// Place of the list that replaces the built-in one.
fn own_list(settings: &Settings) -> PathBuf {
    settings.dir.join(Settings::PRICES)
}

/// Replaces the list of prices. The old one stays if the new one can't be used.
fn update(ui: &Ui, file: &Path) -> Exit {
    let text = match text_of(file) {
        Ok(text) => text,
        Err(e) => return crate::setup::refuse(ui, e),
    };
    let new = match Prices::list(&text) {
        Ok(new) => new,
        Err(e) => return ui.usage(&format!("{}:{e}", file.display()), Some(&e.help)),
    };
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let place = own_list(&settings);
    let shown = place.display().to_string();
    // Written beside it first: whoever reads it meanwhile finds the old one or the new one.
    let draft = place.with_extension("toml.new");
    let written = std::fs::write(&draft, &text).and_then(|()| std::fs::rename(&draft, &place));
    if let Err(e) = written {
        let _ = std::fs::remove_file(&draft);
        return ui.cannot_write(shown, &e);
    }
    let left_out: Vec<&str> =
        settings.prices().entries().map(|(name, _)| name).filter(|name| !new.has_entry(name)).collect();
    let count = new.entries().count();
    if ui.is_json() {
        ui.result(&json!({"path": shown, "models": count, "leftOut": left_out}).to_string());
        return Exit::Done;
    }
    ui.result(&format!("wrote `{shown}`: prices of {}", super::plural(count, "model")));
    if !left_out.is_empty() {
        let names = diagnostics::clip_to(&left_out.join(", "), 500);
        ui.note(&format!("without a price from now on, as the new list leaves them out: {names}"));
    }
    Exit::Done
}
