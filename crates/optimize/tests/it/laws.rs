//! Each law keeps results, labels and requests, on generated programs into which its redexes are planted.
//!
//! `ENTAIL_CASES=100000` tries that many programs.

use core_ir::{Bound, Catches, Code, Comparison, Data, Label, Lattice, Measure, Num, Pred, Type};
use optimize::{Kind, RULES, Rule, Verdict, equivalent, optimize};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::sync::Arc;
use testkit::drive::{self, Order, ParseWith};
use testkit::generate::{Ast, Op, Program, Rng, Script, Style, programs};
use testkit::outcome::{Outcome, Tree, TreeNode};

fn node(op: Op, kids: impl IntoIterator<Item = Ast>) -> Ast {
    Ast::new(op, kids)
}

fn number(n: i64) -> Ast {
    Ast::lit(Data::Num(Num::from(n)))
}

fn text(s: &str) -> Ast {
    Ast::lit(Data::str(s))
}

fn value(c: Comparison, n: i64) -> Pred {
    Pred::Compare(Measure::Value, c, Num::from(n))
}

/// A term around another that some law rewrites.
fn redex(rng: &mut Rng, t: Ast) -> Ast {
    let identity = || node(Op::Lam, [Ast::var(0)]);
    let two = |f: Ast, x: Ast| node(Op::App, [f, x]);
    let then = |first: Ast, t: Ast| node(Op::Let, [first, t]);
    let labels = || Ast::lit(Data::list([Data::str("U")]));
    match rng.below(31) {
        0 => two(node(Op::Lam, [t]), number(1)),
        1 => then(identity(), t),
        2 => then(Ast::var(0), t),
        3 => then(number(3), t),
        4 => then(t, Ast::var(0)),
        5 => then(node(Op::Let, [text("a"), t]), Ast::var(0)),
        6 => two(node(Op::Let, [number(2), identity()]), t),
        7 => node(Op::If, [Ast::lit(rng.chance(50)), t.clone(), t]),
        8 => node(
            Op::Case(vec![(0, true), (1, false)], true),
            [node(Op::Tag(0), [t]), Ast::var(0), number(1), number(2)],
        ),
        9 => node(Op::Case(vec![(0, false)], true), [text("yes"), t, number(2)]),
        10 => node(Op::Case(vec![(0, false)], true), [node(Op::Tag(1), [t.clone()]), number(1), t]),
        11 => node(Op::Fst, [node(Op::Pair, [t, Ast::var(0)])]),
        12 => node(Op::Field(1), [node(Op::Record(vec![0, 1]), [identity(), t])]),
        13 => node(Op::Index, [node(Op::List, [text("b"), t]), number(1)]),
        14 => then(node(Op::Classify(vec![0, 1, 2]), [text("yes")]), t),
        15 => then(node(Op::Check(Type::Num), [number(1)]), t),
        16 => then(node(Op::Guard(value(Comparison::Ge, 0), 1), [number(5)]), t),
        17 => {
            let inner = node(Op::Guard(value(Comparison::Ge, 1), rng.below(2) as u32), [t]);
            node(Op::Guard(value(Comparison::Ge, 0), rng.below(2) as u32), [inner])
        }
        18 => node(Op::Guard(Pred::True, 0), [node(Op::Guard(Pred::True, 1), [t])]),
        19 => {
            node(Op::Guard(value(Comparison::Lt, 2), 0), [node(Op::Guard(value(Comparison::Ge, 0), 0), [t])])
        }
        20 => two(node(Op::Fix(Bound::Finite(0)), [node(Op::Lam, [identity()])]), t),
        21 => two(node(Op::Fix(Bound::Finite(2)), [node(Op::Lam, [identity()])]), t),
        22 => then(node(Op::Try(Catches::All), [labels(), Ast::var(0), number(0)]), t),
        23 => node(if rng.chance(50) { Op::Fork } else { Op::Fresh }, [t]),
        24 => {
            let op = |rng: &mut Rng| if rng.chance(50) { Op::Fork } else { Op::Fresh };
            let (outer, inner) = (op(rng), op(rng));
            node(outer, [node(inner, [t])])
        }
        25 => then(node(Op::Par(None), [number(1), Ast::var(0)]), t),
        26 => node(Op::Mem(rng.below(2) as u8), [t]),
        27 => {
            let stages = node(Op::Compose, [node(Op::Global(0), []), node(Op::Lam, [t.clone()])]);
            two(node(Op::Compose, [stages, identity()]), t)
        }
        28 => two(node(Op::Lam, [two(node(Op::Lam, [t.clone()]), Ast::var(0))]), t),
        // Stages that are pipelines themselves are joined when a term is made, but not what only later is
        // seen to be one.
        29 => {
            let hidden =
                node(Op::Let, [number(1), node(Op::Compose, [node(Op::Lam, [t.clone()]), identity()])]);
            then(node(Op::Compose, [hidden, identity()]), t)
        }
        _ => then(node(Op::Compose, [node(Op::Lam, [t.clone()]), node(Op::Tool(0), [])]), t),
    }
}

