//! Repetitions of a request that a handler made before it had the answer.
//!
//! Entry point: [`Retries`], which a journal keeps beside the answer. No run reads it.

use serde_json::{Value as Json, json};
use std::time::Duration;

/// Most causes that are kept.
const MAX_CAUSES: usize = 4;

/// Most characters of a cause.
const MAX_CHARS: usize = 300;

/// Attempts that failed before a request was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// Number of attempts that failed.
    pub number: u64,
    /// Time that was waited between attempts.
    pub waited: Duration,
    /// The first causes that differ.
    pub causes: Vec<String>,
}

impl Retries {
    /// Adds an attempt that failed, and the wait after it.
    pub(crate) fn add(&mut self, wait: Duration, cause: &str) {
        self.number += 1;
        self.waited = self.waited.saturating_add(wait);
        let cause = diagnostics::clip_to(cause, MAX_CHARS);
        if self.causes.len() < MAX_CAUSES && self.causes.iter().all(|known| *known != cause) {
            self.causes.push(cause);
        }
    }

    /// The object of traces and journals: `number`, `ms` and `causes`.
    pub fn to_json(&self) -> Json {
        let ms = u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX);
        json!({"number": self.number, "ms": ms, "causes": self.causes})
    }

    /// Reads what [`Retries::to_json`] gives.
    pub(crate) fn from_json(json: &Json) -> Option<Retries> {
        let causes = json["causes"].as_array()?.iter().filter_map(Json::as_str);
        Some(Retries {
            number: json["number"].as_u64()?,
            waited: Duration::from_millis(json["ms"].as_u64()?),
            causes: causes.map(String::from).collect(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn equal_causes_are_kept_once_and_few_of_others() {
        let mut retries = Retries::default();
        for n in 0..20 {
            retries.add(Duration::from_millis(100), "overloaded");
            retries.add(Duration::from_millis(100), &format!("{n} {}", "é".repeat(1000)));
        }
        assert_eq!((retries.number, retries.waited, retries.causes.len()), (40, Duration::from_secs(4), 4));
        assert!(retries.causes.iter().all(|cause| cause.chars().count() <= MAX_CHARS + 1), "{retries:?}");
        assert_eq!(Retries::from_json(&retries.to_json()), Some(retries));
    }
}
