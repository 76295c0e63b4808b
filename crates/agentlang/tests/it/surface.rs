//! The registry of codes, and the suite of `.agent` programs.
//!
//! A program of the suite says what is found in it: the line before a faulty line reads
//! `// Error: 3-7 A030 there is no variable`, with columns from 1, the end excluded, and the beginning of
//! the message (`// Warning: …` for warnings). A place of several lines ends in `+1:4`, one line further.
//! Every other program is accepted, and each of its entry points has a term.
//!
//! What a program does is said as `suite/mod.rs` describes.

use crate::suite::{Files, Turn, files, found_at, found_in, json, runs, under_policy};
use agentlang::{EntryKind, codes};
use core_ir::Data;
use diagnostics::{Diagnostic, FileId, Level, Sources};
use machine::{Call, Machine, Output, Response};
use std::collections::VecDeque;
use std::path::Path;

/// Each entry point becomes a term.
fn lower_all(module: &agentlang::Module) -> Vec<core_ir::Code> {
    let lower = |e| module.lower(e).unwrap_or_else(|d| panic!("{d:#?}"));
    let all: Vec<core_ir::Code> = module.entries().iter().map(lower).collect();
    for code in &all {
        // What `entail compile` prints is the term.
        let text = core_ir::print_code(code);
        let mut sources = Sources::new();
        let file = sources.add("t.lam", text.as_str());
        let parsed =
            syntax::lam::parse(file, &text, &core_ir::Globals::none(), syntax::lam::Options::PROGRAM);
        assert_eq!(parsed.diagnostics, [], "{text}");
        assert!(parsed.code.as_ref() == Some(code), "{text}");
    }
    all
}

/// A program with a mistake that is too long to be shown as an example.
fn beyond_limits(code: &str) -> Option<String> {
    let (open, close) = match code {
        "A006" => return Some(" ".repeat((16 << 20) + 1)),
        "A012" => ("if n == 1 { ".repeat(257), "}".repeat(257)),
        "A081" => ("while n == 1 max 3 { ".repeat(250), "}".repeat(250)),
        _ => return None,
    };
    Some(format!("pipeline p(n: Number) -> Number {{ {open}{close} return n; }}"))
}

/// Returns the findings in a program up to its run.
fn found_until_run(text: &str) -> Vec<Diagnostic> {
    let (_, module, mut found) = found_in(text);
    if let Some(module) = module {
        found.extend(module.policies().iter().map(|u| u.unknown(None)));
        found.extend(module.entries().iter().filter_map(|e| module.lower(e).err()).flatten());
    }
    found
}

