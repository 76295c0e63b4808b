//! Terms, types, predicates and data as text, in the notation of `.lam`.
//!
//! Invariant: the `.lam` parser reads what this prints as the same term (with the declarations that
//! [`print_code`] puts in front). Parentheses stand only where they are needed.
//!
//! Source: `docs/lam.md` (the notation), `docs/calculus.md` §10 (serialization).

use crate::{
    AbsSugar, Approve, Bound, Catches, Code, Data, EffectClass, EffectRow, IfSugar, LabelSpec, LetSugar,
    ModelParams, Name, Num, Pred, Prim, Recv, Role, StoreDecl, StoreId, Term, TermId, ToolDecl, Type,
};
use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;

/// Words of `.lam` that cannot be variables, fields written without quotes excepted.
pub const KEYWORDS: &[&str] = &[
    "let",
    "if",
    "then",
    "else",
    "case",
    "of",
    "try",
    "catch",
    "in",
    "true",
    "false",
    "null",
    "send",
    "recv",
    "fork",
    "fresh",
    "clear",
    "fst",
    "snd",
    "tool",
    "llm",
    "mem",
    "recall",
    "remember",
    "choose",
    "guard",
    "classify",
    "check",
    "assert",
    "endorse",
    "declassify",
    "fail",
    "par",
    "prim",
    "unknown",
    "const",
    "store",
    "within",
    "each",
];

/// Keys of the record of model parameters that have a meaning of their own.
pub const PARAM_KEYS: &[&str] =
    &["model", "temperature", "max_tokens", "result", "repair", "tools", "waiting", "purpose", "extra"];

/// Default number of repairs of an undecodable reply where only a result type is stated.
pub const DEFAULT_REPAIR: u32 = 2;

/// Default flow bounds of a tool of an effect class, used where its declaration states none: the bound on
/// arguments and control, and the label of the result. Source: `docs/calculus.md` §5.
pub fn default_flow(effect: EffectClass) -> (LabelSpec, LabelSpec) {
    let untrusted = LabelSpec::Axes { untrusted: true, secret: false };
    match effect {
        EffectClass::Pure => (LabelSpec::TOP, LabelSpec::BOTTOM),
        EffectClass::Read => (untrusted.clone(), untrusted),
        EffectClass::Write => (LabelSpec::BOTTOM, untrusted),
    }
}

/// Style of printed terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// `λ`, `≫`, `⊕`, `⟨a, b⟩`, `⇒` instead of their ASCII forms. The parser reads both.
    pub unicode: bool,
    /// The most columns of a line, where the term can be broken; `None` is one line.
    pub width: Option<usize>,
}

impl Style {
    /// ASCII, lines of up to 100 columns.
    pub const TEXT: Style = Style { unicode: false, width: Some(100) };
    /// ASCII on one line.
    pub const LINE: Style = Style { unicode: false, width: None };
    /// The notation of the literature, lines of up to 100 columns.
    pub const UNICODE: Style = Style { unicode: true, width: Some(100) };
}

/// A printed program and which part of the text shows which term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text, without a line break at its end.
    pub text: String,
    /// Byte ranges of the text, each with the term it shows; inner ones before the ones around them.
    pub parts: Vec<(Range<usize>, TermId)>,
}

/// A program with its declarations, as a `.lam` file that parses to the same code.
///
/// # Examples
/// ```
/// use core_ir::{Builder, Globals, Prim, Term};
/// use diagnostics::{FileId, Span};
/// let at = Span { file: FileId(0), start: 0, end: 0 };
/// let mut b = Builder::new();
/// let x = b.var("x", at);
/// let one = b.lit(core_ir::Num::ONE, at);
/// let sum = b.add(Term::Prim(Prim::Add, vec![x, one]), at);
/// let f = b.abs("x", None, sum, at);
/// let code = b.finish(f, &Globals::none()).unwrap();
/// assert_eq!(core_ir::print_code(&code), "\\x. x + 1\n");
/// ```
pub fn print_code(code: &Code) -> String {
    let mut text = print_with(code, Style::TEXT).text;
    text.push('\n');
    text
}

/// A term on one line, without declarations: what a function serializes to.
pub fn print_term(code: &Code, id: TermId) -> String {
    let mut p = Printer::new(code, Style::LINE);
    p.term(id, Level::Expr);
    p.out
}

/// A term in the given style, without declarations.
pub fn print_term_with(code: &Code, id: TermId, style: Style) -> Printed {
    let mut p = Printer::new(code, style);
    p.term(id, Level::Expr);
    Printed { text: p.out, parts: p.parts }
}

/// A program with its declarations in the given style.
pub fn print_with(code: &Code, style: Style) -> Printed {
    let mut p = Printer::new(code, style);
    for tool in &code.tools {
        p.tool(tool);
        p.out.push('\n');
    }
    for store in &code.stores {
        p.store(store);
        p.out.push('\n');
    }
    if !p.out.is_empty() {
        p.out.push('\n');
    }
    p.line_start = p.out.len();
    p.term(code.root(), Level::Expr);
    Printed { text: p.out, parts: p.parts }
}

/// Data as `send` and interpolation write it: a string as it is, other data as one line of JSON with
/// exact numbers, pairs `(a, b)`, tags `` `t v ``. Source: `docs/calculus.md` §10, Serialization.
///
/// # Examples
/// ```
/// use core_ir::{print_data, Data, Num};
/// let third = Num::from(1).div(&Num::from(3)).unwrap();
/// assert_eq!(print_data(&Data::str("a \"b\"")), "a \"b\"");
/// assert_eq!(print_data(&Data::list([Data::str("a"), Data::Num(third)])), r#"["a",1/3]"#);
/// ```
pub fn print_data(data: &Data) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write_data(data, &mut out);
    out
}

