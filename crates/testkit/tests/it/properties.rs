//! Properties of every run of the machine: confinement, determinism, noninterference, bounds.

use crate::common::{FUEL, cases, config, lam, line, multiset, run_machine};
use core_ir::{Data, Label, Lattice, LatticeKind, Num};
use machine::{Machine, Output};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeMap;
use testkit::drive::{self, Named, Order};
use testkit::generate::{Ast, Op, Program, Rng, Script, Style, Ty, programs};
use testkit::outcome::{Failure, Outcome, Tree, TreeNode};
use testkit::secrets::{Ending, differing_branch};
use testkit::world::Answer;

fn two_axis(letters: &[&str]) -> Data {
    Data::list(letters.iter().map(|l| Data::str(*l)).collect::<Vec<_>>())
}

fn label(lattice: &mut Lattice, data: &Data) -> Label {
    lattice.label_of(data).expect("a label of the run")
}

/// A program whose labels are of the two-axis lattice.
fn two_axis_program(style: Style) -> impl Strategy<Value = Program> {
    programs(Style { lattice: Some(LatticeKind::TwoAxis), ..style })
}

fn a_label() -> impl Strategy<Value = Data> {
    prop_oneof![
        Just(two_axis(&["U"])),
        Just(two_axis(&["S"])),
        Just(two_axis(&["U", "S"])),
        Just(two_axis(&[]))
    ]
}

// ── confinement ──

