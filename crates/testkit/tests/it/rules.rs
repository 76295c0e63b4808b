//! Each rule of `docs/calculus.md` §3 and §10 by hand: what the text says must come out, of the naive
//! evaluator and of the machine. A label is shown where it is not ⊥; an error is shown with its label.

use crate::common::outcome;
use core_ir::{Data, Num};
use testkit::world::Answer;

/// `program => outcome`, without answers of the world.
fn rules(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(outcome(text, &[]), *expected, "{text}");
    }
}

/// The same with answers.
fn asked(cases: &[(&str, &[Answer], &str)]) {
    for (text, answers, expected) in cases {
        assert_eq!(outcome(text, answers), *expected, "{text}");
    }
}

fn says(text: &str) -> Answer {
    Answer::Text(text.into())
}

fn num(n: i64) -> Data {
    Data::Num(Num::from(n))
}

#[test]
fn reading() {
    rules(&[
        ("let x = [\"U\"]: 1 in x", "[\"U\"]:1"),
        ("let x = 1 in [\"S\"]: x", "[\"S\"]:1"),
        ("([\"S\"]: {a: 1}).a", "[\"S\"]:1"),
        ("{a: [\"U\"]: 1}.a", "[\"U\"]:1"),
        ("([\"S\"]: [[\"U\"]: 1, 2]).[0]", "[\"U\",\"S\"]:1"),
        ("[1, 2].[[\"U\"]: 1]", "[\"U\"]:2"),
        ("fst ([\"U\"]: (1, 2))", "[\"U\"]:1"),
        ("snd (1, [\"S\"]: 2)", "[\"S\"]:2"),
        ("{a: 1}.['a']", "1"),
        ("'héllo'.[1]", "\"é\""),
        ("[\"U\"]: const [1, {a: 2}]", "[\"U\"]:[[\"U\"]:1,[\"U\"]:{a:[\"U\"]:2}]"),
        ("([\"U\"]: {a: 1}).b := [\"S\"]: 2", "[\"U\"]:{a:[\"U\"]:1,b:[\"S\"]:2}"),
        ("{a: 1}.a := [\"S\"]: 2", "{a:[\"S\"]:2}"),
        ("{a: 1}.b", "error index []"),
        ("{a: [\"S\"]: 1}.b", "error index [\"S\"]"),
        ("[1].[-1]", "error index []"),
        ("[1].[1 / 2]", "error index []"),
        ("[1].[[\"U\"]: 7]", "error index [\"U\"]"),
    ]);
}

#[test]
fn constructors() {
    rules(&[
        ("[\"U\"]: [1, [\"S\"]: 2]", "[\"U\"]:[[\"U\"]:1,[\"U\",\"S\"]:2]"),
        ("{a: [\"S\"]: 1}", "{a:[\"S\"]:1}"),
        ("(1, [\"S\"]: 2)", "(1, [\"S\"]:2)"),
        ("`t ([\"S\"]: 2)", "`t [\"S\"]:2"),
        ("[\"U\"]: `t", "[\"U\"]:`t [\"U\"]:null"),
        ("[\"U\"]: \\x. x", "[\"U\"]:<function>"),
    ]);
}

#[test]
fn application() {
    rules(&[
        // The argument's label is not joined; the function's is.
        ("(\\x. 1) ([\"S\"]: 2)", "1"),
        ("([\"U\"]: \\x. 1) 2", "[\"U\"]:1"),
        ("(\\x. x) ([\"S\"]: 2)", "[\"S\"]:2"),
        ("1 2", "error not_a_function []"),
        ("([\"U\"]: [[\"S\"]: 1]) 2", "error not_a_function [\"U\",\"S\"]"),
        // What a closure captured is in its deep label only.
        ("let s = [\"S\"]: 1 in \\x. s", "<function>"),
        ("let s = [\"S\"]: 1 in prim[is_fn](\\x. s)", "[\"S\"]:true"),
        ("let s = [\"S\"]: 1 in prim[is_fn](\\x. let y = s in x)", "[\"S\"]:true"),
        ("let s = [\"S\"]: 1 in prim[is_fn](\\x. x)", "true"),
        // A function runs where it is applied, in the scope where it was made.
        ("let x = 1 in let f = \\y. x in let x = 2 in f 0", "1"),
        ("twice (\\x. x + 1) 3", "5"),
        ("even 5", "false"),
    ]);
}

#[test]
fn fix() {
    rules(&[
        ("fix[0] (\\self. \\n. 1) 7", "7"),
        ("([\"U\"]: fix[0] (\\self. \\n. 1)) 7", "[\"U\"]:7"),
        ("fix[20] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) 5", "120"),
        ("fix[inf] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) 5", "120"),
        // The bound is reached: fix[0] gives the argument back.
        ("fix[2] (\\self. \\n. self (n + 1)) 0", "2"),
        ("fix[3] ([\"U\"]: \\self. \\n. 1) 0", "[\"U\"]:1"),
        ("fix[3] (\\self. [\"U\"]: \\n. 1) 0", "[\"U\"]:1"),
        ("fix[1] 5 1", "error not_a_function []"),
        ("fix[1] (\\self. 5) 1", "error not_a_function []"),
        ("prim[is_fn](fix[1] ([\"S\"]: 5))", "[\"S\"]:true"),
    ]);
}

#[test]
fn choice() {
    rules(&[
        ("if [\"S\"]: true then 1 else 2", "[\"S\"]:1"),
        ("if 1 then 2 else 3", "error type []"),
        ("if [\"S\"]: [1] then 2 else 3", "error type [\"S\"]"),
        ("case [\"U\"]: `t ([\"S\"]: 1) of {t x => x}", "[\"U\",\"S\"]:1"),
        ("case [\"U\"]: `t ([\"S\"]: 1) of {t x => 2}", "[\"U\"]:2"),
        ("case [\"U\"]: 't' of {t x => x}", "[\"U\"]:null"),
        ("case [\"U\"]: `q of {t x => x, _ => 3}", "[\"U\"]:3"),
        ("case [\"U\"]: 5 of {t x => x, _ => 3}", "[\"U\"]:3"),
        ("case `q ([\"S\"]: 1) of {t x => x}", "error no_branch [\"S\"]"),
        ("case 5 of {t x => x}", "error no_branch []"),
        ("true && ([\"S\"]: false)", "[\"S\"]:false"),
        ("([\"U\"]: false) && fail 1", "[\"U\"]:false"),
        ("([\"U\"]: true) || fail 1", "[\"U\"]:true"),
        ("classify[yes, no] ' \"Yes.\" '", "`yes null"),
        ("classify[yes, no] ([\"U\"]: 'no')", "[\"U\"]:`no null"),
        ("classify[yes, no] `no", "`no null"),
        ("classify[yes, no] ([\"U\"]: 'maybe')", "error classify [\"U\"]"),
        ("classify[yes, no] `maybe ([\"S\"]: 1)", "error classify [\"S\"]"),
    ]);
}

