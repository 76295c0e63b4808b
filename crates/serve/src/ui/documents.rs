//! Runs as the page gets them, and the last ones that it got.
//!
//! A page that follows a run asks again whenever it has changed. Mostly lines have been added: it is sent
//! those that differ from what it has.

use super::{Refusal, Ui};
use runtime::{Journal, JournalError, RunInfo};
use serde_json::{Value, json};
use session::kept::{self, KeptRun, RunDocument};
use session::report::standing;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of runs that are remembered.
const REMEMBERED: usize = 4;

/// The most bytes of a run that is remembered.
const MAX_BYTES: usize = 64 << 20;

/// Number of answers from which a run is long.
const MIN_LONG: u64 = 5_000;

/// Number of lines that a page gets first of a long run.
const FIRST_LINES: usize = 1_000;

/// A run at some time.
pub(super) struct Snapshot {
    run: String,
    /// The revision of the run, see [`revision`].
    pub(super) revision: String,
    pub(super) about: Value,
    /// The lines of the trace, as text.
    pub(super) lines: Vec<String>,
}

/// The snapshots that were sent last, the newest at the end.
#[derive(Default)]
pub(super) struct Documents(Mutex<Vec<Arc<Snapshot>>>);

impl Documents {
    fn find(&self, run: &str, revision: &str) -> Option<Arc<Snapshot>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|s| s.run == run && s.revision == revision).cloned()
    }

    fn add(&self, snapshot: Arc<Snapshot>) {
        if snapshot.lines.iter().map(String::len).sum::<usize>() > MAX_BYTES {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(snapshot);
        let surplus = all.len().saturating_sub(REMEMBERED);
        all.drain(..surplus);
    }
}

impl Ui {
    /// A run as it is now.
    pub(super) fn snapshot(&self, run: &str) -> Result<Arc<Snapshot>, Refusal> {
        let journal = self.journal()?;
        // Before the run is read: what happens meanwhile is noticed later.
        let revision = revision(&journal, run)?;
        if let Some(known) = self.documents.find(run, &revision) {
            return Ok(known);
        }
        let (_, document) = self.document(run)?;
        let about = with_state(&journal, &journal.run(run)?, document.about)?;
        let lines = texts(document.lines);
        let snapshot = Arc::new(Snapshot { run: run.into(), revision, about, lines });
        self.documents.add(snapshot.clone());
        Ok(snapshot)
    }

    /// The first lines of a long run that has to be read, as an update that says so. Without them a page
    /// would be empty until all is read.
    pub(super) fn beginning(&self, run: &str) -> Result<Option<String>, Refusal> {
        let journal = self.journal()?;
        let info = journal.run(run)?;
        if info.steps < MIN_LONG || self.documents.find(run, &revision(&journal, run)?).is_some() {
            return Ok(None);
        }
        let Some(kept) = KeptRun::open(&self.journal, run)? else { return Ok(None) };
        let lines = kept.first_lines(&self.journal, FIRST_LINES)?;
        let about = with_state(&journal, &info, kept.beginning())?;
        let head = json!({"revision": "", "keep": 0, "about": about, "more": info.steps});
        Ok(Some(update_of(&head, &texts(lines))))
    }

    /// A run with its program, if that was kept.
    pub(super) fn document(&self, run: &str) -> Result<(Option<KeptRun>, RunDocument), Refusal> {
        match KeptRun::open(&self.journal, run)? {
            None => Ok((None, kept::without_program(&self.journal, run)?)),
            Some(kept) => {
                let bound = self.session.bound(&kept.code, kept.input.is_some());
                let document = kept.document(&self.journal, &bound, None)?;
                Ok((Some(kept), document))
            }
        }
    }

    /// Returns the difference to the revision that a page has: a line about the run, and the lines that
    /// differ.
    pub(super) fn update(&self, run: &str, has: Option<&str>) -> Result<String, Refusal> {
        let now = self.snapshot(run)?;
        let before = has.and_then(|revision| self.documents.find(run, revision));
        let same =
            |before: &Arc<Snapshot>| before.lines.iter().zip(&now.lines).take_while(|(a, b)| a == b).count();
        let keep = before.as_ref().map_or(0, same);
        let head = json!({"revision": now.revision, "keep": keep, "about": now.about});
        Ok(update_of(&head, now.lines.get(keep..).unwrap_or_default()))
    }
}

/// Adds the state of a run to the facts about it.
fn with_state(journal: &Journal, info: &RunInfo, mut about: Value) -> Result<Value, JournalError> {
    let waits = !journal.waiting(Some(&info.id))?.is_empty();
    about["run"]["state"] = standing(journal, info, waits).into();
    Ok(about)
}

/// A line about a run, and lines of its trace.
pub(super) fn update_of(head: &Value, lines: &[String]) -> String {
    let mut text = head.to_string();
    text.reserve(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        text.push('\n');
        text.push_str(line);
    }
    text
}

/// Fewest lines that are written by several threads.
const MIN_SHARED: usize = 10_000;

/// The lines as text. Those of a long run are written by all processors.
fn texts(mut lines: Vec<Value>) -> Vec<String> {
    let written = |lines: Vec<Value>| lines.iter().map(Value::to_string).collect::<Vec<_>>();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if lines.len() < MIN_SHARED || threads < 2 {
        return written(lines);
    }
    let each = lines.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let mut parts = Vec::new();
        while lines.len() > each {
            let part = lines.split_off(lines.len() - each);
            parts.push(scope.spawn(move || written(part)));
        }
        let mut all = written(lines);
        for part in parts.into_iter().rev() {
            // A thread panics if writing does, as this one would.
            all.extend(part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    })
}

/// A text that differs whenever a run, or whether it is under way, may have changed.
pub(super) fn revision(journal: &Journal, run: &str) -> Result<String, JournalError> {
    let at_work = if journal.is_at_work(run) { "at-work" } else { "left" };
    Ok(format!("{}-{at_work}", journal.revision(run)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_several_threads_write_stay_in_order() {
        for count in [0, 1, MIN_SHARED - 1, MIN_SHARED, MIN_SHARED + 7] {
            let lines: Vec<Value> = (0..count).map(|n| json!({"n": n})).collect();
            let expected: Vec<String> = (0..count).map(|n| format!("{{\"n\":{n}}}")).collect();
            assert_eq!(texts(lines), expected, "{count}");
        }
    }
}