/// [`print_data`] into a sink that may refuse to take more.
///
/// # Errors
/// What the sink says.
pub fn write_data(data: &Data, out: &mut impl fmt::Write) -> fmt::Result {
    match data {
        Data::Str(s) => out.write_str(s),
        _ => data_json(data, out),
    }
}

fn data_json(data: &Data, out: &mut impl fmt::Write) -> fmt::Result {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match data {
        Data::Null => out.write_str("null"),
        Data::Bool(b) => write!(out, "{b}"),
        Data::Num(n) => write!(out, "{n}"),
        Data::Str(s) => json_string(s, out),
        Data::List(items) => {
            out.write_char('[')?;
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                data_json(item, out)?;
            }
            out.write_char(']')
        }
        Data::Record(fields) => {
            out.write_char('{')?;
            for (i, (name, item)) in fields.iter().enumerate() {
                if i > 0 {
                    out.write_char(',')?;
                }
                json_string(name, out)?;
                out.write_char(':')?;
                data_json(item, out)?;
            }
            out.write_char('}')
        }
        Data::Pair(p) => {
            out.write_char('(')?;
            data_json(&p.0, out)?;
            out.write_str(", ")?;
            data_json(&p.1, out)?;
            out.write_char(')')
        }
        Data::Tag(name, payload) => {
            write!(out, "`{}", name_text(name))?;
            match &**payload {
                Data::Null => Ok(()),
                Data::Tag(_, inner) if **inner != Data::Null => {
                    out.write_str(" (")?;
                    data_json(payload, out)?;
                    out.write_char(')')
                }
                other => {
                    out.write_char(' ')?;
                    data_json(other, out)
                }
            }
        }
    })
}

fn json_string(s: &str, out: &mut impl fmt::Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = 0;
    for (i, c) in s.char_indices() {
        let escape = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            c if c < ' ' => "",
            _ => continue,
        };
        out.write_str(&s[rest..i])?;
        if escape.is_empty() {
            write!(out, "\\u{:04x}", c as u32)?;
        } else {
            out.write_str(escape)?;
        }
        rest = i + c.len_utf8();
    }
    out.write_str(&s[rest..])?;
    out.write_char('"')
}

/// Returns true if a text can be written as a name without quotes.
pub fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(identifier_start) && chars.all(identifier_part)
}

/// Returns true if a name can begin with this character. `λ` is an operator.
pub fn identifier_start(c: char) -> bool {
    c == '_' || (c.is_alphabetic() && c != 'λ')
}

/// Returns true if a name can continue with this character.
pub fn identifier_part(c: char) -> bool {
    c == '_' || (c.is_alphanumeric() && c != 'λ')
}

/// A name of a field, tag, tool, key or variant: bare where it can be, else in quotes.
pub(crate) fn name_text(name: &str) -> String {
    if is_identifier(name) { name.to_string() } else { quoted(name) }
}

/// A variable: bare, `$bare`, or `$"any text"`.
/// A name as a variable is written: `$"…"` around what is no identifier.
pub fn variable(name: &str) -> String {
    let bare = name.strip_prefix('$').map_or(!KEYWORDS.contains(&name), |_| true);
    if bare && is_identifier(name.strip_prefix('$').unwrap_or(name)) {
        name.to_string()
    } else {
        format!("${}", quoted(name))
    }
}

/// The escape of a character inside `"…"`, if it needs one.
fn escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".into(),
        '\\' => "\\\\".into(),
        '{' => "\\{".into(),
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        // Invisible characters that change how the text around them looks.
        c if c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}') =>
        {
            format!("\\u{{{:x}}}", c as u32)
        }
        _ => return None,
    })
}

/// The inside of a `"…"`.
fn escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match escape(c) {
            Some(e) => out.push_str(&e),
            None => out.push(c),
        }
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    escaped(text, &mut out);
    out.push('"');
    out
}

/// A string literal: raw where that spares escapes, and no escape is needed for anything else.
fn string_text(text: &str) -> String {
    let spares = text.contains(['{', '"', '\\']);
    let raw = |c: char| c != '\'' && (matches!(c, '{' | '"' | '\\') || escape(c).is_none());
    if spares && text.chars().all(raw) { format!("'{text}'") } else { quoted(text) }
}

/// Data as a literal of `.lam` (after `const`, and inside declarations).
fn data_text(data: &Data, out: &mut String) {
    stacker::maybe_grow(32 * 1024, 1024 * 1024, || match data {
        Data::Null => out.push_str("null"),
        Data::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Data::Num(n) => out.push_str(&n.to_string()),
        Data::Str(s) => out.push_str(&string_text(s)),
        Data::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                data_text(item, out);
            }
            out.push(']');
        }
        Data::Record(fields) => {
            out.push('{');
            for (i, (name, item)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                out.push_str(&name_text(name));
                out.push_str(": ");
                data_text(item, out);
            }
            out.push('}');
        }
        Data::Pair(p) => {
            out.push('(');
            data_text(&p.0, out);
            out.push_str(", ");
            data_text(&p.1, out);
            out.push(')');
        }
        Data::Tag(name, payload) => {
            out.push('`');
            out.push_str(&name_text(name));
            match &**payload {
                Data::Null => {}
                Data::Tag(_, inner) if **inner != Data::Null => {
                    out.push_str(" (");
                    data_text(payload, out);
                    out.push(')');
                }
                other => {
                    out.push(' ');
                    data_text(other, out);
                }
            }
        }
    });
}

