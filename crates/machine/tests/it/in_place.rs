//! Runs do not depend on where requests are answered.
//!
//! Each program runs in three ways: with a world that answers where requests stand; with requests that are
//! answered one by one; and, so, with origins kept. Results with all their labels, steps, and the names,
//! channels and arguments of requests are the same.

use core_ir::{Code, Data, Globals, Num, StoreDecl, ToolDecl};
use diagnostics::FileId;
use machine::{Answers, Args, Asked, Call, Config, Machine, Output, Response};
use std::sync::Arc;
use syntax::lam::{Options, parse};

fn code(text: &str) -> Arc<Code> {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    assert!(parsed.code.is_some(), "{text}: {:?}", parsed.diagnostics);
    parsed.code.expect("checked above").into()
}

/// A tool that doubles a number and fails at zero; a store that remembers the last number written, whatever
/// the key.
#[derive(Default)]
struct World {
    in_place: bool,
    kept: Option<Data>,
    log: Vec<String>,
}

impl World {
    fn note(&mut self, asked: &Asked<'_>, what: String) {
        let (channel, answer) = (asked.lattice.show(asked.channel), asked.lattice.show(asked.answer));
        self.log.push(format!("{:?} {:?} {channel} {answer} {what}", asked.id(), asked.place().path()));
    }

    fn called(&mut self, args: &[(core_ir::Name, Data)]) -> Result<Data, String> {
        match args.first() {
            Some((_, Data::Num(n))) if *n == Num::ZERO => Err("nothing to double".into()),
            Some((_, Data::Num(n))) => Ok(Data::Num(n.add(n).expect("small"))),
            _ => Ok(Data::str("no number")),
        }
    }

    fn remembered(&mut self, value: &Data) -> Result<(), String> {
        if *value == Data::Num(Num::from(13)) {
            return Err("the store is broken".into());
        }
        self.kept = Some(value.clone());
        Ok(())
    }
}

impl Answers for World {
    fn tool(
        &mut self,
        asked: &Asked<'_>,
        tool: &Arc<ToolDecl>,
        args: Args<'_>,
    ) -> Option<Result<Data, String>> {
        if !self.in_place {
            return None;
        }
        let args = args.to_vec();
        self.note(asked, format!("{} {args:?}", tool.name));
        Some(self.called(&args))
    }

    fn recall(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
    ) -> Option<Result<Option<Data>, String>> {
        if !self.in_place {
            return None;
        }
        self.note(asked, format!("recall {}", store.keys[key as usize].name));
        Some(Ok(self.kept.clone()))
    }

    fn remember(
        &mut self,
        asked: &Asked<'_>,
        store: &Arc<StoreDecl>,
        key: u32,
        value: &Data,
    ) -> Option<Result<(), String>> {
        if !self.in_place {
            return None;
        }
        self.note(asked, format!("remember {} {value:?}", store.keys[key as usize].name));
        Some(self.remembered(value))
    }

    fn sample(&mut self, asked: &Asked<'_>, probability: &Num, draw: u64) -> Option<bool> {
        if !self.in_place {
            return None;
        }
        self.note(asked, format!("sample {probability} {draw}"));
        Some(true)
    }
}

/// Runs a term: the outcome, the steps, and what the world was asked.
fn seen(code: &Arc<Code>, in_place: bool, explain_flow: bool) -> (String, u64, Vec<String>) {
    let config = Config { explain_flow, fuel: 20_000, ..Config::default() };
    seen_with(code, in_place, config)
}

