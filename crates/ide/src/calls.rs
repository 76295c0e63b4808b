//! The parameters of the call that is being written.
//!
//! Entry point: [`signatures`], from the tokens before the cursor, since a call that is being written rarely
//! parses.

use crate::names::MAIN;
use crate::{Range, Signature};
use std::sync::Arc;
use syntax::agent::ast::{Field, Item, Name, Program, TypeExpr};
use syntax::agent::{Lexed, Token, lex};

/// A call whose parentheses or braces are open at the cursor.
#[derive(Clone, Copy)]
struct OpenCall<'a> {
    name: &'a str,
    argument: Argument<'a>,
}

/// The argument that stands at the cursor.
#[derive(Clone, Copy)]
enum Argument<'a> {
    Position(usize),
    /// `name: …` of `run task with { … }`; `None` before a name is written.
    Named(Option<&'a str>),
}

impl Argument<'_> {
    /// The parameter of this argument, of this number of them.
    fn index(self, count: usize, named: impl Fn(&str) -> Option<usize>) -> Option<usize> {
        match self {
            Argument::Position(n) => (n < count).then_some(n),
            Argument::Named(name) => name.and_then(named),
        }
    }
}

/// Returns the signatures of the innermost call around a place: of a declaration in one of these files, or of
/// a function of the language, which may have several. `imports` are the names behind which files stand.
pub(crate) fn signatures(
    text: &str,
    offset: usize,
    declared: &[Arc<str>],
    imports: &[&str],
) -> Vec<Signature> {
    let Some(call) = call_at(text, offset, imports) else { return Vec::new() };
    let own = declared.iter().find_map(|text| {
        let (program, _) = syntax::agent::parse(MAIN, text);
        let (name, params, result) = declaration(&program, call.name)?;
        Some(shown(text, name, params, result, call.argument))
    });
    match (own, agentlang::function_signature(call.name)) {
        (Some(own), _) => vec![own],
        (None, Some(all)) => built_in(call.name, all, call.argument),
        (None, None) => Vec::new(),
    }
}

/// Returns the parameters of the call at a place in whose record a name is to be written next.
pub(crate) fn names_of_arguments(text: &str, offset: usize, program: &Program) -> Vec<String> {
    let Some(OpenCall { name, argument: Argument::Named(None) }) = call_at(text, offset, &[]) else {
        return Vec::new();
    };
    let found = declaration(program, name);
    found.map_or_else(Vec::new, |(_, params, _)| params.iter().map(|p| p.name.text.clone()).collect())
}

/// The signatures of a function of the language.
fn built_in(name: &str, all: &str, at: Argument<'_>) -> Vec<Signature> {
    let next = format!("{name}(");
    let one = |rest: &str| {
        let label = format!("{next}{rest}");
        let params = parameters(&label, next.len());
        let active = at.index(params.len(), |_| None);
        Signature { label, params, active }
    };
    let all = all.strip_prefix(&*next).unwrap_or_default();
    all.split(&format!(", {next}")).map(one).collect()
}

/// The places of the parameters of a signature: what stands between commas up to the parenthesis that closes
/// the one before this byte.
fn parameters(label: &str, from: usize) -> Vec<Range> {
    let (mut depth, mut start, mut out) = (0usize, from, Vec::new());
    for (i, c) in label.char_indices().skip_while(|(i, _)| *i < from) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                out.push(start..i);
                break;
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(start..i);
                // After the space.
                start = i + 2;
            }
            _ => {}
        }
    }
    out
}

