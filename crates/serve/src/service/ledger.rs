//! Usage of each caller, counted against its limits.
//!
//! Entry points: [`Ledger::begin`] before a run, [`Ledger::end`] after it.
//!
//! Invariant: the usage of a caller's runs in a day never exceeds its limits, whatever the number of active
//! runs: each run is granted a part of the rest.
//! A ledger starts with the usage that the journal knows of the day ([`Ledger::of`]), or, without a journal,
//! empty with the server. Calls in flight when a server was killed are not counted.

use core_ir::Num;
use runtime::{DayUse, Limits, Usage};
use session::callers::Caller;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Seconds of a day, which begins at midnight UTC.
const DAY: i64 = 86_400;

/// A part of the budget of a day. `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grant {
    calls: Option<u64>,
    tokens: Option<u64>,
    usd: Option<Num>,
    day: i64,
}

impl Grant {
    /// The day of the budget, since 1970.
    pub(super) fn day(&self) -> i64 {
        self.day
    }

    /// The limits of a run that may use this much.
    pub(super) fn within(&self, limits: Limits) -> Limits {
        Limits {
            max_model_calls: self.calls.or(limits.max_model_calls),
            max_tokens: self.tokens.or(limits.max_tokens),
            max_usd: self.usd.clone().or(limits.max_usd),
            ..limits
        }
    }
}

/// Usage of a caller.
#[derive(Debug)]
pub(super) struct Ledger {
    /// Runs that have begun and not ended.
    open: usize,
    /// Start times of the runs of the last minute.
    begun: VecDeque<Instant>,
    /// The day of what follows, from the beginning of 1970.
    day: i64,
    /// Calls made, and calls granted to active runs.
    calls: u64,
    tokens: u64,
    usd: Num,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger { open: 0, begun: VecDeque::new(), day: 0, calls: 0, tokens: 0, usd: Num::ZERO }
    }
}

impl Ledger {
    /// Usage of runs of this day that a server before has begun.
    pub(super) fn of(used: &Usage, seconds: i64) -> Ledger {
        Ledger {
            day: day_of(seconds),
            calls: used.model_calls,
            tokens: used.input_tokens.saturating_add(used.output_tokens),
            usd: used.usd.clone().unwrap_or(Num::ZERO),
            ..Ledger::default()
        }
    }

    /// Continues with the use of a day that servers share.
    pub(super) fn go_on(&mut self, day: i64, used: &DayUse) {
        (self.day, self.calls, self.tokens, self.usd) = (day, used.calls, used.tokens, used.usd.clone());
    }

    /// Use of the day: calls made, and calls granted to active runs.
    pub(super) fn day(&self) -> DayUse {
        DayUse { calls: self.calls, tokens: self.tokens, usd: self.usd.clone() }
    }

    /// Runs that have begun and not ended.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// Begins a run; gives what it may use of the budget of the day.
    ///
    /// # Errors
    /// A limit is reached; in words for people.
    pub(super) fn begin(
        &mut self,
        caller: &Caller,
        per_run: &Limits,
        now: Instant,
        seconds: i64,
    ) -> Result<Grant, String> {
        let limits = &caller.limits;
        if let Some(most) = limits.runs.filter(|most| self.open >= *most) {
            return Err(format!("`{}` has {most} unfinished runs, the most that it may have", caller.name));
        }
        while self.begun.front().is_some_and(|t| now.duration_since(*t) >= Duration::from_secs(60)) {
            self.begun.pop_front();
        }
        if let Some(most) = limits.runs_per_minute.filter(|most| self.begun.len() >= *most) {
            return Err(format!("`{}` may begin {most} runs in a minute; try again later", caller.name));
        }
        let day = day_of(seconds);
        if day != self.day {
            (self.day, self.calls, self.tokens, self.usd) = (day, 0, 0, Num::ZERO);
        }
        let used_up = |what: &str| format!("`{}` has used up its {what} of today", caller.name);
        let part = |most: Option<u64>, used: u64, per_run: Option<u64>, what: &str| match most {
            None => Ok(None),
            Some(most) if used >= most => Err(used_up(what)),
            Some(most) => Ok(Some((most - used).min(per_run.unwrap_or(u64::MAX)))),
        };
        let calls = part(limits.calls_per_day, self.calls, per_run.max_model_calls, "calls of models")?;
        let tokens = part(limits.tokens_per_day, self.tokens, per_run.max_tokens, "tokens")?;
        let usd = match &caller.usd_per_day {
            None => None,
            Some(most) if self.usd >= *most => return Err(used_up("US dollars")),
            Some(most) => {
                let left = most.sub(&self.usd).unwrap_or(Num::ZERO);
                Some(per_run.max_usd.clone().map_or(left.clone(), |own| own.min(left)))
            }
        };
        self.open += 1;
        if limits.runs_per_minute.is_some() {
            self.begun.push_back(now);
        }
        self.calls = self.calls.saturating_add(calls.unwrap_or(0));
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or(0));
        self.usd = plus(&self.usd, usd.as_ref());
        Ok(Grant { calls, tokens, usd, day })
    }

    /// Ends a run; what it has not used is free again. Without its usage all of its grant counts.
    pub(super) fn end(&mut self, grant: &Grant, used: Option<&Usage>) {
        self.open = self.open.saturating_sub(1);
        let Some(used) = used.filter(|_| grant.day == self.day) else { return };
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        if let Some(granted) = grant.calls {
            self.calls = self.calls.saturating_sub(granted).saturating_add(used.model_calls);
        }
        if let Some(granted) = grant.tokens {
            self.tokens = self.tokens.saturating_sub(granted).saturating_add(tokens);
        }
        if let Some(granted) = &grant.usd {
            let rest = self.usd.sub(granted).unwrap_or(Num::ZERO);
            self.usd = plus(&rest, used.usd.as_ref());
        }
    }
}