fn data_string(data: &Data) -> String {
    let mut out = String::new();
    data_text(data, &mut out);
    out
}

impl fmt::Display for Pred {
    /// The notation of `.lam`. Operands of `&&`, `||` and `!` are parenthesized unless atomic.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || {
            let atom = |p: &Pred| match p {
                Pred::And(_) | Pred::Or(_) => format!("({p})"),
                _ => p.to_string(),
            };
            match self {
                Pred::True => f.write_str("any"),
                Pred::Compare(m, c, n) => write!(f, "{} {} {n}", m.as_str(), c.as_str()),
                Pred::Matches(r) => write!(f, "matches {}", string_text(r)),
                Pred::Contains(s) => write!(f, "contains {}", string_text(s)),
                Pred::OneOf(items) => {
                    let shown: Vec<String> = items.iter().map(data_string).collect();
                    write!(f, "in [{}]", shown.join(", "))
                }
                Pred::Field(name, p) => write!(f, ".{} {}", name_text(name), atom(p)),
                Pred::Every(p) => write!(f, "every {}", atom(p)),
                Pred::Some(p) => write!(f, "some {}", atom(p)),
                Pred::Schema(s) => write!(f, "schema {}", data_string(s.source())),
                Pred::And(p) => write!(f, "{} && {}", atom(&p.0), atom(&p.1)),
                Pred::Or(p) => write!(f, "{} || {}", atom(&p.0), atom(&p.1)),
                Pred::Not(p) => write!(f, "!{}", atom(p)),
            }
        })
    }
}

impl fmt::Display for Type {
    /// The notation of `.lam`: `Str`, `List Num`, `{a: Str}`, `Str -> Num`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        stacker::maybe_grow(32 * 1024, 1024 * 1024, || type_text(self, f))
    }
}

fn type_text(t: &Type, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let atom = |t: &Type| match t {
        Type::List(_)
        | Type::Option(_)
        | Type::Map(_)
        | Type::Fun(_)
        | Type::Pair(_)
        | Type::Rec(_)
        | Type::Var(_) => format!("({t})"),
        _ => t.to_string(),
    };
    let fields = |fields: &[(Name, Type)], f: &mut fmt::Formatter<'_>| {
        for (i, (name, t)) in fields.iter().enumerate() {
            write!(f, "{}{}: {t}", if i > 0 { ", " } else { "" }, name_text(name))?;
        }
        Ok(())
    };
    match t {
        Type::Dyn => f.write_str("Dyn"),
        Type::Str => f.write_str("Str"),
        Type::Num => f.write_str("Num"),
        Type::Bool => f.write_str("Bool"),
        Type::Null => f.write_str("Null"),
        Type::List(t) => write!(f, "List {}", atom(t)),
        Type::Option(t) => write!(f, "Option {}", atom(t)),
        Type::Record(r) => {
            f.write_str("{")?;
            fields(r, f)?;
            f.write_str("}")
        }
        Type::Enum(e) => {
            write!(f, "Enum {}(", name_text(&e.name))?;
            for (i, (v, description)) in e.described_variants().enumerate() {
                write!(f, "{}{}", if i > 0 { ", " } else { "" }, name_text(v))?;
                if let Some(description) = description {
                    write!(f, " {}", quoted(description))?;
                }
            }
            f.write_str(")")
        }
        Type::Variant(v) => {
            f.write_str("<")?;
            fields(v, f)?;
            f.write_str(">")
        }
        Type::Map(p) => write!(f, "Map {} {}", atom(&p.0), atom(&p.1)),
        Type::Pair(p) => write!(f, "{} * {}", atom(&p.0), atom(&p.1)),
        Type::Fun(t) => {
            let (param, effects, result) = &**t;
            let result = if matches!(result, Type::Fun(_)) { result.to_string() } else { atom(result) };
            if *effects == EffectRow::pure() {
                write!(f, "{} -> {result}", atom(param))
            } else {
                write!(f, "{} -[{effects}]> {result}", atom(param))
            }
        }
        Type::Refined(r) => write!(f, "{{{} | {}}}", r.0, r.1),
        Type::Rec(r) => {
            write!(f, "Rec {} {{", name_text(r.name()))?;
            fields(r.bodies(), f)?;
            f.write_str("}")
        }
        Type::Var(name) => write!(f, "Var {}", name_text(name)),
    }
}

fn label_text(label: &LabelSpec) -> String {
    match label {
        LabelSpec::Axes { untrusted: false, secret: false } => "trusted".into(),
        LabelSpec::Axes { untrusted: true, secret: false } => "untrusted".into(),
        LabelSpec::Axes { untrusted: false, secret: true } => "secret".into(),
        LabelSpec::Axes { untrusted: true, secret: true } => "untrusted secret".into(),
        LabelSpec::Exact(data @ (Data::List(_) | Data::Record(_))) => data_string(data),
        // A tag would take what follows as its payload.
        LabelSpec::Exact(data @ Data::Tag(..)) => format!("const ({})", data_string(data)),
        LabelSpec::Exact(data) => format!("const {}", data_string(data)),
    }
}

/// Binding strength of a form. A form in a place that requires a higher one is put in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    /// λ, `let`, `if`, `try`, `l : e`, `l ? e`, `e.f := e`.
    Expr,
    /// `>>`
    Compose,
    /// `|`, `⊕`
    Par,
    /// `||`
    Or,
    /// `&&`
    And,
    /// `==` and the like; they do not chain.
    Compare,
    /// `+`, `-`
    Sum,
    /// `*`, `/`, `%`
    Product,
    /// `-`, `!`, `@` and the words that take one operand after their arguments.
    Prefix,
    /// Application and what can be applied.
    App,
    /// Arguments: atoms with fields and indices.
    Atom,
}

