//! Runs of an engine: begun, waited for, shown, answered and canceled.

use super::super::approve::{answer, shown as shown_question};
use super::super::plural;
use super::refuse;
use crate::args::{ApproveArgs, EngineOptions, EngineRunOptions, RunsAction};
use crate::ui::{Exit, Ui};
use ::engine::{EngineClient, EngineRunInfo, EngineStepInfo, Error, RunEnd, service_name};
use core_ir::Data;
use runtime::{Approvers, JournalError};
use serde_json::{Value, json};
use session::report::waiting_json;

/// Does something with an engine.
fn with<F>(ui: &Ui, options: &EngineOptions, act: impl FnOnce(EngineClient) -> F) -> Exit
where
    F: Future<Output = Result<Exit, Error>>,
{
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let engine = options.engine.as_deref().unwrap_or_default();
    let done = runtime
        .block_on(async { act(EngineClient::connect(engine, options.ingress.as_deref()).await?).await });
    done.unwrap_or_else(|e| refuse(ui, &e))
}

/// Begins a run on an engine, and waits for it.
pub fn run(ui: &Ui, options: &EngineRunOptions, file: &str, entry: &str, input: Option<&Data>) -> Exit {
    let service = service_name(file, entry);
    let name = options.run_name.clone().unwrap_or_else(runtime::new_run_id);
    let input = input.map(|input| input.to_json().to_string());
    with(ui, &options.engine, |client| async move {
        client.start(&service, &name, input).await?;
        if options.detach {
            ui.result(&if ui.is_json() { json!({"run": name}).to_string() } else { name });
            return Ok(Exit::Done);
        }
        ui.note(&format!("run {name} of {service}"));
        let end = tokio::select! {
            end = client.wait(&service, &name) => end?,
            () = crate::interrupt::wait() => {
                let engine = options.engine.engine.as_deref().unwrap_or_default();
                ui.note(&format!("the run goes on; `entail runs cancel {name} --engine {engine}` cancels it"));
                return Ok(Exit::Canceled);
            }
        };
        Ok(show(ui, &name, end))
    })
}

/// Shows how a run ended.
fn show(ui: &Ui, name: &str, end: RunEnd) -> Exit {
    match end {
        RunEnd::Done(outcome) => {
            let text = || serde_json::to_string_pretty(&outcome["result"]).unwrap_or_default();
            ui.result(&if ui.is_json() { outcome.to_string() } else { text() });
            Exit::Done
        }
        RunEnd::Failed(message, outcome) => {
            let error = || json!({"run": name, "error": {"code": "engine", "message": message}});
            match ui.is_json() {
                true => ui.result(&outcome.unwrap_or_else(error).to_string()),
                false => ui.say(&message),
            }
            Exit::Failed
        }
        RunEnd::Held(why) => {
            match ui.is_json() {
                true => ui.result(&json!({"run": name, "held": why}).to_string()),
                false => {
                    ui.say(&format!("the run {name} is held: {why}"));
                    ui.note(
                        "  help: it goes on by itself when that is seen to, and the worker is started again",
                    );
                }
            }
            Exit::Failed
        }
    }
}

/// Runs `entail runs` of an engine.
pub fn list(ui: &Ui, engine: &str, action: &RunsAction) -> Exit {
    let options = EngineOptions { engine: Some(engine.to_string()), ingress: None };
    with(ui, &options, |client| async move {
        match action {
            RunsAction::List { last } => {
                let questions = client.questions(None).await?;
                let runs = client.runs(None).await?;
                for run in runs.iter().take(last.map_or(usize::MAX, |n| n as usize)) {
                    let asks = questions.iter().filter(|(service, _)| *service == run.service);
                    let asks: Vec<_> = asks.map(|(_, q)| q.waiting()).filter(|q| q.run == run.run).collect();
                    // Before its worker lets go of it, the engine calls it running.
                    let mut run = run.clone();
                    if !asks.is_empty() && run.status == "running" {
                        run.status = "waiting";
                    }
                    let mut json = run_json(&run);
                    json["waiting"] = asks.iter().map(waiting_json).collect();
                    ui.result(&if ui.is_json() { json.to_string() } else { line(&run) });
                    if !ui.is_json() {
                        asks.iter().for_each(|q| ui.result(&shown_question(q)));
                    }
                }
            }
            RunsAction::Show { run } => {
                let run = one(&client, run).await?;
                let steps = client.steps(&run).await?;
                if ui.is_json() {
                    let mut json = run_json(&run);
                    json["steps"] = steps.iter().map(step_json).collect();
                    ui.result(&json.to_string());
                } else {
                    ui.result(&line(&run));
                    steps.iter().enumerate().for_each(|(n, step)| ui.result(&step_line(n, step)));
                }
            }
            RunsAction::Cancel { run } => {
                let run = one(&client, run).await?;
                client.cancel(&run).await?;
                ui.note(&format!("run {} is canceled", run.run));
            }
            RunsAction::Fork { .. } | RunsAction::Check | RunsAction::Delete { .. } => {
                let help = "the engine keeps runs for as long as its retention says";
                return Ok(ui.usage("this is for runs of a journal", Some(help)));
            }
        }
        Ok(Exit::Done)
    })
}