#[test]
fn primitives() {
    rules(&[
        ("1 + ([\"U\"]: 2)", "[\"U\"]:3"),
        ("prim[length]([[\"S\"]: 1, 2])", "2"),
        ("prim[length]([\"S\"]: [1, 2])", "[\"S\"]:2"),
        ("[[\"S\"]: 1] == [1]", "[\"S\"]:true"),
        ("[[\"S\"]: 1] + [2]", "[\"S\"]:[1,2]"),
        ("prim[flatten]({a: [\"U\"]: [[\"S\"]: 1]})", "[\"U\",\"S\"]:{a:[1]}"),
        ("let s = [\"S\"]: 1 in prim[append]([], \\x. s).[0] 0", "[\"S\"]:1"),
        ("1 / ([\"U\"]: 0)", "error prim [\"U\"]"),
        ("(\\x. x) == 1", "error prim []"),
        ("[1, (\\x. x)] == [1]", "error prim []"),
        ("{a: 1, b: 2} == {b: 2, a: 1}", "true"),
        ("\"a{[\"U\"]: 1}b{['x']}\"", "[\"U\"]:\"a1b[\\\"x\\\"]\""),
        ("0.1 + 0.2 == 0.3", "true"),
        ("prim[to_str](1 / 3)", "\"1/3\""),
        ("-7 % 3", "2"),
    ]);
}

#[test]
fn guard() {
    rules(&[
        ("guard 5 value > 3", "5"),
        ("guard ([1, [\"S\"]: 2]) length == 2", "[\"S\"]:[1,[\"S\"]:2]"),
        ("guard 1 value > 3 retry 2", "error guard []"),
        ("guard [[\"S\"]: 1] length > 3", "error guard [\"S\"]"),
        ("guard (fail 1) value > 3 retry 5", "error fail []"),
        // A guarded function.
        ("guard ([\"U\"]: \\x. x) value > 3", "[\"U\"]:<function>"),
        ("(guard (\\x. x + 1) value > 3) 3", "4"),
        ("(guard ([\"U\"]: \\x. x + 1) value > 3) 3", "[\"U\"]:4"),
        ("(guard (\\x. x + 1) value > 3) 1", "error guard []"),
        ("(guard (\\x. x) value > 3) ([\"S\"]: 1)", "error guard [\"S\"]"),
    ]);
    // The second attempt runs at the label of the first value.
    let second = [Answer::Data(num(1)), Answer::Data(num(9))];
    asked(&[
        (
            "tool t() -> Num @ [\"U\"] write control untrusted secret\nguard (tool[t] null) value > 3 retry 1",
            &second,
            "[\"U\"]:9; t()@[\"U\",\"S\"]; t()@[\"U\",\"S\"]",
        ),
        (
            "tool t() -> Num @ [\"U\"] write\nguard (tool[t] null) value > 3 retry 1",
            &second,
            "error flow [\"U\"]; t()@[]",
        ),
        (
            "tool t() -> Num @ trusted write\n(guard (\\x. tool[t] null) value > 3 retry 1) 0",
            &second,
            "9; t()@[]; t()@[]",
        ),
    ]);
}

#[test]
fn stores() {
    let found = |d| [Answer::Found(d)];
    asked(&[
        ("mem (recall k) {k: Num}", &found(Some(num(1))), "1; recall k@[]"),
        ("mem (recall k) {k: Num @ [\"S\"]}", &found(None), "[\"S\"]:null; recall k@[\"S\"]"),
        (
            "[\"U\"]: mem (recall k) {k: Num @ [\"S\"]}",
            &found(None),
            "[\"U\",\"S\"]:null; recall k@[\"U\",\"S\"]",
        ),
        ("mem (remember k 1) {k: Num @ [\"S\"]}", &[Answer::Kept], "{}; remember k 1@[\"S\"]"),
        ("mem (remember k ([\"U\"]: 1)) {k: Num @ [\"S\"]}", &[], "error store_refused [\"S\"]"),
        ("[\"S\"]: mem (remember k 1) {k: Num}", &[], "error store_refused [\"S\"]"),
        ("mem (remember k [[\"S\"]: 1]) {k: List Num}", &[], "error store_refused []"),
        ("mem (remember k ([\"S\"]: 'x')) {k: Num @ [\"S\"]}", &[], "error type [\"S\"]"),
        ("mem (remember k (\\x. x)) {k: Dyn}", &[], "error type []"),
        // Keys are resolved lexically.
        (
            "let f = mem (\\x. recall k) {k: Num @ [\"S\"]} in mem (f 0) {k: Num}",
            &found(Some(num(1))),
            "[\"S\"]:1; recall k@[\"S\"]",
        ),
        (
            "mem (recall k) {k: Num @ [\"S\"]}",
            &[Answer::Failed("x".into())],
            "error store [\"S\"]; recall k@[\"S\"]",
        ),
    ]);
}

#[test]
fn choose() {
    asked(&[
        ("choose 0.3 1 2", &[Answer::Drawn(true)], "1; sample@[]"),
        ("[\"S\"]: choose 0.3 1 2", &[Answer::Drawn(false)], "[\"S\"]:2; sample@[\"S\"]"),
    ]);
}

#[test]
fn llm() {
    asked(&[
        ("llm 'p' {} 'x'", &[says("hi")], "\"hi\"; model@[]"),
        ("llm ([\"U\"]: 'p') {} 'x'", &[says("hi")], "[\"U\"]:\"hi\"; model@[\"U\"]"),
        ("llm 'p' {} [[\"S\"]: 'x']", &[says("hi")], "[\"S\"]:\"hi\"; model@[\"S\"]"),
        ("([\"U\"]: llm 'p' {}) 'x'", &[says("hi")], "[\"U\"]:\"hi\"; model@[\"U\"]"),
        // That there is no prompt is a fact about the prompt.
        ("llm ([\"S\"]: '') {} 'x'", &[says("hi")], "[\"S\"]:\"hi\"; model@[\"S\"]"),
        ("llm 5 {}", &[], "error type []"),
        ("llm 'p' {result: Num} 'x'", &[says("12")], "12; model@[]"),
        // The conversation of the caller is left alone, also by an error.
        ("send 'a' ; llm 'p' {} 'x'", &[says("hi")], "\"hi\"; []:[user a]; model@[]"),
        (
            "send 'a' ; try[[]] llm 'p' {} 'x' catch e. 1",
            &[Answer::Failed("down".into())],
            "1; []:[user a]; model@[]",
        ),
    ]);
}

