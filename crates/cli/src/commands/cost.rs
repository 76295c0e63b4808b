//! `entail cost`: what a run may cost at most, before it runs.

use super::{choose, load_or_say, worth_saying};
use crate::args::CostArgs;
use crate::ui::{Exit, Ui};
use analysis::cost::{CostBound, Interval, dollars};
use diagnostics::Sources;
use serde_json::{Value, json};
use session::bound::{Pricing, figures, path};
use session::load::{Loaded, Runnable};
use session::settings::Settings;

/// Runs the command.
pub fn cost(ui: &Ui, args: &CostArgs) -> Exit {
    let settings = match crate::setup::settings(ui) {
        Ok(settings) => settings,
        Err(exit) => return exit,
    };
    let pricing = match pricing(args, &settings) {
        Ok(pricing) => pricing,
        Err((message, help)) => return ui.usage(&message, help.as_deref()),
    };
    let mut sources = Sources::new();
    let Loaded { runnables: all, found, declared, .. } =
        match load_or_say(ui, &mut sources, &args.file, args.policy.as_deref()) {
            Ok(loaded) => loaded,
            Err(exit) => return exit,
        };
    ui.problems(&sources, &worth_saying(ui, found));
    let chosen: Vec<&Runnable> = match &args.pipeline {
        None => all.iter().collect(),
        name => match choose(ui, &args.file, &all, name.as_deref()) {
            Ok(one) => vec![one],
            Err(exit) => return exit,
        },
    };
    let models = chosen.iter().flat_map(|r| pricing.models(&r.code)).collect();
    if let Err(exit) = super::lock::compare(ui, &settings, &models, &declared, args.locked) {
        return exit;
    }
    for r in chosen {
        show(ui, &sources, args, r, &pricing.bound(&r.code, r.analyzed_for().is_some()));
    }
    Exit::Done
}

/// The prices of the settings, with those of `--prices` before them.
///
/// # Errors
/// The problem with that file, and the remedy if there is one.
fn pricing(args: &CostArgs, settings: &Settings) -> Result<Pricing, (String, Option<String>)> {
    let mut pricing = Pricing::of(settings, None);
    if let Some(model) = &args.model {
        pricing = pricing.with_default(model);
    }
    let Some(path) = &args.prices else { return Ok(pricing) };
    let text = super::prices::text_of(path).map_err(|e| (e.message, e.help))?;
    pricing.with_list(&text).map_err(|e| (format!("{}:{e}", path.display()), Some(e.help)))
}

fn show(ui: &Ui, sources: &Sources, args: &CostArgs, r: &Runnable, bound: &CostBound) {
    if ui.is_json() {
        let mut object = json!({"path": args.file, "entry": r.name});
        if let (Some(o), Value::Object(more)) = (object.as_object_mut(), figures(bound, sources)) {
            o.extend(more);
            if args.explain {
                o.insert("path_taken".into(), path(bound, sources));
            }
        }
        return ui.result(&object.to_string());
    }
    ui.result(&format!("{}: {}", args.file, r.name));
    table(bound, sources).iter().for_each(|line| ui.result(&format!("  {line}")));
    if args.explain {
        ui.result("  the most expensive path:");
        for line in &bound.path {
            let indent = "  ".repeat(line.depth as usize + 2);
            ui.result(&format!("{indent}{}: {}", sources.place(line.span), line.text));
        }
        if bound.path.is_empty() {
            ui.result("    no calls");
        }
    }
}

/// The lines of the table of one entry point, with the places that have no bound.
pub(super) fn table(bound: &CostBound, sources: &Sources) -> Vec<String> {
    let mut lines: Vec<String> =
        rows(bound).into_iter().map(|(what, text)| format!("{what:<15}{text}")).collect();
    lines.extend(bound.unbounded.iter().map(|(span, why)| format!("at {}: {why}", sources.place(*span))));
    lines
}

/// The table of one entry point.
pub(super) fn rows(bound: &CostBound) -> Vec<(&'static str, String)> {
    let number = |i: Interval, unit: &dyn Fn(u64) -> String| match (i.least, i.most) {
        (least, Some(most)) if least == most => unit(most),
        (0, Some(most)) => format!("at most {}", unit(most)),
        (least, Some(most)) => format!("{} to {}", unit(least), unit(most)),
        (0, None) => "no bound known".into(),
        (least, None) => format!("at least {}, no bound known", unit(least)),
    };
    // The known price covers only a part.
    let money = match (bound.unpriced.is_empty(), bound.money.most) {
        (true, _) => number(bound.money, &dollars),
        (false, Some(0) | None) => "price unknown".into(),
        (false, Some(_)) => format!("{}, and what has no price", number(bound.money, &dollars)),
    };
    let mut rows = vec![
        ("model calls", number(bound.model_calls, &grouped)),
        ("tool calls", number(bound.tool_calls, &grouped)),
        ("input tokens", number(bound.input_tokens, &grouped)),
        ("output tokens", number(bound.output_tokens, &grouped)),
        ("money", money),
        ("time", number(bound.millis, &duration)),
    ];
    for (model, calls) in &bound.unpriced {
        let name = match model.is_empty() {
            true => "the run's default model; `--model NAME` names it".into(),
            false => format!("`{model}`"),
        };
        let calls = calls.map_or("any number of calls".into(), |n| super::plural(n as usize, "call"));
        rows.push(("not priced", format!("{calls} of {name}")));
    }
    rows
}

/// A number with its digits in groups of three.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn duration(millis: u64) -> String {
    match millis {
        n if n < 60_000 => format!("{} s", n.div_ceil(1_000)),
        n if n < 6_000_000 => format!("{} min", n.div_ceil(60_000)),
        n => format!("{} h", n.div_ceil(3_600_000)),
    }
}
