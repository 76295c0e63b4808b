//! Findings about uses of frameworks, from the cases in `suite/framework_uses`.

use super::*;
use diagnostics::{FileId, fix};
use frontend_kit::Project;
use frontend_kit::doc::Limits;
use std::sync::Arc;

/// A case: its name, the pins, the module, further files.
struct Case {
    name: &'static str,
    pins: String,
    text: String,
    files: Vec<&'static str>,
}

fn cases(text: &'static str) -> Vec<Case> {
    let sections = text.split("\n== ").skip(1);
    let read = |section: &'static str| {
        let (name, body) = section.split_once('\n').unwrap_or((section, ""));
        let is_pin = |l: &&str| l.contains("==") && !l.contains(' ') || l.contains(">=") && !l.contains(' ');
        let pins: Vec<&str> = body.lines().take_while(is_pin).collect();
        let files = body.lines().filter_map(|l| l.strip_prefix('@').filter(|l| l.ends_with(".py"))).collect();
        let module = body.lines().skip(pins.len()).filter(|l| !(l.starts_with('@') && l.ends_with(".py")));
        let text = module.map(|l| format!("{l}\n")).collect();
        Case { name, pins: pins.join("\n"), text, files }
    };
    sections.map(read).collect()
}

fn found(pins: &str, text: &str, files: &[&str]) -> Vec<Diagnostic> {
    let around = |_| {
        let mut versions = Versions::default();
        versions.read("requirements.txt", pins);
        let file =
            |(path, n): (&&str, u32)| File::read(FileId(n), path, &Arc::from("x = 1\n"), &Limits::default());
        Project { files: files.iter().zip(1..).map(file).collect(), versions, ..Project::default() }
    };
    let config = Config { level: Level::Info, ..Config::default() };
    match lint_among(frontends::recognize, "main.py", FileId(0), text.as_bytes(), around, &config).outcome {
        Outcome::Checked { findings, .. } => findings,
        _ => Vec::new(),
    }
}

/// `L028 name` of the findings about what does not exist.
fn missing(pins: &str, text: &str, files: &[&str]) -> Vec<String> {
    let at = |d: &Diagnostic| d.span.map_or("", |s| &text[s.start as usize..s.end as usize]).to_string();
    let all = found(pins, text, files);
    let of = all.iter().filter(|d| matches!(d.code, "L028" | "L029"));
    of.map(|d| format!("{} {}", d.code, at(d))).collect()
}

#[test]
fn reported_misuses_are_found() {
    let cases = cases(include_str!("../../../suite/framework_uses/reported.txt"));
    assert!(cases.len() > 40, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let expected: Vec<String> =
            case.text.lines().flat_map(|l| l.split("#! ").skip(1)).map(|e| e.trim().to_string()).collect();
        let found = missing(&case.pins, &case.text, &case.files);
        if found != expected {
            wrong.push(format!("{}: expected {expected:?}, found {found:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_said_where_the_program_may_know_better() {
    let mut wrong = Vec::new();
    for case in cases(include_str!("../../../suite/framework_uses/quiet.txt")) {
        let found = missing(&case.pins, &case.text, &case.files);
        if !found.is_empty() {
            wrong.push(format!("{}: {found:?}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_level_says_whether_the_program_raises() {
    let levels = |pins: &str, text: &str| -> Vec<Level> {
        let all = found(pins, text, &[]);
        all.iter().filter(|d| matches!(d.code, "L028" | "L029")).map(|d| d.level).collect()
    };
    let import = "from langgraph.graph.graph import CompiledGraph\n";
    assert_eq!(levels("langgraph==1.0.3", import), [Level::Error]);
    // Without a pin, an older version may be where it runs.
    assert_eq!(levels("", import), [Level::Warn]);
    // No release has it.
    assert_eq!(levels("", "from langgraph.graph import StateGraf\n"), [Level::Error]);
    let ignored = "from crewai import Task\nt = Task(description='d', expected_output='e', expected='x')\n";
    assert_eq!(levels("crewai==1.0.0", ignored), [Level::Warn]);
}

#[test]
fn a_finding_names_the_version_and_the_nearest_name() {
    let text = "from langgraph.prebuilt import create_react_agent\na = create_react_agent(m, [], system_prompt='x')\n";
    let all = found("langgraph-prebuilt==0.6.4", "from langgraph.graph import StateGraf\n", &[]);
    let help: Vec<&str> = all.iter().flat_map(|d| &d.help).map(|h| h.as_ref()).collect();
    assert!(help.contains(&"the nearest name is `StateGraph`"), "{help:?}");
    let all = found("langgraph-prebuilt==0.6.4", text, &[]);
    let own = all.iter().find(|d| d.code == "L029").map(|d| d.message.to_string());
    let expected = "`create_react_agent` takes no argument `system_prompt` in langgraph-prebuilt 0.6.4";
    assert_eq!(own.as_deref(), Some(expected));
}

#[test]
fn an_import_moves_where_the_old_name_was_an_alias() {
    let text = "from langgraph.graph.graph import CompiledGraph\nfrom langchain.schema import AIMessage\n";
    let all = found("langgraph==1.0.3\nlangchain==1.0.2\n", text, &[]);
    let (fixed, n) = fix::apply(text, FileId(0), &all, Applicability::Safe);
    assert_eq!(n, 1, "{all:#?}");
    assert!(fixed.contains("from langchain_core.messages"), "{fixed}");
}

#[test]
fn a_module_of_many_calls_ends_soon() {
    // Bindings that refer to one another.
    let text = "import agents\n".to_string() + &"a = b()\nb = a()\nc = a.x(b)(c).y[0]()\n".repeat(2_000);
    assert!(found("", &text, &[]).iter().all(|d| !matches!(d.code, "L028" | "L029")));
    let deep = format!("import agents\nx = {}agents{}\n", "(".repeat(3_000), ")".repeat(3_000));
    let chained = format!("import agents\nx = agents{}\n", ".a()".repeat(3_000));
    for text in [deep, chained] {
        let _ = found("", &text, &[]);
    }
}
