//! Functions in which several agents are run, and agents that Python puts together, as whole programs: with
//! models that answer by script, what one says decides whether the next is asked and what it is asked, and no
//! run asks more often than the bound that was known before it.

use core_ir::{Code, Data, LabelSpec};
use diagnostics::Sources;
use frontend_kit::doc::Limits;
use frontend_kit::{File, Project, Recognized};
use frontends::recognize;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use testkit::drive::{self, Order};
use testkit::world::{Answer, Call};

fn units(name: &str, text: &str) -> Vec<frontend_kit::Unit> {
    let mut sources = Sources::new();
    let id = sources.add(name, text);
    let file = File::read(id, name, &text.into(), &Limits::default());
    let project = Project { files: vec![file], ..Project::default() };
    let Recognized::Frontend(frontend) = recognize(&project.files[0]) else { panic!("{name}") };
    frontend.lower(&project, 0).units
}

/// A unit of a fixture of the OpenAI Agents SDK.
fn unit(fixture: &str, name: &str) -> Arc<Code> {
    unit_of("openai_agents", fixture, name)
}

fn unit_of(folder: &str, fixture: &str, name: &str) -> Arc<Code> {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/frontends").join(folder);
    let text = std::fs::read_to_string(suite.join(fixture)).unwrap_or_else(|e| panic!("{fixture}: {e}"));
    let units = units(fixture, &text);
    let names: Vec<&str> = units.iter().map(|u| u.name.as_str()).collect();
    units.iter().find(|u| u.name == name).unwrap_or_else(|| panic!("{name} among {names:?}")).code.clone()
}

/// The same program, whose tools may be called by anybody and are trusted.
fn open(code: &Code) -> Arc<Code> {
    let mut code = code.clone();
    for tool in &mut code.tools {
        let tool = Arc::make_mut(tool);
        tool.control = LabelSpec::TOP;
        tool.label = LabelSpec::BOTTOM;
        tool.params.iter_mut().for_each(|p| p.bound = LabelSpec::TOP);
    }
    Arc::new(code)
}

/// Returns the result of a run with one input, and the last message of each model request.
fn ran(code: &Code, input: &str, replies: &[&str]) -> (String, Vec<String>) {
    let replies: Vec<Answer> = replies.iter().map(|r| Answer::Text((*r).to_string())).collect();
    ran_on(code, Data::str(input), replies)
}

fn ran_on(code: &Code, input: Data, replies: Vec<Answer>) -> (String, Vec<String>) {
    ran_with(code, input, replies, &[])
}

/// The same, where tools say these texts, each once.
fn ran_with(code: &Code, input: Data, replies: Vec<Answer>, tools: &[(&str, &str)]) -> (String, Vec<String>) {
    let mut tools = tools.to_vec();
    let code = &open(code);
    let mut replies: VecDeque<Answer> = replies.into();
    let mut world = |call: &Call| match call {
        Call::Model { .. } => {
            replies.pop_front().unwrap_or_else(|| Answer::Failed("nothing is left to say".into()))
        }
        Call::Tool { name, .. } => {
            let said = tools.iter().position(|(n, _)| **n == **name).map(|i| tools.remove(i).1);
            Answer::Data(said.map_or(Data::Null, Data::str))
        }
        _ => Answer::Failed("not asked for here".into()),
    };
    let outcome = drive::run(code, Some(&input), machine::Config::default(), &mut world, Order::AtOnce);
    let asked: Vec<String> = outcome
        .requests
        .iter()
        .filter_map(|(call, _)| match call {
            Call::Model { messages, .. } => messages.last().map(|m| m.1.clone()),
            _ => None,
        })
        .collect();
    let bound = analysis::cost::bound(code, true);
    let most = bound.model_calls.most;
    assert!(most.is_none_or(|most| asked.len() as u64 <= most), "{} of {most:?}", asked.len());
    assert!(replies.is_empty(), "left: {replies:?}");
    (outcome.result.map_or_else(|e| format!("failed: {}", e.code), |v| v.to_string()), asked)
}

fn most(code: &Arc<Code>) -> Option<u64> {
    analysis::cost::bound(code, true).model_calls.most
}

