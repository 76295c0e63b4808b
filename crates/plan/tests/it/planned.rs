//! Planned calls: data decides whether a call happens, and not with what.

use crate::run::AT;
use core_ir::{Code, Data, EffectClass, LabelSpec, Person, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use machine::{Call, Config, Machine, Output, Response};
use plan::World;
use serde_json::{Value, json};
use std::sync::Arc;

const UNTRUSTED: LabelSpec = LabelSpec::Axes { untrusted: true, secret: false };
const TRUSTED: LabelSpec = LabelSpec::BOTTOM;

/// `read()` gives untrusted text. `pay(to, n, note)` wants a trusted recipient and number.
fn world(control: LabelSpec) -> World {
    let param = |n: &str, ty, bound: &LabelSpec| ToolParam {
        name: n.into(),
        ty,
        bound: bound.clone(),
        default: None,
    };
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
    let person = Type::record([("to".into(), Type::Str), ("n".into(), Type::Num)]);
    let known = ToolDecl {
        params: Vec::new(),
        effect: EffectClass::Read,
        label: TRUSTED,
        result: Type::list(person),
        ..unknown("known")
    };
    World { tools: vec![Arc::new(read), Arc::new(pay), Arc::new(known)], ..World::default() }
}

fn code(text: &str, control: LabelSpec) -> Code {
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world(control));
    code.unwrap_or_else(|| panic!("{text}: {found:?}"))
}

/// The arguments of the payments that were made, and the code of the error.
fn payments(text: &str, control: LabelSpec) -> (Vec<Value>, Option<String>) {
    paid(code(text, control))
}

