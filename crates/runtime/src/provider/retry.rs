//! Trying again, politely.

use runs::SplitMix;
use std::future::Future;
use std::time::Duration;
use tokio::time::sleep;

/// Schedule of retries.
///
/// Before attempt `n + 1` the wait is random between half of `base · 2ⁿ` and all of it, at most `most`; a
/// server's `Retry-After` replaces it, up to `patience`, beyond which the request fails at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Maximum number of retries; 0 disables them.
    pub retries: u32,
    /// The wait before the first repetition.
    pub base: Duration,
    /// The longest wait of our own choice.
    pub most: Duration,
    /// The longest wait a server can ask for.
    pub patience: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            retries: 4,
            base: Duration::from_millis(500),
            most: Duration::from_secs(20),
            patience: Duration::from_secs(60),
        }
    }
}

/// Failure of an attempt.
#[derive(Debug)]
pub(crate) enum AttemptError<E> {
    /// Repeating it is pointless.
    Final(E),
    /// It may work later: after this time, if the server said.
    Passing(E, Option<Duration>),
}

impl Backoff {
    /// Returns the delay before retry `n` (from 0); `None` if there is no further retry.
    fn wait(&self, n: u32, asked: Option<Duration>, rng: &mut SplitMix) -> Option<Duration> {
        if n >= self.retries {
            return None;
        }
        match asked {
            Some(asked) => (asked <= self.patience).then_some(asked),
            None => Some(self.drawn(n, rng)),
        }
    }

    /// The wait after a series of repetitions that did not help, the `n`-th in a row (from 0): what the next
    /// wait would have been, and then twice that.
    pub(crate) fn pause(&self, n: u32, rng: &mut SplitMix) -> Duration {
        self.drawn(self.retries.saturating_add(n), rng)
    }

    fn drawn(&self, n: u32, rng: &mut SplitMix) -> Duration {
        let full = self.base.saturating_mul(1u32.checked_shl(n).unwrap_or(u32::MAX)).min(self.most);
        full.mul_f64(0.5 + 0.5 * rng.unit())
    }

    /// Runs `attempt` until it succeeds or is not worth repeating. `told` hears of every repetition: its
    /// number from 1, the wait before it, and why. Returns how many attempts there were.
    pub(crate) async fn run<T, E, F: Future<Output = Result<T, AttemptError<E>>>>(
        &self,
        rng: &mut SplitMix,
        mut attempt: impl FnMut() -> F,
        mut told: impl FnMut(u32, Duration, &E),
    ) -> (Result<T, E>, u32) {
        let mut n = 0;
        loop {
            let (error, asked) = match attempt().await {
                Ok(value) => return (Ok(value), n + 1),
                Err(AttemptError::Final(error)) => return (Err(error), n + 1),
                Err(AttemptError::Passing(error, asked)) => (error, asked),
            };
            let Some(wait) = self.wait(n, asked, rng) else { return (Err(error), n + 1) };
            n += 1;
            told(n, wait, &error);
            sleep(wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    async fn waits(backoff: &Backoff, asked: Option<Duration>) -> (Vec<Duration>, u32) {
        let mut waits = Vec::new();
        let before = Instant::now();
        let (result, attempts) = backoff
            .run(
                &mut SplitMix::new(7),
                || async { Err::<(), _>(AttemptError::Passing("busy", asked)) },
                |_, wait, _| waits.push(wait),
            )
            .await;
        assert_eq!(result, Err("busy"));
        // The clock is paused: it moves only while everything sleeps. Timers are kept to the millisecond.
        let slept = before.elapsed();
        let sum: Duration = waits.iter().sum();
        assert!(slept >= sum && slept < sum + Duration::from_millis(10), "{slept:?} {sum:?}");
        (waits, attempts)
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_with_jitter_up_to_a_limit() {
        let b = Backoff { retries: 8, ..Backoff::default() };
        let (waits, attempts) = waits(&b, None).await;
        assert_eq!((waits.len(), attempts), (8, 9));
        for (n, wait) in waits.iter().enumerate() {
            let full = Duration::from_millis(500 << n).min(b.most);
            assert!(*wait >= full / 2 && *wait <= full, "{n}: {wait:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_obeyed_within_reason() {
        let b = Backoff { retries: 2, ..Backoff::default() };
        let asked = Duration::from_secs(45);
        assert_eq!(waits(&b, Some(asked)).await, (vec![asked, asked], 3));
        assert_eq!(waits(&b, Some(Duration::from_secs(3600))).await, (vec![], 1));
    }

    #[test]
    fn the_pause_after_a_failed_series_goes_on_where_its_waits_ended() {
        let (b, mut rng) = (Backoff { retries: 2, ..Backoff::default() }, SplitMix::new(7));
        for (n, full) in [(0, 2_000), (1, 4_000), (2, 8_000), (9, 20_000), (u32::MAX, 20_000)] {
            let (pause, full) = (b.pause(n, &mut rng), Duration::from_millis(full));
            assert!(pause >= full / 2 && pause <= full, "{n}: {pause:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn final_errors_are_not_retried() {
        let (backoff, mut rng) = (Backoff::default(), SplitMix::new(0));
        let run = backoff.run(
            &mut rng,
            || async { Err::<(), _>(AttemptError::Final(1)) },
            |_, _, _| panic!("no repetition"),
        );
        assert_eq!(run.await, (Err(1), 1));
    }
}
