//! Readers of Entail's own languages: text in, tree or term and diagnostics out.
//!
//! Entry points: [`agent::parse`] for the surface language.
//!
//! Invariant: every text is read to its end or to a stated limit; invalid text gives diagnostics, never
//! a panic.
//! Invariant: nothing here resolves names or knows types; that is `frontend`'s.

pub mod agent;
