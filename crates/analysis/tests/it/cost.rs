//! Conditions that bound loops: guards, assertions, comparisons of parameters, counters.

use analysis::cost::{CostBound, bound};
use diagnostics::FileId;
use std::sync::Arc;

/// The bound of the pipeline `main` with this body, which has lists `xs` and `ys`, a text `q`, a number `n`.
fn agent(body: &str) -> CostBound {
    let text = format!(
        "tool ask(x: String) -> String reads {{}}\n\
         pipeline down(q: String, n: Number) -> String {{\n\
           if n <= 0 {{ return q; }}\n  let r = ask(q);\n\
           let s = run down with {{ q: r, n: n - 1 }};\n  return s;\n}}\n\
         pipeline main(xs: List[String], ys: List[String], q: String, n: Number) -> String {{ {body} }}\n"
    );
    let (module, diagnostics) = agentlang::check(FileId(0), &text);
    let module = module.unwrap_or_else(|| panic!("{text}\n{diagnostics:?}"));
    let entry = module.entries().iter().find(|e| &*e.name == "main").expect("the pipeline");
    bound(&Arc::new(module.lower(entry).expect("a term")), true)
}

/// Expects these bounds, from the least to the most.
fn exact(found: &CostBound, program: &str, least: u64, most: u64) {
    assert_eq!((found.tool_calls.least, found.tool_calls.most), (least, Some(most)), "{program}");
    assert!(found.unbounded.is_empty(), "{program}: {:?}", found.unbounded);
}

#[test]
fn conditions_bound_the_loops_of_pipelines() {
    let each = "for x in xs { let r = ask(x); } return q;";
    let cases = [
        (format!("guard xs where length(xs) <= 5; {each}"), 0, 5),
        (format!("assert length(xs) <= 5; {each}"), 0, 5),
        (format!("assert 6 > length(xs), \"too many\"; {each}"), 0, 5),
        (format!("let many = length(xs); assert many < 6; {each}"), 0, 5),
        (format!("if length(xs) > 5 {{ return q; }} {each}"), 0, 5),
        (format!("if length(xs) > 5 || n < 0 {{ return q; }} {each}"), 0, 5),
        (format!("assert length(xs) + 2 <= 7; {each}"), 0, 5),
        (format!("assert length(xs) <= n && n <= 5; {each}"), 0, 5),
        ("assert length(xs) < 6; parallel for x in xs { let r = ask(x); } return q;".into(), 0, 5),
        (
            "assert length(xs) <= 3 && length(ys) <= 4;
             for x in xs { for y in ys { let r = ask(x); } } return q;"
                .into(),
            0,
            12,
        ),
        ("assert length(xs) <= 5; for x in slice(xs, 1, 3) { let r = ask(x); } return q;".into(), 0, 2),
        ("assert n <= 7 && n >= 0; for i in range(0, n) { let r = ask(q); } return q;".into(), 0, 7),
        (
            "let i = 0; let ok = false;
             while i < 5 && !ok { let r = ask(q); let ok = r == \"y\"; let i = i + 1; } return q;"
                .into(),
            0,
            5,
        ),
        (
            "let i = 0;
             while true { let r = ask(q); let i = i + 1; if i >= 4 || r == \"stop\" { break; } } return q;"
                .into(),
            1,
            4,
        ),
        (
            "if n > 7 { return q; } let i = 0;
             while i < n { let r = ask(q); if r == \"stop\" { return r; } let i = i + 1; } return q;"
                .into(),
            0,
            7,
        ),
        (
            "let left = n; if left > 6 { let left = 6; }
             while left > 0 { let r = ask(q); if r == \"skip\" { let left = left - 2; continue; }
                              let left = left - 1; } return q;"
                .into(),
            0,
            6,
        ),
        ("assert n <= 3; let r = run down with { q: q, n: n }; return r;".into(), 0, 3),
        // A limit that is written stands if it is less.
        (
            "let i = 0; assert n <= 9; while i < n max 4 { let r = ask(q); let i = i + 1; } return q;".into(),
            0,
            4,
        ),
        (
            "let i = 0; assert n <= 4; while i < n max 9 { let r = ask(q); let i = i + 1; } return q;".into(),
            0,
            4,
        ),
        // A million rounds are not followed one by one.
        (
            "assert n <= 1000000; let i = 0;
             while i < n { let r = ask(q); let i = i + 1; } return q;"
                .into(),
            0,
            1_000_000,
        ),
    ];
    for (body, least, most) in cases {
        exact(&agent(&body), &body, least, most);
    }
}

/// Conditions that do not hold in each round, or not of each value.
#[test]
fn conditions_that_say_less_bound_nothing() {
    let cases = [
        // Another branch than the one that fails, and a condition of which either part may hold.
        "if length(xs) > 5 { let r = ask(q); } for x in xs { let r = ask(x); } return q;",
        "assert length(xs) <= 5 || n <= 5; for x in xs { let r = ask(x); } return q;",
        "assert length(ys) <= 5; for x in xs { let r = ask(x); } return q;",
        // Rounds that do not count, and ones that count away from the limit.
        "let i = 0; while i < 5 { let r = ask(q); if r == \"y\" { continue; } let i = i + 1; } return q;",
        "let i = 0; while i < 5 { let r = ask(q); let i = i - 1; } return q;",
        "let i = 0; while i != 5 { let r = ask(q); let i = i + 2; } return q;",
        "let i = 0; while i < n { let r = ask(q); let i = i + 1; } return q;",
        // The limit moves, too.
        "assert n <= 5; let m = n; let i = 0;
         while i < m { let r = ask(q); let i = i + 1; let m = m + 1; } return q;",
        "assert n <= 5; let i = 0; while i < n { let r = ask(q); let i = i / 2 + 1; } return q;",
    ];
    for body in cases {
        let found = agent(body);
        assert_eq!(found.tool_calls.most, None, "{body}");
        assert!(!found.unbounded.is_empty(), "{body}");
    }
}