struct Printer<'a> {
    code: &'a Code,
    style: Style,
    out: String,
    parts: Vec<(Range<usize>, TermId)>,
    /// Start of the current line in `out`.
    line_start: usize,
    indent: usize,
    /// Set while something is tried on one line: the length of `out` that it may not exceed.
    limit: Option<usize>,
    over: bool,
}

/// Columns of one level of indentation.
const STEP: usize = 2;

impl<'a> Printer<'a> {
    fn new(code: &'a Code, style: Style) -> Printer<'a> {
        Printer {
            code,
            style,
            out: String::new(),
            parts: Vec::new(),
            line_start: 0,
            indent: 0,
            limit: None,
            over: false,
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        if self.limit.is_some_and(|l| self.out.len() > l) {
            self.over = true;
        }
    }

    fn either(&mut self, unicode: &str, ascii: &str) {
        let text = if self.style.unicode { unicode } else { ascii };
        self.push(text);
    }

    fn newline(&mut self) {
        self.out.push('\n');
        self.line_start = self.out.len();
        for _ in 0..self.indent {
            self.out.push(' ');
        }
    }

    /// Returns true if lines may be broken here.
    fn breaks(&self) -> bool {
        self.limit.is_none() && self.style.width.is_some()
    }

    fn term(&mut self, id: TermId, level: Level) {
        if self.over {
            return;
        }
        let start = self.out.len();
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            let code = self.code;
            let own = self.level(id);
            let parens = own < level;
            if parens {
                self.push("(");
            }
            let from = self.out.len();
            let kept = self.parts.len();
            match self.style.width {
                Some(width) if self.limit.is_none() => {
                    // Try one line first; stop as soon as it is too long.
                    self.limit = Some(self.line_start + width);
                    self.form(id, code.term(id));
                    self.limit = None;
                    if std::mem::take(&mut self.over) {
                        self.out.truncate(from);
                        self.parts.truncate(kept);
                        self.form(id, code.term(id));
                    }
                }
                _ => self.form(id, code.term(id)),
            }
            if parens {
                self.push(")");
            }
        });
        self.parts.push((start..self.out.len(), id));
    }

    /// The level of the form that is printed for a term.
    fn level(&self, id: TermId) -> Level {
        match self.code.term(id) {
            Term::Lit(Data::Num(n)) => match literal(n) {
                None => Level::Prefix,
                Some(text) if text.starts_with('-') => Level::Prefix,
                Some(_) => Level::Atom,
            },
            Term::Lit(Data::List(_) | Data::Record(_) | Data::Pair(_)) => Level::Prefix,
            // An operator `-` after a tag without a payload would begin the payload.
            Term::Lit(Data::Tag(..)) => Level::Expr,
            Term::Abs(_) => match (self.stages(id), self.code.par_pair(id)) {
                (Some(s), _) if s.len() < 2 => Level::Atom,
                (Some(_), _) => Level::Compose,
                (_, Some(_)) => Level::Par,
                _ => Level::Expr,
            },
            Term::Let { .. } if self.asked(id).is_some() => Level::Prefix,
            Term::Let { .. }
            | Term::Try { .. }
            | Term::With(..)
            | Term::Relabel(..)
            | Term::Test(..)
            | Term::Case { .. }
            | Term::Guard { .. } => Level::Expr,
            Term::If(_, then, otherwise, sugar) => match sugar {
                IfSugar::And if self.is_bool(*otherwise, false) => Level::And,
                IfSugar::Or if self.is_bool(*then, true) => Level::Or,
                _ => Level::Expr,
            },
            Term::Prim(p, operands) => match (operator(*p), operands.len()) {
                (Some((_, level)), 2) => level,
                _ if matches!((p, operands.len()), (Prim::Neg | Prim::Not, 1)) => Level::Prefix,
                _ => Level::Atom,
            },
            Term::Choose(..) if self.style.unicode => Level::Par,
            Term::Classify(..)
            | Term::Check(..)
            | Term::Mem(..)
            | Term::Remember(..)
            | Term::Choose(..)
            | Term::Send(..)
            | Term::Fork(_)
            | Term::Fresh(_)
            | Term::Assert(..)
            | Term::Endorse(..)
            | Term::Declassify(..)
            | Term::Fail(_)
            | Term::Within(..)
            | Term::Each(..) => Level::Prefix,
            Term::App(..)
            | Term::Fst(_)
            | Term::Snd(_)
            | Term::Tag(_, Some(_))
            | Term::Fix { .. }
            | Term::Llm(..)
            | Term::Recv(_)
            | Term::Recall(..)
            | Term::Par(..)
            | Term::Unknown(_) => Level::App,
            Term::Var(..)
            | Term::Lit(_)
            | Term::Record(_)
            | Term::Args(..)
            | Term::List(_)
            | Term::Field(..)
            | Term::Index(..)
            | Term::Pair(..)
            | Term::Tag(_, None)
            | Term::Tool(_)
            | Term::Clear => Level::Atom,
        }
    }

    /// The stages of a composition that has the form that [`crate::Builder::compose`] gives it.
    fn stages(&self, id: TermId) -> Option<Vec<TermId>> {
        let Term::Abs(abs) = self.code.term(id) else { return None };
        if abs.sugar != AbsSugar::Compose {
            return None;
        }
        self.code.stages(id)
    }