#[test]
fn send() {
    rules(&[
        ("send 'a'", "{}; []:[user a]"),
        ("send[system] ([\"U\"]: 1)", "{}; [\"U\"]:[system 1]"),
        (
            "send {a: [\"S\"]: 'x', b: (1, `t), c: `t 'y'}",
            "{}; [\"S\"]:[user {\"a\":\"x\",\"b\":(1, `t),\"c\":`t \"y\"}]",
        ),
        ("send \\x. x", "{}; []:[user <function>]"),
        ("[\"S\"]: send 'a'", "error flow [\"S\"]"),
        ("send ([\"S\"]: 'a') ; [\"S\"]: send 'b'", "[\"S\"]:{}; [\"S\"]:[user a, user b]"),
        ("send ([\"S\"]: 'a') ; [\"U\"]: send 'b'", "error flow [\"U\",\"S\"]; [\"S\"]:[user a]"),
    ]);
}

#[test]
fn recv_as_code() {
    asked(&[
        ("recv", &[says("1 + 1")], "[true,2]; []:[assistant 1 + 1]; model@[]"),
        (
            "send ([\"U\"]: 'a') ; recv",
            &[says("[1]")],
            "[\"U\"]:[[\"U\"]:true,[\"U\"]:[[\"U\"]:1]]; [\"U\"]:[user a, assistant [1]]; model@[\"U\"]",
        ),
        (
            "send ([\"U\"]: 'a') ; recv",
            &[says("(")],
            "[\"U\"]:[[\"U\"]:false,[\"U\"]:\"not code\"]; [\"U\"]:[user a, assistant (]; model@[\"U\"]",
        ),
        // Only the prelude is in scope.
        ("let x = 1 in (recv).[0]", &[says("x")], "false; []:[assistant x]; model@[]"),
        ("(recv).[1]", &[says("even 4")], "true; []:[assistant even 4]; model@[]"),
        // Generated code takes part in the conversation.
        (
            "@'a'",
            &[says("@'b'"), says("2")],
            "[true,[true,2]]; []:[user a, assistant @'b', user b, assistant 2]; model@[]; model@[]",
        ),
        ("[\"S\"]: recv", &[], "error flow [\"S\"]"),
        (
            "send ([\"U\"]: 'a') ; recv",
            &[Answer::Failed("down".into())],
            "error model [\"U\"]; [\"U\"]:[user a]; model@[\"U\"]",
        ),
    ]);
}

#[test]
fn generated_code_does_not_reclassify_or_act() {
    for text in [
        "endorse [] 1",
        "\\x. declassify [] x",
        "tool t() -> Num read\ntool[t] null",
        "tool t() -> Num read\nllm 'p' {tools: [t]}",
        "tool t() -> Num read\nrecv {tools: [t]}",
    ] {
        let seen = outcome("(recv).[0]", &[says(text)]);
        assert!(seen.starts_with("false;"), "{text}: {seen}");
    }
}

#[test]
fn recv_as_data() {
    let repaired = "user That reply cannot be used";
    asked(&[
        ("recv {}", &[says("12")], "\"12\"; []:[assistant 12]; model@[]"),
        ("recv {result: Num}", &[says("12")], "12; []:[assistant 12]; model@[]"),
        (
            "send ([\"U\"]: 'a') ; recv {result: List Num}",
            &[says("so: [1, 2].")],
            "[\"U\"]:[1,2]; [\"U\"]:[user a, assistant so: [1, 2].]; model@[\"U\"]",
        ),
        ("recv {result: Num * Bool}", &[says("[1, true]")], "(1, true); []:[assistant [1, true]]; model@[]"),
        (
            "recv {result: <a: Num, b: Null>}",
            &[says("{\"a\": 1}")],
            "`a 1; []:[assistant {\"a\": 1}]; model@[]",
        ),
        ("recv {result: Enum E(x, y)}", &[says(" \"x\" ")], "\"x\"; []:[assistant  \"x\" ]; model@[]"),
        (
            "recv {result: Num, repair: 1}",
            &[says("no"), says("3")],
            &format!("3; []:[assistant no, {repaired}, assistant 3]; model@[]; model@[]"),
        ),
        (
            "recv {result: Num, repair: 1}",
            &[says("no"), says("nay")],
            &format!("error decode []; []:[assistant no, {repaired}, assistant nay]; model@[]; model@[]"),
        ),
    ]);
    let tool = |rest: &str| {
        format!("tool t(a: Num, b: Option Str) -> Num read\nrecv {{{rest}tools: [t], repair: 0}}")
    };
    let call = |args: Data| [Answer::ToolCall("t".into(), args)];
    let one = Data::record([("a".into(), num(1))]);
    asked(&[
        (&tool(""), &call(one), "`t {a:1}; []:[assistant {\"a\":1}]; model@[]"),
        (&tool("result: Num, "), &[says("7")], "`final 7; []:[assistant 7]; model@[]"),
        (&tool(""), &call(Data::record([])), "error decode []; []:[assistant {}]; model@[]"),
        ("recv {}", &call(Data::record([])), "error decode []; []:[assistant {}]; model@[]"),
    ]);
}

