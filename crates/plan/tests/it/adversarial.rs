//! Plans of `suite/plans/adversarial`: each tries to tell an observer what it may not see.
//!
//! The comments at the top of a file say what its world answers:
//!
//! - `# observer:` `trusted`, `public` or `both`;
//! - `# world 1:` and `# world 2:` JSON objects from tools (and `ask`) to answers;
//! - `# sees:` what the observer sees of both: JSON of the requests, and the end, or `hidden`;
//! - `# sees 1:` and `# sees 2:` where one run ends of an error that the observer does not see: what it sees
//!   up to there. Noninterference is insensitive to termination;
//! - `# calls 1:` and `# calls 2:` JSON of all requests of a run, whoever sees them: that it went as the
//!   attack wants;
//! - `# refused:` the codes of findings, if the plan is refused before it runs;
//! - `# docs:` the sentence of the page of the language that it attacks, for plans that were written by
//!   reading the page alone.

use crate::worlds::{Answers, Observer, compile, run};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Kinds of attacks that there must be, one file or more each.
const KINDS: &[&str] = &[
    "fenton",
    "exception_class",
    "exception_place",
    "loop_count",
    "break_index",
    "dict_order",
    "set_order",
    "sort_stability",
    "length",
    "early_return",
    "assert",
    "retry_count",
    "replanning_bit",
    "approval_count",
    "quarantined_bool",
    "regex_time",
    "at_most_exhausted",
    "alias_mutation",
    "closure_capture",
    "finally",
    "default_argument",
    "comprehension_shadowing",
    "fstring_width",
    "float_formatting",
    "none_from_ask",
    "timeout",
    "tool_error_text",
    "print_order",
    "partial_writes",
    "while_rounds",
];

fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|l| l.strip_prefix(&format!("# {name}:")).map(str::trim))
}

fn answers(text: &str, name: &str) -> Answers {
    let json: Value = serde_json::from_str(field(text, name).unwrap_or("{}")).expect("JSON");
    Answers(json.as_object().expect("an object").clone().into_iter().collect())
}

#[test]
fn no_adversarial_plan_tells_what_it_must_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../suite/plans/adversarial");
    let page =
        include_str!("../../../../docs/language/plans.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut names, mut attacked) = (Vec::new(), 0);
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("").to_string();
        let Some(stem) = name.strip_suffix(".plan.py") else { continue };
        names.push(stem.to_string());
        let text = std::fs::read_to_string(&path).expect("a plan");
        if let Some(sentence) = field(&text, "docs") {
            attacked += 1;
            if !page.contains(sentence) {
                wrong.push(format!("{name}: the page does not say: {sentence}"));
            }
        }
        let code = match compile(&text) {
            Ok(code) => Arc::new(code),
            Err(found) => {
                let codes: Vec<&str> = found.iter().map(|d| d.code).collect();
                if field(&text, "refused") != Some(codes.join(", ").as_str()) {
                    wrong.push(format!("{name}: refused before the run: {found:?}"));
                }
                continue;
            }
        };
        let observer = match field(&text, "observer") {
            Some("trusted") => Observer::Trusted,
            Some("public") => Observer::Public,
            _ => Observer::Both,
        };
        let mut runs = ["world 1", "world 2"].map(|w| run(&code, &answers(&text, w)));
        let seen = runs.each_mut().map(|r| r.seen(observer));
        if !seen[0].agrees(&seen[1]) {
            wrong.push(format!("{name}: the worlds can be told apart: {seen:?}"));
        }
        for (i, s) in seen.iter().enumerate() {
            let own = field(&text, &format!("sees {}", i + 1));
            let expected = own.or_else(|| field(&text, "sees")).unwrap_or("null");
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            let shown = json!([s.trace, s.end.clone().unwrap_or(json!("hidden"))]);
            if shown != expected {
                wrong.push(format!("{name}: expected {expected}\n      sees {shown}"));
            }
        }
        for (i, run) in runs.iter().enumerate() {
            let Some(expected) = field(&text, &format!("calls {}", i + 1)) else { continue };
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            let calls: Value = run.all_calls().map(|(_, call)| call.clone()).collect();
            if calls != expected {
                wrong.push(format!("{name}: expected the calls {expected}\n      made {calls}"));
            }
        }
        // Two worlds that are the same test nothing.
        if field(&text, "world 1") == field(&text, "world 2") {
            wrong.push(format!("{name}: the worlds are the same"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for kind in KINDS {
        assert!(names.iter().any(|n| n.starts_with(kind)), "no plan of the kind `{kind}`");
    }
    assert!(names.len() >= attacked + 50 && attacked >= 20, "{attacked} of {}", names.len());
}
