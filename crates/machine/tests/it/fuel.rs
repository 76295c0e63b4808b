//! Fuel counts work: what an operation copies or looks at takes a step each, however deep in a value it is,
//! and whether or not there is a result (`docs/calculus.md` §7).

use core_ir::{Code, Data, Globals, Num};
use diagnostics::FileId;
use machine::{Call, Config, ErrorCode, Machine, Output, Reply, Response};
use std::sync::Arc;
use syntax::lam::{Options, parse, parse_globals};

/// Parts of the values that are looked at.
const PARTS: u64 = 2_000;

const PRELUDE: &str = include_str!("../../../agentlang/src/calculus/prelude.lam");

fn code(text: &str) -> Arc<Code> {
    let globals: Arc<Globals> = parse_globals(FileId(1), PRELUDE).expect("the prelude").into();
    let parsed = parse(FileId(0), text, &globals, Options::PROGRAM);
    assert!(parsed.code.is_some(), "{:?}", parsed.diagnostics);
    parsed.code.expect("checked above").into()
}

/// `[0, 1, …]`, `count` items.
fn list(count: u64) -> Data {
    Data::list((0..count as i64).map(|n| Data::Num(Num::from(n))))
}

/// The steps of a run, and the code of its error. Tools give a list of this many items, models its JSON.
fn steps_with(text: &str, count: u64) -> (u64, Option<ErrorCode>) {
    let text = text.replace("COUNT", &count.to_string());
    let mut machine = Machine::new(code(&text), None, Config::default());
    loop {
        match machine.poll() {
            Output::Request(id, request) => machine.handle(
                id,
                match request.call {
                    Call::Tool { .. } => Response::Tool(Ok(Data::list([list(count)]))),
                    Call::Model { .. } => Response::Model(Ok(Reply::Text(list(count).to_json().to_string()))),
                    Call::Recall { .. } => Response::Recall(Ok(Some(list(count)))),
                    _ => Response::Remember(Ok(())),
                },
            ),
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => return (machine.fuel_used(), result.err().map(|f| f.code)),
        }
    }
}

/// The steps that a further operation on a value of `PARTS` parts takes, beyond what it takes on a small one.
fn steps_of(before: &str, once: &str, twice: &str) -> u64 {
    let further = |count| {
        let run = |body: &str| steps_with(&format!("{before}{body}"), count).0;
        run(twice) - run(once)
    };
    further(PARTS) - further(1)
}

#[test]
fn operations_that_look_into_values_take_a_step_for_each_part() {
    // Each item has a label of its own, so that it is stripped.
    let labeled = "let xs = [each (\\n. [\"U\"] : n) (range 0 COUNT)] in ";
    let nested = "let xs = [range 0 COUNT] in let ys = [range 0 COUNT] in ";
    let cases = [
        (labeled, "append [] xs", "append (append [] xs) xs"),
        (labeled, "xs + []", "[xs + [], xs + []]"),
        (labeled, "slice xs 0 1", "[slice xs 0 1, slice xs 0 1]"),
        (labeled, "flatten xs", "[flatten xs, flatten xs]"),
        (nested, "xs == ys", "[xs == ys, xs == ys]"),
        (nested, "contains xs (range 0 COUNT)", "[contains xs (range 0 COUNT), contains xs (range 0 COUNT)]"),
        (nested, "to_json xs", "[to_json xs, to_json xs]"),
        (nested, "to_str xs", "[to_str xs, to_str xs]"),
        (nested, "check[Dyn] xs", "check[Dyn] (check[Dyn] xs)"),
        (nested, "check[List (List Num)] xs", "check[List (List Num)] (check[List (List Num)] xs)"),
        (nested, "guard xs every (length > 0)", "guard (guard xs every (length > 0)) every (length > 0)"),
        (
            "let f = \\x. x in let xs = [range 0 COUNT] in ",
            "guard (f xs) any",
            "guard (guard (f xs) any) any",
        ),
    ];
    for (before, once, twice) in cases {
        let steps = steps_of(before, once, twice);
        assert!((PARTS - 1..=6 * PARTS).contains(&steps), "{steps} steps: {before}{once}");
    }
}

