//! Readers of Entail's own languages: text in, tree or term and diagnostics out.
//!
//! Entry points: [`agent::parse`] for the surface language, [`lam::parse`] for the calculus,
//! [`mod@format`] for both in one style.
//!
//! Invariant: every text is read to its end or to a stated limit; invalid text gives diagnostics, never
//! a panic.
//! Invariant: nothing here knows types; nothing but [`lam`], whose terms are made here, resolves names.

pub mod agent;
pub mod format;
pub mod lam;