/// The tree with what `make` gives for the subtree of a number in its place.
fn replaced(ast: &Ast, left: &mut usize, make: &mut dyn FnMut(Ast) -> Ast) -> Ast {
    let here = *left == 0;
    *left = left.wrapping_sub(1);
    let kids: Vec<Ast> = ast.kids.iter().map(|k| replaced(k, left, make)).collect();
    let same = Ast::new(ast.op.clone(), kids);
    if here { make(same) } else { same }
}

/// The tree with redexes at some places.
fn planted(rng: &mut Rng, ast: &Ast) -> Ast {
    let mut ast = ast.clone();
    for _ in 0..3 {
        let mut place = rng.below(ast.size());
        ast = replaced(&ast, &mut place, &mut |t| redex(rng, t));
    }
    ast
}

fn run(program: &Program, code: &Arc<Code>) -> Outcome {
    let parser = program.clone();
    let config = machine::Config {
        lattice: program.lattice,
        fuel: 1_000_000,
        max_text: 1 << 16,
        parser: Some(Arc::new(ParseWith(move |text: &str| parser.parse(text)))),
        clearance: program.clearance.clone(),
        generated_endorse: program.generated_endorse,
        ..machine::Config::default()
    };
    drive::run(code, None, config, &mut Script::new(program), Order::AtOnce)
}

/// A value as programs can read it: the label of a container is joined to those of its parts.
fn as_read(lattice: &mut Lattice, tree: &Tree, outer: Label) -> Tree {
    let own = lattice.label_of(&tree.label).expect("a label");
    let label = lattice.join(own, outer);
    let node = match &tree.node {
        TreeNode::List(items) => TreeNode::List(items.iter().map(|t| as_read(lattice, t, label)).collect()),
        TreeNode::Record(fields) => {
            TreeNode::Record(fields.iter().map(|(n, t)| (n.clone(), as_read(lattice, t, label))).collect())
        }
        // The parts of a planned call's arguments are compared without the label around them.
        TreeNode::Args(..) => tree.node.clone(),
        TreeNode::Pair(p) => {
            TreeNode::Pair(Box::new((as_read(lattice, &p.0, label), as_read(lattice, &p.1, label))))
        }
        TreeNode::Tag(n, t) => TreeNode::Tag(n.clone(), Box::new(as_read(lattice, t, label))),
        TreeNode::Function(deep) => {
            let deep = lattice.label_of(deep).expect("a label");
            let all = lattice.join(deep, label);
            TreeNode::Function(lattice.data_of(all))
        }
        TreeNode::Scalar(d) => TreeNode::Scalar(d.clone()),
    };
    Tree { label: lattice.data_of(label), node }
}

/// An outcome without what the laws do not keep: the wording of errors, and, for parallel programs, the order
/// of requests.
fn shown(program: &Program, outcome: &Outcome) -> String {
    let mut lattice = Lattice::new(program.lattice);
    let result = match &outcome.result {
        Ok(tree) => format!("{:?}", as_read(&mut lattice, tree, Label::BOTTOM)),
        Err(e) => format!("{} {}", e.code, e.label.to_json()),
    };
    let mut requests: Vec<String> = outcome.requests.iter().map(|r| format!("{r:?}")).collect();
    let mut limits: Vec<String> = outcome.limits.iter().map(|l| format!("{l:?}")).collect();
    if program.is_parallel() {
        requests.sort();
        limits.sort();
    }
    let said = format!("{} {:?}", outcome.conversation_label.to_json(), outcome.conversation);
    format!("{result}\n{said}\n{}\n{}", requests.join("\n"), limits.join("\n"))
}