    /// The operand of `@`.
    fn asked(&self, id: TermId) -> Option<TermId> {
        let Term::Let { bindings, body, sugar: LetSugar::Ask } = self.code.term(id) else { return None };
        let [(_, sent)] = &bindings[..] else { return None };
        match (self.code.term(*sent), self.code.term(*body)) {
            (Term::Send(Role::User, e), Term::Recv(Recv::Code)) => Some(*e),
            _ => None,
        }
    }

    fn is_bool(&self, id: TermId, value: bool) -> bool {
        *self.code.term(id) == Term::Lit(Data::Bool(value))
    }

    fn record(&mut self, fields: &'a [(Name, TermId)]) {
        self.items("{", "}", fields, |p, (name, e)| {
            p.push(&name_text(name));
            p.push(": ");
            p.term(*e, Level::Expr);
        });
    }

    fn form(&mut self, id: TermId, term: &'a Term) {
        match term {
            Term::Var(name, _) => self.push(&variable(name)),
            Term::Lit(data) => self.literal(data),
            Term::Record(fields) => self.record(fields),
            Term::Args(tool, fields) => {
                let name = self.code.tools.get(tool.0 as usize).map_or("", |t| &*t.name);
                self.push(&format!("args[{}]", name_text(name)));
                self.record(fields);
            }
            Term::List(items) => self.items("[", "]", items, |p, e| p.term(*e, Level::Expr)),
            Term::Abs(_) => self.abs(id),
            Term::App(f, x) => {
                // A form that would take the argument as its own operand.
                match self.code.term(*f) {
                    Term::Tag(_, None) | Term::Recv(Recv::Code) => self.enclosed(*f),
                    _ => self.term(*f, Level::App),
                }
                self.push(" ");
                self.term(*x, Level::Atom);
            }
            Term::Let { bindings, body, .. } => match self.asked(id) {
                Some(e) => self.prefix("@", e),
                None => self.let_in(bindings, *body),
            },
            Term::Field(e, name) => {
                self.term(*e, Level::Atom);
                self.push(".");
                self.push(&name_text(name));
            }
            Term::Index(e, i) => {
                self.term(*e, Level::Atom);
                self.push(".[");
                self.term(*i, Level::Expr);
                self.push("]");
            }
            Term::With(e, name, value) => {
                self.term(*e, Level::Atom);
                self.push(&format!(".{} := ", name_text(name)));
                self.term(*value, Level::Expr);
            }
            Term::Prim(p, operands) => self.prim(*p, operands),
            Term::Pair(a, b) => {
                self.either("⟨", "(");
                self.term(*a, Level::Expr);
                self.push(", ");
                self.term(*b, Level::Expr);
                self.either("⟩", ")");
            }
            Term::Fst(e) => self.with_atom("fst ", *e),
            Term::Snd(e) => self.with_atom("snd ", *e),
            Term::Tag(name, payload) => {
                self.push(&format!("`{}", name_text(name)));
                if let Some(e) = payload {
                    self.push(" ");
                    self.term(*e, Level::Atom);
                }
            }
            Term::If(c, a, b, sugar) => match sugar {
                IfSugar::And if self.is_bool(*b, false) => {
                    self.infix(*c, Level::And, "∧", "&&", *a, Level::Compare);
                }
                IfSugar::Or if self.is_bool(*a, true) => {
                    self.infix(*c, Level::Or, "∨", "||", *b, Level::And);
                }
                _ => {
                    self.push("if ");
                    self.term(*c, Level::Expr);
                    self.soft_break();
                    self.push("then ");
                    self.term(*a, Level::Expr);
                    self.soft_break();
                    self.push("else ");
                    self.term(*b, Level::Expr);
                }
            },
            Term::Case { scrutinee, branches, default } => {
                self.push("case ");
                self.term(*scrutinee, Level::Expr);
                self.push(" of ");
                let mut all: Vec<(String, TermId)> = branches
                    .iter()
                    .map(|b| {
                        let tag = if &*b.tag == "_" { quoted("_") } else { name_text(&b.tag) };
                        match &b.binder {
                            Some(x) => (format!("{tag} {}", variable(x)), b.body),
                            None => (tag, b.body),
                        }
                    })
                    .collect();
                all.extend(default.map(|e| ("_".to_string(), e)));
                self.items("{", "}", &all, |p, (head, e)| {
                    p.push(head);
                    p.either(" ⇒ ", " => ");
                    p.term(*e, Level::Expr);
                });
            }
            Term::Classify(tags, e) => {
                let tags: Vec<String> = tags.iter().map(|t| name_text(t)).collect();
                self.prefix(&format!("classify[{}] ", tags.join(", ")), *e);
            }
            Term::Fix { bound, origin, body } => {
                let bound = match bound {
                    Bound::Finite(n) => n.to_string(),
                    Bound::Infinite if self.style.unicode => "∞".into(),
                    Bound::Infinite => "inf".into(),
                };
                let origin =
                    origin.as_ref().map_or(String::new(), |o| format!(" {}", string_text(&o.to_string())));
                self.with_atom(&format!("fix[{bound}{origin}] "), *body);
            }
            Term::Guard { term, pred, retry } => {
                self.with_atom("guard ", *term);
                let pred = pred.to_string();
                // `e .f` would be a field of `e`.
                if pred.starts_with('.') {
                    self.push(&format!(" ({pred})"));
                } else {
                    self.push(&format!(" {pred}"));
                }
                if *retry > 0 {
                    self.push(&format!(" retry {retry}"));
                }
            }
            Term::Mem(store, e) => {
                self.with_atom("mem ", *e);
                self.push(" ");
                self.push(&self.store_ref(*store));
            }
            Term::Recall(name, _) => self.push(&format!("recall {}", name_text(name))),
            Term::Remember(name, _, e) => self.prefix(&format!("remember {} ", name_text(name)), *e),
            Term::Choose(p, a, b) => {
                if self.style.unicode {
                    self.term(*a, Level::Par);
                    self.push(&format!(" ⊕[{p}] "));
                    self.term(*b, Level::Or);
                } else {
                    self.with_atom(&format!("choose {p} "), *a);
                    self.push(" ");
                    self.term(*b, Level::Atom);
                }
            }
            Term::Llm(e, params) => {
                self.with_atom("llm ", *e);
                self.push(" ");
                self.push(&self.params(params));
            }
            Term::Tool(id) => {
                let name = self.code.tools.get(id.0 as usize).map_or("", |t| &*t.name);
                self.push(&format!("tool[{}]", name_text(name)));
            }
            Term::Send(Role::User, e) => self.prefix("send ", *e),
            Term::Send(role, e) => self.prefix(&format!("send[{}] ", role.as_str()), *e),
            Term::Recv(Recv::Code) => self.push("recv"),
            Term::Recv(Recv::Data(params)) => {
                self.push("recv ");
                self.push(&self.params(params));
            }
            Term::Fork(e) => self.prefix("fork ", *e),
            Term::Fresh(e) => self.prefix("fresh ", *e),
            Term::Clear => self.push("clear"),
            Term::Relabel(l, e) => {
                self.term(*l, Level::Compose);
                self.push(" : ");
                self.term(*e, Level::Expr);
            }
            Term::Test(l, e) => {
                self.term(*l, Level::Compose);
                self.push(" ? ");
                self.term(*e, Level::Expr);
            }
            Term::Assert(l, e) => self.labeled("assert ", *l, *e),
            Term::Endorse(l, e) => self.labeled("endorse ", *l, *e),
            Term::Declassify(l, e) => self.labeled("declassify ", *l, *e),
            Term::Try { label, body, catches, name, handler } => {
                self.push("try[");
                self.term(*label, Level::Expr);
                self.push("] ");
                self.term(*body, Level::Expr);
                self.soft_break();
                let but = Catches::WORDS.iter().find(|(c, _)| c == catches).map_or("", |(_, words)| words);
                self.push(&format!("catch {but}{}. ", variable(name)));
                self.term(*handler, Level::Expr);
            }
            Term::Fail(e) => self.prefix("fail ", *e),
            Term::Within(seconds, e) => self.prefix(&format!("within[{seconds}] "), *e),
            Term::Par(bound, items) => {
                match bound {
                    Some(n) => self.push(&format!("par[{n}] ")),
                    None => self.push("par "),
                }
                self.items("[", "]", items, |p, e| p.term(*e, Level::Expr));
            }
            Term::Each(bound, f, list) => {
                let bound = bound.map_or(String::new(), |n| format!("[{n}]"));
                self.with_atom(&format!("each{bound} "), *f);
                self.push(" ");
                self.term(*list, Level::Atom);
            }
            Term::Check(name, ty, e) => {
                let name = if name.is_empty() { String::new() } else { format!("{}: ", name_text(name)) };
                self.prefix(&format!("check[{name}{ty}] "), *e);
            }
            Term::Unknown(why) => self.push(&format!("unknown {}", string_text(why))),
        }
    }

