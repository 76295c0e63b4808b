//! Export to a collector: a bounded queue, a task that sends what is in it, and counts of what became of it.
//!
//! Entry points: [`Exporter::new`], [`Exporter::offer`] during a run, [`Exporter::flush`] at its end.
//!
//! Invariant: offering never waits. What the queue has no room for is dropped and counted.
//! Invariant: each item is counted once: as sent, rejected, failed or dropped.

use super::message::{self, Item, OtlpProtocol, Reply, Resource};
use super::{Signal, TelemetryOptions};
use crate::web;
use crate::{Redactor, Secret, rng};
use diagnostics::clip_to as clip;
use runs::SplitMix;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// Time for which an item waits for others to be sent with it.
const GATHER: Duration = Duration::from_millis(500);

/// The most items of one message.
const MAX_ITEMS: usize = 256;

/// The most bytes of the items of one message. One that is larger by itself is sent alone.
const MAX_MESSAGE: usize = 2 << 20;

/// The most bytes of all items that wait. Content of messages may be large.
const MAX_WAITING: usize = 64 << 20;

/// The most bytes of an answer.
const MAX_REPLY: usize = 64 << 10;

/// The most attempts to send a message.
const ATTEMPTS: u32 = 5;

/// The most attempts where no connection is made and a run waits for its telemetry.
const ATTEMPTS_AT_THE_END: u32 = 2;

/// The longest wait that a collector can ask for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts of the spans, or of the metrics, that a process had to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Accepted by the collector.
    pub sent: u64,
    /// Rejected by a collector that accepted others of the same message.
    pub rejected: u64,
    /// Not sent, because of the collector or the connection.
    pub failed: u64,
    /// Dropped, because the queue was full.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    rejected: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    fn read(&self) -> Delivered {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Delivered {
            sent: of(&self.sent),
            rejected: of(&self.rejected),
            failed: of(&self.failed),
            dropped: of(&self.dropped),
        }
    }
}

/// Counts of the items of one run.
#[derive(Debug, Default)]
pub(super) struct RunDelivery {
    waiting: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
    /// Number of items in messages of which the collector rejected a part.
    affected: AtomicU64,
    /// The first error or complaint of the collector.
    why: Mutex<Option<String>>,
    /// Told when none waits.
    done: Notify,
}

impl RunDelivery {
    fn say(&self, why: &str) {
        // A panic while the lock was held can't leave the text half written.
        let mut first = self.why.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| why.to_string());
    }

    fn left(&self) {
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_waiters();
        }
    }
}

/// A span or a metric on its way.
struct Waiting {
    item: Item,
    /// Its part of the bytes that wait.
    size: usize,
    run: Arc<RunDelivery>,
}

/// The way to a collector, which all runs of a process share.
#[derive(Debug)]
pub(super) struct Exporter {
    shared: Arc<Shared>,
    queue: Sender<Waiting>,
    /// The other end of the queue, until the task begins.
    unread: Mutex<Option<Receiver<Waiting>>>,
}

#[derive(Debug)]
struct Shared {
    endpoint: String,
    protocol: OtlpProtocol,
    client: reqwest::Client,
    timeout: Duration,
    resource: Resource,
    /// Keys of headers, which a collector may repeat in its answer.
    redactor: Redactor,
    /// The most items that wait.
    capacity: usize,
    bytes: AtomicUsize,
    /// Runs that have ended and wait for their telemetry.
    flushing: AtomicUsize,
    /// Told when a run begins to wait.
    hurry: Notify,
    spans: Counts,
    metrics: Counts,
}

impl Exporter {
    pub(super) fn new(options: &TelemetryOptions, client: reqwest::Client, resource: Resource) -> Exporter {
        // A channel of no capacity is an error.
        let (queue, unread) = channel(options.queue.max(1));
        let shared = Shared {
            endpoint: options.endpoint.clone(),
            protocol: options.protocol,
            client,
            timeout: options.timeout,
            resource,
            redactor: Redactor::new(keys(options)).for_records(),
            capacity: options.queue.max(1),
            bytes: AtomicUsize::new(0),
            flushing: AtomicUsize::new(0),
            hurry: Notify::new(),
            spans: Counts::default(),
            metrics: Counts::default(),
        };
        Exporter { shared: Arc::new(shared), queue, unread: Mutex::new(Some(unread)) }
    }

    /// Begins to send, if that has not begun. Needs a tokio runtime, which must outlive the runs.
    pub(super) fn start(&self) {
        // A panic while the lock was held can't leave the option half changed.
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(queue) = unread {
            tokio::spawn(self.shared.clone().work(queue));
        }
    }

