//! `entail compile`: the core term of a program or configuration.

use super::{choose, load_or_say, worth_saying};
use crate::args::{CompileArgs, Format};
use crate::setup;
use crate::ui::{Exit, Ui};
use ::policy::Policy;
use core_ir::{ModelRoutes, Style, print_with};
use diagnostics::{Sources, has_errors};
use entries::picture;
use session::bound::Pricing;
use session::load::{Loaded, Runnable};
use std::sync::Arc;

/// Runs the command.
pub fn compile(ui: &Ui, args: &CompileArgs) -> Exit {
    if args.stats {
        if !matches!(ui.args.format, Format::Text | Format::Json) {
            return ui.usage("`--stats` writes the formats `text` and `json`", None);
        }
        return super::compile_stats::stats(ui, &args.file);
    }
    let mut sources = Sources::new();
    let Loaded { runnables: all, found, policy, routes, .. } =
        match load_or_say(ui, &mut sources, &args.file, args.policy.as_deref()) {
            Ok(loaded) => loaded,
            Err(exit) => return exit,
        };
    let failed = has_errors(&found);
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let all = match rewritten(ui, args, all) {
        Ok(all) => all,
        Err(exit) => return exit,
    };
    let shown: Vec<&Runnable> = match &args.pipeline {
        Some(name) => match choose(ui, &args.file, &all, Some(name)) {
            Ok(one) => vec![one],
            Err(exit) => return exit,
        },
        // An image shows one term.
        None if ui.args.format == Format::Svg => match choose(ui, &args.file, &all, None) {
            Ok(one) => vec![one],
            Err(exit) => return exit,
        },
        None => all.iter().collect(),
    };
    for r in &shown {
        if ui.is_json() {
            ui.result(&core_ir::exchange::to_json(&r.code, &sources).to_string());
            continue;
        }
        if matches!(ui.args.format, Format::Mermaid | Format::Dot | Format::Svg) {
            match drawn(ui.args.format, policy.as_ref(), &routes, r) {
                Ok(text) => ui.result(text.trim_end()),
                Err(message) => {
                    return ui.usage(&message, Some("`--format dot` writes it for another program"));
                }
            }
            continue;
        }
        let style = if args.lam || ui.args.format == Format::Lam { Style::TEXT } else { Style::UNICODE };
        let printed = print_with(&r.code, style);
        if shown.len() > 1 {
            ui.result(&format!("# {}", r.name));
        }
        ui.result(&printed.text);
        if args.origins {
            origins(ui, &sources, r, &printed);
        }
        if shown.len() > 1 {
            ui.result("");
        }
    }
    if failed { Exit::Failed } else { Exit::Done }
}

/// Applies the rewrites of `--optimize` to the entry points.
fn rewritten(ui: &Ui, args: &CompileArgs, all: Vec<Runnable>) -> Result<Vec<Runnable>, Exit> {
    if args.optimize.is_empty() {
        return Ok(all);
    }
    let rules = optimize::rules(args.optimize.iter().map(|n| n.trim())).map_err(|name| {
        let names: Vec<&str> = optimize::RULES.iter().map(|r| r.name).collect();
        ui.usage(
            &format!("unknown rewrite `{name}`"),
            Some(&format!("there is `laws`, `cost`, {}", names.join(", "))),
        )
    })?;
    let saves = rules.iter().any(|r| r.kind == optimize::Kind::Cost);
    let pricing = Pricing::of(&setup::settings(ui)?, None);
    let optimized = all.into_iter().map(|r| {
        let done = optimize::optimize(&r.code, &rules);
        let mut used: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        done.steps.iter().for_each(|s| *used.entry(s.rule).or_default() += 1);
        let used: Vec<String> = used.iter().map(|(name, n)| format!("{name} {n}")).collect();
        let used = if used.is_empty() { "nothing to rewrite".into() } else { used.join(", ") };
        ui.note(&format!("{}: {used}", r.name));
        let code = Arc::new(done.code);
        if saves {
            let called = r.analyzed_for().is_some();
            let bound = |code: &Arc<core_ir::Code>| pricing.bound(code, called);
            let (before, after) = (bound(&r.code), bound(&code));
            for ((what, old), (_, new)) in super::cost::rows(&before).iter().zip(super::cost::rows(&after)) {
                ui.note(&format!("  {what:<15}{old}, then {new}"));
            }
        }
        Runnable { code, ..r }
    });
    Ok(optimized.collect())
}

/// The term as a picture, with what the flow analysis says of it.
fn drawn(
    format: Format,
    policy: Option<&Policy>,
    routes: &ModelRoutes,
    r: &Runnable,
) -> Result<String, String> {
    let drawn = picture::of(r, policy, routes);
    match format {
        Format::Mermaid => Ok(drawn.mermaid()),
        Format::Dot => Ok(drawn.dot()),
        _ => picture::svg(&drawn),
    }
}

/// Lists the parts of the term, each with the place it came from, outer ones first.
fn origins(ui: &Ui, sources: &Sources, r: &Runnable, printed: &core_ir::print::Printed) {
    const WIDTH: usize = 56;
    ui.result("\nwhere each part came from:");
    let mut parts: Vec<_> = printed.parts.iter().collect();
    parts.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    for (range, id) in parts {
        let text = printed.text.get(range.clone()).unwrap_or("");
        let one_line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let clipped: String = one_line.chars().take(WIDTH).collect();
        let dots = if clipped.len() < one_line.len() { "…" } else { "" };
        ui.result(&format!("  {:<24} {clipped}{dots}", sources.place(r.code.span(*id))));
    }
}
