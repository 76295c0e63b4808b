//! The rules, one file each (`L004` with its four levels in one) and one line each here.

use super::Rule;

/// The page of a rule. A module of WebAssembly has to be small, and nobody asks it for pages.
macro_rules! page {
    ($path:literal) => {
        if cfg!(target_arch = "wasm32") { "" } else { include_str!($path) }
    };
}

mod l001_empty_prompt;
mod l002_no_model;
mod l003_vacuous_loop;
mod l004_base_case;
mod l005_empty_routes;
mod l006_empty_composition;
mod l007_unmatched_outcome;
mod l008_unreachable;
mod l009_impossible_setting;
mod l010_guard_never_holds;
mod l011_never_written;
mod l012_parallel_writes;
mod l013_no_default_route;
mod l014_unread_input;
mod l015_single_route;
mod l016_single_branch;
mod l017_default_bound;
mod l018_costly;
mod l019_ungiven_tool;
mod l020_handoff_cycle;
mod l021_unbounded_group;
mod l022_repeated_write;
mod l023_unreachable_end;
mod l024_missing_value;
mod l025_unaccepted_output;
mod l026_unused_tool;
mod l027_refused_setting;
mod l028_unknown_name;
mod l029_wrong_arguments;
mod l030_deprecated_name;
mod s001_secret;
mod s002_plain_http;
mod s003_unsandboxed_code;
mod s004_trifecta;
mod s005_bypassed_approval;
mod s006_unpinned_server;

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
    &l006_empty_composition::RULE,
    &l007_unmatched_outcome::RULE,
    &l008_unreachable::RULE,
    &l009_impossible_setting::RULE,
    &l010_guard_never_holds::RULE,
    &l011_never_written::RULE,
    &l012_parallel_writes::RULE,
    &l013_no_default_route::RULE,
    &l014_unread_input::RULE,
    &l015_single_route::RULE,
    &l016_single_branch::RULE,
    &l017_default_bound::RULE,
    &l018_costly::RULE,
    &l019_ungiven_tool::RULE,
    &l020_handoff_cycle::RULE,
    &l021_unbounded_group::RULE,
    &l022_repeated_write::RULE,
    &l023_unreachable_end::RULE,
    &l024_missing_value::RULE,
    &l025_unaccepted_output::RULE,
    &l026_unused_tool::RULE,
    &l027_refused_setting::RULE,
    &l028_unknown_name::RULE,
    &l029_wrong_arguments::RULE,
    &l030_deprecated_name::RULE,
    &s001_secret::RULE,
    &s002_plain_http::RULE,
    &s003_unsandboxed_code::RULE,
    &s004_trifecta::RULE,
    &s005_bypassed_approval::RULE,
    &s006_unpinned_server::RULE,
];

/// The rule of a code.
pub fn rule(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.code.eq_ignore_ascii_case(code)).copied()
}