/// The day of a time in seconds since 1970.
pub(super) fn day_of(seconds: i64) -> i64 {
    seconds.div_euclid(DAY)
}

/// The beginning of the day of a time, both in seconds since 1970.
pub(super) fn beginning_of_day(seconds: i64) -> i64 {
    day_of(seconds) * DAY
}

/// A sum of money; one that is too large to compute stays as it is.
fn plus(a: &Num, b: Option<&Num>) -> Num {
    b.and_then(|b| a.add(b).ok()).unwrap_or_else(|| a.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use session::callers::Callers;

    fn caller(limits: &str) -> Caller {
        let text = format!("[local]\nlimits = {{ {limits} }}\n");
        Callers::reserved(&toml::from_str(&text).unwrap(), "local").unwrap()
    }

    fn used(calls: u64) -> Usage {
        Usage { model_calls: calls, input_tokens: 10 * calls, ..Usage::default() }
    }

    #[test]
    fn runs_at_once_and_in_a_minute_are_bounded() {
        let caller = caller("runs = 2, runs_per_minute = 3");
        let (mut ledger, none, now) = (Ledger::default(), Limits::default(), Instant::now());
        let grants = [0, 1].map(|_| ledger.begin(&caller, &none, now, 0).unwrap());
        assert!(ledger.begin(&caller, &none, now, 0).unwrap_err().contains("2 unfinished runs"));
        grants.iter().for_each(|g| ledger.end(g, None));
        let third = ledger.begin(&caller, &none, now, 0).unwrap();
        ledger.end(&third, None);
        assert!(ledger.begin(&caller, &none, now, 0).unwrap_err().contains("3 runs in a minute"));
        assert!(ledger.begin(&caller, &none, now + Duration::from_secs(60), 0).is_ok());
    }

    #[test]
    fn a_ledger_goes_on_with_the_usage_of_its_day() {
        let caller = caller("calls_per_day = 4");
        let (none, now) = (Limits::default(), Instant::now());
        let mut ledger = Ledger::of(&used(3), DAY + 5);
        let grant = ledger.begin(&caller, &none, now, DAY + 6).unwrap();
        assert_eq!(grant.within(none.clone()).max_model_calls, Some(1));
        let mut full = Ledger::of(&used(4), DAY + 5);
        assert!(full.begin(&caller, &none, now, DAY + 6).unwrap_err().contains("calls of models of today"));
        assert!(full.begin(&caller, &none, now, 2 * DAY).is_ok());
        assert_eq!(beginning_of_day(DAY + 5), DAY);
    }

    #[test]
    fn the_budget_of_a_day_is_granted_once() {
        let caller = caller("calls = 3, calls_per_day = 4");
        let per_run = caller.limits_of_run(&Limits::default());
        let (mut ledger, now) = (Ledger::default(), Instant::now());
        let first = ledger.begin(&caller, &per_run, now, 0).unwrap();
        let second = ledger.begin(&caller, &per_run, now, 0).unwrap();
        // Both together may use what there is, and no more.
        let most = |g: &Grant| g.within(per_run.clone()).max_model_calls;
        assert_eq!((most(&first), most(&second)), (Some(3), Some(1)));
        assert!(ledger.begin(&caller, &per_run, now, 0).unwrap_err().contains("calls of models of today"));
        ledger.end(&first, Some(&used(1)));
        let third = ledger.begin(&caller, &per_run, now, 0).unwrap();
        assert_eq!(most(&third), Some(2));
        // A run that is lost may have used all of it.
        ledger.end(&third, None);
        assert!(ledger.begin(&caller, &per_run, now, 0).is_err());
        // The next day is another one, and what ends in it is not of it.
        let next = ledger.begin(&caller, &per_run, now, DAY).unwrap();
        ledger.end(&second, Some(&used(1)));
        assert_eq!(most(&next), Some(3));
        assert_eq!(ledger.calls, 3);
    }
}
