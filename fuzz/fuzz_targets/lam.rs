//! Any text is read without a panic, and what reads as a term is printed as text that reads as the same term.
//!
//! `cargo +nightly fuzz run lam`; examples make good seeds:
//! `cargo +nightly fuzz run lam fuzz/corpus/lam examples/llmbda`.
#![no_main]

use core_ir::print::{Style, print_with};
use core_ir::{Globals, exchange};
use diagnostics::{FileId, Sources};
use libfuzzer_sys::fuzz_target;
use syntax::lam::{Options, parse};

fuzz_target!(|text: &str| {
    let parsed = parse(FileId(0), text, &Globals::none(), Options::PROGRAM);
    assert_eq!(parsed.code.is_none(), diagnostics::has_errors(&parsed.diagnostics));
    for d in &parsed.diagnostics {
        let span = d.span.expect("every finding has a place");
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{d:?}");
    }
    let Some(code) = parsed.code else { return };
    for style in [Style::TEXT, Style::UNICODE, Style::LINE] {
        let shown = print_with(&code, style).text;
        let again = parse(FileId(0), &shown, &Globals::none(), Options::PROGRAM).code;
        assert!(again.as_ref() == Some(&code), "{text}\n{shown}");
    }
    let json = exchange::to_json(&code, &Sources::new());
    let back = exchange::from_json(&json, &Globals::none()).map(|r| r.code);
    assert!(back.is_ok_and(|back| back == code), "{json}");
});
