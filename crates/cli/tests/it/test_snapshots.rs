//! `expect snapshot`: values that are compared with recorded ones.

use super::cli::{entail_in, root, write};
use serde_json::{Value, json};
use std::path::Path;

const PROGRAM: &str = r#"
tool page() -> String reads untrusted {}
fn letter(name: String) -> List[String] { [f"Dear {name},", "bye"] }
test "letter" {
    let found = letter("Ann");
    expect snapshot found;
    expect snapshot length( found );
}
test "page" {
    mock page() => "hi";
    let text = page();
    expect snapshot text;
}
"#;

fn recorded(dir: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(dir.join("t.snapshots.json")).unwrap()).unwrap()
}

#[test]
fn a_snapshot_is_accepted_and_then_compared() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.agent", PROGRAM);
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("error[snapshot]: `found` is not in `t.snapshots.json`"), "{}", ran.out);
    assert!(ran.out.contains("+  \"Dear Ann,\","), "{}", ran.out);
    assert!(!dir.path().join("t.snapshots.json").exists());
    let ran = entail_in(dir.path(), &["test", "t.agent", "--accept"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, "recorded t.snapshots.json\n2 passed, 0 failed\n"));
    let all = json!({"letter": {"found": ["Dear Ann,", "bye"], "length(found)": 2}, "page": {"text": "hi"}});
    assert_eq!(recorded(dir.path()), all);
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!(ran.status, 0, "{}", ran.out);
    // A changed value.
    write(dir.path(), "t.agent", PROGRAM.replace("bye", "see you"));
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("-  \"bye\"\n+  \"see you\"\n"), "{}", ran.out);
    assert!(!ran.out.contains("`length(found)` is not"), "{}", ran.out);
    let ran = entail_in(dir.path(), &["test", "t.agent", "--format", "json"]);
    let line: Value = serde_json::from_str(ran.out.lines().next().unwrap()).unwrap();
    assert_eq!((&line["status"], &line["error"]["code"]), (&json!("failed"), &json!("snapshot")));
    // With a filter the others stay.
    entail_in(dir.path(), &["test", "t.agent", "--accept", "--filter", "letter"]);
    assert_eq!(recorded(dir.path())["letter"]["found"], json!(["Dear Ann,", "see you"]));
    assert_eq!(recorded(dir.path())["page"], json!({"text": "hi"}));
}

#[test]
fn only_tests_that_pass_are_recorded_and_tests_that_are_gone_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "t.agent",
        PROGRAM.replace("expect snapshot text;", "expect snapshot text; assert 1 == 2;"),
    );
    let ran = entail_in(dir.path(), &["test", "t.agent", "--accept"]);
    assert_eq!(ran.status, 1);
    assert_eq!(recorded(dir.path()), json!({"letter": {"found": ["Dear Ann,", "bye"], "length(found)": 2}}));
    write(dir.path(), "t.agent", PROGRAM.replace("test \"letter\"", "test \"note\""));
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert!(
        ran.err.contains("`t.snapshots.json` has snapshots of `letter`, which is not a test"),
        "{}",
        ran.err
    );
    let ran = entail_in(dir.path(), &["test", "t.agent", "--accept"]);
    assert_eq!(ran.status, 0);
    assert_eq!(recorded(dir.path()).as_object().unwrap().keys().collect::<Vec<_>>(), ["note", "page"]);
    write(dir.path(), "t.snapshots.json", "[]");
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert!(
        ran.status == 2 && ran.err.contains("not an object with the snapshots of each test"),
        "{}",
        ran.err
    );
}

/// A bound of the program's output is about what the program gives, not about what a test looks at.
#[test]
fn a_bound_of_the_output_holds_for_no_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let bound = "policy { output { bound trusted; } }\n";
    write(dir.path(), "t.agent", format!("{bound}{PROGRAM}"));
    let ran = entail_in(dir.path(), &["test", "t.agent", "--accept"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn rows_have_snapshots_of_their_own_and_samples_share_one() {
    let dir = tempfile::tempdir().unwrap();
    let test = "test \"t\" for each row of \"c.csv\" samples 2 pass >= 1 { expect snapshot upper(row.a); }\n";
    write(dir.path(), "t.agent", test);
    write(dir.path(), "c.csv", "a\nx\ny\n");
    assert_eq!(entail_in(dir.path(), &["test", "t.agent", "--accept"]).status, 0);
    let of = |text: &str| json!({"upper(row.a)": text});
    assert_eq!(recorded(dir.path()), json!({"t [row 1]": of("X"), "t [row 2]": of("Y")}));
    assert_eq!(entail_in(dir.path(), &["test", "t.agent"]).status, 0);
    let suite = root().join("suite/agent/test/snapshots.agent").display().to_string();
    assert_eq!(entail_in(&root(), &["test", &suite]).status, 0);
}
