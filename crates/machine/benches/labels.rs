//! The cost of labels: programs whose labels are all ⊥, and the same programs with labels of every kind mixed
//! in, each a whole run.
//!
//! `scripts/bench-labels` builds this twice, as it is and with `--cfg entail_unlabeled`, where a label takes
//! no space and restricts nothing, and runs both by turns. Each run prints a line for each program: its name,
//! and the nanoseconds of its fastest run.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures time, and prints what it measured"
)]

use core_ir::{Data, Globals, Label, Lattice, LatticeKind, Num};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Reply, Response};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syntax::lam::{Options, parse};

/// Time that each program is run for, over and over.
const EACH: Duration = Duration::from_millis(60);

/// Name, declarations and definitions, and what is done two hundred times, with `A` and `B` for two values
/// that are labeled or not and `i` for a number.
const PROGRAMS: [(&str, &str, &str); 10] = [
    ("function calls", "let f = \\x. x", "[f A, f B, f A, f B]"),
    ("recursion", "", "fix[11] (\\self. \\n. if n == 0 then A else n + self (n - 1)) 10"),
    ("loop, decided by data", "", "fix[inf] (\\self. \\n. if n > 60 then n else self (n + B)) A"),
    ("records", "", "let r = {a: A, b: {c: B, d: i}} in [r.a, r.b.c, r.b.d, (r.a := B).a]"),
    ("lists", "let l = prim[range](0, 100)", "prim[length]([A, l, B, prim[append](l, A), l + [B]])"),
    ("arithmetic", "", "(i + A) * (i + B) - A * B + (if i > 100 then A else B)"),
    ("closures", "", "let f = \\x. \\y. x + y + A in f i B"),
    ("texts", "", "\"{A} of {i} and {B}\""),
    (
        "tools",
        "tool t(x: Num @ [\"U\", \"S\"], y: Num @ [\"U\", \"S\"]) -> Num @ [\"U\"] read control [\"U\", \"S\"]",
        "tool[t] {x: A, y: B}",
    ),
    ("conversations", "", "fresh (let _ = send A in let _ = send \"and {B}\" in recv {result: Num})"),
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
            // The two values are labeled once; the rest of the program uses them by name.
            let body = term.replace('A', "one").replace('B', "two");
            let text = format!(
                "{head}\nlet one = {a}\nlet two = {b}\n\
                 fix[inf] (\\again. \\i. if i == 0 then 0 else let _ = {body} in again (i - 1)) 200"
            );
            println!("{labels}\t{name}\t{}", fastest(&text, config));
        }
    }
    for (name, kind) in LatticeKind::ALL {
        let (join, flows) = operations(kind);
        println!("join\t{name}\t{join:.2}\nflows\t{name}\t{flows:.2}");
    }
}

/// The nanoseconds of a join and of a comparison in a lattice, over all pairs of eight labels that were met
/// before.
fn operations(kind: LatticeKind) -> (f64, f64) {
    let mut lattice = Lattice::new(kind);
    let list = |names: &[&str]| Data::list(names.iter().map(|n| Data::str(*n)));
    let texts: Vec<Data> = match kind.words() {
        [] => {
            ["web", "mail", "user", "disk"].map(|s| Data::record([("sources".into(), list(&[s]))])).to_vec()
        }
        words => words.iter().map(|word| list(&[word])).chain([list(&[])]).collect(),
    };
    let mut labels: Vec<Label> = texts.iter().filter_map(|d| lattice.label_of(d)).collect();
    while labels.len() < 8 {
        let joined = labels.iter().fold(Label::BOTTOM, |a, b| lattice.join(a, *b));
        labels.push(joined);
    }
    let pairs: Vec<(Label, Label)> =
        labels.iter().flat_map(|a| labels.iter().map(move |b| (*a, *b))).collect();
    let fastest = |mut work: Box<dyn FnMut() + '_>| {
        let (begun, mut best) = (Instant::now(), f64::MAX);
        while begun.elapsed() < EACH {
            let start = Instant::now();
            work();
            best = best.min(start.elapsed().as_nanos() as f64 / (1_000 * pairs.len()) as f64);
        }
        best
    };
    let join = fastest(Box::new(|| {
        for _ in 0..1_000 {
            for (a, b) in &pairs {
                black_box(lattice.join(*black_box(a), *black_box(b)));
            }
        }
    }));
    let flows = fastest(Box::new(|| {
        for _ in 0..1_000 {
            for (a, b) in &pairs {
                black_box(lattice.flows(*black_box(a), *black_box(b)));
            }
        }
    }));
    (join, flows)
}
