//! `--explain-flow` and `lint --policy`, as a user meets them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use serde_json::Value as Json;
use std::path::Path;
use std::process::Command;

const INVOICE: [&str; 5] = [
    "examples/policies/invoice.agent",
    "pay MALLORY",
    "--script",
    "examples/policies/invoice.script.json",
    "--explain-flow",
];

/// Runs the program in the project's root; gives standard output.
fn entail(args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = Command::new(env!("CARGO_BIN_EXE_entail")).args(args).current_dir(root).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The steps of the first way of the first component.
fn steps(from: &Json) -> Vec<&str> {
    from[0]["ways"][0].as_array().unwrap().iter().map(|hop| hop["step"].as_str().unwrap()).collect()
}

#[test]
fn a_refusal_is_data_as_well() {
    let out = entail(&[&["run", "--format", "json"][..], &INVOICE].concat());
    let ran: Json = serde_json::from_str(&out).unwrap();
    let refused = &ran["error"]["refused"];
    assert_eq!((&refused["of"], &refused["name"]), (&"account".into(), &"pay".into()));
    assert_eq!(
        (refused["label"].to_string(), refused["bound"].to_string()),
        (r#"["U"]"#.into(), r#"["S"]"#.into())
    );
    assert_eq!(steps(&refused["from"]), ["model", "sent", "tool"]);
}

#[test]
fn what_is_recorded_explains_the_same_and_shows_no_content() {
    let dir = tempfile::tempdir().unwrap();
    let [trace, again, journal] =
        ["trace.jsonl", "again.jsonl", "run.db"].map(|f| dir.path().join(f).display().to_string());
    entail(&[&["run", "--trace", &trace, "--record", &journal][..], &INVOICE].concat());
    entail(&["run", INVOICE[0], "--replay", &journal, "--trace", &again, "--explain-flow"]);
    for value in ["error", "due", "2", "2.conversation"] {
        let [first, second] = [&trace, &again].map(|t| entail(&["trace", t, "--why", value]));
        assert!(first.contains("the tool `read` answered (request 1)"), "{value}: {first}");
        assert_eq!(first, second, "{value}");
        assert!(!first.contains("MALLORY"), "{value}: {first}");
    }
    let json = entail(&["trace", &trace, "--why", "due", "--format", "json"]);
    assert_eq!(steps(&lines(&json)[0]["from"]), ["model", "sent", "tool"]);
    // A run that was not asked to explain has nothing of it in its trace, and is otherwise the same.
    let plain = dir.path().join("plain.jsonl").display().to_string();
    entail(&[&["run", "--trace", &plain][..], &INVOICE[..4]].concat());
    let [with, without] = [&trace, &plain].map(|t| lines(&std::fs::read_to_string(t).unwrap()));
    let without_why = with.into_iter().filter(|l| l["event"] != "value").map(|mut l| {
        l.as_object_mut().unwrap().remove("why");
        if let Some(refused) = l.get_mut("error").and_then(|e| e.get_mut("refused")) {
            refused["from"] = Json::Array(Vec::new());
        }
        l
    });
    assert_eq!(without_why.collect::<Vec<_>>(), without);
}

#[test]
fn a_configuration_is_judged_under_a_policy_without_being_changed() {
    let lint = |more: &[&str]| {
        let out = entail(&[&["lint", "--format", "json", "examples/configs/coder.yaml"][..], more].concat());
        let codes = lines(&out).into_iter().map(|l| l["code"].as_str().unwrap_or_default().to_string());
        codes.filter(|c| c.starts_with("S1")).collect::<Vec<_>>()
    };
    assert_eq!(lint(&[]), Vec::<String>::new());
    assert_eq!(lint(&["--policy", "examples/configs/leak.policy.toml"]), ["S103"]);
    assert_eq!(
        lint(&["--policy", "examples/configs/leak.policy.toml", "--ignore", "S103"]),
        Vec::<String>::new()
    );
    assert_eq!(lint(&["--policy", "examples/configs/coder.policy.toml"]), Vec::<String>::new());
}