    /// Puts an item into the queue, or drops it if there is no room.
    pub(super) fn offer(&self, item: Item, run: &Arc<RunDelivery>) {
        let shared = &*self.shared;
        let (signal, size) = (item.signal(), item.size());
        let before = shared.bytes.fetch_add(size, Ordering::Relaxed);
        run.waiting.fetch_add(1, Ordering::AcqRel);
        let waiting = Waiting { item, size, run: run.clone() };
        if before.saturating_add(size) > MAX_WAITING || self.queue.try_send(waiting).is_err() {
            shared.bytes.fetch_sub(size, Ordering::Relaxed);
            shared.counts(signal).dropped.fetch_add(1, Ordering::Relaxed);
            run.dropped.fetch_add(1, Ordering::Relaxed);
            run.left();
        }
    }

    /// Waits until everything of a run has been sent or given up, for this time at most.
    ///
    /// # Errors
    /// Not everything arrived; in words for people.
    pub(super) async fn flush(&self, run: &RunDelivery, most: Duration) -> Result<(), String> {
        let shared = &*self.shared;
        shared.flushing.fetch_add(1, Ordering::AcqRel);
        shared.hurry.notify_one();
        let _guard = FlushGuard(shared);
        let until = Instant::now() + most;
        loop {
            let done = run.done.notified();
            tokio::pin!(done);
            // Registered before the look, so that no end is missed.
            done.as_mut().enable();
            if run.waiting.load(Ordering::Acquire) == 0 || timeout_at(until, done).await.is_err() {
                break;
            }
        }
        shared.verdict(run, most)
    }

    /// Counts of all spans so far.
    pub(super) fn spans(&self) -> Delivered {
        self.shared.spans.read()
    }

    /// Counts of all metrics so far.
    pub(super) fn metrics(&self) -> Delivered {
        self.shared.metrics.read()
    }
}

/// The values of headers, and their last words: a collector may repeat a key without what is before it.
fn keys(options: &TelemetryOptions) -> Vec<Secret> {
    let values = options.headers.iter().map(|(_, secret)| secret.clone());
    let words = options.headers.iter().filter_map(|(_, secret)| secret.expose().rsplit(' ').next());
    values.chain(words.map(Secret::new)).collect()
}

/// A run that waits, also if it stops waiting early.
struct FlushGuard<'s>(&'s Shared);