#[test]
fn a_call_that_waits_is_received_without_asking() {
    let several = |n: i64| {
        let call = |i: i64| ("t".into(), Data::record([("a".into(), num(i))]));
        [Answer::ToolCalls((1..=n).map(call).collect())]
    };
    let tool = |rest: &str| {
        let next = "recv {tools: [t], waiting: true}";
        format!("tool t(a: Num) -> Num read\ntool u(b: Str) -> Num read\n{}", rest.replace("NEXT", next))
    };
    let one = "assistant {\"a\":1}";
    let two = "assistant {\"a\":2}";
    asked(&[
        // Nothing waits before anything was asked; nobody is asked.
        (&tool("NEXT"), &[], "`none null"),
        (
            &tool("[recv {tools: [t]}, NEXT, NEXT]"),
            &several(1),
            &format!("[`t {{a:1}},`none null,`none null]; []:[{one}]; model@[]"),
        ),
        (
            &tool("[recv {tools: [t]}, NEXT, NEXT]"),
            &several(2),
            &format!("[`t {{a:1}},`t {{a:2}},`none null]; []:[{one}, {two}]; model@[]"),
        ),
        // What waits belongs to the conversation: a fresh one has nothing, a fork has it, too.
        (
            &tool("[recv {tools: [t]}, fresh NEXT, fork NEXT, NEXT]"),
            &several(2),
            &format!("[`t {{a:1}},`none null,`t {{a:2}},`t {{a:2}}]; []:[{one}, {two}]; model@[]"),
        ),
        // It is decoded as any other, and repaired by the next question.
        (
            &tool("[recv {tools: [t]}, try[[]] recv {tools: [u], waiting: true} catch x. 'no', NEXT]"),
            &several(3),
            &format!("[`t {{a:1}},\"no\",`none null]; []:[{one}, {two}]; model@[]"),
        ),
        (
            &tool("[recv {tools: [t]}, recv {tools: [u], waiting: true, repair: 1}, NEXT]"),
            &several(3),
            &format!(
                "[`t {{a:1}},`none null,`none null]; []:[{one}, {two}, user That reply cannot be used]; model@[]"
            ),
        ),
    ]);
    // The label is that of the conversation, also of the fact that nothing waits.
    rules(&[
        (&tool("send ([\"U\"]: 'a') ; NEXT"), "[\"U\"]:`none null; [\"U\"]:[user a]"),
        (&tool("[\"S\"]: NEXT"), "error flow [\"S\"]"),
    ]);
}

#[test]
fn conversations() {
    rules(&[
        ("send 'a' ; clear", "{}"),
        ("[\"S\"]: clear", "error flow [\"S\"]"),
        ("send ([\"S\"]: 'a') ; clear", "{}"),
        ("send 'a' ; fork (send 'b')", "{}; []:[user a]"),
        // A fork may send at a high pc; nothing of it escapes.
        ("send 'a' ; [\"S\"]: fork (send 'b')", "[\"S\"]:{}; []:[user a]"),
        ("send ([\"U\"]: 'a') ; fresh (send 'b')", "{}; [\"U\"]:[user a]"),
        ("send ([\"U\"]: 'a') ; [\"S\"]: fresh (send 'b')", "[\"S\"]:{}; [\"U\"]:[user a]"),
    ]);
    asked(&[
        ("send 'a' ; [\"S\"]: fork (recv {})", &[says("x")], "[\"S\"]:\"x\"; []:[user a]; model@[\"S\"]"),
        ("send ([\"U\"]: 'a') ; fresh (recv {})", &[says("x")], "\"x\"; [\"U\"]:[user a]; model@[]"),
    ]);
}

#[test]
fn tools() {
    let one = [Answer::Data(num(1))];
    let declared = "tool t(x: Num @ [\"U\"], y: List Num @ secret) -> Num @ [\"S\"] write control [\"U\"]\n";
    let call = |args: &str| format!("{declared}tool[t] {args}");
    asked(&[
        (&call("{x: 1, y: []}"), &one, "[\"S\"]:1; t(x=1,y=[])@[\"U\",\"S\"]"),
        (&call("{y: [], x: [\"U\"]: 1}"), &one, "[\"U\",\"S\"]:1; t(x=1,y=[])@[\"U\",\"S\"]"),
        (&call("{x: [\"S\"]: 1, y: []}"), &[], "error flow [\"U\"]"),
        (&call("{x: 1, y: [[\"U\"]: 1]}"), &[], "error flow [\"S\"]"),
        (&call("([\"S\"]: {x: 1, y: []})"), &[], "error flow [\"U\"]"),
        // The label of the record of arguments counts for each of them.
        (&call("(let r = {x: 1, y: []} in [\"S\"]: r)"), &[], "error flow [\"U\"]"),
        (&format!("{declared}[\"S\"]: tool[t] {{x: 1, y: []}}"), &[], "error flow [\"S\"]"),
        (&format!("{declared}[\"U\"]: tool[t] {{x: 1, y: []}}"), &[], "error flow [\"U\",\"S\"]"),
        (&call("{x: 1}"), &[], "error type []"),
        (&call("{x: 1, y: [], z: [\"S\"]: 1}"), &[], "error type [\"S\"]"),
        (&call("{x: 'a', y: []}"), &[], "error type []"),
        (&call("5"), &[], "error type []"),
        (
            &call("{x: 1, y: []}"),
            &[Answer::Failed("x".into())],
            "error tool [\"S\"]; t(x=1,y=[])@[\"U\",\"S\"]",
        ),
        (
            &call("{x: [\"U\"]: 1, y: []}"),
            &[Answer::Data(Data::Null)],
            "error type [\"U\",\"S\"]; t(x=1,y=[])@[\"U\",\"S\"]",
        ),
    ]);
    let bare = "tool t(x: Dyn) -> Num pure\ntool[t] ";
    asked(&[
        (&format!("{bare}5"), &one, "1; t(x=5)@[\"U\",\"S\"]"),
        (&format!("{bare}{{y: 1}}"), &one, "1; t(x={\"y\":1})@[\"U\",\"S\"]"),
        (&format!("{bare}{{x: 1}}"), &one, "1; t(x=1)@[\"U\",\"S\"]"),
        (&format!("{bare}{{x: 1, y: 2}}"), &[], "error type []"),
        (&format!("{bare}(\\x. x)"), &[], "error type []"),
        ("tool t() -> Num pure\ntool[t] {}", &one, "1; t()@[\"U\",\"S\"]"),
        ("tool t() -> Num pure\ntool[t] null", &one, "1; t()@[\"U\",\"S\"]"),
        ("tool t() -> Num pure\ntool[t] 1", &[], "error type []"),
        ("tool t(a: Option Num, b: Num) -> Num pure\ntool[t] {b: 2}", &one, "1; t(a=null,b=2)@[\"U\",\"S\"]"),
    ]);
}

