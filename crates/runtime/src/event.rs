//! Progress of handlers that are still working, on its way into the events of a run.

use machine::RequestId;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Message from a handler that is still working.
#[derive(Debug)]
pub(crate) enum HandlerNote {
    Retry { number: u32, wait: Duration, cause: String },
    Growing { output_tokens: u64 },
    Text(String),
}

/// Messages from handlers that are not yet delivered. A channel would reserve room for thirty in every
/// waiting agent.
#[derive(Debug, Default)]
pub(crate) struct HandlerNotes(Mutex<NoteQueue>);

#[derive(Debug, Default)]
struct NoteQueue {
    notes: VecDeque<(RequestId, HandlerNote)>,
    /// Waker of the task that waits for the next note.
    waits: Option<Waker>,
}

impl HandlerNotes {
    fn put(&self, id: RequestId, note: HandlerNote) {
        let mut told = self.lock();
        told.notes.push_back((id, note));
        let waits = told.waits.take();
        drop(told);
        if let Some(waits) = waits {
            waits.wake();
        }
    }

    /// The oldest, if there is one.
    pub(crate) fn take(&self) -> Option<(RequestId, HandlerNote)> {
        self.lock().notes.pop_front()
    }

    /// The oldest, as soon as there is one. One task may wait.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<(RequestId, HandlerNote)> {
        let mut told = self.lock();
        if let Some(note) = told.notes.pop_front() {
            return Poll::Ready(note);
        }
        match &mut told.waits {
            Some(waits) => waits.clone_from(cx.waker()),
            None => told.waits = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, NoteQueue> {
        // A panic while it was held leaves a note that is there or not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Channel on which a handler reports its progress. It may have no receiver.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    to: Option<(RequestId, Arc<HandlerNotes>)>,
    wants_text: bool,
}

impl Progress {
    /// Leads nowhere.
    pub fn none() -> Progress {
        Progress::default()
    }

    pub(crate) fn to(id: RequestId, notes: Arc<HandlerNotes>, wants_text: bool) -> Progress {
        Progress { to: Some((id, notes)), wants_text }
    }

    /// Returns true if a listener wants the text of the reply while it streams.
    pub fn wants_text(&self) -> bool {
        self.wants_text
    }

    fn tell(&self, note: HandlerNote) {
        if let Some((id, notes)) = &self.to {
            // Nothing receives it after the run.
            notes.put(*id, note);
        }
    }

    /// An attempt failed; repetition `number` (from 1) follows after `wait`.
    pub fn retry(&self, number: u32, wait: Duration, cause: impl Into<String>) {
        self.tell(HandlerNote::Retry { number, wait, cause: cause.into() });
    }

    /// Reports further text of the reply.
    pub fn text(&self, text: impl Into<String>) {
        let text = text.into();
        if self.wants_text && !text.is_empty() {
            self.tell(HandlerNote::Text(text));
        }
    }

    /// Reports the number of tokens that the reply has by now.
    pub fn growing(&self, output_tokens: u64) {
        self.tell(HandlerNote::Growing { output_tokens });
    }
}
