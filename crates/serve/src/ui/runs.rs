//! Runs: the list, one run, its page, forks.

use super::documents::revision;
use super::{Refusal, Ui, aside, body_json, changes, last_event};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use runtime::{RunCursor, RunFilter, RunInfo, RunStatus};
use serde::Deserialize;
use serde_json::{Value, json};
use session::kept::{KeptRun, Reader};
use session::live::LiveReplies;
use session::report::standing;
use std::collections::HashSet;
use std::sync::Arc;

/// Runs of one page of the list.
const PAGE: u32 = 50;

/// Query of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    state: Option<String>,
    program: Option<String>,
    error: Option<String>,
    /// The run that the page before ended with: `CREATED.ID`.
    after: Option<String>,
}

/// One page of the runs, the newest first.
pub(super) async fn list(
    State(ui): State<Arc<Ui>>,
    Query(query): Query<ListQuery>,
) -> Result<Json<Value>, Refusal> {
    aside(move || ui.page_of_runs(&query)).await.map(Json)
}

/// The statuses that runs of a state may have in the journal.
fn statuses(state: Option<&str>) -> Result<Vec<RunStatus>, Refusal> {
    Ok(match state {
        None => Vec::new(),
        Some("running" | "interrupted") => vec![RunStatus::Running],
        Some("waiting") => vec![RunStatus::Running, RunStatus::Stopped],
        Some("stopped") => vec![RunStatus::Stopped],
        Some("done") => vec![RunStatus::Done],
        Some("failed") => vec![RunStatus::Failed],
        Some(_) => return Err(Refusal::Input("unknown state".into())),
    })
}

fn cursor(text: &str) -> Option<RunCursor> {
    let (created, id) = text.split_once('.')?;
    Some(RunCursor { created: created.parse().ok()?, id: id.into() })
}