#[test]
fn every_code_has_examples_that_hold() {
    let mut wrong = String::new();
    for (i, e) in codes::ALL.iter().enumerate() {
        assert!(codes::ALL[..i].iter().all(|f| f.code < e.code), "{} is out of order", e.code);
        let text = beyond_limits(e.code).unwrap_or_else(|| e.wrong.to_string());
        let found = found_until_run(&text);
        let codes: Vec<&str> = found.iter().map(|d| d.code).collect();
        // No program is known to show a fault of the compiler; a test of `agentlang::lower` makes one.
        if codes != [e.code] && e.code != "A098" {
            let messages: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
            wrong += &format!("{}: wrong example gives {codes:?} {messages:?}\n", e.code);
        }
        let found = found_until_run(e.right);
        if e.right.is_empty() || !found.is_empty() {
            wrong += &format!("{}: right example gives {found:#?}\n", e.code);
        } else if let Some(module) = found_in(e.right).1 {
            lower_all(&module);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// All findings of a text in the notation of the suite, each with its line.
pub(crate) fn annotations(path: &Path, text: &str) -> Vec<(u32, String)> {
    let (sources, module, mut found) = found_at(&path.display().to_string(), text, Files::default());
    // What is wrong in an imported file is said where that is checked.
    found.retain(|d| d.span.unwrap().file == FileId(0));
    if let Some(module) = module {
        lower_all(&module);
    }
    found
        .iter()
        .map(|d| {
            let span = d.span.unwrap();
            let source = sources.get(span.file).unwrap();
            let (a, b) = (source.line_column(span.start), source.line_column(span.end));
            let end = if b.line > a.line {
                format!("+{}:{}", b.line - a.line, b.column)
            } else {
                b.column.to_string()
            };
            let level = if d.level == Level::Error { "Error" } else { "Warning" };
            (a.line, format!("{level}: {}-{end} {} {}", a.column, d.code, d.message))
        })
        .collect()
}

#[test]
fn the_suite_says_what_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/agent");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(all.len() > 20, "the suite is missing");
    let mut wrong = String::new();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut expected: Vec<(u32, String)> = Vec::new();
        let mut waiting: Vec<String> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            match line
                .trim()
                .strip_prefix("// ")
                .filter(|l| l.starts_with("Error: ") || l.starts_with("Warning: "))
            {
                Some(annotation) => waiting.push(annotation.to_string()),
                None => expected.extend(waiting.drain(..).map(|w| (i as u32 + 1, w))),
            }
        }
        let found = annotations(&path, &text);
        let fits = |(line, e): &(u32, String), (l, f): &(u32, String)| line == l && f.starts_with(e.as_str());
        let name = path.strip_prefix(&root).unwrap().display();
        for e in expected.iter().filter(|e| !found.iter().any(|f| fits(e, f))) {
            wrong += &format!("{name}:{}: expected but not found: {}\n", e.0, e.1);
        }
        for f in found.iter().filter(|f| !expected.iter().any(|e| fits(e, f))) {
            wrong += &format!("{name}:{}: found but not expected: // {}\n", f.0, f.1);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// `// Help: text` above an expected finding is how its help begins.
#[test]
fn the_suite_says_which_hints_are_given() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/agent");
    let mut all = Vec::new();
    files(&root, &mut all);
    let (mut wrong, mut compared) = (String::new(), 0);
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let (sources, _, found) = found_at(&path.display().to_string(), &text, Files::default());
        let mut waiting: Vec<&str> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if let Some(help) = line.trim().strip_prefix("// Help: ") {
                waiting.push(help);
                continue;
            }
            if line.trim().starts_with("// Error: ") || line.trim().starts_with("// Warning: ") {
                continue;
            }
            for help in waiting.drain(..) {
                compared += 1;
                let here = |d: &&diagnostics::Diagnostic| {
                    let span = d.span.unwrap();
                    span.file == FileId(0)
                        && sources.get(span.file).unwrap().line_column(span.start).line == i as u32 + 1
                };
                let helps: Vec<&str> =
                    found.iter().filter(here).flat_map(|d| d.help.iter().map(|h| &**h)).collect();
                if !helps.iter().any(|h| h.starts_with(help)) {
                    wrong += &format!("{}:{}: no help {help:?}, but {helps:?}\n", path.display(), i + 1);
                }
            }
        }
    }
    assert!(wrong.is_empty() && compared >= 40, "{compared} hints\n{wrong}");
}

fn late(request: &machine::Request) -> Result<Response, String> {
    if request.deadlines.is_empty() {
        return Err(format!("{:?} has no time limit", request.call));
    }
    Ok(Response::Late(0))
}

