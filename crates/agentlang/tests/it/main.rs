//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]

mod calculus;
mod examples;
mod formatting;
mod newcomers;
mod policy_block;
mod rows;
mod suite;
mod surface;
mod surface_flow;
mod surface_hostile;
mod surface_meaning;
