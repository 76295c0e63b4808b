//! Analyses of core terms: what a program entails before it runs.
//!
//! Entry points: [`types::check`] for types and effects, [`cost::bound`] for the calls a run may make,
//! [`flow::analyze`] for where labels may arrive, [`pred::implies`] for predicates.
//!
//! Invariant: pure and total. An analysis returns what it found; what it cannot tell it calls unknown.
//! Invariant: no front end and no rule is known here. An analysis reads terms and their facts.

pub mod cost;
pub mod flow;
pub mod pred;
mod range;
pub mod types;
