//! Runs of the journal that this process has not begun, or knows no more.

use super::{Arc, Pipeline, Refused, Service, StartOptions, Started, label_from, no_run, status_of};
use runtime::{Journal, JournalError, JournalPlace, RunInfo, RunStatus, Unfinished};
use serde_json::{Value, json};
use session::callers::{Caller, LOCAL, Role};
use session::view::withheld;
use std::collections::HashSet;
use std::time::Duration;

fn failed(e: JournalError) -> Refused {
    Refused::Journal(e.message)
}

impl Service {
    /// The journal, and a run of it by its whole name.
    fn found(&self, run: &str) -> Result<(Journal, RunInfo), Refused> {
        let Some(path) = self.journal() else { return Err(no_run(run)) };
        let journal = self.journal_at(path).map_err(failed)?;
        match journal.run(run) {
            Ok(info) if info.id == run => Ok((journal, info)),
            // A beginning of its name is no name here.
            _ => Err(no_run(run)),
        }
    }

    /// The journal, and a run of it that belongs to this caller.
    fn kept(&self, caller: &Caller, run: &str) -> Result<(Journal, RunInfo), Refused> {
        let (journal, info) = self.found(run)?;
        match owner(&journal, run)? == caller.name {
            true => Ok((journal, info)),
            false => Err(no_run(run)),
        }
    }

    /// Keeps what the caller of a run is told of its end: the journal has no label of it.
    pub(super) async fn keep_outcome(self: &Arc<Self>, run: &str, shown: &Value) {
        let Some(path) = self.journal().cloned() else { return };
        let (service, run, shown) = (self.clone(), run.to_string(), shown.clone());
        let kept = tokio::task::spawn_blocking(move || {
            let redactor = service.handlers.models.redactor();
            Journal::existing(&path)?.keep_shown(&run, &shown, redactor)
        });
        // It is sent now; a later query to the next server answers that it is withheld.
        if let Ok(Err(e)) = kept.await {
            self.log.warning(&e.message);
        }
    }

    /// Returns the outcome of a run in the journal, as its caller may see it.
    fn kept_outcome(
        &self,
        caller: &Caller,
        journal: &Journal,
        info: &RunInfo,
    ) -> Result<Option<Value>, Refused> {
        let Some(outcome) = &info.outcome else { return Ok(None) };
        if let Some(shown) = journal.shown(&info.id).map_err(failed)? {
            return Ok(Some(shown));
        }
        // Its label is not known.
        if !self.pipeline_of(info).is_some_and(|p| p.view(caller).is_unbounded()) {
            return Ok(Some(withheld(&info.id)));
        }
        let run = &info.id;
        Ok(Some(match info.status {
            RunStatus::Done => json!({"run": run, "result": outcome}),
            _ => json!({"run": run, "error": {"code": outcome["error"], "message": outcome["message"]}}),
        }))
    }

    /// Returns the status of a run in the journal. A run that has neither ended nor is active here was
    /// interrupted, or another process executes it.
    pub(super) fn kept_status(&self, caller: &Caller, run: &str) -> Result<Value, Refused> {
        let (journal, info) = self.kept(caller, run)?;
        let mut object = brief(&info);
        if let Some(outcome) = self.kept_outcome(caller, &journal, &info)? {
            object["status"] = status_of(&outcome).into();
            object["outcome"] = outcome;
        } else {
            let is_elsewhere = matches!(self.journal(), Some(JournalPlace::Server(_)));
            if is_elsewhere && info.status == RunStatus::Running && journal.is_at_work(run) {
                object["status"] = "running".into();
            }
            let waiting = self.waiting(caller, Some(run))?;
            if !waiting.is_empty() {
                object["status"] = "waiting".into();
                object["waiting"] = waiting.into();
            }
        }
        Ok(object)
    }

    /// Conversation identifier that the client gave a run.
    pub(super) fn kept_context(&self, caller: &Caller, run: &str) -> Option<String> {
        let (journal, _) = self.kept(caller, run).ok()?;
        Some(journal.settings(run).ok()?["context"].as_str()?.to_string())
    }

    /// Returns the time at which a run started.
    pub(super) fn kept_since(&self, caller: &Caller, run: &str) -> Option<i64> {
        Some(self.kept(caller, run).ok()?.1.created.div_euclid(1000))
    }

    /// The newest runs of a caller, of the journal if there is one.
    pub(crate) fn newest(&self, caller: &Caller, most: u32) -> Result<Vec<Value>, Refused> {
        let Some(path) = self.journal() else {
            let all = self.runs(caller).into_iter().take(most as usize);
            // One may have been forgotten since.
            return Ok(all
                .filter_map(|(_, run)| self.status(caller, &run).ok())
                .map(without_outcome)
                .collect());
        };
        let runs =
            Journal::existing(path).and_then(|j| j.newest_of(&caller.name, caller.name == LOCAL, most));
        let status =
            |info: RunInfo| self.status(caller, &info.id).map_or_else(|_| brief(&info), without_outcome);
        Ok(runs.map_err(failed)?.into_iter().map(status).collect())
    }

    fn pipeline_of(&self, info: &RunInfo) -> Option<&Arc<Pipeline>> {
        self.pipelines.values().find(|p| p.in_journal() == info.name)
    }

