//! Tokens to a syntax tree, by recursive descent.
//!
//! Recovery: a statement that can't be read is skipped to its semicolon, its block or the next line
//! that begins with a statement; a declaration is skipped to the next line that begins one. At most
//! one error is reported at one token.

use super::ast::*;
use super::keywords::{self, Role};
use super::lexer::{self, Lexed, Part, Token};
use diagnostics::{Applicability, Diagnostic, FileId, Fix, Span, nearest};
use std::collections::HashSet;

/// A text longer than this (in bytes) is refused.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// More errors than this in one file are not reported.
pub const MAX_ERRORS: usize = 100;

/// Tokens that are looked at to tell what a word means.
const MAX_LOOKAHEAD: usize = 256;

/// The help for a loop with several names.
const ONE_NAME: &str = "a loop has one name: `for e in zip(range(0, length(xs)), xs)` has the place as `e.first` and the item \
                        as `e.second`, and `for e in items(m)` the key and the value of a map as `e.key` and `e.value`";

/// The help for a statement in a hole.
const LOOP_IN_TEXT: &str = "a hole has an expression: a loop is `{xs.map(x => f\"- {x}\").join(\"\\n\")}`, and a condition \
                            `{if c { \"a\" } else { \"b\" }}`";

/// Words of other languages for `null`.
const NO_VALUE: &[&str] = &["None", "nil", "Nil", "undefined", "Null", "NULL", "null"];

/// Kinds of units that can be imported.
const IMPORTS: &[&str] = &["crew", "agent", "graph", "workflow"];

/// Reads a program. Whatever could not be read is reported and stands in the tree as an `Error` node.
///
/// # Examples
/// ```
/// let mut sources = diagnostics::Sources::new();
/// let text = "pipeline id(x: String) -> String { return x; }";
/// let file = sources.add("id.agent", text);
/// let (program, diagnostics) = syntax::agent::parse(file, text);
/// assert!(diagnostics.is_empty());
/// assert_eq!(program.items.len(), 1);
/// ```
///
/// Source: `AgentLang` grammar, `docs/agentlang.md`.
pub fn parse(file: FileId, text: &str) -> (Program, Vec<Diagnostic>) {
    let whole = Span { file, start: 0, end: u32::try_from(text.len()).unwrap_or(u32::MAX) };
    if text.len() > MAX_TEXT_BYTES {
        let d = Diagnostic::error(
            "A006",
            format!("a program of {} bytes is too long", text.len()),
            Span { file, start: 0, end: 0 },
        )
        .help(format!("the limit is {MAX_TEXT_BYTES} bytes"));
        return (
            Program { items: Vec::new(), unread: Vec::new(), comments: Vec::new(), span: whole },
            vec![d],
        );
    }
    let lexed = lexer::lex(file, text, 0, text.len());
    let mut parser = Parser {
        file,
        text,
        tokens: lexed.tokens,
        at: 0,
        diagnostics: lexed.diagnostics,
        open: lexed.open,
        error_at: None,
        plain_help: None,
        depth: 0,
        in_hole: false,
        lost: Vec::new(),
        test: None,
        function: None,
        mocks: Vec::new(),
        expectations: Vec::new(),
        attacks: Vec::new(),
        snapshots: Vec::new(),
        in_policy: false,
        in_head: false,
        suspect: None,
        unread: Vec::new(),
    };
    let items = parser.items();
    let unread = std::mem::take(&mut parser.unread);
    let mut diagnostics = parser.diagnostics;
    diagnostics::sort(&mut diagnostics);
    if diagnostics.len() > MAX_ERRORS {
        let rest = diagnostics.len() - MAX_ERRORS;
        diagnostics.truncate(MAX_ERRORS);
        if let Some(last) = diagnostics.last_mut() {
            last.help.push(format!("{rest} more errors of this file are not shown"));
        }
    }
    (Program { items, unread, comments: lexed.comments, span: whole }, diagnostics)
}

struct Parser<'a> {
    file: FileId,
    text: &'a str,
    tokens: Vec<Lexed>,
    at: usize,
    diagnostics: Vec<Diagnostic>,
    /// Starts of strings that were closed where the text ended.
    open: HashSet<u32>,
    /// The token at which the last error was reported.
    error_at: Option<usize>,
    /// The help of the error that is being made, if nothing better is said.
    plain_help: Option<String>,
    depth: u32,
    in_hole: bool,
    /// The variables that the statement being read would bind.
    lost: Vec<Name>,
    /// The depth of the statements of the test that is being read.
    test: Option<u32>,
    /// The depth of the statements of the `fn` that is being read.
    function: Option<u32>,
    mocks: Vec<Mock>,
    expectations: Vec<Expectation>,
    attacks: Vec<Attack>,
    snapshots: Vec<Snapshot>,
    /// True between the braces of a policy, where `tool` begins a rule.
    in_policy: bool,
    /// True in the head of a statement, where a brace after a name begins its block.
    in_head: bool,
    /// A block whose closing brace stands further left than the line that opened it.
    suspect: Option<Span>,
    /// The names of declarations that could not be read.
    unread: Vec<Name>,
}

