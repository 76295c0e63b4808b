//! Printing a term and reading it again gives the same term.

use core_ir::print::{Style, print_with};
use core_ir::{Code, Globals, Term, exchange, print_code};
use diagnostics::{FileId, Sources};
use proptest::prelude::*;
use syntax::lam::{Options, Parsed, parse};

fn read(text: &str) -> Parsed {
    parse(FileId(0), text, &Globals::none(), Options::PROGRAM)
}

fn read_back(text: &str) -> Result<Code, TestCaseError> {
    let parsed = read(text);
    match parsed.code {
        Some(code) => Ok(code),
        None => Err(TestCaseError::fail(format!("{:#?}\n{text}", parsed.diagnostics))),
    }
}

/// `$` marks forms of data in the exchange format; as the name of a parameter it was taken for one.
#[test]
fn parameters_that_begin_with_a_dollar_are_exchanged() {
    let text = r#"tool t() -> Dyn write pattern {"$v": "[a-z]"} includes {"$v": ["x"]}"#.to_string() + "\n1";
    let mut sources = Sources::new();
    let file = sources.add("a.lam", text.as_str());
    let code = parse(file, &text, &Globals::none(), Options::PROGRAM).code.unwrap();
    let back = exchange::from_json(&exchange::to_json(&code, &sources), &Globals::none());
    assert!(back.unwrap().code == code);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_term_reads_as_the_same_term(choices in prop::collection::vec(any::<u8>(), 0..400)) {
        let code = crate::common::code(&choices);
        let styles = [Style::TEXT, Style::LINE, Style::UNICODE, Style { unicode: true, width: Some(1) }];
        for style in styles {
            let text = print_with(&code, style).text;
            let back = read_back(&text)?;
            prop_assert!(back == code, "{style:?}\n{text}\n{code:?}\n{back:?}");
            prop_assert_eq!(print_with(&back, style).text, text);
        }
    }

    #[test]
    fn an_exchanged_term_comes_back(choices in prop::collection::vec(any::<u8>(), 0..400)) {
        // Read from its text, so that it has places.
        let text = print_code(&crate::common::code(&choices));
        let mut sources = Sources::new();
        let file = sources.add("a.lam", text.as_str());
        let parsed = parse(file, &text, &Globals::none(), Options::PROGRAM);
        let Some(code) = parsed.code else { return Err(TestCaseError::fail(text)) };
        let json = exchange::to_json(&code, &sources);
        // Through text, as another program would get it.
        let json = serde_json::from_str(&json.to_string()).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let back = exchange::from_json(&json, &Globals::none());
        let back = back.map_err(|e| TestCaseError::fail(format!("{e:?}\n{json}")))?;
        prop_assert!(back.code == code, "{json:#}");
        // With the descriptions of variants, which are no part of a type.
        prop_assert_eq!(print_code(&back.code), print_code(&code));
        prop_assert_eq!(&back.files, &["a.lam"]);
        for (id, _) in code.iter() {
            prop_assert_eq!(back.code.span(id), code.span(id));
        }
    }

    #[test]
    fn damaged_exchange_forms_are_refused_or_read(
        choices in prop::collection::vec(any::<u8>(), 0..200),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let json = exchange::to_json(&crate::common::code(&choices), &Sources::new());
        let mut text: Vec<char> = json.to_string().chars().collect();
        for (at, by) in damage {
            let at = at.index(text.len());
            text[at] = char::from(b"0123456789[]{}\",abc"[usize::from(by) % 19]);
        }
        if let Ok(json) = serde_json::from_str(&text.iter().collect::<String>()) {
            match exchange::from_json(&json, &Globals::none()) {
                Ok(read) => prop_assert!(!read.code.is_empty()),
                Err(errors) => prop_assert!(!errors.is_empty() && errors.iter().all(|e| e.path.starts_with('$'))),
            }
        }
    }

    #[test]
    fn parts_of_the_text_lie_inside_each_other(choices in prop::collection::vec(any::<u8>(), 0..200)) {
        let code = crate::common::code(&choices);
        let printed = print_with(&code, Style::TEXT);
        for (range, _) in &printed.parts {
            prop_assert!(printed.text.get(range.clone()).is_some());
        }
        prop_assert_eq!(printed.parts.last().map(|(_, id)| *id), Some(code.root()));
    }
}

