//! The rules on small programs, each with the type, the effects and the errors it gives.

use super::*;
use diagnostics::Sources;

fn typing(text: &str) -> Typing {
    let mut sources = Sources::new();
    let file = sources.add("t.lam", text);
    let parsed = agentlang::calculus::compile(file, text);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:?}", parsed.diagnostics));
    check(&code, None)
}

#[track_caller]
fn has_type(text: &str, ty: &str) {
    let t = typing(text);
    assert!(t.diagnostics.is_empty(), "{text}: {:?}", t.diagnostics);
    assert_eq!(t.ty.to_string(), ty, "{text}");
}

#[track_caller]
fn is_wrong(text: &str, code: &str, place: &str) {
    let t = typing(text);
    let found: Vec<(&str, &str)> = t
        .diagnostics
        .iter()
        .map(|d| (d.code, d.span.map_or("", |s| &text[s.start as usize..s.end as usize])))
        .collect();
    assert_eq!(found, [(code, place)], "{text}: {:?}", t.diagnostics);
}

#[track_caller]
fn is_fine(text: &str) {
    let t = typing(text);
    assert!(t.diagnostics.is_empty(), "{text}: {:?}", t.diagnostics);
}

#[test]
fn functions_are_inferred() {
    has_type("\\x. x + 1", "Num -> Num");
    has_type("(\\x. x) 1", "Num");
    has_type("let twice = \\f. f >> f in twice (\\x. x + 1) 3", "Num");
    has_type("let id = \\x. x in (id 1, id \"a\")", "Num * Str");
    has_type("map (\\x. x * x) [1, 2, 3]", "List Num");
    has_type("sum [1, 2]", "Num");
    has_type("fold (\\a. \\b. a + b) \"\" [\"x\"]", "Str");
    has_type("zip [1] [\"a\"]", "List (Num * Str)");
    has_type("fix (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) 5", "Num");
    has_type("\\s. s.name", "{name: Dyn} -> Dyn");
    has_type("(\\x. x) >> (\\y. y + 1)", "Num -> Num");
    has_type("((\\x. x + 1) | (\\x. x * 2)) 3", "Num * Num");
}

#[test]
fn errors_point_at_the_use_and_do_not_cascade() {
    is_wrong("1 + \"one\"", "T001", "1 + \"one\"");
    is_wrong("let n = 3 in n 4", "T002", "n");
    is_wrong("let x = 1 + \"a\" in let y = x * 2 in y - 1", "T001", "1 + \"a\"");
    is_wrong("(\\f. f 1 2) (\\x. x)", "T002", "f 1");
    is_wrong("if 1 then 2 else 3", "T001", "1");
    is_wrong("prim[upper](3)", "T001", "3");
    is_wrong("length 5", "T001", "5");
    is_wrong("[1, 2].[5]", "T003", "[1, 2].[5]");
    let two = typing("(1 + \"a\", {a: 1}.b)");
    assert_eq!(two.diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), ["T001", "T003"]);
}

#[test]
fn tests_narrow() {
    has_type("mem (let n = recall k in if n == null then 1 else 1 + n) {k: Num}", "Num");
    has_type("mem (let n = recall k in if is_null n then 1 else 1 + n) {k: Num}", "Num");
    has_type("mem (let n = recall k in if n != null && n > 3 then n else 0) {k: Num}", "Num");
    is_wrong("mem (1 + recall k) {k: Num}", "T004", "1 + recall k");
    is_wrong("mem (let n = recall k in if n == null then 1 + n else 1) {k: Num}", "T004", "1 + n");
    has_type("\\x. if is_str x then prim[upper](x) else \"no\"", "Dyn -> Str");
}

/// With a variable for each of nested choices the limit on comparisons was reached, and nothing was known.
#[test]
fn a_long_chain_of_choices_is_decided() {
    let cases: String = (0..900).map(|i| format!("if x == {i} then \"c{i}\" else ")).collect();
    let chain = format!("{cases}\"none\"");
    let t = typing(&format!("\\x: Num. [{chain}, {chain}, {chain}]"));
    assert!(t.complete);
}

#[test]
fn branches_do_not_change_the_types_of_other_names() {
    // What the inner choice gives is that of a name, which is still a number.
    is_fine("\\a. let x = if a then 1 else 2 in if a then \"s\" else let y = x + 1 in x");
    is_fine("\\a. let x = if a then 1 else 2 in if a then \"s\" else if a then x else x + 1");
    let both = "(if a then 1 else let b = 2 in if a then b else \"s\") + 1";
    is_wrong(&format!("\\a. {both}"), "T001", both);
}

