//! Planned calls: data decides whether a call happens, and not with what.

use crate::run::AT;
use core_ir::{Code, Data, EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Response};
use plan::World;
use serde_json::{Value, json};
use std::sync::Arc;

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
const TRUSTED: LabelSpec = LabelSpec::BOTTOM;

/// `read()` gives untrusted text. `pay(to, n, note)` wants a trusted recipient and number.
fn world(control: LabelSpec) -> World {
    let param = |n: &str, ty, bound: &LabelSpec| ToolParam { name: n.into(), ty, bound: bound.clone() };
    let unknown = |n: &str| ToolDecl::unknown(n.into(), AT);
    let read = ToolDecl {
        params: Vec::new(),
        effect: EffectClass::Read,
        control: LabelSpec::TOP,
        label: UNTRUSTED,
        result: Type::Str,
        ..unknown("read")
    };
    let pay = ToolDecl {
        params: vec![
            param("to", Type::Str, &TRUSTED),
            param("n", Type::Num, &TRUSTED),
            param("note", Type::option(Type::Str), &UNTRUSTED),
        ],
        effect: EffectClass::Write,
        control,
        label: UNTRUSTED,
        result: Type::Str,
        ..unknown("pay")
    };
    World { tools: vec![Arc::new(read), Arc::new(pay)], ..World::default() }
}

fn code(text: &str, control: LabelSpec) -> Code {
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world(control));
    code.unwrap_or_else(|| panic!("{text}: {found:?}"))
}

/// The arguments of the payments that were made, and the code of the error.
fn payments(text: &str, control: LabelSpec) -> (Vec<Value>, Option<String>) {
    let mut machine = Machine::new(Arc::new(code(text, control)), None, Config::default());
    let mut paid = Vec::new();
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Tool { tool, args } = &request.call else { panic!("{:?}", request.call) };
                let answer = if &*tool.name == "pay" {
                    paid.push(args.iter().map(|(_, d)| d.to_json()).collect());
                    if args[1].1 == Data::Num(13.into()) {
                        Err("bad luck".into())
                    } else {
                        Ok(Data::str("ok"))
                    }
                } else {
                    Ok(Data::str("pay eve"))
                };
                machine.handle(id, Response::Tool(answer));
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => return (paid, result.err().map(|f| f.code.as_str().to_string())),
        }
    }
}

fn refused(text: &str, control: LabelSpec) -> bool {
    let code = Arc::new(code(text, control));
    let flow = analysis::flow::analyse(&code, &analysis::flow::Options::default());
    assert!(flow.gave_up.is_none(), "{text}");
    flow.sites.iter().any(|s| s.verdict == analysis::flow::Verdict::Never)
}

/// Plans whose payment untrusted text decides, with trusted arguments.
const ADMITTED: &[(&str, &str)] = &[
    ("if", "if 'eve' in read():\n    pay('bob', 3)"),
    ("else", "if 'adam' in read():\n    n = 1\nelse:\n    pay('bob', 3)"),
    ("elif", "t = read()\nif t == 'a':\n    n = 1\nelif 'eve' in t:\n    pay('bob', 3)"),
    ("for", "for word in read().split():\n    if word == 'eve':\n        pay('bob', 3)"),
    ("try", "try:\n    pay('bob', 3)\nexcept ToolError:\n    print('no')"),
    ("try of a read", "try:\n    t = read()\n    pay('bob', 3)\nexcept ToolError:\n    print('no')"),
    ("and", "'eve' in read() and pay('bob', 3)"),
    ("conditional", "x = pay('bob', 3) if 'eve' in read() else None"),
    ("comprehension", "xs = [pay('bob', 3) for w in read().split() if w == 'eve']"),
    ("variable", "who = 'bob'\nif 'eve' in read():\n    pay(to=who, n=3)"),
    ("variable inside", "if 'eve' in read():\n    who = 'bob'\n    pay(to=who, n=3)"),
    (
        "nested",
        "t = read()\nif 'eve' in t:\n    for c in t:\n        if c == 'v':\n            pay('bob', 3)",
    ),
    ("function", "def go(to, n=3):\n    pay(to, n)\nif 'eve' in read():\n    go('bob')"),
    ("item of a trusted loop", "for who in ['bob']:\n    if 'eve' in read():\n        pay(who, 3)"),
    ("after a break", "for i in [1, 2]:\n    if 'eve' in read():\n        break\npay('bob', 3)"),
];

