//! `entail test` with data sets and samples.

use super::cli::{Ran, entail_in, root, write};
use serde_json::Value;
use std::path::Path;

const TRIAGE: &str = r#"
type Case = Obj{ticket: String, team: String};
enum Team { finance, support }
agent triager { tools: [] }
task classify(ticket: String) -> Team by agent { prompt "Sort: {ticket}" }
pipeline triage(ticket: String) -> Team {
    let team = run classify with { ticket: ticket } by triager;
    return team;
}
"#;

fn lines(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {}", ran.out))).collect()
}

#[test]
fn data_sets_run_a_test_for_each_row() {
    let suite = root().join("suite/agent/test/rows.agent").display().to_string();
    let ran = entail_in(&root(), &["test", &suite]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("rows.agent: routes [row 2]\n"), "{}", ran.out);
    assert!(ran.err.contains("12 passed"), "{}", ran.err);
}

#[test]
fn a_row_that_fails_is_reported_with_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let test = "test \"routes\" for each row: Case of \"cases.jsonl\" {\n    let team = triage(row.ticket);\n    \
                assert team == row.team;\n}\n";
    write(dir.path(), "t.agent", format!("{TRIAGE}{test}"));
    let cases =
        "{\"ticket\": \"charged\", \"team\": \"finance\"}\n{\"ticket\": \"crash\", \"team\": \"support\"}\n";
    write(dir.path(), "cases.jsonl", cases);
    // A row has replies of its own, or those of the test.
    let replies = r#"{"routes": ["\"finance\""], "routes [row 2]": ["\"support\""]}"#;
    write(dir.path(), "t.replies.json", replies);
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, "2 passed, 0 failed\n"), "{}", ran.out);
    write(dir.path(), "t.replies.json", r#"{"routes": ["\"finance\""], "routes [row 3]": []}"#);
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert!(
        ran.status == 1 && ran.err.contains("replies for `routes [row 3]`, which is not a test"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("FAIL t.agent: routes [row 2]"), "{}", ran.out);
    let ran = entail_in(dir.path(), &["test", "t.agent", "--format", "json"]);
    let found = lines(&ran);
    assert_eq!((found[0]["row"].clone(), found[0]["status"].clone()), (1.into(), "passed".into()));
    assert_eq!((found[1]["row"].clone(), found[1]["status"].clone()), (2.into(), "failed".into()));
    let ran = entail_in(dir.path(), &["test", "t.agent", "--filter", "[row 1]", "--format", "junit"]);
    assert!(ran.status == 0 && ran.out.contains("testcase name=\"routes [row 1]\""), "{}", ran.out);
}

/// The only error of a data set, which is shown with its code and a remedy.
fn error_of(dir: &Path, program: &str) -> String {
    let ran = entail_in(dir, &["test", program]);
    assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert_eq!(ran.err.matches("error[").count(), 1, "{}", ran.err);
    assert!(ran.err.contains("error[A094]") && ran.err.contains("help:"), "{}", ran.err);
    assert!(ran.err.len() < 4_000, "{} bytes", ran.err.len());
    ran.err
}

#[test]
fn hostile_data_sets_give_one_clear_error() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("project/deep");
    std::fs::create_dir_all(&inner).unwrap();
    write(&dir.path().join("project"), "entail.toml", "");
    write(&dir.path().join("project"), "shared.jsonl", "{\"n\": 1}\n");
    write(dir.path(), "outside.jsonl", "{\"n\": 1}\n");
    std::fs::create_dir(inner.join("folder.jsonl")).unwrap();
    let of = |path: &str| {
        let text =
            format!("test \"t\" for each row: Obj{{n: Number}} of \"{path}\" {{ assert row.n == 1; }}\n");
        write(&inner, "t.agent", text);
    };
    let deep = format!("{{\"n\": {}", "[".repeat(1 << 19));
    let long = format!("{{\"n\": \"{}\"}}", "x".repeat(2 << 20));
    let huge = "{\"n\": 1}\n".repeat((16 << 20) / 9 + 1);
    for (bytes, said) in [
        (&b""[..], "has no rows"),
        (b"{\"n\": 1}\n{\"n\": }\n", "c.jsonl:2:1"),
        (b"{\"n\": 1}\n{\"n\": \"1\"}\n", "row 2: $.n: expected a number, found a string"),
        (b"{\"n\": 1}\n\xff\xfe", "not UTF-8"),
        (deep.as_bytes(), "row 1: malformed JSON"),
        (long.as_bytes(), "row 1: longer than 1 MiB"),
        (huge.as_bytes(), "larger than 16 MiB"),
    ] {
        write(&inner, "c.jsonl", bytes);
        of("c.jsonl");
        let err = error_of(&inner, "t.agent");
        assert!(err.contains(said), "{said}: {err}");
    }
    for (path, said) in [
        ("none.jsonl", "no such file"),
        ("folder.jsonl", "no regular file"),
        ("../../outside.jsonl", "outside of the project"),
        ("/dev/zero.jsonl", "no such file"),
    ] {
        of(path);
        let err = error_of(&inner, "t.agent");
        assert!(err.contains(said) && err.contains("t.agent:1:"), "{said}: {err}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(dir.path().join("outside.jsonl"), inner.join("link.jsonl")).unwrap();
        of("link.jsonl");
        assert!(error_of(&inner, "t.agent").contains("outside of the project"));
        std::os::unix::fs::symlink("/dev/zero", dir.path().join("project/zero.jsonl")).unwrap();
        of("../zero.jsonl");
        assert!(error_of(&inner, "t.agent").contains("outside of the project"));
    }
    of("../shared.jsonl");
    assert_eq!(entail_in(&inner, &["test", "t.agent"]).status, 0);
}

const SAMPLED: &str = "test \"finance\" samples 20 pass >= 0.9 {\n    let team = triage(\"I was charged twice\");\n    \
                       assert team == \"finance\";\n}\n";

/// Replies of which `wrong` samples are of the other team.
fn replies(wrong: u32) -> String {
    let mut all = serde_json::json!({"finance": ["\"finance\""]});
    for i in 0..wrong {
        all[format!("finance [sample {}]", 3 * i)] = serde_json::json!(["\"support\""]);
    }
    all.to_string()
}

#[test]
fn samples_pass_at_the_required_rate() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.agent", format!("{TRIAGE}{SAMPLED}"));
    write(dir.path(), "t.replies.json", replies(2));
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!((ran.status, ran.err.as_str()), (0, "1 passed, 0 failed\n"), "{}", ran.out);
    let rate = "ok   t.agent: finance: 18 of 20 samples passed: 90.0 % (95 % confidence: 69.9 to 97.2 %)\n";
    assert_eq!(ran.out, rate);

    // One fewer is not enough.
    write(dir.path(), "t.replies.json", replies(3));
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert_eq!(ran.status, 1, "{}", ran.out);
    assert!(
        ran.out.contains("17 of 20 samples passed: 85.0 %") && ran.out.contains("not at least 0.9"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("sample 0 is the first that failed") && ran.out.contains("team == "),
        "{}",
        ran.out
    );
    let ran = entail_in(dir.path(), &["test", "t.agent", "--format", "json"]);
    let found = &lines(&ran)[0];
    assert_eq!(found["error"]["code"], "rate");
    assert_eq!(found["usage"]["modelCalls"], 20);
    let samples = &found["samples"];
    assert_eq!(
        (&samples["runs"], &samples["passed"], &samples["mustPass"]),
        (&20.into(), &17.into(), &18.into())
    );
    assert_eq!((samples["rate"].as_f64(), samples["required"].as_f64()), (Some(0.85), Some(0.9)));
    assert_eq!(samples["confidence"].as_f64(), Some(0.95));
    let (low, high) = (samples["interval"][0].as_f64().unwrap(), samples["interval"][1].as_f64().unwrap());
    assert!((low - 0.6396).abs() < 1e-4 && (high - 0.9476).abs() < 1e-4, "{low} {high}");
}

#[test]
fn a_faulty_mock_fails_a_sampled_test() {
    let dir = tempfile::tempdir().unwrap();
    let text = "tool pay(to: String) -> String writes {}\n\
                pipeline order(to: String) -> String { let r = pay(to); return r; }\n\
                test \"t\" samples 10 pass >= 0.1 { mock pay(\"ann\") => \"paid\"; let a = order(\"ann\"); \
                try { let b = order(\"bob\"); } catch e { assert 1 == 1; } }\n";
    write(dir.path(), "t.agent", text);
    let ran = entail_in(dir.path(), &["test", "t.agent"]);
    assert!(ran.status == 1 && ran.out.contains("no mock of `pay` fits"), "{}", ran.out);
}

#[test]
fn samples_are_recorded_one_by_one() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "t.agent", format!("{TRIAGE}{}", SAMPLED.replace("20", "2")));
    let settings = "model = \"m\"\n[models.m]\nprovider = \"scripted\"\nfile = \"m.json\"\n";
    write(dir.path(), "entail.toml", settings);
    write(dir.path(), "m.json", "[\"\\\"finance\\\"\"]");
    let ran = entail_in(dir.path(), &["test", "--record", "t.agent"]);
    assert_eq!(ran.status, 0, "{}{}", ran.out, ran.err);
    let recorded = std::fs::read_to_string(dir.path().join("t.replies.json")).unwrap();
    let recorded: Value = serde_json::from_str(&recorded).unwrap();
    let names: Vec<&str> = recorded.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["finance [sample 0]", "finance [sample 1]"]);
    assert_eq!(entail_in(dir.path(), &["test", "t.agent"]).status, 0);
}

