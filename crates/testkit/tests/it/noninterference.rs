//! Noninterference: what must not be told apart is not, in all lattices, by all observers.
//!
//! `NI_PAIRS` says how many pairs of runs are compared (20,000 if not said), `NI_FROM` the number of the
//! first, `NI_SHRINK` how many smaller pairs are tried where one leaks.

use testkit::secrets::{Pair, PairSummary, check, pair, pair_like, shrink};

fn number(variable: &str, usually: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(usually)
}

#[test]
fn secrets_do_not_show() {
    no_pair_leaks(20_000, pair);
}

/// Tools label parts of what they return, also by what stands beside them; fields are absent or of another
/// type, lists empty.
#[test]
fn secrets_do_not_show_in_parts_of_results() {
    no_pair_leaks(5_000, |seed| pair_like(seed, |style| style.parts = true));
}

fn no_pair_leaks(usually: u64, pair: impl Fn(u64) -> Pair) {
    let (pairs, from) = (number("NI_PAIRS", usually), number("NI_FROM", 0));
    let (mut differ, mut ended, mut watched, mut models) = (0, 0, 0, 0);
    for seed in from..from + pairs {
        let this = pair(seed);
        match check(&this) {
            Ok(PairSummary { observers, both_ended, models: m, differ: d }) => {
                models += u64::from(m);
                differ += u64::from(d);
                ended += u64::from(both_ended);
                watched += u64::from(observers);
            }
            Err(leak) => {
                let (this, leak) = shrink(this, leak, number("NI_SHRINK", 20_000));
                panic!(
                    "caught after {} programs: pair {seed} leaks to {}: {}\n{this:?}",
                    seed - from + 1,
                    leak.observer.to_json(),
                    leak.seen
                );
            }
        }
    }
    eprintln!(
        "{pairs} pairs, {watched} observers, {ended} saw both runs end, {models} models; {differ} pairs differ for one who sees \
         all"
    );
    // The test is worth something only if the secrets are used, and runs end.
    assert!(differ > pairs / 4, "only {differ} of {pairs} pairs differ for one who sees all");
    assert!(ended > watched / 3, "only {ended} of {watched} observers saw both runs end");
}
