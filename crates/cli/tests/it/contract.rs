//! Contract of the command line that every command keeps: `-` is standard input, an unwritable result is a
//! failure, and a signal ends the run in an orderly way. Also guarantees of single commands on which scripts
//! rely.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

const SHOUT: &str = "tool shout(text: String) -> String { builtin \"text.upper\" }\n\
    pipeline main(text: String, n: Number) -> Obj{t: String, n: Number} { let t = shout(text); return { t: t, n: n + 1 }; }\n\
    test \"loud\" { let t = shout(\"a\"); assert t == \"A\"; }\n";

fn command(dir: &Path, args: &[&str]) -> Command {
    started(Command::new(env!("CARGO_BIN_EXE_entail")), dir, args)
}

/// A command that begins the program, or whatever begins it.
fn started(mut command: Command, dir: &Path, args: &[&str]) -> Command {
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    command.args(args).current_dir(dir).stdin(Stdio::null());
    command
}

/// Exit status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    piped(dir, args, "")
}

fn piped(dir: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    let pipes = |c: &mut Command| {
        c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = pipes(&mut command(dir, args));
    // Whoever does not read it may have gone.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), SHOUT).unwrap();
    dir
}

fn parsed(ran: &(i32, String, String)) -> Value {
    assert_eq!(ran.0, 0, "{ran:?}");
    serde_json::from_str(&ran.1).unwrap()
}

#[test]
fn a_dash_is_standard_input_for_programs_and_for_inputs() {
    let dir = folder();
    let at = dir.path();
    let given = r#"{"text": "hi", "n": 1}"#;
    for args in [vec!["run", "p.agent", "-"], vec!["run", "p.agent", "--input", "-"]] {
        assert_eq!(parsed(&piped(at, &args, given)), json!({"t": "HI", "n": 2}), "{args:?}");
    }
    let tested = piped(at, &["test", "-"], SHOUT);
    assert!(tested.0 == 0 && tested.1.contains("loud"), "{tested:?}");
    let vacuous = "agentId: a\ntype: react\nreact: {maxSteps: 0}\nmodel: {name: m}\nsystemPrompt: p\nmcp: {localTools: [x]}\n";
    let linted = piped(at, &["lint", "-"], vacuous);
    assert!(linted.0 == 1 && linted.1.contains("error[L003]") && linted.1.contains("--> -:3:"), "{linted:?}");
    let program = piped(at, &["lint", "-"], "pipeline p() -> Number { return 1 }");
    assert!(program.0 == 1 && program.1.contains("A011"), "{program:?}");
    for option in ["--fix", "--diff"] {
        let repaired = piped(at, &["lint", option, "-"], vacuous);
        assert!(repaired.0 == 2 && !at.join("-").exists(), "{repaired:?}");
    }
    let both = piped(at, &["run", "-", "-"], SHOUT);
    assert!(both.0 == 2 && both.2.contains("standard input is the program already"), "{both:?}");
}

#[test]
fn a_trace_is_read_from_standard_input_and_from_a_file_of_any_name() {
    let dir = folder();
    let at = dir.path();
    entail(at, &["run", "p.agent", r#"{"text": "hi", "n": 1}"#, "--trace", "kept.trace"]);
    let whole = std::fs::read_to_string(at.join("kept.trace")).unwrap();
    for shown in [piped(at, &["trace", "-"], &whole), entail(at, &["trace", "kept.trace"])] {
        assert!(shown.0 == 0 && shown.1.contains("tool shout"), "{shown:?}");
    }
    let program = piped(at, &["trace", "-", r#"{"text": "hi", "n": 1}"#], SHOUT);
    assert!(program.0 == 0 && program.1.contains("tool shout"), "{program:?}");
}

#[test]
fn a_run_of_a_journal_is_shown_as_a_trace_without_asking_anything() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = "tool note(text: String) -> String { exec \"sh\" \"-c\" \"echo x >> ledger; echo '\\\"noted\\\"'\" }\n\
        pipeline main(text: String) -> String { let a = note(text); return a; }\n";
    std::fs::create_dir(at.join("with space")).unwrap();
    std::fs::write(at.join("with space/p.agent"), program).unwrap();
    let ran = entail(at, &["run", "with space/p.agent", "hi", "--journal", "j", "--format", "json"]);
    let run = parsed(&ran)["run"].as_str().unwrap().to_string();
    let shown = entail(at, &["trace", &run[..18], "--journal", "j"]);
    assert_eq!(shown.0, 0, "{shown:?}");
    for part in [
        "tool note {\"text\":\"hi\"}",
        "with space/p.agent:2:",
        "<- noted",
        "result noted",
        "{\"text\":\"hi\"}",
    ] {
        assert!(shown.1.contains(part), "{part}: {}", shown.1);
    }
    let lines = entail(at, &["trace", &run, "--journal", "j", "--json"]);
    assert!(lines.1.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()), "{lines:?}");
    assert_eq!(std::fs::read_to_string(at.join("ledger")).unwrap(), "x\n");

    let none = entail(at, &["trace", "abcdef", "--journal", "j"]);
    assert!(none.0 == 2 && none.2.contains("run `abcdef` not found"), "{none:?}");
    let nowhere = entail(at, &["trace", &run]);
    assert!(nowhere.0 == 2 && nowhere.2.contains("--journal DIR"), "{nowhere:?}");
    std::fs::remove_file(at.join("with space/p.agent")).unwrap();
    // The journal has the program.
    let gone = entail(at, &["trace", &run, "--journal", "j"]);
    assert_eq!((gone.0, &gone.1), (0, &shown.1), "{gone:?}");
}

#[test]
fn compile_writes_the_calculus_that_eval_reads() {
    let dir = folder();
    let lam = entail(dir.path(), &["compile", "--format", "lam", "p.agent"]);
    let same = entail(dir.path(), &["compile", "--lam", "p.agent"]);
    assert!(lam.0 == 0 && lam.1 == same.1 && lam.1.contains(r"\$input1."), "{lam:?}");
    let other = entail(dir.path(), &["check", "--format", "lam", "p.agent"]);
    assert!(other.0 == 2 && other.2.contains("[possible values: text, json]"), "{other:?}");
    let counts = entail(dir.path(), &["compile", "--stats", "--format", "dot", "."]);
    assert!(counts.0 == 2 && counts.2.contains("`--stats` writes the formats"), "{counts:?}");
}

#[test]
fn help_of_a_command_lists_its_own_formats() {
    let dir = folder();
    for (command, formats) in [
        ("check", "[possible values: text, json]"),
        ("lint", "[possible values: text, json, sarif, github, markdown]"),
        ("test", "[possible values: text, json, junit]"),
        ("compile", "[possible values: text, json, lam, mermaid, dot, svg]"),
    ] {
        let help = entail(dir.path(), &[command, "-h"]).1;
        // Long lines are wrapped.
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let option = help.split("--format <FORMAT>").nth(1).and_then(|h| h.split("--").next());
        assert!(option.is_some_and(|o| o.contains(formats)), "{command}: {help}");
    }
    assert!(!entail(dir.path(), &["lsp", "-h"]).1.contains("--format"));
}

#[test]
fn a_format_of_every_command_may_come_before_the_command() {
    let dir = folder();
    let before = entail(dir.path(), &["--format", "json", "check", "p.agent"]);
    let after = entail(dir.path(), &["check", "p.agent", "--format", "json"]);
    assert!(before.0 == 0 && before == after && before.1.starts_with('{'), "{before:?}");
    let linted = entail(dir.path(), &["--format", "json", "lint", "--stats", "p.agent"]);
    assert!(linted.0 == 0 && linted.1.starts_with("{\"stats\""), "{linted:?}");
    let sarif = entail(dir.path(), &["--format", "sarif", "lint", "p.agent"]);
    assert!(sarif.0 == 2 && sarif.2.contains("[possible values: text, json]"), "{sarif:?}");
}

#[test]
fn a_tool_is_called_by_itself() {
    let dir = folder();
    let at = dir.path();
    std::fs::write(at.join("args.json"), r#"{"text": "file"}"#).unwrap();
    for (given, gives) in [(r#"{"text": "hi"}"#, "HI"), ("hi", "HI"), ("@args.json", "FILE")] {
        assert_eq!(parsed(&entail(at, &["tools", "p.agent", "--test", "shout", given])), json!(gives));
    }
    assert_eq!(
        parsed(&piped(at, &["tools", "p.agent", "--test", "shout", "-"], r#"{"text": "in"}"#)),
        json!("IN")
    );
    let json = parsed(&entail(at, &["tools", "p.agent", "--test", "shout", "hi", "--format", "json"]));
    assert_eq!((&json["result"], &json["usage"]["toolCalls"]), (&json!("HI"), &json!(1)));
    for (args, said) in [
        (vec!["nope", "{}"], "there is: shout"),
        (vec!["shout", r#"{"txt": 1}"#], "did you mean `text`?"),
        (vec!["shout", "{}"], "$.text: missing"),
        (vec!["shout"], "entail tools p.agent --test shout '{\"text\":\"…\"}'"),
    ] {
        let ran = entail(at, &[vec!["tools", "p.agent", "--test"], args].concat());
        assert!(ran.0 == 2 && ran.2.contains(said), "{ran:?}");
    }
    // What it gives is held to its declaration, and a policy holds for it.
    let wrong = "tool age(name: String) -> Number { exec \"echo\" \"\\\"old\\\"\" }\n\
        pipeline main(name: String) -> Number { let a = age(name); return a; }\n";
    std::fs::write(at.join("w.agent"), wrong).unwrap();
    let ran = entail(at, &["tools", "w.agent", "--test", "age", "eve"]);
    assert!(ran.0 == 1 && ran.2.contains("`age`") && ran.2.contains("number"), "{ran:?}");
    std::fs::write(at.join("policy.toml"), "[tools.shout]\neffect = \"write\"\napprove = true\n").unwrap();
    let ran = entail(at, &["tools", "p.agent", "--policy", "policy.toml", "--test", "shout", "hi"]);
    assert!(ran.0 == 1 && ran.2.contains("not approved"), "{ran:?}");
}

#[test]
fn request_errors_state_remedy() {
    let dir = folder();
    let at = dir.path();
    std::fs::write(at.join("q.agent"), "pipeline main() -> Number { return 1; }\n").unwrap();
    let ask = "task ask(q: String) -> String by agent { prompt \"{q}\" }\nagent a { tools: [] }\n\
        pipeline p(q: String) -> String { let r = run ask with { q: q } by a; return r; }\n";
    std::fs::write(at.join("ask.agent"), ask).unwrap();
    for (args, said) in [
        (vec!["serve", "p.agent", "q.agent"], "that of `p.agent` and that of `q.agent`"),
        (vec!["serve", "q.agent", "--listen", "8080"], "such as `127.0.0.1:8080`"),
        (vec!["run", "ask.agent", "x", "--script", "none.json"], "no such file"),
        (vec!["run", "ask.agent", "x", "--model", "claude-sonnet-5"], "`ANTHROPIC_API_KEY`"),
        (vec!["runs", "list"], "--journal DIR"),
    ] {
        let mut asked = command(at, &args);
        let out = asked.env_remove("ANTHROPIC_API_KEY").output().unwrap();
        let err = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(2) && err.contains(said), "{args:?}: {err}");
    }
    // Nothing was answered, so there is nothing to show of it.
    std::fs::write(at.join("s.json"), "[\"r\"]").unwrap();
    let none = entail(at, &["run", "ask.agent", "x", "--script", "s.json", "--max-calls", "0"]);
    assert!(none.0 == 1 && !none.2.contains("answered before"), "{none:?}");
}

#[test]
fn a_folder_with_one_program_is_that_program() {
    let dir = folder();
    let at = dir.path();
    let given = r#"{"text": "hi", "n": 1}"#;
    assert_eq!(parsed(&entail(at, &["run", ".", given])), json!({"t": "HI", "n": 2}));
    let cost = entail(at, &["cost", "."]);
    assert!(cost.0 == 0 && cost.1.contains("tool calls     1"), "{cost:?}");
    std::fs::write(at.join("q.lam"), "1").unwrap();
    let two = entail(at, &["cost", "."]);
    assert!(two.0 == 2 && two.2.contains("p.agent") && two.2.contains("q.lam"), "{two:?}");
}

/// On Linux there is a file on which nothing can be written.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_no_success() {
    let dir = folder();
    let given = r#"{"text": "hi", "n": 1}"#;
    for args in [vec!["run", "p.agent", given], vec!["check", "p.agent"], vec!["version"], vec!["--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let out = command(dir.path(), &args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(1), "{args:?}: {said}");
        assert!(args == ["--help"] || said.contains("cannot write to standard output: "), "{args:?}: {said}");
    }
}

/// Signals that end a process end the run that it is at: with its tools, its journal whole, and a word how to
/// go on.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_run_with_its_tools_and_keeps_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = "tool wait(x: String) -> String { exec \"sh\" \"-c\" \"echo $$ > pid; exec sleep 60\" }\n\
        pipeline main(x: String) -> String { let y = wait(x); return y; }\n";
    std::fs::write(at.join("p.agent"), program).unwrap();
    for (signal, status) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        // The tests may run under `nohup`, which has children ignore the signal, too.
        let mut heeding = Command::new("env");
        heeding.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_entail")]);
        let mut child = started(heeding, at, &["run", "-v", "p.agent", "x", "--journal", "my runs"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        said.read_line(&mut String::new()).unwrap();
        let pid = loop {
            let pid = std::fs::read_to_string(at.join("pid")).unwrap_or_default();
            if pid.ends_with('\n') {
                break pid.trim().to_string();
            }
            std::thread::yield_now();
        };
        std::fs::remove_file(at.join("pid")).unwrap();
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let mut rest = String::new();
        said.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(status), "{signal}: {rest}");
        assert!(rest.contains("error[cancelled]"), "{signal}: {rest}");
        assert!(rest.contains("entail run p.agent --journal 'my runs' --resume "), "{signal}: {rest}");
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{signal}: the tool is still there: {state}");
    }
    let listed = entail(at, &["runs", "list", "--journal", "my runs"]);
    assert_eq!(listed.1.matches("  stopped ").count(), 3, "{listed:?}");
}

/// A run under `nohup` outlives its terminal.
#[cfg(target_os = "linux")]
#[test]
fn a_run_under_nohup_outlives_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = "tool wait(x: String) -> String { exec \"sh\" \"-c\" \"touch begun; while ! test -e go && test -e p.agent; do sleep 0.05; done; echo '\\\"ok\\\"'\" }\n\
        pipeline main(x: String) -> String { let y = wait(x); return y; }\n";
    std::fs::write(at.join("p.agent"), program).unwrap();
    let mut child = Command::new("nohup")
        .args([env!("CARGO_BIN_EXE_entail"), "run", "p.agent", "x"])
        .current_dir(at)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !at.join("begun").exists() {
        std::thread::yield_now();
    }
    Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    std::fs::write(at.join("go"), "").unwrap();
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!((child.wait().unwrap().code(), out.as_str()), (Some(0), "\"ok\"\n"));
}

/// The file says that a run is under way until its process says otherwise; one that was killed never does.
#[cfg(unix)]
#[test]
fn a_run_that_was_killed_is_listed_as_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let program = "tool wait(x: String) -> String { exec \"sh\" \"-c\" \"while ! test -e go && test -e p.agent; do sleep 0.05; done; echo '\\\"ok\\\"'\" }\n\
        pipeline main(x: String) -> String { let y = wait(x); return y; }\n";
    std::fs::write(at.join("p.agent"), program).unwrap();
    let mut child = command(at, &["run", "-v", "p.agent", "x", "--journal", "j"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    let status = || {
        let listed = entail(at, &["runs", "list", "--journal", "j", "--format", "json"]);
        parsed(&listed)["status"].as_str().unwrap().to_string()
    };
    assert_eq!(status(), "running");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(status(), "interrupted");
    std::fs::write(at.join("go"), "").unwrap();
}