fn call_at<'a>(text: &'a str, offset: usize, imports: &[&str]) -> Option<OpenCall<'a>> {
    let tokens = lex(MAIN, text, 0, text.len()).tokens;
    let word = |t: &Lexed| text.get(t.start as usize..t.end as usize).unwrap_or_default();
    // What each open bracket calls, if it does.
    let mut open: Vec<Option<OpenCall<'a>>> = Vec::new();
    for (i, token) in tokens.iter().enumerate() {
        if token.start as usize >= offset {
            break;
        }
        // A string that the cursor is in is part of its argument.
        match token.token {
            Token::Punct("(") => open.push(called(&tokens[..i], &word, imports)),
            Token::Punct("{") => open.push(with_record(&tokens[..i], &word)),
            Token::Punct("[") => open.push(None),
            Token::Punct(")" | "}" | "]") => _ = open.pop(),
            Token::Punct(",") => match open.last_mut().and_then(Option::as_mut).map(|c| &mut c.argument) {
                Some(Argument::Position(n)) => *n += 1,
                Some(Argument::Named(name)) => *name = None,
                None => {}
            },
            Token::Word => {
                if let Some(OpenCall { argument: Argument::Named(name @ None), .. }) =
                    open.last_mut().and_then(Option::as_mut)
                {
                    *name = Some(word(token));
                }
            }
            _ => {}
        }
    }
    open.into_iter().rev().flatten().next()
}

/// The call whose `(` follows these tokens: `name(`, and not `pipeline name(`.
fn called<'a>(before: &[Lexed], word: &impl Fn(&Lexed) -> &'a str, imports: &[&str]) -> Option<OpenCall<'a>> {
    let (name, before) = before.split_last().filter(|(name, _)| name.token == Token::Word)?;
    let is_import = |t: &Lexed| t.token == Token::Word && imports.contains(&word(t));
    let is_method = before.last().is_some_and(|t| matches!(t.token, Token::Punct("." | "?.")))
        && !before.iter().rev().nth(1).is_some_and(is_import);
    let declares = ["pipeline", "fn", "tool", "task", "workflow", "as"];
    if before.last().is_some_and(|t| t.token == Token::Word && declares.contains(&word(t))) {
        return None;
    }
    // What stands before the dot is the first argument.
    Some(OpenCall { name: word(name), argument: Argument::Position(usize::from(is_method)) })
}

/// The call whose `{` follows these tokens: `run name with {`.
fn with_record<'a>(before: &[Lexed], word: &impl Fn(&Lexed) -> &'a str) -> Option<OpenCall<'a>> {
    let [.., name, with] = before else { return None };
    (word(with) == "with" && name.token == Token::Word)
        .then(|| OpenCall { name: word(name), argument: Argument::Named(None) })
}

/// The name, parameters and result of what can be called by a name.
fn declaration<'a>(program: &'a Program, name: &str) -> Option<(&'a Name, &'a [Field], &'a TypeExpr)> {
    let parts = program.items.iter().filter_map(|item| match item {
        Item::Tool(c) | Item::Task(c) => Some((&c.name, &*c.params, &c.result)),
        Item::Pipeline(p) | Item::Function(p) => Some((&p.name, &*p.params, &p.result)),
        Item::Workflow(w) => Some((&w.name, &*w.params, &w.result)),
        Item::Import(i) => Some((&i.name, &*i.params, &i.result)),
        _ => None,
    });
    parts.into_iter().find(|(declared, _, _)| declared.text == name)
}

fn shown(text: &str, name: &Name, params: &[Field], result: &TypeExpr, at: Argument<'_>) -> Signature {
    let mut label = format!("{}(", name.text);
    let mut ranges: Vec<Range> = Vec::new();
    for (i, param) in params.iter().enumerate() {
        if i > 0 {
            label.push_str(", ");
        }
        let start = label.len();
        let end = param.default.as_ref().map_or(param.ty.span.end, |default| default.span.end);
        let source = text.get(param.name.span.start as usize..end as usize).unwrap_or(&param.name.text);
        words(&mut label, source);
        ranges.push(start..label.len());
    }
    label.push_str(") -> ");
    words(&mut label, text.get(result.span.start as usize..result.span.end as usize).unwrap_or_default());
    let active = at.index(params.len(), |name| params.iter().position(|p| p.name.text == name));
    Signature { label, params: ranges, active }
}