impl Drop for FlushGuard<'_> {
    fn drop(&mut self) {
        self.0.flushing.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Failure of a request.
enum Fault {
    /// Repeating it is pointless.
    Final(String),
    /// It may work later: after this time, if the collector said.
    Passing { why: String, after: Option<Duration>, is_connected: bool },
}

impl Shared {
    fn counts(&self, signal: Signal) -> &Counts {
        match signal {
            Signal::Spans => &self.spans,
            Signal::Metrics => &self.metrics,
        }
    }

    fn is_hurried(&self) -> bool {
        self.flushing.load(Ordering::Acquire) > 0
    }

    /// Sends what is in the queue until nobody can put anything into it.
    async fn work(self: Arc<Shared>, mut queue: Receiver<Waiting>) {
        let mut rng = rng::arbitrary();
        while let Some(first) = queue.recv().await {
            let (mut size, mut batch) = (first.size, vec![first]);
            let until = Instant::now() + GATHER;
            while batch.len() < MAX_ITEMS && size < MAX_MESSAGE {
                let next = if self.is_hurried() {
                    queue.try_recv().ok()
                } else {
                    tokio::select! {
                        next = queue.recv() => next,
                        // Looks again: whoever hurries wants what there is.
                        () = self.hurry.notified() => continue,
                        () = tokio::time::sleep_until(until) => None,
                    }
                };
                let Some(next) = next else { break };
                size += next.size;
                batch.push(next);
            }
            let (spans, metrics) = batch.into_iter().partition(|w| w.item.signal() == Signal::Spans);
            for (signal, waiting) in [(Signal::Spans, spans), (Signal::Metrics, metrics)] {
                self.deliver(signal, waiting, &mut rng).await;
            }
        }
    }

    /// Sends items, repeatedly if need be, and counts what became of them.
    async fn deliver(&self, signal: Signal, waiting: Vec<Waiting>, rng: &mut SplitMix) {
        if waiting.is_empty() {
            return;
        }
        let counts = self.counts(signal);
        let n = waiting.len() as u64;
        let (items, runs): (Vec<Item>, Vec<_>) =
            waiting.into_iter().map(|w| (w.item, (w.size, w.run))).unzip();
        let result = self.send(signal, items, rng).await;
        match &result {
            Ok(reply) => {
                let rejected = reply.rejected.min(n);
                counts.sent.fetch_add(n - rejected, Ordering::Relaxed);
                counts.rejected.fetch_add(rejected, Ordering::Relaxed);
            }
            Err(_) => drop(counts.failed.fetch_add(n, Ordering::Relaxed)),
        }
        for (size, run) in runs {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            match &result {
                Ok(reply) => {
                    if reply.rejected > 0 {
                        run.affected.fetch_add(1, Ordering::Relaxed);
                    }
                    if !reply.message.is_empty() {
                        run.say(&reply.message);
                    }
                }
                Err(why) => {
                    run.failed.fetch_add(1, Ordering::Relaxed);
                    run.say(why);
                }
            }
            run.left();
        }
    }

    async fn send(&self, signal: Signal, items: Vec<Item>, rng: &mut SplitMix) -> Result<Reply, String> {
        let body = message::request(self.protocol, signal, &self.resource, items);
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (why, after, is_connected) = match self.post(signal, body.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(Fault::Final(why)) => return Err(why),
                Err(Fault::Passing { why, after, is_connected }) => (why, after, is_connected),
            };
            let most = if self.is_hurried() && !is_connected { ATTEMPTS_AT_THE_END } else { ATTEMPTS };
            if attempt >= most || after.is_some_and(|after| after > PATIENCE) {
                return Err(if attempt > 1 { format!("{why} (after {attempt} attempts)") } else { why });
            }
            // Half a second, a second, two, four; a part of it is random.
            let own = Duration::from_millis(250 << attempt).mul_f64(0.5 + 0.5 * rng.unit());
            match after {
                Some(after) => sleep(after).await,
                // A collector that is overloaded is left alone, also if runs end in the meantime.
                None if is_connected => sleep(own).await,
                // Whoever hurries does not wait for one that may not be there.
                None => drop(timeout(own, self.hurry.notified()).await),
            }
        }
    }

    async fn post(&self, signal: Signal, body: Vec<u8>) -> Result<Reply, Fault> {
        let url = format!("{}/v1/{}", self.endpoint.trim_end_matches('/'), signal.path());
        let sent = self.client.post(url).timeout(self.timeout).body(body).send().await;
        let response = sent.map_err(|e| Fault::Passing {
            why: self.redactor.owned(web::cause(&e)),
            after: None,
            is_connected: !e.is_connect(),
        })?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            let why = format!("HTTP {status}");
            // The protocol names these.
            return Err(match status {
                429 | 502 | 503 | 504 => {
                    Fault::Passing { why, after: web::retry_after(&response), is_connected: true }
                }
                _ => Fault::Final(why),
            });
        }
        // Whatever the answer is, the items have arrived: sent again they would be there twice.
        let told = |message: String| Reply { rejected: 0, message };
        let bytes = match web::body(response, MAX_REPLY).await {
            Ok(bytes) => bytes,
            Err(web::BodyError::TooLarge) => {
                return Ok(told(format!(
                    "its answer is larger than {MAX_REPLY} bytes, so whether it rejected any is unknown"
                )));
            }
            Err(web::BodyError::Broken(_)) => {
                return Ok(told("its answer broke off, so whether it rejected any is unknown".into()));
            }
        };
        let Some(reply) = message::reply(self.protocol, &bytes) else {
            return Ok(told("its answer is not one of OTLP, so whether it rejected any is unknown".into()));
        };
        Ok(Reply { message: clip(&self.redactor.owned(reply.message), 300), ..reply })
    }

    /// Tells what did not arrive of a run.
    fn verdict(&self, run: &RunDelivery, most: Duration) -> Result<(), String> {
        let of = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let why = run.why.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut parts = Vec::new();
        let (failed, dropped, affected) = (of(&run.failed), of(&run.dropped), of(&run.affected));
        let waiting = run.waiting.load(Ordering::Acquire);
        if failed > 0 {
            parts.push(format!("{failed} could not be sent"));
        }
        if dropped > 0 {
            parts.push(format!("{dropped} were dropped because {} were waiting already", self.capacity));
        }
        if affected > 0 {
            parts.push(format!("the collector rejected some of {affected}"));
        }
        if waiting > 0 {
            parts.push(format!("{waiting} were not sent within {} s", most.as_secs_f64()));
        }
        if parts.is_empty() && why.is_none() {
            return Ok(());
        }
        let mut text = format!("telemetry for `{}`", self.endpoint);
        if !parts.is_empty() {
            let _ = write!(text, ": of its spans and metrics {}", parts.join("; "));
        }
        if let Some(why) = why {
            let _ = write!(text, ": {why}");
        }
        Err(text)
    }
}