#[test]
fn labels() {
    rules(&[
        ("['U']: 1", "[\"U\"]:1"),
        ("(if [\"S\"]: true then ['U'] else []): 1", "[\"U\",\"S\"]:1"),
        ("[[\"S\"]: 'U']: 1", "[\"U\",\"S\"]:1"),
        ("5: 1", "error not_a_label []"),
        ("([\"S\"]: ['X']): 1", "error not_a_label [\"S\"]"),
        // The threshold's label, not the data's; only the top label counts.
        ("['U'] ? ([\"S\"]: 1)", "[\"U\"]:false"),
        ("['S'] ? ([\"S\"]: 1)", "[\"S\"]:true"),
        ("[] ? [[\"S\"]: 1]", "true"),
        ("[] ? prim[flatten]([[\"S\"]: 1])", "false"),
        ("([\"S\"]: []) ? 1", "[\"S\"]:false"),
        ("assert [] 1", "{}"),
        ("assert ['U'] ([\"S\"]: 1)", "error assert [\"U\"]"),
        ("assert ([\"S\"]: ['U']) 1", "error assert [\"U\",\"S\"]"),
        ("[\"S\"]: assert ([\"S\"]: ['S']) 1", "[\"S\"]:{}"),
        ("endorse [] (['U', 'S']: 1)", "[\"S\"]:1"),
        ("endorse ['U'] 1", "[\"U\"]:1"),
        ("endorse [] (['U']: [1])", "[[\"U\"]:1]"),
        ("[\"U\"]: endorse [] 1", "[\"U\"]:1"),
        ("endorse ([\"U\"]: []) 1", "[\"U\"]:1"),
        ("declassify [] (['U', 'S']: 1)", "[\"U\"]:1"),
        ("declassify ([\"S\"]: []) 1", "[\"S\"]:1"),
        // The label of a captured value survives the endorsement of the closure.
        ("let u = ['U']: 1 in (endorse [] (\\x. u)) 0", "[\"U\"]:1"),
    ]);
}

#[test]
fn try_() {
    rules(&[
        ("try[[]] fail 'x' catch e. e", "\"x\""),
        ("try[['U']] fail ([\"U\"]: 'x') catch e. e", "[\"U\"]:\"x\""),
        ("try[[]] fail ([\"U\"]: 'x') catch e. 1", "error fail [\"U\"]"),
        ("try[['U']] 1 catch e. 2", "[\"U\"]:1"),
        ("try[['U']] fail 1 catch e. 2", "[\"U\"]:2"),
        ("try[5] 1 catch e. 2", "error not_a_label []"),
        ("try[fail 1] 1 catch e. 2", "error fail []"),
        ("try[[]] (try[[]] fail 'a' catch e. fail \"{e}b\") catch e. e", "\"ab\""),
        // The inner try may not catch it, the outer one may.
        ("try[['U']] (try[[]] fail 1 catch e. 2) catch e. 3", "[\"U\"]:2"),
        // In the conversation as it stood at the error.
        ("try[[]] (let _ = send 'a' in fail 1) catch e. 2", "2; []:[user a]"),
        // A conversation opened in between is dropped.
        ("send 'a' ; try[[]] fork (let _ = send 'b' in fail 1) catch e. 2", "2; []:[user a]"),
        ("send 'a' ; try[[]] fresh (let _ = send 'b' in fail 1) catch e. 2", "2; []:[user a]"),
        ("send 'a' ; try[[]] par [(let _ = send 'b' in fail 1)] catch e. 2", "2; []:[user a]"),
        // The handler runs at the label of the try, also toward the conversation.
        ("try[['S']] fail 1 catch e. send 'x'", "error flow [\"S\"]"),
    ]);
}

#[test]
fn policies() {
    let one = [Answer::Data(num(1))];
    let with = |policy: &str, call: &str| {
        format!(
            "tool t(x: Dyn @ [\"U\"], y: Option Num @ [\"U\"]) -> Num pure control [\"U\"] policy ({policy})\n{call}"
        )
    };
    asked(&[
        (&with("\\a. true", "tool[t] {x: 1}"), &one, "1; t(x=1,y=null)@[\"U\"]"),
        (&with("\\a. false", "tool[t] {x: 1}"), &[], "error policy []"),
        (&with("\\a. a.x.value == 1", "tool[t] {x: 1}"), &one, "1; t(x=1,y=null)@[\"U\"]"),
        (&with("\\a. a.x.value == 1", "tool[t] {x: [\"U\"]: 2}"), &[], "error policy [\"U\"]"),
        (&with("\\a. if a.y.value == null then 'why' else true", "tool[t] {x: 2}"), &[], "error policy []"),
        // Labels are data, at the label they say.
        (&with("\\a. a.x.label == []", "tool[t] {x: 2}"), &one, "1; t(x=2,y=null)@[\"U\"]"),
        (&with("\\a. a.x.label == []", "tool[t] {x: [\"U\"]: 2}"), &[], "error policy [\"U\"]"),
        (
            &with("\\a. a.x.label == ['U']", "tool[t] {x: [[\"U\"]: 2]}"),
            &one,
            "[\"U\"]:1; t(x=[2],y=null)@[\"U\"]",
        ),
        // The label of the record counts for its fields.
        (
            &with("\\a. a.y.label == ['U']", "tool[t] ([\"U\"]: {x: 1})"),
            &one,
            "[\"U\"]:1; t(x=1,y=null)@[\"U\"]",
        ),
        // The verdict's label is joined, and must flow to the channel.
        (&with("\\a. [\"U\"]: true", "tool[t] {x: 1}"), &one, "[\"U\"]:1; t(x=1,y=null)@[\"U\"]"),
        (&with("\\a. [\"S\"]: true", "tool[t] {x: 1}"), &[], "error flow [\"S\"]"),
        (&with("\\a. [\"S\"]: false", "tool[t] {x: 1}"), &[], "error flow [\"S\"]"),
        (&with("\\a. 5", "tool[t] {x: 1}"), &[], "error type []"),
        (&with("\\a. a.z", "tool[t] {x: 1}"), &[], "error index []"),
        (&with("7", "tool[t] {x: 1}"), &[], "error not_a_function []"),
        // Bounds and types come first; the conversation is its own.
        (&with("\\a. true", "tool[t] {x: [\"S\"]: 1}"), &[], "error flow [\"U\"]"),
        (&with("\\a. true", "tool[t] {}"), &[], "error type []"),
        (
            &with("\\a. let _ = send 'x' in true", "let _ = send 'm' in tool[t] {x: 1}"),
            &one,
            "1; []:[user m]; t(x=1,y=null)@[\"U\"]",
        ),
        (
            &with("\\a. if a.x.value == 1 then fail 'no' else true", "try[[]] tool[t] {x: 1} catch e. e"),
            &[],
            "\"no\"",
        ),
    ]);
}