#[test]
fn a_reply_decides_whether_the_next_agent_is_asked() {
    let main = unit("story.py", "main");
    assert_eq!(most(&main), Some(3));
    let (given, asked) =
        ran(&main, "a theft", &["An outline.", r#"{"good": true, "genre": "crime"}"#, "A story."]);
    assert_eq!(given, "\"A story.\"");
    assert_eq!(asked, ["a theft", "An outline.", "Write this:\nAn outline."]);
    for verdict in [r#"{"good": false, "genre": "crime"}"#, r#"{"good": true, "genre": "farce"}"#] {
        let (_, asked) = ran(&main, "a theft", &["An outline.", verdict]);
        assert_eq!(asked, ["a theft", "An outline."], "{verdict}");
    }
}

#[test]
fn a_loop_that_a_judge_ends_has_no_bound_and_hands_on_the_conversation() {
    let endless = unit("judge.py", "endless");
    assert_eq!(most(&endless), None);
    let again = r#"{"feedback": "shorter", "score": "again"}"#;
    let pass = r#"{"feedback": "fine", "score": "pass"}"#;
    let (_, asked) = ran(&endless, "bees", &["One.", again, "Two.", again, "Three.", pass]);
    assert_eq!(asked, ["bees", "One.", "Feedback: shorter", "Two.", "Feedback: shorter", "Three."]);
}

#[test]
fn a_loop_that_counts_is_bounded_by_what_it_counts_to() {
    let limited = unit("judge.py", "limited");
    // Four texts, and three verdicts of up to ten turns each: an empty reply of a typed agent is a turn.
    assert_eq!(most(&limited), Some(34));
    let again = r#"{"feedback": "shorter", "score": "again"}"#;
    let pass = r#"{"feedback": "fine", "score": "pass"}"#;
    let (given, asked) = ran(&limited, "bees", &["One.", again, "Two.", again, "Three.", again, "Four."]);
    assert_eq!((given.as_str(), asked.len()), ("\"none was good\"", 7));
    let (given, asked) = ran(&limited, "bees", &["One.", again, "Two.", pass]);
    assert_eq!(given, "\"Two.\"");
    assert_eq!(asked, ["bees", "One.", "shorter", "Two."]);
}

#[test]
fn gathered_requests_run_concurrently() {
    let best = unit("together.py", "best");
    assert_eq!(most(&best), Some(3));
    let (given, asked) = ran(&best, "hello", &["hallo", "salut", "salut"]);
    assert_eq!(given, "\"salut\"");
    assert_eq!(asked, ["hello", "hello", "Input: hello\n\nhallo\n\nsalut"]);
}

#[test]
fn functions_of_the_project_are_followed_and_others_are_tools() {
    let research = unit("together.py", "Research.run");
    assert_eq!(most(&research), None);
    let (given, asked) =
        ran(&research, "tea", &[r#"{"questions": ["where", "when"]}"#, "In Assam.", "In May.", "A report."]);
    assert!(given.ends_with("\"A report.\""), "{given}");
    assert_eq!(asked[..3], ["Query: tea", "where", "when"]);
    assert!(asked[3].contains("In Assam.") && asked[3].contains("In May."), "{}", asked[3]);
}

#[test]
fn runs_that_have_nothing_to_do_with_each_other_stay_apart() {
    // It is run twice by one function, which is not a unit.
    let asker = unit("together.py", "asker");
    assert_eq!(most(&asker), Some(2));
}

#[test]
fn adk_agents_read_state_of_others_and_an_escalation_ends_the_loop() {
    let line = unit_of("adk", "refine.py", "story_line");
    let text = |t: &str| Answer::Text(t.to_string());
    let leave = || Answer::ToolCall("leave".into(), Data::record([]));
    let input =
        || Data::record([("input", "bees"), ("reader", "Ann")].map(|(k, v)| (k.into(), Data::str(v))));
    // The refiner leaves in the second turn.
    let mut replies = ["draft", "too long", "shorter", "fine"].map(text).to_vec();
    replies.extend([leave(), text("a book")]);
    let (given, asked) = ran_on(&line, input(), replies);
    assert!(given.ends_with("\"a book\""), "{given}");
    assert_eq!(asked.len(), 6);
    // Three turns are all there are.
    let all = ["draft", "bad", "one", "bad", "two", "bad", "three", "a book"].map(text);
    let (given, asked) = ran_on(&line, input(), all.into());
    assert!(given.ends_with("\"a book\"") && asked.len() == 8, "{given} {asked:?}");
}

#[test]
fn a_parallel_agent_of_adk_leaves_what_each_side_leaves() {
    let survey = unit_of("adk", "survey.py", "survey");
    assert_eq!(most(&survey), Some(3));
    let (given, asked) = ran(&survey, "energy", &["much wind", "much sun", "both"]);
    assert_eq!(given, "\"both\"");
    assert_eq!(asked, ["energy", "energy", "much wind\n\nmuch sun"]);
}

#[test]
fn a_router_of_crewai_leads_to_the_label_that_its_method_gives() {
    let flow = unit_of("crewai_python", "routed.py", "PoemFlow");
    let poem = || Answer::Text("A poem.".to_string());
    let asked = |tools: &[(&str, &str)], replies| ran_with(&flow, Data::str("x"), replies, tools).1.len();
    assert_eq!(asked(&[("wanted", "keep")], vec![]), 0);
    assert_eq!(asked(&[("wanted", "write"), ("good", "done")], vec![poem()]), 1);
    assert_eq!(
        asked(&[("wanted", "write"), ("good", "again"), ("good", "give_up")], vec![poem(), poem()]),
        2
    );
    // Code decides the label, so nothing bounds the cycle.
    assert_eq!(most(&flow), None);
}

/// Functions that call each other many times, loops within loops and tests in a row end within their limits.
#[test]
fn call_chains_loops_and_tests_stay_within_limits() {
    let head = "from agents import Agent, Runner\na = Agent(name='a', instructions='A.', model='m')\n";
    let mut calls =
        format!("{head}async def f0(t):\n    r = await Runner.run(a, t)\n    return r.final_output\n");
    for i in 1..12 {
        calls += &format!("async def f{i}(t):\n");
        (0..12).for_each(|_| calls += &format!("    t = await f{}(t)\n", i - 1));
        calls += "    r = await Runner.run(a, t)\n    return r.final_output\n";
    }
    let mut loops = format!("{head}async def f(t):\n    r = await Runner.run(a, t)\n");
    for i in 0..60 {
        let pad = "    ".repeat(i + 1);
        loops +=
            &format!("{pad}while r.final_output != 'x':\n{pad}    r = await Runner.run(a, r.final_output)\n");
    }
    let mut tests = format!("{head}async def f(t):\n    r = await Runner.run(a, t)\n");
    for i in 0..200 {
        tests += &format!(
            "    if r.final_output == '{i}':\n        if t == '{i}':\n            return 1\n        r = await Runner.run(a, r.final_output)\n"
        );
    }
    for text in [calls, loops, tests] {
        let all = units("main.py", &text);
        assert!(!all.is_empty());
        assert!(
            all.iter().all(|u| u.code.len() < 400_000),
            "{:?}",
            all.iter().map(|u| u.code.len()).collect::<Vec<_>>()
        );
    }
}
