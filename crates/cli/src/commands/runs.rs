//! `entail runs`: the runs of a journal.

use crate::args::{RunsAction, RunsArgs};
use crate::ui::{Exit, Ui};
use diagnostics::visible;
use runtime::{Approvers, Forged, Forgery, Journal, JournalError, JournalPlace, RunInfo, StepInfo};
use serde_json::{Value, json};
use session::report::standing;

/// Runs `entail runs`.
pub fn runs(ui: &Ui, args: &RunsArgs) -> Exit {
    #[cfg(feature = "engine")]
    if let Some(engine) = &args.engine {
        return super::engine::list(ui, engine, &args.action);
    }
    let approvers = match crate::setup::approvers(ui) {
        Ok(approvers) => approvers,
        Err(exit) => return exit,
    };
    let place = match crate::setup::journal(ui, &args.journal) {
        Ok(place) => place.or_file(),
        Err(exit) => return exit,
    };
    match act(ui, args, &place, approvers) {
        Ok(exit) => exit,
        Err(e) => ui.usage(&e.message, e.help.as_deref()),
    }
}

fn act(ui: &Ui, args: &RunsArgs, place: &JournalPlace, approvers: Approvers) -> Result<Exit, JournalError> {
    let mut journal = Journal::existing(place)?.with_approvers(approvers);
    match &args.action {
        RunsAction::List { last } => {
            for run in last.map_or_else(|| journal.runs(), |most| journal.newest(most))? {
                let waiting = journal.waiting(Some(&run.id))?;
                let standing = standing(&journal, &run, !waiting.is_empty());
                if ui.is_json() {
                    let mut object = run_json(&run, standing);
                    object["waiting"] = waiting.iter().map(session::report::waiting_json).collect();
                    ui.result(&object.to_string());
                    continue;
                }
                ui.result(&line(&run, standing));
                for w in &waiting {
                    ui.result(&indented(&super::approve::shown(w)));
                }
            }
        }
        RunsAction::Show { run } => {
            let run = journal.run(run)?;
            let waiting = journal.waiting(Some(&run.id))?;
            let standing = standing(&journal, &run, !waiting.is_empty());
            if ui.is_json() {
                let mut object = run_json(&run, standing);
                object["changes"] = journal
                    .changes(&run.id)?
                    .iter()
                    .map(|c| json!({"at": c.at, "step": c.step, "what": c.what}))
                    .collect();
                object["steps"] = journal.steps(&run.id)?.iter().map(step_json).collect();
                object["waiting"] = waiting.iter().map(session::report::waiting_json).collect();
                ui.result(&object.to_string());
                return Ok(Exit::Done);
            }
            ui.result(&line(&run, standing));
            for c in journal.changes(&run.id)? {
                let (at, steps) =
                    (runtime::utc(c.at.div_euclid(1000)), super::plural(c.step as usize, "step"));
                ui.result(&format!("        its program changed after {steps}, {at}: {}", c.what));
            }
            journal.each_step(&run.id, &mut |step| ui.result(&shown(&step)))?;
            for w in &waiting {
                ui.result(&indented(&super::approve::shown(w)));
            }
            if let Some(outcome) = &run.outcome {
                ui.result(&format!("{standing}: {}", clip(outcome)));
            }
        }
        RunsAction::Fork { run, at, response } => {
            let response: Value = serde_json::from_str(response).map_err(|e| JournalError {
                message: format!("the response is not JSON: {e}"),
                help: Some("write it as `entail runs show --format json` shows it".into()),
            })?;
            let id = journal.fork(run, *at, &response)?;
            ui.result(&if ui.is_json() { json!({"run": id}).to_string() } else { id });
        }
        #[cfg(feature = "engine")]
        RunsAction::Cancel { .. } => {
            let help = "Ctrl-C in its terminal, or the server that it belongs to, cancels a run of a journal";
            return Ok(ui.usage("a run is canceled on an engine: name it with `--engine URL`", Some(help)));
        }
        RunsAction::Check => {
            let checked = journal.check()?;
            if ui.is_json() {
                ui.result(&json!({
                    "runs": checked.runs, "requests": checked.entries, "messages": checked.messages, "damaged": checked.damaged,
                    "forged": checked.forged.iter().map(forged_json).collect::<Vec<_>>(),
                }).to_string());
            } else {
                for run in &checked.damaged {
                    ui.result(&format!("{run}  is damaged"));
                }
                for row in &checked.forged {
                    ui.result(&forged(row));
                }
                ui.result(&format!(
                    "checked {}, {} and {}: {}",
                    super::plural(checked.runs, "run"),
                    super::plural(checked.entries, "request"),
                    super::plural(checked.messages, "message"),
                    match (checked.damaged.len(), checked.forged.len()) {
                        (0, 0) => "all intact".to_string(),
                        (n, 0) => format!("{} damaged", super::plural(n, "run")),
                        (0, n) => format!("{} forged", super::plural(n, "approval")),
                        (n, m) => format!(
                            "{} damaged, {} forged",
                            super::plural(n, "run"),
                            super::plural(m, "approval")
                        ),
                    }
                ));
            }
            let fine = checked.damaged.is_empty() && checked.forged.is_empty();
            return Ok(if fine { Exit::Done } else { Exit::Failed });
        }
        RunsAction::Delete { runs } => {
            for run in runs {
                journal.delete(run)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// A forged approval on one line.
fn forged(row: &Forged) -> String {
    let run = row.run.as_deref().unwrap_or("no run");
    let by = visible(row.approver.as_deref().unwrap_or_default(), 60);
    let why = match row.why {
        Forgery::Approver => format!("`{by}` is not one of `[approvers]`"),
        Forgery::Signature => format!("the signature is not that of `{by}`"),
        Forgery::Time => format!("`{by}` signed it when the question could not be answered"),
        Forgery::NoQuestion => "it answers an unknown question".to_string(),
        Forgery::Question => "the question differs from the run's".to_string(),
        Forgery::NoAnswer => format!("no answer of `{by}` is signed"),
    };
    let token = visible(row.token.get(..8).unwrap_or(&row.token), 60);
    format!("{}  has a forged approval (request {token}): {why}", visible(run, 60))
}

fn forged_json(row: &Forged) -> Value {
    json!({"run": row.run, "request": row.token, "approver": row.approver, "why": row.why.as_str()})
}

fn line(run: &RunInfo, standing: &str) -> String {
    let seconds = run.created.div_euclid(1000);
    let parent = run.parent.as_ref().map_or(String::new(), |p| format!(", forked from {p}"));
    format!(
        "{}  {}  {:11}  {}  {}{parent}",
        run.id,
        runtime::utc(seconds),
        standing,
        super::plural(run.steps as usize, "step"),
        run.name
    )
}

fn indented(text: &str) -> String {
    text.lines().map(|l| format!("    {l}")).collect::<Vec<_>>().join("\n")
}

fn clip(value: &Value) -> String {
    diagnostics::clip_to(&value.to_string(), 120)
}

/// Describes a step in one line: number, request, answer.
fn shown(step: &StepInfo) -> String {
    let r = &step.request;
    let text = |name: &str| r[name].as_str().unwrap_or_default();
    let asked = match text("kind") {
        "model" => {
            let said =
                r["messages"].as_array().and_then(|m| m.last()).map_or(&Value::Null, |m| &m["content"]);
            let purpose =
                r.get("purpose").and_then(Value::as_str).map_or(String::new(), |p| format!(" for `{p}`"));
            format!("model {}{purpose}: {}", step.model, clip(said))
        }
        kind @ ("tool" | "approve") => format!("{kind} {}: {}", text("tool"), clip(&r["args"])),
        kind => format!("{kind} {}.{}", text("store"), text("key")),
    };
    let answer = step.response.as_ref().map_or("under way".into(), clip);
    format!("  {:>4}  {asked}\n        → {answer}", step.step)
}

fn run_json(run: &RunInfo, standing: &str) -> Value {
    json!({"run": run.id, "created": run.created, "name": run.name, "parent": run.parent, "status": standing,
        "outcome": run.outcome, "answered": run.steps})
}

fn step_json(step: &StepInfo) -> Value {
    json!({"step": step.step, "request": step.request, "response": step.response, "model": step.model,
        "inputTokens": step.tokens.0, "outputTokens": step.tokens.1, "ms": step.elapsed.as_millis() as u64})
}
