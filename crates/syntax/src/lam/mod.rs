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
pub use parser::{LONGEST_TEXT, MOST_ERRORS, Options, Parsed, parse, parse_globals};
