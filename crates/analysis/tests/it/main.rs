//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]

mod cost;
mod flow;
mod programs;