#[test]
fn cases_are_exhaustive() {
    has_type("case `a 1 of {a x => x + 1}", "Num");
    has_type("case (if true then `a 1 else `b \"x\") of {a x => x, b y => length y}", "Num");
    is_wrong(
        "case (if true then `a 1 else `b 2) of {a x => x}",
        "T005",
        "case (if true then `a 1 else `b 2) of {a x => x}",
    );
    has_type("\\s. case classify[yes, no] s of {yes => 1, no => 0}", "Dyn -> Num");
    has_type("\\s. case prim[lower](s) of {yes => 1, _ => 0}", "Str -> Num");
    has_type("case \"a\" of {a => 1}", "Num");
}

#[test]
fn fixpoints() {
    has_type("fix[5] (\\self. \\n. if n == 0 then 0 else self (n - 1)) 3", "Num");
    // When the bound is reached the argument is the result.
    has_type("fix[5] (\\self. \\n. if n == 0 then \"done\" else self (n - 1)) 3", "Dyn");
    has_type("fix[inf] (\\self. \\n. if n == 0 then \"done\" else self (n - 1)) 3", "Str");
    is_wrong(
        "1 + fix[5] (\\self. \\n. if n == 0 then \"done\" else self (n - 1)) 3",
        "T001",
        "1 + fix[5] (\\self. \\n. if n == 0 then \"done\" else self (n - 1)) 3",
    );
}

#[test]
fn refinements() {
    has_type("\\x: Str. guard x length > 3", "Str -> {Str | length > 3}");
    has_type("\\x: Str. (\\y: {Str | length > 0}. y) (guard x length > 3)", "Str -> {Str | length > 0}");
    is_wrong("\\x: Str. (\\y: {Str | length > 5}. y) (guard x length > 3)", "T009", "guard x length > 3");
    has_type("(\\y: {Num | value > 0}. y + 1) 5", "Num");
    is_wrong("(\\y: {Num | value > 0}. y) (-5)", "T009", "-5");
    is_wrong("\\x: Str. guard x length > 5 && length < 3", "T010", "guard x length > 5 && length < 3");
    // A guard is for telling values apart: it can hold if some of those that arrive may pass.
    is_wrong("guard (choose 0.5 3 4) value > 5", "T010", "guard (choose 0.5 3 4) value > 5");
    is_fine("guard (choose 0.5 3 7) value > 5 retry 3");
    is_fine("\\x: Num. \\b: Bool. guard (if b then x else 3) value > 5");
    is_fine("\\b: Bool. let x = recv {result: Dyn} in guard (if b then x else 3) value > 5");
    is_fine("\\b: Bool. \\x. guard (if b then x else 3) value > 5");
    is_fine("\\b: Bool. \\x: Num. guard (try[[]] x catch e. null) value > 5");
    has_type("guard (llm \"p\") words == 3 retry 2", "Dyn -[llm()]> {Str | words == 3}");
}

#[test]
fn effects_are_inferred_and_bounded() {
    let t = typing("tool f(x: Str) -> Str read\n(llm \"p\" {model: \"m\"} >> tool[f]) \"x\"");
    assert_eq!(t.effects.to_string(), "llm(m), tool(f)");
    has_type("\\x. (llm \"p\" {model: \"m\"}) x", "Dyn -[llm(m)]> Str");
    let t = typing("mem (let _ = remember k 1 in fresh (send \"x\")) {k: Num}");
    assert_eq!(t.effects.to_string(), "state(k)");
    let t = typing("map (\\x. choose 0.5 x 1) [1]");
    assert_eq!(t.effects.to_string(), "sample");
    let t = typing("map (\\x. x) [1]");
    assert_eq!(t.effects.to_string(), "pure");
    is_wrong("(\\f: Str -> Str. f \"x\") (llm \"p\")", "T007", "llm \"p\"");
    is_wrong("mem (par [remember n 1, recall n]) {n: Num}", "T008", "par [remember n 1, recall n]");
    is_wrong("mem (par[2] [remember n 1, recall n]) {n: Num}", "T008", "par[2] [remember n 1, recall n]");
    is_fine("mem (par[1] [remember n 1, recall n]) {n: Num}");
}

#[test]
fn unknown_parts_are_noted_and_no_error() {
    let t = typing("prim[from_json](\"1\") + 1");
    assert!(t.diagnostics.is_empty() && t.dynamic.len() == 1, "{t:?}");
    assert!(!typing("@\"hi\"").is_static());
    assert!(typing("1 + 1").is_static());
    assert!(typing("check[Num] (prim[from_json](\"1\")) + 1").is_static());
}

#[test]
fn each_wrong_example_gives_its_code_and_each_right_one_nothing() {
    for e in codes::EXPLANATIONS {
        let wrong = typing(e.wrong);
        let found: Vec<&str> = wrong.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(found, [e.code], "{}: {:?}", e.wrong, wrong.diagnostics);
        let right = typing(e.right);
        assert!(right.diagnostics.is_empty(), "{}: {:?}", e.right, right.diagnostics);
    }
}

