//! No run calls models or tools more often than the bound that was computed before it.

use crate::common::{cases, lam, run_machine};
use analysis::cost::{CostBound, Prices, Share};
use core_ir::{Data, Num};
use proptest::prelude::*;
use testkit::drive::Order;
use testkit::generate::{
    Program, Rng, Script, Style, counting, counting_input, programs, small, spending_programs,
};
use testkit::world::{Answer, Call, World};

fn within_bound(program: &Program) -> Result<(), TestCaseError> {
    within_bound_in(program, &mut Script::new(program))
}

fn within_bound_in(program: &Program, world: &mut dyn World) -> Result<(), TestCaseError> {
    let bound = analysis::cost::bound(&program.code(), false);
    let outcome = run_machine(program, None, world, Order::AtOnce);
    let count = |of: fn(&Call) -> bool| outcome.requests.iter().filter(|(c, _)| of(c)).count() as u64;
    let models = count(|c| matches!(c, Call::Model { .. }));
    let tools = count(|c| matches!(c, Call::Tool { .. }));
    prop_assert!(
        bound.model_calls.most.is_none_or(|m| models <= m),
        "{} models, {}",
        models,
        bound.model_calls
    );
    prop_assert!(bound.tool_calls.most.is_none_or(|m| tools <= m), "{} tools, {}", tools, bound.tool_calls);
    if outcome.result.is_ok() {
        prop_assert!(models >= bound.model_calls.least, "{} models, {}", models, bound.model_calls);
        prop_assert!(tools >= bound.tool_calls.least, "{} tools, {}", tools, bound.tool_calls);
    }
    parts_fit(&bound)?;
    // A bound is withheld only with a reason.
    let unknown = bound.model_calls.most.is_none() || bound.tool_calls.most.is_none();
    prop_assert!(!unknown || !bound.unbounded.is_empty(), "no reason");
    Ok(())
}

/// The parts of the most expensive path are no more than the whole bound.
fn parts_fit(bound: &CostBound) -> Result<(), TestCaseError> {
    let sum = |of: fn(&Share) -> Option<u64>| {
        let parts = bound.path.iter().filter_map(|line| line.most.as_ref().map(of));
        parts.reduce(|a, b| a.zip(b).map(|(a, b)| a.saturating_add(b))).unwrap_or(Some(0))
    };
    for (part, whole) in
        [(sum(|s| s.model_calls), bound.model_calls.most), (sum(|s| s.tool_calls), bound.tool_calls.most)]
    {
        prop_assert!(whole.is_none_or(|whole| part.is_some_and(|part| part <= whole)), "{:?}", bound);
    }
    Ok(())
}

/// A world of small numbers, in which nothing fails but what a model writes now and then.
struct Numbers(Rng);

impl World for Numbers {
    fn answer(&mut self, call: &Call) -> Answer {
        let n = if self.0.chance(20) { 0 } else { 5 };
        match call {
            Call::Model { .. } if self.0.chance(15) => Answer::Text("no number".into()),
            Call::Model { .. } => Answer::Text(n.to_string()),
            Call::Tool { .. } => Answer::Data(Data::Num(Num::from(n))),
            Call::Sample { .. } => Answer::Drawn(self.0.chance(70)),
            _ => Answer::Failed("nobody asks for this".into()),
        }
    }
}

/// A model that takes at most 100,000 tokens, writes at most 1,000, and costs 1 and 2 dollars a million.
const MODEL: &str = "[models.m]\ninput = 1\noutput = 2\ncontext = 100_000\nmax_output = 1_000\nseconds = 10";

