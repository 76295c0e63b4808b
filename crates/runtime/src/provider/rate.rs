//! Rate limits of models.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Limits of a model per minute; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RateLimit {
    /// Calls.
    pub calls: Option<u32>,
    /// Tokens of prompts, guessed at before they are sent.
    pub tokens: Option<u32>,
}

/// Keeps calls apart: each waits for its turn, in the order in which they come.
#[derive(Debug)]
pub(super) struct Rate {
    limit: RateLimit,
    state: Mutex<State>,
}

/// From when on there is room. A minute's worth may be used at once after a minute of silence.
#[derive(Debug, Default)]
struct State {
    calls: Option<Instant>,
    tokens: Option<Instant>,
    /// The endpoint asked for silence until then.
    pause: Option<Instant>,
}

const MINUTE: Duration = Duration::from_secs(60);

impl Rate {
    pub(super) fn new(limit: RateLimit) -> Rate {
        Rate { limit, state: Mutex::default() }
    }

    /// Waits until a call with this number of tokens may be sent.
    pub(super) async fn wait(&self, tokens: u64) {
        if let Some(turn) = self.turn(tokens, Instant::now()) {
            sleep_until(turn).await;
        }
    }

    /// All calls wait at least so long, unless that is longer than anybody has patience for.
    pub(super) fn pause(&self, pause: Duration, patience: Duration) {
        if pause <= patience {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pause = state.pause.max(Instant::now().checked_add(pause));
        }
    }

    /// Returns the time at which this call may start, if it is later than now.
    fn turn(&self, tokens: u64, now: Instant) -> Option<Instant> {
        // A panic while the lock was held leaves times that are as good as any.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = take(&mut state.calls, self.limit.calls, 1, now);
        let tokens = take(&mut state.tokens, self.limit.tokens, tokens, now);
        let turn = calls.max(tokens).max(state.pause);
        turn.filter(|t| *t > now)
    }
}

/// Takes `n` of what flows in at `limit` a minute into a bucket that holds a minute's worth: until when the
/// taker must wait.
fn take(full_at: &mut Option<Instant>, limit: Option<u32>, n: u64, now: Instant) -> Option<Instant> {
    let limit = limit?.max(1);
    // More than a bucket holds would never come: such a call takes all of it.
    let n = u32::try_from(n).unwrap_or(u32::MAX).min(limit);
    // `full_at` is the time at which the unused bucket would be full.
    let level = full_at.unwrap_or(now).max(now);
    let after = level + MINUTE * n / limit;
    *full_at = Some(after);
    after.checked_sub(MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_and_tokens_flow_in_by_the_minute() {
        let begun = Instant::now();
        let rate = Rate::new(RateLimit { calls: Some(3), tokens: Some(100) });
        for _ in 0..3 {
            rate.wait(10).await;
        }
        assert_eq!(begun.elapsed(), Duration::ZERO);
        rate.wait(10).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(20));
        // 40 of 100 were taken, and 33 came back.
        tokio::time::sleep(MINUTE * 2).await;
        let (begun, rate) = (Instant::now(), rate);
        rate.wait(100).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        rate.wait(1_000_000).await;
        assert_eq!(begun.elapsed(), MINUTE);
    }

    #[tokio::test(start_paused = true)]
    async fn rate_pause_delays_the_next_request() {
        let (begun, rate) = (Instant::now(), Rate::new(RateLimit::default()));
        rate.pause(Duration::from_secs(3600), MINUTE);
        rate.wait(1).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        rate.pause(Duration::from_secs(7), MINUTE);
        rate.wait(1).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(7));
    }
}
