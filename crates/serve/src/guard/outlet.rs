//! A bounded queue of messages to a peer.

use super::peer::GRACE;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes that may wait to be written to one side before the other side is no longer read.
const QUEUE: usize = 4 << 20;
/// Bytes that may wait to be written to one side at all.
const MAX_QUEUE: usize = 64 << 20;

/// A queue of messages to a peer, written by a task of its own.
pub(super) struct Outlet {
    send: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Waiting,
    task: JoinHandle<()>,
}

/// Bytes that wait to be written.
#[derive(Clone)]
pub(super) struct Waiting {
    bytes: Arc<AtomicUsize>,
    /// Told when there are fewer.
    written: Arc<Notify>,
}

impl Waiting {
    pub(super) fn new(written: Arc<Notify>) -> Waiting {
        Waiting { bytes: Arc::default(), written }
    }

    fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Takes note of bytes that were written.
    pub(super) fn done(&self, bytes: usize) {
        // Only then does anyone wait.
        if self.bytes.fetch_sub(bytes, Ordering::SeqCst) >= QUEUE {
            self.written.notify_one();
        }
    }

    fn get(&self) -> usize {
        self.bytes.load(Ordering::SeqCst)
    }
}

impl Outlet {
    /// A queue to a stream.
    pub(super) fn new(mut to: impl AsyncWrite + Send + Unpin + 'static, written: Arc<Notify>) -> Outlet {
        let waiting = Waiting::new(written);
        let left = waiting.clone();
        Outlet::with(waiting, |mut lines| async move {
            while let Some(line) = lines.recv().await {
                let is_gone = to.write_all(&line).await.is_err() || to.flush().await.is_err();
                left.done(line.len());
                if is_gone {
                    return;
                }
            }
            let _ = to.shutdown().await;
        })
    }

    /// A queue to standard output, which a thread of its own writes.
    pub(super) fn stdout(written: Arc<Notify>) -> Outlet {
        let waiting = Waiting::new(written);
        let left = waiting.clone();
        Outlet::with(waiting, |mut lines| async move {
            let writing = tokio::task::spawn_blocking(move || {
                let mut to = io::stdout().lock();
                while let Some(line) = lines.blocking_recv() {
                    let is_gone = to.write_all(&line).is_err() || to.flush().is_err();
                    left.done(line.len());
                    if is_gone {
                        return;
                    }
                }
            });
            // It has not panicked, and if it has, the client hears nothing more.
            let _ = writing.await;
        })
    }

    /// A queue whose lines a task takes. It has to tell what it has done.
    pub(super) fn with<F>(
        waiting: Waiting,
        take: impl FnOnce(mpsc::UnboundedReceiver<Vec<u8>>) -> F,
    ) -> Outlet
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (send, lines) = mpsc::unbounded_channel::<Vec<u8>>();
        Outlet { send, waiting, task: tokio::spawn(take(lines)) }
    }

    pub(super) fn push(&self, message: &Value) {
        let mut line = message.to_string().into_bytes();
        line.push(b'\n');
        self.waiting.add(line.len());
        // Whoever is gone is noticed by its reader.
        let _ = self.send.send(line);
    }

    /// Returns whether the other side may be read.
    pub(super) fn is_free(&self) -> bool {
        self.waiting.get() < QUEUE
    }

    /// Returns whether the peer does not read.
    pub(super) fn is_overfull(&self) -> bool {
        self.waiting.get() > MAX_QUEUE
    }

    /// Writes what waits, for a limited time, and closes.
    pub(super) async fn close(&mut self) {
        let (closed, _) = mpsc::unbounded_channel();
        drop(std::mem::replace(&mut self.send, closed));
        let _ = timeout(GRACE, &mut self.task).await;
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.task.abort();
    }
}
