//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests read fixtures and the environment"
)]

mod laws;