    /// Resumes an inactive run of the journal. Waits for files.
    pub(crate) fn resume(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        run: &str,
        unfinished: Unfinished,
    ) -> Result<Started, Refused> {
        let (journal, info) = self.kept(caller, run)?;
        if self.lock().known.get(run).is_some_and(|r| r.outcome.is_none()) {
            return Err(Refused::Conflict("the run is under way".into()));
        }
        if matches!(info.status, RunStatus::Done | RunStatus::Failed) {
            return Err(Refused::Conflict("the run has ended".into()));
        }
        let Some(pipeline) = self.pipeline_of(&info).cloned() else {
            let name = diagnostics::clip_to(&info.name, 120);
            return Err(Refused::Conflict(format!("this server has no pipeline for a run of `{name}`")));
        };
        let place = self.place(caller)?;
        let about = pipeline.identity(None, Value::Null);
        let session = journal.resume(run, &about, self.handlers.models.redactor(), false, unfinished);
        let session = session.map_err(|e| Refused::Conflict(e.message))?;
        let (input, settings) = (session.input().cloned(), session.settings().clone());
        let handlers = self.kept_in(caller, &pipeline, session);
        // No client waits for it, even if one did before.
        let how = StartOptions {
            background: true,
            context: settings["context"].as_str(),
            ..StartOptions::default()
        };
        let input = input.map(|data| (data, label_from(&settings["inputLabel"])));
        Ok(self.go(pipeline, input, handlers, how, place))
    }

    /// Resumes a background run, if it is not active; returns true if it did.
    pub(crate) async fn resume_if_it_is_ours(self: &Arc<Self>, run: &str) -> bool {
        let (service, run) = (self.clone(), run.to_string());
        let resumed = tokio::task::spawn_blocking(move || {
            service.starter(&run).is_some_and(|caller| service.resume(&caller, &run, Unfinished::Ask).is_ok())
        });
        resumed.await.unwrap_or(false)
    }

    /// The caller that began a run in the background, if it may still start runs.
    fn starter(&self, run: &str) -> Option<Arc<Caller>> {
        let (journal, _) = self.found(run).ok()?;
        if journal.settings(run).ok()?["background"] != true {
            return None;
        }
        let name = owner(&journal, run).ok()?;
        self.callers.all().find(|c| c.name == name && c.has(Role::Start)).cloned()
    }

    /// Resumes all runs that were begun in the background and that a server which is gone has left, one
    /// after the other as there is room. If several hosts have the journal, it goes on doing so.
    pub(crate) async fn resume_all(self: Arc<Self>) {
        let Some(place) = self.journal().cloned() else { return };
        // Runs that can't be resumed, which the log has said.
        let mut refused = HashSet::new();
        loop {
            let place = place.clone();
            let look = move || {
                let journal = Journal::existing(&place)?;
                Ok((journal.orphaned()?, journal.takeover_interval()))
            };
            let found: Result<(Vec<RunInfo>, _), JournalError> = match tokio::task::spawn_blocking(look).await
            {
                Ok(found) => found,
                Err(_) => return,
            };
            let interval = match found {
                Ok((left, interval)) => {
                    if !self.resume_these(left, &mut refused).await {
                        return;
                    }
                    interval
                }
                Err(e) => {
                    self.log.warning(&e.message);
                    matches!(self.journal(), Some(JournalPlace::Server(_))).then_some(RETRY)
                }
            };
            let Some(interval) = interval else { return };
            tokio::time::sleep(interval).await;
        }
    }

    /// Resumes these runs; returns false if the server ends.
    async fn resume_these(self: &Arc<Self>, left: Vec<RunInfo>, refused: &mut HashSet<String>) -> bool {
        for info in left {
            if self.pipeline_of(&info).is_none() || refused.contains(&info.id) {
                continue;
            }
            loop {
                let (service, run) = (self.clone(), info.id.clone());
                let resumed = tokio::task::spawn_blocking(move || match service.starter(&run) {
                    Some(caller) => service.resume(&caller, &run, Unfinished::Ask).map(Some),
                    None => Ok(None),
                });
                match resumed.await {
                    Ok(Err(Refused::Full(_) | Refused::Limited(_))) => {
                        tokio::time::sleep(Duration::from_millis(200)).await
                    }
                    Ok(Err(Refused::Closing)) | Err(_) => return false,
                    Ok(Err(why)) => {
                        // Another host may have been faster.
                        if !self.is_elsewhere(&info.id).await {
                            self.log.warning(&format!("cannot resume run `{}`: {}", info.id, why.message()));
                            refused.insert(info.id);
                        }
                        break;
                    }
                    Ok(Ok(_)) => break,
                }
            }
        }
        true
    }

    /// Returns true if a process of another host executes a run.
    pub(crate) async fn is_elsewhere(self: &Arc<Self>, run: &str) -> bool {
        let (service, run) = (self.clone(), run.to_string());
        let looked = tokio::task::spawn_blocking(move || {
            let is_ours = service.lock().known.get(&run).is_some_and(|known| known.outcome.is_none());
            let Some(JournalPlace::Server(_)) = service.journal() else { return false };
            !is_ours && service.found(&run).is_ok_and(|(journal, _)| journal.is_at_work(&run))
        });
        looked.await.unwrap_or(false)
    }
}

/// Pause after the journal could not be read.
const RETRY: Duration = Duration::from_secs(5);

/// The name of the caller that a run belongs to. Those that no server began belong to the user of this
/// machine.
fn owner(journal: &Journal, run: &str) -> Result<String, Refused> {
    let settings = journal.settings(run).map_err(failed)?;
    Ok(settings["caller"].as_str().unwrap_or(LOCAL).to_string())
}

/// Entry of a run in a list.
fn brief(info: &RunInfo) -> Value {
    let pipeline = info.name.rsplit_once(' ').map_or(&*info.name, |(_, pipeline)| pipeline);
    let status = match info.status {
        RunStatus::Done => "done",
        RunStatus::Running => "interrupted",
        RunStatus::Failed | RunStatus::Stopped => "failed",
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
