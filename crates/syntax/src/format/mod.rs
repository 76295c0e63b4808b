//! Programs in one style: `.agent` and `.lam`.
//!
//! Entry points: [`agent`] and [`lam`].
//!
//! Invariant: the formatted text is read as the same program; comments are kept, in order, and of empty
//! lines at most one between two lines.
//! Invariant: what is formatted stays as it is when it is formatted again.
//! Invariant: a text that cannot be read is refused with what is wrong in it.

mod agent;
mod lam;
mod layout;

pub use agent::agent;
pub use lam::lam;
