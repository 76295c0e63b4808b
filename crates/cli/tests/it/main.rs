//! The integration tests of this crate, in one binary: a module for each subject.

mod approval;
mod approval_edit;
mod audit;
mod audit_steps;
mod audit_tools;
mod cli;
mod contract;
mod docs;
#[cfg(feature = "engine")]
mod engine;
mod guard;
#[cfg(all(unix, feature = "mcp", feature = "serve"))]
mod guard_http;
mod guard_install;
mod guard_list;
mod journal;
mod lint;
#[cfg(feature = "mcp")]
mod lock;
mod mcp;
mod mcp_questions;
mod pictures;
mod plan;
mod plan_bad_input;
mod plan_consents;
mod plan_worlds;
mod policy_check;
#[cfg(feature = "postgres")]
mod postgres;
mod preflight;
mod program;
mod providers;
mod python;
mod python_tools;
#[cfg(feature = "redis")]
mod redis;
mod registry_script;
mod repl;
mod serve;
mod serve_callers;
mod serve_kept;
mod serving;
mod streaming;
mod terminal;
mod test_attacks;
mod test_coverage;
mod test_rows;
mod test_snapshots;
mod ui;
mod unusable_files;
mod verify;
mod worst_case;
