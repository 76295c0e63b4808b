//! No run contradicts the static flow analysis.

use crate::common::{cases, config};
use analysis::flow::{FlowReport, Options, Sink, Verdict, analyze};
use core_ir::{Bound, Code, Data, Label, Lattice, LatticeKind, print_code};
use diagnostics::{FileId, Span};
use machine::{Call, ErrorCode, Failure, Machine, Output, Response};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::drive;
use testkit::generate::{Ast, Op, Program, Reply, Script, Style, prelude, programs};

/// The labels that tools state themselves are known to nobody before the run.
fn style() -> Style {
    // What an approver writes is checked by the run only.
    Style { labeling: false, edits: false, ..Style::default() }
}

/// The program with a place of its own for each term: printed and read again.
fn with_places(program: &Program) -> Option<Arc<Code>> {
    let text = print_code(&program.code());
    let options = syntax::lam::Options::PROGRAM;
    let parsed = syntax::lam::parse(FileId(7), &text, &prelude(), options);
    parsed.code.map(Arc::new)
}

/// A run that keeps what [`drive::run`] does not: the place of each request, and of the error.
struct Run {
    requests: Vec<(Span, Sink)>,
    result: Result<Label, Failure>,
    lattice: Lattice,
}

fn run(program: &Program, code: &Arc<Code>) -> Run {
    let mut world = Script::new(program);
    let mut machine = Machine::new(code.clone(), None, config(program, 3_000_000));
    let mut requests = Vec::new();
    let result = loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let sink = match &request.call {
                    Call::Tool { tool, .. } => Some(Sink::Tool(tool.name.clone())),
                    Call::Model { params, .. } => {
                        let model = params.as_ref().and_then(|p| p.model.clone());
                        Some(Sink::Model(model.unwrap_or_else(|| "".into())))
                    }
                    Call::Remember { store, key, .. } => {
                        Some(Sink::Key(store.keys[*key as usize].name.clone()))
                    }
                    _ => None,
                };
                requests.extend(sink.map(|s| (request.span, s)));
                let response: Response = drive::answer(&mut world, &request.call);
                machine.handle(id, response);
            }
            Output::Done(result) => break result,
            Output::Working => {}
            Output::Waiting => unreachable!("each request is answered at once"),
        }
    };
    let mut lattice = machine.lattice().clone();
    let result = result.map(|v| v.deep_label(&mut lattice));
    Run { requests, result, lattice }
}

/// `label ⊑ data`, where the data comes from another table of the same lattice.
fn flows(lattice: &mut Lattice, label: Label, most: &Data) -> bool {
    let most = lattice.label_of(most).expect("a label of the lattice");
    lattice.flows(label, most)
}

fn holds(program: &Program) -> Result<(), TestCaseError> {
    let Some(code) = with_places(program) else { return Ok(()) };
    let options = Options {
        lattice: program.lattice,
        clearance: Some(program.clearance.clone()),
        ..Options::default()
    };
    let report = analyze(&code, &options);
    if report.gave_up.is_some() {
        return Ok(());
    }
    let text = print_code(&code);
    let mut run = run(program, &code);
    // What generated code does is not in the program.
    let ours = |span: Span| span.file == FileId(7);
    for (span, sink) in run.requests.iter().filter(|(s, _)| ours(*s)) {
        let site = report.sites.iter().find(|s| s.span == *span && s.sink == *sink);
        let Some(site) = site else {
            return Err(TestCaseError::fail(format!(
                "{sink:?} is reached at {span:?}, not foreseen\n{text}"
            )));
        };
        prop_assert!(site.verdict != Verdict::Never, "{:?} is carried out\n{}", site, text);
    }
    match &run.result {
        Ok(label) => {
            let Some(most) = &report.result else {
                return Err(TestCaseError::fail(format!("a result, not foreseen\n{text}")));
            };
            prop_assert!(flows(&mut run.lattice, *label, most), "result above {}\n{}", most.to_json(), text);
        }
        Err(e) if matches!(e.code, ErrorCode::Fuel | ErrorCode::Limit) => {}
        Err(e) => {
            let Some(most) = &report.error else {
                return Err(TestCaseError::fail(format!("{e:?}, not foreseen\n{text}")));
            };
            prop_assert!(
                flows(&mut run.lattice, e.label, most),
                "{:?} above {}\n{}",
                e,
                most.to_json(),
                text
            );
            if matches!(e.code, ErrorCode::Flow | ErrorCode::StoreRefused) && ours(e.span) {
                refusal_is_foreseen(&report, e, &text)?;
            }
        }
    }
    Ok(())
}

