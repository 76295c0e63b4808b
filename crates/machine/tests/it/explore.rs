//! Exploring all courses of a run: states that are equal go on as one, and nothing else does.

use core_ir::{Data, Globals, Num};
use diagnostics::FileId;
use machine::explore::{Answer, Exploration, Limits, explore, sample};
use machine::{Call, Config, Machine, Reply, Response};
use syntax::lam::{Options, parse};

const LIMITS: Limits = Limits { worlds: 10_000, fuel: 10_000_000 };

fn machine(text: &str) -> Machine {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    let code = parsed.code.unwrap_or_else(|| panic!("{:?}", parsed.diagnostics));
    Machine::new(code.into(), None, Config::default())
}

/// The world counts how often it was asked.
fn found(text: &str, limits: Limits) -> Exploration {
    explore(machine(text), 0u32, limits, &mut |asked, call| match call {
        Call::Sample { probability, .. } => Ok(sample(probability, asked)),
        Call::Model { .. } => Ok(vec![Answer {
            probability: Num::ONE,
            response: Response::Model(Ok(Reply::Text("7".into()))),
            world: asked + 1,
        }]),
        _ => Err("not asked here".into()),
    })
    .unwrap()
}

fn tosses(n: u32) -> String {
    format!(
        "(fix[inf] (\\self. \\n. \\sum. if n == 0 then sum else self (n - 1) (sum + (choose 0.5 0 1)))) {n} 0"
    )
}

#[test]
fn independent_tosses_that_are_added_up_take_polynomial_time() {
    let found = found(&tosses(60), LIMITS);
    assert_eq!(found.open, Num::ZERO);
    assert_eq!(found.endings.len(), 61);
    assert!(found.followed <= 120, "{}", found.followed);
    assert_eq!(found.worlds, 1 << 60);
    // The middle of the binomial distribution: 60 over 30, of 2⁶⁰.
    let ways = 118_264_581_564_861_424_i64;
    let likeliest = &found.endings[0];
    assert_eq!(likeliest.result.as_ref().unwrap().to_string(), "30");
    assert_eq!(likeliest.ways, ways as u64);
    assert_eq!(likeliest.probability, Num::from(ways).div(&Num::from(1 << 60)).unwrap());
}

#[test]
fn states_that_differ_in_value_label_conversation_or_world_stay_apart() {
    // Twice as many endings as a single toss has would be merged if the difference were not seen.
    for (text, endings) in [
        ("let a = choose 0.5 1 2 in let b = choose 0.5 1 2 in [a, b]", 4),
        ("let a = choose 0.5 (['U'] : 1) 1 in let b = choose 0.5 1 2 in [a, b]", 4),
        ("let a = choose 0.5 {x: 1} (1, 1) in let b = choose 0.5 1 2 in [a, b]", 4),
        ("let a = choose 0.5 (\\x. x) (\\x. x + 1) in let b = choose 0.5 1 2 in a b", 3),
    ] {
        let found = found(text, LIMITS);
        assert_eq!((found.endings.len(), found.worlds), (endings, 4), "{text}");
        let all = found.endings.iter().fold(Num::ZERO, |sum, e| sum.add(&e.probability).unwrap());
        assert_eq!(all, Num::ONE, "{text}");
    }
    // The same value and conversations that differ: each of the two is followed through both sides of the
    // second toss.
    let talk = found("let _ = choose 0.5 (send 'a') (send 'b') in let b = choose 0.5 1 1 in b", LIMITS);
    assert_eq!((talk.endings.len(), talk.followed), (1, 4));
    // A world that has answered differs from one that has not.
    let asked =
        found("let _ = choose 0.5 (fresh (recv {result: Num})) 7 in let b = choose 0.5 1 1 in b", LIMITS);
    assert_eq!((asked.endings.len(), asked.worlds), (1, 4));
}

#[test]
fn limits_leave_the_unlikely_rest_open() {
    // Which of two tosses fell how is kept, so nothing is merged: 2³⁰ courses, of which the likeliest are
    // found.
    let text =
        "(fix[inf] (\\self. \\n. if n == 0 then [] else let a = choose 0.9 0 1 in [a] + self (n - 1))) 30";
    let found = found(text, Limits { worlds: 200, ..LIMITS });
    let ended = found.endings.iter().fold(Num::ZERO, |sum, e| sum.add(&e.probability).unwrap());
    assert_eq!(ended.add(&found.open).unwrap(), Num::ONE);
    assert!(found.open > Num::ZERO && !found.endings.is_empty());
    let all_zero = Data::list((0..30).map(|_| Data::Num(Num::ZERO)));
    assert_eq!(found.endings[0].result.as_ref().unwrap().data(), Some(all_zero));
}
