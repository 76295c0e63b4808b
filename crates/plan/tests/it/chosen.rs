//! Choices of an attacker at the sinks of a plan, as far as it is known before the run.

use crate::run::AT;
use analysis::flow::{Options, Sink, Site, analyze, refusal};
use core_ir::{EffectClass, EnumType, LabelSpec, ToolDecl, ToolParam, Type};
use diagnostics::FileId;
use plan::World;
use policy::Policy;
use std::sync::Arc;

const POLICY: &str = r#"
[tools.read]
effect = "read"
[tools.contacts]
effect = "read"
result = "trusted"
[tools.send]
effect = "write"
control = "untrusted"
bounds = { body = "untrusted", kind = "untrusted", loud = "untrusted", count = "untrusted" }
among = { to = "request | tools.contacts()" }
plain = { body = "no-links" }
[output]
bound = "untrusted"
plain = "no-links"
"#;

/// The sentences about each sink of a plan.
fn chosen(text: &str) -> Vec<String> {
    sites(POLICY, text).iter().flat_map(|s| s.chosen.iter().map(|c| c.describe())).collect()
}

/// The tools that a plan calls, and its answer.
fn sites(policy: &str, text: &str) -> Vec<Site> {
    let policy = Policy::parse(FileId(1), policy).unwrap();
    let tool = |name: &str, params: Vec<(&str, Type)>, result| {
        let param =
            |(n, ty): (&str, Type)| ToolParam { name: n.into(), ty, bound: LabelSpec::BOTTOM, default: None };
        let params = params.into_iter().map(param).collect();
        let effect = EffectClass::Write;
        Arc::new(ToolDecl { params, result, effect, ..ToolDecl::unknown(name.into(), AT) })
    };
    let kind = EnumType::new("Kind", vec!["a".into(), "b".into(), "c".into()]);
    let params = vec![
        ("to", Type::Str),
        ("body", Type::Str),
        ("kind", Type::option(Type::Enum(Arc::new(kind)))),
        ("loud", Type::option(Type::Bool)),
        ("count", Type::option(Type::Num)),
    ];
    let tools = vec![
        tool("read", vec![], Type::Str),
        tool("contacts", vec![], Type::list(Type::Str)),
        tool("send", params, Type::Str),
    ];
    let world = World { tools, ..World::default() };
    let (code, found) = plan::compile(FileId(0), "p.plan.py", text.into(), &world);
    let mut code = code.unwrap_or_else(|| panic!("{text}: {found:?}"));
    assert_eq!(policy.apply(&mut code), []);
    let options = Options { answer: policy.answer.clone(), ..Options::default() };
    let report = analyze(&Arc::new(code), &options);
    assert!(report.gave_up.is_none());
    report.sites.into_iter().filter(|s| matches!(s.sink, Sink::Tool(_) | Sink::Answer)).collect()
}

#[test]
fn each_sink_says_what_an_attacker_may_choose() {
    let text = "t = read()\nsend(to=t, body=t, kind=t, loud=(t == 'a'), count=len(t))\nprint('done')";
    assert_eq!(
        chosen(text),
        [
            "an attacker may choose `to`: one of the tokens of the request, or of what `contacts` gave before the run",
            "an attacker may choose `body`: any text without links, addresses and numbers",
            "an attacker may choose `kind`: one of 4",
            "an attacker may choose `loud`: one of 3",
            "an attacker may choose `count`: any number",
        ]
    );
}

#[test]
fn trusted_arguments_are_nobodys_choice() {
    assert_eq!(chosen("send(to='bob', body='hi')\n'done'"), [""; 0]);
    // Neither are those of a planned call, although untrusted data decides that it happens.
    assert_eq!(chosen("if 'a' in read():\n    send(to='bob', body='hi')\n'done'"), [""; 0]);
}

/// A literal stays a literal where a call can't be planned. Data choose between several of them.
#[test]
fn a_literal_under_a_condition_is_nobodys_choice() {
    let body = ["an attacker may choose `body`: any text without links, addresses and numbers"];
    let one = "t = read()\nif 'a' in t:\n    send(to='bob', body=t.split()[0], count=5, loud=True)\n'done'";
    assert_eq!(chosen(one), body);
    let two = "t = read()\ndef f(n):\n    send(to='bob', body=t.split()[0], count=n)\nif 'a' in t:\n    f(5)\n\
               else:\n    f(6)\n'done'";
    assert_eq!(chosen(two), [body[0], "an attacker may choose `count`: one of 2"]);
}

/// A pattern and a limit of calls are named for what they are.
#[test]
fn a_pattern_and_a_limit_are_named() {
    let of = |rules: &str, text: &str| {
        let policy = format!("[tools.read]\neffect = \"read\"\n[tools.send]\neffect = \"write\"\n{rules}");
        let site = sites(&policy, text).into_iter().find(|s| s.sink == Sink::Tool("send".into())).unwrap();
        let said: Vec<String> = site.chosen.iter().map(|c| c.describe()).collect();
        (said, refusal(&site).map_or_else(String::new, |d| d.message))
    };
    let bounds = "bounds = { body = \"untrusted\" }\n";
    let pattern = format!("{bounds}pattern = {{ body = \"[0-9]{{6}}\" }}\n");
    let (said, refused) = of(&pattern, "send(to='bob', body=read())\n'done'");
    assert_eq!(said, ["an attacker may choose `body`: any text that matches `[0-9]{6}`"]);
    assert_eq!(refused, "the tool `send` may be refused here by the form of the argument (`pattern`)");
    let (said, refused) = of(&format!("{bounds}at_most = 2\n"), "send(to='bob', body=read())\n'done'");
    assert_eq!(said, ["an attacker may choose `body`: any text"]);
    assert_eq!(refused, "the tool `send` may be refused here by the number of calls of a run (`at_most`)");
    let (_, refused) = of("approve = \"if-refused\"\n", "send(to='bob', body=read())\n'done'");
    assert_eq!(
        refused,
        "the tool `send` may be refused here by a person (only where the bounds would refuse)"
    );
}

#[test]
fn the_answer_is_a_sink() {
    let found = chosen("read()");
    assert_eq!(found, ["an attacker may choose the answer: anything without links, addresses and numbers"]);
}