/// Returns true if the run ended with an uncatchable error, which may have cut off branches.
fn undetermined(program: &Program, outcome: &Outcome) -> bool {
    let bottom = Lattice::new(program.lattice).data_of(Label::BOTTOM);
    outcome.result.as_ref().is_err_and(|e| e.code == "fuel" || program.is_parallel() && e.label != bottom)
}

fn cases() -> u32 {
    std::env::var("ENTAIL_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(2_500)
}

#[test]
fn laws_keep_results_labels_and_requests() {
    let mut runner = TestRunner::deterministic();
    let mut rng = Rng::new(1);
    let each: Vec<&Rule> = RULES.iter().filter(|r| r.kind != Kind::Cost).collect();
    // Those where a rule was tried by itself or with one other.
    let mut used: BTreeMap<&str, u32> = each.iter().map(|r| (r.name, 0)).collect();
    for i in 0..cases() {
        let style =
            Style { size: 25, wild: [1, 1, 10][i as usize % 3], typed: i % 4 == 3, ..Style::default() };
        let program = programs(style).new_tree(&mut runner).expect("a program").current();
        let program = program.with(planted(&mut rng, &program.ast));
        let code = program.code();
        let before = run(&program, &code);
        if undetermined(&program, &before) {
            continue;
        }
        let before = shown(&program, &before);
        // Each by itself, and all together.
        let two = optimize::rules(["let-dead", "compose-assoc"]).expect("rules");
        let sets = each.iter().map(|r| vec![*r]).chain([two, each.clone()]);
        for rules in sets {
            let done = optimize(&code, &rules);
            if done.steps.is_empty() {
                continue;
            }
            let after = run(&program, &Arc::new(done.code.clone()));
            let out_of_fuel = after.result.as_ref().is_err_and(|e| e.code == "fuel");
            if out_of_fuel || undetermined(&program, &after) {
                continue;
            }
            let after = shown(&program, &after);
            assert!(
                before == after,
                "{:?}\n{program:?}\nbecomes\n{}\nbefore\n{before}\nafter\n{after}",
                done.steps,
                core_ir::print_code(&done.code)
            );
            let mut seen: Vec<&str> = done.steps.iter().map(|s| s.rule).collect();
            seen.sort_unstable();
            seen.dedup();
            for rule in seen.into_iter().filter(|_| rules.len() <= 2) {
                *used.entry(rule).or_default() += 1;
            }
        }
    }
    eprintln!("programs by law: {used:?}");
    let least = if cases() >= 2_500 { 20 } else { 1 };
    let idle: Vec<_> = used.iter().filter(|(_, n)| **n < least).collect();
    assert!(idle.is_empty(), "hardly ever tried: {idle:?}");
}

/// A rewritten program is equal to the original by the laws, and rewriting it again changes nothing.
#[test]
fn rewriting_is_idempotent_and_recognized() {
    let mut runner = TestRunner::deterministic();
    let mut rng = Rng::new(2);
    let laws = optimize::laws();
    let (mut changed, mut equal) = (0, 0);
    for _ in 0..cases() / 8 {
        let program = programs(Style { size: 25, ..Style::default() })
            .new_tree(&mut runner)
            .expect("a program")
            .current();
        let program = program.with(planted(&mut rng, &program.ast));
        let code = program.code();
        let done = optimize(&code, &laws);
        if done.steps.is_empty() {
            continue;
        }
        changed += 1;
        assert_eq!(optimize(&done.code, &laws).steps, [], "{}", core_ir::print_code(&done.code));
        equal += u32::from(matches!(equivalent(&code, &done.code), Verdict::Equal(_)));
    }
    assert!(changed > 0 && equal * 100 >= changed * 99, "{equal} of {changed}");
}

/// A world whose tools and models answer by what they are asked and nothing else, as pure tools do.
struct Steady<'p>(&'p Program, Script);

impl testkit::world::World for Steady<'_> {
    fn answer(&mut self, call: &testkit::world::Call) -> testkit::world::Answer {
        use testkit::world::Call;
        match call {
            Call::Recall { .. } | Call::Remember { .. } => self.1.answer(call),
            _ => Script::new(self.0).answer(call),
        }
    }
}