    fn enclosed(&mut self, id: TermId) {
        self.push("(");
        self.term(id, Level::Expr);
        self.push(")");
    }

    fn prefix(&mut self, word: &str, e: TermId) {
        self.push(word);
        self.term(e, Level::Prefix);
    }

    fn with_atom(&mut self, word: &str, e: TermId) {
        self.push(word);
        self.term(e, Level::Atom);
    }

    fn labeled(&mut self, word: &str, l: TermId, e: TermId) {
        self.with_atom(word, l);
        self.push(" ");
        self.term(e, Level::Prefix);
    }

    fn infix(&mut self, a: TermId, left: Level, unicode: &str, ascii: &str, b: TermId, right: Level) {
        self.term(a, left);
        self.push(" ");
        self.either(unicode, ascii);
        self.push(" ");
        self.term(b, right);
    }

    /// A space, or a new line where lines are broken.
    fn soft_break(&mut self) {
        if self.breaks() { self.newline() } else { self.push(" ") }
    }

    fn items<T>(&mut self, open: &str, close: &str, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        self.push(open);
        let breaks = self.breaks() && !items.is_empty();
        self.indent += STEP;
        for (i, it) in items.iter().enumerate() {
            if self.over {
                break;
            }
            if i > 0 {
                self.push(",");
            }
            if breaks {
                self.newline();
            } else if i > 0 {
                self.push(" ");
            }
            item(self, it);
        }
        self.indent -= STEP;
        if breaks {
            self.newline();
        }
        self.push(close);
    }

    fn literal(&mut self, data: &Data) {
        match data {
            Data::Null | Data::Bool(_) => self.push(&data_string(data)),
            Data::Str(s) => self.push(&string_text(s)),
            Data::Num(n) => match literal(n) {
                Some(text) => self.push(&text),
                None => self.push(&format!("const {n}")),
            },
            _ => {
                self.push("const ");
                self.push(&data_string(data));
            }
        }
    }

