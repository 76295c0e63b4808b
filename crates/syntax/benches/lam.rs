//! Reading and printing of `.lam`.

use core_ir::{Globals, exchange, print_code};
use diagnostics::{FileId, Sources};
use std::hint::black_box;
use syntax::lam::{Options, parse};

fn main() {
    divan::main();
}

/// About `kib` KiB of a program of many definitions.
fn program(kib: usize) -> String {
    let mut text = String::new();
    let mut i = 0;
    while text.len() < kib << 10 {
        text.push_str(&format!(
            "# definition {i}\nlet f{i} = \\x. \\y: {{name: Str, score: Num}}.\n  \
             if x == {i} && y.score >= 0.5 then \"{{y.name}} has {{x + 1}} points\"\n  \
             else case y of {{\n    ready => [x, {{a: 1, b: [true, null]}}],\n    failed why => fail why,\n    \
             _ => fix[20] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) 5\n  }}\n"
        ));
        i += 1;
    }
    text.push_str("f0 1 {name: 'x', score: 1}\n");
    text
}

#[divan::bench(args = [1, 100, 1000])]
fn parse_kib(bencher: divan::Bencher, kib: usize) {
    let text = program(kib);
    bencher
        .counter(divan::counter::BytesCount::of_str(&text))
        .bench(|| parse(FileId(0), black_box(&text), &Globals::none(), Options::PROGRAM));
}

#[divan::bench]
fn print_100_kib(bencher: divan::Bencher) {
    let text = program(100);
    let code = parse(FileId(0), &text, &Globals::none(), Options::PROGRAM).code;
    bencher
        .counter(divan::counter::BytesCount::of_str(&text))
        .bench(|| code.as_ref().map(|c| print_code(black_box(c))));
}

#[divan::bench]
fn exchange_100_kib(bencher: divan::Bencher) {
    let text = program(100);
    let code = parse(FileId(0), &text, &Globals::none(), Options::PROGRAM).code;
    let sources = Sources::new();
    bencher.bench(|| code.as_ref().map(|c| exchange::to_json(black_box(c), &sources)));
}