/// Tokens and money: a token is a byte at least, a message takes at most 8 tokens beside its text, and each
/// reply is as long as the model can make it.
fn within_tokens(program: &Program) -> Result<(), TestCaseError> {
    let prices = Prices::standard().clone().with(MODEL).expect("a list of prices");
    let routes = core_ir::ModelRoutes { default: vec!["m".into()], ..Default::default() };
    let bound = analysis::cost::bound_with(&program.code(), false, &prices, &routes);
    let outcome = run_machine(program, None, &mut Script::new(program), Order::AtOnce);
    let (mut input, mut output, mut money) = (0, 0, 0);
    for (call, _) in &outcome.requests {
        if let Call::Model { messages, .. } = call {
            let bytes: u64 = messages.iter().map(|(_, text)| text.len() as u64 + 8).sum();
            input += bytes.min(100_000);
            output += 1_000;
            money += bytes.min(100_000) * 1_000 + 1_000 * 2_000;
        }
    }
    let fits = |used: u64, most: Option<u64>| most.is_none_or(|m| used <= m);
    prop_assert!(fits(input, bound.input_tokens.most), "{} input tokens, {}", input, bound.input_tokens);
    prop_assert!(fits(output, bound.output_tokens.most), "{} output tokens, {}", output, bound.output_tokens);
    if outcome.result.is_ok() {
        prop_assert!(input >= bound.input_tokens.least, "{} input tokens, {}", input, bound.input_tokens);
        prop_assert!(
            output >= bound.output_tokens.least,
            "{} output tokens, {}",
            output,
            bound.output_tokens
        );
        prop_assert!(money >= bound.money.least, "{} billionths, {}", money, bound.money);
    }
    prop_assert!(fits(money, bound.money.most), "{} billionths, {}", money, bound.money);
    parts_fit(&bound)?;
    prop_assert!(bound.unpriced.is_empty() || bound.model_calls.most.is_none(), "{:?}", bound.unpriced);
    Ok(())
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn tokens_and_money_stay_within_the_bound(program in programs(Style::default())) {
        within_tokens(&program)?;
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn calls_stay_within_the_bound(program in programs(Style::default())) {
        within_bound(&program)?;
    }

    #[test]
    fn calls_of_spending_programs_stay_within_the_bound(program in spending_programs()) {
        within_bound_in(&program, &mut Numbers(Rng::new(program.seed)))?;
    }

    #[test]
    fn calls_of_wild_programs_stay_within_the_bound(program in programs(Style { wild: 50, ..Style::default() })) {
        within_bound(&program)?;
    }
}

/// Functions that a loop hands to itself call more than their text says: each of these once had a bound that
/// was too low.
#[test]
fn functions_passed_through_loops_count_per_call() {
    let ask = "(llm 'p')";
    let cases = [
        // The argument doubles in each round and is called when the bound is reached: 2^3 calls.
        (format!(r"(fix[3] (\s. \f. s (\x. f (f x)))) {ask} 'x'"), 8),
        // It is called in each round and handed on.
        (format!(r"(fix[3] (\s. \f. let _ = f 'x' in s (\x. f (f x)))) {ask}"), 7),
        // In a record, and in a list.
        (format!(r"((fix[2] (\s. \r. s {{f: \x. r.f (r.f x)}})) {{f: {ask}}}).f 'x'"), 4),
        (format!(r"((fix[2] (\s. \l. s [\x. l.[0] (l.[0] x)])) [{ask}]).[0] 'x'"), 4),
        // Through the recursion of the prelude.
        (
            format!(
                r"fix (\s. \p. if p.n == 0 then p.f 'x' else s {{n: p.n - 1, f: \x. p.f (p.f x)}}) {{n: 3, f: {ask}}}"
            ),
            8,
        ),
        // The self reference comes back as a value.
        (format!(r"let g = (fix[2] (\s. \x. {ask} (s x))) in g (g 'x')"), 4),
    ];
    for (text, calls) in cases {
        let code = lam(&text);
        let answers = std::iter::repeat_n(testkit::world::Answer::Text("a".into()), 100).collect();
        let config = machine::Config::default();
        let outcome =
            testkit::drive::run(&code, None, config, &mut crate::common::Prepared(answers), Order::AtOnce);
        assert!(outcome.result.is_ok(), "{text}: {:?}", outcome.result);
        assert_eq!(outcome.requests.len() as u64, calls, "{text}");
        let bound = analysis::cost::bound(&code, false);
        let most = bound.model_calls.most;
        assert!(most.is_none_or(|m| m >= calls), "{text}: {}", bound.model_calls);
        assert!(most.is_some() || !bound.unbounded.is_empty(), "{text}: no reason");
    }
}

/// Each of these once had a bound that was too low.
#[test]
fn calls_of_guards_and_open_loops_count() {
    let long = "a".repeat(101);
    let cases: [(&str, &[&str], u64); 5] = [
        // What a guarded function gives is a function again, and guarded, too.
        (r"(guard (\x. \y. (llm 'p') y) length > 100 retry 3) 1 'a'", &["a", "a", "a", &long], 4),
        (r"(guard {f: guard (\x. \y. (llm 'p') y) length > 100 retry 1} any).f 1 'a'", &[], 0),
        // A loop without a bound in a round of one that has a bound.
        (
            r"(fix[3] (\outer. \x. let n = prim[length]((llm 'p') x) in
                (fix[inf] (\inner. \i. if i == 0 then 0 else let _ = outer x in inner (i - 1))) n)) 'a'",
            &["ab"; 7],
            7,
        ),
        // An answer of any type is JSON, too, and is asked for again if it is not.
        ("let _ = send 'x' in recv {result: Dyn, repair: 2}", &["no JSON", "{", "[1]"], 3),
        ("(llm 'p' {result: Dyn, repair: 1}) 'x'", &["no JSON", "1"], 2),
    ];
    for (text, answers, calls) in cases {
        let code = lam(text);
        let texts = answers.iter().map(|a| testkit::world::Answer::Text((*a).into())).collect();
        let config = machine::Config::default();
        let outcome =
            testkit::drive::run(&code, None, config, &mut crate::common::Prepared(texts), Order::AtOnce);
        assert_eq!(outcome.requests.len() as u64, calls, "{text}: {:?}", outcome.result);
        let bound = analysis::cost::bound(&code, false);
        let most = bound.model_calls.most;
        assert!(most.is_none_or(|m| m >= calls), "{text}: {}", bound.model_calls);
        assert!(most.is_some() || !bound.unbounded.is_empty(), "{text}: no reason");
    }
    // What a schema adds to a question is not known.
    let bound = |text: &str| analysis::cost::bound(&lam(text), false).input_tokens.most;
    assert_eq!(bound("(llm 'p' {result: Num, repair: 0}) 'x'"), None);
    assert!(bound("(llm 'p' {result: Str, repair: 0}) 'x'").is_some());
}