/// Under `pc`: `pc ⊑ ℓ(V)`, also for errors; `C' = C` or `pc ⊑ ℓ(C), ℓ(C')`; and nothing is asked on a
/// channel below `pc`.
fn confined(program: &Program, pc: &Data, before: &Data, branch: bool) -> Result<(), TestCaseError> {
    let lit = |d: &Data| Ast::lit(d.clone());
    let first =
        Ast::new(Op::Send(core_ir::Role::User), [Ast::new(Op::Relabel, [lit(before), Ast::lit("first")])]);
    let raised = if branch {
        let scrutinee = Ast::new(Op::Relabel, [lit(pc), Ast::lit(true)]);
        Ast::new(Op::If, [scrutinee, program.ast.clone(), Ast::lit(Data::Null)])
    } else {
        Ast::new(Op::Relabel, [lit(pc), program.ast.clone()])
    };
    let whole = program.with(Ast::new(Op::Let, [first, raised]));
    let outcome = run_machine(&whole, None, &mut Script::new(&whole), Order::AtOnce);
    let mut lattice = Lattice::new(LatticeKind::TwoAxis);
    let low = label(&mut lattice, pc);
    let above = |lattice: &mut Lattice, d: &Data| {
        let l = label(lattice, d);
        lattice.flows(low, l)
    };
    match &outcome.result {
        Ok(tree) => prop_assert!(above(&mut lattice, &tree.label), "value {}", tree),
        Err(e) if e.code == "fuel" => {}
        Err(e) => prop_assert!(above(&mut lattice, &e.label), "error {:?}", e),
    }
    let unchanged = outcome.conversation_label == *before && outcome.conversation.len() == 1;
    let confined = above(&mut lattice, before) && above(&mut lattice, &outcome.conversation_label);
    prop_assert!(
        unchanged || confined,
        "conversation {} {:?}",
        outcome.conversation_label.to_json(),
        outcome.conversation
    );
    for (call, channel) in &outcome.requests {
        prop_assert!(above(&mut lattice, channel), "{:?} on {}", call, channel.to_json());
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn effects_under_a_label_are_confined_to_it(
        program in two_axis_program(Style { approve: false, among: false, ..Style::default() }),
        pc in a_label(), before in a_label(), branch: bool,
    ) {
        confined(&program, &pc, &before, branch)?;
    }

    #[test]
    fn effects_of_wild_programs_are_confined(
        program in two_axis_program(Style { wild: 40, approve: false, among: false, ..Style::default() }),
        pc in a_label(), before in a_label(), branch: bool,
    ) {
        confined(&program, &pc, &before, branch)?;
    }
}

// ── determinism ──

/// Returns true if an error ended a `par` at once, so that the progress of the other branches depends on the
/// order.
fn cut_off(lattice: LatticeKind, outcome: &Outcome) -> bool {
    let bottom = Lattice::new(lattice).data_of(Label::BOTTOM);
    outcome.result.as_ref().is_err_and(|e| e.label != bottom || e.code == "fuel")
}

fn runs_agree(program: &Program, one: &Outcome, other: &Outcome) -> Result<(), TestCaseError> {
    prop_assert_eq!(one.result.is_ok(), other.result.is_ok());
    if cut_off(program.lattice, one) && cut_off(program.lattice, other) {
        return Ok(());
    }
    prop_assert_eq!(&one.result, &other.result);
    prop_assert_eq!(&one.conversation, &other.conversation);
    prop_assert_eq!(&one.conversation_label, &other.conversation_label);
    prop_assert_eq!(multiset(one), multiset(other));
    Ok(())
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn the_same_run_twice_is_the_same(program in programs(Style::default())) {
        let run = || run_machine(&program, None, &mut Script::new(&program), Order::AtOnce);
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn the_order_of_responses_does_not_matter(
        program in programs(Style { size: 80, ..Style::default() }), seed: u64, other: u64,
    ) {
        let ast = Ast::new(Op::Par(None), [program.ast.clone(), Ast::new(Op::Fork, [program.ast.clone()])]);
        let program = program.with(ast);
        let run = |order| run_machine(&program, None, &mut Script::new(&program), order);
        let at_once = run(Order::AtOnce);
        runs_agree(&program, &at_once, &run(Order::Random(seed)))?;
        runs_agree(&program, &at_once, &run(Order::Random(other)))?;
    }
}

// ── noninterference ──

/// Observations of a run at a clearance.
struct Observer {
    lattice: Lattice,
    label: Label,
}

impl Observer {
    fn sees(&mut self, of: &Data) -> bool {
        let l = label(&mut self.lattice, of);
        self.lattice.flows(l, self.label)
    }

    /// The requests on channels that the observer sees, in their order or, with the branches of a run that
    /// has several, in the order of each.
    fn trace(&mut self, outcome: &Outcome, strands: Option<&[u64]>) -> BTreeMap<u64, Vec<String>> {
        let mut seen: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (i, request) in outcome.requests.iter().enumerate() {
            if self.sees(&request.1) {
                let strand = strands.map_or(0, |s| s[i]);
                seen.entry(strand).or_default().push(format!("{request:?}"));
            }
        }
        seen
    }

    fn same_tree(&mut self, a: &Tree, b: &Tree) -> bool {
        match (self.sees(&a.label), self.sees(&b.label)) {
            (false, false) => true,
            (true, true) if a.label == b.label => match (&a.node, &b.node) {
                (TreeNode::Scalar(a), TreeNode::Scalar(b)) => a == b,
                (TreeNode::List(a), TreeNode::List(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_tree(a, b))
                }
                (TreeNode::Record(a), TreeNode::Record(b)) => {
                    a.len() == b.len()
                        && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && self.same_tree(&a.1, &b.1))
                }
                (TreeNode::Args(f, a), TreeNode::Args(g, b)) => {
                    f == g
                        && a.len() == b.len()
                        && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && self.same_tree(&a.1, &b.1))
                }
                (TreeNode::Pair(a), TreeNode::Pair(b)) => {
                    self.same_tree(&a.0, &b.0) && self.same_tree(&a.1, &b.1)
                }
                (TreeNode::Tag(m, a), TreeNode::Tag(n, b)) => m == n && self.same_tree(a, b),
                (TreeNode::Function(_), TreeNode::Function(_)) => true,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns true if a run ended in a way that the observer cannot tell from one that goes on for ever.
    fn silent(&mut self, outcome: &Outcome) -> bool {
        match &outcome.result {
            Ok(_) => false,
            Err(e) => e.code == "fuel" || !self.sees(&e.label),
        }
    }
}

/// The function of the program's variable, which is labeled first. The program itself sees only what is
/// labeled.
fn with_secret(program: &Program, label: &Data) -> Program {
    let labeled = Ast::new(Op::Lam, [Ast::new(Op::Relabel, [Ast::lit(label.clone()), Ast::var(0)])]);
    let body = Ast::new(Op::Lam, [program.ast.clone()]);
    program.with(Ast::new(Op::Compose, [labeled, body]))
}

/// Two runs of a program on inputs that an observer must not tell apart.
fn noninterfering(
    program: &Program,
    secret: &Data,
    inputs: [&Data; 2],
    observer: &Data,
) -> Result<(), TestCaseError> {
    let whole = with_secret(program, secret);
    let code = whole.code();
    let run = |input: &Data| {
        let mut machine = Machine::new(code.clone(), Some(input.clone()), config(&whole, 100 * FUEL));
        drive::run_named(&mut machine, &mut Script::new(&whole).forgetful(), Order::AtOnce)
    };
    nothing_shows(&inputs.map(run), whole.is_parallel(), observer)
}

/// Two runs, of a program with branches or without, that an observer must not tell apart.
fn nothing_shows(
    [(one, one_named), (other, other_named)]: &[(Outcome, Named); 2],
    parallel: bool,
    observer: &Data,
) -> Result<(), TestCaseError> {
    let mut lattice = Lattice::new(LatticeKind::TwoAxis);
    let label = label(&mut lattice, observer);
    let mut o = Observer { lattice, label };
    let mut seen = |run: &Outcome, named: &Named| {
        let silent = o.silent(run);
        let cut_off_by = named.failed.filter(|_| parallel && cut_off(LatticeKind::TwoAxis, run));
        (o.trace(run, parallel.then_some(&named.strands[..])), Ending { silent, cut_off_by })
    };
    let ((a, one_end), (b, other_end)) = (seen(one, one_named), seen(other, other_named));
    let differs = differing_branch([&a, &b], [one_end, other_end]);
    prop_assert!(differs.is_none(), "trace {:?} and {:?}, {:?} and {:?}", a, b, one_end, other_end);
    if one_end.silent || other_end.silent {
        return Ok(());
    }
    match (&one.result, &other.result) {
        (Ok(x), Ok(y)) => prop_assert!(o.same_tree(x, y), "{} and {}", x, y),
        // Which of the errors of several branches ends the run at once is a matter of time, too.
        (Err(_), Err(_))
            if one_end.cut_off_by != other_end.cut_off_by
                && one_end.cut_off_by.is_some()
                && other_end.cut_off_by.is_some() => {}
        (Err(x), Err(y)) => prop_assert_eq!(x, y),
        _ => prop_assert!(false, "{} and {}", line(one), line(other)),
    }
    if o.sees(&one.conversation_label) || o.sees(&other.conversation_label) {
        prop_assert_eq!(&one.conversation_label, &other.conversation_label);
        prop_assert_eq!(&one.conversation, &other.conversation);
    }
    Ok(())
}

/// A program of a variable, a label for it, and two inputs.
fn secrets(parallel: bool, approve: bool) -> impl Strategy<Value = (Program, Data, Data, Data, Data)> {
    let kinds = prop_oneof![
        Just((Ty::Num, [Data::Num(Num::ZERO), Data::Num(Num::from(3))])),
        Just((Ty::Bool, [Data::Bool(true), Data::Bool(false)])),
        Just((Ty::Str, [Data::str(""), Data::str("yes")])),
        Just((Ty::List(Box::new(Ty::Num)), [Data::list([]), Data::list([Data::Num(Num::ONE)])])),
    ];
    // Approval vouches for integrity, so with it only secrecy is preserved.
    let labels = prop_oneof![
        Just((two_axis(&["S"]), two_axis(&["U"]))),
        Just((two_axis(&["S"]), two_axis(&[]))),
        Just((two_axis(&["U"]), two_axis(&["S"]))),
        Just((two_axis(&["U", "S"]), two_axis(&["S"]))),
        Just((two_axis(&["U", "S"]), two_axis(&["U"]))),
    ];
    let labels = if approve { Just((two_axis(&["S"]), two_axis(&["U"]))).boxed() } else { labels.boxed() };
    kinds.prop_flat_map(move |(ty, inputs)| {
        let style = Style {
            given: vec![ty],
            endorse: false,
            declassify: false,
            approve,
            among: approve,
            messages: true,
            parallel,
            size: 50,
            ..Style::default()
        };
        (two_axis_program(style), labels.clone(), Just(inputs))
            .prop_map(|(p, (secret, observer), [a, b])| (p, secret, observer, a, b))
    })
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn a_secret_does_not_show((program, secret, observer, a, b) in secrets(false, false)) {
        noninterfering(&program, &secret, [&a, &b], &observer)?;
    }

    #[test]
    fn a_secret_does_not_show_in_an_answer_with_rules(
        (program, secret, observer, a, b) in secrets(false, false), answer in crate::machine::answers(),
    ) {
        noninterfering(&Program { answer, ..program }, &secret, [&a, &b], &observer)?;
    }

    #[test]
    fn a_secret_does_not_show_in_parallel((program, secret, observer, a, b) in secrets(true, false)) {
        noninterfering(&program, &secret, [&a, &b], &observer)?;
    }

    #[test]
    fn a_secret_does_not_show_in_what_is_approved((program, secret, observer, a, b) in secrets(false, true)) {
        noninterfering(&program, &secret, [&a, &b], &observer)?;
    }
}

/// The runs of a program, a function of a secret, on two secrets.
fn on_two_secrets(text: &str) -> [(Outcome, Named); 2] {
    let code = lam(text);
    [Data::list([]), Data::list([Data::Num(Num::ONE)])].map(|input| {
        let mut machine = Machine::new(code.clone(), Some(input), machine::Config::default());
        let drawn = std::iter::repeat_n(Answer::Drawn(true), 9).collect();
        drive::run_named(&mut machine, &mut crate::common::Prepared(drawn), Order::AtOnce)
    })
}

/// A branch that computes on a secret takes some steps longer to its request, while another ends the run
/// with an error that the observer sees. So its request is in one of the traces alone: the calculus says
/// that this is a matter of time. An error that waits for the other branches excepts nothing.
#[test]
fn an_error_that_ends_branches_at_once_excepts_what_the_others_asked_by_then() {
    let text = |failing: &str| {
        format!(
            "tool check() -> Bool write control untrusted policy (\\a. ([\"U\"]: a).absent)\n\
             \\given. let secret = ([\"S\"]: given) in \
             par [let x = if secret == [] then par [null, par [null]] else null in choose 1/3 null null, {failing}]"
        )
    };
    let untrusted = two_axis(&["U"]);
    let runs = on_two_secrets(&text("tool[check] {}"));
    let [asked, other] = runs.each_ref().map(|(outcome, _)| outcome.requests.len());
    assert_eq!((asked, other), (0, 1), "{} and {}", line(&runs[0].0), line(&runs[1].0));
    assert!(runs.iter().all(|(run, _)| run.result.as_ref().is_err_and(|e| e.label == untrusted)));
    nothing_shows(&runs, true, &untrusted).expect("only time differs");
    // Without branches, or were the error one that waits, the same runs would be told apart.
    nothing_shows(&runs, false, &untrusted).expect_err("a request more");
    let waits = runs.map(|(mut outcome, named)| {
        outcome.result = Err(Failure { label: two_axis(&[]), ..outcome.result.expect_err("an error") });
        (outcome, named)
    });
    nothing_shows(&waits, true, &untrusted).expect_err("a request more");
    // Such an error does wait.
    let runs = on_two_secrets(&text("fail null"));
    assert!(runs.iter().all(|(run, _)| run.requests.len() == 1));
    nothing_shows(&runs, true, &untrusted).expect("the same requests");
}

/// A branch may make fewer requests before an error cuts it off, and nothing else: a secret that decides
/// which request is made is found.
#[test]
fn a_branch_that_is_cut_off_tells_no_secret_by_what_it_asks() {
    let text = |branch: &str, failing: &str| {
        format!(
            "tool check() -> Bool write control untrusted policy (\\a. ([\"U\"]: a).absent)\n\
             \\given. let told = declassify [] ([\"S\"]: given) in par [{branch}, {failing}]"
        )
    };
    let untrusted = two_axis(&["U"]);
    let waits = "let x = par [null, par [null]] in tool[check] {}";
    for branch in [
        // Which, and one more than the other, which then waits for nothing.
        "if told == [] then choose 1/3 null null else choose 1/4 null null",
        "if told == [] then choose 1/3 null null else let x = choose 1/4 null null in choose 1/3 null null",
    ] {
        let runs = on_two_secrets(&text(branch, waits));
        assert!(runs.iter().all(|(run, _)| !run.requests.is_empty()), "{branch}");
        nothing_shows(&runs, true, &untrusted).expect_err(branch);
    }
    // What the branch itself asks that fails is no matter of time.
    let failing = "let y = choose 1/2 null null in if told == [] then tool[check] {} \
                   else let x = choose 1/3 null null in tool[check] {}";
    let runs = on_two_secrets(&text("null", failing));
    assert_eq!(runs.each_ref().map(|(run, _)| run.requests.len()), [1, 2]);
    nothing_shows(&runs, true, &untrusted).expect_err("a request more");
}

/// A property that cannot fail tests nothing: a secret without a label shows.
#[test]
fn a_secret_without_a_label_shows_in_parallel() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let public = two_axis(&[]);
    let found = (0..1_000).filter(|_| {
        let (program, _, _, a, b) = secrets(true, false).new_tree(&mut runner).expect("a program").current();
        program.is_parallel() && noninterfering(&program, &public, [&a, &b], &public).is_err()
    });
    let found = found.count();
    assert!(found > 10, "only {found} of 1000 programs tell it");
}

/// Noninterference is only worth something if the secret is used: the two runs often differ for one who sees
/// all.
#[test]
fn secrets_matter() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (total, mut differ) = (1_000, 0);
    for _ in 0..total {
        let (program, secret, _, a, b) =
            secrets(true, false).new_tree(&mut runner).expect("a program").current();
        let whole = with_secret(&program, &secret);
        let [one, other] = [&a, &b]
            .map(|i| run_machine(&whole, Some(i), &mut Script::new(&whole).forgetful(), Order::AtOnce));
        differ += u32::from(one != other);
    }
    assert!(differ > total / 5, "only {differ} of {total} programs show the secret to one who sees all");
}

// ── bounds ──

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn fuel_ends_every_run(program in programs(Style { wild: 20, ..Style::default() }), fuel in 0u64..400) {
        let run = |fuel| drive::run(&program.code(), None, config(&program, fuel), &mut Script::new(&program), Order::AtOnce);
        let outcome = run(fuel);
        if !outcome.result.as_ref().is_err_and(|e| e.code == "fuel") {
            // Enough is as good as plenty.
            prop_assert_eq!(outcome, run(1_000_000));
        }
    }
}

