//! Syntactic structure of the tokens, for the formatter.
//!
//! The parser notes it while it reads, so that no second reader of the notation is needed.
//!
//! Invariant: forms are noted inner ones first; their ranges nest. Tokens are referred to by number.

use super::lexer::{Tok, Token};

/// Kind of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `let x = e in … e`; marked is what follows each `in`.
    Let,
    /// Value after the `=` of a `let`.
    Value,
    /// `\\x. e`; marked is the body.
    Lambda,
    /// `if e then e else e`; marked are `then` and `else`.
    If,
    /// `try[l] e catch x. e`; marked is `catch`.
    Try,
    /// `e + e + e`; marked are the operators.
    Chain,
    /// `e >> e >> e`; marked are the operators.
    Stages,
    /// `e a a`; marked are the arguments.
    Application,
}

/// A form and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub form: Form,
    pub first: usize,
    pub last: usize,
    pub marks: Vec<usize>,
}

/// Role of a token for the formatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Open,
    Close,
    /// `"text{`: what follows up to the matching [`Part::TextClose`] stays as it is.
    TextOpen,
    TextClose,
    /// `\\` or a backtick: nothing stands between it and the next token.
    Sticks,
    /// Nothing stands between the token before and this one.
    Follows,
    Lambda,
    Other,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// The tokens: first byte, one past the last byte, what it is.
    pub tokens: Vec<(u32, u32, Part)>,
    /// Forms.
    pub forms: Vec<Shape>,
    /// The first token of each declaration, definition and term.
    pub items: Vec<usize>,
    /// Tokens that stand directly after the one before.
    pub tight: Vec<usize>,
    /// Dots that are not those of a λ or a field.
    pub loose: Vec<usize>,
}

impl Shapes {
    pub(super) fn new(text: &str, tokens: &[Token]) -> Shapes {
        let part = |t: &Token| match t.tok {
            Tok::Open(_) => Part::Open,
            Tok::Close(_) => Part::Close,
            Tok::StrOpen(_) => Part::TextOpen,
            Tok::StrClose(_) => Part::TextClose,
            Tok::Lambda => Part::Lambda,
            Tok::Backtick => Part::Sticks,
            Tok::Comma | Tok::Semicolon | Tok::Colon | Tok::Dot => Part::Follows,
            _ => Part::Other,
        };
        let kept = tokens.iter().filter(|t| t.tok != Tok::Eof && (t.end as usize) <= text.len());
        Shapes { tokens: kept.map(|t| (t.start, t.end, part(t))).collect(), ..Shapes::default() }
    }
}
