//! Characters by their names in Unicode, in place of the crate `unicode_names2` that the parser of Python asks
//! for `"\N{HONEYBEE}"`.
//!
//! Entry point: [`character`]. A binary asks the crate, whose tables are 400 KB when compressed. A module of
//! WebAssembly leaves them out: it asks [`supplied`], and the page supplies the few names that a program has.
//!
//! Invariant: no name is decided here. What the crate says is what is answered.

pub mod supplied;

#[cfg(not(target_family = "wasm"))]
pub use real::character;
#[cfg(target_family = "wasm")]
pub use supplied::character;
