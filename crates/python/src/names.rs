//! Words of a module that may be names of a configuration, by its tokens: for editors, which ask where a name
//! stands.
//!
//! Entry point: [`mentions`]. Nothing is evaluated, so a module of any shape is read in time that its length
//! bounds.

use crate::Source;
use diagnostics::Span;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, parse_unchecked};
use ruff_text_size::Ranged;

/// Role of a word in its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A text: `agents_config["writer"]`.
    Text,
    /// A text that names what is made: `Agent(name="writer")`, `add_node("writer", …)`.
    Named,
    /// The name of a function: `def writer(self)`.
    Defined,
    /// A member: `self.writer()`.
    Member,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The word.
    pub text: String,
    /// Span of the word without quotes.
    pub span: Span,
    /// Role of the word.
    pub role: Role,
}

/// Arguments of this name say what something is called.
const NAMING: &[&str] = &["name", "agent_name"];
/// Longer texts are no names.
const MAX_NAME_LEN: usize = 200;

/// The words of a module that may be names: plain texts, functions and members, in the order of the text.
///
/// # Examples
/// ```
/// use diagnostics::FileId;
/// use python::names::{Role, mentions};
/// let text = "class C:
///     def writer(self):
///         return Agent(config=self.agents_config['writer'], name='w')
/// ";
/// let found = mentions(&python::Source::new(FileId(0), "crew.py", text.into()));
/// let of = |t: &str| found.iter().filter(|m| m.text == t).map(|m| m.role).collect::<Vec<_>>();
/// assert_eq!(of("writer"), [Role::Defined, Role::Text]);
/// assert_eq!((of("w"), of("agents_config")), (vec![Role::Named], vec![Role::Member]));
/// ```
pub fn mentions(source: &Source) -> Vec<Mention> {
    if source.text.len() > crate::sources::MAX_BYTES {
        return Vec::new();
    }
    let parsed = parse_unchecked(&source.text, ParseOptions::from(Mode::Module));
    let mut out = Vec::new();
    // The kinds and texts of the last three tokens.
    let mut before: [(TokenKind, &str); 3] = [(TokenKind::Newline, ""); 3];
    for token in parsed.tokens().iter() {
        let (kind, range) = (token.kind(), token.range());
        let text = source.text.get(range.start().into()..range.end().into()).unwrap_or("");
        let (last, word) = (before[2], before[1]);
        let mut put = |text: &str, start: u32, role: Role| {
            let span = Span { file: source.id, start, end: start + text.len() as u32 };
            out.push(Mention { text: text.to_string(), span, role });
        };
        match kind {
            TokenKind::Name if last.0 == TokenKind::Def => put(text, range.start().into(), Role::Defined),
            TokenKind::Name if last.0 == TokenKind::Dot => put(text, range.start().into(), Role::Member),
            TokenKind::String => {
                if let Some(inner) = plain(text) {
                    let named = last.0 == TokenKind::Equal && NAMING.contains(&word.1)
                        || last.0 == TokenKind::Lpar && word.1 == "add_node";
                    let role = if named { Role::Named } else { Role::Text };
                    put(inner, u32::from(range.start()) + 1, role);
                }
            }
            _ => {}
        }
        if !matches!(kind, TokenKind::Comment | TokenKind::NonLogicalNewline) {
            before = [before[1], before[2], (kind, text)];
        }
    }
    out
}

/// Returns the content of a string literal that is on one line and has no escapes.
fn plain(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let simple = !inner.is_empty() && inner.len() <= MAX_NAME_LEN && !inner.contains(['\\', '\n', quote]);
    simple.then_some(inner)
}
