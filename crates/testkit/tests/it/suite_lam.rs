//! `suite/lam`: the rules by example, on the machine and on the naive evaluator. The format is described in
//! its README.

use crate::common::{FUEL, MAX_TEXT, Prepared, line};
use core_ir::{AnswerSink, Code, Data, LabelSpec, LatticeKind};
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

/// Splits a file into its header and its cases.
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
    let read = |text: &str| Data::from_json(&serde_json::from_str(text).expect("JSON")).expect("data");
    let data = || read(rest);
    // Two of them: the first has no spaces.
    let (first, second) = rest.split_once(' ').unwrap_or((rest, ""));
    match kind {
        "text" => Answer::Text(rest.replace("\\n", "\n")),
        "data" => Answer::Data(data()),
        "found" => Answer::Found(Some(data())),
        "nothing" => Answer::Found(None),
        "kept" => Answer::Kept,
        "yes" | "no" => Answer::Drawn(kind == "yes"),
        "fail" => Answer::Failed(rest.into()),
        "overdue" => Answer::ToolTimeout(rest.into()),
        "permanent" => Answer::Permanent(rest.into()),
        "call" => Answer::ToolCall(first.into(), read(second)),
        "calls" => {
            let calls: Vec<(String, serde_json::Value)> = serde_json::from_str(rest).expect("pairs");
            let call = |(name, args): (String, _)| (name.into(), Data::from_json(&args).expect("data"));
            Answer::ToolCalls(calls.into_iter().map(call).collect())
        }
        "labeled" => Answer::Labeled(read(second), LabelSpec::Exact(read(first))),
        "approve" => Answer::Approved(Ok(())),
        "refuse" => Answer::Approved(Err(rest.into())),
        "late" => Answer::Late(rest.parse().expect("a number")),
        _ => panic!("no kind of answer: {text}"),
    }
}

/// World of a file's cases, from its header.
struct World {
    lattice: LatticeKind,
    clearance: LabelSpec,
    generated_endorse: bool,
}

impl World {
    fn of(head: &str, path: &Path) -> World {
        let mut world =
            World { lattice: LatticeKind::TwoAxis, clearance: LabelSpec::TOP, generated_endorse: false };
        for line in head.lines().filter(|l| !l.starts_with('#')) {
            match line.split_once(": ") {
                Some(("lattice", name)) => {
                    world.lattice = LatticeKind::named(name)
                        .unwrap_or_else(|| panic!("{}: no lattice `{name}`", path.display()));
                }
                Some(("clearance", label)) => {
                    let label = serde_json::from_str(label).expect("JSON");
                    world.clearance = LabelSpec::Exact(Data::from_json(&label).expect("data"));
                }
                None if line == "generated_endorse" => world.generated_endorse = true,
                _ => panic!("{}: not understood: {line}", path.display()),
            }
        }
        world
    }
}

fn run(place: &str, world: &World, case: &Case) -> String {
    let parsed = agentlang::calculus::compile(diagnostics::FileId(0), &case.program);
    let code: Arc<Code> =
        Arc::new(parsed.code.unwrap_or_else(|| panic!("{place}: {:?}", parsed.diagnostics)));
    let answers = || Prepared(case.answers.iter().map(|a| answer(a)).collect());
    let options =
        syntax::lam::Options { endorse: world.generated_endorse, ..syntax::lam::Options::GENERATED };
    let parser = move |text: &str| agentlang::calculus::parse_generated_with(text, options);
    let config = naive::Config {
        lattice: world.lattice,
        principals: core_ir::Principals::default(),
        fuel: FUEL,
        max_text: MAX_TEXT,
        clearance: world.clearance.clone(),
        generated_endorse: world.generated_endorse,
        parser: &parser,
        answer: AnswerSink::default(),
    };
    let (mut for_naive, mut for_machine) = (answers(), answers());
    let naive = naive::run(&code, None, &config, &mut for_naive);
    let config = machine::Config {
        lattice: world.lattice,
        clearance: world.clearance.clone(),
        generated_endorse: world.generated_endorse,
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
        let world = World::of(&head, &path);
        let mut out = head;
        for case in &all {
            let place = format!("{}: {}", path.display(), case.title);
            let found = run(&place, &world, case);
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

/// `docs/seed-llmbda.md`: no row has an empty cell, and every file that it names is there.
#[test]
fn the_page_of_the_seed_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/seed-llmbda.md")).expect("the page");
    let mut named = 0;
    for (n, line) in page.lines().enumerate().filter(|(_, l)| l.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        // The first column of a head may be empty, no other cell.
        assert!(cells.iter().all(|c| !c.is_empty()), "line {}: an empty cell", n + 1);
        for path in line.split('`').skip(1).step_by(2).filter(|p| p.contains('/') && !p.contains(' ')) {
            named += 1;
            assert!(root.join(path).exists(), "line {}: there is no `{path}`", n + 1);
        }
    }
    assert!(named > 40, "{named}");
    // And each file of cases is named by it.
    for file in files() {
        let name = format!("suite/lam/{}", file.file_name().expect("a name").to_string_lossy());
        assert!(page.contains(&name), "`{name}` is not on the page");
    }
}
