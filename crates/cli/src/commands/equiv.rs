//! `entail check --equiv`: whether two programs are equal up to the laws.

use super::{choose, load_or_say};
use crate::ui::{Exit, Ui};
use core_ir::Code;
use diagnostics::{Sources, has_errors};
use optimize::{Verdict, equivalent};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs the command.
pub fn equiv(ui: &Ui, paths: &[PathBuf]) -> Exit {
    let [a, b] = paths else {
        return ui.usage("`--equiv` compares two files", Some("name exactly two"));
    };
    let (first, second) = (a.display().to_string(), b.display().to_string());
    let (a, b) = match program(ui, &first).and_then(|a| Ok((a, program(ui, &second)?))) {
        Ok(both) => both,
        Err(exit) => return exit,
    };
    match equivalent(&a, &b) {
        // Two parts that are not known are not known to be equal.
        Verdict::Equal(_) if unknown_parts(&a) > 0 => {
            if ui.is_json() {
                ui.result(&json!({"equal": null, "laws": {}, "unknownParts": unknown_parts(&a)}).to_string());
                return Exit::Failed;
            }
            let (n, plural) = (unknown_parts(&a), if unknown_parts(&a) == 1 { "" } else { "s" });
            ui.result(&format!(
                "unknown: all that is known of them is equal, but each has {n} part{plural} that is not known before the run \
                 (`entail compile --stats -v` lists them)"
            ));
            Exit::Failed
        }
        Verdict::Equal(laws) => {
            if ui.is_json() {
                let laws: serde_json::Map<String, serde_json::Value> =
                    laws.iter().map(|(name, (a, b))| ((*name).to_string(), json!([a, b]))).collect();
                ui.result(&json!({"equal": true, "laws": laws}).to_string());
                return Exit::Done;
            }
            if laws.is_empty() {
                ui.result("equal: the terms are the same but for names");
                return Exit::Done;
            }
            ui.result("equal, by");
            for (name, (a, b)) in laws {
                let equation = optimize::RULES.iter().find(|r| r.name == name).map_or("", |r| r.equation);
                ui.result(&format!("  {name:<16}{a} + {b} times  {equation}"));
            }
            Exit::Done
        }
        Verdict::Unknown => {
            if ui.is_json() {
                ui.result(&json!({"equal": null, "laws": {}}).to_string());
                return Exit::Failed;
            }
            ui.result("unknown: the laws do not show that they are equal");
            Exit::Failed
        }
    }
}

/// Returns the number of unknown parts of a program.
fn unknown_parts(code: &Code) -> usize {
    code.iter().filter(|(_, term)| matches!(term, core_ir::Term::Unknown(_))).count()
}

/// The term that a file runs if no name is given.
fn program(ui: &Ui, path: &str) -> Result<Arc<Code>, Exit> {
    let mut sources = Sources::new();
    let loaded = load_or_say(ui, &mut sources, path, None)?;
    if has_errors(&loaded.found) {
        ui.problems(&sources, &loaded.found);
        return Err(Exit::Failed);
    }
    choose(ui, path, &loaded.runnables, None).map(|r| r.code.clone())
}
