//! Recordings, journals, limits and stores, as the command line has them.

use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = r#"
task ask(q: String) -> String by agent { prompt "question {q}" }
agent asker { prompt: "You answer.", tools: [] }
pipeline main(q: String) -> List[String] {
    let a = run ask with { q: q } by asker;
    let b = run ask with { q: a } by asker;
    return [a, b];
}
"#;

const PASSPHRASE: &str = "correct horse battery";

/// Runs the program without the user's settings: exit status, standard output, standard error.
fn entail(dir: &Path, args: &[&str]) -> (i32, String, String) {
    entail_given(dir, args, "")
}

/// The same with a standard input.
fn entail_given(dir: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config"));
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "ENTAIL_API_KEY", "ENTAIL_BASE_URL", "ENTAIL_MODEL"] {
        command.env_remove(name);
    }
    command.args(args).current_dir(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

/// Makes a key of this name, and gives the lines that `entail.toml` needs.
fn new_key(dir: &Path, name: &str) -> String {
    let made = entail_given(dir, &["approve", "--new-key", name, "--passphrase-stdin"], PASSPHRASE);
    assert_eq!(made.0, 0, "{made:?}");
    made.1
}

/// Answers as somebody who knows the passphrase.
fn approve(dir: &Path, run: &str, answer: &[&str]) -> (i32, String, String) {
    let args = [&["approve", run, "--journal", "j", "--passphrase-stdin"], answer].concat();
    entail_given(dir, &args, PASSPHRASE)
}

fn result(ran: &(i32, String, String)) -> Value {
    assert_eq!(ran.0, 0, "{ran:?}");
    serde_json::from_str::<Value>(&ran.1).unwrap()["result"].clone()
}

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.agent"), PROGRAM).unwrap();
    std::fs::write(dir.path().join("s.json"), r#"["one", "two"]"#).unwrap();
    dir
}

#[test]
fn a_recording_is_replayed_offline_and_strictly() {
    let dir = folder();
    let recorded = entail(
        dir.path(),
        &["run", "p.agent", "hello", "--script", "s.json", "--record", "r.rec", "--format", "json"],
    );
    assert_eq!(result(&recorded), json!(["one", "two"]));
    let replayed = entail(dir.path(), &["run", "p.agent", "--replay", "r.rec", "--format", "json"]);
    assert_eq!(result(&replayed), json!(["one", "two"]));

    let with_input = entail(dir.path(), &["run", "p.agent", "hello", "--replay", "r.rec"]);
    assert!(with_input.0 == 2 && with_input.2.contains("has its input already"), "{with_input:?}");
    std::fs::write(dir.path().join("p.agent"), PROGRAM.replace("question", "Question")).unwrap();
    let changed = entail(dir.path(), &["run", "p.agent", "--replay", "r.rec"]);
    assert_eq!(changed.0, 1);
    assert!(
        changed.2.contains(
            "the request differs from the recorded one: at messages[2].content: it was `question hello`"
        ),
        "{changed:?}"
    );
    let none = entail(dir.path(), &["run", "p.agent", "--replay", "none.rec"]);
    assert!(none.0 == 2 && none.2.contains("journal `none.rec` not found"), "{none:?}");
}

#[test]
fn a_place_that_is_no_journal_is_told_so_and_left_as_it_is() {
    let dir = folder();
    std::fs::create_dir(dir.path().join("d")).unwrap();
    let notes = "notes of somebody, longer than the head of a database: ".repeat(4);
    for file in ["notes.txt", "d/journal.db"] {
        std::fs::write(dir.path().join(file), &notes).unwrap();
    }
    for (option, place, why, help) in [
        ("--journal", "notes.txt", "is a file, and a journal is in a directory", "`--record FILE`"),
        ("--record", "d", "`d` is a directory", "name a file in it"),
        ("--journal", "d", "it is not a journal", "name another place"),
        ("--record", "notes.txt", "it is not a journal", "name another place"),
        ("--replay", "notes.txt", "it is not a journal", "name another place"),
    ] {
        let rest: &[&str] = if option == "--replay" { &[] } else { &["hello", "--script", "s.json"] };
        let args = [&["run", "p.agent", option, place], rest].concat();
        let (status, _, said) = entail(dir.path(), &args);
        assert!(status == 2 && said.contains(why) && said.contains(help), "{args:?}: {said}");
    }
    let (status, _, said) =
        entail(dir.path(), &["serve", "p.agent", "--script", "s.json", "--journal", "notes.txt"]);
    assert!(status == 2 && said.contains("a journal is in a directory") && said.contains("help: "), "{said}");
    for file in ["notes.txt", "d/journal.db"] {
        assert_eq!(std::fs::read_to_string(dir.path().join(file)).unwrap(), notes);
    }
}

/// The suggested command resumes the same program: it keeps the pipeline and the policy.
#[test]
fn the_way_to_go_on_names_what_the_program_is() {
    let dir = folder();
    let program = format!("{PROGRAM}\npipeline other(q: String) -> String {{ return q; }}\n");
    std::fs::write(dir.path().join("my p.agent"), program).unwrap();
    std::fs::write(dir.path().join("p.toml"), "[unknown_tools]\neffect = \"read\"\n").unwrap();
    let args =
        ["run", "my p.agent", "hello", "--pipeline", "main", "--policy", "p.toml", "--script", "s.json"];
    let (status, _, said) =
        entail(dir.path(), &[&args[..], &["--max-calls", "1", "--journal", "j"]].concat());
    assert_eq!(status, 1, "{said}");
    let way = said.split("the run is kept: `entail ").nth(1).unwrap().split('`').next().unwrap();
    let id = way.rsplit(' ').next().unwrap();
    assert_eq!(
        way,
        format!("run 'my p.agent' --pipeline main --policy p.toml --script s.json --journal j --resume {id}")
    );
    let way = way.replace("'my p.agent'", "FILE");
    let words: Vec<&str> = way.split(' ').map(|w| if w == "FILE" { "my p.agent" } else { w }).collect();
    let resumed = entail(dir.path(), &[&words[..], &["--format", "json"]].concat());
    assert_eq!(result(&resumed), json!(["one", "one"]));
}

#[test]
fn a_run_that_reached_a_limit_is_resumed_with_a_higher_one() {
    let dir = folder();
    std::fs::write(dir.path().join("entail.toml"), "[limits]\ncalls = 1\n").unwrap();
    let run = |more: &[&str]| {
        let args = ["run", "p.agent", "--script", "s.json", "--format", "json"];
        entail(dir.path(), &[&args[..], more].concat())
    };
    let stopped = run(&["hello", "--journal", "j"]);
    assert_eq!(stopped.0, 1, "{stopped:?}");
    let object: Value = serde_json::from_str(&stopped.1).unwrap();
    assert_eq!(object["error"]["code"], "budget");
    let id = object["run"].as_str().unwrap();

    // The script begins anew: only the second question is asked, so it gets the first reply.
    let resumed = run(&["--journal", "j", "--resume", &id[..8], "--max-calls", "2"]);
    assert_eq!(result(&resumed), json!(["one", "one"]));
    let usage: Value = serde_json::from_str(&resumed.1).unwrap();
    assert_eq!(usage["usage"]["modelCalls"], 2);

    let forked = entail(
        dir.path(),
        &["runs", "fork", id, "--at", "1", "--response", r#"{"reply": "uno"}"#, "--journal", "j"],
    );
    let fork = forked.1.trim().to_string();
    let other = run(&["--journal", "j", "--resume", &fork, "--max-calls", "2"]);
    assert_eq!(result(&other), json!(["uno", "one"]));
    let list = entail(dir.path(), &["runs", "list", "--journal", "j"]).1;
    assert!(list.lines().count() == 2 && list.contains(&format!("forked from {id}")), "{list}");
    let show = entail(dir.path(), &["runs", "show", &fork, "--journal", "j"]).1;
    assert!(show.contains("question hello") && show.contains(r#"{"reply":"uno"}"#), "{show}");

    std::fs::write(dir.path().join("p.agent"), PROGRAM.replace("[a, b]", "[b, a]")).unwrap();
    let changed = run(&["--journal", "j", "--resume", id]);
    assert!(changed.0 == 2 && changed.1.contains("the program has changed"), "{changed:?}");
    // Once it is allowed the run is one of the changed program.
    assert_eq!(result(&run(&["--journal", "j", "--resume", id, "--allow-changed"])), json!(["one", "one"]));
    assert_eq!(result(&run(&["--journal", "j", "--resume", id])), json!(["one", "one"]));
    let show = entail(dir.path(), &["runs", "show", id, "--journal", "j"]).1;
    assert!(show.contains("its program changed after 2 steps, "), "{show}");
    assert_eq!(entail(dir.path(), &["runs", "delete", id, &fork, "--journal", "j"]).0, 0);
    assert_eq!(entail(dir.path(), &["runs", "list", "--journal", "j"]).1, "");
}

/// A file that may not grow is what a full disk is to the journal: the run stops and says why, and goes on
/// when there is room again.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_stops_a_run_and_damages_nothing() {
    let mut stopped = 0;
    for kib in (0..=96).step_by(8) {
        let dir = folder();
        let script = r#"[{"match": "question hello", "reply": "one", "repeat": true}, {"match": "question one", "reply": "two", "repeat": true}]"#;
        std::fs::write(dir.path().join("s.json"), script).unwrap();
        let args = ["run", "p.agent", "--script", "s.json", "--format", "json", "--journal", "j"];
        let mut command = Command::new("bash");
        command.args(["-c", &format!("trap '' XFSZ; ulimit -f {kib}; exec \"$@\""), "bash"]);
        command.arg(env!("CARGO_BIN_EXE_entail")).args(args).arg("hello");
        let mut child = command
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ended = (0..3000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            child.try_wait().unwrap().is_some()
        });
        if !ended {
            child.kill().unwrap();
        }
        let out = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
        assert!(ended, "{kib} KiB: {said}");
        if !out.status.success() {
            stopped += 1;
            assert!(said.contains("journal"), "{kib} KiB: {said}");
        }
        // There is room again: a run that had begun goes on, and one that could not begin, begins.
        let list = entail(dir.path(), &["runs", "list", "--journal", "j", "--format", "json"]);
        let begun = list.1.lines().next().map(|l| serde_json::from_str::<Value>(l).unwrap());
        let again = match &begun {
            Some(run) => vec!["--resume", run["run"].as_str().unwrap()],
            None => vec!["hello"],
        };
        assert_eq!(
            result(&entail(dir.path(), &[&args[..], &again].concat())),
            json!(["one", "two"]),
            "{kib} KiB"
        );
    }
    assert!(stopped > 0);
}

#[test]
fn approval_requires_terminal() {
    let dir = folder();
    let tool = r#"tool pay(to: Str) -> Str write approve by {exec: ["sh", "-c", "echo paid >> ledger"]}"#;
    std::fs::write(dir.path().join("pay.lam"), format!("{tool}\ntool[pay] \"bob\"\n")).unwrap();
    // A `y` in a pipe is not a person's.
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.args(["run", "pay.lam", "--journal", "j", "--approvals", "refuse"]).current_dir(dir.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // That nobody reads it is as it should be.
    let _ = child.stdin.take().unwrap().write_all(b"y\ny\n");
    let out = child.wait_with_output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("`pay`: not approved: nobody is there to approve it"), "{said}");
    assert!(said.contains("help: run it with standard input and standard error at a terminal"), "{said}");
    assert!(!said.contains("approve?") && !dir.path().join("ledger").exists(), "{said}");

    let list = entail(dir.path(), &["runs", "list", "--journal", "j", "--format", "json"]).1;
    let id = serde_json::from_str::<Value>(list.lines().next().unwrap()).unwrap();
    let id = id["id"].as_str().or(id["run"].as_str()).unwrap().to_string();
    let resumed =
        entail(dir.path(), &["run", "pay.lam", "--journal", "j", "--resume", &id, "--approvals", "refuse"]);
    assert!(resumed.0 == 1 && resumed.2.contains("nobody is there"), "{resumed:?}");
    let show = entail(dir.path(), &["runs", "show", &id, "--journal", "j"]).1;
    assert!(show.contains(r#"approve pay: {"to":"bob"}"#) && show.matches("→").count() == 1, "{show}");
}

/// A run that wants to pay bob, from which it is known what it says and which run it is.
fn paying(dir: &Path, extra: &[&str]) -> (i32, String, String) {
    let tool =
        r#"tool pay(to: Str) -> Str write approve by {exec: ["sh", "-c", "echo paid >> ledger; echo paid"]}"#;
    std::fs::write(dir.join("pay.lam"), format!("{tool}\ntool[pay] \"bob\"\n")).unwrap();
    let args = [&["run", "pay.lam", "--journal", "j"], extra].concat();
    entail(dir, &args)
}

fn listed(dir: &Path) -> Value {
    let list = entail(dir, &["runs", "list", "--journal", "j", "--format", "json"]).1;
    serde_json::from_str(list.lines().next().unwrap()).unwrap()
}

#[test]
fn run_suspends_for_approval_and_resumes() {
    let dir = folder();
    std::fs::write(dir.path().join("entail.toml"), new_key(dir.path(), "alice")).unwrap();
    let left = paying(dir.path(), &["--approvals", "leave"]);
    assert!(left.0 == 1 && left.2.contains("waits for approval of a call of `pay`"), "{left:?}");
    let run = listed(dir.path());
    assert_eq!(
        run["waiting"][0]["args"][0],
        serde_json::json!({"name": "to", "value": "bob", "label": []}),
        "{run}"
    );
    let id = run["run"].as_str().unwrap();

    // Nobody decides by accident.
    let unsure = entail(dir.path(), &["approve", id, "--journal", "j"]);
    assert!(unsure.0 == 2 && unsure.1.contains("to = \"bob\""), "{unsure:?}");
    let again = paying(dir.path(), &["--resume", id, "--approvals", "leave"]);
    assert!(again.0 == 1 && !dir.path().join("ledger").exists(), "{again:?}");

    let wrong = entail_given(
        dir.path(),
        &["approve", id, "--yes", "--journal", "j", "--passphrase-stdin"],
        "correct horse",
    );
    assert!(wrong.0 == 2 && wrong.2.contains("the passphrase is wrong"), "{wrong:?}");
    let approved = approve(dir.path(), id, &["--yes"]);
    assert_eq!(approved.0, 0, "{approved:?}");
    let twice = approve(dir.path(), id, &["--deny"]);
    assert!(twice.0 == 2 && twice.2.contains("nothing of run"), "{twice:?}");
    let done = paying(dir.path(), &["--resume", id, "--approvals", "leave"]);
    assert_eq!((done.0, done.1.trim()), (0, "\"paid\""), "{done:?}");
    // Nobody is told to approve what is approved.
    assert!(left.2.contains("needs approval") && !done.2.contains("needs approval"), "{left:?} {done:?}");
    // Once.
    let done = paying(dir.path(), &["--resume", id]);
    assert_eq!(done.0, 0, "{done:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap(), "paid\n");
    // Who decided is kept.
    let show = entail(dir.path(), &["runs", "show", id, "--journal", "j"]).1;
    assert!(show.contains(r#""by":{"name":"alice","via":"key"}"#), "{show}");
    let trace = entail(dir.path(), &["trace", id, "--journal", "j"]).1;
    assert!(trace.contains(", by alice (key)"), "{trace}");
    let check = entail(dir.path(), &["runs", "check", "--journal", "j"]);
    assert!(check.0 == 0 && check.1.contains("all intact"), "{check:?}");
}

#[test]
fn approval_requires_key() {
    let dir = folder();
    let left = paying(dir.path(), &["--approvals", "leave"]);
    assert_eq!(left.0, 1);
    let run = listed(dir.path());
    let id = run["run"].as_str().unwrap();
    // No key; a key that the settings don't know; the settings know another key under the name.
    let none = approve(dir.path(), id, &["--yes"]);
    assert!(none.0 == 2 && none.2.contains("entail approve --new-key NAME"), "{none:?}");
    let lines = new_key(dir.path(), "alice");
    let unknown = approve(dir.path(), id, &["--yes"]);
    assert!(unknown.0 == 2 && unknown.2.contains("no key of"), "{unknown:?}");
    std::fs::write(dir.path().join("entail.toml"), new_key(dir.path(), "bob").replace("bob", "alice"))
        .unwrap();
    std::fs::remove_file(dir.path().join("config/entail/approvers/bob.json")).unwrap();
    let other = approve(dir.path(), id, &["--yes"]);
    assert!(other.0 == 2 && other.2.contains("no key of"), "{other:?}");
    assert_eq!(entail(dir.path(), &["approve", "--new-key", "alice", "--passphrase-stdin"]).0, 2);
    std::fs::write(dir.path().join("entail.toml"), lines).unwrap();
    // Without a terminal there is nowhere to type the passphrase.
    let silent = entail(dir.path(), &["approve", id, "--yes", "--journal", "j"]);
    assert_eq!(silent.0, 2, "{silent:?}");
    assert_eq!(approve(dir.path(), id, &["--yes"]).0, 0);
    assert!(!dir.path().join("ledger").exists());
}

#[test]
fn another_process_answers_while_the_run_waits() {
    let dir = folder();
    std::fs::write(dir.path().join("entail.toml"), new_key(dir.path(), "alice")).unwrap();
    for (answer, want) in [(&["--yes"][..], 0), (&["--deny", "--reason", "not today"], 1)] {
        let (sender, waits) = std::sync::mpsc::channel();
        let path = dir.path().to_path_buf();
        let run = std::thread::spawn(move || {
            let ran = paying(&path, &[]);
            let _ = sender.send(());
            ran
        });
        let id = loop {
            let list = entail(dir.path(), &["runs", "list", "--journal", "j", "--format", "json"]).1;
            let first = list.lines().next().and_then(|l| serde_json::from_str::<Value>(l).ok());
            if let Some(run) = first.filter(|r| r["waiting"][0].is_object()) {
                break run["run"].as_str().unwrap().to_string();
            }
            assert!(waits.try_recv().is_err(), "the run ended by itself");
        };
        assert_eq!(approve(dir.path(), &id, answer).0, 0);
        let ran = run.join().unwrap();
        assert_eq!(ran.0, want, "{ran:?}");
        assert!(want == 0 || ran.2.contains("not approved: it was refused: not today"), "{ran:?}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap(), "paid\n");
}

#[test]
fn the_exit_status_does_not_depend_on_names() {
    let dir = tempfile::tempdir().unwrap();
    let tool = r#"tool cancelled(to: Str) -> Str write approve by {exec: ["echo", "x"]}"#;
    std::fs::write(dir.path().join("w.lam"), format!("{tool}\ntool[cancelled] {{to: 'bob'}}\n")).unwrap();
    let args = ["run", "w.lam", "--journal", "j", "--approvals", "leave", "--format", "json"];
    let waiting = entail(dir.path(), &args);
    assert_eq!(waiting.0, 1, "{waiting:?}");
    let said: Value = serde_json::from_str(&waiting.1).unwrap();
    assert_eq!(said["error"]["code"], "cancelled", "{said}");
    assert_eq!(said["error"]["reason"], "approval", "{said}");
}

#[test]
fn expired_approval_is_requested_again() {
    let dir = folder();
    std::fs::write(dir.path().join("entail.toml"), "[limits]\napproval = 0.001\n").unwrap();
    let late = paying(dir.path(), &[]);
    assert!(late.0 == 1 && late.2.contains("it was not approved in time"), "{late:?}");
    assert_eq!(listed(dir.path())["waiting"], serde_json::json!([]));
    assert!(!dir.path().join("ledger").exists());
}

#[test]
fn a_store_in_a_file_outlives_the_run() {
    let dir = folder();
    std::fs::write(dir.path().join("entail.toml"), "[stores.notes]\nsqlite = \"notes.db\"\n").unwrap();
    let program = |term: &str| format!("store notes {{k: Num}}\nmem ({term}) notes\n");
    std::fs::write(dir.path().join("w.lam"), program("let _ = remember k 7 in recall k")).unwrap();
    std::fs::write(dir.path().join("r.lam"), program("recall k")).unwrap();
    let json = |file: &str| result(&entail(dir.path(), &["eval", file, "--format", "json"]));
    assert_eq!(json("r.lam"), Value::Null);
    assert_eq!(json("w.lam"), 7);
    assert_eq!(json("r.lam"), 7);
}

/// A program with a policy of its own, whose file says the number of calls.
#[test]
fn a_run_keeps_the_policy_of_its_program_and_that_of_the_file() {
    let dir = folder();
    let program = r#"
tool pay(to: String, amount: Number) -> String { exec "sh" "-c" "echo paid >> ledger; echo '\"paid\"'" }
policy {
    lattice levels;
    output { bound ["internal"]; }
    tool pay { writes; result ["internal"]; approve when amount > 50; }
}
pipeline main(amount: Number) -> String {
    let receipt = pay("bob", amount);
    return receipt;
}
"#;
    std::fs::write(dir.path().join("pay.agent"), program).unwrap();
    std::fs::write(dir.path().join("pay.toml"), "[tools.pay]\nat_most = 4\n").unwrap();
    std::fs::write(dir.path().join("entail.toml"), new_key(dir.path(), "alice")).unwrap();
    let run = |more: &[&str]| {
        let args = ["run", "pay.agent", "--policy", "pay.toml", "--journal", "j", "--approvals", "leave"];
        entail(dir.path(), &[&args[..], more].concat())
    };
    let small = run(&[r#"{"amount": 10}"#]);
    assert_eq!((small.0, small.1.trim()), (0, "\"paid\""), "{small:?}");
    // The program wants a person asked, and the lattice is the program's.
    let large = run(&[r#"{"amount": 60}"#]);
    assert!(large.0 == 1 && large.2.contains("needs approval"), "{large:?}");
    let list = entail(dir.path(), &["runs", "list", "--journal", "j", "--format", "json"]).1;
    let all: Vec<Value> = list.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let waiting = all.iter().find(|r| r["waiting"][0].is_object()).unwrap();
    let id = waiting["run"].as_str().unwrap();
    assert_eq!(approve(dir.path(), id, &["--yes"]).0, 0);
    let resumed = run(&["--resume", id]);
    assert_eq!((resumed.0, resumed.1.trim()), (0, "\"paid\""), "{resumed:?}");
    assert_eq!(std::fs::read_to_string(dir.path().join("ledger")).unwrap(), "paid\npaid\n");
    // Both are kept: what reads the journal knows the labels of the lattice.
    for kept in &all {
        let id = kept["run"].as_str().unwrap();
        let verified = entail(dir.path(), &["verify", id, "--journal", "j", "--format", "json"]);
        assert_eq!(verified.0, 0, "{verified:?}");
        let said: Value = serde_json::from_str(verified.1.lines().next().unwrap()).unwrap();
        assert_eq!(said["findings"], json!([]), "{said}");
    }
    // Under another policy of the program it is another program.
    std::fs::write(dir.path().join("pay.agent"), program.replace("amount > 50", "amount > 5")).unwrap();
    let other = run(&[r#"{"amount": 10}"#]);
    assert!(other.0 == 1 && other.2.contains("needs approval"), "{other:?}");
}