#[test]
fn approval() {
    let tool = "tool t(x: Num) -> Num @ [\"S\"] write approve\n";
    let yes = [Answer::Approved(Ok(())), Answer::Data(num(1))];
    let no = [Answer::Approved(Err("no".into()))];
    let t = |text: &str| format!("{tool}{text}");
    asked(&[
        (&t("tool[t] 1"), &yes, "[\"S\"]:1; approve t(x=1)@[]; t(x=1)@[]"),
        (&t("tool[t] 1"), &no, "error tool [\"S\"]; approve t(x=1)@[]"),
        // Untrusted arguments and control are what approval is for; the result stays untrusted.
        (&t("tool[t] ([\"U\"]: 1)"), &yes, "[\"U\",\"S\"]:1; approve t(x=1)@[\"U\"]; t(x=1)@[]"),
        (&t("[\"U\"]: tool[t] 1"), &yes, "[\"U\",\"S\"]:1; approve t(x=1)@[\"U\"]; t(x=1)@[]"),
        (
            &t("if [\"U\"]: true then tool[t] 1 else 2"),
            &no,
            "error tool [\"U\",\"S\"]; approve t(x=1)@[\"U\"]",
        ),
        // Secrets are not.
        (&t("tool[t] ([\"S\"]: 1)"), &[], "error flow [\"U\"]"),
        (&t("tool[t] ([\"U\",\"S\"]: 1)"), &[], "error flow [\"U\"]"),
        (&t("[\"S\"]: tool[t] 1"), &[], "error flow [\"S\"]"),
        (&t("tool[t] 'a'"), &[], "error type []"),
        (&t("within[1] tool[t] 1"), &[Answer::Late(0)], "error timeout [\"S\"]; approve t(x=1)@[]"),
        (
            "tool t(x: Num) -> Num pure approve policy (\\a. a.x.value < 3)\n[tool[t] 1, tool[t] 5]",
            &yes,
            "error policy []; approve t(x=1)@[\"U\",\"S\"]; t(x=1)@[\"U\",\"S\"]",
        ),
    ]);
}

#[test]
fn approval_with_other_arguments() {
    let axes = |untrusted, secret| core_ir::LabelSpec::Axes { untrusted, secret };
    let edit = |n: i64, label| [Answer::Edited(vec![("x".into(), num(n))], label), Answer::Data(num(1))];
    let (trusted, untrusted, secret) = (axes(false, false), axes(true, false), axes(false, true));
    let t = |text: &str| format!("tool t(x: Num) -> Num @ [\"S\"] write approve\n{text}");
    let bounded = |text: &str| {
        format!("tool t(x: Num) -> Num pure approve policy (\\a. a.x.value < 3 && a.x.label == [])\n{text}")
    };
    let asks = |text: &str| format!("tool t(x: Num @ []) -> Num pure policy (\\a. `ask null)\n{text}");
    let dynamic = |text: &str| format!("tool t(x: Dyn @ []) -> Num @ [] write control [] approve\n{text}");
    let two = |text: &str| format!("tool t(x: Num, y: Num @ [\"S\"]) -> Num write approve\n{text}");
    let sends = |text: &str| {
        format!(
            "tool t(x: Num) -> Num pure approve\nsend 'q' ; let c = recv {{tools: [t]}} in case c of {{`t a => \
             {text}, `final s => s}}"
        )
    };
    asked(&[
        // The call is made with the new argument, and the result is that of the call that was made.
        (&t("tool[t] 1"), &edit(2, trusted.clone()), "[\"S\"]:1; approve t(x=1)@[]; t(x=2)@[]"),
        (&t("tool[t] {x: 1}"), &edit(2, trusted.clone()), "[\"S\"]:1; approve t(x=1)@[]; t(x=2)@[]"),
        (
            &t("tool[t] (args[t]{x: [\"U\"]: 1})"),
            &edit(2, trusted.clone()),
            "[\"U\",\"S\"]:1; approve t(x=1)@[\"U\"]; t(x=2)@[]",
        ),
        // The result is as untrusted as whoever wrote the argument.
        (&t("tool[t] 1"), &edit(2, untrusted.clone()), "[\"U\",\"S\"]:1; approve t(x=1)@[]; t(x=2)@[]"),
        // Nobody's answer makes a secret public: neither their own, nor what they were shown beside it.
        (&t("tool[t] 1"), &edit(2, secret), "error flow [\"U\",\"S\"]; approve t(x=1)@[]"),
        (
            &two("tool[t] {x: 1, y: [\"S\"]: 7}"),
            &edit(7, trusted.clone()),
            "error flow [\"U\",\"S\"]; approve t(x=1,y=7)@[\"S\"]",
        ),
        (
            &two("tool[t] {x: 1, y: [\"S\"]: 7}"),
            &[Answer::Edited(vec![("y".into(), num(1))], trusted.clone()), Answer::Data(num(1))],
            "[\"U\",\"S\"]:1; approve t(x=1,y=7)@[\"S\"]; t(x=1,y=1)@[\"S\"]",
        ),
        // Types and parameters are checked again, and so is the policy, which sees the label of the approver.
        (
            &t("tool[t] 1"),
            &[Answer::Edited(vec![("x".into(), Data::str("a"))], trusted.clone())],
            "error type [\"S\"]; approve t(x=1)@[]",
        ),
        (
            &t("tool[t] 1"),
            &[Answer::Edited(vec![("z".into(), num(1))], trusted.clone())],
            "error type [\"S\"]; approve t(x=1)@[]",
        ),
        (
            &bounded("tool[t] 1"),
            &edit(2, trusted.clone()),
            "1; approve t(x=1)@[\"U\",\"S\"]; t(x=2)@[\"U\",\"S\"]",
        ),
        (&bounded("tool[t] 1"), &edit(5, trusted.clone()), "error policy []; approve t(x=1)@[\"U\",\"S\"]"),
        (
            &bounded("tool[t] 1"),
            &edit(2, untrusted.clone()),
            "error policy [\"U\"]; approve t(x=1)@[\"U\",\"S\"]",
        ),
        // Where a policy asks, bounds hold in full.
        (
            &asks("tool[t] 1"),
            &edit(2, trusted.clone()),
            "1; approve t(x=1)@[\"U\",\"S\"]; t(x=2)@[\"U\",\"S\"]",
        ),
        (&asks("tool[t] 1"), &edit(2, untrusted), "error flow [\"U\"]; approve t(x=1)@[\"U\",\"S\"]"),
        // What is not changed stays, also if the tool takes anything.
        (
            &dynamic("tool[t] 1"),
            &[Answer::Edited(vec![], trusted.clone()), Answer::Data(num(1))],
            "1; approve t(x=1)@[]; t(x=1)@[]",
        ),
        (
            &dynamic("tool[t] 1"),
            &[Answer::Edited(vec![("z".into(), num(2))], trusted.clone())],
            "error type []; approve t(x=1)@[]",
        ),
        // A model is told when it is asked next.
        (
            &sends("let r = tool[t] a in let _ = send r in recv {}"),
            &[
                Answer::ToolCall("t".into(), Data::record([("x".into(), num(1))])),
                edit(2, trusted.clone())[0].clone(),
                Answer::Data(num(5)),
                says("ok"),
            ],
            "\"ok\"; []:[user q, assistant {\"x\":1}, user 5, user The call of `t` was approved with changed \
             arguments: {\"x\":2}, assistant ok]; model@[]; approve t(x=1)@[\"U\",\"S\"]; t(x=2)@[\"U\",\"S\"]; model@[]",
        ),
    ]);
}