impl Ui {
    fn page_of_runs(&self, query: &ListQuery) -> Result<Value, Refusal> {
        let journal = self.journal()?;
        let waits: HashSet<String> = journal.waiting(None)?.into_iter().map(|w| w.run).collect();
        let given = |text: &Option<String>| text.clone().filter(|t| !t.is_empty());
        let state = given(&query.state);
        let filter_is_open =
            state.is_none() && given(&query.program).is_none() && given(&query.error).is_none();
        let wrong = || Refusal::Input("`after` is not `CREATED.ID`".into());
        let mut filter = RunFilter {
            statuses: statuses(state.as_deref())?,
            name: given(&query.program),
            error: given(&query.error),
            after: given(&query.after).map(|text| cursor(&text).ok_or_else(wrong)).transpose()?,
        };
        let mut found: Vec<(RunInfo, &'static str)> = Vec::new();
        // Who runs and who waits is not in the table of runs: pages are read until one is full.
        let next = loop {
            let runs = journal.page(&filter, PAGE)?;
            let is_last = runs.len() < PAGE as usize;
            for info in runs {
                filter.after = Some(RunCursor { created: info.created, id: info.id.clone() });
                let standing = standing(&journal, &info, waits.contains(&info.id));
                if state.as_deref().is_none_or(|wanted| wanted == standing) {
                    found.push((info, standing));
                }
                if found.len() == PAGE as usize {
                    break;
                }
            }
            match (found.len() == PAGE as usize, is_last) {
                (true, _) => break filter.after.take(),
                (false, true) => break None,
                (false, false) => {}
            }
        };
        let counts: serde_json::Map<String, Value> =
            journal.counts()?.into_iter().map(|(s, n)| (s.as_str().into(), n.into())).collect();
        let is_first = filter_is_open && given(&query.after).is_none();
        let guarded = if is_first { self.guarded() } else { Vec::new() };
        let runs = guarded.into_iter().chain(found.iter().map(|(info, standing)| entry(info, standing)));
        Ok(json!({
            "runs": runs.collect::<Vec<_>>(),
            "next": next.map(|c| format!("{}.{}", c.created, c.id)),
            "counts": counts, "waiting": waits.len(),
        }))
    }

    /// The whole name of a run, of which a beginning may be given.
    fn whole_name(&self, run: &str) -> Result<String, Refusal> {
        Ok(self.journal()?.run(run).map_err(|e| Refusal::NotFound(e.message))?.id)
    }
}

/// A run of the list.
fn entry(info: &RunInfo, state: &str) -> Value {
    let error = match info.status {
        RunStatus::Failed | RunStatus::Stopped => info.outcome.as_ref(),
        RunStatus::Done | RunStatus::Running => None,
    };
    json!({
        "id": info.id, "name": info.name, "created": info.created, "ended": info.ended, "state": state,
        "answers": info.steps, "parent": info.parent,
        "error": error.map(|e| json!({"code": e["error"], "message": e["message"]})),
    })
}

/// Query of a run: the revision that the page has, and whether the first lines of a long run are enough.
#[derive(Deserialize)]
pub(super) struct ShowQuery {
    have: Option<String>,
    #[serde(default)]
    first: bool,
}

/// A run: a line about it, and the lines of its trace that the page does not have.
pub(super) async fn show(
    State(ui): State<Arc<Ui>>,
    Path(run): Path<String>,
    Query(query): Query<ShowQuery>,
) -> Result<Response, Refusal> {
    let text = aside(move || {
        if let Some(update) = ui.guarded_update(&run) {
            return update;
        }
        let run = ui.whole_name(&run)?;
        match if query.first { ui.beginning(&run)? } else { None } {
            Some(text) => Ok(text),
            None => ui.update(&run, query.have.as_deref()),
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], text.await?).into_response())
}

/// Changes of a run, as server-sent events.
pub(super) async fn events(
    State(ui): State<Arc<Ui>>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let (looking, name) = (ui.clone(), run.clone());
    let found = aside(move || match looking.guarded_document(&name) {
        Some(document) => document.map(|_| None),
        None => looking.whole_name(&name).map(Some),
    });
    let Some(run) = found.await? else {
        return Ok(changes(last_event(&headers), move || Ok(ui.guard_revision())));
    };
    Ok(changes(last_event(&headers), move || revision(&ui.journal()?, &run)))
}

/// The replies of a run that arrive. Those of a process that is gone don't.
pub(super) async fn live(State(ui): State<Arc<Ui>>, Path(run): Path<String>) -> Result<Json<Value>, Refusal> {
    let live = aside(move || {
        let run = ui.whole_name(&run)?;
        Ok(match ui.journal()?.is_at_work(&run) {
            true => LiveReplies::read(&ui.journal, &run),
            false => json!({"replies": []}),
        })
    });
    live.await.map(Json)
}

/// Query of a page: for whom it is.
#[derive(Deserialize)]
pub(super) struct PageQuery {
    #[serde(rename = "for")]
    reader: Option<String>,
}

/// A run as one file, as `entail trace --html` writes it.
pub(super) async fn page(
    State(ui): State<Arc<Ui>>,
    Path(run): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Response, Refusal> {
    let (file, page) = aside(move || {
        if let Some(document) = ui.guarded_document(&run) {
            return Ok((run, (ui.export)(&document?)));
        }
        let run = ui.whole_name(&run)?;
        let document = match query.reader.as_deref().filter(|name| !name.is_empty()) {
            None => {
                let (kept, mut document) = ui.document(&run)?;
                if let Some(kept) = kept {
                    let bound = ui.session.bound(&kept.code, kept.input.is_some());
                    document.about["program"] = kept.program(&bound);
                }
                document
            }
            Some(name) => {
                let unknown = "the program of this run was not kept, so the labels of its data are not known";
                let kept = KeptRun::open(&ui.journal, &run)?;
                let kept = kept.ok_or_else(|| Refusal::Input(unknown.into()))?;
                let callers = &ui.session.settings.callers;
                let reader = Reader::named(name, callers, &kept.config).map_err(Refusal::Input)?;
                let bound = ui.session.bound(&kept.code, kept.input.is_some());
                kept.document(&ui.journal, &bound, Some(&reader))?
            }
        };
        Ok((run, (ui.export)(&document)))
    })
    .await?;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_string()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"run-{file}.html\"")),
    ];
    Ok((headers, page).into_response())
}

/// The program of a run: its picture, and its most expensive path.
pub(super) async fn program(
    State(ui): State<Arc<Ui>>,
    Path(run): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let program = aside(move || {
        let run = ui.whole_name(&run)?;
        let kept = KeptRun::open(&ui.journal, &run)?;
        let kept = kept.ok_or_else(|| Refusal::Input("the program of this run was not kept".into()))?;
        Ok(kept.program(&ui.session.bound(&kept.code, kept.input.is_some())))
    });
    program.await.map(Json)
}

/// Body of a fork: the step of the journal, and the response in place of the one that it had.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    step: u64,
    response: Value,
}

/// Makes a run that is like another one up to a step. Nothing of it is run here: the page shows the command.
pub(super) async fn fork(
    State(ui): State<Arc<Ui>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let body: ForkBody = serde_json::from_value(body_json(&headers, &body)?)
        .map_err(|e| Refusal::Input(format!("not a fork: {e}")))?;
    let made = aside(move || {
        let run = ui.whole_name(&run)?;
        let wrong = |e: runtime::JournalError| Refusal::Input(e.message);
        let fork = ui.journal()?.fork(&run, body.step, &body.response).map_err(wrong)?;
        Ok(json!({"run": fork}))
    });
    made.await.map(Json)
}
