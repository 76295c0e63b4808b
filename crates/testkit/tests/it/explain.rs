//! Runs that keep where labels come from (`Config::explain_flow`): nothing else about them changes, and what
//! is kept depends on the program, its input and the answers alone.

use crate::common::{cases, config, lam, out_of_fuel};
use core_ir::{Chain, Data, Label};
use machine::{Machine, Output};
use proptest::prelude::*;
use testkit::drive::{self, Order};
use testkit::generate::{Program, Script, Style, programs};
use testkit::outcome::Outcome;

/// A run, what its labels come from, and whether every label that is not ⊥ at the end has an origin or a
/// bound that states it.
fn explained(program: &Program, order: Order) -> (Outcome, String) {
    let config = machine::Config { explain_flow: true, ..config(program, 20_000) };
    let mut machine = Machine::new(program.code(), None, config);
    let outcome = drive::run_on(&mut machine, &mut Script::new(program), order);
    let mut text = String::new();
    let Output::Done(result) = machine.poll() else { panic!("the run has ended") };
    match result {
        Ok(value) => {
            for (way, label) in machine.labeled_parts(&value, 50) {
                text += &format!("{way}: {}\n", shown(&machine, label));
            }
        }
        Err(f) => {
            text += &shown(&machine, f.label);
            if let Some(r) = &f.refusal {
                text += &format!("{:?} {:?} {}\n", r.part, r.name, shown(&machine, r.label));
            }
        }
    }
    for (name, span, label) in machine.bindings() {
        text += &format!("{name} {span:?} {}\n", shown(&machine, label));
    }
    (outcome, text)
}

fn shown(machine: &Machine, label: Label) -> String {
    format!("{} {:?}", machine.lattice().show(label), machine.why(label))
}

fn plain(program: &Program, order: Order) -> Outcome {
    drive::run(&program.code(), None, config(program, 20_000), &mut Script::new(program), order)
}

/// Returns true if the run ended with an error that is not delayed, so that the progress of other branches
/// depends on the order.
fn cut_off(outcome: &Outcome) -> bool {
    outcome.result.is_err()
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn explaining_changes_no_run(program in programs(Style::default())) {
        let (with, _) = explained(&program, Order::OneByOne);
        let without = plain(&program, Order::OneByOne);
        prop_assert_eq!(with, without);
    }

    #[test]
    fn explaining_changes_no_wild_run(program in programs(Style { wild: 40, ..Style::default() })) {
        let (with, _) = explained(&program, Order::OneByOne);
        let without = plain(&program, Order::OneByOne);
        prop_assert_eq!(with, without);
    }

    #[test]
    fn explanations_do_not_depend_on_the_order_of_answers(program in programs(Style { size: 80, ..Style::default() }), seed: u64) {
        let (one, first) = explained(&program, Order::AtOnce);
        let (other, second) = explained(&program, Order::Random(seed));
        if out_of_fuel(&one) || out_of_fuel(&other) || (cut_off(&one) && program.is_parallel()) {
            return Ok(());
        }
        prop_assert_eq!(first, second);
    }
}

/// Runs a text on answers; gives the machine and what it ended with.
fn run(text: &str, answers: &[&str]) -> (Machine, Result<machine::Value, machine::Failure>) {
    let config = machine::Config { explain_flow: true, ..machine::Config::default() };
    let mut machine = Machine::new(lam(text), None, config);
    let mut answers = answers.iter();
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let text = answers.next().map_or_else(String::new, ToString::to_string);
                let response = match request.call {
                    machine::Call::Model { .. } => machine::Response::Model(Ok(machine::Reply::Text(text))),
                    machine::Call::Recall { .. } => machine::Response::Recall(Ok(Some(Data::str(text)))),
                    machine::Call::Remember { .. } => machine::Response::Remember(Ok(())),
                    _ => machine::Response::Tool(Ok(Data::str(text))),
                };
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Done(result) => return (machine, result),
            Output::Waiting => panic!("nothing is left unanswered"),
        }
    }
}

/// The ways of a component, each as the kinds and names of its steps.
fn ways(chains: &[Chain], component: &str) -> Vec<String> {
    let chain = chains.iter().find(|c| c.component == component);
    let step = |what: &core_ir::What| match what.name() {
        Some(name) => format!("{} {name}", what.kind()),
        None => what.kind().to_string(),
    };
    let way = |way: &Vec<core_ir::Hop>| way.iter().map(|h| step(&h.what)).collect::<Vec<_>>().join(" <- ");
    chain.map_or_else(Vec::new, |c| c.ways.iter().map(way).collect())
}

const TOOLS: &str = r#"tool web(q: Str) -> Str @ ["U"] read
tool mail(q: Str) -> Str @ ["U", "S"] read
tool pay(account: Str) -> Str write
"#;

#[test]
fn a_refusal_knows_the_way_of_the_value() {
    let text = format!(
        "{TOOLS}let page = tool[web] 'q' in let a = fresh let _ = send page in recv {{}} in tool[pay] a"
    );
    let (machine, result) = run(&text, &["pay MALLORY", "MALLORY"]);
    let refusal = result.unwrap_err().refusal.expect("a refused flow");
    assert_eq!((refusal.part.name(), refusal.name.as_deref()), ("account", Some("pay")));
    assert_eq!(ways(&machine.why(refusal.label), "U"), ["model <- sent <- tool web"]);
    let bound: Vec<_> = machine
        .bindings()
        .map(|(name, _, label)| (name.to_string(), ways(&machine.why(label), "U")))
        .collect();
    assert_eq!(
        bound,
        [
            ("a".to_string(), vec!["model <- sent <- tool web".to_string()]),
            ("page".to_string(), vec!["tool web".to_string()])
        ]
    );
}

#[test]
fn each_component_has_its_own_way_and_endorsing_ends_one() {
    let text = format!("{TOOLS}let m = tool[mail] 'q' in let w = tool[web] 'q' in endorse [] m + w");
    let (machine, result) = run(&text, &["a", "b"]);
    let value = result.unwrap();
    let (_, label) = machine.clone().labeled_parts(&value, 1).remove(0);
    assert_eq!(ways(&machine.why(label), "S"), ["tool mail"]);
    assert_eq!(ways(&machine.why(label), "U"), ["tool web"]);
}

#[test]
fn a_decision_and_a_key_are_steps() {
    let text = r#"mem (let x = recall k in if x == 'a' then ["S"]: 1 else 2) {k: Str @ ["U"]}"#;
    let (machine, result) = run(text, &["a"]);
    let value = result.unwrap();
    let (_, label) = machine.clone().labeled_parts(&value, 1).remove(0);
    assert_eq!(ways(&machine.why(label), "U"), ["decided <- key k"]);
    assert_eq!(ways(&machine.why(label), "S"), ["stated"]);
}
