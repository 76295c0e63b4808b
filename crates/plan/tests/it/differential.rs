//! Equal results, calls and classes of exceptions as in CPython.

use crate::cpython::{Python, equal};
use crate::generate;
use crate::run::{compile, compile_for, run};
use core_ir::LabelSpec;

/// Plans by hand: each construct of the subset.
pub const PLANS: &[&str] = &[
    "1 + 2 * 3",
    "x = 1\nx += 2\nx",
    "print('a', 1, [1, 'b'], {'k': None}, (1,), True)",
    "a, (b, c) = 1, [2, 3]\n[a, b, c]",
    "xs = [3, 1, 2]\nxs.sort()\nxs.append(5)\nxs[0] = 9\nxs",
    "d = {'b': 1, 'a': 2}\nd['c'] = 3\nd.pop('b')\nd['b'] = 4\nlist(d.items())",
    "total = 0\nfor x in [1, 2, 3]:\n    if x == 2:\n        continue\n    total += x\nelse:\n    total += 100\ntotal",
    "for x in range(5):\n    if x == 3:\n        break\nelse:\n    x = -1\nx",
    "n = 0\nwhile n < 5:\n    n += 1\n    if n == 4:\n        break\nn",
    "try:\n    x = 1\n    x = 2\n    y = {}['k']\nexcept KeyError as e:\n    x = x + 10\n    z = str(e)\n[x, z]",
    "def f(n):\n    try:\n        return echo(n)\n    finally:\n        echo('f')\nf(3)",
    "def f():\n    for i in range(3):\n        try:\n            continue\n        finally:\n            echo(i)\n    return 'done'\nf()",
    "def f():\n    try:\n        raise ValueError('a')\n    finally:\n        return 5\nf()",
    "try:\n    fail(1)\nexcept ToolError as e:\n    r = f'caught {e}'\nr",
    "try:\n    try:\n        fail(1)\n    except KeyError:\n        r = 1\n    finally:\n        echo('x')\nexcept ToolError:\n    r = 2\nr",
    "def outer(x):\n    def inner(y):\n        return x + y\n    return inner(1) + inner(2)\nouter(10)",
    "y = 1\ndef f():\n    return y\ny = 2\nf()",
    "k = 3\nsorted([5, 1, 4], key=lambda v: abs(v - k))",
    "max(items(3), key=lambda r: r['id'])['name']",
    "[x for x in items(3) if x['id'] > 0][0]['name']",
    "any(echo(x) > 1 for x in [1, 2, 3])",
    "all(echo(x) < 2 for x in [1, 2, 3])",
    "{'a': 1}['b']",
    "[1][5]",
    "'abc'[-1] + 'abc'[::-1] + 'abcdef'[-4:-1]",
    "1 / 0",
    "f'{3.14159:.2f} {42:>6} {\"x\":*^5} {1234567:,} {0.5:%} {\"q\"!r} {[1]}'",
    "','.join(sorted({'b', 'a', 'c'}))",
    "x = 5\n1 < x < 10",
    "1 < echo(0) < echo(5)",
    "x = None\nx is None",
    "xs = [1, 2, 3]\nys = [x * 2 for x in xs]\nxs.append(4)\n[xs, ys]",
    "groups = {}\nfor r in items(4):\n    k = r['id'] % 2\n    if k not in groups:\n        groups[k] = []\n    groups[k].append(r['name'])\ngroups",
    "counts = {}\nfor w in 'a b a'.split():\n    counts[w] = counts.get(w, 0) + 1\ncounts",
    "def f(a, b=2, *, c=3):\n    return [a, b, c]\nf(1, c=9)",
    "if echo(1):\n    x = 'yes'\nelse:\n    x = 'no'\nx",
    "if echo(0):\n    x = 'yes'\nx",
    "assert echo(1) == 2, 'wrong'",
    "raise KeyError('k')",
    "x = [i for i in range(3)]\ni = 5\n[x, i]",
    "return 5",
    "import math, json\n[math.floor(2.5), math.ceil(2.1), json.dumps({'a': [1, None, True]}), json.loads('[1, {\"a\": 2}]')]",
    "import re\nre.findall(r'\\d+', 'a1b22') + re.split(',', 'a,b') + [re.sub('a', 'x', 'banana')]",
    "'{} {:>5} {name}'.format(1, 'ab', name='n')",
    "d = {'x': {'y': 1}}\nd['x']['y'] = 2\nd['x']['z'] = 3\nd",
    "a = [1, 2]\na[0], a[1] = a[1], a[0]\na",
    "s = 0\nfor i, (a, b) in enumerate([(1, 2), (3, 4)]):\n    s += i * a * b\ns",
    "x = 0\ntry:\n    for i in range(5):\n        x = i\n        if i == 2:\n            fail(i)\nexcept ToolError:\n    x += 100\nx",
    "def f(x):\n    if x > 1:\n        return 'big'\n    if x > 0:\n        return 'small'\nprint(f(2), f(1), f(0))",
    "r = []\nfor i in range(3):\n    for j in range(3):\n        if j == 1:\n            break\n        if i == 1:\n            continue\n        r.append((i, j))\nr",
    "try:\n    x = echo(1)\nexcept ToolError:\n    x = 2\nelse:\n    x = x + 10\nfinally:\n    echo('end')\nx",
    "try:\n    assert False, 'm'\nexcept AssertionError as e:\n    m = str(e)\nm",
    "[True + True, sum([True, False, True]), True == 1, {True: 'a'}[1]]",
    "x = 7\nf'{x=} {x:05d}'",
];

