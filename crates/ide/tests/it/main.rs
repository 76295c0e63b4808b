//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "tests read fixtures and report what they measured"
)]

mod files;
mod imports;
mod metamorphic;
mod python_tools;