/// One reply may call several tools, and the next `recv` takes the second call without asking: it was counted
/// as a question.
#[test]
fn a_call_that_is_left_over_is_no_question() {
    let code = lam("tool t(a: Num) -> Num read\nlet _ = recv {tools: [t]} in recv {tools: [t]}");
    assert_eq!(analysis::cost::bound(&code, false).model_calls.least, 0);
    let code = lam("let _ = recv {} in recv {result: Num}");
    assert_eq!(analysis::cost::bound(&code, false).model_calls.least, 2);
}

/// The sample of [`calls_of_spending_programs_stay_within_the_bound`] is not trivial: most programs have a
/// bound, many call models, and some reach their bound.
#[test]
fn spending_programs_spend() {
    let (mut bounded, mut calling, mut exact, mut failed) = (0, 0, 0, 0);
    for seed in 0..1_000 {
        let program = testkit::generate::spending(seed);
        let bound = analysis::cost::bound(&program.code(), false);
        let world = &mut Numbers(Rng::new(program.seed));
        let outcome = run_machine(&program, None, world, Order::AtOnce);
        let tools = outcome.requests.iter().filter(|(c, _)| matches!(c, Call::Tool { .. })).count() as u64;
        bounded += u32::from(bound.model_calls.most.and(bound.tool_calls.most).is_some());
        calling += u32::from(tools > 1);
        exact += u32::from(tools > 1 && bound.tool_calls.most == Some(tools));
        failed += u32::from(outcome.result.is_err());
    }
    assert!(bounded > 700 && calling > 200 && exact > 50 && failed < 200);
}

/// A world of small numbers, of which none is certain.
struct Small(Rng);

impl World for Small {
    fn answer(&mut self, call: &Call) -> Answer {
        match call {
            Call::Model { .. } => Answer::Text("a".into()),
            Call::Tool { .. } => Answer::Data(Data::Num(small(&mut self.0))),
            _ => Answer::Failed("nobody asks for this".into()),
        }
    }
}

/// The bound of a program that counts, and the calls of models and tools of a run of it, if it has a value.
fn counted(text: &str, seed: u64) -> (CostBound, (u64, u64), bool) {
    let code = lam(text);
    let bound = analysis::cost::bound(&code, true);
    let config = machine::Config { fuel: 20_000, ..machine::Config::default() };
    let (input, mut world) = (counting_input(seed), Small(Rng::new(seed)));
    let outcome = testkit::drive::run(&code, Some(&input), config, &mut world, Order::AtOnce);
    let count = |of: fn(&Call) -> bool| outcome.requests.iter().filter(|(c, _)| of(c)).count() as u64;
    let calls = (count(|c| matches!(c, Call::Model { .. })), count(|c| matches!(c, Call::Tool { .. })));
    (bound, calls, outcome.result.is_ok())
}

