//! The integration tests of this crate, in one binary: a module for each subject.

mod counterexamples;
mod explore;
mod fuel;
mod in_place;
mod parts;
mod rules;
mod sinks;