/// Two calls of one tool, or two reads of one key, around a term.
fn repeated(rng: &mut Rng, t: Ast) -> Ast {
    let argument = if rng.chance(50) { number(1) } else { Ast::var(0) };
    let tool = [0, 3][rng.below(2)];
    let call = match rng.below(4) {
        0 => node(Op::Recall(0), []),
        _ => node(Op::App, [node(Op::Tool(tool), []), argument]),
    };
    let (a, b) = (call.clone(), call);
    match rng.below(5) {
        0 => node(Op::List, [a, t, b]),
        1 => node(Op::Let, [a, node(Op::Pair, [t, b])]),
        2 => node(Op::Fst, [node(Op::Pair, [t, node(Op::List, [a, b])])]),
        3 => node(Op::Let, [t, node(Op::List, [a, b])]),
        _ => node(Op::List, [a, node(Op::If, [Ast::lit(rng.chance(50)), b, t])]),
    }
}

/// Where tools are pure, sharing their calls changes no value, and costs no more, before the run and in it.
#[test]
fn cost_rewrites_keep_values_of_pure_tools() {
    let mut runner = TestRunner::deterministic();
    let mut rng = Rng::new(3);
    let share = optimize::rules(["share-calls"]).expect("a rule");
    let all = optimize::rules(["cost"]).expect("rules");
    let (mut shared, mut fewer) = (0, 0);
    for i in 0..cases() {
        let style = Style { size: 25, wild: [1, 10][i as usize % 2], ..Style::default() };
        let mut program = programs(style).new_tree(&mut runner).expect("a program").current();
        for tool in &mut program.tools {
            tool.effect = core_ir::EffectClass::Pure;
            tool.policy = None;
            tool.approve = core_ir::Approve::Never;
        }
        let mut place = rng.below(program.ast.size());
        let ast = replaced(&program.ast, &mut place, &mut |t| repeated(&mut rng, t));
        let program = program.with(ast);
        let code = program.code();
        let least = |code: &Arc<Code>| {
            let bound = analysis::cost::bound(code, false);
            [bound.model_calls.most, bound.tool_calls.most].map(|m| m.unwrap_or(u64::MAX))
        };
        let saved = optimize(&code, &all);
        let (before, after) = (least(&code), least(&Arc::new(saved.code.clone())));
        assert!(before.iter().zip(&after).all(|(b, a)| a <= b), "{before:?} {after:?}\n{program:?}");
        let done = optimize(&code, &share);
        if done.steps.is_empty() {
            continue;
        }
        let run = |code: &Arc<Code>| {
            let parser = program.clone();
            let config = machine::Config {
                lattice: program.lattice,
                fuel: 1_000_000,
                max_text: 1 << 16,
                parser: Some(Arc::new(ParseWith(move |text: &str| parser.parse(text)))),
                clearance: program.clearance.clone(),
                generated_endorse: program.generated_endorse,
                ..machine::Config::default()
            };
            drive::run(code, None, config, &mut Steady(&program, Script::new(&program)), Order::AtOnce)
        };
        let (before, after) = (run(&code), run(&Arc::new(done.code.clone())));
        shared += 1;
        if before.result.is_err() {
            continue;
        }
        let mut lattice = Lattice::new(program.lattice);
        let mut value = |outcome: &Outcome| {
            outcome.result.as_ref().map(|t| as_read(&mut lattice, t, Label::BOTTOM)).map_err(|e| e.code)
        };
        assert_eq!(
            value(&before),
            value(&after),
            "{program:?}\nbecomes\n{}",
            core_ir::print_code(&done.code)
        );
        assert!(after.requests.len() <= before.requests.len(), "{program:?}");
        fewer += u32::from(after.requests.len() < before.requests.len());
    }
    eprintln!("{shared} programs shared calls, {fewer} made fewer");
    assert!(cases() < 2_500 || shared > 100 && fewer > 50, "{shared} {fewer}");
}

fn lam(source: &str) -> Code {
    let mut sources = diagnostics::Sources::new();
    let file = sources.add("test.lam", source);
    let parsed =
        syntax::lam::parse(file, source, &testkit::generate::prelude(), syntax::lam::Options::PROGRAM);
    parsed.code.unwrap_or_else(|| panic!("{source}: {:?}", parsed.diagnostics))
}