/// Runs `entail trace` of a run of an engine.
pub fn trace(ui: &Ui, engine: &str, run: &str) -> Exit {
    list(ui, engine, &RunsAction::Show { run: run.to_string() })
}

/// The only run whose name begins so.
async fn one(client: &EngineClient, run: &str) -> Result<EngineRunInfo, Error> {
    let runs = client.runs(None).await?;
    let exact = runs.iter().find(|r| r.run == run).cloned();
    let mut found = runs.into_iter().filter(|r| r.run.starts_with(run));
    let error =
        |message: String| Error { message, help: Some("`entail runs list --engine URL` shows them".into()) };
    match (exact, found.next(), found.next()) {
        (Some(run), ..) => Ok(run),
        (None, Some(run), None) => Ok(run),
        (None, None, _) => Err(error(format!("the engine has no run `{run}`"))),
        (None, Some(_), Some(_)) => Err(error(format!("several runs begin with `{run}`"))),
    }
}

/// Runs `entail approve` of a run of an engine.
pub fn approve(ui: &Ui, args: &ApproveArgs, approvers: &Approvers) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return ui.usage(&format!("cannot start the runtime: {e}"), None),
    };
    let asked = runtime.block_on(async {
        let engine = args.engine.engine.as_deref().unwrap_or_default();
        let client = EngineClient::connect(engine, args.engine.ingress.as_deref()).await?;
        let run = one(&client, args.run.as_deref().unwrap_or_default()).await?;
        let mut asked = client.questions(Some(&run.run)).await?;
        asked.retain(|(service, _)| *service == run.service);
        Ok((client, run, asked))
    });
    let (client, run, asked) = match asked {
        Ok(asked) => asked,
        Err(e) => return refuse(ui, &e),
    };
    let waiting: Vec<_> = asked.iter().map(|(_, question)| question.waiting()).collect();
    let journal_error = |e: Error| JournalError { message: e.message, help: e.help };
    let edit = session::approvals::edited_of_names;
    let done = answer(ui, args, &run.run, waiting, approvers, edit, |w, decision, key| {
        let question = asked.iter().find(|(_, q)| q.waiting().token == w.token);
        // INVARIANT: the questions that are answered are those of the list.
        let Some((service, question)) = question else { return Ok(()) };
        let signed = question.sign(decision, key, approvers)?;
        runtime.block_on(client.answer(service, &run.run, signed)).map_err(journal_error)
    });
    done.unwrap_or_else(|e| ui.usage(&e.message, e.help.as_deref()))
}

fn line(run: &EngineRunInfo) -> String {
    let why = run.held.as_ref().or(run.failure.as_ref());
    let why = why.map_or(String::new(), |why| format!("  {}", diagnostics::clip_to(why, 160)));
    format!("{}  {}  {:8}  {}{why}", run.run, run.created, run.status, run.service)
}

fn run_json(run: &EngineRunInfo) -> Value {
    json!({
        "run": run.run, "created": run.created, "name": run.service, "status": run.status, "held": run.held,
        "failure": run.failure, "invocation": run.invocation,
    })
}

fn step_json(step: &EngineStepInfo) -> Value {
    json!({"name": step.name, "record": step.record})
}

fn step_line(n: usize, step: &EngineStepInfo) -> String {
    let answer = match &step.record {
        None => "under way".to_string(),
        Some(record) => {
            let response = record.get("response").unwrap_or(record);
            diagnostics::clip_to(&response.to_string(), 120)
        }
    };
    let spent = step.record.as_ref().and_then(|r| r["tokens"][0].as_u64()).filter(|n| *n > 0);
    let spent = spent.map_or(String::new(), |n| format!("  ({} in)", plural(n as usize, "token")));
    format!("  {n:>4}  {}{spent}\n        → {answer}", step.name)
}
