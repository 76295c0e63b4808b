//! The reader of `.lam`: what it accepts, what it objects to and where, and that nothing upsets it.

use core_ir::{Globals, print_code};
use diagnostics::{FileId, Level};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use syntax::lam::{EXPLANATIONS, MAX_ERRORS, Options, Parsed, codes, parse};

fn read(text: &str) -> Parsed {
    parse(FileId(0), text, &Globals::none(), Options::PROGRAM)
}

/// Each finding as `code start..end`.
fn found(text: &str) -> Vec<String> {
    let shown = |d: &diagnostics::Diagnostic| {
        let span = d.span.unwrap();
        format!("{} {}..{}", d.code, span.start, span.end)
    };
    read(text).diagnostics.iter().map(shown).collect()
}

/// The text reads as the term that `same` prints as.
fn reads_as(text: &str, same: &str) {
    let parsed = read(text);
    let code = parsed.code.unwrap_or_else(|| panic!("{text}\n{:#?}", parsed.diagnostics));
    assert_eq!(print_code(&code).trim_end(), same, "{text}");
}

#[test]
fn every_code_has_an_example_that_shows_it_and_one_that_does_not() {
    for e in EXPLANATIONS {
        let options = if e.code == codes::GENERATED { Options::GENERATED } else { Options::PROGRAM };
        let run = |text: &str| {
            if e.code == codes::PRELUDE {
                syntax::lam::parse_globals(FileId(0), text).err().unwrap_or_default()
            } else {
                parse(FileId(0), text, &Globals::none(), options).diagnostics
            }
        };
        if !e.wrong.is_empty() {
            let wrong = run(e.wrong);
            assert!(wrong.iter().any(|d| d.code == e.code), "{}: {wrong:#?}", e.code);
        }
        assert_eq!(run(e.right), [], "{}", e.code);
        assert_eq!(syntax::lam::explain(&e.code.to_lowercase()), Some(e));
    }
}