#[test]
fn pipelines_are_equal_up_to_the_laws() {
    let equal = [
        ("llm 'a' >> (llm 'b' >> llm 'c')", "(llm 'a' >> llm 'b') >> llm 'c'"),
        ("id >> llm 'a' >> id", "llm 'a'"),
        (r"\x. (llm 'b') ((llm 'a') x)", "llm 'a' >> llm 'b'"),
        (r"\x. let y = (llm 'a') x in (llm 'b') y", "llm 'a' >> llm 'b'"),
        (r"llm 'a' >> fix[0] (\s. s)", "llm 'a'"),
        (
            "guard (llm 'a' >> llm 'b') words == 3 retry 1",
            "guard (llm 'a' >> id >> llm 'b') words == 3 retry 1",
        ),
        (r"\x. guard (guard ((llm 'a') x) length >= 3) length > 0", r"\y. guard ((llm 'a') y) length >= 3"),
        ("llm 'a' | llm 'b'", "(llm 'a' >> id) | llm 'b'"),
        (r"if true then 1 else 2", r"(\x. x) 1"),
    ];
    for (a, b) in equal {
        assert!(matches!(equivalent(&lam(a), &lam(b)), Verdict::Equal(_)), "{a} and {b}");
    }
    let unknown = [
        ("llm 'a' >> llm 'b'", "llm 'b' >> llm 'a'"),
        ("llm 'a' >> llm 'a'", "llm 'a'"),
        ("llm 'a' | llm 'b'", "llm 'b' | llm 'a'"),
        // The label of `f` can be seen.
        (r"\f. \x. f x", r"\f. f"),
        (r"\x. guard x any", r"\x. x"),
    ];
    for (a, b) in unknown {
        assert_eq!(equivalent(&lam(a), &lam(b)), Verdict::Unknown, "{a} and {b}");
    }
}

/// The wording of a message counts where the program inspects it: such programs were called equal.
#[test]
fn messages_that_are_looked_at_are_part_of_a_result() {
    let pairs = [
        ("guard (guard 'a' length > 1) length > 2", "guard 'a' length > 1 && length > 2"),
        ("check[a: Num] 'x'", "check[b: Num] 'x'"),
    ];
    for (a, b) in pairs {
        let both = |around: &dyn Fn(&str) -> String| equivalent(&lam(&around(a)), &lam(&around(b)));
        let plain = |e: &str| e.to_string();
        let caught = |e: &str| format!("try[[]] ({e}) catch e. e");
        let ignored = |e: &str| format!("try[[]] ({e}) catch e. 0");
        assert!(matches!(both(&plain), Verdict::Equal(_)), "{a}");
        assert!(matches!(both(&ignored), Verdict::Equal(_)), "{a}");
        assert_eq!(both(&caught), Verdict::Unknown, "{a}");
        let code = lam(&caught(a));
        assert_eq!(optimize(&code, &optimize::laws()).steps, [], "{a}");
    }
}

/// A labeled tool reads its argument at its label, as a labeled function does. No law says so: the verdict is
/// unknown.
#[test]
fn a_labeled_tool_reads_its_argument_at_its_label() {
    let tool = "tool t(x: Num @ trusted) -> Num pure control untrusted secret\n";
    let program = |f: &str| lam(&format!("{tool}([\"U\"]: {f}) 4"));
    let asks = |code: Code| {
        let mut machine = machine::Machine::new(Arc::new(code), None, machine::Config::default());
        matches!(machine.poll(), machine::Output::Request(..))
    };
    let (bare, around) = (program("tool[t]"), program(r"(\x. tool[t] x)"));
    assert_eq!(equivalent(&bare, &around), Verdict::Unknown);
    assert_eq!((asks(bare), asks(around)), (false, false));
    for same in [r"id >> tool[t]", r"tool[t] >> id", r"\x. (\y. tool[t] y) x"] {
        assert!(
            matches!(
                equivalent(&program(&format!("({same})")), &program(r"(\x. tool[t] x)")),
                Verdict::Equal(_)
            ),
            "{same}"
        );
    }
    // What is captured by a function inside may be read under a lower program counter.
    let inner = |f: &str| lam(&format!("let f = {f} in endorse [] (f 1)"));
    assert_eq!(equivalent(&inner(r"\x. (\y. \z. y) x"), &inner(r"\y. \z. y")), Verdict::Unknown);
}

