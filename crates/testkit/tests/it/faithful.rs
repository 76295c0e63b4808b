//! The semantic faithfulness tests of seed 000 §7.4, rebuilt: `suite/lam/faithful/*.lam`.
//!
//! A file is a title, definitions that all its cases share, and cases: `--- name`, a program, `> "reply"` for
//! each reply of a model in order, `calls A of B` for how many calls there are and the bound that is known
//! before the run, and `= value` or `! error` for what the semantics predicts. The models are scripted: what
//! is tested is the semantics, not whether a model can count.

use crate::common::Prepared;
use machine::Config;
use std::path::{Path, PathBuf};
use testkit::drive::{self, Order};
use testkit::world::{Answer, Call};

struct Case {
    name: String,
    program: String,
    replies: Vec<String>,
    calls: Option<(u64, u64)>,
    expected: Result<String, String>,
}

fn cases_of(text: &str) -> Vec<Case> {
    let mut parts = text.split("\n--- ");
    let shared = parts.next().unwrap_or("");
    parts
        .map(|part| {
            let (name, rest) = part.split_once('\n').expect("a case has a program");
            let mut case = Case {
                name: name.to_string(),
                program: format!("{shared}\n"),
                replies: Vec::new(),
                calls: None,
                expected: Err("no expectation".into()),
            };
            for line in rest.lines() {
                if let Some(reply) = line.strip_prefix("> ") {
                    case.replies.push(serde_json::from_str(reply).expect("a reply is a JSON string"));
                } else if let Some(calls) = line.strip_prefix("calls ") {
                    let (a, b) = calls.split_once(" of ").expect("calls A of B");
                    case.calls = Some((a.parse().expect("a number"), b.parse().expect("a number")));
                } else if let Some(value) = line.strip_prefix("= ") {
                    case.expected = Ok(value.to_string());
                } else if let Some(code) = line.strip_prefix("! ") {
                    case.expected = Err(code.to_string());
                } else {
                    case.program.push_str(line);
                    case.program.push('\n');
                }
            }
            case
        })
        .collect()
}

/// Runs a case and describes its failure, if any.
fn run(case: &Case) -> Option<String> {
    let mut sources = diagnostics::Sources::new();
    let file = sources.add("case.lam", case.program.as_str());
    let parsed = agentlang::calculus::compile(file, &case.program);
    let Some(code) = parsed.code else { return Some(format!("{:?}", parsed.diagnostics)) };
    let code = std::sync::Arc::new(code);
    let mut world = Prepared(case.replies.iter().cloned().map(Answer::Text).collect());
    let outcome = drive::run(&code, None, Config::default(), &mut world, Order::AtOnce);
    let found = outcome.result.as_ref().map(ToString::to_string).map_err(|e| e.code.to_string());
    if found != case.expected {
        return Some(format!("expected {:?}, found {:?}", case.expected, outcome.result));
    }
    let models = outcome.requests.iter().filter(|(c, _)| matches!(c, Call::Model { .. })).count() as u64;
    let bound = analysis::cost::bound(&code, false).model_calls.most;
    if let Some((calls, most)) = case.calls
        && (models, bound) != (calls, Some(most))
    {
        return Some(format!("expected {calls} calls of {most}, found {models} of {bound:?}"));
    }
    // Whether or not a case says so, no bound is exceeded, and no reply is left over.
    let exceeded = bound.is_some_and(|b| models > b);
    (exceeded || !world.0.is_empty()).then(|| format!("{models} calls of {bound:?}"))
}

fn check_files(names: &[&str]) -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/lam/faithful");
    let mut wrong = Vec::new();
    let mut count = 0;
    for name in names {
        let path: PathBuf = folder.join(name);
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for case in cases_of(&text) {
            count += 1;
            if let Some(problem) = run(&case) {
                wrong.push(format!("{name}: {}: {problem}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    count
}

#[test]
fn the_semantics_predicts_every_case() {
    let files =
        ["church.lam", "booleans.lam", "lists.lam", "combinators.lam", "generalization.lam", "pipelines.lam"];
    // The seed has 125.
    assert!(check_files(&files) >= 125);
}

#[test]
fn the_semantics_predicts_the_patterns_of_table_7() {
    assert_eq!(check_files(&["patterns.lam"]), 8);
}

/// Table 8: the calls of runs like the seed's are within our bound, and where the seed's is violated ours
/// holds.
#[test]
fn the_bounds_of_table_8_hold() {
    assert_eq!(check_files(&["cost.lam"]), 7);
}
