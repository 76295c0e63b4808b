//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::print_stderr, reason = "tests report what they measured")]

mod replanning;
mod views;