/// A captured value is part of a function's label even if it is never used: such captures were rewritten
/// away.
#[test]
fn laws_keep_captured_values() {
    let captured = [
        r"\y. \x. fst (x, y)",
        r"\y. \x. let z = y in x",
        r"\y. \x. if true then x else y",
        r"\y. \x. case `a x of {a z => z, b => y}",
        r"\y. \x. (fix[0] (\s. \z. y)) x",
        r"\y. \x. try[[]] x catch e. y",
        r"\y. (\x. (\z. x) y) >> id",
    ];
    for source in captured {
        let code = optimize(&lam(source), &optimize::laws()).code;
        assert!(
            core_ir::print_code(&code).matches('y').count() > 1,
            "{source}: {}",
            core_ir::print_code(&code)
        );
    }
    // What is bound in the function itself, or used elsewhere in what is left, is not captured for nothing.
    let free = [
        r"\y. \x. let z = x in 1",
        r"\y. \x. fst (y, y)",
        r"\x. \y. fst (y, id)",
        r"let y = @'a' in fst (1, y)",
    ];
    for source in free {
        let done = optimize(&lam(source), &optimize::laws());
        assert_eq!(done.steps.len(), 1, "{source}: {}", core_ir::print_code(&done.code));
    }
    let label = |e: &str| format!("let y = [\"S\"]: 1 in prim[is_fn]({e})");
    let (a, b) = (lam(&label(r"\x. fst (x, y)")), lam(&label(r"\x. x")));
    assert_eq!(equivalent(&a, &b), Verdict::Unknown);
}

#[test]
fn names_are_kept_where_they_capture_nothing() {
    let show = |source: &str, rules: &[&str]| {
        let rules = optimize::rules(rules.iter().copied()).expect("rules");
        let code = optimize(&lam(source), &rules).code;
        core_ir::print_code(&code).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(show(r"\x. let y = x in \x. x + y", &["laws"]), r"\x. \$x1. $x1 + x");
    assert_eq!(show(r"\y. let id = y in id + 1", &["laws"]), r"\y. y + 1");
    assert_eq!(show("llm 'a' >> id >> llm 'b'", &["laws"]), r#"llm "a" {} >> llm "b" {}"#);
}

#[test]
fn cost_rewrites_save_calls() {
    let tool = "tool f(x: Num) -> Num pure\n";
    let calls = |code: &Code| analysis::cost::bound(&Arc::new(code.clone()), true);
    let cases = [
        ("llm 'a' >> llm 'b'", "fuse-models", 2, 1),
        ("llm 'a' >> llm 'b' >> llm 'c'", "fuse-models", 3, 1),
        // Another model, or an answer that is more than text, is another question.
        ("llm 'a' {model: 'm'} >> llm 'b'", "fuse-models", 2, 2),
        ("llm 'a' {result: Num, repair: 0} >> llm 'b'", "fuse-models", 2, 2),
        (r"\x. [tool[f] 1, tool[f] 1, tool[f] 2]", "share-calls", 3, 2),
        (r"\x. let a = tool[f] x in let b = tool[f] x in a + b", "share-calls", 2, 1),
        // Perhaps only one of them happens, or their arguments differ.
        (r"\x. [tool[f] 1, if x == 1 then tool[f] 1 else 0]", "share-calls", 2, 2),
        (r"\x. let a = tool[f] x in tool[f] a", "share-calls", 2, 2),
    ];
    for (source, rule, before, after) in cases {
        let code = lam(&format!("{tool}{source}"));
        let rules = optimize::rules([rule]).expect("a rule");
        let done = optimize(&code, &rules).code;
        let most = |code: &Code| {
            let b = calls(code);
            b.model_calls.most.unwrap_or(0) + b.tool_calls.most.unwrap_or(0)
        };
        assert_eq!((most(&code), most(&done)), (before, after), "{source}: {}", core_ir::print_code(&done));
    }
    let store = "store s {k: Num}\n";
    let reads = |source: &str| {
        let code = lam(&format!("{store}{source}"));
        let done = optimize(&code, &optimize::rules(["hoist-reads"]).expect("a rule")).code;
        done.iter().filter(|(_, t)| matches!(t, core_ir::Term::Recall(..))).count()
    };
    assert_eq!(reads("mem [recall k, recall k] s"), 1);
    assert_eq!(reads("mem (let a = recall k in let _ = remember k 2 in [a, recall k]) s"), 2);
    assert_eq!(reads(r"mem (\f. [recall k, f 1, recall k]) s"), 2);
}
