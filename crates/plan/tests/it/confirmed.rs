//! `confirm(x, "why")`: an approval of a value.

use crate::run::AT;
use core_ir::{Data, EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Response};
use plan::{World, codes};
use serde_json::{Value, json};
use std::sync::Arc;

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
const SECRET: LabelSpec = LabelSpec::Axes { untrusted: true, secret: true };

/// `read()` gives untrusted text, `notes()` untrusted and secret text. `pay(to)` wants trusted and public
/// data, and admits that untrusted data decides.
fn world() -> World {
    let unknown = |n: &str| ToolDecl::unknown(n.into(), AT);
    let read = |name: &str, label: LabelSpec| ToolDecl {
        params: Vec::new(),
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label,
        result: Type::Str,
        ..unknown(name)
    };
    let to = ToolParam { name: "to".into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None };
    let pay = ToolDecl { params: vec![to], control: UNTRUSTED, label: LabelSpec::BOTTOM, ..unknown("pay") };
    let tools = [read("read", UNTRUSTED), read("notes", SECRET), pay];
    World { tools: tools.map(Arc::new).into(), ..World::default() }
}

struct Ran {
    end: Result<Value, String>,
    /// The questions: the value and the reason.
    questions: Vec<Value>,
    paid: Vec<Value>,
    label: String,
}

/// Runs a plan under an approver.
fn run(text: &str, approves: bool) -> Ran {
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world());
    let code = code.unwrap_or_else(|| panic!("{text}: {found:?}"));
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    let (mut questions, mut paid) = (Vec::new(), Vec::new());
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let response = match &request.call {
                    Call::Approve { tool, args, .. } => {
                        assert_eq!(&*tool.name, "confirm");
                        questions.push(args.iter().map(|(_, d)| core_ir::py::shown(d).to_json()).collect());
                        Response::Approve(if approves { Ok(()) } else { Err("no".into()) })
                    }
                    Call::Tool { tool, args } if &*tool.name == "pay" => {
                        paid.push(args[0].1.to_json());
                        Response::Tool(Ok(Data::str("paid")))
                    }
                    Call::Tool { tool, .. } => {
                        // A confirmation calls nothing.
                        assert!(["read", "notes"].contains(&&*tool.name), "{}", tool.name);
                        Response::Tool(Ok(Data::str("eve")))
                    }
                    other => panic!("{other:?}"),
                };
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => {
                let label = result.as_ref().map(|v| machine.deep_label(v)).unwrap_or_else(|f| f.label);
                let label = machine.lattice().show(label);
                let end = result.map(|v| machine.reify(&v).data().unwrap().to_json());
                return Ran { end: end.map_err(|f| f.code.as_str().into()), questions, paid, label };
            }
        }
    }
}

#[test]
fn a_confirmed_value_is_trusted_and_asked_about_once() {
    let ran =
        run("who = confirm(read(), 'the mail names her')\npay(who)\npay(who)\npay(who + '!')\nwho", true);
    assert_eq!(ran.questions, [json!(["eve", "the mail names her"])]);
    assert_eq!(ran.paid, [json!("eve"), json!("eve"), json!("eve!")]);
    assert_eq!((ran.end.unwrap(), &*ran.label), (json!("eve"), "[]"));
}

#[test]
fn the_parts_of_a_confirmed_value_are_trusted() {
    let text = "t = read()\nnew = confirm({'name': t, 'both': [t, 'x'], 't': (1, t)}, 'all at once')\n\
                pay(new['name'])\nfor who in new['both']:\n    pay(who)\npay(new['t'][1])";
    let ran = run(text, true);
    assert_eq!(ran.questions.len(), 1);
    assert_eq!(ran.paid, [json!("eve"), json!("eve"), json!("x"), json!("eve")]);
}

/// The class is a part of the value, and comes back.
#[test]
fn an_object_is_confirmed_with_its_class() {
    let text = "from dataclasses import dataclass\n@dataclass\nclass Bill:\n    to: str\n    sum: float = 3\n\
                bill = confirm(Bill(read()), 'the bill')\npay(bill.to)\nbill";
    let ran = run(text, true);
    // As an approver is shown it.
    assert_eq!(ran.questions, [json!([{"to": "eve", "sum": 3}, "the bill"])]);
    assert_eq!(ran.paid, [json!("eve")]);
}