fn seen_with(code: &Arc<Code>, in_place: bool, config: Config) -> (String, u64, Vec<String>) {
    let mut machine = Machine::new(code.clone(), None, config);
    let mut world = World { in_place, ..World::default() };
    let result = loop {
        match machine.poll_with(&mut world) {
            Output::Request(id, request) => {
                let (what, response) = match &request.call {
                    Call::Tool { tool, args } => {
                        (format!("{} {args:?}", tool.name), Response::Tool(world.called(args)))
                    }
                    Call::Recall { store, key } => {
                        let what = format!("recall {}", store.keys[*key as usize].name);
                        (what, Response::Recall(Ok(world.kept.clone())))
                    }
                    Call::Remember { store, key, value } => {
                        let what = format!("remember {} {value:?}", store.keys[*key as usize].name);
                        (what, Response::Remember(world.remembered(value)))
                    }
                    Call::Sample { probability, draw } => {
                        (format!("sample {probability} {draw}"), Response::Sample(true))
                    }
                    other => panic!("{other:?}"),
                };
                let lattice = machine.lattice();
                let (channel, answer) = (lattice.show(request.channel), lattice.show(request.answer));
                world.log.push(format!("{id:?} {:?} {channel} {answer} {what}", request.place.path()));
                machine.handle(id, response);
            }
            Output::Working => {}
            Output::Waiting => panic!("every request was answered"),
            Output::Done(result) => break result,
        }
    };
    let result = match result {
        Ok(value) => machine.reify(&value).to_string(),
        Err(f) => {
            format!("{} {} {} {:?}", f.code.as_str(), machine.lattice().show(f.label), f.message, f.span)
        }
    };
    let (label, messages) = machine.conversation();
    let said: Vec<&str> = messages.iter().map(|m| &*m.content).collect();
    (format!("{result} {} {said:?}", machine.lattice().show(label)), machine.fuel_used(), world.log)
}

/// Runs a program in all ways; gives what is seen of it.
fn same(text: &str) -> String {
    let code = code(text);
    let by_request = seen(&code, false, false);
    assert_eq!(seen(&code, true, false), by_request, "in place: {text}");
    assert_eq!(seen(&code, false, true), by_request, "step by step: {text}");
    by_request.0
}

#[test]
fn e_fix_rounds_in_place_are_those_of_the_rules() {
    let count = "fix[5] (\\self. \\n. if n == 0 then 7 else self (n - 1))";
    assert_eq!(same(&format!("let f = {count} in [f 0, f 4, f 5, f 9]")), "[7, 7, 0, 4] [] []");
    assert_eq!(
        same(&format!("let f = {count} in let k = ([\"S\"] : 3) in [f k, let x = f k in (x, 1)]")),
        "[[\"S\"]:7, ([\"S\"]:7, 1)] [] []"
    );
    // What it has captured, the label of the function itself, several decisions, and an end that is a text.
    same(
        "let k = 2 in let f = fix[9] (\\self. \\n. if n < k then 'few' else if n > 5 then 'many' else self (n - k)) in [f 4, f 9, f 5]",
    );
    same("let f = ([\"U\"] : fix[9] (\\self. \\n. if n == 0 then 'end' else self (n - 1))) in [f 3, f 1]");
    same("let f = fix[inf] (\\self. \\n. if n == 0 then 'end' else self (n - 1)) in [f 300, (\\x. f x) 200]");
    same("let f = fix[7] (\\self. \\n. if n then self (1 == 2) else 3) in [f (1 == 1)]");
    // Rounds that are of another kind in the end, and errors.
    same("let f = fix[9] (\\self. \\n. if n == 0 then send 'end' else self (n - 1)) in [f 3, f 2]");
    same("let f = fix[9] (\\self. \\n. if n == 0 then 1 else n * self (n - 1)) in [f 3, f 2]");
    same("let f = fix[9] (\\self. \\n. if n == 0 then n.x else self (n - 1)) in [1, f 3]");
    same("let f = fix[9] (\\self. \\n. if n == 0 then self else self (n - 1)) in [(f 3) 2]");
    same("let f = fix[inf] (\\self. \\n. self (n + 1)) in [1, f 3]");
}

#[test]
fn pairs_of_branches_in_place_are_those_of_the_rules() {
    assert_eq!(same("let f = (\\x. x + 1) | (\\x. x * 2) in [f 5, f 1]"), "[(6, 10), (2, 2)] [] []");
    assert_eq!(
        same("let f = ([\"U\"] : ((\\x. x + 1) | (\\x. 'text'))) in [f 5]"),
        "[[\"U\"]:([\"U\"]:6, [\"U\"]:\"text\")] [] []"
    );
    same("let f = (\\x. x + 1) | (\\x. x.y) in [f {y: 5}]");
    same("let f = (\\x. x) | (\\x. choose 0.5 x 2) in [f 1, choose 0.5 3 4]");
    same("let f = (\\x. x) | (\\x. x) in [f 1, choose 0.5 3 4, f (f 2)]");
}

