//! Text to tokens.
//!
//! An interpolated string is several tokens with those of its holes between them, so nesting costs
//! the lexer an entry of a list, not a call.

use super::{Ending, codes};
use core_ir::print::{identifier_part, identifier_start};
use diagnostics::{Diagnostic, FileId, Span, clip};

/// Kind of a token. Words and numbers are read off the source. Unescaped strings are in [`Lexed::strings`],
/// referred to by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tok {
    /// A name or keyword.
    Word,
    /// `$name` or `$"name"`: the whole name of the variable.
    Dollar(u32),
    Num,
    /// A string without holes.
    Str(u32),
    /// `"text{`
    StrOpen(u32),
    /// `}text{`
    StrMid(u32),
    /// `}text"`
    StrClose(u32),
    Lambda,
    Dot,
    Comma,
    Colon,
    Assign,
    Semicolon,
    Question,
    At,
    Backtick,
    Equals,
    Open(Bracket),
    Close(Bracket),
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    EqEq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
    And,
    Or,
    Not,
    Bar,
    Choice,
    Compose,
    FatArrow,
    Arrow,
    Infinity,
    /// An invalid token, already reported.
    Bad,
    Eof,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bracket {
    Round,
    Square,
    Curly,
    Angle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub tok: Tok,
    pub start: u32,
    pub end: u32,
    /// First on its line and not indented more than the first token of the text.
    pub margin: bool,
    /// Nothing stands between it and the token before.
    pub adjacent: bool,
}

pub(super) struct Lexed {
    /// Ends with `Eof`.
    pub tokens: Vec<Token>,
    pub strings: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
}

pub(super) fn lex(file: FileId, text: &str) -> Lexed {
    lex_from(file, text, 0)
}

/// The tokens from a byte on, which begins a line or follows the end of an item.
pub(super) fn lex_from(file: FileId, text: &str, from: usize) -> Lexed {
    let mut lexer = Lexer {
        file,
        text,
        at: from,
        out: Lexed { tokens: Vec::new(), strings: Vec::new(), diagnostics: Vec::new() },
        holes: Vec::new(),
        line_start: text[..from].rfind('\n').map_or(0, |n| n + 1),
        fresh_line: true,
        margin: None,
        last_end: usize::MAX,
    };
    lexer.run();
    lexer.out
}

pub(super) fn ending(text: &str) -> Ending {
    let lexed = lex(FileId(0), text);
    if lexed.diagnostics.iter().any(|d| d.help.iter().any(|h| h == UNCLOSED)) {
        return Ending::InString;
    }
    let (mut open, mut last) = (0_i64, None);
    for token in &lexed.tokens {
        match token.tok {
            Tok::Open(_) | Tok::StrOpen(_) => open += 1,
            Tok::Close(_) | Tok::StrClose(_) => open -= 1,
            Tok::Eof => break,
            _ => {}
        }
        last = Some(token);
    }
    let wants = open > 0
        || last.is_some_and(|t| match t.tok {
            Tok::Equals | Tok::Compose | Tok::Dot | Tok::Lambda => true,
            // An operator wants its second operand, and a sign what it signs.
            Tok::Plus | Tok::Minus | Tok::Star | Tok::Slash | Tok::Percent => true,
            Tok::EqEq | Tok::NotEq | Tok::Less | Tok::LessEq | Tok::Greater | Tok::GreaterEq => true,
            Tok::And | Tok::Or | Tok::Not | Tok::Choice | Tok::Bar => true,
            Tok::Comma | Tok::Colon | Tok::Assign | Tok::Arrow | Tok::FatArrow => true,
            Tok::Word => {
                let word = text.get(t.start as usize..t.end as usize);
                matches!(word, Some("let" | "in" | "if" | "then" | "else" | "of" | "catch"))
            }
            _ => false,
        });
    if wants { Ending::Open } else { Ending::Complete }
}

struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    at: usize,
    out: Lexed,
    /// For each string that is open around this place, how many braces are open in its hole, and
    /// where the string began.
    holes: Vec<(u32, usize)>,
    line_start: usize,
    fresh_line: bool,
    margin: Option<usize>,
    last_end: usize,
}

