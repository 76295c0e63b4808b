//! Bad input: one clear error each, nothing is called, and it takes seconds.

use crate::run::{compile, run};
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
fn what_never_ends_or_grows_is_stopped() {
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