    fn abs(&mut self, id: TermId) {
        if let Some(stages) = self.stages(id) {
            match &stages[..] {
                [] => self.either("(≫)", "(>>)"),
                [one] => {
                    self.either("(≫ ", "(>> ");
                    self.term(*one, Level::Par);
                    self.push(")");
                }
                [first, rest @ ..] => {
                    self.term(*first, Level::Par);
                    for stage in rest {
                        if self.over {
                            break;
                        }
                        self.soft_break();
                        self.either("≫ ", ">> ");
                        self.term(*stage, Level::Par);
                    }
                }
            }
            return;
        }
        if let Some((a, b)) = self.code.par_pair(id) {
            self.infix(a, Level::Par, "|", "|", b, Level::Or);
            return;
        }
        let Term::Abs(abs) = self.code.term(id) else { return };
        self.either("λ", "\\");
        self.push(&variable(&abs.param));
        if let Some(ty) = &abs.ty {
            self.push(&format!(": {ty}"));
        }
        self.push(".");
        let nested = matches!(self.code.term(abs.body), Term::Abs(a) if a.sugar == AbsSugar::Plain);
        if self.breaks() && !nested {
            self.indent += STEP;
            self.newline();
            self.term(abs.body, Level::Expr);
            self.indent -= STEP;
        } else {
            self.push(" ");
            self.term(abs.body, Level::Expr);
        }
    }

    fn let_in(&mut self, bindings: &[(Name, TermId)], body: TermId) {
        for (name, e) in bindings {
            if self.over {
                return;
            }
            self.push(&format!("let {} = ", variable(name)));
            // A definition that has to be broken stands on lines of its own.
            self.indent += STEP;
            self.term(*e, Level::Expr);
            self.indent -= STEP;
            self.push(" in");
            self.soft_break();
        }
        match self.code.term(body) {
            // `let … in let …` is one `let`.
            Term::Let { .. } if self.asked(body).is_none() => self.enclosed(body),
            _ => self.term(body, Level::Expr),
        }
    }

    fn prim(&mut self, p: Prim, operands: &[TermId]) {
        match (operator(p), operands) {
            (Some(((unicode, ascii), level)), [a, b]) => {
                let (left, right) = match level {
                    Level::Compare => (Level::Sum, Level::Sum),
                    Level::Sum => (Level::Sum, Level::Product),
                    _ => (level, Level::Prefix),
                };
                self.infix(*a, left, unicode, ascii, *b, right);
            }
            _ => match (p, operands) {
                // `-1` is a literal.
                (Prim::Neg, [e]) if matches!(self.code.term(*e), Term::Lit(Data::Num(_))) => {
                    self.push("-");
                    self.enclosed(*e);
                }
                (Prim::Neg, [e]) => self.prefix("-", *e),
                (Prim::Not, [e]) => {
                    self.either("¬", "!");
                    self.term(*e, Level::Prefix);
                }
                (Prim::Format, _) if self.is_template(operands) => self.template(operands),
                _ => {
                    self.push(&format!("prim[{}]", p.name()));
                    self.items("(", ")", operands, |p, e| p.term(*e, Level::Expr));
                }
            },
        }
    }

    /// Returns true if `"…{e}…"` parses back to these operands.
    fn is_template(&self, operands: &[TermId]) -> bool {
        let text = |id: &TermId| match self.code.term(*id) {
            Term::Lit(Data::Str(s)) => Some(s),
            _ => None,
        };
        operands.iter().any(|o| text(o).is_none())
            && operands.iter().all(|o| text(o).is_none_or(|s| !s.is_empty()))
            && !operands.windows(2).any(|w| text(&w[0]).is_some() && text(&w[1]).is_some())
    }

    fn template(&mut self, operands: &[TermId]) {
        // A hole is never broken: the line break would be no part of the text, but look like one.
        let (limit, style) = (self.limit, self.style);
        self.style.width = None;
        self.push("\"");
        for o in operands {
            match self.code.term(*o) {
                Term::Lit(Data::Str(s)) => {
                    let mut text = String::new();
                    escaped(s, &mut text);
                    self.push(&text);
                    self.parts.push((self.out.len() - text.len()..self.out.len(), *o));
                }
                _ => {
                    self.push("{");
                    self.term(*o, Level::Expr);
                    self.push("}");
                }
            }
        }
        self.push("\"");
        (self.limit, self.style) = (limit, style);
    }

    fn store_ref(&self, id: StoreId) -> String {
        let index = id.0 as usize;
        let Some(store) = self.code.stores.get(index) else { return format!("store[{index}]") };
        let same = self.code.stores.iter().filter(|s| s.name == store.name).count();
        match &*store.name {
            _ if same > 1 => format!("store[{index}]"),
            "store" => quoted("store"),
            name => name_text(name),
        }
    }

    fn params(&self, params: &ModelParams) -> String {
        let mut out: Vec<String> = Vec::new();
        if let Some(model) = &params.model {
            out.push(format!("model: {}", string_text(model)));
        }
        if let Some(t) = &params.temperature {
            out.push(format!("temperature: {t}"));
        }
        if let Some(n) = params.max_tokens {
            out.push(format!("max_tokens: {n}"));
        }
        if let Some(ty) = &params.result {
            out.push(format!("result: {ty}"));
        }
        let default = if params.result.is_some() { DEFAULT_REPAIR } else { 0 };
        if params.repair != default {
            out.push(format!("repair: {}", params.repair));
        }
        if !params.tools.is_empty() {
            let names: Vec<String> = params
                .tools
                .iter()
                .map(|t| name_text(self.code.tools.get(t.0 as usize).map_or("", |t| &*t.name)))
                .collect();
            out.push(format!("tools: [{}]", names.join(", ")));
        }
        if params.waiting {
            out.push("waiting: true".to_string());
        }
        if let Some(purpose) = &params.purpose {
            out.push(format!("purpose: {}", string_text(purpose)));
        }
        let extra = |(n, d): &(Name, Data)| format!("{}: {}", name_text(n), data_string(d));
        if params.extra.iter().any(|(n, _)| PARAM_KEYS.contains(&&**n)) {
            let all: Vec<String> = params.extra.iter().map(extra).collect();
            out.push(format!("extra: {{{}}}", all.join(", ")));
        } else {
            out.extend(params.extra.iter().map(extra));
        }
        format!("{{{}}}", out.join(", "))
    }