/// Steps of a run that asks nothing.
fn steps(text: &str, rounds: i64) -> u64 {
    let (_, module, found) = found_at("p.agent", text, Files::default());
    assert!(found.iter().all(|d| d.level != Level::Error), "{found:?}");
    let module = module.expect("a program");
    let code = module.lower(module.pipeline("main").expect("a pipeline")).expect("a term");
    let input = Data::record([("n".into(), Data::Num(rounds.into()))]);
    let mut machine = Machine::new(code.into(), Some(input), machine::Config::default());
    loop {
        match machine.poll() {
            Output::Working => {}
            Output::Done(result) => {
                result.expect("a result");
                return machine.fuel_used();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Types that the checker knows are not checked again in each call: a loop that passed a growing list to a
/// pipeline, or got it from one, took time in the square of its rounds.
#[test]
fn calls_of_pipelines_with_growing_lists_take_steps_in_proportion_to_their_number() {
    let program = "pipeline grown(xs: List[Number], x: Number) -> List[Number] { return xs + [x]; }\n\
                   pipeline main(n: Number) -> Number {\n\
                     let xs: List[Number] = [];\n\
                     for i in range(0, n) { let xs = grown(xs, i); }\n\
                     return length(xs);\n\
                   }\n";
    let (few, many) = (steps(program, 200), steps(program, 400));
    assert!(many < 2 * few + 100, "{few} steps, then {many}");
}

/// Runs an entry point in a scripted world; gives `Result: …` or `Fails: …`, or what went wrong.
fn perform(code: core_ir::Code, input: Data, turns: VecDeque<Turn>) -> Result<String, String> {
    perform_under((code, machine::Config::default()), input, turns)
}

fn perform_under(
    (code, config): (core_ir::Code, machine::Config),
    input: Data,
    mut turns: VecDeque<Turn>,
) -> Result<String, String> {
    let mut machine = Machine::new(code.into(), Some(input), config);
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let mut turn = turns.pop_front();
                if let (Call::Model { messages, .. }, Some(Turn::System(text))) = (&request.call, &turn) {
                    let system = messages.iter().next().map_or("", |m| &m.content);
                    if *system != **text {
                        return Err(format!("the system message is {system:?}"));
                    }
                    turn = turns.pop_front();
                }
                let response = match (&request.call, turn) {
                    (Call::Model { .. }, Some(Turn::Late(what))) if what == "model" => late(&request)?,
                    (Call::Tool { tool, .. }, Some(Turn::Late(what))) if *tool.name == *what => {
                        late(&request)?
                    }
                    (Call::Model { .. }, Some(Turn::Model(reply))) => Response::Model(Ok(reply)),
                    (Call::Tool { tool, args }, Some(Turn::Tool { name, args: wanted, result }))
                        if *tool.name == *name =>
                    {
                        let got = Data::record(args.iter().cloned()).to_json();
                        if let Some(w) = wanted.filter(|w| *w != got) {
                            return Err(format!("`{name}` is called with {got} instead of {w}"));
                        }
                        // As handlers read what they get.
                        let read = |d: Data| tool.result.read(&d.to_json()).map_err(|e| e.to_string());
                        Response::Tool(result.and_then(read))
                    }
                    (Call::Approve { tool, .. }, Some(Turn::Approve(name, answer)))
                        if *tool.name == *name =>
                    {
                        Response::Approve(answer)
                    }
                    (Call::Recall { store, key }, Some(Turn::Recall(name, value)))
                        if *store.keys[*key as usize].name == *name =>
                    {
                        Response::Recall(Ok(value))
                    }
                    (Call::Remember { store, key, value }, Some(Turn::Remember(name, wanted)))
                        if *store.keys[*key as usize].name == *name && value.to_json() == wanted =>
                    {
                        Response::Remember(Ok(()))
                    }
                    (call, turn) => return Err(format!("asked {call:?}, the world says {turn:?}")),
                };
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => return Err("waits for nothing".into()),
            Output::Done(result) if !turns.is_empty() => {
                return Err(format!("not asked: {turns:?}, ended with {result:?}"));
            }
            Output::Done(Err(f)) => return Ok(format!("Fails: {} {}", f.code.as_str(), f.message)),
            Output::Done(Ok(value)) => {
                let deep = machine.deep_label(&value);
                let label = machine.lattice().show(deep);
                let reified = machine.reify(&value);
                let shown = reified.data().map_or_else(|| reified.to_string(), |d| d.to_json().to_string());
                let label = if label == "[]" { String::new() } else { format!(" @ {label}") };
                return Ok(format!("Result: {shown}{label}"));
            }
        }
    }
}

#[test]
fn the_suite_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/agent");
    let mut all = Vec::new();
    files(&root, &mut all);
    let mut wrong = String::new();
    let mut done = 0;
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let (_, module, found) = found_at(&path.display().to_string(), &text, Files::default());
        let Some(module) = module.filter(|_| !diagnostics::has_errors(&found)) else { continue };
        let runs = runs(&text);
        for run in &runs {
            let entry =
                run.entry(&module).unwrap_or_else(|| panic!("{name}:{}: no `{}`", run.line, run.target));
            let input = entry.input.read(&run.input.to_json()).unwrap();
            let outcome = perform_under(under_policy(&path, &module, entry), input, run.turns.clone());
            done += 1;
            let expected =
                run.expected.as_deref().unwrap_or_else(|| panic!("{name}:{}: no result", run.line));
            let fits = match &outcome {
                Ok(o) if expected.starts_with("Fails:") => o.starts_with(expected),
                Ok(o) => same_result(o, expected, run.line),
                Err(_) => false,
            };
            if !fits {
                wrong += &format!("{name}:{}: expected {expected}\n   found {outcome:?}\n", run.line);
            }
        }
        for entry in module.entries().iter().filter(|e| e.kind == EntryKind::Test) {
            if runs.iter().any(|r| r.target == format!("test {}", entry.name)) {
                continue;
            }
            // Data sets are the command's: `data_sets_run_a_test_for_each_row`.
            if module.data_set(entry).is_some() {
                continue;
            }
            // Mocks and expectations are the command's: `mocks_answer_and_calls_are_expected`.
            if module.test_plan(entry).is_ok_and(|p| !p.mocks.is_empty() || !p.expectations.is_empty()) {
                continue;
            }
            let outcome =
                perform_under(under_policy(&path, &module, entry), Data::record([]), VecDeque::new());
            done += 1;
            if outcome != Ok("Result: null".to_string()) {
                wrong += &format!("{name}: test `{}`: {outcome:?}\n", entry.name);
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(done > 20, "the suite is missing");
}

/// Results are compared as JSON, so that white space does not matter.
fn same_result(found: &str, expected: &str, line: usize) -> bool {
    let parts = |t: &str| {
        let t = t.strip_prefix("Result: ")?;
        let (value, label) = t.rsplit_once(" @ ").unwrap_or((t, ""));
        Some((json(value, line), label.to_string()))
    };
    parts(found) == parts(expected)
}

#[test]
fn the_comment_above_a_tool_is_its_description() {
    let text = "-- Searches the web.\r\n--   Slowly.\r\ntool a() -> String {}\n-- apart\n\ntool b() -> String {}\n\
                pipeline p() -> String { let x = a(); let y = b(); return x + y; } -- beside\n";
    let module = found_in(text).1.unwrap();
    let code = &lower_all(&module)[0];
    let described: Vec<Option<&str>> = code.tools.iter().map(|t| t.description.as_deref()).collect();
    assert_eq!(described, [Some("Searches the web. Slowly."), None]);
}

#[test]
fn the_comment_above_a_variant_is_its_description() {
    let text = "enum Size {\n    -- less than\n    -- a meter\n    small, medium,\n    -- apart\n\n    large, -- beside\n    \
                // more\n    huge\n}\npipeline p(size: Size) -> Size { return size; }\n";
    let module = found_in(text).1.unwrap();
    let code = core_ir::print_code(&lower_all(&module)[0]);
    assert!(code.contains(r#"Enum Size(small "less than a meter", medium, large, huge "more")"#), "{code}");
}

#[test]
fn the_examples_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(!all.is_empty());
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(annotations(&path, &text), [], "{}", path.display());
    }
}

#[test]
fn thousands_of_early_exits_do_what_they_say() {
    // Returns at the top, and `continue` and `break` in a loop, with variables that change between them and a
    // name that is bound for a block only.
    let n = 2_000;
    let returns: String =
        (0..n).map(|i| format!("if n == {i} {{ return total; }}\nlet total = total + 1;\n")).collect();
    let exits: String = (0..n)
        .map(|i| format!("if let x = o {{ if x == {i} {{ continue; }} let x = 5; }} if n == {i} {{ break; }}\nlet total = total + 1;\n"))
        .collect();
    let text = format!(
        "pipeline p(n: Number) -> Number {{ let total = 0; {returns} return 0 - 1; }}\n\
         pipeline q(n: Number, x: Number, o: Option[Number]) -> Number {{\n\
         let total = 0; for i in [1, 2] {{ {exits} }} return total + x; }}"
    );
    let module = found_in(&text).1.unwrap();
    let run = |name: &str, input: serde_json::Value| {
        let code = module.lower(module.pipeline(name).unwrap()).unwrap();
        perform(code, Data::from_json(&input).unwrap(), VecDeque::new()).unwrap()
    };
    assert_eq!(run("p", serde_json::json!({"n": 1_999})), "Result: 1999");
    assert_eq!(run("p", serde_json::json!({"n": 17})), "Result: 17");
    assert_eq!(run("p", serde_json::json!({"n": -1})), "Result: -1");
    assert_eq!(run("q", serde_json::json!({"n": 1_500, "x": 7})), "Result: 1507");
    assert_eq!(run("q", serde_json::json!({"n": 1_500, "x": 7, "o": 1_000})), "Result: 2007");
    assert_eq!(run("q", serde_json::json!({"n": -1, "x": 7, "o": -1})), "Result: 4007");
}

/// The table of `docs/agentlang.md` §4: every rule has a file, every file is there, and every file is in the
/// table.
#[test]
fn every_rule_has_programs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/agentlang.md")).unwrap();
    let section = page.split("## 4. The rules").nth(1).unwrap();
    let mut wrong = String::new();
    let (mut rules, mut named) = (0, std::collections::BTreeSet::new());
    for row in section.lines().filter(|l| l.starts_with("| ") && !l.contains("files of `suite/agent`")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, programs] = cells[..] else { panic!("{row}") };
        let programs: Vec<&str> = programs.split(", ").map(|f| f.trim_matches('`')).collect();
        rules += 1;
        if rule.is_empty() || programs.iter().all(|f| f.is_empty()) {
            wrong += &format!("no program: {row}\n");
        }
        for file in programs {
            if !root.join(format!("suite/agent/{file}.agent")).is_file() {
                wrong += &format!("`{rule}` names `{file}`, which is not there\n");
            }
            named.insert(file.to_string());
        }
    }
    // The seed's §2 has 47 rules and side conditions, its §3 and §4 have 29.
    assert!(rules >= 47 + 29, "{rules} rows are left");
    let mut all = Vec::new();
    files(&root.join("suite/agent"), &mut all);
    for path in all {
        let name = path.strip_prefix(root.join("suite/agent")).unwrap().with_extension("");
        let name = name.display().to_string();
        if !named.contains(&name) && !name.starts_with("imports/") && name != "types/errors" {
            wrong += &format!("`{name}` is in no row\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A mechanical repair of a mistake gives the right program, or at least one without that mistake.
#[test]
fn fixes_repair() {
    let mut repaired = Vec::new();
    for e in codes::ALL.iter().filter(|e| !e.wrong.is_empty() && !e.wrong.starts_with("-- ")) {
        let found = found_in(e.wrong).2;
        let Some(fix) = found.iter().find_map(|d| d.fix.clone()) else { continue };
        let (start, end) = (fix.span.start as usize, fix.span.end as usize);
        let text = format!("{}{}{}", &e.wrong[..start], fix.replacement, &e.wrong[end..]);
        let left: Vec<&str> = found_in(&text).2.iter().map(|d| d.code).collect();
        assert!(!left.contains(&e.code), "{}: {text} still has {left:?}", e.code);
        repaired.push(e.code);
    }
    // The page lists them.
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/agentlang.md");
    let page = std::fs::read_to_string(page).unwrap();
    let listed = page.split("Codes with a mechanical repair:").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: Vec<&str> =
        listed.split(|c: char| !c.is_alphanumeric()).filter(|w| w.starts_with("A0")).collect();
    assert_eq!(listed, repaired);
}

/// Everything that is found in the wrong examples and in the suite says what to do, and where.
#[test]
fn every_finding_has_a_help() {
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/agent"), &mut all);
    let mut found: Vec<Diagnostic> = codes::ALL
        .iter()
        .flat_map(|e| found_until_run(&beyond_limits(e.code).unwrap_or_else(|| e.wrong.to_string())))
        .collect();
    for path in all {
        let text = std::fs::read_to_string(&path).unwrap();
        found.extend(found_at(&path.display().to_string(), &text, Files::default()).2);
    }
    let mute: Vec<String> = found
        .iter()
        .filter(|d| d.help.is_empty() || d.span.is_none())
        .map(|d| format!("{} {}", d.code, d.message))
        .collect();
    assert!(mute.is_empty(), "no help: {mute:#?}");
    assert!(found.len() > 250, "{}", found.len());
}

/// The examples of what contradicts itself in a policy are programs.
#[test]
fn a_contradiction_is_found_in_its_wrong_example_alone() {
    let e = policy::codes::EXPLANATIONS.iter().find(|e| e.code == "S209").unwrap();
    assert_eq!(found_in(e.wrong).2.iter().map(|d| d.code).collect::<Vec<_>>(), ["S209"]);
    assert_eq!(found_in(e.right).2, []);
}

/// A loop over a list that a function of the library gives has the bound of that list.
#[test]
fn lists_of_the_library_bound_loops() {
    let calls = |list: &str| {
        let program = format!(
            "use \"std:lists\" as lists; agent a {{ tools: [] }} task q(x: String) -> String by agent {{ prompt \"{{x}}\" }}\n\
             pipeline main(xs: List[String]) -> String {{\n\
               for x in {list} {{ let r = q(x) by a; }}\n\
               return \"done\";\n\
             }}\n"
        );
        let (_, module, found) = found_at("p.agent", &program, Files::default());
        let module = module.unwrap_or_else(|| panic!("{found:?}"));
        let code = module.lower(module.default_entry().expect("a pipeline")).expect("a lowered program");
        analysis::cost::bound(&std::sync::Arc::new(code), true).model_calls.most
    };
    assert_eq!(calls("xs"), None);
    assert_eq!(calls("lists.take(xs, 5)"), calls("slice(xs, 0, 5)"));
    assert!(calls("lists.take(xs, 5)").is_some());
    assert_eq!(calls("lists.drop(lists.take(xs, 5), 1)"), calls("slice(xs, 0, 5)"));
    assert_eq!(calls("lists.drop(xs, 5)"), None);
}

/// The library turns a text into a number or a day without an end of the run.
#[test]
fn texts_that_are_no_numbers_or_days_are_null() {
    let program = "use \"std:numbers\"; use \"std:dates\";\n\
                   pipeline main(x: String) -> List[Bool] {\n\
                     return [(parse_number(x) ?? 0) == 0, parse_number(\"1.5\") == 1.5, parse_date(\"2024-13-99\") == null,\n\
                             parse_date(\"2024-12-09\") == \"2024-12-09\"];\n\
                   }\n";
    let (_, module, found) = found_at("p.agent", program, Files::default());
    let module = module.unwrap_or_else(|| panic!("{found:?}"));
    let code = module.lower(module.default_entry().expect("a pipeline")).expect("a lowered program");
    let input = Data::record([("x".into(), Data::str("x"))]);
    let result = perform(code, input, VecDeque::new()).expect("a run");
    assert!(result.starts_with("Result: [true,true,true,true]"), "{result}");
}
