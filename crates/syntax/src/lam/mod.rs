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
    Item, ItemKind, LONGEST_TEXT, MOST_ERRORS, Options, Parsed, Part, items, parse, parse_globals,
    parse_parts,
};

/// Whether a text goes on in the next line: a bracket or a string is open, or its last token wants something after it.
///
/// # Examples
/// ```
/// use syntax::lam::unfinished;
/// assert!(unfinished("map (\\x. x") && unfinished("let x =") && !unfinished("1 + 1"));
/// ```
pub fn unfinished(text: &str) -> bool {
    lexer::unfinished(text)
}
