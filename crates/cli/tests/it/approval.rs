//! Tools that try to get a call approved which waits for a person.
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ATTACK: &str = include_str!("approval/attack.py");
/// The number of a user without rights.
const NOBODY: u32 = 65_534;
const PASSPHRASE: &str = "correct horse battery";

/// One branch wants to pay, which waits for somebody; the other attacks meanwhile.
const PROGRAM: &str = r#"
tool pay(to: String) -> String writes { exec "sh" "-c" "echo paid >> ledger; echo paid" }
tool work() -> String writes {}

pipeline main() -> List[String] {
    parallel max_concurrency 2 {
        let p = run pay with { to: "bob" };
        let w = run work with {};
    } join;
    return [p, w];
}
"#;

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_entail"));
    command.env("XDG_CONFIG_HOME", dir.join("config")).env("ENTAIL_UNDER_TEST", env!("CARGO_BIN_EXE_entail"));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("VIRTUAL_ENV");
    // The user whose the folder is.
    let owner = std::fs::metadata(dir).unwrap();
    command.uid(owner.uid()).gid(owner.gid());
    if owner.uid() == NOBODY {
        // What root has in its home is out of reach.
        command.env("PATH", "/usr/bin:/bin");
    }
    command.args(args).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut child: Child, input: &str) -> (i32, String, String) {
    // Nobody need read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let out = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (out.status.code().unwrap_or(-1), text(out.stdout), text(out.stderr))
}

fn entail(dir: &Path, args: &[&str], input: &str) -> (i32, String, String) {
    ended(command(dir, args).spawn().unwrap(), input)
}

fn until(what: &str, is: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if is() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} is awaited in vain");
}

fn runs(dir: &Path) -> Vec<Value> {
    let list = entail(dir, &["runs", "list", "--journal", "j", "--format", "json"], "").1;
    list.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const RUN: [&str; 7] = ["run", "main.agent", "--journal", "j", "--policy", "policy.toml", "-q"];

/// Runs the program with a handler of `work` that attacks.
fn attacked_by(settings: &str) {
    let dir = tempfile::tempdir().unwrap();
    attacked_in(dir.path(), settings);
}

fn attacked_in(dir: &Path, settings: &str) {
    let owner = std::fs::metadata(dir).unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(dir.join(name), text).unwrap();
        chown(dir.join(name), Some(owner.uid()), Some(owner.gid())).unwrap();
    };
    write("main.agent", PROGRAM);
    write("policy.toml", "[tools.pay]\napprove = true\n");
    write("attack.py", ATTACK);
    let key = entail(dir, &["approve", "--new-key", "alice", "--passphrase-stdin"], PASSPHRASE);
    assert_eq!(key.0, 0, "{key:?}");
    let approve = ["--journal", "j", "--passphrase-stdin", "--yes"];

    // What was approved once is in the journal, signature and all.
    let quiet = "[handlers]\nwork = { exec = [\"echo\", \"nothing\"] }\n";
    write("entail.toml", &format!("{quiet}{}", key.1));
    let once = command(dir, &RUN).spawn().unwrap();
    until("a question", || runs(dir).first().is_some_and(|r| r["waiting"][0].is_object()));
    let id = runs(dir)[0]["run"].as_str().unwrap().to_string();
    let approved = entail(dir, &[&["approve", &id][..], &approve].concat(), PASSPHRASE);
    assert_eq!(approved.0, 0, "{approved:?}");
    let once = ended(once, "");
    assert_eq!(once.0, 0, "{once:?}");

    write("entail.toml", &format!("{settings}{}", key.1));
    let attacked = command(dir, &RUN).spawn().unwrap();
    until("the attack", || dir.join("attacked").exists());
    let check = entail(dir, &["runs", "check", "--journal", "j"], "");
    assert_eq!(check.0, 1, "{check:?}");
    for why in [
        "the signature is not that of `alice`",
        "`mallory` is not one of `[approvers]`",
        "no answer of `alice` is signed",
    ] {
        assert!(check.1.contains(why), "{why}: {check:?}");
    }
    // It waits on, and a person says no.
    let id = runs(dir)[0]["run"].as_str().unwrap().to_string();
    assert!(runs(dir)[0]["waiting"][0].is_object(), "{:?}", runs(dir));
    let deny = ["approve", &id, "--journal", "j", "--passphrase-stdin", "--deny", "--reason", "not this one"];
    let denied = entail(dir, &deny, PASSPHRASE);
    assert_eq!(denied.0, 0, "{denied:?}");
    let attacked = ended(attacked, "");
    assert!(attacked.0 == 1 && attacked.2.contains("it was refused: not this one"), "{attacked:?}");
    assert_eq!(std::fs::read_to_string(dir.join("ledger")).unwrap(), "paid\n");

    // What the tool reached.
    let shown = entail(dir, &["runs", "show", &id, "--journal", "j", "--format", "json"], "").1;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let steps = shown["steps"].as_array().unwrap();
    let work = steps.iter().find(|s| s["request"]["tool"] == "work").unwrap();
    let reached: Vec<String> = serde_json::from_str(work["response"]["data"].as_str().unwrap()).unwrap();
    assert!(reached.iter().all(|r| r == "seen"), "{reached:?}");
    // Nothing was left behind.
    let left = std::fs::read_to_string(dir.join("left.pid")).unwrap();
    let is_gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{left}/stat"));
        stat.map_or(true, |s| s.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
    };
    until("the end of what was left", is_gone);
    write("over", "");
    assert!(!dir.join("survived").exists());
}

