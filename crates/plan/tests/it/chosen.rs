//! Choices of an attacker at the sinks of a plan, as far as it is known before the run.

use crate::run::AT;
use analysis::flow::{Options, Sink, analyze};
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
    let policy = Policy::parse(FileId(1), POLICY).unwrap();
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
    let sinks = report.sites.iter().filter(|s| matches!(s.sink, Sink::Tool(_) | Sink::Answer));
    sinks.flat_map(|s| s.chosen.iter().map(|c| c.describe())).collect()
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

#[test]
fn the_answer_is_a_sink() {
    let found = chosen("read()");
    assert_eq!(found, ["an attacker may choose the answer: anything without links, addresses and numbers"]);
}
