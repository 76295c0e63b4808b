//! Running one program twice.

use core_ir::{AnswerSink, Code, Data, Label, LabelSpec, Lattice, LatticeKind};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::VecDeque;
use std::sync::Arc;
use testkit::drive::{self, Order, ParseWith};
use testkit::generate::{Program, Script, prelude, principals};
use testkit::naive;
use testkit::outcome::Outcome;
use testkit::world::{Answer, Call, World};

/// The longest text of a run.
pub const MAX_TEXT: usize = 1 << 16;

/// Rules that the naive evaluator may apply.
pub const FUEL: u64 = 30_000;

/// Number of cases of a property: the given one, unless the environment sets `PROPTEST_CASES`.
pub fn cases(usually: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usually);
    ProptestConfig {
        cases,
        max_shrink_iters: 20_000,
        // Milliseconds. The program that was found tells as much as a smaller one.
        max_shrink_time: 120_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Runs the naive evaluator.
pub fn run_naive(program: &Program, input: Option<&Data>, world: &mut dyn World) -> Outcome {
    let config = naive::Config {
        lattice: program.lattice,
        principals: principals(),
        fuel: FUEL,
        max_text: MAX_TEXT,
        clearance: program.clearance.clone(),
        generated_endorse: program.generated_endorse,
        parser: &|text| program.parse(text),
        answer: program.answer.clone(),
    };
    naive::run(&program.code(), input, &config, world)
}

/// The machine's configuration for a program.
pub fn config(program: &Program, fuel: u64) -> machine::Config {
    let parser = program.clone();
    machine::Config {
        lattice: program.lattice,
        principals: principals(),
        fuel,
        max_text: MAX_TEXT,
        parser: Some(Arc::new(ParseWith(move |text: &str| parser.parse(text)))),
        clearance: program.clearance.clone(),
        generated_endorse: program.generated_endorse,
        answer: program.answer.clone(),
        ..machine::Config::default()
    }
}

/// Runs the machine.
pub fn run_machine(program: &Program, input: Option<&Data>, world: &mut dyn World, order: Order) -> Outcome {
    drive::run(&program.code(), input, config(program, 100 * FUEL), world, order)
}

/// Runs the machine on another code in the world of the program.
pub fn run_code(program: &Program, code: &Arc<Code>, world: &mut dyn World, order: Order) -> Outcome {
    drive::run(code, None, config(program, 100 * FUEL), world, order)
}

/// Runs both in the world of the program.
pub fn both(program: &Program) -> (Outcome, Outcome) {
    let naive = run_naive(program, None, &mut Script::new(program));
    let machine = run_machine(program, None, &mut Script::new(program), Order::AtOnce);
    (naive, machine)
}

/// Returns true if a run ended for want of fuel.
pub fn out_of_fuel(outcome: &Outcome) -> bool {
    outcome.result.as_ref().is_err_and(|e| e.code == "fuel")
}

/// Returns true if the run ended with an uncatchable error, which may have cut off parallel branches.
fn cut_off(program: &Program, outcome: &Outcome) -> bool {
    let bottom = Lattice::new(program.lattice).data_of(Label::BOTTOM);
    outcome.result.as_ref().is_err_and(|e| e.label != bottom)
}

/// The requests, in an order that does not depend on the one in which they were made.
pub fn multiset(outcome: &Outcome) -> Vec<String> {
    let mut all: Vec<String> = outcome.requests.iter().map(|r| format!("{r:?}")).collect();
    all.sort();
    all
}

/// Both outcomes are equal as far as `docs/calculus.md` determines them.
pub fn same(program: &Program, naive: &Outcome, machine: &Outcome) -> Result<(), TestCaseError> {
    if out_of_fuel(naive) {
        return Ok(());
    }
    match (&naive.result, &machine.result) {
        (Ok(n), Ok(m)) => prop_assert_eq!(n, m, "naive {} machine {}", n, m),
        // §10 `par`: which of several errors is reported, and what else was asked, may depend on the order.
        (Err(_), Err(_)) if program.is_parallel() && cut_off(program, naive) && cut_off(program, machine) => {
            prop_assert_eq!(&naive.conversation_label, &machine.conversation_label);
            prop_assert_eq!(&naive.conversation, &machine.conversation);
            return Ok(());
        }
        (Err(n), Err(m)) => {
            prop_assert_eq!(n.code, m.code, "naive {:?} machine {:?}", n, m);
            prop_assert_eq!(&n.label, &m.label, "naive {:?} machine {:?}", n, m);
        }
        (n, m) => prop_assert!(false, "naive {:?} machine {:?}", n, m),
    }
    prop_assert_eq!(&naive.conversation_label, &machine.conversation_label);
    prop_assert_eq!(&naive.conversation, &machine.conversation);
    if program.is_parallel() {
        prop_assert_eq!(multiset(naive), multiset(machine));
    } else {
        prop_assert_eq!(&naive.limits, &machine.limits);
        prop_assert_eq!(&naive.requests, &machine.requests);
    }
    Ok(())
}

/// Reads a program.
pub fn lam(text: &str) -> Arc<Code> {
    let mut sources = diagnostics::Sources::new();
    let file = sources.add("test.lam", text);
    let parsed = syntax::lam::parse(file, text, &prelude(), syntax::lam::Options::PROGRAM);
    match parsed.code {
        Some(code) => Arc::new(code),
        None => panic!("{text}: {:?}", parsed.diagnostics),
    }
}

/// Reads generated code; it may contain anything, for it is the machine's business to refuse it.
pub fn read_reply(text: &str) -> Result<Arc<Code>, String> {
    let mut sources = diagnostics::Sources::new();
    let file = sources.add("reply", text);
    let parsed = syntax::lam::parse(file, text, &prelude(), syntax::lam::Options::PROGRAM);
    parsed.code.map(Arc::new).ok_or_else(|| "not code".to_string())
}

/// Gives prepared answers, one after the other.
pub struct Prepared(pub VecDeque<Answer>);

impl World for Prepared {
    fn answer(&mut self, _: &Call) -> Answer {
        self.0.pop_front().unwrap_or_else(|| Answer::Failed("no answer prepared".into()))
    }
}

/// An outcome as a line: the result, then the conversation if there is one, then what was asked.
pub fn line(outcome: &Outcome) -> String {
    let mut out = match &outcome.result {
        Ok(tree) => tree.to_string(),
        Err(e) => format!("error {} {}", e.code, e.label.to_json()),
    };
    if !outcome.conversation.is_empty() || outcome.conversation_label != Data::list([]) {
        let said: Vec<String> =
            outcome.conversation.iter().map(|(r, text)| format!("{} {text}", r.as_str())).collect();
        out += &format!("; {}:[{}]", outcome.conversation_label.to_json(), said.join(", "));
    }
    for (call, channel) in &outcome.requests {
        let what = match call {
            Call::Model { .. } => "model".to_string(),
            Call::Tool { name, args } => {
                let args: Vec<String> = args.iter().map(|(n, d)| format!("{n}={}", d.to_json())).collect();
                format!("{name}({})", args.join(","))
            }
            Call::Approve { name, args } => {
                let args: Vec<String> = args.iter().map(|(n, d)| format!("{n}={}", d.to_json())).collect();
                format!("approve {name}({})", args.join(","))
            }
            Call::Recall { key, .. } => format!("recall {key}"),
            Call::Remember { key, value, .. } => format!("remember {key} {}", value.to_json()),
            Call::Sample { .. } => "sample".to_string(),
        };
        out += &format!("; {what}@{}", channel.to_json());
    }
    out
}

/// Runs a program text with prepared answers, both ways, which must agree; gives the outcome as a [`line`].
pub fn outcome(text: &str, answers: &[Answer]) -> String {
    let code = lam(text);
    let world = || Prepared(answers.iter().cloned().collect());
    let config = naive::Config {
        lattice: LatticeKind::TwoAxis,
        principals: core_ir::Principals::default(),
        fuel: FUEL,
        max_text: MAX_TEXT,
        clearance: LabelSpec::TOP,
        generated_endorse: false,
        parser: &read_reply,
        answer: AnswerSink::default(),
    };
    let naive = naive::run(&code, None, &config, &mut world());
    let config = machine::Config {
        max_text: MAX_TEXT,
        parser: Some(Arc::new(ParseWith(read_reply))),
        ..machine::Config::default()
    };
    let machine = drive::run(&code, None, config, &mut world(), Order::AtOnce);
    assert_eq!(line(&naive), line(&machine), "naive and machine differ on {text}");
    assert_eq!(naive.limits, machine.limits, "naive and machine differ on {text}");
    line(&machine)
}