/// Runs on a stack that has no room for recursion. The value is dropped there, too.
fn on_a_small_stack(text: &str) -> String {
    let code = lam(text);
    let run = move || {
        let mut machine =
            Machine::new(code, None, machine::Config { fuel: 1 << 40, ..machine::Config::default() });
        loop {
            match machine.poll() {
                Output::Working => {}
                Output::Done(Ok(v)) => break v.kind().to_string(),
                other => break format!("{other:?}"),
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run);
    thread.expect("a thread").join().expect("no overflow")
}

#[test]
fn recursion_does_not_touch_the_host_stack() {
    let count = "(\\self. \\n. if n == 0 then 0 else 1 + self (n - 1)) 1000000";
    assert_eq!(on_a_small_stack(&format!("fix[1000001] {count} == 1000000")), "a boolean");
    assert_eq!(on_a_small_stack(&format!("fix[inf] {count}")), "a number");
    assert_eq!(on_a_small_stack(&format!("fix {count}")), "a number");
}

#[test]
fn an_endless_tail_call_takes_no_room_and_ends_with_the_fuel() {
    let code = lam("fix[inf] (\\self. \\n. self (n + 1)) 0");
    let config = machine::Config { fuel: 3_000_000, max_frames: 50, ..machine::Config::default() };
    let outcome = drive::run(&code, None, config, &mut crate::common::Prepared([].into()), Order::AtOnce);
    assert_eq!(outcome.result.unwrap_err().code, "fuel");
}

/// Out of fuel, a run once ended in a conversation that a `fresh` had opened.
#[test]
fn a_run_without_fuel_ends_in_its_own_conversation() {
    let code =
        lam("let _ = send 'outer' in fresh (let _ = send 'inner' in fix[inf] (\\self. \\n. self n) 0)");
    let config = machine::Config { fuel: 1_000, ..machine::Config::default() };
    let outcome = drive::run(&code, None, config, &mut crate::common::Prepared([].into()), Order::AtOnce);
    assert_eq!(outcome.result.map_err(|e| e.code.to_string()).unwrap_err(), "fuel");
    let said: Vec<&str> = outcome.conversation.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(said, ["outer"]);
}

/// A function that wraps functions as often as is said, applied.
#[test]
fn functions_of_functions_do_not_touch_the_host_stack() {
    let wrapped = |wrap: &str| {
        format!(
            "fix[inf] (\\go. \\s. if s.n == 0 then s.f 1 else go {{n: s.n - 1, f: {wrap}}}) {{n: 100000, f: \\x. x}}"
        )
    };
    assert_eq!(on_a_small_stack(&wrapped("guard s.f value == 1")), "a number");
    assert_eq!(on_a_small_stack(&wrapped("fix[1] (let f = s.f in \\_. f)")), "a number");
    assert_eq!(on_a_small_stack(&wrapped("fix[1] s.f")), "a number");
}

/// Lists once cost as many steps as they had items wherever they were looked at.
#[test]
fn steps_of_list_functions_grow_with_the_list() {
    let steps = |text: &str| {
        let code = agentlang::calculus::compile(diagnostics::FileId(0), text).code.expect("a program");
        let mut machine = Machine::new(code.into(), None, machine::Config::default());
        loop {
            match machine.poll() {
                Output::Working => {}
                Output::Done(Ok(_)) => break machine.fuel_used(),
                other => panic!("{text}: {other:?}"),
            }
        }
    };
    for text in [
        "fold (\\a. \\x. a + x) 0 (range 0 N)",
        "map (\\x. x + 1) (range 0 N)",
        "filter (\\x. x % 2 == 0) (range 0 N)",
        "flat_map (\\x. [x, x]) (range 0 N)",
        "reverse (range 0 N)",
        "zip (range 0 N) (range 0 N)",
        "find (\\x. x < 0) (range 0 N)",
        "each (\\x. x + 1) (range 0 N)",
        "fix[inf] (\\go. \\xs. if length xs > 0 then go (slice xs 1 (length xs)) else 0) (range 0 N)",
        "fix[inf] (\\go. \\xs. if length xs < N then go (xs + [[\"U\"] : 1]) else 0) []",
    ] {
        let (few, many) = (steps(&text.replace('N', "1000")), steps(&text.replace('N', "20000")));
        assert!(many < 21 * few, "{text}: {few} and {many} steps");
    }
}

#[test]
fn deep_values_are_dropped_without_recursion() {
    let nest = |part: &str| format!("fix[1000000] (\\self. \\x. self ({part})) null");
    assert_eq!(on_a_small_stack(&nest("(x, 1)")), "a pair");
    assert_eq!(on_a_small_stack(&nest("[x]")), "a list");
    assert_eq!(on_a_small_stack(&nest("{a: x}")), "a record");
    assert_eq!(on_a_small_stack(&nest("`t x")), "a tag");
    assert_eq!(on_a_small_stack(&nest("\\y. x")), "a function");
    assert_eq!(on_a_small_stack(&nest("fix[3] x")), "a function");
}

#[test]
fn deep_values_are_refused_where_they_are_looked_at() {
    let nest = "fix[1000000] (\\self. \\x. self (x, 1)) null";
    for (look, code) in [
        ("send d", "Limit"),
        ("prim[to_str](d)", "Limit"),
        ("fail d", "Limit"),
        ("check[Num] d", "Limit"),
        ("guard d value > 1", "Guard"),
        ("d: 1", "NotALabel"),
    ] {
        let seen = on_a_small_stack(&format!("let d = {nest} in {look}"));
        assert!(seen.contains(code), "{look}: {seen}");
    }
}

#[test]
fn deep_values_are_compared_without_recursion() {
    let nest = "fix[200000] (\\self. \\x. self (x, 1))";
    assert_eq!(on_a_small_stack(&format!("({nest} 1 == {nest} 1) && ({nest} 1 != {nest} 2)")), "a boolean");
}

/// The machine can be dropped at any point.
#[test]
fn a_run_can_be_given_up() {
    let code = lam("fix[inf] (\\self. \\n. (self (n + 1), 1)) 0");
    let mut machine = Machine::new(code, None, machine::Config::default());
    for _ in 0..20 {
        assert!(matches!(machine.poll(), Output::Working));
    }
    let drop_it = move || drop(machine);
    std::thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(drop_it)
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[test]
fn random_numbers_are_spread() {
    let mut rng = Rng::new(1);
    let tosses = (0..10_000).filter(|_| rng.chance(50)).count();
    assert!((4_800..5_200).contains(&tosses), "{tosses}");
}