#[test]
fn a_tool_may_label_what_it_returns() {
    let exact = |l: &[&str]| core_ir::LabelSpec::Exact(Data::list(l.iter().map(|l| Data::str(*l))));
    let answers = |l: core_ir::LabelSpec| [Answer::Labeled(num(1), l)];
    let t = "tool t(x: Num) -> Num @ [\"S\"] pure\ntool[t] 1";
    asked(&[
        (t, &answers(exact(&["U"])), "[\"U\",\"S\"]:1; t(x=1)@[\"U\",\"S\"]"),
        (t, &answers(exact(&[])), "[\"S\"]:1; t(x=1)@[\"U\",\"S\"]"),
        // A label of another lattice is as high as can be.
        (t, &answers(exact(&["web"])), "[\"U\",\"S\"]:1; t(x=1)@[\"U\",\"S\"]"),
    ]);
}

#[test]
fn several_tool_calls_are_received_one_after_the_other() {
    let args = |n: i64| Data::record([("x".into(), num(n))]);
    let calls = |names: &[&str]| {
        Answer::ToolCalls(names.iter().enumerate().map(|(i, n)| ((*n).into(), args(i as i64))).collect())
    };
    let with =
        |text: &str| format!("tool t(x: Num) -> Num pure\ntool u(x: Num) -> Num pure\nsend 'q' ; {text}");
    let two = "[recv {tools: [t, u]}, recv {tools: [t, u]}]";
    asked(&[
        (
            &with(two),
            &[calls(&["t", "u"])],
            "[`t {x:0},`u {x:1}]; []:[user q, assistant {\"x\":0}, assistant {\"x\":1}]; model@[]",
        ),
        // What asks drops the rest.
        (
            &with("[recv {tools: [t, u]}, recv {}, recv {tools: [t, u]}]"),
            &[calls(&["t", "u"]), says("a"), says("b")],
            "[`t {x:0},\"a\",`final \"b\"]; []:[user q, assistant {\"x\":0}, assistant a, assistant b]; model@[]; model@[]; model@[]",
        ),
        // So does one that does not decode; and a copy keeps its own.
        (
            &with("[recv {tools: [t, u]}, try[[]] recv {tools: [t]} catch e. 'no', recv {tools: [t]}]"),
            &[calls(&["t", "u", "t"]), says("b")],
            "[`t {x:0},\"no\",`final \"b\"]; []:[user q, assistant {\"x\":0}, assistant {\"x\":1}, assistant b]; model@[]; model@[]",
        ),
        (
            &with("[recv {tools: [t, u]}, fork recv {tools: [t, u]}, recv {tools: [t, u]}]"),
            &[calls(&["t", "u"])],
            "[`t {x:0},`u {x:1},`u {x:1}]; []:[user q, assistant {\"x\":0}, assistant {\"x\":1}]; model@[]",
        ),
        (
            &with("recv {tools: [t]}"),
            &[Answer::ToolCalls(Vec::new())],
            "`final \"\"; []:[user q, assistant ]; model@[]",
        ),
    ]);
}

#[test]
fn time_limits() {
    let late = |n| [Answer::Late(n)];
    let tool = "tool t(x: Num @ [\"U\"]) -> Num @ [\"S\"] read control [\"U\"]\n";
    let t = |text: &str| format!("{tool}{text}");
    asked(&[
        // The label of a tool's errors, of a model's, of a store's, of a sample's.
        (&t("within[5] tool[t] {x: 1}"), &late(0), "error timeout [\"S\"]; t(x=1)@[\"U\"]"),
        (&t("within[5] tool[t] {x: [\"U\"]: 1}"), &late(0), "error timeout [\"U\",\"S\"]; t(x=1)@[\"U\"]"),
        (
            "within[5] (let _ = send (['U']: 'a') in recv {})",
            &late(0),
            "error timeout [\"U\"]; [\"U\"]:[user a]; model@[\"U\"]",
        ),
        ("mem (within[1] recall k) {k: Num @ secret}", &late(0), "error timeout [\"S\"]; recall k@[\"S\"]"),
        (
            "mem (within[1] remember k 1) {k: Num @ secret}",
            &late(0),
            "error timeout [\"S\"]; remember k 1@[\"S\"]",
        ),
        ("within[1] choose 0.5 1 2", &late(0), "error timeout []; sample@[]"),
        // One of several limits; one that is not there is no answer.
        ("within[2] within[1] choose 0.5 1 2", &late(1), "error timeout []; sample@[]"),
        ("within[2] within[1] choose 0.5 1 2", &late(2), "error unknown []; sample@[]"),
        (&t("tool[t] {x: 1}"), &late(0), "error tool [\"S\"]; t(x=1)@[\"U\"]"),
        // Outside the scope there is no limit, also after an error inside.
        (
            "let a = try[[]] within[1] choose 0.5 1 2 catch e. 3 in [a, choose 0.5 1 2]",
            &[Answer::Late(0), Answer::Late(0)],
            "error unknown []; sample@[]; sample@[]",
        ),
        // Branches inherit the limits.
        ("within[1] par [choose 0.5 1 2]", &late(0), "error timeout []; sample@[]"),
        // Caught like others, where the label flows.
        (
            "tool u(x: Num) -> Num @ [\"S\"] pure\ntry[['S']] within[1] tool[u] 1 catch e. 2",
            &late(0),
            "[\"S\"]:2; u(x=1)@[\"U\",\"S\"]",
        ),
        (
            &t("try[[]] within[1] tool[t] {x: 1} catch e. 2"),
            &late(0),
            "error timeout [\"S\"]; t(x=1)@[\"U\"]",
        ),
        // Or passing as if the `try` were not there, to one that takes it.
        ("within[1] try[[]] choose 0.5 1 2 catch not timeout e. 3", &late(0), "error timeout []; sample@[]"),
        (
            "try[['U']] within[1] (try[['S']] choose 0.5 1 2 catch not timeout e. 3) catch e. 4",
            &late(0),
            "error timeout [\"U\",\"S\"]; sample@[\"U\",\"S\"]",
        ),
        (
            "try[['U']] within[1] (try[[]] choose 0.5 1 2 catch not timeout e. 3) catch e. 4",
            &late(0),
            "[\"U\"]:4; sample@[\"U\"]",
        ),
        ("within[1] try[[]] fail 1 catch not timeout e. 3", &[], "3"),
        (
            "let f = \\n. fix[inf] (\\s. \\i. if i == 0 then 7 else within[1] s (i - 1)) n in [f 100, try[[]] f 101 catch e. 8]",
            &[],
            "[7,8]",
        ),
    ]);
}