/// The generator is worth little if it leaves forms out.
#[test]
fn every_form_is_generated() {
    let mut seen = std::collections::HashSet::new();
    for form in 0..crate::common::FORMS {
        for salt in 0..90u8 {
            let mut choices = vec![1, 1, 1, 1, 1, 1, 1, 1, 1, 1, form, salt];
            choices.extend((0..60u8).map(|i| i.wrapping_mul(salt).wrapping_add(form)));
            for shift in 0..6 {
                for (_, t) in crate::common::code(&choices[shift..]).iter() {
                    seen.insert(std::mem::discriminant(t));
                }
            }
        }
    }
    // Every variant of `Term`.
    assert_eq!(seen.len(), 43, "{seen:?}");
    assert!(seen.contains(&std::mem::discriminant(&Term::Clear)));
}

#[test]
fn parentheses_stand_only_where_they_are_needed() {
    for text in [
        "\\x. x + 1 * 2 - 3",
        "(1 + 2) * 3 - (4 - 5)",
        "\\f. \\x. f (f x) x.a.[0].b",
        "\\p. fresh @p",
        "[\"U\"] : 1 + 1",
        "\\x. [] ? x && true",
        "let f = \\x. x >> x | x in let y = f 1 in (let z = y in z).a := f y",
        "fix[20] (\\self. \\x. if x == 0 then x else self (x - 1)) 7",
        "\\x. try[[\"U\", \"S\"]] fail x catch e. \"failed: {e}\"",
        "case `a 1 of {a x => -x, b => !true, _ => -(-1)}",
        "\\x. guard x length > 3 && !(value < 1 || .a any) retry 2",
        "choose 1/3 (\\x. x) (const 1/3)",
        "send[system] 'say \"{}\"'",
        "clear ((recv) {} (`a (`b c)) [recv] `d)".replace("c))", "null))").as_str(),
        "\\self. par[2] [@self, (`a) self]",
    ] {
        let parsed = read(text);
        let code = parsed.code.unwrap_or_else(|| panic!("{text}: {:#?}", parsed.diagnostics));
        assert_eq!(print_code(&code), format!("{text}\n"));
    }
}

#[test]
fn invalid_exchange_input_is_rejected_with_location() {
    let wrong = |json: &str| {
        let errors = exchange::from_json(&serde_json::from_str(json).unwrap(), &Globals::none()).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert_eq!(wrong("{}"), "$: the field `format` is missing");
    let of = |terms: &str| {
        format!(
            r#"{{"format":"entail-core","version":1,"files":["a"],"tools":[],"stores":[],"terms":{terms},"root":0}}"#
        )
    };
    assert_eq!(wrong(&of("[]")), "$.root: unknown term 0");
    assert_eq!(wrong(&of(r#"[{"op":"var","name":"x","at":[0,1,2]}]"#)), "$.terms[0]: unknown variable `x`");
    assert_eq!(
        wrong(&of(r#"[{"op":"fst","of":[0],"at":[0,1,2]}]"#)),
        "$.terms[0].of[0]: unknown earlier term 0"
    );
    assert_eq!(
        wrong(&of(r#"[{"op":"lit","value":{"$num":"x"},"at":[0,1,2]},{"op":"nope","at":[0,1,2]}]"#)),
        "$.terms[0].value.$num: not a number; $.terms[1].op: unknown term `nope` of 0 terms"
    );
}

#[test]
fn the_documented_exchange_form_is_read() {
    let text = include_str!("../../../../docs/exchange.md");
    let json = text.split("```json").nth(1).and_then(|t| t.split("```").next()).unwrap();
    let read = exchange::from_json(&serde_json::from_str(json).unwrap(), &Globals::none()).unwrap();
    assert_eq!(print_code(&read.code), "\\x. x + 0.5\n");
}

#[test]
fn a_tag_before_a_minus_keeps_the_minus() {
    let text = "(const `x) - 1";
    let code = read(text).code.unwrap();
    assert_eq!(print_code(&code).trim(), text);
    assert!(read_back(&print_code(&code)).is_ok_and(|back| back == code));
}
