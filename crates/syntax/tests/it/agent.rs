//! The parser of `.agent`: what it reads, what it reports, and that nothing upsets it.

use diagnostics::{Sources, render};
use proptest::prelude::*;
use syntax::agent::{ast::*, parse};

/// Parses, and gives the program with `line:column-column code message` for each error.
fn check(text: &str) -> (Program, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("t.agent", text);
    let (program, diagnostics) = parse(file, text);
    let shown = diagnostics
        .iter()
        .map(|d| {
            // Every error must be printable, wherever it points.
            assert!(!render::text(&sources, d, false).is_empty());
            let span = d.span.expect("a syntax error has a place");
            let source = sources.get(file).unwrap();
            let (a, b) = (source.line_column(span.start), source.line_column(span.end));
            format!("{}:{}-{} {} {}", a.line, a.column, b.column, d.code, d.message)
        })
        .collect();
    (program, shown)
}

fn errors(text: &str) -> Vec<String> {
    check(text).1
}

fn clean(text: &str) -> Program {
    let (program, errors) = check(text);
    assert!(errors.is_empty(), "{errors:#?}\n{text}");
    program
}

#[test]
fn reads_every_declaration_of_the_base() {
    let program = clean(
        r#"
        type Id = String;                       -- an alias
        enum Tone { warm, cold, }
        enum Size { small };
        agent writer { model: "m", tools: [search,], }
        agent bare { tools: [] }
        tool search(query: String, limit: Number,) -> List[Obj{url: String, rank: Number}] {}
        task draft(topic: String) -> Obj{text: String, note: Option[String]} by agent {}
        task count(text: String) -> Number {} // the host counts
        pipeline p(topic: String) -> Obj{text: String} {
            let d = run draft with { topic: topic } by writer retries 2 timeout 1.5 on_fail abort;
            let e = draft(topic + "!") on_fail use { text: "", note: null } by writer;
            parallel max_concurrency 2 { let a = run count with { text: d.text }; let b = count(e.text); } join;
            if a == b { return { text: d.text, }; } else if (a != b) { return e; } else { }
            if let n = d.note { assert n != "", "empty"; } else { }
            while a == b { break; continue; }
            try { let z = count(""); } catch m { return { text: m }; }
            return { text: [d.text, "\u{e9}\u00e9\ud83d\ude00"][0] };
        }
        workflow w(topic: String) -> Obj{text: String} {
            stage d = writer does draft(topic);
            review r = bare checks d revise with writer using draft max_rounds 3;
            return r;
        }
        test "it works" { assert true; }
        "#,
    );
    assert_eq!(program.items.len(), 11);
    assert_eq!(program.comments.len(), 2);
    assert!(!program.comments[0].own_line);
}

#[test]
fn reads_the_extensions() {
    clean(
        r##"
        use "lib.agent";
        tool web(query: String) -> List[String] reads untrusted { mcp "search" "web_search" }
        tool mail(to: String requires public, body: String) -> Obj{id: String} writes requires trusted policy p {
            http POST "https://mail.internal/{to}"
        }
        tool now() -> String { builtin "clock.now" }
        tool grep(pattern: String) -> List[String] reads { exec "rg" "--json" "{pattern}" }
        task classify(text: String) -> Tone by agent { prompt "Classify {text} as {{json}}" }
        agent planner { model: "m", tools: [web], prompt: """
            You are terse.
              Indented.
            """, max_steps: 12, temperature: 0,
            memory: { store: "local", keys: { notes: List[String] }, size: 20, ttl: 7200 },
            budget: { usd: 0.40, calls: 20 } }
        pipeline p(xs: List[Number], page: String secret) -> String {
            guard page where length(page) >= 150 && !(xs[0] < -1) retry 2;
            let safe = quarantine("Extract: {page}") as String;
            let x = endorse safe in ["a", "b"] else "c";
            let y = f"{x}: {xs[0] * 2 % 3 - 1}";
            for x in xs { continue; }
            parallel for x in xs max_concurrency 3 { let z = now(); }
            match x { warm | "cold" => { } _ => { } }
            while true max 3 { }
            return y;
        }
        "##,
    );
}

/// A comma may follow the last element of every list, also where the string is a template.
#[test]
fn a_quarantined_prompt_with_a_comma_is_a_template() {
    for prompt in [r#""about {x}""#, r#""about {x}","#, r#"f"about {x}","#] {
        let program = clean(&format!(
            "pipeline p(x: String) -> String {{ let y = quarantine({prompt}) as String; return y; }}"
        ));
        let Item::Pipeline(p) = &program.items[0] else { panic!("{program:?}") };
        let StmtKind::Let(_, _, e) = &p.body.stmts[0].kind else { panic!("{p:?}") };
        let ExprKind::Quarantine(argument, _) = &e.kind else { panic!("{e:?}") };
        assert!(matches!(argument.kind, ExprKind::Template(_)), "{prompt}: {argument:?}");
    }
}

