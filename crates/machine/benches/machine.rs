//! Times of the forms of the calculus: each a whole run, from a fresh machine to its result, with
//! the world answering at once; those named `…_x1000` a run that does the same a thousand times, in one list.
//! `scripts/bench-table.sh` shows the figures beside those of seed 000, Table 6.

use core_ir::{Code, Data, Globals, Num, StoreDecl, ToolDecl};
use diagnostics::FileId;
use divan::{Bencher, black_box};
use machine::{Answers, Args, Asked, Call, Config, Machine, Output, Reply, Response};
use std::sync::Arc;
use syntax::lam::{Options, parse};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    divan::main();
}

fn code(text: &str) -> Arc<Code> {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    assert!(parsed.code.is_some(), "{text}: {:?}", parsed.diagnostics);
    parsed.code.expect("checked above").into()
}

fn answer(call: &Call) -> Response {
    match call {
        Call::Model { .. } => Response::Model(Ok(Reply::Text("7".into()))),
        Call::Tool { .. } => Response::Tool(Ok(Data::Num(Num::from(7)))),
        Call::Approve { .. } => Response::Approve(Ok(())),
        Call::Recall { .. } => Response::Recall(Ok(Some(Data::Num(Num::from(7))))),
        Call::Remember { .. } => Response::Remember(Ok(())),
        Call::Sample { .. } => Response::Sample(true),
    }
}

/// Tools and stores that answer at once.
struct World;

impl Answers for World {
    fn tool(&mut self, _: &Asked<'_>, _: &Arc<ToolDecl>, args: Args<'_>) -> Option<Result<Data, String>> {
        black_box(args.get(0));
        Some(Ok(Data::Num(Num::from(7))))
    }

    fn recall(
        &mut self,
        _: &Asked<'_>,
        _: &Arc<StoreDecl>,
        key: u32,
    ) -> Option<Result<Option<Data>, String>> {
        black_box(key);
        Some(Ok(Some(Data::Num(Num::from(7)))))
    }

    fn remember(
        &mut self,
        _: &Asked<'_>,
        _: &Arc<StoreDecl>,
        _: u32,
        value: &Data,
    ) -> Option<Result<(), String>> {
        black_box(value);
        Some(Ok(()))
    }
}

fn run(code: &Arc<Code>, config: &Config) -> Machine {
    let mut machine = Machine::new(code.clone(), None, config.clone());
    loop {
        match machine.poll_with(&mut World) {
            Output::Request(id, request) => machine.handle(id, answer(&request.call)),
            Output::Working => {}
            Output::Done(result) => {
                assert!(result.is_ok(), "{result:?}");
                return machine;
            }
            Output::Waiting => unreachable!("every request was answered"),
        }
    }
}

fn bench(bencher: Bencher<'_, '_>, text: &str) {
    let code = code(text);
    let config = Config::default();
    bencher.bench(|| run(black_box(&code), &config));
}

/// A value and nothing else: what every other figure includes.
#[divan::bench]
fn empty_run(bencher: Bencher<'_, '_>) {
    bench(bencher, "1");
}

#[divan::bench]
fn function_call(bencher: Bencher<'_, '_>) {
    bench(bencher, "(\\x. x) 1");
}

#[divan::bench]
fn tool_call(bencher: Bencher<'_, '_>) {
    bench(bencher, "tool t(x: Num) -> Num pure\ntool[t] {x: 1}");
}

#[divan::bench]
fn compose_three(bencher: Bencher<'_, '_>) {
    bench(bencher, "((\\x. x + 1) >> (\\x. x * 2) >> (\\x. x - 3)) 5");
}

#[divan::bench]
fn compose_three_tools(bencher: Bencher<'_, '_>) {
    bench(bencher, "tool t(x: Num) -> Num pure\n(tool[t] >> tool[t] >> tool[t]) 5");
}

#[divan::bench]
fn if_branch(bencher: Bencher<'_, '_>) {
    bench(bencher, "(\\x. if x > 3 then x + 1 else x - 1) 5");
}

