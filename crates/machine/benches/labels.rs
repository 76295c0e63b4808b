//! What labels cost: programs whose labels are all ⊥, and the same programs with labels of every kind mixed in, each a whole run.
//!
//! `scripts/bench-labels` builds this twice, as it is and with `--cfg entail_unlabelled`, where a label takes no space and restricts
//! nothing, and runs both by turns. Each run prints a line for each program: its name, and the nanoseconds of its fastest run.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures time, and prints what it measured"
)]

use core_ir::{Data, Globals, LatticeKind, Num};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Reply, Response};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syntax::lam::{Options, parse};

/// How long each program is run at most, over and over.
const EACH: Duration = Duration::from_millis(60);

/// Name, declarations and definitions, and the term with `A` and `B` for two values that are labelled or not.
const PROGRAMS: [(&str, &str, &str); 10] = [
    ("function calls", "let f = \\x. x", "each[1] (\\i. [f A, f B, f A, f B]) (prim[range](0, 200))"),
    ("recursion", "", "fix[1001] (\\self. \\n. if n == 0 then A else n + self (n - 1)) 1000"),
    ("loop, decided by data", "", "fix[inf] (\\self. \\n. if n > 1000 then n else self (n + B)) A"),
    (
        "records",
        "",
        "each[1] (\\i. let r = {a: A, b: {c: B, d: i}} in [r.a, r.b.c, r.b.d, (r.a := B).a]) (prim[range](0, 200))",
    ),
    (
        "lists",
        "",
        "let l = prim[range](0, 1000) in prim[length]([A, l, B, prim[append](l, A), prim[concat]([l, [B]])])",
    ),
    (
        "arithmetic",
        "",
        "each[1] (\\i. (i + A) * (i + B) - A * B + (if i > 100 then A else B)) (prim[range](0, 200))",
    ),
    ("closures", "", "each[1] (\\i. let f = \\x. \\y. x + y + A in f i B) (prim[range](0, 200))"),
    ("texts", "", "each[1] (\\i. \"{A} of {i} and {B}\") (prim[range](0, 200))"),
    (
        "tools",
        "tool t(x: Num @ [\"U\", \"S\"], y: Num @ [\"U\", \"S\"]) -> Num @ [\"U\"] read control [\"U\", \"S\"]",
        "each[1] (\\i. tool[t] {x: A, y: B}) (prim[range](0, 200))",
    ),
    (
        "conversations",
        "",
        "each[1] (\\i. fresh (let _ = send A in let _ = send \"and {B}\" in recv {result: Num})) (prim[range](0, 200))",
    ),
];

fn answer(call: &Call) -> Response {
    match call {
        Call::Model { .. } => Response::Model(Ok(Reply::Text("7".into()))),
        Call::Tool { .. } => Response::Tool(Ok(Data::Num(Num::from(7)))),
        Call::Approve { .. } => Response::Approve(Ok(())),
        Call::Recall { .. } => Response::Recall(Ok(None)),
        Call::Remember { .. } => Response::Remember(Ok(())),
        Call::Sample { .. } => Response::Sample(true),
    }
}

/// The nanoseconds of the fastest run of a text.
fn fastest(text: &str, config: &Config) -> u128 {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    assert!(parsed.code.is_some(), "{text}: {:?}", parsed.diagnostics);
    let code = Arc::new(parsed.code.expect("checked above"));
    let (begun, mut best) = (Instant::now(), u128::MAX);
    while begun.elapsed() < EACH {
        let start = Instant::now();
        let mut machine = Machine::new(black_box(&code).clone(), None, config.clone());
        loop {
            match machine.poll() {
                Output::Request(id, request) => machine.handle(id, answer(&request.call)),
                Output::Working => {}
                Output::Done(result) => break assert!(result.is_ok(), "{text}: {result:?}"),
                Output::Waiting => unreachable!("every request was answered"),
            }
        }
        drop(machine);
        best = best.min(start.elapsed().as_nanos());
    }
    best
}

fn main() {
    let explained = Config { explain_flow: true, ..Config::default() };
    let sources = Config { lattice: LatticeKind::SourcesReaders, ..Config::default() };
    let sets = ["{sources: [\"web\"]}", "{sources: [\"mail\"], readers: [\"ann\", \"bob\"]}"];
    let ways: [(&str, &str, &str, &Config); 4] = [
        ("⊥", "5", "7", &Config::default()),
        ("mixed", "([\"U\"]: 5)", "([\"S\"]: 7)", &Config::default()),
        ("sources", &format!("({}: 5)", sets[0]), &format!("({}: 7)", sets[1]), &sources),
        ("explained", "([\"U\"]: 5)", "([\"S\"]: 7)", &explained),
    ];
    for (name, head, term) in PROGRAMS {
        for (labels, a, b, config) in ways {
            if labels == "sources" && head.contains("[\"U\"") {
                continue;
            }
            // The two values are labelled once; the rest of the program uses them by name.
            let text = format!(
                "{head}\nlet one = {a}\nlet two = {b}\n{}",
                term.replace('A', "one").replace('B', "two")
            );
            println!("{labels}\t{name}\t{}", fastest(&text, config));
        }
    }
}
