//! The rules, one file each (`L004` with its four levels in one) and one line each here.

use super::Rule;

mod l001_empty_prompt;
mod l002_no_model;
mod l003_vacuous_loop;
mod l004_base_case;
mod l017_default_bound;

/// All rules, in order of their codes.
pub const RULES: &[&Rule] = &[
    &l001_empty_prompt::RULE,
    &l002_no_model::RULE,
    &l003_vacuous_loop::RULE,
    &l004_base_case::NO_BASE_CASE,
    &l004_base_case::FORCED_TRUNCATION,
    &l004_base_case::FRAMEWORK_ENDS_LOOP,
    &l004_base_case::TEXT_ENDS_LOOP,
    &l017_default_bound::RULE,
];

/// The rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.code.eq_ignore_ascii_case(code)).copied()
}
