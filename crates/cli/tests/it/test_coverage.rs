//! `entail test --coverage`: the branches that tests take, in every construct.

use super::cli::{entail_in, write};
use serde_json::{Value, json};

/// A way through each construct, of which the tests take the first alone. `unused` is called by nobody.
const PROGRAM: &str = r#"use "lib.agent";
enum Kind { low, mid, high }
type Verdict = Yes | No { why: String };
tool ask(n: Number) -> Number reads {}

pipeline main(n: Number, kind: Kind, verdict: Verdict, other: Option[Number]) -> Number {
    if n > 0 {
        let n = n + 1;
    }
    if let x = other {
        let n = n + x;
    } else {
        let n = 0;
    }
    match kind {
        low | mid => { let n = n + 1; }
        high => { return 0; }
    }
    match verdict {
        Yes => { let n = n + 1; }
        No { why } => { return length(why); }
    }
    while n > 100 max 3 { let n = n - 1; }
    for item in range(0, max(0, n - 20)) { let n = n + item; }
    parallel for item in slice([1, 2], 0, max(0, n - 20)) { let m = item; }
    try {
        let answer = ask(n);
    } catch why {
        return 0;
    }
    let shown = if n > 0 { "more" } else { "less" };
    let size = match kind { low => 1, _ => 2 };
    return [1, 2].map(x => if x > 1 { shared(x) } else { x }).sum() + size + length(shown);
}
fn unused(n: Number) -> Number { if n > 0 { 1 } else { 2 } }
"#;

const LIBRARY: &str = "fn shared(n: Number) -> Number {\n    if n > 1 { return n; }\n    return 1;\n}\n";

const TEST: &str = r#"test "the first of each" {
    mock ask(_) => 1;
    let n = main(1, "low", Yes, 2);
    assert n > 0;
}
"#;

fn missed(found: &Value) -> Vec<String> {
    let of = |m: &Value| format!("{}:{} {}", m["line"], m["column"], m["branch"].as_str().unwrap());
    found["coverage"]["missed"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn each_branch_that_no_test_takes_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "main.agent", format!("{PROGRAM}{TEST}"));
    write(dir.path(), "lib.agent", LIBRARY);
    let ran = entail_in(dir.path(), &["test", ".", "--coverage", "--format", "json"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let lines: Vec<Value> = ran.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let (library, main) = (&lines[1], &lines[2]);
    // The library is in the program, and is a file of its own.
    assert_eq!(library["coverage"]["path"], json!("lib.agent"));
    assert_eq!(missed(library), ["2:5 the condition of this `if` fails"]);
    assert_eq!((&main["coverage"]["branches"], &main["coverage"]["taken"]), (&json!(20), &json!(8)));
    assert_eq!(
        missed(main),
        [
            "7:5 the condition of this `if` fails",
            "12:12 the `else` of this `if`",
            "17:9 the case `high`",
            "21:9 the case `No`",
            "23:5 a round of this `while`",
            "24:5 a round of this `for`",
            "25:5 a round of this `for`",
            "28:13 the `catch` of this `try`",
            "31:42 the `else` of this `if`",
            "32:39 the case `_`",
            "35:43 the first value of this `if`",
            "35:54 the `else` of this `if`",
        ]
    );
}

#[test]
fn other_tests_take_the_other_branches() {
    let dir = tempfile::tempdir().unwrap();
    let others = r#"test "the others" {
    mock ask fails "no";
    let a = main(-1, "low", No { why: "x" }, null);
    let b = main(0, "high", Yes, null);
    let c = main(0, "mid", Yes, 120);
    assert unused(0) + unused(1) == 3;
    let d = shared(0);
}
test "less" {
    mock ask(_) => 1;
    let a = main(-9, "mid", Yes, 1);
}
test "filtered" { assert 1 == 2; }
"#;
    write(dir.path(), "main.agent", format!("{PROGRAM}{TEST}{others}"));
    write(dir.path(), "lib.agent", LIBRARY);
    let args = [
        "test",
        "main.agent",
        "--coverage",
        "--lcov",
        "out/all.info",
        "--fail-under",
        "100",
        "--filter",
        "e",
    ];
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let ran = entail_in(dir.path(), &args);
    assert!(ran.out.contains("main.agent       20       0   100.0 %"), "{}{}", ran.out, ran.err);
    assert_eq!(ran.status, 1, "a test fails: {}", ran.err);
    let lcov = std::fs::read_to_string(dir.path().join("out/all.info")).unwrap();
    assert!(lcov.starts_with("TN:\nSF:lib.agent\nBRDA:2,0,0,"), "{lcov}");
    assert!(lcov.contains("SF:main.agent\nBRDA:7,0,0,1\nBRDA:7,0,1,2\n"), "{lcov}");
    assert!(lcov.ends_with("BRF:20\nBRH:20\nend_of_record\n"), "{lcov}");
}

#[test]
fn too_few_branches_fail_if_a_rate_is_required() {
    let dir = tempfile::tempdir().unwrap();
    let text = "fn f(n: Number) -> Number { if n > 0 { 1 } else { 2 } }\ntest \"f\" { assert f(1) == 1; }\n";
    write(dir.path(), "f.agent", text);
    // A file without tests counts, too.
    write(dir.path(), "g.agent", "fn g(n: Number) -> Number { if n > 0 { 1 } else { 2 } }\n");
    let ran = entail_in(dir.path(), &["test", ".", "--fail-under", "25"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, "ok   f.agent: f\n"), "{}", ran.err);
    let ran = entail_in(dir.path(), &["test", ".", "--fail-under", "25.1"]);
    assert_eq!(ran.status, 1);
    assert!(ran.err.contains("the tests took 25.0 % of the branches, not 25.1 %"), "{}", ran.err);
    let ran = entail_in(dir.path(), &["test", "f.agent", "--coverage"]);
    assert!(
        !ran.out.contains("g.agent") && ran.out.contains("f.agent         1       1    50.0 %"),
        "{}",
        ran.out
    );
}

#[test]
fn a_program_without_branches_has_no_rate() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "h.agent", "test \"h\" { assert 1 == 1; }\n");
    let ran = entail_in(dir.path(), &["test", "h.agent", "--coverage", "--fail-under", "100"]);
    assert_eq!((ran.status, ran.out.as_str()), (0, "ok   h.agent: h\nno branches\n"), "{}", ran.err);
}