#[test]
fn arguments_and_answers_take_a_step_for_each_part() {
    let tool = "tool t(x: Dyn) -> Dyn pure\ntool u(x: Dyn) -> List (List Num) pure\ntool one() -> Dyn pure\n";
    let cases = [
        ("let xs = [range 0 COUNT] in ", "tool[t] {x: xs}", "[tool[t] {x: xs}, tool[t] {x: xs}]"),
        ("", "tool[one] {}", "[tool[one] {}, tool[one] {}]"),
        ("", "tool[u] {x: 1}", "[tool[u] {x: 1}, tool[u] {x: 1}]"),
    ];
    for (before, once, twice) in cases {
        let steps = steps_of(&format!("{tool}{before}"), once, twice);
        assert!((PARTS - 1..=6 * PARTS).contains(&steps), "{steps} steps: {once}");
    }
    for body in ["remember a xs", "let _ = remember a xs in remember a xs"] {
        let run =
            |count| steps_with(&format!("mem (let xs = range 0 COUNT in {body}) {{a: List Num}}"), count);
        assert_eq!(run(PARTS).1, None);
    }
    let kept = |body: &str| {
        let run =
            |count| steps_with(&format!("mem (let xs = range 0 COUNT in {body}) {{a: List Num}}"), count).0;
        run(PARTS) - run(1)
    };
    assert!(kept("let _ = remember a xs in remember a xs") - kept("remember a xs") >= PARTS - 1);
    assert!(kept("[recall a, recall a]") - kept("[recall a]") >= PARTS - 1);
}

/// A literal is copied each time.
#[test]
fn literals_take_a_step_for_each_part() {
    let of = |json: &str| steps_with(&format!("let f = \\x. const {json} in [f 1, f 1]"), 1).0;
    let long = format!("[{}]", vec!["1"; PARTS as usize].join(", "));
    assert!(of(&long) - of("[1]") >= 2 * (PARTS - 1), "{}", of(&long));
}

/// An operation that fails has done its work all the same.
#[test]
fn operations_that_fail_count_what_they_looked_at() {
    let failing = "let big = fix[inf] (\\go. \\s. if s.n == 0 then s.x else go {n: s.n - 1, x: (s.x, s.x)}) in \
                   let x = big {n: COUNT, x: 1} in try[[]] to_json [x] catch e. e";
    let (few, many) = (steps_with(failing, 3), steps_with(failing, 60));
    assert_eq!((few.1, many.1), (None, None));
    // The value has more parts than are looked at.
    assert!(many.0 > few.0 + Config::default().max_text as u64 / 2, "{many:?}");
}

/// A character of a text is found from its front.
#[test]
fn a_character_of_a_text_counts_the_way_to_it() {
    let text = "x".repeat(16 * PARTS as usize);
    let at = |i: usize| steps_with(&format!("let s = '{text}' in s.[{i}]"), 1).0;
    assert_eq!(at(16 * PARTS as usize - 1) - at(0), PARTS - 1);
}

/// Fields of a large record are found without a look at the others, which no count of steps shows: they take
/// a step, whichever it is.
#[test]
fn fields_of_large_records_take_a_step() {
    let fields: Vec<String> = (0..PARTS).map(|n| format!("f{n}: {n}")).collect();
    let record = format!("let r = {{{}}} in ", fields.join(", "));
    let steps = |body: &str| steps_with(&format!("{record}{body}"), 1).0;
    for (first, last) in [("r.f0", "r.f1999"), ("r.['f0']", "r.['f1999']"), ("has r 'f0'", "has r 'f1999'")] {
        assert_eq!(steps(first), steps(last));
        assert!(steps(&format!("[{last}, {last}]")) - steps(&format!("[{last}]")) < 10, "{last}");
    }
    // A changed copy is made of all of them.
    assert!(steps("[r.f0 := 1, r.f1 := 2]") - steps("[r.f0 := 1]") >= PARTS);
}

/// A run once went on for seconds: the second operand of `append` was not counted.
#[test]
fn a_large_item_is_not_appended_for_nothing() {
    let program = "let xs = each (\\n. [\"U\"] : n) (range 0 5001) in \
                   fix[inf] (\\go. \\s. if s.n == 0 then s.n else let _ = append [] [xs] in go {n: s.n - 1}) {n: 4000}";
    let mut machine = Machine::new(code(program), None, Config { fuel: 100_000, ..Config::default() });
    let failure = loop {
        match machine.poll() {
            Output::Working => {}
            Output::Done(result) => break result.expect_err("more than that much work"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(failure.code, ErrorCode::Fuel);
}
