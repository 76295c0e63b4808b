//! Tokens to core terms, by recursive descent.
//!
//! Recovery: a bracket that does not close where it should is closed at the next bracket that fits, or at
//! the next line that begins at the margin. What could not be read is an unknown term. At most one
//! error is reported at one token.

use super::codes;
use super::lexer::{self, Bracket, Lexed, Tok, Token};
use super::shape::{Form, Shape, Shapes};
use core_ir::{
    Bound, BoundOrigin, Branch, BuildError, Builder, Catches, Code, Data, Globals, IfSugar, LetSugar,
    MAX_DEPTH, Name, Num, Prim, Recv, Role, Slot, StoreConflict, StoreId, Term, TermId, ToolId, Type,
};
use diagnostics::{Diagnostic, FileId, Span, clip, nearest};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A text longer than this (in bytes) is refused.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// More errors than this in one text are not reported.
pub const MAX_ERRORS: usize = 100;

/// A level of a term takes at most a few calls to read (parentheses count); the limit on terms
/// themselves is checked when the code is finished.
const MAX_PARSER_CALLS: usize = 4 * MAX_DEPTH + 16;

/// Forms that a text may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// True if `endorse` and `declassify` are allowed.
    pub endorse: bool,
    /// True if `tool[…]`, `args[…]{…}`, declarations of tools and offers of tools are allowed.
    pub tools: bool,
    /// True if `mem` and declarations of stores may occur.
    pub stores: bool,
}

impl Options {
    /// For programs that people wrote: everything.
    pub const PROGRAM: Options = Options { endorse: true, tools: true, stores: true };
    /// For code that a model wrote: nothing that lowers labels, acts or declares a store.
    pub const GENERATED: Options = Options { endorse: false, tools: false, stores: false };
}

impl Default for Options {
    fn default() -> Options {
        Options::PROGRAM
    }
}

/// Result of parsing.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The term; `None` exactly if there is an error among the diagnostics.
    pub code: Option<Code>,
    /// Findings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a program. Its free variables are those of the prelude.
///
/// # Examples
/// ```
/// use core_ir::{Globals, print_code};
/// use syntax::lam::{Options, parse};
/// let text = "let twice = \\f. f >> f\ntwice (\\x. x + 1) 5";
/// let mut sources = diagnostics::Sources::new();
/// let file = sources.add("twice.lam", text);
/// let parsed = parse(file, text, &Globals::none(), Options::PROGRAM);
/// assert!(parsed.diagnostics.is_empty());
/// assert_eq!(print_code(&parsed.code.unwrap()), "let twice = \\f. f >> f in twice (\\x. x + 1) 5\n");
/// ```
///
/// Source: `docs/lam.md`; seed 000 Definition 3.1; seed 002 (surface of the worked examples).
pub fn parse(file: FileId, text: &str, globals: &Arc<Globals>, options: Options) -> Parsed {
    let mut parser = match Parser::new(file, text, options, globals.clone()) {
        Ok(parser) => parser,
        Err(diagnostics) => return Parsed { code: None, diagnostics },
    };
    let root = parser.program();
    match root {
        Some(root) => parser.finished(root),
        None => Parsed { code: None, diagnostics: parser.done() },
    }
}

/// Kind of a program's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// `tool …` or `store …`, with the name that it declares.
    Declaration(Name),
    /// `let x = e`, without a body.
    Definition(Name),
    /// A term.
    Term,
}

/// An item of a program and the bytes of the text that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Kind of item.
    pub kind: ItemKind,
    /// Where.
    pub range: Range<usize>,
}

/// The items of a text, whose names need not be bound: so far it is only read.
///
/// # Errors
/// What is wrong, in the order of the text.
///
/// # Examples
/// ```
/// use syntax::lam::{ItemKind, items};
/// let found = items(diagnostics::FileId(0), "let x = 1; x + 1").unwrap();
/// assert_eq!(found[0].kind, ItemKind::Definition("x".into()));
/// assert_eq!((found[1].kind.clone(), found[1].range.clone()), (ItemKind::Term, 11..16));
/// ```
pub fn items(file: FileId, text: &str) -> Result<Vec<Item>, Vec<Diagnostic>> {
    let mut parser = Parser::new(file, text, Options::PROGRAM, Globals::none())?;
    // Like the formatter, it knows no prelude and wants no term.
    parser.shapes = Some(Shapes::new(text, &parser.tokens));
    let mut found = Vec::new();
    while parser.tok() != Tok::Eof && parser.diagnostics.len() < MAX_ERRORS {
        if parser.eat(Tok::Semicolon) {
            continue;
        }
        let start = parser.start() as usize;
        let kind = match parser.item() {
            (_, Some((None, _))) => ItemKind::Term,
            (_, Some((Some(name), _))) => ItemKind::Definition(name),
            (name, None) => ItemKind::Declaration(name),
        };
        found.push(Item { kind, range: start..parser.end as usize });
    }
    if parser.failed() { Err(parser.done()) } else { Ok(found) }
}

/// A part of a program that is put together from several.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// The items of a text from one byte to another.
    Text(FileId, &'a str, (usize, usize)),
    /// The definition of a name by a closed term.
    Code(&'a Name, &'a Code),
}

/// Reads a program that consists of several parts, one after another. The last part is a text; if it ends
/// with a definition, the program is what is defined.
///
/// # Examples
/// ```
/// use core_ir::{Globals, print_code};
/// use diagnostics::FileId;
/// use syntax::lam::{Options, Part, parse_parts};
/// let definition = Part::Text(FileId(0), "let x = 1; 7", (0, 9));
/// let parts = [definition, Part::Text(FileId(1), "let y = x + 1", (0, 13))];
/// let parsed = parse_parts(&parts, &Globals::none(), Options::PROGRAM);
/// assert_eq!(print_code(&parsed.code.unwrap()), "let x = 1 in x + 1\n");
/// ```
pub fn parse_parts(parts: &[Part<'_>], globals: &Arc<Globals>, options: Options) -> Parsed {
    let wrong = |diagnostics| Parsed { code: None, diagnostics };
    let mut parser = match Parser::new(FileId(0), "", options, globals.clone()) {
        Ok(parser) => parser,
        Err(diagnostics) => return wrong(diagnostics),
    };
    let mut items: Vec<(Option<Name>, TermId)> = Vec::new();
    for part in parts {
        match *part {
            Part::Text(file, text, (from, to)) => {
                let text = text.get(..to).unwrap_or(text);
                let from = if text.is_char_boundary(from) { from } else { text.len() };
                if let Err(diagnostics) = parser.go_on(file, text, from) {
                    return wrong(diagnostics);
                }
                items.extend(parser.items());
            }
            Part::Code(name, code) => {
                parser.bound.push(name.clone());
                items.push((Some(name.clone()), parser.b.graft(code)));
            }
        }
    }
    let Some((_, root)) = items.pop() else {
        parser.expected_no_term();
        return wrong(parser.done());
    };
    let span = parser.b.span(root);
    let pending = items.into_iter().map(|(name, id)| (name.unwrap_or_else(|| "_".into()), id)).collect();
    let root = parser.b.let_in(pending, root, span);
    parser.finished(root)
}

/// Reads a program for the formatter: how its tokens hang together, or why it is none. Names that
/// nothing binds do not matter here.
pub(crate) fn shapes(file: FileId, text: &str) -> Result<Shapes, Vec<Diagnostic>> {
    let mut parser = Parser::new(file, text, Options::PROGRAM, Globals::none())?;
    parser.shapes = Some(Shapes::new(text, &parser.tokens));
    parser.program();
    let shapes = parser.shapes.take().unwrap_or_default();
    if parser.failed() { Err(parser.done()) } else { Ok(shapes) }
}

/// Reads a prelude: definitions `let f = \x. …` that may refer to each other in any order.
///
/// # Errors
/// What is wrong, in the order of the text.
pub fn parse_globals(file: FileId, text: &str) -> Result<Globals, Vec<Diagnostic>> {
    let mut parser = Parser::new(file, text, Options::PROGRAM, Globals::none())?;
    let items = parser.items();
    let mut definitions = Vec::new();
    for (name, id) in items {
        match name {
            Some(name) if definitions.iter().any(|(n, _)| *n == name) => {
                let span = parser.b.span(id);
                parser.error(codes::DUPLICATE, format!("`{name}` is defined twice"), span);
            }
            Some(name) => definitions.push((name, id)),
            None => {
                let span = parser.b.span(id);
                parser.error(codes::PRELUDE, "a prelude consists of definitions".into(), span);
            }
        }
    }
    if parser.failed() {
        return Err(parser.done());
    }
    let whole = parser.span(0);
    let names: Vec<Name> = definitions.iter().map(|(n, _)| n.clone()).collect();
    let builder = std::mem::take(&mut parser.b);
    builder.finish_globals(definitions, whole).map_err(|errors| {
        parser.refused(&errors, &names);
        parser.done()
    })
}

/// Refuses a text that is too long.
fn short_enough(file: FileId, text: &str) -> Result<(), Vec<Diagnostic>> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let span = Span { file, start: 0, end: 0 };
    let message = format!("a program of {} bytes is too long", text.len());
    let d = Diagnostic::error(codes::LENGTH, message, span);
    Err(vec![d.help(format!("the limit is {MAX_TEXT_BYTES} bytes"))])
}