/// The program without its `try`s, each of which is its body: what would be caught ends the run, where it is
/// seen.
fn bare(ast: &Ast) -> Ast {
    let inside = match (&ast.op, ast.kids.get(1)) {
        (Op::Try(_), Some(body)) => return bare(body),
        (Op::Try(_), None) => return Ast::lit(Data::Null),
        _ => ast.kids.iter().map(bare),
    };
    Ast::new(ast.op.clone(), inside)
}

/// Checks the claims about a program, and about the same program with all refusals uncaught.
fn holds_caught_or_not(program: &Program) -> Result<(), TestCaseError> {
    holds(program)?;
    if program.ast.any(&|op| matches!(op, Op::Try(_))) {
        holds(&program.with(bare(&program.ast)))?;
    }
    Ok(())
}

fn refusal_is_foreseen(report: &FlowReport, e: &Failure, text: &str) -> Result<(), TestCaseError> {
    let here: Vec<_> = report.sites.iter().filter(|s| s.span == e.span).collect();
    prop_assert!(here.iter().any(|s| s.verdict != Verdict::Always), "{:?}: {:?}\n{}", e, here, text);
    Ok(())
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn flow_claims_hold_for_programs(program in programs(style())) {
        holds_caught_or_not(&program)?;
    }

    #[test]
    fn flow_claims_hold_for_results_with_labeled_parts(program in programs(Style { parts: true, ..style() })) {
        holds_caught_or_not(&program)?;
    }

    /// Only where one branch runs at a time do tools limit calls.
    #[test]
    fn flow_claims_hold_for_programs_in_order(
        program in programs(Style { in_order: true, parts: true, ..style() })
    ) {
        holds_caught_or_not(&program)?;
    }

    #[test]
    fn flow_claims_hold_for_wild_programs(program in programs(Style { wild: 50, ..style() })) {
        holds_caught_or_not(&program)?;
    }
}

/// Returns true if a fixpoint that unfolds is applied, and its function has a variable.
fn applies_a_fixpoint(ast: &Ast) -> bool {
    let of = |ast: &Ast, op: fn(&Op) -> bool| ast.kids.first().filter(|kid| op(&kid.op)).cloned();
    let function = (ast.op == Op::App)
        .then(|| of(ast, |op| matches!(op, Op::Fix(bound) if *bound != Bound::Finite(0))))
        .flatten()
        .and_then(|fix| of(&fix, |op| *op == Op::Lam));
    function.is_some_and(|f| f.any(&|op| matches!(op, Op::Var(_)))) || ast.kids.iter().any(applies_a_fixpoint)
}

/// A counterexample is cut down by way of programs that nobody generates, `fix (λself. self)` among them. On
/// that one the analysis ran out of stack, so that no counterexample was ever shown.
#[test]
fn claims_hold_for_shrunk_programs() {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut begun, mut tried) = (0, 0);
    while begun < 12 {
        let mut tree = programs(Style { size: 25, ..style() }).new_tree(&mut runner).unwrap();
        if !applies_a_fixpoint(&tree.current().ast) {
            continue;
        }
        begun += 1;
        let mut fails = true;
        while tried < 3_000 * begun && if fails { tree.simplify() } else { tree.complicate() } {
            let program = tree.current();
            holds_caught_or_not(&program).unwrap_or_else(|e| panic!("{e}\n{program:?}"));
            fails = applies_a_fixpoint(&program.ast);
            tried += 1;
        }
    }
    assert!(tried > 1_000, "{tried}");
}

