//! Runs of the journal that this process has not begun, or knows no more.

use super::{Arc, How, Pipeline, Refused, Service, Started, no_run};
use runtime::{About, Journal, JournalError, RunInfo, Unfinished};
use serde_json::{Value, json};
use std::time::Duration;

fn failed(e: JournalError) -> Refused {
    Refused::Journal(e.message)
}

impl Service {
    /// The journal, and a run of it by its whole name.
    fn kept(&self, run: &str) -> Result<(Journal, RunInfo), Refused> {
        let Some(path) = self.journal() else { return Err(no_run(run)) };
        let journal = self.journal_at(path).map_err(failed)?;
        match journal.run(run) {
            Ok(info) if info.id == run => Ok((journal, info)),
            // A beginning of its name is no name here.
            _ => Err(no_run(run)),
        }
    }

    /// How a run of the journal stands. One that is neither ended nor under way here was interrupted, or another process is at it.
    pub(super) fn kept_status(&self, run: &str) -> Result<Value, Refused> {
        let (journal, info) = self.kept(run)?;
        let waiting = journal.waiting(Some(run)).map_err(failed)?;
        let mut object = brief(&info);
        if let Some(outcome) = info.outcome {
            object["outcome"] = match info.status.as_str() {
                "done" => json!({"run": run, "result": outcome}),
                _ => json!({"run": run, "error": {"code": outcome["error"], "message": outcome["message"]}}),
            };
        } else if !waiting.is_empty() {
            object["status"] = "waiting".into();
            object["waiting"] = waiting.iter().map(super::super::approve::waiting_json).collect();
        }
        Ok(object)
    }

    /// What a client called the conversation of a run.
    pub(super) fn kept_context(&self, run: &str) -> Option<String> {
        let (journal, _) = self.kept(run).ok()?;
        Some(journal.settings(run).ok()?["context"].as_str()?.to_string())
    }

    /// When a run began.
    pub(super) fn kept_since(&self, run: &str) -> Option<i64> {
        Some(self.kept(run).ok()?.1.created.div_euclid(1000))
    }

    /// The newest runs, of the journal if there is one.
    pub(in super::super) fn newest(&self, most: u32) -> Result<Vec<Value>, Refused> {
        let Some(path) = self.journal() else {
            let all = self.runs().into_iter().take(most as usize);
            // One may have been forgotten since.
            return Ok(all.filter_map(|(_, run)| self.status(&run).ok()).map(without_outcome).collect());
        };
        let runs = Journal::existing(path).and_then(|j| j.newest(most)).map_err(failed)?;
        let known = |info: &RunInfo| self.lock().known.contains_key(&info.id);
        let status = |info: RunInfo| match known(&info) {
            true => self.status(&info.id).map_or_else(|_| brief(&info), without_outcome),
            false => brief(&info),
        };
        Ok(runs.into_iter().map(status).collect())
    }

    fn pipeline_of(&self, info: &RunInfo) -> Option<&Arc<Pipeline>> {
        self.pipelines.values().find(|p| p.in_journal() == info.name)
    }

    /// Goes on with a run of the journal that is not under way. Waits for files.
    pub(in super::super) fn resume(
        self: &Arc<Self>,
        run: &str,
        unfinished: Unfinished,
    ) -> Result<Started, Refused> {
        if self.lock().known.get(run).is_some_and(|r| r.outcome.is_none()) {
            return Err(Refused::Conflict("the run is under way".into()));
        }
        let (journal, info) = self.kept(run)?;
        if matches!(info.status.as_str(), "done" | "failed") {
            return Err(Refused::Conflict("the run has ended".into()));
        }
        let Some(pipeline) = self.pipeline_of(&info).cloned() else {
            let name = diagnostics::clip_to(&info.name, 120);
            return Err(Refused::Conflict(format!("this server has no pipeline for a run of `{name}`")));
        };
        let place = self.place()?;
        let about = About::new(info.name, &pipeline.code, None, Value::Null);
        let path = self.journal().map(std::path::Path::to_path_buf).unwrap_or_default();
        let session = journal.resume(run, &about, self.handlers.models.redactor(), false, unfinished);
        let session = session.map_err(|e| Refused::Conflict(e.message))?;
        let (input, settings) = (session.input().cloned(), session.settings().clone());
        let handlers = self.kept_in(session, &path);
        // Nobody waits for it, whoever did before.
        let how = How { background: true, context: settings["context"].as_str(), ..How::default() };
        Ok(self.go(pipeline, input, handlers, how, place))
    }

    /// Goes on with a run that was begun in the background, if it is not under way; whether it did.
    pub(in super::super) async fn resume_if_it_is_ours(self: &Arc<Self>, run: &str) -> bool {
        let (service, run) = (self.clone(), run.to_string());
        let resumed = tokio::task::spawn_blocking(move || {
            service.is_ours(&run) && service.resume(&run, Unfinished::Ask).is_ok()
        });
        resumed.await.unwrap_or(false)
    }

    fn is_ours(&self, run: &str) -> bool {
        let settings = self.kept(run).and_then(|(journal, _)| journal.settings(run).map_err(failed));
        settings.is_ok_and(|s| s["background"] == true)
    }

    /// Goes on with all runs that were begun in the background and that a server which is gone has left, one after the other as there is room.
    pub(in super::super) async fn resume_all(self: Arc<Self>) {
        let Some(path) = self.journal().map(std::path::Path::to_path_buf) else { return };
        let left = match Journal::existing(&path).and_then(|j| j.unfinished()) {
            Ok(left) => left,
            Err(e) => return self.log.warning(&e.message),
        };
        for info in left {
            if self.pipeline_of(&info).is_none() {
                continue;
            }
            loop {
                let (service, run) = (self.clone(), info.id.clone());
                let resumed = tokio::task::spawn_blocking(move || match service.is_ours(&run) {
                    true => service.resume(&run, Unfinished::Ask).map(Some),
                    false => Ok(None),
                });
                match resumed.await {
                    Ok(Err(Refused::Full(_))) => tokio::time::sleep(Duration::from_millis(200)).await,
                    Ok(Err(Refused::Closing)) | Err(_) => return,
                    Ok(Err(refused)) => {
                        self.log.warning(&format!(
                            "cannot go on with run `{}`: {}",
                            info.id,
                            refused.message()
                        ));
                        break;
                    }
                    Ok(Ok(_)) => break,
                }
            }
        }
    }
}

/// What a list says of a run.
fn brief(info: &RunInfo) -> Value {
    let pipeline = info.name.rsplit_once(' ').map_or(&*info.name, |(_, pipeline)| pipeline);
    let status = match info.status.as_str() {
        "done" => "done",
        "running" => "interrupted",
        _ => "failed",
    };
    json!({"run": info.id, "pipeline": pipeline, "status": status})
}

fn without_outcome(mut status: Value) -> Value {
    if let Some(object) = status.as_object_mut() {
        object.remove("outcome");
        object.remove("waiting");
    }
    status
}
