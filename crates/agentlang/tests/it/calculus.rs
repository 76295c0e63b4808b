//! The prelude does what it says, and the worked examples run to their end on their scripted replies.

use agentlang::calculus::{compile, parse_generated};
use core_ir::Code;
use diagnostics::{Sources, render};
use machine::{Call, CodeParser, Config, Machine, Message, Output, Reply, Response};
use serde_json::Value as Json;
use std::sync::Arc;

struct Prelude;

impl CodeParser for Prelude {
    fn parse(&self, text: &str) -> Result<Arc<Code>, String> {
        parse_generated(text)
    }
}

/// Runs a program; gives what it prints as, or the message of its error, and the messages it sent.
fn run(text: &str, script: &str) -> (String, Vec<Vec<Message>>) {
    let mut sources = Sources::new();
    let file = sources.add("test.lam", text);
    let parsed = compile(file, text);
    let shown: Vec<String> = parsed.diagnostics.iter().map(|d| render::text(&sources, d, false)).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    let code = parsed.code.expect("code where nothing is wrong");
    let mut script: Vec<Json> = serde_json::from_str(script).unwrap();
    let mut asked = Vec::new();
    let config = Config { parser: Some(Arc::new(Prelude)), ..Config::default() };
    let mut machine = Machine::new(Arc::new(code), None, config);
    let result = loop {
        match machine.poll() {
            Output::Done(result) => break result,
            Output::Working => {}
            Output::Waiting => panic!("nothing is left to wait for"),
            Output::Request(id, request) => {
                let Call::Model { messages, .. } = request.call else { panic!("{:?}", request.call) };
                let last = messages.last().map_or("", |m| &*m.content).to_string();
                asked.push(messages.iter().cloned().collect());
                // Entries with a condition first.
                let fits = |e: &Json| e["match"].as_str().is_some_and(|m| last.contains(m));
                let i = script
                    .iter()
                    .position(fits)
                    .or_else(|| script.iter().position(Json::is_string))
                    .unwrap_or_else(|| panic!("no reply to {last:?}"));
                let entry = script.remove(i);
                let reply = entry.as_str().or(entry["reply"].as_str()).unwrap().to_string();
                machine.handle(id, Response::Model(Ok(Reply::Text(reply))));
            }
        }
    };
    assert!(result.is_err() || script.is_empty(), "replies are left: {script:?}");
    let shown = match result {
        Ok(value) => machine.reify(&value).data().map_or("a function".into(), |d| d.to_json().to_string()),
        Err(failure) => failure.message,
    };
    (shown, asked)
}

fn gives(text: &str, expected: &str) {
    assert_eq!(run(text, "[]").0, expected, "{text}");
}

#[test]
fn the_prelude_does_what_it_says() {
    gives("map (\\x. x * x) [1, 2, 3]", "[1,4,9]");
    gives("filter (\\x. x > 1) [1, 2, 3]", "[2,3]");
    gives("fold (\\a. \\b. \"{a}{b}\") '' ['a', 'b']", "\"ab\"");
    gives(
        "[any (\\x. x > 2) [1, 3], any (\\x. x) [], all (\\x. x > 2) [1, 3], all (\\x. x) []]",
        "[true,false,false,true]",
    );
    gives("[find (\\x. x > 1) [1, 2, 3], find (\\x. x > 9) [1]]", "[2,null]");
    gives("[reverse [1, 2], flat_map (\\x. [x, x]) [1, 2], sum [1, 2.5]]", "[[2,1],[1,1,2,2],3.5]");
    gives("map (\\p. fst p + snd p) (zip [1, 2, 3] [10, 20])", "[11,22]");
    gives("[first [1, 2], last [1, 2], length 'abc', slice [1, 2, 3] 1 3]", "[1,2,3,[2,3]]");
    gives("[get {a: 1} 'a' 0, get {a: 1} 'b' 0, has {a: 1} 'b']", "[1,0,false]");
    gives("[abs (-2), min 1 2, max 1 2, not true, always 1 2, id 3]", "[2,1,2,false,1,3]");
    gives(
        "[is_fn map, is_fn 1, is_array [], is_record {}, is_str '', is_num 1, is_bool true, is_null null]",
        "[true,false,true,true,true,true,true,true]",
    );
    gives(
        "[trim ' a ', upper 'a', join ['a', 'b'] '-', to_str [1], to_json 'a', contains 'abc' 'b']",
        "[\"a\",\"A\",\"a-b\",\"[1]\",\"\\\"a\\\"\",true]",
    );
    gives(
        "[split 'a,b' ',', keys {a: 1}, range 0 3, concat [1] [2], from_json '[1]', to_num '1.5', lower 'A']",
        "[[\"a\",\"b\"],[\"a\"],[0,1,2],[1,2],[1],1.5,\"a\"]",
    );
}

#[test]
fn endorsement_is_bounded_to_what_is_allowed() {
    gives("bounded_endorse [] ['red', 'blue'] ([\"U\"]:'red')", "\"red\"");
    gives("[] ? bounded_endorse [] ['red', 'blue'] (['U']:'red')", "true");
    gives("bounded_endorse [] ['red', 'blue'] (['U']:'green')", "not one of the values that are allowed");
    // Whoever chooses what is allowed chooses the value.
    for allowed in ["(['U']: ['red'])", "[(['U']: 'red')]"] {
        let refused = "assertion failed: the label does not flow to []";
        gives(&format!("bounded_endorse [] {allowed} (['U']:'red')"), refused);
        gives(&format!("bounded_endorse ['U'] {allowed} (['U']:'red')"), "\"red\"");
    }
    // A secret stays one: integrity only is vouched for.
    gives("['U'] ? bounded_endorse [] ['red', 'blue'] (['U', 'S']:'red')", "false");
    // Under a tainted program counter it has no effect.
    gives("[] ? (['U'] : bounded_endorse ['U'] ['red', 'blue'] 'red')", "false");
}

