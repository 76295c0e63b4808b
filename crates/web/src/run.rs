//! A run on scripted answers.

use crate::Document;
use crate::check::{finding, programs};
use crate::places::Places;
use analysis::cost::{self, Prices};
use core_ir::{Data, ModelRoutes};
use entries::input::{self, InputError};
use entries::{machine_config, report};
use ide::Programs;
use machine::Machine;
use runs::trace::{Head, Recorder};
use runs::{Script, run_script};
use serde_json::{Value, json};

/// Steps of a run at most: a page that computes answers nothing else. Some seconds.
const FUEL: u64 = 5_000_000;

/// An entry point with its input and answers.
pub(crate) struct Spec {
    pub(crate) entry: String,
    pub(crate) input: Option<String>,
    pub(crate) script: String,
    pub(crate) now: u64,
}

/// Answers `run`: the lines of the trace, the outcome, and what is to be said of it.
pub(crate) fn run(document: &Document, spec: &Spec) -> Value {
    let Programs { sources, entries, policy, .. } = programs(document);
    let Some(r) = entries.iter().find(|r| r.name == spec.entry) else {
        return json!({"error": format!("there is no entry point `{}`", diagnostics::clip(&spec.entry))});
    };
    let input = match input::read(r, spec.input.as_deref()) {
        Ok(input) => input,
        Err(InputError::Missing(message, example)) => {
            return json!({"error": message, "help": format!("write it as `{example}`")});
        }
        Err(InputError::Wrong(message, help)) => return json!({"error": message, "help": help}),
    };
    let mut script = match Script::parse(&spec.script, "the script") {
        Ok(script) => script,
        Err(e) => return json!({"error": e.message, "help": e.help}),
    };
    let mut config = machine_config(Some(FUEL), policy.as_ref());
    config.explain_flow = true;
    let bound = cost::bound_with(&r.code, input.is_some(), Prices::standard(), &ModelRoutes::default());
    let head = Head { program: document.path.clone(), entry: r.name.clone(), input: input.clone() };
    let machine = Machine::new(r.code.clone(), input, config);
    let mut recorder = Recorder::new();
    let ended = run_script(machine, &mut script, spec.now, &mut |event| recorder.note(&event));
    let mut found = report::refused_calls(&ended, &r.code, policy.as_ref());
    if let Err(failure) = &ended.result {
        found.push(report::as_diagnostic(failure, &ended, &r.code, policy.as_ref()));
    }
    let places = [Places::of(&document.text), Places::of(document.policy.as_deref().unwrap_or(""))];
    let findings: Vec<Value> = found.iter().map(|d| finding(&sources, &places, d)).collect();
    json!({
        "trace": recorder.lines(&head, &sources, &ended),
        "outcome": report::as_json(&sources, &ended, &bound),
        "shown": ended.result.as_ref().ok().map(|value| value.data().map_or_else(|| value.to_string(), |d| pretty(&d))),
        "findings": findings,
        "unused": script.left(),
    })
}

fn pretty(data: &Data) -> String {
    // INVARIANT: a JSON value serializes.
    serde_json::to_string_pretty(&data.to_json()).unwrap_or_default()
}
