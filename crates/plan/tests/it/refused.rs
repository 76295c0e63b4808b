//! Refused plans, with code and remedy.

use crate::run::compile;
use plan::codes;

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
        ("xs = [1, 2]\nxs[::2] = [1]", codes::SUBSET),
        ("x = float('inf')", codes::SUBSET),
        ("x = map(str, [1])", codes::SUBSET),
        ("x = sum(map(echo, [1]))", codes::SUBSET),
        ("x = next([1])", codes::SUBSET),
        ("x = 'a'.appendd(1)", codes::SUBSET),
        ("x = str.intersection('a')", codes::SUBSET),
        ("x = sorted(['a'], key=list.upper)", codes::SUBSET),
        ("from collections import deque\nx = deque()", codes::SUBSET),
        ("from collections import defaultdict\nx = defaultdict(lambda: 1)", codes::SUBSET),
        ("from statistics import mean", codes::SUBSET),
        ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass A:\n    x: int", codes::SUBSET),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: list = []", codes::SUBSET),
        ("from enum import Enum\nclass A(Enum):\n    pass", codes::SUBSET),
        ("class E(Exception):\n    x = 1", codes::SUBSET),
        ("x = type(1)", codes::SUBSET),
        ("x = [1]\ndel x[0]", codes::SUBSET),
        ("x = [1] is [1]", codes::SUBSET),
        ("import re\nre.findall('(?=a)', 'a')", codes::SUBSET),
        ("class E(KeyError):\n    pass\ntry:\n    raise E(1)\nexcept E as e:\n    x = e.args", codes::SUBSET),
        ("ech(1)", codes::UNKNOWN_NAME),
        ("print(y)", codes::UNKNOWN_NAME),
        ("from enum import Enum\nclass A(Enum):\n    X = 1\nA.Y", codes::UNKNOWN_NAME),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nA()", codes::ARGUMENTS),
        ("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nA(1, 2)", codes::ARGUMENTS),
        ("add(a=1, c=2)", codes::ARGUMENTS),
        ("add(1, 2, 3)", codes::ARGUMENTS),
        ("def f(a):\n    return a\nf()", codes::ARGUMENTS),
        ("a = [1]\nb = a\nb.append(2)", codes::SHARED),
        ("a = [1]\nb = a\na.append(2)", codes::SHARED),
        ("a = [1]\nd = {'k': a}\nd['k'].append(2)", codes::SHARED),
        ("rows = items(2)\nfor r in rows:\n    r['id'] = 5", codes::SHARED),
        ("xs = [[1]]\nys = list(enumerate(xs))[0][1]\nys.append(2)", codes::SHARED),
        ("d = {'a': [1]}\nc = dict(d.items())\nc['a'].append(2)", codes::SHARED),
        ("d = {'a': [1]}\nc = {**dict(d)}\nc['a'].append(2)", codes::SHARED),
        ("xs = [[1]]\nys = list(filter(None, xs))[0]\nys.append(2)", codes::SHARED),
        ("xs = [[1]]\nys = list(map(lambda x: x, xs))\nys[0].append(2)", codes::SHARED),
        ("def f(x):\n    x.append(1)\na = [1]\nf(a)", codes::SHARED),
        ("xs = [1]\ndef f():\n    xs.append(1)\nf()", codes::SHARED),
        ("def f(x=[]):\n    x.append(1)\n    return x\nf()", codes::SHARED),
        (
            "xs = [1]\nys = []\nfor i in [1, 2]:\n    if i == 1:\n        ys = xs\n        continue\n    ys.append(5)",
            codes::SHARED,
        ),
        ("g = [[0] * 2] * 2\ng[0][0] = 1", codes::SHARED),
        ("g = 2 * [[0]]\ng[0].append(1)", codes::SHARED),
        ("g = [[0]]\ng *= 2\ng[0].append(1)", codes::SHARED),
        ("g = []\ng += [[]] * 2\ng[0].append(1)", codes::SHARED),
        ("g = []\ng.extend([[]] * 2)\ng[0].append(1)", codes::SHARED),
        ("a, b = [[]] * 2\na.append(1)", codes::SHARED),
        ("for r in [[]] * 2:\n    r.append(1)", codes::SHARED),
        ("g = [r for r in [[]] * 2]\ng[0].append(1)", codes::SHARED),
        ("d = dict.fromkeys('ab', [])\nd['a'].append(1)", codes::SHARED),
        ("x = []\nd = dict.fromkeys('ab', x)\nx.append(1)", codes::SHARED),
        ("x = [1]\nd = {}\nd.update(a=x)\nd['a'].append(1)", codes::SHARED),
        ("x = [1]\nd = dict(a=x)\nd['a'].append(1)", codes::SHARED),
        ("if True:\n    break", codes::SYNTAX),
        ("def f():\n    continue", codes::SYNTAX),
        ("for i in [1]:\n    pass\nelse:\n    continue", codes::SYNTAX),
        ("for i in [1]:\n    def f():\n        break", codes::SYNTAX),
        ("xs = [1]\nfor x in xs:\n    xs.append(x)", codes::ITERATED),
        ("d = {1: 2}\nfor k, v in d.items():\n    d[v] = k", codes::ITERATED),
        // A new value on one way leaves the old one under iteration on the other.
        ("xs = [1]\nfor x in xs:\n    if x:\n        xs = [2]\n    else:\n        xs.pop()", codes::ITERATED),
        ("xs = [1]\nfor x in xs:\n    if x:\n        xs = [2]\n    xs.pop()", codes::ITERATED),
        (
            "xs = [1]\nfor x in xs:\n    try:\n        xs = [echo(2)]\n    except ToolError:\n        xs.pop()",
            codes::ITERATED,
        ),
    ] {
        let found = compile(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(found.iter().any(|d| d.code == code), "{text}: {found:?}");
        for d in &found {
            assert!(code == codes::SYNTAX || !d.help.is_empty(), "{text}: {d:?}");
        }
    }
}

