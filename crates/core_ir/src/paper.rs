//! Terms in the notation of the literature, for people: `fix₂₀`, `π₁`, `lam p θ`, and as LaTeX.
//!
//! Entry point: [`paper`]. It respells what [`crate::print`] writes, token by token; it cannot be read back.
//!
//! Invariant: LaTeX output has balanced braces, and no character of a program's strings or names acts as a
//! command.
//!
//! Source: seed 000 Definitions 3.1 and 3.3.

use crate::print::{Style, identifier_part, identifier_start, print_term_with};
use crate::{Code, TermId};

/// Notation of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `λ`, `≫`, `fix₂₀`, `π₁`.
    Unicode,
    /// `\`, `>>`, `fix_20`, `pi1`.
    Ascii,
    /// An array for mathematics mode, within `\[` and `\]`.
    Latex,
}

/// A term in the notation of the literature, without the declarations of tools and stores.
///
/// # Examples
/// ```
/// use core_ir::paper::{Notation, paper};
/// use core_ir::{Bound, Builder, Globals, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let x = b.var("x", at);
/// let f = b.abs("x", None, x, at);
/// let fix = b.add(Term::Fix { bound: Bound::Finite(20), origin: None, body: f }, at);
/// let code = b.finish(fix, &Globals::none()).unwrap();
/// assert_eq!(paper(&code, code.root(), Notation::Unicode), "fix₂₀ (λx. x)");
/// assert_eq!(paper(&code, code.root(), Notation::Ascii), "fix_20 (\\x. x)");
/// ```
pub fn paper(code: &Code, id: TermId, notation: Notation) -> String {
    let style = if notation == Notation::Ascii { Style::TEXT } else { Style::UNICODE };
    let text = print_term_with(code, id, style).text;
    let tokens = tokens(&text);
    match notation {
        Notation::Latex => latex(&tokens),
        _ => plain(&tokens, notation == Notation::Unicode),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    Word,
    Number,
    /// A string, or the part of one up to a hole.
    Text,
    Space,
    Line,
    Sign,
}

/// Cuts printed text into tokens. The holes of strings are terms again.
fn tokens(text: &str) -> Vec<(PieceKind, &str)> {
    let mut out = Vec::new();
    // For each string that is open around this place, how many braces are open in its hole.
    let mut holes: Vec<usize> = Vec::new();
    let mut at = 0;
    let skip =
        |at: usize, part: &dyn Fn(char) -> bool| text[at..].find(|c| !part(c)).map_or(text.len(), |n| at + n);
    while let Some(c) = text[at..].chars().next() {
        let (kind, end) = match c {
            '\n' => {
                let end = skip(at + 1, &|c| c == ' ');
                (PieceKind::Line, end)
            }
            ' ' => (PieceKind::Space, at + 1),
            '"' => piece(text, at + 1, &mut holes),
            '}' if holes.last() == Some(&0) => {
                holes.pop();
                piece(text, at + 1, &mut holes)
            }
            '\'' => (PieceKind::Text, text[at + 1..].find('\'').map_or(text.len(), |n| at + n + 2)),
            '$' if text[at + 1..].starts_with('"') => piece(text, at + 2, &mut holes),
            c if identifier_start(c) || c == '$' => (PieceKind::Word, skip(at + 1, &identifier_part)),
            c if c.is_ascii_digit() => {
                (PieceKind::Number, skip(at + 1, &|c| c.is_ascii_digit() || c == '.' || c == 'e'))
            }
            _ => {
                match (c, holes.last_mut()) {
                    ('{', Some(depth)) => *depth += 1,
                    ('}', Some(depth)) => *depth -= 1,
                    _ => {}
                }
                let rest = &text[at..];
                let two = ["->", ">>", "==", "!=", "<=", ">=", "&&", "||", "=>", ":="];
                (
                    PieceKind::Sign,
                    at + two.iter().find(|t| rest.starts_with(**t)).map_or(c.len_utf8(), |t| t.len()),
                )
            }
        };
        out.push((kind, &text[at..end]));
        at = end;
    }
    out
}

/// From inside a string to its end, or to a hole.
fn piece(text: &str, from: usize, holes: &mut Vec<usize>) -> (PieceKind, usize) {
    let mut chars = text[from..].char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => return (PieceKind::Text, from + i + 1),
            '{' => {
                holes.push(0);
                return (PieceKind::Text, from + i + 1);
            }
            _ => {}
        }
    }
    (PieceKind::Text, text.len())
}

/// The number or `∞` in brackets after a word: `fix[20]`. Gives it and the tokens that it takes.
fn index<'a>(tokens: &[(PieceKind, &'a str)], at: usize) -> Option<(&'a str, usize)> {
    match tokens.get(at + 1..at + 4)? {
        [(_, "["), (PieceKind::Number, n), (_, "]")] => Some((n, 4)),
        [(_, "["), (_, n @ ("∞" | "inf")), (_, "]")] => Some((n, 4)),
        _ => None,
    }
}