fn within_counted(text: &str, seed: u64) -> Result<(), TestCaseError> {
    let (bound, (models, tools), ended) = counted(text, seed);
    let fits = |n: u64, i: &analysis::cost::Interval| {
        i.most.is_none_or(|most| n <= most) && (!ended || n >= i.least)
    };
    prop_assert!(fits(models, &bound.model_calls), "{} models, {}\n{}", models, bound.model_calls, text);
    prop_assert!(fits(tools, &bound.tool_calls), "{} tools, {}\n{}", tools, bound.tool_calls, text);
    let unknown = bound.model_calls.most.is_none() || bound.tool_calls.most.is_none();
    prop_assert!(!unknown || !bound.unbounded.is_empty(), "no reason\n{}", text);
    parts_fit(&bound)
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn rounds_stay_within_the_bound(seed in any::<u64>(), size in 1..24_u32, input in any::<u64>()) {
        let text = counting(seed, size);
        for run in 0..3 {
            within_counted(&text, input.wrapping_add(run))?;
        }
    }
}

/// The sample of [`rounds_stay_within_the_bound`] is not trivial.
#[test]
fn counting_programs_count() {
    let (mut calling, mut bounded, mut reached) = (0, 0, 0);
    for seed in 0..1_000 {
        let text = counting(seed, 8);
        let (bound, (models, tools), _) = counted(&text, seed);
        let most = bound.model_calls.most.zip(bound.tool_calls.most);
        if text.contains("fix[inf]") && models + tools > 1 {
            calling += 1;
            bounded += u32::from(most.is_some());
            reached += u32::from(most == Some((models, tools)));
        }
    }
    assert!(calling > 150 && bounded > 45 && reached > 10, "{calling} {bounded} {reached}");
}

/// Guards, failures and comparisons before a loop, and counters of several kinds.
#[test]
fn conditions_bound_the_loops_of_terms() {
    let tool = "tool t(a: Num) -> Num read\n";
    let cases = [
        (
            r"\xs. if prim[length](xs) > 5 then fail 'many' else
              (fix[inf] (\s. \i. if i < prim[length](xs) then let _ = tool[t] {a: i} in s (i + 1) else 0)) 0",
            0,
            5,
        ),
        (
            r"\input. let xs = guard input.xs length <= 4 in
              (fix[inf] (\s. \p. if p.i < prim[length](p.xs)
                then let _ = tool[t] {a: p.i} in s {i: p.i + 1, xs: p.xs} else 0)) {i: 0, xs: xs}",
            0,
            4,
        ),
        (
            r"\input. let _ = if input.n <= 4 then null else fail 'x' in
              (fix[inf] (\s. \i. if i > 0 then let _ = tool[t] {a: i} in s (i - 1) else 0)) input.n",
            0,
            4,
        ),
        // By halves, from two on.
        (
            r"\n. if n < 5 then (fix[inf] (\s. \i. if i < n then let _ = tool[t] {a: i} in s (i + 0.5) else 0)) 2
              else 0",
            0,
            6,
        ),
        // Two counters that meet: each alone is bounded by the other's first value.
        (
            r"\n. if n <= 8 then (fix[inf] (\s. \p. if p.i < p.j
                then let _ = tool[t] {a: 1} in s {i: p.i + 1, j: p.j - 1} else 0)) {i: 0, j: n} else 0",
            0,
            8,
        ),
        (
            r"\input. let xs = guard input.xs (length <= 4 && length >= 2) in each[2] (\x. tool[t] {a: x}) xs",
            2,
            4,
        ),
        // Each round begins two others.
        (
            r"\n. if n <= 3 then (fix[inf] (\s. \i. if i > 0 then let _ = tool[t] {a: i} in s (i - 1) + s (i - 1)
                else 0)) n else 0",
            0,
            7,
        ),
    ];
    for (text, least, most) in cases {
        let found = analysis::cost::bound(&lam(&format!("{tool}{text}")), true);
        assert_eq!((found.tool_calls.least, found.tool_calls.most), (least, Some(most)), "{text}");
        assert!(found.unbounded.is_empty(), "{text}: {:?}", found.unbounded);
    }
}
