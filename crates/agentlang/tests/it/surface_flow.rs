//! Properties of generated programs that their terms, their runs and what is said of them before a run have
//! together: formatting keeps the term, a term is well typed and never gets stuck, no run contradicts the
//! bounds and the flow analysis, and secrets don't show.
//!
//! `PROPTEST_CASES` says how many; 2,000 without it.

use crate::surface_meaning::{answer, inputs, program, programs, reply};
use analysis::flow::{Options, Sink, Verdict, analyze};
use core_ir::{Code, Data, Label, Lattice, Name, Num};
use diagnostics::FileId;
use machine::{Call, Config, ErrorCode, Failure, Machine, Output, Reified, ReifiedKind, Response};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const FILE: FileId = FileId(0);

/// Signatures of the task that programs call: what it takes and how its result is labeled.
const SIGNATURES: &[(&str, &str)] = &[
    ("n: Number", ""),
    ("n: Number", " reads"),
    ("n: Number", " reads untrusted"),
    ("n: Number requires public", " writes"),
    ("n: Number requires trusted", " writes"),
    ("n: Number", " requires trusted"),
    ("n: Number requires public", " reads untrusted secret"),
    ("n: Number", " writes requires public"),
];

/// A program whose task has another signature, and whose input `c` is labeled.
fn labeled(bytes: &[u8], signature: u8, input: &str) -> String {
    let (params, flow) = SIGNATURES[signature as usize % SIGNATURES.len()];
    let declared = "task t(n: Number) -> Number {}";
    let text = program(bytes);
    assert!(text.contains(declared) && text.contains(", c: Number,"));
    text.replace(declared, &format!("task t({params}) -> Number{flow} {{}}"))
        .replace(", c: Number,", &format!(", c: Number{input},"))
}

/// The term of an accepted program.
fn term(text: &str) -> Option<Arc<Code>> {
    let (module, _) = agentlang::check(FILE, text);
    let module = module?;
    Some(module.lower(module.pipeline("p").unwrap()).unwrap_or_else(|d| panic!("{d:?}\n{text}")).into())
}

/// Observable parts of a run.
struct Run {
    /// The requests of each branch, with their channels.
    requests: BTreeMap<u64, Vec<(String, Label)>>,
    /// The sinks that were reached, with their places.
    reached: Vec<(diagnostics::Span, Sink)>,
    models: u64,
    tools: u64,
    result: Result<(Reified, Label), Failure>,
    lattice: Lattice,
}

/// Runs a program in a world whose answers depend on the call alone.
fn run(code: &Arc<Code>, input: &[(Name, Data)]) -> Run {
    let config = Config { fuel: 300_000, ..Config::default() };
    let mut machine = Machine::new(code.clone(), Some(Data::record(input.iter().cloned())), config);
    let (mut requests, mut reached) = (BTreeMap::<u64, Vec<(String, Label)>>::new(), Vec::new());
    let (mut models, mut tools) = (0, 0);
    let result = loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let (sink, response) = match &request.call {
                    Call::Tool { tool, args } => {
                        tools += 1;
                        (Sink::Tool(tool.name.clone()), Response::Tool(answer(&args[0].1)))
                    }
                    Call::Model { messages, params, .. } => {
                        models += 1;
                        let model = params.as_ref().and_then(|p| p.model.clone());
                        let text = reply(&messages.last().unwrap().content);
                        let response = Response::Model(Ok(machine::Reply::Text(text)));
                        (Sink::Model(model.unwrap_or_else(|| "".into())), response)
                    }
                    other => panic!("{other:?}"),
                };
                let seen = format!("{:?} {:?}", request.call, request.call_id);
                requests.entry(id.strand).or_default().push((seen, request.channel));
                reached.push((request.span, sink));
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("waits for nothing"),
            Output::Done(result) => break result,
        }
    };
    let mut lattice = machine.lattice().clone();
    let result = result.map(|v| (machine.reify(&v), v.deep_label(&mut lattice)));
    Run { requests, reached, models, tools, result, lattice }
}

/// Errors that no accepted program has: those of values of a wrong type or form.
fn is_stuck(e: &Failure) -> bool {
    matches!(e.code, ErrorCode::NotAFunction | ErrorCode::NoBranch | ErrorCode::Unknown)
}

