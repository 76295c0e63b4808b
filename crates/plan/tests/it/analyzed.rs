//! Findings of the analyses on plans.

use crate::differential::PLANS;
use crate::run::compile;
use std::sync::Arc;

#[test]
fn plans_that_run_are_well_typed_and_flow() {
    for text in PLANS {
        let code = Arc::new(compile(text).unwrap_or_else(|found| panic!("{text}: {found:?}")));
        let typing = analysis::types::check(&code, None);
        assert!(!diagnostics::has_errors(&typing.diagnostics), "{text}\n{:?}", typing.diagnostics);
        let flow = analysis::flow::analyze(&code, &analysis::flow::Options::default());
        assert!(flow.gave_up.is_none() && flow.passed.is_empty(), "{text}\n{:?}", flow.passed);
    }
}