/// `docs/lam.md` shows programs in fences marked `lam`, and what each means after the line `# =`.
#[test]
fn the_examples_of_the_documentation_hold() {
    let text = include_str!("../../../../docs/lam.md");
    let mut checked = 0;
    for block in text.split("```lam\n").skip(1) {
        let block = block.split("```").next().unwrap_or("");
        match block.split_once("# =\n") {
            Some((given, same)) => {
                let of = |t: &str| {
                    let parsed = read(t);
                    parsed.code.unwrap_or_else(|| panic!("{t}\n{:#?}", parsed.diagnostics))
                };
                assert!(of(given) == of(same), "{block}");
            }
            None => {
                let parsed = read(block);
                assert!(parsed.code.is_some(), "{block}\n{:#?}", parsed.diagnostics);
            }
        }
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}

#[test]
fn unicode_forms_are_the_ascii_forms() {
    reads_as("λx. x ≫ λy. y", "\\x. x >> (\\y. y)");
    reads_as("1 ⊕[0.3] 2 ⊕ 3", "choose 0.5 (choose 0.3 1 2) 3");
    reads_as("⟨1, case `a of {a ⇒ fix[∞] (λs. s)}⟩", "(1, case `a of {a => fix[inf] (\\s. s)})");
    reads_as("¬(1 ≤ 2 ∧ 3 ≠ 4 ∨ 5 ≥ 6)", "!(1 <= 2 && 3 != 4 || 5 >= 6)");
    reads_as("λf: Str × Num → Bool. f", "\\f: (Str * Num) -> Bool. f");
}

#[test]
fn a_line_at_the_margin_begins_a_new_definition() {
    reads_as("let f = \\x. x\nlet y = f\n  1\nf\n  y", "let f = \\x. x in let y = f 1 in f y");
    reads_as("  let x = 1\n  [x]", "let x = 1 in [x]");
    reads_as("let x = (1 +\n2)\nx", "let x = 1 + 2 in x");
    reads_as("send 1; recv", "let _ = send 1 in recv");
    reads_as("\u{feff}let x = 1\r\nx", "let x = 1 in x");
    // Infix operators and closing words go on.
    reads_as("(\\x. x)\n>> 1", "(\\x. x) >> 1");
    reads_as("if true\nthen 1\nelse 2", "if true then 1 else 2");
}

#[test]
fn mistakes_are_reported_where_they_are() {
    assert_eq!(found("let x = in x"), ["C001 8..10"]);
    assert_eq!(found("f (x"), ["C001 4..4"]);
    assert_eq!(found("[1, 2\nlet y = 3\ny"), ["C001 6..9"]);
    assert_eq!(found("{a: 1, b 2}"), ["C001 9..10"]);
    assert_eq!(found("1 < 2 < 3"), ["C001 6..7"]);
    assert_eq!(found("(1, 2, 3)"), ["C001 5..6"]);
    assert_eq!(found("1 + x"), ["C007 4..5"]);
    assert_eq!(found("\"a{1 2\" b"), ["C002 0..1", "C002 6..7"]);
    assert_eq!(found("2x"), ["C004 0..2"]);
    assert_eq!(found("1e999999"), ["C004 0..8"]);
    assert_eq!(found("let case = 1 in 2"), ["C001 4..8"]);
    assert_eq!(found("case 1 of {a => 1, a => 2, _ => 3, _ => 4}"), ["C011 19..20", "C011 35..36"]);
    assert_eq!(found(""), ["C015 0..0"]);
    assert_eq!(found("guard 1 matches \"^{3}$\""), ["C001 16..19"]);
    // Two mistakes in two definitions are two findings.
    assert_eq!(found("let x = )\nlet y = ]\nx"), ["C001 8..9", "C001 18..19"]);
}

#[test]
fn a_slip_of_the_pen_gets_a_proposal() {
    let help = |text: &str| read(text).diagnostics[0].help.join(" ");
    assert!(help("let counter = 1 in countr").contains("`counter`"));
    assert!(help("prim[lenght](1)").contains("`length`"));
    assert!(help("\\x: Strr. x").contains("`Str`"));
    assert!(help("tool search(q: Str) -> Str\ntool[serch] 1").contains("`search`"));
    assert!(help("let f = \\n. f n in f").contains("not recursive"));
    assert_eq!(
        help("fix[99999999999999999999] f"),
        "the largest is 18446744073709551615; `inf` is without a bound"
    );
    assert_eq!(help("fix[1.5] f"), "write digits alone, such as `3`");
    assert_eq!(help("par[4294967296] [1]"), "the largest is 4294967295");
}

#[test]
fn an_undeclared_tool_is_a_warning_and_the_careful_assumption() {
    let parsed = read("tool[search] 'a' >> tool[search]");
    assert_eq!(parsed.diagnostics.len(), 1);
    assert_eq!(parsed.diagnostics[0].level, Level::Warn);
    let code = parsed.code.unwrap();
    assert_eq!(code.tools.len(), 1);
    assert_eq!(*code.tools[0], core_ir::ToolDecl::unknown("search".into(), code.tools[0].span));
}

#[test]
fn generated_code_neither_lowers_labels_nor_acts_nor_declares_stores() {
    for text in [
        "endorse [] 1",
        "declassify [] 1",
        "tool[rm] '/'",
        "tool rm(p: Str) -> Null\n1",
        "recv {tools: [rm]}",
        "[\"{fork (tool[rm] '/')}\"]",
        "mem (recall k) {k: Num}",
        "mem 1 {}",
        "mem 1 memory",
        "store memory {k: Num}\n1",
        "[\"{fork (mem (remember k 1) {k: Num} backend 'redis')}\"]",
    ] {
        let parsed = parse(FileId(0), text, &Globals::none(), Options::GENERATED);
        assert!(parsed.code.is_none(), "{text}");
        assert!(parsed.diagnostics.iter().any(|d| d.code == codes::GENERATED), "{text}");
    }
    for text in ["recall k", "remember k 1"] {
        let parsed = parse(FileId(0), text, &Globals::none(), Options::GENERATED);
        assert!(parsed.diagnostics.iter().any(|d| d.code == codes::KEY), "{text}");
    }
    assert!(parse(FileId(0), "[\"U\"] : @'go on'", &Globals::none(), Options::GENERATED).code.is_some());
}

#[test]
fn terms_know_where_they_stand() {
    let text = "let f = \\x. x + 10\nf (f 2).a";
    let code = read(text).code.unwrap();
    let shown: Vec<&str> =
        code.iter().map(|(id, _)| &text[code.span(id).start as usize..code.span(id).end as usize]).collect();
    assert_eq!(
        shown,
        [
            "x",
            "10",
            "x + 10",
            "\\x. x + 10",
            "f",
            "f",
            "2",
            "f 2",
            "(f 2).a",
            "f (f 2).a",
            text.trim_start_matches("let f = ")
        ]
    );
}

#[test]
#[allow(clippy::disallowed_methods)] // The time it takes is what is tested.
fn hostile_texts_end_quickly() {
    let many = |s: &str| s.repeat(100_000);
    let mut texts: Vec<String> = [
        "(",
        ")",
        "[",
        "{",
        "}",
        "\"{",
        "\\x.",
        "!",
        "-",
        "@",
        "f ",
        "1+",
        "a.b.",
        "a|",
        "a>>",
        "let x=",
        "if ",
        "case a of {",
        "`a ",
        "'",
        "\"",
        "$",
        "\\u",
        "#",
        ",",
        ";",
        "x:",
        "fork ",
        "[1,",
        "{a:",
        "const [",
        "\\x: List ",
        "guard x !",
        "guard x (",
        "tool f(",
        "store s {",
        "\n",
        "\n(",
        "“",
        "\0",
        "é",
        "λ",
        "9",
        "try[",
        "\"a{1}",
        "\\x: <a: ",
        "x? ",
    ]
    .iter()
    .map(|s| many(s))
    .collect();
    texts.push(
        (0..1_000_000u32).map(|i| char::from((i.wrapping_mul(2_654_435_761) >> 24) as u8 & 0x7f)).collect(),
    );
    texts.push(format!("{}1{}", many("("), many(")")));
    texts.push(format!("[{}]", many("1,")));
    texts.push(format!("{}x", many("let x = 1 in ")));
    texts.push(format!("{}1", many("let x = 1\n")));
    for text in texts {
        let start = Instant::now();
        let parsed = read(&text);
        // Generous: the machine may be busy and the build unoptimized.
        assert!(start.elapsed() < Duration::from_secs(20), "{:?} {}", start.elapsed(), &text[..20]);
        assert!(parsed.diagnostics.len() <= MAX_ERRORS);
        assert_eq!(parsed.code.is_none(), parsed.diagnostics.iter().any(|d| d.level == Level::Error));
    }
    assert_eq!(read(&" ".repeat(17 << 20)).diagnostics[0].code, codes::LENGTH);
}

const SOUP: &[&str] = &[
    "let",
    "x",
    "=",
    "in",
    "\\",
    ".",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "1",
    "\"a{",
    "}b\"",
    "\"",
    "'",
    "`",
    ":",
    ":=",
    "?",
    "@",
    "send",
    "recv",
    "case",
    "of",
    "=>",
    ",",
    "if",
    "then",
    "else",
    "try",
    "catch",
    "guard",
    "length",
    ">",
    ">>",
    "|",
    "⊕",
    "mem",
    "store",
    "tool",
    "->",
    "Str",
    "List",
    "<",
    "const",
    "-",
    "fix",
    "par",
    "llm",
    "\n",
    "#",
    "$",
    "$\"",
    "recall",
    "check",
    "classify",
    "retry",
    "⟨",
    "⟩",
    "prim",
    "format",
    "λ",
    "\\{",
    "_",
    "&&",
    "!",
    "model",
    "tools",
    "result",
    "capacity",
    "untrusted",
    "by",
];

fn sane(text: &str) -> Result<(), TestCaseError> {
    let parsed = read(text);
    let failed = parsed.diagnostics.iter().any(|d| d.level == Level::Error);
    prop_assert_eq!(parsed.code.is_none(), failed);
    for d in &parsed.diagnostics {
        let span = d.span.unwrap();
        prop_assert!(span.start <= span.end && span.end as usize <= text.len(), "{:?} in {:?}", d, text);
        prop_assert!(text.is_char_boundary(span.start as usize) && text.is_char_boundary(span.end as usize));
        prop_assert!(EXPLANATIONS.iter().any(|e| e.code == d.code));
    }
    if let Some(code) = parsed.code {
        let again = print_code(&code);
        let back = read(&again).code;
        prop_assert!(back.as_ref() == Some(&code), "{}\n{}", text, again);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>()) {
        sane(&text)?;
    }

    #[test]
    fn any_tokens_are_read_to_their_end(
        soup in prop::collection::vec((0..SOUP.len(), any::<bool>()), 0..60),
    ) {
        let mut text = String::new();
        for (i, space) in soup {
            text.push_str(SOUP[i]);
            if space {
                text.push(' ');
            }
        }
        sane(&text)?;
    }

    #[test]
    fn damaged_programs_are_read_to_their_end(
        choices in prop::collection::vec(any::<u8>(), 0..300),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..SOUP.len(), 0..3usize), 1..6),
    ) {
        let mut chars: Vec<char> = print_code(&crate::common::code(&choices)).chars().collect();
        for (at, token, kind) in damage {
            let at = at.index(chars.len());
            match kind {
                0 => {
                    chars.remove(at);
                }
                1 => {
                    chars.splice(at..at, SOUP[token].chars());
                }
                _ => chars.truncate(at + 1),
            }
            if chars.is_empty() {
                chars.push(' ');
            }
        }
        sane(&chars.iter().collect::<String>())?;
    }
}

