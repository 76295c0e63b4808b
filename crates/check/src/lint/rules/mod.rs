//! The rules, one file each (`L004` with its four levels in one) and one line each here.

use super::Rule;

mod l001_empty_prompt;
mod l002_no_model;
mod l003_vacuous_loop;
mod l004_base_case;
mod l005_empty_routes;
mod l009_impossible_setting;
mod l013_no_default_route;
mod l015_single_route;
mod l016_single_branch;
mod l017_default_bound;
mod l021_unbounded_group;
mod s001_secret;
mod s002_plain_http;
mod s003_code_in_the_open;

/// All rules, in order of their codes.
pub const RULES: &[&Rule] = &[
    &l001_empty_prompt::RULE,
    &l002_no_model::RULE,
    &l003_vacuous_loop::RULE,
    &l004_base_case::NO_BASE_CASE,
    &l004_base_case::FORCED_TRUNCATION,
    &l004_base_case::FRAMEWORK_ENDS_LOOP,
    &l004_base_case::TEXT_ENDS_LOOP,
    &l005_empty_routes::RULE,
    &l009_impossible_setting::RULE,
    &l013_no_default_route::RULE,
    &l015_single_route::RULE,
    &l016_single_branch::RULE,
    &l017_default_bound::RULE,
    &l021_unbounded_group::RULE,
    &s001_secret::RULE,
    &s002_plain_http::RULE,
    &s003_code_in_the_open::RULE,
];

/// The rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.code.eq_ignore_ascii_case(code)).copied()
}
