//! Bad input: one clear error each, nothing is called, and it takes seconds.

use crate::generate::Rng;
use crate::run::{compile, run};
use crate::worlds;
use machine::{Call, Config, Reply, Response};
use plan::codes::{ARGUMENTS, SUBSET, SYNTAX, TOO_LARGE, UNKNOWN_NAME};
use std::time::{Duration, Instant};

/// Far more than any of them takes; a quadratic one takes minutes.
const PATIENCE: Duration = Duration::from_secs(60);

/// The codes of the findings.
fn codes_of(text: &str) -> Vec<&'static str> {
    let start = Instant::now();
    let found = compile(text).err().unwrap_or_default();
    assert!(start.elapsed() < PATIENCE, "{}", &text[..text.len().min(40)]);
    for d in &found {
        let message = &d.message;
        assert!(!message.is_empty() && message.len() < 400 && !message.contains('\n'), "{message}");
        assert!(d.span.is_some());
    }
    found.iter().map(|d| d.code).collect()
}

#[test]
fn bad_input_has_one_error() {
    let repeated = |text: &str, n: usize| text.repeat(n);
    let nested = |open: &str, inner: &str, close: &str, n: usize| {
        format!("x = {}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let blocks: String = (0..3_000).map(|i| format!("{}if True:\n", " ".repeat(i))).collect();
    let defs: String = (1..40).map(|i| format!("def f{i}():\n    return f{0}() + f{0}()\n", i - 1)).collect();
    let cases: Vec<(&str, String, &str)> = vec![
        ("no Python", "x = = 1".into(), SYNTAX),
        ("prose", "Please pay the bill.".into(), SYNTAX),
        ("braces", "{{{".into(), SYNTAX),
        ("another language", "const x = () => { return 1; };".into(), SYNTAX),
        ("a null byte", "x = 1\n\0".into(), SYNTAX),
        ("tabs and spaces", "if True:\n\tx = 1\n        y = 2".into(), SYNTAX),
        ("10 MB", format!("x = '{}'", repeated("a", 10 << 20)), SYNTAX),
        ("parentheses", nested("(", "", "", 100_000), SYNTAX),
        ("lists 100,000 deep", nested("[", "", "]", 100_000), TOO_LARGE),
        ("minus 100,000 deep", nested("-", "1", "", 100_000), TOO_LARGE),
        ("attributes 100,000 deep", format!("x = y{}", repeated(".a", 100_000)), TOO_LARGE),
        ("a chain of sums", format!("x = 1{}", repeated(" + 1", 50_000)), TOO_LARGE),
        ("blocks", format!("{blocks}{}pass", " ".repeat(3_000)), SYNTAX),
        ("100,000 statements", repeated("x = 1\n", 100_000), TOO_LARGE),
        ("100,000 conditions", repeated("if 1:\n    x = 1\n", 100_000), TOO_LARGE),
        ("100,000 parts of a text", format!("x = f'{}'", repeated("{1}", 100_000)), TOO_LARGE),
        ("calls that double", format!("def f0():\n    return 1\n{defs}f39()"), TOO_LARGE),
        ("recursion", "def f(n):\n    return f(n - 1)\nf(3)".into(), SUBSET),
        ("an unknown tool", "delete_everything('now')".into(), UNKNOWN_NAME),
        ("an unknown parameter", "echo(everything='now')".into(), ARGUMENTS),
        ("an import", "import os".into(), SUBSET),
        ("a huge number", format!("x = {}", repeated("9", 100_000)), SUBSET),
        ("a pattern with look-around", "import re\nre.search('(?<=a)b', 'ab')".into(), SUBSET),
        (
            "a large pattern",
            format!("import re\nre.search('{}', 'a')", repeated("(a{1000}){1000}", 4)),
            SUBSET,
        ),
        ("a class of classes", repeated("class A:\n    pass\n", 3), SUBSET),
    ];
    for (name, text, code) in cases {
        let codes = codes_of(&text);
        assert!(!codes.is_empty() && codes.iter().all(|c| *c == code), "{name}: {codes:?}");
        assert!(codes.len() == 1 || name == "a class of classes", "{name}: {codes:?}");
    }
}

#[test]
fn odd_input_is_a_plan() {
    for (name, text, calls) in [
        ("a byte order mark", "\u{feff}echo(1)".to_string(), 1),
        ("lines of another system", "x = 1\r\nif x:\r\n    echo(x)\r\n".into(), 1),
        ("nothing", String::new(), 0),
        ("a comment", "# nothing".into(), 0),
        ("a long line", format!("x = '{}'\necho(len(x))", "a".repeat(1_000_000)), 1),
        ("many statements", format!("{}echo(x)", "x = 1\n".repeat(3_990)), 1),
        ("names of other alphabets", "größe = 1\necho(größe)".into(), 1),
    ] {
        assert!(codes_of(&text).is_empty(), "{name}: {:?}", compile(&text).err());
        let ended = run(compile(&text).expect("a plan"));
        assert!(ended.result.is_ok() && ended.trace.len() == calls, "{name}: {ended:?}");
    }
}

#[test]
fn endless_and_growing_plans_are_stopped() {
    for (text, error) in [
        ("n = 0\nwhile True:\n    n += 1", "limit"),
        ("try:\n    while True:\n        pass\nexcept Exception:\n    x = 1", "limit"),
        ("x = 'a' * 10 ** 12", "prim|limit|fuel"),
        ("x = [0] * 10 ** 12", "prim|limit|fuel"),
        ("x = 'a'\nfor i in range(60):\n    x = x + x", "prim|limit|fuel"),
        ("x = 10 ** 10 ** 10", "OverflowError"),
        ("x = 3\nfor i in range(60):\n    x = x * x + i", "prim|limit|fuel"),
        ("x = list(range(10 ** 12))", "prim|limit|fuel"),
        ("x = f\"{'a':>1000000000000}\"", "prim|limit|fuel"),
        ("x = 1 + 'a'", "TypeError"),
        ("x = None.a", "AttributeError"),
        ("x = 'a'[1.5]", "TypeError"),
        ("for x in 3:\n    echo(x)", "TypeError"),
    ] {
        let start = Instant::now();
        let ended = run(compile(text).unwrap_or_else(|found| panic!("{text}: {found:?}")));
        let wrong = ended.result.clone().expect_err(text);
        assert!(error.split('|').any(|e| wrong.starts_with(e)), "{text}: {wrong}");
        assert!(ended.trace.is_empty() && start.elapsed() < PATIENCE, "{text}");
    }
}

/// Pieces that a mutation puts in.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "==",
    "*",
    "**",
    "-",
    "@",
    "\\",
    "'",
    "\"",
    "\n",
    "    ",
    "\t",
    "#",
    "if x:",
    "else:",
    "for x in ",
    "while ",
    "try:",
    "except ",
    "finally:",
    "return ",
    "def f(x):",
    "lambda x: ",
    "class C:",
    "not ",
    "in ",
    "is ",
    "None",
    "True",
    "0",
    "-1",
    "1.5",
    "10**10",
    "x",
    "read()",
    "pay(",
    "ask(",
    "confirm(",
    "delegate(",
    "f'{x:",
    "f\"{",
    "}'",
    ":=",
    "yield ",
    "await ",
    "async ",
    "global x",
    "del x",
    "import os",
    "é",
    "\u{0}",
    "[x for x in ",
    "sorted(key=",
    "break",
    "continue",
    "raise ",
    "assert ",
    "pass",
    "with ",
    "match x:",
    "*args",
    "**kw",
    "...",
];

fn mutated(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut out: Vec<char> = text.chars().collect();
    let other: Vec<char> = other.chars().collect();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(out.len() + 1);
        let to = (at + rng.below(30)).min(out.len());
        match rng.below(6) {
            0 => drop(out.drain(at..to)),
            1 | 2 => drop(out.splice(at..at, PIECES[rng.below(PIECES.len())].chars())),
            3 => {
                // A part of the same plan, once more.
                let from = rng.below(out.len() + 1);
                let part: Vec<char> = out[from..(from + rng.below(60)).min(out.len())].to_vec();
                drop(out.splice(at..at, part));
            }
            4 => {
                let from = rng.below(other.len() + 1);
                drop(
                    out.splice(at..to, other[from..(from + rng.below(80)).min(other.len())].iter().copied()),
                );
            }
            _ => out.truncate(at.max(1)),
        }
    }
    out.into_iter().collect()
}

