//! Any text as a plan: it is compiled or refused, and what is refused has a code.
#![no_main]

use diagnostics::{FileId, has_errors};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (code, found) = plan::compile(FileId(0), "a.plan.py", text.into(), &plan::World::default());
    assert_eq!(code.is_none(), has_errors(&found));
});