impl Parser<'_> {
    // ----- tokens -----

    fn peek(&self, ahead: usize) -> Lexed {
        // The last token is `End`, and there is always one.
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn now(&self) -> Token {
        self.peek(0).token
    }

    fn text_of(&self, token: Lexed) -> &str {
        &self.text[token.start as usize..token.end as usize]
    }

    fn span_of(&self, token: Lexed) -> Span {
        Span { file: self.file, start: token.start, end: token.end }
    }

    fn here(&self) -> Span {
        self.span_of(self.peek(0))
    }

    /// The end of the token before this one, as an empty span.
    fn before(&self) -> Span {
        let end = if self.at == 0 { self.peek(0).start } else { self.tokens[self.at - 1].end };
        Span { file: self.file, start: end, end }
    }

    /// From `start` to the end of the last token that was read.
    fn since(&self, start: Span) -> Span {
        Span { end: self.before().end.max(start.start), ..start }
    }

    fn bump(&mut self) -> Lexed {
        let token = self.peek(0);
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn at(&self, p: &str) -> bool {
        matches!(self.now(), Token::Punct(q) if q == p)
    }

    fn word_ahead(&self, ahead: usize) -> Option<&str> {
        let token = self.peek(ahead);
        (token.token == Token::Word).then(|| self.text_of(token))
    }

    fn at_word(&self, word: &str) -> bool {
        self.word_ahead(0) == Some(word)
    }

    fn at_end(&self) -> bool {
        self.now() == Token::End
    }

    fn eat(&mut self, p: &str) -> bool {
        let found = self.at(p);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.bump();
        }
        found
    }

    // ----- errors -----

    fn report(&mut self, d: Diagnostic) {
        let known = self.error_at == Some(self.at)
            // What the lexer refused has been reported by it.
            || self.now() == Token::Bad
            || self.open.contains(&self.before().start);
        self.error_at = Some(self.at);
        let plain = self.plain_help.take();
        if !known {
            let d = match plain {
                Some(help) if d.help.is_empty() => d.help(help),
                _ => d,
            };
            let d = if self.in_hole { d.help("write `{{` and `}}` for braces that are text") } else { d };
            self.diagnostics.push(d);
        }
    }

    fn found(&self) -> String {
        let token = self.peek(0);
        match token.token {
            Token::End if self.in_hole => "the end of the hole".into(),
            Token::End => "the end of the file".into(),
            Token::Str | Token::Template => "a string".into(),
            _ => {
                let text: String = self.text_of(token).chars().take(40).collect();
                format!("`{text}`")
            }
        }
    }

    fn expected(&mut self, what: &str) -> Diagnostic {
        let span = if self.at_end() { self.before() } else { self.here() };
        let found = self.found();
        let d = Diagnostic::error("A010", format!("expected {what}, found {found}"), span);
        // What follows something says its place by it.
        self.plain_help = Some(match self.at_end() || what.contains(" after ") {
            true => format!("write {what}"),
            false => format!("write {what} before {found}"),
        });
        match self.slip(what) {
            Some(help) => d.help(help),
            None => d,
        }
    }

    /// Returns a hint for a habit from another language.
    fn slip(&self, what: &str) -> Option<&'static str> {
        if what.starts_with("the body of ") && self.at_word("approve") {
            return Some("approval is asked for by the policy: `policy { tool NAME { approve; } }`");
        }
        let before = self.at.checked_sub(1).map_or("", |i| self.text_of(self.tokens[i]));
        let callee = self.at.checked_sub(3).map_or("", |i| self.text_of(self.tokens[i]));
        let word = self.word_ahead(0).unwrap_or("");
        let is = |p: &str| self.at(p);
        match what {
            "a statement" => return self.statement_slip(word),
            "a type" if is("{") => return Some("a record type is written `Obj{ name: Type }`"),
            "the name of a tool" if self.now() == Token::Str => {
                return Some("a tool is named without quotes: `tools: [search]`");
            }
            "the prompt in quotes" if is(":") => return Some("write `prompt \"…\"`, without the colon"),
            "a name after `let`" if is("{") => {
                return Some("a variable has one name: `let name = record.name;` for each field");
            }
            "a name after `let`" if is("(") || is("[") => {
                return Some("a variable has one name: `let first = pair[0];` for each part");
            }
            "an expression" if is(";") && before == "return" => {
                return Some("every pipeline returns a value: `return \"done\";`");
            }
            "a name for the message" if is("(") => {
                return Some("write `catch why { … }`, without parentheses");
            }
            "an expression" if is("=") => return Some("write `let x = x + …;` to change a variable"),
            "an expression" if is(">") && before == "<" => return Some("`<>` is written `!=`"),
            "an expression" if is("|") || is("||") => return Some("a function is written `x => …`"),
            "the name of the test in quotes" => return Some("a test has a name: `test \"…\" { … }`"),
            "`}` or a body" if keywords::is(word, Role::Statement) => {
                return Some(
                    "a tool or task has no statements: what computes is a `fn`, what calls is a `pipeline`",
                );
            }
            "a declaration" if self.at_foreign_start() => {
                return Some("a program consists of declarations such as `agent`, `task` and `pipeline`");
            }
            _ => {}
        }
        if what.starts_with("`->` ") && (is("=>") || is(":")) {
            return Some("write `->` before the result type");
        }
        if what.starts_with("`=>` and a value") {
            return Some("a mock is written `mock name(_) => value;`, or `mock name fails \"message\";`");
        }
        if what.starts_with("`=>` ") {
            return match before {
                _ if is(".") || self.at_path() => Some("a case is written without its type"),
                _ if is("(") || (capitalized(before) && !word.is_empty()) => {
                    Some("the fields of a case are bound in braces: `Case { field } => …`")
                }
                "case" => Some("a case is the variant alone: `red => …`"),
                _ if is("->") || is(":") => Some("write `=>` after the pattern"),
                _ if word == "if" => Some(
                    "a pattern has no condition: `Case { x } => { if c { … } else { … } }` decides inside of the case",
                ),
                _ => None,
            };
        }
        if what.starts_with("`in` ") && word == "of" {
            return Some("write `for x in xs { … }`");
        }
        if what.starts_with("`in` ") && is(",") {
            return Some(ONE_NAME);
        }
        if what.starts_with("`with` ") && is("(") {
            return Some("write `run name with { parameter: value }`, or `name(value)` without `run`");
        }
        if what.starts_with("`catch` ") && matches!(word, "except" | "finally" | "rescue" | "on") {
            return Some("write `try { … } catch why { … }`");
        }
        if what.starts_with("`:` and a value") && (is("}") || is(",")) {
            return Some("a field has a value: `{ name: value }`");
        }
        if what.starts_with("`->` ") && (is("{") || word == "by") {
            return Some(match word {
                "by" => "say which type it returns: `-> String by agent {`",
                _ => "say which type it returns: `-> String {`",
            });
        }
        if what.starts_with("`:` and a type after ") && (is(")") || is(",")) {
            return Some("a parameter has a type: `name: String`");
        }
        if what.starts_with("`=` ") && is(",") {
            return Some("a variable has one name: `let first = pair[0];` for each part");
        }
        if what == "`=` after the name" && is("{") {
            return Some(
                "`if let` looks inside an option, `if let x = option`, or at a case, which has a capital letter: \
                 `if let Case { field } = value`",
            );
        }
        if what.starts_with("a whole number after ") || what.starts_with("a number of seconds after ") {
            return (is("=") || is(":") || is("("))
                .then_some("a clause and its number have no sign between: `retries 2`");
        }
        if what.starts_with("`call` ") {
            return Some("`expect` is about calls of tools; a value is checked by `assert x == …;`");
        }
        if what.ends_with("after the assertion") && matches!(self.now(), Token::Str | Token::Template) {
            return Some("a message stands after a comma: `assert condition, \"message\";`");
        }
        if what.starts_with("`;` ") && what.ends_with("the rule") && (is(":") || is("=")) {
            return Some("a rule is its name and values, without a sign between: `bound to trusted;`");
        }
        if what.starts_with("`:` ") && is("=") {
            return Some("a key and its value are written `key: value`");
        }
        if what.starts_with("`=` ") && matches!(before, "mut" | "const" | "var") {
            return Some("write `let name = …;`: `let` also gives a variable a new value");
        }
        if what.starts_with("`,` or ") {
            let parameters = what.ends_with("the parameters");
            return match before {
                "lambda" => Some("a function is written `x => …`"),
                _ if is("->") => Some("a function is written `x => …`"),
                _ if what.ends_with("this enum") && (is("{") || is("(")) => Some(
                    "a case with fields belongs to a `type`: `type Name = First | Second { field: Type };`",
                ),
                _ if what.ends_with("this enum") && (is("=") || is(":")) => {
                    Some("a variant is its name alone: `enum Name { first, second }`")
                }
                _ if is(";") && (what.ends_with("this type") || what.ends_with("this agent")) => {
                    Some("fields are separated by commas")
                }
                _ if is("|") && (parameters || what.ends_with("this type")) => {
                    Some("a value that may be null has the type `Option[Type]`")
                }
                _ if what.ends_with("the arguments") && self.at_path() => {
                    Some("a case is written without its type: `First`, `Second { field: … }`")
                }
                _ if what.ends_with("the arguments") && (is(":") || is("=")) && capitalized(callee) => {
                    Some("a value of a case is written with braces: `Case { field: … }`")
                }
                _ if what.ends_with("the arguments") && (is(":") || is("=")) => {
                    Some("arguments by name are written `run name with { parameter: value }`")
                }
                _ if matches!(word, "for") => Some("write `xs.map(x => …)`"),
                _ if parameters && self.now() == Token::Word => Some(
                    "behind the type of a parameter may stand `untrusted`, `secret`, `requires trusted` or `requires public`",
                ),
                _ => None,
            };
        }
        if !(what == "`{`" || what.starts_with("`{` ") || what.starts_with("`;` ")) {
            return None;
        }
        if self.at_path() {
            return Some("a case is written without its type: `First`, `Second { field: … }`");
        }
        if is("|") && what.ends_with("the type") {
            return Some("each case of a type has a name: `type Name = First { field: Type } | Second;`");
        }
        if is("(") && what.ends_with("the last case") {
            return Some("the fields of a case stand in braces and have names: `First { field: Type }`");
        }
        if is("=") {
            return Some("write `==` to compare; only `let` gives a variable a value");
        }
        if is("===") || is("!==") {
            return Some("`==` and `!=` compare values of one type; there is no `===`");
        }
        if is("**") {
            return Some("there is no `**`: multiply, or use `fold` over a `range`");
        }
        if is("?") {
            return Some("a choice is written `if c { a } else { b }`");
        }
        if is("=>") && what.ends_with("the value") {
            return Some(
                "a function has a name only as `fn name(x: Type) -> Type { … }`, or stands in the call: `xs.map(x => …)`",
            );
        }
        if is("!") {
            return Some("look inside an option with `if let x = …`, or give another value: `x ?? …`");
        }
        if (is("(") || is(".") || is("[")) && what.ends_with("the type") {
            return Some(
                "what holds of the values of a type stands after `where`: `type Share = Number where it >= 0 && it <= 1;`",
            );
        }
        let is_caught = self.at >= 2 && self.text_of(self.tokens[self.at - 2]) == "catch";
        if is_caught && what.starts_with("`{`") && self.now() == Token::Word {
            return Some(
                "errors of one kind are caught as `catch error e { … }`, and `e.code` says which it is",
            );
        }
        if is(":") && what.starts_with("`{`") {
            return Some("a block stands in braces: `if c { … }`");
        }
        match (word, before) {
            ("is", _) if self.word_ahead(1).is_some_and(|w| NO_VALUE.contains(&w) || w == "not") => {
                Some("compare with `==` and `!=`: `x == null`")
            }
            ("is", _) if self.word_ahead(1).is_some_and(capitalized) => {
                Some("look at the case with `match`: `match x { Case => …, _ => … }`")
            }
            ("is", _) => Some("compare with `==`: `x == null`"),
            ("not", _) => Some("write `!contains(xs, x)`"),
            ("in", _) => Some("write `contains(xs, x)`"),
            ("then" | "do", _) => Some("a block stands in braces: `if c { … }`"),
            ("as", _) => Some(
                "a type is no function: `to_number(text)`, `to_string(n)`, or `let x: Type = …;`, which the run checks",
            ),
            ("if", _) => Some("a choice is written `if c { a } else { b }`"),
            ("of", "for") => Some("write `for x in xs { … }`"),
            ("by" | "retries" | "timeout" | "on_fail", ")" | "}") => Some(
                "a call is a statement of its own: `let result = name(…) by agent;`, then `return result;`",
            ),
            (_, "lambda") => Some("a function is written `x => …`"),
            _ => None,
        }
    }

    /// Returns whether `::` stands here.
    fn at_path(&self) -> bool {
        self.at(":") && matches!(self.peek(1).token, Token::Punct(":"))
    }

    /// Returns a hint for a statement of another language.
    fn statement_slip(&self, word: &str) -> Option<&'static str> {
        let next = |ahead: usize, p: &str| matches!(self.peek(ahead).token, Token::Punct(q) if q == p);
        Some(match word {
            "elif" | "elsif" | "elseif" => "write `else if`",
            "for" if next(1, "(") && next(3, ",") => ONE_NAME,
            "for" => "a loop has no parentheses: `for x in list { … }`, or `for i in range(0, n) { … }`",
            "else" => "an `else` belongs to an `if`: other statements have none",
            "expect" | "assertEqual" | "assertEquals" | "assert_equal" | "assert_eq" | "assertTrue"
            | "assertFalse" => "what must hold is said by `assert`: `assert x == \"…\";`",
            "" if matches!(self.now(), Token::Str | Token::Template) => "a comment begins with `//` or `--`",
            "foreach" | "forEach" => "write `for x in list { … }`",
            "const" | "var" | "val" | "final" => "write `let name = …;`",
            "def" | "function" | "func" => {
                "a function is declared outside of the pipeline: `fn name(x: Type) -> Type { … }`"
            }
            "fn" => "a `fn` is declared outside of the pipeline",
            "switch" | "case" => "write `match x { first => { … } _ => { … } }`",
            "raise" | "throw" => "an error is `assert condition, \"message\";`",
            "except" => "write `try { … } catch why { … }`",
            "finally" => "write `try { … } ensure { … }`",
            "pass" => "an empty block is `{ }`",
            "print" | "println" | "console" | "printf" => {
                "nothing is printed: a pipeline returns its result, and a test says what must hold with `assert`"
            }
            "await" | "async" => "there is no `await`: a call waits for its result: `let x = name(…);`",
            "run" => "a call is written `let name = run task with { … };`",
            "import" | "from" | "require" => "files are imported outside of pipelines: `use \"file.agent\";`",
            "del" | "delete" => "nothing is deleted: `filter` gives a list without some items",
            _ if next(1, ".")
                && matches!(self.word_ahead(2), Some("append" | "push" | "add" | "extend" | "concat")) =>
            {
                "no function changes its list: `let xs = append(xs, x);`, or `xs + ys` for several items"
            }
            _ if next(1, ".") && next(3, "(") => "a function gives a new value: `let x = x.name(…);`",
            _ if next(1, "[") && next(3, "]") && next(4, "=") => {
                "nothing is changed in place: `{ ...record, key: value }` is a copy, and `map` gives a new list"
            }
            _ if next(1, ".") && next(3, "=") => {
                "nothing is changed in place: `let x = { ...x, field: value };`"
            }
            _ if next(1, "+") && next(2, "+") => "write `let n = n + 1;`",
            _ if next(1, "-") && next(2, "-") => "write `let n = n - 1;`",
            _ if next(2, "=")
                && ["+", "-", "*", "/", "%", "&&", "||", "??", "|"].iter().any(|op| next(1, op)) =>
            {
                "write the operation out: `let x = x + …;`"
            }
            _ if next(1, ":") && next(2, "=") => "write `let name = …;`",
            _ => return None,
        })
    }

    /// Returns the hint for a word of another language before an expression, which is none here.
    fn prefix_slip(&self, word: &str) -> Option<&'static str> {
        let next = self.peek(1);
        let begins = match next.token {
            Token::Word => {
                let link = keywords::TABLE.iter().any(|k| {
                    k.word == self.text_of(next) && matches!(k.role, Role::Clause | Role::Part | Role::Link)
                });
                !link || keywords::is_reserved(self.text_of(next))
            }
            Token::Str | Token::Template | Token::Number => true,
            _ => false,
        };
        if next.first_on_line || !begins {
            return None;
        }
        Some(match word {
            "not" => "`not` is written `!`",
            "await" => "there is no `await`: a call waits for its result",
            "new" => "a record is written `{ field: value }`, and a value of a case without `new`",
            "typeof" => "types are known before the run: remove it",
            "run" if matches!(self.word_ahead(2), Some("with")) => {
                "a call is a statement of its own: `let result = run name with { … };`, then `return result;`"
            }
            _ => return None,
        })
    }

    fn expect(&mut self, p: &'static str, after: &str) -> bool {
        if self.eat(p) {
            return true;
        }
        let d = self.expected(&format!("`{p}` {after}"));
        self.report(d);
        // One sign for another: what follows is read as if it were right.
        let other = match p {
            "->" => self.at("=>") || self.at(":"),
            "=>" => self.at("->") || self.at(":"),
            ":" => self.at("="),
            _ => false,
        };
        if other {
            self.bump();
            return true;
        }
        false
    }

    fn expect_word(&mut self, word: &'static str, after: &str) -> bool {
        if self.eat_word(word) {
            return true;
        }
        let mut d = self.expected(&format!("`{word}` {after}"));
        if let Some(found) = self.word_ahead(0)
            && (nearest(found, [word]).is_some() || (found.len() > 1 && word.starts_with(found)))
        {
            d = d.help(format!("did you mean `{word}`?"));
        }
        self.report(d);
        false
    }

    /// The semicolon of a statement. A forgotten one is reported where it belongs, and reading goes on.
    fn semicolon(&mut self, after: &str) -> Option<()> {
        if self.eat(";") {
            return Some(());
        }
        let token = self.peek(0);
        if token.first_on_line || self.at("}") || self.at_end() {
            let span = self.before();
            let d = Diagnostic::error("A011", format!("missing `;` after {after}"), span);
            let line = self.text[span.end as usize..].lines().next().unwrap_or("").trim();
            let d = match line.starts_with("//") && line.ends_with(';') {
                true => d.help("`//` begins a comment; a quotient without its fraction is `floor(a / b)`"),
                false => d,
            };
            let d = d.help("statements end with `;`").fix(Fix {
                span,
                replacement: ";".into(),
                applicability: Applicability::Safe,
            });
            // What stands here begins something new, so an error in it is another error.
            if self.error_at != Some(self.at) && !self.open.contains(&span.start) {
                self.diagnostics.push(d);
            }
            return Some(());
        }
        let d = self.expected(&format!("`;` after {after}"));
        self.report(d);
        None
    }

    /// Runs `f` one level deeper, or reports that the nesting is too deep and gives up on the file.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_HEIGHT {
            self.too_deep(self.here());
            return None;
        }
        self.depth += 1;
        let result = stacker::maybe_grow(64 << 10, 1 << 20, || f(self));
        self.depth -= 1;
        result
    }

    fn too_deep(&mut self, span: Span) {
        if self.at_end() && self.error_at == Some(self.at) {
            return;
        }
        self.diagnostics.push(
            Diagnostic::error("A012", format!("nesting deeper than {MAX_HEIGHT} levels"), span)
                .help("give parts of it names of their own; the rest of the file was not read"),
        );
        self.at = self.tokens.len() - 1;
        self.error_at = Some(self.at);
    }

    // ----- recovery -----

    /// Returns true if a declaration begins here, as it would at the start of a line.
    fn at_item(&self) -> bool {
        let token = self.peek(0);
        let Some(word) = self.word_ahead(0) else { return false };
        token.first_on_line
            && match word {
                "test" => self.peek(1).token == Token::Str,
                "use" => self.peek(1).token == Token::Str || self.peek(2).token == Token::Str,
                // `policy NAME` is about a tool or a parameter.
                "policy" => matches!(self.peek(1).token, Token::Punct("{")),
                "tool" if self.in_policy && matches!(self.peek(2).token, Token::Punct("{" | ".")) => false,
                "agent" => {
                    self.peek(1).token == Token::Word && matches!(self.peek(2).token, Token::Punct("{"))
                }
                // In a pipeline it is a habit from another language.
                "const" if !self.text[..token.start as usize].is_empty() => {
                    self.text[..token.start as usize].ends_with('\n') && self.peek(1).token == Token::Word
                }
                _ => keywords::is(word, Role::Item) && self.peek(1).token == Token::Word,
            }
    }

    fn at_statement(&self) -> bool {
        self.peek(0).first_on_line && self.word_ahead(0).is_some_and(|w| keywords::is(w, Role::Statement))
    }

    /// Skips to the next declaration.
    fn skip_item(&mut self) {
        while !self.at_end() && !self.at_item() {
            self.bump();
        }
    }

    /// Skips the rest of a statement that could not be read.
    fn skip_statement(&mut self) {
        let mut depth = 0usize;
        loop {
            match self.now() {
                Token::End => return,
                _ if self.at_item() => return,
                Token::Punct(";") if depth == 0 => {
                    self.bump();
                    return;
                }
                Token::Punct("}") if depth == 0 => return,
                _ if depth == 0 && self.at_statement() => return,
                Token::Punct("{" | "(" | "[") => depth += 1,
                Token::Punct("}") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.bump();
                        let continues = self
                            .word_ahead(0)
                            .is_some_and(|w| matches!(w, "else" | "catch") || keywords::is(w, Role::Clause));
                        if (continues && !self.at_statement()) || self.at("=") {
                            continue;
                        }
                        if self.at_word("join") {
                            self.bump();
                        }
                        self.eat(";");
                        return;
                    }
                }
                Token::Punct(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips the rest of a block, its closing brace included.
    fn skip_block(&mut self) {
        let mut depth = 0usize;
        while !self.at_end() && !self.at_item() {
            match self.bump().token {
                Token::Punct("{") => depth += 1,
                Token::Punct("}") if depth == 0 => return,
                Token::Punct("}") => depth -= 1,
                _ => {}
            }
        }
    }

    /// Skips to the brace that opens the block of a statement whose head could not be read.
    fn skip_to_block(&mut self) -> bool {
        let mut depth = 0usize;
        loop {
            match self.now() {
                Token::Punct("{") if depth == 0 => return true,
                Token::End | Token::Punct(";" | "}") => return false,
                _ if self.at_item() || self.at_statement() => return false,
                Token::Punct("(" | "[") => depth += 1,
                Token::Punct(")" | "]") => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.bump();
        }
    }

    /// Skips to a comma or to `close`, over balanced brackets. Whether one of them was found.
    fn skip_to_comma(&mut self, close: &str) -> bool {
        let mut depth = 0usize;
        loop {
            match self.now() {
                Token::End => return false,
                _ if self.at_item() => return false,
                Token::Punct(p) if depth == 0 && (p == "," || p == close) => return true,
                Token::Punct(";" | "->") => return false,
                _ if depth == 0 && self.at_statement() => return false,
                Token::Punct("{" | "(" | "[") => depth += 1,
                Token::Punct("}" | ")" | "]") => {
                    if depth == 0 {
                        return false;
                    }
                    depth -= 1;
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// A list in brackets, the opening one of which is `open` and has been read. A comma may follow the
    /// last element. Gives the span with both brackets.
    fn list<T>(
        &mut self,
        open: Span,
        close: &'static str,
        of: &str,
        mut element: impl FnMut(&mut Self) -> Option<T>,
    ) -> (Vec<T>, Span) {
        self.with_head(false, |p| p.elements(open, close, of, &mut element))
    }

    fn elements<T>(
        &mut self,
        open: Span,
        close: &'static str,
        of: &str,
        element: &mut impl FnMut(&mut Self) -> Option<T>,
    ) -> (Vec<T>, Span) {
        let mut out = Vec::new();
        loop {
            if self.at(close) || self.at_end() || self.at_item() {
                break;
            }
            let before = self.at;
            out.extend(element(self));
            if self.eat(",") {
                continue;
            }
            if self.at(close) {
                break;
            }
            if self.at_end() || (self.at_item() && self.at > before) {
                break;
            }
            // A comma that is forgotten at the end of a line is reported where it belongs.
            let next = self.peek(0);
            let begins = matches!(next.token, Token::Word | Token::Str | Token::Number | Token::Template);
            if begins
                && next.first_on_line
                && self.at > before
                && self.error_at != Some(self.at)
                && !self.at_statement()
            {
                let span = self.before();
                let d = Diagnostic::error("A011", format!("missing `,` in {of}"), span)
                    .help("what follows one another in brackets is separated by commas")
                    .fix(Fix { span, replacement: ",".into(), applicability: Applicability::Safe });
                self.diagnostics.push(d);
                continue;
            }
            let d = self.expected(&format!("`,` or `{close}` in {of}"));
            self.report(d);
            // Fields that are separated as in other languages are read as fields.
            let is_last = matches!(self.peek(1).token, Token::Punct(p) if p == close);
            let is_field = self.word_ahead(1).is_some() && self.peek(2).token == Token::Punct(":");
            if (of == "this type" || is_last || is_field) && self.eat(";") {
                continue;
            }
            if !self.skip_to_comma(close) {
                return (out, self.since(open));
            }
            if !self.eat(",") && self.at == before {
                break;
            }
        }
        self.close(open, close, of);
        (out, self.since(open))
    }

    fn close(&mut self, open: Span, close: &'static str, of: &str) -> bool {
        if self.eat(close) {
            return true;
        }
        let mut d = Diagnostic::error("A011", format!("missing `{close}` at the end of {of}"), self.before())
            .remark(open, "opened here");
        if let Some(inner) = self.suspect.take().filter(|s| close == "}" && s.start > open.start) {
            d = d.remark(inner, "this one may be meant: the brace that closes it stands further left");
        }
        let d = d.help(format!("write `{close}`"));
        self.report(d);
        false
    }

    // ----- names and literals -----

    fn name(&mut self, what: &str) -> Option<Name> {
        let Some(word) = self.word_ahead(0) else {
            let d = self.expected(what);
            self.report(d);
            return None;
        };
        let text = word.to_string();
        let span = self.here();
        if keywords::is_reserved(&text) {
            // A statement on the next line is not a misplaced name.
            if self.at_statement() {
                let d = self.expected(what);
                self.report(d);
                return None;
            }
            let d =
                Diagnostic::error("A013", format!("`{text}` is a reserved word and can't be a name"), span)
                    .help(format!("choose another name, for example `{text}_`"));
            self.report(d);
        }
        self.bump();
        Some(Name { text, span })
    }

    /// A key of a record: any word.
    fn key(&mut self, what: &str) -> Option<Name> {
        let token = self.peek(0);
        match token.token {
            Token::Word => {
                self.bump();
                Some(Name { text: self.text_of(token).to_string(), span: self.span_of(token) })
            }
            Token::Str => {
                let d = self.expected(what).help("keys are written without quotes");
                self.report(d);
                let lit = self.string_token();
                Some(Name { text: lit.value, span: lit.span })
            }
            _ => {
                let d = self.expected(what);
                self.report(d);
                None
            }
        }
    }

    /// The string token here.
    fn string_token(&mut self) -> StrLit {
        let token = self.bump();
        let mut value = String::new();
        for part in lexer::parts(self.file, self.text, token.start, token.end, false, &mut self.diagnostics) {
            if let Part::Text(piece) = part {
                value.push_str(&piece.text);
            }
        }
        StrLit { value, span: self.span_of(token) }
    }

    fn string(&mut self, what: &str) -> Option<StrLit> {
        if self.now() == Token::Str {
            return Some(self.string_token());
        }
        let d = self.expected(what);
        self.report(d);
        None
    }

    /// A string with holes; the `f` before it is optional where only a template makes sense.
    fn template(&mut self, what: &str) -> Option<Template> {
        let token = self.peek(0);
        let skip = match token.token {
            Token::Str => 0,
            Token::Template => 1,
            _ => {
                let d = self.expected(what);
                self.report(d);
                return None;
            }
        };
        self.bump();
        let parts =
            lexer::parts(self.file, self.text, token.start + skip, token.end, true, &mut self.diagnostics);
        let mut told = false;
        let parts = parts
            .into_iter()
            .map(|part| match part {
                Part::Text(p) => TemplatePart::Text(StrLit {
                    value: p.text,
                    span: Span { file: self.file, start: p.start, end: p.end },
                }),
                Part::Hole(start, end) => TemplatePart::Hole(self.hole(start, end, &mut told)),
            })
            .collect();
        Some(Template { parts, span: self.span_of(token) })
    }

    /// A message: a string, whose braces are text, or one with holes.
    fn message(&mut self) -> Option<Template> {
        const WHAT: &str = "the message in quotes";
        if self.now() == Token::Template {
            return self.template(WHAT);
        }
        let text = self.string(WHAT)?;
        Some(Template { span: text.span, parts: vec![TemplatePart::Text(text)] })
    }

    /// The expression in a hole, read from its own tokens. `told` is set where a template of another language
    /// is reported, which is done once for a text.
    fn hole(&mut self, start: u32, end: u32, told: &mut bool) -> Expr {
        let lexed = lexer::lex(self.file, self.text, start as usize, end as usize);
        let outer = (std::mem::replace(&mut self.tokens, lexed.tokens), self.at, self.error_at, self.in_hole);
        (self.at, self.error_at, self.in_hole) = (0, None, true);
        let next = self.peek(1).token;
        let expr = if self.at("%") || (self.at_word("for") && matches!(next, Token::Word | Token::Punct("(")))
        {
            if !std::mem::replace(told, true) {
                self.foreign_hole(LOOP_IN_TEXT);
            }
            Expr { kind: ExprKind::Error, span: self.here(), height: 1 }
        } else {
            let expr = self.with_head(false, Self::expr);
            if self.at(":") {
                self.foreign_hole(
                    "a number is formatted by a function: `{fixed(n, 2)}` has two digits after the point",
                );
            } else {
                self.diagnostics.extend(lexed.diagnostics);
                if !self.at_end() {
                    let d = self.expected("`}`");
                    self.report(d);
                }
            }
            expr
        };
        (self.tokens, self.at, self.error_at, self.in_hole) = outer;
        expr
    }

    /// Reports a hole as another language has it. Its braces are meant.
    fn foreign_hole(&mut self, help: &'static str) {
        self.in_hole = false;
        let d = self.expected("an expression").help(help);
        self.report(d);
    }

    fn number(&mut self, what: &str) -> Option<Number> {
        if self.now() != Token::Number {
            let d = self.expected(what);
            self.report(d);
            return None;
        }
        let token = self.bump();
        Some(Number { text: self.text_of(token).to_string(), span: self.span_of(token) })
    }

    /// A number without fraction.
    fn whole(&mut self, what: &str) -> Option<Number> {
        let n = self.number(what)?;
        if !n.text.bytes().all(|b| b.is_ascii_digit()) || n.text.len() > 9 {
            self.diagnostics.push(
                Diagnostic::error("A016", format!("expected {what}, found `{}`", n.text), n.span)
                    .help("write a number without fraction, below a thousand million"),
            );
        }
        Some(n)
    }

    // ----- declarations -----

    fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.at_end() {
            let before = self.at;
            if self.at_leftover(items.last_mut()) {
                continue;
            }
            match self.item() {
                Some(item) => items.push(item),
                None => {
                    if self.at == before {
                        self.bump();
                    }
                    self.skip_item();
                    self.unread_between(before);
                }
            }
        }
        items
    }

    /// Notes the name of a declaration that could not be read, so that nobody is told that it is missing.
    /// Findings of the lexer in a declaration of another language are dropped, as they are no mistakes of
    /// their own.
    fn unread_between(&mut self, start: usize) {
        let word = |p: &Self, i: usize| p.tokens.get(i).filter(|t| t.token == Token::Word).copied();
        let Some(first) = word(self, start) else { return };
        let end = self.peek(0).start;
        if !keywords::is(self.text_of(first), Role::Item) {
            self.diagnostics.retain(|d| d.span.is_none_or(|s| s.start <= first.start || s.start >= end));
        }
        let mut i = start + 1;
        // `async def name`, `export class name`.
        while word(self, i).is_some() && word(self, i + 1).is_some() && i < start + 3 {
            i += 1;
        }
        if let Some(name) = word(self, i).filter(|t| t.start < end) {
            let name = Name { text: self.text_of(name).to_string(), span: self.span_of(name) };
            self.unread.push(name);
        }
    }

    /// Statements behind the brace that ends a declaration: the brace is one too many. Reports it and skips
    /// them; what the declaration does is then not known.
    fn at_leftover(&mut self, last: Option<&mut Item>) -> bool {
        let word = self.word_ahead(0).unwrap_or("");
        let is_statement = keywords::is_reserved(word) && keywords::is(word, Role::Statement);
        let body = match last {
            Some(Item::Pipeline(p) | Item::Function(p)) => Some((&p.name.text, &mut p.body)),
            _ => None,
        };
        // `let x = 1;` between declarations is a constant of another language.
        let column = self.here().start.saturating_sub(self.line_start(self.here().start));
        let Some((name, body)) = body.filter(|_| is_statement && column > 0) else { return false };
        let close = Span { start: body.span.end.saturating_sub(1), ..body.span };
        let d = self
            .expected("a declaration")
            .remark(close, format!("`{name}` ends here"))
            .help("there is one `}` too many above: remove it");
        body.stmts.push(Stmt { kind: StmtKind::Error(Vec::new()), span: self.before() });
        self.report(d);
        self.skip_item();
        true
    }

    /// The start of the line of a place.
    fn line_start(&self, at: u32) -> u32 {
        self.text[..at as usize].rfind('\n').map_or(0, |n| n as u32 + 1)
    }

    /// The column of the first token on the line of a place.
    fn indent(&self, at: u32) -> usize {
        self.text[self.line_start(at) as usize..].chars().take_while(|c| *c == ' ' || *c == '\t').count()
    }

    /// Returns true if a character begins the line that no declaration has.
    fn at_foreign_start(&self) -> bool {
        matches!(self.now(), Token::Str | Token::Template)
    }

    fn item(&mut self) -> Option<Item> {
        let start = self.here();
        let word = self.word_ahead(0).unwrap_or("").to_string();
        if !keywords::is(&word, Role::Item) {
            let mut d = self.expected("a declaration");
            d = match (&*word, nearest(&word, keywords::words(Role::Item))) {
                ("async" | "await", _) => d.help("there is no `async`: a pipeline waits for each call"),
                ("export" | "public" | "pub" | "private" | "protected" | "static", _) => {
                    d.help(format!("remove `{word}`: files that import this one see all of its declarations"))
                }
                ("def" | "function" | "func" | "fun" | "procedure", _) => d.help(
                    "a function is `fn name(x: Type) -> Type { … }`; what calls tasks and tools is a `pipeline`",
                ),
                ("flow" | "graph" | "chain" | "main" | "program" | "process" | "crew" | "team", _)
                    if self.peek(1).token != Token::Punct("=") =>
                {
                    d.help("what runs is declared by `pipeline name(x: Type) -> Type { … }`")
                }
                ("class" | "struct" | "interface" | "record" | "dataclass", _) => {
                    d.help("a record type is `type Name = Obj{ field: Type };`")
                }
                ("import" | "from" | "require" | "include", _) => {
                    d.help("write `use \"file.agent\";`, or `use \"file.agent\" { name };` for some names")
                }
                ("let" | "var" | "val" | "final", _) => {
                    d.help("a value for all of the program is `const NAME = …;`; other values stand in a pipeline")
                }
                (name, _) if !name.is_empty() && matches!(self.peek(1).token, Token::Punct("=" | ":")) => {
                    d.help(format!("a value for all of the program is `const {name} = …;`"))
                }
                (w, _) if keywords::is(w, Role::Statement) => d.help("statements stand inside `pipeline name(…) -> Type { … }`"),
                (_, Some(near)) => d.help(format!("did you mean `{near}`?")),
                _ if self.at("}") => d.help("there is one `}` too many here or above"),
                _ if !d.help.is_empty() => d,
                _ => d.help(
                    "a program consists of `const`, `type`, `enum`, `agent`, `tool`, `task`, `pipeline`, `fn`, `workflow`, `test`, `policy` and `use`",
                ),
            };
            self.report(d);
            // A word before a declaration: what follows is read.
            let is_before = matches!(
                &*word,
                "async"
                    | "export"
                    | "public"
                    | "pub"
                    | "private"
                    | "protected"
                    | "static"
                    | "final"
                    | "default"
            );
            if is_before && self.word_ahead(1).is_some_and(|w| keywords::is(w, Role::Item)) {
                self.bump();
                return self.item();
            }
            return self.misnamed_constant(start);
        }
        self.bump();
        match &*word {
            "use" if self.now() == Token::Word && !self.at_word("mcp") && !self.at_word("python") => {
                self.import(start)
            }
            "use" => {
                let source = if self.eat_word("mcp") {
                    UseSource::Server
                } else if self.eat_word("python") {
                    UseSource::Python
                } else {
                    UseSource::File
                };
                let path = self.string(match source {
                    UseSource::File => "the path of a file in quotes after `use`",
                    UseSource::Server => "the name of a server in quotes after `use mcp`",
                    UseSource::Python => "the path of a module in quotes after `use python`",
                })?;
                let names = self.used_names()?;
                self.semicolon("the import")?;
                Some(Item::Use(Use { source, path, names, span: self.since(start) }))
            }
            "const" => {
                let name = self.name("a name after `const`")?;
                let ty = if self.eat(":") { Some(self.ty()) } else { None };
                self.expect("=", "and a value after the name of the constant").then_some(())?;
                let value = self.expr();
                self.semicolon("the value")?;
                Some(Item::Const(Const { name, ty, value, span: self.since(start) }))
            }
            "type" => {
                let name = self.name("a name after `type`")?;
                self.expect("=", "after the name of the type").then_some(())?;
                if self.at_case() {
                    return self.sum(start, name);
                }
                let errors = self.diagnostics.len();
                let mut ty = self.ty();
                // Of a type that could not be read nothing more is said, and its name is one.
                if self.diagnostics.len() > errors || self.semicolon("the type").is_none() {
                    while !self.at_end() && !self.at_item() && !self.eat(";") {
                        self.bump();
                    }
                    ty = TypeExpr { kind: TypeKind::Error, span: ty.span };
                }
                Some(Item::Alias(Alias { name, ty, span: self.since(start) }))
            }
            "enum" => {
                let name = self.name("a name after `enum`")?;
                let open = self.here();
                self.expect("{", "and the variants after the name of the enum").then_some(())?;
                let (variants, _) = self.list(open, "}", "this enum", |p| p.key("the name of a variant"));
                self.eat(";");
                Some(Item::Enum(Enum { name, variants, span: self.since(start) }))
            }
            "agent" => self.agent(start),
            "policy" => self.policy(start),
            "tool" | "task" => self.callable(start, word == "task"),
            "pipeline" => {
                let (name, params, result) = self.signature("pipeline")?;
                let body = self.block("this pipeline")?;
                let span = self.since(start);
                Some(Item::Pipeline(Pipeline { name, generics: Vec::new(), params, result, body, span }))
            }
            "fn" => {
                let (name, generics, params, result) = self.generic_signature("fn", true)?;
                self.function = Some(self.depth + 1);
                let body = self.block("this `fn`");
                self.function = None;
                let span = self.since(start);
                Some(Item::Function(Pipeline { name, generics, params, result, body: body?, span }))
            }
            "workflow" => {
                let (name, params, result) = self.signature("workflow")?;
                let (steps, body_span) = self.steps()?;
                let span = self.since(start);
                Some(Item::Workflow(Workflow { name, params, result, steps, body_span, span }))
            }
            _ => {
                let name = self.string("the name of the test in quotes")?;
                let rows = if self.at_word("for") { Some(self.test_rows()?) } else { None };
                let samples = if self.at_word("samples") { Some(self.test_samples()?) } else { None };
                self.test = Some(self.depth + 1);
                let body = self.block("this test");
                self.test = None;
                let (mocks, expectations) =
                    (std::mem::take(&mut self.mocks), std::mem::take(&mut self.expectations));
                let attacks = std::mem::take(&mut self.attacks);
                let snapshots = std::mem::take(&mut self.snapshots);
                let span = self.since(start);
                Some(Item::Test(Test {
                    name,
                    rows,
                    samples,
                    body: body?,
                    mocks,
                    expectations,
                    attacks,
                    snapshots,
                    span,
                }))
            }
        }
    }

    /// `for each row: Case of "cases.jsonl"`, the type being optional.
    fn test_rows(&mut self) -> Option<TestRows> {
        let start = self.here();
        self.bump();
        self.expect_word("each", "after `for`").then_some(())?;
        let name = self.name("a name for the row")?;
        let ty = if self.eat(":") { Some(self.ty()) } else { None };
        self.expect_word("of", "and the path of the data set").then_some(())?;
        let path = self.string("the path of the data set in quotes")?;
        Some(TestRows { name, ty, path, span: self.since(start) })
    }

    /// `samples 20 pass >= 0.9`
    fn test_samples(&mut self) -> Option<TestSamples> {
        let start = self.here();
        self.bump();
        let count = self.whole("the number of runs")?;
        self.expect_word("pass", "and the required rate").then_some(())?;
        if !self.eat(">=") {
            let d = self.expected("`>=` and the required rate");
            self.report(d);
            return None;
        }
        let rate = self.number("the required rate, such as `0.9`")?;
        Some(TestSamples { count, rate, span: self.since(start) })
    }

    /// A constant that is declared as in another language, which has been reported: `let x = 5;` or `x = 5`.
    fn misnamed_constant(&mut self, start: Span) -> Option<Item> {
        let by_word = matches!(self.word_ahead(0), Some("let" | "var" | "val" | "final" | "static"))
            && self.peek(1).token == Token::Word;
        if by_word {
            self.bump();
        }
        let is_value = |p: &Self| matches!(p.peek(1).token, Token::Punct("=" | ":"));
        if self.now() != Token::Word || !(by_word || is_value(self)) {
            return None;
        }
        let name = self.name("a name")?;
        let ty = if self.eat(":") { Some(self.ty()) } else { None };
        if !self.eat("=") {
            return None;
        }
        let value = self.expr();
        self.eat(";");
        Some(Item::Const(Const { name, ty, value, span: self.since(start) }))
    }

    /// Returns whether the cases of a sum type begin here.
    fn at_case(&self) -> bool {
        match (self.word_ahead(0), self.peek(1).token) {
            (Some(word), Token::Punct("{")) => word != "Obj",
            (Some(_), Token::Punct("|")) => true,
            _ => false,
        }
    }

    /// The cases of a sum type, and the semicolon after them.
    fn sum(&mut self, start: Span, name: Name) -> Option<Item> {
        let mut cases = Vec::new();
        loop {
            let at = self.here();
            if self.at_word("null") {
                let d = self
                    .expected("the name of a case")
                    .help("a value that may be null has the type `Option[Type]`");
                self.report(d);
                return None;
            }
            let case = self.name("the name of a case")?;
            let open = self.here();
            let fields = match self.eat("{") {
                true => self.list(open, "}", "this case", |p| p.field("the name of a field", false)).0,
                false => Vec::new(),
            };
            cases.push(Case { name: case, fields, span: self.since(at) });
            if !self.eat("|") {
                break;
            }
        }
        self.semicolon("the last case")?;
        Some(Item::Sum(Sum { name, cases, span: self.since(start) }))
    }

    /// Names that a file has of the one that it imports, after the path.
    fn used_names(&mut self) -> Option<UsedNames> {
        let open = self.here();
        if self.eat_word("as") {
            return Some(UsedNames::Behind(self.name("a name after `as`")?));
        }
        if !self.eat("{") {
            return Some(UsedNames::All);
        }
        let (names, span) = self.list(open, "}", "this import", |p| {
            let name = p.name("a name that the file declares")?;
            let renamed = if p.eat_word("as") { Some(p.name("a name after `as`")?) } else { None };
            Some(UsedName { name, renamed })
        });
        if names.is_empty() {
            let d = Diagnostic::error("A015", "an import of nothing", span)
                .help("name what the file declares, or leave the braces out");
            self.report(d);
        }
        Some(UsedNames::These(names))
    }

    /// A name, perhaps behind that of an import: `lib.classify`.
    fn path_name(&mut self, what: &str) -> Option<Name> {
        let name = self.name(what)?;
        Some(self.behind(name))
    }

    /// The name behind a dot together with the one before it.
    fn behind(&mut self, name: Name) -> Name {
        if !self.at(".") || self.peek(1).token != Token::Word {
            return name;
        }
        self.bump();
        let token = self.bump();
        let text = format!("{}.{}", name.text, self.text_of(token));
        Name { text, span: self.since(name.span) }
    }

    /// Parses an import after `use`.
    fn import(&mut self, start: Span) -> Option<Item> {
        let word = self.word_ahead(0).unwrap_or("").to_string();
        if !IMPORTS.contains(&&*word) {
            let kinds = || IMPORTS.iter().copied().chain(["mcp", "python"]);
            let known = kinds().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", ");
            let mut d = self.expected(&format!("the path of a file in quotes, or one of {known}"));
            if let Some(near) = nearest(&word, kinds()) {
                d = d.help(format!("did you mean `{near}`?"));
            }
            self.report(d);
            return None;
        }
        let at = self.here();
        self.bump();
        let kind = Name { text: word, span: at };
        let path = self.string(&format!("the path of a file or folder in quotes after `{}`", kind.text))?;
        let unit = if self.now() == Token::Str { self.string("a name in quotes") } else { None };
        self.expect_word("as", "and a name with its inputs and result type, after the path").then_some(())?;
        let (name, params, result) = self.signature("as")?;
        self.semicolon("the result type")?;
        Some(Item::Import(Import { kind, path, unit, name, params, result, span: self.since(start) }))
    }

    fn signature(&mut self, of: &str) -> Option<(Name, Vec<Field>, TypeExpr)> {
        let (name, _, params, result) = self.generic_signature(of, false)?;
        Some((name, params, result))
    }

    /// A signature; that of a `fn` may have parameters that are types.
    fn generic_signature(
        &mut self,
        of: &str,
        may_be_generic: bool,
    ) -> Option<(Name, Vec<Name>, Vec<Field>, TypeExpr)> {
        let name = self.name(&format!("a name after `{of}`"))?;
        let mut generics = Vec::new();
        if self.at("[") || self.at("<") {
            let open = self.here();
            let close = if self.at("[") { "]" } else { ">" };
            if close == ">" || !may_be_generic {
                let d = self.expected("`(` and the parameters").help(match may_be_generic {
                    true => format!(
                        "types that a `fn` is given stand in square brackets: `fn {}[T](…)`",
                        name.text
                    ),
                    false => "only a `fn` has parameters that are types".to_string(),
                });
                self.report(d);
            }
            self.bump();
            generics = self.list(open, close, "the types", |p| p.name("the name of a type")).0;
        }
        let open = self.here();
        let params = if self.expect("(", &format!("and the parameters after the name of the {of}")) {
            self.list(open, ")", "the parameters", |p| p.field("the name of a parameter", true)).0
        } else {
            Vec::new()
        };
        let arrow = self.expect("->", "and the result type after the parameters");
        let result = if arrow { self.ty() } else { TypeExpr { kind: TypeKind::Error, span: self.before() } };
        Some((name, generics, params, result))
    }

    fn field(&mut self, what: &str, parameter: bool) -> Option<Field> {
        let flow_first = parameter
            && self.word_ahead(0).is_some_and(|w| matches!(w, "untrusted" | "secret" | "trusted" | "public"))
            && self.peek(1).token == Token::Word;
        if flow_first {
            let word = self.word_ahead(0).unwrap_or("").to_string();
            let d = self.expected(what).help(format!("it stands behind the type: `name: String {word}`"));
            self.report(d);
            self.bump();
        }
        let name = if parameter { self.name(what)? } else { self.key(what)? };
        let is_optional = self.at("?") && matches!(self.peek(1).token, Token::Punct(":"));
        if is_optional {
            let d = self.expected("`:` and a type").help(format!(
                "a value that may be missing has the type `Option[Type]`: `{}: Option[Type]`",
                name.text
            ));
            self.report(d);
            self.bump();
        }
        let ty = if self.expect(":", &format!("and a type after `{}`", name.text)) {
            self.ty()
        } else {
            TypeExpr { kind: TypeKind::Error, span: self.before() }
        };
        let ty = match is_optional {
            true => TypeExpr { span: ty.span, kind: TypeKind::Option(Box::new(ty)) },
            false => ty,
        };
        let flow = if parameter { self.flow() } else { Vec::new() };
        if !parameter && self.at("=") {
            return Some(self.field_without_default(name, &ty));
        }
        let default = if self.eat("=") { Some(self.expr()) } else { None };
        Some(Field { name, ty, flow, default })
    }

    /// Reports the default of a field of a record or case, which only parameters have. The type of the field
    /// is open then: how a value is written is decided by the repair.
    fn field_without_default(&mut self, name: Name, ty: &TypeExpr) -> Field {
        let sign = self.here();
        self.bump();
        let value = self.expr().span;
        let text = |at: Span| &self.text[at.start as usize..at.end as usize];
        let (key, value) = (&name.text, text(value));
        let may_be_missing = match ty.kind {
            TypeKind::Option(_) => format!("remove it: `{key}` may be missing"),
            _ => format!("write `{key}: Option[{}]`, which may be missing", text(ty.span)),
        };
        let d =
            Diagnostic::error("A010", format!("the field `{key}` can't have a default"), self.since(sign))
                .help(format!("{may_be_missing}, and `record.{key} ?? {value}` where it is used"));
        self.report(d);
        let ty = TypeExpr { kind: TypeKind::Error, span: ty.span };
        Field { name, ty, flow: Vec::new(), default: None }
    }

    fn flow(&mut self) -> Vec<FlowWord> {
        let mut out = Vec::new();
        loop {
            let start = self.here();
            let kind = match self.word_ahead(0) {
                Some("pure") => FlowKind::Pure,
                Some("reads") => FlowKind::Reads,
                Some("writes") => FlowKind::Writes,
                Some("untrusted") => FlowKind::Untrusted,
                Some("secret") => FlowKind::Secret,
                Some("requires") => {
                    self.bump();
                    match self.word_ahead(0) {
                        Some("trusted") => FlowKind::RequiresTrusted,
                        Some("public") => FlowKind::RequiresPublic,
                        _ => {
                            let d = self.expected("`trusted` or `public` after `requires`");
                            self.report(d);
                            return out;
                        }
                    }
                }
                Some("policy") => {
                    self.bump();
                    let Some(name) = self.name("the name of a policy") else { return out };
                    out.push(FlowWord { kind: FlowKind::Policy(name), span: self.since(start) });
                    continue;
                }
                _ => return out,
            };
            self.bump();
            out.push(FlowWord { kind, span: self.since(start) });
        }
    }

    fn callable(&mut self, start: Span, task: bool) -> Option<Item> {
        let what = if task { "task" } else { "tool" };
        let (name, params, result) = self.signature(what)?;
        let called = match !task && self.eat_word("as") {
            true => self.string("what the tool is called outside of the program, in quotes"),
            false => None,
        };
        let mut flow = self.flow();
        let mut by_agent = None;
        if task && self.at_word("by") {
            let by = self.here();
            self.bump();
            if !self.expect_word("agent", "after `by`") && self.now() == Token::Word {
                if let Some(last) = self.diagnostics.last_mut() {
                    last.help.push("name the agent where the task is run: `… by name`".into());
                }
                self.bump();
            }
            by_agent = Some(self.since(by));
            flow.extend(self.flow());
        }
        let open = self.here();
        let body = if self.eat("{") {
            let system = match self.eat_word("system") {
                true => {
                    let system = self.template("the instructions in quotes");
                    self.eat(";");
                    system
                }
                false => None,
            };
            let examples = match self.eat_word("examples") {
                true => {
                    let examples = self.expr();
                    self.eat(";");
                    Some(examples)
                }
                false => None,
            };
            let kind = self.body_kind();
            self.eat(";");
            if !self.at("}") && !self.at_end() && !self.at_item() {
                let mut d = self.expected(&format!("`}}` after the body of the {what}"));
                if let Some(word @ ("system" | "examples")) = self.word_ahead(0) {
                    d = d.help(format!("`{word}` stands before the prompt"));
                }
                self.report(d);
                while !self.at("}") && !self.at_end() && !self.at_item() {
                    self.bump();
                }
            }
            self.close(open, "}", &format!("this {what}"));
            Body { kind, system, examples, span: self.since(open) }
        } else {
            let d = self
                .expected(&format!("the body of the {what}"))
                .help("write `{}` if the host program or `entail.toml` supplies the behavior");
            self.report(d);
            self.eat(";");
            Body { kind: BodyKind::Error, system: None, examples: None, span: self.before() }
        };
        let callable =
            Callable { name, params, result, called, flow, by_agent, body, span: self.since(start) };
        Some(if task { Item::Task(callable) } else { Item::Tool(callable) })
    }

    fn body_kind(&mut self) -> BodyKind {
        if self.at("}") {
            return BodyKind::Empty;
        }
        let word = self.word_ahead(0).unwrap_or("").to_string();
        let kind = match &*word {
            "prompt" => {
                self.bump();
                self.template("the prompt in quotes").map(BodyKind::Prompt)
            }
            "exec" => {
                self.bump();
                let mut words = Vec::new();
                while matches!(self.now(), Token::Str | Token::Template) {
                    words.extend(self.template("a word of the command"));
                }
                if words.is_empty() {
                    let d = self.expected("the program in quotes after `exec`");
                    self.report(d);
                }
                (!words.is_empty()).then_some(BodyKind::Exec(words))
            }
            "builtin" => {
                self.bump();
                self.string("the name of a built-in function in quotes").map(BodyKind::Builtin)
            }
            "http" => {
                self.bump();
                let method = self.name("a method such as `GET` or `POST`");
                method.and_then(|m| Some(BodyKind::Http(m, self.template("the URL in quotes")?)))
            }
            "mcp" => {
                self.bump();
                let server = self.string("the name of a server in quotes");
                server.map(|s| {
                    let tool = (self.now() == Token::Str).then(|| self.string_token());
                    BodyKind::Mcp(s, tool)
                })
            }
            "python" => {
                self.bump();
                let file = self.string("the path of a module in quotes, such as `\"tools.py\"`");
                file.and_then(|f| Some(BodyKind::Python(f, self.string("the name of a function in quotes")?)))
            }
            _ => {
                let mut d = self.expected("`}` or a body");
                d = match nearest(&word, keywords::words(Role::Body)) {
                    Some(near) => d.help(format!("did you mean `{near}`?")),
                    None => d.help(
                        "a body is `prompt \"…\"`, `exec \"program\" …`, `builtin \"name\"`, `http METHOD \"url\"`, `mcp \"server\" \"tool\"` or `python \"tools.py\" \"function\"`; before a prompt may stand `system \"…\"` and `examples […]`",
                    ),
                };
                self.report(d);
                None
            }
        };
        kind.unwrap_or(BodyKind::Error)
    }

    fn agent(&mut self, start: Span) -> Option<Item> {
        let name = self.name("a name after `agent`")?;
        let open = self.here();
        self.expect("{", "and the fields after the name of the agent").then_some(())?;
        let (fields, _) = self.list(open, "}", "this agent", Self::agent_field);
        self.eat(";");
        Some(Item::Agent(Agent { name, fields, span: self.since(start) }))
    }

    fn agent_field(&mut self) -> Option<AgentField> {
        let name = self.key("a field of the agent")?;
        let known = keywords::is(&name.text, Role::Field);
        if !known {
            let mut d =
                Diagnostic::error("A017", format!("an agent has no field `{}`", name.text), name.span);
            d = match field_known_as(&name.text).or_else(|| nearest(&name.text, keywords::words(Role::Field)))
            {
                _ if name.text == "name" => {
                    d.help("the name of an agent stands before the brace: `agent name { … }`")
                }
                Some(near) => {
                    let fix = Fix {
                        span: name.span,
                        replacement: near.into(),
                        applicability: Applicability::Unsafe,
                    };
                    d.help(format!("did you mean `{near}`?")).fix(fix)
                }
                None => d.help(format!(
                    "its fields are `{}`",
                    keywords::words(Role::Field).collect::<Vec<_>>().join("`, `")
                )),
            };
            self.diagnostics.push(d);
        }
        if !self.expect(":", &format!("after `{}`", name.text)) || !known {
            self.skip_to_comma("}");
            return Some(AgentField { name, value: AgentValue::Error });
        }
        let open = self.here();
        let value = match &*name.text {
            "model" if self.eat("[") => {
                let model = |p: &mut Self| p.string("the name of a model in quotes");
                let (names, span) = self.list(open, "]", "the models", model);
                if names.is_empty() {
                    let d =
                        Diagnostic::error("A010", "expected the name of a model, found an empty list", span);
                    self.diagnostics
                        .push(d.help("name a model, and perhaps others to ask where it can't be"));
                }
                Some(AgentValue::Model(names))
            }
            "model" => self.string("the name of a model in quotes").map(|name| AgentValue::Model(vec![name])),
            "prompt" => self.template("the prompt in quotes").map(AgentValue::Prompt),
            "max_steps" if self.at_word("unlimited") => {
                self.bump();
                Some(AgentValue::Unlimited(open))
            }
            "max_steps" => self.whole("a whole number of steps").map(AgentValue::MaxSteps),
            "temperature" => self.number("a number").map(AgentValue::Temperature),
            "max_tokens" => self.whole("a whole number of tokens").map(AgentValue::MaxTokens),
            "talk" => self.name("`conversation`, `text` or `actions`").map(AgentValue::Talk),
            "tools" | "final_tools" => self.expect("[", "and the names of tools").then(|| {
                let (names, span) = self.list(open, "]", "the tools", |p| p.path_name("the name of a tool"));
                match &*name.text {
                    "tools" => AgentValue::Tools(names, span),
                    _ => AgentValue::FinalTools(names, span),
                }
            }),
            "helpers" | "handoffs" => self.expect("[", "and the names of agents").then(|| {
                let (others, span) = self.list(open, "]", "the agents", Self::offered);
                match &*name.text {
                    "helpers" => AgentValue::Helpers(others, span),
                    _ => AgentValue::Handoffs(others, span),
                }
            }),
            "settings" => self.expect("{", "and the settings").then(|| {
                let (settings, span) = self.list(open, "}", "the settings", Self::setting);
                AgentValue::Settings(settings, span)
            }),
            "budget" => self.expect("{", "and the limits").then(|| {
                let (limits, span) = self.list(open, "}", "the budget", |p| {
                    let key = p.key("`usd` or `calls`")?;
                    p.expect(":", "after the key").then_some(())?;
                    Some((key, p.number("a number")?))
                });
                AgentValue::Budget(limits, span)
            }),
            _ => self.expect("{", "and the settings of the memory").then(|| {
                let mut memory = Memory { store: None, keys: Vec::new(), size: None, ttl: None, span: open };
                let (_, span) = self.list(open, "}", "the memory", |p| p.memory_field(&mut memory));
                memory.span = span;
                AgentValue::Memory(memory)
            }),
        };
        Some(AgentField { name, value: value.unwrap_or(AgentValue::Error) })
    }

    /// The rules after `policy`.
    fn policy(&mut self, start: Span) -> Option<Item> {
        let open = self.here();
        self.expect("{", "and the rules after `policy`").then_some(())?;
        self.in_policy = true;
        let (rules, body_span) = self.policy_rules(open, true);
        self.in_policy = false;
        Some(Item::Policy(PolicyBlock { rules, body_span, span: self.since(start) }))
    }

    /// Rules up to the brace that closes them. Those of a tool have no rules of their own.
    fn policy_rules(&mut self, open: Span, outermost: bool) -> (Vec<PolicyRule>, Span) {
        let mut rules = Vec::new();
        while !self.at("}") && !self.at_end() && !self.at_item() {
            let before = self.at;
            match self.policy_rule(outermost) {
                Some(rule) => rules.push(rule),
                None => {
                    self.skip_rule();
                    if self.at == before {
                        break;
                    }
                }
            }
        }
        self.close(open, "}", "this policy");
        (rules, self.since(open))
    }

    /// Skips the rest of a rule, with the braces in it.
    fn skip_rule(&mut self) {
        let mut depth = 0usize;
        while !self.at_end() && !self.at_item() {
            match self.now() {
                Token::Punct("{") => depth += 1,
                Token::Punct("}") if depth == 0 => return,
                Token::Punct("}") => depth -= 1,
                Token::Punct(";") if depth == 0 => {
                    self.bump();
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    fn policy_rule(&mut self, outermost: bool) -> Option<PolicyRule> {
        let start = self.here();
        let key = self.key("a rule of the policy")?;
        let (mut args, mut condition, mut reason, mut rules) = (Vec::new(), None, None, None);
        let has_rules = outermost && matches!(&*key.text, "tool" | "unknown_tools" | "output");
        if key.text == "allow" {
            condition = Some(self.expr());
            if self.eat_word("else") {
                reason = Some(self.string("why a call is refused, in quotes after `else`")?);
            }
        }
        while condition.is_none() {
            let open = self.here();
            // A rule on the next line: the semicolon is missing.
            if self.peek(0).first_on_line && self.word_ahead(0).is_some_and(|w| keywords::is(w, Role::Rule)) {
                break;
            }
            match self.now() {
                Token::Punct("{") if has_rules => {
                    self.bump();
                    rules = Some(self.policy_rules(open, false));
                    break;
                }
                Token::Word if self.at_word("when") => {
                    self.bump();
                    condition = Some(self.expr());
                }
                Token::Word => {
                    let word = self.key("a word of the rule")?;
                    let word = if key.text == "tool" { self.behind(word) } else { word };
                    args.push(PolicyArg::Word(word));
                }
                Token::Str => args.push(PolicyArg::Text(self.string_token())),
                Token::Number => args.push(PolicyArg::Number(self.number("a number")?)),
                Token::Punct("[" | "{") => args.push(PolicyArg::Value(self.expr())),
                _ => break,
            }
        }
        match &rules {
            // As after other declarations that end with a brace.
            Some(_) => {
                self.eat(";");
            }
            // Of a rule that there is not nothing more is said than that.
            None if !self.at(";") && !keywords::is(&key.text, Role::Rule) && !self.peek(0).first_on_line => {
                let message = format!("a policy has no rule `{}` here", key.text);
                let d = Diagnostic::error("S202", message, key.span);
                let near =
                    || nearest(&key.text, keywords::words(Role::Rule).chain(keywords::words(Role::Flow)));
                self.diagnostics.push(match keywords::instead_of_rule(&key.text) {
                    Some(help) => d.help(help),
                    None => match near() {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None => d.help("a rule is its name and values: `bound to trusted;`"),
                    },
                });
                return None;
            }
            None => {
                self.condition_of_rule(&key, &args)?;
                self.semicolon("the rule")?;
            }
        }
        Some(PolicyRule { key, args, condition, reason, rules, span: self.since(start) })
    }

    /// A condition without the word before it, which is reported where the condition begins.
    fn condition_of_rule(&mut self, key: &Name, args: &[PolicyArg]) -> Option<()> {
        let word = match args.last() {
            Some(PolicyArg::Word(word)) => word.clone(),
            _ => return Some(()),
        };
        let is_if = args
            .iter()
            .any(|a| matches!(a, PolicyArg::Word(w) if matches!(&*w.text, "if" | "where" | "unless")));
        if !is_if && self.operator().is_none() {
            return Some(());
        }
        let first = args.iter().find_map(|a| match a {
            PolicyArg::Word(w) if !is_if || matches!(&*w.text, "if" | "where" | "unless") => Some(w.clone()),
            _ => None,
        });
        let word = first.unwrap_or(word);
        let help = match &*key.text {
            "approve" => "the condition of a question stands after `when`: `approve when amount > 50;`",
            _ => "what must hold of each call is said by `allow`: `allow amount <= 500;`",
        };
        let d = Diagnostic::error(
            "A010",
            format!("expected `when` and a condition, found `{}`", word.text),
            word.span,
        );
        self.diagnostics.push(d.help(help));
        None
    }

    fn offered(&mut self) -> Option<Offered> {
        let name = self.path_name("the name of an agent, task or pipeline")?;
        let called = match self.eat_word("as") {
            true => Some(self.string("what the model knows it as, in quotes")?),
            false => None,
        };
        Some(Offered { name, called })
    }

    /// A setting of a model, whose name may stand in quotes: it is whatever the server calls it.
    fn setting(&mut self) -> Option<(Name, Expr)> {
        if self.now() != Token::Str {
            return self.pair();
        }
        let key = self.string_token();
        let key = Name { text: key.value, span: key.span };
        self.expect(":", &format!("and a value after `{}`", key.text)).then_some(())?;
        Some((key, self.expr()))
    }

    fn memory_field(&mut self, memory: &mut Memory) -> Option<()> {
        let key = self.key("`store`, `keys`, `size` or `ttl`")?;
        let colon = self.expect(":", "after the key");
        match &*key.text {
            _ if !colon => return None,
            "store" => memory.store = Some(self.string("the name of a store in quotes")?),
            "size" => memory.size = Some(self.whole("a whole number of entries")?),
            "ttl" => memory.ttl = Some(self.number("a number of seconds")?),
            "keys" => {
                let open = self.here();
                self.expect("{", "and the keys with their types").then_some(())?;
                let key = |p: &mut Self| {
                    let field = p.field("the name of a key", false)?;
                    Some(Field { flow: p.flow(), ..field })
                };
                memory.keys = self.list(open, "}", "the keys", key).0;
            }
            _ => {
                self.diagnostics.push(
                    Diagnostic::error("A017", format!("a memory has no setting `{}`", key.text), key.span)
                        .help("its settings are `store`, `keys`, `size` and `ttl`"),
                );
                self.skip_to_comma("}");
            }
        }
        Some(())
    }

    fn steps(&mut self) -> Option<(Vec<Step>, Span)> {
        let open = self.here();
        self.expect("{", "and the steps of the workflow").then_some(())?;
        let mut steps = Vec::new();
        while !self.at("}") && !self.at_end() && !self.at_item() {
            let before = self.at;
            match self.step() {
                Some(step) => steps.push(step),
                None => {
                    if self.at == before {
                        self.bump();
                    }
                    while !self.at_end() && !self.at_item() && !self.at("}") && !self.eat(";") {
                        let next = self.peek(0).first_on_line
                            && matches!(self.word_ahead(0), Some("stage" | "review" | "return"));
                        if next {
                            break;
                        }
                        self.bump();
                    }
                }
            }
        }
        self.close(open, "}", "this workflow");
        Some((steps, self.since(open)))
    }

    fn step(&mut self) -> Option<Step> {
        let start = self.here();
        if self.eat_word("return") {
            let e = self.expr();
            self.semicolon("the result")?;
            return Some(Step::Return(e, self.since(start)));
        }
        if self.eat_word("stage") {
            let name = self.name("a name after `stage`")?;
            self.expect("=", "after the name of the stage").then_some(())?;
            let agent = self.path_name("the name of an agent")?;
            self.expect_word("does", "after the agent").then_some(())?;
            let task = self.path_name("the name of a task")?;
            let open = self.here();
            self.expect("(", "and the arguments").then_some(())?;
            let (args, _) = self.list(open, ")", "the arguments", |p| p.element());
            self.semicolon("the stage")?;
            return Some(Step::Stage { name, agent, task, args, span: self.since(start) });
        }
        if self.eat_word("review") {
            let name = self.name("a name after `review`")?;
            self.expect("=", "after the name of the review").then_some(())?;
            let reviewer = self.path_name("the name of an agent")?;
            self.expect_word("checks", "after the agent").then_some(())?;
            let subject = self.name("the name of a stage")?;
            self.expect_word("revise", "after what is checked").then_some(())?;
            self.expect_word("with", "after `revise`").then_some(())?;
            let reviser = self.path_name("the name of an agent")?;
            self.expect_word("using", "after the agent").then_some(())?;
            let task = self.path_name("the name of a task")?;
            self.expect_word("max_rounds", "after the task").then_some(())?;
            let max_rounds = self.whole("a whole number of rounds")?;
            self.semicolon("the review")?;
            return Some(Step::Review {
                name,
                reviewer,
                subject,
                reviser,
                task,
                max_rounds,
                span: self.since(start),
            });
        }
        let d = self
            .expected("`stage`, `review` or `return`")
            .help("a workflow consists of steps; write other statements in a `pipeline`");
        self.report(d);
        None
    }

    // ----- types -----

    fn ty(&mut self) -> TypeExpr {
        let start = self.here();
        let kind = self.nested(Self::type_kind).unwrap_or(TypeKind::Error);
        let mut ty = TypeExpr { kind, span: self.since(start) };
        let or_null = self.at("|") && self.word_ahead(1).is_some_and(|w| NO_VALUE.contains(&w));
        if self.at("?") || or_null {
            let help = match &ty.kind {
                TypeKind::Name(name) => format!("a value that may be null has the type `Option[{name}]`"),
                _ => "a value that may be null has the type `Option[Type]`".into(),
            };
            let d = self.expected("the end of the type").help(help);
            self.report(d);
            self.bump();
            if or_null {
                self.bump();
            }
            ty = TypeExpr { span: self.since(start), kind: TypeKind::Option(Box::new(ty)) };
        }
        if !self.eat_word("where") {
            return ty;
        }
        let condition = self.expr();
        let kind = TypeKind::Where(Box::new(ty), Box::new(condition));
        TypeExpr { kind, span: self.since(start) }
    }

    /// `"low" | "high"` or `1 | 2`.
    fn literals(&mut self) -> Option<TypeKind> {
        let mut values = Vec::new();
        loop {
            let start = self.here();
            let kind = match self.now() {
                Token::Str => ExprKind::Str(self.string_token().value),
                Token::Number => {
                    let token = self.bump();
                    ExprKind::Number(self.text_of(token).to_string())
                }
                _ => {
                    let d = self.expected("a string or a number").help(match self.at_word("null") {
                        true => "a value that may be null has the type `Option[Type]`",
                        false => "a type of literals has no other types among them",
                    });
                    self.report(d);
                    return None;
                }
            };
            let span = self.since(start);
            values.push(self.node(kind, span)?);
            if !self.eat("|") {
                return Some(TypeKind::Literals(values));
            }
        }
    }

    fn type_kind(&mut self) -> Option<TypeKind> {
        if matches!(self.now(), Token::Str | Token::Number) {
            return self.literals();
        }
        // Braces without a field are the body of what lacks a type.
        let has_field = matches!(self.peek(1).token, Token::Word | Token::Str)
            && matches!(self.peek(2).token, Token::Punct(":"));
        if self.at("{") && has_field {
            let d = self.expected("a type");
            self.report(d);
            let open = self.here();
            self.bump();
            let (fields, _) = self.list(open, "}", "this type", |p| p.field("the name of a field", false));
            return Some(TypeKind::Obj(fields));
        }
        let name = self.path_name("a type")?;
        let generic = match &*name.text {
            "List" | "Option" => true,
            "Map" if self.at("[") || self.at("<") => return Some(self.map_type(false)),
            "Obj" => {
                let open = self.here();
                self.expect("{", "and the fields after `Obj`").then_some(())?;
                let (fields, _) =
                    self.list(open, "}", "this type", |p| p.field("the name of a field", false));
                return Some(TypeKind::Obj(fields));
            }
            _ => false,
        };
        if !generic {
            let other = match &*name.text {
                "Array" | "list" | "Sequence" | "Vec" | "Set" | "Iterable" => Some("List"),
                "Optional" | "Maybe" | "Nullable" => Some("Option"),
                _ => None,
            };
            if let (Some(right), true) = (other, self.at("[") || self.at("<")) {
                let d = Diagnostic::error("A010", format!("there is no type `{}[…]`", name.text), name.span)
                    .help(format!("write `{right}[Type]`"));
                self.report(d);
                let close = if self.at("[") { "]" } else { ">" };
                self.bump();
                let inner = self.ty();
                self.eat(close);
                return Some(wrap(right, inner));
            }
            let is_map =
                matches!(&*name.text, "dict" | "Dict" | "HashMap" | "Record" | "Mapping" | "Object" | "map");
            if is_map && (self.at("[") || self.at("<")) {
                let d = Diagnostic::error("A010", format!("there is no type `{}[…]`", name.text), name.span)
                    .help("write `Map[String, Type]`; a record with known fields is `Obj{ name: Type }`");
                self.report(d);
                return Some(self.map_type(true));
            }
            if name.text == "Literal" && self.at("[") {
                let d = Diagnostic::error("A010", "there is no type `Literal[…]`", name.span)
                    .help("the values of a type stand between bars: `\"low\" | \"high\"`");
                self.report(d);
                let open = self.here();
                self.bump();
                let (values, _) = self.list(open, "]", "this type", Self::element);
                return Some(TypeKind::Literals(values));
            }
            if self.at("[") && matches!(self.peek(1).token, Token::Punct("]")) {
                let d = self
                    .expected("the end of the type")
                    .help(format!("a list is written `List[{}]`", name.text));
                self.report(d);
                self.bump();
                self.bump();
                let inner = TypeExpr { kind: TypeKind::Name(name.text), span: name.span };
                return Some(TypeKind::List(Box::new(inner)));
            }
            return Some(TypeKind::Name(name.text));
        }
        if self.at("<") {
            let d = self
                .expected(&format!("`[` after `{}`", name.text))
                .help(format!("write `{}[Type]`", name.text));
            self.report(d);
            self.bump();
            let inner = self.ty();
            self.eat(">");
            return Some(wrap(&name.text, inner));
        }
        let open = self.here();
        self.expect("[", &format!("and a type after `{}`", name.text)).then_some(())?;
        let inner = self.ty();
        self.close(open, "]", "this type");
        Some(wrap(&name.text, inner))
    }

    /// `[String, Number]` after `Map`, or after a name of it that was `reported`.
    fn map_type(&mut self, reported: bool) -> TypeKind {
        let open = self.here();
        let close = if self.at("[") { "]" } else { ">" };
        if close == ">" && !reported {
            let d = self.expected("`[` after `Map`").help("write `Map[String, Type]`");
            self.report(d);
        }
        self.bump();
        let key = self.ty();
        if !self.eat(",") {
            if !reported {
                let d = self
                    .expected("`,` and the type of the values")
                    .help("a map has a type of keys and one of values: `Map[String, Type]`");
                self.report(d);
            }
            self.eat(close);
            return TypeKind::Error;
        }
        let value = self.ty();
        let (key, value) = if reported { (known(key), known(value)) } else { (key, value) };
        if close == "]" {
            self.close(open, close, "this type");
        } else {
            self.eat(close);
        }
        TypeKind::Map(Box::new((key, value)))
    }

    // ----- statements -----

    fn block(&mut self, of: &str) -> Option<Block> {
        let open = self.here();
        if !self.eat("{") {
            let d = self.expected("`{`");
            self.report(d);
            if !self.skip_to_block() {
                return None;
            }
            self.bump();
        }
        self.with_head(false, |p| {
            p.nested(|p| {
                let mut stmts = Vec::new();
                while !p.at("}") && !p.at_end() && !p.at_item() {
                    let before = p.at;
                    let start = p.here();
                    if p.at_test_stmt() {
                        match p.test_stmt() {
                            Some(stmt) => stmts.extend(stmt),
                            None => p.skip_statement(),
                        }
                        continue;
                    }
                    if p.function == Some(p.depth)
                        && let Some(value) = p.last_value()
                    {
                        stmts.push(value);
                        continue;
                    }
                    match p.stmt() {
                        Some(stmt) => {
                            p.lost.clear();
                            stmts.push(stmt);
                        }
                        None => {
                            if p.at == before && !p.at("}") && !p.at_item() {
                                p.bump();
                            }
                            p.skip_statement();
                            let mut lost = std::mem::take(&mut p.lost);
                            lost.extend(p.bound_between(before, p.at));
                            stmts.push(Stmt { kind: StmtKind::Error(lost), span: p.since(start) });
                        }
                    }
                }
                let close = p.peek(0);
                if p.at("}") && close.first_on_line && p.indent(close.start) < p.indent(open.start) {
                    p.suspect = Some(open);
                }
                if !p.close(open, "}", of) {
                    // Which block is open is a guess, so what this one does is not known.
                    stmts.push(Stmt { kind: StmtKind::Error(Vec::new()), span: p.before() });
                }
                Some(Block { stmts, span: p.since(open) })
            })
        })
    }

    /// The names that a statement would bind that could not be read, as far as its tokens tell.
    fn bound_between(&self, start: usize, end: usize) -> Vec<Name> {
        let text = |i: usize| self.tokens.get(i).map_or("", |t| self.text_of(*t));
        let name = |i: usize| {
            let token = self.tokens.get(i).filter(|t| t.token == Token::Word)?;
            Some(Name { text: self.text_of(*token).to_string(), span: self.span_of(*token) })
        };
        let mut out = Vec::new();
        for i in start..end.min(self.tokens.len()) {
            match text(i) {
                "let" | "const" | "var" | "val" | "mut" | "for" => match text(i + 1) {
                    // Several at once, as in `let (a, b) = …`.
                    "(" | "{" | "[" => {
                        let inside =
                            (i + 2..end).take_while(|j| matches!(text(*j), ",") || name(*j).is_some());
                        out.extend(inside.filter_map(name));
                    }
                    _ => out.extend(name(i + 1)),
                },
                "=" if i == start + 1 || (i == start + 2 && text(i - 1) == ":") => out.extend(name(start)),
                _ => {}
            }
        }
        out.retain(|n| !keywords::is_reserved(&n.text));
        out
    }

    /// The value of a `fn` at its end, written without `return`. Nothing if a statement stands here.
    fn last_value(&mut self) -> Option<Stmt> {
        let word = self.word_ahead(0).unwrap_or("").to_string();
        let may_be_both = matches!(&*word, "if" | "match");
        let next = self.peek(1).token;
        if !may_be_both
            && keywords::is(&word, Role::Statement)
            && (next == Token::Word || keywords::is_reserved(&word))
        {
            return None;
        }
        // Only what follows tells a value from a statement, so it is read as one first.
        let start = self.here();
        let before = (self.at, self.error_at, self.diagnostics.len());
        let value = self.expr();
        let sound = self.diagnostics.len() == before.2;
        let stray = self.here();
        let is_alone =
            self.at(";") && matches!(self.peek(1).token, Token::Punct("}")) && sound && !may_be_both;
        if is_alone && !matches!(value.kind, ExprKind::Error) {
            let d = self
                .expected("`}` at the end of this `fn`")
                .help("the last expression is the result: remove the `;`")
                .fix(Fix { span: stray, replacement: String::new(), applicability: Applicability::Unsafe });
            self.report(d);
            self.bump();
            return Some(Stmt { kind: StmtKind::Return(value), span: self.since(start) });
        }
        // A value of which a word is of another language is no statement.
        if self.at("}") && (sound || !may_be_both || is_whole(&value)) {
            return Some(Stmt { kind: StmtKind::Return(value), span: self.since(start) });
        }
        (self.at, self.error_at) = (before.0, before.1);
        self.diagnostics.truncate(before.2);
        None
    }

    /// Returns whether a mock, an expectation or an attack comes next, which begins no other statement.
    fn at_test_stmt(&self) -> bool {
        match self.word_ahead(0) {
            Some("mock" | "expect") => self.peek(1).token == Token::Word,
            Some("attack") => self.peek(1).token == Token::Str,
            _ => false,
        }
    }

    /// `mock …;`, `expect …;` or `attack …;`, which only the block of a test has. One that takes a value
    /// where it stands is a statement of the block, too.
    fn test_stmt(&mut self) -> Option<Option<Stmt>> {
        let start = self.here();
        let word = match self.word_ahead(0) {
            Some("mock") => "mock",
            Some("attack") => "attack",
            _ => "expect",
        };
        self.bump();
        if self.test != Some(self.depth) {
            self.diagnostics.push(
                Diagnostic::error("A092", format!("`{word}` is only allowed in the block of a test"), start)
                    .help(
                        "it is about the test as a whole: write it in the block of `test \"…\" { … }` itself",
                    ),
            );
        }
        let top = self.test == Some(self.depth);
        if word == "attack" {
            let text = self.string("the injected text in quotes")?;
            self.expect_word("in", "and the tool").then_some(())?;
            self.expect_word("tool", "and its name").then_some(())?;
            let tool = self.path_name("the name of a tool")?;
            self.semicolon("the attack")?;
            let attack = Attack { text, tool, span: self.since(start) };
            self.attacks.extend(top.then_some(attack));
            return Some(None);
        }
        if word == "mock" {
            let call = self.mocked_tool("the name of a tool after `mock`")?;
            let answer = if self.eat("=>") {
                MockAnswer::Gives(self.expr())
            } else if self.eat_word("fails") {
                MockAnswer::Fails(self.string("the message in quotes")?)
            } else {
                let d = self.expected("`=>` and a value, or `fails` and a message");
                self.report(d);
                return None;
            };
            self.semicolon("the mock")?;
            let mock = Mock { call, answer, span: self.since(start) };
            self.mocks.extend(top.then_some(mock));
            return Some(None);
        }
        let word = self.here();
        if self.eat_word("snapshot") {
            let value = self.expr();
            self.semicolon("the value")?;
            let variable = format!("$snapshot {}", self.snapshots.len());
            let snapshot =
                Snapshot { variable: variable.clone(), value: value.span, span: self.since(start) };
            self.snapshots.extend(top.then_some(snapshot));
            let name = Name { text: variable, span: word };
            return Some(Some(Stmt { kind: StmtKind::Let(name, None, value), span: self.since(start) }));
        }
        let kind = if self.eat_word("refused") {
            ExpectKind::Refused
        } else {
            let none = self.eat_word("no");
            self.expect_word("call", "or `no call`, `refused` or `snapshot`, after `expect`").then_some(())?;
            if none { ExpectKind::NoCall } else { ExpectKind::Call }
        };
        let call = self.mocked_tool("the name of a tool")?;
        self.semicolon("the expectation")?;
        let expectation = Expectation { kind, call, span: self.since(start) };
        self.expectations.extend(top.then_some(expectation));
        Some(None)
    }

    /// `name` or `name(…)`.
    fn mocked_tool(&mut self, what: &str) -> Option<Expr> {
        if self.now() == Token::Word {
            let e = called(self.expr());
            if matches!(e.kind, ExprKind::Var(_) | ExprKind::Call(..)) {
                return Some(e);
            }
            let d = Diagnostic::error("A010", format!("expected {what}"), e.span)
                .help("write `name`, or `name(…)` with a constant, a name or `_` for each argument");
            self.diagnostics.push(d);
            return None;
        }
        let d = self.expected(what);
        self.report(d);
        None
    }

    fn stmt(&mut self) -> Option<Stmt> {
        let start = self.here();
        let word = self.word_ahead(0).unwrap_or("").to_string();
        let next_word = self.peek(1).token == Token::Word;
        let kind = match &*word {
            "let" => {
                self.bump();
                return self.let_stmt(start);
            }
            "if" => {
                self.bump();
                self.if_stmt()?
            }
            "while" => {
                self.bump();
                let cond = self.condition();
                let max = if self.eat_word("max") { self.whole("a whole number of rounds") } else { None };
                StmtKind::While(cond, max, self.block("this loop")?)
            }
            "break" | "continue" => {
                self.bump();
                self.semicolon(&format!("`{word}`"))?;
                if word == "break" { StmtKind::Break } else { StmtKind::Continue }
            }
            "try" => {
                self.bump();
                let body = self.block("this `try`")?;
                if self.at_word("finally") {
                    let d = self.expected("`catch` or `ensure`").help("it is written `ensure { … }`");
                    self.report(d);
                    return None;
                }
                if self.eat_word("ensure") {
                    let kind = StmtKind::Ensure(body, self.block("this `ensure`")?);
                    return Some(Stmt { kind, span: self.since(start) });
                }
                self.expect_word("catch", "and a name for the message after the block of `try`")
                    .then_some(())?;
                // Either word alone is the name of a variable.
                let kind = match (self.word_ahead(0), self.word_ahead(1)) {
                    (Some("error"), Some(_)) => CatchKind::Error,
                    (Some("refusal"), Some(_)) => CatchKind::Refusal,
                    _ => CatchKind::Any,
                };
                if kind != CatchKind::Any {
                    self.bump();
                }
                let name = self.name("a name for the message")?;
                let tried = StmtKind::Try(body, Catch { kind, name }, self.block("this `catch`")?);
                if self.at_word("ensure") && matches!(self.peek(1).token, Token::Punct("{")) {
                    let span = self.since(start);
                    self.bump();
                    let body = Block { stmts: vec![Stmt { kind: tried, span }], span };
                    StmtKind::Ensure(body, self.block("this `ensure`")?)
                } else {
                    tried
                }
            }
            "assert" => {
                self.bump();
                let e = self.expr();
                let message = if self.eat(",") { Some(self.message()?) } else { None };
                self.semicolon("the assertion")?;
                StmtKind::Assert(e, message)
            }
            "return" => {
                self.bump();
                let e = self.expr();
                self.semicolon("the result")?;
                StmtKind::Return(e)
            }
            "parallel" => {
                self.bump();
                self.parallel(start)?
            }
            "for" if next_word => {
                self.bump();
                let name = self.name("a name after `for`")?;
                self.expect_word("in", "after the name").then_some(())?;
                let list = self.head();
                StmtKind::For(name, list, self.block("this loop")?)
            }
            "match" if !matches!(self.peek(1).token, Token::Punct("=")) => {
                self.bump();
                let e = self.head();
                StmtKind::Match(e, self.arms()?)
            }
            "guard" if next_word => {
                self.bump();
                let name = self.name("the name of a variable")?;
                self.expect_word("where", "and a condition after the variable").then_some(())?;
                let e = self.expr();
                let retry = if self.eat_word("retry") {
                    Some(self.whole("a whole number of retries")?)
                } else {
                    None
                };
                self.semicolon("the guard")?;
                StmtKind::Guard(name, e, retry)
            }
            _ => {
                let mut d = self.expected("a statement");
                d = match self.peek(1).token {
                    Token::Punct("=") if !word.is_empty() => {
                        let name = Name { text: word.clone(), span: start };
                        self.lost = vec![name];
                        d.help(format!("write `let {word} = …;`"))
                    }
                    _ if self.statement_slip(&word).is_none() && self.at_last_value() => {
                        d.help("the result of a pipeline is said with `return …;`")
                    }
                    Token::Punct("(") if !word.is_empty() && self.statement_slip(&word).is_none() => {
                        d.help(format!("a call is written `let name = {word}(…);`"))
                    }
                    _ => match nearest(&word, keywords::words(Role::Statement)) {
                        Some(near) => d.help(format!("did you mean `{near}`?")),
                        None if self.at(";") => d.help("remove the `;`"),
                        None => d,
                    },
                };
                self.report(d);
                return None;
            }
        };
        Some(Stmt { kind, span: self.since(start) })
    }

    /// Returns whether a value stands here at the end of a block, as other languages have it.
    fn at_last_value(&self) -> bool {
        let mut depth = 0usize;
        for ahead in 0..MAX_LOOKAHEAD {
            match self.peek(ahead).token {
                Token::Punct("(" | "[" | "{") => depth += 1,
                Token::Punct("}") if depth == 0 => return ahead > 0,
                Token::Punct(")" | "]" | "}") => depth = depth.saturating_sub(1),
                Token::Punct(";" | "=") if depth == 0 => return false,
                Token::End => return false,
                _ => {}
            }
        }
        false
    }

    /// The condition before a block. One of which only a part could be read is not looked at any more.
    fn condition(&mut self) -> Expr {
        let e = self.head();
        if self.at("{") || self.at_word("max") {
            return e;
        }
        Expr { kind: ExprKind::Error, span: e.span, height: 1 }
    }

    /// An expression in the head of a statement.
    fn head(&mut self) -> Expr {
        self.with_head(true, Self::expr)
    }

    /// Parses a part of which all or nothing is in the head of a statement.
    fn with_head<T>(&mut self, in_head: bool, part: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.in_head, in_head);
        let out = part(self);
        self.in_head = around;
        out
    }

    /// The part of an `if` before its condition. `None` after an error.
    fn if_head(&mut self) -> Option<IfHead> {
        if !self.eat_word("let") {
            return Some(IfHead::Plain);
        }
        let is_open = |ahead: usize| matches!(self.peek(ahead).token, Token::Punct("{"));
        let is_behind = matches!(self.peek(1).token, Token::Punct(".")) && is_open(3);
        let case = self.text_of(self.peek(if is_behind { 2 } else { 0 }));
        if capitalized(case) && (is_open(1) || is_behind) {
            let pattern = self.pattern()?;
            return self.expect("=", "after the pattern").then_some(IfHead::Case(pattern));
        }
        let name = self.name("a name after `if let`")?;
        self.expect("=", "after the name").then_some(IfHead::Option(name))
    }

    /// Reads `else`, if it is here, and returns whether `if` follows. `elif` of another language is reported,
    /// and read as both.
    fn otherwise(&mut self) -> Option<bool> {
        if self.eat_word("else") {
            return Some(self.eat_word("if"));
        }
        if !matches!(self.word_ahead(0), Some("elif" | "elsif" | "elseif")) {
            return None;
        }
        let d = self.expected("a statement");
        self.report(d);
        self.bump();
        Some(true)
    }

    fn if_stmt(&mut self) -> Option<StmtKind> {
        let head = self.if_head()?;
        let cond = self.condition();
        let then = self.block("this `if`")?;
        let start = self.here();
        let other = if let Some(is_if) = self.otherwise() {
            if is_if {
                let kind = self.nested(Self::if_stmt)?;
                let span = self.since(start);
                Some(Block { stmts: vec![Stmt { kind, span }], span })
            } else {
                Some(self.block("this `else`")?)
            }
        } else {
            None
        };
        Some(match head {
            IfHead::Plain => StmtKind::If(cond, then, other),
            IfHead::Option(name) => StmtKind::IfLet(name, cond, then, other),
            IfHead::Case(pattern) => {
                let end = Span { start: then.span.end, ..then.span };
                let other = other.unwrap_or(Block { stmts: Vec::new(), span: end });
                let rest = Arm { pattern: other_cases(other.span), body: other };
                StmtKind::Match(cond, vec![Arm { pattern, body: then }, rest])
            }
        })
    }

    fn arms(&mut self) -> Option<Vec<Arm>> {
        let open = self.here();
        self.expect("{", "and the cases after the value").then_some(())?;
        let mut arms = Vec::new();
        while !self.at("}") && !self.at_end() && !self.at_item() {
            let Some(arm) = self.arm() else {
                self.skip_block();
                return None;
            };
            arms.push(arm);
        }
        self.close(open, "}", "this `match`");
        Some(arms)
    }

    fn arm(&mut self) -> Option<Arm> {
        let pattern = self.pattern()?;
        if self.at("{") {
            let d = self.expected("`=>` after the pattern").help("a case is written `pattern => { … }`");
            self.report(d);
        } else {
            self.expect("=>", "after the pattern").then_some(())?;
        }
        let start = self.here();
        if self.at_word("return") {
            let d = self
                .expected("`{` before the statements of this case")
                .help("the statements of a case stand in braces: `pattern => { return x; }`");
            self.report(d);
            self.bump();
            let kind = StmtKind::Return(self.expr());
            let span = self.since(start);
            let _ = self.eat(";") || self.eat(",");
            return Some(Arm { pattern, body: Block { stmts: vec![Stmt { kind, span }], span } });
        }
        let body = self.block("this case")?;
        self.eat(",");
        Some(Arm { pattern, body })
    }

    /// The pattern of a case: variants, one of them with its fields, or none for `_`.
    fn pattern(&mut self) -> Option<Pattern> {
        let start = self.here();
        let mut variants = Vec::new();
        let (mut texts, mut numbers) = (0, 0);
        loop {
            let variant = if self.now() == Token::Str {
                texts += 1;
                let lit = self.string_token();
                Name { text: lit.value, span: lit.span }
            } else if self.now() == Token::Number {
                numbers += 1;
                let token = self.bump();
                Name { text: self.text_of(token).to_string(), span: self.span_of(token) }
            } else {
                let key = self.key("a variant or `_`")?;
                self.behind(key)
            };
            variants.push(variant);
            if !self.eat("|") {
                break;
            }
        }
        let mut fields = Vec::new();
        let open = self.here();
        // Only a case, which has a capital letter, has fields.
        let own = |v: &Name| capitalized(v.text.rsplit('.').next().unwrap_or_default());
        let has_fields = variants.last().is_some_and(own) || self.at_pattern_fields();
        if has_fields && self.eat("{") {
            fields = self.list(open, "}", "this pattern", Self::pattern_field).0;
            if variants.len() > 1 || self.at("|") {
                let d = Diagnostic::error("A015", "a pattern with fields is for one case", self.since(start))
                    .help("write a case of the `match` for each: `First { x } => …`, `Second { x } => …`");
                self.report(d);
                return None;
            }
        }
        let form = match (variants.len(), texts, numbers) {
            (all, _, n) if n == all => PatternForm::Numbers,
            (all, n, _) if n == all => PatternForm::Texts,
            (.., 0) => PatternForm::Words,
            _ => {
                let d =
                    Diagnostic::error("A015", "a pattern is for numbers or for others", self.since(start))
                        .help("write a case of the `match` for each kind of value");
                self.report(d);
                return None;
            }
        };
        if form == PatternForm::Words && variants.len() == 1 && variants[0].text == "_" {
            variants.clear();
        }
        Some(Pattern { variants, form, fields, span: self.since(start) })
    }

    /// Returns true if braces with an arrow behind them begin here.
    fn at_pattern_fields(&self) -> bool {
        let close =
            (1..MAX_LOOKAHEAD).find(|n| matches!(self.peek(*n).token, Token::Punct("}" | ";") | Token::End));
        self.at("{") && close.is_some_and(|n| matches!(self.peek(n + 1).token, Token::Punct("=>")))
    }

    /// `field` or `field: name`.
    fn pattern_field(&mut self) -> Option<PatternField> {
        if self.at("...") || self.at(".") {
            let d = self
                .expected("the name of a field")
                .help("a pattern need not name all fields: leave the dots out");
            self.report(d);
            return None;
        }
        let field = self.key("the name of a field")?;
        let name = if self.eat(":") { self.name("a name for the field")? } else { field.clone() };
        Some(PatternField { field, name })
    }

    fn parallel(&mut self, start: Span) -> Option<StmtKind> {
        if self.eat_word("for") {
            let name = self.name("a name after `for`")?;
            self.expect_word("in", "after the name").then_some(())?;
            let list = self.head();
            let max = if self.eat_word("max_concurrency") { self.whole("a whole number") } else { None };
            return Some(StmtKind::ParallelFor(name, list, max, self.block("this loop")?));
        }
        let max_concurrency =
            if self.eat_word("max_concurrency") { self.whole("a whole number") } else { None };
        let block = self.block("this `parallel`")?;
        let mut runs = Vec::new();
        for stmt in block.stmts {
            match stmt.kind {
                StmtKind::Run(run) => runs.push(run),
                StmtKind::Error(_) => {}
                _ => self.diagnostics.push(
                    Diagnostic::error("A015", "only calls are allowed in `parallel`", stmt.span)
                        .label("not of the form `let x = run …;`")
                        .remark(Span { end: start.start + 8, ..start }, "in this `parallel`")
                        .help(
                            "put the other statements before or after, or into a pipeline that is run here",
                        ),
                ),
            }
        }
        if self.expect_word("join", "after the block of `parallel`") {
            self.semicolon("`join`")?;
        } else {
            self.eat(";");
        }
        Some(StmtKind::Parallel { max_concurrency, runs })
    }

    fn let_stmt(&mut self, start: Span) -> Option<Stmt> {
        let name = self.name("a name after `let`")?;
        self.lost = vec![name.clone()];
        let ty = if self.eat(":") { Some(self.ty()) } else { None };
        self.expect("=", "after the name of the variable").then_some(())?;
        if self.at_word("run") && self.peek(1).token == Token::Word {
            self.bump();
            let target = self.path_name("the name of a task or pipeline")?;
            let open_word = self.here();
            self.expect_word("with", "and the arguments after the name").then_some(())?;
            let open = self.here();
            self.expect("{", "and the arguments after `with`").then_some(())?;
            let (args, _) = self.list(open, "}", "the arguments", Self::pair);
            let args_span = self.since(open_word);
            let clauses = self.clauses();
            self.semicolon("the call")?;
            let span = self.since(start);
            let run = Run { name, ty, target, args: Args::Named(args), args_span, clauses, span };
            return Some(Stmt { kind: StmtKind::Run(run), span });
        }
        let value = self.expr();
        if let ExprKind::Call(target, args) = value.kind {
            let args_span = Span { start: target.span.end, ..value.span };
            let clauses = self.clauses();
            self.semicolon("the call")?;
            let span = self.since(start);
            let run = Run { name, ty, target, args: Args::Positional(args), args_span, clauses, span };
            return Some(Stmt { kind: StmtKind::Run(run), span });
        }
        if self.word_ahead(0).is_some_and(|w| keywords::is(w, Role::Clause)) && !self.peek(0).first_on_line {
            let found = self.found();
            let d = Diagnostic::error(
                "A015",
                format!("{found} can only follow the call of a task or pipeline"),
                self.here(),
            )
            .remark(value.span, "this is not a call")
            .help("remove it: only a call can have `by`, a timeout or retries");
            self.report(d);
            self.clauses();
        }
        self.semicolon("the value")?;
        Some(Stmt { kind: StmtKind::Let(name, ty, value), span: self.since(start) })
    }

    fn clauses(&mut self) -> Vec<Clause> {
        let mut clauses: Vec<(String, Clause)> = Vec::new();
        while let Some(word) = self.word_ahead(0) {
            let word = word.to_string();
            let start = self.here();
            let kind = match &*word {
                "by" => {
                    self.bump();
                    if self.now() == Token::Str {
                        let d = self.expected("the name of an agent after `by`");
                        let lit = self.string_token();
                        self.diagnostics
                            .push(d.help(format!("an agent is named without quotes: `by {}`", lit.value)));
                        Some(ClauseKind::By(Name { text: lit.value, span: lit.span }))
                    } else {
                        self.path_name("the name of an agent after `by`").map(ClauseKind::By)
                    }
                }
                "retries" => {
                    self.bump();
                    self.whole("a whole number after `retries`").map(ClauseKind::Retries)
                }
                "timeout" => {
                    self.bump();
                    self.number("a number of seconds after `timeout`").map(ClauseKind::Timeout)
                }
                "on_fail" => {
                    self.bump();
                    if self.eat_word("abort") {
                        Some(ClauseKind::Abort)
                    } else if self.eat_word("use") {
                        Some(ClauseKind::Use(self.expr()))
                    } else {
                        let d = self.expected("`abort` or `use` and a value after `on_fail`");
                        self.report(d);
                        None
                    }
                }
                w => {
                    let near = match w {
                        "retry" | "attempts" | "tries" | "max_retries" => Some("retries"),
                        "on_error" | "onerror" | "fallback" | "or_else" | "otherwise" => Some("on_fail"),
                        "using" | "via" | "agent" => Some("by"),
                        "within" | "deadline" => Some("timeout"),
                        _ => nearest(w, keywords::words(Role::Clause)),
                    };
                    if !self.peek(0).first_on_line
                        && let Some(near) = near
                    {
                        let d = self.expected("`;` or a clause").help(format!("did you mean `{near}`?"));
                        self.report(d);
                    }
                    break;
                }
            };
            let Some(kind) = kind else {
                // The other clauses are read.
                while !matches!(self.now(), Token::End | Token::Punct(";" | "{" | "}"))
                    && !self.peek(0).first_on_line
                    && !self.word_ahead(0).is_some_and(|w| keywords::is(w, Role::Clause))
                {
                    self.bump();
                }
                continue;
            };
            let clause = Clause { kind, span: self.since(start) };
            if let Some((_, first)) = clauses.iter().find(|(w, _)| *w == word) {
                self.diagnostics.push(
                    Diagnostic::error("A014", format!("`{word}` is given twice"), clause.span)
                        .remark(first.span, "first here")
                        .help("remove one of them")
                        .fix(Fix {
                            span: clause.span,
                            replacement: String::new(),
                            applicability: Applicability::Unsafe,
                        }),
                );
                continue;
            }
            clauses.push((word, clause));
        }
        clauses.into_iter().map(|(_, c)| c).collect()
    }

    // ----- expressions -----

    fn expr(&mut self) -> Expr {
        let start = self.here();
        let before = self.before();
        match self.nested(|p| p.binary(1)) {
            Some(e) => e,
            None => {
                let span = if self.at_end() { before } else { Span { end: start.start, ..start } };
                Expr { kind: ExprKind::Error, span, height: 1 }
            }
        }
    }

    /// An element of a list: nothing if there is no expression, so that a slip leaves no hole behind.
    fn element(&mut self) -> Option<Expr> {
        Some(self.expr())
    }

    fn pair(&mut self) -> Option<(Name, Expr)> {
        let is_word = self.now() == Token::Word;
        let key = self.key("a key")?;
        match is_word && self.at_field_end() {
            true => self.field_of_its_name(key),
            false => self.value_of(key),
        }
    }

    /// Returns true where a field without a value ends: `{ name }` is `{ name: name }`.
    fn at_field_end(&self) -> bool {
        self.at(",") || self.at("}")
    }

    /// A field that is written as the variable whose value it has.
    fn field_of_its_name(&mut self, key: Name) -> Option<(Name, Expr)> {
        if keywords::is_reserved(&key.text) {
            return self.value_of(key);
        }
        let value = self.node(ExprKind::Var(key.text.clone()), key.span)?;
        Some((key, value))
    }

    /// A field of a record, or a key of a map with its value.
    fn entry(&mut self) -> Option<(Name, Expr)> {
        let key = match self.now() {
            Token::Str => {
                let lit = self.string_token();
                Name { text: lit.value, span: lit.span }
            }
            Token::Punct("[") => {
                let d = self.expected("a key").help(
                    "a key that is computed is set by a function: `set(m, key, value)`, with `{}` as the first `m`",
                );
                self.report(d);
                return None;
            }
            Token::Word => return self.pair(),
            _ => self.key("a key")?,
        };
        self.value_of(key)
    }

    /// The value of a key, behind a colon.
    fn value_of(&mut self, key: Name) -> Option<(Name, Expr)> {
        if !self.expect(":", &format!("and a value after `{}`", key.text)) {
            let value = Expr { kind: ExprKind::Error, span: key.span, height: 1 };
            return Some((key, value));
        }
        Some((key, self.expr()))
    }

    /// Makes a node, unless the tree would become too high.
    fn node(&mut self, kind: ExprKind, span: Span) -> Option<Expr> {
        let below = Expr { kind, span, height: 0 };
        let height = below.children().iter().map(|e| e.height).max().unwrap_or(0);
        if height >= MAX_HEIGHT {
            self.too_deep(Span { end: span.start, ..span });
            return None;
        }
        Some(Expr { height: height + 1, ..below })
    }

    fn operator(&self) -> Option<BinaryOp> {
        let p = match (self.now(), self.word_ahead(0)) {
            (Token::Punct(p), _) => p,
            // Of another language, which is reported.
            (_, Some("and")) => "&&",
            (_, Some("or")) => "||",
            _ => return None,
        };
        BinaryOp::ALL.into_iter().find(|op| op.as_str() == p)
    }

    /// Precedence climbing: reads operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8) -> Option<Expr> {
        let mut left = self.unary()?;
        while let Some(op) = self.operator().filter(|op| op.precedence() >= least) {
            let op_span = self.here();
            if self.now() == Token::Word {
                let found = self.found();
                let d = self.expected("an operator").help(format!("{found} is written `{}`", op.as_str()));
                self.report(d);
            }
            self.bump();
            let right = self.nested(|p| p.binary(op.precedence() + 1))?;
            let span = left.span.to(right.span);
            left = self.node(ExprKind::Binary(op, op_span, Box::new(left), Box::new(right)), span)?;
        }
        // `c ? a : b` of another language: reported, and read as a whole.
        if least == 1 && self.at("?") {
            let d = self
                .expected("the end of the expression")
                .help("a choice is written `if c { a } else { b }`");
            self.report(d);
            self.bump();
            let then = self.nested(|p| p.binary(1))?;
            if !self.eat(":") {
                return None;
            }
            let other = self.nested(|p| p.binary(1))?;
            let span = left.span.to(other.span);
            let kind = ExprKind::If(None, Box::new(left), Box::new(then), Box::new(other));
            return self.node(kind, span);
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Expr> {
        let start = self.here();
        let op = match self.now() {
            Token::Punct("!") => UnaryOp::Not,
            Token::Punct("-") => UnaryOp::Neg,
            _ => return self.postfix(),
        };
        self.bump();
        let e = self.nested(Self::unary)?;
        let span = start.to(e.span);
        self.node(ExprKind::Unary(op, Box::new(e)), span)
    }

    fn postfix(&mut self) -> Option<Expr> {
        let mut e = self.primary()?;
        loop {
            if self.eat(".") {
                let name = self.key("the name of a field after `.`")?;
                if let ExprKind::Var(import) = &e.kind
                    && self.at_fields(&name.text)
                {
                    // `lib.Case { … }`
                    let text = format!("{import}.{}", name.text);
                    let name = Name { text, span: e.span.to(name.span) };
                    let open = self.here();
                    self.bump();
                    let (fields, _) = self.list(open, "}", "this case", Self::pair);
                    let span = self.since(e.span);
                    e = self.node(ExprKind::Construct(name, fields), span)?;
                    continue;
                }
                if self.at("(") {
                    // `xs.map(f)` is `map(xs, f)`.
                    let open = self.here();
                    self.bump();
                    let (rest, _) = self.list(open, ")", "the arguments", Self::argument);
                    let span = self.since(e.span);
                    let args = std::iter::once(e).chain(rest).collect();
                    e = self.node(ExprKind::Call(name, args), span)?;
                    continue;
                }
                let span = e.span.to(name.span);
                e = self.node(ExprKind::Field(Box::new(e), name), span)?;
            } else if self.eat("?.") {
                let name = self.key("the name of a field after `?.`")?;
                let span = e.span.to(name.span);
                if self.at("(") || self.at("[") {
                    let d = Diagnostic::error("A010", "only a field can follow `?.`", name.span)
                        .help("look inside the option: `if let x = … { x.f() }`, or give another value: `(x ?? …).f()`");
                    self.report(d);
                    return None;
                }
                e = self.node(ExprKind::OptionalField(Box::new(e), name), span)?;
            } else if self.at("[") {
                let open = self.here();
                self.bump();
                let index = self.expr();
                if self.at(":") {
                    let d = self
                        .expected("`]` at the end of this index")
                        .help("a part of a list or text is `slice(xs, from, to)`, without the item at `to`");
                    self.report(d);
                    self.skip_to_comma("]");
                    self.eat("]");
                    return self.node(ExprKind::Error, self.since(e.span));
                }
                self.close(open, "]", "this index");
                let span = self.since(e.span);
                e = self.node(ExprKind::Index(Box::new(e), Box::new(index)), span)?;
            } else {
                return Some(e);
            }
        }
    }

    fn primary(&mut self) -> Option<Expr> {
        let token = self.peek(0);
        let start = self.span_of(token);
        let kind = match token.token {
            Token::Str => {
                let lit = self.string_token();
                ExprKind::Str(lit.value)
            }
            Token::Template => ExprKind::Template(self.template("a string")?),
            Token::Number => {
                self.bump();
                ExprKind::Number(self.text_of(token).to_string())
            }
            Token::Punct("(") => {
                self.bump();
                let e = self.with_head(false, Self::expr);
                if self.at(",") {
                    let d = self.expected("`)` at the end of this expression").help(
                        "several values together are a record, `{ first: …, second: … }`, or a list, `[…]`",
                    );
                    self.report(d);
                    while self.skip_to_comma(")") && self.eat(",") {}
                    self.eat(")");
                    return self.node(ExprKind::Error, self.since(start));
                }
                self.close(start, ")", "this expression");
                ExprKind::Paren(Box::new(e))
            }
            Token::Punct("[") => {
                let (first, errors) = (self.at, self.diagnostics.len());
                self.bump();
                let items = self.list(start, "]", "this list", Self::element).0;
                // A comprehension of another language, whose variable nothing binds.
                let is_loop = |token: &Lexed| token.token == Token::Word && self.text_of(*token) == "for";
                match self.diagnostics.len() > errors && self.tokens[first..self.at].iter().any(is_loop) {
                    true => ExprKind::Error,
                    false => ExprKind::List(items),
                }
            }
            Token::Punct("{") => {
                self.bump();
                if self.eat("...") {
                    let of = self.expr();
                    if !self.eat(",") && !self.at("}") {
                        let d = self.expected("`,` or `}` after the record that is copied");
                        self.report(d);
                        self.skip_to_comma("}");
                        self.eat(",");
                    }
                    ExprKind::Update(Box::new(of), self.list(start, "}", "this record", Self::pair).0)
                } else {
                    let mut quoted = false;
                    let entries = self.list(start, "}", "this record", |p| {
                        quoted |= p.now() == Token::Str;
                        p.entry()
                    });
                    if quoted { ExprKind::Map(entries.0) } else { ExprKind::Record(entries.0) }
                }
            }
            Token::Word => return self.word_expr(),
            Token::Bad => {
                // Reported by the lexer; what follows it may be sound.
                self.bump();
                ExprKind::Error
            }
            _ => {
                let d = self.expected("an expression");
                self.report(d);
                return None;
            }
        };
        let span = self.since(start);
        self.node(kind, span)
    }

    /// An argument of a call: an expression, or a function such as `x => x + 1`.
    fn argument(&mut self) -> Option<Expr> {
        let is_lambda = self.at_word("lambda")
            && (self.peek(1).token == Token::Word || self.peek(1).token == Token::Punct(":"));
        if is_lambda || (matches!(self.word_ahead(0), Some("function" | "fn" | "func")) && self.at_function())
        {
            let start = self.here();
            let d = self.expected("a function").help("a function is written `x => …`, or `(x, y) => …`");
            self.report(d);
            if is_lambda {
                self.skip_to_comma(")");
                return self.node(ExprKind::Error, self.since(start));
            }
            // Its parameters and its block.
            let mut depth = 0usize;
            while !self.at_end() && !self.at_item() {
                match self.bump().token {
                    Token::Punct("{") => depth += 1,
                    Token::Punct("}") if depth <= 1 => break,
                    Token::Punct("}") => depth -= 1,
                    _ => {}
                }
            }
            return self.node(ExprKind::Error, self.since(start));
        }
        if !self.is_lambda() {
            return Some(self.expr());
        }
        let start = self.here();
        let known = self.diagnostics.len();
        let params = if self.at("(") {
            let open = self.here();
            self.bump();
            let (params, _) = self.list(open, ")", "the parameters", |p| p.name("the name of a parameter"));
            params
        } else {
            vec![self.name("the name of a parameter")?]
        };
        let are_read = self.diagnostics.len() == known;
        self.expect("=>", "after the parameters").then_some(())?;
        let body = self.nested(|p| p.value_of_arrow())?;
        let span = start.to(body.span);
        // A missing parameter would be reported again where the function is used, and in its body.
        self.node(if are_read { ExprKind::Lambda(params, Box::new(body)) } else { ExprKind::Error }, span)
    }

    /// Returns true if the word here and its parameters are followed by a block.
    fn at_function(&self) -> bool {
        if self.peek(1).token != Token::Punct("(") {
            return false;
        }
        let close = (2..MAX_LOOKAHEAD).find(|n| self.peek(*n).token == Token::Punct(")"));
        close.is_some_and(|n| self.peek(n + 1).token == Token::Punct("{"))
    }

    /// Returns true if a function begins here: words and commas in parentheses, or a word, before `=>`.
    fn is_lambda(&self) -> bool {
        let arrow = |ahead| matches!(self.peek(ahead).token, Token::Punct("=>"));
        if self.now() == Token::Word {
            return arrow(1);
        }
        if !self.at("(") {
            return false;
        }
        let mut n = 1;
        while matches!(self.peek(n).token, Token::Word | Token::Punct(",")) {
            n += 1;
        }
        matches!(self.peek(n).token, Token::Punct(")")) && arrow(n + 1)
    }

    /// Parses the part after `=>`: an expression, where `{` begins a record if a key follows, and a block if
    /// not.
    fn value_of_arrow(&mut self) -> Option<Expr> {
        let record = match self.peek(1).token {
            Token::Punct("}" | "...") => true,
            Token::Word | Token::Str => matches!(self.peek(2).token, Token::Punct(":" | ",")),
            _ => false,
        };
        if self.at("{") && !record { self.value_block("this block") } else { Some(self.expr()) }
    }

    /// `{ let x = e; e }`: a block that has a value.
    fn value_block(&mut self, of: &'static str) -> Option<Expr> {
        self.with_head(false, |p| p.value_block_inner(of))
    }

    fn value_block_inner(&mut self, of: &'static str) -> Option<Expr> {
        let open = self.here();
        self.expect("{", "and a value").then_some(())?;
        let mut lets = Vec::new();
        while self.at_word("let") {
            let start = self.here();
            self.bump();
            let name = self.name("a name after `let`")?;
            let ty = if self.eat(":") { Some(self.ty()) } else { None };
            self.expect("=", "after the name of the variable").then_some(())?;
            let value = self.expr();
            self.semicolon("the value")?;
            lets.push(Let { name, ty, value, span: self.since(start) });
        }
        let at = self.here();
        let value = if self.at("}") || self.at_word("return") {
            let d = self.expected("a value").help(
                "each branch of an `if` or `match` that has a value is an expression: `if c { a } else { b }`, without \
                 `return` and `;`",
            );
            self.report(d);
            if self.eat_word("return") {
                self.expr();
                self.eat(";");
            }
            Expr { kind: ExprKind::Error, span: Span { end: at.start, ..at }, height: 1 }
        } else {
            self.expr()
        };
        if self.at(";") {
            let d = self
                .expected(&format!("`}}` at the end of {of}"))
                .help("the last expression is the value: remove the `;`");
            self.report(d);
            self.bump();
        }
        self.close(open, "}", of);
        let span = self.since(open);
        self.node(ExprKind::Block(lets, Box::new(value)), span)
    }

    /// The rest of an `if` that has a value.
    fn if_value(&mut self, start: Span) -> Option<Expr> {
        let head = self.if_head()?;
        let condition = self.head();
        let then = self.value_block("this `if`")?;
        let at = self.here();
        let Some(is_if) = self.otherwise() else {
            let d = self
                .expected("`else` after the first value")
                .help("an `if` that has a value says what it is otherwise: `if c { a } else { b }`");
            self.report(d);
            return None;
        };
        let other = if is_if { self.nested(|p| p.if_value(at))? } else { self.value_block("this `else`")? };
        let span = self.since(start);
        let bound = match head {
            IfHead::Plain => None,
            IfHead::Option(name) => Some(name),
            IfHead::Case(pattern) => {
                let rest = ValueArm { pattern: other_cases(other.span), value: other };
                let arms = vec![ValueArm { pattern, value: then }, rest];
                return self.node(ExprKind::Match(Box::new(condition), arms), span);
            }
        };
        self.node(ExprKind::If(bound, Box::new(condition), Box::new(then), Box::new(other)), span)
    }

    /// Returns whether `match` begins an expression here; it may be the name of a variable.
    fn at_match_value(&self) -> bool {
        let next = self.peek(1);
        match next.token {
            Token::Str | Token::Template | Token::Number => true,
            Token::Word => {
                let word = self.text_of(next);
                let part = keywords::TABLE
                    .iter()
                    .any(|k| k.word == word && matches!(k.role, Role::Clause | Role::Part | Role::Link));
                // A variable of this name, unless a task `match` is called: `run match with { … }`.
                let is_whole = matches!(self.peek(2).token, Token::Punct("{"));
                let part = part && !(is_whole && word != "with" && !keywords::is_reserved(word));
                let begins = keywords::is_reserved(word) && keywords::is(word, Role::Statement);
                !(next.first_on_line || part || begins)
            }
            // `match (x) { … }` or a call `match(x)`: what follows the bracket decides.
            Token::Punct("(") => {
                let mut depth = 0usize;
                for ahead in 1..MAX_LOOKAHEAD {
                    match self.peek(ahead).token {
                        Token::Punct("(") => depth += 1,
                        Token::Punct(")") => {
                            depth -= 1;
                            if depth == 0 {
                                return matches!(self.peek(ahead + 1).token, Token::Punct("{"));
                            }
                        }
                        Token::End | Token::Punct(";") => return false,
                        _ => {}
                    }
                }
                false
            }
            _ => false,
        }
    }

    /// The rest of a `match` that has a value.
    fn match_value(&mut self, start: Span) -> Option<Expr> {
        let e = self.head();
        let open = self.here();
        self.expect("{", "and the cases after the value").then_some(())?;
        let mut arms = Vec::new();
        while !self.at("}") && !self.at_end() && !self.at_item() {
            let pattern = self.pattern()?;
            self.expect("=>", "after the pattern").then_some(())?;
            let value = self.nested(|p| p.value_of_arrow())?;
            let block = matches!(value.kind, ExprKind::Block(..));
            arms.push(ValueArm { pattern, value });
            if !self.eat(",") && !block && !self.at("}") {
                let d = self.expected("`,` after the value of this case");
                self.report(d);
                // A missing comma; anything else is no case.
                if !matches!(self.now(), Token::Word | Token::Str | Token::Number) {
                    return None;
                }
            }
        }
        self.close(open, "}", "this `match`");
        let span = self.since(start);
        self.node(ExprKind::Match(Box::new(e), arms), span)
    }

    /// Returns whether the fields of a case follow its name. No block begins with a key.
    fn at_fields(&self, word: &str) -> bool {
        capitalized(word)
            && self.at("{")
            && match (self.peek(1).token, self.peek(2).token) {
                (Token::Word | Token::Str, Token::Punct(":")) => true,
                (Token::Word, Token::Punct(",")) => true,
                // In the head of a statement it is the block, unless that follows.
                (Token::Word, Token::Punct("}")) => {
                    !self.in_head || matches!(self.peek(3).token, Token::Punct("{"))
                }
                // No empty block stands before these.
                (Token::Punct("}"), Token::Punct(")" | "," | ";" | "]")) => true,
                _ => false,
            }
    }

    fn word_expr(&mut self) -> Option<Expr> {
        let start = self.here();
        let word = self.text_of(self.peek(0)).to_string();
        let constant = match &*word {
            "true" => Some(ExprKind::Bool(true)),
            "false" => Some(ExprKind::Bool(false)),
            "null" => Some(ExprKind::Null),
            _ => None,
        };
        if let Some(kind) = constant {
            self.bump();
            return self.node(kind, start);
        }
        if word == "if" {
            self.bump();
            return self.nested(|p| p.if_value(start));
        }
        if word == "match" && self.at_match_value() {
            self.bump();
            return self.nested(|p| p.match_value(start));
        }
        if keywords::is_reserved(&word) {
            let d = self.expected("an expression");
            self.report(d);
            return None;
        }
        if let Some(help) = self.prefix_slip(&word) {
            let d = self.expected("an expression").help(help);
            self.report(d);
            self.bump();
            if word == "run" {
                // The arguments are not looked at.
                while !matches!(self.now(), Token::End | Token::Punct(";")) && !self.peek(0).first_on_line {
                    self.bump();
                }
                return self.node(ExprKind::Error, self.since(start));
            }
            let e = self.nested(Self::unary)?;
            let span = start.to(e.span);
            return match word.as_str() {
                "new" => self.node(ExprKind::Error, span),
                "not" => self.node(ExprKind::Unary(UnaryOp::Not, Box::new(e)), span),
                _ => Some(e),
            };
        }
        self.bump();
        let next = self.peek(0);
        if word == "endorse"
            && next.token == Token::Word
            && !next.first_on_line
            && !keywords::is(self.text_of(next), Role::Clause)
        {
            let e = self.expr();
            self.expect_word("in", "and the permitted values after the value to endorse").then_some(())?;
            let open = self.here();
            self.expect("[", "and the permitted values after `in`").then_some(())?;
            let (values, _) = self.list(open, "]", "the permitted values", Self::element);
            let other = if self.eat_word("else") { Some(Box::new(self.expr())) } else { None };
            let span = self.since(start);
            return self.node(ExprKind::Endorse(Box::new(e), values, other), span);
        }
        if self.at_fields(&word) {
            let open = self.here();
            self.bump();
            let (fields, _) = self.list(open, "}", "this case", Self::pair);
            let span = self.since(start);
            return self.node(ExprKind::Construct(Name { text: word, span: start }, fields), span);
        }
        if !self.at("(") {
            return self.node(ExprKind::Var(word), start);
        }
        let open = self.here();
        let errors = self.diagnostics.len();
        self.bump();
        let comma = usize::from(matches!(self.peek(1).token, Token::Punct(",")));
        let isolated = word == "quarantine"
            && self.now() == Token::Str
            && matches!(self.peek(1 + comma).token, Token::Punct(")"))
            && self.word_ahead(2 + comma) == Some("as");
        let (mut args, args_span) = if isolated {
            // A plain string is a template here, as it is after `prompt`.
            let template = self.template("the prompt")?;
            self.eat(",");
            self.bump();
            let span = template.span;
            (Vec::from_iter(self.node(ExprKind::Template(template), span)), self.since(open))
        } else {
            self.list(open, ")", "the arguments", Self::argument)
        };
        if word == "quarantine" && self.eat_word("as") {
            let ty = self.ty();
            let span = self.since(start);
            let argument = if args.len() == 1 { args.pop() } else { None };
            let Some(argument) = argument else {
                self.diagnostics.push(
                    Diagnostic::error("A015", "`quarantine` takes one argument, the prompt", args_span)
                        .help("write `quarantine(\"… {x} …\") as Type`"),
                );
                return self.node(ExprKind::Error, span);
            };
            return self.node(ExprKind::Quarantine(Box::new(argument), ty), span);
        }
        let span = self.since(start);
        // A case as another language writes it.
        if capitalized(&word) && self.diagnostics.len() > errors {
            return self.node(ExprKind::Error, span);
        }
        self.node(ExprKind::Call(Name { text: word, span: start }, args), span)
    }
}

/// Part of an `if` before its condition.
enum IfHead {
    Plain,
    /// `let x =`
    Option(Name),
    /// `let Case { … } =`
    Case(Pattern),
}

/// Returns whether every part of an expression could be read.
fn is_whole(e: &Expr) -> bool {
    let mut open = vec![e];
    while let Some(e) = open.pop() {
        if matches!(e.kind, ExprKind::Error) {
            return false;
        }
        open.extend(e.children());
    }
    true
}

/// The pattern of the `else` of `if let Case { … } = e`.
fn other_cases(span: Span) -> Pattern {
    Pattern { variants: Vec::new(), form: PatternForm::Else, fields: Vec::new(), span }
}

/// A tool behind the name of an import, `lib.search` or `lib.search(…)`, as one name. Others stay.
fn called(e: Expr) -> Expr {
    let joined = |import: &Expr, name: &Name| match &import.kind {
        ExprKind::Var(text) => {
            Some(Name { text: format!("{text}.{}", name.text), span: import.span.to(name.span) })
        }
        _ => None,
    };
    let kind = match &e.kind {
        ExprKind::Field(import, name) => joined(import, name).map(|name| ExprKind::Var(name.text)),
        ExprKind::Call(name, args) => match args.split_first() {
            Some((import, rest)) if import.span.end < name.span.start => {
                joined(import, name).map(|name| ExprKind::Call(name, rest.to_vec()))
            }
            _ => None,
        },
        _ => None,
    };
    match kind {
        Some(kind) => Expr { kind, ..e },
        None => e,
    }
}

/// The field of an agent for a name of another framework.
fn field_known_as(name: &str) -> Option<&'static str> {
    Some(match name {
        "client" | "llm" | "engine" | "model_name" | "llm_config" => "model",
        "system_prompt" | "system" | "system_message" | "instructions" | "instruction" | "role"
        | "backstory" | "description" | "goal" => "prompt",
        "max_iterations" | "max_iter" | "max_turns" | "recursion_limit" | "steps" | "max_rounds" => {
            "max_steps"
        }
        "functions" | "skills" | "actions" => "tools",
        "sub_agents" | "subagents" | "agents" | "team" | "members" => "helpers",
        "max_output_tokens" | "max_completion_tokens" => "max_tokens",
        "limits" | "max_cost" => "budget",
        "options" | "config" | "parameters" | "model_settings" => "settings",
        _ => return None,
    })
}

/// Returns whether a word begins with a capital letter, as cases and types do.
fn capitalized(word: &str) -> bool {
    word.starts_with(char::is_uppercase)
}

/// A type with the name that it has here, instead of one of another language.
fn known(ty: TypeExpr) -> TypeExpr {
    let name = match &ty.kind {
        TypeKind::Name(name) => match &**name {
            "str" | "string" => "String",
            "int" | "float" | "number" | "integer" => "Number",
            "bool" | "boolean" => "Bool",
            "any" | "unknown" | "object" => "Any",
            _ => return ty,
        },
        _ => return ty,
    };
    TypeExpr { kind: TypeKind::Name(name.into()), ..ty }
}

fn wrap(generic: &str, inner: TypeExpr) -> TypeKind {
    if generic == "List" { TypeKind::List(Box::new(inner)) } else { TypeKind::Option(Box::new(inner)) }
}