/// `docs/calculus.md` §10, stores: a name has one declaration.
#[test]
fn a_store_has_one_declaration() {
    let of = |second: &str| {
        let text = format!("store s {{k: Num @ [\"S\"]}} capacity 3\nstore s {second}\nmem (recall k) s");
        let parsed = read(&text);
        (parsed.code.is_some(), parsed.diagnostics)
    };
    let (read, found) = of("{k: Num @ [\"S\"]} capacity 3");
    assert!(read && found.len() == 1 && found[0].level == diagnostics::Level::Info, "{found:?}");
    let others = [
        ("{k: Num} capacity 3", "the label of the key `k`"),
        ("{k: Str @ [\"S\"]} capacity 3", "the type of the key `k`"),
        ("{k: Num @ [\"S\"] = 1} capacity 3", "the initial value of the key `k`"),
        ("{k: Num @ [\"S\"], l: Num} capacity 3", "the key `l`"),
        ("{l: Num @ [\"S\"]} capacity 3", "the key `k`"),
        ("{} capacity 3", "the key `k`"),
        ("{k: Num @ [\"S\"]} capacity 4", "the capacity"),
        ("{k: Num @ [\"S\"]} capacity 3 ttl 1", "the lifetime of entries"),
        ("{k: Num @ [\"S\"]} capacity 3 backend 'redis'", "the backend"),
    ];
    for (second, difference) in others {
        let (read, found) = of(second);
        assert!(!read && found.len() == 1, "{second}: {found:?}");
        assert_eq!(found[0].code, codes::DUPLICATE);
        let message = format!("the store `s` has two declarations, which differ in {difference}");
        assert_eq!(found[0].message, message);
        assert_eq!((found[0].remarks[0].span.start, found[0].span.map(|s| s.start)), (0, Some(36)));
        assert!(!found[0].help.is_empty());
    }
    // Stores without a name are stores of their own.
    assert!(found_no_error("store memory {k: Num}\nmem (mem (recall k) {k: Str}) memory"));
}

fn found_no_error(text: &str) -> bool {
    read(text).code.is_some()
}