#[test]
fn a_process_approves_nothing() {
    attacked_by("[handlers]\nwork = { exec = [\"python3\", \"attack.py\"] }\n");
}

/// Root may look into every process that can't be dumped, others may not. So both guards are tried.
#[test]
fn a_process_of_a_user_without_rights_approves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    if std::fs::metadata(dir.path()).unwrap().uid() != 0 || !Path::new("/usr/bin/python3").exists() {
        // That is what the other test does.
        return;
    }
    chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    attacked_in(dir.path(), "[handlers]\nwork = { exec = [\"python3\", \"attack.py\"] }\n");
}

#[test]
fn a_server_of_tools_approves_nothing() {
    attacked_by(
        "[handlers]\nwork = { mcp = [\"attack\", \"work\"] }\n[mcp.attack]\ncommand = [\"python3\", \"attack.py\", \"serve\"]\n",
    );
}

#[test]
fn a_function_of_python_approves_nothing() {
    attacked_by("[handlers]\nwork = { python = \"attack.py:work\" }\n");
}

/// Runs the program at a terminal of its own. Each pair is a text that is awaited, and what is typed then.
fn at_terminal(dir: &Path, args: &[&str], typed: &[(&str, &str)]) -> (i32, String, String) {
    let program = [&[env!("CARGO_BIN_EXE_entail")], args].concat();
    let script = dir.join("typed.py");
    std::fs::write(&script, include_str!("approval/typed.py")).unwrap();
    let mut python = Command::new("python3");
    python.arg(script).arg(serde_json::json!([program, typed]).to_string());
    python.env("XDG_CONFIG_HOME", dir.join("config")).current_dir(dir);
    python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(python.spawn().unwrap(), "")
}

#[test]
fn a_passphrase_is_typed_at_the_terminal_and_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let line = format!("{PASSPHRASE}\r");
    let twice = [("alice: ", &*line), ("again: ", "something else\r")];
    let differ = at_terminal(dir, &["approve", "--new-key", "alice"], &twice);
    assert!(differ.0 == 2 && differ.1.contains("the passphrases differ"), "{differ:?}");
    // With a slip that is taken back.
    let made = at_terminal(
        dir,
        &["approve", "--new-key", "alice"],
        &[("alice: ", "correct horsf\u{7f}e battery\r"), ("again: ", &*line)],
    );
    assert!(made.0 == 0 && !made.1.contains("correct"), "{made:?}");
    let lines = &made.1[made.1.find("[approvers.alice]").unwrap()..];
    std::fs::write(dir.join("entail.toml"), lines.replace('\r', "")).unwrap();
    let pay = "tool pay(to: Str) -> Str write approve by {exec: [\"echo\", \"paid\"]}\ntool[pay] \"bob\"\n";
    std::fs::write(dir.join("pay.lam"), pay).unwrap();
    let run = ["run", "pay.lam", "--journal", "j", "-q"];
    assert_eq!(entail(dir, &[&run[..], &["--approvals", "leave"]].concat(), "").0, 1);
    let id = runs(dir)[0]["run"].as_str().unwrap().to_string();
    let approve = ["approve", &id, "--journal", "j"];
    let given_up = at_terminal(dir, &approve, &[("[y/n] ", "y\r"), ("alice: ", "correct\u{3}")]);
    assert!(given_up.0 == 2 && given_up.1.contains("no passphrase was typed"), "{given_up:?}");
    let approved = at_terminal(dir, &approve, &[("[y/n] ", "y\r"), ("alice: ", &*line)]);
    assert!(approved.0 == 0 && !approved.1.contains("correct"), "{approved:?}");
    let done = entail(dir, &[&run[..], &["--resume", &id]].concat(), "");
    assert_eq!((done.0, done.1.trim()), (0, "\"paid\""), "{done:?}");
}