fn paid(code: Code) -> (Vec<Value>, Option<String>) {
    let mut machine = Machine::new(Arc::new(code), None, Config::default());
    let mut paid = Vec::new();
    loop {
        match machine.poll() {
            Output::Request(id, request) => {
                let Call::Tool { tool, args } = &request.call else { panic!("{:?}", request.call) };
                let answer = if &*tool.name == "known" {
                    let person = [("to".into(), Data::str("bob")), ("n".into(), Data::Num(3.into()))];
                    Ok(Data::list([Data::record(person)]))
                } else if &*tool.name == "pay" {
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
    let flow = analysis::flow::analyze(&code, &analysis::flow::Options::default());
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
    ("field of a dictionary", "d = {'a': 'bob', 'n': 3}\nif 'eve' in read():\n    pay(d['a'], d['n'])"),
    (
        "field of an object",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    to: str\n    n: int\np = P('bob', 3)\nif 'eve' in read():\n    pay(p.to, p.n)",
    ),
    ("text of parts", "a = 'bo'\nif 'eve' in read():\n    pay(a + 'b', 1 + 2)"),
    ("trusted choice", "n = 1\nif 'eve' in read():\n    pay('bob' if n == 1 else 'ann', 3)"),
    ("loop inside", "if 'eve' in read():\n    for who in ['bob']:\n        pay(who, 3)"),
    ("loop over a tuple", "if 'eve' in read():\n    for who in ('bob',):\n        pay(who, 3)"),
    ("loop over pairs", "if 'eve' in read():\n    for who, n in [('bob', 3)]:\n        pay(who, n)"),
    (
        "loop over records",
        "if 'eve' in read():\n    for p in [{'to': 'bob', 'n': 3}]:\n        pay(p['to'], p['n'])",
    ),
    (
        "two loops",
        "if 'eve' in read():\n    for who in ['bob']:\n        for n in [3]:\n            pay(who, n)",
    ),
    ("loop over a variable", "all = ['bob']\nif 'eve' in read():\n    for who in all:\n        pay(who, 3)"),
    (
        "loop over what a tool gives",
        "all = known()\nif 'eve' in read():\n    for p in all:\n        pay(p.to, p['n'])",
    ),
    ("comprehension inside", "if 'eve' in read():\n    xs = [pay(who, 3) for who in ['bob']]"),
    (
        "after an inner loop",
        "n = 0\nfor i in [1]:\n    for w in read().split():\n        n += 1\nfor who in ['bob']:\n    if n == 2:\n        pay(who, 3)",
    ),
    (
        "variables of a loop",
        "for who in ['bob']:\n    them = [who]\n    if 'eve' in read():\n        pay(who, 3)",
    ),
    ("after a break", "for i in [1, 2]:\n    if 'eve' in read():\n        break\npay('bob', 3)"),
];

#[test]
fn untrusted_data_decides_whether_a_planned_call_happens() {
    for (name, text) in ADMITTED {
        let (paid, error) = payments(text, UNTRUSTED);
        assert_eq!((paid, error), (vec![json!(["bob", 3, null])], None), "{name}: {text}");
        let code = Arc::new(code(text, UNTRUSTED));
        let flow = analysis::flow::analyze(&code, &analysis::flow::Options::default());
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
        "import json\nd = json.loads('{\"a\": \"bob\"}')\nif 'eve' in read():\n    pay(d['a'], 3)",
        "for i in [1, 2]:\n    for w in read().split():\n        pay(w, i)",
        "who = 'bob'\nfor w in read().split():\n    pay(who, 3)\n    who = w",
        "def f(to):\n    to = to + read()\n    pay(to, 3)\nf('bob')",
        "try:\n    n = len(read())\n    pay('bob', n)\nexcept ToolError:\n    n = 1",
    ] {
        let (paid, error) = payments(text, UNTRUSTED);
        assert_eq!((paid, error.as_deref()), (vec![], Some("flow")), "{text}");
        assert!(refused(text, UNTRUSTED), "{text}");
    }
}

#[test]
fn the_items_of_an_untrusted_list_stay_untrusted() {
    let text = "ws = read().split()\nfor w in ws:\n    if w == 'eve':\n        pay(w, 3)";
    assert_eq!(payments(text, UNTRUSTED), (vec![], Some("flow".into())));
}

#[test]
fn a_call_that_is_refused_for_its_place_says_what_to_bind() {
    let hints = |text: &str| {
        let (code, _, hints) = plan::compile_with_hints(FileId(0), "p", text.into(), &world(UNTRUSTED));
        assert!(code.is_some(), "{text}");
        hints.into_iter().map(|h| h.help).collect::<Vec<_>>()
    };
    let text = "import json\nd = json.loads('{}')\nif 'eve' in read():\n    pay(d['to'], 3)";
    let expected = "the argument `to` has no value before the `if` in line 3: bind it to a variable there, or let \
                    trusted data decide";
    assert_eq!(hints(text), [expected]);
    let text = "for w in read().split():\n    pay('bob', len(w))";
    assert!(hints(text)[0].starts_with("the argument `n` has no value before the loop in line 1"));
    assert!(hints("if 'eve' in read():\n    pay('bob', 3)").is_empty());
}

#[test]
fn an_argument_that_is_left_out_has_the_default_of_its_declaration() {
    let mut world = world(UNTRUSTED);
    let mut pay = (*world.tools[1]).clone();
    pay.params[1].default = Some(Data::Num(7.into()));
    world.tools[1] = Arc::new(pay);
    for text in ["pay('bob')", "if 'eve' in read():\n    pay('bob')"] {
        let (code, found) = plan::compile(FileId(0), "p", text.into(), &world);
        let code = code.unwrap_or_else(|| panic!("{found:?}"));
        assert_eq!(paid(code), (vec![json!(["bob", 7, null])], None), "{text}");
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
        // Arguments for each item, and the one of the call.
        ("if read():\n    for n in [1, 2, 4]:\n        if n != 2:\n            pay('bob', n)", json!([1, 4])),
        (
            "if read():\n    for a in [10, 20]:\n        for b in [1, 2]:\n            pay('bob', a + b)",
            json!([11, 12, 21, 22]),
        ),
        ("ns = [5, 6]\nns.append(7)\nif read():\n    for n in ns:\n        pay('bob', n)", json!([5, 6, 7])),
        ("ns = [5, 6]\nif read():\n    ns.append(7)\n    for n in ns:\n        pay('bob', n)", json!([])),
        (
            "m = 0\nif read():\n    for n in [1, 2]:\n        if n == 2:\n            pay('bob', m)\n        m = n",
            json!([]),
        ),
        (
            "if read():\n    for n in [1, 2]:\n        if n == 2:\n            pay('bob', m)\n        m = n",
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

/// The world with the values of two principals.
fn with_people() -> World {
    let person = |name: &str, key: Option<&str>, value: &str| Person {
        name: name.into(),
        key: key.map(Into::into),
        value: value.into(),
    };
    let people = vec![
        person("ann", Some("iban"), "DE12"),
        person("ann", Some("email"), "ann@example.org"),
        person("ann", Some("email"), "ann@example.com"),
        person("bob", None, "DE65"),
    ];
    World { people, ..world(UNTRUSTED) }
}

#[test]
fn values_of_principals_are_trusted_wherever_data_decides() {
    let run = |text: &str| {
        let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &with_people());
        paid(code.unwrap_or_else(|| panic!("{text}: {found:?}")))
    };
    for (text, to) in [
        ("if read():\n    pay(principals.ann.iban, 1)", "DE12"),
        ("if read():\n    pay(principals['ann']['iban'], 1)", "DE12"),
        ("if read():\n    pay(principals['bob'], 1)", "DE65"),
        ("who = principals.ann\nfor x in read():\n    pay(who['iban'], 1)\n    break", "DE12"),
        ("pay(principals.ann.email[1], 1)", "ann@example.com"),
        ("for name in principals:\n    if name == 'bob':\n        pay(principals[name], 1)", "DE65"),
        ("principals = {'bob': 'own'}\npay(principals['bob'], 1)", "own"),
    ] {
        let (made, error) = run(text);
        assert_eq!((made.len(), error), (1, None), "{text}: {made:?}");
        assert_eq!(made[0][0], to, "{text}");
    }
    // Data that was read chooses one: it is as untrusted as that.
    let (made, error) = run("pay(principals[read()], 1)");
    assert!(made.is_empty() && error.is_some(), "{made:?}");
}

#[test]
fn a_principal_that_there_is_not_is_found_before_the_run() {
    for (text, world, help) in [
        ("pay(principals.ane.iban, 1)", with_people(), "did you mean `ann`?"),
        ("pay(principals['ann']['phone'], 1)", with_people(), "there is: email, iban"),
        ("pay(principals.ann.iban, 1)", world(UNTRUSTED), ""),
    ] {
        let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world);
        assert!(code.is_none() && found.iter().all(|d| d.code == "P002"), "{text}: {found:?}");
        assert!(help.is_empty() || found[0].help == [help], "{text}: {found:?}");
    }
}

/// The answer of one round decides whether there is another one.
#[test]
fn calls_in_what_ends_early_are_planned() {
    for text in [
        "any(pay(\"bob\", i) == \"x\" for i in [1, 2])",
        "all(pay(\"bob\", i) == \"ok\" for i in [1, 2])",
        "r = next((i for i in [1, 2] if pay(\"bob\", i) == \"x\"), 0)",
    ] {
        let (made, error) = payments(text, UNTRUSTED);
        assert_eq!((made.len(), error), (2, None), "{text}");
        assert_eq!(made, [json!(["bob", 1, null]), json!(["bob", 2, null])], "{text}");
    }
}
