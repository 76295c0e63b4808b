//! The integration tests of this crate, in one binary: a module for each subject.
#![allow(clippy::disallowed_methods, reason = "tests read fixtures and the environment")]

mod agent;
mod common;
mod format;
mod highlighting;
mod lam;
mod lam_roundtrip;
