//! The surface language: `.agent` text to a syntax tree.
//!
//! Entry point: [`parse`].

pub mod ast;
pub mod keywords;
pub(crate) mod lexer;
mod parser;
pub mod spelling;

pub use lexer::{Lexed, Token, Tokens, lex};
pub use parser::{MAX_ERRORS, MAX_TEXT_BYTES, parse};