fn plain(tokens: &[(PieceKind, &str)], unicode: bool) -> String {
    let mut out = String::new();
    let mut at = 0;
    while let Some((kind, text)) = tokens.get(at) {
        let mut taken = 1;
        match (*kind, *text) {
            (PieceKind::Word, "fix" | "par" | "within") | (PieceKind::Sign, "⊕")
                if index(tokens, at).is_some() =>
            {
                let (n, used) = index(tokens, at).unwrap_or(("", 1));
                taken = used;
                out.push_str(text);
                match n.bytes().all(|b| b.is_ascii_digit()) {
                    true if unicode => {
                        out.extend(n.bytes().filter_map(|b| char::from_u32(0x2080 + u32::from(b - b'0'))))
                    }
                    _ => out.push_str(&format!("_{n}")),
                }
            }
            (PieceKind::Word, "fst") => out.push_str(if unicode { "π₁" } else { "pi1" }),
            (PieceKind::Word, "snd") => out.push_str(if unicode { "π₂" } else { "pi2" }),
            (PieceKind::Word, "llm") => out.push_str("lam"),
            (PieceKind::Sign, "->") if unicode => out.push('→'),
            _ => out.push_str(text),
        }
        at += taken;
    }
    out
}

fn latex(tokens: &[(PieceKind, &str)]) -> String {
    let mut out = String::from("\\begin{array}{l}\n  ");
    let mut at = 0;
    while let Some((kind, text)) = tokens.get(at) {
        let mut taken = 1;
        match (*kind, *text) {
            (PieceKind::Word, "fix" | "par" | "within") | (PieceKind::Sign, "⊕")
                if index(tokens, at).is_some() =>
            {
                let (n, used) = index(tokens, at).unwrap_or(("", 1));
                taken = used;
                let n = if n == "∞" { "\\infty" } else { n };
                let base = if *text == "⊕" { "\\oplus".into() } else { format!("\\mathsf{{{text}}}") };
                out.push_str(&format!("{base}_{{{n}}}"));
            }
            (PieceKind::Word, "fst") => out.push_str("\\pi_1"),
            (PieceKind::Word, "snd") => out.push_str("\\pi_2"),
            (PieceKind::Word, "llm") => out.push_str("\\mathsf{lam}"),
            (PieceKind::Word, word) => out.push_str(&name(word)),
            (PieceKind::Text, text) => out.push_str(&format!("\\text{{\\ttfamily {}}}", escaped(text))),
            (PieceKind::Line, line) => {
                out.push_str(" \\\\\n  ");
                out.push_str(&"\\quad ".repeat((line.len() - 1) / 2));
            }
            (PieceKind::Space, _) => out.push_str("\\ "),
            (PieceKind::Number, n) => out.push_str(n),
            (PieceKind::Sign, sign) => out.push_str(&self::sign(sign)),
        }
        at += taken;
    }
    out.push_str("\n\\end{array}");
    out
}

/// A word of the language upright, a variable in italics; digits at the end of an invented name below the
/// line.
fn name(word: &str) -> String {
    if crate::print::KEYWORDS.contains(&word) || matches!(word, "fix" | "retry" | "within" | "each") {
        return format!("\\mathsf{{{}}}", escaped(word));
    }
    match word.strip_prefix('$') {
        Some(invented) => {
            let base = invented.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = &invented[base.len()..];
            let below = if number.is_empty() { String::new() } else { format!("_{{{number}}}") };
            format!("\\mathit{{{}}}{below}", escaped(base))
        }
        None if word.chars().count() == 1 && word.is_ascii() && word != "_" => word.to_string(),
        None => format!("\\mathit{{{}}}", escaped(word)),
    }
}

fn sign(sign: &str) -> String {
    match sign {
        "λ" => "\\lambda ",
        "≫" => "\\gg ",
        "⇒" => "\\Rightarrow ",
        "⟨" => "\\langle ",
        "⟩" => "\\rangle ",
        "∧" | "&&" => "\\wedge ",
        "∨" | "||" => "\\vee ",
        "¬" => "\\neg ",
        "≤" | "<=" => "\\le ",
        "≥" | ">=" => "\\ge ",
        "≠" | "!=" => "\\ne ",
        "⊕" => "\\oplus ",
        "∞" => "\\infty ",
        "->" => "\\to ",
        "*" => "\\times ",
        "==" => "=",
        ":=" => "\\mathrel{:=}",
        "{" => "\\{",
        "}" => "\\}",
        "." => ".\\,",
        "|" => "\\mid ",
        "`" => "\\text{`}",
        "%" | "#" | "&" | "_" | "^" | "~" | "\\" | "$" => return format!("\\text{{{}}}", escaped(sign)),
        other => other,
    }
    .to_string()
}

/// Text in which nothing is a command.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' | '}' | '%' | '#' | '&' | '_' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '^' => out.push_str("\\textasciicircum{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