#[test]
fn a_store_that_fails() {
    let failed = [Answer::Failed("full".into())];
    asked(&[
        (
            "mem (try[[]] remember k 1 catch e. 2) {k: Num @ secret}",
            &failed,
            "error store [\"S\"]; remember k 1@[\"S\"]",
        ),
        ("mem (recall k) {k: Num @ secret}", &failed, "error store [\"S\"]; recall k@[\"S\"]"),
        (
            "mem (recall k) {k: Num @ secret}",
            &[Answer::Found(Some(Data::Null))],
            "error type [\"S\"]; recall k@[\"S\"]",
        ),
    ]);
}

#[test]
fn fail() {
    rules(&[
        ("fail 1", "error fail []"),
        ("fail [[\"S\"]: 1]", "error fail [\"S\"]"),
        ("try[[]] fail {a: 'x'} catch e. e", "\"{\\\"a\\\":\\\"x\\\"}\""),
    ]);
}

#[test]
fn par() {
    rules(&[
        ("par [1, [\"S\"]: 2]", "[1,[\"S\"]:2]"),
        ("[\"U\"]: par[1] [1]", "[\"U\"]:[[\"U\"]:1]"),
        ("send 'a' ; par [send 'b', clear]", "[{},{}]; []:[user a]"),
        ("try[[]] par [1, fail 'a', fail 'b'] catch e. e", "\"a\""),
        // Nobody may catch the secret error, so it ends the run.
        ("try[[]] par [fail ([\"S\"]: 1), fail 2] catch e. e", "error fail [\"S\"]"),
        ("par []", "[]"),
        ("((\\x. x + 1) | (\\x. [\"S\"]: x)) 1", "(2, [\"S\"]:1)"),
    ]);
    // All branches run to their end before the first error counts.
    asked(&[(
        "tool t(x: Num) -> Num pure\ntry[[]] par [fail 1, tool[t] 1] catch e. 2",
        &[Answer::Data(num(1))],
        "2; t(x=1)@[\"U\",\"S\"]",
    )]);
}

#[test]
fn each() {
    rules(&[
        ("each (\\x. x + 1) [1, [\"S\"]: 2]", "[2,[\"S\"]:3]"),
        ("each[1] (\\x. x) []", "[]"),
        // The list's label is that of every branch and of the result: how many there are is known from it.
        ("each (\\x. 0) ([\"U\"]: [1, 2])", "[\"U\"]:[[\"U\"]:0,[\"U\"]:0]"),
        ("each ([\"S\"]: \\x. x) [1]", "[[\"S\"]:1]"),
        ("each (\\x. x) ([\"S\"]: 1)", "error type [\"S\"]"),
        ("each 1 [1]", "error not_a_function []"),
        ("send 'a' ; each (\\x. send x) ['b', 'c']", "[{},{}]; []:[user a]"),
        ("try[[]] each (\\x. if x == 1 then x else fail x) [1, 2, 3] catch e. e", "\"2\""),
        ("try[['S']] each (\\x. fail x) ([\"S\"]: [1, 2]) catch e. e", "[\"S\"]:\"1\""),
        ("try[[]] each (\\x. fail x) [[\"S\"]: 1] catch e. e", "error fail [\"S\"]"),
        ("each (\\xs. each (\\x. x * 2) xs) [[1], [2, 3]]", "[[2],[4,6]]"),
    ]);
    // A function of the world is applied like any other, and all branches run to their end.
    asked(&[(
        "tool t(x: Num) -> Num pure\ntry[[]] each tool[t] [1, 2] catch e. 3",
        &[Answer::Failed("no".into()), Answer::Data(num(1))],
        "3; t(x=1)@[\"U\",\"S\"]; t(x=2)@[\"U\",\"S\"]",
    )]);
}

#[test]
fn check() {
    rules(&[
        ("check[Num] ([\"U\"]: 1)", "[\"U\"]:1"),
        ("check[List Num] [[\"S\"]: 1]", "[[\"S\"]:1]"),
        ("check[List Num] [[\"S\"]: 'x']", "error type [\"S\"]"),
        ("check[Dyn] (\\x. x)", "error type []"),
        ("check[{Num | value > 2}] 1", "error type []"),
    ]);
}

#[test]
fn unknown() {
    rules(&[("[\"U\"]: unknown 'what'", "error unknown [\"U\"]")]);
}

/// Data nested deeper than 500 levels has no type, is no label, satisfies no predicate and is not sent.
#[test]
fn deep_values() {
    for (look, expected) in [
        ("check[Dyn] d", "error limit [\"S\"]"),
        ("guard d any retry 1", "error guard [\"S\"]"),
        ("mem (remember k d) {k: Dyn @ secret}", "error limit [\"S\"]"),
        ("tool[t] d", "error limit [\"S\"]"),
        ("d: 1", "error not_a_label [\"S\"]"),
        ("fail d", "error limit [\"S\"]"),
        ("\"a{d}\"", "error limit [\"S\"]"),
        ("prim[to_json](d)", "error limit [\"S\"]"),
        ("d == d", "[\"S\"]:true"),
        // The constructor alone is looked at.
        ("prim[length](d)", "1"),
        ("classify[a] d", "error classify [\"S\"]"),
        ("llm 'p' {} d", "error limit [\"S\"]"),
        ("prim[contains]([d], d)", "[\"S\"]:true"),
        ("prim[is_null](prim[append]([], d))", "[\"S\"]:false"),
    ] {
        let text = format!(
            "tool t(x: Dyn) -> Num pure\nlet d = fix[501] (\\self. \\x. self [x]) ([\"S\"]: 1) in {look}"
        );
        assert_eq!(outcome(&text, &[]), expected, "{look}");
    }
}

#[test]
fn limits() {
    rules(&[
        // 501 lists around a number.
        ("let deep = fix[501] (\\self. \\x. self [x]) in send (deep ([\"S\"]: 1))", "error limit [\"S\"]"),
        (
            "let deep = fix[500] (\\self. \\x. self [x]) in prim[length](prim[to_str](deep ([\"S\"]: 1)))",
            "[\"S\"]:1001",
        ),
        ("let long = fix[17] (\\self. \\x. self (x + x)) in send (long 'a')", "error limit []"),
    ]);
}
