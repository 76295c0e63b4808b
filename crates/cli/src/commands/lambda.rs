//! `entail lambda`: the term of a program in the notation of the literature.

use super::{choose, load_or_say, worth_saying};
use crate::args::LambdaArgs;
use crate::ui::{Exit, Ui};
use core_ir::paper::{Notation, paper};
use diagnostics::Sources;
use serde_json::json;
use session::load::{Loaded, Runnable};

/// Runs the command.
pub fn lambda(ui: &Ui, args: &LambdaArgs) -> Exit {
    let mut sources = Sources::new();
    let Loaded { runnables: all, found, .. } =
        match load_or_say(ui, &mut sources, &args.file, args.policy.as_deref()) {
            Ok(loaded) => loaded,
            Err(exit) => return exit,
        };
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
    let notation = match (args.ascii, args.latex) {
        (true, _) => Notation::Ascii,
        (_, true) => Notation::Latex,
        _ => Notation::Unicode,
    };
    for (i, r) in shown.iter().enumerate() {
        let text = paper(&r.code, r.code.root(), notation);
        if ui.is_json() {
            ui.result(&json!({"path": args.file, "entry": r.name, "term": text}).to_string());
            continue;
        }
        if shown.len() > 1 {
            let mark = if args.latex { "%" } else { "#" };
            ui.result(&format!("{}{mark} {}", if i > 0 { "\n" } else { "" }, r.name));
        }
        ui.result(&text);
    }
    Exit::Done
}
