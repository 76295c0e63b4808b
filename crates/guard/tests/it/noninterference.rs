//! Two worlds that differ in what an observer must not see, and the same client and model: the observer sees
//! the same calls. `docs/calculus.md` §5.

use crate::{Event, Says, TOOLS, WORDS, answer, next_call, policy, says, session, step};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use std::cell::Cell;

/// Labels as bits: untrusted 1, secret 2, as the indices of [`WORDS`].
fn flows(a: usize, b: usize) -> bool {
    a & !b == 0
}

struct Seen {
    /// Calls of tools that the observer sees: those that take nothing but what flows to the observer.
    calls: Vec<Event>,
    /// Texts that the client was shown.
    shown: Vec<String>,
    /// Results that differ between the worlds and were delivered.
    high: usize,
}

fn run(says: &[Says], clearance: usize, observer: usize, seed: u64, hidden: u64) -> Seen {
    let policy = policy(says, clearance);
    let mut session = session(&policy);
    let is_high = |label: usize| !flows(label, observer);
    let mut seen = Seen { calls: Vec::new(), shown: Vec::new(), high: 0 };
    for _ in 0..24 {
        let call = next_call(seed, &seen.shown);
        let at = TOOLS.iter().position(|t| *t == call.0).unwrap();
        let s = &says[at];
        let mut world = |tool: &str, args: &core_ir::Data| answer(says, tool, args, &is_high, hidden);
        let (event, shown) = step(&mut session, call, &mut world);
        let sees = [s.control, s.to, s.body].into_iter().all(|bound| flows(bound, observer));
        if matches!(event, Event::Called(..)) {
            seen.high += usize::from(is_high(s.result) || s.part.is_some_and(is_high));
            if sees {
                seen.calls.push(event);
            }
        }
        seen.shown.push(shown);
    }
    seen
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn an_observer_sees_the_same_calls_in_both_worlds(
        says in prop::collection::vec(says(), 4),
        clearance in prop_oneof![3 => Just(3usize), 1 => 0..4usize],
        observer in 0..3usize,
        seed: u64,
    ) {
        let [a, b] = [1000, 2000].map(|hidden| run(&says, clearance, observer, seed, hidden));
        prop_assert_eq!(&a.calls, &b.calls, "observer {}", WORDS[observer]);
        // The client's model is an observer, too: what it may not see does not show in what it is shown.
        if flows(clearance, observer) {
            prop_assert_eq!(&a.shown, &b.shown, "model with clearance {}", WORDS[clearance]);
        }
    }
}

/// The property above says something: results that differ do reach the model, which then does differ, and
/// observers do see calls.
#[test]
fn worlds_differ_and_observers_see_calls() {
    let (high, differ, calls) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for seed in 0..200 {
        let all = prop::collection::vec(says(), 4);
        let all = all.new_tree(&mut runner).unwrap().current();
        let observer = (seed % 3) as usize;
        let [a, b] = [1000, 2000].map(|hidden| run(&all, 3, observer, seed, hidden));
        high.set(high.get() + usize::from(a.high > 0));
        differ.set(differ.get() + usize::from(a.shown != b.shown));
        calls.set(calls.get() + a.calls.len());
    }
    assert!(high.get() > 80 && differ.get() > 80 && calls.get() > 40, "{high:?} {differ:?} {calls:?}");
}