#[test]
fn guards_of_numbers_in_place_are_those_of_the_rules() {
    for (program, result) in [
        (
            "[guard 5 value > 3, let x = guard 4 value > 3 in x + 1, guard (2 + 2) value == 4]",
            "[5, 5, 4] [] []",
        ),
        ("[guard (1 == 1) in [true], guard ((\\x. x - 1) 5) value < 5]", "[true, 4] [] []"),
        (
            "let s = ([\"S\"] : 4) in [guard s value > 3, [guard (s + 1) value > 3]]",
            "[[\"S\"]:4, [[\"S\"]:5]] [] []",
        ),
        ("[0, [\"U\"] : [1, guard 4 value > 3]]", "[0, [\"U\"]:[[\"U\"]:1, [\"U\"]:4]] [] []"),
        ("[guard 'four' length == 4, guard [1] length == 1]", "[\"four\", [1]] [] []"),
        ("[(guard (\\x. x) value > 3) 4]", "[4] [] []"),
        // The label of an error that is caught is that of what was refused.
        ("try[[\"S\"]] [1, guard ([\"S\"] : 2) value > 3] catch e. [0]", "[\"S\"]:[[\"S\"]:0] [] []"),
    ] {
        assert_eq!(same(program), result, "{program}");
    }
    for program in [
        "[1, guard 2 value > 3]",
        "[1, guard 2 value > 3 retry 2]",
        "[1, guard 2 length > 3]",
        "[1, guard (choose 0.5 4 2) value > 3 retry 2]",
        "let x = guard 2 value > 3 in [x]",
        "[guard 1000000000000000000000000000000 value > 3]",
    ] {
        same(program);
    }
}

/// A function that is written where it is applied to an operand, and does one operation, takes no more and no
/// fewer steps than any other: numbers that are too large for what is done in place follow the rules.
#[test]
fn operations_of_functions_that_are_written_there_take_the_steps_of_the_rules() {
    let large = "1000000000000000000000000000000";
    for program in [
        "let a = 5 in [1, (\\x. x + 1) a]",
        "let a = 5 in (\\x. 2 - x) a",
        "let a = 5 in let f = \\b. (\\x. x * a) b in [f a]",
        "let a = 5 in [(\\x. a + x) a, (\\x. x == x) a, (\\x. 1 + 2) a]",
        "(\\a. (\\x. x >= 5) a) 5",
        "if (\\x. x >= 3) 5 then 1 else 2",
    ] {
        let other = program.replace('5', large);
        let (small, rules) = (seen(&code(program), true, false), seen(&code(&other), true, false));
        assert_eq!(small.1, rules.1, "{program}");
        for fuel in 1..=small.1 {
            let config = || Config { fuel, ..Config::default() };
            let (small, rules) =
                (seen_with(&code(program), true, config()), seen_with(&code(&other), true, config()));
            assert_eq!(small.0.starts_with("fuel"), rules.0.starts_with("fuel"), "{program}, {fuel} steps");
        }
    }
    assert_eq!(same("let a = 7 in [(\\x. x + 1) a, (\\x. 10 - x) a, (\\x. x * x) a]"), "[8, 3, 49] [] []");
    assert_eq!(
        same("let s = ([\"S\"] : 7) in [(\\x. x + 1) s, (\\x. 1 + 2) s, [\"U\"] : [(\\x. x) s]]"),
        "[[\"S\"]:8, 3, [\"U\"]:[[\"U\",\"S\"]:7]] [] []"
    );
    same("[(\\x. x + 1) 'text']");
    same("[1, (\\x. x + 1) 9223372036854775807]");
    same("[1, (\\x. x + true) 1]");
}

