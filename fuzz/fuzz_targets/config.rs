//! Any bytes are linted as a YAML and as a JSON file and as a module of Python without a panic, and every
//! finding has a place in the text.
//!
//! `cargo +nightly fuzz run config`; `suite/frontends` makes good seeds.
#![no_main]

use lint::{Config, Outcome, lint_bytes};
use diagnostics::{FileId, Level};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let config = Config { level: Level::Info, ..Config::default() };
    for path in ["a.yaml", "a.json", "a.py"] {
        let report = lint_bytes(frontends::recognize, path, FileId(0), bytes, &config);
        let findings = match report.outcome {
            Outcome::Skipped(_) => continue,
            Outcome::Unreadable(findings) | Outcome::Checked { findings, .. } => findings,
        };
        let Some(text) = report.text else { continue };
        for d in &findings {
            let span = d.span.expect("every finding has a place");
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{d:?}");
        }
    }
});