/// Adds a text in one line.
fn words(label: &mut String, source: &str) {
    for (i, word) in source.split_whitespace().enumerate() {
        if i > 0 {
            label.push(' ');
        }
        label.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signatures at the `|` of a text, with the parameter at the cursor in `«»`.
    fn at(marked: &str) -> Vec<String> {
        let offset = marked.find('|').unwrap();
        let text: Arc<str> = marked.replacen('|', "", 1).into();
        let one = |Signature { mut label, params, active }| {
            if let Some(range) = active.map(|i: usize| params[i].clone()) {
                label.insert(range.end, '»');
                label.insert(range.start, '«');
            }
            label
        };
        signatures(&text, offset, std::slice::from_ref(&text), &[]).into_iter().map(one).collect()
    }

    const HEAD: &str = "tool send(to: String,\n    text: String) -> String {}\n\
        fn twice(n: Int, by: Int = 2) -> Int { return n * by; }\n";

    #[track_caller]
    fn expect(body: &str, expected: Option<&str>) {
        assert_eq!(at(&format!("{HEAD}{body}")), expected.into_iter().collect::<Vec<_>>(), "{body}");
    }

    #[test]
    fn functions_of_the_language_have_their_signatures() {
        let shown = |call: &str| at(&format!("pipeline p() -> Int {{ return {call}"));
        assert_eq!(shown("split(\"a\", |"), ["split(String, «String») -> List[String]"]);
        let zip = "zip(List[A], «List[B]») -> List[Obj{first: A, second: B}]";
        assert_eq!(shown("[1].zip(|)"), [zip]);
        let contains = ["contains(«String», String) -> Bool", "contains(«List[T]», T) -> Bool"];
        assert_eq!(shown("contains(|"), contains);
        assert_eq!(shown("xs.fold(0, |)"), ["fold(List[T], start, «(so_far, x) => next») -> type of start"]);
        for name in agentlang::function_names() {
            for one in built_in(name, agentlang::function_signature(name).unwrap(), Argument::Position(0)) {
                assert!(one.active == Some(0) && one.label.contains(" -> "), "{one:?}");
            }
        }
    }

    #[test]
    fn a_call_shows_the_parameter_at_the_cursor() {
        let send = |shown: &str| Some(format!("send({shown}) -> String"));
        let first = send("«to: String», text: String");
        let second = send("to: String, «text: String»");
        expect("pipeline p() -> String { let x = send(|", first.as_deref());
        expect("pipeline p() -> String { let x = send(\"a, b(|", first.as_deref());
        expect("pipeline p() -> String { let x = send(\"a\", |); return x; }", second.as_deref());
        expect("pipeline p() -> String { let x = send(f(1, 2), [3, |", second.as_deref());
        expect("pipeline p() -> Int { return twice(|); }", Some("twice(«n: Int», by: Int = 2) -> Int"));
        expect("pipeline p() -> Int { return 3.twice(|); }", Some("twice(n: Int, «by: Int = 2») -> Int"));
    }

    #[test]
    fn arguments_of_run_are_found_by_their_names() {
        let run = |args: &str| format!("pipeline p() -> String {{ let x = run send with {{ {args}");
        expect(&run("|"), Some("send(to: String, text: String) -> String"));
        expect(&run("text: |"), Some("send(to: String, «text: String») -> String"));
        expect(&run("text: \"x\", to: |"), Some("send(«to: String», text: String) -> String"));
        expect(&run("text: { a: b, |"), Some("send(to: String, «text: String») -> String"));
        expect(&run("text: \"x\", |"), Some("send(to: String, text: String) -> String"));
    }

    #[test]
    fn nothing_is_shown_where_nothing_known_is_called() {
        expect("pipeline send(|", None);
        expect("pipeline p() -> String { let x = other(|", None);
        expect("pipeline p() -> String { let x = send(\"a\", \"b\"); |", None);
        expect(
            "pipeline p() -> String { let x = send(\"a\", \"b\", |",
            Some("send(to: String, text: String) -> String"),
        );
    }
}
