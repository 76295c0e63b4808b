//! The clocks of time limits.
//!
//! Entry point: [`Clocks`]. A clock of a scope runs, for a request, while that request or another one of the
//! scope is open whose answer label flows to the channel and to the answer label of the request: what a
//! request that only secrets decide takes is not counted for one that the public can see. Where all labels
//! are alike that is all the time in which the scope waits for something.
//!
//! Source: `docs/calculus.md` §10, time limits.

use core_ir::{Label, Lattice, Num};
use machine::{Request, RequestId};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use tokio::time::Instant;

/// The clocks of a run, and when which request is late. Most runs have no time limits, and then it takes no
/// room.
#[derive(Debug, Default)]
pub(crate) struct Clocks(Option<Box<Running>>);

#[derive(Debug, Default)]
struct Running {
    scopes: HashMap<u64, Clock>,
    open: HashMap<RequestId, Open>,
    due: BTreeSet<(Instant, RequestId)>,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Open {
    answer: Label,
    scopes: Vec<u64>,
    /// Time of the deadline, and the index of the limit.
    due: Option<(Instant, u32)>,
}

/// Time spent waiting in a scope.
#[derive(Debug)]
struct Clock {
    /// Time of the last change of `open`.
    since: Instant,
    /// The answer labels of what is open.
    open: Vec<Label>,
    /// Time that requests with exactly these answer labels were open; each set is sorted.
    spent: Vec<(Vec<Label>, Duration)>,
}

impl Clock {
    /// Counts the time up to now.
    fn count(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        self.since = now;
        if self.open.is_empty() || passed.is_zero() {
            return;
        }
        let mut labels = self.open.clone();
        labels.sort();
        labels.dedup();
        match self.spent.iter_mut().find(|(set, _)| *set == labels) {
            Some((_, sum)) => *sum += passed,
            None => self.spent.push((labels, passed)),
        }
    }

    /// Returns the elapsed time that counts for a request.
    fn passed(&self, lattice: &Lattice, request: &Request) -> Duration {
        let counts = |l: &Label| lattice.flows(*l, request.channel) && lattice.flows(*l, request.answer);
        self.spent.iter().filter(|(set, _)| set.iter().any(counts)).map(|(_, sum)| *sum).sum()
    }
}

impl Clocks {
    /// Opens a request. Returns the exceeded limit if the request is late at once; it is then not opened.
    pub(crate) fn asked(
        &mut self,
        id: RequestId,
        request: &Request,
        lattice: &Lattice,
        now: Instant,
    ) -> Option<u32> {
        if request.deadlines.is_empty() {
            return None;
        }
        self.0.get_or_insert_default().asked(id, request, lattice, now)
    }

    /// Closes a request that was answered or canceled.
    pub(crate) fn answered(&mut self, id: RequestId, now: Instant) {
        if let Some(running) = &mut self.0 {
            running.answered(id, now);
        }
    }

    /// Returns the next deadline of a request.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.as_ref()?.due.first().map(|(at, _)| *at)
    }

    /// A request that is late by now, and for which of its limits. It stays open until it is answered.
    pub(crate) fn late(&self, now: Instant) -> Option<(RequestId, u32)> {
        self.0.as_ref()?.late(now)
    }
}

impl Running {
    fn asked(&mut self, id: RequestId, request: &Request, lattice: &Lattice, now: Instant) -> Option<u32> {
        let mut due: Option<(Instant, u32)> = None;
        let mut scopes = Vec::new();
        for (deadline, which) in request.deadlines.iter().zip(0..) {
            let clock = self.scopes.entry(deadline.scope).or_insert_with(|| Clock {
                since: now,
                open: Vec::new(),
                spent: Vec::new(),
            });
            clock.count(now);
            scopes.push(deadline.scope);
            let left = seconds(&deadline.seconds).saturating_sub(clock.passed(lattice, request));
            if left.is_zero() {
                return Some(which);
            }
            // One that the clock cannot count to never comes. While it is open its own time counts, so this
            // does not change.
            if let Some(at) = now.checked_add(left)
                && due.is_none_or(|(other, _)| at < other)
            {
                due = Some((at, which));
            }
        }
        for scope in &scopes {
            if let Some(clock) = self.scopes.get_mut(scope) {
                clock.open.push(request.answer);
            }
        }
        if let Some((at, _)) = due {
            self.due.insert((at, id));
        }
        self.open.insert(id, Open { answer: request.answer, scopes, due });
        None
    }

    fn answered(&mut self, id: RequestId, now: Instant) {
        let Some(open) = self.open.remove(&id) else { return };
        if let Some((at, _)) = open.due {
            self.due.remove(&(at, id));
        }
        for scope in &open.scopes {
            if let Some(clock) = self.scopes.get_mut(scope) {
                clock.count(now);
                if let Some(i) = clock.open.iter().position(|l| *l == open.answer) {
                    clock.open.swap_remove(i);
                }
            }
        }
    }

    fn late(&self, now: Instant) -> Option<(RequestId, u32)> {
        let (at, id) = self.due.first()?;
        let which = self.open.get(id)?.due?.1;
        (*at <= now).then_some((*id, which))
    }
}

fn seconds(n: &Num) -> Duration {
    let seconds = n.to_f64();
    if seconds <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