#[divan::bench]
fn pair(bencher: Bencher<'_, '_>) {
    bench(bencher, "((\\x. x + 1) | (\\x. x * 2)) 5");
}

#[divan::bench]
fn loop_of_five(bencher: Bencher<'_, '_>) {
    bench(bencher, "fix[5] (\\self. \\n. if n == 0 then 0 else self (n - 1)) 4");
}

#[divan::bench]
fn store_of_three_keys(bencher: Bencher<'_, '_>) {
    bench(bencher, "mem [remember a 1, recall a, recall b, recall c] {a: Num, b: Num, c: Num}");
}

#[divan::bench]
fn guard(bencher: Bencher<'_, '_>) {
    bench(bencher, "guard ((\\x. x) 5) value > 3");
}

#[divan::bench]
fn send(bencher: Bencher<'_, '_>) {
    bench(bencher, "send 'an entry'");
}

#[divan::bench]
fn model_call(bencher: Bencher<'_, '_>) {
    bench(bencher, "llm 'How many?' {result: Num} 'days has a week'");
}

#[divan::bench]
fn factorial_of_20(bencher: Bencher<'_, '_>) {
    bench(bencher, "fix[21] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) 20");
}

#[divan::bench]
fn sum_to_10_000(bencher: Bencher<'_, '_>) {
    bench(bencher, "fix[10001] (\\self. \\n. if n == 0 then 0 else n + self (n - 1)) 10000");
}

/// Steps for each run are counted, so that divan shows how many are done in a second.
#[divan::bench]
fn steps(bencher: Bencher<'_, '_>) {
    let code = code("fix[inf] (\\self. \\n. if n == 0 then 0 else self (n - 1)) 10000");
    let config = Config::default();
    let steps = run(&code, &config).fuel_used();
    bencher.counter(divan::counter::ItemsCount::new(steps)).bench(|| run(black_box(&code), &config));
}

/// A run of a term a thousand times over, inside `around` (which has a hole `…`): a thousandth of it is what
/// one operation takes inside a run, including its place in the list.
fn thousand(bencher: Bencher<'_, '_>, around: &str, one: &str) {
    let list = format!("[{}]", vec![one; 1_000].join(", "));
    let code = code(&around.replace('…', &list));
    let config = Config::default();
    bencher.counter(divan::counter::ItemsCount::new(1_000usize)).bench(|| run(black_box(&code), &config));
}

#[divan::bench]
fn literal_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "…", "1");
}

#[divan::bench]
fn function_call_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let f = \\x. x in …", "f 1");
}

#[divan::bench]
fn tool_call_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "tool t(x: Num) -> Num pure\n…", "tool[t] 1");
}

#[divan::bench]
fn compose_three_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let f = (\\x. x + 1) >> (\\x. x * 2) >> (\\x. x - 3) in …", "f 5");
}

#[divan::bench]
fn if_branch_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let x = 5 in …", "if x > 3 then x + 1 else x - 1");
}

#[divan::bench]
fn pair_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let f = (\\x. x + 1) | (\\x. x * 2) in …", "f 5");
}

#[divan::bench]
fn loop_of_five_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let f = fix[5] (\\self. \\n. if n == 0 then 0 else self (n - 1)) in …", "f 4");
}

#[divan::bench]
fn store_of_three_keys_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "mem … {a: Num, b: Num, c: Num}", "[remember a 1, recall b, recall c]");
}

#[divan::bench]
fn guard_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "let x = 5 in …", "guard x value > 3");
}

#[divan::bench]
fn send_x1000(bencher: Bencher<'_, '_>) {
    thousand(bencher, "…", "send 'an entry'");
}

/// A loop of ten steps, each of which asks a model which tool to call, calls it and tells the model the
/// result.
#[divan::bench]
fn tool_loop_of_ten_steps(bencher: Bencher<'_, '_>) {
    bench(
        bencher,
        "tool t(x: Num) -> Num pure\n\
         let step = \\self. \\n. let answer = recv {result: Num} in let seen = tool[t] answer in \
         let _ = send[tool] seen in if n == 0 then seen else self (n - 1)\n\
         send 'go' ; fix[10] step 9",
    );
}