/// The claims of the type checker of terms, of the bounds and of the flow analysis hold of a run.
fn claims_hold(text: &str, code: &Arc<Code>, run: &mut Run) -> Result<(), TestCaseError> {
    let typing = analysis::types::check(code, None);
    prop_assert!(
        typing.complete && !diagnostics::has_errors(&typing.diagnostics),
        "{:#?}\n{text}",
        typing.diagnostics
    );
    if let Err(e) = &run.result {
        prop_assert!(!is_stuck(e), "stuck: {e:?}\n{text}");
    }
    let bound = analysis::cost::bound(code, true);
    for (most, found) in [(&bound.model_calls, run.models), (&bound.tool_calls, run.tools)] {
        prop_assert!(most.most.is_none_or(|most| found <= most), "{found} calls, {most}\n{text}");
    }
    let report = analyze(code, &Options { applied: true, ..Options::default() });
    if report.gave_up.is_some() {
        return Ok(());
    }
    for (span, sink) in &run.reached {
        let mut sites = report.sites.iter().filter(|s| s.span == *span && s.sink == *sink).peekable();
        prop_assert!(sites.peek().is_some(), "{sink:?} is reached at {span:?}, not foreseen\n{text}");
        prop_assert!(sites.any(|s| s.verdict != Verdict::Never), "{sink:?} is never admitted\n{text}");
    }
    let (label, most) = match &run.result {
        Ok((_, label)) => (*label, &report.result),
        Err(e) if matches!(e.code, ErrorCode::Fuel | ErrorCode::Limit) => return Ok(()),
        Err(e) => (e.label, &report.error),
    };
    let Some(most) = most else {
        return Err(TestCaseError::fail(format!("ends otherwise than foreseen: {:?}\n{text}", run.result)));
    };
    let at = run.lattice.label_of(most).expect("a label of the lattice");
    prop_assert!(run.lattice.flows(label, at), "labeled above {}: {:?}\n{text}", most.to_json(), run.result);
    if let Err(e) = &run.result
        && e.code == ErrorCode::Flow
    {
        let mut here = report.sites.iter().filter(|s| s.span == e.span);
        prop_assert!(here.any(|s| s.verdict != Verdict::Always), "{e:?} is not foreseen\n{text}");
    }
    Ok(())
}

/// Returns true if two values are the same to whom `secret` must not flow.
fn same(lattice: &mut Lattice, secret: Label, a: &Reified, b: &Reified) -> bool {
    let mut hidden = |r: &Reified| {
        let label = lattice.label_of(&r.label).expect("a label of the lattice");
        lattice.flows(secret, label)
    };
    match (hidden(a), hidden(b)) {
        (true, true) => return true,
        (false, false) => {}
        _ => return false,
    }
    match (&a.kind, &b.kind) {
        (ReifiedKind::List(a), ReifiedKind::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(lattice, secret, a, b))
        }
        (ReifiedKind::Record(a), ReifiedKind::Record(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((m, a), (n, b))| m == n && same(lattice, secret, a, b))
        }
        (ReifiedKind::Tag(m, a), ReifiedKind::Tag(n, b)) => m == n && same(lattice, secret, a, b),
        (a, b) => a == b,
    }
}

