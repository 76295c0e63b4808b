//! The machine against the naive evaluator, on generated closed terms.

use crate::common::{both, cases, same};
use core_ir::{AnswerSink, LabelSpec, Plain};
use proptest::prelude::*;
use testkit::generate::{Program, Style, programs};

/// Values, labels, conversation, requests and errors are those of the naive evaluator.
fn agree(program: &Program) -> Result<(), TestCaseError> {
    let (naive, machine) = both(program);
    same(program, &naive, &machine)
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn machine_is_naive_on_programs_that_fit(
        program in prop_oneof![
            programs(Style::default()),
            programs(Style { parts: true, ..Style::default() }),
        ]
    ) {
        agree(&program)?;
    }

    #[test]
    fn machine_is_naive_on_wild_programs(program in programs(Style { wild: 50, ..Style::default() })) {
        agree(&program)?;
    }

    #[test]
    fn machine_is_naive_on_sequential_programs(program in programs(Style { parallel: false, ..Style::default() })) {
        agree(&program)?;
    }
}

/// Rules for an answer.
pub fn answers() -> impl Strategy<Value = AnswerSink> {
    let bounds = prop_oneof![
        Just(LabelSpec::TOP),
        Just(LabelSpec::BOTTOM),
        Just(LabelSpec::Axes { untrusted: true, secret: false }),
        Just(LabelSpec::Axes { untrusted: false, secret: true }),
    ];
    let forms = prop_oneof![Just(None), Just(Some(Plain::NoLinks))];
    (bounds, forms).prop_map(|(bound, plain)| AnswerSink { bound, plain })
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn machine_is_naive_on_programs_with_rules_for_their_answer(
        program in programs(Style::default()), answer in answers(),
    ) {
        agree(&Program { answer, ..program })?;
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn machine_is_naive_on_large_programs(program in programs(Style { size: 400, ..Style::default() })) {
        agree(&program)?;
    }
}