impl Lexer<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn error(&mut self, code: &'static str, message: String, start: usize, help: &str) {
        if self.out.diagnostics.len() >= super::MAX_ERRORS {
            return;
        }
        let span = Span { file: self.file, start: start as u32, end: self.at.max(start) as u32 };
        let mut d = Diagnostic::error(code, message, span);
        if !help.is_empty() {
            d = d.help(help);
        }
        self.out.diagnostics.push(d);
    }

    fn push(&mut self, tok: Tok, start: usize) {
        let column = start - self.line_start.min(start);
        let margin = self.fresh_line && column <= *self.margin.get_or_insert(column);
        self.fresh_line = false;
        let adjacent = self.last_end == start;
        self.last_end = self.at;
        self.out.tokens.push(Token { tok, start: start as u32, end: self.at as u32, margin, adjacent });
    }

    fn keep(&mut self, text: String) -> u32 {
        self.out.strings.push(text);
        self.out.strings.len() as u32 - 1
    }

    fn run(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
            self.line_start = self.at;
        }
        while let Some(c) = self.peek() {
            let start = self.at;
            self.at += c.len_utf8();
            match c {
                '\n' => {
                    self.line_start = self.at;
                    self.fresh_line = true;
                }
                ' ' | '\t' | '\r' => {}
                '#' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                '"' => self.string(start, false),
                '\'' => self.raw(start),
                '$' => self.dollar(start),
                '0'..='9' => self.number(start),
                c if identifier_start(c) => {
                    self.skip(identifier_part);
                    self.push(Tok::Word, start);
                }
                '{' => {
                    if let Some((braces, _)) = self.holes.last_mut() {
                        *braces += 1;
                    }
                    self.push(Tok::Open(Bracket::Curly), start);
                }
                '}' => match self.holes.last_mut() {
                    Some((0, _)) => self.string(start, true),
                    Some((braces, _)) => {
                        *braces -= 1;
                        self.push(Tok::Close(Bracket::Curly), start);
                    }
                    None => self.push(Tok::Close(Bracket::Curly), start),
                },
                _ => self.symbol(c, start),
            }
        }
        if let Some((_, opened)) = self.holes.first().copied() {
            self.at = opened + 1;
            self.error(codes::STRING, "this string does not end".into(), opened, UNCLOSED);
            self.at = self.text.len();
        }
        self.fresh_line = true;
        self.line_start = self.at;
        self.push(Tok::Eof, self.at);
    }

    fn skip(&mut self, part: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !part(c)).unwrap_or(rest.len());
    }

    fn symbol(&mut self, c: char, start: usize) {
        let rest = &self.text[self.at..];
        let two = |second: char, double: Tok, single: Tok| {
            if rest.starts_with(second) { (double, 1) } else { (single, 0) }
        };
        let (tok, more) = match c {
            '\\' | 'λ' => (Tok::Lambda, 0),
            '.' => (Tok::Dot, 0),
            ',' => (Tok::Comma, 0),
            ';' => (Tok::Semicolon, 0),
            '?' => (Tok::Question, 0),
            '@' => (Tok::At, 0),
            '`' => (Tok::Backtick, 0),
            ':' => two('=', Tok::Assign, Tok::Colon),
            '(' => (Tok::Open(Bracket::Round), 0),
            ')' => (Tok::Close(Bracket::Round), 0),
            '[' => (Tok::Open(Bracket::Square), 0),
            ']' => (Tok::Close(Bracket::Square), 0),
            '⟨' => (Tok::Open(Bracket::Angle), 0),
            '⟩' => (Tok::Close(Bracket::Angle), 0),
            '+' => (Tok::Plus, 0),
            '-' => two('>', Tok::Arrow, Tok::Minus),
            '→' => (Tok::Arrow, 0),
            '*' | '×' => (Tok::Star, 0),
            '/' => (Tok::Slash, 0),
            '%' => (Tok::Percent, 0),
            '=' if rest.starts_with('>') => (Tok::FatArrow, 1),
            '⇒' => (Tok::FatArrow, 0),
            '=' => two('=', Tok::EqEq, Tok::Equals),
            '≠' => (Tok::NotEq, 0),
            '!' => two('=', Tok::NotEq, Tok::Not),
            '¬' => (Tok::Not, 0),
            '<' => two('=', Tok::LessEq, Tok::Less),
            '≤' => (Tok::LessEq, 0),
            '>' if rest.starts_with('>') => (Tok::Compose, 1),
            '≫' => (Tok::Compose, 0),
            '>' => two('=', Tok::GreaterEq, Tok::Greater),
            '≥' => (Tok::GreaterEq, 0),
            '&' if rest.starts_with('&') => (Tok::And, 1),
            '∧' => (Tok::And, 0),
            '|' => two('|', Tok::Or, Tok::Bar),
            '∨' => (Tok::Or, 0),
            '⊕' => (Tok::Choice, 0),
            '∞' => (Tok::Infinity, 0),
            other => {
                // A run of strange characters is one mistake.
                self.skip(|c| !c.is_ascii() && !c.is_alphanumeric() && !"λ⟨⟩→×⇒≠¬≤≫≥∧∨⊕∞".contains(c));
                let help = match other {
                    '“' | '”' | '„' => "strings are quoted with `\"`",
                    '‘' | '’' => "raw strings are quoted with `'`",
                    '&' => "the conjunction is `&&`",
                    _ => "",
                };
                let shown: String = other.escape_default().collect();
                let shown = if other.is_control() { shown } else { other.to_string() };
                self.error(codes::CHARACTER, format!("no term contains `{shown}` here"), start, help);
                self.push(Tok::Bad, start);
                return;
            }
        };
        self.at += more;
        self.push(tok, start);
    }

    fn number(&mut self, start: usize) {
        self.skip(|c| c.is_ascii_digit());
        let digit_after =
            |lexer: &Self, n: usize| lexer.text.as_bytes().get(lexer.at + n).is_some_and(u8::is_ascii_digit);
        if self.peek() == Some('.') && digit_after(self, 1) {
            self.at += 1;
            self.skip(|c| c.is_ascii_digit());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            let sign = matches!(self.text.as_bytes().get(self.at + 1), Some(b'+' | b'-'));
            let digits = 1 + usize::from(sign);
            if digit_after(self, digits) {
                self.at += digits;
                self.skip(|c| c.is_ascii_digit());
            }
        }
        if self.peek().is_some_and(identifier_start) {
            self.skip(identifier_part);
            let text = clip(&self.text[start..self.at]);
            self.error(
                codes::NUMBER,
                format!("`{text}` is not a number"),
                start,
                "names begin with a letter",
            );
            self.push(Tok::Bad, start);
            return;
        }
        self.push(Tok::Num, start);
    }

    fn dollar(&mut self, start: usize) {
        let name = if self.peek() == Some('"') {
            self.at += 1;
            let (name, hole) = self.piece(start);
            if hole {
                self.error(codes::STRING, "a name has no holes".into(), start, "write `\\{` for a brace");
                self.push(Tok::Bad, start);
                return;
            }
            name
        } else {
            self.skip(identifier_part);
            self.text[start..self.at].to_string()
        };
        // Names with a middle dot are those of desugared forms.
        if self.at == start + 1 || name.starts_with('·') {
            self.error(codes::CHARACTER, "`$` begins the name of an invented variable".into(), start, "");
            self.push(Tok::Bad, start);
            return;
        }
        let name = self.keep(name);
        self.push(Tok::Dollar(name), start);
    }

    fn raw(&mut self, start: usize) {
        let rest = &self.text[self.at..];
        let text = match rest.find('\'') {
            Some(n) => {
                self.at += n + 1;
                rest[..n].to_string()
            }
            None => {
                self.error(codes::STRING, "this string does not end".into(), start, UNCLOSED);
                self.at = self.text.len();
                rest.to_string()
            }
        };
        let text = self.keep(text);
        self.push(Tok::Str(text), start);
        self.note_lines(start);
    }

    /// A piece of an interpolated string, from its opening quote or the end of a hole on.
    fn string(&mut self, start: usize, resumed: bool) {
        let opened = if resumed { self.holes.pop().map_or(start, |(_, s)| s) } else { start };
        let (text, hole) = self.piece(opened);
        let text = self.keep(text);
        let tok = match (resumed, hole) {
            (false, false) => Tok::Str(text),
            (false, true) => Tok::StrOpen(text),
            (true, true) => Tok::StrMid(text),
            (true, false) => Tok::StrClose(text),
        };
        if hole {
            self.holes.push((0, opened));
        }
        self.push(tok, start);
        self.note_lines(start);
    }

    /// Line breaks inside a string count for the columns of what follows.
    fn note_lines(&mut self, start: usize) {
        if let Some(n) = self.text[start..self.at].rfind('\n') {
            self.line_start = start + n + 1;
        }
    }

    /// Reads to the end of the string or to a hole; says whether it was a hole.
    fn piece(&mut self, opened: usize) -> (String, bool) {
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.find(['"', '\\', '{']).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            let Some(c) = self.peek() else {
                let end = self.at;
                self.at = opened + 1;
                self.error(codes::STRING, "this string does not end".into(), opened, UNCLOSED);
                self.at = end;
                return (out, false);
            };
            let start = self.at;
            self.at += 1;
            match c {
                '"' => return (out, false),
                '{' => return (out, true),
                _ => self.escape(start, &mut out),
            }
        }
    }

    fn escape(&mut self, start: usize, out: &mut String) {
        let Some(c) = self.peek() else { return };
        self.at += c.len_utf8();
        let plain = match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '0' => '\0',
            '"' | '\\' | '{' | '}' | '/' | '\'' => c,
            'u' => match self.unicode() {
                Some(c) => c,
                None => {
                    let help = "write `\\u{1f600}` or `\\u00e9`";
                    self.error(codes::STRING, "this escape is not a character".into(), start, help);
                    return;
                }
            },
            '\n' => return,
            _ => {
                self.error(
                    codes::STRING,
                    format!("unknown escape `\\{c}`"),
                    start,
                    "for a backslash write `\\\\`, or use a raw string `'…'`",
                );
                c
            }
        };
        out.push(plain);
    }

    /// Reads the escape after `\u`: `{1f600}`, four digits, or two surrogates as in JSON.
    fn unicode(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        if let Some(inner) = rest.strip_prefix('{') {
            let n = inner.find('}').filter(|n| (1..=6).contains(n))?;
            self.at += n + 2;
            return char::from_u32(hex(&inner[..n])?);
        }
        let first = hex(rest.get(..4)?)?;
        self.at += 4;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        let second = hex(rest[4..].strip_prefix("\\u")?.get(..4)?)?;
        if !(0xdc00..0xe000).contains(&second) {
            return None;
        }
        self.at += 6;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }
}

const UNCLOSED: &str =
    "close it with the quote that opened it; in `\"…\"` a brace opens a hole, `\\{` is a brace";

fn hex(text: &str) -> Option<u32> {
    if text.bytes().all(|b| b.is_ascii_hexdigit()) { u32::from_str_radix(text, 16).ok() } else { None }
}
