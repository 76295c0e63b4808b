//! Coverage and shrinking of generated programs.

use core_ir::{Data, Label, Lattice};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestError, TestRunner};
use std::collections::BTreeMap;
use testkit::generate::{Ast, Op, Program, Reply, Script, Style, programs};
use testkit::naive;
use testkit::outcome::Outcome;

fn run(program: &Program) -> Outcome {
    let config = naive::Config {
        lattice: program.lattice,
        principals: core_ir::Principals::default(),
        fuel: 20_000,
        max_text: 1 << 16,
        clearance: program.clearance.clone(),
        generated_endorse: program.generated_endorse,
        parser: &|text| program.parse(text),
        answer: program.answer.clone(),
    };
    naive::run(&program.code(), None, &config, &mut Script::new(program))
}

/// Generated programs must do something: many give a value, every error occurs, and every kind of request.
#[test]
fn programs_are_of_all_kinds() {
    let mut runner = TestRunner::deterministic();
    let (mut ends, mut requests, mut labeled) = (BTreeMap::new(), BTreeMap::new(), 0);
    let total = 3_000;
    for i in 0..total {
        let style = Style { wild: if i % 4 == 0 { 50 } else { 2 }, ..Style::default() };
        let program = programs(style).new_tree(&mut runner).unwrap().current();
        let outcome = run(&program);
        let end = outcome.result.as_ref().map_or_else(|e| e.code, |_| "value");
        *ends.entry(end).or_insert(0) += 1;
        for (call, _) in &outcome.requests {
            let kind = format!("{call:?}").split([' ', '{']).next().unwrap_or_default().to_string();
            *requests.entry(kind).or_insert(0) += 1;
        }
        let bottom = Lattice::new(program.lattice).data_of(Label::BOTTOM);
        if outcome.result.is_ok_and(|tree| tree.label != bottom) {
            labeled += 1;
        }
    }
    let seen = format!("{ends:?} {requests:?}, {labeled} labeled");
    assert!(ends["value"] > total / 3 && labeled > total / 10, "{seen}");
    for code in [
        "assert",
        "classify",
        "decode",
        "fail",
        "flow",
        "guard",
        "index",
        "model",
        "no_branch",
        "not_a_function",
        "not_a_label",
        "prim",
        "store_refused",
        "tool",
        "type",
        "unknown",
    ] {
        assert!(ends.contains_key(code), "no error `{code}`: {seen}");
    }
    for kind in ["Model", "Tool", "Recall", "Remember", "Sample"] {
        assert!(requests.get(kind).is_some_and(|n| *n > total / 40), "few requests `{kind}`: {seen}");
    }
}

/// A failing program is cut down to little more than what makes it fail.
#[test]
fn programs_shrink() {
    let config =
        Config { cases: 10_000, max_shrink_iters: 100_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&programs(Style::default()), |program| {
        let failed = run(&program).result.is_err_and(|e| e.code == "fail" && e.label != Data::list([]));
        proptest::prop_assert!(!failed);
        Ok(())
    });
    let Err(TestError::Fail(_, program)) = found else { panic!("no program fails at a label") };
    // It may be what a model says that fails.
    let fails = |a: &Ast| a.any(&|op| *op == Op::Fail);
    let said = program.replies.iter().any(|r| matches!(r, Reply::Code(a) if fails(a)));
    assert!(fails(&program.ast) || said, "{program:?}");
    // The smallest has 3 parts; how near to it cutting comes depends on where it began.
    assert!(program.ast.size() <= 15, "{:?}", program.ast);
}

/// Whatever is cut away from a program, what remains is a closed term.
#[test]
fn smaller_programs_are_closed() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..50 {
        let mut tree = programs(Style { wild: 30, ..Style::default() }).new_tree(&mut runner).unwrap();
        let mut steps = 0;
        while steps < 200 && (if steps % 3 == 0 { tree.simplify() } else { tree.complicate() }) {
            assert!(!tree.current().code().is_empty());
            steps += 1;
        }
        assert!(steps > 0);
    }
}
