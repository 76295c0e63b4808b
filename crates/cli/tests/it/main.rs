//! The integration tests of this crate, in one binary: a module for each subject.

mod approval;
mod cli;
mod contract;
mod docs;
mod journal;
mod lint;
mod mcp;
mod pictures;
mod plan;
mod preflight;
mod providers;
mod python;
mod python_tools;
#[cfg(feature = "redis")]
mod redis;
mod repl;
mod serve;
mod serve_callers;
mod serve_kept;
mod serving;
mod terminal;
mod worst_case;
