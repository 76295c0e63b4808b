//! `entail compile`: the core term of a program or configuration.

use super::{choose, load_or_say, worth_saying};
use crate::args::{CompileArgs, Format};
use crate::load::Runnable;
use crate::ui::{Exit, Ui};
use core_ir::{Style, print_with};
use diagnostics::{Sources, has_errors};

/// Runs the command.
pub fn compile(ui: &Ui, args: &CompileArgs) -> Exit {
    if args.stats {
        return super::compile_stats::stats(ui, &args.file);
    }
    let mut sources = Sources::new();
    let (all, found) = match load_or_say(ui, &mut sources, &args.file) {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let failed = has_errors(&found);
    if !ui.is_json() {
        ui.problems(&sources, &worth_saying(ui, found));
    }
    let shown: Vec<&Runnable> = match &args.pipeline {
        Some(name) => match choose(ui, &args.file, &all, Some(name)) {
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
        let picture = match ui.args.format {
            Format::Mermaid => Some(core_ir::draw::draw(&r.code).mermaid()),
            Format::Dot => Some(core_ir::draw::draw(&r.code).dot()),
            _ => None,
        };
        if let Some(picture) = picture {
            ui.result(picture.trim_end());
            continue;
        }
        let style = if args.lam { Style::TEXT } else { Style::UNICODE };
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