/// Two runs that differ in what is labeled `secret` are the same to whom that does not flow. Returns true if
/// both ended for them.
fn nothing_shows(secret: &str, [a, b]: [&mut Run; 2]) -> Result<bool, String> {
    let secret = a.lattice.label_of(&Data::list([Data::str(secret)])).expect("a label of the lattice");
    // An error that is not seen may end either run anywhere.
    let cut = |run: &mut Run| {
        let hidden = |l: &mut Lattice, e: &Failure| e.code.is_final() || l.flows(secret, e.label);
        run.result.as_ref().is_err_and(|e| hidden(&mut run.lattice, e))
    };
    let (cut_a, cut_b) = (cut(a), cut(b));
    let strands: Vec<u64> = a.requests.keys().chain(b.requests.keys()).copied().collect();
    for strand in strands {
        let seen = |run: &mut Run| -> Vec<(String, Label)> {
            let lattice = &mut run.lattice;
            let all = run.requests.get(&strand).into_iter().flatten();
            all.filter(|(_, l)| !lattice.flows(secret, *l)).cloned().collect()
        };
        let (x, y) = (seen(a), seen(b));
        let n = x.len().min(y.len());
        let shorter_is_cut = (x.len() <= n || cut_b) && (y.len() <= n || cut_a);
        if x[..n] != y[..n] || !shorter_is_cut {
            return Err(format!("requests of {strand}: {x:?}\n{y:?}"));
        }
    }
    if cut_a || cut_b {
        return Ok(false);
    }
    let equal = match (&a.result, &b.result) {
        (Ok((x, _)), Ok((y, _))) => same(&mut a.lattice, secret, x, y),
        (Err(x), Err(y)) => (x.code, &x.message, x.label) == (y.code, &y.message, y.label),
        _ => false,
    };
    if equal { Ok(true) } else { Err(format!("results: {:?}\n{:?}", a.result, b.result)) }
}

/// Counts of the cases that were tried.
#[derive(Debug, Default)]
struct Tried {
    accepted: u32,
    /// Runs that end with a refused flow.
    refused: u32,
    /// Pairs of runs that differ for somebody who sees all.
    differ: u32,
    /// Pairs of which somebody who must not see the difference saw both ends.
    ended: u32,
}

/// All properties of one program.
fn holds(
    bytes: &[u8],
    signature: u8,
    variant: &str,
    other: i64,
    tried: &mut Tried,
) -> Result<(), TestCaseError> {
    // `endorse` takes from a label what is untrusted.
    let endorses = program(bytes).contains("endorse");
    for (input, secret) in [(" secret", "S"), (" untrusted", "U")] {
        let text = labeled(bytes, signature, input);
        let Some(code) = term(&text) else { continue };
        tried.accepted += 1;
        if secret == "S" {
            let formatted = syntax::format::agent(FILE, &text).unwrap();
            let again = term(&formatted);
            prop_assert!(again.as_ref() == Some(&code), "another term:\n{text}\n--- formatted\n{formatted}");
        }
        let mut input = inputs(variant);
        let mut one = run(&code, &input);
        claims_hold(&text, &code, &mut one)?;
        tried.refused += u32::from(one.result.as_ref().is_err_and(|e| e.code == ErrorCode::Flow));
        if secret == "U" && endorses {
            continue;
        }
        let c = input.iter_mut().find(|(n, _)| **n == *"c").unwrap();
        c.1 = Data::Num(Num::from(other));
        let mut two = run(&code, &input);
        tried.differ += u32::from(one.requests != two.requests || shown(&one) != shown(&two));
        let ended = nothing_shows(secret, [&mut one, &mut two])
            .map_err(|leak| TestCaseError::fail(format!("{leak}\n{text}")))?;
        tried.ended += u32::from(ended);
    }
    Ok(())
}

/// The end of a run for somebody who sees all.
fn shown(run: &Run) -> Result<&Reified, (ErrorCode, &str)> {
    run.result.as_ref().map(|(v, _)| v).map_err(|e| (e.code, e.message.as_str()))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: programs(), ..ProptestConfig::default() })]

    #[test]
    fn programs_do_what_is_said_of_them(
        bytes in prop::collection::vec(any::<u8>(), 10..160),
        signature: u8,
        variant in prop::sample::select(vec!["red", "green", "blue"]),
        other in 1i64..5,
    ) {
        holds(&bytes, signature, variant, other, &mut Tried::default())?;
    }
}

/// The properties are tried on programs that they are about: they are accepted, flows are refused, and
/// secrets are used.
#[test]
fn properties_are_tried_on_relevant_runs() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let mut tried = Tried::default();
    for _ in 0..120 {
        let bytes: Vec<u8> = (0..120).map(|_| next()).collect();
        let variant = ["red", "green", "blue"][usize::from(next() % 3)];
        holds(&bytes, next(), variant, 1 + i64::from(next() % 4), &mut tried).unwrap();
    }
    let Tried { accepted, refused, differ, ended } = tried;
    assert!(accepted > 160 && refused > 12 && differ > 40 && ended > 24, "{tried:?}");
}