#[test]
fn words_of_the_extensions_are_names_in_the_base() {
    clean(
        r#"
        task quarantine(match: String) -> String {}
        pipeline p(guard: String, for: String, f: String) -> String {
            let endorse = run quarantine with { match: guard + f };
            let use = quarantine(endorse);
            let run = for;
            let x = run;
            return use + x + endorse;
        }
        "#,
    );
}

#[test]
fn operators_bind_as_the_grammar_says() {
    fn shape(e: &Expr) -> String {
        match &e.kind {
            ExprKind::Binary(op, _, a, b) => format!("({} {} {})", shape(a), op.as_str(), shape(b)),
            ExprKind::Unary(UnaryOp::Not, e) => format!("!{}", shape(e)),
            ExprKind::Unary(UnaryOp::Neg, e) => format!("-{}", shape(e)),
            ExprKind::Paren(e) => shape(e),
            ExprKind::Var(x) => x.clone(),
            ExprKind::Field(e, f) => format!("{}.{}", shape(e), f.text),
            other => format!("{other:?}"),
        }
    }
    for (text, expected) in [
        ("a + b == c + d", "((a + b) == (c + d))"),
        ("a == b != c", "((a == b) != c)"),
        ("a + b + c", "((a + b) + c)"),
        ("a || b && !c == d", "(a || (b && (!c == d)))"),
        ("a - b * -c.d < e", "((a - (b * -c.d)) < e)"),
    ] {
        let program = clean(&format!("pipeline p() -> Bool {{ return {text}; }}"));
        let Item::Pipeline(p) = &program.items[0] else { panic!() };
        let StmtKind::Return(e) = &p.body.stmts[0].kind else { panic!() };
        assert_eq!(shape(e), expected);
    }
}

#[test]
fn long_strings_lose_their_common_indentation() {
    let program =
        clean("task t() -> String by agent { prompt \"\"\"\n    a\n\n      b {x}\n    c\n    \"\"\" }");
    let Item::Task(t) = &program.items[0] else { panic!() };
    let BodyKind::Prompt(p) = &t.body.kind else { panic!() };
    let texts: Vec<_> = p
        .parts
        .iter()
        .map(|p| match p {
            TemplatePart::Text(t) => t.value.as_str(),
            TemplatePart::Hole(_) => "<>",
        })
        .collect();
    assert_eq!(texts, ["a\n\n  b ", "<>", "\nc"]);
}

#[test]
fn spans_are_those_of_the_text() {
    let text = "task t() -> String by agent { prompt \"é {name.first} \\n {x}\" }";
    let program = clean(text);
    let Item::Task(t) = &program.items[0] else { panic!() };
    let BodyKind::Prompt(p) = &t.body.kind else { panic!() };
    let holes: Vec<_> = p
        .parts
        .iter()
        .filter_map(|p| match p {
            TemplatePart::Hole(e) => Some(&text[e.span.start as usize..e.span.end as usize]),
            TemplatePart::Text(_) => None,
        })
        .collect();
    assert_eq!(holes, ["name.first", "x"]);
}

#[test]
fn one_slip_is_one_error_and_the_rest_is_read() {
    let (program, found) = check(
        "pipeline a() -> String {\n  let x = \n  let y = 1\n  retrun y;\n  return z +;\n}\npipeline b( -> String { }\ntask c() -> { }\n",
    );
    assert_eq!(
        found,
        [
            "3:3-6 A010 expected an expression, found `let`",
            "3:12-12 A011 missing `;` after the value",
            "4:3-9 A010 expected a statement, found `retrun`",
            "5:13-14 A010 expected an expression, found `;`",
            "7:13-15 A010 expected the name of a parameter, found `->`",
            "8:13-14 A010 expected a type, found `{`",
        ]
    );
    assert_eq!(program.items.len(), 3, "{program:#?}");
}

#[test]
fn slips_from_other_languages_are_told_what_it_is_here() {
    let cases = [
        ("if n = 1 { return n; }", "write `==` to compare; only `let` gives a variable a value"),
        ("assert n = 1;", "write `==` to compare; only `let` gives a variable a value"),
        ("while n < 1 and true { return n; }", "`and` is written `&&`"),
        ("if n < 1 or true { return n; }", "`or` is written `||`"),
        ("if not n { return n; }", "`not` is written `!`"),
        ("if n { return n; } elif n { return n; }", "write `else if`"),
        (
            "for (x in n) { return x; }",
            "a loop has no parentheses: `for x in list { … }`, or `for i in range(0, n) { … }`",
        ),
        ("let x = t(n) retry 2;", "did you mean `retries`?"),
        ("let x = “n”;", "write `\"…\"`"),
        ("let x = ‘n’;", "write `\"…\"`"),
    ];
    for (statement, help) in cases {
        let text = format!("pipeline p(n: Number) -> Number {{\n{statement}\nreturn n;\n}}");
        let mut sources = Sources::new();
        let file = sources.add("t.agent", text.as_str());
        let (_, found) = parse(file, &text);
        assert_eq!(found.len(), 1, "{statement}: {found:?}");
        assert!(found[0].help.iter().any(|h| h == help), "{statement}: {:?}", found[0].help);
    }
    let (program, _) = check("pipeline p() -> String { return “naïve”; }");
    let Some(Item::Pipeline(p)) = program.items.first() else { panic!("a pipeline") };
    assert!(
        matches!(&p.body.stmts[0].kind, StmtKind::Return(e) if matches!(&e.kind, ExprKind::Str(s) if s == "naïve"))
    );
}

