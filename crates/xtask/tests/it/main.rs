//! The integration tests of this crate, in one binary: a module for each subject.

mod assets;
#[cfg(unix)]
mod benchmarks;
mod tidy;