#[test]
fn requests_where_they_stand_are_those_that_are_made() {
    let tools = "tool t(x: Num) -> Num pure\ntool two(x: Num, y: Option Str) -> Num pure\ntool any(x: Dyn) -> Dyn pure\n";
    for program in [
        "[tool[t] 1, tool[t] {x: 2}, {a: [tool[t] 3]}, let y = tool[t] 4 in y + 1]",
        "[tool[t] 0]",
        "[try[[]] [tool[t] 0] catch e. e, 1]",
        "[1, tool[t] 'one']",
        "[1, tool[t] {x: 1, y: 2}]",
        "[1, tool[t] {y: 2}]",
        "[tool[any] 'one', tool[any] {y: 1}, tool[any] {x: 1}, tool[any] [1, 2]]",
        "[tool[any] 'not a number' + 1]",
        "[tool[two] {x: 1, y: 'a'}, tool[two] {y: 'a', x: 2}, tool[two] {x: 3}]",
        "[1, tool[t] ([\"S\"] : 1)]",
        "[1, [\"U\"] : [tool[t] 1]]",
        "let f = tool[t] in [f 1, (\\x. tool[t] x) 2]",
        "par [[tool[t] 1], tool[t] 2, [tool[t] 3, tool[t] 4]]",
        "let g = guard tool[t] value > 3 in g 2",
    ] {
        // The order in which branches ask is another one, so they are compared one after the other only.
        if program.starts_with("par") {
            let code = code(&format!("{tools}{program}"));
            let (one, mut other) = (seen(&code, true, false), seen(&code, false, false));
            let mut log = one.2;
            log.sort();
            other.2.sort();
            assert_eq!((one.0, one.1, log), other);
        } else {
            same(&format!("{tools}{program}"));
        }
    }
    for program in [
        "mem [remember a 1, recall a, recall b] {a: Num, b: Num}",
        "mem [recall a, let _ = remember a 2 in recall a, {x: recall a}] {a: Num}",
        "mem [remember a 13] {a: Num}",
        "mem [remember a 'text'] {a: Num}",
        "mem [remember a ([\"S\"] : 1)] {a: Num}",
        "mem [remember a 1, recall b] {a: Num, b: Str}",
    ] {
        same(program);
    }
}

#[test]
fn lists_in_lists_are_those_of_the_rules() {
    let tool = "tool t(x: Num) -> Num pure\n";
    let lists = [
        ("[[1, 2], [3, [4, 5]], [tool[t] 1, 2], 6]", "[[1, 2], [3, [4, 5]], [2, 2], 6] [] []"),
        ("let s = ([\"S\"] : 1) in [[s, 2], [tool[t] 1]]", "[[[\"S\"]:1, 2], [2]] [] []"),
        ("[0, [\"U\"] : [[1, 2], 3]]", "[0, [\"U\"]:[[\"U\"]:[[\"U\"]:1, [\"U\"]:2], [\"U\"]:3]] [] []"),
        // A part that needs a frame, at each place.
        ("[1, [choose 0.5 2 3, 4], 5]", "[1, [2, 4], 5] [] []"),
        ("[1, [2, choose 0.5 3 4, 5], 6]", "[1, [2, 3, 5], 6] [] []"),
        ("[[1, [2, [3, choose 0.5 4 5]], {a: [6]}], 7]", "[[1, [2, [3, 4]], {a: [6]}], 7] [] []"),
        // A call that goes on above the list, and errors in it.
        (
            "let f = fix[inf] (\\self. \\n. if n == 0 then 'end' else self (n - 1)) in [1, [2, f 300, 3], 4]",
            "[1, [2, \"end\", 3], 4] [] []",
        ),
        (
            "[5, try[[]] [1, [2, tool[t] 0]] catch e. e, [6, 7]]",
            "[5, \"`t`: nothing to double\", [6, 7]] [] []",
        ),
        ("[[send 'a', send 'b'], [send 'c']]", "[[{}, {}], [{}]] [] [\"a\", \"b\", \"c\"]"),
    ];
    for (program, result) in lists {
        assert_eq!(same(&format!("{tool}{program}")), result, "{program}");
    }
    let long: Vec<String> = (0..40).map(|i| i.to_string()).collect();
    let long = format!("[[{0}, tool[t] 1], [{0}]]", long.join(", "));
    same(&format!("{tool}{long}"));
    same(&format!("{tool}[1, [2, tool[t] 0], 3]"));
    same(&format!("{tool}[1, [2, 3 + 'text'], 3]"));
    same(&format!("{tool}[1, [2, tool[t] 'text'], 3]"));
}