#[test]
fn a_large_program_is_checked_in_one_pass() {
    // Nested functions, a long sequence, a long composition, a large list.
    let mut text = String::from("let x0 = 1\n");
    for i in 1..2_000 {
        text.push_str(&format!("let x{i} = x{} + 1\n", i - 1));
    }
    text.push_str(&format!("({}) [{}]", vec!["(\\x. x)"; 2_000].join(" >> "), vec!["1"; 5_000].join(", ")));
    has_type(&text, "List Num");
}

/// The result of each function has that of the one before twice, so that types double at every level: the
/// work has a limit, beyond which types are unknown.
#[test]
fn types_that_double_at_every_level_end() {
    let define = |i: usize| format!("let f{i} = \\x. {{a: f{0} x, b: f{0} x}} in\n", i - 1);
    let text = format!("let f0 = \\x. x in\n{}f40 1", (1..=40).map(define).collect::<String>());
    assert!(!typing(&text).complete);
}

/// Each function is used twice by the next one, which is defined around it.
#[test]
fn functions_that_are_used_twice_at_every_level_have_types() {
    let text = (0..40).fold("\\x: Str. x".to_string(), |inner, i| {
        format!("\\x: Str. (let f{i} = {inner} in f{i} (f{i} x))")
    });
    has_type(&text, "Str -> Str");
    assert!(typing(&text).complete);
}

/// Effects of functions that use each other doubled at every level.
#[test]
fn effects_of_functions_that_use_others_twice_are_those_of_one_use() {
    let mut text =
        String::from("tool t(a: Str) -> Str read\nlet f0 = \\x. check[p: Str] (tool[t] {a: x}) in\n");
    for i in 1..200 {
        let before = i - 1;
        text.push_str(&format!("let f{i} = \\x. check[p: Str] (f{before} (f{before} x)) in\n"));
    }
    text.push_str("f199");
    let typing = typing(&text);
    assert!(typing.complete && typing.diagnostics.is_empty(), "{:?}", typing.diagnostics);
    assert!(typing.ty.to_string().ends_with("-[tool(t)]> Str"), "{}", typing.ty);
}

/// The effects of a function that is passed in are those of each use by itself, without the conversation
/// where the use is in a conversation of its own, and with all of it in the function itself, whose branches
/// are compared.
#[test]
fn a_copy_of_effects_has_those_of_the_functions_that_are_passed() {
    let text = "tool t(a: Str) -> Str read\n\
        let say = \\x. let _ = send x in x in\n\
        let alone = \\f. \\x. fresh (f x) in\n\
        let both = \\f. \\x. alone f (f x) in\n";
    has_type(&format!("{text}\\x: Str. alone say x"), "Str -> Str");
    has_type(&format!("{text}\\x: Str. both say x"), "Str -[conversation]> Str");
    has_type(&format!("{text}\\x: Str. alone (\\y. tool[t] {{a: y}}) x"), "Str -[tool(t)]> Str");
    has_type(
        &format!("{text}\\x: Str. both (\\y. tool[t] {{a: say y}}) x"),
        "Str -[tool(t), conversation]> Str",
    );
    let raced = "let race = \\f. par [f 1, f 2] in let twice = \\f. race f in mem (twice (\\n. remember k n)) {k: Num}";
    is_wrong(raced, "T008", "par [f 1, f 2]");
}

/// The bounds of a parameter were searched by recursion from variable to variable: a thousand of them
/// overflowed the stack of a thread.
#[test]
fn a_value_may_be_passed_on_through_thousands_of_functions() {
    use core_ir::{Builder, Globals, Term};
    let nowhere = diagnostics::Span { file: diagnostics::FileId(0), start: 0, end: 0 };
    let mut b = Builder::new();
    let mut bindings = Vec::new();
    for i in 0..5_000 {
        let inner = b.var("a", nowhere);
        let f = b.abs("a", None, inner, nowhere);
        let argument = b.var(format!("x{i}").as_str(), nowhere);
        bindings.push((format!("x{}", i + 1).as_str().into(), b.add(Term::App(f, argument), nowhere)));
    }
    let body = b.var("x5000", nowhere);
    let sugar = core_ir::LetSugar::Plain;
    let body = b.add(Term::Let { bindings, body, sugar }, nowhere);
    let root = b.abs("x0", None, body, nowhere);
    let typing = check(&b.finish(root, &Globals::none()).expect("closed"), None);
    assert!(typing.diagnostics.is_empty());
    assert_eq!(typing.ty.to_string(), "Dyn -> Dyn");
}