/// Compares a plan. Returns false if it is refused before the run.
fn check(python: &mut Python, text: &str, wrong: &mut Vec<String>) -> bool {
    let code = match compile(text) {
        Ok(code) => code,
        Err(found) => {
            // Refused before the run, never guessed.
            assert!(found.iter().all(|d| d.code.starts_with('P')), "{found:?}\n{text}");
            return false;
        }
    };
    let (ours, theirs) = (run(code), python.run(text));
    if ours.result == Err("Unsupported".into()) {
        return false;
    }
    // What tools return is untrusted: the plan catches the same exceptions.
    let untrusted = LabelSpec::Axes { untrusted: true, secret: false };
    let labelled = compile_for(text, &untrusted).map(run);
    if labelled.as_ref().ok() != Some(&ours) {
        wrong.push(format!("plan:\n{text}\ntrusted:   {ours:?}\nuntrusted: {labelled:?}"));
    }
    if !equal(&ours, &theirs) {
        wrong.push(format!("plan:\n{text}\nours:   {ours:?}\npython: {theirs:?}"));
    }
    true
}

#[track_caller]
fn none(wrong: &[String]) {
    let shown: Vec<&String> =
        wrong.iter().take(std::env::var("ENTAIL_SHOWN").map_or(5, |n| n.parse().unwrap_or(5))).collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        shown.iter().map(|s| s.as_str()).collect::<Vec<_>>().join("\n\n")
    );
}

/// Numbers are exact here, and a whole one is an `int`: `1.0` is shown as `1`. So plans with such floats are
/// not generated.
#[test]
fn each_construct_means_what_it_means_in_cpython() {
    let mut python = Python::start();
    let mut wrong = Vec::new();
    for text in PLANS {
        assert!(check(&mut python, text, &mut wrong), "refused: {text}\n{:?}", compile(text).err());
    }
    none(&wrong);
}

/// `ENTAIL_PLANS` is the number of plans.
#[test]
fn generated_plans_mean_what_they_mean_in_cpython() {
    let count = std::env::var("ENTAIL_PLANS").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000);
    let first = std::env::var("ENTAIL_PLANS_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut python = Python::start();
    let (mut compared, mut wrong) = (0, Vec::new());
    for seed in first..first + count {
        compared += u64::from(check(&mut python, &generate::plan(seed + 1), &mut wrong));
    }
    none(&wrong);
    // Aliases and undefined names are refused; at least three plans of ten are compared.
    assert!(compared * 10 > count * 3, "{compared} of {count}");
}