/// Labels of parts count where a whole value is passed on.
#[test]
fn lists_and_pairs_in_place_have_the_labels_of_what_is_inside() {
    for value in ["[[s, 2], 3]", "[1, [2, s]]", "[f s]"] {
        let program = format!(
            "tool any(x: Dyn) -> Dyn pure\nlet s = ([\"S\"] : 1) in let f = (\\x. 2) | (\\x. x) in tool[any] {value}"
        );
        assert_eq!(same(&program), "[\"S\"]:\"no number\" [] []", "{value}");
    }
}

/// Wherever fuel runs out, it does so after the same steps.
#[test]
fn lists_in_lists_take_the_steps_of_the_rules() {
    let program = "tool t(x: Num) -> Num pure\nmem [1, [remember a 2, recall a, tool[t] 3], [4, [5, choose 0.5 6 7]], 8] {a: Num}";
    let code = code(program);
    let whole = seen(&code, true, false).1;
    for fuel in 1..=whole {
        let config = || Config { fuel, ..Config::default() };
        let (one, other) = (seen_with(&code, true, config()), seen_with(&code, false, config()));
        assert_eq!(one, other, "{fuel} steps");
        assert_eq!(one.0.starts_with("fuel"), fuel < whole, "{fuel} steps: {}", one.0);
    }
}

/// A frame is taken for each call that waits, and for nothing else.
#[test]
fn each_call_that_waits_has_one_frame() {
    let program = "let f = (\\x. 1 + choose 0.5 x 7) in let g = (\\x. [1 + f x]) in let h = (\\x. (g x).[0]) in 1 + h 2";
    let code = code(program);
    for max_frames in 0..6 {
        let config = || Config { max_frames, ..Config::default() };
        let (one, other) = (seen_with(&code, true, config()), seen_with(&code, false, config()));
        assert_eq!(one.0.starts_with("fuel"), max_frames < 2, "{max_frames} frames: {}", one.0);
        assert_eq!(other.0.starts_with("fuel"), max_frames < 2, "{max_frames} frames: {}", other.0);
    }
}

/// A number is larger than a text may be that may not be there at all.
#[test]
fn numbers_that_are_given_where_they_stand_are_as_large_as_the_rules_say() {
    for program in [
        "tool t(x: Num) -> Num pure\n[tool[t] 1]",
        "mem [remember a 1] {a: Num}",
        "mem [recall a] {a: Num}",
        "[guard 1 value == 1]",
    ] {
        let code = code(program);
        let config = || Config { max_text: 0, ..Config::default() };
        assert_eq!(seen_with(&code, true, config()), seen_with(&code, false, config()), "{program}");
    }
}

/// Branches of `each` whose function only computes are carried out one after the other. The function of the
/// second program applies another one, so that its branches are strands.
#[test]
fn branches_of_each_in_place_are_those_of_the_rules() {
    let cases = [
        ("[1, 2]", "x + 1", "[2, 3] [] []"),
        ("[1, ([\"S\"] : 2)]", "x + 1", "[2, [\"S\"]:3] [] []"),
        ("([\"S\"] : [1, 2])", "x + 1", "[\"S\"]:[[\"S\"]:2, [\"S\"]:3] [] []"),
        // The first error counts, and so does one that tells more than the program counter.
        ("[0, 1, 2]", "if x > 0 then fail x else x", "fail [] 1"),
        ("[0, 1, ([\"S\"] : 2)]", "if x > 0 then fail x else x", "fail [\"S\"] 2"),
    ];
    for (list, body, result) in cases {
        for program in [
            format!("each (\\x. {body}) {list}"),
            format!("let id = \\x. x in each (\\x. id ({body})) {list}"),
        ] {
            let seen = same(&program);
            // Without the place of an error.
            assert_eq!(seen.split(" Span").next(), Some(result), "{program}");
        }
    }
    // More work than a slice.
    let long = code("let id = \\x. x in prim[length](each (\\x. id x) prim[range](0, 100000))");
    assert_eq!(seen_with(&long, false, Config::default()).0, "100000 [] []");
}