#[test]
fn generated_code_does_not_borrow_endorsement_from_the_prelude() {
    for reply in
        ["bounded_endorse [] ['x'] 'x'", "robust_endorse 1", "(\\f. f) robust_endorse", "endorse [] 1"]
    {
        let (shown, _) = run("@'write'", &serde_json::to_string(&[reply]).unwrap());
        assert!(shown.starts_with("[false,"), "{reply}: {shown}");
        assert!(shown.contains("endorse"), "{reply}: {shown}");
    }
}

#[test]
fn asking_until_the_reply_is_accepted_ends() {
    let program = "ask_until (\\n. is_num n && n > 2) 3 'a number'";
    let (shown, asked) = run(program, "[\"(\", \"1\", \"3\"]");
    assert_eq!(shown, "3");
    assert!(asked[1].last().unwrap().content.starts_with("That does not parse: line 1"), "{asked:#?}");
    assert_eq!(&*asked[2].last().unwrap().content, "That is not acceptable. Try again.");
    assert_eq!(run(program, "[\"1\", \"1\", \"1\"]").0, "no acceptable reply");
}

#[test]
fn the_syntax_summary_shows_what_models_may_write() {
    let (summary, _) = run("syntax_summary {}", "[]");
    let summary: String = serde_json::from_str(&summary).unwrap();
    for example in
        ["fix (\\self. \\n. if n == 0 then 1 else n * self (n - 1))", "case v of { some x => x, _ => 0 }"]
    {
        assert!(summary.contains(example), "{example}");
        let closed = format!("\\v. {example}");
        assert!(parse_generated(&closed).is_ok(), "{example}: {:?}", parse_generated(&closed));
    }
    // Each function that it names is one of the prelude.
    for line in summary.lines().filter(|l| l.starts_with("Lists") || l.starts_with("T")) {
        for call in line.split_once(": ").unwrap().1.split(", ") {
            let name = call.split(' ').next().unwrap();
            assert!(agentlang::calculus::prelude().index(name).is_some(), "{call}");
        }
    }
}

#[test]
fn recursion_is_as_deep_as_it_must_be() {
    gives("fix (\\fact. \\n. if n == 0 then 1 else n * fact (n - 1)) 20", "2432902008176640000");
    gives("fix (\\count. \\n. if n == 0 then 'done' else count (n - 1)) 20000", "\"done\"");
    gives("length (map id (range 0 2000))", "2000");
}

#[test]
fn a_quarantined_prompt_neither_sees_nor_leaves_anything() {
    let (shown, asked) =
        run("send 'secret plan'\nlet r = quarantine 'hello'\nlet _ = ask 'and now?'\nr", "[\"1\", \"2\"]");
    assert_eq!(shown, "[true,1]");
    let texts: Vec<Vec<&str>> = asked.iter().map(|ms| ms.iter().map(|m| &*m.content).collect()).collect();
    assert_eq!(texts, [vec!["hello"], vec!["secret plan", "and now?"]]);
}

#[test]
fn postcodes_are_extracted_in_forks_of_one_conversation() {
    let (shown, asked) = run(
        include_str!("../../../../examples/llmbda/postcode.lam"),
        include_str!("../../../../examples/llmbda/postcode.script.json"),
    );
    assert_eq!(shown, "[\"SW1A 2AA\",\"NW1 6XE\",\"none\"]");
    // Each address is asked after the same beginning, and none sees another.
    assert_eq!(asked.iter().map(Vec::len).collect::<Vec<_>>(), [2, 4, 4, 6, 4]);
    assert!(asked[4].iter().all(|m| !m.content.contains("Baker Street")));
}

#[test]
fn a_function_is_repaired_until_it_is_one() {
    let (shown, asked) = run(
        include_str!("../../../../examples/llmbda/repair.lam"),
        include_str!("../../../../examples/llmbda/repair.script.json"),
    );
    assert_eq!(shown, "[1,1,120,2432902008176640000]");
    // The complaint names the place.
    assert!(asked[1].last().unwrap().content.contains("line 1, column "), "{asked:#?}");
    let (shown, _) =
        run(include_str!("../../../../examples/llmbda/repair.lam"), "[\"(\", \"(\", \"(\", \"(\", \"(\"]");
    assert_eq!(shown, "no function after five rounds");
}

#[test]
fn functions_are_written_to_their_tests() {
    let (shown, asked) = run(
        include_str!("../../../../examples/llmbda/testcases.lam"),
        include_str!("../../../../examples/llmbda/testcases.script.json"),
    );
    assert_eq!(shown, r#"{"reflected":{"x":-7,"y":4},"swapped":{"x":-4,"y":7},"both":{"x":4,"y":-7}}"#);
    let complaint = &asked[1].last().unwrap().content;
    assert!(complaint.contains(r#"For {"x":1,"y":2} the result is {"value":{"x":-1,"y":2}}"#), "{complaint}");
    // The second task knows nothing of the first.
    assert_eq!(asked[3].len(), 2);
}