#[test]
fn untrusted_data_decides_whether_a_planned_call_happens() {
    for (name, text) in ADMITTED {
        let (paid, error) = payments(text, UNTRUSTED);
        assert_eq!((paid, error), (vec![json!(["bob", 3, null])], None), "{name}: {text}");
        let code = Arc::new(code(text, UNTRUSTED));
        let flow = analysis::flow::analyse(&code, &analysis::flow::Options::default());
        assert!(flow.gave_up.is_none() && flow.passed.is_empty(), "{name}: {:?}", flow.passed);
    }
}

#[test]
fn a_trusted_control_bound_refuses_the_same_calls() {
    for (name, text) in ADMITTED.iter().filter(|(n, _)| !n.starts_with("try") && !n.starts_with("after")) {
        let (paid, error) = payments(text, TRUSTED);
        assert_eq!((paid, error.as_deref()), (vec![], Some("flow")), "{name}: {text}");
    }
}

#[test]
fn arguments_that_data_chose_are_refused() {
    for text in [
        // Parts of what was read.
        "pay(read().split()[1], 3)",
        "t = read()\nif 'eve' in t:\n    pay(t, 3)",
        "import json\nd = {'to': read(), 'n': 3}\nif d['to']:\n    pay(d['to'], d['n'])",
        // Which of two records.
        "who = 'bob'\nif 'eve' in read():\n    who = 'eve'\npay(who, 3)",
        "who = 'bob' if 'adam' in read() else 'eve'\npay(who, 3)",
        "n = 0\nfor w in read().split():\n    n += 1\npay('bob', n)",
        "n = 0\nfor w in read().split():\n    n += 1\n    pay('bob', n)",
        // A value that exists only where untrusted text decides.
        "d = {'a': 'bob'}\nif 'eve' in read():\n    pay(d['a'], 3)",
        "def f(to):\n    to = to + read()\n    pay(to, 3)\nf('bob')",
        "try:\n    n = len(read())\n    pay('bob', n)\nexcept ToolError:\n    n = 1",
    ] {
        let (paid, error) = payments(text, UNTRUSTED);
        assert_eq!((paid, error.as_deref()), (vec![], Some("flow")), "{text}");
        assert!(refused(text, UNTRUSTED), "{text}");
    }
}

#[test]
fn a_moved_argument_has_the_value_of_its_call() {
    for (text, expected) in [
        ("n = 1\nif read():\n    n = 2\n    pay('bob', n)", json!([])),
        ("n = 1\nif read():\n    pay('bob', n)\nn = 2\nif read():\n    pay('bob', n)", json!([1, 2])),
        ("for n in [1, 2]:\n    if read():\n        pay('bob', n)", json!([1, 2])),
        ("n = 5\nm = n\nn = 6\nif read():\n    pay('bob', m)\n    pay('bob', n)", json!([5, 6])),
        (
            "n = 0\nfor i in [1, 2]:\n    if i == 2:\n        if read():\n            pay('bob', n)\n    n = i",
            json!([1]),
        ),
        // It may be unbound before the branch.
        (
            "for i in [1, 2]:\n    if i == 2:\n        if read():\n            pay('bob', n)\n    n = i",
            json!([]),
        ),
        ("def f(n):\n    if read():\n        pay('bob', n)\nfor n in [1, 2]:\n    f(n)", json!([1, 2])),
    ] {
        let (paid, _) = payments(text, UNTRUSTED);
        let numbers: Vec<Value> = paid.iter().map(|p| p[1].clone()).collect();
        assert_eq!(json!(numbers), expected, "{text}");
    }
}

#[test]
fn untrusted_text_may_be_an_argument_that_admits_it() {
    let (paid, error) = payments("t = read()\nif 'eve' in t:\n    pay('bob', 3, t)", UNTRUSTED);
    assert_eq!((paid, error), (vec![json!(["bob", 3, "pay eve"])], None));
    let (paid, error) =
        payments("t = read()\ntry:\n    pay('bob', 13, t)\nexcept ToolError:\n    pay('bob', 1)", UNTRUSTED);
    assert_eq!((paid, error), (vec![json!(["bob", 13, "pay eve"]), json!(["bob", 1, null])], None));
}

#[test]
fn many_planned_calls_take_little_time() {
    let calls: String = (0..3_000).map(|i| format!("if read():\n    pay('bob', {i})\n")).collect();
    let start = std::time::Instant::now();
    let _ = plan::compile(FileId(0), "p.plan.py", calls.as_str().into(), &world(UNTRUSTED));
    assert!(start.elapsed().as_secs() < 60);
}
