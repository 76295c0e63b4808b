//! The calculus as text: `.lam` files, and what models write when they are asked for code.
//!
//! Entry point: [`parse`]. The notation is described in `docs/lam.md`; `core_ir::print_code` writes it.
//!
//! Invariant: the term is built directly; there is no syntax tree to keep in step with it.
//! Invariant: time and memory are linear in the text, whatever it is.

pub mod codes;
mod decls;
mod lexer;
mod parser;
pub(crate) mod shape;

pub use codes::{EXPLANATIONS, Explanation, explain};
pub(crate) use parser::shapes;
pub use parser::{
    Item, ItemKind, MAX_ERRORS, MAX_TEXT_BYTES, Options, Parsed, Part, items, parse, parse_globals,
    parse_parts,
};

/// Completeness of a text that may continue on the next line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing has to follow.
    Complete,
    /// A bracket is open, or the last token wants something after it.
    Open,
    /// A string is open.
    InString,
}

/// Returns whether a text is complete.
///
/// # Examples
/// ```
/// use syntax::lam::{Ending, ending};
/// assert_eq!(ending("map (\\x. x"), Ending::Open);
/// assert_eq!(ending("1 +"), Ending::Open);
/// assert_eq!(ending("\"so far"), Ending::InString);
/// assert_eq!(ending("1 + 1"), Ending::Complete);
/// ```
pub fn ending(text: &str) -> Ending {
    lexer::ending(text)
}
