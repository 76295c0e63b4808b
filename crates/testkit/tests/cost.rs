//! No run calls models or tools more often than the bound that was computed before it.

mod common;

use check::cost::Prices;
use common::{cases, run_machine};
use proptest::prelude::*;
use testkit::drive::Order;
use testkit::generate::{Program, Script, Style, programs};
use testkit::world::Call;

fn within_bound(program: &Program) -> Result<(), TestCaseError> {
    let bound = check::cost::bound(&program.code(), false);
    let outcome = run_machine(program, None, &mut Script::new(program), Order::AtOnce);
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
    // A bound is withheld only with a reason.
    let unknown = bound.model_calls.most.is_none() || bound.tool_calls.most.is_none();
    prop_assert!(!unknown || !bound.unbounded.is_empty(), "no reason");
    Ok(())
}

/// A model that takes at most 100,000 tokens, writes at most 1,000, and costs 1 and 2 dollars a million.
const MODEL: &str = "[models.m]\ninput = 1\noutput = 2\ncontext = 100_000\nmax_output = 1_000\nseconds = 10";

/// Tokens and money: a token is a byte at least, a message takes at most 8 tokens beside its text, and each reply is as long as
/// the model can make it.
fn within_tokens(program: &Program) -> Result<(), TestCaseError> {
    let prices = Prices::standard().with(MODEL).expect("a list of prices");
    let bound = check::cost::bound_with(&program.code(), false, &prices, Some("m"));
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
    prop_assert!(fits(money, bound.money.most), "{} billionths, {}", money, bound.money);
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
    fn calls_of_wild_programs_stay_within_the_bound(program in programs(Style { wild: 50, ..Style::default() })) {
        within_bound(&program)?;
    }
}
