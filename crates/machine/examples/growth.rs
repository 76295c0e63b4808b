//! Prints how steps and time of programs of the calculus grow with the size of what they work on.
//!
//! `cargo run --release -p machine --example growth -- [LARGEST [NAME]]` prints the table of
//! `docs/benchmarks.md`: sizes from 1,000 to LARGEST (1,000,000), each ten times the one before. The
//! exponent is that of the last two sizes. With a name, it measures that program alone.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it measures time and prints what it measured"
)]

use core_ir::Globals;
use diagnostics::FileId;
use machine::{Config, Machine, Output};
use std::sync::Arc;
use std::time::Instant;
use syntax::lam::{Options, parse, parse_globals};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PRELUDE: &str = include_str!("../../agentlang/src/calculus/prelude.lam");

/// Name and text of each program; `N` represents the size.
const PROGRAMS: [(&str, &str); 11] = [
    ("range", "length (range 0 N)"),
    ("fold", "fold (\\a. \\x. a + x) 0 (range 0 N)"),
    ("map", "length (map (\\x. x + 1) (range 0 N))"),
    ("filter", "length (filter (\\x. x % 2 == 0) (range 0 N))"),
    ("reverse", "length (reverse (range 0 N))"),
    (
        "for",
        "let xs = range 0 N in fix[inf] (\\again. \\s. if s.i < length xs then again {i: s.i + 1, sum: s.sum + xs.[s.i]} \
         else s.sum) {i: 0, sum: 0}",
    ),
    ("each", "length (each (\\x. x + 1) (range 0 N))"),
    ("append", "length (fix[inf] (\\go. \\xs. if length xs < N then go (append xs 1) else xs) [])"),
    ("rest", "fix[inf] (\\go. \\xs. if length xs > 0 then go (slice xs 1 (length xs)) else 0) (range 0 N)"),
    ("count", "fix[inf] (\\go. \\n. if n == 0 then 0 else go (n - 1)) N"),
    ("recursion", "fix[inf] (\\go. \\n. if n == 0 then 0 else 1 + go (n - 1)) N"),
];

/// Steps and seconds of a run, or its error.
fn measured(globals: &Arc<Globals>, text: &str) -> Result<(u64, f64), String> {
    let code = parse(FileId(0), text, globals, Options::PROGRAM).code.ok_or("does not compile")?;
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    let start = Instant::now();
    loop {
        match machine.poll() {
            Output::Working => {}
            Output::Done(Ok(_)) => return Ok((machine.fuel_used(), start.elapsed().as_secs_f64())),
            Output::Done(Err(failure)) => return Err(failure.message),
            Output::Request(..) | Output::Waiting => return Err("asks something".into()),
        }
    }
}

fn main() {
    let globals = match parse_globals(FileId(1), PRELUDE) {
        Ok(globals) => Arc::new(globals),
        Err(errors) => return println!("{errors:?}"),
    };
    let fib = "fix[inf] (\\fib. \\n. if n < 2 then n else fib (n - 1) + fib (n - 2)) 27";
    match measured(&globals, fib) {
        Ok((steps, seconds)) => println!("fib 27: {steps} steps, {:.1} ms\n", seconds * 1e3),
        Err(message) => println!("fib 27: {message}\n"),
    }
    let largest = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000u64);
    let sizes: Vec<u64> = (3..).map(|e| 10u64.pow(e)).take_while(|n| *n <= largest).collect();
    println!("| program | {} | exponent |", sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(" | "));
    println!("|---|{}---:|", "---:|".repeat(sizes.len()));
    let only = std::env::args().nth(2);
    for (name, text) in
        PROGRAMS.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name))
    {
        let runs: Vec<_> =
            sizes.iter().map(|n| measured(&globals, &text.replace('N', &n.to_string()))).collect();
        let cells: Vec<String> = runs
            .iter()
            .map(|run| match run {
                Ok((steps, seconds)) => format!("{steps} steps, {:.2} ms", seconds * 1e3),
                Err(message) => message.clone(),
            })
            .collect();
        let exponent = match &runs[..] {
            [.., Ok((_, before)), Ok((_, last))] => format!("{:.2}", (last / before).log10()),
            _ => "–".into(),
        };
        println!("| {name} | {} | {exponent} |", cells.join(" | "));
    }
}
