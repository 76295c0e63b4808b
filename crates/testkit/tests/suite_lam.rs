//! `suite/lam`: the rules by example, on the machine and on the naive evaluator. The format is described in its README.

mod common;

use common::{FUEL, MAX_TEXT, Prepared, line};
use core_ir::{Code, Data, LabelSpec, LatticeKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testkit::drive::{self, Order, ParseWith};
use testkit::naive;
use testkit::world::Answer;

struct Case {
    title: String,
    program: String,
    answers: Vec<String>,
    expected: Option<String>,
}

/// What stands before the first case, and the cases.
fn read(text: &str) -> (String, Vec<Case>) {
    let mut parts = text.split("=== ");
    let head = parts.next().unwrap_or_default().to_string();
    let cases = parts.map(|part| {
        let (title, rest) = part.split_once('\n').unwrap_or((part, ""));
        let mut case =
            Case { title: title.into(), program: String::new(), answers: Vec::new(), expected: None };
        for l in rest.lines() {
            if let Some(answer) = l.strip_prefix("--- < ") {
                case.answers.push(answer.into());
            } else if let Some(expected) = l.strip_prefix("--- = ") {
                case.expected = Some(expected.into());
            } else {
                case.program.push_str(l);
                case.program.push('\n');
            }
        }
        case
    });
    (head, cases.collect())
}

fn answer(text: &str) -> Answer {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let data = || Data::from_json(&serde_json::from_str(rest).expect("JSON")).expect("data");
    match kind {
        "text" => Answer::Text(rest.into()),
        "data" => Answer::Data(data()),
        "found" => Answer::Found(Some(data())),
        "nothing" => Answer::Found(None),
        "kept" => Answer::Kept,
        "yes" | "no" => Answer::Drawn(kind == "yes"),
        "fail" => Answer::Failed(rest.into()),
        _ => panic!("no kind of answer: {text}"),
    }
}

fn run(place: &str, lattice: LatticeKind, case: &Case) -> String {
    let parsed = frontend::calculus::compile(diagnostics::FileId(0), &case.program);
    let code: Arc<Code> =
        Arc::new(parsed.code.unwrap_or_else(|| panic!("{place}: {:?}", parsed.diagnostics)));
    let world = || Prepared(case.answers.iter().map(|a| answer(a)).collect());
    let parser = |text: &str| frontend::calculus::parse_generated(text);
    let config = naive::Config {
        lattice,
        fuel: FUEL,
        max_text: MAX_TEXT,
        clearance: LabelSpec::TOP,
        generated_endorse: false,
        parser: &parser,
    };
    let (mut for_naive, mut for_machine) = (world(), world());
    let naive = naive::run(&code, None, &config, &mut for_naive);
    let config = machine::Config {
        lattice,
        max_text: MAX_TEXT,
        parser: Some(Arc::new(ParseWith(parser))),
        ..machine::Config::default()
    };
    let machine = drive::run(&code, None, config, &mut for_machine, Order::AtOnce);
    assert!(for_machine.0.is_empty(), "{place}: not every answer was asked for: {}", line(&machine));
    assert_eq!(line(&naive), line(&machine), "{place}: naive and machine differ");
    line(&machine)
}

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/lam");
    let entries = std::fs::read_dir(dir).expect("the suite").map(|e| e.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|p| p.extension().is_some_and(|e| e == "lam")).collect();
    files.sort();
    files
}

#[test]
fn every_rule_does_what_its_cases_say() {
    let bless = std::env::var_os("BLESS").is_some();
    let (mut cases, mut wrong) = (0, Vec::new());
    for path in files() {
        let text = std::fs::read_to_string(&path).expect("a file");
        let (head, all) = read(&text);
        let lattice = match head.lines().next().and_then(|l| l.strip_prefix("lattice: ")) {
            Some(name) => {
                LatticeKind::named(name).unwrap_or_else(|| panic!("{}: no lattice `{name}`", path.display()))
            }
            None => LatticeKind::TwoAxis,
        };
        let mut out = head;
        for case in &all {
            let place = format!("{}: {}", path.display(), case.title);
            let found = run(&place, lattice, case);
            cases += 1;
            if case.expected.as_deref() != Some(&*found) {
                wrong.push(format!("{place}\n  found    {found}\n  expected {:?}", case.expected));
            }
            out.push_str(&format!("=== {}\n{}", case.title, case.program));
            case.answers.iter().for_each(|a| out.push_str(&format!("--- < {a}\n")));
            out.push_str(&format!("--- = {found}\n"));
        }
        if bless {
            std::fs::write(&path, out).expect("written");
        }
    }
    assert!(bless || wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases >= 100, "only {cases} cases");
}
