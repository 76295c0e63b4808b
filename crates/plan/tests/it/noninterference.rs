//! Noninterference of generated plans: two worlds that differ in what a tool with a label gives.

use crate::generate::{Rng, flowing};
use crate::worlds::{Answers, Observer, compile, run};
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer out of many of every type.
fn answer(rng: &mut Rng) -> Value {
    let all = [
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(null),
        json!(true),
        json!(""),
        json!("u"),
        json!("u u"),
        json!([]),
        json!([1]),
        json!([3, 1, 2]),
        json!({"a": 1}),
        json!({"error": "u"}),
        json!({"late": true}),
    ];
    // Mostly numbers: plans compute with them.
    if rng.below(100) < 55 { json!(rng.below(6) as i64 - 1) } else { all[rng.below(all.len())].clone() }
}

/// `ENTAIL_PAIRS` is the number of plans; each has a pair of worlds for each of the observers.
#[test]
fn hidden_data_changes_no_observation() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let (count, first) = (number("ENTAIL_PAIRS", 300), number("ENTAIL_PAIRS_FROM", 0));
    let (mut pairs, mut differ, mut both_ended, mut paid) = (0u64, 0u64, 0u64, 0u64);
    for seed in first + 1..=first + count {
        let text = flowing(seed);
        let Ok(code) = compile(&text) else { continue };
        let code = Arc::new(code);
        let mut rng = Rng::new(seed ^ 0x5EED);
        for observer in Observer::ALL {
            let mut worlds = [Answers::default(), Answers::default()];
            for tool in ["read", "vault", "known", "ask"] {
                let one = answer(&mut rng);
                for world in &mut worlds {
                    let mut value = if observer.hides(tool) { answer(&mut rng) } else { one.clone() };
                    if tool == "ask" {
                        // A model's answer is as secret and untrusted as its prompt: here it is neither.
                        value = json!(seed % 7);
                    }
                    if tool == "known" && value.get("error").is_some() {
                        value = json!(2);
                    }
                    world.0.insert(tool.into(), value);
                }
            }
            let mut ran = worlds.each_ref().map(|w| run(&code, w));
            let seen = ran.each_mut().map(|r| r.seen(observer));
            assert!(
                seen[0].agrees(&seen[1]),
                "plan {seed}, {observer:?}\n{text}\nworlds: {worlds:?}\nseen: {:?}\n      {:?}",
                seen[0],
                seen[1]
            );
            pairs += 1;
            both_ended += u64::from(seen.iter().all(|s| s.end.is_some()));
            differ += u64::from(
                ran[0].calls("note") != ran[1].calls("note") || ran[0].calls("pay") != ran[1].calls("pay"),
            );
            // The arguments of every payment are the plan's own, whatever the world gives.
            for call in ran.iter().flat_map(|r| r.calls("pay")) {
                paid += 1;
                let (to, n) = (&call[1][0], &call[1][1]);
                assert!(*to == "bob" || *to == "ann", "plan {seed}\n{text}\n{call}");
                assert!(n.as_u64().is_some_and(|n| n < 3), "plan {seed}\n{text}\n{call}");
            }
        }
    }
    println!(
        "{pairs} pairs: {both_ended} ended visibly in both worlds, in {differ} the calls differed, {paid} payments"
    );
    // A test that sees nothing differ tests nothing.
    assert!(pairs * 2 > count && differ * 100 > pairs && both_ended * 20 > pairs && paid * 100 > pairs);
}