fn plans_of(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../suite/plans/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("a file").path()).collect();
    paths.sort();
    let plans = paths.iter().filter(|p| p.extension().is_some_and(|e| e == "py"));
    plans.map(|p| std::fs::read_to_string(p).expect("a plan")).collect()
}

/// Any text is compiled or refused with codes of plans, and any plan that compiles runs to an end.
/// `ENTAIL_MUTATED` is the number of texts.
#[test]
fn mutated_plans_are_plans_or_refused() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default);
    let mut corpus = plans_of("tasks");
    corpus.extend(plans_of("adversarial"));
    corpus.extend((1..200).map(crate::generate::policed));
    let (first, count) = (number("ENTAIL_MUTATED_FROM", 0), number("ENTAIL_MUTATED", 2_000));
    let mut ran = 0;
    for seed in first..first + count {
        let mut rng = Rng::new(seed + 1);
        let (one, other) = (rng.below(corpus.len()), rng.below(corpus.len()));
        let text = mutated(&mut rng, &corpus[one], &corpus[other]);
        let start = Instant::now();
        let code = match worlds::compile(&text) {
            Ok(code) => code,
            Err(found) => {
                let known = |d: &diagnostics::Diagnostic| d.code.starts_with('P') && d.span.is_some();
                assert!(!found.is_empty() && found.iter().all(known), "{seed}: {found:?}\n{text}");
                continue;
            }
        };
        let config = Config { fuel: 100_000, ..Config::default() };
        worlds::drive(&code.into(), config, &mut |call| match call {
            Call::Tool { tool, args } if matches!(&*tool.name, "echo" | "add" | "fail" | "items") => {
                Response::Tool(crate::run::answer(&tool.name, args))
            }
            Call::Tool { .. } => Response::Tool(Ok(core_ir::Data::str("1"))),
            Call::Approve { .. } => Response::Approve(Ok(())),
            _ => Response::Model(Ok(Reply::Text("1".into()))),
        });
        assert!(start.elapsed() < PATIENCE, "{seed}: {text}");
        ran += 1;
    }
    println!("{ran} of {count} mutated plans ran");
    assert!(ran * 20 > count, "{ran} of {count}");
}
