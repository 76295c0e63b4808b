//! Replies that arrive, in a table beside the journal.
//!
//! Invariant: one transaction at a time writes for all runs of a process, with the newest text of each. So
//! journals have all connections but one.
//! Invariant: a process writes for runs that it holds alone. A text is read while its writer holds the run.

use super::{PARTING, Postgres, Shared, text};
use crate::postgres::{PgStatement, PgValue, Repeat, lock, spawn, wait};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// Most runs that one transaction writes for.
const MAX_RUNS: usize = 32;

/// Changes that a process has not written yet.
#[derive(Default)]
pub(super) struct LiveQueue {
    /// The newest change of each run.
    changes: BTreeMap<String, Change>,
    /// True while somebody writes them.
    is_written: bool,
}

/// A change of the row of a run.
struct Change {
    /// The new text; `None` removes the row.
    text: Option<String>,
    /// Closed when it has been written, or can't be.
    _written: Option<SyncSender<()>>,
}

/// The row of a run that this process holds.
#[derive(Debug)]
pub(in crate::journal) struct LiveRow {
    shared: Arc<Shared>,
    run: String,
}

impl LiveRow {
    pub(in crate::journal) fn show(&self, text: String) {
        self.change(Change { text: Some(text), _written: None });
    }

    pub(in crate::journal) fn clear(&self) {
        self.change(Change { text: None, _written: None });
    }

    /// Removes the row, and waits for that a while.
    pub(in crate::journal) fn close(self) {
        let (send, written) = std::sync::mpsc::sync_channel(1);
        self.change(Change { text: None, _written: Some(send) });
        let _ = written.recv_timeout(PARTING);
    }

    fn change(&self, change: Change) {
        let mut queue = lock(&self.shared.live);
        queue.changes.insert(self.run.clone(), change);
        if !std::mem::replace(&mut queue.is_written, true) {
            spawn(write(self.shared.clone()));
        }
    }
}

/// Writes changes until there are none.
async fn write(shared: Arc<Shared>) {
    loop {
        let changes: Vec<(String, Change)> = {
            let mut queue = lock(&shared.live);
            let first = std::iter::from_fn(|| queue.changes.pop_first()).take(MAX_RUNS).collect();
            queue.is_written = !Vec::is_empty(&first);
            first
        };
        if changes.is_empty() {
            return;
        }
        let statement = |(run, change): &(String, Change)| match &change.text {
            Some(replies) => PgStatement::new(
                "INSERT INTO live (run, holder, replies) SELECT run, holder, $3 FROM leases
                     WHERE run = $1 AND holder = $2 AND expires > clock_timestamp()
                 ON CONFLICT (run) DO UPDATE SET holder = EXCLUDED.holder, replies = EXCLUDED.replies",
                vec![text(run), text(&shared.holder), text(replies)],
            ),
            None => PgStatement::new(
                "DELETE FROM live WHERE run = $1 AND holder = $2",
                vec![text(run), text(&shared.holder)],
            ),
        };
        let statements: Vec<PgStatement> = changes.iter().map(statement).collect();
        // What can't be written is not shown.
        let _ = shared.pool.write(&statements, Duration::ZERO, Repeat::Never).await;
    }
}

impl Postgres {
    /// The row of a run that this process holds.
    pub(in crate::journal) fn live_row(&self, run: &str) -> LiveRow {
        LiveRow { shared: self.0.clone(), run: run.to_string() }
    }

    /// The text that the holder of a run shows, of at most `most` bytes.
    pub(in crate::journal) fn live_text(&self, run: &str, most: usize) -> Option<String> {
        let query = PgStatement::new(
            "SELECT replies FROM live JOIN leases USING (run, holder)
             WHERE run = $1 AND expires > clock_timestamp() AND octet_length(replies) <= $2",
            vec![text(run), PgValue::Int(i64::try_from(most).ok())],
        );
        let pool = self.0.pool.clone();
        let rows = wait(async move { pool.query(&query, Duration::ZERO).await }).ok()?;
        rows.first()?.try_get(0).ok()
    }
}