/// Each plan with the help of its first mistake, and the plan that follows it.
#[test]
fn a_remedy_works_when_it_is_followed() {
    let class = "from dataclasses import dataclass, replace\n@dataclass\nclass A:\n    x: int\n";
    for (wrong, help, right) in [
        (
            "a = [['.'] * 2] * 2\na[0][1] = 'x'",
            "`a = [list(x) for x in a]`",
            "a = [['.'] * 2] * 2\na = [list(x) for x in a]\na[0][1] = 'x'",
        ),
        (
            "d = {'a': {'n': 1}}\ne = {'d': d}\nd['a']['n'] = 2",
            "`d = {k: dict(v) for k, v in d.items()}`",
            "d = {'a': {'n': 1}}\ne = {'d': d}\nd = {k: dict(v) for k, v in d.items()}\nd['a']['n'] = 2",
        ),
        (
            &format!("{class}a = A(1)\nb = a\nb.x = 2"),
            "`b = replace(b)`",
            &format!("{class}a = A(1)\nb = a\nb = replace(b)\nb.x = 2"),
        ),
        (
            "rows = items(2)\nfor r in rows:\n    r['id'] = 5",
            "or change the original where it is, such as `xs[i]`",
            "rows = items(2)\nfor i in range(len(rows)):\n    rows[i]['id'] = 5",
        ),
        (
            "rows = items(2)\nfor r in rows:\n    r['id'] = 5",
            "`r = dict(r)` of a dictionary",
            "rows = items(2)\nfor r in rows:\n    r = dict(r)\n    r['id'] = 5",
        ),
        (
            "d = {'a': {'n': 1}}\nfor k in d:\n    d[k]['n'] += 1",
            "`list(d.keys())`",
            "d = {'a': {'n': 1}}\nfor k in list(d.keys()):\n    d[k]['n'] += 1",
        ),
        (
            "d = {'a': 1}\nfor k, v in d.items():\n    d[k] = v + 1",
            "`list(d.items())`",
            "d = {'a': 1}\nfor k, v in list(d.items()):\n    d[k] = v + 1",
        ),
        (
            "d = {}\nd.setdefault('a', []).append(1)",
            "`if key not in d: d[key] = …`",
            "d = {}\nif 'a' not in d:\n    d['a'] = []\nd['a'].append(1)",
        ),
        (
            "d = {}\nd.setdefault('a', {})['b'] = 1",
            "`if key not in d: d[key] = …`",
            "d = {}\nif 'a' not in d:\n    d['a'] = {}\nd['a']['b'] = 1",
        ),
    ] {
        let found = compile(wrong).expect_err(wrong);
        let said = found[0].help.join(" ");
        assert!(said.contains(help), "{wrong}\n{said}");
        assert!(compile(right).is_ok(), "{right}");
    }
}

#[test]
fn the_examples_of_each_code_hold() {
    use core_ir::{EffectClass, LabelSpec, ToolDecl, ToolParam, Type};
    use std::sync::Arc;
    let tool = |name: &str, params: &[(&str, Type)]| {
        let params = params
            .iter()
            .map(|(n, ty)| ToolParam {
                name: (*n).into(),
                ty: ty.clone(),
                bound: LabelSpec::BOTTOM,
                default: None,
            })
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
fn no_term_reclassifies() {
    use core_ir::Term;
    let text = "x = echo(1)\ntry:\n    y = x + 1\nexcept ToolError:\n    y = 2\ny";
    let code = compile(text).unwrap();
    assert!(!code.reaches(|t| matches!(t, Term::Endorse(..) | Term::Declassify(..))));
}
