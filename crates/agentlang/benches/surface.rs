//! Time from the text of a `.agent` program to its terms.
//!
//! `cargo bench -p agentlang --bench surface`

#![allow(missing_docs, reason = "a benchmark")]

use diagnostics::Sources;

fn main() {
    divan::main();
}

/// A program of some 16 lines for each of `n`.
fn program(n: usize) -> String {
    let one = |i: usize| {
        format!(
            "task t{i}(text: String, n: Number) -> Obj{{label: String, score: Number}} {{}}\n\
             pipeline p{i}(text: String, n: Number) -> Obj{{label: String, score: Number}} {{\n\
             \x20   let a = run t{i} with {{ text: text, n: n }} retries 2;\n\
             \x20   let b = t{i}(a.label + \"x\", a.score + 1) timeout 5;\n\
             \x20   if a.score == b.score {{\n        let best = a;\n    }} else {{\n        let best = b;\n    }}\n\
             \x20   while best.score != n max 5 {{\n        let best = t{i}(best.label, best.score);\n    }}\n\
             \x20   parallel {{ let c = t{i}(text, 1); let d = t{i}(text, 2); }} join;\n\
             \x20   try {{ let e = t{i}(c.label, d.score); return e; }} catch m {{ assert m != \"\"; }}\n\
             \x20   return {{ label: best.label, score: c.score + d.score }};\n}}\n\n"
        )
    };
    (0..n).map(one).collect()
}

fn check(text: &str) -> agentlang::Module {
    let mut sources = Sources::new();
    let file = sources.add("bench.agent", text);
    let (module, found) = agentlang::check(file, text);
    assert!(found.is_empty(), "{found:?}");
    // INVARIANT: a module is there if nothing was found.
    module.expect("a module")
}

/// Parsed, checked and lowered: 10,000 lines.
#[divan::bench]
fn whole_10_000_lines(bencher: divan::Bencher<'_, '_>) {
    let text = program(625);
    assert!(text.lines().count() > 9_900);
    bencher.bench_local(|| {
        let module = check(&text);
        module.entries().iter().map(|e| module.lower(e).map_or(0, |c| c.len())).sum::<usize>()
    });
}

/// Work of an editor after each key: 500 lines parsed and checked.
#[divan::bench]
fn checked_500_lines(bencher: divan::Bencher<'_, '_>) {
    let text = program(32);
    bencher.bench_local(|| check(&text));
}

/// One pipeline with 2,000 early returns.
#[divan::bench]
fn early_returns(bencher: divan::Bencher<'_, '_>) {
    let body: String =
        (0..2_000).map(|i| format!("if n == {i} {{ return {i}; }}\nlet x{i} = n + {i};\n")).collect();
    let text = format!("pipeline p(n: Number) -> Number {{\n{body}return x1999;\n}}");
    bencher.bench_local(|| {
        let module = check(&text);
        module.entries().iter().map(|e| module.lower(e).map_or(0, |c| c.len())).sum::<usize>()
    });
}