pub(super) struct Parser<'a> {
    pub(super) file: FileId,
    pub(super) text: &'a str,
    tokens: Vec<Token>,
    strings: Vec<String>,
    at: usize,
    /// End of the last consumed token.
    end: u32,
    pub(super) b: Builder,
    diagnostics: Vec<Diagnostic>,
    /// The token at which an error was reported.
    error_at: Option<usize>,
    calls: usize,
    /// Number of open brackets. Inside them the margin has no meaning.
    brackets: usize,
    pub(super) options: Options,
    pub(super) tools: HashMap<Name, (ToolId, bool)>,
    pub(super) stores: HashMap<Name, StoreId>,
    pub(super) declared_stores: u32,
    pub(super) unnamed_stores: u32,
    /// Every name that is bound anywhere, for proposals.
    bound: Vec<Name>,
    /// Shapes for the formatter, if it asked for them.
    shapes: Option<Shapes>,
    globals: Arc<Globals>,
}

impl<'a> Parser<'a> {
    fn new(
        file: FileId,
        text: &'a str,
        options: Options,
        globals: Arc<Globals>,
    ) -> Result<Parser<'a>, Vec<Diagnostic>> {
        short_enough(file, text)?;
        let Lexed { tokens, strings, diagnostics } = lexer::lex(file, text);
        Ok(Parser {
            file,
            text,
            tokens,
            strings,
            at: 0,
            end: 0,
            b: Builder::new(),
            diagnostics,
            error_at: None,
            calls: 0,
            brackets: 0,
            options,
            tools: HashMap::new(),
            stores: HashMap::new(),
            declared_stores: 0,
            unnamed_stores: 0,
            bound: Vec::new(),
            shapes: None,
            globals,
        })
    }

    /// Continues with another text.
    fn go_on(&mut self, file: FileId, text: &'a str, from: usize) -> Result<(), Vec<Diagnostic>> {
        short_enough(file, text)?;
        let Lexed { tokens, strings, diagnostics } = lexer::lex_from(file, text, from);
        (self.file, self.text, self.tokens, self.strings) = (file, text, tokens, strings);
        (self.at, self.end, self.error_at, self.brackets) = (0, from as u32, None, 0);
        self.diagnostics.extend(diagnostics);
        Ok(())
    }

    /// The program of this term, if nothing is wrong.
    fn finished(mut self, root: TermId) -> Parsed {
        if self.failed() {
            return Parsed { code: None, diagnostics: self.done() };
        }
        let builder = std::mem::take(&mut self.b);
        let globals = self.globals.clone();
        match builder.finish(root, &globals) {
            Ok(code) => Parsed { code: Some(code), diagnostics: self.done() },
            Err(errors) => {
                self.refused(&errors, globals.names());
                Parsed { code: None, diagnostics: self.done() }
            }
        }
    }

    fn failed(&self) -> bool {
        diagnostics::has_errors(&self.diagnostics)
    }

    fn done(self) -> Vec<Diagnostic> {
        let mut all = self.diagnostics;
        diagnostics::sort(&mut all);
        all.truncate(MAX_ERRORS);
        all
    }

    /// A term of its own: what is declared and bound around it is not in scope, and no tools and stores are.
    pub(super) fn closed(&mut self) -> Option<Arc<Code>> {
        let builder = std::mem::take(&mut self.b);
        let declared = (
            std::mem::take(&mut self.tools),
            std::mem::take(&mut self.stores),
            std::mem::take(&mut self.declared_stores),
        );
        let root = self.argument();
        let inner = std::mem::replace(&mut self.b, builder);
        (self.tools, self.stores, self.declared_stores) = declared;
        // The formatter knows no prelude and wants no term.
        if self.failed() || self.shapes.is_some() {
            return None;
        }
        let globals = self.globals.clone();
        inner.finish(root, &globals).map(Arc::new).map_err(|e| self.refused(&e, globals.names())).ok()
    }

    // Tokens.

    fn token(&self) -> Token {
        // INVARIANT: `at` never passes the last token, `Eof`.
        self.tokens[self.at]
    }

    pub(super) fn tok(&self) -> Tok {
        self.token().tok
    }

    fn ahead(&self, n: usize) -> Token {
        self.tokens[(self.at + n).min(self.tokens.len() - 1)]
    }

    pub(super) fn bump(&mut self) -> Token {
        let token = self.token();
        if token.tok != Tok::Eof {
            self.at += 1;
            self.end = token.end;
        }
        token
    }

    pub(super) fn eat(&mut self, tok: Tok) -> bool {
        let found = self.tok() == tok;
        if found {
            self.bump();
        }
        found
    }

    /// Returns true if the token after this one is `tok`.
    pub(super) fn next_is(&self, tok: Tok) -> bool {
        self.ahead(1).tok == tok
    }

    pub(super) fn source_of_current(&self) -> &'a str {
        self.source(self.token())
    }

    /// Takes the first half of a `>>`: two types end here.
    pub(super) fn split_compose(&mut self) {
        let token = &mut self.tokens[self.at];
        token.start += 1;
        token.tok = Tok::Greater;
        self.end = token.start;
    }

    fn source(&self, token: Token) -> &'a str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or("")
    }

    /// The word at this place, or nothing.
    pub(super) fn word(&self) -> &'a str {
        let token = self.token();
        if token.tok == Tok::Word { self.source(token) } else { "" }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.word() == word
    }

    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn string(&mut self, index: u32) -> String {
        // Each string is read once.
        self.strings.get_mut(index as usize).map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn start(&self) -> u32 {
        self.token().start
    }

    /// From `start` to the end of what was taken last.
    pub(super) fn span(&self, start: u32) -> Span {
        Span { file: self.file, start, end: self.end.max(start) }
    }

    fn here(&self) -> Span {
        let token = self.token();
        Span { file: self.file, start: token.start, end: token.end }
    }

    /// Returns true if a new item of the program begins here.
    pub(super) fn starts_item(&self) -> bool {
        self.brackets == 0 && self.token().margin
    }

    // Shapes.

    /// Notes a form that begins at the token `first` and ends with what was taken last.
    fn shape(&mut self, form: Form, first: usize, marks: Vec<usize>) {
        let last = self.at.saturating_sub(1);
        if let Some(shapes) = &mut self.shapes {
            shapes.forms.push(Shape { form, first, last, marks });
        }
    }

    /// Notes that nothing stands before the token here.
    pub(super) fn tight_before(&mut self) {
        let at = self.at;
        if let Some(shapes) = &mut self.shapes {
            shapes.tight.push(at);
        }
    }

    /// Notes that nothing stands between the token here and the next one.
    pub(super) fn tight_after(&mut self) {
        let at = self.at;
        if let Some(shapes) = &mut self.shapes {
            shapes.tight.push(at + 1);
        }
    }

    /// Notes that the dot here begins a predicate.
    pub(super) fn loose_dot(&mut self) {
        let at = self.at;
        if let Some(shapes) = &mut self.shapes {
            shapes.loose.push(at);
        }
    }

    // Errors.

    pub(super) fn report(&mut self, d: Diagnostic) {
        if self.diagnostics.len() < MAX_ERRORS {
            self.diagnostics.push(d);
        }
    }

    pub(super) fn error(&mut self, code: &'static str, message: String, span: Span) {
        self.report(Diagnostic::error(code, message, span));
    }

    pub(super) fn expected(&mut self, what: &str) {
        self.expected_with(what, "");
    }

    pub(super) fn expected_with(&mut self, what: &str, help: &str) {
        if self.error_at.replace(self.at) == Some(self.at) || self.tok() == Tok::Bad {
            return;
        }
        // The end of the text is in the wrong place if a string ran up to it.
        if self.tok() == Tok::Eof && self.diagnostics.iter().any(|d| d.code == codes::STRING) {
            return;
        }
        let found = match self.tok() {
            Tok::Eof => "the end of the text".to_string(),
            Tok::Str(_) | Tok::StrOpen(_) => "a string".to_string(),
            Tok::StrMid(_) | Tok::StrClose(_) => "the end of the hole".to_string(),
            _ => format!("`{}`", clip(self.source(self.token()))),
        };
        let mut d = Diagnostic::error(codes::SYNTAX, format!("expected {what}, found {found}"), self.here());
        if !help.is_empty() {
            d = d.help(help);
        }
        self.report(d);
    }

    /// Gives up on the rest of the text.
    pub(super) fn give_up(&mut self) {
        self.at = self.tokens.len() - 1;
        self.error_at = Some(self.at);
    }

    /// Takes a `[` that belongs to the word before it: no space stands between them.
    pub(super) fn open_tight(&mut self) -> bool {
        self.tight_before();
        self.open(Bracket::Square)
    }

    pub(super) fn open(&mut self, bracket: Bracket) -> bool {
        let found = self.eat(Tok::Open(bracket));
        if found {
            self.brackets += 1;
        } else {
            self.expected(match bracket {
                Bracket::Round => "`(`",
                Bracket::Square => "`[`",
                Bracket::Curly => "`{`",
                Bracket::Angle => "`⟨`",
            });
        }
        found
    }

    pub(super) fn close(&mut self, bracket: Bracket) {
        if self.tok() != Tok::Close(bracket) {
            self.expected(match bracket {
                Bracket::Round => "`)`",
                Bracket::Square => "`]` or `,`",
                Bracket::Curly => "`}` or `,`",
                Bracket::Angle => "`⟩`",
            });
            self.skip_to(|t| t == Tok::Close(bracket));
        }
        self.eat(Tok::Close(bracket));
        self.brackets = self.brackets.saturating_sub(1);
    }

    /// Skips to a token of this bracket level that fits, to the end of the bracket or string around, or to
    /// the next item.
    fn skip_to(&mut self, fits: impl Fn(Tok) -> bool) {
        let mut nested = 0usize;
        loop {
            let token = self.token();
            if token.tok == Tok::Eof || (token.margin && nested == 0) {
                return;
            }
            if nested == 0 && fits(token.tok) {
                return;
            }
            match token.tok {
                Tok::Open(_) | Tok::StrOpen(_) => nested += 1,
                Tok::Close(_) | Tok::StrClose(_) => {
                    if nested == 0 {
                        return;
                    }
                    nested -= 1;
                }
                Tok::StrMid(_) if nested == 0 => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// `item, item, …` up to and with the closing bracket.
    pub(super) fn comma_list(&mut self, bracket: Bracket, mut item: impl FnMut(&mut Self)) {
        loop {
            if self.tok() == Tok::Close(bracket) || self.tok() == Tok::Eof {
                break;
            }
            let before = self.at;
            item(self);
            if self.eat(Tok::Comma) {
                continue;
            }
            if self.tok() == Tok::Close(bracket) {
                break;
            }
            // Continue with the next item, if there is one.
            self.expected(match bracket {
                Bracket::Round => "`)` or `,`",
                Bracket::Square => "`]` or `,`",
                _ => "`}` or `,`",
            });
            self.skip_to(|t| t == Tok::Comma);
            if !self.eat(Tok::Comma) || self.at == before {
                break;
            }
        }
        self.close(bracket);
    }

    /// Runs a part of the parser one call deeper.
    pub(super) fn deeper<T>(
        &mut self,
        nothing: impl Fn(&mut Self) -> T,
        f: impl FnOnce(&mut Self) -> T,
    ) -> T {
        if self.calls >= MAX_PARSER_CALLS {
            let span = self.here();
            self.error(codes::DEPTH, "this is nested too deep".into(), span);
            self.give_up();
            return nothing(self);
        }
        self.calls += 1;
        let out = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || f(self));
        self.calls -= 1;
        out
    }

    /// Makes the placeholder of a term that could not be parsed.
    pub(super) fn nothing(&mut self) -> TermId {
        let span = self.here();
        self.b.add(Term::Unknown("could not be read".into()), span)
    }

    /// Says why the builder refused the terms.
    fn refused(&mut self, errors: &[BuildError], globals: &[Name]) {
        for e in errors {
            let d = match e {
                BuildError::Unbound(name, span) => {
                    let known = self.bound.iter().chain(globals).map(|n| &**n);
                    let near = nearest(name, known).filter(|_| name.chars().count() > 1);
                    let d = Diagnostic::error(codes::UNBOUND, format!("unknown variable `{name}`"), *span);
                    match near {
                        _ if self.bound.contains(name) => {
                            d.help("it is bound elsewhere, but not around this place; `let` is not recursive, `fix` is")
                        }
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d,
                    }
                }
                BuildError::UnknownKey(name, span) => {
                    Diagnostic::error(codes::KEY, format!("no enclosing store has the key `{name}`"), *span)
                        .help(format!("write `mem (…) {{{name}: Dyn}}` around it"))
                }
                BuildError::TooDeep(span) => {
                    Diagnostic::error(codes::DEPTH, "this is nested too deep", *span)
                        .help(format!("terms may be nested {MAX_DEPTH} levels"))
                }
                BuildError::NotAFunction(name, span) => {
                    Diagnostic::error(codes::PRELUDE, format!("`{name}` is no function"), *span)
                        .help(format!("write `let {name} = \\_. …`"))
                }
                BuildError::Policy(name, span) => {
                    let message = format!("the policy of `{name}` asks models, tools or stores");
                    Diagnostic::error(codes::POLICY, message, *span)
                        .help("decide by the arguments: `policy (\\a. a.to.value == \"…\")`")
                }
                // The parser uses each term once, but this is no place to panic.
                BuildError::Shared(span) => Diagnostic::error(codes::SYNTAX, "a term is used twice", *span),
                BuildError::Stores(conflict) => {
                    Diagnostic::error(codes::DUPLICATE, conflict.to_string(), conflict.second)
                        .remark(conflict.first, "the first declaration is here")
                        .help(StoreConflict::HELP)
                }
            };
            self.report(d);
        }
    }

    // Programs.

    fn program(&mut self) -> Option<TermId> {
        let items = self.items();
        let mut root: Option<TermId> = None;
        let mut pending: Vec<(Name, TermId)> = Vec::new();
        let last = items.len().checked_sub(1);
        for (i, (name, id)) in items.into_iter().enumerate() {
            match name {
                None if Some(i) == last => root = Some(id),
                name => pending.push((name.unwrap_or_else(|| "_".into()), id)),
            }
        }
        let Some(body) = root else {
            self.expected_no_term();
            return None;
        };
        let span = self.b.span(pending.first().map_or(body, |(_, id)| *id)).to(self.b.span(body));
        Some(self.b.let_in(pending, body, span))
    }

    fn expected_no_term(&mut self) {
        if !self.failed() {
            let d = Diagnostic::error(codes::NO_TERM, "the program ends without a term", self.here())
                .help("add a last line with the term to evaluate");
            self.report(d);
        }
    }

    /// The definitions and terms of a program, in order; declarations are kept elsewhere.
    fn items(&mut self) -> Vec<(Option<Name>, TermId)> {
        let mut items = Vec::new();
        while self.tok() != Tok::Eof && self.diagnostics.len() < MAX_ERRORS {
            if self.eat(Tok::Semicolon) {
                continue;
            }
            items.extend(self.item().1);
        }
        items
    }

    /// The next item of a program: what it declares, if it is a declaration, or the definition or term.
    fn item(&mut self) -> (Name, Option<(Option<Name>, TermId)>) {
        let before = self.at;
        if let Some(shapes) = &mut self.shapes {
            shapes.items.push(before);
        }
        let declares = |p: &Self| matches!(p.ahead(1).tok, Tok::Word | Tok::Str(_));
        let mut declared = Name::from("");
        let mut item = None;
        if (self.is_word("tool") || self.is_word("store")) && declares(self) {
            declared = match self.ahead(1) {
                Token { tok: Tok::Str(n), .. } => {
                    self.strings.get(n as usize).map_or(declared, |s| s.as_str().into())
                }
                token => self.source(token).into(),
            };
            if self.is_word("tool") {
                self.tool_decl()
            } else {
                self.store_decl()
            };
        } else if self.is_word("let") {
            item = Some(self.let_form(true));
        } else {
            item = Some((None, self.expr()));
        }
        let ended =
            matches!(self.tok(), Tok::Eof | Tok::Semicolon) || (self.starts_item() && self.at > before);
        if !ended {
            self.expected_with(
                "the end of the term",
                "a new definition begins at the margin of a line; operands of words such as `send` take parentheses",
            );
            if self.at == before {
                self.bump();
            }
            while !matches!(self.tok(), Tok::Eof | Tok::Semicolon) && !self.token().margin {
                self.bump();
            }
        }
        (declared, item)
    }

    /// `let x = e in …`, or at the top level `let x = e` alone.
    fn let_form(&mut self, top: bool) -> (Option<Name>, TermId) {
        let start = self.start();
        let (first, mut marks) = (self.at, Vec::new());
        let mut bindings: Vec<(Name, TermId)> = Vec::new();
        loop {
            self.bump();
            let name = self.binder();
            if !self.eat(Tok::Equals) {
                self.expected("`=`");
            }
            let value_at = self.at;
            let value = self.expr();
            self.shape(Form::Value, value_at, Vec::new());
            if !self.eat_word("in") {
                if top && bindings.is_empty() {
                    return (Some(name), value);
                }
                bindings.push((name, value));
                self.expected("`in`");
                break;
            }
            bindings.push((name, value));
            marks.push(self.at);
            if !self.is_word("let") {
                break;
            }
        }
        let body = self.expr();
        self.shape(Form::Let, first, marks);
        let span = self.span(start);
        (None, self.b.add(Term::Let { bindings, body, sugar: LetSugar::Plain }, span))
    }

    // Terms.

    pub(super) fn expr(&mut self) -> TermId {
        self.deeper(Self::nothing, |p| {
            let start = p.start();
            let left = p.compose();
            match p.tok() {
                Tok::Colon | Tok::Question => {
                    let test = p.bump().tok == Tok::Question;
                    let right = p.expr();
                    let term = if test { Term::Test(left, right) } else { Term::Relabel(left, right) };
                    p.add(term, start)
                }
                Tok::Assign => {
                    let at = p.here();
                    p.bump();
                    let right = p.expr();
                    match p.b.term(left).clone() {
                        Term::Field(record, name) => p.add(Term::With(record, name, right), start),
                        _ => {
                            let d =
                                Diagnostic::error(codes::UPDATE, "the left side of `:=` is not a field", at)
                                    .help("write `record.field := value`");
                            p.report(d);
                            left
                        }
                    }
                }
                _ => left,
            }
        })
    }

    fn add(&mut self, term: Term, start: u32) -> TermId {
        let span = self.span(start);
        self.b.add(term, span)
    }

    fn compose(&mut self) -> TermId {
        let (start, first_token) = (self.start(), self.at);
        let first = self.par();
        if self.tok() != Tok::Compose {
            return first;
        }
        let (mut stages, mut marks) = (vec![first], Vec::new());
        while self.tok() == Tok::Compose {
            marks.push(self.at);
            self.bump();
            stages.push(self.par());
        }
        self.shape(Form::Stages, first_token, marks);
        let span = self.span(start);
        self.b.compose(stages, span)
    }

    fn par(&mut self) -> TermId {
        let (start, first) = (self.start(), self.at);
        let mut marks = Vec::new();
        let mut left = self.binary(0);
        loop {
            match self.tok() {
                Tok::Bar => {
                    marks.push(self.at);
                    self.bump();
                    let right = self.binary(0);
                    let span = self.span(start);
                    left = self.b.par_pair(left, right, span);
                }
                Tok::Choice => {
                    marks.push(self.at);
                    self.bump();
                    let p = if self.tok() == Tok::Open(Bracket::Square) && self.token().adjacent {
                        self.open_tight();
                        let p = self.probability();
                        self.close(Bracket::Square);
                        p
                    } else {
                        Num::ONE.div(&Num::from(2)).unwrap_or(Num::ZERO)
                    };
                    let right = self.binary(0);
                    left = self.add(Term::Choose(p, left, right), start);
                }
                _ => {
                    if !marks.is_empty() {
                        self.shape(Form::Chain, first, marks);
                    }
                    return left;
                }
            }
        }
    }

    pub(super) fn probability(&mut self) -> Num {
        let start = self.start();
        let p = self.number();
        if p < Num::ZERO || p > Num::ONE {
            let span = self.span(start);
            self.error(codes::NUMBER, format!("{p} is not a probability"), span);
        }
        p
    }

    /// Infix operators by precedence climbing.
    fn binary(&mut self, least: u8) -> TermId {
        let (start, first) = (self.start(), self.at);
        // The operators of one level that were read last.
        let mut chain: (u8, Vec<usize>) = (0, Vec::new());
        let mut left = self.unary();
        while let Some((level, op)) = infix(self.tok()) {
            if level < least {
                break;
            }
            if chain.0 != level && !chain.1.is_empty() {
                let marks = std::mem::take(&mut chain.1);
                self.shape(Form::Chain, first, marks);
            }
            chain.0 = level;
            chain.1.push(self.at);
            self.bump();
            let right = self.binary(level + 1);
            let term = match op {
                Infix::And => {
                    let no = self.add(Term::Lit(Data::Bool(false)), start);
                    Term::If(left, right, no, IfSugar::And)
                }
                Infix::Or => {
                    let yes = self.add(Term::Lit(Data::Bool(true)), start);
                    Term::If(left, yes, right, IfSugar::Or)
                }
                Infix::Prim(p) => Term::Prim(p, vec![left, right]),
            };
            left = self.add(term, start);
            if level == COMPARISON && infix(self.tok()).is_some_and(|(l, _)| l == COMPARISON) {
                self.expected_with("`&&` or an operand", "comparisons do not chain: write `a < b && b < c`");
                break;
            }
        }
        if !chain.1.is_empty() {
            self.shape(Form::Chain, first, chain.1);
        }
        left
    }

    pub(super) fn unary(&mut self) -> TermId {
        self.deeper(Self::nothing, Self::unary_form)
    }

    fn unary_form(&mut self) -> TermId {
        let start = self.start();
        match self.tok() {
            Tok::Minus => {
                self.tight_after();
                self.bump();
                let literal = self.tok() == Tok::Num;
                let e = self.unary();
                if literal && let Term::Lit(Data::Num(n)) = self.b.term(e) {
                    let n = n.neg();
                    return self.add(Term::Lit(Data::Num(n)), start);
                }
                self.add(Term::Prim(Prim::Neg, vec![e]), start)
            }
            Tok::Not => {
                self.tight_after();
                self.bump();
                let e = self.unary();
                self.add(Term::Prim(Prim::Not, vec![e]), start)
            }
            Tok::At => {
                self.tight_after();
                self.bump();
                let e = self.unary();
                let span = self.span(start);
                self.b.ask(e, span)
            }
            Tok::Lambda => self.lambda(),
            Tok::Word => match self.word() {
                "let" => self.let_form(false).1,
                "if" => self.conditional(),
                "try" => self.try_form(),
                "send" => {
                    self.bump();
                    let role = self.role();
                    let e = self.unary();
                    self.add(Term::Send(role, e), start)
                }
                "fork" => self.prefix(Term::Fork),
                "fresh" => self.prefix(Term::Fresh),
                "fail" => self.prefix(Term::Fail),
                "within" => {
                    self.bump();
                    let mut seconds = Num::ZERO;
                    if self.open_tight() {
                        let at = self.start();
                        seconds = self.number();
                        if seconds < Num::ZERO {
                            let span = self.span(at);
                            self.error(codes::NUMBER, format!("{seconds} s is not a duration"), span);
                        }
                        self.close(Bracket::Square);
                    }
                    let e = self.unary();
                    self.add(Term::Within(seconds, e), start)
                }
                "assert" => self.labeled(Term::Assert),
                "endorse" | "declassify" => {
                    let endorse = self.is_word("endorse");
                    self.allowed(self.options.endorse);
                    self.labeled(if endorse { Term::Endorse } else { Term::Declassify })
                }
                "classify" => {
                    self.bump();
                    let mut tags: Vec<Name> = Vec::new();
                    if self.open_tight() {
                        self.comma_list(Bracket::Square, |p| {
                            let at = p.start();
                            if let Some(tag) = p.tag_name() {
                                p.distinct(&tags, &tag, at);
                                tags.push(tag);
                            }
                        });
                    }
                    let e = self.unary();
                    self.add(Term::Classify(tags, e), start)
                }
                "check" => {
                    self.bump();
                    let mut name = Name::from("");
                    let mut ty = Type::Dyn;
                    if self.open_tight() {
                        if matches!(self.tok(), Tok::Word | Tok::Str(_)) && self.ahead(1).tok == Tok::Colon {
                            name = self.name("a name").unwrap_or(name);
                            self.bump();
                        }
                        ty = self.ty();
                        self.close(Bracket::Square);
                    }
                    let e = self.unary();
                    self.add(Term::Check(name, ty, e), start)
                }
                "remember" => {
                    self.bump();
                    let key = self.name("the name of a key").unwrap_or_else(|| "".into());
                    let e = self.unary();
                    self.add(Term::Remember(key, None, e), start)
                }
                "choose" => {
                    self.bump();
                    let p = self.probability();
                    let a = self.argument();
                    let b = self.argument();
                    self.add(Term::Choose(p, a, b), start)
                }
                "each" => {
                    self.bump();
                    let mut bound = None;
                    // A list is no function, so a bracket that touches the word is the bound.
                    if self.token().adjacent && self.tok() == Tok::Open(Bracket::Square) {
                        self.open_tight();
                        bound = Some(self.count());
                        self.close(Bracket::Square);
                    }
                    let f = self.argument();
                    let list = self.argument();
                    self.add(Term::Each(bound, f, list), start)
                }
                "guard" => {
                    self.bump();
                    let term = self.argument();
                    let pred = self.pred();
                    let retry = if self.eat_word("retry") { self.count() } else { 0 };
                    self.add(Term::Guard { term, pred, retry }, start)
                }
                "mem" => {
                    self.allowed(self.options.stores);
                    self.bump();
                    let e = self.argument();
                    let store = self.store_use();
                    self.add(Term::Mem(store, e), start)
                }
                "const" => {
                    self.bump();
                    let data = self.data();
                    self.add(Term::Lit(data), start)
                }
                _ => self.application(),
            },
            _ => self.application(),
        }
    }

    fn prefix(&mut self, make: fn(TermId) -> Term) -> TermId {
        let start = self.start();
        self.bump();
        let e = self.unary();
        self.add(make(e), start)
    }

    fn labeled(&mut self, make: fn(TermId, TermId) -> Term) -> TermId {
        let start = self.start();
        self.bump();
        let l = self.argument();
        let e = self.unary();
        self.add(make(l, e), start)
    }

    /// Reports the word at this place if the run's policy forbids it.
    pub(super) fn allowed(&mut self, allowed: bool) {
        if !allowed {
            let message = format!("generated code may not contain `{}`", self.word());
            let span = self.here();
            self.error(codes::GENERATED, message, span);
        }
    }

    fn role(&mut self) -> Role {
        if self.tok() != Tok::Open(Bracket::Square) || !self.token().adjacent {
            return Role::User;
        }
        self.open_tight();
        let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
        let role = roles.into_iter().find(|r| r.as_str() == self.word());
        if role.is_some() {
            self.bump();
        } else {
            self.expected_with(
                "`system`, `user`, `assistant` or `tool`",
                "to send a list, put a space after `send`",
            );
        }
        self.close(Bracket::Square);
        role.unwrap_or(Role::User)
    }

    fn lambda(&mut self) -> TermId {
        let (start, first) = (self.start(), self.at);
        self.bump();
        // Several parameters are nested functions, each with a span to the end of the body.
        let mut params = vec![(start, self.binder(), None)];
        loop {
            if self.eat(Tok::Colon)
                && let Some(last) = params.last_mut()
            {
                last.2 = Some(self.ty());
            }
            if self.eat(Tok::Dot) {
                break;
            }
            if matches!(self.tok(), Tok::Word | Tok::Dollar(_)) && params.len() < MAX_DEPTH {
                params.push((self.start(), self.binder(), None));
                continue;
            }
            self.expected("`.`");
            break;
        }
        let body_at = self.at;
        let mut body = self.expr();
        self.shape(Form::Lambda, first, vec![body_at]);
        for (start, name, ty) in params.into_iter().rev() {
            let span = self.span(start);
            body = self.b.abs(name, ty, body, span);
        }
        body
    }

    fn conditional(&mut self) -> TermId {
        let (start, first) = (self.start(), self.at);
        self.bump();
        let c = self.expr();
        let then = self.at;
        if !self.eat_word("then") {
            self.expected("`then`");
        }
        let a = self.expr();
        let otherwise = self.at;
        if !self.eat_word("else") {
            self.expected_with("`else`", "an `if` without `else` has no value");
        }
        let b = self.expr();
        self.shape(Form::If, first, vec![then, otherwise]);
        self.add(Term::If(c, a, b, IfSugar::Plain), start)
    }

    fn try_form(&mut self) -> TermId {
        let (start, first) = (self.start(), self.at);
        self.bump();
        let label = if self.open_tight() {
            let l = self.expr();
            self.close(Bracket::Square);
            l
        } else {
            self.nothing()
        };
        let body = self.expr();
        let catch = self.at;
        if !self.eat_word("catch") {
            self.expected("`catch`");
        }
        let mut catches = Catches::All;
        // `not` alone is a variable.
        if self.is_word("not") && self.ahead(1).tok == Tok::Word {
            self.bump();
            if self.eat_word("permanent") {
                catches = Catches::NotPermanent;
            } else {
                if !self.eat_word("timeout") {
                    self.expected_with(
                        "`timeout` or `permanent`",
                        "a handler takes all errors, or all but those of a time limit, or all but permanent ones",
                    );
                }
                catches = Catches::NotTimeout;
            }
        } else if self.is_word("transient") && self.ahead(1).tok != Tok::Dot {
            self.bump();
            catches = Catches::Transient;
        } else if self.is_word("error") && self.ahead(1).tok != Tok::Dot {
            self.bump();
            catches = Catches::Error;
        } else if self.is_word("refusal") && self.ahead(1).tok != Tok::Dot {
            self.bump();
            catches = Catches::Refusal;
        }
        let name = self.binder();
        if !self.eat(Tok::Dot) {
            self.expected("`.`");
        }
        let handler = self.expr();
        self.shape(Form::Try, first, vec![catch]);
        self.add(Term::Try { label, body, catches, name, handler }, start)
    }

    /// A function and its arguments, or a form that can be applied.
    fn application(&mut self) -> TermId {
        let (start, first) = (self.start(), self.at);
        let mut marks = Vec::new();
        let mut f = self.head();
        while self.starts_argument() {
            marks.push(self.at);
            let x = self.argument();
            f = self.add(Term::App(f, x), start);
        }
        if !marks.is_empty() {
            self.shape(Form::Application, first, marks);
        }
        f
    }

    fn starts_argument(&self) -> bool {
        if self.starts_item() {
            return false;
        }
        match self.tok() {
            Tok::Dollar(_)
            | Tok::Num
            | Tok::Str(_)
            | Tok::StrOpen(_)
            | Tok::Lambda
            | Tok::Backtick
            | Tok::Open(_) => true,
            Tok::Word => {
                let word = self.word();
                !core_ir::print::KEYWORDS.contains(&word)
                    || matches!(
                        word,
                        "true" | "false" | "null" | "clear" | "recv" | "recall" | "tool" | "prim" | "case"
                    )
            }
            _ => false,
        }
    }

    fn head(&mut self) -> TermId {
        let start = self.start();
        match self.tok() {
            Tok::Backtick => {
                let Some(name) = self.tag_name() else { return self.nothing() };
                if self.starts_argument() {
                    let e = self.argument();
                    self.add(Term::Tag(name, Some(e)), start)
                } else {
                    let tag = self.add(Term::Tag(name, None), start);
                    self.fields(tag, start)
                }
            }
            Tok::Word => match self.word() {
                "fst" | "snd" => {
                    let make = if self.is_word("fst") { Term::Fst } else { Term::Snd };
                    self.bump();
                    let e = self.argument();
                    self.add(make(e), start)
                }
                "fix" if self.bracket_follows() => {
                    self.bump();
                    self.open_tight();
                    let bound = self.bound();
                    let origin = match self.tok() {
                        Tok::Str(s) => {
                            self.bump();
                            Some(BoundOrigin::from(&*self.string(s)))
                        }
                        _ => None,
                    };
                    self.close(Bracket::Square);
                    let body = self.argument();
                    self.add(Term::Fix { bound, origin, body }, start)
                }
                "llm" => {
                    self.bump();
                    let prompt = self.argument();
                    let params =
                        if self.tok() == Tok::Open(Bracket::Curly) { self.params() } else { Arc::default() };
                    self.add(Term::Llm(prompt, params), start)
                }
                "par" => {
                    self.bump();
                    let mut bound = None;
                    if self.token().adjacent
                        && self.ahead(1).tok == Tok::Num
                        && self.ahead(2).tok == Tok::Close(Bracket::Square)
                        && self.ahead(3).tok == Tok::Open(Bracket::Square)
                    {
                        self.open_tight();
                        bound = Some(self.count());
                        self.close(Bracket::Square);
                    }
                    let mut items = Vec::new();
                    if self.open(Bracket::Square) {
                        self.comma_list(Bracket::Square, |p| items.push(p.expr()));
                    }
                    self.add(Term::Par(bound, items), start)
                }
                "unknown" => {
                    self.bump();
                    let why = self.text("the reason, a string");
                    self.add(Term::Unknown(why), start)
                }
                _ => self.argument(),
            },
            _ => self.argument(),
        }
    }

    /// Returns true if `[` directly follows the word at this place.
    fn bracket_follows(&self) -> bool {
        let next = self.ahead(1);
        next.tok == Tok::Open(Bracket::Square) && next.adjacent
    }

    fn bound(&mut self) -> Bound {
        if self.eat(Tok::Infinity) || self.eat_word("inf") {
            return Bound::Infinite;
        }
        Bound::Finite(self.whole_or("; `inf` is without a bound"))
    }

    /// An atom with fields and indices; a form that extends to the right may stand here without parentheses.
    fn argument(&mut self) -> TermId {
        let start = self.start();
        match self.tok() {
            Tok::Lambda => return self.unary(),
            Tok::Word if matches!(self.word(), "let" | "if" | "try") => return self.unary(),
            _ => {}
        }
        let atom = self.atom();
        self.fields(atom, start)
    }

    fn fields(&mut self, mut e: TermId, start: u32) -> TermId {
        while self.tok() == Tok::Dot {
            self.tight_after();
            self.bump();
            if self.tok() == Tok::Open(Bracket::Square) {
                self.open(Bracket::Square);
                let i = self.expr();
                self.close(Bracket::Square);
                e = self.add(Term::Index(e, i), start);
            } else {
                let Some(name) = self.name("the name of a field or `[`") else { return e };
                e = self.add(Term::Field(e, name), start);
            }
        }
        e
    }

    fn atom(&mut self) -> TermId {
        let start = self.start();
        match self.tok() {
            Tok::Num => {
                let n = self.number_token();
                self.add(Term::Lit(Data::Num(n)), start)
            }
            Tok::Str(s) => {
                self.bump();
                let s = self.string(s);
                self.add(Term::Lit(Data::str(s)), start)
            }
            Tok::StrOpen(_) => self.template(),
            Tok::Dollar(s) => {
                self.bump();
                let name = self.string(s);
                self.var(name.into(), start)
            }
            Tok::Backtick => match self.tag_name() {
                Some(name) => self.add(Term::Tag(name, None), start),
                None => self.nothing(),
            },
            Tok::Open(Bracket::Round | Bracket::Angle) => self.round(),
            Tok::Open(Bracket::Square) => {
                self.open(Bracket::Square);
                let mut items = Vec::new();
                self.comma_list(Bracket::Square, |p| items.push(p.expr()));
                self.add(Term::List(items), start)
            }
            Tok::Open(Bracket::Curly) => {
                self.open(Bracket::Curly);
                let fields = self.record_fields();
                self.add(Term::Record(fields), start)
            }
            Tok::Word => self.word_atom(),
            _ => self.no_term(),
        }
    }

    /// Returns true if `args[` stands here, which begins the arguments of a planned call.
    fn begins_args(&self) -> bool {
        let next = self.ahead(1);
        next.adjacent && next.tok == Tok::Open(Bracket::Square)
    }

    /// The brace that directly follows `args[f]`.
    fn open_fields(&mut self) -> bool {
        self.tight_before();
        self.open(Bracket::Curly)
    }

    /// The tool of `tool[f]` or `args[f]`, after the word.
    fn tool_in_brackets(&mut self) -> Option<ToolId> {
        if !self.open_tight() {
            return None;
        }
        let id = self.tool_name();
        self.close(Bracket::Square);
        id
    }

    /// The fields of a record, after its opening brace.
    fn record_fields(&mut self) -> Vec<(Name, TermId)> {
        let mut fields: Vec<(Name, TermId)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        self.comma_list(Bracket::Curly, |p| {
            let at = p.start();
            let Some(name) = p.name("the name of a field") else { return };
            if !seen.insert(name.clone()) {
                p.twice(&name, at);
            }
            if !p.eat(Tok::Colon) {
                p.expected_with("`:`", "a record is written `{name: value}`");
            }
            let e = p.expr();
            fields.push((name, e));
        });
        fields
    }

    fn no_term(&mut self) -> TermId {
        let help = match self.tok() {
            Tok::Lambda | Tok::At | Tok::Not | Tok::Minus => "put the operand in parentheses",
            Tok::Word if core_ir::print::KEYWORDS.contains(&self.word()) => {
                "this is a word of the language; put the term that it begins in parentheses"
            }
            _ => "",
        };
        self.expected_with("a term", help);
        let nothing = self.nothing();
        // What closes or separates something belongs to the forms around.
        let stays = matches!(
            self.tok(),
            Tok::Close(_) | Tok::StrMid(_) | Tok::StrClose(_) | Tok::Comma | Tok::Semicolon | Tok::Eof
        ) || matches!(self.word(), "in" | "then" | "else" | "of" | "catch" | "let")
            || self.token().margin;
        if !stays {
            self.bump();
        }
        nothing
    }

    fn var(&mut self, name: Name, start: u32) -> TermId {
        let span = self.span(start);
        self.b.add(Term::Var(name, Slot::Local(u32::MAX)), span)
    }

    fn word_atom(&mut self) -> TermId {
        let start = self.start();
        let word = self.word();
        match word {
            "true" | "false" | "null" => {
                self.bump();
                let data = if word == "null" { Data::Null } else { Data::Bool(word == "true") };
                self.add(Term::Lit(data), start)
            }
            "clear" => {
                self.bump();
                self.add(Term::Clear, start)
            }
            "recv" => {
                self.bump();
                let recv = if self.tok() == Tok::Open(Bracket::Curly) {
                    Recv::Data(self.params())
                } else {
                    Recv::Code
                };
                self.add(Term::Recv(recv), start)
            }
            "recall" => {
                self.bump();
                let key = self.name("the name of a key").unwrap_or_else(|| "".into());
                self.add(Term::Recall(key, None), start)
            }
            "tool" => {
                self.allowed(self.options.tools);
                self.bump();
                let id = self.tool_in_brackets();
                match id {
                    Some(id) => self.add(Term::Tool(id), start),
                    None => self.nothing(),
                }
            }
            // Not a word of the language: a variable may have this name, and what follows it directly
            // decides.
            "args" if self.begins_args() => {
                self.allowed(self.options.tools);
                self.bump();
                let id = self.tool_in_brackets();
                let fields = if self.open_fields() { self.record_fields() } else { Vec::new() };
                match id {
                    Some(id) => self.add(Term::Args(id, fields), start),
                    None => self.nothing(),
                }
            }
            "prim" => self.prim_call(),
            "case" => self.case(),
            _ if core_ir::print::KEYWORDS.contains(&word) => self.no_term(),
            _ => {
                self.bump();
                self.var(word.into(), start)
            }
        }
    }

    fn round(&mut self) -> TermId {
        let start = self.start();
        let bracket = if self.tok() == Tok::Open(Bracket::Angle) { Bracket::Angle } else { Bracket::Round };
        self.open(bracket);
        if bracket == Bracket::Round && self.eat(Tok::Compose) {
            let stages = if self.tok() == Tok::Close(bracket) { Vec::new() } else { vec![self.par()] };
            self.close(bracket);
            let span = self.span(start);
            return self.b.compose(stages, span);
        }
        if self.tok() == Tok::Close(Bracket::Round) {
            self.expected_with("a term", "the value of what has none is `{}`");
            let nothing = self.nothing();
            self.close(bracket);
            return nothing;
        }
        let a = self.expr();
        if bracket == Bracket::Round && self.tok() != Tok::Comma {
            self.close(bracket);
            return a;
        }
        if !self.eat(Tok::Comma) {
            self.expected("`,`");
        }
        let b = self.expr();
        if self.tok() == Tok::Comma {
            self.expected_with("the end of the pair", "a pair has two parts; a list is written `[a, b, c]`");
        }
        self.close(bracket);
        self.add(Term::Pair(a, b), start)
    }

    fn template(&mut self) -> TermId {
        let start = self.start();
        let mut parts = Vec::new();
        let opening = self.bump();
        let Tok::StrOpen(first) = opening.tok else { return self.nothing() };
        let mut piece = (first, opening.start);
        self.brackets += 1;
        loop {
            let text = self.string(piece.0);
            if !text.is_empty() {
                let part = self.add(Term::Lit(Data::str(text)), piece.1);
                parts.push(part);
            }
            parts.push(self.expr());
            if !matches!(self.tok(), Tok::StrMid(_) | Tok::StrClose(_)) {
                self.expected_with("`}`", "the hole of a string contains one term; a brace is written `\\{`");
                self.skip_to(|t| matches!(t, Tok::StrMid(_) | Tok::StrClose(_)));
            }
            match self.tok() {
                Tok::StrMid(s) => piece = (s, self.bump().start),
                Tok::StrClose(s) => {
                    let at = self.bump().start;
                    let text = self.string(s);
                    if !text.is_empty() {
                        let part = self.add(Term::Lit(Data::str(text)), at);
                        parts.push(part);
                    }
                    break;
                }
                _ => break,
            }
        }
        self.brackets = self.brackets.saturating_sub(1);
        self.add(Term::Prim(Prim::Format, parts), start)
    }

    fn prim_call(&mut self) -> TermId {
        let start = self.start();
        self.bump();
        let mut prim = None;
        if self.open_tight() {
            let word = self.word();
            prim = Prim::from_name(word);
            if prim.is_none() && self.tok() == Tok::Word {
                let names = Prim::ALL.iter().map(|row| row.1);
                let mut d =
                    Diagnostic::error(codes::PRIM, format!("there is no primitive `{word}`"), self.here());
                if let Some(near) = nearest(word, names) {
                    d = d.help(format!("did you mean `{near}`?"));
                }
                self.report(d);
                self.bump();
            } else if prim.is_none() {
                self.expected("the name of a primitive");
            } else {
                self.bump();
            }
            self.close(Bracket::Square);
        }
        let mut operands = Vec::new();
        self.tight_before();
        if self.open(Bracket::Round) {
            self.comma_list(Bracket::Round, |p| operands.push(p.expr()));
        }
        let Some(prim) = prim else { return self.nothing() };
        if let Some(n) = prim.arity().filter(|n| *n != operands.len()) {
            let message = format!("`{}` takes {n} operands, not {}", prim.name(), operands.len());
            let span = self.span(start);
            self.error(codes::PRIM, message, span);
        }
        self.add(Term::Prim(prim, operands), start)
    }

    fn case(&mut self) -> TermId {
        let start = self.start();
        self.bump();
        let scrutinee = self.expr();
        if !self.eat_word("of") {
            self.expected("`of`");
        }
        let mut branches: Vec<Branch> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut default = None;
        if self.open(Bracket::Curly) {
            self.comma_list(Bracket::Curly, |p| {
                let at = p.start();
                let catch_all = p.is_word("_");
                let Some(tag) = p.tag_name() else { return };
                let place = p.span(at);
                let mut binder = None;
                if matches!(p.tok(), Tok::Word | Tok::Dollar(_)) {
                    let payload = p.here();
                    binder = Some(p.binder());
                    if catch_all {
                        p.error(codes::SYNTAX, "the branch `_` has no payload to bind".into(), payload);
                    }
                }
                if !p.eat(Tok::FatArrow) {
                    p.expected("`=>`");
                }
                let body = p.expr();
                if catch_all {
                    if default.replace(body).is_some() {
                        p.twice_at("_", place);
                    }
                } else {
                    if !seen.insert(tag.clone()) {
                        p.twice_at(&tag, place);
                    }
                    branches.push(Branch { tag, binder, body });
                }
            });
        }
        self.add(Term::Case { scrutinee, branches, default }, start)
    }

    // Small pieces.

    /// The name that a λ, `let`, branch or `catch` binds.
    fn binder(&mut self) -> Name {
        let name: Name = match self.tok() {
            Tok::Word if !core_ir::print::KEYWORDS.contains(&self.word()) => {
                let name = self.word().into();
                self.bump();
                name
            }
            Tok::Dollar(s) => {
                self.bump();
                self.string(s).into()
            }
            Tok::Word => {
                let message = format!("`{}` is a word of the language and no name", self.word());
                let span = self.here();
                if self.error_at.replace(self.at) != Some(self.at) {
                    self.error(codes::SYNTAX, message, span);
                }
                if matches!(self.ahead(1).tok, Tok::Equals | Tok::Dot | Tok::Colon | Tok::FatArrow) {
                    self.bump();
                }
                return "_".into();
            }
            _ => {
                self.expected("a name");
                return "_".into();
            }
        };
        self.bound.push(name.clone());
        name
    }

    /// The name of a field, tool, key or the like: any word, or a string.
    pub(super) fn name(&mut self, what: &str) -> Option<Name> {
        match self.tok() {
            Tok::Word => {
                let name = self.word().into();
                self.bump();
                Some(name)
            }
            Tok::Str(s) => {
                self.bump();
                Some(self.string(s).into())
            }
            _ => {
                self.expected(what);
                None
            }
        }
    }

    /// A tag, with or without its backtick.
    pub(super) fn tag_name(&mut self) -> Option<Name> {
        self.eat(Tok::Backtick);
        self.name("a tag")
    }

    pub(super) fn text(&mut self, what: &str) -> Name {
        match self.tok() {
            Tok::Str(s) => {
                self.bump();
                self.string(s).into()
            }
            Tok::StrOpen(_) => {
                self.no_holes();
                "".into()
            }
            _ => {
                self.expected(what);
                "".into()
            }
        }
    }

    /// Reports an interpolated string where a plain one must stand, and skips it.
    pub(super) fn no_holes(&mut self) {
        self.expected_with("a string without holes", "write `\\{` for a brace, or a raw string `'…'`");
        self.bump();
        self.skip_to(|t| matches!(t, Tok::StrClose(_)));
        if matches!(self.tok(), Tok::StrClose(_)) {
            self.bump();
        }
    }

    pub(super) fn twice(&mut self, name: &str, at: u32) {
        let span = self.span(at);
        self.twice_at(name, span);
    }

    fn twice_at(&mut self, name: &str, span: Span) {
        self.error(codes::DUPLICATE, format!("`{name}` is given twice"), span);
    }

    /// A recursive type that mentions others, or itself without a list, record or case between.
    pub(super) fn no_recursive_type(&mut self, at: u32) {
        let span = self.span(at);
        let message = "each body of a recursive type is a list, map, record, variant or pair, and mentions bodies alone";
        self.error(codes::DUPLICATE, message.to_string(), span);
    }

    pub(super) fn distinct(&mut self, seen: &[Name], name: &Name, at: u32) {
        if seen.contains(name) {
            self.twice(name, at);
        }
    }

    /// A number token.
    pub(super) fn number_token(&mut self) -> Num {
        let token = self.bump();
        // An exponent may carry a plus sign, which the notation of numbers does not have.
        let text = self.source(token).replace('+', "");
        text.parse().unwrap_or_else(|_| {
            let span = self.span(token.start);
            self.error(codes::NUMBER, format!("the number `{}` is out of range", clip(&text)), span);
            Num::ZERO
        })
    }

    /// A number in a declaration: it may be negative or a fraction.
    pub(super) fn number(&mut self) -> Num {
        let start = self.start();
        let negative = self.tok() == Tok::Minus;
        if negative {
            self.tight_after();
            self.bump();
        }
        if self.tok() != Tok::Num {
            self.expected("a number");
            return Num::ZERO;
        }
        let mut n = self.number_token();
        if self.tok() == Tok::Slash && self.ahead(1).tok == Tok::Num {
            self.bump();
            let by = self.number_token();
            n = n.div(&by).unwrap_or_else(|e| {
                let span = self.span(start);
                self.error(codes::NUMBER, e.to_string(), span);
                Num::ZERO
            });
        }
        if negative { n.neg() } else { n }
    }

    pub(super) fn whole(&mut self) -> u64 {
        self.whole_or("")
    }

    /// A whole number; one that is too large is told what the largest is, `or` what else there is.
    fn whole_or(&mut self, or: &str) -> u64 {
        if self.tok() != Tok::Num {
            self.expected("a whole number");
            return 0;
        }
        let token = self.bump();
        self.source(token).parse().unwrap_or_else(|_| {
            let span = self.span(token.start);
            let text = self.source(token);
            let what = format!("`{}` is not an integer in range", clip(text));
            // Digits alone are too many; anything else has a point or an exponent.
            let is_large = text.bytes().all(|b| b.is_ascii_digit());
            let help = match is_large {
                true => format!("{}{or}", too_large(u64::MAX)),
                false => "write digits alone, such as `3`".into(),
            };
            self.report(Diagnostic::error(codes::NUMBER, what, span).help(help));
            0
        })
    }

    pub(super) fn count(&mut self) -> u32 {
        let start = self.start();
        u32::try_from(self.whole()).unwrap_or_else(|_| {
            let span = self.span(start);
            let d = Diagnostic::error(codes::NUMBER, "the count is out of range", span);
            self.report(d.help(too_large(u32::MAX.into())));
            0
        })
    }
}

fn too_large(most: u64) -> String {
    format!("the largest is {most}")
}

enum Infix {
    Prim(Prim),
    And,
    Or,
}

const COMPARISON: u8 = 2;

/// The level of an infix operator, from the loosest.
fn infix(tok: Tok) -> Option<(u8, Infix)> {
    Some(match tok {
        Tok::Or => (0, Infix::Or),
        Tok::And => (1, Infix::And),
        Tok::EqEq => (COMPARISON, Infix::Prim(Prim::Eq)),
        Tok::NotEq => (COMPARISON, Infix::Prim(Prim::Ne)),
        Tok::Less => (COMPARISON, Infix::Prim(Prim::Lt)),
        Tok::LessEq => (COMPARISON, Infix::Prim(Prim::Le)),
        Tok::Greater => (COMPARISON, Infix::Prim(Prim::Gt)),
        Tok::GreaterEq => (COMPARISON, Infix::Prim(Prim::Ge)),
        Tok::Plus => (3, Infix::Prim(Prim::Add)),
        Tok::Minus => (3, Infix::Prim(Prim::Sub)),
        Tok::Star => (4, Infix::Prim(Prim::Mul)),
        Tok::Slash => (4, Infix::Prim(Prim::Div)),
        Tok::Percent => (4, Infix::Prim(Prim::Rem)),
        _ => return None,
    })
}