    fn tool(&mut self, tool: &ToolDecl) {
        let (bound, label) = default_flow(tool.effect);
        let at = |l: &LabelSpec, default: &LabelSpec| {
            if l == default { String::new() } else { format!(" @ {}", label_text(l)) }
        };
        let params: Vec<String> = tool
            .params
            .iter()
            .map(|p| format!("{}: {}{}", name_text(&p.name), p.ty, at(&p.bound, &bound)))
            .collect();
        let mut text = format!(
            "tool {}({}) -> {}{}",
            name_text(&tool.name),
            params.join(", "),
            tool.result,
            at(&tool.label, &label)
        );
        text.push_str(match tool.effect {
            EffectClass::Pure => " pure",
            EffectClass::Read => " read",
            EffectClass::Write => " write",
        });
        if tool.control != bound {
            let _ = write!(text, " control {}", label_text(&tool.control));
        }
        if !tool.parts.is_empty() {
            let _ = write!(text, " fields {}", data_string(&tool.parts.to_data()));
        }
        if let Some(d) = &tool.description {
            let _ = write!(text, " {}", string_text(d));
        }
        if let Some(h) = &tool.handler {
            let _ = write!(text, " by {}", data_string(h));
        }
        text.push_str(match tool.approve {
            Approve::Never => "",
            Approve::IfRefused => " approve if_refused",
            Approve::Always => " approve",
        });
        if let Some(delegated) = &tool.delegated {
            let _ = write!(text, " delegated {}", data_string(&delegated.to_data()));
        }
        if tool.confirms {
            text.push_str(" confirm");
        }
        if !tool.among.is_empty() {
            let sets = Data::list(tool.among.iter().map(crate::Among::to_data));
            let _ = write!(text, " among {}", data_string(&sets));
        }
        if !tool.plain.is_empty() {
            let forms = tool.plain.iter().map(|(n, p)| (n.clone(), Data::str(p.as_str())));
            let _ = write!(text, " plain {}", data_string(&Data::record(forms)));
        }
        if !tool.pattern.is_empty() {
            let patterns = tool.pattern.iter().map(|(n, p)| (n.clone(), Data::str(p.as_str())));
            let _ = write!(text, " pattern {}", data_string(&Data::record(patterns)));
        }
        if !tool.completes.is_empty() {
            let names = Data::list(tool.completes.iter().map(|n| Data::str(&**n)));
            let _ = write!(text, " completes {}", data_string(&names));
        }
        if !tool.includes.is_empty() {
            let names = |all: &[Name]| Data::list(all.iter().map(|n| Data::str(&**n)));
            let all = tool.includes.iter().map(|(n, who)| (n.clone(), names(who)));
            let _ = write!(text, " includes {}", data_string(&Data::record(all)));
        }
        if let Some(most) = tool.at_most {
            let _ = write!(text, " at_most {most}");
        }
        if let Some(policy) = &tool.policy {
            let policy = print_term_with(policy, policy.root(), Style { width: None, ..self.style });
            let _ = write!(text, " policy ({})", policy.text);
        }
        self.push(&text);
    }

    fn store(&mut self, store: &StoreDecl) {
        let keys: Vec<String> = store
            .keys
            .iter()
            .map(|k| {
                let label = if k.label == LabelSpec::BOTTOM {
                    String::new()
                } else {
                    format!(" @ {}", label_text(&k.label))
                };
                let initial = k.initial.as_ref().map_or(String::new(), |d| format!(" = {}", data_string(d)));
                format!("{}: {}{label}{initial}", name_text(&k.name), k.ty)
            })
            .collect();
        let mut text = format!("store {} {{{}}}", name_text(&store.name), keys.join(", "));
        if let Some(n) = store.capacity {
            let _ = write!(text, " capacity {n}");
        }
        if let Some(n) = store.ttl {
            let _ = write!(text, " ttl {n}");
        }
        if let Some(b) = &store.backend {
            let _ = write!(text, " backend {}", string_text(b));
        }
        self.push(&text);
    }
}

/// A number as a literal of terms, where a fraction would be a division.
fn literal(n: &Num) -> Option<String> {
    let text = n.to_string();
    (!text.contains('/')).then_some(text)
}

/// The infix operator of a primitive: Unicode, ASCII, level.
fn operator(p: Prim) -> Option<((&'static str, &'static str), Level)> {
    Some(match p {
        Prim::Add => (("+", "+"), Level::Sum),
        Prim::Sub => (("-", "-"), Level::Sum),
        Prim::Mul => (("*", "*"), Level::Product),
        Prim::Div => (("/", "/"), Level::Product),
        Prim::Rem => (("%", "%"), Level::Product),
        Prim::Eq => (("==", "=="), Level::Compare),
        Prim::Ne => (("≠", "!="), Level::Compare),
        Prim::Lt => (("<", "<"), Level::Compare),
        Prim::Le => (("≤", "<="), Level::Compare),
        Prim::Gt => ((">", ">"), Level::Compare),
        Prim::Ge => (("≥", ">="), Level::Compare),
        _ => return None,
    })
}
