//! The integration tests of this crate, in one binary: a module for each subject.

#[cfg(unix)]
mod action;
mod assets;
#[cfg(unix)]
mod benchmarks;
mod tidy;