/// The check of what a condition has shown to be there forgot the conditions of its type, and the lists in a
/// type that mentions itself had no length.
#[test]
fn conditions_inside_of_options_and_recursive_types_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"
type Person = Obj{mail: Email, other: Option[Email]};
type Comment = Obj{text: String, replies: List[Comment] where length(it) <= 5};
agent a { tools: [] }
task answer(text: String) -> String by agent { prompt "{text}" }
tool find(id: String) -> Option[Person] pure {}
tool write_to(to: Email) -> String writes {}
pipeline written(id: String) -> String {
    let person = find(id);
    if person == null { return "nobody"; }
    let first = write_to(person.mail);
    if person.other != null { let second = write_to(person.other); }
    return first;
}
pipeline answered(comment: Comment) -> Number {
    for reply in comment.replies { let text = answer(reply.text) by a; }
    return length(comment.replies);
}
"#;
    write(dir.path(), "t.agent", text);
    let ran = entail_in(dir.path(), &["check", "t.agent"]);
    assert!(ran.status == 0 && !ran.err.contains("T009"), "{}{}", ran.out, ran.err);
    let ran = entail_in(dir.path(), &["cost", "t.agent", "--pipeline", "answered"]);
    assert!(ran.out.contains("model calls    at most 5\n"), "{}{}", ran.out, ran.err);
}
