//! No run calls models or tools more often than the bound that was computed before it.

mod common;

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
