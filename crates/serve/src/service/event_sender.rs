//! Messages to the clients of a run.

use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::mpsc::Sender;

/// Tells a client what happens, without ever waiting for it: no client slows a run down or makes the server
/// keep what it does not read.
pub(super) struct EventSender {
    pub(super) to: Sender<Value>,
    /// Others, who miss what they do not take in time.
    pub(super) watched: broadcast::Sender<Value>,
    /// Number of events skipped since the last one that was sent.
    pub(super) skipped: u64,
}

impl EventSender {
    pub(super) fn tell(&mut self, event: Value) {
        if self.watched.receiver_count() > 0 {
            let _ = self.watched.send(event.clone());
        }
        // Two places: what was left out is said first. Nobody may listen any more: fine.
        if self.skipped > 0 {
            if self.to.capacity() < 2 {
                self.skipped += 1;
                return;
            }
            let _ = self.to.try_send(skipped(std::mem::take(&mut self.skipped)));
        }
        if let Err(tokio::sync::mpsc::error::TrySendError::Full(_)) = self.to.try_send(event) {
            self.skipped += 1;
        }
    }

    /// The last event is told in any case; the run is over, so there is time for it.
    pub(super) async fn end(self, event: Value) {
        let _ = self.watched.send(event.clone());
        if self.skipped > 0 {
            let _ = self.to.send(skipped(self.skipped)).await;
        }
        let _ = self.to.send(event).await;
    }
}

fn skipped(events: u64) -> Value {
    json!({"event": "skipped", "events": events})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::sync::mpsc::channel;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_told_what_it_missed_and_how_it_ended() {
        let (to, mut events) = channel(4);
        let mut telling = EventSender { to, watched: broadcast::Sender::new(1), skipped: 0 };
        for n in 0..100 {
            telling.tell(json!({"event": "text", "n": n}));
        }
        assert_eq!(events.len(), 4);
        // It reads a little, and is told from then on.
        for n in 0..3 {
            assert_eq!(events.recv().await.unwrap()["n"], n);
        }
        telling.tell(json!({"event": "text", "n": 100}));
        telling.tell(json!({"event": "text", "n": 101}));
        telling.tell(json!({"event": "text", "n": 102}));
        let end = tokio::spawn(telling.end(json!({"event": "result"})));
        let mut rest = Vec::new();
        while let Some(event) = events.recv().await {
            rest.push(event);
        }
        end.await.unwrap();
        let want = json!([
            {"event": "text", "n": 3}, {"event": "skipped", "events": 96}, {"event": "text", "n": 100},
            {"event": "text", "n": 101}, {"event": "skipped", "events": 1}, {"event": "result"},
        ]);
        assert_eq!(Value::from(rest), want);
    }

    #[tokio::test]
    async fn departed_clients_are_not_awaited() {
        let (to, events) = channel(1);
        drop(events);
        let mut telling = EventSender { to, watched: broadcast::Sender::new(1), skipped: 0 };
        for _ in 0..10 {
            telling.tell(json!({"event": "text"}));
        }
        telling.end(json!({"event": "result"})).await;
    }
}