#[test]
fn a_tool_that_wants_approval_is_not_told_to_go_without() {
    let mut sources = diagnostics::Sources::new();
    let text = "tool pay(to: String) -> String writes approve {}";
    let file = sources.add("p.agent", text);
    let found = parse(file, text).1;
    assert!(found[0].help.iter().any(|h| h.contains("approve;")), "{found:?}");
    assert!(!found[0].help.iter().any(|h| h.contains("remove")), "{found:?}");
}

#[test]
fn a_missing_brace_costs_one_error() {
    let found = errors(
        "pipeline a() -> String {\n  if true {\n    return \"a\";\n\npipeline b() -> String { return \"b\"; }\n",
    );
    assert_eq!(found, ["3:16-16 A011 missing `}` at the end of this `if`"]);
}

#[test]
fn strings_without_end_spoil_one_line() {
    let found = errors("type A = String;\ntest \"a { }\ntest \"b\" { assert \"x; }\n");
    assert!(found.iter().all(|e| e.starts_with("2:") || e.starts_with("3:")), "{found:#?}");
    assert!(found[0].contains("A002"));
}

#[test]
fn hostile_input_is_refused_in_bounded_time_and_stack() {
    let deep = |open: &str, n: usize| format!("pipeline p() -> String {{ return {}", open.repeat(n));
    for text in [
        deep("(", 100_000),
        deep("[", 100_000),
        deep("{a:", 100_000),
        deep("!", 100_000),
        deep("1+", 100_000),
        deep("a.", 100_000),
        format!("type A = {}", "List[".repeat(100_000)),
        format!("pipeline p() -> String {{ {}", "if a { ".repeat(100_000)),
        format!("pipeline p() -> String {{ if a {{}} {}", "else if a {} ".repeat(100_000)),
        "\u{1}".repeat(1 << 20),
        "} ".repeat(1 << 18),
        "task ".repeat(1 << 18),
        "\"".repeat(1 << 18),
        "{".repeat(1 << 18),
        format!("test {}", "f\"{".repeat(10_000)),
    ] {
        let found = errors(&text);
        assert!(!found.is_empty() && found.len() <= syntax::agent::MAX_ERRORS);
    }
}

#[test]
fn carriage_returns_and_byte_order_marks_are_no_text() {
    clean("\u{feff}type A = String;\r\n-- c\r\ntest \"a\" {\r\n assert true;\r\n}\r\n");
}

/// Pieces that make plausible nonsense.
fn soup() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "let",
        "x",
        "=",
        "run",
        "t",
        "with",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        ":",
        ".",
        "->",
        "=>",
        "==",
        "+",
        "-",
        "--",
        "/",
        "\"a\"",
        "\"",
        "\"\"\"",
        "f\"{x}\"",
        "f\"{\"",
        "{x}",
        "1",
        "1.5e3",
        "1x",
        "if",
        "else",
        "while",
        "max",
        "try",
        "catch",
        "assert",
        "return",
        "parallel",
        "join",
        "for",
        "in",
        "match",
        "guard",
        "mock",
        "fails",
        "expect",
        "call",
        "refused",
        "where",
        "retry",
        "quarantine",
        "as",
        "endorse",
        "by",
        "agent",
        "retries",
        "timeout",
        "on_fail",
        "use",
        "abort",
        "pipeline",
        "task",
        "tool",
        "test",
        "workflow",
        "stage",
        "review",
        "does",
        "checks",
        "type",
        "enum",
        "List[",
        "Obj{",
        "String",
        "\n",
        "\\",
        "\u{e9}",
        "\u{1}",
        "'",
        "prompt",
        "exec",
        "http",
        "memory",
        "null",
        "true",
        "|",
        "_",
    ]);
    prop::collection::vec(pieces, 0..60).prop_map(|v| v.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_survived(text in ".{0,200}") {
        errors(&text);
    }

    #[test]
    fn any_soup_is_survived(text in soup(), head in prop::sample::select(vec!["", "pipeline p(a: String) -> String { ", "agent a { ", "task t() -> String { "])) {
        errors(&format!("{head}{text}"));
    }

    #[test]
    fn damage_to_a_program_is_survived(at in 0usize..2000, length in 0usize..40, with in ".{0,5}") {
        let mut text: Vec<char> = include_str!("../../../../examples/triage.agent").chars().collect();
        let at = at.min(text.len());
        let end = (at + length).min(text.len());
        text.splice(at..end, with.chars());
        errors(&text.into_iter().collect::<String>());
    }
}
