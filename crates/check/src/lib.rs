//! Analyses of core terms: what a program entails before it runs.
//!
//! Entry points: [`lint::lint`] for configurations, [`cost::bound`] for the calls a run may make.
//!
//! Invariant: pure and total. An analysis returns what it found; what it cannot tell it calls unknown.

pub mod cost;
pub mod flow;
pub mod lint;
pub mod pred;
pub mod types;
