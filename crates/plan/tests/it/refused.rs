//! Refused plans, with code and remedy.

use crate::run::compile;
use plan::codes;

fn codes_of(text: &str) -> Vec<&'static str> {
    compile(text).err().map_or_else(Vec::new, |found| found.iter().map(|d| d.code).collect())
}

#[test]
fn each_refusal_has_its_code_and_a_remedy() {
    for (text, code) in [
        ("x = = 1", codes::SYNTAX),
        ("import os", codes::SUBSET),
        ("from subprocess import run", codes::SUBSET),
        ("class A:\n    pass", codes::SUBSET),
        ("def f(n):\n    return f(n - 1)\nf(3)", codes::SUBSET),
        ("eval('1')", codes::SUBSET),
        ("x = (y := 1)", codes::SUBSET),
        ("def f(*a):\n    return a\nf(1)", codes::SUBSET),
        ("echo(*[1])", codes::SUBSET),
        ("with echo(1) as f:\n    pass", codes::SUBSET),
        ("async def f():\n    pass", codes::SUBSET),
        ("def f():\n    yield 1\nf()", codes::SUBSET),
        ("fs = [lambda: i for i in range(3)]", codes::SUBSET),
        ("x = 'a'.__class__", codes::SUBSET),
        ("a, *b = [1, 2]", codes::SUBSET),
        ("x = [1]\ndel x[0]", codes::SUBSET),
        ("x = [1] is [1]", codes::SUBSET),
        ("import re\nre.findall('(?=a)', 'a')", codes::SUBSET),
        ("ech(1)", codes::UNKNOWN_NAME),
        ("print(y)", codes::UNKNOWN_NAME),
        ("add(a=1, c=2)", codes::ARGUMENTS),
        ("add(1, 2, 3)", codes::ARGUMENTS),
        ("def f(a):\n    return a\nf()", codes::ARGUMENTS),
        ("a = [1]\nb = a\nb.append(2)", codes::SHARED),
        ("a = [1]\nb = a\na.append(2)", codes::SHARED),
        ("a = [1]\nd = {'k': a}\nd['k'].append(2)", codes::SHARED),
        ("rows = items(2)\nfor r in rows:\n    r['id'] = 5", codes::SHARED),
        ("def f(x):\n    x.append(1)\na = [1]\nf(a)", codes::SHARED),
        ("xs = [1]\ndef f():\n    xs.append(1)\nf()", codes::SHARED),
        ("def f(x=[]):\n    x.append(1)\n    return x\nf()", codes::SHARED),
        ("xs = [1]\nfor x in xs:\n    xs.append(x)", codes::ITERATED),
        ("d = {1: 2}\nfor k, v in d.items():\n    d[v] = k", codes::ITERATED),
    ] {
        let found = compile(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(found.iter().any(|d| d.code == code), "{text}: {found:?}");
        for d in &found {
            assert!(code == codes::SYNTAX || !d.help.is_empty(), "{text}: {d:?}");
        }
    }
}

#[test]
fn the_examples_of_each_code_hold() {
    use core_ir::{EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
    use std::sync::Arc;
    let tool = |name: &str, params: &[(&str, Type)]| {
        let params = params
            .iter()
            .map(|(n, ty)| ToolParam { name: (*n).into(), ty: ty.clone(), bound: LabelSpec::BOTTOM })
            .collect();
        let unknown = ToolDecl::unknown(name.into(), crate::run::AT);
        Arc::new(ToolDecl { params, effect: EffectClass::Read, ..unknown })
    };
    let world = plan::World {
        tools: vec![
            tool("send_money", &[("recipient", Type::Str), ("amount", Type::Num)]),
            tool("read_file", &[("path", Type::Str)]),
        ],
        ..plan::World::default()
    };
    for e in codes::EXPLANATIONS {
        if !e.wrong.is_empty() {
            let (_, found) = plan::compile(diagnostics::FileId(0), "p", e.wrong.into(), &world);
            assert_eq!(found.first().map(|d| d.code), Some(e.code), "{}: {found:?}", e.code);
        }
        let (code, found) = plan::compile(diagnostics::FileId(0), "p", e.right.into(), &world);
        assert!(code.is_some(), "{}: {found:?}", e.code);
    }
}

#[test]
fn hostile_plans_are_refused_quickly() {
    let deep = format!("x = {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let nested = format!("x = {}1", "-".repeat(100_000));
    let blocks: String = (0..3_000).map(|i| format!("{}if True:\n", " ".repeat(i))).collect();
    let lists = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let chain = format!("x = 1{}", " + 1".repeat(50_000));
    let long = format!("x = '{}'", "a".repeat(10 << 20));
    for text in [&deep, &nested, &lists, &chain, &long, &blocks, "\u{0}", "{{{", "))))"] {
        assert!(compile(text).is_err() || text.len() > 100_000, "{}", &text[..text.len().min(40)]);
    }
    assert_eq!(codes_of(&lists), [codes::TOO_LARGE]);
    assert_eq!(codes_of(&chain), [codes::TOO_LARGE]);
    assert_eq!(codes_of(&long), [codes::SYNTAX]);
}

#[test]
fn a_loop_that_never_ends_is_stopped_and_nothing_catches_it() {
    let code =
        compile("n = 0\ntry:\n    while True:\n        n += 1\nexcept Exception:\n    n = -1\nn").unwrap();
    assert_eq!(crate::run::run(code).result, Err("limit".into()));
}

#[test]
fn no_term_reclassifies() {
    use core_ir::Term;
    let text = "x = echo(1)\ntry:\n    y = x + 1\nexcept ToolError:\n    y = 2\ny";
    let code = compile(text).unwrap();
    assert!(!code.reaches(|t| matches!(t, Term::Endorse(..) | Term::Declassify(..))));
}
