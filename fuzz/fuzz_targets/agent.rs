//! Any text is read as a surface program, checked, and if it is accepted lowered, without a panic; every
//! finding has a place in the text.
//!
//! `cargo +nightly fuzz run agent`; `suite/agent` makes good seeds.
#![no_main]

use diagnostics::FileId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (module, found) = agentlang::check(FileId(0), text);
    for d in &found {
        let span = d.span.expect("every finding has a place");
        assert!(text.get(span.start as usize..span.end as usize).is_some(), "{d:?}");
    }
    assert_eq!(module.is_none(), diagnostics::has_errors(&found));
    let Some(module) = module else { return };
    for entry in module.entries() {
        let lowered = module.lower(entry);
        assert!(lowered.is_ok() || lowered.is_err_and(|e| e.iter().all(|d| d.code == "A081")));
    }
});
