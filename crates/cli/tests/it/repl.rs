//! `entail repl` with lines from a pipe.

use assert_cmd::Command;
use std::path::Path;

/// Exit status, standard output, standard error of a session with these options and this input.
fn session(args: &[&str], input: &str) -> (i32, String, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::cargo_bin("entail").unwrap();
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    let out = command.arg("repl").args(args).current_dir(root).write_stdin(input).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap(), text(out.stdout), text(out.stderr))
}

fn given(input: &str) -> String {
    let (status, out, err) = session(&[], input);
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    out
}

#[test]
fn definitions_are_kept_and_may_be_replaced() {
    let input = "let x = 20\nlet f = \\n. n + x\nlet x = [\"S\"]:1\nf 1\nx + 1\n:label x\n";
    assert_eq!(given(input), "21\n[\"S\"]:2\n[\"S\"]\n");
}

#[test]
fn open_brackets_and_strings_go_on_and_the_end_ends() {
    assert_eq!(given("map (\\x.\n  x * x)\n  [1,\n2]\n"), "<function>\n[1, 2]\n");
    assert_eq!(given("let y =\n  4\nfst (y,\n 5)"), "4\n");
    // What an operator wants may stand at the margin too.
    assert_eq!(given("1 +\n2\nlet y =\n4\n\"a\nb\"\n:type 1 <\n2\n"), "3\n\"a\\nb\"\nBool\n");
    assert_eq!(given(""), "");
    assert_eq!(given("1\n:quit\n2\n"), "1\n");
}

#[test]
fn repl_survives_errors_and_points_into_input() {
    let (status, out, err) =
        session(&[], "let f = \\x. x + true\nf 1\nlenght [1]\n1 +\n\n(\n\n:typ 1\n:nope\n7\n");
    assert_eq!((status, out.as_str()), (1, "Num\n7\n"), "{err}");
    assert!(err.contains("<input 1>:1:13"), "{err}");
    assert!(err.contains("<input 3>:1:1") && err.contains("did you mean `length`?"), "{err}");
    assert!(err.contains("<input 5>:1:2"), "{err}");
    assert!(err.contains("unknown command `:nope`"), "{err}");
}

#[test]
fn resumed_run_repeats_no_request() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("replies.json");
    std::fs::write(&script, r#"["one", "two"]"#).unwrap();
    let script = ["--script", script.to_str().unwrap()];
    let input = "let ask = llm \"Answer.\" {}\nlet a = ask \"x\"\n(a, a)\n:effects ask\nask \"y\"\n";
    let (status, out, err) = session(&script, input);
    assert_eq!(status, 0, "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[0].matches("one").count() == 2 && !lines[0].contains("two"), "{out}");
    assert!(lines[1].starts_with("pure; a call: llm"), "{out}");
    assert!(lines[2].contains("two"), "{out}");
}

#[test]
fn questions_about_terms_are_answered_as_the_commands_answer_them() {
    let out = given(
        "tool look(q: Str) -> Str read \"Looks.\"\nlet f = \\x: Str. tool[look] x\n:cost f\n:effects f \"a\"\n",
    );
    assert!(out.contains("tool calls     at most 1") || out.contains("tool calls     1"), "{out}");
    assert!(out.contains("tool(look)"), "{out}");
    let out = given(":trace 1 + 1\n");
    assert!(out.contains("result 2") && out.contains("0 model calls"), "{out}");
    assert!(given(":help\n").contains(":load FILE"));
}

#[test]
fn files_are_loaded_as_if_typed_and_pipelines_are_functions() {
    let dir = tempfile::tempdir().unwrap();
    let lam = dir.path().join("a.lam");
    std::fs::write(&lam, "let twice = \\f. f >> f\n\ntwice (\\x. x + 1) 5\n").unwrap();
    let input = format!(":load {}\ntwice (\\x. x * 2) 3\n:list\n", lam.display());
    assert_eq!(given(&input), "7\n12\nlet twice = \\f. f >> f\n");
    let script = ["--script", "examples/triage.script.json", "examples/triage.agent"];
    let (status, out, err) = session(&script, ":cost triage\ntriage {ticket: \"I was charged twice\"}\n");
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("model calls") && out.lines().count() > 6, "{out}");
    let (status, _, err) = session(&[], ":load nowhere.lam\n");
    assert!(status == 1 && err.contains("cannot read `nowhere.lam`"), "{err}");
}