#[test]
fn nobody_is_asked_about_a_trusted_value() {
    let ran = run("pay(confirm('bob', 'why not'))", false);
    assert_eq!((ran.questions.len(), ran.paid.len()), (0, 1));
    // An untrusted reason could persuade whoever is asked.
    assert_eq!(run("pay(confirm('bob', read()))", true).questions.len(), 1);
}

#[test]
fn a_refusal_is_a_policy_error() {
    let ran = run("pay(confirm(read(), 'x'))", false);
    assert_eq!((ran.end, ran.paid.len()), (Err("tool".into()), 0));
    let text =
        "who = 'bob'\ntry:\n    who = confirm(read(), 'x')\nexcept CLASS:\n    print('refused')\nprint(who)";
    assert_eq!(run(&text.replace("CLASS", "PolicyError"), false).end, Ok(json!("refused\nbob")));
    assert_eq!(run(&text.replace("CLASS", "ToolError"), false).end, Err("tool".into()));
    assert_eq!(run(&text.replace("CLASS", "Exception"), false).end, Err("tool".into()));
}

#[test]
fn secrecy_is_not_confirmed() {
    let ran = run("confirm(notes(), 'x')", true);
    assert_eq!((ran.questions.len(), &*ran.label), (1, "[\"S\"]"));
    let ran = run("pay(confirm(notes(), 'x'))", true);
    assert_eq!((ran.end, ran.paid.len()), (Err("flow".into()), 0));
}

#[test]
fn values_that_untrusted_data_decides_stay_untrusted() {
    // The branch reads everything as untrusted; the remedy is to confirm before it.
    let inside = "t = read()\nif 'e' in t:\n    pay(confirm(t, 'x'))";
    assert_eq!(run(inside, true).paid.len(), 0);
    let before = "t = read()\nwho = confirm(t, 'x')\nif 'e' in t:\n    pay(who)";
    assert_eq!(run(before, true).paid, [json!("eve")]);
}

#[test]
fn static_flow_knows_what_is_confirmed() {
    let sites = |text: &str| {
        let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world());
        let code = code.unwrap_or_else(|| panic!("{text}: {found:?}"));
        let flow = analysis::flow::analyze(&Arc::new(code), &analysis::flow::Options::default());
        assert!(flow.gave_up.is_none());
        let verdict = |name: &str| flow.sites.iter().find(|s| s.sink.name() == Some(name)).map(|s| s.verdict);
        (verdict("confirm").unwrap(), verdict("pay").unwrap())
    };
    use analysis::flow::Verdict::{Always, Depends, Never};
    assert_eq!(sites("pay(confirm(read(), 'x'))"), (Depends, Always));
    assert_eq!(sites("pay(confirm('bob', 'x'))"), (Always, Always));
    assert_eq!(sites("pay(confirm(notes(), 'x'))"), (Depends, Never));
    assert_eq!(sites("t = read()\nif 'e' in t:\n    pay(confirm(t, 'x'))").1, Never);
}

#[test]
fn wrong_arguments_are_errors() {
    for (text, code) in [
        ("confirm('x')", codes::ARGUMENTS),
        ("confirm()", codes::ARGUMENTS),
        ("confirm('x', 'y', 'z')", codes::ARGUMENTS),
        ("confirm(len, 'y')", codes::SUBSET),
    ] {
        let (_, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world());
        assert!(found.iter().any(|d| d.code == code), "{text}: {found:?}");
    }
}

#[test]
fn a_tool_of_that_name_is_that_tool() {
    let mut world = world();
    world.tools.push(Arc::new(ToolDecl {
        params: vec![ToolParam { name: "id".into(), ty: Type::Str, bound: LabelSpec::BOTTOM, default: None }],
        ..ToolDecl::unknown("confirm".into(), AT)
    }));
    let (code, found) = plan::compile(FileId(0), "p.plan.py", "confirm('x')".into(), &world);
    assert!(code.is_some() && found.is_empty(), "{found:?}");
}