/// The test would be empty if the analysis gave up, or never claimed anything.
#[test]
fn something_is_claimed_of_most_programs() {
    use proptest::strategy::{Strategy, ValueTree};
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut all, mut gave_up, mut always, mut never, mut depends) = (0, 0, 0, 0, 0);
    for _ in 0..400 {
        let program = programs(style()).new_tree(&mut runner).unwrap().current();
        let Some(code) = with_places(&program) else { continue };
        let options = Options { lattice: program.lattice, ..Options::default() };
        let report = analyze(&code, &options);
        all += 1;
        gave_up += usize::from(report.gave_up.is_some());
        for site in &report.sites {
            match site.verdict {
                Verdict::Always => always += 1,
                Verdict::Never => never += 1,
                Verdict::Depends => depends += 1,
            }
        }
    }
    assert!(all >= 390, "{all} programs were read again");
    assert!(gave_up * 20 <= all, "gave up on {gave_up} of {all}");
    assert!(always > 200 && never > 10 && always > depends / 2, "{always} {never} {depends}");
}

/// The properties are tested on relevant runs: calls that are claimed to be always allowed are made, and
/// flows are refused, with every lattice and every former that has a label rule.
#[test]
fn claims_are_tried_on_every_lattice_and_former() {
    use proptest::strategy::{Strategy, ValueTree};
    /// Predicate that selects programs.
    type About = fn(&Program) -> bool;
    let about: [(&str, About); 12] = [
        ("two axes", |p| p.lattice == LatticeKind::TwoAxis),
        ("endorsed", |p| p.lattice == LatticeKind::Endorsed),
        ("sources and readers", |p| p.lattice == LatticeKind::SourcesReaders),
        ("levels", |p| p.lattice == LatticeKind::Levels),
        ("try", |p| p.ast.any(&|op| matches!(op, Op::Try(_)))),
        ("par", |p| p.ast.any(&|op| matches!(op, Op::Par(_) | Op::Each(_) | Op::ParPair))),
        ("memory", |p| p.ast.any(&|op| matches!(op, Op::Remember(_) | Op::Recall(_)))),
        ("endorse", |p| p.ast.any(&|op| matches!(op, Op::Endorse | Op::Declassify))),
        ("a policy", |p| {
            p.tools.iter().any(|t| t.policy.is_some()) && p.ast.any(&|op| matches!(op, Op::Tool(_)))
        }),
        ("approval", |p| {
            p.tools.iter().any(|t| t.approve.may_ask()) && p.ast.any(&|op| matches!(op, Op::Tool(_)))
        }),
        ("generated code", |p| {
            let code = |r: &Reply| matches!(r, Reply::Code(_));
            p.replies.iter().any(code) && p.ast.any(&|op| matches!(op, Op::RecvCode | Op::Ask))
        }),
        ("fork", |p| p.ast.any(&|op| matches!(op, Op::Fork | Op::Fresh))),
    ];
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    // How many programs carried out what is always allowed, and how many were refused something.
    let mut tried: BTreeMap<&str, (u32, u32)> = about.iter().map(|(name, _)| (*name, (0, 0))).collect();
    for _ in 0..2_000 {
        let program = programs(style()).new_tree(&mut runner).unwrap().current();
        let Some(code) = with_places(&program) else { continue };
        let clearance = Some(program.clearance.clone());
        let options = Options { lattice: program.lattice, clearance, ..Options::default() };
        let report = analyze(&code, &options);
        if report.gave_up.is_some() {
            continue;
        }
        let run = run(&program, &code);
        let allowed = run.requests.iter().any(|(span, sink)| {
            report.sites.iter().any(|s| s.span == *span && s.sink == *sink && s.verdict == Verdict::Always)
        });
        let refusal = |e: &Failure| matches!(e.code, ErrorCode::Flow | ErrorCode::StoreRefused);
        let refused = run.result.as_ref().is_err_and(refusal);
        for (name, _) in about.iter().filter(|(_, is)| is(&program)) {
            let count = tried.entry(name).or_default();
            count.0 += u32::from(allowed);
            count.1 += u32::from(refused);
        }
    }
    assert!(tried.values().all(|(allowed, refused)| *allowed >= 20 && *refused >= 5), "{tried:?}");
}
