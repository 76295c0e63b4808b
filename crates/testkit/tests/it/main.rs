//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "tests report what they measured")]

mod attacks;
mod common;
mod cost;
mod distribution;
mod explain;
mod faithful;
mod flow;
mod generator;
mod keys;
mod machine;
mod mutants;
mod noninterference;
mod oracle;
mod partial;
mod proofs;
mod properties;
mod regressions;
mod rules;
mod several_calls;
mod suite_lam;
mod types;
mod whole_functions;
